//! Whatever is wrong: one line that a person understands, and an exit code that is not 0.

use std::fs;

use crate::common::{Run, corpus, data, marquetry, parquet2cql, run};

/// A file of these bytes, in a folder that is removed with the guard.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("the file is written");
    let path = path.to_str().expect("a path in UTF-8").to_string();
    (folder, path)
}

/// The command that says the error in its output, too.
const JSON: usize = 1;

/// All commands that read a file, on this one.
fn all_commands(path: &str) -> Vec<Run> {
    vec![
        run(["show", path]),
        run(["show", "--json", path]),
        run(["rows", path]),
        run(["cql", path, "--table", "t", "--key-row-number", "id"]),
        run(["copy", path, "cql://localhost:1/ks.t", "--create", "--key-row-number", "id"]),
        Run::of(
            parquet2cql().args(["--file", path, "--table", "t", "--pk", "id"]).output().expect("it runs"),
        ),
    ]
}

#[track_caller]
fn all_fail(path: &str, code: i32, part: &str) {
    for (number, run) in all_commands(path).into_iter().enumerate() {
        let out = run.failed(code, &[path, part]);
        if number == JSON {
            let object: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert!(object["error"].as_str().unwrap().contains(part), "{out}");
        } else {
            assert_eq!(out, "", "nothing is printed before");
        }
    }
}

#[test]
fn a_file_that_is_not_there() {
    let (folder, path) = file("x", b"");
    drop(folder);
    all_fail(&path, 3, "no such file");
}

#[test]
fn a_directory() {
    let folder = tempfile::tempdir().unwrap();
    all_fail(folder.path().to_str().unwrap(), 3, "a directory without a Parquet file");
}

#[test]
fn an_empty_file() {
    let (_folder, path) = file("empty.parquet", b"");
    all_fail(&path, 1, "an empty file");
}

#[test]
fn a_file_of_something_else() {
    let (_folder, path) = file("table.bin", b"a,b\0\n1,2\n3,4\n5,6\n");
    all_fail(&path, 1, "not a Parquet file");
}

#[test]
fn a_file_that_was_cut_off() {
    let whole = fs::read(data("types.parquet")).unwrap();
    let (_folder, path) = file("cut.parquet", &whole[..whole.len() / 2]);
    all_fail(&path, 1, "does not end with PAR1");
}

/// The earlier tool added 8 to this length in 32 bits.
#[test]
fn a_footer_length_that_wraps() {
    for length in [0xffff_fffb_u32, 0xffff_fff8, 0xffff_ffff, 0x8000_0000] {
        let bytes = [b"PAR1".as_slice(), &length.to_le_bytes(), b"PAR1"].concat();
        assert_eq!(bytes.len(), 12);
        let (_folder, path) = file("wrap.parquet", &bytes);
        all_fail(&path, 1, &length.to_string());
    }
}

#[test]
fn an_encrypted_footer() {
    let Some(path) = corpus("parquet-testing/data/uniform_encryption.parquet.encrypted") else { return };
    all_fail(&path, 1, "encrypted");
}

#[cfg(unix)]
#[test]
fn a_pipe() {
    use std::process::Stdio;
    for path in ["-", "/dev/stdin"] {
        let empty = marquetry().args(["rows", path]).stdin(Stdio::null()).output().unwrap();
        Run::of(empty).failed(1, &["it is empty, and no Parquet file", "--from csv"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).stderr(Stdio::null()).status();
    if made.is_ok_and(|status| status.success()) {
        let path = fifo.clone();
        let writer = std::thread::spawn(move || fs::write(path, [0; 20]).unwrap());
        run(["rows", fifo.to_str().unwrap()]).failed(1, &["fifo: ", "does not begin as", "--from csv"]);
        writer.join().unwrap();
    }
}

#[test]
fn wrong_usage_is_2() {
    let path = data("one.parquet");
    for arguments in [
        vec!["rows", "--bogus", &path],
        vec!["bogus"],
        vec![],
        vec!["rows"],
        vec!["rows", &path, "--format", "xml"],
        vec!["cql", &path],
        vec!["cql", &path, "--table", "t", "--key", "a", "--schema-only", "--data-only"],
        vec!["copy", &path, "cql://h/k.t", "--create", "--key", "a", "--in-flight", "0"],
        vec!["copy", &path, "cql://h/k.t", "--rate", "fast"],
        vec!["copy", &path, "cql://h/k.t", "--ttl", "999999999"],
        vec!["copy", &path, "cql://h/k.t", "--max-errors", "5"],
        vec!["copy", &path, "cql://h/k.t", "--resume"],
        vec!["copy", &path, "cql://h/k.t", "--retry-for", "soon"],
        vec!["copy", &path, "cql://h/k.t", "--create", "--key", "a", "--consistency", "MOST"],
    ] {
        let run = run(&arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.err.contains("--help") || run.err.contains("Usage:"), "{}", run.err);
    }
    let run = Run::of(parquet2cql().args(["--file", &path, "--table", "t"]).output().unwrap());
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("--pk"), "{}", run.err);
}

#[test]
fn a_table_needs_a_key() {
    let path = data("one.parquet");
    let parts = ["primary key", "--key 'a'", "--key '(a, b), c'", "--key-row-number id"];
    run(["cql", &path, "--table", "t"]).failed(2, &parts);
    run(["copy", &path, "cql://localhost:1/ks.t", "--create"]).failed(2, &parts);
    run(["cql", &path, "--table", "t", "--key", "(a"]).failed(2, &["--key '(a'"]);
    assert_eq!(run(["cql", &path, "--table", "t", "--key", "nope"]).failed(2, &["nope"]), "");
    run(["cql", &path, "--table", "1t", "--key", "a"]).failed(2, &["--table '1t'"]);
    assert_eq!(run(["cql", &path, "--table", "t", "--key-row-number", "a"]).failed(2, &["a"]), "");
}

#[test]
fn nested_values_that_cql_cannot_hold() {
    let path = data("nested_cql.parquet");
    let cql =
        |more: &[&str]| run([&["cql", &path, "--table", "t", "--key", "id", "--data-only"], more].concat());
    for (column, place, wanted) in [
        (
            "tags",
            "column tags[1], row 2",
            ["a null in a list, which CQL cannot hold", "--null-elements drop"],
        ),
        ("prices", "column prices[1].value, row 2", ["a null in a map's values", "--null-elements drop"]),
        (
            "twice",
            "column twice[2].key, row 1",
            ["the key 'it''s' stands in the map at 0", "--duplicate-keys last"],
        ),
        ("bad", "column bad[0].word, row 1", ["not UTF-8: the byte 0xff at 1", ""]),
    ] {
        let out = cql(&["--columns", &format!("id,{column}")]);
        let out = out.failed(1, &["nested_cql.parquet: ", wanted[0], wanted[1], place]);
        assert!(out.is_empty() || out.ends_with(");\n"), "{out}");
    }
    let out = cql(&["--columns", "id,tags,prices", "--null-elements", "drop"]).succeeded();
    assert_eq!(out.lines().nth(2), Some("INSERT INTO t (id, tags, prices) VALUES (2, ['x'], {'a': 1.50});"));
    let out = cql(&["--columns", "id,twice", "--duplicate-keys", "last"]).succeeded();
    assert_eq!(out.lines().nth(1), Some("INSERT INTO t (id, twice) VALUES (1, {'b': 2, 'it''s': 3});"));
    let out = cql(&["--columns", "id,bad", "--invalid-utf8", "blob"]).succeeded();
    assert_eq!(out.lines().nth(1), Some("INSERT INTO t (id, bad) VALUES (1, [{word: 0x62ff}]);"));
    cql(&["--as-set", "tags,tags.element"]).failed(
        2,
        &[
            "\"tags.element\" is to be a set, but no list",
            "there are stops, stops.element.fares.value, Place.tags",
        ],
    );
    cql(&["--as-set", "tags,"]).failed(2, &["--as-set: 'tags,': a name is empty"]);
    for option in [&["--as-set", "tags"][..], &["--frozen"]] {
        let copy = run([&["copy", &path, "cql://localhost:1/ks.t"], option].concat());
        copy.failed(2, &["--as-set and --frozen are for a table that is created: add --create"]);
    }
}

#[test]
fn nested_columns_that_cannot_be_printed() {
    let path = data("nested.parquet");
    run(["rows", "--columns", "tags.list", &path]).failed(2, &["\"tags\"", "no field \"list\""]);
    let bad = data("nested_bad_text.parquet");
    let wanted = ["not UTF-8", "--invalid-utf8", "(column list.list.element, row 1)"];
    let out = run(["rows", "--format", "jsonl", &bad]).failed(1, &wanted);
    assert_eq!(out, "{\"id\":0,\"list\":[\"a\"]}\n");
    run(["rows", &bad]).failed(1, &wanted);
    let out = run(["rows", "--format", "jsonl", "--invalid-utf8", "blob", &bad]).succeeded();
    assert!(out.ends_with("{\"id\":1,\"list\":[\"b\",\"0x63ff\"]}\n"), "{out}");
    let Some(path) = corpus("parquet-testing/shredded_variant/case-043-INVALID.parquet") else { return };
    let out =
        run(["rows", "--format", "csv", &path]).failed(1, &["INVALID.parquet: ", "(column var, row 0)"]);
    assert_eq!(out, "id,var\n");
}

#[test]
fn pages_are_listed_though_their_index_is_wrong() {
    // That writer's column index counts the dictionary page.
    let kept = "../../dev/conformance/writers/files/xitongsys/LZ4.parquet";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(kept);
    let path = path.to_str().unwrap();
    let fault = "a column index of 3 pages beside an offset index of 2 (column name, row group 0)";
    let out = run(["show", "--pages", "name", path]).failed(1, &[fault]);
    assert!(out.contains("column name: 3 pages") && out.contains("data v1"), "{out}");
    let out = run(["show", "--json", "--pages", "name", path]).failed(1, &[fault]);
    assert_eq!(out.matches("\"index\":null").count(), 3, "{out}");
}

#[test]
fn columns_that_are_not_there() {
    let path = data("one.parquet");
    run(["rows", "--columns", "a,c", &path]).failed(2, &["no column \"c\"", "a, b"]);
    run(["rows", "--columns", "a,a", &path]).failed(2, &["\"a\" twice"]);
    run(["rows", "--columns", "a,,b", &path]).failed(2, &["empty"]);
    run(["rows", "--columns", "", &path]).failed(2, &["--columns: ''", "empty"]);
    assert!(run(["rows", "--limit", "-1", &path]).err.starts_with("error: invalid value '-1' for '--limit"));
    run(["show", "--pages", "c", &path]).failed(2, &["no column \"c\""]);
    run(["show", "--pages", "tags", &data("nested.parquet")]).failed(2, &["in that group are tags."]);
}

#[test]
fn columns_of_odd_names() {
    let path = data("names.parquet");
    let csv = |columns: &str| run(["rows", "--format", "csv", "--columns", columns, &path]);
    let all = r#""a,b",q"uote,do.t,new
line," lead",Case,case,CASE2,select,"""#;
    csv(all).failed(
        2,
        &[
            "no column \"CASE2\"",
            r#"its columns are id, "a,b", "q""uote", do.t, new\nline, " lead""#,
            r#", """#,
        ],
    );
    let all = all.replace(",CASE2", "");
    let out = csv(&all).succeeded();
    assert_eq!(
        out,
        "\"a,b\",\"q\"\"uote\",do.t,\"new\nline\", lead,Case,case,select,\"\"\n1,2,3,4,5,6,7,8,11\n"
    );
    csv("lead").failed(2, &["no column \"lead\""]);
    csv("SELECT,select").failed(2, &["\"select\" twice"]);
    // A terminal is not spoken to, wherever a name is shown.
    for arguments in [vec!["show", &path], vec!["rows", &path], vec!["show", "--pages", "esc\x1b[31m", &path]]
    {
        let out = run(arguments).succeeded();
        assert!(out.contains("\\u{1b}[31m") && !out.contains(['\x1b', '\u{202e}']), "{out}");
    }
    csv("esc").failed(2, &["esc\\u{1b}[31m, rtl\\u{202e},"]);
    // CQL has all of them but the empty one, which is said before the first line.
    let cql = |more: &[&str]| run([&["cql", path.as_str(), "--table", "t"], more].concat());
    let out = cql(&["--key", "id"]).failed(1, &["the name of column 12 (of 12)", "empty", "--columns"]);
    assert_eq!(out, "");
    let out = cql(&["--key", "Case", "--columns", "Case,case,\"a,b\",q\"uote,select"]).succeeded();
    assert!(out.contains(
        "INSERT INTO t (\"Case\", case, \"a,b\", \"q\"\"uote\", \"select\") VALUES (6, 7, 1, 2, 8);"
    ));
    cql(&["--key-row-number", "id"]).failed(2, &["the row number cannot be called id"]);
}

#[test]
fn two_columns_of_one_name() {
    let path = data("twice.parquet");
    assert_eq!(run(["rows", "--format", "csv", &path]).succeeded(), "a,a#2,b\n1,2,3\n");
    assert_eq!(run(["rows", "--format", "csv", &path, "--columns", "a#2"]).succeeded(), "a#2\n2\n");
    let cql = run(["cql", &path, "--table", "t", "--key", "b"]).succeeded();
    assert!(cql.ends_with("INSERT INTO t (a, \"a#2\", b) VALUES (1, 2, 3);\n"), "{cql}");
    run(["rows", &path, "--columns", "a#3"]).failed(2, &["no column \"a#3\"; its columns are a, a#2, b"]);
    run(["show", "--pages", "a#3", &path]).failed(2, &["there is no column \"a#3\" with pages"]);
}

#[test]
fn files_that_differ_are_found_before_the_first_line() {
    let (one, other_type, other_name) =
        (data("one.parquet"), data("other_type.parquet"), data("other_name.parquet"));
    for start in [vec!["cql", "--table", "t", "--key", "a"], vec!["rows"]] {
        let with =
            |second: &str| run(start.iter().copied().chain([one.as_str(), second]).collect::<Vec<_>>());
        assert_eq!(with(&other_type).failed(1, &[&other_type, "\"a\" is DOUBLE, but INT64 in", &one]), "");
        assert_eq!(with(&other_name).failed(1, &[&other_name, "no column \"b\"", &one]), "");
        assert_eq!(with("/nonexistent/x.parquet").failed(3, &["no such file"]), "");
    }
}

#[test]
fn what_can_be_copied_where() {
    let path = data("one.parquet");
    for (to, part) in [
        ("-", "standard output needs a format"),
        ("out.txt", "a name that ends in .parquet"),
        ("sstable:x", "is for tables of a cluster"),
        ("ftp://b/k", "copying to ftp:// is not supported; "),
        ("cql://h/t", "without its keyspace"),
        ("cql://h", "/KEYSPACE.TABLE"),
    ] {
        run(["copy", &path, to, "--create", "--key", "a"]).failed(2, &[part]);
    }
    run(["copy", &path, "out/", "--to", "csv", "--file-rows", "9"])
        .failed(2, &["holds Parquet only", "leave --to out"]);
    for option in [["--partition-by", "a"], ["--file-rows", "9"], ["--file-bytes", "9K"]] {
        run([&["copy", &path, "out"], &option[..]].concat())
            .failed(2, &["out: end the name in / for a directory"]);
    }
    run(["copy", "cql://h/k.t", "--create", "--key", "a"]).failed(2, &["name the sources first"]);
    run(["copy", &path]).failed(2, &["name the sources first", "CSV", ".jsonl", "- with --to", "cql://HOST"]);
    run(["copy", "ftp://b/k", "cql://h/k.t", "--create", "--key", "a"])
        .failed(2, &["reading from ftp:// is not supported yet; supported are local files, s3://"]);
    // What can be read, but not together with others, is no address that is not supported.
    for two in [[&*path, "cql://h/k.t"], ["cql://h/k.t", &path]] {
        let together = format!(
            "tables are read as one only if all are files, or objects of stores: {} and {} are not",
            two[0], two[1]
        );
        run(["copy", two[0], two[1], "out.jsonl"]).failed(2, &[&*together]);
    }
    run(["show", "ftp://b/k"]).failed(2, &["ftp://b/k: only files and objects of stores can be shown"]);
    run(["copy", &path, "cql://h/k.t", "--key", "a"]).failed(2, &["--create"]);
    run(["copy", &path, "cql://127.0.0.1:1/k.t", "--create", "--key", "a"])
        .failed(3, &["cannot connect", "127.0.0.1:1"]);
}

#[test]
fn passwords_are_never_said() {
    let path = data("one.parquet");
    let address = "cql://me:tiger@127.0.0.1:1/ks.t";
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "tiger\nanother line\n").unwrap();
    let secret = secret.to_str().unwrap();
    for arguments in [
        vec!["copy", &path, address, "--create", "--key", "a"],
        vec!["copy", &path, "cql://me@127.0.0.1:1/ks.t", "--create", "--key", "a", "--password-file", secret],
        vec!["copy", &path, "cql://me:tiger@/ks.t", "--create", "--key", "a"],
        vec!["copy", address, &path, "--create", "--key", "a"],
        vec!["copy", &path, address],
        vec!["show", address],
        vec![address],
        vec!["show", &path, "--bogus", address],
        vec!["rows", &path, "--format", address],
        // A slash forgotten, a space in the password, no scheme at all, a bad port, an option that takes none of it.
        vec!["copy", &path, "cql:/me:tiger@127.0.0.1:1/ks.t", "--create", "--key", "a"],
        vec!["copy", &path, "cql://me:a tiger@127.0.0.1:0/ks.t", "--create", "--key", "a"],
        vec!["copy", &path, "me:tiger@127.0.0.1:1/ks.t", "--create", "--key", "a"],
        vec!["rows", &path, "--format=cql://me:a tiger@h"],
        vec!["cql", &path, "--table", address, "--key", "a"],
    ] {
        let run = Run::of(marquetry().env("MARQUETRY_PASSWORD", "tiger").args(&arguments).output().unwrap());
        assert!(run.code != Some(0) && !run.err.is_empty(), "{arguments:?}");
        assert!(!run.err.contains("tiger") && !run.out.contains("tiger"), "{}", run.err);
    }
    run(["copy", &path, "cql://h/k.t", "--password-file", secret]).failed(2, &["needs a user"]);
    run(["copy", &path, "cql://me:x@h/k.t", "--password-file", secret]).failed(2, &["two passwords"]);
    let empty = folder.path().join("empty");
    fs::write(&empty, "\ntiger\n").unwrap();
    run(["copy", &path, "cql://me@h/k.t", "--password-file", empty.to_str().unwrap()])
        .failed(2, &["is empty"]);
    run(["copy", &path, "cql://me@h/k.t", "--password-file", "/nonexistent"]).failed(3, &["/nonexistent"]);
}

#[test]
fn names_of_files_cannot_speak_to_the_terminal() {
    let escaped = "no\\u{1b}{31m\\nsuch\\u{202e}.parquet";
    // A bracket that is not closed makes it a pattern, and not a good one; without it, it is only missing.
    let name = |bracket: char| format!("no\x1b{bracket}31m\nsuch\u{202e}.parquet");
    let wrong = "no such file, and not a pattern either: unclosed character class";
    run(["show", &name('[')]).failed(2, &[&escaped.replace("b}{", "b}["), wrong]);
    run(["show", &name('(')]).failed(3, &[&escaped.replace("b}{", "b}("), "no such file or directory"]);
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a\nb.parquet");
    let out = run(["copy", &data("one.parquet"), to.to_str().unwrap()]).succeeded();
    assert!(out.contains("a\\nb.parquet: ") && out.lines().count() == 1, "{out}");
    let usage = run(["show", "--x\x1b[31m\n\u{202e}.parquet"]);
    assert!(
        usage.code == Some(2) && usage.err.contains("'--x\\u{1b}[31m\\n\\u{202e}.parquet'"),
        "{}",
        usage.err
    );
}

/// Names that are no text, or look like options, are names all the same.
#[cfg(target_os = "linux")]
#[test]
fn files_may_have_any_name() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    for name in [&b"b\xff\xfe.parquet"[..], b"a b.parquet", b"it's \"q\"\n.parquet", b"*.parquet", b"a:b@c"] {
        let path = folder.path().join(OsStr::from_bytes(name));
        fs::copy(data("one.parquet"), &path).unwrap();
        let arguments = ["rows", "--format", "csv"].map(OsString::from);
        let rows = run(arguments.iter().map(OsString::as_os_str).chain([path.as_os_str()])).succeeded();
        assert_eq!(rows, "a,b\n1,x\n2,y\n", "{path:?}");
    }
    let show =
        run([OsStr::new("show"), folder.path().join(OsStr::from_bytes(b"b\xff\xfe.parquet")).as_os_str()]);
    assert!(show.succeeded().contains("b\u{fffd}\u{fffd}.parquet"));
    // They are read and written by the formats that their endings say.
    let path = |name: &[u8]| folder.path().join(OsStr::from_bytes(name)).into_os_string();
    let mut from = path(b"a b.parquet");
    for name in [&b"o\xff.csv"[..], b"o\xff.jsonl.gz", b"o\xff.tsv", b"\xffo.parquet"] {
        run([OsStr::new("copy"), &from, &path(name), OsStr::new("--quiet")]).succeeded();
        from = path(name);
        run([OsStr::new("diff"), &path(b"a b.parquet"), &from]).succeeded();
    }
}

#[test]
fn versions_and_completions() {
    let version = run(["--version"]).succeeded();
    assert_eq!(version, concat!("marquetry ", env!("CARGO_PKG_VERSION"), "\n"));
    let version = Run::of(parquet2cql().arg("--version").output().unwrap()).succeeded();
    assert_eq!(version, concat!("parquet2cql ", env!("CARGO_PKG_VERSION"), "\n"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).succeeded();
        assert!(script.contains("marquetry") && script.contains("key-row-number"), "{shell}");
    }
    let help = run(["--help"]).succeeded();
    for part in ["Exit codes:", "130  interrupted", "parquet", "show", "rows", "cql", "copy"] {
        assert!(help.contains(part), "{part}");
    }
    let codes = help.lines().skip_while(|line| *line != "Exit codes:");
    let long: Vec<&str> = codes.filter(|line| line.len() > 79).collect();
    assert!(long.iter().all(|line| line.starts_with("Rows, row groups")), "{long:?}");
    for command in ["show", "rows", "cql", "copy", "ceph", "completions"] {
        let help = run([command, "--help"]).succeeded();
        assert!(help.contains("Examples:"), "{command}");
    }
}

/// A page longer than is safe is refused with the way to read it, which then does.
#[test]
fn a_page_beyond_a_limit() {
    let path = data("long_page.parquet");
    let refused = run(["rows", &path, "--limit", "2"]);
    refused.failed(1, &[&path, "272000009", "page_bytes", "--trust"]);
    let read = run(["rows", &path, "--limit", "2", "--trust"]);
    assert_eq!(read.succeeded().lines().take(3).collect::<Vec<_>>(), ["n", "0", "0"]);
}

#[test]
fn secrets_of_addresses_are_not_printed() {
    let file = data("one.parquet");
    for address in [
        "http://127.0.0.1:1/a.parquet?X-Amz-Signature=tiger",
        "az://?sv=2024&sig=tiger",
        "https://me:tiger@host/a.parquet",
        "ftp://me:tiger@host/a.parquet?sig=tiger",
        "cql://me:tiger@127.0.0.1:1/ks.t",
        // Slips.
        "https:/host/a.parquet?a=b&sig=tiger",
        "host/a.csv?sig=tiger",
        "no/dir?sig=tiger/",
        "me:tiger@host/a.parquet",
    ] {
        for arguments in [
            vec!["show", address],
            vec!["show", address, "--summary"],
            vec!["show", address, "--json"],
            vec!["show", address, "--schema"],
            vec!["show", address, "--html", "-"],
            vec!["rows", address],
            vec!["diff", &file, address],
            vec!["diff", address, address, "--json"],
            vec!["cql", address, "--table", "t", "--key", "a"],
            vec!["copy", address, "-", "--to", "csv"],
            vec!["copy", address, address],
            vec!["copy", &file, "no-folder/x.parquet", address],
            vec![address],
            vec!["rows", &file, "--columns", address],
        ] {
            let ran = run(arguments.clone());
            assert_ne!(ran.code, Some(0), "{arguments:?}");
            assert!(
                !ran.out.contains("tiger") && !ran.err.contains("tiger"),
                "{arguments:?}: {}{}",
                ran.out,
                ran.err
            );
        }
    }
}
