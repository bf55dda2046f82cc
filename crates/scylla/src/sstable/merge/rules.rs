//! Which of two writes counts.
//!
//! As in Cassandra's `Cells.java`, `LivenessInfo.java` and `DeletionTime.java`; see the [module](super).

use core::cmp::Ordering;

use super::options::Ties;
use crate::sstable::batch::{Deletion, Expiry, NO_DELETION_TIME, NO_TIMESTAMP};

/// What a cell is besides its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Live,
    Expiring(Expiry),
    /// Deleted, and when the server did that.
    Dead(u32),
}

impl Life {
    /// Whether a SELECT at this time returns it.
    pub(super) fn is_live_at(self, now: u32) -> bool {
        match self {
            Life::Live => true,
            Life::Expiring(expiry) => {
                expiry.local_deletion == NO_DELETION_TIME || now < expiry.local_deletion
            }
            Life::Dead(_) => false,
        }
    }

    /// When it is gone.
    fn local_deletion(self) -> u32 {
        match self {
            Life::Live => NO_DELETION_TIME,
            Life::Expiring(expiry) => expiry.local_deletion,
            Life::Dead(local) => local,
        }
    }
}

/// How a cell compares with another of the same row, column and path: the greater one counts. If they are equal, their values decide.
pub(crate) fn compare_cells(left: (i64, Life), right: (i64, Life), ties: Ties) -> Ordering {
    left.0.cmp(&right.0).then_with(|| {
        let (left, right) = (left.1, right.1);
        let is_gone_some_day = |life: Life| life.local_deletion() != NO_DELETION_TIME;
        let found = is_gone_some_day(left).cmp(&is_gone_some_day(right));
        if found.is_ne() || !is_gone_some_day(left) {
            return found;
        }
        let is_dead = |life: Life| matches!(life, Life::Dead(_));
        is_dead(left).cmp(&is_dead(right)).then(left.local_deletion().cmp(&right.local_deletion())).then_with(
            || match (left, right, ties) {
                // What has the lower TTL was written later.
                (Life::Expiring(left), Life::Expiring(right), Ties::LowerTtl) => right.ttl.cmp(&left.ttl),
                _ => Ordering::Equal,
            },
        )
    })
}

/// How a counter's cell compares with another. `None`: both are alive, and their shards are merged.
pub(super) fn compare_counters(left: (i64, Life), right: (i64, Life)) -> Option<Ordering> {
    let is_dead = |life: Life| matches!(life, Life::Dead(_));
    match (is_dead(left.1), is_dead(right.1)) {
        (false, false) => None,
        // Whatever their times: a counter that was deleted is not counted again.
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (true, true) => {
            Some(left.0.cmp(&right.0).then(left.1.local_deletion().cmp(&right.1.local_deletion())))
        }
    }
}

/// What says that a row exists: its write time, and when it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) timestamp: i64,
    pub(crate) expiry: Option<Expiry>,
}

/// The TTL of what says that a row of a view exists no more.
const EXPIRED_TTL: u32 = 0x7fff_ffff;

impl Marker {
    pub(crate) const NONE: Marker = Marker { timestamp: NO_TIMESTAMP, expiry: None };

    pub(crate) fn is_some(self) -> bool {
        self.timestamp != NO_TIMESTAMP
    }

    pub(super) fn is_live_at(self, now: u32) -> bool {
        let is_live = |expiry: Expiry| expiry.ttl != EXPIRED_TTL && Life::Expiring(expiry).is_live_at(now);
        self.is_some() && self.expiry.is_none_or(is_live)
    }

    /// Whether the row of a view is where its columns no longer say that it is.
    pub(super) fn is_moved_at(self, now: u32) -> bool {
        let is_moved = |expiry: Expiry| expiry.ttl == EXPIRED_TTL && expiry.local_deletion <= now;
        self.is_some() && self.expiry.is_some_and(is_moved)
    }

    pub(crate) fn supersedes(self, other: Marker, ties: Ties) -> bool {
        let is_expired = |expiry: Option<Expiry>| expiry.is_some_and(|expiry| expiry.ttl == EXPIRED_TTL);
        let found = (self.timestamp.cmp(&other.timestamp))
            .then(is_expired(self.expiry).cmp(&is_expired(other.expiry)))
            .then(self.expiry.is_some().cmp(&other.expiry.is_some()))
            .then_with(|| {
                let Some((left, right)) = self.expiry.zip(other.expiry) else { return Ordering::Equal };
                left.local_deletion.cmp(&right.local_deletion).then_with(|| match ties {
                    Ties::LowerTtl => right.ttl.cmp(&left.ttl),
                    Ties::GreaterValue => Ordering::Equal,
                })
            });
        found.is_gt()
    }
}

/// Whether a deletion counts more than another.
pub(super) fn supersedes(left: Deletion, right: Option<Deletion>) -> bool {
    right.is_none_or(|right| (left.timestamp, left.local_deletion) > (right.timestamp, right.local_deletion))
}

/// The one that counts more.
pub(crate) fn later(left: Option<Deletion>, right: Option<Deletion>) -> Option<Deletion> {
    match right {
        Some(right) if supersedes(right, left) => Some(right),
        _ => left,
    }
}

/// Whether what was written at this time is deleted.
pub(crate) fn deletes(deletion: Option<Deletion>, timestamp: i64) -> bool {
    deletion.is_some_and(|deletion| timestamp <= deletion.timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIES: Ties = Ties::LowerTtl;

    fn expiring(ttl: u32, local_deletion: u32) -> Life {
        Life::Expiring(Expiry { ttl, local_deletion })
    }

    /// Each cell of the list counts more than those before it.
    #[test]
    fn cells_in_the_order_in_which_they_count() {
        let ascending = [
            (4, Life::Dead(99)),
            (5, Life::Live),
            (5, expiring(10, 20)),
            (5, expiring(10, 30)),
            (5, expiring(9, 30)),
            (5, Life::Dead(10)),
            (5, Life::Dead(11)),
            (6, Life::Live),
        ];
        for (left_at, left) in ascending.iter().enumerate() {
            for (right_at, right) in ascending.iter().enumerate() {
                let found = compare_cells(*left, *right, TIES);
                assert_eq!(found, left_at.cmp(&right_at), "{left:?} {right:?}");
            }
        }
        let (left, right) = ((5, expiring(10, 30)), (5, expiring(9, 30)));
        assert_eq!(compare_cells(left, right, Ties::GreaterValue), Ordering::Equal);
        assert_eq!(compare_cells((5, Life::Live), (5, Life::Live), TIES), Ordering::Equal);
    }

    #[test]
    fn a_deleted_counter_stays_deleted() {
        assert_eq!(compare_counters((9, Life::Live), (1, Life::Dead(3))), Some(Ordering::Less));
        assert_eq!(compare_counters((1, Life::Dead(3)), (9, Life::Live)), Some(Ordering::Greater));
        assert_eq!(compare_counters((1, Life::Dead(3)), (2, Life::Dead(1))), Some(Ordering::Less));
        assert_eq!(compare_counters((1, Life::Live), (2, Life::Live)), None);
    }

    #[test]
    fn markers_in_the_order_in_which_they_count() {
        let marker = |timestamp, expiry: Option<(u32, u32)>| Marker {
            timestamp,
            expiry: expiry.map(|(ttl, local_deletion)| Expiry { ttl, local_deletion }),
        };
        let ascending = [
            Marker::NONE,
            marker(5, None),
            marker(5, Some((10, 20))),
            marker(5, Some((10, 30))),
            marker(5, Some((9, 30))),
            marker(5, Some((EXPIRED_TTL, 3))),
            marker(5, Some((EXPIRED_TTL, 4))),
            marker(6, None),
        ];
        for (left_at, left) in ascending.iter().enumerate() {
            for (right_at, right) in ascending.iter().enumerate() {
                assert_eq!(left.supersedes(*right, TIES), left_at > right_at, "{left:?} {right:?}");
            }
        }
        assert!(!marker(5, Some((EXPIRED_TTL, u32::MAX))).is_live_at(3));
        assert!(marker(5, Some((10, 20))).is_live_at(19));
        assert!(!marker(5, Some((10, 20))).is_live_at(20));
        assert!(!Marker::NONE.is_live_at(0));
    }

    #[test]
    fn deletions_count_by_time_and_then_by_local_time() {
        let deletion = |timestamp, local_deletion| Some(Deletion { timestamp, local_deletion });
        assert_eq!(later(deletion(1, 9), deletion(2, 1)), deletion(2, 1));
        assert_eq!(later(deletion(2, 1), deletion(2, 3)), deletion(2, 3));
        assert_eq!(later(None, deletion(2, 3)), deletion(2, 3));
        assert!(deletes(deletion(2, 3), 2) && !deletes(deletion(2, 3), 3) && !deletes(None, i64::MIN));
    }
}
