//! Pages that a library compresses as a stream: what the compressors of GZIP, ZSTD and BROTLI have in common.
//!
//! The library gets chunks of a fixed size, at fixed positions of the page, and always the same room. So its output
//! does not depend on how the host splits input and room; and since it works on at most one chunk per call, a step is
//! as short as a chunk. Nothing is copied if the host passes a complete chunk and as much room.

use marquetry_base::{Budget, Error, Price, Progress, Result, Status};

use super::page::{Pack, Plain};

/// A library's encoder of streams.
pub(crate) trait Stream: Send {
    /// Begins a stream of `uncompressed` bytes.
    fn start(&mut self, uncompressed: usize) -> Result<()>;

    /// Bytes of a chunk.
    fn chunk_bytes(&self) -> usize;

    /// The prices of a chunk's bytes, and of a call.
    fn price(&self) -> Price;

    /// Consumes the rest of a chunk, which may be the stream's `last`, and writes what it can.
    fn call(&mut self, chunk: &[u8], last: bool, room: &mut [u8]) -> Result<Called>;

    /// The maximum compressed size of a page of `uncompressed` bytes.
    fn bound(&self, uncompressed: usize) -> usize;

    /// Bytes of memory that it holds.
    fn held_bytes(&self) -> usize;
}

/// The result of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Called {
    /// Bytes of the chunk that it took.
    pub(crate) consumed: usize,
    /// Bytes produced.
    pub(crate) produced: usize,
    /// The chunk is done, and so is the stream if it was the last.
    pub(crate) is_done: bool,
}

/// The room of a call.
const ROOM_BYTES: usize = 32 << 10;

/// The price of copying: input that arrives in pieces, and output if room is short.
pub(crate) const COPY_PRICE: Price = Price::per_kib(100);

/// The compressor of a [`Stream`].
pub(crate) struct Streamed<S> {
    stream: S,
    /// A chunk that arrives in pieces.
    gathered: Vec<u8>,
    /// Where the chunk begins in the page, and how many of its bytes were consumed.
    chunk_at: usize,
    taken: usize,
    /// Output for which the host had less than [`ROOM_BYTES`], and how many bytes of it were returned.
    made: Vec<u8>,
    handed: usize,
    is_done: bool,
}

impl<S: Stream> Streamed<S> {
    pub(crate) fn new(stream: S) -> Streamed<S> {
        Streamed {
            stream,
            gathered: Vec::new(),
            chunk_at: 0,
            taken: 0,
            made: Vec::new(),
            handed: 0,
            is_done: false,
        }
    }
}

impl<S: Stream> Pack for Streamed<S> {
    fn start(&mut self, uncompressed: usize) -> Result<()> {
        self.gathered.clear();
        self.made.clear();
        (self.chunk_at, self.taken, self.handed, self.is_done) = (0, 0, 0, false);
        self.stream.start(uncompressed)
    }

    fn bound(&self, uncompressed: usize) -> usize {
        self.stream.bound(uncompressed)
    }

    fn held_bytes(&self) -> usize {
        self.stream.held_bytes() + self.gathered.capacity() + self.made.capacity()
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
            let handed = self.hand_out(&mut output[produced..]);
            if handed > 0 {
                budget.charge(COPY_PRICE, handed, 0);
                produced += handed;
            }
            if self.handed < self.made.len() {
                break Status::NeedRoom;
            }
            if self.is_done {
                break Status::End;
            }
            let length = self.stream.chunk_bytes().min(page.length() - self.chunk_at);
            let cost = self.stream.price().of(length - self.taken, 1);
            if budget.spent() > 0 && (budget.left() < cost || budget.is_spent()) {
                break Status::Yield;
            }
            let left = &input[consumed..];
            let is_shown = self.gathered.is_empty() && left.len() >= length;
            if !is_shown && self.gathered.len() < length {
                let take = left.len().min(length - self.gathered.len());
                gather(&mut self.gathered, &left[..take], length)?;
                budget.charge(COPY_PRICE, take, 0);
                page.advance(take);
                consumed += take;
                if self.gathered.len() < length {
                    break Status::NeedInput;
                }
                continue;
            }
            let chunk = if is_shown { &left[..length] } else { &self.gathered[..] };
            let is_last = self.chunk_at + length == page.length();
            let called = match output.get_mut(produced..produced + ROOM_BYTES) {
                Some(room) => {
                    let called = self.stream.call(&chunk[self.taken..], is_last, room)?;
                    produced += called.produced;
                    called
                }
                None => {
                    grow(&mut self.made, ROOM_BYTES)?;
                    let called = self.stream.call(&chunk[self.taken..], is_last, &mut self.made)?;
                    self.made.truncate(called.produced);
                    self.handed = 0;
                    called
                }
            };
            budget.charge(self.stream.price(), called.consumed, 1);
            self.taken += called.consumed;
            if called.is_done {
                if self.taken < length {
                    return Err(Error::internal("a compressor ends before its input does"));
                }
                if is_shown {
                    page.advance(length);
                    consumed += length;
                }
                self.gathered.clear();
                (self.chunk_at, self.taken, self.is_done) = (self.chunk_at + length, 0, is_last);
            } else if called.consumed + called.produced == 0 {
                return Err(Error::internal("a compressor does not come on"));
            }
        };
        Ok(Progress { consumed, produced, status })
    }
}

impl<S: Stream> Streamed<S> {
    /// Copies output to the host's room, and returns how many bytes.
    fn hand_out(&mut self, room: &mut [u8]) -> usize {
        let left = &self.made[self.handed..];
        let take = left.len().min(room.len());
        room[..take].copy_from_slice(&left[..take]);
        self.handed += take;
        take
    }
}

/// Adds `piece` to the bytes gathered so far, of `length` in total.
fn gather(gathered: &mut Vec<u8>, piece: &[u8], length: usize) -> Result<()> {
    let more = length - gathered.len();
    gathered.try_reserve_exact(more).map_err(|_| Error::out_of_memory(more))?;
    gathered.extend_from_slice(piece);
    Ok(())
}

/// Extends it to `length` bytes.
fn grow(bytes: &mut Vec<u8>, length: usize) -> Result<()> {
    let more = length.saturating_sub(bytes.len());
    bytes.try_reserve_exact(more).map_err(|_| Error::out_of_memory(more))?;
    bytes.resize(length, 0);
    Ok(())
}
