//! Paths: files, directories and patterns.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_tables::files::{DataFile, Files};
use marquetry_tables::parquet::{NewParquetDirectory, NewParquetFile};
use marquetry_tables::sstables::{FullFiles, is_sstables};
use marquetry_tables::text::{Format, NewTextFile};
use marquetry_tables::{Address, Destination, Source};

use super::kind::{DestinationKind, OpenedSource, SourceKind, any};
use crate::options::{DestinationOptions, OptionGroup, OutputFormat, SourceOptions};

/// Files, directories and patterns, and standard input, which is a file to those that read text; objects of stores, which can
/// be part of the same table.
pub(crate) const SOURCE: SourceKind = SourceKind {
    spelled: if cfg!(all(feature = "object-store", feature = "rados")) {
        "local files, s3://, gs://, az://, https:// and rados://"
    } else if cfg!(feature = "object-store") {
        "local files, s3://, gs://, az:// and https://"
    } else if cfg!(feature = "rados") {
        "local files and rados://"
    } else {
        "local files"
    },
    is_of: |address| match address.scheme() {
        Some("rados") => cfg!(feature = "rados"),
        Some(_) => cfg!(feature = "object-store") && address.object().is_some(),
        None => true,
    },
    open: open_files,
};

pub(crate) const PARQUET: DestinationKind = DestinationKind {
    spelled: "files that end in .parquet",
    is_of: |address, format| is_local(address) && is_parquet(address, format),
    check: any,
    takes: |_| &[OptionGroup::Parquet, OptionGroup::Order, OptionGroup::Verify, OptionGroup::Overwrite],
    open: open_parquet,
};

pub(crate) const DIRECTORY: DestinationKind = DestinationKind {
    spelled: "directories that end in /",
    is_of: |address, format| is_local(address) && is_directory(address, format),
    check: any,
    takes: |_| {
        &[
            OptionGroup::Parquet,
            OptionGroup::Directory,
            OptionGroup::Order,
            OptionGroup::Verify,
            OptionGroup::Overwrite,
        ]
    },
    open: open_directory,
};

pub(crate) const TEXT: DestinationKind = DestinationKind {
    spelled: "text that ends in .csv, .tsv or .jsonl, also before .gz, .bz2 and .zst",
    is_of: |address, format| is_local(address) && is_text(address, format),
    check: any,
    takes: |_| &[OptionGroup::Text, OptionGroup::Order, OptionGroup::Verify, OptionGroup::Overwrite],
    open: open_text,
};

fn open_files(addresses: &[Address], options: &SourceOptions) -> Result<OpenedSource> {
    let paths: Vec<&Path> =
        addresses.iter().map(|address| path(address).unwrap_or(Path::new(STDIN))).collect();
    let takes_writes =
        |to: &Address| to.sstables().is_some() || cfg!(feature = "cluster") && to.scheme() == Some("cql");
    let takes_writes = options.files.destination.as_ref().is_some_and(takes_writes);
    if takes_writes && let Some(full) = FullFiles::open(&paths, &options.files)? {
        return Ok(OpenedSource { source: Arc::new(full), takes: &[] });
    }
    let files = Files::open(&paths, &options.files);
    let files =
        files.map_err(|error| match paths.iter().find(|path| is_sstables(&*options.files.store, path)) {
            Some(path) => {
                let message =
                    format!("{}; SSTables are the address sstable:{}", error.message(), path.display());
                error.reworded(message)
            }
            None => error,
        })?;
    if takes_writes && files.has_lost_writes() {
        let what = "some of these files have writes (the mapping full), which would become rows beside the others: copy files of either kind by themselves, and all \
                    of their columns";
        return Err(Error::misuse(what).at(|place| place.object = Some(files.table().name.clone())));
    }
    let is_parquet = |file: &DataFile| file.row_groups().is_some();
    let takes: &[OptionGroup] = if files.files().iter().all(is_parquet) { &[] } else { &[OptionGroup::Text] };
    Ok(OpenedSource { source: Arc::new(files), takes })
}

/// The path that means standard input.
const STDIN: &str = "-";

fn is_local(address: &Address) -> bool {
    matches!(address, Address::Path(_))
}

/// Whether an address means a Parquet file.
pub(super) fn is_parquet(address: &Address, format: Option<OutputFormat>) -> bool {
    let is_meant = match format {
        Some(format) => format == OutputFormat::Parquet,
        None => address.is_parquet(),
    };
    is_meant && !address.is_directory()
}

/// Whether an address means a directory of Parquet files.
pub(super) fn is_directory(address: &Address, format: Option<OutputFormat>) -> bool {
    address.is_directory() && matches!(format, None | Some(OutputFormat::Parquet))
}

/// Whether an address means a text.
pub(super) fn is_text(address: &Address, format: Option<OutputFormat>) -> bool {
    text_format(address, format).is_some() && !address.is_directory()
}

pub(super) fn open_parquet(
    address: &Address,
    _: Option<OutputFormat>,
    options: &DestinationOptions,
) -> Result<Box<dyn Destination>> {
    let (store, path) = (Arc::clone(&options.store), expect_path(address)?);
    Ok(Box::new(NewParquetFile::new_in(store, path, options.directory.parquet.clone())?))
}

pub(super) fn open_directory(
    address: &Address,
    _: Option<OutputFormat>,
    options: &DestinationOptions,
) -> Result<Box<dyn Destination>> {
    let (store, path) = (Arc::clone(&options.store), expect_path(address)?);
    Ok(Box::new(NewParquetDirectory::new_in(store, path, options.directory.clone())?))
}

pub(super) fn open_text(
    address: &Address,
    format: Option<OutputFormat>,
    options: &DestinationOptions,
) -> Result<Box<dyn Destination>> {
    let format = text_format(address, format).ok_or_else(|| Error::internal("text of no format"))?;
    let (store, path) = (Arc::clone(&options.store), expect_path(address)?);
    Ok(Box::new(NewTextFile::new_in(store, path, format, options.text.clone())?))
}

/// Whether rows go to CSV or TSV, at a path or, with a format, anywhere.
pub(super) fn is_flat(address: &Address, format: Option<OutputFormat>) -> bool {
    let format = match format {
        Some(format) => format.text(),
        None => text_format(address, None),
    };
    matches!(format, Some(Format::Csv | Format::Tsv))
}

fn text_format(address: &Address, format: Option<OutputFormat>) -> Option<Format> {
    // Its ending is all that counts; the rest need not be UTF-8.
    let name = path(address)?.file_name()?.to_string_lossy();
    match format {
        Some(format) => format.text(),
        None => Format::by_name(&name),
    }
}

fn path(address: &Address) -> Option<&Path> {
    address.object()
}

fn expect_path(address: &Address) -> Result<&Path> {
    path(address).ok_or_else(|| Error::internal("a file without a path"))
}
