//! A table that is open.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use marquetry::arrow::StringLayout;
use marquetry::describe::{footer_json, picture};
use marquetry::tables::files::{AnyFile, FilesOptions, find};
use marquetry::tables::{Address, Cancel, column_stats};
use marquetry::{Error, Reader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

use crate::batches::{Batches, stream_capsule};
use crate::error::{misuse, raised};
use crate::schema::{Schema, schema_capsule};
use crate::statistics::ColumnStatistics;
use crate::waiting::{called, wait};
use crate::words::words;

/// One address or several.
#[derive(FromPyObject)]
pub(crate) enum Addresses {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl Addresses {
    pub(crate) fn all(self) -> Vec<OsString> {
        match self {
            Addresses::One(one) => vec![one.into_os_string()],
            Addresses::Several(several) => several.into_iter().map(PathBuf::into_os_string).collect(),
        }
    }
}

/// Opens tables as one.
#[pyfunction]
#[pyo3(signature = (address, **options))]
pub(crate) fn open(
    py: Python<'_>,
    address: Addresses,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Table> {
    opened(py, address, options, None)
}

/// The same. `stop` is called now and then: what it raises ends the work.
#[pyfunction]
pub(crate) fn open_until(
    py: Python<'_>,
    address: Addresses,
    options: &Bound<'_, PyDict>,
    stop: &Bound<'_, PyAny>,
) -> PyResult<Table> {
    opened(py, address, Some(options), Some(stop))
}

fn opened(
    py: Python<'_>,
    address: Addresses,
    options: Option<&Bound<'_, PyDict>>,
    stop: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    let words = options.map(words).transpose()?.unwrap_or_default();
    let cancel = words.cancel.clone();
    let addresses = address.all();
    let paths: Arc<[PathBuf]> = addresses.iter().map(PathBuf::from).collect();
    let files = words.files().map_err(|error| raised(py, &error))?;
    let reader = wait(py, &cancel, move || words.table(addresses), |_| called(stop))?;
    Ok(Table { reader, addresses: paths, files: Arc::new(files) })
}

/// An address as messages have it: without its password, and without a query that may be a signature.
#[pyfunction]
pub(crate) fn shown(address: PathBuf) -> String {
    Address::parse(address.into_os_string()).to_string()
}

/// A table that is open: what it is, and its rows.
#[pyclass(frozen, module = "marquetry")]
pub(crate) struct Table {
    pub(crate) reader: Reader,
    /// What it was opened by.
    addresses: Arc<[PathBuf]>,
    /// How its files were opened, if it is of files.
    files: Arc<FilesOptions>,
}

impl Table {
    fn of(&self, reader: Reader) -> Table {
        Table { reader, addresses: Arc::clone(&self.addresses), files: Arc::clone(&self.files) }
    }

    fn with(&self, reader: marquetry::Result<Reader>, py: Python<'_>) -> PyResult<Table> {
        reader.map(|reader| self.of(reader)).map_err(|error| raised(py, &error))
    }

    /// How its files are opened once more, unless it is cancelled.
    fn files(&self, cancel: &Cancel) -> FilesOptions {
        let mut options = FilesOptions::clone(&self.files);
        options.cancel = cancel.clone();
        options
    }

    fn counted(&self, py: Python<'_>, stop: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let cancel = Cancel::new();
        let reader = self.reader.clone().cancel(cancel.clone());
        wait(py, &cancel, move || reader.count(), |_| called(stop))
    }

    fn arrow_schema(&self, py: Python<'_>) -> PyResult<arrow_schema::SchemaRef> {
        self.reader.arrow_schema().map_err(|error| raised(py, &error))
    }
}

#[pymethods]
impl Table {
    /// What messages call it.
    #[getter]
    fn name(&self) -> &str {
        &self.reader.table().name
    }

    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<Schema> {
        self.arrow_schema(py).map(Schema)
    }

    /// The columns' names.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.reader.names()
    }

    /// The number of rows. `None` if it is not known before they are read.
    #[getter]
    fn num_rows(&self) -> Option<u64> {
        self.reader.rows()
    }

    #[getter]
    fn num_row_groups(&self) -> Option<u64> {
        self.reader.row_groups()
    }

    /// The bytes that it is read from, if known.
    #[getter]
    fn num_bytes(&self) -> Option<u64> {
        self.reader.table().bytes
    }

    /// Key-value metadata, as bytes.
    #[getter]
    fn key_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for pair in &self.reader.table().key_values {
            let value = pair.value.as_ref().map(|value| PyBytes::new(py, value));
            found.set_item(&pair.key, value)?;
        }
        Ok(found)
    }

    /// What whoever reads it should know, and would not see.
    #[getter]
    fn notes(&self) -> Vec<&str> {
        self.reader.table().notes.iter().map(|note| note.text.as_str()).collect()
    }

    /// Only these columns, in this order; with dots for nested ones.
    #[pyo3(signature = (*columns))]
    fn select(&self, py: Python<'_>, columns: Vec<String>) -> PyResult<Table> {
        self.with(self.reader.clone().columns(columns), py)
    }

    /// Only the rows for which a predicate is true.
    #[pyo3(name = "where")]
    fn filter(&self, py: Python<'_>, predicate: &str) -> PyResult<Table> {
        self.with(self.reader.clone().filter(predicate), py)
    }

    /// At most this many rows, from the start.
    fn limit(&self, rows: u64) -> Table {
        self.of(self.reader.clone().limit(rows))
    }

    /// Without this many rows at the start.
    fn offset(&self, rows: u64) -> Table {
        self.of(self.reader.clone().offset(rows))
    }

    /// Some rows at random, the same for the same seed.
    #[pyo3(signature = (rows, *, seed=0))]
    fn sample(&self, py: Python<'_>, rows: u64, seed: u64) -> PyResult<Table> {
        self.with(self.reader.clone().sample(rows, seed), py)
    }

    /// With other names of columns: `old=new, …`.
    fn rename(&self, py: Python<'_>, names: &str) -> PyResult<Table> {
        self.with(self.reader.clone().rename(names), py)
    }

    /// With other types of columns: `fare=decimal(12, 2), …`.
    fn types(&self, py: Python<'_>, types: &str) -> PyResult<Table> {
        self.with(self.reader.clone().types(types), py)
    }

    /// With strings, and bytes of any length, in one of Arrow's layouts: `string`, `large_string` or `string_view`.
    fn strings(&self, py: Python<'_>, layout: &str) -> PyResult<Table> {
        let layout = match layout {
            "string" => StringLayout::Offset32,
            "large_string" => StringLayout::Offset64,
            "string_view" => StringLayout::View,
            other => {
                let why = format!("{other}: the layouts of strings are string, large_string and string_view");
                return Err(misuse(py, why));
            }
        };
        Ok(self.of(self.reader.clone().strings(layout)))
    }

    /// The pieces that can be read independently of each other, in the order of the rows.
    #[getter]
    fn pieces(&self) -> Vec<Piece> {
        self.reader.source().pieces().iter().map(Piece::of).collect()
    }

    /// Only the pieces from one number to before another.
    fn only(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<Table> {
        self.with(self.reader.clone().pieces(start..end), py)
    }

    /// Only the partitions with tokens in a range, of a table of a cluster.
    fn token_range(&self, py: Python<'_>, tokens: &str) -> PyResult<Table> {
        let tokens = tokens.parse().and_then(|tokens| self.reader.clone().token_range(tokens));
        self.with(tokens, py)
    }

    /// Read by this many threads; 0: by the one that asks for the rows.
    fn threads(&self, threads: usize) -> Table {
        self.of(self.reader.clone().threads(threads))
    }

    /// Counts the rows.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        self.counted(py, None)
    }

    /// The same. `stop` is called now and then: what it raises ends the work.
    #[pyo3(name = "_count_until")]
    fn count_until(&self, py: Python<'_>, stop: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.counted(py, Some(stop))
    }

    /// What the values of its columns are like: all rows are read for it.
    fn column_statistics(&self, py: Python<'_>) -> PyResult<Vec<ColumnStatistics>> {
        let cancel = Cancel::new();
        let options = self.reader.clone().cancel(cancel.clone()).reading_options();
        let source = self.reader.source().clone();
        let schema = source.table().schema.clone();
        let found = wait(py, &cancel, move || column_stats(source, options, |_, _| {}), |_| Ok(()))?;
        Ok(ColumnStatistics::all(&schema, &found))
    }

    /// What the footers of its Parquet files say, a `dict` each, with the names of `marquetry show --json`; of other tables there are none. They are
    /// read for it.
    fn footers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let addresses = Arc::clone(&self.addresses);
        let cancel = Cancel::new();
        let options = self.files(&cancel);
        let text = wait(py, &cancel, move || footers(&addresses, &options), |_| Ok(()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// The rows, a record batch at a time.
    fn batches(&self, py: Python<'_>) -> PyResult<Batches> {
        Batches::of(py, &self.reader)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Batches> {
        self.batches(py)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.arrow_schema(py)?)
    }

    /// The rows as a stream. They have the types that are asked for, as far as they are other layouts of the same values.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream_capsule(py, &self.reader, requested_schema.as_ref())
    }

    /// All rows, as a `pyarrow.Table`.
    fn to_arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("pyarrow")?.call_method1("table", (this,))
    }

    /// All rows, as a `pandas.DataFrame`, by pyarrow.
    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Table::to_arrow(this)?.call_method0("to_pandas")
    }

    /// All rows, as a `polars.DataFrame`. Strings are handed over as views, which is what it makes of the other layouts.
    fn to_polars<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let table = this.get();
        let views = table.of(table.reader.clone().strings(StringLayout::View));
        this.py().import("polars")?.call_method1("DataFrame", (views,))
    }

    /// What notebooks show: a Parquet file drawn to scale, as `marquetry show --html` does it. `None` of all else.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let [path] = &*self.addresses else { return Ok(None) };
        let (path, cancel) = (path.clone(), Cancel::new());
        let options = self.files(&cancel);
        let page = wait(py, &cancel, move || drawn(&path, &options), |_| Ok(()))?;
        Ok(page.map(|page| framed(&String::from_utf8_lossy(&page))))
    }

    fn __repr__(&self) -> String {
        let rows = self.reader.rows().map_or_else(String::new, |rows| format!(", {rows} rows"));
        format!("<marquetry.Table: {}{rows}, {} columns>", self.name(), self.reader.names().len())
    }
}

/// A part of a table that can be read independently of the others.
#[pyclass(frozen, get_all, module = "marquetry")]
pub(crate) struct Piece {
    /// The file or the range that it is.
    name: String,
    /// The number of rows, if known.
    rows: Option<u64>,
    /// The bytes that it is read from, if known.
    bytes: Option<u64>,
    /// The first token and the last, of all partitions with tokens between them.
    tokens: Option<(i64, i64)>,
    /// What changes with its object's content, wherever that is opened, if there is such a thing: an ETag, a version.
    tag: Option<String>,
}

impl Piece {
    fn of(piece: &marquetry::tables::Piece) -> Piece {
        let marquetry::tables::Piece { name, rows, bytes, tokens, tag, .. } = piece;
        Piece { name: name.clone(), rows: *rows, bytes: *bytes, tokens: *tokens, tag: tag.clone() }
    }
}

#[pymethods]
impl Piece {
    fn __repr__(&self) -> String {
        let rows = self.rows.map_or_else(String::new, |rows| format!(", {rows} rows"));
        format!("<marquetry.Piece: {}{rows}>", self.name)
    }
}

/// The footers of the Parquet files that some addresses stand for, as a list in JSON.
fn footers(addresses: &[PathBuf], options: &FilesOptions) -> marquetry::Result<String> {
    let mut found = Vec::new();
    if addresses.iter().all(|address| Address::parse(address).object().is_some()) {
        for path in find(addresses, options)? {
            if let AnyFile::Parquet(file) = AnyFile::open(&path, options)? {
                found.push(json(serde_json::to_string(&footer_json(&file)))?);
            }
        }
    }
    Ok(format!("[{}]", found.join(",")))
}

fn json(written: serde_json::Result<String>) -> marquetry::Result<String> {
    written.map_err(|error| Error::internal(format!("JSON could not be written: {error}")))
}

/// The picture of an address that is one Parquet file.
fn drawn(path: &PathBuf, options: &FilesOptions) -> marquetry::Result<Option<Vec<u8>>> {
    if Address::parse(path).object().is_none() {
        return Ok(None);
    }
    let found = find(std::slice::from_ref(path), options)?;
    let [path] = &*found else { return Ok(None) };
    match AnyFile::open(path, options)? {
        AnyFile::Parquet(file) => Ok(Some(picture(&file, &options.cancel)?.html)),
        _ => Ok(None),
    }
}

/// A page inside another one, of which it can neither see nor change anything.
fn framed(page: &str) -> String {
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<iframe sandbox=\"allow-scripts\" style=\"border: 0; width: 100%; height: 40em\" srcdoc=\"{page}\"></iframe>"
    )
}
