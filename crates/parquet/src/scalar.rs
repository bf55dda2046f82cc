//! Values of types that Rust lacks, for printing and conversion: INT96 and FLOAT16.

/// Nanoseconds of a day.
const DAY_NANOS: i128 = 86_400_000_000_000;
/// 1970-01-01 as a Julian day.
const UNIX_EPOCH_JULIAN_DAY: i128 = 2_440_588;

/// An INT96 timestamp as nanoseconds since 1970-01-01 00:00.
///
/// It consists of the nanoseconds in the day (in some files more than a day's, or negative) and the Julian day.
///
/// Spark counts microseconds in 64 bits, which overflow for its last 6,682 years. So it writes the year 290000 as a
/// Julian day before −105 million, and reads that back by overflowing again; this function does the same. No other time
/// is written like this: the days of its first years begin where those end.
#[must_use]
pub fn int96_nanos(bytes: [u8; 12]) -> i128 {
    let (nanos, day) = int96_parts(bytes);
    let since_epoch = (i128::from(day) - UNIX_EPOCH_JULIAN_DAY) * DAY_NANOS + i128::from(nanos);
    let (first, overflow) = (i128::from(i64::MIN) * 1000, (1 << 64) * 1000);
    let is_overflown = (first - UNIX_EPOCH_JULIAN_DAY * DAY_NANOS..first).contains(&since_epoch);
    if is_overflown { since_epoch + overflow } else { since_epoch }
}

/// An INT96 timestamp's nanoseconds in the day and Julian day, as stored.
#[must_use]
pub fn int96_parts(bytes: [u8; 12]) -> (i64, i32) {
    let [a, b, c, d, e, f, g, h, day @ ..] = bytes;
    (i64::from_le_bytes([a, b, c, d, e, f, g, h]), i32::from_le_bytes(day))
}

/// A binary16 as the binary32 that is exactly equal (IEEE 754; a NaN keeps its sign and payload).
#[must_use]
pub fn float_of_half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), bits & 0x3ff);
    let magnitude = match exponent {
        // Zero and subnormals: a multiple of 2^-24, a product without rounding.
        0 => (f32::from(fraction) * f32::from_bits((127 - 24) << 23)).to_bits(),
        0x1f => 0xff << 23 | u32::from(fraction) << 13,
        // The biases are 15 and 127.
        _ => (exponent + 127 - 15) << 23 | u32::from(fraction) << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// The binary16 next to a binary32, ties to even. `None` for a finite number that is too large; a NaN keeps its sign and
/// the first bits of its payload.
#[must_use]
pub fn half_of_float(value: f32) -> Option<u16> {
    let bits = value.to_bits();
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let low = |bits: u32| u16::try_from(bits).ok();
    if value.is_nan() {
        let payload = bits >> 13 & 0x3ff;
        return low(sign | 0x7c00 | if payload == 0 { 0x200 } else { payload });
    }
    if value.is_infinite() {
        return low(sign | 0x7c00);
    }
    let (exponent, fraction) = (bits >> 23 & 0xff, bits & 0x7f_ffff);
    // The bits of the magnitude that stay, and how many are rounded off. The biases are 127 and 15.
    let (kept, dropped) = match exponent {
        113.. => ((exponent - 112) << 23 | fraction, 13),
        // A subnormal one: a multiple of 2^-24.
        102.. => (fraction | 0x80_0000, 126 - exponent),
        _ => return low(sign),
    };
    let (mut half, rest, middle) = (kept >> dropped, kept & ((1 << dropped) - 1), 1 << (dropped - 1));
    if rest > middle || (rest == middle && half & 1 == 1) {
        half += 1;
    }
    if half < 0x7c00 { low(sign | half) } else { None }
}

/// Nanoseconds since 1970-01-01 00:00 as an INT96 timestamp: the inverse of [`int96_nanos`] for days that Julian days of
/// 32 bits count.
#[must_use]
pub fn int96_of_nanos(nanos: i128) -> Option<[u8; 12]> {
    let day = i32::try_from(nanos.div_euclid(DAY_NANOS) + UNIX_EPOCH_JULIAN_DAY).ok()?;
    let in_day = i64::try_from(nanos.rem_euclid(DAY_NANOS)).ok()?;
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&in_day.to_le_bytes());
    bytes[8..].copy_from_slice(&day.to_le_bytes());
    (int96_nanos(bytes) == nanos).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_floats_are_the_nearest() {
        for half in 0..=u16::MAX {
            let float = float_of_half(half);
            let expected = if float.is_nan() && half & 0x3ff == 0 { half | 0x200 } else { half };
            assert_eq!(half_of_float(float), Some(expected), "{half:x}");
        }
        for (float, half) in [
            (1.0 + 1.0 / 2048.0, Some(0x3c00)),
            (1.0 + 3.0 / 2048.0, Some(0x3c02)),
            (1.0 + 1.1 / 2048.0, Some(0x3c01)),
            (65_519.0, Some(0x7bff)),
            (65_520.0, None),
            (-1e9, None),
            (2.9e-8, Some(0)),
            (3.0e-8, Some(1)),
            (-1e-30, Some(0x8000)),
            (6.100_5e-5, Some(0x03ff)),
            (6.100_6e-5, Some(0x0400)),
        ] {
            assert_eq!(half_of_float(float), half, "{float}");
        }
    }

    #[test]
    fn int96_both_ways() {
        for nanos in [0, -1, 1, 86_400_000_000_000, -62_135_596_800_000_000_000, 253_402_300_799_999_999_999]
        {
            assert_eq!(int96_of_nanos(nanos).map(int96_nanos), Some(nanos));
        }
        assert_eq!(int96_of_nanos(i128::from(i64::MAX) * 86_400_000_000_000), None);
    }

    #[test]
    fn halves_are_exact() {
        for (half, float) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65_504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x83ff, f32::from_bits(0xb87f_c000)),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
            (0x3555, f32::from_bits(0x3eaa_a000)),
        ] {
            assert_eq!(float_of_half(half).to_bits(), f32::to_bits(float), "{half:#x}");
        }
        assert_eq!(float_of_half(0x8000).to_bits(), (-0.0f32).to_bits());
        assert!(float_of_half(0x7e01).is_nan());
        // Every finite half, by its definition.
        for half in 0..0x7c00_u16 {
            let (exponent, fraction) = (i32::from(half >> 10), f64::from(half & 0x3ff));
            let expected = if exponent == 0 {
                fraction / f64::from(1 << 24)
            } else {
                (1.0 + fraction / 1024.0) * f64::from(1 << exponent) / f64::from(1 << 15)
            };
            assert_eq!(f64::from(float_of_half(half)), expected, "{half:#x}");
        }
    }

    #[test]
    fn int96_of_spark_overflows_back() {
        let int96 = |nanos: i64, day: i32| {
            let mut bytes = [0; 12];
            bytes[..8].copy_from_slice(&nanos.to_le_bytes());
            bytes[8..].copy_from_slice(&day.to_le_bytes());
            int96_nanos(bytes)
        };
        assert_eq!(int96(0, 2_440_588), 0);
        assert_eq!(int96(-1, 2_440_588), -1);
        assert_eq!(int96(1_000_000_001, 2_440_589), DAY_NANOS + 1_000_000_001);
        // The last microsecond that Spark supports, and the one after, which it writes as its first.
        let last = i128::from(i64::MAX) * 1000;
        let day = i32::try_from((last - (1 << 64) * 1000).div_euclid(DAY_NANOS) + UNIX_EPOCH_JULIAN_DAY);
        let nanos = i64::try_from((last - (1 << 64) * 1000).rem_euclid(DAY_NANOS));
        assert_eq!(int96(nanos.unwrap(), day.unwrap()), last);
        let first = i128::from(i64::MIN) * 1000;
        let day = i32::try_from(first.div_euclid(DAY_NANOS) + UNIX_EPOCH_JULIAN_DAY);
        assert_eq!(int96(i64::try_from(first.rem_euclid(DAY_NANOS)).unwrap(), day.unwrap()), first);
    }
}
