//! What text is read as, besides the values that [`marquetry_base::parse`] reads: which forms are taken for numbers.

pub(crate) use marquetry_base::parse::{
    Timestamp, blob, boolean, date, decimal, double, float, hex, hex_byte, integer, interval, time, time_in,
    timestamp, unsigned, uuid,
};
use marquetry_parquet::scalar::int96_of_nanos;
use marquetry_parquet::schema::TimeUnit;

/// Maximum bytes of a value other than text and blobs: a longer one is invalid. So a value is parsed in one go.
pub(crate) const VALUE_BYTES_MAX: usize = 16 << 10;

/// The integer that a JSON number is: `None` for one with a fraction or an exponent, and for -0, which only a binary64
/// can hold; `Some(None)` for one beyond 64 bits.
pub(crate) fn json_integer(number: &[u8]) -> Option<Option<i64>> {
    let is_integer = number != b"-0" && !number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    is_integer.then(|| integer(number))
}

/// Whether a number is in canonical form: neither `07` nor `+7`, which would lose something.
#[inline]
pub(crate) fn is_canonical(text: &[u8]) -> bool {
    match text {
        b"0" => true,
        [b'0' | b'+', ..] | [b'-', b'0', ..] => false,
        _ => true,
    }
}

/// Whether it is an integer or a decimal fraction, optionally with an exponent, in the usual form: not `007.5`, `5.`,
/// `+1` or `NaN`.
pub(crate) fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    if whole > 1 && rest[0] == b'0' {
        return false;
    }
    rest = &rest[whole..];
    let mut has_fraction = false;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        has_fraction = true;
        rest = &fraction[length..];
    }
    if whole == 0 && !has_fraction {
        return false;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

/// Whether a number that [`double`] accepts has the form that [`is_number`] requires, which costs more to check.
#[inline]
pub(crate) fn is_usual(text: &[u8]) -> bool {
    let bare = text.strip_prefix(b"-").unwrap_or(text);
    let begins = match bare {
        [b'0', second, ..] => !second.is_ascii_digit(),
        [first, ..] => first.is_ascii_digit() || *first == b'.',
        [] => false,
    };
    // A point must be followed by a digit.
    let point = bare.iter().position(|byte| *byte == b'.');
    let is_point = point.is_none_or(|point| bare.get(point + 1).is_some_and(u8::is_ascii_digit));
    begins && is_point && bare.last().is_some_and(u8::is_ascii_digit)
}

/// Whether a number is too large for a binary64, which only those with an exponent or very many digits can be.
pub(crate) fn is_too_large(number: &[u8]) -> bool {
    const DIGITS_HELD: usize = 300;
    (number.len() > DIGITS_HELD || number.iter().any(|byte| matches!(byte, b'e' | b'E')))
        && double(number).is_none()
}

/// A local time in the deprecated type of twelve bytes. `None` for an instant.
pub(crate) fn int96(time: Timestamp) -> Option<[u8; 12]> {
    let nanos = i128::from(time.seconds) * i128::from(TimeUnit::Nanos.per_second()) + i128::from(time.nanos);
    time.offset.is_none().then(|| int96_of_nanos(nanos)).flatten()
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn canonical_integers() {
        for (text, is) in
            [("0", true), ("10", true), ("-1", true), ("-0", false), ("07", false), ("+7", false)]
        {
            assert_eq!(is_canonical(text.as_bytes()), is, "{text}");
        }
    }

    #[test]
    fn numbers() {
        for text in ["0", "1.5", "-0.34188034188034", "1e5", "1.5E-10", ".5", "-.5", "10", "0.0", "2e+3"] {
            assert!(is_number(text.as_bytes()), "{text}");
            assert!(double(text.as_bytes()).is_some(), "{text}");
        }
        for text in
            ["", "-", ".", "5.", "007.5", "00", "+1", "NaN", "inf", "1e", "1e+", "1.5.2", "0x10", "1 "]
        {
            assert!(!is_number(text.as_bytes()), "{text}");
        }
    }

    /// Texts of the characters that numbers consist of.
    #[test]
    fn usual_numbers_are_those() {
        let mut state = 1_u64;
        let mut numbers = 0;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut rest = state >> 20;
            let text: String = (0..1 + rest % 7)
                .map(|_| {
                    rest /= 11;
                    ["0", "1", "9", "5", "-", "+", ".", "e", "E", "inf", "0"]
                        [usize::try_from(rest % 11).unwrap()]
                })
                .collect();
            let text = text.as_bytes();
            let is_held = is_number(text) && !is_too_large(text);
            assert_eq!(double(text).is_some() && is_usual(text), is_held, "{text:?}");
            numbers += usize::from(is_number(text));
        }
        assert!(numbers > 10_000);
    }
}
