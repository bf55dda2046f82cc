//! Memory that a reader is done with, given back in slices.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::Budget;

use super::dictionary::Entries;
use crate::encoding::stream::Segments;
use crate::growing::RELEASE_PRICE;

/// Bytes of a part, at most but for one value: a window, a segment, an array.
const PART_BYTES: usize = 1 << 20;

/// Large things whose parts are released one after the other: what took many steps to read is not freed in one.
#[derive(Debug, Default)]
pub(super) struct Released {
    things: Vec<Thing>,
}

#[derive(Debug)]
enum Thing {
    Page(Arc<Segments>),
    Dictionary(Entries),
}

impl Released {
    /// Takes in what a page was held in.
    pub(super) fn page(&mut self, segments: Arc<Segments>) {
        self.things.push(Thing::Page(segments));
    }

    /// Takes in a dictionary.
    pub(super) fn dictionary(&mut self, entries: Entries) {
        self.things.push(Thing::Dictionary(entries));
    }

    /// Bytes that are not given back yet.
    pub(super) fn held(&self) -> usize {
        let held = self.things.iter().map(|thing| match thing {
            Thing::Page(segments) => segments.len(),
            Thing::Dictionary(entries) => entries.held(),
        });
        held.sum()
    }

    /// True if nothing is left.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// Gives some back: true once nothing is left.
    #[inline]
    pub(super) fn step(&mut self, budget: &mut Budget<'_>) -> bool {
        self.things.is_empty() || self.give_back(budget)
    }

    fn give_back(&mut self, budget: &mut Budget<'_>) -> bool {
        while let Some(last) = self.things.last_mut() {
            if budget.spent() > 0 && budget.bytes_left(RELEASE_PRICE) < PART_BYTES {
                return false;
            }
            let part = match last {
                // What somebody else has, too, is freed by who has it longest.
                Thing::Page(segments) => Arc::get_mut(segments).and_then(Segments::pop),
                Thing::Dictionary(entries) => entries.pop(),
            };
            match part {
                Some(bytes) => budget.charge(RELEASE_PRICE, bytes, 1),
                None => drop(self.things.pop()),
            }
            if budget.is_spent() {
                break;
            }
        }
        self.things.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::Bytes;

    #[test]
    fn a_page_is_given_back_a_segment_at_a_time() {
        let mut segments = Segments::default();
        let parts: Vec<Bytes> = (0..100).map(|at| Bytes::from(alloc::vec![at; 10_000])).collect();
        parts.iter().for_each(|part| segments.push(part.clone()));
        let (segments, mut released) = (Arc::new(segments), Released::default());
        released.page(segments);
        let mut steps = 0;
        while !released.step(&mut Budget::new(0)) {
            steps += 1;
            assert_eq!(released.held(), 10_000 * (100 - steps));
            assert_eq!(parts.iter().filter(|part| part.is_unique()).count(), steps);
        }
        assert_eq!(steps, 100);
    }
}
