use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use marquetry_base::{Budget, Codec, Codecs, Decompressor, ErrorKind, Machine, Object, Result, Step};

use super::*;
use crate::batch::{Batch, Layout, Values};
use crate::format::{FileMetaData, RowGroup};
use crate::read::ReadOptions;
use crate::schema::{PhysicalType, Plan as _, Schema, of_lines};

/// The plan, made with a budget that is always spent.
fn plan(from: Schema, to: Schema, constants: &[&str]) -> Result<Conform> {
    let mut plan = Conform::plan(from.into(), to.into(), constants);
    loop {
        if let Some(conform) = plan.step(&mut Budget::new(0))? {
            return Ok(conform);
        }
    }
}

type Lines<'a> = &'a [(usize, char, &'a str, &'a str)];

/// The message and the column of the error for reading one schema as another.
fn error(from: Lines<'_>, to: Lines<'_>) -> (ErrorKind, String, Option<String>) {
    let error = plan(of_lines(from), of_lines(to), &[]).expect_err("an error");
    (error.kind(), error.message().to_string(), error.place().column.clone())
}

#[test]
fn what_cannot_be_read_as_another() {
    let optional: Lines<'_> = &[(1, '1', "s", ""), (2, '?', "x", "")];
    let required: Lines<'_> = &[(1, '1', "s", ""), (2, '1', "x", "")];
    let conversion = |path: &str, what: &str| {
        (ErrorKind::Conversion, alloc::format!("the column {path:?} {what}"), Some(path.to_string()))
    };
    assert_eq!(error(optional, required), conversion("s.x", "may be null in the file, and is required"));
    let other: Lines<'_> = &[(1, '1', "s", ""), (2, '1', "y", "")];
    assert_eq!(error(other, required), conversion("s.x", "is required, and not in the file"));
    let leaf: Lines<'_> = &[(1, '1', "s", "")];
    assert_eq!(
        error(leaf, required),
        conversion("s", "is INT32 in the file, which cannot be read as a group")
    );
    let list: Lines<'_> = &[(1, '1', "s", "LIST"), (2, '*', "list", ""), (3, '1', "element", "")];
    assert_eq!(
        error(required, list),
        conversion("s", "is a group in the file, which cannot be read as a list")
    );
    let twice: Lines<'_> = &[(1, '1', "s", ""), (2, '1', "x", ""), (2, '1', "x", "")];
    assert_eq!(error(twice, required), conversion("s.x", "is twice in the file"));
    let twice: Lines<'_> = &[(1, '1', "s", ""), (1, '1', "s", "")];
    assert_eq!(error(twice, leaf), conversion("s", "is twice in the file"));
    let broken: Lines<'_> = &[(1, '1', "s", "LIST"), (2, '1', "list", ""), (3, '1', "element", "")];
    assert_eq!(error(broken, list).0, ErrorKind::Corrupt);
    let constant = |to: Lines<'_>, name| plan(of_lines(leaf), of_lines(to), &[name]).unwrap_err().kind();
    assert_eq!(constant(leaf, "nope"), ErrorKind::Misuse);
    assert_eq!(constant(required, "s"), ErrorKind::Misuse, "a group");
}

#[test]
fn what_is_read() {
    let file = of_lines(&[
        (1, '1', "a", ""),
        (1, '?', "s", ""),
        (2, '*', "many", ""),
        (2, '?', "few", ""),
        (1, '1', "b", ""),
    ]);
    let reads = |to: Lines<'_>| {
        let conform = plan(file.clone(), of_lines(to), &[]).unwrap();
        (conform.reads().iter().copied().collect(), conform.is_identity())
    };
    assert_eq!(reads(&[(1, '1', "a", "")]), (vec![0], true), "the first columns as they are");
    assert_eq!(reads(&[(1, '1', "b", ""), (1, '?', "a", "")]), (vec![3, 0], false));
    assert_eq!(reads(&[(1, '?', "c", "")]), (vec![], false), "no column tells of one that is nowhere");
    // Whether the group is null follows from the leaf with the fewest entries, or from one that is read anyway.
    assert_eq!(reads(&[(1, '?', "s", ""), (2, '?', "new", "")]), (vec![2], false));
    let with_many: Lines<'_> = &[(1, '?', "s", ""), (2, '*', "many", ""), (2, '?', "new", "")];
    assert_eq!(reads(with_many), (vec![1], false));
}

struct NoCodecs;

impl Codecs for NoCodecs {
    fn decompressor(&self, codec: Codec) -> Result<alloc::boxed::Box<dyn Decompressor>> {
        Err(marquetry_base::Error::unsupported(codec.name()))
    }
}

/// The first batch of a file of `rows` rows and no columns, read as `to`.
fn batch_of_nothing(
    rows: u64,
    to: &Arc<Schema>,
    constants: &[(&str, Option<Values>)],
    options: ReadOptions,
) -> Result<Batch> {
    let schema = Arc::new(of_lines(&[]));
    let names: Vec<&str> = constants.iter().map(|(name, _)| *name).collect();
    let conform = Arc::new(Conform::plan(Arc::clone(&schema), Arc::clone(to), &names).at_once()?);
    let metadata = FileMetaData {
        is_partial: false,
        version: 1,
        schema,
        rows,
        row_groups: vec![RowGroup { rows, ..RowGroup::default() }].into(),
        key_values: Vec::new().into(),
        created_by: None,
        column_orders: Vec::new().into(),
        footer_start: 4,
        footer_bytes: 0,
        encryption: None,
    };
    let values = constants.iter().map(|(_, value)| value.clone()).collect();
    let (file, codecs) = (Object(0), Arc::new(NoCodecs));
    let mut reader = ConformReader::new(file, Arc::new(metadata), codecs, options, conform, values)?;
    loop {
        if let Step::Ready(batch) = reader.step(&mut Budget::new(0))? {
            return Ok(batch);
        }
    }
}

#[test]
fn columns_of_nulls_and_of_one_value() {
    let mut to = Arc::new(of_lines(&[
        (1, '?', "null", ""),
        (1, '?', "one", ""),
        (1, '?', "l", ""),
        (2, '*', "x", ""),
    ]));
    for (layout, keep_dictionaries) in [(Layout::Spaced, false), (Layout::Dense, true)] {
        let options = || ReadOptions { layout, keep_dictionaries, batch_rows: 5, ..ReadOptions::default() };
        let one = ("one", Some(Values::Int32(vec![7].into())));
        let batch = batch_of_nothing(3, &to, core::slice::from_ref(&one), options()).unwrap();
        let [null, constant, list] = &batch.columns[..] else { panic!("{batch:?}") };
        let there = if layout == Layout::Spaced { 3 } else { 0 };
        assert_eq!((null.rows, null.nulls, null.values.len(), null.layout), (3, 3, there, layout));
        assert!((0..3).all(|row| null.is_null(row)));
        let expected = match keep_dictionaries {
            true => Values::Dictionary(vec![0, 0, 0].into(), Arc::new(Values::Int32(vec![7].into()))),
            false => Values::Int32(vec![7, 7, 7].into()),
        };
        assert_eq!((&constant.values, constant.nulls, constant.leaf), (&expected, 0, 1));
        let levels = list.levels.as_ref().unwrap();
        assert_eq!(
            (&*levels.definition, levels.repetition.as_deref()),
            (&[0, 0, 0][..], Some(&[0, 0, 0][..]))
        );

        let null = batch_of_nothing(3, &to, &[("one", None)], options()).unwrap();
        assert_eq!(null.columns[1].nulls, 3);
        let kind = |constants: &[(&str, Option<Values>)]| {
            batch_of_nothing(3, &to, constants, options()).unwrap_err().kind()
        };
        assert_eq!(kind(&[("one", Some(Values::Int64(vec![7].into())))]), ErrorKind::Misuse, "another type");
        assert_eq!(kind(&[("one", Some(Values::Int32(vec![7, 8].into())))]), ErrorKind::Misuse, "two values");
    }
    // What a schema claims of a column that is not there takes little memory, or is an error.
    for (width, rows) in [(1 << 16, Ok(15)), (1 << 20, Err(ErrorKind::LimitExceeded))] {
        to = wide(width);
        let batch = batch_of_nothing(100, &to, &[], ReadOptions::default());
        assert_eq!(batch.map(|batch| batch.rows).map_err(|error| error.kind()), rows);
    }
}

/// A schema of a column of long byte strings.
fn wide(width: u32) -> Arc<Schema> {
    let mut union = crate::schema::Union::new();
    union.add(of_lines(&[]).into());
    let column = crate::schema::Column {
        name: "wide".into(),
        physical_type: PhysicalType::FixedLenByteArray(width),
        logical_type: None,
    };
    union.with([column]).plan().at_once().unwrap().schema
}
