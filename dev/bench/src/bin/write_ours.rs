//! Marquetry's writer as a contestant: `bench-write-ours FILE ENCODING CODEC [both|usual|other]`, the last of them for Snappy's compressors.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Codec, Codecs, Compressor, Decompressor, Error, Limits, Object};
use marquetry_bench::protocol::{Count, Product, refuse, serve};
use marquetry_bench::{level, ours};
use marquetry_codecs::StandardCodecs;
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSink, ByteSinks, ByteSources, drive, drive_into};
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::format::{Compression, Encoding, FileMetaData};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_parquet::write::{ColumnOptions, Fed, FileWriter, WriteOptions};

const FILE: Object = Object(0);

/// Rows of a batch: as many as parquet-rs is given.
const BATCH_ROWS: usize = 65_536;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, encoding, codec, compressors) = match &arguments[..] {
        [path, encoding, codec] => (path, encoding, codec, "both"),
        [path, encoding, codec, compressors] => (path, encoding, codec, &**compressors),
        _ => return refuse("usage: bench-write-ours FILE ENCODING CODEC [both|usual|other]"),
    };
    if let Err(message) = level::hold() {
        return refuse(&message);
    }
    let Some(codecs) = Compressors::from_name(compressors) else {
        return refuse(&format!("no compressors are called {compressors}"));
    };
    let loaded = std::fs::read(path).map_err(|error| format!("{path}: {error}")).and_then(|bytes| {
        let options = options(encoding, codec)?;
        let table = Table::load(bytes.into()).map_err(|error| error.to_string())?;
        Ok((options, table))
    });
    let (options, table) = match loaded {
        Ok(loaded) => loaded,
        Err(message) => return refuse(&message),
    };
    // The same memory for each file: what is measured is writing, not how memory grows.
    let mut written = Vec::new();
    serve(env!("CARGO_PKG_VERSION"), |check| {
        written.clear();
        table.write(&options, codecs, &mut written).map_err(|error| error.to_string())?;
        let rows = table.metadata.rows;
        if !check {
            return Ok(Count { rows, sum: written.len() as u64 });
        }
        let product = Product::Arrow;
        let found = ours::read(&Bytes::copy_from_slice(&written), product, None, true)?;
        Ok(Count { rows: found.rows, sum: found.sum })
    })
}

/// A table in memory, as the reader hands it out: arrays with a slot a row.
struct Table {
    metadata: Arc<FileMetaData>,
    batches: Vec<Batch>,
}

impl Table {
    fn load(file: Bytes) -> Result<Table, Error> {
        let sources = ByteSources::new().with(FILE, Memory::new("file", file));
        let metadata = drive(&mut FooterReader::new(FILE, Limits::DEFAULT), &sources)?
            .ok_or_else(|| Error::internal("no metadata"))?;
        let options =
            ReadOptions { layout: Layout::Spaced, batch_rows: BATCH_ROWS, ..ReadOptions::default() };
        let codecs = Arc::new(StandardCodecs::default());
        let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options)?;
        let mut batches = Vec::new();
        while let Some(batch) = drive(&mut reader, &sources)? {
            batches.push(batch);
        }
        Ok(Table { metadata, batches })
    }

    fn write(&self, options: &WriteOptions, codecs: Compressors, written: &mut Vec<u8>) -> Result<(), Error> {
        let schema = Arc::clone(&self.metadata.schema);
        let mut writer = FileWriter::new(FILE, schema, Arc::new(codecs), options.clone())?;
        let mut sinks = ByteSinks::new().with(FILE, Written(written));
        for batch in &self.batches {
            drive_into(&mut writer, &mut sinks)?;
            if writer.feed(batch.clone())? != Fed::Taken {
                return Err(Error::internal("a writer that asked for rows has no room for them"));
            }
        }
        writer.finish();
        while drive_into(&mut writer, &mut sinks)?.is_some() {}
        Ok(())
    }
}

/// Our codecs, with both of Snappy's compressors or one.
#[derive(Clone, Copy, Debug)]
enum Compressors {
    Both,
    Usual,
    Other,
}

impl Compressors {
    fn from_name(name: &str) -> Option<Compressors> {
        match name {
            "both" => Some(Compressors::Both),
            "usual" => Some(Compressors::Usual),
            "other" => Some(Compressors::Other),
            _ => None,
        }
    }
}

impl Codecs for Compressors {
    fn decompressor(&self, codec: Codec) -> Result<Box<dyn Decompressor>, Error> {
        StandardCodecs::default().decompressor(codec)
    }

    fn compressor(&self, codec: Codec, level: Option<i32>) -> Result<Box<dyn Compressor>, Error> {
        let codecs = StandardCodecs::default();
        match self {
            Compressors::Other => match codecs.other_compressor(codec)? {
                Some(other) => Ok(other),
                None => codecs.compressor(codec, level),
            },
            _ => codecs.compressor(codec, level),
        }
    }

    fn other_compressor(&self, codec: Codec) -> Result<Option<Box<dyn Compressor>>, Error> {
        match self {
            Compressors::Both => StandardCodecs::default().other_compressor(codec),
            _ => Ok(None),
        }
    }
}

/// A file in memory.
struct Written<'a>(&'a mut Vec<u8>);

impl ByteSink for Written<'_> {
    fn name(&self) -> &str {
        "memory"
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, _: std::ops::Range<u64>) -> Result<Bytes, Error> {
        Err(Error::io("what is written is not read"))
    }
}

/// What all contestants are told: row groups of 1,048,576 rows, neither page index nor checksums.
fn options(encoding: &str, codec: &str) -> Result<WriteOptions, String> {
    let encoding = match encoding {
        "default" => None,
        "PLAIN" => Some(Encoding::Plain),
        "RLE_DICTIONARY" => Some(Encoding::RleDictionary),
        "DELTA_BINARY_PACKED" => Some(Encoding::DeltaBinaryPacked),
        "DELTA_LENGTH_BYTE_ARRAY" => Some(Encoding::DeltaLengthByteArray),
        "DELTA_BYTE_ARRAY" => Some(Encoding::DeltaByteArray),
        other => return Err(format!("no encoding is called {other}")),
    };
    let compression = match codec {
        "UNCOMPRESSED" => Compression::Uncompressed,
        "SNAPPY" => Compression::Codec(Codec::Snappy),
        "ZSTD" => Compression::Codec(Codec::Zstd),
        other => return Err(format!("no codec is called {other}")),
    };
    let level = (codec == "ZSTD").then_some(1);
    Ok(WriteOptions {
        column: ColumnOptions { encoding, compression, level, ..ColumnOptions::default() },
        crc: false,
        page_index: false,
        ..WriteOptions::default()
    })
}
