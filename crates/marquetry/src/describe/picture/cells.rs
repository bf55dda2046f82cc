//! What is drawn of a wide or long file: column chunks that are too many are drawn together.

use std::cmp::Reverse;

use marquetry_parquet::format::FileMetaData;

/// Column chunks that are drawn singly, at most; the documentation says so. One takes about 120 bytes of the page.
pub(super) const CELLS_MAX: usize = 20_000;

/// Row groups that are kept apart even if columns must be drawn together for that.
const BANDS_MIN: usize = 64;

/// How the row groups and columns of a file are drawn: bands of row groups, and columns, the smallest of which may share a place.
pub(super) struct Cells {
    /// Row groups in each band but the last.
    pub(super) groups_of_band: usize,
    pub(super) bands: usize,
    /// The leaf of each column that is drawn singly, in the order of the file.
    pub(super) leaves: Vec<usize>,
    /// The column of each leaf; those that share one have the number after the last.
    pub(super) column_of: Vec<usize>,
}

/// Whether each column chunk of a file is drawn singly.
pub(super) fn is_whole(metadata: &FileMetaData) -> bool {
    metadata.row_groups.len().saturating_mul(metadata.schema.leaves().len()) <= CELLS_MAX
}

impl Cells {
    pub(super) fn of(metadata: &FileMetaData) -> Cells {
        let (groups, leaves) = (metadata.row_groups.len(), metadata.schema.leaves().len());
        let bands_max = (CELLS_MAX / leaves.max(1)).max(BANDS_MIN);
        let groups_of_band = groups.div_ceil(bands_max).max(1);
        let bands = groups.div_ceil(groups_of_band);
        let columns_max = CELLS_MAX / bands.max(1);
        let mut kept: Vec<usize> = (0..leaves).collect();
        if leaves > columns_max {
            let mut bytes = vec![0_u64; leaves];
            for group in &metadata.row_groups {
                for (sum, chunk) in bytes.iter_mut().zip(&group.columns) {
                    *sum = sum.saturating_add(chunk.compressed_bytes);
                }
            }
            kept.sort_by_key(|&leaf| (Reverse(bytes[leaf]), leaf));
            kept.truncate(columns_max.saturating_sub(1).max(1));
            kept.sort_unstable();
        }
        let mut column_of = vec![kept.len(); leaves];
        for (column, &leaf) in kept.iter().enumerate() {
            column_of[leaf] = column;
        }
        Cells { groups_of_band, bands, leaves: kept, column_of }
    }

    /// The columns that are drawn, with the one that others share.
    pub(super) fn columns(&self) -> usize {
        self.leaves.len() + usize::from(self.leaves.len() < self.column_of.len())
    }

    /// The cell of a column chunk.
    pub(super) fn at(&self, row_group: usize, leaf: usize) -> usize {
        let column = self.column_of.get(leaf).copied().unwrap_or(0);
        row_group / self.groups_of_band * self.columns() + column
    }
}
