//! What reading allocates: no piece of 1 MiB or more, but where a name and a reason stand here, and no more in all than it must.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Codec, Error, Limits, Machine, Object, Result, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::batch::{Assembler, Batch, Layout, Values};
use marquetry_parquet::format::Compression;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::write::{BloomOptions, ColumnOptions, FileWriter, PageVersion, Room, WriteOptions};
use marquetry_testing::memory::{self, Taken, watched};

/// Seastar's threads have so much.
const STACK_BYTES: usize = 128 << 10;

/// What may be large: a part of the name or the file of a function that asks for it, and why. The list should become shorter.
///
/// No file here has what else is large by need: one value of a MiB, and a page in BROTLI, whose copies refer to 16 MiB.
const EXCEPTIONS: &[(&str, &str)] =
    &[("zstd_safe::rust_allocator", "the library's window, where a page is longer than one of ours")];

/// A machine that is watched.
struct Watched<M>(M);

impl<M: Machine> Machine for Watched<M> {
    type Product = M::Product;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<M::Product>> {
        watched(|| self.0.step(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        watched(|| self.0.supply(object, range, bytes))
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        watched(|| self.0.supply_length(object, length))
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        watched(|| self.0.fail(object, range, reason));
    }
}

/// Works on a small stack, and says what it took while it was watched.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) -> Taken {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        memory::start();
        work();
        memory::taken()
    });
    thread.expect("a thread").join().expect("a reading that does not panic")
}

/// The exceptions that large pieces are, and those that are none.
fn judge(name: &str, taken: &Taken, used: &mut BTreeSet<&'static str>, faults: &mut Vec<String>) {
    for (bytes, trace) in &taken.large {
        let trace = trace.to_string();
        match EXCEPTIONS.iter().find(|(part, _)| trace.contains(part)) {
            Some((part, _)) => drop(used.insert(part)),
            None => {
                let ours: Vec<&str> =
                    trace.lines().filter(|line| line.contains("/crates/")).map(str::trim).take(8).collect();
                faults.push(format!("{name}: {bytes} bytes at once, by {ours:#?}"));
            }
        }
    }
}

/// Reads all columns, and makes the arrays of nested ones; hands the batches out.
fn read(bytes: &Bytes, options: ReadOptions, manner: Manner, mut take: impl FnMut(Batch)) -> Result<()> {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let codecs = Arc::new(StandardCodecs::default());
    let reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options)?;
    let schema = &metadata.schema;
    let mut assemblers = Vec::new();
    for node in schema.children(0) {
        // Some shapes cannot be told: then there is no array, but an error.
        if schema.leaves_of(node).any(|leaf| !schema.leaves()[leaf].is_flat()) {
            assemblers.push(Assembler::new(Arc::clone(schema), node, None, &Limits::DEFAULT));
        }
    }
    canonical::read(&mut Watched(reader), bytes, manner, |batch| {
        for assembler in &mut assemblers {
            let column_of = |leaf: usize| batch.columns.iter().find(|column| column.leaf == leaf);
            while let Ok(None) =
                watched(|| assembler.step(&batch, &column_of, &mut Budget::new(Budget::DEFAULT_UNITS)))
            {
            }
        }
        take(batch);
    })?;
    Ok(())
}

fn corpus() -> Vec<PathBuf> {
    let folders = ["parquet-testing/data", "real"];
    let paths =
        files::corpus().map(|corpus| folders.map(|folder| files::parquet_files(&corpus.join(folder))));
    paths.into_iter().flatten().flatten().collect()
}

#[test]
fn nothing_large_is_allocated() {
    let (mut used, mut faults) = (BTreeSet::new(), Vec::new());
    let options = [
        ReadOptions::default(),
        ReadOptions { keep_dictionaries: true, layout: Layout::Dense, ..ReadOptions::default() },
        ReadOptions { batch_rows: usize::MAX, verify_utf8: true, ..ReadOptions::default() },
    ];
    for path in corpus() {
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        for (number, options) in options.iter().enumerate() {
            let (bytes, options) = (bytes.clone(), options.clone());
            // Whether a file can be read is another test's question.
            let taken = on_a_small_stack(move || drop(read(&bytes, options, Manner::USUAL, |_| ())));
            judge(&format!("{}, options {number}", path.display()), &taken, &mut used, &mut faults);
        }
    }
    for (name, bytes) in crafted() {
        for options in &options {
            let (bytes, options) = (bytes.clone(), options.clone());
            let taken = on_a_small_stack(move || read(&bytes, options, Manner::USUAL, |_| ()).unwrap());
            judge(name, &taken, &mut used, &mut faults);
        }
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let unused: Vec<_> = EXCEPTIONS.iter().filter(|(part, _)| !used.contains(part)).collect();
    assert!(unused.is_empty(), "exceptions that are none: {unused:?}");
}

/// Reads a file, and writes what it holds, which is watched; then drops what was written.
fn write(bytes: &Bytes, options: WriteOptions) -> Result<()> {
    let mut batches = Vec::new();
    read(bytes, ReadOptions::default(), Manner::KIND, |batch| batches.push(batch))?;
    let schema = canonical::metadata(bytes, Manner::KIND)?.schema.clone();
    // What reading allocated is not looked at here.
    memory::start();
    let mut writer = watched(|| FileWriter::new(FILE, schema, Arc::new(StandardCodecs::default()), options))?;
    let mut left = batches.into_iter();
    loop {
        match watched(|| writer.step(&mut Budget::default()))? {
            Step::Ready(Room) => match left.next() {
                Some(batch) => drop(writer.feed(batch)?),
                None => writer.finish(),
            },
            Step::Done => return Ok(()),
            _ => {}
        }
    }
}

#[test]
fn nothing_large_is_allocated_in_writing() {
    let column = |codec: Option<Codec>| ColumnOptions {
        compression: codec.map_or(Compression::Uncompressed, Compression::Codec),
        ..ColumnOptions::default()
    };
    let codecs = [None, Some(Codec::Snappy), Some(Codec::Lz4Raw), Some(Codec::Gzip)];
    let mut options: Vec<WriteOptions> = codecs
        .map(|codec| WriteOptions { column: column(codec), ..WriteOptions::default() })
        .into_iter()
        .collect();
    // Pages and dictionaries that are themselves larger.
    options.push(WriteOptions {
        page_bytes: 4 << 20,
        page_rows: usize::MAX,
        dictionary_bytes: 4 << 20,
        page_version: PageVersion::V2,
        ..WriteOptions::default()
    });
    // So many hashes that they take more than a MiB, and become a filter of 2 MiB.
    let bloom = Some(BloomOptions { fpp: 0.0001, bytes_max: 2 << 20 });
    let column = ColumnOptions { bloom, dictionary: false, ..column(None) };
    options.push(WriteOptions { column, ..WriteOptions::default() });
    let (mut used, mut faults) = (BTreeSet::new(), Vec::new());
    for (name, bytes) in crafted() {
        for (number, options) in options.iter().enumerate() {
            let (bytes, options) = (bytes.clone(), options.clone());
            let taken = on_a_small_stack(move || write(&bytes, options).unwrap());
            judge(&format!("{name}, options {number}"), &taken, &mut used, &mut faults);
        }
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Files that have what is large.
fn crafted() -> Vec<(&'static str, Bytes)> {
    let many: Vec<i32> = (0..400_000).collect();
    let words: Vec<String> = many.iter().map(|number| format!("the word {number}")).collect();
    let count = i64::from(400_000);
    let one = |column, page: Page, codec| {
        let codec_page = page.compressed(codec);
        Table::new([column]).group(count, [Chunk::new(count, [codec_page]).codec(codec)]).write()
    };
    let lists = |entries_a_row: u32| {
        let mut elements = list("a", 1).to_vec();
        elements.push(leaf("element", 1, INT64));
        let repetition: Vec<u32> = (0..400_000).map(|entry| u32::from(entry % entries_a_row > 0)).collect();
        let definition: Vec<u32> = (0..400_000).map(|entry| 3 - u32::from(entry % 7 == 0)).collect();
        let there = definition.iter().filter(|&&level| level == 3).count();
        let values: Vec<i64> = (0..there).map(|value| i64::try_from(value).unwrap()).collect();
        let levels = [Levels { width: 1, levels: &repetition }, Levels { width: 2, levels: &definition }];
        let rows = repetition.iter().filter(|&&level| level == 0).count();
        let page = Page::nested(&levels, PLAIN, &plain_i64(&values));
        Table::nested(1, elements).group(i64::try_from(rows).unwrap(), [Chunk::new(count, [page])]).write()
    };
    vec![
        (
            "numbers in one page",
            one(Column::required("a", INT32), Page::data(400_000, PLAIN, plain_i32(&many)), SNAPPY),
        ),
        ("in ZSTD", one(Column::required("a", INT32), Page::data(400_000, PLAIN, plain_i32(&many)), ZSTD)),
        (
            "strings in one page",
            one(
                Column::required("a", BYTE_ARRAY),
                Page::data(400_000, PLAIN, plain_bytes(&words)),
                UNCOMPRESSED,
            ),
        ),
        (
            "strings that are built",
            one(
                Column::required("a", BYTE_ARRAY),
                Page::data(400_000, DELTA_BYTE_ARRAY, delta_byte_array(&words)),
                UNCOMPRESSED,
            ),
        ),
        ("lists of ten", lists(10)),
        ("lists of 20,000", lists(20_000)),
    ]
}

/// A column of `entries` different values, each in the dictionary at its number, and read from the last on.
fn dictionary_file(column: Column, entries: u32, dictionary: Vec<u8>, codec: i32) -> Bytes {
    let picks: Vec<u32> = (0..entries).rev().collect();
    let width = u32::BITS - entries.leading_zeros();
    let indices = [&[u8::try_from(width).unwrap()][..], &packed_run(&picks, width)].concat();
    let count = i32::try_from(entries).unwrap();
    let pages = [Page::dictionary(count, dictionary), Page::data(count, RLE_DICTIONARY, indices)];
    let pages = pages.map(|page| page.compressed(codec));
    Table::new([column]).group(count.into(), [Chunk::new(count.into(), pages).codec(codec)]).write()
}

#[test]
fn large_dictionaries_take_what_their_values_take() {
    const ENTRIES: u32 = 1_500_000;
    let numbers: Vec<i64> = (0..i64::from(ENTRIES)).map(|number| number * 77_777 - 5).collect();
    let text = |number: u32| {
        format!("{number} is a number{}", if number.is_multiple_of(3) { " of three" } else { "" })
    };
    let texts: Vec<String> = (0..ENTRIES).map(text).collect();
    let fixed = Column::required("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(8));
    let (plain_numbers, plain_texts) = (plain_i64(&numbers), plain_bytes(&texts));
    let text_column = || Column::required("a", BYTE_ARRAY).with(6, V::I32(0));
    let files = [
        (
            "INT64",
            dictionary_file(Column::required("a", INT64), ENTRIES, plain_numbers.clone(), UNCOMPRESSED),
            12,
        ),
        ("FIXED_LEN_BYTE_ARRAY", dictionary_file(fixed, ENTRIES, plain_numbers, UNCOMPRESSED), 12),
        // The page itself is the file's.
        ("BYTE_ARRAY", dictionary_file(text_column(), ENTRIES, plain_texts.clone(), UNCOMPRESSED), 24),
        ("in SNAPPY", dictionary_file(text_column(), ENTRIES, plain_texts, SNAPPY), 24 + 64),
    ];
    let (numbers, texts) = (Arc::new(numbers), Arc::new(texts));
    let (mut used, mut faults) = (BTreeSet::new(), Vec::new());
    let mut peaks = BTreeMap::new();
    for (name, bytes, entry_bytes) in files {
        for keep_dictionaries in [false, true] {
            let options = ReadOptions {
                keep_dictionaries,
                verify_utf8: true,
                read_bytes: u64::MAX,
                ..ReadOptions::default()
            };
            let (bytes, numbers, texts) = (bytes.clone(), Arc::clone(&numbers), Arc::clone(&texts));
            let taken = on_a_small_stack(move || {
                let mut next = numbers.len();
                let take = |batch: Batch| {
                    for row in 0..batch.rows {
                        next -= 1;
                        match &batch.columns[0].values {
                            Values::Int64(values) => assert_eq!(values[row], numbers[next]),
                            Values::FixedLenByteArray(values) => {
                                assert_eq!(values.get(row), numbers[next].to_le_bytes());
                            }
                            Values::ByteArray(values) => assert_eq!(values.get(row), texts[next].as_bytes()),
                            other => panic!("{other:?}"),
                        }
                    }
                };
                // In one piece: then what is not compressed is not copied.
                let manner = Manner { budget: Budget::DEFAULT_UNITS, ..Manner::KIND };
                read(&bytes, options, manner, take).unwrap();
                assert_eq!(next, 0);
            });
            judge(name, &taken, &mut used, &mut faults);
            peaks.insert(name, taken.peak_bytes);
            let most = u64::from(ENTRIES) * entry_bytes + (4 << 20);
            assert!(taken.peak_bytes <= most, "{name}: {} bytes held", taken.peak_bytes);
        }
    }
    println!("{peaks:#?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
