//! The rows of two tables, as they are compared: in order, or matched by their keys.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Detail, Error, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Value};
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::{FieldDef, FieldType, Meaning, Plan as _, Projection, Schema};
use marquetry_parquet::sort::SortOptions;

use super::exact::ExactKeys;
use super::found::RowId;
use super::leaves::Run;
use super::options::DiffOptions;
use super::tokens::{Keys, TokenOrder};
use super::values::{are_comparable, compare, item, loaded};
use crate::copy::unsorted;
use crate::detached::detached_column;
use crate::reading::processors;
use crate::sorting::Sorting;
use crate::subject::named;
use crate::{ColumnPath, Reading, ReadingOptions, Source, Table};

/// The columns by which rows are matched.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// Leaves of either table, and what they mean.
    leaves: [Vec<(usize, Meaning)>; 2],
    /// Those that rows are sorted and matched by: the same, unless keys are `exact`.
    by: [Vec<(usize, Meaning)>; 2],
    /// What gives rows the keys that a live table has of them.
    exact: Option<ExactKeys>,
    /// The schemas of the keys alone.
    pub(super) schemas: [Arc<Schema>; 2],
}

impl Key {
    /// The columns that are asked for; `None` if none are.
    ///
    /// # Errors
    ///
    /// `Misuse` for a column that a table lacks, that is nested, named twice, or whose values cannot be compared. Rows in the order of tokens
    /// may have nested ones: they are not sorted.
    pub(super) fn resolve(
        options: &DiffOptions,
        tables: [&Table; 2],
        tokens: Option<&TokenOrder>,
    ) -> Result<Option<Key>> {
        if let Some(tokens) = tokens {
            return Key::whole(&tokens.key(), tables).map(Some);
        }
        if options.key.is_empty() {
            return Ok(None);
        }
        if let Some(exact) = ExactKeys::of(tables, options) {
            return Key::exact(exact, options, tables).map(Some);
        }
        let mut leaves = [Vec::new(), Vec::new()];
        let mut fields = [Vec::new(), Vec::new()];
        for path in &options.key {
            for (side, table) in tables.iter().enumerate() {
                let found = path.flat_leaf(&table.schema);
                let number = found.map_err(|error| named(error.with(Detail::Option("key")), &table.name))?;
                let leaf = &table.schema.leaves()[number];
                let meaning = table.schema.meaning_of(leaf).read_as(leaf.physical_type);
                if leaves[side].iter().any(|(known, _)| *known == number) {
                    return Err(Error::option("key", format!("the column {} is named twice", path.dotted())));
                }
                leaves[side].push((number, meaning));
                let logical_type = table.schema.node_of(leaf).logical_type.clone();
                fields[side]
                    .push(FieldDef::new(path.dotted(), FieldType::Leaf(leaf.physical_type, logical_type)));
            }
            let [of_a, of_b] = &mut leaves;
            if let (true, Some((_, in_a)), Some((_, in_b))) =
                (options.as_loaded, of_a.last_mut(), of_b.last_mut())
            {
                [*in_a, *in_b] = loaded([*in_a, *in_b]);
                if matches!(
                    [*in_a, *in_b],
                    [Meaning::Float, Meaning::Double] | [Meaning::Double, Meaning::Float]
                ) {
                    let message = format!(
                        "the key {} is FLOAT in one table and DOUBLE in the other, and rows that a load makes alike are not found by it: give \
                         both one type first",
                        path.dotted()
                    );
                    return Err(Error::option("key", message));
                }
            }
            if let [Some((_, in_a)), Some((_, in_b))] = [leaves[0].last(), leaves[1].last()]
                && !are_comparable(*in_a, *in_b)
            {
                let message = format!("values of the two columns {} cannot be compared", path.dotted());
                return Err(Error::option("key", message));
            }
        }
        let [in_a, in_b] = fields;
        let schemas = [Arc::new(Schema::of_fields(&in_a)?), Arc::new(Schema::of_fields(&in_b)?)];
        Ok(Some(Key { by: leaves.clone(), leaves, exact: None, schemas }))
    }

    /// The key of a live table, whose columns may be of other types in the other one.
    fn exact(exact: ExactKeys, options: &DiffOptions, tables: [&Table; 2]) -> Result<Key> {
        let mut by = [Vec::new(), Vec::new()];
        for path in exact.sorted() {
            let found = tables.map(|table| {
                let number = path.flat_leaf(&table.schema).map_err(|error| named(error, &table.name))?;
                let leaf = table.schema.leaves().get(number);
                let leaf = leaf.ok_or_else(|| Error::internal("a leaf without its place"))?;
                Ok::<_, Error>((number, table.schema.meaning_of(leaf).read_as(leaf.physical_type)))
            });
            let [in_a, in_b] = found;
            let (in_a, in_b) = (in_a?, in_b?);
            let meanings = loaded([in_a.1, in_b.1]);
            by[0].push((in_a.0, meanings[0]));
            by[1].push((in_b.0, meanings[1]));
        }
        for (by, table) in by.iter_mut().zip(tables) {
            by.push((table.schema.leaves().len(), Meaning::Bytes));
        }
        Ok(Key { by, exact: Some(exact), ..Key::whole(&options.key, tables)? })
    }

    /// Columns with all that is in them.
    fn whole(columns: &[ColumnPath], tables: [&Table; 2]) -> Result<Key> {
        let of_table = |table: &Table| {
            let schema = &table.schema;
            let (mut leaves, mut projection) = (Vec::new(), Projection::new(Arc::clone(schema)));
            for path in columns {
                let added = projection.add(&path.parts, &mut Budget::unlimited());
                added.map_err(|error| named(path.fault(schema, error, true), &table.name))?;
                leaves.extend(path.leaves(schema)?.into_iter().filter_map(|number| {
                    let leaf = schema.leaves().get(number)?;
                    Some((number, schema.meaning_of(leaf).read_as(leaf.physical_type)))
                }));
            }
            Ok::<_, Error>((leaves, Arc::new(projection.plan().at_once()?)))
        };
        let [one, other] = tables;
        let (one, other) = (of_table(one)?, of_table(other)?);
        let leaves = [one.0, other.0];
        Ok(Key { by: leaves.clone(), leaves, exact: None, schemas: [one.1, other.1] })
    }
}

/// The rows of one of the tables: the batch at hand, and its next row.
pub(super) struct Side {
    rows: Rows,
    reading: Reading,
    /// The leaves of its key, and what they mean; and those that its rows are sorted by.
    key: Vec<(usize, Meaning)>,
    by: Vec<(usize, Meaning)>,
    /// How many leaves it has without those that were added.
    leaves: usize,
    batch: Option<Batch>,
    pub(super) at: usize,
    /// The key of the row before the batch at hand.
    before: Option<Vec<ColumnBatch>>,
    /// Of rows in the order of tokens: which of the tables it is, the keys of the batch at hand, and that of the row before it.
    tokens: Option<(TokenOrder, usize)>,
    keys: Keys,
    key_before: Option<Keys>,
    /// Rows whose key the row before them has.
    pub(super) repeated_keys: u64,
}

enum Rows {
    InOrder,
    ByKey(Box<Sorting>),
}

impl Side {
    /// One of the tables. With a key, all of its rows are read and sorted here; `report` gets the number of each batch's.
    pub(super) fn new(
        source: &Arc<dyn Source>,
        by: Option<(&Key, Option<&TokenOrder>)>,
        side: usize,
        options: &DiffOptions,
        report: &mut dyn FnMut(u64),
    ) -> Result<Side> {
        let threads = threads_of(options);
        let (key, tokens) = (by.map(|(key, _)| key), by.and_then(|(_, tokens)| tokens));
        // Tables that are sorted are read one after the other.
        let is_sorted = key.is_some() && tokens.is_none();
        let threads = Some(if is_sorted { threads } else { threads / 2 });
        let mut reading =
            ReadingOptions { threads, cancel: options.cancel.clone(), ..ReadingOptions::default() };
        reading.piece.bytes_read = options.bytes_read.clone();
        reading.piece.lost = options.lost.get(side).cloned().unwrap_or_default();
        let leaves = source.table().schema.leaves().len();
        let source = &match key.and_then(|key| key.exact.as_ref()) {
            Some(exact) => exact.source(side, source)?,
            None => Arc::clone(source),
        };
        let reading = Reading::new(Arc::clone(source), reading)?;
        let by = key.map_or(Vec::new(), |key| key.by[side].clone());
        let key = key.map_or(Vec::new(), |key| key.leaves[side].clone());
        let mut side = Side {
            rows: Rows::InOrder,
            reading,
            key,
            by,
            leaves,
            batch: None,
            at: 0,
            before: None,
            tokens: tokens.cloned().map(|tokens| (tokens, side)),
            keys: Keys::default(),
            key_before: None,
            repeated_keys: 0,
        };
        if is_sorted {
            side.rows = Rows::ByKey(Box::new(side.sorted(source.table(), options, report)?));
        }
        Ok(side)
    }

    /// Reads and sorts all rows.
    fn sorted(
        &mut self,
        table: &Table,
        options: &DiffOptions,
        report: &mut dyn FnMut(u64),
    ) -> Result<Sorting> {
        let by = |(leaf, _): &(usize, Meaning)| {
            let column = u32::try_from(*leaf).map_err(|_| Error::misuse("a column beyond the 2^32nd"))?;
            Ok(SortingColumn { column, descending: false, nulls_first: false })
        };
        let by = self.by.iter().map(by).collect::<Result<Vec<_>>>()?;
        let wrong = |error: Error| match error.kind() {
            ErrorKind::Unsupported | ErrorKind::LimitExceeded => {
                named(error.blamed(ErrorKind::Misuse).with(Detail::Option("key")), &table.name)
            }
            _ => named(error, &table.name),
        };
        // Both tables are sorted, and merged at the same time.
        let memory_bytes = (options.memory_bytes / 2).max(1);
        let sort = SortOptions { memory_bytes, rows: table.rows, ..SortOptions::default() };
        let host = (threads_of(options), &options.cancel);
        let sorting = Sorting::new(&table.schema, &by, sort, host, None);
        let mut sorting = sorting.map_err(wrong)?;
        while let Some((piece, batch)) = self.reading.next_batch()? {
            let rows = u64_of(batch.rows);
            sorting.push(batch, piece).map_err(|error| unsorted(error, &sorting, &self.reading))?;
            report(rows);
        }
        Ok(sorting)
    }

    /// The bytes that were spilled to sort its rows.
    pub(super) fn spilled_bytes(&self) -> u64 {
        if let Rows::ByKey(sorting) = &self.rows { sorting.spilled_bytes() } else { 0 }
    }

    /// The batch at hand, as the table has it.
    pub(super) fn batch_at_hand(&self) -> Option<Batch> {
        let mut batch = self.batch.clone()?;
        batch.columns.truncate(self.leaves);
        Some(batch)
    }

    /// Rows of the batch at hand that are left.
    pub(super) fn left(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.rows - self.at)
    }

    /// Makes sure that there is a row; false at the end.
    pub(super) fn fill(&mut self) -> Result<bool> {
        while self.left() == 0 {
            let last = self.batch.as_ref().and_then(|batch| batch.rows.checked_sub(1));
            if let (Some(last), false) = (last, self.key.is_empty()) {
                match self.tokens {
                    Some(_) => self.key_before = Some(self.keys.last()),
                    None => self.before = Some(self.columns_of(&self.by, last)?),
                }
            }
            self.at = 0;
            self.batch = match &mut self.rows {
                Rows::InOrder => self.reading.next_batch()?.map(|(_, batch)| batch),
                Rows::ByKey(sorting) => {
                    sorting.next().map_err(|error| unsorted(error, sorting, &self.reading))?
                }
            };
            let Some(batch) = &self.batch else { return Ok(false) };
            let is_spaced = |(leaf, _): &(usize, Meaning)| {
                batch
                    .columns
                    .get(*leaf)
                    .is_some_and(|column| column.validity.is_none() || column.layout == Layout::Spaced)
            };
            match &self.tokens {
                Some((tokens, side)) => {
                    let keys = tokens.keys_of(*side, batch);
                    self.keys = keys.map_err(|error| named(error, self.reading.table_name()))?;
                }
                None if self.by.iter().all(is_spaced) => {}
                None => return Err(Error::internal("sorted rows without the columns of their key")),
            }
        }
        Ok(true)
    }

    /// Some rows of a leaf, of the batch at hand.
    pub(super) fn leaf(&self, leaf: usize, rows: Range<usize>) -> Result<ColumnBatch> {
        let column = self.batch.as_ref().and_then(|batch| batch.columns.get(leaf));
        let column = column.ok_or_else(|| Error::internal("a leaf that no batch has"))?;
        Ok(column.slice(rows))
    }

    /// Some rows of some leaves, of the batch at hand, as a batch of these leaves alone.
    pub(super) fn part(&self, leaves: Range<usize>, rows: Range<usize>) -> Result<Batch> {
        let batch = self.batch.as_ref().ok_or_else(|| Error::internal("a row of no batch"))?;
        let first_row = batch.first_row + u64_of(rows.start);
        let count = rows.len();
        let mut columns = leaves.map(|leaf| self.leaf(leaf, rows.clone())).collect::<Result<Vec<_>>>()?;
        columns.iter_mut().enumerate().for_each(|(leaf, column)| column.leaf = leaf);
        Ok(Batch { row_group: batch.row_group, first_row, rows: count, columns })
    }

    /// Some rows of some leaves, of the batch at hand, which keep their numbers.
    pub(super) fn leaves(&self, leaves: &[usize], rows: Range<usize>) -> Result<Batch> {
        let columns = leaves.iter().map(|leaf| self.leaf(*leaf, rows.clone())).collect::<Result<_>>()?;
        Ok(Batch { row_group: 0, first_row: 0, rows: rows.len(), columns })
    }

    /// A row, copied out of its batch.
    pub(super) fn row(&self, leaves: Range<usize>, row: usize) -> Result<Batch> {
        let mut part = self.part(leaves, row..row + 1)?;
        part.columns.iter_mut().for_each(|column| *column = detached_column(column));
        Ok(part)
    }

    /// The key of a row, copied out of its batch.
    pub(super) fn key_of(&self, row: usize) -> Result<RowId> {
        let mut columns = self.columns_of(&self.key, row)?;
        columns.iter_mut().enumerate().for_each(|(leaf, column)| column.leaf = leaf);
        Ok(RowId::Key(Batch { row_group: 0, first_row: 0, rows: 1, columns }))
    }

    fn columns_of(&self, leaves: &[(usize, Meaning)], row: usize) -> Result<Vec<ColumnBatch>> {
        leaves.iter().map(|(leaf, _)| Ok(detached_column(&self.leaf(*leaf, row..row + 1)?))).collect()
    }

    fn columns(&self) -> &[ColumnBatch] {
        self.batch.as_ref().map_or(&[], |batch| &batch.columns)
    }

    /// Compares the key of a row with another's.
    fn compare_keys(&self, row: usize, other: &Side, other_row: usize) -> Ordering {
        if let Some((tokens, _)) = &self.tokens {
            let (ours, theirs) = (self.keys.row(row), other.keys.row(other_row));
            return ours.zip(theirs).map_or(Ordering::Equal, |(ours, theirs)| tokens.compare(ours, theirs));
        }
        let (ours, theirs) = (self.columns(), other.columns());
        let mut keys = self.by.iter().zip(&other.by).map(|((leaf, meaning), (their_leaf, their_meaning))| {
            compare_cells(
                (ours.get(*leaf), row, *meaning),
                (theirs.get(*their_leaf), other_row, *their_meaning),
            )
        });
        keys.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Compares the key of a row with that of the row before it.
    fn compare_with_before(&self, row: usize) -> Ordering {
        if let Some(before) = row.checked_sub(1) {
            return self.compare_keys(before, self, row);
        }
        if let Some((tokens, _)) = &self.tokens {
            let before = self.key_before.as_ref().and_then(|keys| keys.row(0));
            let keys = before.zip(self.keys.row(row));
            return keys.map_or(Ordering::Less, |(before, row)| tokens.compare(before, row));
        }
        let Some(before) = &self.before else { return Ordering::Less };
        let columns = self.columns();
        let mut keys = self.by.iter().zip(before).map(|((leaf, meaning), before)| {
            compare_cells((Some(before), 0, *meaning), (columns.get(*leaf), row, *meaning))
        });
        keys.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Passes over a row that has a key.
    fn pass(&mut self) -> Result<()> {
        match self.compare_with_before(self.at) {
            Ordering::Less => {}
            Ordering::Equal => self.repeated_keys += 1,
            Ordering::Greater if self.tokens.is_some() => {
                let error = Error::corrupt("the rows are not in the order of their tokens");
                return Err(named(error, self.reading.table_name()));
            }
            // An INT96 may have more nanoseconds than a day, and its sorting order goes by days.
            Ordering::Greater => {
                let error = Error::unsupported("keys of INT96 with nanoseconds beyond their day");
                return Err(named(error, self.reading.table_name()));
            }
        }
        self.at += 1;
        Ok(())
    }
}

fn threads_of(options: &DiffOptions) -> usize {
    options.threads.unwrap_or_else(processors)
}

/// Compares a row of two columns: nulls are equal, and greater than all values.
fn compare_cells(
    (a, row_a, meaning_a): (Option<&ColumnBatch>, usize, Meaning),
    (b, row_b, meaning_b): (Option<&ColumnBatch>, usize, Meaning),
) -> Ordering {
    fn value_of(column: Option<&ColumnBatch>, row: usize) -> Option<Value<'_>> {
        let column = column.filter(|column| !column.is_null(row))?;
        Value::of_values(&column.values, row)
    }
    match (value_of(a, row_a), value_of(b, row_b)) {
        (Some(in_a), Some(in_b)) => compare(item(meaning_a, in_a), item(meaning_b, in_b)),
        (in_a, in_b) => in_a.is_none().cmp(&in_b.is_none()),
    }
}

/// Rows of the batches at hand: which are compared, and which have no counterpart.
#[derive(Debug, Default)]
pub(super) struct Matched {
    /// The rows that were looked at.
    pub(super) rows: [Range<usize>; 2],
    /// Those that are compared, in order; counted from the first that was looked at.
    pub(super) runs: Vec<Run>,
    /// Those that only one of the tables has, as their batch counts them.
    pub(super) only: [Vec<usize>; 2],
}

impl Matched {
    /// Matches rows in order, until one of the batches is at its end.
    pub(super) fn in_order([a, b]: &mut [Side; 2]) -> Matched {
        let rows = a.left().min(b.left());
        let looked_at = [a.at..a.at + rows, b.at..b.at + rows];
        (a.at, b.at) = (a.at + rows, b.at + rows);
        Matched { rows: looked_at, runs: vec![Run { at: [0, 0], rows }], only: Default::default() }
    }

    /// Matches rows by their keys, until one of the batches is at its end. Of several rows with a key, the first is matched
    /// with the first, and so on.
    pub(super) fn by_key([a, b]: &mut [Side; 2]) -> Result<Matched> {
        let mut matched = Matched::default();
        let starts = [a.at, b.at];
        let mut run: Option<Run> = None;
        while a.left() > 0 && b.left() > 0 {
            let ordering = a.compare_keys(a.at, b, b.at);
            if ordering.is_eq() {
                let at = [a.at - starts[0], b.at - starts[1]];
                run.get_or_insert(Run { at, rows: 0 }).rows += 1;
                a.pass()?;
                b.pass()?;
                continue;
            }
            matched.runs.extend(run.take());
            let (side, only) = if ordering.is_lt() { (&mut *a, 0) } else { (&mut *b, 1) };
            matched.only[only].push(side.at);
            side.pass()?;
        }
        matched.runs.extend(run);
        matched.rows = [starts[0]..a.at, starts[1]..b.at];
        Ok(matched)
    }

    /// The rows that are left in the batch of one of the tables, when the other has no more.
    pub(super) fn rest(side: &mut Side, is_keyed: bool) -> Result<Range<usize>> {
        let start = side.at;
        while side.left() > 0 {
            if is_keyed {
                side.pass()?;
            } else {
                side.at += side.left();
            }
        }
        Ok(start..side.at)
    }
}
