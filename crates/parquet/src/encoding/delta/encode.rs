//! Writing DELTA_BINARY_PACKED.

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Price, Result, cast};
use marquetry_kernels::{differences, pack};

use super::super::output::{Body, Output};
use super::super::{VARINT_BYTES_MAX, put_varint, to_zigzag};

/// The price of a value.
pub(crate) const VALUE_PRICE: Price = Price::per_kilovalue(2 << 10);

/// Parts of a block, each with its own width.
const MINIBLOCKS: usize = 4;

/// Values of the largest block.
pub(crate) const BLOCK_MAX: usize = 256;

/// Values that are written between two checks of the budget.
const SLICE: usize = 16 * BLOCK_MAX;

/// Bytes of a stream's header: sizes of a block (two bytes) and of its parts (one), the number of values, the first value.
const HEADER_BYTES_MAX: usize = 3 + 2 * VARINT_BYTES_MAX;

/// Bytes after the bit-packed ones that make bit-packing faster.
const SLACK: usize = 16;

/// An integer that can be delta-encoded.
pub(crate) trait DeltaValue: Copy + Default {
    /// A difference, minus the smallest one.
    type Packed: Copy + Default;

    /// Values of a block, as Arrow C++ and parquet-rs choose for the type.
    const BLOCK: usize;

    /// The value, or a difference: those wrap around at the type's width, as in all readers.
    fn to_i64(self) -> i64;

    /// Computes differences, the first one to `before`, minus the smallest, which is returned.
    fn differences(before: Self, values: &[Self], out: &mut [Self::Packed]) -> Option<Self>;

    /// The bits that the differences need.
    fn width(packed: &[Self::Packed]) -> u32;

    /// Bit-packs differences; false if there is no room.
    fn pack(width: u32, packed: &[Self::Packed], out: &mut [u8]) -> bool;
}

macro_rules! delta_value {
    ($signed:ident, $unsigned:ident, $width:ident, $block:literal) => {
        impl DeltaValue for $signed {
            type Packed = $unsigned;

            const BLOCK: usize = $block;

            fn to_i64(self) -> i64 {
                self.into()
            }

            fn differences(before: $signed, values: &[$signed], out: &mut [$unsigned]) -> Option<$signed> {
                differences::$signed(before, values, out).ok()
            }

            fn width(packed: &[$unsigned]) -> u32 {
                differences::$width(packed)
            }

            fn pack(width: u32, packed: &[$unsigned], out: &mut [u8]) -> bool {
                pack::$unsigned(width, packed, out).is_ok()
            }
        }
    };
}
delta_value!(i32, u32, width_u32, 128);
delta_value!(i64, u64, width_u64, 256);

/// An encoder of one delta-encoded stream.
#[derive(Debug)]
pub(crate) struct DeltaEncoder<T> {
    out: Output,
    values: u64,
    first: T,
    /// The last value that was written.
    last: T,
    /// Values after it that do not fill a block yet.
    open: Vec<T>,
}

impl<T: DeltaValue> Default for DeltaEncoder<T> {
    fn default() -> DeltaEncoder<T> {
        DeltaEncoder {
            out: Output::default(),
            values: 0,
            first: T::default(),
            last: T::default(),
            open: Vec::new(),
        }
    }
}

impl<T: DeltaValue> DeltaEncoder<T> {
    /// Bytes, if it ended here, about.
    pub(crate) fn bytes(&self) -> usize {
        // Those of the open block are assumed to take as many as the others.
        let open = (self.out.len() * self.open.len()).checked_div(usize::try_from(self.values).unwrap_or(0));
        self.out.len() + open.unwrap_or(0) + HEADER_BYTES_MAX / 2
    }

    /// Takes as many values as the budget pays for, and returns how many.
    pub(crate) fn put(&mut self, values: &[T], budget: &mut Budget<'_>) -> Result<usize> {
        let mut done = 0;
        while done < values.len() {
            let now = &values[done..values.len().min(done + SLICE)];
            budget.charge(VALUE_PRICE, 0, now.len());
            self.put_slice(now)?;
            done += now.len();
            if budget.is_spent() {
                break;
            }
        }
        Ok(done)
    }

    /// Takes a few thousand values.
    pub(crate) fn put_slice(&mut self, mut values: &[T]) -> Result<()> {
        if let (0, Some((&first, rest))) = (self.values, values.split_first()) {
            (self.first, self.last, self.values) = (first, first, 1);
            self.out.leave_head(HEADER_BYTES_MAX)?;
            values = rest;
        }
        self.values += cast::u64_of(values.len());
        if !self.open.is_empty() {
            let (now, later) = values.split_at(values.len().min(T::BLOCK - self.open.len()));
            self.open.extend_from_slice(now);
            values = later;
            if self.open.len() < T::BLOCK {
                return Ok(());
            }
            let mut open = core::mem::take(&mut self.open);
            self.block(&open)?;
            open.clear();
            self.open = open;
        }
        let mut blocks = values.chunks_exact(T::BLOCK);
        for block in &mut blocks {
            self.block(block)?;
        }
        let rest = blocks.remainder();
        if !rest.is_empty() {
            let room = self.open.try_reserve_exact(T::BLOCK);
            room.map_err(|_| Error::out_of_memory(T::BLOCK * size_of::<T>()))?;
            self.open.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Ends the stream; the encoder is ready for the next.
    pub(crate) fn finish(&mut self) -> Result<Body> {
        let mut open = core::mem::take(&mut self.open);
        if !open.is_empty() {
            self.block(&open)?;
            open.clear();
        }
        if self.values == 0 {
            self.out.leave_head(HEADER_BYTES_MAX)?;
        }
        let mut header = [0; HEADER_BYTES_MAX];
        let mut length = 0;
        for number in [T::BLOCK as u64, MINIBLOCKS as u64, self.values, to_zigzag(self.first.to_i64())] {
            let mut bytes = [0; VARINT_BYTES_MAX];
            let more = put_varint(&mut bytes, number);
            header[length..length + more].copy_from_slice(&bytes[..more]);
            length += more;
        }
        let body = self.out.finish(&header[..length])?;
        *self = DeltaEncoder { open, ..DeltaEncoder::default() };
        Ok(body)
    }

    /// Writes a block, or the values that are left for the last one.
    fn block(&mut self, values: &[T]) -> Result<()> {
        let miniblock = T::BLOCK / MINIBLOCKS;
        let mut packed = [T::Packed::default(); BLOCK_MAX];
        let there = &mut packed[..values.len()];
        let min = T::differences(self.last, values, there);
        let min = min.ok_or_else(|| Error::internal("more values than a block has"))?;
        self.last = values.last().copied().unwrap_or(self.last);
        let mut start = [0; VARINT_BYTES_MAX + MINIBLOCKS];
        let mut number = [0; VARINT_BYTES_MAX];
        let widths = put_varint(&mut number, to_zigzag(min.to_i64()));
        start[..widths].copy_from_slice(&number[..widths]);
        // Parts after the last value have the width 0, and no bytes; the last one is padded.
        let parts = packed.chunks_exact(miniblock).take(values.len().div_ceil(miniblock));
        let mut bytes = 0;
        for (width, part) in start[widths..].iter_mut().zip(parts.clone()) {
            *width = cast::low_u8(T::width(part).into());
            bytes += usize::from(*width) * miniblock / 8;
        }
        let start_bytes = widths + MINIBLOCKS;
        let mut room = self.out.room(start_bytes + bytes + SLACK)?;
        room[..start_bytes].copy_from_slice(&start[..start_bytes]);
        room = &mut room[start_bytes..];
        for (&width, part) in start[widths..].iter().zip(parts) {
            if !T::pack(width.into(), part, room) {
                return Err(Error::internal("no room for packed differences"));
            }
            room = &mut room[usize::from(width) * miniblock / 8..];
        }
        self.out.give_back(SLACK);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Delta, DeltaInteger, StreamEnd};
    use super::*;
    use alloc::vec;
    use core::fmt::Debug;
    use marquetry_base::Bytes;

    fn encode<T: DeltaValue>(values: &[T], slice: usize) -> Vec<u8> {
        let mut encoder = DeltaEncoder::default();
        let mut bytes = Vec::new();
        // Twice: the second page is as the first.
        for _ in 0..2 {
            for values in values.chunks(slice) {
                let mut done = 0;
                while done < values.len() {
                    done += encoder.put(&values[done..], &mut Budget::new(0)).unwrap();
                }
            }
            let page = encoder.finish().unwrap().pieces().concat();
            assert!(bytes.is_empty() || bytes == page);
            bytes = page;
        }
        bytes
    }

    fn check<T: DeltaValue + DeltaInteger + PartialEq + Debug>(values: &[T]) -> usize {
        let bytes = encode(values, usize::MAX);
        let mut decoder = Delta::new(Bytes::from(bytes.clone()).into()).unwrap();
        let mut out = vec![T::default(); values.len()];
        assert_eq!(decoder.decode(&mut out).unwrap(), values.len());
        assert_eq!(out, values);
        assert_eq!(decoder.left(), 0);
        let mut end = StreamEnd::new(&Bytes::from(bytes.clone()).into()).unwrap();
        assert_eq!(end.step(&mut 0).unwrap(), Some(bytes.len()), "nothing is left behind the last value");
        for slice in [1, 31, 32, 127, 128, 129, 255, 256, 1000] {
            assert_eq!(encode(values, slice), bytes, "{} values by {slice}", values.len());
        }
        bytes.len()
    }

    const LENGTHS: [usize; 20] =
        [0, 1, 2, 31, 32, 33, 34, 64, 65, 66, 127, 128, 129, 130, 160, 256, 257, 258, 385, 10_000];

    #[test]
    fn values_come_back_around_all_borders() {
        let mut state = 88_172_645_463_325_252u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.cast_signed()
        };
        for length in LENGTHS {
            let equal = check(&vec![-5i64; length]);
            assert!(equal <= 8 + length.div_ceil(i64::BLOCK) * 5, "{equal} bytes for {length} equal values");
            check(&(0..length).map(|at| if at % 2 == 0 { i64::MIN } else { i64::MAX }).collect::<Vec<_>>());
            check(&(0..length).map(|at| if at % 2 == 0 { i32::MIN } else { i32::MAX }).collect::<Vec<_>>());
            for shift in [0, 1, 7, 31, 32, 40, 57, 63] {
                let values: Vec<i64> = (0..length).map(|_| next() >> shift).collect();
                let bytes = check(&values);
                assert!(bytes <= 23 + length.div_ceil(i64::BLOCK) * 14 + length.div_ceil(64) * 64 * 8);
                let narrow: Vec<i32> = values.iter().map(|&value| i32::from_i64(value)).collect();
                let bytes = check(&narrow);
                // Differences are held to 32 bits.
                assert!(bytes <= 23 + length.div_ceil(i32::BLOCK) * 9 + length.div_ceil(32) * 32 * 4);
            }
        }
    }

    #[test]
    fn the_document_has_these() {
        // 1 to 5, and 7 5 3 1 2 3 4 5: differences -2 -2 -2 1 1 1 1, the smallest -2, the others 0 and 3.
        assert_eq!(encode(&[1i32, 2, 3, 4, 5], 9), [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        let bytes = encode(&[7i64, 5, 3, 1, 2, 3, 4, 5], 9);
        let packed = [0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes, [&[128, 2, 4, 8, 14, 3, 2, 0, 0, 0][..], &packed].concat());
    }
}
