//! Rows that are found, as products that can be compared.

use std::ops::Range;

use marquetry_base::{Budget, Bytes, Error, Machine, Object, Result, Step};
use marquetry_parquet::find::{Found, RowFinder};

/// A finder that hands out a row group and the runs of its rows: of each the first, and the one after the last.
pub struct Runs<'a>(pub &'a mut RowFinder);

impl Machine for Runs<'_> {
    type Product = (usize, Vec<[u64; 2]>);

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Self::Product>> {
        Ok(match self.0.step(budget)? {
            Step::Ready(Found { row_group, rows, .. }) => {
                let runs = std::iter::successors(rows.next_run(0), |run| rows.next_run(run.end));
                Step::Ready((row_group, runs.map(|run| [run.start, run.end]).collect()))
            }
            Step::Need(demand) => Step::Need(demand),
            Step::Append(object, bytes) => Step::Append(object, bytes),
            Step::Yield => Step::Yield,
            Step::Done => Step::Done,
        })
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.0.supply(object, range, bytes)
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.0.supply_length(object, length)
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        self.0.fail(object, range, reason);
    }
}
