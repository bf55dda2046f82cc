//! Nested values, written in any form.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Error, Limits, Result};
use marquetry_parquet::batch::{Array, ArrayKind};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::variant::{Reassembler, Variant, VariantColumns};

use super::convert::Slots;
use super::form::{Form, Order, Text};
use super::plan::{Field, Part, Plan};
use super::value::Value;
use super::{DuplicateKeys, NullElements};

/// The rules for writing nested values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) null_elements: NullElements,
    pub(super) duplicate_keys: DuplicateKeys,
    /// The schema, if there are variants: for the names of their shredded fields.
    pub(super) schema: &'a Schema,
    pub(super) limits: Limits,
}

/// Writes nested values, and keeps its working memory.
#[derive(Debug, Default)]
pub(super) struct Renderer {
    spare: Vec<Keys>,
}

/// Maximum bytes of a nested value: what a frame of the native protocol can hold. A short file can repeat a long value
/// many times in one list.
const VALUE_BYTES_MAX: usize = 256 << 20;

impl Renderer {
    /// Appends the value in a slot that is not null.
    ///
    /// # Errors
    ///
    /// `Conversion`: a part that its type cannot hold; a null in a list, set or map; two equal keys. `LimitExceeded`:
    /// more than 256 MiB. Also the errors of variants. The place's column is the path below the column, preceded by a
    /// dot or bracket. Discard what was appended.
    pub(super) fn write<F: Form>(
        &mut self,
        rules: Rules<'_>,
        plan: &Plan,
        array: &Array,
        slot: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let length_max = out.len().saturating_add(VALUE_BYTES_MAX);
        let mut walk = Walk { rules, spare: &mut self.spare, length_max };
        walk.value::<F>(plan, array, slot, out).map_err(|fault| {
            let Fault { error, path } = *fault;
            error.at(|place| place.column = Some(path))
        })
    }
}

struct Walk<'a> {
    rules: Rules<'a>,
    spare: &'a mut Vec<Keys>,
    length_max: usize,
}

/// An error on its way up; each level adds its part of the path.
struct Fault {
    error: Error,
    path: String,
}

type Walked<T = ()> = core::result::Result<T, Box<Fault>>;

impl From<Error> for Box<Fault> {
    #[cold]
    fn from(error: Error) -> Box<Fault> {
        Box::new(Fault { error, path: String::new() })
    }
}

/// Adds an outer part to a fault's path.
#[cold]
fn below(mut fault: Box<Fault>, part: String) -> Box<Fault> {
    fault.path.insert_str(0, &part);
    fault
}

/// An array with its plan; for a leaf, prepared for all slots.
enum Element<'a> {
    Leaf(Slots<'a>),
    Nested(&'a Plan, &'a Array),
}

impl<'a> Element<'a> {
    fn new(plan: &'a Plan, array: &'a Array) -> Result<Element<'a>> {
        match (plan, &array.kind) {
            (Plan::Leaf(conversion), ArrayKind::Values(values)) => match conversion.bind(values) {
                Some(slots) => Ok(Element::Leaf(slots)),
                None => Err(Error::misuse("the types of the batch differ from the schema's")),
            },
            _ => Ok(Element::Nested(plan, array)),
        }
    }
}

fn is_null(array: &Array, slot: usize) -> bool {
    array.validity.as_ref().is_some_and(|validity| !validity.get(slot))
}

/// The slots of a list's elements.
fn elements(offsets: &[i32], slot: usize) -> Range<usize> {
    // Offsets are never negative, and there is one more than slots.
    let at = |slot: usize| offsets.get(slot).map_or(0, |&offset| usize::try_from(offset).unwrap_or(0));
    at(slot)..at(slot + 1)
}

/// The separator between two items of a literal.
const COMMA: &[u8] = b", ";

fn comma(items: usize) -> &'static [u8] {
    if items == 0 { b"" } else { COMMA }
}

impl Walk<'_> {
    /// It recurses as deep as schemas with shapes are.
    fn value<F: Form>(&mut self, plan: &Plan, array: &Array, slot: usize, out: &mut Vec<u8>) -> Walked {
        self.element::<F>(&Element::new(plan, array)?, slot, out)
    }

    #[inline]
    fn element<F: Form>(&mut self, element: &Element<'_>, slot: usize, out: &mut Vec<u8>) -> Walked {
        match *element {
            Element::Leaf(slots) => Ok(F::value(out, &slots.value(slot)?)?),
            Element::Nested(plan, array) => self.nested::<F>(plan, array, slot, out),
        }
    }

    fn nested<F: Form>(&mut self, plan: &Plan, array: &Array, slot: usize, out: &mut Vec<u8>) -> Walked {
        match (plan, &array.kind) {
            (Plan::List(plan), ArrayKind::List(offsets, array) | ArrayKind::Map(offsets, array, None)) => {
                self.list::<F>(plan, array, elements(offsets, slot), out)
            }
            (Plan::Set(plan), ArrayKind::List(offsets, array) | ArrayKind::Map(offsets, array, None)) => {
                self.set::<F>(plan, array, elements(offsets, slot), out)
            }
            (Plan::Vector(plan, length, is_sized), ArrayKind::List(offsets, array)) => {
                self.vector::<F>(plan, array, elements(offsets, slot), (*length, *is_sized), out)
            }
            (Plan::Map(key, value), ArrayKind::Map(offsets, keys, Some(values))) => {
                let entries = Entries { key, keys, value, values, range: elements(offsets, slot) };
                self.map::<F>(&entries, out)
            }
            (Plan::Udt(fields), ArrayKind::Struct(arrays)) => self.fields::<F>(fields, arrays, slot, out),
            (Plan::Tuple(members), ArrayKind::Struct(arrays)) => self.tuple::<F>(members, arrays, slot, out),
            (Plan::Duration(parts), ArrayKind::Struct(arrays)) => {
                Ok(F::value(out, &duration(parts, arrays, slot)?)?)
            }
            (Plan::Variant, ArrayKind::Struct(_)) => Ok(self.variant::<F>(array, slot, out)?),
            _ => Err(Error::misuse("an array of another shape than its column").into()),
        }
    }

    fn list<F: Form>(
        &mut self,
        plan: &Plan,
        array: &Array,
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Walked {
        let element = Element::new(plan, array)?;
        let at = F::begin(out, b'[');
        let mut items = 0;
        for slot in range.clone() {
            if is_null(array, slot) {
                self.null(|| (format!("[{}]", slot - range.start), "a list"))?;
                continue;
            }
            let item = F::begin_item(out, comma(items));
            self.item::<F>(&element, slot, item, out)
                .map_err(|fault| below(fault, format!("[{}]", slot - range.start)))?;
            items += 1;
        }
        Ok(F::end(out, at, items, b']')?)
    }

    fn vector<F: Form>(
        &mut self,
        plan: &Plan,
        array: &Array,
        range: Range<usize>,
        (length, is_sized): (usize, bool),
        out: &mut Vec<u8>,
    ) -> Walked {
        if range.len() != length {
            let message = format!("a vector has {length} elements, and the list {}", range.len());
            return Err(Error::conversion(message).into());
        }
        let element = Element::new(plan, array)?;
        F::begin_vector(out);
        for slot in range.clone() {
            let path = || format!("[{}]", slot - range.start);
            if is_null(array, slot) {
                let error = Error::conversion("a null in a vector, which CQL cannot hold");
                return Err(below(error.into(), path()));
            }
            F::begin_part(out, comma(slot - range.start));
            let at = out.len();
            self.element::<F>(&element, slot, out).map_err(|fault| below(fault, path()))?;
            if !is_sized {
                F::end_part(out, at);
            }
            if out.len() > self.length_max {
                return Err(too_long());
            }
        }
        F::end_vector(out);
        Ok(())
    }

    /// Writes a set in the servers' order; equal elements become one.
    fn set<F: Form>(&mut self, plan: &Plan, array: &Array, range: Range<usize>, out: &mut Vec<u8>) -> Walked {
        let element = Element::new(plan, array)?;
        let mut keys = self.keys();
        for slot in range.clone() {
            if is_null(array, slot) {
                self.null(|| (format!("[{}]", slot - range.start), "a set"))?;
                continue;
            }
            self.key(&mut keys, &element, slot, range.len())
                .map_err(|fault| below(fault, format!("[{}]", slot - range.start)))?;
        }
        keys.sort(Keep::First);
        let at = F::begin(out, b'{');
        let mut items = 0;
        for entry in &keys.entries {
            let item = F::begin_item(out, comma(items));
            self.item::<F>(&element, entry.slot, item, out)
                .map_err(|fault| below(fault, format!("[{}]", entry.slot - range.start)))?;
            items += 1;
        }
        self.give_back(keys);
        Ok(F::end(out, at, items, b'}')?)
    }

    /// In the servers' order.
    fn map<F: Form>(&mut self, entries: &Entries<'_>, out: &mut Vec<u8>) -> Walked {
        let key = Element::new(entries.key, entries.keys)?;
        let value = Element::new(entries.value, entries.values)?;
        let (range, in_key) = (&entries.range, |slot: usize| entries.path(slot, "key"));
        let mut keys = self.keys();
        for slot in range.clone() {
            if is_null(entries.keys, slot) {
                self.null(|| (in_key(slot), "a map's keys"))?;
            } else if is_null(entries.values, slot) {
                self.null(|| (entries.path(slot, "value"), "a map's values"))?;
            } else {
                self.key(&mut keys, &key, slot, range.len()).map_err(|fault| below(fault, in_key(slot)))?;
            }
        }
        if let Some((first, second)) = keys.sort(Keep::Last)
            && self.rules.duplicate_keys == DuplicateKeys::Error
        {
            return Err(self.duplicate(entries, &key, first, second));
        }
        let at = F::begin(out, b'{');
        let mut items = 0;
        for entry in &keys.entries {
            let item = F::begin_item(out, comma(items));
            self.item::<F>(&key, entry.slot, item, out).map_err(|fault| below(fault, in_key(entry.slot)))?;
            let item = F::begin_item(out, b": ");
            self.item::<F>(&value, entry.slot, item, out)
                .map_err(|fault| below(fault, entries.path(entry.slot, "value")))?;
            items += 1;
        }
        self.give_back(keys);
        Ok(F::end(out, at, items, b'}')?)
    }

    fn fields<F: Form>(
        &mut self,
        fields: &[Field],
        arrays: &[Array],
        slot: usize,
        out: &mut Vec<u8>,
    ) -> Walked {
        F::begin_fields(out);
        for (at, field) in fields.iter().enumerate() {
            F::label(out, at == 0, &field.label);
            self.field::<F>(field, (arrays, slot), b"", out)?;
        }
        F::end_fields(out);
        Ok(())
    }

    fn tuple<F: Form>(
        &mut self,
        members: &[Field],
        arrays: &[Array],
        slot: usize,
        out: &mut Vec<u8>,
    ) -> Walked {
        F::begin_tuple(out);
        for (at, member) in members.iter().enumerate() {
            self.field::<F>(member, (arrays, slot), comma(at), out)?;
        }
        F::end_tuple(out);
        Ok(())
    }

    /// A field of a slot, of which the arrays are those of all fields.
    fn field<F: Form>(
        &mut self,
        field: &Field,
        (arrays, slot): (&[Array], usize),
        before: &[u8],
        out: &mut Vec<u8>,
    ) -> Walked {
        let source = match &field.source {
            Some((position, plan)) => {
                let array = arrays.get(*position).ok_or_else(|| Error::misuse(FEWER_FIELDS))?;
                Some((plan, array)).filter(|_| !is_null(array, slot))
            }
            None => None,
        };
        let Some((plan, array)) = source else {
            F::null_item(out, before);
            return Ok(());
        };
        let item = F::begin_item(out, before);
        let named = |fault| below(fault, format!(".{}", field.name));
        let element = Element::new(plan, array).map_err(|error| named(error.into()))?;
        self.item::<F>(&element, slot, item, out).map_err(named)
    }

    /// A variant, as JSON.
    #[inline(never)]
    fn variant<F: Form>(&mut self, array: &Array, slot: usize, out: &mut Vec<u8>) -> Result<()> {
        let schema = self.rules.schema;
        let limits = self.rules.limits;
        let columns = VariantColumns::new(schema, array)?;
        let mut reassembler = Reassembler::new(&limits);
        let metadata = columns.metadata(slot)?;
        let value = reassembler.reassemble(metadata, columns.row(slot))?;
        let mut json = Vec::new();
        Variant::new(metadata, value, &limits)?.to_json(&limits, &mut json)?;
        F::value(out, &Value::Text { bytes: Cow::Owned(json), is_plain: false })
    }

    /// An item or a field that was begun.
    #[inline]
    fn item<F: Form>(&mut self, element: &Element<'_>, slot: usize, at: usize, out: &mut Vec<u8>) -> Walked {
        self.element::<F>(element, slot, out)?;
        F::end_item(out, at)?;
        if out.len() > self.length_max { Err(too_long()) } else { Ok(()) }
    }

    /// Handles a null that CQL does not allow.
    #[cold]
    fn null(&self, place: impl FnOnce() -> (String, &'static str)) -> Walked {
        if self.rules.null_elements == NullElements::Drop {
            return Ok(());
        }
        let (path, of) = place();
        let message =
            format!("a null in {of}, which CQL cannot hold; it can be left out with --null-elements drop");
        Err(below(Error::conversion(message).into(), path))
    }

    #[cold]
    fn duplicate(
        &mut self,
        entries: &Entries<'_>,
        key: &Element<'_>,
        first: usize,
        second: usize,
    ) -> Box<Fault> {
        let mut text = Vec::new();
        if let Err(fault) = self.element::<Text>(key, second, &mut text) {
            return below(fault, entries.path(second, "key"));
        }
        let mut key: String = String::from_utf8_lossy(&text).chars().take(KEY_CHARS_MAX).collect();
        if key.len() < text.len() {
            key.push('…');
        }
        let first = first - entries.range.start;
        let message = format!(
            "the key {key} stands in the map at {first} already; its last entry can be taken with --duplicate-keys last"
        );
        below(Error::conversion(message).into(), entries.path(second, "key"))
    }

    fn keys(&mut self) -> Keys {
        self.spare.pop().unwrap_or_default()
    }

    fn give_back(&mut self, mut keys: Keys) {
        if keys.bytes.capacity() <= KEPT_BYTES_MAX && keys.entries.capacity() <= KEPT_ENTRIES_MAX {
            keys.bytes.clear();
            keys.entries.clear();
            self.spare.push(keys);
        }
    }

    /// Adds a key's bytes; none if it is the only one.
    #[inline]
    fn key(&mut self, keys: &mut Keys, key: &Element<'_>, slot: usize, of: usize) -> Walked {
        let start = keys.bytes.len();
        if of > 1 {
            self.element::<Order>(key, slot, &mut keys.bytes)?;
            if keys.bytes.len() > self.length_max {
                return Err(too_long());
            }
        }
        keys.entries.push(Key { slot, start, end: keys.bytes.len() });
        Ok(())
    }
}

const FEWER_FIELDS: &str = "a group with fewer fields";

/// A duration of a group's three parts.
fn duration(parts: &[Part; 3], arrays: &[Array], slot: usize) -> Result<Value<'static>> {
    let mut numbers = [0; 3];
    for (part, number) in parts.iter().zip(&mut numbers) {
        let array = arrays.get(part.at).ok_or_else(|| Error::misuse(FEWER_FIELDS))?;
        if is_null(array, slot) {
            return Err(Error::conversion(format!("a duration whose {} are null", part.name)));
        }
        let slots = match &array.kind {
            ArrayKind::Values(values) => part.leaf.bind(values),
            _ => None,
        };
        let slots = slots.ok_or_else(|| Error::misuse("the types of the batch differ from the schema's"))?;
        *number = match slots.value(slot)? {
            Value::Int(value) => value.into(),
            Value::Bigint(value) => value,
            _ => return Err(Error::internal("a part of a duration that is no integer")),
        };
    }
    let [months, days, nanos] = numbers;
    if numbers.iter().any(|number| *number < 0) && numbers.iter().any(|number| *number > 0) {
        let message =
            format!("a duration of {months} months, {days} days and {nanos} ns, which have not all one sign");
        return Err(Error::conversion(message));
    }
    let narrow = |number: i64| i32::try_from(number).map_err(|_| Error::internal("a part that was checked"));
    Ok(Value::Duration { months: narrow(months)?, days: narrow(days)?, nanos })
}

#[cold]
fn too_long() -> Box<Fault> {
    let message = format!("a value of more than {VALUE_BYTES_MAX} bytes");
    Error::too_large(message).into()
}

/// Characters of a key in a message.
const KEY_CHARS_MAX: usize = 100;
/// Bytes of keys for which memory is kept between values.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Keys for which memory is kept between values.
const KEPT_ENTRIES_MAX: usize = 1 << 16;

/// A map's entries.
struct Entries<'a> {
    key: &'a Plan,
    keys: &'a Array,
    value: &'a Plan,
    values: &'a Array,
    range: Range<usize>,
}

impl Entries<'_> {
    #[cold]
    fn path(&self, slot: usize, part: &str) -> String {
        format!("[{}].{part}", slot - self.range.start)
    }
}

/// The keys of a map or elements of a set, in the form [`Order`].
#[derive(Debug, Default)]
struct Keys {
    bytes: Vec<u8>,
    entries: Vec<Key>,
}

#[derive(Debug, Clone, Copy)]
struct Key {
    slot: usize,
    start: usize,
    end: usize,
}

/// Which of equal keys is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    First,
    Last,
}

impl Keys {
    /// Sorts the keys, and drops all but one of equal ones; returns the slots of the first two that are equal.
    ///
    /// Needs at most n log n comparisons, and n if they are already sorted, as many writers store them.
    fn sort(&mut self, keep: Keep) -> Option<(usize, usize)> {
        let (bytes, entries) = (&self.bytes, &mut self.entries);
        let of = |key: &Key| &bytes[key.start..key.end];
        if entries.is_sorted_by(|a, b| of(a) < of(b)) {
            return None;
        }
        entries.sort_unstable_by(|a, b| of(a).cmp(of(b)).then(a.slot.cmp(&b.slot)));
        let mut found: Option<(usize, usize)> = None;
        entries.dedup_by(|next, kept| {
            if of(next) != of(kept) {
                return false;
            }
            if found.is_none_or(|found| next.slot < found.1) {
                found = Some((kept.slot, next.slot));
            }
            if keep == Keep::Last {
                *kept = *next;
            }
            true
        });
        found
    }
}
