//! Objects that were found together are opened one after the other: the next ones are asked for meanwhile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::find::Listed;
use super::source::Asked;

/// How long a listing tells what is there.
const LISTED: Duration = Duration::from_secs(10);
/// Objects that are asked for before they are opened.
const AHEAD: usize = 16;

/// Objects in the order in which they will be opened, as far as can be guessed.
#[derive(Default)]
pub(super) struct Ahead {
    order: Vec<PathBuf>,
    places: HashMap<PathBuf, usize>,
    /// All before it were asked for.
    next: usize,
    asked: HashMap<PathBuf, Asked>,
    /// What was not looked at yet of what was listed: its lengths, and when.
    listed: HashMap<PathBuf, (u64, Instant)>,
}

impl Ahead {
    /// Takes what was found.
    pub(super) fn found(&mut self, found: &Listed) {
        if self.next >= self.order.len() {
            *self = Ahead::default();
        }
        let now = Instant::now();
        for (path, bytes) in found {
            self.places.insert(path.clone(), self.order.len());
            self.order.push(path.clone());
            self.listed.insert(path.clone(), (*bytes, now));
        }
    }

    /// The length of an object that was listed a moment ago, once: who looks at it again wants to know what is there now.
    pub(super) fn look(&mut self, path: &Path) -> Option<u64> {
        let (bytes, when) = self.listed.remove(path)?;
        (when.elapsed() < LISTED).then_some(bytes)
    }

    /// The request for an object, if it was made; those for the next ones are.
    pub(super) fn take(&mut self, path: &Path, ask: impl Fn(&Path) -> Option<Asked>) -> Option<Asked> {
        let place = *self.places.get(path)?;
        let end = (place + 1 + AHEAD).min(self.order.len());
        self.next = self.next.max(place + 1);
        while self.next < end {
            let next = &self.order[self.next];
            if let Some(asked) = ask(next) {
                self.asked.insert(next.clone(), asked);
            }
            self.next += 1;
        }
        self.asked.remove(path)
    }
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.next, self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::runtime::start;
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_next_ones_are_asked_for_once() {
        let paths: Vec<PathBuf> = (10..50).map(|number| PathBuf::from(number.to_string())).collect();
        let listed = |paths: &[PathBuf]| paths.iter().map(|path| (path.clone(), 7)).collect::<Listed>();
        let asked = RefCell::new(Vec::new());
        let ask = |path: &Path| {
            asked.borrow_mut().push(path.to_path_buf());
            start(std::future::pending()).ok()
        };
        let mut ahead = Ahead::default();
        assert!(ahead.take(&paths[0], ask).is_none() && asked.borrow().is_empty());
        ahead.found(&listed(&paths));
        assert_eq!((ahead.look(&paths[3]), ahead.look(&paths[3])), (Some(7), None));
        assert!(ahead.take(&paths[0], ask).is_none());
        assert_eq!(asked.borrow()[..], paths[1..17]);
        for path in &paths[1..] {
            assert!(ahead.take(path, ask).is_some());
        }
        assert_eq!(asked.borrow()[..], paths[1..]);
        assert!(ahead.asked.is_empty());
        // What was opened is forgotten when others are found.
        ahead.found(&listed(&paths[..1]));
        assert_eq!(ahead.order.len(), 1);
    }
}
