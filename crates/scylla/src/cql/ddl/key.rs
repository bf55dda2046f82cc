//! A primary key as typed by a person: `(a, b), c`.

use crate::cql::identifier::{Name, NameError, take_quoted};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The order of a clustering column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first.
    Descending,
}

/// A primary key as given: names not yet looked up among a table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpec {
    /// The columns of the partition key, at least one.
    pub partition: Vec<KeyPart>,
    /// The clustering columns.
    pub clustering: Vec<(KeyPart, Order)>,
}

/// A name in a [`KeySpec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// The name as it was written, without its quotes.
    pub text: String,
    /// Whether it had quotes.
    pub quoted: bool,
}

impl KeySpec {
    /// Parses the contents of the parentheses of CQL's `PRIMARY KEY (…)`: `a` · `a, b` (partitioned
    /// by a, clustered by b) · `(a, b), c DESC` · `"A b"`. Another pair of parentheses around everything, as in
    /// `((a, b), c)`, is allowed; `(a, b)` alone is a partition key of two columns.
    ///
    /// # Errors
    /// A [`KeyError`] that says what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut reader = Reader { rest: text };
        let outer = reader.peek_outer();
        if outer {
            reader.expect('(')?;
        }
        let partition = if reader.take('(') {
            let mut parts = alloc::vec![reader.name()?];
            while reader.take(',') {
                parts.push(reader.name()?);
            }
            reader.expect(')')?;
            parts
        } else {
            alloc::vec![reader.name()?]
        };
        let mut clustering = Vec::new();
        while reader.take(',') {
            let name = reader.name()?;
            clustering.push((name, reader.order()));
        }
        if outer {
            reader.expect(')')?;
        }
        reader.skip_space();
        if reader.rest.is_empty() { Ok(Self { partition, clustering }) } else { Err(reader.unexpected()) }
    }

    /// The names, partition key first.
    pub fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        self.partition.iter().chain(self.clustering.iter().map(|(part, _)| part))
    }

    /// Looks the names up among a table's columns: the columns of the partition key, then the
    /// clustering columns.
    ///
    /// # Errors
    /// [`KeyError::NoSuchColumn`] and [`KeyError::Twice`].
    #[expect(clippy::type_complexity, reason = "a pair of lists needs no name")]
    pub fn resolve(&self, columns: &[Name]) -> Result<(Vec<usize>, Vec<(usize, Order)>), KeyError> {
        let mut taken = Vec::new();
        let mut find = |part: &KeyPart| {
            let at =
                part.resolve(columns).ok_or_else(|| KeyError::NoSuchColumn { name: part.text.clone() })?;
            if taken.contains(&at) {
                return Err(KeyError::Twice { name: columns[at].as_str().to_string() });
            }
            taken.push(at);
            Ok(at)
        };
        let partition = self.partition.iter().map(&mut find).collect::<Result<_, _>>()?;
        let clustering = self
            .clustering
            .iter()
            .map(|(part, order)| Ok((find(part)?, *order)))
            .collect::<Result<_, _>>()?;
        Ok((partition, clustering))
    }
}

impl KeyPart {
    /// The column with exactly this name; or else, for an unquoted name, the column with this name in lower case, as in
    /// CQL.
    #[must_use]
    pub fn resolve(&self, columns: &[Name]) -> Option<usize> {
        let find = |wanted: &str| columns.iter().position(|column| column.as_str() == wanted);
        find(&self.text).or_else(|| if self.quoted { None } else { find(&self.text.to_ascii_lowercase()) })
    }
}

/// Why a text is not the primary key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// Unexpected text; empty at the end.
    Unexpected {
        /// The text found, up to 20 characters.
        found: String,
    },
    /// A name is missing, or a quote is not closed.
    Name(NameError),
    /// The table has no such column.
    NoSuchColumn {
        /// The name.
        name: String,
    },
    /// A column is named twice.
    Twice {
        /// The column.
        name: String,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { found } if found.is_empty() => f.write_str("the key ends too early"),
            Self::Unexpected { found } => write!(f, "unexpected {found:?} in the key"),
            Self::Name(error) => error.fmt(f),
            Self::NoSuchColumn { name } => write!(f, "the key names {name:?}, which is not a column"),
            Self::Twice { name } => write!(f, "the key names {name:?} twice"),
        }
    }
}

impl core::error::Error for KeyError {}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Whether everything is enclosed in one more pair of parentheses: only if two of them open the text.
    fn peek_outer(&self) -> bool {
        self.rest.trim_start().strip_prefix('(').is_some_and(|inner| inner.trim_start().starts_with('('))
    }

    /// A quoted name, or everything up to the end of a bare one.
    fn name(&mut self) -> Result<KeyPart, KeyError> {
        self.skip_space();
        if let Some(inner) = self.rest.strip_prefix('"') {
            let (text, rest) = take_quoted(inner).map_err(KeyError::Name)?;
            self.rest = rest;
            return if text.is_empty() {
                Err(KeyError::Name(NameError::Empty))
            } else {
                Ok(KeyPart { text, quoted: true })
            };
        }
        let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '"');
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.unexpected());
        }
        self.rest = rest;
        Ok(KeyPart { text: word.to_string(), quoted: false })
    }

    fn order(&mut self) -> Order {
        self.skip_space();
        for (word, order) in [("asc", Order::Ascending), ("desc", Order::Descending)] {
            let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
            if self.rest[..end].eq_ignore_ascii_case(word) {
                self.rest = &self.rest[end..];
                return order;
            }
        }
        Order::Ascending
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), KeyError> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> KeyError {
        KeyError::Unexpected { found: self.rest.chars().take(20).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Partition key | clustering columns, `+` ascending and `-` descending.
    fn shape(text: &str) -> String {
        let spec = KeySpec::parse(text).unwrap();
        let names: Vec<String> = spec.partition.iter().map(|part| part.text.clone()).collect();
        let mut shape = names.join(" ") + " |";
        for (part, order) in &spec.clustering {
            shape += if *order == Order::Ascending { " +" } else { " -" };
            shape += &part.text;
        }
        shape
    }

    #[test]
    fn forms() {
        assert_eq!(shape("a"), "a |");
        assert_eq!(shape(" a , b "), "a | +b");
        assert_eq!(shape("(a,b)"), "a b |");
        assert_eq!(shape("(a, b), c desc, d ASC"), "a b | -c +d");
        assert_eq!(shape("((a, b), c)"), "a b | +c");
        assert_eq!(shape("( (a) )"), "a |");
        assert_eq!(shape("\"A, (b)\"\"\", desc desc"), "A, (b)\" | -desc");
        assert_eq!(shape("trip-id,zürich"), "trip-id | +zürich");
    }

    #[test]
    fn refused() {
        for text in ["", "()", "a,", "(a", "(a),", "a b", "(a,b) c", "((a), b", "a)", ",a", "(a,(b))"] {
            assert!(matches!(KeySpec::parse(text), Err(KeyError::Unexpected { .. })), "{text}");
        }
        assert_eq!(KeySpec::parse("\"a"), Err(KeyError::Name(NameError::OpenQuote)));
        assert_eq!(KeySpec::parse("\"\""), Err(KeyError::Name(NameError::Empty)));
    }

    #[test]
    fn names_are_looked_up_as_they_stand_then_folded() {
        let columns: Vec<Name> =
            ["FlightDate", "delay", "Delay"].iter().map(|text| Name::new(text).unwrap()).collect();
        let resolve = |text: &str| KeySpec::parse(text).unwrap().resolve(&columns);
        assert_eq!(resolve("FlightDate"), Ok((alloc::vec![0], Vec::new())));
        assert_eq!(resolve("DELAY, Delay desc"), Ok((alloc::vec![1], alloc::vec![(2, Order::Descending)])));
        assert_eq!(resolve("\"DELAY\""), Err(KeyError::NoSuchColumn { name: "DELAY".into() }));
        assert_eq!(resolve("flightdate"), Err(KeyError::NoSuchColumn { name: "flightdate".into() }));
        assert_eq!(resolve("delay, DELAY"), Err(KeyError::Twice { name: "delay".into() }));
    }
}
