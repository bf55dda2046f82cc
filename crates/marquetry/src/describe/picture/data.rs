//! What the page is drawn from.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::print::printable;
use marquetry_parquet::format::{ColumnChunk, Encoding, FileMetaData};
use marquetry_tables::files::{Extent, ExtentKind, FileMap, MappedPageKind, ParquetFile};

use super::cells::Cells;
use super::index::IndexedPage;
use crate::describe::{ColumnStatistics, encoding_rank};

/// Pages that are drawn singly, at most; the documentation says so. One takes about 35 bytes of the page.
pub(super) const PAGES_MAX: u64 = 100_000;

/// Pages of which the page index is shown, at most: their bounds take about 50 bytes each.
pub(super) const INDEXED_PAGES_MAX: usize = 25_000;

/// Indexes and filters are drawn singly in files of at most as many column chunks.
const SINGLE_INDEXES_MAX: usize = 2_000;

/// Characters of a name, and of what the footer's key-value metadata say.
const NAME_CHARS_MAX: usize = 200;

/// Key-value pairs that are shown.
const KEYS_MAX: usize = 50;

/// Everything that the page shows. Rows of numbers are arrays, since they are many; `model.js` names what is in them.
#[derive(Serialize)]
pub(super) struct Data {
    file: FileData,
    notes: Notes,
    codecs: Vec<String>,
    encodings: Vec<String>,
    columns: Vec<ColumnData>,
    bands: Vec<BandData>,
    /// Column chunks, or several together: band by band, column by column.
    cells: Vec<Value>,
    /// In the order of the file.
    extents: Vec<Value>,
}

#[derive(Serialize)]
struct FileData {
    name: String,
    bytes: u64,
    rows: u64,
    row_groups: usize,
    columns: usize,
    chunks: u64,
    /// Those that are drawn singly.
    pages: u64,
    chunks_unlisted: u64,
    compressed_bytes: u64,
    uncompressed_bytes: u64,
    footer_bytes: u64,
    writer: Option<String>,
    version: i32,
    sorted_by: Option<Vec<(String, bool, bool)>>,
    encryption: Option<String>,
    keys: Vec<(String, u64, String)>,
}

#[derive(Serialize)]
struct ColumnData {
    name: String,
    /// Columns that are drawn together.
    #[serde(skip_serializing_if = "Option::is_none")]
    merged: Option<usize>,
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical: Option<String>,
    bytes: u64,
    raw: u64,
    values: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    nulls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nans: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<String>,
    codecs: Vec<usize>,
    encodings: Vec<usize>,
    /// Column chunks with a column index, an offset index, a Bloom filter.
    with: [usize; 3],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    encrypted: bool,
}

/// Row groups that are drawn as one.
#[derive(Serialize)]
struct BandData {
    first: usize,
    count: usize,
    first_row: u64,
    rows: u64,
    bytes: u64,
    raw: u64,
}

/// Names by numbers, in the order in which they were met.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn number(&mut self, name: String) -> usize {
        self.0.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        })
    }

    fn encodings(&mut self, encodings: impl Iterator<Item = Encoding>) -> Vec<usize> {
        let mut all: Vec<Encoding> = encodings.collect();
        all.sort_by_key(|encoding| encoding_rank(*encoding));
        all.dedup();
        all.iter().map(|encoding| self.number(encoding.to_string())).collect()
    }
}

/// Of several column chunks.
#[derive(Default)]
struct Sums {
    chunks: u64,
    offset: u64,
    bytes: u64,
    raw: u64,
    values: u64,
    nulls: Option<u64>,
    codecs: Vec<usize>,
    encodings: Vec<Encoding>,
    column_index: u64,
    offset_index: u64,
}

impl Data {
    /// Of a file and its map, with what the page index says of pages, by their offsets.
    pub(super) fn of(file: &ParquetFile, map: &FileMap, index: &HashMap<u64, IndexedPage>) -> Data {
        let metadata = &**file.metadata();
        let cells = Cells::of(metadata);
        let (mut codecs, mut encodings) = (Names::default(), Names::default());
        let columns = columns(metadata, &cells, &mut codecs, &mut encodings);
        let bands = bands(metadata, &cells);
        let drawn = drawn_cells(metadata, &cells, &mut codecs, &mut encodings);
        let extents = extents(metadata, &cells, (map, index), &mut encodings);
        let mut file = FileData::of(file);
        file.pages = map.extents.iter().map(|it| u64::from(matches!(it.kind, ExtentKind::Page(_)))).sum();
        file.chunks_unlisted = map.chunks_unlisted;
        let notes = Notes::of(metadata, &cells, map);
        Data { file, notes, codecs: codecs.0, encodings: encodings.0, columns, bands, cells: drawn, extents }
    }
}

impl FileData {
    fn of(file: &ParquetFile) -> FileData {
        let metadata = &**file.metadata();
        let sum = |of: fn(&ColumnChunk) -> u64| {
            let chunks = metadata.row_groups.iter().flat_map(|group| &group.columns);
            chunks.map(of).fold(0_u64, u64::saturating_add)
        };
        let keys = metadata.key_values.iter().take(KEYS_MAX).map(|pair| {
            let value = pair.value.as_deref().unwrap_or_default();
            let text = std::str::from_utf8(value).unwrap_or("(not text)");
            (shown(&pair.key), u64_of(value.len()), shown(text))
        });
        FileData {
            name: printable(file.name()),
            bytes: file.bytes(),
            rows: metadata.rows,
            row_groups: metadata.row_groups.len(),
            columns: metadata.schema.leaves().len(),
            chunks: metadata.row_groups.iter().map(|group| u64_of(group.columns.len())).sum(),
            pages: 0,
            chunks_unlisted: 0,
            compressed_bytes: sum(|chunk| chunk.compressed_bytes),
            uncompressed_bytes: sum(|chunk| chunk.uncompressed_bytes),
            footer_bytes: metadata.footer_bytes,
            writer: metadata.created_by.as_deref().map(shown),
            version: metadata.version,
            sorted_by: sorted_by(metadata),
            encryption: metadata.encryption.map(|algorithm| format!("{algorithm:?}")),
            keys: keys.collect(),
        }
    }
}

/// Text of the file, of a length that a page bears.
fn shown(text: &str) -> String {
    let kept: String = text.chars().take(NAME_CHARS_MAX + 1).collect();
    let mut shown = printable(&kept);
    if let Some((at, _)) = shown.char_indices().nth(NAME_CHARS_MAX) {
        shown.truncate(at);
        shown.push('…');
    }
    shown
}

/// What the picture does not show as it is in the file, and what is wrong with that.
#[derive(Serialize)]
struct Notes {
    /// Row groups that are drawn as one; 1 if each is drawn singly.
    groups_of_band: usize,
    /// Columns that are drawn singly, and as one.
    columns_single: usize,
    columns_merged: usize,
    pages_max: u64,
    /// The pages of which the page index is shown, at most, if it is left out because there are more.
    indexed_pages_max: Option<usize>,
    /// The column chunks whose indexes and filters are drawn singly, at most, if they are drawn together.
    single_indexes_max: Option<usize>,
    overlapping_bytes: u64,
    /// Column chunks whose data is in another file.
    elsewhere: usize,
    faults: Vec<String>,
}

impl Notes {
    fn of(metadata: &FileMetaData, cells: &Cells, map: &FileMap) -> Notes {
        let chunks = || metadata.row_groups.iter().flat_map(|group| &group.columns);
        let pages = map.extents.iter().filter(|extent| matches!(extent.kind, ExtentKind::Page(_))).count();
        let has_indexes = chunks().any(|chunk| chunk.offset_index.is_some());
        let has_any =
            has_indexes || chunks().any(|chunk| chunk.column_index.is_some() || chunk.bloom_filter.is_some());
        Notes {
            groups_of_band: cells.groups_of_band,
            columns_single: cells.leaves.len(),
            columns_merged: cells.column_of.len() - cells.leaves.len(),
            pages_max: PAGES_MAX,
            indexed_pages_max: (has_indexes && pages > INDEXED_PAGES_MAX).then_some(INDEXED_PAGES_MAX),
            single_indexes_max: (has_any && !are_indexes_single(metadata)).then_some(SINGLE_INDEXES_MAX),
            overlapping_bytes: map.overlapping_bytes,
            elsewhere: chunks().filter(|chunk| chunk.file_path.is_some()).count(),
            faults: map.faults.iter().map(|error| printable(&error.to_string())).collect(),
        }
    }
}

/// How all row groups are sorted: paths, whether they descend, whether nulls are first. `None` if they differ; empty if none says.
fn sorted_by(metadata: &FileMetaData) -> Option<Vec<(String, bool, bool)>> {
    let first = metadata.row_groups.get(0).map_or(&[][..], |group| &group.sorting_columns);
    if metadata.row_groups.iter().any(|group| group.sorting_columns != first) {
        return None;
    }
    let path = |column: u32| {
        let leaf = metadata.schema.leaves().get(usize_of_u32(column));
        leaf.map_or_else(|| column.to_string(), |leaf| shown(&metadata.schema.path(leaf.node)))
    };
    Some(first.iter().map(|by| (path(by.column), by.descending, by.nulls_first)).collect())
}

fn columns(
    metadata: &FileMetaData,
    cells: &Cells,
    codecs: &mut Names,
    encodings: &mut Names,
) -> Vec<ColumnData> {
    let mut columns: Vec<ColumnData> = Vec::with_capacity(cells.columns());
    for &index in &cells.leaves {
        let Some(leaf) = metadata.schema.leaves().get(index) else { continue };
        let statistics = ColumnStatistics::of(metadata, index, leaf);
        let known = statistics.map(|it| it.of_column(metadata, index)).unwrap_or_default();
        let text = |bound| statistics.and_then(|it| it.text(bound));
        let mut column = of_leaves(metadata, &[index], codecs, encodings);
        column.name = shown(&metadata.schema.path(leaf.node));
        column.r#type = leaf.physical_type.to_string();
        let logical = metadata.schema.node_of(leaf).logical_type.as_ref();
        column.logical = logical.map(|it| shown(&it.to_string()));
        (column.nulls, column.nans) = (known.nulls, known.nans);
        (column.min, column.max) = (text(known.min), text(known.max));
        columns.push(column);
    }
    let rest: Vec<usize> =
        (0..cells.column_of.len()).filter(|&leaf| cells.column_of[leaf] == cells.leaves.len()).collect();
    if !rest.is_empty() {
        let mut column = of_leaves(metadata, &rest, codecs, encodings);
        column.merged = Some(rest.len());
        columns.push(column);
    }
    columns
}

fn of_leaves(
    metadata: &FileMetaData,
    leaves: &[usize],
    codecs: &mut Names,
    encodings: &mut Names,
) -> ColumnData {
    let chunks = || {
        let groups = metadata.row_groups.iter();
        groups.flat_map(|group| leaves.iter().filter_map(|&leaf| group.columns.get(leaf)))
    };
    let sum = |of: fn(&ColumnChunk) -> u64| chunks().map(of).fold(0_u64, u64::saturating_add);
    let mut kinds: Vec<usize> = Vec::new();
    let mut all: Vec<Encoding> = Vec::new();
    for chunk in chunks() {
        let codec = codecs.number(chunk.compression.to_string());
        if !kinds.contains(&codec) {
            kinds.push(codec);
        }
        all.extend(chunk.encodings.iter().filter(|it| !all.contains(it)).copied().collect::<Vec<_>>());
    }
    let count = |has: fn(&ColumnChunk) -> bool| chunks().filter(|chunk| has(chunk)).count();
    ColumnData {
        name: String::new(),
        merged: None,
        r#type: String::new(),
        logical: None,
        bytes: sum(|chunk| chunk.compressed_bytes),
        raw: sum(|chunk| chunk.uncompressed_bytes),
        values: sum(|chunk| chunk.values),
        nulls: None,
        nans: None,
        min: None,
        max: None,
        codecs: kinds,
        encodings: encodings.encodings(all.into_iter()),
        with: [
            count(|chunk| chunk.column_index.is_some()),
            count(|chunk| chunk.offset_index.is_some()),
            count(|chunk| chunk.bloom_filter.is_some()),
        ],
        encrypted: chunks().any(|chunk| chunk.encrypted),
    }
}

fn bands(metadata: &FileMetaData, cells: &Cells) -> Vec<BandData> {
    let mut bands: Vec<BandData> = Vec::with_capacity(cells.bands);
    for (number, group) in metadata.row_groups.iter().enumerate() {
        if number % cells.groups_of_band == 0 {
            let first_row = group.first_row;
            bands.push(BandData { first: number, count: 0, first_row, rows: 0, bytes: 0, raw: 0 });
        }
        let Some(band) = bands.last_mut() else { continue };
        band.count += 1;
        band.rows = band.rows.saturating_add(group.rows);
        for chunk in &group.columns {
            band.bytes = band.bytes.saturating_add(chunk.compressed_bytes);
            band.raw = band.raw.saturating_add(chunk.uncompressed_bytes);
        }
    }
    bands
}

/// `[chunks, offset, bytes, raw, values, nulls, codec, encodings, column index, offset index, min, max]`; what is not known is -1 or
/// left out.
fn drawn_cells(
    metadata: &FileMetaData,
    cells: &Cells,
    codecs: &mut Names,
    encodings: &mut Names,
) -> Vec<Value> {
    let mut sums: Vec<Sums> = Vec::new();
    sums.resize_with(cells.bands * cells.columns(), Sums::default);
    for (row_group, group) in metadata.row_groups.iter().enumerate() {
        for (leaf, chunk) in group.columns.iter().enumerate() {
            if let Some(sum) = sums.get_mut(cells.at(row_group, leaf)) {
                sum.add(chunk, codecs.number(chunk.compression.to_string()));
            }
        }
    }
    let has_bounds = cells.groups_of_band == 1;
    let drawn = sums.into_iter().enumerate().map(|(at, sum)| {
        let number = |count: Option<u64>| count.map_or(Value::from(-1), Value::from);
        let codec = if let [only] = *sum.codecs { Value::from(only) } else { Value::from(-1) };
        let mut cell = vec![
            sum.chunks.into(),
            sum.offset.into(),
            sum.bytes.into(),
            sum.raw.into(),
            sum.values.into(),
            number(sum.nulls),
            codec,
            encodings.encodings(sum.encodings.into_iter()).into(),
            sum.column_index.into(),
            sum.offset_index.into(),
        ];
        let (band, column) = (at / cells.columns(), at % cells.columns());
        if let (true, Some(&leaf)) = (has_bounds, cells.leaves.get(column)) {
            let bounds = bounds_of(metadata, band, leaf);
            if bounds.iter().any(Option::is_some) {
                cell.extend(bounds.map(|bound| bound.map_or(Value::Null, Value::from)));
            }
        }
        Value::from(cell)
    });
    drawn.collect()
}

fn bounds_of(metadata: &FileMetaData, row_group: usize, index: usize) -> [Option<String>; 2] {
    let chunk = metadata.row_groups.get(row_group).and_then(|group| group.columns.get(index));
    let leaf = metadata.schema.leaves().get(index);
    let Some((chunk, leaf)) = chunk.zip(leaf) else { return [None, None] };
    let Some(statistics) = ColumnStatistics::of(metadata, index, leaf) else { return [None, None] };
    let known = statistics.order.of_chunk(chunk);
    [statistics.text(known.min), statistics.text(known.max)]
}

impl Sums {
    fn add(&mut self, chunk: &ColumnChunk, codec: usize) {
        let nulls = chunk.statistics.as_ref().and_then(|statistics| statistics.null_count);
        let offset = chunk.first_page_offset();
        if self.chunks == 0 {
            (self.offset, self.nulls) = (offset, nulls);
        } else {
            self.offset = self.offset.min(offset);
            self.nulls = self.nulls.zip(nulls).and_then(|(left, right)| left.checked_add(right));
        }
        self.chunks += 1;
        self.bytes = self.bytes.saturating_add(chunk.compressed_bytes);
        self.raw = self.raw.saturating_add(chunk.uncompressed_bytes);
        self.values = self.values.saturating_add(chunk.values);
        if !self.codecs.contains(&codec) {
            self.codecs.push(codec);
        }
        for encoding in &chunk.encodings {
            if !self.encodings.contains(encoding) {
                self.encodings.push(*encoding);
            }
        }
        let bytes = |at: Option<(u64, u32)>| at.map_or(0, |(_, bytes)| u64::from(bytes));
        self.column_index = self.column_index.saturating_add(bytes(chunk.column_index));
        self.offset_index = self.offset_index.saturating_add(bytes(chunk.offset_index));
    }
}

/// Whether indexes and filters are drawn with the column chunks that they belong to.
fn are_indexes_single(metadata: &FileMetaData) -> bool {
    metadata.row_groups.len().saturating_mul(metadata.schema.leaves().len()) <= SINGLE_INDEXES_MAX
}

/// What an extent belongs to: a cell, or a band (-2 - band), or nothing (-1).
type Owner = i64;

/// `[kind, bytes, owner, parts]`, and of pages `[kind, bytes, owner, header bytes, raw bytes, values, nulls, encoding, has CRC]`;
/// of those in the page index also `first row, rows, min, max`.
fn extents(
    metadata: &FileMetaData,
    cells: &Cells,
    (map, index): (&FileMap, &HashMap<u64, IndexedPage>),
    encodings: &mut Names,
) -> Vec<Value> {
    let are_indexes_single = are_indexes_single(metadata);
    let mut drawn: Vec<Value> = Vec::with_capacity(map.extents.len());
    // What is drawn together: its kind, its owner, its bytes, its parts.
    let mut open: Option<(u8, Owner, u64, u64)> = None;
    let close = |open: &mut Option<(u8, Owner, u64, u64)>, drawn: &mut Vec<Value>| {
        if let Some((kind, owner, bytes, parts)) = open.take() {
            drawn.push(vec![Value::from(kind), bytes.into(), owner.into(), parts.into()].into());
        }
    };
    for extent in &map.extents {
        let kind = kind_number(extent);
        let owner: Owner = match extent.chunk {
            None => -1,
            Some((row_group, _)) if kind == PAGES && cells.groups_of_band > 1 => {
                let band = row_group / cells.groups_of_band;
                i64::try_from(band).map_or(-1, |band| -2 - band)
            }
            Some(_)
                if kind != PAGES && !matches!(extent.kind, ExtentKind::Page(_)) && !are_indexes_single =>
            {
                -1
            }
            Some((row_group, leaf)) => i64::try_from(cells.at(row_group, leaf)).unwrap_or(-1),
        };
        if let ExtentKind::Page(page) = &extent.kind {
            close(&mut open, &mut drawn);
            let encoding = page.encoding.map(|encoding| encodings.number(encoding.to_string()));
            let indexed = index.get(&extent.offset);
            let nulls = page.nulls.or(indexed.and_then(|page| page.nulls));
            let number = |count: Option<u64>| count.map_or(Value::from(-1), Value::from);
            let mut one = vec![
                Value::from(kind),
                extent.bytes.into(),
                owner.into(),
                page.header_bytes.into(),
                page.uncompressed_bytes.into(),
                page.values.into(),
                number(nulls),
                encoding.map_or(Value::from(-1), Value::from),
                u8::from(page.has_crc).into(),
            ];
            if let Some(indexed) = indexed {
                one.extend([indexed.first_row.into(), number(indexed.rows)]);
                if indexed.min.is_some() || indexed.max.is_some() {
                    one.extend([indexed.min.clone().into(), indexed.max.clone().into()]);
                }
            }
            drawn.push(one.into());
            continue;
        }
        match &mut open {
            Some((known, of, bytes, parts)) if *known == kind && *of == owner => {
                *bytes += extent.bytes;
                *parts += 1;
            }
            _ => {
                close(&mut open, &mut drawn);
                open = Some((kind, owner, extent.bytes, 1));
            }
        }
    }
    close(&mut open, &mut drawn);
    drawn
}

/// All pages of a chunk.
const PAGES: u8 = 5;

/// The numbers that `model.js` knows kinds by.
fn kind_number(extent: &Extent) -> u8 {
    match &extent.kind {
        ExtentKind::Magic => 0,
        ExtentKind::Page(page) => match page.kind {
            MappedPageKind::Data => 1,
            MappedPageKind::DataV2 => 2,
            MappedPageKind::Dictionary => 3,
            _ => 4,
        },
        ExtentKind::Pages => PAGES,
        ExtentKind::ColumnIndex => 6,
        ExtentKind::OffsetIndex => 7,
        ExtentKind::BloomFilter => 8,
        ExtentKind::Footer => 9,
        ExtentKind::Tail => 10,
        _ => 11,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::cells::CELLS_MAX;
    use super::*;

    /// What people read of these numbers is what they are.
    #[test]
    fn the_documentation_has_the_numbers() {
        let thousands = |number: u64| format!("{},{:03}", number / 1000, number % 1000);
        let (cells, pages) = (thousands(u64_of(CELLS_MAX)), thousands(PAGES_MAX));
        for path in ["../../README.md", "../cli/src/show.rs", "src/describe/picture.rs"] {
            let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
            let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "///").collect();
            let text = words.join(" ");
            for said in [format!("{cells} column chunks"), format!("{pages} pages are drawn singly")] {
                assert!(text.contains(&said), "no {said:?} in {path}");
            }
        }
    }
}
