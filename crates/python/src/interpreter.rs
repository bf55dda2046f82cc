//! The interpreter, for what other libraries call through C.

use pyo3::ffi;
use pyo3::prelude::*;

/// Does work with the interpreter, in a call that comes through C. PyO3 counts how often a thread got the interpreter from it, and does not see that a
/// library which was called since, such as pyarrow, releases it while it reads a stream: `Python::attach` would take it for held there. `None` where
/// there is no interpreter.
pub(crate) fn with_interpreter<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    // SAFETY: any thread may ask this at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: there is an interpreter. `Held` releases it on this thread, after `work`, also if that panics.
    let _held = Held(unsafe { ffi::PyGILState_Ensure() });
    Python::try_attach(work)
}

/// The interpreter is held, once more than before.
struct Held(ffi::PyGILState_STATE);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: `with_interpreter` made it of what `PyGILState_Ensure` returned, and drops it on the same thread, the last one first.
        unsafe { ffi::PyGILState_Release(self.0) }
    }
}
