#![expect(clippy::cast_possible_truncation, reason = "samples, cut to any type")]

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use marquetry_base::{ErrorKind, Limits, Result};

use super::encoder::{Encoder, Names};
use super::*;

const LIMITS: Limits = Limits::DEFAULT;

/// A value as plain data.
#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Leaf(Primitive<'static>),
    Array(Vec<Tree>),
    Object(BTreeMap<String, Tree>),
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

const NAMES: [&str; 8] =
    ["a", "b", "", "id", "ü\u{1f600}", "\u{ffee}", "with \"quotes\"", "long name of a field"];

fn leaf(random: &mut Random) -> Primitive<'static> {
    let number = (random.below(1 << 40) as u64).cast_signed() - (1 << 39);
    let scale = random.below(39) as u8;
    match random.below(21) {
        0 => Primitive::Null,
        1 => Primitive::Boolean(true),
        2 => Primitive::Boolean(false),
        3 => Primitive::Int8(number as i8),
        4 => Primitive::Int16(number as i16),
        5 => Primitive::Int32(number as i32),
        6 => Primitive::Int64(number << 20),
        7 => Primitive::Float(number as f32 / 7.0),
        8 => Primitive::Double(number as f64 / 7.0),
        9 => Primitive::Decimal4 { unscaled: number as i32, scale },
        10 => Primitive::Decimal8 { unscaled: number, scale },
        11 => Primitive::Decimal16 { unscaled: i128::from(number) << 60, scale },
        12 => Primitive::Date(number as i32 % 100_000),
        13 => Primitive::Time(number.abs() % 86_400_000_000),
        14 => Primitive::Timestamp(number << 8),
        15 => Primitive::TimestampNtz(number << 8),
        16 => Primitive::TimestampNanos(number << 20),
        17 => Primitive::TimestampNtzNanos(number << 20),
        18 => Primitive::Binary(&[0xff, 0, 1, 2, 3][..random.below(6)]),
        19 => Primitive::Uuid(u128::from(number.unsigned_abs()).to_be_bytes()),
        _ => Primitive::String(
            [
                "",
                "short",
                "a\tline\nwith \u{1}\\",
                "a text that is longer than sixty-three bytes, so that its length takes four bytes more: ö",
            ][random.below(4)],
        ),
    }
}

fn tree(random: &mut Random, depth: usize) -> Tree {
    let sizes = [0, 1, 3, 5];
    match random.below(if depth == 0 { 1 } else { 3 }) {
        0 => Tree::Leaf(leaf(random)),
        1 => {
            let len = if depth == 3 && random.below(8) == 0 { 300 } else { sizes[random.below(4)] };
            let depth = if len == 300 { 0 } else { depth - 1 };
            Tree::Array((0..len).map(|_| tree(random, depth)).collect())
        }
        _ => Tree::Object(
            (0..sizes[random.below(4)])
                .map(|_| (NAMES[random.below(8)].to_string(), tree(random, depth - 1)))
                .collect(),
        ),
    }
}

fn build(tree: &Tree, builder: &mut VariantBuilder) -> Result<()> {
    match tree {
        Tree::Leaf(value) => builder.primitive(*value),
        Tree::Array(elements) => {
            builder.start_array()?;
            elements.iter().try_for_each(|element| build(element, builder))?;
            builder.end()
        }
        Tree::Object(fields) => {
            builder.start_object()?;
            // Not in the order of their names.
            for (name, value) in fields.iter().rev() {
                builder.field(name)?;
                build(value, builder)?;
            }
            builder.end()
        }
    }
}

fn encode(tree: &Tree) -> (Vec<u8>, Vec<u8>) {
    let mut builder = VariantBuilder::new(&LIMITS);
    build(tree, &mut builder).unwrap();
    builder.finish().unwrap()
}

/// Reads a value back through its iterators, and each part of it also separately.
fn read(variant: Variant<'_>) -> Tree {
    match variant.value().unwrap() {
        Value::Primitive(value) => {
            assert_eq!(variant.primitive().unwrap(), Some(value));
            let text = match value {
                Primitive::String(text) => text.to_string().leak(),
                _ => "",
            };
            Tree::Leaf(match value {
                Primitive::String(_) => Primitive::String(text),
                Primitive::Binary(bytes) => Primitive::Binary(bytes.to_vec().leak()),
                Primitive::Null => Primitive::Null,
                Primitive::Boolean(value) => Primitive::Boolean(value),
                Primitive::Int8(value) => Primitive::Int8(value),
                Primitive::Int16(value) => Primitive::Int16(value),
                Primitive::Int32(value) => Primitive::Int32(value),
                Primitive::Int64(value) => Primitive::Int64(value),
                Primitive::Float(value) => Primitive::Float(value),
                Primitive::Double(value) => Primitive::Double(value),
                Primitive::Decimal4 { unscaled, scale } => Primitive::Decimal4 { unscaled, scale },
                Primitive::Decimal8 { unscaled, scale } => Primitive::Decimal8 { unscaled, scale },
                Primitive::Decimal16 { unscaled, scale } => Primitive::Decimal16 { unscaled, scale },
                Primitive::Date(value) => Primitive::Date(value),
                Primitive::Time(value) => Primitive::Time(value),
                Primitive::Timestamp(value) => Primitive::Timestamp(value),
                Primitive::TimestampNtz(value) => Primitive::TimestampNtz(value),
                Primitive::TimestampNanos(value) => Primitive::TimestampNanos(value),
                Primitive::TimestampNtzNanos(value) => Primitive::TimestampNtzNanos(value),
                Primitive::Uuid(value) => Primitive::Uuid(value),
            })
        }
        Value::Array(array) => {
            for (index, element) in array.elements().enumerate() {
                assert_eq!(array.get(index).unwrap().unwrap().bytes(), element.unwrap().bytes());
            }
            assert!(array.get(array.len()).unwrap().is_none() && variant.get("a").unwrap().is_none());
            Tree::Array(array.elements().map(|element| read(element.unwrap())).collect())
        }
        Value::Object(object) => {
            let fields: BTreeMap<_, _> = object
                .fields()
                .map(|field| {
                    let (name, value) = field.unwrap();
                    (name.to_string(), read(value))
                })
                .collect();
            assert_eq!(fields.len(), object.len());
            for name in NAMES {
                assert_eq!(variant.get(name).unwrap().map(read), fields.get(name).cloned());
            }
            Tree::Object(fields)
        }
    }
}

fn variant<'a>(metadata: &'a [u8], value: &'a [u8]) -> Variant<'a> {
    let variant = Variant::new(Metadata::new(metadata).unwrap(), value, &LIMITS).unwrap();
    assert_eq!(variant.bytes(), value);
    variant
}

fn json(metadata: &[u8], value: &[u8]) -> Result<String> {
    let variant = Variant::new(Metadata::new(metadata)?, value, &LIMITS)?;
    let mut out = Vec::new();
    variant.to_json(&LIMITS, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn random_values_are_read_as_they_were_built() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..500 {
        let tree = tree(&mut random, 3);
        let (metadata, value) = encode(&tree);
        assert_eq!(read(variant(&metadata, &value)), tree);
        // Pieces of JSON of any size are the same JSON.
        let whole = json(&metadata, &value).unwrap();
        for piece in [0, 1, 7, 100] {
            let mut writer = JsonWriter::new(variant(&metadata, &value), &LIMITS);
            let mut out = Vec::new();
            while !writer.write(&mut out, piece).unwrap() {}
            assert_eq!(String::from_utf8(out).unwrap(), whole);
        }
    }
}

#[test]
fn json_is_exact() {
    let mut builder = VariantBuilder::new(&LIMITS);
    builder.start_array().unwrap();
    for value in [
        Primitive::Null,
        Primitive::Boolean(true),
        Primitive::Int64(i64::MIN),
        Primitive::Float(0.1),
        Primitive::Double(0.1),
        Primitive::Double(-0.0),
        Primitive::Double(f64::NAN),
        Primitive::Float(f32::NEG_INFINITY),
        Primitive::Decimal16 { unscaled: -5, scale: 3 },
        Primitive::Decimal4 { unscaled: 1200, scale: 2 },
        Primitive::Date(19_782),
        Primitive::Time(1),
        Primitive::Timestamp(-1),
        Primitive::TimestampNtzNanos(1),
        Primitive::Binary(b"\xff\xef\xbe\x00"),
        Primitive::Uuid([0xf2; 16]),
        Primitive::String("\"\\\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}ü"),
    ] {
        builder.primitive(value).unwrap();
    }
    builder.start_object().unwrap();
    builder.end().unwrap();
    builder.start_array().unwrap();
    builder.end().unwrap();
    builder.end().unwrap();
    let (metadata, value) = builder.finish().unwrap();
    let wanted = concat!(
        r#"[null,true,-9223372036854775808,0.1,0.1,-0.0,"NaN","-Infinity",-0.005,12.00,"2024-02-29","#,
        r#""00:00:00.000001","1969-12-31T23:59:59.999999Z","1970-01-01T00:00:00.000000001","/+++AA==","#,
        r#""f2f2f2f2-f2f2-f2f2-f2f2-f2f2f2f2f2f2","\"\\\b\f\n\r\t\u0000\u001f"#,
        "\u{7f}ü\",{},[]]"
    );
    assert_eq!(json(&metadata, &value).unwrap(), wanted);
}

#[test]
fn long_texts_are_written_in_pieces() {
    for shift in 0..4 {
        let text = "x".repeat(shift) + &"é€😀\n".repeat(5000);
        let bytes: Vec<u8> = (0..10_000 + shift).map(|at| at as u8).collect();
        let mut builder = VariantBuilder::new(&LIMITS);
        builder.start_object().unwrap();
        builder.field(&text).unwrap();
        builder.primitive(Primitive::String(&text)).unwrap();
        builder.field("b").unwrap();
        builder.primitive(Primitive::Binary(&bytes)).unwrap();
        builder.end().unwrap();
        let (metadata, mut value) = builder.finish().unwrap();
        let mut base64 = Vec::new();
        marquetry_base::print::base64(&mut base64, &bytes);
        let escaped = text.replace('\n', "\\n");
        let base64 = String::from_utf8(base64).unwrap();
        let fields = [format!("\"{escaped}\":\"{escaped}\""), format!("\"b\":\"{base64}\"")];
        assert_eq!(json(&metadata, &value).unwrap(), format!("{{{},{}}}", fields[1], fields[0]));
        // Cut in the middle of a character.
        let end = value.windows(3).rposition(|bytes| bytes == [0x98, 0x80, b'\n']).unwrap();
        value[end + 1] = b'x';
        assert_eq!(json(&metadata, &value).unwrap_err().message(), "a variant's text is not UTF-8");
    }
}

#[test]
fn what_is_too_deep_or_too_long_is_refused() {
    let nested = |depth: usize| {
        // Arrays of one element, from the inside.
        let mut value = vec![0];
        for _ in 0..depth {
            let mut outer = vec![0b1111, 1, 0, 0, 0, 0];
            outer[2..6].copy_from_slice(&[0; 4]);
            outer.extend((value.len() as u32).to_le_bytes());
            outer.extend(&value);
            value = outer;
        }
        value
    };
    let text = json(Metadata::EMPTY.bytes(), &nested(64)).unwrap();
    assert_eq!(text, "[".repeat(64) + "null" + &"]".repeat(64));
    let error = json(Metadata::EMPTY.bytes(), &nested(65)).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::LimitExceeded, "65 is more than the limit nesting of 64")
    );
    assert!(json(Metadata::EMPTY.bytes(), &nested(5_000)).is_err());

    let mut builder = VariantBuilder::new(&LIMITS);
    (0..64).for_each(|_| builder.start_array().unwrap());
    assert_eq!(builder.start_array().unwrap_err().kind(), ErrorKind::LimitExceeded);

    let small = Limits { value_bytes: 100, ..LIMITS };
    let mut builder = VariantBuilder::new(&small);
    assert_eq!(builder.primitive(Primitive::Binary(&[0; 101])).unwrap_err().kind(), ErrorKind::LimitExceeded);
    let (metadata, value) = encode(&Tree::Leaf(Primitive::Binary(&[0; 100].as_slice()[..99])));
    let mut out = Vec::new();
    let error = variant(&metadata, &value).to_json(&small, &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
}

/// A few bytes whose elements share their values represent 255^63 values.
#[test]
fn values_that_share_bytes_are_refused() {
    let mut value = vec![0];
    for _ in 0..10 {
        let mut outer = vec![0b1011, 255];
        outer.extend([0; 255 * 3]);
        outer.extend(&(value.len() as u32).to_le_bytes()[..3]);
        outer.extend(&value);
        value = outer;
    }
    assert_eq!(
        json(Metadata::EMPTY.bytes(), &value).unwrap_err().message(),
        "values in a variant share bytes"
    );
    // Fields in any order of their values are as they should be.
    let metadata = [1, 2, 0, 1, 2, b'a', b'b'];
    assert_eq!(json(&metadata, &[2, 2, 0, 1, 1, 0, 2, 4, 8]).unwrap(), r#"{"a":false,"b":true}"#);
    // Bytes between values are arbitrary, and values may share bytes as long as their total length fits.
    assert_eq!(json(&metadata, &[2, 2, 0, 1, 1, 1, 2, 4, 8]).unwrap(), r#"{"a":false,"b":false}"#);
    assert!(json(&metadata, &[2, 2, 0, 1, 0, 0, 1, 4]).is_err());
}

#[test]
fn fields_have_one_name_each_in_any_order() {
    let object = |metadata: &[u8]| json(metadata, &[2, 2, 0, 1, 0, 1, 2, 4, 8]);
    assert_eq!(object(&[1, 2, 0, 1, 2, b'a', b'b']).unwrap(), r#"{"a":true,"b":false}"#);
    let error = object(&[1, 2, 0, 1, 2, b'a', b'a']).unwrap_err();
    assert_eq!(error.message(), "an object in a variant has two fields of one name");
    // DuckDB does not sort fields, and declares names to be sorted that are not.
    for header in [0x01, 0x11] {
        let metadata = [header, 3, 0, 1, 2, 3, b'c', b'a', b'b'];
        let value = [2, 3, 0, 1, 2, 0, 1, 2, 3, 4, 8, 0];
        assert_eq!(json(&metadata, &value).unwrap(), r#"{"c":true,"a":false,"b":null}"#);
        let names = variant(&metadata, &value);
        for (name, wanted) in
            [("a", Some(Primitive::Boolean(false))), ("b", Some(Primitive::Null)), ("d", None)]
        {
            let found = names.get(name).unwrap().map(|value| value.primitive().unwrap().unwrap());
            assert_eq!(found, wanted, "{name}");
            assert_eq!(Metadata::new(&metadata).unwrap().find(name).is_some(), wanted.is_some());
        }
    }
    let error = json(&[1, 2, 0, 1, 2, b'b', b'a'], &[2, 3, 0, 1, 0, 0, 1, 2, 3, 4, 8, 0]).unwrap_err();
    assert_eq!(error.message(), "an object in a variant has two fields of one name");
    // U+1F600 is before U+FFEE in UTF-16 only.
    let mut metadata = vec![1, 2, 0, 4, 7];
    metadata.extend("\u{1f600}\u{ffee}".as_bytes());
    assert_eq!(object(&metadata).unwrap(), "{\"\u{1f600}\":true,\"\u{ffee}\":false}");
    let names = variant(&metadata, &[2, 2, 0, 1, 0, 1, 2, 4, 8]);
    for (name, wanted) in [("\u{1f600}", Some(true)), ("\u{ffee}", Some(false)), ("\u{ffef}", None)] {
        let found = names.get(name).unwrap().map(|value| value.primitive().unwrap().unwrap());
        assert_eq!(found, wanted.map(Primitive::Boolean));
        let mut sorted = metadata.clone();
        sorted[0] |= 0x10;
        assert_eq!(Metadata::new(&sorted).unwrap().find(name).is_some(), wanted.is_some());
    }
}

#[test]
fn orders_of_utf16() {
    let samples = [
        "",
        "a",
        "ab",
        "z",
        "é",
        "\u{d7ff}",
        "\u{e000}",
        "\u{ffee}",
        "\u{10000}",
        "\u{10ffff}",
        "a\u{ffee}",
        "a\u{1f600}",
    ];
    for left in samples {
        for right in samples {
            let wanted = left.encode_utf16().cmp(right.encode_utf16());
            assert_eq!(utf16_order(left.as_bytes(), right.as_bytes()), wanted, "{left:?}, {right:?}");
        }
    }
}

#[test]
fn bytes_that_cannot_be() {
    use ErrorKind::{Corrupt, Unsupported};
    for (metadata, value, kind, message) in [
        (&[][..], &[0][..], Corrupt, "a variant's metadata of no bytes"),
        (&[2, 0, 0], &[0], Unsupported, "a variant's metadata of version 2"),
        (&[1, 0], &[0], Corrupt, "a variant's metadata ends too early"),
        (&[1, 1, 0, 2, 65], &[0], Corrupt, "a variant's metadata ends too early"),
        (&[0xc1, 255, 255, 255, 255], &[0], Corrupt, "a variant's metadata ends too early"),
        (&[1, 0, 1, 65], &[0], Corrupt, "a variant's first field name does not begin at 0"),
        (&[1, 2, 0, 2, 1, 65, 65], &[0], Corrupt, "the field names of a variant are not in their order"),
        (&[1, 0, 0], &[], Corrupt, "a variant's value reaches beyond its end"),
        (&[1, 0, 0], &[21 << 2], Unsupported, "a variant of primitive type 21"),
        (&[1, 0, 0], &[8 << 2, 39, 0, 0, 0, 0], Corrupt, "a variant's decimal of scale 39"),
        (&[1, 0, 0], &[1 << 2 | 1, 0xff], Corrupt, "a variant's text is not UTF-8"),
        (&[1, 0, 0], &[16 << 2, 255, 255, 255, 255], Corrupt, "a variant's value reaches beyond its end"),
        (&[1, 0, 0], &[0b1_1111, 255, 255, 255, 255], Corrupt, "a variant's value reaches beyond its end"),
        (&[1, 0, 0], &[3, 1, 1, 1, 0], Corrupt, "a variant's value reaches beyond its end"),
        (&[1, 0, 0], &[2, 1, 0, 0, 1, 0], Corrupt, "a variant's field has name 0 of 0, which is not there"),
        (&[1, 1, 0, 1, 0xff], &[2, 1, 0, 0, 1, 0], Corrupt, "a variant's field name is not UTF-8"),
    ] {
        let error = json(metadata, value).unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, message));
    }
    // What follows is ignored, and so are reserved bits.
    assert_eq!(json(&[0x21, 0, 0, 9], &[0b1110_0011, 0, 0, 7]).unwrap(), "[]");
}

#[test]
fn a_builder_used_wrongly() {
    let new = || VariantBuilder::new(&LIMITS);
    let misuse = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(new().finish().unwrap_err().kind(), ErrorKind::Misuse);
    misuse(new().end());
    misuse(new().field("a"));
    misuse(new().primitive(Primitive::Decimal4 { unscaled: 1, scale: 39 }));
    let mut builder = new();
    builder.primitive(Primitive::Null).unwrap();
    misuse(builder.primitive(Primitive::Null));
    let mut builder = new();
    builder.start_object().unwrap();
    misuse(builder.primitive(Primitive::Null));
    builder.field("a").unwrap();
    misuse(builder.field("b"));
    misuse(builder.end());
    builder.primitive(Primitive::Null).unwrap();
    builder.field("a").unwrap();
    builder.primitive(Primitive::Null).unwrap();
    assert_eq!(
        builder.end().unwrap_err().message(),
        "two fields of the name \"a\" in an object of a variant"
    );
    assert_eq!(builder.finish().unwrap_err().kind(), ErrorKind::Misuse);
}

mod shredding;
