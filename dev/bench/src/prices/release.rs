//! What is released: arrays, strings, page indexes, metadata.

use marquetry_conformance::craft::{
    BYTE_ARRAY, Chunk, Column, INT32, INT64, PLAIN, Page, SNAPPY, Struct, Table, V, plain_bytes, plain_i32,
    plain_i64,
};

use super::{Case, Work};

const RELEASE: &str = "release.rs RELEASE_PRICE";

/// See [`super::cases`]. Memory is dearest where it is in the smallest pieces that are returned to the system: arrays
/// and segments of some hundred KiB. What is smaller stays with the allocator.
pub(super) fn cases(thousands: usize) -> Vec<Case> {
    let count = thousands * 1000;
    let of =
        |name: &str, bytes: usize, file| Case::new(RELEASE, name, bytes, file).bytes().work(Work::Release);
    let signed = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);

    let numbers: Vec<i64> = (0..signed(count)).collect();
    let pages = numbers.chunks(100_000).map(|numbers| {
        Page::data(i32::try_from(numbers.len()).unwrap_or(i32::MAX), PLAIN, plain_i64(numbers))
    });
    let numbers = Table::new([Column::required("v", INT64)])
        .group(signed(count), [Chunk::new(signed(count), pages)])
        .write();

    let strings = |length: usize, of_page: usize, snappy: bool| {
        let pages = (8 * count).div_ceil(length * of_page);
        let page = Page::data(
            i32::try_from(of_page).unwrap_or(i32::MAX),
            PLAIN,
            plain_bytes(std::iter::repeat_n(vec![b'x'; length], of_page)),
        );
        let page = if snappy { page.compressed(SNAPPY) } else { page };
        let chunk = Chunk::new(signed(pages * of_page), vec![page; pages]);
        let chunk = if snappy { chunk.codec(SNAPPY) } else { chunk };
        Table::new([Column::required("v", BYTE_ARRAY)]).group(signed(pages * of_page), [chunk]).write()
    };

    let place = |page: i64| V::Struct(Struct::of([(1, V::I64(4 + page)), (2, V::I32(1)), (3, V::I64(page))]));
    let bound = V::List(vec![V::Binary(vec![7; 4]); count]);
    let bounds = Struct::of([
        (1, V::List(vec![V::Bool(false); count])),
        (2, bound.clone()),
        (3, bound),
        (4, V::I32(0)),
        (5, V::List(vec![V::I64(3); count])),
    ]);
    let places = Struct::of([(1, V::List((0..signed(count)).map(place).collect()))]);
    let page = Page::data(i32::try_from(count).unwrap_or(i32::MAX), PLAIN, vec![0; 4 * count]);
    let chunk = Chunk::new(signed(count), [page]).indexed(places, bounds);
    let index = Table::new([Column::required("v", INT32)]).group(signed(count), [chunk]).write();

    let metadata = |groups: usize, length: usize| {
        let bound = || V::Binary(vec![b'x'; length]);
        let statistics = V::Struct(Struct::of([(3, V::I64(0)), (5, bound()), (6, bound())]));
        let chunk = Chunk::new(1, [Page::data(1, PLAIN, plain_i32(&[1]))]).with(12, statistics);
        let table = Table::new([Column::required("v", INT32)]);
        (0..groups).fold(table, |table, _| table.group(1, [chunk.clone()])).write()
    };

    vec![
        of("batches of INT64", 8 * count, numbers),
        of("batches of strings of 100 bytes, SNAPPY", 8 * count, strings(100, 10_000.min(count / 20), true)),
        of("batches of a long string", 8 * count, strings((4 << 20).min(count), 1, false)),
        of("a page index", 60 * count, index),
        of("bounds of 10 KB", 20 * count, metadata(count / 1000, 10_000)),
        of("bounds of 8 bytes", 6 * count, metadata(count / 100, 8)),
    ]
}
