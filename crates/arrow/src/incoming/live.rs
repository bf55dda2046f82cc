//! Which slots of an array are present.

use std::ops::Range;

use arrow_array::Array;
use marquetry_base::Error;

/// Slots of an array.
#[derive(Debug, Clone)]
pub(super) enum Live {
    Range(Range<usize>),
    Picks(Vec<usize>),
}

impl Live {
    pub(super) fn len(&self) -> usize {
        match self {
            Live::Range(range) => range.len(),
            Live::Picks(picks) => picks.len(),
        }
    }

    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Live::Range(range) => Box::new(range.clone()),
            Live::Picks(picks) => Box::new(picks.iter().copied()),
        }
    }
}

/// The slots of a flat array that are not null.
pub(super) fn live_of(array: &dyn Array) -> Live {
    match array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        None => Live::Range(0..array.len()),
        Some(nulls) => Live::Picks(nulls.valid_indices().collect()),
    }
}

/// The error for arrays that contradict themselves, from arrow-rs's.
pub(super) fn refused(error: arrow_schema::ArrowError) -> Error {
    Error::misuse(format!("an array that contradicts itself: {error}"))
}
