//! Addresses of tables.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use marquetry_io::shown;

/// The address of a table that rows are read from or written to. [`Display`](fmt::Display) shows no password.
///
/// ```
/// use marquetry_tables::Address;
///
/// assert!(matches!(Address::parse("trips/*.parquet"), Address::Path(_)));
/// assert!(matches!(Address::parse("-"), Address::Standard));
/// let address = Address::parse("cql://etl:secret@db1/ks.trips");
/// assert_eq!(address.scheme(), Some("cql"));
/// assert_eq!(address.to_string(), "cql://etl:***@db1/ks.trips");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// `-`: standard input or output.
    Standard,
    /// A file, a directory or a pattern.
    Path(PathBuf),
    /// `SCHEME://…`, or `SCHEME:…` with a known scheme (`cql`, `sstable`). The scheme is in lower case.
    Url {
        /// What stands before the colon.
        scheme: String,
        /// All of it, as it was written.
        text: String,
    },
}

/// Schemes that need no slashes to be meant.
const SCHEMES: [&str; 2] = ["cql", "sstable"];

/// Schemes of object stores, and of servers whose objects are only read.
const OBJECT_SCHEMES: [&str; 3] = ["s3", "gs", "az"];
const HTTP_SCHEMES: [&str; 2] = ["http", "https"];
/// The scheme of a Ceph cluster's objects.
const RADOS_SCHEME: &str = "rados";

impl Address {
    /// Parses an address. Anything that is not a URL is a path.
    pub fn parse(text: impl AsRef<OsStr>) -> Address {
        let text = text.as_ref();
        if text == "-" {
            return Address::Standard;
        }
        let as_text = text.to_string_lossy();
        if let Some((scheme, rest)) = as_text.split_once(':') {
            let scheme = scheme.to_ascii_lowercase();
            let is_word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            let is_scheme = !scheme.is_empty() && scheme.chars().all(is_word);
            if is_scheme && (rest.starts_with("//") || SCHEMES.contains(&&*scheme)) {
                return Address::Url { scheme, text: as_text.into_owned() };
            }
        }
        Address::Path(PathBuf::from(text))
    }

    /// The scheme of a URL.
    pub fn scheme(&self) -> Option<&str> {
        match self {
            Address::Url { scheme, .. } => Some(scheme),
            _ => None,
        }
    }

    /// Whether a path means a directory, existing or new: it is one, or ends in a slash. Of object stores, buckets and
    /// what ends in a slash are directories.
    pub fn is_directory(&self) -> bool {
        match self {
            Address::Path(path) => path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir(),
            Address::Url { scheme, text }
                if OBJECT_SCHEMES.contains(&&**scheme) || scheme == RADOS_SCHEME =>
            {
                text.ends_with('/') || text.matches('/').count() == 2
            }
            _ => false,
        }
    }

    /// Whether a path, or the address of an object, has an extension of Parquet files.
    pub fn is_parquet(&self) -> bool {
        self.object().is_some_and(|path| has_extension(path, &marquetry_io::files::PARQUET_EXTENSIONS))
    }

    /// The path of a file, or the address of an object as one: what a [`Store`](marquetry_io::store::Store) finds them by.
    pub fn object(&self) -> Option<&Path> {
        match self {
            Address::Path(path) => Some(path),
            Address::Url { scheme, text }
                if OBJECT_SCHEMES.contains(&&**scheme)
                    || HTTP_SCHEMES.contains(&&**scheme)
                    || scheme == RADOS_SCHEME =>
            {
                Some(Path::new(text))
            }
            _ => None,
        }
    }

    /// The path that `sstable:PATH` names, which may be the address of objects.
    pub fn sstables(&self) -> Option<&Path> {
        match self {
            Address::Url { scheme, text } if scheme == "sstable" => {
                text.split_once(':').map(|(_, path)| Path::new(path))
            }
            _ => None,
        }
    }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| extensions.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Standard => f.write_str("-"),
            // It may have been meant as a URL.
            Address::Path(path) => f.write_str(&shown(&without_password(&path.to_string_lossy()))),
            Address::Url { text, .. } => f.write_str(&shown(&without_password(text))),
        }
    }
}

/// As [`Display`](fmt::Display): a log is no place for passwords either.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Address {
        Address::parse(text)
    }
}

impl From<String> for Address {
    fn from(text: String) -> Address {
        Address::parse(text)
    }
}

impl From<&Path> for Address {
    fn from(path: &Path) -> Address {
        Address::parse(path)
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Address {
        Address::parse(OsString::from(path))
    }
}

/// An address with its password, which may contain a slash or an @, replaced by `***`.
fn without_password(address: &str) -> String {
    let Some(at_sign) = address.rfind('@') else { return address.to_string() };
    // After the scheme's colon stands a slash, even if one was forgotten; after the user's may stand one too, but then the
    // scheme's came before.
    let start = address.find(":/").map_or(0, |colon| {
        let slashes = address[colon + 1..].bytes().take_while(|byte| *byte == b'/').count();
        colon + 1 + slashes
    });
    match address.get(start..at_sign).and_then(|login| login.find(':')) {
        Some(colon) => format!("{}***{}", &address[..=start + colon], &address[at_sign..]),
        None => address.to_string(),
    }
}

/// A text without the secrets of addresses in it: passwords, and queries that are signatures.
///
/// An address ends at a space, except for those that are known to be in the text, such as a program's arguments: a password
/// may have a space in it.
///
/// ```
/// use marquetry_tables::without_secrets;
///
/// let said = without_secrets("cql://me:secret@host/ks.t: no such host; https://host/a?sig=1f: not found", []);
/// assert_eq!(said, "cql://me:***@host/ks.t: no such host; https://host/a?…: not found");
/// ```
pub fn without_secrets(text: &str, known: impl IntoIterator<Item = String>) -> String {
    let hidden = |address: &str| shown(&without_password(address));
    let mut text = text.to_string();
    for address in known.into_iter().filter(|address| address.contains(['@', '?'])) {
        // Of `--option=value`, the value alone may be repeated.
        let value = address.split_once('=').map_or("", |(_, value)| value);
        for secret in [address.as_str(), value].into_iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, &hidden(secret));
        }
    }
    let word = |word: &str| {
        // What ends a word is no part of the address.
        let end = word.trim_end_matches(|end: char| end.is_whitespace() || ":;,.)'\"".contains(end)).len();
        hidden(&word[..end]) + &word[end..]
    };
    text.split_inclusive(char::is_whitespace).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, scheme) in [
            ("cql://host/ks.t", Some("cql")),
            ("CQL:/host/ks.t", Some("cql")),
            ("s3://bucket/key", Some("s3")),
            ("sstable:data/ks/t", Some("sstable")),
            ("C:\\trips.parquet", None),
            ("a:b.parquet", None),
            ("://x", None),
        ] {
            assert_eq!(Address::parse(text).scheme(), scheme, "{text}");
        }
        for directory in ["out/", "out.parquet/", "."] {
            assert!(Address::parse(directory).is_directory(), "{directory}");
        }
        for directory in ["s3://bucket", "gs://bucket/", "az://box/a.parquet/"] {
            assert!(Address::parse(directory).is_directory(), "{directory}");
        }
        assert!(
            !Address::parse("s3://bucket/a").is_directory() && !Address::parse("https://h/").is_directory()
        );
        assert!(Address::parse("S3://bucket/a.parquet").is_parquet());
        assert_eq!(Address::parse("cql://host/ks.t").object(), None);
        assert_eq!(Address::parse("sstable:s3://b/ks/t/").sstables(), Some(Path::new("s3://b/ks/t/")));
        assert_eq!(Address::parse("s3://b/ks/t/").sstables(), None);
        assert_eq!(Address::parse("https://h/a?b").object(), Some(Path::new("https://h/a?b")));
        assert!(Address::parse("a b.Parquet").is_parquet());
        assert!(!Address::parse("a.csv").is_parquet() && !Address::parse("a.parquet").is_directory());
    }

    #[test]
    fn passwords_are_not_shown() {
        for (address, shown) in [
            ("cql://me:se/cr@et@host:9042/ks.t", "cql://me:***@host:9042/ks.t"),
            ("cql://me@host:9042/ks.t", "cql://me@host:9042/ks.t"),
            ("s3://bucket/a:b", "s3://bucket/a:b"),
            ("https://host/a.csv?sig=secret", "https://host/a.csv?…"),
            // A slash forgotten, no scheme at all, a password of slashes.
            ("cql:/u:p@h", "cql:/u:***@h"),
            ("u:p@h/k.t", "u:***@h/k.t"),
            ("cql://u:/p/@h", "cql://u:***@h"),
            ("https:/host/a.csv?sig=secret", "https:/host/a.csv?…"),
        ] {
            assert_eq!(Address::parse(address).to_string(), shown);
            assert_eq!(format!("{:?}", Address::parse(address)), format!("{shown:?}"));
        }
    }
    #[test]
    fn secrets_are_not_said() {
        let redact = |text: &str| without_secrets(text, []);
        assert_eq!(redact("cql://me:se/cr@et@host:9042/ks.t is gone"), "cql://me:***@host:9042/ks.t is gone");
        assert_eq!(redact("a cql://u:p@h, b cql://v:q@i"), "a cql://u:***@h, b cql://v:***@i");
        assert_eq!(redact("cql://me@host:9042/ks.t"), "cql://me@host:9042/ks.t");
        assert_eq!(redact("s3://bucket/a:b"), "s3://bucket/a:b");
        assert_eq!(redact("az://b/a?sv=1&sig=x y, https://h/a?sig=x"), "az://b/a?… y, https://h/a?…");
        assert_eq!(redact("file.parquet: no"), "file.parquet: no");
        assert_eq!(redact("https://h/a?sig=x: no"), "https://h/a?…: no");
        // A slash forgotten, no scheme at all, a password of slashes.
        assert_eq!(redact("'cql:/u:p@h'"), "'cql:/u:***@h'");
        assert_eq!(redact("u:p@h/k.t: no"), "u:***@h/k.t: no");
        assert_eq!(redact("cql://u:/p/@h"), "cql://u:***@h");
        // A space ends an address, unless the address is known.
        let argument = |text: &str| [text.to_string()];
        let said = without_secrets("bad 'cql://u:p q@h' x", argument("--format=cql://u:p q@h"));
        assert_eq!(said, "bad 'cql://u:***@h' x");
        let said = without_secrets("bad 'az://b/a?sig=x y' z", argument("az://b/a?sig=x y"));
        assert_eq!(said, "bad 'az://b/a?…' z");
    }
}
