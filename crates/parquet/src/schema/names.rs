//! The fields of a group by their names.

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Price, Segmented};

use super::Schema;

/// The children of a group by their names: an index that is made in steps. It is their nodes in order, which copies no
/// name and is little work to drop.
#[derive(Debug)]
pub(crate) struct Names {
    /// The children, sorted in runs of `run` of them.
    nodes: Segmented<usize>,
    run: usize,
    /// The next child that is not among them, until all are.
    next: Option<usize>,
    /// Runs are merged in pairs: the result, and how much is taken of each of a pair.
    merged: Segmented<usize>,
    taken: [usize; 2],
}

/// What a group has of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// No child.
    None,
    /// One, by its node.
    One(usize),
    /// Several, of which this is the first.
    Several(usize),
}

/// The price of comparing names, and of each of their bytes.
pub(crate) const NAME_PRICE: Price = Price { kib: 300, kilovalue: 250 << 10 };
/// Comparisons between two looks at the budget.
const SLICE: usize = 32;

impl Names {
    /// Of a group, by its node.
    pub(crate) fn of(group: usize) -> Names {
        Names {
            nodes: Segmented::new(),
            run: 1,
            next: Some(group + 1),
            merged: Segmented::new(),
            taken: [0; 2],
        }
    }

    /// Sorts until all are sorted, or the budget is spent: then returns false. The schema and the group are always the
    /// same.
    pub(crate) fn step(&mut self, schema: &Schema, group: usize, budget: &mut Budget<'_>) -> bool {
        while let Some(child) = self.next {
            self.next = (child < schema.end_of(group)).then(|| {
                self.nodes.push(child);
                schema.end_of(child)
            });
            budget.charge(NAME_PRICE, 0, 1);
            if budget.is_spent() {
                return false;
            }
        }
        while self.run < self.nodes.len() {
            let mut bytes = 0;
            for _ in 0..SLICE {
                bytes += self.merge(schema);
            }
            budget.charge(NAME_PRICE, bytes, SLICE);
            if budget.is_spent() {
                return self.run >= self.nodes.len();
            }
        }
        true
    }

    /// Moves the next child of a pair of runs. Returns the bytes of names that it looked at.
    fn merge(&mut self, schema: &Schema) -> usize {
        let start = self.merged.len() - self.taken[0] - self.taken[1];
        let of = |run: usize| {
            let at = start + run * self.run + self.taken[run];
            self.nodes.get(at).copied().filter(|_| self.taken[run] < self.run)
        };
        let (run, bytes) = match (of(0), of(1)) {
            (Some(one), Some(other)) => {
                let (one, other) = (name(schema, one), name(schema, other));
                // Of the same name, the first stays the first.
                (usize::from(other < one), one.len().min(other.len()))
            }
            (Some(_), None) => (0, 0),
            (None, Some(_)) => (1, 0),
            (None, None) => {
                self.taken = [0; 2];
                if self.merged.len() == self.nodes.len() && self.run < self.nodes.len() {
                    core::mem::swap(&mut self.nodes, &mut self.merged);
                    self.merged = Segmented::new();
                    self.run *= 2;
                }
                return 0;
            }
        };
        if let Some(node) = of(run) {
            self.merged.push(node);
            self.taken[run] += 1;
        }
        bytes
    }

    /// What there is of a name, once all are sorted; and charges the search.
    pub(crate) fn find(&self, schema: &Schema, wanted: &str, budget: &mut Budget<'_>) -> Named {
        let compared = usize_of_u32(self.nodes.len().max(1).ilog2()) + 2;
        budget.charge(NAME_PRICE, wanted.len().saturating_mul(compared), compared);
        let first = self.nodes.partition_point(|node| name(schema, *node) < wanted);
        let is_it = |at: usize| self.nodes.get(at).filter(|node| name(schema, **node) == wanted).copied();
        match (is_it(first), is_it(first + 1)) {
            (None, _) => Named::None,
            (Some(node), None) => Named::One(node),
            (Some(node), Some(_)) => Named::Several(node),
        }
    }
}

fn name(schema: &Schema, node: usize) -> &str {
    schema.nodes.get(node).map_or("", |node| &node.name)
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::schema;
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    #[test]
    fn they_are_found() {
        for count in (0..70).chain([1000]) {
            let texts: Vec<String> = (0..count).map(|at: usize| (at * 7919 % 1013).to_string()).collect();
            let mut lines = alloc::vec![(1, '1', "group", "GROUP")];
            lines.extend(texts.iter().map(|text| (2, '1', text.as_str(), "")));
            // Two of them are twice.
            let twice = count.min(2);
            lines.extend(texts[..twice].iter().map(|text| (2, '1', text.as_str(), "")));
            lines.push((1, '1', "0", ""));
            let schema = schema(&lines);
            let (mut names, mut steps) = (Names::of(1), 1);
            while !names.step(&schema, 1, &mut Budget::new(0)) {
                steps += 1;
            }
            assert!(steps > count);
            let budget = &mut Budget::unlimited();
            for (at, text) in texts.iter().enumerate() {
                let expected = if at < twice { Named::Several(2 + at) } else { Named::One(2 + at) };
                assert_eq!(names.find(&schema, text, budget), expected, "{text} of {count}");
            }
            assert_eq!(names.find(&schema, "none", budget), Named::None);
        }
    }
}
