//! Sending rows: prepared, concurrent, and never more in flight than was asked for.
//!
//! A thread of its own fills blocks of rows ([`RowSource`]), checks them, and hands them over through a short channel;
//! the runtime sends each row as a request of its own, because rows of one block belong to different nodes. Both the
//! rows and the bytes in flight are bounded, so memory does not depend on how many rows there are or how slow the
//! cluster is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marquetry_scylla::cql::ddl::TableDef;
use marquetry_scylla::cql::insert_prefix;
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::statement::Statement;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::options::{CONCURRENCY_MAX, LoadOptions};
use crate::rows::{PackedRow, ReadyBlock, RowBlock, RowSource, Rules};

/// What a load has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loaded {
    /// Rows that the cluster has acknowledged. Rows with one key are counted each.
    pub rows: u64,
    /// Their bytes, as the protocol holds them.
    pub bytes: u64,
    /// Rows that were sent again, counted each time.
    pub retries: u64,
}

/// Blocks that wait between the thread that reads and the runtime that sends: enough that neither waits for the
/// other at every block.
const BLOCKS_WAITING: usize = 2;
/// KiB of rows in flight, the driver's copies not counted: 256 rows of 128 KiB each. A larger row goes alone.
const IN_FLIGHT_KIB: u32 = 32 << 10;
/// The time for an answer. Servers give up earlier (2 s for a write unless configured otherwise) and say so.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The wait before a row is sent a second time.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// The longest wait before a row is sent again.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Prepares the `INSERT` for the source's columns.
pub(crate) async fn prepare(
    session: &Session,
    table: &TableDef,
    source: &dyn RowSource,
    options: &LoadOptions,
) -> Result<PreparedStatement> {
    let columns = source.columns();
    let mut text = insert_prefix(&table.table, columns.iter().map(|(name, _)| name));
    text.push_str(&vec!["?"; columns.len()].join(", "));
    text.push(')');
    let statement = Statement::new(text);
    let mut prepared = session.prepare(statement).await.map_err(|error| Error::Prepare(Box::new(error)))?;
    if prepared.get_variable_col_specs().len() != columns.len() {
        return Err(Error::Internal("the INSERT has not as many markers as columns"));
    }
    prepared.set_consistency(options.consistency.for_driver());
    prepared.set_request_timeout(Some(REQUEST_TIMEOUT));
    // The same row with the same write time: however often it is applied, the table is the same.
    prepared.set_is_idempotent(true);
    Ok(prepared)
}

/// Loads all rows of a source. `progress` is told what has been loaded, after every block.
///
/// When it returns nothing is in flight any more, and the source's thread has ended.
pub(crate) async fn load(
    session: Arc<Session>,
    prepared: PreparedStatement,
    table: &TableDef,
    source: Box<dyn RowSource>,
    options: &LoadOptions,
    first_write_time_us: i64,
    progress: &mut dyn FnMut(&Loaded),
) -> (Loaded, Result<()>) {
    let (sender, mut blocks) = mpsc::channel(BLOCKS_WAITING);
    let name: Arc<str> = source.name().into();
    let reader = match start_reader(source, table, options.row_bytes_max, sender) {
        Ok(reader) => reader,
        Err(error) => return (Loaded::default(), Err(error)),
    };
    let concurrency = options.concurrency.get().min(CONCURRENCY_MAX);
    let run = Arc::new(Run {
        session,
        prepared,
        source: name,
        tries: options.tries.max(1),
        failed: AtomicBool::new(false),
        first_error: Mutex::new(None),
        rows: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        retries: AtomicU64::new(0),
    });
    let slots = Arc::new(Semaphore::new(concurrency));
    let room = Arc::new(Semaphore::new(to_usize(IN_FLIGHT_KIB)));
    let mut tasks = JoinSet::new();
    let mut write_time_us = first_write_time_us;

    'send: while let Some(block) = blocks.recv().await {
        let block: ReadyBlock = match block {
            Ok(block) => block,
            Err(error) => {
                run.fail(error);
                break;
            }
        };
        for (number, cells) in block.rows() {
            let kib =
                u32::try_from(cells.len() / 1024).unwrap_or(u32::MAX).saturating_add(1).min(IN_FLIGHT_KIB);
            let (slot, kib) = match (acquire(&slots, 1).await, acquire(&room, kib).await) {
                (Ok(slot), Ok(kib)) => (slot, kib),
                (Err(error), _) | (_, Err(error)) => {
                    run.fail(error);
                    break 'send;
                }
            };
            while let Some(ended) = tasks.try_join_next() {
                run.note(ended);
            }
            if run.failed.load(Ordering::Relaxed) {
                break 'send;
            }
            let row = PackedRow { cells, nulls: options.nulls };
            let run = Arc::clone(&run);
            let at = write_time_us;
            write_time_us = write_time_us.saturating_add(1);
            tasks.spawn(async move {
                run.insert(number, row, at).await;
                drop((slot, kib));
            });
        }
        progress(&run.loaded());
    }
    // The reader's next block finds no receiver, and it ends.
    drop(blocks);
    while let Some(ended) = tasks.join_next().await {
        run.note(ended);
        if tasks.len().is_multiple_of(concurrency) {
            progress(&run.loaded());
        }
    }
    if tokio::task::spawn_blocking(|| reader.join()).await.is_ok_and(|joined| joined.is_ok()) {
        progress(&run.loaded());
    } else {
        run.fail(Error::Internal("the thread that reads rows panicked"));
    }
    let error = match run.first_error.lock() {
        Ok(mut first) => first.take(),
        Err(poisoned) => poisoned.into_inner().take(),
    };
    (run.loaded(), error.map_or(Ok(()), Err))
}

/// What the requests of one load share.
struct Run {
    session: Arc<Session>,
    prepared: PreparedStatement,
    source: Arc<str>,
    tries: u32,
    failed: AtomicBool,
    first_error: Mutex<Option<Error>>,
    rows: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
}

impl Run {
    async fn insert(&self, number: u64, row: PackedRow, write_time_us: i64) {
        let mut prepared = self.prepared.clone();
        prepared.set_timestamp(Some(write_time_us));
        let mut tries = 0;
        loop {
            tries += 1;
            let Err(reason) = self.session.execute_unpaged(&prepared, &row).await else {
                self.rows.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(row.cells.len() as u64, Ordering::Relaxed);
                return;
            };
            // When another row has ended the load, this one is not worth waiting for.
            if tries >= self.tries || !is_passing(&reason) || self.failed.load(Ordering::Relaxed) {
                let source = self.source.to_string();
                return self.fail(Error::Insert { source, row: number, tries, reason: Box::new(reason) });
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(backoff(tries, number)).await;
        }
    }

    /// Keeps the first error.
    fn fail(&self, error: Error) {
        let mut first = match self.first_error.lock() {
            Ok(first) => first,
            Err(poisoned) => poisoned.into_inner(),
        };
        first.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn note(&self, ended: Result<(), tokio::task::JoinError>) {
        if ended.is_err() {
            self.fail(Error::Internal("a request panicked"));
        }
    }

    fn loaded(&self) -> Loaded {
        Loaded {
            rows: self.rows.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
        }
    }
}

type Blocks = mpsc::Sender<Result<ReadyBlock>>;

fn start_reader(
    source: Box<dyn RowSource>,
    table: &TableDef,
    row_bytes_max: usize,
    blocks: Blocks,
) -> Result<std::thread::JoinHandle<()>> {
    let names: Vec<_> = table.columns.iter().map(|column| column.name.clone()).collect();
    let partition_key = table.partition_key.clone();
    let clustering: Vec<usize> = table.clustering.iter().map(|(at, _)| *at).collect();
    let read = move || {
        let columns = source.columns().to_vec();
        // From positions in the table to positions in the rows; that all are there was checked before.
        let find = |at: &usize| columns.iter().position(|(name, _)| *name == names[*at]);
        let rules = Rules {
            columns: &columns,
            partition_key: partition_key.iter().filter_map(find).collect(),
            clustering: clustering.iter().filter_map(find).collect(),
            row_bytes_max,
        };
        read_blocks(source, &rules, &blocks);
    };
    std::thread::Builder::new().name("marquetry-rows".to_owned()).spawn(read).map_err(Error::Start)
}

/// Ends after the last row, after an error, or when nobody takes blocks any more.
fn read_blocks(mut source: Box<dyn RowSource>, rules: &Rules<'_>, blocks: &Blocks) {
    loop {
        let mut block = RowBlock::default();
        let filled = source.fill(&mut block).and_then(|more| Ok((more, block.check(rules)?)));
        let (more, block) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                let name = source.name().to_owned();
                let error = error.at(|place| place.object = Some(name));
                // If nobody takes it, the load has failed already.
                let _ = blocks.blocking_send(Err(Error::Row(error)));
                return;
            }
        };
        if !block.is_empty() && blocks.blocking_send(Ok(block)).is_err() {
            return;
        }
        if !more {
            return;
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
        assert!(is_passing(&ExecutionError::RequestTimeout(REQUEST_TIMEOUT)));
        assert!(!is_passing(&db(DbError::Invalid)));
        assert!(!is_passing(&db(DbError::Unauthorized)));
    }
}
