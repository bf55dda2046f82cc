//! Versions of the format, and what differs between them.

use marquetry_base::{Error, Result};

/// A version of the format: two letters in the names of an SSTable's files.
///
/// | version | written by |
/// |---|---|
/// | `ma` to `me` | Cassandra 3.0 to 3.11; ScyllaDB (`mc`, `md`, `me`) |
/// | `na`, `nb` | Cassandra 4.0 and 4.1, and 5.0 in its default mode |
/// | `oa` | Cassandra 5.0 |
/// | `da` | Cassandra 5.0, with indexes that are tries |
/// | `ms`, `mt` | ScyllaDB 2025.4 and later: as `me`, with indexes that are tries (by its documents; no file was at hand) |
///
/// Sources: `BigFormat.java` and `BtiFormat.java` of Cassandra 5.0; `sstable-format.rst` and `version.hh` of ScyllaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version([u8; 2]);

/// How the partitions of an SSTable are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// `Index.db` and `Summary.db`.
    Big,
    /// `Partitions.db` and `Rows.db`: tries.
    Trie,
}

impl Version {
    /// The version `me`: what all servers of the last years read, Cassandra from 3.11.11 on and ScyllaDB from 5.0 on.
    pub const ME: Version = Version(*b"me");

    /// The version that two letters name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for one that is not in the table.
    pub fn parse(name: &str) -> Result<Version> {
        const KNOWN: [&str; 10] = ["ma", "mb", "mc", "md", "me", "ms", "mt", "na", "nb", "oa"];
        match <[u8; 2]>::try_from(name.as_bytes()) {
            Ok(letters) if name == "da" || KNOWN.contains(&name) => Ok(Version(letters)),
            _ => Err(Error::unsupported(alloc::format!("SSTables of version {name:?}"))),
        }
    }

    /// The two letters.
    pub fn name(&self) -> &str {
        // Only ASCII letters are accepted.
        core::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// `na` and later: what is checked, and what may be stored as it is. (`da` counts as later than `oa`.)
    fn is_n(self) -> bool {
        self.0[0] != b'm'
    }

    /// `oa` and `da`.
    fn is_o(self) -> bool {
        self.0[0] == b'o' || self.0[0] == b'd'
    }

    /// Which index it has.
    pub fn index(self) -> IndexKind {
        match &self.0 {
            b"da" | b"ms" | b"mt" => IndexKind::Trie,
            _ => IndexKind::Big,
        }
    }

    /// The statistics say where the commit log's intervals began.
    pub fn has_commit_log_lower_bound(self) -> bool {
        self.0 != *b"ma"
    }

    /// The statistics list the commit log's intervals.
    pub fn has_commit_log_intervals(self) -> bool {
        self.0 != *b"ma" && self.0 != *b"mb"
    }

    /// The statistics have the least and the greatest clustering value of each column. They can be trusted from `md` on.
    pub fn has_legacy_min_max(self) -> bool {
        !self.is_o()
    }

    /// The least and the greatest clustering values hold for all rows and deletions.
    pub fn has_accurate_min_max(self) -> bool {
        !matches!(&self.0, b"ma" | b"mb" | b"mc")
    }

    /// The statistics have the slice that all clustering keys are in.
    pub fn has_covered_slice(self) -> bool {
        self.is_o()
    }

    /// The statistics name the node that wrote the file.
    pub fn has_host_id(self) -> bool {
        !matches!(&self.0, b"ma" | b"mb" | b"mc" | b"md" | b"na")
    }

    /// A chunk that does not become smaller than a length in CompressionInfo.db is stored as it is.
    pub fn has_max_compressed_length(self) -> bool {
        self.is_n()
    }

    /// The statistics name a pending repair, and say whether the data are transient.
    pub fn has_pending_repair(self) -> bool {
        self.is_n()
    }

    /// Statistics.db has checksums.
    pub fn has_metadata_checksum(self) -> bool {
        self.is_n()
    }

    /// Each word of the Bloom filter is stored with its bytes swapped.
    pub fn has_swapped_filter_words(self) -> bool {
        !self.is_n()
    }

    /// The statistics say whether partitions are deleted.
    pub fn has_partition_deletions_marker(self) -> bool {
        self.is_o()
    }

    /// The statistics have the first and the last partition key, and the share of the token range that is covered.
    pub fn has_key_range(self) -> bool {
        self.is_o()
    }

    /// Local deletion times are unsigned, so they go on after 2038; and a partition's deletion is a byte where there is none.
    pub fn has_unsigned_deletion_time(self) -> bool {
        self.is_o()
    }
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_come_with_versions() {
        let of = |name| Version::parse(name).unwrap();
        assert!(!of("ma").has_commit_log_lower_bound() && of("mb").has_commit_log_lower_bound());
        assert!(!of("mb").has_commit_log_intervals() && of("mc").has_commit_log_intervals());
        assert!(!of("mc").has_accurate_min_max() && of("md").has_accurate_min_max());
        assert!(of("me").has_host_id() && !of("na").has_host_id() && of("nb").has_host_id());
        assert!(of("nb").has_metadata_checksum() && !of("mt").has_metadata_checksum());
        assert!(of("oa").has_unsigned_deletion_time() && of("da").has_unsigned_deletion_time());
        assert!(!of("nb").has_unsigned_deletion_time() && of("nb").has_legacy_min_max());
        let tries = ["da", "ms", "mt"].map(|name| of(name).index());
        assert_eq!(tries, [IndexKind::Trie; 3]);
        assert_eq!(of("oa").index(), IndexKind::Big);
        assert_eq!(of("me").name(), "me");
        for other in ["la", "pa", "m", "mee", "", "äö", "dz"] {
            assert!(Version::parse(other).is_err(), "{other}");
        }
    }
}
