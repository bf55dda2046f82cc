//! `--threads`: what is printed and written does not depend on it.

use std::fmt::Write as _;
use std::fs;

use crate::common::{Folder, run};

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

const THREADS: [&str; 4] = ["1", "2", "3", "8"];

/// JSON lines with numbers, nulls, strings few and many, and lists: more than one block of text.
fn lines() -> String {
    let mut text = String::new();
    for row in 0_u64..90_000 {
        let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let score = if mixed % 9 == 0 { "null".to_owned() } else { format!("{}.5", mixed % 5000) };
        let tags: Vec<String> = (0..mixed % 4).map(|tag| format!("\"tag {}\"", (mixed + tag) % 60)).collect();
        let (name, tags) = (format!("{mixed:x} of {row}"), tags.join(","));
        writeln!(text, "{{\"id\":{row},\"name\":\"{name}\",\"score\":{score},\"tags\":[{tags}]}}").unwrap();
    }
    text
}

#[test]
fn copies_do_not_depend_on_the_threads() {
    let folder = Folder::new();
    let lines = folder.write("a.jsonl", lines());
    let copied = |from: &str, to: &str, options: &[&str]| {
        let made = THREADS.map(|threads| {
            let to = folder.path(to);
            run([&["copy", from, &to, "--overwrite", "--quiet", "--threads", threads], options].concat())
                .succeeded();
            fs::read(to).unwrap()
        });
        assert!(made.iter().all(|other| *other == made[0]), "{from} to {to}, {options:?}");
        made[0].clone()
    };
    // Row groups that are read column by column, and one that is not worth it.
    let groups = ["--row-group-rows", "40K"];
    let parquet = folder.write("a.parquet", copied(&lines, "to.parquet", &groups));
    let flat = folder.write("flat.csv", copied(&parquet, "to.csv", &["--columns", "id,name,score"]));
    assert!(fs::read(&flat).unwrap().len() > 2 << 20, "more than one block");
    assert_eq!(copied(&parquet, "to.jsonl", &[]), fs::read(&lines).unwrap());
    for from in [&lines, &parquet, &flat] {
        copied(from, "to.parquet", &["--sort", "score desc, id"]);
        copied(from, "to.parquet", &["--codec", "zstd", "--row-group-rows", "33K"]);
        let little = ["--sort", "name", "--memory", "2M", "--row-group-rows", "20K"];
        copied(from, "to.parquet", &little);
    }
    copied(&parquet, "to.csv.gz", &["--columns", "name,score", "--verify"]);
}

#[test]
fn the_first_error_does_not_depend_on_the_threads() {
    let folder = Folder::new();
    let lines = folder.write("a.jsonl", lines());
    let failed = |from: &str, part: &str| {
        let said = THREADS.map(|threads| {
            let none = folder.path("none.parquet");
            let run = run(["copy", from, &none, "--quiet", "--threads", threads]);
            let said = run.err.clone();
            run.failed(1, &[part]);
            said
        });
        assert!(said.iter().all(|other| *other == said[0]), "{said:#?}");
        said[0].clone()
    };
    let wrong = fs::read_to_string(&lines).unwrap();
    let wrong =
        wrong.replacen("{\"id\":30000,", "{\"id\":\"x\",", 1).replacen("{\"id\":80000,", "{\"id\":\"y\",", 1);
    failed(&folder.write("wrong.jsonl", wrong), "line 30001: a string");
    let whole = folder.path("a.parquet");
    run(["copy", &lines, &whole, "--quiet", "--row-group-rows", "40K", "--codec", "uncompressed"])
        .succeeded();
    let whole = fs::read(whole).unwrap();
    // Two bytes of two pages: of two row groups, of two columns of one row group, or of two pages of one column.
    let mut found = Vec::new();
    for (one, other) in [(10, 80), (11, 35), (20, 21), (30, 90), (33, 36)] {
        let mut broken = whole.clone();
        for part in [one, other] {
            let at = whole.len() * part / 100;
            broken[at] ^= 0x55;
        }
        let said = failed(&folder.write("broken.parquet", broken), "broken.parquet");
        found.push(said);
    }
    found.dedup();
    assert!(found.len() > 1, "{found:#?}");
}
