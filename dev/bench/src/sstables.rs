//! SSTables that Cassandra's own writer makes (`MakeTables.java`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program;

/// A table's folder below `files`, with one SSTable of format `nb` and LZ4, which all contestants read; it is made unless it is there. `maker` is run by
/// `cassandra` (`dev/cassandra.sh`).
///
/// # Errors
/// Those of the maker, with what it printed.
pub fn made(
    files: &Path,
    (cassandra, maker): (&Path, &Path),
    table: &str,
    rows: u64,
) -> Result<PathBuf, String> {
    let name: String = table.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let dir = files.join(format!("sstable-{rows}-{name}"));
    if !dir.join("schema.cql").exists() {
        let _ = std::fs::remove_dir_all(&dir);
        eprintln!("{}: {rows} rows by CQLSSTableWriter", dir.display());
        let mut command = Command::new(cassandra);
        command.arg("run").arg(maker).arg(&dir).arg(table).arg(rows.to_string()).arg("LZ4Compressor");
        command.env("COMPATIBILITY", "CASSANDRA_4").stdin(Stdio::null());
        program::output(&mut command)?;
    }
    Ok(dir)
}

/// The Data.db of the one SSTable in a folder.
///
/// # Errors
/// If there is none, or more than one.
pub fn data_file(dir: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let is_data = |path: &PathBuf| path.to_string_lossy().ends_with("-Data.db");
    let mut found = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).filter(is_data);
    match (found.next(), found.next()) {
        (Some(data), None) => Ok(data),
        _ => Err(format!("{}: not one SSTable", dir.display())),
    }
}
