//! 16 bytes on their way to a view, in the form that a processor has for them.

/// The longest value that is stored in its view.
pub const INLINE_MAX: usize = 12;

/// The length at `at`, by a load of its own: from a vector register it would arrive three cycles later, and the next
/// value's position waits for it.
///
/// # Safety
///
/// `at + LOAD <= input.len()`.
#[inline(always)]
pub(super) unsafe fn length(input: &[u8], at: usize) -> u32 {
    debug_assert!(at + LOAD <= input.len());
    // SAFETY: the caller's promise.
    unsafe { input.as_ptr().add(at).cast::<u32>().read_unaligned() }
}

/// Bytes loaded for a value, whatever its length.
pub(super) const LOAD: usize = 16;

/// What a view keeps of the 16 bytes at a value's length: for a length up to 12 the length and the data, and for all
/// longer ones (entry 13) the length and the prefix.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static KEEP: [Word; INLINE_MAX + 2] = {
    let mut keep = [Word::of(u64::MAX as u128); INLINE_MAX + 2];
    let mut len = 0;
    while len <= INLINE_MAX {
        keep[len] = Word::of(u128::MAX >> (96 - 8 * len));
        len += 1;
    }
    keep
};

#[cfg(target_arch = "x86_64")]
pub(super) use sse2::Word;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    //! SSE2, which every x86-64 has. (As a `u128`, a word is split into halves, with twice the instructions.)

    use crate::strings::word::{INLINE_MAX, KEEP, LOAD};
    use core::arch::x86_64::*;

    /// 16 bytes on their way to a view.
    #[derive(Clone, Copy)]
    pub(crate) struct Word(__m128i);

    impl Word {
        pub(crate) const fn of(bits: u128) -> Self {
            // SAFETY: both are 16 bytes without padding, and any bits are values of both.
            Self(unsafe { core::mem::transmute::<u128, __m128i>(bits) })
        }

        /// # Safety
        ///
        /// `at + LOAD <= bytes.len()`.
        #[inline(always)]
        pub(crate) unsafe fn load(bytes: &[u8], at: usize) -> Self {
            debug_assert!(at + LOAD <= bytes.len());
            // SAFETY: the caller's promise.
            Self(unsafe { _mm_loadu_si128(bytes.as_ptr().add(at).cast()) })
        }

        /// The bytes moved up by four, with `len` below them: as in PLAIN.
        #[inline(always)]
        pub(crate) fn below(self, len: u32) -> Self {
            // SAFETY: every x86-64 has SSE2.
            Self(unsafe { _mm_or_si128(_mm_slli_si128::<4>(self.0), _mm_cvtsi32_si128(len as i32)) })
        }

        /// The view of a value whose length and first bytes these are. No branch distinguishes short from long: it
        /// would be unpredictable for mixed data.
        #[inline(always)]
        pub(crate) fn select(self, len: u32, place: u64) -> Self {
            let class = (len as usize).min(INLINE_MAX + 1);
            let place = if len as usize > INLINE_MAX { place } else { 0 };
            // SAFETY: every x86-64 has SSE2.
            Self(unsafe {
                let place = _mm_slli_si128::<8>(_mm_cvtsi64_si128(place as i64));
                _mm_or_si128(_mm_and_si128(self.0, KEEP[class].0), place)
            })
        }

        #[inline(always)]
        pub(crate) fn store(self, to: &mut u128) {
            // SAFETY: a `u128` is 16 bytes, written unaligned.
            unsafe { _mm_storeu_si128((&raw mut *to).cast(), self.0) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use neon::Word;

#[cfg(target_arch = "aarch64")]
mod neon {
    //! NEON, which AArch64's programs may use like any other instruction.

    use crate::strings::word::{INLINE_MAX, KEEP, LOAD};
    use core::arch::aarch64::*;

    /// 16 bytes on their way to a view.
    #[derive(Clone, Copy)]
    pub(crate) struct Word(uint8x16_t);

    impl Word {
        pub(crate) const fn of(bits: u128) -> Self {
            // SAFETY: both are 16 bytes without padding, and any bits are values of both.
            Self(unsafe { core::mem::transmute::<u128, uint8x16_t>(bits) })
        }

        /// # Safety
        ///
        /// `at + LOAD <= bytes.len()`.
        #[inline(always)]
        pub(crate) unsafe fn load(bytes: &[u8], at: usize) -> Self {
            debug_assert!(at + LOAD <= bytes.len());
            // SAFETY: the caller's promise.
            Self(unsafe { vld1q_u8(bytes.as_ptr().add(at)) })
        }

        /// The bytes moved up by four, with `len` below them: as in PLAIN.
        #[inline(always)]
        pub(crate) fn below(self, len: u32) -> Self {
            // SAFETY: NEON is part of the target.
            Self(unsafe { vextq_u8::<12>(vreinterpretq_u8_u32(vdupq_n_u32(len)), self.0) })
        }

        /// The view of a value whose length and first bytes these are, without a branch, as with SSE2.
        #[inline(always)]
        pub(crate) fn select(self, len: u32, place: u64) -> Self {
            let class = (len as usize).min(INLINE_MAX + 1);
            let place = if len as usize > INLINE_MAX { place } else { 0 };
            // SAFETY: NEON is part of the target.
            Self(unsafe {
                let place = vcombine_u8(vcreate_u8(0), vcreate_u8(place));
                vorrq_u8(vandq_u8(self.0, KEEP[class].0), place)
            })
        }

        #[inline(always)]
        pub(crate) fn store(self, to: &mut u128) {
            // SAFETY: a `u128` is 16 bytes.
            unsafe { vst1q_u8((&raw mut *to).cast(), self.0) }
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use portable::Word;

/// The twin of `sse2` and `neon`; compiled everywhere, so that the tests compare the two.
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) mod portable {
    use crate::strings::word::{INLINE_MAX, LOAD};

    /// 16 bytes on their way to a view.
    #[derive(Clone, Copy)]
    pub(crate) struct Word(u128);

    #[cfg_attr(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        allow(dead_code, reason = "only the tests' twin")
    )]
    impl Word {
        /// # Safety
        ///
        /// `at + LOAD <= bytes.len()`.
        #[inline(always)]
        pub(crate) unsafe fn load(bytes: &[u8], at: usize) -> Self {
            debug_assert!(at + LOAD <= bytes.len());
            // SAFETY: the caller's promise.
            Self(unsafe { bytes.as_ptr().add(at).cast::<u128>().read_unaligned() })
        }

        #[inline(always)]
        pub(crate) fn below(self, len: u32) -> Self {
            Self(self.0 << 32 | u128::from(len))
        }

        #[inline(always)]
        pub(crate) fn select(self, len: u32, place: u64) -> Self {
            // Two choices, each of a form that compiles to a conditional move.
            let class = (len as usize).min(INLINE_MAX);
            let inline = self.0 & u128::MAX >> (96 - 8 * class);
            let long = u128::from(self.0 as u64) | u128::from(place) << 64;
            Self(if len as usize > INLINE_MAX { long } else { inline })
        }

        #[inline(always)]
        pub(crate) fn store(self, to: &mut u128) {
            *to = self.0;
        }
    }
}
