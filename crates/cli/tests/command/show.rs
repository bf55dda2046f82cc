//! `marquetry show` of several files, of thousands, of text; and manual pages.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Folder, data, run};

#[test]
fn a_broken_file_does_not_hide_the_others() {
    let folder = Folder::new();
    let (broken, missing) =
        (folder.write("broken.parquet", "PAR1 but no more"), folder.path("missing.parquet"));
    let (one, types) = (data("one.parquet"), data("types.parquet"));
    let out = run(["show", &broken, &one, &types]).failed(1, &["broken.parquet: "]);
    assert!(out.starts_with(&format!("{one}\n")) && out.contains(&format!("\n\n{types}\n")), "{out}");
    let out = run(["show", "--json", &one, &broken, &types]).failed(1, &["broken.parquet: "]);
    let objects: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&Value> = objects.iter().map(|object| &object["file"]).collect();
    assert_eq!(names, [one.as_str(), broken.as_str(), types.as_str()]);
    let is_error =
        |object: &Value| object["error"].as_str().is_some_and(|it| it.contains("broken.parquet: "));
    assert!(objects[0]["error"].is_null() && is_error(&objects[1]), "{out}");
    // Where no file can be read, too.
    for path in [&broken, &missing, &folder.path("")] {
        let said = if path == &missing { "missing.parquet: " } else { "broken.parquet: " };
        let code = if path == &missing { 3 } else { 1 };
        let alone = run(["show", "--json", path]).failed(code, &[said]);
        let object: Value = serde_json::from_str(&alone).unwrap();
        assert!(object["error"].as_str().unwrap().contains(said), "{alone}");
        let summary = run(["show", "--json", "--summary", path]).failed(code, &[said]);
        let summary: Value = serde_json::from_str(&summary).unwrap();
        assert_eq!((&summary["files"], summary["errors"].as_array().unwrap().len()), (&Value::from(0), 1));
        assert!(summary["errors"][0]["error"].as_str().unwrap().contains(said), "{summary}");
    }
    let out = run(["show", "--pages", "a", &broken, &one]).failed(1, &["broken.parquet: "]);
    assert!(out.contains("column a: "), "{out}");
    run(["show", "--why", &broken, &one]).failed(1, &["broken.parquet: "]);
    // Each has its line; the exit code is the greatest.
    let pattern = folder.path("no*.parquet");
    let both = run(["show", "--pages", "a", &missing, &one, &broken, &pattern]);
    assert_eq!((both.code, both.err.lines().count()), (Some(3), 3), "{}", both.err);
    assert!(both.out.starts_with(&one), "{}", both.out);
    let summary = run(["show", &missing, &one, &broken, &pattern]);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!((summary.code, sorted(&summary.err)), (both.code, sorted(&both.err)));
    assert!(summary.out.starts_with("1 file\n"), "{}", summary.out);
    for said in ["broken.parquet: ", "missing.parquet: ", "no*.parquet: no file matches"] {
        assert!(
            both.err.lines().any(|line| line.starts_with("marquetry: ") && line.contains(said)),
            "{}",
            both.err
        );
    }
    // What cannot be meant for any of them is said at once.
    run(["show", "--pages", "nope", &one, &types]).failed(2, &["no column \"nope\""]);
}

/// A lake of files by three writers, of three schemas.
fn lake(folder: &Folder, files: usize) -> String {
    let csv = folder.write("a.csv", "a,b\n1,x\n2,y\n");
    let empty = folder.write("b.csv", "a,b\n");
    let (few, none) = (folder.path("few.parquet"), folder.path("none.parquet"));
    run(["copy", "--quiet", &csv, &few, "--bloom", "a", "--row-group-rows", "1"]).succeeded();
    run([
        "copy",
        "--quiet",
        &empty,
        &none,
        "--header",
        "yes",
        "--schema",
        "a bigint, b text",
        "--codec",
        "zstd",
    ])
    .succeeded();
    for number in 0..files {
        let from = match number % 10 {
            3 => none.clone(),
            7 => data("other_type.parquet"),
            _ => few.clone(),
        };
        folder.write(&format!("lake/day={}/{number:05}.parquet", number % 4), fs::read(from).unwrap());
    }
    folder.path("lake")
}

#[test]
fn thousands_of_files_at_a_glance() {
    let folder = Folder::new();
    let lake = lake(&folder, 2000);
    let broken = folder.write("lake/day=0/broken.parquet", "PAR1 but no more");
    let summary = run(["show", &lake]).failed(1, &["broken.parquet: "]);
    let few = fs::metadata(folder.path("few.parquet")).unwrap().len();
    let sizes: Vec<u64> = [folder.path("none.parquet"), data("other_type.parquet")]
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .collect();
    let json = run(["show", "--summary", "--json", &lake]).failed(1, &["broken.parquet: "]);
    assert_eq!(json.lines().count(), 1);
    let json: Value = serde_json::from_str(&json).unwrap();
    let other: Value =
        serde_json::from_str(&run(["show", "--json", &data("other_type.parquet")]).succeeded()).unwrap();
    let other_rows = other["rows"].as_u64().unwrap();
    assert_eq!(json["files"], 2000);
    assert_eq!(json["rows"], 1600 * 2 + 200 * other_rows);
    assert_eq!(json["bytes"], 1600 * few + 200 * (sizes[0] + sizes[1]));
    assert_eq!(json["files_without_rows"], 200);
    assert!(
        json["first_without_rows"].as_str().unwrap().ends_with("lake/day=0/00033.parquet")
            || json["first_without_rows"].as_str().unwrap().contains("3.parquet")
    );
    assert_eq!(json["files_with_bloom_filters"], 1600);
    assert_eq!(json["files_not_read"], 1);
    assert_eq!(json["errors"][0]["file"], broken.as_str());
    assert_eq!(
        json["schemas"].as_array().unwrap().iter().map(|it| it["files"].as_u64().unwrap()).sum::<u64>(),
        2000
    );
    assert_eq!(
        json["writers"].as_array().unwrap().iter().map(|it| it["count"].as_u64().unwrap()).sum::<u64>(),
        2000
    );
    assert_eq!(
        (&json["partitions"][0]["name"], &json["partitions"][0]["values"]),
        (&"day".into(), &4.into())
    );
    assert_eq!(json["smallest"]["bytes"], *sizes.iter().min().unwrap().min(&few));
    assert_eq!(json["largest"]["bytes"], *sizes.iter().max().unwrap().max(&few));
    assert!(
        json["differences"].as_array().unwrap().iter().any(|it| it["path"] == "a"),
        "{}",
        json["differences"]
    );
    for line in [
        "2,000 files",
        "  written by  marquetry version",
        "  not read    1 file",
        "  no rows     200 files, the first is ",
        "  smallest    ",
        "  … 1,900 more; --json",
    ] {
        assert!(summary.lines().any(|shown| shown.starts_with(line)), "no {line:?} in {summary}");
    }
    fs::remove_file(broken).unwrap();
    run(["show", "--summary", &lake]).succeeded();
}

#[test]
fn text_is_shown_as_what_is_inferred() {
    let folder = Folder::new();
    let csv = folder.write("a.csv", "id,day,fare\n1,2024-01-02,2.5\n");
    let jsonl = folder.write("b.jsonl", "{\"id\":1,\"place\":{\"lat\":1.5},\"tags\":[\"x\"]}\n");
    let out = run(["show", &csv, &data("one.parquet"), &jsonl]).succeeded();
    for line in [
        "  format      CSV",
        "  size        29 B",
        "  ├─ id    optional  INT64",
        "  format      JSON lines",
        "  ├─ place  ",
    ] {
        assert!(out.lines().any(|shown| shown.starts_with(line)), "no {line:?} in {out}");
    }
    let json = run(["show", "--json", &csv, &jsonl]).succeeded();
    let shown: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&shown[0]["format"], &shown[0]["bytes"]), (&"CSV".into(), &29.into()));
    let names = |shown: &Value| {
        let nodes = shown["schema"].as_array().unwrap().iter();
        nodes.map(|node| node["name"].as_str().unwrap().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert!(names(&shown[0]).ends_with("id day fare"), "{}", names(&shown[0]));
    assert!(names(&shown[1]).contains("place lat tags"), "{}", names(&shown[1]));
    run(["show", "--pages", "id", &csv]).failed(1, &["a.csv: ", "`marquetry rows` prints it"]);
    let broken = folder.write("c.csv", "a,b\n1\n");
    run(["show", &broken, &csv]).failed(1, &["c.csv: "]);
}

/// What text shows is in the JSON.
#[test]
fn json_has_what_text_has() {
    let shown: Value =
        serde_json::from_str(&run(["show", "--json", &data("described.parquet")]).succeeded()).unwrap();
    let columns = shown["columns"].as_array().unwrap();
    let text = run(["show", &data("described.parquet")]).succeeded();
    for key in [
        "path",
        "codecs",
        "encodings",
        "compressed_bytes",
        "uncompressed_bytes",
        "nulls",
        "nans",
        "distinct",
        "min",
        "max",
        "order",
    ] {
        assert!(columns.iter().all(|column| column.get(key).is_some()), "{key}");
    }
    let distinct = text.lines().any(|line| line.contains(" distinct "));
    assert_eq!(distinct, columns.iter().any(|column| column["distinct"].as_u64().is_some_and(|it| it > 0)));
}

#[test]
fn every_command_has_a_manual_page() {
    let commands = ["", "show", "rows", "cql", "copy", "diff", "ceph", "completions", "man", "parquet2cql"];
    for command in commands {
        let page = if command.is_empty() { run(["man"]) } else { run(["man", command]) }.succeeded();
        let title = match command {
            "" => "marquetry".to_string(),
            "parquet2cql" => command.to_string(),
            command => format!("marquetry-{command}"),
        };
        assert!(
            page.contains(&format!(".TH {} 1 ", title.to_lowercase()))
                || page.contains(&format!(".TH {} 1 ", title.to_uppercase())),
            "{}",
            &page[..300]
        );
        let footer = concat!(" \"marquetry ", env!("CARGO_PKG_VERSION"), "\" \"Marquetry Manual\"");
        assert!(page.lines().any(|line| line.starts_with(".TH ") && line.ends_with(footer)), "{command}");
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS"] {
            assert!(page.contains(section), "no {section} in {command}");
        }
    }
    let top = run(["man"]).succeeded();
    for part in ["marquetry\\-show(1)", ".SH EXAMPLES", ".SH \"EXIT STATUS\"\n.nf\n"] {
        assert!(top.contains(part), "no {part} in {top}");
    }
    let copy = run(["man", "copy"]).succeeded();
    for part in ["\\-\\-row\\-group\\-rows", ".SH EXAMPLES\n.nf\n", "trips.parquet"] {
        assert!(copy.contains(part), "no {part}");
    }
    let show = run(["man", "show"]).succeeded();
    assert!(show.contains("\\fBmarquetry show\\fR [OPTIONS] <FILE>...\n"), "{show}");
    run(["man", "nope"]).failed(2, &["there is no command \"nope\""]);
    let Some(mandoc) = marquetry_testing::mandoc() else { return };
    for command in commands {
        let page = if command.is_empty() { run(["man"]) } else { run(["man", command]) }.succeeded();
        let mut lint = Command::new(&mandoc);
        lint.args(["-T", "lint", "-W", "warning"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut lint = lint.spawn().unwrap();
        std::io::Write::write_all(&mut lint.stdin.take().unwrap(), page.as_bytes()).unwrap();
        let said = lint.wait_with_output().unwrap();
        assert!(said.status.success(), "{command}: {}", String::from_utf8_lossy(&said.stdout));
    }
}
