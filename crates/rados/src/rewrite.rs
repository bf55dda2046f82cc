//! Methods of the class that change an object bit by bit, or hand out a part of its bytes: called until there is nothing more.

use std::ops::Range;

use marquetry_base::{Error, ErrorKind, Fields, Frame, Result};

use crate::asked::REQUEST;
use crate::pool::Pool;
use crate::query::{ANSWER, error_of};

/// The name of a method.
const COMPRESS: &str = "compress";

/// The numbers of a request's fields.
const COLUMN: u16 = 1;
const CURSOR: u16 = 5;
const UNITS: u16 = 6;
const ANSWER_BYTES: u16 = 7;
const FORMAT: u16 = 10;
const CODEC: u16 = 12;
const LEVEL: u16 = 13;
const STEP: u16 = 14;
const LENGTH: u16 = 15;
const ROW_GROUPS: u16 = 16;

/// The numbers of an answer's fields.
const DATA: u16 = 1;
const NEXT: u16 = 2;
const ROWS: u16 = 3;
const GROUPS: u16 = 5;
const ERROR: u16 = 7;
const CUT: u16 = 10;

/// Calls of one change, at most: more than an object of the largest size takes by the smallest pages.
const CALLS_MAX: u64 = 1 << 20;

/// How `compress` leaves an object's pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recoding {
    /// `uncompressed`, `snappy`, `gzip`, `zstd`, `lz4_raw` or `brotli`.
    pub codec: String,
    /// The codec's level, if it is to be another one than its usual.
    pub level: Option<i32>,
}

/// A form of objects, into which others are transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// A Parquet file. Each call's rows become a row group.
    Parquet,
    /// Pieces of rows, as the Skyhook project stored them before it had columns.
    Rows,
}

/// The extended attribute of an object that says what it was made of: the other object's name, and its version.
const FROM: &str = "marquetry.from";
/// Bytes of a name and a version, at most.
const FROM_BYTES_MAX: usize = 4 << 10;

/// What calls methods of the class that may write one object, always the same one.
pub trait Change {
    /// Calls a method: its answer if it has written nothing, and nothing if it has.
    ///
    /// # Errors
    ///
    /// `Unsupported` if there is no such class; `LimitExceeded` if the object would be larger than one may be; what else the class refuses.
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>>;

    /// Calls a method, and gives the object that length in the same operation.
    ///
    /// # Errors
    ///
    /// As [`Change::step`].
    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()>;
}

/// Indexes the values of a column beside the object, call by call, until all are: a query that wants certain values of it reads less then. It
/// takes the place of another one. How many calls it took.
///
/// # Errors
///
/// As [`Change::step`]; `Io` if the object was changed meanwhile: an index is of one state of it, and not used for another.
pub fn index(object: &mut dyn Change, column: &str) -> Result<u64> {
    for calls in 1..=CALLS_MAX {
        let mut frame = Frame::new(REQUEST);
        frame.push(COLUMN, column.as_bytes());
        frame.push(STEP, &[if calls == 1 { 1 } else { 2 }]);
        let answer = object.step("index", &frame.into_bytes())?;
        if !answer.is_empty() {
            return read(&answer).map(|_| calls);
        }
    }
    Err(Error::refused("the object class does not get on"))
}

/// The steps of a change.
#[derive(Debug, Clone, Copy)]
enum Step {
    Begin,
    GoOn,
    Finish,
    Abandon,
}

/// Compresses an object's pages in another way, call by call, until all are. How many calls it took.
///
/// # Errors
///
/// As [`Change::step`]: the object has the same rows then, and what was begun is undone or gone on with by the next one.
pub fn compress(object: &mut dyn Change, how: &Recoding) -> Result<u64> {
    match go_on(object, how, Step::Begin) {
        // What is refused, because it does not fit beside what it is made of, say, is undone. Of what failed in another way, nothing is known.
        Err(error) if error.kind() != ErrorKind::Io => {
            // Why it cannot be done is what matters; what is not undone is undone by the next one.
            let _ = go_on(object, how, Step::Abandon);
            Err(error)
        }
        done => done,
    }
}

fn go_on(object: &mut dyn Change, how: &Recoding, mut step: Step) -> Result<u64> {
    let mut was_refused = false;
    for calls in 1..=CALLS_MAX {
        let answer = object.step(COMPRESS, &request(how, step, None))?;
        if answer.is_empty() {
            step = Step::GoOn;
            continue;
        }
        let Some(length) = read(&answer)?.cut else { return Ok(calls) };
        match object.finish(COMPRESS, &request(how, Step::Finish, Some(length)), length) {
            Ok(()) if matches!(step, Step::Abandon) => return Ok(calls + 1),
            Ok(()) => step = Step::GoOn,
            // Another client that compresses in the same way may have finished it before: once more, it is asked what is to be done.
            Err(_) if !was_refused => was_refused = true,
            Err(error) => return Err(error),
        }
    }
    Err(Error::refused("the object class does not get on"))
}

fn request(how: &Recoding, step: Step, length: Option<u64>) -> Vec<u8> {
    let mut frame = Frame::new(REQUEST);
    frame.push(CODEC, how.codec.as_bytes());
    if let Some(level) = how.level {
        frame.push_u64(LEVEL, i64::from(level).cast_unsigned());
    }
    let step = match step {
        Step::Begin => 1,
        Step::GoOn => 2,
        Step::Finish => 3,
        Step::Abandon => 4,
    };
    frame.push(STEP, &[step]);
    if let Some(length) = length {
        frame.push_u64(LENGTH, length);
    }
    frame.into_bytes()
}

/// What an answer has.
#[derive(Debug, Default)]
struct Read {
    data: Vec<u8>,
    cursor: Option<Vec<u8>>,
    rows: u64,
    row_groups: u64,
    cut: Option<u64>,
}

fn read(answer: &[u8]) -> Result<Read> {
    let mut read = Read::default();
    for field in Fields::of(answer, ANSWER)? {
        let field = field?;
        match field.number {
            DATA => read.data = field.bytes.to_vec(),
            NEXT => read.cursor = Some(field.bytes.to_vec()),
            ROWS => read.rows = field.u64()?,
            GROUPS => read.row_groups = field.u64()?,
            CUT => read.cut = Some(field.u64()?),
            ERROR => return Err(error_of(field.bytes)),
            _ => {}
        }
    }
    Ok(read)
}

impl Pool {
    /// Compresses the pages of a Parquet object in another way, in its OSD, by many small calls. Whenever it is read, it is a file of the same
    /// rows; but whoever has read its footer before, and reads its pages after, finds that it was changed. How many calls it took.
    ///
    /// # Errors
    ///
    /// As [`compress`]; `Io`, with [`NotFound`](marquetry_base::Detail::NotFound) if there is no object.
    pub fn compress(&self, object: &str, how: &Recoding) -> Result<u64> {
        compress(&mut InPool { pool: self, object }, how)
    }

    /// Indexes the values of a column beside a Parquet object, in its OSD: queries for certain values of it read less then. How many calls it took.
    ///
    /// # Errors
    ///
    /// As [`index`].
    pub fn index(&self, object: &str, column: &str) -> Result<u64> {
        index(&mut InPool { pool: self, object }, column)
    }

    /// A Parquet file of some of an object's row groups, as they are.
    ///
    /// # Errors
    ///
    /// `Misuse` for row groups that it does not have; `Unsupported` if there is no class; `Io`, also if the object was changed meanwhile.
    pub fn row_groups(&self, object: &str, groups: Range<u64>) -> Result<Vec<u8>> {
        let version = self.stat(object)?.version;
        self.part(object, groups, version).map(|(file, _)| file)
    }

    /// Hands out the row groups of an object as files, of so many row groups each, and the last of as many as are left: `put` gets one after the
    /// other. All are of one state of the object, which stays as it is.
    ///
    /// # Errors
    ///
    /// As [`Pool::row_groups`], and those of `put`: after some were handed out.
    pub fn parts(
        &self,
        object: &str,
        groups_each: u64,
        mut put: impl FnMut(Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let version = self.stat(object)?.version;
        let (_, all) = self.part(object, 0..0, version)?;
        let each = groups_each.max(1);
        for start in (0..all).step_by(usize::try_from(each).unwrap_or(usize::MAX)) {
            put(self.part(object, start..all.min(start.saturating_add(each)), version)?.0)?;
        }
        Ok(())
    }

    /// Writes the row groups of an object as several, as [`Pool::parts`] hands them out: `PREFIX00000.parquet`, and so on. Their names.
    ///
    /// # Errors
    ///
    /// As [`Pool::parts`]; and, after some were written, what [`Pool::write`] says of one that is there.
    pub fn split(&self, object: &str, prefix: &str, groups_each: u64) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        self.parts(object, groups_each, |file| {
            let name = format!("{prefix}{:05}.parquet", names.len());
            self.write(&name, &file, false)?;
            names.push(name);
            Ok(())
        })?;
        Ok(names)
    }

    /// Makes an object of another one's rows, in another form: the class of the OSD that has `from` hands them out in it. From an object of rows, a
    /// Parquet object is made, or the other way. While it is made, the new object has some of the rows; when it has all, it has an extended
    /// attribute that says [where it is from](Pool::origin). How many rows it has.
    ///
    /// # Errors
    ///
    /// `Corrupt` if `from` has neither form; `Unsupported` for columns that the form lacks; `Io`, with
    /// [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) if there is an object of that name, and if `from` was changed meanwhile.
    pub fn transform(&self, from: &str, to: &str, form: Form) -> Result<u64> {
        let version = self.stat(from)?.version;
        let (mut cursor, mut rows, mut pieces, mut is_written) = (None::<Vec<u8>>, 0, Vec::new(), false);
        loop {
            let mut frame = Frame::new(REQUEST);
            frame.push(FORMAT, &[if form == Form::Parquet { 2 } else { 4 }]);
            // As much as a call may: of small parts, objects are slow to search.
            frame.push_u64(UNITS, u64::MAX).push_u64(ANSWER_BYTES, u64::MAX);
            if let Some(cursor) = &cursor {
                frame.push(CURSOR, cursor);
            }
            let answer = self.execute_at(from, "transform", &frame.into_bytes(), Some(version))?;
            let part = read(&answer)?;
            rows += part.rows;
            match form {
                // Of pieces that are deleted, nothing comes.
                Form::Parquet if part.data.is_empty() => {}
                Form::Parquet if !is_written => {
                    self.write(to, &part.data, false)?;
                    is_written = true;
                }
                Form::Parquet if part.rows == 0 => {}
                Form::Parquet => self.merge(to, &part.data, None)?,
                Form::Rows => pieces.extend_from_slice(&part.data),
            }
            if part.cursor.is_none() {
                break;
            }
            if part.cursor == cursor {
                return Err(Error::refused("the object class does not get on"));
            }
            cursor = part.cursor;
        }
        match form {
            Form::Rows => self.write(to, &pieces, false)?,
            Form::Parquet if !is_written => {
                let error =
                    Error::unsupported("an object of rows of which nothing says what columns they have");
                return Err(error.at(|place| place.object = Some(from.to_owned())));
            }
            Form::Parquet => {}
        }
        let origin = format!("{from}@{version}");
        self.locked(|context| context.set_attribute(to, FROM, origin.as_bytes()))?;
        Ok(rows)
    }

    /// What an object was made of by [`Pool::transform`], as `NAME@VERSION`; `None` if it was not, or not completely.
    ///
    /// # Errors
    ///
    /// `Io`, with [`NotFound`](marquetry_base::Detail::NotFound) if there is no object.
    pub fn origin(&self, object: &str) -> Result<Option<String>> {
        let found = self.locked(|context| context.attribute(object, FROM, FROM_BYTES_MAX))?;
        Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// A file of row groups of that version of an object, and how many it has.
    fn part(&self, object: &str, groups: Range<u64>, version: u64) -> Result<(Vec<u8>, u64)> {
        let (mut file, mut cursor) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let mut frame = Frame::new(REQUEST);
            let ends = [groups.start.to_le_bytes(), groups.end.to_le_bytes()];
            frame.push(ROW_GROUPS, ends.as_flattened());
            if let Some(cursor) = &cursor {
                frame.push(CURSOR, cursor);
            }
            let answer = self.execute_at(object, "split", &frame.into_bytes(), Some(version))?;
            let piece = read(&answer)?;
            file.extend_from_slice(&piece.data);
            if piece.cursor.is_none() {
                return Ok((file, piece.row_groups));
            }
            if piece.cursor == cursor {
                return Err(Error::refused("the object class does not get on"));
            }
            cursor = piece.cursor;
        }
    }
}

struct InPool<'a> {
    pool: &'a Pool,
    object: &'a str,
}

impl Change for InPool<'_> {
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        self.pool.locked(|context| context.step(self.object, (self.pool.class(), method), request))
    }

    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()> {
        let cut = (None, Some(length));
        self.pool.locked(|context| context.change(self.object, (self.pool.class(), method), request, cut))
    }
}
