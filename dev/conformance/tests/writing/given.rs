//! Tables that are made here: all physical types, flat and nested, with and without nulls.

use std::sync::Arc;

use marquetry_base::{Bitmap, Buffer, Bytes};
use marquetry_conformance::canonical;
use marquetry_conformance::craft::{self, Column, DOUBLE, FLOAT, Struct, Table, V, group, leaf};
use marquetry_conformance::hostile::{Manner, Random};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
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

/// How a column's values stand in their rows: `required`, `optional`, or what they are in, from the outside in. A shape's last part says
/// what of that is required, a bit each, the value's the last: nothing, unless it says so.
pub(crate) const SHAPES: [&str; 5] = ["required", "optional", "struct", "list", "list_list_list_r4"];

/// Every nesting of three: structs, lists and maps in each other. `required` says of each, by its number, what is required.
pub(crate) fn deep_shapes(required: impl Fn(usize) -> usize) -> Vec<String> {
    const LAYERS: [&str; 3] = ["struct", "list", "map"];
    let shape = |at: usize| {
        let [outer, middle, inner] = [at / 9, at / 3 % 3, at % 3].map(|layer| LAYERS[layer]);
        format!("{outer}_{middle}_{inner}_r{}", required(at) % 16)
    };
    (0..27).map(shape).collect()
}

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

/// Adds a column, or what it is in, layer by layer.
fn nest(elements: &mut Vec<Struct>, name: &str, layers: &[&str], required: u32, number: i32) {
    let repetition = if required % 2 == 1 { 0 } else { 1 };
    let Some((layer, inner)) = layers.split_first() else {
        return elements.push(value_leaf(name, repetition, number));
    };
    let field = match *layer {
        "struct" => {
            elements.push(group(name, repetition, 1));
            "field"
        }
        "list" => {
            elements.extend(lists(name, repetition));
            "element"
        }
        "map" => {
            let mut outer = group(name, repetition, 1);
            outer.set(6, V::I32(craft::MAP));
            elements.extend([outer, group("key_value", 2, 2), value_leaf("key", 0, number)]);
            "value"
        }
        other => panic!("no layer {other}"),
    };
    nest(elements, field, inner, required / 2, number);
}

/// A schema with a column of each of these types in each of these shapes.
pub(crate) fn schema(types: &[(&str, i32)], shapes: &[impl AsRef<str>]) -> Arc<Schema> {
    let mut elements = Vec::new();
    for (name, number) in types {
        for shape in shapes {
            let shape = shape.as_ref();
            let (mut layers, mut required) = (shape.split('_').collect::<Vec<_>>(), 0);
            if let Some(bits) = layers[layers.len() - 1].strip_prefix('r').and_then(|bits| bits.parse().ok())
            {
                (required, _) = (bits, layers.pop());
            } else if let "required" | "optional" = shape {
                (required, layers) = (u32::from(shape == "required"), Vec::new());
            }
            nest(&mut elements, &format!("{name}_{shape}"), &layers, required, *number);
        }
    }
    let children = i32::try_from(types.len() * shapes.len()).unwrap();
    let file = Table::nested(children, elements).write();
    canonical::metadata(&file, Manner::KIND).unwrap().schema.clone()
}

/// A flat schema of required columns, all of one type.
pub(crate) fn wide(columns: usize, number: i32) -> Arc<Schema> {
    flat(&vec![number; columns])
}

/// A flat schema of required columns of these types.
pub(crate) fn flat(types: &[i32]) -> Arc<Schema> {
    let columns = types.iter().enumerate();
    let columns = columns.map(|(column, number)| Column::required(&format!("c{column}"), *number));
    let file = Table::new(columns).write();
    canonical::metadata(&file, Manner::KIND).unwrap().schema.clone()
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
    /// No two alike, as keys of a map should be; but booleans.
    Distinct,
}

/// Rows of every column of a schema.
pub(crate) fn batch(schema: &Schema, rows: usize, flavour: Flavour, layout: Layout, seed: u64) -> Batch {
    let mut random = Random(seed | 1);
    // Keys of maps stand before their values, and have their levels; so the last leaf of each field is first.
    let mut columns: Vec<ColumnBatch> = Vec::new();
    for number in (0..schema.leaves().len()).rev() {
        let is_of = |column: &&ColumnBatch| field_of(schema, column.leaf) == field_of(schema, number);
        let levels = columns.last().filter(is_of).and_then(|column| column.levels.as_ref());
        let levels = levels.map(|levels| levels_of_key(&schema.leaves()[number], levels));
        let flavour = if levels.is_some() { Flavour::Distinct } else { flavour };
        columns.push(column(schema, number, rows, levels, flavour, layout, &mut random));
    }
    columns.reverse();
    Batch { row_group: 0, first_row: 0, rows, columns }
}

/// The column's field at the root.
fn field_of(schema: &Schema, leaf: usize) -> usize {
    let mut node = schema.leaves()[leaf].node;
    while schema.nodes()[node].parent != 0 {
        node = schema.nodes()[node].parent;
    }
    node
}

/// The levels of a map's key, from those of what stands in its value.
fn levels_of_key(key: &Leaf, value: &Levels) -> Levels {
    let (definition_max, repetition_max) =
        (u8::try_from(key.definition_max).unwrap(), u8::try_from(key.repetition_max).unwrap());
    let repetition = value.repetition.as_ref().expect("a map is repeated");
    let entries = value.definition.iter().zip(repetition.iter());
    let entries = entries.filter(|(_, repetition)| **repetition <= repetition_max);
    let (definition, repetition): (Vec<u8>, Vec<u8>) =
        entries.map(|(definition, repetition)| (*definition.min(&definition_max), *repetition)).unzip();
    Levels { definition: definition.into(), repetition: Some(repetition.into()) }
}

fn column(
    schema: &Schema,
    number: usize,
    rows: usize,
    given: Option<Levels>,
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
        let levels = given.unwrap_or_else(|| levels(schema, leaf, rows, random));
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
        Flavour::Distinct => u64::try_from(at).unwrap() * 5 + 1,
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
            Values::ByteArray(ByteArrays::from_lengths(bytes, strings.iter().map(String::len)).unwrap())
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
