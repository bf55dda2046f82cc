//! What `marquetry cql` prints, with the mistakes of the one earlier tool (michoecho/parquet4seastar's parquet2cql).

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::common::{Folder, Run, data, marquetry, parquet2cql, run};

fn cql(arguments: &[&str]) -> Run {
    run(["cql"].iter().chain(arguments))
}

/// The values of an `INSERT` that has no parentheses, semicolons or line ends in them.
fn values(statement: &str) -> Vec<&str> {
    let (_, values) = statement.split_once(") VALUES (").expect("an INSERT");
    values.strip_suffix(");").expect("its end").split(", ").collect()
}

/// The earlier tool printed days as a number, doubles with six digits, and infinities as `inf`.
#[test]
fn dates_and_doubles_are_exact() {
    let path = data("types.parquet");
    let out =
        cql(&[&path, "--table", "t", "--key", "id", "--columns", "id,day,double,nan,single", "--data-only"])
            .succeeded();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(values(lines[0]), ["1", "'2024-02-29'", "0.30000000000000004", "0.3333333333333333", "0.1"]);
    assert_eq!(values(lines[1]), ["2", "'0001-01-01'", "Infinity", "NaN", "-Infinity"]);
    assert_eq!(lines[2], "INSERT INTO t (id) VALUES (3);");
}

#[test]
fn nulls_are_left_out_or_written() {
    let path = data("types.parquet");
    let out =
        cql(&[&path, "--table", "t", "--key", "id", "--columns", "id,day", "--data-only", "--nulls", "null"])
            .succeeded();
    assert_eq!(out.lines().nth(2), Some("INSERT INTO t (id, day) VALUES (3, null);"));
}

#[test]
fn timestamps_become_what_was_asked_for() {
    let path = data("types.parquet");
    let columns = ["--table", "t", "--key", "id", "--columns", "id,at_us,at_ms", "--limit", "2"];
    let out = cql(&[&columns[..], &[&path]].concat()).succeeded();
    assert!(out.contains("at_us bigint") && out.contains("at_ms timestamp"), "{out}");
    assert!(out.contains("(2, -1, '1969-12-31T23:59:59.999Z');"), "{out}");
    let out = cql(&[&columns[..], &["--timestamps-as", "millis", &path]].concat()).succeeded();
    assert!(out.contains("at_us timestamp"), "{out}");
    assert!(out.contains("(1, '2024-02-29T03:04:05.678Z', '2024-02-29T03:04:05.678Z');"), "{out}");
    assert!(out.contains("(2, '1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z');"), "{out}");
}

/// The earlier tool ended with 0, and in the middle of a statement.
#[test]
fn before_an_error_stand_whole_statements() {
    let path = data("bad_text.parquet");
    let out = cql(&[&path, "--table", "t", "--key", "id"]).failed(1, &[&path, "column text", "row 2"]);
    let inserts: Vec<&str> = out.lines().filter(|line| line.starts_with("INSERT")).collect();
    assert_eq!(
        inserts,
        ["INSERT INTO t (id, text) VALUES (0, 'a');", "INSERT INTO t (id, text) VALUES (1, 'b');"]
    );
    assert!(out.starts_with("CREATE TABLE t (\n") && out.ends_with(");\n"), "{out}");

    let out =
        cql(&[&path, "--table", "t", "--key", "id", "--invalid-utf8", "replace", "--data-only"]).succeeded();
    assert_eq!(out.lines().nth(2), Some("INSERT INTO t (id, text) VALUES (2, 'c\u{fffd}');"));
    let out = cql(&[&path, "--table", "t", "--key", "id", "--invalid-utf8", "blob"]).succeeded();
    assert!(out.contains("text blob") && out.contains("(2, 0x63ff);"), "{out}");
    // A row that is not wanted is no trouble.
    cql(&[&path, "--table", "t", "--key", "id", "--limit", "2"]).succeeded();
}

#[test]
fn a_null_in_the_key_names_its_row() {
    let path = data("types.parquet");
    let out = cql(&[&path, "--table", "t", "--key", "day", "--columns", "day,id"])
        .failed(1, &["column day", "row 2"]);
    assert_eq!(out.lines().filter(|line| line.starts_with("INSERT")).count(), 2);
}

#[test]
fn keys() {
    let path = data("types.parquet");
    let table = |key: &[&str]| {
        let out =
            cql(&[&[path.as_str(), "--table", "ks.T", "--schema-only", "--columns", "id,Text,day"], key]
                .concat());
        out.succeeded().replace("\n    ", " ")
    };
    let columns = "CREATE TABLE ks.t ( id int, \"Text\" text, day date,";
    assert_eq!(table(&["--key", "id"]), format!("{columns} PRIMARY KEY (id)\n);\n"));
    assert_eq!(
        table(&["--key", "(id, Text), day desc"]),
        format!("{columns} PRIMARY KEY ((id, \"Text\"), day)\n) WITH CLUSTERING ORDER BY (day DESC);\n")
    );
    let numbered = "CREATE TABLE ks.t ( n bigint, id int, \"Text\" text, day date,";
    assert_eq!(table(&["--key-row-number", "n"]), format!("{numbered} PRIMARY KEY (n)\n);\n"));
    assert_eq!(
        table(&["--key-row-number", "n", "--key", "id, n"]),
        format!("{numbered} PRIMARY KEY (id, n)\n);\n")
    );
}

#[test]
fn rows_are_numbered_on_across_files() {
    let (one, reordered) = (data("one.parquet"), data("reordered.parquet"));
    let arguments = [one.as_str(), &reordered, &one, "--table", "t", "--key-row-number", "n", "--data-only"];
    let rows = |more: &[&str]| {
        let out = cql(&[&arguments[..], more].concat()).succeeded();
        out.lines().map(|line| values(line).join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[]), ["0 1 'x'", "1 2 'y'", "2 3 'z'", "3 1 'x'", "4 2 'y'"]);
    assert_eq!(rows(&["--limit", "3"]), ["0 1 'x'", "1 2 'y'", "2 3 'z'"]);
    assert_eq!(rows(&["--limit", "4", "--columns", "b"]), ["0 'x'", "1 'y'", "2 'z'", "3 'x'"]);
    assert_eq!(rows(&["--limit", "0"]), [""; 0]);
}

#[test]
fn the_earlier_tool_s_command_line() {
    let path = data("one.parquet");
    let by_that_name = |table: &str| {
        let arguments = ["--file", &path, "--table", table, "--pk", "Row"];
        Run::of(parquet2cql().args(arguments).output().expect("it runs"))
    };
    // Names are kept as they stand, as that tool did.
    assert_eq!(
        by_that_name("Trips").succeeded(),
        "CREATE TABLE \"Trips\" (\n    \"Row\" bigint,\n    a bigint,\n    b text,\n    PRIMARY KEY (\"Row\")\n);\n\
         INSERT INTO \"Trips\" (\"Row\", a, b) VALUES (0, 1, 'x');\n\
         INSERT INTO \"Trips\" (\"Row\", a, b) VALUES (1, 2, 'y');\n"
    );
    let arguments = ["--table", "ks.trips", "--key-row-number", "Row", &path];
    assert_eq!(by_that_name("ks.trips").succeeded(), cql(&arguments).succeeded());
    by_that_name("no-table").failed(2, &["--table 'no-table'", "'-'"]);
    // It names no option that it lacks, and no command that it is not.
    let folder = Folder::new();
    let csv = folder.write("a.csv", "a,b\n1,2\n");
    let arguments = ["--file", &csv, "--table", "t", "--pk", "id"];
    let run = Run::of(parquet2cql().args(arguments).output().expect("it runs"));
    run.failed(1, &["; with `marquetry cql`, --from csv or --from jsonl says that it is text"]);
    let help = Run::of(parquet2cql().arg("--help").output().expect("it runs")).succeeded();
    assert!(help.contains("Exit codes:") && !help.contains("diff"), "{help}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let path = data("many.parquet");
    for arguments in [
        vec!["cql", &path, "--table", "t", "--key-row-number", "id"],
        vec!["rows", "--format", "csv", &path],
        vec!["rows", "--format", "jsonl", &path],
        vec!["rows", "--limit", "300000", &path],
    ] {
        let mut child = marquetry()
            .args(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{arguments:?}");
        // Dropped by now: the next write finds nobody.
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_ends_with_a_whole_statement() {
    let path = data("many.parquet");
    let mut child = marquetry()
        .args(["cql", &path, "--table", "t", "--key-row-number", "id"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut out = String::new();
    // By its first line it listens for signals; and it cannot be done, for the pipe holds less than there is to write.
    stdout.read_line(&mut out).unwrap();
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    stdout.read_to_string(&mut out).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(130), "marquetry: interrupted\n"));
    let statements = out.lines().filter(|line| line.starts_with("INSERT")).count();
    assert!(statements < 300_000 && out.ends_with(");\n"), "{statements} statements");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let path = data("one.parquet");
    let output = marquetry().args(["rows", &path]).stdout(full).output().unwrap();
    Run::of(output).failed(3, &["standard output", "No space left"]);
}

#[test]
fn all_rows_of_a_large_file_are_there() {
    let path = data("many.parquet");
    let out = cql(&[&path, "--table", "t", "--key-row-number", "id", "--data-only"]).succeeded();
    for (number, line) in out.lines().enumerate() {
        let rest = line.strip_prefix("INSERT INTO t (id, answer) VALUES (").expect("a statement");
        assert_eq!(rest.strip_suffix(", 42);").and_then(|digits| digits.parse().ok()), Some(number));
    }
    assert_eq!(out.lines().count(), 300_000);
}

/// A projection cuts types too.
#[test]
fn parts_of_nested_columns() {
    let path = data("nested_cql.parquet");
    let arguments = ["--table", "t", "--key", "id", "--columns", "id,stops.name,stops.fares.key,Place.tags"];
    let out = cql(
        &[&[path.as_str()], &arguments[..], &["--limit", "1", "--as-set", "Place.tags.element"]].concat()
    );
    assert_eq!(
        out.succeeded(),
        "CREATE TYPE t_stops (\n    name text,\n    fares frozen<set<text>>\n);\n\
         CREATE TYPE t_place (\n    tags frozen<list<frozen<set<text>>>>\n);\n\
         CREATE TABLE t (\n    id int,\n    stops list<frozen<t_stops>>,\n    \"Place\" t_place,\n    PRIMARY KEY (id)\n);\n\
         INSERT INTO t (id, stops, \"Place\") VALUES (0, [{name: 'it''s', fares: {'', 'x'}}, {name: '', fares: null}], \
         {tags: [{'a', 'b'}, {}]});\n"
    );
}
