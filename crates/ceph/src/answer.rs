//! What a call answers.

use marquetry_base::{Error, ErrorKind, Frame};
use marquetry_parquet::find::Report;

use crate::cursor::Cursor;
use crate::host::Work;

/// How an answer begins: what it is, and the version of its encoding.
pub const ANSWER: [u8; 4] = *b"MQA1";

/// The fields of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum AnswerField {
    /// Rows, in the form that was asked for: an Arrow IPC stream (a schema, record batches, and the stream's end), or a Parquet file.
    Data = 1,
    /// Where the next call goes on. Missing: there is nothing more.
    Cursor = 2,
    /// Rows: in the data of `query` and `stats`, or that were counted; of `describe`, those of the object (u64).
    Rows = 3,
    /// Units of work, bytes that were read of the object, and in how many pieces (three u64).
    Work = 4,
    /// Row groups (u64), of `describe`.
    RowGroups = 5,
    /// Who wrote the object, of `describe`.
    CreatedBy = 6,
    /// What is wrong: a number for whose fault it is (u8: 1 the object's, 2 a part of the format or of the request that is not supported, 3 a
    /// limit, 4 reading, 5 the request's, 6 a value that does not fit a type, 7 a bug), and a text.
    Error = 7,
    /// The number that the first of the rows has in the object (u64). May be ignored.
    FirstRow = 8,
    /// What the search did ([`Report`], thirty u64). A row group is counted by each call that comes to it, its rows by the first. May be ignored.
    Search = 9,
    /// The length to which the client is to cut the object, in the operation in which it calls `compress` to finish (u64).
    Cut = 10,
}

/// An answer that is made.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) rows: u64,
    pub(crate) work: Work,
    pub(crate) row_groups: Option<u64>,
    pub(crate) created_by: Option<String>,
    pub(crate) first_row: Option<u64>,
    pub(crate) search: Option<Report>,
    pub(crate) cut: Option<u64>,
}

impl Answer {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let (mut bytes, data) = self.into_parts();
        bytes.extend_from_slice(&data);
        bytes
    }

    /// The answer in two parts, one after the other: the second is the data, which need not be copied after the first.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        let mut frame = Frame::new(ANSWER);
        if let Some(cursor) = self.cursor {
            frame.push(AnswerField::Cursor as u16, &cursor.bytes());
        }
        frame.push_u64(AnswerField::Rows as u16, self.rows);
        let Work { units, bytes, reads } = self.work;
        let work = [units.to_le_bytes(), bytes.to_le_bytes(), reads.to_le_bytes()];
        frame.push_optional(AnswerField::Work as u16, work.as_flattened());
        if let Some(first_row) = self.first_row {
            frame.push_optional(AnswerField::FirstRow as u16, &first_row.to_le_bytes());
        }
        if let Some(search) = self.search {
            let numbers = search.to_numbers().map(u64::to_le_bytes);
            frame.push_optional(AnswerField::Search as u16, numbers.as_flattened());
        }
        if let Some(row_groups) = self.row_groups {
            frame.push_u64(AnswerField::RowGroups as u16, row_groups);
        }
        if let Some(length) = self.cut {
            frame.push_u64(AnswerField::Cut as u16, length);
        }
        if let Some(created_by) = self.created_by {
            frame.push_optional(AnswerField::CreatedBy as u16, created_by.as_bytes());
        }
        if let Some(data) = &self.data {
            frame.push_head(AnswerField::Data as u16, data.len());
        }
        (frame.into_bytes(), self.data.unwrap_or_default())
    }

    pub(crate) fn of_error(error: &Error) -> Vec<u8> {
        let kind: u8 = match error.kind() {
            ErrorKind::Corrupt => 1,
            ErrorKind::Unsupported => 2,
            ErrorKind::LimitExceeded => 3,
            ErrorKind::Io => 4,
            ErrorKind::Misuse => 5,
            ErrorKind::Conversion => 6,
            _ => 7,
        };
        let mut text = vec![kind];
        text.extend_from_slice(error.to_string().as_bytes());
        let mut frame = Frame::new(ANSWER);
        frame.push(AnswerField::Error as u16, &text);
        frame.into_bytes()
    }
}
