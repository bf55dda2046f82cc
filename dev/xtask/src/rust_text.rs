//! As much of Rust's lexical structure as the rules need: what is code, and what is comment or string.

/// The source with comments, and what is inside string and character literals, turned into spaces.
///
/// Every byte keeps its offset and every line its number; quotes stay where they are.
pub fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        // The length of what begins here, and how many bytes of it stay at either end (the quotes; of a raw string
        // its `r` and its last quote or `#`).
        let (length, keep) = match rest[0] {
            b'/' if rest.starts_with(b"//") => (line_comment(rest), 0),
            b'/' if rest.starts_with(b"/*") => (block_comment(rest), 0),
            b'"' => (quoted(rest, b'"'), 1),
            b'\'' => (character(rest), 1),
            b'r' if !follows_word(bytes, at) || prefixed(bytes, at) => (raw_string(rest).unwrap_or(1), 1),
            _ => (1, 1),
        };
        if length > 2 * keep {
            blank(&mut code[at + keep..at + length - keep]);
        }
        at += length;
    }
    // Only whole characters were blanked, byte by byte, so what is left is still UTF-8.
    String::from_utf8_lossy(&code).into_owned()
}

/// An attribute: `#[…]` or `#![…]`.
#[derive(Debug, PartialEq, Eq)]
pub struct Attribute {
    /// What is between the brackets, without white space: `allow(dead_code,reason="")`
    pub text: String,
    /// Whether it is an inner one, `#![…]`.
    pub inner: bool,
    /// The line of its `#`, from 0.
    pub first_line: usize,
    /// The line of its `]`, from 0.
    pub last_line: usize,
}

/// The attributes of a source that [`code_only`] has made.
pub fn attributes(code: &str) -> Vec<Attribute> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices('#') {
        let after = code[start + 1..].trim_start();
        let (after, inner) = match after.strip_prefix('!') {
            Some(after) => (after.trim_start(), true),
            None => (after, false),
        };
        let Some(after) = after.strip_prefix('[') else { continue };
        let mut depth = 1;
        let closing = after.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth == 0
        });
        let Some(length) = closing else { continue };
        let end = code.len() - after.len() + length;
        found.push(Attribute {
            text: after[..length].split_whitespace().collect(),
            inner,
            first_line: line_of(code, start),
            last_line: line_of(code, end),
        });
    }
    found
}

/// The number, from 0, of the line that holds the byte at `offset`.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count()
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// A character literal's length; 1 for the quote that begins a lifetime.
fn character(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', ..] => quoted(rest, b'\''),
        [_, first, ..] => {
            let length = match first {
                0x00..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xff => 4,
            };
            if rest.get(1 + length) == Some(&b'\'') { length + 2 } else { 1 }
        }
        _ => 1,
    }
}

/// The length of `r"…"`, `r#"…"#`, …; `None` where this `r` begins no raw string.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut at = 2 + hashes;
    while at < rest.len() {
        if rest[at] == b'"'
            && rest[at + 1..].iter().take(hashes).filter(|&&byte| byte == b'#').count() == hashes
        {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(rest.len())
}

/// Is the byte before `at` part of a word?
fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

/// Is the `r` at `at` that of `br"…"` or `cr"…"`?
fn prefixed(bytes: &[u8], at: usize) -> bool {
    at > 0 && matches!(bytes[at - 1], b'b' | b'c') && !follows_word(bytes, at - 1)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(source: &str) -> String {
        let code = code_only(source);
        assert_eq!(code.len(), source.len());
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_strings_are_blank() {
        assert_eq!(visible("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(visible(r#"f("b \" // c") + d"#), r#"f(" ") + d"#);
        assert_eq!(visible(r##"x(r#"a " // b"#, br"\", y)"##), r#"x(r #, br", y)"#.replace("br\"", "br \""));
        assert_eq!(visible("let s = \"ä // ö\"; t"), "let s = \" \"; t");
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        assert_eq!(
            visible("fn f<'a>(x: &'a str) { '\"' ; '\\'' ; 'ä' ; b'/' } // x"),
            "fn f<'a>(x: &'a str) { ' ' ; ' ' ; ' ' ; b' ' }"
        );
        assert_eq!(visible("r#type for_r \"x\""), "r#type for_r \" \"");
    }

    #[test]
    fn attributes_are_found_with_their_lines() {
        let code = code_only(
            "#![no_std]\n// #[ignore]\n#[allow(\n  dead_code, // [\n  reason = \"a ] b\"\n)]\nfn f() {}\n",
        );
        let found = attributes(&code);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].text.as_str(), found[0].inner), ("no_std", true));
        assert_eq!(found[1].text, "allow(dead_code,reason=\"\")");
        assert_eq!((found[1].first_line, found[1].last_line), (2, 5));
    }
}
