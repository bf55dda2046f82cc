//! Paths: files, directories and patterns.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_tables::files::{DataFile, Files};
use marquetry_tables::parquet::{NewParquetDirectory, NewParquetFile};
use marquetry_tables::text::{Format, NewTextFile};
use marquetry_tables::{Address, Destination};

use super::kind::{DestinationKind, OpenedSource, SourceKind, any};
use crate::options::{DestinationOptions, OptionGroup, OutputFormat, SourceOptions};

/// Files, directories and patterns, and standard input, which is a file to those that read text.
pub(crate) const SOURCE: SourceKind = SourceKind {
    spelled: "local files",
    is_of: |address| matches!(address, Address::Path(_) | Address::Standard),
    open: open_files,
};

pub(crate) const PARQUET: DestinationKind = DestinationKind {
    spelled: "files that end in .parquet",
    is_of: |address, format| {
        let is_meant = match format {
            Some(format) => format == OutputFormat::Parquet,
            None => address.is_parquet(),
        };
        path(address).is_some() && is_meant && !address.is_directory()
    },
    check: any,
    takes: |_| &[OptionGroup::Parquet, OptionGroup::Order, OptionGroup::Verify, OptionGroup::Overwrite],
    open: |address, _, options| {
        Ok(Box::new(NewParquetFile::new(expect_path(address)?, options.directory.parquet.clone())?))
    },
};

pub(crate) const DIRECTORY: DestinationKind = DestinationKind {
    spelled: "directories that end in /",
    is_of: |address, format| address.is_directory() && matches!(format, None | Some(OutputFormat::Parquet)),
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
    open: |address, _, options| {
        Ok(Box::new(NewParquetDirectory::new(expect_path(address)?, options.directory.clone())?))
    },
};

pub(crate) const TEXT: DestinationKind = DestinationKind {
    spelled: "text that ends in .csv, .tsv or .jsonl, also before .gz, .bz2 and .zst",
    is_of: |address, format| text_format(address, format).is_some() && !address.is_directory(),
    check: any,
    takes: |_| &[OptionGroup::Text, OptionGroup::Order, OptionGroup::Verify, OptionGroup::Overwrite],
    open: open_text,
};

fn open_files(addresses: &[Address], options: &SourceOptions) -> Result<OpenedSource> {
    let paths: Vec<&Path> =
        addresses.iter().map(|address| path(address).unwrap_or(Path::new(STDIN))).collect();
    let files = Files::open(paths, &options.files)?;
    let is_parquet = |file: &DataFile| file.row_groups().is_some();
    let takes: &[OptionGroup] = if files.files().iter().all(is_parquet) { &[] } else { &[OptionGroup::Text] };
    Ok(OpenedSource { source: Arc::new(files), takes })
}

/// The path that means standard input.
const STDIN: &str = "-";

fn open_text(
    address: &Address,
    format: Option<OutputFormat>,
    options: &DestinationOptions,
) -> Result<Box<dyn Destination>> {
    let format = text_format(address, format).ok_or_else(|| Error::internal("text of no format"))?;
    Ok(Box::new(NewTextFile::new(expect_path(address)?, format, options.text.clone())?))
}

fn text_format(address: &Address, format: Option<OutputFormat>) -> Option<Format> {
    let name = path(address)?.file_name()?.to_str();
    match format {
        Some(format) => format.text(),
        None => Format::by_name(name?),
    }
}

fn path(address: &Address) -> Option<&Path> {
    match address {
        Address::Path(path) => Some(path),
        _ => None,
    }
}

fn expect_path(address: &Address) -> Result<&Path> {
    path(address).ok_or_else(|| Error::internal("a file without a path"))
}
