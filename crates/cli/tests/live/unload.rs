//! Tables of a real server as sources of commands; `MARQUETRY_CASSANDRA=HOST:PORT` names it.

use marquetry_testing::{cassandra, cassandra_directory};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

use crate::common::{Folder, Run, data, run};

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
    // As they come, too, in the order of tokens: the key is the table's, whose tuples and timestamps need not be sorted.
    let snapshot = folder.path("snapshot");
    std::fs::create_dir(&snapshot).unwrap();
    let of_table = std::fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().path());
    for file in of_table.filter(|path| path.is_file()).chain([definition.clone().into()]) {
        std::fs::copy(&file, std::path::Path::new(&snapshot).join(file.file_name().unwrap())).unwrap();
    }
    let snapshot = format!("sstable:{snapshot}");
    let found = self::run(["diff", &snapshot, &from, "--mapping", "logical", "--json"]).succeeded();
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["key"], serde_json::json!(["p", "q", "c"]));
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
fn text_goes_into_a_table_as_it_is_written() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_as_written") else { return };
    let folder = Folder::new();
    keyspace.run(
        "CREATE TABLE marquetry_cli_as_written.t (id int PRIMARY KEY, price decimal, big bigint, huge varint, word text, v double)",
    );
    let rows = "1,12345678901234567.89,9007199254740993.0,1e30,1.10,0.10\n2,100.00,\"\",-7.00,TRUE,1e2\n\
                3,0.12345678901234567890,1e3,,2024-02-29 12:00:00,\n";
    let csv = folder.write("a.csv", format!("id,price,big,huge,word,v\n{rows}"));
    let table = keyspace.address("t");
    run(["copy", &csv, &table, "--quiet"]).succeeded();
    let there = run(["rows", &table, "--format", "csv"]).succeeded();
    let mut there: Vec<&str> = there.lines().skip(1).collect();
    there.sort_unstable();
    assert_eq!(
        there,
        [
            "1,9007199254740993,1000000000000000000000000000000,12345678901234567.89,0.1,1.10",
            "2,,-7,100.00,100.0,TRUE",
            "3,1000,,0.12345678901234567890,,2024-02-29 12:00:00",
        ]
    );
    // As JSON has them.
    let lines = folder.write("a.jsonl", "{\"id\":4,\"price\":12345678901234567.89,\"word\":1.10}\n");
    run(["copy", &lines, &table, "--quiet"]).succeeded();
    let one = run(["rows", &table, "--where", "id = 4", "--format", "jsonl", "--columns", "price,word"])
        .succeeded();
    assert_eq!(one, "{\"price\":\"12345678901234567.89\",\"word\":\"1.10\"}\n");
    // A fraction is no integer.
    let odd = folder.write("odd.csv", "id,big\n5,9007199254740993.5\n");
    run(["copy", &odd, &table, "--quiet"]).failed(1, &["9007199254740993.5", "bigint"]);
    // A table that is not there yet has the types that are inferred.
    run(["copy", &csv, &keyspace.address("new"), "--create", "--key", "id", "--quiet"]).succeeded();
}

#[test]
fn what_a_server_would_hide_is_not_loaded() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_hidden") else { return };
    let folder = Folder::new();
    keyspace.run("CREATE TABLE marquetry_cli_hidden.t (id int PRIMARY KEY, n int, m int)");
    keyspace.run("ALTER TABLE marquetry_cli_hidden.t DROP n");
    keyspace.run("ALTER TABLE marquetry_cli_hidden.t ADD n int");
    let (both, other) = (folder.write("a.csv", "id,n\n1,2\n"), folder.write("b.csv", "id,m\n1,3\n"));
    let table = keyspace.address("t");
    // Nothing is begun.
    let [rejects, state] = ["bad.parquet", "load.state"].map(|name| folder.path(name));
    let files = ["--rejects", &rejects, "--state", &state];
    run([&["copy", &both, &table, "--timestamp", "1000", "--quiet"][..], &files].concat())
        .failed(1, &["the column n was dropped", "later write time"]);
    assert!(!std::fs::exists(&rejects).unwrap() && !std::fs::exists(&state).unwrap());
    run(["copy", &other, &table, "--timestamp", "1000", "--quiet"]).succeeded();
    run(["copy", &both, &table, "--quiet"]).succeeded();
    let there = run(["rows", &table, "--format", "csv"]).succeeded();
    assert_eq!(there, "id,m,n\n1,3,2\n");
    // Write times of their own: of a row without a value for that column nothing is hidden.
    let timed = folder.write("c.csv", "id,m,n,at\n2,,5,1000\n3,7,,1000\n");
    let timed = ["copy", &timed, &table, "--timestamp", "at", "--quiet"];
    run(timed).failed(1, &["c.csv", "the column n was dropped", "would not show the value"]);
    run([&timed[..], &["--rejects", &rejects]].concat());
    assert_eq!(run(["count", &rejects]).succeeded(), "1\n");
    let there = run(["rows", &table, "--where", "id IN (2, 3)", "--format", "csv"]).succeeded();
    assert_eq!(there, "id,m,n\n3,7,\n");
    // The same of writes.
    keyspace.run("CREATE TABLE marquetry_cli_hidden.u (id int PRIMARY KEY, n int, m int)");
    keyspace.run("INSERT INTO marquetry_cli_hidden.u (id, m) VALUES (4, 8) USING TIMESTAMP 1000");
    let (writes, from) = (folder.path("writes.parquet"), keyspace.address("u"));
    run(["copy", &from, &writes, "--with-metadata", "--quiet"]).succeeded();
    run(["copy", &writes, &table, "--quiet"]).succeeded();
    keyspace.run("INSERT INTO marquetry_cli_hidden.u (id, n) VALUES (5, 9) USING TIMESTAMP 1000");
    run(["copy", &from, &writes, "--with-metadata", "--overwrite", "--quiet"]).succeeded();
    run(["copy", &writes, &table, "--quiet"])
        .failed(1, &["the column n was dropped", "would not show the value", "column n"]);
    assert_eq!(run(["rows", &table, "--where", "id = 4", "--format", "csv"]).succeeded(), "id,m,n\n4,8,\n");
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
    run(["show", &from])
        .failed(2, &["only files and objects of stores can be shown", "that hold a Parquet file"]);
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
    run(["show", "cql://127.0.0.1:1/k.t"]).failed(3, &["cannot connect to cql://127.0.0.1:1/k.t"]);
}

/// Killed again and again, a copy into a directory goes on, and each row is in one file.
#[test]
fn an_unload_that_is_killed_goes_on() {
    const ROWS: usize = 12_000;
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_parts") else { return };
    let folder = Folder::new();
    let csv = folder.path("rows.csv");
    let rows: String = (0..ROWS).map(|row| format!("{row},text of {row}\n")).collect();
    std::fs::write(&csv, format!("id,v\n{rows}")).unwrap();
    let (table, parts, state) = (keyspace.address("t"), folder.path("parts"), folder.path("parts.state"));
    run(["copy", &csv, &table, "--create", "--key", "id", "--quiet"]).succeeded();
    let directory = format!("{parts}/");
    let arguments = ["copy", &table, &directory, "--state", &state, "--resume"];
    let files = || std::fs::read_dir(&parts).map_or(0, Iterator::count);
    for _ in 0..3 {
        // Slow enough to be killed in its midst.
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_marquetry"))
            .args(arguments)
            .args(["--rate", "6K", "--quiet"])
            .spawn()
            .unwrap();
        let before = files();
        while files() == before {
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(child.try_wait().unwrap().is_none(), "it ended too early to be killed");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let found = run(["count", &parts]).succeeded().trim().parse::<usize>().unwrap();
    assert!(found > 0 && found < ROWS, "{found}");
    // What is there is not begun anew, nor with other options, nor by two at a time.
    run(&arguments[..5]).failed(2, &["was not finished", "--resume"]);
    run([&arguments[..], &["--columns", "id"]].concat()).failed(2, &["other options"]);
    run([&arguments[..], &["--sort", "id"]].concat()).failed(2, &["--sort has no meaning with --state"]);
    let out = run(arguments).succeeded();
    assert!(out.contains("12,000 rows in "), "{out}");
    run(["diff", &parts, &csv, "--key", "id"]).succeeded();
    assert_eq!(run(["count", &parts]).succeeded(), "12000\n");
    assert!(std::fs::read_to_string(format!("{parts}/schema.cql")).unwrap().starts_with("CREATE TABLE"));
    assert!(run(arguments).succeeded().contains("was finished before: 12,000 rows in "));
    run(["copy", &table, &folder.path("t.parquet"), "--state", &folder.path("other")])
        .failed(2, &["--state"]);
}

/// Runs the command with files of so many blocks at most, which stands in for a disk that is full.
#[cfg(unix)]
fn with_full_disk(blocks: u32, arguments: &[&str]) -> Run {
    let script = format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$0\" \"$@\"");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_marquetry")]).args(arguments);
    Run::of(command.output().unwrap())
}

/// A disk that is full ends an unload, and a load before its first row; both go on when there is space.
#[cfg(unix)]
#[test]
fn a_disk_that_is_full_loses_nothing() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_full") else { return };
    keyspace.run("CREATE TABLE marquetry_cli_full.t (id int PRIMARY KEY, v text)");
    let folder = Folder::new();
    let rows: String = (0..12_000).map(|row| format!("{row},text of {row}\n")).collect();
    let (csv, table) = (folder.write("rows.csv", format!("id,v\n{rows}")), keyspace.address("t"));
    let [loading, parts, state] = ["load.state", "parts", "parts.state"].map(|name| folder.path(name));
    let load = ["copy", &csv, &table, "--state", &loading, "--resume", "--quiet"];
    with_full_disk(0, &load).failed(3, &["load.state", "ile too large"]);
    assert_eq!(run(["count", &table]).succeeded(), "0\n");
    run(load).succeeded();
    let directory = format!("{parts}/");
    let unload = ["copy", &table, &directory, "--state", &state, "--resume", "--quiet"];
    with_full_disk(6, &unload).failed(3, &["part-", "ile too large"]);
    run(unload).succeeded();
    run(["diff", &parts, &csv, "--key", "id", "--quiet"]).succeeded();
    assert_eq!(run(["count", &parts]).succeeded(), "12000\n");
}

/// Rows that are missing, or were changed, are copied again; others are not.
#[test]
fn only_what_is_missing_is_copied() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_missing") else { return };
    let folder = Folder::new();
    keyspace.run("CREATE TABLE marquetry_cli_missing.t (p int, c text, v text, d decimal, at timestamp, PRIMARY KEY (p, c))");
    let csv = folder.path("rows.csv");
    let rows: String =
        (0..500).map(|row| format!("{},c{row},v{row},{row}.50,2024-02-29T12:00:00Z\n", row % 7)).collect();
    std::fs::write(&csv, format!("p,c,v,d,at\n{rows}")).unwrap();
    let table = keyspace.address("t");
    let schema = ["--schema", "p int, c text, v text, d decimal(9, 2), at timestamp(3)"];
    let copy = |more: &[&str]| run([&["copy", csv.as_str(), table.as_str()][..], &schema, more].concat());
    copy(&[]).succeeded();
    let metrics = copy(&["--missing-only", "--json"]).succeeded();
    assert!(metrics.contains("\"rows_written\":0") && metrics.contains("\"rows_rejected\":0"), "{metrics}");
    // Some are lost, one is changed, and there is one that the file does not have.
    for statement in [
        "DELETE FROM marquetry_cli_missing.t WHERE p = 3",
        "DELETE FROM marquetry_cli_missing.t WHERE p = 0 AND c = 'c7'",
        "UPDATE marquetry_cli_missing.t SET v = 'other' WHERE p = 1 AND c = 'c8'",
        "UPDATE marquetry_cli_missing.t SET d = 8.5 WHERE p = 1 AND c = 'c8'",
        "INSERT INTO marquetry_cli_missing.t (p, c) VALUES (99, 'mine')",
        // The same number.
        "UPDATE marquetry_cli_missing.t SET d = 9.500 WHERE p = 2 AND c = 'c9'",
    ] {
        keyspace.run(statement);
    }
    let lost = (0..500).filter(|row| row % 7 == 3).count() + 2;
    let would = copy(&["--missing-only", "--dry-run"]).succeeded();
    assert!(would.starts_with(&format!("{lost} rows would be loaded")), "{would}");
    let out = copy(&["--missing-only"]).succeeded();
    assert!(out.starts_with(&format!("{lost} rows loaded")), "{out}");
    assert!(copy(&["--missing-only"]).succeeded().starts_with("0 rows loaded"));
    assert_eq!(run(["count", &table]).succeeded(), "501\n");
    // By the table's key.
    run(["diff", &csv, &table, "--columns", "p,c,v"]).failed(1, &["differ"]);
    // Numbers are numbers, whatever columns are chosen.
    let found = run([&["diff", &csv, &table, "--columns", "d", "--json"][..], &schema].concat());
    assert!(found.out.contains("\"different\":0,\"only_in_a\":0,\"only_in_b\":1"), "{}", found.out);
    // Which of two is to be there?
    std::fs::write(&csv, format!("p,c,v,d,at\n{rows}0,c7,again,1.00,2024-02-29T12:00:00Z\n")).unwrap();
    copy(&["--missing-only"]).failed(1, &["two rows have one key"]);
}

/// What a load makes of rows is what they are compared with: otherwise they would be sent again and again.
#[test]
fn what_was_loaded_is_not_missing() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_loaded") else { return };
    keyspace.run("CREATE TABLE marquetry_cli_loaded.t (p bigint PRIMARY KEY, f float, tags list<text>, kept frozen<list<text>>, v text)");
    let folder = Folder::new();
    let (json, table) = (folder.path("a.jsonl"), keyspace.address("t"));
    let rows = [
        r#"{"p":1,"f":0.1,"tags":[],"kept":[],"v":null}"#,
        r#"{"p":2,"f":0.1,"tags":["a"],"kept":["b"],"v":"x"}"#,
        r#"{"p":3,"f":null,"tags":null,"kept":null,"v":""}"#,
    ];
    std::fs::write(&json, rows.join("\n")).unwrap();
    let schema = ["--schema", "p bigint, f double, tags list<text>, kept list<text>, v text"];
    let missing = |more: &[&str]| {
        let out = run([&["copy", &json, &table, "--missing-only"][..], &schema, more].concat()).succeeded();
        out.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(missing(&[]), "3");
    assert_eq!(missing(&[]), "0");
    run([&["diff", &json, &table][..], &schema].concat()).succeeded();
    run([&["diff", &json, &table, "--columns", "tags,f"][..], &schema].concat()).succeeded();
    // Nulls leave what is there, which is a difference nevertheless.
    keyspace.run("UPDATE marquetry_cli_loaded.t SET v = 'there', tags = ['there'] WHERE p = 1");
    assert_eq!(missing(&[]), "0");
    run([&["diff", &json, &table][..], &schema].concat()).failed(1, &["differ"]);
    assert_eq!(missing(&["--nulls", "tombstone"]), "1");
    assert_eq!(missing(&["--nulls", "tombstone"]), "0");
    run([&["diff", &json, &table][..], &schema].concat()).succeeded();
    // A frozen collection that is empty is one.
    keyspace.run("UPDATE marquetry_cli_loaded.t SET kept = null WHERE p = 1");
    assert_eq!(missing(&[]), "1");
}

/// Microseconds become integers, and are the same there.
#[test]
fn microseconds_are_compared_with_what_they_became() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_micros") else { return };
    let folder = Folder::new();
    let (json, table) = (folder.path("a.jsonl"), keyspace.address("t"));
    std::fs::write(&json, "{\"at\":\"2024-02-29T12:00:00.123456Z\",\"v\":\"x\"}\n").unwrap();
    let schema = ["--schema", "at timestamp(6), v text"];
    run([&["copy", &json, &table, "--create", "--key", "at"][..], &schema].concat()).succeeded();
    run([&["diff", &json, &table][..], &schema].concat()).succeeded();
    let out = run([&["copy", &json, &table, "--missing-only"][..], &schema].concat()).succeeded();
    assert!(out.starts_with("0 rows loaded"), "{out}");
}

/// Vectors of elements that have no fixed length, there and back.
#[test]
fn vectors_of_any_type_are_loaded() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_vectors") else { return };
    for table in ["a", "b"] {
        keyspace.run(&format!(
            "CREATE TABLE marquetry_cli_vectors.{table} (p int PRIMARY KEY, t vector<text, 2>, s vector<smallint, 3>,
             l vector<frozen<list<int>>, 2>, u vector<uuid, 1>)"
        ));
    }
    let long = "x".repeat(300);
    keyspace.run(&format!(
        "INSERT INTO marquetry_cli_vectors.a (p, t, s, l, u) VALUES (1, ['{long}', ''], [1, -2, 3], [[1, 2], []], [00112233-4455-6677-8899-aabbccddeeff])"
    ));
    let (a, b) = (keyspace.address("a"), keyspace.address("b"));
    assert!(run(["copy", &a, &b]).succeeded().starts_with("1 row loaded"));
    run(["diff", &a, &b, "--key", "p", "--strict"]).succeeded();
}

/// Two tables of clusters are matched by their keys as they come, without being sorted.
#[test]
fn live_tables_are_compared_in_the_order_of_tokens() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_tokens") else { return };
    for table in ["a", "b"] {
        keyspace.run(&format!(
            "CREATE TABLE marquetry_cli_tokens.{table} (p text, q int, c int, d text, s int static, v int,
             PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)"
        ));
        for row in 0..400 {
            keyspace.run(&format!(
                "INSERT INTO marquetry_cli_tokens.{table} (p, q, c, d, v) VALUES ('p{}', {}, {row}, 'd', {row})",
                row % 9,
                row % 4
            ));
        }
        keyspace.run(&format!("INSERT INTO marquetry_cli_tokens.{table} (p, q, s) VALUES ('alone', 1, 1)"));
    }
    let (a, b) = (keyspace.address("a"), keyspace.address("b"));
    run(["diff", &a, &b]).succeeded();
    for statement in [
        "DELETE FROM marquetry_cli_tokens.b WHERE p = 'p3' AND q = 3 AND c = 3",
        "DELETE FROM marquetry_cli_tokens.b WHERE p = 'p0' AND q = 0",
        "UPDATE marquetry_cli_tokens.b SET v = -1 WHERE p = 'p1' AND q = 1 AND c = 1 AND d = 'd'",
        "INSERT INTO marquetry_cli_tokens.b (p, q, c, d) VALUES ('p5', 1, 5, 'e')",
    ] {
        keyspace.run(statement);
    }
    let lost = 1 + (0..400).filter(|row| row % 36 == 0).count();
    let mut all = serde_json::Value::Null;
    for more in [&[][..], &["--key", "p,q,c,d"], &["--columns", "v"]] {
        let found = run([&["diff", a.as_str(), b.as_str(), "--json"][..], more].concat());
        let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
        let rows = &found["rows"];
        if all.is_null() {
            all = rows.clone();
        }
        // Those that are shown are the first ones by their tokens.
        assert_eq!(*rows, all, "{more:?}");
        assert_eq!(
            (rows["only_in_a"].as_u64(), rows["only_in_b"].as_u64(), rows["different"].as_u64()),
            (Some(u64::try_from(lost).unwrap()), Some(1), Some(1)),
            "{found}"
        );
        assert_eq!(found["key"], serde_json::json!(["p", "q", "c", "d"]));
    }
    // By another key they are sorted.
    let found = run(["diff", &a, &b, "--json", "--key", "c,p,q,d"]);
    assert!(found.out.contains("\"only_in_b\":1"), "{}", found.out);
    assert!(
        run(["copy", &a, &b, "--missing-only"]).succeeded().starts_with(&format!("{} rows loaded", lost + 1))
    );
    assert!(run(["diff", &a, &b, "--json"]).out.contains("\"only_in_a\":0"));
}

/// Durations are groups, which CSV cannot have: there they are text, as CQL writes it.
#[test]
fn durations_go_to_csv_and_back() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_durations") else { return };
    for table in ["a", "b"] {
        keyspace.run(&format!(
            "CREATE TABLE marquetry_cli_durations.{table} (p int PRIMARY KEY, d duration, e duration, v text)"
        ));
    }
    keyspace.run("INSERT INTO marquetry_cli_durations.a (p, d, e, v) VALUES (1, 1mo2d3h, -5ns, 'x')");
    keyspace.run("INSERT INTO marquetry_cli_durations.a (p, d) VALUES (2, 12y)");
    let folder = Folder::new();
    let (a, b, csv) = (keyspace.address("a"), keyspace.address("b"), folder.path("d.csv"));
    run(["copy", &a, &csv]).succeeded();
    let text = std::fs::read_to_string(&csv).unwrap();
    assert!(text.starts_with("p,d,e,v\n") && text.contains("\n1,1mo2d10800000000000ns,-5ns,x\n"), "{text}");
    run(["copy", &csv, &b]).succeeded();
    run(["diff", &a, &b, "--strict"]).succeeded();
    run(["copy", &a, &csv, "--columns", "d,p", "--where", "p = 1", "--overwrite"]).succeeded();
    assert_eq!(std::fs::read_to_string(&csv).unwrap(), "d,p\n1mo2d10800000000000ns,1\n");
    // In JSON they are what they are.
    let json = run(["copy", &a, "-", "--to", "jsonl", "--where", "p = 2"]).succeeded();
    assert!(json.contains("\"d\":{\"months\":144,\"days\":0,\"nanoseconds\":0}"), "{json}");
}

/// Values of no bytes, which old clients wrote and `blobAsInt(0x)` does, have no form in Parquet: they become null, but not in silence.
#[test]
fn values_that_become_null_are_said() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_lost") else { return };
    for table in ["a", "b", "c"] {
        keyspace.run(&format!(
            "CREATE TABLE marquetry_cli_lost.{table} (p int PRIMARY KEY, i int, t timestamp, v text, b blob)"
        ));
        keyspace.run(&format!("INSERT INTO marquetry_cli_lost.{table} (p, i, v, b) VALUES (1, 7, '', 0x)"));
    }
    for statement in [
        "INSERT INTO marquetry_cli_lost.a (p, i, t) VALUES (2, blob_as_int(0x), blob_as_timestamp(0x))",
        "INSERT INTO marquetry_cli_lost.a (p, i) VALUES (3, blob_as_int(0x))",
        "INSERT INTO marquetry_cli_lost.b (p, i, t) VALUES (2, blob_as_int(0x), blob_as_timestamp(0x))",
        "INSERT INTO marquetry_cli_lost.b (p, i) VALUES (3, blob_as_int(0x))",
        "INSERT INTO marquetry_cli_lost.c (p) VALUES (2)",
        "INSERT INTO marquetry_cli_lost.c (p) VALUES (3)",
    ] {
        keyspace.run(statement);
    }
    let folder = Folder::new();
    let [a, b, c] = ["a", "b", "c"].map(|table| keyspace.address(table));
    let file = folder.path("a.parquet");
    let said = "3 values without a form in Parquet (an int of no bytes, for example) became null, in the columns i, t; --with-metadata keeps them";
    let copied = run(["copy", &a, &file]);
    assert_eq!((copied.code, copied.err.lines().count()), (Some(0), 1), "{}", copied.err);
    assert!(copied.err.starts_with(&format!("marquetry: note: {said}")), "{}", copied.err);
    let copied = run(["copy", &a, &file, "--overwrite", "--json", "--quiet"]).succeeded();
    let copied: serde_json::Value = serde_json::from_str(&copied).unwrap();
    assert_eq!(copied["values_lost"], 3);
    assert!(copied["notes"][0].as_str().unwrap().starts_with(said), "{copied}");
    let parts = [folder.path("parts"), folder.path("parts.state")];
    let copied = run(["copy", &a, &format!("{}/", parts[0]), "--state", &parts[1], "--json", "--quiet"]);
    let copied: serde_json::Value = serde_json::from_str(&copied.succeeded()).unwrap();
    assert_eq!(copied["values_lost"], 3);
    // Only of the columns that are read.
    let only_t = folder.path("t.parquet");
    let copied = run(["copy", &a, &only_t, "--columns", "p,when", "--rename", "t=when"]);
    assert!(copied.err.contains("note: 1 value without a form") && copied.err.contains("in the column when"));
    let out = run(["copy", &a, &only_t, "--columns", "p,v", "--overwrite"]).succeeded();
    assert!(out.starts_with("3 rows written"), "{out}");
    for command in
        [&["rows", &a, "--format", "jsonl"][..], &["rows", &a], &["cql", &a, "--table", "k.t", "--key", "p"]]
    {
        let printed = run(command);
        assert_eq!(printed.code, Some(0), "{}", printed.err);
        assert!(printed.err.contains(said), "{command:?}: {}", printed.err);
    }
    // With metadata nothing is lost.
    let full = folder.path("full.parquet");
    run(["copy", &a, &full, "--with-metadata"]).succeeded();
    let restored = keyspace.address("restored");
    run(["copy", &full, &restored, "--create"]).succeeded();
    // A file that lacks them is not as the table, and neither is a table that has nulls.
    for other in [&file, &c] {
        let out = run(["diff", &a, other, "--quiet"]).failed(1, &["differ"]);
        assert!(out.contains("3 compared, 0 differ"), "{out}");
        assert!(out.contains("A: 3 values without a form in Parquet"), "{out}");
        assert!(!out.contains("B: 3 values"), "{out}");
    }
    // Where both have as many, nobody can say more, and that is said.
    for other in [&b, &restored] {
        let out = run(["diff", &a, other, "--quiet"]).succeeded();
        assert!(out.starts_with("the same: 3 rows of 5 columns\nA: "), "{out}");
        assert!(out.contains("\nA: 3 values without") && out.contains("\nB: 3 values without"), "{out}");
        let found = run(["diff", &a, other, "--quiet", "--json"]).succeeded();
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found["a"]["values_lost"], serde_json::json!({"i": 2, "t": 1}));
        assert_eq!(found["a"]["values_lost"], found["b"]["values_lost"]);
    }
    let out = run(["diff", &a, &b, "--columns", "p,v,b", "--quiet"]).succeeded();
    assert_eq!(out, "the same: 3 rows of 3 columns\n");
}

/// A table that is created of what another one was has its options, and its indexes once the rows are there.
#[test]
fn a_created_table_has_the_options_of_its_source() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_like") else { return };
    for statement in [
        "CREATE TYPE marquetry_cli_like.u (a int)",
        "CREATE TABLE marquetry_cli_like.t (p int, c int, v text, f frozen<u>, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)
         AND default_time_to_live = 864000 AND gc_grace_seconds = 7200 AND comment = 'it''s AND more'
         AND compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '50'} AND compression = {'enabled': 'false'}",
        "CREATE INDEX by_v ON marquetry_cli_like.t (v)",
        "INSERT INTO marquetry_cli_like.t (p, c, v, f) VALUES (1, 2, 'x', {a: 3})",
    ] {
        keyspace.run(statement);
    }
    let folder = Folder::new();
    let t = keyspace.address("t");
    let [rows, full, directory] = ["rows.parquet", "full.parquet", "rows/"].map(|name| folder.path(name));
    run(["copy", &t, &rows]).succeeded();
    run(["copy", &t, &full, "--with-metadata"]).succeeded();
    run(["copy", &t, &directory]).succeeded();
    let options = |table: &str| {
        let columns = "default_time_to_live, gc_grace_seconds, comment, compaction, compression, bloom_filter_fp_chance";
        let query = format!(
            "SELECT {columns} FROM system_schema.tables WHERE keyspace_name = 'marquetry_cli_like' AND table_name = '{table}'"
        );
        let answer = keyspace.runtime.block_on(keyspace.session.query_unpaged(query, ())).unwrap();
        let answer = answer.into_rows_result().unwrap();
        format!("{:?}", answer.single_row::<scylla::value::Row>().unwrap())
    };
    let indexes = |table: &str| {
        let query = format!(
            "SELECT options FROM system_schema.indexes WHERE keyspace_name = 'marquetry_cli_like' AND table_name = '{table}'"
        );
        let answer = keyspace.runtime.block_on(keyspace.session.query_unpaged(query, ())).unwrap();
        answer.into_rows_result().unwrap().rows_num()
    };
    for (source, table, more) in [
        (&rows, "a", &[][..]),
        (&full, "b", &[]),
        (&directory, "c", &[]),
        (&t, "d", &[]),
        (&t, "e", &["--with-metadata"]),
    ] {
        let to = keyspace.address(table);
        let loaded = run([&["copy", source, &to, "--create"][..], more].concat());
        assert_eq!(loaded.code, Some(0), "{}", loaded.err);
        let said = format!(
            "the indexes of the source's table were created after the rows: CREATE INDEX IF NOT EXISTS ON marquetry_cli_like.{table} (v);"
        );
        assert!(loaded.err.contains(&said), "{}", loaded.err);
        let is_of_writes = source == &full || !more.is_empty();
        assert_eq!(
            loaded.err.contains("has the source's default_time_to_live = 864000"),
            !is_of_writes,
            "{}",
            loaded.err
        );
        assert_eq!((options(table), indexes(table)), (options("t"), 1), "{table}");
    }
    // It is there now; and a dry run says what it would do.
    let again = run(["copy", &rows, &keyspace.address("a"), "--create"]);
    assert!(again.err.contains("are not created in one that exists: CREATE INDEX"), "{}", again.err);
    let dry = run(["copy", &rows, &keyspace.address("g"), "--create", "--dry-run"]);
    assert!(dry.err.contains("would be created after the rows: CREATE INDEX"), "{}", dry.err);
    // Other columns are another table's, whose options are not known.
    let other = run(["copy", &rows, &keyspace.address("f"), "--create", "--key", "p", "--columns", "p,v"]);
    assert_eq!((other.code, indexes("f")), (Some(0), 0), "{}", other.err);
    assert!(
        other.err.contains("was made without comment = 'it''s AND more', default_time_to_live = 864000, gc_grace_seconds = 7200 and indexes"),
        "{}",
        other.err
    );
    // What the cluster refuses is named, and nothing is made.
    let statements = std::fs::read_to_string(format!("{directory}schema.cql")).unwrap();
    let strange = statements.replace("LeveledCompactionStrategy", "StrangeCompactionStrategy");
    let strange = folder.write("strange.cql", strange);
    let sstables = format!("sstable:{}", folder.path("new"));
    run(["copy", &rows, &sstables, "--schema-cql", &format!("{directory}schema.cql"), "--quiet"]).succeeded();
    let to = keyspace.address("h");
    let refused = run(["copy", &sstables, &to, "--create", "--schema", &strange, "--quiet"]);
    refused.failed(
        1,
        &["not create the table with compaction = {", "StrangeCompactionStrategy", "without that"],
    );
    run(["count", &to]).failed(1, &["no table or view marquetry_cli_like.h"]);
    // SSTables have a definition beside them, and may be given another.
    run(["copy", &sstables, &to, "--create", "--quiet"]).succeeded();
    assert_eq!((options("h"), indexes("h")), (options("t"), 0));
    let (to, given) = (keyspace.address("i"), format!("{directory}schema.cql"));
    run(["copy", &sstables, &to, "--create", "--schema", &given, "--quiet"]).succeeded();
    assert_eq!((options("i"), indexes("i")), (options("t"), 1));
}

/// What the source's table has is told once, and in a table that a load did not make nothing is made, however often it goes on.
#[test]
fn a_created_table_has_what_only_it_is_to_have() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_made") else { return };
    let Some(other) = Keyspace::fresh("marquetry_cli_made_too") else { return };
    keyspace.run(
        "CREATE TABLE marquetry_cli_made.t (k int PRIMARY KEY, at time, v text) WITH comment = 'mine' AND default_time_to_live = 864000",
    );
    keyspace.run("CREATE INDEX by_v ON marquetry_cli_made.t (v)");
    keyspace.run("INSERT INTO marquetry_cli_made.t (k, at, v) VALUES (1, '08:12:54', 'x')");
    let folder = Folder::new();
    let [rows, state] = ["rows.parquet", "load.state"].map(|name| folder.path(name));
    run(["copy", &keyspace.address("t"), &rows]).succeeded();
    let asked = |of: &Keyspace, query: &str| {
        let answer = of.runtime.block_on(of.session.query_unpaged(query, ())).unwrap();
        answer.into_rows_result().unwrap()
    };

    // A comment of the columns' own gives way to the table's; rows whose column says nothing of a TTL have the table's.
    let stamped = folder.write("stamped.csv", "k,v,life\n2,y,\n3,z,100\n");
    let to = keyspace.address("a");
    let loaded = run(["copy", &rows, &to, "--create", "--key", "k"]);
    assert_eq!(loaded.code, Some(0), "{}", loaded.err);
    let said = asked(
        &keyspace,
        "SELECT comment FROM system_schema.tables WHERE keyspace_name = 'marquetry_cli_made' AND table_name = 'a'",
    );
    assert_eq!(said.single_row::<(String,)>().unwrap(), ("mine".to_owned(),));
    run(["copy", &stamped, &to, "--ttl", "life", "--quiet"]).succeeded();

    // A load that goes on into a table that was there.
    keyspace.run("CREATE TABLE marquetry_cli_made.b (k int PRIMARY KEY, at time, v text)");
    for _ in 0..2 {
        let to = keyspace.address("b");
        let loaded = run(["copy", &rows, &to, "--create", "--state", &state, "--resume"]);
        assert_eq!(loaded.code, Some(0), "{}", loaded.err);
        assert!(loaded.err.contains("are not created in one that exists"), "{}", loaded.err);
    }
    let indexes = "SELECT index_name FROM system_schema.indexes WHERE keyspace_name = 'marquetry_cli_made' AND table_name = 'b'";
    assert_eq!(asked(&keyspace, indexes).rows_num(), 0);

    // The name of an index is another table's.
    other.run("CREATE TABLE marquetry_cli_made_too.u (k int PRIMARY KEY, w text)");
    other.run("CREATE INDEX by_v ON marquetry_cli_made_too.u (w)");
    let to = other.address("t");
    let taken = run(["copy", &rows, &to, "--create", "--quiet"]);
    taken.failed(1, &["another table of the keyspace has one of its name", "INDEX IF NOT EXISTS by_v ON"]);
    assert_eq!(run(["count", &to]).succeeded(), "1\n");
}

/// A table of which some columns are read is still that table.
#[test]
fn some_columns_are_of_the_same_table() {
    let Some(keyspace) = Keyspace::fresh("marquetry_cli_some") else { return };
    keyspace.run("CREATE TABLE marquetry_cli_some.t (k int PRIMARY KEY, f float, v text)");
    let folder = Folder::new();
    let text = folder.write("rows.csv", "k,f,v\n1,0.1,a\n2,0.7,b\n");
    let t = keyspace.address("t");
    run(["copy", &text, &t, "--quiet"]).succeeded();
    // A FLOAT has what a load of the DOUBLE leaves of it, on either side.
    for tables in [[&t, &text], [&text, &t]] {
        run(["diff", tables[0], tables[1], "--key", "k", "--columns", "k,f", "--quiet"]).succeeded();
    }
    run(["copy", &t, &t, "--columns", "k,f"]).failed(2, &["source and destination are one table"]);
    // Its rows are not those of one that has its name later.
    let [parts, state] = ["parts/", "parts.state"].map(|name| folder.path(name));
    let unload = ["copy", &t, &parts, "--columns", "k,f", "--state", &state, "--resume", "--quiet"];
    run(unload).succeeded();
    keyspace.run("DROP TABLE marquetry_cli_some.t");
    keyspace.run("CREATE TABLE marquetry_cli_some.t (k int PRIMARY KEY, f float, v text)");
    run(unload).failed(2, &["another table"]);
}
