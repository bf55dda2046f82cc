//! The entries of a dictionary of numbers.

use alloc::vec::Vec;

use marquetry_base::{Error, Result, cast};
use marquetry_kernels::Plain;

use super::table::{Found, Table, hash_number};
use super::work::{AT_ONCE, Work};

/// A number as an entry; floats by their bits.
pub(super) trait Number: Plain + Into<u64> {}

impl Number for u32 {}
impl Number for u64 {}

/// The logarithm of the number of entries per segment.
const SEGMENT_BITS: u32 = 13;
const SEGMENT: usize = 1 << SEGMENT_BITS;

/// The entries, and the table that finds them.
#[derive(Debug)]
pub(super) struct Numbers<T> {
    table: Table,
    segments: Vec<Vec<T>>,
    entries: usize,
    /// Some entries may equal each other.
    may_repeat: bool,
}

impl<T> Default for Numbers<T> {
    fn default() -> Numbers<T> {
        Numbers { table: Table::default(), segments: Vec::new(), entries: 0, may_repeat: false }
    }
}

impl<T: Number> Numbers<T> {
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// Whether some entries may equal each other.
    pub(super) fn may_repeat(&self) -> bool {
        self.may_repeat
    }

    pub(super) fn held(&self) -> usize {
        self.table.held() + self.segments.len() * SEGMENT * size_of::<T>()
    }

    /// The entries, some in a segment, in order.
    pub(super) fn segments(&self) -> &[Vec<T>] {
        &self.segments
    }

    /// Releases memory, and returns its bytes. `None` once none is left.
    pub(super) fn pop(&mut self) -> Option<usize> {
        self.segments.pop().map(|_| SEGMENT * size_of::<T>()).or_else(|| self.table.pop())
    }

    /// Interns some values, up to `entries_max` entries in total: writes their indices to `out` and returns how many.
    /// It stops early if the dictionary is full, and after the table has grown.
    pub(super) fn intern(
        &mut self,
        values: &[T],
        entries_max: usize,
        out: &mut [u32; AT_ONCE],
        work: &mut Work,
    ) -> Result<usize> {
        let values = &values[..values.len().min(AT_ONCE)];
        // Most are found in their first slot. Which are not is recorded without a branch.
        let (mut misses, mut missed) = ([0u8; AT_ONCE], 0);
        for (at, (&value, out)) in values.iter().zip(out.iter_mut()).enumerate() {
            let entry = self.table.first(hash_number(value.into()));
            *out = entry;
            misses[missed % AT_ONCE] = cast::low_u8(cast::u64_of(at));
            missed += usize::from(self.get(entry) != Some(value));
        }
        for &at in &misses[..missed] {
            let at = usize::from(at);
            let value = values[at];
            match self.table.find(
                hash_number(value.into()),
                |entry| self.get(entry) == Some(value),
                &mut work.probes,
            ) {
                Found::Entry(entry) => out[at] = entry,
                _ if self.entries >= entries_max => {
                    work.full = true;
                    return Ok(at);
                }
                found => {
                    let entry = cast::low_u32(cast::u64_of(self.entries));
                    out[at] = entry;
                    work.new += 1;
                    self.push(value)?;
                    let Some(place) = found.place(self.entries) else {
                        // It will not be found.
                        self.may_repeat = true;
                        continue;
                    };
                    let segments = &self.segments;
                    let moved = self.table.insert(place, entry, |entry| {
                        get(segments, entry).map_or(0, |value: T| hash_number(value.into()))
                    })?;
                    work.moved += moved;
                    if moved > 0 {
                        return Ok(at + 1);
                    }
                }
            }
        }
        Ok(values.len())
    }

    #[inline(always)]
    fn get(&self, entry: u32) -> Option<T> {
        get(&self.segments, entry)
    }

    fn push(&mut self, value: T) -> Result<()> {
        if self.entries.is_multiple_of(SEGMENT) {
            self.segments.push(Vec::new());
        }
        if let Some(segment) = self.segments.last_mut() {
            segment.try_reserve(1).map_err(|_| Error::out_of_memory(SEGMENT * size_of::<T>()))?;
            segment.push(value);
        }
        self.entries += 1;
        Ok(())
    }
}

/// An entry. [`NONE`](super::table::NONE) gives `None`, because there are never that many entries.
#[inline(always)]
fn get<T: Copy>(segments: &[Vec<T>], entry: u32) -> Option<T> {
    segments.get(entry as usize >> SEGMENT_BITS)?.get(entry as usize % SEGMENT).copied()
}
