//! SSTables that are written beside whoever makes the writes.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use marquetry_base::{Error, Result};
use marquetry_scylla::sstable::batch::MutationBatch;

use super::files::NewFiles;
use crate::Cancel;

/// Batches of writes that wait for the thread that writes them.
pub(super) const WRITES_WAITING: usize = 2;

/// The files of SSTables, and the thread that writes them, if there may be one.
pub(super) struct Writing {
    threads: usize,
    cancel: Cancel,
    /// `None` while a thread has them.
    files: Option<NewFiles>,
    thread: Option<Thread>,
}

struct Thread {
    writes: SyncSender<MutationBatch>,
    handle: JoinHandle<(NewFiles, Result<()>)>,
}

impl Writing {
    /// With one thread it is the caller's.
    pub(super) fn new(files: NewFiles, threads: usize, cancel: &Cancel) -> Writing {
        Writing { threads, cancel: cancel.clone(), files: Some(files), thread: None }
    }

    /// Writes a batch of the table, or has it written.
    ///
    /// # Errors
    ///
    /// Of this batch or one before it. Then the files are [settled](Writing::settle).
    pub(super) fn put(&mut self, writes: MutationBatch) -> Result<()> {
        if self.threads < 2 {
            let cancel = self.cancel.clone();
            return self.settle()?.put(writes, &cancel);
        }
        let thread = match &self.thread {
            Some(thread) => thread,
            None => {
                let files = self.files.take().ok_or_else(lost)?;
                self.thread.insert(Thread::start(files, self.cancel.clone())?)
            }
        };
        if thread.writes.send(writes).is_err() {
            self.settle()?;
            return Err(Error::internal("SSTables that nobody writes"));
        }
        Ok(())
    }

    /// Waits until all is written that was put.
    ///
    /// # Errors
    ///
    /// Of the first batch that could not be written; once.
    pub(super) fn settle(&mut self) -> Result<&mut NewFiles> {
        if let Some(Thread { writes, handle }) = self.thread.take() {
            drop(writes);
            let (files, written) = handle.join().map_err(|_| lost())?;
            self.files = Some(files);
            written?;
        }
        self.files.as_mut().ok_or_else(lost)
    }

    /// The files, once all is written.
    ///
    /// # Errors
    ///
    /// As [`settle`](Writing::settle)'s.
    pub(super) fn into_files(mut self) -> Result<NewFiles> {
        self.settle()?;
        self.files.take().ok_or_else(lost)
    }

    /// The row or bound that an error is about, once they are settled: see [`NewFiles::entry`].
    pub(super) fn entry(&self) -> Option<u64> {
        self.files.as_ref().and_then(NewFiles::entry)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // The directory must not be removed under a thread that writes to it. What went wrong does not matter any more.
        let _ = self.settle();
    }
}

impl Thread {
    fn start(mut files: NewFiles, cancel: Cancel) -> Result<Thread> {
        let (writes, to_write) = sync_channel::<MutationBatch>(WRITES_WAITING);
        let work = move || {
            let written = to_write.into_iter().try_for_each(|writes| files.put(writes, &cancel));
            (files, written)
        };
        let spawned = thread::Builder::new().name("marquetry-sstables".to_owned()).spawn(work);
        let handle =
            spawned.map_err(|error| Error::io(format!("cannot start a thread: {error}")).caused_by(error))?;
        Ok(Thread { writes, handle })
    }
}

#[cold]
fn lost() -> Error {
    Error::internal("a thread that writes SSTables has panicked")
}
