//! Merging SSTables: each rule by hand, and random writes against a model that says the same in other words.
#![allow(clippy::cast_possible_truncation, reason = "tests run where addresses have 64 bits")]

mod cql;
#[path = "../sstable/craft.rs"]
#[allow(dead_code, reason = "shared with the tests of the reader, which use more of it")]
mod craft;
#[path = "../sstable/files.rs"]
#[allow(dead_code, reason = "shared with the tests of the reader, which use more of it")]
mod files;
mod fixtures;
mod form;
mod hand;
mod imported;
mod large;
mod model;
mod random;
mod read;
mod real;
mod rows;
#[path = "../sstable/writing.rs"]
#[allow(dead_code, reason = "shared with the tests of the reader, which use more of it")]
mod writing;
mod written;

use std::sync::Arc;

use marquetry_base::{Budget, Result};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::merge::{MergeOptions, MergeStep, Merger};

/// The most units of a step. A step ends once its budget is spent; what it does last may cost as much as copying 512 KiB.
const STEP_UNITS_MAX: u64 = Budget::DEFAULT_UNITS + 100_000;

/// How a host treats a merger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    /// Units of each step.
    pub(crate) units: u64,
    /// Feeds whatever has room, before it is asked for.
    pub(crate) is_early: bool,
}

pub(crate) const PLAIN: Host = Host { units: Budget::DEFAULT_UNITS, is_early: false };

/// Merges batches.
pub(crate) fn merged(
    table: &Arc<TableColumns>,
    inputs: Vec<Vec<MutationBatch>>,
    options: &MergeOptions,
    host: Host,
) -> Result<Vec<MutationBatch>> {
    let mut merger = Merger::new(Arc::clone(table), inputs.len(), options.clone())?;
    let mut inputs: Vec<_> = inputs.into_iter().map(Vec::into_iter).collect();
    let mut merged = Vec::new();
    loop {
        let mut budget = Budget::new(host.units);
        let step = merger.step(&mut budget)?;
        assert!(budget.spent() <= STEP_UNITS_MAX, "a step of {} units", budget.spent());
        let needed = match step {
            MergeStep::Ready(batch) => {
                merged.push(batch);
                continue;
            }
            MergeStep::Yield => continue,
            MergeStep::Done => return Ok(merged),
            MergeStep::Need(input) => input,
        };
        for (number, input) in inputs.iter_mut().enumerate() {
            if number == needed || host.is_early && merger.has_room(number) {
                match input.next() {
                    Some(batch) => merger.feed(number, batch)?,
                    None => merger.finish(number),
                }
            }
        }
    }
}
