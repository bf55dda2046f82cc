//! What is known of the terminal: its width, and whether it wants colour.

use std::env;
use std::io::{self, IsTerminal};

/// How text for people is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Columns; `None` when nothing limits a line (a pipe or a file).
    pub(crate) width: Option<usize>,
    /// Whether standard output takes colour.
    pub(crate) colour: bool,
}

impl Terminal {
    /// Standard output's. The variable `COLUMNS` overrides the width, `NO_COLOR` (not empty) forbids colour.
    pub(crate) fn of_stdout() -> Terminal {
        let is_terminal = io::stdout().is_terminal();
        let told =
            env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&width: &usize| width > 0);
        let measured = || console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        Terminal {
            width: told.or_else(|| if is_terminal { measured() } else { None }),
            colour: is_terminal && is_colour_wanted(),
        }
    }

    /// Text that names a part.
    pub(crate) fn bold(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Text that only guides the eye.
    pub(crate) fn dim(self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Whether a terminal may be sent colour.
pub(crate) fn is_colour_wanted() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}
