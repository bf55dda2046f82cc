//! Tables of a real server as sources of commands; `MARQUETRY_CASSANDRA=HOST:PORT` names it.

mod common;

use common::{Folder, data, run};
use marquetry_testing::{cassandra, cassandra_directory};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

/// A keyspace of its own, for the addresses of its tables.
struct Keyspace {
    name: &'static str,
    at: String,
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Keyspace {
    /// `None`, said aloud, when there is no server.
    fn fresh(name: &'static str) -> Option<Keyspace> {
        let at = cassandra()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let session =
            runtime.block_on(SessionBuilder::new().known_node(&at).build()).expect("the server answers");
        let keyspace = Keyspace { name, at, runtime, session };
        keyspace.run(&format!("DROP KEYSPACE IF EXISTS {name}"));
        keyspace.run(&format!(
            "CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        Some(keyspace)
    }

    fn run(&self, statement: &str) {
        self.runtime.block_on(self.session.query_unpaged(statement, ())).expect(statement);
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

#[test]
fn a_live_table_is_a_table() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_unload") else { return };
    let folder = Folder::new();
    keyspace.run(
        "CREATE TABLE marquetry_cli_unload.t (p int, c text, v double, m map<text, int>, PRIMARY KEY (p, c))",
    );
    keyspace.run(
        "CREATE TABLE marquetry_cli_unload.u (p int, c text, v double, m map<text, int>, PRIMARY KEY (p, c))",
    );
    for p in 0..30 {
        keyspace.run(&format!(
            "INSERT INTO marquetry_cli_unload.t (p, c, v, m) VALUES ({p}, 'c', {p}.5, {{'k': {p}}})"
        ));
    }
    let (from, to) = (keyspace.address("t"), keyspace.address("u"));
    let file = folder.path("t.parquet");
    let out = run(["copy", &from, &file, "--verify"]).succeeded();
    assert!(out.starts_with("30 rows written to "), "{out}");
    run(["diff", &from, &file, "--strict"]).succeeded();
    assert_eq!(run(["count", &from]).succeeded(), "30\n");
    assert_eq!(run(["count", &from, "--where", "v > 20"]).succeeded(), "10\n");
    let row = r#"{"c":"c","v":7.5}"#;
    let found = run(["find", &from, "p = 7", "--columns", "c,v", "--format", "jsonl"]).succeeded();
    assert_eq!(found, format!("{row}\n"));
    let rows = run(["rows", &from, "--where", "p = 7 AND c = 'c'", "--columns", "c,v", "--format", "jsonl"]);
    assert_eq!(rows.succeeded(), format!("{row}\n"));
    let halves = [":0", "0:"].map(|tokens| {
        let count = run(["count", &from, "--token-range", tokens]).succeeded();
        count.trim().parse::<u64>().unwrap()
    });
    assert_eq!(halves[0] + halves[1], 30);
    let cql = run(["cql", &from, "--table", "k.t", "--key", "p, c", "--where", "p = 7"]).succeeded();
    assert!(cql.contains("CREATE TABLE k.t") && cql.contains("(7, 'c', 7.5, {'k': 7})"), "{cql}");
    // From one table to another, and through a file with metadata.
    assert!(run(["copy", &from, &to]).succeeded().starts_with("30 rows loaded into cql://"));
    run(["diff", &from, &to, "--key", "p,c"]).succeeded();
    let full = folder.path("full/");
    run(["copy", &from, &full, "--with-metadata"]).succeeded();
    let schema = std::fs::read_to_string(format!("{full}schema.cql")).unwrap();
    assert!(
        schema.starts_with("CREATE TABLE marquetry_cli_unload.t (") && schema.contains("gc_grace_seconds = ")
    );
    run(["copy", &from, &full, "--with-metadata", "--overwrite", "--verify"]).succeeded();
    let first = run([
        "rows",
        &full,
        "--columns",
        "mutation.kind,mutation.row_marker",
        "-n",
        "1",
        "--format",
        "jsonl",
    ]);
    assert_eq!(first.succeeded(), "{\"mutation\":{\"kind\":\"row\",\"row_marker\":true}}\n");
}

/// What a server answers with, and what it keeps in its files.
#[test]
fn a_live_table_is_as_its_sstables() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_both") else { return };
    let Some(directory) = cassandra_directory() else { return };
    let script = marquetry_testing::root().join("dev/cassandra.sh");
    keyspace.run("CREATE TYPE marquetry_cli_both.pt (x int, y frozen<list<text>>)");
    keyspace.run(
        "CREATE TABLE marquetry_cli_both.t (p int, q text, c timestamp, s text static, ls set<int> static, i int, de decimal, va varint, ine inet,
         du duration, ve vector<float, 2>, tup tuple<int, text>, li list<int>, se set<text>, ma map<text, int>, ud pt, fud frozen<pt>,
         PRIMARY KEY ((p, q), c)) WITH CLUSTERING ORDER BY (c DESC)",
    );
    let run = |statement: String| keyspace.run(&statement.replace("t (", "marquetry_cli_both.t ("));
    for p in 0..40 {
        for c in 0..p % 4 {
            run(format!(
                "INSERT INTO t (p, q, c, i, de, va, ine, du, ve, tup, li, se, ma, ud, fud) VALUES ({p}, 'q{p}', {c}000, {p}, {p}.5, {p}00000000000,
                 '10.0.0.{p}', {p}mo, [{p}, 1], ({p}, 'x'), [{p}, {c}], {{'s{p}', 'a'}}, {{'k': {p}}}, {{x: {p}}}, {{x: {p}, y: ['z']}})"
            ));
        }
        if p % 3 == 0 {
            run(format!("INSERT INTO t (p, q, s, ls) VALUES ({p}, 'q{p}', 'static{p}', {{1, {p}}})"));
        }
    }
    run("INSERT INTO t (p, q, c) VALUES (100, '', 5)".to_owned());
    run("INSERT INTO t (p, q, c, i) VALUES (101, 'ttl', 5, 7) USING TTL 90000 AND TIMESTAMP 5".to_owned());
    keyspace.run("DELETE li FROM marquetry_cli_both.t WHERE p = 3 AND q = 'q3' AND c = 1000");
    keyspace.run("DELETE FROM marquetry_cli_both.t WHERE p = 7 AND q = 'q7'");
    let flush = std::process::Command::new(script)
        .arg("nodetool")
        .arg(&directory)
        .args(["flush", "marquetry_cli_both"])
        .status();
    assert!(flush.unwrap().success());
    let files = std::fs::read_dir(directory.join("data/data/marquetry_cli_both")).unwrap();
    let files = files.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let sstables = format!("sstable:{}", files.display());
    let folder = Folder::new();
    let (a, b) = (folder.path("a/"), folder.path("b.parquet"));
    let from = keyspace.address("t");
    run_marquetry(&["copy", &from, &a]);
    let definition = format!("{a}schema.cql");
    run_marquetry(&["copy", &sstables, &b, "--mapping", "logical", "--schema-file", &definition]);
    run_marquetry(&["diff", &a, &b, "--strict"]);
    // All that both tell: when what was written. (Of a row without values no server says when that was.)
    let (a, b) = (folder.path("c.parquet"), folder.path("d.parquet"));
    let rows = "mutation.kind = 'row' AND p != 100";
    run_marquetry(&["copy", &from, &a, "--with-metadata", "--where", rows]);
    run_marquetry(&["copy", &sstables, &b, "--schema-file", &definition, "--where", rows]);
    run_marquetry(&["diff", &a, &b, "--columns", "p,q,c,i,li,ma,ud,mutation.write_time,mutation.row_marker"]);
}

/// Runs it, and expects no difference and no failure.
fn run_marquetry(arguments: &[&str]) {
    run(arguments.iter().copied()).succeeded();
}

#[test]
fn what_cannot_be_read_is_said() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_unread") else { return };
    keyspace.run("CREATE TABLE marquetry_cli_unread.t (p int PRIMARY KEY)");
    let (from, absent) = (keyspace.address("t"), keyspace.address("absent"));
    run(["rows", &absent]).failed(1, &["no table or view marquetry_cli_unread.absent"]);
    run(["rows", &from, "--columns", "nope"]).failed(2, &["no column \"nope\"; its columns are p"]);
    run(["rows", &from, &from]).failed(2, &["tables of a cluster are read alone"]);
    run(["rows", &from, "--mapping", "full"]).failed(2, &["--mapping is for SSTables"]);
    run(["rows", &from, "--header", "no"]).failed(2, &["--header is for CSV"]);
    assert_eq!(run(["count", &from]).succeeded(), "0\n");
}

#[test]
fn options_of_clusters_are_for_clusters() {
    let path = data("one.parquet");
    for option in [&["--with-metadata"][..], &["--consistency", "ONE"], &["--password-file", "p"]] {
        run([&["rows", path.as_str()], option].concat())
            .failed(2, &[option[0], "is for tables of a cluster"]);
    }
    run(["rows", &path, "--token-range", "0:"]).failed(2, &["--token-range is for SSTables"]);
    run(["rows", "cql://127.0.0.1:1/k.t"]).failed(3, &["cannot connect to cql://127.0.0.1:1/k.t"]);
    run(["rows", "cql://me:tiger@127.0.0.1/t"]).failed(2, &["names a table without its keyspace"]);
    run(["show", "cql://127.0.0.1/k.t"]).failed(2, &["only files and objects of stores can be shown"]);
}
