//! Dictionaries that columns keep while their rows are sorted.
//!
//! A column has one, of all entries that its batches came with: each entry is looked up once, and rows are moved as indices of two bytes.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{Budget, Error, Price, Result};

use super::collected::{Collected, Compacting};
use super::is_paid_for;
use super::stored::{COLUMN_PRICE, Renumbered};
use crate::batch::{Slice, Values};
use crate::growing::COPY_PRICE;
use crate::schema::{Leaf, PhysicalType};
use crate::write::dictionary::{DictionaryBuilder, DictionaryLimits};

/// The price of noting where an entry is, besides looking it up.
const LEARN_PRICE: Price = Price::per_kilovalue(8 << 10);

/// Entries of a column's dictionary, at most: their indices have two bytes, and their array is copied in one go.
const ENTRIES_MAX: usize = 32 << 10;
/// Bytes of its strings, at most.
const BYTES_MAX: usize = 1 << 20;
/// A longer value is not looked up.
const VALUE_BYTES_MAX: usize = 4 << 10;
/// Entries that are looked up for each row of a column, at most, besides those of one dictionary: where each batch brings others, they are
/// looked up for little.
const ENTRIES_PER_ROW_MAX: u64 = 16;
/// Bytes of what finds an entry, about.
const ENTRY_BYTES: usize = 64;
/// Entries that are looked up between two checks of the budget.
const AT_ONCE: usize = 256;

const _: () = assert!(ENTRIES_MAX <= 1 << 16);

/// The columns' dictionaries, as far as columns have any: their entries are all values of which there is an index.
pub(super) type Entries = Arc<Vec<Option<Arc<Values>>>>;

/// The dictionaries of all columns, to which batches add what they come with.
#[derive(Debug, Default)]
pub(super) struct Dictionaries {
    columns: Vec<Column>,
    /// Bytes of memory that all of them take, about, and may take.
    bytes: u64,
    bytes_max: u64,
    /// The entries, since the last one was added, and those of the first columns until all are there.
    entries: Option<Entries>,
    settled: Vec<Option<Arc<Values>>>,
}

#[derive(Debug)]
struct Column {
    /// It takes no more entries.
    is_closed: bool,
    /// Rows that came with dictionaries, and entries that were looked up for them.
    rows: u64,
    looked_up: u64,
    known: Option<Box<Known>>,
}

/// What is known of a column's dictionary.
#[derive(Debug)]
struct Known {
    physical_type: PhysicalType,
    finder: DictionaryBuilder,
    /// Its entries: those that were asked for last, and what was added since.
    entries: Arc<Values>,
    added: Added,
    count: usize,
    /// The last dictionary of a batch, which is not held; its entries' numbers so far, and all of them once it is done.
    of: Weak<Values>,
    numbers: Vec<u16>,
    renumbered: Option<Renumbered>,
    found: Vec<u32>,
    /// Some batch has indices of it.
    is_used: bool,
    /// Bytes that were counted.
    bytes: u64,
}

#[derive(Debug)]
enum Added {
    Strings(Compacting),
    Others(Collected),
}

/// What became of a batch's dictionary.
#[derive(Debug)]
pub(super) enum Learned {
    /// The budget is spent.
    Yield,
    /// All its entries are in the column's.
    Kept(Renumbered),
    /// The column has none, or no room for it: its values are looked up.
    LeftOut,
}

impl Dictionaries {
    /// No dictionaries, and of no column yet. They take at most `bytes_max` bytes of memory, about.
    pub(super) fn new(bytes_max: u64) -> Dictionaries {
        Dictionaries { bytes_max, ..Dictionaries::default() }
    }

    /// Adds the next column.
    pub(super) fn push(&mut self, leaf: &Leaf) {
        let may = leaf.is_flat() && leaf.physical_type != PhysicalType::Boolean;
        self.columns.push(Column { is_closed: !may, rows: 0, looked_up: 0, known: None });
    }

    /// A column keeps no dictionary.
    pub(super) fn close(&mut self, column: usize) {
        if let Some(column) = self.columns.get_mut(column) {
            column.is_closed = true;
        }
    }

    /// Bytes of memory, about.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds the entries of a batch's dictionary to that of its column, or goes on with it.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn learn(
        &mut self,
        (number, leaf): (usize, &Leaf),
        (entries, rows): (&Arc<Values>, usize),
        budget: &mut Budget<'_>,
    ) -> Result<Learned> {
        let Some(column) = self.columns.get_mut(number) else { return Ok(Learned::LeftOut) };
        let physical_type = leaf.physical_type;
        if !column.may_have(entries, physical_type) {
            return Ok(Learned::LeftOut);
        }
        let known = match &mut column.known {
            Some(known) => known,
            none => none.insert(Box::new(Known::new(physical_type)?)),
        };
        if !core::ptr::eq(known.of.as_ptr(), Arc::as_ptr(entries)) {
            column.looked_up += u64_of(entries.len());
            let enough = ENTRIES_PER_ROW_MAX.saturating_mul(column.rows + u64_of(rows)) + u64_of(ENTRIES_MAX);
            column.is_closed |= column.looked_up > enough;
            if column.is_closed {
                return Ok(Learned::LeftOut);
            }
            // As long as this refers to it, no other is at its place.
            (known.of, known.renumbered) = (Arc::downgrade(entries), None);
            known.numbers = Vec::new();
        }
        if let Some(renumbered) = &known.renumbered {
            column.rows += u64_of(rows);
            return Ok(Learned::Kept(Arc::clone(renumbered)));
        }
        if column.is_closed {
            return Ok(Learned::LeftOut);
        }
        (self.entries, self.settled) = (None, Vec::new());
        let before = known.bytes;
        let went = known.learn(entries, budget)?;
        self.bytes = self.bytes - before + known.bytes;
        if went == Went::Full || self.bytes > self.bytes_max {
            column.is_closed = true;
            known.renumbered = None;
            if !known.is_used {
                self.bytes -= known.bytes;
                column.known = None;
            }
            return Ok(Learned::LeftOut);
        }
        match &known.renumbered {
            Some(renumbered) => {
                column.rows += u64_of(rows);
                known.is_used = true;
                Ok(Learned::Kept(Arc::clone(renumbered)))
            }
            None => Ok(Learned::Yield),
        }
    }

    /// What becomes of the indices of a batch that has only nulls in a column: as if it had come with the column's dictionary, if there is one.
    pub(super) fn nulls(&self, number: usize) -> Option<Renumbered> {
        let known = self.columns.get(number)?.known.as_ref()?;
        known.is_used.then(Renumbered::default)
    }

    /// The columns' entries, once [`settle`](Dictionaries::settle) has put them together and until any is added.
    pub(super) fn entries(&self) -> Option<&Entries> {
        self.entries.as_ref()
    }

    /// Puts the entries together, so that all indices which were given out refer to one of them. True once it is done.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn settle(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        while self.entries.is_none() {
            let Some(column) = self.columns.get_mut(self.settled.len()) else {
                self.entries = Some(Arc::new(core::mem::take(&mut self.settled)));
                break;
            };
            let entries = match &mut column.known {
                Some(known) => {
                    if !known.settle(budget)? {
                        return Ok(false);
                    }
                    Some(Arc::clone(&known.entries))
                }
                None => None,
            };
            self.settled.push(entries);
            budget.charge(COLUMN_PRICE, 0, 1);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Column {
    /// Whether a batch's dictionary may become part of this one. What does not fit its leaf is found out later.
    fn may_have(&self, entries: &Values, physical_type: PhysicalType) -> bool {
        let is_of_type = match (entries, physical_type) {
            (Values::FixedLenByteArray(values), PhysicalType::FixedLenByteArray(width)) => {
                values.width() == usize_of_u32(width) && (1..=VALUE_BYTES_MAX).contains(&values.width())
            }
            (Values::Int96(values), PhysicalType::Int96) => values.width() == 12,
            (values, _) => Slice::of(values).is_of(physical_type),
        };
        // Nulls have the first entry's index: there must be one.
        (!self.is_closed || self.known.is_some()) && is_of_type && (1..=ENTRIES_MAX).contains(&entries.len())
    }
}

/// How far a dictionary has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Went {
    On,
    Full,
}

impl Known {
    fn new(physical_type: PhysicalType) -> Result<Known> {
        let limits = DictionaryLimits { entries: ENTRIES_MAX, bytes: BYTES_MAX };
        Ok(Known {
            physical_type,
            finder: DictionaryBuilder::new(physical_type, limits),
            entries: Arc::new(Collected::new(physical_type, 0, 0)?.finish()),
            added: Added::new(physical_type)?,
            count: 0,
            of: Weak::new(),
            numbers: Vec::new(),
            renumbered: None,
            found: Vec::new(),
            is_used: false,
            bytes: 0,
        })
    }

    /// Finds the numbers of a dictionary's entries, and adds those that are new.
    fn learn(&mut self, entries: &Values, budget: &mut Budget<'_>) -> Result<Went> {
        let all = Slice::of(entries);
        while self.numbers.len() < all.len() {
            let done = self.numbers.len();
            let some = all.part(done..all.len().min(done + AT_ONCE));
            if let Slice::ByteArray(views, _) = some
                && views.iter().any(|view| length(view) > VALUE_BYTES_MAX)
            {
                return Ok(Went::Full);
            }
            self.found.clear();
            let interned = self.finder.intern(some, &mut self.found, budget)?;
            budget.charge(LEARN_PRICE, 0, self.found.len() + 1);
            for (at, number) in (done..).zip(&self.found) {
                if usize_of_u32(*number) == self.count {
                    self.added.push(entries, at)?;
                    self.count += 1;
                }
                let number = u16::try_from(*number);
                self.numbers.push(number.map_err(|_| Error::internal("more entries than have numbers"))?);
            }
            self.bytes = u64_of(2 * self.finder.bytes() + ENTRY_BYTES * self.count);
            if interned.full {
                return Ok(Went::Full);
            }
            if budget.is_spent() && self.numbers.len() < all.len() {
                return Ok(Went::On);
            }
        }
        self.renumbered = Some(Arc::new(core::mem::take(&mut self.numbers)));
        Ok(Went::On)
    }

    /// Puts the entries together. False if the budget does not pay for it any more.
    fn settle(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        if self.count == self.entries.len() {
            return Ok(true);
        }
        // The views of strings, which share their bytes; and numbers.
        let bytes = usize_of(self.bytes).unwrap_or(usize::MAX).min(self.count * size_of::<u128>());
        if !is_paid_for(COPY_PRICE.of(bytes, 0), budget) {
            return Ok(false);
        }
        budget.charge(COPY_PRICE, bytes, 0);
        let added = core::mem::replace(&mut self.added, Added::new(self.physical_type)?).finish();
        let mut all = Collected::new(self.physical_type, self.count, 2)?;
        for (source, part) in [&*self.entries, &added].into_iter().enumerate() {
            let mut done = 0;
            while done < part.len() {
                done += all.extend(part, done..part.len(), source)?.0;
            }
        }
        self.entries = Arc::new(all.finish());
        Ok(true)
    }
}

impl Added {
    fn new(physical_type: PhysicalType) -> Result<Added> {
        Ok(match physical_type {
            PhysicalType::ByteArray => Added::Strings(Compacting::new(0)?),
            _ => Added::Others(Collected::new(physical_type, 0, 1)?),
        })
    }

    fn push(&mut self, entries: &Values, at: usize) -> Result<()> {
        match (self, entries) {
            (Added::Strings(strings), Values::ByteArray(entries)) => strings.push(entries, at).map(drop),
            (Added::Others(others), entries) => others.extend(entries, at..at + 1, 0).map(drop),
            _ => Err(Error::internal("strings that are none")),
        }
    }

    fn finish(self) -> Values {
        match self {
            Added::Strings(strings) => Values::ByteArray(strings.finish().0),
            Added::Others(others) => others.finish(),
        }
    }
}

/// Bytes of a string.
fn length(view: &u128) -> usize {
    let words: &[u32; 4] = bytemuck::cast_ref(view);
    usize_of_u32(words[0])
}
