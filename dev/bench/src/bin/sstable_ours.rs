//! Our own scan of an SSTable, on one core: `bench-sstable-ours DATA.DB ROUNDS` prints rows, the bytes of data uncompressed, and the seconds of each round.
//! A round opens the SSTable, checks all checksums and makes batches of all rows.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use marquetry_base::{Error, Limits, Machine, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::File;
use marquetry_io::{ByteSources, drive};
use marquetry_scylla::sstable::batch::EntryKind;
use marquetry_scylla::sstable::checksums::{ChecksumsReader, parse_digest};
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::statistics::StatisticsReader;
use marquetry_scylla::sstable::{Component, DataOptions, DataReader, FileName, Packing};

const OBJECT: Object = Object(0);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.get(1).and_then(|rounds| rounds.parse().ok());
    let (Some(file), Some(rounds)) = (arguments.first(), rounds) else {
        eprintln!("usage: bench-sstable-ours DATA.DB ROUNDS");
        return ExitCode::FAILURE;
    };
    match run(Path::new(file), rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-sstable-ours: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &Path, rounds: u32) -> Result<()> {
    let (mut rows, mut bytes) = (0, 0);
    let mut seconds = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        (rows, bytes) = scan(file)?;
        seconds.push(start.elapsed().as_secs_f64().to_string());
    }
    println!("{rows} {bytes} {}", seconds.join(" "));
    Ok(())
}

fn scan(file: &Path) -> Result<(usize, u64)> {
    let missing = |what: &str| Error::option("file", format!("{}: {what}", file.display()));
    let name = file.file_name().and_then(|name| name.to_str()).map(FileName::parse).transpose()?.flatten();
    let name = name.ok_or_else(|| missing("not a component of an SSTable"))?;
    let folder = file.parent().ok_or_else(|| missing("without a folder"))?;
    let component = |component: Component| folder.join(name.of(&component));
    let statistics = read(
        StatisticsReader::new(OBJECT, name.version, Limits::DEFAULT),
        &component(Component::Statistics),
    )?;
    let (info, sums) = (component(Component::CompressionInfo), component(Component::Crc));
    let packing = if info.exists() {
        let reader = CompressionInfoReader::new(OBJECT, name.version, Limits::DEFAULT);
        Packing::Compressed(Arc::new(read(reader, &info)?))
    } else {
        Packing::Plain(Some(Arc::new(read(ChecksumsReader::new(OBJECT, Limits::DEFAULT), &sums)?)))
    };
    let bytes = match &packing {
        Packing::Compressed(info) => info.data_bytes,
        Packing::Plain(_) => std::fs::metadata(file).map_err(|error| missing(&error.to_string()))?.len(),
    };
    let mut options = DataOptions::default();
    let digest = std::fs::read(component(Component::Digest)).map_err(|error| missing(&error.to_string()))?;
    options.digest = Some(parse_digest(&digest)?);
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = DataReader::new(OBJECT, name.version, &statistics.header, packing, codecs, options)?;
    let sources = ByteSources::new().with(OBJECT, File::open(file)?);
    let mut rows = 0;
    while let Some(batch) = drive(&mut reader, &sources)? {
        rows += batch.entries.kinds.iter().filter(|kind| **kind == EntryKind::Row).count();
        reader.recycle(batch);
    }
    Ok((rows, bytes))
}

/// What a machine makes of one file.
fn read<M: Machine>(mut machine: M, file: &Path) -> Result<M::Product> {
    let sources = ByteSources::new().with(OBJECT, File::open(file)?);
    drive(&mut machine, &sources)?.ok_or_else(|| Error::internal("a machine without a product"))
}
