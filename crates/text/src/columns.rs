//! Columns and their types, written as in CQL.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use marquetry_base::{Error, ErrorKind, Result};
use marquetry_parquet::schema::{FieldDef, FieldType, Leaf, Schema, TimeUnit};

use crate::scalar::{FIXED_BYTES_MAX, Scalar};

/// The columns of a text, in order: given by the caller, or inferred from the text.
///
/// ```
/// use marquetry_text::Columns;
///
/// let columns: Columns = "id bigint, \"a name\" text, tags list<text>".parse()?;
/// assert_eq!(columns.to_string(), "id bigint, \"a name\" text, tags list<text>");
/// assert_eq!(columns.schema()?.leaves().len(), 3);
/// assert!("id integer".parse::<Columns>().is_err());
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns(Vec<Column>);

/// A column, or a field of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type; any value may be null.
    pub column_type: ColumnType,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnType {
    /// A value.
    Scalar(Scalar),
    /// Elements of one type.
    List(Box<ColumnType>),
    /// Keys, which are written as text, and values.
    Map(Scalar, Box<ColumnType>),
    /// Fields.
    Struct(Vec<Column>),
}

/// Maximum nesting of types: as deep as a schema may be, where each list takes two levels.
const NESTING_MAX: usize = 30;
/// Maximum bytes of a name, and of a path of names: what readers of Parquet accept by default (64 KiB, see
/// [`Limits::structure_bytes`](marquetry_base::Limits)), minus the rest of a structure.
pub(crate) const NAME_BYTES_MAX: usize = 65_000;

impl Columns {
    /// The columns.
    pub fn as_slice(&self) -> &[Column] {
        &self.0
    }

    /// Returns a Parquet schema of these columns. Every field is nullable, except keys of maps.
    ///
    /// # Errors
    ///
    /// `Conversion` for what a Parquet schema cannot hold: types that are nested too deeply, a struct without fields,
    /// and names whose path is longer than 65,000 bytes, which readers refuse by default.
    pub fn schema(&self) -> Result<Schema> {
        let fields: Vec<FieldDef> = self.0.iter().map(Column::field).collect();
        let schema = Schema::of_fields(&fields).map_err(|error| {
            // Other limits would not allow more levels.
            let place = error.place().clone();
            Error::new(ErrorKind::Conversion, error.message().to_string()).at(|at| *at = place)
        })?;
        // Thousands of leaves may be below a long name: none of their paths is put together before one is too long.
        let bytes_of = |leaf: &Leaf| {
            let (mut bytes, mut at) = (0, leaf.node);
            while let Some(node) = schema.nodes().get(at).filter(|_| at != 0) {
                (bytes, at) = (bytes + node.name.len() + 1, node.parent);
            }
            bytes - 1
        };
        if let Some(leaf) = schema.leaves().iter().find(|leaf| bytes_of(leaf) > NAME_BYTES_MAX) {
            let path = schema.path(leaf.node);
            let (bytes, start) = (path.len(), path.chars().take(60).collect::<String>());
            let what =
                format!("the path of a column has {bytes} bytes, more than {NAME_BYTES_MAX}: {start}…");
            return Err(Error::conversion(what));
        }
        Ok(schema)
    }
}

impl From<Vec<Column>> for Columns {
    fn from(columns: Vec<Column>) -> Columns {
        Columns(columns)
    }
}

impl FromStr for Columns {
    type Err = Error;

    /// Parses `id bigint, "a name" text, tags list<text>`.
    ///
    /// Types are CQL's: `boolean`, `tinyint`, `smallint`, `int`, `bigint`, `float`, `double`, `text`, `blob`, `uuid`,
    /// `date`, `time`, `timestamp` (in milliseconds), and besides them `decimal(p, s)`, `timestamp(6)` and
    /// `timestamp(9)`, `localtimestamp(3)`, `(6)` and `(9)`, `list<…>`, `map<…, …>` and `struct<name type, …>`. Where CQL
    /// has no word, Parquet's is taken: `uint8` to `uint64`, `float16`, `time(3)` and `time(6)`, `utctime(9)`, `interval`,
    /// `int96`, `json`, `bson`, `enum`, `fixed(16)`, and `unknown`, which has only nulls.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `schema`, with what was found in place of what was expected.
    fn from_str(text: &str) -> Result<Columns> {
        let mut parser = Parser { rest: text };
        let columns = parser.fields(0).and_then(|columns| {
            parser.skip_space();
            if parser.rest.is_empty() { Ok(columns) } else { Err(parser.unexpected("a comma")) }
        });
        columns.map(Columns).map_err(|what| Error::option("schema", what))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_fields(&self.0, f)
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnType::Scalar(scalar) => scalar.fmt(f),
            ColumnType::List(element) => write!(f, "list<{element}>"),
            ColumnType::Map(key, value) => write!(f, "map<{key}, {value}>"),
            ColumnType::Struct(fields) => {
                f.write_str("struct<")?;
                write_fields(fields, f)?;
                f.write_str(">")
            }
        }
    }
}

fn write_fields(fields: &[Column], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (number, Column { name, column_type }) in fields.iter().enumerate() {
        if number > 0 {
            f.write_str(", ")?;
        }
        match name.is_empty() || name.contains(is_end_of_name) {
            true => write!(f, "\"{}\" {column_type}", name.replace('"', "\"\""))?,
            false => write!(f, "{name} {column_type}")?,
        }
    }
    Ok(())
}

impl Column {
    /// The field that it is in a schema.
    fn field(&self) -> FieldDef {
        FieldDef::new(&*self.name, self.column_type.field_type())
    }
}

impl ColumnType {
    fn field_type(&self) -> FieldType {
        let below = |name: &str, inner: &ColumnType| FieldDef::new(name, inner.field_type());
        match self {
            ColumnType::Scalar(scalar) => scalar.field_type(),
            ColumnType::List(element) => FieldType::List(Box::new(below("element", element))),
            ColumnType::Map(key, value) => {
                let key = FieldDef::new("key", key.field_type()).required();
                FieldType::Map(Box::new(key), Some(Box::new(below("value", value))))
            }
            ColumnType::Struct(fields) => FieldType::Struct(fields.iter().map(Column::field).collect(), None),
        }
    }
}

/// Whether an unquoted name ends before this character.
fn is_end_of_name(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | '<' | '>' | '(' | ')' | '"')
}

/// Reads names and types, from the start of what is left.
pub(crate) struct Parser<'a> {
    pub(crate) rest: &'a str,
}

impl Parser<'_> {
    fn fields(&mut self, depth: usize) -> Result<Vec<Column>, String> {
        let (mut fields, mut names) = (Vec::new(), BTreeSet::new());
        loop {
            let name = self.name()?;
            if name.len() > NAME_BYTES_MAX {
                return Err(format!("a name of {} bytes, more than {NAME_BYTES_MAX}", name.len()));
            }
            if !names.insert(name.clone()) {
                return Err(format!("the name {name:?} appears twice"));
            }
            let column_type = self.column_type(depth)?;
            fields.push(Column { name, column_type });
            // The last one may be followed by a comma, as is usual in files.
            if !self.take(',') || self.peek().is_none_or(|next| next == '>') {
                return Ok(fields);
            }
        }
    }

    /// A name: in double quotes, or up to a space.
    fn name(&mut self) -> Result<String, String> {
        self.skip_space();
        if let Some(name) = self.quoted()? {
            return Ok(name);
        }
        let (name, rest) = self.rest.split_at(self.rest.find(is_end_of_name).unwrap_or(self.rest.len()));
        if name.is_empty() {
            return Err(self.unexpected("a name"));
        }
        self.rest = rest;
        Ok(name.to_string())
    }

    /// A name in double quotes, which are doubled inside. `None` if there is no quote.
    pub(crate) fn quoted(&mut self) -> Result<Option<String>, String> {
        let Some(mut inner) = self.rest.strip_prefix('"') else { return Ok(None) };
        let mut name = String::new();
        loop {
            let (before, after) = inner.split_once('"').ok_or("a quote is not closed")?;
            name.push_str(before);
            match after.strip_prefix('"') {
                Some(more) => {
                    name.push('"');
                    inner = more;
                }
                None => {
                    self.rest = after;
                    return Ok(Some(name));
                }
            }
        }
    }

    pub(crate) fn column_type(&mut self, depth: usize) -> Result<ColumnType, String> {
        if depth > NESTING_MAX {
            return Err(format!("types are nested more than {NESTING_MAX} deep"));
        }
        self.skip_space();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let word = word.to_ascii_lowercase();
        if word.is_empty() {
            return Err(self.unexpected("a type"));
        }
        self.rest = rest;
        Ok(match &*word {
            "list" | "set" => {
                self.expect('<')?;
                let element = self.column_type(depth + 1)?;
                self.expect('>')?;
                ColumnType::List(Box::new(element))
            }
            "frozen" => {
                self.expect('<')?;
                let inner = self.column_type(depth + 1)?;
                self.expect('>')?;
                inner
            }
            "map" => {
                self.expect('<')?;
                let key = match self.column_type(depth + 1)? {
                    ColumnType::Scalar(key) if key != Scalar::Unknown => key,
                    _ => return Err("the keys of a map must have a scalar type, such as text".to_string()),
                };
                self.expect(',')?;
                let value = self.column_type(depth + 1)?;
                self.expect('>')?;
                ColumnType::Map(key, Box::new(value))
            }
            "struct" => {
                self.expect('<')?;
                let fields = self.fields(depth + 1)?;
                self.expect('>')?;
                ColumnType::Struct(fields)
            }
            _ => ColumnType::Scalar(self.scalar(&word)?),
        })
    }

    fn scalar(&mut self, word: &str) -> Result<Scalar, String> {
        Ok(match word {
            "boolean" => Scalar::Boolean,
            "tinyint" => Scalar::Integer(8),
            "smallint" => Scalar::Integer(16),
            "int" => Scalar::Integer(32),
            "bigint" => Scalar::Integer(64),
            "float" => Scalar::Float,
            "double" => Scalar::Double,
            "text" | "varchar" | "ascii" => Scalar::Text,
            "blob" => Scalar::Blob,
            "date" => Scalar::Date,
            "float16" => Scalar::Float16,
            "enum" => Scalar::Enum,
            "json" => Scalar::Json,
            "bson" => Scalar::Bson,
            "int96" => Scalar::Int96,
            "interval" => Scalar::Interval,
            "time" | "utctime" => {
                let unit = self.unit(TimeUnit::Nanos, word)?;
                Scalar::Time { unit, is_instant: word == "utctime" }
            }
            "fixed" => match self.numbers()?[..] {
                [bytes @ 1..=FIXED_BYTES_MAX] => Scalar::Fixed(u16::try_from(bytes).unwrap_or(u16::MAX)),
                [bytes] if bytes > 0 => {
                    return Err(format!("fixed takes at most {FIXED_BYTES_MAX} bytes; blob takes more"));
                }
                _ => return Err("fixed needs its number of bytes: fixed(16)".into()),
            },
            "uuid" | "timeuuid" => Scalar::Uuid,
            "unknown" => Scalar::Unknown,
            // CQL's own is in milliseconds.
            "timestamp" | "localtimestamp" => {
                let unit = self.unit(TimeUnit::Millis, word)?;
                Scalar::Timestamp { unit, is_instant: word == "timestamp" }
            }
            "decimal" => match self.numbers()?[..] {
                [precision @ 1..=38, scale] if scale <= precision => Scalar::Decimal { precision, scale },
                [precision @ 1..=38] => Scalar::Decimal { precision, scale: 0 },
                _ => {
                    return Err(
                        "a decimal needs its number of digits, at most 38, and of those after the point: decimal(12, 2)"
                            .into(),
                    );
                }
            },
            "duration" => {
                return Err("duration is not a type of a Parquet file; interval and text are".into());
            }
            "varint" | "inet" | "counter" | "tuple" | "vector" => {
                return Err(format!("{word} is not a type of a Parquet file; text can hold it"));
            }
            other => {
                let unsigned = other.strip_prefix("uint").and_then(|bits| bits.parse().ok());
                if let Some(bits @ (8 | 16 | 32 | 64)) = unsigned {
                    return Ok(Scalar::Unsigned(bits));
                }
                return Err(format!(
                    "there is no type {other}; known types are boolean, tinyint, smallint, int, bigint, float, double, decimal(p, s), text, \
                     blob, uuid, date, time, timestamp, timestamp(6), timestamp(9), localtimestamp(3, 6 or 9), list<…>, map<…, …> and \
                     struct<name type, …>; and Parquet's uint8, uint16, uint32, uint64, float16, time(3 or 6), utctime(3, 6 or 9), interval, \
                     int96, json, bson, enum, fixed(bytes) and unknown (nulls)"
                ));
            }
        })
    }

    /// The unit that a number of digits after the second says, if it is said.
    fn unit(&mut self, usual: TimeUnit, word: &str) -> Result<TimeUnit, String> {
        match self.numbers()?[..] {
            [] => Ok(usual),
            [3] => Ok(TimeUnit::Millis),
            [6] => Ok(TimeUnit::Micros),
            [9] => Ok(TimeUnit::Nanos),
            _ => Err(format!("{word} takes 3, 6 or 9 digits after the second: {word}(6)")),
        }
    }

    /// Numbers in parentheses; empty if there are none.
    fn numbers(&mut self) -> Result<Vec<u32>, String> {
        let mut numbers = Vec::new();
        if !self.take('(') {
            return Ok(numbers);
        }
        loop {
            self.skip_space();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            numbers.push(digits.parse().map_err(|_| self.unexpected("a number"))?);
            self.rest = rest;
            if !self.take(',') {
                self.expect(')')?;
                return Ok(numbers);
            }
        }
    }

    pub(crate) fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    pub(crate) fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest.chars().next()
    }

    pub(crate) fn take(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        is_there
    }

    pub(crate) fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected(&format!("'{wanted}'"))) }
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.rest.chars().take(20).collect();
        match found.is_empty() {
            true => format!("{wanted} is missing at the end"),
            false => format!("{wanted} is expected before {found:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        text.parse::<Columns>().map_or_else(|error| error.message().to_string(), |it| it.to_string())
    }

    #[test]
    fn types_as_people_write_them() {
        assert_eq!(read("a bigint"), "a bigint");
        assert_eq!(read(" Id BIGINT ,\n \"a \"\"b\"\"\" VarChar,\n"), "Id bigint, \"a \"\"b\"\"\" text");
        assert_eq!(
            read("t timestamp, u timestamp(6), v localtimestamp ( 9 )"),
            "t timestamp(3), u timestamp(6), v localtimestamp(9)"
        );
        assert_eq!(read("d decimal(12,2), e decimal(5)"), "d decimal(12, 2), e decimal(5, 0)");
        let others = "a uint8, b uint64, c float16, d time, e time(3), f utctime(9), g interval, h int96, i json, j bson, k enum, l fixed(3), m unknown";
        assert_eq!(read(others), others);
        assert_eq!(
            read("l list<frozen<set<int>>>, m map<text, double>, s struct<a int, b struct<c text>>"),
            "l list<list<int>>, m map<text, double>, s struct<a int, b struct<c text>>"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("", "a name is missing at the end"),
            ("a", "a type is missing at the end"),
            ("a int b text", "a comma is expected before \"b text\""),
            ("a int, a text", "the name \"a\" appears twice"),
            ("a list<int", "'>' is missing at the end"),
            ("a varint", "varint is not a type of a Parquet file"),
            ("a integer", "there is no type integer; known types are boolean"),
            ("a decimal", "a decimal needs its number of digits"),
            ("a decimal(2, 3)", "a decimal needs its number of digits"),
            ("a timestamp(4)", "3, 6 or 9 digits"),
            ("a uint24", "there is no type uint24"),
            ("a fixed", "fixed needs its number of bytes"),
            ("a fixed(100000)", "fixed takes at most 4096 bytes"),
            ("\"a int", "a quote is not closed"),
            ("m map<list<int>, int>", "the keys of a map"),
            ("m map<unknown, int>", "the keys of a map"),
        ] {
            assert!(read(text).contains(said), "{text}: {}", read(text));
        }
        assert!(read(&format!("a {}int", "list<".repeat(100_000))).contains("nested"));
    }
}
