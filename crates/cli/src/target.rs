//! Where `copy` copies to: addresses, and what is said of those that are not supported yet.

use std::ffi::OsStr;
use std::path::PathBuf;

use marquetry::cluster::CqlAddress;
use marquetry::tables::Address;

use crate::failure::{Failure, Outcome};

/// Where rows go.
#[derive(Debug)]
pub(crate) enum Target {
    /// A table of a live cluster.
    Cluster(CqlAddress),
    /// A new Parquet file.
    File(PathBuf),
    /// A new directory of Parquet files.
    Directory(PathBuf),
}

/// What is said of every other address.
const SUPPORTED: &str =
    "supported are cql://HOST/KEYSPACE.TABLE, files that end in .parquet, and directories that end in /";

/// Reads the address of a table, or the name of a file or of a directory.
pub(crate) fn parse(to: &OsStr) -> Outcome<Target> {
    let address = Address::parse(to);
    let what = match &address {
        Address::Standard => {
            return Err(Failure::usage("copying to standard output is what `marquetry cql` does"));
        }
        // The error holds no password, nor does the address as it is shown.
        Address::Url { scheme, text } if scheme == "cql" => {
            let parsed = text.parse().map_err(|error| Failure::usage(format!("{address}: {error}")));
            return parsed.map(Target::Cluster);
        }
        Address::Url { scheme, .. } if scheme == "sstable" => {
            "copying to SSTables is not supported yet".to_string()
        }
        Address::Url { scheme, .. } => format!("copying to {scheme}:// is not supported yet"),
        Address::Path(path) if address.is_directory() => return Ok(Target::Directory(path.clone())),
        Address::Path(path) if address.is_parquet() => return Ok(Target::File(path.clone())),
        _ => "this is neither a table nor a Parquet file or a directory (the last argument is where to copy to)"
            .to_string(),
    };
    Err(Failure::usage(format!("{address}: {what}; {SUPPORTED}")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
