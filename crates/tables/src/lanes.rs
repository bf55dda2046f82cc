//! Lanes: what threads make side by side, handed out in its order.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Values};

use crate::Cancel;

/// The most bytes of batches that wait to be taken, over all pieces of a source.
pub(crate) const WAITING_BYTES_MAX: u64 = 64 << 20;
/// At most this many batches of the lane whose turn it is wait: its thread is far enough ahead, and memory is used again
/// while it is still in a cache.
const TURN_BATCHES: usize = 4;
/// Bytes that a column of a batch takes besides what is in its buffers: itself, and the buffers' owners.
const COLUMN_BYTES: usize = size_of::<ColumnBatch>() + 128;
/// How long to wait for a batch before checking whether the work was cancelled.
const LOOK_UP_AFTER: Duration = Duration::from_millis(100);

/// Numbered lanes of batches, each filled by one thread at a time. Batches are taken lane by lane.
///
/// What waits is bounded in bytes, over all lanes. The lane whose turn it is may have two batches more (and at most
/// [`TURN_BATCHES`] in all), and each thread has one in hand.
pub(crate) struct Lanes {
    state: Mutex<State>,
    changed: Condvar,
    /// Lanes begun ahead of the one whose turn it is.
    ahead: usize,
    /// The most bytes that wait.
    bytes_max: u64,
}

struct State {
    /// How many lanes there are, the next one to begin, and the one whose turn it is.
    total: usize,
    next: usize,
    turn: usize,
    /// Threads that no lane has taken.
    free: usize,
    /// The lanes that were begun, and are not taken to their end.
    lanes: BTreeMap<usize, Lane>,
    /// Bytes that wait.
    bytes: u64,
    is_over: bool,
}

/// What of a lane waits to be taken.
#[derive(Default)]
struct Lane {
    batches: VecDeque<Waiting>,
    /// How the lane ended, once it has.
    ended: Option<Result<()>>,
}

/// A batch that waits, and its bytes.
struct Waiting {
    bytes: u64,
    batch: Batch,
    read: u64,
}

/// The next batch, or an error with the number of its lane.
pub(crate) type Taken = Result<Option<Next>, (usize, Error)>;

/// A batch that is taken.
pub(crate) struct Next {
    pub(crate) lane: usize,
    pub(crate) batch: Batch,
    /// The bytes of input that were read when it was made.
    pub(crate) read: u64,
}

impl Lanes {
    /// `total` lanes for so many threads; `usize::MAX` if it is not known [yet](Lanes::close) how many there are.
    /// `ahead` lanes for each thread are begun before their turn.
    pub(crate) fn new(total: usize, threads: usize, ahead: usize, bytes_max: u64) -> Lanes {
        let state = State {
            total,
            next: 0,
            turn: 0,
            free: threads,
            lanes: BTreeMap::new(),
            bytes: 0,
            is_over: false,
        };
        let ahead = threads.saturating_mul(ahead);
        Lanes { state: Mutex::new(state), changed: Condvar::new(), ahead, bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic is done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the next lane, once one may be. `threads` is how many a lane would like; it gets as many as are free.
    /// `None` if there are no more, or nobody wants them.
    pub(crate) fn begin(&self, threads: impl Fn(usize) -> usize) -> Option<(usize, usize)> {
        let mut state = self.lock();
        loop {
            if state.is_over || state.next >= state.total {
                return None;
            }
            let is_far = state.next >= state.turn.saturating_add(self.ahead);
            let may_begin = state.lanes.is_empty() || !(is_far || state.bytes >= self.bytes_max);
            if may_begin && state.free > 0 {
                let lane = state.next;
                let threads = threads(lane).clamp(1, state.free);
                state.next += 1;
                state.free -= threads;
                state.lanes.insert(lane, Lane::default());
                return Some((lane, threads));
            }
            state = self.wait(state);
        }
    }

    /// Lets a batch wait to be taken, for which so many bytes of input were `read`. False when nobody wants more.
    pub(crate) fn put(&self, lane: usize, batch: Batch, read: u64) -> bool {
        let bytes = bytes_of(&batch);
        let mut state = self.lock();
        loop {
            if state.is_over {
                return false;
            }
            let waiting = state.lanes.get(&lane).map_or(0, |lane| lane.batches.len());
            let has_room = state.bytes + bytes <= self.bytes_max;
            let may_wait = match state.turn == lane {
                true => waiting < if has_room { TURN_BATCHES } else { 2 },
                false => has_room,
            };
            if may_wait {
                state.bytes += bytes;
                state.lanes.entry(lane).or_default().batches.push_back(Waiting { bytes, batch, read });
                self.changed.notify_all();
                return true;
            }
            state = self.wait(state);
        }
    }

    /// Ends a lane, and gives its threads back.
    pub(crate) fn end(&self, lane: usize, threads: usize, ended: Result<()>) {
        let mut state = self.lock();
        state.free += threads;
        if !state.is_over {
            state.lanes.entry(lane).or_default().ended = Some(ended);
        }
        self.changed.notify_all();
    }

    /// Lets no lane begin any more: those that were are all.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.total = state.total.min(state.next);
        self.changed.notify_all();
    }

    /// Takes the next batch.
    pub(crate) fn take(&self, cancel: &Cancel) -> Taken {
        let mut state = self.lock();
        loop {
            if state.turn == state.total {
                return Ok(None);
            }
            let turn = state.turn;
            if state.lanes.get(&turn).is_none_or(Lane::is_waited_for) {
                let (after, _) =
                    self.changed.wait_timeout(state, LOOK_UP_AFTER).unwrap_or_else(PoisonError::into_inner);
                state = after;
                // Whatever ended the wait: batches of other lanes may come more often than it times out.
                cancel.check().map_err(|error| (turn, error))?;
                continue;
            }
            let taken = state.lanes.get_mut(&turn).and_then(|lane| lane.batches.pop_front());
            if let Some(Waiting { bytes, batch, read }) = taken {
                state.bytes -= bytes;
                self.changed.notify_all();
                return Ok(Some(Next { lane: turn, batch, read }));
            }
            // The lane has ended, and all of it was taken.
            let ended = state.lanes.remove(&turn).and_then(|lane| lane.ended);
            state.turn += 1;
            self.changed.notify_all();
            if let Some(Err(error)) = ended {
                return Err((turn, error));
            }
        }
    }

    /// Nobody wants more.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.lanes.clear();
        self.changed.notify_all();
    }
}

impl Lane {
    /// Nothing can be taken yet.
    fn is_waited_for(&self) -> bool {
        self.batches.is_empty() && self.ended.is_none()
    }
}

/// Reads what may be buggy: a panic is an error, and neither a wait without an end nor an end of the rows.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Error::internal("the source has panicked while it was read")))
}

/// Starts a thread.
///
/// # Errors
///
/// [`Io`](marquetry_base::ErrorKind::Io) if it cannot be started.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = thread::Builder::new().name(name.to_string()).spawn(work);
    spawned.map(drop).map_err(|error| Error::io(format!("cannot start a thread: {error}")).caused_by(error))
}

/// Bytes of a batch, about: none takes none. The pages that strings point into, and dictionaries, are not counted:
/// several batches share them.
fn bytes_of(batch: &Batch) -> u64 {
    fn of_values(values: &Values) -> usize {
        match values {
            Values::Boolean(bits) => bits.len().div_ceil(8),
            Values::Int32(values) => size_of_val(&values[..]),
            Values::Int64(values) => size_of_val(&values[..]),
            Values::Float(values) => size_of_val(&values[..]),
            Values::Double(values) => size_of_val(&values[..]),
            Values::Int96(values) | Values::FixedLenByteArray(values) => values.bytes().len(),
            Values::ByteArray(values) => {
                size_of_val(&values.views()[..]) + values.iter().map(<[u8]>::len).sum::<usize>()
            }
            Values::Dictionary(indices, _) => size_of_val(&indices[..]),
        }
    }
    let columns = batch.columns.iter().map(|column| {
        let validity = column.validity.as_ref().map_or(0, |validity| validity.len().div_ceil(8));
        let levels = column.levels.as_ref().map_or(0, |levels| {
            levels.definition.len() + levels.repetition.as_ref().map_or(0, |levels| levels.len())
        });
        COLUMN_BYTES + of_values(&column.values) + validity + levels
    });
    columns.map(u64_of).sum::<u64>() + u64_of(size_of::<Batch>())
}
