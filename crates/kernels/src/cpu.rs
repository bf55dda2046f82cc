//! Which instruction sets the kernels use.

use core::sync::atomic::{AtomicU8, Ordering};

/// An instruction-set level, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What the compiler may assume for the target.
    Portable = 1,
    /// AArch64 with Advanced SIMD, which all of its processors have (Graviton, Ampere, Apple).
    Neon = 2,
    /// x86-64 with AVX2, BMI1, BMI2 and POPCNT (Haswell, Zen 1).
    Avx2 = 3,
    /// … and AVX-512 F, BW, DQ, VL, VBMI, VBMI2 and VPOPCNTDQ (Ice Lake, Zen 4).
    Avx512 = 4,
}

/// The levels of this architecture, lowest first.
#[cfg(target_arch = "x86_64")]
const LEVELS: &[Level] = &[Level::Portable, Level::Avx2, Level::Avx512];
#[cfg(target_arch = "aarch64")]
const LEVELS: &[Level] = &[Level::Portable, Level::Neon];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const LEVELS: &[Level] = &[Level::Portable];

/// 0 until the processor was queried; then a `Level` that it has. Written only by `detect` and, downwards, by
/// `hold_to`.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level in use.
#[inline]
#[must_use]
pub fn level() -> Level {
    isa().level()
}

/// The levels that this processor has, lowest first.
pub fn levels() -> impl Iterator<Item = Level> {
    let most = detect().0;
    LEVELS.iter().copied().take_while(move |&level| level <= most)
}

/// Limits the kernels of this process to `most`, or to what the processor has if that is less: for comparisons, and
/// for hosts that prefer not to run AVX-512. Affects calls that start later; never changes a result.
pub fn hold_to(most: Level) {
    let level = levels().take_while(|&level| level <= most).last().unwrap_or(Level::Portable);
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
        levels().map(Self).collect()
    }
}

/// The level in use, with its proof.
#[inline]
pub(crate) fn isa() -> Isa {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Isa(Level::Portable),
        2 => Isa(Level::Neon),
        3 => Isa(Level::Avx2),
        4 => Isa(Level::Avx512),
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

/// Advanced SIMD need not be detected: the target has it, or (a kernel's "soft float") no program does.
#[cfg(all(target_arch = "aarch64", not(miri)))]
fn detect() -> Isa {
    Isa(if cfg!(target_feature = "neon") { Level::Neon } else { Level::Portable })
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn detect() -> Isa {
    Isa(Level::Portable)
}

/// Runs one of the calls by level. Of instruction sets that the architecture does not have, none is compiled; a kernel without an arm for
/// NEON runs the portable form there, which the compiler turns into the same instructions, or for which there are none.
///
/// The arms above the portable one are `unsafe` calls of `#[target_feature]` functions. The `Isa` proves that the features are available;
/// any further contract of the callee must be proved in a comment above the macro's use.
macro_rules! dispatch {
    ($isa:expr, avx512: $a512:expr, avx2: $a2:expr, $(neon: $neon:expr,)? portable: $portable:expr $(,)?) => {
        match $isa.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the `Isa` proves the features; see the comment above the use for the rest.
            $crate::cpu::Level::Avx512 => unsafe { $a512 },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            $crate::cpu::Level::Avx2 => unsafe { $a2 },
            $(
                #[cfg(target_arch = "aarch64")]
                // SAFETY: as above.
                $crate::cpu::Level::Neon => unsafe { $neon },
            )?
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
        assert!(levels().is_sorted() && levels().last() == Some(detect().0));
    }

    #[test]
    fn a_level_of_another_architecture_is_the_highest_below_it() {
        // Other tests may run meanwhile: they get the same results at any level.
        for most in [Level::Portable, Level::Neon, Level::Avx2, Level::Avx512] {
            hold_to(most);
            assert!(level() <= most && levels().any(|known| known == level()));
        }
        assert_eq!(Some(level()), levels().last());
    }
}
