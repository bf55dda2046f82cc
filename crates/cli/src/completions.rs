//! `marquetry completions`: a script for a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Outcome;
use crate::output::{Interrupted, Output};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  marquetry completions bash > /etc/bash_completion.d/marquetry
  marquetry completions zsh > \"${fpath[1]}/_marquetry\"
  marquetry completions fish > ~/.config/fish/completions/marquetry.fish")]
pub(crate) struct Completions {
    /// Name of the shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, mut command: Command, interrupted: Interrupted) -> Outcome {
        let mut output = Output::new(interrupted);
        clap_complete::generate(self.shell, &mut command, "marquetry", output.text());
        output.flush()
    }
}
