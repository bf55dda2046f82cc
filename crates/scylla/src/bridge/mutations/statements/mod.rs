//! Writes as CQL statements that carry them: with their write times, TTLs and deletions.
//!
//! | what was written | statement |
//! |---|---|
//! | a row marker, and what has its time and TTL | `INSERT … USING TTL ?` |
//! | cells without a marker, or with another time or TTL | `UPDATE t USING TTL ? SET a = ?, b = ?, …`, one for each time and TTL |
//! | a deleted cell | null in one of these |
//! | a collection that replaced another: deleted, and written a microsecond later | its value in one of these |
//! | other elements of a set or map | `SET m = m + ?`, `SET m = m - ?` if they are deleted |
//! | fields of a user-defined type | `SET u.a = ?, u.b = ?, …` |
//! | elements of a list | `SET l = ?`, then `SET l = l + ?` for those of other times and TTLs: see below |
//! | the deletion of a collection, and nothing a microsecond later | `DELETE m` |
//! | the deletion of a row, a partition | `DELETE FROM t WHERE …` |
//! | a range of deleted rows | one `DELETE`, or some (`ranges.rs` says why) |
//!
//! Each statement has one write time ([`Statement::write_time`]), which its host sends with it, so their order does not matter. A column that a
//! statement names and does not write is bound to UNSET, which writes nothing: so there are few texts, and each is prepared once.
//!
//! **What expires** is written with the seconds that it has left *as of* a time that the host gives. What has expired by then is written as
//! deleted at its write time, so that it still hides what is older. A row marker cannot be deleted alone: one that has expired is
//! written with a TTL of one second.
//!
//! **Lists.** An element's key is a time UUID, which servers make when they execute a statement. So an element keeps its value, write time
//! and TTL, and elements their order, if the statements of a list are sent one after the other; but not their keys. Elements that are
//! deleted are left out: nothing in another list has their keys. A statement that may have been executed must not be sent again as it
//! is, or its elements are there twice: see [`StatementTexts::is_idempotent`].
//!
//! **Not written** are counters, which are only added to: [`Statements::new`] refuses them.

mod collections;
mod machine;
mod out;
mod pack;
mod ranges;
mod row;
mod texts;

#[cfg(test)]
mod tests;

pub use machine::Statements;
pub use out::{RowStatements, Statement};
pub use texts::{StatementId, StatementTexts};
