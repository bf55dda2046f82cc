//! JSON that is harmless wherever it is printed.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};

use crate::args::InvalidUtf8;
use crate::table::is_harmful;
use crate::value::{Meaning, Raw, Shown};

/// Appends a value as JSON on one line. In strings everything harmful to a terminal is escaped, which readers of JSON take for
/// the same; JSON itself only wants some of it escaped.
pub(crate) fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Harmless))
}

/// Appends a string as [`write`] does.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    // No early end: so it is done many bytes at a time.
    let is_plain = text.bytes().fold(true, |is_plain, byte| {
        is_plain & (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\')
    });
    if is_plain {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // Writing to memory does not fail, and a string has a JSON form.
        let _ = write(out, text);
    }
}

/// A field's name with the colon after it: `"name":`.
pub(crate) fn key(name: &str) -> Vec<u8> {
    let mut key = Vec::new();
    string(&mut key, name);
    key.push(b':');
    key
}

/// Appends a value of a column. `None` where its text is not UTF-8, and that is an error.
#[inline]
pub(crate) fn value(
    out: &mut Vec<u8>,
    meaning: Meaning,
    raw: Raw<'_>,
    invalid_utf8: InvalidUtf8,
) -> Option<()> {
    let start = out.len();
    match meaning.show(raw, out) {
        Shown::Boolean | Shown::Number => {}
        Shown::Word | Shown::Wkt => {
            out.insert(start, b'"');
            out.push(b'"');
        }
        Shown::Text(text) => string(out, text),
        Shown::NotText(bytes) => string(out, &invalid_utf8.text(bytes)?),
    }
    Some(())
}

/// Escapes what [`write`] would have escaped in JSON that another wrote to the end of `out`, from `start` on. In JSON without
/// white space nothing of it stands outside of strings.
pub(crate) fn make_harmless(out: &mut Vec<u8>, start: usize) {
    if out[start..].iter().all(|byte| (0x20..0x7f).contains(byte)) {
        return;
    }
    let text = String::from_utf8_lossy(&out[start..]).into_owned();
    out.truncate(start);
    // Writing to memory does not fail.
    let _ = Harmless.write_string_fragment(out, &text);
}

struct Harmless;

impl Formatter for Harmless {
    /// What stands between the escapes that JSON wants.
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // ASCII but for DEL cannot be harmful: the rest of it was escaped.
        if fragment.bytes().all(|byte| byte < 0x7f) || !fragment.contains(is_harmful) {
            return CompactFormatter.write_string_fragment(out, fragment);
        }
        for c in fragment.chars() {
            if is_harmful(c) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            } else {
                out.write_all(c.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmful_characters_are_escaped_and_read_back() {
        let text = "é\x1b[0m \u{7f}\u{9b}31m\u{202e} \u{e0041} \"\\\n 👨\u{200d}👩";
        for plain in ["", "plain text {'~}"] {
            let mut out = Vec::new();
            string(&mut out, plain);
            assert_eq!(out, format!("\"{plain}\"").as_bytes());
        }
        let mut out = Vec::new();
        string(&mut out, text);
        let json = std::str::from_utf8(&out).unwrap();
        assert_eq!(json, r#""é\u001b[0m \u007f\u009b31m\u202e \udb40\udc41 \"\\\n 👨‍👩""#);
        assert_eq!(serde_json::from_str::<String>(json).unwrap(), text);
        let mut out = b"\x9b".to_vec();
        out.extend_from_slice("{\"é\":\"\u{9b}31m\"}".as_bytes());
        make_harmless(&mut out, 1);
        assert_eq!(out[1..], *r#"{"é":"\u009b31m"}"#.as_bytes());
    }
}
