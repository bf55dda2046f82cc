//! Names: of columns, fields, types, tables and keyspaces.
//!
//! CQL folds a bare name to lower case and keeps a quoted one unchanged. A [`Name`] is the text after that rule, so two
//! columns are the same column exactly if their names are equal. A name is printed bare only if that reads back as the
//! same name.
//!
//! Limits are those that both databases share, so what is accepted here can be created on either:
//! keyspaces 48 characters (Cassandra's `SchemaConstants.NAME_LENGTH`; ScyllaDB allows more), tables
//! 192 (ScyllaDB since 2025.2; Cassandra 5.0 allows 222), both of ASCII letters, digits and
//! underscores only. Columns and fields may have any characters, types any ASCII ones, up to 65535 bytes,
//! which is the longest string of the native protocol.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt::{self, Write};

/// The longest keyspace name, in characters.
pub const KEYSPACE_CHARS_MAX: usize = 48;
/// The longest table name, in characters.
pub const TABLE_CHARS_MAX: usize = 192;
/// The longest name of a column, a field or a type, in bytes.
pub const NAME_BYTES_MAX: usize = 65_535;

/// A name as the database keeps it: after unquoting and folding.
///
/// `Display` prints it as CQL, quoted if necessary. Names compare as they do in the database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

impl Name {
    /// A column or field with exactly this name, capitals included.
    ///
    /// # Errors
    /// [`NameError::Empty`] and [`NameError::TooLong`].
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong { length: text.len(), max: NAME_BYTES_MAX });
        }
        Ok(Self(text.into()))
    }

    /// A keyspace that is called exactly `text`.
    ///
    /// # Errors
    /// [`NameError::Empty`], [`NameError::TooLong`], and [`NameError::NotAWord`] for anything but
    /// ASCII letters, digits and underscores.
    pub fn new_keyspace(text: &str) -> Result<Self, NameError> {
        Self::word(text, KEYSPACE_CHARS_MAX)
    }

    /// A table that is called exactly `text`.
    ///
    /// # Errors
    /// As [`Name::new_keyspace`].
    pub fn new_table(text: &str) -> Result<Self, NameError> {
        Self::word(text, TABLE_CHARS_MAX)
    }

    /// A user-defined type with exactly this name.
    ///
    /// Cassandra 5.0 accepts characters other than ASCII too, but announces the new type to all connected clients in
    /// Latin-1, which drivers cannot read: they lose their connection.
    ///
    /// # Errors
    /// As [`Name::new`], and [`NameError::NotAscii`].
    pub fn new_type(text: &str) -> Result<Self, NameError> {
        match text.chars().find(|c| !c.is_ascii()) {
            Some(found) => Err(NameError::NotAscii { found }),
            None => Self::new(text),
        }
    }

    /// The name, unquoted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether CQL needs quotes around it: it does unless it is `[a-z][a-z0-9_]*` and not a reserved word.
    #[must_use]
    pub fn needs_quotes(&self) -> bool {
        !is_folded_word(&self.0) || RESERVED.binary_search(&&*self.0).is_ok()
    }

    /// The same name, printed where a *type* is expected: there the words of the native types, which are allowed as
    /// bare names of columns, need quotes too.
    #[must_use]
    pub fn as_type(&self) -> impl fmt::Display + '_ {
        AsType(self)
    }

    fn word(text: &str, chars_max: usize) -> Result<Self, NameError> {
        if let Some(found) = text.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_') {
            return Err(NameError::NotAWord { found });
        }
        if text.len() > chars_max {
            return Err(NameError::TooLong { length: text.len(), max: chars_max });
        }
        Self::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.needs_quotes() { write_quoted(f, &self.0) } else { f.write_str(&self.0) }
    }
}

/// `[KEYSPACE.]TABLE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The keyspace. `None`: the session's.
    pub keyspace: Option<Name>,
    /// The table.
    pub table: Name,
}

impl TableName {
    /// Reads `[KEYSPACE.]TABLE` as CQL does: quoted parts are kept (dots inside quotes belong to the name, `""` is a
    /// quote), bare parts are folded to lower case. A bare reserved word, which CQL itself would refuse, is accepted as
    /// a name.
    ///
    /// # Errors
    /// A [`NameError`]: the part that is not a name, or an unclosed quote.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (first, rest) = take_part(text.trim())?;
        let Some(rest) = rest.strip_prefix('.') else {
            return match rest.chars().next() {
                None => Ok(Self { keyspace: None, table: Name::new_table(&first)? }),
                Some(found) => Err(NameError::NotAWord { found }),
            };
        };
        let (second, rest) = take_part(rest)?;
        if let Some(found) = rest.chars().next() {
            return Err(NameError::NotAWord { found });
        }
        Ok(Self { keyspace: Some(Name::new_keyspace(&first)?), table: Name::new_table(&second)? })
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.keyspace {
            write!(f, "{keyspace}.")?;
        }
        self.table.fmt(f)
    }
}

/// Why a text is not a valid name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// It is empty.
    Empty,
    /// It is longer than the databases allow.
    TooLong {
        /// Its length.
        length: usize,
        /// The longest possible.
        max: usize,
    },
    /// A keyspace, a table or a bare name has a character other than an ASCII letter, a digit or an underscore.
    NotAWord {
        /// The character.
        found: char,
    },
    /// A type's name has a character that is not ASCII.
    NotAscii {
        /// The character.
        found: char,
    },
    /// A bare name starts with a digit or an underscore.
    BadStart {
        /// The character.
        found: char,
    },
    /// A quote is not closed.
    OpenQuote,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name is empty"),
            Self::TooLong { length, max } => {
                write!(f, "a name is {length} long; the longest that CQL keeps here is {max}")
            }
            Self::NotAWord { found } => {
                write!(
                    f,
                    "{found:?} is not allowed in a name here (only letters A-Z, digits and underscores are)"
                )
            }
            Self::NotAscii { found } => {
                write!(f, "{found:?} is not allowed in the name of a type (only ASCII is)")
            }
            Self::BadStart { found } => {
                write!(f, "a name without quotes starts with a letter, not with {found:?}")
            }
            Self::OpenQuote => f.write_str("a quoted name has no closing quote"),
        }
    }
}

impl core::error::Error for NameError {}

/// The positions of the first two equal names: columns that are the same in CQL.
#[must_use]
pub fn find_duplicate(names: &[Name]) -> Option<(usize, usize)> {
    let mut seen = BTreeMap::new();
    names.iter().enumerate().find_map(|(at, name)| seen.insert(name, at).map(|before| (before, at)))
}

/// Takes one bare or quoted part off `text`: returns the name and the rest.
pub(crate) fn take_part(text: &str) -> Result<(String, &str), NameError> {
    if let Some(inner) = text.strip_prefix('"') {
        let (name, rest) = take_quoted(inner)?;
        return if name.is_empty() { Err(NameError::Empty) } else { Ok((name, rest)) };
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    match word.chars().next() {
        Some(found) if !found.is_ascii_alphabetic() => Err(NameError::BadStart { found }),
        Some(_) => Ok((word.to_ascii_lowercase(), rest)),
        None => match rest.chars().next() {
            Some(found) if found != '.' => Err(NameError::NotAWord { found }),
            _ => Err(NameError::Empty),
        },
    }
}

/// Reads to the closing quote of a name whose opening quote is already taken.
pub(crate) fn take_quoted(inner: &str) -> Result<(String, &str), NameError> {
    let mut name = String::new();
    let mut rest = inner;
    loop {
        let (before, after) = rest.split_once('"').ok_or(NameError::OpenQuote)?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Ok((name, after)),
        }
    }
}

struct AsType<'a>(&'a Name);

impl fmt::Display for AsType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.as_str();
        if TYPE_WORDS.binary_search(&text).is_ok() { write_quoted(f, text) } else { self.0.fmt(f) }
    }
}

fn is_folded_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    let mut parts = text.split('"');
    if let Some(first) = parts.next() {
        f.write_str(first)?;
    }
    for part in parts {
        f.write_str("\"\"")?;
        f.write_str(part)?;
    }
    f.write_char('"')
}

/// Words that cannot be a bare name in Cassandra 5.0 (its `reserved_keywords.txt`) or in ScyllaDB (the keyword tokens
/// of its `Cql.g` that `unreserved_keyword` does not list), plus `true` and `false`, which are separate tokens in both.
/// Sorted.
const RESERVED: &[&str] = &[
    "add",
    "allow",
    "alter",
    "and",
    "ann",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "cast",
    "columnfamily",
    "concurrency",
    "create",
    "default",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "false",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "replace",
    "revoke",
    "schema",
    "scylla_clustering_bound",
    "scylla_counter_shard_list",
    "scylla_timeuuid_list_index",
    "select",
    "set",
    "table",
    "to",
    "token",
    "true",
    "truncate",
    "unlogged",
    "unset",
    "update",
    "use",
    "using",
    "vector_search_indexing",
    "view",
    "where",
    "with",
];

/// Words that cannot be the bare name of a user-defined type: the native types, the unreserved
/// keywords that the grammars' `non_type_ident` leaves out, and the type names that both keep for
/// later. Sorted.
const TYPE_WORDS: &[&str] = &[
    "ascii",
    "bigint",
    "bitstring",
    "blob",
    "boolean",
    "byte",
    "cast",
    "complex",
    "count",
    "counter",
    "date",
    "decimal",
    "distinct",
    "double",
    "duration",
    "empty",
    "enum",
    "float",
    "frozen",
    "inet",
    "int",
    "interval",
    "json",
    "list",
    "macaddr",
    "map",
    "maxwritetime",
    "set",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "ttl",
    "tuple",
    "uuid",
    "varchar",
    "varint",
    "vector",
    "writetime",
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn printed(text: &str) -> String {
        Name::new(text).unwrap().to_string()
    }

    #[test]
    fn word_lists_are_sorted_and_distinct() {
        for list in [RESERVED, TYPE_WORDS] {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(list.iter().all(|word| is_folded_word(word)));
        }
    }

    #[test]
    fn quotes_only_where_they_must_be() {
        for bare in ["a", "a_1", "flight_date", "key", "timestamp", "int", "values", "ttl"] {
            assert_eq!(printed(bare), bare);
        }
        for (text, quoted) in [
            ("A", "\"A\""),
            ("_a", "\"_a\""),
            ("1a", "\"1a\""),
            ("a b", "\"a b\""),
            ("a\"b", "\"a\"\"b\""),
            ("\"", "\"\"\"\""),
            ("é", "\"é\""),
            ("a.b", "\"a.b\""),
            ("select", "\"select\""),
            ("true", "\"true\""),
            ("unset", "\"unset\""),
            ("describe", "\"describe\""),
        ] {
            assert_eq!(printed(text), quoted);
        }
        assert_eq!(Name::new("date").unwrap().as_type().to_string(), "\"date\"");
        assert_eq!(Name::new("address").unwrap().as_type().to_string(), "address");
    }

    #[test]
    fn limits() {
        assert_eq!(Name::new(""), Err(NameError::Empty));
        assert!(Name::new(&"x".repeat(NAME_BYTES_MAX)).is_ok());
        assert_eq!(Name::new(&"x".repeat(65_536)), Err(NameError::TooLong { length: 65_536, max: 65_535 }));
        assert!(Name::new_keyspace(&"k".repeat(48)).is_ok());
        assert_eq!(Name::new_keyspace(&"k".repeat(49)), Err(NameError::TooLong { length: 49, max: 48 }));
        assert!(Name::new_table(&"t".repeat(192)).is_ok());
        assert_eq!(Name::new_table(&"t".repeat(193)), Err(NameError::TooLong { length: 193, max: 192 }));
        assert_eq!(Name::new_table("a-b"), Err(NameError::NotAWord { found: '-' }));
        assert_eq!(Name::new_type("é"), Err(NameError::NotAscii { found: 'é' }));
        assert!(Name::new_type("A b").is_ok());
        assert_eq!(Name::new_table("é"), Err(NameError::NotAWord { found: 'é' }));
    }

    #[test]
    fn table_names_parse() {
        let parse = |text: &str| TableName::parse(text).map(|name| name.to_string());
        assert_eq!(parse("t").unwrap(), "t");
        assert_eq!(parse(" Ks.Tab ").unwrap(), "ks.tab");
        assert_eq!(parse("\"A\".\"b\"").unwrap(), "\"A\".b");
        assert_eq!(parse("order").unwrap(), "\"order\"");
        assert_eq!(parse("\"a.b\""), Err(NameError::NotAWord { found: '.' }));
        assert_eq!(parse("\"a\"\"b\""), Err(NameError::NotAWord { found: '"' }));
        assert_eq!(parse("\"a"), Err(NameError::OpenQuote));
        assert_eq!(parse(""), Err(NameError::Empty));
        assert_eq!(parse("\"\""), Err(NameError::Empty));
        assert_eq!(parse("a."), Err(NameError::Empty));
        assert_eq!(parse(".a"), Err(NameError::Empty));
        assert_eq!(parse("a.b.c"), Err(NameError::NotAWord { found: '.' }));
        assert_eq!(parse("a b"), Err(NameError::NotAWord { found: ' ' }));
        assert_eq!(parse("my-table"), Err(NameError::NotAWord { found: '-' }));
        assert_eq!(parse("1a"), Err(NameError::BadStart { found: '1' }));
    }

    #[test]
    fn duplicates_are_those_of_the_final_names() {
        let names: Vec<Name> =
            ["a", "A", "b", "a"].iter().map(|text| Name::new(text)).collect::<Result<_, _>>().unwrap();
        assert_eq!(find_duplicate(&names), Some((0, 3)));
        assert_eq!(find_duplicate(&names[..3]), None);
    }
}
