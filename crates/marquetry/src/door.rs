//! What addresses mean: which sources and destinations are compiled in.

use std::ffi::OsStr;
use std::path::Path;

use marquetry_base::{Error, Result};
use marquetry_parquet::schema::Schema;
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory, NewParquetFile, ParquetOptions};
use marquetry_tables::{Address, Copied, CopyOptions, Destination};

use crate::{Reader, Writer};

/// Opens a table: a Parquet file, a directory of them, or a pattern (`trips/year=20*/**/*.parquet`). Whatever can be wrong before
/// the first row is found here.
///
/// Several files are one table, as [`Files`] describes; with options of your own, open [`Files`] and make a [`Reader`] of them
/// ([`Reader::of`]).
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

/// Makes a Parquet file, which appears when it is [finished](Writer::finish). With options of your own: [`Writer::with`].
///
/// # Errors
///
/// [`Io`](marquetry_base::ErrorKind::Io), with [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) where there is something
/// at `path` already.
pub fn create(path: impl AsRef<Path>, schema: Schema) -> Result<Writer> {
    Writer::with(path, schema, ParquetOptions::default())
}

/// Copies a table: from whatever [`open`] opens to whatever [`destination`] makes. With options of your own (sorting,
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

/// The destination that an address means: a new Parquet file (a name that ends in `.parquet`), or a new directory of them (one
/// that ends in `/`, or is a directory). Nothing is made yet.
///
/// # Errors
///
/// `Io` with [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) for what exists; `Unsupported` for addresses of a kind that
/// is not compiled in, and names that do not tell what they are.
pub fn destination(address: impl AsRef<OsStr>) -> Result<Box<dyn Destination>> {
    let address = Address::parse(address);
    match &address {
        Address::Path(path) if address.is_directory() => {
            Ok(Box::new(NewParquetDirectory::new(path, DirectoryOptions::default())?))
        }
        Address::Path(path) if address.is_parquet() => {
            Ok(Box::new(NewParquetFile::new(path, ParquetOptions::default())?))
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
