//! The arrays of a record batch: of the columns that are wanted, whose parts are all that is read of it.
//!
//! Source: "Recordbatch message" of Arrow's columnar format; "Buffer Listing for Each Layout" has what each type's parts are.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use marquetry_base::{Error, Price, Result};

use crate::host::Host;

/// Rows of a record batch, at most: its arrays may say more than they have bytes for.
pub(super) const ROWS_MAX: usize = 1 << 20;
/// Values of an array within others, at most.
const VALUES_MAX: usize = 1 << 24;
/// Bytes of the wanted columns of a record batch, which are read as a whole; and those of the texts that its views show, each counted as often.
const BYTES_MAX: u64 = 8 << 20;
/// Parts that are so near to each other are read at once, with what is between them.
const GAP_BYTES: u64 = 16 << 10;
/// What it costs to check arrays: their bytes, of which texts are looked at, and their values.
const CHECK_PRICE: Price = Price { kib: 600, kilovalue: 2 << 10 };
/// What a column of a record batch costs, wanted or not.
const COLUMN_PRICE: Price = Price::per_kilovalue(200 << 10);

/// Arrays of a record batch as its metadata has them.
pub(super) struct Batch<'a> {
    rows: usize,
    nodes: flatbuffers::VectorIter<'a, arrow_ipc::FieldNode>,
    buffers: flatbuffers::VectorIter<'a, arrow_ipc::Buffer>,
    variadic: Option<flatbuffers::VectorIter<'a, i64>>,
}

/// An array that may be read: of that type and length, with parts at these places of the message's body.
struct Planned<'s> {
    data_type: &'s DataType,
    length: usize,
    has_nulls: bool,
    parts: Vec<Range<u64>>,
    children: Vec<Planned<'s>>,
}

impl<'a> Batch<'a> {
    /// The record batch of a message.
    pub(super) fn of(parsed: &arrow_ipc::Message<'a>) -> Result<Batch<'a>> {
        let no_batch =
            || Error::corrupt("an Arrow IPC message that is no record batch, where one is expected");
        let batch = parsed.header_as_record_batch().ok_or_else(no_batch)?;
        if batch.compression().is_some() {
            return Err(Error::unsupported("compressed record batches in an Arrow object"));
        }
        let rows = usize::try_from(batch.length()).map_err(|_| no_batch())?;
        if rows > ROWS_MAX {
            return Err(Error::too_large(format!("a record batch of {rows} rows in an Arrow object")));
        }
        let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else { return Err(no_batch()) };
        let variadic = batch.variadicBufferCounts().map(|counts| counts.iter());
        Ok(Batch { rows, nodes: nodes.iter(), buffers: buffers.iter(), variadic })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The columns at these places, which ascend, of a batch whose body is there.
    pub(super) fn read(
        mut self,
        schema: &SchemaRef,
        wanted: &[usize],
        body: &Range<u64>,
        host: &mut Host<'_>,
    ) -> Result<RecordBatch> {
        host.charge(COLUMN_PRICE.of(0, schema.fields().len()));
        let (mut planned, mut parts) = (Vec::with_capacity(wanted.len()), Vec::new());
        let (mut fields, mut places) = (Vec::with_capacity(wanted.len()), wanted.iter().copied().peekable());
        for (place, field) in schema.fields().iter().enumerate() {
            if places.peek().is_none() {
                break;
            }
            let column = self.plan(field.data_type()).map_err(|error| of_column(&error, field))?;
            if places.next_if_eq(&place).is_none() {
                continue;
            }
            if column.length != self.rows {
                return Err(of_column(
                    &Error::corrupt("an array of another length than its record batch"),
                    field,
                ));
            }
            column.list(&mut parts);
            planned.push(column);
            fields.push(Arc::clone(field));
        }
        let (bytes, values) = (bytes_of(&parts), planned.iter().map(Planned::values).sum::<usize>());
        if bytes > BYTES_MAX {
            let message = format!(
                "a record batch whose wanted columns have {bytes} bytes, more than {BYTES_MAX}: make smaller ones"
            );
            return Err(Error::too_large(message));
        }
        let read = Read::of(parts, body, host)?;
        host.charge(CHECK_PRICE.of(usize::try_from(bytes).unwrap_or(usize::MAX), values));
        let mut columns = Vec::with_capacity(planned.len());
        for (column, field) in planned.into_iter().zip(&fields) {
            let built = column.built(&read, host).map_err(|error| of_column(&error, field))?;
            columns.push(make_array(built));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map_err(|error| Error::corrupt(format!("a record batch: {error}")))
    }

    /// The next array, of that type.
    fn plan<'s>(&mut self, data_type: &'s DataType) -> Result<Planned<'s>> {
        let ends = || Error::corrupt("a record batch of fewer arrays than its schema has");
        let node = self.nodes.next().ok_or_else(ends)?;
        let length = usize::try_from(node.length()).ok().filter(|length| *length <= VALUES_MAX);
        let length = length.ok_or_else(|| Error::corrupt(format!("an array of {} values", node.length())))?;
        let mut children = Vec::new();
        let parts = match data_type {
            DataType::Null => 0,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 3,
            DataType::Utf8View | DataType::BinaryView => {
                let count = self.variadic.as_mut().and_then(Iterator::next).ok_or_else(ends)?;
                // As many as there are, at most: each of them is looked for.
                let count = usize::try_from(count).ok().filter(|count| *count <= self.buffers.len());
                2 + count.ok_or_else(ends)?
            }
            DataType::Struct(_) | DataType::FixedSizeList(..) => 1,
            DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) | DataType::Dictionary(..) => 2,
            DataType::Boolean | DataType::FixedSizeBinary(_) => 2,
            number if number.is_primitive() => 2,
            other => return Err(Error::unsupported(format!("{other} in an Arrow object"))),
        };
        let mut places = Vec::with_capacity(parts);
        for _ in 0..parts {
            let place = self.buffers.next().ok_or_else(ends)?;
            let start = u64::try_from(place.offset()).ok();
            let end =
                start.zip(u64::try_from(place.length()).ok()).and_then(|(at, size)| at.checked_add(size));
            let (Some(start), Some(end)) = (start, end) else {
                return Err(Error::corrupt("a part of an array that is nowhere"));
            };
            places.push(start..end);
        }
        match data_type {
            DataType::Struct(fields) => {
                for field in fields {
                    children.push(self.plan(field.data_type())?);
                }
            }
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::FixedSizeList(field, _)
            | DataType::Map(field, _) => children.push(self.plan(field.data_type())?),
            _ => {}
        }
        Ok(Planned { data_type, length, has_nulls: node.null_count() != 0, parts: places, children })
    }
}

impl Planned<'_> {
    /// Adds its parts, and those of the arrays within it.
    fn list(&self, parts: &mut Vec<Range<u64>>) {
        parts.extend(self.parts.iter().filter(|part| !part.is_empty()).cloned());
        for child in &self.children {
            child.list(parts);
        }
    }

    /// The values of it, and of the arrays within it.
    fn values(&self) -> usize {
        self.length + self.children.iter().map(Planned::values).sum::<usize>()
    }

    /// The array, which has been checked: Arrow looks at all that it says of itself.
    fn built(self, read: &Read, host: &mut Host<'_>) -> Result<ArrayData> {
        if let DataType::Dictionary(..) = self.data_type {
            return Err(Error::unsupported("dictionaries in an Arrow object"));
        }
        let mut parts = self.parts.into_iter().map(|part| read.part(&part)).collect::<Result<Vec<_>>>()?;
        let validity = (!parts.is_empty()).then(|| parts.remove(0)).filter(|_| self.has_nulls);
        if matches!(self.data_type, DataType::Utf8View | DataType::BinaryView) {
            let bytes = parts.first().map_or(0, shown_bytes);
            if bytes > BYTES_MAX {
                return Err(Error::too_large(format!("a record batch of {bytes} bytes of text")));
            }
            host.charge(CHECK_PRICE.of(usize::try_from(bytes).unwrap_or(usize::MAX), 0));
        }
        let mut children = Vec::with_capacity(self.children.len());
        for child in self.children {
            children.push(child.built(read, host)?);
        }
        ArrayData::builder(self.data_type.clone())
            .len(self.length)
            .null_bit_buffer(validity)
            .buffers(parts)
            .child_data(children)
            .align_buffers(true)
            .build()
            .map_err(|error| Error::corrupt(error.to_string()))
    }
}

/// Bytes of all the texts that views show, each counted as often as it is there.
fn shown_bytes(views: &Buffer) -> u64 {
    let (views, _) = views.as_chunks::<16>();
    let length = |view: &[u8; 16]| view.first_chunk::<4>().map_or(0, |of| u64::from(u32::from_le_bytes(*of)));
    views.iter().map(length).sum()
}

fn bytes_of(parts: &[Range<u64>]) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.end - part.start))
}

/// What was read of a body.
struct Read {
    /// In order, each with its place in the body.
    pieces: Vec<(Range<u64>, Buffer)>,
}

impl Read {
    /// Reads these parts of a body.
    fn of(mut parts: Vec<Range<u64>>, body: &Range<u64>, host: &mut Host<'_>) -> Result<Read> {
        parts.sort_unstable_by_key(|part| part.start);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for part in parts {
            match ranges.last_mut().filter(|last| part.start <= last.end.saturating_add(GAP_BYTES)) {
                Some(last) => last.end = last.end.max(part.end),
                None => ranges.push(part),
            }
        }
        let length = body.end - body.start;
        let mut pieces = Vec::with_capacity(ranges.len());
        for range in ranges {
            if range.end > length {
                return Err(Error::corrupt("a part of an array beyond the body of its message"));
            }
            let bytes = host.read_vec(&(body.start + range.start..body.start + range.end))?;
            pieces.push((range, Buffer::from_vec(bytes)));
        }
        Ok(Read { pieces })
    }

    fn part(&self, part: &Range<u64>) -> Result<Buffer> {
        if part.is_empty() {
            return Ok(Buffer::from_vec(Vec::<u8>::new()));
        }
        let after = self.pieces.partition_point(|(range, _)| range.start <= part.start);
        let found = after.checked_sub(1).and_then(|at| self.pieces.get(at));
        let (range, buffer) = found.ok_or_else(|| Error::internal("a part that was not read"))?;
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (start, length) = (size(part.start - range.start), size(part.end - part.start));
        if start.saturating_add(length) > buffer.len() {
            return Err(Error::internal("a part that was not read as a whole"));
        }
        Ok(buffer.slice_with_length(start, length))
    }
}

/// An error about a column.
fn of_column(error: &Error, field: &Field) -> Error {
    error.clone().reworded(format!("{}, in the column {}", error.message(), field.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Share;

    #[test]
    fn parts_that_are_near_are_read_at_once() {
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let mut object: &[u8] = &bytes;
        let mut host = Host::new(&mut object, Share::default());
        let parts = vec![40_008..40_024, 8..16, 16..40, 64..72, 99_000..99_984];
        let read = Read::of(parts.clone(), &(8..100_000), &mut host).unwrap();
        assert_eq!(
            read.pieces.iter().map(|(range, _)| range.clone()).collect::<Vec<_>>(),
            [8..72, 40_008..40_024, 99_000..99_984]
        );
        for part in parts {
            let at = |place: u64| usize::try_from(place).unwrap() + 8;
            assert_eq!(read.part(&part).unwrap().as_slice(), &bytes[at(part.start)..at(part.end)]);
        }
        assert_eq!(read.part(&(7..7)).unwrap().len(), 0);
        assert!(Read::of(vec![0..8, 99_990..99_993], &(8..100_000), &mut host).is_err());
    }

    #[test]
    fn views_are_counted_as_often_as_they_show_a_text() {
        let view = |length: u32| [length.to_le_bytes(), [0; 4], [0; 4], [0; 4]].concat();
        let views = Buffer::from_vec([view(5), view(u32::MAX), view(0)].concat());
        assert_eq!(shown_bytes(&views), 5 + u64::from(u32::MAX));
    }
}
