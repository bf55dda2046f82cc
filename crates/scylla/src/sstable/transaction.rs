//! What servers leave beside SSTables while they replace some by others: Cassandra's transaction logs, ScyllaDB's lists of what it deletes.
//!
//! A transaction of Cassandra (a flush, a compaction, a stream) adds SSTables and removes others. Its log is beside them, in each directory
//! that has any of them, from before the first file is created until the last old one is deleted. It is named
//! `VERSION_txn_OPERATION_ID.log` and has a record a line (`LogRecord.java`):
//!
//! ```text
//! ADD:[/data/ks/t-f34b/nb-7-big-,0,8][2361753406]
//! REMOVE:[/data/ks/t-f34b/nb-3-big-,1700000000000,8][4103896114]
//! COMMIT:[,0,0][2613697770]
//! ```
//!
//! What a log adds counts once it has a `COMMIT`, or is gone; what it removes counts until then.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_kernels::crc32;

use super::toc::{Component, FileName};

/// A transaction of Cassandra, as far as its log says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionLog {
    /// What does it.
    pub operation: Operation,
    /// SSTables that it makes, by what the names of their files begin with: `nb-7-big`.
    pub adds: Vec<String>,
    /// SSTables that it replaces.
    pub removes: Vec<String>,
    /// How it ended. `None` while it goes on; also if the log is [damaged](TransactionLog::is_damaged).
    pub end: Option<TransactionEnd>,
    /// A line cannot be read, or has another checksum. (A last line without its end is only being written.)
    pub is_damaged: bool,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionEnd {
    /// What it made counts, and what it replaced is deleted.
    Committed,
    /// What it made is deleted.
    Aborted,
}

/// What makes SSTables (`OperationType.java`; the name is part of the log's name).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A memtable is written: what is in the SSTable was in none before.
    Flush,
    /// SSTables are written anew: by a compaction, a cleanup, an upgrade. Nothing is new in them.
    Rewrite(String),
    /// Another one, such as a stream from another node.
    Other(String),
}

/// Operations that only write anew what other SSTables have.
const REWRITES: &[&str] = &[
    "anticompaction",
    "cleanup",
    "compaction",
    "majorcompaction",
    "relocatesstablestocorrectdisk",
    "removedeleteddata",
    "scrub",
    "tombstonecompaction",
    "upgradesstables",
];

impl Operation {
    /// The operation that a log's name says.
    pub fn parse(name: &str) -> Operation {
        match name {
            "flush" => Operation::Flush,
            name if REWRITES.contains(&name) => Operation::Rewrite(name.to_string()),
            name => Operation::Other(name.to_string()),
        }
    }
}

impl TransactionLog {
    /// Whether a file of this name is the log of a transaction.
    pub fn is_log(name: &str) -> bool {
        operation_of(name).is_some()
    }

    /// Parses a log, by the name of its file and its content. `None` if the name is not one of a log.
    ///
    /// ```
    /// use marquetry_scylla::sstable::{Operation, TransactionLog};
    ///
    /// let name = "nb_txn_compaction_5b4a3d20-1234-11ef-9d2b-0242ac120002.log";
    /// let log = TransactionLog::parse(name, b"ADD:[/data/ks/t/nb-7-big,0,8][1]\n").unwrap();
    /// assert_eq!(log.operation, Operation::Rewrite("compaction".into()));
    /// assert!(log.is_damaged && log.end.is_none(), "its checksum is another one");
    /// ```
    pub fn parse(name: &str, content: &[u8]) -> Option<TransactionLog> {
        let operation = Operation::parse(operation_of(name)?);
        let mut log =
            TransactionLog { operation, adds: Vec::new(), removes: Vec::new(), end: None, is_damaged: false };
        let mut end = None;
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            let text = core::str::from_utf8(line).unwrap_or("\u{fffd}");
            match record(text.trim_end_matches(['\n', '\r'])) {
                Some(Record::Add(stem)) => log.adds.push(stem),
                Some(Record::Remove(stem)) => log.removes.push(stem),
                Some(Record::End(found)) => end = Some(found),
                // It is being written.
                None if !line.ends_with(b"\n") => {}
                None if text.trim().is_empty() => {}
                None => log.is_damaged = true,
            }
        }
        log.end = end.filter(|_| !log.is_damaged);
        Some(log)
    }
}

/// `VERSION_txn_OPERATION_ID.log`.
fn operation_of(name: &str) -> Option<&str> {
    let (version, rest) = name.strip_suffix(".log")?.split_once("_txn_")?;
    let is_version = version.len() == 2 && version.bytes().all(|letter| letter.is_ascii_lowercase());
    let (operation, _) = rest.rsplit_once('_')?;
    is_version.then_some(operation)
}

enum Record {
    Add(String),
    Remove(String),
    End(TransactionEnd),
}

/// A line: `KIND:[PATH,TIME,FILES][CHECKSUM]`. `None` if it is not one, or has another checksum.
fn record(line: &str) -> Option<Record> {
    let (kind, rest) = line.split_once(":[")?;
    let (body, checksum) = rest.strip_suffix(']')?.rsplit_once("][")?;
    let mut parts = body.rsplitn(3, ',');
    let (files, time, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (files, time): (u32, u64) = (files.parse().ok()?, time.parse().ok()?);
    let kind = kind.to_ascii_uppercase();
    let [low, high] = [time & u64::from(u32::MAX), time >> 32].map(|half| u32::try_from(half).unwrap_or(0));
    let mut computed = crc32(crc32(0, path.as_bytes()), kind.as_bytes());
    for number in [low, high, files] {
        computed = crc32(computed, &number.to_be_bytes());
    }
    if checksum.parse() != Ok(computed) {
        return None;
    }
    // The path ends in the dash that comes before the component, which early versions leave out.
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = || name.strip_suffix('-').unwrap_or(name).to_string();
    Some(match &*kind {
        "ADD" => Record::Add(stem()),
        "REMOVE" => Record::Remove(stem()),
        "COMMIT" => Record::End(TransactionEnd::Committed),
        "ABORT" => Record::End(TransactionEnd::Aborted),
        _ => return None,
    })
}

/// The SSTables that ScyllaDB deletes together, by a log of its directory `pending_delete`: the names of their tables of contents, one a
/// line. Each is given by what the names of its files begin with; other lines are left out. (`sstable_directory.cc`)
///
/// ```
/// let pending = marquetry_scylla::sstable::parse_pending_delete(b"me-3-big-TOC.txt\nme-4-big-TOC.txt\n");
/// assert_eq!(pending, ["me-3-big", "me-4-big"]);
/// ```
pub fn parse_pending_delete(content: &[u8]) -> Vec<String> {
    let lines = core::str::from_utf8(content).unwrap_or_default().lines();
    let names = lines.filter_map(|line| line.trim().rsplit('/').next());
    let parsed = names.filter_map(|name| FileName::parse(name).ok().flatten());
    parsed.filter(|name| name.component == Component::Toc).map(|name| name.stem()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const NAME: &str = "nb_txn_flush_d2f0cd40-6d2a-11ef-b9ff-cd4b0f9e5d0e.log";

    fn line(kind: &str, path: &str, time: u64, files: u32) -> String {
        let mut sum = crc32(crc32(0, path.as_bytes()), kind.as_bytes());
        let half = |shift: u32| u32::try_from(time >> shift & u64::from(u32::MAX)).unwrap();
        for number in [half(0), half(32), files] {
            sum = crc32(sum, &number.to_be_bytes());
        }
        format!("{kind}:[{path},{time},{files}][{sum}]\n")
    }

    /// A log that Cassandra 5.0 wrote.
    #[test]
    fn checksums_are_those_of_cassandra() {
        let name = "nb_txn_compaction_88e4c4c0-eb24-11f1-a186-2b339a1d4dc2.log";
        let text = "ADD:[/tmp/node/data/data/system/local-7ad54392bcdd35a684174e047860b377/nb-8-big-,0,8][2848265703]
REMOVE:[/tmp/node/data/data/system/local-7ad54392bcdd35a684174e047860b377/nb-7-big-,1795867756928,8][2055125218]
REMOVE:[/tmp/node/data/data/system/local-7ad54392bcdd35a684174e047860b377/nb-5-big-,1795867753056,8][2215496605]
COMMIT:[,0,0][2613697770]
";
        let log = TransactionLog::parse(name, text.as_bytes()).unwrap();
        assert_eq!(log.operation, Operation::Rewrite("compaction".into()));
        assert_eq!(
            (&log.adds[..], &log.removes[..]),
            (&["nb-8-big".into()][..], &["nb-7-big".into(), "nb-5-big".into()][..])
        );
        assert_eq!((log.end, log.is_damaged), (Some(TransactionEnd::Committed), false));
        assert_eq!(line("COMMIT", "", 0, 0), "COMMIT:[,0,0][2613697770]\n");
    }

    #[test]
    fn logs_are_open_until_they_end() {
        let add = line("ADD", "/data/ks/t-1/nb-7-big", 0, 8);
        let remove = line("REMOVE", "/data/ks/t-1/nb-3-big-", 1_700_000_000_123, 8);
        let parse = |text: &str| TransactionLog::parse(NAME, text.as_bytes()).unwrap();
        let open = parse(&format!("{add}{remove}"));
        assert_eq!((open.adds.join(" "), open.removes.join(" ")), ("nb-7-big".into(), "nb-3-big".into()));
        assert_eq!((open.operation, open.end, open.is_damaged), (Operation::Flush, None, false));
        let of_end = |kind: &str| parse(&format!("{add}{remove}{}", line(kind, "", 0, 0))).end;
        assert_eq!(of_end("COMMIT"), Some(TransactionEnd::Committed));
        assert_eq!(of_end("ABORT"), Some(TransactionEnd::Aborted));
        // A line that is being written is no line yet.
        let commit = line("COMMIT", "", 0, 0);
        for length in 1..commit.len() - 1 {
            let log = parse(&format!("{add}{}", &commit[..length]));
            assert_eq!((log.adds.len(), log.end, log.is_damaged), (1, None, false), "{length}");
        }
        assert!(parse(commit.trim_end()).end.is_some(), "all of it but the line's end");
    }

    #[test]
    fn damaged_logs_end_nothing() {
        let commit = line("COMMIT", "", 0, 0);
        let damaged =
            ["ADD:[/data/nb-7-big,0,8][12]\n", "NONE:[,0,0][0]\n", "\u{fffd}\n", "ADD\n", "ADD:[]][\n"];
        for line in damaged {
            let log = TransactionLog::parse(NAME, format!("{line}{commit}").as_bytes()).unwrap();
            assert_eq!((log.is_damaged, log.end), (true, None), "{line}");
        }
        let log = TransactionLog::parse(NAME, b"ADD:[\xff,0,0][1]\n").unwrap();
        assert!(log.is_damaged && log.adds.is_empty());
    }

    #[test]
    fn names_say_what_is_done() {
        let operation = |name: &str| TransactionLog::parse(name, b"").map(|log| log.operation);
        assert_eq!(operation("mc_txn_stream_1.log"), Some(Operation::Other("stream".into())));
        let rewrite = operation("oa_txn_upgradesstables_1.log");
        assert_eq!(rewrite, Some(Operation::Rewrite("upgradesstables".into())));
        for other in ["nb_txn_flush.log", "x_txn_flush_1.log", "nb_txn_flush_1", "nb-1-big-Data.db"] {
            assert!(operation(other).is_none() && !TransactionLog::is_log(other), "{other}");
        }
        assert!(TransactionLog::is_log(NAME));
    }

    #[test]
    fn what_scylladb_is_deleting() {
        let text =
            b"me-3-big-TOC.txt\n\nme-4-big-Data.db\n/data/ks/t/me-5-big-TOC.txt\nzz-1-big-TOC.txt\nother\n";
        assert_eq!(parse_pending_delete(text), ["me-3-big", "me-5-big"]);
        assert!(parse_pending_delete(b"\xff").is_empty());
    }
}
