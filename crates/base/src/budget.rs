//! How much work one step may do.

use core::fmt;

/// The work one [`step`](crate::Machine::step) may do, charged as it is done.
///
/// Work is counted in *units*. A unit is about one nanosecond on a 3 GHz core, but it is a count, not a time: the same
/// input always costs the same units, so the largest step is a number that tests can hold. What a byte or a value
/// costs is its [`Price`].
///
/// A host limits a budget by a count, by its own `need_preempt`, or both:
///
/// ```
/// use marquetry_base::Budget;
///
/// let mut counted = Budget::default();
/// assert_eq!(counted.left(), Budget::DEFAULT_UNITS);
///
/// let mut asked = 0;
/// let mut need_preempt = || { asked += 1; asked > 2 };
/// let mut preempted = Budget::with_preempt(Budget::DEFAULT_UNITS, &mut need_preempt);
/// assert!(!preempted.is_spent());
/// assert!(!preempted.is_spent());
/// assert!(preempted.is_spent());
/// ```
pub struct Budget<'host> {
    left: u64,
    spent: u64,
    preempt: Option<&'host mut dyn FnMut() -> bool>,
}

/// What a piece of work costs: units per 1,024 bytes and per 1,024 values.
///
/// Prices are constants beside the code they price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Units for 1,024 bytes.
    pub kib: u32,
    /// Units for 1,024 values.
    pub kilovalue: u32,
}

impl Budget<'_> {
    /// The units a step gets by default: about 0.15 ms on a fast processor. Prices are measured there; one that takes three
    /// times as long for some work keeps within the task quota of Seastar's reactor (0.5 ms). What is atomic may cost more: a
    /// block of ZSTD whose frame refers back 2 MiB at the most up to 222,600 units, a compressor's chunk or the choice of an
    /// encoding up to 250,000, a structure of the metadata of
    /// [`Limits::structure_bytes`](crate::Limits::structure_bytes) three for a byte: 196,608 by default.
    pub const DEFAULT_UNITS: u64 = 150_000;

    /// A budget of `units`.
    pub fn new(units: u64) -> Budget<'static> {
        Budget { left: units, spent: 0, preempt: None }
    }

    /// A budget that is never spent: a step ends only when it has an answer.
    pub fn unlimited() -> Budget<'static> {
        Budget::new(u64::MAX)
    }

    /// A budget that is spent after `units`, or as soon as `need_preempt` returns true.
    pub fn with_preempt(units: u64, need_preempt: &mut dyn FnMut() -> bool) -> Budget<'_> {
        Budget { left: units, spent: 0, preempt: Some(need_preempt) }
    }

    /// True when the step should yield. Calls the host's `need_preempt`, if it gave one.
    pub fn is_spent(&mut self) -> bool {
        self.left == 0 || self.preempt.as_mut().is_some_and(|need_preempt| need_preempt())
    }

    /// Charges `bytes` and `values` at `price`. The last slice of a step may cost more than is left.
    pub fn charge(&mut self, price: Price, bytes: usize, values: usize) {
        self.charge_units(price.of(bytes, values));
    }

    /// Charges units that are already computed.
    pub fn charge_units(&mut self, units: u64) {
        self.left = self.left.saturating_sub(units);
        self.spent = self.spent.saturating_add(units);
    }

    /// How many values of `price` the rest of the budget pays for.
    pub fn values_left(&self, price: Price) -> usize {
        let values = u128::from(self.left) * 1024 / u128::from(price.kilovalue.max(1));
        usize::try_from(values).unwrap_or(usize::MAX)
    }

    /// How many bytes of `price` the rest of the budget pays for.
    pub fn bytes_left(&self, price: Price) -> usize {
        let bytes = u128::from(self.left) * 1024 / u128::from(price.kib.max(1));
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Units not yet spent.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Units charged so far, including any overdraft.
    pub fn spent(&self) -> u64 {
        self.spent
    }
}

impl Default for Budget<'_> {
    /// [`Budget::DEFAULT_UNITS`].
    fn default() -> Self {
        Budget { left: Self::DEFAULT_UNITS, spent: 0, preempt: None }
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("left", &self.left)
            .field("spent", &self.spent)
            .field("preempt", &self.preempt.is_some())
            .finish()
    }
}

impl Price {
    /// Work charged per byte.
    pub const fn per_kib(units: u32) -> Price {
        Price { kib: units, kilovalue: 0 }
    }

    /// Work charged per value.
    pub const fn per_kilovalue(units: u32) -> Price {
        Price { kib: 0, kilovalue: units }
    }

    /// The units that `bytes` and `values` cost, rounded up; at least one, so that every slice counts.
    pub fn of(self, bytes: usize, values: usize) -> u64 {
        let milli = u128::from(self.kib) * bytes as u128 + u128::from(self.kilovalue) * values as u128;
        u64::try_from(milli.div_ceil(1024)).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_add_up_and_saturate() {
        let mut budget = Budget::new(100);
        budget.charge(Price::per_kib(1024), 60, 0);
        assert_eq!((budget.left(), budget.spent(), budget.is_spent()), (40, 60, false));
        assert_eq!(budget.values_left(Price::per_kilovalue(2048)), 20);
        assert_eq!(budget.bytes_left(Price::per_kib(512)), 80);
        budget.charge(Price { kib: 1024, kilovalue: 1024 }, 30, 30);
        assert_eq!((budget.left(), budget.spent(), budget.is_spent()), (0, 120, true));
        budget.charge_units(u64::MAX);
        assert_eq!(budget.spent(), u64::MAX);
    }

    #[test]
    fn the_smallest_slice_costs_a_unit() {
        assert_eq!(Price::per_kilovalue(1).of(0, 1), 1);
        assert_eq!(Price::per_kib(u32::MAX).of(usize::MAX, 0), u64::MAX);
    }
}
