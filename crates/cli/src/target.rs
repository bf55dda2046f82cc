//! Where `copy` copies to: addresses, and what is said of those that are not supported yet.

use marquetry_cluster::Address;

use crate::failure::{Failure, Outcome, redact_word};

/// What is said of every other address.
const SUPPORTED: &str = "supported is cql://HOST/KEYSPACE.TABLE";

/// Reads the address of a table.
pub(crate) fn parse(text: &str) -> Outcome<Address> {
    let is_cql = text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("cql:"));
    if is_cql {
        // The error holds no password, nor does the address as it is shown.
        return text.parse().map_err(|error| Failure::usage(format!("{}: {error}", redact_word(text))));
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
    } else {
        "copying to a file is not supported yet (the last argument is where to copy to)"
    };
    Err(Failure::usage(format!("{}: {what}; {SUPPORTED}", redact_word(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_copied_to_is_said() {
        let said = |text: &str| match parse(text) {
            Err(Failure::Said(_, message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(said("-").contains("marquetry cql"));
        assert!(said("sstable:data/ks/t").contains("SSTables"));
        assert!(said("s3://bucket/key").contains("s3:// is not supported yet; supported is cql://"));
        assert!(said("out.parquet").contains("copying to a file"));
        let secret = said("cql://me:tiger@host/");
        assert!(!secret.contains("tiger") && secret.contains("me:***@host"), "{secret}");
        assert!(parse("cql://me:tiger@host:9042/ks.t").is_ok() && parse("CQL://host/ks.t").is_ok());
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
