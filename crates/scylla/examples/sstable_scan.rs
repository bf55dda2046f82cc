//! Measures how fast Data.db becomes batches on one core, and what its prices are: `cargo run --release -p marquetry-scylla --example
//! sstable_scan [THOUSANDS]`.
//!
//! The tables are made here, as a server would write them, in chunks of 16 KiB with checksums, compressed by LZ4 or not. The
//! best of some rounds is reported, step by step: rows and bytes (uncompressed) a second, and nanoseconds for each unit charged.
#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

#[path = "../tests/sstable/files.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod files;
#[allow(dead_code, reason = "another example uses more of it")]
mod tables;

use std::sync::Arc;

use files::OBJECT;
use marquetry_base::{Bytes, Limits};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::checksums::ChecksumsReader;
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing, Version};
use tables::{CHUNK_BYTES, Steps, Table, drive, lz4, lz4_files, tables};

const ELEMENT: &str = "sstable/elements.rs ELEMENT_PRICE";

const ROUNDS: usize = 15;

fn main() {
    let thousands = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    println!(
        "| price | table | packing | rows/s, millions | MB/s | ns/unit | dearest step, ns/unit | longest step, µs |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|");
    for table in tables(thousands * 1000) {
        let data = Bytes::from(table.data.clone());
        scan(&table, "none, unchecked", &data, &Packing::Plain(None));
        scan(&table, "none, CRC", &data, &Packing::Plain(Some(Arc::new(checksums(&table.data)))));
        let (file, info) = lz4(&table.data);
        scan(&table, "LZ4", &file, &Packing::Compressed(Arc::new(info)));
    }
    let version = Version::parse("mc").expect("known");
    let (_, info) = lz4_files(&vec![0; 512 << 20]);
    let mut steps = Steps::default();
    for _ in 0..ROUNDS {
        let mut reader = CompressionInfoReader::new(OBJECT, version, Limits::DEFAULT);
        steps.round(|steps| drive(&mut reader, &info, steps, |_, _| {}));
    }
    steps.report(ELEMENT, "CompressionInfo.db", "", 0, info.len());
}

fn checksums(data: &[u8]) -> marquetry_scylla::sstable::checksums::Checksums {
    let mut file = (CHUNK_BYTES as u32).to_be_bytes().to_vec();
    for chunk in data.chunks(CHUNK_BYTES) {
        file.extend(marquetry_kernels::crc32(0, chunk).to_be_bytes());
    }
    files::one(ChecksumsReader::new(OBJECT, Limits::DEFAULT), &Bytes::from(file)).expect("CRC.db")
}

fn scan(table: &Table, packing: &str, file: &Bytes, of: &Packing) {
    let mut steps = Steps::default();
    let version = Version::parse("mc").expect("known");
    for _ in 0..ROUNDS {
        let codecs = Arc::new(StandardCodecs::default());
        let header = &table.statistics.header;
        let options = DataOptions::default();
        let mut reader =
            DataReader::new(OBJECT, version, header, of.clone(), codecs, options).expect("a reader");
        let mut cells = 0;
        steps.round(|steps| {
            drive(&mut reader, file, steps, |reader, batch| {
                cells += batch.columns.iter().map(|cells| cells.len()).sum::<usize>();
                reader.recycle(batch);
            });
        });
        assert!(cells >= table.rows);
    }
    steps.report(table.price, table.name, packing, table.rows, table.data.len());
}
