//! How text is read.

use alloc::string::String;
use alloc::vec::Vec;
use core::str::FromStr;

use marquetry_base::{Error, Limits, Result};
use marquetry_parquet::schema::TimeUnit;

use crate::parse::hex_byte;
use crate::{Columns, Scalar, TimestampFormat, Types};

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Delimited text with quotes (RFC 4180).
    Csv,
    /// Tab-separated text without quotes.
    Tsv,
    /// One JSON object per line.
    JsonLines,
}

/// The extensions of each format.
const CSV: &[&str] = &["csv", "csv.gz", "csv.bz2", "csv.zst"];
const TSV: &[&str] = &["tsv", "tab", "tsv.gz", "tsv.bz2", "tsv.zst"];
const JSON_LINES: &[&str] =
    &["jsonl", "ndjson", "jsonl.gz", "ndjson.gz", "jsonl.bz2", "ndjson.bz2", "jsonl.zst", "ndjson.zst"];

/// Lists as one, of their length together.
const fn joined<const LENGTH: usize>(lists: &[&[&'static str]]) -> [&'static str; LENGTH] {
    let mut all = [""; LENGTH];
    let (mut list, mut filled) = (0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            all[filled] = lists[list][at];
            (at, filled) = (at + 1, filled + 1);
        }
        list += 1;
    }
    all
}

impl Format {
    /// The format that a file name's extension suggests, ignoring case: `.csv`, `.tsv`, `.tab`, `.jsonl`, `.ndjson`,
    /// also before `.gz`, `.bz2` and `.zst`.
    ///
    /// ```
    /// use marquetry_text::Format;
    ///
    /// assert_eq!(Format::by_name("trips.CSV.gz"), Some(Format::Csv));
    /// assert_eq!(Format::by_name("trips.parquet"), None);
    /// ```
    pub fn by_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let compressed = [".gz", ".bz2", ".zst"];
        let name = compressed.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "csv" => Some(Format::Csv),
            "tsv" | "tab" => Some(Format::Tsv),
            "jsonl" | "ndjson" => Some(Format::JsonLines),
            _ => None,
        }
    }

    /// The file extensions of this format, without the dot, by which directories are searched for its files.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Format::Csv => CSV,
            // Tabs are often in files that are called CSV.
            Format::Tsv => const { &joined::<{ TSV.len() + 1 }>(&[TSV, &["csv"]]) },
            Format::JsonLines => JSON_LINES,
        }
    }

    /// What people call it: `CSV`, `TSV`, `JSON lines`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "CSV",
            Format::Tsv => "TSV",
            Format::JsonLines => "JSON lines",
        }
    }

    /// The extensions that tell a text of any format.
    pub const ALL_EXTENSIONS: [&'static str; CSV.len() + TSV.len() + JSON_LINES.len()] =
        joined(&[CSV, TSV, JSON_LINES]);
}

/// What may enclose fields of delimited text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quote {
    /// Double quotes in CSV, nothing in TSV.
    #[default]
    OfFormat,
    /// None: quotes are text.
    None,
    /// This character of ASCII.
    Character(u8),
}

impl FromStr for Quote {
    type Err = Error;

    /// A [`character`], or `none`.
    ///
    /// # Errors
    ///
    /// As [`character`].
    fn from_str(text: &str) -> Result<Quote> {
        match text {
            "" | "none" => Ok(Quote::None),
            _ => character(text).map(Quote::Character),
        }
    }
}

/// A delimiter or another character that a text's form is made of, as people write it: itself, `tab` or `\t`, or its code,
/// `\x01`.
///
/// ```
/// use marquetry_text::character;
///
/// assert_eq!(character("|")?, b'|');
/// assert_eq!((character("tab")?, character("\\t")?, character("\\x01")?), (9, 9, 1));
/// assert!(character("\\x0a").is_err());
/// # Ok::<(), marquetry_base::Error>(())
/// ```
///
/// # Errors
///
/// `Misuse` unless it is one character of ASCII, neither a line end nor zero.
pub fn character(text: &str) -> Result<u8> {
    let byte = match text.as_bytes() {
        b"tab" | b"\\t" => b'\t',
        [b'\\', b'x', digits @ ..] => hex_byte(digits).unwrap_or(0),
        [byte] => *byte,
        _ => 0,
    };
    match byte {
        1..=9 | 11 | 12 | 14..=127 => Ok(byte),
        _ => {
            Err(Error::misuse("it must be one ASCII character, as itself, \\t or \\x01, and not a line end"))
        }
    }
}

/// Whether the first row of delimited text names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// It does if all of its fields could be names; with [`TextOptions::schema`], if all of them are names in the schema. A first row
    /// with a repeated field, or with some names in the schema and others that are not, is ambiguous: an error.
    ///
    /// A number, a date, true or false, a null (also `\N`), and what has digits and no letter, or a control character outside
    /// quotes, is no name. Where all rows are text, nothing tells the first from the others: it is taken for names
    /// ([`Sample::is_header_guessed`](crate::read::Sample::is_header_guessed)), but not if one of its fields is empty, unless
    /// that is the first, as other programs write the index of rows.
    #[default]
    Auto,
    /// It does. A repeated name gets a number (`a#2`), and a missing one is `column` with its number.
    Yes,
    /// It is an ordinary row: columns are `column1`, `column2`, …
    No,
}

/// How text is read, whatever its format. A format ignores options that it has no use for.
///
/// ```
/// use marquetry_text::{Header, TextOptions};
///
/// let mut options = TextOptions::default();
/// options.delimiter = Some(b';');
/// options.header = Header::Yes;
/// options.nulls = vec!["NA".into()];
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TextOptions {
    /// The delimiter between fields of delimited text: an ASCII character. `None`: a tab in TSV; in CSV, whichever of
    /// comma, tab, semicolon, bar and Hive's `\x01` gives the first rows the most fields.
    pub delimiter: Option<u8>,
    /// What may enclose fields of delimited text.
    pub quote: Quote,
    /// Whether the first row of delimited text names the columns.
    pub header: Header,
    /// The texts that mean null in delimited text, unless quoted. If there are none: the empty text.
    pub nulls: Vec<String>,
    /// A line that begins with this ASCII character is no row, in any format, unless it begins inside quotes. It is counted
    /// in errors.
    pub comment: Option<u8>,
    /// Rows of delimited text may have fewer fields than the first: the others are null.
    pub short_rows: bool,
    /// The decimal mark of numbers in delimited text: an ASCII character. With a comma, `1.5` is no number.
    pub decimal: u8,
    /// How dates and timestamps of delimited text are written, besides as ISO 8601 has them.
    pub timestamp_format: Option<TimestampFormat>,
    /// The unit of inferred timestamps: a value with more digits is an error. `None`: microseconds, or nanoseconds if there
    /// are any.
    pub timestamp_unit: Option<TimeUnit>,
    /// Spaces and tabs around fields of delimited text are not part of them, except inside quotes.
    pub trim: bool,
    /// Empty lines are skipped even if rows have one field, which is then not empty.
    pub skip_empty: bool,
    /// The columns and their types. `None`: inferred.
    pub schema: Option<Columns>,
    /// Types of some columns, where those of the others are inferred. What is not in the text is ignored.
    pub types: Types,
    /// Columns, by their names, whose text is wanted as it is written, where their types are inferred. As everywhere, a name that has no
    /// exact match is looked up in lower case. What is not in the text is ignored.
    pub wanted: Vec<(String, Wanted)>,
    /// Bytes from which types are inferred, approximately. `u64::MAX`: the complete text.
    pub infer_bytes: u64,
    /// Limits of sizes: a row has at most [`Limits::value_bytes`] minus 4 KiB, so that the resulting file can be read
    /// with the same limits.
    pub limits: Limits,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            delimiter: None,
            quote: Quote::default(),
            header: Header::default(),
            nulls: Vec::new(),
            comment: None,
            short_rows: false,
            decimal: POINT,
            timestamp_format: None,
            timestamp_unit: None,
            trim: false,
            skip_empty: false,
            schema: None,
            types: Types::default(),
            wanted: Vec::new(),
            infer_bytes: 16 << 20,
            limits: Limits::DEFAULT,
        }
    }
}

/// What a column's text is wanted for, by whoever takes its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// For text: it stays as it is written, also where it looks like a number, a time, `TRUE`.
    Text,
    /// For an exact number: where there are fractions or exponents, which would make it a DOUBLE, it is text, digit by digit. As for
    /// numbers, empty quotes are null there.
    Exact,
}

/// Whether a column is text instead of what was inferred.
pub(crate) fn is_wanted_as_text(wanted: &[(String, Wanted)], name: &str, inferred: Scalar) -> bool {
    let of = |name: &str| wanted.iter().find(|(known, _)| known == name).map(|(_, wanted)| *wanted);
    match of(name).or_else(|| of(&name.to_ascii_lowercase())) {
        Some(Wanted::Text) => inferred != Scalar::Text,
        Some(Wanted::Exact) => inferred == Scalar::Double,
        None => false,
    }
}

/// The usual decimal mark.
pub(crate) const POINT: u8 = b'.';
/// Bytes of a page or a value besides those of the row that it comes from.
const AROUND_BYTES: u64 = 4 << 10;
/// The longest possible row: positions in a row, and in the piece after it, have 32 bits.
const ROW_BYTES_MAX: u64 = 2 << 30;

impl TextOptions {
    /// Checks that the options are valid, and compatible with each other.
    ///
    /// # Errors
    ///
    /// `Misuse`, naming the option.
    pub fn check(&self, format: Format) -> Result<()> {
        let is_character = |byte: u8| matches!(byte, 1..=9 | 11 | 12 | 14..=127);
        let needed = "it must be one ASCII character, and not a line end";
        if self.comment.is_some_and(|comment| !is_character(comment)) {
            return Err(Error::option("comment", needed));
        }
        if self.comment == Some(b'{') && format == Format::JsonLines {
            return Err(Error::option("comment", "every line of JSON begins with it"));
        }
        let Some((delimiter, quote)) = self.separators(format) else { return Ok(()) };
        if delimiter.is_some_and(|delimiter| !is_character(delimiter)) {
            return Err(Error::option("delimiter", needed));
        }
        if quote.is_some_and(|quote| !is_character(quote)) {
            return Err(Error::option("quote", needed));
        }
        if delimiter.is_some() && delimiter == quote {
            return Err(Error::option("delimiter", "it is the same character as the quote"));
        }
        if self.comment.is_some() && (self.comment == delimiter || self.comment == quote) {
            return Err(Error::option("comment", "it is the same character as the delimiter or the quote"));
        }
        if !matches!(self.decimal, b'!'..=b'~')
            || matches!(self.decimal, b'0'..=b'9' | b'-' | b'+' | b'e' | b'E')
        {
            return Err(Error::option(
                "decimal",
                "it must be one ASCII character that is not part of numbers",
            ));
        }
        if quote == Some(self.decimal) || (delimiter == Some(self.decimal) && format == Format::Tsv) {
            return Err(Error::option("decimal", "it is the same character as the quote or the delimiter"));
        }
        Ok(())
    }

    /// The delimiter between fields, if known, and the quote around them. `None` for JSON lines.
    pub(crate) fn separators(&self, format: Format) -> Option<(Option<u8>, Option<u8>)> {
        let is_tsv = match format {
            Format::Csv => false,
            Format::Tsv => true,
            Format::JsonLines => return None,
        };
        let quote = match self.quote {
            Quote::OfFormat => (!is_tsv).then_some(b'"'),
            Quote::None => None,
            Quote::Character(quote) => Some(quote),
        };
        Some((self.delimiter.or(is_tsv.then_some(b'\t')), quote))
    }

    /// Whether a column is known by this name: its type is given, or its text is wanted.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        let is_wanted = |name: &str| self.wanted.iter().any(|(known, _)| known == name);
        self.types.of(name).is_some() || is_wanted(name) || is_wanted(&name.to_ascii_lowercase())
    }

    /// Maximum bytes of a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.limits
            .value_bytes
            .min(self.limits.page_bytes)
            .min(ROW_BYTES_MAX)
            .saturating_sub(AROUND_BYTES)
            .max(1)
    }
}
