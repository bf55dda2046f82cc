//! How rows become partial results, those become one result, and what each looks like.

use std::cmp::Ordering;
use std::sync::Arc;

use marquetry_base::cast::exact_f64;
use marquetry_base::{Error, Result};
use marquetry_parquet::format::ColumnOrder;
use marquetry_parquet::prune::Order;
use marquetry_parquet::schema::{FieldDef, FieldType, Leaf, LogicalType, Meaning, PhysicalType, Schema};

use super::asked::{Aggregates, Function, GROUPS_OPTION, OPTION, Wanted};
use super::state::{Part, State, What};

/// Bytes of an exact sum, and its decimal digits.
const SUM_BYTES: u32 = 16;
const SUM_DIGITS: i32 = 38;
/// The sums that have more digits begin here.
const SUM_END: u128 = 10_u128.pow(SUM_DIGITS.unsigned_abs());

/// How aggregates of a table are computed, also by who has its rows: of each part of them, a row for each group, with the values that make it and
/// with *partial* aggregates, which are put together in the end. A mean is a sum and a count until then.
#[derive(Debug)]
pub struct Partials {
    /// Of the rows: the columns that are needed.
    pub(super) input: Arc<Schema>,
    /// The leaves that make groups.
    pub(super) groups: Vec<usize>,
    /// The first one counts rows.
    pub(super) parts: Vec<Part>,
    /// Of partial results.
    pub(super) schema: Arc<Schema>,
    /// Of the result, and what its columns are made of.
    pub(super) result: Arc<Schema>,
    finals: Vec<Final>,
}

/// What a column of the result is made of: parts, by their places.
#[derive(Debug, Clone, Copy)]
enum Final {
    Part(usize),
    /// A sum of integers, in as many bits as a column has.
    Integer(usize),
    Mean {
        sum: usize,
        count: usize,
    },
}

impl Partials {
    /// Of rows of this schema, of which leaves make groups, and others are what is wanted of.
    pub(super) fn plan(
        asked: &Aggregates,
        input: &Arc<Schema>,
        (groups, leaves): (Vec<usize>, &[Option<usize>]),
    ) -> Result<Partials> {
        let mut parts = vec![Part { leaf: None, what: What::Count }];
        let (mut finals, mut defs) = (Vec::new(), Vec::new());
        for (group, leaf) in asked.groups.iter().zip(&groups) {
            let found = leaf_at(input, *leaf)?;
            // What has no order has no equality that is worth the name, either.
            order_of(input, found)
                .ok_or_else(|| Error::option(GROUPS_OPTION, format!("{} makes no groups", group.dotted())))?;
            defs.push(FieldDef {
                is_nullable: found.definition_max > 0,
                ..def(&group.dotted(), input, found)
            });
        }
        for (wanted, leaf) in asked.wanted.iter().zip(leaves) {
            let leaf = *leaf;
            let mut place = |what| {
                let part = Part { leaf, what };
                parts.iter().position(|known| *known == part).unwrap_or_else(|| {
                    parts.push(part);
                    parts.len() - 1
                })
            };
            let (made, field_type) = match (wanted.function, leaf) {
                (Function::Count, _) => {
                    (Final::Part(place(What::Count)), FieldType::Leaf(PhysicalType::Int64, None))
                }
                (_, None) => return Err(refused(&wanted.text, "needs a column")),
                (Function::Avg, Some(at)) => {
                    let sum = place(sum_of(input, leaf_at(input, at)?, wanted)?);
                    let count = place(What::Count);
                    (Final::Mean { sum, count }, FieldType::Leaf(PhysicalType::Double, None))
                }
                (Function::Sum, Some(at)) => match sum_of(input, leaf_at(input, at)?, wanted)? {
                    what @ What::SumOfIntegers { scale: None, .. } => {
                        (Final::Integer(place(what)), FieldType::Leaf(PhysicalType::Int64, None))
                    }
                    what => (Final::Part(place(what)), sum_type(what)),
                },
                (Function::Min | Function::Max, Some(at)) => {
                    let found = leaf_at(input, at)?;
                    let order =
                        order_of(input, found).ok_or_else(|| refused(&wanted.text, "has no order"))?;
                    let is_beyond =
                        if wanted.function == Function::Min { Ordering::Less } else { Ordering::Greater };
                    let made = Final::Part(place(What::Extreme(order, is_beyond)));
                    (made, def("", input, found).field_type)
                }
            };
            finals.push(made);
            defs.push(FieldDef::new(&wanted.text, field_type));
        }
        let schema = Schema::of_fields(&partial_defs(input, &defs[..groups.len()], &parts)?)?;
        let result = Arc::new(Schema::of_fields(&defs)?);
        Ok(Partials { input: Arc::clone(input), groups, parts, schema: Arc::new(schema), result, finals })
    }

    /// What a store is asked for that computes them of objects with these columns: functions, and the columns that make groups, as it names
    /// columns. `None` if its types may differ.
    pub(crate) fn requests(&self) -> Option<(Vec<String>, Vec<String>)> {
        let name = |leaf: usize| {
            let node = self.input.node_of(self.input.leaves().get(leaf)?);
            Some(format!("\"{}\"", node.name.replace('"', "\"\"")))
        };
        let is_kept = |leaf: usize| {
            self.input.leaves().get(leaf).is_some_and(|leaf| {
                let is_plain =
                    !matches!(leaf.physical_type, PhysicalType::Int96 | PhysicalType::FixedLenByteArray(_));
                is_plain && !matches!(self.input.meaning_of(leaf), Meaning::Decimal { .. })
            })
        };
        let mut functions = Vec::new();
        for Part { leaf, what } in &self.parts {
            let Some(leaf) = *leaf else {
                functions.push("count(*)".to_owned());
                continue;
            };
            let function = match what {
                What::Count => "count",
                What::SumOfIntegers { .. } | What::SumOfFloats => "sum",
                What::Extreme(..) if !is_kept(leaf) => return None,
                What::Extreme(_, Ordering::Less) => "min",
                What::Extreme(..) => "max",
            };
            functions.push(format!("{function}({})", name(leaf)?));
        }
        if !self.groups.iter().all(|leaf| is_kept(*leaf)) {
            return None;
        }
        Some((functions, self.groups.iter().map(|leaf| name(*leaf)).collect::<Option<_>>()?))
    }

    /// Whether rows of a schema have the columns that are needed, as they are here.
    pub(crate) fn is_of(&self, schema: &Schema) -> bool {
        self.input.leaves().iter().all(|wanted| {
            let node = self.input.node_of(wanted);
            let found = schema.leaves().iter().find(|leaf| {
                leaf.is_flat() && schema.node_of(leaf).name == node.name && schema.node_of(leaf).parent == 0
            });
            found.is_some_and(|leaf| {
                (leaf.physical_type, leaf.definition_max) == (wanted.physical_type, wanted.definition_max)
                    && schema.node_of(leaf).logical_type == node.logical_type
            })
        })
    }

    /// The orders of the values that make groups, and how they are held.
    pub(super) fn group_orders(&self) -> Result<Vec<(Order, PhysicalType)>> {
        let order = |leaf: &usize| {
            let leaf = leaf_at(&self.input, *leaf)?;
            let order = order_of(&self.input, leaf);
            Ok((order.ok_or_else(|| Error::internal("groups without an order"))?, leaf.physical_type))
        };
        self.groups.iter().map(order).collect()
    }

    /// Whether all that is wanted is how many rows there are.
    pub(super) fn counts_rows_alone(&self) -> bool {
        self.groups.is_empty() && self.parts.len() == 1
    }

    /// The schema of partial results.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The leaf of partial results that counts rows.
    pub(crate) fn count_leaf(&self) -> usize {
        self.groups.len()
    }

    /// A group's values in the columns of the result after those that make it, PLAIN.
    pub(super) fn finished(&self, states: &[State]) -> Result<Vec<Option<Vec<u8>>>> {
        let state = |at: usize| states.get(at).ok_or_else(|| Error::internal("a part that is not there"));
        let value = |made: &Final| -> Result<Option<Vec<u8>>> {
            Ok(match made {
                Final::Part(at) => match state(*at)? {
                    State::Integer(Some(sum)) if sum.unsigned_abs() >= SUM_END => {
                        return Err(Error::too_large(format!("a sum of more than {SUM_DIGITS} digits")));
                    }
                    state => state.plain(),
                },
                Final::Integer(at) => match state(*at)? {
                    State::Integer(Some(sum)) => {
                        let sum = i64::try_from(*sum)
                            .map_err(|_| Error::too_large("a sum of more than 63 bits"))?;
                        Some(sum.to_le_bytes().to_vec())
                    }
                    _ => None,
                },
                Final::Mean { sum, count } => {
                    let scale = match self.parts.get(*sum).map(|part| part.what) {
                        Some(What::SumOfIntegers { scale, .. }) => scale.unwrap_or(0),
                        _ => 0,
                    };
                    mean(state(*sum)?, state(*count)?, scale).map(|mean| mean.to_le_bytes().to_vec())
                }
            })
        };
        self.finals.iter().map(value).collect()
    }
}

/// The double that is nearest to a sum, by a number of values.
fn mean(sum: &State, count: &State, scale: i32) -> Option<f64> {
    let sum: f64 = match sum {
        State::Float(sum) => (*sum)?,
        State::Integer(sum) => format!("{}e-{scale}", (*sum)?).parse().ok()?,
        State::Count(_) | State::Value(_) => return None,
    };
    match count {
        State::Count(count) if *count > 0 => Some(sum / exact_f64(i128::from(*count))?),
        _ => None,
    }
}

/// The columns of partial results.
fn partial_defs(input: &Schema, groups: &[FieldDef], parts: &[Part]) -> Result<Vec<FieldDef>> {
    let mut defs = groups.to_vec();
    for (number, Part { leaf, what }) in parts.iter().enumerate() {
        let field_type = match (what, leaf) {
            (What::Extreme(..), Some(leaf)) => def("", input, leaf_at(input, *leaf)?).field_type,
            _ => sum_type(*what),
        };
        defs.push(FieldDef::new(format!("part {number}"), field_type));
    }
    Ok(defs)
}

fn sum_type(what: What) -> FieldType {
    match what {
        What::SumOfFloats => FieldType::Leaf(PhysicalType::Double, None),
        What::SumOfIntegers { scale, .. } => {
            let decimal = LogicalType::Decimal { scale: scale.unwrap_or(0), precision: SUM_DIGITS };
            FieldType::Leaf(PhysicalType::FixedLenByteArray(SUM_BYTES), Some(decimal))
        }
        What::Count | What::Extreme(..) => FieldType::Leaf(PhysicalType::Int64, None),
    }
}

fn sum_of(schema: &Schema, leaf: &Leaf, wanted: &Wanted) -> Result<What> {
    match schema.meaning_of(leaf) {
        Meaning::Integer { is_signed, .. } => Ok(What::SumOfIntegers { is_signed, scale: None }),
        Meaning::Decimal { scale, .. } if scale <= SUM_DIGITS => {
            Ok(What::SumOfIntegers { is_signed: true, scale: Some(scale) })
        }
        Meaning::Float | Meaning::Double => Ok(What::SumOfFloats),
        _ => Err(refused(&wanted.text, "is of no numbers")),
    }
}

/// The order of a leaf's values: total where they are floats, so NaN without a sign is after all others.
fn order_of(schema: &Schema, leaf: &Leaf) -> Option<Order> {
    let column_order = match schema.meaning_of(leaf) {
        Meaning::Float | Meaning::Double | Meaning::Float16 => ColumnOrder::Ieee754Total,
        Meaning::Int96 => ColumnOrder::Int96Timestamp,
        _ => ColumnOrder::TypeDefined,
    };
    Order::of(leaf.physical_type, schema.node_of(leaf).logical_type.as_ref(), column_order)
}

/// A column of a leaf's type.
fn def(name: &str, schema: &Schema, leaf: &Leaf) -> FieldDef {
    let logical_type = schema.node_of(leaf).logical_type.clone();
    FieldDef::new(name, FieldType::Leaf(leaf.physical_type, logical_type))
}

fn leaf_at(schema: &Schema, leaf: usize) -> Result<&Leaf> {
    schema.leaves().get(leaf).ok_or_else(|| Error::internal("a column that was not read"))
}

fn refused(text: &str, why: &str) -> Error {
    Error::option(OPTION, format!("{text} {why}"))
}
