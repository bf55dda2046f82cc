//! Text from pipes: every row, once, and an end as soon as it is asked for.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Folder, Run, data, marquetry, run};

/// How long a command may wait for what never comes.
const PATIENCE: Duration = Duration::from_secs(60);

impl Folder {
    /// A named pipe without a writer.
    fn fifo(&self, name: &str) -> String {
        let path = self.path(name);
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// A named pipe that somebody writes to, once.
    fn fed(&self, name: &str, text: impl Into<Vec<u8>>) -> String {
        let (path, text) = (self.fifo(name), text.into());
        let to = path.clone();
        // Nobody waits for it: the command may end before it has read all, or not read at all.
        thread::spawn(move || fs::write(to, text));
        path
    }
}

fn spawned(arguments: &[&str]) -> Child {
    marquetry()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of a command, which must not hang.
#[track_caller]
fn ended(mut child: Child) -> Run {
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let text = thread::spawn(move || {
        let mut text = Vec::new();
        out.read_to_end(&mut text).unwrap();
        text
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the command hangs");
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut stderr = Vec::new();
    err.read_to_end(&mut stderr).unwrap();
    Run::of(std::process::Output { status, stdout: text.join().unwrap(), stderr })
}

/// Runs a command whose standard input is a pipe with a text.
#[track_caller]
fn piped(text: &[u8], arguments: &[&str]) -> Run {
    let mut child = spawned(arguments);
    let (mut input, text) = (child.stdin.take().unwrap(), text.to_vec());
    thread::spawn(move || input.write_all(&text));
    ended(child)
}

#[track_caller]
fn alone(arguments: &[&str]) -> Run {
    piped(b"", arguments)
}

/// More than types are inferred from, and than any pipe holds.
fn long_text(rows: u32) -> String {
    let mut text = "id,v\n".to_string();
    (0..rows).for_each(|row| text += &format!("{row},{:x}\n", u64::from(row) * 7_777_777));
    text
}

const SMALL: &str = "id,v\n1,x\n2,y\n";
const SMALL_ROWS: &str = "{\"id\":1,\"v\":\"x\"}\n{\"id\":2,\"v\":\"y\"}\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    gz.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    let mut zst = vec![0; zstd_safe::compress_bound(text.len())];
    let length = zstd_safe::compress(&mut zst[..], text.as_bytes(), 3).unwrap();
    zst.truncate(length);
    zst
}

/// The types were inferred from the first bytes of a pipe, and the rows read from what was left of it.
#[test]
fn no_row_of_a_pipe_is_lost() {
    let folder = Folder::new();
    let (text, to) = (long_text(1_500_000), folder.path("to.parquet"));
    let file = folder.write("file.csv", &text);
    for path in ["/dev/stdin", "/proc/self/fd/0", "-"] {
        let copy = ["copy", path, &to, "--from", "csv", "--overwrite", "--quiet"];
        piped(text.as_bytes(), &copy).succeeded();
        assert!(alone(&["diff", &file, &to]).succeeded().contains("1,500,000 rows"), "{path}");
        let rows = piped(SMALL.as_bytes(), &["rows", path, "--from", "csv", "--format", "jsonl"]);
        assert_eq!(rows.succeeded(), SMALL_ROWS, "{path}");
        let lines = piped(SMALL_ROWS.as_bytes(), &["rows", path, "--from", "jsonl", "--format", "jsonl"]);
        assert_eq!(lines.succeeded(), SMALL_ROWS, "{path}");
    }
    let verified = ["copy", &folder.fed("long.csv", text), &to, "--overwrite", "--verify", "--sort", "v"];
    assert!(alone(&verified).succeeded().contains("1,500,000 rows"));
}

#[test]
fn named_pipes_are_read_once() {
    let folder = Folder::new();
    let jsonl = |arguments: &[&str]| alone(&[&["rows", "--format", "jsonl"], arguments].concat()).succeeded();
    assert_eq!(jsonl(&[&folder.fed("a.csv", SMALL)]), SMALL_ROWS);
    assert_eq!(jsonl(&[&folder.fed("a.csv", SMALL), "--schema", "id bigint, v text"]), SMALL_ROWS);
    assert_eq!(jsonl(&[&folder.fed("a.jsonl", SMALL_ROWS)]), SMALL_ROWS);
    assert_eq!(jsonl(&[&folder.fed("a.csv.gz", gzip(SMALL))]), SMALL_ROWS);
    assert_eq!(jsonl(&[&folder.fed("a.csv.zst", zstd(SMALL))]), SMALL_ROWS);
    let cql = alone(&["cql", &folder.fed("a.csv", SMALL), "--table", "ks.t", "--key", "id"]).succeeded();
    assert!(cql.contains("(1, 'x')") && cql.contains("(2, 'y')"), "{cql}");

    // Several at once, and among files.
    let diff = ["diff", &folder.fed("a.csv", SMALL), &folder.fed("b.csv", SMALL)];
    assert!(alone(&diff).succeeded().contains("2 rows"));
    let other = folder.write("c.csv", "id,v\n7,z\n");
    let (a, pattern) = (folder.fed("a.csv", SMALL), folder.path("[ac].csv"));
    assert_eq!(jsonl(&[&pattern]), format!("{SMALL_ROWS}{{\"id\":7,\"v\":\"z\"}}\n"));
    drop(a);
    let mixed = jsonl(&[&folder.fed("a.csv", SMALL), &other, &folder.fed("b.csv", SMALL)]);
    assert_eq!(mixed, format!("{SMALL_ROWS}{{\"id\":7,\"v\":\"z\"}}\n{SMALL_ROWS}"));
}

/// What would have to read a pipe twice says so before the first row.
#[test]
fn a_pipe_is_never_read_twice() {
    let folder = Folder::new();
    let infer = ["rows", &folder.fed("a.csv", SMALL), "--infer-all"];
    alone(&infer).failed(2, &["a.csv: --infer-all: ", "can be read only once"]);
    let a = folder.fed("a.csv", SMALL);
    alone(&["rows", &a, &a]).failed(2, &["a.csv: ", "can be read only once"]);
    let a = folder.fed("a.csv", SMALL);
    alone(&["diff", &a, &a]).failed(2, &["a.csv: ", "can be read only once"]);
    for paths in [["-", "/dev/stdin"], ["-", "-"], ["/dev/stdin", "/proc/self/fd/0"]] {
        let diff = [&["diff", "--from", "csv"], &paths[..]].concat();
        piped(SMALL.as_bytes(), &diff).failed(2, &["can be read only once"]);
    }
}

/// A command that waits for a pipe ends when it is told to, and leaves nothing.
#[test]
fn signals_end_what_waits() {
    let folder = Folder::new();
    let (silent, to) = (folder.fifo("silent.csv"), folder.path("to.parquet"));
    let short = "id,v\n1,x\n".to_string();
    let cases = [
        // No writer; a writer that says nothing; one that says too little; and one that stops in the middle.
        (vec!["rows", &silent], String::new()),
        (vec!["rows", "-", "--from", "csv"], String::new()),
        (vec!["rows", "/dev/stdin", "--from", "csv"], short.clone()),
        (vec!["copy", "-", &to, "--from", "csv", "--quiet"], short),
        (vec!["copy", "-", &to, "--from", "csv", "--quiet"], long_text(2_000_000)),
        (vec!["copy", "/dev/stdin", &to, "--from", "csv", "--quiet"], long_text(2_000_000)),
    ];
    for (arguments, text) in cases {
        for signal in ["INT", "TERM"] {
            let mut child = spawned(&arguments);
            let mut input = child.stdin.take().unwrap();
            input.write_all(text.as_bytes()).unwrap();
            // Once it listens for signals, and reads or waits.
            thread::sleep(Duration::from_millis(500));
            let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
            assert!(kill.unwrap().success());
            ended(child).failed(130, &["interrupted"]);
            drop(input);
            assert_eq!(fs::read_dir(folder.root()).unwrap().count(), 1, "{arguments:?}");
        }
    }
}

/// Compressed text is known by its first bytes where no name says so.
#[test]
fn compressed_text_without_a_name() {
    let folder = Folder::new();
    for (name, bytes) in [("gzip", gzip(SMALL)), ("zstd", zstd(SMALL))] {
        let stdin = piped(&bytes, &["rows", "-", "--from", "csv", "--format", "jsonl"]);
        assert_eq!(stdin.succeeded(), SMALL_ROWS, "{name}");
        let file = folder.write(&format!("{name}.csv"), &bytes);
        assert_eq!(run(["rows", &file, "--format", "jsonl"]).succeeded(), SMALL_ROWS, "{name}");
        let cut = folder.write("cut.csv", &bytes[..bytes.len() - 5]);
        run(["rows", &cut]).failed(3, &["cut.csv", name, "cut off"]);
    }
    // Where a name says so, the bytes must agree.
    run(["rows", &folder.write("plain.csv.gz", SMALL)]).failed(3, &["not gzip data"]);
    assert_eq!(run(["rows", &folder.write("one.csv", "a")]).code, Some(0));
}

/// Where the name says nothing, the first bytes do.
#[test]
fn what_is_no_text_by_its_name() {
    let folder = Folder::new();
    let pipe = folder.fed("a.pipe", SMALL);
    let arguments = |path| ["rows", "--format", "jsonl", path];
    assert_eq!(piped(SMALL.as_bytes(), &arguments("-")).succeeded(), SMALL_ROWS);
    assert_eq!(piped(SMALL.as_bytes(), &arguments("/dev/stdin")).succeeded(), SMALL_ROWS);
    assert_eq!(alone(&arguments(&pipe)).succeeded(), SMALL_ROWS);
    let text = folder.write("e.jsonl", SMALL_ROWS);
    for more in [&["--why"][..], &["--pages", "a"], &["--html", "-"]] {
        let show = [&["show", &text], more].concat();
        run(show).failed(1, &["e.jsonl: not a Parquet file, but JSON lines: `marquetry rows` prints it"]);
    }
    // What is text by its name and a Parquet file all the same.
    let odd = folder.path("odd.csv");
    fs::copy(data("one.parquet"), &odd).unwrap();
    run(["show", &odd]).succeeded();
}

/// A regular file as standard input is a Parquet file as any other: read by ranges, more than once, from its start.
#[test]
fn standard_input_that_is_a_parquet_file() {
    let folder = Folder::new();
    let with = |path: &str, arguments: &[&str]| {
        let mut file = fs::File::open(path).unwrap();
        // Somebody read of it before.
        file.read_exact(&mut [0; 3]).unwrap();
        Run::of(marquetry().args(arguments).stdin(file).output().unwrap())
    };
    let one = data("one.parquet");
    let rows = run(["rows", "--format", "jsonl", &one]).succeeded();
    assert_eq!(with(&one, &["rows", "--format", "jsonl", "-"]).succeeded(), rows);
    assert_eq!(with(&one, &["rows", "--format", "jsonl", "-", "--from", "parquet"]).succeeded(), rows);
    assert!(with(&one, &["diff", "-", &one]).succeeded().starts_with("the same: "));
    assert!(with(&one, &["show", "-"]).succeeded().starts_with("standard input\n"));
    let copy = folder.path("copy.parquet");
    with(&one, &["copy", "-", &copy, "--verify"]).succeeded();
    assert!(run(["diff", &one, &copy]).succeeded().starts_with("the same: "));
    // What it is if it is none.
    let nothing = folder.write("nothing", [0; 20]);
    with(&nothing, &["rows", "-"])
        .failed(1, &["standard input: ", "--from csv or --from jsonl says that it is text"]);
    // From a pipe, too, of any kind, and in all ways.
    let bytes = fs::read(&one).unwrap();
    let shown = with(&one, &["show", "-"]).succeeded();
    assert_eq!(piped(&bytes, &["show", "-"]).succeeded(), shown);
    assert_eq!(
        piped(&bytes, &["show", "/dev/stdin"]).succeeded(),
        shown.replace("standard input", "/dev/stdin")
    );
    let fifo = folder.fed("a.pipe", bytes.clone());
    assert_eq!(alone(&["show", &fifo]).succeeded(), shown.replace("standard input", &fifo));
    let fifo = folder.fed("a.parquet", bytes.clone());
    assert!(alone(&["show", "--json", &fifo]).succeeded().starts_with(&format!("{{\"file\":\"{fifo}\"")));
    for more in [&["--why"][..], &["--pages", "a"], &["--html", "-"], &["--schema"]] {
        piped(&bytes, &[&["show", "-"], more].concat()).succeeded();
    }
    // And text.
    assert!(piped(SMALL.as_bytes(), &["show", "-"]).succeeded().contains("  format      CSV\n"));
    piped(SMALL.as_bytes(), &["show", "--html", "-", "-"])
        .failed(1, &["standard input: not a Parquet file, but CSV"]);
    let fifo = folder.fed("a.csv", SMALL);
    assert!(alone(&["show", &fifo]).succeeded().starts_with(&format!("{fifo}\n  format      CSV\n")));
    piped(&[0; 20], &["show", "-"]).failed(1, &["standard input: it does not begin as a Parquet file does"]);
    piped(b"", &["rows", "-", "--from", "parquet"]).failed(1, &["standard input: it is empty"]);
}
