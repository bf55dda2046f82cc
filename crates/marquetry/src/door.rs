//! The everyday: a table opened, a file created, rows copied.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_parquet::schema::Schema;
use marquetry_tables::parquet::ParquetOptions;
use marquetry_tables::text::{TextFormat, TextOptions};
use marquetry_tables::{Address, ColumnPath, Copied, CopyOptions, Destination};

use crate::kinds::{self, Target};
use crate::options::{DestinationOptions, SourceOptions};
use crate::reader::Reader;
use crate::writer::Writer;

/// Opens a table: a Parquet file, CSV, TSV or JSON lines, compressed or not, a directory of them, or a pattern
/// (`trips/year=20*/**/*.parquet`). A file is what its name or, without a telling one, its first bytes say. `sstable:DIR` is the table whose SSTables are there; with the feature `cluster`, `cql://HOST/KEYSPACE.TABLE` is that of a live cluster. With the feature `object-store` also those of `s3://`, `gs://`, `az://` and `https://`. Everything that can be wrong before the first row is found here.
///
/// ```no_run
/// # fn main() -> marquetry::Result<()> {
/// for batch in marquetry::open("trips/*.parquet")?.columns(["id", "fare"])?.batches()? {
///     println!("{} rows", batch?.rows);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`open_all`].
pub fn open(address: impl AsRef<OsStr>) -> Result<Reader> {
    open_all([address], &SourceOptions::default())
}

/// Opens several tables as one, with options.
///
/// ```no_run
/// # fn main() -> marquetry::Result<()> {
/// let mut options = marquetry::SourceOptions::default();
/// options.files.union = true;
/// let trips = marquetry::open_all(["2023.parquet", "2024.csv"], &options)?;
/// println!("{:?}", trips.names());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`Files::open`](marquetry_tables::files::Files::open); `Unsupported` with
/// [`Detail::Address`](marquetry_base::Detail) for addresses of no kind, with [`Detail::Feature`](marquetry_base::Detail) for those of one that is not compiled
/// in; `Misuse` for standard input without a format that takes it.
pub fn open_all<A: AsRef<OsStr>>(
    addresses: impl IntoIterator<Item = A>,
    options: &SourceOptions,
) -> Result<Reader> {
    let addresses: Vec<Address> = addresses.into_iter().map(Address::parse).collect();
    Ok(Reader::opened(kinds::source(&addresses, options)?))
}

/// Opens some columns of a table, in this order: as [`columns`](Reader::columns) of [`open`], but of Parquet files of very many
/// columns nothing else is opened, which takes a part of the time.
///
/// ```no_run
/// # fn main() -> marquetry::Result<()> {
/// let features = marquetry::open_columns("features.parquet", ["id", "feature_77"])?;
/// println!("{:?}", features.names());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`open`], and as [`Reader::columns`].
pub fn open_columns<S: AsRef<str>>(
    address: impl AsRef<OsStr>,
    names: impl IntoIterator<Item = S>,
) -> Result<Reader> {
    let paths = names.into_iter().map(|name| ColumnPath::parse(name.as_ref()));
    let paths = paths.collect::<Result<Vec<_>>>()?;
    let mut options = SourceOptions::default();
    options.files.needed = Some(paths.clone());
    open_all([address], &options)?.paths(&paths)
}

/// Creates a Parquet file, which appears when it is [finished](Writer::finish). For other options: [`Writer::with`].
///
/// ```
/// use marquetry::batch::Batch;
/// use marquetry::schema::{FieldDef, FieldType, PhysicalType, Schema};
///
/// # fn main() -> marquetry::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("trips.parquet");
/// let schema = Schema::of_fields(&[FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None))])?;
/// let mut trips = marquetry::create(&path, schema)?;
/// trips.write(Batch::of_values([vec![1_i64, 2, 3].into()])?)?;
/// trips.finish()?;
/// assert_eq!(marquetry::open(&path)?.rows(), Some(3));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Io`](marquetry_base::ErrorKind::Io), with [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) if something
/// already exists at `path`.
pub fn create(path: impl AsRef<Path>, schema: Schema) -> Result<Writer> {
    Writer::with(path, schema, ParquetOptions::default())
}

/// Copies a table from any address that [`open`] accepts to any that [`destination`] accepts. For options (sorting,
/// verification, progress): [`tables::copy`](marquetry_tables::copy).
///
/// ```no_run
/// # fn main() -> marquetry::Result<()> {
/// marquetry::copy("trips.parquet", "trips.csv.gz")?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`open`], [`destination`] and [`tables::copy`](marquetry_tables::copy).
pub fn copy(from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> Result<Copied> {
    let target = Target::parse(to, None)?;
    let from = open_all([from], &options_for(&target))?;
    let mut to = target.open(&DestinationOptions::default())?;
    marquetry_tables::copy(from.source(), to.as_mut(), &CopyOptions::default(), &mut |_| {})
}

/// How tables are read whose rows go there.
pub(crate) fn options_for(target: &Target) -> SourceOptions {
    let mut options = SourceOptions::default();
    options.files.destination = Some(target.address().clone());
    let mut text = TextOptions::default();
    text.timestamp_unit = target.timestamp_unit();
    options.files.formats = vec![Arc::new(TextFormat::new(text))];
    options
}

/// The destination that an address means, by default: a new Parquet file, a new directory of them, CSV, TSV or JSON
/// lines, or, with the feature `cluster`, an existing table of a live cluster. Nothing is created or connected to yet.
/// [`Target`] has the list, and takes options.
///
/// ```
/// use marquetry::tables::Destination;
///
/// # fn main() -> marquetry::Result<()> {
/// assert_eq!(marquetry::destination("trips.csv.gz")?.name(), "trips.csv.gz");
/// assert!(marquetry::destination("trips.xml").is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`Target::parse`] and [`Target::open`].
pub fn destination(address: impl AsRef<OsStr>) -> Result<Box<dyn Destination>> {
    Target::parse(address, None)?.open(&DestinationOptions::default())
}

#[cfg(test)]
mod tests {
    use marquetry_parquet::schema::{LogicalType, TimeUnit};

    use super::*;
    use crate::OutputFormat;

    #[test]
    fn times_of_text_have_the_unit_of_their_destination() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("a.csv");
        std::fs::write(&text, "id,at\n1,2024-02-29T10:00:00.5Z\n").unwrap();
        let unit = |target: &Target| {
            let mut options = options_for(target);
            // A cluster would be asked what it wants of text.
            options.files.destination = None;
            let opened = open_all([&text], &options).unwrap();
            let schema = opened.schema();
            match schema.node_of(&schema.leaves()[1]).logical_type {
                Some(LogicalType::Timestamp { unit, .. }) => unit,
                ref other => panic!("{other:?}"),
            }
        };
        assert_eq!(unit(&Target::parse("a.parquet", None).unwrap()), TimeUnit::Micros);
        assert_eq!(unit(&Target::parse("-", Some(OutputFormat::Cql)).unwrap()), TimeUnit::Millis);
        #[cfg(feature = "cluster")]
        assert_eq!(unit(&Target::parse("cql://host/ks.t", None).unwrap()), TimeUnit::Millis);
    }
}
