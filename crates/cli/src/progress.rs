//! Progress on a terminal; silence everywhere else.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::numbers::size;

/// A bar on standard error, if a person can see one and nothing else is written there.
pub(crate) struct Progress {
    bar: ProgressBar,
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
            return Progress { bar: ProgressBar::hidden() };
        }
        // Of text nobody knows how many rows there are.
        let known = (rows != u64::MAX).then_some(rows);
        let bar = ProgressBar::with_draw_target(known, ProgressDrawTarget::stderr_with_hz(5));
        let template = match known {
            Some(_) => "{wide_bar} {human_pos} of {human_len} rows  {msg}  ETA {eta}",
            None => "{spinner} {human_pos} rows  {msg}",
        };
        // A template that indicatif cannot read would be a bug of ours, not worth failing for.
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Progress { bar }
    }

    /// Rows done so far.
    pub(crate) fn rows(&self, rows: u64) {
        self.bar.set_position(rows);
    }

    /// Rows done so far, and the bytes they became or came from.
    pub(crate) fn update(&self, rows: u64, bytes: u64) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(rows);
        let millis = u64::try_from(self.bar.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        self.bar.set_message(format!("{}/s", size(bytes.saturating_mul(1000) / millis)));
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    /// So that an error's line does not stand beside a bar.
    fn drop(&mut self) {
        self.clear();
    }
}
