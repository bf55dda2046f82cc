//! What all copies have in common: what is copied, and what is said of it.

use std::path::PathBuf;
use std::time::Instant;

use crate::args::RowArgs;
use crate::numbers::{plural, thousands};
use crate::output::Interrupted;

/// What is copied.
#[derive(Clone, Copy)]
pub(crate) struct Copying<'a> {
    pub(crate) from: &'a [PathBuf],
    pub(crate) rows: &'a RowArgs,
    pub(crate) quiet: bool,
    pub(crate) interrupted: &'a Interrupted,
}

/// `200,000 rows loaded into ks.trips in 3.2 s (62,500 a second)`, and what else there is to say in the parentheses.
pub(crate) fn summary(rows: u64, what: &str, started: Instant, more: &str) -> String {
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = thousands(u64::try_from(u128::from(rows) * 1000 / u128::from(millis)).unwrap_or(u64::MAX));
    let rows = plural(usize::try_from(rows).unwrap_or(usize::MAX), "row");
    let comma = if more.is_empty() { "" } else { ", " };
    format!("{rows} {what} in {}.{} s ({rate} a second{comma}{more})\n", millis / 1000, millis / 100 % 10)
}
