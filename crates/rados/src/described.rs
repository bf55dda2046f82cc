//! What the class says of a Parquet object: its rows and columns, and its column chunks. Nothing of the object travels.

use marquetry_base::{Frame, Result};

use crate::asked::REQUEST;
use crate::joined::JoinedStream;
use crate::pool::Pool;
use crate::rewrite::{Parts, read};

/// A Parquet object as its footer has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Rows in it.
    pub rows: u64,
    /// Row groups that these are in.
    pub row_groups: u64,
    /// The name and version of what wrote it, if that said so.
    pub writer: Option<String>,
    /// Its columns: an Arrow IPC stream without a record batch.
    pub schema: Vec<u8>,
}

impl Pool {
    /// What a Parquet object has.
    ///
    /// # Errors
    ///
    /// `Corrupt` if it is no Parquet file; `Unsupported` if there is no class; `Io`, with [`NotFound`](marquetry_base::Detail::NotFound) if there
    /// is no object.
    pub fn describe(&self, object: &str) -> Result<Described> {
        let said = read(&self.execute_at(object, "describe", &Frame::new(REQUEST).into_bytes(), None)?)?;
        let (rows, row_groups, writer, schema) = (said.rows, said.row_groups, said.writer, said.data);
        Ok(Described { rows, row_groups, writer, schema })
    }

    /// What the footer of a Parquet object says of each column chunk, as an Arrow IPC stream with a row for each: `row_group`, `column`, `rows`, `values`,
    /// `nulls`, `compressed_bytes`, `uncompressed_bytes`, and the bounds `min` and `max` as the footer has them.
    ///
    /// # Errors
    ///
    /// As [`Pool::describe`]; `Io` also if the object was changed meanwhile.
    pub fn stats(&self, object: &str) -> Result<Vec<u8>> {
        let version = self.stat(object)?.version;
        let (mut parts, mut stream) = (Parts::default(), JoinedStream::default());
        let call = |request: &[u8]| self.execute_at(object, "stats", request, Some(version));
        while let Some(part) = parts.next(Frame::new(REQUEST), call)? {
            stream.add(&part.data)?;
        }
        Ok(stream.into_bytes())
    }
}
