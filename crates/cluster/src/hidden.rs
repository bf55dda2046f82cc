//! Writes that servers take, and never show: to columns that were dropped later, and added again.

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, Result};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{Cells, MutationBatch};

use crate::cluster::Cluster;

/// The columns of a table that were dropped once, and when: what is written until then is not shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hidden {
    /// Names, and microseconds since 1970.
    columns: Vec<(String, i64)>,
}

impl Hidden {
    /// The columns among those that are written.
    ///
    /// # Errors
    ///
    /// The cluster's.
    pub(crate) fn of(cluster: &Cluster, is_written: impl Fn(&str) -> bool) -> Result<Hidden> {
        let dropped = cluster.dropped_columns()?;
        Ok(Hidden { columns: dropped.into_iter().filter(|(name, _)| is_written(name)).collect() })
    }

    /// Until when what is written to a column is not shown.
    pub(crate) fn until(&self, column: &str) -> Option<i64> {
        self.columns.iter().find(|(name, _)| name == column).map(|(_, dropped_us)| *dropped_us)
    }

    /// Fails for rows of which none is written before this time, if one that is could be hidden.
    pub(crate) fn expect_seen_from(&self, write_time_us: i64) -> Result<()> {
        match self.columns.iter().find(|(_, dropped_us)| *dropped_us >= write_time_us) {
            None => Ok(()),
            Some((name, dropped_us)) => Err(Error::refused(format!(
                "the column {name} was dropped, and added again, after the rows' write time ({dropped_us} and {write_time_us} µs since \
                 1970): the cluster would not show their values; load them with a later write time, in a load that begins anew"
            ))),
        }
    }

    /// The same columns, by their numbers among those of a table that have cells.
    pub(crate) fn numbered(&self, columns: &TableColumns) -> HiddenCells {
        let names = columns.cells().map(|column| String::from_utf8_lossy(&column.name).into_owned());
        let hidden = |(number, name): (usize, String)| self.until(&name).map(|until| (number, name, until));
        HiddenCells(names.enumerate().filter_map(hidden).collect())
    }
}

/// What a row is that would be written and not seen.
pub(crate) fn unseen(name: &str, dropped_us: i64, write_time_us: i64) -> Error {
    let what = format!(
        "the column {name} was dropped, and added again, after this write time ({dropped_us} and {write_time_us} µs since 1970): the \
         cluster would not show the value"
    );
    Error::conversion(what).at(|place| place.column = Some(name.to_owned()))
}

/// Columns of a table that hide cells, of writes with times of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenCells(Vec<(usize, String, i64)>);

impl HiddenCells {
    /// Fails for a cell that would not be seen. What deletes is passed over: what it deletes is not seen either.
    pub(crate) fn expect_none(&self, batch: &MutationBatch) -> Result<()> {
        for (number, name, until) in &self.0 {
            let Some(cells) = batch.columns.get(*number) else { continue };
            if let Some(written) = first_until(cells, &batch.entries.timestamps, *until) {
                return Err(unseen(name, *until, written));
            }
        }
        Ok(())
    }
}

/// The write time of the first cell with a value that is not later than this; `rows` has the write times of entries.
fn first_until(cells: &Cells, rows: &[i64], until: i64) -> Option<i64> {
    let mut own = cells.timestamps.at.iter().zip(&cells.timestamps.values).peekable();
    let mut deleted = cells.tombstones.at.iter().peekable();
    for (number, entry) in (0_u32..).zip(&cells.entries) {
        let written = own.next_if(|(at, _)| **at == number).map(|(_, written)| *written);
        let is_deleted = deleted.next_if(|at| **at == number).is_some();
        let written = written.or_else(|| rows.get(usize_of_u32(*entry)).copied());
        if let Some(written) = written.filter(|written| !is_deleted && *written <= until) {
            return Some(written);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_scylla::sstable::batch::{Sparse, Values};

    #[test]
    fn cells_are_hidden_by_their_own_time_or_the_rows() {
        let rows = [10, 20, 30];
        let mut cells = Cells { entries: vec![0, 1, 2], values: Values::None(3), ..Cells::default() };
        assert_eq!(first_until(&cells, &rows, 9), None);
        assert_eq!(first_until(&cells, &rows, 10), Some(10));
        cells.tombstones = Sparse { at: vec![0], values: vec![1] };
        assert_eq!((first_until(&cells, &rows, 15), first_until(&cells, &rows, 20)), (None, Some(20)));
        cells.timestamps = Sparse { at: vec![1, 2], values: vec![40, 12] };
        assert_eq!(first_until(&cells, &rows, 15), Some(12));
    }
}
