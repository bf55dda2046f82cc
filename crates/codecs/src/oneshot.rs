//! Codecs that take a page's whole input and room for its whole output.

use marquetry_base::{Budget, Codec, Decompressor, Price, Progress, Result, Status};

use crate::page::{Page, Ratio};

/// A codec of one call a page.
pub(crate) trait Block: Send {
    const CODEC: Codec;

    /// The largest possible ratio.
    const RATIO_MAX: Ratio;

    /// What bytes cost, compressed or not, whichever are more. Charged after the work, for nothing can be stopped before.
    const PRICE: Price;

    /// The uncompressed length that the data tells, where it does.
    fn length(&self, input: &[u8]) -> Result<Option<usize>>;

    /// Decompresses a page; the output's length is the announced one. The number of bytes written.
    fn decompress(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize>;
}

/// The decompressor of a [`Block`] codec.
#[derive(Debug)]
pub(crate) struct OneShot<B> {
    block: B,
    page: Page,
}

impl<B: Block> OneShot<B> {
    pub(crate) fn new(block: B) -> OneShot<B> {
        OneShot { block, page: Page::none(B::CODEC) }
    }
}

impl<B: Block> Decompressor for OneShot<B> {
    fn start(&mut self, compressed: usize, uncompressed: usize) -> Result<()> {
        self.page.start(compressed, uncompressed, B::RATIO_MAX)
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let block = &mut self.block;
        self.page.step(input.len(), last, |page| {
            let owed = page.owed();
            if !last {
                return Ok(Progress { consumed: 0, produced: 0, status: Status::NeedInput });
            }
            // Page V2: nothing may be compressed to nothing (which no block codec does by itself).
            if input.is_empty() && owed == 0 {
                return Ok(Progress { consumed: 0, produced: 0, status: Status::End });
            }
            // Before any room is asked for.
            if let Some(length) = block.length(input)?
                && length != owed
            {
                return Err(page
                    .corrupt(format_args!("its data tells {length} uncompressed bytes, its header {owed}")));
            }
            let Some(output) = output.get_mut(..owed) else {
                return Ok(Progress { consumed: 0, produced: 0, status: Status::NeedRoom });
            };
            let produced = block.decompress(input, output);
            budget.charge(B::PRICE, input.len().max(owed), 0);
            let produced = produced?;
            page.advance(input.len(), produced);
            if produced != owed {
                return Err(page.too_short());
            }
            Ok(Progress { consumed: input.len(), produced, status: Status::End })
        })
    }

    fn whole_output(&self) -> bool {
        true
    }
}
