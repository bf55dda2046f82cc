//! What every byte of a file is for; and many files at a glance.

use std::fs;
use std::path::{Path, PathBuf};

use marquetry_base::{ErrorKind, Limits};
use marquetry_tables::Cancel;
use marquetry_tables::files::{ExtentKind, FileMap, FilesOptions, MapOptions, ParquetFile, Survey};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/data").join(name)
}

fn pages(map: &FileMap) -> u64 {
    map.extents.iter().map(|extent| u64::from(matches!(extent.kind, ExtentKind::Page(_)))).sum()
}

#[test]
fn pages_are_listed_up_to_a_number() {
    let file = ParquetFile::open(&data("types.parquet"), Limits::default()).unwrap();
    let chunks: u64 = file.metadata().row_groups.iter().map(|group| group.columns.len() as u64).sum();
    let all = FileMap::of(&file, &MapOptions::default()).unwrap();
    assert!(pages(&all) > chunks, "dictionaries are pages, too");
    assert_eq!((all.chunks_unlisted, all.overlapping_bytes, all.faults.len()), (0, 0, 0));
    for pages_max in [0, 1, 2, 5, pages(&all) - 1, pages(&all)] {
        let mut options = MapOptions::default();
        options.pages_max = pages_max;
        let map = FileMap::of(&file, &options).unwrap();
        assert!(pages(&map) <= pages_max);
        assert_eq!(map.chunks_unlisted == 0, pages_max >= pages(&all), "{pages_max}");
        // What is not listed is one extent, and there are no holes.
        let whole = map.extents.iter().filter(|extent| extent.kind == ExtentKind::Pages).count();
        assert_eq!(whole as u64, map.chunks_unlisted);
        let mut at = 0;
        for extent in &map.extents {
            assert_eq!(extent.offset, at);
            at += extent.bytes;
        }
        assert_eq!(at, file.bytes());
    }
    let mut options = MapOptions::default();
    options.cancel = Cancel::new();
    options.cancel.cancel();
    assert_eq!(FileMap::of(&file, &options).unwrap_err().kind(), ErrorKind::Cancelled);
}

/// The survey is that of all files in their order, however many threads read them.
#[test]
fn files_are_added_up_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..300 {
        let from = if number % 3 == 0 { "types.parquet" } else { "one.parquet" };
        fs::copy(data(from), folder.path().join(format!("{number:03}.parquet"))).unwrap();
    }
    fs::write(folder.path().join("100.parquet"), "no").unwrap();
    let mut calls = Vec::new();
    let paths = [folder.path().to_path_buf(), folder.path().join("none.parquet")];
    let survey = Survey::read(&paths, &FilesOptions::default(), |done, all| calls.push((done, all))).unwrap();
    assert_eq!((survey.files, survey.broken, survey.faults.len()), (299, 2, 2));
    assert_eq!(calls.last(), Some(&(301, 301)));
    assert!(calls.is_sorted());
    let schemas: Vec<_> = survey.schemas.iter().map(|schema| (schema.files, schema.first.clone())).collect();
    let name = |number: u32| folder.path().join(format!("{number:03}.parquet")).to_str().unwrap().to_string();
    assert_eq!(schemas, [(100, name(0)), (199, name(1))]);
    assert_eq!(survey.first.len(), 100);
    assert_eq!((survey.first[7].name.clone(), survey.smallest.unwrap().name), (name(7), name(1)));
    let mut options = FilesOptions::default();
    options.cancel = Cancel::new();
    options.cancel.cancel();
    assert_eq!(Survey::read(&paths, &options, |_, _| ()).unwrap_err().kind(), ErrorKind::Cancelled);
}
