//! JSON of what is shown, one value on a line.

use marquetry::describe::footer_json;
use marquetry::tables::files::ParquetFile;
use serde::Serialize;

use crate::failure::{Failure, Outcome};

pub(super) fn print(file: &ParquetFile, out: &mut Vec<u8>) -> Outcome {
    write(&footer_json(file), out)
}

/// One value on one line.
pub(super) fn write(value: &impl Serialize, out: &mut Vec<u8>) -> Outcome {
    crate::json::write(out, value)
        .map_err(|error| Failure::bug(format!("JSON could not be written: {error}")))?;
    out.push(b'\n');
    Ok(())
}

/// A file that cannot be shown, or not all of it.
#[derive(Serialize)]
pub(super) struct ErrorJson {
    pub(super) file: String,
    pub(super) error: String,
}

pub(super) fn error(file: String, error: String, out: &mut Vec<u8>) -> Outcome {
    write(&ErrorJson { file, error }, out)
}
