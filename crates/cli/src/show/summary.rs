//! Many files at a glance: what they have in common, where they differ, and which are odd.

use std::fmt::Write;

use serde::Serialize;

use marquetry::base::Error;
use marquetry::describe::{NodeJson, schema_json};
use marquetry::parquet::schema::{Difference, DifferenceKind, NodeKind, Schema};

use super::{json, text};
use crate::failure::{Failure, Outcome};
use crate::numbers::{plural, ratio, size, thousands};
use crate::table::{Side, Table, printable};
use crate::terminal::Terminal;
use marquetry::tables::files::{Survey, SurveyedFile, Tally};

/// Differences that are listed.
const DIFFERENCES_SHOWN: usize = 100;

/// Schemas, and writers, that are listed.
const VARIANTS_SHOWN: usize = 20;

pub(super) fn print(survey: &Survey, terminal: Terminal, out: &mut Vec<u8>) {
    heading(survey, terminal, out);
    if let Some(unified) = &survey.unified {
        text::section("Schema", terminal, out);
        text::schema(&unified.schema, terminal, out);
        if survey.schemas.len() > 1 {
            text::section("Schemas", terminal, out);
            variants(survey, terminal, out);
        }
        if !unified.differences.is_empty() {
            text::section("Differences", terminal, out);
            differences(survey, out);
        }
    }
    text::section("Files", terminal, out);
    files(survey, terminal, out);
}

fn heading(survey: &Survey, terminal: Terminal, out: &mut Vec<u8>) {
    let mut text = terminal.bold(&plural(survey.files, "file"));
    text.push('\n');
    let mut fact = |name: &str, value: String| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "  {name:<11} {value}");
    };
    let is_text = survey.writers.counts.is_empty();
    if is_text || survey.formats.counts.len() > 1 {
        fact("format", tallied(&survey.formats, "", "file").join(", "));
    }
    if !is_text {
        fact("rows", format!("{} in {}", thousands(survey.rows), plural(survey.row_groups, "row group")));
    }
    if survey.uncounted > 0 {
        let (name, what) = if is_text { ("rows", "not counted") } else { ("", "those of text not counted") };
        fact(name, format!("{what} ({})", plural(survey.uncounted, "text file")));
    }
    fact("size", text::size_exact(survey.bytes));
    if survey.compressed_bytes > 0 {
        let (compressed, uncompressed) = (survey.compressed_bytes, survey.uncompressed_bytes);
        let ratio = ratio(uncompressed, compressed);
        fact("data", format!("{}, uncompressed {} (ratio {ratio})", size(compressed), size(uncompressed)));
    }
    fact(
        "schemas",
        match survey.schemas.len() {
            1 => "1, the same in all files".to_string(),
            schemas => format!("{}, joined by name", thousands(marquetry::base::cast::u64_of(schemas))),
        },
    );
    if survey.files_of_other_schemas > 0 {
        fact(
            "",
            format!("and those of {}, which are not joined", plural(survey.files_of_other_schemas, "file")),
        );
    }
    for (column, values) in &survey.partitions {
        let kind = match &column.logical_type {
            Some(logical) => format!("{} {logical}", column.physical_type),
            None => column.physical_type.to_string(),
        };
        let known = plural(*values, "value");
        fact("partition", format!("{} ({kind}, {known})", printable(&column.name)));
    }
    for (number, writer) in tallied(&survey.writers, "(not told)", "file").into_iter().enumerate() {
        fact(if number == 0 { "written by" } else { "" }, writer);
    }
    if !is_text {
        fact("codecs", tallied(&survey.codecs, "", "column chunk").join(", "));
    }
    let indexes = [("page index", survey.with_page_index), ("Bloom filters", survey.with_bloom_filters)];
    let indexes: Vec<String> = indexes
        .iter()
        .filter(|(_, files)| *files > 0)
        .map(|(what, files)| format!("{what} in {}", plural(*files, "file")))
        .collect();
    if !indexes.is_empty() {
        fact("indexes", indexes.join(", "));
    }
    for (name, file) in [("smallest", &survey.smallest), ("largest", &survey.largest)] {
        if let Some(file) = file.as_ref().filter(|_| survey.files > 1) {
            let facts = file.bytes.map(size).into_iter().chain(file.rows.map(|rows| plural(rows, "row")));
            let facts = facts.collect::<Vec<_>>().join(", ");
            fact(name, format!("{facts}: {}", printable(&file.name)));
        }
    }
    if let Some(first) = &survey.empty_first {
        fact("no rows", format!("{}, the first is {}", plural(survey.empty, "file"), printable(first)));
    }
    if survey.broken > 0 {
        fact("not read", plural(survey.broken, "file"));
    }
    out.extend_from_slice(text.as_bytes());
}

/// Names with their counts, the most frequent first.
fn tallied(tally: &Tally, unnamed: &str, of: &str) -> Vec<String> {
    let mut counts: Vec<&(String, u64)> = tally.counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut all: Vec<String> = Vec::new();
    for (name, number) in counts.iter().take(VARIANTS_SHOWN) {
        let name = if name.is_empty() { unnamed.to_string() } else { printable(name) };
        all.push(format!("{name} ({})", plural(*number, of)));
    }
    let rest = counts.iter().skip(VARIANTS_SHOWN).map(|(_, number)| number);
    let rest = rest.fold(tally.others, |sum, number| sum.saturating_add(*number));
    if rest > 0 {
        all.push(format!("others ({})", plural(rest, of)));
    }
    all
}

/// The schemas, the most frequent first.
fn variants(survey: &Survey, terminal: Terminal, out: &mut Vec<u8>) {
    let titles = [("files", Side::Right), ("columns", Side::Right), ("first file", Side::Left)];
    let mut table = Table::new(titles).indented(2);
    let mut schemas: Vec<_> = survey.schemas.iter().collect();
    schemas.sort_by_key(|schema| std::cmp::Reverse(schema.files));
    for schema in schemas.iter().take(VARIANTS_SHOWN) {
        let columns = marquetry::base::cast::u64_of(schema.schema.leaves().len());
        table.push(vec![thousands(schema.files), thousands(columns), printable(&schema.first)]);
    }
    text::print_table(&table, terminal, out);
    more(schemas.len(), VARIANTS_SHOWN, out);
}

fn more(all: usize, shown: usize, out: &mut Vec<u8>) {
    if let Some(more) = all.checked_sub(shown).filter(|more| *more > 0) {
        let more = thousands(marquetry::base::cast::u64_of(more));
        out.extend_from_slice(format!("  … {more} more\n").as_bytes());
    }
}

/// What a difference is, in a few words.
fn described(survey: &Survey, difference: &Difference) -> String {
    let name = |source: &usize| printable(survey.name_of(*source));
    match &difference.kind {
        DifferenceKind::Missing { with, without } => {
            format!("in {}, but not in {}", name(with), name(without))
        }
        DifferenceKind::Widened { one: (first, one), other: (second, other) } => {
            format!("{one} in {}, {other} in {}: widened", name(first), name(second))
        }
        DifferenceKind::Clash { one: (first, one), other: (second, other) } => {
            // Text that is read as one table has types that are inferred from all of it.
            let is_text = survey.writers.counts.is_empty();
            let what = if is_text { "inferred together as one table" } else { "no type holds both" };
            format!("{one} in {}, {other} in {}: {what}", name(first), name(second))
        }
        DifferenceKind::Twice { source } => format!("twice in {}", name(source)),
        DifferenceKind::Broken { source, error } => {
            format!("{} in {}", printable(error.message()), name(source))
        }
    }
}

fn differences(survey: &Survey, out: &mut Vec<u8>) {
    let Some(unified) = &survey.unified else { return };
    for difference in unified.differences.iter().take(DIFFERENCES_SHOWN) {
        let path = printable(&path(&unified.schema, difference.node));
        out.extend_from_slice(format!("  {path}  {}\n", described(survey, difference)).as_bytes());
    }
    more(unified.differences.len(), DIFFERENCES_SHOWN, out);
}

fn path(schema: &Schema, node: usize) -> String {
    match schema.nodes()[node].kind {
        NodeKind::Leaf { leaf } => schema.leaf_path(leaf),
        NodeKind::Group { .. } => schema.path(node),
    }
}

fn files(survey: &Survey, terminal: Terminal, out: &mut Vec<u8>) {
    let mut table = Table::new([
        ("file", Side::Left),
        ("rows", Side::Right),
        ("row groups", Side::Right),
        ("size", Side::Right),
    ])
    .indented(2);
    for file in &survey.first {
        table.push(vec![
            printable(&file.name),
            file.rows.map(thousands).unwrap_or_default(),
            file.row_groups.map(|groups| groups.to_string()).unwrap_or_default(),
            file.bytes.map(size).unwrap_or_default(),
        ]);
    }
    text::print_table(&table, terminal, out);
    let shown = marquetry::base::cast::u64_of(survey.first.len());
    if let Some(more) = survey.files.checked_sub(shown).filter(|more| *more > 0) {
        out.extend_from_slice(
            format!("  … {} more; --json without --summary lists them all\n", thousands(more)).as_bytes(),
        );
    }
}

/// The same for programs.
pub(super) fn print_json(survey: &Survey, faults: &[Error], out: &mut Vec<u8>) -> Outcome {
    let error = |error: &Error| json::ErrorJson {
        file: error.place().object.clone().unwrap_or_default(),
        error: Failure::from(error.clone()).said().unwrap_or_default(),
    };
    json::write(&SummaryJson::of(survey, faults.iter().map(error).collect()), out)
}

#[derive(Serialize)]
struct SummaryJson<'a> {
    files: u64,
    /// Files by format.
    formats: Vec<CountJson<'a>>,
    rows: u64,
    /// Files of text, whose rows are not counted.
    files_not_counted: u64,
    bytes: u64,
    row_groups: u64,
    column_chunks: u64,
    compressed_bytes: u64,
    uncompressed_bytes: u64,
    footer_bytes: u64,
    /// Files by writer; `null` is that of files that name none.
    writers: Vec<CountJson<'a>>,
    other_writers: u64,
    /// Column chunks by codec.
    codecs: Vec<CountJson<'a>>,
    schema: Option<Vec<NodeJson<'a>>>,
    schemas: Vec<VariantJson<'a>>,
    files_of_other_schemas: u64,
    differences: Vec<DifferenceJson>,
    partitions: Vec<PartitionJson<'a>>,
    smallest: Option<SurveyedJson<'a>>,
    largest: Option<SurveyedJson<'a>>,
    files_without_rows: u64,
    first_without_rows: Option<&'a str>,
    files_with_page_index: u64,
    files_with_bloom_filters: u64,
    files_not_read: u64,
    /// What is wrong with the first files that are not read, or cannot be joined.
    errors: Vec<json::ErrorJson>,
}

#[derive(Serialize)]
struct CountJson<'a> {
    name: Option<&'a str>,
    count: u64,
}

#[derive(Serialize)]
struct VariantJson<'a> {
    files: u64,
    columns: usize,
    first_file: &'a str,
}

#[derive(Serialize)]
struct DifferenceJson {
    path: String,
    what: String,
}

#[derive(Serialize)]
struct PartitionJson<'a> {
    name: &'a str,
    physical_type: String,
    logical_type: Option<String>,
    values: u64,
}

#[derive(Serialize)]
struct SurveyedJson<'a> {
    file: &'a str,
    rows: Option<u64>,
    bytes: Option<u64>,
    row_groups: Option<u64>,
}

impl<'a> SummaryJson<'a> {
    fn of(survey: &'a Survey, errors: Vec<json::ErrorJson>) -> SummaryJson<'a> {
        let unified = survey.unified.as_ref();
        let difference = |schema: &Schema, it: &Difference| DifferenceJson {
            path: path(schema, it.node),
            what: described(survey, it),
        };
        SummaryJson {
            files: survey.files,
            formats: counts(&survey.formats),
            rows: survey.rows,
            files_not_counted: survey.uncounted,
            bytes: survey.bytes,
            row_groups: survey.row_groups,
            column_chunks: survey.column_chunks,
            compressed_bytes: survey.compressed_bytes,
            uncompressed_bytes: survey.uncompressed_bytes,
            footer_bytes: survey.footer_bytes,
            writers: counts(&survey.writers),
            other_writers: survey.writers.others,
            codecs: counts(&survey.codecs),
            schema: unified.map(|unified| schema_json(&unified.schema)),
            schemas: survey
                .schemas
                .iter()
                .map(|it| VariantJson {
                    files: it.files,
                    columns: it.schema.leaves().len(),
                    first_file: &it.first,
                })
                .collect(),
            files_of_other_schemas: survey.files_of_other_schemas,
            differences: unified.map_or_else(Vec::new, |unified| {
                unified.differences.iter().map(|it| difference(&unified.schema, it)).collect()
            }),
            partitions: survey
                .partitions
                .iter()
                .map(|(column, values)| PartitionJson {
                    name: &column.name,
                    physical_type: column.physical_type.to_string(),
                    logical_type: column.logical_type.as_ref().map(ToString::to_string),
                    values: *values,
                })
                .collect(),
            smallest: survey.smallest.as_ref().map(SurveyedJson::of),
            largest: survey.largest.as_ref().map(SurveyedJson::of),
            files_without_rows: survey.empty,
            first_without_rows: survey.empty_first.as_deref(),
            files_with_page_index: survey.with_page_index,
            files_with_bloom_filters: survey.with_bloom_filters,
            files_not_read: survey.broken,
            errors,
        }
    }
}

fn counts(tally: &Tally) -> Vec<CountJson<'_>> {
    tally
        .counts
        .iter()
        .map(|(name, count)| CountJson { name: Some(&**name).filter(|name| !name.is_empty()), count: *count })
        .collect()
}

impl<'a> SurveyedJson<'a> {
    fn of(file: &'a SurveyedFile) -> SurveyedJson<'a> {
        SurveyedJson { file: &file.name, rows: file.rows, bytes: file.bytes, row_groups: file.row_groups }
    }
}
