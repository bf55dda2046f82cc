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
    if is_plain(text.as_bytes()) {
        quoted(out, text.as_bytes());
    } else {
        // Writing to memory does not fail, and a string has a JSON form.
        let _ = write(out, text);
    }
}

/// Whether text is ASCII of which nothing is to be escaped.
pub(crate) fn is_plain(text: &[u8]) -> bool {
    // No early end: so it is done many bytes at a time.
    text.iter().fold(true, |is_plain, &byte| {
        is_plain & (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\')
    })
}

/// Appends such text.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

/// Appends an integer.
pub(crate) fn integer(out: &mut Vec<u8>, value: i64) {
    let mut text = [b'-'; 24];
    let mut rest = value.unsigned_abs();
    let digits = rest.checked_ilog10().map_or(1, |power| marquetry_base::cast::usize_of_u32(power) + 1);
    let length = usize::from(value < 0) + digits;
    let mut at = length;
    while rest >= 100 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&two_digits(rest % 100));
        rest /= 100;
    }
    let last = two_digits(rest);
    if rest >= 10 {
        text[at - 2..at].copy_from_slice(&last);
    } else {
        text[at - 1] = last[1];
    }
    out.extend_from_slice(&text);
    out.truncate(out.len() - text.len() + length);
}

/// The digits of a number below 100.
#[inline]
pub(crate) fn two_digits(value: u64) -> [u8; 2] {
    const DIGITS: [[u8; 2]; 100] = {
        let mut all = [[b'0'; 2]; 100];
        let mut value: u8 = 0;
        while value < 100 {
            all[value as usize] = [b'0' + value / 10, b'0' + value % 10];
            value += 1;
        }
        all
    };
    DIGITS[(value % 100) as usize]
}

/// Appends `length` bytes of `text`, from `start` on: quicker where 32 bytes are there to be copied, of which the rest is cut off again.
#[inline]
pub(crate) fn append(out: &mut Vec<u8>, text: &[u8], start: usize, length: usize) {
    match text.get(start..).and_then(<[u8]>::first_chunk::<32>) {
        Some(chunk) if length <= chunk.len() => {
            let end = out.len() + length;
            out.extend_from_slice(chunk);
            out.truncate(end);
        }
        _ => match text.get(start..).and_then(<[u8]>::first_chunk::<16>) {
            Some(chunk) if length <= chunk.len() => {
                let end = out.len() + length;
                out.extend_from_slice(chunk);
                out.truncate(end);
            }
            _ => out.extend_from_slice(&text[start..start + length]),
        },
    }
}

/// Text that is appended often.
#[derive(Debug)]
pub(crate) struct Piece {
    text: Vec<u8>,
    length: usize,
}

impl Piece {
    /// Its bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn new(mut text: Vec<u8>) -> Piece {
        let length = text.len();
        text.resize(length.max(32), 0);
        Piece { text, length }
    }

    /// Appends it.
    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        append(out, &self.text, 0, self.length);
    }
}

/// What stands before the value of an object's field: `{"name":`, or with a comma where it is not the first.
pub(crate) fn field(number: usize, name: &str) -> Piece {
    let mut text = vec![if number == 0 { b'{' } else { b',' }];
    text.extend_from_slice(&key(name));
    Piece::new(text)
}

/// A field's name with the colon after it: `"name":`.
fn key(name: &str) -> Vec<u8> {
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
