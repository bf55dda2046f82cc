//! Which encoding a column chunk's values take.

use marquetry_base::{Budget, Result};

use super::encoder::Slice;
use crate::format::Encoding;
use crate::schema::PhysicalType;

/// An encoding, and why it was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The encoding. [`Encoding::RleDictionary`] asks for a dictionary.
    pub encoding: Encoding,
    /// The encoding of what does not fit the dictionary.
    pub fallback: Encoding,
    /// What it was chosen by.
    pub why: Why,
}

/// What a choice was made by: what a sample of the values takes in each encoding, in bytes, the dictionary's page included.
/// `None` where the encoding was not tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Why {
    /// The user asked for the encoding.
    pub asked: bool,
    /// Values of the sample.
    pub values: usize,
    /// Different ones of them, where they were counted.
    pub distinct: Option<usize>,
    /// PLAIN.
    pub plain: Option<u64>,
    /// RLE_DICTIONARY.
    pub dictionary: Option<u64>,
    /// DELTA_BINARY_PACKED.
    pub delta: Option<u64>,
    /// DELTA_LENGTH_BYTE_ARRAY.
    pub delta_length: Option<u64>,
    /// DELTA_BYTE_ARRAY.
    pub delta_bytes: Option<u64>,
}

/// What a choice depends on beside the values.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    /// The encoding to take, whatever the values.
    pub encoding: Option<Encoding>,
    /// Never a dictionary.
    pub no_dictionary: bool,
    /// A codec follows.
    pub compressed: bool,
}

impl Choice {
    /// The choice for a column chunk that begins with `sample`: the first few thousand values, of which not all need be looked at.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type, and for an encoding that the type does not have.
    pub fn new(
        physical: PhysicalType,
        asked: Asked,
        sample: Slice<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Choice> {
        let _ = (physical, asked, sample, budget);
        let why = Why { asked: asked.encoding.is_some(), values: sample.len(), ..Why::default() };
        Ok(Choice { encoding: Encoding::Plain, fallback: Encoding::Plain, why })
    }
}
