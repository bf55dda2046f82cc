//! The page index: where the pages of a column chunk are (`OffsetIndex`), and what bounds their values have (`ColumnIndex`).
//!
//! Source: parquet-format's `PageIndex.md`, and the two structures of `parquet.thrift`.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Budget, Bytes, Error, Price, Result};

use super::thrift::{Field, Kind, Reader, Stop, Thrift};

/// Where the data pages of a column chunk are (`OffsetIndex`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetIndex {
    /// The data pages, in order. The dictionary page is not among them.
    pub pages: Vec<PageLocation>,
    /// Of each page the bytes of its BYTE_ARRAY values, without their lengths, as if none were encoded.
    pub unencoded_byte_array_data_bytes: Option<Vec<u64>>,
}

/// Where a data page is (`PageLocation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLocation {
    /// Where its header starts in the file.
    pub offset: u64,
    /// Its bytes in the file, with its header.
    pub compressed_bytes: u32,
    /// Its first row, counted from the row group's first.
    pub first_row: u64,
}

/// What bounds the values of each data page have (`ColumnIndex`). How they are ordered is the column's
/// [`ColumnOrder`](super::ColumnOrder); which of them can be trusted says [`crate::prune`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnIndex {
    /// Of each page whether it has nothing but nulls. Its bounds are then empty.
    pub null_pages: Vec<bool>,
    /// Of each page the smallest value or a lower bound.
    pub min_values: ByteStrings,
    /// Of each page the largest value or an upper bound.
    pub max_values: ByteStrings,
    /// Whether the bounds of the pages ascend or descend.
    pub boundary_order: BoundaryOrder,
    /// Of each page its nulls.
    pub null_counts: Option<Vec<u64>>,
    /// Of each page its NaNs.
    pub nan_counts: Option<Vec<u64>>,
    /// Of each page how often each repetition level stands in it, one page's counts after the other's.
    pub repetition_level_histograms: Option<Vec<u64>>,
    /// The same of definition levels.
    pub definition_level_histograms: Option<Vec<u64>>,
}

/// Whether lower and upper bounds are both sorted, and how (`BoundaryOrder`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoundaryOrder {
    /// They are not, or nobody said.
    #[default]
    Unordered,
    /// Each of them is at least the one before.
    Ascending,
    /// Each of them is at most the one before.
    Descending,
    /// An order that this version does not know.
    Unknown(i32),
}

/// Strings of bytes that stand in one buffer, which they share.
#[derive(Debug, Clone, Default)]
pub struct ByteStrings {
    bytes: Bytes,
    /// Start and end of each; an index has no more than 2 GiB.
    ranges: Vec<(u32, u32)>,
}

impl ByteStrings {
    /// How many.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// One of them; empty when it is not there.
    pub fn get(&self, at: usize) -> &[u8] {
        let range = self.ranges.get(at).and_then(|&(start, end)| {
            self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
        });
        range.unwrap_or_default()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }
}

/// Equal strings are equal, wherever they stand.
impl PartialEq for ByteStrings {
    fn eq(&self, other: &ByteStrings) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ByteStrings {}

impl OffsetIndex {
    /// Rows of a page, in a row group of `group_rows`. `None` when the page is not there.
    pub fn rows(&self, page: usize, group_rows: u64) -> Option<u64> {
        let first = self.pages.get(page)?.first_row;
        let end = self.pages.get(page + 1).map_or(group_rows, |next| next.first_row);
        end.checked_sub(first)
    }
}

impl ColumnIndex {
    /// Data pages.
    pub fn pages(&self) -> usize {
        self.null_pages.len()
    }

    /// How often each definition level stands in a page, from 0 on. Empty when the writer did not say.
    pub fn definition_levels(&self, page: usize) -> &[u64] {
        self.histogram(&self.definition_level_histograms, page)
    }

    /// How often each repetition level stands in a page, from 0 on. Empty when the writer did not say.
    pub fn repetition_levels(&self, page: usize) -> &[u64] {
        self.histogram(&self.repetition_level_histograms, page)
    }

    fn histogram<'a>(&self, all: &'a Option<Vec<u64>>, page: usize) -> &'a [u64] {
        let Some(all) = all else { return &[] };
        let levels = all.len() / self.pages().max(1);
        let range = page.checked_mul(levels).and_then(|start| Some(start..start.checked_add(levels)?));
        range.and_then(|range| all.get(range)).unwrap_or_default()
    }
}

/// What an element of a list costs to read, and a byte of an index.
const ELEMENT_PRICE: Price = Price { kib: 1024, kilovalue: 20 * 1024 };

/// Elements that are read before the budget is looked at again.
const ELEMENTS_AT_ONCE: usize = 256;

/// The same in bytes: an element can have any number of fields that nobody knows.
const BYTES_AT_ONCE: usize = 16 << 10;

/// What both indexes are: a structure whose lists are long.
#[derive(Debug)]
struct Walk {
    what: &'static str,
    bytes: Bytes,
    /// Where the bytes stand in the file, for errors.
    base: u64,
    at: usize,
    last: i16,
    /// The list that is being read, by its field's number, and how many of its elements are left.
    list: Option<(i16, usize)>,
}

/// What reads the fields of an index.
trait Fields {
    /// Begins a field. `Some`: it is a list of so many elements, which are read one by one. `None`: it was read.
    fn begin(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Option<usize>>;

    /// Reads one element of a list.
    fn element(&mut self, reader: &mut Reader<'_>, list: i16) -> Thrift<()>;
}

impl Walk {
    /// Reads on. True at the structure's end, false when the budget is spent.
    fn step(&mut self, fields: &mut impl Fields, budget: &mut Budget<'_>) -> Result<bool> {
        let bytes = self.bytes.clone();
        let mut reader = Reader::new(&bytes, self.at);
        loop {
            let before = reader.at();
            let (ended, elements) = self
                .some(fields, &mut reader)
                .map_err(|stop| stop.into_error(self.what, self.base, bytes.len()))?;
            self.at = reader.at();
            budget.charge(ELEMENT_PRICE, self.at - before, elements);
            if ended {
                return Ok(true);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Reads a field, or some elements of a list: whether the structure has ended, and how many.
    fn some(&mut self, fields: &mut impl Fields, reader: &mut Reader<'_>) -> Thrift<(bool, usize)> {
        if let Some((list, left)) = self.list {
            let (start, mut done) = (reader.at(), 0);
            while done < left && done < ELEMENTS_AT_ONCE && reader.at() - start < BYTES_AT_ONCE {
                fields.element(reader, list)?;
                done += 1;
            }
            self.list = (left > done).then_some((list, left - done));
            return Ok((false, done));
        }
        let Some(field) = reader.field(self.last)? else { return Ok((true, 1)) };
        self.last = field.id;
        match fields.begin(reader, field) {
            Ok(Some(length)) => self.list = (length > 0).then_some((field.id, length)),
            Ok(None) => {}
            Err(Stop::OtherType) => reader.skip(field.kind)?,
            Err(stop) => return Err(stop),
        }
        Ok((false, 1))
    }

    fn corrupt(&self, why: impl core::fmt::Display) -> Error {
        Error::corrupt(format!("{}: {why}", self.what)).at_offset(self.base)
    }
}

/// Reads an offset index, resumably.
#[derive(Debug)]
pub(crate) struct OffsetIndexParser {
    walk: Walk,
    fields: OffsetFields,
}

#[derive(Debug, Default)]
struct OffsetFields {
    /// Where pages can be, and how many rows they can have.
    chunk: Range<u64>,
    rows: u64,
    pages: Option<Vec<PageLocation>>,
    unencoded: Option<Vec<u64>>,
}

impl OffsetIndexParser {
    /// A parser of an index that is `bytes`, at `base` of the file, of a chunk whose pages stand in `chunk` and have `rows`.
    pub(crate) fn new(bytes: Bytes, base: u64, chunk: Range<u64>, rows: u64) -> OffsetIndexParser {
        let walk = Walk { what: "the offset index", bytes, base, at: 0, last: 0, list: None };
        OffsetIndexParser { walk, fields: OffsetFields { chunk, rows, ..OffsetFields::default() } }
    }

    /// Reads on. `None` when the budget is spent.
    ///
    /// # Errors
    ///
    /// `Corrupt` for what is no such index, and for pages that are not in order, not in the chunk, or do not hold its rows.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<OffsetIndex>> {
        if !self.walk.step(&mut self.fields, budget)? {
            return Ok(None);
        }
        let OffsetFields { pages, unencoded, rows, .. } = core::mem::take(&mut self.fields);
        let pages = pages.ok_or_else(|| self.walk.corrupt("no list of pages"))?;
        if pages.is_empty() && rows > 0 {
            return Err(self.walk.corrupt(format!("no pages of {rows} rows")));
        }
        if let Some(sizes) = &unencoded
            && sizes.len() != pages.len()
        {
            let why = format!("sizes of {} pages, and {} pages", sizes.len(), pages.len());
            return Err(self.walk.corrupt(why));
        }
        Ok(Some(OffsetIndex { pages, unencoded_byte_array_data_bytes: unencoded }))
    }
}

impl Fields for OffsetFields {
    fn begin(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Option<usize>> {
        match field.id {
            1 => {
                let length = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                self.pages = Some(Vec::new());
                Ok(Some(length))
            }
            2 => {
                let length = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::I64))?;
                // Some writers leave an empty list where they have no sizes.
                self.unencoded = (length > 0).then(Vec::new);
                Ok(Some(length))
            }
            _ => Err(Stop::OtherType),
        }
    }

    fn element(&mut self, reader: &mut Reader<'_>, list: i16) -> Thrift<()> {
        if list == 1 {
            let page = page_location(reader)?;
            self.check(&page).or_else(|why| reader.corrupt(why))?;
            self.pages.get_or_insert_default().push(page);
        } else {
            count_into(&mut self.unencoded, reader)?;
        }
        Ok(())
    }
}

impl OffsetFields {
    /// Checks that a page stands where the one before, its chunk and its row group leave room for it.
    fn check(&self, page: &PageLocation) -> Result<(), &'static str> {
        let before = self.pages.as_ref().and_then(|pages| pages.last());
        let start = before.map_or(self.chunk.start, |page| page.offset + u64::from(page.compressed_bytes));
        if page.offset < start {
            return Err("a page that begins before the end of the one before, or before its chunk");
        }
        let end = page.offset.checked_add(page.compressed_bytes.into());
        if page.compressed_bytes == 0 || end.is_none_or(|end| end > self.chunk.end) {
            return Err("a page without bytes, or beyond its chunk");
        }
        match before {
            None if page.first_row > 0 => Err("a first page that does not begin with the first row"),
            Some(before) if page.first_row <= before.first_row => {
                Err("a page that does not begin after the first row of the one before")
            }
            Some(_) if page.first_row >= self.rows => Err("a page beyond the rows of its row group"),
            _ => Ok(()),
        }
    }
}

fn page_location(reader: &mut Reader<'_>) -> Thrift<PageLocation> {
    let (mut offset, mut bytes, mut row) = (None, None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => offset = Some(reader.expect(field, Kind::I64, count)?),
            2 => bytes = Some(reader.expect(field, Kind::I32, Reader::i32)?),
            3 => row = Some(reader.expect(field, Kind::I64, count)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    match (offset, bytes, row) {
        (Some(offset), Some(compressed_bytes), Some(first_row)) => {
            Ok(PageLocation { offset, compressed_bytes, first_row })
        }
        _ => reader.corrupt("a page without its offset, its size or its first row"),
    }
}

/// Reads a column index, resumably.
#[derive(Debug)]
pub(crate) struct ColumnIndexParser {
    walk: Walk,
    fields: ColumnFields,
}

#[derive(Debug, Default)]
struct ColumnFields {
    index: ColumnIndex,
    has_null_pages: bool,
    has_min: bool,
    has_max: bool,
    has_order: bool,
}

impl ColumnIndexParser {
    /// A parser of an index that is `bytes`, at `base` of the file.
    pub(crate) fn new(bytes: Bytes, base: u64) -> ColumnIndexParser {
        let mut fields = ColumnFields::default();
        fields.index.min_values.bytes = bytes.clone();
        fields.index.max_values.bytes = bytes.clone();
        let walk = Walk { what: "the column index", bytes, base, at: 0, last: 0, list: None };
        ColumnIndexParser { walk, fields }
    }

    /// Reads on. `None` when the budget is spent. `definition_max` and `repetition_max` are the leaf's.
    ///
    /// # Errors
    ///
    /// `Corrupt` for what is no such index, and for lists that are not as long as there are pages.
    pub(crate) fn step(
        &mut self,
        definition_max: u16,
        repetition_max: u16,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ColumnIndex>> {
        if !self.walk.step(&mut self.fields, budget)? {
            return Ok(None);
        }
        let fields = core::mem::take(&mut self.fields);
        if !(fields.has_null_pages && fields.has_min && fields.has_max && fields.has_order) {
            return Err(self.walk.corrupt("one of its required fields is not there"));
        }
        let index = fields.index;
        let pages = index.pages();
        let check = |list: &str, length: usize, of_page: usize| {
            if pages.checked_mul(of_page) == Some(length) {
                return Ok(());
            }
            Err(self.walk.corrupt(format!("{length} {list} of {pages} pages")))
        };
        check("lower bounds", index.min_values.len(), 1)?;
        check("upper bounds", index.max_values.len(), 1)?;
        let length = |list: &Option<Vec<u64>>| list.as_ref().map(Vec::len);
        if let Some(length) = length(&index.null_counts) {
            check("counts of nulls", length, 1)?;
        }
        if let Some(length) = length(&index.nan_counts) {
            check("counts of NaNs", length, 1)?;
        }
        if let Some(length) = length(&index.repetition_level_histograms) {
            check("counts of repetition levels", length, usize::from(repetition_max) + 1)?;
        }
        if let Some(length) = length(&index.definition_level_histograms) {
            check("counts of definition levels", length, usize::from(definition_max) + 1)?;
        }
        Ok(Some(index))
    }
}

impl Fields for ColumnFields {
    fn begin(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Option<usize>> {
        let list = |reader: &mut Reader<'_>, kind| {
            reader.expect(field, Kind::List, |reader| reader.list_of(kind)).map(Some)
        };
        let index = &mut self.index;
        // A list that comes again stands for the one before. Empty ones of what is optional are what some writers leave
        // where they have none.
        let counts = |reader: &mut Reader<'_>, counts: &mut Option<Vec<u64>>| {
            let length = list(reader, Kind::I64)?;
            *counts = length.filter(|&length| length > 0).map(|_| Vec::new());
            Ok(length)
        };
        match field.id {
            1 => {
                let length = reader.expect(field, Kind::List, bools)?;
                index.null_pages.clear();
                self.has_null_pages = true;
                Ok(Some(length))
            }
            2 => {
                let length = list(reader, Kind::Binary)?;
                index.min_values.ranges.clear();
                self.has_min = true;
                Ok(length)
            }
            3 => {
                let length = list(reader, Kind::Binary)?;
                index.max_values.ranges.clear();
                self.has_max = true;
                Ok(length)
            }
            4 => {
                index.boundary_order = match reader.expect(field, Kind::I32, Reader::i32)? {
                    0 => BoundaryOrder::Unordered,
                    1 => BoundaryOrder::Ascending,
                    2 => BoundaryOrder::Descending,
                    other => BoundaryOrder::Unknown(other),
                };
                self.has_order = true;
                Ok(None)
            }
            5 => counts(reader, &mut index.null_counts),
            6 => counts(reader, &mut index.repetition_level_histograms),
            7 => counts(reader, &mut index.definition_level_histograms),
            8 => counts(reader, &mut index.nan_counts),
            _ => Err(Stop::OtherType),
        }
    }

    fn element(&mut self, reader: &mut Reader<'_>, list: i16) -> Thrift<()> {
        let index = &mut self.index;
        let counts = match list {
            // 1 is true; false is 2, or 0 as older writers have it.
            1 => {
                index.null_pages.push(reader.i8()? == 1);
                return Ok(());
            }
            2 => return string(reader, &mut index.min_values),
            3 => return string(reader, &mut index.max_values),
            5 => &mut index.null_counts,
            6 => &mut index.repetition_level_histograms,
            7 => &mut index.definition_level_histograms,
            _ => &mut index.nan_counts,
        };
        count_into(counts, reader)
    }
}

/// The length of a list of booleans, whose element type stands for both.
fn bools(reader: &mut Reader<'_>) -> Thrift<usize> {
    match reader.list()? {
        (Kind::True | Kind::False, length) | (_, length @ 0) => Ok(length),
        _ => reader.corrupt("a list of another type"),
    }
}

fn string(reader: &mut Reader<'_>, strings: &mut ByteStrings) -> Thrift<()> {
    let length = reader.binary()?.len();
    let place = |at: usize| u32::try_from(at).or_else(|_| reader.corrupt("an index beyond 4 GiB"));
    let range = (place(reader.at() - length)?, place(reader.at())?);
    strings.ranges.push(range);
    Ok(())
}

/// Reads a count of a list. One that cannot be makes the list unknown, as in `Statistics`: parquet-mr has written -1 for it.
fn count_into(counts: &mut Option<Vec<u64>>, reader: &mut Reader<'_>) -> Thrift<()> {
    let number = u64::try_from(reader.i64()?);
    match (&mut *counts, number) {
        (Some(list), Ok(number)) => list.push(number),
        _ => *counts = None,
    }
    Ok(())
}

fn count(reader: &mut Reader<'_>) -> Thrift<u64> {
    let number = reader.i64()?;
    u64::try_from(number).or_else(|_| reader.corrupt("a negative count, size or offset"))
}
