//! Any order of calls: a model that only knows what a straight reading gives.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Demand, Error, ErrorKind, Machine, Object, Result, Step, Want};
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::conformed::conformed_sums;
use marquetry_conformance::hostile::{Manner, part};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{FooterReader, ReadOptions};
use marquetry_parquet::schema::{Plan as _, Projection, Schema, Union};

use crate::choices::Choices;
use crate::host::{self, LIMITS, Told, Watched};
use crate::plan::{Only, Plan};
use crate::tree::Tree;

/// A file, mostly right, read in any order of calls.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let options = host::options(choices);
    let tree = Tree::choose(choices, 4);
    let mut plan = Plan::choose(tree, 60, Only::default(), choices);
    if choices.once_in(4) {
        plan.lie(3, choices);
    }
    let bytes = plan.write();
    let mut footer = Watched::new(FooterReader::new(FILE, LIMITS));
    let mut found = None;
    let end = drive(&mut footer, &bytes, choices, |metadata| {
        found = Some(metadata);
        Ok(())
    });
    let straight = host::footer(&bytes, LIMITS, Manner::KIND);
    match (end, &straight) {
        (End::Done(Ok(())), Ok(straight)) => assert_eq!(found.as_ref(), Some(straight)),
        (End::Done(Err(error)), Err(straight)) => assert_eq!(error, *straight),
        (End::Left, _) => {}
        (end, straight) => panic!("{end:?} where a straight reading gives {straight:?}"),
    }
    let Ok(metadata) = straight else { return };
    match choices.byte() % 4 {
        0 if plan.lies == 0 => conform(&plan, &bytes, &metadata, &options, choices),
        _ => read(&plan, &bytes, &metadata, options, choices),
    }
}

/// Some leaves, in any order of calls: what a straight reading of all leaves gives.
fn read(
    plan: &Plan,
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    options: ReadOptions,
    choices: &mut Choices<'_>,
) {
    let schema = &metadata.schema;
    let count = schema.leaves().len();
    let leaves: Vec<usize> = if choices.once_in(2) {
        (0..choices.below(count + 1)).map(|_| choices.below(count)).collect()
    } else {
        (0..count).collect()
    };
    let options = ReadOptions { leaves: Some(leaves.clone()), ..options };
    let mut reader = match host::reader(metadata, &options) {
        Ok(reader) => reader,
        Err(error) => return host::check_error(&error),
    };
    let mut told = Told::new(leaves.len());
    let mut kept: Vec<(Batch, Told)> = Vec::new();
    let end = drive(&mut reader, bytes, choices, |batch: Batch| {
        told.add(schema, &batch)?;
        if kept.len() < 20 {
            let mut alone = Told::new(leaves.len());
            let _ = alone.add(schema, &batch);
            kept.push((batch, alone));
        }
        Ok(())
    });
    drop(reader);
    // What was handed out stays as it was, whatever came after it.
    for (batch, as_it_was) in &kept {
        let mut now = Told::new(leaves.len());
        let _ = now.add(schema, batch);
        assert!(now == *as_it_was, "a batch that was kept has changed");
    }
    let End::Done(result) = end else { return };
    told.end(result);
    let straight = host::read(bytes, metadata, &options, Manner::KIND);
    told.check_same(&straight, "by another order of calls");
    if plan.lies == 0 {
        let expected: Vec<_> = leaves.iter().map(|&leaf| plan.expected[leaf].clone()).collect();
        told.check_expected(&expected);
    }
}

/// How a machine was driven to.
#[derive(Debug)]
enum End {
    /// Its end, or its error.
    Done(Result<()>),
    /// Nowhere: its host left it, or failed it.
    Left,
}

/// Drives a machine by arbitrary calls, and kindly when there are no more choices.
fn drive<M: Machine>(
    machine: &mut M,
    bytes: &Bytes,
    choices: &mut Choices<'_>,
    mut take: impl FnMut(M::Product) -> Result<()>,
) -> End
where
    M::Product: std::fmt::Debug + PartialEq,
{
    let length = bytes.len() as u64;
    let mut demand = Demand::default();
    let mut last = None;
    let calls = choices.below(200);
    let mut supply = |machine: &mut M, range: std::ops::Range<u64>| {
        if range.start < range.end && range.end <= length {
            machine.supply(FILE, range.clone(), part(bytes, &range)).expect("bytes of the object");
            last = Some(range);
        }
    };
    for _ in 0..calls {
        let range_of = |demand: &Demand, choices: &mut Choices<'_>| match demand
            .wants
            .get(choices.below(demand.wants.len()))
        {
            Some(Want::Range(_, range, _)) => range.clone(),
            _ => 0..0,
        };
        match choices.byte() % 16 {
            0..=5 => {
                let units = host::budget(choices);
                let mut asked = if choices.once_in(3) { choices.below(20) } else { usize::MAX };
                let mut need_preempt = || {
                    asked = asked.saturating_sub(1);
                    asked == 0
                };
                let mut budget = Budget::with_preempt(units, &mut need_preempt);
                match machine.step(&mut budget) {
                    Err(error) => {
                        assert_eq!(machine.step(&mut Budget::default()).err().as_ref(), Some(&error));
                        return End::Done(Err(error));
                    }
                    Ok(Step::Done) => {
                        assert_eq!(machine.step(&mut Budget::new(0)), Ok(Step::Done));
                        return End::Done(Ok(()));
                    }
                    Ok(Step::Ready(product)) => {
                        if let Err(error) = take(product) {
                            return End::Done(Err(error));
                        }
                    }
                    Ok(Step::Need(needed)) => demand = needed,
                    Ok(Step::Yield) => {}
                    Ok(Step::Append(..)) => panic!("a reader that writes"),
                }
            }
            // What is wanted, or its beginning, or its end.
            6 | 7 => supply(machine, range_of(&demand, choices)),
            8 => {
                let range = range_of(&demand, choices);
                let end = range.start + 1 + choices.below(40) as u64;
                supply(machine, range.start..end.min(range.end));
            }
            9 => {
                let range = range_of(&demand, choices);
                supply(machine, range.start + choices.below(40) as u64..range.end);
            }
            // Anything.
            10 => {
                let start = choices.below(bytes.len()) as u64;
                supply(machine, start..(start + 1 + choices.below(300) as u64).min(length));
            }
            11 => {
                machine.supply_length(FILE, length).expect("the length");
            }
            12 => misuse(machine, choices),
            13 if choices.once_in(20) => return End::Left,
            14 if choices.once_in(20) => {
                let reason = Error::io("the disk is gone");
                machine.fail(Object(9), 0..1, Error::io("another object's"));
                machine.fail(FILE, range_of(&demand, choices), reason.clone());
                // A machine that had ended or failed before stays as it was.
                if let Err(error) = machine.step(&mut Budget::new(0)) {
                    assert_eq!(machine.step(&mut Budget::unlimited()), Err(error));
                }
                return End::Left;
            }
            _ => {
                for want in std::mem::take(&mut demand).wants {
                    match want {
                        Want::Length(object) => {
                            machine.supply_length(object, length).expect("the length");
                        }
                        Want::Range(_, range, _) => supply(machine, range),
                    }
                }
            }
        }
    }
    let result = marquetry_conformance::hostile::run(machine, FILE, bytes, Manner::KIND, take);
    End::Done(result.map(|_| ()))
}

/// Calls that are no part of the contract: told, and without an effect.
fn misuse<M: Machine>(machine: &mut M, choices: &mut Choices<'_>) {
    let byte = Bytes::from_static(b"x");
    let result = match choices.byte() % 4 {
        0 => machine.supply(Object(7), 0..1, byte),
        1 => machine.supply(FILE, 3..5, byte),
        2 => machine.supply(FILE, std::ops::Range { start: 9, end: 4 }, byte),
        _ => machine.supply_length(Object(7), 3),
    };
    assert_eq!(result.expect_err("misuse").kind(), ErrorKind::Misuse);
}

/// A file read as another schema: its own fields are as they were, however the host behaves.
fn conform(
    plan: &Plan,
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    options: &ReadOptions,
    choices: &mut Choices<'_>,
) {
    let manner = host::for_file(host::manner(choices), bytes);
    let schema = &metadata.schema;
    let parts = [(bytes.clone(), Arc::clone(metadata))];
    let Some(wanted) = wanted(schema, choices) else { return };
    let options = ReadOptions { leaves: None, limits: LIMITS, verify_utf8: false, ..options.clone() };
    if plan.expected.iter().any(|rows| rows.len() > 500) {
        return;
    }
    let sums = |schema: &Arc<Schema>, manner| match conformed_sums(&parts, schema, &options, manner) {
        Ok(sums) => Some(sums),
        Err(error) => {
            assert!(
                matches!(
                    error.kind(),
                    ErrorKind::Conversion
                        | ErrorKind::Corrupt
                        | ErrorKind::Unsupported
                        | ErrorKind::LimitExceeded
                ),
                "{error:?}"
            );
            None
        }
    };
    let kind = sums(&wanted, Manner::KIND);
    assert_eq!(sums(&wanted, manner), kind, "another result by {manner:?}");
    let (Some(kind), Some(own)) = (kind, sums(schema, Manner::KIND)) else { return };
    let is_whole = |name: &str| {
        let shape = |schema: &Schema| {
            let node = schema.child_of_root(name)?;
            Some(schema.leaves_of(node).map(|leaf| schema.leaves()[leaf].physical_type).collect::<Vec<_>>())
        };
        shape(&wanted) == shape(schema)
    };
    for sum in kind {
        if let Some(own) = own.iter().find(|own| own.name == sum.name && is_whole(&sum.name)) {
            assert_eq!(&sum, own, "a field that is not as it was");
        }
    }
}

/// A part of the schema, or the schema with more.
fn wanted(schema: &Arc<Schema>, choices: &mut Choices<'_>) -> Option<Arc<Schema>> {
    let mut projection = Projection::new(Arc::clone(schema));
    for node in schema.children(0) {
        if !choices.once_in(3) {
            let _ = projection.add_column(node);
        }
    }
    let part = Arc::new(projection.plan().at_once().ok()?);
    if choices.once_in(2) {
        return Some(part);
    }
    let other = Plan::choose(Tree::choose(choices, 3), 0, Only::default(), choices);
    let other = host::footer(&other.write(), LIMITS, Manner::KIND).ok()?;
    let mut union = Union::new();
    union.add(part);
    union.add(Arc::clone(&other.schema));
    let unified = union.plan().at_once().ok()?;
    unified.differences.iter().all(|difference| difference.kind.is_bridged()).then_some(unified.schema)
}
