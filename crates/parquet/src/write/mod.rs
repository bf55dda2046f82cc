//! What writes: values to pages.

pub mod chooser;
pub mod dictionary;
pub mod encoder;
