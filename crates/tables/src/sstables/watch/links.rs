//! Hard links to SSTables that are to be converted: a compaction that deletes them meanwhile deletes names, not what is read.
//!
//! The links are in a directory as the table's own is laid out, so that they are read like any SSTable: `links/ks/t-f34b…/nb-7-big-Data.db`.
//! Where a name is used again while the SSTable that had it first still waits, the second one's links are below `links.1`, and so on: neither is lost.
//! What they have more is their table of contents, which lists what was linked: it is written last, so links without one are those of a
//! process that was killed, and are removed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use marquetry_base::{Error, Result};
use marquetry_io::failed;
use marquetry_kernels::crc32;
use marquetry_scylla::sstable::checksums::parse_digest;
use marquetry_scylla::sstable::{Component, FileName, parse_toc};

use super::directory::{Seen, Stamp};
use super::tables::TableDirectory;
use crate::sstables::components::SstableFiles;

/// Bytes that are read at a time for a checksum.
const READ_BYTES: usize = 1 << 20;

/// The most bytes of a digest, and of a table of contents of a link.
const SMALL_BYTES_MAX: u64 = 1 << 16;

/// The most SSTables of one name that wait together. A server would have to use it again, after a TRUNCATE and a restart, as often.
const NUMBERS: usize = 1000;

/// What an SSTable is called, so that no other one is: also if its name is used again, after the table was truncated and the server
/// restarted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SstableId {
    /// Where the table is: `ks/t-f34b6ff0f8f711eb9fcf000000000000`.
    pub(super) place: String,
    /// What the names of its files begin with: `nb-7-big`.
    pub(super) stem: String,
    /// The CRC-32 of its Data.db.
    pub(super) digest: u32,
}

impl SstableId {
    /// A name for files: `nb-7-big-1f0a93c5`.
    pub(super) fn name(&self) -> String {
        format!("{}-{:08x}", self.stem, self.digest)
    }

    /// Where its file is in a destination: `ks/t-f34b…/nb-7-big-1f0a93c5.parquet`.
    pub(super) fn file(&self) -> String {
        format!("{}/{}.parquet", self.place, self.name())
    }

    /// What [`file`](SstableId::file) gave. `None` for other names.
    pub(super) fn of_file(file: &str) -> Option<SstableId> {
        let (place, name) = file.strip_suffix(".parquet")?.rsplit_once('/')?;
        SstableId::of_name(place, name)
    }

    /// What [`name`](SstableId::name) gave.
    pub(super) fn of_name(place: &str, name: &str) -> Option<SstableId> {
        let (stem, digest) = name.rsplit_once('-')?;
        let digest = Some(digest).filter(|digits| digits.len() == 8)?;
        let digest = u32::from_str_radix(digest, 16).ok()?;
        let id = SstableId { place: place.to_owned(), stem: stem.to_owned(), digest };
        (id.name() == name).then_some(id)
    }
}

/// An SSTable of which there are links.
#[derive(Debug, Clone)]
pub(super) struct Linked {
    pub(super) id: SstableId,
    pub(super) files: SstableFiles,
}

impl Linked {
    /// The definition of the table as it was when the SSTable was flushed, if a program put it into an inbox.
    pub(super) fn definition(&self) -> Option<PathBuf> {
        Some(self.files.folder.join(of_flush(&self.files.name))).filter(|path| path.is_file())
    }
}

/// What the definition of a flush is called in an inbox: `nb-7-big-schema.cql`.
fn of_flush(name: &FileName) -> String {
    name.of(&Component::Other("schema.cql".to_owned()))
}

/// What came of linking.
#[derive(Debug)]
pub(super) enum Linking {
    Done(Linked),
    /// The SSTable was deleted, or is another one by now.
    Gone,
    /// There are links to [very many](NUMBERS) others of that name, which were deleted and are to be converted first.
    Taken,
}

/// The directory of the links.
#[derive(Debug)]
pub(super) struct Links {
    root: PathBuf,
    /// The data directory, if what is linked is removed there.
    inbox: Option<PathBuf>,
    /// What is on another file system is copied.
    copies: bool,
}

impl Links {
    pub(super) fn new(root: PathBuf, inbox: Option<PathBuf>) -> Links {
        Links { root, inbox, copies: false }
    }

    /// The same for SSTables that are small: those on another file system are copied.
    pub(super) fn or_copies(root: PathBuf) -> Links {
        Links { root, inbox: None, copies: true }
    }

    /// What an SSTable is called, without linking it: by the digest beside it. `None` where it has none that can be read, and of an inbox, where
    /// links take what is linked away. It may be another SSTable by now: then its stamp is not the one that was seen.
    pub(super) fn id_of(&self, table: &TableDirectory, seen: &Seen) -> Option<SstableId> {
        if self.inbox.is_some() {
            return None;
        }
        let text = read_small(&table.path.join(seen.name.of(&Component::Digest))).ok()??;
        let digest = parse_digest(&text).ok()?;
        Some(SstableId { place: table.place.clone(), stem: seen.name.stem(), digest })
    }

    /// Links all that it takes to read an SSTable.
    ///
    /// # Errors
    ///
    /// `Io` if files cannot be linked, because the directory is on another file system or may not be written to; or if a file cannot be read.
    pub(super) fn link(&self, table: &TableDirectory, seen: &Seen) -> Result<Linking> {
        let has = |folder: &Path| {
            let stamp = Stamp::of(&folder.join(seen.name.of(&Component::Data)));
            let is_complete = folder.join(seen.name.of(&Component::Toc)).exists();
            is_complete.then_some(stamp.ok()).flatten()
        };
        let there = self.roots()?.into_iter().map(|root| root.join(&table.place));
        let mut folder = there.into_iter().find(|folder| has(folder) == Some(seen.stamp));
        if folder.is_none() {
            let mut free = (0..NUMBERS).map(|number| self.numbered(number).join(&table.place));
            let Some(free) = free.find(|folder| has(folder).is_none()) else { return Ok(Linking::Taken) };
            if !self.link_into(&free, table, seen)? {
                return Ok(Linking::Gone);
            }
            folder = Some(free);
        }
        let linked = folder.map(|folder| linked(&table.place, &folder, &seen.name)).transpose()?.flatten();
        let linked = linked.ok_or_else(|| Error::internal("links that are not there"))?;
        self.take_from_inbox(&linked)?;
        Ok(Linking::Done(linked))
    }

    /// Links them into a folder that has no complete ones of that name. Whether the SSTable is still there.
    fn link_into(&self, folder: &Path, table: &TableDirectory, seen: &Seen) -> Result<bool> {
        // Links of a process that was killed. (To list the folder each time would take time by the square of what is in it.)
        let mut names = seen.components.iter().chain([&Component::Toc]);
        if names.any(|component| folder.join(seen.name.of(component)).exists()) {
            remove_files(folder, &seen.name.stem())?;
        }
        fs::create_dir_all(folder).map_err(|error| cannot("created", folder, error))?;
        if self.inbox.is_some() {
            let name = of_flush(&seen.name);
            match fs::hard_link(table.path.join(&name), folder.join(&name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(not_linked(&table.path.join(&name), folder, error));
                }
                _ => {}
            }
        }
        let mut is_copied = false;
        for component in &seen.components {
            let name = seen.name.of(component);
            let (from, to) = (table.path.join(&name), folder.join(&name));
            let linked = match fs::hard_link(&from, &to) {
                Err(error) if self.copies && error.kind() == io::ErrorKind::CrossesDevices => {
                    is_copied = true;
                    fs::copy(&from, &to).map(drop)
                }
                linked => linked,
            };
            match linked {
                Ok(()) => {}
                Err(error) => {
                    remove_files(folder, &seen.name.stem())?;
                    return match error.kind() {
                        io::ErrorKind::NotFound => Ok(false),
                        _ => Err(not_linked(&table.path.join(&name), folder, error)),
                    };
                }
            }
        }
        // Of copies, the original says whether it is another one by now.
        let of = if is_copied { table.path.as_path() } else { folder };
        let data = of.join(seen.name.of(&Component::Data));
        if !Stamp::of(&data).is_ok_and(|stamp| stamp == seen.stamp) {
            remove_files(folder, &seen.name.stem())?;
            return Ok(false);
        }
        let toc = folder.join(seen.name.of(&Component::Toc));
        write_toc(&toc, &seen.components).map_err(|error| cannot("written", &toc, error))?;
        Ok(true)
    }

    /// Where links are that have that number.
    fn numbered(&self, number: usize) -> PathBuf {
        match number {
            0 => self.root.clone(),
            number => self.root.with_extension(number.to_string()),
        }
    }

    /// Where links are.
    fn roots(&self) -> Result<Vec<PathBuf>> {
        let mut roots = entries(self.root.parent().unwrap_or(Path::new(".")))?;
        let is_number = |path: &Path| {
            let number = path.extension().and_then(|number| number.to_str()?.parse().ok());
            number.is_some_and(|number| self.numbered(number) == path)
        };
        roots.retain(|path| *path == self.root || is_number(path));
        Ok(roots)
    }

    /// Removes from the inbox, if there is one, what is linked. Data.db goes last: by it, the rest is found after a kill.
    fn take_from_inbox(&self, linked: &Linked) -> Result<()> {
        let Some(inbox) = &self.inbox else { return Ok(()) };
        let folder = inbox.join(&linked.id.place);
        let data = folder.join(linked.files.name.of(&Component::Data));
        let ours = linked.files.path(&Component::Data);
        match (Stamp::of(&data), Stamp::of(&ours)) {
            (Ok(its), Ok(ours)) if its == ours => {}
            // It is not there, or is another one of that name.
            _ => return Ok(()),
        }
        let prefix = format!("{}-", linked.id.stem);
        remove(&folder.join(linked.files.name.of(&Component::Toc)))?;
        for file in entries(&folder)? {
            let is_its = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(prefix.as_bytes());
            if file != data && file.file_name().is_some_and(is_its) {
                remove(&file)?;
            }
        }
        remove(&data)
    }

    /// All SSTables of which there are links. What is left of incomplete ones is removed.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn all(&self) -> Result<Vec<Linked>> {
        let mut all = Vec::new();
        for root in self.roots()? {
            self.all_below(&root, &mut all)?;
        }
        Ok(all)
    }

    fn all_below(&self, root: &Path, all: &mut Vec<Linked>) -> Result<()> {
        for keyspace in entries(root)? {
            for folder in entries(&keyspace)? {
                let part = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let place = format!("{}/{}", part(&keyspace), part(&folder));
                let mut names: BTreeSet<String> = BTreeSet::new();
                for file in entries(&folder)? {
                    let name = part(&file);
                    match FileName::parse(&name) {
                        Ok(Some(parsed)) if parsed.component == Component::Toc => {
                            names.insert(parsed.stem());
                        }
                        Ok(Some(_)) => {}
                        // A table of contents that was being written.
                        _ => remove(&file)?,
                    }
                }
                for file in entries(&folder)? {
                    let stem = FileName::parse(&part(&file)).ok().flatten().map(|name| name.stem());
                    if stem.is_none_or(|stem| !names.contains(&stem)) {
                        remove(&file)?;
                    }
                }
                for stem in names {
                    let Ok(Some(name)) = FileName::parse(&format!("{stem}-Data.db")) else { continue };
                    match linked(&place, &folder, &name)? {
                        Some(linked) => {
                            self.take_from_inbox(&linked)?;
                            all.push(linked);
                        }
                        None => remove_files(&folder, &stem)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes the links to an SSTable.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn remove(linked: &Linked) -> Result<()> {
        let Linked { files, .. } = linked;
        // First: what is left without it is known to be incomplete.
        remove(&files.path(&Component::Toc))?;
        for (component, _) in &files.components {
            remove(&files.path(component))?;
        }
        remove(&files.folder.join(of_flush(&files.name)))?;
        remove_empty(&files.folder);
        Ok(())
    }
}

fn remove_files(folder: &Path, stem: &str) -> Result<()> {
    let toc = folder.join(format!("{stem}-TOC.txt"));
    // First: what is left without it is known to be incomplete.
    remove(&toc)?;
    let prefix = format!("{stem}-");
    for file in entries(folder)? {
        if file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes())) {
            remove(&file)?;
        }
    }
    remove_empty(folder);
    Ok(())
}

/// The last file takes the directory with it, and those above.
fn remove_empty(folder: &Path) {
    for directory in folder.ancestors().take(3) {
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

/// What there is of an SSTable in a directory of links. `None` without a table of contents, or without what that lists.
fn linked(place: &str, folder: &Path, name: &FileName) -> Result<Option<Linked>> {
    let Some(toc) = read_small(&folder.join(name.of(&Component::Toc)))? else { return Ok(None) };
    let Ok(listed) = parse_toc(&toc) else { return Ok(None) };
    let mut components = Vec::new();
    for component in listed {
        let path = folder.join(name.of(&component));
        match fs::metadata(&path) {
            Ok(found) => components.push((component, found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot("read", &path, error)),
        }
    }
    let digest = match read_small(&folder.join(name.of(&Component::Digest)))? {
        Some(text) => parse_digest(&text).ok(),
        None => None,
    };
    // Where there is none, or none that can be read, it is computed: the conversion says what is wrong with it.
    let data = folder.join(name.of(&Component::Data));
    let digest = digest.map_or_else(|| checksum(&data).map_err(|error| cannot("read", &data, error)), Ok)?;
    let id = SstableId { place: place.to_owned(), stem: name.stem(), digest };
    let name = FileName { component: Component::Data, ..name.clone() };
    Ok(Some(Linked { id, files: SstableFiles { name, folder: folder.to_path_buf(), components } }))
}

fn write_toc(path: &Path, components: &[Component]) -> io::Result<()> {
    let mut text: String = components.iter().map(|component| format!("{}\n", component.name())).collect();
    text.push_str("TOC.txt\n");
    let hidden = path.with_extension("txt.new");
    let mut file = fs::File::create(&hidden)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&hidden, path)?;
    sync(path.parent())
}

/// Waits until the names in a directory are on disk, where that can be asked for.
fn sync(directory: Option<&Path>) -> io::Result<()> {
    match directory {
        #[cfg(unix)]
        Some(directory) => fs::File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

/// The CRC-32 of a file's bytes.
fn checksum(path: &Path) -> io::Result<u32> {
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut sum = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(sum),
            Ok(read) => sum = crc32(sum, buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The bytes of a small file. `None` if it is not there.
fn read_small(path: &Path) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match fs::File::open(path).and_then(|file| file.take(SMALL_BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot("read", path, error)),
    }
}

/// What is in a directory, sorted. Nothing, if that is not there.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        listed => listed.map_err(|error| cannot("read", directory, error))?,
    };
    let listed: io::Result<Vec<PathBuf>> = listed.map(|entry| Ok(entry?.path())).collect();
    let mut listed = listed.map_err(|error| cannot("read", directory, error))?;
    listed.sort();
    Ok(listed)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("removed", path, error)),
        _ => Ok(()),
    }
}

fn cannot(done: &str, path: &Path, error: io::Error) -> Error {
    failed(done, &path.display().to_string(), error)
}

fn not_linked(path: &Path, folder: &Path, error: io::Error) -> Error {
    let why = match error.kind() {
        io::ErrorKind::CrossesDevices => {
            "it is on another file system: --work names a directory on that of the data"
        }
        io::ErrorKind::PermissionDenied => "permission denied: run it as the user who owns the data",
        _ => return failed("linked", &path.display().to_string(), error),
    };
    let message = format!("it could not be linked into {}: {why}", folder.display());
    Error::io(message).at(|place| place.object = Some(path.display().to_string())).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sstables::watch::directory::list;

    struct Made {
        _folder: tempfile::TempDir,
        table: TableDirectory,
        links: Links,
    }

    fn made() -> Made {
        let folder = tempfile::tempdir().unwrap();
        let place = format!("ks/t-{}", "0".repeat(32));
        let path = folder.path().join("data").join(&place);
        fs::create_dir_all(&path).unwrap();
        let table = TableDirectory { name: "ks.t".into(), place, path };
        let links = Links::new(folder.path().join("work/links"), None);
        Made { _folder: folder, table, links }
    }

    impl Made {
        fn write(&self, stem: &str, digest: Option<&str>, data: &str) {
            let path = |name: &str| self.table.path.join(format!("{stem}-{name}"));
            for name in ["Data.db", "Digest.crc32", "TOC.txt"] {
                let _ = fs::remove_file(path(name));
            }
            fs::write(path("Data.db"), data).unwrap();
            fs::write(path("Statistics.db"), "s").unwrap();
            let mut toc = "Data.db\nStatistics.db\nTOC.txt\nSAI+x.db\n".to_owned();
            if let Some(digest) = digest {
                fs::write(path("Digest.crc32"), digest).unwrap();
                toc.push_str("Digest.crc32\n");
            }
            fs::write(path("TOC.txt"), toc).unwrap();
        }

        fn seen(&self, stem: &str) -> Seen {
            list(&self.table.path).unwrap().sstables[stem].clone()
        }

        fn linked(&self, stem: &str) -> Linked {
            match self.links.link(&self.table, &self.seen(stem)).unwrap() {
                Linking::Done(linked) => linked,
                other => panic!("{other:?}"),
            }
        }

        fn names(&self) -> Vec<String> {
            let all = self.links.all().unwrap();
            all.iter().map(|linked| linked.id.name()).collect()
        }
    }

    #[test]
    fn names_say_which_sstable_it_is() {
        let id = SstableId { place: "ks/t-0".into(), stem: "nb-3gfd_0asg-big".into(), digest: 0x1f };
        assert_eq!(id.file(), "ks/t-0/nb-3gfd_0asg-big-0000001f.parquet");
        assert_eq!(SstableId::of_file(&id.file()), Some(id));
        for other in ["a.parquet", "ks/t/nb-1-big.parquet", "ks/t/x-0000001F.parquet", "ks/t/x-0000001f.csv"]
        {
            assert_eq!(SstableId::of_file(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_linked_outlives_the_original() {
        let made = made();
        made.write("nb-1-big", Some("31"), "rows");
        made.write("nb-2-big", None, "rows");
        made.write("nb-3-big", Some("?"), "rows");
        let linked = made.linked("nb-1-big");
        assert_eq!(linked.id.digest, 31);
        let computed = crc32(0, b"rows");
        assert_eq!(made.linked("nb-2-big").id.digest, computed);
        assert_eq!(made.linked("nb-3-big").id.digest, computed, "its digest cannot be read");
        fs::remove_dir_all(&made.table.path).unwrap();
        let data = linked.files.path(&Component::Data);
        assert_eq!(fs::read_to_string(&data).unwrap(), "rows");
        assert_eq!(made.names().len(), 3);
        Links::remove(&linked).unwrap();
        assert!(!data.exists() && made.names().len() == 2);
    }

    /// What is known already need not be linked, which would take time at each start.
    #[test]
    fn what_it_is_is_known_before_it_is_linked() {
        let made = made();
        made.write("nb-1-big", Some("31"), "rows");
        made.write("nb-2-big", None, "rows");
        let id = made.links.id_of(&made.table, &made.seen("nb-1-big"));
        assert!(made.names().is_empty());
        assert_eq!(id, Some(made.linked("nb-1-big").id));
        assert_eq!(made.links.id_of(&made.table, &made.seen("nb-2-big")), None, "it has to be read for that");
        // Of an inbox, links take what is linked away.
        let inbox = Links::new(made.links.root.clone(), Some(made.table.path.clone()));
        assert_eq!(inbox.id_of(&made.table, &made.seen("nb-1-big")), None);
    }

    #[test]
    fn links_that_were_cut_short_are_removed_or_made_again() {
        let made = made();
        made.write("nb-1-big", Some("1"), "rows");
        let linked = made.linked("nb-1-big");
        let toc = linked.files.path(&Component::Toc);
        // Linked again, nothing happens.
        assert_eq!(made.linked("nb-1-big").id, linked.id);
        fs::remove_file(&toc).unwrap();
        assert_eq!(made.linked("nb-1-big").id, linked.id);
        fs::rename(&toc, toc.with_extension("txt.new")).unwrap();
        assert!(made.names().is_empty());
        assert!(entries(&linked.files.folder).unwrap().is_empty());
    }

    #[test]
    fn names_that_are_used_again_have_links_of_their_own() {
        let made = made();
        let mut all = Vec::new();
        for number in ["1", "2", "3"] {
            made.write("nb-1-big", Some(number), &format!("rows of {number}"));
            all.push(made.linked("nb-1-big"));
        }
        fs::remove_dir_all(&made.table.path).unwrap();
        let text = |linked: &Linked| fs::read_to_string(linked.files.path(&Component::Data)).unwrap();
        let texts: Vec<String> = all.iter().map(text).collect();
        assert_eq!(texts, ["rows of 1", "rows of 2", "rows of 3"]);
        assert_eq!(made.names(), ["nb-1-big-00000001", "nb-1-big-00000002", "nb-1-big-00000003"]);
        Links::remove(&all[1]).unwrap();
        assert_eq!(made.names(), ["nb-1-big-00000001", "nb-1-big-00000003"]);
    }

    /// After a restart, what has links below another number is not linked once more, although the first place is free by then.
    #[test]
    fn what_has_links_already_is_found_by_what_it_is() {
        let made = made();
        made.write("nb-1-big", Some("1"), "rows");
        let first = made.linked("nb-1-big");
        made.write("nb-1-big", Some("2"), "other rows");
        let second = made.linked("nb-1-big");
        Links::remove(&first).unwrap();
        assert_eq!(made.linked("nb-1-big").files.folder, second.files.folder);
        assert_eq!(made.names(), ["nb-1-big-00000002"]);
        Links::remove(&second).unwrap();
        assert!(made.links.roots().unwrap().is_empty(), "no empty directories stay");
    }

    #[test]
    fn what_is_gone_meanwhile_is_not_linked() {
        let made = made();
        made.write("nb-1-big", Some("1"), "rows");
        let seen = made.seen("nb-1-big");
        made.write("nb-1-big", Some("2"), "other rows");
        assert!(matches!(made.links.link(&made.table, &seen).unwrap(), Linking::Gone));
        let seen = made.seen("nb-1-big");
        fs::remove_file(made.table.path.join("nb-1-big-Digest.crc32")).unwrap();
        assert!(matches!(made.links.link(&made.table, &seen).unwrap(), Linking::Gone));
        assert!(made.names().is_empty());
    }

    #[test]
    fn links_that_cannot_be_made_say_why() {
        let message = |kind: io::ErrorKind| {
            let error = not_linked("data/a".as_ref(), "work".as_ref(), kind.into());
            assert_eq!(error.place().object.as_deref(), Some("data/a"));
            error.message().to_owned()
        };
        assert!(message(io::ErrorKind::CrossesDevices).contains("--work"));
        assert!(message(io::ErrorKind::PermissionDenied).contains("the user who owns"));
    }
}
