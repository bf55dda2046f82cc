//! Schemas, and rows of them as leaves hold them.

use marquetry_base::Limits;
use marquetry_conformance::craft::{self, Struct, V};
use marquetry_conformance::hostile::Random;
use marquetry_parquet::variant::{Primitive, VariantBuilder};

use crate::choices::Choices;
use crate::encode::{Physical, Style, value};

/// A field: how often it stands in its parent, and what it is.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its `SchemaElement`, but for the number of its children.
    pub element: Struct,
    /// 0 required, 1 optional, 2 repeated.
    pub repetition: i32,
    /// What it holds.
    pub kind: Kind,
}

/// What a field holds.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Values.
    Leaf(Leaf),
    /// Fields.
    Group(Vec<Field>),
}

/// A leaf.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// How values are held.
    pub physical: Physical,
    /// What they are like.
    pub style: Style,
    /// Where its values are those of a VARIANT.
    pub variant: Option<VariantPart>,
    /// The definition level of a value.
    pub definition_max: u32,
    /// The largest repetition level.
    pub repetition_max: u32,
}

/// The leaf of a VARIANT that a leaf is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariantPart {
    /// `metadata`
    Metadata,
    /// `value`
    Value,
}

/// What a leaf holds in some rows.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    /// Repetition levels.
    pub repetition: Vec<u32>,
    /// Definition levels.
    pub definition: Vec<u32>,
    /// The values that are there.
    pub values: Vec<Vec<u8>>,
}

/// A schema without its root.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The root's children.
    pub fields: Vec<Field>,
}

/// Levels of nesting at most: the limit's own is tested by lies.
const DEPTH_MAX: usize = 4;

impl Tree {
    /// A schema of one leaf.
    pub fn of_leaf(physical: Physical, repetition: i32, choices: &mut Choices<'_>) -> Tree {
        let mut tree = Tree { fields: vec![leaf("a", physical, repetition, choices)] };
        tree.settle();
        tree
    }

    /// Any schema of a few columns.
    pub fn choose(choices: &mut Choices<'_>, columns_max: usize) -> Tree {
        let columns = 1 + choices.below(columns_max);
        let mut tree = Tree { fields: Vec::new() };
        for number in 0..columns {
            let name = format!("c{number}");
            tree.fields.push(field(&name, choices, 0));
        }
        tree.settle();
        tree
    }

    /// A schema of one nested column.
    pub fn nested(choices: &mut Choices<'_>) -> Tree {
        let inner = field("element", choices, 1);
        let mut tree = Tree { fields: vec![list("a", 1, inner)] };
        tree.settle();
        tree
    }

    /// Works the largest levels of the leaves out.
    fn settle(&mut self) {
        fn settle(fields: &mut [Field], definition: u32, repetition: u32) {
            for field in fields {
                let definition = definition + u32::from(field.repetition > 0);
                let repetition = repetition + u32::from(field.repetition == 2);
                match &mut field.kind {
                    Kind::Leaf(leaf) => {
                        leaf.definition_max = definition;
                        leaf.repetition_max = repetition;
                    }
                    Kind::Group(fields) => settle(fields, definition, repetition),
                }
            }
        }
        settle(&mut self.fields, 0, 0);
    }

    /// Its elements, depth-first, without the root's.
    pub fn elements(&self) -> Vec<Struct> {
        fn push(fields: &[Field], out: &mut Vec<Struct>) {
            for field in fields {
                let mut element = field.element.clone();
                element.set(3, V::I32(field.repetition));
                if let Kind::Group(fields) = &field.kind {
                    element.set(5, V::I32(fields.len() as i32));
                    out.push(element);
                    push(fields, out);
                } else {
                    out.push(element);
                }
            }
        }
        let mut elements = Vec::new();
        push(&self.fields, &mut elements);
        elements
    }

    /// Its leaves, in order.
    pub fn leaves(&self) -> Vec<&Leaf> {
        fn push<'a>(fields: &'a [Field], out: &mut Vec<&'a Leaf>) {
            for field in fields {
                match &field.kind {
                    Kind::Leaf(leaf) => out.push(leaf),
                    Kind::Group(fields) => push(fields, out),
                }
            }
        }
        let mut leaves = Vec::new();
        push(&self.fields, &mut leaves);
        leaves
    }

    /// Random rows, leaf by leaf.
    pub fn rows(&self, rows: usize, nulls_in: u64, random: &mut Random) -> Vec<Entries> {
        let mut maker = Maker {
            entries: vec![Entries::default(); self.leaves().len()],
            nulls_in,
            random,
            variant: Variants::new(),
        };
        for _ in 0..rows {
            maker.fields(&self.fields, 0, 0, 0, 0);
        }
        maker.entries
    }
}

struct Maker<'a> {
    entries: Vec<Entries>,
    /// One of so many is null, or has no element.
    nulls_in: u64,
    random: &'a mut Random,
    variant: Variants,
}

impl Maker<'_> {
    /// Makes a slot of each field; `at` is the first one's first leaf. Says the leaf behind the last.
    fn fields(
        &mut self,
        fields: &[Field],
        mut at: usize,
        repetition: u32,
        definition: u32,
        depth: u32,
    ) -> usize {
        for field in fields {
            at = self.field(field, at, repetition, definition, depth);
        }
        at
    }

    fn field(&mut self, field: &Field, at: usize, repetition: u32, definition: u32, depth: u32) -> usize {
        match field.repetition {
            0 => self.slot(field, at, repetition, definition, depth),
            1 if self.random.below(self.nulls_in) == 0 => self.nothing(field, at, repetition, definition),
            1 => self.slot(field, at, repetition, definition + 1, depth),
            _ => {
                let count = if self.random.below(self.nulls_in) == 0 { 0 } else { 1 + self.random.below(4) };
                let mut end = at;
                for number in 0..count {
                    let repetition = if number == 0 { repetition } else { depth + 1 };
                    end = self.slot(field, at, repetition, definition + 1, depth + 1);
                }
                if count == 0 { self.nothing(field, at, repetition, definition) } else { end }
            }
        }
    }

    fn slot(&mut self, field: &Field, at: usize, repetition: u32, definition: u32, depth: u32) -> usize {
        match &field.kind {
            Kind::Group(fields) => self.fields(fields, at, repetition, definition, depth),
            Kind::Leaf(leaf) => {
                let entries = &mut self.entries[at];
                entries.repetition.push(repetition);
                entries.definition.push(definition);
                let value = match leaf.variant {
                    Some(VariantPart::Metadata) => self.variant.metadata.clone(),
                    Some(VariantPart::Value) => {
                        self.variant.values[self.random.index(self.variant.values.len())].clone()
                    }
                    None => value(leaf.physical, leaf.style, entries.values.len(), self.random),
                };
                entries.values.push(value);
                at + 1
            }
        }
    }

    /// Nothing is there: an entry in each leaf below.
    fn nothing(&mut self, field: &Field, at: usize, repetition: u32, definition: u32) -> usize {
        let count = match &field.kind {
            Kind::Leaf(_) => 1,
            Kind::Group(fields) => Tree { fields: fields.clone() }.leaves().len(),
        };
        for entries in &mut self.entries[at..at + count] {
            entries.repetition.push(repetition);
            entries.definition.push(definition);
        }
        at + count
    }
}

/// Encoded variants whose names are those of one metadata.
struct Variants {
    metadata: Vec<u8>,
    values: Vec<Vec<u8>>,
}

impl Variants {
    fn new() -> Variants {
        let mut metadata = Vec::new();
        let mut values = Vec::new();
        let primitives = [
            Primitive::Null,
            Primitive::Boolean(true),
            Primitive::Int8(-7),
            Primitive::Int64(i64::MIN),
            Primitive::Double(0.5),
            Primitive::Decimal8 { unscaled: -12_345, scale: 3 },
            Primitive::String("text \"quoted\""),
            Primitive::Binary(b"\0\xff"),
            Primitive::Timestamp(1_700_000_000_000_000),
        ];
        for primitive in primitives {
            let mut builder = VariantBuilder::new(&Limits::DEFAULT);
            let mut build = || {
                builder.start_object()?;
                builder.field("a")?;
                builder.primitive(primitive)?;
                builder.field("b")?;
                builder.start_array()?;
                builder.primitive(primitive)?;
                builder.end()?;
                builder.end()
            };
            build().expect("a small variant");
            let (names, object) = builder.finish().expect("it is whole");
            metadata = names;
            let mut builder = VariantBuilder::new(&Limits::DEFAULT);
            builder.primitive(primitive).expect("a primitive");
            values.push(builder.finish().expect("it is whole").1);
            values.push(object);
        }
        Variants { metadata, values }
    }
}

fn leaf(name: &str, physical: Physical, repetition: i32, choices: &mut Choices<'_>) -> Field {
    let mut element = Struct::of([(1, V::I32(physical.number())), (4, V::text(name))]);
    if let Physical::Fixed(width) = physical {
        element.set(2, V::I32(width as i32));
    }
    let annotations = physical.annotations();
    let annotation = choices.below(annotations.len());
    element.0.extend(annotations[annotation].clone());
    let style = Style::choose(choices);
    // Annotated byte strings are texts.
    let style = if physical == Physical::Bytes && annotation > 0 && style == Style::Any {
        Style::Plain
    } else {
        style
    };
    let leaf = Leaf { physical, style, variant: None, definition_max: 0, repetition_max: 0 };
    Field { element, repetition, kind: Kind::Leaf(leaf) }
}

fn named(name: &str) -> Struct {
    Struct::of([(4, V::text(name))])
}

fn group(name: &str, repetition: i32, fields: Vec<Field>) -> Field {
    Field { element: named(name), repetition, kind: Kind::Group(fields) }
}

/// A list in the usual shape.
fn list(name: &str, repetition: i32, element: Field) -> Field {
    let mut outer = group(name, repetition, vec![group("list", 2, vec![element])]);
    outer.element.set(6, V::I32(craft::LIST));
    outer
}

fn field(name: &str, choices: &mut Choices<'_>, depth: usize) -> Field {
    let repetition = choices.pick(&[1, 0, 1]);
    let kind = choices.byte() % 16;
    if depth >= DEPTH_MAX || kind < 9 {
        let physical = Physical::choose(choices);
        return leaf(name, physical, repetition, choices);
    }
    match kind {
        9 | 10 => list(name, repetition, field("element", choices, depth + 1)),
        11 => {
            let key = leaf("key", choices.pick(&[Physical::Bytes, Physical::Int32]), 0, choices);
            let mut fields = vec![key];
            if !choices.once_in(4) {
                fields.push(field("value", choices, depth + 1));
            }
            let mut outer = group(name, repetition, vec![group("key_value", 2, fields)]);
            outer.element.set(6, V::I32(craft::MAP));
            outer
        }
        12 => {
            let physical = Physical::choose(choices);
            leaf(name, physical, 2, choices)
        }
        13 => group(name, 2, vec![field("x", choices, depth + 1), field("y", choices, depth + 1)]),
        14 => {
            let metadata = variant_leaf("metadata", 0, VariantPart::Metadata);
            let fields = if choices.once_in(2) {
                [vec![metadata], shredded(choices, depth)].concat()
            } else {
                vec![metadata, variant_leaf("value", 0, VariantPart::Value)]
            };
            let mut outer = group(name, repetition, fields);
            let variant = V::Struct(Struct::of([(16, V::Struct(Struct::of([(1, V::I8(1))])))]));
            outer.element.set(10, variant);
            outer
        }
        _ => {
            let fields = 1 + choices.below(3);
            let fields = (0..fields).map(|nth| field(&format!("f{nth}"), choices, depth + 1)).collect();
            group(name, repetition, fields)
        }
    }
}

fn variant_leaf(name: &str, repetition: i32, part: VariantPart) -> Field {
    let mut field = leaf(name, Physical::Bytes, repetition, &mut Choices::new(&[]));
    if let Kind::Leaf(leaf) = &mut field.kind {
        leaf.variant = Some(part);
    }
    field
}

/// The columns of a shredded variant: a value may be in both, which is an error where it is met.
fn shredded(choices: &mut Choices<'_>, depth: usize) -> Vec<Field> {
    let typed = match choices.byte() % 4 {
        0 if depth < DEPTH_MAX => group("typed_value", 1, vec![group("a", 0, shredded(choices, depth + 1))]),
        1 if depth < DEPTH_MAX => list("typed_value", 1, group("element", 0, shredded(choices, depth + 1))),
        _ => {
            let physical = Physical::choose(choices);
            leaf("typed_value", physical, 1, choices)
        }
    };
    vec![variant_leaf("value", 1, VariantPart::Value), typed]
}
