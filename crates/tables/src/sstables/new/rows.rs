//! Plain rows on their way into SSTables: as `INSERT` statements would have it.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use marquetry_base::cast::u64_of;
use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::sort::SortOptions;
use marquetry_scylla::bridge::mutations::MutationMapping;
use marquetry_scylla::bridge::writes::{RowAssembler, RowEncoder, RowRecords, RowStamp};
use marquetry_scylla::bridge::{Mapping, MappingOptions};
use marquetry_scylla::cql::{Definitions, Order, TableDef, TableName, TableOptions, TypeDef};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::Expiry;

use super::files::NewFiles;
use super::options::PlainRowsOptions;
use crate::sorting::Sorting;
use crate::stamps::{Stamps, Ttl, WriteTimes, write_time_after};
use crate::subject::named;
use crate::{Cancel, Described, Table};

/// Records that are handed to the sorter at a time, and their bytes.
const RECORDS: usize = 8192;
const RECORDS_BYTES: usize = 4 << 20;
/// The key under which a source says what its table is called.
const TABLE_NAME_KEY: &str = "marquetry.table.name";

/// Rows that become SSTables.
pub(super) struct PlainRows {
    mapping: Mapping,
    encoder: RowEncoder,
    stamps: Stamps,
    /// The first row's write time, unless a column has them.
    first_write_time_us: i64,
    ttl_s: u32,
    now_s: u32,
    records: RowRecords,
    sorting: Sorting,
    /// Rows so far, and those of them that are records.
    rows: u64,
    statements: String,
}

/// A table, the types of its keyspace, and what a definition says besides.
type Defined = (TableDef, Vec<TypeDef>, TableOptions);

impl PlainRows {
    /// For rows of a source; those beyond the memory go to a file beside `scratch`.
    pub(super) fn new(
        table: &Table,
        options: &PlainRowsOptions,
        memory_bytes: u64,
        (threads, cancel): (usize, &Cancel),
        scratch: &Path,
    ) -> Result<PlainRows> {
        let about = |error: Error| named(error, &table.name);
        let (name, defined) = table_of(table, options)?;
        let mut faults = Faults::default();
        let stamps = Stamps::new(&table.schema, &options.timestamp, options.ttl.as_ref(), &mut faults);
        faults.into_result()?;
        let there: Vec<&str> = defined
            .iter()
            .flat_map(|(table, ..)| &table.columns)
            .map(|column| column.name.as_str())
            .collect();
        let mapping = stamps.left_out_of(&options.mapping, &table.schema, &there);
        let mapping = match &defined {
            Some((table, types, _)) => mapping.defined_by(table, types.clone()),
            None => mapping,
        };
        let mapping = Mapping::new(&table.schema, name, &mapping).map_err(about)?;
        let encoder = RowEncoder::new(&mapping, defined.as_ref().map(|(table, types, _)| (table, &**types)));
        let encoder = encoder.map_err(about)?;
        let (table_def, types, stored) = match &defined {
            Some((table, types, stored)) => (table, &**types, stored.clone()),
            None => (mapping.table(), mapping.types(), TableOptions::default()),
        };
        let made = statement(table_def, &stored);
        let statements = types.iter().map(|made| format!("{made}")).chain([made]).collect();
        let now_us = options.now_us.unwrap_or_else(now_us);
        let now_s = u32::try_from(now_us / 1_000_000)
            .map_err(|_| Error::option("now_us", "it is a time from 1970 to 2106"))?;
        let sort = SortOptions { memory_bytes, rows: table.rows, ..SortOptions::default() };
        Ok(PlainRows {
            encoder,
            stamps,
            first_write_time_us: match options.timestamp.clone().checked()? {
                WriteTimes::From(micros) => micros,
                _ => now_us,
            },
            ttl_s: match options.ttl {
                Some(Ttl::Seconds(seconds)) => seconds,
                // As of an INSERT that says nothing else.
                _ => stored.default_ttl_s,
            },
            now_s,
            records: RowRecords::default(),
            sorting: Sorting::new(
                &RowRecords::schema()?,
                &RowRecords::order(),
                sort,
                (threads, cancel),
                Some(scratch),
            )?,
            rows: 0,
            statements,
            mapping,
        })
    }

    /// The columns of the table.
    pub(super) fn columns(&self) -> &Arc<TableColumns> {
        self.encoder.columns()
    }

    /// The statements that make the table.
    pub(super) fn statements(&self) -> &str {
        &self.statements
    }

    /// Takes rows.
    pub(super) fn write(&mut self, batch: Batch, cancel: &Cancel) -> Result<()> {
        let stamps = self.stamps.of(&batch);
        let mut batch = self.mapping.assemble(batch)?;
        for row in 0..batch.rows() {
            let number = batch.first_row().saturating_add(u64_of(row));
            let at = |error: Error| error.at(|place| place.row = place.row.or(Some(number)));
            let ordinal = self.rows.saturating_add(u64_of(row));
            let write_time_us = match stamps.write_time_us(row).map_err(at)? {
                Some(write_time_us) => write_time_us,
                None => write_time_after(self.first_write_time_us, ordinal, 1).map_err(at)?,
            };
            let ttl_s = match stamps.ttl(row).map_err(at)? {
                Some(ttl_s) => u32::try_from(ttl_s).unwrap_or(0),
                None => self.ttl_s,
            };
            let expires = Expiry { ttl: ttl_s, local_deletion: self.now_s.saturating_add(ttl_s) };
            let stamp = RowStamp { write_time_us, expiry: (ttl_s > 0).then_some(expires) };
            self.encoder.add(&self.mapping, &mut batch, (row, ordinal), stamp, &mut self.records)?;
            if self.records.len() >= RECORDS || self.records.bytes() >= RECORDS_BYTES {
                cancel.check()?;
                self.sort()?;
            }
        }
        self.rows += u64_of(batch.rows());
        Ok(())
    }

    fn sort(&mut self) -> Result<()> {
        if !self.records.is_empty() {
            self.sorting.push(self.records.take()?, 0)?;
        }
        Ok(())
    }

    /// Finds out what is wrong with rows that were taken.
    pub(super) fn drain(&mut self) -> Result<()> {
        self.sort()?;
        self.sorting.drain()
    }

    /// Writes all rows, in their order.
    pub(super) fn finish(&mut self, files: &mut NewFiles, cancel: &Cancel) -> Result<()> {
        self.sort()?;
        let mut assembler = RowAssembler::new(self.encoder.columns(), self.now_s)?;
        while let Some(batch) = self.sorting.next()? {
            cancel.check()?;
            for (key, record) in RowRecords::of(&batch)? {
                assembler.push(key, record)?;
            }
            while let Some(writes) = assembler.take_ready() {
                files.put(writes, cancel)?;
            }
        }
        assembler.finish()?;
        while let Some(writes) = assembler.take_ready() {
            files.put(writes, cancel)?;
        }
        Ok(())
    }
}

/// The statement that makes a table, with all that its definition says.
fn statement(table: &TableDef, options: &TableOptions) -> String {
    if options.text.is_empty() {
        return table.to_string();
    }
    let mut bare = TableDef { comment: None, ..table.clone() };
    bare.clustering.iter_mut().for_each(|(_, order)| *order = Order::Ascending);
    let made = bare.to_string();
    format!("{} {};\n", made.trim_end().trim_end_matches(';'), options.text)
}

/// What the table is called, and what it is like if that is known without the rows.
fn table_of(table: &Table, options: &PlainRowsOptions) -> Result<(TableName, Option<Defined>)> {
    if let Some(text) = &options.schema_cql {
        if options.mapping.shape_table() {
            let what = "the definition says what the table is like: leave out the key, and what makes sets or frozen types";
            return Err(Error::option("schema_cql", what));
        }
        return defined_by(text, options).map(|defined| (defined.0.table.clone(), Some(defined)));
    }
    let described = Described::of(table)?;
    let value = table.key_values.iter().find(|it| it.key == TABLE_NAME_KEY).and_then(|it| it.value.as_ref());
    let said = value.and_then(|value| TableName::parse(std::str::from_utf8(value).ok()?).ok());
    let name = options.table.clone().or(said);
    let Some(name) = name.filter(|name| name.keyspace.is_some()) else {
        return Err(Error::option("table", "SSTables of rows need the table's name, with its keyspace"));
    };
    let columns = match described {
        Some(described) if described.mapping == MutationMapping::Logical => described.columns,
        Some(described) => {
            let error = Error::unsupported(format!(
                "rows of the mapping {}, of which SSTables cannot be made: those of full have all that they need",
                described.mapping.name()
            ));
            return Err(named(error, &table.name));
        }
        None => return Ok((name, None)),
    };
    if options.mapping.shape_table() {
        return Ok((name, None));
    }
    let defined = columns.definition(&name).map_err(|error| named(error, &table.name))?;
    Ok((name, Some((defined.0, defined.1, TableOptions::default()))))
}

/// The table that a text defines: the one of this name, or the only one.
fn defined_by(text: &str, options: &PlainRowsOptions) -> Result<Defined> {
    let wrong = |what: String| Error::option("schema_cql", what);
    let made = Definitions::parse(text).map_err(|error| wrong(error.to_string()))?;
    let mut tables: Vec<(TableDef, TableOptions)> = made.tables.into_iter().zip(made.options).collect();
    if let Some(name) = &options.table {
        let is_it = |it: &TableName| {
            it.table == name.table && (it.keyspace.is_none() || it.keyspace == name.keyspace)
        };
        tables.retain(|(table, _)| is_it(&table.table));
    }
    let [(mut table, stored)] = <[_; 1]>::try_from(tables).map_err(|tables: Vec<_>| match tables.len() {
        0 => wrong("it has no CREATE TABLE of this table".to_owned()),
        count => wrong(format!("it has {count} tables: say which (the option table)")),
    })?;
    if stored.is_compact && table.clustering.is_empty() {
        let what = "tables WITH COMPACT STORAGE and without clustering columns store rows in another way, which is not written: \
                    load such rows into a cluster (cql://…)";
        return Err(Error::unsupported(what).with(Detail::Option("schema_cql")));
    }
    if table.table.keyspace.is_none() {
        table.table.keyspace = options.table.as_ref().and_then(|name| name.keyspace.clone());
    }
    if table.table.keyspace.is_none() {
        return Err(Error::option("table", "SSTables of rows need the table's name, with its keyspace"));
    }
    let keyspace = table.table.keyspace.clone();
    let types = made.types.into_iter().filter(|it| it.keyspace.is_none() || it.keyspace == keyspace);
    Ok((table, types.collect(), stored))
}

/// Fails for options that say what rows become: writes are what they are.
pub(super) fn expect_no_options(options: &PlainRowsOptions) -> Result<()> {
    let PlainRowsOptions { table, schema_cql, mapping, timestamp, ttl, .. } = options;
    let none = MappingOptions::default();
    let given = [
        (table.is_some(), "table"),
        (mapping.nulls != none.nulls, "nulls"),
        (mapping.null_elements != none.null_elements, "null_elements"),
        (mapping.duplicate_keys != none.duplicate_keys, "duplicate_keys"),
        (schema_cql.is_some(), "schema_cql"),
        (*timestamp != WriteTimes::Now, "timestamp"),
        (ttl.is_some(), "ttl"),
        (mapping.key.is_some(), "key"),
        (mapping.row_number.is_some(), "row_number"),
        (!mapping.sets.is_empty(), "sets"),
        (mapping.frozen, "frozen"),
        (mapping.columns.is_some(), "columns"),
        (mapping.timestamps_as_millis, "timestamps_as_millis"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, name)) => {
            let what = format!(
                "{name} has no meaning for rows of the mapping full: they are writes, with their own times, to a table that has its key and its types"
            );
            Err(Error::option(name, what))
        }
        None => Ok(()),
    }
}

/// Microseconds since 1970 by this machine's clock.
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
