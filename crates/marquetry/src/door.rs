//! Resolves addresses to the sources and destinations that are compiled in.

use std::ffi::OsStr;
use std::path::Path;

use marquetry_base::{Error, Result};
use marquetry_parquet::schema::Schema;
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory, NewParquetFile, ParquetOptions};
use marquetry_tables::{Address, Copied, CopyOptions, Destination};

use crate::{Reader, Writer};

/// Opens a table: a Parquet file, a directory of them, or a pattern (`trips/year=20*/**/*.parquet`). Everything that
/// can be wrong before the first row is found here.
///
/// Several files are one table, as [`Files`] describes; for other options, open [`Files`] and wrap them in a
/// [`Reader`] ([`Reader::of`]).
///
/// # Errors
///
/// As [`Files::open`]; `Unsupported` for addresses of a kind that is not compiled in.
pub fn open(address: impl AsRef<OsStr>) -> Result<Reader> {
    match Address::parse(address) {
        Address::Path(path) => Ok(Reader::of(Files::open([path], &FilesOptions::default())?)),
        other => Err(unsupported(&other, "reading from")),
    }
}

/// Creates a Parquet file, which appears when it is [finished](Writer::finish). For other options: [`Writer::with`].
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
/// # Errors
///
/// As [`open`], [`destination`] and [`tables::copy`](marquetry_tables::copy).
pub fn copy(from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> Result<Copied> {
    let from = open(from)?;
    let mut to = destination(to)?;
    marquetry_tables::copy(from.source(), to.as_mut(), &CopyOptions::default(), &mut |_| {})
}

/// The destination that an address means: a new Parquet file (a name that ends in `.parquet`), a new directory of them
/// (a path that ends in `/`, or is a directory), or, with the feature `cluster`, an existing table of a live cluster
/// (`cql://host/keyspace.table`). Nothing is created or connected to yet. For other options, such as creating the
/// table: `cluster::CqlTable`.
///
/// # Errors
///
/// `Io` with [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) if it exists; `Unsupported` for addresses of a
/// kind that is not compiled in, and for names of an unknown kind; `Misuse` for an invalid address of a cluster.
pub fn destination(address: impl AsRef<OsStr>) -> Result<Box<dyn Destination>> {
    let address = Address::parse(address);
    match &address {
        Address::Path(path) if address.is_directory() => {
            Ok(Box::new(NewParquetDirectory::new(path, DirectoryOptions::default())?))
        }
        Address::Path(path) if address.is_parquet() => {
            Ok(Box::new(NewParquetFile::new(path, ParquetOptions::default())?))
        }
        #[cfg(feature = "cluster")]
        Address::Url { scheme, text } if scheme == "cql" => {
            // Neither the reason nor the address as it is shown holds a password.
            let parsed = text.parse().map_err(|error: marquetry_cluster::CqlAddressError| {
                Error::misuse(error.to_string()).at(|place| place.object = Some(address.to_string()))
            })?;
            Ok(Box::new(marquetry_cluster::CqlTable::new(parsed, marquetry_cluster::CqlOptions::default())))
        }
        other => Err(unsupported(other, "copying to")),
    }
}

fn unsupported(address: &Address, what: &str) -> Error {
    let name = address.to_string();
    let error = match address.scheme() {
        Some(scheme) => Error::unsupported(format!("{what} {scheme}: is not supported")),
        None => {
            Error::unsupported(format!("{what} {name} is not supported: what it is, its name does not tell"))
        }
    };
    error.at(|place| place.object = Some(name))
}
