//! SSTables of a table, found: in its directory, in a snapshot, in a backup of several nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use marquetry_base::{Detail, Error, Result};
use marquetry_io::files::{PARQUET_EXTENSIONS, is_collective};
use marquetry_io::store::{Found, Store};
use marquetry_scylla::sstable::{Component, FileName, parse_toc};

use super::component::read_text;
use super::components::SstableFiles;
use super::origin::{self, Origin};
use crate::subject::{name_of, named, renamed};

/// The most bytes of a TOC.txt: it has a line for each component.
const TOC_BYTES_MAX: u64 = 1 << 20;

/// Directories inside of a table's that hold other sets of its SSTables: those that were saved, and those that are not its own yet.
const ASIDE: &[&str] = &["snapshots", "backups", "staging", "upload", "quarantine", "pending_delete"];

/// SSTables of one table.
#[derive(Debug, Clone)]
pub(super) struct FoundTable {
    pub(super) sstables: Vec<SstableFiles>,
    /// What the path says the table is.
    pub(super) origin: Origin,
}

/// Finds the SSTables that a path names: one, by the path of a component; those in a directory, or, if it has none itself, in the
/// directories below it; those that match a pattern.
///
/// Below a directory with SSTables nothing is looked for: there are snapshots, backups, and secondary indexes. Names that begin with a
/// dot are passed over, as in all directories.
///
/// # Errors
///
/// `Io` with [`Detail::NotFound`] where there is no SSTable; `Corrupt` for an SSTable that is not complete; `Unsupported` for a version that is not
/// known; `Misuse` where there are SSTables of several tables.
pub(super) fn find(store: &dyn Store, path: &Path) -> Result<FoundTable> {
    let listing = Listing::of(store, path)?;
    let found = listing.tables(store, path)?;
    let mut tables: Vec<(&Origin, &Path)> = Vec::new();
    for sstable in &found {
        if !tables.iter().any(|(origin, _)| **origin == sstable.1) {
            tables.push((&sstable.1, &sstable.0.folder));
        }
    }
    if let [_, _, ..] = &*tables {
        return Err(several(path, &tables));
    }
    let Some((_, origin)) = found.first() else { return Err(nothing(path, "no SSTable")) };
    let origin = origin.clone();
    Ok(FoundTable { sstables: found.into_iter().map(|(sstable, _)| sstable).collect(), origin })
}

/// Whether there are SSTables where a path leads to, and no Parquet files: for commands that take directories of other files, too.
pub(super) fn is_there(store: &dyn Store, path: &Path) -> bool {
    let is_parquet = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| PARQUET_EXTENSIONS.iter().any(|it| it.eq_ignore_ascii_case(ending)))
    };
    match store.look(path) {
        Ok(Found::Directory { .. }) => store.list(path).is_ok_and(|files| {
            files.iter().any(|(path, _)| is_component(path))
                && !files.iter().any(|(path, _)| is_parquet(path))
        }),
        Ok(Found::Object { .. }) => is_component(path) && !is_parquet(path),
        _ => false,
    }
}

fn is_component(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| !matches!(FileName::parse(name), Ok(None)))
}

/// The files that may be of SSTables.
struct Listing {
    /// What was listed, or only what was named.
    root: PathBuf,
    files: BTreeMap<PathBuf, u64>,
    /// The SSTables that are meant, if not all: by their directory, and what their names begin with.
    only: Option<BTreeSet<PathBuf>>,
}

impl Listing {
    fn of(store: &dyn Store, path: &Path) -> Result<Listing> {
        let list = |directory: &Path| Ok::<_, Error>(store.list(directory)?.into_iter().collect());
        match store.look(path)? {
            Found::Directory { .. } => {
                Ok(Listing { root: path.to_path_buf(), files: list(path)?, only: None })
            }
            Found::Object { .. } => {
                let root = parent(path);
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let only = FileName::parse(name).map_err(|error| named(error, &name_of(path)))?;
                let only = only.map(|name| BTreeSet::from([root.join(stem(&name))]));
                match only {
                    Some(only) => Ok(Listing { files: list(&root)?, root, only: Some(only) }),
                    None => Err(nothing(path, "not the name of an SSTable's file")),
                }
            }
            Found::Stream => Err(nothing(path, "not a file or a directory")),
            _ if is_collective(path) || path.to_string_lossy().contains(['*', '?', '[', '{']) => {
                let mut only = BTreeSet::new();
                let mut files = BTreeMap::new();
                for found in store.find(path, &["db", "txt", "crc32"])? {
                    let name = found.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                    if let Some(name) =
                        FileName::parse(name).map_err(|error| named(error, &name_of(&found)))?
                    {
                        let folder = parent(&found);
                        if only.insert(folder.join(stem(&name))) {
                            files.extend(store.list(&folder)?);
                        }
                    }
                }
                Ok(Listing { root: PathBuf::new(), files, only: Some(only) })
            }
            _ => Err(nothing(path, "no such file or directory")),
        }
    }

    /// The SSTables that count, each complete, with what their paths say of their table.
    fn tables(&self, store: &dyn Store, path: &Path) -> Result<Vec<(SstableFiles, Origin)>> {
        let mut found: BTreeMap<PathBuf, FileName> = BTreeMap::new();
        for file in self.files.keys() {
            if let Some(name) = self.file_name(file)? {
                let key = parent(file).join(stem(&name));
                if self.only.as_ref().is_none_or(|only| only.contains(&key)) {
                    found.insert(key, name);
                }
            }
        }
        let folders: BTreeSet<PathBuf> = found.keys().map(|key| parent(key)).collect();
        let is_below = |folder: &Path| folder.ancestors().skip(1).any(|above| folders.contains(above));
        let outermost: BTreeSet<&PathBuf> = folders.iter().filter(|folder| !is_below(folder)).collect();
        let (aside, own): (Vec<&PathBuf>, Vec<&PathBuf>) =
            outermost.into_iter().partition(|folder| self.only.is_none() && self.is_aside(folder));
        if own.is_empty() && !aside.is_empty() {
            return Err(set_aside(path, &aside));
        }
        let counts = |key: &Path| own.iter().any(|folder| key.parent() == Some(folder));
        self.expect_finished(&own)?;
        let mut sstables = Vec::new();
        for (key, name) in found.into_iter().filter(|(key, _)| counts(key)) {
            let folder = parent(&key);
            let origin = origin::of(&folder);
            sstables.push((self.complete(store, name, folder)?, origin));
        }
        Ok(sstables)
    }

    /// What the name of a file says, if it is one of an SSTable that may count.
    fn file_name(&self, file: &Path) -> Result<Option<FileName>> {
        let inside = file.strip_prefix(&self.root).unwrap_or(file);
        let is_hidden = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."));
        if self.only.is_none() && inside.components().any(is_hidden) {
            return Ok(None);
        }
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let parsed = FileName::parse(name).map_err(|error| named(error, &name_of(file)))?;
        if parsed.is_none() && self.only.is_none() && name.ends_with("-Data.db") {
            let error = match is_temporary(name) {
                true => Error::corrupt("a temporary file: the SSTable was not finished"),
                false => Error::unsupported("an SSTable of a version before `ma`, of Cassandra before 3.0"),
            };
            return Err(named(error, &name_of(file)));
        }
        Ok(parsed)
    }

    /// Whether a directory is one of a table's that hold other sets of SSTables than its own.
    fn is_aside(&self, folder: &Path) -> bool {
        let mut inside = folder.strip_prefix(&self.root).unwrap_or(folder).iter();
        // Of all snapshots, one has to be named.
        (self.root.ends_with("snapshots") && inside.clone().next().is_some())
            || inside.any(|part| part.to_str().is_some_and(|name| ASIDE.contains(&name)))
    }

    /// Fails where a directory has traces of an SSTable that is being written, or of one that is being replaced.
    fn expect_finished(&self, folders: &[&PathBuf]) -> Result<()> {
        for file in self.files.keys() {
            let folder = file.parent().unwrap_or(Path::new(""));
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_inside = |folders: &[&PathBuf]| folders.iter().any(|its| its.as_path() == folder);
            if self.only.is_none() && is_inside(folders) && is_temporary(name) {
                let what = "SSTables here are being written or replaced, or that was interrupted: take a snapshot, or let the server end it";
                return Err(named(Error::corrupt(what), &name_of(file)));
            }
        }
        Ok(())
    }

    /// Checks that all components are there.
    fn complete(&self, store: &dyn Store, name: FileName, folder: PathBuf) -> Result<SstableFiles> {
        let mut sstable = SstableFiles { name, folder, components: Vec::new() };
        let toc = sstable.path(&Component::Toc);
        if !self.files.contains_key(&toc) {
            let why = "an incomplete SSTable: it has no TOC.txt; copy all files whose names begin as its own, of a snapshot (nodetool snapshot) if a \
                       server has the table";
            return Err(named(Error::corrupt(why), &sstable.shown()));
        }
        self.expect_no_older(&sstable)?;
        let text = read_text(store, &toc, TOC_BYTES_MAX)?;
        let listed = parse_toc(&text).map_err(|error| renamed(error, &name_of(&toc)))?;
        for component in listed {
            let path = sstable.path(&component);
            let Some(bytes) = self.files.get(&path) else {
                let why =
                    format!("an incomplete SSTable: {} is listed in TOC.txt and missing", component.name());
                return Err(named(Error::corrupt(why), &sstable.shown()));
            };
            sstable.components.push((component, *bytes));
        }
        if sstable.bytes_of(&Component::Statistics).is_none() {
            let why = "TOC.txt lists no Statistics.db, without which Data.db cannot be read";
            return Err(named(Error::corrupt(why), &sstable.shown()));
        }
        Ok(sstable)
    }

    /// Fails for files that end in the tag of a snapshot: ScyllaDB Manager keeps an SSTable so whose name another one has by now.
    fn expect_no_older(&self, sstable: &SstableFiles) -> Result<()> {
        let data = sstable.path(&Component::Data);
        let prefix = format!("{}.sm_", data.display());
        let older = self.files.keys().find(|path| path.to_string_lossy().starts_with(&prefix));
        match older {
            Some(older) => {
                let why = "an SSTable of an older backup, by the same name as one of a newer: copy those of the backup that is wanted, without \
                           the ends of their names";
                Err(named(Error::unsupported(why), &name_of(older)))
            }
            None => Ok(()),
        }
    }
}

/// What the names of an SSTable's files begin with.
fn stem(name: &FileName) -> String {
    format!("{}-{}-{}", name.version, name.id, name.format)
}

/// Whether a file is one of an SSTable that is not finished: a part of it, or a log of what replaces what.
fn is_temporary(name: &str) -> bool {
    let is_log = name.contains("_txn_") && name.ends_with(".log");
    let is_part = name.starts_with("tmp-") || name.starts_with("tmplink-") || name.contains("-tmp-");
    is_log || is_part || (name.ends_with(".tmp") && !matches!(FileName::parse(name), Ok(None)))
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
}

fn nothing(path: &Path, what: &'static str) -> Error {
    named(Error::io(what).with(Detail::NotFound), &name_of(path))
}

/// The error for a directory that holds nothing but sets of SSTables of which one has to be named.
fn set_aside(path: &Path, folders: &[&PathBuf]) -> Error {
    let folders = listed(folders.iter().map(|folder| name_of(folder)).collect());
    let what = format!("no SSTable but those in {folders}: name the one that is wanted");
    named(Error::misuse(what), &name_of(path))
}

/// The error for SSTables of several tables.
fn several(path: &Path, tables: &[(&Origin, &Path)]) -> Error {
    let table = |(origin, folder): &(&Origin, &Path)| match origin.name() {
        Some(name) => format!("{name} ({})", name_of(folder)),
        None => name_of(folder),
    };
    let shown = listed(tables.iter().map(table).collect());
    let what = format!("SSTables of {} tables: {shown}; name the directory of one", tables.len());
    named(Error::misuse(what), &name_of(path))
}

/// The first of some names, and how many more there are.
fn listed(names: Vec<String>) -> String {
    const SHOWN: usize = 4;
    let first = names.get(..SHOWN.min(names.len())).unwrap_or_default().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
