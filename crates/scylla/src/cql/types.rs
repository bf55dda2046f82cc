//! Column types.

use super::identifier::{Name, NameError, take_quoted};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

/// Maximum nesting of a type that is parsed: far deeper than any real type, and safe for a small stack.
pub const NESTING_MAX: usize = 32;

/// A CQL type.
///
/// `Display` prints it as a column's type, and adds `frozen<…>` where CQL requires it: around every collection, tuple
/// and user-defined type inside another type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CqlType {
    /// US-ASCII text.
    Ascii,
    /// 64-bit signed integer.
    Bigint,
    /// Bytes.
    Blob,
    /// True or false.
    Boolean,
    /// A distributed counter.
    Counter,
    /// Days from -5877641-06-23 to 5881580-07-11.
    Date,
    /// Decimal number of any precision, with its scale.
    Decimal,
    /// IEEE 754 binary64.
    Double,
    /// Months, days and nanoseconds.
    Duration,
    /// IEEE 754 binary32.
    Float,
    /// IPv4 or IPv6 address.
    Inet,
    /// 32-bit signed integer.
    Int,
    /// 16-bit signed integer.
    Smallint,
    /// UTF-8 text; `varchar` is the same type.
    Text,
    /// Nanoseconds of a day.
    Time,
    /// Milliseconds since 1970, UTC.
    Timestamp,
    /// Version 1 UUID.
    Timeuuid,
    /// 8-bit signed integer.
    Tinyint,
    /// UUID of any version.
    Uuid,
    /// Integer of any size.
    Varint,
    /// `list<…>`
    List(Box<CqlType>),
    /// `set<…>`
    Set(Box<CqlType>),
    /// `map<…, …>`
    Map(Box<CqlType>, Box<CqlType>),
    /// `tuple<…>`
    Tuple(Vec<CqlType>),
    /// A user-defined type.
    Udt {
        /// Its keyspace; none means the table's.
        keyspace: Option<Name>,
        /// Its name.
        name: Name,
    },
    /// `vector<…, n>`
    Vector(Box<CqlType>, NonZeroU32),
    /// `frozen<…>`; around a type that has no frozen form it means nothing and is not printed.
    Frozen(Box<CqlType>),
}

impl CqlType {
    /// Parses a type as written in CQL, `varchar` as [`CqlType::Text`].
    ///
    /// # Errors
    /// A [`TypeError`] that says what was found in place of what was expected.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        let mut parser = Parser { rest: text };
        let parsed = parser.read_type(0)?;
        parser.skip_space();
        if parser.rest.is_empty() { Ok(parsed) } else { Err(parser.unexpected()) }
    }

    /// This type wrapped in `frozen<…>`, once.
    #[must_use]
    pub fn frozen(self) -> Self {
        match self {
            Self::Frozen(_) => self,
            other => Self::Frozen(Box::new(other)),
        }
    }

    /// Whether a table may have it in its primary key: not counters, durations, or collections and
    /// user-defined types that are not frozen, nor anything that contains a duration.
    #[must_use]
    pub fn can_be_key(&self) -> bool {
        match self {
            Self::Counter
            | Self::Duration
            | Self::List(_)
            | Self::Set(_)
            | Self::Map(..)
            | Self::Udt { .. } => false,
            Self::Frozen(inner) => !inner.has_duration_or_counter(),
            other => !other.has_duration_or_counter(),
        }
    }

    /// The length of every value that is not empty, if all have the same, and servers know it: elements of vectors stand without their lengths
    /// then.
    ///
    /// Not every type whose values are as long as each other says so in Cassandra: `smallint`, `tinyint`, `date` and `time` do not.
    ///
    /// ```
    /// use marquetry_scylla::cql::CqlType;
    ///
    /// assert_eq!(CqlType::parse("vector<uuid, 2>").unwrap().fixed_bytes(), Some(32));
    /// assert_eq!(CqlType::Smallint.fixed_bytes(), None);
    /// ```
    pub fn fixed_bytes(&self) -> Option<u32> {
        match self {
            Self::Boolean => Some(1),
            Self::Float | Self::Int => Some(4),
            Self::Bigint | Self::Double | Self::Timestamp => Some(8),
            Self::Uuid | Self::Timeuuid => Some(16),
            Self::Vector(inner, count) => inner.fixed_bytes()?.checked_mul(count.get()),
            Self::Frozen(inner) => inner.fixed_bytes(),
            _ => None,
        }
    }

    /// Prints the type as a field or inside another type, frozen if it must be.
    pub(crate) fn nested(&self) -> impl fmt::Display + '_ {
        Nested(self)
    }

    fn has_duration_or_counter(&self) -> bool {
        match self {
            Self::Duration | Self::Counter => true,
            Self::List(inner) | Self::Set(inner) | Self::Frozen(inner) | Self::Vector(inner, _) => {
                inner.has_duration_or_counter()
            }
            Self::Map(key, value) => key.has_duration_or_counter() || value.has_duration_or_counter(),
            Self::Tuple(members) => members.iter().any(Self::has_duration_or_counter),
            _ => false,
        }
    }

    fn can_freeze(&self) -> bool {
        matches!(
            self,
            Self::List(_)
                | Self::Set(_)
                | Self::Map(..)
                | Self::Tuple(_)
                | Self::Udt { .. }
                | Self::Frozen(_)
        )
    }

    /// The word of a type that has no parameters.
    fn word(&self) -> Option<&'static str> {
        NATIVE.iter().find(|(_, native)| native == self).map(|(word, _)| *word)
    }
}

impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(inner) => write!(f, "list<{}>", inner.nested()),
            Self::Set(inner) => write!(f, "set<{}>", inner.nested()),
            Self::Map(key, value) => write!(f, "map<{}, {}>", key.nested(), value.nested()),
            Self::Vector(inner, length) => write!(f, "vector<{}, {length}>", inner.nested()),
            Self::Tuple(members) => {
                f.write_str("tuple<")?;
                for (at, member) in members.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", member.nested())?;
                }
                f.write_str(">")
            }
            Self::Udt { keyspace, name } => {
                if let Some(keyspace) = keyspace {
                    write!(f, "{keyspace}.")?;
                }
                name.as_type().fmt(f)
            }
            Self::Frozen(inner) if matches!(**inner, Self::Frozen(_)) || !inner.can_freeze() => inner.fmt(f),
            Self::Frozen(inner) => write!(f, "frozen<{inner}>"),
            native => f.write_str(native.word().unwrap_or_default()),
        }
    }
}

/// Why a text is not a type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeError {
    /// An unexpected character; empty at the end of the text.
    Unexpected {
        /// The text found, up to 20 characters.
        found: String,
    },
    /// The name of a user-defined type is no name.
    Name(NameError),
    /// A vector's dimension is not from 1 to 4294967295.
    Dimension,
    /// Types are nested more than [`NESTING_MAX`] deep.
    TooDeep,
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { found } if found.is_empty() => f.write_str("the type ends too early"),
            Self::Unexpected { found } => write!(f, "unexpected {found:?} in the type"),
            Self::Name(error) => error.fmt(f),
            Self::Dimension => f.write_str("a vector's dimension must be from 1 to 4294967295"),
            Self::TooDeep => write!(f, "types are nested more than {NESTING_MAX} deep"),
        }
    }
}

impl core::error::Error for TypeError {}

impl From<NameError> for TypeError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

const NATIVE: &[(&str, CqlType)] = &[
    ("ascii", CqlType::Ascii),
    ("bigint", CqlType::Bigint),
    ("blob", CqlType::Blob),
    ("boolean", CqlType::Boolean),
    ("counter", CqlType::Counter),
    ("date", CqlType::Date),
    ("decimal", CqlType::Decimal),
    ("double", CqlType::Double),
    ("duration", CqlType::Duration),
    ("float", CqlType::Float),
    ("inet", CqlType::Inet),
    ("int", CqlType::Int),
    ("smallint", CqlType::Smallint),
    ("text", CqlType::Text),
    ("time", CqlType::Time),
    ("timestamp", CqlType::Timestamp),
    ("timeuuid", CqlType::Timeuuid),
    ("tinyint", CqlType::Tinyint),
    ("uuid", CqlType::Uuid),
    ("varint", CqlType::Varint),
    // Last, so that printing finds `text` first.
    ("varchar", CqlType::Text),
];

struct Nested<'a>(&'a CqlType);

impl fmt::Display for Nested<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            already @ CqlType::Frozen(_) => already.fmt(f),
            inner if inner.can_freeze() => write!(f, "frozen<{inner}>"),
            inner => inner.fmt(f),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn read_type(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        if depth > NESTING_MAX {
            return Err(TypeError::TooDeep);
        }
        let (first, quoted) = self.read_name()?;
        if quoted || self.peek('.') {
            return self.read_udt(first);
        }
        if self.peek('<') {
            return self.read_parameters(&first, depth);
        }
        match NATIVE.iter().find(|(word, _)| *word == first) {
            Some((_, native)) => Ok(native.clone()),
            None => Ok(CqlType::Udt { keyspace: None, name: Name::new(&first)? }),
        }
    }

    fn read_udt(&mut self, first: String) -> Result<CqlType, TypeError> {
        if !self.take('.') {
            return Ok(CqlType::Udt { keyspace: None, name: Name::new(&first)? });
        }
        let (name, _) = self.read_name()?;
        Ok(CqlType::Udt { keyspace: Some(Name::new_keyspace(&first)?), name: Name::new(&name)? })
    }

    fn read_parameters(&mut self, word: &str, depth: usize) -> Result<CqlType, TypeError> {
        if !matches!(word, "list" | "set" | "map" | "tuple" | "vector" | "frozen") {
            return Err(self.unexpected());
        }
        self.expect('<')?;
        let first = Box::new(self.read_type(depth + 1)?);
        let parsed = match word {
            "list" => CqlType::List(first),
            "set" => CqlType::Set(first),
            "frozen" => CqlType::Frozen(first),
            "map" => {
                self.expect(',')?;
                CqlType::Map(first, Box::new(self.read_type(depth + 1)?))
            }
            "vector" => {
                self.expect(',')?;
                CqlType::Vector(first, self.read_dimension()?)
            }
            _ => {
                let mut members = alloc::vec![*first];
                while self.take(',') {
                    members.push(self.read_type(depth + 1)?);
                }
                CqlType::Tuple(members)
            }
        };
        self.expect('>')?;
        Ok(parsed)
    }

    fn read_dimension(&mut self) -> Result<NonZeroU32, TypeError> {
        self.skip_space();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().map_err(|_| TypeError::Dimension)
    }

    /// A bare name, folded, or a quoted one; and whether it was quoted.
    fn read_name(&mut self) -> Result<(String, bool), TypeError> {
        self.skip_space();
        if let Some(inner) = self.rest.strip_prefix('"') {
            let (name, rest) = take_quoted(inner)?;
            self.rest = rest;
            return Ok((name, true));
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(self.unexpected());
        }
        self.rest = rest;
        Ok((word.to_ascii_lowercase(), false))
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn peek(&mut self, wanted: char) -> bool {
        self.skip_space();
        self.rest.starts_with(wanted)
    }

    fn take(&mut self, wanted: char) -> bool {
        let there = self.peek(wanted);
        if there {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        there
    }

    fn expect(&mut self, wanted: char) -> Result<(), TypeError> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> TypeError {
        TypeError::Unexpected { found: self.rest.chars().take(20).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn reprinted(text: &str) -> String {
        CqlType::parse(text).unwrap().to_string()
    }

    #[test]
    fn native_types_print_as_they_parse() {
        for (word, native) in NATIVE {
            assert_eq!(CqlType::parse(word), Ok(native.clone()));
            assert_eq!(CqlType::parse(&word.to_ascii_uppercase()), Ok(native.clone()));
            assert_eq!(native.to_string(), if *word == "varchar" { "text" } else { word });
        }
    }

    #[test]
    fn nested_types_are_frozen_where_they_must_be() {
        for (text, printed) in [
            ("list<int>", "list<int>"),
            ("LIST < varchar >", "list<text>"),
            ("map<text,list<int>>", "map<text, frozen<list<int>>>"),
            ("map<text,frozen<list<int>>>", "map<text, frozen<list<int>>>"),
            ("frozen<list<set<int>>>", "frozen<list<frozen<set<int>>>>"),
            ("frozen<frozen<set<int>>>", "frozen<set<int>>"),
            ("frozen<int>", "int"),
            ("tuple<int, tuple<text, blob>>", "tuple<int, frozen<tuple<text, blob>>>"),
            ("vector<float, 3>", "vector<float, 3>"),
            ("vector<list<float>, 3>", "vector<frozen<list<float>>, 3>"),
            ("list<vector<float, 3>>", "list<vector<float, 3>>"),
            ("address", "address"),
            ("list<Address>", "list<frozen<address>>"),
            ("\"Address\"", "\"Address\""),
            ("\"date\"", "\"date\""),
            ("ks.\"a\"\"b\"", "ks.\"a\"\"b\""),
            ("list", "\"list\""),
        ] {
            assert_eq!(reprinted(text), printed, "{text}");
            assert_eq!(reprinted(printed), printed, "{text}");
        }
    }

    #[test]
    fn refused() {
        for text in
            ["", "list<", "list<int", "list<int>>", "map<int>", "tuple<>", "int<int>", "a b", "1a", "<int>"]
        {
            assert!(matches!(CqlType::parse(text), Err(TypeError::Unexpected { .. })), "{text}");
        }
        for text in ["vector<int, 0>", "vector<int, >", "vector<int, 4294967296>", "vector<int, -1>"] {
            assert_eq!(CqlType::parse(text), Err(TypeError::Dimension), "{text}");
        }
        assert_eq!(CqlType::parse("\"a"), Err(TypeError::Name(NameError::OpenQuote)));
        assert_eq!(CqlType::parse("\"\""), Err(TypeError::Name(NameError::Empty)));
        assert_eq!(CqlType::parse(&"list<".repeat(100_000)), Err(TypeError::TooDeep));
    }

    #[test]
    fn keys() {
        for (text, can) in [
            ("int", true),
            ("duration", false),
            ("counter", false),
            ("list<int>", false),
            ("frozen<list<int>>", true),
            ("tuple<int, text>", true),
            ("tuple<int, duration>", false),
            ("frozen<list<duration>>", false),
            ("vector<float, 2>", true),
            ("address", false),
            ("frozen<address>", true),
        ] {
            assert_eq!(CqlType::parse(text).unwrap().can_be_key(), can, "{text}");
        }
    }
}
