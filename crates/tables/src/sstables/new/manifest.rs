//! The manifest beside new SSTables, as ScyllaDB's snapshots have one: its restore from object storage reads it.
//!
//! The fields are those of `docs/dev/object_storage.md`, "The snapshot manifest", in ScyllaDB's sources of August 2026 (commit `f4a4091ca28e`), and two
//! more of each SSTable that its restore asks for (`process_manifest` in `sstables_loader.cc`). No ScyllaDB has read one.

use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::BuildHasher;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use marquetry_base::{Error, Result};
use marquetry_io::state_file::quoted;
use marquetry_scylla::cql::TableName;

/// The most tablets: what ScyllaDB's own limits do not reach, and the tokens between them still take little room.
const TABLETS_MAX: u32 = 1 << 20;
/// A UUID that stands for none.
const NO_UUID: &str = "00000000-0000-0000-0000-000000000000";

/// What a manifest says of the place that the SSTables are for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestOptions {
    /// The name of the snapshot: that of a restore must be the same.
    pub snapshot: String,
    /// The datacenter whose nodes restore the SSTables.
    pub datacenter: String,
    /// Their rack.
    pub rack: String,
}

impl ManifestOptions {
    /// For a snapshot's name, a datacenter and a rack.
    pub fn new(
        snapshot: impl Into<String>,
        datacenter: impl Into<String>,
        rack: impl Into<String>,
    ) -> ManifestOptions {
        ManifestOptions { snapshot: snapshot.into(), datacenter: datacenter.into(), rack: rack.into() }
    }

    /// Fails if one of the names is missing.
    pub(super) fn check(&self) -> Result<()> {
        let ManifestOptions { snapshot, datacenter, rack } = self;
        match [snapshot, datacenter, rack].iter().any(|text| text.is_empty()) {
            true => {
                Err(Error::option("manifest", "the snapshot, the datacenter and the rack each have a name"))
            }
            false => Ok(()),
        }
    }
}

/// `SNAPSHOT,DATACENTER,RACK`.
///
/// ```
/// use marquetry_tables::sstables::ManifestOptions;
///
/// assert_eq!("daily,dc1,r1".parse(), Ok(ManifestOptions::new("daily", "dc1", "r1")));
/// assert!("daily,dc1".parse::<ManifestOptions>().is_err());
/// ```
impl FromStr for ManifestOptions {
    type Err = Error;

    fn from_str(text: &str) -> Result<ManifestOptions> {
        match text.split(',').collect::<Vec<_>>()[..] {
            [snapshot, datacenter, rack] if ![snapshot, datacenter, rack].contains(&"") => {
                Ok(ManifestOptions::new(snapshot, datacenter, rack))
            }
            _ => Err(Error::option("manifest", "SNAPSHOT,DATACENTER,RACK: three names")),
        }
    }
}

/// The last tokens of equal tablets, but for the last of all: they are at powers of two, as those of ScyllaDB's `powof2` tablets.
pub(super) fn ends_of_tablets(tablets: u32) -> Result<Vec<i64>> {
    if !tablets.is_power_of_two() || tablets > TABLETS_MAX {
        let what =
            format!("the number of tablets is a power of two, and at most {TABLETS_MAX}; not {tablets}");
        return Err(Error::option("tablets", what));
    }
    let bits = tablets.trailing_zeros();
    Ok((1..tablets).map(|next| token_of(u64::from(next) << (u64::BITS - bits)).wrapping_sub(1)).collect())
}

/// The tablet of a token, of a power of two of them.
fn tablet_of(token: i64, tablets: u32) -> u64 {
    match tablets.trailing_zeros() {
        0 => 0,
        bits => place_of(token) >> (u64::BITS - bits),
    }
}

/// The place of a token on the ring, from 0 on; and the token of a place.
fn place_of(token: i64) -> u64 {
    u64::from_ne_bytes(token.to_ne_bytes()) ^ (1 << 63)
}

fn token_of(place: u64) -> i64 {
    i64::from_ne_bytes((place ^ (1 << 63)).to_ne_bytes())
}

/// An SSTable that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewSstable {
    pub(super) toc_name: String,
    /// Bytes of its data, and of its index, as files.
    pub(super) data_bytes: u64,
    pub(super) index_bytes: u64,
    /// The tokens of its first and its last partition.
    pub(super) tokens: (i64, i64),
}

/// The manifest's text.
pub(super) fn text(
    manifest: &ManifestOptions,
    tablets: Option<u32>,
    table: &TableName,
    sstables: &[NewSstable],
) -> String {
    let ManifestOptions { snapshot, datacenter, rack } = manifest;
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let keyspace = table.keyspace.as_ref().map_or("", |keyspace| keyspace.as_str());
    let kind = if tablets.is_some() { "powof2" } else { "none" };
    let mut text = format!(
        "{{\n  \"manifest\": {{\"version\": \"1.0\", \"scope\": \"node\"}},\n  \
         \"node\": {{\"host_id\": \"{NO_UUID}\", \"datacenter\": {}, \"rack\": {}}},\n  \
         \"snapshot\": {{\"name\": {}, \"created_at\": {seconds}, \"expires_at\": null}},\n  \
         \"table\": {{\"keyspace_name\": {}, \"table_name\": {}, \"table_id\": \"{NO_UUID}\", \
         \"tablets_type\": \"{kind}\", \"tablet_count\": {}}},\n  \"sstables\": [",
        quoted(datacenter),
        quoted(rack),
        quoted(snapshot),
        quoted(keyspace),
        quoted(table.table.as_str()),
        tablets.unwrap_or(0),
    );
    for (number, sstable) in sstables.iter().enumerate() {
        let NewSstable { toc_name, data_bytes, index_bytes, tokens: (first, last) } = sstable;
        let before = if number == 0 { "" } else { "," };
        let tablet = tablets.map(|tablets| format!(", \"tablet_id\": {}", tablet_of(*first, tablets)));
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "{before}\n    {{\"id\": \"{}\", \"toc_name\": {}, \"data_size\": {data_bytes}, \"index_size\": {index_bytes}, \
             \"first_token\": {first}, \"last_token\": {last}{}, \"repaired_at\": 0}}",
            random_uuid(),
            quoted(toc_name),
            tablet.unwrap_or_default(),
        );
    }
    text.push_str("\n  ],\n  \"files\": []\n}\n");
    text
}

/// A UUID that no other is equal to: that of an SSTable is its key where several manifests are restored together.
fn random_uuid() -> String {
    let random = || RandomState::new().hash_one(0);
    let (high, low) = (random() & !0xf000 | 0x4000, random() >> 2 | 1 << 63);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tablets_are_equal_parts_of_the_ring() {
        assert_eq!(ends_of_tablets(1).unwrap(), [0; 0]);
        assert_eq!(ends_of_tablets(2).unwrap(), [-1]);
        assert_eq!(ends_of_tablets(4).unwrap(), [-(1 << 62) - 1, -1, (1 << 62) - 1]);
        for wrong in [0, 3, 6, 1 << 21] {
            assert!(ends_of_tablets(wrong).unwrap_err().message().contains("a power of two"));
        }
        for tablets in [1, 2, 8, 1 << 10] {
            let mut first = i64::MIN;
            let ends = ends_of_tablets(tablets).unwrap();
            for (tablet, end) in ends.into_iter().chain([i64::MAX]).enumerate() {
                for token in [first, end] {
                    assert_eq!(tablet_of(token, tablets), u64::try_from(tablet).unwrap());
                }
                first = end.wrapping_add(1);
            }
            assert_eq!(first, i64::MIN);
        }
    }

    #[test]
    fn uuids_are_random() {
        let (one, other) = (random_uuid(), random_uuid());
        assert!(one != other && one.len() == 36 && one.as_bytes()[14] == b'4', "{one} {other}");
        assert!(b"89ab".contains(&one.as_bytes()[19]), "{one}");
    }
}
