//! `marquetry show` of files that are not Parquet files by their names, of directories of text, and of files that fail.

use std::fs;

use serde_json::Value;

use crate::common::{Folder, data, run};

/// A file is shown as what `rows` reads it as.
#[test]
fn text_without_a_telling_name_is_shown() {
    let folder = Folder::new();
    let json = folder.write("events.json", "{\"id\":1,\"at\":\"2024-02-29\"}\n");
    let text = folder.write("a.txt", "id;fare\n1;2.5\n");
    let shown = run(["show", &json, &text]).succeeded();
    for line in [
        "  format      JSON lines",
        "  format      CSV",
        "  ├─ id  optional  INT64",
        "  └─ fare  optional  DOUBLE",
    ] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "no {line:?} in {shown}");
    }
    let lines = run(["show", "--json", &json, &text]).succeeded();
    let formats: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["format"].clone()).collect();
    assert_eq!(formats, ["JSON lines", "CSV"]);
    assert!(run(["show", &text, "--from", "tsv"]).succeeded().contains("  format      TSV\n"));
    run(["show", &json, "--pages", "id"]).failed(1, &["events.json: not a Parquet file, but JSON lines"]);
    run(["show", &text, "--html", "-"]).failed(1, &["a.txt: not a Parquet file, but CSV"]);
    // A Parquet file is one under any name, and what is neither is said to be none.
    let odd = folder.path("odd.csv");
    fs::copy(data("one.parquet"), &odd).unwrap();
    assert!(run(["show", &odd, "--why"]).succeeded().starts_with(&odd));
    run(["show", &folder.write("binary", "\0\0\0\0\0\0\0\0\0\0\0\0")])
        .failed(1, &["binary: not a Parquet file"]);
}

#[test]
fn a_directory_of_text_is_shown_as_one() {
    let folder = Folder::new();
    folder.write("csvs/day=1/a.csv", "id,fare\n1,2\n");
    folder.write("csvs/day=2/b.csv", "id,fare\n2,3.5\n");
    folder.write("csvs/README", "no table");
    let csvs = folder.path("csvs");
    let shown = run(["show", &csvs]).succeeded();
    for line in [
        "2 files",
        "  format      CSV (2 files)",
        "  rows        not counted (2 text files)",
        "  size        26 B",
        "  partition   day (INT64, 2 values)",
        "  fare  INT64 in ",
    ] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "no {line:?} in {shown}");
    }
    assert!(!shown.contains("codecs") && !shown.contains("written by"), "{shown}");
    let json: Value = serde_json::from_str(&run(["show", "--summary", "--json", &csvs]).succeeded()).unwrap();
    assert_eq!(
        (&json["files"], &json["files_not_counted"], &json["bytes"]),
        (&2.into(), &2.into(), &26.into())
    );
    assert_eq!(json["formats"], serde_json::json!([{"name": "CSV", "count": 2}]));
    assert_eq!((&json["largest"]["rows"], &json["largest"]["bytes"]), (&Value::Null, &14.into()));
    assert_eq!(run(["show", "--json", &csvs]).succeeded().lines().count(), 2);
    // Beside a Parquet file, and one that is broken.
    let broken = folder.write("c.csv", "a,b\n1\n");
    let one = data("one.parquet");
    let shown = run(["show", "--summary", &csvs, &one, &broken]).failed(1, &["c.csv: "]);
    for line in [
        "3 files",
        "  format      CSV (2 files), Parquet (1 file)",
        "  rows        2 in 1 row group",
        "              those of text not counted (2 text files)",
        "  not read    1 file",
    ] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "no {line:?} in {shown}");
    }
}

/// What was collected before an error that ends everything is reported, and counts.
#[test]
fn failures_before_the_last_are_not_lost() {
    let folder = Folder::new();
    let (broken, missing) =
        (folder.write("broken.parquet", "PAR1 but no more"), folder.path("missing.parquet"));
    let one = data("one.parquet");
    for (first, code) in [(&broken, 2), (&missing, 3)] {
        let shown = run(["show", first, &one, "s3:///nothing", &one]);
        assert_eq!((shown.code, shown.err.lines().count()), (Some(code), 2), "{}", shown.err);
        assert!(shown.err.starts_with(&format!("marquetry: {first}: ")), "{}", shown.err);
        assert!(shown.err.lines().nth(1).unwrap().contains("without the name of a bucket"), "{}", shown.err);
        assert_eq!(shown.out, run(["show", &one]).succeeded());
    }
}
