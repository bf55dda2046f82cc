//! What an SSTable is written as.

use alloc::vec::Vec;

use marquetry_base::{Error, Limits, Result};

use crate::sstable::compression_info::Compressor;
use crate::sstable::version::Version;

/// Options of a [`SstableWriter`](super::SstableWriter).
///
/// ```
/// use marquetry_scylla::sstable::Version;
/// use marquetry_scylla::sstable::write::WriteOptions;
///
/// let mut options = WriteOptions::new(Version::parse("nb")?)?;
/// options.compression = None;
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The version: `me`, `nb`, `oa` or `da`.
    pub version: Version,
    /// How Data.db is compressed; `None`: not at all. LZ4 in chunks of 16 KiB by default, which is Cassandra's, too.
    pub compression: Option<WriteCompression>,
    /// The share of false positives of the Bloom filter: 0.01, the servers' default for most tables.
    pub bloom_false_positives: f64,
    /// Bytes of rows after which a large partition gets an entry in its index: the servers' defaults, 64 KiB and, of tries, 16 KiB.
    pub index_block_bytes: u64,
    /// Bytes of Data.db after which an SSTable ends, and another one begins; a partition is never divided.
    pub bytes_max: Option<u64>,
    /// Tokens at which SSTables end: none has partitions on both sides of one, which itself belongs to those before it. A tablet of
    /// ScyllaDB has the tokens after one such border, up to the next.
    pub split_at: Vec<i64>,
    /// Limits: of a value, of a row (which is held whole: `total_bytes`), and of a partition's index without a trie (`page_index_bytes`).
    pub limits: Limits,
}

/// How Data.db is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteCompression {
    /// The compressor. Those with dictionaries are not supported.
    pub compressor: Compressor,
    /// Its level, if it has some; `None`: the default one.
    pub level: Option<i32>,
    /// Bytes of a chunk, uncompressed: a power of two.
    pub chunk_bytes: usize,
}

impl WriteCompression {
    /// A compressor at its default level, in chunks of 16 KiB.
    pub fn new(compressor: Compressor) -> WriteCompression {
        WriteCompression { compressor, level: None, chunk_bytes: CHUNK_BYTES }
    }
}

/// Cassandra's default since 4.0.
const CHUNK_BYTES: usize = 16 << 10;
/// The largest chunk. Servers read chunks whole, and take 4 to 64 KiB.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Bytes of rows after which they get an entry: `column_index_size` and `BtiFormatPartitionWriter.DEFAULT_GRANULARITY`.
const BIG_BLOCK_BYTES: u64 = 64 << 10;
const TRIE_BLOCK_BYTES: u64 = 16 << 10;

/// Versions that are written.
pub const WRITTEN_VERSIONS: [&str; 4] = ["me", "nb", "oa", "da"];

impl WriteOptions {
    /// The options for a version.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for versions other than `me`, `nb`, `oa` and `da`.
    pub fn new(version: Version) -> Result<WriteOptions> {
        if !WRITTEN_VERSIONS.contains(&version.name()) {
            let all = WRITTEN_VERSIONS.join(", ");
            return Err(Error::unsupported(alloc::format!(
                "writing SSTables of version {version}; {all} can be written"
            )));
        }
        Ok(WriteOptions::of(version))
    }

    fn of(version: Version) -> WriteOptions {
        let is_trie = version.index() == crate::sstable::version::IndexKind::Trie;
        WriteOptions {
            version,
            compression: Some(WriteCompression::new(Compressor::Lz4)),
            bloom_false_positives: 0.01,
            index_block_bytes: if is_trie { TRIE_BLOCK_BYTES } else { BIG_BLOCK_BYTES },
            bytes_max: None,
            split_at: Vec::new(),
            limits: Limits::DEFAULT,
        }
    }

    /// Checks what can be wrong.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse), with the option.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(compression) = &self.compression {
            let bytes = compression.chunk_bytes;
            if !bytes.is_power_of_two() || !(1 << 10..=CHUNK_BYTES_MAX).contains(&bytes) {
                return Err(Error::option(
                    "chunk_bytes",
                    alloc::format!("chunks of {bytes} bytes; they have a power of two, 1 KiB to 1 MiB"),
                ));
            }
            if matches!(
                compression.compressor,
                Compressor::Lz4WithDictionary | Compressor::ZstdWithDictionary
            ) {
                return Err(Error::unsupported("writing chunks that refer to a dictionary"));
            }
        }
        let share = self.bloom_false_positives;
        if !(LEAST_FALSE_POSITIVES..=1.0).contains(&share) {
            return Err(Error::option(
                "bloom_false_positives",
                alloc::format!("{share}; it is from {LEAST_FALSE_POSITIVES} to 1"),
            ));
        }
        if self.index_block_bytes == 0 {
            return Err(Error::option("index_block_bytes", "blocks of no bytes"));
        }
        Ok(())
    }
}

impl Default for WriteOptions {
    /// Those of version `me`.
    fn default() -> WriteOptions {
        WriteOptions::of(Version::ME)
    }
}

/// The least share that 20 bits a key allow.
pub(super) const LEAST_FALSE_POSITIVES: f64 = 6.71e-5;
