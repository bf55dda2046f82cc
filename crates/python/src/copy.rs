//! Rows copied from anywhere to anywhere.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use marquetry::Reader;
use marquetry::tables::Copied as Counts;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::incoming::{Held, Taken, taken};
use crate::table::Addresses;
use crate::waiting::{called, wait};
use crate::words::words;

/// What was copied: so far, or in all.
#[pyclass(frozen, get_all, module = "marquetry")]
pub(crate) struct Copied {
    rows: u64,
    rows_total: Option<u64>,
    bytes_read: u64,
    bytes_total: Option<u64>,
    rows_written: u64,
    bytes_written: u64,
    files: u64,
    row_groups: u64,
    /// Rows that could not be written, and are in the file of `rejects`.
    rows_rejected: u64,
    /// Requests that were sent again to a server.
    retries: u64,
    rows_verified: u64,
    /// Values that became null, because columns cannot hold them.
    values_lost: u64,
}

impl Copied {
    fn of(counts: &Counts) -> Copied {
        Copied {
            rows: counts.rows,
            rows_total: counts.rows_total,
            bytes_read: counts.bytes_read,
            bytes_total: counts.bytes_total,
            rows_written: counts.written.rows,
            bytes_written: counts.written.bytes,
            files: counts.written.files,
            row_groups: counts.written.row_groups,
            rows_rejected: counts.written.rejected,
            retries: counts.written.retries,
            rows_verified: counts.verified,
            values_lost: counts.values_lost,
        }
    }
}

#[pymethods]
impl Copied {
    fn __repr__(&self) -> String {
        let Copied { rows, rows_written, bytes_written, .. } = self;
        format!("<marquetry.Copied: {rows} rows, {rows_written} written in {bytes_written} bytes>")
    }
}

/// Copies. `source` is one address or several, or an object with rows; `progress` is called with what was copied, and `stop` now and then: what
/// either raises ends the copy.
#[pyfunction]
pub(crate) fn copy(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    to: PathBuf,
    options: &Bound<'_, PyDict>,
    progress: Option<Bound<'_, PyAny>>,
    stop: Option<Bound<'_, PyAny>>,
) -> PyResult<Copied> {
    let words = words(options)?;
    let (from, held) = Given::of(source)?;
    let cancel = words.cancel.clone();
    let so_far = Arc::new(Mutex::new(None));
    let passed = Arc::clone(&so_far);
    let work = move || {
        let mut report = |copied: &Counts| {
            *passed.lock().unwrap_or_else(PoisonError::into_inner) = Some(*copied);
        };
        match from {
            Given::Reader(reader) => words.copy_rows(&reader, &to, &mut report),
            Given::Addresses(addresses) => words.copy_all(addresses.all(), &to, &mut report),
        }
    };
    let copied = wait(py, &cancel, work, |_| {
        called(stop.as_ref())?;
        let news = so_far.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(progress), Some(counts)) = (&progress, news) {
            progress.call1((Copied::of(&counts),))?;
        }
        Ok(())
    });
    // Also rows that are copied are not all that there are, with a limit.
    if let Some(held) = held {
        held.wait(py);
    }
    let copied = copied?;
    if let Some(progress) = &progress {
        progress.call1((Copied::of(&copied),))?;
    }
    Ok(Copied::of(&copied))
}

/// Where rows come from.
pub(crate) enum Given {
    Reader(Reader),
    Addresses(Addresses),
}

impl Given {
    /// What an object stands for, and whether rows that it gave are still held.
    pub(crate) fn of(source: &Bound<'_, PyAny>) -> PyResult<(Given, Option<Held>)> {
        // A data frame is also a sequence of text: its columns' names.
        if source.hasattr("__arrow_c_stream__")? || source.hasattr("__arrow_c_array__")? {
            let Taken { reader, held } = taken(source)?;
            return Ok((Given::Reader(reader), Some(held)));
        }
        Ok((Given::Addresses(source.extract()?), None))
    }
}
