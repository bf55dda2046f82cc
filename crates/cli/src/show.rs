//! `marquetry show`: what is in a file, from its footer alone.

mod bloom;
mod column_stats;
mod details;
mod index;
mod json;
mod pages;
mod plain_text;
mod sstables;
mod summary;
mod text;
mod why;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use marquetry::base::{Detail, Error};
use marquetry::cluster::{LaidSource, OpenedTable};
use marquetry::describe::{declaration, picture};
use marquetry::io::store::{Found, LocalFiles, Store};
use marquetry::tables::files::{self, AnyFile, FilesOptions, ParquetFile, Survey};
use marquetry::tables::sstables::SstablesOptions;
use marquetry::tables::{Address, ColumnPath, ReadingOptions, Source, column_stats};

use crate::failure::{Failure, Failures, Outcome, say};
use crate::numbers::parse_number;
use crate::output::{Interrupted, Output};
use crate::progress::Progress;
use crate::table::{Side, Table, printable};
use crate::table_args::{LimitArgs, TableArgs, say_notes};
use crate::terminal::Terminal;
use crate::text::{FormArgs, Format, TextArgs};

/// Describe Parquet files: schema, sizes, encodings, statistics
#[derive(Debug, Clone, Args)]
#[command(
    long_about = "Describe Parquet files: rows, size, writer, the schema as a tree, and for every column its encodings, \
codec, sizes, nulls, minimum and maximum. Only the footer is read (with --pages also page headers; with --index and --bloom what they \
ask; with --why also a page of each column chunk), so files of any size are fast. Nested and encrypted columns are included.

Bounds are shown if the format says that they can be trusted: the deprecated ones of unsigned columns and text cannot. \
A bound that the writer truncated ends in an ellipsis. With --pages, the page index is shown with the headers, if there is one.

For a directory or a pattern, and with --summary for any files, it describes the files together: rows, sizes, writers, codecs, \
the columns in their paths, their schemas joined by name, their differences, the smallest and the largest, and the first on a line each.

Of SSTables of Cassandra and ScyllaDB (sstable:DIR, or a directory or a Data.db of them) it tells versions, components, compression, \
partitions, rows, cells, tombstones, times and TTLs, each and together, as Statistics.db has them, and the columns.

A table of a cluster is described that holds a Parquet file (copy --layout columns), or whose rows hold others (wide, blob): names, types, and what holds them.

Of CSV, TSV and JSON lines, compressed or not, the inferred columns are shown. As everywhere, a file is what its name or, without a \
telling one, its first bytes say. A file that is broken is reported at the end, after the others.",
    after_help = "\
Examples:
  marquetry show trips.parquet
  marquetry show trips/
  marquetry show --pages fare_amount trips.parquet
  marquetry show --index fare_amount --limit 20 trips.parquet
  marquetry show --bloom 'trip = 4711' trips.parquet
  marquetry show --column-stats --columns fare_amount,vendor trips/
  marquetry show --why trips.parquet
  marquetry show --html trips.html trips.parquet
  marquetry show --schema trips.csv > schema.txt
  marquetry show sstable:data/ks/t-f34b6ff0f8f711eb9fcf000000000000
  marquetry show --json trips.parquet | jq '.columns[] | {path, compressed_bytes}'"
)]
pub(crate) struct Show {
    /// Parquet files, CSV or JSON lines, directories, patterns ('trips/year=*/**/*.parquet'), also at s3://, az://, gs:// and
    /// https://; SSTables (sstable:DIR); or a table that holds a Parquet file (cql://HOST/KEYSPACE.TABLE); '-' is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Summary of all files together; the default for directories and patterns
    ///
    /// It reads the footers of thousands of files on all cores: totals, writers, codecs, the schemas and how they differ, the
    /// smallest and the largest file, those without rows, and what cannot be read. Rows of text are not counted, and its schemas
    /// are inferred from each file by itself.
    #[arg(long, conflicts_with_all = ["of_column", "why"])]
    summary: bool,

    /// Pages of one column, named by its dotted path in the schema tree: what their headers say
    #[arg(long, value_name = "COLUMN", group = "of_column")]
    pages: Option<String>,

    /// Page index of one column: rows, place, nulls and bounds of every page, without reading a page
    #[arg(long, value_name = "COLUMN", group = "of_column")]
    index: Option<String>,

    /// Answer of the Bloom filters to 'col = value' or 'col IN (…)': of each row group, and of its pages
    ///
    /// 'absent' is certain; 'may be' is so, or a false positive; 'none' has no filter. Of each filter the header and one block a
    /// value are read. Literals are those of `marquetry find`.
    #[arg(long, value_name = "PREDICATE", group = "of_column", allow_hyphen_values = true)]
    bloom: Option<String>,

    /// Maximum number of pages to list [default: 100 with --index, otherwise all]
    #[arg(long, short = 'n', value_parser = parse_number::<u64>, value_name = "N", requires = "of_column", conflicts_with = "bloom")]
    limit: Option<u64>,

    /// Size of each column's first values in every encoding: why columns are encoded as they are
    ///
    /// This reads values: a page, or several, of each column chunk.
    #[arg(long, conflicts_with_all = ["of_column", "json", "summary"])]
    why: bool,

    /// What the values of columns are like: nulls, distinct values, bounds, sizes and the most frequent values
    ///
    /// All values are read, of all files as one table, in little memory: so many distinct values are an estimate (~, most within 2 %),
    /// and a value is named as frequent only where that is certain. The bounds are those of the values. Nested columns are
    /// counted by their leaves. CSV and JSON lines can be read, too.
    #[arg(long, conflicts_with_all = ["of_column", "summary", "why"], group = "of_table")]
    column_stats: bool,

    /// Columns that --column-stats and --why read, with dots for nested ones, as `marquetry rows` takes them
    #[arg(long, value_name = "A,B.C,…")]
    columns: Option<String>,

    /// Union of schemas that differ, for --column-stats and --schema: as other commands take them
    #[arg(long, requires = "of_table")]
    union: bool,

    /// Columns and their types in the words that --schema and --types take, one per line
    ///
    /// Of CSV and JSON lines: what is inferred. Saved and edited, --schema-file reads it again. Columns of types without a word
    /// (geometries, VARIANT) are left out, with a note on standard error.
    #[arg(long, conflicts_with_all = ["of_column", "json", "summary", "why", "column_stats"], group = "of_table")]
    schema: bool,

    /// Input format, whatever the files' names; Parquet files are still found by their first bytes
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "CSV and JSON lines")]
    from: Option<Format>,

    #[command(flatten)]
    form: FormArgs,

    /// Types of some columns, for --schema and --column-stats: as other commands take them
    #[arg(long, value_name = "COLUMN=TYPE,…", requires = "of_table", help_heading = "CSV and JSON lines")]
    types: Vec<String>,

    /// JSON output with everything: one object per file, each on a line; with --summary one of all files
    ///
    /// A file that cannot be read has an object with "error"; with --summary, "errors" has one for each of the first.
    /// Keys are stable. Sizes and offsets are bytes. A bound has its bytes in hexadecimal and, where its order is defined, its
    /// text.
    #[arg(long)]
    json: bool,

    /// Picture of one file, drawn to scale, as one page of HTML; '-' is standard output
    ///
    /// Row groups, column chunks, pages, dictionaries, indexes, Bloom filters and the footer, where they are and how large;
    /// sizes, encodings, codecs, ratios, nulls and bounds. The page needs no network. At most 20,000 column chunks are drawn
    /// singly: of more, the smallest columns and neighbouring row groups are drawn together, without pages; at most 100,000 pages
    /// are drawn singly. The page says so.
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["of_column", "of_table", "json", "summary", "why"])]
    html: Option<PathBuf>,

    /// Replace an existing page of --html
    #[arg(long, requires = "html")]
    overwrite: bool,

    /// List the N largest partitions of SSTables, by reading them
    #[arg(long, value_parser = parse_number::<u64>, value_name = "N", help_heading = "SSTables")]
    largest: Option<u64>,

    /// CQL file with the CREATE TABLE of the SSTables; 'none' for no schema
    ///
    /// By default, schema.cql beside the SSTables or in a directory above them, which snapshots and backups have.
    #[arg(long, value_name = "FILE", help_heading = "SSTables")]
    schema_file: Option<String>,

    #[command(flatten)]
    limits: LimitArgs,
}

impl Show {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        if self.columns.is_some() && !self.column_stats && !self.why {
            return Err(Failure::usage("--columns is for --column-stats and --why"));
        }
        let mut addresses = self.files.iter().map(|path| Address::parse(path.as_path()));
        let is_shown = |address: &Address| address.object().or(address.sstables()).is_some();
        let is_table = |address: &Address| address.scheme() == Some("cql");
        if let Some(url) = addresses.find(|it| !is_shown(it) && !is_table(it) && *it != Address::Standard) {
            return Err(Failure::usage(format!("{url}: only files and objects of stores can be shown")));
        }
        let is_table = self.files.iter().any(|path| is_table(&Address::parse(path)));
        if is_table && !self.schema && !self.column_stats {
            return self.table(interrupted);
        }
        let stores = interrupted.stores();
        let mut output = Output::new(interrupted);
        if let Some(paths) = sstables::paths(&self.files, &*stores) {
            return self.sstables(&paths, stores, &mut output);
        }
        if self.largest.is_some() || self.schema_file.is_some() {
            return Err(Failure::usage("--largest and --schema-file are for SSTables"));
        }
        if self.schema || self.column_stats {
            let text = TextArgs { from: self.from, form: self.form.clone(), ..TextArgs::default() };
            let (types, columns) = (self.types.clone(), self.columns.clone());
            let (limits, union) = (self.limits, self.union);
            let table = TableArgs { limits, union, text, types, columns, ..TableArgs::default() };
            let source = table.open(&self.files, output.interrupted())?;
            say_notes(source.table());
            if self.column_stats {
                return self.column_stats(source, &mut output);
            }
            let declared = declaration(source.table())?;
            let (name, wordless) = (&source.table().name, declared.wordless.join(", "));
            if declared.columns.as_slice().is_empty() && !declared.wordless.is_empty() {
                return Err(Failure::refused(format!("{name}: types without a word: {wordless}")));
            }
            if !declared.wordless.is_empty() {
                say("marquetry", &format!("note: {name}: left out: types without a word: {wordless}"));
            }
            output.text().extend_from_slice(declared.to_string().as_bytes());
            return output.flush();
        }
        if let Some(option) = self.form.given() {
            return Err(Failure::usage(format!("{option} is for --schema and --column-stats")));
        }
        if let Some(page) = &self.html {
            return self.picture(page, stores, &mut output);
        }
        let is_plain = !self.is_of_column() && !self.json && !self.why;
        if self.summary || (is_plain && self.files.iter().any(|path| stores.is_collective(path))) {
            return self.summary(stores, &mut output);
        }
        self.each(stores, &mut output)
    }

    /// Describes the file, or the rows, that a table of a cluster holds.
    fn table(&self, interrupted: Interrupted) -> Outcome {
        let [path] = &*self.files else {
            return Err(Failure::usage("tables of a cluster are shown alone"));
        };
        if self.largest.is_some() || self.schema_file.is_some() {
            return Err(Failure::usage("--largest and --schema-file are for SSTables"));
        }
        let table = TableArgs { limits: self.limits, ..TableArgs::default() };
        let address = Address::parse(path);
        let table = match table.stored(&address, &interrupted)? {
            OpenedTable::Columns(table) => table,
            OpenedTable::Laid(source) if self.asks_nothing() => {
                return laid(&source, Output::new(interrupted));
            }
            _ => {
                let what = "only files and objects of stores can be shown, and tables that hold a Parquet file; of others --schema and --column-stats";
                return Err(Failure::usage(format!("{address}: {what}")));
            }
        };
        // By another name than the address, which may have a password.
        let show = Show { files: vec![table.name().into()], ..self.clone() };
        let mut output = Output::new(interrupted);
        match (&self.html, self.summary) {
            (Some(page), _) => show.picture(page, Arc::new(table), &mut output),
            (None, true) => show.summary(Arc::new(table), &mut output),
            (None, false) => show.each(Arc::new(table), &mut output),
        }
    }

    /// Describes SSTables.
    fn sstables(&self, paths: &[PathBuf], store: Arc<dyn Store>, output: &mut Output) -> Outcome {
        let others = [
            ("--summary", self.summary),
            ("--pages", self.pages.is_some()),
            ("--index", self.index.is_some()),
            ("--bloom", self.bloom.is_some()),
            ("--why", self.why),
            ("--column-stats", self.column_stats),
            ("--schema", self.schema),
            ("--html", self.html.is_some()),
        ];
        if let Some((option, _)) = others.iter().find(|(_, is_given)| *is_given) {
            let advice =
                if self.schema { "; --schema-file FILE names the file of their CREATE TABLE" } else { "" };
            return Err(Failure::usage(format!("{option} is not for SSTables{advice}")));
        }
        let mut options = SstablesOptions::default();
        (options.store, options.limits) = (store, self.limits.limits());
        options.cancel = output.interrupted().cancel();
        if let Some(definition) = &self.schema_file {
            options.definition = definition.parse()?;
        }
        sstables::show(paths, &options, (self.largest, self.json), output)
    }

    /// Whether nothing is asked but what it is.
    fn asks_nothing(&self) -> bool {
        !self.is_of_column() && !self.json && !self.why && !self.summary && self.html.is_none()
    }

    /// Whether something is asked about one column.
    fn is_of_column(&self) -> bool {
        self.pages.is_some() || self.index.is_some() || self.bloom.is_some()
    }

    /// Reads the values of a table.
    fn column_stats(&self, source: Arc<dyn Source>, output: &mut Output) -> Outcome {
        let mut options = ReadingOptions::default();
        options.cancel = output.interrupted().cancel();
        let table = source.table().clone();
        let progress = Progress::of_tables(&[&table], 1, false);
        let stats = column_stats(source, options, |rows, bytes| progress.passed(rows, bytes));
        progress.clear();
        let stats = stats.map_err(|error| Failure::about(&table.name, &error))?;
        if self.json {
            column_stats::print_json(&table, &stats, output.text())?;
        } else {
            column_stats::print(&table, &stats, Terminal::of_stdout(), output.text());
        }
        output.flush()
    }

    /// All files together.
    fn summary(&self, stores: Arc<dyn Store>, output: &mut Output) -> Outcome {
        let options = self.options(stores, output)?;
        let progress = Progress::of_files();
        let survey = Survey::read(&self.files, &options, |done, all| progress.files(done, all));
        progress.clear();
        let mut survey = survey?;
        let faults = std::mem::take(&mut survey.faults);
        if self.json {
            summary::print_json(&survey, &faults, output.text())?;
        } else if survey.files > 0 {
            summary::print(&survey, Terminal::of_stdout(), output.text());
        }
        output.flush()?;
        let mut failures = Failures::new(self.limits.trust);
        for error in faults {
            failures.add(error.into())?;
        }
        failures.end()
    }

    /// How files are found and opened.
    fn options(&self, stores: Arc<dyn Store>, output: &Output) -> Outcome<FilesOptions> {
        let text = TextArgs { from: self.from, ..TextArgs::default() };
        let table = TableArgs { limits: self.limits, text, ..TableArgs::default() };
        let mut options = table.options(output.interrupted())?;
        options.store = stores;
        Ok(options)
    }

    /// One file after the other. One that is broken does not hide the others.
    fn each(&self, stores: Arc<dyn Store>, output: &mut Output) -> Outcome {
        let options = self.options(stores, output)?;
        let mut failures = Failures::new(self.limits.trust);
        let mut is_first = true;
        for path in &self.files {
            let found = files::find(std::slice::from_ref(path), &options);
            let found = found.or_else(|error| self.failed(error.into(), path, (&mut failures, output)))?;
            for path in found {
                let start = output.text().len();
                let shown = self.one((&options, &path), is_first, output);
                // What was found before an error is shown, too, where it is more than a line's end.
                is_first &= output.text().len() == start;
                let flushed = output.flush();
                if let Err(failure) = shown {
                    self.failed(failure, &path, (&mut failures, output))?;
                }
                flushed.map_err(|failure| failures.end_with(failure))?;
            }
        }
        failures.end()
    }

    /// Keeps a failure of a file for the end. In JSON it has an object, too.
    fn failed(
        &self,
        failure: Failure,
        path: &Path,
        (failures, output): (&mut Failures, &mut Output),
    ) -> Outcome<Vec<PathBuf>> {
        let mut flushed = Ok(());
        if let (true, Some(error)) = (self.json, failure.said()) {
            json::error(Address::parse(path).to_string(), error, output.text())?;
            flushed = output.flush();
        }
        failures.add(failure)?;
        flushed.map(|()| Vec::new()).map_err(|failure| failures.end_with(failure))
    }

    fn one(&self, (options, path): (&FilesOptions, &Path), is_first: bool, output: &mut Output) -> Outcome {
        let terminal = Terminal::of_stdout();
        let out = output.text();
        let separate = |out: &mut Vec<u8>| {
            if !is_first && !self.json {
                out.push(b'\n');
            }
        };
        let opened = AnyFile::open(path, options).map_err(|error| match error.detail() {
            Some(Detail::NotFound) if self.why => Failure::from(error).and("--why takes no column"),
            _ => error.into(),
        })?;
        if let (AnyFile::Other(file), false, false) = (&opened, self.why, self.is_of_column()) {
            separate(out);
            return plain_text::print(&**file, (self.json, terminal), out);
        }
        let file = expect_parquet(opened)?;
        separate(out);
        let how = (self.limit, self.json);
        let fault = match (&self.pages, &self.index, &self.bloom) {
            _ if self.why => return why::print(&file, &self.leaves(&file)?, terminal, out),
            (Some(column), ..) => pages::print(&file, column, how, terminal, out)?,
            (_, Some(column), _) => index::print(&file, column, how, terminal, out)?,
            (.., Some(wanted)) => return bloom::print(&file, wanted, self.json, terminal, out),
            _ if self.json => return json::print(&file, out),
            _ => {
                text::print(&file, terminal, out);
                None
            }
        };
        fault.map_or(Ok(()), Err)
    }

    /// The leaves of the columns that are asked for, in their order.
    fn leaves(&self, file: &ParquetFile) -> Outcome<Vec<usize>> {
        let schema = &file.metadata().schema;
        let Some(columns) = &self.columns else { return Ok((0..schema.leaves().len()).collect()) };
        let wrong = |error: Error| Failure::about(file.name(), &error.with(Detail::Option("columns")));
        let columns = ColumnPath::parse_list(columns).map_err(wrong)?;
        let leaves = columns.iter().map(|column| column.leaves(schema).map_err(wrong));
        Ok(leaves.collect::<Outcome<Vec<_>>>()?.concat())
    }

    /// Draws the only file.
    fn picture(&self, page: &Path, stores: Arc<dyn Store>, output: &mut Output) -> Outcome {
        let options = self.options(stores, output)?;
        let [path] = &*files::find(&self.files, &options)? else {
            return Err(Failure::usage("--html draws one file"));
        };
        let is_stdout = page.as_os_str() == "-";
        if !is_stdout && !self.overwrite && !matches!(LocalFiles.look(page), Ok(Found::Nothing) | Err(_)) {
            let error = Error::io("already exists").with(Detail::AlreadyExists);
            return Err(Failure::about(page.display(), &error));
        }
        let file = expect_parquet(AnyFile::open(path, &options)?)?;
        let drawn = picture(&file, &output.interrupted().cancel())?;
        if is_stdout {
            output.text().extend_from_slice(&drawn.html);
            output.flush()?;
        } else {
            let save = || {
                let mut object = LocalFiles.create(page, self.overwrite)?;
                object.append(&drawn.html)?;
                object.commit()
            };
            save().map_err(|error: Error| Failure::about(page.display(), &error))?;
        }
        let fault = drawn.faults.first().map(|error| Failure::about(file.name(), error));
        fault.map_or(Ok(()), Err)
    }
}

/// Describes the rows that those of a table of a cluster hold.
fn laid(source: &LaidSource, mut output: Output) -> Outcome {
    let head = format!("{}\n  layout  {}\n\n", source.table().name, source.layout().name());
    output.text().extend_from_slice(head.as_bytes());
    let mut table =
        Table::new([("name", Side::Left), ("type", Side::Left), ("held by", Side::Left)]).indented(2);
    source.columns().into_iter().for_each(|column| table.push(column.map(|text| printable(&text)).into()));
    table.print(Terminal::of_stdout(), output.text());
    output.flush()
}

/// What only a Parquet file has is wanted.
fn expect_parquet(file: AnyFile) -> Outcome<ParquetFile> {
    match file {
        AnyFile::Parquet(file) => Ok(file),
        other => {
            let (name, format) = (other.name(), other.format());
            let why = format!("{name}: not a Parquet file, but {format}: `marquetry rows` prints it");
            Err(Failure::refused(why))
        }
    }
}
