//! Rows into SSTables.

use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use marquetry::tables::sstables::{ManifestOptions, NewSstablesOptions};
use marquetry::{OptionGroup, base::Limits};

use crate::failure::{Failure, Outcome, plain};
use crate::numbers::parse_bytes;
use crate::target::Given;

/// How SSTables are written.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SstableOutputArgs {
    /// Version of new SSTables [default: me]
    #[arg(long, value_enum, value_name = "VERSION", help_heading = "SSTables")]
    format: Option<SstableVersion>,

    /// Approximate size of a new SSTable [default: 4G]
    #[arg(long, value_parser = parse_bytes::<NonZeroU64>, value_name = "BYTES", help_heading = "SSTables")]
    max_bytes: Option<NonZeroU64>,

    /// Tokens at which another new SSTable begins: none has partitions on both sides of one
    #[arg(
        long,
        value_name = "TOKEN,…",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "SSTables"
    )]
    split_at: Vec<i64>,

    /// Number of the table's tablets, a power of two: each new SSTable is inside one of them
    #[arg(long, value_name = "N", help_heading = "SSTables")]
    tablets: Option<u32>,

    /// Manifest for ScyllaDB's restore from object storage: the snapshot's name, the datacenter and the rack
    ///
    /// manifest.json is then beside new SSTables. No ScyllaDB has tried one: its fields are as ScyllaDB's documents have them.
    #[arg(long, value_name = "SNAPSHOT,DATACENTER,RACK", value_parser = parse_manifest, help_heading = "SSTables")]
    manifest: Option<ManifestOptions>,

    /// File with the CREATE TABLE that rows of new SSTables must fit, and the CREATE TYPE of its types
    ///
    /// Without it the table is as --key, --types and the files say, and schema.cql in the directory has its definition.
    #[arg(long, value_name = "FILE", help_heading = "SSTables")]
    schema_cql: Option<PathBuf>,
}

fn parse_manifest(text: &str) -> Result<ManifestOptions, String> {
    text.parse().map_err(|error: marquetry::Error| error.message().to_owned())
}

/// The versions that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SstableVersion {
    /// For Cassandra 3.11.11 and later, and ScyllaDB 5.0 and later
    Me,
    /// For Cassandra 4.0 and later
    Nb,
    /// For Cassandra 5.0
    Oa,
    /// For Cassandra 5.0, with indexes that are tries
    Da,
}

impl SstableOutputArgs {
    /// The options that are given, and what they have a meaning for.
    pub(super) fn given(&self) -> impl Iterator<Item = Given> {
        let groups = &[OptionGroup::SstableOutput][..];
        [
            (self.format.is_some(), "--format"),
            (self.max_bytes.is_some(), "--max-bytes"),
            (!self.split_at.is_empty(), "--split-at"),
            (self.tablets.is_some(), "--tablets"),
            (self.manifest.is_some(), "--manifest"),
            (self.schema_cql.is_some(), "--schema-cql"),
        ]
        .into_iter()
        .filter_map(move |(is_given, name)| is_given.then_some((name, groups)))
    }

    /// The file that says what the table is.
    pub(super) fn has_definition(&self) -> bool {
        self.schema_cql.is_some()
    }

    /// How they are written, but for their compression and for what rows become.
    pub(super) fn options(&self, limits: Limits) -> Outcome<NewSstablesOptions> {
        let mut options = match self.format {
            None => NewSstablesOptions::default(),
            Some(SstableVersion::Me) => NewSstablesOptions::new("me")?,
            Some(SstableVersion::Nb) => NewSstablesOptions::new("nb")?,
            Some(SstableVersion::Oa) => NewSstablesOptions::new("oa")?,
            Some(SstableVersion::Da) => NewSstablesOptions::new("da")?,
        };
        options.bytes_max = self.max_bytes.map(NonZeroU64::get).or(options.bytes_max);
        options.split_at.clone_from(&self.split_at);
        options.tablets = self.tablets;
        options.manifest.clone_from(&self.manifest);
        options.limits = limits;
        if let Some(path) = &self.schema_cql {
            let read = fs::read_to_string(path);
            let text = read.map_err(|error| {
                Failure::unreachable(format!("{}: {}", path.display(), plain(&error.to_string())))
            });
            options.rows.schema_cql = Some(text?);
        }
        Ok(options)
    }
}
