//! The decompressors of a reader's columns.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Codec, Codecs, Decompressor, Result};

use super::windowed::Windowed;
use crate::memory::Memory;

/// The longest history of a decompressor that is copied to the front of each chunk.
const HISTORY_BYTES_MAX: usize = 128 << 10;

/// Decompressors that the columns of a reader share: each has its own from a page's start to its end. They are as many as were in use
/// at once, and are kept: a window of many megabytes is allocated once, and never freed within a step.
pub(super) struct Decompressors {
    codecs: Arc<dyn Codecs>,
    idle: Vec<Idle>,
}

/// What becomes of a page's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// The page is one.
    One,
    /// Each is released when it was read.
    Passing,
    /// They are held, all of them.
    Held,
}

/// A decompressor that is in no page.
struct Idle {
    codec: Codec,
    chunks: Chunks,
    decompressor: Box<dyn Decompressor>,
    held_bytes: usize,
}

impl Decompressors {
    /// None yet; they come from `codecs` when they are wanted.
    pub(super) fn new(codecs: Arc<dyn Codecs>) -> Decompressors {
        Decompressors { codecs, idle: Vec::new() }
    }

    /// One for a page. What it holds is admitted for the page's column, until it is put back.
    pub(super) fn take(
        &mut self,
        codec: Codec,
        chunks: Chunks,
        memory: &mut Memory,
    ) -> Result<Box<dyn Decompressor>> {
        let fits = |idle: &Idle| idle.codec == codec && idle.chunks == chunks;
        if let Some(at) = self.idle.iter().position(fits) {
            let idle = self.idle.swap_remove(at);
            memory.move_here(idle.held_bytes);
            return Ok(idle.decompressor);
        }
        let decompressor = self.codecs.decompressor(codec)?;
        memory.admit(decompressor.held_bytes())?;
        let is_apart = match chunks {
            Chunks::One => false,
            Chunks::Passing => decompressor.history_bytes() > HISTORY_BYTES_MAX,
            Chunks::Held => decompressor.history_bytes() > 0,
        };
        Ok(if is_apart { Box::new(Windowed::new(decompressor)) } else { decompressor })
    }

    /// Takes one back, whose page has come to its end.
    pub(super) fn put_back(&mut self, codec: Codec, chunks: Chunks, decompressor: Box<dyn Decompressor>) {
        let held_bytes = decompressor.held_bytes();
        self.idle.push(Idle { codec, chunks, decompressor, held_bytes });
    }

    /// Bytes that those hold which are in no page.
    pub(super) fn held(&self) -> u64 {
        self.idle.iter().map(|idle| u64_of(idle.held_bytes)).sum()
    }
}
