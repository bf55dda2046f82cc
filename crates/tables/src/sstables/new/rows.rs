//! Plain rows on their way into SSTables: as `INSERT` statements would have it.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use marquetry_base::cast::u64_of;
use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::MutationMapping;
use marquetry_scylla::bridge::writes::{RowAssembler, RowEncoder, RowRecords};
use marquetry_scylla::bridge::{Mapping, MappingOptions};
use marquetry_scylla::cql::{Definitions, TableDef, TableName, TableOptions, TypeDef};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::MutationBatch;

use super::buckets::Buckets;
use super::encoding::{Encoder, Encoding};
use super::options::PlainRowsOptions;
use super::writing::Writing;
use crate::key_values::{TABLE_SCHEMA_KEY, name_of};
use crate::stamps::{Stamps, Ttl, WriteTimes};
use crate::subject::named;
use crate::{Cancel, Described, Table};

/// Batches of fewer values than this are not worth another thread.
const FEW_VALUES: usize = 8 << 10;

/// Rows that become SSTables.
pub(super) struct PlainRows {
    /// It works on the caller's thread, until there is enough to do for several.
    encoder: Encoder,
    threads: usize,
    encoding: Option<Encoding>,
    buckets: Buckets,
    /// Rows so far.
    rows: u64,
    /// The object that they come from.
    subject: Arc<str>,
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
        threads: usize,
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
        let made = stored.statement(table_def);
        let statements = types.iter().map(|made| format!("{made}")).chain([made]).collect();
        let now_us = options.now_us.unwrap_or_else(now_us);
        let now_s = u32::try_from(now_us / 1_000_000)
            .map_err(|_| Error::option("now_us", "it is a time from 1970 to 2106"))?;
        let encoder = Encoder {
            encoder,
            stamps: Arc::new(stamps),
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
            mapping: Arc::new(mapping),
        };
        Ok(PlainRows {
            encoder,
            threads,
            encoding: None,
            buckets: Buckets::new(memory_bytes, threads, scratch),
            rows: 0,
            subject: Arc::from(""),
            statements,
        })
    }

    /// The columns of the table.
    pub(super) fn columns(&self) -> &Arc<TableColumns> {
        self.encoder.columns()
    }

    /// What it is called.
    pub(super) fn table(&self) -> &TableName {
        &self.encoder.mapping.table().table
    }

    /// The statements that make the table.
    pub(super) fn statements(&self) -> &str {
        &self.statements
    }

    /// The rows that follow come from this object.
    pub(super) fn rows_from(&mut self, object: &str) {
        self.subject = Arc::from(object);
    }

    /// Takes rows. What becomes of them does not depend on the number of threads.
    pub(super) fn write(&mut self, batch: Batch, cancel: &Cancel) -> Result<()> {
        let (first, rows) = (self.rows, batch.rows);
        self.rows += u64_of(rows);
        let is_little = rows.saturating_mul(batch.columns.len()) < FEW_VALUES;
        if self.encoding.is_none() && (self.threads < 2 || is_little) {
            let buckets = &mut self.buckets;
            return self.encoder.encode((batch, first), cancel, &mut |records| buckets.push(records, cancel));
        }
        if self.encoding.is_none() {
            // Those of rows before.
            self.take_rest(cancel)?;
            self.encoding = Some(Encoding::start(self.threads, &self.encoder, cancel)?);
        }
        while self.encoding.as_ref().is_some_and(Encoding::is_full) {
            self.take_records(cancel)?;
        }
        self.encoding.as_mut().map_or(Ok(()), |encoding| encoding.put(batch, first, &self.subject))
    }

    /// Takes the records of a batch that threads have made. False if there are none left.
    fn take_records(&mut self, cancel: &Cancel) -> Result<bool> {
        let Some(encoding) = &mut self.encoding else { return Ok(false) };
        let Some(made) = encoding.take()? else { return Ok(false) };
        made.iter().try_for_each(|records| self.buckets.push(records, cancel))?;
        Ok(true)
    }

    /// Takes the records of all rows so far: what is wrong with them is known then.
    pub(super) fn take_rest(&mut self, cancel: &Cancel) -> Result<()> {
        while self.take_records(cancel)? {}
        let buckets = &mut self.buckets;
        self.encoder.rest(&mut |records| buckets.push(records, cancel))
    }

    /// Writes all rows, in their order.
    pub(super) fn finish(&mut self, writing: &mut Writing, cancel: &Cancel) -> Result<()> {
        self.take_rest(cancel)?;
        self.encoding = None;
        let made = self.assemble(cancel, &mut |writes| writing.put(writes));
        // What was wrong with earlier writes comes first.
        writing.settle()?;
        made
    }

    /// Makes writes of all rows, in their order.
    fn assemble(&mut self, cancel: &Cancel, put: &mut dyn FnMut(MutationBatch) -> Result<()>) -> Result<()> {
        let mut assembler = RowAssembler::new(self.encoder.columns(), self.encoder.now_s)?;
        self.buckets.finish(cancel, &mut |records| {
            assembler.push(records.iter().copied())?;
            while let Some(writes) = assembler.take_ready() {
                put(writes)?;
            }
            Ok(())
        })?;
        assembler.finish()?;
        while let Some(writes) = assembler.take_ready() {
            put(writes)?;
        }
        Ok(())
    }
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
    let name = options.table.clone().or_else(|| name_of(table));
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
    let stored = options_of(table).map_err(|error| named(error, &table.name))?;
    Ok((name, Some((defined.0, defined.1, stored))))
}

/// The options that a table had on its server, if the rows come with the statement that makes it.
fn options_of(table: &Table) -> Result<TableOptions> {
    let statements = table.key_values.iter().find(|it| it.key == TABLE_SCHEMA_KEY);
    let Some(statements) = statements.and_then(|it| it.value.as_ref()) else {
        return Ok(TableOptions::default());
    };
    let text = std::str::from_utf8(statements)
        .map_err(|_| Error::corrupt(format!("{TABLE_SCHEMA_KEY} is not UTF-8")))?;
    let made = Definitions::parse(text).map_err(|error| {
        Error::corrupt(format!("{TABLE_SCHEMA_KEY} is no definition of a table: {error}"))
    })?;
    match <[TableOptions; 1]>::try_from(made.options) {
        Ok([of_table]) => Ok(of_table),
        Err(_) => Err(Error::corrupt(format!("{TABLE_SCHEMA_KEY} defines no table, or several"))),
    }
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
