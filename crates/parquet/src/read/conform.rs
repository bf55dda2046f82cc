//! Batches of a file as batches of another schema, which several files share.
//!
//! Columns missing from a file are null, narrower ones are widened, and those with another spelling get the schema's
//! levels. Where file and schema agree, batches pass untouched.

mod cast;
mod nulls;
mod plan;
mod reader;
mod variant;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::schema::{PhysicalType, Shape, Widening};

pub use reader::{ConformReader, Conformer};

/// How the leaves of one schema are read as those of another.
///
/// Made once for each different schema and shared by its files: see [`ConformReader`].
///
/// Fields are matched by name. Lists, maps and variants are matched by meaning, not by spelling. Fields missing from
/// the file's schema are null; fields missing from the other schema are not read.
///
/// ```
/// # fn main() -> Result<(), marquetry_base::Error> {
/// use marquetry_parquet::read::Conform;
/// use marquetry_parquet::schema::{Schema, Union};
///
/// /// The schema of all, and how each is read as it.
/// fn plans(schemas: &[Schema]) -> marquetry_base::Result<(Schema, Vec<Conform>)> {
///     let mut union = Union::new();
///     for schema in schemas {
///         union.add(schema);
///     }
///     let unified = union.finish().schema;
///     let plans = schemas.iter().map(|schema| Conform::new(schema, &unified, &[])).collect::<Result<_, _>>()?;
///     Ok((unified, plans))
/// }
/// # plans(&[])?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Conform {
    leaves: Vec<LeafPlan>,
    /// The leaves that are read.
    reads: Vec<usize>,
    structures: Vec<Structure>,
    variants: Vec<Variant>,
    /// The types of the constants.
    constants: Vec<PhysicalType>,
    is_identity: bool,
}

/// Where a leaf of the other schema comes from.
#[derive(Debug, Clone)]
struct LeafPlan {
    physical_type: PhysicalType,
    is_flat: bool,
    has_repetition: bool,
    source: LeafSource,
}

#[derive(Debug, Clone)]
enum LeafSource {
    /// From the leaf that is read at this place.
    Read { read: usize, widening: Widening, levels: LevelPlan },
    /// From nowhere: null in each row, or in each slot of a structure.
    Null(Option<usize>),
    /// A value that is the same in each row.
    Constant(usize),
    /// From a variant that is shredded.
    Variant { variant: usize, part: VariantPart, levels: LevelPlan },
}

/// What becomes of definition levels. A table has a level of the other schema for each of the file's.
#[derive(Debug, Clone)]
enum LevelPlan {
    Keep,
    Map(Box<[u8]>),
    /// From the validity of a flat leaf.
    OfFlat(Box<[u8]>),
}

/// The slots of a group or an element, some of whose fields the file lacks: they are as a leaf tells that the file has there.
#[derive(Debug, Clone)]
struct Structure {
    /// The place of that leaf among those that are read.
    read: usize,
    /// Definition levels, of that leaf to the other schema; no higher than that of the slots.
    definition: Box<[u8]>,
    /// The largest repetition level that begins a slot.
    repetition: u16,
}

/// A variant that is put together.
#[derive(Debug, Clone)]
struct Variant {
    /// The column that it is or stands in, of which there are only its leaves.
    shape: Shape,
    /// The variant's node in the file's schema.
    node: usize,
    leaves: Range<usize>,
    /// Where each of its leaves is read.
    reads: Vec<usize>,
    /// Where its metadata is read, which has a value wherever there is a variant.
    metadata: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VariantPart {
    Metadata,
    Value,
}

impl Conform {
    /// The leaves of the file that are read, in this order.
    pub fn reads(&self) -> &[usize] {
        &self.reads
    }

    /// Whether the file's batches already have the other schema.
    pub fn is_identity(&self) -> bool {
        self.is_identity
    }
}

#[cfg(test)]
mod tests;
