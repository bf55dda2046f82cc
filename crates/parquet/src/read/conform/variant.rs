//! Variants that are shredded, as variants that are not.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Error, Limits, Price, Release, Result, release_all};
use marquetry_kernels::strings;

use super::Variant;
use crate::batch::{Array, ArrayKind, Assembler, Batch, ByteArrays, ColumnBatch, Layout, Values};
use crate::schema::Schema;
use crate::variant::{Reassembler, VariantColumns};

/// What a variant costs that is put together, and each of its bytes.
const VARIANT_PRICE: Price = Price { kib: 2 << 10, kilovalue: 200 << 10 };
/// What it costs to go on with a batch.
const STEP_UNITS: u64 = 500;
/// Bytes of a buffer of variants, after which another is begun; one variant may be more.
const BUFFER_BYTES_MAX: usize = 256 << 10;

/// The variants of a batch, while they are put together.
#[derive(Debug)]
pub(super) struct Reassembling {
    assembler: Assembler,
    array: Option<Array>,
    slot: usize,
    metadata: Strings,
    value: Strings,
}

/// The variants of a batch, put together.
#[derive(Debug)]
pub(super) struct Reassembled {
    metadata: ByteArrays,
    value: ByteArrays,
    /// The column of their metadata as it was read: its levels, or its validity, are theirs.
    like: ColumnBatch,
}

impl Reassembling {
    /// None yet of a batch's.
    pub(super) fn new(variant: &Variant, schema: Arc<Schema>) -> Reassembling {
        // Of the column, only the variant's leaves.
        let leaves = variant.leaves.clone().collect();
        Reassembling {
            assembler: Assembler::new(schema, variant.column, Some(leaves), &Limits::DEFAULT),
            array: None,
            slot: 0,
            metadata: Strings::default(),
            value: Strings::default(),
        }
    }

    /// Puts variants together until the budget is spent; gives all of the batch after the last.
    ///
    /// # Errors
    ///
    /// `Corrupt` and `Unsupported`, naming the column and where it is known the row, for variants that are none.
    pub(super) fn step(
        &mut self,
        variant: &Variant,
        schema: &Schema,
        batch: &Batch,
        (read, layout): (&[ColumnBatch], Layout),
        budget: &mut Budget<'_>,
    ) -> Result<Option<Reassembled>> {
        let here = |error: Error| {
            error.at(|place| {
                place.column = Some(schema.path(variant.node));
                place.row_group = Some(u64_of(batch.row_group));
            })
        };
        if self.array.is_none() {
            let column_of = |leaf: usize| {
                let at = leaf.checked_sub(variant.leaves.start)?;
                read.get(*variant.reads.get(at)?)
            };
            self.array = self.assembler.step_of(batch.rows, 0, &column_of, budget).map_err(here)?;
        }
        let Some(array) = &self.array else { return Ok(None) };
        let mut found = array;
        // A repeated group without annotation is a list and its element both.
        while found.node != variant.node || !matches!(found.kind, ArrayKind::Struct(_)) {
            found = match &found.kind {
                ArrayKind::Struct(fields) => fields.first(),
                ArrayKind::List(_, element) => Some(&**element),
                ArrayKind::Map(..) | ArrayKind::Values(_) => None,
            }
            .ok_or_else(|| Error::internal("no variant where one should be"))?;
        }
        let like = read.get(variant.metadata);
        let like = like.ok_or_else(|| Error::internal("a variant's metadata that is not read"))?;
        // A flat column has a slot for each null, where the host wants that.
        let has_slots = like.levels.is_none() && layout == Layout::Spaced;

        let columns = VariantColumns::new(schema, found).map_err(here)?;
        budget.charge_units(STEP_UNITS);
        let mut reassembler = Reassembler::new(&Limits::DEFAULT);
        if self.slot == 0 {
            self.metadata.reserve(columns.len())?;
            self.value.reserve(columns.len())?;
        }
        while self.slot < columns.len() {
            let mut bytes = 0;
            if !columns.is_null(self.slot) {
                let names = columns.metadata(self.slot).map_err(here)?;
                let whole = reassembler.reassemble(names, columns.row(self.slot)).map_err(here)?;
                bytes = names.bytes().len() + whole.len();
                self.metadata.push(names.bytes())?;
                self.value.push(whole)?;
            } else if has_slots {
                self.metadata.push(&[])?;
                self.value.push(&[])?;
            }
            self.slot += 1;
            budget.charge(VARIANT_PRICE, bytes, 1);
            if self.slot < columns.len() && budget.is_spent() {
                return Ok(None);
            }
        }
        let (metadata, value) = (self.metadata.finish(), self.value.finish());
        Ok(Some(Reassembled { metadata, value, like: like.clone() }))
    }
}

impl Reassembled {
    /// The variants' metadata or their values, as a column with the levels of the file.
    pub(super) fn column(&self, is_metadata: bool) -> ColumnBatch {
        let values = if is_metadata { &self.metadata } else { &self.value };
        ColumnBatch { values: Values::ByteArray(values.clone()), ..self.like.clone() }
    }
}

impl Release for Reassembling {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Reassembling { array, metadata, value, assembler, .. } = self;
        release_all(&mut [array, metadata, value, assembler], budget)
    }
}

impl Release for Reassembled {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.metadata, &mut self.value, &mut self.like], budget)
    }
}

impl Release for Strings {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.views, &mut self.buffers, &mut self.last], budget)
    }
}

/// Byte strings that are being made, in buffers of which none is large.
#[derive(Debug, Default)]
struct Strings {
    views: Vec<u128>,
    buffers: Vec<Bytes>,
    last: Vec<u8>,
}

impl Strings {
    fn reserve(&mut self, values: usize) -> Result<()> {
        let bytes = values.saturating_mul(size_of::<u128>());
        self.views.try_reserve_exact(values).map_err(|_| Error::out_of_memory(bytes))
    }

    fn push(&mut self, value: &[u8]) -> Result<()> {
        if !self.last.is_empty() && self.last.len() + value.len() > BUFFER_BYTES_MAX {
            self.buffers.push(core::mem::take(&mut self.last).into());
        }
        let (Ok(number), Ok(offset), Ok(_)) =
            (u32::try_from(self.buffers.len()), u32::try_from(self.last.len()), i32::try_from(value.len()))
        else {
            return Err(Error::too_large("a variant of 2 GiB or more"));
        };
        self.last.try_reserve(value.len()).map_err(|_| Error::out_of_memory(value.len()))?;
        self.last.extend_from_slice(value);
        self.views.push(strings::view(value, number, offset));
        Ok(())
    }

    fn finish(&mut self) -> ByteArrays {
        self.buffers.push(core::mem::take(&mut self.last).into());
        let buffers = Arc::new(core::mem::take(&mut self.buffers));
        ByteArrays::new(core::mem::take(&mut self.views).into(), buffers)
    }
}
