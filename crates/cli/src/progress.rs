//! Progress on a terminal; silence everywhere else.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use marquetry::tables::{Copied, CopyOptions, Doing, Table, Written};

use crate::numbers::{plural, size, thousands};

/// A bar on standard error, if a person can see one and nothing else is written there.
pub(crate) struct Progress {
    bar: ProgressBar,
    known: Known,
    /// Rows are read first, and then written.
    is_sorted: bool,
    /// What the bar counts now.
    counts: Cell<Option<Counts>>,
}

/// How much is to be done, as far as that is known before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Rows(u64),
    /// Bytes of input. Of text nobody knows how many rows there are.
    Bytes(u64),
    Nothing,
}

impl Known {
    /// Of tables that are read, of which each row is passed a number of times.
    fn of(tables: &[&Table], limit: Option<u64>, times: u64) -> Known {
        let sum = |of: &dyn Fn(&Table) -> Option<u64>| {
            tables.iter().try_fold(0_u64, |sum, table| Some(sum.saturating_add(of(table)?)))
        };
        let rows = sum(&|table| Some(rows_wanted(table, limit)).filter(|rows| *rows != u64::MAX));
        match (rows, sum(&|table| table.bytes)) {
            (Some(rows), _) => Known::Rows(rows.saturating_mul(times)),
            (None, Some(bytes)) => Known::Bytes(bytes),
            (None, None) => Known::Nothing,
        }
    }
}

/// What is counted, and how much of it there is, if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Rows(Option<u64>),
    Bytes(u64),
}

impl Counts {
    /// What tells most of a phase of a copy.
    fn of(phase: Phase, known: Known, is_sorted: bool, copied: &Copied) -> Counts {
        // By then all rows were read.
        let all_are_read = phase == Phase::Verifying || (is_sorted && phase == Phase::Writing);
        match known {
            Known::Rows(rows) => Counts::Rows(Some(rows)),
            _ if all_are_read => Counts::Rows(Some(copied.rows)),
            Known::Bytes(bytes) => Counts::Bytes(bytes),
            Known::Nothing => Counts::Rows(None),
        }
    }

    fn template(self) -> &'static str {
        match self {
            Counts::Rows(Some(_)) => "{prefix}{wide_bar} {human_pos} of {human_len} rows  {msg}  ETA {eta}",
            Counts::Bytes(_) => "{prefix}{wide_bar} {percent}%  {msg}  ETA {eta}",
            Counts::Rows(None) => "{spinner} {prefix}{human_pos} rows  {msg}",
        }
    }
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
    fn new(known: Known, quiet: bool, goes: Goes) -> Progress {
        let hidden = quiet
            || !io::stderr().is_terminal()
            || (goes == Goes::ToStdout && io::stdout().is_terminal())
            || known == Known::Rows(0);
        let bar = match hidden {
            true => ProgressBar::hidden(),
            false => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5)),
        };
        Progress { bar, known, is_sorted: false, counts: Cell::new(None) }
    }

    /// A bar for tables all of whose rows are read, each of them a number of times.
    pub(crate) fn of_tables(tables: &[&Table], times: u64, quiet: bool) -> Progress {
        Progress::new(Known::of(tables, None, times), quiet, Goes::Elsewhere)
    }

    /// A bar for a copy of a table, `is_sorted` or not.
    pub(crate) fn of_copy(
        table: &Table,
        options: &CopyOptions,
        is_sorted: bool,
        quiet: bool,
        goes: Goes,
    ) -> Progress {
        let mut progress = Progress::new(Known::of(&[table], options.limit, 1), quiet, goes);
        progress.is_sorted = is_sorted;
        progress
    }

    /// A bar for files, for work that prints nothing before its end.
    pub(crate) fn of_files() -> Progress {
        let progress = Progress::new(Known::Nothing, false, Goes::Elsewhere);
        progress.set_style("{wide_bar} {human_pos} of {human_len} files  ETA {eta}");
        progress
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
        self.copied_by(copied, None);
    }

    /// The same of a destination that tells what it does.
    pub(crate) fn copied_by(&self, copied: &Copied, doing: Option<Doing>) {
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
        let counts = Counts::of(phase, self.known, self.is_sorted, copied);
        self.update(counts, rows, copied.bytes_read, copied.written.bytes);
        if let Some(doing) = doing {
            self.bar.set_message(format!(
                "{}  {}",
                self.bar.message(),
                told(&doing, rows, self.bar.elapsed())
            ));
        }
    }

    /// Rows that were passed, and bytes that were read for that.
    pub(crate) fn passed(&self, rows: u64, bytes_read: u64) {
        if self.bar.is_hidden() {
            return;
        }
        let counts = Counts::of(Phase::Writing, self.known, false, &Copied::default());
        self.update(counts, rows, bytes_read, 0);
    }

    /// Rows done so far, the bytes that they came from, and those they became, if they are counted.
    fn update(&self, counts: Counts, rows: u64, bytes_read: u64, bytes: u64) {
        if self.counts.replace(Some(counts)) != Some(counts) {
            self.set_style(counts.template());
            match counts {
                Counts::Rows(Some(all)) | Counts::Bytes(all) => self.bar.set_length(all),
                Counts::Rows(None) => {}
            }
        }
        self.bar.set_position(match counts {
            Counts::Rows(_) => rows,
            Counts::Bytes(all) => bytes_read.min(all),
        });
        let mut message = Vec::new();
        if let Counts::Bytes(_) = counts {
            message.push(plural(rows, "row"));
        }
        if bytes > 0 {
            let millis = u64::try_from(self.bar.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
            message.push(format!("{}/s", size(bytes.saturating_mul(1000) / millis)));
        }
        self.bar.set_message(message.join("  "));
    }

    /// A template that indicatif cannot read would be a bug of ours, not worth failing for.
    fn set_style(&self, template: &str) {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar.set_style(style);
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Rows a second, rows in flight, and what went wrong: `9,700 rows/s  213 in flight  3 sent again  1 rejected`.
fn told(doing: &Doing, rows: u64, elapsed: Duration) -> String {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let Written { retries, rejected, .. } = doing.written;
    let mut parts = vec![
        format!("{} rows/s", thousands(rows.saturating_mul(1000) / millis)),
        format!("{} in flight", thousands(doing.in_flight)),
    ];
    for (number, what) in [(retries, "sent again"), (rejected, "rejected")] {
        parts.extend((number > 0).then(|| format!("{} {what}", thousands(number))));
    }
    parts.join("  ")
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
    use std::sync::Arc;

    use marquetry::parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};

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

    #[test]
    fn what_a_destination_does_is_told() {
        let mut doing = Doing::default();
        doing.in_flight = 213;
        assert_eq!(told(&doing, 9700, Duration::from_secs(1)), "9,700 rows/s  213 in flight");
        (doing.written.retries, doing.written.rejected) = (3, 1);
        let said = told(&doing, 0, Duration::ZERO);
        assert_eq!(said, "0 rows/s  213 in flight  3 sent again  1 rejected");
    }

    #[test]
    fn what_is_counted_is_what_is_known() {
        let schema = Schema::of_fields(&[FieldDef::new("a", FieldType::Leaf(PhysicalType::Int32, None))]);
        let mut parquet = Table::new("a.parquet", Arc::new(schema.unwrap()));
        (parquet.rows, parquet.bytes) = (Some(10), Some(100));
        let mut text = parquet.clone();
        (text.rows, text.bytes) = (None, Some(1000));
        let mut pipe = text.clone();
        pipe.bytes = None;
        assert_eq!(Known::of(&[&parquet], Some(7), 1), Known::Rows(7));
        assert_eq!(Known::of(&[&parquet, &parquet], None, 2), Known::Rows(40));
        assert_eq!(Known::of(&[&text], None, 1), Known::Bytes(1000));
        assert_eq!(Known::of(&[&text, &parquet], None, 2), Known::Bytes(1100));
        assert_eq!(Known::of(&[&text], Some(7), 1), Known::Rows(7));
        assert_eq!(Known::of(&[&pipe], None, 1), Known::Nothing);

        let mut copied = Copied::default();
        copied.rows = 70;
        let of = |phase, known, is_sorted| Counts::of(phase, known, is_sorted, &copied);
        assert_eq!(of(Phase::Writing, Known::Rows(7), false), Counts::Rows(Some(7)));
        assert_eq!(of(Phase::Writing, Known::Bytes(9), false), Counts::Bytes(9));
        assert_eq!(of(Phase::Sorting, Known::Bytes(9), true), Counts::Bytes(9));
        // All rows were read by then.
        assert_eq!(of(Phase::Writing, Known::Bytes(9), true), Counts::Rows(Some(70)));
        assert_eq!(of(Phase::Verifying, Known::Nothing, false), Counts::Rows(Some(70)));
        assert_eq!(of(Phase::Writing, Known::Nothing, false), Counts::Rows(None));
    }

    #[test]
    fn bytes_are_counted_beside_the_rows() {
        let progress = Progress::new(Known::Bytes(200), true, Goes::Elsewhere);
        progress.update(Counts::Bytes(200), 1500, 50, 0);
        let shown = (progress.bar.position(), progress.bar.length(), progress.bar.message());
        assert_eq!(shown, (50, Some(200), "1,500 rows".to_string()));
        progress.update(Counts::Rows(Some(3000)), 1500, 200, 0);
        let shown = (progress.bar.position(), progress.bar.length(), progress.bar.message());
        assert_eq!(shown, (1500, Some(3000), String::new()));
    }
}
