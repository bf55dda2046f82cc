//! Long work: it runs without the interpreter, and ends soon after Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use marquetry::tables::Cancel;
use marquetry::{Error, Result};
use pyo3::prelude::*;

use crate::error::raised;
use crate::interpreter::with_interpreter;

/// Signals are looked for this often: nobody notices, and it costs nothing.
const LOOK_UP_AFTER: Duration = Duration::from_millis(50);

/// Does work on a thread of its own. Meanwhile this one looks for signals, and calls `look`; an exception of either cancels the
/// work, and is raised when it has ended: what is written has settled then.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T> + Send + 'static,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    let spawned = thread::Builder::new().name("marquetry-python".to_owned()).spawn(move || {
        // Nobody waits any more only if this process ends.
        let _ = sender.send(work());
    });
    let started = spawned.map_err(|error| Error::io(format!("cannot start a thread: {error}")));
    started.map_err(|error| raised(py, &error))?;
    // The receiver is only used from here, and the closure may only take what is shared between threads.
    let receiver = Mutex::new(receiver);
    let mut stopped: Option<PyErr> = None;
    loop {
        let received =
            py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK_UP_AFTER));
        let ended = match received {
            Ok(ended) => ended,
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::internal("the thread that did the work has panicked"))
            }
            Err(RecvTimeoutError::Timeout) => {
                if stopped.is_none()
                    && let Err(raised) = py.check_signals().and_then(|()| look(py))
                {
                    cancel.cancel();
                    stopped = Some(raised);
                }
                continue;
            }
        };
        return match stopped {
            // It may have been done already: what it did stands, and the exception is raised all the same.
            Some(raised) => Err(raised),
            None => ended.map_err(|error| raised(py, &error)),
        };
    }
}

/// Calls what may raise an exception, which ends the work, if there is such a thing.
pub(crate) fn called(stop: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    stop.map_or(Ok(()), |stop| stop.call0().map(drop))
}

/// Looks for signals from within work that is done on the thread that asked for it.
#[derive(Clone)]
pub(crate) struct Signals(Arc<Looking>);

struct Looking {
    thread: ThreadId,
    state: Mutex<(Instant, Option<PyErr>)>,
    /// Another thread has ended the work.
    is_ended: AtomicBool,
}

impl Signals {
    /// For work of this thread.
    pub(crate) fn of_this_thread() -> Signals {
        let state = Mutex::new((Instant::now(), None));
        Signals(Arc::new(Looking { thread: thread::current().id(), state, is_ended: AtomicBool::new(false) }))
    }

    /// What ends the work when there is a signal.
    pub(crate) fn cancel(&self) -> Cancel {
        let signals = self.clone();
        Cancel::when(move || signals.is_raised())
    }

    /// Ends the work, whichever thread it is done on: it is cancelled.
    pub(crate) fn end(&self) {
        self.0.is_ended.store(true, Ordering::Relaxed);
    }

    /// Whether they are looked for on this thread.
    pub(crate) fn are_of_this_thread(&self) -> bool {
        thread::current().id() == self.0.thread
    }

    /// What a signal's handler raised.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }

    /// Whether the work was ended, or a signal's handler has raised something. Only the thread that asked for the work may wait for the interpreter
    /// here: another one may be what the holder of the interpreter waits for.
    fn is_raised(&self) -> bool {
        if self.0.is_ended.load(Ordering::Relaxed) {
            return true;
        }
        let lock = || self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = {
            let (looked, raised) = &mut *lock();
            if raised.is_some() {
                return true;
            }
            let is_due = self.are_of_this_thread() && looked.elapsed() >= LOOK_UP_AFTER;
            if is_due {
                *looked = Instant::now();
            }
            is_due
        };
        if !is_due {
            return false;
        }
        // Handlers are Python's, and may do anything: nothing is locked meanwhile.
        let raised = with_interpreter(|py| py.check_signals().err()).flatten();
        let is_raised = raised.is_some();
        lock().1 = raised;
        is_raised
    }
}
