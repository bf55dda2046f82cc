//! SSTables as a source: pieces, limits, and what is known before rows are read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{ErrorKind, Result};
use marquetry_tables::sstables::{MutationMapping, Sstables, SstablesOptions, TokenRange};
use marquetry_tables::{DiffOptions, Reading, ReadingOptions, Source, diff};

/// Small ones that Cassandra wrote, with the tests of the command.
fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../cli/tests/data/sstables/ks/t-0123456789abcdef0123456789abcdef")
}

fn open(path: &Path, piece_bytes: u64) -> Arc<dyn Source> {
    let mut options = SstablesOptions::default();
    options.piece_bytes = piece_bytes;
    Arc::new(Sstables::open(path, &options).unwrap())
}

fn rows(source: &Arc<dyn Source>, options: ReadingOptions) -> usize {
    let mut reading = Reading::new(Arc::clone(source), options).unwrap();
    let mut rows = 0;
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        rows += batch.rows;
    }
    rows
}

fn expect_same(a: &Arc<dyn Source>, b: &Arc<dyn Source>) {
    let found = diff([a, b], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(found.are_rows_equal() && found.schema.is_none(), "{found:?}");
}

#[test]
fn pieces_are_the_table() {
    let whole = open(&small(), u64::MAX);
    assert_eq!((whole.pieces().len(), rows(&whole, ReadingOptions::default())), (1, 16));
    let pieces = open(&small(), 1);
    assert!(pieces.pieces().len() > 1, "{:?}", pieces.pieces());
    expect_same(&whole, &pieces);
    // Large ones, if they are there: by every kind of index.
    let Some(folders) = marquetry_testing::sstables() else { return };
    for name in ["5.0.9-da-lz4/simple", "5.0.9-oa-zstd/simple", "3.11.10-md-lz4/mix", "4.1.10-nb-snappy/mix"]
    {
        let path = folders[0].join(name);
        let pieces = open(&path, 5_000);
        assert!(pieces.pieces().len() > 3, "{name}: {}", pieces.pieces().len());
        expect_same(&open(&path, u64::MAX), &pieces);
    }
}

/// A copy of a directory's files, in which some may be changed.
fn copy_of(path: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(path).unwrap() {
        let file = file.unwrap();
        // (Not its permissions: fixtures may be read only.)
        std::fs::write(folder.path().join(file.file_name()), std::fs::read(file.path()).unwrap()).unwrap();
    }
    folder
}

/// All rows, or the first error.
fn count(path: &Path, piece_bytes: u64, tokens: Option<TokenRange>) -> Result<usize> {
    let mut options = SstablesOptions::default();
    (options.piece_bytes, options.tokens) = (piece_bytes, tokens);
    let source: Arc<dyn Source> = Arc::new(Sstables::open(path, &options)?);
    let mut reading = Reading::new(source, ReadingOptions::default())?;
    let mut rows = 0;
    while let Some((_, batch)) = reading.next_batch()? {
        rows += batch.rows;
    }
    Ok(rows)
}

fn after(token: i64) -> Option<TokenRange> {
    Some(TokenRange { after: Some(token), end: None })
}

fn up_to(token: i64) -> Option<TokenRange> {
    Some(TokenRange { after: None, end: Some(token) })
}

/// Indexes have no checksums. One that has lost partitions is an error, not fewer rows, nor rows of other tokens.
#[test]
fn indexes_that_lost_partitions_are_errors() {
    let is_fault = |result: Result<usize>, component: &str| match result {
        Ok(rows) => panic!("{rows} rows without {component}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.to_string().contains(component), "{error}");
        }
    };
    // Of the small one's SSTables, each lost all.
    for name in ["oa-2-big-Index.db", "oa-3-big-Index.db", "nb-2-big-Index.db"] {
        let folder = copy_of(&small());
        std::fs::write(folder.path().join(name), b"").unwrap();
        is_fault(count(folder.path(), 1, None), "Index.db");
        is_fault(count(folder.path(), u64::MAX, after(i64::MIN)), "Index.db");
        assert_eq!(count(folder.path(), u64::MAX, None).unwrap(), 16);
    }
    let Some(folders) = marquetry_testing::sstables() else { return };
    for (name, component) in [
        ("5.0.9-oa-zstd/mix", "Index.db"),
        ("4.1.10-nb-snappy/mix", "Index.db"),
        ("5.0.9-da-lz4/mix", "Partitions.db"),
    ] {
        let path = folders[0].join(name);
        let right = [after(0), up_to(0)].map(|tokens| count(&path, u64::MAX, tokens).unwrap());
        let all = count(&path, u64::MAX, None).unwrap();
        assert_eq!(right[0] + right[1], all, "{name}");
        let folder = copy_of(&path);
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let indexes: Vec<PathBuf> =
            files.filter(|path| path.to_string_lossy().ends_with(component)).collect();
        assert!(!indexes.is_empty());
        for index in indexes {
            let bytes = std::fs::read(&index).unwrap();
            let (mut errors, mut same) = (0, 0);
            // The ends are those of entries, too.
            for end in (0..bytes.len()).step_by(1 + bytes.len() / 16) {
                std::fs::write(&index, &bytes[..end]).unwrap();
                for (tokens, right) in [(after(0), right[0]), (up_to(0), right[1])] {
                    match count(folder.path(), u64::MAX, tokens) {
                        Ok(rows) => {
                            assert_eq!(rows, right, "{name}, cut at {end}");
                            same += 1;
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                            errors += 1;
                        }
                    }
                }
                if end == 0 {
                    is_fault(count(folder.path(), 1_000, None), component);
                }
            }
            assert!(errors > 0, "{name}: {errors}, {same}");
            std::fs::write(&index, &bytes).unwrap();
        }
    }
}

/// Where nothing says which partition is the last, the last one of the index is read: it must end where the data do.
#[test]
fn an_index_that_was_cut_without_a_summary() {
    let Some(folders) = marquetry_testing::sstables() else { return };
    let folder = copy_of(&folders[0].join("4.1.10-nb-snappy/mix"));
    let file = |name: &str| folder.path().join(name);
    let text = std::fs::read_to_string(file("nb-2-big-TOC.txt")).unwrap();
    std::fs::write(file("nb-2-big-TOC.txt"), text.replace("Summary.db\n", "")).unwrap();
    std::fs::remove_file(file("nb-2-big-Summary.db")).unwrap();
    // Only this one, with all tokens of it before the range.
    let only = file("nb-2-big-Data.db");
    assert_eq!(count(&only, u64::MAX, after(i64::MAX - 1)).unwrap(), 0);
    let index = std::fs::read(file("nb-2-big-Index.db")).unwrap();
    let mut lost = 0;
    for end in 0..index.len() {
        std::fs::write(file("nb-2-big-Index.db"), &index[..end]).unwrap();
        let error = count(&only, u64::MAX, after(i64::MAX - 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        lost += usize::from(error.to_string().contains("where it says"));
    }
    assert!(lost > 0, "no cut at an entry's end was seen");
}

/// Data that are compressed, read as if they were not, are an error wherever a partition should begin.
#[test]
fn data_without_the_file_that_says_how_they_are_compressed() {
    let Some(folders) = marquetry_testing::sstables() else { return };
    let folder = copy_of(&folders[0].join("5.0.9-oa-zstd/mix"));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        if path.to_string_lossy().ends_with("TOC.txt") {
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, text.replace("CompressionInfo.db\n", "")).unwrap();
        }
    }
    for tokens in [after(0), up_to(0)] {
        let error = count(folder.path(), u64::MAX, tokens).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

/// What is in a hidden directory, whatever its name, is not the table.
#[test]
fn hidden_directories_do_not_count() {
    for hidden in [".i", ".trash", "._"] {
        let folder = copy_of(&small());
        let inside = folder.path().join(hidden);
        std::fs::create_dir(&inside).unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            if file.path().is_file() && file.file_name() != "schema.cql" {
                std::fs::rename(file.path(), inside.join(file.file_name())).unwrap();
            }
        }
        let error = count(folder.path(), u64::MAX, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{hidden}: {error}");
    }
}

#[test]
fn batches_are_as_small_as_they_should_be() {
    let source = open(&small(), u64::MAX);
    let mut options = ReadingOptions::default();
    options.piece.limit = Some(5);
    assert_eq!(rows(&source, options.clone()), 5);
    options.piece.batch_rows = Some(2);
    let mut reading = Reading::new(source, options).unwrap();
    let mut sizes = Vec::new();
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        sizes.push(batch.rows);
    }
    assert_eq!(sizes, [2, 2, 1]);
}

#[test]
fn what_is_known_before_rows_are_read() {
    let source = open(&small(), u64::MAX);
    let table = source.table();
    let key = table.key.as_ref().unwrap();
    assert_eq!((&*key.partition, key.clustering.len()), (&[0][..], 1));
    assert!(key.clustering[0].column == 1 && key.clustering[0].descending);
    assert_eq!(table.bytes, Some(302));
    let known = |key: &str| table.key_values.iter().any(|it| it.key == key);
    assert!(known("marquetry.mapping"));
    let mut options = SstablesOptions::default();
    options.mapping = MutationMapping::Logical;
    let logical = Sstables::open(&small(), &options).unwrap();
    let schema = &logical.table().schema;
    let names: Vec<&str> = schema.children(0).map(|node| &*schema.nodes()[node].name).collect();
    assert_eq!(names, ["pk", "ck", "st", "v", "tags"]);
}
