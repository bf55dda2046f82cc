//! Hand-made schemas: a footer in Thrift's compact protocol (`parquet.thrift`), read back by the engine.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Limits, Machine, Object, Step, Want};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::FooterReader;

/// A `Type`, with the length of a FIXED_LEN_BYTE_ARRAY.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Physical(pub(crate) i32, pub(crate) Option<i32>);

pub(crate) const BOOLEAN: Physical = Physical(0, None);
pub(crate) const INT32: Physical = Physical(1, None);
pub(crate) const INT64: Physical = Physical(2, None);
pub(crate) const INT96: Physical = Physical(3, None);
pub(crate) const FLOAT: Physical = Physical(4, None);
pub(crate) const DOUBLE: Physical = Physical(5, None);
pub(crate) const BYTE_ARRAY: Physical = Physical(6, None);

/// FIXED_LEN_BYTE_ARRAY.
pub(crate) const fn fixed(length: i32) -> Physical {
    Physical(7, Some(length))
}

/// A field's annotation.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    None,
    /// A `ConvertedType`.
    Converted(i32),
    /// `ConvertedType` DECIMAL: scale and precision.
    Decimal(i32, i32),
    /// A field of the union `LogicalType`, and its contents.
    Logical(u8, Vec<u8>),
}

pub(crate) const UTF8: Note = Note::Converted(0);
pub(crate) const MAP: Note = Note::Converted(1);
pub(crate) const LIST: Note = Note::Converted(3);

/// A logical type without parameters.
pub(crate) fn logical(id: u8) -> Note {
    Note::Logical(id, vec![STOP])
}

/// TIME (7) or TIMESTAMP (8); the unit is 1 for millis, 2 for micros, 3 for nanos.
pub(crate) fn time(id: u8, is_adjusted_to_utc: bool, unit: u8) -> Note {
    let utc = if is_adjusted_to_utc { 0x11 } else { 0x12 };
    Note::Logical(id, vec![utc, 0x10 | STRUCT, unit << 4 | STRUCT, STOP, STOP, STOP])
}

/// INTEGER.
pub(crate) fn integer(bit_width: u8, is_signed: bool) -> Note {
    Note::Logical(10, vec![0x13, bit_width, if is_signed { 0x11 } else { 0x12 }, STOP])
}

/// A leaf or a group.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) repetition: Repetition,
    pub(crate) note: Note,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Leaf(Physical),
    Group(Vec<Field>),
}

/// A `FieldRepetitionType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repetition {
    Required = 0,
    Optional = 1,
    Repeated = 2,
}

/// An optional leaf.
pub(crate) fn leaf(name: &str, physical: Physical, note: Note) -> Field {
    Field { name: name.to_owned(), repetition: Repetition::Optional, note, kind: Kind::Leaf(physical) }
}

/// An optional group.
pub(crate) fn group(name: &str, note: Note, fields: impl IntoIterator<Item = Field>) -> Field {
    let kind = Kind::Group(fields.into_iter().collect());
    Field { name: name.to_owned(), repetition: Repetition::Optional, note, kind }
}

/// An optional LIST of three levels.
pub(crate) fn list(name: &str, element: Field) -> Field {
    group(
        name,
        LIST,
        [group("list", Note::None, [Field { name: "element".to_owned(), ..element }]).repeated()],
    )
}

/// An optional MAP.
pub(crate) fn map(name: &str, key: Field, value: Field) -> Field {
    let key = Field { name: "key".to_owned(), ..key };
    let value = Field { name: "value".to_owned(), ..value };
    group(name, MAP, [group("key_value", Note::None, [key, value]).repeated()])
}

impl Field {
    pub(crate) fn required(self) -> Field {
        Field { repetition: Repetition::Required, ..self }
    }

    pub(crate) fn repeated(self) -> Field {
        Field { repetition: Repetition::Repeated, ..self }
    }

    fn elements(&self) -> usize {
        match &self.kind {
            Kind::Leaf(_) => 1,
            Kind::Group(fields) => 1 + fields.iter().map(Field::elements).sum::<usize>(),
        }
    }

    fn write(&self, footer: &mut Vec<u8>) {
        let repetition = self.repetition as i32;
        match &self.kind {
            Kind::Leaf(physical) => {
                element(footer, &self.name, Some(*physical), repetition, None, &self.note);
            }
            Kind::Group(fields) => {
                element(footer, &self.name, None, repetition, Some(fields.len()), &self.note);
                fields.iter().for_each(|field| field.write(footer));
            }
        }
    }
}

/// The metadata of a file with these fields and no rows.
pub(crate) fn metadata(fields: &[Field]) -> Arc<FileMetaData> {
    let elements = 1 + fields.iter().map(Field::elements).sum::<usize>();
    let mut footer = vec![0x10 | I32, 2, 0x10 | LISTS, 0xf0 | STRUCT];
    varint(&mut footer, elements as u64);
    element(&mut footer, "schema", None, 1, Some(fields.len()), &Note::None);
    fields.iter().for_each(|field| field.write(&mut footer));
    footer.extend([0x10 | I64, 0, 0x10 | LISTS, STRUCT, STOP]);
    let mut file = b"PAR1".to_vec();
    file.extend_from_slice(&footer);
    file.extend_from_slice(&u32::try_from(footer.len()).unwrap().to_le_bytes());
    file.extend_from_slice(b"PAR1");
    read(&Bytes::from(file))
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LISTS: u8 = 9;
const STRUCT: u8 = 12;
const STOP: u8 = 0;

fn element(
    out: &mut Vec<u8>,
    name: &str,
    physical: Option<Physical>,
    repetition: i32,
    children: Option<usize>,
    note: &Note,
) {
    let mut last = 0;
    let mut number = |out: &mut Vec<u8>, id: u8, value: Option<i32>| {
        if let Some(value) = value {
            out.push((id - last) << 4 | I32);
            last = id;
            varint(out, u64::from(value.unsigned_abs()) * 2);
        }
    };
    number(out, 1, physical.map(|it| it.0));
    number(out, 2, physical.and_then(|it| it.1));
    number(out, 3, Some(repetition));
    out.push(0x10 | BINARY);
    varint(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
    let mut last = 4;
    let mut number = |out: &mut Vec<u8>, id: u8, value: i32| {
        out.push((id - last) << 4 | I32);
        last = id;
        varint(out, u64::from(value.unsigned_abs()) * 2);
    };
    if let Some(children) = children {
        number(out, 5, i32::try_from(children).unwrap());
    }
    match note {
        Note::None => {}
        Note::Converted(converted) => number(out, 6, *converted),
        Note::Decimal(scale, precision) => {
            number(out, 6, 5);
            number(out, 7, *scale);
            number(out, 8, *precision);
        }
        Note::Logical(id, body) => {
            out.push((10 - last) << 4 | STRUCT);
            if *id < 16 {
                out.push(id << 4 | STRUCT);
            } else {
                out.push(STRUCT);
                varint(out, u64::from(*id) * 2);
            }
            out.extend_from_slice(body);
            out.push(STOP);
        }
    }
    out.push(STOP);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read(file: &Bytes) -> Arc<FileMetaData> {
    let mut reader = FooterReader::new(Object(0), Limits::TRUSTED);
    loop {
        match reader.step(&mut Budget::unlimited()).unwrap() {
            Step::Ready(metadata) => return metadata,
            Step::Need(demand) => {
                for want in demand.wants {
                    match want {
                        Want::Length(object) => reader.supply_length(object, file.len() as u64).unwrap(),
                        Want::Range(object, range, _) => {
                            let bytes = file.slice(range.start as usize..range.end as usize);
                            reader.supply(object, range, bytes).unwrap();
                        }
                    }
                }
            }
            Step::Yield => {}
            other => panic!("{other:?}"),
        }
    }
}
