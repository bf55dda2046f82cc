//! What `show` and `rows` print, against outputs that were checked by eye and against pyarrow 26.
//!
//! With MARQUETRY_BLESS=1 the outputs in `tests/golden` are written anew, to be looked at before they are kept.

use std::fs;
use std::path::Path;

use crate::common::{Folder, Run, corpus, data, marquetry, run};

/// Compares an output with the one kept under `name`. Paths are named by the file alone.
#[track_caller]
fn golden(name: &str, path: &str, columns: &str, arguments: &[&str]) {
    let output = marquetry().env("COLUMNS", columns).args(arguments).arg(path).output().expect("it runs");
    let run = Run::of(output);
    assert_eq!(run.code, Some(0), "{}", run.err);
    // What a table leaves out is said beside it.
    let out = (run.out + &run.err).replace(path, Path::new(path).file_name().unwrap().to_str().unwrap());
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("MARQUETRY_BLESS").is_some_and(|value| value == "1") {
        fs::write(&kept, &out).expect("the output is kept");
    }
    let wanted = fs::read_to_string(&kept).unwrap_or_else(|error| panic!("{}: {error}", kept.display()));
    assert!(out == wanted, "{name} is now:\n{out}");
}

#[test]
fn all_types() {
    let path = data("types.parquet");
    golden("types.show.txt", &path, "100", &["show"]);
    golden("types.rows.txt", &path, "1000", &["rows"]);
    golden("types.rows.jsonl", &path, "100", &["rows", "--format", "jsonl"]);
    golden("types.rows.csv", &path, "100", &["rows", "--format", "csv"]);
    golden("types.cql", &path, "100", &["cql", "--table", "ks.types", "--key", "id", "--schema-only"]);
}

#[test]
fn bounds_are_joined_and_nested_columns_shown() {
    golden("bounds.show.txt", &data("bounds.parquet"), "80", &["show"]);
    golden("bounds.show.json", &data("bounds.parquet"), "80", &["show", "--json"]);
    golden("bounds.pages.txt", &data("bounds.parquet"), "100", &["show", "--pages", "t"]);
    golden("nested.show.txt", &data("nested.parquet"), "80", &["show"]);
}

#[test]
fn files_of_the_corpus() {
    let testing = |name: &str| corpus(&format!("parquet-testing/data/{name}"));
    let Some(path) = testing("alltypes_plain.parquet") else { return };
    golden("alltypes_plain.show.txt", &path, "80", &["show"]);
    golden("alltypes_plain.rows.txt", &path, "200", &["rows"]);
    golden("alltypes_plain.cql", &path, "80", &["cql", "--table", "t", "--key", "id", "--schema-only"]);
    for (name, columns) in
        [("alltypes_tiny_pages", "120"), ("nested_maps.snappy", "100"), ("int96_from_spark", "80")]
    {
        if let Some(path) = testing(&format!("{name}.parquet")) {
            golden(&format!("{name}.show.txt"), &path, columns, &["show"]);
        }
    }
    if let Some(path) = testing("int96_from_spark.parquet") {
        golden("int96_from_spark.rows.txt", &path, "80", &["rows"]);
    }
    if let Some(path) = testing("byte_array_decimal.parquet") {
        golden("byte_array_decimal.rows.csv", &path, "80", &["rows", "--format", "csv"]);
    }
    if let Some(path) = corpus("real/green_tripdata_2022-01.parquet") {
        golden("green_tripdata.show.txt", &path, "80", &["show"]);
        golden("green_tripdata.rows.txt", &path, "80", &["rows"]);
        golden(
            "green_tripdata.cql",
            &path,
            "80",
            &["cql", "--table", "ks.trips", "--key-row-number", "id", "--schema-only"],
        );
        golden("green_tripdata.pages.txt", &path, "80", &["show", "--pages", "fare_amount"]);
    }
}

/// The outputs kept were compared with pyarrow's `to_pylist` by a script; variants, by eye, with the `cases.json` beside them.
#[test]
fn nested_columns_of_the_corpus() {
    for (folder, name) in [
        ("data", "list_columns"),
        ("data", "map_no_value"),
        ("data", "nested_lists.snappy"),
        ("data", "nested_maps.snappy"),
        ("data", "nested_structs.rust"),
        ("data", "nullable.impala"),
        ("data", "old_list_structure"),
        ("data", "repeated_no_annotation"),
        ("shredded_variant", "case-045"),
        ("shredded_variant", "case-126"),
    ] {
        let Some(path) = corpus(&format!("parquet-testing/{folder}/{name}.parquet")) else { return };
        golden(&format!("{name}.rows.jsonl"), &path, "80", &["rows", "--format", "jsonl"]);
        let out = run(["rows", "--format", "jsonl", &path]).succeeded();
        for line in out.lines() {
            serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        }
    }
    if let Some(path) = corpus("parquet-testing/data/nullable.impala.parquet") {
        golden("nullable.impala.rows.txt", &path, "120", &["rows"]);
    }
    if let Some(path) = corpus("parquet-testing/data/list_columns.parquet") {
        golden("list_columns.rows.csv", &path, "80", &["rows", "--format", "csv"]);
    }
}

/// The text of the geometries is in the files' other columns; the bounds, the counts of NaNs and the box are those that pyarrow,
/// parquet-rs and DuckDB tell of these files.
#[test]
fn geometries_and_what_is_told_beside_the_data() {
    for (name, columns) in [("geospatial/geospatial-with-nan", "100"), ("floating_orders_nan_count", "120")] {
        let Some(path) = corpus(&format!("parquet-testing/data/{name}.parquet")) else { return };
        let name = name.rsplit('/').next().unwrap_or(name);
        golden(&format!("{name}.show.txt"), &path, columns, &["show"]);
        if name == "geospatial-with-nan" {
            golden(&format!("{name}.show.json"), &path, columns, &["show", "--json"]);
            golden(&format!("{name}.rows.txt"), &path, columns, &["rows"]);
            golden(&format!("{name}.rows.csv"), &path, columns, &["rows", "--format", "csv"]);
            golden(&format!("{name}.rows.jsonl"), &path, columns, &["rows", "--format", "jsonl"]);
        } else {
            golden(&format!("{name}.pages.txt"), &path, "200", &["show", "--pages", "float_ieee754"]);
            let pages = run(["show", "--pages", "float16_typedef", "--json", &path]).succeeded();
            let pages: Vec<serde_json::Value> =
                pages.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            let rows: Vec<_> = pages.iter().map(|page| page["first_row"].as_u64()).collect();
            assert_eq!(rows, [Some(0), Some(10), Some(20), Some(30), Some(40)]);
            let nans: Vec<_> = pages.iter().map(|page| page["index"]["nan_count"].as_u64()).collect();
            // Its writer leaves the column index out where there are NaNs that the order has no place for.
            assert_eq!(nans, [Some(0), None, None, Some(0), Some(0)]);
        }
    }
    let Some(path) = corpus("parquet-testing/data/geospatial/crs-projjson.parquet") else { return };
    let shown: serde_json::Value =
        serde_json::from_str(&run(["show", "--json", &path]).succeeded()).expect("JSON");
    assert_eq!(shown["schema"][2]["crs"], "projjson:projjson_epsg_5070");
}

#[test]
fn nested_columns_as_cql() {
    let path = data("nested_cql.parquet");
    let cql =
        ["cql", "--table", "ks.t", "--key", "id", "--null-elements", "drop", "--duplicate-keys", "last"];
    let columns = ["--columns", "id,stops,Place,tags,prices,twice"];
    golden("nested_cql.cql", &path, "80", &[&cql[..], &columns].concat());
    let sets = ["--as-set", "tags,Place.tags.element", "--frozen", "--limit", "1"];
    golden("nested_cql.frozen.cql", &path, "80", &[&cql[..], &columns, &sets].concat());
    let key =
        ["cql", "--table", "T", "--key", "(tags, Place), id", "--columns", "id,tags,Place", "--limit", "1"];
    golden("nested_cql.key.cql", &path, "80", &key);
    let numbered =
        ["cql", "--table", "t", "--key-row-number", "row", "--null-elements", "drop", "--limit", "4"];
    for (folder, name) in [
        ("data", "list_columns"),
        ("data", "map_no_value"),
        ("data", "nested_lists.snappy"),
        ("data", "nested_maps.snappy"),
        ("data", "nonnullable.impala"),
        ("data", "null_list"),
        ("data", "nullable.impala"),
        ("data", "old_list_structure"),
        ("data", "repeated_no_annotation"),
        ("data", "repeated_primitive_no_list"),
        ("shredded_variant", "case-045"),
        ("shredded_variant", "case-126"),
    ] {
        let Some(path) = corpus(&format!("parquet-testing/{folder}/{name}.parquet")) else { return };
        golden(&format!("{name}.cql"), &path, "80", &numbered);
    }
    if let Some(path) = corpus("parquet-testing/data/nested_structs.rust.parquet") {
        golden("nested_structs.rust.cql", &path, "80", &[&numbered[..], &["--columns", "roll_num"]].concat());
        assert_eq!(run([&numbered[..], &[&path]].concat()).succeeded().matches("CREATE TYPE").count(), 36);
    }
}

#[test]
fn nested_columns_in_every_format() {
    let path = data("nested.parquet");
    let out = run(["rows", "--format", "csv", &path, &path]).succeeded();
    let rows = "1,\"[\"\"a\"\",\"\"b\"\"]\",\"{\"\"lat\"\":1.5,\"\"lon\"\":2.5}\"\n2,[],\n";
    assert_eq!(out, format!("id,tags,place\n{rows}{rows}"));
    let out = run(["rows", &path]).succeeded();
    assert_eq!(
        out,
        "id  tags       place\n 1  [\"a\",\"b\"]  {\"lat\":1.5,\"lon\":2.5}\n 2  []         null\n"
    );
    let out = run(["rows", "--format", "jsonl", "--columns", "Place,id", "--limit", "1", &path]).succeeded();
    assert_eq!(out, "{\"place\":{\"lat\":1.5,\"lon\":2.5},\"id\":1}\n");
    let help = run(["rows", "--help"]).succeeded();
    assert!(help.contains("[{\"key\":1,\"value\":\"a\"}]"), "{help}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let path = data("types.parquet");
    for width in ["40", "80", "200"] {
        let output = marquetry().env("COLUMNS", width).args(["rows", "-q", &path]).output().unwrap();
        let out = Run::of(output).succeeded();
        let width: usize = width.parse().unwrap();
        for line in out.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn limits_and_what_is_left() {
    let path = data("many.parquet");
    // A pipe gets only data.
    let table = run(["rows", &path]);
    assert_eq!((table.code, table.out.lines().count()), (Some(0), 11));
    assert_eq!(table.err, "marquetry: note: 10 of 300,000 rows; --limit N shows more\n");
    assert_eq!(run(["rows", "--quiet", &path]).succeeded(), table.out);
    assert_eq!(run(["rows", "--limit", "3", "--format", "csv", &path]).succeeded(), "answer\n42\n42\n42\n");
    assert_eq!(run(["rows", "--format", "jsonl", &path]).succeeded().lines().count(), 300_000);
    assert_eq!(run(["rows", "--limit", "0", &path]).succeeded(), "answer\n");
    // A long table is printed in blocks, whose titles are for people.
    let long = run(["rows", "--limit", "2500", &path]).succeeded();
    let titles = long.lines().filter(|line| *line == "answer").count();
    assert_eq!((long.lines().count(), titles), (2501, 1));
}

#[test]
fn columns_come_in_the_order_asked_for() {
    let (one, reordered) = (data("one.parquet"), data("reordered.parquet"));
    let out = run(["rows", "--format", "csv", "--columns", "B,a", &one, &reordered]).succeeded();
    assert_eq!(out, "b,a\nx,1\ny,2\nz,3\n");
    let out = run(["rows", "--format", "csv", &one, &reordered]).succeeded();
    assert_eq!(out, "a,b\n1,x\n2,y\n3,z\n");
}

#[test]
fn text_that_is_not_utf8() {
    let path = data("bad_text.parquet");
    let out = run(["rows", "--format", "csv", &path]).failed(1, &["column text", "row 2", "--invalid-utf8"]);
    assert_eq!(out, "id,text\n0,a\n1,b\n");
    let out = run(["rows", "--format", "jsonl", &path]).failed(1, &["column text", "row 2"]);
    assert_eq!(out, "{\"id\":0,\"text\":\"a\"}\n{\"id\":1,\"text\":\"b\"}\n");
    run(["rows", &path]).failed(1, &["column text", "row 2"]);
    let out = run(["rows", "--format", "csv", "--invalid-utf8", "replace", &path]).succeeded();
    assert_eq!(out, "id,text\n0,a\n1,b\n2,c\u{fffd}\n3,d\n");
    let out = run(["rows", "--format", "csv", "--invalid-utf8", "blob", &path]).succeeded();
    assert_eq!(out, "id,text\n0,a\n1,b\n2,0x63ff\n3,d\n");
}

/// Lines are made column by column, some rows at a time; the first row that cannot be printed ends them, whichever column it is
/// in.
#[test]
fn lines_are_whole_wherever_rows_are_cut() {
    let path = data("many.parquet");
    for limit in ["1", "63", "64", "65", "1000"] {
        let out = run(["rows", "--format", "csv", "--limit", limit, &path]).succeeded();
        assert_eq!(out, format!("answer\n{}", "42\n".repeat(limit.parse().unwrap())));
    }
    let path = data("bad_text.parquet");
    for columns in ["text,id", "id,text"] {
        let out = run(["rows", "--format", "jsonl", "--columns", columns, &path])
            .failed(1, &["column text, row 2"]);
        assert_eq!(out.lines().count(), 2);
    }
}

#[test]
fn json_is_json() {
    let (one, types) = (data("one.parquet"), data("types.parquet"));
    let out = run(["show", "--json", &one, &types]).succeeded();
    let files: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(files.len(), 2);
    assert_eq!(files[0]["rows"], 2);
    assert_eq!(files[0]["columns"][0]["max"], "2");
    assert_eq!(files[1]["row_groups"][0]["columns"][4]["statistics"]["max"], "18446744073709551615");
    assert_eq!(files[1]["row_groups"][0]["columns"][4]["statistics"]["max_value_hex"], "0xffffffffffffffff");
    let out = run(["show", "--json", "--pages", "id", &types]).succeeded();
    let pages: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        pages.iter().map(|page| page["kind"].as_str().unwrap()).collect::<Vec<_>>(),
        ["dictionary", "data v1"]
    );
    for line in run(["rows", "--format", "jsonl", &types]).succeeded().lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    }
}

#[test]
fn fields_of_the_same_name_are_numbered() {
    let twice = data("nested_twice.parquet");
    let jsonl = run(["rows", "--format", "jsonl", &twice]).succeeded();
    assert_eq!(jsonl, "{\"id\":1,\"s\":[0],\"t\":{\"a\":1,\"a#2\":2}}\n");
    let csv = run(["rows", "--format", "csv", "--columns", "t.a#2,id", &twice]).succeeded();
    assert_eq!(csv, "t,id\n\"{\"\"a#2\"\":2}\",1\n");
    let shown = run(["show", &twice]).succeeded();
    let note = "  (fields of the same name are numbered here: a#2 is another a in the file)";
    assert!(shown.lines().any(|line| line == note), "{shown}");
    let shown: serde_json::Value =
        serde_json::from_str(&run(["show", "--json", &twice]).succeeded()).unwrap();
    assert_eq!((&shown["schema"][7]["name"], &shown["columns"][3]["path"]), (&"a".into(), &"t.a#2".into()));
    let pages = run(["show", "--pages", "t.a#2", &twice]).succeeded();
    assert!(pages.contains("column t.a#2: 2 pages"), "{pages}");
}

/// For people alone: CSV and JSON have digits, whatever the bytes are.
#[test]
fn bytes_that_are_all_text_are_text_in_a_table() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "0x616e6e61,0x00ff,0x27,\n0x,0x61,0xc3a9,\n");
    let file = folder.path("a.parquet");
    run(["copy", &text, &file, "--schema", "a blob, b blob, c blob, d blob", "--quiet"]).succeeded();
    assert_eq!(
        run(["rows", &file]).succeeded(),
        "a       b       c     d\n'anna'  0x00ff  ''''  null\n''      0x61    'é'   null\n"
    );
    let csv = run(["rows", &file, "--format", "csv"]).succeeded();
    assert_eq!(csv, "a,b,c,d\n0x616e6e61,0x00ff,0x27,\n0x,0x61,0xc3a9,\n");
    // What is shown finds it.
    assert_eq!(run(["count", &file, "--where", "a = 'anna' AND c = ''''"]).succeeded(), "1\n");
}
