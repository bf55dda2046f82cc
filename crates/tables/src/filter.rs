//! Which rows are wanted, as people write it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use marquetry_base::{Detail, Error, Result};
use marquetry_parquet::find::{Report, Structures};
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::Schema;
use marquetry_text::predicate::{self, PredicateError};

use crate::ColumnPath;

/// Which rows are wanted: a [predicate](marquetry_text::predicate) as people write it, and how rows are searched for.
///
/// ```
/// use marquetry_tables::Filter;
///
/// let filter = Filter::new("fare > 20.5 AND city IN ('Rome', 'Oslo')");
/// assert_eq!(filter.report().found, 0);
/// ```
#[derive(Clone)]
pub struct Filter {
    text: String,
    structures: Structures,
    report: Arc<Mutex<Report>>,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Filter {
    /// Rows for which this is true. It is parsed when a table is known.
    pub fn new(text: impl Into<String>) -> Filter {
        Filter { text: text.into(), structures: Structures::default(), report: Arc::default() }
    }

    /// The same, with these structures of Parquet files only.
    #[must_use]
    pub fn using(mut self, structures: Structures) -> Filter {
        self.structures = structures;
        self
    }

    /// What has been found so far, and by what. Of sources that have nothing to search by it has the rows alone.
    pub fn report(&self) -> Report {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may be used to leave out rows.
    pub(crate) fn structures(&self) -> Structures {
        self.structures
    }

    /// Adds what a part of the search did.
    pub(crate) fn add(&self, report: &Report) {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).add(report);
    }

    /// The text of the predicate.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns, and fields of columns, that the text names. `None` if it is no predicate of any table.
    pub fn columns(&self) -> Option<Vec<ColumnPath>> {
        let names = predicate::names(&self.text).ok()?;
        Some(names.into_iter().map(ColumnPath::of_parts).collect())
    }

    /// Whether it is a predicate over a table's columns.
    ///
    /// # Errors
    ///
    /// What is wrong, and where.
    pub fn check(&self, schema: &Arc<Schema>) -> Result<(), PredicateError> {
        predicate::parse(&self.text, schema).map(drop)
    }

    /// The predicate over a table's columns.
    pub(crate) fn predicate(&self, schema: &Arc<Schema>) -> Result<Predicate> {
        predicate::parse(&self.text, schema).map_err(|error| {
            let message = format!("{error}, at byte {} of the predicate", error.at.start);
            Error::misuse(message).with(Detail::Option("where"))
        })
    }
}
