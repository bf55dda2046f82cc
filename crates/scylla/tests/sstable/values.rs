//! Values of CQL as sstabledump prints them: as JSON, and as text.

use marquetry_scylla::cql::CqlType;
use marquetry_scylla::sstable::counter;
use marquetry_scylla::sstable::marshal::MarshalType;
use marquetry_scylla::sstable::vint;

use crate::json::Json;

/// A value as JSON.
pub(crate) fn json(kind: &MarshalType, value: &[u8]) -> Json {
    match kind {
        MarshalType::Frozen(inner) | MarshalType::Reversed(inner) => json(inner, value),
        MarshalType::List(element) | MarshalType::Set(element) => {
            Json::Array(elements(value).iter().map(|value| json(element, value)).collect())
        }
        MarshalType::Map(key, element) => {
            let elements = elements(value);
            let pairs = elements.chunks(2);
            Json::Object(pairs.map(|pair| (key_text(key, pair[0]), json(element, pair[1]))).collect())
        }
        MarshalType::Tuple(members) => {
            let mut values = fields(value);
            Json::Array(members.iter().map(|member| field(member, values.next())).collect())
        }
        MarshalType::User { fields: members, .. } => {
            let mut values = fields(value);
            let members = members.iter();
            Json::Object(members.map(|(name, member)| (name.clone(), field(member, values.next()))).collect())
        }
        MarshalType::Vector(element, _) => {
            let width = element.fixed_bytes().expect("numbers") as usize;
            Json::Array(value.chunks(width).map(|value| json(element, value)).collect())
        }
        MarshalType::Empty | MarshalType::Composite(_) => Json::String(hex(value)),
        MarshalType::Native(native) => match native {
            _ if value.is_empty() && !matches!(native, CqlType::Text | CqlType::Ascii | CqlType::Blob) => {
                Json::String(String::new())
            }
            CqlType::Boolean => Json::Bool(value == [1]),
            CqlType::Blob => Json::String(format!("0x{}", hex(value))),
            CqlType::Bigint
            | CqlType::Counter
            | CqlType::Decimal
            | CqlType::Double
            | CqlType::Float
            | CqlType::Int
            | CqlType::Smallint
            | CqlType::Tinyint
            | CqlType::Varint => Json::Number(text(kind, value)),
            _ => Json::String(text(kind, value)),
        },
        other => panic!("{other:?}"),
    }
}

fn key_text(kind: &MarshalType, value: &[u8]) -> String {
    match json(kind, value) {
        Json::String(text) => text,
        other => {
            let mut text = String::new();
            other.write(&mut text);
            text
        }
    }
}

fn field(kind: &MarshalType, value: Option<Option<&[u8]>>) -> Json {
    value.flatten().map_or(Json::Null, |value| json(kind, value))
}

/// A value as text: of a key, or of a path.
pub(crate) fn text(kind: &MarshalType, value: &[u8]) -> String {
    let native = match kind {
        MarshalType::Native(native) => native,
        MarshalType::Frozen(inner) | MarshalType::Reversed(inner) => return text(inner, value),
        other => panic!("{other:?}"),
    };
    if value.is_empty() {
        return String::new();
    }
    match native {
        CqlType::Ascii | CqlType::Text => String::from_utf8(value.to_vec()).expect("text"),
        CqlType::Blob => hex(value),
        CqlType::Boolean => (value == [1]).to_string(),
        CqlType::Bigint | CqlType::Int | CqlType::Smallint | CqlType::Tinyint => number(value).to_string(),
        CqlType::Varint => number(value).to_string(),
        CqlType::Counter => counter::total(value).expect("a counter").to_string(),
        CqlType::Decimal => {
            let scale = number(&value[..4]);
            let (scale, unscaled) = (usize::try_from(scale).expect("a fraction"), number(&value[4..]));
            let digits = format!("{:0>width$}", unscaled.abs(), width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            format!("{}{whole}.{fraction}", if unscaled < 0 { "-" } else { "" })
        }
        CqlType::Double => format!("{:?}", f64::from_be_bytes(value.try_into().expect("8 bytes"))),
        CqlType::Float => format!("{:?}", f32::from_be_bytes(value.try_into().expect("4 bytes"))),
        CqlType::Uuid | CqlType::Timeuuid => {
            let hex = hex(value);
            format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
        }
        CqlType::Inet => match value {
            [a, b, c, d] => format!("{a}.{b}.{c}.{d}"),
            // As Java prints it, zeros and all.
            other => {
                let groups = other.chunks(2).map(|group| format!("{:x}", number(group) & 0xffff));
                groups.collect::<Vec<_>>().join(":")
            }
        },
        CqlType::Date => date(number(value) - (1 << 31) + if value[0] < 0x80 { 0 } else { 1 << 32 }),
        CqlType::Time => {
            let nanos = number(value);
            let seconds = nanos / 1_000_000_000;
            format!("{}.{:09}", clock(seconds), nanos % 1_000_000_000)
        }
        CqlType::Timestamp => {
            let millis = number(value);
            let (days, rest) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
            format!("{} {}.{:03}Z", date(days), clock(rest / 1000), rest % 1000)
        }
        CqlType::Duration => duration(value),
        other => panic!("{other:?}"),
    }
}

fn clock(seconds: i128) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A day since 1970.
fn date(day: i128) -> String {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + i128::from(month <= 2))
}

fn duration(value: &[u8]) -> String {
    let (months, first) = vint::signed(value).expect("months");
    let (days, second) = vint::signed(&value[first..]).expect("days");
    let (nanos, _) = vint::signed(&value[first + second..]).expect("nanoseconds");
    let seconds = nanos / 1_000_000_000;
    let parts = [
        (months / 12, "y"),
        (months % 12, "mo"),
        (days, "d"),
        (seconds / 3600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (nanos / 1_000_000 % 1000, "ms"),
        (nanos / 1000 % 1000, "us"),
        (nanos % 1000, "ns"),
    ];
    parts.iter().filter(|(count, _)| *count != 0).map(|(count, unit)| format!("{count}{unit}")).collect()
}

/// A signed number of any length.
fn number(value: &[u8]) -> i128 {
    let sign = if value[0] < 0x80 { 0 } else { -1 };
    value.iter().fold(sign, |number, byte| number << 8 | i128::from(*byte))
}

fn hex(value: &[u8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The elements of a frozen collection; keys and values of a map.
fn elements(value: &[u8]) -> Vec<&[u8]> {
    fields(value.get(4..).unwrap_or_default()).map(|field| field.expect("no null")).collect()
}

/// Values after their lengths; `None` for those that are null.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                let (field, after) = after.split_at(length);
                rest = after;
                Some(Some(field))
            }
            Err(_) => {
                rest = after;
                Some(None)
            }
        }
    })
}
