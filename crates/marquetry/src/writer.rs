//! Writing a Parquet file.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Failed, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::{Destination, Table, Written};

use crate::options::store;

/// A Parquet file that is being written. Returned by [`create`](crate::create). It appears under its name when it is
/// [finished](Writer::finish), complete and on disk; dropping it earlier removes it.
///
/// After an error, whatever it was, each call returns that error again, and nothing appears: a file that lacks rows
/// must not look complete.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("copy.parquet");
/// use marquetry::schema::{FieldDef, FieldType, PhysicalType, Schema};
///
/// let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
/// let mut writer = marquetry::create(&path, Schema::of_fields(&[id])?)?;
/// # let rows = std::iter::empty::<marquetry::batch::Batch>();
/// for batch in rows {
///     writer.write(batch)?;
/// }
/// let written = writer.finish()?;
/// # assert_eq!(written.rows, 0);
/// # assert_eq!(marquetry::open(&path)?.names(), ["id"]);
/// # Ok(())
/// # }
/// ```
pub struct Writer {
    pub(crate) file: NewParquetFile,
    schema: Arc<Schema>,
    pub(crate) failed: Failed,
    #[cfg(feature = "arrow")]
    pub(crate) from_arrow: Option<marquetry_arrow::FromArrow>,
}

impl Writer {
    /// Creates a file with other options.
    ///
    /// # Errors
    ///
    /// As [`create`](crate::create).
    pub fn with(path: impl AsRef<Path>, schema: Schema, options: ParquetOptions) -> Result<Writer> {
        let mut file = NewParquetFile::new_in(store(), path, options)?;
        let schema = Arc::new(schema);
        let table = Table::new(file.name(), Arc::clone(&schema));
        file.begin(&table)?;
        Ok(Writer {
            file,
            schema,
            failed: Failed::default(),
            #[cfg(feature = "arrow")]
            from_arrow: None,
        })
    }

    /// What the file's rows are.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Writes rows, which must have all leaves of the schema.
    ///
    /// # Errors
    ///
    /// `Misuse` for rows of another schema; [`Io`](marquetry_base::ErrorKind::Io) if the file cannot be written. Also the
    /// writer's earlier failure.
    pub fn write(&mut self, batch: Batch) -> Result<()> {
        Failed::run(self, |writer| &mut writer.failed, |writer| writer.file.write(batch))
    }

    /// Completes the file, and gives it its name.
    ///
    /// # Errors
    ///
    /// [`Io`](marquetry_base::ErrorKind::Io); then nothing is left of the file, unless the message says that it is in
    /// place ([`Destination::commit`]). Also the writer's earlier failure.
    pub fn finish(mut self) -> Result<Written> {
        self.failed.check()?;
        let written = self.file.finish()?;
        self.file.commit()?;
        Ok(written)
    }
}
