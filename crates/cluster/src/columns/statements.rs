//! The table, and what is asked of it.

use std::fmt::Write;

use marquetry_scylla::cql::{Definitions, TableDef, TableName};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;

use super::part::{Part, Version};
use crate::error::{Error, Result};
use crate::schema;

/// The columns and the key of every table of this layout.
const COLUMNS: &str = "version uuid, column_number int, row_group int, shard int, file_offset bigint, bytes blob, \
                       PRIMARY KEY ((version, column_number, row_group, shard), file_offset)";

/// A partition, by its key.
const OF_PARTITION: &str = "version = ? AND column_number = ? AND row_group = ? AND shard = ?";

/// How long a version that is being written is left alone by other writers, unless it is renewed.
pub(super) const LEASE_SECONDS: u64 = 3600;

/// The table's definition.
pub(super) fn definition(table: &TableName) -> Result<TableDef> {
    let parsed = Definitions::parse(&format!("CREATE TABLE {table} ({COLUMNS})")).ok();
    let table = parsed.and_then(|parsed| parsed.tables.into_iter().next());
    table.ok_or(Error::Internal("the definition of a table of columns"))
}

/// What else the table is created with: pages are compressed already.
pub(super) fn properties(is_scylla: bool) -> Vec<(String, String)> {
    let compression = match is_scylla {
        true => "compression = {'sstable_compression': ''}",
        false => "compression = {'enabled': 'false'}",
    };
    let comment = "comment = 'A Parquet file, written and read by Marquetry (layout columns)'";
    let property = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    vec![property("compression", compression), property("comment", comment)]
}

/// Whether a table is one of this layout, by its columns.
pub(crate) fn is_columns(existing: &TableDef) -> bool {
    definition(&existing.table).is_ok_and(|wanted| schema::compare(existing, &wanted).is_empty())
}

/// The cells of a partition that begin within a range.
pub(super) fn select(table: &TableName) -> String {
    format!(
        "SELECT file_offset, bytes FROM {table} WHERE {OF_PARTITION} AND file_offset >= ? AND file_offset < ?"
    )
}

/// The last cell of a partition that begins before an offset.
pub(super) fn select_before(table: &TableName) -> String {
    format!(
        "SELECT file_offset, bytes FROM {table} WHERE {OF_PARTITION} AND file_offset < ? \
         ORDER BY file_offset DESC LIMIT 1"
    )
}

/// A new cell.
pub(super) fn insert(table: &TableName) -> String {
    format!(
        "INSERT INTO {table} (version, column_number, row_group, shard, file_offset, bytes) VALUES (?, ?, ?, ?, ?, ?)"
    )
}

/// A partition, which goes.
pub(super) fn delete(table: &TableName) -> String {
    format!("DELETE FROM {table} WHERE {OF_PARTITION}")
}

/// The keys of all partitions.
pub(super) fn partitions(table: &TableName) -> String {
    format!("SELECT DISTINCT version, column_number, row_group, shard FROM {table}")
}

/// Says that a version is being written.
pub(super) fn lease(table: &TableName, version: Version) -> String {
    let (none, number) = (Version::NONE, version.lease());
    let text = blob(format!("writing {version}").as_bytes());
    format!(
        "INSERT INTO {table} (version, column_number, row_group, shard, file_offset, bytes) \
         VALUES ({none}, {}, 0, 0, {number}, {text}) IF NOT EXISTS USING TTL {LEASE_SECONDS}",
        super::part::MAP
    )
}

/// Says so again, if it was not too late.
pub(super) fn renew(table: &TableName, version: Version) -> String {
    let text = blob(format!("writing {version}").as_bytes());
    format!(
        "UPDATE {table} USING TTL {LEASE_SECONDS} SET bytes = {text} WHERE {} IF EXISTS",
        row(version.lease())
    )
}

/// Makes a version current, if what was current still is and the version was left alone.
pub(super) fn publish(table: &TableName, version: Version, was: Option<&[u8]>, head: &str) -> String {
    let was = was.map_or_else(|| "null".to_owned(), blob);
    format!(
        "BEGIN BATCH \
         UPDATE {table} SET bytes = {} WHERE {} IF bytes = {was}; \
         DELETE FROM {table} WHERE {} IF EXISTS; \
         APPLY BATCH",
        blob(head.as_bytes()),
        row(0),
        row(version.lease())
    )
}

/// Gives a lease back.
pub(super) fn give_back(table: &TableName, version: Version) -> String {
    format!("DELETE FROM {table} WHERE {} IF EXISTS", row(version.lease()))
}

/// A row of the partition that is about the table.
fn row(number: i64) -> String {
    let (none, map) = (Version::NONE, super::part::MAP);
    format!(
        "version = {none} AND column_number = {map} AND row_group = 0 AND shard = 0 AND file_offset = {number}"
    )
}

fn blob(bytes: &[u8]) -> String {
    let mut text = String::from("0x");
    for byte in bytes {
        // Writing to text does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The values of a statement: a partition, offsets, and a cell's bytes.
#[derive(Debug, Clone)]
pub(super) struct Bound<'a> {
    pub(super) version: Version,
    pub(super) part: Part,
    pub(super) offsets: &'a [i64],
    pub(super) bytes: Option<&'a [u8]>,
}

impl SerializeRow for Bound<'_> {
    fn serialize(
        &self,
        _context: &RowSerializationContext<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), SerializationError> {
        let mut add = |value: &[u8]| {
            writer.make_cell_writer().set_value(value).map(drop).map_err(SerializationError::new)
        };
        let Part { column, row_group, shard } = self.part;
        add(self.version.as_bytes())?;
        [column, row_group, shard].iter().try_for_each(|number| add(&number.to_be_bytes()))?;
        self.offsets.iter().try_for_each(|offset| add(&offset.to_be_bytes()))?;
        self.bytes.map_or(Ok(()), add)
    }

    fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> TableDef {
        Definitions::parse(&format!("CREATE TABLE k.t ({text})")).unwrap().tables.remove(0)
    }

    #[test]
    fn tables_are_known_by_their_columns() {
        assert!(is_columns(&table(COLUMNS)));
        assert!(!is_columns(&table(&COLUMNS.replace("bytes blob", "bytes blob, more int"))));
        assert!(!is_columns(&table(&COLUMNS.replace("shard int", "shard bigint"))));
        assert!(!is_columns(&table("k int PRIMARY KEY, bytes blob")));
        let name = TableName::parse("\"K\".\"Some\"").unwrap();
        let made = definition(&name).unwrap();
        assert_eq!(made.table, name);
        assert!(made.check().is_ok());
    }

    #[test]
    fn blobs_are_written_as_cql_has_them() {
        assert_eq!((blob(b"").as_str(), blob(b"\x00\xffa").as_str()), ("0x", "0x00ff61"));
    }
}
