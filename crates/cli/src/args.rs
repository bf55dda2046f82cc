//! Options that several commands share.

use clap::{Args, ValueEnum};

use marquetry_base::Detail;
use marquetry_scylla::bridge::{self, MappingOptions};
use marquetry_scylla::cql::{KeySpec, Name};
use marquetry_tables::ColumnPath;

use crate::failure::{Failure, Outcome};
use crate::table_args::TableArgs;

/// How rows of Parquet files become rows of a table.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RowArgs {
    /// The primary key: 'a' · 'a, b' (partitions by a, sorted by b) · '(a, b), c DESC'
    ///
    /// What stands between the parentheses of CQL's PRIMARY KEY. Rows with the same key become one row: the last one wins.
    #[arg(long, value_name = "KEY", help_heading = "Primary key")]
    pub(crate) key: Option<String>,

    /// Number the rows from 0 in a bigint column of this name, the table's first; the key, unless --key says otherwise
    ///
    /// Numbers run on from one file to the next.
    #[arg(long, value_name = "NAME", help_heading = "Primary key")]
    pub(crate) key_row_number: Option<String>,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Take at most N rows
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Rows and columns")]
    pub(crate) limit: Option<u64>,

    /// What timestamps of micro- and nanoseconds become
    #[arg(long, value_enum, value_name = "TYPE", default_value_t, help_heading = "Values")]
    pub(crate) timestamps_as: TimestampsAs,

    /// What to do with text that is not UTF-8
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Values")]
    pub(crate) invalid_utf8: InvalidUtf8,

    /// What to do with nulls
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Values")]
    pub(crate) nulls: Nulls,

    /// Make these lists sets: equal elements become one
    ///
    /// They are named as --columns names columns: tags,stops.tags. A list in a list is its element: routes.element.
    #[arg(long, value_name = "A,B.C,…", help_heading = "Lists, maps and groups")]
    pub(crate) as_set: Vec<String>,

    /// Freeze the types of all such columns, so that what is empty is not null
    ///
    /// For CQL, a list, set or map that is not frozen and has no elements is null, and so is a user-defined type whose fields are
    /// all null; and each INSERT of one leaves a tombstone, for it replaces what was there. What is frozen is one value, is as it was
    /// written, and leaves none; but a statement cannot change a part of it. What is nested in another and what is in the key are
    /// always frozen.
    #[arg(long, help_heading = "Lists, maps and groups")]
    pub(crate) frozen: bool,

    /// What to do with nulls in lists, sets and maps, which CQL cannot hold
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Lists, maps and groups")]
    pub(crate) null_elements: NullElements,

    /// What to do with equal keys in a map
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Lists, maps and groups")]
    pub(crate) duplicate_keys: DuplicateKeys,
}

/// What timestamps of micro- and nanoseconds become. CQL's own timestamp has milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TimestampsAs {
    /// A bigint, the number as the file has it
    #[default]
    Bigint,
    /// A timestamp, cut to milliseconds, towards the past
    Millis,
}

/// What to do with text that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum InvalidUtf8 {
    /// Stop, and name the row and the column
    #[default]
    Error,
    /// Put U+FFFD in place of what is not UTF-8
    Replace,
    /// Take bytes for text: 0x and hexadecimal digits (in CQL, all text columns become blob)
    Blob,
}

/// What to do with nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Nulls {
    /// Write nothing: a new row has no value there, and no tombstone
    #[default]
    Unset,
    /// Write null: a value that an older row of the same key has there is deleted
    Null,
}

/// What to do with nulls in lists, sets and maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum NullElements {
    /// Stop, and name the row and the place in it
    #[default]
    Error,
    /// Leave them out; of a map the whole entry
    Drop,
}

/// What to do with equal keys in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DuplicateKeys {
    /// Stop, and name the row, the place in it and the key
    #[default]
    Error,
    /// Take the last entry
    Last,
}

impl RowArgs {
    /// What a bridge is asked for, but for the columns. All mistakes of the options themselves are found here, before a
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
            timestamps_as_millis: self.timestamps_as == TimestampsAs::Millis,
            invalid_utf8: match self.invalid_utf8 {
                InvalidUtf8::Error => bridge::InvalidUtf8::Error,
                InvalidUtf8::Replace => bridge::InvalidUtf8::Replace,
                InvalidUtf8::Blob => bridge::InvalidUtf8::Blob,
            },
            columns: None,
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
            existing: None,
        })
    }

    /// An option that is given and has a meaning for CQL only.
    pub(crate) fn given_for_cql(&self) -> Option<&'static str> {
        let given = [
            (self.key.is_some(), "--key"),
            (self.key_row_number.is_some(), "--key-row-number"),
            (self.timestamps_as != TimestampsAs::default(), "--timestamps-as"),
            (self.invalid_utf8 != InvalidUtf8::default(), "--invalid-utf8"),
            (self.nulls != Nulls::default(), "--nulls"),
            (!self.as_set.is_empty(), "--as-set"),
            (self.frozen, "--frozen"),
            (self.null_elements != NullElements::default(), "--null-elements"),
            (self.duplicate_keys != DuplicateKeys::default(), "--duplicate-keys"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// Fails unless one of the options names a key.
    pub(crate) fn expect_key(&self) -> Outcome {
        if self.key.is_some() || self.key_row_number.is_some() {
            return Ok(());
        }
        Err(Failure::usage(
            "a CQL table must have a primary key, and a Parquet file does not tell one. Three ways: --key 'a' (rows are \
             told apart by column a), --key '(a, b), c' (partitions by a and b, sorted by c), or --key-row-number id (no \
             column is unique: number the rows in a new column id)",
        ))
    }
}
