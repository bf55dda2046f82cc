//! `marquetry copy` into a Parquet file.

use std::fs;
use std::path::Path;

use crate::common::{self, corpus, data, run};

/// A folder, and the path of a file that shall be in it.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to.parquet").to_str().expect("a path in UTF-8").to_string();
    (folder, to)
}

/// What is in a folder, hidden files too.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// All rows, as they are printed.
fn rows(path: &str) -> String {
    run(["rows", path, "--limit", "1000000", "--invalid-utf8", "blob"]).succeeded()
}

fn copy(from: &str, to: &str, more: &[&str]) -> common::Run {
    run([&["copy", from, to], more].concat())
}

#[test]
fn rows_are_the_same_with_every_codec() {
    for name in ["types", "nested", "many", "names", "bounds", "bad_text", "nested_cql"] {
        let from = data(&format!("{name}.parquet"));
        for codec in ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"] {
            let (folder, to) = folder();
            let out = copy(&from, &to, &["--codec", codec]).succeeded();
            assert!(out.contains(" written to ") && out.contains("row group"), "{out}");
            assert_eq!(names(folder.path()), ["to.parquet"]);
            assert_eq!(rows(&to), rows(&from), "{name}, {codec}");
            let shown = run(["show", "--json", &to]).succeeded();
            assert!(shown.contains(&format!("\"{}\"", codec.to_uppercase())), "{shown}");
        }
    }
}

/// A column can be named as --columns names it, and is encoded as it is asked; what is not, by its values.
#[test]
fn encodings_that_are_asked_for() {
    let Some(from) = corpus("real/green_tripdata_2022-01.parquet") else { return };
    let (_folder, to) = folder();
    let asked = [
        "--encoding",
        "VendorID=DELTA_BINARY_PACKED",
        "--encoding",
        "store_and_fwd_flag=delta_length_byte_array",
        "--encoding",
        "fare_amount=PLAIN",
        "--page-rows",
        "1000",
        "--row-group-rows",
        "10000",
    ];
    copy(&from, &to, &asked).succeeded();
    let shown = run(["show", &to]).succeeded();
    for (column, encoding) in
        [("VendorID", "DELTA_BINARY_PACKED"), ("store_and_fwd_flag", "DELTA_LENGTH_BYTE_ARRAY")]
    {
        let line =
            shown.lines().find(|line| line.trim_start().starts_with(column) && line.contains("SNAPPY"));
        assert!(line.is_some_and(|line| line.contains(encoding)), "{shown}");
    }
    let pages = run(["show", "--pages", "fare_amount", &to]).succeeded();
    assert!(pages.contains("1,000") && pages.contains("PLAIN"), "{pages}");
    assert_eq!(rows(&to), rows(&from));
}

#[test]
fn what_is_there_stays_unless_it_shall_be_replaced() {
    let (folder, to) = folder();
    fs::write(&to, "mine").unwrap();
    copy(&data("one.parquet"), &to, &[]).failed(1, &["to.parquet: already exists", "--overwrite"]);
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    copy(&data("one.parquet"), &to, &["--overwrite"]).succeeded();
    assert_eq!(rows(&to), rows(&data("one.parquet")));
    // A file may be replaced by a copy of itself.
    copy(&to, &to, &["--overwrite", "--codec", "zstd"]).succeeded();
    assert_eq!(rows(&to), rows(&data("one.parquet")));
    assert_eq!(names(folder.path()), ["to.parquet"]);
}

#[test]
fn columns_limits_and_many_files() {
    let (_folder, to) = folder();
    copy(&data("types.parquet"), &to, &["--columns", "double,id", "--limit", "2"]).succeeded();
    let expected =
        run(["rows", &data("types.parquet"), "--columns", "double,id", "--limit", "2"]).succeeded();
    let two: Vec<&str> = expected.lines().take(3).collect();
    assert_eq!(rows(&to).lines().take(3).collect::<Vec<_>>(), two);

    let from = tempfile::tempdir().unwrap();
    for day in ["01", "02"] {
        let below = from.path().join(format!("day=2024-01-{day}"));
        fs::create_dir(&below).unwrap();
        fs::copy(data("one.parquet"), below.join("a.parquet")).unwrap();
    }
    let from = from.path().to_str().unwrap();
    copy(from, &to, &["--overwrite"]).succeeded();
    assert_eq!(rows(&to), rows(from));
    assert!(rows(&to).contains("2024-01-02"));
}

#[test]
fn options_that_are_for_something_else() {
    let (folder, to) = folder();
    let one = data("one.parquet");
    copy(&one, &to, &["--key", "id"]).failed(2, &["--key is for tables of a cluster"]);
    copy(&one, &to, &["--create"]).failed(2, &["--create is for tables of a cluster"]);
    copy(&one, "cql://localhost:1/ks.t", &["--codec", "zstd"])
        .failed(2, &["--codec is for writing Parquet files"]);
    copy(&one, &to, &["--level", "99", "--codec", "zstd"])
        .failed(2, &["--level: ZSTD has the levels -131072 to 22, and not 99"]);
    copy(&one, &to, &["--level", "10", "--codec", "GZIP", "--limit", "0"])
        .failed(2, &["levels 0 to 9, and not 10"]);
    copy(&one, &to, &["--level", "3"]).failed(2, &["--level: SNAPPY has no levels"]);
    let said = |more: &[&str]| copy(&one, &to, more).err;
    assert!(said(&["--page-rows", "0"]).contains("must be a whole number, at least 1"));
    assert!(said(&["--page-bytes", "1.5M"]).contains("must be bytes, at least 1"));
    assert!(said(&["--dictionary-bytes", "0"]).contains("must be bytes, at least 1"));
    copy(&one, &to, &["--short-rows", "null"]).failed(2, &["--short-rows is for CSV, TSV and JSON lines"]);
    copy(&one, &to, &["--sort", "a, a desc"]).failed(2, &["--sort: the column a is named twice"]);
    copy(&one, &to, &["--encoding", "id"]).failed(2, &["a column, '=', and an encoding"]);
    copy(&one, &to, &["--encoding", "id=MORSE"])
        .failed(2, &["unknown encoding MORSE", "DELTA_BINARY_PACKED"]);
    copy(&one, &to, &["--encoding", "nobody=PLAIN"]).failed(2, &["no column \"nobody\""]);
    copy(&one, &to, &["--encoding", "a=DELTA_BYTE_ARRAY"])
        .failed(2, &["--encoding: ", "INT64", "(column a)"]);
    // All that is wrong is said at once, each by its option.
    let wrong = ["--encoding", "nobody=PLAIN", "--bloom", "nothing,none", "--partition-by", "nowhere"];
    let wanted = [
        "--partition-by: there is no column \"nowhere\"; its columns are a, b; --encoding: there is no column \"nobody\"; ",
        "--bloom: there is no column \"nothing\"; --bloom: there is no column \"none\"",
    ];
    copy(&one, &format!("{to}.d/"), &wrong).failed(2, &wanted);
    assert!(names(folder.path()).is_empty());
}

/// Whatever goes wrong, there is no half file, and what was there before stays.
#[test]
fn a_copy_that_fails_leaves_nothing() {
    let (folder, to) = folder();
    let broken = folder.path().join("broken.parquet");
    let mut bytes = fs::read(data("many.parquet")).unwrap();
    bytes[60..200].fill(0x5a);
    fs::write(&broken, bytes).unwrap();
    copy(broken.to_str().unwrap(), &to, &[]).failed(1, &["broken.parquet"]);
    assert_eq!(names(folder.path()), ["broken.parquet"]);
    let nowhere = folder.path().join("nowhere/to.parquet");
    copy(&data("one.parquet"), nowhere.to_str().unwrap(), &[]).failed(3, &["nowhere/to.parquet"]);
    copy(&data("one.parquet"), "/proc/to.parquet", &[]).failed(3, &["/proc/to.parquet"]);
    assert_eq!(names(folder.path()), ["broken.parquet"]);
}

/// Whether a process has a file open that is below a folder, even without a name.
#[cfg(target_os = "linux")]
fn has_open_below(child: &std::process::Child, folder: &Path) -> bool {
    let links = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok()).any(|path| path.starts_with(folder))
}

/// Killed or interrupted in the middle, it leaves nothing behind.
#[cfg(target_os = "linux")]
#[test]
fn a_copy_that_is_killed_leaves_nothing() {
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)] {
        let (folder, to) = folder();
        let from = data("long_page.parquet");
        let arguments =
            ["copy", &from, &to, "--trust", "--quiet", "--encoding", "n=PLAIN", "--row-group-rows", "20000"];
        let mut child = common::marquetry().args(arguments).spawn().unwrap();
        // It is in the middle once it has the file open.
        while !has_open_below(&child, folder.path()) {
            assert_eq!(child.try_wait().unwrap(), None, "it is done already");
        }
        let killed =
            std::process::Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), code, "{signal}");
        assert!(names(folder.path()).is_empty(), "{signal}: {:?}", names(folder.path()));
    }
}

#[test]
fn bloom_filters_that_are_asked_for() {
    let (_folder, to) = folder();
    let from = data("types.parquet");
    copy(&from, &to, &["--bloom", "id,double", "--bloom-fpp", "0.001", "--encoding", "id=PLAIN"]).succeeded();
    assert_eq!(rows(&to), rows(&from));
    let shown: serde_json::Value = serde_json::from_str(&run(["show", "--json", &to]).succeeded()).unwrap();
    let chunks = shown["row_groups"][0]["columns"].as_array().unwrap();
    let with = chunks.iter().filter(|chunk| chunk["bloom_filter_offset"].is_u64());
    let with: Vec<_> = with.map(|chunk| (chunk["path"].as_str().unwrap(), &chunk["encodings"])).collect();
    assert_eq!(with.iter().map(|(path, _)| *path).collect::<Vec<_>>(), ["id", "double"]);
    assert!(with[0].1.to_string().contains("PLAIN"), "{with:?}");
    let shown = run(["show", &to]).succeeded();
    assert!(shown.contains("Bloom filters 2 (of ") && shown.contains("\nBloom filters\n"), "{shown}");
    let pages = run(["show", "--pages", "id", &to]).succeeded();
    assert!(pages.contains("row group 0: a Bloom filter of 32 B in 1 block"), "{pages}");

    // All that is in a nested column is meant.
    let nested = data("nested.parquet");
    let columns = run(["show", "--json", &nested]).succeeded();
    let columns: serde_json::Value = serde_json::from_str(&columns).unwrap();
    let paths: Vec<&str> =
        columns["columns"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    let deep = paths.iter().find(|path| path.contains('.')).unwrap();
    let top = deep.split('.').next().unwrap();
    copy(&nested, &to, &["--overwrite", "--bloom", top]).succeeded();
    assert_eq!(rows(&to), rows(&nested));
    let shown = run(["show", &to]).succeeded();
    let listed = shown.split("\nBloom filters\n").nth(1).unwrap();
    assert!(listed.lines().any(|line| line.trim_start().starts_with(deep)), "{shown}");
}

#[test]
fn bloom_filters_that_cannot_be() {
    let (folder, to) = folder();
    let from = data("types.parquet");
    copy(&from, &to, &["--bloom", "nobody"]).failed(2, &["--bloom: there is no column \"nobody\""]);
    copy(&from, &to, &["--bloom", "flag"]).failed(2, &["a Bloom filter of BOOLEAN", "flag"]);
    copy(&from, &to, &["--bloom", "id,"]).failed(2, &["--bloom: 'id,': a name is empty"]);
    for share in ["0", "1", "-1", "2.5", "NaN"] {
        let share = format!("--bloom-fpp={share}");
        copy(&from, &to, &["--bloom", "id", &share]).failed(2, &["more than 0 and less than 1"]);
    }
    copy(&from, &to, &["--bloom-fpp", "0.1"]).failed(2, &["no effect without --bloom"]);
    copy(&from, "cql://localhost:1/ks.t", &["--bloom", "id"])
        .failed(2, &["--bloom is for writing Parquet files"]);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn page_bloom_filters() {
    let (_folder, to) = folder();
    let from = data("types.parquet");
    copy(&from, &to, &["--page-bloom", "id,double", "--page-bloom-fpp", "0.001"]).succeeded();
    assert_eq!(rows(&to), rows(&from));
    let bytes = std::fs::read(&to).unwrap();
    let announced = bytes.windows(20).filter(|window| window == b"marquetry.page_bloom");
    assert_eq!(announced.count(), 2);
    let pages = run(["show", "--pages", "id", &to]).succeeded();
    assert!(pages.contains("row group 0: Bloom filters of 1 page, each in 1 block, at "), "{pages}");
    let wrong = |options: &[&str], why: &str| {
        let options = [&["--overwrite"], options].concat();
        copy(&from, &to, &options).failed(2, &[why]);
    };
    wrong(&["--page-bloom", "nobody"], "--page-bloom: there is no column \"nobody\"");
    wrong(&["--page-bloom", "flag"], "a Bloom filter of BOOLEAN");
    wrong(&["--page-bloom", "id", "--page-bloom-fpp", "1"], "--page-bloom-fpp: 1: a rate is");
    wrong(&["--page-bloom-fpp", "0.1"], "no effect without --page-bloom");
    copy(&from, "cql://localhost:1/ks.t", &["--page-bloom", "id"])
        .failed(2, &["--page-bloom is for writing Parquet files"]);
}

#[test]
fn a_locator() {
    let (folder, to) = folder();
    let from = data("types.parquet");
    let without = folder.path().join("without.parquet").to_str().expect("a path in UTF-8").to_string();
    copy(&from, &without, &[]).succeeded();
    copy(&from, &to, &["--locator"]).succeeded();
    assert_eq!(rows(&to), rows(&from));
    let length = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(length(&to) > length(&without));
    copy(&from, "cql://localhost:1/ks.t", &["--locator"])
        .failed(2, &["--locator is for writing Parquet files"]);
}

/// The keys under which a file says something of itself.
fn keys(path: &str) -> Vec<String> {
    let shown: serde_json::Value = serde_json::from_str(&run(["show", "--json", path]).succeeded()).unwrap();
    let keys = shown["key_values"].as_array().unwrap().iter();
    keys.map(|it| it["key"].as_str().unwrap().to_string()).collect()
}

/// What a file says of itself goes with it; what it says of its columns, only where they stay the same.
#[test]
fn what_files_say_of_themselves() {
    let (folder, to) = folder();
    let from = data("described.parquet");
    let [all, own] = [&["owner", "made", "ARROW:schema", "pandas"][..], &["owner", "made"]];
    for (more, kept) in [
        (&[][..], all),
        (&["--sort", "id desc"], all),
        (&["--columns", "id,part"], all),
        (&["--columns", "part,id"], own),
        (&["--columns", "id"], own),
    ] {
        copy(&from, &to, &[more, &["--overwrite"]].concat()).succeeded();
        assert_eq!(keys(&to), kept, "{more:?}");
    }
    let below = format!("{}/", folder.path().join("parts").display());
    copy(&from, &below, &["--partition-by", "part"]).succeeded();
    assert_eq!(keys(&format!("{below}part=a/part-00000.parquet")), own);
    // Of several files what all of them say.
    run(["copy", &from, &from, &to, "--overwrite"]).succeeded();
    assert_eq!(keys(&to), all);
    run(["copy", &below, &to, "--overwrite"]).succeeded();
    assert_eq!(keys(&to), own);
    run(["copy", &from, &data("one.parquet"), &to, "--overwrite", "--union"]).succeeded();
    assert_eq!(keys(&to), [""; 0]);
}

/// What somebody puts into a directory while it is replaced stays there, and is named.
#[cfg(target_os = "linux")]
#[test]
fn what_was_put_there_meanwhile_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let to = format!("{}/", out.display());
    let mut child = common::marquetry()
        .args(["copy", "-", &to, "--from", "csv", "--schema", "a bigint, b bigint", "--overwrite", "--quiet"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut rows = child.stdin.take().unwrap();
    let lines = format!("a,b\n{}", "1,2\n".repeat(40_000));
    std::io::Write::write_all(&mut rows, lines.as_bytes()).unwrap();
    // It has looked at the directory once it has a file of the new one open.
    while !has_open_below(&child, folder.path()) {
        std::io::Write::write_all(&mut rows, &lines.as_bytes()[4..]).unwrap();
    }
    fs::write(out.join("notes.txt"), "mine").unwrap();
    drop(rows);
    let said = common::Run::of(child.wait_with_output().unwrap());
    let err = said.err.clone();
    said.failed(3, &["out", "notes.txt was put there meanwhile"]);
    assert!(!err.contains("--overwrite"), "{err}");
    assert_eq!(names(&out), ["notes.txt"]);
    assert_eq!(names(folder.path()), ["out"]);
}

/// A file that is replaced keeps its mode, and a link to one stays; so does a directory.
#[cfg(unix)]
#[test]
fn what_is_replaced_keeps_its_mode_and_its_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (folder, _) = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o7777;
    let set = |name: &str, mode| fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    for ending in ["parquet", "csv", "jsonl.gz"] {
        let (target, link) = (format!("target.{ending}"), format!("link.{ending}"));
        fs::write(path(&target), "old").unwrap();
        set(&target, 0o600);
        symlink(&target, path(&link)).unwrap();
        copy(&data("one.parquet"), &path(&link), &[]).failed(1, &["already exists", "--overwrite"]);
        copy(&data("one.parquet"), &path(&link), &["--overwrite"]).succeeded();
        assert!(fs::symlink_metadata(path(&link)).unwrap().is_symlink());
        assert_eq!((mode(&target), rows(&path(&target))), (0o600, rows(&data("one.parquet"))));
        // One to nothing creates what it leads to.
        let (made, dangling) = (format!("made.{ending}"), format!("dangling.{ending}"));
        symlink(&made, path(&dangling)).unwrap();
        copy(&data("one.parquet"), &path(&dangling), &[]).succeeded();
        assert_eq!(rows(&path(&made)), rows(&data("one.parquet")));
    }
    fs::create_dir(path("private")).unwrap();
    set("private", 0o700);
    copy(&data("one.parquet"), &path("private/"), &[]).succeeded();
    copy(&data("one.parquet"), &path("private/"), &["--overwrite"]).succeeded();
    assert_eq!(mode("private"), 0o700);
}

#[test]
fn a_mistaken_encoding_is_about_the_column() {
    let (_folder, to) = folder();
    let refused = copy(&data("one.parquet"), &to, &["--encoding", "b=DELTA_BINARY_PACKED"]);
    let said = "one.parquet: --encoding: BYTE_ARRAY cannot be encoded as DELTA_BINARY_PACKED (column b)";
    assert!(!refused.err.contains("to.parquet"), "{}", refused.err);
    refused.failed(2, &[said]);
}

/// What readers would refuse by default is refused, and nothing is left; `--trust` lifts that.
#[test]
fn pages_that_readers_refuse() {
    let (folder, to) = folder();
    copy(&data("types.parquet"), &to, &["--page-bytes", "300M"])
        .failed(1, &["more than the limit page_bytes", "; --trust lifts this limit"]);
    assert!(names(folder.path()).is_empty());
    copy(&data("types.parquet"), &to, &["--page-bytes", "300M", "--trust"]).succeeded();
    assert_eq!(rows(&to), rows(&data("types.parquet")));
}

/// A dictionary that is larger than was asked for is left, and values follow without it.
#[test]
fn dictionaries_of_a_size() {
    let (folder, to) = folder();
    let csv = folder.path().join("many.csv").display().to_string();
    let lines: String = (0..30_000).map(|n| format!("{:016x}\n", n % 3_000 * 977)).collect();
    fs::write(&csv, format!("id\n{lines}")).unwrap();
    for (more, has_dictionary) in [(&[][..], true), (&["--dictionary-bytes", "16K"], false)] {
        copy(&csv, &to, &[&["--overwrite", "--types", "id=text"], more].concat()).succeeded();
        let shown = run(["show", "--json", &to]).succeeded();
        assert_eq!(shown.contains("RLE_DICTIONARY"), has_dictionary, "{shown}");
    }
    assert_eq!(rows(&to), run(["rows", &csv, "--limit", "1000000", "--header", "yes"]).succeeded());
}

/// What is written is read by default, or refused with its column and row.
#[test]
#[ignore = "soak: rows of 250 MB"]
fn long_rows_are_read_again_or_refused() {
    let (folder, to) = folder();
    let from = |name: &str, text: &[&[u8]]| {
        let path = folder.path().join(name);
        fs::write(&path, text.concat()).unwrap();
        path.to_str().unwrap().to_string()
    };
    let read = |to: &str, expected: &str| {
        let printed = run(["rows", to, "--format", "jsonl"]).succeeded();
        assert!(printed.ends_with(expected), "{} bytes", printed.len());
        run(["show", to]).succeeded();
        fs::remove_file(to).unwrap();
    };
    let long = vec![b'x'; 250_000_000];
    let csv = from("long.csv", &[b"id,name\n1,", &long, b"\n2,b\n"]);
    for codec in ["snappy", "zstd"] {
        copy(&csv, &to, &["--codec", codec]).succeeded();
        // The sample ends within the first row, so nothing speaks for another type than text.
        read(&to, "\n{\"id\":\"2\",\"name\":\"b\"}\n");
    }
    let csv = from("long.csv", &[b"id,name\n1,", &vec![b'x'; 300_000_000], b"\n2,b\n"]);
    copy(&csv, &to, &[]).failed(1, &["line 2", "--trust lifts this limit"]);
    // With it, the copy can be read as it was written.
    copy(&csv, &to, &["--trust"]).succeeded();
    run(["rows", &to]).failed(1, &["column name, row group 0", "--trust lifts this limit"]);
    run(["rows", &to, "--trust"]).succeeded();
    fs::remove_file(&to).unwrap();
    let zeros = "0,".repeat(16_000_000);
    let lists = from("lists.jsonl", &[b"{\"a\":[", zeros.as_bytes(), b"0]}\n{\"a\":[1]}\n"]);
    let parts = ["the limit expansion", "column a.list.element, row 0", "--trust lifts this limit"];
    copy(&lists, &to, &[]).failed(1, &parts);
    assert_eq!(names(folder.path()), ["lists.jsonl", "long.csv"]);
    copy(&lists, &to, &["--encoding", "a=PLAIN"]).succeeded();
    read(&to, "\n{\"a\":[1]}\n");
}
