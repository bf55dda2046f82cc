//! `marquetry copy`: files into a table of a live cluster, or into other Parquet files.

mod cluster;
mod file;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use cluster::ClusterArgs;
use file::FileArgs;

use crate::args::RowArgs;
use crate::failure::{Failure, Outcome};
use crate::numbers::{plural, thousands};
use crate::output::{Interrupted, Output};
use crate::target::{self, Target};

/// Copy rows into a table of ScyllaDB or Cassandra, or into Parquet files
// No `Debug`: an address may hold a password.
#[derive(Args)]
#[command(
    override_usage = "marquetry copy [OPTIONS] <FILE>... cql://HOST/KEYSPACE.TABLE\n       marquetry copy [OPTIONS] <FILE>... TO.parquet\n       marquetry copy [OPTIONS] <FILE>... DIRECTORY/",
    long_about = "Copy Parquet files into a table of a live ScyllaDB or Cassandra cluster, or into a Parquet file or a directory of them.

With --create, the table is created, and with it the user-defined types for groups. Otherwise it must exist with the same column \
names and types: its key is known, so --key is not needed; its types decide between list and set, and groups are matched with \
user-defined types by field names. Values are sent in the database's own form, prepared, many at a time, in bounded memory. Of rows \
with the same key, the last one wins. A failed copy can be run again: rows already there are written again unchanged. CSV, TSV and \
JSON lines are copied like Parquet files; see --from and --schema.

A file appears under its name only when it is complete and on disk; an existing file is not replaced without --overwrite. Values \
are copied bit by bit. Their encoding is chosen from the data, column by column.

A directory appears when all of its files are complete. With --overwrite it replaces an existing directory, if that contains only \
Parquet files and directories such as year=2024.",
    after_help = "\
Passwords: rather than in the address, where other users of this machine can see it, put the password in the environment variable \
MARQUETRY_PASSWORD or in a file (--password-file). In an address, write %40 for @, %2F for / and %25 for %.

Examples:
  marquetry copy trips.parquet cql://localhost/ks.trips --create --key 'day, trip'
  marquetry copy trips/ cql://etl@db1,db2/ks.trips --password-file ~/.etl
  marquetry copy trips.parquet cql://localhost/ks.trips --create \\
    --key-row-number id --timestamps-as millis
  marquetry copy trips/ trips.parquet --codec zstd --columns id,day,fare
  marquetry copy trips/ sorted.parquet --sort 'day, fare desc'
  marquetry copy trips.parquet by-day/ --partition-by day --sort trip"
)]
pub(crate) struct Copy {
    /// Sources (Parquet files, CSV, JSON lines, directories, patterns such as 'trips/**/*.parquet'), then the
    /// destination
    ///
    /// The destination is cql://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/KEYSPACE.TABLE, a path that ends
    /// in .parquet, or a path that ends in / or is a directory.
    #[arg(value_name = "FILE… TO", required = true)]
    from_and_to: Vec<OsString>,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    file: FileArgs,

    #[command(flatten)]
    rows: RowArgs,

    /// No progress bar and no summary
    #[arg(long, short)]
    quiet: bool,
}

/// What is copied.
#[derive(Clone, Copy)]
struct Copying<'a> {
    from: &'a [PathBuf],
    rows: &'a RowArgs,
    quiet: bool,
    interrupted: &'a Interrupted,
}

impl Copy {
    pub(crate) fn run(self, interrupted: Interrupted) -> Outcome {
        let Some((to, from)) = self.from_and_to.split_last().filter(|(_, from)| !from.is_empty()) else {
            return Err(Failure::usage(
                "name the sources first, then the destination: the address of a table, a new Parquet file, or a new directory",
            ));
        };
        let from: Vec<PathBuf> = from.iter().map(PathBuf::from).collect();
        let copying = Copying { from: &from, rows: &self.rows, quiet: self.quiet, interrupted: &interrupted };
        let elsewhere = |option: Option<&str>, what: &str| match option {
            Some(option) => Err(Failure::usage(format!("{option} is for {what}"))),
            None => Ok(()),
        };
        let summary = match target::parse(to)? {
            Target::Cluster(address) => {
                elsewhere(self.file.given(), "writing Parquet files")?;
                self.cluster.copy(&copying, address)?
            }
            Target::File(path) => {
                elsewhere(self.cluster.given().or(self.rows.given_for_cql()), "tables of a cluster")?;
                elsewhere(self.file.given_for_directories(), "directories: end the name of one in /")?;
                self.file.copy_to_file(&copying, &path)?
            }
            Target::Directory(path) => {
                elsewhere(self.cluster.given().or(self.rows.given_for_cql()), "tables of a cluster")?;
                self.file.copy_to_directory(&copying, &path)?
            }
        };
        if self.quiet {
            return Ok(());
        }
        let mut output = Output::new(interrupted);
        output.text().extend_from_slice(summary.as_bytes());
        output.flush()
    }
}

/// `200,000 rows loaded into ks.trips in 3.2 s (62,500 a second)`, and what else there is to say in the parentheses.
fn summary(rows: u64, what: &str, started: Instant, more: &str) -> String {
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = thousands(u64::try_from(u128::from(rows) * 1000 / u128::from(millis)).unwrap_or(u64::MAX));
    let rows = plural(usize::try_from(rows).unwrap_or(usize::MAX), "row");
    let comma = if more.is_empty() { "" } else { ", " };
    format!("{rows} {what} in {}.{} s ({rate} a second{comma}{more})\n", millis / 1000, millis / 100 % 10)
}
