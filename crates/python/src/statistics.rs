//! What the values of columns are like.

use marquetry::describe::ValueText;
use marquetry::schema::Schema;
use marquetry::tables::{ColumnStats, Distinct, LeafStats, PlainValue};
use pyo3::prelude::*;

/// What the values of a column are like, or of one that is nested. Values are texts, as `show --column-stats --json` has them.
#[pyclass(frozen, get_all, module = "marquetry")]
pub(crate) struct ColumnStatistics {
    /// The column, with dots.
    path: String,
    /// Values, without nulls.
    values: u64,
    nulls: u64,
    nans: u64,
    /// Values that are different: exactly, or about as many.
    distinct: u64,
    is_distinct_exact: bool,
    min: Option<String>,
    /// Whether it is the beginning of a longer value.
    is_min_cut: bool,
    max: Option<String>,
    is_max_cut: bool,
    /// Of texts and blobs: the bytes of a value.
    bytes_mean: Option<f64>,
    bytes_max: Option<u64>,
    /// The most frequent values, each with how often it is there at least and at most.
    frequent: Vec<(Option<String>, u64, u64)>,
}

impl ColumnStatistics {
    /// Those of all leaves of a schema.
    pub(crate) fn all(schema: &Schema, found: &ColumnStats) -> Vec<ColumnStatistics> {
        let leaves = schema.leaves().iter().enumerate().zip(&found.leaves);
        leaves
            .map(|((at, leaf), of)| {
                ColumnStatistics::of(schema.leaf_path(at), &ValueText::of(schema, leaf), of)
            })
            .collect()
    }

    fn of(path: String, text: &ValueText, of: &LeafStats) -> ColumnStatistics {
        let exact = |value: &PlainValue| text.exact(&value.bytes);
        let is_cut = |value: &Option<PlainValue>| value.as_ref().is_some_and(|value| value.is_cut);
        let frequent = of.frequent.iter().map(|it| (exact(&it.value), it.at_least, it.at_most));
        ColumnStatistics {
            path,
            values: of.values(),
            nulls: of.nulls,
            nans: of.nans,
            distinct: of.distinct.get(),
            is_distinct_exact: matches!(of.distinct, Distinct::Exactly(_)),
            min: of.min.as_ref().and_then(exact),
            is_min_cut: is_cut(&of.min),
            max: of.max.as_ref().and_then(exact),
            is_max_cut: is_cut(&of.max),
            bytes_mean: of.bytes_mean(),
            bytes_max: of.bytes.map(|(_, most)| most),
            frequent: frequent.collect(),
        }
    }
}

#[pymethods]
impl ColumnStatistics {
    fn __repr__(&self) -> String {
        let ColumnStatistics { path, values, nulls, distinct, .. } = self;
        let about = if self.is_distinct_exact { "" } else { "about " };
        format!(
            "<marquetry.ColumnStatistics: {path}, {values} values, {nulls} nulls, {about}{distinct} distinct>"
        )
    }
}
