//! Sending rows: prepared, concurrent, never more in flight than was asked for, and fewer when the cluster is slow.
//!
//! Whoever loads fills blocks of rows and hands them over through a short channel; the runtime sends each row as a request of its
//! own, because rows of one block belong to different nodes. Both the rows and the bytes in flight are bounded, so memory does not
//! depend on how many rows there are or how slow the cluster is.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as threads};
use std::time::{Duration, Instant};

use bytes::Bytes;
use marquetry_base::cast::u64_of;
use marquetry_scylla::bridge::Nulls;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::acknowledged::Acknowledged;
use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::options::Consistency;
use crate::pace::Pace;
use crate::prepare::prepared;
use crate::rate::{Limiter, Rate};
use crate::rejects::Rejected;
use crate::retry::{Retries, is_about_the_row, is_passing};
use crate::rows::{Block, Origin, PackedRow, RowId};
use crate::runtime::Runtime;
use crate::same_table::SameTable;
use crate::statement::{Kind, RowStatement, Statics};
use crate::writes::{Sent, Writes};

/// Blocks that wait between the thread that makes them and the runtime that sends: enough that neither waits for the
/// other at every block.
const BLOCKS_WAITING: usize = 2;
/// KiB of rows in flight, the driver's copies not counted: 256 rows of 64 KiB each. A larger row goes alone.
const IN_FLIGHT_KIB: u32 = 16 << 10;
/// The time that rows in flight are given when the load is cancelled: a cluster that is well answers in a few milliseconds,
/// and then all rows that arrived are counted. Whoever cancels does not notice it.
const CANCELLED_TIMEOUT: Duration = Duration::from_millis(250);

/// Prepares the statements of rows. `sent_before` is how often they may have been sent by earlier runs of the load.
pub(crate) async fn prepare(
    session: &Session,
    wanted: &RowStatement,
    (nulls, sent_before): (Nulls, i64),
    consistency: Consistency,
    retry_for: Duration,
) -> Result<By> {
    let ttl = usize::from(wanted.binds_ttl);
    let columns = wanted.columns.len();
    let rows = prepare_one(session, wanted, (&wanted.text, columns + ttl), consistency, retry_for).await?;
    let statics = match &wanted.statics {
        Some(Statics { text, columns }) => {
            let prepared =
                prepare_one(session, wanted, (text, columns + ttl), consistency, retry_for).await?;
            Some(Bound { prepared, columns: *columns })
        }
        None => None,
    };
    Ok(By::Rows(Box::new(Inserting {
        rows: Bound { prepared: rows, columns },
        statics,
        kind: wanted.kind,
        nulls,
        sent_before,
    })))
}

async fn prepare_one(
    session: &Session,
    wanted: &RowStatement,
    (text, markers): (&str, usize),
    consistency: Consistency,
    retry_for: Duration,
) -> Result<PreparedStatement> {
    let prepared = prepared(session, text, consistency, retry_for).await;
    let mut prepared = prepared.map_err(|error| Error::Prepare(Box::new(error)))?;
    if prepared.get_variable_col_specs().len() != markers {
        return Err(Error::Internal("the statement has not as many markers as columns"));
    }
    // Of the others, the driver may send a row again by itself.
    prepared.set_is_idempotent(wanted.kind == Kind::Same);
    Ok(prepared)
}

/// How rows are sent.
pub(crate) struct Sending {
    pub(crate) session: Arc<Session>,
    pub(crate) by: By,
    pub(crate) in_flight: usize,
    pub(crate) rate: Rate,
    pub(crate) retries: Retries,
    /// Rows that the cluster does not take are kept ([`Load::rejected`]); otherwise the first one ends the load.
    pub(crate) keeps_rejected: bool,
    /// The table that rows go to. `None`: none is there yet, and nothing is sent.
    pub(crate) table: Option<Arc<SameTable>>,
}

/// What a row is sent as.
pub(crate) enum By {
    /// Nothing: rows are only counted.
    Nothing,
    /// One statement, with the row's write time.
    Rows(Box<Inserting>),
    /// Statements that say when they were written.
    Writes(Writes),
}

/// How rows of a table are sent.
pub(crate) struct Inserting {
    rows: Bound,
    /// For partitions without rows, if the table has static columns.
    statics: Option<Bound>,
    kind: Kind,
    nulls: Nulls,
    /// How often rows may have been sent before, by earlier runs of the load: each time that lists are sent, they are a microsecond later.
    sent_before: i64,
}

/// A statement, and how many of the cells of its rows are columns.
struct Bound {
    prepared: PreparedStatement,
    columns: usize,
}

/// A row that is being sent.
enum Request<'a> {
    Row { by: &'a Inserting, prepared: Box<PreparedStatement>, row: PackedRow, write_time_us: i64 },
    Writes(&'a Writes, Sent),
}

impl By {
    /// `None`: it is not sent.
    fn begin(&self, cells: Bytes, is_static: bool, id: RowId) -> Option<Request<'_>> {
        match self {
            By::Nothing => None,
            By::Rows(by) => {
                let statics = by.statics.as_ref().filter(|_| is_static);
                let Bound { prepared, columns } = statics.unwrap_or(&by.rows);
                let row = PackedRow { cells, nulls: by.nulls, columns: *columns };
                let prepared = Box::new(prepared.clone());
                Some(Request::Row { by, prepared, row, write_time_us: id.write_time_us })
            }
            By::Writes(writes) => Some(Request::Writes(writes, writes.begin(cells, id.ordinal))),
        }
    }
}

impl Request<'_> {
    /// Whether it must not be sent again.
    fn is_unsure(&self) -> bool {
        matches!(self, Request::Writes(_, row) if row.is_unsure())
    }

    /// Sends it; `tries` is how often that was tried before.
    async fn send(&mut self, session: &Session, tries: u32) -> std::result::Result<(), ExecutionError> {
        match self {
            Request::Row { by, prepared, row, write_time_us } => {
                match by.kind {
                    Kind::Same => prepared.set_timestamp(Some(*write_time_us)),
                    Kind::Lists => {
                        let times = by.sent_before.saturating_add(i64::from(tries));
                        prepared.set_timestamp(Some(write_time_us.saturating_add(times)));
                    }
                    // They have none.
                    Kind::Counters => {}
                }
                session.execute_unpaged(prepared, &*row).await.map(drop)
            }
            Request::Writes(writes, row) => writes.send(session, row).await,
        }
    }
}

/// A load that is going on: blocks are given to it, and sent by tasks of the runtime.
pub(crate) struct Load {
    run: Arc<Run>,
    /// `None` when no more blocks are taken.
    blocks: Option<mpsc::Sender<Block>>,
    /// Set when the load is cancelled.
    stop: watch::Sender<bool>,
    /// Receives when nothing is in flight any more. `None` once it has.
    ended: Option<threads::Receiver<()>>,
}

impl Load {
    /// Begins: nothing is sent yet.
    ///
    /// `first` is the number of the first row, if it is to be known which rows were acknowledged.
    pub(crate) fn start(
        runtime: &Runtime,
        sending: Sending,
        counts: Arc<Counts>,
        first: Option<u64>,
    ) -> Result<Load> {
        let (blocks, taken) = mpsc::channel(BLOCKS_WAITING);
        let run = Arc::new(Run {
            sending,
            failed: AtomicBool::new(false),
            failing: Notify::new(),
            ending: AtomicBool::new(false),
            first_error: Mutex::new(None),
            rejected: Mutex::new(Vec::new()),
            acknowledged: first.map(|first| Mutex::new(Acknowledged::from(first))),
            counts,
        });
        let (stop, stopped) = watch::channel(false);
        let (done, ended) = threads::sync_channel(1);
        let sending = Arc::clone(&run);
        runtime.spawn(async move {
            send_all(sending, taken, stopped).await;
            // Whoever loads waits for it, or has gone.
            let _ = done.send(());
        })?;
        Ok(Load { run, blocks: Some(blocks), stop, ended: Some(ended) })
    }

    /// Gives rows to be sent; waits where others wait already.
    ///
    /// # Errors
    ///
    /// The first row's that the cluster did not take: then [`Load::end`] returns it. It may be one that was given long before.
    pub(crate) fn give(&mut self, runtime: &Runtime, block: Block) -> Result<(), Ended> {
        if self.run.failed.load(Ordering::Relaxed) {
            return Err(Ended);
        }
        if matches!(self.run.sending.by, By::Nothing) {
            block.rows().for_each(|(_, cells)| self.run.counts.add_row(u64_of(cells.len())));
            return Ok(());
        }
        let blocks = self.blocks.clone().ok_or(Ended)?;
        let given = runtime.wait(async move { blocks.send(block).await.is_ok() });
        if given.is_ok_and(|given| given) { Ok(()) } else { Err(Ended) }
    }

    /// Takes no more rows, and waits until those that were given have been sent and answered. `hurry` sends no row again.
    /// When it returns nothing is in flight any more.
    ///
    /// # Errors
    ///
    /// The first row's that the cluster did not take, once. [`Error::Cancelled`] once the work is cancelled: no row is sent
    /// any more, and those in flight are abandoned if they are not answered soon.
    pub(crate) fn end(&mut self, runtime: &Runtime, hurry: bool) -> Result<()> {
        if hurry {
            self.run.ending.store(true, Ordering::Relaxed);
        }
        self.blocks = None;
        if let Some(ended) = self.ended.take() {
            runtime.wait_for(&ended, || {
                self.stop.send_replace(true);
            })?;
        }
        if *self.stop.borrow() {
            return Err(Error::Cancelled);
        }
        locked(&self.run.first_error).take().map_or(Ok(()), Err)
    }

    /// The rows that the cluster did not take since the last time.
    pub(crate) fn rejected(&self) -> Vec<Rejected> {
        std::mem::take(&mut *locked(&self.run.rejected))
    }

    /// What was done so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.run.counts
    }

    /// All rows before this one were acknowledged, if that is followed.
    pub(crate) fn acknowledged_until(&self) -> Option<u64> {
        self.run.acknowledged.as_ref().map(|rows| locked(rows).until())
    }

    /// These rows need not be sent: nothing of them is written, or a later row's statement does that.
    pub(crate) fn acknowledge_all(&self, rows: Vec<Range<u64>>) {
        if let Some(acknowledged) = &self.run.acknowledged {
            rows.into_iter().for_each(|rows| locked(acknowledged).add_all(rows));
        }
    }

    /// These rows are dealt with, too: they are in a file.
    pub(crate) fn acknowledge(&self, rows: &[u64]) {
        if let Some(acknowledged) = &self.run.acknowledged {
            rows.iter().for_each(|row| locked(acknowledged).add(*row));
        }
    }
}

/// A load takes no more rows; why, [`Load::end`] says.
#[derive(Debug)]
pub(crate) struct Ended;

/// Sends all rows of all blocks, until it is stopped. When it returns nothing is in flight any more.
async fn send_all(run: Arc<Run>, blocks: mpsc::Receiver<Block>, mut stopped: watch::Receiver<bool>) {
    let mut tasks = JoinSet::new();
    // Whoever gives the next block after this finds no receiver.
    tokio::select! {
        () = send_blocks(&run, blocks, &mut tasks) => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    let timeout = async {
        // An error: the load was dropped, and nobody waits for the answers.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        tokio::time::sleep(CANCELLED_TIMEOUT).await;
    };
    let answers = async {
        while let Some(ended) = tasks.join_next().await {
            run.note(ended);
        }
    };
    tokio::select! {
        () = answers => {}
        () = timeout => {}
    }
    tasks.shutdown().await;
}

/// Sends the rows of one block after the other, each by a task of its own.
async fn send_blocks(run: &Arc<Run>, mut blocks: mpsc::Receiver<Block>, tasks: &mut JoinSet<()>) {
    let Sending { in_flight, rate, .. } = run.sending;
    let slots = Arc::new(Slots::new(in_flight, Arc::clone(&run.counts)));
    let room = Arc::new(Semaphore::new(to_usize(IN_FLIGHT_KIB)));
    let (mut limiter, started) = (Limiter::new(rate), Instant::now());
    while let Some(block) = blocks.recv().await {
        for (id, cells) in block.rows() {
            let wait = limiter.take(started.elapsed(), u64_of(cells.len()));
            if !wait.is_zero() {
                // A row that fails meanwhile ends the load now, and not when this one may be sent.
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = run.failing.notified() => return,
                }
            }
            let slot = Slots::take(&slots).await;
            let kib =
                u32::try_from(cells.len() / 1024).unwrap_or(u32::MAX).saturating_add(1).min(IN_FLIGHT_KIB);
            let kib = match acquire(&room, kib).await {
                Ok(kib) => kib,
                Err(error) => return run.fail(error),
            };
            while let Some(ended) = tasks.try_join_next() {
                run.note(ended);
            }
            if run.failed.load(Ordering::Relaxed) {
                return;
            }
            let (run, from, is_static) = (Arc::clone(run), Arc::clone(&block.from), block.is_static);
            tasks.spawn(async move {
                run.insert(&from, id, (cells, is_static), &slot).await;
                drop((slot, kib));
            });
        }
    }
}

/// How many rows may be in flight, and are. One task takes slots, one after the other.
struct Slots {
    flying: Mutex<Flying>,
    freed: Notify,
    counts: Arc<Counts>,
}

struct Flying {
    rows: usize,
    pace: Pace,
}

impl Slots {
    fn new(most: usize, counts: Arc<Counts>) -> Slots {
        Slots { flying: Mutex::new(Flying { rows: 0, pace: Pace::new(most) }), freed: Notify::new(), counts }
    }

    async fn take(slots: &Arc<Slots>) -> Slot {
        loop {
            {
                let mut flying = locked(&slots.flying);
                if flying.rows < flying.pace.limit() {
                    flying.rows += 1;
                    slots.counts.set_in_flight(flying.rows, flying.pace.limit());
                    return Slot(Arc::clone(slots));
                }
            }
            slots.freed.notified().await;
        }
    }
}

/// The slot of a row in flight.
struct Slot(Arc<Slots>);

impl Slot {
    fn answered(&self, after: Duration) {
        let mut flying = locked(&self.0.flying);
        let is_full = flying.rows >= flying.pace.limit();
        flying.pace.answered(after, is_full);
    }

    fn refused(&self) {
        locked(&self.0.flying).pace.refused();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut flying = locked(&self.0.flying);
            flying.rows -= 1;
            self.0.counts.set_in_flight(flying.rows, flying.pace.limit());
        }
        self.0.freed.notify_one();
    }
}

/// What the requests of one load share.
struct Run {
    sending: Sending,
    /// A row could not be sent.
    failed: AtomicBool,
    /// Wakes the task that sends when one could not be.
    failing: Notify,
    /// Whoever loads has no patience any more.
    ending: AtomicBool,
    first_error: Mutex<Option<Error>>,
    rejected: Mutex<Vec<Rejected>>,
    acknowledged: Option<Mutex<Acknowledged>>,
    counts: Arc<Counts>,
}

impl Run {
    async fn insert(&self, from: &Origin, id: RowId, (cells, is_static): (Bytes, bool), slot: &Slot) {
        let bytes = u64_of(cells.len());
        let Some(mut request) = self.sending.by.begin(cells, is_static, id) else { return };
        let (mut tries, mut first_sent) = (0, None);
        loop {
            let sent = Instant::now();
            let Err(reason) = request.send(&self.sending.session, tries).await else {
                slot.answered(sent.elapsed());
                return self.acknowledge(id, bytes);
            };
            tries += 1;
            let is_passing = is_passing(&reason);
            if is_passing {
                slot.refused();
            }
            if is_passing && !request.is_unsure() {
                // When another row has ended the load, this one is not worth waiting for.
                let left =
                    self.sending.retries.retry_for().saturating_sub(first_sent.get_or_insert(sent).elapsed());
                if !left.is_zero() && !self.is_ending() {
                    self.counts.add_retry();
                    tokio::time::sleep(self.sending.retries.wait(tries, id.number).min(left)).await;
                    continue;
                }
            }
            let is_rejected = !is_passing && is_about_the_row(&reason);
            // So is an answer about a table that is none any more, or another one.
            if let (true, Some(table)) = (is_rejected, &self.sending.table)
                && let Err(error) = table.check(&self.sending.session, self.sending.retries.retry_for()).await
            {
                return self.fail(error);
            }
            let (object, reason) = (from.object.to_string(), Box::new(reason));
            let error = Error::Insert { object, row: id.number, tries, reason };
            return match &from.batch {
                Some(batch) if is_rejected && self.sending.keeps_rejected && id.in_batch < batch.rows => {
                    let row = batch.slice(id.in_batch..id.in_batch + 1);
                    let rejected = Rejected { row, ordinal: id.ordinal, error: error.into() };
                    locked(&self.rejected).push(rejected);
                }
                _ => self.fail(error),
            };
        }
    }

    fn acknowledge(&self, id: RowId, bytes: u64) {
        self.counts.add_row(bytes);
        if let Some(acknowledged) = &self.acknowledged {
            locked(acknowledged).add(id.ordinal);
        }
    }

    fn is_ending(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.ending.load(Ordering::Relaxed)
    }

    /// Keeps the first error.
    fn fail(&self, error: Error) {
        locked(&self.first_error).get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
        self.failing.notify_one();
    }

    fn note(&self, ended: Result<(), tokio::task::JoinError>) {
        if ended.is_err() {
            self.fail(Error::Internal("a request panicked"));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn acquire(semaphore: &Arc<Semaphore>, permits: u32) -> Result<OwnedSemaphorePermit> {
    Arc::clone(semaphore)
        .acquire_many_owned(permits)
        .await
        .map_err(|_| Error::Internal("a semaphore was closed that nobody closes"))
}

fn to_usize(value: u32) -> usize {
    marquetry_base::cast::usize_of_u32(value)
}
