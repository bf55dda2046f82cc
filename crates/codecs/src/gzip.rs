//! GZIP: members as RFC 1952 frames them, one after the other, each a deflate stream with a checksum and a length.
//!
//! The frame is read here and the deflate stream by `flate2` over `zlib-rs`, because a `flate2` decompressor that was
//! made for GZIP cannot be reset for the next page: it would be allocated anew for each. Checking CRC-32 outside is no
//! slower either.
//!
//! `libdeflate` was measured against it (ns for 1 KiB of output; delta-like integers, URLs, random bytes, CSV):
//! 2610, 535, 53, 1180 to the 3350, 680, 57, 1540 of `zlib-rs`. It is 1.1 to 1.3 times as fast, but cannot stop inside a
//! page and is C.

use crc32fast::Hasher;
use flate2::{Decompress, FlushDecompress};
use marquetry_base::cast::low_u32;
use marquetry_base::{Codec, Error, Price, Result};

use crate::page::{Ratio, corrupt};
use crate::streaming::{Slice, Stream};

/// Resumable reader of GZIP members.
#[derive(Debug)]
pub(crate) struct Gzip {
    expect: Expect,
    /// What was gathered of a fixed-size part of the frame.
    part: [u8; FIXED_HEADER_BYTES],
    part_length: usize,
    deflate: Decompress,
    crc: Hasher,
}

/// What comes next in a member. RFC 1952, section 2.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    FixedHeader,
    ExtraLength { flags: u8 },
    Extra { flags: u8, left: u16 },
    Name { flags: u8 },
    Comment { flags: u8 },
    HeaderCrc,
    Deflate,
    Trailer,
}

const FIXED_HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The only compression method that RFC 1952 defines.
const METHOD_DEFLATE: u8 = 8;

// Bits of the member's flags (FTEXT, bit 0, is a hint).
const FLAG_HEADER_CRC: u8 = 1 << 1;
const FLAG_EXTRA: u8 = 1 << 2;
const FLAG_NAME: u8 = 1 << 3;
const FLAG_COMMENT: u8 = 1 << 4;
/// "Must be zero": a field of unknown length may follow otherwise.
const FLAGS_RESERVED: u8 = 0b1110_0000;

impl Gzip {
    pub(crate) fn new() -> Gzip {
        Gzip {
            expect: Expect::FixedHeader,
            part: [0; FIXED_HEADER_BYTES],
            part_length: 0,
            deflate: Decompress::new(false),
            crc: Hasher::new(),
        }
    }

    /// Gathers a part of `length` bytes. How many were consumed, and whether it is whole.
    fn gather(&mut self, input: &[u8], length: usize) -> (usize, bool) {
        let take = input.len().min(length - self.part_length);
        self.part[self.part_length..self.part_length + take].copy_from_slice(&input[..take]);
        self.part_length += take;
        let whole = self.part_length == length;
        if whole {
            self.part_length = 0;
        }
        (take, whole)
    }

    /// Reads on in a member's header. How many bytes were consumed.
    fn header(&mut self, input: &[u8]) -> Result<usize> {
        match self.expect {
            Expect::FixedHeader => {
                let (consumed, whole) = self.gather(input, FIXED_HEADER_BYTES);
                if whole {
                    let [m0, m1, method, flags, ..] = self.part;
                    if [m0, m1] != MAGIC {
                        return Err(corrupt(
                            Codec::Gzip,
                            format_args!("a member starts with the bytes {m0:02x} {m1:02x}, not 1f 8b"),
                        ));
                    }
                    if method != METHOD_DEFLATE || flags & FLAGS_RESERVED != 0 {
                        return Err(Error::unsupported(format!(
                            "GZIP member of method {method} with flags {flags:#010b}"
                        )));
                    }
                    self.expect = after_fixed_header(flags);
                }
                Ok(consumed)
            }
            Expect::ExtraLength { flags } => {
                let (consumed, whole) = self.gather(input, 2);
                if whole {
                    self.expect = match u16::from_le_bytes([self.part[0], self.part[1]]) {
                        0 => after_extra(flags),
                        left => Expect::Extra { flags, left },
                    };
                }
                Ok(consumed)
            }
            Expect::Extra { flags, left } => {
                let take = left.min(u16::try_from(input.len()).unwrap_or(u16::MAX));
                self.expect = if take == left {
                    after_extra(flags)
                } else {
                    Expect::Extra { flags, left: left - take }
                };
                Ok(usize::from(take))
            }
            Expect::Name { flags } => Ok(self.zero_terminated(input, after_name(flags))),
            Expect::Comment { flags } => Ok(self.zero_terminated(input, after_comment(flags))),
            Expect::HeaderCrc => {
                // Its two bytes protect a name and a time that nobody reads here: zlib checks them, others do not.
                let (consumed, whole) = self.gather(input, 2);
                if whole {
                    self.expect = Expect::Deflate;
                }
                Ok(consumed)
            }
            Expect::Deflate | Expect::Trailer => Err(Error::internal("no part of a GZIP header is expected")),
        }
    }

    fn zero_terminated(&mut self, input: &[u8], then: Expect) -> usize {
        match input.iter().position(|&byte| byte == 0) {
            Some(zero) => {
                self.expect = then;
                zero + 1
            }
            None => input.len(),
        }
    }

    /// Decompresses on. Compressed bytes consumed, uncompressed bytes produced.
    fn deflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize)> {
        let (before_in, before_out) = (self.deflate.total_in(), self.deflate.total_out());
        let status = self.deflate.decompress(input, output, FlushDecompress::None).map_err(|error| {
            corrupt(Codec::Gzip, format_args!("{}", error.message().unwrap_or("invalid deflate stream")))
        })?;
        let moved = |after: u64, before: u64| {
            usize::try_from(after - before)
                .map_err(|_| Error::internal("deflate moved more bytes than there are"))
        };
        let consumed = moved(self.deflate.total_in(), before_in)?;
        let produced = moved(self.deflate.total_out(), before_out)?;
        self.crc.update(&output[..produced]);
        if status == flate2::Status::StreamEnd {
            self.expect = Expect::Trailer;
        }
        Ok((consumed, produced))
    }

    /// Reads on in a member's trailer: CRC-32 and length of the uncompressed data, the latter modulo 2^32.
    fn trailer(&mut self, input: &[u8]) -> Result<(usize, bool)> {
        let (consumed, whole) = self.gather(input, TRAILER_BYTES);
        if whole {
            let [c0, c1, c2, c3, l0, l1, l2, l3, ..] = self.part;
            let (crc, length) = (u32::from_le_bytes([c0, c1, c2, c3]), u32::from_le_bytes([l0, l1, l2, l3]));
            let computed = std::mem::take(&mut self.crc).finalize();
            let produced = low_u32(self.deflate.total_out());
            if crc != computed {
                return Err(corrupt(
                    Codec::Gzip,
                    format_args!("a member's CRC-32 is {computed:08x}, its trailer says {crc:08x}"),
                ));
            }
            if length != produced {
                return Err(corrupt(
                    Codec::Gzip,
                    format_args!("a member has {produced} bytes, its trailer says {length}"),
                ));
            }
            self.next_member();
        }
        Ok((consumed, whole))
    }

    fn next_member(&mut self) {
        self.expect = Expect::FixedHeader;
        self.part_length = 0;
        self.deflate.reset(false);
        self.crc = Hasher::new();
    }
}

fn after_fixed_header(flags: u8) -> Expect {
    if flags & FLAG_EXTRA != 0 { Expect::ExtraLength { flags } } else { after_extra(flags) }
}

fn after_extra(flags: u8) -> Expect {
    if flags & FLAG_NAME != 0 { Expect::Name { flags } } else { after_name(flags) }
}

fn after_name(flags: u8) -> Expect {
    if flags & FLAG_COMMENT != 0 { Expect::Comment { flags } } else { after_comment(flags) }
}

fn after_comment(flags: u8) -> Expect {
    if flags & FLAG_HEADER_CRC != 0 { Expect::HeaderCrc } else { Expect::Deflate }
}

impl Stream for Gzip {
    const CODEC: Codec = Codec::Gzip;

    /// Deflate's longest match, 258 bytes, takes at least two bits.
    const RATIO_MAX: Ratio = Ratio { output: 4 * 258, input: 1 };

    /// Measured at 60 to 3,500 (`examples/prices.rs`).
    const PRICE: Price = Price::per_kib(4_000);

    /// Measured at up to 122,000 (`examples/prices.rs`): empty blocks, each with large Huffman codes of its own.
    const PRICE_OVERHEAD: Price = Price::per_kib(125_000);

    /// After each slice zlib-rs copies what it may need again, up to 32 KiB: half of the slice at most.
    const SLICE_OUTPUT_BYTES: usize = 64 << 10;

    /// 0.25 ms at the worst. (Text that shrinks to an eighth takes 970 ns for 1 KiB so, 800 in slices of 64 KiB of output
    /// and 700 whole: matches reach into the copied window more often. Other data hardly notice.)
    const SLICE_INPUT_BYTES: usize = 2 << 10;

    fn reset(&mut self, _: usize) -> Result<()> {
        self.next_member();
        Ok(())
    }

    fn slice(&mut self, input: &[u8], output: &mut [u8]) -> Result<Slice> {
        let (mut consumed, mut produced, mut may_end) = (0, 0, false);
        // Until one of the two is used up, or a member ends.
        loop {
            let before = (consumed, produced, self.expect);
            match self.expect {
                Expect::Deflate => {
                    let (read, written) = self.deflate(&input[consumed..], &mut output[produced..])?;
                    consumed += read;
                    produced += written;
                }
                Expect::Trailer => {
                    let (read, whole) = self.trailer(&input[consumed..])?;
                    consumed += read;
                    may_end = whole;
                }
                _ => consumed += self.header(&input[consumed..])?,
            }
            if may_end || (consumed, produced, self.expect) == before {
                return Ok(Slice { consumed, produced, worked: produced, may_end });
            }
        }
    }
}
