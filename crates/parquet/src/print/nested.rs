//! Nested columns as JSON: structs are objects, lists arrays, maps arrays of entries, and variants the JSON that they
//! represent.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Bitmap, Error, Limits, print};

use super::InvalidUtf8;
use super::cells::Cells;
use super::form::{Json, Unprintable};
use super::piece::{self, Piece};
use crate::batch::{Array, ArrayKind};
use crate::schema::{LogicalType, NodeKind, Schema, Shape, ShapeKind};
use crate::variant::{Reassembler, ShreddedCell, Variant, VariantColumns};

/// The shape of a column, a child of the root, with all its leaves, if JSON has a form for it.
///
/// # Errors
///
/// Those of [`Shape::kind`]; `Unsupported` for what JSON has no form for: empty groups, which have no column.
pub fn shape(schema: &Schema, node: usize) -> Result<Shape<'_>, Error> {
    let shape = schema.shape(node);
    check(shape)?;
    Ok(shape)
}

/// It recurses as deep as schemas with shapes are.
fn check(shape: Shape<'_>) -> Result<(), Error> {
    match shape.kind()? {
        ShapeKind::Leaf => Ok(()),
        ShapeKind::Struct(fields) if fields.is_empty() => {
            let error = Error::unsupported("a group without fields");
            Err(error.at(|place| place.column = Some(shape.schema().path(shape.node))))
        }
        ShapeKind::Struct(mut fields) => fields.try_for_each(check),
        ShapeKind::List(_, element) => check(element),
        ShapeKind::Map(_, key, value) => {
            check(key)?;
            value.map_or(Ok(()), check)
        }
    }
}

/// An array with what is needed to print its slots: names, and the meaning of leaves.
#[derive(Debug)]
pub(super) struct View<'a> {
    node: usize,
    validity: Option<&'a Bitmap>,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Leaf(Cells<'a>),
    /// Each with the text before it: `{"name":`.
    Struct(Vec<(Piece, View<'a>)>),
    List(&'a [i32], Box<View<'a>>),
    Map(&'a [i32], Box<View<'a>>, Option<Box<View<'a>>>),
    Variant(Box<VariantColumns<'a>>),
}

impl<'a> View<'a> {
    /// A view of an array of this schema.
    ///
    /// # Errors
    ///
    /// As [`VariantColumns::new`].
    pub(super) fn new(schema: &'a Schema, array: &'a Array) -> Result<View<'a>, Error> {
        let below = |array| View::new(schema, array).map(Box::new);
        let node = &schema.nodes()[array.node];
        let kind = match &array.kind {
            ArrayKind::Values(values) => {
                let NodeKind::Leaf { leaf } = node.kind else {
                    return Err(Error::internal("values of a group"));
                };
                let leaf = &schema.leaves()[leaf];
                Kind::Leaf(Cells::new(values, schema.meaning_of(leaf).read_as(leaf.physical_type)))
            }
            ArrayKind::Struct(_) if is_variant(node.logical_type.as_ref()) => {
                Kind::Variant(Box::new(VariantColumns::new(schema, array)?))
            }
            ArrayKind::Struct(fields) => {
                let field = |(number, array): (usize, &'a Array)| {
                    let before = piece::field(number, &schema.nodes()[array.node].name);
                    Ok((before, View::new(schema, array)?))
                };
                Kind::Struct(fields.iter().enumerate().map(field).collect::<Result<_, Error>>()?)
            }
            ArrayKind::List(offsets, element) => Kind::List(offsets, below(element)?),
            ArrayKind::Map(offsets, key, value) => {
                Kind::Map(offsets, below(key)?, value.as_ref().map(|value| below(value)).transpose()?)
            }
        };
        Ok(View { node: array.node, validity: array.validity.as_ref(), kind })
    }

    fn is_null(&self, slot: usize) -> bool {
        self.validity.is_some_and(|validity| !validity.get(slot))
    }
}

/// Whether a group with this annotation is a VARIANT.
pub(super) fn is_variant(logical_type: Option<&LogicalType>) -> bool {
    matches!(logical_type, Some(LogicalType::Variant { .. }))
}

/// Prints the slots of a view.
#[derive(Debug)]
pub(super) struct NestedColumn<'a> {
    view: &'a View<'a>,
    variants: Variants<'a>,
}

/// What is needed to print variants.
#[derive(Debug)]
struct Variants<'a> {
    reassembler: Reassembler<'a, ShreddedCell<'a>>,
    limits: Limits,
}

impl<'a> NestedColumn<'a> {
    /// Prints what the view has; variants within these limits.
    pub(super) fn new(view: &'a View<'a>, limits: &Limits) -> NestedColumn<'a> {
        NestedColumn { view, variants: Variants { reassembler: Reassembler::new(limits), limits: *limits } }
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.view.is_null(row)
    }

    /// Appends a row as JSON. After an error, discard what was appended.
    pub(super) fn write(
        &mut self,
        row: usize,
        invalid_utf8: InvalidUtf8,
        out: &mut Vec<u8>,
    ) -> Result<(), Unprintable> {
        self.variants.write(self.view, row, invalid_utf8, out)
    }
}

impl<'a> Variants<'a> {
    /// Appends a slot as JSON. It recurses as deep as schemas with shapes are.
    fn write(
        &mut self,
        view: &'a View<'a>,
        slot: usize,
        invalid_utf8: InvalidUtf8,
        out: &mut Vec<u8>,
    ) -> Result<(), Unprintable> {
        if view.is_null(slot) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &view.kind {
            // An array has as many values as slots.
            Kind::Leaf(cells) => {
                cells.write::<Json>(slot, invalid_utf8, out).ok_or(Unprintable::NotText(Some(view.node)))
            }
            Kind::Struct(fields) => {
                for (before, field) in fields {
                    before.write(out);
                    self.write(field, slot, invalid_utf8, out)?;
                }
                out.push(b'}');
                Ok(())
            }
            // A map without values is a set of its keys.
            Kind::List(offsets, element) | Kind::Map(offsets, element, None) => {
                out.push(b'[');
                for (at, slot) in elements(offsets, slot).enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    self.write(element, slot, invalid_utf8, out)?;
                }
                out.push(b']');
                Ok(())
            }
            Kind::Map(offsets, key, Some(value)) => {
                out.push(b'[');
                for (at, slot) in elements(offsets, slot).enumerate() {
                    out.extend_from_slice(if at == 0 { b"{\"key\":" } else { b",{\"key\":" });
                    self.write(key, slot, invalid_utf8, out)?;
                    out.extend_from_slice(b",\"value\":");
                    self.write(value, slot, invalid_utf8, out)?;
                    out.push(b'}');
                }
                out.push(b']');
                Ok(())
            }
            Kind::Variant(columns) => self.variant(columns, slot, out),
        }
    }

    #[inline(never)]
    fn variant(
        &mut self,
        columns: &'a VariantColumns<'a>,
        slot: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Unprintable> {
        let metadata = columns.metadata(slot)?;
        let value = self.reassembler.reassemble(metadata, columns.row(slot))?;
        let start = out.len();
        Variant::new(metadata, value, &self.limits)?.to_json(&self.limits, out)?;
        print::json::escape_harmful(out, start);
        Ok(())
    }
}

/// The slots of a list's elements.
fn elements(offsets: &[i32], slot: usize) -> Range<usize> {
    // Offsets are never negative, and there is one more than slots.
    let at = |slot: usize| offsets.get(slot).map_or(0, |&offset| usize::try_from(offset).unwrap_or(0));
    at(slot)..at(slot + 1)
}
