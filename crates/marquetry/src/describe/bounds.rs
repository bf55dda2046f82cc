//! What a file's statistics tell of a column's values, over all row groups, and how bounds are shown.

use std::cmp::Ordering;

use marquetry_base::print::{bytes as hex, printable, without_zeros};
use marquetry_parquet::batch::Value;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::print::{Shown, value};
use marquetry_parquet::prune::{Bound, Known, LeafOrder, Order};
use marquetry_parquet::schema::{Leaf, Meaning, PhysicalType, Schema};

/// Characters of a text, and bytes of a binary value, that are shown of a bound.
const SHOWN_CHARS_MAX: usize = 32;
const SHOWN_BYTES_MAX: usize = 16;

/// What the statistics of a leaf say, and how that is shown.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ColumnStatistics {
    /// Which of them hold.
    pub order: LeafOrder,
    text: ValueText,
}

/// How values of a leaf are shown.
#[derive(Debug, Clone, Copy)]
pub struct ValueText {
    physical_type: PhysicalType,
    meaning: Meaning,
}

impl ColumnStatistics {
    /// Those of a leaf. `None` if the file lacks it.
    pub fn of(metadata: &FileMetaData, leaf_index: usize, leaf: &Leaf) -> Option<ColumnStatistics> {
        Some(ColumnStatistics {
            order: LeafOrder::of(metadata, leaf_index)?,
            text: ValueText::of(&metadata.schema, leaf),
        })
    }

    /// Of a column over all row groups. What one row group does not tell is not known; distinct values cannot be added up.
    pub fn of_column<'a>(&self, metadata: &'a FileMetaData, leaf_index: usize) -> Known<'a> {
        let mut chunks = metadata.row_groups.iter().filter_map(|group| group.columns.get(leaf_index));
        let Some(first) = chunks.next() else { return Known::default() };
        let mut known = self.order.of_chunk(first);
        for chunk in chunks {
            known = join(self.order.order(), known, self.order.of_chunk(chunk));
        }
        known
    }

    /// For people: see [`ValueText::short`].
    pub fn text(&self, bound: Option<Bound<'_>>) -> Option<String> {
        self.text.short(bound?)
    }

    /// The whole value, for programs: see [`ValueText::exact`].
    pub fn exact_text(&self, bound: Option<Bound<'_>>) -> Option<String> {
        self.text.exact(bound?.value)
    }
}

impl ValueText {
    /// Of a leaf of a schema.
    pub fn of(schema: &Schema, leaf: &Leaf) -> ValueText {
        let physical_type = leaf.physical_type;
        ValueText { physical_type, meaning: schema.meaning_of(leaf).read_as(physical_type) }
    }

    /// For people: text in quotes, long values cut, and an ellipsis after what was cut here or by the writer. `None` for bytes that are
    /// no value.
    pub fn short(&self, bound: Bound<'_>) -> Option<String> {
        let mut out = Vec::new();
        let mut cut_by_writer = if bound.is_exact == Some(false) { "…" } else { "" };
        let binary = |bytes: &[u8], cut_by_writer| {
            let mut out = Vec::new();
            hex(&mut out, &bytes[..bytes.len().min(SHOWN_BYTES_MAX)]);
            let cut = if bytes.len() > SHOWN_BYTES_MAX { "…" } else { cut_by_writer };
            format!("{}{cut}", String::from_utf8_lossy(&out))
        };
        let raw = Value::of_bound(self.physical_type, bound.value)?;
        if let (Meaning::Bytes | Meaning::Bson | Meaning::Null, Value::Bytes(bytes)) = (self.meaning, raw) {
            return Some(binary(bytes, cut_by_writer));
        }
        Some(match value(&mut out, self.meaning, raw) {
            Shown::Text(text) => {
                let mut kept: String = text.chars().take(SHOWN_CHARS_MAX).collect();
                if kept.len() < text.len() {
                    cut_by_writer = "";
                    kept.push('…');
                }
                format!("\"{}{cut_by_writer}\"", printable(&kept.replace('\\', "\\\\").replace('"', "\\\"")))
            }
            Shown::NotText(bytes) => binary(bytes, cut_by_writer),
            Shown::Boolean | Shown::Number | Shown::Word | Shown::Wkt => {
                let text = String::from_utf8_lossy(&out);
                // A zero that reaches to the other one is a zero to people.
                let is_zero = bound.is_exact == Some(false) && text.trim_matches(['-', '0', '.']).is_empty();
                match text.strip_prefix('-') {
                    Some(zero) if is_zero => zero.to_string(),
                    _ if self.meaning.is_time() => without_zeros(&text),
                    _ => text.into_owned(),
                }
            }
        })
    }

    /// The whole value, PLAIN-encoded, for programs; bytes that are not UTF-8 in hexadecimal. `None` for bytes that are no value.
    pub fn exact(&self, plain: &[u8]) -> Option<String> {
        let mut out = Vec::new();
        let raw = Value::of_bound(self.physical_type, plain)?;
        Some(match value(&mut out, self.meaning, raw) {
            Shown::Text(text) => text.to_string(),
            Shown::NotText(bytes) => {
                hex(&mut out, bytes);
                String::from_utf8_lossy(&out).into_owned()
            }
            Shown::Boolean | Shown::Number | Shown::Word | Shown::Wkt => {
                String::from_utf8_lossy(&out).into_owned()
            }
        })
    }
}

/// What is known of two parts together.
fn join<'a>(order: Option<Order>, left: Known<'a>, right: Known<'a>) -> Known<'a> {
    let add = |left: Option<u64>, right: Option<u64>| left?.checked_add(right?);
    let (min, max) = match (is_without_bounds(&left), is_without_bounds(&right)) {
        // Of nothing but nulls and NaNs there are no bounds to have.
        (true, _) => (right.min, right.max),
        (_, true) => (left.min, left.max),
        _ => (
            farther(order, left.min, right.min, Ordering::Less),
            farther(order, left.max, right.max, Ordering::Greater),
        ),
    };
    Known {
        min,
        max,
        values: add(left.values, right.values),
        nulls: add(left.nulls, right.nulls),
        nans: add(left.nans, right.nans),
        distinct: None,
        is_only_nulls: is_without_bounds(&left)
            && is_without_bounds(&right)
            && !left.is_only_nans
            && !right.is_only_nans,
        is_only_nans: is_without_bounds(&left)
            && is_without_bounds(&right)
            && (left.is_only_nans || right.is_only_nans),
    }
}

fn is_without_bounds(known: &Known<'_>) -> bool {
    known.is_only_nulls || known.is_only_nans || known.values == Some(0)
}

/// The bound that lies further to a side; none where one is not known.
fn farther<'a>(
    order: Option<Order>,
    left: Option<Bound<'a>>,
    right: Option<Bound<'a>>,
    side: Ordering,
) -> Option<Bound<'a>> {
    let (left, right) = left.zip(right)?;
    let compared = order?.compare(right.value, left.value)?;
    Some(if compared == side { right } else { left })
}
