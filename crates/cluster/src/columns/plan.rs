//! How a Parquet file is cut into cells: at its pages, and never across column chunks.

use std::collections::HashMap;
use std::ops::Range;

use marquetry_tables::files::{Extent, ExtentKind};

use super::map::Map;
use super::part::{FILTERS, FOOTER, INDEXES, Part};

/// Pages that follow each other share a cell up to so many bytes: few enough that who looks up a row reads little besides, and enough that who
/// reads all of them has few rows to ask for.
pub(super) const CELL_BYTES: u64 = 128 << 10;
/// What is larger is cut: servers hold a cell in memory several times while they read or write it.
const CELL_BYTES_MAX: u64 = 1 << 20;
/// The bytes of a partition: servers advise 100 MB at most.
const PARTITION_BYTES: u64 = 64 << 20;
const _: () = assert!(CELL_BYTES <= CELL_BYTES_MAX && CELL_BYTES_MAX <= PARTITION_BYTES);

/// Bytes of the file that are one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) part: Part,
    pub(super) range: Range<u64>,
}

/// Cuts a file, whose extents follow each other without holes, into cells; and says where they are.
pub(super) fn plan(extents: &[Extent]) -> (Vec<Cell>, Map) {
    let mut cutting = Cutting::default();
    for extent in extents {
        let whose = whose(extent);
        let end = extent.offset + extent.bytes;
        let mut at = extent.offset;
        while at < end {
            let next = end.min(at + CELL_BYTES_MAX);
            cutting.add(whose, at..next);
            at = next;
        }
    }
    cutting.end_cell();
    (cutting.cells, cutting.map)
}

/// The column and the row group of the partition that an extent is in.
fn whose(extent: &Extent) -> (i32, i32) {
    let number = |number: usize| i32::try_from(number).ok();
    let of_chunk = || {
        let (row_group, leaf) = extent.chunk?;
        let row_group = number(row_group)?;
        match extent.kind {
            ExtentKind::Page(_) | ExtentKind::Pages => Some((number(leaf)?, row_group)),
            ExtentKind::ColumnIndex | ExtentKind::OffsetIndex => Some((INDEXES, row_group)),
            ExtentKind::BloomFilter => Some((FILTERS, row_group)),
            _ => None,
        }
    };
    of_chunk().unwrap_or((FOOTER, 0))
}

#[derive(Default)]
struct Cutting {
    cells: Vec<Cell>,
    map: Map,
    /// The next cell.
    open: Option<((i32, i32), Range<u64>)>,
    /// The last shard of each column and row group, and its bytes.
    shards: HashMap<(i32, i32), (i32, u64)>,
}

impl Cutting {
    fn add(&mut self, whose: (i32, i32), bytes: Range<u64>) {
        match &mut self.open {
            Some((of, range)) if *of == whose && bytes.end - range.start <= CELL_BYTES => {
                range.end = bytes.end;
            }
            _ => {
                self.end_cell();
                self.open = Some((whose, bytes));
            }
        }
    }

    fn end_cell(&mut self) {
        let Some(((column, row_group), range)) = self.open.take() else { return };
        let bytes = range.end - range.start;
        let (shard, filled) = self.shards.entry((column, row_group)).or_default();
        if *filled > 0 && *filled + bytes > PARTITION_BYTES {
            (*shard, *filled) = (*shard + 1, 0);
        }
        *filled += bytes;
        let part = Part { column, row_group, shard: *shard };
        self.map.push(part, bytes);
        self.cells.push(Cell { part, range });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use marquetry_base::Limits;
    use marquetry_parquet::batch::Batch;
    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
    use marquetry_parquet::write::BloomOptions;
    use marquetry_tables::files::{FileMap, MapOptions, ParquetFile};
    use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
    use marquetry_tables::{ColumnPath, Destination, Table};

    /// Two row groups of two columns, with indexes and a Bloom filter.
    fn file(rows: i64, page_rows: usize) -> (tempfile::TempDir, ParquetFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let leaf = |name| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None)).required();
        let schema = Arc::new(Schema::of_fields(&[leaf("a"), leaf("b")]).unwrap());
        let mut options = ParquetOptions::default();
        options.write.row_group_rows = u64::try_from(rows).unwrap().div_ceil(2);
        options.write.page_rows = page_rows;
        options.bloom = vec![(ColumnPath::of(["a"]), BloomOptions::default())];
        let mut new = NewParquetFile::new(&path, options).unwrap();
        new.begin(&Table::new("a", schema)).unwrap();
        // What no dictionary and no codec makes small.
        let scattered = |row: i64| row.wrapping_mul(0x5851_f42d_4c95_7f2d_i64);
        let b = (0..rows).map(|row| scattered(row) ^ scattered(row) >> 29).collect::<Vec<i64>>();
        new.write(Batch::of_values([(0..rows).collect::<Vec<i64>>().into(), b.into()]).unwrap()).unwrap();
        new.finish().unwrap();
        new.commit().unwrap();
        let file = ParquetFile::open(&path, Limits::DEFAULT).unwrap();
        (folder, file)
    }

    /// Every byte is in one cell; no cell has bytes of two column chunks; pages are whole.
    #[test]
    fn cells_are_whole_pages_of_one_chunk() {
        let (_folder, file) = file(100_000, 1000);
        let extents = FileMap::of(&file, &MapOptions::default()).unwrap().extents;
        let (cells, map) = plan(&extents);
        assert_eq!(map.bytes(), file.bytes());
        let mut at = 0;
        for cell in &cells {
            assert_eq!(cell.range.start, at);
            assert!(cell.range.end - at <= CELL_BYTES_MAX);
            assert_eq!(map.parts_of(&cell.range), [(cell.part, cell.range.clone())]);
            at = cell.range.end;
        }
        assert_eq!(at, file.bytes());
        let starts: Vec<u64> = cells.iter().map(|cell| cell.range.start).collect();
        for extent in &extents {
            // One that is in two cells would start in the one and end in the other.
            let cell = starts.partition_point(|start| *start <= extent.offset) - 1;
            assert!(extent.offset + extent.bytes <= cells[cell].range.end, "{extent:?}");
        }
        let mut parts: Vec<(i32, i32)> =
            map.parts().iter().map(|part| (part.column, part.row_group)).collect();
        parts.dedup();
        assert_eq!(
            parts,
            [
                (FILTERS, 0),
                (FILTERS, 1),
                (INDEXES, 0),
                (INDEXES, 1),
                (FOOTER, 0),
                (0, 0),
                (0, 1),
                (1, 0),
                (1, 1)
            ]
        );
        for (row_group, group) in file.metadata().row_groups.iter().enumerate() {
            for (leaf, chunk) in group.columns.iter().enumerate() {
                let start = chunk.first_page_offset();
                let held = map.parts_of(&(start..start + chunk.compressed_bytes));
                let part = Part {
                    column: i32::try_from(leaf).unwrap(),
                    row_group: i32::try_from(row_group).unwrap(),
                    shard: 0,
                };
                assert_eq!(held, [(part, start..start + chunk.compressed_bytes)]);
            }
        }
    }

    #[test]
    fn what_is_large_is_cut() {
        let extent = |offset: u64, bytes: u64, chunk, kind| {
            let mut extent = FileMap::of(&file(10, 10).1, &MapOptions::default()).unwrap().extents.remove(0);
            (extent.offset, extent.bytes, extent.chunk, extent.kind) = (offset, bytes, chunk, kind);
            extent
        };
        let pages = 150 << 20;
        let (cells, map) = plan(&[
            extent(0, 4, None, ExtentKind::Magic),
            extent(4, pages, Some((0, 7)), ExtentKind::Pages),
            extent(pages + 4, 3 << 20, None, ExtentKind::Footer),
        ]);
        assert!(cells.iter().all(|cell| cell.range.end - cell.range.start <= CELL_BYTES_MAX));
        let shards: Vec<i32> =
            map.parts().iter().filter(|part| part.column == 7).map(|part| part.shard).collect();
        assert_eq!(shards, [0, 1, 2]);
        for shard in shards {
            let of_shard = cells.iter().filter(|cell| cell.part == Part { column: 7, row_group: 0, shard });
            assert!(of_shard.map(|cell| cell.range.end - cell.range.start).sum::<u64>() <= PARTITION_BYTES);
        }
        assert_eq!(map.bytes(), pages + 4 + (3 << 20));
        assert_eq!(map.parts_of(&(0..4)), [(Part::FOOTER, 0..4)]);
    }
}
