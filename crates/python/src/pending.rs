//! What a signal's handler raised while another library read a stream, which has no way to pass it on.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::with_interpreter;

/// An exception that Python raises as soon as its main thread executes bytecode again, unless it is raised before that.
pub(crate) struct Pending {
    raised: Arc<Slot>,
    /// Debug builds of CPython end a process if what frees an object changes the exception that is under way.
    may_replace: bool,
}

/// `None` once it is raised.
type Slot = Mutex<Option<PyErr>>;

impl Pending {
    /// The handler is not called again for it, as it is for a signal that is set again; and what only makes text of an object does not meet it: each
    /// `str()` of Python's looks for signals, and those of a library's error would lose both the signal and the text.
    pub(crate) fn new(py: Python<'_>, raised: PyErr) -> Pending {
        // Before it is pending: an import may execute bytecode.
        let is_debug = py.import("sys").and_then(|sys| sys.hasattr("gettotalrefcount"));
        let raised = Arc::new(Mutex::new(Some(raised)));
        let held = Arc::into_raw(Arc::clone(&raised));
        // SAFETY: Python hands this pointer to `raise`, once or never, which takes over the reference that `into_raw` has left.
        let is_full = unsafe { ffi::Py_AddPendingCall(Some(raise), held.cast_mut().cast()) } != 0;
        if is_full {
            // SAFETY: it comes from `into_raw`, and Python has not taken it.
            drop(unsafe { Arc::from_raw(held) });
        }
        Pending { raised, may_replace: !is_debug.unwrap_or(true) }
    }

    /// Raises it in the place of an exception that is under way on this thread, which must be the main thread: what a library has made of a stream's
    /// error, if it drops the stream while it raises that. Without one it remains pending.
    pub(crate) fn raise_instead(&self) {
        if !self.may_replace {
            return;
        }
        with_interpreter(|py| {
            let Some(theirs) = PyErr::take(py) else { return };
            let Some(ours) = taken(&self.raised) else { return theirs.restore(py) };
            ours.set_traceback(py, theirs.traceback(py));
            ours.set_context(py, Some(theirs));
            ours.restore(py);
        });
    }
}

/// The class and the text of an exception.
pub(crate) fn words_of(py: Python<'_>, raised: &PyErr) -> String {
    let name = raised.get_type(py).name();
    let name = name.map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned());
    match raised.value(py).str() {
        Ok(text) if !text.to_string_lossy().is_empty() => format!("{name}: {}", text.to_string_lossy()),
        _ => name,
    }
}

/// Called by Python's main thread between two instructions, with the interpreter held: -1 is an exception.
extern "C" fn raise(held: *mut c_void) -> c_int {
    // SAFETY: `Pending::new` has left this reference to whoever is called with it, which happens once.
    let slot = unsafe { Arc::from_raw(held.cast_const().cast::<Slot>()) };
    let Some(raised) = taken(&slot) else { return 0 };
    Python::try_attach(|py| raised.restore(py)).map_or(0, |()| -1)
}

fn taken(slot: &Slot) -> Option<PyErr> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}
