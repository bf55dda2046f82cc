//! The files of new SSTables.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::write::{SstableWriter, WriteOptions, WriteStep};
use marquetry_scylla::sstable::{Component, FileName, IndexKind, TableColumns};

use super::hidden::{Hidden, failed};
use super::manifest::NewSstable;
use crate::{Cancel, Written};

/// Writes SSTables, one after the other, to a directory.
pub(super) struct NewFiles {
    pub(super) directory: Hidden,
    columns: Arc<TableColumns>,
    options: WriteOptions,
    /// Made with the first partition.
    writer: Option<SstableWriter>,
    /// Its files, and their bytes.
    files: BTreeMap<&'static str, (File, u64)>,
    /// Those that are complete.
    pub(super) sstables: Vec<NewSstable>,
    /// The number in the names of the SSTable.
    generation: u32,
    pub(super) written: Written,
    /// Rows of the SSTables that are complete, the static ones among them.
    pub(super) rows: u64,
}

impl NewFiles {
    pub(super) fn new(directory: Hidden, columns: Arc<TableColumns>, options: WriteOptions) -> NewFiles {
        NewFiles {
            directory,
            columns,
            options,
            writer: None,
            files: BTreeMap::new(),
            sstables: Vec::new(),
            generation: 1,
            written: Written::default(),
            rows: 0,
        }
    }

    /// Writes a batch of the table.
    pub(super) fn put(&mut self, writes: MutationBatch, cancel: &Cancel) -> Result<()> {
        if writes.partitions.ends.is_empty() {
            return Ok(());
        }
        if self.writer.is_none() {
            let codecs = StandardCodecs::default();
            self.writer = Some(SstableWriter::new(&self.columns, self.options.clone(), &codecs)?);
        }
        if let Some(writer) = &mut self.writer {
            writer.feed(writes)?;
        }
        self.append(cancel)
    }

    /// The row or bound that an error of [`put`](NewFiles::put) is about: see [`SstableWriter::entry`].
    pub(super) fn entry(&self) -> Option<u64> {
        self.writer.as_ref().and_then(SstableWriter::entry)
    }

    /// Writes what is left, after the last batch.
    pub(super) fn finish(&mut self, cancel: &Cancel) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.finish();
        }
        self.append(cancel)
    }

    /// Appends to files until the writer waits, or all is written.
    fn append(&mut self, cancel: &Cancel) -> Result<()> {
        while let Some(writer) = &mut self.writer {
            cancel.check()?;
            match writer.step(&mut Budget::unlimited())? {
                WriteStep::Append(component, bytes) => self.append_to(&component, &bytes)?,
                WriteStep::Need => return Ok(()),
                WriteStep::Yield => {}
                WriteStep::Done => {
                    self.end_sstable()?;
                    let next = self.writer.take().map(|writer| writer.next(&StandardCodecs::default()));
                    self.writer = next.transpose()?.flatten();
                    self.generation += 1;
                }
            }
        }
        Ok(())
    }

    fn append_to(&mut self, component: &Component, bytes: &Bytes) -> Result<()> {
        let path = self.path_of(component);
        let name = known_name(component)?;
        if !self.files.contains_key(name) {
            let file = File::create_new(&path).map_err(|error| failed(&path, error))?;
            self.files.insert(name, (file, 0));
            self.written.files += 1;
        }
        self.written.bytes += u64_of(bytes.len());
        let file = self.files.get_mut(name);
        let (file, file_bytes) = file.ok_or_else(|| Error::internal("a file that is not open"))?;
        *file_bytes += u64_of(bytes.len());
        file.write_all(bytes).map_err(|error| failed(&path, error))
    }

    /// Waits until all files of an SSTable are on disk.
    fn end_sstable(&mut self) -> Result<()> {
        let components = self.writer.as_ref().map(SstableWriter::components).unwrap_or_default();
        for component in &components {
            // Of some, such as the indexes of rows, nothing may have been written.
            self.append_to(component, &Bytes::new())?;
        }
        let (mut data_bytes, mut index_bytes) = (0, 0);
        for component in &components {
            let path = self.path_of(component);
            let Some((file, bytes)) = self.files.remove(known_name(component)?) else { continue };
            file.sync_all().map_err(|error| failed(&path, error))?;
            match component {
                Component::Data => data_bytes = bytes,
                Component::Index | Component::Partitions => index_bytes = bytes,
                _ => {}
            }
        }
        let written = self.writer.as_ref().map(SstableWriter::written).unwrap_or_default();
        self.rows += written.rows;
        if let Some(tokens) = written.tokens {
            let toc_name = self.name_of(&Component::Toc);
            self.sstables.push(NewSstable { toc_name, data_bytes, index_bytes, tokens });
        }
        Ok(())
    }

    fn path_of(&self, component: &Component) -> PathBuf {
        self.directory.path().join(self.name_of(component))
    }

    fn name_of(&self, component: &Component) -> String {
        let version = self.options.version;
        let format = match version.index() {
            IndexKind::Big => "big",
            IndexKind::Trie => "bti",
        };
        let name = FileName {
            version,
            id: self.generation.to_string(),
            format: format.to_owned(),
            component: Component::Data,
        };
        name.of(component)
    }
}

/// The name of a component that the writer has.
fn known_name(component: &Component) -> Result<&'static str> {
    let known = [
        Component::Data,
        Component::Index,
        Component::Summary,
        Component::Partitions,
        Component::Rows,
        Component::Filter,
        Component::Statistics,
        Component::CompressionInfo,
        Component::Crc,
        Component::Digest,
        Component::Toc,
    ];
    const NAMES: [&str; 11] = [
        "Data.db",
        "Index.db",
        "Summary.db",
        "Partitions.db",
        "Rows.db",
        "Filter.db",
        "Statistics.db",
        "CompressionInfo.db",
        "CRC.db",
        "Digest.crc32",
        "TOC.txt",
    ];
    let found = known.iter().zip(NAMES).find(|(known, _)| *known == component);
    found.map(|(_, name)| name).ok_or_else(|| Error::internal("a component that is not known"))
}
