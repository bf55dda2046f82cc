//! The entries of a dictionary of byte strings.

use alloc::vec::Vec;
use core::cell::Cell;

use marquetry_base::{Bytes, Error, Result, cast};

use super::table::{Found, NONE, Table, hash_bytes, hash_words};
use super::work::{AT_ONCE, DictionaryLimits, Work};
use crate::batch::INLINE_BYTES_MAX;
use crate::encoding::Part;
use crate::encoding::view::{far_bytes, length};
use crate::growing::SLICE_BYTES;

/// The longest value that is looked up. Longer ones are hardly ever repeated, and would take long to compare.
pub(super) const VALUE_BYTES_MAX: usize = 64 << 10;

/// The logarithm of the number of views per segment.
const SEGMENT_BITS: u32 = 12;
const SEGMENT: usize = 1 << SEGMENT_BITS;

/// Bytes of an entry's view and hash.
const VIEW_BYTES: usize = size_of::<u128>() + size_of::<u32>();

/// Bytes of a piece of entries.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes of entries that are compared at a time with values that are not in their first slot, but for a value's last. Values that begin like
/// many others and are as long, and whose hashes are as if crafted, become new entries beyond it.
const COMPARED_BYTES_MAX: usize = 2 * SLICE_BYTES;

/// Values that are looked up together.
const TOGETHER: usize = 64;

const _: () = assert!(TOGETHER <= AT_ONCE);
const _: () = assert!(VALUE_BYTES_MAX + 4 <= PIECE_BYTES);

/// The entries, and the table that finds them.
#[derive(Debug, Default)]
pub(super) struct Strings {
    table: Table,
    /// Each entry's view, as in [`ByteArrays`](crate::batch::ByteArrays), except that the buffer's number is a piece's.
    views: Vec<Vec<u128>>,
    /// Each entry's hash.
    hashes: Vec<Vec<u32>>,
    /// The dictionary's page.
    pieces: Vec<Vec<u8>>,
    /// Each value is preceded by its length.
    lengths: bool,
    entries: usize,
    bytes: usize,
    /// How much is stored of a long value, which is not an entry before all of it is; and entries that are long.
    part: Part,
    long: usize,
    /// Some entries may equal each other.
    may_repeat: bool,
}

/// A value to look up.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted<'a> {
    /// The view: the complete value if it is short, else its length and first bytes.
    view: u128,
    /// All bytes, if it is longer.
    bytes: &'a [u8],
    hash: u32,
}

impl<'a> Wanted<'a> {
    /// A value out of a view.
    #[inline]
    fn of_view(view: u128, buffers: &'a [Bytes]) -> Result<Wanted<'a>> {
        if length(view) as usize <= INLINE_BYTES_MAX {
            return Ok(Wanted::short(view));
        }
        Ok(Wanted::long(view & START, far_bytes(view, buffers)?))
    }

    /// A value of its bytes.
    #[inline]
    fn of_bytes(bytes: &'a [u8]) -> Wanted<'a> {
        let mut raw = [0; 16];
        raw[..4].copy_from_slice(&cast::low_u32(cast::u64_of(bytes.len())).to_le_bytes());
        if bytes.len() <= INLINE_BYTES_MAX {
            raw[4..4 + bytes.len()].copy_from_slice(bytes);
            return Wanted::short(u128::from_le_bytes(raw));
        }
        raw[4..8].copy_from_slice(&bytes[..4]);
        Wanted::long(u128::from_le_bytes(raw), bytes)
    }

    #[inline]
    fn short(view: u128) -> Wanted<'a> {
        let [low, high] = halves(view);
        Wanted { view, bytes: &[], hash: hash_words(low, high) }
    }

    #[inline]
    fn long(view: u128, bytes: &'a [u8]) -> Wanted<'a> {
        let hash = if bytes.len() <= VALUE_BYTES_MAX { hash_bytes(bytes) } else { 0 };
        Wanted { view, bytes, hash }
    }

    /// False if it is too long, so that it equals no entry.
    fn is_looked_for(&self) -> bool {
        self.bytes.len() <= VALUE_BYTES_MAX
    }

    fn len(&self) -> usize {
        length(self.view) as usize
    }
}

/// A view that equals none: its length exceeds every value that is looked up.
const NO_VIEW: u128 = u128::MAX;

/// The length and the first bytes of a long value's view.
const START: u128 = u64::MAX as u128;

fn halves(view: u128) -> [u64; 2] {
    let raw = view.to_le_bytes();
    [0, 8].map(|at| raw[at..].first_chunk().map_or(0, |half| u64::from_le_bytes(*half)))
}

impl Strings {
    /// Entries that are preceded by their lengths, or, if all have the same length, are not.
    pub(super) fn new(lengths: bool) -> Strings {
        Strings { lengths, ..Strings::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn held(&self) -> usize {
        let views = self.views.len() * SEGMENT * VIEW_BYTES;
        self.table.held() + views + self.pieces.iter().map(Vec::capacity).sum::<usize>()
    }

    /// Whether some entries may equal each other.
    pub(super) fn may_repeat(&self) -> bool {
        self.may_repeat
    }

    /// Whether each entry is in one piece, where its view points.
    pub(super) fn has_views(&self) -> bool {
        self.long == 0
    }

    /// The entries' views, and the pieces that they point into.
    pub(super) fn into_entries(self) -> (Vec<u128>, Vec<Vec<u8>>) {
        (self.views.concat(), self.pieces)
    }

    /// The pieces of the dictionary's page.
    pub(super) fn into_pieces(self) -> Vec<Vec<u8>> {
        self.pieces
    }

    /// Releases memory that the page does not need, and returns its bytes. `None` once none is left: then only the page
    /// is there.
    pub(super) fn pop(&mut self) -> Option<usize> {
        self.hashes.pop();
        self.views.pop().map(|_| SEGMENT * VIEW_BYTES).or_else(|| self.table.pop())
    }

    /// An error in the middle of a value.
    pub(super) fn ended(&self) -> Result<()> {
        self.part.ended()
    }

    /// Interns some values, given as views; see [`Numbers::intern`](super::numbers::Numbers::intern).
    pub(super) fn intern_views(
        &mut self,
        views: &[u128],
        buffers: &[Bytes],
        limits: DictionaryLimits,
        out: &mut [u32; AT_ONCE],
        work: &mut Work,
    ) -> Result<usize> {
        self.intern(views.len(), |at| Wanted::of_view(views[at], buffers), limits, out, work)
    }

    /// Interns some values of `width` bytes.
    pub(super) fn intern_fixed(
        &mut self,
        width: usize,
        values: usize,
        bytes: &[u8],
        limits: DictionaryLimits,
        out: &mut [u32; AT_ONCE],
        work: &mut Work,
    ) -> Result<usize> {
        let value = |at: usize| Ok(Wanted::of_bytes(&bytes[at * width..(at + 1) * width]));
        self.intern(values, value, limits, out, work)
    }

    fn intern<'a>(
        &mut self,
        count: usize,
        wanted: impl Fn(usize) -> Result<Wanted<'a>>,
        limits: DictionaryLimits,
        out: &mut [u32; AT_ONCE],
        work: &mut Work,
    ) -> Result<usize> {
        // (What is wanted is asked for in one place: in two it would be a call for each value, half as slow again.)
        // First load the most likely entry of each value, then these entries' views: no load waits for another.
        // (To touch the bytes of all values before they are hashed, and those of their entries before they are compared, is 3 % slower, also where both
        // are in the third-level cache.)
        let mut all = [Wanted::default(); TOGETHER];
        let mut looked_at = 0;
        for (at, (place, out)) in all.iter_mut().zip(out.iter_mut()).take(count).enumerate() {
            if work.bytes >= SLICE_BYTES / 2 {
                break;
            }
            *place = wanted(at)?;
            if !place.is_looked_for() {
                break;
            }
            work.bytes += place.bytes.len();
            *out = self.table.first(place.hash);
            looked_at = at + 1;
        }
        if looked_at == 0 && !all[0].is_looked_for() {
            return self.store(&all[0], limits, out, work);
        }
        let all = &all[..looked_at];
        let mut likely = [0; TOGETHER];
        for (view, entry) in likely.iter_mut().zip(&out[..looked_at]) {
            *view = get(&self.views, *entry).unwrap_or(NO_VIEW);
        }
        let (mut misses, mut missed) = ([0u8; TOGETHER], 0);
        for (at, (wanted, view)) in all.iter().zip(likely).enumerate() {
            misses[missed % TOGETHER] = cast::low_u8(cast::u64_of(at));
            missed += usize::from(!self.is_of(view, wanted));
        }
        let compared = Cell::new(0);
        for &at in &misses[..missed] {
            let at = usize::from(at);
            let wanted = &all[at];
            if compared.get() >= COMPARED_BYTES_MAX {
                return Ok(at);
            }
            let before = compared.get();
            let is = |entry| self.is(entry, wanted, &compared);
            let found = self.table.find(wanted.hash, is, &mut work.probes);
            work.bytes += compared.get() - before;
            match found {
                Found::Entry(entry) => out[at] = entry,
                _ if !self.fits(wanted, limits) => {
                    work.full = true;
                    return Ok(at);
                }
                found => {
                    let entry = cast::low_u32(cast::u64_of(self.entries));
                    out[at] = entry;
                    work.new += 1;
                    self.push(wanted)?;
                    work.stored += wanted.bytes.len();
                    let place = found.place(self.entries);
                    // It was not compared with all that may equal it, or will not be found.
                    self.may_repeat |= place.is_none() || compared.get() >= COMPARED_BYTES_MAX;
                    let Some(place) = place else { continue };
                    let hashes = &self.hashes;
                    let moved = self.table.insert(place, entry, |entry| get(hashes, entry).unwrap_or(0))?;
                    work.moved += moved;
                    if moved > 0 {
                        return Ok(at + 1);
                    }
                }
            }
        }
        Ok(looked_at)
    }

    /// Stores a slice of a long value, which becomes an entry with its last slice; returns 1 then.
    fn store(
        &mut self,
        wanted: &Wanted<'_>,
        limits: DictionaryLimits,
        out: &mut [u32; AT_ONCE],
        work: &mut Work,
    ) -> Result<usize> {
        if self.part.is_none() {
            if !self.fits(wanted, limits) {
                work.full = true;
                return Ok(0);
            }
            if self.lengths {
                self.append(&wanted.view.to_le_bytes()[..4])?;
            }
        }
        let slice = self.part.next(wanted.bytes, SLICE_BYTES)?;
        self.append(slice)?;
        work.stored += slice.len();
        if !self.part.is_done(wanted.bytes) {
            return Ok(0);
        }
        out[0] = cast::low_u32(cast::u64_of(self.entries));
        work.new += 1;
        self.long += 1;
        // It is compared with nothing.
        self.may_repeat |= self.long > 1;
        self.add(wanted.view | u128::from(NONE) << 64, wanted)?;
        Ok(1)
    }

    /// True if an entry is the value. Adds the bytes that are compared for it; where that is too many already, no entry is.
    #[inline(always)]
    fn is(&self, entry: u32, wanted: &Wanted<'_>, compared: &Cell<usize>) -> bool {
        let Some(view) = get(&self.views, entry) else { return false };
        if !wanted.bytes.is_empty() && view & START == wanted.view {
            if compared.get() >= COMPARED_BYTES_MAX {
                return false;
            }
            compared.set(compared.get() + wanted.bytes.len());
        }
        self.is_of(view, wanted)
    }

    /// True if this is the view of an entry equal to the value.
    #[inline(always)]
    fn is_of(&self, view: u128, wanted: &Wanted<'_>) -> bool {
        if wanted.bytes.is_empty() {
            return view == wanted.view;
        }
        view & START == wanted.view && self.stored(view) == Some(wanted.bytes)
    }

    /// The bytes of a long entry's view.
    #[inline]
    fn stored(&self, view: u128) -> Option<&[u8]> {
        let [.., p0, p1, p2, p3, o0, o1, o2, o3] = view.to_le_bytes();
        let (piece, start) = (u32::from_le_bytes([p0, p1, p2, p3]), u32::from_le_bytes([o0, o1, o2, o3]));
        self.pieces.get(piece as usize)?.get(start as usize..)?.get(..length(view) as usize)
    }

    fn fits(&self, wanted: &Wanted<'_>, limits: DictionaryLimits) -> bool {
        let bytes = self.bytes + wanted.len() + if self.lengths { 4 } else { 0 };
        bytes <= limits.bytes && self.entries < limits.entries
    }

    /// Adds a value that is looked for. It is stored in one piece, so that it can be compared.
    fn push(&mut self, wanted: &Wanted<'_>) -> Result<()> {
        let mut view = wanted.view.to_le_bytes();
        let (length, short) = (&wanted.view.to_le_bytes()[..4], &wanted.view.to_le_bytes()[4..]);
        let value = if wanted.bytes.is_empty() { &short[..wanted.len()] } else { wanted.bytes };
        let bytes = value.len() + 4;
        if self.pieces.last().is_none_or(|piece| piece.len() + bytes > PIECE_BYTES) {
            self.pieces.push(Vec::new());
        }
        if self.lengths {
            self.append(length)?;
        }
        if let Some(piece) = self.pieces.last()
            && !wanted.bytes.is_empty()
        {
            let (number, at) = (cast::u64_of(self.pieces.len() - 1), cast::u64_of(piece.len()));
            view[8..12].copy_from_slice(&cast::low_u32(number).to_le_bytes());
            view[12..].copy_from_slice(&cast::low_u32(at).to_le_bytes());
        }
        self.append(value)?;
        self.add(u128::from_le_bytes(view), wanted)
    }

    /// Adds the entry of a value that is stored.
    fn add(&mut self, view: u128, wanted: &Wanted<'_>) -> Result<()> {
        if self.entries.is_multiple_of(SEGMENT) {
            self.views.push(Vec::new());
            self.hashes.push(Vec::new());
        }
        if let (Some(views), Some(hashes)) = (self.views.last_mut(), self.hashes.last_mut()) {
            let room = views.try_reserve(1).and_then(|()| hashes.try_reserve(1));
            room.map_err(|_| Error::out_of_memory(SEGMENT * VIEW_BYTES))?;
            views.push(view);
            hashes.push(wanted.hash);
        }
        self.entries += 1;
        self.bytes += wanted.len() + if self.lengths { 4 } else { 0 };
        Ok(())
    }

    /// Adds bytes of the page.
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.pieces.last().is_none_or(|piece| piece.len() >= PIECE_BYTES) {
                self.pieces.push(Vec::new());
            }
            let Some(piece) = self.pieces.last_mut() else { break };
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - piece.len()));
            piece.try_reserve(now.len()).map_err(|_| Error::out_of_memory(now.len()))?;
            piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }
}

/// What is stored for an entry.
#[inline(always)]
fn get<T: Copy>(segments: &[Vec<T>], entry: u32) -> Option<T> {
    segments.get(entry as usize >> SEGMENT_BITS)?.get(entry as usize % SEGMENT).copied()
}
