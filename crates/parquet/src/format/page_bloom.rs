//! How a column chunk announces the Bloom filters of its pages: a pair of its key-value metadata (`ColumnMetaData`,
//! field 8).
//!
//! Source: `docs/page-bloom.md`.

use alloc::format;
use core::str;

use marquetry_base::Bytes;
use marquetry_base::cast::u64_of;
use marquetry_kernels::crc32::crc32;

use super::write::{number_of, path};
use super::{ColumnChunk, KeyValue};
use crate::schema::{Leaf, PhysicalType, Schema};

/// The key of a column chunk's metadata under which the Bloom filters of its pages are announced.
pub const PAGE_BLOOM_KEY: &str = "marquetry.page_bloom";

/// Bytes of the longest announcement: of numbers that all have as many digits as they may.
const ANNOUNCEMENT_BYTES_MAX: usize = 160;
/// The version of what is announced.
const VERSION: u32 = 1;
/// Before the announcement's CRC, which is its end.
const CRC: &str = " crc=";

/// What the announcement says: how many filters of how many blocks each there are, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageBloomPlace {
    /// The chunk's data pages.
    pub(crate) pages: u32,
    /// Blocks of each page's filter.
    pub(crate) blocks: u32,
    /// Where the first block is, counted from the chunk's first page.
    pub(crate) distance: u64,
    /// What the CRC of each row of blocks begins with: no other chunk's filters have it.
    pub(crate) id: u64,
}

impl PageBloomPlace {
    /// The announcement, for a leaf's chunk whose number of values and sizes are known.
    pub(crate) fn announce(&self, schema: &Schema, leaf: &Leaf, chunk: &ColumnChunk) -> KeyValue {
        let PageBloomPlace { pages, blocks, distance, id } = self;
        let mut text =
            format!("version={VERSION} pages={pages} blocks={blocks} distance={distance} id={id:016x}");
        let crc = bound(&text, schema, leaf, chunk);
        text.push_str(&format!("{CRC}{crc:08x}"));
        KeyValue { key: PAGE_BLOOM_KEY.into(), value: Some(Bytes::from(text.into_bytes())) }
    }

    /// What a leaf's chunk announces. `None` if it is nothing, or anything else than was announced of this chunk.
    pub(crate) fn announced(schema: &Schema, leaf: &Leaf, chunk: &ColumnChunk) -> Option<PageBloomPlace> {
        let mut found = chunk.key_values.iter().filter(|pair| pair.key == PAGE_BLOOM_KEY);
        let (Some(pair), None) = (found.next(), found.next()) else { return None };
        let value = pair.value.as_ref().filter(|value| value.len() <= ANNOUNCEMENT_BYTES_MAX)?;
        let (text, crc) = str::from_utf8(value).ok()?.rsplit_once(CRC)?;
        if crc.len() != 8 || u32::from_str_radix(crc, 16).ok()? != bound(text, schema, leaf, chunk) {
            return None;
        }
        let mut fields = text.split(' ');
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let version: u32 = field("version")?.parse().ok()?;
        let place = PageBloomPlace {
            pages: field("pages")?.parse().ok()?,
            blocks: field("blocks")?.parse().ok()?,
            distance: field("distance")?.parse().ok()?,
            id: u64::from_str_radix(field("id")?, 16).ok()?,
        };
        // More fields would be of a version that this one cannot know.
        (version == VERSION && fields.next().is_none()).then_some(place)
    }

    /// What the CRC of a row of blocks begins with.
    pub(crate) fn crc_of_row(&self, row: u32) -> u32 {
        crc32(crc32(0, &self.id.to_le_bytes()), &row.to_le_bytes())
    }
}

/// The CRC of an announcement, with what it is bound to: the chunk's path, type, number of values and sizes.
fn bound(text: &str, schema: &Schema, leaf: &Leaf, chunk: &ColumnChunk) -> u32 {
    let mut crc = crc32(0, text.as_bytes());
    for name in path(schema, leaf) {
        crc = crc32(crc32(crc, &u64_of(name.len()).to_le_bytes()), name.as_bytes());
    }
    let width = if let PhysicalType::FixedLenByteArray(width) = leaf.physical_type { width } else { 0 };
    crc = crc32(crc32(crc, &number_of(leaf.physical_type).to_le_bytes()), &width.to_le_bytes());
    for number in [chunk.values, chunk.uncompressed_bytes, chunk.compressed_bytes] {
        crc = crc32(crc, &number.to_le_bytes());
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FieldDef, FieldType};
    use alloc::vec;
    use alloc::vec::Vec;

    const PLACE: PageBloomPlace =
        PageBloomPlace { pages: 245, blocks: 256, distance: 80_123, id: 0x0123_4567_89ab_cdef };

    fn schema(name: &str, physical_type: PhysicalType) -> Schema {
        Schema::of_fields(&[FieldDef::new(name, FieldType::Leaf(physical_type, None))]).unwrap()
    }

    fn chunk() -> ColumnChunk {
        ColumnChunk {
            values: 1_000_000,
            uncompressed_bytes: 8_000_000,
            compressed_bytes: 80_000,
            ..ColumnChunk::default()
        }
    }

    fn announced(schema: &Schema, chunk: &ColumnChunk) -> Option<PageBloomPlace> {
        PageBloomPlace::announced(schema, &schema.leaves()[0], chunk)
    }

    fn with(value: &[u8]) -> ColumnChunk {
        let pair = KeyValue { key: PAGE_BLOOM_KEY.into(), value: Some(Bytes::copy_from_slice(value)) };
        ColumnChunk { key_values: vec![pair], ..chunk() }
    }

    #[test]
    fn what_is_announced_is_read() {
        let schema = schema("id", PhysicalType::Int64);
        let pair = PLACE.announce(&schema, &schema.leaves()[0], &chunk());
        // The example of docs/page-bloom.md.
        let expected = "version=1 pages=245 blocks=256 distance=80123 id=0123456789abcdef crc=fa543cea";
        assert_eq!(str::from_utf8(pair.value.as_ref().unwrap()).unwrap(), expected);
        let mut chunk = ColumnChunk { key_values: vec![pair.clone()], ..chunk() };
        assert_eq!(announced(&schema, &chunk), Some(PLACE));
        let other = KeyValue { key: "other".into(), value: None };
        chunk.key_values.insert(0, other);
        assert_eq!(announced(&schema, &chunk), Some(PLACE));
        chunk.key_values.push(pair);
        assert_eq!(announced(&schema, &chunk), None, "announced twice");
        assert_eq!(announced(&schema, &with(b"")), None);
        let largest = PageBloomPlace { pages: u32::MAX, blocks: u32::MAX, distance: u64::MAX, id: u64::MAX };
        let pair = largest.announce(&schema, &schema.leaves()[0], &chunk);
        assert!(pair.value.as_ref().unwrap().len() <= ANNOUNCEMENT_BYTES_MAX);
        let chunk = ColumnChunk { key_values: vec![pair], ..self::chunk() };
        assert_eq!(announced(&schema, &chunk), Some(largest));
    }

    #[test]
    fn it_is_bound_to_its_chunk() {
        let own = schema("id", PhysicalType::Int64);
        let pair = PLACE.announce(&own, &own.leaves()[0], &chunk());
        let chunk = ColumnChunk { key_values: vec![pair], ..chunk() };
        for (name, physical_type) in [
            ("ID", PhysicalType::Int64),
            ("id", PhysicalType::Double),
            ("id", PhysicalType::FixedLenByteArray(8)),
        ] {
            assert_eq!(announced(&schema(name, physical_type), &chunk), None);
        }
        let changed = |change: fn(&mut ColumnChunk)| {
            let mut chunk = chunk.clone();
            change(&mut chunk);
            announced(&own, &chunk)
        };
        assert_eq!(changed(|chunk| chunk.values += 1), None);
        assert_eq!(changed(|chunk| chunk.uncompressed_bytes += 1), None);
        assert_eq!(changed(|chunk| chunk.compressed_bytes -= 1), None);
        // A chunk may be moved, with what follows it.
        assert_eq!(changed(|chunk| chunk.data_page_offset += 1000), Some(PLACE));
    }

    #[test]
    fn no_bit_may_be_another() {
        let schema = schema("id", PhysicalType::Int64);
        let pair = PLACE.announce(&schema, &schema.leaves()[0], &chunk());
        let value = pair.value.unwrap();
        for at in 0..value.len() {
            for bit in 0..8 {
                let mut bytes = value.to_vec();
                bytes[at] ^= 1 << bit;
                let found = announced(&schema, &with(&bytes));
                // The CRC's own digits may be capital letters.
                assert!(found.is_none() || bytes.to_ascii_lowercase() == value[..], "{at} {bit}");
            }
            assert_eq!(announced(&schema, &with(&value[..at])), None);
        }
    }

    #[test]
    fn another_version_is_not_known() {
        let schema = schema("id", PhysicalType::Int64);
        let of = |text: &str| {
            let crc = bound(text, &schema, &schema.leaves()[0], &chunk());
            let value: Vec<u8> = format!("{text}{CRC}{crc:08x}").into_bytes();
            announced(&schema, &with(&value))
        };
        let text = "version=1 pages=245 blocks=256 distance=80123 id=0123456789abcdef";
        assert_eq!(of(text), Some(PLACE));
        assert_eq!(of(&text.replace("version=1", "version=2")), None);
        assert_eq!(of(&format!("{text} more=1")), None);
        assert_eq!(of(&text.replace("pages=245", "pages=-1")), None);
        assert_eq!(of(&text.replace("pages", "sides")), None);
        assert_eq!(of("version=1"), None);
    }
}
