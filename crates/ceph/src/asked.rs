//! What a request means for the columns of an object.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use marquetry_base::{Budget, Error, Price, Result};
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::{Paths, Schema, ShapeKind};
use marquetry_text::predicate;

use crate::aggregate::{Asking, Function, average_of};
use crate::host::{Host, too_much};
use crate::request::{Format, Request};

/// What it costs to parse a byte of a predicate.
const PREDICATE_PRICE: Price = Price::per_kib(20 << 10);
/// What a column costs that a request names, and a byte of its name; and a field among which one is looked up.
const NAME_PRICE: Price = Price { kib: 4 << 10, kilovalue: 200 << 10 };
/// Names of a path, at most: more than a schema is deep, with dots in some names.
const PARTS_MAX: usize = 256;
/// Tests of a predicate that are carried out on all rows of a batch. With more of them, batches are smaller: a call does not end within one.
const TESTS_OF_BATCH: usize = 32;
/// Rows of a batch, whatever the predicate.
const BATCH_ROWS_MIN: usize = 16;

/// What a request means for an object.
pub(crate) struct Asked {
    /// The leaves that are read of rows that are found; `None`: all.
    pub(crate) leaves: Option<Vec<usize>>,
    /// `None`: all rows.
    pub(crate) predicate: Option<Predicate>,
    /// Each with its text, and its column's place among the leaves.
    pub(crate) aggregates: Option<Vec<Asking>>,
    /// The places of the columns that make groups.
    pub(crate) groups: Vec<usize>,
}

/// What a request means for an object of this schema.
pub(crate) fn asked_of(schema: &Schema, request: &Request<'_>, host: &mut Host<'_>) -> Result<Asked> {
    if let Some(text) = request.predicate {
        // Half of the share at most: with less than the other half, each of the calls would parse it for a few rows.
        host.charge(PREDICATE_PRICE.of(text.len(), 0).min(host.share().units / 2));
    }
    let parse = |text: &str| {
        let parsed = predicate::parse(text, schema);
        parsed.map_err(|error| Error::misuse(format!("{error} in the predicate {text}")))
    };
    let predicate = request.predicate.map(parse).transpose()?;
    let mut asked = Asked { leaves: None, predicate, aggregates: None, groups: Vec::new() };
    if !request.aggregates.is_empty() {
        asked.aggregate(schema, &request.aggregates, &request.groups, host)?;
    } else if request.format == Format::Count {
        asked.leaves = Some(Vec::new());
    } else if !request.leaves.is_empty() {
        asked.leaves = Some(named_leaves(schema, &request.leaves, host)?);
    } else if !request.columns.is_empty() {
        let (mut columns, mut known, mut leaves) = (Columns::of(schema), HashSet::new(), Vec::new());
        for column in &request.columns {
            for leaf in columns.leaves_of(column, host)? {
                if !known.insert(leaf) {
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
    /// Rows that are tested at a time, of batches that have so many: fewer by a predicate of many tests.
    pub(crate) fn rows_at_once(&self, rows: usize) -> usize {
        let tests = self.predicate.as_ref().map_or(0, tests_of);
        (rows / (1 + tests / TESTS_OF_BATCH)).max(BATCH_ROWS_MIN.min(rows))
    }

    fn aggregate(
        &mut self,
        schema: &Schema,
        texts: &[&str],
        groups: &[&str],
        host: &mut Host<'_>,
    ) -> Result<()> {
        let (mut columns, mut leaves) = (Columns::of(schema), Vec::new());
        let mut place = |column: &str| {
            let of = columns.leaves_of(column, host)?;
            if of.len() != 1 || !is_flat(schema, of.start) {
                let message = format!("aggregates of {column}, which may have several values a row");
                return Err(Error::unsupported(message));
            }
            Ok(leaves.iter().position(|leaf| *leaf == of.start).unwrap_or_else(|| {
                leaves.push(of.start);
                leaves.len() - 1
            }))
        };
        let (mut aggregates, mut known) = (Vec::new(), HashSet::new());
        for text in texts {
            let average = average_of(text);
            let (function, column) = match average {
                Some(column) => (None, Some(column)),
                None => Function::parse(text).map(|(function, column)| (Some(function), column))?,
            };
            let at = column.map(&mut place).transpose()?;
            if !known.insert((function, at)) {
                return Err(Error::misuse(format!("the aggregate {text} is named twice")));
            }
            match (function, column) {
                (None, column) => {
                    // The mean of two means is not that of all rows: so the answer has what it is made of.
                    let column = column.unwrap_or_default();
                    aggregates.push((format!("sum({column})"), at, Function::Sum));
                    aggregates.push((format!("count({column})"), at, Function::Count));
                }
                (Some(function), _) => aggregates.push(((*text).to_owned(), at, function)),
            }
        }
        self.groups = groups.iter().map(|column| place(column)).collect::<Result<_>>()?;
        (self.leaves, self.aggregates) = (Some(leaves), Some(aggregates));
        Ok(())
    }
}

/// How many tests a predicate has.
fn tests_of(predicate: &Predicate) -> usize {
    match predicate {
        Predicate::And(parts) | Predicate::Or(parts) => parts.iter().map(tests_of).sum(),
        Predicate::Test(_) => 1,
    }
}

/// Whether a leaf is a column of the table, and has one value a row.
fn is_flat(schema: &Schema, leaf: usize) -> bool {
    let node = schema.leaves().get(leaf).map_or(0, |leaf| leaf.node);
    let is_column = node > 0 && schema.nodes()[node].parent == 0;
    is_column && matches!(schema.shape(node).kind(), Ok(ShapeKind::Leaf))
}

/// The leaves below the column, or the field of one, that a path names.
pub(crate) fn leaves_of(schema: &Schema, column: &str, host: &mut Host<'_>) -> Result<Range<usize>> {
    Columns::of(schema).leaves_of(column, host)
}

/// Columns by their paths. It keeps an index of the names, so that each group of the schema is sorted once.
struct Columns<'a> {
    schema: &'a Schema,
    paths: Paths,
}

impl<'a> Columns<'a> {
    fn of(schema: &'a Schema) -> Columns<'a> {
        Columns { schema, paths: Paths::default() }
    }

    fn leaves_of(&mut self, column: &str, host: &mut Host<'_>) -> Result<Range<usize>> {
        host.charge(NAME_PRICE.of(column.len(), 1));
        let names = predicate::names(column)
            .map_err(|error| Error::misuse(format!("{error} in the column {column}")))?;
        let [path] = names.as_slice() else {
            return Err(Error::misuse(format!("'{column}' is not the name of one column")));
        };
        if path.len() > PARTS_MAX {
            return Err(Error::misuse(format!("a path of more than {PARTS_MAX} names")));
        }
        let mut budget = Budget::new(host.left_at_all());
        let found = self.paths.find(self.schema, path, &mut budget);
        host.charge(budget.spent());
        match found {
            Ok(Some(field)) => Ok(field.shape.leaves()),
            Ok(None) => Err(too_much()),
            Err(_) => Err(Error::misuse(format!("the object has no column {column}"))),
        }
    }
}

/// The leaves with these names, and with those of all that they are in, as the object spells them; in the object's order.
fn named_leaves(schema: &Schema, paths: &[&str], host: &mut Host<'_>) -> Result<Vec<usize>> {
    // The fields of a group are listed once, however many there are, and are looked for.
    let mut groups: HashMap<usize, HashMap<&str, usize>> = HashMap::new();
    let mut leaves = Vec::new();
    for path in paths {
        let missing = || Error::misuse(format!("the object has no column {}", path.replace('\0', ".")));
        host.charge(NAME_PRICE.of(path.len(), 1));
        let mut node = 0;
        for name in path.split('\0') {
            let fields = groups.entry(node).or_insert_with(|| {
                let fields = schema.children(node).map(|child| (schema.nodes()[child].name.as_str(), child));
                let fields: HashMap<&str, usize> = fields.collect();
                host.charge(NAME_PRICE.of(0, fields.len()));
                fields
            });
            node = *fields.get(name).ok_or_else(missing)?;
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
