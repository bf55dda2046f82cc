//! A shape as a list of fields, each with the work that it needs.

use alloc::vec::Vec;

use marquetry_base::{Error, Result};
use marquetry_kernels::levels::Slots;

use crate::schema::{Repeated, Shape, ShapeKind};

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
    /// The list or map whose elements the slots are. `None`: they are rows.
    pub(super) around: Option<usize>,
    /// The leaf whose levels describe the field. `None` for an empty struct.
    pub(super) first_leaf: Option<usize>,
    pub(super) sibling: Option<Sibling>,
}

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

/// The fields of a shape, from the root down and from the first to the last.
///
/// # Errors
///
/// `LimitExceeded` for more than 255 levels.
pub(super) fn fields(shape: &Shape) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    let slots = Slots { repetition: 0, definition: 0 };
    add(&mut fields, shape, slots, None, None)?;
    Ok(fields)
}

/// A leaf, and the repetition level of its second and later values.
type First = (usize, u8);

/// Adds a shape and returns its first leaf. It recurses as deep as schemas with shapes are. `sibling` is that of the
/// previous field, with the definition level of the struct around both.
fn add(
    fields: &mut Vec<Field>,
    shape: &Shape,
    slots: Slots,
    around: Option<usize>,
    sibling: Option<(First, u8)>,
) -> Result<Option<First>> {
    let number = fields.len();
    let definition = level(shape.definition)?;
    fields.push(Field {
        node: shape.node,
        kind: Kind::Leaf,
        is_nullable: shape.is_nullable,
        definition,
        slots,
        around,
        first_leaf: None,
        sibling: None,
    });
    let (kind, first) = match &shape.kind {
        ShapeKind::Leaf => (Kind::Leaf, Some((shape.leaves.start, slots.repetition))),
        ShapeKind::Struct(children) => {
            let (mut first, mut before) = (None, None);
            for child in children {
                let sibling = before.map(|before| (before, definition));
                let leaf = add(fields, child, slots, around, sibling)?;
                first = first.or(leaf);
                before = leaf.or(before);
            }
            (Kind::Struct { fields: children.len() }, first)
        }
        ShapeKind::List(repeated, element) => {
            let elements = elements(*repeated)?;
            let first = add(fields, element, elements, Some(number), None)?;
            (Kind::List { elements }, first)
        }
        ShapeKind::Map(repeated, key, value) => {
            let elements = elements(*repeated)?;
            let first = add(fields, key, elements, Some(number), None)?;
            let second = match value {
                Some(value) => {
                    let sibling = first.map(|first| (first, elements.definition));
                    add(fields, value, elements, Some(number), sibling)?
                }
                None => None,
            };
            (Kind::Map { elements, has_values: value.is_some() }, first.or(second))
        }
    };
    let field = fields.get_mut(number).ok_or_else(|| Error::internal("a field that is not there"))?;
    field.kind = kind;
    field.first_leaf = first.map(|(leaf, _)| leaf);
    if let (Some(((leaf, of_leaf), definition)), Some((_, own))) = (sibling, first) {
        let has_lists = [of_leaf, own].map(|repetition| repetition > slots.repetition);
        field.sibling = Some(Sibling { leaf, definition, has_lists });
    }
    Ok(first)
}

fn elements(repeated: Repeated) -> Result<Slots> {
    Ok(Slots { repetition: level(repeated.repetition)?, definition: level(repeated.definition)? })
}

fn level(level: u16) -> Result<u8> {
    u8::try_from(level).map_err(|_| Error::too_large("more than 255 levels of nesting"))
}
