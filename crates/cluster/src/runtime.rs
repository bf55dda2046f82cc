//! The runtime that the driver lives on: threads of its own, for which others wait.

use std::future::Future;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use marquetry_tables::Cancel;

use crate::error::{Error, Result};

/// How long to wait for an answer before checking whether the work was cancelled: a signal handler sets a flag, and
/// can wake nobody.
const LOOK_UP_AFTER: Duration = Duration::from_millis(50);

/// A runtime. It may be used and dropped on any thread, also on one that runs tasks of another runtime; that one then waits too.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// `None` once it is dropped.
    threads: Option<tokio::runtime::Runtime>,
    /// The process that they are of: one that is forked has none of them.
    process: u32,
    cancel: Cancel,
}

impl Runtime {
    /// Starts the threads. Whoever waits for them stops when `cancel` is set.
    pub(crate) fn start(cancel: Cancel) -> Result<Runtime> {
        let threads = tokio::runtime::Builder::new_multi_thread()
            .thread_name("marquetry-cluster")
            .enable_all()
            .build()
            .map_err(Error::Start)?;
        Ok(Runtime { threads: Some(threads), process: process::id(), cancel })
    }

    /// Runs a future on the runtime's threads, and waits for it on this one. When the work is cancelled, the future is
    /// abandoned where it waits.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`].
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let (done, answer) = mpsc::sync_channel(1);
        let task = self.spawn(async move {
            // Whoever waits is there.
            let _ = done.send(future.await);
        })?;
        self.wait_for(&answer, || task.abort())
    }

    /// The same, whether or not the work is cancelled: for what must be known, or undone.
    pub(crate) fn wait_through<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let (done, answer) = mpsc::sync_channel(1);
        self.spawn(async move {
            // Whoever waits is there.
            let _ = done.send(future.await);
        })?;
        answer.recv().map_err(|_| Error::Internal("a task panicked"))
    }

    /// Waits for what a task sends. Once the work is cancelled, `stop` asks the task to end soon, possibly several times.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it ended without an answer because of that.
    pub(crate) fn wait_for<T>(&self, answer: &mpsc::Receiver<T>, stop: impl Fn()) -> Result<T> {
        loop {
            match answer.recv_timeout(LOOK_UP_AFTER) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) if self.cancel.is_set() => stop(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.cancel.is_set() => return Err(Error::Cancelled),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Internal("a task panicked")),
            }
        }
    }

    /// Runs a future on the runtime's threads.
    pub(crate) fn spawn(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<tokio::task::JoinHandle<()>> {
        if self.process != process::id() {
            return Err(Error::Forked);
        }
        let threads = self.threads.as_ref().ok_or(Error::Internal("the runtime has ended"))?;
        Ok(threads.spawn(future))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.process != process::id() {
            // Its end is waited for by threads that are not here.
            std::mem::forget(self.threads.take());
        }
        if let Some(threads) = self.threads.take() {
            // To wait for its threads would panic on a thread that runs tasks; nothing that matters runs on them any more.
            threads.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn what_never_answers_is_abandoned() {
        let cancel = Cancel::new();
        let runtime = Runtime::start(cancel.clone()).unwrap();
        assert_eq!(runtime.wait(async { 7 }).unwrap(), 7);
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(120));
            cancel.cancel();
        });
        let started = Instant::now();
        let error = runtime.wait(std::future::pending::<()>()).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
        later.join().unwrap();
    }

    #[test]
    fn what_must_be_known_is_waited_for() {
        let cancel = Cancel::new();
        let runtime = Runtime::start(cancel.clone()).unwrap();
        cancel.cancel();
        let later = async {
            tokio::time::sleep(3 * LOOK_UP_AFTER).await;
            7
        };
        assert_eq!(runtime.wait_through(later).unwrap(), 7);
    }

    #[test]
    fn a_panic_is_not_waited_for() {
        let runtime = Runtime::start(Cancel::new()).unwrap();
        let error = runtime.wait(async { assert!(std::env::args().next().is_none(), "a bug") }).unwrap_err();
        assert!(matches!(error, Error::Internal(_)), "{error}");
    }
}
