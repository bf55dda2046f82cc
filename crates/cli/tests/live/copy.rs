//! `marquetry copy` into a real server, which `MARQUETRY_CASSANDRA=HOST:PORT` names.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use marquetry_testing::{Break, Proxy};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::value::{CqlValue, Row};

use crate::common::{self, Folder, Run, corpus, data, run};

/// A connection beside the command's own, to look at what it did.
struct Server {
    address: String,
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Server {
    /// `None`, said aloud, when there is no server.
    fn connect() -> Option<Server> {
        let address = marquetry_testing::cassandra()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let session =
            runtime.block_on(SessionBuilder::new().known_node(&address).build()).expect("the server answers");
        Some(Server { address, runtime, session })
    }

    /// The keyspace, empty, and the address of a table in it.
    fn fresh(&self, keyspace: &str, table: &str) -> String {
        self.rows(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
        self.rows(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        format!("cql://{}/{keyspace}.{table}", self.address)
    }

    fn rows(&self, statement: &str) -> Vec<Vec<Option<CqlValue>>> {
        let ask = || {
            let answer = self.runtime.block_on(self.session.query_unpaged(statement, ()));
            answer.map_err(|error| error.to_string())
        };
        // On a busy machine the server may not answer in its five seconds. Reading again changes nothing.
        let tries = if statement.starts_with("SELECT") { 5 } else { 1 };
        let answer = (1..tries).find_map(|_| ask().ok()).map_or_else(ask, Ok).expect(statement);
        match answer.into_rows_result() {
            Ok(rows) => rows.rows::<Row>().unwrap().map(|row| row.unwrap().columns).collect(),
            Err(_) => Vec::new(),
        }
    }
}

#[test]
fn a_table_is_made_and_loaded_and_loaded_again() {
    let Some(server) = Server::connect() else { return };
    let to = server.fresh("marquetry_cli_types", "types");
    let path = data("types.parquet");
    let copy = |more: &[&str]| run([&["copy", path.as_str(), to.as_str()], more].concat());

    copy(&[]).failed(1, &["no table marquetry_cli_types.types", "--create creates it"]);
    let out = copy(&["--create", "--key", "id"]).succeeded();
    assert!(
        out.starts_with("3 rows loaded into cql://") && out.contains("/marquetry_cli_types.types in "),
        "{out}"
    );

    let rows =
        server.rows("SELECT id, day, double, \"nan\", \"Text\", price, at_us FROM marquetry_cli_types.types");
    let row = |id: i32| rows.iter().find(|row| row[0] == Some(CqlValue::Int(id))).expect("the row").clone();
    assert_eq!(rows.len(), 3);
    assert_eq!(row(1)[2], Some(CqlValue::Double(0.1 + 0.2)));
    assert_eq!(row(1)[4], Some(CqlValue::Text("it's".to_string())));
    assert_eq!(row(1)[6], Some(CqlValue::BigInt(1_709_175_845_678_901)));
    assert_eq!(row(2)[2], Some(CqlValue::Double(f64::INFINITY)));
    assert!(matches!(row(2)[3], Some(CqlValue::Double(nan)) if nan.is_nan()));
    let Some(CqlValue::Date(day)) = row(1)[1] else { panic!("no date") };
    // 2024-02-29 is day 19,782 after 1970-01-01, which is day 2^31.
    assert_eq!(day.0, (1 << 31) + 19_782);
    let Some(CqlValue::Decimal(price)) = row(2)[5].clone() else { panic!("no decimal") };
    assert_eq!(price.as_signed_be_bytes_slice_and_exponent(), (&[0xff][..], 2));
    assert_eq!(row(3)[1..], vec![None; 6]);

    // The key of a table that is there is known.
    assert!(copy(&[]).succeeded().starts_with("3 rows"));
    let again = copy(&["--create", "--key", "id"]);
    assert_eq!((again.code, again.err.contains("already exists")), (Some(0), true), "{}", again.err);
    copy(&["--create", "--key", "big"])
        .failed(1, &["exists with a different definition", "PRIMARY KEY is (id), expected (big)"]);
    copy(&["--timestamps-as", "millis"]).failed(1, &["at_us", "bigint"]);
    assert_eq!(server.rows("SELECT id FROM marquetry_cli_types.types").len(), 3);
    server.rows("DROP KEYSPACE marquetry_cli_types");
}

#[test]
fn nested_columns_are_copied() {
    let Some(server) = Server::connect() else { return };
    let to = server.fresh("marquetry_cli_nested", "t");
    let path = data("nested_cql.parquet");
    let copy = |more: &[&str]| run([&["copy", path.as_str(), to.as_str()], more].concat());
    let create = ["--create", "--key", "id", "--columns", "id,stops,Place,tags", "--as-set", "tags"];
    copy(&create).failed(1, &["a null in a set", "(column tags[1], row 2)", "rows had been loaded"]);
    // The table is there: its types are known.
    let dropped = ["--columns", "id,stops,Place,tags", "--null-elements", "drop"];
    let out = copy(&dropped).succeeded();
    assert!(
        out.starts_with("3 rows loaded into cql://") && out.contains("/marquetry_cli_nested.t in "),
        "{out}"
    );
    let texts =
        |texts: &[&str]| texts.iter().map(|text| CqlValue::Text((*text).to_owned())).collect::<Vec<_>>();
    let tags = |id: i32| {
        server.rows(&format!("SELECT tags FROM marquetry_cli_nested.t WHERE id = {id}")).remove(0).remove(0)
    };
    assert_eq!(tags(0), Some(CqlValue::Set(texts(&["a", "b"]))));
    assert_eq!(tags(1), None);
    assert_eq!(tags(2), Some(CqlValue::Set(texts(&["x"]))));
    let place = server.rows("SELECT \"Place\" FROM marquetry_cli_nested.t WHERE id = 0").remove(0).remove(0);
    let Some(CqlValue::UserDefinedType { name, fields, .. }) = place else { panic!("{place:?}") };
    assert_eq!(name, "t_place");
    let lists = vec![CqlValue::List(texts(&["b", "a"])), CqlValue::List(Vec::new())];
    assert_eq!(fields[0], ("lat".to_owned(), Some(CqlValue::Double(1.5))));
    assert_eq!(fields[1], ("tags".to_owned(), Some(CqlValue::List(lists))));
    // A type that is another, before anything is made.
    server.rows("CREATE TYPE marquetry_cli_nested.u_place (lat double)");
    let other = format!("cql://{}/marquetry_cli_nested.u", server.address);
    let error = run([&["copy", path.as_str(), &other], &create[..], &["--null-elements", "drop"]].concat());
    error.failed(1, &["the type u_place exists with a different definition: missing field tags"]);
    assert!(
        server
            .rows("SELECT type_name FROM system_schema.types WHERE keyspace_name = 'marquetry_cli_nested'")
            .len()
            == 4
    );
    server.rows("DROP KEYSPACE marquetry_cli_nested");
}

/// Files that others made: what is loaded is what the statements write.
#[test]
fn nested_columns_of_the_corpus_are_copied() {
    let Some(server) = Server::connect() else { return };
    server.fresh("marquetry_cli_corpus", "t");
    for (at, name) in [
        "data/incorrect_map_schema",
        "data/list_columns",
        "data/map_no_value",
        "data/nested_lists.snappy",
        "data/nested_maps.snappy",
        "data/nested_structs.rust",
        "data/nonnullable.impala",
        "data/null_list",
        "data/nullable.impala",
        "data/old_list_structure",
        "data/repeated_no_annotation",
        "data/repeated_primitive_no_list",
        "shredded_variant/case-045",
        "shredded_variant/case-126",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(path) = corpus(&format!("parquet-testing/{name}.parquet")) else { return };
        let table = |how: &str| format!("marquetry_cli_corpus.{how}_{at}");
        let options = ["--key-row-number", "row", "--null-elements", "drop", "--frozen"];
        // Of its columns all are alike, and making a type takes a server its time.
        let few: &[&str] = if name.contains("structs") { &["--columns", "roll_num,BIA_3"] } else { &[] };
        let options = [&options[..], few].concat();
        let to = format!("cql://{}/{}", server.address, table("loaded"));
        run([&["copy", path.as_str(), &to, "--create"], &options[..]].concat()).succeeded();
        let printed = table("printed");
        let text = run([&["cql", path.as_str(), "--table", &printed], &options[..]].concat()).succeeded();
        // None of these files has a semicolon at the end of a line within a text.
        text.split_inclusive(";\n").for_each(|statement| drop(server.rows(statement)));
        let [loaded, printed] = ["loaded", "printed"].map(|how| {
            let rows = server.rows(&format!("SELECT * FROM {}", table(how)));
            assert!(!rows.is_empty(), "{name}");
            // The types are called by the table.
            format!("{rows:?}").replace(how, "")
        });
        assert_eq!(loaded, printed, "{name}");
    }
    server.rows("DROP KEYSPACE marquetry_cli_corpus");
}

#[test]
fn files_are_loaded_one_after_the_other() {
    let Some(server) = Server::connect() else { return };
    let to = server.fresh("marquetry_cli_files", "\"Files\"");
    let (one, reordered) = (data("one.parquet"), data("reordered.parquet"));
    let files = ["copy", &one, &reordered, &one, &to, "--create", "--key-row-number", "n"];
    let out = run([&files[..], &["--limit", "4"]].concat()).succeeded();
    assert!(
        out.starts_with("4 rows loaded into cql://") && out.contains("/marquetry_cli_files.\"Files\""),
        "{out}"
    );
    let mut rows: Vec<(i64, i64)> = server
        .rows("SELECT n, a FROM marquetry_cli_files.\"Files\"")
        .iter()
        .map(|row| match (&row[0], &row[1]) {
            (Some(CqlValue::BigInt(n)), Some(CqlValue::BigInt(a))) => (*n, *a),
            other => panic!("{other:?}"),
        })
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, [(0, 1), (1, 2), (2, 3), (3, 1)]);

    // What was loaded before an error is said.
    let to = server.fresh("marquetry_cli_files", "texts");
    let bad = data("bad_text.parquet");
    let error = run(["copy", &bad, &to, "--create", "--key", "id", "--quiet"]);
    error.failed(1, &[&bad, "column text", "row 2", "rows had been loaded"]);
    server.rows("DROP KEYSPACE marquetry_cli_files");
}

/// Delimited text and JSON lines are tables as any other: what is read back is what stands there.
#[test]
fn text_is_copied_into_a_live_table() {
    let Some(server) = Server::connect() else { return };
    let to = server.fresh("marquetry_cli_text", "c");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let number = |row: &[Option<CqlValue>]| match row[0] {
        Some(CqlValue::BigInt(id)) => id,
        ref other => panic!("{other:?}"),
    };
    let table = |statement: &str| {
        let mut rows = server.rows(statement);
        rows.sort_by_key(|row| number(row));
        rows
    };
    let text = |text: &str| Some(CqlValue::Text(text.to_owned()));
    let date = |days: u32| Some(CqlValue::Date(scylla::value::CqlDate((1 << 31) + days)));

    let csv = "id,name,day,ratio,ok,zip\n1,\"it's, \"\"é\"\"\n\",2024-02-29,0.5,true,007\n2,,,,,\n3,\"\",1970-01-02,-1e-3,false,x\n";
    let from = file("c.csv", csv);
    let out = run(["copy", &from, &to, "--create", "--key", "id"]).succeeded();
    assert!(
        out.starts_with("3 rows loaded into cql://") && out.contains("/marquetry_cli_text.c in "),
        "{out}"
    );
    let rows = table("SELECT id, name, day, ratio, ok, zip FROM marquetry_cli_text.c");
    assert_eq!(
        rows[0][1..],
        [
            text("it's, \"é\"\n"),
            date(19_782),
            Some(CqlValue::Double(0.5)),
            Some(CqlValue::Boolean(true)),
            text("007")
        ]
    );
    assert_eq!(rows[1][1..], vec![None; 5]);
    assert_eq!(
        rows[2][1..],
        [text(""), date(1), Some(CqlValue::Double(-0.001)), Some(CqlValue::Boolean(false)), text("x")]
    );

    let lines = [
        r#"{"id":1,"tags":["a","é"],"place":{"x":1.5,"y":"\n"},"marks":{"k":2,"l":-3},"at":"2024-02-29T12:00:00.123Z"}"#,
        r#"{"place":{"y":"z"},"id":2,"marks":{}}"#,
    ];
    let from = file("j.jsonl", &lines.join("\n"));
    let to = format!("cql://{}/marquetry_cli_text.j", server.address);
    let schema =
        "id bigint, tags list<text>, place struct<x double, y text>, marks map<text, int>, at timestamp";
    let out = run(["copy", &from, &to, "--create", "--key", "id", "--schema", schema]).succeeded();
    assert!(
        out.starts_with("2 rows loaded into cql://") && out.contains("/marquetry_cli_text.j in "),
        "{out}"
    );
    let rows = table("SELECT id, tags, place, marks, at FROM marquetry_cli_text.j");
    assert_eq!(rows[0][1], Some(CqlValue::List([text("a"), text("é")].into_iter().flatten().collect())));
    let place = |row: &[Option<CqlValue>]| match &row[2] {
        Some(CqlValue::UserDefinedType { name, fields, .. }) => (name.clone(), fields.clone()),
        other => panic!("{other:?}"),
    };
    let fields = |x, y| vec![("x".to_owned(), x), ("y".to_owned(), y)];
    assert_eq!(place(&rows[0]), ("j_place".to_owned(), fields(Some(CqlValue::Double(1.5)), text("\n"))));
    assert_eq!(place(&rows[1]).1, fields(None, text("z")));
    let marks =
        [("k", 2), ("l", -3)].map(|(key, mark)| (CqlValue::Text(key.to_owned()), CqlValue::Int(mark)));
    assert_eq!(rows[0][3], Some(CqlValue::Map(marks.to_vec())));
    assert_eq!(rows[0][4], Some(CqlValue::Timestamp(scylla::value::CqlTimestamp(1_709_208_000_123))));
    // Of nothing Cassandra keeps nothing: an empty map is none.
    assert_eq!((&rows[1][1], &rows[1][3], &rows[1][4]), (&None, &None, &None));

    // An object may be a group or a map: its type says so.
    run(["copy", &from, &to]).failed(1, &["map<text, int>", "column marks", "--types COLUMN=TYPE"]);
    run(["copy", &from, &to, "--types", "marks=map<text, int>"]).succeeded();
    assert_eq!(
        table("SELECT id, marks FROM marquetry_cli_text.j")[0][1],
        Some(CqlValue::Map(marks.to_vec()))
    );

    // What does not fit is refused with its line.
    let from = file("bad.jsonl", "{\"id\":3}\n{\"id\":\"x\"}\n");
    run(["copy", &from, &to, "--schema", "id bigint"]).failed(1, &["bad.jsonl", "line 2"]);
    server.rows("DROP KEYSPACE marquetry_cli_text");
}

/// Presses Ctrl-C; what the command said, at once.
fn interrupted(child: Child) -> Run {
    let pressed = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(pressed.unwrap().success());
    let at = Instant::now();
    let run = Run::of(child.wait_with_output().unwrap());
    assert!(at.elapsed() < Duration::from_millis(900), "{:?}: {}", at.elapsed(), run.err);
    run
}

fn started(arguments: &[&str]) -> Child {
    common::marquetry().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Ctrl-C ends the command at once, whatever the server does.
#[cfg(unix)]
#[test]
fn ctrl_c_does_not_wait_to_connect() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("cql://{}/k.t", silent.local_addr().unwrap());
    let child = started(&["copy", &data("one.parquet"), &to]);
    // It waits for an answer.
    let _connection = silent.accept().unwrap();
    interrupted(child).failed(130, &["interrupted"]);
}

/// Rows of many numbers, of which a copy takes a while.
fn many_rows(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("many.csv");
    let lines: String = (0..100_000).map(|n| format!("{n},{}\n", n % 7)).collect();
    std::fs::write(&path, format!("id,v\n{lines}")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Rows in flight are not waited for either; those that were acknowledged are counted.
#[cfg(unix)]
#[test]
fn ctrl_c_does_not_wait_for_rows_in_flight() {
    let Some(server) = Server::connect() else { return };
    server.fresh("marquetry_cli_silent", "t");
    server.rows("CREATE TABLE marquetry_cli_silent.t (id bigint PRIMARY KEY, v bigint)");
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(&server.address, 200_000, Break::Silent);
    let child =
        started(&["copy", &many_rows(&folder), &format!("cql://{}/marquetry_cli_silent.t", proxy.at)]);
    while proxy.breaks() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(200));
    let said = interrupted(child);
    said.failed(130, &["interrupted; ", " rows had been loaded"]);
    server.rows("DROP KEYSPACE marquetry_cli_silent");
}

/// A server that is gone can be tried again later, which the exit code says; a row that the server refuses cannot.
#[test]
fn exit_codes_tell_a_lost_server_from_a_refused_row() {
    let Some(server) = Server::connect() else { return };
    let refusing = server.fresh("marquetry_cli_codes", "refused");
    server.rows("CREATE TABLE marquetry_cli_codes.t (id bigint PRIMARY KEY, v bigint)");
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(&server.address, 200_000, Break::Gone);
    let to = format!("cql://{}/marquetry_cli_codes.t", proxy.at);
    run(["copy", &many_rows(&folder), &to, "--retry-for", "2s"])
        .failed(3, &["many.csv: the cluster did not acknowledge a row, sent ", " rows had been loaded"]);

    // A clustering key has at most 65,535 bytes.
    let path = folder.path().join("long.csv");
    std::fs::write(&path, format!("k,c\n1,{}\n", "x".repeat(70_000))).unwrap();
    run(["copy", path.to_str().unwrap(), &refusing, "--create", "--key", "k, c"]).failed(
        1,
        &[
            "long.csv: line 2: the cluster rejected a row, sent 1 time: ",
            "(row 0)",
            "; 0 rows had been loaded",
        ],
    );
    server.rows("DROP KEYSPACE marquetry_cli_codes");
}

/// Whenever a load is killed, it goes on, and loses nothing; once it is finished, it is not repeated.
#[cfg(unix)]
#[test]
fn a_load_that_is_killed_goes_on() {
    let Some(server) = Server::connect() else { return };
    let to = server.fresh("marquetry_cli_killed", "t");
    // Numbers of a CSV are bigint.
    server.rows("CREATE TABLE marquetry_cli_killed.t (key int PRIMARY KEY, v tinyint)");
    let folder = tempfile::tempdir().unwrap();
    let (from, state) = (many_rows(&folder), folder.path().join("load.state"));
    let state = state.to_str().unwrap();
    let arguments = ["copy", &from, &to, "--map", "key=id", "--rate", "20K", "--state", state, "--resume"];
    let mut kills = 0;
    loop {
        let mut child = started(&arguments);
        std::thread::sleep(Duration::from_millis(2300 + 150 * kills));
        if child.try_wait().unwrap().is_some() {
            let out = Run::of(child.wait_with_output().unwrap()).succeeded();
            assert!(out.contains(" rows loaded into cql://"), "{out}");
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        assert!(kills < 30);
    }
    assert!(kills >= 2);
    let kept = std::fs::read_to_string(state).unwrap();
    let first = kept.lines().find_map(|line| line.strip_prefix("first-write-time ")).unwrap();
    let first: i64 = first.parse().unwrap();
    let mut rows: Vec<(i32, i8, i64)> = server
        .rows("SELECT key, v, writetime(v) FROM marquetry_cli_killed.t")
        .iter()
        .map(|row| match row[..] {
            [Some(CqlValue::Int(key)), Some(CqlValue::TinyInt(v)), Some(CqlValue::BigInt(at))] => {
                (key, v, at - first)
            }
            _ => panic!("{row:?}"),
        })
        .collect();
    rows.sort_unstable();
    let expected: Vec<(i32, i8, i64)> =
        (0..100_000).map(|n| (n, i8::try_from(n % 7).unwrap(), i64::from(n))).collect();
    assert!(rows == expected, "{} rows after {kills} kills", rows.len());
    let again = run(&arguments[..arguments.len() - 1]);
    again.failed(2, &["was finished, with 100000 rows; remove it to load them again"]);
    let out = run(arguments);
    assert!(
        out.err.contains("note: this load was finished before") && out.out.starts_with("0 rows loaded"),
        "{}",
        out.err
    );
    // With other rows it is another load.
    run([&arguments[..], &["--where", "v = 1"]].concat()).failed(2, &["has the state of a load w"]);
    run(["copy", "-", &to, "--from", "csv", "--state", state]).failed(2, &["--state is for files"]);
    run([&arguments[..], &["--rejects", state]].concat())
        .failed(2, &["--state and --rejects are the same file"]);
    // So it is with others of the same size.
    let mut bytes = std::fs::read(&from).unwrap();
    let last = bytes.iter().rposition(u8::is_ascii_digit).unwrap();
    bytes[last] = b'0' + (bytes[last] - b'0' + 1) % 7;
    std::fs::write(&from, bytes).unwrap();
    run(arguments).failed(2, &["the state of a load of other rows", "was changed since"]);
    // A table is not copied onto itself.
    run(["copy", &to, &to]).failed(2, &["source and destination are one table"]);
    server.rows("DROP KEYSPACE marquetry_cli_killed");
}

/// What a load is doing is served while it does it.
#[test]
fn metrics_are_those_of_the_load_that_goes_on() {
    let Some(server) = Server::connect() else { return };
    let to = server.fresh("marquetry_cli_metrics", "t");
    server.rows("CREATE TABLE marquetry_cli_metrics.t (id bigint PRIMARY KEY, v bigint)");
    let folder = tempfile::tempdir().unwrap();
    let at = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (from, port) = (many_rows(&folder), at.port().to_string());
    let child = started(&["copy", &from, &to, "--rate", "25K", "--metrics", &port, "--json"]);
    let scraped = || -> Option<String> {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(at).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        Some(page)
    };
    let number = |page: &str, name: &str| -> Option<u64> {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("marquetry_{name} ")))?;
        line.parse().ok()
    };
    let (mut seen, mut in_flight, started_at) = (Vec::new(), 0, Instant::now());
    while seen.len() < 5 && started_at.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
        let Some(page) = scraped() else { continue };
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        let Some(rows @ 1..) = number(&page, "rows_written_total") else { continue };
        assert!(number(&page, "rows_in_flight_max").is_some_and(|most| (1..=256).contains(&most)), "{page}");
        assert_eq!(number(&page, "rows_rejected_total"), Some(0));
        assert!(number(&page, "retries_total").is_some(), "{page}");
        in_flight = in_flight.max(number(&page, "rows_in_flight").unwrap());
        seen.push((rows, number(&page, "rows_read_total").unwrap()));
    }
    assert_eq!(seen.len(), 5);
    assert!(
        seen.is_sorted() && seen[4].0 > seen[0].0 && seen.iter().all(|(rows, _)| *rows < 100_000),
        "{seen:?}"
    );
    assert!(in_flight <= 256, "{in_flight}");
    let run = Run::of(child.wait_with_output().unwrap());
    assert!(run.code == Some(0) && run.out.contains("\"rows_written\":100000"), "{} {}", run.out, run.err);
    server.rows("DROP KEYSPACE marquetry_cli_metrics");
}

/// What does not fit goes to a file, which is a table like any other; nothing is written when all is only tried.
#[test]
fn rows_that_do_not_fit_are_kept() {
    let Some(server) = Server::connect() else { return };
    let to = server.fresh("marquetry_cli_rejects", "t");
    server.rows("CREATE TABLE marquetry_cli_rejects.t (id int PRIMARY KEY, at timestamp, name ascii)");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (from, bad) = (path("a.csv"), path("bad.parquet"));
    let text = "id,at,name\n1,2024-02-29T12:00:00.123Z,a\n2,2024-02-29T12:00:00.5Z,é\n3000000000,2024-02-29T12:00:00Z,c\n";
    std::fs::write(&from, text).unwrap();
    // Without a file for it, the first one ends the load, with its line.
    run(["copy", &from, &to]).failed(
        1,
        &[
            "a.csv: line 3: 'é' does not fit the table's type there, ascii (column name",
            "1 row had been loaded",
        ],
    );
    server.rows("TRUNCATE marquetry_cli_rejects.t");
    let tried = run(["copy", &from, &to, "--rejects", &bad, "--dry-run"]);
    assert!(tried.out.starts_with("1 row would be loaded into cql://"), "{}", tried.err);
    assert!(tried.err.contains("note: 2 rows were rejected: see "), "{}", tried.err);
    assert_eq!(server.rows("SELECT id FROM marquetry_cli_rejects.t").len(), 0);
    std::fs::remove_file(&bad).unwrap();
    let loaded = run(["copy", &from, &to, "--rejects", &bad, "--max-errors", "2"]);
    assert!(loaded.out.starts_with("1 row loaded into cql://"), "{}", loaded.err);
    let found = run(["rows", &bad, "--format", "csv"]).succeeded();
    assert!(found.starts_with("id,at,name,error,line\n"), "{found}");
    let lines = run(["rows", &bad, "--columns", "id,line", "--format", "csv"]).succeeded();
    assert_eq!(lines, "id,line\n2,3\n3000000000,4\n");
    assert!(
        found.contains("ascii (column name, row 1, ") && found.contains("3000000000 does not fit"),
        "{found}"
    );
    assert!(!found.contains("row group"), "{found}");
    // It is there now, and stays.
    run(["copy", &from, &to, "--rejects", &bad]).failed(2, &["bad.parquet exists", "name another file"]);
    run(["copy", &from, &to, "--rejects", &path("more.parquet"), "--max-errors", "1"])
        .failed(1, &["2 rows were rejected, and 1 may be", "--max-errors allows more"]);
    // A load that goes on counts those of the runs before, also if each run has fewer than may be.
    let state = path("load.state");
    let resumed = ["copy", &from, &to, "--state", &state, "--resume"];
    let counting = |max: &str, name: &str| {
        run([&resumed[..], &["--rejects", &path(name), "--max-errors", max]].concat())
    };
    counting("0", "first.parquet").failed(1, &["1 row was rejected, and 0 may be"]);
    counting("1", "second.parquet")
        .failed(1, &["2 rows were rejected (1 of them by earlier runs), and 1 may be"]);
    let ended = counting("2", "third.parquet");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    for (name, rows) in [("first.parquet", "1\n"), ("second.parquet", "1\n")] {
        assert_eq!(run(["count", &path(name)]).succeeded(), rows);
    }
    server.rows("DROP KEYSPACE marquetry_cli_rejects");
}

/// To the databases an empty list is a null: it is left out, too, unless nulls shall delete what is there.
#[test]
fn empty_lists_are_left_out() {
    let Some(server) = Server::connect() else { return };
    let to = server.fresh("marquetry_cli_empty", "t");
    server.rows(
        "CREATE TABLE marquetry_cli_empty.t (id int PRIMARY KEY, tags list<text>, kept frozen<list<text>>)",
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let load = |line: &str, more: &[&str]| {
        std::fs::write(&path, line).unwrap();
        let schema = "id int, tags list<text>, kept list<text>";
        run([&["copy", path.to_str().unwrap(), &to, "--schema", schema], more].concat()).succeeded();
        server.rows("SELECT tags, kept FROM marquetry_cli_empty.t WHERE id = 1").remove(0)
    };
    let list = |items: &[&str]| {
        Some(CqlValue::List(items.iter().map(|item| CqlValue::Text((*item).to_owned())).collect()))
    };
    assert_eq!(load(r#"{"id":1,"tags":["a"],"kept":["b"]}"#, &[]), [list(&["a"]), list(&["b"])]);
    let empty = r#"{"id":1,"tags":[],"kept":[]}"#;
    assert_eq!(load(empty, &[]), [list(&["a"]), list(&[])]);
    assert_eq!(load(empty, &["--nulls", "tombstone"]), [None, list(&[])]);
    server.rows("DROP KEYSPACE marquetry_cli_empty");
}

/// What a table wants of text is asked before the text is read: where that fails, nothing is inferred instead.
#[test]
fn text_is_not_read_without_a_look_at_the_table() {
    let Some(server) = Server::connect() else { return };
    let table = server.fresh("marquetry_cli_looked", "t");
    server.rows("CREATE TABLE marquetry_cli_looked.t (k int PRIMARY KEY, price decimal)");
    let folder = Folder::new();
    let csv = folder.write("a.csv", "k,price\n1,1234567890.12345678901234567890\n");
    let cost = folder.write("b.csv", "k,cost\n2,1234567890.12345678901234567890\n");
    // The first connection is cut while it is made; later ones work.
    for arguments in [&["copy", &csv][..], &["diff", &csv]] {
        let proxy = Proxy::start(&server.address, 10, Break::Cut);
        let through = format!("cql://{}/marquetry_cli_looked.t", proxy.at);
        run([arguments, &[&through]].concat()).failed(3, &["cannot connect", &proxy.at]);
        assert_eq!(proxy.breaks(), 1);
    }
    run(["copy", &csv, &table.replace("looked.t", "looked.none")])
        .failed(1, &["has no table marquetry_cli_looked.none", "--create"]);
    server.rows(
        "CREATE MATERIALIZED VIEW marquetry_cli_looked.v AS SELECT * FROM marquetry_cli_looked.t \
         WHERE price IS NOT NULL AND k IS NOT NULL PRIMARY KEY (price, k)",
    );
    run(["copy", &csv, &table.replace("looked.t", "looked.v")])
        .failed(1, &["materialized view", "base table"]);
    assert_eq!(run(["count", &table]).succeeded(), "0\n");
    run(["copy", &csv, &table, "--quiet"]).succeeded();
    // Columns that are called otherwise in the table.
    for names in [["--map", "price=cost"], ["--rename", "cost=price"]] {
        run([&["copy", &cost, &table, "--quiet"][..], &names].concat()).succeeded();
        let rows =
            run(["rows", &table, "--where", "k = 2", "--columns", "price", "--format", "csv"]).succeeded();
        assert_eq!(rows, "price\n1234567890.12345678901234567890\n");
        server.rows("DELETE FROM marquetry_cli_looked.t WHERE k = 2");
    }
    // A table whose rows hold others has the types of those.
    let (wide, first) = (table.replace("looked.t", "looked.w"), folder.write("c.csv", "k,word\n1,abc\n"));
    run(["copy", &first, &wide, "--create", "--key", "k", "--layout", "wide", "--quiet"]).succeeded();
    let second = folder.write("d.csv", "k,word\n2,42\n");
    run(["copy", &second, &wide, "--quiet"]).succeeded();
    assert_eq!(run(["rows", &wide, "--where", "k = 2", "--format", "csv"]).succeeded(), "k,word\n2,42\n");
    server.rows("DROP KEYSPACE marquetry_cli_looked");
}

/// A file is compared with what a load makes of it: digits of text, sets in their order, keys that servers hold apart.
#[test]
fn a_file_is_what_a_load_makes_of_it() {
    let Some(server) = Server::connect() else { return };
    let table = server.fresh("marquetry_cli_made_of", "t");
    server.rows(
        "CREATE TABLE marquetry_cli_made_of.t (k double, c decimal, price decimal, many varint, word text, at inet, id uuid, \
         tags set<int>, groups list<frozen<set<int>>>, marks map<text, int>, ratio float, PRIMARY KEY (k, c))",
    );
    let folder = Folder::new();
    let row = |k: &str, c: &str, tags: &str| {
        let rest = r#""word":"007","at":"2001:DB8::1","id":"5A1C395E-B41F-11E5-9F22-BA0BE0483C18","groups":[[2,1,2],[],[3]],"marks":{"z":1,"a":2},"ratio":0.1}"#;
        let numbers = r#""price":12345678901234567890.1230,"many":"123456789012345678901234567890""#;
        format!(r#"{{"k":{k},"c":"{c}","tags":{tags},{numbers},{rest}"#)
    };
    // Two floats that are two keys; decimals that are one clustering key and two values.
    let rows = [
        row("0.0", "1.0", "[3,1,2,1]"),
        row("-0.0", "1.00", "[]"),
        row("1.5", "1", "null"),
        row("1.5", "2.50", "[7]"),
    ];
    let json = folder.write("a.jsonl", rows.join("\n"));
    let types = ["--types", "marks=map<text,int>"];
    let run_with = |arguments: &[&str]| run([arguments, &types[..]].concat());
    let missing = || {
        let out = run_with(&["copy", &json, &table, "--missing-only"]).succeeded();
        out.split(' ').next().unwrap().to_owned()
    };
    run_with(&["copy", &json, &table, "--quiet"]).succeeded();
    assert_eq!(run(["count", &table]).succeeded(), "4\n");
    assert_eq!(missing(), "0");
    for tables in [[&json, &table], [&table, &json]] {
        let same = run_with(&["diff", tables[0], tables[1]]).succeeded();
        assert!(same.starts_with("the same: 4 rows"), "{same}");
    }
    // Another scale is the same number, and the same clustering key.
    server.rows(
        "UPDATE marquetry_cli_made_of.t SET price = 12345678901234567890.123 WHERE k = 1.5 AND c = 1.0000",
    );
    run_with(&["diff", &json, &table]).succeeded();
    // One element more, and one of two keys that are equal as numbers.
    server.rows("UPDATE marquetry_cli_made_of.t SET tags = tags + {9} WHERE k = 0.0 AND c = 1");
    server.rows("DELETE FROM marquetry_cli_made_of.t WHERE k = -0.0");
    let found = run_with(&["diff", &json, &table, "--json"]);
    assert_eq!(found.code, Some(1), "{}", found.err);
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(found["rows"]["only_in_a"], 1, "{found}");
    assert_eq!(found["columns"].as_array().unwrap().len(), 1, "{found}");
    let tags = &found["columns"][0];
    assert!(tags["column"] == "tags" && tags["different"] == 1, "{found}");
    assert_eq!((missing(), missing()), ("2".to_owned(), "0".to_owned()));

    // Text as it is spelled, and numbers of any length; what no load takes differs, and is rejected.
    let csv = folder.write(
        "b.csv",
        "k,c,price,many,word,at,id\n0.0,1.0,12345678901234567890.1230,123456789012345678901234567890,007,2001:DB8::1,5A1C395E-B41F-11E5-9F22-BA0BE0483C18\n\
         -0.0,1.00,12345678901234567890.12300,123456789012345678901234567890,007,2001:db8::1,5a1c395e-b41f-11e5-9f22-ba0be0483c18\n\
         1.5,1,12345678901234567890.123,123456789012345678901234567890,007,2001:DB8::1,5A1C395E-B41F-11E5-9F22-BA0BE0483C18\n\
         1.5,2.5,12345678901234567890.123,123456789012345678901234567890,007,2001:DB8::1,5A1C395E-B41F-11E5-9F22-BA0BE0483C18\n",
    );
    let columns = "k,c,price,many,word,at,id";
    run(["diff", &csv, &table, "--columns", columns]).succeeded();
    assert!(run(["copy", &csv, &table, "--missing-only"]).succeeded().starts_with("0 rows"));
    let bad = folder.write("c.csv", "k,c,at\n0.0,1.0,2001:db8::1\n1.5,1,nowhere\n");
    let found = run(["diff", &bad, &table, "--columns", "k,c,at", "--json"]);
    assert_eq!(found.code, Some(1), "{}", found.err);
    assert!(found.out.contains("\"different\":1"), "{}", found.out);
    server.rows("DROP KEYSPACE marquetry_cli_made_of");
}
