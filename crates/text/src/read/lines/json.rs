//! JSON, one token after the other.
//!
//! Source: RFC 8259, "The JavaScript Object Notation (JSON) Data Interchange Format".

use alloc::vec::Vec;
use core::ops::Range;

use crate::parse::VALUE_BYTES_MAX;

/// Splits a value into tokens. The text must be one piece and UTF-8; it may be scanned in slices.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    at: usize,
    end: usize,
    expected: Expected,
    /// The open objects (true) and arrays (false), outermost first.
    open: Vec<bool>,
    string: Option<Open>,
    built: Vec<u8>,
}

/// What must come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Expected {
    /// A value, or the end.
    #[default]
    First,
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// An incomplete string.
#[derive(Debug, Clone, Copy)]
struct Open {
    is_key: bool,
    /// Where it begins, after the quote.
    start: usize,
    /// If it has escapes, its characters are built, so far up to here.
    built_until: Option<usize>,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Key(Text),
    String(Text),
    /// As it is written.
    Number(Range<usize>),
    Boolean(bool),
    Null,
    /// The end of the text, after a value or without one.
    End,
}

/// The characters of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    /// It is this part of the text.
    Plain(Range<usize>),
    /// It has escapes: see [`Tokens::built`].
    Built,
}

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) what: &'static str,
    /// The text ends too early.
    pub(super) is_end: bool,
}

impl Tokens {
    /// Begins with this part of a text.
    pub(super) fn begin(&mut self, part: Range<usize>) {
        (self.at, self.end) = (part.start, part.end);
        self.expected = Expected::First;
        self.open.clear();
        self.string = None;
    }

    /// The next position.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Values that are open.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The characters of the last string, if it has escapes.
    pub(super) fn built(&self) -> &[u8] {
        &self.built
    }

    /// The characters of a string, until the next one.
    pub(super) fn chars<'a>(&'a self, text: &'a [u8], string: &Text) -> &'a [u8] {
        match string {
            Text::Plain(part) => &text[part.clone()],
            Text::Built => &self.built,
        }
    }

    /// Takes the characters of the last string with escapes.
    pub(super) fn take_built(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.built)
    }

    /// The next token. `None` if it does not end before `until`: then more must be scanned.
    #[inline]
    pub(super) fn next(&mut self, text: &[u8], until: usize) -> Result<Option<Token>, Wrong> {
        if self.string.is_some() {
            return self.string(text, until);
        }
        let text = &text[..self.end];
        loop {
            let Some(&byte) = text.get(self.at) else { return self.end().map(Some) };
            if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                self.at += 1;
                if self.at >= until && self.at < self.end {
                    return Ok(None);
                }
                continue;
            }
            match (self.expected, byte) {
                (Expected::Colon, b':') => self.expected = Expected::Value,
                (Expected::CommaOrEnd, b',') => {
                    let is_object = self.open.last() == Some(&true);
                    self.expected = if is_object { Expected::Key } else { Expected::Value };
                }
                (Expected::Key | Expected::KeyOrEnd, b'"') => return self.begin_string(text, until, true),
                (Expected::CommaOrEnd | Expected::KeyOrEnd, b'}') if self.open.last() == Some(&true) => {
                    return Ok(Some(self.close(Token::ObjectEnd)));
                }
                (Expected::CommaOrEnd | Expected::ValueOrEnd, b']') if self.open.last() == Some(&false) => {
                    return Ok(Some(self.close(Token::ArrayEnd)));
                }
                (Expected::First | Expected::Value | Expected::ValueOrEnd, _) => {
                    return self.value(text, byte, until);
                }
                _ => return Err(self.unexpected()),
            }
            self.at += 1;
        }
    }

    #[inline]
    fn value(&mut self, text: &[u8], byte: u8, until: usize) -> Result<Option<Token>, Wrong> {
        let token = match byte {
            b'"' => return self.begin_string(text, until, false),
            b'{' | b'[' => {
                let is_object = byte == b'{';
                self.open.push(is_object);
                self.expected = if is_object { Expected::KeyOrEnd } else { Expected::ValueOrEnd };
                self.at += 1;
                return Ok(Some(if is_object { Token::ObjectStart } else { Token::ArrayStart }));
            }
            b'-' | b'0'..=b'9' => Token::Number(self.number(text)?),
            b't' => self.word(text, b"true", Token::Boolean(true))?,
            b'f' => self.word(text, b"false", Token::Boolean(false))?,
            b'n' => self.word(text, b"null", Token::Null)?,
            _ => return Err(self.unexpected()),
        };
        self.end_value();
        Ok(Some(token))
    }

    fn end_value(&mut self) {
        self.expected = if self.open.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd };
    }

    fn close(&mut self, token: Token) -> Token {
        self.open.pop();
        self.at += 1;
        self.end_value();
        token
    }

    fn word(&mut self, text: &[u8], word: &[u8], token: Token) -> Result<Token, Wrong> {
        let rest = &text[self.at..];
        if !rest.starts_with(word) {
            let same = rest.iter().zip(word).take_while(|(one, other)| one == other).count();
            self.at += same;
            return Err(if self.at == self.end { self.cut() } else { self.wrong("expected a value") });
        }
        self.at += word.len();
        Ok(token)
    }

    /// Reads a number's characters.
    #[inline]
    fn number(&mut self, text: &[u8]) -> Result<Range<usize>, Wrong> {
        let start = self.at;
        let text = &text[..self.end.min(start + VALUE_BYTES_MAX)];
        let digits = |mut at: usize| {
            while text.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut at = start + usize::from(text[start] == b'-');
        let whole = digits(at);
        let mut is_number = whole == at + 1 || (whole > at && text[at] != b'0');
        let mut is_open = whole == at;
        at = whole;
        if text.get(at) == Some(&b'.') {
            let fraction = digits(at + 1);
            is_number &= fraction > at + 1;
            is_open |= fraction == at + 1;
            at = fraction;
        }
        if let Some(b'e' | b'E') = text.get(at) {
            let signed = at + 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
            let exponent = digits(signed);
            is_number &= exponent > signed;
            is_open |= exponent == signed;
            at = exponent;
        }
        self.at = at;
        if at == start + VALUE_BYTES_MAX {
            return Err(self.wrong("a number of too many digits"));
        }
        if !is_number {
            return Err(if is_open && at == self.end { self.cut() } else { self.wrong("invalid number") });
        }
        Ok(start..at)
    }

    #[inline]
    fn begin_string(&mut self, text: &[u8], until: usize, is_key: bool) -> Result<Option<Token>, Wrong> {
        self.at += 1;
        self.string = Some(Open { is_key, start: self.at, built_until: None });
        self.string(text, until)
    }

    /// Continues a string.
    fn string(&mut self, text: &[u8], until: usize) -> Result<Option<Token>, Wrong> {
        let text = &text[..self.end];
        let Some(mut open) = self.string else { return Ok(None) };
        loop {
            let limit = self.end.min(until.max(self.at + 1));
            self.at = plain_end(text, self.at, limit);
            match text.get(self.at) {
                None => return Err(self.cut()),
                Some(b'"') => break,
                Some(b'\\') => {
                    if open.built_until.is_none() {
                        self.built.clear();
                    }
                    let from = open.built_until.unwrap_or(open.start);
                    self.build(&text[from..self.at]);
                    self.escape(text)?;
                    open.built_until = Some(self.at);
                }
                Some(0..=0x1f) => return Err(self.wrong("a control character in a string")),
                Some(_) => {}
            }
            if self.at >= until {
                // Building is also done in slices.
                if let Some(from) = open.built_until.filter(|from| *from < self.at) {
                    self.build(&text[from..self.at]);
                    open.built_until = Some(self.at);
                }
                self.string = Some(open);
                return Ok(None);
            }
        }
        let string = match open.built_until {
            Some(from) => {
                self.build(&text[from..self.at]);
                Text::Built
            }
            None => Text::Plain(open.start..self.at),
        };
        self.string = None;
        self.at += 1;
        if open.is_key {
            self.expected = Expected::Colon;
            return Ok(Some(Token::Key(string)));
        }
        self.end_value();
        Ok(Some(Token::String(string)))
    }

    fn build(&mut self, part: &[u8]) {
        if self.built.len() + part.len() > self.built.capacity() && self.built.len() > VALUE_BYTES_MAX {
            // No more than the rest can follow: so the string is not moved again and again.
            let _ = self.built.try_reserve_exact(part.len() + self.end - self.at);
        }
        self.built.extend_from_slice(part);
    }

    /// Builds the character of an escape.
    fn escape(&mut self, text: &[u8]) -> Result<(), Wrong> {
        let Some(&kind) = text.get(self.at + 1) else {
            self.at = self.end;
            return Err(self.cut());
        };
        let character = match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex(text, self.at + 2)?;
                let is_pair = (0xd800..0xdc00).contains(&first);
                let code = if is_pair && text.get(self.at + 6..self.at + 8) == Some(b"\\u") {
                    let second = self.hex(text, self.at + 8)?;
                    if !(0xdc00..0xe000).contains(&second) {
                        return Err(self.wrong("half of a surrogate pair"));
                    }
                    self.at += 6;
                    0x1_0000 + ((first - 0xd800) << 10 | (second - 0xdc00))
                } else {
                    first
                };
                self.at += 4;
                char::from_u32(code).ok_or_else(|| self.wrong("half of a surrogate pair"))?
            }
            _ => return Err(self.wrong("invalid escape")),
        };
        self.at += 2;
        self.built.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hex(&self, text: &[u8], at: usize) -> Result<u32, Wrong> {
        let Some(digits) = text.get(at..at + 4) else { return Err(self.cut()) };
        let digit = |value: Option<u32>, byte: &u8| Some(value? << 4 | char::from(*byte).to_digit(16)?);
        digits.iter().fold(Some(0), digit).ok_or_else(|| self.wrong("invalid escape"))
    }

    fn end(&self) -> Result<Token, Wrong> {
        match self.expected {
            Expected::First | Expected::Nothing => Ok(Token::End),
            _ => Err(self.cut()),
        }
    }

    #[cold]
    fn cut(&self) -> Wrong {
        let what = match self.open.last() {
            Some(true) => "an object that does not end",
            Some(false) => "an array that does not end",
            None => "a value that does not end",
        };
        Wrong { at: self.end, what, is_end: true }
    }

    #[cold]
    fn wrong(&self, what: &'static str) -> Wrong {
        Wrong { at: self.at, what, is_end: false }
    }

    #[cold]
    fn unexpected(&self) -> Wrong {
        self.wrong(match self.expected {
            Expected::First | Expected::Value | Expected::ValueOrEnd => "expected a value",
            Expected::Key | Expected::KeyOrEnd => "expected a name in double quotes",
            Expected::Colon => "expected a colon",
            Expected::CommaOrEnd if self.open.last() == Some(&true) => "expected a comma or }",
            Expected::CommaOrEnd => "expected a comma or ]",
            Expected::Nothing => "text after the object",
        })
    }
}

/// Eight bytes of 1.
const ONES: u64 = u64::MAX / 255;

/// Where a string's ordinary characters end, before `limit`: at a quote, a backslash or a control character.
#[inline]
fn plain_end(text: &[u8], mut at: usize, limit: usize) -> usize {
    while let Some(word) = text.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()) {
        if at >= limit {
            return limit;
        }
        let word = u64::from_le_bytes(word);
        // The lowest byte found is right; higher ones may be wrong because of a borrow.
        let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & (ONES << 7);
        let found = below(word, 0x20)
            | below(word ^ (ONES * u64::from(b'"')), 1)
            | below(word ^ (ONES * u64::from(b'\\')), 1);
        if found != 0 {
            return (at + (found.trailing_zeros() / 8) as usize).min(limit);
        }
        at += 8;
    }
    while at < limit && text.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        at += 1;
    }
    at.min(limit)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};

    use super::*;

    /// All tokens, as text; or where they are wrong.
    fn read(text: &str, slice: usize) -> Result<String, Wrong> {
        let (mut tokens, mut out) = (Tokens::default(), String::new());
        let bytes = text.as_bytes();
        tokens.begin(0..bytes.len());
        loop {
            let until = tokens.at() + slice;
            let Some(token) = tokens.next(bytes, until)? else { continue };
            let string = |tokens: &Tokens, text: Text| match text {
                Text::Plain(part) => String::from_utf8(bytes[part].to_vec()).unwrap(),
                Text::Built => format!("*{}", core::str::from_utf8(tokens.built()).unwrap()),
            };
            out += &match token {
                Token::ObjectStart => "{".to_string(),
                Token::ObjectEnd => "}".to_string(),
                Token::ArrayStart => "[".to_string(),
                Token::ArrayEnd => "]".to_string(),
                Token::Key(text) => format!("<{}>", string(&tokens, text)),
                Token::String(text) => format!("'{}'", string(&tokens, text)),
                Token::Number(part) => format!("#{}", &text[part]),
                Token::Boolean(value) => format!("{value}"),
                Token::Null => "null".to_string(),
                Token::End => return Ok(out),
            };
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        for slice in [1, 2, 3, 8, 1000] {
            assert_eq!(read(text, slice).as_deref(), Ok(expected), "{text} by {slice}");
        }
    }

    #[test]
    fn tokens() {
        check("", "");
        check(" \t\r ", "");
        check(r#"{"a":1,"b":[true,false,null,"x"],"c":{}}"#, "{<a>#1<b>[truefalsenull'x']<c>{}}");
        check(" [ -0.5e+10 , [ ] , 0 , 10 ] ", "[#-0.5e+10[]#0#10]");
        check(
            r#"["a long string without escapes: é", "\u00e9\n\"\ud83d\ude00, and more after it"]"#,
            "['a long string without escapes: é''*é\n\"😀, and more after it']",
        );
        check(r#"{"\u0061\\":"\/\b\f\r\t"}"#, "{<*a\\>'*/\u{8}\u{c}\r\t'}");
    }

    #[test]
    fn what_is_no_json() {
        for (text, at, what) in [
            ("{", 1, "an object that does not end"),
            ("[1", 2, "an array that does not end"),
            ("{\"a\"", 4, "an object that does not end"),
            ("\"a", 2, "a value that does not end"),
            ("\"a\\", 3, "a value that does not end"),
            ("tru", 3, "a value that does not end"),
            ("-", 1, "a value that does not end"),
            ("{\"a\":}", 5, "expected a value"),
            ("{a:1}", 1, "expected a name"),
            ("{\"a\" 1}", 5, "expected a colon"),
            ("{\"a\":1 \"b\"}", 7, "expected a comma or }"),
            ("[1}", 2, "expected a comma or ]"),
            ("[1,]", 3, "expected a value"),
            ("{\"a\":1,}", 7, "expected a name"),
            ("01", 2, "invalid number"),
            ("[1.]", 3, "invalid number"),
            ("[1e]", 3, "invalid number"),
            ("nulL", 3, "expected a value"),
            ("{} {}", 3, "text after the object"),
            ("\"\\x\"", 1, "invalid escape"),
            ("\"\\u12g4\"", 1, "invalid escape"),
            ("\"\\ud800\"", 5, "half of a surrogate pair"),
            ("\"\\ud800\\u0041\"", 1, "half of a surrogate pair"),
            ("\"a\nb\"", 2, "a control character"),
            ("]", 0, "expected a value"),
        ] {
            for slice in [1, 3, 1000] {
                let wrong = read(text, slice).unwrap_err();
                assert!(wrong.what.contains(what) && wrong.at == at, "{text} by {slice}: {wrong:?}");
            }
        }
        let long = format!("[{}]", "1".repeat(VALUE_BYTES_MAX));
        assert!(read(&long, 100).unwrap_err().what.contains("too many digits"));
    }

    /// Texts of the characters that matter are parsed as another parser parses them.
    #[test]
    fn as_another_parser_reads_it() {
        let parts = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\"a\"",
            "1",
            "-2.5e3",
            "0",
            "true",
            "null",
            " ",
            "\\n",
            "\\u0041",
            "\\ud83d\\ude00",
            "x",
            "{\"a\":",
            "\"long string value\"",
            "\u{1}",
            "é",
        ];
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let mut valid = 0;
        for _ in 0..60_000 {
            let text: String = (0..1 + random(7)).map(|_| parts[random(parts.len())]).collect();
            if text.trim().is_empty() {
                continue;
            }
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            // A number's size is no matter of tokens.
            if theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range")) {
                continue;
            }
            let ours = read(&text, 1 + random(9));
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{text}: {ours:?} {theirs:?}");
            valid += usize::from(ours.is_ok());
        }
        assert!(valid > 1000, "{valid}");
    }
}
