//! What is done with the bytes of a text before it is read: they are decoded, and lines are left out.

use std::fmt;
use std::str::FromStr;

use encoding_rs::{Decoder, DecoderResult, Encoding as Known, UTF_8};
use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};

/// How the bytes of texts become lines of UTF-8.
///
/// ```
/// use marquetry_tables::text::Preparing;
///
/// let mut preparing = Preparing::default();
/// preparing.encoding = Some("windows-1252".parse()?);
/// preparing.skip_lines = 2;
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preparing {
    /// The encoding of the text. `None`: UTF-8. A byte order mark of UTF-8 or UTF-16 is believed, whatever is given.
    pub encoding: Option<Encoding>,
    /// Lines before the header that are left out, whatever is in them. They are counted in errors.
    pub skip_lines: u64,
}

/// An encoding of text, by one of the names of the WHATWG's Encoding Standard: `windows-1252`, `utf-16le`, `latin1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(&'static Known);

impl FromStr for Encoding {
    type Err = Error;

    /// # Errors
    ///
    /// `Misuse` for the option `text_encoding`.
    fn from_str(name: &str) -> Result<Encoding> {
        Known::for_label_no_replacement(name.as_bytes()).map(Encoding).ok_or_else(|| {
            let what = format!(
                "there is no encoding {name:?}; known are utf-8, utf-16le, utf-16be, windows-1252, iso-8859-2, shift_jis, gbk and \
                 the others of the WHATWG's Encoding Standard"
            );
            Error::option("text_encoding", what)
        })
    }
}

impl Encoding {
    /// The first bytes of a text as far as they are whole characters, without a byte order mark. `None` if they are in another encoding.
    pub(super) fn decode_start(self, start: &[u8]) -> Option<String> {
        let mut text = String::with_capacity(start.len().saturating_mul(3).saturating_add(16));
        let mut decoder = self.0.new_decoder();
        let (result, _) = decoder.decode_to_string_without_replacement(start, &mut text, false);
        matches!(result, DecoderResult::InputEmpty).then_some(text)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name().to_ascii_lowercase())
    }
}

impl Preparing {
    /// Whether there is nothing to do.
    pub(super) fn is_nothing(&self) -> bool {
        self.encoding.is_none_or(|encoding| encoding.0 == UTF_8) && !self.leaves_out()
    }

    /// Whether lines may be left out, which then are empty.
    pub(super) fn leaves_out(&self) -> bool {
        self.skip_lines > 0
    }
}

/// Prepares a text, part by part.
pub(super) struct Prepared {
    decoding: Option<Decoding>,
    lines: Option<Lines>,
    is_over: bool,
}

impl Prepared {
    pub(super) fn new(preparing: &Preparing) -> Prepared {
        let encoding = preparing.encoding.filter(|encoding| encoding.0 != UTF_8);
        let decoding = encoding.map(|Encoding(encoding)| Decoding {
            decoder: encoding.new_decoder(),
            line: 1,
            encoding,
        });
        let lines = preparing.leaves_out().then_some(Lines { skip: preparing.skip_lines, bytes: 0 });
        Prepared { decoding, lines, is_over: false }
    }

    /// The next part, prepared; nothing may be left of it. `None` is the text's end, after which there is `None`.
    ///
    /// # Errors
    ///
    /// `Corrupt` for bytes that are not of the encoding, with their line.
    pub(super) fn next(&mut self, bytes: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let is_last = bytes.is_none();
        if is_last && std::mem::replace(&mut self.is_over, true) {
            return Ok(None);
        }
        let bytes = bytes.unwrap_or_default();
        let decoded = match &mut self.decoding {
            Some(decoding) => Some(decoding.decode(bytes, is_last)?),
            None => None,
        };
        Ok(Some(match (&mut self.lines, decoded) {
            (Some(lines), decoded) => lines.filter(decoded.as_deref().unwrap_or(bytes)),
            (None, Some(decoded)) => decoded,
            (None, None) => bytes.to_vec(),
        }))
    }
}

struct Decoding {
    decoder: Decoder,
    encoding: &'static Known,
    line: u64,
}

impl Decoding {
    fn decode(&mut self, bytes: &[u8], is_last: bool) -> Result<Vec<u8>> {
        let too_large = || Error::too_large("a part of a text that is too long to be decoded");
        let most =
            self.decoder.max_utf8_buffer_length_without_replacement(bytes.len()).ok_or_else(too_large)?;
        let mut out = vec![0; most];
        let (result, _, length) = self.decoder.decode_to_utf8_without_replacement(bytes, &mut out, is_last);
        out.truncate(length);
        self.line += out.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        match result {
            DecoderResult::InputEmpty => Ok(out),
            DecoderResult::OutputFull => Err(Error::internal("a decoder that wants more room than it said")),
            DecoderResult::Malformed(..) => {
                let (line, name) = (self.line, Encoding(self.encoding));
                Err(Error::corrupt(format!("line {line}: bytes that are not {name}")))
            }
        }
    }
}

/// Leaves out what is in the first lines, but for their ends.
struct Lines {
    skip: u64,
    bytes: u64,
}

impl Lines {
    fn filter(&mut self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        if self.bytes == 0 && rest.starts_with(&BYTE_ORDER_MARK) {
            out.extend_from_slice(&BYTE_ORDER_MARK);
            rest = &rest[BYTE_ORDER_MARK.len()..];
        }
        self.bytes += u64_of(text.len());
        while self.skip > 0 && !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            if end.is_some() {
                out.push(b'\n');
                self.skip -= 1;
            }
            rest = &rest[end.unwrap_or(rest.len())..];
        }
        out.extend_from_slice(rest);
        out
    }
}

const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of a text, fed in parts of every size.
    fn left(preparing: &Preparing, text: &[u8]) -> Result<Vec<u8>> {
        let whole = |part: usize| -> Result<Vec<u8>> {
            let mut prepared = Prepared::new(preparing);
            let mut out = Vec::new();
            for bytes in text.chunks(part) {
                out.extend(prepared.next(Some(bytes))?.unwrap());
            }
            out.extend(prepared.next(None)?.unwrap());
            assert!(prepared.next(None)?.is_none());
            Ok(out)
        };
        let at_once = whole(text.len().max(1));
        for part in 1..text.len() {
            assert_eq!(whole(part), at_once, "in parts of {part}");
        }
        at_once
    }

    #[test]
    fn lines_that_are_left_out_stay_as_ends() {
        let lines = |skip_lines: u64, text: &str| {
            let preparing = Preparing { skip_lines, ..Preparing::default() };
            String::from_utf8(left(&preparing, text.as_bytes()).unwrap()).unwrap()
        };
        assert_eq!(lines(2, "a\r\nb\nc\nd"), "\n\nc\nd");
        assert_eq!(lines(5, "a\nb"), "\n");
        assert_eq!(lines(1, "\"a\n\"b\n"), "\n\"b\n");
    }

    #[test]
    fn encodings() {
        let of = |name: &str, text: &[u8]| {
            let encoding = Some(name.parse().unwrap());
            left(&Preparing { encoding, ..Preparing::default() }, text)
        };
        assert_eq!(of("latin1", b"caf\xe9 \x80").unwrap(), "café €".as_bytes());
        assert_eq!(of("UTF-16LE", b"\xff\xfea\0\xac\x20").unwrap(), "a€".as_bytes());
        assert_eq!(of("shift_jis", b"\x83\x65").unwrap(), "テ".as_bytes());
        let error = of("shift_jis", b"a\nb\n\x83").unwrap_err();
        assert_eq!(error.message(), "line 3: bytes that are not shift_jis");
        assert!("klingon".parse::<Encoding>().unwrap_err().message().contains("no encoding \"klingon\""));
    }
}
