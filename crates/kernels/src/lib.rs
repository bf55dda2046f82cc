//! The hot loops of the Parquet engine: slices in, slices out.
//!
//! Every kernel is a plain function over slices that the caller owns. It allocates nothing, keeps no state, and never
//! panics: lengths are checked once per call, and a mismatch is an [`Error`]. Data from a file can be passed
//! unchecked.
//!
//! | module | does |
//! |---|---|
//! | [`unpack`] | bit-packed integers of any width to `u8`, `u32`, `u64` |
//! | [`pack`] | and back: integers to bits |
//! | [`gather`] | dictionary indices to values, all indices checked |
//! | [`dictionary`] | bit-packed dictionary indices straight to values |
//! | [`delta`] | the prefix sums of DELTA_BINARY_PACKED |
//! | [`differences`] | the inverse: the differences that it packs |
//! | [`plain`] | PLAIN fixed-width values; views of typed slices as bytes |
//! | [`bss`] | BYTE_STREAM_SPLIT |
//! | [`strings`] | PLAIN and DELTA_LENGTH byte arrays to Arrow's string views |
//! | [`prefix`] | what byte strings have in common |
//! | [`bits`] | bitmaps in Arrow's order |
//! | [`levels`] | definition and repetition levels to offsets and validity |
//! | [`marks`] | where delimiters, quotes and line ends are in a text |
//! | [`lz`] | blocks of literals and matches: Snappy, LZ4 (both ways), LZO1X |
//! | [`spread`] | dense values to one slot per row |
//! | [`compact`] | the inverse: values without the slots of nulls |
//! | [`within`] | which numbers are within bounds |
//! | [`bounds`] | the least and the greatest number |
//! | [`bloom`] | split-block Bloom filters |
//! | [`mod@crc32`], [`utf8`], [`xxh64`] | page checksums, UTF-8 validity, hashes |
//!
//! # How a kernel is built
//!
//! A public function checks its slices, then picks an implementation by [`cpu::level`]: AVX-512, AVX2 or NEON if they
//! pay, else the portable twin. The tests run every implementation the processor has against a naive oracle. This crate may
//! use `unsafe`; each block carries its proof.
#![no_std]
// Truncating and re-signing bits is what these kernels do; a checked cast on every lane would hide the arithmetic.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless
)]

// For the type of a dictionary's or a filter's segments: nothing is allocated here.
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

// Parquet and Arrow are little-endian, and several kernels reinterpret bytes in place.
#[cfg(target_endian = "big")]
compile_error!("marquetry-kernels supports little-endian processors only");

pub mod bits;
pub mod bloom;
pub mod bounds;
pub mod bss;
pub mod compact;
pub mod cpu;
pub mod crc32;
pub mod delta;
pub mod dictionary;
pub mod differences;
mod error;
mod extract;
pub mod gather;
pub mod levels;
pub mod lz;
pub mod marks;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod pack;
pub mod plain;
pub mod prefix;
pub mod spread;
pub mod strings;
pub mod unpack;
pub mod utf8;
pub mod within;
pub mod xxh64;

#[cfg(test)]
mod testing;

pub use crc32::crc32;
pub use error::Error;
pub use plain::Plain;
