//! What takes many steps to make is released in many: counted in units, and in bytes that an allocator sees freed.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bitmap, Budget, Bytes, Machine, RELEASE_PRICE, Release, Segmented, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::batch::{
    Array, ArrayKind, Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Levels as BatchLevels, Values,
};
use marquetry_parquet::format::{ColumnIndex, FileMetaData, OffsetIndex, PageLocation};
use marquetry_parquet::read::{
    BatchReader, ChunkIndex, Conform, ConformReader, FooterReader, PageIndexReader, ReadOptions,
};
use marquetry_parquet::schema::Plan as _;
use marquetry_testing::memory;

/// What this thread holds, beside 1 TiB: it may free what others allocated.
fn held() -> usize {
    usize::try_from(memory::held() + (1 << 40)).expect("less is freed")
}

/// What is freed at once, at most: a window that somebody else owns.
const SLICE_BYTES: usize = 1 << 20;

/// Releases what `make` makes, with no budget and with the usual one.
fn check<T: Release>(name: &str, make: impl Fn() -> T) {
    for units in [0, Budget::DEFAULT_UNITS] {
        let before = held();
        let mut thing = make();
        let bytes = held() - before;
        assert!(bytes > 16 << 20, "{name}: {bytes} bytes are not many");
        let mut sum = 0;
        for calls in 1.. {
            let (holds, mut budget) = (held(), Budget::new(units));
            let is_done = thing.release(&mut budget);
            let freed = holds.saturating_sub(held());
            let slice = RELEASE_PRICE.of(SLICE_BYTES, 10);
            assert!(budget.spent() <= units.max(slice), "{name}: {} units", budget.spent());
            // The last value of a segment pays little, but the others did.
            let paid = usize_of(budget.spent()).unwrap() * 8 + (256 << 10);
            assert!(freed <= paid, "{name}: {freed} bytes for {} units", budget.spent());
            sum += budget.spent();
            if is_done {
                break;
            }
            assert!(budget.spent() > 0 && calls < 10_000_000, "{name}: a call that does nothing");
        }
        let left = held() - before;
        assert!(left < 1 << 20, "{name}: dropping frees {left} bytes of {bytes}");
        assert!(sum >= RELEASE_PRICE.of(bytes - left, 0) / 10 * 9, "{name}: {sum} units for {bytes} bytes");
        let mut again = Budget::new(0);
        assert!(thing.release(&mut again) && again.spent() == 0, "{name}: released again");
    }
}

const MIB: usize = 1 << 20;

fn column(values: Values, rows: usize) -> ColumnBatch {
    let (validity, layout, levels) = (None, Layout::Spaced, None);
    ColumnBatch { leaf: 0, rows, nulls: 0, validity, values, layout, levels, provisional: false }
}

fn batch(columns: Vec<ColumnBatch>) -> Batch {
    Batch { row_group: 0, first_row: 0, rows: columns[0].rows, columns }
}

/// Strings in so many buffers.
fn strings(buffers: Vec<Bytes>) -> Values {
    Values::ByteArray(ByteArrays::new(vec![1_u128; MIB].into(), Arc::new(buffers)))
}

#[test]
fn batches_and_arrays() {
    check("numbers", || batch(vec![column(vec![7_i64; 4 * MIB].into(), 4 * MIB); 1]));
    check("many columns", || batch((0..20_000).map(|_| column(vec![7_i64; 200].into(), 200)).collect()));
    check("a validity and levels", || {
        let levels =
            BatchLevels { definition: vec![1; 20 * MIB].into(), repetition: Some(vec![0; 20 * MIB].into()) };
        let validity = Some(Bitmap::new(vec![255; 4 * MIB].into(), 0, 32 * MIB));
        batch(vec![ColumnBatch { validity, levels: Some(levels), ..column(vec![7_i32].into(), 1) }])
    });
    check("strings, in windows that a reader's pool shared", || {
        batch(vec![column(strings((0..32).map(|_| Bytes::from_owner(vec![1; MIB - 1])).collect()), MIB)])
    });
    check("one string", || batch(vec![column(strings(vec![vec![1; 40 * MIB].into()]), 1)]));
    check("a part of one string", || {
        let mut bytes = Bytes::from(vec![1; 40 * MIB]);
        bytes = bytes.slice(100..200);
        batch(vec![column(strings(vec![bytes]), 1)])
    });
    check("one dictionary of two columns", || {
        let dictionary =
            Arc::new(Values::FixedLenByteArray(FixedBytes::new(MIB, 30, vec![1; 30 * MIB].into())));
        let indices = || vec![1_u32; MIB].into();
        batch(vec![
            column(Values::Dictionary(indices(), Arc::clone(&dictionary)), MIB),
            column(Values::Dictionary(indices(), dictionary), MIB),
        ])
    });
    check("a list", || {
        let kind = ArrayKind::Values(vec![1_i64; 8 * MIB].into());
        let array = |kind| Array { node: 1, length: 1, nulls: 0, validity: None, kind };
        array(ArrayKind::Struct(vec![array(ArrayKind::List(vec![1; 4 * MIB].into(), Box::new(array(kind))))]))
    });
}

fn place(page: u64) -> PageLocation {
    PageLocation { offset: page, compressed_bytes: 1, first_row: page }
}

#[test]
fn page_indexes() {
    const PAGES: u64 = 1_000_000;
    check("a page index", || ChunkIndex {
        row_group: 0,
        leaf: 0,
        offset_index: OffsetIndex {
            pages: (0..PAGES).map(place).collect(),
            unencoded_byte_array_data_bytes: Some((0..PAGES).collect()),
        },
        column_index: Some(ColumnIndex {
            null_pages: (0..PAGES).map(|_| false).collect(),
            min_values: (0..PAGES).map(u64::to_le_bytes).collect(),
            max_values: (0..PAGES).map(u64::to_be_bytes).collect(),
            null_counts: Some((0..PAGES).collect()),
            definition_level_histograms: Some((0..2 * PAGES).collect()),
            ..ColumnIndex::default()
        }),
    });
}

/// A file of so many row groups, whose bounds have so many bytes.
fn many_groups(groups: usize, bound: usize) -> Bytes {
    let bound = || V::Binary(vec![b'x'; bound]);
    let chunk = Chunk::new(1, [Page::data(1, PLAIN, plain_i32(&[1]))])
        .with(12, V::Struct(Struct::of([(3, V::I64(0)), (5, bound()), (6, bound())])));
    let mut table = Table::new([Column::required("a", INT32)]);
    for _ in 0..groups {
        table = table.group(1, [chunk.clone()]);
    }
    table.write()
}

#[test]
fn metadata() {
    for (name, groups, bound) in [("long bounds", 1_000, 15_000), ("short bounds", 30_000, 8)] {
        let file = many_groups(groups, bound);
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        // (What is cloned for the first time becomes shared, which takes memory.)
        drop(own(&metadata));
        check(name, || own(&metadata));
        // Shared metadata is somebody else's.
        let mut shared = Arc::clone(&metadata);
        assert!(shared.release(&mut Budget::new(0)));
        assert_eq!(metadata.row_groups.len(), groups);
    }
}

/// Metadata whose bounds are its own, not the reader's.
fn own(metadata: &FileMetaData) -> FileMetaData {
    let mut own = metadata.clone();
    for chunk in own.row_groups.iter_mut().flat_map(|group| group.columns.iter_mut()) {
        let Some(statistics) = &mut chunk.statistics else { continue };
        for bound in [&mut statistics.min_value, &mut statistics.max_value] {
            *bound = bound.as_ref().map(|bytes| bytes.to_vec().into());
        }
    }
    own
}

/// Drives a machine with pieces of so many bytes that it alone holds, for at most so many steps. What a step frees is at
/// most what it may, however much is dropped in between.
fn drive<M: Machine>(
    machine: &mut M,
    file: &Bytes,
    piece: usize,
    steps: usize,
    mut take: impl FnMut(M::Product),
) -> usize {
    let mut freed_max = 0;
    for _ in 0..steps {
        let before = held();
        let step = machine.step(&mut Budget::default()).unwrap();
        freed_max = freed_max.max(before.saturating_sub(held()));
        match step {
            Step::Ready(product) => take(product),
            Step::Done => return freed_max,
            Step::Yield => {}
            Step::Append(..) => unreachable!("a reader that writes"),
            Step::Need(demand) => {
                for want in demand.wants {
                    match want {
                        Want::Length(object) => machine.supply_length(object, u64_of(file.len())).unwrap(),
                        Want::Range(object, range, _) => {
                            let end = usize_of(range.end).unwrap();
                            let mut at = usize_of(range.start).unwrap();
                            while at < end {
                                let next = end.min(at + piece);
                                let bytes = file[at..next].to_vec().into();
                                machine.supply(object, u64_of(at)..u64_of(next), bytes).unwrap();
                                at = next;
                            }
                        }
                    }
                }
            }
        }
    }
    freed_max
}

fn reader(file: &Bytes) -> BatchReader {
    let metadata = canonical::metadata(file, Manner::KIND).unwrap();
    let codecs = Arc::new(StandardCodecs::default());
    BatchReader::new(FILE, metadata, codecs, ReadOptions::default()).unwrap()
}

/// Strings of many bytes, each a page, after a dictionary of others.
fn long_strings(length: usize) -> Bytes {
    let value = |byte: u8| plain_bytes([vec![byte; length]]);
    let mut pages =
        vec![Page::dictionary(1, value(0)), Page::data(1, 8, [&[1][..], &repeated_run(1, 0, 1)].concat())];
    pages.extend((1..4).map(|byte| Page::data(1, PLAIN, value(byte))));
    Table::new([Column::required("v", BYTE_ARRAY)]).group(4, [Chunk::new(4, pages)]).write()
}

#[test]
fn a_reader_releases_a_long_value_in_slices() {
    let file = long_strings(24 * MIB);
    let mut reader = reader(&file);
    let mut rows = 0;
    // The host drops each batch at once, before the page that it is of.
    let freed_max = drive(&mut reader, &file, 64 << 10, usize::MAX, |batch| rows += batch.rows);
    assert_eq!(rows, 4);
    assert!(freed_max <= 4 * MIB, "{freed_max} bytes in a step");
}

#[test]
fn machines_that_are_abandoned() {
    let strings = long_strings(24 * MIB);
    check_machine("a reader of batches", &[6, 20, 30], &strings, || reader(&strings));
    let groups = many_groups(1_000, 15_000);
    check_machine("a footer", &[4, 12, 20], &groups, || {
        FooterReader::new(FILE, marquetry_base::Limits::DEFAULT)
    });
    let (index, metadata) = indexed(500_000, 3);
    check_machine("a page index", &[4, 12, 20], &index, || {
        PageIndexReader::new(FILE, Arc::clone(&metadata), &ReadOptions::default()).unwrap()
    });
    check_machine("a conforming reader", &[6, 20, 30], &strings, || {
        let metadata = canonical::metadata(&strings, Manner::KIND).unwrap();
        let columns = [Column::optional("v", BYTE_ARRAY), Column::optional("w", INT64)];
        let other = canonical::metadata(&Table::new(columns).write(), Manner::KIND).unwrap();
        let plan = Conform::plan(Arc::clone(&metadata.schema), Arc::clone(&other.schema), &[]);
        let conform = Arc::new(plan.at_once().unwrap());
        let codecs = Arc::new(StandardCodecs::default());
        ConformReader::new(FILE, metadata, codecs, ReadOptions::default(), conform, Vec::new()).unwrap()
    });
}

/// Releases a machine as soon as it holds so many MiB: little is left, and it cannot be used any more.
fn check_machine<M: Machine + Release>(name: &str, mib: &[usize], file: &Bytes, make: impl Fn() -> M) {
    for mib in mib {
        let before = held();
        let mut machine = make();
        for steps in 0.. {
            if held() - before > mib * MIB {
                break;
            }
            assert!(steps < 100_000, "{name}: it never holds {mib} MiB");
            drive(&mut machine, file, 64 << 10, 1, drop);
        }
        loop {
            let (holds, mut budget) = (held(), Budget::new(0));
            let is_done = machine.release(&mut budget);
            let freed = holds.saturating_sub(held());
            assert!(freed <= SLICE_BYTES + 4096, "{name}: {freed} bytes in a call");
            if is_done {
                break;
            }
        }
        let left = held() - before;
        assert!(left < MIB, "{name}: dropping frees {left} bytes");
        assert!(machine.step(&mut Budget::default()).is_err(), "{name}");
    }
}

/// A file with an index of so many pages, which are not there, and its metadata. The last page has so many nulls.
fn indexed(pages: i64, last_count: i64) -> (Bytes, Arc<FileMetaData>) {
    let place = |page: i64| V::Struct(Struct::of([(1, V::I64(4 + page)), (2, V::I32(1)), (3, V::I64(page))]));
    let count = usize::try_from(pages).unwrap();
    let bound = V::List(vec![V::Binary(vec![7; 4]); count]);
    let mut nulls = vec![V::I64(3); count];
    nulls[count - 1] = V::I64(last_count);
    let column = Struct::of([
        (1, V::List(vec![V::Bool(false); count])),
        (2, bound.clone()),
        (3, bound),
        (4, V::I32(0)),
        (5, V::List(nulls)),
    ]);
    let offset = Struct::of([(1, V::List((0..pages).map(place).collect()))]);
    let mut page = Page::data(1, PLAIN, vec![0; count]);
    page.header.set(3, V::I32(pages.try_into().unwrap()));
    let chunk = Chunk::new(pages, [page]).indexed(offset, column);
    let file = Table::new([Column::required("a", INT32)]).group(pages, [chunk]).write();
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    (file, metadata)
}

#[test]
fn nothing_of_a_page_index_is_in_one_piece() {
    const PAGES: i64 = 500_000;
    let (file, metadata) = indexed(PAGES, 3);
    let mut reader = PageIndexReader::new(FILE, metadata, &ReadOptions::default()).unwrap();
    let (mut pages, mut products) = (0, Vec::new());
    products.reserve(1);
    memory::largest();
    drive(&mut reader, &file, 64 << 10, usize::MAX, |index| products.push(index));
    let largest = memory::largest();
    for index in &products {
        pages += index.offset_index.pages.len();
        let bounds = index.column_index.as_ref().unwrap();
        assert!((0..pages).all(|page| bounds.min_values.get(page) == [7; 4]));
        assert_eq!(bounds.null_counts.as_ref().map(Segmented::len), Some(pages));
    }
    assert_eq!(pages, usize::try_from(PAGES).unwrap());
    assert!(largest < MIB, "{largest} bytes in one allocation");
}

/// A list that turns out to be useless is released in slices, too: its last count is none.
#[test]
fn a_useless_list_of_an_index_is_released_in_slices() {
    let (file, metadata) = indexed(500_000, -1);
    let mut reader = PageIndexReader::new(FILE, metadata, &ReadOptions::default()).unwrap();
    let mut products = Vec::new();
    let freed_max = drive(&mut reader, &file, 64 << 10, usize::MAX, |index| products.push(index));
    let bounds = products[0].column_index.as_ref().unwrap();
    assert!(bounds.null_counts.is_none() && bounds.pages() == 500_000);
    assert!(freed_max <= 2 * MIB, "{freed_max} bytes in a step");
}
