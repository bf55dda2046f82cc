//! Lines of a text, counted, and its bytes, checked.

use alloc::format;
use alloc::string::String;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Detail, Error, Price, Result};
use marquetry_kernels::utf8;

/// The price of counting lines and checking UTF-8.
pub(super) const CHECK_PRICE: Price = Price::per_kib(450);
/// Bytes that are checked at once.
const CHECK_SLICE_BYTES: usize = 64 << 10;
/// Characters of a value that an error shows.
const SHOWN_CHARS_MAX: usize = 60;

/// A place in a text between rows, and what is known of the text before it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    /// Bytes before it.
    pub(super) offset: u64,
    /// Line ends before it.
    pub(super) lines: u64,
    /// The header is before it, if there is one.
    pub(super) is_after_header: bool,
}

/// A position in a window up to which lines are counted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) at: usize,
    /// Line ends before it, in the complete text.
    pub(super) lines: u64,
}

impl Place {
    /// The line that begins here, counted from 1.
    pub(super) fn line(self) -> u64 {
        self.lines + 1
    }

    /// Counts lines up to `until`. False if the budget is spent first.
    pub(super) fn count(&mut self, text: &[u8], until: usize, budget: &mut Budget<'_>) -> bool {
        while self.at < until {
            let next = until.min(self.at + CHECK_SLICE_BYTES);
            self.lines += line_ends(&text[self.at..next]);
            budget.charge(CHECK_PRICE, next - self.at, 0);
            self.at = next;
            if budget.is_spent() && next < until {
                return false;
            }
        }
        true
    }

    /// Counts lines up to `until`, and checks that the text is UTF-8; the window begins at `offset` in the text. False
    /// if the budget is spent first.
    ///
    /// # Errors
    ///
    /// `Corrupt` for bytes that are not UTF-8.
    pub(super) fn check(
        &mut self,
        text: &[u8],
        until: usize,
        offset: u64,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        while self.at < until {
            let mut next = until.min(self.at + CHECK_SLICE_BYTES);
            // A character has four bytes at most.
            for _ in 0..3 {
                if next < until && !utf8::is_boundary(text[next]) && next > self.at + 1 {
                    next -= 1;
                }
            }
            let part = &text[self.at..next];
            if let Some(wrong) = utf8::error_at(part) {
                let line = self.line() + line_ends(&part[..wrong]);
                let offset = offset + u64_of(self.at + wrong);
                return Err(at_line(line, Error::corrupt(NOT_UTF8).with(Detail::NotUtf8)).at_offset(offset));
            }
            self.lines += line_ends(part);
            budget.charge(CHECK_PRICE, part.len(), 0);
            self.at = next;
            if budget.is_spent() && next < until {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The window begins `by` bytes later.
    pub(super) fn shift(&mut self, by: usize) {
        self.at -= by;
    }
}

/// No encoding is guessed: the same bytes are valid text in several.
const NOT_UTF8: &str = "bytes that are not UTF-8";

/// Line feeds.
pub(super) fn line_ends(text: &[u8]) -> u64 {
    u64_of(memchr::memchr_iter(b'\n', text).count())
}

/// Adds the line that an error is in, counted from 1.
pub(super) fn at_line(line: u64, error: Error) -> Error {
    let numbered = Error::new(error.kind(), format!("line {line}: {}", error.message()));
    let place = error.place().clone();
    let numbered = numbered.at(|at| *at = place);
    match error.detail() {
        Some(detail) => numbered.with(detail),
        None => numbered,
    }
}

/// A value as an error shows it.
pub(super) fn shown(text: &[u8]) -> String {
    // No character has more than four bytes.
    let cut = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN_CHARS_MAX + 4)]);
    let short: String = cut.chars().take(SHOWN_CHARS_MAX).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}
