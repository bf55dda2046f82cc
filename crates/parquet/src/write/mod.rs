//! The machines that write.
//!
//! | machine | from | to |
//! |---|---|---|
//! | [`FooterWriter`] | metadata | a file's end |

mod footer;

pub use footer::FooterWriter;
