mod errors;
mod grammar;
mod types;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_parquet::prune::{Accepts, NAN_KEY, Predicate, Quantifier, Ranges, double_key};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};

use super::{PredicateError, parse};
use crate::{ColumnType, Columns};

/// A column of every type, called as the type is, and nested ones.
pub(super) fn schema() -> Schema {
    let columns = "flag boolean, other boolean, tiny tinyint, x int, big bigint, u8 uint8, u64 uint64, h float16, \
        f float, d double, t text, e enum, j json, b blob, bs bson, fx fixed(4), dt date, t3 time(3), ut6 utctime(6), \
        ts timestamp(3), ts9 timestamp(9), lt localtimestamp(6), old int96, iv interval, id uuid, de decimal(12, 2), \
        de38 decimal(38, 0), tags list<text>, m map<text, int>, \
        place struct<lat double, lon double, names list<text>>, \
        items list<struct<price decimal(5, 1), sizes list<int>>>, grid list<list<int>>, flags list<boolean>, \
        \"a b\" int, \"Mixed\" int, \"x.y\" int, \"in\" int, \"q\"\"q\" int, Größe int, maps list<map<text, int>>";
    let columns: Columns = columns.parse().unwrap();
    let mut fields: Vec<FieldDef> = columns.as_slice().iter().map(field).collect();
    let leaf = |name: &str, physical_type, logical_type| {
        FieldDef::new(name, FieldType::Leaf(physical_type, Some(logical_type)))
    };
    fields.push(leaf("geo", PhysicalType::ByteArray, LogicalType::Geometry { crs: None }));
    fields.push(leaf("nothing", PhysicalType::Int32, LogicalType::Unknown));
    let decimal = LogicalType::Decimal { precision: 60, scale: 1 };
    fields.push(leaf("de60", PhysicalType::FixedLenByteArray(26), decimal));
    let bytes = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::ByteArray, None));
    let variant = FieldType::Struct(
        [bytes("metadata"), bytes("value")].map(FieldDef::required).into(),
        Some(LogicalType::Variant { version: None }),
    );
    fields.push(FieldDef::new("var", variant));
    fields.push(FieldDef::new("must", FieldType::Leaf(PhysicalType::Int32, None)).required());
    Schema::of_fields(&fields).unwrap()
}

fn field(column: &crate::Column) -> FieldDef {
    FieldDef::new(&*column.name, field_type(&column.column_type))
}

fn field_type(of: &ColumnType) -> FieldType {
    let below = |inner: &ColumnType| FieldDef::new("", field_type(inner)).into();
    match of {
        ColumnType::Scalar(scalar) => scalar.field_type(),
        ColumnType::List(element) => FieldType::List(below(element)),
        ColumnType::Map(key, value) => {
            let key = FieldDef::new("key", key.field_type()).required();
            FieldType::Map(key.into(), Some(below(value)))
        }
        ColumnType::Struct(fields) => FieldType::Struct(fields.iter().map(field).collect(), None),
    }
}

/// What a text is parsed to, printed: leaves by their paths, `∀` for all of a row's values.
pub(super) fn parsed(text: &str) -> String {
    let schema = schema();
    match parse(text, &schema) {
        Ok(predicate) => printed(&predicate, &schema),
        Err(error) => format!("{}: {}", text[error.at].trim(), error.message),
    }
}

/// The error of a text.
pub(super) fn failed(text: &str) -> PredicateError {
    parse(text, &schema()).unwrap_err()
}

fn printed(predicate: &Predicate, schema: &Schema) -> String {
    let all = |parts: &[Predicate], word: &str| {
        let parts: Vec<String> = parts.iter().map(|part| printed(part, schema)).collect();
        format!("({})", if parts.is_empty() { format!("{word} of none") } else { parts.join(word) })
    };
    match predicate {
        Predicate::And(parts) => all(parts, " and "),
        Predicate::Or(parts) => all(parts, " or "),
        Predicate::Test(test) => {
            let path = schema.leaf_path(test.leaf);
            let each = if test.quantifier == Quantifier::All { "∀" } else { "" };
            let is_floating = schema.meaning_of(&schema.leaves()[test.leaf]).is_floating();
            match &test.accepts {
                Accepts::Values(ranges) => format!("{each}{path} {}", of_ranges(ranges, is_floating)),
                Accepts::Nulls { slot, definition, are_wanted } => {
                    let is = if *are_wanted { "null" } else { "present" };
                    format!("{each}{path} {is} {slot} {definition}")
                }
            }
        }
    }
}

fn of_ranges(ranges: &Ranges, is_floating: bool) -> String {
    let number = |key: i128| {
        if is_floating {
            let bits = i64::try_from(key).unwrap();
            let bits = if bits < 0 { bits ^ i64::MAX } else { bits };
            let value = if key == NAN_KEY { f64::NAN } else { f64::from_bits(bits.cast_unsigned()) };
            assert_eq!(double_key(value), key);
            return format!("{value}");
        }
        key.to_string()
    };
    let text = |bytes: &[u8]| match core::str::from_utf8(bytes) {
        Ok(text) if !bytes.iter().any(|byte| *byte < b' ') => format!("{text:?}"),
        _ => format!("0x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    };
    let list: Vec<String> = match ranges {
        Ranges::Numbers(ranges) => {
            let range = |&[first, last]: &[i128; 2]| match (first == i128::MIN, last == i128::MAX) {
                _ if first == last => number(first),
                (true, true) => "all".to_string(),
                (true, false) => format!("..{}", number(last)),
                (false, true) => format!("{}..", number(first)),
                (false, false) => format!("{}..{}", number(first), number(last)),
            };
            ranges.iter().map(range).collect()
        }
        Ranges::Bytes(ranges) => {
            let range = |(first, end): &(marquetry_base::Bytes, Option<marquetry_base::Bytes>)| {
                let is_one = end.as_ref().is_some_and(|end| end.strip_suffix(&[0]) == Some(&first[..]));
                match end {
                    _ if is_one => text(first),
                    None if first.is_empty() => "all".to_string(),
                    None => format!("{}..", text(first)),
                    Some(end) if first.is_empty() => format!("..{}", text(end)),
                    Some(end) => format!("{}..{}", text(first), text(end)),
                }
            };
            ranges.iter().map(range).collect()
        }
    };
    format!("[{}]", list.join(" "))
}
