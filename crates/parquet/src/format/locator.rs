//! The footer locator: where the parts of a footer are that tell of a column. `docs/locator.md` describes it.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{low_u32, u64_of, usize_of};
use marquetry_kernels::crc32;

/// Bytes of a block with its trailer, and without.
pub(crate) const BLOCK_BYTES: usize = 4096;
pub(crate) const PAYLOAD_BYTES: usize = 4080;
/// Bytes of a slot, and slots of a block.
pub(crate) const SLOT_BYTES: usize = 16;
pub(crate) const BLOCK_SLOTS: u64 = 255;

/// The number of the field that holds extensions, and the two forms in which it is written: as Thrift's zigzag
/// number, and as the plain number that the format's text shows.
pub(crate) const EXTENSION_FIELD: i16 = 32767;
const EXTENSION_HEADS: [[u8; 4]; 2] = [[0x08, 0xfe, 0xff, 0x03], [0x08, 0xff, 0xff, 0x01]];

/// The end of an announcement.
const MAGIC: [u8; 4] = *b"MQL1";
/// Bytes of an announcement, and of all that is written of it: the field's head, the length before it, and the end of
/// the footer's structure after it.
pub(crate) const ANNOUNCEMENT_BYTES: usize = 84;
pub(crate) const ANNOUNCED_BYTES: usize = 4 + 1 + ANNOUNCEMENT_BYTES + 1;
/// The most bytes of the footer before an announcement that it has the checksum of.
pub(crate) const COVERED_BYTES_MAX: usize = 4096;

/// What stands at the end of a footer that has a locator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Announcement {
    /// The file's length.
    pub(crate) file_bytes: u64,
    /// Where the locator's blocks are in the file.
    pub(crate) body_start: u64,
    pub(crate) body_bytes: u64,
    /// Where the slots are in the payload of the blocks, and how many.
    pub(crate) slots_at: u64,
    pub(crate) slots: u64,
    /// Where the footer without its columns is in the payload.
    pub(crate) head_at: u64,
    pub(crate) head_bytes: u64,
    /// The footer's length.
    pub(crate) footer_bytes: u32,
    pub(crate) leaves: u32,
    pub(crate) row_groups: u32,
}

impl Announcement {
    /// The bytes that announce it in a footer that starts at `footer_start` and has `length` bytes so far, `before` the
    /// last of them. `None` for a footer that is too long.
    pub(crate) fn announce(self, footer_start: u64, length: u64, before: &[u8]) -> Option<Vec<u8>> {
        let footer_bytes = length + u64_of(ANNOUNCED_BYTES);
        let file_bytes = footer_start + footer_bytes + 8;
        let footer_bytes = u32::try_from(footer_bytes).ok()?;
        Some(Announcement { footer_bytes, file_bytes, ..self }.write(before))
    }

    /// As bytes; `before` is what stands before it in the footer, or the end of that.
    pub(crate) fn write(&self, before: &[u8]) -> Vec<u8> {
        let covered = before.len().min(COVERED_BYTES_MAX);
        let before = before.get(before.len() - covered..).unwrap_or_default();
        let mut out = Vec::with_capacity(ANNOUNCEMENT_BYTES);
        for number in self.longs() {
            out.extend(number.to_le_bytes());
        }
        let checksum = crc32(0, before);
        for number in [self.footer_bytes, self.leaves, self.row_groups, low_u32(u64_of(covered)), checksum] {
            out.extend(number.to_le_bytes());
        }
        let own = crc32(0, &out);
        out.extend(own.to_le_bytes());
        out.extend(MAGIC);
        out
    }

    fn longs(&self) -> [u64; 7] {
        let Announcement { file_bytes, body_start, body_bytes, slots_at, slots, head_at, head_bytes, .. } =
            *self;
        [file_bytes, body_start, body_bytes, slots_at, slots, head_at, head_bytes]
    }

    /// From the end of a footer of `footer_bytes` that starts at `footer_start`: all of it, or its last bytes. `None`
    /// if there is none, or it is of another file.
    pub(crate) fn read(end: &[u8], footer_start: u64, footer_bytes: u64) -> Option<Announcement> {
        let (before, last) = end.split_at_checked(end.len().checked_sub(ANNOUNCED_BYTES)?)?;
        let (head, last) = last.split_first_chunk::<4>()?;
        let (length, last) = last.split_first()?;
        let (payload, stop) = last.split_at_checked(ANNOUNCEMENT_BYTES)?;
        let is_announcement = EXTENSION_HEADS.contains(head)
            && usize::from(*length) == ANNOUNCEMENT_BYTES
            && stop == [0]
            && payload.ends_with(&MAGIC);
        if !is_announcement {
            return None;
        }
        let long = |at: usize| Some(u64::from_le_bytes(*payload.get(8 * at..)?.first_chunk()?));
        let int = |at: usize| Some(u32::from_le_bytes(*payload.get(56 + 4 * at..)?.first_chunk()?));
        let found = Announcement {
            file_bytes: long(0)?,
            body_start: long(1)?,
            body_bytes: long(2)?,
            slots_at: long(3)?,
            slots: long(4)?,
            head_at: long(5)?,
            head_bytes: long(6)?,
            footer_bytes: int(0)?,
            leaves: int(1)?,
            row_groups: int(2)?,
        };
        let covered = usize_of(int(3)?.into())?;
        let before = before.get(before.len().checked_sub(covered)?..)?;
        let holds = int(5)? == crc32(0, payload.get(..76)?)
            && int(4)? == crc32(0, before)
            && u64::from(found.footer_bytes) == footer_bytes
            && found.file_bytes == footer_start.checked_add(footer_bytes)?.checked_add(8)?;
        (holds && found.fits(footer_start)).then_some(found)
    }

    /// Whether all parts are where they can be.
    fn fits(&self, footer_start: u64) -> bool {
        let (block, payload) = (u64_of(BLOCK_BYTES), u64_of(PAYLOAD_BYTES));
        let room = self.body_bytes / block * payload;
        let within = |at: u64, bytes: Option<u64>| {
            bytes.and_then(|bytes| at.checked_add(bytes)).is_some_and(|end| end <= room)
        };
        self.body_bytes.is_multiple_of(block)
            && self.body_start >= 4
            && self.body_start.checked_add(self.body_bytes).is_some_and(|end| end <= footer_start)
            && self.slots > 0
            && self.slots.is_multiple_of(BLOCK_SLOTS)
            && self.slots_at.is_multiple_of(payload)
            && within(self.slots_at, self.slots.checked_mul(u64_of(SLOT_BYTES)))
            && within(self.head_at, Some(self.head_bytes))
    }

    /// Where a block is in the file.
    pub(crate) fn block(&self, number: u64) -> Range<u64> {
        let start = self.body_start + number * u64_of(BLOCK_BYTES);
        start..start + u64_of(BLOCK_BYTES)
    }

    /// The slot at which the search for a name begins.
    pub(crate) fn first_slot(slots: u64, hash: u64) -> u64 {
        let product = u128::from(hash) * u128::from(slots);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}

/// Where the records of a field are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Of the field's [hash](PathHash::tag).
    pub(crate) tag: u32,
    /// Bytes of the records; none of a slot that is empty.
    pub(crate) bytes: u32,
    /// It is a group that cannot be cut.
    pub(crate) is_whole: bool,
    pub(crate) start: u64,
}

/// The bit of a slot's length that says that its group cannot be cut.
const WHOLE: u32 = 1 << 31;

impl Slot {
    /// `None` of what is shorter than a slot.
    pub(crate) fn read(bytes: &[u8]) -> Option<Slot> {
        let (tag, rest) = bytes.split_first_chunk::<4>()?;
        let (length, start) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length);
        Some(Slot {
            tag: u32::from_le_bytes(*tag),
            bytes: length & !WHOLE,
            is_whole: length & WHOLE != 0,
            start: u64::from_le_bytes(*start.first_chunk()?),
        })
    }

    /// `None` for records of 2 GiB and more.
    pub(crate) fn write(self) -> Option<[u8; SLOT_BYTES]> {
        let length = Some(self.bytes).filter(|bytes| *bytes < WHOLE)?;
        let length = length | if self.is_whole { WHOLE } else { 0 };
        let mut out = [0; SLOT_BYTES];
        out[..4].copy_from_slice(&self.tag.to_le_bytes());
        out[4..8].copy_from_slice(&length.to_le_bytes());
        out[8..].copy_from_slice(&self.start.to_le_bytes());
        Some(out)
    }
}

/// The trailer of a block: where the body is, the block's number, and the checksum of all before it.
pub(crate) fn trailer(body_start: u64, number: u64, payload: &[u8]) -> [u8; BLOCK_BYTES - PAYLOAD_BYTES] {
    let mut out = [0; BLOCK_BYTES - PAYLOAD_BYTES];
    out[..8].copy_from_slice(&body_start.to_le_bytes());
    out[8..12].copy_from_slice(&low_u32(number).to_le_bytes());
    let checksum = crc32(crc32(0, payload), &out[..12]);
    out[12..].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// Whether a block is what its trailer says, at this place.
pub(crate) fn holds(body_start: u64, number: u64, block: &[u8]) -> bool {
    block
        .split_at_checked(PAYLOAD_BYTES)
        .is_some_and(|(payload, end)| trailer(body_start, number, payload) == end)
}

/// The hash of a path: FNV-1a of 64 bits, of its names in lower case (ASCII), joined with NUL. A dot in a name counts
/// as NUL too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathHash(u64);

impl PathHash {
    /// Of no path: the root's.
    pub(crate) const ROOT: PathHash = PathHash(0xcbf2_9ce4_8422_2325);

    /// With more of a path. (Names that are joined already have dots.)
    pub(crate) fn with(self, name: &[u8]) -> PathHash {
        PathHash(name.iter().fold(self.0, |hash, byte| {
            let byte = if *byte == b'.' { 0 } else { byte.to_ascii_lowercase() };
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// The hash, with its bits mixed: the first of FNV's differ little from name to name.
    pub(crate) fn place(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    }

    /// What a slot holds of it.
    pub(crate) fn tag(self) -> u32 {
        low_u32(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement() -> Announcement {
        Announcement {
            file_bytes: 3 * 4096 + 4 + 1000 + 8,
            body_start: 4,
            body_bytes: 3 * 4096,
            slots_at: 4080,
            slots: 255,
            head_at: 8160,
            head_bytes: 77,
            footer_bytes: 1000,
            leaves: 3,
            row_groups: 2,
        }
    }

    fn end(head: [u8; 4]) -> Vec<u8> {
        let mut bytes = alloc::vec![7; 1000 - ANNOUNCED_BYTES];
        let payload = announcement().write(&bytes);
        bytes.extend(head);
        bytes.push(84);
        bytes.extend(payload);
        bytes.push(0);
        bytes
    }

    #[test]
    fn it_is_read_in_both_forms_and_bound_to_its_file() {
        let start = 3 * 4096 + 4;
        for head in EXTENSION_HEADS {
            let bytes = end(head);
            assert_eq!(Announcement::read(&bytes, start, 1000), Some(announcement()));
            assert_eq!(Announcement::read(&bytes, start + 1, 1000), None);
            assert_eq!(Announcement::read(&bytes, start, 1001), None);
            for at in 0..bytes.len() {
                let mut other = bytes.clone();
                other[at] ^= 4;
                assert_eq!(Announcement::read(&other, start, 1000), None, "byte {at}");
            }
        }
    }

    #[test]
    fn hashes() {
        // "a" in FNV-1a's own test vectors.
        assert_eq!(PathHash::ROOT.with(b"a").0, 0xaf63_dc4c_8601_ec8c);
        let joined = PathHash::ROOT.with(b"A.b").0;
        assert_eq!(PathHash::ROOT.with(b"a").with(b".").with(b"B").0, joined);
    }
}
