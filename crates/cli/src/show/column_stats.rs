//! What the values of columns are like.

use serde::Serialize;

use marquetry::describe::ValueText;
use marquetry::parquet::prune::Bound;
use marquetry::tables::{ColumnStats, Distinct, FrequentValue, PlainValue, Table as SourceTable};

use super::json;
use super::pages::ABSENT;
use super::text::print_table;
use crate::failure::Outcome;
use crate::numbers::{plural, size, thousands};
use crate::table::{Side, Table, printable};
use crate::terminal::Terminal;

/// Frequent values that are named for people.
const FREQUENT_SHOWN: usize = 3;

/// Prints a table's columns, a line each.
pub(super) fn print(table: &SourceTable, stats: &ColumnStats, terminal: Terminal, out: &mut Vec<u8>) {
    let title = format!("{}: {}", table.name, plural(stats.rows, "row"));
    out.extend_from_slice(format!("{}\n", terminal.bold(&printable(&title))).as_bytes());
    let has_nans = stats.leaves.iter().any(|leaf| leaf.nans > 0);
    let has_bytes = stats.leaves.iter().any(|leaf| leaf.bytes.is_some());
    let mut titles = vec![("column", Side::Left), ("values", Side::Right), ("nulls", Side::Right)];
    titles.extend(has_nans.then_some(("NaNs", Side::Right)));
    titles.push(("distinct", Side::Right));
    titles.extend(has_bytes.then_some(("mean size", Side::Right)));
    titles.extend([("min", Side::Left), ("max", Side::Left), ("most frequent", Side::Left)]);
    let mut lines = Table::new(titles);
    let schema = &table.schema;
    for ((at, leaf), of) in schema.leaves().iter().enumerate().zip(&stats.leaves) {
        let text = ValueText::of(schema, leaf);
        let bound = |value: &Option<PlainValue>| value.as_ref().and_then(|value| short(&text, value));
        let absent = || ABSENT.to_string();
        let mut cells = vec![printable(&schema.leaf_path(at)), thousands(of.values()), thousands(of.nulls)];
        cells.extend(has_nans.then(|| thousands(of.nans)));
        cells.push(match of.distinct {
            Distinct::Exactly(count) => thousands(count),
            Distinct::About(count) => format!("~{}", thousands(rounded(count))),
        });
        let mean = of.bytes.and_then(|(bytes, _)| bytes.checked_div(of.values()));
        cells.extend(has_bytes.then(|| mean.map_or_else(absent, size)));
        cells.extend([bound(&of.min).unwrap_or_else(absent), bound(&of.max).unwrap_or_else(absent)]);
        let frequent = of.frequent.iter().take(FREQUENT_SHOWN).filter_map(|value| {
            let share = 100.0 * ratio(value.at_least, of.values());
            Some(format!("{} {share:.0}%", short(&text, &value.value)?))
        });
        let frequent: Vec<String> = frequent.collect();
        cells.push(if frequent.is_empty() { absent() } else { frequent.join(", ") });
        lines.push(cells);
    }
    print_table(&lines, terminal, out);
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
fn ratio(part: u64, all: u64) -> f64 {
    part as f64 / all as f64
}

/// An estimate with as many digits as it has.
fn rounded(count: u64) -> u64 {
    let mut unit = 1;
    while count / unit >= 1000 {
        unit *= 10;
    }
    (count / unit + u64::from(count % unit * 2 >= unit && unit > 1)) * unit
}

fn short(text: &ValueText, value: &PlainValue) -> Option<String> {
    text.short(Bound { value: &value.bytes, is_exact: Some(!value.is_cut) })
}

pub(super) fn print_json(table: &SourceTable, stats: &ColumnStats, out: &mut Vec<u8>) -> Outcome {
    let schema = &table.schema;
    let leaves = schema.leaves().iter().enumerate().zip(&stats.leaves);
    let columns = leaves.map(|((at, leaf), of)| {
        let text = ValueText::of(schema, leaf);
        let exact = |value: &Option<PlainValue>| value.as_ref().and_then(|value| text.exact(&value.bytes));
        let is_cut = |value: &Option<PlainValue>| value.as_ref().is_some_and(|value| value.is_cut);
        let frequent = |value: &FrequentValue| FrequentJson {
            value: text.exact(&value.value.bytes),
            is_cut: value.value.is_cut,
            at_least: value.at_least,
            at_most: value.at_most,
        };
        ColumnJson {
            path: schema.leaf_path(at),
            physical_type: leaf.physical_type.to_string(),
            values: of.values(),
            nulls: of.nulls,
            nans: of.nans,
            distinct: of.distinct.get(),
            is_distinct_exact: matches!(of.distinct, Distinct::Exactly(_)),
            min: exact(&of.min),
            is_min_cut: is_cut(&of.min),
            max: exact(&of.max),
            is_max_cut: is_cut(&of.max),
            bytes_mean: of.bytes_mean(),
            bytes_max: of.bytes.map(|(_, most)| most),
            frequent: of.frequent.iter().map(frequent).collect(),
        }
    });
    json::write(&StatsJson { table: &table.name, rows: stats.rows, columns: columns.collect() }, out)
}

#[derive(Serialize)]
struct StatsJson<'a> {
    table: &'a str,
    rows: u64,
    columns: Vec<ColumnJson>,
}

#[derive(Serialize)]
struct ColumnJson {
    path: String,
    physical_type: String,
    /// Without nulls.
    values: u64,
    nulls: u64,
    nans: u64,
    distinct: u64,
    is_distinct_exact: bool,
    min: Option<String>,
    is_min_cut: bool,
    max: Option<String>,
    is_max_cut: bool,
    /// Of BYTE_ARRAY.
    bytes_mean: Option<f64>,
    bytes_max: Option<u64>,
    frequent: Vec<FrequentJson>,
}

#[derive(Serialize)]
struct FrequentJson {
    value: Option<String>,
    is_cut: bool,
    at_least: u64,
    at_most: u64,
}
