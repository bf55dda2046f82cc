//! All fields of a schema, one after the other, in steps.

use alloc::vec::Vec;

use marquetry_base::Result;

use super::Schema;
use super::shape::{Fields, Repeated, Shape, ShapeKind, Spot};

/// A walk over shapes, depth-first. It keeps its place without borrowing the schema, so that it can be taken up in
/// another step; each of its own steps takes little time, however wide a struct is.
#[derive(Debug)]
pub(crate) struct Walk {
    open: Vec<Open>,
}

/// What is left of a struct, list or map.
#[derive(Debug)]
enum Open {
    /// The fields of a struct from a node on.
    Fields(Spot, usize),
    /// A column, an element, a key or a value: those that are left.
    Shapes([Option<Spot>; 2]),
}

/// A step of a [`Walk`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Visit<'a> {
    /// A field, before those in it.
    Field(Shape<'a>, Holds),
    /// A field outside of the projection.
    Skipped,
    /// The end of the struct, list or map that was visited last and is not at its end; then, of all.
    End,
}

/// What a field that is visited holds: what comes up to its [`Visit::End`], which a leaf does not have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holds {
    Leaf,
    Struct,
    List(Repeated),
    /// With values or without.
    Map(Repeated, bool),
}

impl Walk {
    /// Over all columns of a schema.
    pub(crate) fn of_columns() -> Walk {
        Walk { open: alloc::vec![Open::Fields(Spot::ROOT, 1)] }
    }

    /// Over a field and what is in it.
    pub(crate) fn of(shape: Shape<'_>) -> Walk {
        Walk { open: alloc::vec![Open::Shapes([Some(shape.spot()), None])] }
    }

    /// The next step; `None` after the last. The schema and the leaves that are wanted are always the same.
    ///
    /// # Errors
    ///
    /// As [`Shape::kind`].
    pub(crate) fn next<'a>(
        &mut self,
        schema: &'a Schema,
        only: Option<&'a [usize]>,
    ) -> Result<Option<Visit<'a>>> {
        let Some(open) = self.open.last_mut() else { return Ok(None) };
        let shape = match open {
            Open::Fields(around, next) => {
                let mut fields = Fields::from(around.of(schema, only), *next);
                let field = fields.any();
                *next = fields.next_node();
                match field {
                    Some(field) if field.is_wanted() => Some(field),
                    Some(_) => return Ok(Some(Visit::Skipped)),
                    None => None,
                }
            }
            Open::Shapes(left) => {
                let first = left[0].take();
                left.swap(0, 1);
                first.map(|spot| spot.of(schema, only))
            }
        };
        let Some(shape) = shape else {
            self.open.pop();
            return Ok(Some(Visit::End));
        };
        let holds = match shape.kind()? {
            ShapeKind::Leaf => Holds::Leaf,
            ShapeKind::Struct(fields) => {
                self.open.push(Open::Fields(shape.spot(), fields.next_node()));
                Holds::Struct
            }
            ShapeKind::List(repeated, element) => {
                self.open.push(Open::Shapes([Some(element.spot()), None]));
                Holds::List(repeated)
            }
            ShapeKind::Map(repeated, key, value) => {
                self.open.push(Open::Shapes([Some(key.spot()), value.map(Shape::spot)]));
                Holds::Map(repeated, value.is_some())
            }
        };
        Ok(Some(Visit::Field(shape, holds)))
    }
}
