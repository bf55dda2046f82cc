//! Predicates: which rows are wanted.

use alloc::vec::Vec;

use marquetry_base::Result;

use super::{Known, LeafOrder, Ranges, Verdict, order_of};
use crate::schema::Schema;

/// Which rows are wanted: those for which it is true. There is no negation, because the opposite of a test is a test;
/// so a comparison with null, which is neither true nor false, needs no third value.
///
/// ```
/// use marquetry_parquet::prune::{Predicate, Quantifier, Ranges, Test};
///
/// // `5 <= x AND y = 7`, of the first two leaves; and its opposite.
/// let test = |leaf, ranges| Predicate::Test(Test::accepting(leaf, ranges));
/// let wanted = Predicate::And(vec![
///     test(0, Ranges::of_keys(5, i128::MAX)),
///     test(1, Ranges::of_keys(7, 7)),
/// ]);
/// assert_eq!(wanted.leaves(), [0, 1]);
/// assert_eq!(
///     wanted.not(),
///     Predicate::Or(vec![
///         Predicate::Test(Test { quantifier: Quantifier::All, ..Test::accepting(0, Ranges::of_keys(i128::MIN, 4)) }),
///         Predicate::Test(Test {
///             quantifier: Quantifier::All,
///             ..Test::accepting(1, Ranges::of_keys(7, 7).complement())
///         }),
///     ])
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// All of them are true; of none, every row is wanted.
    And(Vec<Predicate>),
    /// One of them is true; of none, no row is wanted.
    Or(Vec<Predicate>),
    /// A leaf's values are tested.
    Test(Test),
}

/// A test of a leaf's values, or of which of them are null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The leaf, by its index in the schema.
    pub leaf: usize,
    /// How many of a row's values must pass; a leaf that is in no list has one value a row.
    pub quantifier: Quantifier,
    /// What passes.
    pub accepts: Accepts,
}

/// How many of the values of a row must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// One of them.
    Any,
    /// Each of them. A null among them does not pass; an empty list passes, a list that is null does not.
    All,
}

/// What passes a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepts {
    /// Values in these ranges. A null never is.
    Values(Ranges),
    /// What is null, or what is not: a field's slots (see [`Shape`](crate::schema::Shape)), by the definition levels of the leaf's entries.
    Nulls {
        /// The definition level from which on there is a slot; below, an empty or null list has none.
        slot: u16,
        /// The definition level from which on the field is present.
        definition: u16,
        /// Nulls pass; otherwise, what is present.
        are_wanted: bool,
    },
}

impl Test {
    /// A test that a value passes which is in these ranges.
    pub fn accepting(leaf: usize, ranges: Ranges) -> Test {
        Test { leaf, quantifier: Quantifier::Any, accepts: Accepts::Values(ranges) }
    }

    /// The test that a row passes for which this one is false. For a null neither is true.
    #[must_use]
    pub fn not(&self) -> Test {
        let quantifier = match self.quantifier {
            Quantifier::Any => Quantifier::All,
            Quantifier::All => Quantifier::Any,
        };
        let accepts = match &self.accepts {
            Accepts::Values(ranges) => Accepts::Values(ranges.complement()),
            Accepts::Nulls { slot, definition, are_wanted } => {
                Accepts::Nulls { slot: *slot, definition: *definition, are_wanted: !are_wanted }
            }
        };
        Test { leaf: self.leaf, quantifier, accepts }
    }

    /// The values that pass, as PLAIN bytes of the leaf, without the length of a BYTE_ARRAY: those that a Bloom filter can be
    /// [asked](crate::bloom::hash) for. None at all where no value of the leaf's type passes; one that has several encodings is there with
    /// each (both zeros). `None` if more than `most` pass, if a row can pass without a value, and for values
    /// whose encodings are not known: NaN, INT96, decimals of any length.
    pub fn plain_values(&self, schema: &Schema, most: usize) -> Option<Vec<Vec<u8>>> {
        let (Accepts::Values(ranges), Quantifier::Any) = (&self.accepts, self.quantifier) else {
            return None;
        };
        let leaf = schema.leaves().get(self.leaf)?;
        ranges.plain_values(order_of(schema, leaf), leaf.physical_type, most)
    }

    /// What is known of a column chunk's or a page's rows by its counts and bounds.
    pub fn judge(&self, known: &Known<'_>, order: &LeafOrder, schema: &Schema) -> Verdict {
        let Some(leaf) = schema.leaves().get(self.leaf) else { return Verdict::Some };
        // Below a list, writers leave lists out that are empty or null: Arrow C++ counts the nulls of elements alone (its issues 42980
        // and 51097).
        let has_no_nulls = known.nulls == Some(0) && leaf.repetition_max == 0;
        match &self.accepts {
            Accepts::Values(ranges) => self.judge_values(ranges.judge(known, order.order()), known, schema),
            Accepts::Nulls { definition, are_wanted, slot } => {
                // Nulls of a leaf are all its entries without a value.
                let is_leaf = *definition == leaf.definition_max && *slot == 0;
                match (has_no_nulls || *definition == 0, known.is_only_nulls && is_leaf) {
                    _ if known.values == Some(0) => Verdict::None,
                    (true, _) => {
                        if *are_wanted {
                            Verdict::None
                        } else {
                            Verdict::All
                        }
                    }
                    (_, true) => {
                        if *are_wanted {
                            Verdict::All
                        } else {
                            Verdict::None
                        }
                    }
                    _ => Verdict::Some,
                }
            }
        }
    }

    /// What is known of rows once it is known of their values, the nulls aside: none of these passes, or all do.
    pub(crate) fn judge_values(&self, of_values: Verdict, known: &Known<'_>, schema: &Schema) -> Verdict {
        let Some(leaf) = schema.leaves().get(self.leaf) else { return Verdict::Some };
        let has_no_nulls = known.nulls == Some(0) && leaf.repetition_max == 0;
        match (of_values, self.quantifier) {
            // An entry without a value may be an empty list.
            (Verdict::None, Quantifier::All) if leaf.repetition_max > 0 && !has_no_nulls => Verdict::Some,
            (Verdict::All, _) if !has_no_nulls => Verdict::Some,
            (verdict, _) => verdict,
        }
    }
}

impl Predicate {
    /// The predicate that is true where this one is false. Where a null makes this one neither, so is that.
    #[must_use]
    pub fn not(&self) -> Predicate {
        let all = |parts: &[Predicate]| parts.iter().map(Predicate::not).collect();
        match self {
            Predicate::And(parts) => Predicate::Or(all(parts)),
            Predicate::Or(parts) => Predicate::And(all(parts)),
            Predicate::Test(test) => Predicate::Test(test.not()),
        }
    }

    /// The leaves that it tests, ascending.
    pub fn leaves(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        self.each(&mut |test| leaves.push(test.leaf));
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    /// The same over other leaves, where all of these have one.
    #[must_use]
    pub fn map_leaves(&self, leaf_of: &dyn Fn(usize) -> Option<usize>) -> Option<Predicate> {
        let all = |parts: &[Predicate]| -> Option<Vec<Predicate>> {
            parts.iter().map(|part| part.map_leaves(leaf_of)).collect()
        };
        Some(match self {
            Predicate::And(parts) => Predicate::And(all(parts)?),
            Predicate::Or(parts) => Predicate::Or(all(parts)?),
            Predicate::Test(test) => Predicate::Test(Test { leaf: leaf_of(test.leaf)?, ..test.clone() }),
        })
    }

    /// Each of its tests, from left to right.
    pub(crate) fn each<'a>(&'a self, take: &mut dyn FnMut(&'a Test)) {
        match self {
            Predicate::And(parts) | Predicate::Or(parts) => parts.iter().for_each(|part| part.each(take)),
            Predicate::Test(test) => take(test),
        }
    }

    /// What follows from what is known of each test.
    pub fn judge(&self, of_test: &mut dyn FnMut(&Test) -> Verdict) -> Verdict {
        match self {
            Predicate::And(parts) => parts.iter().fold(Verdict::All, |so_far, part| match so_far {
                Verdict::None => Verdict::None,
                _ => so_far.and(part.judge(of_test)),
            }),
            Predicate::Or(parts) => parts.iter().fold(Verdict::None, |so_far, part| match so_far {
                Verdict::All => Verdict::All,
                _ => so_far.or(part.judge(of_test)),
            }),
            Predicate::Test(test) => of_test(test),
        }
    }
}

/// A step of a predicate in postfix form, over any kind of sets of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    /// Adds the set of a test, by its number.
    Test(usize),
    /// Adds the set of all rows, or of none.
    All(bool),
    /// Takes two sets and adds what both have.
    And,
    /// Takes two sets and adds what either has.
    Or,
}

/// Puts a predicate into postfix form. It recurses as deep as the predicate is.
pub(crate) fn compile(
    predicate: &Predicate,
    program: &mut Vec<Operation>,
    test_of: &mut dyn FnMut(&Test) -> Result<usize>,
) -> Result<()> {
    let (parts, is_and) = match predicate {
        Predicate::And(parts) => (parts, true),
        Predicate::Or(parts) => (parts, false),
        Predicate::Test(test) => {
            program.push(Operation::Test(test_of(test)?));
            return Ok(());
        }
    };
    if parts.is_empty() {
        program.push(Operation::All(is_and));
    }
    for (at, part) in parts.iter().enumerate() {
        compile(part, program, test_of)?;
        if at > 0 {
            program.push(if is_and { Operation::And } else { Operation::Or });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ColumnOrder;
    use crate::prune::{Bound, Comparison};
    use crate::schema::{PhysicalType, of_lines};

    /// Statistics that count the nulls of elements alone say nothing about lists that are empty or null.
    #[test]
    fn no_null_below_a_list_is_not_believed() {
        let schema = of_lines(&[
            (1, '?', "l", "LIST"),
            (2, '*', "list", ""),
            (3, '?', "element", ""),
            (1, '?', "x", ""),
        ]);
        let order = LeafOrder::new(PhysicalType::Int32, None, Some(ColumnOrder::TypeDefined), true);
        let one = 1_i32.to_le_bytes();
        let bound = Some(Bound { value: &one[..], is_exact: None });
        let known = Known {
            min: bound,
            max: bound,
            values: Some(3),
            nulls: Some(0),
            nans: Some(0),
            ..Known::default()
        };
        let is_one = |leaf| Test::accepting(leaf, Ranges::of_keys(1, 1));
        let is_null = |leaf, definition| {
            let accepts = Accepts::Nulls { slot: 0, definition, are_wanted: true };
            Test { leaf, quantifier: Quantifier::Any, accepts }
        };
        let judge = |test: &Test| test.judge(&known, &order, &schema);
        assert_eq!([judge(&is_one(0)), judge(&is_one(0).not()), judge(&is_null(0, 1))], [Verdict::Some; 3]);
        assert_eq!(
            [judge(&is_one(1)), judge(&is_one(1).not()), judge(&is_null(1, 1))],
            [Verdict::All, Verdict::None, Verdict::None]
        );
    }

    #[test]
    fn not_twice_is_the_same() {
        let test = |leaf, ranges| Predicate::Test(Test::accepting(leaf, ranges));
        let some = Predicate::Or(alloc::vec![
            Predicate::And(alloc::vec![
                test(3, Ranges::of_keys(1, 2)),
                test(1, Ranges::all(Comparison::Bytes))
            ]),
            test(3, Ranges::none(Comparison::Number)),
        ]);
        assert_eq!(some.not().not(), some);
        assert_eq!(some.leaves(), [1, 3]);
    }
}
