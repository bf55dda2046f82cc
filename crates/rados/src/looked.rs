//! What was found of objects a moment ago. Who reads a table looks for each of its objects, looks whether it is one that can be read, and opens it:
//! one question, not one each time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::objects::Stored;

/// How long what was found is good for opening an object. If it is changed in the meantime, the first read notices that.
const FRESH: Duration = Duration::from_secs(2);
/// Objects of which it is kept, at most: a table is looked at, object by object, before the first one is opened.
const OBJECTS_MAX: usize = 10_000;

/// What was found of objects that nobody has opened since.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    found: HashMap<Arc<str>, (Stored, Instant)>,
    /// The same objects and others that were taken since, in the order in which they were looked at: what is not good any more is at the front.
    order: VecDeque<(Arc<str>, Instant)>,
}

impl Looked {
    /// Keeps what was found of an object.
    pub(crate) fn found(&mut self, object: &str, stored: Stored) {
        self.found_at(object, stored, Instant::now());
    }

    fn found_at(&mut self, object: &str, stored: Stored, now: Instant) {
        // One more comes: two go, so none of those that go are looked at twice.
        for _ in 0..2 {
            let Some((object, when)) = self.order.front() else { break };
            let is_found = self.found.get(object).is_some_and(|(_, found)| found == when);
            let is_fresh = now.saturating_duration_since(*when) < FRESH;
            if is_found && is_fresh {
                break;
            }
            if is_found {
                self.found.remove(object);
            }
            self.order.pop_front();
        }
        if self.order.len() < OBJECTS_MAX {
            let object: Arc<str> = object.into();
            self.order.push_back((Arc::clone(&object), now));
            self.found.insert(object, (stored, now));
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
        let (mut looked, stored, now) = (Looked::default(), Stored { bytes: 0, version: 0 }, Instant::now());
        for object in 0..OBJECTS_MAX + 10 {
            looked.found_at(&object.to_string(), stored, now);
        }
        assert_eq!((looked.found.len(), looked.order.len()), (OBJECTS_MAX, OBJECTS_MAX));
        assert_eq!((looked.look("0"), looked.look(&OBJECTS_MAX.to_string())), (Some(stored), None));
        // What was taken makes room, whoever looks next; and so does what is old, two at a time.
        for object in 0..10 {
            looked.take(&object.to_string());
        }
        looked.found_at("one more", stored, now);
        assert_eq!(looked.look("one more"), Some(stored));
        assert_eq!((looked.found.len(), looked.order.len()), (OBJECTS_MAX - 9, OBJECTS_MAX - 1));
        let later = now + FRESH;
        for object in 0..OBJECTS_MAX {
            looked.found_at(&format!("later {object}"), stored, later);
        }
        assert!(looked.order.iter().all(|(_, when)| *when == later));
        assert_eq!((looked.found.len(), looked.order.len()), (OBJECTS_MAX, OBJECTS_MAX));
    }

    #[test]
    fn an_object_that_is_looked_at_twice_is_kept_as_long_as_the_second_time_is_good() {
        let (mut looked, now) = (Looked::default(), Instant::now());
        let stored = |version| Stored { bytes: 1, version };
        looked.found_at("a", stored(1), now);
        looked.found_at("a", stored(2), now + FRESH / 2);
        // The first time is forgotten with these, and the second one is not.
        for other in ["b", "c"] {
            looked.found_at(other, stored(3), now + FRESH);
        }
        assert_eq!(looked.look("a"), Some(stored(2)));
        assert_eq!((looked.found.len(), looked.order.len()), (3, 3));
    }
}
