//! Machines are driven here: an OSD reads an object's bytes at once, so a demand is answered where it comes up.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{
    Budget, Bytes, Codecs, Error, Limits, Machine, Object, Price, Priority, Result, Step, Want,
};
use marquetry_codecs::StandardCodecs;
use marquetry_kernels::crc32::crc32;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{FooterReader, ReadOptions};

use crate::request::Share;

/// The object of a call, as machines name it.
pub(crate) const OBJECT: Object = Object(0);

/// One mebibyte.
const MIB: u64 = 1 << 20;

/// What a call takes from an object: an OSD serves others, too, and holds at most this for each of its threads.
pub(crate) const LIMITS: Limits = Limits {
    footer_bytes: 16 * MIB,
    page_header_bytes: MIB,
    structure_bytes: 64 << 10,
    page_index_bytes: 4 * MIB,
    page_bytes: 32 * MIB,
    dictionary_bytes: 8 * MIB,
    value_bytes: 8 * MIB,
    window_bytes: 8 * MIB,
    nesting: 32,
    total_bytes: 48 * MIB,
    expansion: 16,
};

/// Bytes that are read of an object at a time, unless a page needs more at once: what is read beyond the last batch is read again by the
/// next call.
const READ_BYTES: u64 = 128 << 10;
/// Bytes of a page that are decompressed at a time.
const WINDOW_BYTES: usize = 256 << 10;
/// Bytes of a batch, about, and its rows at most: a call ends between batches, and best with a page, of which writers make 20,000 rows (pyarrow,
/// parquet-mr, ours).
const BATCH_BYTES: usize = 512 << 10;
pub(crate) const BATCH_ROWS: usize = 4000;
/// What a call may take beyond its share to end with a page, as a divisor of that: the page would be begun once more by the next call. And beyond
/// what its first batch took, if that was more than its share.
const BEYOND: u64 = 8;
const BEYOND_FIRST: u64 = 2;

/// What a read costs, beside its bytes: an OSD looks up where they are, copies them, and may have to wait for a disk, which no price knows.
const READ_UNITS: u64 = 5_000;
const READ_PRICE: Price = Price::per_kib(128);
/// The longest entry of an object's omap that is written, and looked at.
pub(crate) const ENTRY_BYTES_MAX: usize = 1 << 20;
/// What a node of the schema costs whose name is compared with those beside it.
const UNIQUE_PRICE: Price = Price::per_kilovalue(200 << 10);
/// Bytes of the beginning of an object without a footer that are a part of its mark.
const MARK_BYTES: u64 = 64;
/// The units that a call takes if without more it would not get on at all.
const UNITS_END: u64 = if cfg!(feature = "whole") { u64::MAX / 2 } else { 100_000_000 };

/// An object whose bytes are read at once, without waiting for anybody: what an object class has.
pub trait RadosObject {
    /// Its length in bytes.
    ///
    /// # Errors
    ///
    /// `Io` if that cannot be found out.
    fn length(&mut self) -> Result<u64>;

    /// Reads the bytes at `offset` into all of `into`.
    ///
    /// # Errors
    ///
    /// `Io` if they cannot be read, or the object has fewer.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()>;

    /// Writes bytes at `offset`, over those that are there and beyond the object's end: all of a call's, or none if it fails.
    ///
    /// # Errors
    ///
    /// `Io` if they cannot be written; `Misuse` in a call that only reads.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _ = (offset, bytes);
        Err(Error::misuse("an object that is only read"))
    }

    /// What the object has in its omap under a key.
    ///
    /// # Errors
    ///
    /// `Io` if that cannot be found out.
    fn entry(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        let _ = key;
        Ok(None)
    }

    /// Writes what the object has in its omap under a key: as [`RadosObject::write`].
    ///
    /// # Errors
    ///
    /// As [`RadosObject::write`].
    fn set_entry(&mut self, key: &str, bytes: &[u8]) -> Result<()> {
        let _ = (key, bytes);
        Err(Error::misuse("an object that is only read"))
    }
}

/// An object in memory.
impl RadosObject for &[u8] {
    fn length(&mut self) -> Result<u64> {
        Ok(u64_of(self.len()))
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let bytes = usize_of(offset).and_then(|start| self.get(start..)?.get(..into.len()));
        let bytes =
            bytes.ok_or_else(|| Error::io(format!("{} bytes from {offset} on are not there", into.len())))?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

/// What a call has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) units: u64,
    pub(crate) bytes: u64,
    pub(crate) reads: u64,
}

/// What a machine that is driven comes to.
pub(crate) enum Driven<T> {
    Ready(T),
    Done,
    /// So much is spent as was allowed.
    Spent,
}

/// Drives machines over one object, for one call's share.
pub(crate) struct Host<'a> {
    object: &'a mut dyn RadosObject,
    share: Share,
    work: Work,
    /// The checksum of what was read so far, while somebody wants it.
    mark: Option<u32>,
    /// Units that the call may take because its first batch took most of them.
    extended: u64,
    /// Units, about, that ending the answer takes, as it is by now.
    owed: u64,
}

impl<'a> Host<'a> {
    pub(crate) fn new(object: &'a mut dyn RadosObject, share: Share) -> Host<'a> {
        Host { object, share, work: Work::default(), mark: None, extended: 0, owed: 0 }
    }

    pub(crate) fn work(&self) -> Work {
        self.work
    }

    pub(crate) fn share(&self) -> Share {
        self.share
    }

    /// The object's length.
    pub(crate) fn length(&mut self) -> Result<u64> {
        self.object.length()
    }

    /// Units that are spent, with those that ending the answer takes.
    pub(crate) fn spent(&self) -> u64 {
        self.work.units.saturating_add(self.owed)
    }

    /// Ending the answer takes so many units, about, as it is by now: nothing else is done with these.
    pub(crate) fn owe(&mut self, units: u64) {
        self.owed = units;
    }

    /// Units that are left of the share.
    pub(crate) fn left(&self) -> u64 {
        self.share.units.saturating_sub(self.spent())
    }

    /// Units that are left of the share with what a call may take beyond it to end with a page.
    pub(crate) fn left_with_page(&self) -> u64 {
        let units = self.share.units.saturating_add(self.share.units / BEYOND);
        units.max(self.extended).saturating_sub(self.spent())
    }

    /// A first batch is read, for which pages of many columns were begun, perhaps. If it took all of the share, some more rows cost little beside
    /// what the next call has to begin again.
    pub(crate) fn extend(&mut self) {
        if self.left_with_page() == 0 {
            self.extended = self.spent().saturating_add(self.spent() / BEYOND_FIRST);
        }
    }

    /// Units that are left of those which a call may take where it would not get on otherwise.
    pub(crate) fn left_at_all(&self) -> u64 {
        UNITS_END.saturating_sub(self.work.units)
    }

    pub(crate) fn charge(&mut self, units: u64) {
        self.work.units = self.work.units.saturating_add(units);
    }

    /// How columns are read.
    pub(crate) fn read_options() -> ReadOptions {
        ReadOptions {
            batch_rows: BATCH_ROWS,
            batch_bytes: BATCH_BYTES,
            window_bytes: WINDOW_BYTES,
            read_bytes: READ_BYTES,
            verify_first_bytes: READ_BYTES,
            limits: LIMITS,
            ..ReadOptions::default()
        }
    }

    pub(crate) fn codecs() -> Arc<dyn Codecs> {
        Arc::new(StandardCodecs::new(LIMITS))
    }

    /// Reads the footer as it is.
    pub(crate) fn whole_footer(&mut self) -> Result<Arc<FileMetaData>> {
        let metadata = self.finish(&mut FooterReader::new(OBJECT, LIMITS))?;
        metadata.ok_or_else(|| Error::internal("a footer that is not there"))
    }

    /// Writes bytes of the object.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.charge(READ_UNITS + READ_PRICE.of(bytes.len(), 0));
        self.object.write(offset, bytes)
    }

    /// Reads an entry of the object's omap: one that is longer than [`ENTRY_BYTES_MAX`] is not ours, and is as one of no bytes.
    pub(crate) fn entry(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        let mut entry = self.object.entry(key)?;
        let bytes = entry.as_ref().map_or(0, Vec::len);
        if bytes > ENTRY_BYTES_MAX {
            entry = Some(Vec::new());
        }
        self.work.bytes += u64_of(bytes);
        self.work.reads += 1;
        self.charge(READ_UNITS + READ_PRICE.of(bytes, 0));
        Ok(entry)
    }

    /// Writes an entry of the object's omap.
    pub(crate) fn set_entry(&mut self, key: &str, bytes: &[u8]) -> Result<()> {
        if bytes.len() > ENTRY_BYTES_MAX {
            return Err(Error::too_large(format!("an entry of {} bytes in the object's omap", bytes.len())));
        }
        self.charge(READ_UNITS + READ_PRICE.of(bytes.len(), 0));
        self.object.set_entry(key, bytes)
    }

    /// Reads the footer as it is, and its mark: a checksum of the object's length and end.
    pub(crate) fn marked_footer(&mut self) -> Result<(Arc<FileMetaData>, u32)> {
        self.mark = Some(0);
        let metadata = self.whole_footer();
        let mark = self.mark.take().unwrap_or_default();
        let metadata = metadata?;
        let mark = crc32(mark, &metadata.file_bytes().to_le_bytes());
        Ok((metadata, mark))
    }

    /// The same, with names of columns that are unique.
    pub(crate) fn footer(&mut self) -> Result<(Arc<FileMetaData>, u32)> {
        let (mut metadata, mark) = self.marked_footer()?;
        self.charge(UNIQUE_PRICE.of(0, metadata.schema.nodes().len()));
        // As clients name them, who read the footer themselves.
        if let Some(schema) = metadata.schema.with_unique_names() {
            Arc::make_mut(&mut metadata).schema = Arc::new(schema);
        }
        Ok((metadata, mark))
    }

    /// The next product of a machine that a call cannot do without, whatever it takes.
    pub(crate) fn finish<M: Machine>(&mut self, machine: &mut M) -> Result<Option<M::Product>> {
        match self.drive(machine, UNITS_END)? {
            Driven::Ready(product) => Ok(Some(product)),
            Driven::Done => Ok(None),
            Driven::Spent => Err(too_much()),
        }
    }

    /// Works until a product, or until the call has spent `units`. If `got_on` is false then, it goes on until that returns true.
    pub(crate) fn drive_until<M: Machine>(
        &mut self,
        machine: &mut M,
        mut units: u64,
        got_on: impl Fn(&M) -> bool,
    ) -> Result<Driven<M::Product>> {
        loop {
            match self.drive(machine, units)? {
                Driven::Spent if got_on(machine) => return Ok(Driven::Spent),
                Driven::Spent if self.work.units >= UNITS_END => return Err(too_much()),
                Driven::Spent => units = self.work.units + Budget::DEFAULT_UNITS,
                driven => return Ok(driven),
            }
        }
    }

    fn drive<M: Machine>(&mut self, machine: &mut M, units: u64) -> Result<Driven<M::Product>> {
        loop {
            let mut budget = Budget::new(units.saturating_sub(self.work.units));
            let step = machine.step(&mut budget);
            self.charge(budget.spent());
            match step? {
                Step::Ready(product) => return Ok(Driven::Ready(product)),
                Step::Done => return Ok(Driven::Done),
                Step::Yield => {}
                Step::Need(demand) => {
                    for want in demand.wants {
                        self.answer(machine, &want)?;
                    }
                }
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
            }
            if self.work.units >= units {
                return Ok(Driven::Spent);
            }
        }
    }

    fn answer<M: Machine>(&mut self, machine: &mut M, want: &Want) -> Result<()> {
        match want {
            Want::Length(object) => {
                let length = self.object.length()?;
                machine.supply_length(*object, length)
            }
            Want::Range(object, range, Priority::Now) => {
                let bytes = self.read(range)?;
                machine.supply(*object, range.clone(), bytes)
            }
            Want::Range(_, _, Priority::Soon) => Ok(()),
        }
    }

    /// A checksum of the object's length and beginning, for an object without a footer.
    pub(crate) fn mark_of_beginning(&mut self) -> Result<u32> {
        let length = self.length()?;
        let head = self.read(&(0..length.min(MARK_BYTES)))?;
        Ok(crc32(crc32(0, &head), &length.to_le_bytes()))
    }

    /// Reads bytes of the object, at once.
    pub(crate) fn read(&mut self, range: &Range<u64>) -> Result<Bytes> {
        self.read_vec(range).map(Bytes::from)
    }

    /// The same, in memory of their own.
    pub(crate) fn read_vec(&mut self, range: &Range<u64>) -> Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start);
        let length = usize_of(length).filter(|length| u64_of(*length) <= LIMITS.total_bytes);
        let length = length.ok_or_else(|| Error::too_large(format!("a read of {range:?} at once")))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
        bytes.resize(length, 0);
        self.object.read(range.start, &mut bytes)?;
        self.work.bytes += u64_of(length);
        self.work.reads += 1;
        self.charge(READ_UNITS + READ_PRICE.of(length, 0));
        if let Some(mark) = &mut self.mark {
            *mark = crc32(*mark, &bytes);
        }
        Ok(bytes)
    }
}

/// The units of so many values, and of their bytes.
pub(crate) fn price_of(price: Price, bytes: u64, values: u64) -> u64 {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    price.of(size(bytes), size(values))
}

/// What ends a call that does not get on by what it may do at all.
pub(crate) fn too_much() -> Error {
    Error::too_large("a page, a footer, an index or a predicate takes more work than a call may do")
}
