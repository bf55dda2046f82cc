//! GZIP: consecutive members as in RFC 1952, each a deflate stream with a checksum and a length.
//!
//! zlib and similar libraries keep a window of their own, which they copy after each call: in slices of 64 KiB, text
//! took a third longer than in one call. `libdeflate`, the fastest, cannot stop inside a page. Therefore the deflate
//! stream is decoded here, straight into the page.

use crc32fast::Hasher;
use marquetry_base::cast::low_u32;
use marquetry_base::{Codec, Detail, Error, Price, Result};

use crate::block::{Block, Room, Stop};
use crate::inflate::Inflate;
use crate::page::{Page, Ratio, corrupt};
use crate::pieces::Format;

/// Reader of a page of GZIP members.
#[derive(Debug, Default)]
pub(crate) struct Gzip {
    expect: Expect,
    /// The bytes so far of a fixed-size part of the frame.
    part: [u8; FIXED_HEADER_BYTES],
    part_length: usize,
    members: bool,
    deflate: Inflate,
    crc: Hasher,
}

/// What comes next in a member. RFC 1952, section 2.3.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expect {
    #[default]
    FixedHeader,
    ExtraLength {
        flags: u8,
    },
    Extra {
        flags: u8,
        left: u16,
    },
    Name {
        flags: u8,
    },
    Comment {
        flags: u8,
    },
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

impl Format for Gzip {
    const CODEC: Codec = Codec::Gzip;

    /// Deflate's longest match, 258 bytes, takes at least two bits.
    const RATIO_MAX: Ratio = Ratio { output: 4 * 258, input: 1 };

    /// Measured (`examples/prices.rs`), with the checksum: symbols at 1 to 4 ns.
    const PRICE: Price = Price { kib: 250, kilovalue: 6 << 10 };

    const HISTORY_BYTES: usize = 32 << 10;

    fn start(&mut self, _: usize, _: usize) {
        self.next_member();
        self.deflate.clear();
        self.members = false;
    }

    fn decode(&mut self, input: &[u8], _: &Page, room: &mut Room<'_>) -> Result<(usize, Stop)> {
        let mut at = 0;
        loop {
            match self.expect {
                Expect::Deflate => {
                    let before = room.at;
                    let (consumed, stop) = self
                        .deflate
                        .decode(&input[at..], room)
                        .map_err(|fault| fault.into_error(Codec::Gzip))?;
                    self.crc.update(&room.output[before..room.at]);
                    at += consumed;
                    if !self.deflate.may_end() {
                        return Ok((at, stop));
                    }
                    self.expect = Expect::Trailer;
                }
                _ if room.is_tired() => return Ok((at, Stop::Until)),
                _ => {
                    room.elements += 1;
                    let Some(byte) = self.byte(input, &mut at) else { return Ok((at, Stop::Input)) };
                    self.frame(byte)?;
                }
            }
        }
    }

    fn may_end(&self) -> bool {
        self.members && self.expect == Expect::FixedHeader && self.part_length == 0
    }

    fn table_bytes(&self) -> usize {
        size_of::<marquetry_kernels::lz::inflate::Tables>()
    }
}

impl Gzip {
    /// The next byte of the frame; the first ones may have been read along with the deflate stream.
    fn byte(&mut self, input: &[u8], at: &mut usize) -> Option<u8> {
        self.deflate.byte().or_else(|| {
            let byte = *input.get(*at)?;
            *at += 1;
            Some(byte)
        })
    }

    /// Gathers a part of `length` bytes; true when it is complete.
    fn gather(&mut self, byte: u8, length: usize) -> bool {
        self.part[self.part_length] = byte;
        self.part_length += 1;
        let whole = self.part_length == length;
        if whole {
            self.part_length = 0;
        }
        whole
    }

    /// Reads a byte of a member's header or trailer.
    fn frame(&mut self, byte: u8) -> Result<()> {
        if let Expect::ExtraLength { flags }
        | Expect::Extra { flags, .. }
        | Expect::Name { flags }
        | Expect::Comment { flags } = self.expect
            && flags & FLAG_HEADER_CRC != 0
        {
            self.crc.update(&[byte]);
        }
        match self.expect {
            Expect::FixedHeader => {
                if self.gather(byte, FIXED_HEADER_BYTES) {
                    let [m0, m1, method, flags, ..] = self.part;
                    if [m0, m1] != MAGIC {
                        return Err(corrupt(
                            Codec::Gzip,
                            format_args!("a member starts with the bytes {m0:02x} {m1:02x}, not 1f 8b"),
                        ));
                    }
                    if method != METHOD_DEFLATE || flags & FLAGS_RESERVED != 0 {
                        return Err(Codec::Gzip.unsupported(format!(
                            "GZIP member of method {method} with flags {flags:#010b}"
                        )));
                    }
                    if flags & FLAG_HEADER_CRC != 0 {
                        self.crc.update(&self.part);
                    }
                    self.expect = after_fixed_header(flags);
                }
            }
            Expect::ExtraLength { flags } => {
                if self.gather(byte, 2) {
                    self.expect = match u16::from_le_bytes([self.part[0], self.part[1]]) {
                        0 => after_extra(flags),
                        left => Expect::Extra { flags, left },
                    };
                }
            }
            Expect::Extra { flags, left: 1 } => self.expect = after_extra(flags),
            Expect::Extra { flags, left } => self.expect = Expect::Extra { flags, left: left - 1 },
            Expect::Name { flags } if byte == 0 => self.expect = after_name(flags),
            Expect::Comment { flags } if byte == 0 => self.expect = after_comment(flags),
            Expect::Name { .. } | Expect::Comment { .. } => {}
            Expect::HeaderCrc => {
                if self.gather(byte, 2) {
                    self.check_header()?;
                    self.expect = Expect::Deflate;
                }
            }
            Expect::Deflate => {
                return Err(Error::internal("a byte of a GZIP frame inside its deflate stream"));
            }
            Expect::Trailer => {
                if self.gather(byte, TRAILER_BYTES) {
                    self.check_trailer()?;
                    self.next_member();
                    self.members = true;
                }
            }
        }
        Ok(())
    }

    /// The lower half of the CRC-32 of the header before it. (zlib checks it, too.)
    fn check_header(&mut self) -> Result<()> {
        let crc = u16::from_le_bytes([self.part[0], self.part[1]]);
        let computed = std::mem::take(&mut self.crc).finalize() & 0xffff;
        if u32::from(crc) != computed {
            let what = format_args!("a member's header has the CRC {computed:04x} but declares {crc:04x}");
            return Err(corrupt(Codec::Gzip, what).with(Detail::Checksum));
        }
        Ok(())
    }

    /// The CRC-32 and the length of the uncompressed data; the length is modulo 2^32.
    fn check_trailer(&mut self) -> Result<()> {
        let [c0, c1, c2, c3, l0, l1, l2, l3, ..] = self.part;
        let (crc, length) = (u32::from_le_bytes([c0, c1, c2, c3]), u32::from_le_bytes([l0, l1, l2, l3]));
        let computed = std::mem::take(&mut self.crc).finalize();
        let produced = low_u32(self.deflate.produced());
        if crc != computed {
            let what = format_args!("a member has the CRC-32 {computed:08x}, but its trailer says {crc:08x}");
            return Err(corrupt(Codec::Gzip, what).with(Detail::Checksum));
        }
        if length != produced {
            return Err(corrupt(
                Codec::Gzip,
                format_args!("a member has {produced} bytes, but its trailer says {length}"),
            ));
        }
        Ok(())
    }

    /// Begins a member, whose first bytes may have been read.
    fn next_member(&mut self) {
        self.expect = Expect::FixedHeader;
        self.part_length = 0;
        self.deflate.next_stream();
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
