//! Threads that print batches side by side; their lines come out in the batches' order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Batch;

use crate::gather::GATHERED_BYTES;
use crate::subject::of_rows;

/// The most bytes of lines that wait to be written, over all threads, and of one thread: those of a batch of long rows, so
/// that each thread can print one while another's is written.
const WAITING_BYTES_MAX: usize = 64 << 20;
const WAITING_BYTES_OF_THREAD_MAX: usize = 16 << 20;
/// Batches that are handed to a thread before the lines of the first are taken: it prints the next at once.
const BATCHES_OF_THREAD: usize = 2;

/// What prints the lines of batches, one after the other.
pub(super) trait Print: Send + 'static {
    /// Takes a batch.
    fn feed(&mut self, batch: Batch) -> Result<()>;

    /// Appends lines until there are about `bytes` more. True if no row of the batch is left.
    fn write(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<bool>;
}

/// Threads, each with a printer of its own, which take turns. It is used so:
///
/// 1. while it [is full](Printing::is_full), [`take`](Printing::take) lines;
/// 2. [`put`](Printing::put) a batch;
/// 3. in the end, take lines until there are none.
pub(super) struct Printing {
    threads: Vec<Thread>,
    /// The thread that gets the next batch.
    next: usize,
    /// Whose lines were not all taken, in the order of the batches.
    open: VecDeque<Open>,
}

/// A batch that was put.
struct Open {
    thread: usize,
    /// The object that its rows come from.
    subject: Arc<str>,
    rows: usize,
}

struct Thread {
    batches: SyncSender<Batch>,
    printed: Receiver<Printed>,
    /// Memory of lines that were written, to be used again.
    used: SyncSender<Vec<u8>>,
    handle: JoinHandle<()>,
}

enum Printed {
    Lines(Vec<u8>),
    /// The batch has ended.
    End(Result<()>),
}

/// What [`Printing::take`] found.
pub(super) enum Taken {
    /// Lines of the first batch that is open.
    Lines(Vec<u8>),
    /// All lines of that batch were taken: of so many rows.
    End(usize),
    /// Nothing is open.
    Nothing,
}

impl Printing {
    /// One thread for each printer.
    ///
    /// # Errors
    ///
    /// `Io` if one cannot be started.
    pub(super) fn start<P: Print>(printers: impl IntoIterator<Item = P>) -> Result<Printing> {
        let printers: Vec<P> = printers.into_iter().collect();
        let bytes = (WAITING_BYTES_MAX / printers.len().max(1)).min(WAITING_BYTES_OF_THREAD_MAX);
        let waiting = (bytes / GATHERED_BYTES).max(2);
        let mut printing = Printing { threads: Vec::new(), next: 0, open: VecDeque::new() };
        for printer in printers {
            printing.threads.push(Thread::start(printer, waiting)?);
        }
        Ok(printing)
    }

    /// Whether lines must be taken before the next batch is put.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= BATCHES_OF_THREAD * self.threads.len()
    }

    /// Gives the next batch to a thread.
    pub(super) fn put(&mut self, batch: Batch, subject: &Arc<str>) -> Result<()> {
        let thread = self.next;
        self.next = (thread + 1) % self.threads.len();
        let rows = batch.rows;
        self.threads[thread].batches.send(batch).map_err(|_| has_panicked())?;
        self.open.push_back(Open { thread, subject: Arc::clone(subject), rows });
        Ok(())
    }

    /// The next lines; waits for them.
    ///
    /// # Errors
    ///
    /// The printer's, after all lines before the faulty row, and with the object that it comes from.
    pub(super) fn take(&mut self) -> Result<Taken> {
        let Some(open) = self.open.front() else { return Ok(Taken::Nothing) };
        match self.threads[open.thread].printed.recv().map_err(|_| has_panicked())? {
            Printed::Lines(lines) => Ok(Taken::Lines(lines)),
            Printed::End(ended) => {
                let (subject, rows) = (Arc::clone(&open.subject), open.rows);
                self.open.pop_front();
                ended.map_err(|error| of_rows(error, &subject))?;
                Ok(Taken::End(rows))
            }
        }
    }

    /// Returns the memory of lines that were [taken](Printing::take), before more are.
    pub(super) fn reuse(&mut self, lines: Vec<u8>) {
        if let Some(open) = self.open.front() {
            // With enough of it there, it is freed.
            let _ = self.threads[open.thread].used.try_send(lines);
        }
    }
}

impl fmt::Debug for Printing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Printing").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl Drop for Printing {
    fn drop(&mut self) {
        for Thread { batches, printed, used, handle } in self.threads.drain(..) {
            drop((batches, printed, used));
            // A thread that has panicked was reported when its lines were missing.
            let _ = handle.join();
        }
    }
}

impl Thread {
    fn start(mut printer: impl Print, waiting: usize) -> Result<Thread> {
        let (batches, to_print) = sync_channel::<Batch>(BATCHES_OF_THREAD);
        let (print, printed) = sync_channel(waiting);
        let (used, unused) = sync_channel::<Vec<u8>>(waiting);
        let work = move || {
            for batch in to_print {
                let mut lines = unused.try_recv().unwrap_or_default();
                let mut fed = Some(batch);
                loop {
                    lines.clear();
                    let written = fed.take().map_or(Ok(()), |batch| printer.feed(batch));
                    let written = written.and_then(|()| printer.write(&mut lines, GATHERED_BYTES));
                    // Those of rows before the faulty one, too.
                    if print.send(Printed::Lines(lines)).is_err() {
                        return;
                    }
                    let ended = match written {
                        Ok(false) => None,
                        Ok(true) => Some(Ok(())),
                        Err(error) => Some(Err(error)),
                    };
                    if let Some(ended) = ended {
                        if print.send(Printed::End(ended)).is_err() {
                            return;
                        }
                        break;
                    }
                    lines = unused.try_recv().unwrap_or_default();
                }
            }
        };
        let spawned = thread::Builder::new().name("marquetry-printer".to_owned()).spawn(work);
        let handle =
            spawned.map_err(|error| Error::io(format!("cannot start a thread: {error}")).caused_by(error))?;
        Ok(Thread { batches, printed, used, handle })
    }
}

#[cold]
fn has_panicked() -> Error {
    Error::internal("a thread that prints has panicked")
}
