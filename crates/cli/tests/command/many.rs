//! Many files as one table: directories, patterns, columns in their paths, schemas that differ; and parts of columns.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{self, Folder, corpus, data, run};

impl Folder {
    fn of(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::new();
        for (place, file) in files {
            let path = folder.root().join(place);
            fs::create_dir_all(path.parent().expect("a parent")).expect("the folder is made");
            fs::copy(data(file), path).expect("the file is copied");
        }
        folder
    }

    /// A text without the folder's own name.
    fn without(&self, text: &str) -> String {
        text.replace(self.root().to_str().expect("a path in UTF-8"), "DIR")
    }
}

fn csv(arguments: &[&str]) -> common::Run {
    run([&["rows", "--format", "csv"], arguments].concat())
}

fn hive() -> Folder {
    Folder::of(&[
        ("t/year=2024/city=New%20York/one.parquet", "one.parquet"),
        ("t/year=2023/city=Paris/x/reordered.parquet", "reordered.parquet"),
        ("t/year=2024/city=__HIVE_DEFAULT_PARTITION__/a.PARQ", "reordered.parquet"),
        ("t/_temporary/other_type.parquet", "other_type.parquet"),
        ("t/.hidden.parquet", "other_type.parquet"),
        ("t/year=2023/city=Paris/readme.txt", "other_type.parquet"),
    ])
}

#[test]
fn a_directory_is_a_table() {
    let folder = hive();
    let all = "a,b,year,city\n3,z,2023,Paris\n1,x,2024,New York\n2,y,2024,New York\n3,z,2024,\n";
    for path in ["t", "t/", "t/**", "t/year=*", "t/year=20[0-9][0-9]/*"] {
        let out = csv(&[&folder.path(path)]).succeeded();
        let (out, all): (Vec<&str>, Vec<&str>) = (out.lines().collect(), all.lines().collect());
        // The order of columns is that of the first file.
        assert_eq!(out.len(), all.len(), "{path}");
        assert_eq!((out[0], out[1]), ("b,a,year,city", "z,3,2023,Paris"), "{path}");
    }
    let out = csv(&["--columns", "a,b,year,city", &folder.path("t")]).succeeded();
    assert_eq!(out, all);
    let out = csv(&["--columns", "a,city", &folder.path("t/*/*/*.parquet")]).succeeded();
    assert_eq!(out, "a,city\n1,New York\n2,New York\n");
    let out = csv(&["--columns", "a,b", "--hive", "off", "--limit", "2", &folder.path("t")]).succeeded();
    assert_eq!(out, "a,b\n3,z\n1,x\n");
    assert_eq!(csv(&["--hive", "off", &folder.path("t")]).succeeded().lines().next(), Some("b,a"));
    // A path that names the file itself has the same columns.
    let one = folder.path("t/year=2024/city=New%20York/one.parquet");
    assert_eq!(csv(&[&one]).succeeded(), "a,b,year,city\n1,x,2024,New York\n2,y,2024,New York\n");
}

#[test]
fn columns_in_paths_have_types() {
    let folder = Folder::of(&[
        ("t/i=1/d=2024-02-29/s=01/one.parquet", "one.parquet"),
        ("t/i=-20/d=2023-01-01/s=2/one.parquet", "one.parquet"),
    ]);
    let cql = |more: &[&str]| {
        let path = folder.path("t");
        run([&["cql", path.as_str(), "--table", "t", "--key", "i,a"], more].concat()).succeeded()
    };
    let all = cql(&[]);
    assert!(all.starts_with(
        "CREATE TABLE t (\n    a bigint,\n    b text,\n    i bigint,\n    d date,\n    s text,\n    PRIMARY KEY (i, a)\n"
    ));
    assert!(all.contains("INSERT INTO t (a, b, i, d, s) VALUES (1, 'x', -20, '2023-01-01', '2');"), "{all}");
    let all = cql(&["--hive", "text", "--schema-only"]);
    assert!(all.contains("    i text,\n    d text,\n    s text,\n"), "{all}");
    let out = run(["rows", "--format", "jsonl", "--columns", "i,d,s,a", "--limit", "1", &folder.path("t")]);
    assert_eq!(out.succeeded(), "{\"i\":-20,\"d\":\"2023-01-01\",\"s\":\"2\",\"a\":1}\n");
    // A column of the path goes before one of the files, as with DuckDB and Spark.
    let folder = Folder::of(&[("t/a=7/one.parquet", "one.parquet")]);
    assert_eq!(csv(&[&folder.path("t")]).succeeded(), "b,a\nx,7\ny,7\n");
    assert_eq!(csv(&["--hive", "off", &folder.path("t")]).succeeded(), "a,b\n1,x\n2,y\n");
}

#[test]
fn paths_that_do_not_go_together() {
    let folder = Folder::of(&[
        ("t/k=1/one.parquet", "one.parquet"),
        ("t/one.parquet", "one.parquet"),
        ("u/k=1/k=2/one.parquet", "one.parquet"),
        ("v/k=%FF/one.parquet", "one.parquet"),
        ("w/readme.txt", "one.parquet"),
    ]);
    let path = folder.path("t");
    let wanted =
        ["t/one.parquet: the path has no \"k=…\", which that of", "k=1/one.parquet", "--union", "--hive off"];
    csv(&[&path]).failed(1, &wanted);
    assert_eq!(csv(&["--union", &path]).succeeded(), "a,b,k\n1,x,1\n2,y,1\n1,x,\n2,y,\n");
    assert_eq!(csv(&["--hive", "off", &path]).succeeded(), "a,b\n1,x\n2,y\n1,x\n2,y\n");
    csv(&[&folder.path("u")]).failed(1, &["the path has \"k\" twice", "--hive off"]);
    csv(&[&folder.path("v")]).failed(1, &["bytes that are not UTF-8", "--hive off"]);
    let endings = "(*.parquet, *.parq, *.pq) or a text (*.csv, *.tsv, *.tab, *.jsonl, *.ndjson)";
    csv(&[&folder.path("w")]).failed(3, &["a directory without a Parquet file ", endings]);
    csv(&["--from", "parquet", &folder.path("w")]).failed(3, &["a Parquet file (*.parquet, *.parq, *.pq)\n"]);
    csv(&[&folder.path("t/*.pq")]).failed(3, &["t/*.pq: no file matches\n"]);
    let missing = format!("there is no directory {}\n", folder.path("x"));
    csv(&[&folder.path("x/y/*.pq")]).failed(3, &["x/y/*.pq: no file matches; ", &missing]);
    csv(&[&folder.path("x/y/a.pq")]).failed(3, &["x/y/a.pq: no such file or directory; ", &missing]);
    csv(&[&folder.path("t/{a.parquet")]).failed(2, &["no such file", "a brace that is not closed"]);
    csv(&[&folder.path("nothing")]).failed(3, &["nothing: no such file"]);
    csv(&["ftp://bucket/*.parquet"])
        .failed(2, &["ftp://bucket/*.parquet: reading from ftp:// is not supported yet"]);
}

#[test]
fn schemas_that_differ() {
    let folder = Folder::of(&[("a.parquet", "one.parquet"), ("b.parquet", "other_name.parquet")]);
    let path = folder.path("");
    for command in [vec!["rows"], vec!["cql", "--table", "t", "--key", "a"]] {
        let out = run([&command[..], &[&path]].concat());
        let wanted = [
            "b.parquet: there is no column \"b\", which",
            "a.parquet has",
            "--union reads it as null",
            "--columns",
        ];
        assert_eq!(out.failed(1, &wanted), "");
    }
    // Rows are counted whatever they have, unless columns are asked for.
    assert_eq!(run(["count", &path]).succeeded(), "3\n");
    let text = [folder.write("c.csv", "d\n1\n2\n"), folder.write("d.jsonl", "{\"d\":true}\n{}\n")];
    assert_eq!(run(["count", &path, &text[0], &text[1]]).succeeded(), "7\n");
    assert_eq!(run(["count", &path, "--columns", "a"]).succeeded(), "3\n");
    run(["count", &path, "--columns", "b"]).failed(1, &["there is no column \"b\""]);
    run(["count", &path, "--where", "a = 1"]).failed(1, &["there is no column \"b\""]);
    run(["count", &path, "--delimiter", "|"]).failed(2, &["--delimiter is for CSV"]);
    text.iter().for_each(|path| fs::remove_file(path).expect("the text is removed"));
    assert_eq!(csv(&["--union", &path]).succeeded(), "a,b,c\n1,x,\n2,y,\n1,,x\n");
    assert_eq!(csv(&["--columns", "a", &path]).succeeded(), "a\n1\n2\n1\n");
    assert_eq!(csv(&["--columns", "c,a", "--union", &path]).succeeded(), "c,a\n,1\n,2\nx,1\n");
    csv(&["--columns", "c,a", &path]).failed(1, &["there is no column \"c\""]);
    csv(&["--columns", "d", "--union", &path])
        .failed(2, &["and 1 more file: --columns: there is no column \"d\"", "a, b, c"]);
    let cql = run(["cql", &path, "--union", "--table", "t", "--key", "a", "--data-only"]).succeeded();
    assert!(cql.ends_with("INSERT INTO t (a, c) VALUES (1, 'x');\n"), "{cql}");
    // All that is different is said at once, and each option that helps.
    let differing = Folder::of(&[
        ("a.parquet", "one.parquet"),
        ("b.parquet", "other_name.parquet"),
        ("c.parquet", "other_type.parquet"),
    ]);
    let wanted = [
        "b.parquet: there is no column \"b\", which",
        "; ",
        "c.parquet: the column \"a\" is DOUBLE",
        "a.parquet: there is no column \"c\", which",
        "; --columns chooses others, --union reads it as null where it is missing",
    ];
    csv(&[&differing.path("")]).failed(1, &wanted);
    // A type that no other holds is an error with the option too, unless the column is not wanted.
    let folder = Folder::of(&[("a.parquet", "one.parquet"), ("b.parquet", "other_type.parquet")]);
    let path = folder.path("");
    let wanted = [
        "b.parquet: the column \"a\" is DOUBLE, but INT64 in",
        "a.parquet",
        "no type holds the values of both",
    ];
    csv(&["--union", &path]).failed(1, &wanted);
    csv(&[&path]).failed(1, &wanted);
    assert_eq!(csv(&["--columns", "b", &path]).succeeded(), "b\nx\ny\nx\n");
}

#[test]
fn nested_schemas_that_differ() {
    let paths = [data("nested.parquet"), data("nested_other.parquet")];
    let [one, other] = [&*paths[0], &*paths[1]];
    let jsonl = |arguments: &[&str]| run([&["rows", "--format", "jsonl"], arguments, &[one, other]].concat());
    jsonl(&["--columns", "place"]).failed(1, &["no field \"place.height\"", "--union"]);
    assert_eq!(
        jsonl(&["--columns", "place", "--union"]).succeeded(),
        "{\"place\":{\"lat\":1.5,\"lon\":2.5,\"height\":null}}\n{\"place\":null}\n\
         {\"place\":{\"lat\":1.5,\"lon\":2.5,\"height\":3.5}}\n"
    );
    assert_eq!(
        jsonl(&["--columns", "place.height,id", "--union"]).succeeded(),
        "{\"place\":{\"height\":null},\"id\":1}\n{\"place\":null,\"id\":2}\n{\"place\":{\"height\":3.5},\"id\":3}\n"
    );
    // What differs and is not wanted does not matter.
    assert_eq!(
        jsonl(&["--columns", "place.lon"]).succeeded(),
        "{\"place\":{\"lon\":2.5}}\n{\"place\":null}\n{\"place\":{\"lon\":2.5}}\n"
    );
    let wanted = [
        "nested_other.parquet: ",
        "\"tags.list.element\" is INT64, but BYTE_ARRAY STRING in",
        "nested.parquet",
    ];
    jsonl(&["--columns", "tags", "--union"]).failed(1, &wanted);
}

#[test]
fn parts_of_columns() {
    let path = data("nested.parquet");
    let jsonl = |columns: &str| run(["rows", "--format", "jsonl", "--columns", columns, &path]);
    assert_eq!(
        jsonl("place.lon,id").succeeded(),
        "{\"place\":{\"lon\":2.5},\"id\":1}\n{\"place\":null,\"id\":2}\n"
    );
    assert_eq!(jsonl("tags.element").succeeded(), "{\"tags\":[\"a\",\"b\"]}\n{\"tags\":[]}\n");
    assert_eq!(jsonl("\"place\".\"lat\"").succeeded(), "{\"place\":{\"lat\":1.5}}\n{\"place\":null}\n");
    jsonl("place.alt").failed(2, &["the column \"place\": there is no field \"alt\"; it holds lat, lon"]);
    jsonl("id.x").failed(2, &["the column \"id\" holds values, and no field \"x\""]);
    jsonl("place.lat,place.lat").failed(2, &["names \"place.lat\" twice"]);
    jsonl("place.").failed(2, &["no field \"\""]);
    let names = data("names.parquet");
    assert_eq!(csv(&["--columns", "do.t,\"do.t\"", &names]).failed(2, &["names \"\\\"do.t\\\"\" twice"]), "");
    assert_eq!(csv(&["--columns", "do.t,DO.T", &names]).failed(2, &["twice"]), "");
    assert_eq!(csv(&["--columns", "Case,do.t", &names]).succeeded(), "Case,do.t\n6,3\n");
    let Some(maps) = corpus("parquet-testing/data/nested_maps.snappy.parquet") else { return };
    let limit = ["--limit", "2", "--format", "jsonl", &maps];
    let out = run([&["rows", "--columns", "a.key"], &limit[..]].concat()).succeeded();
    assert_eq!(out, "{\"a\":[\"a\"]}\n{\"a\":[\"b\"]}\n");
    let out = run([&["rows", "--columns", "a.value.value,a.value.key"], &limit[..]].concat()).succeeded();
    assert_eq!(
        out,
        "{\"a\":[[{\"key\":1,\"value\":true},{\"key\":2,\"value\":false}]]}\n{\"a\":[[{\"key\":1,\"value\":true}]]}\n"
    );
    let Some(variant) = corpus("parquet-testing/shredded_variant/case-045.parquet") else { return };
    run(["rows", "--columns", "var.value", &variant]).failed(2, &["\"var\" is a VARIANT", "no part"]);
}

#[test]
fn columns_that_a_file_names() {
    let (folder, path) = (tempfile::tempdir().unwrap(), data("nested.parquet"));
    let list = folder.path().join("columns");
    let list_path = list.to_str().unwrap();
    let jsonl = |text: &str| {
        fs::write(&list, text).unwrap();
        run(["rows", "--format", "jsonl", "--limit", "1", "--columns-file", list_path, &path])
    };
    assert_eq!(jsonl("place.lat\r\n\n \"id\" \n").succeeded(), "{\"place\":{\"lat\":1.5},\"id\":1}\n");
    jsonl("id,tags\n").failed(2, &["columns, line 1: 'id,tags' names more than one column"]);
    jsonl("id\n\"tags\n").failed(2, &["columns, line 2: ", "a quote is not closed"]);
    jsonl("\n").failed(2, &["no column is named"]);
    jsonl("id\nnope\n").failed(2, &["no column \"nope\""]);
    run(["rows", "--columns-file", "/nonexistent/x", &path]).failed(3, &["/nonexistent/x"]);
    assert_eq!(run(["rows", "--columns-file", list_path, "--columns", "id", &path]).code, Some(2));
    let cql = ["cql", &path, "--table", "t", "--key", "id", "--columns-file", list_path, "--schema-only"];
    fs::write(&list, "id\n").unwrap();
    assert!(run(cql).succeeded().contains("PRIMARY KEY (id)"));
}

#[test]
fn a_directory_at_a_glance() {
    let folder = Folder::of(&[
        ("t/k=1/a.parquet", "one.parquet"),
        ("t/k=x/b.parquet", "other_type.parquet"),
        ("t/k=x/c.parquet", "other_name.parquet"),
    ]);
    let path = folder.path("t");
    let shown = folder.without(&run(["show", &path]).succeeded());
    for line in [
        "3 files",
        "  rows        4 in 3 row groups",
        "  schemas     3, joined by name",
        "  partition   k (BYTE_ARRAY STRING, 2 values)",
        "  ├─ a  optional  INT64",
        "  a  INT64 in DIR/t/k=1/a.parquet, DOUBLE in DIR/t/k=x/b.parquet: no type holds both",
        "  b  in DIR/t/k=1/a.parquet, but not in DIR/t/k=x/c.parquet",
        "  DIR/t/k=1/a.parquet     2           1  ",
    ] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "no {line:?} in {shown}");
    }
    let one = data("one.parquet");
    assert!(run(["show", "--summary", &one, &one]).succeeded().starts_with("2 files\n"));
    assert!(!run(["show", &one, &one]).succeeded().contains("2 files"));
    let json = run(["show", "--json", &path]).succeeded();
    assert_eq!(json.lines().count(), 3);
    run(["show", "--pages", "a", &path]).succeeded();
}

/// Variants are the same, however they are shredded.
#[test]
fn variants_of_all_shreddings_are_one_column() {
    let Some(first) = corpus("parquet-testing/shredded_variant/case-001.parquet") else { return };
    let (mut files, mut wanted) = (Vec::new(), String::new());
    for number in 1..=139 {
        let file = Path::new(&first).with_file_name(format!("case-{number:03}.parquet"));
        if !file.is_file() {
            continue;
        }
        let file = file.to_str().unwrap().to_string();
        let rows = run(["rows", "--format", "jsonl", &file]);
        // Those that are invalid, or of types that variants do not have.
        if rows.code == Some(0) {
            wanted.push_str(&rows.out);
            files.push(file);
        }
    }
    assert!(files.len() > 120, "{}", files.len());
    let arguments = ["rows", "--format", "jsonl"].into_iter().chain(files.iter().map(String::as_str));
    assert_eq!(run(arguments).succeeded(), wanted);
}

#[test]
fn tables_read_as_the_peers_read_them() {
    let Some(python) = marquetry_testing::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/many.py");
    let status = std::process::Command::new(python).arg(script).arg(folder.path()).status();
    assert!(status.is_ok_and(|status| status.success()));
    let mut compared = 0;
    for table in fs::read_dir(folder.path()).unwrap() {
        let table = table.unwrap().path();
        let path = table.join("table");
        let ours = run(["rows", "--format", "jsonl", "--union", path.to_str().unwrap()]).succeeded();
        let rows = |text: &str| {
            // Parsed, so that the order of keys and the spelling of numbers do not count.
            let mut rows: Vec<String> = text
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap())
                .map(|row| sorted(&row).to_string())
                .collect();
            rows.sort();
            rows
        };
        for peer in fs::read_dir(&table).unwrap() {
            let peer = peer.unwrap().path();
            if peer.extension().is_some_and(|extension| extension == "jsonl") {
                assert_eq!(rows(&ours), rows(&fs::read_to_string(&peer).unwrap()), "{}", peer.display());
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 4);
}

/// A value whose objects' keys are in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields.into_iter().collect()
        }
        Value::Array(elements) => elements.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
