//! Where a call ended, and the next one goes on.

use marquetry_base::{Error, Result};

/// A row group, and a row in it.
pub(crate) type At = (usize, u64);

/// A place in an object: its bytes are `row group (u32), row in it (u64), mark of the object (u32)`, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The row group to go on in, and the first of its rows that is not done.
    pub(crate) row_group: u32,
    pub(crate) row: u64,
    /// What the object's footer was, as a checksum: another object, or another content, has another one.
    pub(crate) mark: u32,
}

impl Cursor {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Cursor> {
        let Ok([g0, g1, g2, g3, row @ .., m0, m1, m2, m3]) = <[u8; 16]>::try_from(bytes) else {
            return Err(Error::misuse(format!("a cursor of {} bytes", bytes.len())));
        };
        Ok(Cursor {
            row_group: u32::from_le_bytes([g0, g1, g2, g3]),
            row: u64::from_le_bytes(row),
            mark: u32::from_le_bytes([m0, m1, m2, m3]),
        })
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        let parts: [&[u8]; 3] =
            [&self.row_group.to_le_bytes(), &self.row.to_le_bytes(), &self.mark.to_le_bytes()];
        parts.concat()
    }

    /// Checks that it is of the object whose footer has this mark.
    pub(crate) fn check(self, mark: u32) -> Result<()> {
        if self.mark == mark {
            return Ok(());
        }
        Err(Error::io("the object was changed since the call before, or the cursor is another object's"))
    }
}
