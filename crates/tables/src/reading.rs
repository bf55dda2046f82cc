//! Reading the pieces of a source in parallel.

use std::sync::Arc;
use std::thread;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Failed, Result};
use marquetry_parquet::batch::Batch;

use crate::lanes::{Lanes, Next, Taken, WAITING_BYTES_MAX, guarded, spawn};
use crate::source::open_piece;
use crate::subject::named;
use crate::{Batches, Cancel, Piece, PieceOptions, Source};

/// The most bytes of batches that wait, per thread: with more of them nothing was faster.
const WAITING_BYTES_OF_THREAD: u64 = 8 << 20;
/// A batch takes this part of [`ReadingOptions::waiting_bytes`] at most, however large its rows are and however many threads there
/// are; but none is made smaller than this for it.
const WAITING_BATCHES: u64 = 8;
const BATCH_BYTES_MIN: u64 = 256 << 10;
/// Pieces started ahead of the one whose turn it is, per thread: for small pieces.
const PIECES_AHEAD: usize = 4;
/// With fewer rows than this, a thread is not worth its cost.
const FEW_ROWS: u64 = 8192;

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
    /// Threads that read. `None`: one per processor. 0: none; each batch is read when it is asked for. A piece that
    /// [can use several](Piece::splits) gets its part of them.
    pub threads: Option<usize>,
    /// About how many bytes of batches wait to be taken: 8 MiB for each thread at most. `None`: 64 MiB.
    pub waiting_bytes: Option<u64>,
    /// Cancels the reading, of whatever it waits for: the pieces are opened with it
    /// ([`PieceOptions::cancel`]).
    pub cancel: Cancel,
}

/// The rows of a source: threads read its pieces in parallel, and batches are handed out in the source's order.
///
/// The batches that wait to be taken are bounded in bytes, over all threads. What is read does not depend on the number
/// of threads, and neither does the first error. Dropping it lets its threads end by
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
    /// The bytes of input that were read for the batches that were handed out.
    bytes_read: u64,
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
    Elsewhere(Arc<Lanes>),
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
        let threads = threads.unwrap_or_else(processors);
        let threads = if left <= FEW_ROWS || wanted == 0 { 0 } else { threads };
        if threads == 0 {
            let how = How::Here { options: piece_options, piece: 0, open: None };
            return Ok(Reading {
                source,
                how,
                left,
                bytes_read: 0,
                cancel,
                pieces_end,
                is_over: false,
                failed: Failed::default(),
            });
        }
        let readers = threads.min(wanted);
        let waiting_bytes = waiting_bytes.min(WAITING_BYTES_OF_THREAD.saturating_mul(u64_of(threads)));
        let lanes = Arc::new(Lanes::new(wanted, threads, PIECES_AHEAD, waiting_bytes));
        let shares: Arc<[usize]> = shares(&source.pieces()[..wanted], threads).into();
        for _ in 0..readers {
            let (source, reader, shares) = (Arc::clone(&source), Arc::clone(&lanes), Arc::clone(&shares));
            let options = piece_options.clone();
            let spawned =
                spawn("marquetry-reader", move || read_pieces(&reader, source.as_ref(), &options, &shares));
            if let Err(error) = spawned {
                lanes.stop();
                return Err(error);
            }
        }
        let how = How::Elsewhere(lanes);
        let (is_over, failed) = (false, Failed::default());
        Ok(Reading { source, how, left, bytes_read: 0, cancel, pieces_end, is_over, failed })
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
            How::Elsewhere(lanes) => lanes.take(&self.cancel),
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
        let Some(Next { lane: piece, mut batch, read }) = taken else {
            self.end();
            return Ok(None);
        };
        self.bytes_read = self.bytes_read.max(read);
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        self.left -= u64_of(batch.rows);
        Ok(Some((piece, batch)))
    }

    /// The bytes of input that were read for the batches that were handed out: fewer than [counted](PieceOptions::bytes_read) where
    /// others wait. Those of pieces that are read side by side count as they are read.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
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
        if let How::Elsewhere(lanes) = &self.how {
            lanes.stop();
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

/// The processors that this process may use.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// How many threads each piece is worth: one that can use several gets its part of the bytes, or, if those of a piece
/// are unknown, of the pieces.
fn shares(pieces: &[Piece], threads: usize) -> Vec<usize> {
    let parts = pieces.iter().map(|piece| piece.bytes).collect::<Option<Vec<u64>>>();
    let parts = parts.unwrap_or_else(|| vec![1; pieces.len()]);
    let whole = parts.iter().map(|part| u128::from(*part)).sum::<u128>().max(1);
    let share = |(piece, part): (&Piece, u64)| {
        let rounded = (2 * u128::from(u64_of(threads)) * u128::from(part) + whole) / (2 * whole);
        if piece.splits { u64::try_from(rounded).ok().and_then(usize_of).unwrap_or(1).max(1) } else { 1 }
    };
    pieces.iter().zip(parts).map(share).collect()
}

/// Reads piece after piece into its lane, until there are none, or nobody wants more.
fn read_pieces(lanes: &Lanes, source: &dyn Source, options: &PieceOptions, shares: &[usize]) {
    while let Some((piece, threads)) = lanes.begin(|piece| shares.get(piece).copied().unwrap_or(1)) {
        let read = || {
            let mut open = OpenPiece::new(source, piece, &PieceOptions { threads, ..options.clone() })?;
            while let Some(batch) = open.next()? {
                if !lanes.put(piece, batch, options.bytes_read.get()) {
                    break;
                }
            }
            open.close()
        };
        lanes.end(piece, threads, read());
    }
}

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
            return Ok(Some(Next { lane: at, batch, read: options.bytes_read.get() }));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_get_their_part_of_the_threads() {
        let piece = |bytes| Piece { bytes, splits: true, ..Piece::of("") };
        let of = |all: &[u64]| all.iter().map(|bytes| piece(Some(*bytes))).collect::<Vec<_>>();
        assert_eq!(shares(&of(&[1000]), 8), [8]);
        assert_eq!(shares(&of(&[1, 999]), 2), [1, 2]);
        assert_eq!(shares(&of(&[10; 12]), 16), [1; 12]);
        assert_eq!(shares(&of(&[10, 10, 10]), 8), [3, 3, 3]);
        assert_eq!(shares(&of(&[0, 0]), 4), [1, 1]);
        assert_eq!(shares(&of(&[u64::MAX, u64::MAX]), 4), [2, 2]);
        // Where one is unknown, they are taken to be equal; where one cannot use them, it gets one.
        assert_eq!(shares(&[piece(Some(1)), piece(None)], 4), [2, 2]);
        assert_eq!(shares(&[Piece { splits: false, ..piece(Some(9)) }, piece(Some(1))], 10), [1, 1]);
    }
}
