//! How tables are opened and written, whatever their addresses mean.

use std::sync::Arc;

use marquetry_io::store::Store;
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::TableName;
use marquetry_tables::files::{FileFormat, FilesOptions};
use marquetry_tables::parquet::DirectoryOptions;
use marquetry_tables::sstables::{NewSstablesOptions, SstablesOptions};
use marquetry_tables::text::{Format, TextFormat, TextOptions, TextOutputOptions};
use marquetry_tables::{Cancel, CqlTextOptions};

/// How tables are read. Each kind of source takes what concerns it.
///
/// ```
/// use marquetry::SourceOptions;
///
/// let mut options = SourceOptions::default();
/// options.files.union = true;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SourceOptions {
    /// How files are found and read as one table. Files are Parquet or text, by their names or first bytes, unless
    /// [`FilesOptions::formats`] says otherwise.
    pub files: FilesOptions,
    /// How SSTables are found and read as a table (`sstable:DIR`).
    pub sstables: SstablesOptions,
    /// How a table of a live cluster is read (`cql://HOST/KEYSPACE.TABLE`).
    #[cfg(feature = "cluster")]
    pub cluster: marquetry_cluster::UnloadOptions,
}

impl Default for SourceOptions {
    fn default() -> SourceOptions {
        let mut files = FilesOptions::default();
        files.store = store();
        files.formats = vec![Arc::new(TextFormat::new(TextOptions::default())) as Arc<dyn FileFormat>];
        SourceOptions::from(files)
    }
}

/// SSTables are in the same store, and have the same limits.
impl From<FilesOptions> for SourceOptions {
    fn from(files: FilesOptions) -> SourceOptions {
        let mut sstables = SstablesOptions::default();
        sstables.store = Arc::clone(&files.store);
        (sstables.limits, sstables.cancel) = (files.limits, files.cancel.clone());
        #[cfg(feature = "cluster")]
        let cluster = {
            let mut cluster = marquetry_cluster::UnloadOptions::default();
            (cluster.limits, cluster.cancel) = (files.limits, files.cancel.clone());
            cluster
        };
        SourceOptions {
            files,
            sstables,
            #[cfg(feature = "cluster")]
            cluster,
        }
    }
}

/// How tables are written. Each kind of destination takes what concerns it, and [`Target::takes`](crate::Target::takes)
/// says which that is.
///
/// ```
/// use marquetry::{DestinationOptions, OptionGroup, Target};
///
/// # fn main() -> marquetry::Result<()> {
/// let target = Target::parse("trips.csv.gz", None)?;
/// assert!(target.takes(OptionGroup::Text) && !target.takes(OptionGroup::Parquet));
/// let destination = target.open(&DestinationOptions::default().overwriting())?;
/// assert_eq!(destination.name(), "trips.csv.gz");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DestinationOptions {
    /// Where files are: in the local file system, and, with the feature `object-store`, in stores of objects.
    pub store: Arc<dyn Store>,
    /// How directories are written, and, as [`DirectoryOptions::parquet`], each Parquet file.
    pub directory: DirectoryOptions,
    /// How CSV, TSV and JSON lines are written.
    pub text: TextOutputOptions,
    /// How SSTables are written (`sstable:DIR`).
    pub sstables: NewSstablesOptions,
    /// The name of the table in CQL text, which is required there.
    pub table: Option<TableName>,
    /// How CQL text is written.
    pub cql_text: CqlTextOptions,
    /// How a table of a live cluster is written.
    #[cfg(feature = "cluster")]
    pub cluster: marquetry_cluster::CqlOptions,
}

impl Default for DestinationOptions {
    fn default() -> DestinationOptions {
        DestinationOptions {
            store: store(),
            directory: DirectoryOptions::default(),
            text: TextOutputOptions::default(),
            sstables: NewSstablesOptions::default(),
            table: None,
            cql_text: CqlTextOptions::default(),
            #[cfg(feature = "cluster")]
            cluster: marquetry_cluster::CqlOptions::default(),
        }
    }
}

/// Where files are by default: wherever an address can say.
pub(crate) fn store() -> Arc<dyn Store> {
    #[cfg(feature = "object-store")]
    let store: Arc<dyn Store> = Arc::new(marquetry_io::store::Stores::new());
    #[cfg(not(feature = "object-store"))]
    let store: Arc<dyn Store> = Arc::new(marquetry_io::store::LocalFiles);
    #[cfg(feature = "rados")]
    let store: Arc<dyn Store> = Arc::new(marquetry_rados::RadosObjects::beside(store));
    #[cfg(not(all(feature = "object-store", feature = "rados")))]
    let store: Arc<dyn Store> =
        Arc::new(crate::left_out::Refusing { store, features: crate::left_out::COMPILED_IN });
    store
}

/// Where files are by default: wherever an address can say, in the local file system and in the stores that are compiled in. What waits there fails
/// soon after `cancel` is set.
///
/// ```
/// use std::path::Path;
///
/// use marquetry::io::store::Found;
/// use marquetry::tables::Cancel;
///
/// # fn main() -> marquetry::Result<()> {
/// let store = marquetry::stores(&Cancel::new());
/// assert_eq!(store.look(Path::new("no/such/file.parquet"))?, Found::Nothing);
/// # Ok(())
/// # }
/// ```
pub fn stores(cancel: &Cancel) -> Arc<dyn Store> {
    let (store, cancel) = (store(), cancel.clone());
    store.cancellable(Arc::new(move || cancel.is_set())).unwrap_or(store)
}

impl DestinationOptions {
    /// How columns map to CQL: in text, in a live table, and in SSTables.
    #[must_use]
    pub fn mapped_by(mut self, mapping: MappingOptions) -> DestinationOptions {
        self.sstables.rows.mapping.clone_from(&mapping);
        #[cfg(feature = "cluster")]
        self.cluster.mapping.clone_from(&mapping);
        self.cql_text.mapping = mapping;
        self
    }

    /// Replace, and so delete, what is there.
    #[must_use]
    pub fn overwriting(mut self) -> DestinationOptions {
        (self.directory.parquet.overwrite, self.text.overwrite) = (true, true);
        self
    }
}

/// Options that a kind of source or destination may have a meaning for.
///
/// ```
/// use marquetry::{OptionGroup, Target};
///
/// # fn main() -> marquetry::Result<()> {
/// assert!(Target::parse("trips/", None)?.takes(OptionGroup::Directory));
/// assert!(!Target::parse("trips.csv", None)?.takes(OptionGroup::Directory));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OptionGroup {
    /// How Parquet is written: [`DirectoryOptions::parquet`].
    Parquet,
    /// Partitions, and the sizes of files: the rest of [`DestinationOptions::directory`].
    Directory,
    /// How text is written ([`DestinationOptions::text`]), and how it is read: the
    /// [`formats`](FilesOptions::formats) of files.
    Text,
    /// [`DestinationOptions::mapped_by`].
    Mapping,
    /// [`DestinationOptions::table`], and the rest of [`DestinationOptions::cql_text`].
    CqlText,
    /// The rest of `cluster`, of destinations and of sources.
    Cluster,
    /// A table of a cluster that holds a Parquet file: `cluster`'s connection, `create`, consistency and rate.
    Columns,
    /// How SSTables are read: [`SourceOptions::sstables`].
    Sstables,
    /// How SSTables are written: [`DestinationOptions::sstables`].
    SstableOutput,
    /// The order of rows ([`CopyOptions::sort`](marquetry_tables::CopyOptions::sort)).
    Order,
    /// Reading back what was written ([`CopyOptions::verify`](marquetry_tables::CopyOptions::verify)).
    Verify,
    /// [`DestinationOptions::overwriting`].
    Overwrite,
}

/// What rows are written as.
///
/// ```
/// use marquetry::{DestinationOptions, OutputFormat, Target};
///
/// # fn main() -> marquetry::Result<()> {
/// let target = Target::parse("trips.txt", Some(OutputFormat::Csv))?;
/// assert_eq!(target.open(&DestinationOptions::default())?.name(), "trips.txt");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputFormat {
    /// A Parquet file.
    Parquet,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// One JSON object per line.
    JsonLines,
    /// CQL statements.
    Cql,
    /// A Parquet file within a table of a cluster: the layout `columns`.
    Columns,
}

impl OutputFormat {
    /// The format of text that it is. `None` of Parquet and CQL.
    pub(crate) fn text(self) -> Option<Format> {
        match self {
            OutputFormat::Csv => Some(Format::Csv),
            OutputFormat::Tsv => Some(Format::Tsv),
            OutputFormat::JsonLines => Some(Format::JsonLines),
            OutputFormat::Parquet | OutputFormat::Cql | OutputFormat::Columns => None,
        }
    }
}
