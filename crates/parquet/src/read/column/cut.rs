//! Where a batch of a nested leaf is cut.

use marquetry_base::{Budget, Price};
use marquetry_kernels::levels;

use crate::batch::Levels;

/// Levels that are looked at at a time where a batch of a nested leaf is cut, and their price.
const CUT_ENTRIES: usize = 32 << 10;
const CUT_PRICE: Price = Price::per_kilovalue(150);

/// Where a batch of a nested leaf is to be cut, as far as that is found.
#[derive(Default)]
pub(super) struct Cut {
    rows: usize,
    pub(super) entries: usize,
    pub(super) values: usize,
}

impl Cut {
    /// Looks for the entry that begins the row number `rows`, which is there, and counts the values before it. False when the budget is
    /// spent before.
    pub(super) fn find(
        &mut self,
        levels: &Levels,
        rows: usize,
        definition_max: u8,
        budget: &mut Budget<'_>,
    ) -> bool {
        loop {
            let slice = self.entries..levels.definition.len().min(self.entries + CUT_ENTRIES);
            let found = match &levels.repetition {
                None => Some(rows - self.rows).filter(|&left| left <= slice.len()),
                Some(repetition) => levels::find_below(&repetition[slice.clone()], 1, rows - self.rows),
            };
            let slice = slice.start..slice.start + found.unwrap_or(slice.len());
            self.values += levels::count(&levels.definition[slice.clone()], definition_max);
            self.rows += match &levels.repetition {
                None => slice.len(),
                Some(repetition) => slice.len() - levels::count(&repetition[slice.clone()], 1),
            };
            self.entries = slice.end;
            budget.charge(CUT_PRICE, 0, slice.len());
            if found.is_some() || slice.end == levels.definition.len() {
                return true;
            }
            if budget.is_spent() {
                return false;
            }
        }
    }
}
