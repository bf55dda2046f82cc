//! The portable twins.

macro_rules! portable {
    ($name:ident, $signed:ty, $unsigned:ty) => {
        #[inline(always)]
        pub(super) fn $name(before: $signed, values: &[$signed], out: &mut [$unsigned]) -> $signed {
            let (Some((&first, rest)), Some((to, others))) = (values.split_first(), out.split_first_mut())
            else {
                return 0;
            };
            let delta = first.wrapping_sub(before);
            *to = delta as $unsigned;
            let mut min = delta;
            for ((to, &value), &before) in others.iter_mut().zip(rest).zip(values) {
                let delta = value.wrapping_sub(before);
                *to = delta as $unsigned;
                min = min.min(delta);
            }
            for to in out {
                *to = to.wrapping_sub(min as $unsigned);
            }
            min
        }
    };
}
portable!(i32, i32, u32);
portable!(i64, i64, u64);
