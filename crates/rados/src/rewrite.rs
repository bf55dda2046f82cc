//! Methods of the class that change an object bit by bit, or hand out a part of its bytes: called until there is nothing more.

use std::ops::Range;

use marquetry_base::{Detail, Error, ErrorKind, Fields, Frame, Result};

use crate::asked::REQUEST;
use crate::joined::JoinedStream;
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
const WRITER: u16 = 6;
const ERROR: u16 = 7;
const CUT: u16 = 10;

/// Calls of one change, at most: more than an object of the largest size takes by the smallest pages.
const CALLS_MAX: u64 = 1 << 20;

/// The highest levels by which the class compresses: above them a step of the codec takes milliseconds, and its library hundreds of MiB.
const LEVELS_MAX: [(&str, i32); 2] = [("zstd", 6), ("brotli", 5)];

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
    /// An Arrow IPC stream. Each call's rows become record batches of some thousand rows.
    Arrow,
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
/// As [`Change::step`]: the object has the same rows then, and what was begun is undone or gone on with by the next one. `LimitExceeded` for levels
/// of `zstd` above 6 and of `brotli` above 5, by which an OSD does not compress.
pub fn compress(object: &mut dyn Change, how: &Recoding) -> Result<u64> {
    let most = LEVELS_MAX.into_iter().find(|(codec, _)| *codec == how.codec).map(|(_, most)| most);
    if let (Some(level), Some(most)) = (how.level, most)
        && level > most
    {
        let codec = &how.codec;
        let message =
            format!("OSDs compress by {codec} up to level {most}, not {level}: `marquetry copy` does");
        return Err(Error::too_large(message));
    }
    match go_on(object, how, Step::Begin) {
        // What is refused, because it does not fit beside what it is made of, say, is undone. Of what failed in another way, nothing is known; and
        // what was cancelled is gone on with by the next one.
        Err(error) if !matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled) => {
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
pub(crate) struct Read {
    pub(crate) data: Vec<u8>,
    cursor: Option<Vec<u8>>,
    pub(crate) rows: u64,
    pub(crate) row_groups: u64,
    pub(crate) writer: Option<String>,
    cut: Option<u64>,
}

pub(crate) fn read(answer: &[u8]) -> Result<Read> {
    let mut read = Read::default();
    for field in Fields::of(answer, ANSWER)? {
        let field = field?;
        match field.number {
            DATA => read.data = field.bytes.to_vec(),
            NEXT => read.cursor = Some(field.bytes.to_vec()),
            ROWS => read.rows = field.u64()?,
            GROUPS => read.row_groups = field.u64()?,
            WRITER => read.writer = Some(String::from_utf8_lossy(field.bytes).into_owned()),
            CUT => read.cut = Some(field.u64()?),
            ERROR => return Err(error_of(field.bytes)),
            _ => {}
        }
    }
    Ok(read)
}

/// What makes an object of another one.
trait Make {
    /// Rows of the other object, in the new form.
    fn hand_out(&mut self, request: &[u8]) -> Result<Vec<u8>>;

    /// Writes the new object, which must not be there: its version.
    fn write(&mut self, bytes: &[u8]) -> Result<u64>;

    /// Adds the rows of a Parquet file to it, if it has that version: the one that it has then.
    fn merge(&mut self, file: &[u8], version: u64) -> Result<u64>;

    /// Says beside it that it has all rows.
    fn complete(&mut self) -> Result<()>;

    /// Removes it, if it has that version.
    fn remove(&mut self, version: u64) -> Result<()>;
}

/// Makes an object: how many rows it has. What was made of one that fails is removed.
fn make(object: &mut dyn Make, form: Form) -> Result<u64> {
    let mut version = None;
    let made = make_of_parts(object, form, &mut version);
    let (Err(error), Some(version)) = (&made, version) else { return made };
    match object.remove(version) {
        Err(left) if left.detail() != Some(Detail::NotFound) => {
            // A call whose end is not known may have changed it, or somebody else.
            let message = format!(
                "{}; the new object could not be removed ({}), and may have some of the rows",
                error.message(),
                left.message()
            );
            made.map_err(|error| error.blamed(ErrorKind::Io).reworded(message))
        }
        _ => made,
    }
}

/// The parts that a method hands out, a call each.
#[derive(Default)]
pub(crate) struct Parts {
    cursor: Option<Vec<u8>>,
    is_done: bool,
}

impl Parts {
    /// The next part, which `call` gets for the request and where to go on; `None` if there is no more.
    pub(crate) fn next(
        &mut self,
        mut request: Frame,
        call: impl FnOnce(&[u8]) -> Result<Vec<u8>>,
    ) -> Result<Option<Read>> {
        if self.is_done {
            return Ok(None);
        }
        if let Some(cursor) = &self.cursor {
            request.push(CURSOR, cursor);
        }
        let mut part = read(&call(&request.into_bytes())?)?;
        let next = part.cursor.take();
        if next.is_some() && next == self.cursor {
            return Err(Error::refused("the object class does not get on"));
        }
        (self.is_done, self.cursor) = (next.is_none(), next);
        Ok(Some(part))
    }
}

/// Makes an object, and keeps its version, once it is there.
fn make_of_parts(object: &mut dyn Make, form: Form, version: &mut Option<u64>) -> Result<u64> {
    let format = match form {
        Form::Arrow => 1,
        Form::Parquet => 2,
        Form::Rows => 4,
    };
    let (mut parts, mut rows, mut pieces, mut stream) =
        (Parts::default(), 0, Vec::new(), JoinedStream::default());
    loop {
        let mut request = Frame::new(REQUEST);
        // As much as a call may: of small parts, objects are slow to search.
        request.push(FORMAT, &[format]).push_u64(UNITS, u64::MAX).push_u64(ANSWER_BYTES, u64::MAX);
        let Some(part) = parts.next(request, |request| object.hand_out(request))? else { break };
        rows += part.rows;
        match (form, *version) {
            // Of pieces that are deleted, nothing comes.
            (Form::Parquet | Form::Arrow, _) if part.data.is_empty() => {}
            (Form::Parquet, None) => *version = Some(object.write(&part.data)?),
            (Form::Parquet, Some(_)) if part.rows == 0 => {}
            (Form::Parquet, Some(at)) => *version = Some(object.merge(&part.data, at)?),
            (Form::Rows, _) => pieces.extend_from_slice(&part.data),
            (Form::Arrow, _) => stream.add(&part.data)?,
        }
    }
    match form {
        Form::Rows => *version = Some(object.write(&pieces)?),
        Form::Arrow if !stream.is_empty() => *version = Some(object.write(&stream.into_bytes())?),
        Form::Arrow | Form::Parquet => {}
    }
    if version.is_none() {
        return Err(Error::unsupported("an object of rows of which nothing says what columns they have"));
    }
    object.complete()?;
    Ok(rows)
}

/// An object of a pool that is made of another one, in that version of it.
struct Transformed<'a> {
    pool: &'a Pool,
    from: &'a str,
    version: u64,
    to: &'a str,
}

impl Make for Transformed<'_> {
    fn hand_out(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        self.pool.execute_at(self.from, "transform", request, Some(self.version))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<u64> {
        self.pool.written(self.to, bytes, false)
    }

    fn merge(&mut self, file: &[u8], version: u64) -> Result<u64> {
        self.pool.merged(self.to, file, Some(version))
    }

    fn complete(&mut self) -> Result<()> {
        let origin = format!("{}@{}", self.from, self.version);
        self.pool.changing(self.to, |context| context.set_attribute(self.to, FROM, origin.as_bytes()))
    }

    fn remove(&mut self, version: u64) -> Result<()> {
        self.pool.changing(self.to, |context| context.remove_at(self.to, version))
    }
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

    /// Writes the row groups of an object as several, as [`Pool::parts`] hands them out: `PREFIX00000.parquet`, and so on. `written` gets the name of
    /// each as soon as it is there. How many there are.
    ///
    /// # Errors
    ///
    /// As [`Pool::parts`]; what [`Pool::write`] says of one that is there; and those of `written`. Objects that were written before stay.
    pub fn split(
        &self,
        object: &str,
        prefix: &str,
        groups_each: u64,
        mut written: impl FnMut(&str) -> Result<()>,
    ) -> Result<u64> {
        let mut parts = 0;
        self.parts(object, groups_each, |file| {
            let name = format!("{prefix}{parts:05}.parquet");
            self.write(&name, &file, false)?;
            parts += 1;
            written(&name)
        })?;
        Ok(parts)
    }

    /// Makes an object of another one's rows, in another form: the class of the OSD that has `from` hands them out in it. Of the three forms, each is
    /// made of the others. While a Parquet object is made, it has some of the rows; when the new object has all, it has an extended
    /// attribute that says [where it is from](Pool::origin). How many rows it has.
    ///
    /// # Errors
    ///
    /// `Corrupt` if `from` has none of the forms; `Unsupported` for columns that the new one lacks, or if it has that form already; `Io`, with
    /// [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) if there is an object of that name, and if `from` or the new one was changed
    /// meanwhile. The new object is removed then; if that cannot be done, or if it was changed by others, the message says so.
    pub fn transform(&self, from: &str, to: &str, form: Form) -> Result<u64> {
        let version = self.stat(from)?.version;
        let made = make(&mut Transformed { pool: self, from, version, to }, form);
        made.map_err(|error| error.at(|place| place.object = Some(from.to_owned())))
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
        let ends = [groups.start.to_le_bytes(), groups.end.to_le_bytes()];
        let (mut parts, mut file, mut row_groups) = (Parts::default(), Vec::new(), 0);
        loop {
            let mut request = Frame::new(REQUEST);
            request.push(ROW_GROUPS, ends.as_flattened());
            let call = |request: &[u8]| self.execute_at(object, "split", request, Some(version));
            let Some(part) = parts.next(request, call)? else { break };
            file.extend_from_slice(&part.data);
            row_groups = part.row_groups;
        }
        Ok((file, row_groups))
    }
}

struct InPool<'a> {
    pool: &'a Pool,
    object: &'a str,
}

impl Change for InPool<'_> {
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        self.pool.check()?;
        self.pool
            .changing(self.object, |context| context.step(self.object, (self.pool.class(), method), request))
    }

    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()> {
        let cut = (None, Some(length));
        let class = self.pool.class();
        self.pool
            .changing(self.object, |context| context.change(self.object, (class, method), request, cut))
            .map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object that is made in memory, of parts of one row.
    struct InMemory {
        parts: u8,
        handed_out: u8,
        /// The call after which nothing is handed out any more.
        fails_after: u8,
        object: Option<(u64, Vec<u8>)>,
        /// Whether somebody else writes to it after the second part.
        is_shared: bool,
        is_complete: bool,
        completes: bool,
    }

    impl InMemory {
        fn new(parts: u8) -> InMemory {
            let (handed_out, fails_after, object) = (0, u8::MAX, None);
            let (is_shared, is_complete, completes) = (false, false, true);
            InMemory { parts, handed_out, fails_after, object, is_shared, is_complete, completes }
        }
    }

    impl Make for InMemory {
        fn hand_out(&mut self, _request: &[u8]) -> Result<Vec<u8>> {
            if self.handed_out == self.fails_after {
                return Err(Error::cancelled());
            }
            self.handed_out += 1;
            if let Some((version, bytes)) =
                self.object.as_mut().filter(|_| self.handed_out == 3 && self.is_shared)
            {
                (*version, *bytes) = (*version + 7, b"another's".to_vec());
            }
            let mut frame = Frame::new(ANSWER);
            frame.push(DATA, &[self.handed_out]).push_u64(ROWS, 1);
            if self.handed_out < self.parts {
                frame.push(NEXT, &[self.handed_out]);
            }
            Ok(frame.into_bytes())
        }

        fn write(&mut self, bytes: &[u8]) -> Result<u64> {
            if self.object.is_some() {
                return Err(Error::io("it exists").with(Detail::AlreadyExists));
            }
            self.object = Some((11, bytes.to_vec()));
            Ok(11)
        }

        fn merge(&mut self, file: &[u8], version: u64) -> Result<u64> {
            match &mut self.object {
                Some((has, bytes)) if *has == version => {
                    *has += 1;
                    bytes.extend_from_slice(file);
                    Ok(*has)
                }
                _ => Err(Error::io("it was changed meanwhile")),
            }
        }

        fn complete(&mut self) -> Result<()> {
            self.is_complete = self.completes;
            if self.completes { Ok(()) } else { Err(Error::io("no answer")) }
        }

        fn remove(&mut self, version: u64) -> Result<()> {
            match self.object {
                Some((has, _)) if has == version => self.object = None,
                Some(_) => return Err(Error::io("another version")),
                None => return Err(Error::io("none").with(Detail::NotFound)),
            }
            Ok(())
        }
    }

    #[test]
    fn an_object_that_is_not_made_completely_is_removed() {
        for form in [Form::Parquet, Form::Rows] {
            let mut whole = InMemory::new(4);
            assert_eq!(make(&mut whole, form).unwrap(), 4);
            assert!(whole.is_complete && whole.object.is_some_and(|(_, bytes)| bytes == [1, 2, 3, 4]));
            for fails_after in 0..4 {
                let mut object = InMemory { fails_after, ..InMemory::new(4) };
                assert_eq!(make(&mut object, form).unwrap_err().kind(), ErrorKind::Cancelled);
                assert!(object.object.is_none(), "after {fails_after} calls");
            }
            let mut object = InMemory { completes: false, ..InMemory::new(2) };
            assert_eq!(make(&mut object, form).unwrap_err().kind(), ErrorKind::Io);
            assert!(object.object.is_none());
            // One that was there before stays.
            let mut object = InMemory { object: Some((3, vec![9])), ..InMemory::new(2) };
            assert_eq!(make(&mut object, form).unwrap_err().detail(), Some(Detail::AlreadyExists));
            assert!(object.object == Some((3, vec![9])));
        }
    }

    #[test]
    fn what_took_the_place_of_an_object_that_is_made_gets_none_of_its_rows_and_stays() {
        let mut object = InMemory { is_shared: true, ..InMemory::new(4) };
        let error = make(&mut object, Form::Parquet).unwrap_err();
        assert!(error.message().contains("could not be removed"), "{error}");
        assert!(object.object.is_some_and(|(_, bytes)| bytes == b"another's") && !object.is_complete);
    }
}
