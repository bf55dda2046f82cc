//! The program that assembles records of a schema.

use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use crate::schema::{Paths, PhysicalType, Schema, Shape, ShapeKind};

/// How to assemble the records of a projection of a schema.
#[derive(Debug, Clone)]
pub struct Program {
    pub(super) ops: Vec<Op>,
    fields: Vec<Field>,
    /// What shredding needs to know about each field.
    slots: Vec<Slot>,
    leaves: Vec<ProgramLeaf>,
    paths: Paths,
    /// The columns below lists.
    repeated: Vec<usize>,
    roots: Vec<usize>,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The node of the schema.
    pub node: usize,
    /// The fields of a struct, the element of a list, the key and value of a map, as indices into [`Program::fields`].
    pub children: Vec<usize>,
}

/// A column of the batches.
#[derive(Debug, Clone)]
pub(super) struct ProgramLeaf {
    pub(super) number: usize,
    pub(super) physical_type: PhysicalType,
    pub(super) definition_max: u8,
    pub(super) is_repeated: bool,
}

/// The place of a field, and of its absence. `first..behind` are columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// The field that it is in; of a root, [`ROOT`].
    pub(super) parent: usize,
    pub(super) is_nullable: bool,
    /// The definition level from which on it is present.
    pub(super) definition: u8,
    pub(super) first: usize,
    pub(super) behind: usize,
    pub(super) kind: SlotKind,
}

/// What a [`Slot`] holds. A list or map has an element from this definition level on, and another one at this
/// repetition level.
#[derive(Debug, Clone, Copy)]
pub(super) enum SlotKind {
    Leaf,
    Struct,
    List { definition: u8, repetition: u8 },
    Map { definition: u8, repetition: u8 },
}

/// The parent of the roots.
pub(super) const ROOT: usize = usize::MAX;

/// An instruction. `first..behind` are columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    StartRecord,
    EndRecord,
    /// Null if the definition level of the next entry is below `definition`: then continue at `skip`.
    Null {
        field: usize,
        definition: u8,
        first: usize,
        behind: usize,
        skip: usize,
    },
    Value {
        field: usize,
        column: usize,
    },
    StartStruct(usize),
    EndStruct(usize),
    StartList(usize),
    EndList(usize),
    StartMap(usize),
    EndMap(usize),
    /// Empty if the definition level of the next entry is below `definition`: then continue at `skip`.
    Empty {
        definition: u8,
        first: usize,
        behind: usize,
        skip: usize,
    },
    /// Continue at `back` if the next entry is another element.
    Repeat {
        repetition: u8,
        first: usize,
        behind: usize,
        back: usize,
    },
}

impl Program {
    /// The program for the records of some leaves of a schema, in the schema's order, which is also the order in the
    /// batches.
    ///
    /// # Errors
    ///
    /// `Misuse` for leaves that do not exist or are not in order; `Corrupt` for LIST and MAP groups that no rule makes
    /// one; `LimitExceeded` for a schema that is nested too deeply; `Unsupported` for a list whose elements are empty
    /// structs.
    pub fn new(schema: &Schema, leaves: &[usize]) -> Result<Program> {
        if !leaves.is_sorted_by(|a, b| a < b) {
            return Err(Error::misuse("leaves that are not in the schema's order"));
        }
        let level =
            |level: u16| u8::try_from(level).map_err(|_| Error::too_large("more than 255 levels of nesting"));
        let mut repeated = Vec::new();
        let columns = leaves
            .iter()
            .enumerate()
            .map(|(column, &number)| {
                let leaf =
                    schema.leaves().get(number).ok_or_else(|| Error::misuse("a leaf that is not there"))?;
                let is_repeated = level(leaf.repetition_max)? > 0;
                if is_repeated {
                    repeated.push(column);
                }
                Ok(ProgramLeaf {
                    number,
                    physical_type: leaf.physical_type,
                    definition_max: level(leaf.definition_max)?,
                    is_repeated,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let (ops, fields, slots, roots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let paths = Paths::new(schema, leaves.iter().copied());
        let mut program = Program { ops, fields, slots, leaves: columns, paths, repeated, roots };
        program.ops.push(Op::StartRecord);
        for node in schema.children(0) {
            if let Some(shape) = schema.shape(node, |leaf| leaves.binary_search(&leaf).is_ok())? {
                let root = program.field(schema, &shape, ROOT)?;
                program.roots.push(root);
            }
        }
        program.ops.push(Op::EndRecord);
        Ok(program)
    }

    /// The fields that events are about.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The record's own fields, as indices into [`Program::fields`].
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn leaves(&self) -> &[ProgramLeaf] {
        &self.leaves
    }

    /// The path of a column's leaf.
    pub(super) fn path_of(&self, column: usize) -> Option<String> {
        self.paths.of(self.leaves.get(column)?.number)
    }

    pub(super) fn repeated(&self) -> &[usize] {
        &self.repeated
    }

    /// Compiles a shape and returns its field.
    fn field(&mut self, schema: &Schema, shape: &Shape, parent: usize) -> Result<usize> {
        let field = self.fields.len();
        self.fields.push(Field { node: shape.node, children: Vec::new() });
        // Columns below the shape: for a projection, a range of the program's columns.
        let first = self.leaves.partition_point(|leaf| leaf.number < shape.leaves.start);
        let behind = self.leaves.partition_point(|leaf| leaf.number < shape.leaves.end);
        if first == behind && matches!(shape.kind, ShapeKind::List(..) | ShapeKind::Map(..)) {
            let path = schema.path(shape.node);
            return Err(Error::unsupported("a list whose elements hold nothing")
                .at(|place| place.column = Some(path)));
        }
        let kind = match &shape.kind {
            ShapeKind::Leaf => SlotKind::Leaf,
            ShapeKind::Struct(_) => SlotKind::Struct,
            ShapeKind::List(inner, _) => {
                SlotKind::List { definition: low(inner.definition), repetition: low(inner.repetition) }
            }
            ShapeKind::Map(inner, ..) => {
                SlotKind::Map { definition: low(inner.definition), repetition: low(inner.repetition) }
            }
        };
        let (is_nullable, definition) = (shape.is_nullable, low(shape.definition));
        self.slots.push(Slot { parent, is_nullable, definition, first, behind, kind });
        let null = self.ops.len();
        // An empty struct has no column that could tell that it is null.
        let may_be_null = shape.is_nullable && first < behind;
        if may_be_null {
            self.ops.push(Op::Null { field, definition, first, behind, skip: 0 });
        }
        match &shape.kind {
            ShapeKind::Leaf => self.ops.push(Op::Value { field, column: first }),
            ShapeKind::Struct(children) => {
                self.ops.push(Op::StartStruct(field));
                for child in children {
                    let child = self.field(schema, child, field)?;
                    self.fields[field].children.push(child);
                }
                self.ops.push(Op::EndStruct(field));
            }
            ShapeKind::List(repeated, element) => {
                self.ops.push(Op::StartList(field));
                let empty = self.ops.len();
                self.ops.push(Op::Empty { definition: low(repeated.definition), first, behind, skip: 0 });
                let child = self.field(schema, element, field)?;
                self.fields[field].children.push(child);
                self.ops.push(Op::Repeat {
                    repetition: low(repeated.repetition),
                    first,
                    behind,
                    back: empty + 1,
                });
                self.skip_to_here(empty);
                self.ops.push(Op::EndList(field));
            }
            ShapeKind::Map(repeated, key, value) => {
                self.ops.push(Op::StartMap(field));
                let empty = self.ops.len();
                self.ops.push(Op::Empty { definition: low(repeated.definition), first, behind, skip: 0 });
                let key = self.field(schema, key, field)?;
                self.fields[field].children.push(key);
                if let Some(value) = value {
                    let value = self.field(schema, value, field)?;
                    self.fields[field].children.push(value);
                }
                self.ops.push(Op::Repeat {
                    repetition: low(repeated.repetition),
                    first,
                    behind,
                    back: empty + 1,
                });
                self.skip_to_here(empty);
                self.ops.push(Op::EndMap(field));
            }
        }
        if may_be_null {
            self.skip_to_here(null);
        }
        Ok(field)
    }

    /// Makes an instruction jump to the end of the program so far.
    fn skip_to_here(&mut self, op: usize) {
        let here = self.ops.len();
        if let Some(Op::Null { skip, .. } | Op::Empty { skip, .. }) = self.ops.get_mut(op) {
            *skip = here;
        }
    }
}

/// A level that is known to fit: no node has more than its leaves.
fn low(level: u16) -> u8 {
    u8::try_from(level).unwrap_or(u8::MAX)
}
