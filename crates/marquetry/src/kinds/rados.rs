//! `rados://pool/name`: objects of a Ceph cluster as destinations, one at a time. (As sources they are [files](super::files).)

use marquetry_tables::Address;

use super::files::{is_parquet, is_text, open_parquet, open_text};
use super::kind::{DestinationKind, any};
use crate::options::OptionGroup;

pub(crate) const PARQUET: DestinationKind = DestinationKind {
    spelled: "objects of rados:// with such names",
    is_of: |address, format| is_rados(address) && is_parquet(address, format),
    check: any,
    takes: |_| &[OptionGroup::Parquet, OptionGroup::Order, OptionGroup::Overwrite],
    open: open_parquet,
};

pub(crate) const TEXT: DestinationKind = DestinationKind {
    spelled: "their texts",
    is_of: |address, format| is_rados(address) && is_text(address, format),
    check: any,
    takes: |_| &[OptionGroup::Text, OptionGroup::Order, OptionGroup::Overwrite],
    open: open_text,
};

fn is_rados(address: &Address) -> bool {
    address.scheme() == Some("rados")
}
