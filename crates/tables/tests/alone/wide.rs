//! Tables of 2,000 columns: all threads have work, and memory is bounded.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use marquetry_base::{Bytes, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, FixedBytes, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory};
use marquetry_tables::{
    Batches, ColumnPath, Destination, DiffOptions, Piece, PieceOptions, Reading, ReadingOptions, Source,
    Table, diff,
};

use crate::{MEMORY, alone};

const COLUMNS: usize = 2_000;
const PIECES: usize = 4;
/// A row of 64-bit numbers.
const ROW_BYTES: usize = COLUMNS * 8;
const MIB: usize = 1 << 20;

/// Pieces of a wide table of numbers. Every 512th row of a column may differ from that of another such table.
struct Wide {
    table: Table,
    pieces: Vec<Piece>,
    rows_of_piece: usize,
    differs: bool,
    meeting: Option<Arc<Meeting>>,
}

/// Where all pieces wait for each other once the first batch of each has been taken over.
#[derive(Default)]
struct Meeting {
    arrived: Mutex<usize>,
    changed: Condvar,
    threads: Mutex<HashSet<ThreadId>>,
    failed: AtomicBool,
}

impl Wide {
    fn new(rows_of_piece: usize) -> Wide {
        let field = |column: usize| {
            FieldDef::new(format!("c{column}"), FieldType::Leaf(PhysicalType::Int64, None)).required()
        };
        let schema = Schema::of_fields(&(0..COLUMNS).map(field).collect::<Vec<_>>()).unwrap();
        let pieces = (0..PIECES).map(|piece| Piece::of(format!("piece {piece}"))).collect();
        let table = Table::new("wide", Arc::new(schema));
        Wide { table, pieces, rows_of_piece, differs: false, meeting: None }
    }
}

impl Source for Wide {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let most = options.batch_bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap());
        let batch_rows = (most / ROW_BYTES).clamp(1, 8192);
        let (differs, meeting) = (self.differs, self.meeting.clone());
        Ok(Box::new(WideRows { next: 0, rows: self.rows_of_piece, batch_rows, differs, meeting, asked: 0 }))
    }
}

struct WideRows {
    next: usize,
    rows: usize,
    batch_rows: usize,
    differs: bool,
    meeting: Option<Arc<Meeting>>,
    asked: usize,
}

impl Batches for WideRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.asked += 1;
        if let (Some(meeting), 2) = (&self.meeting, self.asked) {
            meeting.arrive();
        }
        let rows = self.next..self.rows.min(self.next + self.batch_rows);
        if rows.is_empty() {
            return Ok(None);
        }
        let column = |column: usize| -> Values {
            let value = |row: usize| {
                let differs = self.differs && row % 512 == column % 512;
                i64::try_from(row).unwrap() + i64::from(differs)
            };
            rows.clone().map(value).collect::<Vec<i64>>().into()
        };
        let mut batch = Batch::of_values((0..COLUMNS).map(column))?;
        batch.first_row = self.next as u64;
        self.next = rows.end;
        Ok(Some(batch))
    }
}

impl Meeting {
    fn arrive(&self) {
        self.threads.lock().unwrap().insert(thread::current().id());
        let mut arrived = self.arrived.lock().unwrap();
        *arrived += 1;
        self.changed.notify_all();
        while *arrived < PIECES {
            let (after, timeout) = self.changed.wait_timeout(arrived, Duration::from_secs(20)).unwrap();
            arrived = after;
            if timeout.timed_out() && *arrived < PIECES {
                self.failed.store(true, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// Each thread has a batch in hand and one that waits, however wide the table is: no piece waits for another's end.
#[test]
fn all_threads_have_work() {
    let _alone = alone();
    let meeting = Arc::new(Meeting::default());
    let mut wide = Wide::new(2_048);
    wide.meeting = Some(Arc::clone(&meeting));
    let mut options = ReadingOptions::default();
    options.threads = Some(PIECES);
    let mut reading = Reading::new(Arc::new(wide), options).unwrap();
    let (mut rows, mut last) = (0, 0);
    while let Some((piece, batch)) = reading.next_batch().unwrap() {
        assert!(piece >= last, "the pieces' order");
        (rows, last) = (rows + batch.rows, piece);
    }
    assert_eq!(rows, PIECES * 2_048);
    assert!(!meeting.failed.load(Ordering::Relaxed), "some piece was begun only after another");
    assert_eq!(meeting.threads.lock().unwrap().len(), PIECES);
}

#[test]
fn a_difference_of_wide_tables_takes_bounded_memory() {
    let _alone = alone();
    let rows_of_piece = 10_240;
    let table_bytes = PIECES * rows_of_piece * ROW_BYTES;
    let (a, mut b) = (Wide::new(rows_of_piece), Wide::new(rows_of_piece));
    b.differs = true;
    let (a, b): (Arc<dyn Source>, Arc<dyn Source>) = (Arc::new(a), Arc::new(b));
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let found = diff([&a, &b], &DiffOptions::default(), &mut |_| {}).unwrap();
    let peak = MEMORY.peak_usage() - before;
    let differing = (PIECES * rows_of_piece / 512) as u64;
    assert_eq!((found.values.len(), found.rows.compared), (COLUMNS, (PIECES * rows_of_piece) as u64));
    assert!(found.values.iter().all(|column| column.rows == differing && column.shown.len() == 3));
    // Of either table: 64 MiB that wait, half as much in the threads' hands, and with two threads, when batches are
    // largest, three of 16 MiB: two that the piece may have whose turn it is, and one that is compared.
    assert!(peak < 2 * (64 + 32 + 48) * MIB + 16 * MIB, "{} MiB", peak / MIB);
    assert!(2 * table_bytes > 3 * peak);
    // Of the rows that are shown their values are kept, not the batches that they are from: about a KiB for each of
    // six single values of a column.
    let kept = MEMORY.current_usage() - before;
    assert!(kept < COLUMNS * 6 * 1024, "{} KiB", kept / 1024);
}

/// Bytes that are counted while anything points to them.
struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What becomes a directory's name is copied out of its batch, and a batch that was written is dropped.
#[test]
fn partitioned_writing_keeps_no_batches() {
    const BATCHES: usize = 200;
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let alive = Arc::new(AtomicUsize::new(0));
    let texts = |text: &str| {
        alive.fetch_add(1, Ordering::Relaxed);
        let bytes = Bytes::from_owner(Counted(text.repeat(100).into_bytes(), Arc::clone(&alive)));
        Values::ByteArray(ByteArrays::from_lengths(bytes, std::iter::repeat_n(text.len(), 100)).unwrap())
    };
    let leaf = |name: &str| {
        let text = FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
        FieldDef::new(name, text).required()
    };
    let schema = Arc::new(Schema::of_fields(&[leaf("day"), leaf("text")]).unwrap());
    let mut by_day = DirectoryOptions::default();
    by_day.partition_by = ColumnPath::parse_list("day").unwrap();
    let mut directory = NewParquetDirectory::new(folder.path().join("d"), by_day).unwrap();
    directory.begin(&Table::new("made", schema)).unwrap();
    let mut most = 0;
    for number in 0..BATCHES {
        let day = format!("a day with a name that is not short: {:03}", number / 2);
        let batch = Batch::of_values([texts(&day), texts("a text that is not so short, either")]).unwrap();
        directory.write(batch).unwrap();
        most = most.max(alive.load(Ordering::Relaxed));
    }
    // The file at hand may refer to values of its first page: of the columns of two batches.
    assert!(most <= 4, "{most} buffers of {BATCHES} batches");
    assert_eq!(directory.finish().unwrap().files, 100);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    directory.commit().unwrap();
}

/// Writes batches of `(part, number, value)` to a directory for each part, and returns the most memory that it took.
fn peak_of_parts(
    value: FieldType,
    options: impl FnOnce(&mut DirectoryOptions),
    batches: impl Iterator<Item = Batch>,
) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let fields = [
        FieldDef::new("part", FieldType::Leaf(PhysicalType::Int32, None)).required(),
        FieldDef::new("number", FieldType::Leaf(PhysicalType::Int32, None)).required(),
        FieldDef::new("value", value).required(),
    ];
    let schema = Arc::new(Schema::of_fields(&fields).unwrap());
    let mut by_part = DirectoryOptions::default();
    by_part.partition_by = ColumnPath::parse_list("part").unwrap();
    options(&mut by_part);
    let mut directory = NewParquetDirectory::new(folder.path().join("d"), by_part).unwrap();
    directory.set_sorting(Some(16 << 20));
    directory.begin(&Table::new("made", schema)).unwrap();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut rows = 0;
    for batch in batches {
        rows += batch.rows as u64;
        directory.write(batch).unwrap();
    }
    assert_eq!(directory.finish().unwrap().rows, rows);
    MEMORY.peak_usage() - before
}

/// Rows that share a value have it once, or as often as not many rows do, whether their files are open or they are sorted.
#[test]
fn what_is_gathered_of_a_dictionary_is_bounded() {
    let _alone = alone();
    let text = FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
    for (rows, value_bytes, parts) in
        [(1_024, 800_000, 1), (1_024, 800_000, 48), (4_096, 60_000, 1), (4_096, 60_000, 48)]
    {
        let parts: Vec<i32> = (0..rows).map(|row| row % parts).collect();
        let entries: Values = ["x".repeat(value_bytes)].iter().collect();
        let values = Values::Dictionary(vec![0; parts.len()].into(), Arc::new(entries));
        let batch = Batch::of_values([parts.clone().into(), parts.into(), values]).unwrap();
        let peak = peak_of_parts(text.clone(), |_| {}, [batch].into_iter());
        // What is gathered of all, and the last MiB or two that each open file took.
        assert!(peak < 128 * MIB, "{rows} of {value_bytes} bytes: {} MiB", peak / MIB);
    }
}

/// Files that are open side by side share what may be held, also those that begin where others of their directory end.
#[test]
fn what_open_files_hold_is_bounded() {
    const VALUE_BYTES: usize = 1 << 10;
    let _alone = alone();
    let value = FieldType::Leaf(PhysicalType::FixedLenByteArray(1 << 10), None);
    let mut word = 1_u64;
    let batches = (0..128).map(move |_| {
        let mut bytes = Vec::with_capacity(1024 * VALUE_BYTES);
        while bytes.len() < 1024 * VALUE_BYTES {
            word = word.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_add(1);
            bytes.extend(word.to_le_bytes());
        }
        let parts: Vec<i32> = (0..1024).map(|row| row % 8).collect();
        let values = Values::FixedLenByteArray(FixedBytes::new(VALUE_BYTES, 1024, bytes.into()));
        Batch::of_values([parts.clone().into(), parts.into(), values]).unwrap()
    });
    let options = |options: &mut DirectoryOptions| {
        options.file_rows = std::num::NonZeroU64::new(8_001);
        options.parquet.write.held_bytes_max = 8 << 20;
    };
    let peak = peak_of_parts(value, options, batches);
    // 8 MiB of pages, and what is gathered of each directory, twice while it is written; a page of each.
    assert!(peak < 48 * MIB, "{} MiB", peak / MIB);
}
