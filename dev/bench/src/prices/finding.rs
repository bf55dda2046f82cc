//! Values that are tested, of each kind.

use bytes::Bytes;
use marquetry_conformance::craft::{
    BYTE_ARRAY, Column, INT64, INT96, PLAIN, Page, RLE_DICTIONARY, V, levels, packed_run, plain_bytes,
    prefixed,
};
use marquetry_parquet::prune::{Accepts, Comparison, Predicate, Quantifier, Ranges, Test};

use super::values::{file, i32_of, noise, one_page};
use super::{Case, Work};

const NARROW: &str = "prune/matcher.rs NARROW_PRICE";
const WIDE: &str = "prune/matcher.rs WIDE_PRICE";
const DECIMAL: &str = "prune/matcher.rs DECIMAL_PRICE";
const LOOK: &str = "prune/matcher.rs LOOK_PRICE";
const BYTES: &str = "prune/matcher.rs BYTES_PRICE";
const INDEX: &str = "prune/matcher.rs INDEX_PRICE";
const ROW: &str = "prune/evaluate.rs ROW_PRICE";
const PRESENT: &str = "prune/evaluate.rs PRESENT_PRICE";

/// See [`super::cases`].
pub(super) fn cases(thousands: usize) -> Vec<Case> {
    let count = thousands * 1000;
    let tests = |ranges| Work::Tested(Predicate::Test(Test::accepting(0, ranges)));
    let longs = || one_page(Column::required("v", INT64), PLAIN, noise(count * 8), count);
    let strings = |length: usize| {
        // All alike but for the end, which is where they differ.
        let body = plain_bytes((0..count).map(|at| format!("{at:0length$}")));
        one_page(Column::required("v", BYTE_ARRAY), PLAIN, body, count)
    };
    let many = |step: i128| {
        let one = |at: i128| Ranges::of_keys(at * step, at * step);
        Ranges::union((-500..500).map(one), Comparison::Number)
    };
    let text = |length: usize| Bytes::from(format!("{:0length$}", count / 2));
    vec![
        Case::new(NARROW, "int64, one range", count, longs()).work(tests(Ranges::of_keys(0, i128::MAX))),
        Case::new(NARROW, "int64, not one value", count, longs())
            .work(tests(Ranges::of_keys(7, 7).complement())),
        Case::new(LOOK, "int64, a thousand values", count, longs()).work(tests(many(1 << 53))),
        Case::new(
            WIDE,
            "int96",
            count,
            one_page(Column::required("v", INT96), PLAIN, noise(count * 12), count),
        )
        .work(tests(Ranges::of_keys(0, i128::MAX))),
        Case::new(DECIMAL, "decimals of 16 bytes", count, decimals(16, count))
            .work(tests(Ranges::of_keys(0, i128::MAX))),
        Case::new(
            DECIMAL,
            "decimals of 1,000 bytes, most of them zero",
            count / 50,
            decimals(1000, count / 50),
        )
        .work(tests(Ranges::of_keys(0, i128::MAX))),
        Case::new(BYTES, "strings of 12 bytes", count, strings(12)).work(tests(Ranges::of_bytes(text(12)))),
        Case::new(BYTES, "strings of 100 bytes", count, strings(100))
            .work(tests(Ranges::of_bytes(text(100)))),
        Case::new(INDEX, "indices", count, indices(count)).work(tests(Ranges::of_keys(0, i128::MAX))),
        Case::new(PRESENT, "int64, nothing wanted", count / 64, longs())
            .work(tests(Ranges::none(Comparison::Number))),
        Case::new(ROW, "which are null", count, {
            let there = prefixed(&levels(&vec![true; count]));
            one_page(Column::optional("v", INT64), PLAIN, [there, noise(count * 8)].concat(), count)
        })
        .work(Work::Tested(Predicate::Test(Test {
            leaf: 0,
            quantifier: Quantifier::Any,
            accepts: Accepts::Nulls { slot: 0, definition: 1, are_wanted: true },
        }))),
    ]
}

/// Decimals of so many bytes, of which the last eight are the number.
fn decimals(bytes: usize, count: usize) -> Bytes {
    // `ConvertedType` DECIMAL, its scale and its precision.
    let column = Column::required("v", BYTE_ARRAY).with(6, V::I32(5)).with(7, V::I32(0)).with(8, V::I32(38));
    let value = |at: usize| [vec![0; bytes - 8], (at as u64).to_be_bytes().to_vec()].concat();
    one_page(column, PLAIN, plain_bytes((0..count).map(value)), count)
}

/// Indices of eight bits into a dictionary of 256 numbers.
fn indices(count: usize) -> Bytes {
    let dictionary = Page::dictionary(256, (0..256_i64).flat_map(i64::to_le_bytes).collect());
    let values: Vec<u32> = (0..256).cycle().take(count).collect();
    let body = [vec![8], packed_run(&values, 8)].concat();
    let data = Page::data(i32_of(count), RLE_DICTIONARY, body);
    file(Column::required("v", INT64), vec![dictionary, data], count)
}
