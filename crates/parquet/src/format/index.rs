//! The page index: the positions of a column chunk's pages (`OffsetIndex`), and the bounds of their values
//! (`ColumnIndex`).
//!
//! Source: parquet-format's `PageIndex.md`, and the two structures of `parquet.thrift`.

use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use crate::thrift::{Field, Fields, Kind, Reader, Skim, Stop, Thrift, WHOLE_BYTES_MAX, Wanted};
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Bytes, Error, Limits, Price, Result};

/// The positions of a column chunk's data pages (`OffsetIndex`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetIndex {
    /// The data pages, in order. The dictionary page is not among them.
    pub pages: Vec<PageLocation>,
    /// For each page, the bytes of its BYTE_ARRAY values, without their lengths and before encoding.
    pub unencoded_byte_array_data_bytes: Option<Vec<u64>>,
}

/// The position of a data page (`PageLocation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLocation {
    /// Where its header starts in the file.
    pub offset: u64,
    /// Its bytes in the file, with its header.
    pub compressed_bytes: u32,
    /// Its first row, counted from the row group's first.
    pub first_row: u64,
}

/// The bounds of the values of each data page (`ColumnIndex`). How they are ordered is the column's
/// [`ColumnOrder`](super::ColumnOrder); [`crate::prune`] says which of them can be trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnIndex {
    /// For each page, whether it has only nulls. Its bounds are then empty.
    pub null_pages: Vec<bool>,
    /// For each page, the smallest value or a lower bound.
    pub min_values: ByteStrings,
    /// For each page, the largest value or an upper bound.
    pub max_values: ByteStrings,
    /// Whether the bounds of the pages ascend or descend.
    pub boundary_order: BoundaryOrder,
    /// For each page, the number of nulls.
    pub null_counts: Option<Vec<u64>>,
    /// For each page, the number of NaNs.
    pub nan_counts: Option<Vec<u64>>,
    /// For each page, the counts of each repetition level; the pages' counts are concatenated.
    pub repetition_level_histograms: Option<Vec<u64>>,
    /// The same of definition levels.
    pub definition_level_histograms: Option<Vec<u64>>,
}

/// Whether lower and upper bounds are both sorted, and how (`BoundaryOrder`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoundaryOrder {
    /// Not sorted, or the writer did not say.
    #[default]
    Unordered,
    /// Each is at least the previous one.
    Ascending,
    /// Each is at most the previous one.
    Descending,
    /// An order that this version does not know.
    Unknown(i32),
}

/// Byte strings in one shared buffer.
#[derive(Debug, Clone, Default)]
pub struct ByteStrings {
    bytes: Bytes,
    /// Start and end of each; an index is at most 2 GiB long.
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

    /// Returns one of them; empty if `at` is beyond the end.
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

/// Strings after the first 4 GiB in total are left out.
impl<B: AsRef<[u8]>> FromIterator<B> for ByteStrings {
    fn from_iter<I: IntoIterator<Item = B>>(strings: I) -> ByteStrings {
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for string in strings {
            let start = u32::try_from(bytes.len());
            bytes.extend_from_slice(string.as_ref());
            if let (Ok(start), Ok(end)) = (start, u32::try_from(bytes.len())) {
                ranges.push((start, end));
            }
        }
        ByteStrings { bytes: bytes.into(), ranges }
    }
}

/// Equal if the strings are, wherever they are stored.
impl PartialEq for ByteStrings {
    fn eq(&self, other: &ByteStrings) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ByteStrings {}

impl OffsetIndex {
    /// The number of rows of a page, in a row group of `group_rows`. `None` if there is no such page.
    pub fn rows(&self, page: usize, group_rows: u64) -> Option<u64> {
        let first = self.pages.get(page)?.first_row;
        let end = self.pages.get(page + 1).map_or(group_rows, |next| next.first_row);
        end.checked_sub(first)
    }
}

impl ColumnIndex {
    /// The number of data pages.
    pub fn pages(&self) -> usize {
        self.null_pages.len()
    }

    /// The count of each definition level in a page, from 0 on. Empty if the writer did not say.
    pub fn definition_levels(&self, page: usize) -> &[u64] {
        self.histogram(&self.definition_level_histograms, page)
    }

    /// The count of each repetition level in a page, from 0 on. Empty if the writer did not say.
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

/// The price of reading an element of a list, and a byte of an index.
const ELEMENT_PRICE: Price = Price { kib: 1024, kilovalue: 30 << 10 };

/// Elements that are read before the budget is looked at again.
const ELEMENTS_AT_ONCE: usize = 256;

/// The same in bytes: an element can have any number of unknown fields.
const BYTES_AT_ONCE: usize = 16 << 10;

/// What both indexes have in common: a structure with long lists.
#[derive(Debug)]
struct Walk {
    what: &'static str,
    bytes: Bytes,
    /// Where the bytes are in the file, for errors.
    base: u64,
    at: usize,
    last: i16,
    /// The list that is being read, by its field's number, and how many elements are left.
    list: Option<(i16, usize)>,
    /// A field or an element that is long.
    skim: Option<Box<Skim>>,
    limits: Limits,
}

/// Reads the fields of an index.
trait ReadFields {
    /// The known fields; lists by their heads.
    const KNOWN: Fields;

    /// Begins a field. `Some(length)`: it is a list, whose elements are read one by one. `None`: it has been read.
    fn begin(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Option<usize>>;

    /// The known fields of a list's elements, if they are structures.
    fn known_elements(list: i16) -> Option<Fields>;

    /// Makes room for the elements of a list, but for no more than the remaining `bytes` can hold: otherwise they would
    /// be moved as the list grows.
    fn reserve(&mut self, list: i16, elements: usize, bytes: usize) -> Result<(), TryReserveError>;

    /// Reads an element of a list.
    fn element(&mut self, reader: &mut Reader<'_>, list: i16) -> Thrift<()>;
}

impl Walk {
    fn new(what: &'static str, bytes: Bytes, base: u64, limits: &Limits) -> Walk {
        Walk { what, bytes, base, at: 0, last: 0, list: None, skim: None, limits: *limits }
    }

    /// Continues reading. True at the structure's end, false if the budget is spent.
    fn step<F: ReadFields>(&mut self, fields: &mut F, budget: &mut Budget<'_>) -> Result<bool> {
        let bytes = self.bytes.clone();
        loop {
            let before = self.at;
            let list_before = self.list;
            let stop = |walk: &Walk, stop: Stop| stop.into_error(walk.what, walk.base + u64_of(before));
            let (ended, elements) = match self.skim.take() {
                Some(skim) => self.skim_on(skim, &bytes, fields, budget)?,
                None if self.list.is_some() => {
                    (false, self.elements(&bytes, fields).map_err(|it| stop(self, it))?)
                }
                None => (self.field(&bytes, fields).map_err(|it| stop(self, it))?, 1),
            };
            if let (None, Some((list, length))) = (list_before, self.list) {
                let rest = bytes.len() - self.at;
                fields.reserve(list, length, rest).map_err(|_| Error::out_of_memory(rest))?;
            }
            if self.skim.is_none() {
                budget.charge(ELEMENT_PRICE, self.at - before, elements);
            }
            if ended {
                return Ok(true);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Reads some elements of a list and returns how many.
    fn elements<F: ReadFields>(&mut self, bytes: &[u8], fields: &mut F) -> Thrift<usize> {
        let Some((list, left)) = self.list else { return Ok(0) };
        let known = F::known_elements(list);
        // Only structures must be looked at byte by byte.
        let end = if known.is_some() { self.at.saturating_add(2 * BYTES_AT_ONCE) } else { usize::MAX };
        let window = bytes.get(..end).unwrap_or(bytes);
        let mut reader = Reader::new(window, self.at);
        let (start, mut done) = (self.at, 0);
        while done < left && done < ELEMENTS_AT_ONCE && reader.at() - start < BYTES_AT_ONCE {
            match fields.element(&mut reader, list) {
                Err(Stop::End) if window.len() < bytes.len() => {
                    if let (0, Some(known)) = (done, known) {
                        let at = self.base + u64_of(self.at);
                        self.skim = Some(Box::new(Skim::structure(self.what, at, known, &self.limits)));
                    }
                    break;
                }
                read => read?,
            }
            done += 1;
            self.at = reader.at();
        }
        self.list = (left > done).then_some((list, left - done));
        Ok(done)
    }

    /// Reads a field, or the head of one that is a list. True at the structure's end.
    fn field<F: ReadFields>(&mut self, bytes: &[u8], fields: &mut F) -> Thrift<bool> {
        let window = bytes.get(..self.at.saturating_add(WHOLE_BYTES_MAX)).unwrap_or(bytes);
        let mut reader = Reader::new(window, self.at);
        match self.begin(&mut reader, fields) {
            Err(Stop::End) if window.len() < bytes.len() => {
                let at = self.base + u64_of(self.at);
                self.skim = Some(Box::new(Skim::field(self.what, at, self.last, F::KNOWN, &self.limits)));
                Ok(false)
            }
            ended => {
                let ended = ended?;
                self.at = reader.at();
                Ok(ended)
            }
        }
    }

    fn begin<F: ReadFields>(&mut self, reader: &mut Reader<'_>, fields: &mut F) -> Thrift<bool> {
        let Some(field) = reader.field(self.last)? else { return Ok(true) };
        let list = match fields.begin(reader, field) {
            Ok(Some(length)) => (length > 0).then_some((field.id, length)),
            Ok(None) => None,
            Err(Stop::OtherType) => {
                reader.skip(field.kind)?;
                None
            }
            Err(stop) => return Err(stop),
        };
        (self.last, self.list) = (field.id, list);
        Ok(false)
    }

    /// Continues with a long field or element. Returns whether the structure has ended, and how many were read.
    fn skim_on<F: ReadFields>(
        &mut self,
        mut skim: Box<Skim>,
        bytes: &Bytes,
        fields: &mut F,
        budget: &mut Budget<'_>,
    ) -> Result<(bool, usize)> {
        let is_whole = skim.step(&bytes.slice(self.at..), budget)?;
        self.at = usize_of(skim.at() - self.base).unwrap_or(usize::MAX).min(bytes.len());
        if !is_whole {
            if self.at == bytes.len() && skim.wants() > 0 {
                return Err(Stop::End.into_error(self.what, skim.start()));
            }
            self.skim = Some(skim);
            return Ok((false, 0));
        }
        let read = match self.list {
            Some((list, left)) => skim.read(|reader| fields.element(reader, list)).map(|()| {
                self.list = (left > 1).then_some((list, left - 1));
                false
            }),
            None => skim.read(|reader| self.begin(reader, fields)),
        };
        Ok((read.map_err(|stop| stop.into_error(self.what, skim.start()))?, 1))
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
    /// The range of the chunk's pages; below, their number of rows.
    chunk: Range<u64>,
    rows: u64,
    pages: Option<Vec<PageLocation>>,
    unencoded: Option<Vec<u64>>,
}

impl OffsetIndexParser {
    /// A parser of an index in `bytes`, from `base` in the file, of a chunk whose pages are in `chunk` and have `rows`
    /// rows.
    pub(crate) fn new(
        bytes: Bytes,
        base: u64,
        chunk: Range<u64>,
        rows: u64,
        limits: &Limits,
    ) -> OffsetIndexParser {
        let walk = Walk::new("the offset index", bytes, base, limits);
        OffsetIndexParser { walk, fields: OffsetFields { chunk, rows, ..OffsetFields::default() } }
    }

    /// Continues reading. `None` if the budget is spent.
    ///
    /// # Errors
    ///
    /// `Corrupt` for anything but an offset index, and for pages that are out of order, outside the chunk, or do not
    /// cover its rows.
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

impl ReadFields for OffsetFields {
    const KNOWN: Fields = &[(1, Wanted::Head), (2, Wanted::Head)];

    fn known_elements(list: i16) -> Option<Fields> {
        const PAGE_LOCATION: Fields = &[(1, Wanted::Scalar), (2, Wanted::Scalar), (3, Wanted::Scalar)];
        (list == 1).then_some(PAGE_LOCATION)
    }

    fn reserve(&mut self, list: i16, elements: usize, bytes: usize) -> Result<(), TryReserveError> {
        match (list, &mut self.pages, &mut self.unencoded) {
            // A location takes at least seven bytes.
            (1, Some(pages), _) => pages.try_reserve_exact(elements.min(bytes / 7)),
            (2, _, Some(sizes)) => sizes.try_reserve_exact(elements.min(bytes)),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Option<usize>> {
        match field.id {
            1 => {
                let length = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                self.pages = Some(Vec::new());
                Ok(Some(length))
            }
            2 => {
                let length = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::I64))?;
                // Some writers leave an empty list if they have no sizes.
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
    /// Checks that a page fits between the previous one, its chunk's end and its row group's rows.
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
    /// A parser of an index in `bytes`, from `base` in the file.
    pub(crate) fn new(bytes: Bytes, base: u64, limits: &Limits) -> ColumnIndexParser {
        let mut fields = ColumnFields::default();
        fields.index.min_values.bytes = bytes.clone();
        fields.index.max_values.bytes = bytes.clone();
        let walk = Walk::new("the column index", bytes, base, limits);
        ColumnIndexParser { walk, fields }
    }

    /// Continues reading. `None` if the budget is spent. `definition_max` and `repetition_max` are the leaf's maximum
    /// levels.
    ///
    /// # Errors
    ///
    /// `Corrupt` for anything but a column index, and for lists whose lengths differ from the number of pages.
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

impl ReadFields for ColumnFields {
    const KNOWN: Fields = &[
        (1, Wanted::Head),
        (2, Wanted::Head),
        (3, Wanted::Head),
        (4, Wanted::Scalar),
        (5, Wanted::Head),
        (6, Wanted::Head),
        (7, Wanted::Head),
        (8, Wanted::Head),
    ];

    fn known_elements(_list: i16) -> Option<Fields> {
        None
    }

    fn reserve(&mut self, list: i16, elements: usize, bytes: usize) -> Result<(), TryReserveError> {
        let elements = elements.min(bytes);
        let index = &mut self.index;
        let counts = match list {
            1 => return index.null_pages.try_reserve_exact(elements),
            2 => return index.min_values.ranges.try_reserve_exact(elements),
            3 => return index.max_values.ranges.try_reserve_exact(elements),
            5 => &mut index.null_counts,
            6 => &mut index.repetition_level_histograms,
            7 => &mut index.definition_level_histograms,
            _ => &mut index.nan_counts,
        };
        counts.as_mut().map_or(Ok(()), |counts| counts.try_reserve_exact(elements))
    }

    fn begin(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Option<usize>> {
        let list = |reader: &mut Reader<'_>, kind| {
            reader.expect(field, Kind::List, |reader| reader.list_of(kind)).map(Some)
        };
        let index = &mut self.index;
        // A repeated list replaces the previous one. Some writers leave empty lists for optional fields that they do
        // not have.
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
            // 1 is true; false is 2, or 0 in older writers.
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

/// The length of a list of booleans, whose element type may be either boolean.
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

/// Reads a count of a list. An invalid count makes the list unknown, as in `Statistics`: parquet-mr has written -1 for
/// it.
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
