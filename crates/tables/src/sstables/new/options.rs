//! How new SSTables are written.

use marquetry_base::{Error, Limits, Result};
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::TableName;
use marquetry_scylla::sstable::Version;
use marquetry_scylla::sstable::compression_info::Compressor;
use marquetry_scylla::sstable::write::{WriteCompression, WriteOptions};

use super::manifest::{ManifestOptions, ends_of_tablets};
use crate::stamps::{Ttl, WriteTimes};

/// How SSTables are written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewSstablesOptions {
    /// The version of the format: `me`, `nb`, `oa` or `da`. `me` by default, which all servers of the last years read: Cassandra from 3.11.11
    /// on (3.11 was not tried) and ScyllaDB from 5.0 on. Cassandra reads `nb` from 4.0 on, and `oa` and `da` from 5.0 on; ScyllaDB reads none of these.
    pub version: Version,
    /// How Data.db is compressed. `None`: not at all.
    pub compression: Option<WriteCompression>,
    /// Bytes of a Data.db after which another SSTable begins.
    pub bytes_max: Option<u64>,
    /// Tokens at which another SSTable begins: see [`WriteOptions::split_at`].
    pub split_at: Vec<i64>,
    /// The number of the table's tablets, a power of two: another SSTable begins where one of them does, so that each is inside one.
    pub tablets: Option<u32>,
    /// Writes `manifest.json` beside the SSTables, as ScyllaDB's restore from object storage reads it. That needs the table's name, and version `me`.
    pub manifest: Option<ManifestOptions>,
    /// Bounds on values, and on indexes of partitions.
    pub limits: Limits,
    /// What rows become that are no writes of the mapping `full`.
    pub rows: PlainRowsOptions,
}

/// How rows become writes: as `INSERT` statements would have it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PlainRowsOptions {
    /// The table's name, with its keyspace. It may be missing if a definition, or the source, has it.
    pub table: Option<TableName>,
    /// CQL with the table's `CREATE TABLE`, and the `CREATE TYPE` of its types: what rows must fit. Without it, the mapping says what the table is like.
    pub schema_cql: Option<String>,
    /// How columns map to the table's, and what the primary key is, which is required unless there is a definition, or the source
    /// [describes](crate::Described) its table.
    pub mapping: MappingOptions,
    /// The rows' write times.
    pub timestamp: WriteTimes,
    /// After what time the rows expire. `None`: never.
    pub ttl: Option<Ttl>,
    /// The time, in microseconds since 1970, that counts as now. `None`: what this machine's clock says when the copy begins.
    pub now_us: Option<i64>,
}

impl Default for NewSstablesOptions {
    fn default() -> NewSstablesOptions {
        NewSstablesOptions::of(WriteOptions::default())
    }
}

impl NewSstablesOptions {
    /// The options for a version, by its two letters.
    ///
    /// # Errors
    ///
    /// `Unsupported` for versions that are not written.
    pub fn new(version: &str) -> Result<NewSstablesOptions> {
        Ok(NewSstablesOptions::of(WriteOptions::new(Version::parse(version)?)?))
    }

    fn of(write: WriteOptions) -> NewSstablesOptions {
        NewSstablesOptions {
            version: write.version,
            compression: write.compression,
            bytes_max: Some(BYTES_MAX),
            split_at: Vec::new(),
            tablets: None,
            manifest: None,
            limits: write.limits,
            rows: PlainRowsOptions::default(),
        }
    }

    /// What servers that the version is for cannot read of it.
    pub(super) fn note(&self) -> Option<&'static str> {
        let is_zstd = self.compression.is_some_and(|it| it.compressor == Compressor::Zstd);
        (is_zstd && self.version == Version::ME).then_some(
            "Cassandra 3.11 cannot read SSTables with Zstd: they are for ScyllaDB, and for Cassandra from 4.0 on",
        )
    }

    pub(super) fn write(&self) -> Result<WriteOptions> {
        if let Some(manifest) = &self.manifest {
            manifest.check()?;
            if self.version != Version::ME {
                let what = "a manifest is for ScyllaDB, which reads the version me of those that are written";
                return Err(Error::option("manifest", what));
            }
        }
        let mut options = WriteOptions::new(self.version)?;
        options.compression = self.compression;
        options.bytes_max = self.bytes_max;
        options.split_at.clone_from(&self.split_at);
        if let Some(tablets) = self.tablets {
            options.split_at.extend(ends_of_tablets(tablets)?);
        }
        options.limits = self.limits;
        Ok(options)
    }
}

/// As large as servers like to compact.
const BYTES_MAX: u64 = 4 << 30;
