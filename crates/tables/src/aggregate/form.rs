//! Values in the forms by which they make groups, and are compared.

use std::borrow::Cow;

use marquetry_base::twos_complement::shortest;
use marquetry_parquet::prune::Order;
use marquetry_parquet::schema::PhysicalType;

/// A value that makes a group, PLAIN, in the form in which equal values have equal bytes: there is one NaN, −0 is 0, and decimals have no bytes
/// that only repeat the sign.
pub(super) fn canonical(order: Order, physical_type: PhysicalType, bytes: &[u8]) -> Cow<'_, [u8]> {
    match (Float::of(order, bytes), order, physical_type) {
        (Some(float), ..) if float.is_nan() => float.bytes(float.quiet_nan),
        (Some(float), ..) if float.magnitude == 0 => float.bytes(0),
        (None, Order::Decimal, PhysicalType::ByteArray) => Cow::Borrowed(shortest(bytes)),
        _ => Cow::Borrowed(bytes),
    }
}

/// A value that is compared, PLAIN: NaN has no sign, so that each is after all numbers.
pub(super) fn compared(order: Order, bytes: &[u8]) -> Cow<'_, [u8]> {
    match Float::of(order, bytes) {
        Some(float) if float.is_nan() => float.bytes(float.magnitude),
        _ => Cow::Borrowed(bytes),
    }
}

/// The bits of a floating-point number.
struct Float {
    /// Without its sign.
    magnitude: u64,
    /// Infinity, beyond which is NaN.
    infinity: u64,
    quiet_nan: u64,
    width: usize,
}

impl Float {
    fn of(order: Order, bytes: &[u8]) -> Option<Float> {
        let (width, infinity, quiet_nan) = match order {
            Order::Float16Total => (2, 0x7c00, 0x7e00),
            Order::FloatTotal => (4, 0x7f80_0000, 0x7fc0_0000),
            Order::DoubleTotal => (8, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000),
            _ => return None,
        };
        let mut all = [0; 8];
        all.get_mut(..width)?.copy_from_slice(bytes.get(..width)?);
        let sign = 1_u64 << (8 * width - 1);
        Some(Float { magnitude: u64::from_le_bytes(all) & !sign, infinity, quiet_nan, width })
    }

    fn is_nan(&self) -> bool {
        self.magnitude > self.infinity
    }

    fn bytes(&self, bits: u64) -> Cow<'static, [u8]> {
        Cow::Owned(bits.to_le_bytes().into_iter().take(self.width).collect())
    }
}
