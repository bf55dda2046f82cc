//! The bridge from Parquet to CQL: tables, statements, cells.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "numbers of these tests are small"
)]

mod batch;
mod errors;
mod nested;
mod random;
mod rows;
mod schema;
mod shred;
mod table;
mod values;
