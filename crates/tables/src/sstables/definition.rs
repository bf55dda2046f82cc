//! The definition of the table: the one that is given, or the one that a server or a backup left with the SSTables.

use std::path::{Path, PathBuf};

use marquetry_base::{Detail, Error, ErrorKind, Limits, Result};
use marquetry_io::store::{Found, LocalFiles, Store};
use marquetry_scylla::cql::Definitions;
use marquetry_scylla::sstable::merge::Liveness;
use marquetry_scylla::sstable::scylla_metadata::ScyllaMetadataReader;
use marquetry_scylla::sstable::statistics::SerializationHeader;
use marquetry_scylla::sstable::{Component, KnownName, TableColumns, TableOf};

use super::component::{FILE, read, read_text};
use super::components::SstableFiles;
use super::find::FoundTable;
use super::options::Definition;
use super::origin::Origin;
use crate::subject::{name_of, named};

/// The most bytes of a file of definitions: those of thousands of tables have fewer.
const BYTES_MAX: u64 = 64 << 20;

/// Directories above the SSTables in which a definition may be: a backup's, above its keyspaces and tables.
const ABOVE_MAX: usize = 4;

/// The columns of a table, and where their names are from.
#[derive(Debug)]
pub(super) struct Defined {
    pub(super) columns: TableColumns,
    /// The table's name, where it is known.
    pub(super) name: Option<String>,
    /// The file of the definition.
    pub(super) from: Option<String>,
    /// The statements that make the table, with its types, options and indexes, if there is a definition of one.
    pub(super) statements: Option<String>,
    /// Why the names of key columns are made up, if they are and nobody asked for it.
    pub(super) nameless: Option<String>,
    /// What its rows need to be alive, if something says whether it is a view.
    pub(super) liveness: Option<Liveness>,
}

impl Defined {
    /// Columns that SSTables have and the table does not.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.columns.left_out().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }
}

/// Finds the definition, and what columns the table has by it.
pub(super) fn define(
    store: &dyn Store,
    table: &FoundTable,
    headers: &[&SerializationHeader],
    given: &Definition,
    limits: Limits,
) -> Result<Defined> {
    let origin = &table.origin;
    match given {
        Definition::Missing => without(headers, origin),
        Definition::Text(text) => {
            let made = parse(text, "schema")?;
            by(&made, headers, origin, true)
                .and_then(|found| found.ok_or_else(|| not_there(&made, origin)))
                .map_err(|error| named(error, "the schema that is given"))
        }
        Definition::File(path) => {
            let name = name_of(path);
            let text = text_of(store, path).map_err(|error| match error.detail() {
                // As the columns of text are named.
                Some(Detail::NotFound) if name.contains(' ') => {
                    let message = format!("{}, and no CREATE TABLE, which SSTables want", error.message());
                    error.reworded(message)
                }
                _ => error,
            });
            let made = parse(&text?, &name)?;
            let found = by(&made, headers, origin, true);
            let found = found.and_then(|found| found.ok_or_else(|| not_there(&made, origin)));
            let found = found.map_err(|error| named(error, &name))?;
            Ok(Defined { from: Some(name), ..found })
        }
        Definition::Beside => {
            // The nearest file that says nothing.
            let mut why: Option<String> = None;
            for (path, is_beside) in places(table) {
                if !matches!(store.look(&path), Ok(Found::Object { .. })) {
                    continue;
                }
                let name = name_of(&path);
                let made = text_of(store, &path).and_then(|text| parse(&text, &name));
                let made = match made {
                    Err(error) if !is_beside && error.kind() != ErrorKind::Cancelled => {
                        why.get_or_insert_with(|| format!("{name} cannot be read ({})", error.message()));
                        continue;
                    }
                    made => made.map_err(dispensable)?,
                };
                if made.tables.is_empty() && made.views.is_empty() {
                    // As Cassandra leaves it for tables that CQL cannot say: in a comment.
                    why.get_or_insert_with(|| format!("{name} has no CREATE TABLE"));
                    continue;
                }
                match by(&made, headers, origin, is_beside) {
                    Ok(Some(found)) => return Ok(Defined { from: Some(name), ..found }),
                    Ok(None) if is_beside => {
                        return Err(dispensable(named(not_there(&made, origin), &name)));
                    }
                    Ok(None) => {}
                    Err(error) => return Err(dispensable(named(error, &name))),
                }
            }
            let found = of_scylla(store, table, headers, limits)?;
            let why = why.unwrap_or_else(|| "there is no schema.cql".to_owned());
            found.map_or_else(|| Ok(Defined { nameless: Some(why), ..without(headers, origin)? }), Ok)
        }
    }
}

/// Whether a definition that is given can be read, and defines any table.
///
/// # Errors
///
/// `Misuse` if it does not; `Io` if its file cannot be read.
pub(super) fn check(given: &Definition) -> Result<()> {
    let (text, name) = match given {
        Definition::Beside | Definition::Missing => return Ok(()),
        Definition::Text(text) => (text.clone(), "the schema that is given".to_owned()),
        Definition::File(path) => (text_of(&LocalFiles, path)?, name_of(path)),
    };
    let made = parse(&text, &name)?;
    if made.tables.is_empty() && made.views.is_empty() {
        return Err(named(Error::misuse("it has no CREATE TABLE"), &name));
    }
    Ok(())
}

/// What a Scylla.db says, if there is one that says anything: the names of key columns when it was written.
fn of_scylla(
    store: &dyn Store,
    table: &FoundTable,
    headers: &[&SerializationHeader],
    limits: Limits,
) -> Result<Option<Defined>> {
    let has = |files: &&SstableFiles| files.bytes_of(&Component::Scylla).is_some();
    for files in table.sstables.iter().filter(has) {
        let made = read(store, files, &Component::Scylla, ScyllaMetadataReader::new(FILE, limits))?;
        let Some(schema) = made.schema else { continue };
        let columns = TableColumns::new(headers, Some(&schema.key_names()));
        let path = name_of(&files.path(&Component::Scylla));
        return Ok(Some(Defined {
            columns: columns.map_err(|error| named(error, &path))?,
            name: Some(format!("{}.{}", schema.keyspace, schema.table)),
            from: Some(path),
            statements: None,
            nameless: None,
            liveness: None,
        }));
    }
    Ok(None)
}

/// An error of a definition that nobody named.
fn dispensable(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Misuse | ErrorKind::Corrupt | ErrorKind::Unsupported => {
            error.with(Detail::AdmittedBy(&["definition"]))
        }
        _ => error,
    }
}

/// Where a definition may be, the nearest first, and whether that is beside the SSTables.
fn places(table: &FoundTable) -> Vec<(PathBuf, bool)> {
    let Some(first) = table.sstables.first() else { return Vec::new() };
    let names = |(above, folder): (usize, &Path)| {
        [(folder.join("schema.cql"), above == 0), (folder.join("meta").join("schema.cql"), false)]
    };
    first.folder.ancestors().take(1 + ABOVE_MAX).enumerate().flat_map(names).collect()
}

fn text_of(store: &dyn Store, path: &Path) -> Result<String> {
    let bytes = read_text(store, path, BYTES_MAX)?;
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|_| named(Error::corrupt("definitions that are not UTF-8"), &name_of(path)))
}

fn parse(text: &str, name: &str) -> Result<Definitions> {
    Definitions::parse(text).map_err(|error| named(Error::misuse(error.to_string()), name))
}

fn without(headers: &[&SerializationHeader], origin: &Origin) -> Result<Defined> {
    Ok(Defined {
        columns: TableColumns::new(headers, None)?,
        name: origin.name(),
        from: None,
        statements: None,
        nameless: None,
        liveness: None,
    })
}

/// What the definitions say of the table. `None` if it is not among them.
fn by(
    made: &Definitions,
    headers: &[&SerializationHeader],
    origin: &Origin,
    is_given: bool,
) -> Result<Option<Defined>> {
    let found = TableOf::find(made, headers, origin.known(), is_given)?;
    // A view has none of its own.
    let statements = |name: &str| {
        let table = made.tables.iter().find(|table| table.table.to_string() == name)?;
        made.statements_of(&table.table)
    };
    Ok(found.map(|TableOf { columns, name, liveness, .. }| Defined {
        columns,
        statements: statements(&name),
        name: Some(name),
        from: None,
        nameless: None,
        liveness: Some(liveness),
    }))
}

/// Whether a local file defines the table or view of this name. False for one that is no definitions.
pub(super) fn defines(file: &Path, table: &str) -> bool {
    if std::fs::metadata(file).map_or(u64::MAX, |metadata| metadata.len()) > BYTES_MAX {
        return false;
    }
    let text = std::fs::read_to_string(file).ok();
    let Some(made) = text.and_then(|text| Definitions::parse(&text).ok()) else { return false };
    let (keyspace, table) =
        table.split_once('.').map_or((None, table), |(keyspace, table)| (Some(keyspace), table));
    let known = KnownName { keyspace, table: Some(table) };
    let views = made.views.iter().map(|view| &view.view);
    made.tables.iter().map(|table| &table.table).chain(views).any(|name| known.is_of(name))
}

fn not_there(made: &Definitions, origin: &Origin) -> Error {
    TableOf::not_there(made, origin.known())
}
