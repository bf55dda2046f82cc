//! How many rows a page has.

use std::sync::atomic::{AtomicU64, Ordering};

use marquetry_base::cast::u64_of;

/// Rows of the first page, of whose size nothing is known.
const ROWS_FIRST: u64 = 16;
/// The most rows of a page.
const ROWS_MAX: u64 = 5_000;
/// A page has at most so many times the rows of one that came before, whatever their size: rows differ.
const GROWTH_MAX: u64 = 8;

/// The size of pages, which those that came decide. Shared by all pieces of a table.
#[derive(Debug)]
pub(super) struct Pace {
    page_bytes: u64,
    /// Bytes of a row, as they were lately; more if any page had more. 0 before the first one.
    row_bytes: AtomicU64,
    /// The most rows that a page has had.
    rows: AtomicU64,
}

impl Pace {
    pub(super) fn new(page_bytes: u64) -> Pace {
        Pace { page_bytes, row_bytes: AtomicU64::new(0), rows: AtomicU64::new(0) }
    }

    /// For rows of other columns of the same table: nothing is known yet.
    pub(super) fn like(&self) -> Pace {
        Pace::new(self.page_bytes)
    }

    /// Rows of the next page, at least one.
    pub(super) fn rows(&self) -> i32 {
        let rows = match self.row_bytes.load(Ordering::Relaxed) {
            0 => ROWS_FIRST,
            bytes => {
                let most = self.rows.load(Ordering::Relaxed).saturating_mul(GROWTH_MAX).max(ROWS_FIRST);
                (self.page_bytes / bytes).min(most)
            }
        };
        i32::try_from(rows.clamp(1, ROWS_MAX)).unwrap_or(1)
    }

    /// Takes notice of a page.
    pub(super) fn note(&self, rows: usize, bytes: usize) {
        let Some(row_bytes) = u64_of(bytes).checked_div(u64_of(rows)) else { return };
        self.rows.fetch_max(u64_of(rows), Ordering::Relaxed);
        // Large rows are believed at once, and forgotten slowly.
        let before = self.row_bytes.load(Ordering::Relaxed);
        let kept = before - before / 8;
        self.row_bytes.store(row_bytes.max(kept).max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_up_to_their_bytes() {
        let pace = Pace::new(1 << 20);
        assert_eq!(pace.rows(), 16);
        pace.note(16, 16 * 100);
        assert_eq!(pace.rows(), 16 * 8);
        pace.note(128, 128 * 100);
        assert_eq!(pace.rows(), 1024);
        pace.note(1024, 1024 * 100);
        assert_eq!(pace.rows(), 5_000);
        // An empty page says nothing.
        pace.note(0, 0);
        assert_eq!(pace.rows(), 5_000);
    }

    #[test]
    fn large_rows_make_small_pages() {
        let pace = Pace::new(1 << 20);
        pace.note(16, 16 * 100);
        pace.note(1, 5 << 20);
        assert_eq!(pace.rows(), 1);
        let mut pages = 0;
        while pace.rows() < 128 {
            pace.note(usize::try_from(pace.rows()).unwrap(), usize::try_from(pace.rows()).unwrap() * 100);
            pages += 1;
        }
        assert!((20..100).contains(&pages), "{pages}");
    }
}
