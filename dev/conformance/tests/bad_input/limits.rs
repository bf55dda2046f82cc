//! Nothing takes more than its limit, counted by an allocator: a limit is checked before what exceeds it is allocated.
//!
//! What a library in C has for itself (zstd's window, if a frame refers back 2 MiB at the most) is not seen here: it asks before it
//! allocates, and its own tests count that.

use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Bytes, Detail, Error, ErrorKind, Limit, Limits, Machine, Object, Priority, Result, Step, Want,
};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::adversarial::{self, Expected, Scale};
use marquetry_conformance::craft::*;
use marquetry_io::ByteSource;
use marquetry_io::memory::Memory;
use marquetry_parquet::batch::{Layout, Values};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_testing::memory;

const FILE: Object = Object(0);

/// Bytes that may be held beyond a limit: the piece that the host is about to supply, small arrays of one slice, and what lists of
/// pieces take.
const SLACK_BYTES: u64 = 3 << 20;
/// Bytes that may be held besides for each column: its reader, and its part of a batch.
const COLUMN_BYTES: u64 = 4 << 10;

/// Bytes that the host supplies at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Drives a machine to its end.
fn drive<M: Machine>(
    machine: &mut M,
    file: &dyn ByteSource,
    units: u64,
    mut take: impl FnMut(M::Product),
) -> Result<()> {
    loop {
        match machine.step(&mut Budget::new(units))? {
            Step::Ready(product) => take(product),
            Step::Yield => {}
            Step::Done => return Ok(()),
            Step::Append(..) => panic!("a reader that writes"),
            Step::Need(demand) => {
                for want in demand.wants {
                    match want {
                        Want::Length(object) => machine.supply_length(object, file.length()?)?,
                        Want::Range(object, range, Priority::Now) => {
                            let mut start = range.start;
                            while start < range.end {
                                let end = range.end.min(start + PIECE_BYTES);
                                machine.supply(object, start..end, file.read(start..end)?)?;
                                start = end;
                            }
                        }
                        Want::Range(..) => {}
                    }
                }
            }
        }
    }
}

/// The rows of a file, or the error; and the most bytes that its reader held, and those that it may.
fn read(file: &dyn ByteSource, limits: Limits, units: u64, layout: Layout) -> (Result<u64>, u64, u64) {
    let mut metadata = None;
    // (The footer has limits of its own.)
    let mut footer = FooterReader::new(FILE, Limits { expansion: u64::MAX, ..Limits::DEFAULT });
    if let Err(error) = drive(&mut footer, file, units, |found| metadata = Some(found)) {
        return (Err(error), 0, 0);
    }
    drop(footer);
    let metadata = metadata.expect("metadata");
    let columns = u64_of(metadata.schema.leaves().len());
    let allowed = limits.total_of(metadata.file_bytes(), columns).1;
    let options =
        ReadOptions { limits, layout, verify_utf8: true, read_bytes: PIECE_BYTES, ..ReadOptions::default() };
    let peak = memory::peak();
    let codecs = Arc::new(StandardCodecs::new(limits));
    let mut reader = BatchReader::new(FILE, metadata, codecs, options).unwrap();
    let mut rows = 0;
    let read = drive(&mut reader, file, units, |batch| {
        rows += u64_of(batch.rows);
    });
    drop(reader);
    let held = u64_of(peak.bytes());
    (read.map(|()| rows), held, allowed.saturating_add(SLACK_BYTES + columns * COLUMN_BYTES))
}

fn limit_of(error: &Error) -> Option<Limit> {
    match error.detail() {
        Some(Detail::Limit(limit)) => Some(limit),
        _ => None,
    }
}

#[test]
fn nothing_adversarial_takes_more_than_its_limit() {
    let mut wrong = Vec::new();
    for name in adversarial::names() {
        let file = adversarial::make(&name, &Scale::SMALL).unwrap();
        for total_bytes in [4 << 30, 24 << 20, 6 << 20] {
            let limits = Limits { total_bytes, ..file.limits };
            for (units, layout) in [(Budget::DEFAULT_UNITS, Layout::Dense), (u64::MAX, Layout::Spaced)] {
                let (rows, held, allowed) = read(&file, limits, units, layout);
                if held > allowed {
                    wrong.push(format!("{name}: {held} bytes held, {allowed} allowed: {rows:?}"));
                }
                match (file.expected, &rows) {
                    (Expected::Rows(expected, _), Ok(rows)) if *rows == expected => {}
                    (Expected::Error(kind, _), Err(error)) if error.kind() == kind => {}
                    (_, Err(error)) if limit_of(error) == Some(Limit::TotalBytes) => {}
                    // What is wrong with it is in the page index, which is not read here.
                    (Expected::Error(..), Ok(_)) if name.starts_with("index/") => {}
                    _ => wrong.push(format!("{name}, {total_bytes} bytes in all: {rows:?}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Blocks of a ZSTD frame whose header is this: `head` as it is, then zeros.
fn zstd_zeros(header: &[u8], head: &[u8], zeros: usize) -> Vec<u8> {
    const BLOCK_BYTES: usize = 128 << 10;
    let block = |length: usize, kind: usize, is_last: bool| {
        let header = length << 3 | kind << 1 | usize::from(is_last);
        header.to_le_bytes()[..3].to_vec()
    };
    let mut frame = [&[0x28, 0xb5, 0x2f, 0xfd], header].concat();
    frame.extend([block(head.len(), 0, false), head.to_vec()].concat());
    let mut left = zeros;
    while left > 0 {
        let length = left.min(BLOCK_BYTES);
        left -= length;
        frame.extend([block(length, 1, left == 0), vec![0]].concat());
    }
    frame
}

/// A page of `bytes` whose body in the file is `packed`.
fn packed(mut page: Page, bytes: usize, body: Vec<u8>) -> Page {
    page.header.set(2, V::I32(i32::try_from(bytes).unwrap()));
    page.header.set(3, V::I32(i32::try_from(body.len()).unwrap()));
    page.body = body;
    page
}

/// A file of so many columns, each of which has these pages.
fn columns(count: usize, physical_type: i32, rows: i64, pages: &[Page]) -> Bytes {
    let columns = (0..count).map(|number| Column::required(&format!("c{number}"), physical_type));
    let chunks = (0..count).map(|_| Chunk::new(rows, pages.to_vec()).codec(ZSTD));
    Table::new(columns).group(rows, chunks).write()
}

/// The window that frames of level 19 ask for, and what else their decoder has.
const WINDOW_BYTES: usize = (8 << 20) + (512 << 10);

/// Strings of zeros.
fn long_string(bytes: usize) -> Page {
    let length = u32::try_from(bytes).unwrap().to_le_bytes();
    // A window of 8 MiB.
    packed(Page::data(1, PLAIN, Vec::new()), bytes + 4, zstd_zeros(&[0, 0x68], &length, bytes))
}

/// One row of so many elements, which all are the only value of the dictionary.
fn one_row(entries: i32) -> Bytes {
    let count = u64::try_from(entries).unwrap();
    let repetition = [repeated_run(1, 0, 1), repeated_run(count - 1, 1, 1)].concat();
    let levels = [prefixed(&repetition), prefixed(&repeated_run(count, 3, 2))].concat();
    let body = [levels, vec![1], repeated_run(count, 0, 1)].concat();
    let mut elements = list("a", 1).to_vec();
    elements.push(leaf("element", 1, INT64));
    let pages = [Page::dictionary(1, plain_i64(&[7])), Page::data(entries, RLE_DICTIONARY, body)];
    Table::nested(1, elements).group(1, [Chunk::new(entries.into(), pages)]).write()
}

#[test]
fn few_bytes_take_no_more_than_their_limit() {
    let numbers = |entries: usize| {
        let dictionary = Page::dictionary(i32::try_from(entries).unwrap(), plain_i64(&vec![0; entries]));
        let page = Page::data(3, RLE_DICTIONARY, [vec![1], repeated_run(3, 0, 1)].concat());
        [dictionary.compressed(ZSTD), page.compressed(ZSTD)]
    };
    let zeros = 2 << 20;
    let values = i32::try_from(zeros / 8).unwrap();
    let window = packed(Page::data(values, PLAIN, Vec::new()), zeros, zstd_zeros(&[0, 0x88], &[], zeros));
    let string = long_string(200_000_000);
    // What comes of it by default, and within 24 MiB.
    let files = [
        ("a list of two billion", one_row(2_000_000_000), None, None),
        ("a list of 16 million", one_row(16_000_000), Some(1), None),
        ("60 dictionaries of 32 MiB", columns(60, INT64, 3, &numbers(4 << 20)), None, None),
        ("10,000 dictionaries of 320 kB", columns(10_000, INT64, 3, &numbers(40_000)), None, None),
        ("100 windows of 128 MiB", columns(100, INT64, values.into(), &[window]), Some(values), None),
        ("a string of 200 MB", columns(1, BYTE_ARRAY, 1, std::slice::from_ref(&string)), Some(1), None),
        ("50 strings of 200 MB", columns(50, BYTE_ARRAY, 1, &[string]), None, None),
    ];
    for (name, bytes, by_default, in_little) in files {
        assert!(bytes.len() < 3 << 20, "{name}: {} bytes", bytes.len());
        let file = Memory::new(name, bytes);
        let little = Limits { total_bytes: 24 << 20, ..Limits::DEFAULT };
        for (limits, rows) in [(Limits::DEFAULT, by_default), (little, in_little)] {
            for units in [Budget::DEFAULT_UNITS, u64::MAX] {
                let (found, held, allowed) = read(&file, limits, units, Layout::Dense);
                assert!(held <= allowed, "{name}: {held} bytes held, {allowed} allowed: {found:?}");
                match (rows, found) {
                    (Some(rows), Ok(found)) => assert_eq!(rows, i32::try_from(found).unwrap(), "{name}"),
                    (None, Err(error)) => {
                        let limit = limit_of(&error);
                        assert!(
                            matches!(limit, Some(Limit::Expansion | Limit::TotalBytes)),
                            "{name}: {error}"
                        );
                    }
                    (_, found) => panic!("{name}: {found:?}"),
                }
            }
        }
    }
}

#[test]
fn a_long_string_is_there_once() {
    let length = 64 << 20;
    let file = Memory::new("string", columns(1, BYTE_ARRAY, 1, &[long_string(length)]));
    let (rows, held, _) = read(&file, Limits::DEFAULT, Budget::DEFAULT_UNITS, Layout::Spaced);
    assert_eq!(rows.unwrap(), 1);
    let most = u64_of(length + length / 8 + WINDOW_BYTES) + SLACK_BYTES;
    assert!(held > u64_of(length) && held <= most, "{held} bytes of {most}");
}

/// The last row of a column chunk is as long as the chunk says: what has arrived of it is joined ahead.
#[test]
fn a_row_whose_length_is_known_is_there_once() {
    let entries = 8_000_000;
    let file = Memory::new("row", one_row(entries));
    for units in [Budget::DEFAULT_UNITS, 0, u64::MAX] {
        let (rows, held, _) = read(&file, Limits::DEFAULT, units, Layout::Dense);
        assert_eq!(rows.unwrap(), 1);
        let bytes = u64::try_from(entries).unwrap() * 10;
        let most = bytes + bytes / 8 + 2 * SLACK_BYTES;
        assert!(held > bytes && held <= most, "{held} bytes of {most}");
    }
}

/// What is not compressed is the host's memory: a value in one piece is not copied.
#[test]
fn a_value_in_one_piece_is_the_hosts() {
    let length = 16 << 20;
    let page = Page::data(2, PLAIN, plain_bytes([vec![7; length], vec![9; 100]]));
    let bytes = Table::new([Column::required("a", BYTE_ARRAY)]).group(2, [Chunk::new(2, [page])]).write();
    let source = marquetry_io::ByteSources::new().with(FILE, Memory::new("file", bytes.clone()));
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    let metadata = marquetry_io::drive(&mut footer, &source).unwrap().unwrap();
    let options = ReadOptions { read_bytes: u64::MAX, ..ReadOptions::default() };
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options).unwrap();
    let peak = memory::peak();
    let batch = marquetry_io::drive(&mut reader, &source).unwrap().unwrap();
    let held = peak.bytes();
    let Values::ByteArray(values) = &batch.columns[0].values else { panic!("strings") };
    assert!(bytes.as_ptr_range().contains(&values.get(0).as_ptr()), "a copy");
    assert_eq!((values.get(0).len(), batch.columns[0].rows), (length, batch.rows));
    assert!(held < 2 << 20, "{held} bytes");
}

/// The test would notice: a reader with a limit that is too high takes more than a lower one allows.
#[test]
fn what_is_taken_is_seen() {
    let file = Memory::new("row", one_row(4_000_000));
    let (rows, held, allowed) = read(&file, Limits::DEFAULT, u64::MAX, Layout::Dense);
    assert_eq!(rows.unwrap(), 1);
    assert!(held > 40 << 20 && held < allowed, "{held} bytes of {allowed}");
    let limits = Limits { total_bytes: 24 << 20, ..Limits::DEFAULT };
    let (error, held, _) = read(&file, limits, u64::MAX, Layout::Dense);
    let error = error.unwrap_err();
    assert_eq!((error.kind(), limit_of(&error)), (ErrorKind::LimitExceeded, Some(Limit::TotalBytes)));
    assert!(held > 1 << 20, "{held} bytes");
}
