//! Batches cut to what is asked for.

use marquetry_base::Result;
use marquetry_base::cast::u64_of;
use marquetry_parquet::batch::Batch;

use crate::PieceOptions;

/// Cuts batches as [`PieceOptions::limit`] and [`PieceOptions::batch_rows`] ask: for sources whose batches have as many rows as come.
#[derive(Debug)]
pub struct Portions {
    /// Rows that are still wanted, and the most of a batch.
    left: u64,
    batch_rows: usize,
    /// What is left of a batch that has more rows than are wanted of one.
    rest: Option<Batch>,
}

impl Portions {
    /// Of the rows of a piece.
    pub fn new(options: &PieceOptions) -> Portions {
        Portions {
            left: options.limit.unwrap_or(u64::MAX),
            batch_rows: options.batch_rows.unwrap_or(usize::MAX).max(1),
            rest: None,
        }
    }

    /// Rows that are still wanted.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next rows, out of the batches that `more` brings. `None` once there are enough, or no more.
    ///
    /// # Errors
    ///
    /// Those of `more`.
    pub fn next(&mut self, more: impl FnOnce() -> Result<Option<Batch>>) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = match self.rest.take() {
            Some(rest) => Some(rest),
            None => more()?,
        };
        let Some(mut batch) = next else { return Ok(None) };
        let most = self.batch_rows.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if batch.rows > most {
            self.rest = Some(batch.slice(most..batch.rows));
            batch = batch.slice(0..most);
        }
        self.left -= u64_of(batch.rows);
        Ok(Some(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_cut() {
        let mut options = PieceOptions::default().limited_to(8);
        options.batch_rows = Some(3);
        let mut portions = Portions::new(&options);
        let mut next = 0;
        let mut rows = Vec::new();
        while let Some(batch) = portions
            .next(|| {
                next += 5;
                Batch::of_values([(next - 5..next).collect::<Vec<i64>>().into()]).map(Some)
            })
            .unwrap()
        {
            rows.push(batch.rows);
        }
        assert_eq!((rows, portions.left()), (vec![3, 2, 3], 0));
    }
}
