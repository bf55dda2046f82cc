//! SSTables that are written by a simple host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use marquetry_base::{Budget, Bytes, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::compression_info::Compressor;
use marquetry_scylla::sstable::write::{
    SstableWriter, WRITTEN_VERSIONS, WriteCompression, WriteOptions, WriteStep,
};
use marquetry_scylla::sstable::{Component, FileName, TableColumns, Version};

use crate::files::Files;

/// The most units that a step charges beyond its budget: a block of ZSTD, as of the reader; or a block of a trie's keys.
const SLICE_UNITS_MAX: u64 = 300_000;

/// The components of an SSTable.
pub(crate) struct Written {
    pub(crate) version: Version,
    pub(crate) components: BTreeMap<String, Vec<u8>>,
    /// In the order of their first bytes.
    pub(crate) order: Vec<String>,
}

/// Options for a version and a compressor.
pub(crate) fn options(version: &str, compressor: Option<Compressor>) -> WriteOptions {
    let mut options = WriteOptions::new(Version::parse(version).unwrap()).unwrap();
    options.compression = compressor.map(WriteCompression::new);
    options
}

/// Each version with each compressor.
pub(crate) fn all_options() -> Vec<WriteOptions> {
    let compressors = [
        None,
        Some(Compressor::Lz4),
        Some(Compressor::Snappy),
        Some(Compressor::Deflate),
        Some(Compressor::Zstd),
        Some(Compressor::Noop),
    ];
    let of = |version: &'static str| compressors.iter().map(move |compressor| options(version, *compressor));
    WRITTEN_VERSIONS.into_iter().flat_map(of).collect()
}

/// Writes batches of the table.
pub(crate) fn write(
    columns: &TableColumns,
    options: &WriteOptions,
    batches: &[MutationBatch],
    units: u64,
) -> Result<Written> {
    let mut writer = SstableWriter::new(columns, options.clone(), &StandardCodecs::default())?;
    let mut written = Written { version: options.version, components: BTreeMap::new(), order: Vec::new() };
    let mut batches = batches.iter();
    loop {
        let mut budget = Budget::new(units);
        let step = writer.step(&mut budget)?;
        assert!(
            budget.spent() <= units.saturating_add(SLICE_UNITS_MAX),
            "a step of {} units",
            budget.spent()
        );
        match step {
            WriteStep::Append(component, bytes) => {
                let name = component.name().to_string();
                if !written.components.contains_key(&name) {
                    written.order.push(name.clone());
                }
                written.components.entry(name).or_default().extend_from_slice(&bytes);
            }
            WriteStep::Need => match batches.next() {
                Some(batch) => writer.feed(batch.clone())?,
                None => writer.finish(),
            },
            WriteStep::Yield => {}
            WriteStep::Done => break,
        }
    }
    let listed: Vec<String> = writer.components().iter().map(|it| it.name().to_string()).collect();
    // Rows.db of a table without large partitions has no bytes.
    assert!(written.order.iter().all(|name| listed.contains(name)), "{:?}", written.order);
    assert_eq!(written.order.last().map(String::as_str), Some("TOC.txt"));
    Ok(written)
}

impl Written {
    fn name(&self) -> FileName {
        let format = if self.components.contains_key("Partitions.db") { "bti" } else { "big" };
        FileName {
            version: self.version,
            id: "7".to_string(),
            format: format.to_string(),
            component: Component::Data,
        }
    }

    pub(crate) fn files(&self) -> Files {
        let of = |name: &str| self.components.get(name).map(|bytes| Bytes::from(bytes.clone()));
        Files {
            name: self.name(),
            data: of("Data.db").unwrap(),
            statistics: of("Statistics.db").unwrap(),
            compression_info: of("CompressionInfo.db"),
            checksums: of("CRC.db"),
            digest: of("Digest.crc32"),
        }
    }

    /// Creates the files in a directory of their own; returns the path of Data.db.
    pub(crate) fn create(&self, directory: &Path) -> PathBuf {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory).unwrap();
        let name = self.name();
        for (component, bytes) in &self.components {
            std::fs::write(directory.join(name.of(&Component::parse(component))), bytes).unwrap();
        }
        if name.format == "bti" && !self.components.contains_key("Rows.db") {
            std::fs::write(directory.join(name.of(&Component::Rows)), b"").unwrap();
        }
        directory.join(name.of(&Component::Data))
    }

    /// Reads all batches again.
    pub(crate) fn read(&self) -> Vec<MutationBatch> {
        let files = self.files();
        let statistics = files.read_statistics().unwrap();
        let mut batches = Vec::new();
        files.read(&statistics, |batch| batches.push(batch.clone())).unwrap();
        batches
    }
}
