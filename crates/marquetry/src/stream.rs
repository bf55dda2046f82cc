//! Rows as a stream, for asynchronous programs.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use futures_core::Stream;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Batch;
use tokio::sync::mpsc::{Receiver, channel};

use crate::Reader;

/// Batches that wait to be taken.
const BATCHES_AHEAD: usize = 2;

impl Reader {
    /// The rows as a stream, for any runtime: a thread of its own waits for them. Dropping the stream ends it.
    ///
    /// ```no_run
    /// use futures_util::StreamExt;
    ///
    /// # async fn example() -> marquetry::Result<()> {
    /// let mut batches = marquetry::open("trips.parquet")?.stream()?;
    /// while let Some(batch) = batches.next().await {
    ///     println!("{} rows", batch?.rows);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Io`](marquetry_base::ErrorKind::Io) if no thread can be started.
    pub fn stream(&self) -> Result<BatchStream> {
        let batches = self.batches()?;
        let (sender, receiver) = channel(BATCHES_AHEAD);
        let send = move || {
            // The end is sent, too: a thread that died sends none.
            for next in batches.map(Some).chain([None]) {
                // Nobody may want more.
                if sender.blocking_send(next).is_err() {
                    return;
                }
            }
        };
        let spawned = thread::Builder::new().name("marquetry-stream".to_string()).spawn(send);
        spawned.map_err(|error| Error::io(format!("cannot start a thread: {error}")).caused_by(error))?;
        Ok(BatchStream { receiver, is_over: false })
    }
}

/// The rows of a table as a stream: see [`Reader::stream`]. Dropping it ends the reading.
///
/// ```no_run
/// use futures_util::StreamExt;
/// use marquetry::BatchStream;
///
/// async fn count(batches: BatchStream) -> marquetry::Result<usize> {
///     let rows = batches.map(|batch| batch.map(|batch| batch.rows));
///     rows.fold(Ok(0), async |sum, rows| Ok(sum? + rows?)).await
/// }
/// ```
pub struct BatchStream {
    /// Batches, and `None` after the last.
    receiver: Receiver<Option<Result<Batch>>>,
    is_over: bool,
}

impl Stream for BatchStream {
    type Item = Result<Batch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Batch>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let next = ready!(self.receiver.poll_recv(context))
            .unwrap_or_else(|| Some(Err(Error::internal("the thread that reads the rows has panicked"))));
        self.is_over = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}
