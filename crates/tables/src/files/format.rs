//! Files of other formats than Parquet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_io::store::Store;
use marquetry_parquet::schema::Schema;

use crate::{Batches, PieceOptions};

/// A format whose files are read wherever Parquet files are: CSV, or one of your own.
pub trait FileFormat: Send + Sync {
    /// Whether a file is of this format, by its name or because it was said.
    fn is_of(&self, path: &Path) -> bool;

    /// Opens all files of this format that make a table, at once: what one is may depend on the others. They are in
    /// this store.
    ///
    /// # Errors
    ///
    /// What cannot be opened. Errors name the file that they are about ([`Place::object`](marquetry_base::Place)).
    fn open(&self, store: &Arc<dyn Store>, paths: &[PathBuf]) -> Result<Vec<Box<dyn FormatFile>>>;
}

/// A file of a [`FileFormat`], a table by itself.
pub trait FormatFile: Send + Sync {
    /// What people call it.
    fn name(&self) -> &str;

    /// What its rows are.
    fn schema(&self) -> &Arc<Schema>;

    /// Its rows, where they are known before they are read.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// Its length in bytes, where that is known.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Whether several threads can read it at once: see [`PieceOptions::threads`].
    fn splits(&self) -> bool {
        false
    }

    /// Opens it: batches of these leaves of its schema, in this order, and of no others.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened.
    fn open(&self, leaves: &[usize], options: &PieceOptions) -> Result<Box<dyn Batches>>;
}
