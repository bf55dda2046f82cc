//! Whether an SSTable has anything that is in no file yet.
//!
//! | what is known of it | by | `--keep flushes` |
//! |---|---|---|
//! | a flush | the transaction's log; ScyllaDB's origin | a file |
//! | written anew by a compaction and the like | the transaction's log | left out, if all that it was made of is known, and is in files or will be |
//! | the same | ScyllaDB's origin | left out, but for what is there at first |
//! | nothing, and it is of this node | the node that it names | left out, if the parts of the commit log that it has are in files |
//! | nothing else | | a file |
//!
//! So what is uncertain becomes a file: rows may be in two files, but not in none.

use std::collections::BTreeSet;
use std::path::Path;

use marquetry_base::{Limits, Result};
use marquetry_io::store::LocalFiles;
use marquetry_scylla::sstable::scylla_metadata::ScyllaMetadataReader;
use marquetry_scylla::sstable::statistics::CommitLogInterval;
use marquetry_scylla::sstable::{Component, FileName, Operation};

use super::coverage::Coverage;
use super::directory::Made;
use super::links::Linked;
use crate::sstables::component::{FILE, Sstable, read};
use crate::sstables::components::SstableFiles;

/// What is known of a table when an SSTable of it is decided.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// The parts of the commit log that are in files.
    pub(super) covered: &'a Coverage,
    /// The node, once that is certain.
    pub(super) host: Option<&'a str>,
    /// Nothing of the table was in files when it was found.
    pub(super) is_first: bool,
    /// Whether what an SSTable of that name has is in files, or will be.
    pub(super) is_in_files: &'a dyn Fn(&str) -> bool,
    /// Whether another SSTable that is there, and becomes a file, has the same positions.
    pub(super) has_sibling: &'a dyn Fn() -> bool,
}

/// What an SSTable says of itself.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) operation: Option<Operation>,
    /// What it was made of, if the log of its transaction was seen.
    pub(super) made_of: Option<BTreeSet<String>>,
    /// The parts of the commit log that it has, and of which node, in hexadecimal digits.
    pub(super) intervals: Vec<CommitLogInterval>,
    pub(super) host: Option<String>,
}

impl Origin {
    /// Looks at an SSTable; `made` is what the log of its transaction says, if that was seen.
    ///
    /// # Errors
    ///
    /// Those of its components.
    pub(super) fn of(linked: &Linked, made: Option<Made>, limits: Limits) -> Result<Origin> {
        let files = &linked.files;
        let stats = Sstable::open(&LocalFiles, files.clone(), limits)?.statistics.stats;
        let (operation, made_of) = made.map(|made| (made.operation, made.of)).unzip();
        let operation = match operation {
            None if files.bytes_of(&Component::Scylla).is_some() => {
                let machine = ScyllaMetadataReader::new(FILE, limits);
                let origin = read(&LocalFiles, files, &Component::Scylla, machine)?.origin;
                origin.as_deref().and_then(of_scylla)
            }
            operation => operation,
        };
        let hexadecimal = |id: [u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (intervals, host) = (stats.commit_log_intervals, stats.host_id.map(hexadecimal));
        Ok(Origin { operation, made_of, intervals, host })
    }

    /// Whether it is a flush, for certain.
    pub(super) fn is_flush(&self) -> bool {
        self.operation == Some(Operation::Flush)
    }

    /// Where it stands among others that are decided with it: flushes first, what may consist of others last.
    pub(super) fn rank(&self) -> (u8, Option<CommitLogInterval>) {
        let kind = match &self.operation {
            Some(Operation::Flush) => 0,
            Some(Operation::Rewrite(_)) => 2,
            _ => 1,
        };
        (kind, self.intervals.first().copied())
    }

    /// Why it is left out, if it is. `known` is what is known of its table.
    pub(super) fn left_out(&self, known: &Known<'_>) -> Option<String> {
        let Known { covered, host, .. } = *known;
        let is_covered = covered.contains_all(&self.intervals);
        match &self.operation {
            Some(Operation::Flush) => None,
            Some(Operation::Rewrite(name)) => {
                // Positions do not tell of what came from other nodes: what the log says does.
                let has_nothing_new = match &self.made_of {
                    Some(made_of) => {
                        !made_of.is_empty() && made_of.iter().all(|stem| (known.is_in_files)(stem))
                    }
                    // Of ScyllaDB: only its SSTables say themselves what made them.
                    None => is_covered || self.intervals.is_empty() && !known.is_first,
                };
                has_nothing_new.then(|| name.clone())
            }
            _ if is_covered && host.is_some() && self.host.as_deref() == host && !(known.has_sibling)() => {
                Some("what it has was flushed before, by its commit log positions".to_owned())
            }
            _ => None,
        }
    }
}

/// Whether an SSTable of a directory has the same positions as another one. What cannot be read may have them.
pub(super) fn has_positions(directory: &Path, stem: &str, origin: &Origin, limits: Limits) -> bool {
    let Ok(Some(name)) = FileName::parse(&format!("{stem}-Data.db")) else { return true };
    let components = vec![(Component::Data, 0), (Component::Statistics, 0)];
    let files = SstableFiles { name, folder: directory.to_path_buf(), components };
    if !files.path(&Component::Data).exists() {
        return false;
    }
    let opened = Sstable::open(&LocalFiles, files, limits);
    opened.map_or(true, |its| its.statistics.stats.commit_log_intervals == origin.intervals)
}

/// What ScyllaDB calls what made an SSTable (`sstable_writer_config::origin`; names of compactions: `compaction.cc`).
fn of_scylla(origin: &str) -> Option<Operation> {
    const REWRITES: &[&str] = &[
        "cleanup",
        "compaction",
        "garbage collection",
        "garbage_collection",
        "major",
        "reshape",
        "reshard",
        "resharding",
        "scrub",
        "split",
        "upgrade",
    ];
    match origin.to_ascii_lowercase().as_str() {
        "memtable" => Some(Operation::Flush),
        name if REWRITES.contains(&name) => Some(Operation::Rewrite(name.to_owned())),
        "" => None,
        name => Some(Operation::Other(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_scylla::sstable::statistics::CommitLogPosition;

    fn origin(operation: Option<&str>, from: i64, to: i64, host: Option<&str>) -> Origin {
        let at = |segment: i64| CommitLogPosition { segment, byte: 0 };
        let intervals = (from < to).then(|| CommitLogInterval { start: at(from), end: at(to) });
        Origin {
            operation: operation.map(Operation::parse),
            made_of: None,
            intervals: intervals.into_iter().collect(),
            host: host.map(str::to_owned),
        }
    }

    #[test]
    fn what_is_in_files_is_left_out_and_nothing_else() {
        let covered: Coverage = "10:0..20:0".parse().unwrap();
        let first = Known {
            covered: &covered,
            host: None,
            is_first: true,
            is_in_files: &|stem| stem < "nb-5",
            has_sibling: &|| false,
        };
        let known = Known { host: Some("a"), is_first: false, ..first };
        let is_out = |origin: &Origin| origin.left_out(&known).is_some();
        // Flushes never, whatever their positions.
        assert!(!is_out(&origin(Some("flush"), 12, 13, Some("a"))));
        assert!(is_out(&origin(Some("compaction"), 10, 20, Some("a"))));
        // It has what was flushed and deleted while nobody watched.
        assert!(!is_out(&origin(Some("compaction"), 10, 21, Some("a"))));
        assert!(is_out(&origin(None, 12, 14, Some("a"))));
        assert!(!is_out(&origin(None, 12, 21, Some("a"))));
        // Beside another one with the same positions it has other rows.
        let beside = Known { has_sibling: &|| true, ..known };
        assert!(origin(None, 12, 14, Some("a")).left_out(&beside).is_none());
        // Positions of another node, or of nobody knows which, say nothing.
        assert!(!is_out(&origin(None, 12, 14, Some("b"))));
        assert!(!is_out(&origin(None, 12, 14, None)));
        assert!(origin(None, 12, 14, None).left_out(&first).is_none());
        // From other nodes, without positions.
        assert!(!is_out(&origin(Some("stream"), 0, 0, Some("a"))));
        assert!(!is_out(&origin(None, 0, 0, Some("a"))));
        // ScyllaDB's have no positions: what it compacts was seen before, but for what was there at first.
        assert!(is_out(&origin(Some("compaction"), 0, 0, None)));
        assert!(origin(Some("compaction"), 0, 0, None).left_out(&first).is_none());
        // With a log, all that it was made of must be known: a stream has no positions, so these do not tell.
        for (made_of, is_known) in [(&["nb-1", "nb-2"][..], true), (&["nb-1", "nb-7"], false), (&[], false)] {
            for to in [0, 20] {
                let mut compacted = origin(Some("compaction"), 10.min(to), to, Some("a"));
                compacted.made_of = Some(made_of.iter().map(|&stem| stem.to_owned()).collect());
                assert_eq!(is_out(&compacted), is_known, "{made_of:?}, {to}");
            }
        }
    }

    #[test]
    fn flushes_are_decided_first() {
        let mut all = [
            origin(Some("compaction"), 1, 9, None),
            origin(None, 5, 6, None),
            origin(Some("flush"), 7, 8, None),
            origin(None, 1, 2, None),
        ];
        all.sort_by_key(Origin::rank);
        let starts: Vec<i64> = all.iter().map(|origin| origin.intervals[0].start.segment).collect();
        assert_eq!(starts, [7, 1, 5, 1]);
        assert!(all[0].is_flush());
    }

    #[test]
    fn scylladb_says_what_made_an_sstable() {
        assert_eq!(of_scylla("memtable"), Some(Operation::Flush));
        assert_eq!(of_scylla("Compaction"), Some(Operation::Rewrite("compaction".into())));
        assert_eq!(of_scylla("streaming"), Some(Operation::Other("streaming".into())));
        assert_eq!(of_scylla(""), None);
    }
}
