//! What people expect without reading a manual: files are known by what is in them, pipes may be Parquet, and a copy does not
//! read what it writes.

use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;

use crate::common::{Folder, Run, data, marquetry, run};

fn rows<const N: usize>(arguments: [&str; N]) -> Vec<String> {
    let arguments = ["rows", "--format", "jsonl"].into_iter().chain(arguments);
    run(arguments).succeeded().lines().map(str::to_string).collect()
}

#[test]
fn a_file_is_what_is_in_it() {
    let folder = Folder::new();
    let csv = b"id,name\n1,a\n2,b\n";
    assert_eq!(rows([&folder.write("a.txt", csv)]), [r#"{"id":1,"name":"a"}"#, r#"{"id":2,"name":"b"}"#]);
    assert_eq!(rows([&folder.write("no-ending", "a\tb\n1\t2\n")]), [r#"{"a":1,"b":2}"#]);
    assert_eq!(rows([&folder.write("events.json", "{\"id\":1}\n{\"id\":2}\n")]).len(), 2);

    // Compressed, under any name.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"id\":7}\n").unwrap();
    assert_eq!(rows([&folder.write("packed", gzip.finish().unwrap())]), [r#"{"id":7}"#]);
    run(["copy", &folder.path("a.txt"), &folder.path("a.csv.bz2"), "--quiet", "--verify"]).succeeded();
    assert!(fs::read(folder.path("a.csv.bz2")).unwrap().starts_with(b"BZh"));
    assert_eq!(rows([&folder.path("a.csv.bz2")]).len(), 2);

    // A Parquet file, whatever its name says.
    for name in ["one.data", "one.csv"] {
        fs::copy(data("one.parquet"), folder.path(name)).unwrap();
        assert_eq!(rows([&folder.path(name)]), rows([&data("one.parquet")]), "{name}");
    }

    // What is neither.
    let picture = folder.write("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\0\0\0");
    run(["rows", &picture]).failed(1, &["picture: not a Parquet file"]);
    run(["rows", &folder.write("empty", "")]).failed(1, &["an empty file, not a Parquet file"]);
}

#[test]
fn parquet_comes_through_a_pipe() {
    let folder = Folder::new();
    let expected = rows([&data("nested.parquet")]);
    let piped = |arguments: &[&str], input: Vec<u8>| {
        let mut child = marquetry()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It may end before it has read all.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let run = Run::of(child.wait_with_output().unwrap());
        writer.join().unwrap();
        run
    };
    let file = fs::read(data("nested.parquet")).unwrap();
    for name in ["-", "/dev/stdin"] {
        let out = piped(&["rows", "--format", "jsonl", name], file.clone()).succeeded();
        assert_eq!(out.lines().collect::<Vec<_>>(), expected, "{name}");
    }
    let to = folder.path("to.parquet");
    piped(&["copy", "-", &to, "--quiet", "--verify"], file.clone()).succeeded();
    assert_eq!(rows([&to]), expected);
    // Text says by its start what it is, too.
    assert_eq!(
        piped(&["rows", "-", "--format", "jsonl"], b"{\"a\":1}\n".to_vec()).succeeded(),
        "{\"a\":1}\n"
    );
    assert_eq!(piped(&["rows", "-", "--format", "csv"], b"a;b\n1;2\n".to_vec()).succeeded(), "a,b\n1,2\n");

    let cut = file[..file.len() - 9].to_vec();
    piped(&["rows", "-"], cut).failed(1, &["standard input: ", "not a Parquet file, or one cut off"]);
    piped(&["rows", "-"], vec![0; 100]).failed(1, &["standard input: it does not begin as a Parquet file"]);
    piped(&["rows", "-"], Vec::new()).failed(1, &["standard input: it is empty"]);
    // A Parquet file is one, whatever is said of it.
    piped(&["rows", "-", "--from", "csv"], file).failed(2, &["standard input begins as Parquet files do"]);
}

#[cfg(target_os = "linux")]
#[test]
fn parquet_comes_through_a_named_pipe() {
    let folder = Folder::new();
    let pipe = folder.path("pipe.parquet");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|made| made.success()) {
        return marquetry_testing::skipped(marquetry_testing::Need::Fifo);
    }
    let to = pipe.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = File::create(to).unwrap();
        pipe.write_all(&fs::read(data("one.parquet")).unwrap()).unwrap();
    });
    assert_eq!(rows([&pipe]), rows([&data("one.parquet")]));
    writer.join().unwrap();
}

#[test]
fn a_directory_of_text_is_a_table() {
    let folder = Folder::new();
    folder.write("trips/year=2023/a.csv", "id\n1\n");
    folder.write("trips/year=2024/b.csv", "id\n2\n");
    folder.write("trips/README", "no table");
    // Texts with the same columns are inferred together, in whatever order these are.
    folder.write("mixed/1.csv", "id,v\n1,a\n");
    folder.write("mixed/2.csv", "v,id\nq,2.5\n");
    assert_eq!(rows([&folder.path("mixed")]), [r#"{"id":1.0,"v":"a"}"#, r#"{"id":2.5,"v":"q"}"#]);
    let trips = folder.path("trips");
    assert_eq!(rows([&trips]), [r#"{"id":1,"year":2023}"#, r#"{"id":2,"year":2024}"#]);
    // A Parquet file in it, and it is a directory of Parquet files, as it always was.
    fs::copy(data("one.parquet"), folder.path("trips/year=2024/c.parquet")).unwrap();
    assert_eq!(rows([&trips]).len(), rows([&data("one.parquet")]).len());
    fs::create_dir(folder.path("none")).unwrap();
    run(["rows", &folder.path("none")]).failed(3, &["a directory without a Parquet file"]);
}

#[test]
fn a_copy_does_not_read_what_it_writes() {
    let folder = Folder::new();
    folder.write("self/a.csv", "id\n1\n2\n");
    let (all, from) = (folder.path("self/all.csv"), folder.path("self"));
    for _ in 0..3 {
        run(["copy", &from, &all, "--overwrite", "--quiet"]).succeeded();
        assert_eq!(rows([&all]).len(), 2);
    }
    // By any way to it, and as a pattern.
    let other = folder.path("self/../self/./all.csv");
    run(["copy", &format!("{from}/*.csv"), &other, "--overwrite", "--quiet"]).succeeded();
    assert_eq!(rows([&all]).len(), 2);
    let inside = folder.path("self/out/");
    for _ in 0..2 {
        run(["copy", &folder.path("self/"), &inside, "--overwrite", "--quiet"]).succeeded();
        assert_eq!(rows([&inside]).len(), 4, "a.csv and all.csv");
    }
    // Named itself, a file is replaced by what is made of it.
    run(["copy", &all, &all, "--overwrite", "--quiet"]).succeeded();
    assert_eq!(rows([&all]).len(), 2);
    let only = folder.path("only");
    folder.write("only/a.csv", "id\n1\n");
    run(["copy", &only, &folder.path("only/a.csv"), "--overwrite"])
        .failed(3, &["only: no file but the destination itself"]);
    assert_eq!(fs::read_to_string(folder.path("only/a.csv")).unwrap(), "id\n1\n");
}

#[test]
fn names_and_numbers_of_other_tools_are_understood() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "id\n1\n2\n3\n");
    assert_eq!(rows([&text, "-n", "2"]).len(), 2);
    assert_eq!(rows([&text, "--limit", "1K"]).len(), 3);
    let wrong = run(["rows", &text, "-n", "few"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("must be a whole number"), "{}", wrong.err);
    for (name, hint) in [
        ("head", "'marquetry rows FILE -n 10'"),
        ("schema", "'marquetry show FILE'"),
        ("convert", "'marquetry copy FROM TO'"),
        ("compare", "'marquetry diff A B'"),
    ] {
        let refused = run([name, &text]);
        assert_eq!(refused.code, Some(2));
        assert!(
            refused.err.contains("unrecognized subcommand") && refused.err.contains(hint),
            "{}",
            refused.err
        );
    }
}

#[test]
fn a_null_key_is_reported_with_its_line() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "id,v\n1,\"two\nlines\"\n\n,3\n4,\n");
    let cql = |file: &str, more: &[&str]| run([&["cql", file, "--table", "t", "--key", "id"], more].concat());
    cql(&text, &[]).failed(
        1,
        &[
            "line 5: a column of the primary key is null (column id, row 1",
            "a.csv",
            "--where 'COLUMN IS NOT NULL'",
        ],
    );
    // Whatever is done with the columns on the way, and to the lines before.
    cql(&text, &["--columns", "v,id", "--limit", "2"]).failed(1, &["line 5: "]);
    cql(&text, &["--rename", "v=w", "--types", "v=text"]).failed(1, &["line 5: "]);
    let noted = folder.write("b.csv", "a note\n# id\nid,v\n# 1,2\n1,2\n,2\n");
    cql(&noted, &["--skip", "1", "--comment", "#"]).failed(1, &["line 6: "]);
    let lines = folder.write("a.jsonl", "{\"id\":1}\n\n{\"id\":null,\"v\":2}\n");
    cql(&lines, &["--schema", "id int, v int"]).failed(1, &["line 3: ", "a.jsonl"]);
    // Far into a text of many blocks, by any number of threads.
    let mut long = String::from("id,v\n");
    for row in 0..300_000 {
        long +=
            &if row == 250_000 { format!(",\"{row}\"\n") } else { format!("{row},\"the row {row}\n\"\n") };
    }
    let long = folder.write("long.csv", long);
    for threads in ["1", "3"] {
        cql(&long, &["--threads", threads, "--quiet"])
            .failed(1, &["line 500002: ", "row 250000", "long.csv"]);
    }
    // What can be read only once has rows.
    let mut child = marquetry();
    child
        .args(["cql", "-", "--from", "csv", "--table", "t", "--key", "id"])
        .stdin(File::open(&text).unwrap());
    let run = Run::of(child.output().unwrap());
    run.failed(1, &["a column of the primary key is null", "row 1"]);
}
