//! Rows on their way: from sources made for this, and from files, to files and directories of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use marquetry_base::{Bytes, Detail, Error, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{
    DirectoryOptions, NewParquetDirectory, NewParquetFile, ParquetOptions, ParquetOutput,
};
use marquetry_tables::text::{TextFormat, TextOptions};
use marquetry_tables::{
    Batches, Cancel, ColumnPath, Copied, CopyOptions, Destination, Piece, PieceOptions, Reading,
    ReadingOptions, SortBy, Source, Table, Wants, Written, copy, project,
};

/// Rows `(n, n % 3, "text n")`, in pieces.
struct Generated {
    table: Table,
    pieces: Vec<Piece>,
    rows_of_piece: usize,
    /// The row that cannot be read.
    fails_at: Option<usize>,
    opened: AtomicUsize,
}

impl Generated {
    fn new(pieces: usize, rows_of_piece: usize) -> Generated {
        let leaf = |name: &str, physical, logical| {
            FieldDef::new(name, FieldType::Leaf(physical, logical)).required()
        };
        let fields = [
            leaf("n", PhysicalType::Int32, None),
            leaf("third", PhysicalType::Int64, None),
            leaf("text", PhysicalType::ByteArray, Some(LogicalType::String)),
        ];
        let mut table = Table::new("generated", Arc::new(Schema::of_fields(&fields).unwrap()));
        table.rows = Some((pieces * rows_of_piece) as u64);
        let piece = |number| Piece::of(format!("piece {number}"));
        let pieces = (0..pieces).map(piece).collect();
        Generated { table, pieces, rows_of_piece, fails_at: None, opened: AtomicUsize::new(0) }
    }
}

impl Source for Generated {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let first = piece * self.rows_of_piece;
        let rows = self.rows_of_piece.min(usize::try_from(options.limit.unwrap_or(u64::MAX)).unwrap());
        Ok(Box::new(Numbers { next: first, first, end: first + rows, fails_at: self.fails_at }))
    }
}

struct Numbers {
    next: usize,
    first: usize,
    end: usize,
    fails_at: Option<usize>,
}

impl Batches for Numbers {
    fn next(&mut self) -> Result<Option<Batch>> {
        let rows = self.next..self.end.min(self.next + 100);
        if self.fails_at.is_some_and(|at| rows.contains(&at)) {
            return Err(Error::corrupt("a row that cannot be read"));
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let first_row = (self.next - self.first) as u64;
        self.next = rows.end;
        let texts: Vec<String> = rows.clone().map(|n| format!("text {n}")).collect();
        let bytes = Bytes::from(texts.concat());
        let values = [
            rows.clone().map(|n| i32::try_from(n).unwrap()).collect::<Vec<i32>>().into(),
            rows.clone().map(|n| i64::try_from(n % 3).unwrap()).collect::<Vec<i64>>().into(),
            Values::ByteArray(ByteArrays::from_lengths(bytes, texts.iter().map(String::len)).unwrap()),
        ];
        let columns = values.into_iter().enumerate().map(|(leaf, values)| ColumnBatch {
            leaf,
            rows: rows.len(),
            nulls: 0,
            validity: None,
            values,
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        });
        Ok(Some(Batch { row_group: 0, first_row, rows: rows.len(), columns: columns.collect() }))
    }
}

/// Takes the first column.
#[derive(Default)]
struct Taken {
    numbers: Vec<i32>,
    refuses: Option<Error>,
    is_committed: bool,
}

impl Destination for Taken {
    fn name(&self) -> &str {
        "taken"
    }

    fn begin(&mut self, _: &Table) -> Result<Wants> {
        Ok(Wants::default())
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        if let Some(error) = &self.refuses {
            return Err(error.clone());
        }
        let Values::Int32(numbers) = &batch.columns[0].values else { panic!() };
        self.numbers.extend_from_slice(numbers);
        Ok(())
    }

    fn finish(&mut self) -> Result<Written> {
        Ok(Written::default())
    }

    fn commit(&mut self) -> Result<()> {
        self.is_committed = true;
        Ok(())
    }
}

fn options(set: impl FnOnce(&mut CopyOptions)) -> CopyOptions {
    let mut options = CopyOptions::default();
    set(&mut options);
    options
}

fn read(source: Arc<dyn Source>) -> Vec<i32> {
    let mut taken = Taken::default();
    copy(&source, &mut taken, &CopyOptions::default(), &mut |_| {}).unwrap();
    taken.numbers
}

fn open(path: &Path) -> Files {
    Files::open([path], &FilesOptions::default()).unwrap()
}

#[test]
fn rows_come_in_the_order_of_the_source_however_many_read() {
    for threads in [0, 1, 2, 7] {
        let source: Arc<dyn Source> = Arc::new(Generated::new(40, 333));
        let mut taken = Taken::default();
        let copied =
            copy(&source, &mut taken, &options(|it| it.threads = Some(threads)), &mut |_| {}).unwrap();
        assert_eq!(copied.rows, 40 * 333);
        assert!(taken.is_committed && taken.numbers.iter().copied().eq(0..40 * 333), "{threads} threads");
    }
}

#[test]
fn a_limit_is_that_of_all_pieces() {
    for limit in [0, 1, 332, 333, 334, 9_000, 13_320, 20_000] {
        let source: Arc<dyn Source> = Arc::new(Generated::new(40, 333));
        let mut taken = Taken::default();
        copy(&source, &mut taken, &options(|it| it.limit = Some(limit)), &mut |_| {}).unwrap();
        assert!(taken.numbers.iter().copied().eq(0..limit.min(40 * 333) as i32), "{limit}");
    }
    let few = Arc::new(Generated::new(40, 333));
    let source: Arc<dyn Source> = few.clone();
    copy(&source, &mut Taken::default(), &options(|it| it.limit = Some(10)), &mut |_| {}).unwrap();
    assert_eq!(few.opened.load(Ordering::Relaxed), 1);
}

#[test]
fn an_error_names_its_object_and_nothing_is_committed() {
    for threads in [0, 2] {
        let mut source = Generated::new(10, 1_000);
        source.fails_at = Some(7_300);
        let source: Arc<dyn Source> = Arc::new(source);
        let mut taken = Taken::default();
        let error =
            copy(&source, &mut taken, &options(|it| it.threads = Some(threads)), &mut |_| {}).unwrap_err();
        assert_eq!((error.kind(), error.place().object.as_deref()), (ErrorKind::Corrupt, Some("piece 7")));
        assert!(!taken.is_committed);
        // What came before it was handed on.
        assert!(taken.numbers.iter().copied().eq(0..7_300));
    }
    let source: Arc<dyn Source> = Arc::new(Generated::new(3, 10));
    for (refusal, object) in [(Error::conversion("no text"), "piece 0"), (Error::io("full"), "taken")] {
        let mut taken = Taken { refuses: Some(refusal), ..Taken::default() };
        let error = copy(&source, &mut taken, &CopyOptions::default(), &mut |_| {}).unwrap_err();
        assert_eq!(error.place().object.as_deref(), Some(object));
    }
}

#[test]
fn a_copy_is_cancelled() {
    let source: Arc<dyn Source> = Arc::new(Generated::new(100, 1_000));
    let (mut taken, cancel) = (Taken::default(), Cancel::new());
    let wish = cancel.clone();
    let options = options(|it| it.cancel = cancel);
    let error = copy(&source, &mut taken, &options, &mut |_| wish.cancel()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(!taken.is_committed && taken.numbers.len() < 100_000);
}

/// A destination whose rows count later than they are taken, as those of a server do, and which waits for others.
#[derive(Default)]
struct Acknowledged {
    cancel: Cancel,
    rows: u64,
    is_settled: bool,
}

impl Destination for Acknowledged {
    fn name(&self) -> &str {
        "acknowledged"
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    fn begin(&mut self, _: &Table) -> Result<Wants> {
        Ok(Wants::default())
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.rows += batch.rows as u64 / 2;
        if self.rows <= 1_000 {
            return Ok(());
        }
        // Waits for a server that does not answer.
        loop {
            self.cancel.check()?;
        }
    }

    fn finish(&mut self) -> Result<Written> {
        Ok(self.progress().unwrap())
    }

    fn settle(&mut self) {
        self.is_settled = true;
    }

    fn progress(&self) -> Option<Written> {
        let mut written = Written::default();
        (written.rows, written.retries) = (self.rows, 3);
        Some(written)
    }
}

#[test]
fn a_destination_that_waits_is_cancelled_and_settled() {
    let source: Arc<dyn Source> = Arc::new(Generated::new(100, 1_000));
    let mut slow = Acknowledged::default();
    let options = CopyOptions::default();
    let cancel = options.cancel.clone();
    let mut seen = Vec::new();
    let error = copy(&source, &mut slow, &options, &mut |copied| {
        seen.push((copied.rows, copied.written.rows, copied.written.retries, copied.rows_total));
        if copied.written.rows == 1_000 {
            let cancel = cancel.clone();
            std::thread::spawn(move || cancel.cancel());
        }
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(slow.is_settled);
    assert_eq!(
        (seen[0], seen.last()),
        ((100, 50, 3, Some(100_000)), Some(&(2_000, 1_000, 3, Some(100_000))))
    );

    let mut slow = Acknowledged::default();
    let few: Arc<dyn Source> = Arc::new(Generated::new(1, 1_000));
    let copied = copy(&few, &mut slow, &CopyOptions::default(), &mut |_| {}).unwrap();
    assert_eq!((copied.rows, copied.written.rows, slow.is_settled), (1_000, 500, false));
}

/// A batch of large values takes long to compress: files do not wait for its end.
#[test]
fn a_file_is_cancelled_within_a_batch() {
    let table = Table::new("bytes", Generated::new(1, 1).table.schema);
    let text = b"some words that are compressed".repeat(100_000);
    let lengths = [text.len(), text.len()];
    let batch = Batch::of_values([
        vec![1_i32, 2].into(),
        vec![1_i64, 2].into(),
        Values::ByteArray(ByteArrays::from_lengths(text.repeat(2).into(), lengths).unwrap()),
    ]);
    let batch = batch.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (file, folder) = (folder.path().join("a.parquet"), folder.path().join("b"));
    let destinations: [Box<dyn Destination>; 3] = [
        Box::new(NewParquetFile::new(file, ParquetOptions::default()).unwrap()),
        Box::new(NewParquetDirectory::new(folder, DirectoryOptions::default()).unwrap()),
        Box::new(ParquetOutput::new(Vec::new(), ParquetOptions::default()).unwrap()),
    ];
    for mut destination in destinations {
        let cancel = Cancel::new();
        destination.cancelled_by(&cancel);
        destination.begin(&table).unwrap();
        destination.write(batch.clone()).unwrap();
        cancel.cancel();
        let error = destination.write(batch.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{}", destination.name());
    }
}

/// Rows of a destination that keeps no count are written when it has taken them: sorted ones after all were read.
#[test]
fn rows_are_reported_as_they_are_read_written_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let source: Arc<dyn Source> = Arc::new(Generated::new(3, 1_000));
    let by = SortBy::resolve(&SortBy::parse_list("n desc").unwrap(), &source.table().schema).unwrap();
    let mut file = NewParquetFile::new(folder.path().join("a.parquet"), ParquetOptions::default()).unwrap();
    let options = options(|it| {
        it.sort = by;
        it.verify = true;
    });
    let mut seen = Vec::new();
    let all = copy(&source, &mut file, &options, &mut |copied| seen.push(*copied)).unwrap();
    let count = |it: &Copied| (it.rows, it.written.rows, it.verified);
    assert_eq!(count(&seen[0]), (100, 0, 0));
    assert!(seen.iter().any(|it| count(it) == (3_000, 0, 0)));
    assert!(seen.iter().any(
        |it| it.rows == 3_000 && (1..3_000).contains(&it.written.rows) || count(it) == (3_000, 3_000, 0)
    ));
    assert_eq!((count(&all), seen.last()), ((3_000, 3_000, 3_000), Some(&all)));
    assert!(seen.is_sorted_by_key(count));
}

#[test]
fn columns_of_a_source_that_cannot_leave_any_out() {
    let source: Arc<dyn Source> = Arc::new(Generated::new(2, 150));
    let columns = ColumnPath::parse_list("text, n").unwrap();
    let projected = project(&source, &columns).unwrap();
    let schema = &projected.table().schema;
    let names: Vec<String> = schema.leaves().iter().map(|leaf| schema.path(leaf.node)).collect();
    assert_eq!(names, ["text", "n"]);
    let mut reading = Reading::new(projected, ReadingOptions::default()).unwrap();
    let (piece, batch) = reading.next_batch().unwrap().unwrap();
    let (Values::ByteArray(texts), Values::Int32(numbers)) =
        (&batch.columns[0].values, &batch.columns[1].values)
    else {
        panic!()
    };
    assert_eq!((piece, texts.get(99), numbers[99]), (0, b"text 99".as_slice(), 99));
    let wrong = project(&source, &ColumnPath::parse_list("m").unwrap()).err().unwrap();
    assert_eq!(wrong.detail(), Some(Detail::Option("columns")));
}

#[test]
fn a_file_is_what_was_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let source: Arc<dyn Source> = Arc::new(Generated::new(7, 1_000));
    let mut parquet = ParquetOptions::default();
    parquet.write.row_group_rows = 1_500;
    let mut file = NewParquetFile::new(&path, parquet).unwrap();
    let copied = copy(&source, &mut file, &options(|it| it.verify = true), &mut |_| {}).unwrap();
    assert_eq!((copied.written.rows, copied.written.row_groups, copied.written.files), (7_000, 5, 1));
    let file = open(&path);
    assert_eq!((file.table().rows, file.table().row_groups), (Some(7_000), Some(5)));
    assert!(read(Arc::new(file)).into_iter().eq(0..7_000));
    // It is not replaced unasked, and nothing else is there.
    let refused = NewParquetFile::new(&path, ParquetOptions::default()).err().unwrap();
    assert_eq!(refused.detail(), Some(Detail::AlreadyExists));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn nothing_is_left_of_a_file_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = Generated::new(5, 1_000);
    source.fails_at = Some(4_000);
    let source: Arc<dyn Source> = Arc::new(source);
    let mut file = NewParquetFile::new(folder.path().join("a.parquet"), ParquetOptions::default()).unwrap();
    copy(&source, &mut file, &CopyOptions::default(), &mut |_| {}).unwrap_err();
    let mut directory =
        NewParquetDirectory::new(folder.path().join("d"), DirectoryOptions::default()).unwrap();
    copy(&source, &mut directory, &CopyOptions::default(), &mut |_| {}).unwrap_err();
    drop((file, directory));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn sorted_and_partitioned_rows_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let source: Arc<dyn Source> = Arc::new(Generated::new(7, 1_000));
    let by = SortBy::resolve(&SortBy::parse_list("n desc").unwrap(), &source.table().schema).unwrap();
    let sorted = options(|it| {
        it.sort = by;
        it.verify = true;
    });
    let path = folder.path().join("sorted.parquet");
    let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
    let copied = copy(&source, &mut file, &sorted, &mut |_| {}).unwrap();
    assert_eq!(copied.sorted_by_way_of, Some(0));
    let file = open(&path);
    assert_eq!(file.table().order, sorted.sort);
    assert!(read(Arc::new(file)).into_iter().eq((0..7_000).rev()));

    let path = folder.path().join("thirds");
    let mut by_third = DirectoryOptions::default();
    by_third.partition_by = ColumnPath::parse_list("third").unwrap();
    by_third.file_rows = std::num::NonZeroU64::new(2_000);
    let mut directory = NewParquetDirectory::new(&path, by_third).unwrap();
    let copied = copy(&source, &mut directory, &sorted, &mut |_| {}).unwrap();
    assert_eq!(copied.written.files, 6);
    let wanted = (0..3).flat_map(|third| (0..7_000).rev().filter(move |n| n % 3 == third));
    assert!(read(Arc::new(open(&path))).into_iter().eq(wanted));
    assert!(path.join("third=1/part-00001.parquet").is_file());
}

/// A destination that changes what it writes, as a broken disk or a bug would.
struct Broken(NewParquetFile);

impl Destination for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.0.begin(table)
    }

    fn write(&mut self, mut batch: Batch) -> Result<()> {
        if let Values::Int32(numbers) = &mut batch.columns[0].values {
            let mut changed = numbers.to_vec();
            if changed.contains(&512) {
                changed.swap(0, 1);
            }
            *numbers = changed.into();
        }
        self.0.write(batch)
    }

    fn finish(&mut self) -> Result<Written> {
        self.0.finish()
    }

    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        self.0.written()
    }

    fn commit(&mut self) -> Result<()> {
        self.0.commit()
    }
}

#[test]
fn what_is_not_what_was_read_does_not_appear() {
    let folder = tempfile::tempdir().unwrap();
    let source: Arc<dyn Source> = Arc::new(Generated::new(3, 1_000));
    let by = SortBy::resolve(&SortBy::parse_list("n").unwrap(), &source.table().schema).unwrap();
    let path = folder.path().join("a.parquet");
    // Rows in another order are not those that were read; a row that is misplaced among sorted ones is named.
    for (sort, object, row) in [(Vec::new(), "broken", None), (by, path.to_str().unwrap(), Some(1))] {
        let mut file = Broken(NewParquetFile::new(&path, ParquetOptions::default()).unwrap());
        let options = options(|it| {
            it.verify = true;
            it.sort = sort;
        });
        let error = copy(&source, &mut file, &options, &mut |_| {}).unwrap_err();
        let place = error.place();
        assert_eq!(
            (error.kind(), place.object.as_deref(), place.row),
            (ErrorKind::Internal, Some(object), row)
        );
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// A source with a bug.
struct Panics(Generated);

impl Source for Panics {
    fn table(&self) -> &Table {
        self.0.table()
    }

    fn pieces(&self) -> &[Piece] {
        self.0.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        assert!(piece < 3, "a bug");
        self.0.open(piece, options)
    }
}

#[test]
fn a_source_that_panics_is_an_error_and_no_end() {
    for threads in [0, 2] {
        let source: Arc<dyn Source> = Arc::new(Panics(Generated::new(5, 1_000)));
        let mut taken = Taken::default();
        let error =
            copy(&source, &mut taken, &options(|it| it.threads = Some(threads)), &mut |_| {}).unwrap_err();
        assert_eq!((error.kind(), error.place().object.as_deref()), (ErrorKind::Internal, Some("piece 3")));
        assert!(taken.numbers.iter().copied().eq(0..3_000) && !taken.is_committed);
    }
}

#[test]
fn what_cannot_be_verified_is_refused_before_a_row_is_written() {
    let source: Arc<dyn Source> = Arc::new(Generated::new(2, 10));
    let mut taken = Taken::default();
    let error = copy(&source, &mut taken, &options(|it| it.verify = true), &mut |_| {}).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("verify")));
    assert!(taken.numbers.is_empty());
}

/// Calls in another order, as a program that drives a destination itself may make them, publish nothing.
#[test]
fn only_what_is_finished_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let source = Generated::new(1, 10);
    let batch = || source.open(0, &PieceOptions::default()).unwrap().next().unwrap().unwrap();
    let destinations: [Box<dyn Fn() -> Box<dyn Destination>>; 2] = [
        Box::new(|| {
            let path = folder.path().join("a.parquet");
            Box::new(NewParquetFile::new(path, ParquetOptions::default()).unwrap())
        }),
        Box::new(|| {
            Box::new(NewParquetDirectory::new(folder.path().join("d"), DirectoryOptions::default()).unwrap())
        }),
    ];
    for new in &destinations {
        let mut destination = new();
        assert_eq!(destination.write(batch()).unwrap_err().kind(), ErrorKind::Misuse);
        let mut destination = new();
        destination.begin(source.table()).unwrap();
        assert!(destination.begin(source.table()).is_err());
        destination.write(batch()).unwrap();
        assert_eq!(destination.commit().unwrap_err().kind(), ErrorKind::Misuse);
        drop(destination);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// Decimals that are equal and have other bytes have the same directory, and are verified all the same.
#[test]
fn equal_names_of_different_bytes_stay_what_they_are() {
    struct Decimals(Table, Vec<Piece>);
    struct Once(Option<Batch>);
    impl Source for Decimals {
        fn table(&self) -> &Table {
            &self.0
        }
        fn pieces(&self) -> &[Piece] {
            &self.1
        }
        fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
            let decimals: [&[u8]; 4] = [&[1], &[0, 1], &[1], &[2]];
            let batch = Batch::of_values([decimals.iter().collect(), vec![1, 2, 3, 4].into()])?;
            Ok(Box::new(Once(Some(batch))))
        }
    }
    impl Batches for Once {
        fn next(&mut self) -> Result<Option<Batch>> {
            Ok(self.0.take())
        }
    }
    let decimal = LogicalType::Decimal { precision: 4, scale: 1 };
    let leaf = |name, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical)).required();
    let fields = [leaf("d", PhysicalType::ByteArray, Some(decimal)), leaf("n", PhysicalType::Int32, None)];
    let table = Table::new("decimals", Arc::new(Schema::of_fields(&fields).unwrap()));
    let source: Arc<dyn Source> = Arc::new(Decimals(table, vec![Piece::of("decimals")]));
    let folder = tempfile::tempdir().unwrap();
    let mut by_decimal = DirectoryOptions::default();
    by_decimal.partition_by = ColumnPath::parse_list("d").unwrap();
    let mut directory = NewParquetDirectory::new(folder.path().join("d"), by_decimal).unwrap();
    let copied = copy(&source, &mut directory, &options(|it| it.verify = true), &mut |_| {}).unwrap();
    assert_eq!(copied.rows, 4);
    assert!(folder.path().join("d/d=0.1/part-00000.parquet").is_file());
    assert!(folder.path().join("d/d=0.2/part-00000.parquet").is_file());
}

/// How far a text is read is known by its bytes as they are stored, compressed or not.
#[test]
fn bytes_of_text_are_counted_as_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..800_000).map(|n| format!("{n},{}\n", n % 97)).collect();
    let text = format!("a,b\n{lines}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    std::fs::write(folder.path().join("1.csv"), &text).unwrap();
    std::fs::write(folder.path().join("2.csv.gz"), &gzip).unwrap();
    let mut options = FilesOptions::default();
    options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
    for (names, threads) in
        [(&["1.csv"][..], 1), (&["2.csv.gz"], 1), (&["1.csv", "2.csv.gz"], 1), (&["1.csv", "2.csv.gz"], 3)]
    {
        let paths = names.iter().map(|name| folder.path().join(name));
        let all: u64 = paths.clone().map(|path| std::fs::metadata(path).unwrap().len()).sum();
        let source: Arc<dyn Source> = Arc::new(Files::open(paths, &options).unwrap());
        let mut bytes = Vec::new();
        let mut output = ParquetOutput::new(&mut bytes, ParquetOptions::default()).unwrap();
        let mut copying = CopyOptions::default();
        copying.threads = Some(threads);
        let mut seen = Vec::new();
        let copied =
            copy(&source, &mut output, &copying, &mut |copied| seen.push(copied.bytes_read)).unwrap();
        assert_eq!((copied.bytes_total, copied.bytes_read), (Some(all), all), "{names:?}");
        assert!(seen.is_sorted() && seen[0] < all / 2, "{seen:?}");
        let middle = seen.iter().filter(|bytes| (all / 4..all * 3 / 4).contains(bytes)).count();
        assert!(middle > 0, "{names:?}: {seen:?}");
    }
}

/// However little memory there is, a batch is held.
#[test]
fn rows_are_sorted_without_memory() {
    let source: Arc<dyn Source> = Arc::new(Generated::new(3, 5000));
    let by = SortBy::resolve(&SortBy::parse_list("n desc").unwrap(), &source.table().schema).unwrap();
    let mut all = Vec::new();
    for (memory_bytes, threads) in [(u64::MAX, 1), (0, 1), (0, 3), (1, 1)] {
        let (mut options, mut bytes) = (CopyOptions::default(), Vec::new());
        (options.sort, options.memory_bytes, options.threads) = (by.clone(), memory_bytes, Some(threads));
        let mut output = ParquetOutput::new(&mut bytes, ParquetOptions::default()).unwrap();
        let copied = copy(&source, &mut output, &options, &mut |_| {}).unwrap();
        drop(output);
        assert_eq!((copied.rows, copied.sorted_by_way_of == Some(0)), (15_000, memory_bytes == u64::MAX));
        all.push(bytes);
    }
    assert!(all[1..].iter().all(|other| *other == all[1]));
}
