//! Hadoop's framing, in blocks of one chunk each, as readers of the deprecated LZ4 expect. See `crate::hadoop`.
//!
//! A chunk's size precedes it, so each is compressed before any of it is returned.

use marquetry_base::{Budget, Compressor, Error, Progress, Result, Status};

use super::page::{Pack, Plain};

/// Compresses pages of such blocks, with `C` for their chunks.
pub(crate) struct Hadoop<C> {
    chunks: C,
    /// Where the current block begins, and how many of its bytes were consumed.
    block_at: usize,
    consumed: usize,
    state: State,
    /// Sizes and chunk; the compressed bytes, and how many of them were returned.
    block: Vec<u8>,
    made: usize,
    handed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    Compressing,
    HandingOut,
}

/// Hadoop's buffer has 256 KiB. Smaller blocks are available sooner, and cost a reader less memory.
const BLOCK_BYTES: usize = 128 << 10;

const SIZES_BYTES: usize = crate::hadoop::BLOCK_HEADER_BYTES;

impl<C: Compressor> Hadoop<C> {
    pub(crate) fn new(chunks: C) -> Hadoop<C> {
        Hadoop {
            chunks,
            block_at: 0,
            consumed: 0,
            state: State::Between,
            block: Vec::new(),
            made: 0,
            handed: 0,
        }
    }
}

impl<C: Compressor> Pack for Hadoop<C> {
    fn start(&mut self, _: usize) -> Result<()> {
        (self.block_at, self.state) = (0, State::Between);
        Ok(())
    }

    fn bound(&self, uncompressed: usize) -> usize {
        let blocks = uncompressed / BLOCK_BYTES;
        blocks * (SIZES_BYTES + self.chunks.bound(BLOCK_BYTES))
            + SIZES_BYTES
            + self.chunks.bound(uncompressed % BLOCK_BYTES)
    }

    fn held_bytes(&self) -> usize {
        self.chunks.held_bytes() + self.block.capacity()
    }

    fn pack(
        &mut self,
        page: &mut Plain,
        input: &[u8],
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let (mut consumed, mut produced) = (0, 0);
        let status = loop {
            let length = BLOCK_BYTES.min(page.length() - self.block_at);
            match self.state {
                // An empty page is an empty block.
                State::Between if length == 0 && self.block_at > 0 => break Status::End,
                State::Between => {
                    self.chunks.start(length)?;
                    let most = SIZES_BYTES + self.chunks.bound(length);
                    let more = most.saturating_sub(self.block.len());
                    self.block.try_reserve_exact(more).map_err(|_| Error::out_of_memory(more))?;
                    self.block.resize(most, 0);
                    (self.made, self.consumed, self.state) = (SIZES_BYTES, 0, State::Compressing);
                }
                State::Compressing => {
                    let left = &input[consumed..];
                    let left = &left[..left.len().min(length - self.consumed)];
                    let is_last = left.len() == length - self.consumed;
                    let progress = self.chunks.step(left, is_last, &mut self.block[self.made..], budget)?;
                    self.made += progress.produced;
                    self.consumed += progress.consumed;
                    consumed += progress.consumed;
                    page.advance(progress.consumed);
                    match progress.status {
                        Status::End => {
                            let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
                            let (plain, packed) = self.block[..SIZES_BYTES].split_at_mut(SIZES_BYTES / 2);
                            plain.copy_from_slice(&size(length));
                            packed.copy_from_slice(&size(self.made - SIZES_BYTES));
                            (self.handed, self.state) = (0, State::HandingOut);
                        }
                        Status::NeedRoom => return Err(Error::internal("a chunk larger than its bound")),
                        status => break status,
                    }
                }
                State::HandingOut => {
                    let room = &mut output[produced..];
                    let take = room.len().min(self.made - self.handed);
                    room[..take].copy_from_slice(&self.block[self.handed..self.handed + take]);
                    budget.charge(super::stream::COPY_PRICE, take, 0);
                    self.handed += take;
                    produced += take;
                    if self.handed < self.made {
                        break Status::NeedRoom;
                    }
                    self.block_at += length;
                    self.state = State::Between;
                    if length == 0 {
                        break Status::End;
                    }
                }
            }
        };
        Ok(Progress { consumed, produced, status })
    }
}
