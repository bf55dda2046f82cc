//! What a call is asked for.

use marquetry_base::{Error, Field, Fields, Result};

use crate::cursor::Cursor;

/// How a request begins: what it is, and the version of its encoding.
pub const REQUEST: [u8; 4] = *b"MQQ1";

/// Bytes of a request, at most: a predicate of ten thousand keys, and the names of as many columns; or a file of about this size.
const REQUEST_BYTES_MAX: usize = 4 << 20;
/// Columns, or leaves, of a request: each is looked up by each call.
const COLUMNS_MAX: usize = 10_000;
/// Aggregates of a request: each is computed of each row, and has a state for each group.
const AGGREGATES_MAX: usize = 128;
/// Columns that make groups: each row's values in all of them are one key.
const GROUP_COLUMNS_MAX: usize = 32;
/// Bytes of a predicate, which each call parses: a list of some ten thousand keys.
const PREDICATE_BYTES_MAX: usize = 128 << 10;

/// The fields of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum RequestField {
    /// A column, or a field of one, by its path: `id`, `place.lat`. Once for each; none: all columns.
    Column = 1,
    /// The predicate, as `find` takes it.
    Where = 2,
    /// An aggregate: `count(*)`, `count(fare)`, `sum(fare)`, `min(fare)`, `max(fare)`. Once for each. They take the place of rows.
    Aggregate = 3,
    /// Rows that are wanted, at most (u64).
    Limit = 4,
    /// Where to go on: what the answer before said.
    Cursor = 5,
    /// Units of work (u64).
    Units = 6,
    /// Bytes of rows in the answer, about (u64).
    AnswerBytes = 7,
    /// A column whose values make groups, for each of which there is a row of aggregates. Once for each.
    GroupBy = 8,
    /// A leaf of the schema: the names on the way to it, as the object has them, with a NUL between two of them. Once for each. They take the
    /// place of columns, and are handed out in the object's order.
    Leaf = 9,
    /// The form of rows ([`Format`], u8).
    Format = 10,
    /// A Parquet file, whose rows `merge` adds to the object's.
    File = 11,
    /// The codec that `compress` leaves the object's pages in: `uncompressed`, `snappy`, `gzip`, `zstd`, `lz4_raw`, `brotli`.
    Codec = 12,
    /// Its level (i64, in eight bytes).
    Level = 13,
    /// Which call of `compress` it is ([`Step`], u8).
    Step = 14,
    /// The length that the client gives the object after a call that finishes (u64).
    Length = 15,
    /// The row groups that `split` hands out: the first, and the one after the last (two u64).
    RowGroups = 16,
}

/// Which call it is of those that change an object bit by bit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Step {
    /// The first, which goes on with what was begun in the same way and not finished.
    #[default]
    Begin = 1,
    /// One after it.
    GoOn = 2,
    /// The last: in the same operation, the object is cut to the length that the request has.
    Finish = 3,
    /// Nothing more is to be done, but what was is to be undone.
    Abandon = 4,
}

/// The form in which rows are in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Format {
    /// An Arrow IPC stream.
    #[default]
    Arrow = 1,
    /// A Parquet file: the object's schema, or that of the columns that were asked for, with the object's own types.
    Parquet = 2,
    /// None: rows are counted, and not handed out.
    Count = 3,
    /// Pieces of an object of rows.
    Rows = 4,
}

impl RequestField {
    const ALL: [RequestField; 16] = [
        RequestField::Column,
        RequestField::Where,
        RequestField::Aggregate,
        RequestField::Limit,
        RequestField::Cursor,
        RequestField::Units,
        RequestField::AnswerBytes,
        RequestField::GroupBy,
        RequestField::Leaf,
        RequestField::Format,
        RequestField::File,
        RequestField::Codec,
        RequestField::Level,
        RequestField::Step,
        RequestField::Length,
        RequestField::RowGroups,
    ];
}

impl Format {
    fn parse(bytes: &[u8]) -> Result<Format> {
        let known = [Format::Arrow, Format::Parquet, Format::Count, Format::Rows];
        let format = known.into_iter().find(|format| bytes == [*format as u8]);
        format.ok_or_else(|| Error::unsupported("a form of rows that is not known here"))
    }
}

impl Step {
    fn parse(bytes: &[u8]) -> Result<Step> {
        let known = [Step::Begin, Step::GoOn, Step::Finish, Step::Abandon];
        let step = known.into_iter().find(|step| bytes == [*step as u8]);
        step.ok_or_else(|| Error::unsupported("a kind of call that is not known here"))
    }
}

/// What one call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Units of work after which it ends, each about a nanosecond. What a call must do to get on at all (read the footer, and a first
    /// batch) may take more.
    pub units: u64,
    /// Bytes of rows in its answer after which it ends.
    pub answer_bytes: usize,
}

impl Share {
    /// The units of a call that does not ask for others: 1.2 to 1.3 milliseconds, because prices are those of the worst values, and at most three to five
    /// beside others' reads, of 14,000 calls. With half more it was up to seven, and all rows of sixteen columns took a seventh less work, for less is done again.
    pub const UNITS: u64 = 2_000_000;
    /// The most units that a request is granted. A client that asks for more gets these.
    pub const UNITS_MAX: u64 = if cfg!(feature = "whole") { u64::MAX / 4 } else { 4_000_000 };
    /// The bytes of an answer that nobody asked others for, and the most that are granted.
    pub const ANSWER_BYTES: usize = 1 << 20;
    /// See [`Share::ANSWER_BYTES`].
    pub const ANSWER_BYTES_MAX: usize = if cfg!(feature = "whole") { 1 << 30 } else { 4 << 20 };
}

impl Default for Share {
    fn default() -> Share {
        Share { units: Share::UNITS, answer_bytes: Share::ANSWER_BYTES }
    }
}

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    pub(crate) columns: Vec<&'a str>,
    pub(crate) predicate: Option<&'a str>,
    pub(crate) aggregates: Vec<&'a str>,
    pub(crate) groups: Vec<&'a str>,
    pub(crate) leaves: Vec<&'a str>,
    pub(crate) format: Format,
    pub(crate) file: Option<&'a [u8]>,
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) share: Share,
    pub(crate) codec: Option<&'a str>,
    pub(crate) level: Option<i32>,
    pub(crate) step: Step,
    pub(crate) length: Option<u64>,
    /// The first, and the one after the last.
    pub(crate) row_groups: Option<(u64, u64)>,
}

impl<'a> Request<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Request<'a>> {
        if bytes.len() > REQUEST_BYTES_MAX {
            let message = format!("a request of {} bytes, more than {REQUEST_BYTES_MAX}", bytes.len());
            return Err(Error::too_large(message));
        }
        let mut request = Request::default();
        for field in Fields::of(bytes, REQUEST)? {
            let field = field?;
            match RequestField::ALL.into_iter().find(|known| *known as u16 == field.number) {
                Some(RequestField::Column) => push(&mut request.columns, &field, COLUMNS_MAX, "columns")?,
                Some(RequestField::Where) => {
                    if field.bytes.len() > PREDICATE_BYTES_MAX {
                        let message = format!("a predicate of more than {PREDICATE_BYTES_MAX} bytes");
                        return Err(Error::too_large(message));
                    }
                    if request.predicate.replace(field.text()?).is_some() {
                        return Err(Error::misuse("two predicates in one request"));
                    }
                }
                Some(RequestField::Aggregate) => {
                    push(&mut request.aggregates, &field, AGGREGATES_MAX, "aggregates")?;
                }
                Some(RequestField::GroupBy) => {
                    push(&mut request.groups, &field, GROUP_COLUMNS_MAX, "columns that make groups")?;
                }
                Some(RequestField::Leaf) => push(&mut request.leaves, &field, COLUMNS_MAX, "columns")?,
                Some(RequestField::Format) => request.format = Format::parse(field.bytes)?,
                Some(RequestField::File) => request.file = Some(field.bytes),
                Some(RequestField::Codec) => request.codec = Some(field.text()?),
                Some(RequestField::Level) => {
                    let level = i32::try_from(field.u64()?.cast_signed());
                    request.level = Some(level.map_err(|_| Error::misuse("a level that no codec has"))?);
                }
                Some(RequestField::Step) => request.step = Step::parse(field.bytes)?,
                Some(RequestField::Length) => request.length = Some(field.u64()?),
                Some(RequestField::RowGroups) => {
                    let (ends, rest) = field.bytes.as_chunks::<8>();
                    let ([start, end], []) = (ends, rest) else {
                        return Err(Error::misuse("row groups that are not two numbers"));
                    };
                    request.row_groups = Some((u64::from_le_bytes(*start), u64::from_le_bytes(*end)));
                }
                Some(RequestField::Limit) => request.limit = Some(field.u64()?),
                Some(RequestField::Cursor) => request.cursor = Some(Cursor::parse(field.bytes)?),
                Some(RequestField::Units) => {
                    request.share.units = field.u64()?.min(Share::UNITS_MAX);
                }
                Some(RequestField::AnswerBytes) => {
                    let bytes = usize::try_from(field.u64()?).unwrap_or(usize::MAX);
                    request.share.answer_bytes = bytes.min(Share::ANSWER_BYTES_MAX);
                }
                None if field.is_optional => {}
                None => {
                    let message = format!("field {} of a request is not known here", field.number);
                    return Err(Error::unsupported(message));
                }
            }
        }
        request.check()?;
        Ok(request)
    }

    /// Checks that its fields go together.
    fn check(&self) -> Result<()> {
        let has_columns = !self.columns.is_empty() || !self.leaves.is_empty();
        if !self.aggregates.is_empty() && (has_columns || self.limit.is_some()) {
            return Err(Error::misuse(
                "aggregates are of all rows that are found, without columns and a limit",
            ));
        }
        if self.aggregates.is_empty() && !self.groups.is_empty() {
            return Err(Error::misuse("groups without an aggregate"));
        }
        if !self.columns.is_empty() && !self.leaves.is_empty() {
            return Err(Error::misuse("columns and leaves in one request"));
        }
        match self.format {
            Format::Arrow | Format::Parquet => Ok(()),
            _ if !self.aggregates.is_empty() => {
                Err(Error::misuse("aggregates are handed out as an Arrow IPC stream, or a Parquet file"))
            }
            Format::Count if has_columns => Err(Error::misuse("columns of rows that are only counted")),
            Format::Count | Format::Rows => Ok(()),
        }
    }
}

/// Adds a field's text to those of its kind, of which a request has `most` at most.
fn push<'a>(to: &mut Vec<&'a str>, field: &Field<'a>, most: usize, what: &str) -> Result<()> {
    if to.len() == most {
        return Err(Error::too_large(format!("more than {most} {what} in one request")));
    }
    to.push(field.text()?);
    Ok(())
}
