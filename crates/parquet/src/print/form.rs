//! The forms of a line: what stands between its fields, and how values are quoted and escaped.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use marquetry_base::{Error, print};

use super::InvalidUtf8;
use super::piece::{self, Piece};
use super::value::{Shown, value};
use crate::batch::Value;
use crate::schema::Meaning;

/// Why a value cannot be printed.
#[derive(Debug, PartialEq)]
pub(super) enum Unprintable {
    /// Text that is not UTF-8, in the column itself or in a node below it.
    NotText(Option<usize>),
    /// An error of the engine. Boxed, because values are many and errors few.
    Engine(Box<Error>),
}

impl From<Error> for Unprintable {
    fn from(error: Error) -> Unprintable {
        Unprintable::Engine(Box::new(error))
    }
}

/// A form of lines.
pub(super) trait Form: Debug {
    const LINE_END: &'static [u8];
    /// The line of a row without columns.
    const EMPTY_LINE: &'static [u8];
    const NULL: &'static [u8];
    /// Whether dates, UUIDs and other words are in quotes, and every text.
    const IS_QUOTED: bool;
    /// ASCII characters besides the control characters that a text cannot have as they are.
    const SPECIAL: [u8; 3];

    /// What stands before the value of a column.
    fn before(column: usize, name: &str) -> Piece;

    /// Appends text, whatever is in it. `None` for what the form [refuses](Form::refusal).
    fn text(out: &mut Vec<u8>, text: &str) -> Option<()>;

    /// Why text is refused.
    fn refusal(_text: &str) -> Unprintable {
        Unprintable::NotText(None)
    }

    /// Mends the text of a geometry, which was appended at `start`.
    fn wkt(out: &mut Vec<u8>, start: usize);

    /// Appends a value of a nested column, which is printed as JSON.
    fn nested(
        out: &mut Vec<u8>,
        print: impl FnOnce(&mut Vec<u8>) -> Result<(), Unprintable>,
    ) -> Result<(), Unprintable> {
        print(out)
    }

    /// Appends a value. `None` if its text is invalid UTF-8 and that is an error, or refused.
    #[inline]
    fn value(out: &mut Vec<u8>, meaning: Meaning, of: Value<'_>, invalid_utf8: InvalidUtf8) -> Option<()> {
        let start = out.len();
        match value(out, meaning, of) {
            Shown::Boolean | Shown::Number => {}
            Shown::Word if Self::IS_QUOTED => {
                out.insert(start, b'"');
                out.push(b'"');
            }
            Shown::Word => {}
            Shown::Wkt => Self::wkt(out, start),
            Shown::Text(text) => return Self::text(out, text),
            Shown::NotText(bytes) => return Self::text(out, &invalid_utf8.text(bytes)?),
        }
        Some(())
    }

    /// Whether text is ASCII that is written as it is.
    #[inline]
    fn is_plain(text: &[u8]) -> bool {
        let [a, b, c] = Self::SPECIAL;
        // No early end: so it is done many bytes at a time.
        (Self::IS_QUOTED || !text.is_empty())
            && text.iter().fold(true, |is_plain, &byte| {
                is_plain & (0x20..0x80).contains(&byte) & (byte != a) & (byte != b) & (byte != c)
            })
    }
}

/// JSON objects.
#[derive(Debug)]
pub(super) enum Json {}

impl Form for Json {
    const LINE_END: &'static [u8] = b"}\n";
    const EMPTY_LINE: &'static [u8] = b"{}\n";
    const NULL: &'static [u8] = b"null";
    const IS_QUOTED: bool = true;
    const SPECIAL: [u8; 3] = [b'"', b'\\', 0x7f];

    fn before(column: usize, name: &str) -> Piece {
        piece::field(column, name)
    }

    fn text(out: &mut Vec<u8>, text: &str) -> Option<()> {
        print::json::string(out, text);
        Some(())
    }

    fn wkt(out: &mut Vec<u8>, start: usize) {
        out.insert(start, b'"');
        out.push(b'"');
    }
}

/// Comma-separated values. A null is empty.
#[derive(Debug)]
pub(super) enum CommaSeparated {}

impl Form for CommaSeparated {
    const LINE_END: &'static [u8] = b"\n";
    const EMPTY_LINE: &'static [u8] = b"\n";
    const NULL: &'static [u8] = b"";
    const IS_QUOTED: bool = false;
    const SPECIAL: [u8; 3] = [b'"', b',', b','];

    fn before(column: usize, _: &str) -> Piece {
        piece::separator(column, b',')
    }

    fn text(out: &mut Vec<u8>, text: &str) -> Option<()> {
        print::csv_field(out, text);
        Some(())
    }

    fn wkt(out: &mut Vec<u8>, start: usize) {
        if out[start..].contains(&b',') {
            out.insert(start, b'"');
            out.push(b'"');
        }
    }

    fn nested(
        out: &mut Vec<u8>,
        print: impl FnOnce(&mut Vec<u8>) -> Result<(), Unprintable>,
    ) -> Result<(), Unprintable> {
        let mut json = Vec::new();
        print(&mut json)?;
        print::csv_field(out, &String::from_utf8_lossy(&json));
        Ok(())
    }
}

/// Tab-separated values, without quotes and escapes; JSON in them escapes tabs and line ends. A null is empty.
#[derive(Debug)]
pub(super) enum TabSeparated {}

impl Form for TabSeparated {
    const LINE_END: &'static [u8] = b"\n";
    const EMPTY_LINE: &'static [u8] = b"\n";
    const NULL: &'static [u8] = b"";
    const IS_QUOTED: bool = false;
    const SPECIAL: [u8; 3] = [b'\t'; 3];

    fn before(column: usize, _: &str) -> Piece {
        piece::separator(column, b'\t')
    }

    fn text(out: &mut Vec<u8>, text: &str) -> Option<()> {
        if text.is_empty() || text.contains(['\t', '\n', '\r']) {
            return None;
        }
        out.extend_from_slice(text.as_bytes());
        Some(())
    }

    #[cold]
    fn refusal(text: &str) -> Unprintable {
        Error::conversion(match text {
            "" => "the text is empty, and TSV has no quotes to tell it from null",
            _ => "the text has a tab or a line end, and TSV has no quotes",
        })
        .into()
    }

    fn wkt(_: &mut Vec<u8>, _: usize) {}
}
