//! Key-value metadata of files.

use marquetry_parquet::format::{ARROW_SCHEMA_KEY, KeyValue};
use marquetry_scylla::cql::TableName;

use crate::Table;

/// Of a table of a live cluster, or of SSTables that come with a definition: the statements that make it. A directory of its Parquet files has them in a file, too.
pub const TABLE_SCHEMA_KEY: &str = "marquetry.table.schema";

/// Of a table of SSTables or of a live cluster: its name, with its keyspace.
pub(crate) const TABLE_NAME_KEY: &str = "marquetry.table.name";

/// Of a file that has all of an SSTable: where that was, what it is called, and how many bytes it has.
pub(crate) const SSTABLE_KEY: &str = "marquetry.sstable";

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

/// What a source says that its table is called, if that is a name.
pub(crate) fn name_of(table: &Table) -> Option<TableName> {
    let found = table.key_values.iter().find(|it| it.key == TABLE_NAME_KEY)?;
    TableName::parse(std::str::from_utf8(found.value.as_ref()?).ok()?).ok()
}

/// Whether it says that a row is a write, of the mapping `full`.
pub(crate) fn are_writes(it: &KeyValue) -> bool {
    it.key == SCHEMA_PREFIX && it.value.as_deref() == Some(b"full".as_slice())
}

/// Whether it holds whatever the columns are.
pub(crate) fn holds_for_any_columns(it: &KeyValue) -> bool {
    !SCHEMA_KEYS.contains(&&*it.key) && !it.key.starts_with(SCHEMA_PREFIX)
}
