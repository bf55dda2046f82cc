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
