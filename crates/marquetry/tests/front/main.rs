//! The front door, as programs use it.

mod cancelled;
mod durations;
mod examples;
mod failures;
mod incoming;
mod no_columns;
mod restored;
mod same_names;
mod shared_text;
mod some_columns;
