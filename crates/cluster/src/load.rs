//! Sending rows: prepared, concurrent, and never more in flight than was asked for.
//!
//! Whoever loads fills blocks of rows and hands them over through a short channel; the runtime sends each row as a request of its
//! own, because rows of one block belong to different nodes. Both the rows and the bytes in flight are bounded, so memory does not
//! depend on how many rows there are or how slow the cluster is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as threads};
use std::time::Duration;

use bytes::Bytes;
use marquetry_scylla::bridge::{Mapping, Nulls};
use marquetry_scylla::cql::insert_prefix;
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::options::Consistency;
use crate::prepare::prepared;
use crate::rows::{Block, PackedRow};
use crate::runtime::Runtime;
use crate::writes::{Sent, Writes};

/// Blocks that wait between the thread that makes them and the runtime that sends: enough that neither waits for the
/// other at every block.
const BLOCKS_WAITING: usize = 2;
/// KiB of rows in flight, the driver's copies not counted: 256 rows of 128 KiB each. A larger row goes alone.
const IN_FLIGHT_KIB: u32 = 32 << 10;
/// The time that rows in flight are given when the load is cancelled: a cluster that is well answers in a few milliseconds,
/// and then all rows that arrived are counted. Whoever cancels does not notice it.
const CANCELLED_TIMEOUT: Duration = Duration::from_millis(250);
/// The wait before a row is sent a second time.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// The longest wait before a row is sent again.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Prepares the `INSERT` of a mapping's columns, and that of partitions that have only static values.
pub(crate) async fn prepare(
    session: &Session,
    mapping: &Mapping,
    nulls: Nulls,
    consistency: Consistency,
) -> Result<By> {
    let numbers = 0..mapping.columns().len();
    let of_partition: Vec<usize> =
        numbers.clone().filter(|column| mapping.is_of_partition(*column)).collect();
    let has_statics = of_partition.len() > mapping.table().partition_key.len();
    let statics = match has_statics {
        true => Some(prepare_insert(session, mapping, &of_partition, consistency).await?),
        false => None,
    };
    let rows = prepare_insert(session, mapping, &numbers.collect::<Vec<_>>(), consistency).await?;
    Ok(By::Insert { rows, statics, nulls })
}

async fn prepare_insert(
    session: &Session,
    mapping: &Mapping,
    columns: &[usize],
    consistency: Consistency,
) -> Result<PreparedStatement> {
    let names = columns.iter().filter_map(|column| mapping.columns().get(*column));
    let mut text = insert_prefix(&mapping.table().table, names.map(|column| &column.name));
    text.push_str(&vec!["?"; columns.len()].join(", "));
    text.push(')');
    let prepared =
        prepared(session, text, consistency).await.map_err(|error| Error::Prepare(Box::new(error)))?;
    if prepared.get_variable_col_specs().len() != columns.len() {
        return Err(Error::Internal("the INSERT has not as many markers as columns"));
    }
    Ok(prepared)
}

/// How rows are sent.
pub(crate) struct Sending {
    pub(crate) session: Arc<Session>,
    pub(crate) by: By,
    pub(crate) concurrency: usize,
    pub(crate) tries: u32,
    pub(crate) first_write_time_us: i64,
}

/// What a row is sent as.
pub(crate) enum By {
    /// An `INSERT`, whose write time is that of the row's place; another one, if the table has static columns, for partitions without rows.
    Insert { rows: PreparedStatement, statics: Option<PreparedStatement>, nulls: Nulls },
    /// Statements that say when they were written.
    Writes(Writes),
}

impl By {
    fn begin(&self, cells: Bytes, is_static: bool, write_time_us: i64) -> Request<'_> {
        match self {
            By::Insert { rows, statics, nulls } => {
                let statics = statics.as_ref().filter(|_| is_static);
                let mut prepared = statics.unwrap_or(rows).clone();
                prepared.set_timestamp(Some(write_time_us));
                Request::Insert(Box::new(prepared), PackedRow { cells, nulls: *nulls })
            }
            By::Writes(writes) => Request::Writes(writes, Writes::begin(cells)),
        }
    }
}

/// A row that is being sent.
enum Request<'a> {
    Insert(Box<PreparedStatement>, PackedRow),
    Writes(&'a Writes, Sent),
}

impl Request<'_> {
    async fn send(&mut self, session: &Session) -> std::result::Result<(), ExecutionError> {
        match self {
            Request::Insert(prepared, row) => session.execute_unpaged(prepared, &*row).await.map(drop),
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
    pub(crate) fn start(runtime: &Runtime, sending: Sending, counts: Arc<Counts>) -> Result<Load> {
        let (blocks, taken) = mpsc::channel(BLOCKS_WAITING);
        let run = Arc::new(Run {
            sending,
            failed: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            first_error: Mutex::new(None),
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
        let blocks = self.blocks.clone().ok_or(Ended)?;
        let given = runtime.wait(async move { blocks.send(block).await.is_ok() });
        if given.is_ok_and(|given| given) { Ok(()) } else { Err(Ended) }
    }

    /// Takes no more rows, and waits until those that were given have been sent and answered. `hurry` leaves it at one try each.
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
        self.run.first_error().take().map_or(Ok(()), Err)
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
    let Sending { concurrency, first_write_time_us: mut write_time_us, .. } = run.sending;
    let slots = Arc::new(Semaphore::new(concurrency));
    let room = Arc::new(Semaphore::new(to_usize(IN_FLIGHT_KIB)));
    while let Some(block) = blocks.recv().await {
        let is_static = block.is_static();
        for (number, cells) in block.rows() {
            let kib =
                u32::try_from(cells.len() / 1024).unwrap_or(u32::MAX).saturating_add(1).min(IN_FLIGHT_KIB);
            let (slot, kib) = match (acquire(&slots, 1).await, acquire(&room, kib).await) {
                (Ok(slot), Ok(kib)) => (slot, kib),
                (Err(error), _) | (_, Err(error)) => {
                    return run.fail(error);
                }
            };
            while let Some(ended) = tasks.try_join_next() {
                run.note(ended);
            }
            if run.failed.load(Ordering::Relaxed) {
                return;
            }
            let (run, object) = (Arc::clone(run), Arc::clone(block.object()));
            let at = write_time_us;
            write_time_us = write_time_us.saturating_add(1);
            tasks.spawn(async move {
                run.insert(&object, number, (cells, is_static), at).await;
                drop((slot, kib));
            });
        }
    }
}

/// What the requests of one load share.
struct Run {
    sending: Sending,
    /// A row could not be sent.
    failed: AtomicBool,
    /// Whoever loads has no patience any more.
    ending: AtomicBool,
    first_error: Mutex<Option<Error>>,
    counts: Arc<Counts>,
}

impl Run {
    async fn insert(&self, object: &str, number: u64, row: (Bytes, bool), write_time_us: i64) {
        let (cells, is_static) = row;
        let bytes = marquetry_base::cast::u64_of(cells.len());
        let mut request = self.sending.by.begin(cells, is_static, write_time_us);
        let mut tries = 0;
        loop {
            tries += 1;
            let Err(reason) = request.send(&self.sending.session).await else {
                return self.counts.add_row(bytes);
            };
            // When another row has ended the load, this one is not worth waiting for.
            if tries >= self.sending.tries || !is_passing(&reason) || self.is_ending() {
                let object = object.to_owned();
                return self.fail(Error::Insert { object, row: number, tries, reason: Box::new(reason) });
            }
            self.counts.add_retry();
            tokio::time::sleep(backoff(tries, number)).await;
        }
    }

    fn is_ending(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.ending.load(Ordering::Relaxed)
    }

    /// Keeps the first error.
    fn fail(&self, error: Error) {
        self.first_error().get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn first_error(&self) -> MutexGuard<'_, Option<Error>> {
        self.first_error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, ended: Result<(), tokio::task::JoinError>) {
        if ended.is_err() {
            self.fail(Error::Internal("a request panicked"));
        }
    }
}

async fn acquire(semaphore: &Arc<Semaphore>, permits: u32) -> Result<OwnedSemaphorePermit> {
    Arc::clone(semaphore)
        .acquire_many_owned(permits)
        .await
        .map_err(|_| Error::Internal("a semaphore was closed that nobody closes"))
}

/// Whether the same request may succeed a little later.
fn is_passing(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::EmptyPlan
        | ExecutionError::ConnectionPoolError(_)
        | ExecutionError::RequestTimeout(_) => true,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => matches!(
            error,
            DbError::Unavailable { .. }
                | DbError::Overloaded
                | DbError::IsBootstrapping
                | DbError::WriteTimeout { .. }
                | DbError::WriteFailure { .. }
                | DbError::ServerError
                | DbError::RateLimitReached { .. }
        ),
        ExecutionError::LastAttemptError(
            RequestAttemptError::BrokenConnectionError(_) | RequestAttemptError::UnableToAllocStreamId,
        ) => true,
        _ => false,
    }
}

/// The wait after a row has been sent `tries` times: it doubles, and it differs between rows by up to a half, so that
/// those that failed together do not come back together.
fn backoff(tries: u32, row: u64) -> Duration {
    let whole = BACKOFF_MIN.saturating_mul(1 << (tries - 1).min(16)).min(BACKOFF_MAX);
    // The upper bits of a multiple of the golden ratio spread neighbouring rows evenly.
    let spread = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    whole - whole / 2 * u32::try_from(spread).unwrap_or(0) / 256
}

fn to_usize(value: u32) -> usize {
    marquetry_base::cast::usize_of_u32(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ() {
        assert_eq!(backoff(1, 0), BACKOFF_MIN);
        assert_eq!(backoff(2, 0), BACKOFF_MIN * 2);
        assert_eq!(backoff(40, 0), BACKOFF_MAX);
        let waits: std::collections::BTreeSet<Duration> = (0..100).map(|row| backoff(1, row)).collect();
        assert!(waits.len() > 50, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait > BACKOFF_MIN / 2 && *wait <= BACKOFF_MIN), "{waits:?}");
    }

    #[test]
    fn only_passing_trouble_is_waited_for() {
        let db = |error| ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, String::new()));
        assert!(is_passing(&db(DbError::Overloaded)));
        assert!(is_passing(&ExecutionError::RequestTimeout(BACKOFF_MAX)));
        assert!(!is_passing(&db(DbError::Invalid)));
        assert!(!is_passing(&db(DbError::Unauthorized)));
    }
}
