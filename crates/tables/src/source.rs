//! Where rows come from.

use std::sync::Arc;

use marquetry_base::Result;
use marquetry_base::cast::u64_of;
use marquetry_parquet::batch::{Batch, RowSelection};
use marquetry_parquet::format::{KeyValue, SortingColumn};
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::Schema;
use marquetry_scylla::sstable::TableColumns;

use crate::{BytesRead, Cancel, ColumnPath, Filter, LostValues, Note, Partials, TokenRange};

/// A table that rows are read from: files, a live table, a generator.
///
/// Its description is known before a row is read. Rows are read in *pieces* that are independent of each other
/// (files, row groups, token ranges), so that several threads can read in parallel, as [`copy`](crate::copy) does.
/// Pieces are in the table's order: all rows of one come before those of the next.
///
/// Methods may be called in any order, from any thread. A source that needs a runtime (a cluster, an object store)
/// keeps it on a thread of its own, and hands batches over through a bounded channel. One that waits for others checks
/// [`PieceOptions::cancel`] while it waits.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_base::Result;
/// use marquetry_parquet::batch::Batch;
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
/// use marquetry_tables::{Batches, Piece, PieceOptions, Reading, ReadingOptions, Source, Table};
///
/// /// One piece of three rows.
/// struct Three(Table, [Piece; 1]);
///
/// impl Source for Three {
///     fn table(&self) -> &Table {
///         &self.0
///     }
///
///     fn pieces(&self) -> &[Piece] {
///         &self.1
///     }
///
///     fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
///         Ok(Box::new(Once(Some(Batch::of_values([vec![1_i64, 2, 3].into()])?))))
///     }
/// }
///
/// struct Once(Option<Batch>);
///
/// impl Batches for Once {
///     fn next(&mut self) -> Result<Option<Batch>> {
///         Ok(self.0.take())
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
/// let table = Table::new("three", Arc::new(Schema::of_fields(&[id])?));
/// let source = Arc::new(Three(table, [Piece::of("three")]));
/// let mut reading = Reading::new(source, ReadingOptions::default())?;
/// let (_, batch) = reading.next_batch()?.unwrap();
/// assert_eq!(batch.rows, 3);
/// # Ok(())
/// # }
/// ```
pub trait Source: Send + Sync {
    /// What is known of the table before its rows are read.
    fn table(&self) -> &Table;

    /// The pieces of the table, in the order of its rows. There may be none.
    fn pieces(&self) -> &[Piece];

    /// Opens a piece, by its index among [`pieces`](Source::pieces).
    ///
    /// # Errors
    ///
    /// The reason why it cannot be opened. These errors, and those of [`Batches::next`], name their object
    /// ([`Place::object`](marquetry_base::Place)).
    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>>;

    /// Opens some rows of a piece, counted from its first. Each batch has the number of its [first row](Batch::first_row), whatever the
    /// [piece](Piece::first_row) says. `None` where a source has no better way than to read all rows: then
    /// [`offset`](crate::offset) and [`sample`](crate::sample()) drop those that are not wanted.
    ///
    /// # Errors
    ///
    /// As those of [`Source::open`].
    fn open_rows(
        &self,
        piece: usize,
        rows: RowSelection,
        options: &PieceOptions,
    ) -> Result<Option<Box<dyn Batches>>> {
        let _ = (piece, rows, options);
        Ok(None)
    }

    /// The same table, of which only these columns are read, in this order. `None` where a source has no way of its own to leave
    /// columns out: then [`project`](crate::project) drops them as they come.
    ///
    /// # Errors
    ///
    /// `Misuse` for columns that the table lacks, with a list of those that it has.
    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        let _ = columns;
        Ok(None)
    }

    /// The same table, of which only the rows are read for which a predicate over its schema is true; what the search does is added to
    /// the filter's report. `None` where a source has no better way than to read all rows and to test them: then
    /// [`filter`](crate::filter()) does that.
    ///
    /// # Errors
    ///
    /// Why the predicate cannot be used.
    fn filter(&self, predicate: &Predicate, filter: &Filter) -> Result<Option<Arc<dyn Source>>> {
        let _ = (predicate, filter);
        Ok(None)
    }

    /// The same table, of which only the partitions are read whose tokens are in a range, some of it at a time. `None` where rows have no tokens, or a
    /// source has no way to find them by these; and where its columns or rows were chosen before.
    ///
    /// # Errors
    ///
    /// Why it cannot be read so.
    fn within(&self, tokens: TokenRange) -> Result<Option<Arc<dyn Source>>> {
        let _ = tokens;
        Ok(None)
    }

    /// [Partial aggregates](Partials) of this table, which has the columns of which they are and no others: a row for each group of a part of its rows, in
    /// columns that only those know who ask. `None` where a source has no better way to compute them than to read all rows: then
    /// [`aggregate`](crate::aggregate()) does that.
    ///
    /// # Errors
    ///
    /// Why they cannot be computed.
    fn partials(&self, partials: &Arc<Partials>) -> Result<Option<Arc<dyn Source>>> {
        let _ = partials;
        Ok(None)
    }

    /// Why whoever has the rows does not compute aggregates of them, where others of its kind do: said where
    /// [`partials`](Source::partials) is `None`.
    fn why_no_partials(&self) -> Option<Note> {
        None
    }

    /// The same table without its columns, for those who only count its rows: each batch is a number of rows. `None` where a source has no
    /// better way to count rows than to read a column of them.
    ///
    /// # Errors
    ///
    /// As those of [`Source::project`].
    fn without_columns(&self) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    /// The lines, counted from 1, of rows of a piece that is a text. The rows are counted as in errors about them, and ascend. It may take as
    /// long as reading the piece up to the last of them. `None` where rows have no lines or cannot be read again.
    fn lines_of(&self, piece: usize, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        let _ = (piece, rows, cancel);
        None
    }
}

/// The rows of a piece. Calls may block; one thread at a time uses it.
///
/// ```
/// use marquetry_base::Result;
/// use marquetry_parquet::batch::Batch;
/// use marquetry_tables::Batches;
///
/// /// The numbers up to `end`, a thousand at a time.
/// struct Numbers {
///     next: i64,
///     end: i64,
/// }
///
/// impl Batches for Numbers {
///     fn next(&mut self) -> Result<Option<Batch>> {
///         if self.next == self.end {
///             return Ok(None);
///         }
///         let first = self.next;
///         self.next = self.end.min(first + 1_000);
///         Batch::of_values([(first..self.next).collect::<Vec<_>>().into()]).map(Some)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let mut numbers = Numbers { next: 0, end: 1_500 };
/// let rows = |batch: Option<Batch>| batch.map(|batch| batch.rows);
/// assert_eq!(rows(numbers.next()?), Some(1_000));
/// assert_eq!(rows(numbers.next()?), Some(500));
/// assert_eq!(rows(numbers.next()?), None);
/// # Ok(())
/// # }
/// ```
pub trait Batches: Send {
    /// The next rows; `None` at the end. Every batch has all leaves of the table's schema, in order, and passes
    /// [`Batch::check`]: of one that does not, [`Reading`](crate::Reading) makes an error of kind `Misuse`. Its
    /// [`first_row`](Batch::first_row) matters only if the [piece](Piece::first_row) leaves numbering to it.
    ///
    /// # Errors
    ///
    /// The reason why reading failed; [`Cancelled`](marquetry_base::ErrorKind::Cancelled) once
    /// [`PieceOptions::cancel`] is set. Batches handed out before stay valid; do not call `next` after an error.
    fn next(&mut self) -> Result<Option<Batch>>;
}

/// What is known of a table before its rows are read.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
/// use marquetry_tables::{Key, Table};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let column = |name| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None)).required();
/// let mut table = Table::new("trips", Arc::new(Schema::of_fields(&[column("day"), column("id")])?));
/// table.rows = Some(1_000);
/// table.key = Some(Key { partition: vec![0, 1], clustering: Vec::new() });
/// assert_eq!(table.schema.leaves().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Table {
    /// The name for messages: `trips.parquet`, `trips/a.parquet and 2 more files`.
    pub name: String,
    /// The schema of its rows. Each column can be named: names are
    /// [unique](Schema::with_unique_names).
    pub schema: Arc<Schema>,
    /// The primary key, if the table has one.
    pub key: Option<Key>,
    /// The order of its rows, by leaves of the schema; what the source claims, and is not relied on. Empty if unknown.
    pub order: Vec<SortingColumn>,
    /// The number of rows, if known.
    pub rows: Option<u64>,
    /// Its row groups, if it has any.
    pub row_groups: Option<u64>,
    /// The bytes that it is read from, if known.
    pub bytes: Option<u64>,
    /// Key-value metadata of the table.
    pub key_values: Vec<KeyValue>,
    /// What whoever reads it should know, and would not see.
    pub notes: Vec<Note>,
    /// Why the names of its key columns are made up (`pk0`, …), if they are, and nobody asked for such: SSTables do not have them.
    pub unnamed_key: Option<String>,
    /// What tells it from another table that has had its name before, or has it elsewhere: the identifier that its servers gave it. `None` if
    /// nothing does.
    pub identity: Option<String>,
    /// What tells its cluster from another one, in which a table may have the same [`identity`](Table::identity): it can be created with that, as
    /// snapshots say. It may be another when nodes have joined or left.
    pub cluster: Option<String>,
    /// Rows come in the order of their partitions' tokens, those of one partition together and in the order of the clustering columns, as the
    /// [`Described`](crate::Described) table has them.
    pub is_in_token_order: bool,
    /// Leaves that are durations of Arrow's, in order: INT64, which count what only the Arrow schema in the metadata says. A leaf whose type
    /// was [chosen](crate::convert()) is none.
    pub durations: Vec<usize>,
    /// Key-value metadata that hold for all columns of a table of which these are some. They are not those of a file that has these rows.
    pub(crate) of_all_columns: Vec<KeyValue>,
}

/// A primary key, by leaves of the schema.
///
/// ```
/// use marquetry_parquet::format::SortingColumn;
/// use marquetry_tables::Key;
///
/// // PRIMARY KEY ((day), hour) WITH CLUSTERING ORDER BY (hour DESC), of the first two leaves.
/// let hour = SortingColumn { column: 1, descending: true, nulls_first: false };
/// let key = Key { partition: vec![0], clustering: vec![hour] };
/// assert_eq!(key.partition.len() + key.clustering.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The columns of the partition key, in order.
    pub partition: Vec<usize>,
    /// The clustering columns, each with its order.
    pub clustering: Vec<SortingColumn>,
}

impl Key {
    /// The key of a table of ScyllaDB or Cassandra, if each of its columns is one of the schema's.
    pub fn of_columns(schema: &Schema, columns: &TableColumns) -> Option<Key> {
        let leaf = |name: &str| {
            let node = schema.children(0).find(|node| schema.nodes()[*node].name == name)?;
            schema.leaves().iter().position(|leaf| leaf.node == node)
        };
        let partition = columns.partition_key.iter().map(|key| leaf(&key.name)).collect::<Option<_>>()?;
        let clustering = columns.clustering.iter().map(|key| {
            let column = u32::try_from(leaf(&key.name)?).ok()?;
            Some(SortingColumn { column, descending: key.kind.is_reversed(), nulls_first: false })
        });
        Some(Key { partition, clustering: clustering.collect::<Option<_>>()? })
    }
}

impl Table {
    /// A table of which only the name and the schema are known. If fields have the same name, the second one gets
    /// `#2` after it, and so on ([`Schema::with_unique_names`]).
    pub fn new(name: impl Into<String>, schema: Arc<Schema>) -> Table {
        Table {
            name: name.into(),
            schema: schema.with_unique_names().map_or(schema, Arc::new),
            key: None,
            order: Vec::new(),
            rows: None,
            row_groups: None,
            bytes: None,
            key_values: Vec::new(),
            notes: Vec::new(),
            unnamed_key: None,
            identity: None,
            cluster: None,
            is_in_token_order: false,
            durations: Vec::new(),
            of_all_columns: Vec::new(),
        }
    }

    /// Key-value metadata that hold for all columns of a table of which these are some, under their names in it: an Arrow schema, for one. They are not
    /// those of a file that has these rows.
    pub fn key_values_of_all_columns(&self) -> &[KeyValue] {
        &self.of_all_columns
    }

    /// The columns of its key, in order; none if it has no key.
    pub fn key_columns(&self) -> Vec<ColumnPath> {
        let Some(Key { partition, clustering }) = &self.key else { return Vec::new() };
        let clustering = clustering.iter().filter_map(|by| usize::try_from(by.column).ok());
        let path = |leaf: usize| {
            let leaf = self.schema.leaves().get(leaf)?;
            Some(ColumnPath::of([self.schema.node_of(leaf).name.as_str()]))
        };
        partition.iter().copied().chain(clustering).filter_map(path).collect()
    }

    /// A number that differs, most likely, if the columns do: it only has to tell tables apart that somebody mixes up.
    pub fn fingerprint(&self) -> u64 {
        // FNV-1a.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in format!("{:?}", self.schema).bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        hash
    }
}

/// The [lines](Source::lines_of) of rows that an object has, by its name in errors about them. `None` where it has no lines, or none of the source's
/// pieces is this object.
pub fn lines_of(source: &dyn Source, object: &str, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
    let is_it =
        |piece: &Piece| piece.name == object || piece.name.is_empty() && source.table().name == object;
    source.lines_of(source.pieces().iter().position(is_it)?, rows, cancel)
}

/// A part of a table that can be read independently of the others.
///
/// ```
/// use marquetry_tables::Piece;
///
/// let mut piece = Piece::of("trips/part-00000.parquet");
/// piece.rows = Some(1_000);
/// assert_eq!((&*piece.name, piece.first_row, piece.bytes), ("trips/part-00000.parquet", Some(0), None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// The object that it is read from, for errors about its rows. Empty if that is the table itself.
    pub name: String,
    /// The number that its first row has in that object, counted from 0. The rows after it are numbered as they come;
    /// errors about rows state these numbers. `None` for a source that leaves out rows: then each batch has the number
    /// of its [first row](Batch::first_row).
    pub first_row: Option<u64>,
    /// The number of rows, if known.
    pub rows: Option<u64>,
    /// The bytes that it is read from, if known.
    pub bytes: Option<u64>,
    /// Whether it can be read by [several threads](PieceOptions::threads).
    pub splits: bool,
    /// The tokens that its partitions have, if it has all partitions with these tokens: the first and the last.
    pub tokens: Option<(i64, i64)>,
    /// What changes with the content of its object, and is the same wherever that is opened: the ETag of a store, the version of a file within a
    /// table. `None` if there is nothing of the kind, as of local files, whose times and numbers are those of one machine.
    pub tag: Option<String>,
}

impl Piece {
    /// A piece that begins with the first row of the object with this name.
    pub fn of(name: impl Into<String>) -> Piece {
        Piece {
            name: name.into(),
            first_row: Some(0),
            rows: None,
            bytes: None,
            splits: false,
            tokens: None,
            tag: None,
        }
    }
}

/// A table's description, and its pieces, when nobody knows how many of its rows are left.
pub(crate) fn with_unknown_rows(table: &Table, pieces: &[Piece]) -> (Table, Vec<Piece>) {
    let mut table = table.clone();
    (table.rows, table.row_groups) = (None, None);
    let piece = |piece: &Piece| Piece { first_row: None, rows: None, ..piece.clone() };
    (table, pieces.iter().map(piece).collect())
}

/// Opens a piece of a source. Its batches are checked before anything else looks at them, and its rows are numbered.
pub(crate) fn open_piece(
    source: &dyn Source,
    piece: usize,
    options: &PieceOptions,
) -> Result<Box<dyn Batches>> {
    let checked = checked(source, source.open(piece, options)?);
    Ok(match source.pieces().get(piece).and_then(|piece| piece.first_row) {
        Some(first_row) => Box::new(Numbered::new(checked, first_row)),
        None => checked,
    })
}

/// The same for some of the piece's rows, where the source has a way to read no others ([`Source::open_rows`]).
pub(crate) fn open_piece_rows(
    source: &dyn Source,
    piece: usize,
    rows: RowSelection,
    options: &PieceOptions,
) -> Result<Option<Box<dyn Batches>>> {
    let opened = source.open_rows(piece, rows, options)?;
    Ok(opened.map(|batches| checked(source, batches)))
}

fn checked(source: &dyn Source, batches: Box<dyn Batches>) -> Box<dyn Batches> {
    Box::new(Checked { batches, schema: Arc::clone(&source.table().schema) })
}

/// Batches of anybody's, which are those of the table's schema, or an error.
struct Checked {
    batches: Box<dyn Batches>,
    schema: Arc<Schema>,
}

impl Batches for Checked {
    fn next(&mut self) -> Result<Option<Batch>> {
        let next = self.batches.next()?;
        next.as_ref().map_or(Ok(()), |batch| batch.check(&self.schema))?;
        Ok(next)
    }
}

/// Batches whose rows are numbered as they come.
pub(crate) struct Numbered {
    batches: Box<dyn Batches>,
    next_row: u64,
}

impl Numbered {
    pub(crate) fn new(batches: Box<dyn Batches>, first_row: u64) -> Numbered {
        Numbered { batches, next_row: first_row }
    }
}

impl Batches for Numbered {
    fn next(&mut self) -> Result<Option<Batch>> {
        let mut next = self.batches.next()?;
        if let Some(batch) = &mut next {
            batch.first_row = self.next_row;
            self.next_row = self.next_row.saturating_add(u64_of(batch.rows));
        }
        Ok(next)
    }
}

/// How a piece is read.
///
/// ```
/// use marquetry_tables::PieceOptions;
///
/// let options = PieceOptions::default().limited_to(1_000).keeping_dictionaries();
/// assert_eq!((options.limit, options.keep_dictionaries), (Some(1_000), true));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PieceOptions {
    /// Read at most this many rows.
    pub limit: Option<u64>,
    /// Hand out dictionary-encoded values as indices and the dictionary, if the source has them in that form.
    pub keep_dictionaries: bool,
    /// Rows of a batch, at most, which may be more than the source would choose: it has about as many where it can. `None`: as many as suit the
    /// source.
    pub batch_rows: Option<usize>,
    /// The most bytes of values of a batch, about: of wide tables it decides how many rows a batch has. `None`: as many as suit the
    /// source.
    pub batch_bytes: Option<u64>,
    /// Threads that may read the piece at once, if it [can use several](Piece::splits). With 0 or 1, the thread that
    /// calls reads it. The rows and the first error are the same for any number.
    pub threads: usize,
    /// Cancels the reading, or ends it because no more rows are wanted. A source that waits for others (a pipe, a
    /// server, an object store) checks it while it waits, so that [`open`](Source::open) and [`Batches::next`] end
    /// within a small part of a second once it is set, with [`Cancelled`](marquetry_base::ErrorKind::Cancelled).
    /// Others need not: it is checked between batches. [`Reading`](crate::Reading) sets it.
    pub cancel: Cancel,
    /// Where a source counts the bytes of its input that it has read for the batches that it handed out, so that it is known how
    /// much of [`Table::bytes`] is done. Files do, Parquet files a piece at a time.
    pub bytes_read: BytesRead,
    /// Where a source counts the values that are null in its batches because columns cannot hold them.
    pub lost: LostValues,
}

impl PieceOptions {
    /// Read at most this many rows.
    #[must_use]
    pub fn limited_to(mut self, rows: u64) -> PieceOptions {
        self.limit = Some(rows);
        self
    }

    /// Hand out dictionary-encoded values as indices and the dictionary, if the source has them in that form.
    #[must_use]
    pub fn keeping_dictionaries(mut self) -> PieceOptions {
        self.keep_dictionaries = true;
        self
    }
}
