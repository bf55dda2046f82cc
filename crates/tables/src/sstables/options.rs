//! How SSTables are read as a table.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_io::store::{LocalFiles, Store};

use crate::Cancel;

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
    /// Only partitions with these tokens. `None`: all.
    pub tokens: Option<TokenRange>,
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
            tokens: None,
            limits: Limits::DEFAULT,
            cancel: Cancel::new(),
        }
    }
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

    /// Whether any token of another range, from the least to the greatest, may be in the range.
    pub(super) fn overlaps(self, tokens: &RangeInclusive<i64>) -> bool {
        if self.wraps() {
            return self.contains(*tokens.start()) || self.contains(*tokens.end());
        }
        self.after.is_none_or(|after| *tokens.end() > after)
            && self.end.is_none_or(|end| *tokens.start() <= end)
    }

    /// It goes on with the least token after the greatest.
    fn wraps(self) -> bool {
        matches!((self.after, self.end), (Some(after), Some(end)) if end <= after)
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
        // Around the ring.
        assert_eq!(tokens("5:-5"), [true, true, false, false, true]);
        let overlaps = |text: &str| [-9..=-6, -6..=6, 6..=9].map(|tokens| range(text).overlaps(&tokens));
        assert_eq!(overlaps("-5:5"), [false, true, false]);
        assert_eq!(overlaps("7:"), [false, false, true]);
        assert_eq!(overlaps("8:-8"), [true, false, true]);
        assert_eq!(overlaps(":"), [true; 3]);
        for wrong in ["", "5", "a:b", "1:2:3", "1.5:2", "9223372036854775808:"] {
            assert!(wrong.parse::<TokenRange>().is_err(), "{wrong}");
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
