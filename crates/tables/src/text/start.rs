//! What a file without a telling name is, by its first bytes.

use std::io::{Cursor, Read};

use marquetry_text::Format;

use super::compression::Compression;
use super::prepare::Encoding;
use super::stream::decompressing;

/// What Hive writes between fields.
const HIVE_DELIMITER: char = '\x01';
/// Bytes of text that are looked at.
const TEXT_BYTES: usize = 4 << 10;

/// The format of a text with these first bytes, compressed or not: JSON lines if it begins with a brace or a bracket, CSV (which
/// finds its delimiter by itself) if it is any other text. `None` for what is no text in its encoding (UTF-8, unless another is
/// given), and for nothing.
pub(super) fn format_by_start(start: &[u8], encoding: Option<Encoding>) -> Option<Format> {
    let text = decompressed(start);
    let text = match encoding {
        Some(encoding) => encoding.decode_start(&text)?.into_bytes(),
        None => text,
    };
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    let text = match str::from_utf8(text) {
        Ok(text) => text,
        // A character may be cut off at the end.
        Err(error) if error.error_len().is_none() => {
            text.get(..error.valid_up_to()).and_then(|text| str::from_utf8(text).ok())?
        }
        Err(_) => return None,
    };
    let is_binary = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c' | HIVE_DELIMITER);
    if text.contains(is_binary) {
        return None;
    }
    match text.trim_start().chars().next()? {
        '{' | '[' => Some(Format::JsonLines),
        _ => Some(Format::Csv),
    }
}

/// The first bytes of the text, as far as those that are at hand hold them.
fn decompressed(start: &[u8]) -> Vec<u8> {
    let compression = Compression::by_start(start);
    if compression == Compression::None {
        return start.to_vec();
    }
    let mut text = vec![0; TEXT_BYTES];
    let mut filled = 0;
    if let Ok(mut reader) = decompressing(compression, Box::new(Cursor::new(start.to_vec()))) {
        // It ends with an error, because what follows is missing.
        while let Ok(read @ 1..) = reader.read(text.get_mut(filled..).unwrap_or_default()) {
            filled += read;
        }
    }
    text.truncate(filled);
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn text_is_known_by_its_first_bytes() {
        assert_eq!(format_by_start(b"{\"id\":1}\n", None), Some(Format::JsonLines));
        assert_eq!(format_by_start(b"\xef\xbb\xbf \n{\"id\":", None), Some(Format::JsonLines));
        assert_eq!(format_by_start(b"id,day\r\n1,2024-02-29\r\n", None), Some(Format::Csv));
        assert_eq!(format_by_start(b"1\x01Rome\n2\x01Oslo\n", None), Some(Format::Csv), "a table of Hive");
        assert_eq!(format_by_start("name\nZ\u{fc}rich".as_bytes(), None), Some(Format::Csv));
        assert_eq!(format_by_start(&"\u{fc}".repeat(9).as_bytes()[..17], None), Some(Format::Csv), "cut off");
        let latin1: Encoding = "latin1".parse().unwrap();
        assert_eq!(format_by_start(b"name;place\nM\xfcller;K\xf6ln\n", Some(latin1)), Some(Format::Csv));
        let utf16: Encoding = "utf-16le".parse().unwrap();
        assert_eq!(format_by_start(b"\xff\xfe{\0\"\0i\0d", Some(utf16)), Some(Format::JsonLines));
        for other in
            [&b""[..], b"  \n", b"PAR1\x15\x04", b"\x89PNG\r\n\x1a\n", b"a,b\n\0", b"\xff\xfea\0", b"a\xffb"]
        {
            assert_eq!(format_by_start(other, None), None, "{other:?}");
        }
    }

    #[test]
    fn compressed_text_is_known_by_the_first_bytes_of_the_text() {
        let line = b"{\"id\":1234567,\"name\":\"a name\"}\n".repeat(2000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&line).unwrap();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(&line).unwrap();
        for compressed in [gzip.finish().unwrap(), bzip2.finish().unwrap()] {
            let cut = &compressed[..compressed.len().min(4096)];
            assert_eq!(format_by_start(cut, None), Some(Format::JsonLines));
        }
        assert_eq!(format_by_start(b"\x1f\x8b\x08", None), None, "gzip of nothing that is known");
    }
}
