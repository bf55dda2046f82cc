//! The page headers of a column chunk, without their bodies.

use alloc::sync::Arc;
use core::ops::Range;

use marquetry_base::{
    Budget, Bytes, Demand, Error, Failed, Input, Limits, Machine, Object, Priority, Result, Step,
    check_supply,
};

use super::ReadOptions;
use super::page::PageReader;
use crate::format::{FileMetaData, PageHeader};
use crate::going::Going;

/// Bytes asked for at a time. Bodies are not wanted, so little more than a header.
const READ_BYTES: u64 = 4 << 10;

/// A page, as its header tells.
#[derive(Debug, Clone, PartialEq)]
pub struct PageInfo {
    /// The page's number in its column chunk, counted from 0, dictionary pages included.
    pub number: u64,
    /// Where its header starts in the file.
    pub offset: u64,
    /// Bytes of the header.
    pub header_bytes: u32,
    /// The header.
    pub header: PageHeader,
}

/// Walks the page headers of one column chunk.
pub struct PageScanner {
    object: Object,
    pages: PageReader,
    input: Input,
    failed: Failed,
    place: (usize, alloc::string::String),
}

impl PageScanner {
    /// A scanner of the chunk of `leaf` in `row_group`.
    ///
    /// # Errors
    ///
    /// `Misuse` for a row group or leaf that is not there; `Unsupported` for an encrypted chunk.
    pub fn new(
        object: Object,
        metadata: &Arc<FileMetaData>,
        row_group: usize,
        leaf: usize,
        limits: Limits,
    ) -> Result<PageScanner> {
        let chunk = metadata.row_groups.get(row_group).and_then(|group| group.columns.get(leaf));
        let (Some(chunk), Some(leaf)) = (chunk, metadata.schema.leaves().get(leaf)) else {
            return Err(Error::misuse("a column chunk that is not there"));
        };
        let options = ReadOptions { limits, read_bytes: READ_BYTES, ..ReadOptions::default() };
        let pages = PageReader::new(object, chunk, metadata, &options).map_err(|error| {
            error.at(|place| {
                place.row_group = Some(row_group as u64);
                place.column = Some(metadata.schema.path(leaf.node));
            })
        })?;
        Ok(PageScanner {
            object,
            pages,
            input: Input::new(),
            failed: Failed::default(),
            place: (row_group, metadata.schema.path(leaf.node)),
        })
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<PageInfo>> {
        if self.pages.range().is_empty() {
            return Ok(Step::Done);
        }
        match self.pages.next_header(&mut self.input, true, budget).map_err(|error| self.place(error))? {
            Going::Done((header, range)) => {
                self.pages.skip_body(&header, &mut self.input);
                let number = self.pages.page().unwrap_or(0);
                let header_bytes = u32::try_from(range.end - range.start).unwrap_or(u32::MAX);
                Ok(Step::Ready(PageInfo { number, offset: range.start, header_bytes, header }))
            }
            Going::Yield => Ok(Step::Yield),
            Going::Need(()) => {
                let mut demand = Demand::default();
                self.pages.want(&self.input, Priority::Now, &mut demand);
                Ok(Step::Need(demand))
            }
        }
    }

    fn place(&self, error: Error) -> Error {
        error.at(|place| {
            place.row_group = Some(self.place.0 as u64);
            place.column = Some(self.place.1.clone());
            place.page = self.pages.page();
            place.offset = Some(self.pages.at());
        })
    }
}

impl Machine for PageScanner {
    type Product = PageInfo;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<PageInfo>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        if object != self.object {
            return Err(Error::misuse("an object that is not this machine's"));
        }
        check_supply(&range, &bytes, None)?;
        self.input.supply(range.start, bytes)
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if object == self.object {
            self.failed.set(reason);
        }
    }
}
