//! `marquetry diff`: whether two tables are the same, and where they are not.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use marquetry::io::files::find;
use marquetry::tables::text::Format as TextFormat;
use marquetry::tables::{DiffOptions, Differences, Source, diff};

use crate::failure::{Failure, Outcome};
use crate::numbers::{parse_number, plural, thousands};
use crate::output::{Interrupted, Output};
use crate::progress::{Goes, Progress, rows_wanted};
use crate::rows::ColumnText;
use crate::table::printable;
use crate::table_args::TableArgs;
use crate::text::{Format, TextArgs, extensions};

/// Compare two tables and print their differences
#[derive(Debug, Args)]
#[command(
    long_about = "Compare two tables and print their differences.

Columns are equal if their names and types are, values if their bits are: NaN equals itself, and 0 differs from -0. Rows are \
compared in order. How files are written (encodings, codecs, pages, row groups) makes no difference.

For each column that differs, the number of different rows is printed, and the values of the first ones. The exit code is 1 if \
there is a difference.

The options of CSV and JSON lines are for the table that is text by its name. With --from, they are for both, except a table of Parquet files (by their first bytes) beside one that is text.",
    after_help = "\
Examples:
  marquetry diff trips.parquet copy.parquet
  marquetry diff trips/ 'copies/*.parquet' --columns id,fare
  marquetry diff events.csv events.parquet --short-rows null"
)]
pub(crate) struct Diff {
    /// First table: a Parquet file, a directory, a pattern, CSV or JSON lines
    #[arg(value_name = "A")]
    a: PathBuf,

    /// Second table
    #[arg(value_name = "B")]
    b: PathBuf,

    #[command(flatten)]
    table: TableArgs,

    /// Number of rows to print for each column that differs
    #[arg(
        long,
        value_parser = parse_number::<usize>,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 3
    )]
    show: usize,

    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
}

impl Diff {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let open = |path: &PathBuf, table: &TableArgs| -> Outcome<Arc<dyn Source>> {
            table.open(std::slice::from_ref(path), &interrupted)
        };
        let [for_a, for_b] = self.tables();
        let (a, b) = (open(&self.a, &for_a)?, open(&self.b, &for_b)?);
        let (a_name, b_name) = (self.a.to_string_lossy(), self.b.to_string_lossy());
        let (a_name, b_name) = (printable(&a_name), printable(&b_name));
        let mut options = DiffOptions::default();
        (options.rows_shown, options.cancel) = (self.show, interrupted.cancel());
        let least = rows_wanted(a.table(), None).min(rows_wanted(b.table(), None));
        let progress = Progress::new(least, self.quiet, Goes::Elsewhere);
        let found = diff([&a, &b], &options, &mut |rows| progress.update(rows, 0))?;
        progress.clear();
        let mut output = Output::new(interrupted);
        if found.is_none() {
            let columns = plural(a.table().schema.children(0).count(), "column");
            let line = format!("the same: {} rows of {columns}\n", thousands(found.compared));
            output.text().extend_from_slice(line.as_bytes());
            return output.flush();
        }
        let lines = self.lines(&found, [(&a, &a_name), (&b, &b_name)])?;
        output.text().extend_from_slice(lines.as_bytes());
        output.flush()?;
        Err(Failure::refused(format!("{a_name} and {b_name} differ")))
    }

    /// How each table is read: as asked, but without the options of text if only the other one is text.
    fn tables(&self) -> [TableArgs; 2] {
        let from = self.table.text.from;
        let are_parquet = [&self.a, &self.b].map(|path| is_parquet(path, from));
        are_parquet.map(|is_parquet| {
            let mut table = self.table.clone();
            if is_parquet && are_parquet.contains(&false) {
                table.text = TextArgs::default();
            }
            table
        })
    }

    /// What a person reads.
    fn lines(&self, found: &Differences, tables: [(&Arc<dyn Source>, &str); 2]) -> Outcome<String> {
        let [a, b] = tables.map(|(_, name)| name);
        let mut text = String::new();
        let mut line = |line: String| text.push_str(&(line + "\n"));
        for (names, table) in found.only.iter().zip([a, b]) {
            names.iter().for_each(|name| line(format!("column {}: only in {table}", printable(name))));
        }
        for (path, [in_a, in_b]) in &found.types {
            line(format!("column {}: {in_a} in {a}, {in_b} in {b}", printable(path)));
        }
        if let Some([in_a, in_b]) = found.rows {
            line(format!("rows: {} in {a}, {} in {b}", thousands(in_a), thousands(in_b)));
        }
        for (number, column) in found.values.iter().enumerate() {
            let rows = match column.rows {
                1 => "1 row differs".to_string(),
                rows => format!("{} rows differ", thousands(rows)),
            };
            line(format!("column {}: {rows}", printable(&column.name)));
            if number >= COLUMNS_WITH_VALUES_MAX {
                continue;
            }
            let mut values = Vec::with_capacity(tables.len());
            for ((source, _), number) in tables.iter().zip(column.column) {
                values.push(ColumnText::new(source.table(), number, &self.table.limits.limits())?);
            }
            for (row, batches) in &column.shown {
                let mut texts = Vec::with_capacity(tables.len());
                for ((value, (_, name)), batch) in values.iter_mut().zip(&tables).zip(batches) {
                    texts.push((value.of(name, batch)?, name));
                }
                let difference = match &texts[..] {
                    [(in_a, _), (in_b, _)] => {
                        in_a.bytes().zip(in_b.bytes()).take_while(|(a, b)| a == b).count()
                    }
                    _ => 0,
                };
                texts.iter().for_each(|(value, name)| {
                    line(format!("  row {row}: {} in {name}", excerpt(value, difference)));
                });
            }
        }
        if let Some(more) = found.values.len().checked_sub(COLUMNS_WITH_VALUES_MAX).filter(|more| *more > 0) {
            line(format!("(without the values of {}; --columns chooses)", plural(more, "column")));
        }
        Ok(text)
    }
}

/// Columns whose values are printed. Of others it is only said that they differ.
const COLUMNS_WITH_VALUES_MAX: usize = 100;
/// Bytes of a value that are printed.
const VALUE_BYTES_MAX: usize = 1000;
/// Of these, the bytes before the first difference.
const VALUE_BYTES_BEFORE: usize = 100;

/// A value's text, or of a long one the part around the first byte in which it differs, and where that is.
fn excerpt(text: &str, difference: usize) -> String {
    if text.len() <= VALUE_BYTES_MAX {
        return printable(text);
    }
    let boundary = |at: usize| (0..=at.min(text.len())).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = boundary(difference.min(text.len()).saturating_sub(VALUE_BYTES_BEFORE));
    let end = boundary(start + VALUE_BYTES_MAX);
    let before = if start > 0 { "…" } else { "" };
    let after = if end < text.len() { "…" } else { "" };
    let (part, length) = (printable(&text[start..end]), thousands(text.len()));
    format!("{before}{part}{after} (bytes {} to {} of {length})", thousands(start), thousands(end))
}

/// Whether a table is of Parquet files: unless their names say that they are text, or, with a format that is to be read
/// whatever the names are, if they begin as Parquet files do. The first file of several decides.
fn is_parquet(path: &Path, from: Option<Format>) -> bool {
    // Where there is no file, opening it says so.
    let Some(first) = find(path, extensions(from)).ok().and_then(|found| found.into_iter().next()) else {
        return true;
    };
    match from {
        None => first.file_name().and_then(|name| TextFormat::by_name(name.to_str()?)).is_none(),
        Some(_) => begins_as_parquet(&first),
    }
}

/// Whether a file begins as Parquet files do, encrypted ones too. What can be read only once is not looked into.
fn begins_as_parquet(path: &Path) -> bool {
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && matches!(&magic, b"PAR1" | b"PARE")
}
