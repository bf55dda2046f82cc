//! Words, literals and signs.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

use super::error::{PredicateError, excerpt};
use super::number::{Number, Operator};
use crate::parse;

/// Maximum bytes of a literal other than text and blobs, as of values elsewhere in texts.
pub(super) const LITERAL_BYTES_MAX: usize = crate::parse::VALUE_BYTES_MAX;

/// A part of the text that is not cut further.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The end of the text.
    End,
    /// A column, or the path of a field in one.
    Name,
    Keyword(Keyword),
    Operator(Operator),
    Open,
    Close,
    Comma,
    /// Digits, or a word for a number that has none.
    Number,
    /// In single quotes, doubled inside.
    Quoted,
    /// Between `$$` and `$$`.
    Dollars,
    Blob,
    Uuid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    In,
    Between,
    Like,
    Is,
    Null,
    True,
    False,
}

impl Token {
    pub(super) fn at(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Cuts a text into tokens.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn of(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// The next one; at the end, again and again that it is the end.
    pub(super) fn next(&mut self) -> Result<Token, PredicateError> {
        let spaces = self.rest().len() - self.rest().trim_start().len();
        self.at += spaces;
        let (rest, start) = (self.rest(), self.at);
        let mut token = |kind, bytes| {
            self.at += bytes;
            Ok(Token { kind, start, end: start + bytes })
        };
        let operator = Kind::Operator;
        match rest.as_bytes() {
            [] => token(Kind::End, 0),
            [b'(', ..] => token(Kind::Open, 1),
            [b')', ..] => token(Kind::Close, 1),
            [b',', ..] => token(Kind::Comma, 1),
            [b'<', b'=', ..] => token(operator(Operator::AtMost), 2),
            [b'>', b'=', ..] => token(operator(Operator::AtLeast), 2),
            [b'<', b'>', ..] | [b'!', b'=', ..] => token(operator(Operator::NotEqual), 2),
            [b'=', b'=', ..] => token(operator(Operator::Equal), 2),
            [b'=', ..] => token(operator(Operator::Equal), 1),
            [b'<', ..] => token(operator(Operator::Less), 1),
            [b'>', ..] => token(operator(Operator::Greater), 1),
            [b'\'', ..] => match end_of_quoted(rest, '\'') {
                Some(bytes) => token(Kind::Quoted, bytes),
                None => self.fail(rest.len(), "the single quote is not closed".into()),
            },
            [b'$', b'$', ..] => match rest[2..].find("$$") {
                Some(bytes) => token(Kind::Dollars, bytes + 4),
                None => self.fail(rest.len(), "$$ is missing at the end of the text".into()),
            },
            _ if is_uuid(rest) => token(Kind::Uuid, UUID_BYTES),
            [b'0', b'x' | b'X', ..] => self.blob(),
            [b'0'..=b'9', ..] | [b'+' | b'-' | b'.', b'0'..=b'9', ..] => self.number(),
            [b'+' | b'-', b'.', b'0'..=b'9', ..] => self.number(),
            [b'+' | b'-', ..] if is_number_word(word_of(&rest[1..])) => {
                token(Kind::Number, 1 + word_of(&rest[1..]).len())
            }
            _ if rest.starts_with(is_in_name) || rest.starts_with('"') => self.name(),
            _ => {
                let found = rest.chars().next().unwrap_or(' ');
                let before =
                    self.text.get(..start).unwrap_or("").rsplit(|c| !is_in_name(c)).next().unwrap_or("");
                let is_name = before.starts_with(|c: char| !c.is_ascii_digit());
                let hint = if is_name { NAME_HINT } else { "" };
                self.fail(found.len_utf8(), format!("{found:?} is not expected here{hint}"))
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn fail(&self, bytes: usize, message: String) -> Result<Token, PredicateError> {
        Err(PredicateError { at: self.at..self.at + bytes, message })
    }

    fn blob(&mut self) -> Result<Token, PredicateError> {
        let word = word_of(self.rest());
        let digits = word.get(2..).unwrap_or("");
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) || !digits.len().is_multiple_of(2) {
            let found = excerpt(word);
            return self
                .fail(word.len(), format!("{found} is not a blob: pairs of hexadecimal digits follow 0x"));
        }
        let start = self.at;
        self.at += word.len();
        Ok(Token { kind: Kind::Blob, start, end: self.at })
    }

    fn number(&mut self) -> Result<Token, PredicateError> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut end = 1;
        while let Some(next) = rest.get(end..).and_then(|rest| rest.chars().next()) {
            // A sign belongs to a number after the E of its exponent.
            let is_exponent = |before: &[u8]| match before {
                [mantissa @ .., b'e' | b'E'] => {
                    mantissa.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-'))
                }
                _ => false,
            };
            match next {
                '+' | '-' if matches!(bytes[end - 1], b'e' | b'E') && is_exponent(&bytes[..end]) => end += 1,
                '.' => end += 1,
                _ if is_in_name(next) => end += next.len_utf8(),
                _ => break,
            }
        }
        let longer = rest.find(|c: char| !is_in_time(c)).unwrap_or(rest.len());
        if longer > end && longer <= TIME_BYTES_MAX {
            let written = &rest.as_bytes()[..longer];
            if parse::timestamp(written).is_some() || parse::time(written).is_some() {
                let hint = format!("dates and times are put in single quotes: '{}'", &rest[..longer]);
                return self.fail(longer, hint);
            }
        }
        let written = &rest[..end];
        if end > LITERAL_BYTES_MAX {
            return self.fail(end, format!("a number of {end} bytes, more than {LITERAL_BYTES_MAX}"));
        }
        if Number::parse(written.as_bytes()).is_none() {
            let hint = match parse::interval(written.as_bytes()).is_some() {
                true => "; intervals are put in single quotes",
                false => "",
            };
            return self.fail(end, format!("{} is not a number{hint}", excerpt(written)));
        }
        let start = self.at;
        self.at += end;
        Ok(Token { kind: Kind::Number, start, end: self.at })
    }

    /// A name, or a keyword; several names with dots between them are one token.
    fn name(&mut self) -> Result<Token, PredicateError> {
        let (rest, start) = (self.rest(), self.at);
        let (mut end, mut is_bare) = (0, true);
        loop {
            let part = &rest[end..];
            let bytes = match part.starts_with('"') {
                true => match end_of_quoted(part, '"') {
                    Some(bytes) => bytes,
                    None => {
                        self.at += end;
                        return self.fail(part.len(), "the double quote is not closed".into());
                    }
                },
                false => word_of(part).len(),
            };
            if bytes == 0 {
                self.at += end - 1;
                return self.fail(1, "a name is missing after the dot".into());
            }
            is_bare &= !part.starts_with('"');
            end += bytes;
            match rest[end..].starts_with('.') {
                true => (end, is_bare) = (end + 1, false),
                false => break,
            }
        }
        self.at += end;
        let word = &rest[..end];
        let kind = match keyword(word).filter(|_| is_bare) {
            Some(keyword) => Kind::Keyword(keyword),
            None if is_bare && is_number_word(word) => Kind::Number,
            None => Kind::Name,
        };
        Ok(Token { kind, start, end: self.at })
    }
}

/// Whether a bare name may contain it; one does not begin with a digit.
pub(super) fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '#')
}

fn word_of(text: &str) -> &str {
    &text[..text.find(|c| !is_in_name(c)).unwrap_or(text.len())]
}

/// Whether a word must be quoted to be a column's name.
pub(super) fn is_reserved(word: &str) -> bool {
    keyword(word).is_some() || is_number_word(word)
}

fn keyword(word: &str) -> Option<Keyword> {
    const KEYWORDS: [(&str, Keyword); 10] = [
        ("and", Keyword::And),
        ("or", Keyword::Or),
        ("not", Keyword::Not),
        ("in", Keyword::In),
        ("between", Keyword::Between),
        ("like", Keyword::Like),
        ("is", Keyword::Is),
        ("null", Keyword::Null),
        ("true", Keyword::True),
        ("false", Keyword::False),
    ];
    KEYWORDS.iter().find(|(text, _)| word.eq_ignore_ascii_case(text)).map(|(_, keyword)| *keyword)
}

fn is_number_word(word: &str) -> bool {
    word.eq_ignore_ascii_case("nan") || word.eq_ignore_ascii_case("infinity")
}

/// Whether it is a character of a date or a time.
fn is_in_time(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | '+' | 'T' | 'Z')
}

const NAME_HINT: &str =
    "; a column's name with other characters than letters, digits, _ and # is put in double quotes";

/// Bytes of a date and a time, at most.
const TIME_BYTES_MAX: usize = 64;

const UUID_BYTES: usize = 36;

/// Whether a text begins with a UUID.
fn is_uuid(text: &str) -> bool {
    let after = text.get(UUID_BYTES..);
    let is_end = |rest: &str| !rest.starts_with(is_in_name) && !rest.starts_with('-');
    after.is_some_and(is_end)
        && text.as_bytes()[8] == b'-'
        && parse::uuid(&text.as_bytes()[..UUID_BYTES]).is_some()
}

/// The bytes of a text that begins with a quote, up to the one that closes it.
fn end_of_quoted(text: &str, quote: char) -> Option<usize> {
    let mut end = 1;
    loop {
        end += text.get(end..)?.find(quote)? + 1;
        match text[end..].starts_with(quote) {
            true => end += 1,
            false => return Some(end),
        }
    }
}
