//! The machine that turns a file into CQL text.

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Detail, Error, Price, Result, Step, release_all};
use marquetry_scylla::bridge::{Assembling, InsertWriter, MappedBatch, Mapping, MappingOptions, Nulls};
use marquetry_scylla::cql::{KeySpec, Name, TableName};

use crate::abi::{marquetry_bytes, marquetry_cql_options, marquetry_reader_options, marquetry_status};
use crate::bytes::hand_over;
use crate::error::answer;
use crate::footer::Metadata;
use crate::handles::{self, marquetry_error, marquetry_machine, marquetry_metadata};
use crate::machine::{Product, Work, make, with_machine};
use crate::reader::{Reader, Wanted};
use crate::{arguments, reserve};

/// Bytes of text that a step prints: after them it ends with the statement. With a small budget there are fewer.
const TEXT_BYTES: usize = 16 << 10;
const TEXT_BYTES_LEAST: usize = 1 << 10;
/// The price of text, and of a row and of a column that is looked up before.
const TEXT_PRICE: Price = Price { kib: 4 << 10, kilovalue: 300 << 10 };

/// Prints a table's definition, then its rows.
pub(crate) struct Cql {
    pub(crate) reader: Reader,
    inserts: InsertWriter<Mapping>,
    /// The statements that create the table, until they are handed out.
    definition: Option<Bytes>,
    /// The batch that is being made ready for printing, and the one that is printed.
    assembling: Option<Assembling>,
    batch: Option<MappedBatch>,
    next: usize,
    /// What was printed, and what it was made of, until both are released.
    used: Option<MappedBatch>,
    used_leaves: Option<Assembling>,
    /// Rows before the batch.
    rows: u64,
    has_rows: bool,
}

impl Cql {
    fn new(metadata: &Metadata, mut wanted: Wanted, options: *const marquetry_cql_options) -> Result<Cql> {
        let given: marquetry_cql_options =
            arguments::options(options)?.ok_or_else(|| Error::misuse("options of CQL text that are NULL"))?;
        let option = |name: &'static str, text: String| Error::misuse(text).with(Detail::Option(name));
        let table = arguments::text(given.table, "a table's name")?;
        let table = table.ok_or_else(|| option("table", "the name is missing".to_string()))?;
        let table = TableName::parse(table).map_err(|error| option("table", error.to_string()))?;
        let key = arguments::text(given.key, "a key")?.map(KeySpec::parse).transpose();
        let key = key.map_err(|error| option("key", error.to_string()))?;
        let row_number = match arguments::text(given.row_number, "the name of a column")? {
            None if key.is_none() => Some("row_number"),
            named => named,
        };
        let row_number = row_number.map(Name::new).transpose();
        let row_number = row_number.map_err(|error| option("row_number", error.to_string()))?;
        let nulls = match arguments::flag(given.write_nulls, "write_nulls")? {
            true => Nulls::Null,
            false => Nulls::Unset,
        };
        let timestamps_as_millis = arguments::flag(given.timestamps_as_millis, "timestamps_as_millis")?;
        let (only_schema, only_rows) = (
            arguments::flag(given.only_schema, "only_schema")?,
            arguments::flag(given.only_rows, "only_rows")?,
        );
        if only_schema && only_rows {
            return Err(option("only_rows", "and only_schema exclude each other".to_string()));
        }
        let schema = &metadata.file.schema;
        if wanted.options.leaves.is_some() {
            let what = "columns for CQL text: read the footer for these columns instead";
            return Err(option("columns", what.to_string()));
        }
        let limits = wanted.options.limits;
        let options = MappingOptions {
            key,
            row_number,
            nulls,
            timestamps_as_millis,
            limits,
            ..MappingOptions::default()
        };
        reserve::section(|| {
            let mapping = Mapping::new(schema, table, &options)?;
            let definition = (!only_rows).then(|| {
                let types = mapping.types().iter().map(ToString::to_string);
                let statements: String = types.chain([mapping.table().to_string()]).collect();
                Bytes::from(statements)
            });
            wanted.options.leaves = Some(mapping.leaves());
            wanted.options.keep_dictionaries = true;
            let reader = Reader::new(&metadata.file, wanted)?;
            let inserts = InsertWriter::new(mapping);
            Ok(Cql {
                reader,
                inserts,
                definition,
                assembling: None,
                batch: None,
                next: 0,
                used: None,
                used_leaves: None,
                rows: 0,
                has_rows: !only_schema,
            })
        })
    }

    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Bytes>> {
        if let Some(definition) = self.definition.take() {
            return Ok(Step::Ready(definition));
        }
        if !self.has_rows {
            return Ok(Step::Done);
        }
        if (self.used.is_some() || self.used_leaves.is_some())
            && (!release_all(&mut [&mut self.used, &mut self.used_leaves], budget) || budget.is_spent())
        {
            return Ok(Step::Yield);
        }
        let Some(batch) = &self.batch else { return self.make_ready(budget) };
        let bytes_max = budget.bytes_left(TEXT_PRICE).clamp(TEXT_BYTES_LEAST, TEXT_BYTES);
        if bytes_max < TEXT_BYTES && budget.spent() > 0 {
            // The next step has more.
            return Ok(Step::Yield);
        }
        let mut text = Vec::new();
        let written = reserve::section(|| {
            self.inserts.write(batch, self.next..batch.rows(), self.rows, &mut text, bytes_max)
        })?;
        if written.next_row <= self.next && self.next < batch.rows() {
            return Err(Error::internal("a writer of statements makes no progress"));
        }
        budget.charge(TEXT_PRICE, text.len(), written.next_row - self.next);
        budget.charge(TEXT_PRICE, 0, self.inserts.mapping().columns().len());
        self.next = written.next_row;
        if self.next >= batch.rows() {
            self.rows += u64_of(batch.rows());
            self.used = self.batch.take();
        }
        Ok(if text.is_empty() { Step::Yield } else { Step::Ready(Bytes::from(text)) })
    }

    /// Reads a batch, and makes it ready for printing.
    fn make_ready(&mut self, budget: &mut Budget<'_>) -> Result<Step<Bytes>> {
        if self.assembling.is_none() {
            let batch = match self.reader.step(budget)? {
                Step::Ready(batch) => batch,
                Step::Need(demand) => return Ok(Step::Need(demand)),
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
                Step::Yield => return Ok(Step::Yield),
                Step::Done => return Ok(Step::Done),
            };
            self.assembling = Some(reserve::section(|| self.inserts.mapping().assembling(batch)));
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
        if let Some(assembling) = &mut self.assembling {
            let mapping = self.inserts.mapping();
            self.batch = reserve::section(|| mapping.step_assembling(assembling, budget))?;
            if self.batch.is_some() {
                self.next = 0;
                self.used_leaves = self.assembling.take();
            }
        }
        Ok(Step::Yield)
    }

    pub(crate) fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Cql { reader, definition, assembling, batch, used, used_leaves, .. } = self;
        release_all(&mut [definition, assembling, batch, used, used_leaves, reader], budget)
    }
}

/// Makes a machine that turns a file into CQL: `CREATE TYPE` and `CREATE TABLE`, then an `INSERT` for each row. Its products are texts:
/// `marquetry_take_text`.
///
/// * `metadata`: in, borrowed during the call.
/// * `rows`: in, borrowed; NULL: all rows. Its `columns` must be NULL: what a footer was read for is written.
/// * `options`: in, borrowed; must not be NULL.
/// * `machine`: out, owned by the host.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_cql_new(
    metadata: *const marquetry_metadata,
    rows: *const marquetry_reader_options,
    options: *const marquetry_cql_options,
    machine: *mut *mut marquetry_machine,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    make(machine, error, || {
        handles::with::<Metadata, _>(metadata, |metadata| {
            let wanted = Wanted::of(&metadata.file, rows)?;
            Cql::new(metadata, wanted, options).map(Work::Cql)
        })
    })
}

/// Takes text, after a machine of CQL was `READY`: complete statements, in order.
///
/// * `machine`: in, borrowed.
/// * `text`: out, owned by the host: `marquetry_bytes_release`. UTF-8, without a NUL at its end.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_take_text(
    machine: *mut marquetry_machine,
    text: *mut marquetry_bytes,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        let Some(Product::Text(found)) = &machine.product else {
            return Err(Error::misuse("there is no text to take"));
        };
        arguments::put_new(text, || hand_over(found.clone()))?;
        machine.product = None;
        Ok(())
    });
    answer(done, error)
}
