//! `marquetry watch`: each SSTable of a node as a Parquet file, as soon as it is complete.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use marquetry::io::process::lower_priority;
use marquetry::tables::Cancel;
use marquetry::tables::sstables::{self, TablePattern, WatchEvent, WatchOptions, WatchSummary, WatchedFile};
use serde_json::json;

use crate::args::ThreadArgs;
use crate::copy::CodecArgs;
use crate::failure::{Failure, Outcome, say};
use crate::json;
use crate::numbers::{parse_bytes, parse_duration, plural, size, thousands};
use crate::output::{Interrupted, Output};
use crate::sstable_args::Mapping;
use crate::table::printable;

/// Watch a node's data directory and convert each SSTable to a Parquet file
#[derive(Debug, Args)]
#[command(
    long_about = "Watch the data directory of a Cassandra or ScyllaDB node, and convert each SSTable that appears there to a Parquet file: once, \
also after restarts of either side. The database is not changed, and need not know. A node with several data directories (data_file_directories) is \
watched with all of them: a table that is in two is one table.

Files are DEST/KEYSPACE/TABLE-ID/SSTABLE-DIGEST.parquet, and appear when they are complete. With --keep flushes, there is one for each flush of a \
memtable, for good; what a compaction makes of flushes is left out. With --keep current, there is one for each SSTable that the table consists of: \
when a compaction has replaced some, the new files replace the old ones.

A file has what one SSTable has: with --mapping full its writes and deletions, also of rows that only other SSTables have. The kernel reports \
changes; where it cannot, directories are looked at every 5 seconds. SSTables are linked into a directory for work while they are converted, so \
that compactions cannot delete them. Runs with the lowest priority.

Ends with exit code 0 on Ctrl-C or SIGTERM. With --once, 1 means that SSTables could not be converted, and 3 that something could not be read or written.",
    after_help = "\
Examples:
  marquetry watch /var/lib/cassandra/data --to lake/node-1
  marquetry watch /disk1/data /disk2/data --to lake/node-1
  marquetry watch /var/lib/scylla/data --to s3://lake/node-1 --keep current \\
    --table shop.orders --table shop.items --share 25%
  marquetry watch /var/lib/cassandra/data --to lake/node-1 --once"
)]
pub(crate) struct Watch {
    /// Data directories of the node, all that it has: keyspaces, and in each the directories of its tables
    #[arg(value_name = "DATA_DIR", required = true)]
    data: Vec<PathBuf>,

    /// Directory for the Parquet files, of this node alone; also s3://BUCKET/KEY, az://CONTAINER/KEY, gs://BUCKET/KEY
    #[arg(long, value_name = "DEST")]
    to: PathBuf,

    /// Tables to watch, KEYSPACE.TABLE or KEYSPACE; may be repeated [default: all but the system's]
    #[arg(long, value_name = "KS.TABLE", value_delimiter = ',', value_parser = parse_table)]
    table: Vec<TablePattern>,

    /// SSTables that become files, and how long files stay
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    keep: Keep,

    /// Rows of the files [default: full]
    #[arg(long, value_enum, value_name = "MAPPING")]
    mapping: Option<Mapping>,

    /// Definitions of the tables: a file of CQL, CQL text, or 'none' [default: schema.cql in the data directory or below, or else the node's schema tables]
    #[arg(long, value_name = "TEXT|FILE")]
    schema: Option<String>,

    /// Convert what is there, and end: for cron
    #[arg(long)]
    once: bool,

    /// Try SSTables again that earlier runs could not convert
    #[arg(long)]
    retry_failed: bool,

    /// Directory for links and state, on the file system of the data [default: .marquetry in each DATA_DIR]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,

    /// Share of all processors' time to use at most: 25%
    #[arg(long, value_name = "N%", value_parser = parse_percent, help_heading = "Resources")]
    share: Option<u8>,

    /// Approximate memory for rows [default: 512M]
    #[arg(long, value_parser = parse_bytes::<std::num::NonZeroU64>, value_name = "BYTES", help_heading = "Resources")]
    memory: Option<std::num::NonZeroU64>,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    codec: CodecArgs,

    /// Look at the directories after this time, instead of waiting for the kernel to report changes: 10s
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    poll: Option<Duration>,

    /// File of counters for Prometheus's textfile collector, replaced as they change
    #[arg(long, value_name = "FILE")]
    metrics_file: Option<PathBuf>,

    /// JSON output: an object on a line for each event, with stable keys
    #[arg(long)]
    json: bool,

    /// No lines but errors
    #[arg(long, short)]
    quiet: bool,

    /// Take SSTables out of DATA_DIR, an inbox with the file _marquetry_inbox: each is removed there once it is linked
    #[arg(long, conflicts_with = "keep", help_heading = "For programs that start it")]
    inbox: bool,

    /// End when standard input ends: with the program that started it
    #[arg(long, help_heading = "For programs that start it")]
    until_eof: bool,
}

/// Which SSTables become files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Keep {
    /// Flushes, for good; not what compactions make of them
    #[default]
    Flushes,
    /// Those that the table consists of now
    Current,
}

fn parse_table(text: &str) -> Result<TablePattern, String> {
    text.parse().map_err(|error: marquetry::Error| error.message().to_owned())
}

fn parse_percent(text: &str) -> Result<u8, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    percent.filter(|percent| (1..=100).contains(percent)).ok_or_else(|| "must be 1% to 100%".to_owned())
}

impl Watch {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        if let Err(error) = lower_priority() {
            say("marquetry", &format!("note: the priority stays as it is: {}", error.message()));
        }
        let options = self.options(&interrupted)?;
        if self.until_eof {
            end_with_input(options.cancel.clone());
        }
        let started = Instant::now();
        let mut output = Output::new(interrupted.clone());
        let mut ended = Ok(());
        let mut line = |text: &str| {
            output.text().extend_from_slice(text.as_bytes());
            match output.flush() {
                // Nobody reads any more.
                Err(failure) if !matches!(failure, Failure::Interrupted) && ended.is_ok() => {
                    ended = Err(failure);
                    options.cancel.cancel();
                }
                _ => {}
            }
        };
        let summary = sstables::watch(&options, &mut |event| match self.json {
            true => line(&event_json(event)),
            false => self.say_event(event, &mut line),
        })?;
        if self.json {
            line(&summary_json(&summary));
        } else if !self.quiet {
            line(&in_words(&summary, started.elapsed()));
        }
        ended?;
        match self.once {
            false => Ok(()),
            true if interrupted.is_set() => Err(Failure::Interrupted),
            true => outcome(&summary),
        }
    }

    fn options(&self, interrupted: &Interrupted) -> Outcome<WatchOptions> {
        let (first, more) = self.data.split_first().ok_or_else(|| Failure::usage("DATA_DIR is missing"))?;
        let mut options = WatchOptions::new(first, &self.to);
        options.more_data = more.to_vec();
        (options.store, options.cancel) = (interrupted.stores(), interrupted.cancel());
        options.keep = match self.keep {
            Keep::Flushes => sstables::Keep::Flushes,
            Keep::Current => sstables::Keep::Current,
        };
        options.mapping = self.mapping.unwrap_or(Mapping::Full).into();
        if let Some(definition) = &self.schema {
            options.definition = definition.parse()?;
        }
        (options.tables, options.work) = (self.table.clone(), self.work.clone());
        (options.once, options.retry_failed) = (self.once, self.retry_failed);
        (options.threads, options.share_percent) = (self.threads.get(), self.share);
        options.memory_bytes = self.memory.map_or(options.memory_bytes, std::num::NonZeroU64::get);
        (options.poll, options.metrics) = (self.poll, self.metrics_file.clone());
        options.inbox = self.inbox;
        self.codec.apply(&mut options.parquet);
        Ok(options)
    }

    fn say_event(&self, event: &WatchEvent<'_>, line: &mut dyn FnMut(&str)) {
        let text = match event {
            WatchEvent::FailedBefore { subject, why } => {
                return say(
                    "marquetry",
                    &format!("{subject}: {why} (earlier; --retry-failed tries it again)"),
                );
            }
            WatchEvent::Failed { subject, error, again } => {
                let why = Failure::from((*error).clone()).said().unwrap_or_default();
                let again = again.map_or_else(String::new, |_| "; it is tried again".to_owned());
                return say("marquetry", &format!("{subject}: {why}{again}"));
            }
            _ if self.quiet => return,
            WatchEvent::Note(text) => return say("marquetry", &format!("note: {text}")),
            WatchEvent::Started { tables, waiting, polling } => {
                if let Some(polling) = polling {
                    say("marquetry", &format!("note: directories are looked at {polling}"));
                }
                format!("{} watched, {} to convert", plural(*tables, "table"), plural(*waiting, "SSTable"))
            }
            WatchEvent::Converted(file) => converted(file),
            WatchEvent::Skipped { table, sstable, why } => format!("{table} {sstable}: left out ({why})"),
            WatchEvent::Removed { table, path } => {
                format!("{table}: {} removed, its SSTable was replaced", path.display())
            }
            _ => return,
        };
        line(&format!("{}\n", printable(&text)));
    }
}

fn converted(file: &WatchedFile) -> String {
    format!(
        "{} {}: {}, {} of {} in {:.1} s",
        file.table,
        file.sstable,
        plural(file.rows, "row"),
        size(file.bytes),
        size(file.bytes_read),
        file.took.as_secs_f64()
    )
}

/// What was done, and what was not.
fn in_words(summary: &WatchSummary, elapsed: Duration) -> String {
    let mut text = format!(
        "{} converted ({}, {} of {}) in {:.1} s",
        plural(summary.converted, "SSTable"),
        plural(summary.rows, "row"),
        size(summary.bytes),
        size(summary.bytes_read),
        elapsed.as_secs_f64()
    );
    for (count, what) in [
        (summary.skipped, "left out"),
        (summary.removed, "removed"),
        (summary.failed, "could not be converted"),
        (summary.failed_before, "could not be converted earlier (--retry-failed tries them again)"),
        (summary.waiting, "still to convert"),
        (summary.incomplete, "not complete"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {} {what}", thousands(count)));
        }
    }
    text + "\n"
}

/// Ends the watching when nobody can write to standard input any more.
fn end_with_input(cancel: Cancel) {
    std::thread::spawn(move || {
        // An error is an end, too: input that was closed.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        cancel.cancel();
    });
}

/// The exit code of a run that ended by itself.
fn outcome(summary: &WatchSummary) -> Outcome {
    match &summary.unreachable {
        Some(error) if summary.waiting > 0 => Err(Failure::from(error.clone())),
        _ if summary.failed + summary.failed_before > 0 => {
            let failed = plural(summary.failed + summary.failed_before, "SSTable");
            Err(Failure::refused(format!("{failed} could not be converted")))
        }
        Some(error) => Err(Failure::from(error.clone())),
        None => Ok(()),
    }
}

fn event_json(event: &WatchEvent<'_>) -> String {
    let value = match event {
        WatchEvent::Started { tables, waiting, polling } => {
            json!({"event": "started", "tables": tables, "waiting": waiting, "polling": polling})
        }
        WatchEvent::Converted(file) => json!({
            "event": "converted", "table": file.table, "sstable": file.sstable, "path": file.path.to_string_lossy(),
            "rows": file.rows, "sstable_bytes": file.bytes_read, "bytes": file.bytes,
            "seconds": file.took.as_secs_f64(), "seconds_since_noticed": file.since_noticed.as_secs_f64(),
        }),
        WatchEvent::Skipped { table, sstable, why } => {
            json!({"event": "skipped", "table": table, "sstable": sstable, "why": why})
        }
        WatchEvent::Removed { table, path } => {
            json!({"event": "removed", "table": table, "path": path.to_string_lossy()})
        }
        WatchEvent::Failed { subject, error, again } => json!({
            "event": "failed", "subject": subject, "error": Failure::from((*error).clone()).said(),
            "tried_again": again.is_some(),
        }),
        WatchEvent::FailedBefore { subject, why } => {
            json!({"event": "failed", "subject": subject, "error": why, "tried_again": false, "earlier": true})
        }
        WatchEvent::Note(text) => json!({"event": "note", "text": text}),
        _ => return String::new(),
    };
    line_of(&value)
}

fn summary_json(summary: &WatchSummary) -> String {
    line_of(&json!({
        "event": "ended", "converted": summary.converted, "rows": summary.rows, "sstable_bytes": summary.bytes_read,
        "bytes": summary.bytes, "skipped": summary.skipped, "removed": summary.removed, "failed": summary.failed,
        "failed_before": summary.failed_before, "retries": summary.retries, "waiting": summary.waiting,
        "incomplete": summary.incomplete,
    }))
}

fn line_of(value: &serde_json::Value) -> String {
    let mut line = Vec::new();
    // It is made of texts and numbers, which are always written.
    let _ = json::write(&mut line, value);
    line.push(b'\n');
    String::from_utf8_lossy(&line).into_owned()
}
