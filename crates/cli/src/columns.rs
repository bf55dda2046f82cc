//! Which columns are meant, in one file and in all.

use std::collections::{HashMap, HashSet};

use marquetry_parquet::schema::{LogicalType, NodeKind, PhysicalType, Schema, Shape, ShapeKind};

use crate::failure::{Failure, Outcome};
use crate::input::ParquetFile;
use crate::nested::{self, is_variant};

/// The columns of a command: for each file, where each column is in its schema.
#[derive(Debug)]
pub(crate) struct Columns {
    /// Their names, in the order of the output.
    pub(crate) names: Vec<String>,
    /// For each file, its schema's nodes in the same order: children of the root.
    pub(crate) nodes: Vec<Vec<usize>>,
}

impl Columns {
    /// Chooses columns, all if none are named, and makes sure that all files have them with the same types.
    ///
    /// Without names, all files must have exactly the columns of the first, in whatever order. The work grows with the number
    /// of columns, not with its square: tables of machine learning have 100,000.
    pub(crate) fn choose(files: &[ParquetFile], wanted: Option<&str>) -> Outcome<Columns> {
        let wanted = wanted.map(|list| split_names("--columns", list)).transpose()?;
        let Some(first) = files.first().map(Named::new) else {
            return Ok(Columns { names: Vec::new(), nodes: Vec::new() });
        };
        let is_chosen = wanted.is_some();
        let names: Vec<String> = match wanted {
            Some(names) => {
                let names: Vec<String> = names.into_iter().map(|name| first.resolve(name)).collect();
                let mut seen = HashSet::with_capacity(names.len());
                if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
                    return Err(Failure::usage(format!("--columns names {twice:?} twice")));
                }
                names
            }
            None => first.in_order().map(str::to_string).collect(),
        };
        if names.is_empty() {
            return Err(Failure::refused(format!("{}: the file has no columns", first.file.name)));
        }
        let mut nodes = vec![first.nodes(&names)?];
        for file in &files[1..] {
            let file = Named::new(file);
            file.check_same(&first, &names, is_chosen)?;
            nodes.push(file.nodes(&names)?);
            file.check_same_shapes(&first, &names)?;
        }
        for (file, nodes) in files.iter().zip(&nodes) {
            file.check_readable(nodes)?;
        }
        Ok(Columns { names, nodes })
    }
}

/// A file's columns by their names.
struct Named<'a> {
    file: &'a ParquetFile,
    schema: &'a Schema,
    /// The node of each name; of a name that several have, the last, and it is in `twice`.
    nodes: HashMap<&'a str, usize>,
    twice: HashSet<&'a str>,
}

impl<'a> Named<'a> {
    fn new(file: &'a ParquetFile) -> Named<'a> {
        let schema = &file.metadata.schema;
        let mut named = Named { file, schema, nodes: HashMap::new(), twice: HashSet::new() };
        for node in schema.children(0) {
            let name = schema.nodes()[node].name.as_str();
            if named.nodes.insert(name, node).is_some() {
                named.twice.insert(name);
            }
        }
        named
    }

    fn in_order(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let schema = self.schema;
        schema.children(0).map(|node| schema.nodes()[node].name.as_str())
    }

    /// The column of exactly this name, or else, as in CQL, the one of the name in lower case.
    fn resolve(&self, name: String) -> String {
        let folded = name.to_ascii_lowercase();
        let is_folded = !self.nodes.contains_key(name.as_str()) && self.nodes.contains_key(folded.as_str());
        if is_folded { folded } else { name }
    }

    /// The columns' nodes, or why they cannot be had.
    fn nodes(&self, names: &[String]) -> Outcome<Vec<usize>> {
        let mut nodes = Vec::with_capacity(names.len());
        for name in names {
            let Some(&node) = self.nodes.get(name.as_str()) else { return Err(self.no_such_column(name)) };
            if self.twice.contains(name.as_str()) {
                return Err(Failure::refused(format!(
                    "{}: two columns have the name {name:?}, so neither can be meant; name others with --columns",
                    self.file.name
                )));
            }
            if flat_leaf(self.schema, node).is_none() {
                self.shape(node)?;
            }
            nodes.push(node);
        }
        Ok(nodes)
    }

    fn shape(&self, node: usize) -> Outcome<Shape> {
        nested::shape(self.schema, node).map_err(|error| self.file.failure(&error))
    }

    fn no_such_column(&self, name: &str) -> Failure {
        // Quoted where a comma or a space would mislead, as `--columns` reads them.
        let names: Vec<&str> = self.in_order().take(NAMES_TOLD_MAX).collect();
        let has = match (names.len(), self.schema.children(0).count() - names.len()) {
            (0, _) => "it has none".to_string(),
            (_, 0) => format!("its columns are {}", names_list(&names, ", ")),
            (_, more) => format!("its columns are {} and {more} more", names_list(&names, ", ")),
        };
        Failure::usage(format!("{}: there is no column {name:?}; {has}", self.file.name))
    }

    /// Makes sure that columns are as in the first file, and unless they were chosen, that there are no others.
    fn check_same(&self, first: &Named<'_>, names: &[String], is_chosen: bool) -> Outcome {
        for name in names {
            let Some(wanted) = first.type_of(name) else { continue };
            match self.type_of(name) {
                None if !self.nodes.contains_key(name.as_str()) => {
                    return Err(Failure::refused(format!(
                        "{}: there is no column {name:?}, which {} has; files that are read together have the same columns",
                        self.file.name, first.file.name
                    )));
                }
                // A nested one: `nodes` and `check_same_shapes` tell.
                None => {}
                Some(found) if found != wanted => {
                    return Err(Failure::refused(format!(
                        "{}: the column {name:?} is {}, but {} in {}; files that are read together have the same types",
                        self.file.name,
                        describe(&found),
                        describe(&wanted),
                        first.file.name
                    )));
                }
                Some(_) => {}
            }
        }
        match self.in_order().find(|name| !first.nodes.contains_key(name)) {
            Some(extra) if !is_chosen => Err(Failure::refused(format!(
                "{}: the column {extra:?} is not in {}; choose those that both have with --columns",
                self.file.name, first.file.name
            ))),
            _ => Ok(()),
        }
    }

    /// Makes sure that columns which are nested in one file are so in the other, alike.
    fn check_same_shapes(&self, first: &Named<'_>, names: &[String]) -> Outcome {
        for name in names {
            let (Some(&node), Some(&wanted)) =
                (self.nodes.get(name.as_str()), first.nodes.get(name.as_str()))
            else {
                continue;
            };
            let is_flat =
                [flat_leaf(self.schema, node), flat_leaf(first.schema, wanted)].map(|leaf| leaf.is_some());
            let is_same = match is_flat {
                // `check_same` told.
                [true, true] => true,
                [false, false] => {
                    is_same(self.schema, &self.shape(node)?, first.schema, &first.shape(wanted)?)
                }
                _ => false,
            };
            if !is_same {
                return Err(Failure::refused(format!(
                    "{}: the column {name:?} is nested otherwise than in {}; files that are read together have the same types",
                    self.file.name, first.file.name
                )));
            }
        }
        Ok(())
    }

    /// What two files must agree on. `None` for a nested column.
    fn type_of(&self, name: &str) -> Option<LeafType<'a>> {
        let node = *self.nodes.get(name)?;
        flat_leaf(self.schema, node)?;
        leaf_type(self.schema, node)
    }
}

/// What values are. Whether they may be null is not in it.
type LeafType<'a> = (PhysicalType, Option<&'a LogicalType>);

/// `None` for a group.
fn leaf_type(schema: &Schema, node: usize) -> Option<LeafType<'_>> {
    let node = &schema.nodes()[node];
    let NodeKind::Leaf { leaf } = node.kind else { return None };
    let physical_type = schema.leaves()[leaf].physical_type;
    // An annotation that only repeats the physical type is no difference.
    let repeats = matches!(
        (&node.logical_type, physical_type),
        (Some(LogicalType::Integer { bit_width: 32, is_signed: true }), PhysicalType::Int32)
            | (Some(LogicalType::Integer { bit_width: 64, is_signed: true }), PhysicalType::Int64)
    );
    Some((physical_type, node.logical_type.as_ref().filter(|_| !repeats)))
}

/// The leaf of a child of the root that has one value or null a row. `None` for what is nested or repeated.
pub(crate) fn flat_leaf(schema: &Schema, node: usize) -> Option<usize> {
    match schema.nodes()[node].kind {
        NodeKind::Leaf { leaf } if schema.leaves()[leaf].is_flat() => Some(leaf),
        _ => None,
    }
}

/// Whether two shapes mean the same, however lists and maps are spelt. It recurses, as deep as schemas with shapes are.
fn is_same(left: &Schema, a: &Shape, right: &Schema, b: &Shape) -> bool {
    match (&a.kind, &b.kind) {
        (ShapeKind::Leaf, ShapeKind::Leaf) => leaf_type(left, a.node) == leaf_type(right, b.node),
        (ShapeKind::Struct(one), ShapeKind::Struct(other)) => {
            let (a, b) = (&left.nodes()[a.node], &right.nodes()[b.node]);
            // Variants are the same, however they are shredded.
            match (is_variant(a.logical_type.as_ref()), is_variant(b.logical_type.as_ref())) {
                (false, false) => {
                    one.len() == other.len()
                        && one.iter().zip(other).all(|(a, b)| {
                            left.nodes()[a.node].name == right.nodes()[b.node].name
                                && is_same(left, a, right, b)
                        })
                }
                (one, other) => one == other,
            }
        }
        (ShapeKind::List(_, a), ShapeKind::List(_, b)) => is_same(left, a, right, b),
        (ShapeKind::Map(_, key_a, value_a), ShapeKind::Map(_, key_b, value_b)) => {
            is_same(left, key_a, right, key_b)
                && match (value_a, value_b) {
                    (Some(a), Some(b)) => is_same(left, a, right, b),
                    (None, None) => true,
                    _ => false,
                }
        }
        _ => false,
    }
}

/// Names that an error lists. A table of a thousand columns is no help on one line.
const NAMES_TOLD_MAX: usize = 20;

fn describe((physical, logical): &(PhysicalType, Option<&LogicalType>)) -> String {
    match logical {
        Some(logical) => format!("{physical} {logical}"),
        None => physical.to_string(),
    }
}

/// Reads `a,b,"c,d"`: names between commas; one with a comma in it, a quote or space at its start, or nothing in it stands in
/// quotes, which are doubled inside.
pub(crate) fn split_names(option: &str, list: &str) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = list;
    loop {
        let name = match rest.trim_start().strip_prefix('"') {
            Some(inner) => {
                let mut name = String::new();
                let mut inner = inner;
                rest = loop {
                    let Some((before, after)) = inner.split_once('"') else {
                        return Err(Failure::usage(format!("{option} '{list}': a quote is not closed")));
                    };
                    name.push_str(before);
                    match after.strip_prefix('"') {
                        Some(more) => {
                            name.push('"');
                            inner = more;
                        }
                        None => break after.trim_start(),
                    }
                };
                name
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let name = rest[..end].trim();
                if name.is_empty() {
                    return Err(Failure::usage(format!(
                        "{option} '{list}': a name is empty; a column whose name is empty is written \"\""
                    )));
                }
                rest = &rest[end..];
                name.to_string()
            }
        };
        names.push(name);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(names),
            None => {
                return Err(Failure::usage(format!(
                    "{option} '{list}': a comma should follow a closing quote"
                )));
            }
        }
    }
}

/// Names as `--columns` reads them.
fn names_list(names: &[&str], separator: &str) -> String {
    let is_plain = |name: &str| !name.is_empty() && !name.contains([',', '"']) && name.trim() == name;
    let quoted = names.iter().map(|name| match is_plain(name) {
        true => (*name).to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    });
    quoted.collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names() {
        let split = |list| match split_names("--columns", list) {
            Ok(names) => names.join("|"),
            Err(Failure::Said(_, message)) => message,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(split("a"), "a");
        assert_eq!(split("a, b c ,\"d,\"\"e\" , f"), "a|b c|d,\"e|f");
        assert_eq!(split("a,\"\",b"), "a||b");
        for list in ["", "a,", ",a", " "] {
            assert!(split(list).starts_with(&format!("--columns '{list}': a name is empty")), "{list}");
        }
        assert_eq!(split("\"a"), "--columns '\"a': a quote is not closed");
        assert_eq!(split("\"a\"b"), "--columns '\"a\"b': a comma should follow a closing quote");
        assert_eq!(names_list(&["a", "b,c", "it's"], ","), r#"a,"b,c",it's"#);
    }
}
