//! Rows as records to be sorted: made by threads side by side, and taken in the rows' order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::Mapping;
use marquetry_scylla::bridge::writes::{RowEncoder, RowRecords, RowStamp};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::Expiry;

use crate::Cancel;
use crate::stamps::{Stamps, write_time_after};
use crate::subject::of_rows;

/// Records that are handed over at a time, to be sorted, and their bytes.
pub(super) const RECORDS: usize = 8192;
pub(super) const RECORDS_BYTES: usize = 4 << 20;
/// Batches that are handed to a thread before the records of the first are taken: it goes on with the next at once.
const BATCHES_OF_THREAD: usize = 2;

/// Makes records of rows.
pub(super) struct Encoder {
    pub(super) mapping: Arc<Mapping>,
    pub(super) encoder: RowEncoder,
    pub(super) stamps: Arc<Stamps>,
    /// The first row's write time, unless a column has them.
    pub(super) first_write_time_us: i64,
    pub(super) ttl_s: u32,
    pub(super) now_s: u32,
    pub(super) records: RowRecords,
}

impl Encoder {
    /// The columns of the table.
    pub(super) fn columns(&self) -> &Arc<TableColumns> {
        self.encoder.columns()
    }

    /// Another one, which makes the same.
    pub(super) fn another(&self) -> Encoder {
        Encoder {
            mapping: Arc::clone(&self.mapping),
            encoder: self.encoder.clone(),
            stamps: Arc::clone(&self.stamps),
            records: RowRecords::default(),
            ..*self
        }
    }

    /// Makes records of rows, of which the first has this number among all, and hands over those that are enough. What is left of these is dropped.
    pub(super) fn encode(
        &mut self,
        (batch, first): (Batch, u64),
        cancel: &Cancel,
        take: &mut dyn FnMut(&mut RowRecords) -> Result<()>,
    ) -> Result<()> {
        let stamps = self.stamps.of(&batch);
        let mapping = Arc::clone(&self.mapping);
        let batch = mapping.assemble(batch)?;
        let mut batch = mapping.bind(&batch, first)?;
        for row in 0..batch.rows() {
            let number = batch.first_row().saturating_add(u64_of(row));
            let at = |error: Error| error.at(|place| place.row = place.row.or(Some(number)));
            let ordinal = first.saturating_add(u64_of(row));
            let write_time_us = match stamps.write_time_us(row).map_err(at)? {
                Some(write_time_us) => write_time_us,
                None => write_time_after(self.first_write_time_us, ordinal, 1).map_err(at)?,
            };
            let ttl_s = match stamps.ttl(row).map_err(at)? {
                Some(ttl_s) => u32::try_from(ttl_s).unwrap_or(0),
                None => self.ttl_s,
            };
            let expires = Expiry { ttl: ttl_s, local_deletion: self.now_s.saturating_add(ttl_s) };
            let stamp = RowStamp { write_time_us, expiry: (ttl_s > 0).then_some(expires) };
            self.encoder.add(&mut batch, row, stamp, &mut self.records)?;
            if self.records.len() >= RECORDS || self.records.bytes() >= RECORDS_BYTES {
                cancel.check()?;
                self.rest(take)?;
            }
        }
        Ok(())
    }

    /// Hands over the records that are left.
    pub(super) fn rest(&mut self, take: &mut dyn FnMut(&mut RowRecords) -> Result<()>) -> Result<()> {
        if !self.records.is_empty() {
            take(&mut self.records)?;
            self.records.clear();
        }
        Ok(())
    }
}

/// Threads, each with an encoder of its own, which take turns. It is used so:
///
/// 1. while it [is full](Encoding::is_full), [`take`](Encoding::take) records;
/// 2. [`put`](Encoding::put) a batch;
/// 3. in the end, take records until there are none.
pub(super) struct Encoding {
    threads: Vec<Thread>,
    /// The thread that gets the next batch.
    next: usize,
    /// Batches whose records were not taken: their thread, and the object that the rows come from.
    open: VecDeque<(usize, Arc<str>)>,
}

struct Thread {
    batches: SyncSender<(Batch, u64)>,
    encoded: Receiver<Result<Vec<RowRecords>>>,
    handle: JoinHandle<()>,
}

impl Encoding {
    /// # Errors
    ///
    /// `Io` if a thread cannot be started.
    pub(super) fn start(threads: usize, encoder: &Encoder, cancel: &Cancel) -> Result<Encoding> {
        let mut encoding = Encoding { threads: Vec::new(), next: 0, open: VecDeque::new() };
        for _ in 0..threads.max(1) {
            encoding.threads.push(Thread::start(encoder.another(), cancel.clone())?);
        }
        Ok(encoding)
    }

    /// Whether records must be taken before the next batch is put.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= BATCHES_OF_THREAD * self.threads.len()
    }

    /// Gives the next batch to a thread. Its first row has this number among all.
    pub(super) fn put(&mut self, batch: Batch, first: u64, subject: &Arc<str>) -> Result<()> {
        let thread = self.next;
        self.next = (thread + 1) % self.threads.len();
        self.threads[thread].batches.send((batch, first)).map_err(|_| has_panicked())?;
        self.open.push_back((thread, Arc::clone(subject)));
        Ok(())
    }

    /// The records of the first batch that is open; waits for them. `None`: there is none.
    ///
    /// # Errors
    ///
    /// The encoder's, with the object that the row comes from.
    pub(super) fn take(&mut self) -> Result<Option<Vec<RowRecords>>> {
        let Some((thread, subject)) = self.open.pop_front() else { return Ok(None) };
        let encoded = self.threads[thread].encoded.recv().map_err(|_| has_panicked())?;
        encoded.map(Some).map_err(|error| of_rows(error, &subject))
    }
}

impl Drop for Encoding {
    fn drop(&mut self) {
        for Thread { batches, encoded, handle } in self.threads.drain(..) {
            drop((batches, encoded));
            // A thread that has panicked was reported when its records were missing.
            let _ = handle.join();
        }
    }
}

impl Thread {
    fn start(mut encoder: Encoder, cancel: Cancel) -> Result<Thread> {
        let (batches, to_encode) = sync_channel::<(Batch, u64)>(BATCHES_OF_THREAD);
        let (encode, encoded) = sync_channel(BATCHES_OF_THREAD);
        let work = move || {
            for batch in to_encode {
                let mut made = Vec::new();
                let mut take = |records: &mut RowRecords| {
                    let another = records.another();
                    made.push(std::mem::replace(records, another));
                    Ok(())
                };
                let ended = encoder.encode(batch, &cancel, &mut take).and_then(|()| encoder.rest(&mut take));
                if encode.send(ended.map(|()| made)).is_err() {
                    return;
                }
            }
        };
        let spawned = thread::Builder::new().name("marquetry-encoder".to_owned()).spawn(work);
        let handle =
            spawned.map_err(|error| Error::io(format!("cannot start a thread: {error}")).caused_by(error))?;
        Ok(Thread { batches, encoded, handle })
    }
}

#[cold]
fn has_panicked() -> Error {
    Error::internal("a thread that encodes rows has panicked")
}
