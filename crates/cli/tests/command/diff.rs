//! `marquetry diff`, and `copy --verify`.

use std::path::Path;

use crate::common::{Folder, corpus, data, run};

#[test]
fn a_copy_is_the_same_however_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["types", "nested", "many", "bad_text"] {
        let from = data(&format!("{name}.parquet"));
        let to = folder.path().join(format!("{name}.parquet")).to_str().unwrap().to_string();
        let more = ["--codec", "zstd", "--page-rows", "7", "--row-group-rows", "100", "--verify"];
        let out = run([&["copy", &from, &to][..], &more].concat()).succeeded();
        assert!(out.contains("verified"), "{out}");
        let out = run(["diff", &from, &to]).succeeded();
        assert!(out.starts_with("the same: "), "{out}");
    }
    let Some(from) = corpus("real/green_tripdata_2022-01.parquet") else { return };
    let to = folder.path().join("trips.parquet").to_str().unwrap().to_string();
    run(["copy", &from, &to, "--verify"]).succeeded();
    assert!(run(["diff", &from, &to]).succeeded().contains("62,495 rows"));
}

#[test]
fn what_differs_is_told() {
    let out = run(["diff", &data("one.parquet"), &data("other_name.parquet")]);
    assert!(out.failed(1, &["differ"]).contains(": only in A\n"));
    // A part of it.
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to.parquet").to_str().unwrap().to_string();
    run(["copy", &data("many.parquet"), &to, "--limit", "5"]).succeeded();
    let told = run(["diff", &data("many.parquet"), &to]).failed(1, &["differ"]);
    let (tables, rows) = told.split_once("rows: ").unwrap();
    assert!(
        tables.starts_with("A: ") && tables.contains("\nB: ") && tables.contains(", 5 rows of "),
        "{told}"
    );
    assert!(rows.starts_with("5 compared, 0 differ, ") && rows.ends_with(" only in A\n"), "{told}");
}

/// Flat and nested values that differ are counted, and the first are shown.
#[test]
fn values_that_differ_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (forth, back) = (path("forth.parquet"), path("back.parquet"));
    for (to, order) in [(&forth, ["nested", "nested_other"]), (&back, ["nested_other", "nested"])] {
        let (one, two) = (data(&format!("{}.parquet", order[0])), data(&format!("{}.parquet", order[1])));
        run(["copy", &one, &two, to, "--union", "--columns", "id,place"]).succeeded();
    }
    let told = run(["diff", &forth, &back]).failed(1, &["differ"]);
    assert!(told.contains("\ncolumn id: 3 rows differ\n  row 0\n    A: 1\n    B: 3\n"), "{told}");
    let place =
        "\ncolumn place: 3 rows differ\n  row 0\n    A: {\"lat\":1.5,\"lon\":2.5,\"height\":null}\n    B: ";
    assert!(told.contains(place), "{told}");
    let told = run(["diff", &forth, &back, "--columns", "id", "--show", "1"]).failed(1, &["differ"]);
    assert!(told.ends_with("column id: 3 rows differ\n  row 0\n    A: 1\n    B: 3\n"), "{told}");
    // By key, they are the same rows.
    let told = run(["diff", &forth, &back, "--key", "id"]).succeeded();
    assert!(told.starts_with("the same: 3 rows of 2 columns\n"), "{told}");
}

/// The same values in other types are the same; schemas are reported apart, and count on demand.
#[test]
fn values_are_compared_whatever_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (text, a, b, c) = (path("t.csv"), path("a.parquet"), path("b.parquet"), path("c.parquet"));
    std::fs::write(&text, "id,n,day\n1,10,2024-02-29\n2,,2024-03-01\n").unwrap();
    run(["copy", &text, &a, "--schema", "id bigint, n bigint, day date"]).succeeded();
    run(["copy", &text, &b, "--schema", "id int, n double, day date"]).succeeded();
    run(["copy", &text, &c, "--schema", "id text, n bigint, day date"]).succeeded();
    let told = run(["diff", &a, &b]).succeeded();
    let expected = "schemas:\n  id: optional INT64 in A, optional INT32 in B\n  n: optional INT64 in A, optional DOUBLE in B\n";
    assert!(told.starts_with("the same: 2 rows of 3 columns\nA: ") && told.ends_with(expected), "{told}");
    run(["diff", &a, &b, "--strict"]).failed(1, &["the schemas of ", " differ"]);
    run(["diff", &a, &a, "--strict"]).succeeded();
    // Columns in another order.
    let told = run(["diff", &a, &text, "--columns", "day,n,id", "--strict"]).succeeded();
    assert_eq!(told, "the same: 2 rows of 3 columns\n");
    // What cannot be compared counts.
    let told = run(["diff", &a, &c]).failed(1, &["differ"]);
    let line = "  id, which cannot be compared\n    A: optional INT64\n    B: optional BYTE_ARRAY STRING\n";
    assert!(told.contains(line), "{told}");
    run(["diff", &a, &c, "--columns", "n"]).succeeded();
    run(["diff", &a, &c, "--key", "id"])
        .failed(2, &["--key: values of the two columns id cannot be compared"]);
}

/// Rows in any order are matched by key.
#[test]
fn rows_are_matched_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (a, b) = (path("a.csv"), path("b.csv"));
    std::fs::write(&a, "day,id,fare\nmon,1,1.5\nmon,2,2.5\ntue,1,3.5\ntue,1,4.5\n,9,0\n").unwrap();
    std::fs::write(&b, "fare,id,day\n0,9,\n9.5,7,wed\n4.5,1,tue\n3.5,1,tue\n2.5,2,mon\n").unwrap();
    let told = run(["diff", &a, &b, "--key", "day,id"]).failed(1, &["differ"]);
    let expected = "rows: 4 compared, 2 differ, 1 only in A, 1 only in B
  only in A: day \"mon\", id 1
  1 row in A with the key of a row before
  only in B: day \"wed\", id 7
  1 row in B with the key of a row before
column fare: 2 rows differ
  day \"tue\", id 1
    A: 3.5
    B: 4.5
  day \"tue\", id 1
    A: 4.5
    B: 3.5
";
    assert!(told.ends_with(expected), "{told}");
    assert!(told.contains("schemas:\n  the columns are in another order\n"), "{told}");
    // The key is read, whatever columns are compared; null equals null.
    let told = run(["diff", &a, &b, "--key", "day,id,fare", "--columns", "fare", "--memory", "1"]);
    let told = told.failed(1, &["differ"]);
    assert!(told.contains("rows: 4 compared, 0 differ, 1 only in A, 1 only in B\n"), "{told}");
    run(["diff", &a, &b, "--key", "days"]).failed(2, &["--key", "there is no column \"days\""]);
    let refused = run(["diff", &a, &b, "--sort-memory", "1M"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    run(["diff", &data("nested.parquet"), &data("nested.parquet"), "--key", "place"])
        .failed(2, &["--key", "nested"]);
}

/// A program reads what is found.
#[test]
fn differences_are_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (a, b) = (path("a.csv"), path("b.jsonl"));
    std::fs::write(&a, "id,t,x\n1,a,1\n2,b,2\n3,c,3\n").unwrap();
    std::fs::write(&b, "{\"id\":3,\"t\":\"c\"}\n{\"id\":1,\"t\":\"é\\u001b\"}\n{\"id\":5,\"t\":\"e\"}\n")
        .unwrap();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let told = run([&["diff", &a, &b, "--json"][..], arguments].concat()).failed(1, &["differ"]);
        assert!(!told.contains('\x1b'), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        serde_json::from_str(&told).unwrap()
    };
    let found = json(&["--key", "id"]);
    assert_eq!(found["rows_equal"], false);
    assert_eq!(found["key"], serde_json::json!(["id"]));
    assert_eq!(found["schema"]["only_in_a"], serde_json::json!(["x"]));
    assert_eq!((found["a"]["rows"].as_u64(), found["b"]["columns"].as_u64()), (Some(3), Some(2)));
    let rows = serde_json::json!({
        "compared": 2, "different": 1, "only_in_a": 1, "only_in_b": 1,
        "first_only_in_a": [{"id": 2}], "first_only_in_b": [{"id": 5}],
        "repeated_keys_in_a": 0, "repeated_keys_in_b": 0,
    });
    assert_eq!(found["rows"], rows);
    let first = serde_json::json!([{"key": {"id": 1}, "a": "a", "b": "é\u{1b}"}]);
    assert_eq!(found["columns"], serde_json::json!([{"column": "t", "different": 1, "first": first}]));
    let found = json(&["--show", "1"]);
    assert_eq!(found["key"], serde_json::Value::Null);
    let first = serde_json::json!([{"row": 0, "a": 1, "b": 3}]);
    assert_eq!(found["columns"][0], serde_json::json!({"column": "id", "different": 3, "first": first}));
    let same = run(["diff", &a, &a, "--json"]).succeeded();
    let same: serde_json::Value = serde_json::from_str(&same).unwrap();
    assert_eq!((same["rows_equal"].as_bool(), same["schemas_equal"].as_bool()), (Some(true), Some(true)));
}

/// A table that cannot be read is no difference.
#[test]
fn what_cannot_be_read_has_another_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (cut, ragged, whole) = (path("cut.parquet"), path("ragged.csv"), data("many.parquet"));
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(&ragged, "a,b\n1,2\n3\n").unwrap();
    for [one, other] in [[&cut, &whole], [&whole, &cut]] {
        assert_eq!(run(["diff", one, other]).failed(3, &["cut.parquet"]), "");
    }
    run(["rows", &cut]).failed(1, &["cut.parquet"]);
    run(["diff", &ragged, &ragged]).failed(3, &["ragged.csv", "--short-rows"]);
    run(["diff", &whole, &path("none.parquet")]).failed(3, &["none.parquet"]);
    run(["diff", &whole, &whole, "--columns", "none"]).failed(2, &["none"]);
}

/// The options of text are for the side that is text.
#[test]
fn text_is_compared_with_its_parquet_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (csv, odd, parquet) = (path("a.csv"), path("a.dat"), path("a.parquet"));
    for name in [&csv, &odd] {
        std::fs::write(name, "a,b\n1,x\n2\n").unwrap();
    }
    let short = ["--short-rows", "null"];
    run([&["copy", &csv, &parquet][..], &short].concat()).succeeded();
    for [one, two] in [[&csv, &parquet], [&parquet, &csv], [&csv, &csv]] {
        let out = run([&["diff", one, two][..], &short].concat()).succeeded();
        assert_eq!(out, "the same: 2 rows of 2 columns\n");
    }
    // Whatever the names are; a directory too.
    std::fs::create_dir(path("d")).unwrap();
    std::fs::copy(&parquet, path("d/a.parquet")).unwrap();
    std::fs::copy(&parquet, path("odd")).unwrap();
    for (one, two) in [(&odd, &parquet), (&csv, &parquet), (&path("d"), &odd), (&odd, &path("odd"))] {
        run([&["diff", one, two, "--from", "csv"][..], &short].concat()).succeeded();
    }
    let refused = run([&["diff", &parquet, &parquet][..], &short].concat());
    refused.failed(2, &["--short-rows is for CSV, TSV and JSON lines"]);
}

/// Options of text are for both sides, whatever these are called.
#[test]
fn options_of_text_are_for_either_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::create_dir(path("csvs")).unwrap();
    std::fs::create_dir(path("parquets")).unwrap();
    std::fs::write(path("a.csv"), "id,n\n1,NA\n2,5\n").unwrap();
    for copy in ["b.txt", "csvs/a.csv"] {
        std::fs::copy(path("a.csv"), path(copy)).unwrap();
    }
    let null = ["--null", "NA"];
    run([&["copy", &path("a.csv"), &path("parquets/a.parquet")][..], &null].concat()).succeeded();
    std::fs::copy(path("parquets/a.parquet"), path("odd.csv")).unwrap();
    let (text, parquet) = (["a.csv", "b.txt", "csvs"], ["parquets", "parquets/a.parquet", "odd.csv"]);
    for one in text {
        for other in text.into_iter().chain(parquet) {
            for arguments in [&null[..], &["--null", "NA", "--from", "csv"]] {
                for [a, b] in [[one, other], [other, one]] {
                    let out = run([&["diff", &path(a), &path(b)][..], arguments].concat()).succeeded();
                    assert_eq!(out, "the same: 2 rows of 2 columns\n", "{a} {b} {arguments:?}");
                }
            }
        }
    }
    // Without the option nothing is null, on either side.
    run(["diff", &path("b.txt"), &path("csvs")]).succeeded();
    run(["diff", &path("b.txt"), &path("parquets")]).failed(1, &["differ"]);
    run(["diff", &path("parquets"), &path("parquets"), "--from", "csv"])
        .failed(2, &["--from is for CSV, TSV and JSON lines", "begins as Parquet files do"]);
}

/// --rename, --columns and --key speak of the same names.
#[test]
fn renamed_columns_are_chosen_and_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("old.csv"), "nr,fare,place\n1,2.5,x\n2,3.5,y\n").unwrap();
    std::fs::write(path("new.csv"), "id,price,place\n2,3.5,q\n1,2.5,z\n").unwrap();
    run(["copy", &path("new.csv"), &path("new.parquet")]).succeeded();
    for new in ["new.csv", "new.parquet"] {
        let diff = ["diff", &path("old.csv"), &path(new), "--rename", "nr=id,fare=price"];
        let told = run([&diff[..], &["--columns", "price", "--key", "id"]].concat()).succeeded();
        assert!(told.starts_with("the same: 2 rows of 2 columns\n"), "{told}");
        let told = run([&diff[..], &["--key", "id"]].concat()).failed(1, &["differ"]);
        assert!(told.contains("column place: 2 rows differ"), "{told}");
        run([&diff[..], &["--columns", "fare"]].concat()).failed(2, &["there is no column \"fare\""]);
    }
    run(["diff", &path("old.csv"), &path("new.csv"), "--rename", "no=id"])
        .failed(2, &["--rename: there is no column \"no\""]);
    // A name that both tables have.
    let same = ["diff", &path("old.csv"), &path("old.csv"), "--rename", "nr=id", "--columns", "id,place"];
    run(same).succeeded();
    let one =
        run(["rows", &path("old.csv"), "--rename", "fare=price", "--columns", "price", "--format", "csv"]);
    assert_eq!(one.succeeded(), "price\n2.5\n3.5\n");
}

/// Of a long value there is the part around the first difference, and where that is.
#[test]
fn long_values_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name).to_str().unwrap().to_string();
        std::fs::write(&path, text).unwrap();
        path
    };
    let line = |at: usize, word: &str| {
        let text = format!("{}{word}{}", "é".repeat(at), "x".repeat(2_000_000));
        format!("{{\"id\":1,\"long\":{{\"text\":\"{text}\"}}}}\n")
    };
    let a = file("a.jsonl", line(500_000, "left"));
    let b = file("b.jsonl", line(500_000, "right"));
    let told = run(["diff", &a, &b]).failed(1, &["differ"]);
    assert!(told.contains("column long: 1 row differs\n  row 0\n    A: …é"), "{told}");
    assert!(told.contains("éleftxxx") && told.contains("érightxxx"), "{told}");
    assert!(told.contains("x… (bytes 999,909 to 1,000,909 of 3,000,015)\n"), "{told}");
    assert!(told.len() < 3000, "{} bytes", told.len());
    // One ends where the other goes on; the beginning is left out, not the end.
    let c = file("c.jsonl", "{\"id\":1,\"long\":{\"text\":\"\"}}\n".to_owned());
    let told = run(["diff", &a, &c]).failed(1, &["differ"]);
    assert!(told.contains("    B: {\"text\":\"\"}\n"), "{told}");
    assert!(told.contains("    A: {\"text\":\"éé") && told.contains("… (bytes 0 to 999 of "), "{told}");
    // All columns are named; not all are shown.
    let wide = |first: u32| (0..300).map(|at| (first + at).to_string()).collect::<Vec<_>>().join(",");
    let names = (0..300).map(|at| format!("c{at}")).collect::<Vec<_>>().join(",");
    let [a, b] = [1, 2].map(|first| file(&format!("{first}.csv"), format!("{names}\n{}\n", wide(first))));
    let told = run(["diff", &a, &b]).failed(1, &["differ"]);
    assert_eq!(told.lines().filter(|line| line.ends_with(": 1 row differs")).count(), 300);
    assert_eq!(told.lines().filter(|line| line.starts_with("    A: ")).count(), 100);
    assert!(told.ends_with("(without the values of 200 columns; --columns chooses)\n"), "{told}");
}

/// Variants are compared as the JSON that they stand for, however they are shredded.
#[test]
fn variants_are_compared_by_value() {
    let (Some(list), Some(boolean)) = (
        corpus("parquet-testing/shredded_variant/case-001.parquet"),
        corpus("parquet-testing/shredded_variant/case-005.parquet"),
    ) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("unshredded.parquet").to_str().unwrap().to_string();
    run(["copy", &boolean, &list, &to, "--union", "--limit", "1", "--quiet"]).succeeded();
    assert!(run(["diff", &boolean, &to]).succeeded().starts_with("the same: 1 row of 2 columns\n"));
    let told = run(["diff", &list, &to, "--columns", "var"]).failed(1, &["differ"]);
    assert!(told.ends_with("  row 0\n    A: [\"comedy\",\"drama\"]\n    B: false\n"), "{told}");
}

/// The same rows are the same, whoever wrote them.
#[test]
fn rows_by_other_writers_are_the_same() {
    let Some(python) = marquetry_testing::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/diff.py");
    let status = std::process::Command::new(python).arg(script).arg(folder.path()).status();
    assert!(status.is_ok_and(|status| status.success()));
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let one = path("arrow.parquet");
    for (other, differing) in [
        ("duckdb.parquet", "required INT64 DECIMAL(12, 2)"),
        ("older.parquet", "LIST of list.item"),
        ("wider.parquet", "DOUBLE"),
    ] {
        let told = run(["diff", &one, &path(other)]).succeeded();
        assert!(
            told.starts_with("the same: 1,000 rows of 12 columns\n") && told.contains(differing),
            "{told}"
        );
        run(["diff", &one, &path(other), "--strict", "--quiet"]).failed(1, &["schemas"]);
    }
    run(["diff", &one, &path("shuffled.parquet")]).failed(1, &["differ"]);
    for other in ["older.parquet", "wider.parquet"] {
        for key in ["id", "time", "price", "day,text"] {
            let told = run(["diff", &path("shuffled.parquet"), &path(other), "--key", key]).succeeded();
            assert!(told.starts_with("the same: 1,000 rows of 12 columns\n"), "{told}");
        }
    }
}

/// The key has the names that columns get, as the columns have that are chosen.
#[test]
fn a_key_may_be_renamed() {
    let folder = Folder::new();
    let (a, b) =
        (folder.write("a.csv", "k,v,w\n1,x,5\n2,y,6\n"), folder.write("b.csv", "k,v,w\n2,y,7\n1,x,8\n"));
    for more in [&["--columns", "v"][..], &["--columns", "v,id"], &["--columns", "id"]] {
        run([&["diff", &a, &b, "--rename", "k=id", "--key", "id"], more].concat()).succeeded();
    }
    run(["diff", &a, &b, "--rename", "k=id", "--key", "id"]).failed(1, &["differ"]);
    run(["diff", &a, &b, "--rename", "k=id", "--key", "k"]).failed(2, &["--key: there is no column \"k\""]);
}
