//! SSTables: a table's rows as all the files that hold and index them, in every version, right or with lies.

pub mod bytes;
pub mod murmur;
pub mod rows;
pub mod trie;

use marquetry_base::Codec;
use marquetry_conformance::hostile::Random;
use marquetry_scylla::sstable::{IndexKind, Version};

use self::bytes::Bytes;
use self::rows::Table;
use self::trie::Leaf;
use crate::choices::Choices;
use crate::compress::compress;

/// A partition that was written.
#[derive(Debug, Clone)]
pub struct Partition {
    /// Its key.
    pub key: Vec<u8>,
    /// The key's token.
    pub token: i64,
    /// Where it begins in the data, and ends.
    pub data: std::ops::Range<u64>,
}

/// The files of an SSTable.
#[derive(Debug, Clone)]
pub struct Sstable {
    /// The version of the format.
    pub version: Version,
    /// The components: Data.db, Statistics.db, CompressionInfo.db or CRC.db, Index.db or Partitions.db, Summary.db or Rows.db, Filter.db.
    pub files: [Vec<u8>; 6],
    /// How the data are stored.
    pub storage: Storage,
    /// The partitions, in their order.
    pub partitions: Vec<Partition>,
    /// What is in them, line by line.
    pub told: String,
}

/// Components, by their numbers in [`Sstable::files`].
pub const DATA: usize = 0;
/// Statistics.db.
pub const STATISTICS: usize = 1;
/// CompressionInfo.db or CRC.db.
pub const CHUNKS: usize = 2;
/// Index.db or Partitions.db.
pub const INDEX: usize = 3;
/// Summary.db or Rows.db.
pub const SECOND: usize = 4;
/// Filter.db.
pub const FILTER: usize = 5;

/// How data are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In chunks that are compressed.
    Compressed,
    /// With checksums.
    Checked,
    /// As they are.
    Plain,
}

const VERSIONS: [&str; 11] = ["nb", "oa", "da", "me", "mt", "mc", "md", "ms", "na", "mb", "ma"];

impl Sstable {
    /// Any SSTable, without lies.
    ///
    /// # Panics
    ///
    /// Never: all versions are known.
    pub fn choose(choices: &mut Choices<'_>) -> Sstable {
        let version = Version::parse(choices.pick(&VERSIONS)).expect("a known version");
        let table = Table::choose(version.has_unsigned_deletion_time(), choices);
        let (mut data, mut told, mut partitions) = (Bytes::default(), String::new(), Vec::new());
        for key in keys(choices) {
            let start = data.0.len() as u64;
            let rows = choices.below(4) + if choices.once_in(30) { 200 } else { 0 };
            rows::partition(&table, &key, rows, choices, &mut data, &mut told);
            let token = token(&key);
            partitions.push(Partition { key, token, data: start..data.0.len() as u64 });
        }
        let storage = choices.pick(&[Storage::Compressed, Storage::Checked, Storage::Plain]);
        let (file, chunks) = match storage {
            Storage::Compressed => compressed(&data.0, version, choices),
            Storage::Checked => checked(&data.0, choices),
            Storage::Plain => (data.0, Vec::new()),
        };
        let statistics = statistics(&table, version, &partitions);
        let (index, second) = match version.index() {
            IndexKind::Big => big(&partitions, choices),
            IndexKind::Trie => tries(&partitions, choices),
        };
        let filter = filter(&partitions, version.name().starts_with('m'), choices);
        let files = [file, statistics, chunks, index, second, filter];
        Sstable { version, files, storage, partitions, told }
    }

    /// Changes a few bytes of a component.
    pub fn lie(&mut self, component: usize, choices: &mut Choices<'_>) {
        let bytes = &mut self.files[component];
        let at = choices.below(bytes.len());
        match choices.byte() % 7 {
            _ if bytes.is_empty() => bytes.extend(choices.bytes(30)),
            0 => bytes[at] ^= 1 << (choices.byte() % 8),
            1 => bytes[at] = choices.byte(),
            2 => bytes[at] = choices.pick(&[0xff, 0, 0x80, 0x7f]),
            3 => bytes.truncate(at),
            4 => drop(bytes.splice(at..at, choices.bytes(9).iter().copied())),
            5 => drop(bytes.drain(at..(at + 1 + choices.below(9)).min(bytes.len()))),
            _ => {
                let other = choices.below(bytes.len());
                let length = choices.below(40).min(bytes.len() - at.max(other));
                bytes.copy_within(other..other + length, at);
            }
        }
    }
}

fn token(key: &[u8]) -> i64 {
    match murmur::hash(key)[0] as i64 {
        i64::MIN => i64::MAX,
        token => token,
    }
}

/// Keys in the order of their tokens; some have one token together.
fn keys(choices: &mut Choices<'_>) -> Vec<Vec<u8>> {
    let count = choices.pick(&[1, 2, 3, 5, 9, 30, 120]);
    let mut keys: Vec<Vec<u8>> = (0..count as u32)
        .map(|number| match choices.byte() % 8 {
            0 => murmur::key_of(i64::from(number / 3) << 40, number.into()),
            1 => [&number.to_be_bytes(), choices.bytes(6)].concat(),
            2 => number.to_be_bytes().repeat(40),
            _ => number.to_be_bytes().to_vec(),
        })
        .collect();
    keys.sort_by_cached_key(|key| (token(key), key.clone()));
    keys.dedup();
    keys
}

fn crc(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

fn compressed(data: &[u8], version: Version, choices: &mut Choices<'_>) -> (Vec<u8>, Vec<u8>) {
    let is_scylla = version.name().starts_with('m');
    let dictionary: &[u8] = &data[..data.len().min(200)];
    let (compressor, how) = (choices.below(if is_scylla { 7 } else { 5 }), choices.byte());
    let chunk_bytes = choices.pick(&[256, 1024, 4096, 65_536]);
    let percent = if is_scylla { choices.pick(&[0_usize, 10, 50]) } else { 0 };
    // Chunks that do not become smaller than this are stored as they are, and the last is filled up to it.
    let least = match (is_scylla, percent) {
        (true, 0) => None,
        (true, percent) => Some((chunk_bytes * (100 - percent)).div_ceil(100)),
        (false, _) => choices.pick(&[None, Some(chunk_bytes), Some(chunk_bytes / 2)]),
    };
    let (mut file, mut offsets) = (Bytes::default(), Vec::new());
    for chunk in data.chunks(chunk_bytes) {
        let length = (chunk.len() as u32).to_le_bytes();
        let mut stored = match compressor {
            0 => [&length, &compress(Codec::Lz4Raw, chunk, how)[..]].concat(),
            1 => compress(Codec::Snappy, chunk, how),
            2 => compress(Codec::Zlib, chunk, how),
            3 => compress(Codec::Zstd, chunk, how),
            4 => chunk.to_vec(),
            5 => [&length, &lz4_flex::block::compress_with_dict(chunk, dictionary)[..]].concat(),
            _ => zstd_with(chunk, dictionary),
        };
        if let Some(least) = least.filter(|least| stored.len() >= *least && compressor != 4) {
            stored = chunk.to_vec();
            stored.resize(stored.len().max(least), 0);
        }
        offsets.push(file.0.len() as u64);
        file.raw(&stored).u32(crc(&stored));
    }
    let names = [
        "LZ4Compressor",
        "SnappyCompressor",
        "DeflateCompressor",
        "ZstdCompressor",
        "org.apache.cassandra.io.compress.NoopCompressor",
        "LZ4WithDictsCompressor",
        "ZstdWithDictsCompressor",
    ];
    let mut options: Vec<(&[u8], &[u8])> = vec![(b"crc_check_chance", b"1.0")];
    let percent = percent.to_string();
    if is_scylla {
        options.push((b"min_compression_saving_percent", percent.as_bytes()));
    }
    if compressor > 4 {
        let (first, second) = dictionary.split_at(dictionary.len() / 2);
        options.extend([(&b".dictionary.00000000"[..], first), (b".dictionary.00000001", second)]);
    }
    let mut info = Bytes::default();
    info.short(names[compressor].as_bytes()).u32(options.len() as u32);
    for (key, value) in options {
        info.short(key).short(value);
    }
    info.u32(chunk_bytes as u32);
    if !is_scylla {
        info.u32(least.map_or(i32::MAX as u32, |least| least as u32));
    }
    info.u64(data.len() as u64).u32(offsets.len() as u32);
    for offset in offsets {
        info.u64(offset);
    }
    (file.0, info.0)
}

fn zstd_with(chunk: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.load_dictionary(dictionary).expect("any bytes are a dictionary");
    let mut frame = vec![0; zstd_safe::compress_bound(chunk.len())];
    let length = context.compress2(&mut frame[..], chunk).expect("room for the bound");
    frame.truncate(length);
    frame
}

fn checked(data: &[u8], choices: &mut Choices<'_>) -> (Vec<u8>, Vec<u8>) {
    let chunk_bytes = choices.pick(&[256, 1000, 65_536]);
    let mut sums = Bytes::default();
    sums.u32(chunk_bytes as u32);
    for chunk in data.chunks(chunk_bytes) {
        sums.u32(crc(chunk));
    }
    (data.to_vec(), sums.0)
}

fn statistics(table: &Table, version: Version, partitions: &[Partition]) -> Vec<u8> {
    let class = |bytes: &mut Bytes, class: &str| {
        bytes.long(format!("org.apache.cassandra.db.marshal.{class}").as_bytes());
    };
    let mut validation = Bytes::default();
    validation.short(b"org.apache.cassandra.dht.Murmur3Partitioner").f64(0.01);
    let mut stats = Bytes::default();
    for _ in 0..2 {
        stats.u32(3).u64(1).u64(partitions.len() as u64).u64(1).u64(0).u64(5).u64(0);
    }
    // To the compression ratio; the tombstones' histogram, with one bin.
    stats.raw(&[0; 12]).raw(&[0; 16]).raw(&[0; 8]).raw(&[0; 8]).f64(-1.0).u32(100).u32(1);
    if version.has_unsigned_deletion_time() {
        stats.u64(9).u32(1);
    } else {
        stats.f64(9.0).u64(1);
    }
    // The level, and the time of a repair.
    stats.u32(0).u64(0);
    if version.has_legacy_min_max() {
        stats.u32(1).short(b"min").u32(0);
    } else {
        stats.vint(1);
        class(&mut stats, "Int32Type");
        stats.u8(1).u16(1).vint(0).u32(7).u8(6).u16(0);
    }
    stats.u8(0).u64(1).u64(2);
    if version.has_commit_log_lower_bound() {
        stats.raw(&[0; 12]);
    }
    if version.has_commit_log_intervals() {
        stats.u32(1).raw(&[0; 24]);
    }
    if version.has_pending_repair() {
        stats.u8(0).u8(0);
    }
    if version.has_host_id() {
        stats.u8(1).raw(&[7; 16]);
    }
    if version.has_partition_deletions_marker() {
        stats.u8(1);
    }
    if version.has_key_range() {
        stats.long(&partitions[0].key).long(&partitions[partitions.len() - 1].key).f64(0.5);
    }
    let mut header = Bytes::default();
    header.vint(table.timestamp_min as u64).vint(table.local_deletion_min.into()).vint(table.ttl_min.into());
    class(&mut header, "BytesType");
    header.vint(table.clustering.len() as u64);
    table.clustering.iter().for_each(|kind| class(&mut header, kind.class));
    for (columns, letter) in [(&table.statics, 's'), (&table.regulars, 'r')] {
        header.vint(columns.len() as u64);
        for (at, kind) in columns.iter().enumerate() {
            header.long(format!("{letter}{at}").as_bytes());
            class(&mut header, kind.class);
        }
    }
    let parts = [(0, validation.0), (1, vec![1, 2, 3]), (2, stats.0), (3, header.0)];
    let has_sums = version.has_metadata_checksum();
    let sum_bytes = if has_sums { 4 } else { 0 };
    let mut contents = Bytes::default();
    let mut at = 4 + 8 * parts.len() + 2 * sum_bytes;
    for (number, part) in &parts {
        contents.u32(*number).u32(at as u32);
        at += part.len() + sum_bytes;
    }
    let mut file = Bytes::default();
    file.u32(parts.len() as u32);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&file.0);
    if has_sums {
        file.u32(sum.clone().finalize());
    }
    sum.update(&contents.0);
    file.raw(&contents.0);
    if has_sums {
        file.u32(sum.finalize());
    }
    for (_, part) in &parts {
        file.raw(part);
        if has_sums {
            file.u32(crc(part));
        }
    }
    file.0
}

/// Index.db and Summary.db.
fn big(partitions: &[Partition], choices: &mut Choices<'_>) -> (Vec<u8>, Vec<u8>) {
    let interval = choices.pick(&[128, 1, 2, 7]);
    let (mut index, mut samples) = (Bytes::default(), Vec::new());
    for (at, partition) in partitions.iter().enumerate() {
        if at % interval == 0 {
            samples.push((&partition.key, index.0.len() as u64));
        }
        index.short(&partition.key).vint(partition.data.start);
        // What is where in a large partition.
        let more = vec![0xee; if choices.once_in(5) { choices.below(6_000) } else { 0 }];
        index.long(&more);
    }
    let mut entries = Bytes::default();
    let mut starts = Bytes::default();
    for (key, offset) in &samples {
        let start = 4 * samples.len() + entries.0.len();
        starts.raw(&(start as u32).to_le_bytes());
        entries.raw(key).raw(&offset.to_le_bytes());
    }
    let mut summary = Bytes::default();
    let bytes = starts.0.len() + entries.0.len();
    summary
        .u32(interval as u32)
        .u32(samples.len() as u32)
        .u64(bytes as u64)
        .u32(128)
        .u32(samples.len() as u32);
    summary.raw(&starts.0).raw(&entries.0);
    for partition in [&partitions[0], &partitions[partitions.len() - 1]] {
        summary.u32(partition.key.len() as u32).raw(&partition.key);
    }
    (index.0, summary.0)
}

/// Partitions.db and Rows.db.
fn tries(partitions: &[Partition], choices: &mut Choices<'_>) -> (Vec<u8>, Vec<u8>) {
    let mut random: Random = choices.random();
    let mut rows = Bytes::default();
    let mut leaves = Vec::new();
    for partition in partitions {
        let mut position = !(partition.data.start as i64);
        if choices.once_in(4) {
            rows.raw(&vec![0xdd; choices.below(5_000)]);
            position = rows.0.len() as i64;
            rows.short(&partition.key).vint(partition.data.start).raw(&[0, 1, 0x80]);
        }
        let mut key = vec![0x40];
        key.extend(((partition.token as u64) ^ 1 << 63).to_be_bytes());
        // Whatever tells keys of one token apart, in their order.
        key.extend(partition.key.iter().flat_map(|byte| [1, *byte]));
        key.push(0);
        let hash = murmur::hash(&partition.key)[1] as u8;
        leaves.push(Leaf { key, position, hash: (!choices.once_in(9)).then_some(hash) });
    }
    let mut file = Vec::new();
    let root = trie::write(&leaves, &mut file, &mut random);
    let mut end = Bytes(file);
    let keys = end.0.len() as u64;
    end.short(&partitions[0].key).short(&partitions[partitions.len() - 1].key);
    end.u64(keys).u64(partitions.len() as u64).u64(root as u64);
    (end.0, rows.0)
}

fn filter(partitions: &[Partition], is_swapped: bool, choices: &mut Choices<'_>) -> Vec<u8> {
    let (hashes, words) = (1 + choices.below(10), 1 + choices.below(20));
    let mut bits = vec![0_u8; 8 * words];
    for partition in partitions {
        let [first, second] = murmur::hash(&partition.key);
        for number in 0..hashes as u64 {
            let sum = second.wrapping_add(first.wrapping_mul(number)) as i64;
            let bit = (sum % (64 * words as i64)).unsigned_abs() as usize;
            bits[bit / 8] |= 1 << (bit % 8);
        }
    }
    if is_swapped {
        bits.chunks_mut(8).for_each(<[u8]>::reverse);
    }
    let mut file = Bytes::default();
    file.u32(hashes as u32).u32(words as u32).raw(&bits);
    file.0
}
