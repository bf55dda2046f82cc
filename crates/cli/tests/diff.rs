//! `marquetry diff`, and `copy --verify`.

mod common;

use common::{corpus, data, run};

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
    let out = run(["diff", &data("one.parquet"), &data("other_type.parquet")]);
    let told = out.failed(1, &["one.parquet", "other_type.parquet", "differ"]);
    assert!(told.contains("INT64 in ") && !told.contains("Int64"), "{told}");
    let out = run(["diff", &data("one.parquet"), &data("other_name.parquet")]);
    assert!(out.failed(1, &["differ"]).contains(": only in "));
    // A part of it, in two ways.
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to.parquet").to_str().unwrap().to_string();
    run(["copy", &data("many.parquet"), &to, "--limit", "5"]).succeeded();
    let told = run(["diff", &data("many.parquet"), &to]).failed(1, &["differ"]);
    assert!(told.starts_with("rows: ") && told.contains(" 5 in "), "{told}");
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
    assert!(told.starts_with("column id: 3 rows differ\n  row 0: 1 in "), "{told}");
    assert!(
        told.contains("column place: 3 rows differ\n  row 0: {\"lat\":1.5,\"lon\":2.5,\"height\":null} in "),
        "{told}"
    );
    let told = run(["diff", &forth, &back, "--columns", "id", "--show", "1"]).failed(1, &["differ"]);
    assert_eq!(told.lines().count(), 3, "{told}");
    assert!(told.starts_with("column id: ") && told.contains("  row 0: 3 in "), "{told}");
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
    assert!(told.starts_with("column long: 1 row differs\n  row 0: …é"), "{told}");
    assert!(told.contains("éleftxxx") && told.contains("érightxxx"), "{told}");
    assert!(told.contains("x… (bytes 999,909 to 1,000,909 of 3,000,015) in "), "{told}");
    assert!(told.len() < 3000, "{} bytes", told.len());
    // One ends where the other goes on; the beginning is left out, not the end.
    let c = file("c.jsonl", "{\"id\":1,\"long\":{\"text\":\"\"}}\n".to_owned());
    let told = run(["diff", &a, &c]).failed(1, &["differ"]);
    assert!(told.contains("  row 0: {\"text\":\"\"} in "), "{told}");
    assert!(told.contains("  row 0: {\"text\":\"éé") && told.contains("… (bytes 0 to 999 of "), "{told}");
    // All columns are named; not all are shown.
    let wide = |first: u32| (0..300).map(|at| (first + at).to_string()).collect::<Vec<_>>().join(",");
    let names = (0..300).map(|at| format!("c{at}")).collect::<Vec<_>>().join(",");
    let [a, b] = [1, 2].map(|first| file(&format!("{first}.csv"), format!("{names}\n{}\n", wide(first))));
    let told = run(["diff", &a, &b]).failed(1, &["differ"]);
    assert_eq!(told.lines().filter(|line| line.ends_with(": 1 row differs")).count(), 300);
    assert_eq!(told.lines().filter(|line| line.starts_with("  row 0: ")).count(), 200);
    assert!(told.ends_with("(without the values of 200 columns; --columns chooses)\n"), "{told}");
}
