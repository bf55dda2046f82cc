//! Texts that the host borrows.

use core::ffi::c_char;
use core::ptr::null;

use crate::abi::marquetry_text;

/// A text with a NUL after it.
#[derive(Debug, Default)]
pub(crate) struct Text(Box<[u8]>);

impl Text {
    pub(crate) fn new(text: &str) -> Text {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
        Text(bytes.into())
    }

    /// What the host gets, for as long as this is there.
    pub(crate) fn lent(&self) -> marquetry_text {
        match self.0.len().checked_sub(1) {
            Some(length) => marquetry_text { data: self.0.as_ptr().cast::<c_char>(), length },
            None => no_text(),
        }
    }
}

/// No text.
pub(crate) fn no_text() -> marquetry_text {
    marquetry_text { data: null(), length: 0 }
}
