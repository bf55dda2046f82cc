use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

#[test]
fn options_are_those_of_the_destination() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
    std::fs::write(&from, "id,name\n2,b\n1,a\n3,c\n").unwrap();
    let mut words = CopyWords::default();
    words.set("codec", "zstd").unwrap();
    let opened = words.open([&from], Some(&to)).unwrap();
    let error = words.copy(&opened, &to, &mut |_| {}).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("codec")));
    assert!(!to.exists());
    let mut words = CopyWords::default();
    for (name, value) in [("sort", "id desc"), ("where", "id > 1"), ("columns", "name")] {
        words.set(name, value).unwrap();
    }
    // What is sorted by must be there.
    let error = words.copy(&opened, &to, &mut |_| {}).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("sort")));
    words.set("columns", "name,id").unwrap();
    assert_eq!(words.copy(&opened, &to, &mut |_| {}).unwrap().rows, 2);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "name,id\nc,3\nb,2\n");
}

#[test]
fn options_of_text_are_for_text() {
    let folder = tempfile::tempdir().unwrap();
    let (text, parquet) = (folder.path().join("a.txt"), folder.path().join("a.parquet"));
    std::fs::write(&text, "about it\nid;fare\n1;2,5\n2;NA\n").unwrap();
    let mut words = CopyWords::default();
    for (name, value) in
        [("from", "csv"), ("delimiter", ";"), ("decimal", ","), ("skip", "1"), ("null", "NA,-")]
    {
        words.set(name, value).unwrap();
    }
    let table = words.table([&text]).unwrap();
    assert_eq!(table.names(), ["id", "fare"]);
    words.copy(&table, &parquet, &mut |_| {}).unwrap();
    let csv = folder.path().join("b.csv");
    CopyWords::default().copy(&crate::open(&parquet).unwrap(), &csv, &mut |_| {}).unwrap();
    assert_eq!(std::fs::read_to_string(&csv).unwrap(), "id,fare\n1,2.5\n2,\n");
    let mut words = CopyWords::default();
    words.set("delimiter", ";").unwrap();
    assert_eq!(words.table([&parquet]).err().unwrap().detail(), Some(Detail::Option("delimiter")));
    let mut words = CopyWords::default();
    words.set("sort", "id").unwrap();
    assert_eq!(words.table([&parquet]).err().unwrap().detail(), Some(Detail::Option("sort")));
}

#[test]
fn writes_stay_writes() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("a.csv");
    std::fs::write(&text, "id,fare\n1,2.5\n2,3.5\n").unwrap();
    let address = |name: &str| format!("sstable:{}", folder.path().join(name).display());
    let copy = |from: &str, to: &str, options: &[(&str, &str)]| {
        let mut words = CopyWords::default();
        for (name, value) in options {
            words.set(name, value).unwrap();
        }
        words.copy(&words.open([from], Some(to))?, to, &mut |_| {})
    };
    let new = [("key", "id"), ("table", "ks.t"), ("timestamp", "1700000000000000"), ("format", "da")];
    copy(text.to_str().unwrap(), &address("t"), &new).unwrap();
    let names: Vec<_> = std::fs::read_dir(folder.path().join("t")).unwrap().collect();
    assert!(names.iter().any(|it| it.as_ref().unwrap().file_name().to_string_lossy().starts_with("da-")));
    // All is there that was written, when it was.
    let full = CopyWords::default().table([&address("t")]).unwrap();
    assert!(full.names().contains(&"mutation"), "{:?}", full.names());
    let (again, rows) = (address("again"), address("rows"));
    let error = copy(&address("t"), &again, &[("columns", "id,fare")]).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("columns")));
    assert!(!folder.path().join("again").exists());
    copy(&address("t"), &again, &[]).unwrap();
    copy(&address("t"), &rows, &[("columns", "id,fare"), ("mapping", "logical"), ("key", "id")]).unwrap();
    let error = copy(&address("t"), &rows, &[("at", "7"), ("mapping", "full")]).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("at")));
    let error = copy(text.to_str().unwrap(), &rows, &[("mapping", "full")]).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("mapping")));
}

#[test]
fn each_option_takes_a_value_and_refuses_nonsense() {
    let good = |name: &str| match name {
        "union"
        | "trust"
        | "tls"
        | "tls_any_host"
        | "resume"
        | "missing_only"
        | "verify"
        | "overwrite"
        | "locator"
        | "create"
        | "trim"
        | "infer_all"
        | "with_metadata"
        | "dry_run"
        | "frozen"
        | "counters_at_least_once"
        | "lists_at_least_once" => "true",
        "hive" => "off",
        "to" | "from" => "csv",
        "delimiter" | "comment" | "decimal" => ";",
        "quote" => "none",
        "header" => "yes",
        "timestamp_format" => "%F",
        "short_rows" | "nulls" => "null",
        "schema" => "a int",
        "text_encoding" => "latin1",
        "mapping" => "logical",
        "token_range" => "1:7",
        "consistency" => "one",
        "format" => "da",
        "layout" => "columns",
        "schema_cql" => "Cargo.toml",
        "codec" => "ZSTD",
        "table" => "ks.t",
        "where" => "a = 1",
        "types" => "a=int",
        "rename" | "map" => "a=b",
        "encoding" => "a=plain",
        "key_row_number" => "a",
        "timestamps_as" => "millis",
        "invalid_utf8" => "replace",
        "null_elements" => "drop",
        "duplicate_keys" => "last",
        "manifest" => "a,b,c",
        "columns" | "sort" | "bloom" | "page_bloom" | "partition_by" | "key" => "a",
        _ => "7",
    };
    for (name, ..) in OPTIONS {
        let mut words = CopyWords::default();
        words.set(name, good(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(words.given.len(), 1);
        // These are text until there is a table.
        let is_any = ["where", "types", "rename", "null", "timestamp", "ttl", "password"].contains(name);
        let is_name = [
            "password_file",
            "state",
            "local_datacenter",
            "user",
            "ca",
            "cert",
            "key_file",
            "bundle",
            "key_row_number",
            "rejects",
        ]
        .contains(name);
        let is_character = ["delimiter", "comment", "decimal", "quote"].contains(name);
        let wrong = if is_name {
            ""
        } else if is_character {
            "ab"
        } else {
            ","
        };
        if !is_any {
            let error = words.set(name, wrong).unwrap_err();
            assert_eq!(error.detail(), Some(Detail::Option(name)), "{error}");
        }
    }
}

#[test]
fn files_and_names_are_as_the_options_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("a.csv"), "id,fare\n1,2.5\n2,3.5\n").unwrap();
    let copy = |to: &str, options: &[(&str, &str)]| {
        let mut words = CopyWords::default();
        for (name, value) in options {
            words.set(name, value).unwrap();
        }
        words.copy(&words.open([path("a.csv")], Some(to))?, to, &mut |_| {})
    };
    let parquet = path("a.parquet");
    copy(&parquet, &[("encoding", "id=plain,fare=byte_stream_split"), ("bloom", "id"), ("bloom_fpp", "0.1")])
        .unwrap();
    let sstables = format!("sstable:{}", path("t"));
    let new = [("key", "number"), ("key_row_number", "number"), ("table", "ks.t"), ("map", "price=fare")];
    copy(&sstables, &[&new[..], &[("codec", "zstd"), ("level", "1")]].concat()).unwrap();
    let mut words = CopyWords::default();
    words.set("mapping", "logical").unwrap();
    assert_eq!(words.table([&sstables]).unwrap().names(), ["number", "id", "price"]);
    // What has no effect, or wants something else beside it, is said by its name.
    for (to, options, option) in [
        (path("b.parquet"), &[("bloom_fpp", "0.1")][..], "bloom_fpp"),
        (path("b.parquet"), &[("page_bloom_fpp", "0.1")], "page_bloom_fpp"),
        (path("b.parquet"), &[("bloom", "id"), ("bloom_fpp", "1")], "bloom_fpp"),
        (path("b.parquet"), &[("map", "price=fare")], "map"),
        (format!("sstable:{}", path("u")), &[("codec", "brotli"), ("key", "id"), ("table", "ks.t")], "codec"),
        (format!("sstable:{}", path("u")), &[("level", "3"), ("key", "id"), ("table", "ks.t")], "level"),
        (path("b.csv"), &[("tls", "true")], "tls"),
    ] {
        assert_eq!(copy(&to, options).unwrap_err().detail(), Some(Detail::Option(option)), "{to}");
    }
    assert!(!folder.path().join("b.parquet").exists() && !folder.path().join("u").exists());
}

#[cfg(feature = "cluster")]
#[test]
fn passwords_are_not_shown_and_certificates_are_looked_at() {
    let mut words = CopyWords::default();
    for (name, value) in [("user", "me"), ("password", "tiger"), ("bundle", "b.zip"), ("tls", "true")] {
        words.set(name, value).unwrap();
    }
    assert!(!format!("{words:?}").contains("tiger"));
    let connect = words.unload().unwrap().connect;
    assert_eq!((connect.user.as_deref(), connect.password.as_deref()), (Some("me"), Some("tiger")));
    assert!(connect.bundle.is_some() && connect.tls == Some(TlsOptions::default()));
    words.set("tls_any_host", "true").unwrap();
    assert_eq!(words.unload().unwrap_err().detail(), Some(Detail::Option("tls_any_host")));
    words.set("ca", "ca.pem").unwrap();
    let tls = words.unload().unwrap().connect.tls.unwrap();
    assert!(!tls.verify_hosts && tls.authorities.is_some());
}

/// So that programs and people who are told of one can give it.
#[test]
fn each_option_that_an_error_names_as_help_has_a_word() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<PathBuf> =
        fs::read_dir(crates).unwrap().map(|it| it.unwrap().path().join("src")).collect();
    let mut named = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            for list in text.split(concat!("AdmittedBy", "(&[")).skip(1) {
                let list = list.split(']').next().unwrap();
                named.extend(list.split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    assert!(named.len() > 15 && named.contains("timestamps_as_millis"), "{named:?}");
    for name in named {
        let word = CopyWords::word_for(&name);
        assert!(OPTIONS.iter().any(|(known, ..)| *known == word), "{name}: {word} is no option");
    }
    assert!(
        OTHER_WORDS
            .iter()
            .all(|(name, word)| OPTIONS.iter().all(|(known, ..)| known != name) && name != word)
    );
}
