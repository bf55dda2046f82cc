//! The machine that reads a file as another schema.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Budget, Buffer, Bytes, Codecs, Error, Machine, Object, Price, Result, Step};

use super::nulls::{Constant, Zeros, rows_max};
use super::variant::Reassembled;
use super::{Conform, LeafPlan, LeafSource, LevelPlan, Structure, VariantPart, cast};
use crate::format::FileMetaData;
use crate::read::builder;
use crate::read::{Batch, BatchReader, ColumnBatch, Layout, Levels, ReadOptions, Values};
use crate::schema::Widening;

/// What a column of a batch costs, whatever is done with it.
const COLUMN_UNITS: u64 = 100;
/// What a level, or a value that is changed, costs.
const VALUE_PRICE: Price = Price::per_kilovalue(2 << 10);
/// What a variant costs that is put together, and each of its bytes.
const VARIANT_PRICE: Price = Price { kib: 2 << 10, kilovalue: 200 << 10 };

/// Reads rows in batches, as [`BatchReader`] does, as those of another schema: see [`Conform`].
///
/// The batches' leaves are those of that schema, all of them, in its order; rows and row groups are the file's. The work on a column of
/// a batch is done at once.
pub struct ConformReader {
    reader: BatchReader,
    conform: Arc<Conform>,
    constants: Vec<Option<Constant>>,
    layout: Layout,
    keep_dictionaries: bool,
    zeros: Zeros,
    /// For each leaf, the dictionary that was widened last.
    dictionaries: Vec<cast::LastDictionary>,
    current: Option<Current>,
    failed: Option<Error>,
}

/// The batch at hand.
struct Current {
    batch: Batch,
    /// What was read, as far as it is not taken yet.
    read: Vec<Option<ColumnBatch>>,
    structures: Vec<Levels>,
    variants: Vec<Reassembled>,
    columns: Vec<ColumnBatch>,
}

impl ConformReader {
    /// A reader of `object`, whose footer is `metadata`, and whose schema is the one that `conform` is from. `constants` are the values of the
    /// constants of [`Conform::new`], in its order, each one value; or `None` for null. [`ReadOptions::leaves`] must be `None`.
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
        if options.leaves.replace(conform.reads().to_vec()).is_some() {
            return Err(Error::misuse("leaves chosen beside those of another schema"));
        }
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
        for plan in conform.leaves.iter().filter(|plan| plan.is_flat) {
            options.batch_rows = match plan.source {
                LeafSource::Null(_) | LeafSource::Constant(_) => {
                    rows_max(plan.physical_type, options.batch_rows)?
                }
                // What is read may become larger.
                _ => options.batch_rows.min(builder::rows_max(plan.physical_type)),
            };
        }
        let (layout, keep_dictionaries) = (options.layout, options.keep_dictionaries);
        let reader = BatchReader::new(object, metadata, codecs, options)?;
        let mut dictionaries = Vec::new();
        if keep_dictionaries && !conform.is_identity {
            dictionaries.resize_with(conform.leaves.len(), || None);
        }
        Ok(ConformReader {
            reader,
            conform,
            constants,
            layout,
            keep_dictionaries,
            zeros: Zeros::default(),
            dictionaries,
            current: None,
            failed: None,
        })
    }

    /// What is read.
    pub fn metadata(&self) -> &Arc<FileMetaData> {
        self.reader.metadata()
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        if self.current.is_none() {
            let mut batch = match self.reader.step(budget)? {
                Step::Ready(batch) => batch,
                other => return Ok(other),
            };
            if self.conform.is_identity {
                return Ok(Step::Ready(batch));
            }
            let read = core::mem::take(&mut batch.columns).into_iter().map(Some).collect();
            let columns = Vec::with_capacity(self.conform.leaves.len());
            let (structures, variants) = (Vec::new(), Vec::new());
            self.current = Some(Current { batch, read, structures, variants, columns });
        }
        let Some(current) = &mut self.current else { return Err(Error::internal("no batch at hand")) };
        // What is made of columns that are taken later comes first.
        while let Some(structure) = self.conform.structures.get(current.structures.len()) {
            let levels = current.structure(structure)?;
            budget.charge_units(COLUMN_UNITS);
            budget.charge(VALUE_PRICE, 0, levels.definition.len());
            current.structures.push(levels);
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
        while let Some(variant) = self.conform.variants.get(current.variants.len()) {
            let schema = &self.reader.metadata().schema;
            let whole = variant.reassemble(schema, &current.batch, &current.read, self.layout)?;
            budget.charge(VARIANT_PRICE, whole.bytes(), whole.values());
            current.variants.push(whole);
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
        while let Some(plan) = self.conform.leaves.get(current.columns.len()) {
            let leaf = current.columns.len();
            let rows = current.batch.rows;
            let column = match &plan.source {
                LeafSource::Read { read, widening, levels } => {
                    let column = current.read.get_mut(*read).and_then(Option::take);
                    let mut column = column.ok_or_else(|| Error::internal("a leaf that is not read"))?;
                    if !matches!(levels, LevelPlan::Keep) {
                        column = relevel(column, levels, plan)?;
                        budget.charge(VALUE_PRICE, 0, entries(&column));
                    }
                    if *widening != Widening::None {
                        let mut none = None;
                        let last = self.dictionaries.get_mut(leaf).unwrap_or(&mut none);
                        column.values = cast::widen(column.values, *widening, last)?;
                        budget.charge(VALUE_PRICE, 0, column.values.len());
                    }
                    ColumnBatch { leaf, ..column }
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
                LeafSource::Variant { variant, part, levels } => {
                    let whole = current.variants.get(*variant);
                    let whole = whole.ok_or_else(|| Error::internal("a variant that is not read"))?;
                    let column = whole.column(*part == VariantPart::Metadata);
                    let column = if matches!(levels, LevelPlan::Keep) {
                        column
                    } else {
                        relevel(column, levels, plan)?
                    };
                    ColumnBatch { leaf, ..column }
                }
            };
            budget.charge_units(COLUMN_UNITS);
            current.columns.push(column);
            if budget.is_spent() && current.columns.len() < self.conform.leaves.len() {
                return Ok(Step::Yield);
            }
        }
        match self.current.take() {
            Some(Current { batch, columns, .. }) => Ok(Step::Ready(Batch { columns, ..batch })),
            None => Err(Error::internal("no batch at hand")),
        }
    }
}

impl Current {
    /// The levels of slots, from those of a leaf there.
    fn structure(&self, structure: &Structure) -> Result<Levels> {
        let donor = self.read.get(structure.read).and_then(Option::as_ref);
        let donor = donor.ok_or_else(|| Error::internal("a leaf that is not read"))?;
        let column = definition_of(donor, &structure.definition)?;
        let repetition = donor.levels.as_ref().and_then(|levels| levels.repetition.as_ref());
        let Some(repetition) = repetition else {
            return Ok(Levels { definition: column, repetition: None });
        };
        let begins = |level: &u8| u16::from(*level) <= structure.repetition;
        if repetition.iter().all(begins) {
            return Ok(Levels { definition: column, repetition: Some(repetition.clone()) });
        }
        let slots = || repetition.iter().zip(column.iter()).filter(|(level, _)| begins(level));
        Ok(Levels {
            definition: slots().map(|(_, definition)| *definition).collect::<Vec<u8>>().into(),
            repetition: Some(slots().map(|(repetition, _)| *repetition).collect::<Vec<u8>>().into()),
        })
    }
}

/// A nested column with the definition levels of the other schema.
fn relevel(column: ColumnBatch, levels: &LevelPlan, plan: &LeafPlan) -> Result<ColumnBatch> {
    let map = match levels {
        LevelPlan::Keep => return Ok(column),
        LevelPlan::Map(map) | LevelPlan::OfFlat(map) => map,
    };
    let definition = definition_of(&column, map)?;
    let repetition = match column.levels {
        Some(levels) => levels.repetition,
        None if plan.has_repetition => return Err(Error::internal("a flat leaf below a list")),
        None => None,
    };
    // The values of a nested leaf are those that are there.
    let values = match &column.validity {
        Some(validity) if column.layout == Layout::Spaced => cast::compact(&column.values, validity)?,
        _ => column.values,
    };
    Ok(ColumnBatch {
        nulls: definition.len().saturating_sub(values.len()),
        values,
        validity: None,
        layout: Layout::Dense,
        levels: Some(Levels { definition, repetition }),
        ..column
    })
}

/// A column's definition levels, by a table of what becomes of each.
fn definition_of(column: &ColumnBatch, map: &[u8]) -> Result<Buffer<u8>> {
    let highest = map.last().copied().unwrap_or(0);
    let mut out = Vec::new();
    let entries = entries(column);
    out.try_reserve_exact(entries).map_err(|_| Error::out_of_memory(entries))?;
    match (&column.levels, &column.validity) {
        (Some(levels), _) => {
            out.extend(
                levels.definition.iter().map(|&level| *map.get(usize::from(level)).unwrap_or(&highest)),
            );
        }
        (None, None) => out.resize(entries, highest),
        (None, Some(validity)) => {
            let absent = map.first().copied().unwrap_or(0);
            out.extend(validity.iter().map(|is_there| if is_there { highest } else { absent }));
        }
    }
    Ok(out.into())
}

fn entries(column: &ColumnBatch) -> usize {
    column.levels.as_ref().map_or(column.rows, |levels| levels.definition.len())
}

impl Machine for ConformReader {
    type Product = Batch;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let step = self.advance(budget);
        if let Err(error) = &step {
            self.failed = Some(error.clone());
        }
        step
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
