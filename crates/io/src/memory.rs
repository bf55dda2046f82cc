//! Objects whose bytes are in memory already.

use std::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Result};

use crate::source::{ByteSource, beyond_end};

/// An object in memory. Reading it copies nothing: what is read shares the memory.
#[derive(Debug, Clone)]
pub struct Memory {
    name: String,
    bytes: Bytes,
}

impl Memory {
    /// An object with these bytes, called `name` in errors.
    pub fn new(name: impl Into<String>, bytes: Bytes) -> Memory {
        Memory { name: name.into(), bytes }
    }
}

impl ByteSource for Memory {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> Result<u64> {
        Ok(u64_of(self.bytes.len()))
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        match (usize_of(range.start), usize_of(range.end)) {
            (Some(start), Some(end)) if start <= end && end <= self.bytes.len() => {
                Ok(self.bytes.slice(start..end))
            }
            _ => Err(beyond_end(&self.name, &range, u64_of(self.bytes.len()))),
        }
    }
}
