//! Parquet files of several SSTables, into SSTables again, by their addresses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry::CopyWords;
use marquetry::base::ErrorKind;
use marquetry::tables::files::FilesOptions;
use marquetry::tables::sstables::FullFiles;
use marquetry::tables::{DiffOptions, Source, diff};

/// Rows, others that overwrite them, and deletions: small SSTables that Cassandra wrote, with the tests of the command.
fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../cli/tests/data/sstables/ks/t-0123456789abcdef0123456789abcdef")
}

fn sstable(path: &Path) -> String {
    format!("sstable:{}", path.display())
}

/// Each as a file of its own.
fn files(folder: &Path) -> PathBuf {
    let lake = folder.join("lake");
    std::fs::create_dir(&lake).unwrap();
    for stem in ["oa-2-big", "nb-2-big", "oa-3-big"] {
        let one = small().join(format!("{stem}-Data.db"));
        marquetry::copy(sstable(&one), lake.join(format!("{stem}.parquet"))).unwrap();
    }
    lake
}

#[test]
fn writes_of_several_files_stay_writes() {
    let folder = tempfile::tempdir().unwrap();
    let lake = files(folder.path());
    let original = marquetry::open(sstable(&small())).unwrap();
    for (from, name) in [(lake.clone(), "directory"), (lake.join("*.parquet"), "pattern")] {
        let to = sstable(&folder.path().join(name));
        marquetry::copy(&from, &to).unwrap();
        let made = marquetry::open(&to).unwrap();
        let sources: [&Arc<dyn Source>; 2] = [original.source(), made.source()];
        let found = diff(sources, &DiffOptions::default(), &mut |_| {}).unwrap();
        assert!(found.are_rows_equal() && found.schema.is_none(), "{name}: {found:?}");
    }
    // Read otherwise, they are rows one after the other.
    let merged = FullFiles::open([&lake], &FilesOptions::default()).unwrap().unwrap();
    assert_eq!(merged.table().rows, None);
    let mut words = CopyWords::default();
    words.set("union", "true").unwrap();
    assert!(words.table([&lake]).unwrap().rows().is_some());
}

#[test]
fn writes_do_not_become_rows_beside_others() {
    let folder = tempfile::tempdir().unwrap();
    let lake = files(folder.path());
    let text = folder.path().join("rows.csv");
    std::fs::write(&text, "pk,ck\na,1\n").unwrap();
    // First, and last.
    for name in ["a.parquet", "z.parquet"] {
        marquetry::copy(&text, lake.join(name)).unwrap();
        let to = folder.path().join("to");
        let mut words = CopyWords::default();
        for (name, value) in [("union", "true"), ("table", "ks.t"), ("key", "(pk), ck")] {
            words.set(name, value).unwrap();
        }
        let error = words.open([&lake], Some(sstable(&to))).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains("either kind by themselves"), "{error}");
        std::fs::remove_file(lake.join(name)).unwrap();
    }
}
