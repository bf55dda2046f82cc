//! Finding the rows of a file for which a predicate is true, by reading as little as possible.
//!
//! [`RowFinder`] goes through the row groups. What a [`Predicate`](crate::prune::Predicate) says about bounds is in [`prune`](crate::prune),
//! below the readers; here is what reads.

use marquetry_base::{Detail, Error, ErrorKind};

mod blooms;
mod dictionaries;
mod finder;
mod judged;
mod options;
mod pages;
mod program;
mod reading;
mod report;
mod stage;

pub use finder::RowFinder;
pub use options::{FindOptions, Found, Stopped};
pub use report::{Report, Structures};

pub use crate::prune::Counts;

/// Whether an error of what a search could do without says that this is not to be used: it contradicts itself or the file, or is of a
/// kind that is not known, or is larger than it may be. What is the host's fault, or ours, ends the search.
fn dispensable(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Unsupported => true,
        ErrorKind::LimitExceeded => matches!(error.detail(), Some(Detail::Limit(_))),
        _ => false,
    }
}
