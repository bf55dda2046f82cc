//! Batches of a file as batches of another schema, which several files share.
//!
//! Columns missing from a file are null, narrower ones are widened, and those with another spelling get the schema's
//! levels. Where file and schema agree, batches pass untouched.

mod cast;
mod nulls;
mod plan;
mod reader;
mod translate;
mod variant;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::Segmented;

use crate::schema::{PhysicalType, Schema, Widening};

pub use plan::ConformPlan;
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
/// use std::sync::Arc;
///
/// use marquetry_parquet::schema::{Plan, Schema, Union};
///
/// /// The schema of all, and how each is read as it.
/// fn plans(schemas: &[Arc<Schema>]) -> marquetry_base::Result<(Arc<Schema>, Vec<Conform>)> {
///     let mut union = Union::new();
///     for schema in schemas {
///         union.add(Arc::clone(schema));
///     }
///     let unified = union.plan().at_once()?.schema;
///     let plan = |schema| Conform::plan(Arc::clone(schema), Arc::clone(&unified), &[]).at_once();
///     let plans = schemas.iter().map(plan).collect::<Result<_, _>>()?;
///     Ok((unified, plans))
/// }
/// # plans(&[])?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Conform {
    from: Arc<Schema>,
    to: Arc<Schema>,
    leaves: Segmented<LeafPlan>,
    /// The leaves that are read.
    reads: Segmented<usize>,
    /// What becomes of definition levels: a level of the other schema for each of the file's.
    maps: Segmented<Box<[u8]>>,
    structures: Segmented<Structure>,
    variants: Vec<Variant>,
    /// The types of the constants.
    constants: Vec<PhysicalType>,
    is_identity: bool,
    /// The most rows of a batch, so that no converted array has 1 MiB or more; and the bytes of the longest null that
    /// takes room.
    rows_max: usize,
    null_bytes_max: usize,
}

/// Where a leaf of the other schema comes from.
#[derive(Debug, Clone, Copy)]
struct LeafPlan {
    physical_type: PhysicalType,
    is_flat: bool,
    has_repetition: bool,
    source: LeafSource,
}

#[derive(Debug, Clone, Copy)]
enum LeafSource {
    /// From the leaf that is read at this place.
    /// Its levels are mapped, if they do not stay.
    Read { read: usize, widening: Widening, map: Option<usize> },
    /// From nowhere: null in each row, or in each slot of a structure.
    Null(Option<usize>),
    /// A value that is the same in each row.
    Constant(usize),
    /// From a variant that is shredded.
    Variant { variant: usize, part: VariantPart, map: Option<usize> },
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
    /// The node of the column that it is or stands in.
    column: usize,
    /// The variant's node in the file's schema.
    node: usize,
    leaves: Range<usize>,
    /// Where each of its leaves is read.
    reads: Segmented<usize>,
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
    pub fn reads(&self) -> &Segmented<usize> {
        &self.reads
    }

    /// Whether the file's batches already have the other schema.
    pub fn is_identity(&self) -> bool {
        self.is_identity
    }
}

#[cfg(test)]
mod tests;
