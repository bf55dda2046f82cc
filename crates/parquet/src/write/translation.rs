//! A batch's dictionary, as the chunk's dictionary has it: each entry is looked up once, not each value.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Error, Price, Result};
use marquetry_kernels::gather;

use super::dictionary::DictionaryBuilder;
use super::encoder::Slice;
use super::part::{Gathered, PART_ENTRIES};
use crate::batch::Values;
use crate::growing::ROOM_PRICE;

/// The price of a value: what is known of its entry is looked up, twice.
const TRANSLATE_PRICE: Price = Price::per_kilovalue(5 << 10);

/// The price of looking for a NaN among entries.
const NAN_PRICE: Price = Price::per_kilovalue(300);

/// Entries of a dictionary that is translated, at most: two lists of 512 KiB, each allocated at once.
const ENTRIES_MAX: usize = 1 << 17;
/// A dictionary has at most this many entries for each row of the batch that it comes with: a larger one would be looked at for little.
const ENTRIES_PER_ROW_MAX: usize = 16;
/// Entries that are looked up together.
const AT_ONCE: usize = 256;

/// An entry that was not looked up yet.
const UNKNOWN: u32 = u32::MAX;

/// What the chunk's dictionary has of a batch's.
///
/// The chunk's dictionary becomes the same as if each value had been looked up: entries come in the order of their first use.
#[derive(Debug)]
pub(super) struct Translation {
    entries: Arc<Values>,
    /// Otherwise values are looked up one by one.
    is_worth_it: bool,
    /// Of each entry, its index in the chunk's dictionary, and the last page that has it.
    known: Vec<u32>,
    pages: Vec<u32>,
    /// The open page.
    page: u32,
    /// Entries that the open page has had for the first time in the current part, in the order of their use; those of them that the chunk's
    /// dictionary has not had before, and how many of these it has now.
    fresh: Vec<u32>,
    unknown: Vec<u32>,
    interned: usize,
    /// The part was looked at.
    is_scanned: bool,
}

impl Translation {
    /// Of a dictionary of a batch of `rows`.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn new(entries: &Arc<Values>, rows: usize, budget: &mut Budget<'_>) -> Result<Translation> {
        let enough = PART_ENTRIES.max(rows.saturating_mul(ENTRIES_PER_ROW_MAX));
        let is_worth_it = entries.len() <= ENTRIES_MAX.min(enough) && can_be_counted_once(entries, budget);
        let count = if is_worth_it { entries.len() } else { 0 };
        budget.charge(ROOM_PRICE, 2 * count * size_of::<u32>(), 1);
        let filled = |value: u32| {
            let mut list = Vec::new();
            list.try_reserve_exact(count).map_err(|_| Error::out_of_memory(count * size_of::<u32>()))?;
            list.resize(count, value);
            Ok::<_, Error>(list)
        };
        Ok(Translation {
            entries: Arc::clone(entries),
            is_worth_it,
            known: filled(UNKNOWN)?,
            pages: filled(0)?,
            page: 1,
            fresh: Vec::new(),
            unknown: Vec::new(),
            interned: 0,
            is_scanned: false,
        })
    }

    pub(super) fn is_worth_it(&self) -> bool {
        self.is_worth_it
    }

    /// Whether it is of this dictionary.
    pub(super) fn is_of(&self, entries: &Arc<Values>) -> bool {
        Arc::ptr_eq(&self.entries, entries)
    }

    /// Looks up what the chunk's dictionary does not have yet of a part's indices. False if the budget is spent first: then the same indices
    /// must be passed again.
    ///
    /// # Errors
    ///
    /// `Misuse` for an index that the batch's dictionary does not have; as [`DictionaryBuilder::intern`].
    pub(super) fn learn(
        &mut self,
        indices: &[u32],
        dictionary: &mut DictionaryBuilder,
        gathered: &mut Gathered,
        found: &mut Vec<u32>,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let has_work = !self.is_scanned || self.interned < self.unknown.len();
        if !self.is_scanned {
            budget.charge(TRANSLATE_PRICE, 0, indices.len());
            self.scan(indices)?;
            self.is_scanned = true;
            if budget.is_spent() {
                return Ok(false);
            }
        }
        while self.interned < self.unknown.len() {
            let some = &self.unknown[self.interned..self.unknown.len().min(self.interned + AT_ONCE)];
            let values = gathered.look_up(&self.entries, some, budget)?;
            found.clear();
            let interned = dictionary.intern(values, found, budget)?;
            for (entry, index) in some.iter().zip(&*found) {
                self.known[usize_of_u32(*entry)] = *index;
            }
            self.interned += interned.values;
            if interned.full {
                return Err(Error::too_large("a row whose values do not fit a dictionary"));
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
        // The rest is for the next call, if this one has spent its budget.
        Ok(!has_work || !budget.is_spent())
    }

    /// Notes what the page and the chunk have not had before.
    fn scan(&mut self, indices: &[u32]) -> Result<()> {
        self.fresh.clear();
        self.unknown.clear();
        self.interned = 0;
        for &index in indices {
            let at = usize_of_u32(index);
            let Some(page) = self.pages.get_mut(at) else { return Err(no_entry()) };
            if *page != self.page {
                *page = self.page;
                self.fresh.push(index);
                if self.known[at] == UNKNOWN {
                    self.unknown.push(index);
                }
            }
        }
        Ok(())
    }

    /// The same values by their indices in the chunk's dictionary, once all are [known](Translation::learn).
    pub(super) fn translate(&mut self, indices: &[u32], out: &mut Vec<u32>) -> Result<()> {
        self.is_scanned = false;
        out.clear();
        out.try_reserve(indices.len()).map_err(|_| Error::out_of_memory(size_of_val(indices)))?;
        out.resize(indices.len(), 0);
        gather::values(&self.known, indices, out).map_err(|_| no_entry())
    }

    /// The values of the last part that its page has not had before.
    pub(super) fn fresh<'a>(
        &'a self,
        gathered: &'a mut Gathered,
        budget: &mut Budget<'_>,
    ) -> Result<Slice<'a>> {
        gathered.look_up(&self.entries, &self.fresh, budget)
    }

    /// The page ends.
    pub(super) fn end_page(&mut self) {
        self.page += 1;
    }
}

/// Whether a page's bounds are those of the different values that it has: NaNs are counted as often as they occur.
fn can_be_counted_once(entries: &Values, budget: &mut Budget<'_>) -> bool {
    budget.charge(NAN_PRICE, 0, entries.len());
    match entries {
        // All of them, so that it takes no branches.
        Values::Float(values) => !values.iter().fold(false, |found, value| found | value.is_nan()),
        Values::Double(values) => !values.iter().fold(false, |found, value| found | value.is_nan()),
        Values::Boolean(_) | Values::Dictionary(..) => false,
        _ => true,
    }
}

fn no_entry() -> Error {
    Error::misuse("an index that the dictionary of its batch does not have")
}
