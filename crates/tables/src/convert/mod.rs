//! The columns of any table in other types, and under other names.

mod plan;
mod rename;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bitmap, Error, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, RowSelection, Value, Values};
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::print::{self, Shown};
use marquetry_parquet::schema::{Leaf, Schema};
use marquetry_text::Types;

use crate::key_values::holds_for_any_columns;
use crate::source::{open_piece, open_piece_rows};
use crate::subject::named;
use crate::{Batches, Cancel, ColumnPath, Piece, PieceOptions, Source, Table, project};

pub use rename::{Rename, rename};

use plan::{Conversion, OrderKept};
use values::Slots;

/// The same table, some of whose columns have other types. What is nested stays nested; the types of its leaves change.
///
/// | from | to | |
/// |---|---|---|
/// | integers, decimals | integers, decimals | if nothing is lost: in range, and only zeros are cut off |
/// | integers | `float16`, `float`, `double` | if they are held exactly |
/// | decimals, floats | `float16`, `float`, `double` | the nearest number; one that is too large is an error |
/// | floats | integers | if they have no fraction and are in range |
/// | floats | decimals | the digits that are printed, if the type has room for them |
/// | signed integers | timestamps in UTC | as a count of the type's own unit since 1970: of milliseconds, as `timestamp` |
/// | timestamps, INT96 | timestamps, INT96 | in another unit, if no digit is lost; local times are taken as UTC |
/// | `date` | timestamps | midnight |
/// | timestamps | `date` | if they are a midnight |
/// | times | times | in another unit, if no digit is lost |
/// | text | any | as text is read |
/// | any | text | as CSV has it |
/// | `uuid`, bytes | `uuid`, bytes | if they have the length |
///
/// A value that does not fit is an error with its row, its column and the value.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Source, convert};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips.parquet"], &FilesOptions::default())?);
/// let exact = convert(&trips, &"fare=decimal(12, 2), place.lat=float".parse()?)?;
/// assert_eq!(exact.table().schema.leaves().len(), trips.table().schema.leaves().len());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// All that is wrong with the types, in one error: `Misuse` for columns that the table lacks, with a list of those that it
/// has; `Conversion` for columns whose type cannot become the other.
pub fn convert(source: &Arc<dyn Source>, types: &Types) -> Result<Arc<dyn Source>> {
    let all = source.table();
    let conversions =
        plan::plan(&all.schema, types, &all.durations).map_err(|error| named(error, &all.name))?;
    with_conversions(source, conversions)
}

fn with_conversions(
    source: &Arc<dyn Source>,
    conversions: BTreeMap<usize, Conversion>,
) -> Result<Arc<dyn Source>> {
    if conversions.is_empty() {
        return Ok(Arc::clone(source));
    }
    let mut table = source.table().clone();
    let mut schema = Schema::clone(&table.schema);
    for (leaf, conversion) in &conversions {
        let (physical_type, logical_type) = conversion.to.types();
        schema.set_leaf_type(*leaf, physical_type, logical_type)?;
    }
    table.schema = Arc::new(schema);
    table.key_values.retain(holds_for_any_columns);
    table.of_all_columns.clear();
    table.order = order_kept(&table.order, &conversions);
    table.durations.retain(|leaf| !conversions.contains_key(leaf));
    Ok(Arc::new(Converted { source: Arc::clone(source), table, conversions: Arc::new(conversions) }))
}

/// The order of rows that were in this order: up to the first column whose values may be in another one, or equal where they
/// were not.
fn order_kept(order: &[SortingColumn], conversions: &BTreeMap<usize, Conversion>) -> Vec<SortingColumn> {
    let mut kept = Vec::new();
    for by in order {
        let conversion = usize::try_from(by.column).ok().and_then(|leaf| conversions.get(&leaf));
        match conversion.map_or(OrderKept::Strict, Conversion::order_kept) {
            OrderKept::Strict => kept.push(*by),
            OrderKept::Monotone => {
                kept.push(*by);
                break;
            }
            OrderKept::Nothing => break,
        }
    }
    kept
}

/// A table some of whose columns are converted as they come.
struct Converted {
    source: Arc<dyn Source>,
    table: Table,
    /// By leaf.
    conversions: Arc<BTreeMap<usize, Conversion>>,
}

impl Source for Converted {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        self.source.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(self.converting(piece, open_piece(self.source.as_ref(), piece, options)?))
    }

    fn open_rows(
        &self,
        piece: usize,
        rows: RowSelection,
        options: &PieceOptions,
    ) -> Result<Option<Box<dyn Batches>>> {
        let batches = open_piece_rows(self.source.as_ref(), piece, rows, options)?;
        Ok(batches.map(|batches| self.converting(piece, batches)))
    }

    fn lines_of(&self, piece: usize, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        self.source.lines_of(piece, rows, cancel)
    }

    /// Columns of which nothing is wanted are not read.
    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        let schema = &self.table.schema;
        let mut wanted = Vec::new();
        for column in columns {
            let Ok(leaves) = column.leaves(schema) else { return Ok(None) };
            wanted.extend(leaves);
        }
        let is_wanted = |node: &usize| schema.leaves_of(*node).any(|leaf| wanted.contains(&leaf));
        let kept: Vec<usize> = schema.children(0).filter(is_wanted).collect();
        if kept.len() == schema.children(0).count() {
            return Ok(None);
        }
        let names = kept.iter().map(|node| ColumnPath::of([&*schema.nodes()[*node].name]));
        let narrow = project(&self.source, &names.collect::<Vec<_>>())?;
        let leaves = kept.iter().flat_map(|node| schema.leaves_of(*node));
        let conversion = |(at, leaf)| Some((at, self.conversions.get(&leaf)?.clone()));
        let conversions = leaves.enumerate().filter_map(conversion).collect();
        project(&with_conversions(&narrow, conversions)?, columns).map(Some)
    }
}

impl Converted {
    fn converting(&self, piece: usize, batches: Box<dyn Batches>) -> Box<dyn Batches> {
        let name = self.pieces().get(piece).map_or("", |piece| &piece.name);
        let name = if name.is_empty() { &self.table.name } else { name }.to_string();
        let (conversions, schema) = (Arc::clone(&self.conversions), Arc::clone(&self.table.schema));
        Box::new(Converting { batches, conversions, schema, name })
    }
}

struct Converting {
    batches: Box<dyn Batches>,
    conversions: Arc<BTreeMap<usize, Conversion>>,
    schema: Arc<Schema>,
    name: String,
}

impl Batches for Converting {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(mut batch) = self.batches.next()? else { return Ok(None) };
        let first_row = batch.first_row;
        // Of the first row that has one, whichever column is converted first; in it, of the first column.
        let mut first: Option<(usize, Error)> = None;
        for (leaf, conversion) in &*self.conversions {
            let Some(column) = batch.columns.get_mut(*leaf) else {
                return Err(Error::internal("a batch without a column of its schema"));
            };
            match converted(column, conversion) {
                Ok(values) => column.values = values,
                Err(at) => {
                    let leaf_type =
                        self.schema.leaves().get(*leaf).ok_or_else(|| Error::internal("no leaf"))?;
                    let row = row_of(column, leaf_type, at);
                    if first.as_ref().is_none_or(|(first, _)| row < *first) {
                        let error = conversion.misfit(&shown(column, conversion, at)).at(|place| {
                            place.row = Some(first_row + u64_of(row));
                            place.column = Some(self.schema.path(leaf_type.node));
                        });
                        first = Some((row, error));
                    }
                }
            }
        }
        match first {
            Some((_, error)) => Err(named(error, &self.name)),
            None => Ok(Some(batch)),
        }
    }
}

/// The values of a column in another type, or the index of the first one that does not fit.
fn converted(column: &ColumnBatch, conversion: &Conversion) -> Result<Values, usize> {
    let present = column.validity.as_ref().filter(|_| column.layout == Layout::Spaced);
    let Values::Dictionary(indices, dictionary) = &column.values else {
        return conversion.of(&column.values, Slots { count: column.values.len(), present });
    };
    // Entries that none of the first values has may be anything.
    let of_first = |count: usize| {
        let mut used = vec![0_u8; dictionary.len().div_ceil(8)];
        for (at, index) in indices.iter().enumerate().take(count) {
            let entry = usize::try_from(*index).unwrap_or(usize::MAX);
            if present.is_none_or(|present| present.get(at))
                && let Some(bits) = used.get_mut(entry / 8)
            {
                *bits |= 1 << (entry % 8);
            }
        }
        let used = Bitmap::new(used.into(), 0, dictionary.len());
        conversion.of(dictionary, Slots { count: dictionary.len(), present: Some(&used) })
    };
    match of_first(indices.len()) {
        Ok(values) => Ok(Values::Dictionary(indices.clone(), Arc::new(values))),
        // That is the first entry. The first value is the last of the fewest that do not fit.
        Err(_) => {
            let (mut fit, mut do_not) = (0, indices.len());
            while do_not - fit > 1 {
                let middle = fit + (do_not - fit) / 2;
                match of_first(middle) {
                    Ok(_) => fit = middle,
                    Err(_) => do_not = middle,
                }
            }
            Err(do_not.saturating_sub(1))
        }
    }
}

/// The row of a value, counted from the batch's first.
#[cold]
fn row_of(column: &ColumnBatch, leaf: &Leaf, at: usize) -> usize {
    match (&column.levels, &column.validity) {
        (Some(levels), _) => {
            let is_value = |(_, level): &(usize, &u8)| u16::from(**level) == leaf.definition_max;
            let entry =
                levels.definition.iter().enumerate().filter(is_value).nth(at).map_or(0, |(entry, _)| entry);
            match &levels.repetition {
                Some(repetition) => {
                    repetition.iter().take(entry + 1).filter(|level| **level == 0).count().saturating_sub(1)
                }
                None => entry,
            }
        }
        (None, Some(validity)) if column.layout == Layout::Dense => {
            validity.iter().enumerate().filter(|(_, is_there)| *is_there).nth(at).map_or(0, |(row, _)| row)
        }
        (None, _) => at,
    }
}

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

/// A value, as an error shows it.
#[cold]
fn shown(column: &ColumnBatch, conversion: &Conversion, at: usize) -> String {
    let Some(value) = Value::of_values(&column.values, at) else { return String::new() };
    let mut out = Vec::new();
    let (text, is_text) = match print::value(&mut out, conversion.from, value) {
        Shown::Text(text) => (text.to_string(), true),
        Shown::NotText(bytes) => (String::from_utf8_lossy(bytes).into_owned(), true),
        _ => (String::from_utf8_lossy(&out).into_owned(), false),
    };
    let start: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if start.len() < text.len() { "…" } else { "" };
    if is_text { format!("{start:?}{dots}") } else { format!("{start}{dots}") }
}

#[cfg(test)]
mod tests;
