//! Reassembling shredded variants.
//!
//! Source: `VariantShredding.md`, "Reconstructing a Shredded Variant".

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Error, Failed, Limit, Limits, Result};

use super::encoder::{Encoder, Names, duplicate};
use super::metadata::find_sorted;
use super::{Fields, Metadata, Object, Primitive, Variant};

/// A pair of columns `value` and `typed_value` in one row: of the variant itself, of an array's element, or of an object's
/// field.
///
/// The reader of the columns implements this, ideally as something small that is copied: a position in the columns'
/// tree, and an index in them. This is the format's table, with the results of a [`Reassembler`]:
///
/// | `value` | `typed_value` | the value is |
/// |---|---|---|
/// | `None` | `Null` | missing: not a field in an object; otherwise null |
/// | bytes | `Null` | those |
/// | bytes | `NullObject` | those; an object is an error |
/// | `None` | anything else | that |
/// | bytes | `Object` | that and the fields of those, which are an object of other fields, or it is an error |
/// | bytes | `Primitive`, `Array` | an error |
pub trait ShreddedValue<'a>: Sized {
    /// The bytes of `value`. `None` if it is null, or there is no such column.
    fn value(&self) -> Option<&'a [u8]>;

    /// The contents of `typed_value`.
    ///
    /// # Errors
    ///
    /// The caller's own errors, which are passed on.
    fn typed_value(&self) -> Result<TypedValue<'a>>;

    /// Element number `index` of a `typed_value` that is an [array](TypedValue::Array).
    ///
    /// # Errors
    ///
    /// The caller's own errors, which are passed on.
    fn element(&self, index: usize) -> Result<Self>;

    /// Field number `index` of a `typed_value` that is an [object](TypedValue::Object), whether present or missing: its
    /// name and its columns.
    ///
    /// # Errors
    ///
    /// The caller's own errors, which are passed on.
    fn field(&self, index: usize) -> Result<(&'a str, Self)>;
}

/// The contents of a column `typed_value` in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TypedValue<'a> {
    /// Null, and not a group of fields; or there is no such column.
    Null,
    /// Null, and a group of fields.
    NullObject,
    /// A value of the column's type.
    Primitive(Primitive<'a>),
    /// A list with this many elements.
    Array(usize),
    /// A group with this many fields in the schema: missing ones count too.
    Object(usize),
}

/// Reassembles shredded variants, one row at a time.
///
/// 1. [`start`](Reassembler::start) with a row;
/// 2. [`advance`](Reassembler::advance) until it returns true: the value is complete;
/// 3. take it from [`value`](Reassembler::value): with the row's metadata it is a [`Variant`].
///
/// Or call [`reassemble`](Reassembler::reassemble), which does all three. The work is proportional to the row's bytes
/// in the columns, with each field's name as often as the field occurs (these names are counted, and may have
/// [`Limits::value_bytes`] in total); but values are moved once per level of depth, and an object's fields are sorted.
#[derive(Debug)]
pub struct Reassembler<'a, S> {
    encoder: Encoder,
    names: NameIndex<'a>,
    open: Vec<Open<'a, S>>,
    /// Names of the shredded fields of the innermost object, sorted, once its other fields follow.
    shredded: Vec<&'a str>,
    /// Bytes that the names of the row's fields may still have.
    name_bytes_left: u64,
    limits: Limits,
    failed: Failed,
}

/// An object or array that is being reassembled.
#[derive(Debug)]
struct Open<'a, S> {
    columns: S,
    is_object: bool,
    next: usize,
    count: usize,
    /// The fields of an object that are not shredded.
    others: Option<Object<'a>>,
    /// The fields of its `value` that are left, once the shredded ones are done.
    others_left: Option<Fields<'a>>,
}

impl<'a, S: ShreddedValue<'a>> Reassembler<'a, S> {
    /// A reassembler of values of at most [`Limits::value_bytes`] and a depth of at most [`Limits::nesting`].
    pub fn new(limits: &Limits) -> Reassembler<'a, S> {
        Reassembler {
            encoder: Encoder::new(limits),
            names: NameIndex::default(),
            open: Vec::new(),
            shredded: Vec::new(),
            name_bytes_left: 0,
            limits: *limits,
            failed: Failed::default(),
        }
    }

    /// Reassembles a row's value.
    ///
    /// # Errors
    ///
    /// `Corrupt` for invalid pairs (see [`ShreddedValue`]), fields whose names are not in the metadata, or a `value`
    /// that ends too early; `LimitExceeded`; and the columns' own errors.
    pub fn reassemble(&mut self, metadata: Metadata<'a>, row: S) -> Result<&[u8]> {
        self.start(metadata, row)?;
        while !self.advance(usize::MAX)? {}
        Ok(self.value())
    }

    /// Starts a row. The rest of an unfinished one is discarded.
    ///
    /// # Errors
    ///
    /// As [`Reassembler::reassemble`].
    pub fn start(&mut self, metadata: Metadata<'a>, row: S) -> Result<()> {
        self.encoder.clear();
        self.open.clear();
        self.failed = Failed::default();
        self.name_bytes_left = self.limits.value_bytes;
        self.names.set(metadata);
        Failed::run(self, |this| &mut this.failed, |this| this.put(row, None).map(drop))
    }

    /// Continues for at most `values` elements and fields; true when the value is complete.
    ///
    /// # Errors
    ///
    /// As [`Reassembler::reassemble`]. After an error it is the same again, up to the next row.
    pub fn advance(&mut self, values: usize) -> Result<bool> {
        Failed::run(self, |this| &mut this.failed, |this| this.steps(values))
    }

    /// The value, once it is complete.
    pub fn value(&self) -> &[u8] {
        if self.open.is_empty() && !self.failed.is_set() { self.encoder.value() } else { &[] }
    }

    fn steps(&mut self, values: usize) -> Result<bool> {
        for _ in 0..values.max(1) {
            if self.open.is_empty() {
                break;
            }
            self.step()?;
        }
        Ok(self.open.is_empty() && self.encoder.is_complete())
    }

    /// Adds the next element or field of the innermost open array or object, or ends it.
    fn step(&mut self) -> Result<()> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if open.next < open.count {
            let index = open.next;
            open.next += 1;
            if open.is_object {
                let (name, columns) = open.columns.field(index)?;
                self.put(columns, Some((index, name)))
            } else {
                let columns = open.columns.element(index)?;
                self.put(columns, None)
            }
        } else if let Some(others) = open.others.take() {
            self.shredded.clear();
            if !others.is_empty() {
                for index in 0..open.count {
                    self.shredded.push(open.columns.field(index)?.0);
                }
                self.shredded.sort_unstable();
            }
            open.others_left = Some(others.fields());
            Ok(())
        } else if let Some(others) = &mut open.others_left
            && let Some(field) = others.next()
        {
            let (name, value) = field?;
            let id = others.last_id().ok_or_else(|| Error::internal("a field without a name's number"))?;
            self.count_name(name)?;
            // Whether missing or not: "must never contain fields represented by the Parquet columns in typed_value".
            if self.shredded.binary_search(&name).is_ok() {
                return Err(Error::corrupt(format!(
                    "the field {name:?} of a shredded variant is in its value too"
                )));
            }
            self.encoder.field(id)?;
            self.encoder.copy(value.bytes())
        } else {
            match self.encoder.end(&self.names)? {
                None => {
                    self.open.pop();
                    Ok(())
                }
                Some(id) => Err(Error::corrupt(duplicate(&alloc::string::String::from_utf8_lossy(
                    self.names.name_bytes(id),
                )))),
            }
        }
    }

    /// Adds a value, or begins it. One with a number and a name is a field, which can be missing.
    fn put(&mut self, columns: S, field: Option<(usize, &'a str)>) -> Result<()> {
        let (value, typed) = (columns.value(), columns.typed_value()?);
        if let (None, TypedValue::Null | TypedValue::NullObject) = (value, typed) {
            return match field {
                Some(_) => Ok(()),
                // "If a Variant is missing in a context where a value is required, readers must return a Variant null".
                None => self.encoder.primitive(Primitive::Null),
            };
        }
        if let Some((index, name)) = field {
            self.count_name(name)?;
            let id = self.names.find(index, name)?;
            self.encoder.field(id)?;
        }
        let value = value.map(|bytes| Variant::new(self.names.metadata, bytes, &self.limits)).transpose()?;
        match (value, typed) {
            (Some(value), TypedValue::Null) => self.encoder.copy(value.bytes()),
            (Some(value), TypedValue::NullObject) if value.is_object() => Err(Error::corrupt(
                "a shredded variant's value is an object, but its typed_value, which should hold it, is null",
            )),
            (Some(value), TypedValue::NullObject) => self.encoder.copy(value.bytes()),
            (None, TypedValue::Primitive(value)) => self.encoder.primitive(value),
            (Some(_), TypedValue::Primitive(_) | TypedValue::Array(_)) => {
                Err(Error::corrupt("a shredded variant has both a value and a typed_value"))
            }
            (None, TypedValue::Array(count)) => self.start_container(columns, count, None, false),
            (None, TypedValue::Object(count)) => self.start_container(columns, count, None, true),
            (Some(value), TypedValue::Object(count)) => match value.object()? {
                Some(others) => self.start_container(columns, count, Some(others), true),
                None => Err(Error::corrupt("a shredded variant has fields, but its value is no object")),
            },
            (None, TypedValue::Null | TypedValue::NullObject) => Ok(()),
        }
    }

    fn start_container(
        &mut self,
        columns: S,
        count: usize,
        others: Option<Object<'a>>,
        is_object: bool,
    ) -> Result<()> {
        self.encoder.start(is_object)?;
        self.open.push(Open { columns, is_object, next: 0, count, others, others_left: None });
        Ok(())
    }

    fn count_name(&mut self, name: &str) -> Result<()> {
        let length = name.len() as u64;
        match self.name_bytes_left.checked_sub(length) {
            Some(left) => self.name_bytes_left = left,
            None => {
                let all = self.limits.value_bytes - self.name_bytes_left + length;
                self.limits.check(Limit::ValueBytes, all)?;
            }
        }
        Ok(())
    }
}

/// A row's names, and the order in which they can be searched. Consecutive rows mostly have the same names.
#[derive(Debug)]
struct NameIndex<'a> {
    metadata: Metadata<'a>,
    /// The numbers of the names, sorted by name; empty if the names themselves are sorted. Some writers declare that of
    /// names that are not.
    sorted: Vec<u32>,
}

impl Default for NameIndex<'_> {
    fn default() -> Self {
        NameIndex { metadata: Metadata::EMPTY, sorted: Vec::new() }
    }
}

impl Names for NameIndex<'_> {
    fn name_bytes(&self, id: u32) -> &[u8] {
        self.metadata.name_bytes(id as usize).unwrap_or(&[])
    }
}

impl<'a> NameIndex<'a> {
    fn set(&mut self, metadata: Metadata<'a>) {
        let same = self.metadata.bytes() == metadata.bytes();
        self.metadata = metadata;
        if same {
            return;
        }
        self.sorted.clear();
        let name = |id: usize| metadata.name_bytes(id);
        if !(1..metadata.len()).all(|id| name(id - 1) < name(id)) {
            // As many as the metadata has offsets of.
            self.sorted.extend((0..metadata.len()).filter_map(|id| u32::try_from(id).ok()));
            self.sorted.sort_unstable_by_key(|&id| metadata.name_bytes(id as usize));
        }
    }

    /// The number of the name of a shredded field, which is at this index in its group.
    ///
    /// DuckDB calls a field whose name is empty `element2` if it is the second of its group: its structs have no empty
    /// names. The metadata has the name as it is.
    fn find(&self, index: usize, name: &str) -> Result<u32> {
        let stands_for_empty = || {
            let number = name.strip_prefix("element").filter(|number| !number.starts_with(['0', '+']))?;
            (number.parse() == Ok(index + 1)).then(|| self.position(""))?
        };
        self.position(name).or_else(stands_for_empty).ok_or_else(|| {
            Error::corrupt(format!("the field {name:?} of a shredded variant is not in its metadata"))
        })
    }

    fn position(&self, name: &str) -> Option<u32> {
        let (metadata, wanted) = (&self.metadata, Some(name.as_bytes()));
        if self.sorted.is_empty() {
            let name_at = |id| metadata.name_bytes(id);
            find_sorted(metadata.len(), name_at, name.as_bytes()).and_then(|id| u32::try_from(id).ok())
        } else {
            let found = self.sorted.binary_search_by_key(&wanted, |&id| metadata.name_bytes(id as usize));
            found.ok().map(|at| self.sorted[at])
        }
    }
}
