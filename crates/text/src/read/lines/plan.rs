//! How the fields of lines become columns: found in steps, because a schema may have a hundred thousand fields.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Budget, Bytes, Error, Limits, Result};
use marquetry_parquet::batch::Layout;
use marquetry_parquet::record::{ShredOptions, ShredPlan, Shredder};
use marquetry_parquet::schema::{Plan, Schema};
use marquetry_parquet::write::Fed;

use super::super::delimited::NAME_PRICE;
use super::super::place::Start;
use super::Lines;
use crate::{Column, ColumnType, Columns, Scalar};

/// How lines are rows.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) columns: Columns,
    /// All types were given, and no other fields are in the text.
    pub(crate) is_given: bool,
    /// Otherwise, those that were: ranges of fields, numbered as they are in the columns, each before those in it.
    pub(crate) given: Vec<Range<usize>>,
    /// A line that begins with it is no row.
    pub(crate) comment: Option<u8>,
}

/// What a value becomes: one for each field of the shredder's program.
#[derive(Debug, Clone, Copy)]
pub(super) enum Becomes {
    /// The flag says whether its type was given.
    Leaf(Scalar, bool),
    List {
        element: usize,
    },
    Map {
        key: usize,
        value: usize,
    },
    /// The number of its names.
    Struct(usize),
}

/// The fields of objects.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) list: Vec<(Arc<str>, usize)>,
    pub(super) by_name: BTreeMap<Arc<str>, usize>,
}

/// What the rows of a form are made with.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) shredder: Shredder,
    pub(super) fields: Vec<Becomes>,
    /// Those of the line are the first.
    pub(super) names: Vec<Names>,
}

/// Plans the rows of a form.
#[derive(Debug)]
pub(crate) struct Planner {
    lines: Lines,
    pub(super) form: Arc<Form>,
    /// Leaves that are returned, in order.
    reads: Vec<usize>,
    pub(super) limits: Limits,
    leaves: usize,
    plan: Option<ShredPlan>,
    made: Option<Made>,
    /// The types on the way to the next field.
    open: Vec<Open>,
}

/// A type whose parts are being planned.
#[derive(Debug)]
struct Open {
    /// The number of its names, if its parts have names.
    names: Option<usize>,
    /// The next part.
    next: usize,
}

/// What has parts: the line, or the type of a part.
#[derive(Clone, Copy)]
enum Whole<'a> {
    Columns(&'a [Column]),
    List(&'a ColumnType),
    Map(Scalar, &'a ColumnType),
}

/// The type of a part: a map's keys have a scalar one.
#[derive(Clone, Copy)]
enum Part<'a> {
    Key(Scalar),
    Type(&'a ColumnType),
}

impl Planner {
    /// Of these leaves.
    pub(crate) fn new(
        form: Arc<Form>,
        schema: Arc<Schema>,
        reads: Vec<usize>,
        (batch_rows, row_bytes): (usize, u64),
        limits: Limits,
    ) -> Planner {
        let options = ShredOptions { batch_rows, layout: Layout::Spaced, ..ShredOptions::default() };
        Planner {
            lines: Lines::new(row_bytes, form.comment),
            form,
            reads,
            limits,
            leaves: schema.leaves().len(),
            plan: Some(Shredder::plan(schema, None, options)),
            made: None,
            open: Vec::new(),
        }
    }

    pub(crate) fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.lines.feed(bytes)
    }

    pub(crate) fn finish(&mut self) {
        self.lines.window.finish();
    }

    /// Begins again, at another place of the text.
    pub(crate) fn restart(&mut self, start: Start) {
        self.lines.restart(start);
    }

    /// Goes on. True once the rows are planned.
    ///
    /// # Errors
    ///
    /// As [`Shredder::plan`].
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        if let Some(plan) = &mut self.plan {
            let Some(shredder) = plan.step(budget)? else { return Ok(false) };
            let fields = shredder.program().fields().len();
            let memory = || Error::out_of_memory(fields.saturating_mul(size_of::<Becomes>()));
            let mut made = Made { shredder, fields: Vec::new(), names: alloc::vec![Names::default()] };
            made.fields.try_reserve_exact(fields).map_err(|_| memory())?;
            (self.plan, self.made) = (None, Some(made));
            self.open.push(Open { names: Some(0), next: 0 });
            if budget.is_spent() {
                return Ok(false);
            }
        }
        self.add_fields(budget)
    }

    /// Adds fields, each before those in it, as the shredder's program has them.
    fn add_fields(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let Some(made) = &mut self.made else { return Err(Error::internal("fields before their program")) };
        let mut wholes = wholes(&self.form.columns, &self.open);
        while let (Some(open), Some(whole)) = (self.open.last_mut(), wholes.last()) {
            let Some((name, part)) = whole.part(open.next) else {
                self.open.pop();
                wholes.pop();
                continue;
            };
            open.next += 1;
            let field = made.fields.len();
            if let (Some(name), Some(names)) = (name, open.names.and_then(|at| made.names.get_mut(at))) {
                let name: Arc<str> = name.into();
                budget.charge(NAME_PRICE, name.len(), 0);
                names.by_name.insert(Arc::clone(&name), names.list.len());
                names.list.push((name, field));
            }
            let names = made.names.len();
            let is_given = self.form.is_given || self.form.given.iter().any(|given| given.contains(&field));
            made.fields.push(part.becomes(field, names, is_given));
            if let Some(whole) = part.whole() {
                let is_struct = matches!(whole, Whole::Columns(_));
                self.open.push(Open { names: is_struct.then_some(names), next: 0 });
                wholes.push(whole);
                if is_struct {
                    made.names.push(Names::default());
                }
            }
            budget.charge(NAME_PRICE, 0, 1);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        match made.fields.len() == made.shredder.program().fields().len() {
            true => Ok(true),
            false => Err(Error::internal("columns that are not those of their schema")),
        }
    }

    /// What rows are made with, once they are planned: the lines, of which something may be there already; the plan; and the
    /// leaves, if they are not all.
    pub(super) fn take(&mut self) -> Result<(Lines, Made, Option<Vec<usize>>)> {
        let made = self.made.take().ok_or_else(|| Error::internal("rows that are not planned"))?;
        let reads = core::mem::take(&mut self.reads);
        let is_all = reads.iter().copied().eq(0..self.leaves);
        Ok((core::mem::replace(&mut self.lines, Lines::new(0, None)), made, (!is_all).then_some(reads)))
    }
}

/// The types that are open.
fn wholes<'a>(columns: &'a Columns, open: &[Open]) -> Vec<Whole<'a>> {
    let mut wholes = Vec::new();
    let mut whole = Some(Whole::Columns(columns.as_slice()));
    for open in open {
        let Some(found) = whole else { break };
        wholes.push(found);
        let current = open.next.checked_sub(1).and_then(|at| found.part(at));
        whole = current.and_then(|(_, part)| part.whole());
    }
    wholes
}

impl<'a> Whole<'a> {
    /// A part, with its name if it has one.
    fn part(self, at: usize) -> Option<(Option<&'a str>, Part<'a>)> {
        match (self, at) {
            (Whole::Columns(columns), _) => {
                columns.get(at).map(|column| (Some(&*column.name), Part::Type(&column.column_type)))
            }
            (Whole::Map(key, _), 0) => Some((None, Part::Key(key))),
            (Whole::List(inner), 0) | (Whole::Map(_, inner), 1) => Some((None, Part::Type(inner))),
            (Whole::List(_) | Whole::Map(..), _) => None,
        }
    }
}

impl<'a> Part<'a> {
    /// What it becomes as a field of this number. Its parts follow it.
    fn becomes(self, field: usize, names: usize, is_given: bool) -> Becomes {
        match self {
            Part::Key(scalar) | Part::Type(&ColumnType::Scalar(scalar)) => Becomes::Leaf(scalar, is_given),
            Part::Type(ColumnType::List(_)) => Becomes::List { element: field + 1 },
            Part::Type(ColumnType::Map(..)) => Becomes::Map { key: field + 1, value: field + 2 },
            Part::Type(ColumnType::Struct(_)) => Becomes::Struct(names),
        }
    }

    fn whole(self) -> Option<Whole<'a>> {
        match self {
            Part::Key(_) | Part::Type(ColumnType::Scalar(_)) => None,
            Part::Type(ColumnType::List(inner)) => Some(Whole::List(inner)),
            Part::Type(ColumnType::Map(key, value)) => Some(Whole::Map(*key, value)),
            Part::Type(ColumnType::Struct(columns)) => Some(Whole::Columns(columns)),
        }
    }
}
