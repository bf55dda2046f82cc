//! Memory that a reader is done with, released in slices.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Release};

use super::dictionary::Entries;
use super::selected::Selected;
use crate::encoding::stream::Segments;
use crate::growing::release_in_step;

/// Large things whose parts are released one after the other: what took many steps to read is not freed in one.
#[derive(Debug, Default)]
pub(super) struct Released {
    things: Vec<Thing>,
}

#[derive(Debug)]
enum Thing {
    Page(Arc<Segments>),
    Chunk(Bytes),
    Dictionary(Entries),
    Selected(Box<Selected>),
}

impl Released {
    /// Takes in what a page was held in.
    pub(super) fn page(&mut self, segments: Arc<Segments>) {
        self.things.push(Thing::Page(segments));
    }

    /// Takes in a chunk of a page.
    pub(super) fn chunk(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.things.push(Thing::Chunk(chunk));
        }
    }

    /// Takes in a dictionary.
    pub(super) fn dictionary(&mut self, entries: Entries) {
        self.things.push(Thing::Dictionary(entries));
    }

    /// Takes in what was wanted of a chunk, with the places of its pages.
    pub(super) fn selected(&mut self, selected: Option<Box<Selected>>) {
        self.things.extend(selected.map(Thing::Selected));
    }

    /// Bytes that are not released yet.
    pub(super) fn held(&self) -> usize {
        let held = self.things.iter().map(|thing| match thing {
            Thing::Page(segments) => segments.len(),
            // Others count theirs.
            Thing::Chunk(chunk) => {
                if chunk.is_unique() {
                    chunk.len()
                } else {
                    0
                }
            }
            Thing::Dictionary(entries) => entries.held(),
            // It is the host's, and is held for as long as the host wants it.
            Thing::Selected(_) => 0,
        });
        held.sum()
    }

    /// True if nothing is left.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// Releases some in a step that does something else, too: true once nothing is left.
    #[inline]
    pub(super) fn step(&mut self, budget: &mut Budget<'_>) -> bool {
        self.things.is_empty() || release_in_step(&mut self.things, budget)
    }
}

impl Release for Released {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.things.release(budget)
    }
}

impl Release for Thing {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Thing::Page(segments) => segments.release(budget),
            Thing::Chunk(chunk) => chunk.release(budget),
            Thing::Dictionary(entries) => entries.release(budget),
            Thing::Selected(selected) => selected.release(budget),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_released_a_segment_at_a_time() {
        let mut segments = Segments::default();
        let parts: Vec<Bytes> = (0..100).map(|at| Bytes::from(alloc::vec![at; 10_000])).collect();
        parts.iter().for_each(|part| segments.push(part.clone()));
        let (segments, mut released) = (Arc::new(segments), Released::default());
        released.page(segments);
        let (mut steps, mut held) = (0, released.held());
        while !released.step(&mut Budget::new(0)) {
            steps += 1;
            assert!(held - released.held() <= 10_000, "{held}, {}", released.held());
            held = released.held();
            assert_eq!(parts.iter().filter(|part| part.is_unique()).count(), 100 - held / 10_000);
        }
        assert!(steps >= 100 && held == 0, "{steps} steps");
    }
}
