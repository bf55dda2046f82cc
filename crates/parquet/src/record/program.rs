//! The program that assembles records of a schema.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Result, Segmented};

use crate::schema::{FIELD_PRICE, Holds, PhysicalType, Plan, Schema, Shape, Visit, Walk};

/// How to assemble the records of a projection of a schema.
#[derive(Debug, Clone)]
pub struct Program {
    schema: Arc<Schema>,
    pub(super) ops: Segmented<Op>,
    fields: Segmented<Field>,
    leaves: Segmented<ProgramLeaf>,
    /// The columns below lists.
    repeated: Segmented<usize>,
    /// The record's own fields.
    roots: usize,
}

/// What an event is about.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The node of the schema.
    pub node: usize,
    /// The field that it is in; of a root, [`ROOT`].
    pub(super) parent: usize,
    /// The next field in the same parent, or [`ROOT`].
    next: usize,
    /// The fields in it.
    fields: usize,
    pub(super) is_nullable: bool,
    /// The definition level from which on it is present.
    pub(super) definition: u8,
    /// Its columns are `first..behind`.
    pub(super) first: usize,
    pub(super) behind: usize,
    pub(super) kind: FieldKind,
}

/// What the events of a [`Field`] are, as [`Program::form`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldForm {
    /// A value of this type.
    Leaf(PhysicalType),
    /// A start, its fields, an end.
    Struct,
    /// A start, elements, an end.
    List,
    /// A start, keys and values, an end.
    Map,
}

/// What a [`Field`] holds. A list or map has an element from this definition level on, and another one at this
/// repetition level.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldKind {
    Leaf,
    Struct,
    List { definition: u8, repetition: u8 },
    Map { definition: u8, repetition: u8 },
}

/// A column of the batches.
#[derive(Debug, Clone)]
pub(super) struct ProgramLeaf {
    pub(super) number: usize,
    pub(super) physical_type: PhysicalType,
    pub(super) definition_max: u8,
    pub(super) is_repeated: bool,
}

/// The parent of the roots: no field.
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
    /// The plan of a program for the records of some leaves of a schema, in the schema's order, which is also the order
    /// in the batches; `None`: all leaves. Its errors are:
    ///
    /// `Misuse` for leaves that do not exist or are not in order; `Corrupt` for LIST and MAP groups that no rule makes
    /// one; `LimitExceeded` for a schema that is nested too deeply; `Unsupported` for a list whose elements are empty
    /// structs.
    pub fn plan(schema: Arc<Schema>, leaves: Option<Arc<[usize]>>) -> ProgramPlan {
        let program = Program::empty(schema);
        ProgramPlan { program, only: leaves, walk: Walk::of_columns(), open: Vec::new(), last_root: ROOT }
    }

    pub(super) fn empty(schema: Arc<Schema>) -> Program {
        let (ops, fields) = (Segmented::new(), Segmented::new());
        Program { schema, ops, fields, leaves: Segmented::new(), repeated: Segmented::new(), roots: 0 }
    }

    /// The fields that events are about, each before those in it.
    pub fn fields(&self) -> &Segmented<Field> {
        &self.fields
    }

    /// The record's own fields, as indices into [`Program::fields`].
    pub fn roots(&self) -> impl Iterator<Item = usize> + '_ {
        self.children(ROOT)
    }

    /// What the events of a field are, and whether it may be [null](super::RecordSink::null). `None` for a field that there is none of.
    pub fn form(&self, field: usize) -> Option<(FieldForm, bool)> {
        let it = self.fields.get(field)?;
        let form = match it.kind {
            FieldKind::Leaf => FieldForm::Leaf(self.leaves.get(it.first)?.physical_type),
            FieldKind::Struct => FieldForm::Struct,
            FieldKind::List { .. } => FieldForm::List,
            FieldKind::Map { .. } => FieldForm::Map,
        };
        // An empty struct has no column that could tell that it is null.
        Some((form, it.is_nullable && it.first < it.behind))
    }

    /// The fields of a struct, the element of a list, the key and value of a map, as indices into [`Program::fields`].
    /// None for other indices.
    pub fn children(&self, field: usize) -> impl Iterator<Item = usize> + '_ {
        let first = if field == ROOT { 0 } else { field.saturating_add(1) };
        let first = if self.arity(field) > 0 { first } else { ROOT };
        core::iter::successors(Some(first), |&child| self.fields.get(child).map(|child| child.next))
            .take_while(|&child| child != ROOT)
    }

    /// How many [children](Program::children) there are.
    pub(super) fn arity(&self, field: usize) -> usize {
        if field == ROOT { self.roots } else { self.fields.get(field).map_or(0, |field| field.fields) }
    }

    pub(super) fn leaves(&self) -> &Segmented<ProgramLeaf> {
        &self.leaves
    }

    /// The path of a field in the schema, joined with dots. `None` if there is no such field.
    pub fn path(&self, field: usize) -> Option<String> {
        self.fields.get(field).map(|field| self.schema.path(field.node))
    }

    /// The path of a column's leaf.
    pub(super) fn path_of(&self, column: usize) -> Option<String> {
        Some(self.schema.leaf_path(self.leaves.get(column)?.number))
    }

    pub(super) fn repeated(&self) -> &Segmented<usize> {
        &self.repeated
    }
}

/// The [`Plan`] of a [`Program`].
#[derive(Debug)]
pub struct ProgramPlan {
    program: Program,
    /// The leaves that are wanted, if not all.
    only: Option<Arc<[usize]>>,
    walk: Walk,
    /// The structs, lists and maps around the next field.
    open: Vec<Open>,
    /// The last field of the record so far.
    last_root: usize,
}

/// A struct, list or map whose fields are being compiled.
#[derive(Debug, Clone, Copy)]
struct Open {
    field: usize,
    /// The last field in it so far.
    last: usize,
    /// The instructions that jump to its end if it is null, and if it is empty.
    null: Option<usize>,
    empty: usize,
}

/// Fields between two looks at the budget.
const FIELDS_SLICE: usize = 64;

impl Plan for ProgramPlan {
    type Made = Program;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<Program>> {
        loop {
            let mut fields = 0;
            let mut is_done = false;
            while fields < FIELDS_SLICE && !is_done {
                is_done = if self.program.leaves.len() < self.columns() {
                    self.column()?;
                    false
                } else {
                    self.field()?
                };
                fields += 1;
            }
            budget.charge(FIELD_PRICE, 0, fields);
            if is_done {
                let schema = Arc::clone(&self.program.schema);
                let empty = Program::empty(schema);
                return Ok(Some(core::mem::replace(&mut self.program, empty)));
            }
            if budget.is_spent() {
                return Ok(None);
            }
        }
    }
}

impl ProgramPlan {
    fn columns(&self) -> usize {
        self.only.as_ref().map_or(self.program.schema.leaves().len(), |only| only.len())
    }

    /// Adds the next column.
    fn column(&mut self) -> Result<()> {
        let level =
            |level: u16| u8::try_from(level).map_err(|_| Error::too_large("more than 255 levels of nesting"));
        let column = self.program.leaves.len();
        let number = self.only.as_ref().map_or(column, |only| only[column]);
        if self.program.leaves.last().is_some_and(|last| last.number >= number) {
            return Err(Error::misuse("leaves that are not in the schema's order"));
        }
        let leaf = self.program.schema.leaves().get(number);
        let leaf = leaf.ok_or_else(|| Error::misuse("a leaf that is not there"))?;
        let is_repeated = level(leaf.repetition_max)? > 0;
        if is_repeated {
            self.program.repeated.push(column);
        }
        let (physical_type, definition_max) = (leaf.physical_type, level(leaf.definition_max)?);
        self.program.leaves.push(ProgramLeaf { number, physical_type, definition_max, is_repeated });
        Ok(())
    }

    /// Compiles the next field, or the end of one. True after the record's.
    fn field(&mut self) -> Result<bool> {
        let schema = Arc::clone(&self.program.schema);
        let program = &mut self.program;
        if program.ops.is_empty() {
            program.ops.push(Op::StartRecord);
        }
        match self.walk.next(&schema, self.only.as_deref())? {
            None => return Ok(true),
            Some(Visit::Skipped) => {}
            Some(Visit::Field(shape, holds)) => {
                let field = program.fields.len();
                let parent = self.open.last().map_or(ROOT, |open| open.field);
                program.add(shape, holds, parent)?;
                match self.open.last_mut() {
                    Some(open) => program.follow(&mut open.last, field),
                    None => program.follow(&mut self.last_root, field),
                }
                let (null, empty) = program.start(field);
                match program.fields[field].kind {
                    FieldKind::Leaf => program.end(field, null, empty),
                    _ => self.open.push(Open { field, last: ROOT, null, empty }),
                }
            }
            Some(Visit::End) => match self.open.pop() {
                Some(Open { field, null, empty, .. }) => program.end(field, null, empty),
                None => program.ops.push(Op::EndRecord),
            },
        }
        Ok(false)
    }
}

impl Program {
    /// Adds a field.
    fn add(&mut self, shape: Shape<'_>, holds: Holds, parent: usize) -> Result<()> {
        let columns = shape.columns();
        if columns.is_empty() && matches!(holds, Holds::List(_) | Holds::Map(..)) {
            let path = shape.schema().path(shape.node);
            return Err(Error::unsupported("a list whose elements hold nothing")
                .at(|place| place.column = Some(path)));
        }
        let kind = match holds {
            Holds::Leaf => FieldKind::Leaf,
            Holds::Struct => FieldKind::Struct,
            Holds::List(inner) => {
                FieldKind::List { definition: low(inner.definition), repetition: low(inner.repetition) }
            }
            Holds::Map(inner, _) => {
                FieldKind::Map { definition: low(inner.definition), repetition: low(inner.repetition) }
            }
        };
        self.fields.push(Field {
            node: shape.node,
            parent,
            next: ROOT,
            fields: 0,
            is_nullable: shape.is_nullable,
            definition: low(shape.definition),
            first: columns.start,
            behind: columns.end,
            kind,
        });
        match self.fields.get_mut(parent) {
            Some(parent) => parent.fields += 1,
            None => self.roots += 1,
        }
        Ok(())
    }

    /// Makes a field follow the last one of its parent.
    fn follow(&mut self, last: &mut usize, field: usize) {
        if let Some(last) = self.fields.get_mut(*last) {
            last.next = field;
        }
        *last = field;
    }

    /// Adds the instructions before what is in a field: of those, which jump to its end if it is null, and if it is
    /// empty.
    fn start(&mut self, field: usize) -> (Option<usize>, usize) {
        let Field { is_nullable, definition, first, behind, kind, .. } = self.fields[field];
        // An empty struct has no column that could tell that it is null.
        let null = (is_nullable && first < behind).then_some(self.ops.len());
        if null.is_some() {
            self.ops.push(Op::Null { field, definition, first, behind, skip: 0 });
        }
        match kind {
            FieldKind::Leaf => self.ops.push(Op::Value { field, column: first }),
            FieldKind::Struct => self.ops.push(Op::StartStruct(field)),
            FieldKind::List { .. } => self.ops.push(Op::StartList(field)),
            FieldKind::Map { .. } => self.ops.push(Op::StartMap(field)),
        }
        let empty = self.ops.len();
        if let FieldKind::List { definition, .. } | FieldKind::Map { definition, .. } = kind {
            self.ops.push(Op::Empty { definition, first, behind, skip: 0 });
        }
        (null, empty)
    }

    /// Adds the instructions after what is in a field.
    fn end(&mut self, field: usize, null: Option<usize>, empty: usize) {
        let Field { first, behind, kind, .. } = self.fields[field];
        if let FieldKind::List { repetition, .. } | FieldKind::Map { repetition, .. } = kind {
            self.ops.push(Op::Repeat { repetition, first, behind, back: empty + 1 });
            self.skip_to_here(empty);
        }
        match kind {
            FieldKind::Leaf => {}
            FieldKind::Struct => self.ops.push(Op::EndStruct(field)),
            FieldKind::List { .. } => self.ops.push(Op::EndList(field)),
            FieldKind::Map { .. } => self.ops.push(Op::EndMap(field)),
        }
        if let Some(null) = null {
            self.skip_to_here(null);
        }
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
