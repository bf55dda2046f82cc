//! Paths: files, directories and patterns.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Detail, Error, ErrorKind, Result};
use marquetry_io::ByteSource;
use marquetry_io::blocking::File;
use marquetry_io::store::{Found, Store};
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
    spelled: "text that ends in .csv, .tsv or .jsonl, also before .gz and .zst",
    is_of: |address, format| text_format(address, format).is_some() && !address.is_directory(),
    check: any,
    takes: |_| &[OptionGroup::Text, OptionGroup::Order, OptionGroup::Verify, OptionGroup::Overwrite],
    open: open_text,
};

fn open_files(addresses: &[Address], options: &SourceOptions) -> Result<OpenedSource> {
    let mut paths = Vec::new();
    for address in addresses {
        let path = path(address).unwrap_or(Path::new("-"));
        if is_read_once(&*options.files.store, path)
            && !options.files.formats.iter().any(|format| format.is_of(path))
        {
            let is_stdin = path == Path::new(STDIN) || path == Path::new("/dev/stdin");
            let what = "a Parquet file is read from its end, so it cannot come from a pipe: write it to a file first";
            let (name, what) = match is_stdin {
                true => {
                    ("standard input".to_owned(), format!("{what}, and name that or redirect it (< FILE)"))
                }
                false => (path.display().to_string(), what.to_owned()),
            };
            let error = Error::misuse(what).with(Detail::AdmittedBy(&["formats"]));
            return Err(error.at(|place| place.object = Some(name)));
        }
        paths.push(path);
    }
    let is_stdin = paths.contains(&Path::new(STDIN));
    let files = Files::open(paths, &options.files).map_err(|error| match error.kind() {
        // It has no name that says what it is.
        ErrorKind::Corrupt if is_stdin && !begins_as_parquet() => {
            error.with(Detail::AdmittedBy(&["formats"]))
        }
        _ => error,
    })?;
    let is_parquet = |file: &DataFile| file.row_groups().is_some();
    let takes: &[OptionGroup] = if files.files().iter().all(is_parquet) { &[] } else { &[OptionGroup::Text] };
    Ok(OpenedSource { source: Arc::new(files), takes })
}

/// The path that means standard input.
const STDIN: &str = "-";

/// Whether a path leads to what is neither a file nor a directory, such as a pipe.
fn is_read_once(store: &dyn Store, path: &Path) -> bool {
    match path == Path::new(STDIN) {
        true => File::stdin().is_err(),
        false => matches!(store.look(path), Ok(Found::Stream)),
    }
}

/// Whether standard input, a regular file, begins as Parquet files do.
fn begins_as_parquet() -> bool {
    let magic = File::stdin().and_then(|file| file.read(0..4));
    magic.is_ok_and(|magic| matches!(&*magic, b"PAR1" | b"PARE"))
}

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
