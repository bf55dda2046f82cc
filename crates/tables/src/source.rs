//! Where rows come from.

use std::sync::Arc;

use marquetry_base::Result;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::{KeyValue, SortingColumn};
use marquetry_parquet::schema::Schema;

/// A table that rows are read from: files, a live table, a generator.
///
/// What it tells of itself is known before a row is read. Rows are read in *pieces*, which are independent of each other (files,
/// row groups, token ranges), so that several threads may read at once: [`copy`](crate::copy) does. Their order is the
/// table's: all rows of one piece come before those of the next.
///
/// Methods are called in any order, from any thread. A source with a runtime of its own (a cluster, an object store) keeps it on
/// its own thread, and hands batches over through a bounded channel.
pub trait Source: Send + Sync {
    /// What is known of the table before its rows are read.
    fn table(&self) -> &Table;

    /// The pieces that it is read in, in the order of its rows. There may be none.
    fn pieces(&self) -> &[Piece];

    /// Opens a piece, by its number among the pieces.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened. An error names the object that it is about ([`Place::object`](marquetry_base::Place)), and so
    /// do those of [`Batches::next`].
    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>>;
}

/// The rows of a piece. It may wait, and is used by one thread at a time.
pub trait Batches: Send {
    /// The next rows; `None` at the end. Every batch has all leaves of the table's schema, in their order.
    ///
    /// # Errors
    ///
    /// Why there are no more. What was handed out before stays right; nothing may be asked after an error.
    fn next(&mut self) -> Result<Option<Batch>>;
}

/// What is known of a table before its rows are read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Table {
    /// What people call it, for messages: `trips.parquet`, `trips/a.parquet and 2 more files`.
    pub name: String,
    /// What its rows are.
    pub schema: Arc<Schema>,
    /// The primary key, where the table has one.
    pub key: Option<Key>,
    /// The order that its rows are in, by leaves of the schema. Empty where none is known.
    pub order: Vec<SortingColumn>,
    /// Its rows, where they are known.
    pub rows: Option<u64>,
    /// The bytes that it is read from, where they are known.
    pub bytes: Option<u64>,
    /// What the table says of itself beside its rows, under keys.
    pub key_values: Vec<KeyValue>,
}

/// A primary key, by leaves of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The columns of the partition key, in its order.
    pub partition: Vec<usize>,
    /// The clustering columns, and the order that each has.
    pub clustering: Vec<SortingColumn>,
}

impl Table {
    /// A table of which nothing is known but its name and what its rows are.
    pub fn new(name: impl Into<String>, schema: Arc<Schema>) -> Table {
        Table {
            name: name.into(),
            schema,
            key: None,
            order: Vec::new(),
            rows: None,
            bytes: None,
            key_values: Vec::new(),
        }
    }
}

/// A part of a table that can be read independently of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// The object that it is read from: what errors about its rows are about. Empty where the table is.
    pub name: String,
    /// Its rows, where they are known.
    pub rows: Option<u64>,
    /// The bytes that it is read from, where they are known.
    pub bytes: Option<u64>,
}

impl Piece {
    /// A piece of the object of this name.
    pub fn of(name: impl Into<String>) -> Piece {
        Piece { name: name.into(), rows: None, bytes: None }
    }
}

/// How a piece is read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PieceOptions {
    /// Read at most this many rows.
    pub limit: Option<u64>,
    /// Hand out values of dictionaries as indices and the dictionary, where the source has them so.
    pub keep_dictionaries: bool,
}

impl PieceOptions {
    /// Read at most this many rows.
    #[must_use]
    pub fn limited_to(mut self, rows: u64) -> PieceOptions {
        self.limit = Some(rows);
        self
    }

    /// Hand out values of dictionaries as indices and the dictionary, where the source has them so.
    #[must_use]
    pub fn keeping_dictionaries(mut self) -> PieceOptions {
        self.keep_dictionaries = true;
        self
    }
}
