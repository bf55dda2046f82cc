//! A query of one object, call by call.

use marquetry_base::{Bytes, Error, ErrorKind, Fields, Result};

use crate::asked::Asked;

/// How an answer begins.
pub(crate) const ANSWER: [u8; 4] = *b"MQA1";

/// The numbers of an answer's fields.
const DATA: u16 = 1;
const CURSOR: u16 = 2;
const ROWS: u16 = 3;
const WORK: u16 = 4;
const ERROR: u16 = 7;
const FIRST_ROW: u16 = 8;
const SEARCH: u16 = 9;

/// What calls a method of the class on one object, always the same one.
pub trait Execute {
    /// Calls `query`. If `version` is given, the object must still have it; the answer, and the version that the object has.
    ///
    /// # Errors
    ///
    /// `Io` if the call does not reach the class, or the object has another version; `Unsupported` if there is no such class.
    fn execute(&mut self, request: &[u8], version: Option<u64>) -> Result<(Vec<u8>, u64)>;
}

impl<E: Execute + ?Sized> Execute for Box<E> {
    fn execute(&mut self, request: &[u8], version: Option<u64>) -> Result<(Vec<u8>, u64)> {
        (**self).execute(request, version)
    }
}

/// What one call answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// An Arrow IPC stream (a schema, and record batches), or a Parquet file where that was asked for. Each answer's is complete by itself.
    /// Empty if rows are counted, and if a call came to nothing but deleted pieces of an object of rows.
    pub data: Bytes,
    /// Rows in it, or that were counted.
    pub rows: u64,
    /// The number that the first of them has in the object.
    pub first_row: u64,
    /// What the search did, as the numbers of a `Report` of `marquetry-parquet`; none without a predicate.
    pub report: Vec<u64>,
    /// Units of work in the OSD, each about a nanosecond.
    pub units: u64,
    /// Bytes of the object that the OSD read.
    pub bytes_read: u64,
}

/// The answers of a query of one object. After an error nothing more comes.
pub struct Query<E> {
    execute: E,
    asked: Asked,
    wanted: Option<u64>,
    cursor: Option<Vec<u8>>,
    version: Option<u64>,
    is_done: bool,
}

impl<E: Execute> Query<E> {
    /// A query, of which nothing is asked yet.
    pub fn new(execute: E, asked: &Asked) -> Query<E> {
        let (asked, wanted) = (asked.clone(), asked.rows_wanted());
        Query { execute, asked, wanted, cursor: None, version: None, is_done: false }
    }

    /// The same, of the object as long as it has this version.
    #[must_use]
    pub fn of_version(mut self, version: u64) -> Query<E> {
        self.version = Some(version);
        self
    }

    fn call(&mut self) -> Result<Answer> {
        let request = self.asked.request(self.cursor.as_deref(), self.wanted);
        let (bytes, version) = self.execute.execute(&request, self.version)?;
        self.version = Some(version);
        let (mut answer, mut data) = (Answer::default(), 0..0);
        let mut cursor = None;
        let mut fields = Fields::of(&bytes, ANSWER)?;
        while let Some(field) = fields.next() {
            let field = field?;
            match field.number {
                DATA => {
                    let end = bytes.len() - fields.left();
                    data = end - field.bytes.len()..end;
                }
                CURSOR => cursor = Some(field.bytes.to_vec()),
                ROWS => answer.rows = field.u64()?,
                WORK => [answer.units, answer.bytes_read, _] = numbers(field.bytes),
                FIRST_ROW => [answer.first_row, ..] = numbers(field.bytes),
                SEARCH => {
                    let (chunks, _) = field.bytes.as_chunks::<8>();
                    answer.report = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect();
                }
                ERROR => return Err(error_of(field.bytes)),
                _ if field.is_optional => {}
                other => {
                    return Err(Error::unsupported(format!(
                        "an answer with a field {other}, which is not known here"
                    )));
                }
            }
        }
        // They stay where they are, in the memory that they came in: there may be many, and what is around them is little.
        answer.data = Bytes::from(bytes).slice(data);
        if let Some(wanted) = &mut self.wanted {
            *wanted = wanted.saturating_sub(answer.rows);
        }
        if cursor.is_some() && cursor == self.cursor {
            return Err(Error::refused("the object class does not get on"));
        }
        self.is_done = cursor.is_none() || self.wanted == Some(0);
        self.cursor = cursor;
        Ok(answer)
    }
}

impl<E: Execute> Iterator for Query<E> {
    type Item = Result<Answer>;

    fn next(&mut self) -> Option<Result<Answer>> {
        if self.is_done {
            return None;
        }
        let answer = self.call();
        self.is_done |= answer.is_err();
        Some(answer)
    }
}

/// Numbers, one after the other; 0 where there are none.
fn numbers(bytes: &[u8]) -> [u64; 3] {
    let (chunks, _) = bytes.as_chunks::<8>();
    [0, 1, 2].map(|at| chunks.get(at).map_or(0, |chunk| u64::from_le_bytes(*chunk)))
}

/// The error that an answer says.
pub(crate) fn error_of(bytes: &[u8]) -> Error {
    let kind = match bytes.first() {
        Some(1) => ErrorKind::Corrupt,
        Some(2) => ErrorKind::Unsupported,
        Some(3) => ErrorKind::LimitExceeded,
        Some(4) => ErrorKind::Io,
        Some(5) => ErrorKind::Misuse,
        Some(6) => ErrorKind::Conversion,
        _ => ErrorKind::Refused,
    };
    Error::new(kind, String::from_utf8_lossy(bytes.get(1..).unwrap_or_default()).into_owned())
}
