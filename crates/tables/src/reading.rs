//! Reading the pieces of a source in parallel.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Failed, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Values};

use crate::source::open_piece;
use crate::subject::named;
use crate::{Batches, Cancel, PieceOptions, Source};

/// The most bytes of batches that wait to be taken, over all pieces. The piece whose turn it is may have two batches
/// more (and at most [`TURN_BATCHES`] in all), and each thread has one in hand: all of these in hand are half as much again, as batches are kept small enough.
pub(crate) const WAITING_BYTES_MAX: u64 = 64 << 20;
/// At least this many batches may wait, however large their rows are; but none is made smaller than this for it.
const WAITING_BATCHES: u64 = 8;
const BATCH_BYTES_MIN: u64 = 256 << 10;
/// At most this many batches of the piece whose turn it is wait: its thread is far enough ahead, and memory is used again
/// while it is still in a cache.
const TURN_BATCHES: usize = 4;
/// Bytes that a column of a batch takes besides what is in its buffers: itself, and the buffers' owners.
const COLUMN_BYTES: usize = size_of::<ColumnBatch>() + 128;
/// Pieces started ahead of the one whose turn it is, per thread: for small pieces.
const PIECES_AHEAD: usize = 4;
/// With fewer rows than this, a thread is not worth its cost.
const FEW_ROWS: u64 = 8192;
/// How long to wait for a batch before checking whether the work was cancelled.
const LOOK_UP_AFTER: Duration = Duration::from_millis(100);

/// How the pieces of a source are read.
///
/// ```
/// use marquetry_tables::{PieceOptions, ReadingOptions};
///
/// let mut options = ReadingOptions::default();
/// options.piece = PieceOptions::default().limited_to(1_000);
/// options.threads = Some(2);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReadingOptions {
    /// How each piece is read; a limit applies to all pieces together.
    pub piece: PieceOptions,
    /// Threads that read. `None`: one per processor. 0: none; each batch is read when it is asked for.
    pub threads: Option<usize>,
    /// About how many bytes of batches wait to be taken. `None`: 64 MiB.
    pub waiting_bytes: Option<u64>,
    /// Cancels the reading, of whatever it waits for: the pieces are opened with it
    /// ([`PieceOptions::cancel`]).
    pub cancel: Cancel,
}

/// The rows of a source: threads read its pieces in parallel, and batches are handed out in the source's order.
///
/// The batches that wait to be taken are bounded in bytes, over all threads. Dropping it lets its threads end by
/// themselves: [`PieceOptions::cancel`] is set for them, so one that waits for input lives only a little longer.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Reading, ReadingOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let mut reading = Reading::new(trips, ReadingOptions::default())?;
/// while let Some((piece, batch)) = reading.next_batch()? {
///     println!("{} rows of {}", batch.rows, reading.name_of(piece));
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reading {
    source: Arc<dyn Source>,
    how: How,
    /// Rows that are still wanted.
    left: u64,
    cancel: Cancel,
    /// What the pieces look at: it is set when no more rows are wanted, too.
    pieces_end: Cancel,
    is_over: bool,
    failed: Failed,
}

enum How {
    /// One piece after the other, on the thread that asks.
    Here { options: PieceOptions, piece: usize, open: Option<OpenPiece> },
    /// By threads.
    Elsewhere(Arc<Shared>),
}

impl Reading {
    /// Starts to read.
    ///
    /// # Errors
    ///
    /// [`Io`](marquetry_base::ErrorKind::Io) if no thread can be started.
    pub fn new(source: Arc<dyn Source>, options: ReadingOptions) -> Result<Reading> {
        let ReadingOptions { piece: mut piece_options, threads, waiting_bytes, cancel } = options;
        let waiting_bytes = waiting_bytes.unwrap_or(WAITING_BYTES_MAX);
        let pieces_end = cancel.child();
        piece_options.cancel = pieces_end.clone();
        // So several threads may have a batch in hand, and one may wait for each of them. Batches do not depend on the number
        // of threads, because what is written depends on them.
        let batch_bytes = (waiting_bytes / WAITING_BATCHES).max(BATCH_BYTES_MIN);
        piece_options.batch_bytes = Some(piece_options.batch_bytes.unwrap_or(u64::MAX).min(batch_bytes));
        let wanted = wanted_pieces(source.as_ref(), piece_options.limit);
        let left = piece_options.limit.unwrap_or(u64::MAX);
        let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        let threads = if left <= FEW_ROWS { 0 } else { threads.min(wanted) };
        if threads == 0 {
            let how = How::Here { options: piece_options, piece: 0, open: None };
            return Ok(Reading {
                source,
                how,
                left,
                cancel,
                pieces_end,
                is_over: false,
                failed: Failed::default(),
            });
        }
        let state = State { pieces: wanted, ..State::default() };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), threads, waiting_bytes });
        for _ in 0..threads {
            let (source, reader) = (Arc::clone(&source), Arc::clone(&shared));
            let options = piece_options.clone();
            let work = move || reader.work(source.as_ref(), &options);
            let spawned = thread::Builder::new().name("marquetry-reader".to_string()).spawn(work);
            if let Err(error) = spawned {
                shared.stop();
                return Err(Error::io(format!("cannot start a thread: {error}")).caused_by(error));
            }
        }
        let how = How::Elsewhere(shared);
        Ok(Reading { source, how, left, cancel, pieces_end, is_over: false, failed: Failed::default() })
    }

    /// The next rows, and the number of their piece. `None` at the end. Rows are numbered
    /// ([`Batch::first_row`]) as the [piece](crate::Piece::first_row) has it.
    ///
    /// # Errors
    ///
    /// The source's, which name their object.
    /// [`Cancelled`](marquetry_base::ErrorKind::Cancelled) if the work was cancelled. After an error, the same again.
    pub fn next_batch(&mut self) -> Result<Option<(usize, Batch)>> {
        Failed::run(self, |reading| &mut reading.failed, Reading::read_on)
    }

    fn read_on(&mut self) -> Result<Option<(usize, Batch)>> {
        self.cancel.check()?;
        if self.is_over || self.left == 0 {
            self.end();
            return Ok(None);
        }
        let next = match &mut self.how {
            How::Here { options, piece, open } => {
                next_here(self.source.as_ref(), options, piece, open, self.left)
            }
            How::Elsewhere(shared) => shared.take(&self.cancel),
        };
        let taken = match next {
            Ok(taken) => taken,
            Err((piece, error)) => {
                self.end();
                // What a thread failed with because it was to end is no error of its own.
                self.cancel.check()?;
                return Err(named(error, self.name_of(piece)));
            }
        };
        let Some((piece, mut batch)) = taken else {
            self.end();
            return Ok(None);
        };
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        self.left -= u64_of(batch.rows);
        Ok(Some((piece, batch)))
    }

    /// The object that a piece's rows come from, for errors.
    pub fn name_of(&self, piece: usize) -> &str {
        let name = self.source.pieces().get(piece).map_or("", |piece| &piece.name);
        if name.is_empty() { &self.source.table().name } else { name }
    }

    /// The name of the table that is read.
    pub(crate) fn table_name(&self) -> &str {
        &self.source.table().name
    }

    fn end(&mut self) {
        self.is_over = true;
        self.pieces_end.cancel();
        if let How::Elsewhere(shared) = &self.how {
            shared.stop();
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.end();
    }
}

/// Pieces that have the rows that are wanted: all, where it is not known how many rows they have.
fn wanted_pieces(source: &dyn Source, limit: Option<u64>) -> usize {
    let pieces = source.pieces();
    let Some(limit) = limit else { return pieces.len() };
    let mut rows = 0_u64;
    for (number, piece) in pieces.iter().enumerate() {
        if rows >= limit {
            return number;
        }
        rows = rows.saturating_add(piece.rows.unwrap_or(0));
    }
    pieces.len()
}

/// A batch and the number of its piece, or that with an error.
type Taken = Result<Option<(usize, Batch)>, (usize, Error)>;

fn next_here(
    source: &dyn Source,
    options: &PieceOptions,
    piece: &mut usize,
    open: &mut Option<OpenPiece>,
    left: u64,
) -> Taken {
    loop {
        let at = *piece;
        let batches = match open {
            Some(batches) => batches,
            None if at == source.pieces().len() => return Ok(None),
            None => {
                let limit = options.limit.map(|_| left);
                let options = PieceOptions { limit, ..options.clone() };
                open.insert(OpenPiece::new(source, at, &options).map_err(|error| (at, error))?)
            }
        };
        if let Some(batch) = batches.next().map_err(|error| (at, error))? {
            return Ok(Some((at, batch)));
        }
        *piece = at + 1;
        open.take().map_or(Ok(()), OpenPiece::close).map_err(|error| (at, error))?;
    }
}

/// A piece of a source that may be buggy: a panic in it is an error, and neither a wait without an end nor an end of
/// the rows.
struct OpenPiece(Option<Box<dyn Batches>>);

impl OpenPiece {
    fn new(source: &dyn Source, piece: usize, options: &PieceOptions) -> Result<OpenPiece> {
        guarded(|| open_piece(source, piece, options)).map(|batches| OpenPiece(Some(batches)))
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        let OpenPiece(batches) = self;
        guarded(|| batches.as_mut().map_or(Ok(None), |batches| batches.next()))
    }

    /// Drops it, after its last row.
    fn close(mut self) -> Result<()> {
        let batches = self.0.take();
        guarded(|| {
            drop(batches);
            Ok(())
        })
    }
}

impl Drop for OpenPiece {
    /// For rows that nobody wants any more.
    fn drop(&mut self) {
        let batches = self.0.take();
        // All that it is to hand out is there, or its error is returned already.
        let _ = guarded(|| {
            drop(batches);
            Ok(())
        });
    }
}

fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Error::internal("the source has panicked while it was read")))
}

/// The state shared between the reading threads and the consumer.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    threads: usize,
    waiting_bytes: u64,
}

#[derive(Default)]
struct State {
    /// Pieces to read, the next one to begin, and the one whose turn it is.
    pieces: usize,
    next: usize,
    turn: usize,
    /// The pieces that were begun, and are not taken to their end.
    lanes: BTreeMap<usize, Lane>,
    /// Bytes that wait.
    bytes: u64,
    is_over: bool,
}

/// What of a piece waits to be taken.
#[derive(Default)]
struct Lane {
    batches: VecDeque<(u64, Batch)>,
    /// How the piece ended, once it has.
    ended: Option<Result<()>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic is done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads piece after piece, until there are none, or nobody wants more.
    fn work(&self, source: &dyn Source, options: &PieceOptions) {
        while let Some(piece) = self.begin() {
            let read = || {
                let mut open = OpenPiece::new(source, piece, options)?;
                while let Some(batch) = open.next()? {
                    if !self.put(piece, batch) {
                        break;
                    }
                }
                open.close()
            };
            let ended = read();
            self.lock().lanes.entry(piece).or_default().ended = Some(ended);
            self.changed.notify_all();
        }
    }

    /// The next piece to read.
    fn begin(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.is_over || state.next == state.pieces {
                return None;
            }
            let is_far = state.next >= state.turn + self.threads * PIECES_AHEAD;
            if state.lanes.is_empty() || !(is_far || state.bytes >= self.waiting_bytes) {
                let piece = state.next;
                state.next += 1;
                state.lanes.insert(piece, Lane::default());
                return Some(piece);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets a batch wait to be taken. False when nobody wants more.
    fn put(&self, piece: usize, batch: Batch) -> bool {
        let bytes = bytes_of(&batch);
        let mut state = self.lock();
        loop {
            if state.is_over {
                return false;
            }
            let waiting = state.lanes.get(&piece).map_or(0, |lane| lane.batches.len());
            let has_room = state.bytes + bytes <= self.waiting_bytes;
            let may_wait = match state.turn == piece {
                true => waiting < if has_room { TURN_BATCHES } else { 2 },
                false => has_room,
            };
            if may_wait {
                state.bytes += bytes;
                state.lanes.entry(piece).or_default().batches.push_back((bytes, batch));
                self.changed.notify_all();
                return true;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the next batch.
    fn take(&self, cancel: &Cancel) -> Taken {
        let mut state = self.lock();
        loop {
            if state.turn == state.pieces {
                return Ok(None);
            }
            let turn = state.turn;
            if state.lanes.get(&turn).is_none_or(Lane::is_waited_for) {
                let (after, _) =
                    self.changed.wait_timeout(state, LOOK_UP_AFTER).unwrap_or_else(PoisonError::into_inner);
                state = after;
                // Whatever ended the wait: batches of other pieces may come more often than it times out.
                cancel.check().map_err(|error| (turn, error))?;
                continue;
            }
            let taken = state.lanes.get_mut(&turn).and_then(|lane| lane.batches.pop_front());
            if let Some((bytes, batch)) = taken {
                state.bytes -= bytes;
                self.changed.notify_all();
                return Ok(Some((turn, batch)));
            }
            // The piece has ended, and all of it was taken.
            let ended = state.lanes.remove(&turn).and_then(|lane| lane.ended);
            state.turn += 1;
            self.changed.notify_all();
            if let Some(Err(error)) = ended {
                return Err((turn, error));
            }
        }
    }

    fn stop(&self) {
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
