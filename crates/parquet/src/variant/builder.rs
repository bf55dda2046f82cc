//! Encodes a variant, value by value.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Error, Limits, Result};

use super::Primitive;
use super::encoder::{Encoder, Names, bytes_of, duplicate};

/// Encodes one variant: its metadata and its value.
///
/// A value is a [primitive](VariantBuilder::primitive), an [array](VariantBuilder::start_array) of values, or an
/// [object](VariantBuilder::start_object) of values, each after its [name](VariantBuilder::field), in any order. After
/// its last value, an object or array needs an [end](VariantBuilder::end).
#[derive(Debug)]
pub struct VariantBuilder {
    encoder: Encoder,
    names: Dictionary,
}

/// The names so far, in order of first use.
#[derive(Debug, Default)]
struct Dictionary {
    names: Vec<Arc<str>>,
    ids: BTreeMap<Arc<str>, u32>,
    bytes: usize,
}

impl Names for Dictionary {
    fn name_bytes(&self, id: u32) -> &[u8] {
        self.names.get(id as usize).map_or(&[], |name| name.as_bytes())
    }
}

impl VariantBuilder {
    /// A builder of a value of at most [`Limits::value_bytes`] and a depth of at most [`Limits::nesting`].
    pub fn new(limits: &Limits) -> VariantBuilder {
        VariantBuilder { encoder: Encoder::new(limits), names: Dictionary::default() }
    }

    /// Adds a value that contains no others.
    ///
    /// # Errors
    ///
    /// `Misuse` if no value is expected, or for an invalid scale of a decimal; `LimitExceeded`.
    pub fn primitive(&mut self, value: Primitive<'_>) -> Result<()> {
        self.encoder.primitive(value)
    }

    /// Starts an array.
    ///
    /// # Errors
    ///
    /// `Misuse` if no value is expected; `LimitExceeded`.
    pub fn start_array(&mut self) -> Result<()> {
        self.encoder.start(false)
    }

    /// Starts an object.
    ///
    /// # Errors
    ///
    /// `Misuse` if no value is expected; `LimitExceeded`.
    pub fn start_object(&mut self) -> Result<()> {
        self.encoder.start(true)
    }

    /// Names the next value of an object.
    ///
    /// # Errors
    ///
    /// `Misuse` if no name is expected; `LimitExceeded` for names of more than 4 GiB.
    pub fn field(&mut self, name: &str) -> Result<()> {
        let id = match self.names.ids.get(name) {
            Some(&id) => id,
            None => {
                let bytes = self.names.bytes + name.len();
                u32::try_from(bytes)
                    .map_err(|_| Error::too_large("a variant whose names have 4 GiB or more"))?;
                let id = u32::try_from(self.names.names.len())
                    .map_err(|_| Error::internal("more names than bytes"))?;
                let name: Arc<str> = name.into();
                self.names.names.push(name.clone());
                self.names.ids.insert(name, id);
                self.names.bytes = bytes;
                id
            }
        };
        self.encoder.field(id)
    }

    /// Ends the innermost array or object.
    ///
    /// # Errors
    ///
    /// `Misuse` if nothing is open, a name has no value, or two fields of an object have the same name;
    /// `LimitExceeded`.
    pub fn end(&mut self) -> Result<()> {
        match self.encoder.end(&self.names)? {
            None => Ok(()),
            Some(id) => Err(Error::misuse(duplicate(&String::from_utf8_lossy(self.names.name_bytes(id))))),
        }
    }

    /// The metadata and the value.
    ///
    /// # Errors
    ///
    /// `Misuse` if there is no value, or an array or object was not ended.
    pub fn finish(self) -> Result<(Vec<u8>, Vec<u8>)> {
        if !self.encoder.is_complete() {
            return Err(Error::misuse("a variant without a value, or without an end"));
        }
        Ok((self.names.encode(), self.encoder.into_value()))
    }
}

impl Dictionary {
    fn encode(&self) -> Vec<u8> {
        let width = bytes_of(self.bytes.max(self.names.len()));
        let sorted = self.names.is_sorted_by(|left, right| left < right);
        let mut out = Vec::new();
        let mut put = |number: usize| out.extend_from_slice(&number.to_le_bytes()[..width]);
        put(self.names.len());
        let mut end = 0;
        put(end);
        for name in &self.names {
            end += name.len();
            put(end);
        }
        self.names.iter().for_each(|name| out.extend_from_slice(name.as_bytes()));
        let header = marquetry_base::cast::low_u8(width as u64 - 1) << 6 | u8::from(sorted) << 4 | 1;
        out.insert(0, header);
        out
    }
}
