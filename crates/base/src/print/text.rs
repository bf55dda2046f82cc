//! Text that is harmless wherever it is printed, and text in CSV.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A field of CSV: in quotes where it must be (RFC 4180), and where it is empty, which nothing else tells from null.
pub fn csv_field(out: &mut Vec<u8>, text: &str) {
    if !text.is_empty() && !text.contains([',', '"', '\r', '\n']) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}

/// Whether a character moves the cursor, speaks to the terminal, turns the direction of writing, or cannot be seen, so that two
/// different texts look the same.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Marks and overrides of direction, and separators of lines.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Of no width. Joiners (U+200C, U+200D) are not here: many scripts and emoji are written with them.
            | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// `text` with everything escaped that is harmful, as Rust writes it: for people.
pub fn printable(text: &str) -> String {
    if !text.contains(is_harmful) {
        return text.to_string();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_harmful(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn csv_fields_are_quoted_where_they_must_be() {
        let csv = |text| printed(|out| csv_field(out, text));
        assert_eq!(csv("plain text"), "plain text");
        assert_eq!(csv(""), "\"\"");
        assert_eq!(csv("a,b"), "\"a,b\"");
        assert_eq!(csv("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
    }

    #[test]
    fn what_is_harmful_is_escaped() {
        assert_eq!(printable("Zürich 東京"), "Zürich 東京");
        assert_eq!(printable("a\x1b[2Jb\nc\u{202e}"), "a\\u{1b}[2Jb\\nc\\u{202e}");
        assert_eq!(printable("👨\u{200d}👩"), "👨\u{200d}👩");
    }
}
