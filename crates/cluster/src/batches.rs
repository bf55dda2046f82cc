//! Rows of Parquet batches.

use std::sync::Arc;

use marquetry_base::Error;
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::{Cell, MappedBatch, Mapping};
use marquetry_scylla::cql::{CqlType, Name, TypeDef};

use crate::rows::{RowBlock, RowSource};

/// The rows of a Parquet file, by a [`Mapping`] of its columns.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_base::{Limits, Object};
/// use marquetry_cluster::{Address, BatchSource, ConnectOptions, LoadOptions, Loader};
/// use marquetry_codecs::StandardCodecs;
/// use marquetry_io::{ByteSources, blocking::File, drive};
/// use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
/// use marquetry_scylla::bridge::{Mapping, MappingOptions};
/// use marquetry_scylla::cql::KeySpec;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let address: Address = "cql://localhost/demo.flights".parse()?;
/// let file = ByteSources::new().with(Object(0), File::open("flights.parquet")?);
/// let metadata = drive(&mut FooterReader::new(Object(0), Limits::DEFAULT), &file)?.ok_or("no footer")?;
///
/// let options = MappingOptions { key: Some(KeySpec::parse("origin, date")?), ..MappingOptions::default() };
/// let mapping = Arc::new(Mapping::new(&metadata.schema, address.table().clone(), &options)?);
/// let options = ReadOptions { leaves: Some(mapping.leaves()), ..ReadOptions::default() };
/// let mut reader = BatchReader::new(Object(0), metadata, Arc::new(StandardCodecs::default()), options)?;
/// let batches = std::iter::from_fn(move || drive(&mut reader, &file).transpose());
///
/// let mut loader = Loader::connect(address, &ConnectOptions::default())?;
/// loader.create_table(mapping.table(), mapping.types())?;
/// let rows = BatchSource::new("flights.parquet", mapping, batches);
/// let loaded = loader.load(Box::new(rows), &LoadOptions::default(), &mut |_| {})?;
/// println!("{} rows", loaded.rows);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BatchSource<B> {
    name: String,
    mapping: Arc<Mapping>,
    columns: Vec<(Name, CqlType)>,
    batches: B,
    /// The batch that rows are being made of, and the next of its rows.
    current: Option<(MappedBatch, usize)>,
    first_row_number: u64,
    rows_left: u64,
}

impl<B> BatchSource<B>
where
    B: Iterator<Item = Result<Batch, Error>> + Send,
{
    /// The rows of `batches`, which have the leaves of [`Mapping::leaves`]. `name` is the file's, for messages.
    pub fn new(name: impl Into<String>, mapping: Arc<Mapping>, batches: B) -> BatchSource<B> {
        let columns =
            mapping.columns().iter().map(|column| (column.name.clone(), column.cql_type.clone())).collect();
        BatchSource {
            name: name.into(),
            mapping,
            columns,
            batches,
            current: None,
            first_row_number: 0,
            rows_left: u64::MAX,
        }
    }

    /// Where a column of row numbers begins: the value of the file's first row, 0 unless told. Of several files that
    /// go to one table, each begins where the one before has ended.
    #[must_use]
    pub fn numbered_from(mut self, first_row_number: u64) -> BatchSource<B> {
        self.first_row_number = first_row_number;
        self
    }

    /// Only the first rows.
    #[must_use]
    pub fn limited_to(mut self, rows: u64) -> BatchSource<B> {
        self.rows_left = rows;
        self
    }
}

impl<B> RowSource for BatchSource<B>
where
    B: Iterator<Item = Result<Batch, Error>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[(Name, CqlType)] {
        &self.columns
    }

    fn types(&self) -> &[TypeDef] {
        self.mapping.types()
    }

    fn fill(&mut self, block: &mut RowBlock) -> Result<bool, Error> {
        while !block.is_full() {
            if self.rows_left == 0 {
                return Ok(false);
            }
            let Some((batch, next)) = &mut self.current else {
                let Some(batch) = self.batches.next() else {
                    return Ok(false);
                };
                self.current = Some((self.mapping.assemble(batch?)?, 0));
                continue;
            };
            if *next >= batch.rows() {
                self.current = None;
                continue;
            }
            let row = *next;
            *next += 1;
            self.rows_left -= 1;
            let in_file = batch.first_row() + marquetry_base::cast::u64_of(row);
            let number = self.first_row_number.saturating_add(in_file);
            block.start_row(in_file);
            for column in 0..self.columns.len() {
                block.cell(|out| {
                    self.mapping.write_cell(column, batch, row, number, out).map(Cell::is_value)
                })?;
            }
        }
        Ok(true)
    }
}
