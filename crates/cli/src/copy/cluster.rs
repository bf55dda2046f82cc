//! Rows into a table of a live cluster.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use marquetry::base::{Detail, Error};
use marquetry::cluster::{CqlOptions, IN_FLIGHT, MaxErrors, RETRY_FOR, Rate, StateOptions, Ttl, WriteTimes};
use marquetry::tables::{Address, Rename};

use crate::args::RowArgs;
use crate::failure::{Failure, Outcome};
use crate::numbers::{parse_count, parse_duration};

/// How a cluster is talked to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Create the table and its types, unless they exist with the same columns and key
    #[arg(long, help_heading = "Table")]
    pub(super) create: bool,

    /// Names in the table of columns of the files: cql=parquet,…
    ///
    /// As --rename, the other way round. What is named nowhere has the same name in both.
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

    /// Check everything and write nothing: connects, compares the table, converts all rows
    #[arg(long, help_heading = "Table")]
    dry_run: bool,

    /// New Parquet file for rows that cannot be loaded, with a column 'error'
    ///
    /// These are rows of which a value does not fit, or a key is null, and those that the cluster refuses as invalid. Without it the first such row
    /// ends the load. The file appears at the end, if there are any, also if the load fails. Rows that get lost on the way, because the
    /// cluster is overloaded or down, never go there: they are sent again.
    #[arg(long, value_name = "FILE", help_heading = "Failures")]
    rejects: Option<PathBuf>,

    /// Rows that may be rejected before the load ends: 100 or 0.1% [default: 100]
    #[arg(long, value_name = "N|N%", requires = "rejects", help_heading = "Failures")]
    max_errors: Option<MaxErrors>,

    /// How long rows are sent again when a server is down or overloaded: 90s, 5m, 1h
    #[arg(
        long,
        value_parser = parse_duration,
        value_name = "TIME",
        default_value = "2m",
        help_heading = "Failures"
    )]
    retry_for: Duration,

    /// File that keeps how far the load is, for --resume
    ///
    /// It is written once a second. After a crash, Ctrl-C or an outage the same command with --resume goes on from there, with the same write times,
    /// and loses nothing. It must be the same rows, options and table. A load that was finished is not repeated.
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

    /// Maximum rows a second, bytes a second, or both: 20K · 10MB · 20K,10MB
    #[arg(long, value_name = "RATE", help_heading = "Cluster")]
    rate: Option<Rate>,
}

impl ClusterArgs {
    /// An option that is given and has no meaning elsewhere.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.create, "--create"),
            (!self.map.is_empty(), "--map"),
            (self.timestamp != WriteTimes::Now, "--timestamp"),
            (self.ttl.is_some(), "--ttl"),
            (self.counters_at_least_once, "--counters-at-least-once"),
            (self.dry_run, "--dry-run"),
            (self.rejects.is_some(), "--rejects"),
            (self.retry_for != RETRY_FOR, "--retry-for"),
            (self.state.is_some(), "--state"),
            (self.in_flight != IN_FLIGHT, "--in-flight"),
            (self.rate.is_some(), "--rate"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// What the columns of the files are called in the table, as --rename has it.
    pub(super) fn renames(&self) -> Outcome<Vec<String>> {
        if self.map.is_empty() {
            return Ok(Vec::new());
        }
        let names: Rename =
            self.map.join(",").parse().map_err(|error: Error| error.with(Detail::Option("map")))?;
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        Ok(names.names().iter().map(|(cql, column)| format!("{}={}", quoted(column), quoted(cql))).collect())
    }

    /// Nothing is written.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// How the table is created and the cluster talked to. Which columns there are is the rows' part.
    pub(super) fn options(&self, from: &[PathBuf], rows: &RowArgs) -> Outcome<CqlOptions> {
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
        (options.in_flight, options.rate) = (self.in_flight, self.rate.unwrap_or_default());
        (options.consistency, options.retry_for) = (rows.table.connection.consistency, self.retry_for);
        (options.timestamp, options.ttl) = (self.timestamp.clone(), self.ttl.clone());
        options.counters_at_least_once = self.counters_at_least_once;
        options.rejects.clone_from(&self.rejects);
        options.max_errors = self.max_errors.unwrap_or_default();
        options.state = self.state_options(from, rows)?;
        Ok(options)
    }

    fn state_options(&self, from: &[PathBuf], rows: &RowArgs) -> Outcome<Option<StateOptions>> {
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
        let mut state = StateOptions::new(path);
        // All that says which rows there are and what becomes of them.
        (state.resume, state.options) = (self.resume, format!("{rows:?}"));
        Ok(Some(state))
    }
}
