//! Key-value metadata of files.

use marquetry_parquet::format::{ARROW_SCHEMA_KEY, KeyValue};

/// Of a table of a live cluster: the statements that make it. A directory of its Parquet files has them in a file, too.
pub const TABLE_SCHEMA_KEY: &str = "marquetry.table.schema";

/// Keys under which writers keep what they know of the columns: it holds for these columns only.
const SCHEMA_KEYS: [&str; 9] = [
    ARROW_SCHEMA_KEY,
    "avro.schema",
    "iceberg.schema",
    "marquetry.table.columns",
    "org.apache.spark.sql.parquet.row.metadata",
    "pandas",
    "parquet.avro.schema",
    "parquet.proto.descriptor",
    "thrift.descriptor",
];

/// What such keys begin with: how SSTables became these columns.
const SCHEMA_PREFIX: &str = "marquetry.mapping";

/// Whether it holds whatever the columns are.
pub(crate) fn holds_for_any_columns(it: &KeyValue) -> bool {
    !SCHEMA_KEYS.contains(&&*it.key) && !it.key.starts_with(SCHEMA_PREFIX)
}
