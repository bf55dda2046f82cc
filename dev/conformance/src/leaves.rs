//! What each leaf of a table holds, its levels and its values, as sums that no cut into batches, pages or encodings changes.

use std::sync::Arc;

use marquetry_base::{Bytes, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::Schema;

use crate::canonical::{self, FILE, with_bytes};
use crate::hostile::Manner;

/// What a leaf holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeafSum {
    /// The leaf's path.
    pub path: String,
    /// Rows.
    pub rows: u64,
    /// Entries that have no value.
    pub nulls: u64,
    /// The CRC-32 of the entries: definition and repetition level; of a flat leaf, whether the row is null.
    pub levels: u32,
    /// The CRC-32 of the values: of each its length, and its bytes as PLAIN has them.
    pub values: u32,
}

impl LeafSum {
    /// Nothing of a leaf.
    pub fn new(path: &str) -> LeafSum {
        LeafSum { path: path.to_owned(), ..LeafSum::default() }
    }

    /// Adds a part of the leaf.
    ///
    /// # Panics
    ///
    /// When the batch contradicts itself.
    pub fn add(&mut self, column: &ColumnBatch) {
        self.rows += column.rows as u64;
        self.nulls += column.nulls as u64;
        match &column.levels {
            Some(of) => self.add_levels((0..of.definition.len()).map(|entry| {
                let repetition = of.repetition.as_ref().map_or(0, |levels| levels[entry]);
                (of.definition[entry], repetition)
            })),
            None => self.add_flat((0..column.rows).map(|row| column.is_null(row))),
        }
        let is_spaced = column.levels.is_none() && column.layout == Layout::Spaced;
        let mut values = self.values();
        for index in (0..column.values.len()).filter(|&index| !is_spaced || !column.is_null(index)) {
            with_bytes(&column.values, index, |bytes| values.add(bytes));
        }
        self.values = values.0.finalize();
    }

    /// Adds entries of a leaf that is not flat: definition and repetition levels.
    pub(crate) fn add_levels(&mut self, entries: impl Iterator<Item = (u8, u8)>) {
        let mut levels = crc32fast::Hasher::new_with_initial(self.levels);
        entries.for_each(|(definition, repetition)| levels.update(&[definition, repetition]));
        self.levels = levels.finalize();
    }

    /// Adds rows of a flat leaf: whether they are null.
    pub(crate) fn add_flat(&mut self, nulls: impl Iterator<Item = bool>) {
        let mut levels = crc32fast::Hasher::new_with_initial(self.levels);
        nulls.for_each(|is_null| levels.update(&[u8::from(is_null)]));
        self.levels = levels.finalize();
    }

    /// What adds values; its sum is to be put back.
    pub(crate) fn values(&self) -> ValueSum {
        ValueSum(crc32fast::Hasher::new_with_initial(self.values))
    }
}

/// The sum of a leaf's values.
pub(crate) struct ValueSum(pub(crate) crc32fast::Hasher);

impl ValueSum {
    /// Adds a value, as PLAIN has it, without a length before it.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

/// The sums of all leaves.
pub fn sums(schema: &Schema, batches: &[Batch]) -> Vec<LeafSum> {
    let paths = schema.leaves().iter().map(|leaf| schema.path(leaf.node));
    let mut sums: Vec<LeafSum> = paths.map(|path| LeafSum::new(&path)).collect();
    for batch in batches {
        add(&mut sums, batch);
    }
    sums
}

/// The sums of all leaves of a file, as we read it.
///
/// # Errors
///
/// The machine's.
pub fn of_file(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<Vec<LeafSum>> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, ReadOptions::default())?;
    let mut sums = sums(&metadata.schema, &[]);
    canonical::read(&mut reader, bytes, Manner::KIND, |batch| add(&mut sums, &batch))?;
    Ok(sums)
}

fn add(sums: &mut [LeafSum], batch: &Batch) {
    sums.iter_mut().zip(&batch.columns).for_each(|(sum, column)| sum.add(column));
}
