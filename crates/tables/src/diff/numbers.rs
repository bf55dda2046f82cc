//! Numbers of any number of digits, which CQL's `decimal` and `varint` are, and which are text where Parquet has no type for them.

use marquetry_base::print::Digits;
use marquetry_scylla::cql::CqlType;
use marquetry_scylla::sstable::marshal::MarshalType;

use super::values::{Item, compare, digits_of};
use crate::Table;
use crate::described::columns_of;

/// Whether two values are equal, as numbers where both are: a text that is a number equals the same number however it is written, 12.5 and
/// 12.50, and the same integer or decimal.
pub(super) fn are_equal(a: Item<'_>, b: Item<'_>) -> bool {
    match (Plain::of(a), Plain::of(b)) {
        (Some(in_a), Some(in_b)) => in_a == in_b,
        _ => compare(a, b).is_eq(),
    }
}

/// A number in the one form that it has: digits without zeros around them, and how many zeros follow, or come before the first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Plain {
    fn of(item: Item<'_>) -> Option<Plain> {
        match item {
            Item::Bytes(text) => Plain::of_text(text),
            Item::Number(number) => {
                let (digits, scale): (Digits, i32) = digits_of(number)?;
                Some(Plain::of_digits(&digits, scale))
            }
            _ => None,
        }
    }

    /// Digits, so many of them after the point.
    pub(super) fn of_digits(digits: &Digits, scale: i32) -> Plain {
        Plain::new(digits.is_negative(), digits.as_slice().to_vec(), -i64::from(scale))
    }

    /// Appends it: equal numbers have equal bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_negative));
        out.extend(self.exponent.to_be_bytes());
        out.extend_from_slice(&self.digits);
    }

    /// `-12.50`, `7E-60`.
    fn of_text(text: &[u8]) -> Option<Plain> {
        let (number, exponent) = match text.iter().position(|byte| matches!(byte, b'E' | b'e')) {
            Some(at) => (&text[..at], std::str::from_utf8(&text[at + 1..]).ok()?.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (is_negative, number) = match number.strip_prefix(b"-") {
            Some(number) => (true, number),
            None => (false, number),
        };
        let mut parts = number.splitn(2, |byte| *byte == b'.');
        let (whole, fraction) = (parts.next()?, parts.next().unwrap_or_default());
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        Some(Plain::new(is_negative, digits, exponent))
    }

    fn new(is_negative: bool, mut digits: Vec<u8>, exponent: i64) -> Plain {
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        digits.truncate(digits.len() - zeros);
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..leading);
        match digits.is_empty() {
            true => Plain { is_negative: false, digits, exponent: 0 },
            false => {
                let zeros = i64::try_from(zeros).unwrap_or(i64::MAX);
                Plain { is_negative, digits, exponent: exponent.saturating_add(zeros) }
            }
        }
    }
}

/// Whether all that is text in a column are numbers, because the table that it is of has decimals or varints there.
pub(super) fn has_numbers_as_text(table: &Table, column: &str) -> bool {
    let Some(columns) = columns_of(table) else { return false };
    let keys = columns.partition_key.iter().chain(&columns.clustering);
    let of_key = keys.clone().find(|key| key.name == column).map(|key| &key.kind);
    let of_cells = columns.cells().find(|cell| *cell.name == *column.as_bytes()).map(|cell| &cell.kind);
    of_key.or(of_cells).is_some_and(|kind| texts_of(kind) == Texts::Numbers)
}

/// What text is of, in values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Texts {
    None,
    Numbers,
    Others,
}

fn texts_of(kind: &MarshalType) -> Texts {
    let all = |kinds: &mut dyn Iterator<Item = &MarshalType>| {
        kinds.map(texts_of).fold(Texts::None, |found, next| match (found, next) {
            (Texts::Others, _) | (_, Texts::Others) => Texts::Others,
            (Texts::None, next) => next,
            (found, _) => found,
        })
    };
    match kind {
        MarshalType::Native(CqlType::Decimal | CqlType::Varint) => Texts::Numbers,
        MarshalType::Native(CqlType::Text | CqlType::Ascii | CqlType::Inet) => Texts::Others,
        MarshalType::Native(_) => Texts::None,
        MarshalType::Reversed(inner)
        | MarshalType::Frozen(inner)
        | MarshalType::List(inner)
        | MarshalType::Set(inner)
        | MarshalType::Vector(inner, _) => texts_of(inner),
        MarshalType::Map(key, value) => all(&mut [&**key, &**value].into_iter()),
        MarshalType::Tuple(members) => all(&mut members.iter()),
        MarshalType::User { fields, .. } => all(&mut fields.iter().map(|(_, kind)| kind)),
        _ => Texts::Others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::batch::Value;
    use marquetry_parquet::schema::Meaning;

    use crate::diff::values::item;

    #[test]
    fn numbers_are_equal_however_they_are_written() {
        let text = |text: &'static str| Item::Bytes(text.as_bytes());
        for (a, b) in [
            ("12.5", "12.50"),
            ("0", "-0.00"),
            ("7E-60", "0.7E-59"),
            ("1E3", "1000"),
            ("-12", "-12.0"),
            ("007", "7"),
            ("é", "é"),
        ] {
            assert!(are_equal(text(a), text(b)) && are_equal(text(b), text(a)), "{a} {b}");
        }
        for (a, b) in [("12.5", "1.25"), ("1", "-1"), ("", "0"), ("1.", "a"), ("1E3", "1E4"), ("NaN", "0")] {
            assert!(!are_equal(text(a), text(b)), "{a} {b}");
        }
        let decimal = Meaning::Decimal { precision: 9, scale: 2 };
        assert!(are_equal(text("12.5"), item(decimal, Value::Int32(1250))));
        assert!(!are_equal(text("12.5"), item(decimal, Value::Int32(1251))));
        let integer = Meaning::Integer { bit_width: 64, is_signed: true };
        assert!(are_equal(item(integer, Value::Int64(-300)), text("-3E2")));
        let long = [1; 20];
        let digits = Digits::of_bytes(&long).unwrap();
        let digits = String::from_utf8(digits.as_slice().to_vec()).unwrap();
        let scale = Meaning::Decimal { precision: 60, scale: 3 };
        let written = format!("{digits}E-3");
        assert!(are_equal(Item::Bytes(written.as_bytes()), item(scale, Value::Bytes(&long))));
    }

    #[test]
    fn which_texts_are_numbers() {
        let of = |text: &str| texts_of(&MarshalType::parse(text, 64).unwrap());
        assert_eq!(of("DecimalType"), Texts::Numbers);
        assert_eq!(of("ReversedType(IntegerType)"), Texts::Numbers);
        assert_eq!(of("MapType(Int32Type,DecimalType)"), Texts::Numbers);
        assert_eq!(of("MapType(UTF8Type,DecimalType)"), Texts::Others);
        assert_eq!(of("TupleType(Int32Type,UUIDType)"), Texts::None);
    }
}
