//! Definitions as servers write them, and as people do.

use super::*;
use alloc::format;

fn parse(text: &str) -> Definitions {
    Definitions::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The table as it is printed, without line ends.
fn table(text: &str) -> String {
    let made = parse(text);
    assert_eq!(made.tables.len(), 1, "{text}");
    let printed = made.tables[0].to_string();
    printed.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn said(text: &str) -> String {
    Definitions::parse(text).unwrap_err().to_string()
}

#[test]
fn what_we_print_is_read() {
    let printed = "CREATE TABLE ks.\"T\" (\n    a int,\n    \"B c\" text,\n    d date,\n    \"order\" map<text, frozen<list<int>>> STATIC,\n    \
                   PRIMARY KEY ((a, \"B c\"), d)\n) WITH CLUSTERING ORDER BY (d DESC)\n  AND comment = 'it''s; (';\n";
    let made = parse(printed);
    let expected = printed.replace("\n  AND comment = 'it''s; ('", "");
    assert_eq!(made.tables[0].to_string(), expected);
}

#[test]
fn what_cassandra_writes_beside_snapshots() {
    let text = "CREATE TYPE IF NOT EXISTS ks.addr (street text, zip int, tags frozen<set<text>>);\n\
        CREATE TABLE IF NOT EXISTS ks.t (\n    pk int,\n    ck bigint,\n    st text static,\n    un ks.addr,\n    x 'org.apache.cassandra.db.marshal.UTF8Type',\n    \
        PRIMARY KEY (pk, ck)\n) WITH ID = 4f6c3b70-0000-11ef-0000-000000000000\n    AND CLUSTERING ORDER BY (ck DESC)\n    \
        AND DROPPED COLUMN RECORD old text USING TIMESTAMP 1000\n    AND compaction = {'class': 'org.apache', 'max_threshold': '32'}\n    AND extensions = {};\n\
        CREATE INDEX IF NOT EXISTS i ON ks.t (un);";
    let made = parse(text);
    assert_eq!(made.types[0].fields.len(), 3);
    assert_eq!(dropped(&made), [("old", 1000)]);
    let options = &made.options[0];
    assert!(
        options.text.starts_with("WITH ID = ") && options.text.ends_with("extensions = {}"),
        "{options:?}"
    );
    assert_eq!((options.is_compact, options.default_ttl_s), (false, 0));
    assert_eq!(
        table(text),
        "CREATE TABLE ks.t ( pk int, ck bigint, st text STATIC, un ks.addr, x text, PRIMARY KEY (pk, ck) ) WITH CLUSTERING \
         ORDER BY (ck DESC);"
    );
}

#[test]
fn options_say_how_rows_are_stored() {
    let options = |text: &str| parse(&format!("CREATE TABLE ks.t (compact int PRIMARY KEY){text};")).options;
    assert_eq!(options(""), [TableOptions::default()]);
    let text = "with COMPACT Storage AND default_time_to_live=3600 and comment = 'default_time_to_live = 5'";
    let made = TableOptions { is_compact: true, default_ttl_s: 3600, text: text.to_string() };
    assert_eq!(options(&format!(" {text}")), [made]);
    let wrong = "CREATE TABLE ks.t (a int PRIMARY KEY) WITH default_time_to_live = -1";
    assert!(Definitions::parse(wrong).unwrap_err().to_string().contains("a time in seconds"));
}

fn dropped(made: &Definitions) -> Vec<(&str, i64)> {
    made.dropped.iter().map(|column| (column.name.as_str(), column.timestamp)).collect()
}

#[test]
fn columns_that_were_dropped_and_added() {
    let text = "CREATE TABLE ks.t (old int, pk int, ck int, a int, b text, PRIMARY KEY (pk, ck)) WITH ID = 1;
        ALTER TABLE ks.t DROP old USING TIMESTAMP 10; ALTER TABLE ks.t DROP (a, b) USING TIMESTAMP -11; ALTER TABLE ks.t ADD a bigint static;
        ALTER TABLE ks.t ADD (c int, d int); ALTER TABLE ks.t RENAME pk TO key; ALTER TABLE ks.t WITH comment = 'x';
        ALTER KEYSPACE ks WITH x = 1;";
    assert_eq!(
        table(text),
        "CREATE TABLE ks.t ( key int, ck int, a bigint STATIC, c int, d int, PRIMARY KEY (key, ck) );"
    );
    assert_eq!(dropped(&parse(text)), [("old", 10), ("a", -11), ("b", -11)]);
    // Of a column that is not there, a server notes nothing.
    let text = "CREATE TABLE t (a int PRIMARY KEY, v int); ALTER TABLE t DROP IF EXISTS z USING TIMESTAMP 5; ALTER TABLE t DROP IF EXISTS v USING TIMESTAMP 6";
    assert_eq!(dropped(&parse(text)), [("v", 6)]);
    let text = "CREATE TYPE ks.u (a int); ALTER TYPE ks.u ADD b text; ALTER TYPE ks.u RENAME a TO c;";
    let fields: Vec<String> =
        parse(text).types[0].fields.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    assert_eq!(fields, ["c int", "b text"]);
}

/// What a statement alters counts, and nothing of it is passed over.
#[test]
fn altered() {
    let made = "CREATE TABLE ks.t (pk int, a int, b int, v int, PRIMARY KEY (pk, a, b)) \
                WITH CLUSTERING ORDER BY (a DESC, b ASC) AND comment = 'it''s and' AND default_time_to_live = 5 -- s\n;";
    let of = |alter: &str| {
        let parsed = parse(&format!("{made} {alter};"));
        (table(&format!("{made} {alter};")), parsed.options[0].text.clone(), parsed.options[0].default_ttl_s)
    };
    let (_, text, seconds) = of(
        "ALTER TABLE ks.t WITH default_time_to_live = 60 AND gc_grace_seconds=1 /* s */ AND compaction = {'class': 'and'}",
    );
    assert_eq!(seconds, 60);
    assert_eq!(
        text,
        "WITH CLUSTERING ORDER BY (a DESC, b ASC)\n    AND comment = 'it''s and'\n    AND default_time_to_live = 60\n    AND gc_grace_seconds=1\n    \
         AND compaction = {'class': 'and'}"
    );
    // Of a table that had none.
    let parsed = parse(
        "CREATE TABLE t (a int PRIMARY KEY); ALTER TABLE t WITH Comment = 'x'; ALTER TABLE t WITH comment='y'",
    );
    assert_eq!(parsed.options[0].text, "WITH comment='y'");
    let (printed, text, _) = of("ALTER TABLE ks.t RENAME IF EXISTS a TO x AND b TO \"Y\"");
    assert!(
        printed.contains("PRIMARY KEY (pk, x, \"Y\") ) WITH CLUSTERING ORDER BY (x DESC, \"Y\" ASC)"),
        "{printed}"
    );
    assert_eq!(
        text,
        "WITH CLUSTERING ORDER BY (x DESC, \"Y\" ASC)\n    AND comment = 'it''s and'\n    AND default_time_to_live = 5"
    );
    // A comment between the options is none of theirs.
    let (printed, ..) = of(
        "ALTER TABLE IF EXISTS ks.t ADD IF NOT EXISTS (v text, w text); ALTER TABLE ks.t DROP IF EXISTS w, z; \
                            ALTER TABLE ks.t ALTER v TYPE bigint; ALTER TABLE ks.t ALTER v MASKED WITH mask_null(); ALTER TABLE ks.t DROP COMPACT STORAGE",
    );
    assert!(printed.contains("b int, v bigint, PRIMARY KEY"), "{printed}");
    let text = "CREATE TYPE u (a int); ALTER TYPE IF EXISTS u ADD IF NOT EXISTS a text; ALTER TYPE u ADD b int AND c int; ALTER TYPE u RENAME a TO x AND b TO y";
    let fields: Vec<String> =
        parse(text).types[0].fields.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    assert_eq!(fields, ["x int", "y int", "c int"]);
    for (alter, error) in [
        (
            "TABLE ks.t WITH CLUSTERING ORDER BY (a ASC)",
            "\"CLUSTERING ORDER BY \" where a property that ALTER TABLE can set is expected",
        ),
        ("TABLE ks.t WITH default_time_to_live = 'x'", "\"'x'\" where a time in seconds"),
        ("TABLE ks.t WITH comment", "the text ends where an equals sign is expected"),
        ("TABLE ks.t WITH comment = AND a = 1", "\"AND a = 1\" where a value is expected"),
        ("TABLE ks.t WITH default_time_to_live = 1 2", "\"2\" where the end of the statement is expected"),
        ("TABLE ks.t ADD c int, d int e", "\"e\" where the end of the statement is expected"),
        ("TABLE ks.t RENAME nope TO x", "nope is not a column of the table"),
        ("TABLE ks.t ALTER v", "the text ends where TYPE is expected"),
        ("TABLE ks.t SPLIT", "\"SPLIT\" where ADD, DROP, RENAME, ALTER or WITH is expected"),
    ] {
        let found = said(&format!("{made}\nALTER {alter}"));
        assert!(found.starts_with("line 3: ") && found.contains(error), "{alter}: {found}");
    }
}

#[test]
fn other_forms() {
    for (text, printed) in [
        ("create table t (a int primary key)", "CREATE TABLE t ( a int, PRIMARY KEY (a) );"),
        (
            "USE \"Ks\"; create columnfamily T (A int PRIMARY KEY, \"T\" text) with compact storage",
            "CREATE TABLE \"Ks\".t ( a int, \"T\" text, PRIMARY KEY (a) );",
        ),
        (
            "-- one; two\nCREATE /* three; */ TABLE ks . t (primary text, // four\n key int, PRIMARY KEY((primary, key)))",
            "CREATE TABLE ks.t ( \"primary\" text, key int, PRIMARY KEY ((\"primary\", key)) );",
        ),
        (
            "CREATE TABLE t (a int, b text MASKED WITH mask_inner(1, null), c text MASKED WITH DEFAULT, PRIMARY KEY (a))",
            "CREATE TABLE t ( a int, b text, c text, PRIMARY KEY (a) );",
        ),
        (
            "CREATE TABLE t (a int PRIMARY KEY, v vector<float, 3>, m map < text , frozen<list<ks.u>> >)",
            "CREATE TABLE t ( a int, v vector<float, 3>, m map<text, frozen<list<frozen<ks.u>>>>, PRIMARY KEY (a) );",
        ),
        (
            "CREATE FUNCTION f(a int) RETURNS int LANGUAGE java AS $$ return 1; \" $$; CREATE ROLE 'x;y'; CREATE TABLE t (a int PRIMARY KEY)",
            "CREATE TABLE t ( a int, PRIMARY KEY (a) );",
        ),
    ] {
        assert_eq!(table(text), printed, "{text}");
    }
    assert_eq!(parse(" \n-- nothing"), Definitions::default());
}

#[test]
fn views() {
    let made = parse(
        "CREATE MATERIALIZED VIEW ks.v AS SELECT * FROM ks.t WHERE a IS NOT NULL AND \"B\" IS NOT NULL \
         PRIMARY KEY ((\"B\"), a) WITH CLUSTERING ORDER BY (a ASC);",
    );
    let view = &made.views[0];
    assert_eq!((view.view.to_string(), view.base.to_string()), ("ks.v".to_string(), "ks.t".to_string()));
    assert_eq!(view.partition_key, [Name::new("B").unwrap()]);
    assert_eq!(view.clustering, [Name::new("a").unwrap()]);
}

#[test]
fn refused() {
    for (text, error) in [
        ("CREATE TABLE t (a int)", "line 1: a table without a primary key"),
        ("CREATE TABLE t", "line 1: the text ends where the columns in parentheses is expected"),
        ("\nCREATE TABLE t (\n a int,\n PRIMARY KEY (b))", "line 4: b is not a column of the table"),
        (
            "CREATE TABLE t (a int b int)",
            "line 1: \"b int)\" where a comma or a closing parenthesis is expected",
        ),
        ("CREATE TABLE t (a int<text> PRIMARY KEY)", "line 1: unexpected \"<text>\" in the type"),
        ("CREATE TABLE t (a list<int PRIMARY KEY)", "line 1: \")\" where a type is expected"),
        (
            "CREATE TABLE t (a 'com.example.Mine' PRIMARY KEY)",
            "line 1: the type \"com.example.Mine\" has no name in CQL",
        ),
        ("CREATE TABLE 1 (a int PRIMARY KEY)", "line 1: \"1 (a int PRIMARY KEY\" where a name is expected"),
        (
            "CREATE TABLE t (a int PRIMARY KEY) WITH CLUSTERING ORDER BY (b DESC)",
            "line 1: b is not a column of the table",
        ),
        ("ALTER TABLE t DROP a", "line 1: t is altered, but not created before"),
        (
            "CREATE TABLE t (a int PRIMARY KEY); ALTER TABLE t DROP a",
            "line 1: a is not a column of the table",
        ),
        ("CREATE TABLE t (\"a int PRIMARY KEY)", "line 1: a quoted name has no closing quote"),
        (
            "CREATE TABLE t (a int PRIMARY KEY, b int); ALTER TABLE t DROP b USING TIMESTAMP x",
            "line 1: \"x\" where a time in microseconds is expected",
        ),
        ("DROP TABLE 'x", "line 1: the text ends where a closing quote is expected"),
    ] {
        assert_eq!(said(text), error, "{text}");
    }
    let deep = format!("CREATE TABLE t (a {} PRIMARY KEY)", "list<".repeat(100_000));
    assert!(Definitions::parse(&deep).is_err());
}

/// What the last option is, a comment after it is not; and servers take no time to live of more than 20 years.
#[test]
fn options_end_with_the_last_of_them() {
    let of = |end: &str| Definitions::parse(&format!("CREATE TABLE ks.t (k int PRIMARY KEY) WITH {end}"));
    for end in ["", ";", " -- old", " /* old */;", "\n// old\n;"] {
        let made = of(&format!("comment = 'a -- b' AND default_time_to_live = 630720000{end}")).unwrap();
        let [options] = &*made.options else { panic!("{made:?}") };
        assert_eq!(options.text, "WITH comment = 'a -- b' AND default_time_to_live = 630720000", "{end:?}");
        assert_eq!(options.default_ttl_s, 630_720_000);
    }
    let error = of("default_time_to_live = 630720001").unwrap_err();
    assert!(error.to_string().contains("at most 20 years"), "{error}");
}
