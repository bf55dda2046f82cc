//! `rows --sample`: some rows at random, of every kind of file, and what is read for them.

use std::collections::BTreeSet;
use std::fs;

use crate::common::{Folder, run};

/// Rows that are numbered, in ten row groups of ten pages each.
fn numbers(folder: &Folder) -> [String; 2] {
    let lines: String = (0..10_000)
        .map(|at| format!("{{\"id\":{at},\"tags\":[\"t{}\",null],\"name\":\"n{at}\"}}\n", at % 7))
        .collect();
    let text = folder.write("numbers.jsonl", lines);
    let to = folder.path("numbers.parquet");
    run(["copy", &text, &to, "--row-group-rows", "1000", "--page-rows", "100", "--quiet"]).succeeded();
    [to, text]
}

fn ids(arguments: &[&str]) -> Vec<u64> {
    let some = ["rows", "--columns", "id", "--format", "csv"];
    let printed = run([&some[..], arguments].concat()).succeeded();
    printed.lines().skip(1).map(|line| line.parse().unwrap()).collect()
}

#[test]
fn as_many_rows_as_asked_in_order() {
    let folder = Folder::new();
    let [file, text] = numbers(&folder);
    for file in [&file, &text] {
        for count in [0_usize, 1, 17, 5_000, 9_999, 10_000, 20_000] {
            let wanted = count.to_string();
            let rows = ids(&[file, "--sample", &wanted, "--seed", "1"]);
            assert_eq!(rows.len(), count.min(10_000), "{file}");
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{file}");
        }
        let seven = ids(&[file, "--sample", "40", "--seed", "7"]);
        assert_eq!(
            seven,
            ids(&[file, "--sample", "40", "--seed", "7", "--threads", "1"]),
            "the seed decides"
        );
        assert_ne!(seven, ids(&[file, "--sample", "40", "--seed", "8"]));
        let of_two = ids(&[file, file, "--sample", "6000", "--seed", "7"]);
        assert!(of_two.len() == 6000 && of_two.windows(2).filter(|pair| pair[0] >= pair[1]).count() == 1);
        let some: BTreeSet<Vec<u64>> = (0..4).map(|_| ids(&[file, "--sample", "40"])).collect();
        assert!(some.len() > 1, "without a seed, others each time");
    }
    // Whole rows are those that the file has, whatever columns are asked for.
    let seed = ["--sample", "30", "--seed", "9"];
    let chosen = ids(&[&[&*file], &seed[..]].concat());
    for file in [&file, &text] {
        let all = run(["rows", file, "--format", "jsonl"]).succeeded();
        let all: Vec<&str> = all.lines().collect();
        let some = run([&["rows", file, "--format", "jsonl"], &seed[..]].concat()).succeeded();
        let line = |id: u64| all[usize::try_from(id).unwrap()];
        let id_of =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_u64().unwrap();
        assert!(some.lines().count() == 30 && some.lines().all(|found| found == line(id_of(found))));
        if file.ends_with("parquet") {
            assert_eq!(some.lines().map(id_of).collect::<Vec<_>>(), chosen);
        }
    }
    // All of a sample is printed as a table, and nothing is said of what it leaves out.
    let table = run(["rows", &file, "--columns", "id", "--sample", "25"]).succeeded();
    assert_eq!(table.lines().count(), 26);
}

#[test]
fn only_pages_with_chosen_rows_are_read() {
    let folder = Folder::new();
    let [file, _] = numbers(&folder);
    let seed = ["--sample", "3", "--seed", "5"];
    let chosen = ids(&[&[&*file], &seed[..]].concat());
    let mut bytes = fs::read(&file).unwrap();
    let mut broken = 0;
    for column in ["id", "tags.list.element", "name"] {
        for line in run(["show", "--index", column, "--json", &file]).succeeded().lines() {
            let page: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| page[name].as_u64().unwrap();
            let rows = number("first_row")..number("first_row") + number("rows");
            if !chosen.iter().any(|row| rows.contains(row)) {
                let last = number("offset") + number("compressed_bytes") - 1;
                bytes[usize::try_from(last).unwrap()] ^= 1;
                broken += 1;
            }
        }
    }
    assert!(broken > 250, "{broken} pages");
    let broken = folder.write("broken.parquet", bytes);
    run(["rows", &broken, "--format", "csv", "--quiet"]).failed(1, &["broken.parquet"]);
    for options in [&[][..], &["--rename", "name=n"], &["--types", "id=int"]] {
        let arguments = [&["rows", "--format", "jsonl", &broken], &seed[..], options].concat();
        assert_eq!(run(&arguments).succeeded().lines().count(), 3, "{arguments:?}");
    }
}

#[test]
fn a_sample_of_rows_that_match() {
    let folder = Folder::new();
    let [file, text] = numbers(&folder);
    for file in [&file, &text] {
        let rows = ids(&[file, "--where", "id >= 5000 AND id < 5100", "--sample", "20", "--seed", "2"]);
        assert!(rows.len() == 20 && rows.iter().all(|id| (5000..5100).contains(id)), "{rows:?}");
        assert_eq!(ids(&[file, "--where", "id < 5", "--sample", "20"]), [0, 1, 2, 3, 4]);
        let found = run(["find", file, "tags = 't3'", "--sample", "2", "--format", "csv", "--columns", "id"]);
        let found: Vec<u64> = found.succeeded().lines().skip(1).map(|line| line.parse().unwrap()).collect();
        assert!(found.len() == 2 && found.iter().all(|id| id % 7 == 3), "{found:?}");
    }
    assert_eq!(run(["find", &file, "id = -1", "--sample", "2"]).code, Some(1));
}

#[test]
fn what_a_sample_is_of() {
    let folder = Folder::new();
    let [file, text] = numbers(&folder);
    let empty = folder.write("empty.csv", "id,name\n");
    assert_eq!(run(["rows", &empty, "--sample", "3", "--format", "csv", "--quiet"]).succeeded(), "id,name\n");
    let none = folder.path("none.parquet");
    run(["copy", &empty, &none, "--quiet"]).succeeded();
    assert_eq!(run(["rows", &none, "--sample", "3", "--format", "csv"]).succeeded(), "id,name\n");
    // A directory of files with a column in their names, and text beside Parquet.
    let to = folder.path("lake/");
    run(["copy", &file, &to, "--columns", "id,name", "--file-rows", "900", "--quiet"]).succeeded();
    assert_eq!(ids(&[&to, "--sample", "500", "--seed", "3"]).len(), 500);
    assert_eq!(ids(&[&file, &text, "--union", "--sample", "500"]).len(), 500);
    for (options, part) in [
        (&["--sample", "-1"][..], "must be a whole number"),
        (&["--sample", "1", "--limit", "2"], "cannot be used with"),
        (&["--sample", "1", "--offset", "2"], "cannot be used with"),
        (&["--seed", "1"], "--sample <N>"),
        (&["--sample", "2G", "--where", "id = 1"], "at most 1000000000 rows can be chosen"),
    ] {
        let failed = run([&["rows", &*file], options].concat());
        assert!(failed.code == Some(2) && failed.err.contains(part), "{options:?}: {}", failed.err);
    }
}
