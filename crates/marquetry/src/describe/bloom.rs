//! What a file's Bloom filters say about values.

use std::ops::Range;

use marquetry_base::{Error, Result};
use marquetry_parquet::bloom;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::{BloomPlace, BloomProbe, PageBloom, PageBloomProbe, PageSet};
use marquetry_tables::files::ParquetFile;

/// Values that are asked for, at most.
const VALUES_MAX: usize = 1024;

/// Values of a leaf that Bloom filters are asked for.
///
/// ```no_run
/// use marquetry::base::Limits;
/// use marquetry::describe::BloomQuestion;
/// use marquetry::tables::files::ParquetFile;
/// use marquetry::tables::predicate;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let file = ParquetFile::open("trips.parquet".as_ref(), Limits::default())?;
/// let wanted = predicate::parse("trip = 4711", &file.metadata().schema)?;
/// let question = BloomQuestion::of(&wanted, file.metadata())?;
/// question.ask(&file, |answer| {
///     let is_absent = answer.filter.is_some_and(|filter| !filter.may_have);
///     println!("row group {}: {is_absent}", answer.row_group);
///     Ok::<_, marquetry::Error>(())
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BloomQuestion {
    leaf: usize,
    values: Vec<Vec<u8>>,
}

/// What the Bloom filters of a row group say about a value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BloomAnswer<'a> {
    /// The row group.
    pub row_group: usize,
    /// The value, as PLAIN bytes.
    pub value: &'a [u8],
    /// Its hash.
    pub hash: u64,
    /// What the chunk's filter says, if it has one.
    pub filter: Option<FilterAnswer>,
    /// What the filters of its pages say, if they have some.
    pub pages: Option<PagesAnswer>,
}

/// What the Bloom filter of a column chunk says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FilterAnswer {
    /// The value may be in the chunk; otherwise it certainly is not.
    pub may_have: bool,
    /// Where the filter's blocks are.
    pub place: BloomPlace,
    /// Where the block is that was read.
    pub block: Range<u64>,
}

/// What the Bloom filters of a chunk's pages say.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PagesAnswer {
    /// The pages that may have the value. `None` if what was read is not what the filters were written as (its CRC differs).
    pub may_have: Option<PageSet>,
    /// The filters.
    pub bloom: PageBloom,
    /// The row of blocks that was read: its number, and where it is.
    pub row: (u32, Range<u64>),
}

impl BloomQuestion {
    /// The values that a predicate over a file's schema is about: `a = 1`, `a IN (1, 2)`.
    ///
    /// # Errors
    ///
    /// `Misuse` for other predicates, and for values that filters cannot be asked for.
    pub fn of(predicate: &Predicate, metadata: &FileMetaData) -> Result<BloomQuestion> {
        let Predicate::Test(test) = predicate else {
            return Err(Error::misuse(
                "Bloom filters are asked about one column: col = value, or col IN (…)",
            ));
        };
        let values = test.plain_values(&metadata.schema, VALUES_MAX).ok_or_else(|| {
            Error::misuse(
                "Bloom filters are asked for values (col = value, or col IN (…)), not for ranges or nulls, and \
                 not for NaN, INT96 and decimals of BYTE_ARRAY",
            )
        })?;
        Ok(BloomQuestion { leaf: test.leaf, values })
    }

    /// The leaf.
    pub fn leaf(&self) -> usize {
        self.leaf
    }

    /// The values, as PLAIN bytes. One that has several encodings is there with each; none are if no value of the leaf's type is meant.
    pub fn values(&self) -> &[Vec<u8>] {
        &self.values
    }

    /// Asks all filters of a file: `each` gets an answer for each row group and value. Of a filter its header is read, and a block
    /// for each value; of the filters of pages a row of blocks for each.
    ///
    /// # Errors
    ///
    /// `Corrupt` and `Unsupported` for filters, `Io`, and those of `each`.
    pub fn ask<E: From<Error>>(
        &self,
        file: &ParquetFile,
        mut each: impl FnMut(BloomAnswer<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let hashes: Vec<u64> = self.values.iter().map(|value| bloom::hash(value)).collect();
        for row_group in 0..file.metadata().row_groups.len() {
            let mut filters = self.filters(file, row_group, &hashes)?.into_iter();
            let mut pages = self.pages(file, row_group, &hashes)?.into_iter();
            for (value, hash) in self.values.iter().zip(&hashes) {
                let (filter, pages) = (filters.next(), pages.next());
                each(BloomAnswer { row_group, value, hash: *hash, filter, pages })?;
            }
        }
        Ok(())
    }

    /// Of the chunk's filter an answer for each hash; none if it has no filter.
    fn filters(&self, file: &ParquetFile, row_group: usize, hashes: &[u64]) -> Result<Vec<FilterAnswer>> {
        let metadata = file.metadata();
        let chunk = metadata.row_groups.get(row_group).and_then(|group| group.columns.get(self.leaf));
        if chunk.is_none_or(|chunk| chunk.bloom_filter.is_none()) {
            return Ok(Vec::new());
        }
        let mut probe =
            BloomProbe::new(ParquetFile::object(), metadata, row_group, self.leaf, hashes.to_vec())?;
        let mut found = Vec::with_capacity(hashes.len());
        file.run(&mut probe, |may_have| {
            found.push(may_have);
            Ok::<_, Error>(())
        })?;
        let Some(place) = probe.place() else { return Ok(Vec::new()) };
        let answer =
            |(may_have, hash): (bool, &u64)| FilterAnswer { may_have, place, block: place.block_of(*hash) };
        Ok(found.into_iter().zip(hashes).map(answer).collect())
    }

    /// The same of the filters of its pages.
    fn pages(&self, file: &ParquetFile, row_group: usize, hashes: &[u64]) -> Result<Vec<PagesAnswer>> {
        let Some(bloom) = PageBloom::of(file.metadata(), row_group, self.leaf) else { return Ok(Vec::new()) };
        let mut answers = Vec::with_capacity(hashes.len());
        let probe = PageBloomProbe::new(ParquetFile::object(), bloom, hashes.to_vec());
        let mut left = hashes.iter();
        file.run(probe, |may_have| {
            let row = left.next().map(|hash| bloom.row(*hash));
            let row = row.ok_or_else(|| Error::internal("more answers than questions"))?;
            answers.push(PagesAnswer { may_have, bloom, row });
            Ok::<_, Error>(())
        })?;
        Ok(answers)
    }
}
