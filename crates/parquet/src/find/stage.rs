//! What a search does with the row group at hand.

use alloc::boxed::Box;
use core::ops::Range;

use marquetry_base::{Budget, Bytes, Error, Machine, Object, Result, Step, release_all};

use super::judged::Judged;
use super::options::Found;
use super::pages::ChunkPages;
use super::reading::Reading;
use super::{blooms, dictionaries};
use crate::batch::{Batch, Combining, RowSelection};
use crate::growing::release_in_step;
use crate::read::{BatchReader, PageBloomProbe, PageIndexReader, PageSet};

/// What a stage ends a step with; `None` if the next stage goes on with it.
pub(super) type Turn = Option<Step<Found>>;

/// What is being done with the row group at hand.
pub(super) enum Stage {
    /// The next one begins.
    Begin,
    /// Bloom filters are asked.
    Bloom { row_group: usize, asking: Box<blooms::Asking> },
    /// Page indexes are read, of the leaves that are tested.
    Index { row_group: usize, reader: Option<Box<PageIndexReader>> },
    /// The order of bounds is checked.
    Check { row_group: usize, leaf: usize, pages: Box<ChunkPages>, reader: Box<PageIndexReader> },
    /// The pages of each test are judged, and put together. If that was done before, what was about to be read then.
    Judge(Box<Judged>, Option<Box<Reading>>),
    /// Of the rows that can pass those before [`FindOptions::first_row`] are left out.
    Narrow { row_group: usize, rows: Box<Combining>, before: Option<Box<Reading>> },
    /// Bloom filters of pages are asked about a test; its pages so far.
    PageBloom { judged: Box<Judged>, test: usize, probe: Box<PageBloomProbe>, left: PageSet },
    /// These rows of the columns are about to be read.
    Open { row_group: usize, rows: RowSelection, how: How },
    /// Dictionaries are asked.
    Dictionary(Box<dictionaries::Asking>),
    /// Columns are read.
    Read(Box<Reading>),
    /// What is not needed any more is released; then it goes on.
    Release(Released, Box<Stage>),
    /// The places of the pages are read that will be wanted.
    Locate { row_group: usize, rows: RowSelection, reader: Option<Box<PageIndexReader>> },
    /// Nothing more is wanted.
    Done,
}

/// How a row group is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Dictionaries are asked first.
    Asking,
    /// They were asked.
    Asked,
    /// Page by page: what is said of pages elsewhere was wrong.
    Plainly,
}

/// What is not needed any more.
pub(super) enum Released {
    Reading(Box<Reading>),
    /// What was read last and selected, where the reader is kept.
    Rest(Option<Batch>, Option<RowSelection>),
    Reader(Box<BatchReader>),
    Index(Box<PageIndexReader>),
}

impl Stage {
    /// The machine that bytes are supplied to.
    pub(super) fn machine(&mut self) -> Option<&mut dyn Supplied> {
        match self {
            Stage::Bloom { asking, .. } => asking.probe().map(|probe| probe as &mut dyn Supplied),
            Stage::Index { reader, .. } | Stage::Locate { reader, .. } => {
                reader.as_mut().map(|reader| &mut **reader as &mut dyn Supplied)
            }
            Stage::Check { reader, .. } => Some(&mut **reader),
            Stage::PageBloom { probe, .. } => Some(&mut **probe),
            Stage::Dictionary(asking) => Some(&mut *asking.reading.reader),
            Stage::Read(reading) => Some(&mut *reading.reader),
            Stage::Begin
            | Stage::Judge(..)
            | Stage::Narrow { .. }
            | Stage::Open { .. }
            | Stage::Release(..)
            | Stage::Done => None,
        }
    }
}

impl Released {
    /// Releases some of it: whether that was the last.
    pub(super) fn step(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Released::Reading(reading) => release_in_step(&mut **reading, budget),
            Released::Rest(batch, rows) => release_all(&mut [batch, rows], budget),
            Released::Reader(reader) => release_in_step(&mut **reader, budget),
            Released::Index(reader) => release_in_step(&mut **reader, budget),
        }
    }
}

/// A machine, whatever it makes.
pub(super) trait Supplied {
    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()>;
    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error);
}

impl<M: Machine> Supplied for M {
    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        Machine::supply(self, object, range, bytes)
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        Machine::fail(self, object, range, reason);
    }
}
