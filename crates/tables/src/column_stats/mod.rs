//! What the values of a table's columns are like.

mod distinct;
mod frequent;
mod leaf;
mod value;

use std::sync::Arc;

use marquetry_base::Result;
use marquetry_base::cast::u64_of;

use crate::{Reading, ReadingOptions, Source};
use leaf::LeafSummary;

pub use distinct::{Distinct, DistinctCounter};
pub use frequent::FrequentValue;
pub use leaf::LeafStats;
pub use value::PlainValue;

/// What the values of a table's columns are like: see [`column_stats`](column_stats()).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ColumnStats {
    /// Rows.
    pub rows: u64,
    /// For each leaf of the table's schema, in order, what its values are like.
    pub leaves: Vec<LeafStats>,
}

/// Reads a table, and says what the values of its columns are like: counts, bounds, how many are different, and which
/// are frequent. `read` gets the rows and the bytes that were read so far, now and then.
///
/// Bounds are those of the values, not of a footer's statistics, which are not exact everywhere: all values are read in any case.
///
/// It takes little memory, whatever the values: some 40 KB a leaf, of thousands of leaves less, and a dictionary of each. So how many
/// are different is an estimate where they are many, with a standard error of 0.8 % (of more than 4,096 leaves, 3.3 %), and
/// the frequency of a value has a lower and an upper bound.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{ReadingOptions, column_stats};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let stats = column_stats(trips, ReadingOptions::default(), |_, _| {})?;
/// for leaf in &stats.leaves {
///     println!("{} nulls of {}, {:?} different", leaf.nulls, leaf.entries, leaf.distinct);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of reading.
pub fn column_stats(
    source: Arc<dyn Source>,
    mut options: ReadingOptions,
    mut read: impl FnMut(u64, u64),
) -> Result<ColumnStats> {
    let schema = Arc::clone(&source.table().schema);
    options.piece.keep_dictionaries = true;
    let bytes_read = options.piece.bytes_read.clone();
    let leaves = schema.leaves();
    let mut summaries: Vec<LeafSummary> =
        leaves.iter().map(|leaf| LeafSummary::new(&schema, leaf, leaves.len())).collect();
    let mut rows = 0_u64;
    let mut reading = Reading::new(source, options)?;
    while let Some((_, batch)) = reading.next_batch()? {
        rows = rows.saturating_add(u64_of(batch.rows));
        for (summary, column) in summaries.iter_mut().zip(&batch.columns) {
            summary.add(column)?;
        }
        read(rows, bytes_read.get());
    }
    Ok(ColumnStats { rows, leaves: summaries.into_iter().map(LeafSummary::finish).collect() })
}
