//! What was found of objects a moment ago. Who reads a table looks for each of its objects, looks whether it is one that can be read, and opens it:
//! one question, not one each time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::objects::Stored;

/// How long what was found is good for opening an object. If it is changed in the meantime, the first read notices that.
const FRESH: Duration = Duration::from_secs(2);
/// Objects of which it is kept, at most: a table is looked at, object by object, before the first one is opened.
const OBJECTS_MAX: usize = 10_000;

/// What was found of objects that nobody has opened since.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    found: HashMap<String, (Stored, Instant)>,
}

impl Looked {
    /// Keeps what was found of an object.
    pub(crate) fn found(&mut self, object: &str, stored: Stored) {
        if self.found.len() >= OBJECTS_MAX {
            self.found.retain(|_, (_, when)| when.elapsed() < FRESH);
        }
        if self.found.len() < OBJECTS_MAX {
            self.found.insert(object.to_owned(), (stored, Instant::now()));
        }
    }

    /// What was found of it a moment ago.
    pub(crate) fn look(&self, object: &str) -> Option<Stored> {
        self.found.get(object).filter(|(_, when)| when.elapsed() < FRESH).map(|(stored, _)| *stored)
    }

    /// The same, and forgets it: it is being opened, or changed. Who looks at it, or opens it, after that wants to know what is there then.
    pub(crate) fn take(&mut self, object: &str) -> Option<Stored> {
        let (stored, when) = self.found.remove(object)?;
        (when.elapsed() < FRESH).then_some(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_good_for_one_opening() {
        let stored = Stored { bytes: 7, version: 3 };
        let mut looked = Looked::default();
        looked.found("a", stored);
        assert_eq!(
            (looked.look("a"), looked.look("a"), looked.look("b")),
            (Some(stored), Some(stored), None)
        );
        assert_eq!((looked.take("a"), looked.take("a"), looked.look("a")), (Some(stored), None, None));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut looked = Looked::default();
        for object in 0..OBJECTS_MAX + 10 {
            looked.found(&object.to_string(), Stored { bytes: 0, version: 0 });
        }
        assert_eq!(looked.found.len(), OBJECTS_MAX);
    }
}
