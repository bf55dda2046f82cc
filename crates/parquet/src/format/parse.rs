//! From the footer's bytes to [`FileMetaData`], in steps: one schema element or column chunk at a time, as bytes
//! arrive.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{
    Budget, Bytes, Error, Input, Limit, Limits, Price, Release, Result, Segmented, release_all,
};

use super::chunk::{
    COLUMN_CHUNK_FIELDS, KEY_VALUE_FIELDS, column_chunk, key_value, lossy_string, sorting_column, unsigned,
};
use super::columns::FooterColumns;
use super::kept::{Kept, wrong_chunks};
use super::{ColumnChunk, ColumnOrder, EncryptionAlgorithm, FileMetaData, KeyValue, RowGroup};
use crate::going::Going;
use crate::schema::{ELEMENT_FIELDS, Element, Schema, SchemaBuilder};
use crate::thrift::{
    ANY, Field, Fields, Kind, READ_PRICE, Reader, Skim, Stop, Thrift, WHOLE_BYTES_MAX, Wanted, first_fault,
};

/// What a column chunk or schema element costs to read, besides its bytes: a few hundred nanoseconds, allocations
/// included.
const ELEMENT_UNITS: u64 = 500;
/// What a schema element costs that is not wanted.
const GLANCE_UNITS: u64 = 100;
/// The cost of a key-value pair.
const PAIR_UNITS: u64 = 150;
/// The cost of a field, or of a small element of a list.
const FIELD_UNITS: u64 = 50;
/// Row groups that are checked together at the end, and what each costs.
const GROUPS_AT_ONCE: usize = 1024;
const GROUP_PRICE: Price = Price::per_kilovalue(20 * 1024);

/// Reads a footer, resumably, from pieces of any size. A piece is released as soon as it is read.
#[derive(Debug)]
pub(crate) struct FooterParser {
    /// Where the footer starts and ends in the file, and where the next byte is.
    start: u64,
    end: u64,
    at: u64,
    /// The piece that the next byte is in, and how much of it has been read.
    piece: Bytes,
    read: usize,
    /// A value that is long, or cut by the end of a piece.
    skim: Option<Box<Skim>>,
    expects: Expects,
    limits: Limits,
    version: Option<i32>,
    /// The footer's number of rows. It must be present, but is not used.
    rows: Option<u64>,
    building: Option<SchemaBuilder>,
    /// The schema's element that was read last, until it is added to the schema.
    element: Option<Element>,
    /// If only some columns are read: what is kept.
    kept: Option<Box<Kept>>,
    /// The schema's root was read; an element was read that is not yet in the schema, or left out of it.
    has_root: bool,
    has_element: bool,
    /// A schema that was read for nothing.
    discarded: Option<Schema>,
    schema: Option<Schema>,
    row_groups: Option<Segmented<RowGroup>>,
    key_values: Segmented<KeyValue>,
    created_by: Option<String>,
    column_orders: Segmented<ColumnOrder>,
    encryption: Option<EncryptionAlgorithm>,
    /// Bytes of memory that the elements take, approximately.
    held: u64,
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
    /// A field of the last row group, after the field `last`; `left` more row groups follow.
    RowGroupField { last: i16, left: usize, seen_rows: bool },
    /// `chunks` more column chunks of the last row group.
    ColumnChunks { chunks: usize, left: usize, seen_rows: bool },
    /// `left` more pairs of keys and values.
    KeyValues { left: usize },
    /// `left` more column orders.
    ColumnOrders { left: usize },
    /// Nothing: the structure has ended. Row groups from `group` on are still to be checked; the first of their rows is
    /// `first_row`.
    Checks { group: usize, first_row: u64 },
}

/// No writer puts anything of which there is one for each column before the schema.
const LATE_SCHEMA: &str = "columns before the schema, in a footer that is read for some of them";

/// Its name in errors.
const FOOTER: &str = "the footer";

/// The known fields of `FileMetaData`; the long lists are read element by element.
const FILE_FIELDS: Fields = &[
    (1, Wanted::Scalar),
    (2, Wanted::Head),
    (3, Wanted::Scalar),
    (4, Wanted::Head),
    (5, Wanted::Head),
    (6, Wanted::Scalar),
    (7, Wanted::Head),
    (8, Wanted::Struct(&[(ANY, Wanted::Struct(&[]))])),
];
const ROW_GROUP_FIELDS: Fields = &[
    (1, Wanted::Head),
    (2, Wanted::Scalar),
    (3, Wanted::Scalar),
    (4, Wanted::Structs(&[(1, Wanted::Scalar), (2, Wanted::Scalar), (3, Wanted::Scalar)])),
    (5, Wanted::Scalar),
    (6, Wanted::Scalar),
    (7, Wanted::Scalar),
];
const COLUMN_ORDER_FIELDS: Fields = &[(ANY, Wanted::Struct(&[]))];
impl Release for FooterParser {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let parts: &mut [&mut dyn Release] = &mut [
            &mut self.piece,
            &mut self.skim,
            &mut self.building,
            &mut self.kept,
            &mut self.discarded,
            &mut self.schema,
            &mut self.row_groups,
            &mut self.key_values,
            &mut self.created_by,
            &mut self.column_orders,
        ];
        release_all(parts, budget)
    }
}

impl FooterParser {
    /// A parser of a footer that is at `range` in the file.
    pub(crate) fn new(range: core::ops::Range<u64>, limits: Limits) -> FooterParser {
        FooterParser {
            start: range.start,
            end: range.end,
            at: range.start,
            piece: Bytes::new(),
            read: 0,
            skim: None,
            expects: Expects::FileField { last: 0 },
            limits,
            version: None,
            rows: None,
            building: None,
            element: None,
            kept: None,
            has_root: false,
            has_element: false,
            discarded: None,
            schema: None,
            row_groups: None,
            key_values: Segmented::new(),
            created_by: None,
            column_orders: Segmented::new(),
            encryption: None,
            held: 0,
        }
    }

    /// The same, but only these columns are read.
    pub(crate) fn of_columns(
        range: core::ops::Range<u64>,
        limits: Limits,
        columns: FooterColumns,
    ) -> FooterParser {
        let kept = Some(Box::new(Kept::new(columns)));
        FooterParser { kept, ..FooterParser::new(range, limits) }
    }

    /// Continues reading, and releases what was read.
    pub(crate) fn step(
        &mut self,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Arc<FileMetaData>, u64>> {
        loop {
            if let Expects::Checks { group, first_row } = self.expects {
                if let Some(metadata) =
                    self.check(group, first_row, budget).map_err(|it| it.at_offset(self.start))?
                {
                    return Ok(Going::Done(Arc::new(metadata)));
                }
            } else {
                if self.read == self.piece.len() && !self.take_piece(input) && self.wants_bytes() {
                    if self.at < self.end {
                        input.release(0..self.at);
                        return Ok(Going::Need(self.at));
                    }
                    return Err(self.ends_early());
                }
                let goes_on = match self.skim.take() {
                    Some(skim) => self.skim_on(skim, budget)?,
                    None if self.skips() => self.skip_on(budget)?,
                    None => {
                        self.read_here(budget)?;
                        true
                    }
                };
                if !goes_on {
                    return Ok(Going::Yield);
                }
                self.limits.check(Limit::TotalBytes, self.held)?;
            }
            if budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
    }

    /// Takes the piece with the next byte. False if it has not arrived.
    fn take_piece(&mut self, input: &mut Input) -> bool {
        self.piece = input.segment(self.at, self.end - self.at);
        self.read = 0;
        input.release(self.at..self.at + u64_of(self.piece.len()));
        !self.piece.is_empty()
    }

    /// False while a long string, whose bytes have all arrived, is put together.
    fn wants_bytes(&self) -> bool {
        self.skim.as_ref().is_none_or(|skim| skim.wants() > 0)
    }

    /// Whether elements of a list are skipped next, because they are not wanted.
    fn skips(&mut self) -> bool {
        let Some(kept) = &mut self.kept else { return false };
        if kept.is_skipping() {
            return true;
        }
        let (Expects::ColumnChunks { chunks: left, .. } | Expects::ColumnOrders { left }) = self.expects
        else {
            return false;
        };
        let count = kept.unwanted(left);
        if count > 0 {
            kept.skip(FOOTER, self.at, count);
        }
        count > 0
    }

    /// Skips on. False if the budget is spent.
    fn skip_on(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let Some(kept) = &mut self.kept else { return Ok(true) };
        let rest = self.piece.get(self.read..).unwrap_or_default();
        let (skipped, is_done) = kept.skipper.step(rest, budget)?;
        self.read += skipped;
        self.at += u64_of(skipped);
        if is_done {
            let skipped = kept.skipped();
            match &mut self.expects {
                Expects::ColumnChunks { chunks: left, .. } | Expects::ColumnOrders { left } => {
                    *left -= skipped.min(*left);
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Reads everything again, for other columns.
    fn begin_again(&mut self, kept: Kept) {
        let (range, limits) = (self.start..self.end, self.limits);
        let discarded = self.schema.take();
        let again =
            FooterParser { kept: Some(Box::new(kept)), discarded, ..FooterParser::new(range, limits) };
        *self = again;
    }

    /// Reads the next value in place, or begins to skim it if it is not all in this piece.
    fn read_here(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let piece = core::mem::take(&mut self.piece);
        let rest = piece.get(self.read..).unwrap_or_default();
        let rest = rest.get(..WHOLE_BYTES_MAX).unwrap_or(rest);
        let mut reader = Reader::new(rest, 0);
        let units = self.units();
        let (read, looked_at) = match self.read_one(&mut reader) {
            Ok(()) => (reader.at(), reader.at()),
            Err(Stop::End) => {
                self.skim = Some(Box::new(self.skim_next()));
                // All of it was looked at in vain.
                (0, rest.len())
            }
            Err(stop) => return Err(stop.into_error(FOOTER, self.at)),
        };
        self.piece = piece;
        self.read += read;
        self.at += u64_of(read);
        let units = units + if self.element.is_some() { ELEMENT_UNITS } else { 0 };
        budget.charge_units(units + READ_PRICE.of(looked_at, 0));
        self.take_in(read)
    }

    /// The cost of reading the next value, besides its bytes.
    fn units(&self) -> u64 {
        match self.expects {
            // What is kept of it costs more.
            Expects::SchemaElements { left: 1.. } => GLANCE_UNITS,
            Expects::ColumnChunks { chunks: 1.., .. } => ELEMENT_UNITS,
            Expects::KeyValues { left: 1.. } => PAIR_UNITS,
            _ => FIELD_UNITS,
        }
    }

    fn skim_next(&self) -> Skim {
        let structure = |fields| Skim::structure(FOOTER, self.at, fields, &self.limits);
        let field = |last, fields| Skim::field(FOOTER, self.at, last, fields, &self.limits);
        match self.expects {
            Expects::FileField { last } => field(last, FILE_FIELDS),
            Expects::RowGroupField { last, .. } => field(last, ROW_GROUP_FIELDS),
            Expects::SchemaElements { .. } => structure(ELEMENT_FIELDS),
            Expects::ColumnChunks { .. } => structure(COLUMN_CHUNK_FIELDS),
            Expects::KeyValues { .. } => structure(KEY_VALUE_FIELDS),
            Expects::ColumnOrders { .. } => structure(COLUMN_ORDER_FIELDS),
            // These read nothing that could end early.
            Expects::RowGroups { .. } | Expects::Checks { .. } => structure(&[]),
        }
    }

    /// Skims on, and reads what is complete. False if that is to be paid by another budget than this.
    fn skim_on(&mut self, mut skim: Box<Skim>, budget: &mut Budget<'_>) -> Result<bool> {
        let rest = self.piece.slice(self.read..);
        let was_complete = skim.is_complete();
        let is_whole = skim.step(&rest, budget);
        self.read += usize_of(skim.at() - self.at).unwrap_or(usize::MAX).min(rest.len());
        self.at = skim.at();
        match is_whole {
            Ok(false) => self.skim = Some(skim),
            Ok(true) => {
                // It is read at once.
                let element =
                    if matches!(self.expects, Expects::SchemaElements { .. }) { ELEMENT_UNITS } else { 0 };
                let units = self.units() + element + READ_PRICE.of(skim.digest_bytes(), 0);
                if !was_complete && units > budget.left() {
                    self.skim = Some(skim);
                    return Ok(false);
                }
                budget.charge_units(units);
                skim.read(|reader| self.read_one(reader))
                    .map_err(|it| it.into_error(FOOTER, skim.start()))?;
                self.take_in(skim.digest_bytes())?;
            }
            Err(fault) => {
                let fault = first_fault(&skim, fault, |reader| self.read_one(reader));
                // Dropping what it holds may be much work.
                self.skim = Some(skim);
                return Err(fault);
            }
        }
        Ok(true)
    }

    /// The footer ends in the middle of something.
    fn ends_early(&mut self) -> Error {
        let kept = self.kept.as_ref().filter(|kept| kept.is_skipping());
        let start = kept.map_or(self.at, |kept| kept.skipper.start());
        let at = self.skim.as_ref().map_or(start, |skim| skim.start());
        let fault = Stop::End.into_error(FOOTER, at);
        match self.skim.take() {
            Some(skim) => first_fault(&skim, fault, |reader| self.read_one(reader)),
            None => fault,
        }
    }

    /// Accounts for `bytes` that were read, and builds the schema.
    fn take_in(&mut self, bytes: usize) -> Result<()> {
        // Lists of numbers take more than their bytes, but they are few.
        self.held += 2 * u64_of(bytes);
        let Some(building) = &mut self.building else { return Ok(()) };
        let (start, element) = (self.start, self.element.take());
        let built = match &mut self.kept {
            Some(kept) if core::mem::take(&mut self.has_element) => kept.build(building, element),
            _ => element.map_or(Ok(()), |element| building.add(element)),
        };
        built.map_err(|error| error.at_offset(start))?;
        if let Expects::FileField { .. } = self.expects
            && let Some(building) = self.building.take()
        {
            self.schema = Some(building.finish().map_err(|error| error.at_offset(start))?);
            let again = self.kept.as_mut().map(|kept| kept.end_schema()).transpose();
            if let Some(again) = again.map_err(|error| error.at_offset(start))?.flatten() {
                self.begin_again(again);
            }
        }
        Ok(())
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
                None => Expects::Checks { group: 0, first_row: 0 },
            },
            Expects::SchemaElements { left: 0 } => Expects::FileField { last: 2 },
            Expects::SchemaElements { left } => {
                self.element = match &mut self.kept {
                    Some(kept) if self.has_root => {
                        let element = kept.element(reader)?;
                        self.has_element = true;
                        element
                    }
                    _ => Some(Element::read(reader)?),
                };
                self.has_root = true;
                Expects::SchemaElements { left: left - 1 }
            }
            Expects::RowGroups { left: 0 } => Expects::FileField { last: 4 },
            Expects::RowGroups { left } => {
                self.row_groups.get_or_insert_default().push(RowGroup::default());
                self.held += u64_of(size_of::<RowGroup>());
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
                None if seen_rows => {
                    self.kept.iter_mut().for_each(|kept| kept.end_group());
                    Expects::RowGroups { left }
                }
                None => return reader.corrupt("a row group without a number of rows"),
            },
            Expects::ColumnChunks { chunks: 0, left, seen_rows } => {
                Expects::RowGroupField { last: 1, left, seen_rows }
            }
            Expects::ColumnChunks { chunks, left, seen_rows } => {
                let chunk = column_chunk(reader)?;
                self.row_group(reader)?.columns.push(chunk);
                self.kept.iter_mut().for_each(|kept| kept.took());
                self.held += u64_of(size_of::<ColumnChunk>());
                Expects::ColumnChunks { chunks: chunks - 1, left, seen_rows }
            }
            Expects::KeyValues { left: 0 } => Expects::FileField { last: 5 },
            Expects::KeyValues { left } => {
                self.key_values.push(key_value(reader)?);
                Expects::KeyValues { left: left - 1 }
            }
            Expects::ColumnOrders { left: 0 } => Expects::FileField { last: 7 },
            Expects::ColumnOrders { left } => {
                self.column_orders.push(column_order(reader)?);
                self.kept.iter_mut().for_each(|kept| kept.took());
                Expects::ColumnOrders { left: left - 1 }
            }
            checks @ Expects::Checks { .. } => checks,
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
                self.building = Some(SchemaBuilder::new(left, &self.limits));
                return Ok(Expects::SchemaElements { left });
            }
            3 => self.rows = Some(reader.expect(field, Kind::I64, unsigned)?),
            4 => {
                if self.row_groups.is_some() {
                    return reader.corrupt("a second list of row groups");
                }
                let left = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                if self.kept.is_some() && self.schema.is_none() {
                    return reader.corrupt(LATE_SCHEMA);
                }
                self.row_groups = Some(Segmented::new());
                return Ok(Expects::RowGroups { left });
            }
            5 => {
                let left = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                self.key_values = Segmented::new();
                return Ok(Expects::KeyValues { left });
            }
            6 => self.created_by = Some(reader.expect(field, Kind::Binary, lossy_string)?),
            7 => {
                let left = reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
                if self.kept.is_some() && self.schema.is_none() {
                    return reader.corrupt(LATE_SCHEMA);
                }
                self.column_orders = Segmented::new();
                self.kept.iter_mut().for_each(|kept| kept.begin_list(left));
                return Ok(Expects::ColumnOrders { left });
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
                let has_some = self.kept.as_ref().is_some_and(|kept| kept.has_chunks());
                if has_some || !self.row_group(reader)?.columns.is_empty() {
                    return reader.corrupt("a second list of column chunks");
                }
                self.kept.iter_mut().for_each(|kept| kept.count_chunks(chunks));
                return Ok(Expects::ColumnChunks { chunks, left, seen_rows });
            }
            2 => {
                let bytes = reader.expect(field, Kind::I64, Reader::i64)?;
                // Some writers store a negative number here; it is not used.
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

    /// Checks some row groups, once everything is read: numbers their rows, and counts their columns.
    fn check(
        &mut self,
        group: usize,
        first_row: u64,
        budget: &mut Budget<'_>,
    ) -> Result<Option<FileMetaData>> {
        if self.discarded.as_mut().is_some_and(|schema| !schema.release(budget)) {
            return Ok(None);
        }
        let missing = |why| Stop::Corrupt(0, why).into_error(FOOTER, self.start);
        let schema = self.schema.as_ref().ok_or_else(|| missing("no schema"))?;
        let row_groups = self.row_groups.as_mut().ok_or_else(|| missing("no list of row groups"))?;
        self.rows.ok_or_else(|| missing("no number of rows"))?;
        let leaves = schema.leaves().len();
        let is_partial = self.kept.as_ref().is_some_and(|kept| kept.file_leaves() > leaves);
        if let Some((group, chunks, leaves)) = self.kept.as_ref().and_then(|kept| kept.mismatch()) {
            return Err(wrong_chunks(group, chunks, leaves));
        }
        let end = row_groups.len().min(group + GROUPS_AT_ONCE);
        budget.charge(GROUP_PRICE, 0, end - group);
        let mut next_row = first_row;
        for number in group..end {
            let group = &mut row_groups[number];
            group.first_row = next_row;
            next_row = next_row
                .checked_add(group.rows)
                .ok_or_else(|| missing("more rows than 64 bits can count"))?;
            if group.columns.len() != leaves {
                return Err(wrong_chunks(number, group.columns.len(), leaves));
            }
            if let Some(kept) = &self.kept
                && !group.sorting_columns.is_empty()
            {
                budget.charge(GROUP_PRICE, 0, group.sorting_columns.len());
                kept.sorting_columns(group);
                if budget.is_spent() && number + 1 < row_groups.len() {
                    self.expects = Expects::Checks { group: number + 1, first_row: next_row };
                    return Ok(None);
                }
            }
        }
        if end < row_groups.len() {
            self.expects = Expects::Checks { group: end, first_row: next_row };
            return Ok(None);
        }
        let (Some(schema), Some(row_groups)) = (self.schema.take(), self.row_groups.take()) else {
            return Err(Error::internal("a footer that was there is not"));
        };
        Ok(Some(FileMetaData {
            version: self.version.unwrap_or(1),
            schema: Arc::new(schema),
            // The sum over the row groups: one writer is known to store a wrong total.
            rows: next_row,
            row_groups,
            key_values: core::mem::take(&mut self.key_values),
            created_by: self.created_by.take(),
            column_orders: core::mem::take(&mut self.column_orders),
            encryption: self.encryption,
            footer_start: self.start,
            footer_bytes: self.end - self.start,
            is_partial,
        }))
    }
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
