//! `parquet2cql --file F --table T --pk NAME`: the tool of that name, with its faults mended.
//!
//! It is `marquetry cql F --table T --key-row-number NAME`, but that the table's name is taken as it stands, capitals and
//! all, as that tool did.

use std::path::PathBuf;

use clap::Parser;

use marquetry::scylla::cql::{Name, TableName};

use crate::cql;
use crate::failure::{EXIT_HELP, Failure, Outcome};
use crate::output::Interrupted;

/// Print a Parquet file as CQL: CREATE TABLE, then one INSERT per row
#[derive(Debug, Parser)]
#[command(
    name = "parquet2cql",
    version,
    after_help = format!("\
Example:
  parquet2cql --file trips.parquet --table trips --pk row_number | cqlsh -k ks

The same as `marquetry cql`, which has more options: columns of the file as the key, limits, other time types.

{EXIT_HELP}")
)]
pub(crate) struct Parquet2Cql {
    /// Parquet file path
    #[arg(long, value_name = "FILE")]
    file: PathBuf,

    /// CQL table name, kept as written, capitals included; a keyspace and a dot may precede it
    #[arg(long, value_name = "[KEYSPACE.]TABLE")]
    table: String,

    /// Primary key (row number) column name
    #[arg(long, value_name = "NAME")]
    pk: String,
}

impl Parquet2Cql {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let wrong = |error: marquetry::scylla::cql::NameError| {
            Failure::usage(format!("--table '{}': {error}", self.table))
        };
        let table = match self.table.split_once('.') {
            Some((keyspace, table)) => TableName {
                keyspace: Some(Name::new_keyspace(keyspace).map_err(wrong)?),
                table: Name::new_table(table).map_err(wrong)?,
            },
            None => TableName { keyspace: None, table: Name::new_table(&self.table).map_err(wrong)? },
        };
        cql::print(std::slice::from_ref(&self.file), &cql::Options::row_numbers(table, &self.pk), interrupted)
    }
}
