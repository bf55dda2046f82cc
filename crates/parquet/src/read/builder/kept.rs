//! Rows that were decoded with others between them that are not wanted: those are dropped.

use marquetry_base::{Error, Result};
use marquetry_kernels::{bits, compact};

use super::{Builder, Output};
use crate::read::selected::MixedBits;

impl Builder {
    /// Ends a slice, as [`end_slice`](Builder::end_slice) does, of `rows` rows of which those are wanted whose bit of `keep` is set; how many
    /// these are.
    pub(in crate::read) fn end_mixed_slice(
        &mut self,
        rows: usize,
        there: usize,
        keep: &MixedBits,
        is_nullable: bool,
    ) -> Result<usize> {
        let at = self.rows;
        let wanted = bits::count_ones(keep, 0, rows).map_err(disagree)?;
        let (mut of_values, mut of_rows): (MixedBits, MixedBits) = ([0; _], [0; _]);
        let kept = if is_nullable {
            let validity = self.validity(at + rows)?;
            compact::bits(keep, 0, validity, at, rows, &mut of_values).map_err(disagree)?;
            compact::bits(validity, at, keep, 0, rows, &mut of_rows).map_err(disagree)?;
            bits::copy(&of_rows, 0, validity, at, wanted).map_err(disagree)?;
            self.keep_values(there, &of_values)?
        } else {
            self.keep_values(there, keep)?
        };
        self.end_slice(wanted, kept)?;
        Ok(wanted)
    }

    /// Adds the levels of entries of a nested leaf, as [`add_levels`](Builder::add_levels) does, but only of those whose bit of `keep` is set;
    /// and keeps as many of the `there` values that were decoded last, which are those of the entries of level `definition_max`.
    pub(in crate::read) fn add_mixed_levels(
        &mut self,
        (definition, repetition): (&[u8], &[u8]),
        definition_max: u8,
        there: usize,
        keep: &MixedBits,
    ) -> Result<()> {
        let (mut is_value, mut of_values): (MixedBits, MixedBits) = ([0; _], [0; _]);
        bits::from_levels(definition, definition_max, &mut is_value, 0).map_err(disagree)?;
        compact::bits(keep, 0, &is_value, 0, definition.len(), &mut of_values).map_err(disagree)?;
        let at = self.entries;
        self.add_levels(definition, repetition)?;
        let (capacity, entries) = (self.capacity, definition.len());
        let levels = self.definition.room(capacity, at, entries)?;
        self.entries = at + compact::in_place(levels, keep, 0).map_err(disagree)?;
        if !repetition.is_empty() {
            compact::in_place(self.repetition.room(capacity, at, entries)?, keep, 0).map_err(disagree)?;
        }
        self.keep_values(there, &of_values).map(drop)
    }

    /// Keeps those of the `there` values that were decoded last whose bit of `keep` is set; how many.
    fn keep_values(&mut self, there: usize, keep: &MixedBits) -> Result<usize> {
        let at = self.values.checked_sub(there).ok_or_else(|| disagree(()))?;
        let capacity = self.capacity;
        let kept = match (&mut self.output, self.holds_indices) {
            // There is none yet.
            (_, None) => Ok(0),
            (_, Some(true)) => compact::in_place(self.indices.room(capacity, at, there)?, keep, 0),
            (Output::Int32(store), _) => compact::in_place(store.room(capacity, at, there)?, keep, 0),
            (Output::Int64(store), _) => compact::in_place(store.room(capacity, at, there)?, keep, 0),
            (Output::Float(store), _) => compact::in_place(store.room(capacity, at, there)?, keep, 0),
            (Output::Double(store), _) => compact::in_place(store.room(capacity, at, there)?, keep, 0),
            (Output::ByteArray(store, _), _) => compact::in_place(store.room(capacity, at, there)?, keep, 0),
            (Output::Boolean(store), _) => {
                let (byte, at) = (at / 8, at % 8);
                let values = store.room(capacity.div_ceil(8), byte, (at + there).div_ceil(8))?;
                let mut of_values: MixedBits = [0; _];
                let kept = compact::bits(values, at, keep, 0, there, &mut of_values).map_err(disagree)?;
                bits::copy(&of_values, 0, values, at, kept).map(|()| kept)
            }
            // Values of no bytes are where they should be.
            (Output::Fixed(0, _), _) => bits::count_ones(keep, 0, there),
            (Output::Fixed(width, store), _) => {
                let width = *width;
                let capacity = capacity.saturating_mul(width);
                let values = store.room(capacity, at * width, there * width)?;
                compact::fixed_in_place(width, values, keep, 0)
            }
        };
        let kept = kept.map_err(disagree)?;
        self.values = at + kept;
        Ok(kept)
    }
}

fn disagree<E>(_: E) -> Error {
    Error::internal("rows and the bits of those that are wanted disagree")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Layout;
    use crate::schema::PhysicalType;

    #[test]
    fn values_of_no_bytes() {
        let mut builder = Builder::new(PhysicalType::FixedLenByteArray(0), 64, Layout::Spaced, false);
        let mut keep: MixedBits = [0; _];
        keep[0] = 0b0101_0111;
        for slices in 1..3 {
            builder.values += 8;
            assert_eq!(builder.end_mixed_slice(8, 8, &keep, false).unwrap(), 5);
            assert_eq!((builder.rows, builder.values, builder.nulls), (5 * slices, 5 * slices, 0));
        }
    }
}
