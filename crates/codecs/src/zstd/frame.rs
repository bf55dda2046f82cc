//! A frame, decoded here. RFC 8878, section 3.1.1.

use marquetry_base::cast::{low_u32, u64_of, usize_of_u32};
use marquetry_base::{Budget, Result};
use marquetry_kernels::{plain, xxh64};

use super::block::{Block, Next};
use super::header::Header;
use super::window::{PART_BYTES, Target, Window};
use super::work::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BLOCK_TOO_LONG, Stop, Work};
use crate::page::Page;

/// A decoder of frames that can stop anywhere.
#[derive(Debug, Default)]
pub(super) struct Frame {
    expect: Expect,
    /// A block's header, or a checksum, as far as it has arrived.
    head: [u8; CHECKSUM_BYTES],
    head_length: usize,
    block: Block,
    block_bytes_max: usize,
    /// The current block is the last.
    is_last: bool,
    /// What the frame's header says that it becomes, and what it has become.
    content: Option<u64>,
    decoded: u64,
    hash: Option<xxh64::Pieces>,
    /// Where the frame begins in the page, if the host holds that.
    start: usize,
    window: Window,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    BlockHeader,
    Raw {
        left: usize,
    },
    /// The byte that a block repeats.
    Byte {
        left: usize,
    },
    Run {
        byte: u8,
        left: usize,
    },
    Block,
    Checksum,
    End,
}

/// The cost of a block's header, or another small thing.
const HEADER_ELEMENTS: usize = 20;

const CHECKSUM_BYTES: usize = 4;

/// Bytes of a tree's table, and of four others.
const TABLES_BYTES: usize = 24 << 10;

impl Frame {
    /// Bytes of memory that a frame takes, with those of its window, if it needs one.
    pub(super) fn bytes_for(window: Option<u64>) -> u64 {
        u64_of(size_of::<Frame>() + TABLES_BYTES + Block::BYTES_MAX).saturating_add(window.unwrap_or(0))
    }

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        size_of::<Frame>() + TABLES_BYTES + self.block.held() + self.window.held()
    }

    /// Begins a frame, with a window of so many bytes, or at `start` of a page that the host holds. False if that takes
    /// another call.
    pub(super) fn begin(
        &mut self,
        header: &Header,
        window: Option<usize>,
        start: usize,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        if let Some(bytes) = window
            && !self.window.begin(bytes, budget)?
        {
            return Ok(false);
        }
        self.block.begin_frame()?;
        let (window, content) = header.sizes().unwrap_or_default();
        self.block_bytes_max = usize::try_from(window).unwrap_or(usize::MAX).min(BLOCK_BYTES_MAX);
        self.content = content;
        self.hash = header.has_checksum().then(xxh64::Pieces::default);
        (self.expect, self.head_length, self.decoded, self.start) = (Expect::BlockHeader, 0, 0, start);
        Ok(true)
    }

    /// Goes on, in the page that the host holds, at `at`. The bytes of `input` consumed, those produced, and why it
    /// stopped.
    pub(super) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        at: usize,
        page: &Page,
        work: &mut Work,
    ) -> Result<(usize, usize, Stop)> {
        let end = output.len();
        let mut target = Target { page, bytes: output, start: self.start, at, before: 0, end };
        let mut consumed = 0;
        loop {
            let (taken, stop) = self.decode(&input[consumed..], &mut target, work)?;
            consumed += taken;
            if stop != Stop::Block {
                return Ok((consumed, target.at - at, stop));
            }
        }
    }

    /// Goes on, and passes on to `room` what it becomes.
    pub(super) fn step_in_window(
        &mut self,
        input: &[u8],
        room: &mut [u8],
        page: &Page,
        work: &mut Work,
    ) -> Result<(usize, usize, Stop)> {
        let (mut consumed, mut produced, mut stopped) = (0, 0, Stop::Block);
        loop {
            let pending = self.window.pending();
            let room = &mut room[produced..];
            let bytes = pending.len().min(room.len());
            plain::copy(&pending[..bytes], room);
            work.bytes(bytes);
            self.window.give(bytes);
            produced += bytes;
            if !self.window.pending().is_empty() {
                return Ok((consumed, produced, Stop::Room));
            }
            if stopped != Stop::Block {
                return Ok((consumed, produced, stopped));
            }
            // Once more: what is left may be more than the budget.
            if work.is_tired() {
                return Ok((consumed, produced, Stop::Tired));
            }
            if self.expect == Expect::BlockHeader {
                work.fresh(self.window.make_room(self.block_bytes_max));
            }
            // (Taken out, because the target borrows it.)
            let mut window = core::mem::take(&mut self.window);
            let mut target = window.target(page, page.owed() - produced);
            let decoded = self.decode(&input[consumed..], &mut target, work);
            let at = target.at;
            window.advance(at);
            self.window = window;
            let taken;
            (taken, stopped) = decoded?;
            consumed += taken;
        }
    }

    /// Decodes up to a block's end.
    fn decode(&mut self, input: &[u8], target: &mut Target<'_>, work: &mut Work) -> Result<(usize, Stop)> {
        let mut consumed = 0;
        loop {
            if work.is_tired() {
                return Ok((consumed, Stop::Tired));
            }
            let before = target.at;
            let stop = self.part(&input[consumed..], &mut consumed, target, work)?;
            let new = &target.bytes[before..target.at];
            self.decoded += u64_of(new.len());
            if let Some(hash) = &mut self.hash {
                hash.add(new);
                work.bytes(new.len());
            }
            if stop == Some(Stop::Block) {
                self.end_block(target)?;
            }
            if let Some(stop) = stop {
                return Ok((consumed, stop));
            }
        }
    }

    /// Does what comes next; why it stopped, if it did.
    fn part(
        &mut self,
        input: &[u8],
        consumed: &mut usize,
        target: &mut Target<'_>,
        work: &mut Work,
    ) -> Result<Option<Stop>> {
        match self.expect {
            Expect::BlockHeader => {
                let Some(header) = self.head(BLOCK_HEADER_BYTES, input, consumed) else {
                    return Ok(Some(Stop::Input));
                };
                work.elements += HEADER_ELEMENTS;
                return self.begin_block(header, target, work);
            }
            Expect::Raw { left } => {
                let bytes = left.min(input.len()).min(PART_BYTES);
                if bytes == 0 {
                    return Ok(Some(Stop::Input));
                }
                target.append(&input[..bytes]);
                work.bytes(bytes);
                *consumed += bytes;
                self.expect = Expect::Raw { left: left - bytes };
                return Ok((left == bytes).then_some(Stop::Block));
            }
            Expect::Byte { left } => {
                let Some(&byte) = input.first() else { return Ok(Some(Stop::Input)) };
                *consumed += 1;
                self.expect = Expect::Run { byte, left };
            }
            Expect::Run { left: 0, .. } => return Ok(Some(Stop::Block)),
            Expect::Run { byte, left } => {
                let bytes = left.min(PART_BYTES);
                target.bytes[target.at..target.at + bytes].fill(byte);
                target.at += bytes;
                work.bytes(bytes);
                self.expect = Expect::Run { byte, left: left - bytes };
            }
            Expect::Block => {
                let (taken, next) = self.block.decode(input, target, work)?;
                *consumed += taken;
                return Ok(Some(match next {
                    Next::Input => Stop::Input,
                    Next::Tired => Stop::Tired,
                    Next::Done => Stop::Block,
                }));
            }
            Expect::Checksum => {
                let Some(checksum) = self.head(CHECKSUM_BYTES, input, consumed) else {
                    return Ok(Some(Stop::Input));
                };
                let hash = self.hash.as_ref().map_or(0, xxh64::Pieces::finish);
                if checksum != low_u32(hash) {
                    return Err(target.bad("its checksum is another"));
                }
                self.expect = Expect::End;
            }
            Expect::End => return Ok(Some(Stop::End)),
        }
        Ok(None)
    }

    /// A number of `bytes`, once they are there.
    fn head(&mut self, bytes: usize, input: &[u8], consumed: &mut usize) -> Option<u32> {
        let taken = input.len().min(bytes - self.head_length);
        self.head[self.head_length..self.head_length + taken].copy_from_slice(&input[..taken]);
        *consumed += taken;
        self.head_length += taken;
        if self.head_length < bytes {
            return None;
        }
        self.head_length = 0;
        Some(u32::from_le_bytes(core::mem::take(&mut self.head)))
    }

    fn begin_block(&mut self, header: u32, target: &Target<'_>, work: &mut Work) -> Result<Option<Stop>> {
        let (kind, size) = (header >> 1 & 3, usize_of_u32(header >> 3));
        self.is_last = header & 1 == 1;
        // (What repeats is a byte of a block, so the library refuses it where a block has none.)
        if size > self.block_bytes_max || (kind == 1 && self.block_bytes_max == 0) {
            return Err(target.bad(BLOCK_TOO_LONG));
        }
        if kind < 2 && size > target.room() {
            return Err(target.page.too_long());
        }
        match kind {
            1 => self.expect = Expect::Byte { left: size },
            3 => return Err(target.bad("a block of an unknown kind")),
            // The library takes every block without bytes, and when the last is one, it does not look at the content's size.
            _ if size == 0 => {
                if self.is_last {
                    self.content = None;
                }
                return Ok(Some(Stop::Block));
            }
            0 => self.expect = Expect::Raw { left: size },
            _ => {
                self.block.begin(size, self.block_bytes_max, work);
                self.expect = Expect::Block;
            }
        }
        Ok(None)
    }

    fn end_block(&mut self, target: &Target<'_>) -> Result<()> {
        self.expect = match (self.is_last, &self.hash) {
            (false, _) => Expect::BlockHeader,
            _ if self.content.is_some_and(|content| content != self.decoded) => {
                return Err(target.bad("a frame has another length than its header says"));
            }
            (true, Some(_)) => Expect::Checksum,
            (true, None) => Expect::End,
        };
        Ok(())
    }
}
