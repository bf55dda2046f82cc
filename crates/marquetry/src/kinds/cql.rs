//! `cql://…`: tables of a live cluster.

use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_cluster::{
    ColumnsTable, CqlAddress, CqlAddressError, CqlTable, NewColumns, OpenedTable, UnloadOptions,
    WantedByTable,
};
use marquetry_tables::Address;
use marquetry_tables::files::{Files, FilesOptions, Hive, WantedColumns};
use marquetry_tables::parquet::NewParquetFile;

use super::kind::{DestinationKind, OpenedSource, SourceKind};
use crate::options::{OptionGroup, OutputFormat, SourceOptions};

pub(crate) const SOURCE: SourceKind = SourceKind {
    spelled: "cql://HOST/KEYSPACE.TABLE",
    is_of: |address| address.scheme() == Some("cql"),
    open: open_table,
};

pub(crate) const TABLE: DestinationKind = DestinationKind {
    spelled: "cql://HOST/KEYSPACE.TABLE",
    is_of: |address, format| address.scheme() == Some("cql") && format.is_none(),
    check: |address| parse(address).map(drop),
    takes: |_| &[OptionGroup::Mapping, OptionGroup::Cluster],
    open: |address, _, options| Ok(Box::new(CqlTable::new(parse(address)?, options.cluster.clone()))),
};

pub(crate) const COLUMNS: DestinationKind = DestinationKind {
    spelled: "cql://HOST/KEYSPACE.TABLE with the layout columns",
    is_of: |address, format| address.scheme() == Some("cql") && format == Some(OutputFormat::Columns),
    check: |address| parse(address).map(drop),
    takes: |_| &[OptionGroup::Parquet, OptionGroup::Order, OptionGroup::Overwrite, OptionGroup::Columns],
    open: |address, _, options| {
        let table = NewColumns::new(parse(address)?, options.cluster.clone());
        let path = table.name().to_owned();
        Ok(Box::new(NewParquetFile::new_in(Arc::new(table), path, options.directory.parquet.clone())?))
    },
};

fn open_table(addresses: &[Address], options: &SourceOptions) -> Result<OpenedSource> {
    let [address] = addresses else {
        return Err(Error::misuse("tables of a cluster are read alone: name one cql://HOST/KEYSPACE.TABLE"));
    };
    let takes = &[OptionGroup::Cluster];
    Ok(match OpenedTable::open(parse(address)?, &options.cluster)? {
        OpenedTable::Rows(source) => OpenedSource { source: Arc::new(*source), takes },
        OpenedTable::Laid(source) => OpenedSource { source: Arc::new(*source), takes },
        OpenedTable::Columns(table) => {
            expect_file(&table, &options.cluster)?;
            OpenedSource { source: Arc::new(open_file(table, options.files.clone())?), takes }
        }
        _ => return Err(Error::internal("a table of a kind that is not known")),
    })
}

/// Fails for what is asked of rows, where a table holds a file.
fn expect_file(table: &ColumnsTable, options: &UnloadOptions) -> Result<()> {
    let UnloadOptions { with_metadata, tokens, rate, .. } = options;
    let given = [
        (*with_metadata, "with_metadata"),
        (tokens.is_some(), "token_range"),
        (rate.rows.is_some() || rate.bytes.is_some(), "rate"),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, name)) => {
            let what = "this is for rows of a table, and this one holds a Parquet file (the layout columns)";
            Err(Error::option(name, what).at(|place| place.object = Some(table.name().to_owned())))
        }
        None => Ok(()),
    }
}

/// What a table that rows go to, or are compared with, wants of text, by the names that columns have there.
pub(crate) fn wanted_columns(
    destination: &Address,
    UnloadOptions { connect, cancel, .. }: &UnloadOptions,
) -> Result<Option<Arc<dyn WantedColumns>>> {
    if destination.scheme() != Some("cql") {
        return Ok(None);
    }
    let table = WantedByTable::new(parse(destination)?, connect.clone(), cancel.clone());
    Ok(Some(Arc::new(table)))
}

/// The file that a table holds.
fn open_file(table: ColumnsTable, mut options: FilesOptions) -> Result<Files> {
    let path = table.name().to_owned();
    // Nothing in an address is a name of Hive's.
    (options.store, options.hive) = (Arc::new(table), Hive::Off);
    Files::open([path], &options)
}

/// Parses the address of a table.
///
/// # Errors
///
/// `Misuse`. Neither the reason nor the address as it is shown holds a password.
pub(crate) fn parse(address: &Address) -> Result<CqlAddress> {
    let Address::Url { text, .. } = address else {
        return Err(Error::internal("an address of a cluster that is no URL"));
    };
    text.parse().map_err(|error: CqlAddressError| {
        Error::misuse(error.to_string()).at(|place| place.object = Some(address.to_string()))
    })
}
