//! What a machine asks its host for.

use alloc::vec::Vec;
use core::ops::Range;

/// A thing with bytes that a machine reads or writes: a file, an SSTable's component, a spill file.
///
/// The number is chosen by whoever constructs the machine; only machine and host need to agree on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object(pub u32);

/// How urgently a range is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// The machine cannot go on without it.
    Now,
    /// Worth fetching early: the machine will ask for it with [`Priority::Now`] before long, unless it fails first.
    Soon,
}

/// One thing asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// The object's length in bytes, answered by [`Machine::supply_length`](crate::Machine::supply_length).
    Length(Object),
    /// Bytes of the object. Never empty.
    Range(Object, Range<u64>, Priority),
}

/// Everything that a machine waits for, and what it will want next.
///
/// Ranges of [`Priority::Now`] come first. The machine makes progress as soon as one of them is complete; a host may
/// answer all of them before the next step, or step after each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    /// What is wanted, the most urgent first.
    pub wants: Vec<Want>,
}

impl Demand {
    /// A demand for one range that the machine cannot go on without.
    pub fn now(object: Object, range: Range<u64>) -> Demand {
        Demand { wants: alloc::vec![Want::Range(object, range, Priority::Now)] }
    }

    /// A demand for an object's length.
    pub fn length(object: Object) -> Demand {
        Demand { wants: alloc::vec![Want::Length(object)] }
    }

    /// True when nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.wants.is_empty()
    }

    /// Adds a want, keeping the urgent ones first.
    pub fn push(&mut self, want: Want) {
        let soon = |want: &Want| matches!(want, Want::Range(_, _, Priority::Soon));
        if soon(&want) {
            self.wants.push(want);
        } else {
            let at = self.wants.partition_point(|have| !soon(have));
            self.wants.insert(at, want);
        }
    }

    /// Adds all of another demand.
    pub fn merge(&mut self, other: Demand) {
        for want in other.wants {
            self.push(want);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgent_wants_stay_first() {
        let file = Object(0);
        let mut demand = Demand::default();
        assert!(demand.is_empty());
        demand.push(Want::Range(file, 10..20, Priority::Soon));
        demand.push(Want::Range(file, 0..10, Priority::Now));
        demand.merge(Demand::length(file));
        assert_eq!(
            demand.wants,
            [
                Want::Range(file, 0..10, Priority::Now),
                Want::Length(file),
                Want::Range(file, 10..20, Priority::Soon)
            ]
        );
    }
}
