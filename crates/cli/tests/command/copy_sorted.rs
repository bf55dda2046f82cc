//! `marquetry copy --sort`, into directories, and by partition.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{self, Folder, Run, corpus, data, names, run};

fn copy(from: &str, to: &str, more: &[&str]) -> Run {
    run([&["copy", from, to], more].concat())
}

/// All rows, a JSON object each.
fn rows(path: &str) -> Vec<String> {
    let out = run(["rows", path, "--format", "jsonl", "--invalid-utf8", "blob"]).succeeded();
    out.lines().map(str::to_string).collect()
}

/// The values of a column.
fn column(path: &str, name: &str) -> Vec<Value> {
    let out = run(["rows", path, "--format", "jsonl", "--columns", name]).succeeded();
    out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()[name].take()).collect()
}

fn in_any_order(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

#[test]
fn sorted_as_duckdb_sorts() {
    let Some(python) = marquetry_testing::python() else { return };
    let folder = Folder::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/sorted.py");
    let status = std::process::Command::new(python).arg(script).arg(folder.root()).status();
    assert!(status.is_ok_and(|status| status.success()));
    let table = folder.path("table.parquet");
    let long = folder.path("long.parquet");
    let said = "long.parquet: a sort key of 70000 bytes; one has 65535 at most (column a, row 1)\n";
    copy(&long, &folder.path("to.parquet"), &["--sort", "a"]).failed(1, &[said]);
    let orders: Vec<Value> = serde_json::from_slice(&fs::read(folder.path("orders.json")).unwrap()).unwrap();
    assert!(orders.len() >= 60);
    for (number, order) in orders.iter().enumerate() {
        let sort = order["sort"].as_str().unwrap();
        let to = folder.path(&format!("{number}.parquet"));
        // So little memory that there are many runs, merged more than once; and enough.
        let memory = ["100000", "3000000", "500000000"][number % 3];
        let said = copy(&table, &to, &["--sort", sort, "--sort-memory", memory, "--verify"]).succeeded();
        assert_eq!(said.contains("sorted in memory"), number % 3 == 2, "{said}");
        assert_eq!(said.contains("sorted with "), number % 3 < 2, "{said}");
        assert_eq!(Value::from(column(&to, "id")), order["ids"], "{sort}");
        if number % 16 == 0 {
            assert_eq!(in_any_order(rows(&to)), in_any_order(rows(&table)), "{sort}");
        }
        fs::remove_file(to).unwrap();
    }
}

/// A key that is too long comes before what is wrong with the text after it, however many threads there are.
#[test]
fn the_first_error_is_that_of_the_first_row() {
    let folder = Folder::new();
    let (from, to) = (folder.path("long.csv"), folder.path("to.parquet"));
    let long = "x".repeat(70_000);
    // With a schema, only the beginning is looked at for how fields are quoted.
    let (many, some) = ("y,1\n".repeat(500_000), "y,1\n".repeat(20_000));
    for (text, said) in [
        (format!("a,b\n{many}{long},2\n{some}z,3,4\n"), "line 500002: a sort key of 70000 bytes"),
        (format!("a,b\n{many}z,3,4\n{long},2\n"), "line 500002: 3 fields, where the rows before have 2"),
    ] {
        fs::write(&from, text).unwrap();
        for threads in ["1", "2", "8"] {
            let options = ["--sort", "a", "--threads", threads, "--schema", "a text, b bigint"];
            copy(&from, &to, &options).failed(1, &[said]);
        }
    }
    assert_eq!(folder.names(), ["long.csv"]);
}

#[test]
fn the_order_is_told() {
    let folder = Folder::new();
    let to = folder.path("to.parquet");
    let Some(from) = corpus("real/green_tripdata_2022-01.parquet") else { return };
    copy(&from, &to, &["--sort", "VendorID desc nulls first,lpep_pickup_datetime", "--verify"]).succeeded();
    let shown: Value = serde_json::from_str(&run(["show", "--json", &to]).succeeded()).unwrap();
    let text = run(["show", &to]).succeeded();
    assert!(text.contains("sorted by"), "{text}");
    assert!(shown.to_string().contains("sorting_columns"), "{shown}");
    assert_eq!(in_any_order(rows(&to)), in_any_order(rows(&from)));
    // Stable: of a column with few values, others stay as they came.
    let again = folder.path("again.parquet");
    copy(&to, &again, &["--sort", "VendorID desc nulls first"]).succeeded();
    run(["diff", &to, &again]).succeeded();
    assert_eq!(folder.names(), ["again.parquet", "to.parquet"]);
}

#[test]
fn what_cannot_be_sorted_by() {
    let folder = Folder::new();
    let to = folder.path("to.parquet");
    let nested = data("nested.parquet");
    copy(&nested, &to, &["--sort", "nobody"])
        .failed(2, &["--sort: there is no column \"nobody\"; its columns are"]);
    copy(&data("one.parquet"), &to, &["--sort", "a, a desc"]).failed(2, &["twice"]);
    copy(&data("one.parquet"), &to, &["--sort", ""]).failed(2, &["--sort", "a name is empty"]);
    copy(&data("one.parquet"), "cql://localhost:1/ks.t", &["--sort", "a"])
        .failed(2, &["--sort is for writing Parquet files"]);
    copy(&data("one.parquet"), &to, &["--partition-by", "a"])
        .failed(2, &["--partition-by is for directories", "end the name"]);
    copy(&data("one.parquet"), &to, &["--file-rows", "5"]).failed(2, &["--file-rows is for directories"]);
    assert!(folder.names().is_empty());
}

#[test]
fn a_directory_of_files() {
    let folder = Folder::new();
    let from = data("many.parquet");
    let all = rows(&from);
    let to = folder.path("out/");
    let said = copy(&from, &to, &["--file-rows", "400", "--verify"]).succeeded();
    let files = all.len().div_ceil(400);
    assert!(files > 1 && said.contains(&format!("{files} files")) && said.contains("verified"), "{said}");
    let names: Vec<String> = (0..files).map(|number| format!("out/part-{number:05}.parquet")).collect();
    assert_eq!(folder.names(), names);
    assert_eq!(rows(&to), all);
    run(["diff", &from, &to]).succeeded();
    // What is there stays, unless it shall be replaced.
    copy(&from, &to, &[]).failed(1, &["the directory is not empty", "--overwrite"]);
    copy(&from, &to, &["--overwrite"]).succeeded();
    assert_eq!(folder.names(), ["out/part-00000.parquet"]);
    fs::write(folder.path("out/notes.txt"), "mine").unwrap();
    copy(&from, &to, &["--overwrite"]).failed(3, &["notes.txt, which is not a Parquet file"]);
    assert_eq!(folder.names(), ["out/notes.txt", "out/part-00000.parquet"]);
    // A directory may be replaced by a copy of itself.
    fs::remove_file(folder.path("out/notes.txt")).unwrap();
    copy(&to, &to, &["--overwrite", "--file-bytes", "1", "--sort", "answer desc"]).succeeded();
    assert_eq!(in_any_order(rows(&to)), in_any_order(all));
    assert!(folder.names().iter().all(|name| name.starts_with("out/part-")));
}

#[test]
fn partitions_are_read_back_as_they_were() {
    let folder = Folder::new();
    let Some(from) = corpus("real/green_tripdata_2022-01.parquet") else { return };
    let to = folder.path("out/");
    let arguments = ["--partition-by", "VendorID,store_and_fwd_flag", "--sort", "fare_amount", "--verify"];
    let said = copy(&from, &to, &arguments).succeeded();
    assert!(said.contains("verified") && said.contains("sorted in memory"), "{said}");
    let names = folder.names();
    assert!(
        names.contains(&"out/VendorID=1/store_and_fwd_flag=N/part-00000.parquet".to_string()),
        "{names:?}"
    );
    assert!(
        names.contains(
            &"out/VendorID=2/store_and_fwd_flag=__HIVE_DEFAULT_PARTITION__/part-00000.parquet".to_string()
        ),
        "{names:?}"
    );
    assert!(names.iter().all(|name| name.ends_with("/part-00000.parquet")), "{names:?}");
    let sorted_keys = |path: &str| {
        let parse = |line: &String| {
            let Value::Object(fields) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
            let fields: std::collections::BTreeMap<String, Value> = fields.into_iter().collect();
            format!("{fields:?}")
        };
        in_any_order(rows(path).iter().map(parse).collect())
    };
    assert_eq!(sorted_keys(&to), sorted_keys(&from));
    let one = folder.path("out/VendorID=1/store_and_fwd_flag=N/part-00000.parquet");
    let schema = run(["rows", "--hive", "off", "--limit", "1", "--format", "jsonl", &one]).succeeded();
    assert!(!schema.contains("VendorID") && schema.contains("fare_amount"), "{schema}");
    let fares: Vec<f64> = column(&one, "fare_amount").iter().map(|fare| fare.as_f64().unwrap()).collect();
    assert!(fares.is_sorted());
    // Many of them, more than are kept open at once, and by way of the disk.
    let to = folder.path("many/");
    let arguments =
        ["--partition-by", "lpep_pickup_datetime", "--limit", "1000", "--sort-memory", "50000", "--verify"];
    copy(&from, &to, &arguments).succeeded();
    let files = folder
        .names()
        .iter()
        .filter(|name| name.starts_with("many/lpep_pickup_datetime=2022-01-01T00%3A"))
        .count();
    assert!(files > 10, "{files}");
    assert!(folder.names().len() > 700, "{}", folder.names().len());
    assert_eq!(rows(&to).len(), 1000);
}

#[test]
fn values_that_are_no_names() {
    let folder = Folder::new();
    let types = data("types.parquet");
    let to = folder.path("out/");
    let by = |column: &str| copy(&types, &to, &["--partition-by", column]);
    by("double").failed(2, &["DOUBLE makes no names of directories"]);
    by("nobody").failed(2, &["--partition-by: there is no column \"nobody\""]);
    by("id,id").failed(2, &["twice"]);
    copy(&data("one.parquet"), &to, &["--partition-by", "a,b"]).failed(2, &["no column is left"]);
    copy(&data("bad_text.parquet"), &to, &["--partition-by", "text"]).failed(1, &["not UTF-8"]);
    assert!(folder.names().is_empty());
}

#[cfg(target_os = "linux")]
mod ended {
    use super::*;
    use std::process::{Child, Command};

    fn wait_until_begun(child: &mut Child, folder: &Path) {
        // It is in the middle once it has a file open there.
        let descriptors = format!("/proc/{}/fd", child.id());
        let has_begun = || {
            let links = fs::read_dir(&descriptors).into_iter().flatten().flatten();
            let mut paths = links.filter_map(|link| fs::read_link(link.path()).ok());
            paths.any(|path| path.starts_with(folder))
        };
        while !has_begun() {
            assert_eq!(child.try_wait().unwrap(), None, "it is done already");
        }
    }

    /// Killed or interrupted in the middle, a sort and a directory leave nothing behind.
    #[test]
    fn nothing_is_left() {
        let from = data("long_page.parquet");
        for arguments in [
            &["to.parquet", "--sort", "n desc", "--sort-memory", "1000000"][..],
            &["out/", "--file-rows", "20000"],
            &["out/", "--sort", "n", "--file-rows", "20000", "--sort-memory", "1000000"],
        ] {
            for (signal, code) in [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)] {
                let folder = Folder::new();
                let to = folder.path(arguments[0]);
                let mut child = common::marquetry()
                    .args(["copy", &from, &to, "--trust", "--quiet"])
                    .args(&arguments[1..])
                    .spawn()
                    .unwrap();
                wait_until_begun(&mut child, folder.root());
                let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
                assert!(killed.unwrap().success());
                assert_eq!(child.wait().unwrap().code(), code, "{signal}");
                assert!(folder.names().is_empty(), "{arguments:?}, {signal}: {:?}", folder.names());
            }
        }
    }

    /// More files than may be open stand in a hidden directory: an interrupted copy takes it away, of a killed one no reader sees it, and the next
    /// copy to that place does.
    #[test]
    fn many_files_are_hidden_until_all_are_there() {
        let Some(from) = corpus("real/green_tripdata_2022-01.parquet") else { return };
        for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
            let folder = Folder::new();
            let to = folder.path("out/");
            let arguments = ["copy", &from, &to, "--quiet", "--partition-by", "lpep_pickup_datetime"];
            let mut child = Command::new("sh")
                .args(["-c", "ulimit -n 100; exec \"$0\" \"$@\""])
                .arg(common::marquetry().get_program())
                .args(arguments)
                .spawn()
                .unwrap();
            let listed = || fs::read_dir(folder.root()).unwrap().flatten().map(|it| it.file_name());
            while listed().next().is_none() {
                assert_eq!(child.try_wait().unwrap(), None, "it is done already");
            }
            let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
            assert!(killed.unwrap().success());
            assert_eq!(child.wait().unwrap().code(), code, "{signal}");
            assert!(listed().all(|name| name.to_str().is_some_and(|name| name.starts_with(".out."))));
            assert_eq!(listed().count(), usize::from(signal == "KILL"), "{signal}");
            let path = folder.path("");
            run(["rows", &path]).failed(3, &["a directory without a Parquet file"]);
            copy(&data("one.parquet"), &to, &[]).succeeded();
            assert_eq!(folder.names(), ["out/part-00000.parquet"]);
        }
    }

    /// Where there is no room for what is written, or for what is sorted, it is said, and nothing is left.
    #[test]
    fn a_disk_that_is_full() {
        let from = data("long_page.parquet");
        for arguments in [
            &["to.parquet"][..],
            &["to.parquet", "--sort", "n desc", "--sort-memory", "100000"],
            &["out/", "--file-rows", "20000"],
        ] {
            let folder = Folder::new();
            let to = folder.path(arguments[0]);
            let program = common::marquetry().get_program().to_os_string();
            // No file may have more than so many blocks of 512 bytes, or 1,024: what is more is an error, and its signal ends nothing.
            let out = Command::new("sh")
                .args(["-c", "ulimit -f 40; exec \"$0\" \"$@\""])
                .arg(program)
                .args([
                    "copy",
                    &from,
                    &to,
                    "--trust",
                    "--quiet",
                    "--encoding",
                    "n=PLAIN",
                    "--codec",
                    "uncompressed",
                ])
                .args(&arguments[1..])
                .output()
                .unwrap();
            common::Run::of(out).failed(3, &["could not be written", "File too large"]);
            assert!(folder.names().is_empty(), "{arguments:?}: {:?}", folder.names());
        }
    }

    #[test]
    fn a_target_that_cannot_be_written() {
        let one = data("one.parquet");
        copy(&one, "/proc/out/", &[]).failed(3, &["/proc/out"]);
        copy(&one, "/proc/to.parquet", &["--sort", "a"]).failed(3, &["/proc/to.parquet"]);
        let folder = Folder::new();
        copy(&one, &folder.path("no/such/out/"), &[]).failed(3, &["no/such/out"]);
        fs::write(folder.path("file"), "mine").unwrap();
        copy(&one, &folder.path("file/"), &[]).failed(3, &["file"]);
        assert_eq!(folder.names(), ["file"]);
    }

    /// A source that is broken in the midst.
    #[test]
    fn a_source_that_fails() {
        let folder = Folder::new();
        let from = tempfile::tempdir().unwrap();
        let broken: PathBuf = from.path().join("broken.parquet");
        let mut bytes = fs::read(data("many.parquet")).unwrap();
        bytes[60..200].fill(0x5a);
        fs::write(&broken, bytes).unwrap();
        let broken = broken.to_str().unwrap();
        copy(broken, &folder.path("out/"), &["--file-rows", "10"]).failed(1, &["broken.parquet"]);
        copy(broken, &folder.path("to.parquet"), &["--sort", "answer"]).failed(1, &["broken.parquet"]);
        assert!(folder.names().is_empty());
    }
}

#[test]
fn why_columns_are_encoded_so() {
    let Some(from) = corpus("real/green_tripdata_2022-01.parquet") else { return };
    let folder = Folder::new();
    let to = folder.path("to.parquet");
    copy(&from, &to, &["--encoding", "fare_amount=PLAIN"]).succeeded();
    let shown = run(["show", "--why", &to]).succeeded();
    let line =
        |column: &str| shown.lines().find(|line| line.trim_start().starts_with(column)).unwrap_or_default();
    // What is chosen by the values of a file that was written by them is what it has.
    for column in ["VendorID", "lpep_pickup_datetime", "PULocationID", "trip_distance"] {
        let cells: Vec<&str> =
            line(column).split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert!(cells[2].contains(cells[3]), "{shown}");
        assert!(cells[4].contains(" values: ") && cells[4].contains("PLAIN "), "{shown}");
    }
    assert!(line("VendorID").contains("2 different"), "{shown}");
    // A dictionary that saves nothing from the first page on is not left there; one that saves less and less is.
    assert!(!shown.contains("the dictionary was left"), "{shown}");
    let csv = folder.path("fewer.csv");
    let value = |row: u32| f64::from(if row < 20_000 { row % 100 } else { row }) * 0.37;
    let lines: Vec<String> = (0..130_000).map(|row| format!("{},{row}", value(row))).collect();
    std::fs::write(&csv, format!("measure,row\n{}\n", lines.join("\n"))).unwrap();
    let left = folder.path("left.parquet");
    copy(&csv, &left, &[]).succeeded();
    let why = run(["show", "--why", &left]).succeeded();
    assert!(why.contains("; the dictionary was left for it grew too large or saved too little"), "{why}");
    let cells: Vec<&str> =
        line("fare_amount").split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert!(cells[2] == "PLAIN" && cells[3] != "PLAIN", "{shown}");
    assert!(line("ehail_fee").contains("no values"), "{shown}");
    assert_eq!(run(["show", "--why", "--json", &to]).code, Some(2));
    let nested = run(["show", "--why", &data("nested.parquet")]).succeeded();
    assert!(nested.contains("Row group 0"), "{nested}");
}

#[test]
fn directories_of_names_that_cannot_be() {
    let folder = Folder::new();
    let to = folder.path("out/");
    let from = folder.path("long.csv");
    fs::write(&from, format!("k,v\nx,1\n{},2\n", "y".repeat(300))).unwrap();
    let said = ["a directory's name of 302 bytes", "column k", "k=yyy"];
    copy(&from, &to, &["--partition-by", "k"]).failed(1, &said);
    assert_eq!(folder.names(), ["long.csv"]);
    copy(&from, &folder.path("no/such/"), &[]).failed(3, &["there is no directory"]);
}

/// More directories than are written side by side, one of them for null: the files are the same, however many threads there are, and their
/// rows are in the order in which they came.
#[test]
fn partitions_do_not_depend_on_threads() {
    let folder = Folder::new();
    let from = folder.path("rows.csv");
    let mut text = "v,p,s\n".to_string();
    for row in 0..60_000_u64 {
        let value = row * row % 977 % 41;
        let value = if value == 3 { String::new() } else { value.to_string() };
        text.push_str(&format!("{row},{value},text {}\n", row % 100));
    }
    fs::write(&from, text).unwrap();
    let mut first: Option<Vec<(String, Vec<u8>)>> = None;
    for threads in ["1", "2", "8"] {
        let to = folder.path(&format!("by-{threads}/"));
        copy(&from, &to, &["--partition-by", "p", "--threads", threads, "--verify"]).succeeded();
        let files: Vec<(String, Vec<u8>)> = names(Path::new(&to))
            .into_iter()
            .map(|name| (name.clone(), fs::read(Path::new(&to).join(name)).unwrap()))
            .collect();
        assert_eq!(files.len(), 41);
        assert!(files.iter().any(|(name, _)| name.starts_with("p=__HIVE_DEFAULT_PARTITION__/")));
        let mut rows = 0;
        for (name, _) in &files {
            let values = column(&format!("{to}{name}"), "v");
            assert!(values.is_sorted_by_key(|value| value.as_u64()), "{name}");
            rows += values.len();
        }
        assert_eq!(rows, 60_000);
        assert!(first.get_or_insert_with(|| files.clone()) == &files, "{threads}");
    }
}
