//! Parquet to CQL: the CQL type for each Parquet column, and its values as CQL text or as cells of the native
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
//! | LIST, repeated fields | `list<…>` (or `set<…>`: [`MappingOptions::sets`]) |
//! | MAP | `map<…, …>`; without values `set<…>` |
//! | group | a user-defined type named after the table and the path: `trips_place` |
//! | VARIANT | `text`, as JSON |
//!
//! Into a table that is there ([`MappingOptions::existing`]) values are converted to its types, if nothing is lost:
//!
//! | from | to | |
//! |---|---|---|
//! | text | any scalar type | as CQL writes it, without quotes; `timestamp` also as milliseconds |
//! | integers, decimals | integers, `varint`, `counter`, `decimal` | in range, and without a fraction where there is no place for it |
//! | integers, decimals | `float`, `double` | integers that they hold exactly; decimals of up to 6 or 15 digits |
//! | integers, decimals, dates, UUIDs | `text`, `ascii` | as CQL writes them |
//! | FLOAT, DOUBLE | integers, `varint`, `decimal` | without a fraction; the digits that are printed |
//! | FLOAT, DOUBLE | `float`, `double` | the same number, or the same digits |
//! | timestamps of any unit | `timestamp`, `date` | without digits below a millisecond ([`MappingOptions::timestamps_as_millis`] cuts them off); midnights |
//! | DATE | `timestamp` | midnight, UTC |
//! | lists | `list<…>`, `set<…>`, `vector<…, n>` | a vector: of n elements |
//! | groups | user-defined types | fields by name; those that the group lacks are null |
//! | groups of `_0`, `_1`, … | `tuple<…>` | members by number; those that the group lacks at its end are null |
//! | groups of `months`, `days`, `nanoseconds` | `duration` | integers in range, of one sign, none of them null |
//! | UUID, bytes | `uuid`, `timeuuid`; `text` | 16 bytes, of version 1; UTF-8 |
//!
//! A column with an unknown logical type is mapped by its physical type. Nested types inside others are frozen, as CQL
//! requires, and so is everything in the key; with [`MappingOptions::frozen`] all others are frozen, too. For CQL, an
//! empty list, set or map that is not frozen is null, and so is a user-defined type whose fields are all null. Equal
//! elements of a set become one. A value that CQL cannot hold is an error that names row and path ([`NullElements`],
//! [`DuplicateKeys`]).
//!
//! The only loss is the documented one: INT96, and on request micro- and nanoseconds, are rounded down (towards the
//! past) to milliseconds. A value that its CQL type cannot hold, or that is outside the range of its annotation, is an
//! error of the kind `Conversion` that names row and column.
//!
//! A [`Mapping`] is created once for a schema, and reports all errors that can be found before the first row. It
//! [assembles](Mapping::assemble) each batch; then an [`InsertWriter`] prints it as `INSERT` statements, and
//! a [bound](Mapping::bind) batch serialises single values.

mod batch;
mod bound;
mod cast;
mod cell;
mod convert;
mod form;
mod insert;
mod leaf;
mod list;
mod mapping;
pub mod mutations;
mod options;
mod plan;
mod read;
mod render;
mod text;
mod value;
pub mod writes;

pub use batch::{Assembling, MappedBatch};
pub use bound::BoundBatch;
pub use cell::Cell;
pub use insert::{InsertWriter, Written};
pub use mapping::{ColumnSource, MappedColumn, Mapping};
pub use options::{DuplicateKeys, Existing, InvalidUtf8, MappingOptions, NullElements, Nulls};
