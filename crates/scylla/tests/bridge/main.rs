//! The bridge from Parquet to CQL: tables, statements, cells.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "numbers of these tests are small"
)]

mod batch;
mod errors;
mod rows;
mod schema;
mod table;
mod values;
