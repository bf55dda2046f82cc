//! JSON lines: one object per line, whose fields are columns.
//!
//! Source: RFC 8259, and what is common in <https://jsonlines.org>: UTF-8, one value per line, empty lines skipped.

mod json;
mod plan;
mod rows;
mod sample;

use alloc::format;

use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_parquet::write::Fed;

pub(super) use plan::{Form, Planner};
pub(super) use rows::Rows;
pub(super) use sample::{Sample, Sampler};

use super::place::{Place, Start, at_line, shown};
use super::window::{Filled, PIECE_BYTES, Window};
use json::{Tokens, Wrong};

/// The price of looking for the ends of lines.
pub(crate) const SEARCH_PRICE: Price = Price { kib: 100, kilovalue: 60 << 10 };
/// Bytes that are looked at at once.
const SEARCH_SLICE_BYTES: usize = 64 << 10;

/// The lines of a text, each in one piece.
#[derive(Debug)]
struct Lines {
    window: Window,
    /// The text of the window, once it is one filled piece.
    text: Bytes,
    is_started: bool,
    /// Where the current line begins, how far its end was looked for, and where it ends, once found.
    start: usize,
    searched: usize,
    end: Option<usize>,
    place: Place,
    /// A line that begins with it is no row.
    comment: Option<u8>,
}

/// What [`Lines::next`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    Room,
    Yield,
    /// No line is left.
    End,
    /// A piece has ended before the line does.
    Piece,
}

impl Lines {
    fn new(row_bytes: u64, comment: Option<u8>) -> Lines {
        Lines {
            window: Window::new(PIECE_BYTES, row_bytes),
            text: Bytes::new(),
            is_started: false,
            start: 0,
            searched: 0,
            end: None,
            place: Place::default(),
            comment,
        }
    }

    /// Begins again, at another place of the text.
    fn restart(&mut self, start: Start) {
        self.window.restart(start.offset);
        self.text = Bytes::new();
        self.is_started = start.offset > 0;
        (self.start, self.searched, self.end) = (0, 0, None);
        self.place = Place { at: 0, lines: start.lines };
    }

    fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.window.feed(bytes)
    }

    /// Finds the next line that is no comment, and checks that it is UTF-8.
    ///
    /// # Errors
    ///
    /// Invalid UTF-8, and a line that is too long.
    fn next(&mut self, budget: &mut Budget<'_>) -> Result<Next> {
        loop {
            if let Some(end) = self.end {
                if !self.window.is_whole() && (!self.window.join(budget)? || budget.is_spent()) {
                    return Ok(Next::Yield);
                }
                if self.text.is_empty() {
                    self.text = self.window.bytes();
                }
                if !self.place.check(&self.text, end, self.window.offset(), budget)? {
                    return Ok(Next::Yield);
                }
                let first = self.text.get(self.start).copied();
                if self.start == end || self.comment.is_none() || first != self.comment {
                    return Ok(Next::Line);
                }
                self.end_line();
                if budget.is_spent() {
                    return Ok(Next::Yield);
                }
                continue;
            }
            match self.window.fill(budget)? {
                Filled::Ready => {}
                Filled::Room => return Ok(Next::Room),
                Filled::Yield => return Ok(Next::Yield),
            }
            let view = self.window.view();
            if !core::mem::replace(&mut self.is_started, true)
                && view.text.starts_with(&super::delimited::BYTE_ORDER_MARK)
            {
                self.start = super::delimited::BYTE_ORDER_MARK.len();
                (self.searched, self.place.at) = (self.start, self.start);
            }
            let until = view.end().min(self.searched + SEARCH_SLICE_BYTES);
            let part = &view.text[self.searched - view.base..until - view.base];
            let found = memchr::memchr(b'\n', part);
            budget.charge(SEARCH_PRICE, found.unwrap_or(part.len()), 1);
            self.searched += found.unwrap_or(part.len());
            if found.is_some() {
                self.end = Some(self.searched);
                if budget.is_spent() {
                    return Ok(Next::Yield);
                }
            } else if self.searched == view.end() {
                if !view.is_last {
                    return Ok(Next::Piece);
                }
                if self.start == view.end() {
                    return Ok(Next::End);
                }
                self.end = Some(view.end());
            } else if budget.is_spent() {
                return Ok(Next::Yield);
            }
        }
    }

    /// The line, once it is found: a part of the text.
    fn line(&self) -> core::ops::Range<usize> {
        self.start..self.end.unwrap_or(self.start)
    }

    /// Done with the line.
    fn end_line(&mut self) {
        let Some(end) = self.end.take() else { return };
        let is_more = end < self.text.len();
        self.start = end + usize::from(is_more);
        self.searched = self.start;
        self.place.at = self.start;
        self.place.lines += u64::from(is_more);
    }

    /// Done with a piece, after [`Next::Piece`].
    ///
    /// # Errors
    ///
    /// A line that is too long.
    fn next_piece(&mut self) -> Result<()> {
        let start = self.start;
        self.text = Bytes::new();
        self.window.advance(start).map_err(|error| self.numbered(error))?;
        if start > 0 {
            self.searched -= start;
            self.place.shift(start);
            self.start = 0;
        }
        Ok(())
    }

    /// An error in the current line.
    fn numbered(&self, error: Error) -> Error {
        at_line(self.place.line(), error)
    }

    /// Checks that the current line is an object, unless it is empty. Then its tokens begin.
    fn begin(&self, tokens: &mut Tokens) -> Result<()> {
        let line = self.line();
        tokens.begin(line.clone());
        let text = &self.text[line];
        // If it begins later, the tokens find out.
        match text[..text.len().min(64)].trim_ascii_start().first() {
            None | Some(b'{') => Ok(()),
            Some(first) => {
                let hint = if *first == b'[' { "; `jq -c '.[]'` turns an array into lines" } else { "" };
                Err(no_object(text, hint))
            }
        }
    }

    /// Why the line is no JSON.
    #[cold]
    fn refused(&self, wrong: &Wrong) -> Error {
        let hint = match wrong.is_end {
            true => "; each object must end on its line: `jq -c .` puts it there",
            false => "",
        };
        let character = wrong.at - self.start + 1;
        Error::corrupt(format!("{}, at its character {character}{hint}", wrong.what))
    }
}

#[cold]
fn no_object(text: &[u8], hint: &str) -> Error {
    Error::corrupt(format!(
        "{} is not an object; each line must be one{hint}",
        shown(text.trim_ascii_start())
    ))
}
