//! Writes the page index (`ColumnIndex`, `OffsetIndex`): a slice of one of its lists at a time.

use alloc::vec::Vec;

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Price};

use crate::format::{BoundaryOrder, OffsetIndex, PageLocation};
use crate::thrift::Kind;
use crate::thrift::Writer;

/// What a column index stores about one page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageBounds<'a> {
    /// The page has only nulls; its bounds are empty.
    pub(crate) is_null: bool,
    /// The lower bound.
    pub(crate) min: &'a [u8],
    /// The upper bound.
    pub(crate) max: &'a [u8],
    /// Nulls; of all pages or of none.
    pub(crate) nulls: Option<u64>,
    /// NaNs; of all pages or of none.
    pub(crate) nans: Option<u64>,
    /// How often each repetition level occurs; for all pages or for none.
    pub(crate) repetition: &'a [u64],
    /// The same of definition levels.
    pub(crate) definition: &'a [u64],
}

/// Where the two indexes of a chunk come from.
pub(crate) trait PageSource {
    /// Data pages.
    fn pages(&self) -> usize;
    /// What is known of a page's values. `None` for all pages if the chunk has no column index.
    fn bounds(&self, page: usize) -> Option<PageBounds<'_>>;
    /// How the bounds are ordered.
    fn boundary_order(&self) -> BoundaryOrder;
    /// Where a page is.
    fn location(&self, page: usize) -> PageLocation;
    /// Bytes of a page's BYTE_ARRAY values; for all pages or for none.
    fn unencoded_bytes(&self, page: usize) -> Option<u64>;
}

/// The price of a page in one of the lists, and of a byte.
const PAGE_PRICE: Price = Price { kib: 512, kilovalue: 20 << 10 };
/// Pages that are written together.
const PAGES_AT_ONCE: usize = 256;

/// Writes one of the two structures, resumably.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IndexSteps {
    /// The next field, and the next page in its list.
    field: i16,
    page: usize,
    /// The field that was written last.
    last: i16,
}

/// The form of an index's field.
enum Form {
    /// Absent.
    Absent,
    /// One value.
    One(Kind),
    /// A list with this many elements per page.
    Each(Kind, usize),
}

/// The fields of an index, from 1 on.
trait IndexFields {
    const LAST: i16;
    fn pages(&self) -> usize;
    fn form(&self, field: i16) -> Form;
    /// Writes a page's elements of a list, or the value of a field that is no list.
    fn write(&self, field: i16, page: usize, writer: &mut Writer);
}

impl IndexSteps {
    /// Continues writing the column index. False if the budget is spent before its end.
    pub(crate) fn column_index(
        &mut self,
        pages: &impl PageSource,
        writer: &mut Writer,
        budget: &mut Budget<'_>,
    ) -> bool {
        self.fields(&ColumnFields(pages), writer, budget)
    }

    /// Continues writing the offset index. False if the budget is spent before its end.
    pub(crate) fn offset_index(
        &mut self,
        pages: &impl PageSource,
        writer: &mut Writer,
        budget: &mut Budget<'_>,
    ) -> bool {
        self.fields(&OffsetFields(pages), writer, budget)
    }

    fn fields<F: IndexFields>(&mut self, fields: &F, writer: &mut Writer, budget: &mut Budget<'_>) -> bool {
        self.field = self.field.max(1);
        while self.field <= F::LAST {
            let before = writer.length();
            let form = fields.form(self.field);
            let elements = match form {
                Form::Absent => 0,
                Form::One(_) => 1,
                Form::Each(..) => fields.pages(),
            };
            if self.page == 0 {
                match form {
                    Form::Absent => {}
                    Form::One(kind) => writer.field(self.last, self.field, kind),
                    Form::Each(kind, of_page) => {
                        writer.field(self.last, self.field, Kind::List);
                        writer.list(kind, elements * of_page);
                    }
                }
            }
            let end = elements.min(self.page + PAGES_AT_ONCE);
            (self.page..end).for_each(|page| fields.write(self.field, page, writer));
            let bytes = usize_of(writer.length() - before).unwrap_or(usize::MAX);
            budget.charge(PAGE_PRICE, bytes, end - self.page + 1);
            self.page = end;
            if end == elements {
                if !matches!(form, Form::Absent) {
                    self.last = self.field;
                }
                (self.field, self.page) = (self.field + 1, 0);
            }
            if self.field > F::LAST {
                writer.stop();
            } else if budget.is_spent() {
                return false;
            }
        }
        true
    }
}

struct ColumnFields<'a, P>(&'a P);

impl<P: PageSource> IndexFields for ColumnFields<'_, P> {
    const LAST: i16 = 8;

    fn pages(&self) -> usize {
        self.0.pages()
    }

    fn form(&self, field: i16) -> Form {
        // All pages have what the first one has.
        let first = self.0.bounds(0);
        let counts = |elements| if elements > 0 { Form::Each(Kind::I64, elements) } else { Form::Absent };
        match field {
            1 => Form::Each(Kind::True, 1),
            2 | 3 => Form::Each(Kind::Binary, 1),
            4 => Form::One(Kind::I32),
            5 => counts(first.and_then(|it| it.nulls).map_or(0, |_| 1)),
            6 => counts(first.map_or(0, |it| it.repetition.len())),
            7 => counts(first.map_or(0, |it| it.definition.len())),
            _ => counts(first.and_then(|it| it.nans).map_or(0, |_| 1)),
        }
    }

    fn write(&self, field: i16, page: usize, writer: &mut Writer) {
        if field == 4 {
            return writer.i64(self.0.boundary_order().number().into());
        }
        let Some(bounds) = self.0.bounds(page) else { return };
        match field {
            1 => writer.raw(&[if bounds.is_null { 1 } else { 2 }]),
            2 => writer.binary(bounds.min),
            3 => writer.binary(bounds.max),
            5 => writer.u64(bounds.nulls.unwrap_or(0)),
            6 => bounds.repetition.iter().for_each(|count| writer.u64(*count)),
            7 => bounds.definition.iter().for_each(|count| writer.u64(*count)),
            _ => writer.u64(bounds.nans.unwrap_or(0)),
        }
    }
}

struct OffsetFields<'a, P>(&'a P);

impl<P: PageSource> IndexFields for OffsetFields<'_, P> {
    const LAST: i16 = 2;

    fn pages(&self) -> usize {
        self.0.pages()
    }

    fn form(&self, field: i16) -> Form {
        match field {
            1 => Form::Each(Kind::Struct, 1),
            _ if self.0.unencoded_bytes(0).is_some() => Form::Each(Kind::I64, 1),
            _ => Form::Absent,
        }
    }

    fn write(&self, field: i16, page: usize, writer: &mut Writer) {
        match field {
            1 => write_location(writer, self.0.location(page)),
            _ => writer.u64(self.0.unencoded_bytes(page).unwrap_or(0)),
        }
    }
}

fn write_location(writer: &mut Writer, location: PageLocation) {
    writer.structure(|fields| {
        fields.u64(1, location.offset);
        fields.u32(2, location.compressed_bytes);
        fields.u64(3, location.first_row);
    });
}

impl BoundaryOrder {
    /// Its number in the format.
    fn number(self) -> i32 {
        match self {
            BoundaryOrder::Unordered => 0,
            BoundaryOrder::Ascending => 1,
            BoundaryOrder::Descending => 2,
            BoundaryOrder::Unknown(number) => number,
        }
    }
}

/// The positions of pages that were read, to be written again: the pages are elsewhere by now.
struct Positions<'a>(&'a OffsetIndex);

impl PageSource for Positions<'_> {
    fn pages(&self) -> usize {
        self.0.pages.len()
    }

    fn bounds(&self, _: usize) -> Option<PageBounds<'_>> {
        None
    }

    fn boundary_order(&self) -> BoundaryOrder {
        BoundaryOrder::Unordered
    }

    fn location(&self, page: usize) -> PageLocation {
        let none = PageLocation { offset: 0, compressed_bytes: 0, first_row: 0 };
        self.0.pages.get(page).copied().unwrap_or(none)
    }

    fn unencoded_bytes(&self, page: usize) -> Option<u64> {
        let all = self.0.unencoded_byte_array_data_bytes.as_ref()?;
        Some(all.get(page).copied().unwrap_or(0))
    }
}

impl OffsetIndex {
    /// The bytes of it in a file, for those who move pages.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let mut steps = IndexSteps::default();
        while !steps.offset_index(&Positions(self), &mut writer, &mut Budget::unlimited()) {}
        writer.into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{ColumnIndex, ColumnIndexParser, OffsetIndex, OffsetIndexParser};
    use alloc::vec::Vec;
    use core::ops::Range;
    use marquetry_base::cast::u64_of;
    use marquetry_base::{Bytes, ErrorKind, Input, Limits, Result, Segmented};

    /// Indexes that were read, and the repetition and definition levels of a page after the other.
    struct Both<'a>(&'a ColumnIndex, &'a OffsetIndex, [Vec<u64>; 2]);

    impl Both<'_> {
        fn of<'a>(column: &'a ColumnIndex, offset: &'a OffsetIndex) -> Both<'a> {
            let all = |levels: fn(&ColumnIndex, usize) -> Vec<u64>| {
                (0..column.pages()).flat_map(|page| levels(column, page)).collect()
            };
            let repetition = all(|column, page| column.repetition_levels(page).collect());
            let definition = all(|column, page| column.definition_levels(page).collect());
            Both(column, offset, [repetition, definition])
        }

        fn levels(&self, of: usize, page: usize) -> &[u64] {
            let levels = self.2[of].len() / self.pages();
            &self.2[of][page * levels..(page + 1) * levels]
        }
    }

    impl PageSource for Both<'_> {
        fn pages(&self) -> usize {
            self.0.pages()
        }

        fn bounds(&self, page: usize) -> Option<PageBounds<'_>> {
            let count = |counts: &Option<Segmented<u64>>| counts.as_ref().map(|counts| counts[page]);
            Some(PageBounds {
                is_null: self.0.null_pages[page],
                min: self.0.min_values.get(page),
                max: self.0.max_values.get(page),
                nulls: count(&self.0.null_counts),
                nans: count(&self.0.nan_counts),
                repetition: self.levels(0, page),
                definition: self.levels(1, page),
            })
        }

        fn boundary_order(&self) -> BoundaryOrder {
            self.0.boundary_order
        }

        fn location(&self, page: usize) -> PageLocation {
            self.1.pages[page]
        }

        fn unencoded_bytes(&self, page: usize) -> Option<u64> {
            self.1.unencoded_byte_array_data_bytes.as_ref().map(|sizes| sizes[page])
        }
    }

    fn written(pages: &impl PageSource, units: u64, is_offset: bool) -> Bytes {
        let (mut steps, mut writer) = (IndexSteps::default(), Writer::new());
        let mut step = |writer: &mut Writer| {
            let mut budget = Budget::new(units);
            let done = match is_offset {
                true => steps.offset_index(pages, writer, &mut budget),
                false => steps.column_index(pages, writer, &mut budget),
            };
            assert!(units > 10 || budget.spent() < 20_000, "{}", budget.spent());
            done
        };
        while !step(&mut writer) {}
        writer.into_vec().into()
    }

    #[test]
    fn indexes_are_read_back_whatever_the_steps() {
        let pages = 1000;
        let column = |is_rich: bool| ColumnIndex {
            null_pages: (0..pages).map(|page| page % 7 == 0).collect(),
            min_values: (0..pages).map(|page| u16::try_from(page).unwrap().to_be_bytes()).collect(),
            max_values: (0..pages).map(|page| u32::try_from(page).unwrap().to_be_bytes()).collect(),
            boundary_order: if is_rich { BoundaryOrder::Ascending } else { BoundaryOrder::Unordered },
            null_counts: is_rich.then(|| (0..pages).collect()),
            nan_counts: is_rich.then(|| (0..pages).rev().collect()),
            repetition_level_histograms: is_rich.then(|| (0..2 * pages).collect()),
            definition_level_histograms: is_rich.then(|| (0..4 * pages).collect()),
        };
        let offset = |is_rich: bool| OffsetIndex {
            pages: (0..pages)
                .map(|page| PageLocation { offset: 4 + page * 50, compressed_bytes: 50, first_row: page * 3 })
                .collect(),
            unencoded_byte_array_data_bytes: is_rich.then(|| (0..pages).map(|page| page * 9).collect()),
        };
        for is_rich in [false, true] {
            let (column, offset) = (column(is_rich), offset(is_rich));
            let both = Both::of(&column, &offset);
            for (units, piece) in [(0, usize::MAX), (u64::MAX, 1), (0, 7), (100, 1_000), (0, 17_000)] {
                let (input, range) = supplied(&written(&both, units, false), piece);
                let mut parser = ColumnIndexParser::new(range, &Limits::DEFAULT);
                let read = stepped(units, |budget| parser.step(3, 1, &input, budget));
                assert_eq!(read, column, "in pieces of {piece}");
                let (input, range) = supplied(&written(&both, units, true), piece);
                let mut parser = OffsetIndexParser::new(range, 4..60_000, 3000, &Limits::DEFAULT);
                assert_eq!(stepped(units, |budget| parser.step(&input, budget)), offset);
            }
        }
    }

    /// An index that arrived in pieces of so many bytes, and where it is.
    fn supplied(bytes: &Bytes, piece: usize) -> (Input, Range<u64>) {
        const START: u64 = 1_000;
        let mut input = Input::new();
        let mut at = 0;
        while at < bytes.len() {
            let end = bytes.len().min(at.saturating_add(piece));
            // (Its own memory, as a host's.)
            input.supply(START + u64_of(at), bytes[at..end].to_vec().into()).unwrap();
            at = end;
        }
        (input, START..START + u64_of(bytes.len()))
    }

    fn stepped<T>(units: u64, mut step: impl FnMut(&mut Budget<'_>) -> Result<Option<T>>) -> T {
        for _ in 0..1_000_000 {
            if let Some(made) = step(&mut Budget::new(units)).unwrap() {
                return made;
            }
        }
        panic!("no end");
    }

    #[test]
    fn a_string_longer_than_any_window_is_read() {
        let strings = [&b"a"[..], &[b'b'; 100_000], b"", &[b'c'; 40_000], b"d"];
        let column = ColumnIndex {
            null_pages: (0..5).map(|_| false).collect(),
            min_values: strings.iter().collect(),
            max_values: strings.iter().rev().collect(),
            ..ColumnIndex::default()
        };
        let written = written(&Both::of(&column, &OffsetIndex::default()), u64::MAX, false);
        for piece in [1, 999, 30_000, usize::MAX] {
            let (input, range) = supplied(&written, piece);
            let mut parser = ColumnIndexParser::new(range.clone(), &Limits::DEFAULT);
            assert_eq!(stepped(0, |budget| parser.step(3, 1, &input, budget)), column, "{piece}");
            // One that is cut ends early, whatever the pieces.
            for end in [10, 20_000, written.len() - 1] {
                let mut parser =
                    ColumnIndexParser::new(range.start..range.start + u64_of(end), &Limits::DEFAULT);
                let error = parser.step(3, 1, &input, &mut Budget::unlimited()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            }
        }
    }
}
