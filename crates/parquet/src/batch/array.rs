//! Nested columns in Arrow's layout: offsets and validity at every level, computed from the leaves' levels.
//!
//! Source: Arrow's columnar format (Variable-size List, Struct and Map layouts), and parquet-format's `README.md`, "Nested
//! Encoding".

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::{Bitmap, Budget, Buffer, Release, release_all};

use super::Values;

/// A field of a batch, in Arrow's layout: one slot per row, or per element of the list around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The node of the schema.
    pub node: usize,
    /// Slots.
    pub length: usize,
    /// Slots that are null.
    pub nulls: usize,
    /// A bit per slot: present (1) or null (0). `None` if none is null.
    pub validity: Option<Bitmap>,
    /// What is in the slots.
    pub kind: ArrayKind,
}

/// What an [`Array`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum ArrayKind {
    /// Values, one per slot; a null's is zero or empty.
    Values(Values),
    /// Fields, each as long as the struct.
    Struct(Vec<Array>),
    /// `offsets[i]..offsets[i + 1]` are the elements of slot `i`.
    List(Buffer<i32>, Box<Array>),
    /// `offsets[i]..offsets[i + 1]` are the keys, and the values if there are any, of slot `i`.
    Map(Buffer<i32>, Box<Array>, Option<Box<Array>>),
}

impl Release for Array {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (self.length, self.nulls) = (0, 0);
        release_all(&mut [&mut self.validity, &mut self.kind], budget)
    }
}

impl Release for ArrayKind {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            ArrayKind::Values(values) => values.release(budget),
            ArrayKind::Struct(fields) => fields.release(budget),
            ArrayKind::List(offsets, elements) => release_all(&mut [offsets, elements], budget),
            ArrayKind::Map(offsets, keys, values) => release_all(&mut [offsets, keys, values], budget),
        }
    }
}
