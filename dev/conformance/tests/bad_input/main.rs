//! Bad input: a typed error with its place, or an answer; never a panic, a hang, or memory that the bytes do not justify.

mod hosts;
mod indexes;
mod lies;
mod limits;
mod nesting;
mod pieces;

use std::sync::Arc;

use marquetry_base::{Bytes, Error, ErrorKind, Limits, Machine, Place, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::files;
use marquetry_conformance::hostile::{self, Manner, Random};
use marquetry_parquet::batch::{Batch, Layout, Values};
use marquetry_parquet::format::{FileMetaData, PageHeader};
use marquetry_parquet::prune::LeafOrder;
use marquetry_parquet::read::{
    BatchReader, BloomProbe, ChunkIndex, PageIndexReader, PageScanner, ReadOptions,
};
use marquetry_parquet::thrift::Stop;
use marquetry_testing::memory::{self, Counting};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Memory that reading any small file may take at its peak, beside what follows from its size: a batch of 16 MiB where a
/// schema claims wide values, its successor, and room for a hundred smaller arrays.
const PEAK_BYTES_MAX: usize = 48 << 20;

/// Memory a byte of the file may take: a field of three bytes becomes a structure of some hundreds, in a vector that
/// doubles.
const PEAK_BYTES_PER_BYTE: usize = 1024;

/// Batches and pages after which a file counts as answered: a few bytes can stand for billions of nulls.
const PRODUCTS_MAX: usize = 50;

/// Steps that a small file may take for them, a thousand times what good ones do.
const STEPS_MAX: u64 = 50_000;

/// Reads all there is to read of a file: footer, batches, page headers. Checks whatever error comes.
fn examine(bytes: &Bytes, layout: Layout) -> Result<()> {
    let peak = memory::peak();
    let result = read_all(bytes, layout);
    let peak = peak.bytes();
    let allowed = PEAK_BYTES_MAX + PEAK_BYTES_PER_BYTE * bytes.len();
    assert!(peak <= allowed, "{peak} bytes allocated for a file of {}: {result:?}", bytes.len());
    if let Err(error) = &result {
        check_error(error);
    }
    result
}

fn check_error(error: &Error) {
    let blame = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::LimitExceeded];
    assert!(blame.contains(&error.kind()), "{error:?}");
    assert!(!error.message().is_empty());
    let has_place = *error.place() != Place::default();
    assert!(
        has_place || error.message().starts_with("a Parquet file of"),
        "an error without a place: {error:?}"
    );
}

fn read_all(bytes: &Bytes, layout: Layout) -> Result<()> {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let leaves = metadata.schema.leaves();
    let options = ReadOptions { layout, ..ReadOptions::default() };
    let codecs = Arc::new(StandardCodecs::default());
    let batches = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options)
        .and_then(|mut reader| some_products(&mut reader, bytes, check_batch));
    let mut pages = Ok(());
    for group in 0..metadata.row_groups.len() {
        for leaf in 0..leaves.len() {
            let scanned = PageScanner::new(FILE, &metadata, group, leaf, Limits::DEFAULT)
                .and_then(|mut scanner| some_products(&mut scanner, bytes, |_| ()));
            if let Err(error) = &scanned {
                check_error(error);
            }
            pages = pages.and(scanned);
            let has_filter = metadata.row_groups[group].columns[leaf].bloom_filter.is_some();
            let asked = BloomProbe::new(FILE, &metadata, group, leaf, vec![0, u64::MAX])
                .and_then(|mut probe| some_products(&mut probe, bytes, |_| ()));
            if let (true, Err(error)) = (has_filter, &asked) {
                check_error(error);
            }
        }
    }
    let indexes = PageIndexReader::new(FILE, Arc::clone(&metadata), &ReadOptions::default())
        .and_then(|mut reader| some_products(&mut reader, bytes, |index| check_index(&metadata, &index)));
    if let Err(error) = &indexes {
        check_error(error);
    }
    batches.and(pages).and(indexes)
}

/// Whatever the file says, what is handed out keeps the machine's promises.
fn check_index(metadata: &FileMetaData, index: &ChunkIndex) {
    let rows = metadata.row_groups[index.row_group].rows;
    let pages = &index.offset_index.pages;
    let counted: u64 = (0..pages.len()).map(|page| index.offset_index.rows(page, rows).expect("rows")).sum();
    assert!(counted == rows || pages.is_empty());
    assert!(pages.iter().all(|page| page.offset + u64::from(page.compressed_bytes) <= metadata.footer_start));
    let order = LeafOrder::of(metadata, index.leaf).expect("a leaf");
    if let Some(bounds) = &index.column_index {
        assert_eq!(
            (bounds.pages(), bounds.min_values.len(), bounds.max_values.len()),
            (pages.len(), pages.len(), pages.len())
        );
        for page in 0..pages.len() {
            let known = order.of_page(bounds, page);
            assert!(known.min.is_none() || known.max.is_none() || !known.is_only_nulls);
            assert!(bounds.definition_levels(page).len() <= 1 + usize::from(u16::MAX));
        }
    }
}

fn check_batch(batch: Batch) {
    assert!(batch.rows > 0);
    for column in batch.columns {
        if let Some(levels) = &column.levels {
            assert_eq!(levels.definition.len(), column.values.len() + column.nulls);
            let repetition = levels.repetition.as_ref();
            assert!(
                repetition
                    .is_none_or(|levels| levels.iter().filter(|level| **level == 0).count() == batch.rows)
            );
            continue;
        }
        let there = if column.layout == Layout::Dense { column.rows - column.nulls } else { column.rows };
        assert_eq!((column.rows, column.values.len()), (batch.rows, there));
        // Looks at every byte, but does not print megabytes.
        let is_wide = matches!(&column.values, Values::FixedLenByteArray(values) if values.width() > 1000);
        if column.rows < 100 && !is_wide {
            assert!(!format!("{column:?}").is_empty());
        }
    }
}

fn some_products<M: Machine>(machine: &mut M, bytes: &Bytes, mut check: impl FnMut(M::Product)) -> Result<()>
where
    M::Product: std::fmt::Debug + PartialEq,
{
    const ENOUGH: &str = "enough was read";
    let mut products = 0;
    let result = hostile::run(machine, FILE, bytes, Manner::KIND, |product| {
        check(product);
        products += 1;
        if products == PRODUCTS_MAX { Err(Error::io(ENOUGH)) } else { Ok(()) }
    });
    match result {
        Ok(report) => assert!(report.steps < STEPS_MAX, "{} steps", report.steps),
        Err(error) if error.message() == ENOUGH => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Three files of less than a kilobyte that between them have most of what can go wrong.
fn small_files() -> Vec<(&'static str, Table)> {
    let text = |index: usize| format!("{}{index}", "a text ".repeat(index % 4));
    let texts: Vec<String> = (0..6).map(text).collect();
    let mut picks = vec![2];
    picks.extend(packed_run(&[0, 1, 2, 3, 4, 5, 3, 1], 3));
    let picks_3 = [&[3][..], &picks[1..], &repeated_run(12, 5, 3)].concat();
    let dictionary = Table::new([Column::required("text", BYTE_ARRAY).with(6, V::I32(0))]).group(
        20,
        [Chunk::new(
            20,
            [
                Page::dictionary(6, plain_bytes(&texts)).compressed(SNAPPY),
                Page::data(20, RLE_DICTIONARY, picks_3).compressed(SNAPPY),
            ],
        )
        .codec(SNAPPY)],
    );
    let integers: Vec<i64> = (0..40).map(|i| i * i * 1001).collect();
    let sorted: Vec<String> = (0..20).map(|i| format!("prefix{:02}", i / 2)).collect();
    let delta_pages = Table::new([Column::required("i", INT64), Column::required("s", BYTE_ARRAY)]).group(
        40,
        [
            Chunk::new(
                40,
                [Page::data_v2(40, 0, DELTA_BINARY_PACKED, &[], &delta(&integers, 128, 4)).compressed(ZSTD)],
            )
            .codec(ZSTD),
            Chunk::new(
                40,
                [
                    Page::data_v2(20, 0, DELTA_BYTE_ARRAY, &[], &delta_byte_array(&sorted)).compressed(ZSTD),
                    Page::data(20, DELTA_LENGTH_BYTE_ARRAY, delta_length(&sorted)).compressed(ZSTD),
                ],
            )
            .codec(ZSTD),
        ],
    );
    let there: Vec<bool> = (0..20).map(|row| row % 3 > 0).collect();
    let dense: Vec<i32> = (0..13).collect();
    let statistics = V::Struct(Struct::of([
        (3, V::I64(7)),
        (5, V::Binary(vec![12, 0, 0, 0])),
        (6, V::Binary(vec![0; 4])),
    ]));
    let nullable = Table::new([
        Column::optional("n", INT32),
        Column::optional("fixed", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(3)),
        Column::required("flag", BOOLEAN),
    ])
    .group(
        20,
        [
            Chunk::new(20, [Page::data(20, PLAIN, [prefixed(&levels(&there)), plain_i32(&dense)].concat())])
                .with(12, statistics),
            Chunk::new(20, [Page::data_v2(20, 7, PLAIN, &levels(&there), &[7; 39])]),
            Chunk::new(20, [Page::data(20, RLE, prefixed(&levels(&there)))]),
        ],
    );
    vec![
        ("dictionary", dictionary),
        ("delta", delta_pages),
        ("nullable", nullable),
        ("nested", nested_file()),
        ("indexed", indexes::indexed_file()),
    ]
}

/// Lists of nullable integers: `[1, 2], [], null, [null, 3]`, twice.
fn nested_file() -> Table {
    let group = |name, repetition| Struct::of([(3, V::I32(repetition)), (4, V::text(name)), (5, V::I32(1))]);
    let element = Column::optional("element", INT32);
    let schema = [group("schema", 0), group("a", 1), group("list", 2), element.element.clone()];
    let repetition = packed_run(&[0, 1, 0, 0, 0, 1], 1);
    let definition = packed_run(&[3, 3, 1, 0, 2, 3], 2);
    let values = plain_i32(&[1, 2, 3]);
    let length = |levels: &[u8]| V::I32(levels.len().try_into().unwrap());
    let v1 = Page::data(6, PLAIN, [prefixed(&repetition), prefixed(&definition), values.clone()].concat());
    let v2 = Page::data_v2(6, 3, PLAIN, &[&repetition[..], &definition].concat(), &values)
        .with_own(3, V::I32(4))
        .with_own(5, length(&definition))
        .with_own(6, length(&repetition));
    let mut table = Table::new([element]).group(8, [Chunk::new(12, [v1, v2])]);
    table.footer.set(2, V::List(schema.map(V::Struct).to_vec()));
    table
}

#[test]
fn the_small_files_are_good() {
    for (name, table) in small_files() {
        let bytes = table.write();
        assert!(bytes.len() < 1000, "{name} has {} bytes", bytes.len());
        examine(&bytes, Layout::Spaced).unwrap();
        examine(&bytes, Layout::Dense).unwrap();
    }
}

#[test]
fn bad_files_of_the_corpus() {
    let Some(corpus) = files::corpus() else { return };
    let mut paths = files::parquet_files(&corpus.join("parquet-testing/bad_data"));
    let data = corpus.join("parquet-testing/data");
    paths.push(data.join("datapage_v1-corrupt-checksum.parquet"));
    paths.push(data.join("rle-dict-uncompressed-corrupt-checksum.parquet"));
    assert!(paths.len() > 8);
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        let result = examine(&bytes, Layout::Spaced);
        println!("{name}: {result:?}");
        let may_be_read = BAD_BUT_ANSWERED.iter().any(|(known, _)| *known == name);
        assert_eq!(result.is_ok(), may_be_read, "{name}: {result:?}");
    }
}

/// Files of `bad_data` that are answered, each with its reason.
const BAD_BUT_ANSWERED: &[(&str, &str)] =
    &[("ARROW-GH-43605.parquet", "indices of no bits, which a dictionary of one entry may have")];

#[test]
fn every_truncation() {
    for (name, table) in small_files() {
        let bytes = table.write();
        for cut in 0..bytes.len() {
            let error = examine(&bytes.slice(..cut), Layout::Spaced).expect_err("a file cut off");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name} cut at {cut}: {error:?}");
        }
        // A byte that is missing within shifts all that follows it.
        for gone in 0..bytes.len() {
            let mut without = bytes.to_vec();
            without.remove(gone);
            let _ = examine(&without.into(), Layout::Dense);
        }
    }
}

#[test]
fn every_change_of_every_byte() {
    let mut changed = Tally::default();
    for (_, table) in small_files() {
        let mut bytes = table.write().to_vec();
        for at in 0..bytes.len() {
            for change in 1..=255 {
                bytes[at] ^= change;
                changed.examine(&bytes, at + usize::from(change));
                bytes[at] ^= change;
            }
        }
    }
    println!("single-byte changes: {changed:?}");
    assert!(changed.good > 10_000 && changed.bad > 10_000);
}

#[test]
#[ignore = "soak: two million files of several changed bytes"]
fn changes_of_several_bytes() {
    let mut random = Random(0x5851_f42d_4c95_7f2d);
    let files: Vec<Vec<u8>> = small_files().into_iter().map(|(_, table)| table.write().to_vec()).collect();
    let mut changed = Tally::default();
    for number in 0..2_000_000 {
        let mut bytes = files[number % files.len()].clone();
        for _ in 0..2 + random.below(3) {
            let at = random.index(bytes.len());
            bytes[at] = random.byte();
        }
        changed.examine(&bytes, number);
    }
    println!("changes of several bytes: {changed:?}");
    assert!(changed.good > 10_000 && changed.bad > 10_000);
}

/// What came of many files.
#[derive(Debug, Default)]
struct Tally {
    good: usize,
    bad: usize,
}

impl Tally {
    fn examine(&mut self, bytes: &[u8], number: usize) {
        let layout = if number.is_multiple_of(2) { Layout::Spaced } else { Layout::Dense };
        match examine(&Bytes::copy_from_slice(bytes), layout) {
            Ok(()) => self.good += 1,
            Err(_) => self.bad += 1,
        }
    }
}

/// A footer that was good until something happened to it.
fn mutate(footer: &[u8], random: &mut Random) -> Vec<u8> {
    let mut footer = footer.to_vec();
    for _ in 0..1 + random.below(6) {
        let at = random.index(footer.len());
        let byte = random.byte();
        match random.below(5) {
            0 => footer[at] = byte,
            1 => footer[at] ^= 1 << (byte % 8),
            2 => footer.insert(at, byte),
            3 if footer.len() > 1 => drop(footer.remove(at)),
            _ => {
                // A part of it again, somewhere else.
                let end = (at + usize::from(byte % 30)).min(footer.len());
                let part = footer[at..end].to_vec();
                let to = random.index(footer.len());
                footer.splice(to..to, part);
            }
        }
    }
    footer
}

fn random_thrift(cases: usize, seed: u64) {
    let mut random = Random(seed);
    let files: Vec<Vec<u8>> = small_files()
        .into_iter()
        .flat_map(|(_, table)| [table.clone(), Table { unknown_fields: true, ..table }])
        .map(|table| table.write().to_vec())
        .collect();
    let (mut good, mut headers) = (0, 0);
    for number in 0..cases {
        let file = &files[number % files.len()];
        let tail = file.len() - 8;
        let footer_bytes = u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) as usize;
        let (pages, footer) = file[..tail].split_at(tail - footer_bytes);
        let footer = if number.is_multiple_of(4) {
            (0..random.below(100)).map(|_| random.byte()).collect()
        } else {
            mutate(footer, &mut random)
        };
        let layout = if number.is_multiple_of(2) { Layout::Spaced } else { Layout::Dense };
        if examine(&end_file(pages.to_vec(), &footer), layout).is_ok() {
            good += 1;
        }
        let header = if number.is_multiple_of(2) { footer } else { mutate(&pages[4..], &mut random) };
        match PageHeader::read(&header) {
            Ok((_, length)) => {
                assert!(length <= header.len());
                headers += 1;
            }
            Err(stop) => assert!(matches!(stop, Stop::End | Stop::Corrupt(..)), "{stop:?}"),
        }
    }
    println!("random Thrift: {cases} cases, {good} answered, {headers} page headers");
    assert!(good > 0 && headers > 0);
}

#[test]
fn random_thrift_as_footers_and_page_headers() {
    random_thrift(100_000, 0x9e37_79b9_7f4a_7c15);
}

#[test]
#[ignore = "soak: ten million cases"]
fn much_random_thrift() {
    random_thrift(10_000_000, 0x0123_4567_89ab_cdef);
}

#[test]
fn footer_lengths() {
    let bytes = small_files()[0].1.write().to_vec();
    let length_at = bytes.len() - 8;
    let room = u32::try_from(length_at).unwrap() - 4;
    // `length + 8` wraps around for the largest of them.
    let lengths =
        (0xffff_fff0..=u32::MAX).chain([room + 1, room + 2, room + 4, 1 << 31, (1 << 31) - 1, 0x7fff_fff8]);
    for length in lengths {
        let mut lying = bytes.clone();
        lying[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        let error = examine(&lying.into(), Layout::Spaced).unwrap_err();
        assert_eq!(error.message(), format!("a footer of {length} bytes in a file that has room for {room}"));
        assert_eq!(error.place().offset, Some(length_at as u64));
    }
    for length in 0..=room {
        let mut lying = bytes.clone();
        lying[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        let _ = examine(&lying.into(), Layout::Spaced);
    }
    for size in 0..12 {
        let error = examine(&vec![b'P'; size].into(), Layout::Spaced).unwrap_err();
        assert_eq!(error.message(), format!("a Parquet file of {size} bytes: the smallest has 12"));
    }
    let mut large = b"PAR1".to_vec();
    large.resize(100, 0);
    large.extend(&(300u32 << 20).to_le_bytes());
    large.extend(b"PAR1");
    assert!(examine(&large.into(), Layout::Spaced).is_err());
}
