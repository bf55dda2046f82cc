//! Rows as CQL text.

use std::io::Write;

use marquetry_base::cast::u64_of;
use marquetry_base::{Detail, Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::MutationMapping;
use marquetry_scylla::bridge::{InsertWriter, Mapping, MappingOptions};
use marquetry_scylla::cql::{TableDef, TableName, TypeDef};

use crate::gather::{GATHERED_BYTES, Gather};
use crate::{Described, Destination, Guard, Stage, Table, Wants, Written};

/// A table as CQL text: `CREATE TYPE` for each user-defined type that it needs, `CREATE TABLE`, then one `INSERT` per
/// row.
///
/// The text goes to any writer: standard output, a file, a `Vec<u8>`. It is written in pieces of some 128 KiB, each
/// of which ends with a complete statement; memory is bounded, whatever the number of rows.
///
/// Text cannot be taken back. After an error, or if dropped before it is finished, the output is complete statements,
/// for all rows before the faulty one; unless the writer itself failed within a statement, after which nothing more
/// is written.
///
/// Rows are wanted in the source's order: it numbers them ([`MappingOptions::row_number`], continuously over all
/// pieces), and of several rows with one key the last one stays.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
/// use marquetry_scylla::bridge::MappingOptions;
/// use marquetry_scylla::cql::{KeySpec, TableName};
/// use marquetry_tables::{CqlText, CqlTextOptions, Destination, Table};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mapping = MappingOptions { key: Some(KeySpec::parse("id")?), ..MappingOptions::default() };
/// let mut text = Vec::new();
/// let mut trips = CqlText::new(&mut text, TableName::parse("ks.trips")?, CqlTextOptions::of(mapping));
///
/// // What `copy` does with the table of its source, and then with its rows:
/// let schema = Schema::of_fields(&[FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None))])?;
/// trips.begin(&Table::new("trips.parquet", Arc::new(schema)))?;
/// trips.finish()?;
/// drop(trips);
/// assert_eq!(text, b"CREATE TABLE ks.trips (\n    id bigint,\n    PRIMARY KEY (id)\n);\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CqlText<W: Write> {
    name: String,
    table: TableName,
    options: CqlTextOptions,
    guard: Guard,
    out: Gather<W>,
    /// `None` before `begin`.
    inserts: Option<InsertWriter<Mapping>>,
    written: Written,
}

/// How a table is written as text.
///
/// ```
/// use marquetry_scylla::bridge::MappingOptions;
/// use marquetry_scylla::cql::KeySpec;
/// use marquetry_tables::{CqlParts, CqlTextOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mapping = MappingOptions { key: Some(KeySpec::parse("(day), hour")?), ..MappingOptions::default() };
/// let schema_only = CqlTextOptions::of(mapping).only(CqlParts::Schema);
/// assert_eq!(schema_only.parts, CqlParts::Schema);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CqlTextOptions {
    /// How its columns map to CQL, and what the primary key is, which is required unless the source [describes](Described) its table.
    pub mapping: MappingOptions,
    /// Which statements are written.
    pub parts: CqlParts,
}

/// Which statements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CqlParts {
    /// Those that create the types and the table, and those that fill it.
    #[default]
    All,
    /// Only those that create the types and the table. Rows are ignored; a copy with a limit of 0 rows does not read
    /// them.
    Schema,
    /// Only those that fill the table.
    Rows,
}

impl CqlTextOptions {
    /// All statements, with this mapping.
    pub fn of(mapping: MappingOptions) -> CqlTextOptions {
        CqlTextOptions { mapping, parts: CqlParts::All }
    }

    /// Only some of the statements.
    #[must_use]
    pub fn only(mut self, parts: CqlParts) -> CqlTextOptions {
        self.parts = parts;
        self
    }
}

impl<W: Write> CqlText<W> {
    /// Text for a table of this name. Nothing is written yet.
    pub fn new(writer: W, table: TableName, options: CqlTextOptions) -> CqlText<W> {
        CqlText {
            name: "CQL text".to_string(),
            table,
            options,
            guard: Guard::default(),
            out: Gather::new(writer),
            inserts: None,
            written: Written::default(),
        }
    }

    /// The writer's name in messages: `standard output`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> CqlText<W> {
        self.name = name.into();
        self
    }

    fn begin_text(&mut self, table: &Table) -> Result<Wants> {
        let about = |error: Error| error.at(|place| place.object = Some(table.name.clone()));
        let defined = self.definition(table).map_err(about)?;
        let options = self.options.mapping.clone();
        let options = match &defined {
            Some((table, types)) => options.defined_by(table, types.clone()),
            None => options,
        };
        let mapping = Mapping::new(&table.schema, self.table.clone(), &options).map_err(about)?;
        if self.options.parts != CqlParts::Rows {
            let (table, types) = match &defined {
                Some((table, types)) => (table, &**types),
                None => (mapping.table(), mapping.types()),
            };
            let types = types.iter().map(ToString::to_string);
            let statements: String = types.chain([table.to_string()]).collect();
            self.written.bytes += u64_of(statements.len());
            self.out.text().extend_from_slice(statements.as_bytes());
        }
        self.inserts = Some(InsertWriter::new(mapping));
        Ok(Wants { keep_dictionaries: true, ..Wants::default() })
    }

    /// The table as its source defines it, unless the options say what it is.
    fn definition(&self, table: &Table) -> Result<Option<(TableDef, Vec<TypeDef>)>> {
        if self.options.mapping.shape_table() {
            return Ok(None);
        }
        match Described::of(table)? {
            None => Ok(None),
            Some(Described { mapping: MutationMapping::Logical, columns }) => {
                columns.definition(&self.table).map(Some)
            }
            Some(Described { mapping, .. }) => Err(Error::unsupported(format!(
                "rows of the mapping {} as CQL text, which has no place for what they are besides values: make logical ones of the SSTables",
                mapping.name()
            ))
            .with(Detail::AdmittedBy(&["mapping"]))),
        }
    }

    fn write_rows(&mut self, batch: Batch) -> Result<()> {
        let Some(inserts) = &mut self.inserts else {
            return Err(Error::internal("CQL text that has begun without its table"));
        };
        if self.options.parts == CqlParts::Schema {
            return Ok(());
        }
        // The columns are looked up once a call, so a call should print some rows of a wide table too.
        let bytes_max = GATHERED_BYTES.max(inserts.mapping().columns().len() * WIDE_ROW_COLUMN_BYTES);
        let batch = inserts.mapping().assemble(batch)?;
        // Numbered on over all pieces.
        let first_row_number = self.written.rows;
        let mut next = 0;
        while next < batch.rows() {
            let text = self.out.text();
            let before = text.len();
            let written = inserts.write(&batch, next..batch.rows(), first_row_number, text, bytes_max)?;
            if written.next_row <= next {
                return Err(Error::internal("a writer of statements makes no progress"));
            }
            next = written.next_row;
            self.written.bytes += u64_of(self.out.text().len() - before);
            self.out.end_unit()?;
        }
        self.written.rows += u64_of(batch.rows());
        Ok(())
    }
}

impl<W: Write + Send> Destination for CqlText<W> {
    fn name(&self) -> &str {
        &self.name
    }

    /// Writes the statements that create the types and the table, if they are wanted.
    ///
    /// # Errors
    ///
    /// As for [`Mapping::new`], about the source: everything that is wrong, at once. Nothing is written then.
    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.begin_text(table);
        self.guard.then(Stage::Begun, begun)
    }

    /// Writes the rows' statements.
    ///
    /// # Errors
    ///
    /// `Conversion`, with row and column, for a row that CQL cannot hold; the statements of the rows before it are
    /// written. `Io` if the writer fails, with its [`std::io::Error`] as the [cause](std::error::Error::source),
    /// whose kind is [`BrokenPipe`](std::io::ErrorKind::BrokenPipe) if the reader has gone.
    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let written = self.write_rows(batch);
        if written.is_err() {
            // What precedes the fault is complete statements, which are wanted; the first error is reported.
            let _ = self.out.flush();
        }
        self.guard.then(Stage::Begun, written)
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let flushed = self.out.flush();
        self.guard.then(Stage::Finished, flushed)?;
        Ok(self.written)
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        self.guard.then(Stage::Committed, Ok(()))
    }

    /// The rows and bytes of the statements so far, of which the last may not be written yet.
    fn progress(&self) -> Option<Written> {
        self.inserts.is_some().then_some(self.written)
    }
}

/// Bytes of statements that are printed at a time, for each column: the shortest of statements have about 10.
const WIDE_ROW_COLUMN_BYTES: usize = 160;

#[cfg(test)]
mod tests;
