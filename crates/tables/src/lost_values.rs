//! Values that a source has, and columns cannot hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Note;

/// Counts values that were read and became null because columns of Parquet cannot hold them: in tables of ScyllaDB and Cassandra those of no bytes
/// of types other than text and blobs (`blobAsInt(0x)`), text that is not UTF-8, numbers of thousands of digits. All clones are one counter. For
/// [`PieceOptions::lost`](crate::PieceOptions).
///
/// Of rows that are read, but left out afterwards (by a filter, or beyond a limit), values may be counted, too.
///
/// ```
/// use marquetry_tables::LostValues;
///
/// let lost = LostValues::default();
/// lost.clone().add("fare", 2);
/// lost.add("day", 1);
/// assert_eq!(lost.total(), 3);
/// assert_eq!(lost.by_column(), [("day".to_owned(), 1), ("fare".to_owned(), 2)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct LostValues {
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
    /// The columns that are counted, and as what. `None`: all, by their own names.
    names: Option<Arc<BTreeMap<String, String>>>,
}

/// Columns that a note names; of others it is said how many they are.
const NAMES_MAX: usize = 10;

impl LostValues {
    /// Adds values of a column.
    pub fn add(&self, column: &str, values: u64) {
        if let Some(name) = self.name_of(column).filter(|_| values > 0) {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(name.to_owned()).or_default();
            *count = count.saturating_add(values);
        }
    }

    /// Adds values of several columns.
    pub fn add_all(&self, columns: impl IntoIterator<Item = (String, u64)>) {
        columns.into_iter().for_each(|(column, values)| self.add(&column, values));
    }

    /// Values so far.
    pub fn total(&self) -> u64 {
        self.by_column().iter().fold(0, |sum, (_, values)| sum.saturating_add(*values))
    }

    /// Values so far of each column that has any, by name.
    pub fn by_column(&self) -> Vec<(String, u64)> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, values)| (name.clone(), *values)).collect()
    }

    /// The same counter for a table that has these columns under other names, first its own: others are not counted.
    #[must_use]
    pub fn of_columns<'a>(&self, columns: impl IntoIterator<Item = (&'a str, &'a str)>) -> LostValues {
        let known = |(own, name): (&str, &str)| Some((own.to_owned(), self.name_of(name)?.to_owned()));
        let names = columns.into_iter().filter_map(known).collect();
        LostValues { counts: Arc::clone(&self.counts), names: Some(Arc::new(names)) }
    }

    /// What is to be said of them; `None` if there are none.
    pub fn note(&self) -> Option<Note> {
        let columns = self.by_column();
        let names: Vec<&str> = columns.iter().take(NAMES_MAX).map(|(name, _)| &**name).collect();
        let more = match columns.len().saturating_sub(NAMES_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let values = match self.total() {
            0 => return None,
            1 => "1 value".to_owned(),
            values => format!("{values} values"),
        };
        let columns = if columns.len() == 1 { "column" } else { "columns" };
        let text = format!(
            "{values} without a form in Parquet (an int of no bytes, for example) became null, in the {columns} {}{more}",
            names.join(", ")
        );
        Some(Note { text, option: Some("with_metadata") })
    }

    fn name_of<'a>(&'a self, column: &'a str) -> Option<&'a str> {
        match &self.names {
            None => Some(column),
            Some(names) => names.get(column).map(|name| &**name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_under_the_names_that_are_read() {
        let lost = LostValues::default();
        let renamed = lost.of_columns([("a", "x"), ("b", "b"), ("c", "c")]);
        let chosen = renamed.of_columns([("a", "a"), ("c", "c")]);
        for column in ["a", "b", "c"] {
            chosen.add(column, 1);
        }
        assert_eq!(lost.by_column(), [("c".to_owned(), 1), ("x".to_owned(), 1)]);
        renamed.add("b", 0);
        assert_eq!(lost.total(), 2);
    }

    #[test]
    fn notes() {
        let lost = LostValues::default();
        assert_eq!(lost.note(), None);
        lost.add("i", 1);
        let text = || lost.note().unwrap().text;
        let form = "without a form in Parquet (an int of no bytes, for example) became null, in the";
        assert_eq!(text(), format!("1 value {form} column i"));
        lost.add_all([("t".to_owned(), 2)]);
        assert_eq!(text(), format!("3 values {form} columns i, t"));
        lost.add_all((0..10).map(|number| (format!("z{number}"), 1)));
        assert!(
            text().ends_with("in the columns i, t, z0, z1, z2, z3, z4, z5, z6, z7 and 2 more"),
            "{}",
            text()
        );
    }
}
