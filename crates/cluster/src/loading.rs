//! A load between its beginning and its end: what is done with each batch, and what is left to do at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::Mapping;
use marquetry_tables::Distinct;
use marquetry_tables::stamps::Stamps;

use crate::cluster::Cluster;
use crate::layout::Laying;
use crate::load::{Ended, Load};
use crate::rejects::{Complete, Rejected, Rejects, is_of_row};
use crate::rows::{Filling, Origin, Unfit};
use crate::same_table::SameTable;
use crate::state::{Reached, State};
use crate::writes::{Made, Writing};

/// What there is between `begin` and the end.
pub(crate) struct Loading {
    pub(crate) road: Road,
    pub(crate) load: Load,
    /// Rows that came so far: the number of the next one.
    pub(crate) rows: u64,
    /// Rows that an earlier run has loaded: they are passed over.
    pub(crate) loaded_before: u64,
    /// The write times that the rows may have, if the clock gives them: those of later loads of this program are later.
    pub(crate) write_times_us: Option<(i64, i64)>,
    pub(crate) rejects: Option<Rejects>,
    /// Why their file has no lines, if it should.
    pub(crate) without_lines: Option<Error>,
    pub(crate) state: Option<State>,
    /// How long a cluster that does not answer is asked again.
    pub(crate) retry_for: Duration,
    /// The table that rows are sent to, if they are.
    pub(crate) same: Option<Arc<SameTable>>,
    pub(crate) cluster: Cluster,
}

/// What becomes of rows.
pub(crate) enum Road {
    /// Rows of the table, or rows that those of the table hold.
    Rows { mapping: Arc<Mapping>, laying: Option<Laying>, stamps: Stamps, filling: Box<Filling> },
    /// Writes to it, by what their source says of them.
    Writes(Box<Writing>),
}

/// How a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All rows came.
    AllCame,
    /// It failed: what was given to it is still sent.
    Failed,
    /// Nobody wants it any more: nothing is sent again.
    Abandoned,
}

/// What becomes of rows with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SameKey {
    LastIsKept,
    /// They are writes with their own times.
    Merged,
}

/// Why a load takes no more rows.
pub(crate) enum Stop {
    /// A row cannot be one of the table, or a file of the load could not be written.
    Own(Error),
    /// The cluster did not take a row.
    Load(Ended),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Own(error)
    }
}

impl Loading {
    /// Takes rows of an object.
    pub(crate) fn add(&mut self, batch: Batch, object: &Arc<str>) -> Result<(), Stop> {
        // Of writes, ranges of deleted rows may have begun in those before: they are looked at, and not sent.
        if let Road::Writes(_) = self.road {
            return self.add_writes(batch, object);
        }
        let Some(batch) = self.after_those_before(batch) else { return Ok(()) };
        let unfit = match &self.road {
            Road::Rows { laying: Some(laying), .. } => laying.unfit(&batch)?,
            _ => Vec::new(),
        };
        if unfit.is_empty() {
            return self.add_rows(batch, object);
        }
        let kept = self.rejects.is_some().then(|| batch.clone());
        let from = Origin { object: Arc::clone(object), batch: kept };
        let mut next = 0;
        for unfit in unfit {
            // Those before it are loaded.
            let before = next..unfit.in_batch;
            next = unfit.in_batch + 1;
            if !before.is_empty() {
                self.add_rows(batch.slice(before), object)?;
            }
            let (ordinal, seen) = (self.rows, self.rows.saturating_add(1));
            reject((&mut self.rejects, &self.load), &from, unfit, (ordinal, seen))?;
            self.rows = seen;
            self.note()?;
        }
        match next < batch.rows {
            true => self.add_rows(batch.slice(next..batch.rows), object),
            false => Ok(()),
        }
    }

    /// Takes rows that are writes.
    fn add_writes(&mut self, batch: Batch, object: &Arc<str>) -> Result<(), Stop> {
        let Loading { road: Road::Writes(writing), load, cluster, .. } = self else {
            return Err(Stop::Own(Error::internal("writes that are rows by now")));
        };
        self.rows = self.rows.saturating_add(u64_of(batch.rows));
        if let Some(state) = self.state.as_mut().filter(|_| writing.adds_to_lists()) {
            state.may_send(self.rows)?;
        }
        let (rejects, seen) = (&mut self.rejects, self.rows);
        let added = writing.add(batch, object, &mut |made| match made {
            Made::Block(block) => load.give(cluster.runtime(), block).map_err(Stop::Load),
            Made::Unfit(from, unfit, row) => Ok(reject((rejects, load), from, unfit, (row, seen))?),
        });
        load.acknowledge_all(writing.without_statements());
        added?;
        Ok(self.note()?)
    }

    /// Takes rows of the table, or rows that those of the table can hold: of these some at a time, because each has a cell of its own.
    fn add_rows(&mut self, batch: Batch, object: &Arc<str>) -> Result<(), Stop> {
        let mut next = 0;
        while next < batch.rows {
            let rest = batch.slice(next..batch.rows);
            let laid = match &self.road {
                Road::Rows { laying: Some(laying), .. } => laying.lay(&rest)?,
                _ => return self.add_laid(rest.clone(), rest, object),
            };
            next += laid.rows;
            self.add_laid(rest.slice(0..laid.rows), laid, object)?;
        }
        Ok(())
    }

    /// Takes rows, and what rows of the table they are.
    fn add_laid(&mut self, rows: Batch, batch: Batch, object: &Arc<str>) -> Result<(), Stop> {
        let first = self.rows;
        let Road::Rows { mapping, stamps, .. } = &mut self.road else {
            return Err(Stop::Own(Error::internal("rows that are writes by now")));
        };
        let mapping = Arc::clone(mapping);
        let stamps = stamps.of(&rows);
        let kept = self.rejects.is_some().then_some(rows);
        let from = Arc::new(Origin { object: Arc::clone(object), batch: kept });
        let batch = mapping.assemble(batch)?;
        let mut batch = mapping.bind(&batch, first)?;
        let mut next = 0;
        while next < batch.rows() {
            let Road::Rows { filling, laying, .. } = &mut self.road else {
                return Err(Stop::Own(Error::internal("rows that are writes by now")));
            };
            let added = filling.add(&mut batch, &stamps, next, first);
            let added = added.map_err(|unfit| match laying {
                Some(laying) => Unfit { error: laying.in_words_of_rows(unfit.error), ..unfit },
                None => unfit,
            });
            // Those before a row that cannot be are loaded.
            if let Some(block) = filling.take(&from) {
                self.load.give(self.cluster.runtime(), block).map_err(Stop::Load)?;
            }
            next = match added {
                Ok(next) => next,
                Err(unfit) => {
                    let (next, seen) = (unfit.in_batch + 1, self.rows.saturating_add(1));
                    let ordinal = first.saturating_add(u64_of(unfit.in_batch));
                    reject((&mut self.rejects, &self.load), &from, unfit, (ordinal, seen))?;
                    next
                }
            };
            self.rows = first.saturating_add(u64_of(next));
            self.note()?;
        }
        Ok(())
    }

    /// How many rows were sent as rows of the table, how many different keys they have, and what becomes of those with the same.
    pub(crate) fn keys(&self) -> (u64, Distinct, SameKey) {
        let ((rows, keys), same) = match &self.road {
            Road::Rows { filling, .. } => (filling.keys(), SameKey::LastIsKept),
            Road::Writes(writing) => (writing.keys(), SameKey::Merged),
        };
        (rows, keys, same)
    }

    /// Takes notice that there are no more rows.
    pub(crate) fn finish(&mut self) -> Result<(), Stop> {
        let Loading { road, load, cluster, .. } = self;
        match road {
            Road::Writes(writing) => {
                let (rejects, seen) = (&mut self.rejects, self.rows);
                writing.finish(&mut |made| match made {
                    Made::Block(block) => load.give(cluster.runtime(), block).map_err(Stop::Load),
                    Made::Unfit(from, unfit, row) => Ok(reject((rejects, load), from, unfit, (row, seen))?),
                })?;
                load.acknowledge_all(writing.without_statements());
                Ok(())
            }
            Road::Rows { .. } => Ok(()),
        }
    }

    /// A batch without the rows that were loaded before; `None` if those are all.
    fn after_those_before(&mut self, batch: Batch) -> Option<Batch> {
        let before = self.loaded_before.saturating_sub(self.rows).min(u64_of(batch.rows));
        self.rows = self.rows.saturating_add(before);
        let before = usize_of(before).unwrap_or(usize::MAX);
        (before < batch.rows).then(|| batch.slice(before..batch.rows))
    }

    /// What is wrong if all rows came, and an earlier run had loaded more than there are.
    fn too_few(&self) -> Option<Error> {
        let state = self.state.as_ref().filter(|state| state.rows > self.rows)?;
        let what = format!(
            "the rows ended after {}, and {} were loaded before by this state: the source is another by now",
            self.rows, state.rows
        );
        Some(Error::corrupt(what))
    }

    /// Keeps what the cluster has answered meanwhile.
    fn note(&mut self) -> Result<()> {
        self.take_rejected()?;
        match (&mut self.state, self.load.acknowledged_until()) {
            (Some(state), Some(until)) => state.note(row_of(until, self.rows)),
            _ => Ok(()),
        }
    }

    fn take_rejected(&mut self) -> Result<()> {
        let seen = self.rows;
        match &mut self.rejects {
            Some(rejects) => {
                // Each is kept, also after one that is one too many: the first error is what is reported.
                let mut added = Ok(());
                for rejected in self.load.rejected() {
                    added = added.and(rejects.add(rejected, seen));
                }
                self.load.counts().set_rejected(rejects.rows());
                added
            }
            None => Ok(()),
        }
    }

    /// Ends the load: waits for what is in flight, and lets the files of rejected rows and of the load's state appear. `first` is an error
    /// that ended it. Returns how many rows were rejected, and the first error.
    pub(crate) fn close(&mut self, end: End, first: Option<Error>) -> (u64, Result<()>) {
        if let Some((first, step)) = self.write_times_us {
            let rows = i64::try_from(self.rows).unwrap_or(i64::MAX);
            let after = first.saturating_add(rows.saturating_mul(step));
            NEXT_WRITE_TIME_US.fetch_max(after, Ordering::Relaxed);
        }
        let is_whole = end == End::AllCame;
        let first = first.or_else(|| self.too_few().filter(|_| is_whole));
        // A row that the cluster did not take came before one that cannot be a row of the table.
        let ended = self.load.end(self.cluster.runtime(), end == End::Abandoned).map_err(Error::from);
        let mut outcome = ended.and(first.map_or(Ok(()), Err));
        // Rows that were acknowledged are lost with the table that they went to.
        if let (true, Ok(()), Some(table)) = (is_whole, &outcome, &self.same) {
            outcome = self.cluster.expect_same(table, self.retry_for).map_err(Error::from);
        }
        // Each of them is done, whatever fails before it; what is reported is the first error.
        let taken = self.take_rejected();
        outcome = outcome.and(taken);
        let (mut file, mut ordinals) = (None, Vec::new());
        if let Some(rejects) = self.rejects.take() {
            if is_whole && outcome.is_ok() {
                outcome = rejects.check(self.rows, true, None);
            }
            ordinals = rejects.ordinals().to_vec();
            match rejects.complete() {
                Ok(complete) => file = complete,
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        self.without_lines = file.as_mut().and_then(|file| file.without_lines.take());
        let is_finished = is_whole && outcome.is_ok();
        let without = self.load.acknowledged_until();
        if file.is_some() {
            self.load.acknowledge(&ordinals);
        }
        let with = self.load.acknowledged_until();
        let name = file.as_ref().map(Complete::file).map(|(path, bytes)| (path.to_path_buf(), bytes));
        let name = name.as_ref().map(|(path, bytes)| (&**path, *bytes));
        let mut rejected = 0;
        let mut appear = || {
            if let Some(file) = &mut file {
                file.appear()?;
                rejected = file.rows();
            }
            Ok(())
        };
        let ended = match self.state.take().filter(|state| !state.is_finished) {
            Some(mut state) => {
                let (came, rows, before) = (self.rows, state.rows, state.rejected);
                let reached = |until: Option<u64>, is_there: bool| {
                    let rows = until.map_or(rows, |until| row_of(until, came).max(rows));
                    // Those after it are rejected, and counted, again.
                    let counted = ordinals.iter().filter(|row| is_there && **row < rows).count();
                    let rejected = before.saturating_add(u64_of(counted));
                    Reached { rows, rejected, is_finished: is_there && is_finished }
                };
                state.end([reached(without, false), reached(with, true)], name, appear)
            }
            None => appear(),
        };
        outcome = outcome.and(ended);
        (rejected, outcome)
    }
}

/// Puts a row into the file of those that are rejected. It is one of all rows, of which so many were looked at.
///
/// # Errors
///
/// The row's own, if there is no such file, or the error is about more than the row.
fn reject(
    (rejects, load): (&mut Option<Rejects>, &Load),
    from: &Origin,
    unfit: Unfit,
    (ordinal, seen): (u64, u64),
) -> Result<()> {
    let Unfit { in_batch, error } = unfit;
    match (rejects, &from.batch) {
        (Some(rejects), Some(batch)) if is_of_row(&error) && in_batch < batch.rows => {
            let error = error.at(|place| place.object = Some(from.object.to_string()));
            let row = batch.slice(in_batch..in_batch + 1);
            let added = rejects.add(Rejected { row, ordinal, error }, seen);
            load.counts().set_rejected(rejects.rows());
            added
        }
        _ => Err(error),
    }
}

/// The row until which all were acknowledged. Those that need no statement at the end are acknowledged to the last row that there could be:
/// the last that came is meant.
fn row_of(until: u64, came: u64) -> u64 {
    if until == u64::MAX { came } else { until }
}

/// A write time that no row of this program's loads has had yet, so that later loads win over earlier ones.
static NEXT_WRITE_TIME_US: AtomicI64 = AtomicI64::new(i64::MIN);

pub(crate) fn next_write_time_us() -> i64 {
    now_us().max(NEXT_WRITE_TIME_US.load(Ordering::Relaxed))
}

/// Microseconds since 1970 by this machine's clock.
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
