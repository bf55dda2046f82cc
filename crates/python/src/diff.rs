//! Tables compared.

use marquetry::tables::{Cancel, ColumnPath, DiffOptions, Differences as Found, diff as compare};
use marquetry::{CopyWords, Reader};
use pyo3::prelude::*;

use crate::copy::Given;
use crate::error::raised;
use crate::waiting::{called, wait};

/// What two tables differ in. Of two, the first is `a`'s and the second is `b`'s.
#[pyclass(frozen, get_all, module = "marquetry")]
pub(crate) struct Differences {
    /// Whether all rows are equal.
    are_rows_equal: bool,
    /// Whether the columns have the same names, types and order.
    are_schemas_equal: bool,
    rows: (u64, u64),
    rows_compared: u64,
    rows_changed: u64,
    rows_only: (u64, u64),
    columns_only: (Vec<String>, Vec<String>),
    /// Columns whose types cannot be compared, with both.
    columns_incomparable: Vec<(String, String, String)>,
    /// Columns with values that differ, and in how many rows.
    columns_changed: Vec<(String, u64)>,
    /// Values that were compared as null, because columns cannot hold them.
    values_lost: (u64, u64),
}

impl Differences {
    fn of(found: Found) -> Differences {
        let are_rows_equal = found.are_rows_equal();
        let are_schemas_equal = found.schema.is_none();
        let Found { schema, rows, values, lost: [lost_a, lost_b], .. } = found;
        let ([rows_a, rows_b], [only_a, only_b], [columns_a, columns_b]) =
            (rows.total, rows.only, schema.only);
        Differences {
            are_rows_equal,
            are_schemas_equal,
            rows: (rows_a, rows_b),
            rows_compared: rows.compared,
            rows_changed: rows.changed,
            rows_only: (only_a, only_b),
            columns_only: (columns_a, columns_b),
            columns_incomparable: schema
                .incomparable
                .into_iter()
                .map(|(name, [a, b])| (name, a, b))
                .collect(),
            columns_changed: values.into_iter().map(|column| (column.name, column.rows)).collect(),
            values_lost: (lost_a.total(), lost_b.total()),
        }
    }
}

#[pymethods]
impl Differences {
    /// Whether there are any, of rows or schemas.
    fn __bool__(&self) -> bool {
        !(self.are_rows_equal && self.are_schemas_equal)
    }

    fn __repr__(&self) -> String {
        let Differences { rows_changed, rows_only: (a, b), are_schemas_equal, .. } = self;
        let schemas = if *are_schemas_equal { "equal" } else { "different" };
        format!(
            "<marquetry.Differences: {rows_changed} rows changed, {a} and {b} in one only, schemas {schemas}>"
        )
    }
}

/// Compares two tables, row by row, or by a key.
#[pyfunction]
#[pyo3(signature = (a, b, *, key=None, threads=None))]
pub(crate) fn diff(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    key: Option<Vec<String>>,
    threads: Option<usize>,
) -> PyResult<Differences> {
    compared(py, [a, b], key, threads, None)
}

/// The same. `stop` is called now and then: what it raises ends the work.
#[pyfunction]
pub(crate) fn diff_until(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    key: Option<Vec<String>>,
    threads: Option<usize>,
    stop: &Bound<'_, PyAny>,
) -> PyResult<Differences> {
    compared(py, [a, b], key, threads, Some(stop))
}

fn compared(
    py: Python<'_>,
    [a, b]: [&Bound<'_, PyAny>; 2],
    key: Option<Vec<String>>,
    threads: Option<usize>,
    stop: Option<&Bound<'_, PyAny>>,
) -> PyResult<Differences> {
    let cancel = Cancel::new();
    let mut options = DiffOptions::default();
    (options.cancel, options.threads) = (cancel.clone(), threads);
    let key = key.unwrap_or_default();
    let key: marquetry::Result<Vec<ColumnPath>> = key.iter().map(|name| ColumnPath::parse(name)).collect();
    options.key = key.map_err(|error| raised(py, &error))?;
    let ((a, held_a), (b, held_b)) = (Given::of(a)?, Given::of(b)?);
    let mut words = CopyWords::default();
    words.cancel = cancel.clone();
    let work = move || {
        let [a, b] = [a, b].map(|table| -> marquetry::Result<Reader> {
            match table {
                Given::Reader(reader) => Ok(reader),
                Given::Addresses(addresses) => words.open(addresses.all(), None::<&str>),
            }
        });
        let (a, b) = (a?, b?);
        compare([a.source(), b.source()], &options, &mut |_| {})
    };
    let found = wait(py, &cancel, work, |_| called(stop));
    [held_a, held_b].into_iter().flatten().for_each(|held| held.wait(py));
    found.map(Differences::of)
}
