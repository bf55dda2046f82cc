//! The machine that reads a footer.

use std::collections::BTreeMap;
use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_parquet::format::{FileMetaData, FooterColumns};
use marquetry_parquet::read::FooterReader;

use crate::abi::{marquetry_footer_options, marquetry_status};
use crate::arguments;
use crate::error::answer;
use crate::handles::{Kind, create, marquetry_error, marquetry_machine, marquetry_metadata};
use crate::machine::{FILE, Product, Work, make, with_machine};
use crate::text::Text;

/// What a handle of metadata leads to.
pub(crate) struct Metadata {
    pub(crate) file: Arc<FileMetaData>,
    /// The texts that were lent, by what they are.
    pub(crate) texts: BTreeMap<(u8, usize), Text>,
}

impl Kind for Metadata {
    type Handle = marquetry_metadata;
    const NUMBER: u64 = 3;
    const NAME: &'static str = "metadata";
}

impl Metadata {
    pub(crate) fn new(file: Arc<FileMetaData>) -> Metadata {
        Metadata { file, texts: BTreeMap::new() }
    }
}

/// The limits that options set.
pub(crate) fn limits(memory_bytes_max: u64) -> Limits {
    let mut limits = Limits::DEFAULT;
    if memory_bytes_max > 0 {
        limits.total_bytes = memory_bytes_max;
    }
    limits
}

/// Makes a machine that reads a file's footer. It wants the file's length first. Its product is the metadata: `marquetry_take_metadata`.
///
/// * `options`: in, borrowed; NULL: the defaults.
/// * `machine`: out, owned by the host.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_footer_new(
    options: *const marquetry_footer_options,
    machine: *mut *mut marquetry_machine,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    make(machine, error, || footer(options).map(Work::Footer))
}

fn footer(options: *const marquetry_footer_options) -> Result<FooterReader> {
    let options = arguments::options_or_default(options)?;
    let mut limits = limits(options.memory_bytes_max);
    if options.footer_bytes_max > 0 {
        limits.footer_bytes = options.footer_bytes_max;
    }
    if options.columns.is_null() && options.columns_count == 0 {
        return Ok(FooterReader::new(FILE, limits));
    }
    let columns = arguments::texts(options.columns, options.columns_count, "columns")?;
    Ok(FooterReader::of_columns(FILE, limits, FooterColumns::new(columns)))
}

/// Takes the metadata, after a footer's machine was `READY`.
///
/// * `machine`: in, borrowed.
/// * `metadata`: out, owned by the host.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_take_metadata(
    machine: *mut marquetry_machine,
    metadata: *mut *mut marquetry_metadata,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        let Some(Product::Metadata(found)) = &machine.product else {
            return Err(Error::misuse("there is no metadata to take"));
        };
        arguments::put_new(metadata, || create(Metadata::new(Arc::clone(&found.file))))?;
        machine.product = None;
        Ok(())
    });
    answer(done, error)
}
