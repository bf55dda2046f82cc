//! Parquet to CQL: which CQL type a Parquet column becomes, and its values as CQL text or as cells of the native
//! protocol.
//!
//! | Parquet | CQL |
//! |---|---|
//! | BOOLEAN, FLOAT, DOUBLE | `boolean`, `float`, `double` |
//! | FLOAT16 | `float` |
//! | INT32, INT64, without annotation or as INT(8, 16, 32, 64) | `tinyint`, `smallint`, `int`, `bigint` |
//! | UINT(8, 16, 32, 64) | `smallint`, `int`, `bigint`, `varint` |
//! | DECIMAL | `decimal`, with its scale |
//! | STRING, ENUM, JSON | `text` (or `blob`: [`InvalidUtf8::Blob`]) |
//! | UUID | `uuid` |
//! | DATE | `date` |
//! | TIME | `time` |
//! | TIMESTAMP(MILLIS), INT96 | `timestamp` |
//! | TIMESTAMP(MICROS), TIMESTAMP(NANOS) | `bigint` (or `timestamp`: [`MappingOptions::timestamps_as_millis`]) |
//! | INTERVAL | `duration` |
//! | BSON, GEOMETRY, GEOGRAPHY, byte arrays without annotation | `blob` |
//! | UNKNOWN, which is always null | `int` |
//!
//! A logical type that the reader does not know is its physical type. Nested columns are refused.
//!
//! Nothing is lost but what the table says: INT96, and on request micro- and nanoseconds, are rounded down (towards
//! the past) to milliseconds. A value that its CQL type cannot hold, or that is outside of the range that its
//! annotation names, is an error of the kind `Conversion` that names row and column.
//!
//! A [`Mapping`] is made from a schema once; whatever can be wrong before the first row is found there. Then an
//! [`InsertWriter`] prints batches as `INSERT` statements, and [`Mapping::write_cell`] serialises single values.

mod cell;
mod convert;
mod insert;
mod mapping;
mod options;

pub use cell::Cell;
pub use insert::{InsertWriter, Written};
pub use mapping::{ColumnSource, MappedColumn, Mapping};
pub use options::{InvalidUtf8, MappingOptions, Nulls};
