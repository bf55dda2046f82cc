//! Every CQL type there and back: a table with random values of all of them, by a real server (`MARQUETRY_CASSANDRA=HOST:PORT`), goes to
//! Parquet, and from there into other tables, which the server then says are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use marquetry::scylla::cql::CqlType;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::row::{ColumnIterator, RawColumn};
use scylla::deserialize::value::DeserializeValue;
use scylla::value::{CqlValue, Row};

use crate::common::{Folder, run};

/// Numbers that look random, and are the same in every run.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// Of any magnitude, and either sign.
    fn signed(&mut self) -> i64 {
        let shift = self.below(64);
        self.number().cast_signed() >> shift
    }

    fn one_of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        let count = u64::try_from(texts.len()).unwrap();
        texts[usize::try_from(self.below(count)).unwrap()]
    }

    fn hex(&mut self, bytes: u64) -> String {
        (0..bytes).map(|_| format!("{:02x}", self.below(256))).collect()
    }
}

/// The user-defined types, each before those that use it.
const TYPES: [(&str, &[(&str, &str)]); 2] = [
    ("addr", &[("street", "text"), ("zip", "int"), ("tags", "frozen<set<text>>")]),
    (
        "deep",
        &[
            ("t", "frozen<tuple<int, text, frozen<addr>>>"),
            ("d", "duration"),
            ("m", "frozen<map<text, frozen<set<decimal>>>>"),
            ("n", "decimal"),
        ],
    ),
];

const KEY: [(&str, &str); 6] = [
    ("p", "inet"),
    ("q", "decimal"),
    ("r", "frozen<tuple<int, text>>"),
    ("c1", "varint"),
    ("c2", "frozen<addr>"),
    ("c3", "frozen<set<decimal>>"),
];
/// How many of these are in the partition key.
const PARTITION: usize = 3;

const STATICS: [(&str, &str); 2] = [("st", "frozen<deep>"), ("sl", "list<inet>")];

const COLUMNS: [(&str, &str); 40] = [
    ("a1", "ascii"),
    ("a2", "bigint"),
    ("a3", "blob"),
    ("a4", "boolean"),
    ("a5", "date"),
    ("a6", "decimal"),
    ("a7", "double"),
    ("a8", "duration"),
    ("a9", "float"),
    ("b1", "inet"),
    ("b2", "int"),
    ("b3", "smallint"),
    ("b4", "text"),
    ("b5", "time"),
    ("b6", "timestamp"),
    ("b7", "timeuuid"),
    ("b8", "tinyint"),
    ("b9", "uuid"),
    ("c4", "varint"),
    ("t1", "frozen<tuple<int>>"),
    ("t2", "frozen<tuple<int, text, decimal>>"),
    (
        "t3",
        "frozen<tuple<frozen<tuple<inet, duration>>, frozen<list<frozen<tuple<date, time>>>>, frozen<addr>>>",
    ),
    ("u1", "addr"),
    ("u2", "frozen<addr>"),
    ("u3", "deep"),
    ("u4", "frozen<deep>"),
    ("l1", "list<int>"),
    ("l2", "list<frozen<tuple<int, text>>>"),
    ("l3", "frozen<list<duration>>"),
    ("l4", "list<frozen<map<timeuuid, frozen<list<float>>>>>"),
    ("s1", "set<decimal>"),
    ("s2", "frozen<set<varint>>"),
    ("s3", "set<frozen<tuple<double, inet>>>"),
    ("m1", "map<decimal, duration>"),
    ("m2", "frozen<map<timeuuid, uuid>>"),
    ("m3", "map<frozen<tuple<int, int>>, frozen<deep>>"),
    ("v1", "vector<float, 3>"),
    ("v2", "vector<text, 2>"),
    ("v3", "vector<frozen<tuple<int, text>>, 2>"),
    ("v4", "vector<vector<smallint, 2>, 2>"),
];

/// Makes literals.
struct Literals {
    random: Random,
    types: BTreeMap<String, Vec<(String, CqlType)>>,
}

impl Literals {
    fn new() -> Literals {
        let fields = |fields: &[(&str, &str)]| {
            fields.iter().map(|(name, kind)| ((*name).to_owned(), CqlType::parse(kind).unwrap())).collect()
        };
        let types = TYPES.iter().map(|(name, all)| ((*name).to_owned(), fields(all))).collect();
        Literals { random: Random(2024), types }
    }

    /// A value that is not null. One of a key has all of its parts; others may be shorter, or have nulls inside.
    fn of(&mut self, kind: &CqlType, is_key: bool) -> String {
        let random = &mut self.random;
        let several = |literals: &mut Literals, count: u64, part: &mut dyn FnMut(&mut Literals) -> String| {
            (0..count).map(|_| part(literals)).collect::<Vec<_>>().join(", ")
        };
        match kind {
            CqlType::Frozen(inner) => self.of(inner, is_key),
            CqlType::List(element) => {
                let count = 1 + random.below(3);
                format!("[{}]", several(self, count, &mut |it| it.of(element, is_key)))
            }
            CqlType::Set(element) => {
                let count = 1 + random.below(4);
                let mut elements: Vec<String> = (0..count).map(|_| self.of(element, is_key)).collect();
                // Of decimals that are equal (0 and 0.00) a set has one, and which one Cassandra does not promise: it puts the terms of a
                // literal into a HashSet first, by their identities. So the same literal may be {0} in an INSERT and {0.00} in the WHERE of
                // an UPDATE, which then are one clustering key with two spellings; which of these a row has after it was read from a memtable
                // and an SSTable depends on when that was flushed.
                if is_key {
                    let mut values = BTreeSet::new();
                    elements.retain(|element| values.insert(value_of(element).to_owned()));
                }
                format!("{{{}}}", elements.join(", "))
            }
            CqlType::Map(key, value) => {
                let count = 1 + random.below(3);
                let mut part =
                    |it: &mut Literals| format!("{}: {}", it.of(key, is_key), it.of(value, is_key));
                format!("{{{}}}", several(self, count, &mut part))
            }
            CqlType::Vector(element, count) => {
                format!("[{}]", several(self, count.get().into(), &mut |it| it.of(element, is_key)))
            }
            CqlType::Tuple(members) => {
                let all = u64::try_from(members.len()).unwrap();
                let count = if is_key || random.below(3) > 0 { all } else { 1 + random.below(all) };
                let count = usize::try_from(count).unwrap();
                let parts = members.iter().take(count).map(|member| match self.random.below(4) {
                    0 => "null".to_owned(),
                    _ => self.of(member, is_key),
                });
                format!("({})", parts.collect::<Vec<_>>().join(", "))
            }
            CqlType::Udt { name, .. } => {
                let fields = self.types[name.as_str()].clone();
                let mut parts = Vec::new();
                for (at, (field, kind)) in fields.iter().enumerate() {
                    // Without any value it would be null, if it is not frozen.
                    match if at == 0 { 2 } else { self.random.below(4) } {
                        0 => {}
                        1 => parts.push(format!("{field}: null")),
                        _ => parts.push(format!("{field}: {}", self.of(kind, is_key))),
                    }
                }
                format!("{{{}}}", parts.join(", "))
            }
            native => literal(native, random),
        }
    }
}

/// The usual spelling of a literal that decimals have several of here.
fn value_of(literal: &str) -> &str {
    match literal {
        "0.00" | "-0.0" => "0",
        "12.50" | "12.500" => "12.5",
        "1E2" => "100",
        other => other,
    }
}

fn literal(native: &CqlType, random: &mut Random) -> String {
    let in_bits =
        |random: &mut Random, bits: u32| (random.signed() << (64 - bits) >> (64 - bits)).to_string();
    match native {
        CqlType::Ascii => random.one_of(&["''", "'a'", "'it''s'", "'~ \"x\", {}'"]).to_owned(),
        CqlType::Text => {
            random.one_of(&["''", "'a'", "'it''s'", "'Grüße, 雪'", "'𝄞\t\u{0}\u{7f}'", "'null'"]).to_owned()
        }
        CqlType::Blob => {
            let bytes = [0, 1, 20, 300][usize::try_from(random.below(4)).unwrap()];
            format!("0x{}", random.hex(bytes))
        }
        CqlType::Boolean => random.one_of(&["true", "false"]).to_owned(),
        CqlType::Tinyint => in_bits(random, 8),
        CqlType::Smallint => in_bits(random, 16),
        CqlType::Int => in_bits(random, 32),
        CqlType::Bigint => random.signed().to_string(),
        // Days from the middle of the range, and milliseconds: any that they can be.
        CqlType::Date => match random.below(8) {
            0 => random.one_of(&["0", "4294967295", "'-0044-03-15'", "'1969-12-31'"]).to_owned(),
            _ => ((1_i64 << 31) + (random.signed() >> 40)).to_string(),
        },
        CqlType::Timestamp => random.signed().to_string(),
        CqlType::Time => random.below(86_400_000_000_000).to_string(),
        CqlType::Varint => match random.below(3) {
            0 => random.signed().to_string(),
            _ => format!("{}{:019}{:019}", in_bits(random, 16), random.below(1 << 60), random.below(1 << 60)),
        },
        CqlType::Decimal => match random.below(3) {
            0 => random
                .one_of(&["0", "0.00", "-0.0", "12.5", "12.50", "12.500", "7E-60", "-3E+40", "100", "1E2"])
                .to_owned(),
            1 => random.signed().to_string(),
            _ => format!("{}.{:03}", in_bits(random, 24), random.below(1000)),
        },
        CqlType::Float | CqlType::Double => match random.below(3) {
            0 => {
                random.one_of(&["NaN", "Infinity", "-Infinity", "0.0", "-0.0", "1e-45", "3.4e38"]).to_owned()
            }
            _ => format!("{}.{}", in_bits(random, 20), random.below(1000)),
        },
        CqlType::Duration => {
            let sign = random.one_of(&["", "-"]);
            format!(
                "{sign}{}mo{}d{}ns",
                random.below(30),
                random.below(1 << 20),
                random.number() >> random.below(60).max(1)
            )
        }
        CqlType::Inet => match random.below(3) {
            0 => random.one_of(&["'0.0.0.0'", "'255.255.255.255'", "'::'", "'::1'", "'9.0.0.1'"]).to_owned(),
            1 => format!("'10.{}.{}.7'", random.below(256), random.below(256)),
            _ => format!("'2001:db8::{}:{}'", random.hex(2), random.hex(2)),
        },
        CqlType::Uuid => format!(
            "{}-{}-4{}-8{}-{}",
            random.hex(4),
            random.hex(2),
            &random.hex(2)[1..],
            &random.hex(2)[1..],
            random.hex(6)
        ),
        CqlType::Timeuuid => {
            format!(
                "{}-{}-1{}-8{}-{}",
                random.hex(4),
                random.hex(2),
                &random.hex(2)[1..],
                &random.hex(2)[1..],
                random.hex(6)
            )
        }
        other => panic!("{other} has no literal here"),
    }
}

/// A keyspace of its own, with the types.
struct Keyspace {
    name: &'static str,
    at: String,
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Keyspace {
    /// `None`, put on record, when there is no server.
    fn fresh(name: &'static str) -> Option<Keyspace> {
        let at = marquetry_testing::cassandra()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let builder = SessionBuilder::new().known_node(&at).fetch_full_schema_metadata(false);
        let session = runtime.block_on(builder.build()).expect("the server answers");
        let keyspace = Keyspace { name, at, runtime, session };
        keyspace.run(&format!("DROP KEYSPACE IF EXISTS {name}"));
        keyspace.run(&format!(
            "CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        for (of, fields) in TYPES {
            let fields: Vec<String> = fields.iter().map(|(field, kind)| format!("{field} {kind}")).collect();
            keyspace.run(&format!("CREATE TYPE {name}.{of} ({})", fields.join(", ")));
        }
        Some(keyspace)
    }

    fn run(&self, statement: &str) {
        self.select(statement);
    }

    /// Rows as the server answers.
    fn select(&self, statement: &str) -> Vec<Vec<Option<CqlValue>>> {
        let answer = self.runtime.block_on(self.session.query_unpaged(statement, ())).expect(statement);
        match answer.into_rows_result() {
            Ok(rows) => rows.rows::<Row>().unwrap().map(|row| row.unwrap().columns).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// What is made of the cells of all rows.
    fn cells<T>(&self, statement: &str, of: impl Fn(RawColumn<'_, '_>) -> T) -> Vec<Vec<T>> {
        let answer = self.runtime.block_on(self.session.query_unpaged(statement, ())).expect(statement);
        let answer = answer.into_rows_result().unwrap();
        let rows = answer.rows::<ColumnIterator<'_, '_>>().unwrap();
        rows.map(|row| row.unwrap().map(|cell| of(cell.unwrap())).collect()).collect()
    }

    /// Rows as they are in the protocol.
    fn bytes(&self, statement: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        self.cells(statement, |cell| cell.slice.map(|slice| slice.as_slice().to_vec()))
    }

    /// All rows of a table, in the server's order.
    fn rows(&self, table: &str) -> Vec<String> {
        let mut names: Vec<&str> =
            KEY.iter().chain(&STATICS).chain(&COLUMNS).map(|(name, _)| *name).collect();
        names.sort_unstable();
        let statement = format!("SELECT {} FROM {}.{table}", names.join(", "), self.name);
        let rows = self.cells(&statement, |cell| {
            let value = Option::<CqlValue>::deserialize(cell.spec.typ(), cell.slice);
            // The driver has no vector in which a text is empty.
            let bytes = || format!("{:?}", cell.slice.map(|slice| slice.as_slice()));
            format!("{}: {}", cell.spec.name(), value.map_or_else(|_| bytes(), |value| format!("{value:?}")))
        });
        rows.iter().map(|row| row.join("\n")).collect()
    }

    /// The definition of a table's columns.
    fn columns(&self, table: &str) -> String {
        let columns = self.select(&format!(
            "SELECT column_name, clustering_order, kind, position, type FROM system_schema.columns
             WHERE keyspace_name = '{}' AND table_name = '{table}'",
            self.name
        ));
        format!("{columns:?}")
    }

    fn create(&self, table: &str) {
        let mut text = String::new();
        for (name, kind) in KEY.iter().chain(&COLUMNS) {
            write!(text, "{name} {kind}, ").unwrap();
        }
        for (name, kind) in STATICS {
            write!(text, "{name} {kind} STATIC, ").unwrap();
        }
        self.run(&format!(
            "CREATE TABLE {}.{table} ({text} PRIMARY KEY ((p, q, r), c1, c2, c3)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC, c3 DESC)",
            self.name
        ));
    }

    fn address(&self, table: &str) -> String {
        format!("cql://{}/{}.{table}", self.at, self.name)
    }
}

impl Drop for Keyspace {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!("DROP KEYSPACE {}", self.name));
        }
    }
}

/// The literals of a key.
fn key(literals: &mut Literals) -> Vec<String> {
    KEY.iter().map(|(_, kind)| literals.of(&CqlType::parse(kind).unwrap(), true)).collect()
}

/// Fills the table `t`: small partitions, a wide one, one without rows, and rows that lack one column each: their keys, in the order of the
/// columns. `using` is what is written after an `INSERT`, by the number of the row.
fn fill(keyspace: &Keyspace, literals: &mut Literals, using: &dyn Fn(u64) -> String) -> Vec<Vec<String>> {
    let (mut keys, mut number) = (Vec::new(), 0);
    let mut insert =
        |literals: &mut Literals, key: &[String], has: &mut dyn FnMut(&mut Literals, usize) -> bool| {
            let (mut names, mut values): (Vec<&str>, Vec<String>) =
                KEY.iter().zip(key).map(|((name, _), value)| (*name, value.clone())).unzip();
            for (at, (name, kind)) in COLUMNS.iter().enumerate() {
                if has(literals, at) {
                    names.push(name);
                    values.push(literals.of(&CqlType::parse(kind).unwrap(), false));
                }
            }
            number += 1;
            let (names, values) = (names.join(", "), values.join(", "));
            keyspace.run(&format!(
                "INSERT INTO {}.t ({names}) VALUES ({values}) {}",
                keyspace.name,
                using(number)
            ));
        };
    for partition in 0..60 {
        let mut key = key(literals);
        let rows = if partition == 7 { 250 } else { 1 + literals.random.below(4) };
        for _ in 0..rows {
            for (value, (_, kind)) in key.iter_mut().zip(KEY).skip(PARTITION) {
                *value = literals.of(&CqlType::parse(kind).unwrap(), true);
            }
            insert(literals, &key, &mut |literals, _| literals.random.below(4) > 0);
        }
    }
    for without in 0..COLUMNS.len() {
        keys.push(key(literals));
        insert(literals, &keys[without], &mut |_, column| column != without);
    }
    for key in [key(literals), keys[0].clone()] {
        let statics = STATICS.map(|(_, kind)| literals.of(&CqlType::parse(kind).unwrap(), false));
        let (partition, statics) = (key[..PARTITION].join(", "), statics.join(", "));
        keyspace.run(&format!(
            "INSERT INTO {}.t (p, q, r, st, sl) VALUES ({partition}, {statics}) {}",
            keyspace.name,
            using(0)
        ));
    }
    keys
}

fn condition(key: &[String]) -> String {
    let parts: Vec<String> =
        KEY.iter().zip(key).map(|((name, _), value)| format!("{name} = {value}")).collect();
    parts.join(" AND ")
}

#[test]
fn every_type_goes_there_and_back() {
    let Some(keyspace) = Keyspace::fresh("marquetry_every_type") else { return };
    let folder = Folder::new();
    let mut literals = Literals::new();
    ["t", "u"].iter().for_each(|table| keyspace.create(table));
    let keys = fill(&keyspace, &mut literals, &|_| String::new());
    let expected = keyspace.rows("t");
    assert!(expected.len() > 400);
    // Into a table that is there, and into one that is made of what the file says.
    let [t, u, v] = ["t", "u", "v"].map(|table| keyspace.address(table));
    let [a, b] = ["a.parquet", "b.parquet"].map(|name| folder.path(name));
    run(["copy", &t, &a, "--verify"]).succeeded();
    run(["copy", &a, &u]).succeeded();
    run(["copy", &a, &v, "--create"]).succeeded();
    assert_eq!(keyspace.columns("t"), keyspace.columns("v"));
    for table in ["u", "v"] {
        let found = keyspace.rows(table);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            expect_same(found, expected);
        }
    }
    // Matched by their keys as they come, and in order.
    run(["diff", &t, &u, "--strict"]).succeeded();
    run(["diff", &t, &v, "--strict", "--key", "p,q,r,c1,c2,c3"]).succeeded();
    run(["copy", &u, &b]).succeeded();
    run(["diff", &a, &b, "--strict"]).succeeded();

    // One value of each column is another, and nothing else.
    for ((name, kind), key) in COLUMNS.iter().zip(&keys) {
        let value = literals.of(&CqlType::parse(kind).unwrap(), true);
        keyspace.run(&format!("UPDATE {}.u SET {name} = {value} WHERE {}", keyspace.name, condition(key)));
    }
    let found = run(["diff", &t, &u, "--json"]);
    assert_eq!(found.code, Some(1), "{}", found.err);
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    let differing = found["columns"].as_array().unwrap();
    let mut names: Vec<&str> = differing.iter().map(|column| column["column"].as_str().unwrap()).collect();
    names.sort_unstable();
    let mut all = COLUMNS.map(|(name, _)| name);
    all.sort_unstable();
    assert_eq!(names, all);
    assert!(differing.iter().all(|column| column["different"] == 1), "{found}");
    assert_eq!(found["key"], serde_json::json!(["p", "q", "r", "c1", "c2", "c3"]));
    run(["copy", &u, &b, "--overwrite"]).succeeded();
    run(["diff", &a, &b]).failed(1, &["differ"]);
    // What is missing there is copied, and nothing else: nulls only where they are to be written.
    let lost = condition(&keys[3]);
    keyspace.run(&format!("DELETE FROM {}.u WHERE {lost}", keyspace.name));
    let out = run(["copy", &t, &u, "--missing-only", "--nulls", "tombstone"]).succeeded();
    assert!(out.starts_with(&format!("{} rows loaded", COLUMNS.len())), "{out}");
    assert_eq!(keyspace.rows("u"), expected);
    run(["diff", &t, &u, "--strict"]).succeeded();
}

/// The same with the times at which all was written, and how long it lives.
#[test]
fn every_type_goes_with_its_times() {
    let Some(keyspace) = Keyspace::fresh("marquetry_every_time") else { return };
    let folder = Folder::new();
    let mut literals = Literals::new();
    keyspace.create("t");
    let keys = fill(&keyspace, &mut literals, &|number| {
        let ttl =
            if number % 3 == 1 { format!(" AND TTL {}", 100_000 + 1_000 * number) } else { String::new() };
        format!("USING TIMESTAMP {}{ttl}", 1_700_000_000_000_000 + number)
    });
    // Some cells are newer than their row, and numbers may have no bytes.
    for ((name, kind), key) in COLUMNS.iter().zip(&keys).step_by(3) {
        let value = literals.of(&CqlType::parse(kind).unwrap(), true);
        keyspace.run(&format!(
            "UPDATE {}.t USING TIMESTAMP 1800000000000000 AND TTL 700000 SET {name} = {value} WHERE {}",
            keyspace.name,
            condition(key)
        ));
    }
    let empty = "a2 = blob_as_bigint(0x), a6 = blob_as_decimal(0x), b2 = blob_as_int(0x), b9 = blob_as_uuid(0x), c4 = blob_as_varint(0x)";
    keyspace.run(&format!(
        "UPDATE {}.t USING TIMESTAMP 1800000000000001 SET {empty} WHERE {}",
        keyspace.name,
        condition(&keys[1])
    ));
    let [t, w, x] = ["t", "w", "x"].map(|table| keyspace.address(table));
    let file = folder.path("full.parquet");
    run(["copy", &t, &file, "--with-metadata"]).succeeded();
    for (source, table) in [(&file, &w), (&t, &x)] {
        // (Lists would have their elements twice after a second load, which a note says.)
        let loaded = run(["copy", source, table, "--create", "--with-metadata"]
            [..if source == &t { 5 } else { 4 }]
            .to_vec());
        assert_eq!(loaded.code, Some(0), "{}", loaded.err);
    }
    let expected = keyspace.rows("t");
    // (Of a collection they are a list.)
    let all = || STATICS.iter().chain(&COLUMNS);
    let of = |table: &str, function: &str| {
        let of: Vec<String> = all().map(|(name, _)| format!("{function}({name})")).collect();
        keyspace.bytes(&format!("SELECT {} FROM {}.{table}", of.join(", "), keyspace.name))
    };
    let (written, lives) = (of("t", "WRITETIME"), of("t", "TTL"));
    for table in ["w", "x"] {
        for (found, expected) in keyspace.rows(table).iter().zip(&expected) {
            expect_same(found, expected);
        }
        assert_eq!(keyspace.rows(table).len(), expected.len());
        for (row, (found, expected)) in of(table, "WRITETIME").iter().zip(&written).enumerate() {
            for ((found, expected), (name, _)) in found.iter().zip(expected).zip(all()) {
                assert_eq!(found, expected, "{table}, row {row}, write time of {name}");
            }
        }
        for (row, (found, expected)) in of(table, "TTL").iter().zip(&lives).enumerate() {
            for ((found, expected), (name, _)) in found.iter().zip(expected).zip(all()) {
                let is_same = is_same_ttl(found.as_deref(), expected.as_deref());
                assert!(is_same, "{table}, row {row}, TTL of {name}: {found:?}, {expected:?}");
            }
        }
    }
}

/// Rows have the same values, each in a line.
#[track_caller]
fn expect_same(found: &str, expected: &str) {
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found, expected);
}

/// TTLs are the same but for the time that has passed: one, or those of a list with their lengths, of which some are null.
fn is_same_ttl(found: Option<&[u8]>, expected: Option<&[u8]>) -> bool {
    let words = |bytes: &[u8]| -> Vec<i32> {
        bytes.chunks_exact(4).map(|word| i32::from_be_bytes(word.try_into().unwrap())).collect()
    };
    match (found, expected) {
        (Some(found), Some(expected)) => {
            let (found, expected) = (words(found), words(expected));
            let is_near = |(found, expected): (&i32, &i32)| {
                found == expected || *expected > 1000 && found.abs_diff(*expected) < 300
            };
            found.len() == expected.len() && found.iter().zip(&expected).all(is_near)
        }
        (found, expected) => found == expected,
    }
}

/// Counters are added to, so that they have a table of their own.
#[test]
fn counters_go_there_and_back() {
    let Some(keyspace) = Keyspace::fresh("marquetry_every_counter") else { return };
    let folder = Folder::new();
    let definition = "(p text, c int, n counter, m counter, PRIMARY KEY (p, c))";
    for table in ["t", "u"] {
        keyspace.run(&format!("CREATE TABLE {}.{table} {definition}", keyspace.name));
    }
    let mut random = Random(7);
    for p in 0..20 {
        for c in 0..p {
            let (n, m) = (random.signed() >> 2, random.signed() >> 2);
            let row = format!("WHERE p = 'p{p}' AND c = {c}");
            keyspace.run(&format!("UPDATE {}.t SET n = n + {n} {row}", keyspace.name));
            if c % 2 == 0 {
                keyspace.run(&format!("UPDATE {}.t SET m = m - {m} {row}", keyspace.name));
            }
        }
    }
    let ([t, u, v], file) = (["t", "u", "v"].map(|table| keyspace.address(table)), folder.path("a.parquet"));
    run(["copy", &t, &file]).succeeded();
    run(["copy", &file, &u, "--counters-at-least-once"]).succeeded();
    run(["copy", &file, &v, "--create", "--counters-at-least-once"]).succeeded();
    let rows =
        |table: &str| format!("{:?}", keyspace.select(&format!("SELECT * FROM {}.{table}", keyspace.name)));
    assert_eq!(rows("t"), rows("u"));
    assert_eq!(rows("t"), rows("v"));
    run(["diff", &t, &u, "--strict"]).succeeded();
    keyspace.run(&format!("UPDATE {}.u SET n = n + 1 WHERE p = 'p3' AND c = 1", keyspace.name));
    run(["diff", &t, &u]).failed(1, &["differ"]);
}
