//! The pages of one column.

use serde::Serialize;

use marquetry_base::Limits;
use marquetry_parquet::format::{PageHeader, PageKind};
use marquetry_parquet::read::{PageInfo, PageScanner};

use super::bounds;
use super::json::{self, StatisticsJson};
use crate::failure::{Failure, Outcome};
use crate::input::ParquetFile;
use crate::numbers::{plural, thousands};
use crate::table::{Side, Table, printable};
use crate::terminal::Terminal;
use crate::value::Meaning;

/// Lists the pages, a line each.
pub(super) fn print(
    file: &ParquetFile,
    column: &str,
    as_json: bool,
    terminal: Terminal,
    out: &mut Vec<u8>,
) -> Outcome {
    let schema = &file.metadata.schema;
    let leaf_index = find_leaf(file, column)?;
    let mut table = Table::new([
        ("row group", Side::Right),
        ("page", Side::Right),
        ("offset", Side::Right),
        ("kind", Side::Left),
        ("values", Side::Right),
        ("nulls", Side::Right),
        ("rows", Side::Right),
        ("compressed", Side::Right),
        ("raw", Side::Right),
        ("crc", Side::Left),
        ("encoding", Side::Left),
    ]);
    let mut pages = 0;
    for row_group in 0..file.metadata.row_groups.len() {
        let scanner =
            PageScanner::new(ParquetFile::object(), &file.metadata, row_group, leaf_index, Limits::DEFAULT)
                .map_err(|error| file.failure(&error))?;
        file.run(scanner, |page| {
            pages += 1;
            if as_json {
                json::write(&PageJson::of(file, leaf_index, row_group, &page), out)
            } else {
                table.push(line(row_group, &page));
                Ok(())
            }
        })?;
    }
    if !as_json {
        let leaf = &schema.leaves()[leaf_index];
        let title = format!("{}, column {}: {}", file.name, leaf.path, plural(pages, "page"));
        out.extend_from_slice(format!("{}\n", terminal.bold(&printable(&title))).as_bytes());
        table.print(terminal, out);
    }
    Ok(())
}

/// The leaf of this path. A group has no pages, but those below it have.
fn find_leaf(file: &ParquetFile, column: &str) -> Outcome<usize> {
    let leaves = || file.metadata.schema.leaves().iter();
    let mut found = leaves().enumerate().filter(|(_, leaf)| leaf.path == column).map(|(index, _)| index);
    let wrong = |what: String| Err(Failure::usage(format!("{}: {what}", file.name)));
    match (found.next(), found.next()) {
        (Some(index), None) => Ok(index),
        (Some(_), Some(_)) => wrong(format!("two columns have the path {column:?}")),
        (None, _) => {
            let is_below = |path: &str| path.strip_prefix(column).is_some_and(|rest| rest.starts_with('.'));
            let below: Vec<&str> =
                leaves().map(|leaf| leaf.path.as_str()).filter(|path| is_below(path)).take(5).collect();
            let advice = match below.is_empty() {
                true => "`marquetry show` lists the paths".to_string(),
                false => format!("in that group are {}", below.join(", ")),
            };
            wrong(format!("there is no column {column:?} with pages; {advice}"))
        }
    }
}

/// What a page's header says, whatever its kind; what it does not say is absent.
struct Facts {
    kind: String,
    values: u32,
    nulls: Option<u64>,
    rows: Option<u32>,
    encoding: Option<String>,
}

impl Facts {
    fn of(header: &PageHeader) -> Facts {
        let values = header.values();
        match &header.kind {
            PageKind::Data(data) => Facts {
                kind: "data v1".to_string(),
                values,
                nulls: data.statistics.as_ref().and_then(|known| known.null_count),
                rows: None,
                encoding: Some(data.encoding.to_string()),
            },
            PageKind::DataV2(data) => Facts {
                kind: "data v2".to_string(),
                values,
                nulls: Some(u64::from(data.nulls)),
                rows: Some(data.rows),
                encoding: Some(data.encoding.to_string()),
            },
            PageKind::Dictionary(dictionary) => Facts {
                kind: "dictionary".to_string(),
                values,
                nulls: None,
                rows: None,
                encoding: Some(dictionary.encoding.to_string()),
            },
            PageKind::Other(number) => {
                Facts { kind: format!("type {number}"), values, nulls: None, rows: None, encoding: None }
            }
        }
    }
}

fn line(row_group: usize, page: &PageInfo) -> Vec<String> {
    let facts = Facts::of(&page.header);
    let absent = || "-".to_string();
    vec![
        row_group.to_string(),
        page.number.to_string(),
        thousands(page.offset),
        facts.kind,
        thousands(facts.values),
        facts.nulls.map_or_else(absent, thousands),
        facts.rows.map_or_else(absent, thousands),
        thousands(page.header.compressed_bytes),
        thousands(page.header.uncompressed_bytes),
        (if page.header.crc.is_some() { "yes" } else { "no" }).to_string(),
        facts.encoding.unwrap_or_else(absent),
    ]
}

#[derive(Serialize)]
struct PageJson<'a> {
    file: &'a str,
    path: &'a str,
    row_group: usize,
    page: u64,
    offset: u64,
    header_bytes: u32,
    kind: String,
    values: u32,
    nulls: Option<u64>,
    rows: Option<u32>,
    encoding: Option<String>,
    definition_level_encoding: Option<String>,
    repetition_level_encoding: Option<String>,
    definition_level_bytes: Option<u32>,
    repetition_level_bytes: Option<u32>,
    is_compressed: Option<bool>,
    compressed_bytes: u32,
    uncompressed_bytes: u32,
    crc: Option<u32>,
    statistics: Option<StatisticsJson>,
}

impl<'a> PageJson<'a> {
    fn of(file: &'a ParquetFile, leaf_index: usize, row_group: usize, page: &PageInfo) -> PageJson<'a> {
        let schema = &file.metadata.schema;
        let leaf = &schema.leaves()[leaf_index];
        let facts = Facts::of(&page.header);
        let (data, data_v2) = match &page.header.kind {
            PageKind::Data(data) => (Some(data), None),
            PageKind::DataV2(data) => (None, Some(data)),
            _ => (None, None),
        };
        let statistics = data.map(|data| &data.statistics).or(data_v2.map(|data| &data.statistics));
        let statistics = statistics.and_then(Option::as_deref).map(|known| {
            let (min, max) = bounds::of_statistics(&file.metadata, leaf_index, leaf, known);
            StatisticsJson::of(known, min, max, Meaning::of(schema, leaf))
        });
        PageJson {
            file: &file.name,
            path: &leaf.path,
            row_group,
            page: page.number,
            offset: page.offset,
            header_bytes: page.header_bytes,
            kind: facts.kind,
            values: facts.values,
            nulls: facts.nulls,
            rows: facts.rows,
            encoding: facts.encoding,
            definition_level_encoding: data.map(|data| data.definition_encoding.to_string()),
            repetition_level_encoding: data.map(|data| data.repetition_encoding.to_string()),
            definition_level_bytes: data_v2.map(|data| data.definition_bytes),
            repetition_level_bytes: data_v2.map(|data| data.repetition_bytes),
            is_compressed: data_v2.map(|data| data.is_compressed),
            compressed_bytes: page.header.compressed_bytes,
            uncompressed_bytes: page.header.uncompressed_bytes,
            crc: page.header.crc,
            statistics,
        }
    }
}
