//! An SSTable, by its links, becomes a Parquet file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Bytes, Detail, Error, Result};
use marquetry_io::store::Store;
use marquetry_parquet::format::KeyValue;
use marquetry_scylla::sstable::Component;

use super::links::Linked;
use super::options::WatchOptions;
use crate::files::ParquetFile;
use crate::key_values::SSTABLE_KEY;
use crate::parquet::NewParquetFile;
use crate::sstables::definition::defines;
use crate::sstables::options::{Definition, SstablesOptions};
use crate::sstables::source::Sstables;
use crate::subject::name_of;
use crate::{Copied, CopyOptions, Note, Source, copy};

/// A conversion, as it is to be done.
pub(super) struct Conversion<'a> {
    pub(super) linked: &'a Linked,
    /// Where the file goes.
    pub(super) path: &'a Path,
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) definition: Definition,
    pub(super) options: &'a WatchOptions,
}

/// What came of it.
pub(super) struct Done {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) notes: Vec<Note>,
    /// The file was there already.
    pub(super) was_there: bool,
}

impl Conversion<'_> {
    /// Converts it. `tick` is called after each batch.
    ///
    /// # Errors
    ///
    /// Those of the SSTable and of the destination. A file of the same SSTable that is there already is none.
    pub(super) fn run(self, tick: &mut dyn FnMut(&Copied)) -> Result<Done> {
        let options = self.options;
        let reading = SstablesOptions {
            definition: self.definition.clone(),
            mapping: options.mapping,
            limits: options.limits,
            cancel: options.cancel.clone(),
            ..SstablesOptions::default()
        };
        let source = Sstables::open(&self.linked.files.path(&Component::Data), &reading)?;
        let notes = source.table().notes.clone();
        let source: Arc<dyn Source> = Arc::new(source);
        let mut parquet = options.parquet.clone();
        parquet.overwrite = false;
        let identity = self.identity();
        let value = Some(Bytes::copy_from_slice(identity.as_bytes()));
        parquet.write.key_values.push(KeyValue { key: SSTABLE_KEY.to_owned(), value });
        let copying = CopyOptions {
            threads: options.threads,
            memory_bytes: options.memory_bytes,
            cancel: options.cancel.clone(),
            ..CopyOptions::default()
        };
        let copied = NewParquetFile::new_in(Arc::clone(self.store), self.path, parquet)
            .and_then(|mut file| copy(&source, &mut file, &copying, tick));
        match copied {
            Ok(copied) => {
                Ok(Done { rows: copied.rows, bytes: copied.written.bytes, notes, was_there: false })
            }
            Err(error) if error.detail() == Some(Detail::AlreadyExists) => self.expect_same(&identity, notes),
            Err(error) => Err(error),
        }
    }

    /// What the metadata of its file say: where it was, and how many bytes its data have.
    fn identity(&self) -> String {
        let bytes = self.linked.files.bytes_of(&Component::Data).unwrap_or_default();
        let id = &self.linked.id;
        format!("{}/{} {bytes} {}", id.place, id.name(), self.options.mapping.name())
    }

    /// A file is there already: it must be of this SSTable, or else nobody may say that it is converted.
    fn expect_same(&self, identity: &str, notes: Vec<Note>) -> Result<Done> {
        let file = ParquetFile::open_in(self.store, self.path, self.options.limits)?;
        let its = file.metadata().key_values.iter().find(|it| it.key == SSTABLE_KEY);
        if its.and_then(|it| it.value.as_deref()) != Some(identity.as_bytes()) {
            let what = "there is another file by the name that this SSTable's has: move it away";
            let error = Error::misuse(what).at(|place| place.object = Some(name_of(self.path)));
            return Err(error);
        }
        Ok(Done { rows: file.metadata().rows, bytes: file.bytes(), notes, was_there: true })
    }
}

/// The nearest `schema.cql` that is the table's: in its own directory, or in one above, up to the data's, if it defines a table of that name.
pub(super) fn schema_file(table: &Path, data: &Path, name: &str) -> Option<PathBuf> {
    let above = table.ancestors().take_while(|above| above.starts_with(data));
    let is_its = |path: &PathBuf| path.parent() == Some(table) || defines(path, name);
    above.map(|above| above.join("schema.cql")).filter(|path| path.is_file()).find(is_its)
}
