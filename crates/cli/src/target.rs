//! Where `copy` copies to: addresses, and what is said of those that are not supported yet.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use marquetry_cluster::Address;

use crate::failure::{Failure, Outcome, redact_word};

/// Where rows go.
#[derive(Debug)]
pub(crate) enum Target {
    /// A table of a live cluster.
    Cluster(Address),
    /// A new Parquet file.
    File(PathBuf),
    /// A new directory of Parquet files.
    Directory(PathBuf),
}

/// What is said of every other address.
const SUPPORTED: &str =
    "supported are cql://HOST/KEYSPACE.TABLE, files that end in .parquet, and directories that end in /";

/// What the name of a Parquet file ends in.
const ENDINGS: [&str; 3] = ["parquet", "parq", "pq"];

/// Reads the address of a table, or the name of a file or of a directory.
pub(crate) fn parse(to: &OsStr) -> Outcome<Target> {
    let text = &*to.to_string_lossy();
    let is_cql = text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("cql:"));
    if is_cql {
        // The error holds no password, nor does the address as it is shown.
        let address = text.parse().map_err(|error| Failure::usage(format!("{}: {error}", redact_word(text))));
        return address.map(Target::Cluster);
    }
    let what = if text == "-" {
        return Err(Failure::usage("copying to standard output is what `marquetry cql` does"));
    } else if text.starts_with("sstable:") {
        "copying to SSTables is not supported yet"
    } else if let Some((scheme, _)) = text.split_once("://") {
        return Err(Failure::usage(format!(
            "{}: copying to {scheme}:// is not supported yet; {SUPPORTED}",
            redact_word(text)
        )));
    } else if text.ends_with('/') || Path::new(to).is_dir() {
        return Ok(Target::Directory(PathBuf::from(to)));
    } else if is_parquet(Path::new(to)) {
        return Ok(Target::File(PathBuf::from(to)));
    } else {
        "this is neither a table nor a Parquet file or a directory (the last argument is where to copy to)"
    };
    Err(Failure::usage(format!("{}: {what}; {SUPPORTED}", redact_word(text))))
}

fn is_parquet(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_copied_to_is_said() {
        let said = |text: &str| match parse(OsStr::new(text)) {
            Err(Failure::Said(_, message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(said("-").contains("marquetry cql"));
        assert!(said("sstable:data/ks/t").contains("SSTables"));
        assert!(said("s3://bucket/key").contains("s3:// is not supported yet; supported are cql://"));
        assert!(said("out.csv").contains("neither a table nor a Parquet file"));
        for directory in ["out/", "out.parquet/", "."] {
            assert!(
                matches!(parse(OsStr::new(directory)), Ok(Target::Directory(path)) if path == Path::new(directory))
            );
        }
        assert!(
            matches!(parse(OsStr::new("a b.Parquet")), Ok(Target::File(path)) if path == Path::new("a b.Parquet"))
        );
        let secret = said("cql://me:tiger@host/");
        assert!(!secret.contains("tiger") && secret.contains("me:***@host"), "{secret}");
        for good in ["cql://me:tiger@host:9042/ks.t", "CQL://host/ks.t"] {
            assert!(matches!(parse(OsStr::new(good)), Ok(Target::Cluster(_))));
        }
        for slip in [
            "cql:/me:tiger@host/ks.t",
            "me:tiger@host/ks.t",
            "cql://me:a tiger@host:0/ks.t",
            "x://me:a tiger@h",
        ] {
            assert!(!said(slip).contains("tiger") && said(slip).contains("me:***@h"), "{}", said(slip));
        }
        assert!(said("cql:/host/ks.t").contains("starts with cql://"));
    }
}
