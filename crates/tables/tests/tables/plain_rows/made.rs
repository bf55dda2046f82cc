//! Rows of text into tables that are defined for them.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::{Definitions, KeySpec, TableName};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::sstables::NewSstablesOptions;
use marquetry_tables::text::{Format, NewTextFile, TextFormat, TextOptions, TextOutputOptions};
use marquetry_tables::{CopyOptions, Source, copy};

use super::{contents, expect_same, full, logical, options, text, write};

/// A file of text as a source.
pub(crate) fn source(folder: &Path, name: &str, lines: &str) -> Arc<dyn Source> {
    typed(folder, name, lines, "")
}

/// The same, with types of some columns.
pub(crate) fn typed(folder: &Path, name: &str, lines: &str, types: &str) -> Arc<dyn Source> {
    let path = folder.join(name);
    std::fs::write(&path, lines).unwrap();
    let mut options = TextOptions::default();
    if !types.is_empty() {
        options.types = types.parse().unwrap();
    }
    text(&path, options)
}

/// Options for a table of this key.
pub(crate) fn keyed(version: &str, key: &str) -> NewSstablesOptions {
    let mut options = options(version);
    options.rows.table = Some(TableName::parse("ks.t").unwrap());
    options.rows.mapping =
        MappingOptions { key: Some(KeySpec::parse(key).unwrap()), ..MappingOptions::default() };
    options
}

/// A source's rows as JSON lines.
fn lines(source: &Arc<dyn Source>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let mut to = NewTextFile::new(&path, Format::JsonLines, TextOutputOptions::default()).unwrap();
    copy(source, &mut to, &CopyOptions::default(), &mut |_| {}).unwrap();
    std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect()
}

/// Numbers that look random, and are the same each time.
fn shuffled(rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    let mut state = 0x9e37_79b9_u64;
    for at in (1..rows).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
    }
    order
}

const TYPES: &str = "CREATE TYPE ks.place (street text, zip int, tags frozen<set<text>>);
CREATE TABLE ks.t (
    k int, d date, b blob, st text STATIC, sm set<int> STATIC, bo boolean, ti tinyint, si smallint, i int, bi bigint, f float, db double, \
    de decimal, vi varint, tx text, ac ascii, ts timestamp, da date, tm time, du duration, id uuid, tu timeuuid, ip inet, li list<int>, \
    se set<text>, ma map<text, int>, fl frozen<list<int>>, fs frozen<set<int>>, pl place, fp frozen<place>, ve vector<float, 3>,
    PRIMARY KEY ((k), d, b)
) WITH CLUSTERING ORDER BY (d DESC, b ASC);";

/// A row of every type, from text; some values null, some empty.
fn row_of_all(row: usize) -> String {
    let (k, n) = (row % 7, row / 7);
    let mut out = format!(
        "{{\"k\":{k},\"d\":\"20{:02}-0{}-15\",\"b\":\"0x{:02x}00{:02x}\",\"st\":\"of {k}\",\"sm\":[{k},1,{k},-4]",
        n % 30,
        1 + n % 9,
        n % 256,
        n / 256
    );
    let sparse = |out: &mut String, every: usize, name: &str, value: &str| {
        let value = if n % every == every - 1 { "null" } else { value };
        write!(out, ",\"{name}\":{value}").unwrap();
    };
    let out_ref = &mut out;
    sparse(out_ref, 3, "bo", if n % 2 == 0 { "true" } else { "false" });
    sparse(out_ref, 4, "ti", &format!("{}", n % 100));
    sparse(out_ref, 5, "si", &format!("-{}", n % 1000));
    sparse(out_ref, 6, "i", &format!("{n}"));
    sparse(out_ref, 7, "bi", &format!("{}", n * 10_000_000_000));
    sparse(out_ref, 8, "f", &format!("{n}.5"));
    sparse(out_ref, 9, "db", &format!("-{n}.25"));
    sparse(out_ref, 3, "de", &format!("\"{n}.125\""));
    sparse(out_ref, 4, "vi", &format!("\"{n}00000000000000000000\""));
    sparse(out_ref, 5, "tx", if n % 2 == 0 { "\"\"" } else { "\"fünf\"" });
    sparse(out_ref, 6, "ac", "\"five\"");
    sparse(out_ref, 7, "ts", "\"2024-02-29T12:00:00.123Z\"");
    sparse(out_ref, 8, "da", "\"1969-12-31\"");
    sparse(out_ref, 9, "tm", "\"08:09:10.123456789\"");
    sparse(out_ref, 3, "du", "\"1y2mo3d4h5m6s\"");
    sparse(out_ref, 4, "id", "\"cc520812-9507-44fb-8fc9-b349ecdee658\"");
    sparse(out_ref, 5, "tu", "\"2a92d712-d8dc-11e6-a2de-cf8ecd4cf053\"");
    sparse(out_ref, 6, "ip", if n % 2 == 0 { "\"10.0.0.7\"" } else { "\"::1\"" });
    sparse(out_ref, 7, "li", "[3,1,2,3]");
    sparse(out_ref, 8, "se", if n % 5 == 0 { "[]" } else { "[\"b\",\"a\",\"b\"]" });
    sparse(out_ref, 9, "ma", "{\"z\":1,\"a\":2}");
    sparse(out_ref, 3, "fl", "[]");
    sparse(out_ref, 4, "fs", "[9,-9,9]");
    sparse(out_ref, 5, "pl", "{\"street\":\"s\",\"zip\":null,\"tags\":[\"q\",\"p\"]}");
    sparse(out_ref, 6, "fp", "{\"street\":null,\"zip\":5,\"tags\":[\"q\",\"p\",\"q\"]}");
    sparse(out_ref, 7, "ve", "[1.5,-0.5,0]");
    out.push_str("}\n");
    out
}

/// Rows in any order, with little memory and with much, on one thread and on several: the same bytes.
#[test]
fn the_same_sstables_in_whatever_way_they_are_made() {
    const ROWS: usize = 3000;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let in_order: String = (0..ROWS).map(row_of_all).collect();
    let mixed: String = shuffled(ROWS).into_iter().map(row_of_all).collect();
    let mut made = options("da");
    made.rows.schema_cql = Some(TYPES.to_owned());
    made.rows.timestamp = "w".parse().unwrap();
    let stamped = |lines: &str| lines.replace("{\"k\"", "{\"w\":1700000000000000,\"k\"");
    let (in_order, mixed) = (
        typed(folder.path(), "a.jsonl", &stamped(&in_order), "ma=map<text, int>"),
        typed(folder.path(), "b.jsonl", &stamped(&mixed), "ma=map<text, int>"),
    );
    let mut how = CopyOptions::default();
    how.threads = Some(1);
    write(&in_order, &at("a"), made.clone(), &how).unwrap();
    how.threads = Some(3);
    write(&mixed, &at("b"), made.clone(), &how).unwrap();
    how.memory_bytes = 200_000;
    write(&mixed, &at("c"), made.clone(), &how).unwrap();
    let expected = contents(&at("a"));
    assert_eq!(expected.len(), 9);
    for other in ["b", "c"] {
        let found = contents(&at(other));
        let differing: Vec<&String> =
            expected.iter().zip(&found).filter(|(a, b)| a != b).map(|((name, _), _)| name).collect();
        assert!(differing.is_empty(), "{other}: {differing:?}");
    }
    // And they are what the text says, by both versions of indexes.
    made.version = options("me").version;
    write(&mixed, &at("d"), made, &how).unwrap();
    expect_same(&logical(&at("a")), &logical(&at("d")), "versions");
    let rows = lines(&logical(&at("d")));
    assert_eq!(rows.len(), ROWS);
    let one = rows.iter().find(|row| row.contains("\"b\":\"AQAA\"") || row.contains("0x010000")).unwrap();
    for part in [
        "\"k\":",
        "\"sm\":[-4,1",
        "\"fs\":[-9,9]",
        "\"li\":[3,1,2,3]",
        "\"se\":[\"a\",\"b\"]",
        "\"tags\":[\"p\",\"q\"]",
    ] {
        assert!(one.contains(part), "{part}: {one}");
    }
}

/// Many rows of several files, on one thread and on several: the same bytes, with write times that count the rows, and the same error.
#[test]
fn threads_change_nothing() {
    const ROWS: usize = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let order = shuffled(ROWS);
    let names = ["a.csv", "b.csv"];
    let files = |wrong: &[usize]| {
        let paths = names.map(|name| folder.path().join(name));
        for (path, (half, rows)) in paths.iter().zip(order.chunks(ROWS / 2).enumerate()) {
            let mut lines = "k,c,v,w\n".to_owned();
            for (at, row) in rows.iter().enumerate() {
                // Of one key there are several rows, of which the last one has to win.
                let key = if wrong.contains(&(half * ROWS / 2 + at)) {
                    String::new()
                } else {
                    (row % 999).to_string()
                };
                writeln!(lines, "{key},{},of {row},{at}", row % 17).unwrap();
            }
            std::fs::write(path, lines).unwrap();
        }
        let mut options = FilesOptions::default();
        options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
        let source: Arc<dyn Source> = Arc::new(Files::open(paths, &options).unwrap());
        source
    };
    let how = |threads: usize| {
        let mut how = CopyOptions::default();
        how.threads = Some(threads);
        how
    };
    let source = files(&[]);
    for version in ["me", "da"] {
        let made = [1, 2, 4].map(|threads| {
            let to = folder.path().join(format!("{version}-{threads}"));
            write(&source, &to, keyed(version, "k, c"), &how(threads)).unwrap();
            contents(&to)
        });
        assert!(made[0] == made[1] && made[0] == made[2], "{version}");
    }
    assert_eq!(lines(&logical(&folder.path().join("me-4"))).len(), 999 * 17);
    let writes = full(&folder.path().join("me-4"));
    let made = [1, 2, 4].map(|threads| {
        let to = folder.path().join(format!("again-{threads}"));
        write(&writes, &to, NewSstablesOptions::default(), &how(threads)).unwrap();
        contents(&to)
    });
    assert!(made[0] == made[1] && made[0] == made[2]);
    // In the second file, far from its beginning; and a later one, which another thread may find first.
    let (first, later) = (ROWS - 9_000, ROWS - 1);
    let source = files(&[first, later]);
    for threads in [1, 4] {
        let to = folder.path().join("wrong");
        let error = write(&source, &to, keyed("me", "k, c"), &how(threads)).unwrap_err();
        let (place, row) = (error.place(), u64::try_from(first - ROWS / 2).unwrap());
        assert_eq!((place.row, place.column.as_deref()), (Some(row), Some("k")), "{threads}: {error}");
        assert!(
            place.object.as_deref().is_some_and(|object| object.ends_with("b.csv")),
            "{threads}: {error}"
        );
        assert!(!to.exists());
    }
}

#[test]
fn rows_of_one_key_are_merged_as_servers_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Later rows win, and what they lack stays.
    let rows = source(folder.path(), "a.csv", "k,c,v,w\n1,1,a,old\n2,1,x,\n1,1,b,\n1,2,c,d\n1,1,,new\n");
    write(&rows, &at("a"), keyed("nb", "k, c"), &CopyOptions::default()).unwrap();
    let mut found = lines(&logical(&at("a")));
    found.sort();
    assert_eq!(
        found,
        [
            r#"{"k":1,"c":1,"v":"b","w":"new"}"#,
            r#"{"k":1,"c":2,"v":"c","w":"d"}"#,
            r#"{"k":2,"c":1,"v":"x","w":null}"#
        ]
    );
    // The name as it was last written, the value before.
    let times = lines(&full(&at("a"))).join(" ");
    assert!(
        times.contains(
            r#""write_time":1700000000000004,"row_marker":true,"cells":[{"column":"v","write_time":1700000000000002"#
        ),
        "{times}"
    );
    // By a column of times: the greater value where they are equal.
    let rows =
        source(folder.path(), "b.csv", "k,v,n,at\n1,b,5,100\n1,c,3,100\n1,a,9,99\n2,z,1,50\n2,a,2,51\n");
    let mut made = keyed("me", "k");
    made.rows.timestamp = "at".parse().unwrap();
    write(&rows, &at("b"), made, &CopyOptions::default()).unwrap();
    let mut found = lines(&logical(&at("b")));
    found.sort();
    assert_eq!(found, [r#"{"k":1,"n":5,"v":"c"}"#, r#"{"k":2,"n":2,"v":"a"}"#]);
    // Collections: a later one replaces, one of the same time is added to.
    let text = "{\"k\":1,\"s\":[\"a\"],\"l\":[1,2],\"t\":7}\n{\"k\":1,\"s\":[\"b\",\"a\"],\"l\":[3],\"t\":7}\n\
                {\"k\":2,\"s\":[\"a\"],\"l\":[1,2],\"t\":7}\n{\"k\":2,\"s\":[\"b\"],\"l\":[3],\"t\":8}\n";
    let rows = source(folder.path(), "c.jsonl", text);
    let mut made = keyed("oa", "k");
    made.rows.timestamp = "t".parse().unwrap();
    made.rows.mapping.sets = vec!["s".to_owned()];
    write(&rows, &at("c"), made, &CopyOptions::default()).unwrap();
    let mut found = lines(&logical(&at("c")));
    found.sort();
    assert_eq!(found, [r#"{"k":1,"l":[1,2,3],"s":["a","b"]}"#, r#"{"k":2,"l":[3],"s":["b"]}"#]);
}

#[test]
fn rows_expire_and_nulls_may_delete() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rows = source(folder.path(), "a.csv", "k,v,ttl\n1,a,10\n2,b,\n3,c,0\n");
    let mut made = keyed("da", "k");
    made.rows.ttl = Some("ttl".parse().unwrap());
    write(&rows, &at("a"), made, &CopyOptions::default()).unwrap();
    let found = lines(&full(&at("a")));
    // Ten seconds after what counts as now.
    let expiring: Vec<&String> =
        found.iter().filter(|row| row.contains("\"ttl\":10,\"expires_at\":1700000010")).collect();
    assert!(expiring.len() == 1 && expiring[0].contains("\"k\":1"), "{found:?}");
    assert_eq!(lines(&logical(&at("a"))).len(), 2);
    let mut made = keyed("me", "k");
    made.rows.ttl = Some("60".parse().unwrap());
    made.rows.mapping.nulls = marquetry_scylla::bridge::Nulls::Null;
    let rows = source(folder.path(), "b.csv", "k,v,w\n1,a,\n");
    write(&rows, &at("b"), made, &CopyOptions::default()).unwrap();
    let found = lines(&full(&at("b")));
    assert!(found.len() == 1 && found[0].contains("\"expires_at\":1700000060"), "{found:?}");
    assert!(found[0].contains("local_deletion_time"), "{found:?}");
}

#[test]
fn static_columns_are_of_the_partition() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("t");
    let rows = source(folder.path(), "a.csv", "p,c,s,v\n1,1,first,a\n2,,only,\n1,2,,b\n1,0,last,c\n3,1,,d\n");
    let mut made = options("nb");
    made.rows.schema_cql =
        Some("CREATE TABLE ks.t (p int, c int, s text STATIC, v text, extra blob, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)".to_owned());
    write(&rows, &to, made, &CopyOptions::default()).unwrap();
    let mut found = lines(&logical(&to));
    found.sort();
    assert_eq!(
        found,
        [
            r#"{"p":1,"c":0,"s":"last","extra":null,"v":"c"}"#,
            r#"{"p":1,"c":1,"s":"last","extra":null,"v":"a"}"#,
            r#"{"p":1,"c":2,"s":"last","extra":null,"v":"b"}"#,
            r#"{"p":2,"c":null,"s":"only","extra":null,"v":null}"#,
            r#"{"p":3,"c":1,"s":null,"extra":null,"v":"d"}"#
        ]
    );
}

/// One partition, many times as large as the memory.
#[test]
fn a_partition_larger_than_memory() {
    const ROWS: usize = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("t");
    let mut text = "p,c,v\n".to_owned();
    for row in shuffled(ROWS) {
        writeln!(text, "one,{row},value {row} {}", "x".repeat(row % 50)).unwrap();
    }
    let rows = source(folder.path(), "a.csv", &text);
    let mut how = CopyOptions::default();
    how.memory_bytes = 100_000;
    let mut made = keyed("me", "p, c desc");
    made.bytes_max = Some(1);
    write(&rows, &to, made, &how).unwrap();
    let found = lines(&logical(&to));
    assert_eq!(found.len(), ROWS);
    assert!(found[0].starts_with(&format!("{{\"p\":\"one\",\"c\":{},", ROWS - 1)), "{}", found[0]);
    // A partition is never divided.
    assert_eq!(contents(&to).iter().filter(|(name, _)| name.ends_with("-Data.db")).count(), 1);
}

#[test]
fn sstables_end_where_they_are_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "k,v\n".to_owned();
    (0..4000).for_each(|row| writeln!(text, "{row},value {row}").unwrap());
    let rows = source(folder.path(), "a.csv", &text);
    let whole = folder.path().join("whole");
    write(&rows, &whole, keyed("me", "k"), &CopyOptions::default()).unwrap();
    let mut made = keyed("me", "k");
    made.split_at = vec![-1 << 62, 0, 1 << 62];
    let split = folder.path().join("split");
    write(&rows, &split, made, &CopyOptions::default()).unwrap();
    let mut made = keyed("me", "k");
    made.bytes_max = Some(20_000);
    let many = folder.path().join("many");
    write(&rows, &many, made, &CopyOptions::default()).unwrap();
    let sstables = |path: &Path| contents(path).iter().filter(|(name, _)| name.ends_with("-Data.db")).count();
    assert_eq!((sstables(&whole), sstables(&split)), (1, 4));
    assert!(sstables(&many) > 1);
    for other in [&split, &many] {
        expect_same(&logical(&whole), &logical(other), "several SSTables");
    }
}

/// What a definition says besides the columns counts, and stays.
#[test]
fn a_definition_keeps_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let rows = source(folder.path(), "a.csv", "K x,c,v\n1,1,a\n1,2,b\n");
    let text = "WITH default_time_to_live = 3600\n    AND CLUSTERING ORDER BY (c DESC) AND compaction = {'class': 'LeveledCompactionStrategy'} -- so";
    let definition =
        format!("CREATE TABLE ks.t (\"K x\" int, c int, v text, PRIMARY KEY (\"K x\", c)) {text}");
    let made = |name: &str, ttl: Option<&str>| {
        let mut options = options("me");
        options.rows.schema_cql = Some(definition.clone());
        options.rows.ttl = ttl.map(|ttl| ttl.parse().unwrap());
        let to = folder.path().join(name);
        write(&rows, &to, options, &CopyOptions::default()).unwrap();
        (lines(&full(&to)), std::fs::read_to_string(to.join("schema.cql")).unwrap())
    };
    let (by_default, schema) = made("default", None);
    assert!(by_default.iter().all(|line| line.contains("3600")), "{by_default:?}");
    let kept = text.strip_suffix(" -- so").unwrap();
    assert!(schema.contains("\"K x\" int") && schema.ends_with(&format!("{kept};\n")), "{schema}");
    // It can be given again, and says the same.
    let again = Definitions::parse(&schema).unwrap();
    let given = Definitions::parse(&definition).unwrap();
    assert_eq!((again.tables, again.options), (given.tables, given.options));
    let (never, _) = made("never", Some("0"));
    assert!(never.iter().all(|line| !line.contains("3600")), "{never:?}");
    let (other, _) = made("other", Some("60"));
    assert!(other.iter().all(|line| line.contains("60") && !line.contains("3600")), "{other:?}");
}
