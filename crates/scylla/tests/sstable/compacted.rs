//! SSTables that a compaction wrote: their files end with an empty chunk. (Those of `data/compacted` are of Cassandra 5.0.9, one a compressor.)

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Bytes, ErrorKind, Limits};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::checksums::ChecksumsReader;
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing, Version};

use super::craft::{self, Craft};
use super::files::{Files, OBJECT, next, one};

/// A row with a write time, and all columns.
const ALL: u8 = 0x04 | 0x20;

#[test]
fn compressed() {
    for compressor in ["deflate", "lz4", "snappy", "zstd"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/sstable/data/compacted/5.0.9-nb-{compressor}"));
        let mut files = Files::open(&folder.join("nb-3-big-Data.db"));
        let statistics = files.read_statistics().unwrap();
        let rows = |files: &Files| {
            let mut rows = 0;
            files.read(&statistics, |batch| rows += batch.entries.kinds.len()).map(|()| rows)
        };
        assert_eq!(rows(&files).unwrap(), 350, "{compressor}");
        // What is behind the last row is checked, too.
        let mut wrong = files.data.to_vec();
        *wrong.last_mut().unwrap() ^= 1;
        files.data = wrong.into();
        assert_eq!(rows(&files).unwrap_err().kind(), ErrorKind::Corrupt, "{compressor}");
        files.data.truncate(files.data.len() - 1);
        assert_eq!(rows(&files).unwrap_err().kind(), ErrorKind::Corrupt, "{compressor}");
    }
}

/// An uncompressed file has the checksum of an empty chunk.
#[test]
fn not_compressed() {
    let statistics = craft::statistics("Int32Type", &[], &[], &[("v", "Int32Type")]);
    let body = Craft::default().vint(1).raw(&[0x08]).raw(&7_u32.to_be_bytes()).bytes;
    let data = Craft::default().partition(&1_u32.to_be_bytes()).row(&[ALL], &[], &body).end().bytes;
    let read = |after: &[u32]| {
        let mut sums = Craft::default().raw(&(64_u32 << 10).to_be_bytes());
        sums = sums.raw(&marquetry_kernels::crc32(0, &data).to_be_bytes());
        sums = after.iter().fold(sums, |sums, sum| sums.raw(&sum.to_be_bytes()));
        let sums = one(ChecksumsReader::new(OBJECT, Limits::DEFAULT), &Bytes::from(sums.bytes))?;
        let (version, packing) = (Version::parse("nb")?, Packing::Plain(Some(Arc::new(sums))));
        let codecs = Arc::new(StandardCodecs::default());
        let options = DataOptions::default();
        let mut reader = DataReader::new(OBJECT, version, &statistics.header, packing, codecs, options)?;
        next(&mut reader, &Bytes::from(data.clone()))
    };
    for after in [&[][..], &[0], &[0, 0]] {
        assert_eq!(read(after).unwrap().unwrap().entries.kinds.len(), 1);
    }
    assert_eq!(read(&[1]).unwrap_err().kind(), ErrorKind::Corrupt);
}
