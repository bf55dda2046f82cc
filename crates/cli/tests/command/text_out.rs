//! CSV, TSV and JSON lines as destinations, and standard output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Folder, corpus, data, marquetry, run};

/// Standard output, as bytes.
fn printed(arguments: &[&str]) -> Vec<u8> {
    let output = marquetry().args(arguments).output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn text_is_written_by_its_name_and_read_back() {
    let folder = Folder::new();
    let from = folder.path("from.csv");
    let rows: String = (0..30_000).map(|row| format!("{row},\"a, {}\",{}.5\n", row % 7, row % 100)).collect();
    fs::write(&from, format!("id,name,x\n{rows}")).unwrap();
    let text = printed(&["rows", "--format", "csv", &from]);
    for name in ["a.csv", "a.csv.gz", "a.csv.zst", "a.tsv", "a.jsonl", "a.jsonl.gz", "a.ndjson"] {
        let to = folder.path(name);
        let out = run(["copy", &from, &to, "--verify"]).succeeded();
        assert!(out.starts_with(&format!("30,000 rows written to {to}: ")), "{out}");
        assert!(out.contains("verified") && !out.contains("row group"), "{out}");
        assert_eq!(printed(&["rows", "--format", "csv", &to]), text, "{name}");
        run(["copy", &from, &to]).failed(1, &["already exists", "--overwrite"]);
        run(["copy", &from, &to, "--overwrite", "--sort", "id desc", "--quiet", "--limit", "5"]).succeeded();
        let first = run(["rows", "--format", "csv", "--limit", "1", &to]).succeeded();
        assert!(first.starts_with("id,name,x\n4,"), "{first}");
    }
    // What it is can be said, whatever the name.
    let odd = folder.path("odd.txt");
    run(["copy", &from, &odd, "--to", "jsonl", "--quiet", "--limit", "1"]).succeeded();
    assert_eq!(fs::read_to_string(&odd).unwrap(), "{\"id\":0,\"name\":\"a, 0\",\"x\":0.5}\n");
}

/// Doubles without digits come back as doubles, if there are numbers among them.
#[test]
fn nan_and_infinities_come_back() {
    let folder = Folder::new();
    let from = folder.path("from.csv");
    fs::write(&from, "id,x\n1,NaN\n2,1.5\n3,-Infinity\n").unwrap();
    let first = folder.path("first.parquet");
    run(["copy", &from, &first, "--schema", "id bigint, x double", "--quiet"]).succeeded();
    for name in ["a.jsonl", "a.csv", "a.tsv"] {
        let (text, back) = (folder.path(name), folder.path(&format!("{name}.parquet")));
        run(["copy", &first, &text, "--quiet", "--verify"]).succeeded();
        run(["copy", &text, &back, "--quiet", "--verify"]).succeeded();
        assert_eq!(run(["diff", &first, &back]).code, Some(0), "{name}");
    }
}

/// A reader of CSV gives it a name, so it cannot be compared by its own.
#[test]
fn a_column_without_a_name() {
    let folder = Folder::new();
    let (lines, to) = (folder.path("a.jsonl"), folder.path("a.csv"));
    fs::write(&lines, "{\"\":1,\"b\":2}\n").unwrap();
    run(["copy", &lines, &folder.path("b.jsonl"), "--quiet", "--verify"]).succeeded();
    run(["copy", &lines, &to, "--verify"])
        .failed(2, &["--verify: CSV is read back with another name (column \"\"); --columns chooses others"]);
    run(["copy", &lines, &to, "--quiet"]).succeeded();
    assert_eq!(run(["rows", "--format", "csv", &to]).succeeded(), "column1,b\n1,2\n");
}

/// What a text does not hold is no difference between rows: which parts of a column cannot be null, and how its lists are
/// spelled.
#[test]
fn nested_columns_of_any_writer_are_verified() {
    let folder = Folder::new();
    for name in [
        "datapage_v2.snappy",
        "nested_maps.snappy",
        "nonnullable.impala",
        "old_list_structure",
        "repeated_no_annotation",
        "nested_structs.rust",
    ] {
        let Some(from) = corpus(&format!("parquet-testing/data/{name}.parquet")) else { return };
        let (to, back) = (folder.path(&format!("{name}.jsonl")), folder.path(&format!("{name}.parquet")));
        let said = run(["copy", &from, &to, "--verify"]).succeeded();
        assert!(said.contains("verified"), "{said}");
        let schema = folder.write("schema.txt", run(["show", &from, "--schema"]).succeeded());
        run(["copy", &to, &back, "--schema-file", &schema, "--quiet"]).succeeded();
        let same = run(["diff", &from, &back]).succeeded();
        assert!(same.contains("the same: "), "{name}: {same}");
    }
}

/// A column of nothing but nulls, as Arrow writes it.
#[test]
fn nulls_of_no_type_are_verified() {
    let Some(from) = corpus("real/green_tripdata_2022-01.parquet") else { return };
    let folder = Folder::new();
    let schema = folder.write("schema.txt", run(["show", &from, "--schema"]).succeeded());
    for name in ["a.csv", "a.tsv", "a.jsonl"] {
        let to = folder.path(name);
        let columns = ["--columns", "lpep_pickup_datetime,ehail_fee,total_amount", "--limit", "1000"];
        let said = run([&["copy", &from, &to, "--verify"], &columns[..]].concat()).succeeded();
        assert!(said.contains("verified"), "{said}");
    }
    let (to, back) = (folder.path("all.csv"), folder.path("back.parquet"));
    run(["copy", &from, &to, "--quiet"]).succeeded();
    run(["copy", &to, &back, "--quiet", "--schema-file", &schema]).succeeded();
    let same = run(["diff", &from, &back, "--strict"]);
    assert!(same.out.contains("the same: 62,495 rows of 20 columns"), "{}", same.out);
}

/// What is written without rows is a table, but for JSON lines.
#[test]
fn tables_without_rows() {
    let folder = Folder::new();
    let from = folder.path("from.csv");
    fs::write(&from, "id,day\n").unwrap();
    let text = "id,day\n";
    for name in ["a.csv", "a.tsv", "a.parquet", "a/", "by day/"] {
        let to = folder.path(name);
        let by: &[&str] = if name == "by day/" { &["--partition-by", "day"] } else { &[] };
        run([&["copy", &from, &to, "--quiet", "--verify"], by].concat()).succeeded();
        assert_eq!(run(["rows", "--format", "csv", "--quiet", &to]).succeeded(), text, "{name}");
    }
    assert!(Path::new(&folder.path("by day/day=__HIVE_DEFAULT_PARTITION__/part-00000.parquet")).is_file());
    let lines = folder.path("a.jsonl");
    run(["copy", &from, &lines, "--quiet", "--verify"]).succeeded();
    run(["rows", &lines]).failed(1, &["it has no rows, so its columns are not known", "--schema"]);
    assert_eq!(run(["rows", &lines, "--schema", "id text", "--format", "csv"]).succeeded(), "id\n");
}

#[test]
fn standard_output_takes_every_format() {
    let folder = Folder::new();
    let one = data("one.parquet");
    assert_eq!(printed(&["copy", &one, "-", "--to", "csv"]), printed(&["rows", "--format", "csv", &one]));
    assert_eq!(printed(&["copy", &one, "-", "--to", "jsonl"]), printed(&["rows", "--format", "jsonl", &one]));
    let tsv = printed(&["copy", &one, "-", "--to", "tsv", "--columns", "a"]);
    assert_eq!(tsv, printed(&["rows", "--format", "csv", "--columns", "a", &one]));
    let parquet = folder.path("again.parquet");
    fs::write(&parquet, printed(&["copy", &one, "-", "--to", "parquet", "--codec", "zstd"])).unwrap();
    assert!(run(["show", &parquet]).succeeded().contains("ZSTD"));
    assert!(run(["diff", &one, &parquet]).succeeded().contains("row"));
    let table = ["--table", "ks.t", "--key", "a"];
    let copied = printed(&[&["copy", &one, "-", "--to", "cql"][..], &table].concat());
    assert_eq!(copied, printed(&[&["cql", &one][..], &table].concat()));
    run(["copy", &one, "-", "--to", "cql", "--key", "a"]).failed(2, &["--table ks.trips"]);
    run(["copy", &one, "-", "--to", "cql", "--table", "t"]).failed(2, &["primary key"]);
    run(["copy", &one, "-", "--to", "csv", "--verify"]).failed(2, &["--verify", "which can be read again"]);
    run(["copy", &one, "-"]).failed(2, &["standard output needs a format"]);
}

#[test]
fn options_without_a_meaning_are_refused() {
    let folder = Folder::new();
    let (one, csv) = (data("one.parquet"), folder.path("a.csv"));
    for (arguments, part) in [
        (vec!["--codec", "zstd"], "--codec is for writing Parquet files"),
        (vec!["--partition-by", "a"], "--partition-by is for directories"),
        (vec!["--key", "a"], "--key is for tables of a cluster"),
        (vec!["--create"], "--create is for tables of a cluster"),
        (vec!["--table", "t"], "--table is for CQL text (--to cql) and SSTables"),
    ] {
        run([&["copy", &one, &csv][..], &arguments].concat()).failed(2, &[part]);
    }
    run(["copy", &one, "-", "--to", "csv", "--overwrite"]).failed(2, &["--overwrite is for writing"]);
    let directory = folder.path("out/");
    run(["copy", &one, &directory, "--to", "csv"]).failed(2, &["holds Parquet only"]);
    let table = "cql://h/k.t";
    run(["copy", &one, table, "--to", "csv"]).failed(2, &["has no format"]);
    run(["copy", &one, table, "--overwrite"]).failed(2, &["--overwrite is for writing Parquet files"]);
    assert!(fs::read_dir(folder.root()).unwrap().next().is_none());
}

#[test]
fn what_a_text_cannot_hold_is_said_first() {
    let folder = Folder::new();
    let nested = data("nested.parquet");
    let csv = folder.path("a.csv");
    run(["copy", &nested, &csv])
        .failed(1, &["nested.parquet: CSV cannot hold nested columns (tags, place); JSON lines can"]);
    assert!(fs::read_dir(folder.root()).unwrap().next().is_none());
    let jsonl = folder.path("a.jsonl");
    run(["copy", &nested, &jsonl, "--quiet"]).succeeded();
    assert_eq!(fs::read(&jsonl).unwrap(), printed(&["rows", "--format", "jsonl", &nested]));
    // Text that is not UTF-8 is found on the way, and leaves nothing.
    let bad = data("bad_text.parquet");
    run(["copy", &bad, &csv]).failed(1, &["not UTF-8"]);
    assert!(!Path::new(&csv).exists());
    run(["copy", &bad, &csv, "--invalid-utf8", "replace", "--quiet"]).succeeded();
}

/// Every file of the corpus that can be printed is the same by both commands.
#[test]
fn files_are_what_rows_prints() {
    let folder = Folder::new();
    for name in ["alltypes_plain.parquet", "int96_from_spark.parquet", "byte_array_decimal.parquet"] {
        let Some(path) = corpus(&format!("parquet-testing/data/{name}")) else { return };
        for (format, ending) in [("csv", "csv"), ("jsonl", "jsonl")] {
            let to = folder.path(&format!("{name}.{ending}"));
            run(["copy", &path, &to, "--quiet"]).succeeded();
            assert_eq!(fs::read(&to).unwrap(), printed(&["rows", "--format", format, &path]), "{name}");
        }
    }
}

/// pyarrow reads the same values from the CSV, and Python's json from the lines.
#[test]
fn others_read_the_same() {
    let Some(python) = marquetry_testing::python() else { return };
    let folder = Folder::new();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/peers/text_out.py");
    let [parquet, csv, jsonl] = ["a.parquet", "a.csv", "a.jsonl"].map(|name| folder.path(name));
    let run_script = |arguments: &[&str]| {
        let out = Command::new(&python).arg(&script).args(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    run_script(&["make", &parquet]);
    for to in [&csv, &jsonl] {
        run(["copy", &parquet, to, "--verify", "--quiet"]).succeeded();
    }
    run_script(&["check", &parquet, &csv, &jsonl]);
}
