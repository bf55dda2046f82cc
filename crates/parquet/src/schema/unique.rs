//! One name for each field, where a schema has fields of the same name.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use super::{Node, Schema};

impl Schema {
    /// This schema with names by which each field of a group can be told from the others. `None` if its names are such
    /// already.
    ///
    /// The format allows fields of the same name. The first of them keeps it; the second `a` is `a#2`, the third `a#3`,
    /// and so on. A field that is really called `a#2` keeps its name: of `a`, `a` and `a#2`, the second is `a#3`.
    /// [`Node::name_in_file`] is still the name without the number, and is what is written to a file.
    ///
    /// This is planning work, in one call.
    pub fn with_unique_names(&self) -> Option<Schema> {
        // By parent and name, the number that the next field of this name may get.
        let mut numbers: BTreeMap<(usize, &str), u32> = BTreeMap::new();
        let mut others = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            if numbers.insert((node.parent, &node.name), 2).is_some() {
                others.push(at);
            }
        }
        if others.is_empty() {
            return None;
        }
        let mut schema = self.clone();
        for at in others {
            let Node { parent, name, .. } = &self.nodes[at];
            let mut number = numbers.get(&(*parent, name.as_str())).copied().unwrap_or(2);
            let mut unique = format!("{name}#{number}");
            while numbers.contains_key(&(*parent, unique.as_str())) {
                number += 1;
                unique = format!("{name}#{number}");
            }
            numbers.insert((*parent, name), number + 1);
            schema.nodes[at].name = unique;
            schema.nodes[at].is_numbered = true;
        }
        Some(schema)
    }
}

impl Node {
    /// The field's name in the file: without the number of a [unique name](Schema::with_unique_names).
    pub fn name_in_file(&self) -> &str {
        match self.name.rsplit_once('#') {
            Some((name, _)) if self.is_numbered => name,
            _ => &self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::schema::{FieldDef, FieldType, PhysicalType};

    fn leaf(name: &str) -> FieldDef {
        FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None))
    }

    fn unique(names: &[&str]) -> Option<Vec<String>> {
        let fields: Vec<FieldDef> = names.iter().map(|name| leaf(name)).collect();
        let schema = Schema::of_fields(&fields).unwrap().with_unique_names()?;
        let in_file: Vec<&str> = schema.children(0).map(|node| schema.nodes()[node].name_in_file()).collect();
        assert_eq!(in_file, names, "as they are in the file");
        assert_eq!(schema.with_unique_names(), None, "names that are unique");
        Some(schema.children(0).map(|node| schema.nodes()[node].name.clone()).collect())
    }

    #[test]
    fn the_first_keeps_the_name_and_so_do_real_ones() {
        for (names, expected) in [
            (&["a", "b", "a#2", "A"][..], None),
            (&[], None),
            (&["a", "a", "b", "a"], Some(&["a", "a#2", "b", "a#3"][..])),
            (&["a", "a", "a#2"], Some(&["a", "a#3", "a#2"])),
            (&["a#3", "a", "a#2", "a", "a", "a#2"], Some(&["a#3", "a", "a#2", "a#4", "a#5", "a#2#2"])),
            (&["", "", "#2"], Some(&["", "#3", "#2"])),
        ] {
            let found = unique(names);
            let found: Option<Vec<&str>> = found.as_ref().map(|all| all.iter().map(String::as_str).collect());
            assert_eq!(found.as_deref(), expected, "{names:?}");
        }
    }

    #[test]
    fn each_group_has_its_own_names() {
        let group = |name: &str, fields| FieldDef::new(name, FieldType::Struct(fields, None));
        let fields = [
            group("g", alloc::vec![leaf("a"), leaf("g")]),
            group("g", alloc::vec![leaf("a"), group("h", alloc::vec![leaf("x"), leaf("x")])]),
        ];
        let schema = Schema::of_fields(&fields).unwrap().with_unique_names().unwrap();
        let paths: Vec<String> = (0..schema.leaves().len()).map(|leaf| schema.leaf_path(leaf)).collect();
        assert_eq!(paths, ["g.a", "g.g", "g#2.a", "g#2.h.x", "g#2.h.x#2"]);
    }
}
