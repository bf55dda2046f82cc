//! What real writers did although the format does not allow it (docs/decisions/03-faults-of-real-writers.md), and what is
//! odd but legal: values of no bytes.

use marquetry_conformance::craft::*;

use crate::crafted::{
    Case, Row, case, four_words, i32_from, indices, numbers, one, rows_bytes, rows_i32, rows_i64,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = by_real_writers();
    cases.extend(values_of_no_bytes());
    cases
}

/// What real writers did, although the format does not allow it (docs/decisions/03-faults-of-real-writers.md).
fn by_real_writers() -> Vec<Case> {
    let by = |writer: &str, table: Table| {
        let mut table = table;
        table.footer.set(6, V::text(writer));
        table
    };
    let required = || Column::required("a", INT32);
    let values = numbers(60);
    // PARQUET-816: the chunk's length lacks that of the dictionary page's header, and the last page is tiny.
    let (dictionary, words) = four_words();
    let page = |values: &[u32]| Page::data(i32_from(values.len()), RLE_DICTIONARY, indices(values, 2));
    let all: Vec<u32> = (0..57).map(|row| row % 4).collect();
    let pages = || [dictionary.clone(), page(&all), page(&[3])];
    let strings = || Column::required("a", BYTE_ARRAY);
    let chunk_bytes = one(strings(), Chunk::new(58, pages())).parts().0.len() - 4;
    let short = |missing: usize| {
        let bytes = i64::try_from(chunk_bytes - missing).unwrap();
        by("parquet-mr version 1.2.5", one(strings(), Chunk::new(58, pages()).with(7, V::I64(bytes))))
    };
    let read: Vec<&str> = all.iter().chain(&[3]).map(|word| words[*word as usize]).collect();
    let last = page(&[3]);
    let (body, header) = (last.body.len(), last.header.write().len());
    let padded = |table: Table| {
        // The format's writers leave something behind it: here, another column.
        let Table { columns, groups, footer, .. } = table;
        let (rows, mut chunks) = groups.into_iter().next().unwrap();
        let plain = Page::data(58, PLAIN, plain_i32(&numbers(58)));
        chunks.push(Chunk::new(58, [plain]));
        let columns = columns.into_iter().chain([Column::required("b", INT32)]);
        Table { footer, ..Table::new(columns).group(rows, chunks) }
    };
    let numbers_behind = rows_i32(&numbers(58));
    // ARROW-10353: a page in SNAPPY, declared not to be.
    let compressible = plain_i32(&[7; 60]);
    let v2 = Page::data_v2(60, 0, PLAIN, &[], &compressible).compressed(SNAPPY).with_own(7, V::Bool(false));
    // The same, as long as its values: a literal of all but the last value, and a copy of the one before.
    let mut as_long: Vec<i64> = (0..49).map(|row: i64| row.wrapping_mul(0x09e3_779b_97f4_a7c1)).collect();
    as_long.push(as_long[48]);
    let plain = plain_i64(&as_long);
    let stream = [&[0x90, 0x03, 61 << 2, 0x87, 0x01], &plain[..392], &[7 << 2 | 2, 8, 0]].concat();
    assert_eq!(stream.len(), plain.len());
    let mut equal = Page::data_v2(50, 0, PLAIN, &[], &stream).with_own(7, V::Bool(false));
    equal.header.set(2, V::I32(400));
    let mut without = required();
    without.element.remove(3);
    vec![
        case("the-last-page-is-cut", padded(short(body - 1)), [rows_bytes(&read), numbers_behind.clone()]),
        case(
            "the-last-page-header-is-cut",
            padded(short(body + header - 1)),
            [rows_bytes(&read), numbers_behind],
        ),
        case(
            "v2-page-that-denies-its-codec",
            by("parquet-cpp version 1.5.1-SNAPSHOT", one(required(), Chunk::new(60, [v2]).codec(SNAPPY))),
            [rows_i32(&[7; 60])],
        ),
        case(
            "v2-page-that-denies-its-codec-and-is-as-long",
            by(
                "parquet-cpp version 1.5.1-SNAPSHOT",
                one(Column::required("a", INT64), Chunk::new(50, [equal]).codec(SNAPPY)),
            ),
            [rows_i64(&as_long)],
        ),
        case(
            "field-without-a-repetition",
            one(without, Chunk::new(60, [Page::data(60, PLAIN, plain_i32(&values))])),
            [rows_i32(&values)],
        ),
    ]
}

/// FIXED_LEN_BYTE_ARRAY of length 0 is the same in every encoding, with nulls and without.
fn values_of_no_bytes() -> Vec<Case> {
    let there: Vec<bool> = (0..20).map(|row| row % 3 != 1).collect();
    let present = there.iter().filter(|there| **there).count();
    let required = || Column::required("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(0));
    let optional = || Column::optional("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(0));
    let rows: Vec<Row> = there.iter().map(|there| there.then(Vec::new)).collect();
    let runs = |count: usize| [vec![0], repeated_run(u64::try_from(count).unwrap(), 0, 0)].concat();
    let empty = |count: usize| vec![Vec::<u8>::new(); count];
    type Body<'a> = &'a dyn Fn(usize) -> Vec<u8>;
    let encodings: [([&str; 2], i32, Body<'_>); 4] = [
        (["values-of-no-bytes", "nullable-values-of-no-bytes"], PLAIN, &|_| vec![]),
        (["no-bytes-in-a-dictionary", "nullable-values-of-no-bytes-in-a-dictionary"], RLE_DICTIONARY, &runs),
        (
            ["no-bytes-in-no-streams", "nullable-values-of-no-bytes-in-no-streams"],
            BYTE_STREAM_SPLIT,
            &|_| vec![],
        ),
        (["no-bytes-by-prefix", "nullable-values-of-no-bytes-by-prefix"], DELTA_BYTE_ARRAY, &|count| {
            delta_byte_array(&empty(count))
        }),
    ];
    let mut cases = Vec::new();
    for ([name, nullable], encoding, body) in encodings {
        let chunk = |page: Page| {
            let dictionary = (encoding == RLE_DICTIONARY).then(|| Page::dictionary(1, vec![]));
            Chunk::new(20, dictionary.into_iter().chain([page]))
        };
        let all = chunk(Page::data(20, encoding, body(20)));
        cases.push(case(name, one(required(), all), [vec![Some(vec![]); 20]]));
        let nulls = [prefixed(&levels(&there)), body(present)].concat();
        let some = chunk(Page::data(20, encoding, nulls));
        cases.push(case(nullable, one(optional(), some), [rows.clone()]));
    }
    cases.into_iter().map(|case| case.not_by_pyarrow("it refuses the type")).collect()
}
