//! `marquetry copy`: files, or a table of a live cluster, into a table of one, into other files, or to standard output.

mod cluster;
mod copying;
mod file;
mod missing;
mod of_rows;
mod parts;
mod sstables;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use marquetry::tables::Address;
use marquetry::{DestinationOptions, OptionGroup, Target};

use cluster::{ClusterArgs, Layout};
pub(crate) use copying::{Copying, summary, summary_json};
pub(crate) use file::CodecArgs;
use file::FileArgs;
use sstables::SstableOutputArgs;

use crate::args::{RowArgs, ThreadArgs};
use crate::cql;
use crate::failure::{Failure, Outcome};
use crate::output::{Interrupted, Output};
use crate::target::{self, Given, To};

/// Copy rows into and out of tables of ScyllaDB or Cassandra, Parquet files, CSV and JSON lines
// No `Debug`: an address may hold a password.
#[derive(Args)]
#[command(
    override_usage = "marquetry copy [OPTIONS] <FILE>... cql://HOST/KEYSPACE.TABLE\n       marquetry copy [OPTIONS] <FILE>... TO.parquet|TO.csv|TO.jsonl\n       marquetry copy [OPTIONS] <FILE>... DIRECTORY/\n       marquetry copy [OPTIONS] <FILE>... sstable:DIR\n       marquetry copy [OPTIONS] <FILE>... - --to FORMAT\n       marquetry copy [OPTIONS] cql://HOST/KEYSPACE.TABLE TO",
    long_about = "Copy Parquet files into a table of a live ScyllaDB or Cassandra cluster, or into a Parquet file or a directory of them, or into CSV, TSV or JSON lines.

With --create, the table is created, and with it the user-defined types for groups; it has the options of the source's table, and its indexes, if that has the same columns and key. Otherwise it must exist, with columns of the same \
names (--map): its key is known, so --key is not needed; its types decide what values become, and between list and set, and groups are matched with \
user-defined types by field names. What fits is converted, exactly: text to any type as CQL writes it, numbers to other numbers, times to \
other units. Values are sent in the database's own form, prepared, many at a time, in bounded memory. Of rows \
with the same key, the last one wins. A failed copy can be run again: rows already there are written again unchanged; with --state it goes on \
where it ended. A server that is down for a while is waited for (--retry-for), and rows that cannot be loaded may go to a file (--rejects). CSV, \
TSV and JSON lines are copied like Parquet files; see --from and --schema.

SSTables (sstable:DIR), and Parquet files made of them by --mapping full, are loaded as the writes that they are: with write times, TTLs \
and deletions. The key, the types and their order are those of the table, so --create needs no --key. What has expired is deleted. \
With options that change columns or keys, rows are loaded as a SELECT returns them (--mapping logical). Counters cannot be loaded.

New SSTables (sstable:DIR as the destination) are made of any rows, as INSERT statements would leave them: --table ks.t and --key say what the table \
is, or --schema-cql. Rows are sorted, in bounded memory (--memory). Other SSTables, and Parquet files with the mapping full, are the writes that they are. \
--format names the version. `nodetool import` loads the directory into Cassandra, and `nodetool refresh --load-and-stream` into ScyllaDB.

A file appears under its name only when it is complete and on disk; an existing file is not replaced without --overwrite. \
What replaces another has its mode, and its owner and group if permitted; symbolic links are followed. Values \
are copied bit by bit. Their encoding is chosen from the data, column by column.

CSV, TSV and JSON lines are written as `marquetry rows --help` says, compressed if the name ends in .gz, .bz2 or .zst. In CSV, null is nothing \
and empty text is \"\"; nested columns are for JSON lines. TSV has no quotes: text with tabs or line ends, and empty text, are errors.

Objects of stores (s3://, az://, gs://) appear when they are complete, too. Credentials are those of the environment, by \
the names that each cloud's own tools use: AWS_ACCESS_KEY_ID, AZURE_STORAGE_ACCOUNT_NAME, GOOGLE_APPLICATION_CREDENTIALS and so on. \
gs:// was never tried with a real server.

A table of a cluster is a source, too: it is read by token ranges, page by page, in the order of tokens. Its columns have their own names and \
natural types, and each Parquet file keeps the exact CQL types and the statements that make the table (key-value metadata \
marquetry.table.columns and marquetry.table.schema). --with-metadata adds write times and TTLs.

A directory holds Parquet files, and appears when all of them are complete; with those of a table of a cluster, schema.cql has the statements that make it. \
With --overwrite it replaces an existing directory, if that contains only Parquet files, directories such as year=2024, and schema.cql.",
    after_help = "\
Passwords: rather than in the address, where other users of this machine can see it, put the password in the environment variable \
MARQUETRY_PASSWORD or in a file (--password-file). In an address, write %40 for @, %2F for / and %25 for %.

Examples:
  marquetry copy trips.parquet cql://localhost/ks.trips --create --key 'day, trip'
  marquetry copy trips/ cql://etl@db1,db2/ks.trips --password-file ~/.etl
  marquetry copy trips.parquet cql://localhost/ks.trips --create \\
    --key-row-number id --timestamps-as millis
  marquetry copy trips/ cql://db1/ks.trips --rate 5K --rejects bad.parquet \\
    --state trips.state --resume
  marquetry copy cql://localhost/ks.trips trips.parquet
  marquetry copy cql://localhost/ks.trips trips/ --with-metadata --file-bytes 1G
  marquetry copy trips/ trips.parquet --codec zstd --columns id,day,fare
  marquetry copy trips/ sorted.parquet --sort 'day, fare desc'
  marquetry copy trips.parquet by-day/ --partition-by day --sort trip
  marquetry copy trips/ trips.csv.gz
  marquetry copy sstable:data/ks/trips-f34b6ff0 cql://localhost/ks.trips --create
  marquetry copy 'backup/*.parquet' sstable:restored/ --format da
  marquetry copy trips.parquet sstable:new/ --table ks.trips --key '(day), trip'
  marquetry copy trips.parquet - --to jsonl | jq .fare"
)]
pub(crate) struct Copy {
    /// Sources (Parquet files, CSV, JSON lines, directories, patterns such as 'trips/**/*.parquet'; or one table,
    /// cql://HOST/KEYSPACE.TABLE), then the destination
    ///
    /// The destination is cql://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/KEYSPACE.TABLE, a path that ends
    /// in .parquet, .csv, .tsv or .jsonl (also before .gz, .bz2 and .zst), a path that ends in / or is a directory, sstable:DIR for new SSTables, or - for
    /// standard output, with --to. Paths can be those of object stores: s3://BUCKET/KEY, az://CONTAINER/KEY,
    /// gs://BUCKET/KEY (not tried with a real server); sources can be https:// URLs, too, and sstable:DIR: the SSTables of a table.
    #[arg(value_name = "FILE… TO", required = true)]
    from_and_to: Vec<OsString>,

    /// Output format, whatever the file's name; required for '-', standard output
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<To>,

    /// Table name in CQL text (--to cql), and of rows in new SSTables; as in CQL, names without double quotes are folded to lower case
    #[arg(long, value_name = "[KEYSPACE.]TABLE")]
    table: Option<String>,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    file: FileArgs,

    #[command(flatten)]
    sstables: SstableOutputArgs,

    #[command(flatten)]
    rows: RowArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    /// Serve how far the copy is to Prometheus: http://ADDR/metrics
    ///
    /// ADDR is an IP address and a port, or a port, which only this machine can reach.
    #[arg(long, value_name = "[IP:]PORT", help_heading = "Output")]
    metrics: Option<String>,

    /// Print the summary as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// No progress bar and no summary
    #[arg(long, short)]
    quiet: bool,
}

impl Copy {
    pub(crate) fn run(mut self, interrupted: Interrupted) -> Outcome {
        let Some((to, from)) = self.from_and_to.split_last().filter(|(_, from)| !from.is_empty()) else {
            return Err(Failure::usage(
                "name the sources first, then the destination: a new Parquet file, CSV (.csv, .tsv), JSON lines (.jsonl), a directory \
(DIRECTORY/), - with --to FORMAT, or a table (cql://HOST/KEYSPACE.TABLE)",
            ));
        };
        let from: Vec<PathBuf> = from.iter().map(PathBuf::from).collect();
        let mut given = self.file.given();
        let wants_directory = given.any(|(_, groups)| groups.contains(&OptionGroup::Directory));
        let is_columns = self.cluster.layout == Some(Layout::Columns);
        let target = target::parse(to, self.to, is_columns, wants_directory)?;
        let is_standard = *target.address() == Address::Standard;
        if is_standard && self.json {
            return Err(Failure::usage("--json prints the summary to standard output, where the rows go"));
        }
        if is_standard && self.to == Some(To::Parquet) && io::stdout().is_terminal() {
            return Err(Failure::usage(
                "standard output is a terminal, and Parquet is not text: redirect it or give a file",
            ));
        }
        self.rows.table.map = self.cluster.renames()?;
        self.expect_mapping(&target, &from)?;
        self.rows = self.rows.going_to(&target);
        let copying = Copying {
            from: &from,
            rows: &self.rows,
            threads: self.threads,
            quiet: self.quiet,
            is_dry_run: self.cluster.is_dry_run(),
            makes_table: self.makes_table(&target),
            missing_only: self.cluster.missing_only,
            metrics: self.metrics.as_deref(),
            json: self.json,
            interrupted: &interrupted,
        };
        // A table's token ranges, file by file.
        let in_parts = self.cluster.state().filter(|_| target.takes(OptionGroup::Directory));
        let given = self.file.given().chain(self.sstables.given()).chain(self.rows.given());
        let given = given.chain(self.given(in_parts.is_some()));
        target::check(&target, given)?;
        let mut options = self.options(&target, &from, &interrupted)?;
        options.store = interrupted.stores();
        let summary = match in_parts {
            Some(state) => self.file.copy_in_parts(&copying, &target, state, &options.directory)?,
            None => self.file.copy(&copying, &target, target.open(&options)?)?,
        };
        // What goes to standard output is the rows.
        if (self.quiet && !self.json) || is_standard {
            return Ok(());
        }
        let mut output = Output::new(interrupted);
        output.text().extend_from_slice(summary.as_bytes());
        output.flush()
    }
}

impl Copy {
    /// Fails for SSTables that would lose write times and deletions on their way into other SSTables or a cluster, unless that is asked for.
    fn expect_mapping(&self, target: &Target, from: &[PathBuf]) -> Outcome {
        let are_sstables = from.iter().any(|path| Address::parse(path).sstables().is_some());
        let is_chosen = self.rows.table.sstables.is_mapping_given();
        let is_for_writes = target.takes(OptionGroup::SstableOutput) || target.takes(OptionGroup::Cluster);
        // Into a cluster some of the writes are writes: of which, is looked at where the table is known.
        let keeps_writes = |name: &&str| *name == "--where" && target.takes(OptionGroup::Cluster);
        let changing =
            self.rows.given().map(|(name, _)| name).chain(self.rows.table.changing().map(|(name, _)| name));
        let mut changing = changing.filter(|name| !keeps_writes(name));
        match changing.next().filter(|_| is_for_writes && are_sstables && !is_chosen) {
            Some(option) => Err(Failure::usage(format!(
                "with {option}, rows of SSTables are not the writes that they were: write times, TTLs and deletions would be lost. Leave it out; \
                 or say --mapping logical to write, as of now, what a SELECT returns"
            ))),
            None => Ok(()),
        }
    }

    /// How the destination is written.
    fn options(
        &self,
        target: &Target,
        from: &[PathBuf],
        interrupted: &Interrupted,
    ) -> Outcome<DestinationOptions> {
        let mut options = self.file.options()?;
        options.directory.parquet.write.limits = self.rows.table.limits.limits();
        options.text.invalid_utf8 = self.rows.invalid_utf8.into();
        options.text.limits = self.rows.table.limits.limits();
        if target.takes(OptionGroup::SstableOutput) {
            let limits = self.rows.table.limits.limits();
            options.sstables = self.file.compressed(self.sstables.options(limits)?)?;
            (options.sstables.rows.timestamp, options.sstables.rows.ttl) = self.cluster.stamps();
            options.sstables.rows.table = self.table.as_deref().map(cql::table_name).transpose()?;
        }
        if target.takes(OptionGroup::Cluster) || target.takes(OptionGroup::Columns) {
            options.cluster = self.cluster.options(from, &self.rows, interrupted)?;
        }
        if target.takes(OptionGroup::CqlText) {
            let Some(table) = &self.table else {
                return Err(Failure::usage("--to cql needs the table's name: --table ks.trips"));
            };
            options.table = Some(cql::table_name(table)?);
        }
        if target.takes(OptionGroup::Mapping) {
            options = options.mapped_by(self.rows.mapping_options()?);
        }
        Ok(options)
    }

    /// Whether the table comes to be as the options say, which then say its key.
    fn makes_table(&self, target: &Target) -> bool {
        let is_of_sstables = target.takes(OptionGroup::SstableOutput) && !self.sstables.has_definition();
        self.cluster.create && target.takes(OptionGroup::Cluster)
            || is_of_sstables
            || target.takes(OptionGroup::CqlText)
    }

    fn given(&self, keeps_state: bool) -> impl Iterator<Item = Given> {
        let groups = &[OptionGroup::CqlText, OptionGroup::SstableOutput][..];
        let table = self.table.is_some().then_some(("--table", groups));
        self.cluster.given(keeps_state).chain(table)
    }
}
