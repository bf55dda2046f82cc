//! Finding the rows of a file for which a predicate is true, by reading as little as possible.
//!
//! [`RowFinder`] goes through the row groups. What a [`Predicate`](crate::prune::Predicate) says about bounds is in [`prune`](crate::prune),
//! below the readers; here is what reads.

mod finder;
mod judged;
mod pages;
mod reading;
mod report;

pub use finder::{FindOptions, Found, RowFinder};
pub use report::{Counts, Report, Structures};
