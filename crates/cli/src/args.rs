//! Options that several commands share.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};

use marquetry::base::Detail;
use marquetry::parquet::print;
use marquetry::scylla::bridge::{self, MappingOptions};
use marquetry::scylla::cql::{KeySpec, Name};
use marquetry::tables::{ColumnPath, Described, Table};
use marquetry::{OptionGroup, Target};

use crate::failure::{Failure, Outcome};
use crate::numbers::{parse_count, parse_number};
use crate::table_args::TableArgs;
use crate::target::Given;

/// How rows are mapped to rows of a CQL table.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RowArgs {
    /// Primary key: 'a' · 'a, b' (partitioned by a, clustered by b) · '(a, b), c DESC'
    ///
    /// The contents of the parentheses of CQL's PRIMARY KEY. Of rows with the same key, the last one wins.
    #[arg(long, value_name = "KEY", help_heading = "Primary key")]
    pub(crate) key: Option<String>,

    /// Name of a bigint column that numbers the rows from 0; it is the key unless --key is given
    ///
    /// It becomes the table's first column. Numbers continue from one file to the next.
    #[arg(long, value_name = "NAME", help_heading = "Primary key")]
    pub(crate) key_row_number: Option<String>,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Maximum number of rows
    #[arg(
        long,
        short = 'n',
        value_parser = parse_number::<u64>,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Rows and columns"
    )]
    pub(crate) limit: Option<u64>,

    /// CQL type of timestamps in micro- and nanoseconds [default: bigint; in CSV and JSON lines, timestamp]
    ///
    /// Timestamps of CSV and JSON lines whose type is not given become CQL's timestamp, in milliseconds; one with more digits
    /// is then an error with its line.
    #[arg(long, value_enum, value_name = "TYPE", help_heading = "Values")]
    pub(crate) timestamps_as: Option<TimestampsAs>,

    /// Handling of text that is not UTF-8
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Values")]
    pub(crate) invalid_utf8: InvalidUtf8,

    /// Handling of nulls
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Values")]
    pub(crate) nulls: Nulls,

    /// Lists to store as sets; equal elements become one
    ///
    /// Named as in --columns: tags,stops.tags. A list inside a list is its element: routes.element.
    #[arg(long, value_name = "A,B.C,…", help_heading = "Lists, maps and groups")]
    pub(crate) as_set: Vec<String>,

    /// Frozen types for all these columns, so that empty ones are not null
    ///
    /// In CQL, an empty list, set or map that is not frozen is null, and so is a user-defined type whose fields
    /// are all null; inserting one leaves a tombstone, because it replaces what was there. A frozen value is
    /// stored as written, without a tombstone, but a statement cannot change a part of it. Types nested inside
    /// others, and those in the key, are always frozen.
    #[arg(long, help_heading = "Lists, maps and groups")]
    pub(crate) frozen: bool,

    /// Handling of nulls in lists, sets and maps, which CQL cannot hold
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Lists, maps and groups")]
    pub(crate) null_elements: NullElements,

    /// Handling of duplicate keys in a map
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Lists, maps and groups")]
    pub(crate) duplicate_keys: DuplicateKeys,
}

/// How much of the machine a command takes.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ThreadArgs {
    /// Number of threads [default: one per processor]
    ///
    /// They read, parse, sort, encode and compress. Large row groups, CSV and JSON lines are shared among them. Output and errors do not depend on their number.
    #[arg(
        long,
        value_parser = parse_count::<NonZeroUsize>,
        value_name = "N",
        allow_negative_numbers = true
    )]
    threads: Option<NonZeroUsize>,
}

impl ThreadArgs {
    /// As many as were asked for.
    pub(crate) fn get(self) -> Option<usize> {
        self.threads.map(NonZeroUsize::get)
    }
}

/// The CQL type of timestamps in micro- and nanoseconds. CQL's own timestamp has milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimestampsAs {
    /// A bigint: the number as stored in the file
    Bigint,
    /// A timestamp, rounded down to milliseconds
    Millis,
}

/// What to do with text that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum InvalidUtf8 {
    /// Stop with an error that names row and column
    #[default]
    Error,
    /// Replace invalid bytes by U+FFFD
    Replace,
    /// Treat text as bytes: 0x and hexadecimal digits (in CQL, all text columns become blob)
    Blob,
}

impl From<InvalidUtf8> for print::InvalidUtf8 {
    fn from(asked: InvalidUtf8) -> print::InvalidUtf8 {
        match asked {
            InvalidUtf8::Error => print::InvalidUtf8::Error,
            InvalidUtf8::Replace => print::InvalidUtf8::Replace,
            InvalidUtf8::Blob => print::InvalidUtf8::Bytes,
        }
    }
}

/// What to do with nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Nulls {
    /// Leave the column out: no value and no tombstone
    #[default]
    Unset,
    /// Write null, which deletes an older row's value and leaves a tombstone
    #[value(alias = "tombstone")]
    Null,
}

/// What to do with nulls in lists, sets and maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum NullElements {
    /// Stop with an error that names row and path
    #[default]
    Error,
    /// Leave them out; in a map, the whole entry
    Drop,
}

/// What to do with equal keys in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DuplicateKeys {
    /// Stop with an error that names row, path and key
    #[default]
    Error,
    /// Keep the last entry
    Last,
}

impl RowArgs {
    /// The mapping's options, except the columns. Mistakes in the options themselves are found here, before a
    /// file is opened.
    pub(crate) fn mapping_options(&self) -> Outcome<MappingOptions> {
        let key = |text: &String| {
            KeySpec::parse(text).map_err(|error| Failure::usage(format!("--key '{text}': {error}")))
        };
        let row_number = |text: &String| {
            Name::new(text).map_err(|error| Failure::usage(format!("--key-row-number '{text}': {error}")))
        };
        let mut sets = Vec::new();
        for list in &self.as_set {
            let paths = ColumnPath::parse_list(list).map_err(|error| error.with(Detail::Option("as_set")))?;
            sets.extend(paths.iter().map(ColumnPath::dotted));
        }
        Ok(MappingOptions {
            timestamps_as_millis: self.timestamps_as == Some(TimestampsAs::Millis),
            invalid_utf8: match self.invalid_utf8 {
                InvalidUtf8::Error => bridge::InvalidUtf8::Error,
                InvalidUtf8::Replace => bridge::InvalidUtf8::Replace,
                InvalidUtf8::Blob => bridge::InvalidUtf8::Blob,
            },
            key: self.key.as_ref().map(key).transpose()?,
            row_number: self.key_row_number.as_ref().map(row_number).transpose()?,
            nulls: match self.nulls {
                Nulls::Unset => bridge::Nulls::Unset,
                Nulls::Null => bridge::Nulls::Null,
            },
            sets,
            frozen: self.frozen,
            null_elements: match self.null_elements {
                NullElements::Error => bridge::NullElements::Error,
                NullElements::Drop => bridge::NullElements::Drop,
            },
            duplicate_keys: match self.duplicate_keys {
                DuplicateKeys::Error => bridge::DuplicateKeys::Error,
                DuplicateKeys::Last => bridge::DuplicateKeys::Last,
            },
            limits: self.table.limits.limits(),
            ..MappingOptions::default()
        })
    }

    /// These options for rows that go there: timestamps that are inferred from text have its unit, unless something else is
    /// asked for.
    pub(crate) fn going_to(mut self, target: &Target) -> RowArgs {
        if self.timestamps_as.is_none() {
            self.table.text.timestamp_unit = target.timestamp_unit();
        }
        // Rows that are made other ones are no writes any more, and text has no place for their times.
        let is_for_writes = target.takes(OptionGroup::Cluster) || target.takes(OptionGroup::SstableOutput);
        let is_for_rows = is_for_writes && (self.given().next().is_some() || self.table.changes_columns());
        self.table.sstables.is_for_writes = is_for_writes;
        self.table.sstables.is_for_rows = is_for_rows || target.takes(OptionGroup::CqlText);
        self.table.connection.has_destination =
            target.takes(OptionGroup::Cluster) || target.takes(OptionGroup::Columns);
        self
    }

    /// The options that are given, and what they have a meaning for.
    pub(crate) fn given(&self) -> impl Iterator<Item = Given> {
        use OptionGroup::{Mapping, Text};
        [
            (self.key.is_some(), "--key", &[Mapping][..]),
            (self.key_row_number.is_some(), "--key-row-number", &[Mapping]),
            (self.timestamps_as.is_some(), "--timestamps-as", &[Mapping]),
            (self.invalid_utf8 != InvalidUtf8::default(), "--invalid-utf8", &[Mapping, Text]),
            (self.nulls != Nulls::default(), "--nulls", &[Mapping]),
            (!self.as_set.is_empty(), "--as-set", &[Mapping]),
            (self.frozen, "--frozen", &[Mapping]),
            (self.null_elements != NullElements::default(), "--null-elements", &[Mapping]),
            (self.duplicate_keys != DuplicateKeys::default(), "--duplicate-keys", &[Mapping]),
        ]
        .into_iter()
        .filter_map(|(is_given, name, groups)| is_given.then_some((name, groups)))
    }

    /// Fails unless one of the options names a key, or the source describes a table that has one.
    pub(crate) fn expect_key(&self, source: &Table) -> Outcome {
        if self.key.is_some() || self.key_row_number.is_some() || Described::is_there(source) {
            return Ok(());
        }
        Err(Failure::usage(
            "a CQL table must have a primary key, which no Parquet file states. Three ways: --key 'a' (column a identifies \
             a row), --key '(a, b), c' (partitions by a and b, sorted by c), or --key-row-number id (no \
             column is unique: number the rows in a new column id)",
        ))
    }
}
