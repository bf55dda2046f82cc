//! The decompressors of a reader's columns.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Codec, Codecs, Decompressor, Result};

use super::windowed::Windowed;

/// The longest history of a decompressor that is copied to the front of each window.
const HISTORY_BYTES_MAX: usize = 128 << 10;

/// Decompressors that the columns of a reader share: each has its own from a page's start to its end.
pub(super) struct Decompressors {
    codecs: Arc<dyn Codecs>,
    idle: Vec<Idle>,
}

/// A decompressor that is in no page.
struct Idle {
    codec: Codec,
    /// Whether it is for pages that are longer than a window.
    is_windowed: bool,
    decompressor: Box<dyn Decompressor>,
}

/// Decompressors that are kept for later, at most: large tables read a few columns at a time.
const IDLE_MAX: usize = 4;

impl Decompressors {
    /// None yet; they come from `codecs` when they are wanted.
    pub(super) fn new(codecs: Arc<dyn Codecs>) -> Decompressors {
        Decompressors { codecs, idle: Vec::new() }
    }

    /// One for a page.
    pub(super) fn take(&mut self, codec: Codec, is_windowed: bool) -> Result<Box<dyn Decompressor>> {
        let fits = |idle: &Idle| idle.codec == codec && idle.is_windowed == is_windowed;
        if let Some(at) = self.idle.iter().position(fits) {
            return Ok(self.idle.swap_remove(at).decompressor);
        }
        let decompressor = self.codecs.decompressor(codec)?;
        let refers_far = decompressor.history_bytes() > HISTORY_BYTES_MAX;
        Ok(if is_windowed && refers_far { Box::new(Windowed::new(decompressor)) } else { decompressor })
    }

    /// Takes one back, whose page has come to its end.
    pub(super) fn put_back(&mut self, codec: Codec, is_windowed: bool, decompressor: Box<dyn Decompressor>) {
        if self.idle.len() == IDLE_MAX {
            self.idle.remove(0);
        }
        self.idle.push(Idle { codec, is_windowed, decompressor });
    }
}
