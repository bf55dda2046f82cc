//! Chunks of ScyllaDB, as its documents describe them: with dictionaries, and as they are. No file of ScyllaDB was at hand; what is read here
//! was compressed by other libraries.

use std::sync::Arc;

use marquetry_base::{Bytes, ErrorKind, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::compression_info::{CompressionInfo, CompressionInfoReader};
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing, Version};

use crate::craft::{self, Craft};
use crate::files::{OBJECT, next, one};

const CHUNK_BYTES: usize = 4096;

/// Rows of text that is alike.
fn data() -> Craft {
    (0..590_u32).fold(Craft::default(), |data, number| {
        let text = format!("reading {} of a sensor in the north cellar", number * 7 % 1000);
        let body = Craft::default().vint(1).cell(text.as_bytes()).bytes;
        data.partition(&number.to_be_bytes()).row(&[0x04 | 0x20], &[], &body).end()
    })
}

/// Data.db of these chunks, and its CompressionInfo.db.
fn files(compressor: &str, options: &[(String, Vec<u8>)], chunks: &[Vec<u8>], bytes: usize) -> [Bytes; 2] {
    let (mut file, mut offsets) = (Vec::new(), Vec::new());
    for chunk in chunks {
        offsets.push(file.len() as u64);
        file.extend(chunk);
        file.extend(marquetry_kernels::crc32(0, chunk).to_be_bytes());
    }
    let mut info = Craft::default().short(compressor.as_bytes()).raw(&(options.len() as u32).to_be_bytes());
    for (key, value) in options {
        info = info.short(key.as_bytes()).short(value);
    }
    info = info.raw(&(CHUNK_BYTES as u32).to_be_bytes()).raw(&(bytes as u64).to_be_bytes());
    info = info.raw(&(offsets.len() as u32).to_be_bytes());
    info = offsets.iter().fold(info, |info, offset| info.raw(&offset.to_be_bytes()));
    [file.into(), info.bytes.into()]
}

fn info(bytes: &Bytes) -> Result<CompressionInfo> {
    one(CompressionInfoReader::new(OBJECT, Version::parse("me")?, Limits::DEFAULT), bytes)
}

fn read([file, info_bytes]: &[Bytes; 2]) -> Result<Vec<MutationBatch>> {
    let statistics = craft::statistics("Int32Type", &[], &[], &[("v", "UTF8Type")]);
    let packing = Packing::Compressed(Arc::new(info(info_bytes)?));
    let (codecs, options) = (Arc::new(StandardCodecs::default()), DataOptions::default());
    let mut reader =
        DataReader::new(OBJECT, Version::parse("me")?, &statistics.header, packing, codecs, options)?;
    let mut batches = Vec::new();
    while let Some(batch) = next(&mut reader, file)? {
        batches.push(batch);
    }
    Ok(batches)
}

fn expected() -> Vec<MutationBatch> {
    let statistics = craft::statistics("Int32Type", &[], &[], &[("v", "UTF8Type")]);
    craft::read("me", &statistics, &data()).unwrap()
}

fn lz4(chunk: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let block = lz4_flex::block::compress_with_dict(chunk, dictionary);
    [&(chunk.len() as u32).to_le_bytes()[..], &block].concat()
}

fn zstd(chunk: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.load_dictionary(dictionary).unwrap();
    let mut page = vec![0; zstd_safe::compress_bound(chunk.len())];
    let length = context.compress2(&mut page[..], chunk).unwrap();
    page.truncate(length);
    page
}

#[test]
fn chunks_that_refer_to_a_dictionary() {
    // More than one option can hold; a trained one; and none.
    let trained = include_bytes!("../../../codecs/tests/dictionaries/trained.zstd").to_vec();
    let long = data().bytes.repeat(3)[..100_000].to_vec();
    type Compress = fn(&[u8], &[u8]) -> Vec<u8>;
    let compressors: [(&str, Compress); 2] =
        [("LZ4WithDictsCompressor", lz4), ("ZstdWithDictsCompressor", zstd)];
    let data = data().bytes;
    let expected = expected();
    for (compressor, compress) in compressors {
        for dictionary in [&long, &trained, &Vec::new()] {
            let parts = dictionary.chunks(65_535).enumerate();
            let mut options: Vec<(String, Vec<u8>)> =
                parts.map(|(at, part)| (format!(".dictionary.{at:08}"), part.to_vec())).collect();
            options.push(("chunk_length_in_kb".into(), b"4".to_vec()));
            let chunks: Vec<Vec<u8>> =
                data.chunks(CHUNK_BYTES).map(|chunk| compress(chunk, dictionary)).collect();
            let files = files(compressor, &options, &chunks, data.len());
            let info = info(&files[1]).unwrap();
            assert_eq!((&info.dictionary, info.options.len()), (dictionary, 1));
            assert!(read(&files).unwrap() == expected, "{compressor}, {} bytes", dictionary.len());
            if dictionary.len() == long.len() {
                options.swap(0, 1);
                let files = self::files(compressor, &options, &chunks, data.len());
                assert_eq!(read(&files).unwrap_err().kind(), ErrorKind::Corrupt);
            }
        }
    }
}

#[test]
fn chunks_that_would_not_become_small_enough_are_as_they_are() {
    let data = data().bytes;
    let expected = expected();
    // (4096 * 90 / 100, rounded up.)
    let least = 3687;
    let option =
        |percent: &str| vec![("min_compression_saving_percent".to_string(), percent.as_bytes().to_vec())];
    let last = data.len() % CHUNK_BYTES;
    assert!(last > 0 && last < least);
    let filled_up = |mut chunk: Vec<u8>| {
        chunk.resize(chunk.len().max(least), 0);
        chunk
    };
    // Every other chunk, and then the last.
    for raw in [0, 1] {
        let chunks: Vec<Vec<u8>> = data
            .chunks(CHUNK_BYTES)
            .enumerate()
            .map(|(at, chunk)| if at % 2 == raw { filled_up(chunk.to_vec()) } else { lz4(chunk, b"") })
            .collect();
        let files = |percent: &str| files("LZ4Compressor", &option(percent), &chunks, data.len());
        assert_eq!(info(&files("10")[1]).unwrap().compressed_bytes_max, Some(least as u32));
        assert!(read(&files("10")).unwrap() == expected, "{raw}");
        for other in ["0", "100", "x", ""] {
            assert_eq!(read(&files(other)).map(|_| ()).unwrap_err().kind(), ErrorKind::Corrupt, "{other}");
        }
    }
    // Only the last is filled up, and only so far.
    for (at, bytes) in [(0, least), (data.len() / CHUNK_BYTES, least + 1)] {
        let mut chunks: Vec<Vec<u8>> = data.chunks(CHUNK_BYTES).map(|chunk| lz4(chunk, b"")).collect();
        chunks[at] = data.chunks(CHUNK_BYTES).nth(at).unwrap().to_vec();
        chunks[at].resize(bytes, 0);
        let files = files("LZ4Compressor", &option("10"), &chunks, data.len());
        assert_eq!(read(&files).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
