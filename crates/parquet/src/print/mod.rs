//! Prints the values of columns exactly, by what they mean: as text, as JSON, and as lines of JSON, CSV or TSV.
//!
//! | values | text | JSON |
//! |---|---|---|
//! | integers, floats | all digits; for floats, as few as read back to the same bits | numbers |
//! | NaN and the infinities | `NaN`, `Infinity`, `-Infinity` | strings: JSON has no such numbers |
//! | decimals | all digits | strings, so that no reader rounds them |
//! | dates, times | ISO 8601 with all digits of their unit; with a `Z` if adjusted to UTC | strings |
//! | intervals | ISO 8601: `P1M2DT3.004S` | strings |
//! | UUIDs | `f24f9b64-81fa-49d1-b74e-8c09a6e31c56` | strings |
//! | geometries | well-known text; invalid ones as bytes | strings |
//! | text | itself | strings, with everything escaped that could harm a terminal |
//! | bytes | `0x` and hexadecimal digits | strings |
//! | null | empty | `null` |
//! | structs | | objects |
//! | lists, repeated fields, maps without values | | arrays |
//! | maps | | arrays of `{"key":…,"value":…}`, whatever the keys are |
//! | VARIANT | | the JSON that it represents |
//!
//! [`JsonLines`], [`Csv`] and [`Tsv`] print whole batches. [`Columns`] prints single values of them. Both use [`value`], which
//! also prints bounds of statistics, and values in names of directories. The digits come from
//! [`marquetry_base::print`].

mod cells;
mod columns;
mod form;
mod lines;
mod nested;
mod piece;
mod value;

pub use columns::{BatchColumns, Cell, Columns};
pub use lines::{Csv, JsonLines, LINES_TOGETHER, Tsv, WIDE_COLUMNS};
pub use nested::shape;
pub use value::{Shown, value};

use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::{Detail, Error, print};

/// What to do with text (STRING, ENUM, JSON) that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InvalidUtf8 {
    /// It is an error that names row and column.
    #[default]
    Error,
    /// Replaces invalid parts with U+FFFD.
    Replace,
    /// Such text is printed as bytes.
    Bytes,
}

impl InvalidUtf8 {
    /// Such text, as it is printed. `None` if it is an error.
    pub fn text(self, bytes: &[u8]) -> Option<String> {
        match self {
            InvalidUtf8::Error => None,
            InvalidUtf8::Replace => Some(String::from_utf8_lossy(bytes).into_owned()),
            InvalidUtf8::Bytes => {
                let mut out = Vec::new();
                print::bytes(&mut out, bytes);
                String::from_utf8(out).ok()
            }
        }
    }
}

/// The error for text that is not UTF-8, if that is an error.
fn not_utf8() -> Error {
    Error::conversion("the text is not UTF-8").with(Detail::NotUtf8)
}
