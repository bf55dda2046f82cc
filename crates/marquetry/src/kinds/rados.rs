//! `rados://pool/name`: objects of a Ceph cluster as destinations, one, or many as one table. (As sources they are [files](super::files).)

use std::num::NonZeroU64;

use marquetry_base::Result;
use marquetry_parquet::write::WriteOptions;
use marquetry_rados::BEGUN_BYTES_MAX;
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
    open: open_object,
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

fn open_object(
    address: &Address,
    format: Option<OutputFormat>,
    options: &DestinationOptions,
) -> Result<Box<dyn Destination>> {
    let mut options = options.clone();
    bound_pages(&mut options.directory.parquet.write);
    open_parquet(address, format, &options)
}

fn open_objects(
    address: &Address,
    format: Option<OutputFormat>,
    options: &DestinationOptions,
) -> Result<Box<dyn Destination>> {
    let mut options = options.clone();
    let directory = &mut options.directory;
    bound_pages(&mut directory.parquet.write);
    if directory.file_rows.is_none() {
        directory.file_bytes.get_or_insert(OBJECT_BYTES);
    }
    open_directory(address, format, &options)
}

/// Pages are as a call of the object class can begin them, unless others were chosen.
fn bound_pages(write: &mut WriteOptions) {
    let chosen = |of: &WriteOptions| (of.page_rows, of.page_bytes, of.dictionary_bytes, of.begun_bytes_max);
    if chosen(write) == chosen(&WriteOptions::default()) {
        write.begun_bytes_max = BEGUN_BYTES_MAX;
    }
}

fn is_rados(address: &Address) -> bool {
    address.scheme() == Some("rados")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_small_unless_others_were_chosen() {
        let begun = |options: WriteOptions| {
            let mut options = options;
            bound_pages(&mut options);
            options.begun_bytes_max
        };
        assert_eq!(begun(WriteOptions::default()), BEGUN_BYTES_MAX);
        assert_eq!(begun(WriteOptions { row_group_rows: 7, ..WriteOptions::default() }), BEGUN_BYTES_MAX);
        for chosen in [
            WriteOptions { page_rows: 100_000, ..WriteOptions::default() },
            WriteOptions { page_bytes: 4 << 20, ..WriteOptions::default() },
            WriteOptions { dictionary_bytes: 4 << 20, ..WriteOptions::default() },
        ] {
            assert_eq!(begun(chosen), usize::MAX);
        }
        assert_eq!(begun(WriteOptions { begun_bytes_max: 5 << 20, ..WriteOptions::default() }), 5 << 20);
    }
}
