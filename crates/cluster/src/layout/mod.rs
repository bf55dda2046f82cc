//! The layouts `wide` and `blob`: rows of a table that hold other rows, and the table's own description of those.
//!
//! ```text
//! loading    rows ──► Laying ──► rows of the table, by its columns ──► Mapping, Filling, Load …    as rows of any table
//! reading    CqlSource ──► rows of the table ──► LaidSource ──► rows
//! ```
//!
//! Both go by a [`Description`](description::Description), which is in the table's comment: so it is made, dropped, backed up and restored with it. What a column holds of
//! a leaf is its [`Carrier`](carrier::Carrier); of nested columns, and of records, it is a [packed](marquetry_scylla::packed) cell. The format is in
//! `docs/layouts.md`.

mod carrier;
mod description;
mod laying;
mod planned;
mod reading;
mod source;

pub(crate) use description::described;
pub(crate) use laying::Laying;
pub(crate) use planned::{Planned, expect_layout, expect_plain, expect_rows};
pub use source::LaidSource;

/// How the rows of a table hold those that are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableLayout {
    /// A row is a row.
    Rows,
    /// A row is a row of short column names; nested columns are cells.
    Wide,
    /// A row is its key and one cell.
    Blob,
}

impl TableLayout {
    /// The layout with this [name](TableLayout::name).
    ///
    /// ```
    /// use marquetry_cluster::TableLayout;
    ///
    /// assert_eq!(TableLayout::by_name("wide"), Some(TableLayout::Wide));
    /// // A Parquet file within a table is no rows: `NewColumns` writes it.
    /// assert_eq!(TableLayout::by_name("columns"), None);
    /// ```
    pub fn by_name(name: &str) -> Option<TableLayout> {
        [TableLayout::Rows, TableLayout::Wide, TableLayout::Blob].into_iter().find(|it| it.name() == name)
    }

    /// Its name: `rows`, `wide`, `blob`.
    pub fn name(self) -> &'static str {
        match self {
            TableLayout::Rows => "rows",
            TableLayout::Wide => "wide",
            TableLayout::Blob => "blob",
        }
    }
}

#[cfg(test)]
mod tests;
