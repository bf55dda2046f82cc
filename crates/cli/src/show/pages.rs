//! The pages of one column.

use std::sync::Arc;

use serde::Serialize;

use marquetry::base::Segmented;
use marquetry::base::cast::usize_of_u32;
use marquetry::describe::{ColumnStatistics, StatisticsJson, to_hex};
use marquetry::parquet::bloom;
use marquetry::parquet::format::{BoundaryOrder, PageHeader, PageKind, PageLocation, RowGroup, Statistics};
use marquetry::parquet::prune::Known;
use marquetry::parquet::read::{
    BloomProbe, ChunkIndex, PageBloom, PageIndexReader, PageInfo, PageScanner, ReadOptions,
};

use super::json;
use crate::failure::{Exit, Failure, Outcome};
use crate::numbers::{plural, size, thousands};
use crate::table::{Side, Table, printable};
use crate::terminal::Terminal;
use marquetry::tables::files::ParquetFile;

/// A column, by its path.
pub(super) struct Column {
    pub(super) leaf: usize,
    pub(super) path: String,
    pub(super) shown: ColumnStatistics,
}

impl Column {
    pub(super) fn find(file: &ParquetFile, path: &str) -> Outcome<Column> {
        Column::of(file, find_leaf(file, path)?)
    }

    /// Of a leaf that is there.
    pub(super) fn of(file: &ParquetFile, leaf: usize) -> Outcome<Column> {
        let schema = &file.metadata().schema;
        let shown = ColumnStatistics::of(file.metadata(), leaf, &schema.leaves()[leaf]);
        let shown = shown.ok_or_else(|| Failure::bug("a column without an order".to_string()))?;
        Ok(Column { leaf, path: schema.leaf_path(leaf), shown })
    }

    /// What stands above what is listed of it.
    pub(super) fn title(&self, file: &ParquetFile, what: &str, terminal: Terminal, out: &mut Vec<u8>) {
        let title = format!("{}, column {}: {what}", file.name(), self.path);
        out.extend_from_slice(format!("{}\n", terminal.bold(&printable(&title))).as_bytes());
    }
}

/// Lists the pages, a line each. What is wrong with the page index, if anything is, is the answer: the pages' headers tell the most
/// of it, and some writers' indexes are wrong, so that the pages are listed nevertheless, as if there were no index.
pub(super) fn print(
    file: &ParquetFile,
    column: &str,
    (limit, as_json): (Option<u64>, bool),
    terminal: Terminal,
    out: &mut Vec<u8>,
) -> Outcome<Option<Failure>> {
    let column = Column::find(file, column)?;
    let (indexes, fault) = page_index(file, column.leaf);
    let fault = match fault {
        Some(failure) if !matches!(failure, Failure::Said(Exit::Refused, _)) => return Err(failure),
        fault => fault,
    };
    let mut indexes = indexes.iter().filter(|_| fault.is_none()).peekable();
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut pages = 0_u64;
    for row_group in 0..file.metadata().row_groups.len() {
        let scanner =
            PageScanner::new(ParquetFile::object(), file.metadata(), row_group, column.leaf, file.limits())
                .map_err(|error| Failure::about(file.name(), &error))?;
        let index = indexes.next_if(|index| index.row_group == row_group);
        file.run(scanner, |page| {
            pages += 1;
            if limit.is_some_and(|limit| pages > limit) {
                return Ok(());
            }
            let page = Page::new(file, row_group, &column.shown, page, index);
            if as_json {
                json::write(&PageJson::of(file, &column.path, &page), out)
            } else {
                lines.push(page.line());
                Ok(())
            }
        })?;
    }
    if !as_json {
        column.title(file, &plural(pages, "page"), terminal, out);
        table(lines).print(terminal, out);
        more(pages, limit, out);
    }
    let filters = if as_json { Ok(Vec::new()) } else { bloom_filters(file, column.leaf) };
    match filters {
        Ok(lines) => {
            lines.iter().for_each(|line| out.extend_from_slice(line.as_bytes()));
            Ok(fault)
        }
        Err(other @ Failure::Said(Exit::Refused, _)) => Ok(fault.or(Some(other))),
        Err(failure) => Err(failure),
    }
}

/// A line of each Bloom filter of the column: where it is, and what its header tells.
fn bloom_filters(file: &ParquetFile, leaf: usize) -> Outcome<Vec<String>> {
    let mut lines = Vec::new();
    for (row_group, group) in file.metadata().row_groups.iter().enumerate() {
        if let Some(of_pages) = PageBloom::of(file.metadata(), row_group, leaf) {
            let (pages, blocks) = (plural(of_pages.pages(), "page"), usize_of_u32(of_pages.blocks()));
            let (blocks, offset) = (plural(blocks, "block"), thousands(of_pages.range().start));
            lines.push(format!(
                "row group {row_group}: Bloom filters of {pages}, each in {blocks}, at {offset}\n"
            ));
        }
        let Some((offset, _)) = group.columns.get(leaf).and_then(|chunk| chunk.bloom_filter) else {
            continue;
        };
        let mut probe = BloomProbe::new(ParquetFile::object(), file.metadata(), row_group, leaf, Vec::new())
            .map_err(|error| Failure::about(file.name(), &error))?;
        file.run(&mut probe, |_| Outcome::Ok(()))?;
        let bytes = probe.filter_bytes().unwrap_or_default();
        lines.push(format!(
            "row group {row_group}: a Bloom filter of {} in {}, at {}\n",
            size(u64::from(bytes)),
            plural(usize_of_u32(bytes / bloom::BLOCK_BYTES), "block"),
            thousands(offset)
        ));
    }
    Ok(lines)
}

/// Says that there are pages that were not listed.
pub(super) fn more(pages: u64, limit: Option<u64>, out: &mut Vec<u8>) {
    if let Some(more) = limit.and_then(|limit| pages.checked_sub(limit)).filter(|more| *more > 0) {
        out.extend_from_slice(format!("… {}; --limit N lists more\n", plural(more, "more page")).as_bytes());
    }
}

/// The columns of a table of pages, and whether they are left out where they are empty.
const COLUMNS: [(&str, Side, bool); 14] = [
    ("row group", Side::Right, false),
    ("page", Side::Right, false),
    ("offset", Side::Right, false),
    ("kind", Side::Left, false),
    ("values", Side::Right, false),
    ("nulls", Side::Right, false),
    ("first row", Side::Right, true),
    ("rows", Side::Right, false),
    ("compressed", Side::Right, false),
    ("raw", Side::Right, false),
    ("crc", Side::Left, false),
    ("encoding", Side::Left, false),
    ("min", Side::Left, true),
    ("max", Side::Left, true),
];

/// What a page does not tell.
pub(super) const ABSENT: &str = "-";

fn table(lines: Vec<Vec<String>>) -> Table {
    let is_shown = |at: usize| !COLUMNS[at].2 || lines.iter().any(|line| line[at] != ABSENT);
    let shown: Vec<bool> = (0..COLUMNS.len()).map(is_shown).collect();
    let titles = COLUMNS.iter().zip(&shown).filter(|(_, shown)| **shown);
    let mut table = Table::new(titles.map(|((title, side, _), _)| (*title, *side)));
    for line in lines {
        let cells = line.into_iter().zip(&shown).filter(|(_, shown)| **shown);
        table.push(cells.map(|(cell, _)| cell).collect());
    }
    table
}

/// The leaf of this path. A group has no pages, but those below it have.
fn find_leaf(file: &ParquetFile, column: &str) -> Outcome<usize> {
    let schema = &file.metadata().schema;
    let paths = || schema.leaves().iter().map(|leaf| schema.path(leaf.node));
    let mut found = paths().enumerate().filter(|(_, path)| path == column).map(|(index, _)| index);
    let wrong = |what: String| Err(Failure::usage(format!("{}: {what}", file.name())));
    match (found.next(), found.next()) {
        (Some(index), None) => Ok(index),
        (Some(_), Some(_)) => wrong(format!("two columns have the path {column:?}")),
        (None, _) => {
            let is_below = |path: &str| path.strip_prefix(column).is_some_and(|rest| rest.starts_with('.'));
            let below: Vec<String> = paths().filter(|path| is_below(path)).take(5).collect();
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

/// The page index of one column, in the order of the row groups that have one, up to what is wrong with it.
pub(super) fn page_index(file: &ParquetFile, leaf: usize) -> (Vec<ChunkIndex>, Option<Failure>) {
    let options = ReadOptions { leaves: Some(vec![leaf]), limits: file.limits(), ..ReadOptions::default() };
    let mut indexes = Vec::new();
    let reader = PageIndexReader::new(ParquetFile::object(), Arc::clone(file.metadata()), &options);
    let read = reader.map_err(|error| Failure::about(file.name(), &error)).and_then(|reader| {
        file.run(reader, |index| {
            indexes.push(index);
            Outcome::Ok(())
        })
    });
    (indexes, read.err())
}

/// A page, as the page index has it.
#[derive(Clone, Copy)]
pub(super) struct Indexed<'a> {
    pub(super) index: &'a ChunkIndex,
    /// Its number there.
    pub(super) page: usize,
    pub(super) group: &'a RowGroup,
}

impl Indexed<'_> {
    pub(super) fn location(&self) -> PageLocation {
        self.index.offset_index.pages[self.page]
    }

    /// Its first row in the file.
    pub(super) fn first_row(&self) -> Option<u64> {
        self.location().first_row.checked_add(self.group.first_row)
    }

    pub(super) fn rows(&self) -> Option<u64> {
        self.index.offset_index.rows(self.page, self.group.rows)
    }

    /// What the column index tells.
    pub(super) fn known(&self, shown: &ColumnStatistics) -> Option<Known<'_>> {
        Some(shown.order.of_page(self.index.column_index.as_ref()?, self.page))
    }

    /// How the bounds of all pages of the row group are sorted.
    pub(super) fn order(&self) -> Option<String> {
        Some(match self.index.column_index.as_ref()?.boundary_order {
            BoundaryOrder::Unordered => "unordered".to_string(),
            BoundaryOrder::Ascending => "ascending".to_string(),
            BoundaryOrder::Descending => "descending".to_string(),
            BoundaryOrder::Unknown(number) => format!("unknown {number}"),
        })
    }
}

/// A page, with what its header and the page index say of it.
struct Page<'a> {
    row_group: usize,
    info: PageInfo,
    facts: Facts,
    shown: &'a ColumnStatistics,
    index: Option<Indexed<'a>>,
    /// Its first row in the file.
    first_row: Option<u64>,
    rows: Option<u64>,
}

impl<'a> Page<'a> {
    fn new(
        file: &'a ParquetFile,
        row_group: usize,
        shown: &'a ColumnStatistics,
        info: PageInfo,
        index: Option<&'a ChunkIndex>,
    ) -> Page<'a> {
        let facts = Facts::of(&info.header);
        let group = &file.metadata().row_groups[row_group];
        let index = index.and_then(|index| {
            let pages = &index.offset_index.pages;
            let at = pages.partition_point(|page| page.offset < info.offset);
            let page = pages.get(at).filter(|page| page.offset == info.offset);
            page.map(|_| Indexed { index, page: at, group })
        });
        Page {
            row_group,
            rows: index.and_then(|index| index.rows()).or(facts.rows.map(u64::from)),
            first_row: index.and_then(|index| index.first_row()),
            info,
            facts,
            shown,
            index,
        }
    }

    /// What its header's statistics tell.
    fn of_header(&self) -> Option<(&Statistics, Known<'_>)> {
        let statistics = match &self.info.header.kind {
            PageKind::Data(data) => data.statistics.as_deref(),
            PageKind::DataV2(data) => data.statistics.as_deref(),
            _ => None,
        }?;
        Some((statistics, self.shown.order.of_statistics(statistics, Some(self.facts.values.into()))))
    }

    fn line(&self) -> Vec<String> {
        let absent = || ABSENT.to_string();
        let header = &self.info.header;
        let of_header = self.of_header().map(|(_, known)| known);
        let of_index = self.index.as_ref().and_then(|index| index.known(self.shown));
        let known = of_index.or(of_header).unwrap_or_default();
        let nulls = match header.kind {
            PageKind::Data(_) | PageKind::DataV2(_) => self.facts.nulls.or(known.nulls),
            _ => None,
        };
        vec![
            self.row_group.to_string(),
            self.info.number.to_string(),
            thousands(self.info.offset),
            self.facts.kind.clone(),
            thousands(self.facts.values),
            nulls.map_or_else(absent, thousands),
            self.first_row.map_or_else(absent, thousands),
            self.rows.map_or_else(absent, thousands),
            thousands(header.compressed_bytes),
            thousands(header.uncompressed_bytes),
            (if header.crc.is_some() { "yes" } else { "no" }).to_string(),
            self.facts.encoding.clone().unwrap_or_else(absent),
            self.shown.text(known.min).unwrap_or_else(absent),
            self.shown.text(known.max).unwrap_or_else(absent),
        ]
    }
}

/// What the page index says of a page. `min` and `max` are what can be trusted; the bytes are there in any case.
#[derive(Serialize)]
pub(super) struct IndexJson {
    compressed_bytes: u32,
    unencoded_byte_array_data_bytes: Option<u64>,
    /// The rest is the column index's.
    is_null_page: Option<bool>,
    min: Option<String>,
    max: Option<String>,
    min_value_hex: Option<String>,
    max_value_hex: Option<String>,
    null_count: Option<u64>,
    nan_count: Option<u64>,
    repetition_level_histogram: Vec<u64>,
    definition_level_histogram: Vec<u64>,
    /// Of all pages of the row group.
    boundary_order: Option<String>,
}

impl IndexJson {
    pub(super) fn of(indexed: &Indexed<'_>, shown: &ColumnStatistics) -> IndexJson {
        let Indexed { index, page: number, .. } = *indexed;
        let known = indexed.known(shown).unwrap_or_default();
        let offsets = &index.offset_index;
        let column = index.column_index.as_ref();
        let count = |counts: Option<&Segmented<u64>>| counts?.get(number).copied();
        IndexJson {
            compressed_bytes: indexed.location().compressed_bytes,
            unencoded_byte_array_data_bytes: count(offsets.unencoded_byte_array_data_bytes.as_ref()),
            is_null_page: column.and_then(|it| it.null_pages.get(number).copied()),
            min: shown.exact_text(known.min),
            max: shown.exact_text(known.max),
            min_value_hex: column.map(|it| to_hex(it.min_values.get(number))),
            max_value_hex: column.map(|it| to_hex(it.max_values.get(number))),
            null_count: count(column.and_then(|it| it.null_counts.as_ref())),
            nan_count: count(column.and_then(|it| it.nan_counts.as_ref())),
            repetition_level_histogram: column
                .map_or_else(Vec::new, |it| it.repetition_levels(number).collect()),
            definition_level_histogram: column
                .map_or_else(Vec::new, |it| it.definition_levels(number).collect()),
            boundary_order: indexed.order(),
        }
    }
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
    first_row: Option<u64>,
    rows: Option<u64>,
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
    index: Option<IndexJson>,
}

impl<'a> PageJson<'a> {
    fn of(file: &'a ParquetFile, path: &'a str, page: &'a Page<'_>) -> PageJson<'a> {
        let (info, facts) = (&page.info, &page.facts);
        let (data, data_v2) = match &info.header.kind {
            PageKind::Data(data) => (Some(data), None),
            PageKind::DataV2(data) => (None, Some(data)),
            _ => (None, None),
        };
        PageJson {
            file: file.name(),
            path,
            row_group: page.row_group,
            page: info.number,
            offset: info.offset,
            header_bytes: info.header_bytes,
            kind: facts.kind.clone(),
            values: facts.values,
            nulls: facts.nulls,
            first_row: page.first_row,
            rows: page.rows,
            encoding: facts.encoding.clone(),
            definition_level_encoding: data.map(|data| data.definition_encoding.to_string()),
            repetition_level_encoding: data.map(|data| data.repetition_encoding.to_string()),
            definition_level_bytes: data_v2.map(|data| data.definition_bytes),
            repetition_level_bytes: data_v2.map(|data| data.repetition_bytes),
            is_compressed: data_v2.map(|data| data.is_compressed),
            compressed_bytes: info.header.compressed_bytes,
            uncompressed_bytes: info.header.uncompressed_bytes,
            crc: info.header.crc,
            statistics: page
                .of_header()
                .map(|(statistics, known)| StatisticsJson::of(statistics, known, page.shown)),
            index: page.index.as_ref().map(|index| IndexJson::of(index, page.shown)),
        }
    }
}
