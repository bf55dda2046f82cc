//! Batches handed over to [Arrow](https://arrow.apache.org), and back: record batches of arrow-rs, without a copy where the layouts agree.
//!
//! [`ToArrow`] is made for a schema and the leaves that a [`BatchReader`](marquetry_parquet::read::BatchReader) reads, and makes a
//! [`RecordBatch`] of each [`Batch`]. [`arrow_schema()`] tells the types alone.
//!
//! | Parquet | Arrow | copied? |
//! |---|---|---|
//! | BOOLEAN | Boolean | no |
//! | INT32, INT64, FLOAT, DOUBLE | Int32, Int64, Float32, Float64 | no |
//! | INT(32), INT(64), UINT(32), UINT(64) | the same widths | no |
//! | INT(8), INT(16), UINT(8), UINT(16) | the same widths | narrowed; out of range is an error |
//! | DATE | Date32 | no |
//! | TIME | Time32(ms), Time64(µs, ns) | no |
//! | TIMESTAMP | Timestamp, of zone `UTC` if it is an instant, else of none | no |
//! | INT96 | Timestamp(ns), of no zone ([`ArrowOptions::int96_unit`]) | computed; out of range is an error |
//! | DECIMAL up to 38 digits, up to 76 | Decimal128, Decimal256 | widened; see [`ArrowOptions::narrow_decimals`] |
//! | STRING, ENUM, JSON (`arrow.json`) | Utf8View | no; checked to be UTF-8 |
//! | other BYTE_ARRAY, BSON; GEOMETRY, GEOGRAPHY (`geoarrow.wkb`) | BinaryView | no |
//! | FIXED_LEN_BYTE_ARRAY, UUID (`arrow.uuid`) | FixedSizeBinary | no |
//! | FLOAT16 | Float16 | no |
//! | INTERVAL | Interval(MonthDayNano) | computed |
//! | UNKNOWN | Null | nothing is there |
//! | groups, VARIANT (`arrow.parquet.variant`) | Struct | no |
//! | lists, repeated fields, maps without values | List | no |
//! | maps | Map | no |
//!
//! The names in brackets are extension types, in the field's metadata. Field ids are there as `PARQUET:field_id`.
//!
//! **What "no" means**: the values, views, offsets and bitmaps stand in the memory that the reader decoded them into, and strings in
//! the pages themselves. So a record batch keeps that memory: the reader cannot use it again while the batch lives. Nested columns
//! come with repetition and definition levels, which [`Array::assemble`](marquetry_parquet::batch::Array::assemble) makes into offsets
//! and bitmaps, and spreads the values of those with nulls; that happens in the engine, and what it makes is not copied again. So are
//! the values of a column with nulls that was read in [`Layout::Dense`](marquetry_parquet::batch::Layout::Dense).
//!
//! **Why views**: the engine's byte strings are Arrow's views already, over the pages that they stand in. `Utf8` and `Binary`, which
//! pyarrow and parquet-rs give without a hint, would cost a copy of every byte and cannot hold 2 GiB in a batch.
//!
//! **UTF-8** is checked here, of every string of every batch, since `Utf8View` promises it and its only constructor without `unsafe`
//! checks: that views point into their pages (of BinaryView too), and that the text is UTF-8. So
//! [`ReadOptions::verify_utf8`](marquetry_parquet::read::ReadOptions::verify_utf8) would only check it twice. It is what strings cost:
//! some 9 ns for the view and 3 ns for 40 bytes of text, where a column of numbers costs 0.3 µs a batch (`examples/cost.rs`).
//!
//! **Dictionaries**: with [`ReadOptions::keep_dictionaries`](marquetry_parquet::read::ReadOptions::keep_dictionaries) a column whose
//! batch has kept its dictionary becomes a `Dictionary(UInt32, …)`, and the record batch's own schema says so: writers may give a
//! dictionary up in the middle of a file, so it can differ between batches. A dictionary is converted, and checked to be UTF-8, once,
//! and the arrays share it. Extension types stand on plain columns only.
//!
//! **`ARROW:schema`**, the Arrow schema that Arrow's writers leave in the footer, is applied by [`ToArrow::of_file`]; [`ToArrow::new`]
//! goes by the Parquet schema alone. What comes back is what pyarrow gives back, and two types more: zones of timestamps, Duration, Utf8,
//! LargeUtf8, Binary and LargeBinary (copied), dictionaries of strings with their index type, LargeList and FixedSizeList, the widths of
//! decimals, Date64, extension types and the fields' metadata. It cannot make a file say what it does not: names, nulls and values
//! are the file's, and a stored type that does not fit them is left.
//!
//! **The way back**: [`FromArrow`] makes batches for a [`FileWriter`](marquetry_parquet::write::FileWriter) of record batches, by the same
//! table from right to left, and the `ARROW:schema` for the footer, so that readers of Arrow give back what was written. Where Arrow has
//! more: Utf8, LargeUtf8, Binary and LargeBinary are STRING and BYTE_ARRAY, Date64 of whole days is DATE, Time32 and Timestamp of seconds have
//! milliseconds, Duration is INT64, LargeList and FixedSizeList are lists, dictionaries are of what they hold. Decimals take INT32 up to 9
//! digits, INT64 up to 18, else as few bytes as hold them. Unions, views of lists, arrays of runs, intervals of years or of days, and decimals of a
//! negative scale are refused.
#![forbid(unsafe_code)]

mod buffers;
mod convert;
mod incoming;
mod plan;
mod retype;
mod schema;
mod stored;
mod values;

pub use convert::ToArrow;
pub use incoming::FromArrow;
pub use schema::{ArrowOptions, arrow_schema};
pub use stored::stored_schema;

#[cfg(doc)]
use arrow_array::RecordBatch;
#[cfg(doc)]
use marquetry_parquet::batch::Batch;
