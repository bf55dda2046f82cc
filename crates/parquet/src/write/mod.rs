//! The machines that write, and what they are made of.
//!
//! | machine | from | to |
//! |---|---|---|
//! | [`FooterWriter`] | metadata | a file's end |
//!
//! [`encoder`], [`dictionary`] and [`chooser`] make the bodies of pages of values; they can be used alone.

pub mod chooser;
pub mod dictionary;
pub mod encoder;
mod footer;

pub use footer::FooterWriter;
