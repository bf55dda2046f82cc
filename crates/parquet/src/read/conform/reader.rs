//! The machine that reads a file as another schema.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{
    Budget, Buffer, Bytes, Codecs, Error, Failed, Machine, Object, Release, Result, Segmented, Step,
    release_all,
};

use super::nulls::{Constant, Zeros, check_nulls};
use super::variant::{Reassembled, Reassembling};
use super::{Conform, LeafSource, Structure, VariantPart, cast};
use crate::batch::{Batch, ColumnBatch, Layout, Levels, RowSelection, Values};
use crate::format::{FileMetaData, OffsetIndex};
use crate::growing::{ROOM_PRICE, release_in_step};
use crate::read::reader::Wanted;
use crate::read::{BatchReader, ReadOptions};
use crate::schema::Widening;

/// What a column of a batch costs, whatever is done with it.
const COLUMN_UNITS: u64 = 100;
/// What looking at a column that was read costs.
const LOOK_UNITS: u64 = 10;

/// Converts batches of one schema to another, as a [`Conform`] plans it. The work is sliced, except that each variant
/// is reassembled in one go.
///
/// ```text
/// feed(batch)                                one at a time
/// step(budget) -> Some(batch) | None         None: the budget is spent, call again
/// ```
///
/// After an error it cannot be used any more.
pub struct Conformer {
    conform: Arc<Conform>,
    constants: Vec<Option<Constant>>,
    layout: Layout,
    keep_dictionaries: bool,
    zeros: Zeros,
    /// For each leaf, the dictionary that was widened last.
    dictionaries: Segmented<cast::LastDictionary>,
    current: Option<Current>,
    /// What was converted, and is not released yet.
    used: Vec<ColumnBatch>,
    done: Option<Current>,
}

/// The batch at hand.
struct Current {
    batch: Batch,
    /// What was read; columns that are taken have no values any more.
    read: Vec<ColumnBatch>,
    /// The columns of it that were looked at for [`Current::provisional`].
    looked: usize,
    structures: Vec<Levels>,
    variants: Vec<Reassembled>,
    columns: Vec<ColumnBatch>,
    /// Some of what was read is of a page that is not verified yet: so is what is made of it.
    provisional: bool,
    /// The definition levels of the structure at hand, once they are made.
    definition: Option<Buffer<u8>>,
    partial: cast::Partial,
    /// The variants at hand.
    reassembling: Option<Reassembling>,
    /// What was used for those before.
    reassembled: Vec<Reassembling>,
    /// The column at hand.
    change: cast::Change,
}

impl Conformer {
    /// For batches of the leaves that `conform` [reads](Conform::reads), in that order and of this layout, with
    /// dictionaries kept or not. `constants` are the values of the constants of [`Conform::plan`], in its order, each
    /// one value; or `None` for null.
    ///
    /// # Errors
    ///
    /// `Misuse` for other constants than `conform` has.
    pub fn new(
        conform: Arc<Conform>,
        constants: Vec<Option<Values>>,
        layout: Layout,
        keep_dictionaries: bool,
    ) -> Result<Conformer> {
        if constants.len() != conform.constants.len() {
            return Err(Error::misuse(format!(
                "{} constants of {}",
                constants.len(),
                conform.constants.len()
            )));
        }
        let typed = constants.into_iter().zip(&conform.constants).map(|(value, physical_type)| match value {
            None => Ok(None),
            Some(value) => match Constant::new(value, *physical_type) {
                Some(constant) => Ok(Some(constant)),
                None => Err(Error::misuse(format!("a constant that is not one {physical_type}"))),
            },
        });
        let constants = typed.collect::<Result<Vec<_>>>()?;
        Ok(Conformer {
            conform,
            constants,
            layout,
            keep_dictionaries,
            zeros: Zeros::default(),
            dictionaries: Segmented::new(),
            current: None,
            used: Vec::new(),
            done: None,
        })
    }

    /// The most rows that a batch may have, of `wanted`, so that no converted array has 1 MiB or more.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for a missing column whose nulls take more than 1 MiB each.
    pub fn batch_rows(&self, wanted: usize) -> Result<usize> {
        check_nulls(self.conform.null_bytes_max)?;
        Ok(wanted.min(self.conform.rows_max))
    }

    /// Takes a batch.
    ///
    /// # Errors
    ///
    /// `Misuse` if the batch before was not handed out yet, and for columns other than those that are read.
    pub fn feed(&mut self, mut batch: Batch) -> Result<()> {
        if self.current.is_some() {
            return Err(Error::misuse("a batch before the last one is handed out"));
        }
        if batch.columns.len() != self.conform.reads.len() {
            return Err(Error::misuse("a batch of other columns than are read"));
        }
        let read = core::mem::take(&mut batch.columns);
        let columns = Vec::with_capacity(self.conform.leaves.len());
        self.current = Some(Current {
            batch,
            read,
            looked: 0,
            structures: Vec::new(),
            variants: Vec::new(),
            columns,
            provisional: false,
            definition: None,
            partial: cast::Partial::default(),
            reassembling: None,
            reassembled: Vec::new(),
            change: cast::Change::default(),
        });
        Ok(())
    }

    /// Hands out the batch, converted to the other schema. `None` if the budget is spent: call again.
    ///
    /// # Errors
    ///
    /// `Misuse` without a batch; errors in the batch: invalid levels and variants; `LimitExceeded` if memory cannot
    /// be allocated.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<Batch>> {
        if !self.release_done(budget) {
            return Ok(None);
        }
        let Some(current) = &mut self.current else { return Err(Error::misuse("no batch at hand")) };
        if self.conform.is_identity {
            let columns = core::mem::take(&mut current.read);
            return Ok(self.current.take().map(|current| Batch { columns, ..current.batch }));
        }
        while let Some(column) = current.read.get(current.looked) {
            current.provisional |= column.provisional;
            current.looked += 1;
            budget.charge_units(LOOK_UNITS);
            if budget.is_spent() {
                return Ok(None);
            }
        }
        let schema = &self.conform.from;
        // What is made of columns that are taken later comes first.
        while let Some(structure) = self.conform.structures.get(current.structures.len()) {
            let Some(levels) = current.structure(structure, budget)? else { return Ok(None) };
            budget.charge_units(COLUMN_UNITS);
            current.structures.push(levels);
            if budget.is_spent() {
                return Ok(None);
            }
        }
        while let Some(variant) = self.conform.variants.get(current.variants.len()) {
            let mut reassembling = match current.reassembling.take() {
                Some(reassembling) => reassembling,
                None => Reassembling::new(variant, Arc::clone(schema)),
            };
            let read = (&current.read[..], self.layout);
            let Some(whole) = reassembling.step(variant, schema, &current.batch, read, budget)? else {
                current.reassembling = Some(reassembling);
                return Ok(None);
            };
            current.variants.push(whole);
            current.reassembled.push(reassembling);
            if budget.is_spent() {
                return Ok(None);
            }
        }
        while let Some(plan) = self.conform.leaves.get(current.columns.len()) {
            if !self.used.is_empty() && !release_in_step(&mut self.used, budget) {
                return Ok(None);
            }
            let map_of =
                |map: Option<usize>| map.and_then(|map| self.conform.maps.get(map)).map(|map| &**map);
            let leaf = current.columns.len();
            let rows = current.batch.rows;
            let column = match &plan.source {
                LeafSource::Read { read, widening, map } => {
                    let column = current.read.get_mut(*read);
                    let column = column.ok_or_else(|| Error::internal("a leaf that is not read"))?;
                    while self.keep_dictionaries && self.dictionaries.len() <= leaf {
                        self.dictionaries.push(None);
                    }
                    let mut none = None;
                    let last = self.dictionaries.get_mut(leaf).unwrap_or(&mut none);
                    let how = (map_of(*map), *widening, plan);
                    let Some(made) = current.change.step(column, how, last, budget)? else {
                        return Ok(None);
                    };
                    self.used.push(ColumnBatch {
                        validity: column.validity.take(),
                        levels: column.levels.take(),
                        values: core::mem::replace(&mut column.values, Values::Int32(Buffer::default())),
                        ..*column
                    });
                    ColumnBatch { leaf, ..made }
                }
                LeafSource::Null(structure) => {
                    let levels = structure.and_then(|number| current.structures.get(number));
                    self.zeros.column(leaf, plan, rows, self.layout, levels)?
                }
                LeafSource::Constant(number) => match self.constants.get_mut(*number) {
                    Some(Some(constant)) => {
                        self.zeros.constant(leaf, constant, rows, self.keep_dictionaries)?
                    }
                    _ => self.zeros.column(leaf, plan, rows, self.layout, None)?,
                },
                LeafSource::Variant { variant, part, map } => {
                    let whole = current.variants.get(*variant);
                    let whole = whole.ok_or_else(|| Error::internal("a variant that is not read"))?;
                    let column = whole.column(*part == VariantPart::Metadata);
                    let how = (map_of(*map), Widening::None, plan);
                    let Some(column) = current.change.step(&column, how, &mut None, budget)? else {
                        return Ok(None);
                    };
                    ColumnBatch { leaf, ..column }
                }
            };
            budget.charge_units(COLUMN_UNITS);
            budget.charge(ROOM_PRICE, self.zeros.filled(), 0);
            let is_made = !matches!(plan.source, LeafSource::Read { .. });
            let provisional = column.provisional || (is_made && current.provisional);
            current.columns.push(ColumnBatch { provisional, ..column });
            if budget.is_spent() && current.columns.len() < self.conform.leaves.len() {
                return Ok(None);
            }
        }
        let Some(mut current) = self.current.take() else { return Ok(None) };
        let (columns, row_group) = (core::mem::take(&mut current.columns), current.batch.row_group);
        let (first_row, rows) = (current.batch.first_row, current.batch.rows);
        self.done = Some(current);
        Ok(Some(Batch { row_group, first_row, rows, columns }))
    }

    /// Releases what the last batch was made of. False if the budget is spent first.
    fn release_done(&mut self, budget: &mut Budget<'_>) -> bool {
        let is_done = self.used.is_empty() || release_in_step(&mut self.used, budget);
        is_done && (self.done.is_none() || release_in_step(&mut self.done, budget))
    }
}

/// For one that is no longer wanted, or has failed.
impl Release for Conformer {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Conformer { used, done, current, dictionaries, zeros, .. } = self;
        release_all(&mut [used, done, current, dictionaries, zeros], budget)
    }
}

impl Release for Current {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let parts: &mut [&mut dyn Release] = &mut [
            &mut self.batch,
            &mut self.read,
            &mut self.structures,
            &mut self.variants,
            &mut self.columns,
            &mut self.definition,
            &mut self.partial,
            &mut self.reassembling,
            &mut self.reassembled,
            &mut self.change,
        ];
        release_all(parts, budget)
    }
}

/// Reads rows in batches, as [`BatchReader`] does, as those of another schema: see [`Conform`].
///
/// The batches have all leaves of that schema, in order; rows and row groups are the file's. Batches are converted by
/// a [`Conformer`].
pub struct ConformReader {
    reader: BatchReader,
    conformer: Conformer,
    failed: Failed,
}

impl ConformReader {
    /// A reader of `object`, whose footer is `metadata`, and whose schema is the one that `conform` is from. `constants` are the values of the
    /// constants of [`Conform::plan`], in its order, each one value; or `None` for null. [`ReadOptions::leaves`] must be `None`.
    ///
    /// # Errors
    ///
    /// As [`BatchReader::new`]; `Misuse` for other constants than `conform` has; `LimitExceeded` for a missing column whose nulls take more than
    /// 1 MiB each.
    pub fn new(
        object: Object,
        metadata: Arc<FileMetaData>,
        codecs: Arc<dyn Codecs>,
        mut options: ReadOptions,
        conform: Arc<Conform>,
        constants: Vec<Option<Values>>,
    ) -> Result<ConformReader> {
        if options.leaves.is_some() {
            return Err(Error::misuse("leaves chosen beside those of another schema"));
        }
        let wanted = Wanted::Read(Arc::clone(&conform));
        let conformer = Conformer::new(conform, constants, options.layout, options.keep_dictionaries)?;
        options.batch_rows = conformer.batch_rows(options.batch_rows)?;
        let reader = BatchReader::of(object, metadata, codecs, options, wanted)?;
        Ok(ConformReader { reader, conformer, failed: Failed::default() })
    }

    /// What is read.
    pub fn metadata(&self) -> &Arc<FileMetaData> {
        self.reader.metadata()
    }

    /// The row group that the next step begins, if it begins one: see [`BatchReader::begins`].
    pub fn begins(&self) -> Option<usize> {
        self.reader.begins().filter(|_| self.conformer.current.is_none() && !self.failed.is_set())
    }

    /// Reads only these rows of a row group: see [`BatchReader::select`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn select(&mut self, row_group: usize, rows: RowSelection) -> Result<()> {
        self.reader.select(row_group, rows)
    }

    /// Says where the pages of a leaf of the file are: see [`BatchReader::locate`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn locate(&mut self, row_group: usize, leaf: usize, pages: Arc<OffsetIndex>) -> Result<()> {
        self.reader.locate(row_group, leaf, pages)
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        if self.conformer.current.is_none() {
            if !self.conformer.release_done(budget) {
                return Ok(Step::Yield);
            }
            let batch = match self.reader.step(budget)? {
                Step::Ready(batch) => batch,
                other => return Ok(other),
            };
            if self.conformer.conform.is_identity {
                return Ok(Step::Ready(batch));
            }
            self.conformer.feed(batch)?;
        }
        let made = self.conformer.step(budget)?;
        Ok(made.map_or(Step::Yield, Step::Ready))
    }
}

impl Current {
    /// The levels of slots, from those of a leaf there. `None` when the budget is spent: call again.
    fn structure(&mut self, structure: &Structure, budget: &mut Budget<'_>) -> Result<Option<Levels>> {
        let donor = self.read.get(structure.read);
        let donor = donor.ok_or_else(|| Error::internal("a leaf that is not read"))?;
        let definition = match self.definition.take() {
            Some(definition) => definition,
            None => match self.partial.definition(donor, &structure.definition, budget)? {
                Some(definition) => definition,
                None => return Ok(None),
            },
        };
        let Some(repetition) = donor.levels.as_ref().and_then(|levels| levels.repetition.as_ref()) else {
            return Ok(Some(Levels { definition, repetition: None }));
        };
        let levels = self.partial.slots(&definition, repetition, structure.repetition, budget)?;
        if levels.is_none() {
            self.definition = Some(definition);
        }
        Ok(levels)
    }
}

/// For a reader that is no longer wanted, or has failed.
impl Release for ConformReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        release_all(&mut [&mut self.conformer, &mut self.reader], budget)
    }
}

impl Machine for ConformReader {
    type Product = Batch;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.reader.supply(object, range, bytes)
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.reader.supply_length(object, length)
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        self.reader.fail(object, range, reason);
    }
}
