//! A window for decompressors that refer far back.

use alloc::boxed::Box;

use marquetry_base::{Budget, Decompressor, Progress, Release, Result, Status};
use marquetry_kernels::plain;

use crate::growing::{COPY_PRICE, Growing, SLICE_BYTES};
use crate::memory::Memory;

/// Bytes that the window has at least beside those that the data may refer to; or half as many as those. Whenever they are full, those
/// are moved.
const ROOM_BYTES_MIN: usize = 512 << 10;

/// A decompressor with a window of its own around one that wants to be shown what it produced. To copy out of a window costs less than
/// to copy much into each chunk; and where chunks are held, they hold nothing twice.
pub(super) struct Windowed {
    inner: Box<dyn Decompressor>,
    window: Growing,
    /// Bytes of the window that were copied out.
    given: usize,
    /// Bytes moved to the window's start, while they are.
    moved: usize,
    /// Bytes of the page that are to come.
    left: usize,
    /// Bytes that the host was asked for, and goes on with.
    granted: usize,
    /// The page's beginning is read, which tells how far back it may refer.
    begun: bool,
    ended: bool,
}

impl Windowed {
    /// Around `inner`.
    pub(super) fn new(inner: Box<dyn Decompressor>) -> Windowed {
        let window = Growing::default();
        Windowed { inner, window, given: 0, moved: 0, left: 0, granted: 0, begun: false, ended: false }
    }

    /// Bytes of the window when it is full.
    fn window_bytes(&self) -> usize {
        let history = self.inner.history_bytes();
        history + ROOM_BYTES_MIN.max(history / 2)
    }

    /// True when there is no room in the window; or when it is that of an earlier page, and too small.
    fn is_full(&self) -> bool {
        let most = self.window_bytes();
        match self.window.len() {
            0 => self.window.room() < most.min(self.left),
            bytes => bytes >= self.window.room().min(most),
        }
    }

    /// Bytes that making room in the window, which is full, allocates beyond those that it has.
    fn lacks(&self) -> usize {
        if self.window.len() > 0 {
            return 0;
        }
        self.window_bytes().min(self.left).saturating_sub(self.window.held())
    }

    /// Makes room in the window, which is full. False when the budget was spent before.
    fn make_room(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let (history, most) = (self.inner.history_bytes(), self.window_bytes());
        let full = self.window.len();
        if full < most {
            let most = most.min(full + self.left);
            if full == 0 {
                // All of it, once: what moves to larger memory is freed at once. It is used as bytes come.
                if self.window.held() < most && !self.window.release(budget) {
                    return Ok(false);
                }
                self.window.reserve(most)?;
            }
            // Its memory is there.
            return self.window.grow(full + 1, most, &mut Memory::unlimited(), budget);
        }
        while self.moved < history {
            let end = history.min(self.moved + SLICE_BYTES.min(ROOM_BYTES_MIN));
            let from = full - history;
            self.window.with_room(full).copy_within(from + self.moved..from + end, self.moved);
            budget.charge(COPY_PRICE, end - self.moved, 0);
            self.moved = end;
            if self.moved < history && budget.is_spent() {
                return Ok(false);
            }
        }
        self.window.keep(history);
        (self.given, self.moved) = (history, 0);
        Ok(true)
    }
}

impl Decompressor for Windowed {
    fn start(&mut self, compressed: usize, uncompressed: usize, _whole: bool) -> Result<()> {
        self.window.keep(0);
        (self.given, self.moved, self.left) = (0, 0, uncompressed);
        (self.granted, self.begun, self.ended) = (0, false, false);
        self.inner.start(compressed, uncompressed, false)
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let mut room = output.get_mut(history..).unwrap_or_default();
        let (mut consumed, mut produced) = (0, 0);
        let status = loop {
            let there = &self.window.bytes()[self.given..];
            if there.is_empty() {
                if self.ended {
                    break Status::End;
                }
            } else if room.is_empty() {
                break Status::NeedRoom;
            } else {
                let bytes = there.len().min(room.len()).min(SLICE_BYTES);
                plain::copy(&there[..bytes], room);
                budget.charge(COPY_PRICE, bytes, 0);
                room = &mut room[bytes..];
                self.given += bytes;
                produced += bytes;
                if budget.is_spent() {
                    break Status::Yield;
                }
                continue;
            }
            if self.begun && self.left > 0 && self.is_full() {
                let lacks = self.lacks();
                if lacks > self.granted {
                    self.granted = lacks;
                    break Status::NeedMemory(lacks);
                }
                if !self.make_room(budget)? {
                    break Status::Yield;
                }
            }
            let (end, full) = (self.window.room(), self.window.len());
            // The page's beginning is read without any room.
            let most = if self.begun { end.min(self.window_bytes()) } else { 0 };
            let progress =
                self.inner.step(&input[consumed..], last, self.window.with_room(most), full, budget)?;
            consumed += progress.consumed;
            self.window.add(progress.produced);
            self.left = self.left.saturating_sub(progress.produced);
            match progress.status {
                Status::End => self.ended = true,
                Status::NeedInput if progress.produced == 0 => break Status::NeedInput,
                status @ (Status::Yield | Status::NeedMemory(_)) => break status,
                Status::NeedInput | Status::NeedRoom => self.begun = true,
            }
        };
        Ok(Progress { consumed, produced, status })
    }

    fn history_bytes(&self) -> usize {
        0
    }

    fn held_bytes(&self) -> usize {
        self.inner.held_bytes() + self.window.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// Bytes as they are, behind one that says how far back they refer, in units of 64 KiB.
    struct Stored {
        history: Option<usize>,
        left: usize,
    }

    impl Decompressor for Stored {
        fn start(&mut self, _: usize, uncompressed: usize, _: bool) -> Result<()> {
            (self.history, self.left) = (None, uncompressed);
            Ok(())
        }

        fn step(
            &mut self,
            input: &[u8],
            _: bool,
            output: &mut [u8],
            history: usize,
            _: &mut Budget<'_>,
        ) -> Result<Progress> {
            let head = usize::from(self.history.is_none()).min(input.len());
            if head > 0 {
                self.history = Some(usize::from(input[0]) << 16);
            }
            let room = &mut output[history..];
            let bytes = room.len().min(input.len() - head);
            room[..bytes].copy_from_slice(&input[head..head + bytes]);
            self.left -= bytes;
            let status = match self.left {
                0 => Status::End,
                _ if bytes == room.len() => Status::NeedRoom,
                _ => Status::NeedInput,
            };
            Ok(Progress { consumed: head + bytes, produced: bytes, status })
        }

        fn history_bytes(&self) -> usize {
            self.history.unwrap_or(16 << 20)
        }

        fn held_bytes(&self) -> usize {
            0
        }
    }

    /// What a page becomes, and the most that was held.
    fn read(it: &mut Windowed, page: &[u8]) -> (Vec<u8>, usize) {
        it.start(page.len(), page.len() - 1, false).unwrap();
        let (mut at, mut all, mut held) = (0, Vec::new(), 0);
        let mut admitted = it.held_bytes();
        let mut room = vec![0; 100_000];
        loop {
            let end = page.len().min(at + 70_000);
            let progress =
                it.step(&page[at..end], end == page.len(), &mut room, 0, &mut Budget::new(100_000)).unwrap();
            at += progress.consumed;
            all.extend_from_slice(&room[..progress.produced]);
            held = held.max(it.held_bytes());
            if let Status::NeedMemory(bytes) = progress.status {
                admitted += bytes;
            }
            assert!(it.held_bytes() <= admitted, "{} bytes of {admitted}", it.held_bytes());
            if progress.status == Status::End {
                return (all, held);
            }
        }
    }

    #[test]
    fn a_window_is_as_large_as_the_page_says_and_no_larger_than_the_page() {
        let mut it = Windowed::new(Box::new(Stored { history: None, left: 0 }));
        for (history, bytes, most) in [
            (255, 100_000, 100_000),
            (1, 3 << 20, (64 << 10) + ROOM_BYTES_MIN),
            (32, 5 << 20, 3 << 20),
            (0, 700_000, 3 << 20),
            (255, 4 << 20, 4 << 20),
        ] {
            let mut page: Vec<u8> = (0..=250).cycle().take(bytes + 1).collect();
            page[0] = history;
            let (all, held) = read(&mut it, &page);
            assert!(all == page[1..], "{history} of {bytes}");
            assert!(held <= most, "{history} of {bytes}: {held}");
        }
    }
}
