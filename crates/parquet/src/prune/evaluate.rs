//! A predicate's value for each row of a batch.

use alloc::vec::Vec;

use marquetry_base::{Bitmap, Budget, Buffer, Error, Price, Result};
use marquetry_kernels::bits::word as word_of;

use super::matcher::{Matcher, SLICE_VALUES, SliceBits};
use super::predicate::{Operation, compile};
use super::{Accepts, Predicate, Quantifier, Test};
use crate::batch::{Batch, ColumnBatch, Layout, Levels};
use crate::schema::{Repetition, Schema};

/// The price of a row or an entry beside its value, and of a word of two masks that are combined.
const ROW_PRICE: Price = Price::per_kilovalue(3 << 10);
const WORD_PRICE: Price = Price::per_kilovalue(2 << 10);
/// The price of a word of tested rows, of which those that are null do not pass.
const PRESENT_PRICE: Price = Price::per_kilovalue(16 << 10);
/// What a test costs beside its values.
const TEST_UNITS: u64 = 100;

/// Says for which rows of batches a [`Predicate`] is true.
///
/// ```text
/// step(batch, budget) -> Some(bits) | None       None: the budget is spent, call again with the same batch
/// ```
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_base::Budget;
/// use marquetry_parquet::batch::Batch;
/// use marquetry_parquet::prune::{Evaluator, Predicate, Ranges, Test};
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
/// let schema = Schema::of_fields(&[id])?;
/// let large = Predicate::Test(Test::accepting(0, Ranges::of_keys(2, i128::MAX)));
/// let mut evaluator = Evaluator::new(&large, &schema, &[0])?;
/// let batch = Batch::of_values([vec![1_i64, 2, 3].into()])?;
/// let bits = evaluator.step(&batch, &mut Budget::unlimited())?.unwrap();
/// assert_eq!(bits.iter().collect::<Vec<_>>(), [false, true, true]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Evaluator {
    /// The predicate in postfix form.
    program: Vec<Operation>,
    tests: Vec<OneTest>,
    /// How far the batch at hand is.
    next: usize,
    at: Position,
    masks: Vec<Vec<u64>>,
    spare: Vec<Vec<u64>>,
}

/// A test of a column of the batch.
#[derive(Debug)]
struct OneTest {
    /// The column's place in the batch.
    column: usize,
    quantifier: Quantifier,
    kind: Kind,
    definition_max: u8,
    /// The definition levels of empty lists.
    empty: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Values(Matcher),
    Nulls { slot: u8, definition: u8, are_wanted: bool },
}

/// How far a test is.
#[derive(Debug, Default)]
struct Position {
    /// Its mask is there.
    has_mask: bool,
    /// Rows that are done; of a nested leaf, those that have begun.
    row: usize,
    /// Entries and values that are.
    entry: usize,
    value: usize,
    /// Of a nested leaf: whether the row that has begun passes so far.
    passes: bool,
}

impl Evaluator {
    /// For batches of these leaves of a schema, in this order.
    ///
    /// # Errors
    ///
    /// `Misuse` for a predicate of other leaves, or whose ranges do not suit their types.
    pub fn new(predicate: &Predicate, schema: &Schema, leaves: &[usize]) -> Result<Evaluator> {
        let (mut program, mut tests) = (Vec::new(), Vec::new());
        compile(predicate, &mut program, &mut |test| {
            tests.push(OneTest::new(test, schema, leaves)?);
            Ok(tests.len() - 1)
        })?;
        Ok(Evaluator {
            program,
            tests,
            next: 0,
            at: Position::default(),
            masks: Vec::new(),
            spare: Vec::new(),
        })
    }

    /// Forgets the batch at hand.
    pub(crate) fn restart(&mut self) {
        (self.next, self.at) = (0, Position::default());
        self.spare.append(&mut self.masks);
    }

    /// A bit for each row of a batch, whether the predicate is true there.
    ///
    /// # Errors
    ///
    /// `Misuse` for a batch without its columns.
    pub fn step(&mut self, batch: &Batch, budget: &mut Budget<'_>) -> Result<Option<Bitmap>> {
        let words = batch.rows.div_ceil(64);
        while let Some(operation) = self.program.get(self.next) {
            match operation {
                Operation::All(is_all) => {
                    let word = if *is_all { u64::MAX } else { 0 };
                    let mask = mask(&mut self.spare, words, word);
                    self.masks.push(mask);
                    budget.charge(WORD_PRICE, 0, words);
                }
                Operation::Test(test) => {
                    let test = &mut self.tests[*test];
                    let column = batch.columns.get(test.column);
                    let column =
                        column.ok_or_else(|| Error::misuse("a batch without a column that is tested"))?;
                    if !core::mem::replace(&mut self.at.has_mask, true) {
                        budget.charge_units(TEST_UNITS);
                        let mask = mask(&mut self.spare, words, 0);
                        self.masks.push(mask);
                    }
                    let made =
                        self.masks.last_mut().ok_or_else(|| Error::internal("a test without a mask"))?;
                    if !test.step(column, batch.rows, made, &mut self.at, budget)? {
                        return Ok(None);
                    }
                    self.at = Position::default();
                }
                Operation::And | Operation::Or => {
                    let is_and = matches!(operation, Operation::And);
                    let (Some(right), Some(left)) = (self.masks.pop(), self.masks.last_mut()) else {
                        return Err(Error::internal("an operation without two masks"));
                    };
                    for (left, right) in left.iter_mut().zip(&right) {
                        *left = if is_and { *left & right } else { *left | right };
                    }
                    self.spare.push(right);
                    budget.charge(WORD_PRICE, 0, words);
                }
            }
            self.next += 1;
            if budget.is_spent() && self.next < self.program.len() {
                return Ok(None);
            }
        }
        self.next = 0;
        let made = self.masks.pop().ok_or_else(|| Error::internal("a predicate without a mask"))?;
        let bytes: Vec<u8> = made.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.spare.push(made);
        Ok(Some(Bitmap::new(Buffer::from(bytes), 0, batch.rows)))
    }
}

fn mask(spare: &mut Vec<Vec<u64>>, words: usize, word: u64) -> Vec<u64> {
    let mut mask = spare.pop().unwrap_or_default();
    mask.clear();
    mask.resize(words, word);
    mask
}

impl OneTest {
    fn new(test: &Test, schema: &Schema, leaves: &[usize]) -> Result<OneTest> {
        let number = test.leaf;
        let leaf = schema.leaves().get(number);
        let leaf = leaf.ok_or_else(|| Error::misuse(alloc::format!("leaf {number} is not there")))?;
        let column = leaves.iter().position(|leaf| *leaf == number);
        let column = column.ok_or_else(|| Error::misuse(alloc::format!("leaf {number} is not read")))?;
        let level = |level: u16| {
            u8::try_from(level).map_err(|_| Error::unsupported("a test of a leaf of more than 255 levels"))
        };
        let kind = match &test.accepts {
            Accepts::Values(ranges) => Kind::Values(Matcher::new(schema, leaf, ranges)?),
            Accepts::Nulls { slot, definition, are_wanted } => {
                Kind::Nulls { slot: level(*slot)?, definition: level(*definition)?, are_wanted: *are_wanted }
            }
        };
        let (mut empty, mut node, mut definition) = (Vec::new(), leaf.node, level(leaf.definition_max)?);
        while node != 0 {
            let found = &schema.nodes()[node];
            if found.repetition != Repetition::Required {
                definition = definition.saturating_sub(1);
            }
            if found.repetition == Repetition::Repeated {
                empty.push(definition);
            }
            node = found.parent;
        }
        let (quantifier, definition_max) = (test.quantifier, level(leaf.definition_max)?);
        Ok(OneTest { column, quantifier, kind, definition_max, empty })
    }

    /// Sets the bits of rows that pass. False if the budget is spent before all are done.
    fn step(
        &mut self,
        column: &ColumnBatch,
        rows: usize,
        mask: &mut [u64],
        at: &mut Position,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        match &column.levels {
            Some(levels) => self.step_nested(column, levels, rows, mask, at, budget),
            None => self.step_flat(column, rows, mask, at, budget),
        }
    }

    fn step_flat(
        &mut self,
        column: &ColumnBatch,
        rows: usize,
        mask: &mut [u64],
        at: &mut Position,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let mut bits: SliceBits = [0; SLICE_VALUES / 64];
        while at.row < rows {
            // Whole words, as long as no budget cuts them.
            let end = rows.min(at.row + SLICE_VALUES);
            let matcher = match &mut self.kind {
                Kind::Values(matcher) => matcher,
                Kind::Nulls { are_wanted, definition, .. } => {
                    for row in at.row..end {
                        // A required struct around the leaf is there where the leaf is null.
                        let passes = (*definition > 0 && column.is_null(row)) == *are_wanted;
                        mask[row / 64] |= u64::from(passes) << (row % 64);
                    }
                    budget.charge(ROW_PRICE, 0, end - at.row);
                    at.row = end;
                    if budget.is_spent() && end < rows {
                        return Ok(false);
                    }
                    continue;
                }
            };
            match (column.layout, &column.validity) {
                (Layout::Spaced, _) | (Layout::Dense, None) => {
                    let done = matcher.step(&column.values, at.row..end, &mut bits, budget)?;
                    if at.row.is_multiple_of(64) {
                        let rows = (at.row..at.row + done).step_by(64).zip(&bits);
                        for (row, word) in rows {
                            let count = 64.min(at.row + done - row);
                            let present = column.validity.as_ref().map_or(u64::MAX, |validity| {
                                word_of(validity.bytes(), validity.offset() + row, count)
                            });
                            mask[row / 64] |= word & present;
                        }
                        budget.charge(PRESENT_PRICE, 0, done.div_ceil(64));
                    } else {
                        // Where a budget cut a word.
                        for (offset, row) in (at.row..at.row + done).enumerate() {
                            let passes = bits[offset / 64] >> (offset % 64) & 1 == 1 && !column.is_null(row);
                            mask[row / 64] |= u64::from(passes) << (row % 64);
                        }
                        budget.charge(ROW_PRICE, 0, done);
                    }
                    at.row += done;
                }
                (Layout::Dense, Some(validity)) => {
                    let there = (at.row..end).filter(|row| validity.get(*row)).count();
                    let values = at.value..at.value + there;
                    let done = matcher.step(&column.values, values.clone(), &mut bits, budget)?;
                    let mut looked = 0;
                    while at.row < end {
                        if validity.get(at.row) {
                            if looked == done {
                                break;
                            }
                            let passes = bits[looked / 64] >> (looked % 64) & 1;
                            mask[at.row / 64] |= passes << (at.row % 64);
                            looked += 1;
                        }
                        at.row += 1;
                    }
                    at.value += done;
                    budget.charge(ROW_PRICE, 0, end - at.row + there);
                }
            }
            if budget.is_spent() && at.row < rows {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn step_nested(
        &mut self,
        column: &ColumnBatch,
        levels: &Levels,
        rows: usize,
        mask: &mut [u64],
        at: &mut Position,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let mut bits: SliceBits = [0; SLICE_VALUES / 64];
        let of_all = self.quantifier == Quantifier::All;
        while at.entry < levels.definition.len() {
            let end = levels.definition.len().min(at.entry + SLICE_VALUES);
            let there = levels.definition[at.entry..end]
                .iter()
                .filter(|level| **level == self.definition_max)
                .count();
            let known = match &mut self.kind {
                Kind::Values(matcher) => {
                    matcher.step(&column.values, at.value..at.value + there, &mut bits, budget)?
                }
                Kind::Nulls { .. } => there,
            };
            let (mut looked, begin) = (0, at.entry);
            while at.entry < end {
                let level = levels.definition[at.entry];
                let is_value = level == self.definition_max;
                if is_value && looked == known {
                    break;
                }
                if levels.repetition.as_ref().is_none_or(|levels| levels.get(at.entry) == Some(&0)) {
                    finish(mask, at);
                    (at.row, at.passes) = (at.row + 1, of_all);
                    if at.row > rows {
                        return Err(Error::misuse("a column of more rows than its batch"));
                    }
                }
                let passes = match &self.kind {
                    Kind::Values(_) if is_value => bits[looked / 64] >> (looked % 64) & 1 == 1,
                    Kind::Nulls { slot, definition, are_wanted } if level >= *slot => {
                        (level < *definition) == *are_wanted
                    }
                    _ => of_all && self.empty.contains(&level),
                };
                looked += usize::from(is_value);
                at.passes = if of_all { at.passes && passes } else { at.passes || passes };
                at.entry += 1;
            }
            at.value += looked;
            budget.charge(ROW_PRICE, 0, at.entry - begin);
            if budget.is_spent() && at.entry < levels.definition.len() {
                return Ok(false);
            }
        }
        finish(mask, at);
        Ok(true)
    }
}

/// Sets the bit of the row that has begun, if it passes.
fn finish(mask: &mut [u64], at: &Position) {
    if let Some(row) = at.row.checked_sub(1)
        && let Some(word) = mask.get_mut(row / 64)
    {
        *word |= u64::from(at.passes) << (row % 64);
    }
}
