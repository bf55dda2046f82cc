//! A dictionary page on its way to entries.

use marquetry_base::{Budget, Limits, Release, Result, release_all};

use super::super::dictionary::{Decoded, DictionaryDecoder, Entries};
use crate::encoding::plain::Accept;
use crate::encoding::stream::Stream;
use crate::format::DictionaryPageHeader;
use crate::memory::Memory;
use crate::schema::PhysicalType;

/// A dictionary page that is being decoded, from its body of so many bytes.
pub(super) struct DictionaryPage {
    decoder: DictionaryDecoder,
    body: Stream,
    body_bytes: usize,
}

impl DictionaryPage {
    /// A page of so many values, encoded so.
    pub(super) fn new(
        header: &DictionaryPageHeader,
        body: Stream,
        (physical_type, accept): (PhysicalType, Accept),
        limits: &Limits,
    ) -> Result<DictionaryPage> {
        let body_bytes = body.left();
        let values = header.values as usize;
        let decoder =
            DictionaryDecoder::new(header.encoding, physical_type, body_bytes, values, accept, limits)?;
        Ok(DictionaryPage { decoder, body, body_bytes })
    }

    /// The page's body.
    pub(super) fn body(&mut self) -> &mut Stream {
        &mut self.body
    }

    /// What is decoded.
    pub(super) fn finish(self, physical_type: PhysicalType) -> Entries {
        self.decoder.finish(physical_type)
    }

    /// Bytes held. The decoder has the body's chunk, too.
    pub(super) fn held(&self) -> usize {
        self.decoder.held()
    }

    /// Decodes until all is decoded: true; or the body wants bytes, or the budget is spent.
    pub(super) fn step(&mut self, memory: &mut Memory, budget: &mut Budget<'_>) -> Result<bool> {
        loop {
            match self.decoder.step(memory, budget)? {
                Decoded::Some => return Ok(false),
                Decoded::All => return Ok(true),
                Decoded::Chunk { at, bytes } => {
                    self.body.advance((at + self.body.left()).saturating_sub(self.body_bytes));
                    if !self.body.has(bytes) {
                        return Ok(false);
                    }
                    self.decoder.supply(self.body.peek(0, self.body.left()));
                }
            }
        }
    }
}

impl Release for DictionaryPage {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.decoder, &mut self.body], budget)
    }
}
