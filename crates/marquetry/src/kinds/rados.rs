//! `rados://pool/name`: objects of a Ceph cluster as destinations, one, or many as one table. (As sources they are [files](super::files).)

use std::num::NonZeroU64;

use marquetry_base::Result;
use marquetry_tables::{Address, Destination};

use super::files::{is_directory, is_parquet, is_text, open_directory, open_parquet, open_text};
use super::kind::{DestinationKind, any};
use crate::options::{DestinationOptions, OptionGroup, OutputFormat};

/// About the bytes of an object of many, unless something else is chosen: an OSD takes 90 MiB at once, and one row group more than was guessed
/// must not be too much.
const OBJECT_BYTES: NonZeroU64 = NonZeroU64::new(32 << 20).unwrap();

pub(crate) const PARQUET: DestinationKind = DestinationKind {
    spelled: "objects of rados:// with such names",
    is_of: |address, format| is_rados(address) && is_parquet(address, format),
    check: any,
    takes: |_| &[OptionGroup::Parquet, OptionGroup::Order, OptionGroup::Overwrite],
    open: open_parquet,
};

pub(crate) const DIRECTORY: DestinationKind = DestinationKind {
    spelled: "their directories that end in /",
    is_of: |address, format| is_rados(address) && is_directory(address, format),
    check: any,
    takes: |_| &[OptionGroup::Parquet, OptionGroup::Directory, OptionGroup::Order, OptionGroup::Overwrite],
    open: open_objects,
};

pub(crate) const TEXT: DestinationKind = DestinationKind {
    spelled: "their texts",
    is_of: |address, format| is_rados(address) && is_text(address, format),
    check: any,
    takes: |_| &[OptionGroup::Text, OptionGroup::Order, OptionGroup::Overwrite],
    open: open_text,
};

fn open_objects(
    address: &Address,
    format: Option<OutputFormat>,
    options: &DestinationOptions,
) -> Result<Box<dyn Destination>> {
    let mut options = options.clone();
    let directory = &mut options.directory;
    if directory.file_rows.is_none() {
        directory.file_bytes.get_or_insert(OBJECT_BYTES);
    }
    open_directory(address, format, &options)
}

fn is_rados(address: &Address) -> bool {
    address.scheme() == Some("rados")
}
