//! What is written is imported by a real Cassandra, which answers as it did before, verifies the files, and compacts them.

use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::compression_info::Compressor;
use marquetry_scylla::sstable::merge::MergeOptions;
use marquetry_scylla::sstable::write::WriteOptions;

use crate::PLAIN;
use crate::cql::{Connection, Values};
use crate::fixtures::{Table, open};
use crate::merged;
use crate::random::Random;
use crate::real::{Server, UNCOMPACTED, counted, statement};
use crate::writing::{all_options, options, write};

/// Everything that a table may have; clustering columns of many types, some of them descending.
const MIXED: &str = "(pk int, ck1 int, ck2 text, s int static, sm map<text, int> static, a int, b text, l list<int>, m map<text, int>, \
     n set<int>, u ut, f frozen<list<int>>, t tuple<int, text>, PRIMARY KEY (pk, ck1, ck2)) WITH CLUSTERING ORDER BY (ck1 DESC, ck2 ASC)";
const COUNTER: &str =
    "(pk int, ck int, a counter, b counter, PRIMARY KEY (pk, ck)) WITH CLUSTERING ORDER BY (ck ASC)";
/// Partitions with an index of their own, by values of every type that can be in a key.
const TYPES: [(&str, &str); 18] = [
    ("bigint", "{n}"),
    ("text", "'text {n}'"),
    ("blob", "0x00{h}00"),
    ("boolean", "true"),
    ("date", "'2024-01-{d}'"),
    ("decimal", "{n}.{n}e{d}"),
    ("double", "-{n}.5"),
    ("float", "{n}.25"),
    ("inet", "'10.0.0.{d}'"),
    ("smallint", "-{d}"),
    ("time", "'08:12:{d}.123'"),
    ("timestamp", "{n}000"),
    ("timeuuid", "2a92d7{d}-d8dc-11e6-a2de-cf8ecd4cf053"),
    ("uuid", "cc5208{d}-9507-44fb-8fc9-b349ecdee658"),
    ("varint", "-{n}00000000000{n}"),
    ("frozen<list<int>>", "[{n}, -{n}]"),
    ("frozen<tuple<int, text>>", "({n}, '{n}')"),
    ("frozen<ut>", "{x: {n}}"),
];

/// All writes of a table, of all its SSTables.
fn writes(server: &Server, name: &str) -> (Table, Vec<MutationBatch>) {
    let table = open(&server.files(name));
    let batches =
        merged(&table.columns, table.inputs.clone(), &MergeOptions::default(), PLAIN).expect("sorted");
    (table, batches)
}

fn create(cql: &mut Connection, name: &str, definition: &str) {
    cql.run(&format!("CREATE TABLE imp.{name} {definition} AND {UNCOMPACTED}"));
}

fn select(cql: &mut Connection, name: &str, columns: &str) -> Vec<Values> {
    cql.run(&format!("SELECT {columns} FROM imp.{name}"))
}

/// Writes a table in a version, imports it as another one, and compares what both answer.
fn check(
    (server, cql): (&Server, &mut Connection),
    (from, to, definition, columns): (&str, &str, &str, &str),
    batches: &(Table, Vec<MutationBatch>),
    options: &WriteOptions,
) {
    let directory = server.directory.join("imported").join(to);
    let written = write(&batches.0.columns, options, &batches.1, 150_000)
        .unwrap_or_else(|error| panic!("{to}: {error}"));
    written.create(&directory);
    std::fs::write(directory.join("schema.cql"), "").unwrap();
    create(cql, to, definition);
    let path = directory.to_string_lossy().into_owned();
    server.nodetool(&["import", "--copy-data", "--extended-verify", "imp", to, &path]);
    let (expected, found) = (select(cql, from, columns), select(cql, to, columns));
    assert!(
        found == expected && !found.is_empty(),
        "{to}: {} rows, {} expected",
        found.len(),
        expected.len()
    );
    println!("{to}: {} rows", found.len());
}

#[test]
#[ignore = "soak: a Cassandra that imports often"]
fn what_is_written_is_imported() {
    let Some(server) = Server::start("imported-cassandra") else { return };
    import_all(&server, &["me", "nb", "oa", "da"]);
}

#[test]
#[ignore = "soak: a Cassandra 4.1 that imports often"]
fn what_is_written_is_imported_by_cassandra_4() {
    let Some(server) = Server::start_version("imported-cassandra-4", Some("4.1.10")) else { return };
    import_all(&server, &["me", "nb"]);
}

/// Imports tables of all these versions, with each compressor.
fn import_all(server: &Server, versions: &[&str]) {
    let mut cql = server.connect();
    cql.run("CREATE KEYSPACE imp WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TYPE imp.ut (x int, y text)");
    create(&mut cql, "mixed", MIXED);
    create(&mut cql, "counted", COUNTER);
    let mut random = Random::new(7);
    for _ in 0..2 {
        for _ in 0..400 {
            cql.run(&statement(&mut random, "imp.mixed").replace("TTL 1 ", "TTL 90000 "));
            cql.run(&counted(&mut random, "imp.counted"));
        }
        server.nodetool(&["flush", "imp"]);
    }
    let mixed = writes(server, "mixed");
    let times = "pk, ck1, ck2, a, b, l, m, n, u, f, t, s, sm, writetime(a), writetime(b), writetime(f), writetime(t), writetime(s)";
    let all = all_options();
    let of_these = |options: &&WriteOptions| versions.contains(&options.version.name());
    for (number, options) in all.iter().filter(of_these).enumerate() {
        let to = format!("mixed{number}");
        check((server, &mut cql), ("mixed", &to, MIXED, times), &mixed, options);
    }
    let counts = writes(server, "counted");
    for version in versions {
        let of = ("counted", &*format!("counted_{version}"), COUNTER, "*");
        check((server, &mut cql), of, &counts, &options(version, Some(Compressor::Lz4)));
    }
    // All versions in one table, and a compaction of them.
    create(&mut cql, "all", MIXED);
    for version in versions {
        let written =
            write(&mixed.0.columns, &options(version, Some(Compressor::Zstd)), &mixed.1, 150_000).unwrap();
        let directory = server.directory.join("imported").join(version);
        written.create(&directory);
        // What is beside them is no hindrance.
        std::fs::write(directory.join("manifest.json"), "{\"manifest\": {}, \"sstables\": []}").unwrap();
        server.nodetool(&["import", "--copy-data", "imp", "all", &directory.to_string_lossy()]);
    }
    assert!(select(&mut cql, "all", times) == select(&mut cql, "mixed", times));
    server.nodetool(&["compact", "imp", "all"]);
    server.nodetool(&["verify", "-e", "-f", "imp", "all"]);
    assert_eq!(server.files("all").len(), 1);
    assert!(select(&mut cql, "all", times) == select(&mut cql, "mixed", times));
}

/// Large partitions by clustering columns of every type: rows are found by slices, which the indexes of rows are for.
#[test]
#[ignore = "soak: a Cassandra that imports often"]
fn rows_of_large_partitions_are_found() {
    let Some(server) = Server::start("large-cassandra") else { return };
    let mut cql = server.connect();
    cql.run("CREATE KEYSPACE imp WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TYPE imp.ut (x int, y text)");
    let fill = "v".repeat(3000);
    for (number, (kind, value)) in TYPES.iter().enumerate() {
        let order = if number % 2 == 0 { "DESC" } else { "ASC" };
        let definition = format!(
            "(pk int, c {kind}, i int, v text, PRIMARY KEY (pk, c, i)) WITH CLUSTERING ORDER BY (c {order}, i ASC)"
        );
        let name = format!("w{number}");
        create(&mut cql, &name, &definition);
        let value = |n: u32| {
            let day = format!("{}", 10 + n % 18);
            value.replace("{n}", &n.to_string()).replace("{h}", &format!("{n:04x}")).replace("{d}", &day)
        };
        for row in 0..240 {
            let c = value(row / 4);
            cql.run(&format!("INSERT INTO imp.{name} (pk, c, i, v) VALUES (1, {c}, {row}, '{fill}')"));
            if row % 40 == 3 {
                cql.run(&format!("DELETE FROM imp.{name} WHERE pk = 1 AND c = {c} AND i > 1000"));
            }
        }
        server.nodetool(&["flush", "imp", &name]);
        let table = writes(&server, &name);
        for version in ["nb", "oa", "da"] {
            let to = format!("w{number}_{version}");
            let of = (&*name, &*to, &*definition, "*");
            check((&server, &mut cql), of, &table, &options(version, Some(Compressor::Lz4)));
            for row in [0, 5, 60, 100, 237] {
                let c = value(row / 4);
                for clause in [
                    format!("pk = 1 AND c = {c}"),
                    format!("pk = 1 AND c > {c}"),
                    format!("pk = 1 AND c <= {c}"),
                    format!("pk = 1 AND c = {c} AND i >= {row}"),
                ] {
                    // The order of the table, and its reverse.
                    let reverse =
                        if order == "DESC" { "ORDER BY c ASC, i DESC" } else { "ORDER BY c DESC, i DESC" };
                    for end in ["", reverse] {
                        let mut of =
                            |name: &str| cql.run(&format!("SELECT i FROM imp.{name} WHERE {clause} {end}"));
                        assert!(of(&to) == of(&name), "{to}: {clause} {end}");
                    }
                }
            }
        }
    }
}
