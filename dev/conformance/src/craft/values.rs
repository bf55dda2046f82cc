//! Values as pages hold them: each encoding written out plainly, beside which the engine's own may be seen.

use super::{i64_of, length_i32, varint, zigzag};

/// PLAIN INT32.
pub fn plain_i32(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// PLAIN INT64.
pub fn plain_i64(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// PLAIN BYTE_ARRAY.
pub fn plain_bytes<B: AsRef<[u8]>>(values: impl IntoIterator<Item = B>) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        out.extend(length_i32(value.as_ref()).to_le_bytes());
        out.extend(value.as_ref());
    }
    out
}

/// A repeated run of the hybrid encoding.
pub fn repeated_run(count: u64, value: u32, width: u32) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, count << 1);
    out.extend(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
    out
}

/// A bit-packed run of the hybrid encoding; its last group is padded with zeros.
pub fn packed_run(values: &[u32], width: u32) -> Vec<u8> {
    let groups = values.len().div_ceil(8);
    let mut out = Vec::new();
    varint(&mut out, (groups as u64) << 1 | 1);
    out.extend(pack(values.iter().map(|&value| value.into()), groups * 8, width));
    out
}

/// Numbers in `width` bits each, padded to `count` numbers, least significant bit first.
fn pack(values: impl Iterator<Item = u64>, count: usize, width: u32) -> Vec<u8> {
    let width = width as usize;
    let mut out = vec![0u8; (count * width).div_ceil(8)];
    for (number, value) in values.enumerate() {
        for bit in 0..width {
            let at = number * width + bit;
            out[at / 8] |= u8::from(value >> bit & 1 == 1) << (at % 8);
        }
    }
    out
}

/// Definition levels of a flat column, as V2 holds them.
pub fn levels(is_there: &[bool]) -> Vec<u8> {
    packed_run(&is_there.iter().map(|&there| there.into()).collect::<Vec<u32>>(), 1)
}

/// Bytes with their length before them: levels as V1 holds them.
pub fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&length_i32(bytes).to_le_bytes(), bytes].concat()
}

/// DELTA_BINARY_PACKED.
///
/// # Panics
///
/// For blocks that the format does not have.
pub fn delta(values: &[i64], block: usize, miniblocks: usize) -> Vec<u8> {
    let mini_values = block / miniblocks;
    assert!(block.is_multiple_of(128) && mini_values.is_multiple_of(32), "no legal block");
    let mut out = Vec::new();
    varint(&mut out, block as u64);
    varint(&mut out, miniblocks as u64);
    varint(&mut out, values.len() as u64);
    zigzag(&mut out, values.first().copied().unwrap_or(0));
    let deltas: Vec<i64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    for deltas in deltas.chunks(block) {
        let min = deltas.iter().copied().min().unwrap_or(0);
        zigzag(&mut out, min);
        let above: Vec<u64> = deltas.iter().map(|delta| delta.wrapping_sub(min).cast_unsigned()).collect();
        let width = |mini: &[u64]| u64::BITS - mini.iter().fold(0, |all, value| all | value).leading_zeros();
        let minis: Vec<&[u64]> = above.chunks(mini_values).collect();
        out.extend((0..miniblocks).map(|at| minis.get(at).map_or(0, |mini| width(mini).to_le_bytes()[0])));
        for mini in minis {
            out.extend(pack(mini.iter().copied(), mini_values, width(mini)));
        }
    }
    out
}

/// DELTA_LENGTH_BYTE_ARRAY.
pub fn delta_length<B: AsRef<[u8]>>(values: &[B]) -> Vec<u8> {
    let lengths: Vec<i64> = values.iter().map(|value| i64_of(value.as_ref().len())).collect();
    let mut out = delta(&lengths, 128, 4);
    values.iter().for_each(|value| out.extend(value.as_ref()));
    out
}

/// DELTA_BYTE_ARRAY, with the longest prefixes there are.
pub fn delta_byte_array<B: AsRef<[u8]>>(values: &[B]) -> Vec<u8> {
    let (mut prefixes, mut suffixes, mut last) = (Vec::new(), Vec::new(), &[][..]);
    for value in values.iter().map(AsRef::as_ref) {
        let prefix = value.iter().zip(last).take_while(|(a, b)| a == b).count();
        prefixes.push(i64_of(prefix));
        suffixes.push(&value[prefix..]);
        last = value;
    }
    [delta(&prefixes, 128, 4), delta_length(&suffixes)].concat()
}
