//! A data page whose values are being decoded.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Budget, Error, Price, Result};
use marquetry_kernels::bits;

use super::builder::Builder;
use super::levels::{NestedLeaf, PageLevels};
use super::values::ValueDecoder;
use super::work::Work;
use crate::encoding::delta_byte_array::Value;
use crate::encoding::hybrid::Hybrid;
use crate::encoding::stream::{Segments, Stream};

/// The price of a run of levels, indices or booleans, beside its values: most have hundreds of these, but a run may have one.
pub(super) const RUN_PRICE: Price = Price::per_kilovalue(13 << 10);
/// The price of a block of deltas that is stepped over.
const BLOCK_PRICE: Price = Price::per_kilovalue(30 << 10);

/// What stepping over values costs, beside those that are decoded for it, and runs.
pub(super) const SKIP_UNITS: u64 = 50;

/// A data page, somewhere in its middle.
pub(super) struct DataPage {
    pub(super) levels: Levels,
    pub(super) values: ValueDecoder,
    /// It is known where the streams of the values begin.
    pub(super) is_prepared: bool,
    pub(super) entries: usize,
    pub(super) entries_left: usize,
    /// Rows of a flat leaf whose levels are decoded, but not their values.
    pub(super) ahead: RowsAhead,
    /// Values of rows that were stepped over, which are stepped over before the next value is decoded; never, if none is.
    pub(super) behind: usize,
    /// Some of its rows are in a batch.
    pub(super) is_used: bool,
    /// Nulls still to come, where the header counts them.
    pub(super) nulls_left: Option<usize>,
    /// Bytes held of it in segments, and these.
    pub(super) held: usize,
    pub(super) segments: [Option<Arc<Segments>>; 3],
}

/// Rows of which it is known whether they are null: `rows` bits from bit `next` on.
#[derive(Default)]
pub(super) struct RowsAhead {
    bits: Vec<u8>,
    next: usize,
    rows: usize,
}

/// The levels of a page.
pub(super) enum Levels {
    /// Of a nested leaf.
    Nested(PageLevels),
    /// None: every row has a value.
    Required,
    /// None that are looked at: every row is taken for null.
    Null,
    /// Hybrid runs of one bit.
    Hybrid(Hybrid),
    /// Bits, of the deprecated BIT_PACKED, most significant bit first; and the next one's number in its byte.
    Bits(Stream, usize),
}

impl DataPage {
    /// A page of rows that are taken for null.
    pub(super) fn of_nulls(rows: usize, is_nested: bool) -> DataPage {
        DataPage {
            levels: if is_nested { Levels::Nested(NestedLeaf::null_levels()) } else { Levels::Null },
            values: ValueDecoder::Nothing,
            is_prepared: false,
            entries: rows,
            entries_left: rows,
            ahead: RowsAhead::default(),
            behind: 0,
            is_used: false,
            nulls_left: None,
            held: 0,
            segments: [None, None, None],
        }
    }

    /// The stream that wants bytes.
    pub(super) fn starved(&mut self) -> Option<&mut Stream> {
        let levels = match &mut self.levels {
            Levels::Nested(levels) => levels.starved(),
            Levels::Required | Levels::Null => None,
            Levels::Hybrid(hybrid) => Some(hybrid.stream()),
            Levels::Bits(stream, _) => Some(stream),
        };
        levels.filter(|stream| stream.is_starved()).or_else(|| self.values.starved())
    }

    /// Charges for the runs that were begun.
    pub(super) fn charge_runs(&mut self, budget: &mut Budget<'_>) {
        let levels = match &mut self.levels {
            Levels::Nested(levels) => levels.take_runs(),
            Levels::Hybrid(hybrid) => hybrid.take_runs(),
            Levels::Required | Levels::Null | Levels::Bits(..) => 0,
        };
        budget.charge(RUN_PRICE, 0, levels + self.values.take_runs());
    }

    /// Finds where the streams of the values begin. False when that takes longer.
    pub(super) fn prepare(&mut self, last: &mut Value, budget: &mut Budget<'_>) -> Result<bool> {
        if !self.is_prepared {
            let mut work = 0;
            self.is_prepared = self.values.prepare(last, &mut work)?;
            budget.charge(BLOCK_PRICE, 0, work);
        }
        Ok(self.is_prepared)
    }

    /// Decodes whether the next `rows` of a flat leaf are null, or less of them, behind the batch's rows; how many rows these are,
    /// and how many values.
    pub(super) fn levels_of(
        &mut self,
        builder: &mut Builder,
        rows: usize,
        marks_nulls: bool,
    ) -> Result<(usize, usize)> {
        let at = builder.rows;
        let no_room = |_| Error::internal("no room for validity");
        let RowsAhead { bits: ahead, next, rows: rows_ahead } = &mut self.ahead;
        if *rows_ahead > 0 {
            let rows = rows.min(*rows_ahead);
            bits::copy(ahead, *next, builder.validity(at + rows)?, at, rows).map_err(no_room)?;
            return Ok((rows, bits::count_ones(ahead, *next, rows).map_err(no_room)?));
        }
        let (rows, there) = match &mut self.levels {
            Levels::Nested(_) => return Err(Error::internal("a flat leaf with levels of a nested one")),
            Levels::Required => {
                // Another page of the batch may have nulls; then this one's rows must be marked too.
                if marks_nulls {
                    bits::fill(builder.validity(at + rows)?, at, rows, true).map_err(no_room)?;
                }
                (rows, rows)
            }
            Levels::Null => {
                bits::fill(builder.validity(at + rows)?, at, rows, false).map_err(no_room)?;
                (rows, 0)
            }
            Levels::Hybrid(hybrid) => hybrid.decode_bits(builder.validity(at + rows)?, at, rows)?,
            Levels::Bits(stream, bit) => {
                let there = (stream.there().len() * 8).saturating_sub(*bit).min(rows);
                if there == 0 && stream.has(1) {
                    return Err(Error::corrupt("the page ends before its last level"));
                }
                let packed = stream.there().get(..(*bit + there).div_ceil(8)).unwrap_or_default();
                let usual: Vec<u8> = packed.iter().map(|byte| byte.reverse_bits()).collect();
                bits::copy(&usual, *bit, builder.validity(at + there)?, at, there).map_err(no_room)?;
                let ones = bits::count_ones(&usual, *bit, there).map_err(no_room)?;
                stream.advance((*bit + there) / 8);
                *bit = (*bit + there) % 8;
                (there, ones)
            }
        };
        if let Some(nulls_left) = &mut self.nulls_left {
            *nulls_left = nulls_left
                .checked_sub(rows - there)
                .ok_or_else(|| Error::corrupt("a page with more nulls than its header says"))?;
        }
        Ok((rows, there))
    }

    /// Steps over the levels of the next `rows` rows of a flat leaf, or less of them; how many these are, and how many have values.
    pub(super) fn skip_levels(&mut self, rows: usize) -> Result<(usize, usize)> {
        let no_room = |_| Error::internal("no room for validity");
        let RowsAhead { bits: ahead, next, rows: rows_ahead } = &mut self.ahead;
        if *rows_ahead > 0 {
            let rows = rows.min(*rows_ahead);
            let there = bits::count_ones(ahead, *next, rows).map_err(no_room)?;
            *next += rows;
            *rows_ahead -= rows;
            return Ok((rows, there));
        }
        let (rows, there) = match &mut self.levels {
            Levels::Nested(_) => return Err(Error::internal("a flat leaf with levels of a nested one")),
            Levels::Required => (rows, rows),
            Levels::Null => (rows, 0),
            Levels::Hybrid(hybrid) => hybrid.skip_bits(rows)?,
            Levels::Bits(stream, bit) => {
                let there = (stream.there().len() * 8).saturating_sub(*bit).min(rows);
                if there == 0 && stream.has(1) {
                    return Err(Error::corrupt("the page ends before its last level"));
                }
                let packed = stream.there().get(..(*bit + there).div_ceil(8)).unwrap_or_default();
                let usual: Vec<u8> = packed.iter().map(|byte| byte.reverse_bits()).collect();
                let ones = bits::count_ones(&usual, *bit, there).map_err(no_room)?;
                stream.advance((*bit + there) / 8);
                *bit = (*bit + there) % 8;
                (there, ones)
            }
        };
        if let Some(nulls_left) = &mut self.nulls_left {
            *nulls_left = nulls_left
                .checked_sub(rows - there)
                .ok_or_else(|| Error::corrupt("a page with more nulls than its header says"))?;
        }
        Ok((rows, there))
    }

    /// Steps over values that are [behind](DataPage::behind), at most `decoded_max` of those that must be decoded for it.
    pub(super) fn skip_values(
        &mut self,
        builder: &Builder,
        decoded_max: usize,
        price: Price,
        work: &mut Work<'_, '_>,
    ) -> Result<()> {
        let (memory, budget) = (&mut work.memory, &mut *work.budget);
        let skipped = self.values.skip(self.behind, builder.value_width(), decoded_max, memory)?;
        self.behind -= skipped.values;
        self.charge_runs(budget);
        budget.charge(price, skipped.bytes, skipped.decoded);
        budget.charge_units(SKIP_UNITS);
        Ok(())
    }

    /// Keeps the rows of the builder's validity that have no values yet, behind `done` others.
    pub(super) fn keep_ahead(
        &mut self,
        builder: &mut Builder,
        rows: Range<usize>,
        done: usize,
    ) -> Result<()> {
        if self.ahead.rows > 0 {
            self.ahead.next += done;
            self.ahead.rows -= done;
        } else if !rows.is_empty() && !matches!(self.levels, Levels::Required | Levels::Null) {
            let ahead = &mut self.ahead;
            ahead.bits.resize(rows.len().div_ceil(8), 0);
            bits::copy(builder.validity(rows.end)?, rows.start, &mut ahead.bits, 0, rows.len())
                .map_err(|_| Error::internal("no validity"))?;
            (ahead.next, ahead.rows) = (0, rows.len());
        }
        Ok(())
    }
}

/// Of `rows` from `at` on, those before the one of value number `values`.
pub(super) fn before_value(validity: &[u8], at: usize, rows: usize, mut values: usize) -> usize {
    let mut row = 0;
    while row < rows {
        let some = (rows - row).min(u64::BITS as usize);
        let ones = bits::count_ones(validity, at + row, some).unwrap_or(0);
        if ones > values {
            break;
        }
        values -= ones;
        row += some;
    }
    while row < rows && (values > 0 || bits::get(validity, at + row) == Some(false)) {
        values -= usize::from(bits::get(validity, at + row) == Some(true));
        row += 1;
    }
    row
}
