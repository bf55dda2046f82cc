//! Delimited text: CSV and TSV.

mod column;
mod naming;
mod rows;
mod sample;
mod scan;
mod style;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub(super) use naming::NAME_PRICE;
pub(super) use rows::Rows;
pub(super) use sample::{Sample, Sampler};

use crate::Scalar;
use scan::{Dialect, Field};
use style::{Rewrite, Style};

/// Some programs begin UTF-8 texts with this mark.
pub(super) const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// How a text is a table.
#[derive(Debug)]
pub(super) struct Form {
    dialect: Dialect,
    has_header: bool,
    /// Fields of a row.
    fields: usize,
    columns: Vec<FormColumn>,
    /// The texts that mean null.
    nulls: Vec<Vec<u8>>,
    /// How values are written, if not as usual.
    style: Option<Style>,
}

/// A column.
#[derive(Debug)]
struct FormColumn {
    name: Arc<str>,
    scalar: Scalar,
    /// Its type was given, not inferred.
    is_given: bool,
    /// A text of numbers: empty quotes are null, as they are for numbers.
    is_of_numbers: bool,
    rewrite: Rewrite,
    /// Its place among the fields of a row.
    field: usize,
}

#[inline]
fn is_null(nulls: &[Vec<u8>], field: &Field<'_>) -> bool {
    match nulls {
        // The usual case; missing fields are empty, too.
        [only] if only.is_empty() => field.text.is_empty(),
        _ => field.is_missing || nulls.iter().any(|null| null == field.text),
    }
}
