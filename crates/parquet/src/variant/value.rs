//! An encoded value, read in place.
//!
//! Source: `VariantEncoding.md`, "Value encoding".

use alloc::vec::Vec;

use marquetry_base::{Error, Limit, Limits, Result};

use super::metadata::{find_sorted, find_unsorted};
use super::primitive::{self, BASIC_ARRAY, BASIC_OBJECT, BASIC_PRIMITIVE, BASIC_SHORT_STRING, Raw, cut_off};
use super::{Metadata, Primitive, number, utf16_order};

/// A value, with the names of its fields.
///
/// Only the value's length is checked at first; its contents are checked as they are accessed.
#[derive(Debug, Clone, Copy)]
pub struct Variant<'a> {
    metadata: Metadata<'a>,
    bytes: &'a [u8],
    depth: Depth,
}

/// How deep a value is nested, and how deep it may be.
#[derive(Debug, Clone, Copy)]
struct Depth {
    at: u32,
    limit: u32,
}

/// What a variant is.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// A value that contains no others.
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
    /// The value that `bytes` begin with. What follows is ignored.
    ///
    /// Values nested deeper than [`Limits::nesting`] are refused when they are reached.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the bytes end too early; `Unsupported` for a primitive type that this version does not know: not
    /// even its length is known.
    pub fn new(metadata: Metadata<'a>, bytes: &'a [u8], limits: &Limits) -> Result<Variant<'a>> {
        Variant::at(metadata, bytes, Depth { at: 0, limit: limits.nesting })
    }

    fn at(metadata: Metadata<'a>, bytes: &'a [u8], depth: Depth) -> Result<Variant<'a>> {
        let bytes = bytes.get(..length(bytes)?).ok_or_else(cut_off)?;
        Ok(Variant { metadata, bytes, depth })
    }

    /// The names of its fields, and perhaps others.
    pub fn metadata(&self) -> Metadata<'a> {
        self.metadata
    }

    /// The encoded value: what follows it begins after this many bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// `Corrupt` for text that is not UTF-8 or an invalid scale of a decimal; `LimitExceeded` for an object or array
    /// that is too deep.
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

    /// The field with this name, if it is an object and has one.
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
                Limit::Nesting.check(self.depth.limit.into(), u64::from(self.depth.at) + 1)?;
                let layout = Layout::read(header, data)?;
                let depth = Depth { at: self.depth.at + 1, ..self.depth };
                let children = Children { metadata: self.metadata, data, layout, depth };
                Ok(if header & 3 == BASIC_ARRAY {
                    Shape::Array(Array { children })
                } else {
                    Shape::Object(Object { children })
                })
            }
        }
    }
}

/// The length in bytes of the value that `bytes` begin with. The caller must check that it does not exceed the bytes.
fn length(bytes: &[u8]) -> Result<usize> {
    let (&header, data) = bytes.split_first().ok_or_else(cut_off)?;
    let data_bytes = match header & 3 {
        BASIC_PRIMITIVE => primitive::data_bytes(header >> 2, data)?,
        BASIC_SHORT_STRING => usize::from(header >> 2),
        _ => Layout::read(header, data)?.end(data)?,
    };
    data_bytes.checked_add(1).ok_or_else(cut_off)
}

/// Where the parts of an object or array are in the bytes after its header.
#[derive(Debug, Clone, Copy)]
struct Layout {
    len: u32,
    /// Where the values start. The offsets precede them, and the field ids precede those.
    values: u32,
    /// Bytes of a field id; none in an array.
    id_bytes: u32,
    offset_bytes: u32,
}

impl Layout {
    /// Checks that all parts except the values are complete.
    fn read(header: u8, data: &[u8]) -> Result<Layout> {
        let offset_bytes = u32::from(header >> 2 & 3) + 1;
        let (id_bytes, is_large) = if header & 3 == BASIC_ARRAY {
            (0, header >> 4 & 1 == 1)
        } else {
            (u32::from(header >> 4 & 3) + 1, header >> 6 & 1 == 1)
        };
        let len_bytes = if is_large { 4 } else { 1 };
        let len = number(data, 0, len_bytes).ok_or_else(cut_off)? as u64;
        // Below 2^36, so nothing overflows.
        let values = len_bytes as u64 + len * u64::from(id_bytes) + (len + 1) * u64::from(offset_bytes);
        match (u32::try_from(len), u32::try_from(values)) {
            (Ok(len), Ok(values)) if values as usize <= data.len() => {
                Ok(Layout { len, values, id_bytes, offset_bytes })
            }
            _ => Err(cut_off()),
        }
    }

    /// The offset of value number `index`, or of the last one's end.
    fn offset(&self, data: &[u8], index: usize) -> Option<usize> {
        let width = self.offset_bytes as usize;
        let offsets = (self.values as usize).checked_sub((self.len as usize + 1) * width)?;
        number(data.get(offsets..self.values as usize)?, index, width)
    }

    /// Where the last value ends.
    fn end(&self, data: &[u8]) -> Result<usize> {
        let last = self.offset(data, self.len as usize).ok_or_else(cut_off)?;
        (self.values as usize).checked_add(last).ok_or_else(cut_off)
    }
}

/// The values in an object or array.
#[derive(Debug, Clone, Copy)]
struct Children<'a> {
    metadata: Metadata<'a>,
    /// The bytes after the header.
    data: &'a [u8],
    layout: Layout,
    /// That of the children.
    depth: Depth,
}

impl<'a> Children<'a> {
    fn len(&self) -> usize {
        self.layout.len as usize
    }

    fn values(&self) -> &'a [u8] {
        self.data.get(self.layout.values as usize..).unwrap_or(&[])
    }

    fn child(&self, index: usize) -> Result<Variant<'a>> {
        let value = self.layout.offset(self.data, index).and_then(|start| self.values().get(start..));
        Variant::at(self.metadata, value.ok_or_else(cut_off)?, self.depth)
    }

    /// The number of a field's name.
    fn id(&self, index: usize) -> usize {
        let (id_bytes, offset_bytes) = (self.layout.id_bytes as usize, self.layout.offset_bytes as usize);
        let offsets = (self.layout.values as usize).checked_sub((self.len() + 1) * offset_bytes);
        offsets
            .and_then(|offsets| Some((offsets, offsets.checked_sub(self.len() * id_bytes)?)))
            .and_then(|(offsets, ids)| number(self.data.get(ids..offsets)?, index, id_bytes))
            .unwrap_or(usize::MAX)
    }
}

/// An object: values with names.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    children: Children<'a>,
}

impl<'a> Object<'a> {
    /// Fields.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// True if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.children.len() == 0
    }

    /// The field with this name. It is searched for, because fields are sorted by their names: by bytes, as the format
    /// says, or by UTF-16, as some writers do. Others do not sort them, so all are looked at before it is missing.
    ///
    /// # Errors
    ///
    /// `Corrupt` if its value is not within the object.
    pub fn get(&self, name: &str) -> Result<Option<Variant<'a>>> {
        let name_at = |index| self.children.metadata.name_bytes(self.children.id(index));
        let (len, name) = (self.children.len(), name.as_bytes());
        find_sorted(len, name_at, name)
            .or_else(|| find_unsorted(len, name_at, name))
            .map(|index| self.children.child(index))
            .transpose()
    }

    /// The fields, in the order that they are in: that of their names, if the writer kept to the format.
    pub fn fields(&self) -> Fields<'a> {
        Fields {
            elements: Elements::new(self.children),
            name: None,
            by_bytes: true,
            by_utf16: true,
            is_unique: false,
        }
    }
}

/// An array: values in their order.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    children: Children<'a>,
}

impl<'a> Array<'a> {
    /// Elements.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.children.len() == 0
    }

    /// Element number `index`, if it exists.
    ///
    /// # Errors
    ///
    /// `Corrupt` if it is not within the array.
    pub fn get(&self, index: usize) -> Result<Option<Variant<'a>>> {
        (index < self.children.len()).then(|| self.children.child(index)).transpose()
    }

    /// The elements.
    pub fn elements(&self) -> Elements<'a> {
        Elements::new(self.children)
    }
}

/// The elements of an array. After an error there are no more.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    children: Children<'a>,
    next: usize,
    /// Bytes that the remaining elements may have in total.
    bytes_left: usize,
}

impl<'a> Elements<'a> {
    fn new(children: Children<'a>) -> Elements<'a> {
        Elements { children, next: 0, bytes_left: children.values().len() }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Variant<'a>>;

    fn next(&mut self) -> Option<Result<Variant<'a>>> {
        if self.next == self.children.len() {
            return None;
        }
        let child = self.children.child(self.next).and_then(|child| {
            self.bytes_left = self.bytes_left.checked_sub(child.bytes.len()).ok_or_else(overlap)?;
            Ok(child)
        });
        self.next = if child.is_ok() { self.next + 1 } else { self.children.len() };
        Some(child)
    }
}

/// The fields of an object, names and values. After an error there are no more.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    elements: Elements<'a>,
    /// The name before.
    name: Option<&'a str>,
    /// The orders that the names so far are sorted in. Names in any one order are unique.
    by_bytes: bool,
    by_utf16: bool,
    /// Fields in no order: the numbers of their names were compared with each other.
    is_unique: bool,
}

impl<'a> Fields<'a> {
    /// The number of the last field's name.
    pub(super) fn last_id(&self) -> Option<u32> {
        let index = self.elements.next.checked_sub(1)?;
        u32::try_from(self.elements.children.id(index)).ok()
    }

    /// Checks the name of the next field and takes it.
    fn name(&mut self) -> Result<&'a str> {
        let children = &self.elements.children;
        let name = children.metadata.name(children.id(self.elements.next))?;
        if let Some(before) = self.name {
            let (before, name) = (before.as_bytes(), name.as_bytes());
            self.by_bytes &= before < name;
            self.by_utf16 &= utf16_order(before, name).is_lt();
            if before == name {
                return Err(not_unique());
            }
            if !self.by_bytes && !self.by_utf16 && !self.is_unique {
                self.check_unique()?;
            }
        }
        self.name = Some(name);
        Ok(name)
    }
}

impl Fields<'_> {
    /// Checks that no two fields have the same number of a name, where their order does not say so. (Names that the
    /// metadata has twice are not compared: that would take much longer than the fields.)
    fn check_unique(&mut self) -> Result<()> {
        let children = &self.elements.children;
        let mut ids: Vec<usize> = Vec::new();
        ids.try_reserve_exact(children.len()).map_err(|_| Error::out_of_memory(children.len() * 8))?;
        ids.extend((0..children.len()).map(|index| children.id(index)));
        ids.sort_unstable();
        if ids.is_sorted_by(|left, right| left < right) {
            self.is_unique = true;
            return Ok(());
        }
        Err(not_unique())
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(&'a str, Variant<'a>)>;

    fn next(&mut self) -> Option<Result<(&'a str, Variant<'a>)>> {
        if self.elements.next == self.elements.children.len() {
            return None;
        }
        match self.name() {
            Ok(name) => Some(self.elements.next()?.map(|value| (name, value))),
            Err(error) => {
                self.elements.next = self.elements.children.len();
                Some(Err(error))
            }
        }
    }
}

fn not_unique() -> Error {
    Error::corrupt("an object in a variant has two fields of one name")
}

pub(super) fn not_utf8() -> Error {
    Error::corrupt("a variant's text is not UTF-8")
}

fn overlap() -> Error {
    Error::corrupt("values in a variant share bytes")
}
