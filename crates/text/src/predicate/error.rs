//! Why a text is not a predicate, with its place.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

/// Why a text is not a predicate over a schema, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PredicateError {
    /// The bytes of the text that are wrong; empty at its end, if something is missing there.
    pub at: Range<usize>,
    /// What is wrong with them.
    pub message: String,
}

/// Maximum characters of a line that a picture shows before the place of an error, and from there on.
const PICTURE_CHARS_MAX: usize = 60;

impl PredicateError {
    /// The line of the text with the error, and below it a line of carets: for terminals. A long line is cut.
    pub fn picture(&self, text: &str) -> String {
        let (before, after) = text.split_at_checked(self.at.start).unwrap_or((text, ""));
        let before = before.rsplit('\n').next().unwrap_or("");
        let after = after.split('\n').next().unwrap_or("");
        let chars_before = before.chars().count();
        let skipped = chars_before.saturating_sub(PICTURE_CHARS_MAX);
        let (mut picture, mut carets) = (String::new(), String::new());
        if skipped > 0 {
            picture.push('…');
            carets.push(' ');
        }
        // A tab would not be as wide below, and other control characters are nothing for a terminal.
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        for c in before.chars().skip(skipped) {
            picture.push(shown(c));
            carets.push(' ');
        }
        carets.push('^');
        for (at, (byte, c)) in after.char_indices().enumerate() {
            if at == PICTURE_CHARS_MAX {
                picture.push('…');
                break;
            }
            picture.push(shown(c));
            if at > 0 && self.at.start + byte < self.at.end {
                carets.push('^');
            }
        }
        format!("{}\n{carets}", picture.trim_end())
    }
}

impl fmt::Display for PredicateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for PredicateError {}

/// Maximum characters of the text, or of a name, that a message repeats.
const EXCERPT_CHARS_MAX: usize = 40;

/// The beginning of a part of the text, for messages.
pub(super) fn excerpt(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(EXCERPT_CHARS_MAX).map(shown).collect();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}
