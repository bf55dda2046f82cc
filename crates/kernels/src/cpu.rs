//! Which instruction sets the kernels use.

use core::sync::atomic::{AtomicU8, Ordering};

/// An instruction-set level, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What the compiler may assume for the target.
    Portable = 1,
    /// x86-64 with AVX2, BMI1, BMI2 and POPCNT (Haswell, Zen 1).
    Avx2 = 2,
    /// … and AVX-512 F, BW, DQ, VL, VBMI, VBMI2 and VPOPCNTDQ (Ice Lake, Zen 4).
    Avx512 = 3,
}

/// 0 until the processor was queried; then a `Level` that it has. Written only by `detect` and, downwards, by
/// `hold_to`.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level in use.
#[inline]
#[must_use]
pub fn level() -> Level {
    isa().level()
}

/// Limits the kernels of this process to `most`, or to what the processor has if that is less: for comparisons, and
/// for hosts that prefer not to run AVX-512. Affects calls that start later; never changes a result.
pub fn hold_to(most: Level) {
    let level = detect().0.min(most);
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// A level that this processor is known to have.
///
/// The field is private to this module and only detection creates a value: holding an `Isa` above `Portable` *is* the
/// proof that its instructions may be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(Level);

impl Isa {
    #[inline]
    pub(crate) fn level(self) -> Level {
        self.0
    }

    /// Every level this processor has, for tests.
    #[cfg(test)]
    pub(crate) fn all() -> std::vec::Vec<Self> {
        let most = detect().0;
        [Level::Portable, Level::Avx2, Level::Avx512].into_iter().filter(|&l| l <= most).map(Self).collect()
    }
}

/// The level in use, with its proof.
#[inline]
pub(crate) fn isa() -> Isa {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Isa(Level::Portable),
        2 => Isa(Level::Avx2),
        3 => Isa(Level::Avx512),
        _ => first(),
    }
}

#[cold]
fn first() -> Isa {
    let isa = detect();
    LEVEL.store(isa.0 as u8, Ordering::Relaxed);
    isa
}

/// Whether a feature is available: asked of the processor with `std`, else of the compiler's target.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! has {
    ($($feature:tt),+) => {{
        #[cfg(any(feature = "std", test))]
        { $(std::arch::is_x86_feature_detected!($feature))&&+ }
        #[cfg(not(any(feature = "std", test)))]
        { $(cfg!(target_feature = $feature))&&+ }
    }};
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn detect() -> Isa {
    if !has!("avx2", "bmi1", "bmi2", "popcnt") {
        return Isa(Level::Portable);
    }
    if !has!("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi", "avx512vbmi2", "avx512vpopcntdq") {
        return Isa(Level::Avx2);
    }
    Isa(Level::Avx512)
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn detect() -> Isa {
    Isa(Level::Portable)
}

/// Runs one of three calls by level. On processors without the instruction sets only the portable one is compiled.
///
/// The AVX arms are `unsafe` calls of `#[target_feature]` functions. The `Isa` proves that the features are available;
/// any further contract of the callee must be proved in a comment above the macro's use.
macro_rules! dispatch {
    ($isa:expr, avx512: $a512:expr, avx2: $a2:expr, portable: $portable:expr $(,)?) => {
        match $isa.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the `Isa` proves the features; see the comment above the use for the rest.
            $crate::cpu::Level::Avx512 => unsafe { $a512 },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            $crate::cpu::Level::Avx2 => unsafe { $a2 },
            _ => $portable,
        }
    };
}
pub(crate) use dispatch;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_portable_is_always_there() {
        assert!(Level::Portable < Level::Avx2 && Level::Avx2 < Level::Avx512);
        let all = Isa::all();
        assert_eq!(all[0].level(), Level::Portable);
        assert!(all.contains(&isa()));
        assert!(level() <= detect().0);
    }
}
