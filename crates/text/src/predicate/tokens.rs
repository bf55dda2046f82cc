//! The words of a predicate.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use core::ops::Range;

use super::error::PredicateError;

/// A word, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A name, and whether it was quoted.
    Name(String, bool),
    /// A literal.
    Literal(Literal),
    /// A comparison, or what separates words.
    Sign(&'static str),
    End,
}

/// A literal as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    /// Digits, with a sign, a point and an exponent; or `NaN`, `Infinity` or `-Infinity`.
    Number(String),
    /// What was between quotes.
    Text(String),
    /// `0x` and hexadecimal digits.
    Blob(String),
    Uuid(String),
    Boolean(bool),
}

/// The longest first.
const SIGNS: [&str; 13] = ["<=", ">=", "!=", "<>", "==", "<", ">", "=", "(", ")", ",", ".", ";"];

/// Takes words from a text.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Tokens<'a> {
        Tokens { text, at: 0 }
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Result<Token, PredicateError> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        let (start, rest) = (self.at, &self.text[self.at..]);
        let Some(first) = rest.chars().next() else {
            return Ok(Token { kind: Kind::End, at: start..start });
        };
        let kind = if first == '\'' {
            Kind::Literal(Literal::Text(self.quoted('\'', "text")?))
        } else if first == '"' {
            Kind::Name(self.quoted('"', "name")?, true)
        } else if let Some(inside) = rest.strip_prefix("$$") {
            let length = inside.find("$$").ok_or_else(|| unclosed(start..start + 2, "text", "$$"))?;
            self.at += length + 4;
            Kind::Literal(Literal::Text(inside[..length].to_owned()))
        } else if let Some(uuid) = uuid_of(rest) {
            self.take(uuid.len());
            Kind::Literal(Literal::Uuid(uuid.to_owned()))
        } else if let Some(length) = blob_of(rest) {
            Kind::Literal(Literal::Blob(self.take(length)))
        } else if let Some(length) = number_of(rest) {
            Kind::Literal(Literal::Number(self.take(length)))
        } else if first.is_alphabetic() || first == '_' {
            let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '#';
            let length = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            let name = self.take(length);
            match &*name.to_ascii_lowercase() {
                "true" => Kind::Literal(Literal::Boolean(true)),
                "false" => Kind::Literal(Literal::Boolean(false)),
                "nan" | "infinity" => Kind::Literal(Literal::Number(name)),
                _ => Kind::Name(name, false),
            }
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            self.at += sign.len();
            Kind::Sign(sign)
        } else {
            let at = start..start + first.len_utf8();
            return Err(PredicateError { at, message: format!("{first:?} has no meaning here") });
        };
        // A word that goes on is another one: 12abc, 0x1g.
        let follows = self.text[self.at..].chars().next();
        let is_bare = matches!(&kind, Kind::Literal(literal) if !matches!(literal, Literal::Text(_)));
        if is_bare && follows.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '#') {
            let length = self.text[start..].find(char::is_whitespace).unwrap_or(self.text.len() - start);
            let word = &self.text[start..start + length];
            let message =
                format!("{word:?} is no number, UUID or blob; a name like this is put in double quotes");
            return Err(PredicateError { at: start..start + length, message });
        }
        Ok(Token { kind, at: start..self.at })
    }

    fn take(&mut self, length: usize) -> String {
        let word = self.text[self.at..self.at + length].to_owned();
        self.at += length;
        word
    }

    /// What is between quotes, which are doubled inside.
    fn quoted(&mut self, quote: char, what: &str) -> Result<String, PredicateError> {
        let start = self.at;
        let mut value = String::new();
        let mut rest = &self.text[start + 1..];
        loop {
            let Some(end) = rest.find(quote) else {
                return Err(unclosed(start..self.text.len(), what, if quote == '"' { "\"" } else { "'" }));
            };
            value.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix(quote) {
                Some(more) => {
                    value.push(quote);
                    rest = more;
                }
                None => {
                    self.at = self.text.len() - rest.len();
                    return Ok(value);
                }
            }
        }
    }
}

fn unclosed(at: Range<usize>, what: &str, quote: &str) -> PredicateError {
    PredicateError { at, message: format!("a {what} without its closing {quote}") }
}

fn uuid_of(text: &str) -> Option<&str> {
    let uuid = text.get(..36)?;
    let is_uuid = uuid.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    is_uuid.then_some(uuid)
}

fn blob_of(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"))?;
    Some(2 + digits.bytes().take_while(u8::is_ascii_hexdigit).count())
}

/// How long a number is, with its sign.
pub(super) fn number_of(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = text.len() - bare.len();
    if let (Some(word), 1) = (bare.get(..8), sign)
        && word.eq_ignore_ascii_case("infinity")
    {
        return Some(sign + word.len());
    }
    let whole = digits(bare);
    let rest = &bare[whole..];
    let fraction = rest.strip_prefix('.').map(digits).filter(|fraction| whole + fraction > 0);
    if whole == 0 && fraction.is_none() {
        return None;
    }
    let length = whole + fraction.map_or(0, |fraction| fraction + 1);
    let exponent = bare[length..].strip_prefix(['e', 'E']).and_then(|exponent| {
        let digits = digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
        let sign = usize::from(exponent.starts_with(['-', '+']));
        (digits > 0).then_some(1 + sign + digits)
    });
    Some(sign + length + exponent.unwrap_or(0))
}
