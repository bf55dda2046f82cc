//! Tables that are made here: all physical types, flat and nested, with and without nulls.

use std::sync::Arc;

use marquetry_base::{Bitmap, Buffer, Bytes};
use marquetry_conformance::canonical;
use marquetry_conformance::craft::{self, Column, DOUBLE, FLOAT, Struct, Table, V, group, leaf};
use marquetry_conformance::hostile::{Manner, Random};
use marquetry_parquet::read::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use marquetry_parquet::schema::{Leaf, PhysicalType, Repetition, Schema};

/// The physical types, by name and number.
pub(crate) const TYPES: [(&str, i32); 8] = [
    ("boolean", craft::BOOLEAN),
    ("int32", craft::INT32),
    ("int64", craft::INT64),
    ("int96", craft::INT96),
    ("float", FLOAT),
    ("double", DOUBLE),
    ("bytes", craft::BYTE_ARRAY),
    ("fixed", craft::FIXED_LEN_BYTE_ARRAY),
];

/// How a column's values stand in their rows.
pub(crate) const SHAPES: [&str; 5] = ["required", "optional", "struct", "list", "deep"];

fn value_leaf(name: &str, repetition: i32, number: i32) -> Struct {
    let mut element = leaf(name, repetition, number);
    if number == craft::FIXED_LEN_BYTE_ARRAY {
        element.set(2, V::I32(5));
    }
    if number == craft::BYTE_ARRAY {
        element.set(6, V::I32(0));
    }
    element
}

fn lists(name: &str, repetition: i32) -> [Struct; 2] {
    let mut outer = group(name, repetition, 1);
    outer.set(6, V::I32(craft::LIST));
    [outer, group("list", 2, 1)]
}

/// A schema with a column of each of these types in each of these shapes.
pub(crate) fn schema(types: &[(&str, i32)], shapes: &[&str]) -> Arc<Schema> {
    let mut elements = Vec::new();
    for (name, number) in types {
        for shape in shapes {
            let column = format!("{name}_{shape}");
            match *shape {
                "required" => elements.push(value_leaf(&column, 0, *number)),
                "optional" => elements.push(value_leaf(&column, 1, *number)),
                "struct" => {
                    elements.push(group(&column, 1, 1));
                    elements.push(value_leaf("field", 1, *number));
                }
                "list" => {
                    elements.extend(lists(&column, 1));
                    elements.push(value_leaf("element", 1, *number));
                }
                "deep" => {
                    elements.extend(lists(&column, 1));
                    elements.extend(lists("element", 1));
                    elements.extend(lists("element", 0));
                    elements.push(value_leaf("element", 1, *number));
                }
                other => panic!("no shape {other}"),
            }
        }
    }
    let children = i32::try_from(types.len() * shapes.len()).unwrap();
    let file = Table::nested(children, elements).write();
    Arc::new(canonical::metadata(&file, Manner::KIND).unwrap().schema.clone())
}

/// A flat schema of required columns, all of one type.
pub(crate) fn wide(columns: usize, number: i32) -> Arc<Schema> {
    let columns = (0..columns).map(|column| Column::required(&format!("c{column}"), number));
    let file = Table::new(columns).write();
    Arc::new(canonical::metadata(&file, Manner::KIND).unwrap().schema.clone())
}

/// What values are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// A few, again and again.
    Few,
    /// Each one once, in order.
    Ascending,
    /// Anything.
    Random,
}

/// Rows of every column of a schema.
pub(crate) fn batch(schema: &Schema, rows: usize, flavour: Flavour, layout: Layout, seed: u64) -> Batch {
    let mut random = Random(seed | 1);
    let columns =
        (0..schema.leaves().len()).map(|number| column(schema, number, rows, flavour, layout, &mut random));
    Batch { row_group: 0, first_row: 0, rows, columns: columns.collect() }
}

fn column(
    schema: &Schema,
    number: usize,
    rows: usize,
    flavour: Flavour,
    layout: Layout,
    random: &mut Random,
) -> ColumnBatch {
    let leaf = &schema.leaves()[number];
    let mut column = ColumnBatch {
        leaf: number,
        rows,
        nulls: 0,
        validity: None,
        values: Values::Boolean([].into_iter().collect()),
        layout,
        levels: None,
        provisional: false,
    };
    let values;
    if leaf.is_flat() {
        let is_null = |random: &mut Random| leaf.definition_max > 0 && random.below(4) == 0;
        let there: Vec<bool> = (0..rows).map(|_| !is_null(random)).collect();
        column.nulls = there.iter().filter(|there| !**there).count();
        values = if layout == Layout::Dense { rows - column.nulls } else { rows };
        if column.nulls > 0 {
            // Not at a byte's start.
            let bits: Bitmap = [false, true, true].into_iter().chain(there).collect();
            column.validity = Some(bits.slice(3..3 + rows));
        }
    } else {
        let levels = levels(schema, leaf, rows, random);
        let there = |level: &&u8| u16::from(**level) == leaf.definition_max;
        values = levels.definition.iter().filter(there).count();
        column.nulls = levels.definition.len() - values;
        (column.levels, column.layout) = (Some(levels), Layout::Dense);
    }
    column.values = values_of(leaf.physical_type, values, flavour, random);
    column
}

/// Levels that can be: a list goes on only where it has an element.
fn levels(schema: &Schema, leaf: &Leaf, rows: usize, random: &mut Random) -> Levels {
    // The definition level of each repeated node above the leaf.
    let mut path = vec![leaf.node];
    while path[path.len() - 1] != 0 {
        path.push(schema.nodes()[path[path.len() - 1]].parent);
    }
    let (mut level, mut repeated) = (0u8, Vec::new());
    for node in path.iter().rev().skip(1) {
        let repetition = schema.nodes()[*node].repetition;
        level += u8::from(repetition != Repetition::Required);
        if repetition == Repetition::Repeated {
            repeated.push(level);
        }
    }
    let (mut definition, mut repetition) = (Vec::new(), Vec::new());
    let below = |random: &mut Random, bound: u8| u8::try_from(random.below(u64::from(bound) + 1)).unwrap();
    for _ in 0..rows {
        let mut here = below(random, level).max(below(random, level));
        definition.push(here);
        repetition.push(0);
        while !repeated.is_empty() && random.below(4) > 0 {
            let deep = random.index(repeated.len());
            if here < repeated[deep] {
                break;
            }
            here = repeated[deep] + below(random, level - repeated[deep]);
            definition.push(here);
            repetition.push(u8::try_from(deep + 1).unwrap());
        }
    }
    Levels { definition: definition.into(), repetition: (!repeated.is_empty()).then(|| repetition.into()) }
}

fn values_of(physical_type: PhysicalType, count: usize, flavour: Flavour, random: &mut Random) -> Values {
    let mut number = |at: usize| match flavour {
        Flavour::Few => random.below(20),
        Flavour::Ascending => u64::try_from(at).unwrap() * 3,
        Flavour::Random => random.number(),
    };
    let numbers: Vec<u64> = (0..count).map(&mut number).collect();
    fn of<T>(numbers: &[u64], turn: impl Fn(u64) -> T) -> Buffer<T> {
        numbers.iter().map(|number| turn(*number)).collect::<Vec<T>>().into()
    }
    let low = |number: u64| u32::try_from(number & 0xffff_ffff).unwrap();
    match physical_type {
        PhysicalType::Boolean => Values::Boolean(numbers.iter().map(|number| number % 3 == 0).collect()),
        PhysicalType::Int32 => Values::Int32(of(&numbers, |number| low(number).cast_signed())),
        PhysicalType::Int64 => Values::Int64(of(&numbers, u64::cast_signed)),
        PhysicalType::Float => {
            Values::Float(of(&numbers, |number| f32::from_bits(low(number << 8) & 0x7eff_ffff)))
        }
        PhysicalType::Double => Values::Double(of(&numbers, |number| f64::from(low(number)) / 8.0)),
        PhysicalType::Int96 => {
            // A time of day, and a day that others can show.
            let of = |number: &u64| {
                let nanos = number % 86_400_000_000 * 1000;
                let day = 2_440_588 + low(number % 20_000);
                [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat()
            };
            let bytes: Vec<u8> = numbers.iter().flat_map(of).collect();
            Values::Int96(FixedBytes::new(12, count, bytes.into()))
        }
        PhysicalType::FixedLenByteArray(width) => {
            let width = usize::try_from(width).unwrap();
            let bytes: Vec<u8> =
                numbers.iter().flat_map(|it| it.to_be_bytes()[8 - width..].to_vec()).collect();
            Values::FixedLenByteArray(FixedBytes::new(width, count, bytes.into()))
        }
        PhysicalType::ByteArray => {
            let strings: Vec<String> = numbers.iter().map(|number| string(*number)).collect();
            let bytes = Bytes::from(strings.concat());
            Values::ByteArray(ByteArrays::from_lengths(bytes, strings.iter().map(String::len)))
        }
    }
}

/// Short, long, and some empty.
fn string(number: u64) -> String {
    match number % 5 {
        0 => String::new(),
        1 => format!("{number}"),
        2 => format!("value {number:020}"),
        _ => format!("\u{e9}t\u{e9} {number:x} and more of it, so that it is no view's own"),
    }
}
