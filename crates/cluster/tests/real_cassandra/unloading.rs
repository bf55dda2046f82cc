//! Tables of a real server read as a source: what comes is what was written.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use marquetry_base::{Detail, ErrorKind};
use marquetry_cluster::{Consistency, CqlOptions, CqlSource, CqlTable, UnloadOptions};
use marquetry_parquet::batch::Batch;
use marquetry_tables::text::{Format, TextOutput, TextOutputOptions};
use marquetry_tables::{
    Cancel, ColumnPath, CopyOptions, DiffOptions, Filter, PieceOptions, Reading, ReadingOptions, Source,
    copy, diff, filter, project,
};
use marquetry_testing::{Break, Proxy};
use scylla::value::CqlValue;

use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    every_type(server);
    wide_partitions_in_small_pages(server);
    static_rows(server);
    counters_views_and_nothing(server);
    large_rows(server);
    metadata(server);
    what_is_loaded_elsewhere_is_the_same(server);
    some_columns_and_some_rows(server);
    what_is_not_there(server);
    a_table_that_is_dropped(server);
    cancelled(server);
}

fn options() -> UnloadOptions {
    UnloadOptions::default()
}

fn open(server: &Server, table: &str, options: &UnloadOptions) -> Arc<dyn Source> {
    Arc::new(CqlSource::open(server.address(table), options).unwrap())
}

/// The rows as JSON lines, in order.
fn lines(source: &Arc<dyn Source>) -> Vec<String> {
    let mut out = Vec::new();
    let mut text = TextOutput::new(&mut out, Format::JsonLines, TextOutputOptions::default());
    copy(source, &mut text, &CopyOptions::default(), &mut |_| {}).unwrap();
    drop(text);
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn key_value(source: &Arc<dyn Source>, key: &str) -> String {
    let found = source.table().key_values.iter().find(|it| it.key == key);
    let value = found.and_then(|it| it.value.clone()).unwrap_or_else(|| panic!("no {key}"));
    String::from_utf8(value.to_vec()).unwrap()
}

/// Asserts that a line has all of these.
fn has(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{line}\nlacks {part}");
    }
}

const TYPES: &str = "p int, c timeuuid, \"As\" ascii, bi bigint, bl blob, bo boolean, da date, de decimal, dou double, du duration, fl float,
    ine inet, i int, si smallint, te text, ti time, ts timestamp, tu timeuuid, ty tinyint, uu uuid, va varint,
    li list<int>, se set<text>, ma map<text, int>, fli frozen<list<int>>, fse frozen<set<int>>, fma frozen<map<int, text>>,
    tup tuple<int, text>, ud pt, fud frozen<pt>, ve vector<float, 3>, vt vector<text, 2>, nest map<text, frozen<list<frozen<pt>>>>,
    PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'it''s' AND gc_grace_seconds = 1234";

fn every_type(server: &Server) {
    server.run(&format!("CREATE TYPE {KEYSPACE}.pt (x int, y frozen<list<text>>)"));
    server.run(&format!("CREATE TABLE {KEYSPACE}.all_cql ({TYPES}"));
    server.run(&format!("CREATE INDEX by_te ON {KEYSPACE}.all_cql (te)"));
    server.run(&format!(
        "INSERT INTO {KEYSPACE}.all_cql (p, c, \"As\", bi, bl, bo, da, de, dou, du, fl, ine, i, si, te, ti, ts, tu, ty, uu, va, li, se, ma, fli,
         fse, fma, tup, ud, fud, ve, vt, nest) VALUES (1, 50554d6e-29bb-11e5-b345-feff819cdc9f, 'a', -9223372036854775808, 0xcafe, true, '2024-02-29',
         12.50, 0.1, 1mo2d3s, -0.5, '2001:db8::1', -2147483648, -32768, 'Grüße', '03:04:05.000000006', '2024-02-29T10:00:00.5Z',
         50554d6e-29bb-11e5-b345-feff819cdc9f, -128, 550e8400-e29b-41d4-a716-446655440000, 170141183460469231731687303715884105728,
         [3, 1, 3], {{'b', 'a'}}, {{'k': 1, 'j': 2}}, [1], {{2, 1}}, {{7: 'x'}}, (1, 'b'), {{x: 1}}, {{x: 2, y: ['q']}}, [1, 2.5, -3],
         ['u', 'v'], {{'n': [{{x: 5, y: []}}]}})"
    ));
    server.run(&format!(
        "INSERT INTO {KEYSPACE}.all_cql (p, c) VALUES (1, 60554d6e-29bb-11e5-b345-feff819cdc9f)"
    ));
    server.run(&format!(
        "INSERT INTO {KEYSPACE}.all_cql (p, c, \"As\", bl, te, li, fli, tup, i) VALUES (2, 50554d6e-29bb-11e5-b345-feff819cdc9f, '', 0x, '', [], [],
         (null, null), blob_as_int(0x))"
    ));
    let source = open(server, "all_cql", &options());
    let table = source.table();
    assert_eq!(
        table.key.as_ref().map(|key| (key.partition.len(), key.clustering[0].descending)),
        Some((1, true))
    );
    let rows = lines(&source);
    assert_eq!(rows.len(), 3, "{rows:?}");
    // Clustering is descending.
    let of = |part: &str| rows.iter().position(|row| row.contains(part)).unwrap();
    assert!(of("60554d6e") < of("-2147483648"));
    has(
        &rows[of("-2147483648")],
        &[
            r#""p":1,"c":"50554d6e-29bb-11e5-b345-feff819cdc9f""#,
            r#""As":"a""#,
            r#""bi":-9223372036854775808"#,
            r#""bl":"0xcafe""#,
            r#""bo":true"#,
            r#""da":"2024-02-29""#,
            r#""de":"12.50""#,
            r#""dou":0.1"#,
            r#""du":{"months":1,"days":2,"nanoseconds":3000000000}"#,
            r#""fl":-0.5"#,
            r#""ine":"2001:db8::1""#,
            r#""si":-32768"#,
            r#""te":"Grüße""#,
            r#""ti":"03:04:05.000000006""#,
            r#""ts":"2024-02-29T10:00:00.500Z""#,
            r#""tu":"50554d6e-29bb-11e5-b345-feff819cdc9f""#,
            r#""ty":-128"#,
            r#""uu":"550e8400-e29b-41d4-a716-446655440000""#,
            r#""va":"170141183460469231731687303715884105728""#,
            r#""li":[3,1,3]"#,
            r#""se":["a","b"]"#,
            r#""ma":[{"key":"j","value":2},{"key":"k","value":1}]"#,
            r#""fli":[1]"#,
            r#""fse":[1,2]"#,
            r#""fma":[{"key":7,"value":"x"}]"#,
            r#""tup":{"_0":1,"_1":"b"}"#,
            r#""ud":{"x":1,"y":null}"#,
            r#""fud":{"x":2,"y":["q"]}"#,
            r#""ve":[1.0,2.5,-3.0]"#,
            r#""vt":["u","v"]"#,
            r#""nest":[{"key":"n","value":[{"x":5,"y":[]}]}]"#,
        ],
    );
    has(
        &rows[of("60554d6e")],
        &[r#""As":null"#, r#""i":null"#, r#""li":null"#, r#""ud":null"#, r#""ve":null"#],
    );
    has(
        &rows[of("\"p\":2")],
        &[
            r#""As":"""#,
            r#""bl":"0x""#,
            r#""te":"""#,
            r#""li":null"#,
            r#""fli":[]"#,
            r#""tup":{"_0":null,"_1":null}"#,
            r#""i":null"#,
        ],
    );
    let columns = key_value(&source, "marquetry.table.columns");
    has(
        &columns,
        &[r#"{"name":"de","kind":"regular","type":"decimal""#, r#"{"name":"c","kind":"clustering""#],
    );
    assert_eq!(key_value(&source, "marquetry.table.name"), format!("{KEYSPACE}.all_cql"));
    // The statements make the table again, elsewhere.
    let statements = key_value(&source, "marquetry.table.schema");
    has(
        &statements,
        &[
            "CREATE TYPE",
            "CREATE TABLE",
            "gc_grace_seconds = 1234",
            "comment = 'it''s'",
            "CREATE INDEX by_te",
        ],
    );
    let keyspace = "cluster_test_again";
    server.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
    server.run(&format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    for statement in statements.replace(KEYSPACE, keyspace).split_inclusive(";\n") {
        server.run(statement);
    }
    let again = server.select(&format!(
        "SELECT column_name FROM system_schema.columns WHERE keyspace_name = '{keyspace}' AND table_name = 'all_cql'"
    ));
    assert_eq!(again.len(), 33);
    server.run(&format!("DROP KEYSPACE {keyspace}"));
}

fn wide_partitions_in_small_pages(server: &Server) {
    server.run(&format!("CREATE TABLE {KEYSPACE}.wide (p int, c int, v text, PRIMARY KEY (p, c))"));
    for p in 0..20 {
        // Numbers that look random, and are the same each time.
        let of = |c: i32| (c.wrapping_mul(0x9e37_79b9_u32.cast_signed()) ^ p).rem_euclid(97);
        let rows = if p == 7 { 3_000 } else { p * 5 };
        let mut c = 0;
        while c < rows {
            let mut batch = String::from("BEGIN UNLOGGED BATCH ");
            for c in c..rows.min(c + 100) {
                let value = "x".repeat(usize::try_from(of(c)).unwrap());
                write!(batch, "INSERT INTO {KEYSPACE}.wide (p, c, v) VALUES ({p}, {c}, '{value}');").unwrap();
            }
            server.run(&(batch + " APPLY BATCH"));
            c += 100;
        }
    }
    let number = |value: &Option<CqlValue>| match value {
        Some(CqlValue::Int(number)) => *number,
        other => panic!("{other:?}"),
    };
    let expected: Vec<String> = server
        .select(&format!("SELECT p, c, v FROM {KEYSPACE}.wide"))
        .iter()
        .map(|row| {
            let Some(CqlValue::Text(v)) = &row["v"] else { panic!("{row:?}") };
            format!(r#"{{"p":{},"c":{},"v":"{v}"}}"#, number(&row["p"]), number(&row["c"]))
        })
        .collect();
    assert_eq!(expected.len(), 3_915);
    for (page_bytes, tokens) in [(1 << 20, None), (3_000, None), (1, Some(":0")), (1 << 20, Some("0:"))] {
        let mut options = options();
        (options.page_bytes, options.tokens) = (page_bytes, tokens.map(|text| text.parse().unwrap()));
        let source = open(server, "wide", &options);
        assert!(source.pieces().len() > 1);
        let found = lines(&source);
        match tokens {
            // In the same order, too.
            None => assert_eq!(found, expected, "{page_bytes}"),
            Some(tokens) => assert!(found.len() < expected.len(), "{tokens}"),
        }
    }
    let of_half = |tokens: &str| {
        let mut options = options();
        options.tokens = Some(tokens.parse().unwrap());
        lines(&open(server, "wide", &options))
    };
    assert_eq!([of_half(":0"), of_half("0:")].concat(), expected);
    // A share of a half is what it is called, or is refused.
    let mut half = options();
    half.tokens = Some("0:".parse().unwrap());
    let half = open(server, "wide", &half);
    let share = half.within("0:4611686018427387904".parse().unwrap()).unwrap().unwrap();
    let said = |source: &Arc<dyn Source>| {
        let pair = source.table().key_values.iter().find(|pair| pair.key == "marquetry.table.tokens");
        String::from_utf8(pair.unwrap().value.as_ref().unwrap().to_vec()).unwrap()
    };
    assert_eq!((said(&half), said(&share)), ("0:".to_owned(), "0:4611686018427387904".to_owned()));
    let rest = half.within("4611686018427387904:".parse().unwrap()).unwrap().unwrap();
    assert_eq!([lines(&share), lines(&rest)].concat(), lines(&half));
    for (of, beyond) in [(&half, "-1:5"), (&half, ":"), (&share, "7:4611686018427387905"), (&share, "0:")] {
        let error = of.within(beyond.parse().unwrap()).map(drop).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Option("token_range")), "{beyond}: {error}");
    }
    // A server that is away for a while is waited for: nothing is lost, and nothing comes twice.
    let proxy = Proxy::start(&server.at, 100_000, Break::Away(Duration::from_secs(2)));
    let mut behind = options();
    behind.page_bytes = 1;
    let address = format!("cql://{}/{KEYSPACE}.wide", proxy.at).parse().unwrap();
    let source: Arc<dyn Source> = Arc::new(CqlSource::open(address, &behind).unwrap());
    assert_eq!(lines(&source), expected);
    assert_eq!(proxy.breaks(), 1);
    // Too few replicas are waited for, too, for so long.
    let mut too_few = options();
    (too_few.consistency, too_few.retry_for) = (Consistency::Three, Duration::from_secs(2));
    let error = open(server, "wide", &too_few).open(0, &PieceOptions::default()).unwrap().next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.to_string().starts_with("the cluster could not read rows, asked "), "{error}");
    // Only as many as are wanted, of a batch and in all.
    let source = open(server, "wide", &options());
    let mut reading = ReadingOptions::default();
    reading.piece = PieceOptions::default().limited_to(1_234);
    reading.piece.batch_rows = Some(100);
    let mut reading = Reading::new(source, reading).unwrap();
    let mut rows = 0;
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        assert!(batch.rows <= 100);
        rows += batch.rows;
    }
    assert_eq!(rows, 1_234);
}

fn static_rows(server: &Server) {
    server.run(&format!(
        "CREATE TABLE {KEYSPACE}.statics (p int, c int, s text static, l list<int> static, v int, PRIMARY KEY (p, c))"
    ));
    server.run(&format!("INSERT INTO {KEYSPACE}.statics (p, s, l) VALUES (1, 'only', [1, 2])"));
    server.run(&format!("INSERT INTO {KEYSPACE}.statics (p, c, s, v) VALUES (2, 1, 'with', 21)"));
    server.run(&format!("INSERT INTO {KEYSPACE}.statics (p, c, v) VALUES (2, 2, 22)"));
    server.run(&format!("INSERT INTO {KEYSPACE}.statics (p, c, v) VALUES (3, 1, 31)"));
    let source = open(server, "statics", &options());
    let mut found = lines(&source);
    found.sort();
    let expected = [
        r#"{"p":1,"c":null,"s":"only","l":[1,2],"v":null}"#,
        r#"{"p":2,"c":1,"s":"with","l":null,"v":21}"#,
        r#"{"p":2,"c":2,"s":"with","l":null,"v":22}"#,
        r#"{"p":3,"c":1,"s":null,"l":null,"v":31}"#,
    ];
    assert_eq!(found, expected);
    // As many rows whatever the columns are.
    for columns in ["p", "v", "c,v", "s"] {
        let some = project(&source, &ColumnPath::parse_list(columns).unwrap()).unwrap();
        assert_eq!(lines(&some).len(), 4, "{columns}");
    }
    let mut with_metadata = options();
    with_metadata.with_metadata = true;
    let found = lines(&open(server, "statics", &with_metadata));
    assert_eq!(found.iter().filter(|line| line.contains(r#""kind":"static""#)).count(), 2, "{found:?}");
    assert_eq!(found.len(), 5);
}

fn counters_views_and_nothing(server: &Server) {
    server.run(&format!("CREATE TABLE {KEYSPACE}.counts (p int PRIMARY KEY, n counter, m counter)"));
    server.run(&format!("UPDATE {KEYSPACE}.counts SET n = n + 7 WHERE p = 1"));
    server.run(&format!("UPDATE {KEYSPACE}.counts SET n = n - 9 WHERE p = 1"));
    assert_eq!(lines(&open(server, "counts", &options())), [r#"{"p":1,"m":null,"n":-2}"#]);
    let mut with_metadata = options();
    with_metadata.with_metadata = true;
    let found = lines(&open(server, "counts", &with_metadata));
    has(&found[0], &[r#""n":-2"#, r#""row_marker":false"#, r#""write_time":1"#]);

    server.run(&format!("CREATE TABLE {KEYSPACE}.based (a int PRIMARY KEY, b int, c text)"));
    server.run(&format!(
        "CREATE MATERIALIZED VIEW {KEYSPACE}.viewed AS SELECT * FROM {KEYSPACE}.based WHERE b IS NOT NULL AND a IS NOT NULL PRIMARY KEY (b, a)"
    ));
    server.run(&format!("INSERT INTO {KEYSPACE}.based (a, b, c) VALUES (1, 2, 'x')"));
    let view = open(server, "viewed", &options());
    let deadline = Instant::now() + Duration::from_secs(20);
    while lines(&view).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(lines(&view), [r#"{"b":2,"a":1,"c":"x"}"#]);
    has(&key_value(&view, "marquetry.table.schema"), &["CREATE MATERIALIZED VIEW"]);
    let base = key_value(&open(server, "based", &options()), "marquetry.table.schema");
    assert!(base.starts_with("CREATE TABLE") && !base.contains("VIEW"), "{base}");

    server.run(&format!("CREATE TABLE {KEYSPACE}.nothing (p int PRIMARY KEY, v int)"));
    assert!(lines(&open(server, "nothing", &options())).is_empty());
}

fn large_rows(server: &Server) {
    server.run(&format!("CREATE TABLE {KEYSPACE}.large_read (p int PRIMARY KEY, v blob)"));
    let large = "ab".repeat(5 << 20);
    for p in 0..40 {
        let value = if p % 8 == 3 { large.as_str() } else { "cd" };
        server.run(&format!("INSERT INTO {KEYSPACE}.large_read (p, v) VALUES ({p}, 0x{value})"));
    }
    let source = open(server, "large_read", &options());
    let mut reading = Reading::new(source, ReadingOptions::default()).unwrap();
    let (mut rows, mut bytes) = (0, 0);
    while let Some((_, Batch { rows: of_batch, columns, .. })) = reading.next_batch().unwrap() {
        let marquetry_parquet::batch::Values::ByteArray(values) = &columns[1].values else { panic!() };
        rows += of_batch;
        bytes += (0..values.len()).map(|at| values.get(at).len()).sum::<usize>();
    }
    assert_eq!((rows, bytes), (40, 35 + ((5 * 5) << 20)));
}

fn metadata(server: &Server) {
    server.run(&format!(
        "CREATE TABLE {KEYSPACE}.times (p int PRIMARY KEY, a int, b int, l list<int>, m map<text, int>, u pt, f frozen<list<int>>)"
    ));
    let run = |statement: &str| server.run(&statement.replace("times", &format!("{KEYSPACE}.times")));
    run("INSERT INTO times (p, a, b, f) VALUES (1, 1, 1, [1]) USING TIMESTAMP 1000");
    run("INSERT INTO times (p, a, b) VALUES (2, 1, 1) USING TIMESTAMP 1000 AND TTL 5000");
    run("UPDATE times USING TIMESTAMP 2000 SET b = 2 WHERE p = 1");
    run("INSERT INTO times (p) VALUES (3) USING TIMESTAMP 1000");
    run("INSERT INTO times (p, a) VALUES (4, 1) USING TIMESTAMP 1000");
    run("UPDATE times USING TIMESTAMP 2000 AND TTL 6000 SET m = {'x': 1}, u = {x: 1}, l = [7] WHERE p = 4");
    run("UPDATE times USING TIMESTAMP 3000 SET m['y'] = 2, l = l + [8] WHERE p = 4");
    let mut options = options();
    options.with_metadata = true;
    let source = open(server, "times", &options);
    assert_eq!(source.table().notes, []);
    let rows = lines(&source);
    let row = |p: i32| rows.iter().find(|row| row.starts_with(&format!(r#"{{"p":{p},"#))).unwrap();
    has(
        row(1),
        &[
            r#""kind":"row""#,
            r#""write_time":1000,"row_marker":true,"ttl":null"#,
            r#""column":"b""#,
            r#""write_time":2000"#,
        ],
    );
    has(row(2), &[r#""write_time":1000,"row_marker":true,"ttl":"#, r#""cells":null"#]);
    let number = |row: &str, name: &str| {
        let (_, rest) = row.split_once(&format!("\"{name}\":")).unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<i64>().unwrap()
    };
    let (ttl, expires_at) = (number(row(2), "ttl"), number(row(2), "expires_at"));
    assert!((4_900..=5_000).contains(&ttl), "{ttl}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let left = expires_at - i64::try_from(now).unwrap();
    assert!((4_900..=5_000).contains(&left), "{left}");
    has(row(3), &[r#""a":null"#, r#""row_marker":true"#]);
    // Cassandra 5 tells the times of elements.
    has(
        row(4),
        &[
            r#""m":[{"key":"x","value":1},{"key":"y","value":2}]"#,
            r#""l":[7,8]"#,
            r#""column":"m","path":"0x78","write_time":null,"ttl":"#,
            r#""column":"m","path":"0x79","write_time":3000,"ttl":null"#,
            r#""column":"u","path":"0x0000","write_time":null,"ttl":"#,
        ],
    );
    // Most of it was written at 2000; its marker is as old as its oldest value.
    has(
        row(4),
        &[r#""write_time":2000,"row_marker":true"#, r#"{"column":null,"path":null,"write_time":1000"#],
    );
    assert_eq!(key_value(&source, "marquetry.mapping"), "full");
}

/// Loads what comes into a table of its own; the two are the same.
fn what_is_loaded_elsewhere_is_the_same(server: &Server) {
    let columns = "p int, c text, a bigint, b blob, d double, e boolean, i smallint, l list<int>, m map<text, frozen<list<int>>>,
        s set<text>, t timestamp, u uuid, x date, y time, PRIMARY KEY (p, c))";
    for table in ["first", "second"] {
        server.run(&format!("CREATE TABLE {KEYSPACE}.{table} ({columns}"));
    }
    for p in 0..50 {
        server.run(&format!(
            "INSERT INTO {KEYSPACE}.first (p, c, a, b, d, e, i, l, m, s, t, u, x, y) VALUES ({p}, 'c{p}', {p}, 0x{p:04}, {p}.25, true, {p}, [{p}, 1],
             {{'k{p}': [1, {p}], 'j': []}}, {{'s', 't{p}'}}, {p}000, 550e8400-e29b-41d4-a716-4466554400{p:02}, '2024-02-01', '03:04:05.5')"
        ));
        server.run(&format!("INSERT INTO {KEYSPACE}.first (p, c) VALUES ({p}, 'empty')"));
    }
    let first = open(server, "first", &options());
    let mut table = CqlTable::new(server.address("second"), CqlOptions::default());
    assert_eq!(copy(&first, &mut table, &CopyOptions::default(), &mut |_| {}).unwrap().rows, 100);
    let second = open(server, "second", &options());
    let found = diff([&first, &second], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(found.are_rows_equal(), "{found:?}");
    // (Loads of many rows have write times that are ahead of the clock.)
    server.run(&format!("UPDATE {KEYSPACE}.first SET a = 0 WHERE p = 7 AND c = 'c7'"));
    let found = diff([&first, &second], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(!found.are_rows_equal());
}

fn some_columns_and_some_rows(server: &Server) {
    let source = open(server, "wide", &options());
    let some = project(&source, &ColumnPath::parse_list("v,p").unwrap()).unwrap();
    assert_eq!(some.table().schema.leaves().len(), 2);
    assert_eq!(lines(&some).len(), 3_915);
    let error = project(&source, &ColumnPath::parse_list("v,nope").unwrap()).err().unwrap();
    assert!(error.message().contains("no column \"nope\"; its columns are p, c, v"), "{error}");
    // Whole keys are asked for; other columns are tested.
    let found = filter(&source, &Filter::new("p IN (3, 7) AND c < 2")).unwrap();
    assert_eq!(found.pieces().len(), 2);
    let mut rows = lines(&found);
    rows.sort();
    assert_eq!(rows.len(), 4);
    assert!(rows[0].starts_with(r#"{"p":3,"c":0,"#) && rows[3].starts_with(r#"{"p":7,"c":1,"#), "{rows:?}");
    let found = filter(&source, &Filter::new("c = 2999")).unwrap();
    assert_eq!(found.pieces().len(), source.pieces().len());
    assert_eq!(lines(&found).len(), 1);
    let none = filter(&source, &Filter::new("p = 1000")).unwrap();
    assert!(lines(&none).is_empty());
}

fn what_is_not_there(server: &Server) {
    let failed = |table: &str| {
        CqlSource::open(format!("cql://{}/{table}", server.at).parse().unwrap(), &options()).err().unwrap()
    };
    for (table, said) in [
        ("cluster_test.absent", "the cluster has no table or view cluster_test.absent"),
        ("absent.t", "the cluster has no keyspace absent, and so no table absent.t"),
    ] {
        let error = failed(table);
        assert_eq!(
            (error.message(), error.kind(), error.detail()),
            (said, ErrorKind::Refused, Some(Detail::NotFound))
        );
    }
}

fn a_table_that_is_dropped(server: &Server) {
    server.run(&format!("CREATE TABLE {KEYSPACE}.dropped (p int PRIMARY KEY, v int)"));
    let source = open(server, "dropped", &options());
    server.run(&format!("DROP TABLE {KEYSPACE}.dropped"));
    let mut batches = source.open(0, &PieceOptions::default()).unwrap();
    let error = batches.next().unwrap_err();
    has(&error.to_string(), &["the table cluster_test.dropped was dropped while it was read"]);
    assert!(error.place().object.as_deref().is_some_and(|object| object.contains("/cluster_test.dropped")));
}

fn cancelled(server: &Server) {
    let source = open(server, "wide", &options());
    let cancel = Cancel::new();
    let mut piece = PieceOptions::default();
    piece.cancel = cancel.clone();
    let mut batches = source.open(0, &piece).unwrap();
    cancel.cancel();
    let started = Instant::now();
    assert_eq!(batches.next().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(started.elapsed() < Duration::from_millis(300));
    // Batches that nobody takes any more end their requests; the source is as good as before.
    for piece in 0..source.pieces().len() {
        drop(source.open(piece, &PieceOptions::default()).unwrap());
    }
    assert_eq!(lines(&source).len(), 3_915);
}
