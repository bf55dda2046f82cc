//! Progress on a terminal; silence everywhere else.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use marquetry::tables::{Copied, CopyOptions, Table};

use crate::numbers::size;

/// A bar on standard error, if a person can see one and nothing else is written there.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Rows are read first, and then written.
    is_sorted: bool,
}

/// What a copy is doing, each for all of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Sorting,
    Writing,
    Verifying,
}

impl Phase {
    /// What a copy is doing, and the rows that this is done for.
    fn of(copied: &Copied, is_sorted: bool) -> (Phase, u64) {
        let Copied { rows, written, verified, .. } = copied;
        match () {
            () if *verified > 0 => (Phase::Verifying, *verified),
            () if is_sorted && written.rows == 0 => (Phase::Sorting, *rows),
            () => (Phase::Writing, written.rows),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Phase::Sorting => "sorting",
            Phase::Writing => "writing",
            Phase::Verifying => "verifying",
        }
    }
}

/// Where a command's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goes {
    /// To standard output: no bar if that is a terminal, for the bar would be drawn into it.
    ToStdout,
    /// Elsewhere.
    Elsewhere,
}

impl Progress {
    /// A bar for `rows` rows, of which `u64::MAX` are any number; none for the quiet.
    pub(crate) fn new(rows: u64, quiet: bool, goes: Goes) -> Progress {
        let hidden = quiet
            || !io::stderr().is_terminal()
            || (goes == Goes::ToStdout && io::stdout().is_terminal())
            || rows == 0;
        if hidden {
            return Progress { bar: ProgressBar::hidden(), is_sorted: false };
        }
        // Of text nobody knows how many rows there are.
        let known = (rows != u64::MAX).then_some(rows);
        let bar = ProgressBar::with_draw_target(known, ProgressDrawTarget::stderr_with_hz(5));
        let template = match known {
            Some(_) => "{prefix}{wide_bar} {human_pos} of {human_len} rows  {msg}  ETA {eta}",
            None => "{spinner} {prefix}{human_pos} rows  {msg}",
        };
        // A template that indicatif cannot read would be a bug of ours, not worth failing for.
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Progress { bar, is_sorted: false }
    }

    /// A bar for a copy of a table, `is_sorted` or not.
    pub(crate) fn of_copy(
        table: &Table,
        options: &CopyOptions,
        is_sorted: bool,
        quiet: bool,
        goes: Goes,
    ) -> Progress {
        let mut progress = Progress::new(rows_wanted(table, options.limit), quiet, goes);
        progress.is_sorted = is_sorted;
        progress
    }

    /// A bar for files, for work that prints nothing before its end.
    pub(crate) fn of_files() -> Progress {
        if !io::stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden(), is_sorted: false };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        let template = "{wide_bar} {human_pos} of {human_len} files  ETA {eta}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Progress { bar, is_sorted: false }
    }

    /// Files that are done, and all.
    pub(crate) fn files(&self, done: u64, all: u64) {
        if !self.bar.is_hidden() {
            self.bar.set_length(all);
            self.bar.set_position(done);
        }
    }

    /// How far the copy is: rows are done when they are written, in a live table when they are acknowledged.
    pub(crate) fn copied(&self, copied: &Copied) {
        if self.bar.is_hidden() {
            return;
        }
        let (phase, rows) = Phase::of(copied, self.is_sorted);
        let word = format!("{} ", phase.word());
        if self.bar.prefix() != word {
            self.bar.set_prefix(word);
            // The time that is left is that of this phase.
            self.bar.reset_eta();
        }
        self.update(rows, copied.written.bytes);
    }

    /// Rows done so far, and the bytes they became or came from, if they are counted.
    pub(crate) fn update(&self, rows: u64, bytes: u64) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(rows);
        if bytes == 0 {
            return;
        }
        let millis = u64::try_from(self.bar.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        self.bar.set_message(format!("{}/s", size(bytes.saturating_mul(1000) / millis)));
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The rows of a table that a limit leaves; as many as there may be, where nobody knows.
pub(crate) fn rows_wanted(table: &Table, limit: Option<u64>) -> u64 {
    table.rows.unwrap_or(u64::MAX).min(limit.unwrap_or(u64::MAX))
}

impl Drop for Progress {
    /// So that an error's line does not stand beside a bar.
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_in_each_phase() {
        let mut copied = Copied::default();
        copied.rows = 7;
        assert_eq!(Phase::of(&copied, true), (Phase::Sorting, 7));
        assert_eq!(Phase::of(&copied, false), (Phase::Writing, 0));
        copied.written.rows = 5;
        assert_eq!(Phase::of(&copied, true), (Phase::Writing, 5));
        copied.verified = 2;
        assert_eq!(Phase::of(&copied, true), (Phase::Verifying, 2));
    }
}
