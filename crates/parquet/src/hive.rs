//! Columns in the names of directories: `year=2024/month=2/data.parquet`, as Hive lays out tables.
//!
//! Source: Hive's layout of partitions has no specification. Names and values are percent-encoded, and a null has a
//! name of its own, as Hive, Spark and DuckDB write them. The type of a column follows from its values alone: see
//! [`HiveType::of`].

use alloc::string::{String, ToString};

use marquetry_base::{Buffer, Bytes, Error, Result, calendar};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::batch::{ByteArrays, Values};
use crate::schema::{Column, LogicalType, PhysicalType};

/// The name that means null.
pub const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// A column and its value, parsed from a directory's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The column.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

impl Partition {
    /// Parses a directory's name of the form `name=value`. `None` for any other name.
    ///
    /// # Errors
    ///
    /// `Corrupt` for percent-encoded bytes that are not UTF-8.
    pub fn of(directory: &str) -> Result<Option<Partition>> {
        let Some((name, value)) = directory.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Ok(None);
        };
        let decode = |text: &str| match percent_decode_str(text).decode_utf8() {
            Ok(text) => Ok(String::from(text)),
            Err(_) => Err(Error::corrupt(alloc::format!(
                "the directory {directory:?} has bytes that are not UTF-8"
            ))),
        };
        let value = if value == NULL { None } else { Some(decode(value)?) };
        Ok(Some(Partition { name: decode(name)?, value }))
    }

    /// The directory's name, the inverse of [`Partition::of`]. It never begins with a dot.
    pub fn directory(&self) -> String {
        let name = encode(&self.name);
        // Readers of directories ignore names that begin with a dot.
        let name = match name.strip_prefix('.') {
            Some(rest) => alloc::format!("%2E{rest}"),
            None => name,
        };
        let value = match self.value.as_deref() {
            None => NULL.to_string(),
            // The text that is the name of null is no null.
            Some(NULL) => alloc::format!("%5F{}", &NULL[1..]),
            Some(value) => encode(value),
        };
        alloc::format!("{name}={value}")
    }
}

/// Characters that Hive and Spark encode.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'\'')
    .add(b'*')
    .add(b'/')
    .add(b':')
    .add(b'=')
    .add(b'?')
    .add(b'\\')
    .add(b'{')
    .add(b'[')
    .add(b']')
    .add(b'^');

/// Text as part of a directory's name. Text that is not ASCII stays as it is.
fn encode(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii()) {
        let ascii = part.trim_end_matches(|c: char| !c.is_ascii());
        out.extend(utf8_percent_encode(ascii, ENCODED));
        out.push_str(&part[ascii.len()..]);
    }
    out
}

/// The type of a partition column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiveType {
    /// INT64.
    Integer,
    /// INT32 DATE.
    Date,
    /// BYTE_ARRAY STRING.
    Text,
}

impl HiveType {
    /// The type of a column with these values: integers if all look as INT64 is printed (`7`, but neither `07` nor
    /// `+7`, which would lose something); dates if all have the form `2024-02-29`; otherwise text. DuckDB does the
    /// same.
    pub fn of<'a>(values: impl Iterator<Item = &'a str> + Clone) -> HiveType {
        if values.clone().next().is_none() {
            HiveType::Text
        } else if values.clone().all(|value| integer(value).is_some()) {
            HiveType::Integer
        } else if values.clone().all(|value| date(value).is_some()) {
            HiveType::Date
        } else {
            HiveType::Text
        }
    }

    /// The column of this type, of this name.
    pub fn column(self, name: &str) -> Column {
        let (physical_type, logical_type) = match self {
            HiveType::Integer => (PhysicalType::Int64, None),
            HiveType::Date => (PhysicalType::Int32, Some(LogicalType::Date)),
            HiveType::Text => (PhysicalType::ByteArray, Some(LogicalType::String)),
        };
        Column { name: name.into(), physical_type, logical_type }
    }

    /// A value in the form that [`ConformReader`](crate::read::ConformReader) expects for constants. `None` if it is
    /// not of this type.
    pub fn value(self, text: &str) -> Option<Values> {
        Some(match self {
            HiveType::Integer => Values::Int64(Buffer::from(alloc::vec![integer(text)?])),
            HiveType::Date => Values::Int32(Buffer::from(alloc::vec![date(text)?])),
            HiveType::Text => {
                let bytes = Bytes::copy_from_slice(text.as_bytes());
                Values::ByteArray(ByteArrays::from_lengths(bytes, [text.len()]).ok()?)
            }
        })
    }
}

/// An integer as it is printed.
fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = !digits.starts_with(['0', '+']) || text == "0";
    text.parse().ok().filter(|_| is_canonical)
}

/// The day of a date of the form `2024-02-29`.
fn date(text: &str) -> Option<i32> {
    let is_form = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    let part = |range: core::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let days = calendar::days(part(0..4)?, part(5..7)?, part(8..10)?)?;
    i32::try_from(days).ok().filter(|_| is_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories() {
        let of = |name| Partition::of(name).unwrap().map(|found| (found.name, found.value));
        let found = |name: &str, value: Option<&str>| Some((name.into(), value.map(Into::into)));
        assert_eq!(of("year=2024"), found("year", Some("2024")));
        assert_eq!(of("a=b=c"), found("a", Some("b=c")));
        assert_eq!(of("city=New%20York%2FNY"), found("city", Some("New York/NY")));
        assert_eq!(of("k%3D=x"), found("k=", Some("x")));
        assert_eq!(of("a=__HIVE_DEFAULT_PARTITION__"), found("a", None));
        assert_eq!(of("a="), found("a", Some("")));
        assert_eq!(of("a=100%"), found("a", Some("100%")));
        assert_eq!((of("data"), of("=x"), of("")), (None, None, None));
        assert!(Partition::of("a=%FF").unwrap_err().message().contains("not UTF-8"));
    }

    #[test]
    fn directories_are_read_as_what_they_were_written_from() {
        let directory = |name: &str, value: Option<&str>| {
            let partition = Partition { name: name.into(), value: value.map(Into::into) };
            let directory = partition.directory();
            assert_eq!(Partition::of(&directory).unwrap(), Some(partition), "{directory}");
            assert!(!directory.contains('/') && !directory.starts_with('.'), "{directory}");
            directory
        };
        assert_eq!(directory("year", Some("2024")), "year=2024");
        assert_eq!(directory("city", Some("New York/NY: 100%=é")), "city=New York%2FNY%3A 100%25%3Dé");
        assert_eq!(directory("a", None), "a=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(directory("a", Some(NULL)), "a=%5F_HIVE_DEFAULT_PARTITION__");
        assert_eq!(directory("a", Some("")), "a=");
        assert_eq!(directory("._a=b", Some("..")), "%2E_a%3Db=..");
        directory("é", Some("a\u{1}\n\u{7f}é\u{80}z日本"));
    }

    #[test]
    fn types_lose_nothing() {
        let of = |values: &[&str]| HiveType::of(values.iter().copied());
        assert_eq!(of(&["1", "-20", "0"]), HiveType::Integer);
        for other in ["01", "+1", "-0", "", " 1", "1.5", "9223372036854775808", "1e3", "-"] {
            assert_eq!(of(&["1", other]), HiveType::Text, "{other:?}");
        }
        assert_eq!(of(&["2024-02-29", "0001-01-01"]), HiveType::Date);
        for other in ["2023-02-29", "2024-2-1", "2024-02-290", "+024-02-01", "20240-2-1", "1"] {
            assert_eq!(of(&["2024-02-28", other]), HiveType::Text, "{other:?}");
        }
        assert_eq!(of(&[]), HiveType::Text);
        assert_eq!(HiveType::Integer.value("-20"), Some(Values::Int64(alloc::vec![-20].into())));
        assert_eq!(HiveType::Date.value("1970-01-02"), Some(Values::Int32(alloc::vec![1].into())));
        let Some(Values::ByteArray(text)) = HiveType::Text.value("a longer text") else { panic!() };
        assert_eq!(text.get(0), b"a longer text");
        assert_eq!(HiveType::Integer.value("x"), None);
    }
}
