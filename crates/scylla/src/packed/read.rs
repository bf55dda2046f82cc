//! Records from cells.

use alloc::format;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Value;
use marquetry_parquet::record::{FieldForm, RecordSink};
use marquetry_parquet::schema::PhysicalType;

use super::{Packing, VERSION};

/// The fields of a sink that the record's own fields are for; those that nobody wants are read, and told to nobody.
///
/// A sink of some of a schema's columns has fewer fields, in the same order.
#[derive(Debug, Clone, Default)]
pub struct Sinks {
    /// By the program's root fields: how much lower the numbers of their fields are in the sink; `None`: not wanted.
    shifts: alloc::vec::Vec<Option<usize>>,
}

impl Sinks {
    /// Of a packing's records the fields that are wanted, by their nodes in the schema. The sink has these alone.
    pub fn of(packing: &Packing, mut is_wanted: impl FnMut(usize) -> bool) -> Sinks {
        let ends = packing.roots.iter().skip(1).copied().chain([packing.fields.len()]);
        let nodes = packing.roots.iter().map(|root| packing.program.fields().get(*root).map(|it| it.node));
        let mut left_out = 0;
        let shifts = packing.roots.iter().zip(ends).zip(nodes).map(|((start, end), node)| {
            let wanted = node.is_some_and(&mut is_wanted);
            let shift = wanted.then_some(left_out);
            left_out += if wanted { 0 } else { end - start };
            shift
        });
        Sinks { shifts: shifts.collect() }
    }
}

impl Packing {
    /// Reads a cell, and tells the sink the record. It is as much work as the cell is long.
    ///
    /// # Errors
    ///
    /// `Corrupt` for what is no cell of these records, with the column and the byte of the cell; `Unsupported` for a later version; those of the sink.
    pub fn read<S: RecordSink>(&self, cell: &[u8], wanted: &Sinks, sink: &mut S) -> Result<()> {
        let mut cell = Cell { bytes: cell, at: 0 };
        match cell.bytes.first() {
            Some(&VERSION) => cell.at = 1,
            Some(version) => {
                let what = format!(
                    "a record of version {version}, and this version of Marquetry reads version {VERSION}: it is damaged, or a later one wrote it"
                );
                return Err(Error::unsupported(what).at_offset(0));
            }
            None => return Err(Error::corrupt("a record of no bytes").at_offset(0)),
        }
        sink.start_record()?;
        let bits = cell.bits(self.root_bits).map_err(|wrong| self.error(wrong, None))?;
        for (place, field) in self.roots.iter().enumerate() {
            match wanted.shifts.get(place) {
                Some(Some(shift)) => self.field_of(*field, bits, (&mut cell, *shift), sink)?,
                _ => self.field_of(*field, bits, (&mut cell, 0), &mut Nobody)?,
            }
        }
        if cell.at < cell.bytes.len() {
            return Err(self.error(Wrong { what: "bytes after the record", at: cell.at }, None));
        }
        sink.end_record()
    }

    /// Reads a field of a struct or of the record, whose bits are known. Of fields that nobody looks at, numbers are only too large.
    fn field_of<S: RecordSink>(
        &self,
        field: usize,
        bits: &[u8],
        (cell, shift): (&mut Cell<'_>, usize),
        sink: &mut S,
    ) -> Result<()> {
        let plan = self.field(field)?;
        if plan.is_nullable && !bit(bits, plan.bit) {
            return sink.null(field - shift);
        }
        self.value(field, (cell, shift), sink)
    }

    fn value<S: RecordSink>(
        &self,
        field: usize,
        (cell, shift): (&mut Cell<'_>, usize),
        sink: &mut S,
    ) -> Result<()> {
        let plan = self.field(field)?;
        let number = field - shift;
        let wrong = |wrong: Wrong| self.error(wrong, Some(field));
        match plan.form {
            FieldForm::Leaf(leaf) => {
                let value = cell.leaf(leaf).map_err(wrong)?;
                sink.value(number, value)
            }
            FieldForm::Struct => {
                let bits = cell.bits(plan.bits).map_err(wrong)?;
                sink.start_struct(number)?;
                for child in &plan.children {
                    self.field_of(*child, bits, (&mut *cell, shift), sink)?;
                }
                sink.end_struct(number)
            }
            FieldForm::List | FieldForm::Map => {
                let began = cell.at;
                let count = cell.count().map_err(wrong)?;
                let mut presence: [Option<&[u8]>; 2] = [None; 2];
                for (child, bits) in plan.children.iter().zip(&mut presence) {
                    if self.field(*child)?.is_nullable {
                        *bits = Some(cell.bits(count).map_err(wrong)?);
                    }
                }
                // Elements that may be null have a bit; others have bytes.
                let needed = plan.children.iter().filter_map(|child| self.fields.get(*child));
                let needed = needed.filter(|child| !child.is_nullable).map(|child| child.bytes_min);
                let needed = needed.fold(0, usize::saturating_add).saturating_mul(count);
                if needed > cell.bytes.len() - cell.at {
                    return Err(wrong(Wrong {
                        what: "more elements than the cell has bytes for",
                        at: began,
                    }));
                }
                match plan.form {
                    FieldForm::Map => sink.start_map(number)?,
                    _ => sink.start_list(number)?,
                }
                for item in 0..count {
                    for (child, bits) in plan.children.iter().zip(&presence) {
                        match bits {
                            Some(bits) if !bit(bits, item) => sink.null(child - shift)?,
                            _ => self.value(*child, (&mut *cell, shift), sink)?,
                        }
                    }
                }
                match plan.form {
                    FieldForm::Map => sink.end_map(number),
                    _ => sink.end_list(number),
                }
            }
        }
    }

    #[cold]
    fn error(&self, wrong: Wrong, field: Option<usize>) -> Error {
        let column = field.and_then(|field| self.program.path(field));
        let error = Error::corrupt(format!("a record is damaged: {}", wrong.what));
        error.at_offset(u64_of(wrong.at)).at(|place| place.column = column)
    }
}

/// What is wrong with a cell, and at which byte.
#[derive(Debug)]
struct Wrong {
    what: &'static str,
    at: usize,
}

/// A cell, and how much of it is read.
struct Cell<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cell<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Wrong> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match rest.get(..length) {
            Some(taken) => {
                self.at += length;
                Ok(taken)
            }
            None => Err(Wrong { what: "a value that goes on after the cell's end", at: self.at }),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let at = self.at;
        let wrong = |_| Wrong { what: "a value that goes on after the cell's end", at };
        self.take(N)?.try_into().map_err(wrong)
    }

    /// Bits, up to the end of a byte.
    fn bits(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let at = self.at;
        let bits = self.take(count.div_ceil(8))?;
        match bits.last() {
            Some(last) if !count.is_multiple_of(8) && last >> (count % 8) != 0 => {
                Err(Wrong { what: "bits of more values than there are", at: at + bits.len() - 1 })
            }
            _ => Ok(bits),
        }
    }

    fn varint(&mut self) -> Result<u64, Wrong> {
        let at = self.at;
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let digit = u64::from(byte & 0x7f);
            if digit << shift >> shift != digit {
                break;
            }
            number |= digit << shift;
            if byte & 0x80 == 0 {
                // One way to write a number, so that equal records are equal bytes.
                if byte == 0 && shift > 0 {
                    break;
                }
                return Ok(number);
            }
        }
        Err(Wrong { what: "a number that is not written as numbers are", at })
    }

    fn zigzag(&mut self) -> Result<i64, Wrong> {
        let raw = self.varint()?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// A number of bytes or elements, of which a cell has no more than bits.
    fn count(&mut self) -> Result<usize, Wrong> {
        let at = self.at;
        let count = usize_of(self.varint()?).filter(|count| count.div_ceil(8) <= self.bytes.len());
        count.ok_or(Wrong { what: "more elements than the cell has bytes for", at })
    }

    fn leaf(&mut self, leaf: PhysicalType) -> Result<Value<'a>, Wrong> {
        let at = self.at;
        Ok(match leaf {
            PhysicalType::Boolean => match self.array()? {
                [0] => Value::Boolean(false),
                [1] => Value::Boolean(true),
                _ => return Err(Wrong { what: "a BOOLEAN that is neither 0 nor 1", at }),
            },
            PhysicalType::Int32 => {
                let number = i32::try_from(self.zigzag()?);
                Value::Int32(number.map_err(|_| Wrong { what: "an INT32 of more than 32 bits", at })?)
            }
            PhysicalType::Int64 => Value::Int64(self.zigzag()?),
            PhysicalType::Float => Value::Float(f32::from_bits(u32::from_le_bytes(self.array()?))),
            PhysicalType::Double => Value::Double(f64::from_bits(u64::from_le_bytes(self.array()?))),
            PhysicalType::ByteArray => {
                let length = usize_of(self.varint()?).unwrap_or(usize::MAX);
                Value::Bytes(self.take(length)?)
            }
            PhysicalType::Int96 | PhysicalType::FixedLenByteArray(_) => {
                Value::Bytes(self.take(leaf.width().unwrap_or(0))?)
            }
        })
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// Hears what nobody wants.
struct Nobody;

impl RecordSink for Nobody {
    fn start_record(&mut self) -> Result<()> {
        Ok(())
    }
    fn end_record(&mut self) -> Result<()> {
        Ok(())
    }
    fn start_struct(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn end_struct(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn start_list(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn end_list(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn start_map(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn end_map(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn null(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn value(&mut self, _field: usize, _value: Value<'_>) -> Result<()> {
        Ok(())
    }
}
