//! How a command fails: an exit code, and one line that a person understands.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use marquetry::base::{Detail, Error, ErrorKind};

use marquetry::tables::predicate::PredicateError;
use marquetry::tables::{Filter, without_secrets};

use crate::hints;
use crate::table::printable;

/// What a command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is something to say.
    Said(Exit, String),
    /// A limit of sizes is exceeded, which `--trust` lifts.
    AboveLimit(Exit, String),
    /// The command line has a predicate that is none: why, and a picture of the place.
    InPredicate(String, String),
    /// What was looked for is not there: exit code 1, and nothing to say.
    NothingFound,
    /// Nobody reads the output any more (`| head`): no error.
    ClosedPipe,
    /// Ctrl-C or a termination signal.
    Interrupted,
}

/// The exit codes, as `--help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
  1    the data or the server refused: a corrupt file, a value that cannot be
       converted, a destination that already exists
  2    the command line is wrong
  3    input could not be read, output not written, or a server not reached
  4    a bug in marquetry
  130  interrupted; what was printed before is whole";

/// What is different for `marquetry diff` and `marquetry find`.
pub(crate) const EXIT_HELP_OF_SOME: &str = "\
Of diff, 1 means only that the rows differ, and 3 also that data are corrupt.
Of find, 1 also means that nothing was found.";

impl Failure {
    /// The command line asks for what cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Said(Exit::Usage, message.into())
    }

    /// A predicate is wrong.
    pub(crate) fn of_predicate(wanted: &Filter, error: &PredicateError) -> Failure {
        Failure::InPredicate(error.to_string(), error.picture(wanted.text()))
    }

    /// The data refuse.
    pub(crate) fn refused(message: impl Into<String>) -> Failure {
        Failure::Said(Exit::Refused, message.into())
    }

    /// A file or a server cannot be reached.
    pub(crate) fn unreachable(message: impl Into<String>) -> Failure {
        Failure::Said(Exit::Unreachable, message.into())
    }

    /// A check found a bug.
    pub(crate) fn bug(message: impl Into<String>) -> Failure {
        Failure::Said(Exit::Bug, message.into())
    }

    /// An error about `subject`, which is a file or an address, unless the error names another itself.
    pub(crate) fn about(subject: impl Display, error: &Error) -> Failure {
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
        if cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe) {
            return Failure::ClosedPipe;
        }
        let exit = match (error.kind(), error.detail()) {
            (ErrorKind::Cancelled, _) => return Failure::Interrupted,
            (_, Some(Detail::AlreadyExists)) => Exit::Refused,
            (ErrorKind::Io, _) => Exit::Unreachable,
            (ErrorKind::Misuse, _) | (_, Some(Detail::Address | Detail::Feature(_))) => Exit::Usage,
            (ErrorKind::Internal, _) => Exit::Bug,
            _ => Exit::Refused,
        };
        let names_object = |error: &Error| error.place().object.is_some();
        let subject = match &error.place().object {
            Some(object) => object.clone(),
            // Each of them says what it is about.
            None if !error.parts().is_empty() && error.parts().iter().all(names_object) => String::new(),
            None => subject.to_string(),
        };
        let mut text = if subject.is_empty() { String::new() } else { format!("{subject}: ") };
        text += &plain(&listed(error, &subject, None));
        let is_above_limit = |error: &Error| {
            error.kind() == ErrorKind::LimitExceeded && matches!(error.detail(), Some(Detail::Limit(_)))
        };
        if is_above_limit(error) || error.parts().iter().any(is_above_limit) {
            return Failure::AboveLimit(Exit::Refused, text);
        }
        let lacks_feature = |error: &Error| matches!(error.detail(), Some(Detail::Feature(_)));
        if lacks_feature(error) || error.parts().iter().any(lacks_feature) {
            return Failure::Said(exit, text + hints::OF_FEATURE);
        }
        let advice = advice(error);
        Failure::Said(exit, if advice.is_empty() { text } else { text + &hints::advised(&advice.join(", ")) })
    }

    /// … and something more to say.
    #[must_use]
    pub(crate) fn and(self, more: impl Display) -> Failure {
        match self {
            Failure::Said(exit, message) => Failure::Said(exit, format!("{message}; {more}")),
            Failure::AboveLimit(exit, message) => Failure::AboveLimit(exit, format!("{message}; {more}")),
            Failure::Interrupted => Failure::Said(Exit::Interrupted, format!("interrupted; {more}")),
            Failure::InPredicate(..) | Failure::NothingFound | Failure::ClosedPipe => self,
        }
    }

    /// … of a command whose limits are lifted (`--trust`), or not.
    #[must_use]
    pub(crate) fn of_command(self, is_trusting: bool) -> Failure {
        match self {
            Failure::AboveLimit(exit, message) if is_trusting => Failure::Said(exit, message),
            Failure::AboveLimit(exit, message) => {
                Failure::Said(exit, message + &hints::advised("--trust lifts this limit"))
            }
            other => other,
        }
    }

    /// … of a command whose exit code 1 is an answer: data that refuse could not be read.
    #[must_use]
    pub(crate) fn of_input(self) -> Failure {
        match self {
            Failure::Said(Exit::Refused, message) => Failure::Said(Exit::Unreachable, message),
            Failure::AboveLimit(_, message) => Failure::AboveLimit(Exit::Unreachable, message),
            other => other,
        }
    }

    /// Output that could not be written.
    pub(crate) fn output(error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::ClosedPipe
        } else {
            Failure::unreachable(format!("standard output: {}", plain(&error.to_string())))
        }
    }

    /// What is said of it, if anything, without secrets.
    pub(crate) fn said(&self) -> Option<String> {
        match self {
            Failure::ClosedPipe | Failure::Interrupted | Failure::NothingFound => None,
            Failure::Said(_, message)
            | Failure::AboveLimit(_, message)
            | Failure::InPredicate(message, _) => Some(redact(message)),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Failure::Said(exit, _) | Failure::AboveLimit(exit, _) => *exit,
            Failure::Interrupted => Exit::Interrupted,
            Failure::InPredicate(..) => Exit::Usage,
            Failure::NothingFound | Failure::ClosedPipe => Exit::Refused,
        }
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn report(&self, program: &str) -> ExitCode {
        let exit = match self {
            Failure::ClosedPipe => return ExitCode::SUCCESS,
            Failure::NothingFound => Exit::Refused,
            Failure::InPredicate(message, picture) => {
                say(program, message);
                // Nothing can be done about a standard error that is closed.
                let _ = picture.lines().try_for_each(|line| writeln!(io::stderr(), "  {}", printable(line)));
                Exit::Usage
            }
            Failure::Interrupted => {
                say(program, "interrupted");
                Exit::Interrupted
            }
            Failure::Said(exit, message) | Failure::AboveLimit(exit, message) => {
                say(program, message);
                *exit
            }
        };
        ExitCode::from(exit as u8)
    }
}

/// Failures about several files, which are reported when all files were tried.
pub(crate) struct Failures {
    failures: Vec<Failure>,
    /// Those that are only counted.
    more: u64,
    /// The greatest exit code of all.
    exit: Exit,
    is_trusting: bool,
}

impl Failures {
    /// Failures that are reported one by one.
    const REPORTED_MAX: usize = 100;

    /// None yet, of a command whose limits are lifted (`--trust`), or not.
    pub(crate) fn new(is_trusting: bool) -> Failures {
        Failures { failures: Vec::new(), more: 0, exit: Exit::Refused, is_trusting }
    }

    /// Keeps a failure for the end, unless it ends everything: nobody reads the output, the user interrupts, a bug. Then those
    /// that were kept are reported before it.
    pub(crate) fn add(&mut self, failure: Failure) -> Outcome {
        match failure {
            Failure::ClosedPipe => Err(failure),
            Failure::Interrupted | Failure::InPredicate(..) | Failure::Said(Exit::Bug | Exit::Usage, _) => {
                Err(self.reported(failure))
            }
            _ => {
                self.exit = self.exit.max(failure.exit());
                match self.failures.len() < Failures::REPORTED_MAX {
                    true => self.failures.push(failure),
                    false => self.more += 1,
                }
                Ok(())
            }
        }
    }

    /// As [`add`](Failures::add) of what ends everything, whatever it is: output that cannot be written.
    pub(crate) fn end_with(&mut self, failure: Failure) -> Failure {
        match failure {
            Failure::ClosedPipe => failure,
            _ => self.reported(failure),
        }
    }

    /// Fails if there was a failure: reports all of them, each on its line. The exit code is the greatest.
    pub(crate) fn end(mut self) -> Outcome {
        if self.more > 0 {
            let more = std::mem::take(&mut self.more);
            let last =
                self.failures.pop().map(|last| last.and(format!("and {more} more files cannot be read")));
            self.failures.extend(last);
        }
        match self.failures.pop() {
            Some(last) => Err(self.reported(last)),
            None => Ok(()),
        }
    }

    /// Reports what was kept; the last failure remains to be reported, with the greatest exit code.
    fn reported(&mut self, last: Failure) -> Failure {
        for failure in self.failures.drain(..) {
            failure.of_command(self.is_trusting).report("marquetry");
        }
        match last.of_command(self.is_trusting) {
            Failure::Said(exit, message) => Failure::Said(exit.max(self.exit), message),
            other => other,
        }
    }
}

impl From<Error> for Failure {
    /// An error about the object that it names.
    fn from(error: Error) -> Failure {
        Failure::about(error.place().object.as_deref().unwrap_or_default(), &error)
    }
}

/// An error's option, message and place; of one that lists others, those of each. `subject` and `option` are in front
/// of it already.
fn listed(error: &Error, subject: &str, option: Option<&str>) -> String {
    let own = match error.detail() {
        Some(Detail::Option(name)) => Some(name),
        _ => None,
    };
    let mut text = match own.filter(|_| own != option) {
        Some("infer_bytes") => "--infer-all: ".to_string(),
        Some(name) => format!("--{}: ", name.replace('_', "-")),
        None => String::new(),
    };
    if error.parts().is_empty() {
        // Their messages name only what it is.
        let said = located(error);
        let is_unsaid = error.kind() == ErrorKind::Unsupported && !said.contains("not supported");
        return text + &said + if is_unsaid { ", which is not supported" } else { "" };
    }
    for (number, part) in error.parts().iter().enumerate() {
        text += if number > 0 { "; " } else { "" };
        if let Some(object) = part.place().object.as_ref().filter(|object| **object != subject) {
            text += &format!("{object}: ");
        }
        text += &listed(part, subject, own);
    }
    match error.parts_unlisted() {
        0 => text,
        more => format!("{text}; and {more} more"),
    }
}

/// The options that would help, each once.
fn advice(error: &Error) -> Vec<&'static str> {
    let singly = if error.parts().is_empty() { std::slice::from_ref(error) } else { error.parts() };
    let mut hints = Vec::new();
    for hint in singly.iter().flat_map(hints_of) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    hints
}

/// The options that would help with a single error.
fn hints_of(error: &Error) -> Vec<&'static str> {
    let options = match error.detail() {
        Some(Detail::AdmittedBy(options)) => options,
        Some(Detail::Option("verify")) if error.place().column.is_some() => &["columns"],
        // Of a text; that of a value is not the file's encoding.
        Some(Detail::NotUtf8) if error.kind() == ErrorKind::Corrupt => &["text_encoding"],
        // What else exists already (a table, its types) is never replaced.
        Some(Detail::AlreadyExists) if error.kind() == ErrorKind::Io => &["overwrite"],
        _ => return Vec::new(),
    };
    options.iter().copied().filter_map(hints::of_option).collect()
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

/// A text without Rust's notes of the system's errors: "(os error 2)".
pub(crate) fn plain(text: &str) -> String {
    const NOTE: &str = " (os error ";
    let mut parts = text.split(NOTE);
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => plain.push_str(rest),
            _ => plain.extend([NOTE, part]),
        }
    }
    plain
}

/// Characters of a line on standard error: names of columns may have 65,535 of them.
const LINE_CHARS_MAX: usize = 2000;

/// One line on standard error: line ends and what speaks to the terminal are escaped, as everywhere; no passwords, and
/// not endless.
pub(crate) fn say(program: &str, message: &str) {
    let line = printable(&redact(message));
    // Nothing can be done about a standard error that is closed.
    let _ = writeln!(io::stderr(), "{program}: {}", shortened(&line));
}

/// A line that is too long loses its middle: the subject stands at the start, the advice and the place at the end.
fn shortened(line: &str) -> String {
    let over = line.chars().count().saturating_sub(LINE_CHARS_MAX);
    if over == 0 {
        return line.to_string();
    }
    let kept = LINE_CHARS_MAX / 2;
    line.chars().take(kept).chain(" … ".chars()).chain(line.chars().skip(kept + over)).collect()
}

/// `text` without the secrets of addresses in it. Arguments that look like addresses are known.
pub(crate) fn redact(text: &str) -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    without_secrets(text, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_exit_code_is_that_of_all_failures() {
        let exit_of = |failures: Failures| failures.end().err().map(|failure| failure.exit());
        assert_eq!(exit_of(Failures::new(false)), None);
        let mut many = Failures::new(false);
        for _ in 0..=Failures::REPORTED_MAX {
            many.add(Failure::refused("corrupt")).unwrap();
        }
        // It is only counted, and counts.
        many.add(Failure::unreachable("none")).unwrap();
        let Some(Failure::Said(exit, text)) = many.end().err() else { panic!() };
        assert_eq!((exit, text.as_str()), (Exit::Unreachable, "corrupt; and 2 more files cannot be read"));
        // What ends everything does not make less of what came before.
        let mut ended = Failures::new(false);
        ended.add(Failure::unreachable("none")).unwrap();
        let ending = ended.add(Failure::usage("no such thing")).unwrap_err();
        assert_eq!(ending.exit(), Exit::Unreachable);
        assert!(ended.failures.is_empty(), "reported");
        assert_eq!(Failures::new(false).end_with(Failure::Interrupted).exit(), Exit::Interrupted);
    }

    #[test]
    fn notes_of_the_system_are_left_out() {
        assert_eq!(plain("refused (os error 111)"), "refused");
        assert_eq!(plain("a (os error 2), b (os error 3)."), "a, b.");
        assert_eq!(plain("a (os error x"), "a (os error x");
    }

    #[test]
    fn a_long_line_loses_its_middle() {
        let line = format!("start{}end", "é".repeat(70_000));
        let short = shortened(&line);
        assert!(short.starts_with("starté") && short.ends_with("éend") && short.contains(" … "));
        assert_eq!(short.chars().count(), LINE_CHARS_MAX + 3);
        assert_eq!(shortened("short"), "short");
    }

    /// How to get it is said, whatever it is that is left out.
    #[test]
    fn a_feature_that_is_left_out_is_named() {
        let error = Error::unsupported(
            "s3:// is not supported by this build, which lacks the feature `object-store`",
        )
        .with(Detail::Feature("object-store"))
        .at(|place| place.object = Some("s3://b/k".into()));
        let Failure::Said(exit, text) = Failure::about("s3://b/k", &error) else { panic!() };
        assert_eq!(
            (exit, text.as_str()),
            (
                Exit::Usage,
                "s3://b/k: s3:// is not supported by this build, which lacks the feature `object-store`; \
                 cargo install --path crates/cli makes a build with all features"
            )
        );
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
