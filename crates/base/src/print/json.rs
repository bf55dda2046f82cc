//! Strings of JSON (RFC 8259, section 7).

use alloc::vec::Vec;

use super::text::is_harmful;

/// Appends a string, in quotes. Escaped is what JSON asks for, and everything that is [harmful](super::is_harmful) to a terminal, which
/// readers of JSON take for the same.
pub fn string(out: &mut Vec<u8>, text: &str) {
    if is_plain(text.as_bytes()) {
        return quoted(out, text.as_bytes());
    }
    out.push(b'"');
    let start = out.len();
    escape(out, text);
    escape_harmful(out, start);
    out.push(b'"');
}

/// Appends text as it stands within a string, with only that escaped which JSON asks for: quotes, backslashes and control characters
/// below U+0020.
pub fn escape(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            byte => {
                out.extend_from_slice(b"\\u00");
                super::hex(out, &[byte]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Escapes what is harmful in JSON, or a part of a string, that was written to the end of `out`, from `start` on. In JSON without white
/// space nothing of it stands outside of strings.
pub fn escape_harmful(out: &mut Vec<u8>, start: usize) {
    // ASCII but for DEL cannot be harmful: the rest of it was escaped.
    let is_ascii =
        |text: &[u8]| text.iter().fold(true, |is_ascii, byte| is_ascii & (0x20..0x7f).contains(byte));
    if out.get(start..).is_none_or(is_ascii) {
        return;
    }
    let written = out.split_off(start);
    for chunk in written.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_harmful(c) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(b"\\u");
                    super::hex(out, &unit.to_be_bytes());
                }
            } else {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Whether text is ASCII of which nothing is to be escaped.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    // No early end: so it is done many bytes at a time.
    text.iter().fold(true, |is_plain, &byte| {
        is_plain & (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\')
    })
}

/// Appends [plain](is_plain) text, in quotes.
#[inline]
fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn harmful_characters_are_escaped() {
        for plain in ["", "plain text {'~}"] {
            assert_eq!(printed(|out| string(out, plain)), alloc::format!("\"{plain}\""));
        }
        let text = "é\x1b[0m \u{7f}\u{9b}31m\u{202e} \u{e0041} \"\\\n 👨\u{200d}👩";
        let json = r#""é\u001b[0m \u007f\u009b31m\u202e \udb40\udc41 \"\\\n 👨‍👩""#;
        assert_eq!(printed(|out| string(out, text)), json);
        let mut out = b"\x9b".to_vec();
        out.extend_from_slice("{\"é\":\"\u{9b}31m\"}".as_bytes());
        escape_harmful(&mut out, 1);
        assert_eq!(out[1..], *r#"{"é":"\u009b31m"}"#.as_bytes());
    }

    #[test]
    fn what_json_asks_for() {
        let text = "\u{0}\u{8}\t\n\u{b}\u{c}\r\u{1f} \"\\/\u{7f}é";
        let json = "\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\u{7f}é";
        assert_eq!(printed(|out| escape(out, text)), json);
    }
}
