//! How SSTables are read as a table.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_io::store::{LocalFiles, Store};
use marquetry_scylla::bridge::mutations::MutationMapping;

use crate::Cancel;

/// Bytes of Data.db that are worth a piece. Opening one takes a look at the index of each SSTable.
const PIECE_BYTES: u64 = 32 << 20;

/// How SSTables are read as a table.
///
/// ```
/// use marquetry_tables::sstables::{Definition, SstablesOptions, TokenRange};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut options = SstablesOptions::default();
/// options.definition = Definition::Text("CREATE TABLE ks.t (id int PRIMARY KEY, name text)".to_string());
/// options.tokens = Some("0:".parse()?);
/// assert!(options.tokens.is_some_and(|tokens: TokenRange| tokens.contains(1) && !tokens.contains(0)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SstablesOptions {
    /// Where the files are.
    pub store: Arc<dyn Store>,
    /// What the table's key columns are called, and which columns it has.
    pub definition: Definition,
    /// How writes become rows.
    pub mapping: MutationMapping,
    /// The time of the logical mapping: seconds since 1970. `None`: now.
    pub at: Option<u32>,
    /// Only partitions with these tokens. `None`: all.
    pub tokens: Option<TokenRange>,
    /// Bytes of Data.db that are worth a piece of their own, which is read beside the others.
    pub piece_bytes: u64,
    /// Limits on sizes in the files.
    pub limits: Limits,
    /// Cancels what may take long.
    pub cancel: Cancel,
}

impl Default for SstablesOptions {
    fn default() -> SstablesOptions {
        SstablesOptions {
            store: Arc::new(LocalFiles),
            definition: Definition::default(),
            mapping: MutationMapping::Full,
            at: None,
            tokens: None,
            piece_bytes: PIECE_BYTES,
            limits: Limits::DEFAULT,
            cancel: Cancel::new(),
        }
    }
}

/// The time of the [logical mapping](SstablesOptions::at), as people write it: in ISO 8601, or as seconds since 1970.
///
/// # Errors
///
/// `Misuse` for other text, and times that local deletion times cannot have.
pub fn time_at(text: &str) -> Result<u32> {
    let seconds = marquetry_text::unix_seconds(text).and_then(|seconds| u32::try_from(seconds).ok());
    let wrong =
        || format!("'{text}' is not a time such as 2024-02-29T12:00:00Z, or one before 1970 or after 2106");
    seconds.filter(|seconds| *seconds != u32::MAX).ok_or_else(|| Error::option("at", wrong()))
}

/// Where the definition of a table is: SSTables do not have the names of key columns, nor do they say which columns were dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Definition {
    /// A `schema.cql` beside the SSTables, or in one of the four directories above them; there also in a directory `meta`. Without one,
    /// key columns are called `pk0`, …, `ck0`, ….
    #[default]
    Beside,
    /// None.
    Missing,
    /// A file of CQL statements, the table's `CREATE TABLE` among them.
    File(PathBuf),
    /// CQL statements.
    Text(String),
}

/// The form that people write: `none`; a text that begins with `CREATE` or `USE`; the path of a file.
impl FromStr for Definition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Definition> {
        let word = text.trim_start().split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        Ok(match &*word.to_ascii_lowercase() {
            "none" if text.trim() == word => Definition::Missing,
            "create" | "use" if text.contains(char::is_whitespace) => Definition::Text(text.to_owned()),
            _ if text.is_empty() => return Err(Error::option("schema", "the name of no file")),
            _ => Definition::File(PathBuf::from(text)),
        })
    }
}

/// Tokens of partitions: those after a start, up to an end; from the greatest on to the least where the end comes first, as
/// in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRange {
    /// The last token before the range. `None`: it begins with the least.
    pub after: Option<i64>,
    /// The last token of the range. `None`: it ends with the greatest.
    pub end: Option<i64>,
}

impl TokenRange {
    /// Whether a token is in the range.
    pub fn contains(self, token: i64) -> bool {
        let is_after = self.after.is_none_or(|after| token > after);
        let is_before = self.end.is_none_or(|end| token <= end);
        if self.wraps() { is_after || is_before } else { is_after && is_before }
    }

    /// The same as ranges that do not wrap, in the order of partitions.
    pub(super) fn ranges(self) -> Vec<RangeInclusive<i64>> {
        let after = self.after.map_or(Some(i64::MIN), |after| after.checked_add(1));
        let start = after.map(|start| start..=i64::MAX);
        let end = i64::MIN..=self.end.unwrap_or(i64::MAX);
        match start {
            Some(start) if self.wraps() => vec![end, start],
            Some(start) => vec![*start.start()..=*end.end()],
            None if self.wraps() => vec![end],
            None => Vec::new(),
        }
    }

    /// It goes on with the least token after the greatest.
    fn wraps(self) -> bool {
        matches!((self.after, self.end), (Some(after), Some(end)) if end <= after)
    }
}

/// The form that is parsed.
impl fmt::Display for TokenRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |token: Option<i64>| token.map_or_else(String::new, |token| token.to_string());
        write!(f, "{}:{}", shown(self.after), shown(self.end))
    }
}

/// `A:B`, as in `WHERE token(k) > A AND token(k) <= B`; either may be missing.
impl FromStr for TokenRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<TokenRange> {
        let wrong = || {
            let what = format!("'{text}' is not two tokens, such as -100:100, 0: or :0");
            Error::option("token_range", what)
        };
        let (after, end) = text.split_once(':').ok_or_else(wrong)?;
        let token = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| wrong()),
        };
        Ok(TokenRange { after: token(after)?, end: token(end)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_tokens() {
        let range = |text: &str| text.parse::<TokenRange>().unwrap();
        let tokens = |text: &str| [-9, -5, 0, 5, 9].map(|token| range(text).contains(token));
        assert_eq!(tokens("-5:5"), [false, false, true, true, false]);
        assert_eq!(tokens("0:"), [false, false, false, true, true]);
        assert_eq!(tokens(" : -5"), [true, true, false, false, false]);
        assert_eq!(tokens(":"), [true; 5]);
        assert_eq!([":", "-5:5", "0:"].map(|text| range(text).to_string()), [":", "-5:5", "0:"]);
        // Around the ring.
        assert_eq!(tokens("5:-5"), [true, true, false, false, true]);
        let all = |text: &str| range(text).ranges();
        assert_eq!(all("-5:5"), [-4..=5]);
        assert_eq!(all("5:-5"), [i64::MIN..=-5, 6..=i64::MAX]);
        assert_eq!(all(":"), [i64::MIN..=i64::MAX]);
        assert_eq!(all("9223372036854775807:"), []);
        assert_eq!(all("9223372036854775807:-5"), [i64::MIN..=-5]);
        for wrong in ["", "5", "a:b", "1:2:3", "1.5:2", "9223372036854775808:"] {
            assert!(wrong.parse::<TokenRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(time_at("1970-01-01T00:01:00Z"), Ok(60));
        assert_eq!(time_at("1700000000"), Ok(1_700_000_000));
        for wrong in ["1969-12-31", "-1", "2200-01-01", "4294967295", "now"] {
            assert!(time_at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn definitions_as_people_write_them() {
        let parsed = |text: &str| text.parse::<Definition>().unwrap();
        assert_eq!(parsed("none"), Definition::Missing);
        assert_eq!(parsed("schema.cql"), Definition::File("schema.cql".into()));
        assert_eq!(parsed("create"), Definition::File("create".into()));
        let text = " CREATE TABLE t (a int PRIMARY KEY)";
        assert_eq!(parsed(text), Definition::Text(text.to_owned()));
        assert!("".parse::<Definition>().is_err());
    }
}
