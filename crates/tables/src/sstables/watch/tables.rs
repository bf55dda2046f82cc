//! The tables of a data directory.

use std::fs;
use std::path::{Path, PathBuf};

use marquetry_base::{Error, Result};
use marquetry_io::failed;

use super::options::{TablePattern, is_name};

/// The directory of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableDirectory {
    /// `ks.t`
    pub(super) name: String,
    /// Where it is in the data directory, and its files in the destination: `ks/t-f34b6ff0f8f711eb9fcf000000000000`. The identifier tells it
    /// from another table of that name that was dropped.
    pub(super) place: String,
    pub(super) path: PathBuf,
}

/// What a data directory has.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Directories of keyspaces, in which tables may appear.
    pub(super) keyspaces: Vec<PathBuf>,
    pub(super) tables: Vec<TableDirectory>,
    /// Directories that cannot be read.
    pub(super) faults: Vec<(PathBuf, Error)>,
}

/// Finds the tables that are wanted. Everything else in the data directory is passed over: what is not called as keyspaces and tables are.
///
/// # Errors
///
/// `Io` if the data directory itself cannot be read.
pub(super) fn find_tables(data: &Path, wanted: &[TablePattern]) -> Result<Tables> {
    let mut found = Tables::default();
    for (keyspace, path) in directories(data)? {
        if !is_name(&keyspace) || !is_wanted_keyspace(&keyspace, wanted) {
            continue;
        }
        let inside = match directories(&path) {
            Ok(inside) => inside,
            Err(error) => {
                found.faults.push((path, error));
                continue;
            }
        };
        for (name, path) in inside {
            let Some((table, id)) = name.rsplit_once('-').filter(|(table, id)| is_name(table) && is_id(id))
            else {
                continue;
            };
            if is_wanted(&keyspace, table, wanted) {
                let place = format!("{keyspace}/{table}-{id}");
                found.tables.push(TableDirectory { name: format!("{keyspace}.{table}"), place, path });
            }
        }
        found.keyspaces.push(path);
    }
    Ok(found)
}

/// Whether a directory is laid out as a data directory: whether any keyspace, the system's too, has a table.
pub(super) fn has_tables(data: &Path) -> bool {
    let is_table = |(name, _): &(String, PathBuf)| {
        name.rsplit_once('-').is_some_and(|(table, id)| is_name(table) && is_id(id))
    };
    let keyspaces = directories(data).unwrap_or_default().into_iter().filter(|(name, _)| is_name(name));
    keyspaces.into_iter().any(|(_, path)| directories(&path).unwrap_or_default().iter().any(is_table))
}

/// The name of a table by where its files are: `ks.t`.
pub(super) fn name_of_place(place: &str) -> String {
    let (keyspace, directory) = place.split_once('/').unwrap_or(("", place));
    format!("{keyspace}.{}", directory.rsplit_once('-').map_or(directory, |(table, _)| table))
}

/// The directories in a directory, by name. Links are followed; what is gone by now is none.
fn directories(path: &Path) -> Result<Vec<(String, PathBuf)>> {
    let cannot = |error| failed("read", &path.display().to_string(), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir())
            || fs::metadata(entry.path()).is_ok_and(|found| found.is_dir());
        if let (Ok(name), true) = (entry.file_name().into_string(), is_directory) {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a keyspace is the server's own.
fn is_system(keyspace: &str) -> bool {
    keyspace == "system" || keyspace.starts_with("system_")
}

fn is_wanted(keyspace: &str, table: &str, wanted: &[TablePattern]) -> bool {
    match wanted {
        [] => !is_system(keyspace),
        wanted => wanted.iter().any(|pattern| pattern.contains(keyspace, table)),
    }
}

fn is_wanted_keyspace(keyspace: &str, wanted: &[TablePattern]) -> bool {
    wanted.is_empty() && !is_system(keyspace) || wanted.iter().any(|pattern| pattern.is_of(keyspace))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "f34b6ff0f8f711eb9fcf000000000000";

    fn found(wanted: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "ks/t-ID",
            "ks/t-ID/snapshots/one",
            "ks/t-ID/.t_v_idx",
            "ks/u-ID",
            "ks/u",
            "ks/u-123",
            "ks/a b-ID",
            "other/t-ID",
            "system/local-ID",
            "system_schema/tables-ID",
            ".marquetry/links/ks/t-ID",
            "lost+found/t-ID",
            "my-backups/t-ID",
        ] {
            fs::create_dir_all(folder.path().join(name.replace("ID", ID))).unwrap();
        }
        fs::write(folder.path().join("schema.cql"), "").unwrap();
        fs::write(folder.path().join(format!("ks/f-{ID}")), "").unwrap();
        let wanted: Vec<TablePattern> = wanted.iter().map(|text| text.parse().unwrap()).collect();
        let found = find_tables(folder.path(), &wanted).unwrap();
        assert!(found.faults.is_empty());
        assert!(found.tables.iter().all(|table| name_of_place(&table.place) == table.name));
        let names: Vec<&str> = found.tables.iter().map(|table| table.name.as_str()).collect();
        names.join(" ")
    }

    #[test]
    fn only_what_is_laid_out_as_a_table_is_one() {
        assert_eq!(found(&[]), "ks.t ks.u other.t");
        assert_eq!(found(&["ks.u", "system"]), "ks.u system.local");
        assert_eq!(found(&["nothing"]), "");
        assert!(find_tables("/nowhere/at/all".as_ref(), &[]).is_err());
    }
}
