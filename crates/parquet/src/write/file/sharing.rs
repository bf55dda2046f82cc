//! A writer whose columns are worked on side by side.
//!
//! Between two strips a [`FileWriter`] decides what depends on all columns: whether the row group ends, whether pages
//! are moved out of memory, how many rows come next. Most of the time the answer is known before all columns have taken
//! their rows: nothing can have grown so much. Then the next strip is handed out at once, so that no column waits for
//! the slowest. Where it is not known, the decision waits for all columns. So it is the same as that of a writer that
//! works alone, and so are the file's bytes.

use alloc::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Error, Result, Step};

use super::{FileWriter, Room, State, strip_rows};
use crate::batch::Values;
use crate::write::column::Slack;
use crate::write::page_bloom;
use crate::write::part::{self, PART_PRICE};
use crate::write::sharing::Sharing;
use crate::write::translation::Translation;
use crate::write::work::{ColumnWork, ColumnWorker, Facts, Sizes, Strip, Task};

/// The cost of measuring a column of a batch, besides its entries.
const COLUMN_UNITS: u64 = 120;
/// Bytes by which a column grows besides its values and levels: headers of pages, a dictionary's first segments.
const COLUMN_BYTES: u64 = 4 << 10;

impl FileWriter {
    /// Lets the host have the work of columns done elsewhere: from now on the writer hands it out, and does none of it
    /// itself. Up to `ahead` batches are taken while the columns are still at work on an earlier one. The file is the same,
    /// byte for byte, whatever is done where and in which order.
    ///
    /// ```text
    /// next_work()                  work that is there, for a ColumnWorker on any thread
    /// return_work(work)            once it is done
    /// awaits_work()                after a step that returned Yield: only next_work and return_work lead on
    /// ```
    ///
    /// A row group that is [fed by columns](FileWriter::feed_column) is not shared.
    ///
    /// # Errors
    ///
    /// `Misuse` once rows were fed.
    pub fn share(&mut self, ahead: usize) -> Result<()> {
        if self.rows > 0 || self.batch.is_some() || self.column.is_some() {
            return Err(Error::misuse("a writer that begins to share its work after it has rows"));
        }
        if !self.shared.schema.leaves().is_empty() {
            self.sharing = Some(Sharing::new(ahead));
        }
        Ok(())
    }

    /// One that does its columns' work, and that of other writers with the same codecs.
    pub fn worker(&self) -> ColumnWorker {
        ColumnWorker::new(self.shared.maker.codecs(), Facts::of(&self.shared))
    }

    /// The next work, if any is there.
    pub fn next_work(&mut self) -> Option<ColumnWork> {
        let sharing = self.sharing.as_mut().filter(|sharing| sharing.ready > 0)?;
        let (columns, end) = (self.columns.len(), sharing.end());
        // All columns are looked at before the first again, so none is left behind.
        for _ in 0..columns {
            let number = sharing.scan;
            sharing.scan = (number + 1) % columns;
            let Some(place) = self.columns.place(number) else { continue };
            let Some(column) = place.take(end) else { continue };
            let task = usize_of(place.next - sharing.first).and_then(|at| sharing.tasks.get(at));
            let Some(task) = task.map(|open| open.task.clone()) else {
                place.put(column);
                continue;
            };
            (sharing.ready, sharing.away) = (sharing.ready - 1, sharing.away + 1);
            let (before, facts) = (Sizes::of(&column), Facts::of(&self.shared));
            return Some(ColumnWork { number, column, before, task, facts, result: Ok(()) });
        }
        None
    }

    /// Takes work back that is done.
    pub fn return_work(&mut self, work: ColumnWork) {
        let ColumnWork { number, column, before, task, result, .. } = work;
        // The batch is released here, a slice at a time, unless others have it.
        drop(task);
        let Some(sharing) = &mut self.sharing else { return };
        let Some(place) = self.columns.place(number) else { return };
        sharing.away -= 1;
        let after = Sizes::of(&column);
        self.held = self.held.wrapping_add(after.held.wrapping_sub(before.held));
        self.held_pages = self.held_pages.wrapping_add(after.pages.wrapping_sub(before.pages));
        self.group_bytes = self.group_bytes.wrapping_add(after.size.wrapping_sub(before.size));
        let slack = column.slack();
        sharing.slack.size = sharing.slack.size.wrapping_add(slack.size.wrapping_sub(place.slack.size));
        sharing.slack.held = sharing.slack.held.wrapping_add(slack.held.wrapping_sub(place.slack.held));
        (place.slack, place.has_no_dictionary) = (slack, column.has_no_dictionary());
        let number_of_task = place.next;
        place.put(column);
        if let Err(error) = result {
            // Its column is not used again.
            place.next = u64::MAX;
            let is_first = sharing
                .failed
                .as_ref()
                .is_none_or(|(task, column, _)| (number_of_task, number) < (*task, *column));
            if is_first {
                sharing.failed = Some((number_of_task, number, error));
            }
            return;
        }
        place.next += 1;
        if place.next < sharing.end() {
            sharing.ready += 1;
        }
        let open = usize_of(number_of_task - sharing.first).and_then(|at| sharing.tasks.get_mut(at));
        if let Some(open) = open {
            open.left -= 1;
        }
        while sharing.tasks.front().is_some_and(|open| open.left == 0) {
            let Some(open) = sharing.tasks.pop_front() else { break };
            sharing.first += 1;
            if let Task::Rows(strip) = open.task
                && let Some(batch) = Arc::into_inner(strip.batch)
            {
                self.released.columns(batch.columns);
            }
        }
    }

    /// Whether the last step ended because nothing can be done before work is [returned](FileWriter::return_work).
    pub fn awaits_work(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.is_waiting)
    }

    /// A step begins.
    pub(super) fn wait_no_more(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.is_waiting = false;
        }
    }

    /// Hands out rows to all columns.
    pub(super) fn share_rows(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<Room>>> {
        if let Some(first) = self.columns.get_mut(0) {
            let before = Sizes::of(first);
            let is_sent = first.send_pages(&mut self.out, budget);
            let after = Sizes::of(first);
            self.held = self.held.wrapping_add(after.held.wrapping_sub(before.held));
            self.held_pages = self.held_pages.wrapping_add(after.pages.wrapping_sub(before.pages));
            if self.out.is_ready() {
                return Ok(None);
            }
            if !is_sent {
                return Ok(Some(Step::Yield));
            }
        }
        let are_all_here = self.check_shared()?;
        let bytes = if are_all_here {
            let expected = self.sharing.as_mut().and_then(|sharing| sharing.expected.take());
            debug_assert!(
                expected.is_none_or(|most| self.group_bytes <= most.size && self.open() <= most.held),
                "columns grew more than they can: {} and {}, {expected:?}",
                self.group_bytes,
                self.open()
            );
            if let Some(answer) = self.begin_strip()? {
                return Ok(answer);
            }
            self.group_bytes
        } else {
            if self.has_shared_failure() {
                return Ok(self.wait());
            }
            let most = self.most();
            let options = &self.shared.options;
            let is_full = self.group_rows >= options.row_group_rows
                || most.size >= options.row_group_bytes
                || options.spill.is_some() && (most.held >= self.spill_at || self.held >= self.spill_at);
            if is_full || (self.is_finished && self.batch.is_none()) {
                return Ok(self.wait());
            }
            if self.batch.is_none() {
                return Ok(Some(Step::Ready(Room)));
            }
            most.size
        };
        let (Some(sharing), Some(pending)) = (&mut self.sharing, &mut self.batch) else {
            return Err(Error::internal("a strip of no batch"));
        };
        let rest = pending.batch.rows - pending.taken;
        let rows = strip_rows(&self.shared.options, self.group_rows, bytes);
        let rows = usize_of(rows).unwrap_or(usize::MAX).min(rest);
        if !are_all_here && (rows < rest || sharing.tasks.len() > sharing.ahead) {
            return Ok(self.wait());
        }
        while let Some(column) = pending.batch.columns.get(sharing.measured.0) {
            if let Some(place) = self.columns.place(sharing.measured.0)
                && let Some(slack) = place.first_slack()
            {
                sharing.slack.size += slack.size;
                sharing.slack.held += slack.held;
            }
            let (bytes, entries) = part::measure(column);
            budget.charge(PART_PRICE, 0, entries);
            budget.charge_units(COLUMN_UNITS);
            let asked = self.shared.options.of(sharing.measured.0);
            let place = self.columns.place(sharing.measured.0);
            let tables = [asked.bloom.is_some(), place.is_none_or(|place| !place.has_no_dictionary)];
            let pages = u64_of(entries.div_ceil(self.shared.options.page_rows.max(1)));
            let mut growth = growth_of(bytes, u64_of(entries), tables);
            growth.size += PAGE_BYTES * pages;
            growth.held += PAGE_BYTES * pages;
            growth.held += asked.page_bloom.map_or(0, |bloom| page_bloom::growth_of(bloom, u64_of(entries)));
            if let Values::Dictionary(_, entries) = &column.values {
                growth.held += u64_of(Translation::growth_of(entries.len()));
            }
            let measured = &mut sharing.measured;
            (measured.1.size, measured.1.held) =
                (measured.1.size + growth.size, measured.1.held + growth.held);
            measured.0 += 1;
            if budget.is_spent() && measured.0 < pending.batch.columns.len() {
                return Ok(Some(Step::Yield));
            }
        }
        let (_, growth) = core::mem::take(&mut sharing.measured);
        let until = pending.taken + rows;
        let strip = Strip { batch: Arc::clone(&pending.batch), until, first_row: self.rows };
        sharing.hand_out(Task::Rows(strip), growth, self.columns.len());
        pending.taken = until;
        self.group_rows += u64_of(rows);
        if until == pending.batch.rows {
            self.rows += u64_of(until);
            self.batch = None;
        }
        let most = self.most();
        if let Some(sharing) = &mut self.sharing {
            sharing.expected = Some(most);
        }
        Ok(None)
    }

    /// Has all chunks ended elsewhere. True once they are.
    pub(super) fn share_end(&mut self) -> Result<bool> {
        if self.sharing.is_none() {
            return Ok(true);
        }
        let are_all_here = self.check_shared()?;
        let rows = self.rows + self.batch.as_ref().map_or(0, |pending| u64_of(pending.taken));
        let Some(sharing) = &mut self.sharing else { return Ok(true) };
        if !sharing.is_ending && sharing.failed.is_none() {
            sharing.is_ending = true;
            sharing.hand_out(Task::End(rows.saturating_sub(1)), Slack::default(), self.columns.len());
        } else if are_all_here {
            return Ok(true);
        }
        sharing.is_waiting = true;
        Ok(false)
    }

    /// The row group is written.
    pub(super) fn share_again(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.is_ending = false;
        }
    }

    /// The bytes of the file if it ended now, at most, while columns are elsewhere; about, while all are here.
    pub fn size(&self) -> u64 {
        let is_group_written = matches!(self.state, State::Group(_) | State::Columns(_));
        let group = if is_group_written { self.out.position() - self.group_offset } else { self.most().size };
        self.group_offset + group + self.ending.held()
    }

    /// Whether work is elsewhere, or waits for a worker.
    pub fn has_open_work(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| !sharing.are_all_here())
    }

    /// Bytes that are held besides complete pages.
    fn open(&self) -> u64 {
        self.held.saturating_sub(self.held_pages)
    }

    /// The most bytes that the open row group has, and of those that are held besides complete pages: for more, pages are
    /// ended.
    fn most(&self) -> Slack {
        let Some(sharing) = self.sharing.as_ref().filter(|sharing| !sharing.are_all_here()) else {
            return Slack { size: self.group_bytes, held: self.open() };
        };
        let grown = sharing.tasks.iter().fold(sharing.slack, |sum, open| Slack {
            size: sum.size.saturating_add(open.growth.size),
            held: sum.held.saturating_add(open.growth.held),
        });
        Slack {
            size: grown.size.saturating_add(self.group_bytes),
            held: grown.held.saturating_add(self.open()),
        }
    }

    fn wait(&mut self) -> Option<Step<Room>> {
        if let Some(sharing) = &mut self.sharing {
            sharing.is_waiting = true;
        }
        Some(Step::Yield)
    }

    /// Whether a column has failed: no more is handed out, but what is has to be done, because it may fail at an earlier row.
    fn has_shared_failure(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.failed.is_some())
    }

    /// Whether all columns are here, with nothing left to do.
    ///
    /// # Errors
    ///
    /// The error of the first row, and of its first column, once all columns are here.
    fn check_shared(&self) -> Result<bool> {
        let Some(sharing) = &self.sharing else { return Ok(true) };
        match &sharing.failed {
            Some((_, _, error)) if sharing.are_all_here() => Err(error.clone()),
            _ => Ok(sharing.are_all_here()),
        }
    }
}

/// Bytes of a page that are not of its entries: its header, and what an encoding and a codec begin with.
const PAGE_BYTES: u64 = 256;

/// By how much a column grows that takes values of so many bytes, and so many entries, with a Bloom filter and a
/// dictionary, if it has them.
fn growth_of(bytes: u64, entries: u64, [has_bloom, has_dictionary]: [bool; 2]) -> Slack {
    // Encodings take at most twice the bytes of PLAIN, and levels a byte or two per entry.
    let size = 2 * bytes + 4 * entries + COLUMN_BYTES;
    // A dictionary has a table; a Bloom filter keeps hashes.
    let tables = 16 * entries * (u64::from(has_bloom) + u64::from(has_dictionary));
    Slack { size, held: size + tables }
}
