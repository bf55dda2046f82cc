//! Pages that are compressed in another way: neither their values are decoded, nor is anything else of them another one.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{
    Budget, Codec, Codecs, Compressor, Decompressor, Error, Limit, Price, Progress, Result, Status,
};
use marquetry_codecs::{bounded_level_max, levels};
use marquetry_kernels::crc32::crc32;
use marquetry_parquet::format::{Compression, PageHeader, PageKind};
use marquetry_parquet::thrift::{Kind, Reader, Stop, Thrift};

use crate::host::{Host, LIMITS};

/// The units that a page may take: some ten milliseconds. It cannot be left half-way, and of a large one the highest levels take a hundred times
/// as long. A call that has others done before takes no more than that in all.
const UNITS_MAX: u64 = 12_000_000;
/// Bytes of a page, compressed or not: it is in memory as it was and as it will be, and once more where an OSD copies it.
const PAGE_BYTES_MAX: u32 = 4 << 20;
/// Bytes that a codec's library may hold.
const LIBRARY_BYTES_MAX: usize = 16 << 20;

/// What pages are compressed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) compression: Compression,
    pub(crate) level: Option<i32>,
}

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Its bytes, with the header.
    pub(crate) bytes: u32,
    /// By how many bytes the header is longer than it was.
    pub(crate) growth: i32,
}

/// Compresses pages in another way, one after the other.
pub(crate) struct Recoder {
    codecs: Arc<dyn Codecs>,
    target: Target,
    decompressor: Option<(Codec, Box<dyn Decompressor>)>,
    compressor: Option<Box<dyn Compressor>>,
    /// The units of the call at which a page is given up.
    units_end: u64,
}

impl Recoder {
    /// # Errors
    ///
    /// `Misuse` for a level that the codec does not have; `LimitExceeded` for one at which a step of the codec takes milliseconds, or hundreds of
    /// MiB; `Unsupported` for a codec that is not written.
    pub(crate) fn new(target: Target) -> Result<Recoder> {
        let codecs = Host::codecs();
        let compressor = match target.compression {
            Compression::Uncompressed if target.level.is_some() => {
                return Err(Error::misuse("a level without a codec"));
            }
            Compression::Uncompressed => None,
            Compression::Codec(codec) => {
                let has_level = |level| levels(codec).is_some_and(|levels| level <= levels.most);
                let is_beyond = |level| bounded_level_max(codec).is_some_and(|most| level > most);
                if target.level.is_some_and(|level| has_level(level) && is_beyond(level)) {
                    return Err(Error::too_large("a level at which a step of the codec has no bound"));
                }
                Some(codecs.compressor(codec, target.level)?)
            }
            Compression::Unknown(_) => return Err(Error::unsupported("an unknown codec")),
        };
        Ok(Recoder { codecs, target, decompressor: None, compressor, units_end: 0 })
    }

    /// Whether a page of a chunk can be recoded in what is left of a call, as far as that is known before it is read: not if it is certain to take
    /// more than is left of a call, in which it is not the first.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` if it is larger than a page may be, or takes more than a call may.
    pub(crate) fn affords(
        &self,
        chunk: Compression,
        header: &PageHeader,
        is_first: bool,
        host: &Host<'_>,
    ) -> Result<bool> {
        let bytes = header.compressed_bytes.max(header.uncompressed_bytes);
        if bytes > PAGE_BYTES_MAX {
            let message =
                format!("a page of {bytes} bytes: those of up to {PAGE_BYTES_MAX} are compressed here");
            return Err(Error::too_large(message));
        }
        let least = match self.target.compression {
            _ if self.keeps(chunk) => 0,
            Compression::Codec(codec) => {
                let level = self.target.level.or(levels(codec).map(|levels| levels.default));
                Price::per_kib(least_price(codec, level.unwrap_or(0)))
                    .of(usize_of_u32(header.uncompressed_bytes), 0)
            }
            Compression::Uncompressed | Compression::Unknown(_) => 0,
        };
        let spent = if is_first { 0 } else { host.work().units };
        match spent.saturating_add(least) > UNITS_MAX {
            true if is_first => Err(too_dear()),
            is_too_dear => Ok(!is_too_dear),
        }
    }

    /// Whether pages of a chunk stay as they are.
    fn keeps(&self, chunk: Compression) -> bool {
        chunk == self.target.compression && self.target.level.is_none()
    }

    /// Adds a page of a chunk to `out`: its header, which has the bytes `head`, and its body. `None`, and nothing is added, if it takes more than
    /// is left of a call, in which it is not the first.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the page is not what its checksum is of, which a new one would hide; `LimitExceeded` if it is the first of a call, and
    /// takes more than a call may.
    pub(crate) fn recode(
        &mut self,
        chunk: Compression,
        page: (&PageHeader, &[u8], &[u8]),
        (out, is_first): (&mut Vec<u8>, bool),
        host: &mut Host<'_>,
    ) -> Result<Option<Written>> {
        self.units_end = UNITS_MAX + if is_first { host.work().units } else { 0 };
        match self.recoded(chunk, page, out, host) {
            Err(_) if !is_first && host.work().units > self.units_end => Ok(None),
            written => written.map(Some),
        }
    }

    fn recoded(
        &mut self,
        chunk: Compression,
        (header, head, body): (&PageHeader, &[u8], &[u8]),
        out: &mut Vec<u8>,
        host: &mut Host<'_>,
    ) -> Result<Written> {
        if header.crc.is_some_and(|crc| crc != crc32(0, body)) {
            return Err(Error::corrupt("a page that is not what its checksum is of"));
        }
        if self.keeps(chunk) {
            let bytes = length_of(head.len() + body.len())?;
            out.extend_from_slice(head);
            out.extend_from_slice(body);
            return Ok(Written { bytes, growth: 0 });
        }
        // Levels of V2 pages are never compressed, and precede what may be.
        let (plain_bytes, was_compressed) = match &header.kind {
            PageKind::Data(_) | PageKind::Dictionary(_) => (0, true),
            PageKind::DataV2(page) => {
                let levels = u64::from(page.definition_bytes) + u64::from(page.repetition_bytes);
                (usize::try_from(levels).unwrap_or(usize::MAX), page.is_compressed)
            }
            PageKind::Other(_) => return Err(Error::unsupported("a page of an unknown kind")),
        };
        let (plain, packed) = body
            .split_at_checked(plain_bytes)
            .ok_or_else(|| Error::corrupt("levels that are longer than their page"))?;
        LIMITS.check(Limit::PageBytes, header.uncompressed_bytes.into())?;
        let length = usize_of_u32(header.uncompressed_bytes).checked_sub(plain_bytes);
        let length = length.ok_or_else(|| Error::corrupt("levels that are longer than their page"))?;
        let values = match chunk {
            Compression::Codec(codec) if was_compressed && !(length == 0 && packed.is_empty()) => {
                Some(self.decompress(codec, packed, length, host)?)
            }
            Compression::Unknown(_) => return Err(Error::unsupported("an unknown codec")),
            _ if packed.len() != length => {
                return Err(Error::corrupt("a page of another length than it says"));
            }
            _ => None,
        };
        let values = values.as_deref().unwrap_or(packed);
        let is_v2 = matches!(header.kind, PageKind::DataV2(_));
        // Nothing is compressed to something, which some readers reject.
        let made = match &mut self.compressor {
            Some(compressor) if !(is_v2 && values.is_empty()) => {
                Some(compressed(&mut **compressor, values, self.units_end, host)?)
            }
            _ => None,
        };
        let (is_compressed, packed) = match &made {
            Some(made) => (true, made.as_slice()),
            None => (false, values),
        };
        let crc = header.crc.map(|_| crc32(crc32(0, plain), packed));
        let bytes = length_of(plain.len() + packed.len())?;
        let new_head =
            patched(head, bytes, crc, is_compressed).map_err(|stop| stop.into_error("a page header", 0))?;
        out.extend_from_slice(&new_head);
        out.extend_from_slice(plain);
        out.extend_from_slice(packed);
        let (now, before) = (length_of(new_head.len())?, length_of(head.len())?);
        let growth = i64::from(now) - i64::from(before);
        let growth = i32::try_from(growth).map_err(|_| Error::internal("a header that grew"))?;
        let bytes = bytes.checked_add(now).ok_or_else(|| Error::too_large("a page"))?;
        Ok(Written { bytes, growth })
    }

    fn decompress(
        &mut self,
        codec: Codec,
        input: &[u8],
        length: usize,
        host: &mut Host<'_>,
    ) -> Result<Vec<u8>> {
        if self.decompressor.as_ref().is_none_or(|(of, _)| *of != codec) {
            self.decompressor = Some((codec, self.codecs.decompressor(codec)?));
        }
        let Some((_, decompressor)) = &mut self.decompressor else {
            return Err(Error::internal("a decompressor that is not there"));
        };
        decompressor.start(input.len(), length, true)?;
        let mut output = room(length)?;
        let (mut consumed, mut produced) = (0, 0);
        loop {
            let mut budget = Budget::new(Budget::DEFAULT_UNITS);
            let step = decompressor.step(&input[consumed..], true, &mut output, produced, &mut budget);
            charge(host, &budget, self.units_end)?;
            let Progress { consumed: some, produced: more, status } = step?;
            (consumed, produced) = (consumed + some, produced + more);
            match status {
                Status::End if produced == length => return Ok(output),
                Status::NeedMemory(bytes) => LIMITS.check(Limit::WindowBytes, u64_of(bytes))?,
                Status::Yield => {}
                Status::End | Status::NeedInput | Status::NeedRoom => {
                    return Err(Error::corrupt("a page of another length than it says"));
                }
            }
        }
    }
}

fn compressed(
    compressor: &mut dyn Compressor,
    input: &[u8],
    units_end: u64,
    host: &mut Host<'_>,
) -> Result<Vec<u8>> {
    compressor.start(input.len())?;
    let mut output = room(compressor.bound(input.len()))?;
    let (mut consumed, mut produced) = (0, 0);
    loop {
        let mut budget = Budget::new(Budget::DEFAULT_UNITS);
        let step = compressor.step(&input[consumed..], true, &mut output[produced..], &mut budget);
        charge(host, &budget, units_end)?;
        let Progress { consumed: some, produced: more, status } = step?;
        (consumed, produced) = (consumed + some, produced + more);
        match status {
            Status::End => {
                output.truncate(produced);
                return Ok(output);
            }
            Status::NeedMemory(bytes) if bytes > LIBRARY_BYTES_MAX => {
                return Err(Error::too_large(format!("{bytes} bytes of memory for a codec")));
            }
            Status::Yield | Status::NeedMemory(_) => {}
            Status::NeedInput | Status::NeedRoom => {
                return Err(Error::internal("a compressor that wants more than there is"));
            }
        }
    }
}

/// Charges what was spent; an error after the units at which a page is given up.
fn charge(host: &mut Host<'_>, budget: &Budget<'_>, units_end: u64) -> Result<()> {
    host.charge(budget.spent());
    if host.work().units > units_end {
        return Err(too_dear());
    }
    Ok(())
}

fn too_dear() -> Error {
    Error::too_large("a page takes more work than a call may do, by this codec and level")
}

/// The units that 1,024 bytes cost at least which a codec compresses at a level: as its own prices are.
const fn least_price(codec: Codec, level: i32) -> u32 {
    match (codec, level) {
        (Codec::Zstd, ..=2) => 5_000,
        (Codec::Zstd, 3..=4) => 6_500,
        (Codec::Zstd, _) => 12_500,
        (Codec::Brotli, ..=1) => 6_000,
        (Codec::Brotli, 2..=4) => 12_000,
        (Codec::Brotli, _) => 24_000,
        (Codec::Gzip, ..=1) => 14_000,
        (Codec::Gzip, 2..=5) => 15_000,
        (Codec::Gzip, 6) => 30_000,
        (Codec::Gzip, 7) => 75_000,
        (Codec::Gzip, _) => 190_000,
        _ => 0,
    }
}

fn room(bytes: usize) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
    room.resize(bytes, 0);
    Ok(room)
}

fn length_of(bytes: usize) -> Result<u32> {
    // Thrift has signed numbers.
    i32::try_from(bytes).map(i32::cast_unsigned).map_err(|_| Error::too_large("a page"))
}

/// A header with another length and checksum of the page, which it has if it had one, and with its flag `is_compressed`, if it has that.
fn patched(head: &[u8], bytes: u32, crc: Option<u32>, is_compressed: bool) -> Thrift<Vec<u8>> {
    let mut reader = Reader::new(head, 0);
    let (mut out, mut copied, mut last) = (Vec::with_capacity(head.len() + 8), 0, 0);
    while let Some(field) = reader.field(last)? {
        last = field.id;
        let at = reader.at();
        let number = match (field.id, crc) {
            (3, _) => Some(bytes),
            (4, Some(crc)) => Some(crc),
            _ => None,
        };
        if let (Some(number), Kind::I32) = (number, field.kind) {
            reader.i32()?;
            out.extend_from_slice(head.get(copied..at).ok_or(Stop::End)?);
            zigzag(number.cast_signed(), &mut out);
            copied = reader.at();
        } else if field.id == 8 && field.kind == Kind::Struct {
            let mut last = 0;
            loop {
                let start = reader.at();
                let Some(field) = reader.field(last)? else { break };
                last = field.id;
                if field.id == 7 && matches!(field.kind, Kind::True | Kind::False) {
                    let flag = head.get(start).ok_or(Stop::End)?;
                    out.extend_from_slice(head.get(copied..start).ok_or(Stop::End)?);
                    out.push(flag & 0xf0 | if is_compressed { 1 } else { 2 });
                    copied = start + 1;
                }
                reader.skip(field.kind)?;
            }
        } else {
            reader.skip(field.kind)?;
        }
    }
    out.extend_from_slice(head.get(copied..).ok_or(Stop::End)?);
    Ok(out)
}

/// A number of Thrift's compact protocol.
fn zigzag(number: i32, out: &mut Vec<u8>) {
    let mut rest = (number << 1 ^ number >> 31).cast_unsigned();
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_gets_another_length_and_keeps_the_rest() {
        // DATA_PAGE_V2 of 100 bytes, 70 in the file, a checksum, a structure of which field 7 is true, and an unknown field after it.
        let head = [
            0x15, 6, 0x15, 200, 1, 0x15, 140, 1, 0x15, 9, 0x4c, 0x15, 2, 0x15, 0, 0x15, 2, 0x15, 0, 0x15, 0,
            0x15, 0, 0x11, 0, 0x18, 1, b'x', 0,
        ];
        let made = patched(&head, 100_000, Some(u32::MAX), false).unwrap();
        let (header, length) = PageHeader::read(&made).unwrap();
        assert_eq!((header.compressed_bytes, header.crc, length), (100_000, Some(u32::MAX), made.len()));
        assert_eq!(header.uncompressed_bytes, 100);
        assert!(matches!(&header.kind, PageKind::DataV2(page) if !page.is_compressed && page.values == 1));
        assert_eq!(made[made.len() - 4..], head[head.len() - 4..]);
        let again = patched(&made, 70, header.crc.map(|_| bits(9)), true).unwrap();
        assert_eq!(again, head);
        assert!(patched(&head[..7], 1, None, true).is_err());
    }

    /// What is said before a page is compressed is neither more than that takes, nor much less.
    #[test]
    fn prices_are_those_of_the_codecs() {
        let mut seed = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed.to_be_bytes()[0]
        })
        .take(64 << 10)
        .collect();
        for (codec, all) in [(Codec::Zstd, -5..=6), (Codec::Brotli, 0..=5), (Codec::Gzip, 1..=9)] {
            for level in all {
                let mut compressor = Host::codecs().compressor(codec, Some(level)).unwrap();
                let mut object: &[u8] = &[];
                let mut host = Host::new(&mut object, crate::request::Share::default());
                compressed(&mut *compressor, &noise, u64::MAX, &mut host).unwrap();
                let (least, spent) = (u64::from(least_price(codec, level)) * 64, host.work().units);
                assert!(least <= spent && spent <= 2 * least, "{codec:?} {level}: {spent}, not {least}");
            }
        }
    }

    fn bits(zigzag: u32) -> u32 {
        (zigzag >> 1) ^ (zigzag & 1).wrapping_neg()
    }
}
