//! `--threads`: what is printed and written does not depend on it.

mod common;

use std::fmt::Write as _;
use std::fs;

use common::run;

#[test]
fn what_is_written_does_not_depend_on_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let mut text = String::from("id,note\n");
    for row in 0..100_000 {
        write!(text, "{row},\"line {row}\nof \"\"two\"\"\"\n").unwrap();
    }
    let csv = path("a.csv");
    fs::write(&csv, &text).unwrap();
    let copied = |from: &str, threads: &str| {
        let to = path("to.parquet");
        run(["copy", from, &to, "--overwrite", "--quiet", "--threads", threads]).succeeded();
        fs::read(to).unwrap()
    };
    let one = copied(&csv, "1");
    assert!(["2", "3", "8"].iter().all(|threads| copied(&csv, threads) == one));
    let parquet = path("a.parquet");
    fs::write(&parquet, &one).unwrap();
    for file in [&csv, &parquet] {
        let printed = |threads| run(["rows", "--format", "csv", "--threads", threads, file]).succeeded();
        assert!(printed("1") == text && printed("5") == text);
        let statements = |threads| {
            let options =
                ["cql", "--table", "ks.t", "--key", "id", "--data-only", "--threads", threads, file];
            run(options).succeeded()
        };
        assert_eq!(statements("1").lines().count(), 200_000);
        assert!(statements("1") == statements("4"));
    }
    for threads in ["1", "2", "7"] {
        run(["diff", "--threads", threads, &csv, &csv]).succeeded();
    }
    // Of two errors the first is reported.
    let wrong = text.replacen("\n70000,", "\nx,", 1).replacen("\n90000,", "\ny,", 1);
    fs::write(&csv, wrong).unwrap();
    for threads in ["1", "2", "8"] {
        let parts = ["line 140002: ", "\"x\" is not a bigint"];
        let options =
            ["--schema", "id bigint, note text", "--header", "yes", "--quiet", "--threads", threads];
        run([&["copy", &csv, &path("none.parquet")], &options[..]].concat()).failed(1, &parts);
    }
    let none = run(["rows", &csv, "--threads", "0"]);
    assert!(none.code == Some(2) && none.err.contains("must be a whole number, at least 1"), "{}", none.err);
}
