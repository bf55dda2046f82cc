//! The paths of some leaves, without the rest of their schema.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::Schema;

/// The paths of some leaves, for errors. Each name is kept once, however many leaves are below its group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paths {
    /// Names, and the position of the parent's, which comes before.
    names: Vec<(String, Option<usize>)>,
    /// The position of a leaf's own name.
    leaves: BTreeMap<usize, usize>,
}

impl Paths {
    /// The paths of these leaves of a schema.
    pub(crate) fn new(schema: &Schema, leaves: impl Iterator<Item = usize>) -> Paths {
        let mut paths = Paths::default();
        let mut known = BTreeMap::new();
        let mut missing = Vec::new();
        for leaf in leaves {
            let Some(found) = schema.leaves().get(leaf) else { continue };
            let mut node = found.node;
            while node != 0 && !known.contains_key(&node) {
                missing.push(node);
                node = schema.nodes()[node].parent;
            }
            let mut parent = known.get(&node).copied();
            while let Some(node) = missing.pop() {
                let at = paths.names.len();
                paths.names.push((schema.nodes()[node].name.clone(), parent));
                known.insert(node, at);
                parent = Some(at);
            }
            paths.leaves.extend(parent.map(|at| (leaf, at)));
        }
        paths
    }

    /// The path of a leaf, if it is one of these: see [`Schema::path`].
    pub(crate) fn of(&self, leaf: usize) -> Option<String> {
        let mut names = Vec::new();
        let mut at = self.leaves.get(&leaf).copied();
        while let Some((name, parent)) = at.and_then(|at| self.names.get(at)) {
            names.push(name.as_str());
            at = *parent;
        }
        names.reverse();
        (!names.is_empty()).then(|| names.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FieldDef, FieldType, PhysicalType};

    #[test]
    fn they_are_those_of_the_schema() {
        let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None));
        let group = |name: &str, fields| FieldDef::new(name, FieldType::Struct(fields, None));
        let fields =
            [leaf("a"), group("g", alloc::vec![leaf("x"), group("h", alloc::vec![leaf("y"), leaf("z")])])];
        let schema = Schema::of_fields(&fields).unwrap();
        let some = Paths::new(&schema, [3, 0, 2].into_iter());
        for leaf in [0, 2, 3] {
            assert_eq!(some.of(leaf), Some(schema.leaf_path(leaf)));
        }
        assert_eq!((some.of(1), some.of(9)), (None, None));
        assert_eq!(some.of(3).as_deref(), Some("g.h.z"));
        assert_eq!(some.names.len(), 5, "each name once");
    }
}
