//! A writer that is no longer wanted, released in slices.

use alloc::sync::Arc;
use alloc::vec;

use marquetry_base::{Budget, Release, release_all};

use super::{FileWriter, State};

/// For a file that will not be finished: afterwards the writer can only be released further, or dropped.
///
/// In one piece go, of each column, its open page, its dictionary, and the hashes for its Bloom filters. Columns whose work is
/// [shared](FileWriter::share) are released where they are.
impl Release for FileWriter {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        self.state = State::End;
        if let Some(batch) = self.batch.take().and_then(|pending| Arc::into_inner(pending.batch)) {
            self.released.columns(batch.columns);
        }
        if let Some(column) = self.column.take() {
            self.released.columns(vec![column]);
        }
        let FileWriter { released, out, spill_out, spilled, columns, ending, .. } = self;
        release_all(&mut [released, out, spill_out, spilled, columns, ending], budget)
    }
}
