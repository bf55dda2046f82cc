//! `marquetry man`: manual pages.

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::failure::{Failure, Outcome};
use crate::output::{Interrupted, Output};
use crate::parquet2cql::Parquet2Cql;

/// The day of the last change to what the pages say.
const DATE: &str = "2026-11-30";

/// What each page is a part of, and its version.
const SOURCE: &str = concat!("marquetry ", env!("CARGO_PKG_VERSION"));

/// Print a manual page
///
/// Packages install marquetry.1 and one page for each command, named as git's are: marquetry-show.1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  marquetry man | man -l -
  marquetry man > /usr/local/share/man/man1/marquetry.1
  marquetry man show > /usr/local/share/man/man1/marquetry-show.1
  marquetry man parquet2cql > /usr/local/share/man/man1/parquet2cql.1")]
pub(crate) struct ManPage {
    /// Name of the command, or parquet2cql [default: marquetry itself]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

impl ManPage {
    pub(crate) fn run(&self, marquetry: Command, interrupted: Interrupted) -> Outcome {
        let mut marquetry = marquetry.disable_help_subcommand(true);
        marquetry.build();
        let mut page = match self.command.as_deref() {
            None => marquetry,
            Some("parquet2cql") => Parquet2Cql::command(),
            Some(name) => {
                // Its full name is `marquetry-show`, since it was built.
                let command = marquetry.find_subcommand(name).cloned();
                command.ok_or_else(|| Failure::usage(format!("there is no command {name:?}")))?
            }
        };
        // As --help has it: a line, with the values of options and with dots where several files can stand.
        let usage = page.render_usage().to_string();
        let usage = usage.strip_prefix("Usage:").map(|usage| usage.trim().to_string());
        let more = page.get_after_long_help().or(page.get_after_help()).map(ToString::to_string);
        let page = page.override_usage(usage.unwrap_or_default()).after_help(None).after_long_help(None);
        let mut text = Vec::new();
        // Only memory is written to.
        Man::new(page)
            .date(DATE)
            .source(SOURCE)
            .manual("Marquetry Manual")
            .render(&mut text)
            .and_then(|()| sections(&more.unwrap_or_default()).to_writer(&mut text))
            .map_err(|error| Failure::bug(format!("a manual page could not be written: {error}")))?;
        let mut output = Output::new(interrupted);
        // An empty line is one wherever it stands, which linters of pages doubt.
        let text = String::from_utf8_lossy(&text).replace(".br\n\n.br\n", "\n").replace("\n\n", "\n.sp\n");
        output.text().extend_from_slice(text.as_bytes());
        output.flush()
    }
}

/// What follows the options: examples and tables keep their lines, and stand under the names that manual pages give them.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut are_notes = false;
    for part in text.split("\n\n").filter(|part| !part.is_empty()) {
        let title = part.split_once(":\n  ").map(|(title, _)| title);
        let own = match title {
            Some("Example" | "Examples") => Some("EXAMPLES"),
            Some("Exit codes") => Some("EXIT STATUS"),
            _ => None,
        };
        if own.is_some() || !are_notes {
            roff.control("SH", [own.unwrap_or("NOTES")]);
        } else if title.is_none() {
            roff.control("PP", []);
        }
        are_notes = own.is_none();
        let Some(title) = title else {
            roff.text([roman(part)]);
            continue;
        };
        if are_notes {
            roff.control("SS", [title]);
        }
        roff.control("nf", []);
        for line in part.lines().skip(1) {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    roff
}
