//! A file of nested columns, every scalar type in them, both loaded and printed as CQL, reads back equal to constants.

use std::sync::Arc;

use marquetry_base::ErrorKind;
use marquetry_cluster::{Cluster, ConnectOptions, CqlOptions, CqlTable, Created, Error};
use marquetry_scylla::bridge::{Existing, InsertWriter, Mapping, MappingOptions};
use marquetry_scylla::cql::{CqlType, KeySpec, Name, TableName};
use marquetry_tables::Source;
use scylla::value::{CqlDate, CqlDecimal, CqlValue};

use crate::expected::{self, ROWS};
use crate::made::{FileSource, load};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    for frozen in [false, true] {
        let suffix = if frozen { "frozen" } else { "thawed" };
        loaded(server, &format!("nested_loaded_{suffix}"), frozen);
        printed(server, &format!("nested_printed_{suffix}"), frozen);
        let [loaded, printed] = ["loaded", "printed"].map(|how| {
            let mut rows = server.select(&format!("SELECT * FROM {KEYSPACE}.nested_{how}_{suffix}"));
            rows.sort_by_key(|row| format!("{:?}", row["id"]));
            // The types are called by the table.
            format!("{rows:?}").replace(how, "")
        });
        // Also the order of sets and maps inside of others, which the server changes in literals only.
        assert_eq!(loaded, printed);
    }
    frozen_keys(server);
    the_tables_own_types(server);
    types_that_differ(server);
    types_that_are_left(server);
}

fn loaded(server: &Server, table: &str, frozen: bool) {
    let source: Arc<dyn Source> = FileSource::open("nested.parquet");
    for created in [Created::New, Created::AlreadyThere] {
        let mut into = CqlTable::new(server.address(table), CqlOptions::create(options(frozen)));
        assert_eq!(load(&mut into, &source).1, Ok(ROWS as u64));
        assert_eq!(into.created(), Some(created));
    }
    assert_rows(server, table, frozen);
}

fn printed(server: &Server, table: &str, frozen: bool) {
    let name = TableName::parse(&format!("{KEYSPACE}.{table}")).unwrap();
    let mapping = map(&name, &options(frozen));
    mapping.types().iter().for_each(|cql_type| server.run(&cql_type.to_string()));
    server.run(&mapping.table().to_string());
    print(server, &mapping);
    assert_rows(server, table, frozen);
}

fn print(server: &Server, mapping: &Mapping) {
    let mut writer = InsertWriter::new(mapping);
    for batch in FileSource::open("nested.parquet").batches(true) {
        let batch = mapping.assemble(batch).unwrap();
        for row in 0..batch.rows() {
            let mut out = Vec::new();
            writer.write(&batch, row..row + 1, batch.first_row(), &mut out, usize::MAX).unwrap();
            server.run(&String::from_utf8(out).unwrap());
        }
    }
}

/// A user-defined type, a list and a map in the primary key.
fn frozen_keys(server: &Server) {
    let options = MappingOptions {
        key: Some(KeySpec::parse("(key, ids), by_row").unwrap()),
        row_number: Some(Name::new("by_row").unwrap()),
        columns: Some(vec!["key".to_owned(), "ids".to_owned()]),
        ..MappingOptions::default()
    };
    let source: Arc<dyn Source> = FileSource::open("nested.parquet");
    let mut table = CqlTable::new(server.address("nested_keys"), CqlOptions::create(options.clone()));
    assert_eq!(load(&mut table, &source).1, Ok(ROWS as u64));
    let name = TableName::parse(&format!("{KEYSPACE}.nested_printed_keys")).unwrap();
    let mapping = map(&name, &options);
    assert!(mapping.table().to_string().contains("    ids frozen<list<bigint>>,\n"), "{}", mapping.table());
    mapping.types().iter().for_each(|cql_type| server.run(&cql_type.to_string()));
    server.run(&mapping.table().to_string());
    print(server, &mapping);
    for table in ["nested_keys", "nested_printed_keys"] {
        let rows = server.select(&format!("SELECT * FROM {KEYSPACE}.{table}"));
        assert_eq!(rows.len(), ROWS);
        for read in rows {
            let Some(CqlValue::BigInt(row)) = read["by_row"] else { panic!("{:?}", read["by_row"]) };
            let row = i32::try_from(row).unwrap();
            assert!(expected::same(&read["key"], &Some(key(row))), "{row}: {:?}", read["key"]);
            assert!(expected::same(&read["ids"], &Some(ids(row))), "{row}: {:?}", read["ids"]);
        }
    }
    let found = server.select(&format!(
        "SELECT by_row FROM {KEYSPACE}.nested_keys WHERE key = {{part: 'k3', ids: [3, -3], \"by\": {{'x': 3}}}} AND ids = [3, 4]"
    ));
    assert_eq!(found.len(), 1);
}

/// Fields in another order, one more of them, a set for a list and a list for one, other names of types.
fn the_tables_own_types(server: &Server) {
    server.run("CREATE TYPE cluster_test.day (\"select\" frozen<map<text, frozen<list<bigint>>>>, \"Flight Date\" date)");
    server.run("CREATE TYPE cluster_test.\"N\" (more int, n int)");
    server.run(
        "CREATE TYPE cluster_test.\"Stop Of\" (groups frozen<set<frozen<\"N\">>>, inner frozen<day>, height double, \
         bytes blob, name text)",
    );
    server.run(
        "CREATE TABLE cluster_test.own (id int PRIMARY KEY, place \"Stop Of\", stops frozen<list<frozen<\"Stop Of\">>>, \
         ids set<bigint>, sets list<frozen<set<text>>>)",
    );
    let address = server.address("own");
    let columns = ["id", "place", "stops", "ids", "sets"].map(str::to_owned);
    let source: Arc<dyn Source> = FileSource::open("nested.parquet");
    let load_own = || {
        let mut options = CqlOptions::default();
        options.mapping.columns = Some(columns.to_vec());
        load(&mut CqlTable::new(address.clone(), options), &source)
    };
    assert_eq!(load_own().1, Ok(ROWS as u64));
    let of = |row: i32| {
        let mut rows =
            server.select(&format!("SELECT place, stops, ids, sets FROM {KEYSPACE}.own WHERE id = {row}"));
        rows.remove(0)
    };
    let n = |n| udt([("more", None), ("n", n)]);
    let stop = |stop: Stop| {
        let Stop { name, bytes, day, groups } = stop;
        let day = day.map(|(day, counts)| udt([("select", counts), ("Flight Date", day)]));
        let groups = groups.map(|groups| CqlValue::Set(groups.into_iter().map(n).collect()));
        udt([("groups", groups), ("inner", day), ("height", None), ("bytes", bytes), ("name", name)])
    };
    let read = of(0);
    assert!(expected::same(&read["place"], &Some(stop(stops()[0].clone()))), "{:?}", read["place"]);
    let all = CqlValue::List(stops()[..3].iter().cloned().map(stop).collect());
    assert!(expected::same(&read["stops"], &Some(all)), "{:?}", read["stops"]);
    let sets = [&["a", "b"][..], &[], &["a", "b"], &["c"]].map(texts).map(CqlValue::Set).to_vec();
    assert!(expected::same(&read["sets"], &Some(CqlValue::List(sets))), "{:?}", read["sets"]);
    let read = of(3);
    assert!(expected::same(&read["place"], &Some(stop(stops()[3].clone()))), "{:?}", read["place"]);
    let ids = CqlValue::Set([3, 4].map(CqlValue::BigInt).to_vec());
    assert!(expected::same(&read["ids"], &Some(ids)), "{:?}", read["ids"]);

    // As statements, to the same values.
    let before = [of(0), of(3)];
    server.run("TRUNCATE cluster_test.own");
    let cluster = Cluster::connect(address.clone(), &ConnectOptions::default()).unwrap();
    let table = cluster.table().unwrap().unwrap().columns;
    let table = table.into_iter().map(|column| (column.name, column.cql_type)).collect();
    let existing = Existing { columns: table, types: cluster.types().unwrap(), ..Existing::default() };
    let options = MappingOptions {
        columns: Some(columns.to_vec()),
        existing: Some(existing),
        sets: Vec::new(),
        ..options(false)
    };
    print(server, &map(address.table(), &options));
    assert_eq!([of(0), of(3)], before);

    // The type is changed: rows that fitted it before do not.
    server.run("ALTER TYPE cluster_test.\"N\" RENAME n TO m");
    let (loaded, ended) = load_own();
    let error = ended.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        (
            "the rows do not fit the table cluster_test.own: the type \"N\" of the table has no field n \
             (column place.groups.element); the type \"N\" of the table has no field n \
             (column stops.element.groups.element) (nested.parquet)",
            ErrorKind::Conversion
        )
    );
    assert_eq!(loaded.rows, 0);
}

/// Nothing is made when a type is there and is another.
fn types_that_differ(server: &Server) {
    let place = MappingOptions {
        columns: Some(vec!["id".to_owned(), "place".to_owned(), "by_group".to_owned()]),
        ..options(false)
    };
    let place = MappingOptions { sets: Vec::new(), ..place };
    let address = server.address("differ");
    let mapping = map(address.table(), &place);
    let cluster = Cluster::connect(address, &ConnectOptions::default()).unwrap();
    for (fields, difference) in [
        ("a int", "missing field b"),
        ("a int, b frozen<list<text>>, c int", "extra field c"),
        ("a bigint, b frozen<list<text>>", "a is bigint, expected int"),
        ("b frozen<list<text>>, a int", "its fields are ordered b, a, expected a, b"),
        ("a text, c int", "a is text, expected int; missing field b; extra field c"),
    ] {
        server.run(&format!("CREATE TYPE cluster_test.differ_by_group_key ({fields})"));
        let error = cluster.create_table(mapping.table(), mapping.types()).unwrap_err();
        let message = format!(
            "the type differ_by_group_key exists with a different definition: {difference}; \
             drop it first, or choose another name for the table"
        );
        assert_eq!(error.to_string(), message);
        server.run("DROP TYPE cluster_test.differ_by_group_key");
    }
    assert_eq!(cluster.table().unwrap(), None);
    assert!(cluster.types().unwrap().iter().all(|it| !it.name.as_str().starts_with("differ_")));
    // One that is there as it should be is no trouble.
    server.run(&mapping.types()[0].to_string());
    assert_eq!(cluster.create_table(mapping.table(), mapping.types()).unwrap(), Created::New);
}

/// A table that cannot be made, after its types were.
fn types_that_are_left(server: &Server) {
    let address = server.address("left");
    let columns = Some(vec!["id".to_owned(), "key".to_owned()]);
    let mapping = map(address.table(), &MappingOptions { columns, sets: Vec::new(), ..options(false) });
    let cluster = Cluster::connect(address, &ConnectOptions::default()).unwrap();
    let mut table = mapping.table().clone();
    table.columns[1].cql_type = CqlType::parse("list<frozen<nowhere>>").unwrap();
    let error = cluster.create_table(&table, mapping.types()).unwrap_err();
    let Error::TypesLeft { types, reason } = &error else { panic!("{error}") };
    assert_eq!(types.iter().map(ToString::to_string).collect::<Vec<_>>(), ["left_key"]);
    assert!(matches!(**reason, Error::Statement { purpose: "create the table", .. }), "{reason}");
    assert!(error.to_string().ends_with("; types created before it remain: left_key"), "{error}");
    // Now with a table that can be.
    assert_eq!(cluster.create_table(mapping.table(), mapping.types()).unwrap(), Created::New);
}

fn options(frozen: bool) -> MappingOptions {
    MappingOptions {
        key: Some(KeySpec::parse("id").unwrap()),
        // By the paths of the table, and by those of the file.
        sets: ["sets", "SETS.element", "prices.list.item"]
            .map(str::to_owned)
            .into_iter()
            .chain(sorted().map(|column| format!("sorted.of_{}", column.name)))
            .collect(),
        frozen,
        ..MappingOptions::default()
    }
}

fn map(table: &TableName, options: &MappingOptions) -> Mapping {
    Mapping::new(&FileSource::open("nested.parquet").table().schema, table.clone(), options).unwrap()
}

fn assert_rows(server: &Server, table: &str, frozen: bool) {
    let rows = server.select(&format!("SELECT * FROM {KEYSPACE}.{table}"));
    assert_eq!(rows.len(), ROWS);
    for read in rows {
        let Some(CqlValue::Int(id)) = read["id"] else { panic!("{:?}", read["id"]) };
        let mut expected = scalars(id);
        expected.extend(shapes(id));
        expected.push(("id".to_owned(), Some(CqlValue::Int(id))));
        assert_eq!(read.len(), expected.len());
        for (name, mut value) in expected {
            if !frozen && value.as_ref().is_some_and(is_nothing) {
                value = None;
            }
            let read = &read[&name];
            assert!(expected::same(read, &value), "{table}.{name} of row {id}: {read:?}, not {value:?}");
        }
    }
}

/// What is not frozen is null when there is nothing in it.
fn is_nothing(value: &CqlValue) -> bool {
    match value {
        CqlValue::List(items) | CqlValue::Set(items) => items.is_empty(),
        CqlValue::Map(entries) => entries.is_empty(),
        CqlValue::UserDefinedType { fields, .. } => fields.iter().all(|(_, value)| value.is_none()),
        _ => false,
    }
}

type Columns = Vec<(String, Option<CqlValue>)>;

/// A group of all scalars; a list of each, some maps to and of them: all values in row 0, none in row 1, null in the others.
fn scalars(row: i32) -> Columns {
    let columns = expected::columns();
    let at = usize::try_from(row).unwrap();
    let fields = columns.iter().map(|column| (column.name, column.values[at].clone()));
    let mut expected = vec![("everything".to_owned(), Some(udt(fields)))];
    // Booleans are there twice.
    let set = |column: &expected::Column| {
        let values = column.values.iter().flatten().take(if column.name == "Boolean" { 2 } else { ROWS });
        if row < 2 { values.cloned().collect() } else { Vec::new() }
    };
    let sets: Columns =
        sorted().map(|column| (format!("of_{}", column.name), Some(CqlValue::Set(set(&column))))).collect();
    let sets = sets.iter().map(|(name, value)| (name.as_str(), value.clone()));
    expected.push(("sorted".to_owned(), Some(udt(sets))));
    for column in &columns {
        let values: Vec<CqlValue> = match row {
            0 => column.values.iter().flatten().cloned().collect(),
            _ => Vec::new(),
        };
        let numbered = || (0..).map(CqlValue::Int).zip(values.clone());
        let mut add = |kind: &str, value| {
            expected.push((format!("{kind}_{}", column.name), Some(value).filter(|_| row < 2)));
        };
        add("list", CqlValue::List(values.clone()));
        if !NOT_IN_MAPS.contains(&column.name) {
            add("map", CqlValue::Map(numbered().collect()));
        }
        if IN_KEYS.contains(&column.name) {
            add("keys", CqlValue::Map(numbered().map(|(number, value)| (value, number)).collect()));
        }
    }
    expected
}

/// All but those that have no order, or no values.
fn sorted() -> impl Iterator<Item = expected::Column> {
    expected::columns().into_iter().filter(|column| !["interval", "unknown"].contains(&column.name))
}

/// As in the file.
const NOT_IN_MAPS: [&str; 6] = ["decimal_bytes", "enum", "bson", "int96", "interval", "unknown"];
const IN_KEYS: [&str; 9] = [
    "uint64",
    "double",
    "minus zero",
    "decimal_76_76",
    "string",
    "uuid",
    "binary",
    "date",
    "timestamp_ms_utc",
];

fn shapes(row: i32) -> Columns {
    let text = |text: &str| CqlValue::Text(text.to_owned());
    let list = |row_is: &[i32], value: CqlValue| Some(value).filter(|_| row_is.contains(&row));
    let none = || CqlValue::List(Vec::new());
    let stop = |stop: Stop| {
        let Stop { name, bytes, day, groups } = stop;
        let day = day.map(|(day, counts)| udt([("Flight Date", day), ("select", counts)]));
        let groups =
            groups.map(|groups| CqlValue::List(groups.into_iter().map(|n| udt([("n", n)])).collect()));
        udt([("name", name), ("bytes", bytes), ("inner", day), ("groups", groups)])
    };
    let all: Vec<CqlValue> = stops().iter().cloned().map(stop).collect();
    let (stops, place) = match row {
        0 => (Some(all[..3].to_vec()), Some(all[0].clone())),
        1 => (Some(Vec::new()), None),
        3 => (Some(all[3..].to_vec()), Some(all[3].clone())),
        _ => (None, None),
    };
    let group = |a: Option<i32>, b: Option<&[&str]>| {
        udt([("a", a.map(CqlValue::Int)), ("b", b.map(|b| CqlValue::List(texts(b))))])
    };
    let by_group = [
        (group(Some(1), Some(&["x", "y"])), "1"),
        (group(Some(1), Some(&[])), "2"),
        (group(None, None), "3"),
    ];
    let by_group = by_group.map(|(key, value)| (key, text(value))).to_vec();
    let set = |items: &[&str]| CqlValue::Set(texts(items));
    let shorts = |numbers: &[i16]| CqlValue::List(numbers.iter().copied().map(CqlValue::SmallInt).collect());
    let lists = |items: Vec<CqlValue>| CqlValue::List(items);
    let deep = lists(vec![lists(vec![lists(vec![shorts(&[1, 2]), none()]), none()]), none()]);
    let one = lists(vec![lists(vec![lists(vec![shorts(&[-1])])])]);
    let price = |unscaled: &[u8]| {
        CqlValue::Decimal(CqlDecimal::from_signed_be_bytes_and_exponent(unscaled.to_vec(), 2))
    };
    let prices = |prices: &[&[u8]]| CqlValue::Set(prices.iter().map(|it| price(it)).collect());
    let columns = [
        ("stops", stops.map(CqlValue::List)),
        ("place", place),
        ("by_group", list(&[0], CqlValue::Map(by_group)).or(list(&[1], CqlValue::Map(Vec::new())))),
        (
            "sets",
            list(&[0], CqlValue::Set(vec![set(&["a", "b"]), set(&[]), set(&["c"])]))
                .or(list(&[1], CqlValue::Set(Vec::new())))
                .or(list(&[3], CqlValue::Set(vec![set(&[])]))),
        ),
        ("deep", list(&[0], deep).or(list(&[1], none())).or(list(&[3], one))),
        (
            "prices",
            list(&[0], lists(vec![prices(&[&[110], &[0xfb]]), prices(&[&[0xfb]])]))
                .or(list(&[2], none()))
                .or(list(&[3], lists(vec![prices(&[])]))),
        ),
        ("key", Some(key(row))),
        ("ids", Some(ids(row))),
    ];
    columns.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// A stop, its parts in no order.
#[derive(Clone)]
struct Stop {
    name: Option<CqlValue>,
    bytes: Option<CqlValue>,
    /// The date, and what is selected.
    day: Option<(Option<CqlValue>, Option<CqlValue>)>,
    groups: Option<Vec<Option<CqlValue>>>,
}

/// Those of row 0, and the one of row 3.
fn stops() -> Vec<Stop> {
    let odd = "it's \"quoted\"\n{}[]:, Grüße 🚀";
    let text = |text: &str| Some(CqlValue::Text(text.to_owned()));
    let date = |days: i32| Some(CqlValue::Date(CqlDate((1 << 31_u32) + days.cast_unsigned())));
    let numbers = |numbers: &[i64]| CqlValue::List(numbers.iter().copied().map(CqlValue::BigInt).collect());
    let map = |entries: &[(&str, &[i64])]| {
        let entry = |(key, value): &(&str, &[i64])| (CqlValue::Text((*key).to_owned()), numbers(value));
        Some(CqlValue::Map(entries.iter().map(entry).collect()))
    };
    vec![
        Stop {
            name: text(odd),
            bytes: Some(CqlValue::Blob(b"\0'\xff".to_vec())),
            day: Some((date(20412), map(&[(odd, &[1, -2]), ("", &[])]))),
            groups: Some(vec![Some(CqlValue::Int(1)), None]),
        },
        Stop {
            name: text(""),
            bytes: Some(CqlValue::Blob(Vec::new())),
            day: Some((None, map(&[]))),
            groups: Some(Vec::new()),
        },
        Stop { name: None, bytes: None, day: None, groups: None },
        Stop {
            name: text("x"),
            bytes: None,
            day: Some((Some(CqlValue::Date(CqlDate((1 << 31) - 1))), None)),
            groups: Some(vec![Some(CqlValue::Int(2))]),
        },
    ]
}

fn key(row: i32) -> CqlValue {
    let by = if row == 0 { Vec::new() } else { vec![(CqlValue::Text("x".to_owned()), CqlValue::Int(row))] };
    let ids = [row, -row].map(|id| CqlValue::BigInt(id.into())).to_vec();
    udt([
        ("part", Some(CqlValue::Text(format!("k{row}")))),
        ("ids", Some(CqlValue::List(ids))),
        ("by", Some(CqlValue::Map(by))),
    ])
}

fn ids(row: i32) -> CqlValue {
    let ids =
        if row == 0 { Vec::new() } else { [row, row + 1].map(|id| CqlValue::BigInt(id.into())).to_vec() };
    CqlValue::List(ids)
}

fn texts(texts: &[&str]) -> Vec<CqlValue> {
    texts.iter().map(|text| CqlValue::Text((*text).to_owned())).collect()
}

/// A user-defined type's value; its name is not compared.
fn udt<'a>(fields: impl IntoIterator<Item = (&'a str, Option<CqlValue>)>) -> CqlValue {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    CqlValue::UserDefinedType { keyspace: KEYSPACE.to_owned(), name: String::new(), fields }
}
