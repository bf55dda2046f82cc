//! Large things, written and sorted: each call does no more than its budget and a slice, allocates no MiB at once and releases none, and the result
//! does not depend on the budget.

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Budget, Buffer, Bytes, Codec, Error, Limits, Machine, Object, Result, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::leaves::sums;
use marquetry_conformance::written::{self, Written};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use marquetry_parquet::format::{Compression, Encoding, KeyValue, SortingColumn};
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_parquet::sort::{SortOptions, Sorted, Sorter};
use marquetry_parquet::write::{BloomOptions, ColumnOptions, Fed, FileWriter, PageVersion, WriteOptions};

const SPILL: Object = Object(7);

/// Units that a call may charge beyond its budget: the slice that it was in the middle of. The largest moves 8,192 entries, as a part of a
/// dictionary's table grows. A thousand rows are sorted in one go, and an encoding is chosen
/// in one, in a step of its own.
const SLICE_UNITS_MAX: u64 = 102_000;
const SORT_UNITS_MAX: u64 = 180_000;
const CHOICE_UNITS_MAX: u64 = 215_000;
/// Bytes that are allocated, or released, at once.
const PIECE_BYTES_MAX: u64 = (1 << 20) - 1;
/// Bytes that a call of the default budget releases, at most.
const RELEASED_BYTES_MAX: u64 = 5 << 20;

/// Bytes of a long value.
const LONG: usize = 12_000_000;

/// Counts what the thread allocates and releases while a machine works.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static ALLOCATED_MAX: Cell<usize> = const { Cell::new(0) };
    static RELEASED_MAX: Cell<usize> = const { Cell::new(0) };
    static RELEASED: Cell<usize> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator has no other form")]
// SAFETY: all is left to the system's allocator, which keeps the contract; what is counted beside it is the thread's own and is not allocated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        count(memory.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(memory) }
    }

    unsafe fn alloc_zeroed(&self, memory: Memory) -> *mut u8 {
        count(memory.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(memory) }
    }

    unsafe fn realloc(&self, address: *mut u8, memory: Memory, size: usize) -> *mut u8 {
        // Memory that shrinks stays where it is.
        match size.checked_sub(memory.size()) {
            Some(_) => count(size, 0),
            None => count(0, memory.size() - size),
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(address, memory, size) }
    }

    unsafe fn dealloc(&self, address: *mut u8, memory: Memory) {
        count(0, memory.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(address, memory) }
    }
}

fn count(more: usize, less: usize) {
    // At the thread's end they are gone.
    if !IS_WATCHED.try_with(Cell::get).unwrap_or(false) {
        return;
    }
    ALLOCATED_MAX.with(|most| most.set(most.get().max(more)));
    RELEASED_MAX.with(|most| most.set(most.get().max(less)));
    RELEASED.with(|all| all.set(all.get() + less));
}

/// The most that a call did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Most {
    /// Units of a step; `new`, `feed` and `finish` have none.
    units: u64,
    /// The largest allocation, the largest release, and all that a call released.
    allocated: u64,
    released: u64,
    released_in_all: u64,
}

/// A machine that is watched.
struct Watched<M>(M, Most);

impl<M> Watched<M> {
    fn new(make: impl FnOnce() -> Result<M>) -> Result<Watched<M>> {
        let mut most = Most::default();
        let made = watched(&mut most, make)?;
        Ok(Watched(made, most))
    }

    fn call<T>(&mut self, work: impl FnOnce(&mut M) -> T) -> T {
        watched(&mut self.1, || work(&mut self.0))
    }
}

fn watched<T>(most: &mut Most, work: impl FnOnce() -> T) -> T {
    [&ALLOCATED_MAX, &RELEASED_MAX, &RELEASED].iter().for_each(|counted| counted.set(0));
    IS_WATCHED.set(true);
    let done = work();
    IS_WATCHED.set(false);
    most.allocated = most.allocated.max(ALLOCATED_MAX.get() as u64);
    most.released = most.released.max(RELEASED_MAX.get() as u64);
    most.released_in_all = most.released_in_all.max(RELEASED.get() as u64);
    done
}

impl<M: Machine> Machine for Watched<M> {
    type Product = M::Product;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<M::Product>> {
        let step = self.call(|machine| machine.step(budget));
        self.1.units = self.1.units.max(budget.spent());
        step
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.call(|machine| machine.supply(object, range, bytes))
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.call(|machine| machine.supply_length(object, length))
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        self.call(|machine| machine.fail(object, range, reason));
    }
}

fn manner(budget: u64) -> Manner {
    Manner { budget, ..Manner::KIND }
}

/// Writes batches, which the writer has alone, as `make` makes them.
fn write(
    schema: &Arc<Schema>,
    make: &dyn Fn() -> Vec<Batch>,
    options: &WriteOptions,
    budget: u64,
) -> Result<(Written, Most)> {
    let (codecs, options) = (Arc::new(StandardCodecs::default()), options.clone());
    let schema = Arc::clone(schema);
    let mut writer = Watched::new(|| FileWriter::new(FILE, schema, codecs, options))?;
    let mut left = make().into_iter();
    let written = written::write(&mut writer, manner(budget), |writer, _| {
        match left.next() {
            Some(batch) => assert_eq!(writer.call(|writer| writer.feed(batch))?, Fed::Taken),
            None => writer.call(FileWriter::finish),
        }
        Ok(())
    })?;
    Ok((written, writer.1))
}

fn read(file: &Bytes) -> (Arc<Schema>, Vec<Batch>) {
    let metadata = canonical::metadata(file, Manner::KIND).unwrap();
    let schema = Arc::clone(&metadata.schema);
    let options = ReadOptions { limits: Limits::TRUSTED, ..ReadOptions::default() };
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options).unwrap();
    let mut batches = Vec::new();
    canonical::read(&mut reader, file, Manner::KIND, |batch| batches.push(batch)).unwrap();
    (schema, batches)
}

fn check_calls(name: &str, most: Most, budget: u64, slice: u64) {
    println!("{name}, budget {budget}: {most:?}");
    assert!(most.units <= CHOICE_UNITS_MAX.max(budget + slice), "{name}: {most:?} of {budget}");
    assert!(most.allocated <= PIECE_BYTES_MAX, "{name}: {most:?}");
    assert!(most.released <= PIECE_BYTES_MAX, "{name}: {most:?}");
    let in_all = if budget == 0 { 2 * PIECE_BYTES_MAX } else { RELEASED_BYTES_MAX };
    assert!(most.released_in_all <= in_all, "{name}: {most:?}");
}

/// Writes by budgets of all sizes: the file is the same, and what is read of it is what was written.
fn check(name: &str, schema: &Arc<Schema>, options: &WriteOptions, make: impl Fn() -> Vec<Batch>) -> Bytes {
    let mut files: Vec<Bytes> = Vec::new();
    for budget in [0, 1, 30_000, Budget::DEFAULT_UNITS] {
        let (written, most) = write(schema, &make, options, budget).unwrap();
        check_calls(name, most, budget, SLICE_UNITS_MAX);
        files.push(written.object(FILE));
    }
    let first = files.swap_remove(0);
    assert!(files.iter().all(|file| *file == first), "{name}: the file depends on the budget");
    let (again, after) = read(&first);
    assert!(sums(schema, &make()) == sums(&again, &after), "{name}: what is read is something else");
    first
}

fn leaf(name: &str, physical: PhysicalType) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(physical, None)).required()
}

fn schema(fields: &[FieldDef]) -> Arc<Schema> {
    Arc::new(Schema::of_fields(fields).unwrap())
}

fn fixed(width: usize) -> PhysicalType {
    PhysicalType::FixedLenByteArray(u32::try_from(width).unwrap())
}

/// Text that a codec finds something in.
fn text(bytes: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.extend(state.to_le_bytes().map(|byte| b'a' + byte % 16));
        if text.len() % 64 == 0 {
            text.extend_from_slice(b"and again");
        }
    }
    text.truncate(bytes);
    text
}

fn batch(values: impl IntoIterator<Item = Values>) -> Vec<Batch> {
    vec![Batch::of_values(values).unwrap()]
}

fn numbers(count: usize) -> Values {
    let number = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed() >> (at % 60);
    Values::Int64((0..).take(count).map(number).collect::<Vec<_>>().into())
}

fn list(count: usize, values: Values) -> ColumnBatch {
    let mut repetition = vec![1; count];
    (repetition[0], repetition[1]) = (0, 0);
    let levels = Levels { definition: vec![2; count].into(), repetition: Some(repetition.into()) };
    ColumnBatch {
        leaf: 0,
        rows: 2,
        nulls: 0,
        validity: None,
        values,
        layout: Layout::Dense,
        levels: Some(levels),
        provisional: false,
    }
}

fn list_of(physical: PhysicalType) -> FieldDef {
    FieldDef::new("l", FieldType::List(Box::new(leaf("element", physical))))
}

fn column(column: ColumnOptions) -> WriteOptions {
    WriteOptions { column, ..WriteOptions::default() }
}

fn encoded(encoding: Encoding, compression: Compression) -> ColumnOptions {
    ColumnOptions { encoding: Some(encoding), compression, ..ColumnOptions::default() }
}

const SNAPPY: Compression = Compression::Codec(Codec::Snappy);
const UNCOMPRESSED: Compression = Compression::Uncompressed;

fn bloom(options: ColumnOptions) -> WriteOptions {
    column(ColumnOptions { bloom: Some(BloomOptions::default()), ..options })
}

#[test]
fn long_strings() {
    let schema = schema(&[leaf("v", PhysicalType::ByteArray)]);
    // A host cannot release part of it, and keeps it.
    let value = text(LONG);
    let whole = Bytes::from([&value[..], b"short", &value[..], &value[..200_000]].concat());
    let lengths = [LONG, 5, LONG, 200_000];
    let make = || batch([Values::ByteArray(ByteArrays::from_lengths(whole.clone(), lengths).unwrap())]);
    for encoding in
        [Encoding::Plain, Encoding::RleDictionary, Encoding::DeltaLengthByteArray, Encoding::DeltaByteArray]
    {
        for compression in [UNCOMPRESSED, SNAPPY] {
            let options = column(encoded(encoding, compression));
            check(&format!("strings, {encoding}, {compression:?}"), &schema, &options, make);
        }
    }
    check("strings, as chosen", &schema, &WriteOptions::default(), make);
    check("strings, Bloom filter", &schema, &bloom(encoded(Encoding::Plain, UNCOMPRESSED)), make);
    let v2 = WriteOptions { page_version: PageVersion::V2, ..column(encoded(Encoding::Plain, SNAPPY)) };
    check("strings, V2", &schema, &v2, make);
}

/// What is not compressed is not copied, either: pieces point into the host's buffer.
#[test]
fn a_long_string_is_shared() {
    let schema = schema(&[leaf("v", PhysicalType::ByteArray)]);
    let whole = Bytes::from(text(LONG));
    let options = column(encoded(Encoding::Plain, UNCOMPRESSED));
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, schema, codecs, options).unwrap();
    let values = Values::ByteArray(ByteArrays::from_lengths(whole.clone(), [LONG]).unwrap());
    assert_eq!(writer.feed(batch([values]).remove(0)).unwrap(), Fed::Taken);
    writer.finish();
    let (mut shared, within) = (0, whole.as_ptr_range());
    loop {
        match writer.step(&mut Budget::default()).unwrap() {
            Step::Append(_, bytes) if within.contains(&bytes.as_ptr()) => shared += bytes.len(),
            Step::Done => break,
            _ => {}
        }
    }
    assert_eq!(shared, LONG);
}

/// A row that is not the first brings values that no dictionary should have; so does a row's middle, where none can be left.
#[test]
fn long_values_and_dictionaries() {
    let dictionary = |dictionary_bytes| WriteOptions {
        dictionary_bytes,
        ..column(encoded(Encoding::RleDictionary, UNCOMPRESSED))
    };
    let strings = schema(&[leaf("v", PhysicalType::ByteArray)]);
    let whole = Bytes::from(text(8_000_000));
    let lengths = [3, 70_000, 30, 70_000, 2_000_000, 3, 60_000, 60_000, 1_000_000, 5];
    let make = || batch([Values::ByteArray(ByteArrays::from_lengths(whole.clone(), lengths).unwrap())]);
    for bytes in [10, 100_000, 1 << 20, 1 << 30] {
        check(&format!("strings, a dictionary of {bytes}"), &strings, &dictionary(bytes), make);
    }
    let file = check("strings, no dictionary", &strings, &dictionary(1 << 20), || {
        batch([Values::ByteArray(ByteArrays::from_lengths(whole.clone(), [4_000_000, 5]).unwrap())])
    });
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let chunk = &metadata.row_groups[0].columns[0];
    assert_eq!(chunk.dictionary_page_offset, None, "a dictionary that has nothing");
    let lists = schema(&[list_of(PhysicalType::ByteArray)]);
    let make = || {
        let values = Values::ByteArray(ByteArrays::from_lengths(whole.clone(), lengths).unwrap());
        vec![Batch { row_group: 0, first_row: 0, rows: 2, columns: vec![list(lengths.len(), values)] }]
    };
    check("a row of strings, a dictionary", &lists, &dictionary(100_000), make);
    let entries =
        || batch([Values::ByteArray(ByteArrays::from_lengths(whole.clone(), [60_000; 130]).unwrap())]);
    check("long entries of a dictionary", &strings, &dictionary(1 << 30), entries);
    let many = schema(&[leaf("v", PhysicalType::Int64)]);
    check("many entries of a dictionary", &many, &dictionary(1 << 30), || batch([numbers(300_000)]));
}

#[test]
fn long_values_of_one_length() {
    let schema = schema(&[leaf("v", fixed(LONG))]);
    let values = [text(LONG), text(LONG)].concat();
    let make = || batch([Values::FixedLenByteArray(FixedBytes::new(LONG, 2, Buffer::from(values.clone())))]);
    for encoding in [Encoding::Plain, Encoding::RleDictionary, Encoding::DeltaByteArray] {
        check(&format!("FIXED, {encoding}"), &schema, &column(encoded(encoding, SNAPPY)), make);
    }
    check("FIXED, Bloom filter", &schema, &bloom(encoded(Encoding::Plain, UNCOMPRESSED)), make);
}

#[test]
fn long_rows() {
    const ELEMENTS: usize = 1_000_000;
    let of = |name: &str, physical, options: &WriteOptions, values: &dyn Fn() -> Values| {
        check(name, &schema(&[list_of(physical)]), options, || {
            vec![Batch { row_group: 0, first_row: 0, rows: 2, columns: vec![list(ELEMENTS, values())] }]
        });
    };
    let int64 = PhysicalType::Int64;
    of("row of numbers", int64, &WriteOptions::default(), &|| numbers(ELEMENTS));
    for encoding in [Encoding::Plain, Encoding::RleDictionary, Encoding::ByteStreamSplit] {
        let options = column(encoded(encoding, SNAPPY));
        of(&format!("row of numbers, {encoding}"), int64, &options, &|| numbers(ELEMENTS));
    }
    let words = || {
        let view = u128::from_le_bytes(*b"\x05\0\0\0words\0\0\0\0\0\0\0");
        Values::ByteArray(ByteArrays::new(vec![view; ELEMENTS].into(), Arc::default()))
    };
    of("row of strings", PhysicalType::ByteArray, &WriteOptions::default(), &words);
}

#[test]
fn very_many_pages() {
    const PAGES: usize = 60_000;
    let numbered = schema(&[leaf("v", PhysicalType::Int64)]);
    let tiny = WriteOptions { page_rows: 1, ..column(encoded(Encoding::Plain, UNCOMPRESSED)) };
    check("pages of a number", &numbered, &tiny, || batch([numbers(PAGES)]));
    let spilled = WriteOptions { spill: Some(SPILL), held_bytes_max: 100_000, ..tiny.clone() };
    check("pages of a number, spilled", &numbered, &spilled, || batch([numbers(PAGES)]));
    let strings = schema(&[leaf("v", PhysicalType::ByteArray), leaf("n", PhysicalType::Int64)]);
    let whole = Bytes::from(text(PAGES * 30));
    check("pages of a string", &strings, &tiny, || {
        let lengths = std::iter::repeat_n(30, PAGES);
        batch([Values::ByteArray(ByteArrays::from_lengths(whole.clone(), lengths).unwrap()), numbers(PAGES)])
    });
    let groups = WriteOptions { row_group_rows: 3, ..WriteOptions::default() };
    check("row groups of three rows", &numbered, &groups, || batch([numbers(PAGES)]));
}

#[test]
fn very_many_columns() {
    const COLUMNS: usize = 5_000;
    let fields: Vec<FieldDef> = (0..COLUMNS).map(|at| leaf(&format!("c{at}"), PhysicalType::Int64)).collect();
    let sorting_columns =
        (0..4_096).map(|column| SortingColumn { column, descending: false, nulls_first: false }).collect();
    let schema = schema(&fields);
    let make = || batch((0..COLUMNS).map(|_| numbers(3)));
    check("many columns", &schema, &WriteOptions::default(), make);
    let groups = WriteOptions { row_group_rows: 1, sorting_columns, ..WriteOptions::default() };
    check("many columns in many row groups", &schema, &groups, make);
}

/// What the writer accepts is what readers accept by default.
#[test]
fn names_and_metadata() {
    let named = |bytes: usize| schema(&[leaf(&"n".repeat(bytes), PhysicalType::Int64)]);
    check("a long name", &named(65_000), &WriteOptions::default(), || batch([numbers(3)]));
    for bytes in [65_001, LONG] {
        let refused = write(&named(bytes), &|| batch([numbers(3)]), &WriteOptions::default(), 0);
        let error = refused.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(&format!("of {bytes} bytes")) && error.len() < 200, "{error}");
    }
    let numbered = schema(&[leaf("v", PhysicalType::Int64)]);
    let with = |key_values| WriteOptions { key_values, ..WriteOptions::default() };
    let pair = |key: String, value: &Bytes| KeyValue { key, value: Some(value.clone()) };
    let (short, long) = (Bytes::from_static(b"value"), Bytes::from(text(LONG)));
    let pairs: Vec<KeyValue> = (0..50_000).map(|at| pair(format!("a key {at}"), &short)).collect();
    let file = check("many pairs", &numbered, &with(pairs.clone()), || batch([numbers(3)]));
    assert!(canonical::metadata(&file, Manner::KIND).unwrap().key_values.iter().eq(&pairs));
    let pairs = vec![pair("k".repeat(65_001), &short)];
    let refused = write(&numbered, &|| batch([numbers(3)]), &with(pairs), 0);
    assert!(refused.map(|_| ()).unwrap_err().to_string().contains("a key of metadata of 65001 bytes"));
    let pairs = vec![pair("k".repeat(65_000), &short), pair("k".into(), &long)];
    let file = check("a long key, and a long value", &numbered, &with(pairs.clone()), || batch([numbers(3)]));
    assert!(canonical::metadata(&file, Manner::KIND).unwrap().key_values.iter().eq(&pairs));
}

/// Sorts by the first column, by budgets of all sizes. `make` makes the batches, and what comes out is compared with `expected`.
fn check_sort(name: &str, schema: &Arc<Schema>, make: &dyn Fn() -> Vec<Batch>, expected: &[Batch]) {
    let by = [SortingColumn { column: 0, descending: false, nulls_first: false }];
    for memory_bytes in [u64::MAX, 1 << 20] {
        for budget in [0, Budget::DEFAULT_UNITS] {
            let options = SortOptions { memory_bytes, ..SortOptions::default() };
            let (schema, codecs) = (Arc::clone(schema), Arc::new(StandardCodecs::default()));
            let mut sorter =
                Watched::new(|| Sorter::new(Arc::clone(&schema), &by, codecs, SPILL, options)).unwrap();
            let (mut left, mut sorted) = (make().into_iter(), Vec::new());
            written::write(&mut sorter, manner(budget), |sorter, product| {
                match product {
                    Sorted::Rows(batch) => sorted.push(batch),
                    Sorted::Room => match left.next() {
                        Some(batch) => assert_eq!(sorter.call(|sorter| sorter.feed(batch))?, Fed::Taken),
                        None => sorter.call(Sorter::finish),
                    },
                }
                Ok(())
            })
            .unwrap();
            let name = format!("{name}, memory {memory_bytes}");
            let most = match memory_bytes {
                u64::MAX => sorter.1,
                // A run is read back, where a value or a row is joined in one piece.
                _ => Most { units: sorter.1.units, ..Most::default() },
            };
            check_calls(&name, most, budget, SORT_UNITS_MAX);
            assert_eq!(sorted.iter().map(|batch| batch.rows).sum::<usize>(), expected[0].rows);
            assert!(sums(&schema, &sorted) == sums(&schema, expected), "{name}: other rows");
        }
    }
}

#[test]
fn large_rows_are_sorted() {
    let key = |keys: &[i64]| Values::Int64(keys.to_vec().into());
    let values: Vec<Vec<u8>> = (0..3).map(|at| [&[b'0' + at][..], &text(LONG - 1)].concat()).collect();
    let swapped = [&values[1][..], &values[2], &values[0]].concat();
    let with_key = |physical| schema(&[leaf("k", PhysicalType::Int64), leaf("v", physical)]);
    let of_fixed = |keys: &[i64], bytes: &[u8]| {
        let values = FixedBytes::new(LONG, 3, Buffer::from(bytes.to_vec()));
        batch([key(keys), Values::FixedLenByteArray(values)])
    };
    let (given, sorted) = ([2, 3, 1], values.concat());
    check_sort(
        "FIXED",
        &with_key(fixed(LONG)),
        &|| of_fixed(&given, &swapped),
        &of_fixed(&[1, 2, 3], &sorted),
    );

    let (given_bytes, sorted_bytes) = (Bytes::from(swapped.clone()), Bytes::from(sorted.clone()));
    let of_strings = |keys: &[i64], whole: &Bytes| {
        let arrays = ByteArrays::from_lengths(whole.clone(), [LONG; 3]).unwrap();
        batch([key(keys), Values::ByteArray(arrays)])
    };
    let strings = with_key(PhysicalType::ByteArray);
    check_sort(
        "strings",
        &strings,
        &|| of_strings(&given, &given_bytes),
        &of_strings(&[1, 2, 3], &sorted_bytes),
    );

    // Wide values that are copied, a slice at a time.
    const WIDE: usize = 200_000;
    let of_wide = |keys: &[i64], bytes: &[u8]| {
        let values = FixedBytes::new(WIDE, 3, Buffer::from(bytes[..3 * WIDE].to_vec()));
        batch([key(keys), Values::FixedLenByteArray(values)])
    };
    let parts: Vec<&[u8]> = values.iter().map(|value| &value[..WIDE]).collect();
    let swapped_wide = [parts[1], parts[2], parts[0]].concat();
    let wide = || of_wide(&given, &swapped_wide);
    check_sort("wide FIXED", &with_key(fixed(WIDE)), &wide, &of_wide(&[1, 2, 3], &parts.concat()));

    const ELEMENTS: usize = 1_500_000;
    let of_lists = |keys: &[i64]| {
        let mut batches = batch([key(keys)]);
        batches[0].columns.push(ColumnBatch { leaf: 1, ..list(ELEMENTS, numbers(ELEMENTS)) });
        batches
    };
    let lists = schema(&[leaf("k", PhysicalType::Int64), list_of(PhysicalType::Int64)]);
    check_sort("rows of numbers", &lists, &|| of_lists(&[1, 2]), &of_lists(&[1, 2]));
}

#[test]
fn long_keys_are_sorted() {
    const KEYS: usize = 200;
    let prefix = text(60_000);
    let key = |at: usize| [&prefix[..], format!("{:03}", at * 77 % KEYS).as_bytes()].concat();
    let whole = Bytes::from((0..KEYS).flat_map(key).collect::<Vec<u8>>());
    let of = || batch([Values::ByteArray(ByteArrays::from_lengths(whole.clone(), [60_003; KEYS]).unwrap())]);
    let mut sorted: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    sorted.sort_unstable();
    let sorted = ByteArrays::from_lengths(Bytes::from(sorted.concat()), [60_003; KEYS]).unwrap();
    let schema = schema(&[leaf("k", PhysicalType::ByteArray)]);
    check_sort("keys that begin alike", &schema, &of, &batch([Values::ByteArray(sorted)]));
}
