//! From the footer's bytes to [`FileMetaData`], in steps: one schema element or column chunk after the other.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Limits, Price, Result};

use super::thrift::{Field, Kind, Reader, Stop, Thrift};
use super::{
    ColumnChunk, ColumnOrder, Compression, Encoding, EncryptionAlgorithm, FileMetaData, KeyValue,
    PageEncodingStats, RowGroup, SortingColumn, Statistics, statistics as more,
};
use crate::schema::{Element, Schema};

/// What a column chunk or schema element costs to read: some hundred nanoseconds, with its allocations.
const ELEMENT_PRICE: Price = Price::per_kilovalue(500 * 1024);

/// Reads a footer, resumably. The bytes are whole; what is sliced is the work.
#[derive(Debug)]
pub(crate) struct FooterParser {
    bytes: Bytes,
    /// Where the bytes stand in the file, for errors.
    base: u64,
    at: usize,
    expects: Expects,
    limits: Limits,
    version: Option<i32>,
    /// The footer's total, which must be there, though nothing depends on it.
    rows: Option<u64>,
    elements: Vec<Element>,
    schema: Option<Schema>,
    row_groups: Option<Vec<RowGroup>>,
    key_values: Vec<KeyValue>,
    created_by: Option<String>,
    column_orders: Vec<ColumnOrder>,
    encryption: Option<EncryptionAlgorithm>,
}

/// What the parser expects next.
#[derive(Debug, Clone, Copy)]
enum Expects {
    /// A field of `FileMetaData`, after the field `last`.
    FileField { last: i16 },
    /// `left` more elements of the schema.
    SchemaElements { left: usize },
    /// `left` more row groups.
    RowGroups { left: usize },
    /// A field of the last row group, after the field `last`; `left` row groups follow it.
    RowGroupField { last: i16, left: usize, seen_rows: bool },
    /// `chunks` more column chunks of the last row group.
    ColumnChunks { chunks: usize, left: usize, seen_rows: bool },
    /// Nothing: the structure has ended.
    Nothing,
}

impl FooterParser {
    /// A parser of a footer that is `bytes`, at `base` of the file.
    pub(crate) fn new(bytes: Bytes, base: u64, limits: Limits) -> FooterParser {
        FooterParser {
            bytes,
            base,
            at: 0,
            expects: Expects::FileField { last: 0 },
            limits,
            version: None,
            rows: None,
            elements: Vec::new(),
            schema: None,
            row_groups: None,
            key_values: Vec::new(),
            created_by: None,
            column_orders: Vec::new(),
            encryption: None,
        }
    }

    /// Reads on. `None` when the budget is spent.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<FileMetaData>> {
        loop {
            if matches!(self.expects, Expects::Nothing) {
                return self.finish().map(Some).map_err(|error| error.at_offset(self.base));
            }
            let bytes = self.bytes.clone();
            let mut reader = Reader::new(&bytes, self.at);
            let before = self.at;
            self.read_one(&mut reader)
                .map_err(|stop| stop.into_error("the footer", self.base, bytes.len()))?;
            self.at = reader.at();
            if let (Expects::FileField { .. }, None, false) =
                (&self.expects, &self.schema, self.elements.is_empty())
            {
                let schema = Schema::build(core::mem::take(&mut self.elements), &self.limits);
                self.schema = Some(schema.map_err(|error| error.at_offset(self.base))?);
            }
            budget.charge(Price { kib: 1024, ..ELEMENT_PRICE }, self.at - before, 1);
            if budget.is_spent() {
                return Ok(None);
            }
        }
    }

    fn read_one(&mut self, reader: &mut Reader<'_>) -> Thrift<()> {
        self.expects = match self.expects {
            Expects::FileField { last } => match reader.field(last)? {
                Some(field) => match self.read_file_field(reader, field) {
                    Err(Stop::OtherType) => {
                        reader.skip(field.kind)?;
                        Expects::FileField { last: field.id }
                    }
                    expects => expects?,
                },
                None => Expects::Nothing,
            },
            Expects::SchemaElements { left: 0 } => Expects::FileField { last: 2 },
            Expects::SchemaElements { left } => {
                let element = Element::read(reader)?;
                self.elements.push(element);
                Expects::SchemaElements { left: left - 1 }
            }
            Expects::RowGroups { left: 0 } => Expects::FileField { last: 4 },
            Expects::RowGroups { left } => {
                self.row_groups.get_or_insert_default().push(RowGroup::default());
                Expects::RowGroupField { last: 0, left: left - 1, seen_rows: false }
            }
            Expects::RowGroupField { last, left, seen_rows } => match reader.field(last)? {
                Some(field) => match self.read_row_group_field(reader, field, left, seen_rows) {
                    Err(Stop::OtherType) => {
                        reader.skip(field.kind)?;
                        Expects::RowGroupField { last: field.id, left, seen_rows }
                    }
                    expects => expects?,
                },
                None if seen_rows => Expects::RowGroups { left },
                None => return reader.corrupt("a row group without a number of rows"),
            },
            Expects::ColumnChunks { chunks: 0, left, seen_rows } => {
                Expects::RowGroupField { last: 1, left, seen_rows }
            }
            Expects::ColumnChunks { chunks, left, seen_rows } => {
                let chunk = column_chunk(reader)?;
                self.row_group(reader)?.columns.push(chunk);
                Expects::ColumnChunks { chunks: chunks - 1, left, seen_rows }
            }
            Expects::Nothing => Expects::Nothing,
        };
        Ok(())
    }

    fn read_file_field(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Expects> {
        match field.id {
            1 => self.version = Some(reader.expect(field, Kind::I32, Reader::i32)?),
            2 => {
                if self.schema.is_some() {
                    return reader.corrupt("a second schema");
                }
                let left = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                if left == 0 {
                    return reader.corrupt("an empty schema");
                }
                return Ok(Expects::SchemaElements { left });
            }
            3 => self.rows = Some(reader.expect(field, Kind::I64, unsigned)?),
            4 => {
                if self.row_groups.is_some() {
                    return reader.corrupt("a second list of row groups");
                }
                self.row_groups = Some(Vec::new());
                let left = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                return Ok(Expects::RowGroups { left });
            }
            5 => self.key_values = reader.expect(field, Kind::List, key_values)?,
            6 => self.created_by = Some(reader.expect(field, Kind::Binary, lossy_string)?),
            7 => {
                self.column_orders =
                    reader.expect(field, Kind::List, |reader| reader.each(Kind::Struct, column_order))?;
            }
            8 => self.encryption = Some(reader.expect(field, Kind::Struct, encryption)?),
            _ => reader.skip(field.kind)?,
        }
        Ok(Expects::FileField { last: field.id })
    }

    fn read_row_group_field(
        &mut self,
        reader: &mut Reader<'_>,
        field: Field,
        left: usize,
        mut seen_rows: bool,
    ) -> Thrift<Expects> {
        match field.id {
            1 => {
                let chunks = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                return Ok(Expects::ColumnChunks { chunks, left, seen_rows });
            }
            2 => {
                let bytes = reader.expect(field, Kind::I64, Reader::i64)?;
                // Some writers have left a negative number here; nothing depends on it.
                self.row_group(reader)?.uncompressed_bytes = u64::try_from(bytes).unwrap_or(0);
            }
            3 => {
                self.row_group(reader)?.rows = reader.expect(field, Kind::I64, unsigned)?;
                seen_rows = true;
            }
            4 => {
                let columns =
                    reader.expect(field, Kind::List, |reader| reader.each(Kind::Struct, sorting_column))?;
                self.row_group(reader)?.sorting_columns = columns;
            }
            5 => {
                let offset = reader.expect(field, Kind::I64, Reader::i64)?;
                self.row_group(reader)?.file_offset = u64::try_from(offset).ok();
            }
            6 => {
                let bytes = reader.expect(field, Kind::I64, Reader::i64)?;
                self.row_group(reader)?.compressed_bytes = u64::try_from(bytes).ok();
            }
            7 => self.row_group(reader)?.ordinal = Some(reader.expect(field, Kind::I16, Reader::i16)?),
            _ => reader.skip(field.kind)?,
        }
        Ok(Expects::RowGroupField { last: field.id, left, seen_rows })
    }

    fn row_group(&mut self, reader: &Reader<'_>) -> Thrift<&mut RowGroup> {
        match self.row_groups.as_mut().and_then(|groups| groups.last_mut()) {
            Some(group) => Ok(group),
            None => reader.corrupt("no row group"),
        }
    }

    fn finish(&mut self) -> Result<FileMetaData> {
        let missing = |why| Stop::Corrupt(self.at, why).into_error("the footer", self.base, self.bytes.len());
        let schema = self.schema.take().ok_or_else(|| missing("no schema"))?;
        let mut row_groups = self.row_groups.take().ok_or_else(|| missing("no list of row groups"))?;
        self.rows.ok_or_else(|| missing("no number of rows"))?;
        let mut first_row = 0u64;
        for (number, group) in row_groups.iter_mut().enumerate() {
            group.first_row = first_row;
            first_row = first_row
                .checked_add(group.rows)
                .ok_or_else(|| missing("more rows than 64 bits can count"))?;
            if group.columns.len() != schema.leaves().len() {
                return Err(marquetry_base::Error::corrupt(alloc::format!(
                    "a row group of {} column chunks, in a schema of {} leaves",
                    group.columns.len(),
                    schema.leaves().len()
                ))
                .at(|place| place.row_group = Some(number as u64)));
            }
        }
        Ok(FileMetaData {
            version: self.version.unwrap_or(1),
            schema,
            // The row groups hold the rows; a writer is known whose total in the footer was wrong.
            rows: first_row,
            row_groups,
            key_values: core::mem::take(&mut self.key_values),
            created_by: self.created_by.take(),
            column_orders: core::mem::take(&mut self.column_orders),
            encryption: self.encryption,
            footer_start: self.base,
            footer_bytes: self.bytes.len() as u64,
        })
    }
}

fn column_chunk(reader: &mut Reader<'_>) -> Thrift<ColumnChunk> {
    let mut chunk = ColumnChunk::default();
    let (mut has_metadata, mut column_index, mut offset_index) = (false, (None, None), (None, None));
    reader.structure(|reader, field| {
        match field.id {
            1 => chunk.file_path = Some(reader.expect(field, Kind::Binary, Reader::string)?),
            3 => {
                reader.expect(field, Kind::Struct, |reader| column_metadata(reader, &mut chunk))?;
                has_metadata = true;
            }
            4 => offset_index.0 = Some(reader.expect(field, Kind::I64, unsigned)?),
            5 => offset_index.1 = Some(reader.expect(field, Kind::I32, unsigned_32)?),
            6 => column_index.0 = Some(reader.expect(field, Kind::I64, unsigned)?),
            7 => column_index.1 = Some(reader.expect(field, Kind::I32, unsigned_32)?),
            8 | 9 => {
                chunk.encrypted = true;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if !has_metadata && !chunk.encrypted {
        return reader.corrupt("a column chunk without metadata");
    }
    // Of no bytes: a writer's way to say none.
    chunk.column_index = column_index.0.zip(column_index.1).filter(|(_, bytes)| *bytes > 0);
    chunk.offset_index = offset_index.0.zip(offset_index.1).filter(|(_, bytes)| *bytes > 0);
    Ok(chunk)
}

fn column_metadata(reader: &mut Reader<'_>, chunk: &mut ColumnChunk) -> Thrift<()> {
    let (mut codec, mut values, mut uncompressed, mut compressed, mut data_page) =
        (None, None, None, None, None);
    let mut bloom = (None, None);
    reader.structure(|reader, field| {
        match field.id {
            2 => {
                chunk.encodings =
                    reader.expect(field, Kind::List, |reader| reader.each(Kind::I32, encoding))?
            }
            4 => codec = Some(Compression::from_thrift(reader.expect(field, Kind::I32, Reader::i32)?)),
            5 => values = Some(reader.expect(field, Kind::I64, unsigned)?),
            6 => uncompressed = Some(reader.expect(field, Kind::I64, unsigned)?),
            7 => compressed = Some(reader.expect(field, Kind::I64, unsigned)?),
            8 => chunk.key_values = reader.expect(field, Kind::List, key_values)?,
            9 => data_page = Some(reader.expect(field, Kind::I64, unsigned)?),
            11 => {
                // Negative: a writer's way to say none.
                let offset = reader.expect(field, Kind::I64, Reader::i64)?;
                chunk.dictionary_page_offset = u64::try_from(offset).ok();
            }
            12 => chunk.statistics = Some(Box::new(reader.expect(field, Kind::Struct, statistics)?)),
            13 => {
                chunk.encoding_stats = reader
                    .expect(field, Kind::List, |reader| reader.each(Kind::Struct, page_encoding_stats))?;
            }
            14 => bloom.0 = Some(reader.expect(field, Kind::I64, unsigned)?),
            15 => bloom.1 = Some(reader.expect(field, Kind::I32, unsigned_32)?),
            16 => {
                let sizes = reader.expect(field, Kind::Struct, more::size_statistics)?;
                chunk.size_statistics = Some(Box::new(sizes));
            }
            17 => {
                let places = reader.expect(field, Kind::Struct, more::geospatial_statistics)?;
                chunk.geospatial_statistics = Some(Box::new(places));
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing = |why| Stop::Corrupt(reader.at(), why);
    chunk.compression = codec.ok_or_else(|| missing("a column chunk without a codec"))?;
    chunk.values = values.ok_or_else(|| missing("a column chunk without a number of values"))?;
    chunk.uncompressed_bytes =
        uncompressed.ok_or_else(|| missing("a column chunk without its uncompressed size"))?;
    chunk.compressed_bytes =
        compressed.ok_or_else(|| missing("a column chunk without its compressed size"))?;
    chunk.data_page_offset =
        data_page.ok_or_else(|| missing("a column chunk without its first page's offset"))?;
    chunk.bloom_filter = bloom.0.map(|offset| (offset, bloom.1));
    Ok(())
}

/// Reads `Statistics`.
pub(super) fn statistics(reader: &mut Reader<'_>) -> Thrift<Statistics> {
    let mut statistics = Statistics::default();
    // Counts that cannot be are taken as not known: statistics are hints, and old writers left rubbish in them.
    let count = |reader: &mut Reader<'_>, field| -> Thrift<Option<u64>> {
        Ok(u64::try_from(reader.expect(field, Kind::I64, Reader::i64)?).ok())
    };
    reader.structure(|reader, field| {
        match field.id {
            1 => statistics.deprecated_max = Some(reader.expect(field, Kind::Binary, Reader::bytes)?),
            2 => statistics.deprecated_min = Some(reader.expect(field, Kind::Binary, Reader::bytes)?),
            3 => statistics.null_count = count(reader, field)?,
            4 => statistics.distinct_count = count(reader, field)?,
            5 => statistics.max_value = Some(reader.expect(field, Kind::Binary, Reader::bytes)?),
            6 => statistics.min_value = Some(reader.expect(field, Kind::Binary, Reader::bytes)?),
            7 => statistics.is_max_value_exact = Some(reader.bool(field)?),
            8 => statistics.is_min_value_exact = Some(reader.bool(field)?),
            9 => statistics.nan_count = count(reader, field)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(statistics)
}

/// Reads an `Encoding`.
pub(super) fn encoding(reader: &mut Reader<'_>) -> Thrift<Encoding> {
    Ok(Encoding::from_thrift(reader.i32()?))
}

fn key_values(reader: &mut Reader<'_>) -> Thrift<Vec<KeyValue>> {
    reader.each(Kind::Struct, |reader| {
        let mut pair = KeyValue { key: String::new(), value: None };
        reader.structure(|reader, field| {
            match field.id {
                1 => pair.key = reader.expect(field, Kind::Binary, lossy_string)?,
                2 => pair.value = Some(reader.expect(field, Kind::Binary, Reader::bytes)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(pair)
    })
}

fn sorting_column(reader: &mut Reader<'_>) -> Thrift<SortingColumn> {
    let mut column = SortingColumn { column: 0, descending: false, nulls_first: false };
    reader.structure(|reader, field| {
        match field.id {
            1 => column.column = reader.expect(field, Kind::I32, unsigned_32)?,
            2 => column.descending = reader.bool(field)?,
            3 => column.nulls_first = reader.bool(field)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(column)
}

fn page_encoding_stats(reader: &mut Reader<'_>) -> Thrift<PageEncodingStats> {
    let mut stats = PageEncodingStats { page_type: 0, encoding: Encoding::Plain, count: 0 };
    reader.structure(|reader, field| {
        match field.id {
            1 => stats.page_type = reader.expect(field, Kind::I32, Reader::i32)?,
            2 => stats.encoding = reader.expect(field, Kind::I32, encoding)?,
            3 => stats.count = reader.expect(field, Kind::I32, Reader::i32)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(stats)
}

fn column_order(reader: &mut Reader<'_>) -> Thrift<ColumnOrder> {
    let mut order = ColumnOrder::Unknown(0);
    reader.structure(|_, field| {
        order = match field.id {
            1 => ColumnOrder::TypeDefined,
            2 => ColumnOrder::Ieee754Total,
            3 => ColumnOrder::Int96Timestamp,
            other => ColumnOrder::Unknown(other),
        };
        Ok(false)
    })?;
    Ok(order)
}

fn encryption(reader: &mut Reader<'_>) -> Thrift<EncryptionAlgorithm> {
    let mut algorithm = EncryptionAlgorithm::Unknown(0);
    reader.structure(|_, field| {
        algorithm = match field.id {
            1 => EncryptionAlgorithm::AesGcmV1,
            2 => EncryptionAlgorithm::AesGcmCtrV1,
            other => EncryptionAlgorithm::Unknown(other),
        };
        Ok(false)
    })?;
    Ok(algorithm)
}

fn unsigned(reader: &mut Reader<'_>) -> Thrift<u64> {
    let number = reader.i64()?;
    u64::try_from(number).or_else(|_| reader.corrupt("a negative count, size or offset"))
}

fn unsigned_32(reader: &mut Reader<'_>) -> Thrift<u32> {
    let number = reader.i32()?;
    u32::try_from(number).or_else(|_| reader.corrupt("a negative count, size or offset"))
}

/// Text that only people read: what is not UTF-8 is replaced.
fn lossy_string(reader: &mut Reader<'_>) -> Thrift<String> {
    Ok(String::from_utf8_lossy(reader.binary()?).into_owned())
}
