//! The front door, as programs use it.

mod cancelled;
mod examples;
mod failures;
mod no_columns;
mod restored;
mod same_names;
