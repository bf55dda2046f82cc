//! `sstable:…`: the SSTables of a table, and new ones.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_tables::Address;
use marquetry_tables::sstables::{NewSstables, Sstables};

use super::kind::{DestinationKind, OpenedSource, SourceKind};
use crate::options::{OptionGroup, SourceOptions};

pub(crate) const SOURCE: SourceKind =
    SourceKind { spelled: "sstable:DIR", is_of: |address| address.sstables().is_some(), open: open_sstables };

pub(crate) const DESTINATION: DestinationKind = DestinationKind {
    spelled: "sstable:DIR",
    is_of: |address, format| address.sstables().is_some() && format.is_none(),
    check: |address| path_of(address).map(drop),
    takes: |_| &[OptionGroup::SstableOutput, OptionGroup::Mapping],
    open: |address, _, options| Ok(Box::new(NewSstables::new(path_of(address)?, options.sstables.clone())?)),
};

/// The path of an address.
fn path_of(address: &Address) -> Result<&Path> {
    let path = address.sstables().ok_or_else(|| Error::internal("SSTables without a path"))?;
    if path.as_os_str().is_empty() {
        return Err(Error::misuse("sstable: names no directory; sstable:DIR does"));
    }
    Ok(path)
}

fn open_sstables(addresses: &[Address], options: &SourceOptions) -> Result<OpenedSource> {
    let path = addresses.first().and_then(Address::sstables);
    let path = path.ok_or_else(|| Error::internal("SSTables without a path"))?;
    if path.as_os_str().is_empty() {
        return Err(Error::misuse("sstable: names no SSTables; sstable:DIR does, sstable:. those here"));
    }
    let source = Sstables::open(path, &options.sstables)?;
    Ok(OpenedSource { source: Arc::new(source), takes: &[OptionGroup::Sstables] })
}
