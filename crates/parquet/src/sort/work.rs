//! Parts of a sort that any thread may do.

use alloc::boxed::Box;
use core::ops::Range;

use marquetry_base::{Budget, Bytes, Error, Machine, Object, Result, Step};

use super::group::GroupWork;
use super::producer::Block;
use super::run::RunWork;

/// A part of a [`Sorter`](super::Sorter)'s work, which any thread may do: rows in memory that are sorted, or a run that is written, for
/// which it returns the bytes to append to the spill object.
///
/// A sorter that [shares](super::Sorter::share) its work hands these out, and takes them back in any order. What they answer has no
/// product. There is one at a time that appends. What goes wrong as rows are sorted, the sorter returns, in the order of the rows.
pub struct SortWork(pub(super) Kind);

pub(super) enum Kind {
    Group(Box<GroupWork>),
    /// The block, or what went wrong, of the group of this number.
    Sorted(u64, Result<Block>),
    Run(Box<RunWork>),
}

impl SortWork {
    pub(super) fn group(work: GroupWork) -> SortWork {
        SortWork(Kind::Group(Box::new(work)))
    }

    pub(super) fn run(work: RunWork) -> SortWork {
        SortWork(Kind::Run(Box::new(work)))
    }
}

impl Machine for SortWork {
    type Product = ();

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<()>> {
        let sorted = match &mut self.0 {
            Kind::Run(work) => return work.step(budget),
            Kind::Sorted(..) => return Ok(Step::Done),
            Kind::Group(work) => work.step(budget),
        };
        let failed = match sorted {
            Ok(false) => return Ok(Step::Yield),
            Ok(true) => None,
            Err(error) => Some(error),
        };
        let nothing = Kind::Sorted(0, Ok(Block::new()));
        if let Kind::Group(work) = core::mem::replace(&mut self.0, nothing) {
            let number = work.number;
            self.0 = Kind::Sorted(number, failed.map_or_else(|| Ok(work.finish()), Err));
        }
        Ok(Step::Done)
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        match &mut self.0 {
            Kind::Run(work) => work.supply(object, range, bytes),
            Kind::Group(_) | Kind::Sorted(..) => Ok(()),
        }
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Err(Error::misuse("a length that was not asked for"))
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        if let Kind::Run(work) = &mut self.0 {
            work.fail(object, range, reason);
        }
    }
}
