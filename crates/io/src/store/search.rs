//! Searches where objects are, by stores that can.

use std::path::PathBuf;

use marquetry_base::{Bytes, Error, Result};

use crate::ObjectVersion;

/// A search for rows of Parquet objects, by [`Store::search`](super::Store::search).
#[derive(Debug, Clone)]
pub struct Search {
    /// The objects.
    pub objects: Vec<SearchedObject>,
    /// The rows that are wanted, in the words of `find`: it means the same for each of the objects. `None`: all of them.
    pub predicate: Option<String>,
    /// What is wanted of these rows instead of them.
    pub aggregates: Option<SearchedAggregates>,
    /// Rows of each object, at most.
    pub limit: Option<u64>,
}

/// Aggregates of the rows that are found: partial ones, of some of them each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedAggregates {
    /// `count(*)`, and `count`, `sum`, `min` and `max` of columns, each in double quotes as the objects' schemas have it.
    pub functions: Vec<String>,
    /// Columns, in the same way, whose values make groups: for each group a row is found, with its values in them before the aggregates.
    pub groups: Vec<String>,
}

/// An object that is searched.
#[derive(Debug, Clone)]
pub struct SearchedObject {
    /// Its path.
    pub path: PathBuf,
    /// The version that it must have.
    pub version: ObjectVersion,
    /// The leaves that are wanted of rows that are found: of each, the names on the way to it, as the object's schema has them. None: rows are
    /// counted. Of aggregates, there are none.
    pub leaves: Vec<Vec<String>>,
}

/// The results of a search, object by object: what comes of one comes before what comes of the next.
pub trait Searching: Send {
    /// What comes next. `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of the store; they name the object. After an error nothing more comes.
    fn next(&mut self) -> Result<Option<Searched>>;
}

/// What comes of a search, of one object.
#[derive(Debug)]
pub enum Searched {
    /// Rows of it, which follow those before.
    Found(FoundRows),
    /// The object cannot be searched where it is, or not to its end: nothing more comes of it.
    Declined {
        /// The object, by its place in the search.
        object: usize,
        /// Why not.
        reason: Error,
    },
}

/// Rows that were found.
#[derive(Debug, Clone)]
pub struct FoundRows {
    /// The object, by its place in the search.
    pub object: usize,
    /// How many rows.
    pub rows: u64,
    /// The number that the first of them has in the object.
    pub first_row: u64,
    /// A Parquet file of the rows, with the leaves that are wanted in the object's order. Empty if rows are counted.
    pub file: Bytes,
    /// What the search did for them, as numbers whose meaning those know who ask (`Report::of_numbers` of `marquetry-parquet`).
    pub report: Vec<u64>,
}
