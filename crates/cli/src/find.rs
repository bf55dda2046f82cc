//! `marquetry find`: the rows for which a predicate is true. `marquetry count`: how many there are.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use marquetry::parquet::find::{Counts, Report, Structures};
use marquetry::tables::{Filter, ReadingOptions, count};
use serde::Serialize;

use crate::args::ThreadArgs;
use crate::failure::{Failure, Outcome};
use crate::json;
use crate::numbers::{plural, size, thousands};
use crate::output::{Interrupted, Output};
use crate::rows::Printing;
use crate::table_args::{TableArgs, say_notes};

/// Find rows by a predicate, and print them
#[derive(Debug, Args)]
#[command(
    override_usage = "marquetry find [OPTIONS] <FILE>... <PREDICATE>",
    long_about = "Find the rows of files for which a predicate is true, and print them as `marquetry rows` does.

Parquet files are searched by their statistics, Bloom filters, dictionaries and page index: row groups and pages that cannot have such \
a row are not read, and columns other than those of the predicate are read only where rows were found. --explain says what was left \
out by what. An index or a filter that is corrupt is not used. Of other files, all rows are read.",
    after_long_help = "\
Predicates:
  = <> < <= > >=     a column and a literal, in either order
  IN (…), BETWEEN a AND b, LIKE 'prefix%', IS NULL, each with NOT
  AND OR NOT ( )
Columns have dots for nested ones; names that are words of this language or have
other characters are put in double quotes. Of a list, one element has to match.
Literals are CQL's: 42, -1.5e3, NaN, 'text', '2024-02-29T12:00Z', 0xcafe, true,
a UUID. NaN equals NaN, and is greater than all numbers.

Examples:
  marquetry find trips.parquet 'trip = 4711'
  marquetry find trips/ \"city IN ('Rome', 'Oslo') AND fare > 100\" --columns city,fare
  marquetry find trips/ 'fare > 100' --aggregate 'count(*), sum(fare)'
  marquetry find trips.parquet 'trip = 4711' --explain"
)]
pub(crate) struct Find {
    /// Parquet files, directories, patterns, CSV or JSON lines, SSTables (sstable:DIR), or a table, cql://HOST/KEYSPACE.TABLE; then the predicate
    #[arg(value_name = "FILE… PREDICATE", required = true)]
    files_and_predicate: Vec<PathBuf>,

    /// Say what was left out by what, instead of printing rows
    #[arg(long, conflicts_with_all = ["aggregate", "group_by"])]
    explain: bool,

    /// The same as JSON
    #[arg(long, requires = "explain")]
    json: bool,

    /// Structures of Parquet files that are not to be used
    #[arg(long, value_enum, value_name = "WHAT,…", value_delimiter = ',')]
    without: Vec<Structure>,

    #[command(flatten)]
    printing: Printing,
}

/// What a search may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Structure {
    /// Statistics of row groups, and of pages in their headers
    Stats,
    /// The page index
    Index,
    /// Bloom filters
    Bloom,
    /// Dictionaries that list every value
    Dictionary,
    /// Bloom filters of pages
    PageBloom,
}

impl Find {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let Some((predicate, files)) =
            self.files_and_predicate.split_last().filter(|(_, files)| !files.is_empty())
        else {
            return Err(Failure::usage("name the files first, then the predicate"));
        };
        let predicate = predicate.to_str().ok_or_else(|| Failure::usage("a predicate that is not UTF-8"))?;
        if Path::new(predicate).exists() && !files.iter().any(|file| file.exists()) {
            let what = format!("name the files first, then the predicate: {predicate} is a file");
            return Err(Failure::usage(what));
        }
        let table = &self.printing.table;
        if table.predicate.is_some() {
            return Err(Failure::usage(
                "--where is for other commands; here the predicate comes after the files",
            ));
        }
        let mut structures = Structures::default();
        for structure in &self.without {
            match structure {
                Structure::Stats => structures.statistics = false,
                Structure::Index => structures.index = false,
                Structure::Bloom => structures.bloom = false,
                Structure::Dictionary => structures.dictionary = false,
                Structure::PageBloom => structures.page_bloom = false,
            }
        }
        let filter = Filter::new(predicate).using(structures);
        let source = table.open_filtered(files, &filter, &interrupted)?;
        if !self.printing.quiet {
            say_notes(source.table());
        }
        if self.explain {
            let mut options = ReadingOptions::default();
            (options.threads, options.cancel) = (self.printing.threads.get(), interrupted.cancel());
            options.piece.limit = self.printing.limit;
            count(&source, &options)?;
            self.print_explanation(&filter.report(), interrupted)?;
        } else {
            self.printing.print(source, interrupted)?;
        }
        if filter.report().found == 0 { Err(Failure::NothingFound) } else { Ok(()) }
    }

    fn print_explanation(&self, report: &Report, interrupted: Interrupted) -> Outcome {
        let mut output = Output::new(interrupted);
        let text = if self.json {
            let mut text = Vec::new();
            json::write(&mut text, &Explanation::of(report))
                .map_err(|error| Failure::bug(error.to_string()))?;
            text.push(b'\n');
            text
        } else {
            explained(report, &self.without).into_bytes()
        };
        output.text().extend_from_slice(&text);
        output.flush()
    }
}

/// A report for people.
fn explained(report: &Report, without: &[Structure]) -> String {
    let line = |name: &str, structure: Structure, counts: &Counts, one: &str| {
        let said = match counts {
            _ if without.contains(&structure) => "not used".to_string(),
            Counts { undecided: 0, pruned: 0, absent: 0, distrusted: 0, .. } => "not needed".to_string(),
            // Not "absent": that is said of values.
            Counts { undecided: 0, pruned: 0, distrusted: 0, .. } => "none there".to_string(),
            Counts { undecided, pruned, absent, distrusted, .. } => {
                let more = |count: &u64, what: &str| match count {
                    0 => String::new(),
                    count => format!(", {what}{}", thousands(*count)),
                };
                let (absent, distrusted) = (more(absent, "none in "), more(distrusted, "distrusted: "));
                let decided = plural(*pruned, one);
                format!("{decided} decided, {} undecided{absent}{distrusted}", thousands(*undecided))
            }
        };
        format!("{name:<13}{said}\n")
    };
    let groups = match report.row_groups {
        0 => String::new(),
        groups => format!(" in {}", plural(groups, "row group")),
    };
    let mut text =
        format!("found        {} of {}{groups}\n", thousands(report.found), plural(report.rows, "row"));
    text += &line("statistics", Structure::Stats, &report.statistics, "row group");
    text += &line("bloom", Structure::Bloom, &report.bloom, "row group");
    text += &line("dictionary", Structure::Dictionary, &report.dictionary, "row group");
    text += &line("index", Structure::Index, &report.index, "page");
    text += &line("page bloom", Structure::PageBloom, &report.page_bloom, "page");
    text += &line("page headers", Structure::Stats, &report.page_statistics, "page");
    text += &format!("tested       {}\n", plural(report.tested, "row"));
    if report.reads > 0 {
        text += &format!("searched     {} in {}\n", size(report.bytes), plural(report.reads, "read"));
    }
    text
}

/// A report for programs.
#[derive(Serialize)]
struct Explanation {
    found: u64,
    rows: u64,
    row_groups: u64,
    statistics: Decided,
    bloom: Decided,
    dictionary: Decided,
    index: Decided,
    page_bloom: Decided,
    page_headers: Decided,
    tested: u64,
    bytes: u64,
    reads: u64,
}

#[derive(Serialize)]
struct Decided {
    absent: u64,
    undecided: u64,
    pruned: u64,
    distrusted: u64,
}

impl Explanation {
    fn of(report: &Report) -> Explanation {
        let of = |counts: &Counts| Decided {
            absent: counts.absent,
            undecided: counts.undecided,
            pruned: counts.pruned,
            distrusted: counts.distrusted,
        };
        Explanation {
            found: report.found,
            rows: report.rows,
            row_groups: report.row_groups,
            statistics: of(&report.statistics),
            bloom: of(&report.bloom),
            dictionary: of(&report.dictionary),
            index: of(&report.index),
            page_bloom: of(&report.page_bloom),
            page_headers: of(&report.page_statistics),
            tested: report.tested,
            bytes: report.bytes,
            reads: report.reads,
        }
    }
}

/// Count rows
#[derive(Debug, Args)]
#[command(
    long_about = "Count the rows of files, all of them or, with --where, those for which a predicate is true.

What Parquet files say about themselves is not counted again: without --where, only footers are read. Then their columns may differ."
)]
pub(crate) struct CountCommand {
    /// Parquet files, directories, patterns, CSV or JSON lines, SSTables (sstable:DIR); or a table, cql://HOST/KEYSPACE.TABLE
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    table: TableArgs,

    #[command(flatten)]
    threads: ThreadArgs,
}

impl CountCommand {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let source = self.table.open_to_count(&self.files, &interrupted)?;
        // How rows are searched is of interest, and whether one is no row; what columns are called is not.
        let mut said = source.table().clone();
        said.notes.retain(|note| self.table.predicate.is_some() || note.option == Some("header"));
        say_notes(&said);
        let mut options = ReadingOptions::default();
        (options.threads, options.cancel) = (self.threads.get(), interrupted.cancel());
        let rows = count(&source, &options).map_err(|error| Failure::about(&source.table().name, &error))?;
        let mut output = Output::new(interrupted);
        output.text().extend_from_slice(format!("{rows}\n").as_bytes());
        output.flush()
    }
}
