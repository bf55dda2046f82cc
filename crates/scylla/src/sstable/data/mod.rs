//! Data.db: from its bytes to [batches](MutationBatch).
//!
//! ```text
//!  Data.db ──► Chunks: CRC, decompress ──► Window [ rest of the last chunk | chunk ] ──► Parser ──► MutationBatch
//! ```
//!
//! The parser reads elements (a partition's beginning, a row's, a cell) straight from the window, which holds one chunk and what the last
//! one left, at most an element. So partitions and rows of any size are read in the memory of a chunk and a batch; a value must fit a batch,
//! and has [a limit of its own](marquetry_base::Limits::value_bytes).

pub(super) mod fill;
mod layout;
mod parser;
mod value;

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Bytes, Codecs, Demand, Error, Failed, Limit, Limits, Machine, Object, Price, Release, Result,
    Step, check_supply, release_all,
};

use self::layout::Layout;
use self::parser::{BATCH_BYTES, Parser, Stop};
use super::batch::MutationBatch;
use super::chunks::{Chunks, Filled, Packing, Window, of_data};
use super::statistics::SerializationHeader;
use super::version::Version;

/// The price of an element: of its bytes, which are copied, and of itself.
const PARSE_PRICE: Price = Price { kib: 450, kilovalue: 20 << 10 };
/// The price of bytes that are moved as an array grows: they were written not long ago.
const MOVE_PRICE: Price = Price::per_kib(100);

/// What is read of an SSTable, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DataOptions {
    /// Bounds on what is read.
    pub limits: Limits,
    /// The part of the data, uncompressed, that is read: from a partition's beginning to another's, or to the end. All by default.
    pub range: Option<Range<u64>>,
    /// What Digest.crc32 says, to be checked if all data are read. Chunks have checksums of their own (unless CRC.db is missing), so this
    /// finds a file whose parts are right, but are not its own.
    pub digest: Option<u32>,
}

impl Default for DataOptions {
    fn default() -> DataOptions {
        DataOptions { limits: Limits::DEFAULT, range: None, digest: None }
    }
}

/// Reads Data.db: its products are batches.
///
/// Asks for the object's length, and then for its bytes, from start to end. Batches do not depend on how those arrive.
#[derive(Debug)]
pub struct DataReader {
    chunks: Chunks,
    window: Window,
    parser: Box<Parser>,
    options: DataOptions,
    /// Where the window begins in the data; and the part of them that is read, once that is known.
    at: u64,
    range: Option<Range<u64>>,
    /// The most bytes of an element.
    element_bytes_max: u64,
    /// The parser has not seen all of the window.
    has_more: bool,
    is_done: bool,
    spare: Option<MutationBatch>,
    failed: Failed,
}

impl DataReader {
    /// A reader of the Data.db that `object` is, of an SSTable of this version.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) if values of a column must be longer than the limit.
    pub fn new(
        object: Object,
        version: Version,
        header: &SerializationHeader,
        packing: Packing,
        codecs: Arc<dyn Codecs>,
        options: DataOptions,
    ) -> Result<DataReader> {
        let limits = options.limits;
        let layout = Layout::new(version, header, &limits).map_err(of_data)?;
        let start = options.range.as_ref().map_or(0, |range| range.start);
        Ok(DataReader {
            chunks: Chunks::new(object, packing, codecs, limits),
            window: Window::default(),
            parser: Box::new(Parser::new(layout, start, &limits)),
            at: start,
            range: None,
            // A key of 64 KiB, or the values of a clustering key and of what else a row begins with.
            element_bytes_max: 2 * limits.structure_bytes.max(64 << 10),
            has_more: false,
            is_done: false,
            spare: None,
            failed: Failed::default(),
            options,
        })
    }

    /// Gives back a batch that is no longer wanted: its arrays are filled again, but for those that are much larger than a batch.
    pub fn recycle(&mut self, mut batch: MutationBatch) {
        if !self.parser.layout.fits(&batch) {
            return;
        }
        batch.clear_small(usize::try_from(BATCH_BYTES).unwrap_or(usize::MAX));
        self.spare = Some(batch);
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<MutationBatch>> {
        if self.is_done {
            return Ok(Step::Done);
        }
        if self.chunks.file_bytes().is_none() {
            return Ok(Step::Need(Demand::length(self.chunks.object())));
        }
        let end = self.begin()?;
        loop {
            if self.has_more || self.parser.is_at_end(self.at, end) {
                match self.parse(end, budget)? {
                    Stop::Short => self.has_more = false,
                    Stop::Full => return Ok(Step::Ready(self.take())),
                    Stop::Tired => {}
                    Stop::End => return self.end(),
                }
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
                continue;
            }
            Limit::StructureBytes
                .check(self.element_bytes_max, u64_of(self.window.bytes().len()))
                .map_err(|error| self.fault(error.at_offset(self.at)))?;
            match self.chunks.fill(&mut self.window, budget)? {
                Filled::More => {
                    self.has_more = true;
                    if budget.is_spent() {
                        return Ok(Step::Yield);
                    }
                }
                Filled::Need(demand) => return Ok(Step::Need(demand)),
                Filled::Yield => return Ok(Step::Yield),
                Filled::End => {
                    return Err(
                        self.fault(Error::corrupt("data that end inside of a partition").at_offset(self.at))
                    );
                }
            }
        }
    }

    /// Begins once the file's length is known. Says where the data end.
    fn begin(&mut self) -> Result<u64> {
        if let Some(range) = &self.range {
            return Ok(range.end);
        }
        let data_bytes = self.chunks.data_bytes().unwrap_or(0);
        let range = self.options.range.clone().unwrap_or(0..data_bytes);
        if range.start > range.end || range.end > data_bytes {
            return Err(Error::option("range", format!("{range:?} of {data_bytes} bytes of data")));
        }
        self.chunks.begin(&range, self.options.digest)?;
        let end = range.end;
        self.range = Some(range);
        Ok(end)
    }

    /// Reads a slice of elements from the window.
    fn parse(&mut self, end: u64, budget: &mut Budget<'_>) -> Result<Stop> {
        let bytes = self.window.bytes();
        let parsed = self.parser.run(bytes, self.at, end).map_err(|error| self.fault(error))?;
        budget.charge(PARSE_PRICE, parsed.consumed, parsed.elements + 1);
        if parsed.moved > 0 {
            budget.charge(MOVE_PRICE, parsed.moved, 1);
        }
        self.window.consume(parsed.consumed);
        self.at += u64_of(parsed.consumed);
        Ok(parsed.stop)
    }

    /// Hands out the batch.
    fn take(&mut self) -> MutationBatch {
        let spare = self.spare.take().unwrap_or_else(|| self.parser.layout.batch());
        self.parser.take(spare, self.at)
    }

    fn end(&mut self) -> Result<Step<MutationBatch>> {
        // All chunks were read, so this says only whether the digest is right.
        if let Filled::End = self.chunks.fill(&mut self.window, &mut Budget::unlimited())? {
            self.is_done = true;
            if self.parser.has_any() {
                return Ok(Step::Ready(self.take()));
            }
            return Ok(Step::Done);
        }
        Err(Error::internal("chunks after the end of the data"))
    }

    /// An error at an offset in the data. If they are compressed, its place in the file is that of the chunk.
    fn fault(&self, error: Error) -> Error {
        let offset = error.place().offset;
        match offset.filter(|_| self.chunks.is_compressed()) {
            Some(offset) => {
                let message = format!("{} (byte {offset} of the uncompressed data)", error.message());
                let file_offset = self.chunks.file_offset(offset);
                error.reworded(message).replaced(|place| place.offset = Some(file_offset))
            }
            None => error,
        }
    }
}

impl Machine for DataReader {
    type Product = MutationBatch;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<MutationBatch>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget).map_err(of_data))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.check_object(object)?;
        check_supply(&range, &bytes, self.chunks.file_bytes())?;
        if self.is_done || self.failed.is_set() {
            return Ok(());
        }
        self.chunks.supply(range.start, bytes)
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.check_object(object)?;
        match self.chunks.file_bytes() {
            Some(known) if known != length => Err(Error::misuse("an object whose length changes")),
            _ => {
                self.chunks.set_file_bytes(length);
                Ok(())
            }
        }
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if object == self.chunks.object() {
            self.failed.set(reason);
        }
    }
}

impl DataReader {
    fn check_object(&self, object: Object) -> Result<()> {
        if object == self.chunks.object() {
            Ok(())
        } else {
            Err(Error::misuse("an object that is not this machine's"))
        }
    }
}

/// For a reader that is no longer wanted, or has failed.
impl Release for DataReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        let (batch, large) = self.parser.parts();
        release_all(&mut [&mut self.spare, batch, large, &mut self.window, &mut self.chunks], budget)
    }
}
