//! Values that are formats of their own: VARIANT, WKB; and texts: names of directories, CQL's types, names and keys.

use marquetry_base::{ErrorKind, Limits, Result};
use marquetry_parquet::geometry::write_wkt;
use marquetry_parquet::hive::{HiveType, Partition};
use marquetry_parquet::variant::JsonWriter;
use marquetry_parquet::variant::{Metadata, Primitive, Value, Variant, VariantBuilder};
use marquetry_scylla::cql::{CqlType, KeySpec, Name, TableName, literal};

use crate::canary::{Canary, is_planted};
use crate::choices::Choices;
use crate::edit::Edit;

/// Text that a variant's JSON may have at most here.
const LIMITS: Limits = Limits { value_bytes: 256 << 10, nesting: 20, ..Limits::DEFAULT };

/// One value of some format.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    match choices.byte() % 8 {
        0..=2 => built_variant(choices),
        3 => {
            let metadata = choices.bytes(255).to_vec();
            variant(&metadata, choices.rest());
        }
        4 | 5 => geometry(choices),
        6 => texts(choices),
        _ => literals(choices),
    }
}

/// A variant that is built, read, built again; then damaged.
fn built_variant(choices: &mut Choices<'_>) {
    let mut builder = VariantBuilder::new(&LIMITS);
    let built = build(&mut builder, choices, 0).and_then(|()| builder.finish());
    let (mut metadata, mut value) = match built {
        Ok(built) => built,
        // Two fields of one name, or too deep.
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Misuse | ErrorKind::LimitExceeded), "{error:?}");
            return;
        }
    };
    let text = variant(&metadata, &value).expect("a variant that was built");
    let parsed = Metadata::new(&metadata).and_then(|names| Variant::new(names, &value, &LIMITS));
    let mut again = VariantBuilder::new(&LIMITS);
    let copied = copy(&mut again, parsed.expect("it was read before"));
    let copied = copied.and_then(|()| again.finish()).expect("what was built can be built");
    assert_eq!(variant(&copied.0, &copied.1).as_ref(), Some(&text), "a copy that is not the same");
    for edit in Edit::several(choices, 4) {
        if choices.once_in(3) {
            edit.apply(&mut metadata)
        } else {
            edit.apply(&mut value)
        };
    }
    variant(&metadata, &value);
}

fn build(builder: &mut VariantBuilder, choices: &mut Choices<'_>, depth: usize) -> Result<()> {
    match choices.byte() % 24 {
        0 | 1 if depth < 25 && !choices.is_empty() => {
            builder.start_object()?;
            for _ in 0..choices.below(12) {
                let name = String::from_utf8_lossy(choices.bytes(6)).into_owned();
                builder.field(&name)?;
                build(builder, choices, depth + 1)?;
            }
            builder.end()
        }
        2 | 3 if depth < 25 && !choices.is_empty() => {
            builder.start_array()?;
            for _ in 0..choices.below(12) {
                build(builder, choices, depth + 1)?;
            }
            builder.end()
        }
        kind => {
            let number = choices.number();
            let scale = choices.byte() % 39;
            let bytes = choices.bytes(80);
            let text = String::from_utf8_lossy(bytes);
            let mut uuid = [0; 16];
            uuid.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            builder.primitive(match kind % 21 {
                0 => Primitive::Null,
                1 => Primitive::Boolean(number & 1 == 0),
                2 => Primitive::Int8(number as i8),
                3 => Primitive::Int16(number as i16),
                4 => Primitive::Int32(number as i32),
                5 => Primitive::Int64(number),
                6 => Primitive::Float(f32::from_bits(number as u32)),
                7 => Primitive::Double(f64::from_bits(number as u64)),
                8 => Primitive::Decimal4 { unscaled: number as i32, scale },
                9 => Primitive::Decimal8 { unscaled: number, scale },
                10 => Primitive::Decimal16 { unscaled: i128::from(number) << (scale * 2), scale },
                11 => Primitive::Date(number as i32),
                12 => Primitive::Time(number),
                13 => Primitive::Timestamp(number),
                14 => Primitive::TimestampNtz(number),
                15 => Primitive::TimestampNanos(number),
                16 => Primitive::TimestampNtzNanos(number),
                17 => Primitive::Binary(bytes),
                18 => Primitive::Uuid(uuid),
                _ => Primitive::String(&text),
            })
        }
    }
}

/// Builds what a variant is.
fn copy(builder: &mut VariantBuilder, variant: Variant<'_>) -> Result<()> {
    match variant.value()? {
        Value::Primitive(primitive) => builder.primitive(primitive),
        Value::Array(array) => {
            builder.start_array()?;
            for element in array.elements() {
                copy(builder, element?)?;
            }
            builder.end()
        }
        Value::Object(object) => {
            builder.start_object()?;
            for field in object.fields() {
                let (name, value) = field?;
                builder.field(name)?;
                copy(builder, value)?;
                let found = object.get(name)?.expect("a field that is there");
                assert_eq!(found.bytes(), value.bytes(), "a field found by its name is another");
            }
            builder.end()
        }
    }
}

/// Looks at a variant in all ways; its JSON, if it is one.
fn variant(metadata: &[u8], value: &[u8]) -> Option<String> {
    let Ok(names) = Metadata::new(metadata) else { return None };
    for id in 0..names.len().min(300) {
        if let Ok(name) = names.name(id) {
            assert!(names.find(name).is_none_or(|found| names.name(found).is_ok()));
        }
    }
    let Ok(variant) = Variant::new(names, value, &LIMITS) else { return None };
    let mut whole = Vec::new();
    let result = variant.to_json(&LIMITS, &mut whole);
    let mut pieces = Vec::new();
    let mut writer = JsonWriter::new(variant, &LIMITS);
    let in_pieces = loop {
        match writer.write(&mut pieces, 1) {
            Ok(true) => break Ok(()),
            Ok(false) => {}
            Err(error) => {
                assert_eq!(writer.write(&mut pieces, 1), Err(error.clone()), "an error that does not stay");
                break Err(error);
            }
        }
    };
    if is_planted(Canary::Bytes) && pieces.len() % 7 == 5 {
        pieces.pop();
    }
    assert_eq!(in_pieces, result, "written in pieces, it is otherwise");
    assert!(pieces == whole, "written in pieces, it is another text");
    match result {
        Ok(()) => {
            let text = String::from_utf8(whole).expect("JSON is text");
            if let Err(error) = serde_json::from_str::<serde_json::Value>(&text) {
                // A number may be larger than that reader's.
                assert!(error.to_string().contains("out of range"), "{error}: {text}");
            }
            Some(text)
        }
        Err(error) => {
            assert!(error.kind() != ErrorKind::Internal && error.kind() != ErrorKind::Misuse, "{error:?}");
            None
        }
    }
}

/// A geometry that is right for long, then changed.
fn geometry(choices: &mut Choices<'_>) {
    let mut wkb = Vec::new();
    let is_right = write_geometry(&mut wkb, choices, 0);
    let mut text = b"before".to_vec();
    let result = write_wkt(&wkb, &mut text);
    assert!(result.is_ok() || !is_right, "{result:?}");
    Edit::several(choices, 3).iter().for_each(|edit| edit.apply(&mut wkb));
    wkb.extend(choices.rest());
    let before = text.clone();
    match write_wkt(&wkb, &mut text) {
        Ok(()) => assert!(std::str::from_utf8(&text).is_ok() && text.len() > before.len()),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::LimitExceeded), "{error:?}");
            assert_eq!(text, before, "something was written of what is no geometry");
        }
    }
}

/// Writes one; false if it is none for certain.
fn write_geometry(wkb: &mut Vec<u8>, choices: &mut Choices<'_>, depth: usize) -> bool {
    let is_big = choices.once_in(3);
    let kind = 1 + choices.below(7) as u32;
    let dimensions = choices.below(4) as u32;
    write_head(wkb, is_big, kind + 1000 * dimensions);
    let coordinates = [2, 3, 3, 4][dimensions as usize];
    let count = choices.below(5) as u32;
    let numbers = |wkb: &mut Vec<u8>, choices: &mut Choices<'_>, points: u32| {
        for _ in 0..points * coordinates {
            let number = (choices.number() as f64 / 8.0).to_bits();
            wkb.extend(if is_big { number.to_be_bytes() } else { number.to_le_bytes() });
        }
    };
    let word = |wkb: &mut Vec<u8>, word: u32| {
        wkb.extend(if is_big { word.to_be_bytes() } else { word.to_le_bytes() });
    };
    match kind {
        1 => numbers(wkb, choices, 1),
        2 => {
            word(wkb, count);
            numbers(wkb, choices, count);
        }
        3 => {
            word(wkb, count);
            for _ in 0..count {
                let points = choices.below(4) as u32;
                word(wkb, points);
                numbers(wkb, choices, points);
            }
        }
        4..=6 => {
            word(wkb, count);
            for _ in 0..count {
                write_head(wkb, is_big, kind - 3 + 1000 * dimensions);
                match kind {
                    4 => numbers(wkb, choices, 1),
                    _ => word(wkb, 0),
                }
            }
        }
        _ if depth < 8 => {
            word(wkb, count);
            // Of other dimensions than the collection, they may be none.
            return (0..count).fold(true, |_, _| write_geometry(wkb, choices, depth + 1)) && count == 0;
        }
        _ => word(wkb, 0),
    }
    true
}

fn write_head(wkb: &mut Vec<u8>, is_big: bool, kind: u32) {
    wkb.push(u8::from(!is_big));
    wkb.extend(if is_big { kind.to_be_bytes() } else { kind.to_le_bytes() });
}

/// Texts that people type, or that directories are called.
fn texts(choices: &mut Choices<'_>) {
    const WORDS: [&str; 24] = [
        "map<",
        "list<",
        "frozen<",
        "tuple<",
        "set<",
        "vector<",
        ">",
        ", ",
        "int",
        "text",
        "\"",
        "a b",
        ".",
        "'",
        "(",
        ")",
        " desc",
        "é",
        "=",
        "%41",
        "%ff",
        "2024-02-29",
        "-7",
        "\0",
    ];
    let mut text = String::new();
    for _ in 0..choices.below(30) {
        if choices.once_in(6) {
            text.push_str(&String::from_utf8_lossy(choices.bytes(5)));
        } else {
            text.push_str(choices.pick(&WORDS));
        }
    }
    if let Ok(cql) = CqlType::parse(&text) {
        let printed = cql.to_string();
        let again = CqlType::parse(&printed).expect("a type that was printed");
        assert_eq!(again.to_string(), printed);
    }
    if let Ok(name) = Name::new(&text) {
        let printed = name.to_string();
        assert_eq!(name.as_str(), text);
        // With quotes where it needs them, it is itself again.
        if let Ok(table) = TableName::parse(&format!("ks.{printed}")) {
            assert_eq!(table.to_string(), format!("ks.{printed}"));
        }
    }
    let _ = TableName::parse(&text);
    if let Ok(key) = KeySpec::parse(&text) {
        assert!(key.parts().count() > 0, "a key of nothing");
    }
    if let Ok(Some(partition)) = Partition::of(&text) {
        assert!(!partition.name.is_empty());
    }
    let parts: Vec<&str> = text.split(',').collect();
    let kind = HiveType::of(parts.iter().copied());
    for part in parts {
        assert!(kind.value(part).is_some_and(|value| value.len() == 1), "{part:?} as {kind:?}");
    }
}

/// Literals of any number: they are printed, or refused, and never empty.
fn literals(choices: &mut Choices<'_>) {
    let (number, other) = (choices.number(), choices.number());
    let bytes = choices.bytes(40);
    let text = String::from_utf8_lossy(choices.bytes(40)).into_owned();
    let mut out = Vec::new();
    let check = |result: std::result::Result<(), _>, out: &mut Vec<u8>| {
        let result: std::result::Result<(), literal::LiteralError> = result;
        assert!(result.is_err() || !out.is_empty());
        assert!(std::str::from_utf8(out).is_ok());
        out.clear();
    };
    check(literal::varint(&mut out, bytes), &mut out);
    literal::decimal(&mut out, number, other as i32 % 400);
    check(Ok(()), &mut out);
    check(literal::decimal_bytes(&mut out, bytes, other as i32 % 400), &mut out);
    literal::date(&mut out, number as i32);
    check(Ok(()), &mut out);
    check(literal::time(&mut out, number), &mut out);
    literal::timestamp(&mut out, number);
    check(Ok(()), &mut out);
    check(literal::duration(&mut out, number as i32, other as i32, number), &mut out);
    check(literal::ascii(&mut out, &text), &mut out);
    literal::double(&mut out, f64::from_bits(number as u64));
    check(Ok(()), &mut out);
    literal::float(&mut out, f32::from_bits(other as u32));
    check(Ok(()), &mut out);
    literal::text(&mut out, &text);
    let inner = std::str::from_utf8(&out).ok().and_then(|text| text.strip_prefix('\'')?.strip_suffix('\''));
    assert_eq!(inner.map(|inner| inner.replace("''", "'")), Some(text), "a text's literal");
}
