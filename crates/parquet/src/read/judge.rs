//! Pages that need not be decoded: the statistics in their headers say that no value in them passes.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::format::{FileMetaData, PageKind};
use crate::prune::{Accepts, Counts, LeafOrder, Test, Verdict};

/// Tests that a page is judged by, at most: of more, one is likely passed.
const TESTS_MAX: usize = 16;
/// Bytes of a value of a type of one width, at most.
const WIDTH_MAX: usize = 1 << 10;
/// What it costs to judge a page by one of them.
const JUDGE_UNITS: u64 = 150;

/// All tests of a leaf's values. A page in which no value passes any of them is handed out as if all its rows were null: so each
/// test still says what it would say of the values, and so does whatever is made of the tests.
#[derive(Debug)]
pub(crate) struct PageTests {
    metadata: Arc<FileMetaData>,
    tests: Vec<Test>,
    order: LeafOrder,
}

impl PageTests {
    /// For a leaf of which these are all tests. `None` where nulls would pass one, and for a leaf in a list: how many rows a page has
    /// only its levels know. (The header of a V2 page says it, but see `NestedLeaf::levels`.)
    pub(crate) fn of(metadata: &Arc<FileMetaData>, leaf: usize, tests: &[&Test]) -> Option<PageTests> {
        let is_repeated = metadata.schema.leaves().get(leaf)?.repetition_max > 0;
        let are_of_values = tests.iter().all(|test| matches!(test.accepts, Accepts::Values(_)));
        let order = LeafOrder::of(metadata, leaf)?;
        // A null of a wide type takes the memory of a value.
        let width = metadata.schema.leaves().get(leaf)?.physical_type.width().unwrap_or(0);
        let is_good = are_of_values && !is_repeated && width <= WIDTH_MAX && tests.len() <= TESTS_MAX;
        let tests = tests.iter().map(|test| (*test).clone());
        is_good.then(|| PageTests { metadata: Arc::clone(metadata), tests: tests.collect(), order })
    }

    /// What it costs to judge a page.
    pub(super) fn units(&self) -> u64 {
        JUDGE_UNITS * self.tests.len() as u64
    }

    /// Whether no value of a page passes a test, by its header; what came of it is counted.
    pub(super) fn rule_out(&self, kind: &PageKind, counts: &mut Counts) -> bool {
        let (statistics, values) = match kind {
            PageKind::Data(page) => (&page.statistics, page.values),
            PageKind::DataV2(page) => (&page.statistics, page.values),
            PageKind::Dictionary(_) | PageKind::Other(_) => return false,
        };
        let Some(statistics) = statistics else {
            counts.absent += 1;
            return false;
        };
        let known = self.order.of_statistics(statistics, Some(values.into()));
        let schema = &self.metadata.schema;
        let rules_out = |test: &Test| test.judge(&known, &self.order, schema) == Verdict::None;
        let is_out = self.tests.iter().all(rules_out);
        *(if is_out { &mut counts.pruned } else { &mut counts.undecided }) += 1;
        is_out
    }
}
