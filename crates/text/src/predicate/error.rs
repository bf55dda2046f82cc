//! What is wrong with a predicate, and where.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

/// Why a text is no predicate of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PredicateError {
    /// Where in the text, in bytes.
    pub at: Range<usize>,
    /// Why.
    pub message: String,
}

/// Characters of the line in a picture, at most.
const SHOWN_CHARS_MAX: usize = 70;

impl PredicateError {
    /// The line of the text that it is about, and below it carets under the place: for terminals. Of a long line, the part around the
    /// place is shown.
    #[must_use]
    pub fn picture(&self, text: &str) -> String {
        let start = floor_of(text, self.at.start);
        let end = floor_of(text, self.at.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].split('\n').next().unwrap_or("");
        let before = text[line_start..start].chars().count();
        let skipped = before.saturating_sub(SHOWN_CHARS_MAX / 2);
        let printed = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = line.chars().skip(skipped).take(SHOWN_CHARS_MAX).map(printed).collect();
        let room = SHOWN_CHARS_MAX.saturating_sub(before - skipped).max(1);
        let carets = text[start..end].chars().take_while(|c| *c != '\n').count().clamp(1, room);
        let (indent, carets) = (" ".repeat(before - skipped), "^".repeat(carets));
        format!("{shown}\n{indent}{carets}")
    }
}

/// The beginning of the character that a byte is in.
fn floor_of(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for PredicateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for PredicateError {}
