//! Page headers (`PageHeader`).

use alloc::boxed::Box;

use marquetry_base::{Error, Limits, Result};

use super::chunk;
use super::{Encoding, Statistics};
use crate::thrift::{Fields, Kind, Reader, Skim, Stop, Thrift, Wanted, first_fault};

/// A page's header.
#[derive(Debug, Clone, PartialEq)]
pub struct PageHeader {
    /// The kind of page, with that kind's header.
    pub kind: PageKind,
    /// Bytes of the page before compression, without this header, with V2's levels.
    pub uncompressed_bytes: u32,
    /// Bytes of the page in the file, without this header.
    pub compressed_bytes: u32,
    /// The CRC-32 of the page's bytes in the file.
    pub crc: Option<u32>,
}

/// What kind of page it is.
#[derive(Debug, Clone, PartialEq)]
pub enum PageKind {
    /// `DATA_PAGE`.
    Data(DataPageHeader),
    /// `DATA_PAGE_V2`.
    DataV2(DataPageHeaderV2),
    /// `DICTIONARY_PAGE`.
    Dictionary(DictionaryPageHeader),
    /// `INDEX_PAGE`, which holds nothing, or a type that this version does not know. Readers skip it.
    Other(i32),
}

/// `DataPageHeader`.
#[derive(Debug, Clone, PartialEq)]
pub struct DataPageHeader {
    /// Values, nulls included.
    pub values: u32,
    /// The values' encoding.
    pub encoding: Encoding,
    /// The definition levels' encoding.
    pub definition_encoding: Encoding,
    /// The repetition levels' encoding.
    pub repetition_encoding: Encoding,
    /// Counts, and bounds that are not longer than 4 KiB: those of the column index are the ones that readers should use.
    pub statistics: Option<Box<Statistics>>,
}

/// `DataPageHeaderV2`.
#[derive(Debug, Clone, PartialEq)]
pub struct DataPageHeaderV2 {
    /// Values, nulls included.
    pub values: u32,
    /// Nulls.
    pub nulls: u32,
    /// Rows.
    pub rows: u32,
    /// The values' encoding.
    pub encoding: Encoding,
    /// Bytes of the definition levels.
    pub definition_bytes: u32,
    /// Bytes of the repetition levels.
    pub repetition_bytes: u32,
    /// Whether the values are compressed, in a chunk that has a codec.
    pub is_compressed: bool,
    /// Counts, and bounds that are not longer than 4 KiB: those of the column index are the ones that readers should use.
    pub statistics: Option<Box<Statistics>>,
}

/// `DictionaryPageHeader`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DictionaryPageHeader {
    /// Values.
    pub values: u32,
    /// PLAIN, or PLAIN_DICTIONARY, which means the same here.
    pub encoding: Encoding,
    /// Whether the values ascend.
    pub is_sorted: Option<bool>,
}

/// Its name in errors.
const HEADER: &str = "a page header";

const HEADER_FIELDS: Fields = &[
    (1, Wanted::Scalar),
    (2, Wanted::Scalar),
    (3, Wanted::Scalar),
    (4, Wanted::Scalar),
    (5, Wanted::Struct(DATA_FIELDS)),
    (7, Wanted::Struct(DICTIONARY_FIELDS)),
    (8, Wanted::Struct(DATA_V2_FIELDS)),
];
const DATA_FIELDS: Fields = &[
    (1, Wanted::Scalar),
    (2, Wanted::Scalar),
    (3, Wanted::Scalar),
    (4, Wanted::Scalar),
    (5, Wanted::Struct(chunk::SHORT_STATISTICS_FIELDS)),
];
const DICTIONARY_FIELDS: Fields = &[(1, Wanted::Scalar), (2, Wanted::Scalar), (3, Wanted::Scalar)];
const DATA_V2_FIELDS: Fields = &[
    (1, Wanted::Scalar),
    (2, Wanted::Scalar),
    (3, Wanted::Scalar),
    (4, Wanted::Scalar),
    (5, Wanted::Scalar),
    (6, Wanted::Scalar),
    (7, Wanted::Scalar),
    (8, Wanted::Struct(chunk::SHORT_STATISTICS_FIELDS)),
];

impl PageHeader {
    /// Reads a header from the start of `data`, in one call. Returns it with its length in bytes.
    ///
    /// # Errors
    ///
    /// [`Stop::End`] when `data` ends in its middle.
    pub fn read(data: &[u8]) -> Thrift<(PageHeader, usize)> {
        PageHeader::read_some(data, true)
    }

    /// The same; where nobody `keeps_statistics`, these are checked and left out: their bounds would be memory for each page.
    pub(crate) fn read_some(data: &[u8], keeps_statistics: bool) -> Thrift<(PageHeader, usize)> {
        let mut reader = Reader::new(data, 0);
        let header = read_page_header(&mut reader, keeps_statistics)?;
        Ok((header, reader.at()))
    }

    /// Begins to skim a header that starts at `start` in the file and is not completely there yet.
    pub(crate) fn skim(start: u64, limits: &Limits) -> Skim {
        Skim::structure(HEADER, start, HEADER_FIELDS, limits)
    }

    /// Reads a header that is skimmed.
    pub(crate) fn of_skim(skim: &Skim) -> Result<PageHeader> {
        skim.read(|reader| read_page_header(reader, true))
            .map_err(|stop| stop.into_error(HEADER, skim.start()))
    }

    /// The first error of a header that cannot be skimmed any further because of `fault`.
    pub(crate) fn fault_of(skim: &Skim, fault: Error) -> Error {
        first_fault(skim, fault, |reader| read_page_header(reader, true).map(drop))
    }

    /// The error for a `stop` in a header that starts at `start` in the file.
    pub(crate) fn error(stop: Stop, start: u64) -> Error {
        stop.into_error(HEADER, start)
    }

    /// Values in the page, nulls included; for a dictionary, its entries.
    pub fn values(&self) -> u32 {
        match &self.kind {
            PageKind::Data(page) => page.values,
            PageKind::DataV2(page) => page.values,
            PageKind::Dictionary(page) => page.values,
            PageKind::Other(_) => 0,
        }
    }
}

fn read_page_header(reader: &mut Reader<'_>, keeps_statistics: bool) -> Thrift<PageHeader> {
    let (mut page_type, mut uncompressed, mut compressed, mut crc) = (None, None, None, None);
    let (mut data, mut data_v2, mut dictionary) = (None, None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => page_type = Some(reader.expect(field, Kind::I32, Reader::i32)?),
            2 => uncompressed = Some(reader.expect(field, Kind::I32, count)?),
            3 => compressed = Some(reader.expect(field, Kind::I32, count)?),
            4 => crc = Some(reader.expect(field, Kind::I32, Reader::i32)?.cast_unsigned()),
            5 => {
                data = Some(reader.expect(field, Kind::Struct, |reader| read_data(reader, keeps_statistics))?)
            }
            7 => dictionary = Some(reader.expect(field, Kind::Struct, read_dictionary)?),
            8 => {
                data_v2 = Some(
                    reader.expect(field, Kind::Struct, |reader| read_data_v2(reader, keeps_statistics))?,
                )
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing = |why| Stop::Corrupt(reader.at(), why);
    let kind = match page_type.ok_or_else(|| missing("no page type"))? {
        0 => PageKind::Data(data.ok_or_else(|| missing("a data page without its header"))?),
        2 => PageKind::Dictionary(dictionary.ok_or_else(|| missing("a dictionary page without its header"))?),
        3 => PageKind::DataV2(data_v2.ok_or_else(|| missing("a V2 data page without its header"))?),
        other => PageKind::Other(other),
    };
    Ok(PageHeader {
        kind,
        uncompressed_bytes: uncompressed.ok_or_else(|| missing("no uncompressed page size"))?,
        compressed_bytes: compressed.ok_or_else(|| missing("no compressed page size"))?,
        crc,
    })
}

fn read_data(reader: &mut Reader<'_>, keeps_statistics: bool) -> Thrift<DataPageHeader> {
    let (mut values, mut encoding, mut definition, mut repetition, mut statistics) =
        (None, None, None, None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => values = Some(reader.expect(field, Kind::I32, count)?),
            2 => encoding = Some(reader.expect(field, Kind::I32, chunk::encoding)?),
            3 => definition = Some(reader.expect(field, Kind::I32, chunk::encoding)?),
            4 => repetition = Some(reader.expect(field, Kind::I32, chunk::encoding)?),
            5 => {
                statistics =
                    reader.expect(field, Kind::Struct, |reader| read_statistics(reader, keeps_statistics))?
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing = |why| Stop::Corrupt(reader.at(), why);
    Ok(DataPageHeader {
        values: values.ok_or_else(|| missing("a data page without a number of values"))?,
        encoding: encoding.ok_or_else(|| missing("a data page without an encoding"))?,
        // Required by the format; writers of flat required columns have left them out.
        definition_encoding: definition.unwrap_or(Encoding::Rle),
        repetition_encoding: repetition.unwrap_or(Encoding::Rle),
        statistics,
    })
}

fn read_data_v2(reader: &mut Reader<'_>, keeps_statistics: bool) -> Thrift<DataPageHeaderV2> {
    let (mut values, mut nulls, mut rows, mut encoding) = (None, None, None, None);
    let (mut definition, mut repetition, mut is_compressed, mut statistics) = (None, None, true, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => values = Some(reader.expect(field, Kind::I32, count)?),
            2 => nulls = Some(reader.expect(field, Kind::I32, count)?),
            3 => rows = Some(reader.expect(field, Kind::I32, count)?),
            4 => encoding = Some(reader.expect(field, Kind::I32, chunk::encoding)?),
            5 => definition = Some(reader.expect(field, Kind::I32, count)?),
            6 => repetition = Some(reader.expect(field, Kind::I32, count)?),
            7 => is_compressed = reader.bool(field)?,
            8 => {
                statistics =
                    reader.expect(field, Kind::Struct, |reader| read_statistics(reader, keeps_statistics))?
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing = |why| Stop::Corrupt(reader.at(), why);
    Ok(DataPageHeaderV2 {
        values: values.ok_or_else(|| missing("a V2 data page without a number of values"))?,
        nulls: nulls.ok_or_else(|| missing("a V2 data page without a number of nulls"))?,
        rows: rows.ok_or_else(|| missing("a V2 data page without a number of rows"))?,
        encoding: encoding.ok_or_else(|| missing("a V2 data page without an encoding"))?,
        definition_bytes: definition
            .ok_or_else(|| missing("a V2 data page without its definition levels' length"))?,
        repetition_bytes: repetition
            .ok_or_else(|| missing("a V2 data page without its repetition levels' length"))?,
        is_compressed,
        statistics,
    })
}

fn read_statistics(reader: &mut Reader<'_>, keeps: bool) -> Thrift<Option<Box<Statistics>>> {
    if keeps {
        return chunk::short_statistics(reader).map(|statistics| Some(Box::new(statistics)));
    }
    chunk::check_statistics(reader).map(|()| None)
}

fn read_dictionary(reader: &mut Reader<'_>) -> Thrift<DictionaryPageHeader> {
    let (mut values, mut encoding, mut is_sorted) = (None, None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => values = Some(reader.expect(field, Kind::I32, count)?),
            2 => encoding = Some(reader.expect(field, Kind::I32, chunk::encoding)?),
            3 => is_sorted = Some(reader.bool(field)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing = |why| Stop::Corrupt(reader.at(), why);
    Ok(DictionaryPageHeader {
        values: values.ok_or_else(|| missing("a dictionary page without a number of values"))?,
        encoding: encoding.ok_or_else(|| missing("a dictionary page without an encoding"))?,
        is_sorted,
    })
}

/// A count, which Thrift stores as a signed number.
fn count(reader: &mut Reader<'_>) -> Thrift<u32> {
    let number = reader.i32()?;
    u32::try_from(number).or_else(|_| reader.corrupt("a negative count or size"))
}
