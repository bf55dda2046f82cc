//! `s3://…`, `gs://…`, `az://…`: objects of stores as destinations. They cannot be read again before they appear, so nothing
//! verifies them. (As sources they are [files](super::files).)

use marquetry_tables::Address;

use super::files::{is_directory, is_parquet, is_text, open_directory, open_parquet, open_text};
use super::kind::{DestinationKind, any};
use crate::options::OptionGroup;

pub(crate) const PARQUET: DestinationKind = DestinationKind {
    spelled: "objects of s3://, gs:// and az:// with such names",
    is_of: |address, format| is_writable(address) && is_parquet(address, format),
    check: any,
    takes: |_| &[OptionGroup::Parquet, OptionGroup::Order, OptionGroup::Overwrite],
    open: open_parquet,
};

pub(crate) const DIRECTORY: DestinationKind = DestinationKind {
    spelled: "their directories that end in /",
    is_of: |address, format| is_writable(address) && is_directory(address, format),
    check: any,
    takes: |_| &[OptionGroup::Parquet, OptionGroup::Directory, OptionGroup::Order, OptionGroup::Overwrite],
    open: open_directory,
};

pub(crate) const TEXT: DestinationKind = DestinationKind {
    spelled: "their texts",
    is_of: |address, format| is_writable(address) && is_text(address, format),
    check: any,
    takes: |_| &[OptionGroup::Text, OptionGroup::Order, OptionGroup::Overwrite],
    open: open_text,
};

/// Whether an address is one of a store that is written to.
pub(super) fn is_writable(address: &Address) -> bool {
    matches!(address.scheme(), Some("s3" | "gs" | "az"))
}
