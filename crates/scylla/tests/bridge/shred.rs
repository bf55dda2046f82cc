//! Batches of nested fields, built from values by the rules of the format's "Nested Encoding".

use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Levels, Values};

use crate::batch::{bytes, fixed, int32};
use crate::schema::{Field, Kind, Physical, Repetition};

/// A value of the schema: it may be null in an optional field, and is several in a repeated one.
#[derive(Debug, Clone)]
pub(crate) enum Datum {
    Null,
    Int(i32),
    Bytes(Vec<u8>),
    Group(Vec<Datum>),
    Several(Vec<Datum>),
}

pub(crate) fn text(text: &str) -> Datum {
    Datum::Bytes(text.as_bytes().to_vec())
}

/// A LIST's value.
pub(crate) fn items(items: impl IntoIterator<Item = Datum>) -> Datum {
    Datum::Group(vec![Datum::Several(items.into_iter().map(|item| Datum::Group(vec![item])).collect())])
}

/// A MAP's value.
pub(crate) fn entries(entries: impl IntoIterator<Item = (Datum, Datum)>) -> Datum {
    let entries = entries.into_iter().map(|(key, value)| Datum::Group(vec![key, value]));
    Datum::Group(vec![Datum::Several(entries.collect())])
}

/// A batch of row group 2 whose first row is the file's row 1000.
pub(crate) fn batch(fields: &[Field], rows: &[Vec<Datum>]) -> Batch {
    let mut columns = Vec::new();
    for field in fields {
        leaves(field, 0, 0, &mut columns);
    }
    for row in rows {
        let mut at = 0;
        for (field, datum) in fields.iter().zip(row) {
            shred(field, datum, Level { definition: 0, repetition: 0, depth: 0 }, &mut columns, &mut at);
        }
    }
    let columns = columns.into_iter().enumerate().map(|(leaf, column)| column.finish(leaf, rows.len()));
    Batch { row_group: 2, first_row: 1000, rows: rows.len(), columns: columns.collect() }
}

#[derive(Debug)]
struct Column {
    physical: Physical,
    definition_max: u8,
    repetition_max: u8,
    definition: Vec<u8>,
    repetition: Vec<u8>,
    values: Vec<Datum>,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    definition: u8,
    /// Of the next entry.
    repetition: u8,
    /// Repeated fields above.
    depth: u8,
}

fn leaves(field: &Field, definition: u8, repetition: u8, columns: &mut Vec<Column>) {
    let definition_max = definition + u8::from(field.repetition != Repetition::Required);
    let repetition_max = repetition + u8::from(field.repetition == Repetition::Repeated);
    match &field.kind {
        Kind::Leaf(physical) => columns.push(Column {
            physical: *physical,
            definition_max,
            repetition_max,
            definition: Vec::new(),
            repetition: Vec::new(),
            values: Vec::new(),
        }),
        Kind::Group(fields) => {
            fields.iter().for_each(|field| leaves(field, definition_max, repetition_max, columns));
        }
    }
}

fn shred(field: &Field, datum: &Datum, level: Level, columns: &mut [Column], at: &mut usize) {
    let deeper = Level { definition: level.definition + 1, ..level };
    match (field.repetition, datum) {
        (Repetition::Required, datum) => there(field, datum, level, columns, at),
        (Repetition::Optional, Datum::Null) => absent(field, level, columns, at),
        (Repetition::Optional, datum) => there(field, datum, deeper, columns, at),
        (Repetition::Repeated, Datum::Several(items)) if items.is_empty() => {
            absent(field, level, columns, at)
        }
        (Repetition::Repeated, Datum::Several(items)) => {
            let (first, depth) = (*at, level.depth + 1);
            for (nth, item) in items.iter().enumerate() {
                *at = first;
                let repetition = if nth == 0 { level.repetition } else { depth };
                there(field, item, Level { repetition, depth, ..deeper }, columns, at);
            }
        }
        (Repetition::Repeated, datum) => panic!("{datum:?} of the repeated field {}", field.name),
    }
}

fn there(field: &Field, datum: &Datum, level: Level, columns: &mut [Column], at: &mut usize) {
    match (&field.kind, datum) {
        (Kind::Leaf(_), datum) => {
            columns[*at].entry(level);
            columns[*at].values.push(datum.clone());
            *at += 1;
        }
        (Kind::Group(fields), Datum::Group(data)) => {
            assert_eq!(fields.len(), data.len(), "{}", field.name);
            for (field, datum) in fields.iter().zip(data) {
                shred(field, datum, level, columns, at);
            }
        }
        (Kind::Group(_), datum) => panic!("{datum:?} of the group {}", field.name),
    }
}

fn absent(field: &Field, level: Level, columns: &mut [Column], at: &mut usize) {
    match &field.kind {
        Kind::Leaf(_) => {
            columns[*at].entry(level);
            *at += 1;
        }
        Kind::Group(fields) => fields.iter().for_each(|field| absent(field, level, columns, at)),
    }
}

impl Column {
    fn entry(&mut self, level: Level) {
        self.definition.push(level.definition);
        self.repetition.push(level.repetition);
    }

    fn finish(self, leaf: usize, rows: usize) -> ColumnBatch {
        let is_flat = self.repetition_max == 0 && self.definition_max <= 1;
        let valid: Vec<bool> = self.definition.iter().map(|level| *level == self.definition_max).collect();
        let mut data = self.values.into_iter();
        let null = || if self.physical.0 == 1 { Datum::Int(0) } else { Datum::Bytes(Vec::new()) };
        let data: Vec<Datum> = match is_flat {
            true => valid.iter().map(|valid| if *valid { data.next().unwrap() } else { null() }).collect(),
            false => data.collect(),
        };
        let as_bytes = || -> Vec<Vec<u8>> {
            let of = |datum: &Datum| match datum {
                Datum::Bytes(bytes) => bytes.clone(),
                other => panic!("{other:?} of a byte array"),
            };
            data.iter().map(of).collect()
        };
        let values = match self.physical.0 {
            1 => {
                let of = |datum: &Datum| match datum {
                    Datum::Int(number) => *number,
                    other => panic!("{other:?} of an INT32"),
                };
                int32(&data.iter().map(of).collect::<Vec<_>>())
            }
            6 => bytes(&as_bytes()),
            7 if data.is_empty() => {
                let width = self.physical.1.unwrap().try_into().unwrap();
                Values::FixedLenByteArray(marquetry_parquet::batch::FixedBytes::new(
                    width,
                    0,
                    Vec::new().into(),
                ))
            }
            7 => fixed(&as_bytes().iter().map(Vec::as_slice).collect::<Vec<_>>()),
            other => panic!("physical type {other}"),
        };
        let nulls = valid.iter().filter(|valid| !**valid).count();
        let levels = (!is_flat).then(|| Levels {
            definition: self.definition.into(),
            repetition: (self.repetition_max > 0).then(|| self.repetition.into()),
        });
        ColumnBatch {
            leaf,
            rows,
            nulls,
            validity: (is_flat && nulls > 0).then(|| valid.into_iter().collect()),
            values,
            layout: if is_flat { Layout::Spaced } else { Layout::Dense },
            levels,
            provisional: false,
        }
    }
}
