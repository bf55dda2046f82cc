//! What a request means for the columns of an object.

use std::collections::HashMap;
use std::ops::Range;

use marquetry_base::{Budget, Error, Result};
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::{Paths, Schema, ShapeKind};
use marquetry_text::predicate;

use crate::aggregate::{Function, average_of};
use crate::request::{Format, Request};

/// What a request means for an object.
pub(crate) struct Asked {
    /// The leaves that are read of rows that are found; `None`: all.
    pub(crate) leaves: Option<Vec<usize>>,
    /// `None`: all rows.
    pub(crate) predicate: Option<Predicate>,
    /// Each with its text, and its column's place among the leaves.
    pub(crate) aggregates: Option<Vec<(String, Option<usize>, Function)>>,
    /// The places of the columns that make groups.
    pub(crate) groups: Vec<usize>,
}

/// What a request means for an object of this schema.
pub(crate) fn asked_of(schema: &Schema, request: &Request<'_>) -> Result<Asked> {
    let parse = |text: &str| {
        let parsed = predicate::parse(text, schema);
        parsed.map_err(|error| Error::misuse(format!("{error} in the predicate {text}")))
    };
    let predicate = request.predicate.map(parse).transpose()?;
    let mut asked = Asked { leaves: None, predicate, aggregates: None, groups: Vec::new() };
    if !request.aggregates.is_empty() {
        asked.aggregate(schema, &request.aggregates, &request.groups)?;
    } else if request.format == Format::Count {
        asked.leaves = Some(Vec::new());
    } else if !request.leaves.is_empty() {
        asked.leaves = Some(named_leaves(schema, &request.leaves)?);
    } else if !request.columns.is_empty() {
        let mut leaves = Vec::new();
        for column in &request.columns {
            for leaf in leaves_of(schema, column)? {
                if leaves.contains(&leaf) {
                    return Err(Error::misuse(format!("the column {column} is named twice")));
                }
                leaves.push(leaf);
            }
        }
        if request.format == Format::Parquet {
            // As its schema has them.
            leaves.sort_unstable();
        }
        asked.leaves = Some(leaves);
    }
    Ok(asked)
}

impl Asked {
    fn aggregate(&mut self, schema: &Schema, texts: &[&str], groups: &[&str]) -> Result<()> {
        let mut leaves: Vec<usize> = Vec::new();
        let mut place = |column: &str| {
            let of = leaves_of(schema, column)?;
            if !schema.children(0).any(|child| schema.leaves_of(child) == of && is_leaf(schema, child)) {
                let message = format!("aggregates of {column}, which may have several values a row");
                return Err(Error::unsupported(message));
            }
            Ok(leaves.iter().position(|leaf| *leaf == of.start).unwrap_or_else(|| {
                leaves.push(of.start);
                leaves.len() - 1
            }))
        };
        let mut aggregates = Vec::new();
        for text in texts {
            if let Some(column) = average_of(text) {
                // The mean of two means is not that of all rows: so the answer has what it is made of.
                let at = place(column)?;
                aggregates.push((format!("sum({column})"), Some(at), Function::Sum));
                aggregates.push((format!("count({column})"), Some(at), Function::Count));
                continue;
            }
            let (function, column) = Function::parse(text)?;
            aggregates.push(((*text).to_owned(), column.map(&mut place).transpose()?, function));
        }
        self.groups = groups.iter().map(|column| place(column)).collect::<Result<_>>()?;
        (self.leaves, self.aggregates) = (Some(leaves), Some(aggregates));
        Ok(())
    }
}

fn is_leaf(schema: &Schema, node: usize) -> bool {
    matches!(schema.shape(node).kind(), Ok(ShapeKind::Leaf))
}

/// The leaves below the column, or the field of one, that a path names.
pub(crate) fn leaves_of(schema: &Schema, column: &str) -> Result<Range<usize>> {
    let names =
        predicate::names(column).map_err(|error| Error::misuse(format!("{error} in the column {column}")))?;
    let [path] = names.as_slice() else {
        return Err(Error::misuse(format!("'{column}' is not the name of one column")));
    };
    match Paths::default().find(schema, path, &mut Budget::unlimited()) {
        Ok(Some(field)) => Ok(field.shape.leaves()),
        Ok(None) => Err(Error::internal("a budget without an end is spent")),
        Err(_) => Err(Error::misuse(format!("the object has no column {column}"))),
    }
}

/// The leaves with these names, and with those of all that they are in, as the object spells them; in the object's order.
fn named_leaves(schema: &Schema, paths: &[&str]) -> Result<Vec<usize>> {
    // Names are looked up once, however many columns there are.
    let columns: HashMap<&str, usize> =
        schema.children(0).map(|node| (schema.nodes()[node].name.as_str(), node)).collect();
    let mut leaves = Vec::new();
    for path in paths {
        let missing = || Error::misuse(format!("the object has no column {}", path.replace('\0', ".")));
        let mut names = path.split('\0');
        let mut node = *names.next().and_then(|name| columns.get(name)).ok_or_else(missing)?;
        for name in names {
            let below = schema.children(node).find(|child| schema.nodes()[*child].name == name);
            node = below.ok_or_else(missing)?;
        }
        let leaf = schema.leaves_of(node).start;
        if schema.leaves().get(leaf).is_none_or(|leaf| leaf.node != node) {
            return Err(missing());
        }
        leaves.push(leaf);
    }
    leaves.sort_unstable();
    if leaves.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::misuse("a column is named twice"));
    }
    Ok(leaves)
}
