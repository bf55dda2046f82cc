//! How SSTables are read as a table.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_io::store::{LocalFiles, Store};
use marquetry_scylla::bridge::mutations::MutationMapping;

use crate::{Cancel, TokenRange};

/// Bytes of Data.db that are worth a piece. Opening one takes a look at the index of each SSTable.
const PIECE_BYTES: u64 = 32 << 20;

/// How SSTables are read as a table.
///
/// ```
/// use marquetry_tables::TokenRange;
/// use marquetry_tables::sstables::{Definition, SstablesOptions};
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

#[cfg(test)]
mod tests {
    use super::*;

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
