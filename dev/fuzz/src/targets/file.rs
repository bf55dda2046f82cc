//! Whole files.

use std::sync::Arc;

use marquetry_base::{Bytes, Error, Limits, Result};
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::records::{ArraySums, FieldSum, Summing, tell};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{PageScanner, ReadOptions};
use marquetry_parquet::record::Program;
use marquetry_parquet::schema::Plan as _;

use crate::choices::Choices;
use crate::host::{self, LIMITS, Told, Watched, bounded, check_error};
use crate::plan::{Only, Plan};
use crate::tree::Tree;

/// Files of any schema, right or not; or the bytes of one as they are.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    if choices.once_in(16) {
        let (options, manner) = (host::options(choices), host::manner(choices));
        examine(&Bytes::copy_from_slice(choices.rest()), &options, manner, None);
        return;
    }
    let (options, manner) = (host::options(choices), host::manner(choices));
    let tree = Tree::choose(choices, 5);
    let rows_max = choices.pick(&[20, 3, 100, 400]);
    let mut plan = Plan::choose(tree, rows_max, Only::default(), choices);
    if choices.once_in(3) {
        plan.index(choices);
    }
    plan.lie(6, choices);
    examine_plan(&plan, &options, manner);
}

/// Reads a planned file in two manners, of which the one is kind.
pub(crate) fn examine_plan(plan: &Plan, options: &ReadOptions, manner: Manner) {
    let bytes = plan.write();
    let expected = (plan.lies == 0).then_some(&plan.expected);
    examine(&bytes, options, manner, expected);
}

/// Reads a file in two manners. Where it must be right, it has exactly these rows.
pub(crate) fn examine(
    bytes: &Bytes,
    options: &ReadOptions,
    manner: Manner,
    expected: Option<&Vec<Vec<Vec<u8>>>>,
) {
    let manner = host::for_file(manner, bytes);
    let kind = bounded(bytes, &options.limits, || whole(bytes, options, Manner::KIND));
    let hostile = bounded(bytes, &options.limits, || whole(bytes, options, manner));
    same(&hostile, &kind, &format!("by {manner:?}"));
    if let Some(expected) = expected {
        let told = kind.expect("a footer without a lie");
        told.rows.check_expected(expected);
        assert!(told.pages.is_ok(), "{:?}", told.pages);
    }
}

/// The same result of two manners.
///
/// A wrong file has several errors, and which is met first depends on how far each column is decoded ahead; so it does how many rows were
/// handed out before. That there is one does not depend on it, nor what is in the rows.
fn same(hostile: &Result<Whole>, kind: &Result<Whole>, how: &str) {
    let (hostile, kind) = match (hostile, kind) {
        (Ok(hostile), Ok(kind)) => (hostile, kind),
        _ => return assert_eq!(hostile, kind, "another footer {how}"),
    };
    hostile.rows.check_same(&kind.rows, how);
    match (&hostile.records, &kind.records) {
        (Some(Err(_)), Some(Err(_))) => {}
        // Where enough was read there may have been an error to come.
        (Some(Ok(told)), Some(Err(_))) | (Some(Err(_)), Some(Ok(told))) if told.is_cut => {}
        (hostile, kind) => assert_eq!(hostile, kind, "other records {how}"),
    }
    assert_eq!(hostile.pages, kind.pages, "other page headers {how}");
}

/// All that is read of a file.
#[derive(Debug, PartialEq)]
struct Whole {
    rows: Told,
    records: Option<Result<Records>>,
    pages: Result<usize>,
}

/// What records tell.
#[derive(Debug, PartialEq)]
struct Records {
    sums: Vec<FieldSum>,
    /// There are more, at which nobody looked.
    is_cut: bool,
}

fn whole(bytes: &Bytes, options: &ReadOptions, manner: Manner) -> Result<Whole> {
    let metadata = host::footer(bytes, LIMITS, manner).inspect_err(check_error)?;
    let rows = host::read(bytes, &metadata, options, manner);
    let records = Program::plan(Arc::clone(&metadata.schema), None)
        .at_once()
        .inspect_err(check_error)
        .ok()
        .map(|program| records(bytes, &metadata, &program, options, manner));
    let pages = pages(bytes, &metadata, manner);
    Ok(Whole { rows, records, pages })
}

/// The rows as records and as arrays, which must be the same.
fn records(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    program: &Program,
    options: &ReadOptions,
    manner: Manner,
) -> Result<Records> {
    let schema = &metadata.schema;
    let mut sink = Summing::new(schema, program);
    let mut arrays = ArraySums::new(schema, None);
    let options = ReadOptions { layout: marquetry_parquet::batch::Layout::Spaced, ..options.clone() };
    let mut reader = host::reader(metadata, &options).inspect_err(check_error)?;
    let mut entries = 0;
    let enough = || Error::io("enough");
    let result = hostile::run(&mut reader, FILE, bytes, manner, |batch| {
        let largest =
            batch.columns.iter().filter_map(|column| Some(column.levels.as_ref()?.definition.len()));
        entries += largest.max().unwrap_or(0).max(batch.rows);
        if entries > host::ROWS_MAX {
            return Err(enough());
        }
        tell(program, &batch, &mut sink, manner.budget)?;
        arrays.add(&batch)
    });
    let is_cut = match result {
        Ok(_) => false,
        Err(error) if error == enough() => true,
        Err(error) => {
            check_error(&error);
            return Err(error);
        }
    };
    let sums = sink.finish();
    assert_eq!(sums, arrays.finish(), "arrays are not what records are");
    Ok(Records { sums, is_cut })
}

/// Scans the page headers of all chunks; says their number.
fn pages(bytes: &Bytes, metadata: &Arc<FileMetaData>, manner: Manner) -> Result<usize> {
    let mut found = 0;
    let limits = Limits { page_header_bytes: LIMITS.page_header_bytes, ..Limits::DEFAULT };
    for group in 0..metadata.row_groups.len().min(4) {
        for leaf in 0..metadata.schema.leaves().len().min(50) {
            let scanner = PageScanner::new(FILE, metadata, group, leaf, limits).inspect_err(check_error)?;
            hostile::run(&mut Watched::new(scanner), FILE, bytes, manner, |_| {
                found += 1;
                Ok(())
            })
            .inspect_err(check_error)?;
        }
    }
    Ok(found)
}
