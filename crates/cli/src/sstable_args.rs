//! The options of SSTables.

use clap::{Args, ValueEnum};

use marquetry::base::Error;
use marquetry::tables::TokenRange;
use marquetry::tables::sstables::{MutationMapping, SstablesOptions, time_at};

use crate::failure::{Failure, Outcome};
use crate::text::TextArgs;

/// How SSTables are read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SstableArgs {
    /// Rows of SSTables [default: full; for CQL text logical]
    #[arg(long, value_enum, value_name = "MAPPING", help_heading = "SSTables")]
    pub(crate) mapping: Option<Mapping>,

    /// Time of --mapping logical: 2024-02-29T12:00:00Z, or seconds since 1970 [default: now]
    ///
    /// What had expired by then is left out. What was written later is there.
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "SSTables")]
    pub(crate) at: Option<u32>,

    /// Token range of the partitions of SSTables, or of a table of a cluster: A:B is those with A < token <= B; each may be missing
    #[arg(long, value_name = "A:B", value_parser = parse_range, allow_hyphen_values = true, help_heading = "SSTables")]
    pub(crate) token_range: Option<TokenRange>,

    /// The rows become others, which have no place for what only `full` has.
    #[arg(skip)]
    pub(crate) is_for_rows: bool,

    /// Writes become writes again.
    #[arg(skip)]
    pub(crate) is_for_writes: bool,
}

fn parse_time(text: &str) -> Result<u32, String> {
    time_at(text).map_err(|error| error.message().to_owned())
}

fn parse_range(text: &str) -> Result<TokenRange, String> {
    text.parse().map_err(|error: Error| error.message().to_owned())
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mapping {
    /// Everything: a row each row and deletion, write times, TTLs and tombstones in the column `mutation`
    Full,
    /// What a SELECT returns, of all SSTables merged
    Logical,
    /// Everything, in the layout that was published first
    Verbatim,
}

impl From<Mapping> for MutationMapping {
    fn from(asked: Mapping) -> MutationMapping {
        match asked {
            Mapping::Full => MutationMapping::Full,
            Mapping::Logical => MutationMapping::Logical,
            Mapping::Verbatim => MutationMapping::Verbatim,
        }
    }
}

impl SstableArgs {
    /// An option that is given, and is not for tables of a cluster, if there is one.
    pub(crate) fn given(&self, is_of_cluster: bool) -> Option<&'static str> {
        let given = [
            (self.mapping.is_some(), "--mapping"),
            (self.at.is_some(), "--at"),
            (self.token_range.is_some() && !is_of_cluster, "--token-range"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// Whether the mapping is chosen, by name or by a time.
    pub(crate) fn is_mapping_given(&self) -> bool {
        self.mapping.is_some() || self.at.is_some()
    }

    /// Whether rows are those that are alive when SSTables are opened, which are others a second later.
    pub(crate) fn are_of_now(&self) -> bool {
        self.at.is_none() && (self.is_for_rows || self.mapping == Some(Mapping::Logical))
    }

    /// What is asked for; the table's definition is an option of text, too.
    pub(crate) fn options(&self, text: &TextArgs, mut options: SstablesOptions) -> Outcome<SstablesOptions> {
        if let (Some(Mapping::Full | Mapping::Verbatim), Some(_)) = (self.mapping, self.at) {
            let why = "the other mappings have all that was written, with its times";
            return Err(Failure::usage(format!("--at is for --mapping logical; {why}")));
        }
        options.mapping = match self.mapping {
            Some(mapping) => mapping.into(),
            None if self.is_for_rows || self.at.is_some() => MutationMapping::Logical,
            None => MutationMapping::Full,
        };
        (options.at, options.tokens) = (self.at, self.token_range);
        let file = text.schema_file.as_ref().map(|path| path.to_string_lossy().into_owned());
        if let Some(definition) = text.schema.as_ref().or(file.as_ref()) {
            options.definition = definition.parse()?;
        }
        Ok(options)
    }
}
