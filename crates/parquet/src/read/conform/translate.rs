//! Predicates over one schema as those over another.

use alloc::vec::Vec;

use marquetry_base::{Budget, Result};

use super::{Conform, LeafSource};
use crate::batch::Values;
use crate::prune::{Accepts, Matcher, Predicate, SliceBits, Test};

impl Conform {
    /// A predicate over the other schema as one over the file's, which is true for the same rows. `constants` are as for
    /// [`Conformer::new`](super::Conformer::new). `None` where the file's values do not say it by themselves: of parts of a variant, and of fields that it
    /// lacks below a list or a struct.
    ///
    /// # Errors
    ///
    /// `Misuse` for a predicate that does not suit the other schema.
    pub fn translate(
        &self,
        predicate: &Predicate,
        constants: &[Option<Values>],
    ) -> Result<Option<Predicate>> {
        let all = |parts: &[Predicate]| {
            parts.iter().map(|part| self.translate(part, constants)).collect::<Result<Option<_>>>()
        };
        Ok(match predicate {
            Predicate::And(parts) => all(parts)?.map(Predicate::And),
            Predicate::Or(parts) => all(parts)?.map(Predicate::Or),
            Predicate::Test(test) => self.translate_test(test, constants)?,
        })
    }

    fn translate_test(&self, test: &Test, constants: &[Option<Values>]) -> Result<Option<Predicate>> {
        let always = |is_true: bool| {
            Ok(Some(if is_true { Predicate::And(Vec::new()) } else { Predicate::Or(Vec::new()) }))
        };
        let Some(plan) = self.leaves.get(test.leaf) else { return Ok(None) };
        if let Accepts::Nulls { definition: 0, are_wanted, .. } = &test.accepts {
            return always(!are_wanted);
        }
        let of_null = match &test.accepts {
            Accepts::Values(_) => false,
            Accepts::Nulls { are_wanted, .. } => *are_wanted,
        };
        match plan.source {
            LeafSource::Read { read, map, .. } => {
                let Some(leaf) = self.reads.get(read) else { return Ok(None) };
                let mut accepts = test.accepts.clone();
                let found = &self.from.leaves()[*leaf];
                if let Accepts::Nulls { slot, definition, .. } = &mut accepts {
                    match map.and_then(|map| self.maps.get(map)) {
                        Some(map) => {
                            // The first of the file's levels that means as much.
                            let level = |level: u16| map.partition_point(|mapped| u16::from(*mapped) < level);
                            *slot = u16::try_from(level(*slot)).unwrap_or(u16::MAX);
                            *definition = u16::try_from(level(*definition)).unwrap_or(u16::MAX);
                        }
                        // What is required in the file has no level that says it is null.
                        None => *definition = (*definition).min(found.definition_max),
                    }
                }
                Ok(Some(Predicate::Test(Test { leaf: *leaf, quantifier: test.quantifier, accepts })))
            }
            // One null in each row.
            LeafSource::Null(None) if plan.is_flat => always(of_null),
            LeafSource::Null(_) | LeafSource::Variant { .. } => Ok(None),
            LeafSource::Constant(number) => {
                let leaf = &self.to.leaves()[test.leaf];
                match (constants.get(number).and_then(Option::as_ref), &test.accepts) {
                    (None, _) => always(of_null),
                    (Some(_), Accepts::Nulls { are_wanted, .. }) => always(!are_wanted),
                    (Some(value), Accepts::Values(ranges)) => {
                        let mut bits = SliceBits::default();
                        let mut matcher = Matcher::new(&self.to, leaf, ranges)?;
                        matcher.step(value, 0..1, &mut bits, &mut Budget::unlimited())?;
                        always(bits[0] & 1 == 1)
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::prune::{Quantifier, Ranges};
    use crate::schema::{Plan as _, of_lines};

    type Lines<'a> = &'a [(usize, char, &'a str, &'a str)];

    fn conform(from: Lines<'_>, to: Lines<'_>, constants: &[&str]) -> Conform {
        Conform::plan(of_lines(from).into(), of_lines(to).into(), constants).at_once().unwrap()
    }

    fn values(leaf: usize) -> Predicate {
        Predicate::Test(Test::accepting(leaf, Ranges::of_keys(5, 7)))
    }

    fn nulls(leaf: usize, definition: u16, are_wanted: bool) -> Predicate {
        let accepts = Accepts::Nulls { slot: 0, definition, are_wanted };
        Predicate::Test(Test { leaf, quantifier: Quantifier::Any, accepts })
    }

    const TRUE: Predicate = Predicate::And(Vec::new());
    const FALSE: Predicate = Predicate::Or(Vec::new());

    #[test]
    fn leaves_and_levels_are_the_files() {
        let conform = conform(
            &[(1, '1', "b", ""), (1, '?', "s", ""), (2, '1', "x", "")],
            &[
                (1, '?', "s", ""),
                (2, '?', "x", ""),
                (2, '?', "y", ""),
                (1, '?', "b", ""),
                (1, '?', "new", ""),
            ],
            &[],
        );
        let of = |predicate: &Predicate| conform.translate(predicate, &[]).unwrap();
        assert_eq!(of(&values(2)), Some(values(0)));
        assert_eq!(
            of(&Predicate::Or(vec![values(0), values(2)])),
            Some(Predicate::Or(vec![values(1), values(0)]))
        );
        // `b` is required in the file, and `x` of each `s`: null where `s` is.
        assert_eq!(of(&nulls(2, 1, true)), Some(nulls(0, 0, true)));
        assert_eq!(of(&nulls(0, 2, true)), Some(nulls(1, 1, true)));
        assert_eq!(of(&nulls(0, 1, false)), Some(nulls(1, 1, false)));
        // What the file lacks is null: of a struct's, other leaves would have to say in which slots.
        assert_eq!(
            (of(&values(3)), of(&nulls(3, 1, true)), of(&nulls(3, 1, false))),
            (Some(FALSE), Some(TRUE), Some(FALSE))
        );
        assert_eq!((of(&values(1)), of(&nulls(1, 1, true))), (None, None));
        assert_eq!(of(&Predicate::And(vec![values(2), values(1)])), None);
    }

    #[test]
    fn a_required_struct_is_not_null_where_its_leaf_is() {
        let conform =
            conform(&[(1, '1', "s", ""), (2, '?', "x", "")], &[(1, '?', "s", ""), (2, '?', "x", "")], &[]);
        let of = |definition| conform.translate(&nulls(0, definition, true), &[]).unwrap().unwrap();
        assert_eq!([of(1), of(2)], [nulls(0, 0, true), nulls(0, 1, true)]);
    }

    #[test]
    fn constants_decide() {
        let conform = conform(&[(1, '1', "b", "")], &[(1, '1', "b", ""), (1, '?', "day", "")], &["day"]);
        let of = |predicate: &Predicate, constant: Option<i32>| {
            let constant = constant.map(|value| Values::from(vec![value]));
            conform.translate(predicate, &[constant]).unwrap().unwrap()
        };
        assert_eq!([Some(6), Some(8), None].map(|day| of(&values(1), day)), [TRUE, FALSE, FALSE]);
        assert_eq!([Some(6), None].map(|day| of(&nulls(1, 1, true), day)), [FALSE, TRUE]);
        assert_eq!([Some(6), None].map(|day| of(&nulls(1, 1, false), day)), [TRUE, FALSE]);
    }
}
