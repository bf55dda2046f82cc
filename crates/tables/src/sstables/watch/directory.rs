//! A table's directory: which SSTables in it are complete, and which of them still count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use marquetry_base::{Error, Result};
use marquetry_io::failed;
use marquetry_scylla::sstable::{
    Component, FileName, Operation, TransactionEnd, TransactionLog, parse_pending_delete, parse_toc,
};

/// The most bytes of a table of contents, of a log, of a list of what is deleted. They have a line for each file.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// How often it is looked again because files appeared meanwhile.
const TRIES: usize = 3;

/// Where ScyllaDB lists what it deletes.
const PENDING_DELETE: &str = "pending_delete";

/// What a table's directory has.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Complete SSTables, by what their names begin with.
    pub(super) sstables: BTreeMap<String, Seen>,
    /// SSTables that are not complete: still being written, by an open transaction or without all of their files; or being deleted.
    pub(super) incomplete: BTreeMap<String, Lacks>,
    /// SSTables that cannot be read, and logs that are damaged: what each is called, and why.
    pub(super) faults: Vec<(String, Error)>,
}

/// What an SSTable lacks that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lacks {
    /// The end of the transaction that adds it.
    Transaction,
    /// This component: the table of contents, or one that this lists.
    Component(Component),
}

impl Lacks {
    /// What to look for, of an SSTable whose names begin so; `None` if it is being written.
    pub(super) fn name(&self, stem: &str) -> Option<String> {
        match self {
            Lacks::Transaction => None,
            Lacks::Component(Component::Toc) => {
                Some(format!("{stem}-TOC.txt, its table of contents, is missing or empty"))
            }
            Lacks::Component(component) => Some(format!(
                "{stem}-{} is missing, which it needs or its table of contents lists",
                component.name()
            )),
        }
    }
}

/// A complete SSTable.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) name: FileName,
    /// Those that it takes to read it, as its table of contents lists them.
    pub(super) components: Vec<Component>,
    pub(super) stamp: Stamp,
    /// A transaction has replaced it: it is being deleted.
    pub(super) is_leaving: bool,
    /// What made it, as long as the log of that is there.
    pub(super) made: Option<Made>,
}

/// What a transaction's log says of an SSTable that it adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) operation: Operation,
    /// The SSTables that it replaces: what the new ones consist of, if it is a rewrite.
    pub(super) of: BTreeSet<String>,
}

/// What tells a file from another one that gets its name later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    modified_ns: u128,
}

impl Stamp {
    /// That of the file at a path.
    pub(super) fn of(path: &Path) -> io::Result<Stamp> {
        let found = fs::metadata(path)?;
        let modified = found.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        Ok(Stamp {
            inode: inode(&found),
            bytes: found.len(),
            modified_ns: modified.map_or(0, |since| since.as_nanos()),
        })
    }
}

#[cfg(unix)]
fn inode(found: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> u64 {
    0
}

/// What is open, or has ended and still has its log.
#[derive(Debug, Default)]
struct Transactions {
    /// What is being made, or was made in vain.
    unborn: BTreeSet<String>,
    /// What is replaced.
    leaving: BTreeSet<String>,
    /// What made what is there.
    made_by: BTreeMap<String, Made>,
}

/// Looks at a table's directory. Only what is directly in it counts: not snapshots, backups and secondary indexes, which are in directories
/// below, and not ScyllaDB's `staging`, `upload` and `quarantine`, whose SSTables are moved here once they count.
///
/// # Errors
///
/// `Io` if the directory or a file of it cannot be read.
pub(super) fn list(directory: &Path) -> Result<Listed> {
    // Files first, logs after them. A log is there before the first file that it adds, and until after the last that it removes: so a file that
    // was seen, and whose log is not seen then, belongs to a transaction that ended meanwhile. If that was in vain, its files are gone, which is
    // found when they are linked.
    // And files once more: those of one transaction are to be seen together, because their positions are the same.
    let mut names = names_in(directory)?;
    let mut listed = Listed::default();
    let mut found = transactions(directory, &mut listed)?;
    for _ in 0..TRIES {
        let again = names_in(directory)?;
        if again.is_subset(&names) {
            break;
        }
        (names, listed) = (again, Listed::default());
        found = transactions(directory, &mut listed)?;
    }
    let transactions = found;
    let mut stems: BTreeMap<String, FileName> = BTreeMap::new();
    for name in &names {
        match FileName::parse(name) {
            Ok(Some(name)) => {
                stems.entry(name.stem()).or_insert(name);
            }
            Ok(None) => {}
            Err(error) if name.ends_with("-Data.db") => {
                let stem = name.strip_suffix("-Data.db").unwrap_or(name);
                listed.faults.push((stem.to_owned(), error));
            }
            Err(_) => {}
        }
    }
    for (stem, name) in stems {
        if transactions.unborn.contains(&stem) {
            listed.incomplete.insert(stem, Lacks::Transaction);
            continue;
        }
        match complete(directory, &name, &names) {
            Ok(Ok((components, stamp))) => {
                let is_leaving = transactions.leaving.contains(&stem);
                let made = transactions.made_by.get(&stem).cloned();
                listed.sstables.insert(stem, Seen { name, components, stamp, is_leaving, made });
            }
            Ok(Err(component)) => drop(listed.incomplete.insert(stem, Lacks::Component(component))),
            Err(error) => listed.faults.push((stem, error)),
        }
    }
    Ok(listed)
}

/// The components to read of an SSTable, and its stamp; or the one that it lacks. Components that are not known (those of indexes, and what
/// plugins add) do not make it incomplete: they come and go while the SSTable stays.
fn complete(
    directory: &Path,
    name: &FileName,
    names: &BTreeSet<String>,
) -> Result<Result<(Vec<Component>, Stamp), Component>> {
    let toc = name.of(&Component::Toc);
    let text = if names.contains(&toc) { read(&directory.join(&toc))? } else { None };
    // An empty one is being written, or was when a disk was full.
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Err(Component::Toc)) };
    let mut components = parse_toc(&text)?;
    components.retain(|component| !matches!(component, Component::Other(_) | Component::Toc));
    components.dedup();
    if !components.contains(&Component::Statistics) {
        return Ok(Err(Component::Statistics));
    }
    if let Some(missing) = components.iter().find(|component| !names.contains(&name.of(component))) {
        return Ok(Err(missing.clone()));
    }
    match Stamp::of(&directory.join(name.of(&Component::Data))) {
        Ok(stamp) => Ok(Ok((components, stamp))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Err(Component::Data)),
        Err(error) => Err(cannot_read(&directory.join(name.of(&Component::Data)), error)),
    }
}

fn transactions(directory: &Path, listed: &mut Listed) -> Result<Transactions> {
    let mut found = Transactions::default();
    for name in names_in(directory)? {
        if !TransactionLog::is_log(&name) {
            continue;
        }
        // One that is gone by now has ended.
        let Some(text) = read(&directory.join(&name))? else { continue };
        let Some(log) = TransactionLog::parse(&name, &text) else { continue };
        if log.is_damaged {
            let what = "a damaged log of a transaction: the SSTables that it adds are left out until the server has cleaned up";
            listed.faults.push((name, Error::corrupt(what)));
        }
        match log.end {
            Some(TransactionEnd::Committed) => {
                let made = Made { operation: log.operation, of: log.removes.iter().cloned().collect() };
                found.leaving.extend(log.removes);
                found.made_by.extend(log.adds.into_iter().map(|stem| (stem, made.clone())));
            }
            Some(TransactionEnd::Aborted) | None => found.unborn.extend(log.adds),
        }
    }
    let pending = directory.join(PENDING_DELETE);
    let lists = match names_in(&pending) {
        Ok(lists) => lists,
        // Cassandra has none.
        Err(_) if fs::symlink_metadata(&pending).is_err() => BTreeSet::new(),
        Err(error) => return Err(error),
    };
    for name in lists.iter().filter(|name| name.ends_with(".log")) {
        if let Some(text) = read(&pending.join(name))? {
            found.leaving.extend(parse_pending_delete(&text));
        }
    }
    Ok(found)
}

/// The names in a directory, as far as they are text.
fn names_in(directory: &Path) -> Result<BTreeSet<String>> {
    let cannot = |error| cannot_read(directory, error);
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory).map_err(cannot)? {
        names.extend(entry.map_err(cannot)?.file_name().into_string().ok());
    }
    Ok(names)
}

/// The bytes of a small file. `None` if it is gone.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = fs::File::open(path)?;
        io::Read::read_to_end(&mut io::Read::take(file, TEXT_BYTES_MAX), &mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_read(path, error)),
    }
}

fn cannot_read(path: &Path, error: io::Error) -> Error {
    failed("read", &path.display().to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_kernels::crc32;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Folder {
            Folder(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn sstable(&self, stem: &str, components: &[&str]) {
            for name in components {
                self.write(&format!("{stem}-{name}"), "x");
            }
            self.write(&format!("{stem}-TOC.txt"), &format!("{}\nTOC.txt\n", components.join("\n")));
        }

        fn list(&self) -> Listed {
            list(self.0.path()).unwrap()
        }

        fn complete(&self) -> String {
            self.list().sstables.into_keys().collect::<Vec<_>>().join(" ")
        }
    }

    const ALL: &[&str] = &["Data.db", "Statistics.db", "Filter.db", "Digest.crc32"];

    fn log(lines: &[(&str, &str)]) -> String {
        let line = |(kind, stem): &(&str, &str)| {
            let path = if stem.is_empty() { String::new() } else { format!("/data/ks/t/{stem}") };
            let sum = crc32(crc32(crc32(0, path.as_bytes()), kind.as_bytes()), &[0; 12]);
            format!("{kind}:[{path},0,0][{sum}]\n")
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn components_that_are_not_there_yet_are_waited_for() {
        let folder = Folder::new();
        folder.write("nb-1-big-TOC.txt", "");
        assert_eq!((folder.complete(), folder.list().incomplete.len()), (String::new(), 1));
        folder.sstable("nb-1-big", ALL);
        assert_eq!(folder.complete(), "nb-1-big");
        for name in ALL {
            let path = folder.0.path().join(format!("nb-1-big-{name}"));
            fs::rename(&path, folder.0.path().join("aside")).unwrap();
            let (complete, incomplete) = (folder.complete(), folder.list().incomplete);
            assert_eq!((complete, incomplete.len()), (String::new(), 1), "{name}");
            let lacks = incomplete["nb-1-big"].name("nb-1-big").unwrap();
            assert!(lacks.starts_with(&format!("nb-1-big-{name} ")), "{lacks}");
            fs::rename(folder.0.path().join("aside"), &path).unwrap();
        }
        fs::remove_file(folder.0.path().join("nb-1-big-TOC.txt")).unwrap();
        let lacks = folder.list().incomplete["nb-1-big"].name("nb-1-big").unwrap();
        assert!(folder.complete().is_empty() && lacks.contains("its table of contents"), "{lacks}");
    }

    #[test]
    fn components_of_indexes_come_and_go() {
        let folder = Folder::new();
        let sai = "SAI+aa+ColumnComplete.db";
        folder.sstable("da-1-bti", &[ALL, &[sai, "Mine.db"]].concat());
        assert_eq!(folder.complete(), "da-1-bti");
        fs::remove_file(folder.0.path().join(format!("da-1-bti-{sai}"))).unwrap();
        fs::remove_file(folder.0.path().join("da-1-bti-Mine.db")).unwrap();
        assert_eq!(folder.complete(), "da-1-bti");
        let listed = folder.list();
        assert!(!listed.sstables["da-1-bti"].components.iter().any(|it| matches!(it, Component::Other(_))));
    }

    #[test]
    fn what_is_beside_is_not_of_the_table() {
        let folder = Folder::new();
        for place in
            ["snapshots/one", "backups", ".t_v_idx", "staging", "upload", "quarantine", "me-9-big.sstable"]
        {
            folder.sstable(&format!("{place}/nb-1-big"), ALL);
        }
        for other in ["manifest.json", "schema.cql", "tmp-nb-2-big-Data.db", "me-3-big-TOC.txt.tmp"] {
            folder.write(other, "x");
        }
        let listed = folder.list();
        assert!(listed.sstables.is_empty() && listed.faults.is_empty(), "{listed:?}");
    }

    #[test]
    fn open_transactions_hide_what_they_add() {
        let folder = Folder::new();
        for stem in ["nb-1-big", "nb-2-big", "nb-3-big"] {
            folder.sstable(stem, ALL);
        }
        let name = "nb_txn_compaction_7d1c3f50-6d2a-11ef-b9ff-cd4b0f9e5d0e.log";
        let begun = [("ADD", "nb-3-big"), ("REMOVE", "nb-1-big"), ("REMOVE", "nb-2-big")];
        folder.write(name, &log(&begun));
        assert_eq!(folder.complete(), "nb-1-big nb-2-big");
        assert_eq!(folder.list().incomplete["nb-3-big"].name("nb-3-big"), None, "nothing is wrong with it");
        folder.write(name, &log(&[&begun[..], &[("ABORT", "")]].concat()));
        assert_eq!(folder.complete(), "nb-1-big nb-2-big");
        folder.write(name, &log(&[&begun[..], &[("COMMIT", "")]].concat()));
        let listed = folder.list();
        let leaving: Vec<bool> = listed.sstables.values().map(|seen| seen.is_leaving).collect();
        assert_eq!(leaving, [true, true, false]);
        let made = listed.sstables["nb-3-big"].made.clone().unwrap();
        assert_eq!(made.operation, Operation::Rewrite("compaction".into()));
        assert_eq!(made.of.into_iter().collect::<Vec<_>>(), ["nb-1-big", "nb-2-big"]);
        // A log that is damaged ends nothing, and is reported.
        folder.write(name, &format!("{}BAD\n{}", log(&begun), log(&[("COMMIT", "")])));
        let listed = folder.list();
        assert_eq!((listed.sstables.len(), listed.faults.len()), (2, 1));
        fs::remove_file(folder.0.path().join(name)).unwrap();
        assert_eq!(folder.complete(), "nb-1-big nb-2-big nb-3-big");
    }

    #[test]
    fn what_scylladb_deletes_is_leaving() {
        let folder = Folder::new();
        folder.sstable("me-1-big", ALL);
        folder.sstable("me-2-big", ALL);
        folder.write("pending_delete/sstables-1-1.log", "me-1-big-TOC.txt\n");
        folder.write("pending_delete/sstables-2-2.log.tmp", "me-2-big-TOC.txt\n");
        let leaving: Vec<bool> = folder.list().sstables.values().map(|seen| seen.is_leaving).collect();
        assert_eq!(leaving, [true, false]);
    }

    #[test]
    fn faults_are_of_one_sstable() {
        let folder = Folder::new();
        folder.sstable("nb-1-big", ALL);
        folder.write("nb-2-big-Data.db", "x");
        folder.write("nb-2-big-TOC.txt", "Statistics.db\n");
        folder.write("zz-3-big-Data.db", "x");
        let listed = folder.list();
        assert_eq!(listed.sstables.len(), 1);
        let faults: Vec<&str> = listed.faults.iter().map(|(stem, _)| stem.as_str()).collect();
        assert_eq!(faults, ["zz-3-big", "nb-2-big"]);
    }

    #[test]
    fn reused_names_have_other_stamps() {
        let folder = Folder::new();
        folder.sstable("nb-1-big", ALL);
        let first = folder.list().sstables["nb-1-big"].stamp;
        assert_eq!(folder.list().sstables["nb-1-big"].stamp, first);
        fs::remove_file(folder.0.path().join("nb-1-big-Data.db")).unwrap();
        folder.write("nb-1-big-Data.db", "longer");
        assert_ne!(folder.list().sstables["nb-1-big"].stamp, first);
    }
}
