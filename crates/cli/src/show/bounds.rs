//! Which bounds of a file's statistics can be trusted, and what they are over all row groups.
//!
//! Source: `ColumnOrder` and `Statistics` of parquet.thrift.

use std::cmp::Ordering;

use marquetry_parquet::format::{ColumnChunk, ColumnOrder, FileMetaData, Statistics};
use marquetry_parquet::schema::{Leaf, LogicalType, PhysicalType};

use crate::calendar::without_zeros;
use crate::table::printable;
use crate::value::{Meaning, Raw, Shown, hex};

/// Characters of a text, and bytes of a binary value, that are shown of a bound.
const SHOWN_CHARS_MAX: usize = 32;
const SHOWN_BYTES_MAX: usize = 16;

/// One side of a column's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound<'a> {
    raw: Raw<'a>,
    /// False for a bound that the writer cut short.
    is_exact: bool,
}

/// What the statistics tell of a column.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    pub(crate) nulls: Option<u64>,
    pub(crate) min: Option<Bound<'a>>,
    pub(crate) max: Option<Bound<'a>>,
}

/// Of a column over all row groups. What one row group does not tell is not known.
pub(crate) fn of_column<'a>(metadata: &'a FileMetaData, leaf_index: usize, leaf: &Leaf) -> Known<'a> {
    let meaning = Meaning::of(&metadata.schema, leaf);
    let mut known = Known { nulls: Some(0), min: None, max: None };
    let (mut min_known, mut max_known) = (true, true);
    for chunk in metadata.row_groups.iter().filter_map(|group| group.columns.get(leaf_index)) {
        let nulls = nulls_of(chunk, leaf);
        known.nulls = known.nulls.zip(nulls).and_then(|(sum, more)| sum.checked_add(more));
        if nulls == Some(chunk.values) {
            continue; // Only nulls: there are no bounds to have.
        }
        let (min, max) = of_chunk(metadata, leaf_index, leaf, chunk);
        min_known &= widen(&mut known.min, min, meaning, Ordering::Less);
        max_known &= widen(&mut known.max, max, meaning, Ordering::Greater);
    }
    Known { min: known.min.filter(|_| min_known), max: known.max.filter(|_| max_known), ..known }
}

/// Nulls of a chunk: those of a required column are none, whoever did not say so.
fn nulls_of(chunk: &ColumnChunk, leaf: &Leaf) -> Option<u64> {
    if leaf.definition_max == 0 { Some(0) } else { chunk.statistics.as_ref()?.null_count }
}

/// Takes `next` if it lies further to the side. False if the result is not known.
fn widen<'a>(
    have: &mut Option<Bound<'a>>,
    next: Option<Bound<'a>>,
    meaning: Meaning,
    side: Ordering,
) -> bool {
    let Some(next) = next else { return false };
    match have {
        None => *have = Some(next),
        Some(known) => match meaning.compare(next.raw, known.raw) {
            Some(order) if order == side => *have = Some(next),
            Some(_) => {}
            None => return false,
        },
    }
    true
}

/// The bounds of a chunk that can be trusted.
pub(crate) fn of_chunk<'a>(
    metadata: &FileMetaData,
    leaf_index: usize,
    leaf: &Leaf,
    chunk: &'a ColumnChunk,
) -> (Option<Bound<'a>>, Option<Bound<'a>>) {
    match &chunk.statistics {
        Some(statistics) => of_statistics(metadata, leaf_index, leaf, statistics),
        None => (None, None),
    }
}

pub(crate) fn of_statistics<'a>(
    metadata: &FileMetaData,
    leaf_index: usize,
    leaf: &Leaf,
    statistics: &'a Statistics,
) -> (Option<Bound<'a>>, Option<Bound<'a>>) {
    let meaning = Meaning::of(&metadata.schema, leaf);
    let bound = |bytes: &'a Option<Vec<u8>>, is_exact: Option<bool>| {
        let raw = Raw::of_bound(leaf.physical_type, bytes.as_deref()?)?;
        // A bound that is not even equal to itself (NaN) says nothing.
        meaning.compare(raw, raw).map(|_| Bound { raw, is_exact: is_exact.unwrap_or(true) })
    };
    let order = metadata.column_orders.get(leaf_index);
    if is_order_known(metadata, leaf, order)
        && (statistics.min_value.is_some() || statistics.max_value.is_some())
    {
        return (
            bound(&statistics.min_value, statistics.is_min_value_exact),
            bound(&statistics.max_value, statistics.is_max_value_exact),
        );
    }
    // The deprecated bounds were made by signed comparison of whatever the type was. Equal ones are right in any order.
    let is_signed = matches!(
        leaf.physical_type,
        PhysicalType::Boolean
            | PhysicalType::Int32
            | PhysicalType::Int64
            | PhysicalType::Float
            | PhysicalType::Double
    ) && meaning != Meaning::Unsigned;
    let are_equal =
        statistics.deprecated_min.is_some() && statistics.deprecated_min == statistics.deprecated_max;
    if is_signed || are_equal {
        return (bound(&statistics.deprecated_min, None), bound(&statistics.deprecated_max, None));
    }
    (None, None)
}

/// Whether the order of `min_value` and `max_value` is known. Without a column order it is undefined, and so it is for some
/// types.
fn is_order_known(metadata: &FileMetaData, leaf: &Leaf, order: Option<&ColumnOrder>) -> bool {
    let is_type_defined = match &metadata.schema.node_of(leaf).logical_type {
        Some(
            LogicalType::Interval
            | LogicalType::Geometry { .. }
            | LogicalType::Geography { .. }
            | LogicalType::Unknown
            | LogicalType::Unrecognised(_),
        ) => false,
        _ => leaf.physical_type != PhysicalType::Int96,
    };
    match order {
        Some(ColumnOrder::TypeDefined | ColumnOrder::Ieee754Total) => is_type_defined,
        Some(ColumnOrder::Int96Timestamp) => leaf.physical_type == PhysicalType::Int96,
        Some(ColumnOrder::Unknown(_)) | None => false,
    }
}

impl Bound<'_> {
    /// For people: text in quotes, long values cut, and an ellipsis after what was cut here or by the writer.
    pub(crate) fn to_text(self, meaning: Meaning) -> String {
        let mut out = Vec::new();
        let mut cut_by_writer = if self.is_exact { "" } else { "…" };
        let binary = |bytes: &[u8], cut_by_writer| {
            let mut out = Vec::new();
            hex(&mut out, &bytes[..bytes.len().min(SHOWN_BYTES_MAX)]);
            let cut = if bytes.len() > SHOWN_BYTES_MAX { "…" } else { cut_by_writer };
            format!("{}{cut}", String::from_utf8_lossy(&out))
        };
        if let (Meaning::Plain, Raw::Bytes(bytes)) = (meaning, self.raw) {
            return binary(bytes, cut_by_writer);
        }
        match meaning.show(self.raw, &mut out) {
            Shown::Text(text) => {
                let mut kept: String = text.chars().take(SHOWN_CHARS_MAX).collect();
                if kept.len() < text.len() {
                    cut_by_writer = "";
                    kept.push('…');
                }
                format!("\"{}{cut_by_writer}\"", printable(&kept.replace('\\', "\\\\").replace('"', "\\\"")))
            }
            Shown::NotText(bytes) => binary(bytes, cut_by_writer),
            Shown::Boolean | Shown::Number | Shown::Word => {
                let text = String::from_utf8_lossy(&out);
                if meaning.is_time() { without_zeros(&text) } else { format!("{text}{cut_by_writer}") }
            }
        }
    }

    /// The whole value, for programs; bytes that are not UTF-8 in hexadecimal.
    pub(crate) fn to_exact_text(self, meaning: Meaning) -> String {
        let mut out = Vec::new();
        match meaning.show(self.raw, &mut out) {
            Shown::Text(text) => text.to_string(),
            Shown::NotText(bytes) => {
                hex(&mut out, bytes);
                String::from_utf8_lossy(&out).into_owned()
            }
            Shown::Boolean | Shown::Number | Shown::Word => String::from_utf8_lossy(&out).into_owned(),
        }
    }
}
