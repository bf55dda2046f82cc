//! Columns of nulls, and of one value: made once, and cut to each batch.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Bitmap, Budget, Buffer, Error, Release, Result, release_all};

use super::LeafPlan;
use crate::batch::store;
use crate::batch::{ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use crate::read::builder::NULL_BYTES_MAX;
use crate::schema::PhysicalType;

/// Zeros of each type, which all columns of nulls share.
#[derive(Debug, Default)]
pub(super) struct Zeros {
    bytes: Buffer<u8>,
    int32: Buffer<i32>,
    int64: Buffer<i64>,
    float: Buffer<f32>,
    double: Buffer<f64>,
    views: Buffer<u128>,
    indices: Buffer<u32>,
    filled: usize,
}

impl Release for Zeros {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Zeros { bytes, int32, int64, float, double, views, indices, .. } = self;
        release_all(&mut [bytes, int32, int64, float, double, views, indices], budget)
    }
}

impl Zeros {
    /// Bytes that were filled since this was last asked.
    pub(super) fn filled(&mut self) -> usize {
        core::mem::take(&mut self.filled)
    }

    /// Zero bytes: no validity, level 0.
    pub(super) fn bytes(&mut self, length: usize) -> Result<Buffer<u8>> {
        zeros(&mut self.bytes, length, &mut self.filled)
    }

    fn values(&mut self, physical_type: PhysicalType, length: usize) -> Result<Values> {
        let fixed = |zeros: &mut Zeros, width: usize| {
            let bytes = zeros.bytes(width.saturating_mul(length))?;
            Ok::<_, Error>(FixedBytes::new(width, length, bytes))
        };
        Ok(match physical_type {
            PhysicalType::Boolean => Values::Boolean(Bitmap::new(self.bytes(length.div_ceil(8))?, 0, length)),
            PhysicalType::Int32 => Values::Int32(zeros(&mut self.int32, length, &mut self.filled)?),
            PhysicalType::Int64 => Values::Int64(zeros(&mut self.int64, length, &mut self.filled)?),
            PhysicalType::Int96 => Values::Int96(fixed(self, 12)?),
            PhysicalType::Float => Values::Float(zeros(&mut self.float, length, &mut self.filled)?),
            PhysicalType::Double => Values::Double(zeros(&mut self.double, length, &mut self.filled)?),
            PhysicalType::ByteArray => Values::ByteArray(ByteArrays::new(
                zeros(&mut self.views, length, &mut self.filled)?,
                Arc::default(),
            )),
            PhysicalType::FixedLenByteArray(width) => {
                Values::FixedLenByteArray(fixed(self, marquetry_base::cast::usize_of_u32(width))?)
            }
        })
    }

    /// A column of nulls, in a batch of `rows`; a nested one with the levels of what it is in, or null in each row.
    pub(super) fn column(
        &mut self,
        leaf: usize,
        plan: &LeafPlan,
        rows: usize,
        layout: Layout,
        levels: Option<&Levels>,
    ) -> Result<ColumnBatch> {
        if plan.is_flat {
            let there = if layout == Layout::Spaced { rows } else { 0 };
            let validity = Bitmap::new(self.bytes(rows.div_ceil(8))?, 0, rows);
            return Ok(ColumnBatch {
                leaf,
                rows,
                nulls: rows,
                validity: (rows > 0).then_some(validity),
                values: self.values(plan.physical_type, there)?,
                layout,
                levels: None,
                provisional: false,
            });
        }
        let definition = match levels {
            Some(levels) => levels.definition.clone(),
            None => self.bytes(rows)?,
        };
        let entries = definition.len();
        let repetition = match levels.and_then(|levels| levels.repetition.clone()) {
            _ if !plan.has_repetition => None,
            Some(repetition) => Some(repetition),
            None => Some(self.bytes(entries)?),
        };
        Ok(ColumnBatch {
            leaf,
            rows,
            nulls: entries,
            validity: None,
            values: self.values(plan.physical_type, 0)?,
            layout: Layout::Dense,
            levels: Some(Levels { definition, repetition }),
            provisional: false,
        })
    }

    /// A column of one value in all rows.
    pub(super) fn constant(
        &mut self,
        leaf: usize,
        constant: &mut Constant,
        rows: usize,
        keep_dictionaries: bool,
    ) -> Result<ColumnBatch> {
        let values = if keep_dictionaries {
            Values::Dictionary(zeros(&mut self.indices, rows, &mut self.filled)?, Arc::clone(&constant.value))
        } else {
            if constant.repeated.as_ref().is_none_or(|values| values.len() < rows) {
                constant.repeated = Some(repeat(&constant.value, rows)?);
                self.filled += rows.saturating_mul(constant.bytes);
            }
            match &constant.repeated {
                Some(values) => values.slice(0..rows),
                None => return Err(Error::internal("a constant that is not repeated")),
            }
        };
        Ok(ColumnBatch {
            leaf,
            rows,
            nulls: 0,
            validity: None,
            values,
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        })
    }
}

/// A value that all rows have.
#[derive(Debug)]
pub(super) struct Constant {
    value: Arc<Values>,
    /// Bytes that it takes in each row.
    bytes: usize,
    repeated: Option<Values>,
}

impl Constant {
    /// `None` where `value` is not one value of this type.
    pub(super) fn new(value: Values, physical_type: PhysicalType) -> Option<Constant> {
        let is_of_type = match (&value, physical_type) {
            (Values::Boolean(_), PhysicalType::Boolean)
            | (Values::Int32(_), PhysicalType::Int32)
            | (Values::Int64(_), PhysicalType::Int64)
            | (Values::Int96(_), PhysicalType::Int96)
            | (Values::Float(_), PhysicalType::Float)
            | (Values::Double(_), PhysicalType::Double)
            | (Values::ByteArray(_), PhysicalType::ByteArray) => true,
            (Values::FixedLenByteArray(values), PhysicalType::FixedLenByteArray(width)) => {
                u32::try_from(values.width()) == Ok(width)
            }
            _ => false,
        };
        let bytes = store::value_bytes(physical_type);
        (is_of_type && value.len() == 1).then(|| Constant { value: Arc::new(value), bytes, repeated: None })
    }
}

/// Checks that nulls that take room are not too long.
pub(super) fn check_nulls(width: usize) -> Result<()> {
    if width > NULL_BYTES_MAX {
        let message =
            alloc::format!("a null of {width} bytes: at most {NULL_BYTES_MAX} where nulls take room");
        return Err(Error::too_large(message));
    }
    Ok(())
}

fn zeros<T: Clone + Default>(kept: &mut Buffer<T>, length: usize, filled: &mut usize) -> Result<Buffer<T>> {
    if kept.len() < length {
        *filled += length.saturating_mul(size_of::<T>());
        *kept = fill(T::default(), length)?;
    }
    Ok(kept.slice(0..length))
}

fn fill<T: Clone>(value: T, length: usize) -> Result<Buffer<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length.saturating_mul(size_of::<T>())))?;
    out.resize(length, value);
    Ok(out.into())
}

fn repeat(value: &Values, rows: usize) -> Result<Values> {
    let fixed = |values: &FixedBytes| {
        let mut out = Vec::new();
        let bytes = values.width().saturating_mul(rows);
        out.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
        (0..rows).for_each(|_| out.extend_from_slice(values.get(0)));
        Ok::<_, Error>(FixedBytes::new(values.width(), rows, out.into()))
    };
    Ok(match value {
        Values::Boolean(bits) => {
            let byte = if bits.get(0) { u8::MAX } else { 0 };
            Values::Boolean(Bitmap::new(fill(byte, rows.div_ceil(8))?, 0, rows))
        }
        Values::Int32(values) => Values::Int32(fill(values[0], rows)?),
        Values::Int64(values) => Values::Int64(fill(values[0], rows)?),
        Values::Float(values) => Values::Float(fill(values[0], rows)?),
        Values::Double(values) => Values::Double(fill(values[0], rows)?),
        Values::ByteArray(values) => {
            Values::ByteArray(ByteArrays::new(fill(values.views()[0], rows)?, Arc::clone(values.buffers())))
        }
        Values::Int96(values) => Values::Int96(fixed(values)?),
        Values::FixedLenByteArray(values) => Values::FixedLenByteArray(fixed(values)?),
        Values::Dictionary(..) => return Err(Error::internal("a constant of a dictionary")),
    })
}
