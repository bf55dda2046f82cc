//! Codecs in Hadoop's framing, or whatever some writers put in its place.
//!
//! Hadoop's `BlockCompressorStream` writes blocks, one after the other: the uncompressed size of the block, then chunks until
//! that size is reached, each the size of its compressed bytes and those bytes. Sizes are 32 bits, big-endian. A chunk
//! refers to nothing outside of it. (Arrow C++ reads and writes blocks of one chunk only; Hadoop cuts a write that
//! its buffer, 256 KiB by default, does not hold into several chunks of one block.)

use marquetry_base::{Budget, Codec, Decompressor, Price, Progress, Result, Status};

use crate::page::{Page, Ratio};

/// A codec that Hadoop frames.
pub(crate) trait Chunks: Send {
    const CODEC: Codec;

    /// The largest possible ratio.
    const RATIO_MAX: Ratio;

    /// What bytes cost, compressed or not, whichever are more. Charged after a chunk, for none can be stopped before.
    const PRICE: Price;

    /// How a page is laid out: told by its first bytes, so that each page is read in one way and errors are those of that
    /// way. `input` is not empty.
    fn layout(input: &[u8], uncompressed: usize) -> Layout;

    /// Decompresses a chunk, at most as much as there is room for. The number of bytes written.
    fn chunk(input: &[u8], output: &mut [u8]) -> Result<usize>;
}

/// How a page is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Layout {
    Hadoop,
    /// In another way, decompressed by this function at once. The output's length is the announced one; the result is the
    /// number of bytes written.
    Whole(fn(&[u8], &mut [u8]) -> Result<usize>),
}

/// The sizes that start a block of one chunk.
pub(crate) const BLOCK_HEADER_BYTES: usize = 2 * SIZE_BYTES;

const SIZE_BYTES: usize = size_of::<u32>();

/// The decompressor of a [`Chunks`] codec. It waits for the whole input and room for the whole output; then it may yield
/// after each chunk.
#[derive(Debug)]
pub(crate) struct Framed<C> {
    codec: core::marker::PhantomData<C>,
    page: Page,
    layout: Option<Layout>,
    /// Uncompressed bytes that the current block still has to come to.
    block_owed: usize,
}

impl<C: Chunks> Framed<C> {
    pub(crate) fn new() -> Framed<C> {
        Framed { codec: core::marker::PhantomData, page: Page::none(C::CODEC), layout: None, block_owed: 0 }
    }
}

impl<C: Chunks> Decompressor for Framed<C> {
    fn start(&mut self, compressed: usize, uncompressed: usize) -> Result<()> {
        (self.layout, self.block_owed) = (None, 0);
        self.page.start(compressed, uncompressed, C::RATIO_MAX)
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let Framed { page, layout, block_owed, .. } = self;
        page.step(input.len(), last, |page| {
            if !last {
                return Ok(Progress { consumed: 0, produced: 0, status: Status::NeedInput });
            }
            // Page V2: nothing may be compressed to nothing.
            if input.is_empty() && page.owed() == 0 {
                return Ok(Progress { consumed: 0, produced: 0, status: Status::End });
            }
            let Some(output) = output.get_mut(..page.owed()) else {
                return Ok(Progress { consumed: 0, produced: 0, status: Status::NeedRoom });
            };
            match *layout.get_or_insert_with(|| C::layout(input, page.owed())) {
                Layout::Hadoop => blocks::<C>(page, block_owed, input, output, budget),
                Layout::Whole(decompress) => {
                    let produced = decompress(input, output);
                    budget.charge(C::PRICE, input.len().max(output.len()), 0);
                    let produced = produced?;
                    page.advance(input.len(), produced);
                    if page.owed() > 0 {
                        return Err(page.too_short());
                    }
                    Ok(Progress { consumed: input.len(), produced, status: Status::End })
                }
            }
        })
    }

    fn whole_output(&self) -> bool {
        true
    }
}

/// Decompresses chunk by chunk, until the page ends or the budget is spent.
fn blocks<C: Chunks>(
    page: &mut Page,
    block_owed: &mut usize,
    input: &[u8],
    output: &mut [u8],
    budget: &mut Budget<'_>,
) -> Result<Progress> {
    let (mut consumed, mut produced) = (0, 0);
    loop {
        if *block_owed == 0 {
            if consumed == input.len() {
                if page.owed() > 0 {
                    return Err(page.too_short());
                }
                return Ok(Progress { consumed, produced, status: Status::End });
            }
            *block_owed = size(page, &input[consumed..])?;
            consumed += SIZE_BYTES;
            page.advance(SIZE_BYTES, 0);
            if *block_owed > page.owed() {
                return Err(page.too_long());
            }
            // Hadoop ends some streams with the size of a block that does not follow.
            if *block_owed == 0 && consumed == input.len() {
                continue;
            }
        }
        let chunk_bytes = size(page, &input[consumed..])?;
        let left = &input[consumed + SIZE_BYTES..];
        let Some(chunk) = left.get(..chunk_bytes) else {
            return Err(page.corrupt(format_args!(
                "a chunk of {chunk_bytes} compressed bytes where {} are left",
                left.len()
            )));
        };
        let room = &mut output[produced..produced + *block_owed];
        let written = C::chunk(chunk, room);
        // With the sizes, for chunks may be of one byte.
        let work_bytes = (BLOCK_HEADER_BYTES + chunk_bytes).max(*written.as_ref().unwrap_or(&room.len()));
        budget.charge(C::PRICE, work_bytes, 0);
        let written = written?;
        // Arrow C++ writes a block of nothing as a chunk that becomes nothing. Elsewhere such chunks lead nowhere.
        if written == 0 && *block_owed > 0 {
            return Err(page.corrupt("a chunk has no data"));
        }
        consumed += SIZE_BYTES + chunk_bytes;
        produced += written;
        *block_owed -= written;
        page.advance(SIZE_BYTES + chunk_bytes, written);
        if budget.is_spent() && consumed < input.len() {
            return Ok(Progress { consumed, produced, status: Status::Yield });
        }
    }
}

fn size(page: &Page, input: &[u8]) -> Result<usize> {
    let Some(&bytes) = input.first_chunk() else {
        return Err(page.truncated());
    };
    // Beyond the address space it is beyond all that there is, too.
    Ok(usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX))
}

/// The first two sizes of a page in this framing.
pub(crate) fn first_sizes(input: &[u8]) -> Option<(u32, u32)> {
    let &[b0, b1, b2, b3, c0, c1, c2, c3] = input.first_chunk::<BLOCK_HEADER_BYTES>()?;
    Some((u32::from_be_bytes([b0, b1, b2, b3]), u32::from_be_bytes([c0, c1, c2, c3])))
}
