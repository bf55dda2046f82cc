//! Texts that the host borrows.

use core::ffi::c_char;
use core::ptr::null;

use marquetry_base::{Error, Result};

use crate::abi::marquetry_text;
use crate::reserve;

/// A text with a NUL after it.
#[derive(Debug, Default)]
pub(crate) struct Text(Vec<u8>);

impl Text {
    /// # Errors
    ///
    /// The allocator refused the memory for it.
    pub(crate) fn new(text: &str) -> Result<Text> {
        let length = text.len().saturating_add(1);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
        // It is kept: nothing of it may be lent.
        reserve::kept(Text(bytes))
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
