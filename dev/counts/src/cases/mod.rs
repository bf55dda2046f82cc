//! What is counted. All data are made from fixed seeds.

mod files;
mod kernels;

use std::io::Write;

use marquetry_kernels::cpu::{Level, hold_to, level};
use marquetry_kernels::crc32;

use crate::callgrind::counted_from_here;

/// Holds the kernels to AVX2, and says whether they are there: valgrind knows no AVX-512, and a count of portable
/// kernels is one of other code.
pub fn hold() -> bool {
    hold_to(Level::Avx2);
    level() == Level::Avx2
}

/// Runs each case once to warm it up and once to be counted, and prints its checksum and name.
///
/// # Errors
/// What a case fails with, and its name.
pub fn run() -> Result<(), String> {
    if !hold() {
        return Err("this processor lacks AVX2".to_owned());
    }
    let mut cases = Cases { printed: std::io::stdout().lock() };
    kernels::all(&mut cases)?;
    files::all(&mut cases)
}

/// What cases are reported to.
struct Cases {
    printed: std::io::StdoutLock<'static>,
}

impl Cases {
    /// A case that works on `input`, which stands for all that it is given.
    fn case<E: std::fmt::Display>(
        &mut self,
        name: &str,
        input: &[u8],
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<(), String> {
        let failed = |error: E| format!("{name}: {error}");
        work().map_err(failed)?;
        let mut done = Ok(());
        counted_from_here(&mut || done = work());
        done.map_err(failed)?;
        writeln!(self.printed, "{:08x} {name}", crc32(0, input)).map_err(|error| error.to_string())
    }
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below a bound, which is at most 2³².
    fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).take(count).collect()
    }
}
