//! Rows into a table of a live cluster.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use marquetry::OptionGroup;
use marquetry::base::{Detail, Error};
use marquetry::cluster::{CqlOptions, IN_FLIGHT, MaxErrors, StateOptions, TableLayout, Ttl, WriteTimes};
use marquetry::tables::{Address, Rename};

use super::of_rows::of_rows;
use crate::args::RowArgs;
use crate::failure::{Failure, Outcome};
use crate::numbers::parse_count;
use crate::output::Interrupted;
use crate::target::Given;

/// How a table holds rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Layout {
    /// A row of the table for each
    Rows,
    /// The same with short names of columns; the first columns of --key group rows
    Wide,
    /// A row for each: its key, and one cell with all else
    Blob,
    /// A Parquet file within the table: encoded pages as cells
    Columns,
}

/// How a cluster is talked to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Create the table and its types, unless they exist with the same columns and key
    #[arg(long, help_heading = "Table")]
    pub(super) create: bool,

    /// How the table holds rows [default: rows]
    ///
    /// A table of the layout columns holds one Parquet file, of which readers ask the columns and pages that they need (docs/layouts.md). With
    /// --overwrite a new version takes the place of the one that is there. All commands know a table's layout by itself.
    #[arg(long, value_enum, value_name = "LAYOUT", conflicts_with = "to", help_heading = "Table")]
    pub(super) layout: Option<Layout>,

    /// Names in the table of columns of the files: cql=parquet,…
    ///
    /// As --rename, the other way round, and after it. What is named nowhere has the same name in both.
    #[arg(long, value_name = "CQL=PARQUET,…", help_heading = "Table")]
    map: Vec<String>,

    /// Write times: now, microseconds since 1970, or the column that has them
    ///
    /// With a number, or now, it is the first row's, and each later row's is one microsecond larger: of rows with one key the last one wins. A
    /// row that is sent again has the write time that it had. A column has microseconds as integers, or timestamps; it is loaded as well only if
    /// the table has a column of its name.
    #[arg(long, value_name = "WHEN", default_value_t = WriteTimes::Now, help_heading = "Table")]
    timestamp: WriteTimes,

    /// Time to live in seconds, or the column that has it; 0 is for ever [default: the table's]
    #[arg(long, value_name = "SECONDS|COLUMN", help_heading = "Table")]
    ttl: Option<Ttl>,

    /// Add to counters, although a row whose answer is lost may be added twice
    #[arg(long, help_heading = "Table")]
    counters_at_least_once: bool,

    /// Load lists with --timestamp, although the same rows loaded again have their elements twice
    ///
    /// Rows of --mapping full that add elements to lists are sent again if an answer is lost, and by --resume. Otherwise either ends the load.
    #[arg(long, help_heading = "Table")]
    lists_at_least_once: bool,

    /// Only rows that the table lacks or has otherwise: validate, then mend
    ///
    /// Both are read and sorted by the table's key; a row of the table that the source lacks stays. Two rows of the source with one key are an error.
    /// With --dry-run the rows are only counted.
    #[arg(long, conflicts_with_all = ["create", "state"], help_heading = "Table")]
    pub(super) missing_only: bool,

    /// Check everything and write nothing: connects, compares the table, converts all rows
    #[arg(long, help_heading = "Table")]
    dry_run: bool,

    /// New Parquet file for rows that cannot be loaded, with a column 'error'
    ///
    /// These are rows of which a value does not fit, or a key is null, and those that the cluster refuses as invalid. Without it the first such row
    /// ends the load. The file appears at the end, if there are any, also if the load fails. Rows that get lost on the way, because the
    /// cluster is overloaded or down, never go there: they are sent again. With --resume, a further run that finds FILE writes another one beside
    /// it: bad-2.parquet after bad.parquet.
    #[arg(long, value_name = "FILE", help_heading = "Failures")]
    rejects: Option<PathBuf>,

    /// Rows that may be rejected before the load ends: 100 or 0.1% [default: 100]; with --resume, of all runs
    #[arg(long, value_name = "N|N%", requires = "rejects", help_heading = "Failures")]
    max_errors: Option<MaxErrors>,

    /// File that keeps how far the load is, for --resume
    ///
    /// It is written once a second. After a crash, Ctrl-C or an outage the same command with --resume goes on from there, with the same write times,
    /// and loses nothing. It must be the same rows, options and table. A load that was finished is not repeated.
    ///
    /// Of a table that is copied to a directory it keeps which token ranges are in files: each file appears when its rows are complete, and a copy
    /// that goes on reads the rest.
    #[arg(long, value_name = "FILE", help_heading = "Failures")]
    state: Option<PathBuf>,

    /// Go on with the load that --state is of; start it if there is none
    #[arg(long, requires = "state", help_heading = "Failures")]
    resume: bool,

    /// Maximum number of rows in flight; fewer while the cluster answers slowly
    #[arg(
        long,
        alias = "concurrency",
        value_parser = parse_count::<NonZeroUsize>,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = IN_FLIGHT,
        help_heading = "Cluster"
    )]
    in_flight: NonZeroUsize,
}

impl ClusterArgs {
    /// The file that keeps how far a copy into a directory is, and whether to go on with that.
    pub(super) fn state(&self) -> Option<(&Path, bool)> {
        self.state.as_deref().map(|path| (path, self.resume))
    }

    /// The options that are given, and what they have a meaning for; --state has one for directories, too, if `keeps_state`.
    pub(super) fn given(&self, keeps_state: bool) -> impl Iterator<Item = Given> {
        use OptionGroup::{Cluster, Columns, SstableOutput};
        [
            (self.create, "--create", &[Cluster, Columns][..]),
            (self.layout.is_some(), "--layout", &[Cluster, Columns]),
            (!self.map.is_empty(), "--map", &[Cluster, SstableOutput]),
            (self.timestamp != WriteTimes::Now, "--timestamp", &[Cluster, SstableOutput]),
            (self.ttl.is_some(), "--ttl", &[Cluster, SstableOutput]),
            (self.counters_at_least_once, "--counters-at-least-once", &[Cluster]),
            (self.lists_at_least_once, "--lists-at-least-once", &[Cluster]),
            (self.missing_only, "--missing-only", &[Cluster]),
            (self.dry_run, "--dry-run", &[Cluster]),
            (self.rejects.is_some(), "--rejects", &[Cluster]),
            (self.state.is_some() && !keeps_state, "--state", &[Cluster]),
            (self.in_flight != IN_FLIGHT, "--in-flight", &[Cluster]),
        ]
        .into_iter()
        .filter_map(|(is_given, name, groups)| is_given.then_some((name, groups)))
    }

    /// When rows were written, and when they expire.
    pub(super) fn stamps(&self) -> (WriteTimes, Option<Ttl>) {
        (self.timestamp.clone(), self.ttl.clone())
    }

    /// What the columns of the files are called in the table.
    pub(super) fn renames(&self) -> Outcome<Rename> {
        if self.map.is_empty() {
            return Ok(Rename::default());
        }
        let names: Rename =
            self.map.join(",").parse().map_err(|error: Error| error.with(Detail::Option("map")))?;
        let turned = names.names().iter().map(|(cql, column)| (column.clone(), cql.clone()));
        Ok(Rename::of(turned).by_option("map"))
    }

    /// Nothing is written.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// How the table is created and the cluster talked to. Which columns there are is the rows' part.
    pub(super) fn options(
        &self,
        from: &[PathBuf],
        rows: &RowArgs,
        interrupted: &Interrupted,
    ) -> Outcome<CqlOptions> {
        let mut options = CqlOptions::default();
        if !self.create && rows.key.is_some() {
            return Err(Failure::usage(
                "--key is for a table that is created: add --create, or leave --key out if the table exists",
            ));
        }
        if !self.create && (!rows.as_set.is_empty() || rows.frozen) {
            return Err(Failure::usage(
                "--as-set and --frozen are for a table that is created: add --create; an existing table has its own types",
            ));
        }
        rows.table.connection.connect(&mut options.connect);
        (options.create, options.dry_run) = (self.create, self.dry_run);
        let layout = self.layout.as_ref().and_then(ValueEnum::to_possible_value);
        options.layout = layout.and_then(|layout| TableLayout::by_name(layout.get_name()));
        let connection = &rows.table.connection;
        (options.in_flight, options.rate) = (self.in_flight, connection.rate.unwrap_or_default());
        (options.consistency, options.retry_for) = (connection.consistency, connection.retry_for());
        (options.timestamp, options.ttl) = self.stamps();
        options.counters_at_least_once = self.counters_at_least_once;
        options.lists_at_least_once = self.lists_at_least_once;
        options.rejects.clone_from(&self.rejects);
        options.max_errors = self.max_errors.unwrap_or_default();
        options.state = self.state_options(from, rows, interrupted)?;
        Ok(options)
    }

    fn state_options(
        &self,
        from: &[PathBuf],
        rows: &RowArgs,
        interrupted: &Interrupted,
    ) -> Outcome<Option<StateOptions>> {
        let Some(path) = &self.state else { return Ok(None) };
        let is_lasting = |path: &PathBuf| match Address::parse(path) {
            Address::Standard => false,
            address => address.scheme() != Some("cql"),
        };
        if !from.iter().all(is_lasting) {
            return Err(Failure::usage(
                "--state is for files: a live table, or what comes through a pipe, may have other rows when the load goes on",
            ));
        }
        let is_of_sstables = |path: &PathBuf| Address::parse(path).scheme() == Some("sstable");
        if from.iter().any(is_of_sstables) && rows.table.sstables.are_of_now() {
            return Err(Failure::usage(
                "--state with --mapping logical needs --at TIME: rows that expire meanwhile would not be there when the load goes on",
            ));
        }
        if self.rejects.as_ref().is_some_and(|rejects| is_same(rejects, path)) {
            return Err(Failure::usage("--state and --rejects are the same file; each needs its own"));
        }
        let mut state = StateOptions::new(path);
        state.source = rows.table.unchanged(from, interrupted)?;
        // All that says which rows there are and what becomes of them.
        (state.resume, state.options) = (self.resume, of_rows(rows));
        Ok(Some(state))
    }
}

/// Whether two paths lead to one place, whether there is a file yet or not.
fn is_same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        path.canonicalize().ok().unwrap_or_else(|| folder.join(path.file_name().unwrap_or_default()))
    };
    place(a) == place(b)
}
