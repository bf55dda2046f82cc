//! The rows of a piece: pages as writes, and writes as Parquet.

use std::collections::VecDeque;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::{MapStep, Mapper};
use marquetry_scylla::select::SelectedRows;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_tables::{Batches, Cancel, LostValues, PieceOptions, Portions, spaced};
use scylla::deserialize::row::ColumnIterator;

use super::pages::Pages;
use super::requests::{Page, unexpected};

/// The rows of a piece.
pub(super) struct PieceRows {
    name: String,
    /// Taken while the next rows are made; not there any more after an error.
    portions: Option<Portions>,
    making: Making,
}

/// How rows come about.
struct Making {
    pages: Pages,
    rows: SelectedRows,
    /// Rows that came so far.
    count: u64,
    ready: VecDeque<MutationBatch>,
    is_over: bool,
    mapper: Mapper,
    lost: LostValues,
    cancel: Cancel,
    // Last: what the requests run on lives as long as they do.
    _runtime: Arc<dyn Send + Sync>,
}

impl PieceRows {
    pub(super) fn new(
        name: String,
        pages: Pages,
        rows: SelectedRows,
        mapper: Mapper,
        options: &PieceOptions,
        runtime: Arc<dyn Send + Sync>,
    ) -> PieceRows {
        let making = Making {
            pages,
            rows,
            count: 0,
            ready: VecDeque::new(),
            is_over: false,
            mapper,
            lost: options.lost.clone(),
            cancel: options.cancel.clone(),
            _runtime: runtime,
        };
        PieceRows { name, portions: Some(Portions::new(options)), making }
    }
}

impl Batches for PieceRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(mut portions) = self.portions.take() else { return Ok(None) };
        let wanted = portions.left();
        let next = portions.next(|| self.making.next(wanted));
        let next = next.map_err(|error| error.at(|place| place.object = Some(self.name.clone())))?;
        self.portions = Some(portions);
        Ok(next)
    }
}

impl Making {
    /// The next rows of Parquet; `wanted` is how many there need to be.
    fn next(&mut self, wanted: u64) -> Result<Option<Batch>> {
        loop {
            self.cancel.check()?;
            match self.mapper.step(&mut Budget::unlimited())? {
                MapStep::Ready(batch) => {
                    self.lost.add_all(self.mapper.take_lost());
                    return Ok(Some(spaced(batch)));
                }
                MapStep::Need => match self.next_mutations(wanted)? {
                    Some(batch) => self.mapper.feed(batch)?,
                    None => self.mapper.finish(),
                },
                MapStep::Yield => {}
                MapStep::Done => return Ok(None),
            }
        }
    }

    fn next_mutations(&mut self, wanted: u64) -> Result<Option<MutationBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.pages.next(&self.cancel)? {
                Some(page) => {
                    self.gather(&page)?;
                    // Who wants few rows has no patience for many.
                    if self.rows.is_full() || self.count >= wanted {
                        self.ready.extend(self.rows.take());
                    }
                }
                None => {
                    self.is_over = true;
                    self.ready.extend(self.rows.take());
                }
            }
        }
    }

    fn gather(&mut self, page: &Page) -> Result<()> {
        let rows = page.rows.rows::<ColumnIterator<'_, '_>>().map_err(|error| unexpected(&error))?;
        let mut cells = Vec::new();
        for row in rows {
            cells.clear();
            for cell in row.map_err(|error| unexpected(&error))? {
                let cell = cell.map_err(|error| unexpected(&error))?;
                cells.push(cell.slice.map(|slice| slice.as_slice()));
            }
            let pushed = self.rows.push(&cells, page.asked_at);
            pushed.map_err(answered)?;
            if self.rows.is_full() {
                self.ready.extend(self.rows.take());
            }
        }
        self.count = self.count.saturating_add(u64_of(page.rows.rows_num()));
        Ok(())
    }
}

/// An error of an answer that is not what was asked for.
fn answered(error: Error) -> Error {
    let message = format!("unexpected answer from the cluster: {}", error.message());
    error.reworded(message)
}
