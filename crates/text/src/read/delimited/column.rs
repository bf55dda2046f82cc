//! The values of a column of delimited text, parsed one after the other into its array.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::{low_u32, u64_of, usize_of_u32};
use marquetry_base::{Bitmap, Budget, Bytes, Error, Pool, Price, Result};
use marquetry_parquet::batch::{ByteArrays, FixedBytes, INLINE_BYTES_MAX, Values};
use marquetry_parquet::schema::{PhysicalType, TimeUnit};

use super::scan::{Field, Strip, unquote};
use super::style::{REWRITE_TIMES, Rewrite};
use super::{Form, FormColumn, is_null};
use crate::Scalar;
use crate::parse::{self, VALUE_BYTES_MAX};
use crate::scalar::is_word;
use crate::value;

/// The price of parsing a value.
pub(crate) const PARSE_PRICE: Price = Price { kib: 3 << 10, kilovalue: 30 << 10 };
/// The price of a text, which stays in place, or of a null.
pub(crate) const TEXT_PRICE: Price = Price::per_kilovalue(14 << 10);
/// The price of the bytes of quoted texts and of blobs.
pub(crate) const BUILD_PRICE: Price = Price { kib: 2 << 10, kilovalue: 40 << 10 };
/// The price of memory for a value.
const ROOM_PRICE: Price = Price::per_kilovalue(2 << 10);
/// Rows, and bytes of their fields, that are processed at a time.
const SLICE_ROWS: usize = 512;
const SLICE_BYTES: usize = 8 << 10;
/// Bytes of a quoted field or a blob that are processed at a time. Longer ones are processed in slices.
const LONG_BYTES: usize = 8 << 10;
/// Bytes of built strings after which a new buffer begins.
const BUILT_BYTES: usize = 64 << 10;

/// Where the fields of a column come from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) form: &'a Form,
    pub(super) column: &'a FormColumn,
    pub(super) text: &'a Bytes,
    pub(super) strips: &'a [Strip],
    pub(super) rows: usize,
}

/// Memory for a column's values, reused from batch to batch.
#[derive(Debug)]
pub(super) enum Store {
    Int32(Pool<i32>),
    Int64(Pool<i64>),
    Float(Pool<f32>),
    Double(Pool<f64>),
    Views(Pool<u128>),
    Boolean,
    /// Values of so many bytes.
    Fixed(usize),
}

/// A column that is being filled.
#[derive(Debug)]
pub(super) struct Filling {
    strip: usize,
    row: usize,
    /// Rows of all strips that are filled.
    filled: usize,
    pub(super) nulls: usize,
    /// A bit per row, once there is a null.
    validity: Vec<u8>,
    values: Array,
    built: Built,
    long: Option<Long>,
}

#[derive(Debug)]
enum Array {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Boolean(Vec<u8>),
    Fixed(Vec<u8>),
    Views(Vec<u128>),
}

/// Strings that are not in the text as they are.
#[derive(Debug, Default)]
struct Built {
    full: Vec<Bytes>,
    open: Vec<u8>,
}

/// A long field that is worked on in slices.
#[derive(Debug, Clone, Copy)]
enum Long {
    /// The closing quote is looked for.
    Search(usize),
    /// It is copied; the flag says whether the previous part ended with the first of two quotes.
    Unquote(usize, bool),
    /// Its digits are read.
    Blob(usize),
}

/// What [`Filling::step`] did.
#[derive(Debug)]
pub(super) enum Fill {
    /// All rows are filled.
    Done,
    /// The budget is spent.
    Yield,
    /// The field of this row of this strip does not have the column's type.
    Misfit { strip: usize, row: usize },
}

/// Why a slice of fields ended.
enum End {
    Slice,
    /// A field is long.
    Long,
    Misfit,
}

impl Store {
    pub(super) fn of(scalar: Scalar) -> Store {
        match scalar.types().0 {
            PhysicalType::Boolean => Store::Boolean,
            PhysicalType::Int32 => Store::Int32(Pool::new()),
            PhysicalType::Int64 => Store::Int64(Pool::new()),
            PhysicalType::Float => Store::Float(Pool::new()),
            PhysicalType::Double => Store::Double(Pool::new()),
            PhysicalType::ByteArray => Store::Views(Pool::new()),
            PhysicalType::Int96 => Store::Fixed(12),
            PhysicalType::FixedLenByteArray(bytes) => Store::Fixed(usize_of_u32(bytes)),
        }
    }
}

/// A vector of zeros.
fn zeros<T: Copy + Default>(pool: &mut Pool<T>, rows: usize) -> Result<Vec<T>> {
    let mut values = pool.take(rows)?;
    // Otherwise nulls would keep earlier values.
    values[..rows].fill(T::default());
    Ok(values)
}

impl Filling {
    /// A column of `rows` rows, none of which is filled.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn new(rows: usize, store: &mut Store, budget: &mut Budget<'_>) -> Result<Filling> {
        budget.charge(ROOM_PRICE, 0, rows);
        let values = match store {
            Store::Int32(pool) => Array::Int32(zeros(pool, rows)?),
            Store::Int64(pool) => Array::Int64(zeros(pool, rows)?),
            Store::Float(pool) => Array::Float(zeros(pool, rows)?),
            Store::Double(pool) => Array::Double(zeros(pool, rows)?),
            Store::Views(pool) => Array::Views(zeros(pool, rows)?),
            Store::Boolean => Array::Boolean(alloc::vec![0; rows.div_ceil(8)]),
            Store::Fixed(width) => {
                let bytes = rows.saturating_mul(*width);
                let mut values = Vec::new();
                values.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
                values.resize(bytes, 0);
                Array::Fixed(values)
            }
        };
        Ok(Filling {
            strip: 0,
            row: 0,
            filled: 0,
            nulls: 0,
            validity: Vec::new(),
            values,
            built: Built::default(),
            long: None,
        })
    }

    /// Fills rows as long as the budget lasts.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn step(&mut self, source: Source<'_>, budget: &mut Budget<'_>) -> Result<Fill> {
        while self.filled < source.rows {
            if self.long.is_some() {
                if !self.long(source, budget)? {
                    return Ok(Fill::Misfit { strip: self.strip, row: self.row });
                }
            } else if let End::Misfit = self.slice(source, budget) {
                return Ok(Fill::Misfit { strip: self.strip, row: self.row });
            }
            if budget.is_spent() && self.filled < source.rows {
                return Ok(Fill::Yield);
            }
        }
        Ok(Fill::Done)
    }

    /// The values and their validity, once all rows are filled.
    pub(super) fn finish(self, source: Source<'_>, store: &mut Store) -> Result<(Values, Option<Bitmap>)> {
        let rows = source.rows;
        let validity = (self.nulls > 0).then(|| Bitmap::new(self.validity.into(), 0, rows));
        let values = match (self.values, store) {
            (Array::Int32(values), Store::Int32(pool)) => Values::Int32(pool.share(values, rows)),
            (Array::Int64(values), Store::Int64(pool)) => Values::Int64(pool.share(values, rows)),
            (Array::Float(values), Store::Float(pool)) => Values::Float(pool.share(values, rows)),
            (Array::Double(values), Store::Double(pool)) => Values::Double(pool.share(values, rows)),
            (Array::Boolean(bits), _) => Values::Boolean(Bitmap::new(bits.into(), 0, rows)),
            (Array::Fixed(bytes), Store::Fixed(width)) => {
                let fixed = FixedBytes::new(*width, rows, bytes.into());
                match source.column.scalar {
                    Scalar::Int96 => Values::Int96(fixed),
                    _ => Values::FixedLenByteArray(fixed),
                }
            }
            (Array::Views(views), Store::Views(pool)) => {
                let mut buffers = alloc::vec![source.text.clone()];
                buffers.extend(self.built.finish());
                Values::ByteArray(ByteArrays::new(pool.share(views, rows), Arc::new(buffers)))
            }
            _ => return Err(Error::internal("a column in the memory of another")),
        };
        Ok((values, validity))
    }

    /// Fills a slice of rows.
    fn slice(&mut self, source: Source<'_>, budget: &mut Budget<'_>) -> End {
        let is_given = source.column.is_given;
        // Inferred types take the text as it is; given ones allow spaces around it, and more than one spelling.
        let bare =
            |text: &[u8]| -> Option<i64> { parse::integer(text).filter(|_| parse::is_canonical(text)) };
        let Filling { values, built, .. } = self;
        let mut values = core::mem::replace(values, Array::Fixed(Vec::new()));
        let mut built = core::mem::take(built);
        let end = match (&mut values, source.column.scalar) {
            (Array::Int64(out), Scalar::Integer(_)) if !is_given => {
                self.parsed(source, budget, |row, text| put(&mut out[row], bare(text)))
            }
            (Array::Int64(out), Scalar::Integer(_)) => {
                self.parsed(source, budget, |row, text| put(&mut out[row], parse::integer(text.trim_ascii())))
            }
            (Array::Int32(out), Scalar::Integer(bits)) => self.parsed(source, budget, |row, text| {
                let value = parse::integer(text.trim_ascii())?;
                let room = 1_i64 << (bits - 1);
                out[row] = (-room..room).contains(&value).then(|| i32::try_from(value).ok()).flatten()?;
                Some(())
            }),
            (Array::Double(out), _) if !is_given => self.parsed(source, budget, |row, text| {
                put(&mut out[row], parse::double(text).filter(|_| parse::is_usual(text) || is_word(text)))
            }),
            (Array::Double(out), _) => {
                self.parsed(source, budget, |row, text| put(&mut out[row], parse::double(text.trim_ascii())))
            }
            (Array::Float(out), _) => {
                self.parsed(source, budget, |row, text| put(&mut out[row], parse::float(text.trim_ascii())))
            }
            (Array::Int32(out), Scalar::Date) => {
                self.parsed(source, budget, |row, text| put(&mut out[row], parse::date(text.trim_ascii())))
            }
            (Array::Int64(out), Scalar::Time { unit, is_instant }) => {
                self.parsed(source, budget, |row, text| {
                    put(&mut out[row], parse::time_in(text.trim_ascii(), unit, is_instant))
                })
            }
            (Array::Int32(out), Scalar::Time { unit, is_instant }) => {
                self.parsed(source, budget, |row, text| {
                    let time = parse::time_in(text.trim_ascii(), unit, is_instant)?;
                    put(&mut out[row], i32::try_from(time).ok())
                })
            }
            (Array::Int32(_), Scalar::Unknown) => self.parsed(source, budget, |_, _| None),
            (Array::Int32(out), Scalar::Unsigned(bits)) => self.parsed(source, budget, |row, text| {
                let value = parse::unsigned(text.trim_ascii(), bits)?;
                put(&mut out[row], u32::try_from(value).ok().map(u32::cast_signed))
            }),
            (Array::Int64(out), Scalar::Unsigned(bits)) => self.parsed(source, budget, |row, text| {
                put(&mut out[row], parse::unsigned(text.trim_ascii(), bits).map(u64::cast_signed))
            }),
            (Array::Int64(out), Scalar::Timestamp { unit, is_instant }) => {
                self.parsed(source, budget, |row, text| {
                    put(&mut out[row], point(text.trim_ascii(), unit, is_instant, is_given))
                })
            }
            (Array::Int32(out), Scalar::Decimal { precision, scale }) => {
                self.parsed(source, budget, |row, text| {
                    let value = parse::decimal(text.trim_ascii(), precision, scale)?;
                    put(&mut out[row], i32::try_from(value).ok())
                })
            }
            (Array::Int64(out), Scalar::Decimal { precision, scale }) => {
                self.parsed(source, budget, |row, text| {
                    let value = parse::decimal(text.trim_ascii(), precision, scale)?;
                    put(&mut out[row], i64::try_from(value).ok())
                })
            }
            (Array::Fixed(out), Scalar::Decimal { precision, scale }) => {
                self.parsed(source, budget, |row, text| {
                    let value = parse::decimal(text.trim_ascii(), precision, scale)?;
                    out[row * 16..][..16].copy_from_slice(&value.to_be_bytes());
                    Some(())
                })
            }
            (Array::Fixed(out), Scalar::Uuid) => self.parsed(source, budget, |row, text| {
                out[row * 16..][..16].copy_from_slice(&parse::uuid(text.trim_ascii())?);
                Some(())
            }),
            (Array::Fixed(out), scalar) => {
                let width = out.len().checked_div(source.rows).unwrap_or(0);
                self.parsed(source, budget, |row, text| {
                    let slot = &mut out[row * width..][..width];
                    value::fixed(scalar, text.trim_ascii(), slot)
                })
            }
            (Array::Boolean(out), _) => self.parsed(source, budget, |row, text| {
                let is_true = parse::boolean(text.trim_ascii())?;
                out[row / 8] |= u8::from(is_true) << (row % 8);
                Some(())
            }),
            (Array::Views(out), scalar) if scalar.is_blob() => self.blobs(source, out, &mut built, budget),
            (Array::Views(out), _) => self.texts(source, out, &mut built, budget),
            (Array::Int32(_) | Array::Int64(_), _) => End::Misfit,
        };
        (self.values, self.built) = (values, built);
        end
    }

    /// Calls `of` for each field that is not null; it returns whether the field fits. Ends after a slice, before a long
    /// field, and at one that does not fit.
    #[inline]
    fn each(
        &mut self,
        source: Source<'_>,
        mut is_null: impl FnMut(&Field<'_>) -> bool,
        mut of: impl FnMut(usize, Field<'_>, &mut usize) -> End,
    ) -> (End, usize, usize) {
        let Source { form, column, text, strips, rows } = source;
        let (first, mut bytes) = (self.filled, 0);
        while let Some(strip) = strips.get(self.strip) {
            while self.row < strip.rows() {
                if self.filled - first == SLICE_ROWS || bytes > SLICE_BYTES {
                    return (End::Slice, bytes, self.filled - first);
                }
                let field = strip.field(&form.dialect, text, self.row, column.field);
                if is_null(&field) {
                    push_null(&mut self.validity, self.filled, rows);
                    self.nulls += 1;
                } else {
                    match of(self.filled, field, &mut bytes) {
                        End::Slice => {}
                        other => return (other, bytes, self.filled - first),
                    }
                }
                self.row += 1;
                self.filled += 1;
            }
            (self.strip, self.row) = (self.strip + 1, 0);
        }
        (End::Slice, bytes, self.filled - first)
    }

    #[inline]
    fn parsed(
        &mut self,
        source: Source<'_>,
        budget: &mut Budget<'_>,
        mut of: impl FnMut(usize, &[u8]) -> Option<()>,
    ) -> End {
        let nulls = &source.form.nulls;
        let (rewrite, mut buffer) = (source.column.rewrite, Vec::new());
        // Except for text, empty quotes mean nothing.
        let is_null =
            |field: &Field<'_>| if field.is_quoted { field.text.is_empty() } else { is_null(nulls, field) };
        let (end, bytes, rows) = self.each(source, is_null, |row, field, bytes| {
            *bytes += field.text.len();
            let text = match &source.form.style {
                Some(style) if rewrite != Rewrite::No => style.rewritten(rewrite, field.text, &mut buffer),
                _ => field.text,
            };
            match field.text.len() <= VALUE_BYTES_MAX && of(row, text).is_some() {
                true => End::Slice,
                false => End::Misfit,
            }
        });
        let times = if rewrite == Rewrite::No { 1 } else { REWRITE_TIMES };
        budget.charge(PARSE_PRICE, times * bytes, times * rows);
        end
    }

    /// Texts stay where they were read, except those with quotes in them.
    fn texts(
        &mut self,
        source: Source<'_>,
        views: &mut [u128],
        built: &mut Built,
        budget: &mut Budget<'_>,
    ) -> End {
        let (text, nulls) = (source.text, &source.form.nulls);
        let quote = source.form.dialect.quote;
        let is_of_numbers = source.column.is_of_numbers;
        let is_null = |field: &Field<'_>| match field.is_quoted {
            true => is_of_numbers && field.text.is_empty(),
            false => is_null(nulls, field),
        };
        let mut quoted = 0;
        let (end, bytes, rows) = self.each(source, is_null, |row, field, bytes| {
            views[row] = match quote.filter(|_| field.has_doubled) {
                None => view_of(text, field.start, field.text.len(), 0),
                Some(_) if field.text.len() > LONG_BYTES => return End::Long,
                Some(quote) => {
                    *bytes += field.text.len();
                    match memchr::memchr(quote, field.text) {
                        None => view_of(text, field.start, field.text.len(), 0),
                        Some(_) => {
                            quoted += 1;
                            built.push(|out| unquote(field.text, quote, &mut false, out))
                        }
                    }
                }
            };
            End::Slice
        });
        budget.charge(TEXT_PRICE, 0, rows);
        budget.charge(BUILD_PRICE, bytes, quoted);
        self.begin_long(end, Long::Search(0))
    }

    fn blobs(
        &mut self,
        source: Source<'_>,
        views: &mut [u128],
        built: &mut Built,
        budget: &mut Budget<'_>,
    ) -> End {
        let nulls = &source.form.nulls;
        let is_null =
            |field: &Field<'_>| if field.is_quoted { field.text.is_empty() } else { is_null(nulls, field) };
        let (end, bytes, rows) = self.each(source, is_null, |row, field, bytes| {
            if field.text.len() > LONG_BYTES {
                return End::Long;
            }
            *bytes += field.text.len();
            let mut found = None;
            views[row] = built.push(|out| found = parse::blob(field.text.trim_ascii(), out));
            if found.is_some() { End::Slice } else { End::Misfit }
        });
        budget.charge(BUILD_PRICE, bytes, rows);
        self.begin_long(end, Long::Blob(0))
    }

    fn begin_long(&mut self, end: End, long: Long) -> End {
        if let End::Long = end {
            self.long = Some(long);
        }
        end
    }

    /// Processes a slice of a long field. False if it does not fit.
    fn long(&mut self, source: Source<'_>, budget: &mut Budget<'_>) -> Result<bool> {
        let Source { form, column, text, strips, .. } = source;
        let (Some(long), Some(strip), Array::Views(views)) =
            (self.long, strips.get(self.strip), &mut self.values)
        else {
            return Err(Error::internal("a long field that is not there"));
        };
        let field = strip.field(&form.dialect, text, self.row, column.field);
        let length = field.text.len();
        let part = |at: usize| &field.text[at..length.min(at + LONG_BYTES)];
        let view = match long {
            Long::Search(at) => {
                let is_doubled =
                    form.dialect.quote.is_some_and(|quote| memchr::memchr(quote, part(at)).is_some());
                budget.charge(BUILD_PRICE, part(at).len(), 0);
                if is_doubled {
                    self.built.begin(length)?;
                    self.long = Some(Long::Unquote(0, false));
                    return Ok(true);
                }
                if at + part(at).len() < length {
                    self.long = Some(Long::Search(at + part(at).len()));
                    return Ok(true);
                }
                view_of(text, field.start, length, 0)
            }
            Long::Unquote(at, mut is_second) => {
                let quote = form.dialect.quote.unwrap_or_default();
                unquote(part(at), quote, &mut is_second, &mut self.built.open);
                budget.charge(BUILD_PRICE, part(at).len(), 0);
                if at + part(at).len() < length {
                    self.long = Some(Long::Unquote(at + part(at).len(), is_second));
                    return Ok(true);
                }
                self.built.end()
            }
            Long::Blob(at) => {
                // Spaces around such a long blob are not part of it.
                let at = if at == 0 {
                    if !matches!(field.text, [b'0', b'x' | b'X', ..]) || !length.is_multiple_of(2) {
                        return Ok(false);
                    }
                    self.built.begin(length / 2)?;
                    2
                } else {
                    at
                };
                budget.charge(BUILD_PRICE, part(at).len(), 0);
                if parse::hex(part(at), &mut self.built.open).is_none() {
                    return Ok(false);
                }
                if at + part(at).len() < length {
                    self.long = Some(Long::Blob(at + part(at).len()));
                    return Ok(true);
                }
                self.built.end()
            }
        };
        views[self.filled] = view;
        self.long = None;
        self.row += 1;
        self.filled += 1;
        if self.row == strip.rows() {
            (self.strip, self.row) = (self.strip + 1, 0);
        }
        Ok(true)
    }
}

#[inline]
fn put<T>(slot: &mut T, value: Option<T>) -> Option<()> {
    *slot = value?;
    Some(())
}

#[inline]
fn push_null(validity: &mut Vec<u8>, row: usize, rows: usize) {
    if validity.is_empty() {
        *validity = alloc::vec![0xff; rows.div_ceil(8)];
    }
    validity[row / 8] &= !(1 << (row % 8));
}

impl Built {
    /// Builds a string and returns its view.
    fn push(&mut self, build: impl FnOnce(&mut Vec<u8>)) -> u128 {
        let start = self.open.len();
        build(&mut self.open);
        let view = view_of(&self.open, start, self.open.len() - start, self.number());
        if self.open.len() >= BUILT_BYTES {
            self.close();
        }
        view
    }

    /// Begins a long string of at most `bytes` bytes, in a buffer of its own.
    fn begin(&mut self, bytes: usize) -> Result<()> {
        self.close();
        self.open.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))
    }

    fn end(&mut self) -> u128 {
        let view = view_of(&self.open, 0, self.open.len(), self.number());
        self.close();
        view
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.full.push(core::mem::take(&mut self.open).into());
        }
    }

    /// The open buffer's number, after the text.
    fn number(&self) -> u32 {
        low_u32(u64_of(self.full.len() + 1))
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.close();
        self.full
    }
}

/// A timestamp, in a unit.
fn point(text: &[u8], unit: TimeUnit, is_instant: bool, is_given: bool) -> Option<i64> {
    let found = parse::timestamp(text)?;
    // A local time has no zone. A time without a zone is UTC only if the column's type was given.
    (found.offset.is_some() == is_instant || (is_given && is_instant)).then(|| found.in_unit(unit)).flatten()
}

/// The view of a string in a buffer: see [`ByteArrays`].
#[inline]
fn view_of(buffer: &[u8], start: usize, length: usize, number: u32) -> u128 {
    let word = match buffer.get(start..start + 16).and_then(|bytes| bytes.try_into().ok()) {
        Some(bytes) => u128::from_le_bytes(bytes),
        None => {
            let mut last = [0; 16];
            let rest = &buffer[start..];
            last[..rest.len().min(16)].copy_from_slice(&rest[..rest.len().min(16)]);
            u128::from_le_bytes(last)
        }
    };
    let length_bits = u128::from(low_u32(u64_of(length)));
    if length <= INLINE_BYTES_MAX {
        let kept = word & ((1 << (8 * length)) - 1);
        return kept << 32 | length_bits;
    }
    let prefix = word & u128::from(u32::MAX);
    let place = u128::from(low_u32(u64_of(start)));
    place << 96 | u128::from(number) << 64 | prefix << 32 | length_bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_any_length_and_place() {
        let text: Vec<u8> = (0..40).collect();
        for start in 0..40 {
            for length in 0..=40 - start {
                let views = alloc::vec![view_of(&text, start, length, 0)].into();
                let strings = ByteArrays::new(views, Arc::new(alloc::vec![text.clone().into()]));
                assert_eq!(strings.get(0), &text[start..start + length]);
            }
        }
    }
}
