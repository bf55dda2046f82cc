//! The portable twins. `pack` makes a word of 64 bytes that are 0 or 1: [`bits::pack`](crate::bits::pack), or what is faster.

/// Numbers that a word of bits is of.
pub(super) const WORD: usize = u64::BITS as usize;

macro_rules! portable {
    ($name:ident, $number:ty, |$value:ident, $bounds:ident, $has_nan:ident| $is_in:expr) => {
        #[inline(always)]
        pub(super) fn $name(
            values: &[$number],
            $bounds: [$number; 2],
            $has_nan: bool,
            out: &mut [u64],
            pack: impl Fn(&[u8; WORD]) -> u64,
        ) {
            let (words, rest) = values.as_chunks::<WORD>();
            let word_of = |values: &[$number; WORD]| {
                let mut bytes = [0; WORD];
                for (byte, &$value) in bytes.iter_mut().zip(values) {
                    *byte = u8::from($is_in);
                }
                pack(&bytes)
            };
            for (word, values) in out.iter_mut().zip(words) {
                *word = word_of(values);
            }
            if let Some(last) = out.last_mut().filter(|_| !rest.is_empty()) {
                *last = 0;
                for (at, &$value) in rest.iter().enumerate() {
                    *last |= u64::from($is_in) << at;
                }
            }
        }
    };
}

portable!(i32, i32, |value, bounds, _has_nan| {
    let [first, last] = bounds;
    value.wrapping_sub(first) as u32 <= last.wrapping_sub(first) as u32
});
portable!(u32, u32, |value, bounds, _has_nan| (bounds[0] <= value) & (value <= bounds[1]));
portable!(i64, i64, |value, bounds, _has_nan| {
    let [first, last] = bounds;
    value.wrapping_sub(first) as u64 <= last.wrapping_sub(first) as u64
});
portable!(f32, f32, |value, bounds, has_nan| {
    ((bounds[0] <= value) & (value <= bounds[1])) | (has_nan & value.is_nan())
});
portable!(f64, f64, |value, bounds, has_nan| {
    ((bounds[0] <= value) & (value <= bounds[1])) | (has_nan & value.is_nan())
});
