//! A table's columns as they are declared for text.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_parquet::schema::{Leaf, Plan as _, Projection, Schema};
use marquetry_tables::Table;
use marquetry_tables::text::{Column, Columns, Scalar, columns_of};

/// A table's columns in the words in which text is declared, as far as there are words.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Declaration {
    /// The columns, in order.
    pub columns: Columns,
    /// The paths of what has no word: of leaves, or of columns whose leaves all have one (variants, maps without
    /// values). Their columns are left out.
    pub wordless: Vec<String>,
}

/// The columns, each on a line, as they are read again.
impl fmt::Display for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |column: &Column| Columns::from(vec![column.clone()]).to_string();
        let lines: Vec<String> = self.columns.as_slice().iter().map(one).collect();
        writeln!(f, "{}", lines.join(",\n"))
    }
}

/// The columns of a table whose types have words, and what has none: geometries, variants, maps without values.
///
/// # Errors
///
/// Those of the schema, which are none if it is well-formed.
///
/// ```
/// use marquetry::describe::declaration;
/// use marquetry::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
/// use marquetry::tables::Table;
///
/// # fn main() -> marquetry::Result<()> {
/// let field = |name, logical| FieldDef::new(name, FieldType::Leaf(PhysicalType::ByteArray, logical));
/// let fields = [field("name", Some(LogicalType::String)), field("place", Some(LogicalType::Geometry { crs: None }))];
/// let declared = declaration(&Table::new("trips", Schema::of_fields(&fields)?.into()))?;
/// assert_eq!(declared.to_string(), "name text\n");
/// assert_eq!(declared.wordless, ["place"]);
/// # Ok(())
/// # }
/// ```
pub fn declaration(table: &Table) -> Result<Declaration> {
    let schema = &table.schema;
    let has_word = |node: &usize| schema.leaves_of(*node).all(|leaf| has_word(schema, leaf));
    let mut left_out: BTreeSet<usize> = schema.children(0).filter(|node| !has_word(node)).collect();
    // Now those that have none for what their leaves are together.
    loop {
        let mut rest = Projection::new(Arc::clone(schema));
        for node in schema.children(0).filter(|node| !left_out.contains(node)) {
            // Each is there once.
            let _ = rest.add_column(node);
        }
        let rest = Table::new(&*table.name, rest.plan().at_once()?.into());
        let error = match columns_of(&rest) {
            Ok(columns) => {
                let wordless = left_out.into_iter().flat_map(|node| wordless(schema, node)).collect();
                return Ok(Declaration { columns, wordless });
            }
            Err(error) => error,
        };
        // An error lists the first few.
        let parts = if error.parts().is_empty() { std::slice::from_ref(&error) } else { error.parts() };
        let before = left_out.len();
        left_out
            .extend(parts.iter().filter_map(|part| schema.child_of_root(part.place().column.as_deref()?)));
        if left_out.len() == before {
            return Err(error);
        }
    }
}

/// Whether there is a word for what a leaf's values are.
fn has_word(schema: &Schema, leaf: usize) -> bool {
    let scalar = |leaf: &Leaf| Scalar::of_meaning(schema.meaning_of(leaf), leaf.physical_type);
    schema.leaves().get(leaf).and_then(scalar).is_some()
}

/// What has no word in a column that has none.
fn wordless(schema: &Schema, column: usize) -> Vec<String> {
    let leaves = schema.leaves_of(column).filter(|leaf| !has_word(schema, *leaf));
    let paths: Vec<String> = leaves.map(|leaf| schema.leaf_path(leaf)).collect();
    if paths.is_empty() { vec![schema.path(column)] } else { paths }
}
