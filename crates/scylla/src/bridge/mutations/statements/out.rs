//! What comes out: statements, and their values.

use alloc::vec::Vec;
use core::ops::Range;

use super::texts::{Kind, StatementId};

/// The statements of a row, a bound, or the deletion of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowStatements {
    /// Which row of the `full` mapping it is, counted from 0.
    pub row: u64,
    /// The statements. They may be sent in any order, but for those of one [list](Statement::list).
    pub statements: Vec<Statement>,
    /// What is bound, as the protocol has it.
    pub values: Vec<u8>,
    /// The values of its whole primary key, as they are bound, if it is a row or the deletion of one: writes with the same key are of one
    /// row. Of anything else, none.
    pub key: Vec<u8>,
    /// They delete a range of rows, which an earlier row began: this row alone is no write.
    pub is_range: bool,
}

/// A statement, and where its values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Which statement.
    pub id: StatementId,
    /// Its write time, in microseconds since 1970.
    pub write_time: i64,
    /// Where its values are in [`RowStatements::values`].
    pub values: Range<usize>,
    /// The list that it writes, by its column's number. The statements of a list follow each other and must be executed in this order.
    pub list: Option<u32>,
}

/// Adds a statement whose values are those from a place on.
pub(super) fn push(out: &mut RowStatements, at: usize, kind: Kind, write_time: i64) {
    let values = at..out.values.len();
    out.statements.push(Statement { id: kind.id(), write_time, values, list: None });
}
