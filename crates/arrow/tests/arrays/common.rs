//! What the tests share.

use std::sync::Arc;

use marquetry_base::{Bytes, Limits, Object, Result};
use marquetry_io::{ByteSources, drive, memory::Memory};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::FooterReader;

/// The object number of a test's only file.
pub(crate) const FILE: Object = Object(0);

/// The footer of a file in memory.
pub(crate) fn footer(file: &Bytes) -> Result<Arc<FileMetaData>> {
    let sources = ByteSources::new().with(FILE, Memory::new("file", file.clone()));
    Ok(drive(&mut FooterReader::new(FILE, Limits::DEFAULT), &sources)?.expect("a footer"))
}
