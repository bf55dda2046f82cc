//! A schema with other types of leaves, or other names of columns, and the same nesting.

use alloc::string::ToString;

use marquetry_base::{Error, ErrorKind, Result};

use super::build::check_annotation;
use super::{ConvertedType, LogicalType, PhysicalType, Schema};

impl Schema {
    /// Gives a leaf another type. Its place, its repetition and its levels stay.
    ///
    /// # Errors
    ///
    /// `Misuse` for a leaf that the schema lacks, and a logical type that cannot annotate the physical one.
    pub fn set_leaf_type(
        &mut self,
        leaf: usize,
        physical_type: PhysicalType,
        logical_type: Option<LogicalType>,
    ) -> Result<()> {
        check_annotation(logical_type.as_ref(), physical_type)
            .map_err(|error| error.blamed(ErrorKind::Misuse))?;
        let Some(node) = self.leaves.get(leaf).map(|leaf| leaf.node) else {
            return Err(Error::misuse("a leaf that the schema lacks"));
        };
        self.leaves[leaf].physical_type = physical_type;
        let node = &mut self.nodes[node];
        node.converted_type = logical_type.as_ref().and_then(ConvertedType::of);
        (node.logical_type, node.is_older_only) = (logical_type, false);
        Ok(())
    }

    /// Gives a field another name, by its node.
    ///
    /// # Errors
    ///
    /// `Misuse` for a node that the schema lacks, and the root, whose name has no meaning.
    pub fn set_name(&mut self, node: usize, name: &str) -> Result<()> {
        if node == 0 || node >= self.nodes.len() {
            return Err(Error::misuse("a field that the schema lacks"));
        }
        self.nodes[node].name = name.to_string();
        self.nodes[node].is_numbered = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use super::*;
    use crate::schema::{FieldDef, FieldType, Meaning};

    #[test]
    fn types_and_names_change_in_place() {
        let element = FieldDef::new("element", FieldType::Leaf(PhysicalType::Int32, None));
        let tags = FieldDef::new("tags", FieldType::List(Box::new(element)));
        let before = Schema::of_fields(&[tags]).unwrap();
        let mut schema = before.clone();
        schema.set_leaf_type(0, PhysicalType::ByteArray, Some(LogicalType::String)).unwrap();
        schema.set_name(1, "words").unwrap();
        assert_eq!(schema.leaf_path(0), "words.list.element");
        assert_eq!(schema.meaning_of(&schema.leaves()[0]), Meaning::String);
        assert_eq!(schema.leaves()[0].definition_max, before.leaves()[0].definition_max);
        let wrong = schema.set_leaf_type(0, PhysicalType::Int32, Some(LogicalType::String));
        assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Misuse);
        assert!(schema.set_leaf_type(1, PhysicalType::Int32, None).is_err());
        assert!(schema.set_name(0, "root").is_err() && schema.set_name(9, "x").is_err());
    }
}
