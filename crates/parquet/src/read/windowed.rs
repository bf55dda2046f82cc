//! A window for decompressors that refer far back.

use alloc::boxed::Box;

use marquetry_base::{Budget, Decompressor, Progress, Result, Status};

use crate::growing::{COPY_PRICE, Growing, SLICE_BYTES};

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
    ended: bool,
}

impl Windowed {
    /// Around `inner`.
    pub(super) fn new(inner: Box<dyn Decompressor>) -> Windowed {
        Windowed { inner, window: Growing::default(), given: 0, moved: 0, ended: false }
    }

    /// Bytes of the window when it is full.
    fn window_bytes(&self) -> usize {
        let history = self.inner.history_bytes();
        history + ROOM_BYTES_MIN.max(history / 2)
    }

    /// Makes room in the window, which is full. False when the budget was spent before.
    fn make_room(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let (history, most) = (self.inner.history_bytes(), self.window_bytes());
        let full = self.window.len();
        if full < most {
            if full == 0 {
                // All of it, once: what moves to larger memory is freed at once. It is used as bytes come.
                self.window.reserve(most)?;
            }
            return self.window.grow(full + 1, most, budget);
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
        (self.given, self.moved, self.ended) = (0, 0, false);
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
                room[..bytes].copy_from_slice(&there[..bytes]);
                budget.charge(COPY_PRICE, bytes, 0);
                room = &mut room[bytes..];
                self.given += bytes;
                produced += bytes;
                if budget.is_spent() {
                    break Status::Yield;
                }
                continue;
            }
            if self.window.len() == self.window.room() && !self.make_room(budget)? {
                break Status::Yield;
            }
            let (end, full) = (self.window.room(), self.window.len());
            let most = end.min(self.window_bytes());
            let progress =
                self.inner.step(&input[consumed..], last, self.window.with_room(most), full, budget)?;
            consumed += progress.consumed;
            self.window.add(progress.produced);
            match progress.status {
                Status::End => self.ended = true,
                Status::NeedInput if progress.produced == 0 => break Status::NeedInput,
                Status::Yield => break Status::Yield,
                Status::NeedInput | Status::NeedRoom => {}
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
