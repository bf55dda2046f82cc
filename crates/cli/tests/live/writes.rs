//! `marquetry copy sstable:… cql://…` with a real server, which `MARQUETRY_CASSANDRA=HOST:PORT` and its directory `MARQUETRY_CASSANDRA_DIR` name:
//! what is in SSTables is in those that the server writes of the copy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::value::{CqlValue, Row};
use serde_json::Value;

use crate::common::{self, Folder, run};

/// A connection beside the command's own, and the server's directory.
struct Server {
    at: String,
    directory: PathBuf,
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Server {
    fn connect() -> Option<Server> {
        let (at, directory) = (marquetry_testing::cassandra()?, marquetry_testing::cassandra_directory()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let builder = SessionBuilder::new().known_node(&at).fetch_full_schema_metadata(false);
        let session = runtime.block_on(builder.build()).expect("the server answers");
        Some(Server { at, directory, runtime, session })
    }

    fn fresh(&self, keyspace: &str) {
        self.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
        self.run(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
    }

    fn run(&self, statement: &str) {
        self.select(statement);
    }

    fn select(&self, statement: &str) -> Vec<Vec<Option<CqlValue>>> {
        let answer = self.runtime.block_on(self.session.query_unpaged(statement, ())).expect(statement);
        match answer.into_rows_result() {
            Ok(rows) => rows.rows::<Row>().unwrap().map(|row| row.unwrap().columns).collect(),
            Err(_) => Vec::new(),
        }
    }

    fn table(&self, keyspace: &str, table: &str) -> String {
        format!("cql://{}/{keyspace}.{table}", self.at)
    }

    fn flush(&self, keyspace: &str) {
        self.nodetool(&["flush", keyspace]);
    }

    /// The address of a new snapshot of a table, which has its definition.
    fn snapshot(&self, keyspace: &str, table: &str, name: &str) -> String {
        // A snapshot does not wait for a flush that is going on.
        self.flush(keyspace);
        self.nodetool(&["snapshot", "-t", name, "-cf", table, keyspace]);
        let id = self.select(&format!(
            "SELECT id FROM system_schema.tables WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'"
        ));
        let Some(CqlValue::Uuid(id)) = id[0][0] else { panic!("{id:?}") };
        let id = id.to_string().replace('-', "");
        let data = self.directory.join("data/data").join(keyspace).join(format!("{table}-{id}"));
        format!("sstable:{}", data.join("snapshots").join(name).display())
    }

    fn nodetool(&self, arguments: &[&str]) {
        let script = marquetry_testing::root().join("dev/cassandra.sh");
        let output =
            Command::new(script).arg("nodetool").arg(&self.directory).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Rows as JSON, one a line.
fn json(source: &str, more: &[&str]) -> Vec<Value> {
    let all = [&["rows", source, "--format", "jsonl", "--quiet"], more].concat();
    let text = run(all).succeeded();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Fails unless both have the same rows for a SELECT, now.
fn expect_same_rows(one: &str, other: &str) -> usize {
    let at =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs().to_string();
    let [one, other] = [one, other].map(|source| json(source, &["--mapping", "logical", "--at", &at]));
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    one.len()
}

/// Fails unless both have the same writes; of the partitions that are `wanted`.
fn expect_same_writes(one: &str, other: &str, wanted: impl Fn(&Value) -> bool) -> usize {
    let [one, other] = [one, other].map(|source| {
        let mut rows = json(source, &["--mapping", "full"]);
        rows.retain(&wanted);
        rows.iter_mut().for_each(say_all_expiries);
        rows
    });
    for (one, other) in one.iter().zip(&other) {
        if let Err(what) = same_write(one, other) {
            panic!("{what} in\n{one}\n{other}");
        }
    }
    assert_eq!(one.len(), other.len());
    one.len()
}

/// Says of cells that expire as their row does when that is: a row that is sent in several statements may get them in different seconds.
fn say_all_expiries(row: &mut Value) {
    let Some(mutation) = row.get_mut("mutation") else { return };
    let [ttl, expires_at] = ["ttl", "expires_at"].map(|name| mutation.get(name).cloned());
    let (Some(ttl), Some(expires_at)) = (ttl, expires_at.filter(|it| !it.is_null())) else { return };
    for cell in mutation.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten() {
        let says_nothing = ["ttl", "expires_at", "deleted_at", "local_deletion_time", "write_time"];
        if says_nothing.iter().all(|name| cell.get(*name).is_none_or(Value::is_null)) {
            (cell["ttl"], cell["expires_at"]) = (ttl.clone(), expires_at.clone());
        }
    }
}

/// Whether two writes are the same, but for what differs by nature: when a server deleted something, the TTL that is left, a second or so
/// of when something expires, and the keys of the elements of lists.
fn same_write(one: &Value, other: &Value) -> Result<(), String> {
    let is_null = |value: Option<&Value>| value.is_none_or(Value::is_null);
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let is_of_list = one.get("column").and_then(Value::as_str) == Some("li");
            for name in one.keys().chain(other.keys()) {
                let (one, other) = (one.get(name), other.get(name));
                match name.as_str() {
                    "path" if is_of_list => {}
                    "ttl" | "local_deletion_time" if is_null(one) == is_null(other) => {}
                    "expires_at" if !is_null(one) && !is_null(other) => {
                        let [one, other] = [one, other].map(|it| it.and_then(Value::as_i64).unwrap());
                        if one.abs_diff(other) > 20 {
                            return Err(format!("it expires at {one}, at {other}"));
                        }
                    }
                    _ if is_null(one) && is_null(other) => {}
                    _ => match (one, other) {
                        (Some(one), Some(other)) => same_write(one, other)?,
                        _ => return Err(format!("{name} is in one")),
                    },
                }
            }
            Ok(())
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter().zip(other).try_for_each(|(one, other)| same_write(one, other))
        }
        _ if one == other => Ok(()),
        _ => Err(format!("{one} and {other}")),
    }
}

const BASE_US: i64 = 1_700_000_000_000_000;

/// Partitions of which a copy does not have the same, but what means the same: with a range of several statements, with what has expired, and
/// with a deleted element of a list.
const ODD: [i64; 3] = [6, 24, 25];

/// A table with everything, in two SSTables; the address of a snapshot.
fn everything(server: &Server, keyspace: &str) -> String {
    server.fresh(keyspace);
    server.run(&format!("CREATE TYPE {keyspace}.addr (street text, zip int, tags frozen<set<text>>)"));
    server.run(&format!(
        "CREATE TABLE {keyspace}.t (pk int, c1 text, c2 bigint, st text static, sm map<text, int> static, a int, \"B\" text, d decimal, \
         ip inet, v varint, du duration, li list<int>, se set<text>, ma map<text, int>, fl frozen<list<int>>, tu tuple<int, text>, \
         u frozen<addr>, un addr, PRIMARY KEY (pk, c1, c2)) WITH CLUSTERING ORDER BY (c1 ASC, c2 DESC) \
         AND compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}"
    ));
    let insert = |key: &str, more: &str| {
        server.run(&format!(
            "INSERT INTO {keyspace}.t (pk, c1, c2, a, \"B\", d, ip, v, du, li, se, ma, fl, tu, u, un) VALUES ({key}, 1, 'b', 1.50, \
             '2001:db8::1', 12345678901234567890, 1y2mo3d4h, [1, 2], {{'x', 'y'}}, {{'k': 1, 'l': 2}}, [3, 1], (7, null), \
             {{street: 's', zip: 1, tags: {{'p', 'q'}}}}, {{street: 'n', tags: {{'r'}}}}) USING TIMESTAMP {more}"
        ));
    };
    let at = |number: i64| (BASE_US + number).to_string();
    for pk in 0..8 {
        for c1 in ["a", "b", "c"] {
            (0..4).for_each(|c2| insert(&format!("{pk}, '{c1}', {c2}"), &at(10 * pk)));
        }
        let (time, set) = (at(10 * pk), format!("st = 'static{pk}', sm = {{'one': 1, 'two': {pk}}}"));
        server.run(&format!("UPDATE {keyspace}.t USING TIMESTAMP {time} SET {set} WHERE pk = {pk}"));
    }
    let run = |statement: String| server.run(&statement.replace(" t ", &format!(" {keyspace}.t ")));
    let row = "WHERE pk = 0 AND c1 = 'a' AND c2 = 0";
    insert("20, 'ttl', 1", &format!("{} AND TTL 86400", at(200)));
    run(format!(
        "UPDATE t USING TIMESTAMP {} AND TTL 80000 SET \"B\" = 'later', li = li + [7], ma['m'] = 9 {row}",
        at(201)
    ));
    run(format!(
        "UPDATE t USING TIMESTAMP {} SET a = 1 WHERE pk = 21 AND c1 = 'no marker' AND c2 = 1",
        at(202)
    ));
    run(format!("INSERT INTO t (pk, c1, c2) VALUES (22, '', 0) USING TIMESTAMP {}", at(203)));
    run(format!("UPDATE t USING TIMESTAMP {} SET st = 'only static' WHERE pk = 23", at(204)));
    run(format!(
        "INSERT INTO t (pk, c1, c2, a, li) VALUES (24, 'old', 1, 5, null) USING TIMESTAMP {}",
        at(205)
    ));
    run(format!(
        "INSERT INTO t (pk, c1, c2, a) VALUES (24, 'old', 1, 6) USING TIMESTAMP {} AND TTL 1",
        at(206)
    ));
    run(format!(
        "INSERT INTO t (pk, c1, c2, a) VALUES (24, 'gone', 1, 6) USING TIMESTAMP {} AND TTL 1",
        at(206)
    ));
    insert("25, 'list', 1", &at(207));
    server.flush(keyspace);

    run(format!("DELETE FROM t USING TIMESTAMP {} WHERE pk = 1", at(300)));
    run(format!("INSERT INTO t (pk, c1, c2, a) VALUES (1, 'after', 1, 8) USING TIMESTAMP {}", at(301)));
    run(format!("DELETE FROM t USING TIMESTAMP {} WHERE pk = 2 AND c1 = 'b' AND c2 = 3", at(302)));
    run(format!("INSERT INTO t (pk, c1, c2, a) VALUES (2, 'b', 3, 9) USING TIMESTAMP {}", at(303)));
    run(format!("DELETE FROM t USING TIMESTAMP {} WHERE pk = 3 AND c1 = 'b'", at(304)));
    run(format!("DELETE FROM t USING TIMESTAMP {} WHERE pk = 4 AND c1 > 'a' AND c1 <= 'b'", at(305)));
    run(format!(
        "DELETE FROM t USING TIMESTAMP {} WHERE pk = 4 AND c1 = 'c' AND c2 >= 1 AND c2 < 3",
        at(306)
    ));
    run(format!("DELETE FROM t USING TIMESTAMP {} WHERE pk = 6 AND c1 > 'b'", BASE_US - 5));
    let row = |c2: i32| format!("WHERE pk = 5 AND c1 = 'a' AND c2 = {c2}");
    run(format!("DELETE \"B\", li, un FROM t USING TIMESTAMP {} {}", at(307), row(1)));
    run(format!("DELETE ma['k'], un.street FROM t USING TIMESTAMP {} {}", at(308), row(2)));
    run(format!("DELETE st, sm['one'] FROM t USING TIMESTAMP {} WHERE pk = 5", at(309)));
    run(format!(
        "UPDATE t USING TIMESTAMP {} SET se = se - {{'x'}}, un.zip = 77, li = [], a = null {}",
        at(310),
        row(3)
    ));
    run(format!(
        "UPDATE t USING TIMESTAMP {} SET ma = {{'new': 1}}, se = null, li = [9, 8] {}",
        at(311),
        row(0)
    ));
    run(format!("UPDATE t USING TIMESTAMP {} SET li = li + [10], un = {{zip: 3}} {}", at(312), row(0)));
    run(format!("DELETE li[0] FROM t USING TIMESTAMP {} WHERE pk = 25 AND c1 = 'list' AND c2 = 1", at(313)));
    std::thread::sleep(Duration::from_secs(2));
    server.snapshot(keyspace, "t", "all")
}

#[test]
fn writes_arrive_as_they_were_written() {
    let Some(server) = Server::connect() else { return };
    let source = everything(&server, "writes_from");
    server.fresh("writes_to");
    let to = server.table("writes_to", "t");
    let made = run(["copy", &source, &to, "--create"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(made.out.contains(" loaded into cql://"), "{}", made.out);
    assert!(made.err.contains("truncate writes_to.t") && made.err.contains("(li)"), "{}", made.err);
    let copied = server.snapshot("writes_to", "t", "copied");
    assert!(expect_same_rows(&source, &copied) > 60);
    let is_usual = |row: &Value| !ODD.contains(&row["pk"].as_i64().unwrap());
    assert!(expect_same_writes(&source, &copied, is_usual) > 70);
    // As a server says it.
    let what = "WRITETIME(a), WRITETIME(\"B\"), TTL(\"B\"), li, un FROM";
    let row = "WHERE pk = 0 AND c1 = 'a' AND c2 = 0";
    let [one, other] =
        ["from", "to"].map(|of| server.select(&format!("SELECT {what} writes_{of}.t {row}")).remove(0));
    let ttl = |row: &[Option<CqlValue>]| match row[2] {
        Some(CqlValue::Int(ttl)) => ttl,
        _ => panic!("{row:?}"),
    };
    assert_eq!((&one[..2], &one[3..4]), (&other[..2], &other[3..4]));
    assert!(ttl(&one).abs_diff(ttl(&other)) < 20, "{one:?} {other:?}");
    let define = |keyspace: &str| {
        let columns = server.select(&format!(
            "SELECT column_name, clustering_order, kind, position, type FROM system_schema.columns WHERE keyspace_name = '{keyspace}'"
        ));
        format!("{columns:?}")
    };
    assert_eq!(define("writes_from"), define("writes_to"));

    // The same of a file, into a table that is there and has more; twice, which changes nothing but lists.
    let folder = Folder::new();
    let file = folder.path("full.parquet");
    run(["copy", &source, &file, "--quiet"]).succeeded();
    server.run("TRUNCATE writes_to.t");
    server.run("ALTER TABLE writes_to.t ADD more int");
    for _ in 0..2 {
        run(["copy", &file, &to, "--quiet"]).succeeded();
    }
    server.run("ALTER TABLE writes_to.t DROP more");
    let again = server.snapshot("writes_to", "t", "again");
    let without_lists = |source: &str| -> Vec<Value> {
        let mut rows = json(source, &["--mapping", "logical"]);
        rows.iter_mut().filter_map(Value::as_object_mut).for_each(|row| drop(row.remove("li")));
        rows
    };
    assert_eq!(without_lists(&source), without_lists(&again));
}

/// A list as it is bound.
fn bound(list: &[i32]) -> Vec<u8> {
    let count = i32::try_from(list.len()).unwrap();
    let elements = list.iter().flat_map(|element| [4_i32.to_be_bytes(), element.to_be_bytes()]);
    [count.to_be_bytes()].into_iter().chain(elements).flatten().collect()
}

/// A statement that the server has executed, and of which its client does not hear: a list that replaces another is sent again, and has its
/// elements once; elements that are added are not, unless they may be there twice.
#[test]
fn an_answer_to_a_list_is_lost() {
    let Some(server) = Server::connect() else { return };
    server.fresh("writes_lost");
    server.run("CREATE TABLE writes_lost.a (k int PRIMARY KEY, v int, li list<int>)");
    server.run("CREATE TABLE writes_lost.b (k int PRIMARY KEY, v int, li list<int>)");
    let at = |time: i64| BASE_US + time;
    // Replaced, and added to later; only added to.
    server.run(&format!(
        "INSERT INTO writes_lost.a (k, v, li) VALUES (1, 1, [11, 12]) USING TIMESTAMP {}",
        at(1)
    ));
    server.run(&format!("UPDATE writes_lost.a USING TIMESTAMP {} SET li = li + [13] WHERE k = 1", at(2)));
    server.run(&format!("UPDATE writes_lost.a USING TIMESTAMP {} SET li = li + [21] WHERE k = 2", at(3)));
    let source = server.snapshot("writes_lost", "a", "all");
    let fake = marquetry_testing::Scylla::without_shards(&server.at);
    let to = format!("cql://{}/writes_lost.b", fake.at);
    let list = |key: i32| {
        let found = server.select(&format!("SELECT li FROM writes_lost.b WHERE k = {key}"));
        match found.first().and_then(|row| row[0].clone()) {
            Some(CqlValue::List(values)) => {
                values.iter().map(|value| value.as_int().unwrap()).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        }
    };
    for (nth, lost) in [&[11, 12][..], &[13]].into_iter().enumerate() {
        server.run("TRUNCATE writes_lost.b");
        fake.lose_answer_of(bound(lost));
        // One at a time: the answers of other rows are lost with the connection.
        let copied = run(["copy", &source, &to, "--json", "--in-flight", "1"]);
        assert_eq!((copied.code, fake.lost()), (Some(0), nth + 1), "{}", copied.err);
        assert!(!copied.out.contains("\"retries\":0"), "{}", copied.out);
        assert_eq!((list(1), list(2)), (vec![11, 12, 13], vec![21]), "{lost:?}");
        // A microsecond after all that was sent.
        let times = server.select("SELECT writetime(v) FROM writes_lost.b WHERE k = 1");
        assert_eq!(times[0][0], Some(CqlValue::BigInt(at(1))));
    }
    server.run("TRUNCATE writes_lost.b");
    fake.lose_answer_of(bound(&[21]));
    run(["copy", &source, &to, "--quiet", "--in-flight", "1"])
        .failed(3, &["did not acknowledge a row, sent 1 time"]);
    assert_eq!((fake.lost(), list(2)), (3, vec![21]));
    server.run("TRUNCATE writes_lost.b");
    fake.lose_answer_of(bound(&[21]));
    run(["copy", &source, &to, "--quiet", "--in-flight", "1", "--lists-at-least-once"]).succeeded();
    assert_eq!((fake.lost(), list(1), list(2)), (4, vec![11, 12, 13], vec![21, 21]));
}

/// A load that begins anew after an answer was lost knows which rows may have been sent.
#[test]
fn elements_that_may_be_there_are_not_added_again() {
    let Some(server) = Server::connect() else { return };
    server.fresh("writes_unsure");
    server.run("CREATE TABLE writes_unsure.a (k int PRIMARY KEY, v int, li list<int>)");
    server.run("CREATE TABLE writes_unsure.b (k int PRIMARY KEY, v int, li list<int>)");
    server.run(&format!(
        "INSERT INTO writes_unsure.a (k, li) VALUES (1, [11, 12]) USING TIMESTAMP {}",
        BASE_US
    ));
    server.run(&format!("UPDATE writes_unsure.a USING TIMESTAMP {} SET li = li + [21] WHERE k = 2", BASE_US));
    let folder = Folder::new();
    let (source, state) = (server.snapshot("writes_unsure", "a", "all"), folder.path("load.state"));
    let fake = marquetry_testing::Scylla::without_shards(&server.at);
    fake.lose_answer_of(bound(&[21]));
    let to = |at: &str| format!("cql://{at}/writes_unsure.b");
    run(["copy", &source, &to(&fake.at), "--state", &state, "--quiet"]).failed(3, &["did not acknowledge"]);
    let again = to(&server.at);
    let arguments = ["copy", &source, &again, "--state", &state, "--quiet"];
    run(arguments).failed(2, &["was not finished"]);
    let resumed = [&arguments[..], &["--resume"]].concat();
    run(&resumed).failed(1, &["elements are added to the list li here", "--lists-at-least-once"]);
    run([&resumed[..], &["--lists-at-least-once"]].concat()).succeeded();
    let lists = server.select("SELECT k, li FROM writes_unsure.b");
    let list = |values: &[i32]| CqlValue::List(values.iter().copied().map(CqlValue::Int).collect());
    for row in lists {
        match row[..] {
            [Some(CqlValue::Int(1)), Some(ref found)] => assert_eq!(*found, list(&[11, 12])),
            [Some(CqlValue::Int(2)), Some(ref found)] => assert_eq!(*found, list(&[21, 21])),
            _ => panic!("{row:?}"),
        }
    }
    run(arguments).failed(2, &["was finished, with 2 rows"]);
}

/// Whenever a load of writes is killed, it goes on, and what it makes is what the SSTables have.
#[cfg(unix)]
#[test]
fn a_load_of_writes_that_is_killed_goes_on() {
    const ROWS: usize = 30_000;
    let Some(server) = Server::connect() else { return };
    server.fresh("writes_killed");
    for table in ["a", "b"] {
        server.run(&format!(
            "CREATE TABLE writes_killed.{table} (p int, c int, v int, se set<int>, li list<int>, PRIMARY KEY (p, c)) \
             WITH compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}"
        ));
    }
    let folder = Folder::new();
    let json = folder.path("rows.jsonl");
    let lines: String = (0..ROWS)
        .map(|row| {
            let (p, c) = (row / 10, row % 10);
            let list = if c == 3 { format!(",\"li\":[{row},{c}]") } else { String::new() };
            format!("{{\"p\":{p},\"c\":{c},\"v\":{row},\"se\":[{row},7]{list}}}\n")
        })
        .collect();
    std::fs::write(&json, lines).unwrap();
    let from = server.table("writes_killed", "a");
    run(["copy", &json, &from, "--quiet", "--timestamp", &BASE_US.to_string(), "--lists-at-least-once"])
        .succeeded();
    let later = BASE_US + 10_000_000;
    for p in (0..3000).step_by(50) {
        let keys =
            [format!("p = {p} AND c = 1"), format!("p = {p} AND c > 4 AND c < 7"), format!("p = {}", p + 1)];
        for key in keys {
            server.run(&format!("DELETE FROM writes_killed.a USING TIMESTAMP {later} WHERE {key}"));
        }
    }
    let (full, state) = (folder.path("full.parquet"), folder.path("load.state"));
    let source = server.snapshot("writes_killed", "a", "all");
    run(["copy", &source, &full, "--quiet"]).succeeded();

    let to = server.table("writes_killed", "b");
    let arguments = ["copy", &full, &to, "--rate", "3K", "--state", &state, "--resume", "--json"];
    let mut kills = 0;
    loop {
        let mut child = common::marquetry()
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(2300 + 200 * kills));
        if child.try_wait().unwrap().is_some() {
            let ended = common::Run::of(child.wait_with_output().unwrap());
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        assert!(kills < 30);
    }
    assert!(kills >= 2);
    let copied = server.snapshot("writes_killed", "b", "copied");
    assert!(expect_same_rows(&source, &copied) > 28_000);
    // Write times of lists may be some microseconds later, where it was not known whether they were sent.
    let has_no_list = |row: &Value| row["c"] != 3;
    assert!(expect_same_writes(&source, &copied, has_no_list) > 26_000);
    let again = run(arguments);
    assert!(
        again.out.contains("\"rows_written\":0") && again.err.contains("was finished before"),
        "{}",
        again.err
    );
    // Rows of a SELECT are those of a time.
    run(["copy", &source, &to, "--mapping", "logical", "--state", &folder.path("other.state")])
        .failed(2, &["--state with --mapping logical needs --at TIME"]);
}

/// What the server does not take goes to a file of the mapping, which can be loaded again; ranges of deleted rows, which are two rows, end the load.
#[test]
fn writes_that_are_rejected_are_kept() {
    let Some(server) = Server::connect() else { return };
    server.fresh("writes_rejected");
    let columns = "(p int, c text, v text, PRIMARY KEY (p, c))";
    for table in ["a", "b"] {
        server.run(&format!("CREATE TABLE writes_rejected.{table} {columns}"));
    }
    // An index takes no value of 64 KiB and more.
    server.run("CREATE INDEX ON writes_rejected.b (v)");
    let long = "x".repeat(70_000);
    for (p, v) in [(1, "one"), (2, &*long), (3, "three"), (4, &*long), (5, "five")] {
        server.run(&format!(
            "INSERT INTO writes_rejected.a (p, c, v) VALUES ({p}, 'c', '{v}') USING TIMESTAMP {}",
            BASE_US + p
        ));
    }
    server.run(&format!("DELETE FROM writes_rejected.a USING TIMESTAMP {BASE_US} WHERE p = 3 AND c > 'd'"));
    let source = server.snapshot("writes_rejected", "a", "all");
    let folder = Folder::new();
    let to = server.table("writes_rejected", "b");
    let count = || server.select("SELECT p FROM writes_rejected.b").len();
    run(["copy", &source, &to, "--quiet"]).failed(1, &["the cluster rejected a row, sent 1 time"]);
    let (few, bad) = (folder.path("few.parquet"), folder.path("bad.parquet"));
    run(["copy", &source, &to, "--rejects", &few, "--max-errors", "1"])
        .failed(1, &["2 rows were rejected, and 1 may be"]);
    let state = folder.path("load.state");
    let arguments = ["copy", &source, &to, "--rejects", &bad, "--state", &state, "--resume"];
    let loaded = run(arguments);
    assert_eq!(loaded.code, Some(0), "{}", loaded.err);
    assert!(loaded.err.contains("2 rows were rejected: see "), "{}", loaded.err);
    assert_eq!(count(), 3);
    let kept = json(&bad, &[]);
    assert_eq!(kept.len(), 2);
    for row in &kept {
        assert!([2, 4].contains(&row["p"].as_i64().unwrap()) && row["v"] == *long, "{}", row["p"]);
        assert!(row["error"].as_str().unwrap().contains("the cluster rejected a row"), "{}", row["error"]);
    }
    // Nothing is loaded or rejected a second time.
    let again = run(arguments);
    assert!(again.err.contains("was finished before") && !again.err.contains("rejected"), "{}", again.err);
    // Mended: the file itself is loaded, with the write times that the rows had.
    server.run("DROP INDEX writes_rejected.b_v_idx");
    run(["copy", &bad, &to, "--quiet"]).succeeded();
    let copied = server.snapshot("writes_rejected", "b", "copied");
    assert_eq!(expect_same_writes(&source, &copied, |_| true), 7);
    // What becomes of writes with one key is said.
    let twice = run(["copy", &bad, &bad, &to]);
    assert_eq!(twice.code, Some(0), "{}", twice.err);
    let said = "4 writes of rows were sent; they have 2 different keys: those with one key are one row, merged by their write times";
    assert!(twice.err.contains(said), "{}", twice.err);
}

#[test]
fn what_does_not_fit_is_found_before_a_row_is_sent() {
    let Some(server) = Server::connect() else { return };
    let source = everything(&server, "writes_misfit");
    server.fresh("writes_other");
    let to = server.table("writes_other", "t");
    run(["copy", &source, &to]).failed(1, &["no table writes_other.t", "--create creates it"]);
    server.run("CREATE TYPE writes_other.addr (street text)");
    server.run(
        "CREATE TABLE writes_other.t (pk int, c1 text, c2 int, a text, un addr, PRIMARY KEY ((pk, c1), c2))",
    );
    run(["copy", &source, &to]).failed(
        1,
        &[
            "c2 is int, expected bigint",
            "a is text, expected int",
            "missing column d",
            "PRIMARY KEY is ((pk, c1), c2), expected (pk, c1, c2 DESC)",
            "the type addr exists with a different definition: missing field zip",
            "--mapping logical",
        ],
    );
    run(["copy", &source, &to, "--create"]).failed(1, &["exists with a different definition"]);
    assert_eq!(server.select("SELECT pk FROM writes_other.t").len(), 0);
    run(["copy", &source, &to, "--mapping", "verbatim"]).failed(1, &["verbatim are partitions"]);
    run(["copy", &source, &to, "--mapping", "full", "--create", "--key", "pk"]).failed(2, &["--key"]);
    // A range whose end is left out, and what would be written as of now.
    server.fresh("writes_other");
    for (option, value, said) in [
        ("--where", "mutation.kind <> 'range_end'", "columns of the partition key can be asked for (pk)"),
        ("--where", "pk > 3 AND c1 = 'a'", "columns of the partition key can be asked for (pk)"),
        ("--map", "pk=pk", "write times, TTLs and deletions would be lost"),
        ("--columns", "pk,c1,c2", "write times, TTLs and deletions would be lost"),
    ] {
        run(["copy", &source, &to, "--create", option, value]).failed(2, &[said, "--mapping logical"]);
    }
    run(["copy", &source, &to, "--create", "--where", "pk > 3", "--quiet"]).succeeded();
    let partitions = server.select("SELECT DISTINCT pk FROM writes_other.t");
    assert!(partitions.len() > 5 && partitions.iter().all(|row| matches!(row[0], Some(CqlValue::Int(4..)))));
}

/// A table is made as its definition has it, and a partition that has only static values is one.
#[test]
fn rows_of_a_select_are_copied_into_a_table_that_is_the_same() {
    let Some(server) = Server::connect() else { return };
    server.fresh("writes_rows");
    let table = "(pk int, c text, st text static, v int, se set<text>, li list<int>, PRIMARY KEY (pk, c)) WITH CLUSTERING ORDER BY (c DESC)";
    server.run(&format!("CREATE TABLE writes_rows.t {table}"));
    for (pk, c) in [(1, "a"), (1, "b"), (2, "a")] {
        server.run(&format!(
            "INSERT INTO writes_rows.t (pk, c, st, v, se, li) VALUES ({pk}, '{c}', 'of {pk}', 3, {{'x', 'y'}}, [1, 1])"
        ));
    }
    server.run("UPDATE writes_rows.t SET st = 'alone' WHERE pk = 3");
    let source = server.snapshot("writes_rows", "t", "all");
    for more in [&["--create"][..], &["--create", "--nulls", "null"], &[]] {
        let to = server.table("writes_rows", "copy");
        let said = run([&["copy", &source, &to, "--mapping", "logical"], more].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.starts_with("4 rows loaded"), "{}", said.out);
        let copy = server.snapshot("writes_rows", "copy", &format!("copy{}", more.len()));
        assert_eq!(expect_same_rows(&source, &copy), 4);
    }
    let order = server.select("SELECT clustering_order FROM system_schema.columns WHERE keyspace_name = 'writes_rows' AND table_name = 'copy' AND column_name = 'c'");
    assert_eq!(order, [[Some(CqlValue::Text("desc".to_owned()))]]);
    let alone = server.select("SELECT st, c FROM writes_rows.copy WHERE pk = 3");
    assert_eq!(alone, [[Some(CqlValue::Text("alone".to_owned())), None]]);
}

/// The tables of the fixtures, which have no `schema.cql`.
const FIXTURES: [(&str, &str); 4] = [
    (
        "mix",
        "CREATE TYPE ks.addr (street text, zip int, tags frozen<set<text>>);
         CREATE TABLE ks.mix (pk int, ck1 text, ck2 bigint, st text static, v_bool boolean, v_int int, v_big bigint, v_si smallint, v_ti tinyint,
         v_f float, v_d double, v_dec decimal, v_vi varint, v_text text, v_ascii ascii, v_blob blob, v_ts timestamp, v_date date, v_time time,
         v_dur duration, v_uuid uuid, v_tu timeuuid, v_inet inet, li list<int>, se set<text>, ma map<text, int>, fl frozen<list<int>>,
         fm frozen<map<text, frozen<set<int>>>>, tu frozen<tuple<int, text, double>>, u frozen<addr>, un addr, PRIMARY KEY (pk, ck1, ck2))
         WITH CLUSTERING ORDER BY (ck1 ASC, ck2 DESC);",
    ),
    ("wide", "CREATE TABLE ks.wide (pk text, ck int, st int static, v text, b blob, PRIMARY KEY (pk, ck));"),
    ("simple", "CREATE TABLE ks.simple (id bigint PRIMARY KEY, a int, b text, c double, d timestamp);"),
    ("cnt", "CREATE TABLE ks.cnt (pk int, ck int, c1 counter, c2 counter, PRIMARY KEY (pk, ck));"),
];

#[test]
fn fixtures_are_copied() {
    let (Some(server), Some(folders)) = (Server::connect(), marquetry_testing::sstables()) else { return };
    let named = Folder::new();
    let mut copied = 0;
    for entry in std::fs::read_dir(&folders[0]).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        server.fresh("writes_fixtures");
        for (table, schema) in FIXTURES {
            let to = server.table("writes_fixtures", table);
            let nameless = format!("sstable:{}", folder.join(table).display());
            run(["copy", &nameless, &to, "--create", "--quiet"])
                .failed(2, &["are not known (pk0", "--schema FILE"]);
            let beside = named.path(&format!("{}-{table}", folder.file_name().unwrap().display()));
            std::fs::create_dir(&beside).unwrap();
            for file in std::fs::read_dir(folder.join(table)).unwrap().map(Result::unwrap) {
                std::fs::copy(file.path(), Path::new(&beside).join(file.file_name())).unwrap();
            }
            std::fs::write(Path::new(&beside).join("schema.cql"), schema).unwrap();
            let source = format!("sstable:{beside}");
            let load = run(["copy", &source, &to, "--create", "--quiet"]);
            if table == "cnt" {
                load.failed(1, &["the counter \"c1\"", "--mapping logical"]);
                continue;
            }
            load.succeeded();
            let copy = server.snapshot("writes_fixtures", table, "copied");
            assert!(expect_same_rows(&source, &copy) > 0, "{source}");
            copied += 1;
        }
    }
    assert!(copied >= 3, "no fixtures");
}

/// A row of small numbers, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A statement about a table of which much is at the same place and time.
fn statement(random: &mut Random, table: &str) -> String {
    let mut below = |bound| random.below(bound);
    let (number, text) = (below(3), ["", "x", "xy"][usize::try_from(below(3)).unwrap()]);
    let partition = format!("pk = {}", below(4));
    let prefix = format!("{partition} AND c1 = {}", below(3));
    let row = format!("{prefix} AND c2 = '{}'", ["", "x", "xy"][usize::try_from(below(3)).unwrap()]);
    // What expires does so before the copy, or long after it.
    let ttl = ["", "", " AND TTL 1", " AND TTL 100000"][usize::try_from(below(4)).unwrap()];
    let time = below(30);
    let set = match below(13) {
        0 => format!("a = {number}"),
        1 => format!("b = '{text}', a = {number}"),
        2 => format!("l = [{number}, 7]"),
        3 => format!("l = l + [{number}]"),
        4 => format!("l = [{number}] + l"),
        5 => format!("m = {{'{text}': {number}, 'z': 1}}"),
        6 => format!("m['{text}'] = {number}"),
        7 => format!("m = m - {{'{text}'}}"),
        8 => format!("n = n + {{{number}, -1}}"),
        9 => format!("n = n - {{{number}}}"),
        10 => format!("u.x = {number}"),
        11 => format!("u = {{x: {number}, y: '{text}'}}"),
        _ => "a = null, m = null, u = null".to_owned(),
    };
    let delete =
        |what: &str, of: &str| format!("DELETE {what} FROM {table} USING TIMESTAMP {time} WHERE {of}");
    match below(20) {
        0 => delete("", &partition),
        1 => delete("", &prefix),
        2 => delete(
            "",
            &format!("{partition} AND c1 {} {number}", [">", ">=", "<"][usize::try_from(number).unwrap()]),
        ),
        3 => delete("", &format!("{prefix} AND c2 > '{text}' AND c2 <= 'xy'")),
        4 => delete("", &row),
        5 => delete("a, b, l", &row),
        6 => delete(&format!("n[{number}], u.y, m['{text}']"), &row),
        7 => format!(
            "UPDATE {table} USING TIMESTAMP {time}{ttl} SET s = {number}, sm['{text}'] = {number} WHERE {partition}"
        ),
        8 => delete("s, sm", &partition),
        9..14 => format!("UPDATE {table} USING TIMESTAMP {time}{ttl} SET {set} WHERE {row}"),
        _ => {
            let (pk, c1) = (below(4), below(3));
            format!(
                "INSERT INTO {table} (pk, c1, c2, a, b, n, l) VALUES ({pk}, {c1}, '{text}', {number}, '{text}', {{{number}}}, [4, 5]) \
                 USING TIMESTAMP {time}{ttl}"
            )
        }
    }
}

/// Statements that nobody thought of: a SELECT returns the same of the copy.
#[test]
fn random_writes_are_copied() {
    let Some(server) = Server::connect() else { return };
    server.fresh("writes_random");
    server.fresh("writes_random_to");
    server.run("CREATE TYPE writes_random.pair (x int, y text)");
    let mut random = Random(7);
    for (number, order) in ["c1 ASC, c2 ASC", "c1 DESC, c2 ASC", "c1 ASC, c2 DESC"].iter().enumerate() {
        let (name, table) = (format!("t{number}"), format!("writes_random.t{number}"));
        server.run(&format!(
            "CREATE TABLE {table} (pk int, c1 int, c2 text, s int static, sm map<text, int> static, a int, b text, l list<int>, \
             m map<text, int>, n set<int>, u pair, PRIMARY KEY (pk, c1, c2)) WITH CLUSTERING ORDER BY ({order}) \
             AND compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}"
        ));
        for _ in 0..3 {
            (0..60).for_each(|_| server.run(&statement(&mut random, &table)));
            server.flush("writes_random");
        }
        std::thread::sleep(Duration::from_secs(2));
        let source = server.snapshot("writes_random", &name, "all");
        run(["copy", &source, &server.table("writes_random_to", &name), "--create", "--quiet"]).succeeded();
        let copy = server.snapshot("writes_random_to", &name, "copied");
        assert!(expect_same_rows(&source, &copy) > 0);
    }
}

/// Each flush of a table, made a file by `watch`: all of them together are the table again, as SSTables and in another table.
#[test]
fn what_watch_made_of_flushes_is_copied_together() {
    let Some(server) = Server::connect() else { return };
    server.fresh("writes_flushed");
    server.fresh("writes_flushed_to");
    server.run("CREATE TYPE writes_flushed.pair (x int, y text)");
    server.run(
        "CREATE TABLE writes_flushed.t (pk int, c1 int, c2 text, s int static, sm map<text, int> static, a int, b text, l list<int>, \
         m map<text, int>, n set<int>, u pair, PRIMARY KEY (pk, c1, c2)) \
         WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}",
    );
    let folder = Folder::new();
    let (data, work) =
        (server.directory.join("data/data"), server.directory.join("data/work-writes-flushed"));
    let _ = std::fs::remove_dir_all(&work);
    let mut random = Random(11);
    for round in 0..4 {
        if round == 3 {
            server.run("ALTER TABLE writes_flushed.t ADD added text");
            server.run("INSERT INTO writes_flushed.t (pk, c1, c2, added) VALUES (1, 1, 'x', 'later')");
        }
        for _ in 0..60 {
            server.run(&statement(&mut random, "writes_flushed.t"));
        }
        server.flush("writes_flushed");
        let [data, work] = [&data, &work].map(|path| path.to_str().unwrap());
        let lake = folder.path("lake");
        let watch = [
            "watch",
            data,
            "--to",
            &lake,
            "--work",
            work,
            "--table",
            "writes_flushed.t",
            "--once",
            "--quiet",
        ];
        run(watch).succeeded();
    }
    let _ = std::fs::remove_dir_all(&work);
    std::thread::sleep(Duration::from_secs(2));
    let source = server.snapshot("writes_flushed", "t", "all");
    let lake = std::fs::read_dir(folder.path("lake/writes_flushed")).unwrap().next().unwrap().unwrap().path();
    // A file of each, and of what the server flushes by itself when its memory is short.
    assert!(std::fs::read_dir(&lake).unwrap().count() >= 4);
    let files = lake.join("*.parquet").to_str().unwrap().to_owned();
    let restored = format!("sstable:{}", folder.path("restored"));
    run(["copy", &files, &restored, "--format", "nb", "--quiet"]).succeeded();
    assert!(expect_same_writes(&source, &restored, |_| true) > 20);
    run(["copy", &files, &server.table("writes_flushed_to", "t"), "--create", "--quiet"]).succeeded();
    let copy = server.snapshot("writes_flushed_to", "t", "copied");
    assert!(expect_same_rows(&source, &copy) > 0);
}
