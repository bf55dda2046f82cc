//! Encodes values whose fields' names are already numbers.
//!
//! Source: `VariantEncoding.md`, "Value encoding".

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Error, Limit, Limits, Result};

use super::Primitive;
use super::primitive::{BASIC_ARRAY, BASIC_OBJECT};

/// Names by number, to sort fields by.
pub(super) trait Names {
    /// The bytes of the name with this number; empty if there is none.
    fn name_bytes(&self, id: u32) -> &[u8];
}

/// Encodes one value after the other into one buffer.
///
/// The values of an object or array are written first; when it ends, its header is inserted before them. So bytes move
/// once per level of depth.
#[derive(Debug)]
pub(super) struct Encoder {
    out: Vec<u8>,
    open: Vec<Open>,
    /// The values in open objects and arrays, those of the innermost last.
    children: Vec<Child>,
    limits: Limits,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    is_object: bool,
    /// Where it starts in the output, and among the children.
    start: usize,
    children: usize,
    /// The name of the next field.
    named: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Child {
    id: u32,
    /// Where its value starts, counted from its parent's start.
    offset: u32,
}

impl Encoder {
    pub(super) fn new(limits: &Limits) -> Encoder {
        Encoder { out: Vec::new(), open: Vec::new(), children: Vec::new(), limits: *limits }
    }

    /// Clears everything but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.open.clear();
        self.children.clear();
    }

    /// The value, once it is [complete](Encoder::is_complete).
    pub(super) fn value(&self) -> &[u8] {
        &self.out
    }

    pub(super) fn into_value(self) -> Vec<u8> {
        self.out
    }

    /// True if there is a value and nothing is open.
    pub(super) fn is_complete(&self) -> bool {
        self.open.is_empty() && !self.out.is_empty()
    }

    /// Encodes a primitive.
    pub(super) fn primitive(&mut self, value: Primitive<'_>) -> Result<()> {
        let bytes = match value {
            Primitive::String(text) => text.len(),
            Primitive::Binary(bytes) => bytes.len(),
            _ => 0,
        };
        self.begin(bytes)?;
        value.encode(&mut self.out)
    }

    /// Copies a value that has the same names.
    pub(super) fn copy(&mut self, value: &[u8]) -> Result<()> {
        self.begin(value.len())?;
        self.out.extend_from_slice(value);
        Ok(())
    }

    /// Starts an object or array.
    pub(super) fn start(&mut self, is_object: bool) -> Result<()> {
        self.limits.check(Limit::Nesting, self.open.len() as u64 + 1)?;
        self.begin(0)?;
        self.open.push(Open { is_object, start: self.out.len(), children: self.children.len(), named: None });
        Ok(())
    }

    /// Names the next value.
    pub(super) fn field(&mut self, id: u32) -> Result<()> {
        match self.open.last_mut() {
            Some(Open { is_object: true, named: named @ None, .. }) => {
                *named = Some(id);
                Ok(())
            }
            _ => Err(Error::misuse("a field's name in a variant where a value should be")),
        }
    }

    /// Records the start of a value of at least `bytes` bytes.
    fn begin(&mut self, bytes: usize) -> Result<()> {
        let all = self.out.len() as u64 + bytes as u64;
        // Offsets have at most four bytes.
        Limit::ValueBytes.check(self.limits.value_bytes.min(u32::MAX.into()), all)?;
        self.out.try_reserve(bytes).map_err(|_| Error::out_of_memory(bytes))?;
        match self.open.last_mut() {
            None if self.out.is_empty() => Ok(()),
            None => Err(Error::misuse("a variant of two values")),
            Some(open) => {
                let id = match (open.is_object, open.named.take()) {
                    (true, None) => return Err(Error::misuse("a field of a variant without a name")),
                    (_, id) => id.unwrap_or(0),
                };
                let offset = u32::try_from(self.out.len() - open.start)
                    .map_err(|_| Error::internal("a value beyond its limit"))?;
                self.children.push(Child { id, offset });
                Ok(())
            }
        }
    }

    /// Ends the innermost object or array. `Ok(Some(id))` if two fields of an object have the name with this number:
    /// then it stays open.
    pub(super) fn end(&mut self, names: &impl Names) -> Result<Option<u32>> {
        let open = match self.open.last() {
            Some(&open) if open.named.is_none() => open,
            _ => return Err(Error::misuse("the end of nothing, or of an object whose field has no value")),
        };
        let children = &mut self.children[open.children..];
        if open.is_object {
            let name = |child: &Child| names.name_bytes(child.id);
            if !children.is_sorted_by(|left, right| name(left) < name(right)) {
                children.sort_unstable_by(|left, right| name(left).cmp(name(right)));
                let same = children.windows(2).find(|pair| name(&pair[0]) == name(&pair[1]));
                if let Some(same) = same {
                    return Ok(Some(same[0].id));
                }
            }
        }
        let values = self.out.len() - open.start;
        let count = children.len();
        let offset_bytes = bytes_of(values);
        let id_bytes = if open.is_object {
            bytes_of(children.iter().map(|child| child.id as usize).max().unwrap_or(0))
        } else {
            0
        };
        let is_large = count > usize::from(u8::MAX);
        let count_bytes = if is_large { 4 } else { 1 };
        let header = 1 + count_bytes + count * id_bytes + (count + 1) * offset_bytes;
        let all = (self.out.len() + header) as u64;
        Limit::ValueBytes.check(self.limits.value_bytes.min(u32::MAX.into()), all)?;
        self.out.try_reserve(header).map_err(|_| Error::out_of_memory(header))?;
        self.out.resize(self.out.len() + header, 0);
        self.out.copy_within(open.start..open.start + values, open.start + header);
        let widths = low_u8(offset_bytes - 1)
            | if open.is_object {
                low_u8(id_bytes - 1) << 2 | u8::from(is_large) << 4
            } else {
                u8::from(is_large) << 2
            };
        let basic_type = if open.is_object { BASIC_OBJECT } else { BASIC_ARRAY };
        let mut at = open.start;
        let mut put = |number: usize, bytes: usize| {
            self.out[at..at + bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
            at += bytes;
        };
        put((widths << 2 | basic_type).into(), 1);
        put(count, count_bytes);
        children.iter().for_each(|child| put(child.id as usize, id_bytes));
        children.iter().for_each(|child| put(child.offset as usize, offset_bytes));
        put(values, offset_bytes);
        self.children.truncate(open.children);
        self.open.pop();
        Ok(None)
    }
}

/// Bytes that a number of at most 32 bits needs, at least one.
pub(super) fn bytes_of(number: usize) -> usize {
    match number {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x100_0000 => 3,
        _ => 4,
    }
}

fn low_u8(number: usize) -> u8 {
    marquetry_base::cast::low_u8(number as u64)
}

/// The message for two fields with the same name.
pub(super) fn duplicate(name: &str) -> alloc::string::String {
    format!("two fields of the name {name:?} in an object of a variant")
}
