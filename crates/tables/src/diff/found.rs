//! What a comparison of two tables finds.

use std::sync::Arc;

use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;

use crate::LostValues;

/// The differences of two tables. Each pair has the first table's item, then the second's.
///
/// [`diff`](crate::diff()) has an example.
///
/// ```
/// let found = marquetry_tables::Differences::default();
/// assert!(found.are_rows_equal() && found.schema.is_none());
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Differences {
    /// How the schemas differ.
    pub schema: SchemaDifferences,
    /// How many rows differ.
    pub rows: RowDifferences,
    /// Columns whose values differ.
    pub values: Vec<ColumnDifference>,
    /// By key: the schemas of the keys in either table, which are those of [`RowId::Key`].
    pub key: Option<[Arc<Schema>; 2]>,
    /// By key: the bytes that were spilled to sort the rows.
    pub sorted_by_way_of: Option<u64>,
    /// The values of each table that were compared as null because columns cannot hold them: nobody can say whether two of them are equal. If a
    /// column has more of them in one table, they differ; but see [`LostValues`] of filters.
    pub lost: [LostValues; 2],
}

/// How the schemas of two tables differ. Nested fields are named by their paths: `place.lat`, `tags.element`.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SchemaDifferences {
    /// Columns and fields that only the first table has, and those that only the second has. A field that one table lacks is
    /// not compared.
    pub only: [Vec<String>; 2],
    /// Columns and fields whose values cannot be compared, with their types.
    pub incomparable: Vec<(String, [String; 2])>,
    /// Columns and fields that are compared, but differ in type, nullability, field id, or the spelling of a list or map; in
    /// words.
    pub fields: Vec<(String, [String; 2])>,
    /// Groups whose fields are in another order; empty text is the table itself.
    pub reordered: Vec<String>,
}

/// How many rows of two tables differ.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RowDifferences {
    /// The rows of each table.
    pub total: [u64; 2],
    /// Rows of the first table that were compared with a row of the second.
    pub compared: u64,
    /// Those of them that differ in any column.
    pub changed: u64,
    /// Rows that only one table has: by key those without a counterpart, in order those after the other table's end.
    pub only: [u64; 2],
    /// By key: the first of these.
    pub only_shown: [Vec<RowId>; 2],
    /// By key: rows of each table that have the key of a row before them.
    pub repeated_keys: [u64; 2],
}

/// What names a row.
#[derive(Debug, Clone)]
pub enum RowId {
    /// Its number in both tables, counted from 0.
    Number(u64),
    /// Its key: a batch of one row, with the schema [`Differences::key`].
    Key(Batch),
}

/// A column whose values differ in some rows.
#[derive(Debug)]
#[non_exhaustive]
pub struct ColumnDifference {
    /// Its name.
    pub name: String,
    /// Its index among the columns of each table.
    pub column: [usize; 2],
    /// Rows that differ.
    pub rows: u64,
    /// The first of them.
    pub shown: Vec<DifferentRow>,
}

/// A row in which a column differs.
#[derive(Debug)]
#[non_exhaustive]
pub struct DifferentRow {
    /// Which row; its key is that of the first table.
    pub id: RowId,
    /// The column in either table's row: a batch of one row, whose leaves are the column's.
    pub values: [Batch; 2],
}

impl Differences {
    /// Whether the rows are equal: both tables have the same columns and as many rows, all columns can be compared, and all values
    /// are equal, as many of each column [lost](Differences::lost). The schemas may still differ.
    pub fn are_rows_equal(&self) -> bool {
        let SchemaDifferences { only, incomparable, .. } = &self.schema;
        only.iter().all(Vec::is_empty)
            && incomparable.is_empty()
            && self.rows.only == [0, 0]
            && self.values.is_empty()
            && self.is_as_much_lost()
    }

    /// Whether no value is [lost](Differences::lost): then all were compared.
    pub fn are_all_compared(&self) -> bool {
        self.lost.iter().all(|lost| lost.total() == 0)
    }

    /// Whether as many values of each column of both tables were compared as null because columns cannot hold them.
    pub fn is_as_much_lost(&self) -> bool {
        let [a, b] = self.lost.each_ref().map(LostValues::by_column);
        a == b
    }
}

impl SchemaDifferences {
    /// Whether the schemas are the same.
    pub fn is_none(&self) -> bool {
        let SchemaDifferences { only, incomparable, fields, reordered } = self;
        only.iter().all(Vec::is_empty) && incomparable.is_empty() && fields.is_empty() && reordered.is_empty()
    }
}
