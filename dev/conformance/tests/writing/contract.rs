//! What a machine that writes promises: small steps, small pieces, the same bytes whatever the host does, and errors that say where.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Detail, ErrorKind, Limits, Machine, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::{BYTE_ARRAY, INT64};
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::leaves::sums;
use marquetry_conformance::written::Written;
use marquetry_parquet::batch::{Batch, FixedBytes, Layout, Values};
use marquetry_parquet::format::Encoding;
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_parquet::write::{
    BloomOptions, ColumnOptions, Fed, FileWriter, PageBloomOptions, PageVersion, Room, WriteOptions,
};

use crate::given::{self, Flavour, SHAPES, TYPES};
use crate::rewritten::{SPILL, batches, plain, write};

/// Units that a step may charge beyond its budget, for the slice that it was in the middle of: the choice of an encoding.
const SLICE_UNITS_MAX: u64 = 100_000;

/// Writes batches by hosts of all manners: the file is the same.
fn same_file(schema: &Arc<Schema>, given: &[Batch], options: &WriteOptions) -> Written {
    let kind = write(schema, given, options.clone(), Manner::KIND).unwrap();
    for manner in [Manner::DISORDERLY, Manner::USUAL, Manner { budget: 1, ..Manner::ONE_BYTE }] {
        let manner = Manner { piece_bytes: manner.piece_bytes.max(100), ..manner };
        let other = write(schema, given, options.clone(), manner).unwrap();
        assert!(kind.object(FILE) == other.object(FILE), "{manner:?}, {options:?}");
        if manner.budget <= 1 {
            let units = other.report.units_max;
            assert!(units < SLICE_UNITS_MAX, "{units} units, {options:?}");
        }
    }
    kind
}

#[test]
fn budgets_do_not_change_what_is_written() {
    let schema = given::schema(&TYPES, &SHAPES);
    for page_version in [PageVersion::V1, PageVersion::V2] {
        for spill in [None, Some(SPILL)] {
            let options = WriteOptions {
                page_version,
                spill,
                held_bytes_max: 20_000,
                page_rows: 50,
                row_group_rows: 333,
                ..WriteOptions::default()
            };
            let rows = [1, 300, 99];
            let given = rows.map(|rows| given::batch(&schema, rows, Flavour::Random, Layout::Spaced, 5));
            let kind = same_file(&schema, &given, &options);
            assert_eq!(kind.objects.contains_key(&SPILL), spill.is_some());
        }
    }
}

/// A footer that becomes too long goes without what readers can do without; where that is not enough, it is an error, in good time.
#[test]
fn footers_end_in_good_time() {
    let schema = given::schema(&TYPES, &SHAPES);
    let given = [given::batch(&schema, 3_000, Flavour::Random, Layout::Spaced, 5)];
    let of = |footer_bytes_max| WriteOptions { row_group_rows: 100, footer_bytes_max, ..plain_options() };
    let file = |most| write(&schema, &given, of(most), Manner::KIND).map(|written| written.object(FILE));
    let whole = canonical::metadata(&file(u64::MAX).unwrap(), Manner::KIND).unwrap();
    assert_eq!(whole.row_groups.len(), 30);
    let lean_file = same_file(&schema, &given, &of(whole.footer_bytes - 1)).object(FILE);
    let lean = canonical::metadata(&lean_file, Manner::KIND).unwrap();
    assert!(lean.footer_bytes < whole.footer_bytes);
    for (group, expected) in lean.row_groups.iter().zip(&whole.row_groups) {
        for (chunk, expected) in group.columns.iter().zip(&expected.columns) {
            assert_eq!(chunk.statistics, expected.statistics);
        }
    }
    let described =
        |group: usize| lean.row_groups[group].columns.iter().all(|it| !it.encoding_stats.is_empty());
    let bare = |group: usize| {
        let mut columns = lean.row_groups[group].columns.iter();
        columns.all(|it| it.encoding_stats.is_empty() && it.size_statistics.is_none())
    };
    assert!(described(0) && bare(29));
    let (_, again) = batches(&lean_file, ReadOptions::default()).unwrap();
    assert_eq!(sums(&schema, &again), sums(&schema, &given));

    let error = file(whole.footer_bytes / 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["footer_bytes_max"])));
}

fn plain_options() -> WriteOptions {
    WriteOptions { column: plain(), ..WriteOptions::default() }
}

/// A dictionary is left while the values are encoded that it was chosen by.
#[test]
fn budgets_do_not_change_where_a_dictionary_is_left() {
    for (name, number) in TYPES.into_iter().skip(1) {
        let schema = given::schema(&[(name, number)], &["required"]);
        let given = [given::batch(&schema, 25_000, Flavour::Few, Layout::Spaced, 5)];
        let of = |dictionary_bytes| WriteOptions {
            column: ColumnOptions { encoding: Some(Encoding::RleDictionary), ..plain() },
            dictionary_bytes,
            ..WriteOptions::default()
        };
        let left = same_file(&schema, &given, &of(40));
        let kept = write(&schema, &given, of(1 << 20), Manner::KIND).unwrap();
        assert_ne!(left.object(FILE).len(), kept.object(FILE).len(), "{name}: no dictionary was left");
    }
}

/// Nothing is chosen then: values are not kept for it, and a batch's dictionary is used from its first value on.
#[test]
fn what_a_dictionary_is_left_for_may_be_given() {
    let schema = given::schema(&[("strings", BYTE_ARRAY)], &["required"]);
    let given = [given::batch(&schema, 25_000, Flavour::Few, Layout::Spaced, 5)];
    let of = |fallback| WriteOptions {
        column: ColumnOptions { encoding: Some(Encoding::RleDictionary), fallback, ..plain() },
        dictionary_bytes: 40,
        page_rows: 1_000,
        ..WriteOptions::default()
    };
    for fallback in [Encoding::Plain, Encoding::DeltaLengthByteArray, Encoding::DeltaByteArray] {
        let file = same_file(&schema, &given, &of(Some(fallback))).object(FILE);
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        let found = &metadata.row_groups[0].columns[0].encodings;
        let are_there = [Encoding::RleDictionary, fallback].iter().all(|encoding| found.contains(encoding));
        assert!(are_there, "{found:?}, not {fallback:?}");
        let (again, read) = batches(&file, ReadOptions::default()).unwrap();
        assert_eq!(sums(&schema, &given), sums(&again, &read));
    }
    for (encoding, fallback) in [
        (None, Encoding::Plain),
        (Some(Encoding::Plain), Encoding::Plain),
        (Some(Encoding::RleDictionary), Encoding::RleDictionary),
        (Some(Encoding::RleDictionary), Encoding::DeltaBinaryPacked),
    ] {
        let column = ColumnOptions { encoding, fallback: Some(fallback), ..plain() };
        let refused = column.check_leaf(&schema, 0, &Limits::DEFAULT).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Misuse, "{encoding:?}, {fallback:?}");
    }
}

/// Batches with dictionaries of their own, several of them one after the other in a chunk, make the same file as batches of the values; where
/// they are left, where they are in part unused, and whatever looks at each value, too.
#[test]
fn what_is_written_does_not_depend_on_the_dictionaries_of_batches() {
    let mut translated = 0;
    for (seed, flavour) in [Flavour::Few, Flavour::Ascending, Flavour::Random].into_iter().enumerate() {
        let schema = given::schema(&TYPES[1..], &SHAPES[..2]);
        let given =
            [3_000, 500].map(|rows| given::batch(&schema, rows, flavour, Layout::Spaced, seed as u64));
        let dictionaries = WriteOptions {
            column: ColumnOptions { encoding: Some(Encoding::RleDictionary), ..plain() },
            row_group_rows: 1_200,
            ..WriteOptions::default()
        };
        let file = write(&schema, &given, dictionaries, Manner::KIND).unwrap().object(FILE);
        let read = |keep_dictionaries, layout| {
            let options =
                ReadOptions { keep_dictionaries, layout, batch_rows: 700, ..ReadOptions::default() };
            batches(&file, options).unwrap().1
        };
        let filters = ColumnOptions {
            bloom: Some(BloomOptions::default()),
            page_bloom: Some(PageBloomOptions::default()),
            ..ColumnOptions::default()
        };
        for layout in [Layout::Spaced, Layout::Dense] {
            let (kept, plain) = (read(true, layout), read(false, layout));
            let columns = kept.iter().flat_map(|batch| &batch.columns);
            translated += columns.filter(|column| matches!(column.values, Values::Dictionary(..))).count();
            let asked = ColumnOptions { encoding: Some(Encoding::RleDictionary), ..ColumnOptions::default() };
            for options in [
                WriteOptions { column: asked.clone(), page_rows: 100, ..WriteOptions::default() },
                WriteOptions {
                    column: asked.clone(),
                    dictionary_bytes: 3_000,
                    page_rows: 100,
                    ..WriteOptions::default()
                },
                WriteOptions {
                    column: asked,
                    spill: Some(SPILL),
                    held_bytes_max: 20_000,
                    page_rows: 50,
                    ..WriteOptions::default()
                },
                WriteOptions { column: filters.clone(), row_group_rows: 2_000, ..WriteOptions::default() },
                WriteOptions::default(),
            ] {
                let of_values = write(&schema, &plain, options.clone(), Manner::KIND).unwrap();
                // Encodings that are chosen take a step each, of more units.
                let of_dictionaries = match options.column.encoding {
                    Some(_) => same_file(&schema, &kept, &options),
                    None => write(&schema, &kept, options.clone(), Manner::DISORDERLY).unwrap(),
                };
                let is_same = match options.spill {
                    None => of_values.object(FILE) == of_dictionaries.object(FILE),
                    // What is known of a dictionary is held, too, so pages may end earlier where little may be.
                    Some(_) => {
                        let rows =
                            |of: &Written| batches(&of.object(FILE), ReadOptions::default()).unwrap().1;
                        rows(&of_values) == rows(&of_dictionaries)
                    }
                };
                assert!(is_same, "{flavour:?}, {layout:?}, {options:?}");
            }
        }
    }
    assert!(translated > 200, "{translated} columns had dictionaries");
}

/// As many entries as readers hand out: what is known of them is made room for in slices. NaNs of halves are counted, though entries are
/// looked at once.
#[test]
fn large_dictionaries_of_batches() {
    let entries: Arc<Values> = Arc::new((0..65_535_i64).collect::<Vec<_>>().into());
    let indices = |batch: u32| -> Vec<u32> { (0..8_192).map(|row| (row * 7 + batch) % 65_535).collect() };
    let batches_of = |is_kept: bool| -> Vec<Batch> {
        let batch = |number| {
            let values = match is_kept {
                true => Values::Dictionary(indices(number).into(), Arc::clone(&entries)),
                false => indices(number).into_iter().map(i64::from).collect::<Vec<_>>().into(),
            };
            Batch::of_values([values]).unwrap()
        };
        (0..4).map(batch).collect()
    };
    let schema = given::schema(&[("int64", INT64)], &["required"]);
    let options = WriteOptions {
        column: ColumnOptions { encoding: Some(Encoding::RleDictionary), ..plain() },
        ..WriteOptions::default()
    };
    let plain = write(&schema, &batches_of(false), options.clone(), Manner::KIND).unwrap();
    let kept = same_file(&schema, &batches_of(true), &options);
    assert!(plain.object(FILE) == kept.object(FILE));

    let half = LogicalType::Float16;
    let field = FieldDef::new("half", FieldType::Leaf(PhysicalType::FixedLenByteArray(2), Some(half)));
    let schema = Arc::new(Schema::of_fields(&[field.required()]).unwrap());
    // One and a NaN.
    let entries = FixedBytes::new(2, 2, vec![0x00, 0x3c, 0x00, 0x7e].into());
    let indices: Vec<u32> = (0..20_000).map(|row| row % 2).collect();
    let values = Values::Dictionary(indices.into(), Arc::new(Values::FixedLenByteArray(entries)));
    let kept = write(&schema, &[Batch::of_values([values]).unwrap()], options, Manner::KIND).unwrap();
    let metadata = marquetry_conformance::canonical::metadata(&kept.object(FILE), Manner::KIND).unwrap();
    let statistics = metadata.row_groups[0].columns[0].statistics.clone().unwrap();
    assert_eq!(statistics.nan_count, Some(10_000));
}

/// Headers are most of what is written: columns whose work is done elsewhere do not grow by more than was expected of them.
#[test]
fn pages_of_one_row() {
    let schema = given::schema(&TYPES, &SHAPES[..2]);
    let given = [given::batch(&schema, 5_000, Flavour::Few, Layout::Spaced, 3)];
    let options = WriteOptions { page_rows: 1, ..WriteOptions::default() };
    let file = write(&schema, &given, options, Manner::KIND).unwrap().object(FILE);
    let rows = batches(&file, ReadOptions::default()).unwrap().1;
    assert_eq!(rows.iter().map(|batch| batch.rows).sum::<usize>(), 5_000);
}

/// Most that is held are open pages of numbers; so they are ended and moved away, column by column, until it is enough. With those of strings
/// goes more than one page: all of them, however many steps that takes.
#[test]
fn budgets_do_not_change_what_is_moved_away() {
    let types: Vec<i32> = (0..200).map(|column| if column % 40 == 9 { BYTE_ARRAY } else { INT64 }).collect();
    let schema = given::flat(&types);
    let given: Vec<Batch> =
        (0..40).map(|seed| given::batch(&schema, 17, Flavour::Random, Layout::Spaced, seed)).collect();
    let options = WriteOptions {
        column: ColumnOptions { encoding: Some(Encoding::Plain), ..plain() },
        spill: Some(SPILL),
        held_bytes_max: 200_000,
        page_bytes: 1_200,
        ..WriteOptions::default()
    };
    assert!(same_file(&schema, &given, &options).objects.contains_key(&SPILL));
}

/// Many rows at once, long strings, all codecs: no step does more than it may.
#[test]
fn steps_are_small() {
    let schema = given::schema(&TYPES, &SHAPES);
    for flavour in [Flavour::Few, Flavour::Ascending, Flavour::Random] {
        let batch = given::batch(&schema, 40_000, flavour, Layout::Dense, 11);
        let options = WriteOptions { row_group_rows: 30_000, ..WriteOptions::default() };
        let manner = Manner { budget: Budget::DEFAULT_UNITS, ..Manner::KIND };
        let written = write(&schema, std::slice::from_ref(&batch), options, manner).unwrap();
        println!("{flavour:?}: {:?}, largest piece {}", written.report, written.piece_bytes_max);
        assert!(written.report.units_max <= Budget::DEFAULT_UNITS + SLICE_UNITS_MAX);
        assert!(written.piece_bytes_max < 1 << 20);
        let (_, again) = batches(&written.object(FILE), ReadOptions::default()).unwrap();
        assert_eq!(again.iter().map(|batch| batch.rows).sum::<usize>(), 40_000);
    }
}

/// The error of writing a batch that was spoilt.
fn error_of(spoil: impl FnOnce(&mut Batch)) -> marquetry_base::Error {
    let schema = given::schema(&TYPES, &SHAPES);
    let mut batch = given::batch(&schema, 100, Flavour::Few, Layout::Spaced, 3);
    spoil(&mut batch);
    write(&schema, &[batch], WriteOptions::default(), Manner::KIND).unwrap_err()
}

#[test]
fn rows_that_do_not_fit_the_schema() {
    let of_another_type = error_of(|batch| batch.columns[5].values = Values::Int64(vec![1; 100].into()));
    assert_eq!(of_another_type.kind(), ErrorKind::Misuse);
    let text = of_another_type.to_string();
    assert_eq!(text, "INT64 where INT32 is to be (column int32_required, row 0)");
    let nulls = error_of(|batch| batch.columns[5].validity = batch.columns[6].validity.clone());
    assert_eq!(nulls.message(), "nulls in a column that is required");
    let short = error_of(|batch| batch.columns[6].rows = 99);
    assert_eq!(short.message(), "a column of 99 rows, in a batch of 100");
    let few = error_of(|batch| batch.columns[5].values = Values::Int32(vec![1; 99].into()));
    assert_eq!(few.message(), "a batch whose levels tell of more values than the 99 there are");
    let many = error_of(|batch| batch.columns[5].values = Values::Int32(vec![1; 101].into()));
    assert_eq!(many.message(), "a batch of 101 values, which levels do not tell of");
    let no_levels = error_of(|batch| batch.columns[8].levels = None);
    assert_eq!(no_levels.message(), "a column of a nested leaf without levels");
    let cut = error_of(|batch| {
        let levels = batch.columns[8].levels.as_mut().unwrap();
        levels.repetition = Some(vec![1; levels.definition.len()].into());
    });
    assert_eq!(cut.message(), "a batch that begins in the middle of a row");
    let too_deep = error_of(|batch| {
        let levels = batch.columns[8].levels.as_mut().unwrap();
        levels.definition = vec![9; levels.definition.len()].into();
    });
    assert_eq!(too_deep.kind(), ErrorKind::Misuse);
    let fewer = error_of(|batch| drop(batch.columns.pop()));
    assert_eq!(fewer.message(), "a batch of 39 columns, of a schema of 40 leaves");
    let index = error_of(|batch| {
        let values = Arc::new(Values::Int32(vec![1, 2].into()));
        batch.columns[5].values = Values::Dictionary(vec![2; 100].into(), values);
    });
    assert_eq!(index.message(), "an index that the dictionary of its batch does not have");
}

#[test]
fn options_that_cannot_be() {
    let schema = given::wide(2, 1);
    let of = |options: WriteOptions| {
        let codecs = Arc::new(StandardCodecs::default());
        let writer = FileWriter::new(FILE, Arc::clone(&schema), codecs, options);
        writer.and_then(|mut writer| writer.step(&mut Budget::unlimited())).unwrap_err().message().to_owned()
    };
    let default = WriteOptions::default;
    assert_eq!(of(WriteOptions { page_rows: 0, ..default() }), "pages or row groups of no rows");
    assert_eq!(of(WriteOptions { spill: Some(FILE), ..default() }), "the file is to be its own spill object");
    assert_eq!(of(WriteOptions { columns: [(2, plain())].into(), ..default() }), "options of leaf 2 of 2");
}

#[test]
fn room_for_one_batch() {
    let schema = given::wide(1, 1);
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, Arc::clone(&schema), codecs, WriteOptions::default()).unwrap();
    let batch = given::batch(&schema, 10, Flavour::Few, Layout::Dense, 1);
    assert_eq!(writer.feed(batch.clone()).unwrap(), Fed::Taken);
    assert_eq!(writer.feed(batch.clone()).unwrap(), Fed::Full(batch.clone()));
    while writer.step(&mut Budget::default()).unwrap() != Step::Ready(Room) {}
    assert_eq!(writer.feed(batch.clone()).unwrap(), Fed::Taken);
    writer.finish();
    assert_eq!(writer.feed(batch).unwrap_err().message(), "rows for a file that is finished");
    while writer.step(&mut Budget::default()).unwrap() != Step::Done {}
    assert_eq!((writer.rows(), writer.row_groups()), (20, 1));
}

/// Feeds a row group of one column, by rows or as a column: what was appended before it ended, and the most that was held meanwhile.
fn early(options: WriteOptions, values: &[i64], by_columns: bool) -> (usize, u64, Bytes) {
    const ROWS: usize = 10_000;
    let schema = given::wide(1, 2);
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, Arc::clone(&schema), codecs, options).unwrap();
    let mut left = values.chunks(if by_columns { values.len() } else { ROWS });
    let (mut early, mut held, mut file) = (0, 0, Vec::new());
    loop {
        match writer.step(&mut Budget::default()).unwrap() {
            Step::Ready(Room) => match left.next() {
                Some(values) => {
                    let mut batch = given::batch(&schema, values.len(), Flavour::Few, Layout::Spaced, 1);
                    batch.columns[0].values = Values::Int64(values.to_vec().into());
                    match by_columns {
                        true => assert_eq!(writer.feed_column(batch.columns.remove(0)).unwrap(), Fed::Taken),
                        false => assert_eq!(writer.feed(batch).unwrap(), Fed::Taken),
                    }
                }
                None => writer.finish(),
            },
            Step::Append(object, bytes) => {
                assert_eq!(object, FILE);
                file.extend_from_slice(&bytes);
            }
            Step::Done => break,
            Step::Need(_) => panic!("nothing was moved away"),
            Step::Yield => {}
        }
        held = writer.held().max(held);
        if writer.row_groups() == 0 {
            early = file.len();
        }
    }
    assert_eq!(writer.row_groups(), 1);
    (early, held, file.into())
}

#[test]
fn pages_of_the_first_column_leave_at_once() {
    let random: Vec<i64> = (0..600_000i64)
        .map(|row| row.wrapping_mul(row).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()))
        .collect();
    let of = |encoding, dictionary_bytes| WriteOptions {
        column: ColumnOptions { encoding: Some(encoding), ..plain() },
        dictionary_bytes,
        ..WriteOptions::default()
    };
    // Those that refer to a dictionary wait until it is left.
    for options in [of(Encoding::Plain, 1 << 20), of(Encoding::RleDictionary, 100_000)] {
        for by_columns in [false, true] {
            let (early, held, file) = early(options.clone(), &random, by_columns);
            assert!(early > 4_000_000 && held < 1_500_000, "{early} bytes left early, {held} were held");
            let (schema, again) = batches(&file, ReadOptions::default()).unwrap();
            let mut given = given::batch(&schema, random.len(), Flavour::Few, Layout::Spaced, 1);
            given.columns[0].values = Values::Int64(random.clone().into());
            assert_eq!(sums(&schema, &again), sums(&schema, &[given]));
        }
    }
    let (_, held, _) = early(of(Encoding::RleDictionary, 16 << 20), &random, false);
    assert!(held > 4_000_000, "{held} bytes were held of what waits for its dictionary");
}

/// A writer, and what it appends, that is fed column by column.
fn fed_by_columns(batches: &[Batch], columns: usize) -> marquetry_base::Result<Vec<u8>> {
    let schema = given::schema(&TYPES, &SHAPES);
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, schema, codecs, WriteOptions::default())?;
    let mut file = Vec::new();
    let mut left = batches.iter().flat_map(|batch| batch.columns.iter().take(columns).cloned());
    loop {
        match writer.step(&mut Budget::default())? {
            Step::Ready(Room) => match left.next() {
                Some(column) => assert_eq!(writer.feed_column(column)?, Fed::Taken),
                None => writer.finish(),
            },
            Step::Append(object, bytes) => {
                assert_eq!(object, FILE);
                file.extend_from_slice(&bytes);
            }
            Step::Done => return Ok(file),
            Step::Need(_) => panic!("nothing was moved away"),
            Step::Yield => {}
        }
    }
}

#[test]
fn row_groups_fed_by_columns_are_those_fed_by_rows() {
    let schema = given::schema(&TYPES, &SHAPES);
    let given = [3000, 1, 70].map(|rows| given::batch(&schema, rows, Flavour::Few, Layout::Spaced, 5));
    let file = fed_by_columns(&given, usize::MAX).unwrap().into();
    let (_, again) = batches(&file, ReadOptions::default()).unwrap();
    assert_eq!(sums(&schema, &given), sums(&schema, &again));
    let mut groups: Vec<usize> = again.iter().map(|batch| batch.row_group).collect();
    groups.dedup();
    assert_eq!(groups, [0, 1, 2]);
}

#[test]
fn columns_that_make_no_row_group() {
    let schema = given::schema(&TYPES, &SHAPES);
    let mut batch = given::batch(&schema, 100, Flavour::Few, Layout::Spaced, 3);
    let few = fed_by_columns(std::slice::from_ref(&batch), 6).unwrap_err();
    assert_eq!(few.message(), "a row group of 6 columns, of 40");
    let other = batch.columns[0].clone();
    batch.columns[5] = other;
    let of_another_type = fed_by_columns(std::slice::from_ref(&batch), usize::MAX).unwrap_err();
    assert_eq!(of_another_type.to_string(), "BOOLEAN where INT32 is to be (column int32_required, row 0)");
    batch.columns[5].rows = 99;
    let short = fed_by_columns(std::slice::from_ref(&batch), usize::MAX).unwrap_err();
    assert_eq!(short.message(), "a column of 99 rows, in a row group of 100");

    // Rows and columns do not make one row group.
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, schema, codecs, WriteOptions::default()).unwrap();
    let room =
        |writer: &mut FileWriter| while writer.step(&mut Budget::default()).unwrap() != Step::Ready(Room) {};
    let column = batch.columns[0].clone();
    assert_eq!(writer.feed_column(column.clone()).unwrap(), Fed::Full(column.clone()), "it is being built");
    room(&mut writer);
    assert_eq!(writer.feed_column(column.clone()).unwrap(), Fed::Taken);
    assert_eq!(writer.feed_column(column.clone()).unwrap(), Fed::Full(column.clone()));
    let rows = given::batch(&given::schema(&TYPES, &SHAPES), 5, Flavour::Few, Layout::Spaced, 3);
    assert_eq!(
        writer.feed(rows.clone()).unwrap_err().message(),
        "rows, for a row group that is fed by columns"
    );
    let codecs = Arc::new(StandardCodecs::default());
    let schema = given::schema(&TYPES, &SHAPES);
    let mut writer = FileWriter::new(FILE, schema, codecs, WriteOptions::default()).unwrap();
    room(&mut writer);
    assert_eq!(writer.feed(rows).unwrap(), Fed::Taken);
    let early = writer.feed_column(column.clone()).unwrap_err();
    assert_eq!(early.message(), "a column, for a row group that is fed by rows");
    writer.finish();
    let late = writer.feed_column(column).unwrap_err();
    assert_eq!(late.message(), "a column for a file that is finished");
}
