//! What is made of schemas before the first row.

use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Limits, Result};
use marquetry_conformance::craft::{Column, INT32, Struct, Table, group, leaf};
use marquetry_parquet::batch::{Assembler, Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::read::Conform;
use marquetry_parquet::record::Program;
use marquetry_parquet::schema::{PathPart, Plan, Projection, Schema, Union};

use super::{Case, Timer, Work};

const FIELD: &str = "schema/plan.rs FIELD_PRICE";
const NAME: &str = "schema/names.rs NAME_PRICE";

/// What is made of a schema.
#[derive(Clone, Copy, Debug)]
pub enum Planned {
    /// The program of its records.
    Program,
    /// The array of its first column, of no rows.
    Array,
    /// The schema of all its columns, by their names.
    Projection,
    /// The union with itself.
    Union,
    /// How it is read as itself.
    Conform,
}

/// See [`super::cases`].
pub(super) fn cases(thousands: usize) -> Vec<Case> {
    let count = thousands * 10;
    // Names in an order that looks random.
    let name = |at: usize| format!("{}", at.wrapping_mul(0x9e37_79b9) % (1 << 32));
    let long = |at: usize| format!("{}{}", "a long name ".repeat(8), name(at));
    let flat = Table::new((0..count).map(|at| Column::required(&name(at), INT32))).write();
    let alike = Table::new((0..count).map(|at| Column::required(&long(at), INT32))).write();
    let children = i32::try_from(count).unwrap_or(i32::MAX);
    let elements = (0..count).map(|at| leaf(&name(at), 1, INT32));
    let one = Table::nested(1, [group("s", 1, children)].into_iter().chain(elements)).write();
    let groups = Table::nested(children, (0..count).flat_map(|at| pair(&name(at)))).write();
    let case = |price, what: &str, file: &Bytes, planned| {
        Case::new(price, format!("{planned:?} of {what}"), count, file.clone()).work(Work::Plan(planned))
    };
    let mut cases = Vec::new();
    for (what, file) in [("columns", &flat), ("one struct", &one), ("groups", &groups)] {
        for planned in [Planned::Program, Planned::Array, Planned::Union] {
            cases.push(case(FIELD, what, file, planned));
        }
        for planned in [Planned::Projection, Planned::Conform] {
            cases.push(case(NAME, what, file, planned));
        }
    }
    for planned in [Planned::Projection, Planned::Conform, Planned::Union] {
        cases.push(case(NAME, "names that begin alike", &alike, planned));
    }
    // Of columns, only the first is one array.
    cases.retain(|case| !case.name.starts_with("Array of") || case.name == "Array of one struct");
    cases
}

/// A group of one leaf.
fn pair(name: &str) -> [Struct; 2] {
    [group(name, 1, 1), leaf("x", 1, INT32)]
}

/// Makes what is planned of a schema.
pub(super) fn make(planned: Planned, schema: &Arc<Schema>, timer: &mut Timer<'_>) -> Result<()> {
    let again = || Arc::clone(schema);
    match planned {
        Planned::Program => drop(finish(Program::plan(again(), None), timer)?),
        Planned::Conform => drop(finish(Conform::plan(again(), again(), &[]), timer)?),
        Planned::Union => {
            let mut union = Union::new();
            union.add(again());
            union.add(again());
            drop(finish(union.plan(), timer)?);
        }
        Planned::Projection => {
            let mut projection = Projection::new(again());
            for node in schema.children(0) {
                let text = schema.nodes()[node].name.clone();
                let path = [PathPart { text, is_whole: true }];
                while let Ok(None) = timer.step(|budget| projection.add(&path, budget)) {}
            }
            drop(finish(projection.plan(), timer)?);
        }
        Planned::Array => {
            let mut assembler = Assembler::new(again(), 1, None, &Limits::TRUSTED);
            let batch = Batch { row_group: 0, first_row: 0, rows: 0, columns: Vec::new() };
            let column = ColumnBatch {
                leaf: 0,
                rows: 0,
                nulls: 0,
                validity: None,
                values: Values::Int32(Vec::new().into()),
                layout: Layout::Dense,
                levels: Some(marquetry_parquet::batch::Levels {
                    definition: Vec::new().into(),
                    repetition: None,
                }),
                provisional: false,
            };
            while timer.step(|budget| assembler.step(&batch, &|_| Some(&column), budget))?.is_none() {}
        }
    }
    Ok(())
}

fn finish<P: Plan>(mut plan: P, timer: &mut Timer<'_>) -> Result<P::Made> {
    loop {
        if let Some(made) = timer.step(|budget| plan.step(budget))? {
            return Ok(made);
        }
    }
}
