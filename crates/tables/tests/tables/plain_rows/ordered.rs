//! Tables whose rows come in the order of tokens are compared as they come, whatever the types of their keys.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{ErrorKind, Result};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::{
    Batches, ColumnPath, CopyOptions, DiffOptions, Piece, PieceOptions, Reading, ReadingOptions, RowId,
    SortBy, Source, Table, copy, diff, missing, project,
};

use super::made::typed;
use super::{logical, options, write};

/// A source that says that its rows come in that order, as those of a cluster do.
struct Ordered {
    source: Arc<dyn Source>,
    table: Table,
}

impl Ordered {
    fn of(source: Arc<dyn Source>) -> Arc<dyn Source> {
        let mut table = source.table().clone();
        table.is_in_token_order = true;
        Arc::new(Ordered { source, table })
    }
}

impl Source for Ordered {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        self.source.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        self.source.open(piece, options)
    }
}

const TABLE: &str = "CREATE TYPE ks.place (street text, zips frozen<set<varint>>);
CREATE TABLE ks.t (
    p inet, q decimal, r frozen<tuple<int, text>>, s int STATIC, a varint, b frozen<set<decimal>>, c frozen<place>, d timeuuid, e uuid,
    f frozen<map<text, double>>, g float, n int, v int, PRIMARY KEY ((p, q, r), a, b, c, d, e, f, g, n)
) WITH CLUSTERING ORDER BY (a DESC, b ASC, c DESC, d ASC, e DESC, f ASC, g DESC, n ASC);";
const KEY: [&str; 11] = ["p", "q", "r", "a", "b", "c", "d", "e", "f", "g", "n"];

/// A row as JSON: its partition by `number`, and few different values of every clustering column but the last, so that each decides.
fn row(number: u32, value: u32) -> String {
    let mut state = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3;
    let mut one_of = |texts: &[&'static str]| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        texts[usize::try_from(state >> 33).unwrap() % texts.len()]
    };
    let mut line = partition(number);
    let columns: [(&str, &[&str]); 7] = [
        ("a", &[r#""-1""#, r#""0""#, r#""170141183460469231731687303715884105728""#, r#""-256""#]),
        ("b", &["[]", r#"["10","9.5"]"#, r#"["9.50"]"#, r#"["-1E+3"]"#]),
        (
            "c",
            &[
                r#"{"street":"a","zips":["300","2"]}"#,
                r#"{"street":null,"zips":["-1"]}"#,
                r#"{"street":"","zips":null}"#,
            ],
        ),
        (
            "d",
            &[
                r#""2a92d712-d8dc-11e6-a2de-cf8ecd4cf053""#,
                r#""1a92d712-d8dd-11e6-a2de-cf8ecd4cf053""#,
                r#""2a92d712-d8dc-11e6-82de-cf8ecd4cf053""#,
            ],
        ),
        (
            "e",
            &[
                r#""ff520812-9507-44fb-8fc9-b349ecdee658""#,
                r#""00520812-9507-44fb-8fc9-b349ecdee658""#,
                r#""2a92d712-d8dc-11e6-a2de-cf8ecd4cf053""#,
            ],
        ),
        ("f", &["{}", r#"{"x":1.5}"#, r#"{"x":-2,"y":0}"#]),
        ("g", &["-0.5", "0", "3.5"]),
    ];
    for (name, values) in columns {
        write!(line, ",\"{name}\":{}", one_of(values)).unwrap();
    }
    writeln!(line, ",\"n\":{number},\"v\":{value}}}").unwrap();
    line
}

fn partition(number: u32) -> String {
    let (p, q) = (number % 5, number % 3);
    let p = if p == 4 { "2001:db8::1".to_owned() } else { format!("10.0.0.{p}") };
    format!("{{\"p\":\"{p}\",\"q\":\"{q}.50\",\"r\":{{\"_0\":{},\"_1\":\"é\"}}", number % 2)
}

/// Rows as a table's SSTables have them.
fn table(folder: &Path, name: &str, lines: &str) -> Arc<dyn Source> {
    let mut made = options("da");
    made.rows.schema_cql = Some(TABLE.to_owned());
    let to = folder.join(name);
    let rows = typed(folder, &format!("{name}.jsonl"), lines, "f=map<text, double>");
    write(&rows, &to, made, &CopyOptions::default()).unwrap();
    logical(&to)
}

#[test]
fn keys_of_any_type_are_compared_as_they_come() {
    const ROWS: u32 = 3000;
    let folder = tempfile::tempdir().unwrap();
    // One partition has only a static value.
    let alone = format!("{},\"s\":7}}\n", partition(0).replace("10.0.0.0", "10.9.9.9"));
    let (mut in_a, mut in_b) = (alone.clone(), alone);
    let (mut lost, mut changed) = (0, 0);
    for number in 0..ROWS {
        in_a.push_str(&row(number, number));
        if number % 50 == 1 {
            lost += 1;
        } else if number % 70 == 2 {
            in_b.push_str(&row(number, ROWS));
            changed += 1;
        } else {
            in_b.push_str(&row(number, number));
        }
    }
    in_b.push_str(&row(ROWS, 0));
    let plain = table(folder.path(), "a", &in_a);
    let (a, b) = (Ordered::of(Arc::clone(&plain)), Ordered::of(table(folder.path(), "b", &in_b)));
    let mut wanted = DiffOptions::default();
    for key in [Vec::new(), ColumnPath::parse_list(&KEY.join(",")).unwrap()] {
        wanted.key = key;
        let found = diff([&a, &b], &wanted, &mut |_| {}).unwrap();
        assert_eq!((found.rows.only, found.rows.changed), ([lost, 1], changed));
        assert_eq!(found.rows.total, [u64::from(ROWS) + 1, u64::from(ROWS) + 2 - lost]);
        assert_eq!((found.rows.repeated_keys, found.sorted_by_way_of), ([0, 0], None));
        let names: Vec<&str> = found.values.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["v"]);
        let key = &found.key.expect("they are matched by a key")[0];
        let columns: Vec<&str> = key.children(0).map(|node| &*key.nodes()[node].name).collect();
        assert_eq!(columns, KEY);
        let RowId::Key(shown) = &found.rows.only_shown[0][0] else { panic!("a number") };
        shown.check(key).unwrap();
    }
    // So are some of the columns, in whatever order, if all of the key is among them.
    let some = |names: &str| {
        let names = ColumnPath::parse_list(names).unwrap();
        [&a, &b].map(|table| project(table, &names).unwrap())
    };
    let reversed: Vec<&str> = ["v"].into_iter().chain(KEY.into_iter().rev()).collect();
    let [in_a, in_b] = some(&reversed.join(","));
    let found = diff([&in_a, &in_b], &wanted, &mut |_| {}).unwrap();
    assert_eq!((found.rows.only, found.rows.changed, found.sorted_by_way_of), ([lost, 1], changed, None));
    wanted.key = ColumnPath::parse_list("n").unwrap();
    let [in_a, in_b] = some(&format!("{},v", KEY.join(",").replace(",c,", ",c.street,")));
    assert!(!in_a.table().is_in_token_order);
    let found = diff([&in_a, &in_b], &wanted, &mut |_| {}).unwrap();
    assert_eq!((found.rows.only, found.rows.changed), ([lost, 1], changed));
    assert!(found.sorted_by_way_of.is_some());

    wanted.key = ColumnPath::parse_list(&KEY.join(",")).unwrap();
    let found = missing(&a, &b, &wanted).unwrap();
    let mut read = Reading::new(found, ReadingOptions::default()).unwrap();
    let mut rows = 0;
    while let Some((_, batch)) = read.next_batch().unwrap() {
        rows += batch.rows;
    }
    assert_eq!(u64::try_from(rows).unwrap(), lost + changed);

    // Rows in another order are not taken for such rows.
    let sorted = folder.path().join("sorted.parquet");
    let mut how = CopyOptions::default();
    how.sort = SortBy::resolve(&SortBy::parse_list("n").unwrap(), &plain.table().schema).unwrap();
    let mut to = NewParquetFile::new(&sorted, ParquetOptions::default()).unwrap();
    copy(&plain, &mut to, &how, &mut |_| {}).unwrap();
    let sorted: Arc<dyn Source> = Arc::new(Files::open([&sorted], &FilesOptions::default()).unwrap());
    let error = diff([&a, &Ordered::of(sorted)], &DiffOptions::default(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("not in the order of their tokens"), "{error}");
}
