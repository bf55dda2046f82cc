//! Finds the fields of delimited text: in blocks of 64 bytes, and where quotes are not where they belong, eight bytes at a time.
//!
//! Source: RFC 4180, "Common Format and MIME Type for CSV Files"; for tab-separated values, whose fields have no
//! quotes, IANA's `text/tab-separated-values`. Lines end with LF or CRLF. A quote that is not at its field's start is
//! text.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Detail, Error, Price};
use marquetry_kernels::marks::{BLOCK_BYTES, ONES, zeros};

use super::super::quotes::{Before, Blocks};
use super::super::window::{View, too_long};

/// The price of splitting: per byte, and per field that is found.
pub(crate) const SCAN_PRICE: Price = Price { kib: 1 << 10, kilovalue: 2 << 10 };
/// What a comment costs besides its bytes, in fields.
const COMMENT_FIELDS: usize = 8;
/// Bytes that are scanned in one slice.
pub(crate) const SCAN_SLICE_BYTES: usize = 16 << 10;
/// Maximum fields of a row: one with more probably lacks its line ends.
pub(crate) const FIELDS_MAX: usize = 100_000;
/// Rows, fields and bytes after which a strip ends: positions of fields take less than 1 MiB.
const STRIP_ROWS: usize = 1024;
const STRIP_FIELDS: usize = 128 << 10;
const STRIP_BYTES: usize = 64 << 10;

/// What separates fields, and what encloses some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    /// A line that begins with it is no row, unless it begins inside quotes.
    pub(crate) comment: Option<u8>,
    /// Rows may have fewer fields than earlier ones: the others are missing.
    pub(crate) may_be_short: bool,
    /// Spaces and tabs around fields without quotes are no part of them.
    pub(crate) is_trimmed: bool,
    /// An empty line is no row, even of one field.
    pub(crate) skips_empty: bool,
}

/// Rows of a text, all of as many fields.
#[derive(Debug, Default)]
pub(crate) struct Strip {
    /// Fields of a row; 0 before the first.
    columns: usize,
    /// Where each row begins.
    starts: Vec<u32>,
    /// Where each field ends: at a delimiter, a line end, or the text's end. Those of an incomplete row come last.
    ends: Vec<u32>,
    /// A quoted field has doubled quotes.
    pub(crate) has_doubled: bool,
    /// The line that the first row begins in, counted from 1, once known.
    pub(crate) line: u64,
}

/// An error in a text, and its position.
#[derive(Debug, Clone)]
pub(crate) struct Wrong {
    /// The start of the row.
    pub(crate) at: usize,
    pub(crate) error: Error,
}

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    /// The text inside the quotes, if any.
    pub(crate) text: &'a [u8],
    /// Where that begins in the complete text.
    pub(crate) start: usize,
    pub(crate) is_quoted: bool,
    /// There may be doubled quotes in it.
    pub(crate) has_doubled: bool,
    /// The row has fewer fields.
    pub(crate) is_missing: bool,
}

/// Splits the text of a window.
///
/// Finds the fields. Empty lines are skipped, unless rows have one field, which is then empty.
#[derive(Debug)]
pub(crate) struct Scanner {
    dialect: Dialect,
    row_bytes: u64,
    /// Fields of a row; 0 before the first.
    columns: usize,
    /// The next byte, where the row begins, and where the field does. Positions are in the window.
    at: usize,
    row: usize,
    field: usize,
    state: State,
    /// Fields of this row beyond the maximum, whose positions are not kept.
    dropped: usize,
    /// Comments that were found, until they are [charged](Scanner::charge).
    comments: usize,
    /// Without comments.
    blocks: Option<Box<Blocks>>,
}

/// What the next byte is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No quotes.
    Plain,
    /// A quoted field.
    Quoted,
    /// It follows a quote in a quoted field.
    Closed,
    /// It follows that, and a carriage return.
    Returned,
    /// A comment.
    Comment,
}

/// What [`Scanner::scan`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// The strip has its rows.
    Full,
    /// The end of the slice; also of the piece, if [`Scanner::at`] is its end.
    Slice,
    /// The text has ended.
    End,
}

impl Scanner {
    /// A scanner that begins at `at`, for rows of `columns` fields; for 0, of as many as the first row has.
    pub(crate) fn new(dialect: Dialect, columns: usize, at: usize, row_bytes: u64) -> Scanner {
        let state = State::Plain;
        let Dialect { delimiter, quote, comment, .. } = dialect;
        let blocks = comment.is_none().then(|| Box::new(Blocks::new(delimiter, quote)));
        Scanner {
            dialect,
            row_bytes,
            columns,
            at,
            row: at,
            field: at,
            state,
            dropped: 0,
            comments: 0,
            blocks,
        }
    }

    /// Fields of a row; 0 before the first.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Maximum bytes of a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// The next position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Charges what was scanned: the bytes from `from` on, and so many fields.
    pub(crate) fn charge(&mut self, from: usize, fields: usize, budget: &mut Budget<'_>) {
        let comments = core::mem::take(&mut self.comments);
        budget.charge(SCAN_PRICE, self.at - from, fields + COMMENT_FIELDS * comments);
    }

    /// Where the incomplete row begins; in a comment, a place before which nothing is needed any more.
    pub(crate) fn row(&self) -> usize {
        self.row
    }

    /// Whether an empty line is a row, of an empty field.
    fn has_empty_rows(&self) -> bool {
        self.columns == 1 && !self.dialect.skips_empty
    }

    /// The window begins `by` bytes later: nothing before that is needed any more.
    pub(crate) fn shift(&mut self, by: usize) {
        self.at -= by;
        self.row -= by;
        self.field -= by;
    }

    /// Scans a slice of the last piece of a window, and adds the rows that end in it to a strip, at most `rows_max`.
    ///
    /// # Errors
    ///
    /// A row whose number of fields differs from earlier rows; a quote that is not closed, or not at a field's end; a
    /// row that is too long.
    pub(crate) fn scan(
        &mut self,
        view: View<'_>,
        rows_max: usize,
        strip: &mut Strip,
    ) -> Result<Scanned, Wrong> {
        let end = view.end();
        let until = end.min(self.at + SCAN_SLICE_BYTES);
        let rows_max = rows_max.min(STRIP_ROWS);
        while self.at < until {
            let mut is_full = false;
            let mut by_bytes = until;
            if let Some(mut blocks) = self.blocks.take() {
                let found = self.find(&mut blocks, view, until, rows_max, strip);
                by_bytes = until.min(self.at.saturating_add(blocks.left_out_bytes()));
                self.blocks = Some(blocks);
                is_full = found?;
            }
            if is_full || self.some(view, by_bytes, rows_max, strip)? {
                return Ok(Scanned::Full);
            }
        }
        let fields = strip.ends.len() - self.first(strip);
        if fields > FIELDS_MAX {
            self.dropped += fields - FIELDS_MAX;
            strip.ends.truncate(strip.ends.len() - (fields - FIELDS_MAX));
        }
        if until < end || !view.is_last {
            return Ok(Scanned::Slice);
        }
        if self.state == State::Quoted {
            return Err(self.wrong("a quote that is not closed"));
        }
        if self.state == State::Comment {
            (self.row, self.field) = (end, end);
        }
        if self.row < end {
            let is_return = self.row + 1 == end && view.byte(self.row) == Some(b'\r');
            if self.has_empty_rows() || !is_return {
                self.end_row(strip, end)?;
            }
            (self.row, self.field) = (end, end);
        }
        Ok(Scanned::End)
    }

    /// Scans byte by byte up to `until`. True if the strip is full.
    fn some(
        &mut self,
        view: View<'_>,
        until: usize,
        rows_max: usize,
        strip: &mut Strip,
    ) -> Result<bool, Wrong> {
        while self.at < until {
            match self.state {
                State::Plain => {
                    if self.plain(view, until, rows_max, strip)? {
                        return Ok(true);
                    }
                }
                State::Quoted => {
                    let Some(quote) = self.dialect.quote else { break };
                    let text = &view.text[self.at - view.base..until - view.base];
                    // Doubled quotes that follow each other: to search for each takes five nanoseconds.
                    let doubled = text.chunks_exact(2).take_while(|pair| **pair == [quote, quote]).count();
                    if doubled > 0 {
                        strip.has_doubled = true;
                        self.at += 2 * doubled;
                        continue;
                    }
                    match memchr::memchr(quote, text) {
                        Some(length) => (self.at, self.state) = (self.at + length + 1, State::Closed),
                        None => self.at = until,
                    }
                }
                State::Closed | State::Returned => self.closed(view, strip)?,
                State::Comment => self.comment(view, until),
            }
        }
        Ok(false)
    }

    /// Scans whole blocks, up to one with a quote that is not where it belongs. True if the strip is full.
    fn find(
        &mut self,
        blocks: &mut Blocks,
        view: View<'_>,
        until: usize,
        rows_max: usize,
        strip: &mut Strip,
    ) -> Result<bool, Wrong> {
        let (text, base) = (view.text, view.base);
        while self.at < until {
            let mut before = Before {
                is_quoted: self.state == State::Quoted,
                is_closed: self.state == State::Closed,
                is_returned: self.state == State::Returned,
                is_start: self.field == self.at,
            };
            let (found, is_stopped) = blocks.next(&text[self.at - base..until - base], &mut before);
            for ends in found {
                strip.has_doubled |= ends.has_doubled;
                let mut all = ends.all;
                while all != 0 {
                    let bit = all & all.wrapping_neg();
                    let place = self.at + all.trailing_zeros() as usize;
                    all ^= bit;
                    if ends.lines & bit == 0 {
                        strip.ends.push(low(place));
                        self.field = place + 1;
                    } else if self.line_end(view, place, rows_max, strip)? {
                        return Ok(true);
                    }
                }
                self.at += BLOCK_BYTES;
            }
            self.state = match before {
                _ if found.is_empty() => return Ok(false),
                Before { is_quoted: true, .. } => State::Quoted,
                Before { is_closed: true, .. } => State::Closed,
                Before { is_returned: true, .. } => State::Returned,
                _ => State::Plain,
            };
            if is_stopped {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Ends a row, if one ends there. True if the strip is full.
    fn line_end(
        &mut self,
        view: View<'_>,
        place: usize,
        rows_max: usize,
        strip: &mut Strip,
    ) -> Result<bool, Wrong> {
        let is_blank = self.field == self.row
            && (place == self.row || place == self.row + 1 && view.byte(self.row) == Some(b'\r'));
        if !is_blank || self.has_empty_rows() {
            self.end_row(strip, place)?;
        }
        (self.row, self.field) = (place + 1, place + 1);
        let Some(start) = strip.starts.first() else { return Ok(false) };
        let is_full = strip.starts.len() >= rows_max
            || strip.ends.len() >= STRIP_FIELDS
            || place - usize_of_u32(*start) >= STRIP_BYTES;
        if is_full {
            (self.at, self.state) = (self.row, State::Plain);
        }
        Ok(is_full)
    }

    /// Scans outside of quotes. True if the strip is full.
    fn plain(
        &mut self,
        view: View<'_>,
        until: usize,
        rows_max: usize,
        strip: &mut Strip,
    ) -> Result<bool, Wrong> {
        let (text, base) = (view.text, view.base);
        let Dialect { delimiter, quote, comment, .. } = self.dialect;
        if self.at == self.row && comment.is_some() && view.byte(self.at) == comment {
            self.state = State::Comment;
            return Ok(false);
        }
        let pattern = |byte: u8| u64::from(byte) * ONES;
        let (delimiters, line_ends) = (pattern(delimiter), pattern(b'\n'));
        let quotes = pattern(quote.unwrap_or(b'\n'));
        let (mut block, until) = (self.at - base, until - base);
        while block < until {
            let word = match text.get(block..block + 8).and_then(|bytes| bytes.try_into().ok()) {
                Some(bytes) => u64::from_le_bytes(bytes),
                None => {
                    let mut last = [0; 8];
                    last[..text.len() - block].copy_from_slice(&text[block..]);
                    u64::from_le_bytes(last)
                }
            };
            let mut found = zeros(word ^ delimiters) | zeros(word ^ line_ends);
            if quote.is_some() {
                found |= zeros(word ^ quotes);
            }
            while found != 0 {
                let at = block + (found.trailing_zeros() / 8) as usize;
                found &= found - 1;
                let Some(&byte) = text.get(at) else { break };
                let place = base + at;
                if byte == delimiter {
                    strip.ends.push(low(place));
                    self.field = place + 1;
                } else if byte == b'\n' {
                    if self.line_end(view, place, rows_max, strip)? {
                        return Ok(true);
                    }
                    if comment.is_some() && text.get(at + 1).copied() == comment {
                        (self.at, self.state) = (self.row, State::Comment);
                        return Ok(false);
                    }
                } else if place == self.field {
                    (self.at, self.state) = (place + 1, State::Quoted);
                    return Ok(false);
                }
            }
            block += 8;
        }
        self.at = base + block.min(text.len());
        Ok(false)
    }

    /// Scans a comment. It takes no memory: what was scanned of it is not needed any more.
    fn comment(&mut self, view: View<'_>, until: usize) {
        match memchr::memchr(b'\n', &view.text[self.at - view.base..until - view.base]) {
            Some(length) => {
                self.comments += 1;
                self.at += length + 1;
                self.state = State::Plain;
                self.row = self.at;
            }
            None => {
                self.at = until;
                // The text is checked up to there: to no place inside a character, which has at most four bytes.
                let mut last = (self.row.max(until.saturating_sub(4))..until).rev();
                let first = last.find(|at| !matches!(view.byte(*at), Some(0x80..=0xbf)));
                self.row = first.filter(|at| matches!(view.byte(*at), Some(0xc0..))).unwrap_or(until);
            }
        }
        self.field = self.row;
    }

    /// Scans what follows a quote in a quoted field.
    fn closed(&mut self, view: View<'_>, strip: &mut Strip) -> Result<(), Wrong> {
        let byte = view.byte(self.at);
        self.state = match (self.state, byte) {
            (State::Closed, Some(byte)) if Some(byte) == self.dialect.quote => {
                strip.has_doubled = true;
                self.at += 1;
                State::Quoted
            }
            (State::Closed, Some(byte)) if byte == self.dialect.delimiter => State::Plain,
            (_, Some(b'\n')) => State::Plain,
            (State::Closed, Some(b'\r')) => {
                self.at += 1;
                State::Returned
            }
            _ => {
                let what = "text after a closing quote (quotes inside of quotes are doubled)";
                return Err(self.wrong(what));
            }
        };
        Ok(())
    }

    /// Where the ends of the row's fields begin.
    fn first(&self, strip: &Strip) -> usize {
        strip.starts.len() * self.columns
    }

    /// Ends the row; the ends of its fields are known, except for the last.
    fn end_row(&mut self, strip: &mut Strip, end: usize) -> Result<(), Wrong> {
        let first = self.first(strip);
        strip.ends.push(low(end));
        let fields = strip.ends.len() - first + core::mem::take(&mut self.dropped);
        if fields != self.columns {
            self.odd_row(strip, first, end, fields)?;
        }
        if u64_of(end - self.row) > self.row_bytes {
            return Err(Wrong { at: self.row, error: too_long(self.row_bytes) });
        }
        strip.columns = self.columns;
        strip.starts.push(low(self.row));
        Ok(())
    }

    /// Handles a row with a different number of fields than earlier rows, or the first row.
    #[cold]
    fn odd_row(&mut self, strip: &mut Strip, first: usize, end: usize, fields: usize) -> Result<(), Wrong> {
        if fields > FIELDS_MAX {
            let what = format!("a row of {fields} fields, more than {FIELDS_MAX}");
            return Err(Wrong { at: self.row, error: Error::unsupported(what) });
        }
        if self.columns == 0 {
            self.columns = fields;
        } else if fields < self.columns && self.dialect.may_be_short {
            strip.ends.resize(first + self.columns, low(end));
        } else {
            let (one, columns) = (if fields == 1 { "field" } else { "fields" }, self.columns);
            let what = format!("{fields} {one}, where the rows before have {columns}");
            let options: &[_] =
                if self.dialect.may_be_short { &["schema"] } else { &["short_rows", "schema"] };
            let error = Error::corrupt(what).with(Detail::AdmittedBy(options));
            return Err(Wrong { at: self.row, error });
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self, what: &'static str) -> Wrong {
        Wrong { at: self.row, error: Error::corrupt(what) }
    }
}

impl Strip {
    /// Rows.
    pub(crate) fn rows(&self) -> usize {
        self.starts.len()
    }

    /// The number of fields found, including those of an incomplete row.
    pub(crate) fn fields(&self) -> usize {
        self.ends.len()
    }

    /// Where a row begins.
    pub(crate) fn start(&self, row: usize) -> usize {
        usize_of_u32(self.starts[row])
    }

    /// No rows any more.
    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.ends.clear();
        self.has_doubled = false;
    }

    /// Takes over an incomplete row from another strip; the row begins where the window will.
    pub(crate) fn continue_row(&mut self, other: &Strip, shift: usize) {
        self.clear();
        self.has_doubled = other.has_doubled;
        let first = other.starts.len() * other.columns;
        self.ends.extend(other.ends.iter().skip(first).map(|end| end - low(shift)));
    }

    /// The same in place.
    pub(crate) fn keep_row(&mut self, shift: usize) {
        self.ends.drain(..self.starts.len() * self.columns);
        self.starts.clear();
        self.ends.iter_mut().for_each(|end| *end -= low(shift));
    }

    /// A field of a row.
    #[inline]
    pub(crate) fn field<'a>(
        &self,
        dialect: &Dialect,
        text: &'a [u8],
        row: usize,
        column: usize,
    ) -> Field<'a> {
        let at = row * self.columns + column;
        let start = match column {
            0 => usize_of_u32(self.starts[row]),
            _ => usize_of_u32(self.ends[at - 1]) + 1,
        };
        let end = usize_of_u32(self.ends[at]);
        // Missing fields end where the row does, like the last one that is present.
        let Some(mut field) = text.get(start..end) else {
            return Field { text: &[], start: end, is_quoted: false, has_doubled: false, is_missing: true };
        };
        let is_last =
            column + 1 == self.columns || dialect.may_be_short && self.ends[at + 1] == self.ends[at];
        if is_last && let [before @ .., b'\r'] = field {
            field = before;
        }
        match (field, dialect.quote) {
            ([first, inner @ .., _], Some(quote)) if *first == quote => Field {
                text: inner,
                start: start + 1,
                is_quoted: true,
                has_doubled: self.has_doubled,
                is_missing: false,
            },
            _ if dialect.is_trimmed => {
                let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
                let before = field.iter().take_while(|byte| is_space(byte)).count();
                let after = field[before..].iter().rev().take_while(|byte| is_space(byte)).count();
                let bare = &field[before..field.len() - after];
                Field {
                    text: bare,
                    start: start + before,
                    is_quoted: false,
                    has_doubled: false,
                    is_missing: false,
                }
            }
            _ => Field { text: field, start, is_quoted: false, has_doubled: false, is_missing: false },
        }
    }
}

/// Appends part of a quoted field, with doubled quotes as one. `is_second`: the previous part ended with the first of
/// two.
pub(crate) fn unquote(text: &[u8], quote: u8, is_second: &mut bool, out: &mut Vec<u8>) {
    /// Bytes that are copied at once, if there is no quote in them. To search for each quote, and to copy what is before it, took ten
    /// nanoseconds a byte where every byte is one.
    const AT_ONCE: usize = 32;
    out.reserve(text.len());
    for part in text.chunks(AT_ONCE) {
        if !*is_second && memchr::memchr(quote, part).is_none() {
            out.extend_from_slice(part);
            continue;
        }
        // Each byte is put where the next one goes; the second of two quotes stays out.
        let (mut kept, mut count) = ([0; AT_ONCE], 0);
        for &byte in part {
            kept[count] = byte;
            let is_kept = !*is_second;
            count += usize::from(is_kept);
            *is_second = is_kept && byte == quote;
        }
        out.extend_from_slice(&kept[..count]);
    }
}

/// A position in a window, which is shorter than 4 GiB: see `ROW_BYTES_MAX`.
#[inline]
fn low(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use marquetry_base::Bytes;

    use super::super::super::window::{Filled, Window};
    use super::*;

    const CSV: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
        comment: None,
        may_be_short: false,
        is_trimmed: false,
        skips_empty: false,
    };
    const TSV: Dialect = Dialect { delimiter: b'\t', quote: None, ..CSV };

    /// All fields, each row as one string with its fields separated by `|`; or the error. The window has pieces of
    /// `piece` bytes.
    fn read(dialect: Dialect, text: &str, piece: usize) -> Result<Vec<String>, String> {
        let (mut window, mut rows) = (Window::new(piece, 1 << 20), Vec::new());
        let mut scanner = Scanner::new(dialect, 0, 0, 1 << 20);
        let mut strip = Strip::default();
        assert!(window.feed(Bytes::copy_from_slice(text.as_bytes())).is_ok());
        window.finish();
        loop {
            while window.fill(&mut Budget::unlimited()).unwrap() != Filled::Ready {}
            let scanned = scanner.scan(window.view(), 3, &mut strip);
            let scanned = scanned.map_err(|wrong| wrong.error.message().to_string())?;
            if strip.rows() > 0 {
                assert!(window.join(&mut Budget::unlimited()).unwrap());
                let bytes = window.bytes();
                for row in 0..strip.rows() {
                    let field = |column| {
                        let field = strip.field(&dialect, &bytes, row, column);
                        let mut text = field.text.to_vec();
                        if let Some(quote) = dialect.quote.filter(|_| field.is_quoted) {
                            text.clear();
                            unquote(field.text, quote, &mut false, &mut text);
                        }
                        let text = String::from_utf8(text).unwrap();
                        match (field.is_quoted, field.is_missing) {
                            (true, _) => format!("<{text}>"),
                            (_, true) => "-".to_string(),
                            _ => text,
                        }
                    };
                    rows.push((0..scanner.columns()).map(field).collect::<Vec<_>>().join("|"));
                }
                strip.keep_row(0);
            }
            let view = window.view();
            if scanned == Scanned::End {
                assert_eq!(scanner.row(), view.end());
                return Ok(rows);
            }
            if scanner.at() >= view.end() && !view.is_last {
                let row = scanner.row();
                window.advance(row).unwrap();
                if row > 0 {
                    scanner.shift(row);
                    strip.keep_row(row);
                }
            }
        }
    }

    #[track_caller]
    fn check(dialect: Dialect, text: &str, expected: &[&str]) {
        for piece in [1, 2, 3, 7, 8, 9, 1000] {
            assert_eq!(read(dialect, text, piece).unwrap(), expected, "{text:?} by {piece}");
        }
    }

    #[test]
    fn fields_and_lines() {
        check(CSV, "a,b,c\n1,,3\n", &["a|b|c", "1||3"]);
        check(CSV, "a,b\r\n1,2\r\n", &["a|b", "1|2"]);
        check(CSV, "a,b\n1,", &["a|b", "1|"]);
        check(CSV, "", &[]);
        check(CSV, "\n\na,b\n\r\n1,2\n\n", &["a|b", "1|2"]);
        check(CSV, "a\n\n1", &["a", "", "1"]);
        check(TSV, "a\t\"b\nc\td\"\n", &["a|\"b", "c|d\""]);
        check(TSV, &"x\t0123456789\ty\n".repeat(20), &["x|0123456789|y"; 20]);
    }

    #[test]
    fn quotes() {
        check(CSV, "\"a\",\"b,c\"\n\"d\ne\",\"\"\r\n", &["<a>|<b,c>", "<d\ne>|<>"]);
        check(CSV, "\"a \"\"b\"\"\",\"\"\"\"\n", &["<a \"b\">|<\">"]);
        check(CSV, "a\"b,c\"\"d\n", &["a\"b|c\"\"d"]);
        check(CSV, "x,\"a\"", &["x|<a>"]);
        check(CSV, "\"0123456789,\n0123456789\",1\n\"\n\n\",2", &["<0123456789,\n0123456789>|1", "<\n\n>|2"]);
        for (text, what) in [
            ("a,\"b\n", "a quote that is not closed"),
            ("\"a\"b,c\n", "text after a closing quote"),
            ("\"a\"\rb,c\n", "text after a closing quote"),
            ("a,b\n1\n", "1 field, where the rows before have 2"),
            ("a,b\n1,2,3\n", "3 fields, where the rows before have 2"),
        ] {
            for piece in [1, 3, 8, 1000] {
                let wrong = read(CSV, text, piece).unwrap_err();
                assert!(wrong.contains(what), "{text:?} by {piece}: {wrong}");
            }
        }
    }

    #[test]
    fn short_records() {
        let (csv, tsv) = (Dialect { may_be_short: true, ..CSV }, Dialect { may_be_short: true, ..TSV });
        check(csv, "a,b,c\n1,2\n3\n4,5,6\n", &["a|b|c", "1|2|-", "3|-|-", "4|5|6"]);
        check(csv, "a,b,c\r\n1,\r\n\"3\"\r\n\r\n4", &["a|b|c", "1||-", "<3>|-|-", "4|-|-"]);
        check(tsv, "a\tb\tc\n\t\n\r\nd", &["a|b|c", "||-", "d|-|-"]);
        let wrong = read(csv, "a,b\n1\n1,2,3\n", 100).unwrap_err();
        assert_eq!(wrong, "3 fields, where the rows before have 2");
    }

    #[test]
    fn comments() {
        let csv = Dialect { comment: Some(b'#'), ..CSV };
        check(csv, "#x\n#\n\na,b\r\n#\"\n1,#2\n#3,é\n #,4\n#", &["a|b", "1|#2", " #|4"]);
        check(csv, "a,\"x\n#y\n\"\n#\"\n\"#\",\"\"\"\n#\"\n", &["a|<x\n#y\n>", "<#>|<\"\n#>"]);
        check(csv, "a\n#\n\n1\n#", &["a", "", "1"]);
        check(csv, "#é\n", &[]);
        check(Dialect { delimiter: b'#', comment: Some(b','), ..CSV }, "a#\"\n,b\"\n,c\n", &["a|<\n,b>"]);
        check(Dialect { comment: Some(b'#'), ..TSV }, "a\t\"\n#b\t\n\tc\n", &["a|\"", "|c"]);
        check(csv, &format!("a,b\n#{}\n1,2\n", "é".repeat(20_000)), &["a|b", "1|2"]);
        check(csv, &format!("{}a,b\n", "#\n".repeat(10_000)), &["a|b"]);
    }

    /// The same as reading character by character, for texts of the characters that matter.
    #[test]
    fn any_text_by_any_piece() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..3000 {
            // Anything, or mostly fields that are in order: those are looked at in whole blocks.
            let parts: &[&str] = match random(3) {
                0 => &["a", ",", "\n", "\"", "\r\n", "bc", "\"\""],
                1 => &["a,", "\"b\",", "\"\",", "\"c\"\"\n\"\n", "\"\"\"\"\r\n", "1,2,", "\"d,\"\n"],
                _ => {
                    &["a,", "\"b\",", "a\"b,", "\"\"\"\"\r\n", "1,2,", "\"d,\"\n", "1,2,3,4,5,6,7,8,9,", "\""]
                }
            };
            let text: String = (0..random(160))
                .map(|_| parts[usize::try_from(random(u64::try_from(parts.len()).unwrap())).unwrap()])
                .collect();
            let whole = read(CSV, &text, 1000);
            for piece in [1, 5, 8, 150] {
                assert_eq!(read(CSV, &text, piece), whole, "{text:?} by {piece}");
            }
        }
    }
}
