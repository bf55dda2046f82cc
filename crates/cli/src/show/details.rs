//! What only some files tell: how rows are sorted, sizes and levels, places of geometries, indexes.

use marquetry::base::cast::{u64_of, usize_of_u32};
use marquetry::describe::{encryption_name, geometry_name};
use marquetry::parquet::format::{BoundingBox, ColumnChunk, FileMetaData, RowGroup};
use marquetry::parquet::schema::PhysicalType;

use crate::numbers::{plural, size, thousands};
use crate::table::{Side, Table, printable};

/// How the rows of all row groups are sorted: `a, b descending`. `None` where no row group says.
pub(super) fn sorted_by(metadata: &FileMetaData) -> Option<String> {
    let first = metadata.row_groups.iter().find(|group| !group.sorting_columns.is_empty())?;
    if metadata.row_groups.iter().any(|group| group.sorting_columns != first.sorting_columns) {
        return Some("differs by row group; --json has it".to_string());
    }
    Some(sorting(metadata, first))
}

fn sorting(metadata: &FileMetaData, group: &RowGroup) -> String {
    let column = |sorting: &marquetry::parquet::format::SortingColumn| {
        let leaf = metadata.schema.leaves().get(usize_of_u32(sorting.column));
        let path = leaf.map_or_else(
            || format!("column {}", sorting.column),
            |leaf| printable(&metadata.schema.path(leaf.node)),
        );
        let descending = if sorting.descending { " descending" } else { "" };
        let nulls = if sorting.nulls_first { " nulls first" } else { "" };
        format!("{path}{descending}{nulls}")
    };
    group.sorting_columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Which chunks have a page index or a Bloom filter. `None` where none has.
pub(super) fn indexes(metadata: &FileMetaData) -> Option<String> {
    let chunks = || metadata.row_groups.iter().flat_map(|group| &group.columns);
    let count = |has: fn(&ColumnChunk) -> bool| chunks().filter(|chunk| has(chunk)).count();
    let all = plural(chunks().count(), "column chunk");
    let bounds = count(|chunk| chunk.column_index.is_some());
    let offsets = count(|chunk| chunk.offset_index.is_some());
    let blooms = count(|chunk| chunk.bloom_filter.is_some());
    let kinds = [("page offsets", offsets), ("page bounds", bounds), ("Bloom filters", blooms)];
    let kinds = kinds.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> =
        kinds.map(|(kind, count)| format!("{kind} {}", thousands(u64_of(*count)))).collect();
    (!parts.is_empty()).then(|| format!("{} (of {all})", parts.join(", ")))
}

/// How columns are encrypted.
pub(super) fn encryption(metadata: &FileMetaData) -> Option<String> {
    metadata.encryption.map(encryption_name)
}

/// Sizes of texts and bytes without encoding, and how often each level stands. `None` where no chunk says; of flat columns of other
/// types it says nothing that is not known.
pub(super) fn sizes_and_levels(metadata: &FileMetaData) -> Option<Table> {
    let mut table = Table::new([
        ("column", Side::Left),
        ("unencoded", Side::Right),
        ("repetition levels", Side::Left),
        ("definition levels", Side::Left),
    ])
    .indented(2);
    let mut is_told = false;
    for (index, leaf) in metadata.schema.leaves().iter().enumerate() {
        let chunks = || metadata.row_groups.iter().filter_map(|group| group.columns.get(index));
        if (leaf.is_flat() && leaf.physical_type != PhysicalType::ByteArray)
            || chunks().all(|chunk| chunk.size_statistics.is_none())
        {
            continue;
        }
        is_told = true;
        let sizes = || chunks().map(|chunk| chunk.size_statistics.as_deref());
        let unencoded =
            sizes().try_fold(0_u64, |sum, sizes| sum.checked_add(sizes?.unencoded_byte_array_data_bytes?));
        table.push(vec![
            printable(&metadata.schema.path(leaf.node)),
            unencoded.map_or_else(|| "-".to_string(), size),
            levels(sizes().map(|sizes| sizes.map(|sizes| &*sizes.repetition_level_histogram))),
            levels(sizes().map(|sizes| sizes.map(|sizes| &*sizes.definition_level_histogram))),
        ]);
    }
    is_told.then_some(table)
}

/// Histograms added up: `0: 5, 1: 12`. `-` where one is not known.
fn levels<'a>(histograms: impl Iterator<Item = Option<&'a [u64]>>) -> String {
    let mut sums: Vec<u64> = Vec::new();
    for histogram in histograms {
        let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else {
            return "-".to_string();
        };
        sums.resize(sums.len().max(histogram.len()), 0);
        for (sum, count) in sums.iter_mut().zip(histogram) {
            *sum = sum.saturating_add(*count);
        }
    }
    let level = |(level, count): (usize, &u64)| format!("{level}: {}", thousands(*count));
    sums.iter().enumerate().map(level).collect::<Vec<_>>().join(", ")
}

/// Which columns have Bloom filters, and how many bytes these take with their headers. `None` where none has.
pub(super) fn bloom_filters(metadata: &FileMetaData) -> Option<Table> {
    let mut table = Table::new([
        ("column", Side::Left),
        ("filters", Side::Right),
        ("all", Side::Right),
        ("smallest", Side::Right),
        ("largest", Side::Right),
    ])
    .indented(2);
    let mut is_told = false;
    for (index, leaf) in metadata.schema.leaves().iter().enumerate() {
        let chunks = metadata.row_groups.iter().filter_map(|group| group.columns.get(index));
        let filters: Vec<Option<u64>> =
            chunks.filter_map(|chunk| chunk.bloom_filter).map(|(_, bytes)| bytes.map(u64::from)).collect();
        if filters.is_empty() {
            continue;
        }
        is_told = true;
        // Writers need not tell the length; --pages reads it.
        let told: Option<Vec<u64>> = filters.iter().copied().collect();
        let text = |of: fn(&[u64]) -> u64| told.as_deref().map_or_else(|| "-".to_string(), |it| size(of(it)));
        table.push(vec![
            printable(&metadata.schema.path(leaf.node)),
            thousands(u64_of(filters.len())),
            text(|bytes| bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))),
            text(|bytes| bytes.iter().copied().min().unwrap_or(0)),
            text(|bytes| bytes.iter().copied().max().unwrap_or(0)),
        ]);
    }
    is_told.then_some(table)
}

/// Types and places of geometries. `None` where no chunk says.
pub(super) fn geometries(metadata: &FileMetaData) -> Option<Table> {
    let mut table = Table::new([
        ("column", Side::Left),
        ("x", Side::LeftWhole),
        ("y", Side::LeftWhole),
        ("z", Side::LeftWhole),
        ("m", Side::LeftWhole),
        ("types", Side::Left),
    ])
    .indented(2);
    let mut is_told = false;
    for (index, leaf) in metadata.schema.leaves().iter().enumerate() {
        let chunks = || metadata.row_groups.iter().filter_map(|group| group.columns.get(index));
        let known = || chunks().map(|chunk| chunk.geospatial_statistics.as_deref());
        if known().all(|known| known.is_none()) {
            continue;
        }
        is_told = true;
        // A chunk without a box has nothing to put into one, if its other statistics are there.
        let is_whole = known().all(|known| known.is_some());
        let boxes: Vec<BoundingBox> =
            known().filter(|_| is_whole).filter_map(|known| known?.bounding_box).collect();
        let mut codes: Vec<i32> =
            known().flatten().flat_map(|known| known.geospatial_types.iter().copied()).collect();
        codes.sort_unstable();
        codes.dedup();
        let all_types = known().all(|known| known.is_some_and(|known| !known.geospatial_types.is_empty()));
        let name = |code: &i32| geometry_name(*code).unwrap_or_else(|| code.to_string());
        let types = codes.iter().map(name).collect::<Vec<_>>().join(", ");
        let side = |of: &dyn Fn(&BoundingBox) -> Option<(f64, f64)>| {
            let sides: Vec<(f64, f64)> = boxes.iter().filter_map(of).collect();
            // A range that wraps around has no smallest value to join others with.
            if sides.iter().any(|(min, max)| min > max) && sides.len() > 1 {
                return "around the antimeridian".to_string();
            }
            let ends = sides.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            ends.map_or_else(|| "-".to_string(), |(min, max)| format!("{min} to {max}"))
        };
        table.push(vec![
            printable(&metadata.schema.path(leaf.node)),
            side(&|it| Some(it.x)),
            side(&|it| Some(it.y)),
            side(&|it| it.z),
            side(&|it| it.m),
            if all_types { types } else { format!("{types} (not all known)").trim_start().to_string() },
        ]);
    }
    is_told.then_some(table)
}
