//! Reading a table.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::schema::{Leaf, PhysicalType, Schema};
use marquetry_tables::{
    Cancel, ColumnPath, Filter, Reading, ReadingOptions, Rename, Source, Table, TokenRange, convert, filter,
    limit, offset, project, rename, sample, some_pieces,
};

use crate::kinds::OpenedSource;
use crate::options::OptionGroup;

/// An open table: its description and its rows. Returned by [`open`](crate::open).
///
/// ```no_run
/// # fn main() -> marquetry::Result<()> {
/// let trips = marquetry::open("trips/*.parquet")?.columns(["id", "fare"])?.limit(1_000);
/// println!("{:?} of {} rows", trips.names(), trips.rows().unwrap_or(0));
/// for batch in trips.batches()? {
///     println!("{} rows", batch?.rows);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Reader {
    source: Arc<dyn Source>,
    takes: &'static [OptionGroup],
    threads: Option<usize>,
    batch_bytes: Option<usize>,
    /// How record batches lay out strings, if that was said.
    #[cfg(feature = "arrow")]
    pub(crate) strings: Option<marquetry_arrow::StringLayout>,
    cancel: Cancel,
}

/// Bytes that a column's values have in a batch that is to have some bytes, at most, if they have eight bytes each or fewer: the caches next to a
/// processor hold them, and allocators have them at hand. (Of four times as many, INT64 takes a sixth longer.) And its rows at most.
const COLUMN_BYTES_MAX: usize = 256 << 10;
const BATCH_ROWS_MAX: usize = 128 << 10;

impl Reader {
    /// The rows of any source, such as one of your own.
    pub fn of(source: impl Source + 'static) -> Reader {
        Reader::opened(OpenedSource { source: Arc::new(source), takes: &[] })
    }

    pub(crate) fn opened(OpenedSource { source, takes }: OpenedSource) -> Reader {
        Reader {
            source,
            takes,
            threads: None,
            batch_bytes: None,
            #[cfg(feature = "arrow")]
            strings: None,
            cancel: Cancel::new(),
        }
    }

    /// Takes only these columns, in this order, by name. Dots select nested columns: `place.lat`, `tags.element`. Files of very
    /// many columns are opened in less time by [`open_columns`](crate::open_columns).
    ///
    /// # Errors
    ///
    /// `Misuse` for columns that the table lacks, with a list of those that it has.
    pub fn columns<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> Result<Reader> {
        let paths = names.into_iter().map(|name| ColumnPath::parse(name.as_ref()));
        self.paths(&paths.collect::<Result<Vec<_>>>()?)
    }

    pub(crate) fn paths(mut self, paths: &[ColumnPath]) -> Result<Reader> {
        self.source = project(&self.source, paths)?;
        Ok(self)
    }

    /// Converts columns to other types, in CQL's words: `fare=decimal(12, 2), place.lat=float`; see
    /// [`convert`](marquetry_tables::convert()). The types of text that is read are
    /// [options](marquetry_tables::text::TextOptions::types).
    ///
    /// # Errors
    ///
    /// Those of [`convert`](marquetry_tables::convert()); `Misuse` for what is no list of types.
    pub fn types(mut self, types: &str) -> Result<Reader> {
        self.source = convert(&self.source, &types.parse()?)?;
        Ok(self)
    }

    /// Gives columns other names: `old=new, …`; see [`rename`](marquetry_tables::rename).
    ///
    /// # Errors
    ///
    /// Those of [`rename`](marquetry_tables::rename); `Misuse` for what is no list of names.
    pub fn rename(self, names: &str) -> Result<Reader> {
        self.renamed(&names.parse()?)
    }

    pub(crate) fn renamed(mut self, names: &Rename) -> Result<Reader> {
        self.source = rename(&self.source, names)?;
        Ok(self)
    }

    /// Takes only the rows for which a predicate is true: `fare > 20.5 AND city IN ('Rome', 'Oslo')`. Its words are those of
    /// [`predicate`](mod@marquetry_tables::predicate). Parquet files are searched by their statistics, Bloom filters and page index; see
    /// [`filter`](marquetry_tables::filter()).
    ///
    /// # Errors
    ///
    /// `Misuse` for what is no predicate of this table.
    pub fn filter(mut self, predicate: &str) -> Result<Reader> {
        self.source = filter(&self.source, &Filter::new(predicate))?;
        Ok(self)
    }

    /// Leaves out the first rows, as [`offset`](marquetry_tables::offset()).
    #[must_use]
    pub fn offset(mut self, rows: u64) -> Reader {
        self.source = offset(&self.source, rows);
        self
    }

    /// Takes some rows at random, as [`sample`](marquetry_tables::sample()): the same ones for the same seed.
    ///
    /// # Errors
    ///
    /// `Misuse` for more than a thousand million rows of a table whose number of rows is not known.
    pub fn sample(mut self, rows: u64, seed: u64) -> Result<Reader> {
        self.source = sample(&self.source, rows, seed)?;
        Ok(self)
    }

    /// Takes only the first rows, as [`limit`](marquetry_tables::limit).
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Reader {
        self.source = limit(&self.source, rows);
        self
    }

    /// Takes only these of its pieces, as [`some_pieces`](marquetry_tables::some_pieces): one of several readers' share of the table.
    ///
    /// # Errors
    ///
    /// `Misuse` for pieces that the table has not.
    pub fn pieces(mut self, pieces: Range<usize>) -> Result<Reader> {
        self.source = some_pieces(&self.source, pieces)?;
        Ok(self)
    }

    /// Takes only the partitions with tokens in a range, of a table of a cluster: one of several readers' share of it, also where others split its ring otherwise
    /// into [pieces](Source::pieces). It uses the connection that there is. Columns and rows are chosen after this.
    ///
    /// # Errors
    ///
    /// `Misuse` for tables whose rows have no tokens, for those whose columns or rows were chosen, and for a range that is not within the one that the table was
    /// opened with.
    pub fn token_range(mut self, tokens: TokenRange) -> Result<Reader> {
        let within = self.source.within(tokens)?;
        let what = "this is for tables of a cluster, before their columns and rows are chosen";
        self.source = within.ok_or_else(|| {
            Error::option("token_range", what).at(|place| place.object = Some(self.table().name.clone()))
        })?;
        Ok(self)
    }

    /// Reads [batches](Reader::batches) by this many threads; 0: by the one that asks for them. Unless it is said, one
    /// for each processor.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Reader {
        self.threads = Some(threads);
        self
    }

    /// Makes [batches](Reader::batches) larger than usual, for what takes time for each: of about this many bytes of values, but of no fewer rows than usual,
    /// and of 32,768 at most (65,536 if no value has more than four bytes, 131,072 of booleans). Long strings may make them larger, as they do usual ones.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Reader {
        self.batch_bytes = Some(bytes);
        self
    }

    /// Ends [batches](Reader::batches) early when this is set, with
    /// [`Cancelled`](marquetry_base::ErrorKind::Cancelled).
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Reader {
        self.cancel = cancel;
        self
    }

    /// What is known of the table: its name, schema, order, rows and bytes.
    pub fn table(&self) -> &Table {
        self.source.table()
    }

    /// What the rows are.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.source.table().schema
    }

    /// The columns' names. If several are called `a`, the second is `a#2`, and so on.
    pub fn names(&self) -> Vec<&str> {
        let schema = self.schema();
        schema.children(0).map(|node| schema.nodes()[node].name.as_str()).collect()
    }

    /// The number of rows, if known before they are read (for text it is not).
    pub fn rows(&self) -> Option<u64> {
        self.source.table().rows
    }

    /// The number of row groups, for Parquet files.
    pub fn row_groups(&self) -> Option<u64> {
        self.source.table().row_groups
    }

    /// Whether options of this group had a meaning when it was opened, as [`Text`](OptionGroup::Text) has none for
    /// Parquet files.
    pub fn takes(&self, group: OptionGroup) -> bool {
        self.takes.contains(&group)
    }

    /// The table as a source, with the columns and the limit that were chosen: for [`copy`](marquetry_tables::copy),
    /// which has threads and a cancellation among its own options.
    ///
    /// ```no_run
    /// use marquetry::tables::{CopyOptions, copy};
    ///
    /// # fn main() -> marquetry::Result<()> {
    /// let first = marquetry::open("trips.parquet")?.columns(["id", "fare"])?.limit(1_000);
    /// let mut file = marquetry::destination("first.csv.gz")?;
    /// let copied = copy(first.source(), file.as_mut(), &CopyOptions::default(), &mut |_| {})?;
    /// println!("{} rows", copied.rows);
    /// # Ok(())
    /// # }
    /// ```
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Counts the rows; those of a predicate or of text by reading as little as possible, by [this many threads](Reader::threads).
    ///
    /// ```no_run
    /// # fn main() -> marquetry::Result<()> {
    /// println!("{} dear trips", marquetry::open("trips.parquet")?.filter("fare > 100")?.count()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of reading, and [`Cancelled`](marquetry_base::ErrorKind::Cancelled).
    pub fn count(&self) -> Result<u64> {
        marquetry_tables::count(&self.source, &self.reading_options())
    }

    /// The rows, batch by batch, in order. Pieces of the table are read in parallel, by threads of their own.
    ///
    /// # Errors
    ///
    /// [`Io`](marquetry_base::ErrorKind::Io) if no thread can be started.
    pub fn batches(&self) -> Result<Batches> {
        Ok(Batches { reading: Some(Reading::new(Arc::clone(&self.source), self.reading_options())?) })
    }

    /// The bytes that its columns are read from: those of its pieces, because a table of some columns of files has the bytes of all.
    fn bytes(&self) -> Option<u64> {
        let pieces = self.source.pieces();
        pieces.iter().try_fold(0_u64, |sum, piece| Some(sum.saturating_add(piece.bytes?)))
    }

    /// How its rows are read: by which threads, and until when.
    pub fn reading_options(&self) -> ReadingOptions {
        let mut options = ReadingOptions::default();
        (options.threads, options.cancel) = (self.threads, self.cancel.clone());
        options.piece.batch_rows =
            self.batch_bytes.map(|bytes| batch_rows(self.table(), self.bytes(), bytes));
        options
    }
}

/// The rows of a table whose values have some bytes together, about: by their types, or, if that is more, as its files have them, where strings have
/// their lengths.
fn batch_rows(table: &Table, of_all: Option<u64>, bytes: usize) -> usize {
    let usual = ReadOptions::default();
    let bits_of = |leaf: &Leaf| match leaf.physical_type {
        PhysicalType::Boolean => 1,
        PhysicalType::Int32 | PhysicalType::Float => 32,
        _ => 64,
    };
    let widest = table.schema.leaves().iter().map(bits_of).max().unwrap_or(64);
    let most = BATCH_ROWS_MAX.min(8 * COLUMN_BYTES_MAX / widest);
    let options = ReadOptions { batch_rows: most, batch_bytes: bytes, ..usual.clone() };
    let by_types = options.batch_rows_of(table.schema.leaves());
    let by_bytes = table.rows.zip(of_all).and_then(|(rows, of_all)| {
        let in_bytes = u128::from(rows) * u128::from(u64_of(bytes)) / u128::from(of_all.max(1));
        usize::try_from(in_bytes).ok()
    });
    by_types.min(by_bytes.unwrap_or(usize::MAX)).max(usual.batch_rows)
}

/// The rows of a table, batch by batch: see [`Reader::batches`]. After an error there are no more.
///
/// ```no_run
/// # fn main() -> marquetry::Result<()> {
/// let mut batches = marquetry::open("trips.parquet")?.batches()?;
/// if let Some(first) = batches.next().transpose()? {
///     println!("{} rows of {} columns", first.rows, first.columns.len());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Batches {
    reading: Option<Reading>,
}

impl Batches {
    /// There are no more: an error was found in one.
    #[cfg(feature = "arrow")]
    pub(crate) fn end(&mut self) {
        self.reading = None;
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        let next = self.reading.as_mut()?.next_batch();
        if !matches!(next, Ok(Some(_))) {
            self.reading = None;
        }
        next.map(|next| next.map(|(_, batch)| batch)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::schema::{FieldDef, FieldType};

    fn table(columns: usize, rows: Option<u64>) -> Table {
        table_of(PhysicalType::Int64, columns, rows)
    }

    fn table_of(physical_type: PhysicalType, columns: usize, rows: Option<u64>) -> Table {
        let of = |at: usize| FieldDef::new(format!("c{at}"), FieldType::Leaf(physical_type, None));
        let fields: Vec<FieldDef> = (0..columns).map(of).collect();
        let mut table = Table::new("rows", Arc::new(Schema::of_fields(&fields).unwrap()));
        table.rows = rows;
        table
    }

    #[test]
    fn batches_have_some_bytes_but_no_fewer_rows_than_usual() {
        const MIB: usize = 1 << 20;
        // Nine bytes a row: a value and whether it is null.
        assert_eq!(batch_rows(&table(1, None), None, 4 * MIB), 32 << 10);
        assert_eq!(batch_rows(&table(32, None), None, 4 * MIB), 4 * MIB / (32 * 9));
        assert_eq!(batch_rows(&table(1000, None), None, 4 * MIB), 8192);
        // Of narrow values, more.
        assert_eq!(batch_rows(&table_of(PhysicalType::Float, 1, None), None, 4 * MIB), 64 << 10);
        assert_eq!(batch_rows(&table_of(PhysicalType::Boolean, 2, None), None, 4 * MIB), 128 << 10);
        // Of files whose rows are longer than their types say, fewer.
        assert_eq!(batch_rows(&table(1, Some(1000)), Some(9000), 4 * MIB), 32 << 10);
        assert_eq!(batch_rows(&table(1, Some(1 << 20)), Some(256 << 20), 4 * MIB), 4 * MIB / 256);
        assert_eq!(batch_rows(&table(1, Some(1 << 20)), Some(1 << 40), 4 * MIB), 8192);
        assert_eq!(batch_rows(&table(1, Some(0)), Some(0), 4 * MIB), 8192);
    }
}
