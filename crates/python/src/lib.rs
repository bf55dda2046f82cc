//! Marquetry for Python: the module `marquetry._marquetry`, which the package `marquetry` is made of.
//!
//! A door: it translates between Python and the crate `marquetry`, and computes nothing. What is in it:
//!
//! | module | what it is |
//! |---|---|
//! | `table` | `Table`: a table that is open, its shape and its pieces |
//! | `statistics` | what the values of its columns are like |
//! | `batches` | its rows: an iterator, Arrow's C stream |
//! | `copy`, `diff` | rows copied and compared |
//! | `schema` | Arrow's schema and record batches, as capsules |
//! | `incoming` | rows of any object that speaks Arrow's PyCapsule interface |
//! | `words` | options as keyword arguments |
//! | `waiting` | long work: without the interpreter, and ended by Ctrl-C |
//! | `interpreter` | the interpreter, where another library calls through C |
//! | `pending` | what Ctrl-C raises while another library reads a stream |
//! | `error` | errors as exceptions with fields |
//!
//! # Safety
//!
//! What is `unsafe` here are the capsules of others (`incoming`; `schema`, for the types that they ask for): a capsule with Arrow's name is trusted to hold what that name says, as the
//! PyCapsule interface has it; a call that Python is asked for (`pending`), which is trusted to come once, with what it is given; and the interpreter that is
//! asked of Python itself (`interpreter`), where PyO3 cannot know whether it is held.

mod batches;
mod copy;
mod diff;
mod error;
mod incoming;
mod interpreter;
mod pending;
mod schema;
mod statistics;
mod table;
mod waiting;
mod words;

use mimalloc::MiMalloc;
use pyo3::prelude::*;

/// Where the memory of this package comes from; Python and other libraries have their own.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The compiled part of the package `marquetry`.
#[pymodule]
mod _marquetry {
    #[pymodule_export]
    use crate::batches::Batches;
    #[pymodule_export]
    use crate::copy::{Copied, copy};
    #[pymodule_export]
    use crate::diff::{Differences, diff, diff_until};
    #[pymodule_export]
    use crate::schema::{RecordBatch, Schema};
    #[pymodule_export]
    use crate::statistics::ColumnStatistics;
    #[pymodule_export]
    use crate::table::{Piece, Table, open, open_until, shown};

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python's packages have for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
