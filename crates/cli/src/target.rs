//! Where `copy` copies to: what the command line calls formats, and options that have no meaning there.

use std::ffi::OsStr;

use clap::ValueEnum;

use marquetry::base::{Detail, ErrorKind};
use marquetry::tables::Address;
use marquetry::{OptionGroup, OutputFormat, Target};

use crate::failure::{Failure, Outcome};

/// An option that is given, and the groups that it belongs to.
pub(crate) type Given = (&'static str, &'static [OptionGroup]);

/// What rows are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// A Parquet file
    Parquet,
    /// Comma-separated values, with a header row
    Csv,
    /// Tab-separated values, with a header row and without quotes
    Tsv,
    /// One JSON object per line
    Jsonl,
    /// CREATE TYPE, CREATE TABLE and INSERT, as `marquetry cql` prints them; needs --table
    Cql,
}

impl From<To> for OutputFormat {
    fn from(to: To) -> OutputFormat {
        match to {
            To::Parquet => OutputFormat::Parquet,
            To::Csv => OutputFormat::Csv,
            To::Tsv => OutputFormat::Tsv,
            To::Jsonl => OutputFormat::JsonLines,
            To::Cql => OutputFormat::Cql,
        }
    }
}

/// Reads the address of a table, or the name of a file or of a directory, which options may be given for.
pub(crate) fn parse(
    to: &OsStr,
    format: Option<To>,
    is_columns: bool,
    wants_directory: bool,
) -> Outcome<Target> {
    let is_table = Address::parse(to).scheme() == Some("cql");
    let written = if is_columns && is_table { Some(OutputFormat::Columns) } else { format.map(Into::into) };
    Target::parse(to, written).map_err(|error| {
        if matches!(error.detail(), Some(Detail::Feature(_))) {
            return error.into();
        }
        // Neither holds a password.
        let address = error.place().object.clone().unwrap_or_default();
        let why = match error.kind() {
            ErrorKind::Unsupported => refused(&Address::parse(to), format, wants_directory),
            _ => error.message().to_string(),
        };
        Failure::usage(format!("{address}: {why}"))
    })
}

/// Why rows cannot be copied there, and what to do, in the words of the command line.
fn refused(address: &Address, format: Option<To>, wants_directory: bool) -> String {
    match (address, address.scheme().unwrap_or_default(), format) {
        (Address::Standard, ..) => {
            "standard output needs a format: --to parquet, csv, tsv, jsonl or cql; `marquetry cql` prints CQL".into()
        }
        (_, "cql", _) => "a table of a cluster has no format: leave --to out".into(),
        (_, "sstable", Some(_)) => "SSTables are written without --to; --format says their version".into(),
        (_, scheme @ ("http" | "https"), _) => format!("objects of {scheme}:// can only be read"),
        _ if address.object().is_none() => format!(
            "copying to {}:// is not supported; rows go to files, s3://, gs://, az://, tables of cql:// and standard output (-)",
            address.scheme().unwrap_or_default()
        ),
        (.., Some(To::Cql)) => "CQL is printed to standard output only: - --to cql".into(),
        (.., Some(_)) => {
            "a directory of many files holds Parquet only: leave --to out, or name one file, such as trips.csv".into()
        }
        _ if wants_directory => "end the name in / for a directory".into(),
        _ => "the last argument is where to copy to, and must say what to write: a name that ends in .parquet, .csv, .tsv or .jsonl \
(--to FORMAT says it of others), a DIRECTORY/, sstable:DIR, or cql://HOST/KEYSPACE.TABLE"
            .into(),
    }
}

/// Fails if an option is given that has no meaning for this kind of destination.
pub(crate) fn check(target: &Target, given: impl Iterator<Item = Given>) -> Outcome {
    for (option, groups) in given {
        if !groups.iter().any(|group| target.takes(*group)) {
            let of = groups.first().map_or("", |group| meant(*group));
            return Err(Failure::usage(format!("{option} is for {of}")));
        }
    }
    Ok(())
}

/// What options of a group are for.
fn meant(group: OptionGroup) -> &'static str {
    match group {
        OptionGroup::Parquet => "writing Parquet files",
        OptionGroup::Directory => "directories: end the name of one in /",
        OptionGroup::Mapping => "tables of a cluster with the layout rows, CQL text and SSTables",
        OptionGroup::CqlText => "CQL text (--to cql) and SSTables",
        OptionGroup::Cluster | OptionGroup::Columns => "tables of a cluster",
        OptionGroup::Text => "writing CSV and JSON lines",
        OptionGroup::SstableOutput => "writing SSTables: sstable:DIR",
        OptionGroup::Verify => "files and directories, which can be read again before they appear",
        OptionGroup::Overwrite => "writing Parquet files, CSV and JSON lines",
        _ => "writing Parquet files, text and CQL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_copied_to_is_said() {
        let said = |text: &str| match parse(OsStr::new(text), None, false, false) {
            Err(Failure::Said(_, message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(said("-").contains("needs a format") && said("-").contains("marquetry cql"));
        assert!(parse(OsStr::new("sstable:data/ks/t"), Some(To::Csv), false, false).is_err());
        assert!(said("ftp://host/key").contains("copying to ftp:// is not supported; rows go to files"));
        assert!(said("https://host/a.csv").contains("can only be read"));
        for name in ["out.txt", "s3://bucket/key"] {
            assert!(
                said(name).contains("a name that ends in .parquet") && said(name).len() < 250,
                "{}",
                said(name)
            );
        }
        let takes = |text: &str, group| parse(OsStr::new(text), None, false, false).unwrap().takes(group);
        for directory in ["out/", "out.parquet/", "out.csv/", "."] {
            assert!(takes(directory, OptionGroup::Directory), "{directory}");
        }
        assert!(takes("a b.Parquet", OptionGroup::Parquet) && !takes("a b.Parquet", OptionGroup::Directory));
        for text in ["a.csv", "a.TSV.gz", "a.jsonl.zst", "a.ndjson"] {
            assert!(takes(text, OptionGroup::Text) && !takes(text, OptionGroup::Parquet), "{text}");
        }
        for object in ["s3://bucket/a.parquet", "gs://bucket/dir/", "az://box/a.csv.gz"] {
            assert!(takes(object, OptionGroup::Overwrite) && !takes(object, OptionGroup::Verify), "{object}");
        }
        let secret = said("cql://me:tiger@host/");
        assert!(!secret.contains("tiger") && secret.contains("me:***@host"), "{secret}");
        assert!(takes("sstable:data/ks/t", OptionGroup::SstableOutput));
        for good in ["cql://me:tiger@host:9042/ks.t", "CQL://host/ks.t"] {
            assert!(takes(good, OptionGroup::Cluster));
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

    #[test]
    fn a_format_is_for_files_and_standard_output() {
        for format in [To::Parquet, To::Csv, To::Tsv, To::Jsonl, To::Cql] {
            assert!(parse(OsStr::new("-"), Some(format), false, false).is_ok());
            assert!(parse(OsStr::new("cql://h/k.t"), Some(format), false, false).is_err());
            assert_eq!(parse(OsStr::new("out.txt"), Some(format), false, false).is_ok(), format != To::Cql);
            assert_eq!(parse(OsStr::new("out/"), Some(format), false, false).is_ok(), format == To::Parquet);
        }
    }
}
