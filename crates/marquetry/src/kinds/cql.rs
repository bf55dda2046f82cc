//! `cql://…`: tables of a live cluster.

use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_cluster::{CqlAddress, CqlAddressError, CqlSource, CqlTable};
use marquetry_tables::Address;

use super::kind::{DestinationKind, OpenedSource, SourceKind};
use crate::options::{OptionGroup, SourceOptions};

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

fn open_table(addresses: &[Address], options: &SourceOptions) -> Result<OpenedSource> {
    let [address] = addresses else {
        return Err(Error::misuse("tables of a cluster are read alone: name one cql://HOST/KEYSPACE.TABLE"));
    };
    let source = CqlSource::open(parse(address)?, &options.cluster)?;
    Ok(OpenedSource { source: Arc::new(source), takes: &[OptionGroup::Cluster] })
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
