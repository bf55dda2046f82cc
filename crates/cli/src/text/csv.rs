//! Tables of delimited text: what their columns are called, and what is in them.

use std::collections::HashSet;
use std::sync::Arc;

use marquetry_base::cast::{low_u32, u64_of};
use marquetry_base::{Bitmap, Buffer, Bytes, Error, Pool, Result};
use marquetry_kernels::utf8;
use marquetry_parquet::batch::{
    Batch, ByteArrays, ColumnBatch, FixedBytes, INLINE_BYTES_MAX, Layout, Values,
};
use marquetry_parquet::schema::TimeUnit;

use super::delimited::{Dialect, Field, Records, Wrong};
use super::kind::{Kind, Kinds};
use super::parse;
use super::stream::{Piece, Stream};
use super::types::{Told, ToldType};
use super::{Header, Rules, at_line, shown};

/// Columns of a table at most: a row of more is one that lacks its line ends.
const COLUMNS_MAX: usize = 100_000;
/// Records that tell which delimiter a text has.
const GUESS_ROWS: usize = 100;
/// What texts that say so by their ending may be delimited by, the likeliest first.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];
/// What some programs begin texts with, to say that they are UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// How a text is a table.
#[derive(Debug)]
pub(super) struct Form {
    dialect: Dialect,
    has_header: bool,
    /// Fields of a record.
    fields: usize,
    pub(super) columns: Vec<Column>,
    /// What stands for null.
    nulls: Vec<Vec<u8>>,
    /// The columns' types are told, not inferred.
    is_told: bool,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    kind: Kind,
    /// Its place among the fields of a record.
    field: usize,
}

/// A text whose columns are being found out.
#[derive(Debug)]
pub(super) struct Sample {
    dialect: Dialect,
    has_header: bool,
    pub(super) names: Vec<String>,
    pub(super) kinds: Vec<Kinds>,
    nulls: Vec<Vec<u8>>,
    records: Records,
    at: Place,
}

/// Where a text is read.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// In the piece at hand.
    at: usize,
    /// Lines before it.
    lines: u64,
}

impl Sample {
    /// Finds out from the start of a text what delimits it, and whether its first record is a header. `None` where that is not whole yet.
    ///
    /// # Errors
    ///
    /// `Corrupt` for a first record that is none, and a text of nothing.
    pub(super) fn begin(piece: &Piece, rules: &Rules, told: Option<&[Told]>) -> Result<Option<Sample>> {
        let text = &*piece.bytes;
        let at = if text.starts_with(&BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let dialect = match rules.delimiter {
            Some(delimiter) => Dialect { delimiter, quote: rules.quote, may_be_short: rules.may_be_short },
            None => guess(text, at, piece.is_last, rules),
        };
        let mut records = Records::default();
        let mut place = Place { at, lines: 0 };
        let next = dialect
            .scan(text, at, piece.is_last, 1, &mut records)
            .map_err(|wrong| place.error(text, &wrong))?;
        let fields = records.columns();
        if records.rows() == 0 {
            return match told {
                _ if !piece.is_last => Ok(None),
                Some(told) => Ok(Some(Sample::of(dialect, false, names(told), rules, place))),
                None => {
                    Err(Error::corrupt("it has no row, so its columns are not known; --schema tells them"))
                }
            };
        }
        if fields > COLUMNS_MAX {
            return Err(Error::unsupported(format!(
                "line 1: a row of {fields} fields, more than {COLUMNS_MAX}"
            )));
        }
        check_utf8(text, at..next, piece.offset, &place)?;
        let is_returned = |column| {
            let field = dialect.field(&records, text, 0, column);
            !field.is_quoted && field.text.contains(&b'\r')
        };
        if (0..fields).any(is_returned) {
            return Err(at_line(
                1,
                "carriage returns without line feeds: rows end in LF or CRLF; `tr '\\r' '\\n'` mends that",
            ));
        }
        let first: Vec<String> = (0..fields)
            .map(|column| dialect.unquoted(dialect.field(&records, text, 0, column)))
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect();
        let has_header = match rules.header {
            Header::Yes => true,
            Header::No => false,
            Header::Auto => match told {
                Some(told) => is_header_of(&first, told),
                None => is_header(&first)?,
            },
        };
        if has_header {
            place.step(text, next);
        }
        let names = match told {
            Some(told) if !has_header => {
                let is_short = rules.may_be_short && fields < told.len();
                if told.len() != fields && !is_short {
                    let columns = told.len();
                    let what = format!("{fields} fields, where --schema has {columns} columns");
                    return Err(at_line(place.lines + 1, &what));
                }
                names(told)
            }
            _ if has_header => names_of(first),
            _ => names_of(vec![String::new(); fields]),
        };
        Ok(Some(Sample::of(dialect, has_header, names, rules, place)))
    }

    fn of(dialect: Dialect, has_header: bool, names: Vec<String>, rules: &Rules, at: Place) -> Sample {
        let (kinds, records) = (vec![Kinds::ANY; names.len()], Records::of(names.len()));
        Sample { dialect, has_header, names, kinds, nulls: rules.nulls.clone(), records, at }
    }

    /// Takes the whole records of a piece into account; says where the rest begins.
    ///
    /// # Errors
    ///
    /// `Corrupt` for records that are none.
    pub(super) fn add(&mut self, piece: &Piece) -> Result<usize> {
        let text = &*piece.bytes;
        loop {
            let scanned = self.dialect.scan(text, self.at.at, piece.is_last, GUESS_ROWS, &mut self.records);
            let next = scanned.map_err(|wrong| self.at.error(text, &wrong))?;
            for row in 0..self.records.rows() {
                for (column, kinds) in self.kinds.iter_mut().enumerate() {
                    let field = self.dialect.field(&self.records, text, row, column);
                    let is_null = match field.is_quoted {
                        true => field.text.is_empty(),
                        false => is_null(&self.nulls, &field),
                    };
                    if !is_null {
                        kinds.see(field.text);
                    }
                }
            }
            self.at.step(text, next);
            if self.records.rows() < GUESS_ROWS {
                let rest = self.at.at;
                self.at.at = 0;
                return Ok(rest);
            }
        }
    }

    /// The form of the text, of columns of these kinds; or of those that are told.
    ///
    /// # Errors
    ///
    /// `Misuse` where those that are told are others than the header has.
    pub(super) fn form(self, kinds: &[Kinds], told: Option<&[Told]>) -> Result<Form> {
        let columns = match told {
            None => {
                let kinds = kinds.iter().map(|kinds| kinds.kind());
                let names = self.names.iter().cloned().enumerate();
                names.zip(kinds).map(|((field, name), kind)| Column { name, kind, field }).collect()
            }
            Some(told) => self.told(told)?,
        };
        Ok(Form {
            dialect: self.dialect,
            has_header: self.has_header,
            fields: self.names.len(),
            columns,
            nulls: self.nulls,
            is_told: told.is_some(),
        })
    }

    fn told(&self, told: &[Told]) -> Result<Vec<Column>> {
        let place = |name: &str| {
            let exact = self.names.iter().position(|known| known == name);
            exact.or_else(|| self.names.iter().position(|known| known.eq_ignore_ascii_case(name)))
        };
        let mut taken = HashSet::new();
        let column = |(at, told): (usize, &Told)| {
            let ToldType::Leaf(kind) = told.told_type else {
                let what = "delimited text has no lists, maps or structs";
                return Err(Error::misuse(format!("--schema: {what} (column {})", told.name)));
            };
            let field = if self.has_header { place(&told.name) } else { Some(at) };
            let field = field.ok_or_else(|| {
                Error::misuse(format!("--schema has a column {:?}, which the header has not", told.name))
            })?;
            taken.insert(field);
            Ok(Column { name: told.name.clone(), kind, field })
        };
        let columns = told.iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        match (0..self.names.len()).find(|field| !taken.contains(field)) {
            Some(field) => {
                let name = &self.names[field];
                Err(Error::misuse(format!("the header has a column {name:?}, which --schema has not")))
            }
            None => Ok(columns),
        }
    }
}

fn names(told: &[Told]) -> Vec<String> {
    told.iter().map(|told| told.name.clone()).collect()
}

/// The names of columns: where a header has none, by the column's number; and where it has one again, with a number, too.
fn names_of(header: Vec<String>) -> Vec<String> {
    let given: HashSet<String> = header.iter().cloned().collect();
    let mut taken = HashSet::with_capacity(header.len());
    let name = |(at, name): (usize, String)| {
        let own = if name.is_empty() { format!("column{}", at + 1) } else { name.clone() };
        let is_free = |it: &String| !taken.contains(it) && (*it == name || !given.contains(it));
        let others = (2_u64..).map(|number| format!("{own}_{number}"));
        let found = std::iter::once(own.clone()).chain(others).find(is_free).unwrap_or(own.clone());
        taken.insert(found.clone());
        found
    };
    header.into_iter().enumerate().map(name).collect()
}

/// A first record is a header if it has no number, date or truth value in it.
///
/// # Errors
///
/// `Corrupt` where it could be one, but that it has something twice, as rows may have.
fn is_header(first: &[String]) -> Result<bool> {
    let is_text = |text: &String| {
        let mut kinds = Kinds::ANY;
        kinds.see(text.as_bytes());
        kinds.is_text()
    };
    if !first.iter().all(is_text) {
        return Ok(false);
    }
    let mut seen = HashSet::with_capacity(first.len());
    match first.iter().find(|text| !seen.insert(*text)) {
        None => Ok(true),
        Some(twice) => {
            let twice = shown(twice.as_bytes());
            let what = format!(
                "{twice} stands twice in the first row, so it may be a row as the others, or names of columns: --header no, or --header yes"
            );
            Err(at_line(1, &what))
        }
    }
}

/// A first record is the header of columns that are told if it has their names.
fn is_header_of(first: &[String], told: &[Told]) -> bool {
    let is_name = |text: &String| told.iter().any(|told| told.name.eq_ignore_ascii_case(text));
    first.iter().all(is_name)
}

/// The delimiter by which the first records have the most fields, all as many.
fn guess(text: &[u8], at: usize, is_last: bool, rules: &Rules) -> Dialect {
    let dialect = |delimiter| Dialect { delimiter, quote: rules.quote, may_be_short: rules.may_be_short };
    let fields = |delimiter: u8| {
        let mut records = Records::default();
        let scanned = dialect(delimiter).scan(text, at, is_last, GUESS_ROWS, &mut records);
        scanned.map_or(0, |_| records.columns())
    };
    let found = DELIMITERS.map(|delimiter| (fields(delimiter), delimiter));
    // The first of equals.
    let best = found.into_iter().rev().max_by_key(|(fields, _)| *fields);
    dialect(best.filter(|(fields, _)| *fields > 1).map_or(DELIMITERS[0], |(_, delimiter)| delimiter))
}

#[inline]
fn is_null(nulls: &[Vec<u8>], field: &Field<'_>) -> bool {
    match nulls {
        // As nearly always: what is missing is empty, too.
        [only] if only.is_empty() => field.text.is_empty(),
        _ => field.is_missing || nulls.iter().any(|null| null == field.text),
    }
}

fn check_utf8(text: &[u8], range: std::ops::Range<usize>, offset: u64, place: &Place) -> Result<()> {
    match utf8::error_at(&text[range.clone()]) {
        None => Ok(()),
        Some(wrong) => {
            let at = range.start + wrong;
            let line = place.lines + 1 + line_ends(&text[place.at..at]);
            Err(at_line(line, "bytes that are not UTF-8").at_offset(offset + u64_of(at)))
        }
    }
}

fn line_ends(text: &[u8]) -> u64 {
    u64_of(text.iter().filter(|byte| **byte == b'\n').count())
}

impl Place {
    /// On to `next`.
    fn step(&mut self, text: &[u8], next: usize) {
        self.lines += line_ends(&text[self.at..next]);
        self.at = next;
    }

    /// The line that a place behind this one is in, counted from 1.
    fn line(&self, text: &[u8], at: usize) -> u64 {
        self.lines + 1 + line_ends(&text[self.at..at])
    }

    fn error(&self, text: &[u8], wrong: &Wrong) -> Error {
        at_line(self.line(text, wrong.at), &wrong.what)
    }
}

impl Column {
    /// What it is, as `--schema` would tell it.
    pub(super) fn told(&self) -> Told {
        Told { name: self.name.clone(), told_type: ToldType::Leaf(self.kind) }
    }
}

/// Rows of a text.
pub(super) struct Reader {
    form: Arc<Form>,
    stream: Stream,
    piece: Piece,
    at: Place,
    records: Records,
    /// The columns that are read, and memory for each.
    reads: Vec<(usize, Store)>,
    batch_rows: usize,
    rows: u64,
}

/// Memory for a column's values, used again and again.
#[derive(Default)]
struct Store {
    int32: Pool<i32>,
    int64: Pool<i64>,
    float: Pool<f32>,
    double: Pool<f64>,
    views: Pool<u128>,
}

/// Why a column's values cannot be had.
enum Fault {
    /// The field of this row does not fit.
    Misfit(usize),
    Error(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Error(error)
    }
}

impl Reader {
    /// Begins to read.
    ///
    /// # Errors
    ///
    /// As the stream.
    pub(super) fn new(form: Arc<Form>, stream: Stream, reads: &[usize], batch_rows: usize) -> Result<Reader> {
        let mut stream = stream.with_columns(form.fields);
        let mut piece = stream.next(&[])?;
        let mut at = Place::default();
        if piece.bytes.starts_with(&BYTE_ORDER_MARK) {
            at.at = BYTE_ORDER_MARK.len();
        }
        let mut records = Records::of(form.fields);
        if form.has_header {
            let next = loop {
                let scanned = form.dialect.scan(&piece.bytes, at.at, piece.is_last, 1, &mut records);
                let next = scanned.map_err(|wrong| at.error(&piece.bytes, &wrong))?;
                if records.rows() > 0 || piece.is_last {
                    break next;
                }
                piece = stream.next(&piece.bytes)?;
            };
            at.step(&piece.bytes, next);
        }
        let reads = reads.iter().map(|column| (*column, Store::default())).collect();
        Ok(Reader { form, stream, piece, at, records, reads, batch_rows, rows: 0 })
    }

    /// The next rows. `None` after the last.
    ///
    /// # Errors
    ///
    /// `Corrupt` for records that are none; `Conversion` for a field that is not what its column holds; the stream's.
    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            let text = self.piece.bytes.clone();
            let (from, is_last) = (self.at.at, self.piece.is_last);
            let scanned = self.form.dialect.scan(&text, from, is_last, self.batch_rows, &mut self.records);
            let next = scanned.map_err(|wrong| self.at.error(&text, &wrong))?;
            let rows = self.records.rows();
            if rows > 0 {
                check_utf8(&text, from..next, self.piece.offset, &self.at)?;
                let batch = self.batch(&text)?;
                self.at.step(&text, next);
                self.rows += u64_of(rows);
                return Ok(Some(batch));
            }
            self.at.step(&text, next);
            if is_last {
                return Ok(None);
            }
            self.piece = self.stream.next(&text[next..])?;
            self.at.at = 0;
        }
    }

    fn batch(&mut self, text: &Bytes) -> Result<Batch> {
        let Reader { form, records, reads, .. } = self;
        let mut columns = Vec::with_capacity(reads.len());
        let mut misfit = None;
        for (number, store) in reads {
            let column = &form.columns[*number];
            let fields = Fields { form, records, text, column };
            match fields.column(store) {
                Ok((values, nulls)) => columns.push(ColumnBatch {
                    leaf: *number,
                    rows: records.rows(),
                    nulls: nulls.count,
                    validity: nulls.validity(records.rows()),
                    values,
                    layout: Layout::Spaced,
                    levels: None,
                    provisional: false,
                }),
                Err(Fault::Misfit(row)) => {
                    misfit = Some((row, *number));
                    break;
                }
                Err(Fault::Error(error)) => return Err(error),
            }
        }
        match misfit {
            Some((row, number)) => Err(self.misfit(text, row, number)),
            None => Ok(Batch { row_group: 0, first_row: self.rows, rows: self.records.rows(), columns }),
        }
    }

    /// What does not fit, and what can be done.
    fn misfit(&self, text: &Bytes, row: usize, number: usize) -> Error {
        let (form, column) = (&self.form, &self.form.columns[number]);
        let field = form.dialect.field(&self.records, text, row, column.field);
        let line = self.at.line(text, self.records.start(row));
        let (value, kind) = (shown(field.text), column.kind.name());
        let what = match form.is_told {
            true => format!("{value} is no {kind}"),
            false => format!(
                "{value} is no {kind}, as what was looked at before suggested; --infer-all looks at all rows first, --schema tells the types"
            ),
        };
        at_line(line, &what).at(|place| place.column = Some(column.name.clone()))
    }
}

/// Nulls among some rows.
#[derive(Default)]
struct Nulls {
    count: usize,
    /// A bit a row, once there is a null.
    bits: Vec<u8>,
}

impl Nulls {
    #[inline]
    fn push(&mut self, row: usize, rows: usize) {
        if self.bits.is_empty() {
            self.bits = vec![0xff; rows.div_ceil(8)];
        }
        self.bits[row / 8] &= !(1 << (row % 8));
        self.count += 1;
    }

    fn validity(self, rows: usize) -> Option<Bitmap> {
        (self.count > 0).then(|| Bitmap::new(self.bits.into(), 0, rows))
    }
}

/// The fields of a column.
struct Fields<'a> {
    form: &'a Form,
    records: &'a Records,
    text: &'a Bytes,
    column: &'a Column,
}

impl Fields<'_> {
    fn column(&self, store: &mut Store) -> Result<(Values, Nulls), Fault> {
        let is_told = self.form.is_told;
        // What is inferred is taken as it is; what is told may have spaces around it, and more than one spelling.
        let bare =
            |text: &[u8]| -> Option<i64> { parse::integer(text).filter(|_| parse::is_canonical(text)) };
        let instant = |unit: TimeUnit, is_instant: bool| {
            move |text: &[u8]| {
                let found = parse::timestamp(text)?;
                // A clock's reading has no zone; what has none is taken for UTC only where that is told.
                (found.offset.is_some() == is_instant || (is_told && is_instant))
                    .then(|| found.in_unit(unit))
                    .flatten()
            }
        };
        Ok(match self.column.kind {
            Kind::Integer(64) if !is_told => self.numbers(&mut store.int64, bare, Values::Int64)?,
            Kind::Integer(64) => {
                self.numbers(&mut store.int64, |text| parse::integer(text.trim_ascii()), Values::Int64)?
            }
            Kind::Integer(bits) => {
                let narrow = |text: &[u8]| {
                    let value = parse::integer(text.trim_ascii())?;
                    let room = 1_i64 << (bits - 1);
                    (-room..room).contains(&value).then(|| i32::try_from(value).ok()).flatten()
                };
                self.numbers(&mut store.int32, narrow, Values::Int32)?
            }
            Kind::Double if !is_told => {
                let number = |text: &[u8]| parse::double(text).filter(|_| parse::is_usual(text));
                self.numbers(&mut store.double, number, Values::Double)?
            }
            Kind::Double => {
                self.numbers(&mut store.double, |text| parse::double(text.trim_ascii()), Values::Double)?
            }
            Kind::Float => {
                self.numbers(&mut store.float, |text| parse::float(text.trim_ascii()), Values::Float)?
            }
            Kind::Date => {
                self.numbers(&mut store.int32, |text| parse::date(text.trim_ascii()), Values::Int32)?
            }
            Kind::Time => {
                self.numbers(&mut store.int64, |text| parse::time(text.trim_ascii()), Values::Int64)?
            }
            Kind::Timestamp { unit, is_instant } => {
                let of = instant(unit, is_instant);
                self.numbers(&mut store.int64, |text| of(text.trim_ascii()), Values::Int64)?
            }
            Kind::Decimal { precision, scale } => {
                let of = |text: &[u8]| parse::decimal(text.trim_ascii(), precision, scale);
                match precision {
                    0..=9 => {
                        self.numbers(&mut store.int32, |text| i32::try_from(of(text)?).ok(), Values::Int32)?
                    }
                    10..=18 => {
                        self.numbers(&mut store.int64, |text| i64::try_from(of(text)?).ok(), Values::Int64)?
                    }
                    _ => self.fixed(|text| of(text).map(i128::to_be_bytes))?,
                }
            }
            Kind::Uuid => self.fixed(|text| parse::uuid(text.trim_ascii()))?,
            Kind::Boolean => {
                let mut bits = vec![0; self.records.rows().div_ceil(8)];
                let nulls = self.each(|row, text| {
                    let is_true = parse::boolean(text.trim_ascii())?;
                    bits[row / 8] |= u8::from(is_true) << (row % 8);
                    Some(())
                })?;
                (Values::Boolean(Bitmap::new(bits.into(), 0, self.records.rows())), nulls)
            }
            Kind::Text => self.texts(&mut store.views)?,
            Kind::Blob => self.blobs(&mut store.views)?,
        })
    }

    /// Calls for each field that is no null; `None` where it does not fit.
    #[inline]
    fn each(&self, mut of: impl FnMut(usize, &[u8]) -> Option<()>) -> Result<Nulls, Fault> {
        let mut nulls = Nulls::default();
        let rows = self.records.rows();
        for row in 0..rows {
            let field = self.form.dialect.field(self.records, self.text, row, self.column.field);
            // Of what is no text, quotes around nothing are nothing.
            let is_null =
                if field.is_quoted { field.text.is_empty() } else { is_null(&self.form.nulls, &field) };
            if is_null {
                nulls.push(row, rows);
            } else if of(row, field.text).is_none() {
                return Err(Fault::Misfit(row));
            }
        }
        Ok(nulls)
    }

    #[inline]
    fn numbers<T: Copy + Default>(
        &self,
        pool: &mut Pool<T>,
        of: impl Fn(&[u8]) -> Option<T>,
        values: impl FnOnce(Buffer<T>) -> Values,
    ) -> Result<(Values, Nulls), Fault> {
        let rows = self.records.rows();
        let mut numbers = pool.take(rows)?;
        // What was there before stands for nulls.
        let room = &mut numbers[..rows];
        room.fill(T::default());
        let nulls = self.each(|row, text| {
            room[row] = of(text)?;
            Some(())
        })?;
        Ok((values(pool.share(numbers, rows)), nulls))
    }

    fn fixed(&self, of: impl Fn(&[u8]) -> Option<[u8; 16]>) -> Result<(Values, Nulls), Fault> {
        let rows = self.records.rows();
        let mut bytes = vec![0; rows * 16];
        let nulls = self.each(|row, text| {
            bytes[row * 16..][..16].copy_from_slice(&of(text)?);
            Some(())
        })?;
        Ok((Values::FixedLenByteArray(FixedBytes::new(16, rows, bytes.into())), nulls))
    }

    /// Texts stand where they were read, but for those with quotes in them.
    fn texts(&self, pool: &mut Pool<u128>) -> Result<(Values, Nulls), Fault> {
        let rows = self.records.rows();
        let mut views = pool.take(rows)?;
        let (mut nulls, mut built) = (Nulls::default(), Vec::new());
        for (row, view) in views[..rows].iter_mut().enumerate() {
            let field = self.form.dialect.field(self.records, self.text, row, self.column.field);
            *view = if field.is_quoted {
                self.quoted(field, &mut built)
            } else if is_null(&self.form.nulls, &field) {
                nulls.push(row, rows);
                0
            } else {
                view_of(self.text, field.start, field.text.len(), 0)
            };
        }
        Ok((self.byte_arrays(pool.share(views, rows), built), nulls))
    }

    fn quoted(&self, field: Field<'_>, built: &mut Vec<u8>) -> u128 {
        match self.form.dialect.unquoted(field) {
            std::borrow::Cow::Borrowed(text) => view_of(self.text, field.start, text.len(), 0),
            std::borrow::Cow::Owned(text) => {
                let start = built.len();
                built.extend_from_slice(&text);
                view_of(built, start, text.len(), 1)
            }
        }
    }

    fn blobs(&self, pool: &mut Pool<u128>) -> Result<(Values, Nulls), Fault> {
        let rows = self.records.rows();
        let mut views = pool.take(rows)?;
        views[..rows].fill(0);
        let mut built = Vec::new();
        let nulls = self.each(|row, text| {
            let start = built.len();
            parse::blob(text.trim_ascii(), &mut built)?;
            views[row] = view_of(&built, start, built.len() - start, 1);
            Some(())
        })?;
        Ok((self.byte_arrays(pool.share(views, rows), built), nulls))
    }

    fn byte_arrays(&self, views: Buffer<u128>, built: Vec<u8>) -> Values {
        let mut buffers = vec![self.text.clone()];
        if !built.is_empty() {
            buffers.push(built.into());
        }
        Values::ByteArray(ByteArrays::new(views, Arc::new(buffers)))
    }
}

/// The view of a string in a buffer: see [`ByteArrays`].
#[inline]
fn view_of(buffer: &[u8], start: usize, length: usize, number: u32) -> u128 {
    let word = match buffer.get(start..start + 16).and_then(|bytes| bytes.try_into().ok()) {
        Some(bytes) => u128::from_le_bytes(bytes),
        None => {
            let mut last = [0; 16];
            let rest = &buffer[start..];
            last[..rest.len().min(16)].copy_from_slice(&rest[..rest.len().min(16)]);
            u128::from_le_bytes(last)
        }
    };
    let length_bits = u128::from(low_u32(u64_of(length)));
    if length <= INLINE_BYTES_MAX {
        let kept = word & ((1 << (8 * length)) - 1);
        return kept << 32 | length_bits;
    }
    let prefix = word & u128::from(u32::MAX);
    let place = u128::from(low_u32(u64_of(start)));
    place << 96 | u128::from(number) << 64 | prefix << 32 | length_bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_any_length_and_place() {
        let text: Vec<u8> = (0..40).collect();
        for start in 0..40 {
            for length in 0..=40 - start {
                let views = vec![view_of(&text, start, length, 0)].into();
                let strings = ByteArrays::new(views, Arc::new(vec![text.clone().into()]));
                assert_eq!(strings.get(0), &text[start..start + length]);
            }
        }
    }

    #[test]
    fn delimiters_and_headers_are_guessed() {
        let rules = Rules {
            delimiter: None,
            quote: Some(b'"'),
            header: Header::Auto,
            nulls: Vec::new(),
            may_be_short: false,
        };
        let guessed = |text: &str| char::from(guess(text.as_bytes(), 0, true, &rules).delimiter);
        assert_eq!(guessed("a,b\n1,2\n"), ',');
        assert_eq!(guessed("a\tb, c\n1\t2\n"), '\t');
        assert_eq!(guessed("a;b\n1,5;2\n"), ';');
        assert_eq!(guessed("a|b\n"), '|');
        assert_eq!(guessed("a\n1\n"), ',');
        assert_eq!(guessed("a,b\n1\n"), ',');
        let header = |fields: &[&str]| is_header(&fields.iter().map(|it| it.to_string()).collect::<Vec<_>>());
        for (fields, is_one) in [
            (&["id", "name"][..], true),
            (&["", "a"], true),
            (&["1", "name"], false),
            (&["1", "a", "a"], false),
            (&["x", "2024-02-29"], false),
            (&["true", "x"], false),
        ] {
            assert_eq!(header(fields).unwrap(), is_one, "{fields:?}");
        }
        assert!(header(&["a", "a"]).is_err() && header(&["", "", "x"]).is_err());
        let names = |header: &[&str]| names_of(header.iter().map(ToString::to_string).collect());
        assert_eq!(
            names(&["a", "", "a", "column2", "a_2", ""]),
            ["a", "column2_2", "a_3", "column2", "a_2", "column6"]
        );
    }
}
