//! Bytes that an encoder writes, in memory that grows in pieces.

use alloc::vec::Vec;

use marquetry_base::{Bytes, Error, Result};
use marquetry_kernels::strings;

use super::view::beyond_buffers;

/// The longest piece: below 1 MiB, because hosts that never wait dislike larger allocations.
pub(crate) const PIECE_BYTES: usize = 960 << 10;

/// The smallest allocation for a piece.
const FIRST_BYTES: usize = 64;

/// Bytes of a page, or of part of it, as consecutive pieces. Below 960 KiB it is one piece.
#[derive(Debug, Clone, Default)]
pub struct Body {
    pieces: Vec<Bytes>,
    bytes: usize,
    /// The first piece with the space before it, if any, for bytes that are known last.
    roomy: Bytes,
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        self.pieces == other.pieces
    }
}

impl Eq for Body {}

impl Body {
    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The pieces, in order. None is empty, and each is shorter than 1 MiB.
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// The pieces, to be handed on.
    pub fn into_pieces(self) -> Vec<Bytes> {
        self.pieces
    }

    /// Appends another body. Nothing is copied, except bytes that fit into the space before the other.
    pub fn append(&mut self, mut other: Body) {
        if self.is_empty() || other.put_before(self) {
            *self = other;
        } else {
            self.bytes += other.bytes;
            self.pieces.extend(other.pieces);
        }
    }

    /// Writes all of `head` into the space before. False if there is too little, or the memory is shared.
    fn put_before(&mut self, head: &Body) -> bool {
        let Some(first) = self.pieces.first_mut() else { return false };
        let start = self.roomy.len().saturating_sub(first.len());
        let Some(free) = start.checked_sub(head.bytes) else { return false };
        // It was a slice of the memory, which is no longer shared now.
        *first = Bytes::new();
        match core::mem::take(&mut self.roomy).try_into_mut() {
            Ok(mut memory) => {
                let mut at = free;
                for piece in &head.pieces {
                    memory[at..at + piece.len()].copy_from_slice(piece);
                    at += piece.len();
                }
                self.roomy = memory.freeze();
                *first = self.roomy.slice(free..);
                self.bytes += head.bytes;
                true
            }
            Err(memory) => {
                *first = memory.slice(start..);
                false
            }
        }
    }

    /// A body of one piece: what follows the first `free` bytes, which are the space before it.
    pub(crate) fn with_room(memory: Vec<u8>, free: usize) -> Body {
        let (memory, mut body) = (Bytes::from(memory), Body::default());
        body.push(memory.slice(free..));
        if free > 0 && !body.is_empty() {
            body.roomy = memory;
        }
        body
    }

    /// The body without its first four bytes, which are the length of what follows. Nothing is copied.
    pub(crate) fn without_length(&self) -> Body {
        let mut body = Body::default();
        let first = self.pieces.first().map(|first| first.slice(first.len().min(size_of::<u32>())..));
        first.into_iter().chain(self.pieces.iter().skip(1).cloned()).for_each(|piece| body.push(piece));
        body
    }

    /// Appends a piece. Nothing is copied.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push(piece);
        }
    }
}

/// A body that is being written.
#[derive(Debug, Default)]
pub(crate) struct Output {
    before: Body,
    tail: Vec<u8>,
    /// Bytes reserved at the start for what is known only at the end.
    head: usize,
    /// Bytes that are shared with their source, not copied.
    shared: usize,
    /// The copied bytes of the previous output, for the first allocation.
    hint: usize,
}

impl Output {
    /// Bytes written.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.before.bytes + self.tail.len() - self.head
    }

    /// True if nothing was written or reserved.
    pub(crate) fn is_new(&self) -> bool {
        self.tail.is_empty() && self.before.is_empty()
    }

    /// Reserves `bytes` before all others; only before anything is written.
    pub(crate) fn leave_head(&mut self, bytes: usize) -> Result<()> {
        debug_assert!(self.is_new(), "a head behind bytes");
        self.reserve(bytes)?;
        self.tail.resize(bytes, 0);
        self.head = bytes;
        Ok(())
    }

    /// Adds bytes.
    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.tail.len() == PIECE_BYTES {
                self.cut();
            }
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.tail.len()));
            self.reserve(now.len())?;
            self.tail.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Adds bytes that are shared, at most [`PIECE_BYTES`]. Nothing is copied.
    pub(crate) fn share(&mut self, bytes: Bytes) {
        self.cut();
        self.shared += bytes.len();
        self.before.push(bytes);
    }

    /// Appends strings, each preceded by its length if `LENGTHS`: `bytes` bytes in total, in one piece. At most
    /// [`PIECE_BYTES`].
    pub(crate) fn put_strings<const LENGTHS: bool>(
        &mut self,
        views: &[u128],
        buffers: &[Bytes],
        bytes: usize,
    ) -> Result<()> {
        let with_slack = bytes + strings::APPEND_SLACK;
        if self.tail.len() + with_slack > PIECE_BYTES {
            self.cut();
        }
        self.reserve(with_slack)?;
        strings::append::<LENGTHS>(views, buffers, &mut self.tail).map_err(|_| beyond_buffers())
    }

    /// Appends `bytes` zero bytes in one piece, to be overwritten. At most [`PIECE_BYTES`].
    #[inline]
    pub(crate) fn room(&mut self, bytes: usize) -> Result<&mut [u8]> {
        if self.tail.len() + bytes > PIECE_BYTES {
            self.cut();
        }
        self.reserve(bytes)?;
        let start = self.tail.len();
        self.tail.resize(start + bytes, 0);
        Ok(&mut self.tail[start..])
    }

    /// Removes the last `bytes` bytes that [`Output::room`] returned.
    #[inline]
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.tail.truncate(self.tail.len().saturating_sub(bytes));
    }

    /// Allocates `bytes` more bytes in the same piece.
    #[inline]
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.tail.capacity() - self.tail.len() >= bytes { Ok(()) } else { self.grow(bytes) }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<()> {
        let needed = self.tail.len() + bytes;
        let before = self.before.bytes - self.shared;
        let hint = if self.tail.capacity() == 0 { self.hint.saturating_sub(before) } else { 0 };
        let goal = (self.tail.capacity() * 2).max(hint).clamp(FIRST_BYTES, PIECE_BYTES).max(needed);
        self.tail.try_reserve_exact(goal - self.tail.len()).map_err(|_| Error::out_of_memory(goal))
    }

    /// Ends the piece.
    fn cut(&mut self) {
        let tail = core::mem::take(&mut self.tail);
        self.before.push(tail.into());
    }

    /// Returns all that was written, after `head`, which must fit into the reserved bytes; the output is empty
    /// afterwards.
    ///
    /// # Errors
    ///
    /// If the head is longer than the reserved bytes.
    pub(crate) fn finish(&mut self, head: &[u8]) -> Result<Body> {
        let free = self.head.checked_sub(head.len()).ok_or_else(|| Error::internal("a head without room"))?;
        let Output { before: mut body, mut tail, head: left, shared, .. } = core::mem::take(self);
        if body.pieces.is_empty() {
            tail[free..left].copy_from_slice(head);
            body = Body::with_room(tail, free);
        } else {
            // The piece with the reserved bytes is shared already.
            let first = body.pieces.remove(0).slice(left..);
            let pieces = core::mem::take(&mut body).pieces;
            body.push(Bytes::copy_from_slice(head));
            for piece in core::iter::once(first).chain(pieces).chain([tail.into()]) {
                body.push(piece);
            }
        }
        // A little more, because pages vary slightly, and writing strings needs some space after them.
        let copied = body.bytes - shared;
        self.hint = copied + copied / 16;
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(body: &Body) -> Vec<u8> {
        let bytes: Vec<u8> = body.pieces().iter().flat_map(|piece| piece.iter().copied()).collect();
        assert_eq!(bytes.len(), body.len());
        assert!(body.pieces().iter().all(|piece| !piece.is_empty() && piece.len() < 1 << 20));
        bytes
    }

    #[test]
    fn pieces_are_below_a_mebibyte() {
        let value: Vec<u8> = (0..100_000u32).map(|at| (at % 251).to_le_bytes()[0]).collect();
        let mut output = Output::default();
        let mut expected = Vec::new();
        for length in [0, 1, 99_999, 100_000, 7, 65_536].into_iter().cycle().take(40) {
            output.put(&value[..length]).unwrap();
            expected.extend_from_slice(&value[..length]);
            let room = output.room(3).unwrap();
            assert_eq!(room, [0; 3]);
            room[0] = 9;
            output.give_back(2);
            expected.push(9);
            assert_eq!(output.len(), expected.len());
        }
        assert_eq!(joined(&output.finish(&[]).unwrap()), expected);
        assert_eq!(output.len(), 0);
    }

    #[test]
    fn a_head_stands_in_front() {
        for length in [0, 1, 5000, PIECE_BYTES - 10, PIECE_BYTES - 4, PIECE_BYTES, 3 * PIECE_BYTES] {
            for head in [&b""[..], b"a", b"abcdefghij"] {
                let mut output = Output::default();
                output.leave_head(10).unwrap();
                output.put(&alloc::vec![7; length]).unwrap();
                assert_eq!(output.len(), length);
                let body = joined(&output.finish(head).unwrap());
                assert_eq!(&body[..head.len()], head);
                assert_eq!(body[head.len()..], alloc::vec![7; length]);
            }
        }
        assert!(Output::default().finish(b"a").is_err());
    }

    #[test]
    fn what_comes_before_takes_the_room_in_front() {
        let body = |bytes: &[u8]| {
            let mut body = Body::default();
            body.push(Bytes::copy_from_slice(bytes));
            body
        };
        let roomy = Body::with_room(b"....values".to_vec(), 4);
        assert_eq!(joined(&roomy), b"values");
        // Shared memory is not written to.
        let shared = roomy.clone();
        let (mut one, mut two) = (body(b"ab"), body(b"c"));
        one.append(roomy);
        assert_eq!((joined(&one), one.pieces().len()), (b"abvalues".to_vec(), 2));
        assert_eq!(joined(&shared), b"values");
        drop(one);
        two.append(shared);
        assert_eq!((joined(&two), two.pieces().len()), (b"cvalues".to_vec(), 1));
        let mut twice = body(b"d");
        twice.append(body(b"e"));
        twice.append(two);
        assert_eq!((joined(&twice), twice.pieces().len()), (b"decvalues".to_vec(), 1));
        let mut beyond = body(b"fg");
        beyond.append(twice);
        assert_eq!((joined(&beyond), beyond.pieces().len()), (b"fgdecvalues".to_vec(), 2));
        let mut nothing = Body::default();
        nothing.append(beyond.clone());
        nothing.append(Body::default());
        assert_eq!(nothing, beyond);
    }
}
