//! What all copies have in common: what is copied, and what is said of it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use marquetry::Metrics;
use marquetry::base::Error;
use marquetry::tables::{Copied, Watch, Written};
use serde::Serialize;

use crate::args::{RowArgs, ThreadArgs};
use crate::failure::Outcome;
use crate::numbers::{plural, thousands};
use crate::output::Interrupted;

/// What is copied.
#[derive(Clone, Copy)]
pub(crate) struct Copying<'a> {
    pub(crate) from: &'a [PathBuf],
    pub(crate) rows: &'a RowArgs,
    pub(crate) threads: ThreadArgs,
    pub(crate) quiet: bool,
    /// Nothing is written.
    pub(crate) is_dry_run: bool,
    /// A table is created, which needs a key.
    pub(crate) makes_table: bool,
    /// Only rows that the destination does not have.
    pub(crate) missing_only: bool,
    /// Where its metrics are served.
    pub(crate) metrics: Option<&'a str>,
    /// The summary is JSON.
    pub(crate) json: bool,
    pub(crate) interrupted: &'a Interrupted,
}

impl Copying<'_> {
    /// Serves how far the copy is, if that is wanted.
    pub(crate) fn metrics(&self, watch: Option<Watch>) -> Outcome<Option<Metrics>> {
        let serve = |at: &str| Ok(Metrics::serve(Metrics::address(at)?, watch)?);
        self.metrics.map(serve).transpose()
    }
}

/// The summary for programs, on a line.
#[derive(Serialize)]
struct Summary<'a> {
    destination: &'a str,
    rows_read: u64,
    rows_written: u64,
    rows_rejected: u64,
    values_lost: u64,
    retries: u64,
    bytes: u64,
    files: u64,
    row_groups: u64,
    seconds: f64,
    is_dry_run: bool,
    notes: Vec<String>,
}

/// What a copy did, as JSON.
pub(crate) fn summary_json(
    copying: &Copying<'_>,
    copied: &Copied,
    destination: &str,
    notes: Vec<String>,
    started: Instant,
) -> Outcome<String> {
    let Written { rows, rejected, retries, bytes, files, row_groups, .. } = copied.written;
    let summary = Summary {
        destination,
        rows_read: copied.rows,
        rows_written: rows,
        rows_rejected: rejected,
        values_lost: copied.values_lost,
        retries,
        bytes,
        files,
        row_groups,
        seconds: started.elapsed().as_secs_f64(),
        is_dry_run: copying.is_dry_run,
        notes,
    };
    let json = serde_json::to_string(&summary).map_err(|error| Error::internal(error.to_string()))?;
    Ok(json + "\n")
}

/// `200,000 rows loaded into ks.trips in 3.2 s (62,500 a second)`, and what else there is to say in the parentheses.
///
/// There is no rate of less than one row.
pub(crate) fn summary(rows: u64, what: &str, started: Instant, more: &str) -> String {
    summary_of(rows, what, started.elapsed(), more)
}

fn summary_of(rows: u64, what: &str, elapsed: Duration, more: &str) -> String {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = u64::try_from(u128::from(rows) * 1000 / u128::from(millis)).unwrap_or(u64::MAX);
    let rate = (rate > 0).then(|| format!("{} a second", thousands(rate)));
    let more = (!more.is_empty()).then(|| more.to_string());
    let notes: Vec<String> = rate.into_iter().chain(more).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let rows = plural(rows, "row");
    format!("{rows} {what} in {}.{} s{notes}\n", millis / 1000, millis / 100 % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_rows() {
        let summary = |rows, millis, more| summary_of(rows, "written", Duration::from_millis(millis), more);
        assert_eq!(summary(200_000, 3_200, ""), "200,000 rows written in 3.2 s (62,500 a second)\n");
        assert_eq!(summary(2, 1_400, "verified"), "2 rows written in 1.4 s (1 a second, verified)\n");
        assert_eq!(summary(1, 1_400, ""), "1 row written in 1.4 s\n");
        assert_eq!(summary(0, 90, "verified"), "0 rows written in 0.0 s (verified)\n");
    }
}
