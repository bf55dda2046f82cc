//! Variants that are shredded, as variants that are not.

use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Limits, Result};

use super::Variant;
use crate::read::{Array, ArrayKind, Batch, ByteArrays, ColumnBatch, Layout, Values};
use crate::schema::Schema;
use crate::variant::{Reassembler, VariantColumns};

/// The variants of a batch, put together.
#[derive(Debug)]
pub(super) struct Reassembled {
    metadata: ByteArrays,
    value: ByteArrays,
    bytes: usize,
    /// The column of their metadata as it was read: its levels, or its validity, are theirs.
    like: ColumnBatch,
}

impl Variant {
    /// Puts together the variants of a batch.
    ///
    /// # Errors
    ///
    /// `Corrupt` and `Unsupported`, naming the column and where it is known the row, for variants that are none.
    pub(super) fn reassemble(
        &self,
        schema: &Schema,
        batch: &Batch,
        read: &[Option<ColumnBatch>],
        layout: Layout,
    ) -> Result<Reassembled> {
        let here = |error: Error| {
            error.at(|place| {
                place.column = Some(schema.path(self.node));
                place.row_group = Some(u64_of(batch.row_group));
            })
        };
        let column_of = |leaf: usize| {
            let at = leaf.checked_sub(self.leaves.start)?;
            read.get(*self.reads.get(at)?)?.as_ref()
        };
        let array = Array::assemble(&self.shape, batch.rows, &column_of).map_err(here)?;
        let mut found = &array;
        // A repeated group without annotation is a list and its element both.
        while found.node != self.node || !matches!(found.kind, ArrayKind::Struct(_)) {
            found = match &found.kind {
                ArrayKind::Struct(fields) => fields.first(),
                ArrayKind::List(_, element) => Some(&**element),
                ArrayKind::Map(..) | ArrayKind::Values(_) => None,
            }
            .ok_or_else(|| Error::internal("no variant where one should be"))?;
        }
        let like = read.get(self.metadata).and_then(Option::as_ref);
        let like = like.ok_or_else(|| Error::internal("a variant's metadata that is not read"))?;
        // A flat column has a slot for each null, where the host wants that.
        let has_slots = like.levels.is_none() && layout == Layout::Spaced;

        let columns = VariantColumns::new(schema, found).map_err(here)?;
        let limits = Limits::DEFAULT;
        let mut reassembler = Reassembler::new(&limits);
        let (mut metadata, mut value) = (Strings::default(), Strings::default());
        for slot in 0..columns.len() {
            if columns.is_null(slot) {
                if has_slots {
                    metadata.push(&[]);
                    value.push(&[]);
                }
                continue;
            }
            let names = columns.metadata(slot).map_err(here)?;
            let whole = reassembler.reassemble(names, columns.row(slot)).map_err(here)?;
            metadata.push(names.bytes());
            value.push(whole);
        }
        let bytes = metadata.bytes.len() + value.bytes.len();
        Ok(Reassembled { metadata: metadata.finish()?, value: value.finish()?, bytes, like: like.clone() })
    }
}

impl Reassembled {
    /// The variants' metadata or their values, as a column with the levels of the file.
    pub(super) fn column(&self, is_metadata: bool) -> ColumnBatch {
        let values = if is_metadata { &self.metadata } else { &self.value };
        ColumnBatch { values: Values::ByteArray(values.clone()), ..self.like.clone() }
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Variants.
    pub(super) fn values(&self) -> usize {
        self.value.len()
    }
}

#[derive(Default)]
struct Strings {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl Strings {
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.lengths.push(value.len());
    }

    fn finish(self) -> Result<ByteArrays> {
        if u32::try_from(self.bytes.len()).is_err() {
            return Err(Error::new(
                marquetry_base::ErrorKind::LimitExceeded,
                "more than 4 GiB of variants in a batch",
            ));
        }
        Ok(ByteArrays::from_lengths(Bytes::from(self.bytes), self.lengths))
    }
}
