//! A batch's dictionary, as the chunk's dictionary has it: each entry is looked up once, not each value.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Error, Price, Result};
use marquetry_kernels::gather;

use super::dictionary::DictionaryBuilder;
use super::part::{Gathered, PART_ENTRIES};
use crate::batch::Values;
use crate::growing::ROOM_PRICE;

/// The price of a value: what is known of its entry is looked up, twice.
const TRANSLATE_PRICE: Price = Price::per_kilovalue(5 << 10);

/// Entries of a dictionary that is translated, at most: as many as readers hand out.
const ENTRIES_MAX: usize = 1 << 16;
/// A dictionary has at most this many entries for each row of the batch that it comes with: a larger one would be looked at for little.
const ENTRIES_PER_ROW_MAX: usize = 16;
/// Entries whose room is made at a time.
const ROOM_ENTRIES: usize = 16 << 10;
/// Entries that are looked up together.
const AT_ONCE: usize = 256;

/// An entry that was not looked up yet.
const UNKNOWN: u32 = u32::MAX;

/// What the chunk's dictionary has of a batch's.
///
/// The chunk's dictionary becomes the same as if each value had been looked up: entries come in the order of their first use. (But for
/// strings of more than 64 KiB, which are an entry each time they are looked up: here, they are one.)
#[derive(Debug)]
pub(super) struct Translation {
    /// The batch's dictionary, which is not kept: that would be released here, in one go.
    of: Weak<Values>,
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
    /// Whether a dictionary of a batch of `rows` is worth being translated.
    pub(super) fn is_worth_it(entries: &Values, rows: usize) -> bool {
        let enough = PART_ENTRIES.max(rows.saturating_mul(ENTRIES_PER_ROW_MAX));
        let is_of_values = !matches!(entries, Values::Boolean(_) | Values::Dictionary(..));
        is_of_values && entries.len() <= ENTRIES_MAX.min(enough)
    }

    /// Of a dictionary, of which nothing is known.
    pub(super) fn new(entries: &Arc<Values>) -> Translation {
        Translation {
            of: Arc::downgrade(entries),
            known: Vec::new(),
            pages: Vec::new(),
            page: 1,
            fresh: Vec::new(),
            unknown: Vec::new(),
            interned: 0,
            is_scanned: false,
        }
    }

    /// Whether it is of this dictionary.
    pub(super) fn is_of(&self, entries: &Arc<Values>) -> bool {
        // As long as this refers to it, no other is at its place.
        core::ptr::eq(self.of.as_ptr(), Arc::as_ptr(entries))
    }

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        let lists = [&self.known, &self.pages, &self.fresh, &self.unknown];
        lists.iter().map(|list| list.capacity() * size_of::<u32>()).sum()
    }

    /// By how much [`held`](Translation::held) grows with a dictionary, at most.
    pub(super) fn growth_of(entries: usize) -> usize {
        2 * (entries.min(ENTRIES_MAX) + PART_ENTRIES) * size_of::<u32>()
    }

    /// Makes room for what will be known of the entries. False if the budget is spent first.
    fn make_room(&mut self, entries: usize, budget: &mut Budget<'_>) -> Result<bool> {
        if self.known.capacity() < entries {
            for list in [&mut self.known, &mut self.pages] {
                let bytes = entries * size_of::<u32>();
                list.try_reserve_exact(entries).map_err(|_| Error::out_of_memory(bytes))?;
            }
        }
        while self.known.len() < entries {
            let until = entries.min(self.known.len() + ROOM_ENTRIES);
            budget.charge(ROOM_PRICE, 2 * (until - self.known.len()) * size_of::<u32>(), 1);
            self.known.resize(until, UNKNOWN);
            self.pages.resize(until, 0);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks up what the chunk's dictionary does not have yet of a part's indices. False if the budget is spent first: then the same indices
    /// must be passed again.
    ///
    /// # Errors
    ///
    /// `Misuse` for an index that the batch's dictionary does not have; as [`DictionaryBuilder::intern`].
    pub(super) fn learn(
        &mut self,
        (indices, entries): (&[u32], &Values),
        dictionary: &mut DictionaryBuilder,
        (gathered, found): (&mut Gathered, &mut Vec<u32>),
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        if !self.make_room(entries.len(), budget)? {
            return Ok(false);
        }
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
            let some = Gathered::at_once(entries, some);
            let values = gathered.look_up(entries, some, budget)?;
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
        gather::values(&self.known, indices, out).map_err(|_| no_entry())?;
        // All of them, so that it takes no branches.
        match out.iter().fold(false, |found, index| found | (*index == UNKNOWN)) {
            true => Err(Error::internal("an entry that was not looked up")),
            false => Ok(()),
        }
    }

    /// The entries that the page has had for the first time in the last part.
    pub(super) fn fresh(&self) -> &[u32] {
        &self.fresh
    }

    /// The page ends.
    pub(super) fn end_page(&mut self) {
        self.page += 1;
    }
}

fn no_entry() -> Error {
    Error::misuse("an index that the dictionary of its batch does not have")
}
