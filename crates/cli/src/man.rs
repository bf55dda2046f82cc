//! `marquetry man`: manual pages.

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::failure::{Failure, Outcome};
use crate::output::{Interrupted, Output};
use crate::parquet2cql::Parquet2Cql;

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
    pub(crate) fn run(&self, mut marquetry: Command, interrupted: Interrupted) -> Outcome {
        marquetry.build();
        let page = match self.command.as_deref() {
            None => marquetry,
            Some("parquet2cql") => Parquet2Cql::command(),
            Some(name) => {
                // Its full name is `marquetry-show`, since it was built.
                let command = marquetry.find_subcommand(name).cloned();
                command.ok_or_else(|| Failure::usage(format!("there is no command {name:?}")))?
            }
        };
        let page = page.disable_help_subcommand(true);
        let mut output = Output::new(interrupted);
        // Only memory is written to.
        let written = Man::new(page).manual("Marquetry Manual").render(output.text());
        written.map_err(|error| Failure::bug(format!("a manual page could not be written: {error}")))?;
        output.flush()
    }
}
