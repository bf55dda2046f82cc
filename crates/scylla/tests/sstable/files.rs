//! SSTables in folders, read by a simple host.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Limits, Machine, Object, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::checksums::{ChecksumsReader, parse_digest};
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::statistics::{Statistics, StatisticsReader};
use marquetry_scylla::sstable::{Component, DataOptions, DataReader, FileName, Packing, parse_toc};

pub(crate) const OBJECT: Object = Object(7);

/// The bytes of an SSTable's components.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) name: FileName,
    pub(crate) data: Bytes,
    pub(crate) statistics: Bytes,
    pub(crate) compression_info: Option<Bytes>,
    pub(crate) checksums: Option<Bytes>,
    pub(crate) digest: Option<Bytes>,
}

impl Files {
    /// The components beside a Data.db.
    pub(crate) fn open(data: &Path) -> Files {
        let file_name = data.file_name().and_then(|name| name.to_str()).expect("a name");
        let name = FileName::parse(file_name).expect("a known version").expect("an SSTable");
        let folder = data.parent().expect("a folder");
        let read = |component: &Component| {
            let path = folder.join(name.of(component));
            path.exists().then(|| Bytes::from(std::fs::read(&path).expect("a file")))
        };
        let toc = parse_toc(&read(&Component::Toc).expect("TOC.txt")).expect("a table of contents");
        let listed = |component: &Component| if toc.contains(component) { read(component) } else { None };
        Files {
            data: read(&Component::Data).expect("Data.db"),
            statistics: read(&Component::Statistics).expect("Statistics.db"),
            compression_info: listed(&Component::CompressionInfo),
            checksums: listed(&Component::Crc),
            digest: listed(&Component::Digest),
            name,
        }
    }

    pub(crate) fn read_statistics(&self) -> Result<Statistics> {
        let version = self.name.version;
        one(StatisticsReader::new(OBJECT, version, Limits::DEFAULT), &self.statistics)
    }

    pub(crate) fn packing(&self) -> Result<Packing> {
        let version = self.name.version;
        Ok(match (&self.compression_info, &self.checksums) {
            (Some(info), _) => {
                let reader = CompressionInfoReader::new(OBJECT, version, Limits::DEFAULT);
                Packing::Compressed(Arc::new(one(reader, info)?))
            }
            (None, Some(sums)) => {
                Packing::Plain(Some(Arc::new(one(ChecksumsReader::new(OBJECT, Limits::DEFAULT), sums)?)))
            }
            (None, None) => Packing::Plain(None),
        })
    }

    pub(crate) fn reader(&self, statistics: &Statistics, mut options: DataOptions) -> Result<DataReader> {
        if options.digest.is_none() {
            options.digest = self.digest.as_ref().map(|text| parse_digest(text)).transpose()?;
        }
        let codecs = Arc::new(StandardCodecs::default());
        DataReader::new(OBJECT, self.name.version, &statistics.header, self.packing()?, codecs, options)
    }

    /// Reads all, batch by batch.
    pub(crate) fn read(&self, statistics: &Statistics, mut take: impl FnMut(&MutationBatch)) -> Result<()> {
        let mut reader = self.reader(statistics, DataOptions::default())?;
        while let Some(batch) = next(&mut reader, &self.data)? {
            take(&batch);
            reader.recycle(batch);
        }
        Ok(())
    }
}

/// The only product of a machine.
pub(crate) fn one<M: Machine>(mut machine: M, bytes: &Bytes) -> Result<M::Product> {
    let product = next(&mut machine, bytes)?.expect("a product");
    assert!(next(&mut machine, bytes)?.is_none(), "a second product");
    Ok(product)
}

/// The next product of a machine over an object's bytes.
pub(crate) fn next<M: Machine>(machine: &mut M, bytes: &Bytes) -> Result<Option<M::Product>> {
    next_of(machine, |_| bytes, |_, _| {})
}

/// The next product of a machine over several objects; `see` is shown what it asks for.
pub(crate) fn next_over<M: Machine>(
    machine: &mut M,
    objects: &[(Object, Bytes)],
    see: impl FnMut(Object, &Range<u64>),
) -> Result<Option<M::Product>> {
    let bytes_of = |wanted: Object| {
        let found = objects.iter().find(|(object, _)| *object == wanted);
        found.map(|(_, bytes)| bytes).expect("one of the objects")
    };
    next_of(machine, bytes_of, see)
}

fn next_of<'a, M: Machine>(
    machine: &mut M,
    bytes_of: impl Fn(Object) -> &'a Bytes,
    mut see: impl FnMut(Object, &Range<u64>),
) -> Result<Option<M::Product>> {
    loop {
        match machine.step(&mut Budget::default())? {
            Step::Ready(product) => return Ok(Some(product)),
            Step::Done => return Ok(None),
            Step::Yield => {}
            Step::Append(..) => panic!("a reader that writes"),
            Step::Need(demand) => {
                for want in demand.wants {
                    match want {
                        Want::Length(object) => {
                            machine.supply_length(object, bytes_of(object).len() as u64)?;
                        }
                        Want::Range(object, range, _) => {
                            see(object, &range);
                            let index = |at: u64| usize::try_from(at).expect("in memory");
                            let part = bytes_of(object).slice(index(range.start)..index(range.end));
                            machine.supply(object, range, part)?;
                        }
                    }
                }
            }
        }
    }
}

/// All files of that name's end below a folder, sorted.
pub(crate) fn data_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with("-Data.db") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
