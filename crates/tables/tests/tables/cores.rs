//! What is written by many threads: the same bytes, and the same errors, as by one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use marquetry_base::{Buffer, Codec, Error, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Levels, Values};
use marquetry_parquet::format::Compression;
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_parquet::write::{BloomOptions, PageVersion};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{
    DirectoryOptions, NewParquetDirectory, NewParquetFile, ParquetOptions, ParquetOutput,
};
use marquetry_tables::text::{Format, TextOutput, TextOutputOptions};
use marquetry_tables::{
    Batches, Cancel, ColumnPath, CopyOptions, Destination, Piece, PieceOptions, Reading, ReadingOptions,
    SortBy, Source, Table, copy,
};

const THREADS: [usize; 4] = [1, 2, 3, 8];
const BATCH_ROWS: usize = 8192;

/// Rows of all kinds: numbers with an order and without, few and many strings, nulls, lists. One piece, whose batches
/// are as large as those of files.
struct Mixed {
    table: Table,
    pieces: Vec<Piece>,
    batches: Vec<Batch>,
    /// The batch that cannot be read.
    fails_at: Option<usize>,
}

fn mixed(row: usize) -> u64 {
    (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

const MANY: usize = 4;
const FEW: usize = 3;

impl Mixed {
    fn new(batches: usize) -> Mixed {
        Mixed::with_long(batches, &[])
    }

    /// With a long string in these batches and columns.
    fn with_long(batches: usize, long: &[(usize, usize)]) -> Mixed {
        let leaf = |name: &str, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical));
        let text = || Some(LogicalType::String);
        let mut fields = vec![
            leaf("numbered", PhysicalType::Int64, None).required(),
            leaf("random", PhysicalType::Int64, None).required(),
            leaf("nulls", PhysicalType::Double, None),
            leaf("few", PhysicalType::ByteArray, text()).required(),
            leaf("many", PhysicalType::ByteArray, text()).required(),
            leaf("part", PhysicalType::Int32, None).required(),
        ];
        let element = leaf("element", PhysicalType::Int32, None);
        fields.push(FieldDef::new("list", FieldType::List(Box::new(element))));
        let table = Table::new("mixed", Arc::new(Schema::of_fields(&fields).unwrap()));
        let batches = (0..batches).map(|number| Mixed::batch(number, long)).collect();
        Mixed { table, pieces: vec![Piece::of("a piece")], batches, fails_at: None }
    }

    /// Numbers and strings that compress well, of so many batches. From batch `dense_from` on they do so less.
    fn compressible(batches: usize, dense_from: usize) -> Mixed {
        let leaf = |name: &str, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical));
        let fields = [
            leaf("when", PhysicalType::Int64, None).required(),
            leaf("price", PhysicalType::Double, None).required(),
            leaf("name", PhysicalType::ByteArray, Some(LogicalType::String)).required(),
            leaf("note", PhysicalType::ByteArray, Some(LogicalType::String)).required(),
        ];
        let batch = |number: usize| {
            let rows = number * BATCH_ROWS..(number + 1) * BATCH_ROWS;
            let more =
                |row: usize| if number < dense_from { String::new() } else { format!(" {:x}", mixed(row)) };
            let names: Vec<String> =
                rows.clone().map(|row| format!("a person named {}", row % 30_000)).collect();
            let notes: Vec<String> = rows
                .clone()
                .map(|row| format!("ordered on day {} by {}{}", row / 900, row % 17, more(row)))
                .collect();
            let values: [Values; 4] = [
                rows.clone()
                    .map(|row| i64::try_from(row * 1000 + row % 7).unwrap())
                    .collect::<Vec<i64>>()
                    .into(),
                rows.clone().map(|row| (row % 5000) as f64 / 4.0).collect::<Vec<f64>>().into(),
                names.iter().map(String::as_str).collect(),
                notes.iter().map(String::as_str).collect(),
            ];
            let columns = values.into_iter().enumerate().map(|(leaf, values)| ColumnBatch {
                leaf,
                rows: BATCH_ROWS,
                nulls: 0,
                validity: None,
                values,
                layout: Layout::Spaced,
                levels: None,
                provisional: false,
            });
            Batch { row_group: 0, first_row: rows.start as u64, rows: BATCH_ROWS, columns: columns.collect() }
        };
        let table = Table::new("compressible", Arc::new(Schema::of_fields(&fields).unwrap()));
        let batches = (0..batches).map(batch).collect();
        Mixed { table, pieces: vec![Piece::of("a piece")], batches, fails_at: None }
    }

    fn batch(number: usize, long: &[(usize, usize)]) -> Batch {
        let rows = number * BATCH_ROWS..(number + 1) * BATCH_ROWS;
        let long = |column: usize| long.contains(&(number, column));
        let numbers =
            |of: &dyn Fn(usize) -> i64| -> Values { rows.clone().map(of).collect::<Vec<i64>>().into() };
        let strings = |of: &dyn Fn(usize) -> String, is_long: bool| -> Values {
            let mut all: Vec<String> = rows.clone().map(of).collect();
            if is_long {
                all[7] = "x".repeat(5_000);
            }
            all.iter().map(String::as_str).collect()
        };
        let column = |leaf, values: Values| ColumnBatch {
            leaf,
            rows: BATCH_ROWS,
            nulls: 0,
            validity: None,
            values,
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        };
        let mut columns = vec![
            column(0, numbers(&|row| i64::try_from(row).unwrap())),
            column(1, numbers(&|row| mixed(row).cast_signed())),
            column(2, rows.clone().map(|row| (mixed(row) % 1000) as f64).collect::<Vec<f64>>().into()),
            column(3, strings(&|row| format!("a value of few: {}", mixed(row) % 50), long(FEW))),
            column(4, strings(&|row| format!("{:x} and {row}", mixed(row)), long(MANY))),
            column(
                5,
                rows.clone().map(|row| i32::try_from(row / 20_000).unwrap()).collect::<Vec<i32>>().into(),
            ),
        ];
        let is_null = |row: usize| mixed(row + 1).is_multiple_of(5);
        columns[2].validity = Some(rows.clone().map(|row| !is_null(row)).collect());
        columns[2].nulls = rows.clone().filter(|row| is_null(*row)).count();
        // Lists of none to four elements; a fifth of the lists are null.
        let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows.clone() {
            let length = (mixed(row) % 5) as usize;
            for at in 0..length.max(1) {
                repetition.push(u8::from(at > 0));
                definition.push(if length == 0 { u8::from(!is_null(row)) } else { 3 });
            }
            values.extend((0..length).map(|at| i32::try_from(row % 1000 + at).unwrap()));
        }
        let nulls = definition.len() - values.len();
        let repetition: Buffer<u8> = repetition.into();
        columns.push(ColumnBatch {
            nulls,
            layout: Layout::Dense,
            levels: Some(Levels { definition: definition.into(), repetition: Some(repetition) }),
            ..column(6, values.into())
        });
        let first_row = (number * BATCH_ROWS) as u64;
        Batch { row_group: 0, first_row, rows: BATCH_ROWS, columns }
    }
}

impl Source for Mixed {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        let batches = self.batches.clone().into_iter();
        Ok(Box::new(Made { batches, fails_at: self.fails_at, number: 0 }))
    }
}

struct Made {
    batches: std::vec::IntoIter<Batch>,
    fails_at: Option<usize>,
    number: usize,
}

impl Batches for Made {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.fails_at == Some(self.number) {
            return Err(Error::corrupt("a row that cannot be read"));
        }
        self.number += 1;
        Ok(self.batches.next())
    }
}

fn of_threads(threads: usize) -> CopyOptions {
    let mut options = CopyOptions::default();
    options.threads = Some(threads);
    options
}

/// Writes to memory by as many threads.
fn written(source: &Arc<dyn Source>, write: &ParquetOptions, copying: &CopyOptions) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut output = ParquetOutput::new(&mut bytes, write.clone())?;
    copy(source, &mut output, copying, &mut |_| {})?;
    drop(output);
    Ok(bytes)
}

/// The options that matter to what is decided between columns: where row groups end, and what is moved out of memory.
fn ways() -> Vec<(String, ParquetOptions)> {
    let codecs = [Codec::Snappy, Codec::Gzip, Codec::Zstd, Codec::Lz4Raw, Codec::Brotli];
    let mut ways: Vec<(String, ParquetOptions)> = codecs
        .into_iter()
        .enumerate()
        .map(|(number, codec)| {
            let mut options = ParquetOptions::default();
            options.write.column.compression = Compression::Codec(codec);
            options.write.row_group_rows = [1 << 20, 100_000, 50_001][number % 3];
            options.write.page_version = if number % 2 == 0 { PageVersion::V1 } else { PageVersion::V2 };
            if number == 1 {
                options.bloom = ["random", "many"]
                    .map(|name| (ColumnPath::parse(name).unwrap(), BloomOptions::default()))
                    .into();
            }
            (format!("{codec:?}"), options)
        })
        .collect();
    for (group_bytes, held_bytes) in [(1_500_000, 64 << 20), (100 << 20, 1 << 20), (6 << 20, 3 << 20)] {
        let mut options = ParquetOptions::default();
        options.write.row_group_bytes = group_bytes;
        options.write.held_bytes_max = held_bytes;
        ways.push((format!("row groups of {group_bytes} bytes, {held_bytes} held"), options));
    }
    let mut plain = ParquetOptions::default();
    plain.write.column.compression = Compression::Uncompressed;
    plain.write.column.dictionary = false;
    (plain.write.page_bytes, plain.write.page_rows) = (20_000, 3_000);
    ways.push(("small pages".to_owned(), plain));
    ways
}

#[test]
fn files_do_not_depend_on_the_number_of_threads() {
    let source: Arc<dyn Source> = Arc::new(Mixed::new(20));
    for (name, options) in ways() {
        let [one, others @ ..] =
            THREADS.map(|threads| written(&source, &options, &of_threads(threads)).unwrap());
        assert!(one.len() > 1_000_000, "{name}");
        for (other, threads) in others.iter().zip(&THREADS[1..]) {
            assert!(one == *other, "{name}: {threads} threads write another file");
        }
    }
}

/// All files below a directory, and their bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            all.extend(files(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            all.push((name, std::fs::read(path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn directories_do_not_depend_on_the_number_of_threads() {
    let source: Arc<dyn Source> = Arc::new(Mixed::new(12));
    let mut by_part = DirectoryOptions::default();
    by_part.partition_by = ColumnPath::parse_list("part").unwrap();
    let mut by_rows = DirectoryOptions::default();
    by_rows.file_rows = std::num::NonZeroU64::new(30_001);
    let mut by_bytes = DirectoryOptions::default();
    by_bytes.file_bytes = std::num::NonZeroU64::new(1 << 20);
    for (options, least) in [(by_part, 5), (by_rows, 4), (by_bytes, 3)] {
        let made = THREADS.map(|threads| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("all");
            let mut directory = NewParquetDirectory::new(&path, options.clone()).unwrap();
            copy(&source, &mut directory, &of_threads(threads), &mut |_| {}).unwrap();
            files(&path)
        });
        assert!(made[0].len() >= least, "{}", made[0].len());
        assert!(made.iter().all(|other| *other == made[0]), "{options:?}");
    }
}

/// A directory's rows are those of the table, in its order, whether its file is open from the first row on or its rows
/// are sorted; and the files are the same, byte for byte, whatever the number of threads.
#[test]
fn partitions_do_not_depend_on_the_number_of_threads() {
    // (The columns, how they are written, how many directories there are.)
    let source: Arc<dyn Source> = Arc::new(Mixed::new(12));
    let by = |columns: &str| {
        let mut options = DirectoryOptions::default();
        options.partition_by = ColumnPath::parse_list(columns).unwrap();
        options
    };
    let (mut by_rows, mut by_bytes) = (by("few"), by("few"));
    by_rows.file_rows = std::num::NonZeroU64::new(901);
    by_bytes.file_bytes = std::num::NonZeroU64::new(20_000);
    let mut held = by("part");
    held.parquet.write.held_bytes_max = 1 << 20;
    for (options, sort, limit, directories) in [
        (by("part"), "", None, 5),
        (by("few"), "", None, 50),
        (by("few"), "random", None, 50),
        (by("part,numbered"), "", Some(400), 400),
        (by_rows, "", None, 50),
        (by_bytes, "", None, 50),
        (held, "", None, 5),
    ] {
        let made = THREADS.map(|threads| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("all");
            let mut directory = NewParquetDirectory::new(&path, options.clone()).unwrap();
            let mut copying = of_threads(threads);
            (copying.verify, copying.limit, copying.memory_bytes) = (true, limit, 4 << 20);
            if !sort.is_empty() {
                let by = SortBy::parse_list(sort).unwrap();
                copying.sort = SortBy::resolve(&by, &source.table().schema).unwrap();
            }
            let copied = copy(&source, &mut directory, &copying, &mut |_| {}).unwrap();
            let rows = limit.unwrap_or(12 * BATCH_ROWS as u64);
            assert_eq!((copied.rows, copied.verified, copied.written.rows), (rows, rows, rows));
            let mut names: Vec<String> = files(&path)
                .into_iter()
                .map(|(name, _)| name.rsplit_once('/').unwrap().0.to_owned())
                .collect();
            names.dedup();
            assert_eq!(names.len(), directories, "{options:?}");
            if sort.is_empty() && directories < 400 {
                check_order(&path, "numbered");
            }
            files(&path)
        });
        assert!(made.iter().all(|other| *other == made[0]), "{options:?}");
    }
}

/// Checks that a column's numbers rise from row to row of each directory.
fn check_order(folder: &Path, column: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.join("part-00000.parquet").is_file() {
            let mut files: Vec<_> = std::fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()).collect();
            files.sort();
            let all = Files::open(&files, &FilesOptions::default()).unwrap();
            let leaf = ColumnPath::parse(column).unwrap();
            let leaf = leaf.flat_leaf(&all.table().schema).unwrap();
            let mut reading = Reading::new(Arc::new(all), ReadingOptions::default()).unwrap();
            let mut last = i64::MIN;
            while let Some((_, batch)) = reading.next_batch().unwrap() {
                let Values::Int64(values) = &batch.columns[leaf].values else { panic!("other numbers") };
                for value in values.iter() {
                    assert!(*value > last, "{value} after {last} in {files:?}");
                    last = *value;
                }
            }
        } else if path.is_dir() {
            check_order(&path, column);
        }
    }
}

/// Of values that are too long for the file's readers, in several directories, the first one that is written is the
/// error; it names the table.
#[test]
fn the_first_error_of_many_files_wins() {
    let mut options = DirectoryOptions::default();
    options.parquet.write.limits.value_bytes = 4_000;
    for (by, long, fails_at) in [
        ("few", vec![(3, MANY)], None),
        ("few", vec![(30, MANY), (31, MANY), (2, MANY)], None),
        ("part", vec![(4, MANY), (3, MANY)], Some(5)),
    ] {
        options.partition_by = ColumnPath::parse_list(by).unwrap();
        let source = Arc::new(Mixed { fails_at, ..Mixed::with_long(40, &long) }) as Arc<dyn Source>;
        let errors = THREADS.map(|threads| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("all");
            let mut directory = NewParquetDirectory::new(&path, options.clone()).unwrap();
            let error = copy(&source, &mut directory, &of_threads(threads), &mut |_| {}).unwrap_err();
            drop(directory);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
            error
        });
        assert_eq!(errors[0].kind(), ErrorKind::LimitExceeded, "{}", errors[0]);
        assert_eq!(errors[0].place().column.as_deref(), Some("many"));
        for error in &errors {
            // (Their directories differ.)
            let bare = |error: &Error| error.clone().replaced(|place| place.object = None).to_string();
            assert_eq!(bare(error), bare(&errors[0]));
        }
    }
}

/// Files have about the bytes that were asked for, though what is open of them is not compressed yet; the first one may
/// be off by a half.
#[test]
fn files_have_the_bytes_that_were_asked_for() {
    let half = 20;
    for (codec, asked, dense_from) in [
        (Codec::Snappy, 50_000, usize::MAX),
        (Codec::Snappy, 90_000, usize::MAX),
        (Codec::Zstd, 30_000, usize::MAX),
        (Codec::Snappy, 90_000, half),
    ] {
        let source: Arc<dyn Source> = Arc::new(Mixed::compressible(2 * half, dense_from));
        let mut options = DirectoryOptions::default();
        options.parquet.write.column.compression = Compression::Codec(codec);
        options.file_bytes = std::num::NonZeroU64::new(asked);
        let made = THREADS.map(|threads| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("all");
            let mut directory = NewParquetDirectory::new(&path, options.clone()).unwrap();
            copy(&source, &mut directory, &of_threads(threads), &mut |_| {}).unwrap();
            files(&path)
        });
        let bytes: Vec<u64> = made[0].iter().map(|(_, bytes)| bytes.len() as u64).collect();
        let share = |number: usize| bytes[number] as f64 / asked as f64;
        assert!(bytes.len() > 3, "{bytes:?}");
        assert!((0.5..=1.5).contains(&share(0)), "{asked}: {bytes:?}");
        let off = (1..bytes.len() - 1).filter(|number| !(0.7..=1.1).contains(&share(*number))).count();
        // Rows of another kind are a surprise to the file in which they begin, and that is a bad example for the next one.
        assert!(off == 0 || off <= 2 && dense_from == half, "{asked}: {bytes:?}");
        assert!((0..bytes.len()).all(|number| share(number) <= 5.0), "{asked}: {bytes:?}");
        assert!(made.iter().all(|other| *other == made[0]), "{asked}");
    }
}

#[test]
fn what_is_sorted_does_not_depend_on_the_number_of_threads() {
    let source: Arc<dyn Source> = Arc::new(Mixed::new(12));
    for (by, memory) in [("few, random desc", 4 << 20), ("few", 1 << 20), ("random", 1 << 30)] {
        let sort = SortBy::resolve(&SortBy::parse_list(by).unwrap(), &source.table().schema).unwrap();
        let made = THREADS.map(|threads| {
            let mut options = of_threads(threads);
            (options.sort, options.memory_bytes) = (sort.clone(), memory);
            let mut bytes = Vec::new();
            let mut output = ParquetOutput::new(&mut bytes, ParquetOptions::default()).unwrap();
            let copied = copy(&source, &mut output, &options, &mut |_| {}).unwrap();
            drop(output);
            (bytes, copied.sorted_by_way_of)
        });
        assert_eq!(made[0].1 == Some(0), memory == 1 << 30, "{by}");
        assert!(made.iter().all(|other| *other == made[0]), "{by}: {:?}", made.map(|made| made.1));
    }
}

/// Two values are too long for the file's readers: the first one by row, and of those in one batch the one of the first
/// column, is the error, whatever else is wrong with later rows, or with the source.
#[test]
fn the_first_error_wins() {
    let mut options = ParquetOptions::default();
    options.write.limits.value_bytes = 4_000;
    for (long, fails_at, column, row) in [
        (vec![(3, MANY)], None, Some("many"), Some(3 * BATCH_ROWS + 7)),
        (vec![(3, MANY), (3, FEW), (2, MANY)], None, Some("many"), Some(2 * BATCH_ROWS + 7)),
        (vec![(4, MANY), (4, FEW)], Some(5), Some("few"), Some(4 * BATCH_ROWS + 7)),
        (vec![(6, FEW)], None, Some("few"), Some(6 * BATCH_ROWS + 7)),
        (vec![(5, FEW)], Some(5), None, None),
    ] {
        let source = Arc::new(Mixed { fails_at, ..Mixed::with_long(7, &long) }) as Arc<dyn Source>;
        let errors = THREADS.map(|threads| written(&source, &options, &of_threads(threads)).unwrap_err());
        let place = errors[0].place();
        assert_eq!(place.column.as_deref(), column, "{}", errors[0]);
        assert_eq!(place.row, row.map(|row| row as u64), "{}", errors[0]);
        assert_eq!(errors[0].kind() == ErrorKind::Corrupt, column.is_none());
        for error in &errors {
            assert_eq!(error.to_string(), errors[0].to_string());
        }
    }
}

/// Whatever the threads are at: a copy that is cancelled, or dropped, ends, and leaves nothing.
#[test]
fn many_threads_end_with_the_copy() {
    let source = Mixed::new(1);
    let batch = source.batches[0].clone();
    let folder = tempfile::tempdir().unwrap();
    for batches in [0, 1, 2, 9, 20] {
        for is_cancelled in [false, true] {
            let cancel = Cancel::new();
            let path = folder.path().join("a.parquet");
            let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
            file.cancelled_by(&cancel);
            file.set_threads(4);
            file.begin(&source.table).unwrap();
            (0..batches).for_each(|_| file.write(batch.clone()).unwrap());
            if is_cancelled {
                cancel.cancel();
                let errors = [file.write(batch.clone()), file.write(batch.clone()), file.finish().map(drop)];
                assert!(errors.iter().all(|it| it.as_ref().unwrap_err().kind() == ErrorKind::Cancelled));
            }
            drop(file);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}

/// The same in the middle of a sort whose runs a thread writes.
#[test]
fn a_sort_by_many_threads_is_cancelled() {
    let source: Arc<dyn Source> = Arc::new(Mixed::new(12));
    let sort = SortBy::resolve(&SortBy::parse_list("random").unwrap(), &source.table().schema).unwrap();
    for stop_at in [1, 5, 12, 20] {
        let mut options = of_threads(3);
        (options.sort, options.memory_bytes) = (sort.clone(), 2 << 20);
        let cancel = options.cancel.clone();
        let reports = AtomicUsize::new(0);
        let mut bytes = Vec::new();
        let mut output = ParquetOutput::new(&mut bytes, ParquetOptions::default()).unwrap();
        let copied = copy(&source, &mut output, &options, &mut |_| {
            if reports.fetch_add(1, Ordering::Relaxed) == stop_at {
                cancel.cancel();
            }
        });
        assert_eq!(copied.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

/// Where there is too little to do for other threads, the caller's does the work that is handed out.
#[test]
fn a_few_rows() {
    let source = Mixed::new(1);
    let batch = source.batches[0].clone();
    let write = |threads: usize| {
        let mut bytes = Vec::new();
        let mut output = ParquetOutput::new(&mut bytes, ParquetOptions::default()).unwrap();
        output.set_threads(threads);
        output.begin(&source.table).unwrap();
        for start in [0, 10, 20] {
            output.write(batch.slice(start..start + 10)).unwrap();
        }
        assert_eq!(output.finish().unwrap().rows, 30);
        drop(output);
        bytes
    };
    assert_eq!(write(1), write(8));
}

/// The lines, and after an error those of all rows before the faulty one.
#[test]
fn text_does_not_depend_on_the_number_of_threads() {
    for format in [Format::JsonLines, Format::Csv] {
        for (long, fails_at, row) in [
            (vec![], None, None),
            (vec![(3, FEW), (5, MANY)], None, Some(3 * BATCH_ROWS + 7)),
            (vec![(4, MANY)], Some(5), Some(4 * BATCH_ROWS + 7)),
            (vec![(5, MANY)], Some(5), None),
        ] {
            let source = Arc::new(Mixed { fails_at, ..Mixed::with_long(7, &long) }) as Arc<dyn Source>;
            let printed = THREADS.map(|threads| {
                let mut options = TextOutputOptions::default();
                options.nested_as_json = true;
                // A reader may count a little more than the row, so the writer does, too.
                options.limits.value_bytes = 8_500;
                let mut text = Vec::new();
                let mut output = TextOutput::new(&mut text, format, options);
                let copied = copy(&source, &mut output, &of_threads(threads), &mut |_| {});
                drop(output);
                (copied.map_err(|error| (error.kind(), error.place().row, error.to_string())), text)
            });
            let (first, text) = &printed[0];
            assert_eq!(first.is_err(), !long.is_empty() || fails_at.is_some());
            let found = first.as_ref().err().map(|(kind, row, _)| (*kind == ErrorKind::LimitExceeded, *row));
            assert_eq!(found.unwrap_or_default(), (row.is_some(), row.map(|row| row as u64)), "{first:?}");
            let rows = row.unwrap_or(fails_at.unwrap_or(7) * BATCH_ROWS);
            let lines = rows + usize::from(format == Format::Csv);
            assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), lines, "{format:?}");
            for (threads, other) in THREADS.iter().zip(&printed) {
                assert_eq!(&other.0, first, "{format:?} by {threads}");
                assert!(
                    &other.1 == text,
                    "{format:?} by {threads}: {} and {} bytes",
                    other.1.len(),
                    text.len()
                );
            }
        }
    }
}
