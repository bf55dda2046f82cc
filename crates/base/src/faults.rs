//! Collects everything that is wrong, to report it at once.

use alloc::vec::Vec;

use crate::{Error, Result};

/// The errors found so far, by a check that goes on after the first one, so that nobody mends one column only to hear of
/// the next.
///
/// ```
/// use marquetry_base::{Error, Faults};
///
/// let mut faults = Faults::default();
/// for name in ["a", "b"] {
///     faults.add(Error::misuse("no such column").at(|place| place.column = Some(name.to_string())));
/// }
/// let error = faults.into_result().unwrap_err();
/// assert_eq!(error.to_string(), "no such column (column a); no such column (column b)");
/// assert_eq!(error.parts().len(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Faults {
    found: Vec<Error>,
    /// The number of further errors.
    beyond: usize,
}

/// The most errors that one error lists: as many as anybody reads.
const LISTED_MAX: usize = 20;

impl Faults {
    /// Adds an error.
    pub fn add(&mut self, error: Error) {
        if self.found.len() < LISTED_MAX {
            self.found.push(error);
        } else {
            self.beyond += 1;
        }
    }

    /// Keeps an error, or returns the value.
    pub fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Appends another's errors.
    pub fn append(&mut self, other: Faults) {
        self.beyond += other.beyond;
        other.found.into_iter().for_each(|error| self.add(error));
    }

    /// True if nothing was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// A single error as it is; several as one that lists them ([`Error::parts`]).
    ///
    /// # Errors
    ///
    /// That error, unless none was found.
    pub fn into_result(mut self) -> Result<()> {
        match self.found.len() {
            0 => Ok(()),
            1 => Err(self.found.remove(0)),
            _ => Err(Error::all(self.found, self.beyond)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Detail, ErrorKind};
    use alloc::format;
    use alloc::string::ToString;

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
        assert!(one.parts().is_empty());
        let mut two = faults(2);
        two.append(faults(1));
        two.add(Error::misuse("the key"));
        let error = two.into_result().unwrap_err();
        assert_eq!(error.to_string(), "no (column c0); no (column c1); no (column c0); the key");
        assert_eq!(error.kind(), ErrorKind::Conversion);
        assert_eq!((error.parts().len(), error.parts_unlisted()), (4, 0));
        let mut many = faults(LISTED_MAX + 5);
        many.append(faults(3));
        let error = many.into_result().unwrap_err();
        assert!(error.to_string().ends_with("; no (column c19); and 8 more"), "{error}");
        assert_eq!((error.parts().len(), error.parts_unlisted()), (LISTED_MAX, 8));
    }

    #[test]
    fn what_all_have_in_common_is_that_of_the_whole() {
        let of = |option, object: &str| {
            Error::option(option, "no").at(|place| place.object = Some(object.to_string()))
        };
        let all = |errors: [Error; 2]| Error::all(errors.to_vec(), 0);
        let same = all([of("sort", "a"), of("sort", "a")]);
        assert_eq!(
            (same.detail(), same.to_string().as_str()),
            (Some(Detail::Option("sort")), "sort: no; no (a)")
        );
        let other = all([of("sort", "a"), of("bloom", "b")]);
        assert_eq!((other.detail(), other.to_string().as_str()), (None, "sort: no (a); bloom: no (b)"));
        assert_eq!(other.parts()[1].detail(), Some(Detail::Option("bloom")));
    }
}
