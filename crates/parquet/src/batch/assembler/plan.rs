//! A shape as a list of fields, each with the work that it needs.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Release, Result, Segmented};
use marquetry_kernels::levels::Slots;

use crate::schema::{FIELD_PRICE, Holds, Repeated, Schema, Shape, Visit, Walk};

/// A shape of the tree. Those below follow it.
#[derive(Debug)]
pub(super) struct Field {
    /// The node of the schema.
    pub(super) node: usize,
    pub(super) kind: Kind,
    pub(super) is_nullable: bool,
    /// The definition level from which on the slot is present.
    pub(super) definition: u8,
    pub(super) slots: Slots,
    /// The leaf whose levels describe the field. `None` for an empty struct.
    pub(super) first_leaf: Option<usize>,
    pub(super) sibling: Option<Sibling>,
}

impl Release for Field {}

/// A leaf of a field of the same struct, or of a map's keys. It must agree on the struct and everything around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sibling {
    pub(super) leaf: usize,
    /// The definition level up to which both must agree.
    pub(super) definition: u8,
    /// Whether there are lists between the struct and the sibling's leaf, and between the struct and the field's own:
    /// they have entries that the other lacks.
    pub(super) has_lists: [bool; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Leaf,
    Struct { fields: usize },
    List { elements: Slots },
    Map { elements: Slots, has_values: bool },
}

/// The fields of a shape, from the root down and from the first to the last: made in steps.
#[derive(Debug)]
pub(super) struct Planning {
    walk: Walk,
    /// The structs, lists and maps around the next field.
    open: Vec<Open>,
    /// The leaves that are wanted, if not all.
    only: Option<Arc<[usize]>>,
}

/// A struct, list or map whose fields are being planned.
#[derive(Debug, Clone, Copy)]
struct Open {
    field: usize,
    /// The slots of what is in it.
    slots: Slots,
    /// The first leaf of the field before, and the repetition level of its second and later values.
    before: Option<(usize, u8)>,
}

/// Fields between two looks at the budget.
const FIELDS_SLICE: usize = 64;

impl Planning {
    /// Of a shape with these leaves.
    pub(super) fn of(shape: Shape<'_>, only: Option<Arc<[usize]>>) -> Planning {
        Planning { walk: Walk::of(shape), open: Vec::new(), only }
    }

    /// Plans until all is planned, or the budget is spent: then returns false. The schema is always the same.
    ///
    /// # Errors
    ///
    /// As [`Shape::kind`]; `LimitExceeded` for more than 255 levels.
    pub(super) fn step(
        &mut self,
        schema: &Schema,
        fields: &mut Segmented<Field>,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        loop {
            for planned in 1..=FIELDS_SLICE {
                if !self.field(schema, fields)? {
                    budget.charge(FIELD_PRICE, 0, planned);
                    return Ok(true);
                }
            }
            budget.charge(FIELD_PRICE, 0, FIELDS_SLICE);
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Plans the next field. False if there is none.
    fn field(&mut self, schema: &Schema, fields: &mut Segmented<Field>) -> Result<bool> {
        let (shape, holds) = match self.walk.next(schema, self.only.as_deref())? {
            None => return Ok(false),
            Some(Visit::Skipped) => return Ok(true),
            Some(Visit::End) => {
                self.open.pop();
                return Ok(true);
            }
            Some(Visit::Field(shape, holds)) => (shape, holds),
        };
        let number = fields.len();
        let definition = level(shape.definition)?;
        let mut slots = Slots { repetition: 0, definition: 0 };
        let first_leaf = shape.first_leaf();
        let mut sibling = None;
        if let Some(open) = self.open.last_mut() {
            slots = open.slots;
            let around = fields.get_mut(open.field).ok_or_else(|| Error::internal("a field in none"))?;
            // A map's key and value agree on its elements, the fields of a struct on the struct.
            let agree = match &mut around.kind {
                Kind::Struct { fields } => {
                    *fields += 1;
                    around.definition
                }
                _ => slots.definition,
            };
            let first = first_leaf.and_then(|leaf| Some((leaf, schema.leaves().get(leaf)?.repetition_max)));
            if let Some((leaf, repetition)) = first {
                let own = level(repetition)?;
                if let Some((leaf, of_leaf)) = open.before {
                    let has_lists = [of_leaf, own].map(|repetition| repetition > slots.repetition);
                    sibling = Some(Sibling { leaf, definition: agree, has_lists });
                }
                open.before = Some((leaf, own));
            }
        }
        let (kind, below) = match holds {
            Holds::Leaf => (Kind::Leaf, None),
            Holds::Struct => (Kind::Struct { fields: 0 }, Some(slots)),
            Holds::List(repeated) => {
                let elements = elements(repeated)?;
                (Kind::List { elements }, Some(elements))
            }
            Holds::Map(repeated, has_values) => {
                let elements = elements(repeated)?;
                (Kind::Map { elements, has_values }, Some(elements))
            }
        };
        let (node, is_nullable) = (shape.node, shape.is_nullable);
        fields.push(Field { node, kind, is_nullable, definition, slots, first_leaf, sibling });
        self.open.extend(below.map(|slots| Open { field: number, slots, before: None }));
        Ok(true)
    }
}

fn elements(repeated: Repeated) -> Result<Slots> {
    Ok(Slots { repetition: level(repeated.repetition)?, definition: level(repeated.definition)? })
}

fn level(level: u16) -> Result<u8> {
    u8::try_from(level).map_err(|_| Error::too_large("more than 255 levels of nesting"))
}
