//! SSTables as a destination: what is copied there is there, complete, or nothing is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::ErrorKind;
use marquetry_scylla::cql::{KeySpec, TableName};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::sstables::{
    Compressor, MutationMapping, NewSstables, NewSstablesOptions, Sstables, SstablesOptions, WriteCompression,
};
use marquetry_tables::text::{TextFormat, TextOptions};
use marquetry_tables::{Cancel, CopyOptions, Destination, DiffOptions, PieceOptions, Source, copy, diff};

/// Small ones that Cassandra wrote, with the tests of the command.
fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../cli/tests/data/sstables/ks/t-0123456789abcdef0123456789abcdef")
}

fn open(path: &Path) -> Arc<dyn Source> {
    Arc::new(Sstables::open(path, &SstablesOptions::default()).unwrap())
}

fn copied(source: &Arc<dyn Source>, destination: &mut dyn Destination) -> marquetry_base::Result<u64> {
    copy(source, destination, &CopyOptions::default(), &mut |_| {}).map(|copied| copied.written.files)
}

fn expect_same(a: &Arc<dyn Source>, b: &Arc<dyn Source>) {
    let found = diff([a, b], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(found.are_rows_equal() && found.schema.is_none(), "{found:?}");
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// SSTables, the Parquet file of them, and SSTables again: the same rows each time.
fn check(path: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let source = open(path);
    let file = folder.path().join("full.parquet");
    copied(&source, &mut NewParquetFile::new(&file, ParquetOptions::default()).unwrap()).unwrap();
    let parquet: Arc<dyn Source> = Arc::new(Files::open([&file], &FilesOptions::default()).unwrap());
    let every = [
        ("me", Some(Compressor::Lz4)),
        ("nb", Some(Compressor::Deflate)),
        ("oa", None),
        ("da", Some(Compressor::Zstd)),
    ];
    for (version, compressor) in every {
        let mut options = NewSstablesOptions::new(version).unwrap();
        options.compression = compressor.map(WriteCompression::new);
        let to = folder.path().join(version);
        let files = copied(&parquet, &mut NewSstables::new(&to, options.clone()).unwrap()).unwrap();
        let all = names(&to);
        assert_eq!(files, 8, "{all:?}");
        assert!(all.iter().filter(|name| name.starts_with(&format!("{version}-1-"))).count() == 8, "{all:?}");
        expect_same(&source, &open(&to));
        // Straight from the SSTables, many of them.
        options.bytes_max = Some(1);
        options.split_at = vec![-1 << 62, 0, 1 << 62];
        let to = folder.path().join(format!("{version}-many"));
        let files = copied(&source, &mut NewSstables::new(&to, options).unwrap()).unwrap();
        assert!(files >= 16 && files.is_multiple_of(8), "{files}");
        expect_same(&source, &open(&to));
    }
    let hidden: Vec<String> = names(folder.path()).into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn rows_of_the_full_mapping_are_sstables_again() {
    check(&small());
    let Some(folders) = marquetry_testing::sstables() else { return };
    for name in ["4.1.10-nb-lz4/mix", "5.0.9-oa-zstd/cnt", "5.0.9-da-none/wide"] {
        check(&folders[0].join(name));
    }
}

#[test]
fn nothing_is_replaced_and_nothing_half_written_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("t");
    std::fs::create_dir(&to).unwrap();
    // An empty directory is taken.
    copied(&open(&small()), &mut NewSstables::new(&to, NewSstablesOptions::default()).unwrap()).unwrap();
    assert!(names(&to).contains(&"schema.cql".to_string()), "{:?}", names(&to));
    let error = NewSstables::new(&to, NewSstablesOptions::default()).err().unwrap();
    assert!(error.kind() == ErrorKind::Misuse && error.message().contains("a new directory"), "{error}");
    let mut begun = NewSstables::new(folder.path().join("other"), NewSstablesOptions::default()).unwrap();
    begun.begin(open(&small()).table()).unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    drop(begun);
    assert_eq!(names(folder.path()), ["t"]);
    // What could not take its name is known before, or left where it is.
    #[cfg(unix)]
    {
        let link = folder.path().join("link");
        for target in ["nowhere", "empty"] {
            std::os::unix::fs::symlink(folder.path().join(target), &link).unwrap();
            let error = NewSstables::new(&link, NewSstablesOptions::default()).err().unwrap();
            assert!(error.message().contains("a symbolic link"), "{error}");
            std::fs::remove_file(&link).unwrap();
            std::fs::create_dir_all(folder.path().join("empty")).unwrap();
        }
        std::fs::remove_dir(folder.path().join("empty")).unwrap();
    }
    let late = folder.path().join("late");
    let source = open(&small());
    let mut taken = NewSstables::new(&late, NewSstablesOptions::default()).unwrap();
    taken.begin(source.table()).unwrap();
    std::fs::create_dir_all(late.join("something")).unwrap();
    taken.finish().unwrap();
    let error = taken.commit().unwrap_err();
    drop(taken);
    let left = names(folder.path());
    assert!(left.len() == 3 && error.message().contains(&left[0]), "{error}");
    assert_eq!(
        NewSstables::new("s3://bucket/t", NewSstablesOptions::default()).err().unwrap().kind(),
        ErrorKind::Unsupported
    );
    assert_eq!(NewSstablesOptions::new("mc").unwrap_err().kind(), ErrorKind::Unsupported);
}

/// Ctrl-C while batches are on their way to the thread that writes them: that ends, and then nothing is left.
#[test]
fn cancelled_while_batches_wait_to_be_written() {
    const ROWS: usize = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let (text, big) = (folder.path().join("rows.csv"), folder.path().join("big"));
    let rows: String = (0..ROWS).map(|row| format!("{row},of row {row}\n")).collect();
    std::fs::write(&text, format!("id,name\n{rows}")).unwrap();
    let mut files = FilesOptions::default();
    files.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
    let rows: Arc<dyn Source> = Arc::new(Files::open([&text], &files).unwrap());
    let mut options = NewSstablesOptions::default();
    options.rows.table = Some(TableName::parse("ks.t").unwrap());
    options.rows.mapping.key = Some(KeySpec::parse("id").unwrap());
    copied(&rows, &mut NewSstables::new(&big, options).unwrap()).unwrap();
    std::fs::remove_file(&text).unwrap();
    let source = open(&big);
    let mut piece = PieceOptions::default();
    piece.batch_rows = Some(500);
    // After some batches; and at any moment, from another thread.
    for (after, delay_us) in
        [(1, None), (2, None), (7, None)].into_iter().chain((0..12).map(|it| (0, Some(it * 300))))
    {
        let cancel = Cancel::new();
        let mut to = NewSstables::new(folder.path().join("to"), NewSstablesOptions::default()).unwrap();
        to.cancelled_by(&cancel);
        to.set_threads(2);
        to.begin(source.table()).unwrap();
        let other = delay_us.map(|delay| {
            let cancel = cancel.clone();
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(delay));
                cancel.cancel();
            })
        });
        let (mut batches, mut written) = (source.open(0, &piece).unwrap(), 0);
        let mut failed = None;
        while let Some(batch) = batches.next().unwrap() {
            failed = to.write(batch).err();
            written += 1;
            if failed.is_some() {
                break;
            }
            if written == after {
                cancel.cancel();
            }
        }
        other.map(std::thread::JoinHandle::join).transpose().unwrap();
        assert!(after == 0 || written == after + 1, "{written} after {after}");
        // What failed once stays failed.
        let last = to.finish().unwrap_err();
        let error = failed.unwrap_or(last);
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        assert!(to.commit().is_err());
        drop(to);
        assert_eq!(names(folder.path()), ["big"]);
    }
    // Nobody writes on, as when another part of the copy fails: what is on its way ends before the directory is removed.
    piece.batch_rows = Some(5_000);
    let cancel = Cancel::new();
    let mut to = NewSstables::new(folder.path().join("to"), NewSstablesOptions::default()).unwrap();
    to.cancelled_by(&cancel);
    to.set_threads(2);
    to.begin(source.table()).unwrap();
    let mut batches = source.open(0, &piece).unwrap();
    for _ in 0..4 {
        to.write(batches.next().unwrap().unwrap()).unwrap();
    }
    cancel.cancel();
    drop(to);
    assert_eq!(names(folder.path()), ["big"]);
}

#[test]
fn rows_without_a_table_are_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = SstablesOptions::default();
    options.mapping = MutationMapping::Verbatim;
    let verbatim: Arc<dyn Source> = Arc::new(Sstables::open(&small(), &options).unwrap());
    let mut to = NewSstables::new(folder.path().join("t"), NewSstablesOptions::default()).unwrap();
    let error = copied(&verbatim, &mut to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(names(folder.path()).is_empty());
}
