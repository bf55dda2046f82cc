//! What is wrong with a watcher's directories and definition is known when it starts, not when the first SSTable appears.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use marquetry_base::{Error, Result};
use marquetry_io::failed;

use super::options::{WatchOptions, is_name, resolved};
use super::tables::{find_tables, has_tables};
use crate::sstables::definition;

/// Looks for what cannot be meant.
///
/// # Errors
///
/// `Misuse`; `Io` if something cannot be read.
pub(super) fn check(options: &WatchOptions) -> Result<()> {
    check_apart(options)?;
    // What was watched before is one, also if its last table was dropped.
    if options.data.exists() && !options.work().join("state").is_file() {
        check_data(&options.data)?;
    }
    check_work(&options.data, &options.work())?;
    for data in &options.more_data {
        let work = options.work_of(data);
        if options.work.is_none() && work.join("state").is_file() {
            let what =
                "a data directory that is watched by itself, or was the first one of several: name it first";
            return Err(wrong(data, what.to_owned()));
        }
        if data.exists() && !work.exists() {
            check_data(data)?;
        }
        check_work(data, &work)?;
    }
    definition::check(&options.definition)
}

/// None of several data directories is, or is in, another one.
fn check_apart(options: &WatchOptions) -> Result<()> {
    let all: Vec<PathBuf> = options.directories().map(|data| resolved(data)).collect();
    for (number, data) in all.iter().enumerate() {
        let mut others = all.iter().enumerate().filter(|(other, _)| *other != number);
        if let Some((_, within)) = others.find(|(_, other)| other.starts_with(data)) {
            let what = format!("{} is, or is in, another of the data directories", within.display());
            return Err(wrong(data, what));
        }
    }
    Ok(())
}

/// A data directory has directories of keyspaces, and in them those of tables. One that is empty may be that of a server that was not started yet.
fn check_data(data: &Path) -> Result<()> {
    if !data.is_dir() {
        return Err(wrong(data, "the data directory is not a directory".to_owned()));
    }
    if has_tables(data) || !has_something(data)? {
        return Ok(());
    }
    let mut others =
        [Some(data.join("data")), data.parent().map(Into::into)].into_iter().flatten().collect::<Vec<_>>();
    others.extend(data.ancestors().nth(2).map(Into::into));
    let meant = others.into_iter().find(|other| has_tables(other));
    let meant = meant.map_or_else(String::new, |meant| format!("; {} is one", meant.display()));
    let what = format!("not a node's data directory, which has directories KEYSPACE/TABLE-ID{meant}");
    Err(wrong(data, what))
}

/// Whether there is what a data directory without tables does not have: directories that are not empty, or an SSTable.
fn has_something(data: &Path) -> Result<bool> {
    let cannot = |error| failed("read", &data.display().to_string(), error);
    for entry in fs::read_dir(data).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_full = || fs::read_dir(&path).is_ok_and(|mut inside| inside.next().is_some());
        let is_other = match path.is_dir() {
            true => name.split('-').all(is_name) && is_full(),
            false => name.ends_with("-TOC.txt") || name.ends_with("-Data.db"),
        };
        if is_other {
            return Ok(true);
        }
    }
    Ok(false)
}

fn check_work(data: &Path, work: &Path) -> Result<()> {
    if work.exists() && !work.is_dir() {
        return Err(wrong(work, "the directory for work (--work) is not a directory".to_owned()));
    }
    let (data, real) = (resolved(data), resolved(work));
    match is_elsewhere(&data, &real) {
        false => Ok(()),
        true => {
            let what = "the directory for work (--work) is on another file system than the data, to which there are no hard links: \
                        name one on that of the data";
            Err(wrong(work, what.to_owned()))
        }
    }
}

/// Makes a link, as an SSTable's will be: there are none to another mount of the same file system, either. One table of a data directory is enough: another one's
/// directory may be elsewhere, which is said when something is to be linked there.
///
/// # Errors
///
/// `Misuse` if no table's files can be linked into the directory for work; `Io` if the data directory cannot be read.
pub(super) fn check_links(options: &WatchOptions) -> Result<()> {
    for data in options.directories() {
        let work = options.work_of(data);
        let mut refused = None;
        for table in find_tables(data, &options.tables)?.tables {
            match can_link(&table.path, &work) {
                Some(true) => {
                    refused = None;
                    break;
                }
                Some(false) => drop(refused.get_or_insert(table.path)),
                None => {}
            }
        }
        if let Some(from) = refused {
            let what = format!(
                "no hard links can be made from {} to the directory for work (--work): that is on another file system, or another mount of the same one; name one \
                 on that of the data",
                from.display()
            );
            return Err(wrong(&work, what));
        }
    }
    Ok(())
}

/// Whether a file of an SSTable can be linked into the directory for work, or would be on another file system. `None` if there is none that says so.
fn can_link(table: &Path, work: &Path) -> Option<bool> {
    let is_data = |path: &PathBuf| path.to_str().is_some_and(|name| name.ends_with("-Data.db"));
    let mut files = fs::read_dir(table).ok()?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_data);
    let (file, link) = (files.next()?, work.join("link"));
    let _ = fs::remove_file(&link);
    match fs::hard_link(&file, &link) {
        Ok(()) => fs::remove_file(&link).ok().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => Some(false),
        // One that was deleted just now, or is another user's, which is said of each.
        Err(_) => None,
    }
}

/// Whether a directory is on another file system, or will be: it need not exist yet.
#[cfg(unix)]
fn is_elsewhere(data: &Path, work: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    let data_device = device(data);
    let there = work.ancestors().find_map(device);
    there.is_some() && data_device.is_some() && there != data_device
}

#[cfg(not(unix))]
fn is_elsewhere(_: &Path, _: &Path) -> bool {
    false
}

fn wrong(path: &Path, what: String) -> Error {
    Error::misuse(what).at(|place| place.object = Some(path.display().to_string()))
}
