//! The page index: the positions of a column chunk's pages (`OffsetIndex`), and the bounds of their values
//! (`ColumnIndex`).
//!
//! Source: parquet-format's `PageIndex.md`, and the two structures of `parquet.thrift`.

mod strings;

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use crate::thrift::{Field, Fields, Kind, Reader, Skim, Stop, Thrift, WHOLE_BYTES_MAX, Wanted};
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Error, Input, Limits, Price, Release, Result, Segmented, release_all};

pub use strings::ByteStrings;
use strings::Window;

/// The positions of a column chunk's data pages (`OffsetIndex`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetIndex {
    /// The data pages, in order. The dictionary page is not among them.
    pub pages: Segmented<PageLocation>,
    /// For each page, the bytes of its BYTE_ARRAY values, without their lengths and before encoding.
    pub unencoded_byte_array_data_bytes: Option<Segmented<u64>>,
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
    pub null_pages: Segmented<bool>,
    /// For each page, the smallest value or a lower bound.
    pub min_values: ByteStrings,
    /// For each page, the largest value or an upper bound.
    pub max_values: ByteStrings,
    /// Whether the bounds of the pages ascend or descend.
    pub boundary_order: BoundaryOrder,
    /// For each page, the number of nulls.
    pub null_counts: Option<Segmented<u64>>,
    /// For each page, the number of NaNs.
    pub nan_counts: Option<Segmented<u64>>,
    /// For each page, the counts of each repetition level; the pages' counts are concatenated.
    pub repetition_level_histograms: Option<Segmented<u64>>,
    /// The same of definition levels.
    pub definition_level_histograms: Option<Segmented<u64>>,
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
    pub fn definition_levels(&self, page: usize) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.histogram(self.definition_level_histograms.as_ref(), page)
    }

    /// The count of each repetition level in a page, from 0 on. Empty if the writer did not say.
    pub fn repetition_levels(&self, page: usize) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.histogram(self.repetition_level_histograms.as_ref(), page)
    }

    fn histogram<'a>(
        &self,
        all: Option<&'a Segmented<u64>>,
        page: usize,
    ) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        static NONE: Segmented<u64> = Segmented::new();
        let all = all.unwrap_or(&NONE);
        let levels = all.len() / self.pages().max(1);
        all.iter_from(page.saturating_mul(levels)).take(levels).copied()
    }
}

impl Release for OffsetIndex {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        // The last is released first, as it was allocated: an allocator returns memory from its end on.
        release_all(&mut [&mut self.unencoded_byte_array_data_bytes, &mut self.pages], budget)
    }
}

impl Release for PageLocation {}

impl Release for ColumnIndex {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let parts: &mut [&mut dyn Release] = &mut [
            &mut self.nan_counts,
            &mut self.definition_level_histograms,
            &mut self.repetition_level_histograms,
            &mut self.null_counts,
            &mut self.max_values,
            &mut self.min_values,
            &mut self.null_pages,
        ];
        release_all(parts, budget)
    }
}

/// The price of reading an element of a list, and a byte of an index.
const ELEMENT_PRICE: Price = Price { kib: 1024, kilovalue: 30 << 10 };

/// Elements that are read before the budget is looked at again.
const ELEMENTS_AT_ONCE: usize = 256;

/// The same in bytes: an element can have any number of unknown fields.
const BYTES_AT_ONCE: usize = 16 << 10;

/// The price of joining what is cut by the end of a piece, in memory that is new; each piece has its own.
const JOIN_PRICE: Price = Price { kib: 600, kilovalue: 50 * 1024 };

/// Bytes that are joined at a time.
const JOIN_BYTES: u64 = 64 << 10;

/// Bytes of a window, at least, if the index has as many.
const WINDOW_BYTES_MIN: usize = WHOLE_BYTES_MAX;

/// What both indexes have in common: a structure with long lists.
///
/// It is read through windows: the pieces that the host supplied, or copies of the places where these meet.
#[derive(Debug)]
struct Walk {
    what: &'static str,
    /// Where the index is in the file.
    range: Range<u64>,
    window: Window,
    /// The next byte, in the window.
    at: usize,
    /// The next window, while it is joined, and the bytes that it is to have; 0 if none is wanted.
    joined: Vec<u8>,
    wanted: usize,
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

    /// True for a list of byte strings.
    fn is_strings(list: i16) -> bool;

    /// Reads an element of a list, in a window.
    fn element(&mut self, reader: &mut Reader<'_>, list: i16, window: &Window) -> Thrift<()>;

    /// Lists that turned out to be useless.
    fn useless(&mut self) -> &mut dyn Release;
}

impl Walk {
    fn new(what: &'static str, range: Range<u64>, limits: &Limits) -> Walk {
        Walk {
            what,
            range,
            window: Window::default(),
            at: 0,
            joined: Vec::new(),
            wanted: 1,
            last: 0,
            list: None,
            skim: None,
            limits: *limits,
        }
    }

    /// Continues reading what is in `input`, which has all of the index. True at the structure's end, false if the
    /// budget is spent.
    fn step<F: ReadFields>(
        &mut self,
        fields: &mut F,
        input: &Input,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        loop {
            if !fields.useless().release(budget) {
                return Ok(false);
            }
            if self.wanted > 0 && !self.open_window(input, budget)? {
                return Ok(false);
            }
            let window = self.window.clone();
            let (before, position) = (self.at, self.position());
            let stop = |walk: &Walk, stop: Stop| stop.into_error(walk.what, position);
            let (ended, elements) = match self.skim.take() {
                Some(skim) => self.skim_on(skim, &window, fields, budget)?,
                None if self.list.is_some() => {
                    (false, self.elements(&window, fields).map_err(|it| stop(self, it))?)
                }
                None => (self.field(&window.bytes, fields).map_err(|it| stop(self, it))?, 1),
            };
            if self.skim.is_none() {
                // Of a longer string, only the length is looked at.
                let bytes = (self.at - before).min(2 * BYTES_AT_ONCE);
                budget.charge(ELEMENT_PRICE, bytes, elements);
            }
            if ended {
                return Ok(true);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Where the next byte is in the file.
    fn position(&self) -> u64 {
        self.range.start + u64::from(self.window.start) + u64_of(self.at)
    }

    /// True if bytes of the index follow the window.
    fn is_cut(&self) -> bool {
        self.position() + u64_of(self.window.bytes.len() - self.at) < self.range.end
    }

    /// Asks for a window of more bytes than are left in this one: at least `bytes`, if the index has as many.
    fn want(&mut self, bytes: usize) {
        let rest = self.window.bytes.len() - self.at;
        self.wanted = bytes.max(rest + 1);
    }

    /// Opens a window at the next byte. False if the budget is spent first.
    fn open_window(&mut self, input: &Input, budget: &mut Budget<'_>) -> Result<bool> {
        let position = self.position();
        let left = self.range.end - position;
        let least = u64_of(self.wanted.max(WINDOW_BYTES_MIN)).min(left);
        let mut piece = input.segment(position, left);
        if u64_of(piece.len()) < least {
            if self.joined.capacity() == 0 {
                let bytes = usize_of(least).unwrap_or(usize::MAX);
                self.joined.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
            }
            while u64_of(self.joined.len()) < least {
                let joined = u64_of(self.joined.len());
                let part = input.segment(position + joined, (least - joined).min(JOIN_BYTES));
                if part.is_empty() {
                    return Err(Error::internal("bytes of an index that were there are not"));
                }
                self.joined.extend_from_slice(&part);
                budget.charge(JOIN_PRICE, part.len(), 1);
                if budget.is_spent() {
                    return Ok(false);
                }
            }
            piece = core::mem::take(&mut self.joined).into();
        }
        budget.charge(JOIN_PRICE, 0, 1);
        let start = u32::try_from(position - self.range.start);
        let start = start.map_err(|_| self.corrupt("an index beyond 4 GiB"))?;
        self.window = Window { start, bytes: piece };
        (self.at, self.wanted) = (0, 0);
        Ok(true)
    }

    /// Reads some elements of a list and returns how many.
    fn elements<F: ReadFields>(&mut self, window: &Window, fields: &mut F) -> Thrift<usize> {
        let Some((list, left)) = self.list else { return Ok(0) };
        let known = F::known_elements(list);
        // Only structures must be looked at byte by byte.
        let end = if known.is_some() { self.at.saturating_add(2 * BYTES_AT_ONCE) } else { usize::MAX };
        let bytes = window.bytes.get(..end).unwrap_or(&window.bytes);
        let mut reader = Reader::new(bytes, self.at);
        let (start, mut done) = (self.at, 0);
        while done < left && done < ELEMENTS_AT_ONCE && reader.at() - start < BYTES_AT_ONCE {
            match fields.element(&mut reader, list, window) {
                Err(Stop::End) if bytes.len() < window.bytes.len() => {
                    if let (0, Some(known)) = (done, known) {
                        let at = self.position();
                        self.skim = Some(Box::new(Skim::structure(self.what, at, known, &self.limits)));
                    }
                    break;
                }
                Err(Stop::End) if self.is_cut() => {
                    let mut bytes = 2 * BYTES_AT_ONCE + 1;
                    if F::is_strings(list) {
                        let mut head = Reader::new(&window.bytes, self.at);
                        let length = head.varint().unwrap_or(0);
                        if length > self.range.end - self.position() {
                            return Err(Stop::End);
                        }
                        bytes = usize_of(length).unwrap_or(usize::MAX).saturating_add(head.at() - self.at);
                    }
                    self.want(bytes);
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
        let short = bytes.get(..self.at.saturating_add(WHOLE_BYTES_MAX)).unwrap_or(bytes);
        let mut reader = Reader::new(short, self.at);
        match self.begin(&mut reader, fields) {
            Err(Stop::End) if short.len() < bytes.len() => {
                let at = self.position();
                self.skim = Some(Box::new(Skim::field(self.what, at, self.last, F::KNOWN, &self.limits)));
                Ok(false)
            }
            Err(Stop::End) if self.is_cut() => {
                self.want(WHOLE_BYTES_MAX + 1);
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
        window: &Window,
        fields: &mut F,
        budget: &mut Budget<'_>,
    ) -> Result<(bool, usize)> {
        let before = skim.at();
        let is_whole = skim.step(&window.bytes.slice(self.at..), budget)?;
        self.at += usize_of(skim.at() - before).unwrap_or(usize::MAX);
        if !is_whole {
            if self.at == window.bytes.len() && skim.wants() > 0 {
                if !self.is_cut() {
                    return Err(Stop::End.into_error(self.what, skim.start()));
                }
                self.want(1);
            }
            self.skim = Some(skim);
            return Ok((false, 0));
        }
        let read = match self.list {
            Some((list, left)) => skim.read(|reader| fields.element(reader, list, window)).map(|()| {
                self.list = (left > 1).then_some((list, left - 1));
                false
            }),
            None => skim.read(|reader| self.begin(reader, fields)),
        };
        Ok((read.map_err(|stop| stop.into_error(self.what, skim.start()))?, 1))
    }

    fn corrupt(&self, why: impl core::fmt::Display) -> Error {
        Error::corrupt(format!("{}: {why}", self.what)).at_offset(self.range.start)
    }
}

impl Release for Walk {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.window.bytes, &mut self.joined, &mut self.skim], budget)
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
    pages: Option<Segmented<PageLocation>>,
    unencoded: Option<Segmented<u64>>,
    useless: Vec<OffsetIndex>,
}

impl OffsetIndexParser {
    /// A parser of an index that is at `range` in the file, of a chunk whose pages are in `chunk` and have `rows` rows.
    pub(crate) fn new(range: Range<u64>, chunk: Range<u64>, rows: u64, limits: &Limits) -> OffsetIndexParser {
        let walk = Walk::new("the offset index", range, limits);
        OffsetIndexParser { walk, fields: OffsetFields { chunk, rows, ..OffsetFields::default() } }
    }

    /// Continues reading what is in `input`, which has all of the index. `None` if the budget is spent.
    ///
    /// # Errors
    ///
    /// `Corrupt` for anything but an offset index, and for pages that are out of order, outside the chunk, or do not
    /// cover its rows.
    pub(crate) fn step(&mut self, input: &Input, budget: &mut Budget<'_>) -> Result<Option<OffsetIndex>> {
        if !self.walk.step(&mut self.fields, input, budget)? {
            return Ok(None);
        }
        let Some(pages) = &self.fields.pages else { return Err(self.walk.corrupt("no list of pages")) };
        let rows = self.fields.rows;
        if pages.is_empty() && rows > 0 {
            return Err(self.walk.corrupt(format!("no pages of {rows} rows")));
        }
        if let Some(sizes) = &self.fields.unencoded
            && sizes.len() != pages.len()
        {
            let why = format!("sizes of {} pages, and {} pages", sizes.len(), pages.len());
            return Err(self.walk.corrupt(why));
        }
        let OffsetFields { pages, unencoded, .. } = core::mem::take(&mut self.fields);
        Ok(Some(OffsetIndex { pages: pages.unwrap_or_default(), unencoded_byte_array_data_bytes: unencoded }))
    }
}

impl Release for OffsetIndexParser {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let OffsetFields { pages, unencoded, useless, .. } = &mut self.fields;
        release_all(&mut [&mut self.walk, pages, unencoded, useless], budget)
    }
}

impl ReadFields for OffsetFields {
    const KNOWN: Fields = &[(1, Wanted::Head), (2, Wanted::Head)];

    fn known_elements(list: i16) -> Option<Fields> {
        const PAGE_LOCATION: Fields = &[(1, Wanted::Scalar), (2, Wanted::Scalar), (3, Wanted::Scalar)];
        (list == 1).then_some(PAGE_LOCATION)
    }

    fn is_strings(_list: i16) -> bool {
        false
    }

    fn useless(&mut self) -> &mut dyn Release {
        &mut self.useless
    }

    fn begin(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Option<usize>> {
        match field.id {
            1 => {
                let length = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                if let Some(pages) = self.pages.replace(Segmented::new()) {
                    self.useless.push(OffsetIndex { pages, ..OffsetIndex::default() });
                }
                Ok(Some(length))
            }
            2 => {
                let length = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::I64))?;
                // Some writers leave an empty list if they have no sizes.
                self.drop_sizes();
                self.unencoded = (length > 0).then(Segmented::new);
                Ok(Some(length))
            }
            _ => Err(Stop::OtherType),
        }
    }

    fn element(&mut self, reader: &mut Reader<'_>, list: i16, _window: &Window) -> Thrift<()> {
        if list == 1 {
            let page = page_location(reader)?;
            self.check(&page).or_else(|why| reader.corrupt(why))?;
            self.pages.get_or_insert_default().push(page);
        } else if !count_into(&mut self.unencoded, reader)? {
            self.drop_sizes();
        }
        Ok(())
    }
}

impl OffsetFields {
    fn drop_sizes(&mut self) {
        if let Some(sizes) = self.unencoded.take() {
            let unencoded_byte_array_data_bytes = Some(sizes);
            self.useless.push(OffsetIndex { unencoded_byte_array_data_bytes, ..OffsetIndex::default() });
        }
    }

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
    useless: Vec<ColumnIndex>,
}

impl ColumnIndexParser {
    /// A parser of an index that is at `range` in the file.
    pub(crate) fn new(range: Range<u64>, limits: &Limits) -> ColumnIndexParser {
        ColumnIndexParser {
            walk: Walk::new("the column index", range, limits),
            fields: ColumnFields::default(),
        }
    }

    /// Continues reading what is in `input`, which has all of the index. `None` if the budget is spent.
    /// `definition_max` and `repetition_max` are the leaf's maximum levels.
    ///
    /// # Errors
    ///
    /// `Corrupt` for anything but a column index, and for lists whose lengths differ from the number of pages.
    pub(crate) fn step(
        &mut self,
        definition_max: u16,
        repetition_max: u16,
        input: &Input,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ColumnIndex>> {
        if !self.walk.step(&mut self.fields, input, budget)? {
            return Ok(None);
        }
        let fields = &self.fields;
        if !(fields.has_null_pages && fields.has_min && fields.has_max && fields.has_order) {
            return Err(self.walk.corrupt("one of its required fields is not there"));
        }
        let index = &fields.index;
        let pages = index.pages();
        let check = |list: &str, length: usize, of_page: usize| {
            if pages.checked_mul(of_page) == Some(length) {
                return Ok(());
            }
            Err(self.walk.corrupt(format!("{length} {list} of {pages} pages")))
        };
        check("lower bounds", index.min_values.len(), 1)?;
        check("upper bounds", index.max_values.len(), 1)?;
        let length = |list: &Option<Segmented<u64>>| list.as_ref().map(Segmented::len);
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
        Ok(Some(core::mem::take(&mut self.fields).index))
    }
}

impl Release for ColumnIndexParser {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let ColumnFields { index, useless, .. } = &mut self.fields;
        release_all(&mut [&mut self.walk, index, useless], budget)
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

    fn is_strings(list: i16) -> bool {
        list == 2 || list == 3
    }

    fn useless(&mut self) -> &mut dyn Release {
        &mut self.useless
    }

    fn begin(&mut self, reader: &mut Reader<'_>, field: Field) -> Thrift<Option<usize>> {
        let list = |reader: &mut Reader<'_>, kind| {
            reader.expect(field, Kind::List, |reader| reader.list_of(kind)).map(Some)
        };
        let length = match field.id {
            1 => Some(reader.expect(field, Kind::List, bools)?),
            2 | 3 => list(reader, Kind::Binary)?,
            4 => {
                self.index.boundary_order = match reader.expect(field, Kind::I32, Reader::i32)? {
                    0 => BoundaryOrder::Unordered,
                    1 => BoundaryOrder::Ascending,
                    2 => BoundaryOrder::Descending,
                    other => BoundaryOrder::Unknown(other),
                };
                self.has_order = true;
                return Ok(None);
            }
            5..=8 => list(reader, Kind::I64)?,
            _ => return Err(Stop::OtherType),
        };
        // A repeated list replaces the previous one.
        self.drop_list(field.id);
        match field.id {
            1 => self.has_null_pages = true,
            2 => self.has_min = true,
            3 => self.has_max = true,
            // Some writers leave empty lists for optional fields that they do not have.
            counts => *self.counts(counts) = length.filter(|&length| length > 0).map(|_| Segmented::new()),
        }
        Ok(length)
    }

    fn element(&mut self, reader: &mut Reader<'_>, list: i16, window: &Window) -> Thrift<()> {
        match list {
            // 1 is true; false is 2, or 0 in older writers.
            1 => self.index.null_pages.push(reader.i8()? == 1),
            2 => string(reader, &mut self.index.min_values, window)?,
            3 => string(reader, &mut self.index.max_values, window)?,
            _ if !count_into(self.counts(list), reader)? => self.drop_list(list),
            _ => {}
        }
        Ok(())
    }
}

impl ColumnFields {
    /// A list of counts.
    fn counts(&mut self, list: i16) -> &mut Option<Segmented<u64>> {
        match list {
            5 => &mut self.index.null_counts,
            6 => &mut self.index.repetition_level_histograms,
            7 => &mut self.index.definition_level_histograms,
            _ => &mut self.index.nan_counts,
        }
    }

    /// Sets a list aside that may be long.
    fn drop_list(&mut self, list: i16) {
        let mut useless = ColumnIndex::default();
        match list {
            1 => core::mem::swap(&mut useless.null_pages, &mut self.index.null_pages),
            2 => core::mem::swap(&mut useless.min_values, &mut self.index.min_values),
            3 => core::mem::swap(&mut useless.max_values, &mut self.index.max_values),
            counts => useless.null_counts = self.counts(counts).take(),
        }
        self.useless.push(useless);
    }
}

/// The length of a list of booleans, whose element type may be either boolean.
fn bools(reader: &mut Reader<'_>) -> Thrift<usize> {
    match reader.list()? {
        (Kind::True | Kind::False, length) | (_, length @ 0) => Ok(length),
        _ => reader.corrupt("a list of another type"),
    }
}

fn string(reader: &mut Reader<'_>, strings: &mut ByteStrings, window: &Window) -> Thrift<()> {
    let length = reader.binary()?.len();
    match strings.push(window, reader.at() - length..reader.at()) {
        true => Ok(()),
        false => reader.corrupt("an index beyond 4 GiB"),
    }
}

/// Reads a count of a list. False for an invalid one, which makes the list unknown, as in `Statistics`: parquet-mr has
/// written -1 for it.
fn count_into(counts: &mut Option<Segmented<u64>>, reader: &mut Reader<'_>) -> Thrift<bool> {
    let number = u64::try_from(reader.i64()?);
    if let (Some(list), Ok(number)) = (counts, number) {
        list.push(number);
    }
    Ok(number.is_ok())
}

fn count(reader: &mut Reader<'_>) -> Thrift<u64> {
    let number = reader.i64()?;
    u64::try_from(number).or_else(|_| reader.corrupt("a negative count, size or offset"))
}
