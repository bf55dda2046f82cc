//! Keys of rows beside those of a live table, as its servers hold them apart: by their bytes.
//!
//! Each row of both tables gets one more column, which rows are sorted by, too: its key as a load would send it. Of the partition key
//! these are the very bytes, so that `0.0` and `-0.0`, or the decimals `1.0` and `1.00`, are two keys; of clustering columns it is what
//! their types' order goes by ([`Form`]): the floats are two there, too, and the decimals are one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Values};
use marquetry_parquet::schema::{Column, PhysicalType, Plan as _, Union};
use marquetry_scylla::bridge::{BoundBatch, Cell, Mapping};

use super::cells::{Live, is_about_a_value};
use super::forms::Form;
use super::options::DiffOptions;
use super::tokens;
use crate::subject::named;
use crate::{Batches, Cancel, ColumnPath, Piece, PieceOptions, Source, Table, spaced};

/// Makes the keys of two tables, of which one is live.
#[derive(Debug, Clone)]
pub(super) struct ExactKeys {
    mappings: [Arc<Mapping>; 2],
    /// How many columns the partition key has.
    partition: usize,
    clustering: Arc<[Form]>,
    /// The columns that rows can be sorted by as they are, too: rows of one key are next to each other then.
    sorted: Vec<ColumnPath>,
}

/// What a key begins with that a load would send; others are of rows that it would not.
const FIT: u8 = 0;
const LONG: u8 = 1;
const UNFIT: u8 = 2;
/// The most bytes of a key that are sorted by as they are; of longer ones it is a hash. A sorter has room for 65,535 bytes of a key, which its own
/// columns may need.
const KEY_BYTES_MAX: usize = 64;
/// What the added column is called. Nobody looks for it by its name.
const NAME: &str = "marquetry key";

impl ExactKeys {
    /// Of two tables whose rows are matched by these columns, if they are the primary key of the one that is live.
    pub(super) fn of(tables: [&Table; 2], options: &DiffOptions) -> Option<ExactKeys> {
        let live = Live::of(tables, &options.limits).filter(|_| options.as_loaded)?;
        let keys = live.columns.partition_key.iter().chain(&live.columns.clustering);
        let is_named =
            |name: &str| options.key.iter().any(|path| matches!(&*path.parts, [only] if only.text == name));
        if options.key.len() != keys.clone().count() || !keys.clone().all(|key| is_named(&key.name)) {
            return None;
        }
        let is_sorted = |path: &&ColumnPath| {
            path.parts.first().is_some_and(|name| live.has_own_order(tables, &name.text))
        };
        let mapping = |table: &Table| tokens::mapping(table, live.columns.clone(), &options.limits);
        let clustering = live.columns.clustering.iter().map(|key| Form::of(&key.kind, true));
        Some(ExactKeys {
            mappings: [mapping(tables[0])?, mapping(tables[1])?],
            partition: live.columns.partition_key.len(),
            clustering: clustering.collect::<Result<_>>().ok()?,
            sorted: options.key.iter().filter(is_sorted).cloned().collect(),
        })
    }

    /// The columns that rows are sorted by before their keys, in which rows of one key have the same.
    pub(super) fn sorted(&self) -> &[ColumnPath] {
        &self.sorted
    }

    /// One of the tables, each of whose rows has its key in one more column, the last.
    pub(super) fn source(&self, side: usize, source: &Arc<dyn Source>) -> Result<Arc<dyn Source>> {
        let mut table = source.table().clone();
        let mut union = Union::new();
        union.add(Arc::clone(&table.schema));
        let (name, physical_type) = (unused(&table), PhysicalType::ByteArray);
        let columns = union.with([Column { name, physical_type, logical_type: None }]);
        table.schema = columns.plan().at_once().map_err(|error| named(error, &table.name))?.schema;
        if table.schema.leaves().len() != source.table().schema.leaves().len() + 1 {
            return Err(Error::internal("a schema that a column cannot be added to"));
        }
        Ok(Arc::new(WithKeys { source: Arc::clone(source), keys: self.clone(), side, table }))
    }

    /// Appends the key of a row.
    fn write(&self, batch: &mut BoundBatch<'_>, row: usize, key: &mut Vec<u8>) -> Result<()> {
        let mut cell = Vec::new();
        for column in 0..self.partition + self.clustering.len() {
            cell.clear();
            let is_there = batch.write_cell(column, row, &mut cell)? == Cell::Value;
            key.push(u8::from(is_there));
            let length_at = key.len();
            key.extend([0; 4]);
            match column.checked_sub(self.partition).and_then(|column| self.clustering.get(column)) {
                Some(form) => form.write(&cell, key),
                None => key.extend_from_slice(&cell),
            }
            let length = u32::try_from(key.len() - length_at - 4).unwrap_or(u32::MAX);
            key[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

/// A name that no column of a table has.
fn unused(table: &Table) -> String {
    let mut name = NAME.to_owned();
    while table.schema.child_of_root(&name).is_some() {
        name.push('_');
    }
    name
}

/// A table whose rows have their keys in one more column.
struct WithKeys {
    source: Arc<dyn Source>,
    keys: ExactKeys,
    side: usize,
    table: Table,
}

impl Source for WithKeys {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        self.source.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let batches = self.source.open(piece, options)?;
        let (keys, side) = (self.keys.clone(), self.side);
        Ok(Box::new(RowsWithKeys { batches, keys, side, piece, rows: 0 }))
    }

    fn lines_of(&self, piece: usize, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        self.source.lines_of(piece, rows, cancel)
    }
}

struct RowsWithKeys {
    batches: Box<dyn Batches>,
    keys: ExactKeys,
    side: usize,
    piece: usize,
    /// Rows that came before.
    rows: u64,
}

impl RowsWithKeys {
    /// Appends what a row is matched by.
    fn write(&self, batch: &mut BoundBatch<'_>, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let mut key = Vec::new();
        match self.keys.write(batch, row, &mut key) {
            Ok(()) if key.len() <= KEY_BYTES_MAX => {
                out.push(FIT);
                out.extend(key);
            }
            Ok(()) => {
                out.push(LONG);
                // Two numbers of 64 bits: no two keys ever have the same.
                for seed in 0..2_u8 {
                    let mut hasher = DefaultHasher::new();
                    (seed, &*key).hash(&mut hasher);
                    out.extend(hasher.finish().to_be_bytes());
                }
            }
            Err(error) if is_about_a_value(error.kind()) => {
                // It is like no other.
                out.push(UNFIT);
                let place = [u64_of(self.side), u64_of(self.piece), self.rows + u64_of(row)];
                out.extend(place.into_iter().flat_map(u64::to_be_bytes));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Batches for RowsWithKeys {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(batch) = self.batches.next()? else { return Ok(None) };
        let mut batch = spaced(batch);
        let mapping = Arc::clone(&self.keys.mappings[self.side]);
        let leaves = mapping.leaves().into_iter().map(|leaf| batch.columns.get(leaf).cloned());
        let columns: Vec<ColumnBatch> =
            leaves.collect::<Option<_>>().ok_or_else(|| Error::misuse("a batch that lacks columns"))?;
        let mapped = mapping.assemble(Batch { columns, ..batch })?;
        let mut mapped = mapping.bind(&mapped, 0)?;
        let (mut bytes, mut lengths) = (Vec::new(), Vec::with_capacity(batch.rows));
        for row in 0..batch.rows {
            let start = bytes.len();
            self.write(&mut mapped, row, &mut bytes)?;
            lengths.push(bytes.len() - start);
        }
        self.rows += u64_of(batch.rows);
        let leaf = batch.columns.len();
        batch.columns.push(ColumnBatch {
            leaf,
            rows: batch.rows,
            nulls: 0,
            validity: None,
            values: Values::ByteArray(ByteArrays::from_lengths(bytes.into(), lengths)?),
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        });
        Ok(Some(batch))
    }
}
