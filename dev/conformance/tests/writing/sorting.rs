//! Rows that are sorted are those that came, in order, however much is held and whatever the host does.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use marquetry_base::{Budget, ErrorKind, Machine, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::with_bytes;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::written::{self, Written};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Levels, Values};
use marquetry_parquet::format::{ColumnOrder, Compression, SortingColumn};
use marquetry_parquet::prune::Order;
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_parquet::sort::{SortOptions, Sorted, Sorter};
use marquetry_parquet::write::Fed;

use crate::given::{self, Flavour, SHAPES, TYPES};
use crate::rewritten::SPILL;

/// Units that a step may charge beyond its budget, for the slice that it was in the middle of; and where it has none, for a thousand rows
/// that are sorted at once.
const SLICE_UNITS_MAX: u64 = 60_000;
const SORT_UNITS_MAX: u64 = 180_000;

/// Sorts batches; what was written, and what came out.
fn sort(
    schema: &Arc<Schema>,
    given: &[Batch],
    by: &[SortingColumn],
    options: SortOptions,
    manner: Manner,
) -> marquetry_base::Result<(Written, Vec<Batch>)> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut sorter = Sorter::new(Arc::clone(schema), by, codecs, SPILL, options)?;
    let (mut left, mut sorted) = (given.iter(), Vec::new());
    let written = written::write(&mut sorter, manner, |sorter, product| {
        match product {
            Sorted::Rows(batch) => sorted.push(batch),
            Sorted::Room => match left.next() {
                Some(batch) => assert_eq!(sorter.feed(batch.clone())?, Fed::Taken),
                None => sorter.finish(),
            },
        }
        Ok(())
    })?;
    Ok((written, sorted))
}

/// A column's rows: levels and values, whatever their layout.
fn rows_of(schema: &Schema, column: &ColumnBatch) -> Vec<Vec<u8>> {
    let leaf = &schema.leaves()[column.leaf];
    let mut rows: Vec<Vec<u8>> = Vec::new();
    let mut next = 0;
    let put = |row: &mut Vec<u8>, index: usize| {
        with_bytes(&column.values, index, |bytes| {
            row.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
            row.extend(bytes);
        })
    };
    match &column.levels {
        Some(levels) => {
            for (entry, definition) in levels.definition.iter().enumerate() {
                let repetition = levels.repetition.as_ref().map_or(0, |levels| levels[entry]);
                if repetition == 0 {
                    rows.push(Vec::new());
                }
                let row = rows.last_mut().unwrap();
                row.extend([*definition, repetition]);
                if u16::from(*definition) == leaf.definition_max {
                    put(row, next);
                    next += 1;
                }
            }
        }
        None => {
            for row in 0..column.rows {
                let mut text = Vec::new();
                if !column.is_null(row) {
                    put(&mut text, if column.layout == Layout::Dense { next } else { row });
                    next += 1;
                }
                rows.push(text);
            }
        }
    }
    assert_eq!(rows.len(), column.rows);
    rows
}

/// All rows of batches: for each a list of what its columns hold.
fn rows(schema: &Schema, batches: &[Batch]) -> Vec<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for batch in batches {
        let columns: Vec<Vec<Vec<u8>>> = batch.columns.iter().map(|column| rows_of(schema, column)).collect();
        all.extend(
            (0..batch.rows).map(|row| columns.iter().map(|column| column[row].clone()).collect::<Vec<_>>()),
        );
    }
    all
}

/// The same by a sort of rows, with the order that statistics have.
fn expected(schema: &Schema, given: &[Batch], by: &[SortingColumn]) -> Vec<Vec<Vec<u8>>> {
    let mut all = rows(schema, given);
    all.sort_by(|a, b| {
        by.iter().fold(Ordering::Equal, |order, column| {
            let number = usize::try_from(column.column).unwrap();
            let leaf = &schema.leaves()[number];
            let of_type = match leaf.physical_type {
                PhysicalType::Int96 => ColumnOrder::Int96Timestamp,
                _ => ColumnOrder::TypeDefined,
            };
            let logical = schema.node_of(leaf).logical_type.as_ref();
            let of_type = Order::of(leaf.physical_type, logical, of_type).unwrap();
            order.then_with(|| match (&*a[number], &*b[number]) {
                ([], []) => Ordering::Equal,
                ([], _) => {
                    if column.nulls_first {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    }
                }
                (_, []) => {
                    if column.nulls_first {
                        Ordering::Greater
                    } else {
                        Ordering::Less
                    }
                }
                (a, b) => {
                    let order = of_type.compare(&a[4..], &b[4..]).unwrap();
                    if column.descending { order.reverse() } else { order }
                }
            })
        })
    });
    all
}

fn at(schema: &Schema, path: &str) -> usize {
    (0..schema.leaves().len()).find(|leaf| schema.leaf_path(*leaf) == path).unwrap()
}

fn leaf(schema: &Schema, path: &str) -> u32 {
    u32::try_from(at(schema, path)).unwrap()
}

fn by(schema: &Schema, path: &str, descending: bool, nulls_first: bool) -> SortingColumn {
    SortingColumn { column: leaf(schema, path), descending, nulls_first }
}

fn options(memory_bytes: u64) -> SortOptions {
    SortOptions { memory_bytes, ..SortOptions::default() }
}

/// All types as keys, one after the other; all shapes travel with their rows.
#[test]
fn every_type_in_memory_and_by_way_of_runs() {
    let schema = given::schema(&TYPES, &SHAPES);
    for (number, layout) in [Layout::Spaced, Layout::Dense].into_iter().enumerate() {
        let given: Vec<Batch> = (3..)
            .zip([300, 1, 700, 20, 100])
            .map(|(seed, rows)| given::batch(&schema, rows, Flavour::Few, layout, seed))
            .collect();
        for (at, (name, _)) in TYPES.iter().enumerate() {
            let keys = [
                by(&schema, &format!("{name}_optional"), at % 2 == 0, (at / 2) % 2 == 0),
                by(&schema, &format!("{}_required", TYPES[(at + 3) % TYPES.len()].0), at % 3 == 0, false),
            ];
            let expected = expected(&schema, &given, &keys);
            for memory_bytes in [u64::MAX, 1] {
                let (written, sorted) =
                    sort(&schema, &given, &keys, options(memory_bytes), Manner::KIND).unwrap();
                assert!(rows(&schema, &sorted) == expected, "{name}, {layout:?} {number}, {memory_bytes}");
                // One run for each batch, merged two at a time, or nothing.
                assert_eq!(written.objects.contains_key(&SPILL), memory_bytes == 1);
            }
        }
    }
}

#[test]
fn whatever_the_host_does_rows_are_the_same_and_steps_small() {
    let schema = given::schema(&TYPES, &SHAPES);
    let given: Vec<Batch> = (3..)
        .zip([50, 20, 80])
        .map(|(seed, rows)| given::batch(&schema, rows, Flavour::Few, Layout::Dense, seed))
        .collect();
    let keys = [by(&schema, "bytes_optional", false, false)];
    let expected = expected(&schema, &given, &keys);
    for memory_bytes in [u64::MAX, 1] {
        let (kind, _) = sort(&schema, &given, &keys, options(memory_bytes), Manner::KIND).unwrap();
        for manner in [Manner::DISORDERLY, Manner::USUAL, Manner { piece_bytes: 1000, ..Manner::ONE_BYTE }] {
            let (written, sorted) = sort(&schema, &given, &keys, options(memory_bytes), manner).unwrap();
            assert!(rows(&schema, &sorted) == expected, "{manner:?}");
            assert!(kind.object(SPILL) == written.object(SPILL), "{manner:?}");
            if manner.budget <= 1 {
                assert!(written.report.units_max < SORT_UNITS_MAX, "{}", written.report.units_max);
            }
        }
    }
}

/// Many rows: pieces, row groups and batches all end somewhere in the midst.
#[test]
fn steps_are_small() {
    let schema = given::schema(&TYPES, &["required", "optional", "list"]);
    let keys = [by(&schema, "int64_optional", false, false), by(&schema, "bytes_required", true, false)];
    let given: Vec<Batch> = (1..)
        .zip([9000, 30_000, 7000])
        .map(|(seed, rows)| given::batch(&schema, rows, Flavour::Random, Layout::Spaced, seed))
        .collect();
    let mut all = Vec::new();
    for memory_bytes in [u64::MAX, 4 << 20] {
        let manner = Manner { budget: Budget::DEFAULT_UNITS, ..Manner::KIND };
        let (written, sorted) = sort(&schema, &given, &keys, options(memory_bytes), manner).unwrap();
        println!("{:?}, largest piece {}", written.report, written.piece_bytes_max);
        assert!(written.report.units_max <= Budget::DEFAULT_UNITS + SLICE_UNITS_MAX);
        assert!(written.piece_bytes_max < 1 << 20);
        assert!(sorted.iter().map(|batch| batch.rows).sum::<usize>() == 46_000);
        assert!(sorted.iter().all(|batch| batch.rows <= 8192));
        all.push(rows(&schema, &sorted));
    }
    assert!(all[0] == all[1], "whether rows were in memory or not");
    assert!(all[0] == expected(&schema, &given, &keys));
}

/// A row of many values, long strings and long keys: no array is large that need not be.
#[test]
fn rows_of_any_size() {
    let schema = given::schema(&[TYPES[6], TYPES[2]], &["required", "list"]);
    let strings = |all: &[String]| {
        Values::ByteArray(
            ByteArrays::from_lengths(all.concat().into_bytes().into(), all.iter().map(String::len)).unwrap(),
        )
    };
    let flat = |leaf, values: Values| ColumnBatch {
        leaf,
        rows: values.len(),
        nulls: 0,
        validity: None,
        values,
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    };
    // Rows of 1, 200,000 and 3 elements.
    let list = |leaf, values: &dyn Fn(usize) -> Values| {
        let lengths = [1, 200_000, 3];
        let total = lengths.iter().sum();
        let max = u8::try_from(schema.leaves()[leaf].definition_max).unwrap();
        let repetition: Vec<u8> =
            lengths.iter().flat_map(|length| (0..*length).map(|at| u8::from(at > 0))).collect();
        let levels = Levels { definition: vec![max; total].into(), repetition: Some(repetition.into()) };
        ColumnBatch { rows: 3, levels: Some(levels), layout: Layout::Dense, ..flat(leaf, values(total)) }
    };
    let key = |end: char| format!("{}{end}", "k".repeat(60_000));
    let batch = Batch {
        row_group: 0,
        first_row: 0,
        rows: 3,
        columns: vec![
            flat(0, strings(&[key('c'), key('a'), key('b')])),
            list(1, &|values| strings(&(0..values).map(|at| format!("element {at}")).collect::<Vec<_>>())),
            flat(2, Values::Int64(vec![1, 2, 3].into())),
            list(3, &|values| Values::Int64((0..i64::try_from(values).unwrap()).collect::<Vec<_>>().into())),
        ],
    };
    let keys = [by(&schema, &schema.leaf_path(0), true, false)];
    let given = [batch.clone(), batch];
    let expected = expected(&schema, &given, &keys);
    for memory_bytes in [u64::MAX, 1] {
        let manner = Manner { budget: Budget::DEFAULT_UNITS, ..Manner::KIND };
        let (written, sorted) = sort(&schema, &given, &keys, options(memory_bytes), manner).unwrap();
        assert!(rows(&schema, &sorted) == expected);
        // The reader of a run takes so large a row in larger slices.
        assert!(written.report.units_max <= Budget::DEFAULT_UNITS + 2 * SLICE_UNITS_MAX);
        // A large row is alone, or the last.
        assert!(sorted.len() > 2, "{}", sorted.len());
    }
}

#[test]
fn rows_that_cannot_be_sorted() {
    let schema = given::schema(&TYPES, &SHAPES);
    let batch = given::batch(&schema, 100, Flavour::Few, Layout::Spaced, 3);
    let keys = [by(&schema, "int32_optional", false, false)];
    let error = |keys: &[SortingColumn], batch: &Batch| {
        sort(&schema, std::slice::from_ref(batch), keys, options(1), Manner::KIND).unwrap_err().to_string()
    };
    assert_eq!(error(&[], &batch), "rows sorted by no column");
    assert_eq!(
        error(&[keys[0], keys[0]], &batch),
        "rows sorted by the same column twice (column int32_optional)"
    );
    let nested = schema.leaves().iter().position(|leaf| leaf.repetition_max > 0).unwrap();
    let nested = SortingColumn { column: u32::try_from(nested).unwrap(), ..keys[0] };
    assert!(error(&[nested], &batch).starts_with("sorting by a column that is nested (column boolean_list"));
    assert_eq!(error(&[SortingColumn { column: 99, ..keys[0] }], &batch), "sorted by leaf 99 of 40");
    let mut wrong = batch.clone();
    wrong.columns[5].values = Values::Int64(vec![1; 100].into());
    assert_eq!(error(&keys, &wrong), "INT64 where INT32 is to be (column int32_required)");
    let mut few = batch.clone();
    few.columns[5].values = Values::Int32(vec![1; 99].into());
    assert_eq!(error(&keys, &few), "99 values, where 100 are to be (column int32_required)");
    let mut levels = batch.clone();
    levels.columns[8].values = levels.columns[8].values.slice(0..1);
    assert!(error(&keys, &levels).starts_with("levels that tell of 100 rows and "));
    let mut long = batch.clone();
    long.first_row = 7;
    let at = at(&schema, "bytes_required");
    let mut lengths = [0; 100];
    lengths[42] = 70_000;
    long.columns[at].values =
        Values::ByteArray(ByteArrays::from_lengths(vec![0; 70_000].into(), lengths).unwrap());
    let keys = [by(&schema, "bytes_required", false, false)];
    let found = sort(&schema, &[batch.clone(), long], &keys, options(u64::MAX), Manner::KIND).unwrap_err();
    assert_eq!(found.kind(), ErrorKind::LimitExceeded);
    assert_eq!(found.place().row, Some(142), "among all rows");
}

#[test]
fn a_sorter_that_is_used_wrongly() {
    let schema = given::schema(&TYPES[..2], &["required"]);
    let batch = given::batch(&schema, 10, Flavour::Few, Layout::Spaced, 3);
    let keys = [by(&schema, "int32_required", false, false)];
    let codecs = Arc::new(StandardCodecs::default());
    let mut sorter = Sorter::new(Arc::clone(&schema), &keys, codecs, SPILL, SortOptions::default()).unwrap();
    assert_eq!(sorter.feed(batch.clone()).unwrap(), Fed::Taken);
    assert_eq!(sorter.feed(batch.clone()).unwrap(), Fed::Full(batch.clone()));
    while sorter.step(&mut Budget::default()).unwrap() != Step::Ready(Sorted::Room) {}
    assert_eq!((sorter.rows(), sorter.runs(), sorter.spilled_bytes()), (10, 0, 0));
    assert!(sorter.held() > 0);
    let fewer = Batch { columns: batch.columns[1..].to_vec(), ..batch.clone() };
    assert_eq!(sorter.feed(fewer).unwrap_err().kind(), ErrorKind::Misuse);
    sorter.finish();
    assert_eq!(sorter.feed(batch).unwrap_err().kind(), ErrorKind::Misuse);
}

/// No rows, and rows of one value: nothing is lost.
#[test]
fn little_to_sort() {
    let schema = given::schema(&TYPES[..2], &["required"]);
    let keys = [by(&schema, "int32_required", false, false)];
    for memory_bytes in [u64::MAX, 1] {
        let of =
            |given: &[Batch]| sort(&schema, given, &keys, options(memory_bytes), Manner::USUAL).unwrap().1;
        assert_eq!(of(&[]), []);
        let empty = given::batch(&schema, 0, Flavour::Few, Layout::Spaced, 3);
        let one = given::batch(&schema, 1, Flavour::Few, Layout::Spaced, 3);
        assert_eq!(of(std::slice::from_ref(&empty)), []);
        assert_eq!(rows(&schema, &of(&[empty, one.clone()])), rows(&schema, &[one]));
    }
}

/// A run that was changed behind the sorter's back is found.
#[test]
fn a_run_that_is_broken() {
    let schema = given::schema(&TYPES[..3], &["optional"]);
    let keys = [by(&schema, "int32_optional", false, false)];
    let given = [1, 2].map(|seed| given::batch(&schema, 1000, Flavour::Random, Layout::Spaced, seed));
    let options = SortOptions { compression: Compression::Uncompressed, ..options(1) };
    let codecs = Arc::new(StandardCodecs::default());
    let mut sorter = Sorter::new(Arc::clone(&schema), &keys, codecs, SPILL, options).unwrap();
    let (mut left, mut object) = (given.iter(), Vec::new());
    let error = loop {
        match sorter.step(&mut Budget::unlimited()) {
            Ok(Step::Ready(Sorted::Room)) => match left.next() {
                Some(batch) => drop(sorter.feed(batch.clone()).unwrap()),
                None => sorter.finish(),
            },
            Ok(Step::Append(_, bytes)) => object.extend_from_slice(&bytes),
            Ok(Step::Need(demand)) => {
                object[200] ^= 1;
                for want in demand.wants {
                    let marquetry_base::Want::Range(_, range, _) = want else { panic!("{want:?}") };
                    let index = |at: u64| usize::try_from(at).unwrap();
                    let bytes = object[index(range.start)..index(range.end)].to_vec();
                    sorter.supply(SPILL, range, bytes.into()).unwrap();
                }
                object[200] ^= 1;
            }
            Ok(other) => assert!(!matches!(other, Step::Done), "nothing is found"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(sorter.step(&mut Budget::default()), Err(error));
}

/// Keys of nothing but the greatest bytes are as great as the end of what is merged, and come before it.
#[test]
fn greatest_keys_come_before_the_end() {
    let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None)).required();
    let schema = Arc::new(Schema::of_fields(&["a", "b", "id"].map(leaf)).unwrap());
    let batch = |number: i64| {
        let ids: Vec<i64> = (0..1500).map(|row| number * 1500 + row).collect();
        // Every fourth row has a lesser key.
        let key: Vec<i64> = ids.iter().map(|id| if id % 4 == 0 { *id } else { i64::MAX }).collect();
        Batch::of_values([key.clone().into(), key.into(), ids.into()]).unwrap()
    };
    let given: Vec<Batch> = (0..5).map(batch).collect();
    let by = [0, 1].map(|column| SortingColumn { column, descending: false, nulls_first: false });
    let expected = expected(&schema, &given, &by);
    for memory_bytes in [u64::MAX, 100_000] {
        let options = SortOptions { memory_bytes, ..SortOptions::default() };
        let (_, sorted) = sort(&schema, &given, &by, options, Manner::KIND).unwrap();
        assert!(rows(&schema, &sorted) == expected, "with {memory_bytes} bytes");
    }
}

/// The same batch, with dictionaries of these entries in the flat columns whose values are among them.
fn with_dictionaries(mut batch: Batch, entries: &[Option<Arc<Values>>]) -> Batch {
    let bytes_of = |values: &Values, at: usize| {
        let mut all = Vec::new();
        with_bytes(values, at, |bytes| all.extend_from_slice(bytes));
        all
    };
    for (column, entries) in batch.columns.iter_mut().zip(entries) {
        let Some(entries) = entries else { continue };
        let numbers: HashMap<Vec<u8>, u32> =
            (0..).zip(0..entries.len()).map(|(number, at)| (bytes_of(entries, at), number)).collect();
        let index = |at: usize| {
            let is_null = column.layout == Layout::Spaced && column.is_null(at);
            if is_null { Some(0) } else { numbers.get(&bytes_of(&column.values, at)).copied() }
        };
        if let Some(indices) = (0..column.values.len()).map(index).collect::<Option<Vec<u32>>>() {
            column.values = Values::Dictionary(indices.into(), Arc::clone(entries));
        }
    }
    batch
}

/// The values of a batch's flat columns, as dictionaries from this value on.
fn entries_of(batch: &Batch, from: usize) -> Vec<Option<Arc<Values>>> {
    let entries = |column: &ColumnBatch| {
        let is_flat = column.levels.is_none() && !matches!(column.values, Values::Boolean(_));
        is_flat.then(|| Arc::new(column.values.slice(from.min(column.values.len() - 1)..column.values.len())))
    };
    batch.columns.iter().map(entries).collect()
}

fn has_dictionaries(sorted: &[Batch]) -> Vec<usize> {
    let is_dictionary = |column: &&ColumnBatch| matches!(column.values, Values::Dictionary(..));
    sorted.iter().map(|batch| batch.columns.iter().filter(is_dictionary).count()).collect()
}

/// Dictionaries of several sources become one; their rows are those of values, in memory and by way of runs.
#[test]
fn dictionaries_are_kept() {
    let schema = given::schema(&TYPES, &["required", "optional", "list"]);
    let flat = 2 * TYPES.len();
    for layout in [Layout::Spaced, Layout::Dense] {
        let plain: Vec<Batch> = (3..)
            .zip([300, 150, 40, 200, 120])
            .map(|(seed, rows)| given::batch(&schema, rows, Flavour::Few, layout, seed))
            .collect();
        // Two sources, of which the second has other entries, or the same in another order; and a batch that is small.
        let [first, second] = [entries_of(&plain[0], 0), entries_of(&plain[3], 7)];
        let given: Vec<Batch> = (plain.iter().zip([&first, &first, &first, &second, &second]))
            .map(|(batch, entries)| with_dictionaries(batch.clone(), entries))
            .collect();
        let keys = [by(&schema, "int32_optional", false, true), by(&schema, "bytes_required", true, false)];
        let expected = expected(&schema, &given, &keys);
        // Not those of booleans and keys.
        assert_eq!(has_dictionaries(&given), [flat - 2; 5]);
        for keep_dictionaries in [true, false] {
            // All in memory; some of it; nothing.
            for memory_bytes in [u64::MAX, 100_000, 1] {
                let options = SortOptions { keep_dictionaries, ..options(memory_bytes) };
                let (_, sorted) = sort(&schema, &given, &keys, options.clone(), Manner::KIND).unwrap();
                assert!(
                    rows(&schema, &sorted) == expected,
                    "{layout:?}, {keep_dictionaries}, {memory_bytes}"
                );
                match keep_dictionaries && memory_bytes == u64::MAX {
                    true => assert_eq!(has_dictionaries(&sorted), [flat - 4]),
                    false => assert!(has_dictionaries(&sorted).iter().all(|columns| *columns == 0)),
                }
            }
        }
    }
}

/// The same with hosts of every manner, which get the same batches and the same runs.
#[test]
fn dictionaries_are_kept_whatever_the_host_does() {
    let schema = given::schema(&[TYPES[1], TYPES[6], TYPES[7]], &["required", "optional"]);
    let plain: Vec<Batch> = (3..)
        .zip([300, 40, 1100])
        .map(|(seed, rows)| given::batch(&schema, rows, Flavour::Few, Layout::Dense, seed))
        .collect();
    let [first, second] = [entries_of(&plain[0], 0), entries_of(&plain[2], 7)];
    let given: Vec<Batch> = (plain.iter().zip([&first, &first, &second]))
        .map(|(batch, entries)| with_dictionaries(batch.clone(), entries))
        .collect();
    let keys = [by(&schema, "int32_optional", false, true)];
    for (memory_bytes, dictionaries) in [(u64::MAX, 5), (20_000, 0)] {
        let options = SortOptions { keep_dictionaries: true, ..options(memory_bytes) };
        let (kind, all) = sort(&schema, &given, &keys, options.clone(), Manner::KIND).unwrap();
        assert!(rows(&schema, &all) == expected(&schema, &given, &keys));
        assert!(has_dictionaries(&all).iter().all(|columns| *columns == dictionaries));
        assert_eq!(kind.objects.contains_key(&SPILL), dictionaries == 0);
        for manner in [Manner::USUAL, Manner { budget: 1, ..Manner::KIND }] {
            let (written, sorted) = sort(&schema, &given, &keys, options.clone(), manner).unwrap();
            assert!(sorted == all, "{manner:?}");
            assert!(kind.objects.get(&SPILL) == written.objects.get(&SPILL), "{manner:?}");
            if manner.budget == 1 {
                assert!(written.report.units_max < SORT_UNITS_MAX, "{}", written.report.units_max);
            }
        }
    }
}

/// What is no dictionary that can be kept: too many entries, long ones, none at all; and indices without an entry.
#[test]
fn dictionaries_that_are_not_kept() {
    let leaf = |name: &str, kind| FieldDef::new(name, FieldType::Leaf(kind, None));
    let fields = [
        leaf("id", PhysicalType::Int64).required(),
        leaf("text", PhysicalType::ByteArray),
        leaf("number", PhysicalType::Double),
    ];
    let schema = Arc::new(Schema::of_fields(&fields).unwrap());
    let strings = |all: &[String]| {
        let bytes = all.concat().into_bytes();
        Arc::new(Values::ByteArray(
            ByteArrays::from_lengths(bytes.into(), all.iter().map(String::len)).unwrap(),
        ))
    };
    let batch = |texts: &Arc<Values>, numbers: &Arc<Values>, rows: usize, start: u64, are_null: bool| {
        let random = |row: u64| (row + start).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let rows_u64 = u64::try_from(rows).unwrap();
        let index = |row: u64, entries: &Values| match u64::try_from(entries.len()).unwrap() {
            0 => 0,
            entries => u32::try_from(random(row) % entries).unwrap(),
        };
        let indices = |of: &Arc<Values>| {
            Values::Dictionary(
                (0..rows_u64).map(|row| index(row, of)).collect::<Vec<_>>().into(),
                Arc::clone(of),
            )
        };
        let ids: Vec<i64> = (0..rows_u64).map(|row| i64::try_from(random(row)).unwrap()).collect();
        let mut batch = Batch::of_values([ids.into(), indices(texts), indices(numbers)]).unwrap();
        for column in batch.columns.iter_mut().skip(1).filter(|_| are_null) {
            (column.nulls, column.validity) = (rows, Some((0..rows).map(|_| false).collect()));
            column.layout = Layout::Spaced;
        }
        batch
    };
    let texts = |count: usize, salt: &str| {
        strings(&(0..count).map(|n| format!("{salt}, entry {n}")).collect::<Vec<_>>())
    };
    let numbers = |count: u32| Arc::new(Values::Double((0..count).map(f64::from).collect::<Vec<_>>().into()));
    let long = strings(&["short".into(), "x".repeat(5000), "y".repeat(20)]);
    let keys = [SortingColumn { column: 0, descending: true, nulls_first: false }];
    let of = |given: &[Batch]| {
        let options = SortOptions { keep_dictionaries: true, ..options(u64::MAX) };
        let (_, sorted) = sort(&schema, given, &keys, options.clone(), Manner::KIND).unwrap();
        assert!(rows(&schema, &sorted) == expected(&schema, given, &keys));
        has_dictionaries(&sorted)
    };
    let few = (texts(100, "a"), numbers(3));
    assert_eq!(of(&[batch(&few.0, &few.1, 1500, 1, false), batch(&few.0, &few.1, 1500, 9, true)]), [2]);
    // Twice as many rows as a batch has, of two sources with different entries.
    let sources =
        [batch(&few.0, &few.1, 9000, 1, false), batch(&texts(200, "b"), &numbers(9), 9000, 7, false)];
    assert_eq!(of(&sources), [2; 3]);
    let [many, none] = [texts(20_000, "many"), texts(0, "")];
    let of_texts = |first: &Arc<Values>, second: &Arc<Values>, are_null| {
        of(&[batch(first, &few.1, 2000, 1, false), batch(second, &few.1, 2000, 9, are_null)])
    };
    assert_eq!(of_texts(&many, &many, false), [2]);
    assert_eq!(of_texts(&many, &texts(20_000, "other"), false), [1], "more than 32,768 entries of both");
    assert_eq!(of_texts(&few.0, &texts(40_000, "too many"), false), [1]);
    assert_eq!(of_texts(&few.0, &long, false), [1]);
    // Only nulls need no entry, once there are some.
    assert_eq!(of_texts(&few.0, &none, true), [2]);
    let nulls_first = [batch(&none, &few.1, 2000, 1, true), batch(&few.0, &few.1, 2000, 9, false)];
    assert_eq!(of(&nulls_first), [1]);
    // Not enough memory for what finds the entries.
    let little = SortOptions { keep_dictionaries: true, ..options(3 << 20) };
    let given = [batch(&many, &few.1, 2000, 1, false)];
    let (_, sorted) = sort(&schema, &given, &keys, little, Manner::KIND).unwrap();
    assert!(rows(&schema, &sorted) == expected(&schema, &given, &keys));
    assert!(has_dictionaries(&sorted).iter().all(|columns| *columns < 2));
    let mut wrong = batch(&few.0, &few.1, 1500, 1, false);
    wrong.columns[1].values = Values::Dictionary(vec![100; 1500].into(), Arc::clone(&few.0));
    let error = sort(&schema, &[wrong], &keys, options(u64::MAX), Manner::KIND).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(error.to_string(), "an index that the dictionary of its batch does not have (column text)");
}
