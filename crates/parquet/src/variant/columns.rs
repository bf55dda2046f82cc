//! The columns of a VARIANT group, shredded or not, as the reader returns them.
//!
//! Source: `VariantShredding.md`.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::{Metadata, Primitive, ShreddedType, ShreddedValue, TypedValue};
use crate::batch::{Array, ArrayKind, Values};
use crate::schema::{NodeKind, Schema};

/// The columns of a VARIANT group in one batch, with all columns below the group.
///
/// Rows are counted from 0. Asking for a row beyond the end panics, as with slices.
///
/// ```
/// # use marquetry_base::{Limits, Result};
/// # use marquetry_parquet::variant::{Reassembler, Variant, VariantColumns};
/// /// Every row as a line of JSON; nothing for a row that is null.
/// fn to_json(columns: &VariantColumns<'_>, limits: &Limits, out: &mut Vec<u8>) -> Result<()> {
///     let mut reassembler = Reassembler::new(limits);
///     for row in (0..columns.len()).filter(|&row| !columns.is_null(row)) {
///         let metadata = columns.metadata(row)?;
///         let value = reassembler.reassemble(metadata, columns.row(row))?;
///         Variant::new(metadata, value, limits)?.to_json(limits, out)?;
///         out.push(b'\n');
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct VariantColumns<'a> {
    array: &'a Array,
    metadata: &'a Array,
    /// The pairs of `value` and `typed_value`: the variant's own, then those of its elements and fields.
    pairs: Vec<Pair<'a>>,
}

#[derive(Debug)]
struct Pair<'a> {
    value: Option<&'a Array>,
    typed: Option<(&'a Array, Typed<'a>)>,
}

/// The contents of a column `typed_value`.
#[derive(Debug)]
enum Typed<'a> {
    Primitive(&'a Values, ShreddedType),
    /// Offsets, and the index of the elements' pair.
    Array(&'a [i32], usize),
    /// The fields' names, and the index of the first one's pair.
    Object(Vec<&'a str>, usize),
}

impl<'a> VariantColumns<'a> {
    /// The columns in `array`, which belongs to a field of `schema`.
    ///
    /// # Errors
    ///
    /// `Corrupt` if it is not a group of `metadata`, `value` and `typed_value` as the format requires; `Unsupported`
    /// for a `typed_value` of a type that the format does not allow for shredding; `Misuse` if a column below it is
    /// missing.
    pub fn new(schema: &'a Schema, array: &'a Array) -> Result<VariantColumns<'a>> {
        let metadata = fields(schema, array)?
            .iter()
            .find(|field| name(schema, field) == "metadata")
            .filter(|field| is_byte_array(field))
            .ok_or_else(|| Error::corrupt("a variant without metadata"))?;
        // Level by level: a pair's index is known before the pair is created.
        let mut groups = alloc::vec![array];
        let mut pairs = Vec::new();
        while let Some(&group) = groups.get(pairs.len()) {
            pairs.push(Pair::new(schema, group, pairs.is_empty(), &mut groups)?);
        }
        Ok(VariantColumns { array, metadata, pairs })
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.array.length
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.array.length == 0
    }

    /// True for a row that has no variant. (A variant can be null, too: that is a value.)
    pub fn is_null(&self, row: usize) -> bool {
        is_null(self.array, row)
    }

    /// The metadata of a row that is not null.
    ///
    /// # Errors
    ///
    /// As [`Metadata::new`].
    pub fn metadata(&self, row: usize) -> Result<Metadata<'a>> {
        match bytes_of(self.metadata, row) {
            Some(bytes) => Metadata::new(bytes),
            None => Err(Error::corrupt("a variant whose metadata is null")),
        }
    }

    /// A row's parts, for a [`Reassembler`](super::Reassembler).
    pub fn row(&self, row: usize) -> ShreddedCell<'_> {
        ShreddedCell { columns: self, pair: 0, slot: row }
    }
}

impl<'a> Pair<'a> {
    /// The columns of a group. The groups below it are appended to `groups`.
    fn new(
        schema: &'a Schema,
        group: &'a Array,
        with_metadata: bool,
        groups: &mut Vec<&'a Array>,
    ) -> Result<Pair<'a>> {
        let mut pair = Pair { value: None, typed: None };
        for field in fields(schema, group)? {
            match name(schema, field) {
                "value" if is_byte_array(field) => pair.value = Some(field),
                "typed_value" => pair.typed = Some((field, Typed::new(schema, field, groups)?)),
                "metadata" if with_metadata => {}
                name => {
                    return Err(Error::corrupt(format!(
                        "a variant's group with a field {name:?} that should not be there"
                    )));
                }
            }
        }
        if pair.value.is_none() && pair.typed.is_none() {
            return Err(Error::corrupt("a variant's group without value and typed_value"));
        }
        Ok(pair)
    }
}

impl<'a> Typed<'a> {
    fn new(schema: &'a Schema, array: &'a Array, groups: &mut Vec<&'a Array>) -> Result<Typed<'a>> {
        match &array.kind {
            ArrayKind::Values(values) => {
                let node = schema.nodes().get(array.node);
                let leaf = node.and_then(|node| match node.kind {
                    NodeKind::Leaf { leaf } => schema.leaves().get(leaf),
                    NodeKind::Group { .. } => None,
                });
                let (Some(node), Some(leaf)) = (node, leaf) else {
                    return Err(Error::misuse("columns of another schema"));
                };
                let shredded = ShreddedType::new(leaf.physical_type, node.logical_type.as_ref())?;
                Ok(Typed::Primitive(values, shredded))
            }
            ArrayKind::List(offsets, element) => {
                groups.push(element);
                Ok(Typed::Array(offsets, groups.len() - 1))
            }
            ArrayKind::Struct(_) => {
                let first = groups.len();
                let fields = fields(schema, array)?;
                groups.extend(fields);
                Ok(Typed::Object(fields.iter().map(|field| name(schema, field)).collect(), first))
            }
            ArrayKind::Map(..) => Err(Error::unsupported("a variant shredded as a map")),
        }
    }
}

/// All the fields of a group.
fn fields<'a>(schema: &Schema, array: &'a Array) -> Result<&'a [Array]> {
    match &array.kind {
        ArrayKind::Struct(fields) if fields.len() == schema.children(array.node).count() => Ok(fields),
        // A shredded field would be taken for a missing one.
        ArrayKind::Struct(_) => Err(Error::misuse("a variant without some of its columns")),
        _ => Err(Error::corrupt("a variant, or a part of a shredded one, that is no group")),
    }
}

fn name<'a>(schema: &'a Schema, array: &Array) -> &'a str {
    schema.nodes().get(array.node).map_or("", |node| &node.name)
}

fn is_null(array: &Array, slot: usize) -> bool {
    array.validity.as_ref().is_some_and(|validity| !validity.get(slot))
}

fn is_byte_array(array: &Array) -> bool {
    match &array.kind {
        ArrayKind::Values(Values::ByteArray(_)) => true,
        ArrayKind::Values(Values::Dictionary(_, entries)) => matches!(**entries, Values::ByteArray(_)),
        _ => false,
    }
}

/// The bytes in a slot of a BYTE_ARRAY column. `None` if it is null.
fn bytes_of(array: &Array, slot: usize) -> Option<&[u8]> {
    match &array.kind {
        ArrayKind::Values(values) if !is_null(array, slot) => match entry(values, slot) {
            (Values::ByteArray(values), slot) => Some(values.get(slot)),
            _ => None,
        },
        _ => None,
    }
}

/// Where a value is: in the dictionary, if there is one.
fn entry(values: &Values, slot: usize) -> (&Values, usize) {
    match values {
        Values::Dictionary(indices, entries) => (entries, indices[slot] as usize),
        values => (values, slot),
    }
}

/// A position in [`VariantColumns`]: a row, or an element or field in it.
#[derive(Debug, Clone, Copy)]
pub struct ShreddedCell<'a> {
    columns: &'a VariantColumns<'a>,
    pair: usize,
    slot: usize,
}

impl<'a> ShreddedCell<'a> {
    fn typed(&self) -> Option<&'a (&'a Array, Typed<'a>)> {
        self.columns.pairs.get(self.pair)?.typed.as_ref()
    }
}

impl<'a> ShreddedValue<'a> for ShreddedCell<'a> {
    fn value(&self) -> Option<&'a [u8]> {
        self.columns.pairs.get(self.pair)?.value.and_then(|array| bytes_of(array, self.slot))
    }

    fn typed_value(&self) -> Result<TypedValue<'a>> {
        let Some((array, typed)) = self.typed() else { return Ok(TypedValue::Null) };
        let is_null = is_null(array, self.slot);
        Ok(match typed {
            Typed::Object(..) if is_null => TypedValue::NullObject,
            _ if is_null => TypedValue::Null,
            Typed::Object(names, _) => TypedValue::Object(names.len()),
            Typed::Array(offsets, _) => {
                let count = offsets[self.slot + 1] - offsets[self.slot];
                TypedValue::Array(usize::try_from(count).unwrap_or(0))
            }
            Typed::Primitive(values, shredded) => {
                TypedValue::Primitive(primitive(values, self.slot, *shredded)?)
            }
        })
    }

    fn element(&self, index: usize) -> Result<ShreddedCell<'a>> {
        match self.typed() {
            Some((_, Typed::Array(offsets, pair))) => {
                let first = usize::try_from(offsets[self.slot]).unwrap_or(0);
                Ok(ShreddedCell { pair: *pair, slot: first + index, ..*self })
            }
            _ => Err(Error::misuse("an element of what is no array")),
        }
    }

    fn field(&self, index: usize) -> Result<(&'a str, ShreddedCell<'a>)> {
        match self.typed() {
            Some((_, Typed::Object(names, first))) if index < names.len() => {
                Ok((names[index], ShreddedCell { pair: first + index, ..*self }))
            }
            _ => Err(Error::misuse("a field of what is no object, or has not as many")),
        }
    }
}

fn primitive(values: &Values, slot: usize, shredded: ShreddedType) -> Result<Primitive<'_>> {
    match entry(values, slot) {
        (Values::Boolean(values), slot) => shredded.boolean(values.get(slot)),
        (Values::Int32(values), slot) => shredded.int32(values[slot]),
        (Values::Int64(values), slot) => shredded.int64(values[slot]),
        (Values::Float(values), slot) => shredded.float(values[slot]),
        (Values::Double(values), slot) => shredded.double(values[slot]),
        (Values::ByteArray(values), slot) => shredded.bytes(values.get(slot)),
        (Values::FixedLenByteArray(values), slot) => shredded.bytes(values.get(slot)),
        (Values::Int96(_) | Values::Dictionary(..), _) => {
            Err(Error::internal("a shredded value of a type that is not shredded as"))
        }
    }
}
