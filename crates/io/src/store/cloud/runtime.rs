//! The runtime on which requests are made, on threads of its own, and how others wait for them.

use std::fmt;
use std::future::Future;
use std::io;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use marquetry_base::{Error, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::failure::said;

/// Threads that encrypt, decrypt and pass bytes on: one processor does a gigabyte a second.
const THREADS: usize = 2;
/// How long a request is waited for before its waiter looks whether it was cancelled.
const ASKED_AFTER: Duration = Duration::from_millis(20);

/// Whether what waits should not wait any more.
#[derive(Clone)]
pub(super) struct Cancelled(Arc<dyn Fn() -> bool + Send + Sync>);

impl Cancelled {
    pub(super) fn by(is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Cancelled {
        Cancelled(Arc::new(is_cancelled))
    }

    pub(super) fn never() -> Cancelled {
        Cancelled::by(|| false)
    }

    /// Set if this is, or `is_cancelled`.
    pub(super) fn or(&self, is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Cancelled {
        let before = self.clone();
        Cancelled::by(move || before.is_set() || is_cancelled())
    }

    pub(super) fn is_set(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set() { "cancelled" } else { "not cancelled" })
    }
}

/// Work that was started on the runtime. Dropped, it ends.
pub(super) struct Pending<T> {
    answer: Receiver<T>,
    task: AbortHandle,
}

/// Starts work.
///
/// # Errors
///
/// `Io` if there can be no runtime; `Misuse` in a process that was forked from one that has it.
pub(super) fn start<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<Pending<T>> {
    let (sender, answer) = sync_channel(1);
    let task = runtime()?.spawn(async move {
        // Nobody may wait for it any more.
        let _ = sender.send(work.await);
    });
    Ok(Pending { answer, task: task.abort_handle() })
}

/// Does work, and waits for it.
///
/// # Errors
///
/// As [`start`] and [`Pending::wait`].
pub(super) fn wait<T: Send + 'static>(
    cancelled: &Cancelled,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    start(work)?.wait(cancelled)
}

impl<T> Pending<T> {
    /// Waits for the answer; it can be got once.
    ///
    /// # Errors
    ///
    /// `Cancelled`.
    pub(super) fn wait(&self, cancelled: &Cancelled) -> Result<T> {
        loop {
            match self.answer.recv_timeout(ASKED_AFTER) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) if cancelled.is_set() => return Err(Error::cancelled()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("a request ended without an answer"));
                }
            }
        }
    }

    /// The answer, if it comes in this time.
    pub(super) fn wait_at_most(&self, time: Duration) -> Option<T> {
        self.answer.recv_timeout(time).ok()
    }

    /// The answer, if it is there.
    pub(super) fn try_get(&self) -> Option<T> {
        self.answer.try_recv().ok()
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One runtime for the process: connections are kept for whoever asks the same server next.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<(u32, io::Result<Runtime>)> = OnceLock::new();
    let (process, made) = RUNTIME.get_or_init(|| {
        // What speaks TLS. A program that has chosen another provider keeps it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("marquetry-objects")
            .enable_all()
            .build();
        (process::id(), made)
    });
    if *process != process::id() {
        // A child that was forked has the runtime, and none of its threads.
        return Err(Error::misuse(
            "requests are made by threads of the process that was forked: open stores in the child alone, or start it anew",
        ));
    }
    made.as_ref()
        .map_err(|error| Error::io(format!("no thread for requests could be started: {}", said(error))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn what_waits_can_be_cancelled() {
        assert_eq!(wait(&Cancelled::never(), async { 7 }).unwrap(), 7);
        let flag = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&flag);
        let cancelled = Cancelled::by(move || asked.load(Ordering::Relaxed));
        let elsewhere = std::thread::spawn(move || flag.store(true, Ordering::Relaxed));
        let error = wait(&cancelled, std::future::pending::<()>()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        elsewhere.join().unwrap();
    }

    #[test]
    fn what_nobody_waits_for_ends() {
        struct Ended(std::sync::mpsc::Sender<()>);
        impl Drop for Ended {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (sender, ended) = std::sync::mpsc::channel();
        let guard = Ended(sender);
        drop(start(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        }));
        ended.recv().unwrap();
    }
}
