//! The header of a Bloom filter (`BloomFilterHeader`).

use crate::thrift::{Kind, Reader, Stop, Thrift};
use marquetry_base::{Error, Result};

/// The header before the blocks of a Bloom filter.
///
/// The format has one algorithm, one hash and one compression: split blocks, XXH64, and none. Reading others is an
/// error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BloomFilterHeader {
    /// Bytes of all blocks, which are 32 each.
    pub bytes: u32,
}

/// Maximum bytes of a header. Today's take 19.
pub(crate) const BLOOM_HEADER_BYTES_MAX: u64 = 256;

/// The only member of each of the format's unions.
const ONLY: i16 = 1;

impl BloomFilterHeader {
    /// Reads a header from the start of `data`, which is at `start` in the file. Returns it with its length in bytes.
    ///
    /// # Errors
    ///
    /// `Corrupt` for an invalid header, or incomplete blocks; `Unsupported` for algorithms, hashes and compressions
    /// that this version does not know.
    pub fn read(data: &[u8], start: u64) -> Result<(BloomFilterHeader, usize)> {
        let mut reader = Reader::new(data, 0);
        let told = read(&mut reader).map_err(|stop| stop.into_error("a Bloom filter's header", start))?;
        let kinds = [("algorithm", told.algorithm), ("hash", told.hash), ("compression", told.compression)];
        for (what, kind) in kinds {
            if kind != ONLY {
                return Err(Error::unsupported(alloc::format!("a Bloom filter of the {what} {kind}"))
                    .at_offset(start));
            }
        }
        let bytes = u32::try_from(told.bytes).ok().filter(|bytes| *bytes > 0 && bytes % 32 == 0);
        let bytes = bytes.ok_or_else(|| {
            let why = alloc::format!("a Bloom filter of {} bytes, where blocks have 32", told.bytes);
            Error::corrupt(why).at_offset(start)
        })?;
        Ok((BloomFilterHeader { bytes }, reader.at()))
    }
}

/// The fields as stored.
struct Told {
    bytes: i32,
    algorithm: i16,
    hash: i16,
    compression: i16,
}

fn read(reader: &mut Reader<'_>) -> Thrift<Told> {
    let (mut bytes, mut algorithm, mut hash, mut compression) = (None, None, None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => bytes = Some(reader.expect(field, Kind::I32, Reader::i32)?),
            2 => algorithm = Some(reader.expect(field, Kind::Struct, member)?),
            3 => hash = Some(reader.expect(field, Kind::Struct, member)?),
            4 => compression = Some(reader.expect(field, Kind::Struct, member)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing = |why| Stop::Corrupt(reader.at(), why);
    Ok(Told {
        bytes: bytes.ok_or_else(|| missing("no size"))?,
        algorithm: algorithm.ok_or_else(|| missing("no algorithm"))?,
        hash: hash.ok_or_else(|| missing("no hash"))?,
        compression: compression.ok_or_else(|| missing("no compression"))?,
    })
}

/// The member that a union has; 0 if none.
fn member(reader: &mut Reader<'_>) -> Thrift<i16> {
    let mut found = 0;
    reader.structure(|_, field| {
        found = field.id;
        Ok(false)
    })?;
    Ok(found)
}
