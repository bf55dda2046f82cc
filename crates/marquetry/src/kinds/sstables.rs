//! `sstable:…`: the SSTables of a table.

use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_tables::Address;
use marquetry_tables::sstables::Sstables;

use super::kind::{OpenedSource, SourceKind};
use crate::options::{OptionGroup, SourceOptions};

pub(crate) const SOURCE: SourceKind =
    SourceKind { spelled: "sstable:DIR", is_of: |address| address.sstables().is_some(), open: open_sstables };

fn open_sstables(addresses: &[Address], options: &SourceOptions) -> Result<OpenedSource> {
    let path = addresses.first().and_then(Address::sstables);
    let path = path.ok_or_else(|| Error::internal("SSTables without a path"))?;
    if path.as_os_str().is_empty() {
        return Err(Error::misuse("sstable: names no SSTables; sstable:DIR does, sstable:. those here"));
    }
    let source = Sstables::open(path, &options.sstables)?;
    Ok(OpenedSource { source: Arc::new(source), takes: &[OptionGroup::Sstables] })
}
