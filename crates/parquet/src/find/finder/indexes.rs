//! Page indexes, read: for what they say of pages, and for where pages are.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Error, Machine as _, Result, Step};

use super::super::dispensable;
use super::super::judged::Judged;
use super::super::pages::ChunkPages;
use super::super::report::Structures;
use super::super::stage::{Released, Stage, Turn};
use super::{JUDGE_PRICE, MACHINE_UNITS, RowFinder};
use crate::format::FileMetaData;
use crate::prune::LeafOrder;
use crate::read::{PageBloom, PageIndexReader};

impl RowFinder {
    /// Reads the page indexes of the leaves that are tested.
    pub(super) fn read_indexes(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Index { row_group, reader } = &mut self.stage else {
            return Err(Error::internal("no page index to read"));
        };
        let row_group = *row_group;
        let Some(reader) = reader else {
            self.stage = match self.index_reader(row_group, budget)? {
                Some(new) => Stage::Index { row_group, reader: Some(Box::new(new)) },
                None => Stage::Judge(Box::new(Judged::new(row_group)), None),
            };
            return Ok(None);
        };
        match reader.step(budget) {
            Ok(Step::Ready(chunk)) => {
                let order = LeafOrder::of(&self.metadata, chunk.leaf);
                let order = order.ok_or_else(|| Error::internal("an index of no leaf"))?;
                let rows = self.metadata.row_groups[row_group].rows;
                let Stage::Index { reader: Some(reader), .. } =
                    core::mem::replace(&mut self.stage, Stage::Done)
                else {
                    return Err(Error::internal("an index without a reader"));
                };
                let pages = ChunkPages::new(
                    chunk.offset_index,
                    chunk.column_index,
                    order,
                    rows,
                    index_bytes(&self.metadata, row_group, chunk.leaf),
                )
                .with_bloom(self.page_bloom(row_group, chunk.leaf));
                let (leaf, pages) = (chunk.leaf, Box::new(pages));
                self.stage = Stage::Check { row_group, leaf, pages, reader };
            }
            Ok(Step::Done) => {
                self.stage = Stage::Judge(Box::new(Judged::new(row_group)), None);
            }
            Ok(Step::Need(demand)) => return Ok(Some(Step::Need(demand))),
            Ok(Step::Yield | Step::Append(..)) => return Ok(Some(Step::Yield)),
            Err(error) => self.distrust(error)?,
        }
        Ok(None)
    }

    /// Checks the order of the bounds of an index.
    pub(super) fn check_index(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Check { pages, .. } = &mut self.stage else {
            return Err(Error::internal("no page index to check"));
        };
        if !pages.check(budget) {
            return Ok(Some(Step::Yield));
        }
        let Stage::Check { row_group, leaf, pages, reader } =
            core::mem::replace(&mut self.stage, Stage::Done)
        else {
            return Err(Error::internal("an index that is not checked"));
        };
        self.kept_bytes += pages.held();
        self.pages.insert((row_group, leaf), Arc::from(pages));
        self.stage = Stage::Index { row_group, reader: Some(reader) };
        Ok(None)
    }

    /// Reads where the pages are that will be wanted; then the rows are handed out.
    pub(super) fn locate_pages(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Locate { row_group, rows, reader } = &mut self.stage else {
            return Err(Error::internal("no pages to locate"));
        };
        let row_group = *row_group;
        let Some(reader) = reader else {
            let rows = core::mem::take(rows);
            let leaves = self.options.locate.clone();
            match self.missing_indexes(row_group, &leaves, false, budget)? {
                Some(new) => {
                    let reader = Some(Box::new(new));
                    self.stage = Stage::Locate { row_group, rows, reader };
                    return Ok(None);
                }
                None => return Ok(Some(Step::Ready(self.found(row_group, rows)))),
            }
        };
        match reader.step(budget) {
            Ok(Step::Ready(chunk)) => {
                let order = LeafOrder::of(&self.metadata, chunk.leaf);
                let order = order.ok_or_else(|| Error::internal("an index of no leaf"))?;
                let rows = self.metadata.row_groups[row_group].rows;
                let pages = ChunkPages::new(chunk.offset_index, None, order, rows, 0)
                    .with_bloom(self.page_bloom(row_group, chunk.leaf));
                self.kept_bytes += pages.held();
                self.pages.insert((row_group, chunk.leaf), Arc::new(pages));
            }
            Ok(Step::Done) => {
                let rows = core::mem::take(rows);
                return Ok(Some(Step::Ready(self.found(row_group, rows))));
            }
            Ok(Step::Need(demand)) => return Ok(Some(Step::Need(demand))),
            Ok(Step::Yield | Step::Append(..)) => return Ok(Some(Step::Yield)),
            Err(error) => self.distrust(error)?,
        }
        Ok(None)
    }

    /// A reader of the indexes of the leaves that are tested; `None` if all that there are are at hand.
    fn index_reader(&mut self, row_group: usize, budget: &mut Budget<'_>) -> Result<Option<PageIndexReader>> {
        let Structures { index, page_bloom, .. } = self.options.structures;
        // What Bloom filters say of pages says something of rows only with the places of pages.
        let is_useful = |leaf: &usize| index || page_bloom && self.page_bloom(row_group, *leaf).is_some();
        let leaves: Vec<usize> = self.program.leaves.iter().copied().filter(is_useful).collect();
        self.missing_indexes(row_group, &leaves, index, budget)
    }

    /// The Bloom filters of a chunk's pages, if they are to be asked.
    fn page_bloom(&self, row_group: usize, leaf: usize) -> Option<PageBloom> {
        self.options.structures.page_bloom.then(|| PageBloom::of(&self.metadata, row_group, leaf)).flatten()
    }

    /// A reader of those indexes of leaves that are not at hand, and not distrusted.
    fn missing_indexes(
        &mut self,
        row_group: usize,
        leaves: &[usize],
        has_bounds: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Option<PageIndexReader>> {
        budget.charge(JUDGE_PRICE, 0, leaves.len());
        let columns = &self.metadata.row_groups[row_group].columns;
        let mut missing = Vec::new();
        for leaf in leaves {
            let chunk = columns.get(*leaf).filter(|chunk| chunk.offset_index.is_some() && !chunk.encrypted);
            let lacks_bounds = |pages: &Arc<ChunkPages>| {
                has_bounds && !pages.has_bounds() && chunk.is_some_and(|chunk| chunk.column_index.is_some())
            };
            match (self.pages.get(&(row_group, *leaf)), chunk) {
                _ if self.distrusted.contains(&(row_group, *leaf)) => {}
                (Some(pages), _) if !lacks_bounds(pages) => {}
                (_, Some(_)) => missing.push(*leaf),
                (_, None) => {}
            }
        }
        if missing.is_empty() {
            return Ok(None);
        }
        budget.charge_units(MACHINE_UNITS);
        let mut read = self.options.read.clone();
        (read.leaves, read.row_groups) = (Some(missing), Some(row_group..row_group + 1));
        let reader = PageIndexReader::new(self.object, Arc::clone(&self.metadata), &read)?;
        Ok(Some(if has_bounds { reader } else { reader.without_bounds() }))
    }

    /// Goes on without the page index that its reader has this error about.
    fn distrust(&mut self, error: Error) -> Result<()> {
        let (row_group, reader, rows) = match core::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Index { row_group, reader: Some(reader) } => (row_group, reader, None),
            Stage::Locate { row_group, rows, reader: Some(reader) } => (row_group, reader, Some(rows)),
            _ => return Err(error),
        };
        let Some(chunk) = reader.at_chunk().filter(|_| dispensable(&error)) else { return Err(error) };
        self.distrusted.insert(chunk);
        let then = match rows {
            None => Stage::Index { row_group, reader: None },
            Some(rows) => {
                self.report.index.distrusted += 1;
                Stage::Locate { row_group, rows, reader: None }
            }
        };
        self.stage = Stage::Release(Released::Index(reader), Box::new(then));
        Ok(())
    }
}

/// Bytes of a chunk's column index in the file.
fn index_bytes(metadata: &FileMetaData, row_group: usize, leaf: usize) -> usize {
    let chunk = metadata.row_groups.get(row_group).and_then(|group| group.columns.get(leaf));
    usize_of_u32(chunk.and_then(|chunk| chunk.column_index).map_or(0, |(_, length)| length))
}
