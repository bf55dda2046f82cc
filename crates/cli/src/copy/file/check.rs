//! `--verify`: whether what was written is what was read.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

use marquetry_base::cast::u64_of;
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::sort::Keys;

use super::output::OpenFile;
use super::partition::Partitioning;
use crate::copy::Copying;
use crate::dataset::{Dataset, Hive, TableArgs};
use crate::diff::{self, Entries};
use crate::failure::{Failure, Outcome};

/// Reads a file that was written, and compares it with what was to be, row by row.
pub(super) fn rows(copying: &Copying<'_>, dataset: &Dataset, written: &OpenFile) -> Outcome {
    let again = open(copying, written)?;
    let found = diff::compare([dataset, &again], copying.rows.limit, 3, copying.quiet, copying.interrupted)?;
    if found.is_none() {
        return Ok(());
    }
    Err(Failure::bug(format!(
        "{}: what was written is not what was read, and is removed; {}",
        written.name(),
        found.lines("what was read", "what was written").trim_end().replace('\n', "; ")
    )))
}

/// The file under the name that it has for now.
fn open(copying: &Copying<'_>, written: &OpenFile) -> Outcome<Dataset> {
    let table = TableArgs { hive: Hive::Off, limits: copying.rows.table.limits, ..TableArgs::default() };
    Dataset::open(&[written.temporary().to_path_buf()], &table, copying.interrupted)
}

/// What rows are as a whole, in whatever order they come: their number, and the sum of a hash of each. Bits are hashed: NaN is itself, and 0 is
/// not −0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Digest {
    rows: u64,
    sum: u128,
}

impl Digest {
    /// Adds the rows of a batch, in these directories.
    fn add(
        &mut self,
        batch: &Batch,
        leaves: &[usize],
        directories: impl Fn(usize) -> Outcome<u64>,
    ) -> Outcome {
        let mut columns: Vec<(Entries<'_>, &Values)> = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let column = batch.columns.get(*leaf).ok_or_else(|| Failure::bug("a leaf that no batch has"))?;
            columns.push((Entries::of(column), &column.values));
        }
        for row in 0..batch.rows {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(directories(row)?);
            for (entries, values) in &mut columns {
                let range = entries.row(row);
                hasher.write_usize(range.len());
                for entry in range {
                    hasher.write_u16(entries.levels_of(entry));
                    match entries.value_of(entry) {
                        Some(at) => hash(values, at, &mut hasher),
                        None => hasher.write_u8(0),
                    }
                }
            }
            self.sum = self.sum.wrapping_add(u128::from(hasher.finish()));
        }
        self.rows += u64_of(batch.rows);
        Ok(())
    }
}

fn hash(values: &Values, at: usize, hasher: &mut DefaultHasher) {
    match values {
        Values::Boolean(bits) => hasher.write_u8(1 + u8::from(bits.get(at))),
        Values::Int32(values) => hasher.write_i32(values[at]),
        Values::Int64(values) => hasher.write_i64(values[at]),
        Values::Float(values) => hasher.write_u32(values[at].to_bits()),
        Values::Double(values) => hasher.write_u64(values[at].to_bits()),
        Values::ByteArray(values) => values.get(at).hash(hasher),
        Values::Int96(values) | Values::FixedLenByteArray(values) => values.get(at).hash(hasher),
        Values::Dictionary(indices, values) => {
            if let Some(index) = indices.get(at) {
                hash(values, marquetry_base::cast::usize_of_u32(*index), hasher);
            }
        }
    }
}

fn hash_of(directory: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    directory.hash(&mut hasher);
    hasher.finish()
}

/// Rows that are written in another order than they were read in, or to many files: compared as a whole; and that they are in order.
pub(super) struct Whole {
    read: Digest,
    written: Digest,
    /// The leaves that stay in the files.
    leaves: Vec<usize>,
    /// Of what is written, and whether it goes on from one file to the next.
    by: Vec<SortingColumn>,
    goes_on: bool,
    last_key: Vec<u8>,
}

impl Whole {
    /// `leaves` stay in the files; rows are sorted by these of the files, in all of them together unless each has an order of its own.
    pub(super) fn new(leaves: Vec<usize>, by: Vec<SortingColumn>, goes_on: bool) -> Whole {
        Whole {
            read: Digest::default(),
            written: Digest::default(),
            leaves,
            by,
            goes_on,
            last_key: Vec::new(),
        }
    }

    /// Takes in rows as they are read.
    pub(super) fn read(&mut self, batch: &Batch, partitioning: Option<&Partitioning>) -> Outcome {
        let no_directory = hash_of(Path::new(""));
        self.read.add(batch, &self.leaves, |row| match partitioning {
            Some(partitioning) => Ok(hash_of(&partitioning.directory(batch, row)?)),
            None => Ok(no_directory),
        })
    }

    /// Takes in the rows of a file, which is in this directory of all that is written.
    pub(super) fn written(&mut self, copying: &Copying<'_>, file: &OpenFile, below: &Path) -> Outcome {
        let again = open(copying, file)?;
        let keys = match &*self.by {
            [] => None,
            by => Some(Keys::new(again.schema(), by).map_err(|error| again.failure(&error))?),
        };
        if !self.goes_on {
            self.last_key.clear();
        }
        let leaves: Vec<usize> = (0..self.leaves.len()).collect();
        let directory = hash_of(below);
        let mut key = Vec::new();
        for source in again.files() {
            let mut batches = again.read(source, None, false)?;
            while let Some(batch) = batches.next().map_err(|error| source.failure(&error))? {
                copying.interrupted.check()?;
                self.written.add(&batch, &leaves, |_| Ok(directory))?;
                for row in 0..if keys.is_some() { batch.rows } else { 0 } {
                    let Some(keys) = &keys else { break };
                    key.clear();
                    keys.append(&batch.columns, row, &mut key).map_err(|error| source.failure(&error))?;
                    if key < self.last_key {
                        return Err(Failure::bug(format!(
                            "{}: row {} is not in order, and all is removed",
                            file.name(),
                            batch.first_row + u64_of(row)
                        )));
                    }
                    std::mem::swap(&mut key, &mut self.last_key);
                }
            }
        }
        Ok(())
    }

    /// Compares, once all was read and written.
    pub(super) fn finish(&self, name: &str) -> Outcome {
        if self.read == self.written {
            return Ok(());
        }
        Err(Failure::bug(format!(
            "{name}: what was written ({} rows) is not what was read ({} rows), and is removed",
            self.written.rows, self.read.rows
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::batch::{ColumnBatch, Layout};

    fn batch(values: Vec<i32>) -> Batch {
        let rows = values.len();
        let column = ColumnBatch {
            leaf: 0,
            rows,
            nulls: 0,
            validity: None,
            values: Values::Int32(values.into()),
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        };
        Batch { row_group: 0, first_row: 0, rows, columns: vec![column] }
    }

    #[test]
    fn rows_in_any_order_are_the_same() {
        let digest = |all: &[(Vec<i32>, u64)]| {
            let mut digest = Digest::default();
            all.iter()
                .for_each(|(values, at)| digest.add(&batch(values.clone()), &[0], |_| Ok(*at)).unwrap());
            digest
        };
        let one = digest(&[(vec![1, 2, 3, 3], 0)]);
        assert_eq!(one, digest(&[(vec![3, 1], 0), (vec![3, 2], 0)]));
        for other in [vec![1, 2, 3], vec![1, 2, 2, 3], vec![1, 2, 3, 4]] {
            assert_ne!(one, digest(&[(other, 0)]));
        }
        assert_ne!(one, digest(&[(vec![1, 2, 3], 0), (vec![3], 1)]), "in another directory");
    }
}
