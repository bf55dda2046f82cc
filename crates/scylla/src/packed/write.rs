//! Cells from records.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Result};
use marquetry_parquet::batch::{ByteArrays, Value};
use marquetry_parquet::record::{FieldForm, RecordSink};

use super::{Packing, VERSION, missing};

/// Writes a cell for each record: receives what [`Records`](marquetry_parquet::record::Records) of the packing's program emit.
#[derive(Debug)]
pub struct CellWriter {
    packing: Arc<Packing>,
    out: Vec<u8>,
    /// Where each cell ends.
    ends: Vec<usize>,
    /// Of each cell whether its only field is null.
    are_null: Vec<bool>,
    /// The open record, structs, lists and maps.
    open: Vec<Open>,
    /// Frames of lists that ended, whose room is used again.
    idle: Vec<Items>,
}

/// What is begun.
#[derive(Debug)]
enum Open {
    /// The record, or a struct: where its bits are.
    Fields(usize),
    /// A list or a map.
    Items(Items),
}

/// The elements of a list, or the keys and values of a map, so far.
#[derive(Debug, Default)]
struct Items {
    /// Where the first value is: their number and bits come before it, once they are known.
    start: usize,
    /// The first field in it, and events about it.
    first: usize,
    count: u64,
    /// Of the first field and of the second whether each has a value, if they may be null, and how many there are.
    bits: [Vec<u8>; 2],
    counts: [usize; 2],
}

impl CellWriter {
    /// A writer without cells.
    pub fn new(packing: Arc<Packing>) -> CellWriter {
        let (out, ends, are_null) = (Vec::new(), Vec::new(), Vec::new());
        CellWriter { packing, out, ends, are_null, open: Vec::new(), idle: Vec::new() }
    }

    /// The cells so far, and none from now on. A record that has not ended is dropped.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for a cell of 4 GiB or more.
    pub fn take(&mut self) -> Result<ByteArrays> {
        let ends = mem::take(&mut self.ends);
        let mut out = mem::take(&mut self.out);
        out.truncate(ends.last().copied().unwrap_or(0));
        self.are_null.clear();
        self.open.clear();
        let starts = core::iter::once(0).chain(ends.iter().copied());
        ByteArrays::from_lengths(Bytes::from(out), ends.iter().zip(starts).map(|(end, start)| end - start))
    }

    /// Bytes of the cells so far, and of the record that has not ended.
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    /// Of each cell so far whether the record's [only field](Packing::is_one_nullable) is null.
    pub fn are_null(&self) -> &[bool] {
        self.are_null.get(..self.ends.len()).unwrap_or(&[])
    }

    /// Takes note of an event about a field, which has a value or is null.
    fn see(&mut self, field: usize, is_there: bool) -> Result<()> {
        let plan = self.packing.field(field)?;
        match self.open.last_mut() {
            Some(Open::Fields(bits)) => {
                if is_there && plan.is_nullable {
                    let byte = self.out.get_mut(*bits + plan.bit / 8).ok_or_else(missing)?;
                    *byte |= 1 << (plan.bit % 8);
                }
            }
            Some(Open::Items(items)) => {
                let place = usize::from(field != items.first);
                items.count += u64::from(place == 0);
                if plan.is_nullable {
                    let (bits, count) = (&mut items.bits[place], &mut items.counts[place]);
                    if count.is_multiple_of(8) {
                        bits.push(0);
                    }
                    if let Some(last) = bits.last_mut() {
                        *last |= u8::from(is_there) << (*count % 8);
                    }
                    *count += 1;
                }
            }
            None => return Err(missing()),
        }
        Ok(())
    }

    fn start_fields(&mut self, bits: usize) {
        self.open.push(Open::Fields(self.out.len()));
        self.out.resize(self.out.len() + bits.div_ceil(8), 0);
    }

    fn start_items(&mut self, field: usize) -> Result<()> {
        self.see(field, true)?;
        let mut items = self.idle.pop().unwrap_or_default();
        let first = self.packing.field(field)?.children.first().copied();
        (items.start, items.first) = (self.out.len(), first.ok_or_else(missing)?);
        self.open.push(Open::Items(items));
        Ok(())
    }

    fn end_items(&mut self) -> Result<()> {
        let Some(Open::Items(mut items)) = self.open.pop() else { return Err(missing()) };
        let mut head = Vec::with_capacity(2 + items.bits[0].len() + items.bits[1].len());
        varint(&mut head, items.count);
        for bits in &mut items.bits {
            head.append(bits);
        }
        self.out.splice(items.start..items.start, head);
        (items.count, items.counts) = (0, [0; 2]);
        self.idle.push(items);
        Ok(())
    }
}

impl RecordSink for CellWriter {
    fn start_record(&mut self) -> Result<()> {
        self.out.push(VERSION);
        self.are_null.push(false);
        self.start_fields(self.packing.root_bits);
        Ok(())
    }

    fn end_record(&mut self) -> Result<()> {
        self.open.clear();
        self.ends.push(self.out.len());
        Ok(())
    }

    fn start_struct(&mut self, field: usize) -> Result<()> {
        self.see(field, true)?;
        let bits = self.packing.field(field)?.bits;
        self.start_fields(bits);
        Ok(())
    }

    fn end_struct(&mut self, _field: usize) -> Result<()> {
        self.open.pop().map(drop).ok_or_else(missing)
    }

    fn start_list(&mut self, field: usize) -> Result<()> {
        self.start_items(field)
    }

    fn end_list(&mut self, _field: usize) -> Result<()> {
        self.end_items()
    }

    fn start_map(&mut self, field: usize) -> Result<()> {
        self.start_items(field)
    }

    fn end_map(&mut self, _field: usize) -> Result<()> {
        self.end_items()
    }

    fn null(&mut self, field: usize) -> Result<()> {
        if self.open.len() == 1
            && let (Some(last), [_]) = (self.are_null.last_mut(), &*self.packing.roots)
        {
            *last = true;
        }
        self.see(field, false)
    }

    fn value(&mut self, field: usize, value: Value<'_>) -> Result<()> {
        self.see(field, true)?;
        let out = &mut self.out;
        match value {
            Value::Boolean(bit) => out.push(u8::from(bit)),
            Value::Int32(number) => varint(out, zigzag(number.into())),
            Value::Int64(number) => varint(out, zigzag(number)),
            Value::Float(number) => out.extend_from_slice(&number.to_bits().to_le_bytes()),
            Value::Double(number) => out.extend_from_slice(&number.to_bits().to_le_bytes()),
            Value::Bytes(bytes) => match self.packing.field(field)?.form {
                FieldForm::Leaf(leaf) => {
                    match leaf.width() {
                        None => varint(out, u64_of(bytes.len())),
                        Some(width) if width == bytes.len() => {}
                        Some(_) => return Err(Error::misuse("bytes of another length than the column's")),
                    }
                    out.extend_from_slice(bytes);
                }
                _ => return Err(missing()),
            },
        }
        Ok(())
    }
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}
