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
    /// x86-64 with AVX2, BMI1, BMI2, PCLMULQDQ and POPCNT (Haswell, Zen 1).
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

/// 0 until the processor was queried; then the code of an `Isa` that it has. Written only by `first`, over a 0, and by `hold_to`.
static ISA: AtomicU8 = AtomicU8::new(0);

/// The level in use.
#[inline]
#[must_use]
pub fn level() -> Level {
    isa().level()
}

/// The levels that this processor has, lowest first.
pub fn levels() -> impl Iterator<Item = Level> {
    let most = detect().level;
    LEVELS.iter().copied().take_while(move |&level| level <= most)
}

/// Limits the kernels of this process to `most`, or to what the processor has if that is less: for comparisons, and
/// for hosts that prefer not to run AVX-512. Affects calls that start later; never changes a result.
pub fn hold_to(most: Level) {
    let level = levels().take_while(|&level| level <= most).last().unwrap_or(Level::Portable);
    ISA.store(Isa { level, ..detect() }.code(), Ordering::Relaxed);
}

/// A level that this processor is known to have.
///
/// The fields are private to this module and only detection creates a value: holding an `Isa` above `Portable` *is* the
/// proof that its instructions may be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa {
    level: Level,
    slow_pext: bool,
}

/// In a code: `slow_pext`.
const SLOW_PEXT: u8 = 0x80;

impl Isa {
    #[inline]
    pub(crate) fn level(self) -> Level {
        self.level
    }

    /// Whether `pext` and `pdep`, though the processor has them, are loops of microcode that take tens or hundreds of cycles, as the bits
    /// are, where others take three (Fog, "Instruction tables", Zen 2 and Zen 3).
    #[inline]
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn slow_pext(self) -> bool {
        self.slow_pext
    }

    #[inline]
    fn code(self) -> u8 {
        self.level as u8 | if self.slow_pext { SLOW_PEXT } else { 0 }
    }

    /// Every level this processor has, for tests; AVX2 also as if its `pext` were slow.
    #[cfg(test)]
    pub(crate) fn all() -> std::vec::Vec<Self> {
        let slow = levels().find(|&level| level == Level::Avx2).map(|level| Self { level, slow_pext: true });
        levels().map(|level| Self { level, slow_pext: false }).chain(slow).collect()
    }
}

/// The level in use, with its proof.
#[inline]
pub(crate) fn isa() -> Isa {
    let code = ISA.load(Ordering::Relaxed);
    let level = match code & !SLOW_PEXT {
        1 => Level::Portable,
        2 => Level::Neon,
        3 => Level::Avx2,
        4 => Level::Avx512,
        _ => return first(),
    };
    Isa { level, slow_pext: code & SLOW_PEXT != 0 }
}

/// What `hold_to` has stored meanwhile, stays.
#[cold]
fn first() -> Isa {
    let isa = detect();
    match ISA.compare_exchange(0, isa.code(), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => isa,
        Err(_) => self::isa(),
    }
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
    let level = if !has!("avx2", "bmi1", "bmi2", "pclmulqdq", "popcnt") {
        return PORTABLE;
    } else if !has!(
        "avx512f",
        "avx512bw",
        "avx512dq",
        "avx512vl",
        "avx512vbmi",
        "avx512vbmi2",
        "avx512vpopcntdq"
    ) {
        Level::Avx2
    } else {
        Level::Avx512
    };
    // All that have AVX-512 are newer.
    Isa { level, slow_pext: level == Level::Avx2 && is_before_zen_3() }
}

/// AMD's processors with AVX2 before Zen 3, and Hygon's, which are of Zen 1.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn is_before_zen_3() -> bool {
    use core::arch::x86_64::__cpuid;

    /// The family of Zen 3 (AMD64 Architecture Programmer's Manual, volume 3, "CPUID Fn0000_0001").
    const ZEN_3: u32 = 0x19;
    // SAFETY: every processor of the architecture has the instruction. (Newer compilers take it for safe.)
    #[allow(unused_unsafe)]
    let (maker, family) = unsafe { (__cpuid(0), __cpuid(1).eax) };
    let name = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
    let base = family >> 8 & 0xf;
    let family = if base == 0xf { base + (family >> 20 & 0xff) } else { base };
    matches!(name.as_flattened(), b"AuthenticAMD" | b"HygonGenuine") && family < ZEN_3
}

/// Advanced SIMD need not be detected: the target has it, or (a kernel's "soft float") no program does.
#[cfg(all(target_arch = "aarch64", not(miri)))]
fn detect() -> Isa {
    if cfg!(target_feature = "neon") { Isa { level: Level::Neon, ..PORTABLE } } else { PORTABLE }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn detect() -> Isa {
    PORTABLE
}

const PORTABLE: Isa = Isa { level: Level::Portable, slow_pext: false };

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
        assert!(all.iter().any(|known| known.level() == isa().level()));
        assert!(level() <= detect().level);
        assert!(levels().is_sorted() && levels().last() == Some(detect().level));
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
