//! The command `marquetry`, and `parquet2cql`, which is the same program by another name.
//!
//! A file each command: `cql`, `copy`, `diff`, `show`, `rows`, `watch`, `ceph`, `completions`, `man`. This one reads the command line, and turns whatever
//! happens into one line on standard error and an exit code.
#![forbid(unsafe_code)]

mod args;
#[cfg(feature = "rados")]
mod ceph;
mod completions;
mod connection_args;
mod copy;
mod cql;
mod diff;
mod failure;
mod find;
mod hints;
mod json;
mod man;
mod numbers;
mod output;
mod parquet2cql;
mod progress;
mod rows;
mod show;
mod sstable_args;
mod table;
mod table_args;
mod target;
mod terminal;
mod text;
mod watch;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, CommandFactory, Parser, Subcommand};

use failure::{EXIT_HELP, EXIT_HELP_OF_SOME, Exit, Failure, Outcome};
use hints::program_name;
use output::Interrupted;

const EXAMPLES: &str = "\
Examples:
  marquetry show trips.parquet                   describe a file
  marquetry rows trips.parquet --limit 5         print its first rows
  marquetry find trips.parquet 'trip = 4711'     find rows
  marquetry cql trips.parquet --table ks.trips --key-row-number id | cqlsh
  marquetry copy trips.parquet cql://localhost/ks.trips --create --key trip
  marquetry copy cql://localhost/ks.trips trips.parquet
  marquetry copy trips/ trips.csv.gz             convert files";

/// Apache Parquet for ScyllaDB and Apache Cassandra
#[derive(Parser)]
#[command(
    name = "marquetry",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = format!("{EXAMPLES}\n\n{EXIT_HELP}\n{EXIT_HELP_OF_SOME}"),
    after_long_help = format!(
        "{EXAMPLES}\n\n{EXIT_HELP}\n{EXIT_HELP_OF_SOME}\n\nRows, row groups and pages in messages are counted from 0. Set NO_COLOR for no colour."
    )
)]
struct Marquetry {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    Show(show::Show),
    Rows(rows::RowsCommand),
    Find(find::Find),
    Count(find::CountCommand),
    Cql(cql::Cql),
    Copy(Box<copy::Copy>),
    Diff(diff::Diff),
    Watch(watch::Watch),
    #[cfg(feature = "rados")]
    Ceph(ceph::Ceph),
    Completions(completions::Completions),
    Man(man::ManPage),
}

/// Runs the program, by the name it was started as.
pub fn main() -> ExitCode {
    let program = program_name();
    install_panic_line(&program);
    let done = if program == "parquet2cql" { run::<parquet2cql::Parquet2Cql>() } else { run::<Marquetry>() };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(&program),
    }
}

/// A program that this binary can be.
trait Program: Parser {
    fn run(self, interrupted: Interrupted) -> Outcome;
}

impl Program for Marquetry {
    fn run(self, interrupted: Interrupted) -> Outcome {
        match self.command {
            Commands::Show(command) => command.run(interrupted),
            Commands::Rows(command) => command.run(interrupted),
            Commands::Find(command) => command.run(interrupted),
            Commands::Count(command) => command.run(interrupted),
            Commands::Cql(command) => command.run(interrupted),
            Commands::Copy(command) => command.run(interrupted),
            Commands::Diff(command) => command.run(interrupted),
            Commands::Watch(command) => command.run(interrupted),
            #[cfg(feature = "rados")]
            Commands::Ceph(command) => command.run(interrupted),
            Commands::Completions(command) => command.run(Marquetry::command(), interrupted),
            Commands::Man(command) => command.run(Marquetry::command(), interrupted),
        }
    }
}

impl Program for parquet2cql::Parquet2Cql {
    fn run(self, interrupted: Interrupted) -> Outcome {
        parquet2cql::Parquet2Cql::run(&self, interrupted)
    }
}

fn run<P: Program>() -> Outcome<ExitCode> {
    let parsed = P::command().try_get_matches().and_then(|matches| {
        let is_trusting = is_trusting(&matches);
        Ok((P::from_arg_matches(&matches)?, is_trusting))
    });
    match parsed {
        Ok((program, is_trusting)) => {
            let done = program.run(Interrupted::listen()?);
            done.map(|()| ExitCode::SUCCESS).map_err(|failure| failure.of_command(is_trusting))
        }
        Err(error) => print_usage(error),
    }
}

/// Whether the command's limits are lifted.
fn is_trusting(matches: &ArgMatches) -> bool {
    let given = matches.subcommand().map(|(_, command)| command.try_get_one::<bool>("trust"));
    given.is_some_and(|given| matches!(given, Ok(Some(true))))
}

/// Help and versions go to standard output, mistakes to standard error, without a password that may have stood on the
/// command line.
fn print_usage(error: clap::Error) -> Outcome<ExitCode> {
    let error = escaped(with_hint(error));
    let styled = error.render();
    let plain = styled.to_string();
    let lines: Vec<String> = plain.split('\n').map(table::printable).collect();
    let escaped = lines.join("\n");
    let text = |is_terminal: bool| match is_terminal && escaped == plain && terminal::is_colour_wanted() {
        true => styled.ansi().to_string(),
        false => escaped,
    };
    if error.use_stderr() {
        let mut stderr = io::stderr();
        // Nothing can be done about a standard error that is closed.
        let _ = stderr.write_all(failure::redact(&text(stderr.is_terminal())).as_bytes());
        return Ok(ExitCode::from(Exit::Usage as u8));
    }
    let mut stdout = io::stdout().lock();
    let text = text(stdout.is_terminal());
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// An error about a command that there is none of: with the one that does what was probably meant.
fn with_hint(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(hint) = hints::of_command(&name.to_ascii_lowercase())
    {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

/// The error with line ends and what speaks to the terminal escaped in what it repeats of the command line, which may
/// have come from a file's name. Passwords first: they are found by what was given.
fn escaped(mut error: clap::Error) -> clap::Error {
    let given = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) if text.contains(table::is_harmful) => Some((kind, text.clone())),
        _ => None,
    });
    for (kind, text) in given.collect::<Vec<_>>() {
        error.insert(kind, ContextValue::String(table::printable(&failure::redact(&text))));
    }
    error
}

/// A bug ends the program with one line and its own exit code, not with a backtrace.
fn install_panic_line(program: &str) {
    let program = program.to_string();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic
            .location()
            .map(|place| format!(" at {}:{}", place.file(), place.line()))
            .unwrap_or_default();
        let payload = panic.payload();
        let text =
            payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let what = text.unwrap_or("a check failed");
        failure::say(&program, &format!("a bug in marquetry{place}: {what}; please report it"));
        std::process::exit(Exit::Bug as i32);
    }));
}
