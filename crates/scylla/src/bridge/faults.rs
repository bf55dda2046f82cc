//! Collects everything that is wrong with a mapping, to report it at once, and lists names in messages.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use marquetry_base::{Error, Result};

/// The errors found so far. A whole schema is checked, so that nobody fixes one column only to hear about the next.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: Vec<Error>,
    /// The number of further errors.
    beyond: usize,
}

/// The most errors that a message lists: more than anybody reads, and few enough for a line.
const LISTED_MAX: usize = 100;

impl Faults {
    pub(super) fn add(&mut self, error: Error) {
        if self.found.len() < LISTED_MAX {
            self.found.push(error);
        } else {
            self.beyond += 1;
        }
    }

    /// Keeps an error, or returns the value.
    pub(super) fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Appends another's errors.
    pub(super) fn append(&mut self, other: Faults) {
        self.beyond += other.beyond;
        other.found.into_iter().for_each(|error| self.add(error));
    }

    /// A single error as it is; several as one whose message lists them, each with its column.
    ///
    /// # Errors
    ///
    /// That error, unless none was found. It has the kind of the first.
    pub(super) fn into_result(mut self) -> Result<()> {
        let Some(first) = self.found.first() else { return Ok(()) };
        if self.found.len() == 1 {
            return Err(self.found.remove(0));
        }
        let kind = first.kind();
        let mut listed: Vec<String> = self.found.iter().map(ToString::to_string).collect();
        if self.beyond > 0 {
            listed.push(format!("and {} more", self.beyond));
        }
        Err(Error::new(kind, listed.join("; ")))
    }
}

/// Names in a message, not too many.
pub(super) fn list(names: impl IntoIterator<Item = impl Display>) -> String {
    const NAMES_MAX: usize = 20;
    let mut text = String::new();
    for (at, name) in names.into_iter().enumerate() {
        if at == NAMES_MAX {
            text.push_str(", …");
            break;
        }
        text.push_str(if at == 0 { "" } else { ", " });
        text.push_str(&name.to_string());
    }
    if text.is_empty() { "none".to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    fn faults(count: usize) -> Faults {
        let mut faults = Faults::default();
        for number in 0..count {
            let column = Some(format!("c{number}"));
            faults.add(Error::conversion("no").at(|place| place.column = column));
        }
        faults
    }

    #[test]
    fn one_is_itself_and_several_are_listed() {
        assert!(faults(0).into_result().is_ok());
        let one = faults(1).into_result().unwrap_err();
        assert_eq!((one.message(), one.place().column.as_deref()), ("no", Some("c0")));
        let mut two = faults(2);
        two.append(faults(1));
        two.add(Error::misuse("the key"));
        let error = two.into_result().unwrap_err();
        assert_eq!(error.to_string(), "no (column c0); no (column c1); no (column c0); the key");
        assert_eq!(error.kind(), ErrorKind::Conversion);
        let mut many = faults(LISTED_MAX + 5);
        many.append(faults(3));
        let error = many.into_result().unwrap_err().to_string();
        assert!(error.ends_with("; no (column c99); and 8 more"), "{error}");
    }
}
