//! Text that is appended often, and quickly.

use alloc::vec::Vec;

use marquetry_base::print::json;

/// Appends `length` bytes of `text`, from `start` on. It is faster if 32 bytes can be copied, and the surplus cut off
/// again. A call would cost as much as the copy.
#[inline(always)]
pub(super) fn append(out: &mut Vec<u8>, text: &[u8], start: usize, length: usize) {
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
pub(super) struct Piece {
    text: Vec<u8>,
    length: usize,
}

impl Piece {
    fn new(mut text: Vec<u8>) -> Piece {
        let length = text.len();
        text.resize(length.max(32), 0);
        Piece { text, length }
    }

    /// Appends it.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        append(out, &self.text, 0, self.length);
    }
}

/// The text before the value of an object's field: `{"name":`, or with a comma if it is not the first.
pub(super) fn field(number: usize, name: &str) -> Piece {
    let mut text = alloc::vec![if number == 0 { b'{' } else { b',' }];
    json::string(&mut text, name);
    text.push(b':');
    Piece::new(text)
}

/// The separator before a column's field, but for the first.
pub(super) fn separator(column: usize, separator: u8) -> Piece {
    Piece::new(if column == 0 { Vec::new() } else { alloc::vec![separator] })
}
