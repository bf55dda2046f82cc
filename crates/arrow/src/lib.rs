//! Converts batches to [Arrow](https://arrow.apache.org) and back: record batches of arrow-rs, without a copy if the
//! layouts agree.
//!
//! A [`ToArrow`] is created for a schema and the leaves that a [`BatchReader`](marquetry_parquet::read::BatchReader)
//! reads; it converts each [`Batch`] to a [`RecordBatch`]. [`arrow_schema()`] returns only the types.
//!
//! | Parquet | Arrow | copied? |
//! |---|---|---|
//! | BOOLEAN | Boolean | no |
//! | INT32, INT64, FLOAT, DOUBLE | Int32, Int64, Float32, Float64 | no |
//! | INT(32), INT(64), UINT(32), UINT(64) | the same widths | no |
//! | INT(8), INT(16), UINT(8), UINT(16) | the same widths | narrowed; out of range is an error |
//! | DATE | Date32 | no |
//! | TIME | Time32(ms), Time64(µs, ns) | no |
//! | TIMESTAMP | Timestamp, with the zone `UTC` if it is an instant, otherwise with none | no |
//! | INT96 | Timestamp(ns), without a zone ([`ArrowOptions::int96_unit`]) | computed; out of range is an error |
//! | DECIMAL up to 38 digits, up to 76 | Decimal128, Decimal256 | widened; see [`ArrowOptions::narrow_decimals`] |
//! | STRING, ENUM, JSON (`arrow.json`) | Utf8View | no; checked to be UTF-8 |
//! | other BYTE_ARRAY, BSON; GEOMETRY, GEOGRAPHY (`geoarrow.wkb`) | BinaryView | no |
//! | FIXED_LEN_BYTE_ARRAY, UUID (`arrow.uuid`) | FixedSizeBinary | no |
//! | FLOAT16 | Float16 | no |
//! | INTERVAL | Interval(MonthDayNano) | computed |
//! | UNKNOWN | Null | there are no values |
//! | groups, VARIANT (`arrow.parquet.variant`) | Struct | no |
//! | lists, repeated fields, maps without values | List | no |
//! | maps | Map | no |
//!
//! The names in brackets are extension types, in the field's metadata, which also has field ids as
//! `PARQUET:field_id`.
//!
//! **What "no" means**: values, views, offsets and bitmaps stay in the memory that the reader decoded them into, and
//! strings in the pages themselves. A record batch keeps that memory alive: the reader cannot reuse it meanwhile.
//! Nested columns have repetition and definition levels, from which
//! [`Array::assemble`](marquetry_parquet::batch::Array::assemble) builds offsets and bitmaps, spreading the values of
//! nullable leaves. That happens in the engine, and its result is not copied again. The values of a column with nulls
//! that was read in [`Layout::Dense`](marquetry_parquet::batch::Layout::Dense) are spread as well.
//!
//! **Why views**: the engine's byte strings are already Arrow views into the pages. `Utf8` and `Binary`, the default of
//! pyarrow and parquet-rs, would cost a copy of every byte and cannot hold 2 GiB in a batch. Where a file's own schema, or
//! whoever takes the batches, wants them ([`ToArrow::with_strings`], [`ToArrow::request`]), each column of a batch is copied
//! at once.
//!
//! **UTF-8** is checked here, for every string of every batch, because `Utf8View` guarantees it and its only
//! constructor without `unsafe` checks that views point into their pages (BinaryView's too) and that the text is UTF-8.
//! So [`ReadOptions::verify_utf8`](marquetry_parquet::read::ReadOptions::verify_utf8) would only check it twice. This
//! is the cost of strings: about 9 ns for the view and 3 ns for 40 bytes of text, whereas a column of numbers costs 0.3
//! µs per batch (`examples/cost.rs`). Those who hand record batches over by Arrow's C interfaces need no `Utf8View`, and
//! so not this constructor: [`ToArrow::with_text_as_bytes`].
//!
//! **Dictionaries**: with [`ReadOptions::keep_dictionaries`](marquetry_parquet::read::ReadOptions::keep_dictionaries)
//! a column whose batch kept its dictionary becomes a `Dictionary(UInt32, …)`, and the record batch's own schema says
//! so: writers may abandon a dictionary in the middle of a file, so the type can differ between batches. A dictionary
//! is converted and checked to be UTF-8 once, and the arrays share it. Only plain columns have extension types.
//!
//! **`ARROW:schema`**, the Arrow schema that Arrow's writers store in the footer, is applied by [`ToArrow::of_file`];
//! [`ToArrow::new`] uses the Parquet schema alone. It restores what pyarrow restores, and two more types: zones of
//! timestamps, Duration, Utf8, LargeUtf8, Binary and LargeBinary (copied), dictionaries of strings with their index
//! type, LargeList and FixedSizeList, the widths of decimals, Date64, extension types and the fields' metadata. It
//! cannot override the file: names, nulls and values are the file's, and a stored type that does not fit them is
//! ignored.
//!
//! **The way back**: [`FromArrow`] converts record batches to batches for a
//! [`FileWriter`](marquetry_parquet::write::FileWriter), by the same table from right to left, and creates the
//! `ARROW:schema` for the footer, so that Arrow's readers restore the types that were written. Arrow has more types
//! than Parquet: Utf8, LargeUtf8, Binary and LargeBinary become STRING and BYTE_ARRAY, Date64 of whole days DATE,
//! Time32 and Timestamp in seconds milliseconds, Duration INT64, LargeList and FixedSizeList lists, and dictionaries
//! the type of their values. Decimals take INT32 up to 9 digits, INT64 up to 18, otherwise as few bytes as are needed.
//! Unions, list views, run-end encoded arrays, intervals of years or of days, and decimals of a negative scale are
//! refused.
#![forbid(unsafe_code)]

mod buffers;
mod convert;
mod cost;
mod incoming;
mod plan;
mod requested;
mod retype;
mod schema;
mod stored;
mod utf8;
mod values;

pub use convert::ToArrow;
pub use incoming::FromArrow;
pub use requested::StringLayout;
pub use schema::{ArrowOptions, arrow_schema};
pub use stored::stored_schema;

#[cfg(doc)]
use arrow_array::RecordBatch;
#[cfg(doc)]
use marquetry_parquet::batch::Batch;
