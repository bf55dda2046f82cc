//! SSTables that are written, and the manifest beside them.

use std::fs;

use serde_json::Value;

use crate::common::{Folder, run};
use crate::sstables::{address, copy_sstables, csv, table};

/// New SSTables, of SSTables and of their Parquet file; what has an option, and what is refused.
#[test]
fn sstables_are_written() {
    let folder = Folder::new();
    let full = folder.path("full.parquet");
    run(["copy", &address(table()), &full, "-q"]).succeeded();
    let every: [&[&str]; 4] = [
        &[],
        &["--format", "nb", "--codec", "zstd", "--level", "5"],
        &["--format", "oa", "--codec", "deflate", "--split-at=-4611686018427387904,0"],
        &["--format", "da", "--codec", "none", "--max-bytes", "1K"],
    ];
    for (number, options) in every.iter().enumerate() {
        let to = address(folder.path(&format!("new{number}")));
        let said = run([&["copy", &full, &to][..], options].concat()).succeeded();
        assert!(said.contains("16 rows written to") && said.contains(" files, "), "{said}");
        // The definition is beside them, so the key's columns have their names.
        assert_eq!(csv(&[&to]), csv(&[&address(table())]), "{options:?}");
        let again = run(["copy", &full, &to]);
        again.failed(1, &["SSTables go to a new directory"]);
    }
    let to = address(folder.path("other"));
    let logical = folder.path("logical.parquet");
    run(["copy", &address(table()), &logical, "--mapping", "logical", "-q"]).succeeded();
    // The rows that a SELECT returned are rows of the table again, which the file keeps the definition of.
    run(["copy", &logical, &to, "-q"]).succeeded();
    assert_eq!(csv(&[&to, "--mapping", "logical"]), csv(&[&logical]));
    let to = address(folder.path("none"));
    run(["copy", &full, &to, "--codec", "brotli"]).failed(2, &["lz4, snappy, deflate or zstd"]);
    run(["copy", &full, &to, "--bloom", "a"]).failed(2, &["--bloom is for writing Parquet files"]);
    let text = folder.path("a.csv");
    run(["copy", &full, &text, "--format", "nb"]).failed(2, &["--format is for writing SSTables"]);
    assert!(!folder.root().join("none").exists());
}

/// The fields that `docs/dev/object_storage.md` of ScyllaDB lists under "The snapshot manifest" (commit f4a4091ca28e, 21 August 2026), by what has them. `expires_at`
/// may be null, and `files` lists what is neither an SSTable's, nor the manifest, nor `schema.cql`.
const MANIFEST: [(&str, &[&str]); 5] = [
    ("", &["files", "manifest", "node", "snapshot", "sstables", "table"]),
    ("/manifest", &["scope", "version"]),
    ("/node", &["datacenter", "host_id", "rack"]),
    ("/snapshot", &["created_at", "expires_at", "name"]),
    ("/table", &["keyspace_name", "table_id", "table_name", "tablet_count", "tablets_type"]),
];
/// Those of each SSTable; and two that the document lacks, which ScyllaDB's restore of tablets asks for (`process_manifest` in `sstables_loader.cc` there).
const OF_SSTABLE: [&str; 6] = ["data_size", "first_token", "id", "index_size", "last_token", "toc_name"];
const OF_RESTORE: [&str; 2] = ["repaired_at", "tablet_id"];

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// The manifest for ScyllaDB's restore has the fields that ScyllaDB's documents list, and says of the SSTables what is true. (No ScyllaDB tried one.)
#[test]
fn a_manifest_is_as_scylladb_documents_it() {
    let folder = Folder::new();
    let manifest_of = |to: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(folder.root().join(to).join("manifest.json")).unwrap())
            .unwrap()
    };
    let asked = ["--manifest", "dai\"ly,dc1,r1"];
    let new = |to: &str, options: &[&str]| {
        let to = address(folder.path(to));
        run([&["copy", &address(table()), &to], &asked[..], options].concat())
    };
    new("tablets", &["--tablets", "8"]).succeeded();
    let manifest = manifest_of("tablets");
    for (place, fields) in MANIFEST {
        assert_eq!(keys(manifest.pointer(place).unwrap()), fields, "{place}");
    }
    assert_eq!(manifest["manifest"], serde_json::json!({"version": "1.0", "scope": "node"}));
    assert_eq!((&manifest["node"]["datacenter"], &manifest["node"]["rack"]), (&"dc1".into(), &"r1".into()));
    assert_eq!(
        (&manifest["snapshot"]["name"], &manifest["snapshot"]["expires_at"]),
        (&"dai\"ly".into(), &Value::Null)
    );
    assert!(manifest["snapshot"]["created_at"].as_u64().unwrap() > 1_700_000_000, "{manifest}");
    let of_table = &manifest["table"];
    assert_eq!((&of_table["keyspace_name"], &of_table["table_name"]), (&"ks".into(), &"t".into()));
    assert_eq!((&of_table["tablets_type"], &of_table["tablet_count"]), (&"powof2".into(), &8.into()));
    assert_eq!(manifest["files"], serde_json::json!([]));
    // Every SSTable of the directory, with its sizes; and each is inside of its tablet.
    let there = |to: &str| -> Vec<String> {
        let names = fs::read_dir(folder.root().join(to)).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.ends_with("-TOC.txt"));
        names.sort();
        names
    };
    let sstables = manifest["sstables"].as_array().unwrap();
    let mut named: Vec<String> =
        sstables.iter().map(|sstable| sstable["toc_name"].as_str().unwrap().to_owned()).collect();
    named.sort();
    assert!(named.len() > 1 && named == there("tablets"), "{named:?}");
    let mut ids = std::collections::BTreeSet::new();
    let mut last_before = i128::from(i64::MIN) - 1;
    for sstable in sstables {
        let mut fields = [&OF_SSTABLE[..], &OF_RESTORE].concat();
        fields.sort_unstable();
        assert_eq!(keys(sstable), fields);
        let toc = sstable["toc_name"].as_str().unwrap();
        for (field, component) in [("data_size", "Data.db"), ("index_size", "Index.db")] {
            let file = folder.root().join("tablets").join(toc.replace("TOC.txt", component));
            assert_eq!(sstable[field], fs::metadata(file).unwrap().len(), "{toc} {component}");
        }
        let [first, last] =
            ["first_token", "last_token"].map(|field| i128::from(sstable[field].as_i64().unwrap()));
        let tablet = i128::from(sstable["tablet_id"].as_u64().unwrap());
        let tablet_of = |token: i128| (token - i128::from(i64::MIN)) >> 61;
        assert!(last_before < first && first <= last, "{sstable}");
        assert_eq!((tablet_of(first), tablet_of(last)), (tablet, tablet), "{sstable}");
        last_before = last;
        let data = address(folder.root().join("tablets").join(toc.replace("TOC.txt", "Data.db")));
        let inside = format!("{}:{last}", first - 1);
        assert_eq!(csv(&[&data, "--token-range", &inside]), csv(&[&data]));
        assert!(ids.insert(sstable["id"].as_str().unwrap().to_owned()), "{sstable}");
    }
    // The table is the same.
    assert_eq!(csv(&[&address(folder.root().join("tablets"))]), csv(&[&address(table())]));

    // Rows of any kind; without tablets.
    let rows = folder.write("rows.csv", "id,v\n1,a\n2,b\n");
    let to = address(folder.path("rows"));
    run([&["copy", &rows, &to, "--table", "ks.rows", "--key", "id"], &asked[..]].concat()).succeeded();
    let manifest = manifest_of("rows");
    assert_eq!(
        (&manifest["table"]["table_name"], &manifest["table"]["tablets_type"]),
        (&"rows".into(), &"none".into())
    );
    assert_eq!(manifest["table"]["tablet_count"], 0);
    assert_eq!(manifest["sstables"][0]["toc_name"], "me-1-big-TOC.txt");
    assert!(manifest["sstables"][0].get("tablet_id").is_none(), "{manifest}");

    // Without the option there is none; and what cannot have one is refused before anything is created.
    run(["copy", &rows, &address(folder.path("bare")), "--table", "ks.rows", "--key", "id"]).succeeded();
    assert!(!folder.root().join("bare/manifest.json").exists());
    new("nb", &["--format", "nb"]).failed(2, &["which reads the version me"]);
    new("three", &["--tablets", "3"]).failed(2, &["a power of two"]);
    let two = run(["copy", &rows, &to, "--manifest", "a,b"]);
    assert!(two.code == Some(2) && two.err.contains("SNAPSHOT,DATACENTER,RACK: three names"), "{}", two.err);
    copy_sstables("", &folder.root().join("nameless"));
    let nameless = address(folder.path("nameless"));
    let unnamed = run([&["copy", &nameless, &address(folder.path("x"))], &asked[..]].concat());
    assert!(
        unnamed.code == Some(2) && unnamed.err.contains("names the table, with its keyspace"),
        "{}",
        unnamed.err
    );
    assert!(!folder.root().join("x").exists() && !folder.root().join("nb").exists());
}

/// Rows of one key are one row of a table, which is said.
#[test]
fn rows_with_the_same_key_are_said() {
    let folder = Folder::new();
    let (rows, few) = (folder.path("rows.csv"), folder.path("few.csv"));
    fs::write(&rows, "k,v\n1,a\n2,b\n1,c\n").unwrap();
    fs::write(&few, "k,v\n1,a\n2,b\n").unwrap();
    let write = |from: &str, name: &str| {
        let to = address(folder.path(name));
        run(["copy", from, &to, "--table", "ks.t", "--key", "k"])
    };
    let said = write(&rows, "all");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("3 rows have 2 keys: rows with the same key are one row of the table"),
        "{}",
        said.err
    );
    assert_eq!(run(["count", &address(folder.path("all"))]).succeeded().trim(), "2");
    let said = write(&few, "few");
    assert!(said.code == Some(0) && !said.err.contains("keys"), "{}", said.err);
}
