//! Columns of row groups side by side: each thread reads some of them, and their batches are joined.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marquetry_base::cast::u64_of;
use marquetry_base::{Codecs, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::drive;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::read::{BatchReader, ReadOptions};

use super::parquet::{FILE, ParquetFile, Sources};
use crate::Cancel;
use crate::lanes::{guarded, spawn};

/// Parts that the columns are divided into, per thread: whichever is behind is read next, so that threads have the same
/// work although columns do not.
const PARTS_PER_THREAD: usize = 4;
/// Batches of a part that wait for the others.
const WAITING_BATCHES: usize = 2;
/// What a column chunk costs beside its bytes, in bytes.
const CHUNK_BYTES: u64 = 4 << 10;
/// Bytes of a chunk that are worth a read.
const READ_BYTES_MIN: u64 = 1 << 20;
/// How long to wait for a batch before checking whether the work was cancelled.
const LOOK_UP_AFTER: Duration = Duration::from_millis(100);

/// The rows of row groups, some columns of which each thread reads.
///
/// What waits is bounded by the columns and the rows of a batch, however many threads there are.
pub(super) struct SideBySide {
    shared: Arc<Shared>,
    /// For each part the columns' places in a batch, and what of its last batch is not handed out.
    parts: Vec<(Vec<usize>, Option<Batch>)>,
    cancel: Cancel,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parts: Vec<Part>,
    is_over: bool,
}

/// Some of the columns.
struct Part {
    /// `None` while a thread has it, and at its end.
    reader: Option<Box<BatchReader>>,
    /// Rows that were read, and of them, those that wait.
    rows: u64,
    waiting: VecDeque<Batch>,
    /// How it ended, once it has.
    ended: Option<Result<()>>,
}

impl SideBySide {
    /// Reads these leaves, of which there are several, by so many threads.
    ///
    /// # Errors
    ///
    /// `Io` if the file cannot be read, was changed, or a thread cannot be started; those of [`BatchReader::new`].
    pub(super) fn new(
        file: &ParquetFile,
        leaves: &[usize],
        options: &ReadOptions,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<SideBySide> {
        let groups = options.row_groups.clone().unwrap_or(0..file.metadata().row_groups.len());
        let parts = divided(&chunk_bytes(file, leaves, &groups), threads * PARTS_PER_THREAD);
        let mut options = options.clone();
        // As many rows as one reader of all of them would return.
        let all = file.metadata().schema.leaves();
        options.batch_rows = options.batch_rows_of(leaves.iter().filter_map(|leaf| all.get(*leaf)));
        // What is read at a time is held: of all parts together it is what one reader asks for, while that is not little.
        let at_once = options.read_bytes / u64_of(parts.len().max(1));
        options.read_bytes = options.read_bytes.min(at_once.max(READ_BYTES_MIN));
        // Together the parts may hold what a reader for each thread might.
        let (_, total) = options.limits.total_of(file.bytes(), u64_of(leaves.len()));
        options.limits.total_bytes = total / u64_of(parts.len().div_ceil(threads).max(1));
        let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(file.limits()));
        let part = |places: &Vec<usize>| {
            let leaves = places.iter().filter_map(|place| leaves.get(*place)).copied().collect();
            let options = ReadOptions { leaves: Some(leaves), ..options.clone() };
            let reader = BatchReader::new(FILE, Arc::clone(file.metadata()), Arc::clone(&codecs), options)?;
            Ok(Part { reader: Some(Box::new(reader)), rows: 0, waiting: VecDeque::new(), ended: None })
        };
        let state = State { parts: parts.iter().map(part).collect::<Result<_>>()?, is_over: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let threads = threads.min(parts.len());
        // It ends the threads if not all can be started.
        let parts = parts.into_iter().map(|places| (places, None)).collect();
        let columns = SideBySide { shared: Arc::clone(&shared), parts, cancel: cancel.clone() };
        for _ in 0..threads {
            let (shared, sources) = (Arc::clone(&shared), file.sources(cancel)?);
            spawn("marquetry-columns", move || shared.work(&sources))?;
        }
        Ok(columns)
    }

    /// How many threads there are, also after it is dropped.
    #[cfg(test)]
    pub(super) fn threads(&self) -> impl Fn() -> usize + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || shared.strong_count()
    }

    /// The next rows.
    ///
    /// # Errors
    ///
    /// Those of some part: which one of several errors it is may differ from time to time.
    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        self.cancel.check()?;
        if !self.shared.take(&mut self.parts, &self.cancel)? {
            return Ok(None);
        }
        let heads = || self.parts.iter().filter_map(|(_, head)| head.as_ref());
        let Some(first) = heads().next() else { return Ok(None) };
        let rows = heads().map(|head| head.rows).fold(first.rows, usize::min);
        let mut joined = Batch { rows, columns: Vec::new(), ..*first };
        let mut columns: Vec<_> = self.parts.iter().flat_map(|(places, _)| places).map(|_| None).collect();
        for (places, head) in &mut self.parts {
            let Some(batch) = head.take() else { continue };
            let taken = if batch.rows > rows {
                *head = Some(batch.slice(rows..batch.rows));
                batch.slice(0..rows)
            } else {
                batch
            };
            for (place, column) in places.iter().zip(taken.columns) {
                if let Some(at) = columns.get_mut(*place) {
                    *at = Some(column);
                }
            }
        }
        joined.columns = columns.into_iter().flatten().collect();
        Ok(Some(joined))
    }
}

impl Drop for SideBySide {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic is done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a batch of the part that is behind, again and again.
    fn work(&self, sources: &Sources) {
        let mut state = self.lock();
        loop {
            if state.is_over || state.parts.iter().all(|part| part.ended.is_some()) {
                return;
            }
            let behind = state
                .parts
                .iter_mut()
                .enumerate()
                .filter(|(_, part)| part.reader.is_some() && part.waiting.len() < WAITING_BATCHES)
                .min_by_key(|(_, part)| part.rows)
                .and_then(|(at, part)| Some((at, part.reader.take()?)));
            let Some((at, mut reader)) = behind else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let next = guarded(|| drive(&mut *reader, sources));
            state = self.lock();
            let Some(part) = state.parts.get_mut(at) else { return };
            match next {
                Ok(Some(batch)) => {
                    part.rows += u64_of(batch.rows);
                    part.waiting.push_back(batch);
                    part.reader = Some(reader);
                }
                Ok(None) => part.ended = Some(Ok(())),
                Err(error) => part.ended = Some(Err(error)),
            }
            self.changed.notify_all();
        }
    }

    /// Takes a batch for each part that has none. False at the end of all.
    fn take(&self, parts: &mut [(Vec<usize>, Option<Batch>)], cancel: &Cancel) -> Result<bool> {
        let mut state = self.lock();
        loop {
            let (mut is_waiting, mut ended) = (false, 0);
            for (part, (_, head)) in state.parts.iter_mut().zip(&mut *parts) {
                if head.is_none() {
                    *head = part.waiting.pop_front();
                    match (&head, &part.ended) {
                        (Some(_), _) => self.changed.notify_all(),
                        (None, Some(Ok(()))) => ended += 1,
                        (None, Some(Err(error))) => return Err(error.clone()),
                        (None, None) => is_waiting = true,
                    }
                }
            }
            if !is_waiting {
                return match ended {
                    0 => Ok(true),
                    _ if ended == parts.len() => Ok(false),
                    _ => Err(Error::internal("columns of different numbers of rows")),
                };
            }
            let (after, _) =
                self.changed.wait_timeout(state, LOOK_UP_AFTER).unwrap_or_else(PoisonError::into_inner);
            state = after;
            cancel.check()?;
        }
    }
}

/// What reading each of these leaves costs, about.
fn chunk_bytes(file: &ParquetFile, leaves: &[usize], groups: &Range<usize>) -> Vec<u64> {
    let mut bytes = vec![0_u64; leaves.len()];
    for group in groups.clone().filter_map(|group| file.metadata().row_groups.get(group)) {
        for (bytes, leaf) in bytes.iter_mut().zip(leaves) {
            let chunk = group.columns.get(*leaf);
            *bytes = bytes.saturating_add(chunk.map_or(0, |chunk| chunk.compressed_bytes + CHUNK_BYTES));
        }
    }
    bytes
}

/// Divides columns of so many bytes into at most `parts` parts of about as many. Each is in order.
fn divided(bytes: &[u64], parts: usize) -> Vec<Vec<usize>> {
    let mut divided = vec![(0_u64, Vec::new()); parts.clamp(1, bytes.len().max(1))];
    let mut largest_first: Vec<(usize, u64)> = bytes.iter().copied().enumerate().collect();
    largest_first.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    for (place, bytes) in largest_first {
        if let Some((all, places)) = divided.iter_mut().min_by_key(|(all, places)| (*all, places.len())) {
            *all = all.saturating_add(bytes);
            places.push(place);
        }
    }
    divided
        .into_iter()
        .map(|(_, mut places)| {
            places.sort_unstable();
            places
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_divided_by_their_bytes() {
        assert_eq!(divided(&[5, 9, 1, 4], 2), [vec![1, 2], vec![0, 3]]);
        assert_eq!(divided(&[1, 1, 1], 8).concat().len(), 3);
        assert_eq!(divided(&[0, 0, 0, 0], 2).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(divided(&[u64::MAX, u64::MAX, 1], 1), [vec![0, 1, 2]]);
    }
}
