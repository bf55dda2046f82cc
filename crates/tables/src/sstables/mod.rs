//! SSTables as a source and as a destination: what Cassandra and ScyllaDB keep a table in, read and written without a server.

mod component;
mod components;
mod definition;
mod describe;
mod find;
mod full_files;
mod index;
mod largest;
mod new;
mod options;
mod origin;
mod rows;
mod scan;
mod source;
mod watch;

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_io::store::Store;
use marquetry_scylla::sstable::statistics::SerializationHeader;

pub use crate::TokenRange;
pub use describe::{
    ColumnRole, Compression, DescribedColumn, Facts, SstableDescription, SstablesDescription, describe,
};
pub use full_files::FullFiles;
pub use largest::{LargePartition, largest_partitions};
pub use marquetry_scylla::bridge::mutations::MutationMapping;
pub use marquetry_scylla::sstable::compression_info::Compressor;
pub use marquetry_scylla::sstable::write::WriteCompression;
pub use new::{ManifestOptions, NewSstables, NewSstablesOptions, PlainRowsOptions};
pub use options::{Definition, SstablesOptions, time_at};
pub use source::Sstables;
pub use watch::{Keep, TablePattern, WatchEvent, WatchOptions, WatchSummary, WatchedFile, watch};

use component::Sstable;
use definition::{Defined, define};

use crate::Note;
use crate::subject::{name_of, named};

/// Whether a path leads to SSTables: a file of one, or a directory with some in it or below it.
pub fn is_sstables(store: &dyn Store, path: &Path) -> bool {
    find::is_there(store, path)
}

/// A text that is the same as long as the SSTables that a path names are: see [`files::unchanged`](crate::files::unchanged).
///
/// # Errors
///
/// As [`Sstables::open`].
pub fn unchanged(path: &Path, options: &SstablesOptions) -> Result<String> {
    let store = options.cancel.of_store(&options.store);
    let found = find::find(&*store, path)?;
    let files = found.sstables.iter();
    let files = files.flat_map(|files| files.components.iter().map(|(component, _)| files.path(component)));
    crate::files::unchanged_files(&*store, &files.collect::<Vec<_>>(), &options.cancel)
}

/// The SSTables of a table, whose statistics were read.
#[derive(Debug)]
struct SstablesOf {
    /// What was opened.
    name: String,
    store: Arc<dyn Store>,
    limits: Limits,
    sstables: Vec<Arc<Sstable>>,
    defined: Defined,
}

impl SstablesOf {
    fn open(path: &Path, options: &SstablesOptions) -> Result<SstablesOf> {
        let store = options.cancel.of_store(&options.store);
        let found = find::find(&*store, path)?;
        let mut sstables = Vec::new();
        for files in &found.sstables {
            options.cancel.check()?;
            sstables.push(Arc::new(Sstable::open(&*store, files.clone(), options.limits)?));
        }
        expect_same_table(&sstables)?;
        let headers: Vec<&SerializationHeader> = sstables.iter().map(|it| &it.statistics.header).collect();
        let defined = define(&*store, &found, &headers, &options.definition, options.limits);
        let name = name_of(path);
        let defined = defined.map_err(|error| named(error, &name))?;
        Ok(SstablesOf { name, store: Arc::clone(&options.store), limits: options.limits, sstables, defined })
    }

    /// What is not as in the SSTables, or not as in the table.
    fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let left_out = self.defined.left_out();
        if !left_out.is_empty() {
            let from = self.defined.from.as_deref().unwrap_or("the schema that is given");
            let text = format!("left out: {} (not in {from})", left_out.join(", "));
            notes.push(Note { text, option: None });
        }
        notes.extend(self.unnamed_key().map(|text| Note { text, option: Some("definition") }));
        notes
    }

    /// Why names of key columns are made up, if they are and nobody asked for it.
    fn unnamed_key(&self) -> Option<String> {
        let why = self.defined.nameless.as_ref()?;
        let columns = &self.defined.columns;
        let keys = columns.partition_key.iter().chain(&columns.clustering);
        let keys: Vec<&str> = keys.map(|key| key.name.as_str()).collect();
        Some(format!("the names of key columns are not known ({}): {why}", keys.join(", ")))
    }
}

impl SstablesOf {
    /// Whether ScyllaDB wrote any of them: Cassandra's have other rules where both differ.
    fn is_of_scylla(&self) -> bool {
        self.sstables.iter().any(|sstable| sstable.files.is_of_scylla())
    }
}

/// Fails where SSTables cannot be of one table, and says which: their keys or their partitioners differ.
fn expect_same_table(sstables: &[Arc<Sstable>]) -> Result<()> {
    let Some((first, others)) = sstables.split_first() else { return Ok(()) };
    for other in others {
        let (ours, theirs) = (&first.statistics, &other.statistics);
        let what = match () {
            () if ours.header.key != theirs.header.key => "partition keys",
            () if ours.header.clustering != theirs.header.clustering => "clustering columns",
            () if ours.partitioner != theirs.partitioner => "partitioners",
            () => continue,
        };
        let what = format!(
            "SSTables of different tables: they have other {what} than {}; name the directory of one table",
            first.files.shown()
        );
        return Err(named(Error::misuse(what), &other.files.shown()));
    }
    Ok(())
}
