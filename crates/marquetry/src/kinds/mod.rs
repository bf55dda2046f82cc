//! The registry: which addresses mean what. A kind of address is a file here and an entry in a list; every door has it
//! then, with its options.

#[cfg(feature = "cluster")]
mod cql;
mod files;
mod kind;
#[cfg(feature = "object-store")]
mod objects;
#[cfg(feature = "rados")]
mod rados;
mod sstables;
mod standard;

use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

use marquetry_base::{Detail, Error, Result};
use marquetry_parquet::schema::TimeUnit;
use marquetry_tables::files::WantedColumns;
use marquetry_tables::{Address, Destination};
#[cfg(feature = "cluster")]
use marquetry_tables::{Rename, text::Wanted};

use crate::left_out::COMPILED_IN;
use crate::options::{DestinationOptions, OptionGroup, OutputFormat, SourceOptions};
pub(crate) use kind::OpenedSource;
use kind::{DestinationKind, SourceKind};

/// What rows are read from.
const SOURCES: &[&SourceKind] = &[
    &files::SOURCE,
    &sstables::SOURCE,
    #[cfg(feature = "cluster")]
    &cql::SOURCE,
];

/// What rows are written to.
const DESTINATIONS: &[&DestinationKind] = &[
    #[cfg(feature = "cluster")]
    &cql::TABLE,
    #[cfg(feature = "cluster")]
    &cql::COLUMNS,
    &files::PARQUET,
    &files::DIRECTORY,
    &files::TEXT,
    #[cfg(feature = "object-store")]
    &objects::PARQUET,
    #[cfg(feature = "object-store")]
    &objects::DIRECTORY,
    #[cfg(feature = "object-store")]
    &objects::TEXT,
    #[cfg(feature = "rados")]
    &rados::PARQUET,
    #[cfg(feature = "rados")]
    &rados::DIRECTORY,
    #[cfg(feature = "rados")]
    &rados::TEXT,
    &sstables::DESTINATION,
    &standard::OUTPUT,
];

/// Opens tables as one, of the kind that the first address is of.
pub(crate) fn source(addresses: &[Address], options: &SourceOptions) -> Result<OpenedSource> {
    let Some(first) = addresses.first() else { return Err(Error::misuse("no table is named")) };
    let Some(kind) = SOURCES.iter().find(|kind| (kind.is_of)(first)) else {
        return Err(unsupported(first));
    };
    if addresses.len() > 1 && addresses.iter().any(|address| address.sstables().is_some()) {
        return Err(Error::misuse(
            "SSTables are read alone, as one table of one address: a directory, or a pattern such as 'sstable:node*/data/ks/t-*'",
        ));
    }
    match addresses.iter().find(|address| !(kind.is_of)(address)) {
        Some(other) if SOURCES.iter().any(|kind| (kind.is_of)(other)) => Err(of_two_kinds(first, other)),
        Some(other) => Err(unsupported(other)),
        None => match wanted_columns(options)? {
            None => (kind.open)(addresses, options),
            Some(wanted) => {
                let mut options = options.clone();
                for format in &mut options.files.formats {
                    *format = format.going_to(&wanted).unwrap_or(Arc::clone(format));
                }
                (kind.open)(addresses, &options)
            }
        },
    }
}

/// What the destination wants of text: a table that is there has types.
#[cfg(feature = "cluster")]
fn wanted_columns(options: &SourceOptions) -> Result<Option<Arc<dyn WantedColumns>>> {
    let Some(destination) = &options.files.destination else { return Ok(None) };
    let by_table = cql::wanted_columns(destination, &options.cluster)?;
    let renames = &options.files.renames;
    Ok(by_table
        .map(|wanted| Arc::new(Renamed { wanted, renames: renames.clone() }) as Arc<dyn WantedColumns>))
}

#[cfg(not(feature = "cluster"))]
fn wanted_columns(_: &SourceOptions) -> Result<Option<Arc<dyn WantedColumns>>> {
    Ok(None)
}

/// What is wanted of columns that have other names on their way there.
#[cfg(feature = "cluster")]
#[derive(Debug)]
struct Renamed {
    wanted: Arc<dyn WantedColumns>,
    renames: Vec<Rename>,
}

#[cfg(feature = "cluster")]
impl WantedColumns for Renamed {
    fn wanted(&self) -> Result<Vec<(String, Wanted)>> {
        let mut all = self.wanted.wanted()?;
        for rename in self.renames.iter().rev() {
            all = all
                .into_iter()
                .filter_map(|(name, wanted)| Some((rename.before(&name)?.to_owned(), wanted)))
                .collect();
        }
        Ok(all)
    }
}

/// Each could be read alone, but not the two as one table.
fn of_two_kinds(first: &Address, other: &Address) -> Error {
    let what = format!(
        "tables are read as one only if all are files, or objects of stores: {first} and {other} are not"
    );
    Error::misuse(what).with(Detail::Address).at(|place| place.object = Some(other.to_string()))
}

fn unsupported(address: &Address) -> Error {
    if let Some(error) = COMPILED_IN.refused(address) {
        return error;
    }
    let scheme = address.scheme().unwrap_or("this");
    let supported: Vec<&str> = SOURCES.iter().map(|kind| kind.spelled).collect();
    let what =
        format!("reading from {scheme}:// is not supported yet; supported are {}", supported.join(", "));
    Error::unsupported(what).with(Detail::Address).at(|place| place.object = Some(address.to_string()))
}

/// An address that rows can be written to, and what it means: the door to a [`Destination`] with options.
///
/// | address | without a format | with one |
/// |---|---|---|
/// | a path that ends in `/`, or is a directory | a directory of Parquet files | that, if it is Parquet |
/// | a path that ends in `.parquet` | a Parquet file | a file of that format |
/// | a path that ends in `.csv`, `.tsv`, `.jsonl`, also before `.gz`, `.bz2` and `.zst` | such a text | a file of that format |
/// | `s3://…`, `gs://…`, `az://…` (feature `object-store`) | by their names, as paths | as paths |
/// | `rados://pool/name` (feature `rados`) | by their names, as paths | as paths |
/// | `-` | | standard output |
/// | `cql://HOST/KEYSPACE.TABLE` (feature `cluster`) | a table of a live cluster | with [`Columns`](OutputFormat::Columns), a Parquet file within the table |
/// | `sstable:DIR` | a new directory of SSTables | |
///
/// ```
/// use marquetry::{OptionGroup, OutputFormat, Target};
///
/// # fn main() -> marquetry::Result<()> {
/// let target = Target::parse("-", Some(OutputFormat::JsonLines))?;
/// assert!(target.takes(OptionGroup::Text));
/// assert!(Target::parse("trips.xml", None).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Target {
    kind: &'static DestinationKind,
    address: Address,
    format: Option<OutputFormat>,
}

impl Target {
    /// Finds what an address means. Nothing is created or connected to.
    ///
    /// # Errors
    ///
    /// `Unsupported`, with [`Detail::Address`] and the address, for those of no kind, and for names that do not say what they are; with
    /// [`Detail::Feature`], for those of a kind that is not compiled in; `Misuse` for an invalid address of a cluster.
    pub fn parse(address: impl AsRef<OsStr>, format: Option<OutputFormat>) -> Result<Target> {
        let address = Address::parse(address);
        let Some(kind) = DESTINATIONS.iter().find(|kind| (kind.is_of)(&address, format)) else {
            return Err(refused(&address, format));
        };
        (kind.check)(&address)?;
        Ok(Target { kind, address, format })
    }

    /// The address. It is shown without a password.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether options of this group have a meaning.
    pub fn takes(&self, group: OptionGroup) -> bool {
        (self.kind.takes)(self.format).contains(&group)
    }

    /// The unit of timestamps that are inferred from text
    /// ([`TextOptions::timestamp_unit`](marquetry_tables::text::TextOptions)) whose rows go there: milliseconds for CQL,
    /// whose `timestamp` has them. `None` where any unit can be written.
    ///
    /// ```
    /// use marquetry::schema::TimeUnit;
    /// use marquetry::{OutputFormat, Target};
    ///
    /// # fn main() -> marquetry::Result<()> {
    /// assert_eq!(Target::parse("-", Some(OutputFormat::Cql))?.timestamp_unit(), Some(TimeUnit::Millis));
    /// assert_eq!(Target::parse("trips.parquet", None)?.timestamp_unit(), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timestamp_unit(&self) -> Option<TimeUnit> {
        self.takes(OptionGroup::Mapping).then_some(TimeUnit::Millis)
    }

    /// Whether rows go to CSV or TSV, which have no nested columns: durations are written as text there
    /// ([`durations_as_text`](marquetry_tables::durations_as_text)).
    pub fn is_flat_text(&self) -> bool {
        files::is_flat(&self.address, self.format)
    }

    /// The destination. Nothing is created yet, and no cluster is connected to; whether an object exists that would be
    /// replaced, its store is asked. Options that have no meaning are ignored.
    ///
    /// # Errors
    ///
    /// `Io` with [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) if it exists, unless it may be replaced;
    /// `Misuse` for invalid options.
    pub fn open(&self, options: &DestinationOptions) -> Result<Box<dyn Destination>> {
        (self.kind.open)(&self.address, self.format, options)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("address", &self.address)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// Why an address is of no kind.
fn refused(address: &Address, format: Option<OutputFormat>) -> Error {
    if let Some(error) = COMPILED_IN.refused(address) {
        return error;
    }
    let what = match (address, format) {
        (Address::Standard, None) => {
            "standard output needs a format: parquet, csv, tsv, jsonl or cql".to_owned()
        }
        (Address::Url { scheme, .. }, Some(format)) if scheme == "sstable" => {
            format!("SSTables have versions, and the format {format:?} was asked for")
        }
        (Address::Url { scheme, .. }, Some(format)) if scheme == "cql" => {
            format!("a table of a cluster has no format, and {format:?} was asked for")
        }
        #[cfg(feature = "object-store")]
        (Address::Url { .. }, None) if objects::is_writable(address) => {
            "the name is neither that of a Parquet file, a text nor a directory".to_owned()
        }
        (Address::Url { scheme, .. }, _) if scheme == "http" || scheme == "https" => {
            format!("objects of {scheme}:// can only be read")
        }
        (Address::Url { scheme, .. }, _) => format!("copying to {scheme}:// is not supported yet"),
        (_, Some(format)) => format!("copying to a path as {format:?} is not supported yet"),
        _ => "this is neither a table nor a Parquet file, a text or a directory".to_owned(),
    };
    let supported: Vec<&str> = DESTINATIONS.iter().map(|kind| kind.spelled).collect();
    let what = format!("{what}; supported are {}", supported.join(", "));
    Error::unsupported(what).with(Detail::Address).at(|place| place.object = Some(address.to_string()))
}
