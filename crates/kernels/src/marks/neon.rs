//! Compares 16 bytes at a time.

use crate::neon::{load, mask};
use core::arch::aarch64::*;

#[target_feature(enable = "neon")]
pub(super) fn find(blocks: &[[u8; 64]], bytes: [u8; 4], out: &mut [[u64; 4]]) {
    let wanted = bytes.map(|byte| vdupq_n_u8(byte));
    for (block, masks) in blocks.iter().zip(out) {
        let block = load(block);
        *masks = wanted.map(|byte| mask(block.map(|part| vceqq_u8(part, byte))));
    }
}
