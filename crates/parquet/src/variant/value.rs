//! An encoded value, looked at where it lies.
//!
//! Source: `VariantEncoding.md`, "Value encoding".

use alloc::format;

use marquetry_base::{Error, Limits, Result};

use super::metadata::find_sorted;
use super::primitive::{self, BASIC_ARRAY, BASIC_OBJECT, BASIC_PRIMITIVE, BASIC_SHORT_STRING, Raw};
use super::{Metadata, Primitive, number, utf16_order};

/// A value with the names its fields have.
///
/// Of the value itself only the length is checked; what is in it is checked as it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Variant<'a> {
    metadata: Metadata<'a>,
    bytes: &'a [u8],
    depth: Depth,
}

/// How deep a value lies in others, and how deep one may.
#[derive(Debug, Clone, Copy)]
struct Depth {
    at: u32,
    limit: u32,
}

/// What a variant is.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// A value that holds no others.
    Primitive(Primitive<'a>),
    /// Values with names.
    Object(Object<'a>),
    /// Values in their order.
    Array(Array<'a>),
}

/// What a variant is; text is not yet checked to be UTF-8.
pub(super) enum Shape<'a> {
    Text(&'a [u8]),
    Primitive(Primitive<'a>),
    Object(Object<'a>),
    Array(Array<'a>),
}

impl<'a> Variant<'a> {
    /// The value that `bytes` begin with. What follows is not looked at.
    ///
    /// Values deeper than [`Limits::nesting`] in it are refused where they are reached.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the bytes end too early; `Unsupported` for a primitive type that the format did not have when this was
    /// written: even its length is not known.
    pub fn new(metadata: Metadata<'a>, bytes: &'a [u8], limits: &Limits) -> Result<Variant<'a>> {
        Variant::at(metadata, bytes, Depth { at: 0, limit: limits.nesting })
    }

    fn at(metadata: Metadata<'a>, bytes: &'a [u8], depth: Depth) -> Result<Variant<'a>> {
        let bytes = bytes.get(..length(bytes)?).ok_or_else(cut_off)?;
        Ok(Variant { metadata, bytes, depth })
    }

    /// The names that its fields have, and perhaps others.
    pub fn metadata(&self) -> Metadata<'a> {
        self.metadata
    }

    /// The value, encoded: its length is where what follows it begins.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What it is.
    ///
    /// # Errors
    ///
    /// `Corrupt` for text that is not UTF-8 or a decimal's scale that cannot be; `LimitExceeded` for an object or array
    /// too deep.
    pub fn value(&self) -> Result<Value<'a>> {
        Ok(match self.shape()? {
            Shape::Text(text) => match core::str::from_utf8(text) {
                Ok(text) => Value::Primitive(Primitive::String(text)),
                Err(_) => return Err(not_utf8()),
            },
            Shape::Primitive(primitive) => Value::Primitive(primitive),
            Shape::Object(object) => Value::Object(object),
            Shape::Array(array) => Value::Array(array),
        })
    }

    /// The value if it is a primitive.
    ///
    /// # Errors
    ///
    /// As [`Variant::value`].
    pub fn primitive(&self) -> Result<Option<Primitive<'a>>> {
        Ok(if let Value::Primitive(primitive) = self.value()? { Some(primitive) } else { None })
    }

    /// The value if it is an object.
    ///
    /// # Errors
    ///
    /// As [`Variant::value`].
    pub fn object(&self) -> Result<Option<Object<'a>>> {
        Ok(if let Shape::Object(object) = self.shape()? { Some(object) } else { None })
    }

    /// The value if it is an array.
    ///
    /// # Errors
    ///
    /// As [`Variant::value`].
    pub fn array(&self) -> Result<Option<Array<'a>>> {
        Ok(if let Shape::Array(array) = self.shape()? { Some(array) } else { None })
    }

    /// The field of this name, if it is an object that has one.
    ///
    /// # Errors
    ///
    /// As [`Object::get`].
    pub fn get(&self, name: &str) -> Result<Option<Variant<'a>>> {
        self.object()?.map_or(Ok(None), |object| object.get(name))
    }

    /// True for an object.
    pub(super) fn is_object(&self) -> bool {
        self.bytes.first().is_some_and(|header| header & 3 == BASIC_OBJECT)
    }

    pub(super) fn shape(&self) -> Result<Shape<'a>> {
        let (&header, data) = self.bytes.split_first().ok_or_else(cut_off)?;
        match header & 3 {
            BASIC_PRIMITIVE => Ok(match primitive::read(header >> 2, data)? {
                Raw::Text(text) => Shape::Text(text),
                Raw::Other(primitive) => Shape::Primitive(primitive),
            }),
            BASIC_SHORT_STRING => Ok(Shape::Text(data)),
            _ => {
                Limits::check("nesting", self.depth.limit.into(), u64::from(self.depth.at) + 1)?;
                let layout = Layout::read(header, data)?;
                let (ids, rest) = data[layout.ids..].split_at(layout.id_bytes * layout.len);
                let (offsets, values) = rest.split_at(layout.offset_bytes * (layout.len + 1));
                let children = Children {
                    metadata: self.metadata,
                    len: layout.len,
                    ids,
                    id_bytes: layout.id_bytes,
                    offsets,
                    offset_bytes: layout.offset_bytes,
                    values,
                    depth: Depth { at: self.depth.at + 1, ..self.depth },
                };
                Ok(if header & 3 == BASIC_ARRAY {
                    Shape::Array(Array { children })
                } else {
                    Shape::Object(Object { children })
                })
            }
        }
    }
}

/// The length in bytes of the value that `bytes` begin with. That it is not more than the bytes is for the caller to check.
fn length(bytes: &[u8]) -> Result<usize> {
    let (&header, data) = bytes.split_first().ok_or_else(cut_off)?;
    let data_bytes = match header & 3 {
        BASIC_PRIMITIVE => primitive::data_bytes(header >> 2, data)?,
        BASIC_SHORT_STRING => usize::from(header >> 2),
        _ => Layout::read(header, data)?.end,
    };
    data_bytes.checked_add(1).ok_or_else(cut_off)
}

/// Where the parts of an object or array are in the bytes behind its header.
struct Layout {
    len: usize,
    ids: usize,
    id_bytes: usize,
    offset_bytes: usize,
    /// Where its last value ends.
    end: usize,
}

impl Layout {
    /// Checks that all the parts but the values are there.
    fn read(header: u8, data: &[u8]) -> Result<Layout> {
        let header = header >> 2;
        let offset_bytes = usize::from(header & 3) + 1;
        // An array has no field ids: they take no bytes.
        let (id_bytes, is_large) = match header_is_array(header, data) {
            _ if false => (0, false),
            _ => (0, header & 4 != 0),
        };
        let _ = (id_bytes, is_large);
        unreachable!()
    }
}
