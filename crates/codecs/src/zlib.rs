//! ZLIB: one deflate stream with a header and a checksum, as in RFC 1950. SSTables call it Deflate.

use marquetry_base::{Codec, Detail, Price, Result};

use crate::block::{Block, Room, Stop};
use crate::inflate::Inflate;
use crate::page::{Page, Ratio, corrupt};
use crate::pieces::Format;

/// Reader of a zlib stream.
#[derive(Debug, Default)]
pub(crate) struct Zlib {
    expect: Expect,
    /// The bytes so far of the header or the checksum.
    part: [u8; CHECKSUM_BYTES],
    part_length: usize,
    deflate: Inflate,
    adler: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expect {
    #[default]
    Header,
    Deflate,
    Checksum,
    End,
}

const HEADER_BYTES: usize = 2;
const CHECKSUM_BYTES: usize = 4;
/// The only compression method that RFC 1950 defines.
const METHOD_DEFLATE: u8 = 8;
/// A dictionary is named, which whoever reads it must have.
const FLAG_DICTIONARY: u8 = 1 << 5;

impl Format for Zlib {
    const CODEC: Codec = Codec::Zlib;

    /// As GZIP's.
    const RATIO_MAX: Ratio = Ratio { output: 4 * 258, input: 1 };

    /// As GZIP's: the checksum is as cheap.
    const PRICE: Price = Price { kib: 250, kilovalue: 6 << 10 };

    const HISTORY_BYTES: usize = 32 << 10;

    fn start(&mut self, _: usize, _: usize) {
        (self.expect, self.part_length, self.adler) = (Expect::Header, 0, 1);
        self.deflate.next_stream();
        self.deflate.clear();
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
                        .map_err(|fault| fault.into_error(Codec::Zlib))?;
                    self.adler = zlib_rs::adler32::adler32(self.adler, &room.output[before..room.at]);
                    at += consumed;
                    if !self.deflate.may_end() {
                        return Ok((at, stop));
                    }
                    self.expect = Expect::Checksum;
                }
                _ if room.is_tired() => return Ok((at, Stop::Until)),
                _ => {
                    room.elements += 1;
                    // The first bytes may have been read along with the deflate stream.
                    let byte = self.deflate.byte().or_else(|| {
                        let byte = *input.get(at)?;
                        at += 1;
                        Some(byte)
                    });
                    let Some(byte) = byte else { return Ok((at, Stop::Input)) };
                    self.frame(byte)?;
                }
            }
        }
    }

    fn may_end(&self) -> bool {
        self.expect == Expect::End
    }

    fn table_bytes(&self) -> usize {
        size_of::<marquetry_kernels::lz::inflate::Tables>()
    }
}

impl Zlib {
    /// Reads a byte of the header or the checksum.
    fn frame(&mut self, byte: u8) -> Result<()> {
        if self.expect == Expect::End {
            return Err(corrupt(Codec::Zlib, format_args!("bytes follow the stream")));
        }
        self.part[self.part_length] = byte;
        self.part_length += 1;
        match self.expect {
            Expect::Header if self.part_length == HEADER_BYTES => {
                let [method, flags, ..] = self.part;
                if method & 0xf != METHOD_DEFLATE || u16::from_be_bytes([method, flags]) % 31 != 0 {
                    let what = format_args!("a stream starts with the bytes {method:02x} {flags:02x}");
                    return Err(corrupt(Codec::Zlib, what));
                }
                if flags & FLAG_DICTIONARY != 0 {
                    return Err(Codec::Zlib.unsupported("a zlib stream that needs a dictionary"));
                }
                (self.expect, self.part_length) = (Expect::Deflate, 0);
            }
            Expect::Checksum if self.part_length == CHECKSUM_BYTES => {
                let (stored, computed) = (u32::from_be_bytes(self.part), self.adler);
                if stored != computed {
                    let what =
                        format_args!("a stream has the Adler-32 {computed:08x}, but {stored:08x} is stored");
                    return Err(corrupt(Codec::Zlib, what).with(Detail::Checksum));
                }
                (self.expect, self.part_length) = (Expect::End, 0);
            }
            _ => {}
        }
        Ok(())
    }
}
