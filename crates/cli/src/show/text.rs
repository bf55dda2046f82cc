//! The page that a person reads.

use std::fmt::Write;

use marquetry::base::cast::u64_of;
use marquetry::describe::{ColumnStatistics, encoding_rank, order_name};
use marquetry::parquet::format::{ColumnOrder, Encoding, FileMetaData};
use marquetry::parquet::prune::Known;
use marquetry::parquet::schema::{NodeKind, Schema};

use super::details;
use crate::numbers::{plural, ratio, size, thousands};
use crate::table::{Side, Table, cut, printable};
use crate::terminal::Terminal;
use marquetry::tables::files::ParquetFile;

/// Width of a name in the schema's tree: the types stand beside it, and a name may have thousands of characters.
const NAME_WIDTH_MAX: usize = 100;

/// Width of a logical type: a coordinate reference system may be a page of JSON.
const LOGICAL_TYPE_WIDTH_MAX: usize = 100;

/// Row groups that are listed; more say little to a person. `--json` has them all.
const ROW_GROUPS_SHOWN: usize = 8;

pub(super) fn print(file: &ParquetFile, terminal: Terminal, out: &mut Vec<u8>) {
    let metadata = &**file.metadata();
    heading(file, terminal, out);
    section("Schema", terminal, out);
    schema(&metadata.schema, terminal, out);
    if metadata.row_groups.is_empty() || metadata.schema.leaves().is_empty() {
        return;
    }
    section("Columns", terminal, out);
    sizes(metadata, terminal, out);
    out.push(b'\n');
    values(metadata, terminal, out);
    for (title, table) in [
        ("Sizes and levels", details::sizes_and_levels(metadata)),
        ("Geometries", details::geometries(metadata)),
        ("Bloom filters", details::bloom_filters(metadata)),
    ] {
        if let Some(table) = table {
            section(title, terminal, out);
            print_table(&table, terminal, out);
        }
    }
    section("Row groups", terminal, out);
    row_groups(metadata, terminal, out);
}

fn heading(file: &ParquetFile, terminal: Terminal, out: &mut Vec<u8>) {
    let metadata = &**file.metadata();
    let (compressed, uncompressed) = totals(metadata);
    let mut text = terminal.bold(&printable(file.name()));
    text.push('\n');
    let mut fact = |name: &str, value: String| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "  {name:<11} {value}");
    };
    fact(
        "rows",
        format!("{} in {}", thousands(metadata.rows), plural(metadata.row_groups.len(), "row group")),
    );
    fact("size", size_exact(file.bytes()));
    if compressed > 0 {
        fact(
            "data",
            format!(
                "{}, uncompressed {} (ratio {})",
                size(compressed),
                size(uncompressed),
                ratio(uncompressed, compressed)
            ),
        );
    }
    fact("written by", metadata.created_by.as_deref().map_or_else(|| "(not told)".to_string(), printable));
    fact("format", format!("version {}, footer {}", metadata.version, size_exact(metadata.footer_bytes)));
    for (name, value) in [
        ("sorted by", details::sorted_by(metadata)),
        ("indexes", details::indexes(metadata)),
        ("encryption", details::encryption(metadata)),
    ] {
        if let Some(value) = value {
            fact(name, value);
        }
    }
    if !metadata.key_values.is_empty() {
        let keys = metadata.key_values.iter().map(|pair| {
            let bytes = pair.value.as_ref().map_or(0, |value| value.len());
            format!("{} ({})", printable(&pair.key), size(u64_of(bytes)))
        });
        fact("keys", keys.collect::<Vec<_>>().join(", "));
    }
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn size_exact(bytes: u64) -> String {
    if bytes < 1000 { size(bytes) } else { format!("{} ({} bytes)", size(bytes), thousands(bytes)) }
}

/// Compressed and uncompressed bytes of all chunks.
fn totals(metadata: &FileMetaData) -> (u64, u64) {
    let chunks = metadata.row_groups.iter().flat_map(|group| &group.columns);
    chunks.fold((0, 0), |(compressed, uncompressed), chunk| {
        (
            u64::saturating_add(compressed, chunk.compressed_bytes),
            u64::saturating_add(uncompressed, chunk.uncompressed_bytes),
        )
    })
}

pub(super) fn section(title: &str, terminal: Terminal, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\n{}\n", terminal.bold(title)).as_bytes());
}

/// A table; what found no room is said, not just left out.
pub(super) fn print_table(table: &Table, terminal: Terminal, out: &mut Vec<u8>) {
    let left_out = table.print(terminal, out);
    if left_out > 0 {
        let columns = plural(left_out, "more column");
        out.extend_from_slice(format!("  … {columns} in a wider terminal (or COLUMNS=200)\n").as_bytes());
    }
}

/// The tree, with the types aligned beside it.
pub(super) fn schema(schema: &Schema, terminal: Terminal, out: &mut Vec<u8>) {
    let mut lines = Vec::new();
    // The prefixes of the open groups' children, by the group's node.
    let mut prefixes = vec![String::new(); schema.nodes().len()];
    let mut is_last = vec![false; schema.nodes().len()];
    for (at, node) in schema.nodes().iter().enumerate() {
        if let Some(last) = schema.children(at).last() {
            is_last[last] = true;
        }
        if at == 0 {
            continue;
        }
        let prefix = prefixes[node.parent].clone();
        let (branch, below) = if is_last[at] { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        prefixes[at] = format!("{prefix}{below}");
        let physical = match node.kind {
            NodeKind::Group { .. } => "group".to_string(),
            NodeKind::Leaf { leaf } => schema.leaves()[leaf].physical_type.to_string(),
        };
        let logical = node.logical_type.as_ref().map(|logical| printable(&logical.to_string()));
        let mut logical = cut(&logical.unwrap_or_default(), LOGICAL_TYPE_WIDTH_MAX);
        if let Some(id) = node.field_id {
            let gap = if logical.is_empty() { "" } else { "  " };
            // Writing to memory does not fail.
            let _ = write!(logical, "{gap}field id {id}");
        }
        lines.push((
            format!("{prefix}{branch}"),
            cut(&printable(&node.name), NAME_WIDTH_MAX),
            node.repetition.to_string(),
            physical,
            logical,
        ));
    }
    let widest =
        |of: fn(&(String, String, String, String, String)) -> usize| lines.iter().map(of).max().unwrap_or(0);
    use unicode_width::UnicodeWidthStr;
    let names = widest(|line| line.0.width() + line.1.width());
    let physicals = widest(|line| line.3.width());
    for (tree, name, repetition, physical, logical) in &lines {
        let space = " ".repeat(names - tree.width() - name.width());
        let gap = " ".repeat(physicals - physical.width());
        let line =
            format!("  {}{name}{space}  {repetition:<8}  {physical}{gap}  {logical}", terminal.dim(tree));
        out.extend_from_slice(line.trim_end().as_bytes());
        out.push(b'\n');
    }
    if lines.is_empty() {
        out.extend_from_slice(b"  (no columns)\n");
    }
    if let Some(numbered) = schema.nodes().iter().find(|node| node.is_numbered) {
        let (name, in_file) = (printable(&numbered.name), printable(numbered.name_in_file()));
        let (name, in_file) = (cut(&name, NAME_WIDTH_MAX), cut(&in_file, NAME_WIDTH_MAX));
        let note = format!(
            "  (fields of the same name are numbered here: {name} is another {in_file} in the file)\n"
        );
        out.extend_from_slice(note.as_bytes());
    }
}

/// How each column is held.
fn sizes(metadata: &FileMetaData, terminal: Terminal, out: &mut Vec<u8>) {
    let mut table = Table::new([
        ("column", Side::Left),
        ("codec", Side::Left),
        ("compressed", Side::Right),
        ("raw", Side::Right),
        ("ratio", Side::Right),
        ("encodings", Side::Left),
    ])
    .indented(2);
    for (index, leaf) in metadata.schema.leaves().iter().enumerate() {
        let chunks = || metadata.row_groups.iter().filter_map(|group| group.columns.get(index));
        let compressed = chunks().fold(0_u64, |sum, chunk| sum.saturating_add(chunk.compressed_bytes));
        let uncompressed = chunks().fold(0_u64, |sum, chunk| sum.saturating_add(chunk.uncompressed_bytes));
        let mut codecs: Vec<String> = chunks().map(|chunk| chunk.compression.to_string()).collect();
        codecs.sort();
        codecs.dedup();
        let mut encodings: Vec<Encoding> =
            chunks().flat_map(|chunk| chunk.encodings.iter().copied()).collect();
        // What a narrow terminal cuts comes last.
        encodings.sort_by_key(|encoding| encoding_rank(*encoding));
        encodings.dedup();
        let mut encodings: Vec<String> = encodings.iter().map(Encoding::to_string).collect();
        if chunks().any(|chunk| chunk.encrypted) {
            encodings.push("encrypted".to_string());
        }
        table.push(vec![
            printable(&metadata.schema.path(leaf.node)),
            codecs.join(", "),
            size(compressed),
            size(uncompressed),
            ratio(uncompressed, compressed),
            encodings.join(", "),
        ]);
    }
    print_table(&table, terminal, out);
}

/// What each column holds. What no column tells, or what is the same of all of them, has no place.
fn values(metadata: &FileMetaData, terminal: Terminal, out: &mut Vec<u8>) {
    let leaves = metadata.schema.leaves().iter().enumerate();
    let known: Vec<(Option<ColumnStatistics>, Known<'_>)> = leaves
        .map(|(index, leaf)| {
            let statistics = ColumnStatistics::of(metadata, index, leaf);
            (statistics, statistics.map(|it| it.of_column(metadata, index)).unwrap_or_default())
        })
        .collect();
    let can_be_nan =
        |statistics: &Option<ColumnStatistics>| statistics.is_some_and(|it| it.order.is_floating());
    let has_nans = known.iter().any(|(statistics, known)| can_be_nan(statistics) && known.nans.is_some());
    let has_distinct = known.iter().any(|(_, known)| known.distinct.is_some_and(|distinct| distinct > 0));
    let has_orders = metadata.column_orders.iter().any(|order| *order != ColumnOrder::TypeDefined);
    let mut titles = vec![("column", Side::Left), ("nulls", Side::Right)];
    titles.extend(has_nans.then_some(("NaNs", Side::Right)));
    titles.extend(has_distinct.then_some(("distinct", Side::Right)));
    titles.extend([("min", Side::Left), ("max", Side::Left)]);
    titles.extend(has_orders.then_some(("order", Side::Left)));
    let mut table = Table::new(titles).indented(2);
    let count = |count: Option<u64>| count.map_or("-".to_string(), thousands);
    for ((index, leaf), (statistics, known)) in metadata.schema.leaves().iter().enumerate().zip(&known) {
        let text = |bound| statistics.and_then(|it| it.text(bound)).unwrap_or_else(|| "-".to_string());
        let mut cells = vec![printable(&metadata.schema.path(leaf.node)), count(known.nulls)];
        cells.extend(has_nans.then(|| count(known.nans.filter(|_| can_be_nan(statistics)))));
        cells.extend(has_distinct.then(|| count(known.distinct)));
        cells.extend([text(known.min), text(known.max)]);
        let order =
            || metadata.column_orders.get(index).map_or_else(|| "-".to_string(), |it| order_name(*it));
        cells.extend(has_orders.then(order));
        table.push(cells);
    }
    print_table(&table, terminal, out);
}

fn row_groups(metadata: &FileMetaData, terminal: Terminal, out: &mut Vec<u8>) {
    let mut table = Table::new([
        ("number", Side::Right),
        ("first row", Side::Right),
        ("rows", Side::Right),
        ("offset", Side::Right),
        ("compressed", Side::Right),
        ("raw", Side::Right),
        ("ratio", Side::Right),
    ])
    .indented(2);
    for (number, group) in metadata.row_groups.iter().enumerate().take(ROW_GROUPS_SHOWN) {
        let sum = |of: fn(&marquetry::parquet::format::ColumnChunk) -> u64| {
            group.columns.iter().map(of).fold(0_u64, u64::saturating_add)
        };
        let (compressed, uncompressed) =
            (sum(|chunk| chunk.compressed_bytes), sum(|chunk| chunk.uncompressed_bytes));
        let offset = group.columns.iter().map(|chunk| chunk.first_page_offset()).min();
        table.push(vec![
            number.to_string(),
            thousands(group.first_row),
            thousands(group.rows),
            offset.map_or("-".to_string(), thousands),
            size(compressed),
            size(uncompressed),
            ratio(uncompressed, compressed),
        ]);
    }
    print_table(&table, terminal, out);
    if let Some(more) = metadata.row_groups.len().checked_sub(ROW_GROUPS_SHOWN).filter(|more| *more > 0) {
        out.extend_from_slice(format!("  … {more} more; --json lists them all\n").as_bytes());
    }
}
