//! How a command fails: an exit code, and one line that a person understands.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use marquetry_base::{Error, ErrorKind};

/// What a command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is something to say.
    Said(Exit, String),
    /// Nobody reads the output any more (`| head`): no error.
    ClosedPipe,
    /// Ctrl-C or a termination signal.
    Interrupted,
}

/// The exit codes, as `--help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The data or the server refused.
    Refused = 1,
    /// The command line asks for what cannot be. (clap's own code too.)
    Usage = 2,
    /// Input could not be read, output not written, a server not reached.
    Unreachable = 3,
    /// A bug in Marquetry.
    Bug = 4,
    /// What shells report for a program that Ctrl-C ended.
    Interrupted = 130,
}

/// What `--help` says about exit codes.
pub(crate) const EXIT_HELP: &str = "\
Exit codes:
  0    done (also when the reader of the output went away, as with | head)
  1    the data or the server refused: a corrupt file, a value that cannot be converted
  2    the command line is wrong
  3    input could not be read, output not written, or a server not reached
  4    a bug in marquetry
  130  interrupted; what was printed before is whole";

impl Failure {
    /// The command line asks for what cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Said(Exit::Usage, message.into())
    }

    /// The data refuse.
    pub(crate) fn refused(message: impl Into<String>) -> Failure {
        Failure::Said(Exit::Refused, message.into())
    }

    /// A file or a server cannot be had.
    pub(crate) fn unreachable(message: impl Into<String>) -> Failure {
        Failure::Said(Exit::Unreachable, message.into())
    }

    /// A check found a bug.
    pub(crate) fn bug(message: impl Into<String>) -> Failure {
        Failure::Said(Exit::Bug, message.into())
    }

    /// An engine's error about `subject`, which is a file or an address.
    pub(crate) fn about(subject: impl Display, error: &Error) -> Failure {
        let exit = match error.kind() {
            ErrorKind::Source => Exit::Unreachable,
            ErrorKind::Misuse => Exit::Usage,
            ErrorKind::Internal => Exit::Bug,
            _ => Exit::Refused,
        };
        let unsupported = error.kind() == ErrorKind::Unsupported && !error.message().contains("support");
        let not_yet = if unsupported { ", which is not supported" } else { "" };
        Failure::Said(exit, format!("{subject}: {}{not_yet}", located(error)))
    }

    /// Output that could not be written.
    pub(crate) fn output(error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::ClosedPipe
        } else {
            Failure::unreachable(format!("standard output: {}", plain(&error.to_string())))
        }
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn report(&self, program: &str) -> ExitCode {
        let exit = match self {
            Failure::ClosedPipe => return ExitCode::SUCCESS,
            Failure::Interrupted => {
                say(program, "interrupted");
                Exit::Interrupted
            }
            Failure::Said(exit, message) => {
                say(program, message);
                *exit
            }
        };
        ExitCode::from(exit as u8)
    }
}

/// An error's message and place, but for the file, which stands in front of it.
pub(crate) fn located(error: &Error) -> String {
    let place = error.place();
    let numbered = |name: &str, number: Option<u64>| number.map(|number| format!("{name} {number}"));
    let parts: Vec<String> = [
        place.column.as_ref().map(|column| format!("column {column}")),
        numbered("row", place.row),
        numbered("row group", place.row_group),
        numbered("page", place.page),
        numbered("byte", place.offset),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        error.message().to_string()
    } else {
        format!("{} ({})", error.message(), parts.join(", "))
    }
}

/// The text of an I/O error without Rust's "(os error 2)".
pub(crate) fn plain(text: &str) -> String {
    match text.find(" (os error ") {
        Some(end) => text[..end].to_string(),
        None => text.to_string(),
    }
}

/// One line on standard error: no line ends, no control characters from file names, no passwords.
pub(crate) fn say(program: &str, message: &str) {
    use io::Write;
    let line: String = redact(message).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // Nothing can be done about a standard error that is closed.
    let _ = writeln!(io::stderr(), "{program}: {line}");
}

/// `text` with the passwords of all addresses (`scheme://user:password@host`) in it replaced by `***`.
pub(crate) fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // The authority ends at a slash; but a password may hold one unescaped, so the last @ of the word decides.
        let word = after.find(|c: char| c.is_whitespace()).unwrap_or(after.len());
        match (after[..word].rfind('@'), after[..word].find(':')) {
            (Some(at_sign), Some(colon)) if colon < at_sign => {
                out.push_str(&after[..=colon]);
                out.push_str("***");
                rest = &after[at_sign..];
            }
            _ => rest = after,
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_said() {
        assert_eq!(redact("cql://me:se/cr@et@host:9042/ks.t is gone"), "cql://me:***@host:9042/ks.t is gone");
        assert_eq!(redact("a cql://u:p@h, b cql://v:q@i"), "a cql://u:***@h, b cql://v:***@i");
        assert_eq!(redact("cql://me@host:9042/ks.t"), "cql://me@host:9042/ks.t");
        assert_eq!(redact("s3://bucket/a:b"), "s3://bucket/a:b");
        assert_eq!(redact("file.parquet: no"), "file.parquet: no");
    }

    #[test]
    fn the_subject_is_said_once() {
        let error = Error::corrupt("bad page").at(|place| {
            place.object = Some("a.parquet".into());
            place.column = Some("x".into());
        });
        let Failure::Said(exit, text) = Failure::about("a.parquet", &error) else { panic!() };
        assert_eq!((exit, text.as_str()), (Exit::Refused, "a.parquet: bad page (column x)"));
    }
}
