//! `show --index`, `show --bloom` and `show --column-stats`: what a file says of one column, and what the values are like.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{Folder, data, marquetry, run};

/// Ten thousand rows, sorted, with page indexes and Bloom filters of chunks and pages; in ten row groups.
fn numbers(folder: &Folder) -> String {
    let lines: String = (0..10_000)
        .map(|at| {
            format!("{at},name {},{},{}\n", at * 7 % 10_000, at % 3, if at % 10 == 0 { "" } else { "x" })
        })
        .collect();
    let text = folder.write("numbers.csv", format!("id,name,third,gap\n{lines}"));
    let to = folder.path("numbers.parquet");
    let options = ["--row-group-rows", "1000", "--page-rows", "100", "--quiet"];
    run([&["copy", &text, &to, "--bloom", "name,id", "--page-bloom", "id"], &options[..]].concat())
        .succeeded();
    to
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_page_index_of_a_column() {
    let folder = Folder::new();
    let file = numbers(&folder);
    let shown = run(["show", "--index", "id", &file]).succeeded();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], format!("{file}, column id: 100 pages in 10 row groups"));
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        [
            "row",
            "group",
            "page",
            "first",
            "row",
            "rows",
            "offset",
            "compressed",
            "nulls",
            "order",
            "min",
            "max"
        ]
    );
    let cells: Vec<&str> = lines[1 + 43].split_whitespace().collect();
    assert_eq!(
        (&cells[..4], &cells[6..]),
        (&["4", "2", "4,200", "100"][..], &["0", "ascending", "4200", "4299"][..])
    );
    assert_eq!(lines.len(), 102);
    let few = run(["show", "--index", "id", "--limit", "7", &file]).succeeded();
    assert!(
        few.lines().count() == 2 + 7 + 1 && few.ends_with("\n… 93 more pages; --limit N lists more\n"),
        "{few}"
    );
    let few = run(["show", "--pages", "id", "-n", "7", &file]).succeeded();
    assert!(
        few.lines().count() > 2 + 7 + 1 && few.contains("\n… 93 more pages; --limit N lists more\n"),
        "{few}"
    );
    // What the headers say of the same pages.
    let indexed = objects(&run(["show", "--index", "gap", "--json", &file]).succeeded());
    let pages = objects(&run(["show", "--pages", "gap", "--json", &file]).succeeded());
    let pages: Vec<&Value> = pages.iter().filter(|page| !page["index"].is_null()).collect();
    assert_eq!((indexed.len(), pages.len()), (100, 100));
    for (indexed, page) in indexed.iter().zip(pages) {
        for name in ["file", "path", "row_group", "first_row", "rows", "offset"] {
            assert_eq!(indexed[name], page[name], "{name}");
        }
        for name in ["compressed_bytes", "min", "max_value_hex", "null_count", "boundary_order"] {
            assert!(indexed[name] == page["index"][name] && !indexed[name].is_null(), "{name}: {indexed}");
        }
        assert_eq!(indexed["null_count"], 10);
    }
}

#[test]
fn a_file_without_an_index_and_wrong_columns() {
    let folder = Folder::new();
    let (one, file) = (data("one.parquet"), numbers(&folder));
    assert_eq!(run(["show", "--index", "a", &one]).succeeded(), format!("{one}, column a: no page index\n"));
    assert_eq!(run(["show", "--index", "a", "--json", &one]).succeeded(), "");
    run(["show", "--index", "di", &file])
        .failed(2, &["there is no column \"di\" with pages", "lists the paths"]);
    run(["show", "--index", "id", &folder.path("numbers.csv")]).failed(1, &["not a Parquet file, but CSV"]);
    let failed = run(["show", "--limit", "3", &one]);
    assert!(failed.code == Some(2) && failed.err.contains("--index <COLUMN>"), "{}", failed.err);
    for both in [["--index", "id", "--pages", "id"], ["--index", "id", "--bloom", "id = 1"]] {
        assert_eq!(run([&["show", &*file], &both[..]].concat()).code, Some(2));
    }
    // Of several files, one after the other.
    let shown = run(["show", "--index", "id", "-n", "1", &file, &file]).succeeded();
    assert_eq!(shown.lines().filter(|line| line.contains(", column id: ")).count(), 2);
}

#[test]
fn a_broken_index_is_told_after_what_it_says() {
    let folder = Folder::new();
    let file = numbers(&folder);
    let footer = run(["show", "--json", &file]).succeeded();
    let footer: Value = serde_json::from_str(&footer).unwrap();
    let place = footer["row_groups"][5]["columns"][0]["offset_index_offset"].as_u64().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[usize::try_from(place).unwrap()] = 0xff;
    let broken = folder.write("broken.parquet", bytes);
    let shown =
        run(["show", "--index", "id", &broken]).failed(1, &["broken.parquet", "column id, row group 5"]);
    assert!(shown.contains("50 pages in 5 of 10 row groups"), "{shown}");
}

#[test]
fn bloom_filters_are_asked() {
    let folder = Folder::new();
    let file = numbers(&folder);
    // Which row group has it is known; others say no, but for false positives.
    let shown = run(["show", "--bloom", "id = 4321", &file]).succeeded();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with(&format!("{file}, column id: id = 4321: absent from ")), "{shown}");
    assert!(lines[0].ends_with(" of 10 row groups") && lines.len() == 12, "{shown}");
    let cells: Vec<&str> = lines[2 + 4].split_whitespace().collect();
    assert_eq!(cells[..4], ["4", "4321", "may", "be"]);
    assert!(lines[6].contains(" of 10 ") && lines[6].trim_end().ends_with('3'), "{shown}");
    assert!(lines.iter().filter(|line| line.contains("absent ")).count() >= 8, "{shown}");
    let told = objects(&run(["show", "--bloom", "id IN (4321, 17)", "--json", &file]).succeeded());
    assert_eq!(told.len(), 20);
    let of = |group: u64, value: &str| {
        let is_it = |answer: &&Value| answer["row_group"] == group && answer["value"] == value;
        told.iter().find(is_it).unwrap().clone()
    };
    let there = of(0, "17");
    assert_eq!((&there["filter"]["may_have"], &there["path"]), (&Value::from(true), &Value::from("id")));
    assert!(there["pages"]["may_have"].as_array().unwrap().contains(&Value::from(0)), "{there}");
    let (filter, bytes) = (&there["filter"], fs::read(&file).unwrap());
    let number = |name: &str| usize::try_from(filter[name].as_u64().unwrap()).unwrap();
    assert_eq!(number("block_offset"), number("offset") + 32 * number("block"));
    assert!(bytes[number("block_offset")..][..32].iter().any(|byte| *byte != 0));
    assert_eq!(number("bytes"), 32 * number("blocks"));
    // Text, and a column without filters.
    let names = objects(&run(["show", "--bloom", "name = 'name 247'", "--json", &file]).succeeded());
    let found: Vec<&Value> = names.iter().filter(|answer| answer["filter"]["may_have"] == true).collect();
    assert!(found.iter().any(|answer| answer["row_group"] == 4) && found.len() < 4, "{names:?}");
    assert!(names.iter().all(|answer| answer["pages"].is_null()));
    let none = run(["show", "--bloom", "third = 1", &file]).succeeded();
    assert!(none.contains("absent from 0 of 10 row groups") && none.contains(" none "), "{none}");
    let none = objects(&run(["show", "--bloom", "third = 1", "--json", &file]).succeeded());
    assert!(none.iter().all(|answer| answer["filter"].is_null()));
}

#[test]
fn filters_are_asked_for_values_alone() {
    let folder = Folder::new();
    let file = numbers(&folder);
    for (asked, message, carets) in [
        ("id = 'x'", "'x' is not a bigint", "  id = 'x'\n       ^^^\n"),
        ("di = 1", "there is no column di: the columns are id, name, third, gap", "  di = 1\n  ^^\n"),
        ("id = ", "a literal is missing at the end", "  id =\n       ^\n"),
    ] {
        let failed = run(["show", "--bloom", asked, &file]);
        assert_eq!((failed.code, &*failed.out), (Some(2), ""));
        assert_eq!(failed.err, format!("marquetry: {message}\n{carets}"));
    }
    for asked in ["id > 5", "id <> 5", "id IS NULL", "name LIKE 'n%'"] {
        run(["show", "--bloom", asked, &file]).failed(2, &["Bloom filters are asked for values", asked]);
    }
    run(["show", "--bloom", "id = 1 OR third = 2", &file]).failed(2, &["are asked about one column"]);
}

#[test]
fn what_values_are_like() {
    let folder = Folder::new();
    let file = numbers(&folder);
    for file in [&file, &folder.path("numbers.csv")] {
        let told = run(["show", "--column-stats", "--json", file]).succeeded();
        let told: Value = serde_json::from_str(&told).unwrap();
        let column = |at: usize| told["columns"][at].clone();
        assert_eq!((&told["rows"], told["columns"].as_array().unwrap().len()), (&Value::from(10_000), 4));
        let (id, third, gap) = (column(0), column(2), column(3));
        assert_eq!((&id["path"], &id["min"], &id["max"]), (&"id".into(), &"0".into(), &"9999".into()));
        let distinct = id["distinct"].as_u64().unwrap();
        assert!(distinct.abs_diff(10_000) < 600 && id["is_distinct_exact"] == false, "{id}");
        assert_eq!(id["frequent"].as_array().unwrap().len(), 0, "{id}");
        assert_eq!((&third["distinct"], &third["is_distinct_exact"]), (&3.into(), &true.into()));
        assert_eq!(third["frequent"][0]["value"], "0");
        assert_eq!(
            (&third["frequent"][0]["at_least"], &third["frequent"][0]["at_most"]),
            (&3334.into(), &3334.into())
        );
        assert_eq!(
            (&gap["values"], &gap["nulls"], &gap["bytes_mean"]),
            (&9000.into(), &1000.into(), &1.0.into())
        );
        assert_eq!((&column(1)["min"], &column(1)["max"]), (&"name 0".into(), &"name 9999".into()));
    }
    let shown = run(["show", "--column-stats", "--columns", "third,gap", &file]).succeeded();
    assert_eq!(
        shown,
        format!(
            "{file}: 10,000 rows\n\
             column  values  nulls  distinct  mean size  min  max  most frequent\n\
             third   10,000      0         3          -  0    2    0 33%, 1 33%, 2 33%\n\
             gap      9,000  1,000         1        1 B  \"x\"  \"x\"  \"x\" 100%\n"
        )
    );
    run(["show", "--column-stats", "--columns", "thrid", &file]).failed(2, &["no column", "thrid"]);
    for other in [&[][..], &["--summary"], &["--pages", "id"], &["--schema"], &["--html", "-"]] {
        let wrong = run([&["show", "--columns", "third", &file], other].concat());
        wrong.failed(2, &["--columns is for --column-stats and --why"]);
    }
    // Why these columns are encoded as they are, in this order.
    let why = run(["show", "--why", "--columns", "gap,id", &file]).succeeded();
    let told: Vec<&str> = why.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let first = told.iter().position(|word| *word == "column").expect("a title");
    assert_eq!(told[first..first + 4], ["column", "gap", "id", "Row"], "{why}");
    assert!(!told.contains(&"third") && !told.contains(&"name"), "{why}");
    run(["show", "--why", "--columns", "thrid", &file]).failed(2, &["no column", "thrid"]);
    // Several files are one table.
    let both = run(["show", "--column-stats", "--json", "--columns", "third", &file, &file]).succeeded();
    let both: Value = serde_json::from_str(&both).unwrap();
    assert_eq!((&both["rows"], &both["columns"][0]["distinct"]), (&20_000.into(), &3.into()));
}

#[test]
fn values_of_every_kind() {
    let folder = Folder::new();
    let lines = "{\"f\":1.5,\"l\":[1,null,3],\"s\":{\"a\":\"é\"},\"b\":true}\n\
                 {\"f\":-0.0,\"l\":[],\"s\":null,\"b\":false}\n\
                 {\"f\":0.0,\"l\":null,\"s\":{\"a\":\"\"},\"b\":true}\n\
                 {\"f\":\"NaN\",\"l\":[3],\"s\":{\"a\":null},\"b\":null}\n";
    let (text, to) = (folder.write("a.jsonl", lines), folder.path("a.parquet"));
    run(["copy", &text, &to, "--schema", "f double, l list<int>, s struct<a text>, b boolean", "--quiet"])
        .succeeded();
    let told: Value =
        serde_json::from_str(&run(["show", "--column-stats", "--json", &to]).succeeded()).unwrap();
    let column = |path: &str| {
        let columns = told["columns"].as_array().unwrap();
        columns.iter().find(|column| column["path"] == path).unwrap().clone()
    };
    let f = column("f");
    assert_eq!(
        (&f["nans"], &f["distinct"], &f["min"], &f["max"]),
        (&1.into(), &3.into(), &"0.0".into(), &"1.5".into())
    );
    let l = column("l.list.element");
    // A null, an empty list and a list that is null.
    assert_eq!((&l["values"], &l["nulls"], &l["distinct"]), (&3.into(), &3.into(), &2.into()));
    let s = column("s.a");
    assert_eq!(
        (&s["values"], &s["nulls"], &s["min"], &s["max"]),
        (&2.into(), &2.into(), &"".into(), &"é".into())
    );
    assert_eq!((&s["bytes_mean"], &s["bytes_max"]), (&1.0.into(), &2.into()));
    let b = column("b");
    assert_eq!(
        (&b["min"], &b["max"], &b["frequent"][0]["value"]),
        (&"false".into(), &"true".into(), &"true".into())
    );
    // No rows.
    let (empty, none) = (folder.write("empty.csv", "id,name\n"), folder.path("none.parquet"));
    run(["copy", &empty, &none, "--quiet"]).succeeded();
    for file in [&empty, &none] {
        // Of the text, its only row may be one of values, which is said.
        let ran = run(["show", "--column-stats", file]);
        assert_eq!(
            (ran.code, ran.err.contains("--header no")),
            (Some(0), file.ends_with(".csv")),
            "{}",
            ran.err
        );
        let shown = ran.out;
        assert!(shown.starts_with(&format!("{file}: 0 rows\ncolumn  values  nulls  distinct")), "{shown}");
        assert_eq!(shown.lines().count(), 4);
        assert!(shown.ends_with("\nname         0      0         0          -  -    -    -\n"), "{shown}");
    }
    // Files that differ.
    run(["show", "--column-stats", &text, &empty]).failed(1, &["there is no column", "--union"]);
    let union =
        run(["show", "--column-stats", "--union", "--json", "--header", "yes", &to, &empty]).succeeded();
    assert_eq!(serde_json::from_str::<Value>(&union).unwrap()["columns"].as_array().unwrap().len(), 6);
    // Every type that there is.
    let types = run(["show", "--column-stats", &data("types.parquet")]).succeeded();
    assert!(types.lines().count() > 10, "{types}");
}

/// Whoever reads the output may go away.
#[test]
fn a_pipe_that_is_closed_early() {
    let folder = Folder::new();
    let file = numbers(&folder);
    for arguments in [
        &["show", "--index", "id", "--json"][..],
        &["show", "--bloom", "id = 5", "--json"],
        &["show", "--column-stats"],
        &["rows", "--sample", "9000", "--format", "csv"],
    ] {
        let mut command = marquetry();
        command.args(arguments).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), &*said), (Some(0), ""), "{arguments:?}");
    }
}
