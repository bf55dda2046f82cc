//! Why a column has the encoding that it has: what a sample of its first values takes in each.

use std::sync::Arc;

use marquetry::base::{Budget, Codecs};
use marquetry::codecs::StandardCodecs;
use marquetry::parquet::batch::Layout;
use marquetry::parquet::format::{ARROW_SCHEMA_KEY, ColumnChunk, Compression, Encoding};
use marquetry::parquet::read::{BatchReader, ReadOptions};
use marquetry::parquet::write::chooser::{Asked, Choice, Why};
use marquetry::parquet::write::encoder::Slice;

use super::text::{print_table, section};
use crate::failure::{Failure, Outcome};
use crate::numbers::{plural, size, thousands};
use crate::table::{Side, Table, printable};
use crate::terminal::Terminal;
use marquetry::tables::files::ParquetFile;

/// Row groups that are told of; in others things are seldom otherwise.
const ROW_GROUPS_SHOWN: usize = 8;
/// Rows that are read of a chunk, until there are values: as many as a choice knows of, if none is null.
const SAMPLE_ROWS: usize = 8192;
/// Bytes that are asked for at a time: a page is enough.
const READ_BYTES: u64 = 1 << 20;

const PREFACE: &str = "\
\"in the file\" is how a chunk is encoded; \"by its values\" is what `marquetry copy` chooses for a chunk of as many values that begins with the
same ones, and \"why\" what a sample of these takes in each encoding (of a dictionary with their share of its entries).
";

/// Prints a table for each row group, with a line for each of these leaves.
pub(super) fn print(file: &ParquetFile, leaves: &[usize], terminal: Terminal, out: &mut Vec<u8>) -> Outcome {
    let metadata = file.metadata();
    out.extend_from_slice(format!("{}\n", terminal.bold(&printable(file.name()))).as_bytes());
    out.extend_from_slice(PREFACE.as_bytes());
    for (number, group) in metadata.row_groups.iter().enumerate().take(ROW_GROUPS_SHOWN) {
        section(&format!("Row group {number}: {}", plural(group.rows, "row")), terminal, out);
        let mut table = Table::new([
            ("column", Side::Left),
            ("size", Side::Right),
            ("in the file", Side::LeftWhole),
            ("by its values", Side::LeftWhole),
            ("why", Side::Left),
        ])
        .indented(2);
        for (leaf, chunk) in leaves.iter().filter_map(|leaf| Some((*leaf, group.columns.get(*leaf)?))) {
            let path = printable(&metadata.schema.leaf_path(leaf));
            let (chosen, why) = match chunk.encrypted {
                true => ("-".to_string(), "encrypted".to_string()),
                false => match choice(file, number, leaf, chunk)? {
                    Some(choice) => (choice.encoding.to_string(), reason(&choice) + left_dictionary(chunk)),
                    None => ("-".to_string(), "no values".to_string()),
                },
            };
            table.push(vec![path, size(chunk.compressed_bytes), in_file(chunk), chosen, why]);
        }
        print_table(&table, terminal, out);
    }
    if let Some(more) = metadata.row_groups.len().checked_sub(ROW_GROUPS_SHOWN).filter(|more| *more > 0) {
        out.extend_from_slice(format!("\n… {more} more row groups\n").as_bytes());
    }
    Ok(())
}

/// The choice by the first values of a chunk; `None` where there are none.
fn choice(file: &ParquetFile, group: usize, leaf: usize, chunk: &ColumnChunk) -> Outcome<Option<Choice>> {
    let options = ReadOptions {
        leaves: Some(vec![leaf]),
        row_groups: Some(group..group + 1),
        batch_rows: SAMPLE_ROWS,
        layout: Layout::Dense,
        read_bytes: READ_BYTES,
        limits: file.limits(),
        ..ReadOptions::default()
    };
    let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(file.limits()));
    let reader = BatchReader::new(ParquetFile::object(), Arc::clone(file.metadata()), codecs, options)
        .map_err(|error| Failure::about(file.name(), &error))?;
    let has_values = |batch: &marquetry::parquet::batch::Batch| {
        batch.columns.iter().any(|column| !column.values.is_empty())
    };
    let batch = file.find(reader, has_values)?;
    let (Some(batch), Some(leaf)) = (batch, file.metadata().schema.leaves().get(leaf)) else {
        return Ok(None);
    };
    let Some(column) = batch.columns.first() else { return Ok(None) };
    let logical_type = file.metadata().schema.node_of(leaf).logical_type.as_ref();
    let has_arrow_schema = file.metadata().key_values.iter().any(|it| it.key == ARROW_SCHEMA_KEY);
    let asked = Asked {
        compressed: chunk.compression != Compression::Uncompressed,
        v2: chunk.encoding_stats.iter().any(|stats| stats.page_type == DATA_PAGE_V2),
        plain_strings: Asked::plain_strings_of(logical_type, has_arrow_schema),
        ..Asked::default()
    };
    let sample = Slice::of(&column.values);
    let nulls = chunk.statistics.as_ref().and_then(|statistics| statistics.null_count);
    let values = chunk.values.saturating_sub(nulls.unwrap_or(0));
    let choice = Choice::new(leaf.physical_type, asked, sample, values, &mut Budget::unlimited());
    choice.map(Some).map_err(|error| Failure::about(file.name(), &error))
}

/// A data page of version 2, as `PageType` counts them.
const DATA_PAGE_V2: i32 = 3;

/// The encodings of a chunk's data pages and how many have each, the most frequent one first; nothing where the writer does not say.
fn data_pages(chunk: &ColumnChunk) -> Vec<(Encoding, i32)> {
    const DATA_PAGES: [i32; 2] = [0, DATA_PAGE_V2];
    let mut pages: Vec<(Encoding, i32)> = Vec::new();
    for found in chunk.encoding_stats.iter().filter(|stats| DATA_PAGES.contains(&stats.page_type)) {
        match pages.iter_mut().find(|(encoding, _)| *encoding == found.encoding) {
            Some((_, count)) => *count = count.saturating_add(found.count),
            None => pages.push((found.encoding, found.count)),
        }
    }
    pages.sort_by_key(|(encoding, count)| (std::cmp::Reverse(*count), *encoding));
    pages
}

/// What is said of a chunk some of whose pages refer to a dictionary, and others do not.
fn left_dictionary(chunk: &ColumnChunk) -> &'static str {
    let is_dictionary = |(encoding, _): &(Encoding, i32)| {
        matches!(encoding, Encoding::RleDictionary | Encoding::PlainDictionary)
    };
    let pages = data_pages(chunk);
    match pages.iter().any(is_dictionary) && !pages.iter().all(is_dictionary) {
        true => "; the dictionary was left for it grew too large or saved too little",
        false => "",
    }
}

/// The encodings of a chunk; where the writer does not say how many pages have which, those of levels are left out.
fn in_file(chunk: &ColumnChunk) -> String {
    let pages = |count: i32| plural(usize::try_from(count).unwrap_or(0), "page");
    let mut names: Vec<String> = match &*data_pages(chunk) {
        [] => Vec::new(),
        [(only, _)] => vec![only.to_string()],
        many => many.iter().map(|(encoding, count)| format!("{encoding} ({})", pages(*count))).collect(),
    };
    if names.is_empty() {
        let is_of_values = |encoding: &&Encoding| {
            !matches!(encoding, Encoding::Rle | Encoding::BitPacked) || chunk.encodings.len() == 1
        };
        names = chunk.encodings.iter().filter(is_of_values).map(Encoding::to_string).collect();
    }
    names.join(", ")
}

/// What the sample takes in each encoding that was tried, the smallest first.
fn reason(choice: &Choice) -> String {
    let Why { values, distinct, plain, rle, dictionary, delta, delta_length, delta_bytes, .. } = choice.why;
    let mut tried: Vec<(Encoding, u64)> = [
        (Encoding::RleDictionary, dictionary),
        (Encoding::Rle, rle),
        (Encoding::DeltaBinaryPacked, delta),
        (Encoding::DeltaByteArray, delta_bytes),
        (Encoding::DeltaLengthByteArray, delta_length),
        (Encoding::Plain, plain),
    ]
    .into_iter()
    .filter_map(|(encoding, bytes)| Some((encoding, bytes?)))
    .collect();
    tried.sort_by_key(|(_, bytes)| *bytes);
    let smallest = tried.first().map(|(encoding, _)| *encoding);
    let tried: Vec<String> =
        tried.iter().map(|(encoding, bytes)| format!("{encoding} {}", size(*bytes))).collect();
    let mut text = format!("{} values: {}", thousands(values), tried.join(", "));
    if let Some(distinct) = distinct {
        text += &format!("; {} different", thousands(distinct));
        if dictionary.is_none() {
            text += ", too many for a dictionary";
        }
    }
    if choice.encoding == Encoding::ByteStreamSplit {
        text += "; BYTE_STREAM_SPLIT is as large as PLAIN and compresses better";
    } else if smallest.is_some_and(|smallest| smallest != choice.encoding) {
        text += &format!("; {} is quicker to read, and others save too little", choice.encoding);
    }
    text
}
