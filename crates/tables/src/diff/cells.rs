//! Columns beside those of a live table, compared by the cells that a load would make of them: sets in their order and without duplicates, text as
//! the values that it is loaded as.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{ErrorKind, Limits, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::{Meaning, Schema};
use marquetry_scylla::bridge::{Cell, DuplicateKeys, Existing, Mapping, MappingOptions, NullElements};
use marquetry_scylla::cql::{ColumnDef, CqlType, Name, TableDef, TableName, TypeDef};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::marshal::MarshalType;

use super::forms::Form;
use super::leaves::{LeafPair, Run};
use super::values::loaded;
use crate::described::columns_of;
use crate::{ColumnPath, Table, spaced};

/// The table among two that rows are loaded into, if its servers say what its columns are.
#[derive(Debug)]
pub(super) struct Live {
    /// Which of the two it is.
    pub(super) side: usize,
    pub(super) columns: TableColumns,
    definition: TableDef,
    types: Vec<TypeDef>,
    limits: Limits,
}

impl Live {
    pub(super) fn of(tables: [&Table; 2], limits: &Limits) -> Option<Live> {
        let columns = |side: usize| columns_of(tables[side]).filter(|_| tables[side].identity.is_some());
        let (side, columns) = [1, 0].into_iter().find_map(|side: usize| Some((side, columns(side)?)))?;
        let (definition, types) = columns.definition(&TableName::parse("t").ok()?).ok()?;
        Some(Live { side, columns, definition, types, limits: *limits })
    }

    /// How a column is compared by its cells, if it is to be. `pairs` are its leaves, if they can be compared at all.
    pub(super) fn pair(
        &self,
        tables: [&Table; 2],
        name: &str,
        pairs: Option<&[LeafPair]>,
        keeps_nulls: bool,
    ) -> Option<CellPair> {
        let kind = self.kind(name)?;
        // An unload of such a table has its values as it has them.
        let is_unloaded = columns_of(tables[1 - self.side]).is_some();
        let is_plain = pairs.is_some_and(|pairs| {
            is_unloaded || !(has_order(kind) || pairs.iter().any(|pair| self.is_other_text(kind, pair)))
        });
        if is_plain {
            return None;
        }
        let column = self.definition.columns.iter().find(|column| column.name.as_str() == name)?;
        let mapping = |table: &Table| self.mapping(&table.schema, column).map(Arc::new);
        Some(CellPair {
            mappings: [mapping(tables[0])?, mapping(tables[1])?],
            form: Form::of(kind, false).ok()?,
            kind: Several::of(kind),
            keeps_nulls,
        })
    }

    /// Whether values of a flat column are in the same order in both tables, and are equal where those are that a load makes of them.
    pub(super) fn has_own_order(&self, tables: [&Table; 2], name: &str) -> bool {
        let meaning = |table: &Table| {
            let leaf = table.schema.leaves().get(ColumnPath::of([name]).flat_leaf(&table.schema).ok()?)?;
            Some(table.schema.meaning_of(leaf).read_as(leaf.physical_type))
        };
        let (Some(a), Some(b)) = (meaning(tables[0]), meaning(tables[1])) else { return false };
        let are_alike = match loaded([a, b]) {
            [Meaning::Integer { .. }, Meaning::Integer { .. }]
            | [Meaning::Timestamp { .. }, Meaning::Timestamp { .. }]
            | [Meaning::Time { .. }, Meaning::Time { .. }] => true,
            [a, b] => a == b,
        };
        are_alike && self.kind(name).is_some_and(|kind| !has_unlike_text(kind))
    }

    fn kind(&self, name: &str) -> Option<&MarshalType> {
        let mut keys = self.columns.partition_key.iter().chain(&self.columns.clustering);
        let of_key = keys.find(|key| key.name == name).map(|key| &key.kind);
        let mut cells = self.columns.cells();
        of_key.or_else(|| Some(&cells.find(|cell| *cell.name == *name.as_bytes())?.kind))
    }

    /// Whether the other table has text where this one does not, or has another type as text.
    fn is_other_text(&self, kind: &MarshalType, pair: &LeafPair) -> bool {
        let [of_live, other] = [pair.meanings[self.side], pair.meanings[1 - self.side]];
        other.is_text() && (!of_live.is_text() || has_unlike_text(kind))
    }

    /// What makes cells of a column, of a table that has it by the same name.
    fn mapping(&self, schema: &Arc<Schema>, column: &ColumnDef) -> Option<Mapping> {
        // Its rows are numbered: a mapping has a key.
        let number = Name::new(&format!("{}_", column.name.as_str())).ok()?;
        let columns = vec![(column.name.clone(), column.cql_type.clone()), (number.clone(), CqlType::Bigint)];
        let existing = Existing { columns, statics: Vec::new(), types: self.types.clone() };
        let options = MappingOptions {
            columns: Some(vec![column.name.as_str().to_owned()]),
            row_number: Some(number),
            null_elements: NullElements::Drop,
            duplicate_keys: DuplicateKeys::Last,
            existing: Some(existing),
            limits: self.limits,
            ..MappingOptions::default()
        };
        Mapping::new(schema, TableName::parse("t").ok()?, &options).ok()
    }
}

/// Whether servers put what is in values in order.
fn has_order(kind: &MarshalType) -> bool {
    matches!(kind, MarshalType::Set(_) | MarshalType::Map(..)) || parts_of(kind).into_iter().any(has_order)
}

/// Whether values, or what is in them, are text to Parquet and not to servers.
fn has_unlike_text(kind: &MarshalType) -> bool {
    matches!(kind, MarshalType::Native(CqlType::Decimal | CqlType::Varint | CqlType::Inet))
        || parts_of(kind).into_iter().any(has_unlike_text)
}

/// The types in a type.
fn parts_of(kind: &MarshalType) -> Vec<&MarshalType> {
    match kind {
        MarshalType::List(inner)
        | MarshalType::Set(inner)
        | MarshalType::Frozen(inner)
        | MarshalType::Reversed(inner)
        | MarshalType::Vector(inner, _) => vec![&**inner],
        MarshalType::Map(key, value) => vec![&**key, &**value],
        MarshalType::Tuple(members) => members.iter().collect(),
        MarshalType::User { fields, .. } => fields.iter().map(|(_, kind)| kind).collect(),
        _ => Vec::new(),
    }
}

/// Whether a column has several cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Several {
    One,
    Elements,
    Fields,
}

impl Several {
    fn of(kind: &MarshalType) -> Several {
        match kind {
            MarshalType::User { .. } => Several::Fields,
            kind if kind.is_multi_cell() => Several::Elements,
            _ => Several::One,
        }
    }

    /// Whether such a value is no cell at all.
    fn is_nothing(self, value: &[u8]) -> bool {
        match self {
            Several::One => false,
            Several::Elements => value.iter().take(4).all(|byte| *byte == 0),
            // Each field is a length of -1.
            Several::Fields => value.iter().all(|byte| *byte == 0xff),
        }
    }
}

/// A column that two tables have, which is compared by its cells.
#[derive(Debug)]
pub(super) struct CellPair {
    mappings: [Arc<Mapping>; 2],
    form: Form,
    kind: Several,
    /// What the first table has nothing of is not compared.
    keeps_nulls: bool,
}

/// The only column of a mapping besides the numbers of rows.
const COLUMN: usize = 1;

/// A cell that a load would make.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Made {
    Null,
    /// A collection, or a user-defined type, without a cell.
    Nothing,
    /// Its form.
    Value(Range<usize>),
    /// Of a value that no load takes.
    Unfit,
}

impl CellPair {
    /// The leaves of one of the tables that the column has.
    pub(super) fn leaves(&self, side: usize) -> Vec<usize> {
        self.mappings[side].leaves()
    }

    /// Marks the rows of the first table that differ from those of the second that they are compared with; of each table the rows that were
    /// looked at, with its [leaves](CellPair::leaves).
    pub(super) fn mark(&self, [a, b]: [Batch; 2], runs: &[Run], marks: &mut [bool]) -> Result<()> {
        let ((of_a, bytes_a), (of_b, bytes_b)) = (self.made(0, a)?, self.made(1, b)?);
        for run in runs {
            let rows = of_a.iter().skip(run.at[0]).zip(of_b.iter().skip(run.at[1])).take(run.rows);
            for (row, (a, b)) in rows.enumerate() {
                let is_kept = self.keeps_nulls
                    && (*a == Made::Null || (*a == Made::Nothing && self.kind == Several::Elements));
                let is_same = match (a, b) {
                    (Made::Value(a), Made::Value(b)) => bytes_a.get(a.clone()) == bytes_b.get(b.clone()),
                    (Made::Null | Made::Nothing, Made::Null | Made::Nothing) => true,
                    _ => false,
                };
                if let Some(mark) = marks.get_mut(run.at[0] + row).filter(|_| !is_kept && !is_same) {
                    *mark = true;
                }
            }
        }
        Ok(())
    }

    /// The cells of some rows of one of the tables, and their bytes.
    fn made(&self, side: usize, batch: Batch) -> Result<(Vec<Made>, Vec<u8>)> {
        let (mapping, rows) = (&self.mappings[side], batch.rows);
        let mapped = mapping.assemble(spaced(batch))?;
        let mut mapped = mapping.bind(&mapped, 0)?;
        let (mut all, mut bytes, mut cell) = (Vec::with_capacity(rows), Vec::new(), Vec::new());
        for row in 0..rows {
            cell.clear();
            all.push(match mapped.write_cell(COLUMN, row, &mut cell) {
                Ok(Cell::Null) => Made::Null,
                Ok(Cell::Value) if self.kind.is_nothing(&cell) => Made::Nothing,
                Ok(Cell::Value) => {
                    let start = bytes.len();
                    self.form.write(&cell, &mut bytes);
                    Made::Value(start..bytes.len())
                }
                Err(error) if is_about_a_value(error.kind()) => Made::Unfit,
                Err(error) => return Err(error),
            });
        }
        Ok((all, bytes))
    }
}

/// Whether an error is about a value, which no load takes, and not about the table.
pub(super) fn is_about_a_value(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Conversion | ErrorKind::Corrupt | ErrorKind::LimitExceeded)
}
