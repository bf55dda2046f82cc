//! The state of a copy in parts: which rows are in which files, as lines of text.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use marquetry_base::{Error, Result};
use marquetry_io::failed;
use marquetry_io::state_file::{quoted, sealed, unquoted, unsealed};

use crate::Source;
use crate::files::{Files, FilesOptions};

/// The first line.
const TITLE: &str = "marquetry unload, version 2";
/// What the first line of any version begins with.
const TITLES: &str = "marquetry unload, version ";
/// The name of a part that has no file.
const NO_FILE: &str = "-";

/// Some rows, and the file that they are in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// `None`: there were none.
    pub(super) file: Option<String>,
    pub(super) tokens: RangeInclusive<i64>,
    pub(super) rows: u64,
    /// The file's length.
    pub(super) bytes: u64,
}

/// What a state's file has.
pub(super) struct State {
    pub(super) source: String,
    pub(super) directory: String,
    pub(super) options: String,
    pub(super) parts: Vec<Part>,
    pub(super) is_finished: bool,
}

impl State {
    /// The text of a state, as [`read`] takes it.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{TITLE}\nsource {}\ndirectory {}\noptions {}\n",
            quoted(&self.source),
            quoted(&self.directory),
            quoted(&self.options)
        );
        for Part { file, tokens, rows, bytes } in &self.parts {
            let file = file.as_deref().unwrap_or(NO_FILE);
            text.push_str(&format!("part {} {} {rows} {bytes} {file}\n", tokens.start(), tokens.end()));
        }
        text.push_str(if self.is_finished { "finished yes\n" } else { "finished no\n" });
        sealed(&text)
    }
}

impl Part {
    /// Fails unless its file is what was written: as long, a Parquet file, with as many rows.
    pub(super) fn check(&self, directory: &Path) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let path = directory.join(file);
        let name = path.display().to_string();
        let bytes = fs::metadata(&path).map_err(|error| failed("looked at", &name, error))?.len();
        let again = "remove it to have its rows copied again";
        if bytes != self.bytes {
            let what = format!(
                "it is not what this copy wrote: it has {bytes} bytes, and had {}; {again}",
                self.bytes
            );
            return Err(of_state(&what, &path));
        }
        let rows = Files::open([&path], &FilesOptions::default()).map(|file| file.table().rows);
        let what = match rows {
            Ok(Some(rows)) if rows == self.rows => return Ok(()),
            Ok(rows) => format!("it has {} rows, and had {}", rows.unwrap_or(0), self.rows),
            Err(error) => error.message().to_owned(),
        };
        Err(of_state(&format!("it is not what this copy wrote: {what}; {again}"), &path))
    }
}

/// What is wrong with a file of the directory that a copy goes on in.
pub(super) fn of_state(what: &str, path: &Path) -> Error {
    let what = format!("{}: {what}", path.display());
    Error::option("state", what)
}

/// Reads what [`State::text`] is; what is wrong with another text.
pub(super) fn read(text: &str) -> Result<State, &'static str> {
    let is_other = "it is not the state of a copy in parts";
    if !text.starts_with(TITLES) {
        return Err(is_other);
    }
    if text.lines().next() != Some(TITLE) {
        return Err("another version of this program wrote it, which has to finish the copy");
    }
    let text = unsealed(text).ok_or("it was changed or cut: its checksum is not that of its lines")?;
    parse(text).ok_or(is_other)
}

fn parse(text: &str) -> Option<State> {
    let mut lines = text.lines();
    (lines.next()? == TITLE).then_some(())?;
    let mut value = |key: &str| unquoted(lines.next()?.strip_prefix(key)?.strip_prefix(' ')?);
    let (source, directory, options) = (value("source")?, value("directory")?, value("options")?);
    let mut parts = Vec::new();
    loop {
        let line = lines.next()?;
        let Some(part) = line.strip_prefix("part ") else {
            let is_finished = match line {
                "finished yes" => true,
                "finished no" => false,
                _ => return None,
            };
            return lines.next().is_none().then_some(State {
                source,
                directory,
                options,
                parts,
                is_finished,
            });
        };
        let mut words = part.splitn(5, ' ');
        let (first, last): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (rows, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        // A name of this copy's: nothing that leads out of the directory.
        let file = words.next().filter(|name| !name.contains(['/', '\\']))?;
        let file = (file != NO_FILE).then(|| file.to_owned());
        parts.push(Part { file, tokens: (first <= last).then_some(first..=last)?, rows, bytes });
    }
}

/// The name of a table without how it is reached: its address's hosts and user, and whether connections are encrypted.
pub(super) fn table_of(name: &str) -> &str {
    let table = without_hosts(name);
    match name.starts_with("cql://") {
        true => table.split_once('?').map_or(table, |(table, _)| table),
        false => table,
    }
}

/// The name of a table without the hosts and the user that its address begins with: another node has the same table.
fn without_hosts(name: &str) -> &str {
    name.strip_prefix("cql://").and_then(|rest| rest.split_once('/')).map_or(name, |(_, table)| table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_table_by_another_host() {
        for name in ["cql://localhost/k.t", "cql://me@127.0.0.1:9042,db2/k.t", "k.t"] {
            assert_eq!(without_hosts(name), "k.t");
        }
        assert_eq!(without_hosts("cql://h/k.t (id, schema 01)"), "k.t (id, schema 01)");
        for name in ["cql://localhost/k.t?tls=yes", "cql://me@db1:9042/k.t"] {
            assert_eq!(table_of(name), "k.t");
        }
        assert_eq!(table_of("what?.parquet"), "what?.parquet");
    }
}
