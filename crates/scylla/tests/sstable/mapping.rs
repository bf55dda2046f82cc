//! The mappings to Parquet, of all SSTables.
#![allow(clippy::cast_possible_wrap, reason = "numbers here are small")]

use std::collections::BTreeMap;
use std::sync::Arc;

use marquetry_base::{Budget, ErrorKind, Limits};
use marquetry_parquet::batch::{Batch, Value, Values as Parquet};
use marquetry_scylla::bridge::mutations::{
    MapStep, Mapper, MapperOptions, MutationMapping, Present, UnmapStep, Unmapper,
};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{
    Cells, ClusteringColumn, Continues, EntryKind, Expiry, MutationBatch, Strings, Values,
};

use crate::craft::{self, Craft};
use crate::files::Files;
use crate::{fixtures, name_of};

/// The most that a step costs beyond its budget: a column of keys of a full batch, whose rows and partitions are done in one go.
const SLICE_UNITS_MAX: u64 = 450_000;

/// Maps all batches.
pub(crate) fn mapped(mapper: &mut Mapper, batches: Vec<MutationBatch>, budget_units: u64) -> Vec<Batch> {
    let mut batches = batches.into_iter();
    let mut made = Vec::new();
    loop {
        let mut budget = Budget::new(budget_units);
        let step = mapper.step(&mut budget).unwrap();
        assert!(budget.spent() <= budget_units + SLICE_UNITS_MAX, "a step of {} units", budget.spent());
        match step {
            MapStep::Ready(batch) => {
                batch.check(mapper.schema()).unwrap();
                made.push(batch);
            }
            MapStep::Need => match batches.next() {
                Some(batch) => mapper.feed(batch).unwrap(),
                None => mapper.finish(),
            },
            MapStep::Yield => {}
            MapStep::Done => return made,
        }
    }
}

/// What is in an SSTable.
pub(crate) fn read(files: &Files) -> (TableColumns, Present, Vec<MutationBatch>) {
    let statistics = files.read_statistics().unwrap();
    let columns = TableColumns::new(&[&statistics.header], None).unwrap();
    let mut batches = Vec::new();
    files.read(&statistics, |batch| batches.push(batch.clone())).unwrap();
    (columns, Present::of([&statistics.stats]), batches)
}

/// Makes writes again.
pub(crate) fn unmapped(
    unmapper: &mut Unmapper,
    batches: Vec<Batch>,
    budget_units: u64,
) -> Vec<MutationBatch> {
    let mut batches = batches.into_iter();
    let mut made = Vec::new();
    loop {
        match unmapper.step(&mut Budget::new(budget_units)).unwrap() {
            UnmapStep::Ready(batch) => made.push(batch),
            UnmapStep::Need => match batches.next() {
                Some(batch) => unmapper.feed(batch).unwrap(),
                None => unmapper.finish(),
            },
            UnmapStep::Yield => {}
            UnmapStep::Done => return made,
        }
    }
}

/// What is in batches, as lines, wherever they end.
pub(crate) fn lines(batches: &[MutationBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut row: Option<(String, Vec<String>)> = None;
    let mut was_open = false;
    for batch in batches {
        assert_eq!(batch.continues != Continues::Nothing, was_open, "{:?}", batch.continues);
        was_open = batch.is_open;
        for partition in 0..batch.partitions.ends.len() {
            if partition > 0 || batch.continues == Continues::Nothing {
                end_row(&mut row, &mut lines);
                let key = batch.partitions.keys.get(partition).unwrap();
                let deletion = batch.partitions.deletions.get(partition as u32);
                lines.push(format!("partition {key:02x?} {deletion:?}"));
            }
            for entry in batch.entries_of(partition) {
                if entry > 0 || batch.continues != Continues::Entry {
                    end_row(&mut row, &mut lines);
                    row = Some((head(batch, entry), vec![String::new(); batch.columns.len()]));
                }
                let (_, columns) = row.as_mut().unwrap();
                for (cells, line) in batch.columns.iter().zip(columns) {
                    add_cells(batch, cells, entry, line);
                }
            }
        }
    }
    end_row(&mut row, &mut lines);
    lines
}

fn end_row(row: &mut Option<(String, Vec<String>)>, lines: &mut Vec<String>) {
    if let Some((head, columns)) = row.take() {
        lines.push(head);
        let named = columns.into_iter().enumerate().filter(|(_, line)| !line.is_empty());
        lines.extend(named.map(|(column, line)| format!("  {column}:{line}")));
    }
}

fn head(batch: &MutationBatch, entry: usize) -> String {
    let (entries, at) = (&batch.entries, entry as u32);
    let mut clustering = Vec::new();
    let prefix = entries.prefixes.get(at).map_or(usize::MAX, |prefix| prefix as usize);
    if entries.kinds[entry] != EntryKind::Static {
        for (number, column) in entries.clustering.iter().enumerate().take(prefix) {
            let mut bytes = Vec::new();
            if column.nulls.contains(&at) {
                clustering.push(None);
                continue;
            }
            if !column.empties.contains(&at) {
                column.values.append_bytes(entry, &mut bytes);
            }
            assert!(number < prefix);
            clustering.push(Some(bytes));
        }
    }
    format!(
        "{:?} {clustering:02x?} {} {:?} {:?} {:?} {:?}",
        entries.kinds[entry],
        entries.timestamps[entry],
        entries.expiries.get(at),
        entries.deletions.get(at),
        entries.starts.get(at),
        entries.shadowables.get(at),
    )
}

fn add_cells(batch: &MutationBatch, cells: &Cells, entry: usize, line: &mut String) {
    let at = entry as u32;
    let add = |line: &mut String, text: String| line.push_str(&text);
    if let Some(deletion) = cells.deletions.get(at) {
        add(line, format!(" deleted {deletion:?}"));
    }
    let start = cells.entries.partition_point(|it| *it < at);
    for cell in (start..cells.len()).take_while(|cell| cells.entries[*cell] == at) {
        let number = cell as u32;
        let time = cells.timestamps.get(number).unwrap_or(batch.entries.timestamps[entry]);
        let of_row = batch.entries.expiries.get(at).unwrap_or(Expiry::NEVER);
        let path = cells.paths.get(cell).map(<[u8]>::to_vec);
        let value = match cells.tombstones.get(number) {
            Some(local) => format!("dead {local}"),
            None if cells.empties.contains(&number) => "empty".to_string(),
            None => {
                let mut value = Vec::new();
                cells.values.append_bytes(cell, &mut value);
                format!("{value:02x?} {:?}", cells.expiries.get(number).unwrap_or(of_row))
            }
        };
        add(line, format!(" [{path:02x?} {time} {value}]"));
    }
}

/// Maps batches, and back, and compares what comes out with them.
pub(crate) fn compare(
    columns: &Arc<TableColumns>,
    present: Present,
    batches: Vec<MutationBatch>,
    units: u64,
) -> Vec<Batch> {
    let mut options = MapperOptions::default();
    options.present = present;
    let mut mapper = Mapper::new(MutationMapping::Full, Arc::clone(columns), &options).unwrap();
    let expected = lines(&batches);
    let made = mapped(&mut mapper, batches, units);
    let mut unmapper = Unmapper::new(Arc::clone(columns), mapper.schema(), Limits::DEFAULT).unwrap();
    let found = lines(&unmapped(&mut unmapper, made.clone(), units));
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "line {at}");
    }
    assert_eq!(found.len(), expected.len());
    // Batches that end elsewhere bring the same.
    let slices = made.iter().flat_map(|batch| {
        let ends = (0..batch.rows).step_by(7).map(|start| start..batch.rows.min(start + 7));
        ends.map(|rows| batch.slice(rows)).collect::<Vec<_>>()
    });
    let mut unmapper = Unmapper::new(Arc::clone(columns), mapper.schema(), Limits::DEFAULT).unwrap();
    assert_eq!(lines(&unmapped(&mut unmapper, slices.collect(), units)), found);
    made
}

#[test]
fn every_sstable_is_the_same_after_a_full_mapping_and_back() {
    let Some(all) = fixtures() else { return };
    for path in all {
        println!("{}", name_of(&path));
        let (columns, present, batches) = read(&Files::open(&path));
        let columns = Arc::new(columns);
        let made = compare(&columns, present, batches.clone(), 150_000);
        let rows: usize = made.iter().map(|batch| batch.rows).sum();
        assert!(rows > 0 || batches.is_empty());
        assert_eq!(
            compare(&columns, Present::ALL, batches, 0).iter().map(|batch| batch.rows).sum::<usize>(),
            rows
        );
    }
}

/// The numbers of a column of a batch.
fn numbers(batch: &Batch, leaf: usize) -> Vec<i64> {
    match &batch.columns[leaf].values {
        Parquet::Int32(values) => values.iter().map(|value| i64::from(*value)).collect(),
        Parquet::Int64(values) => values.to_vec(),
        _ => panic!("a number"),
    }
}

/// In the verbatim mapping are all partitions, rows and cells, with the times of each.
#[test]
fn every_sstable_has_a_verbatim_mapping() {
    let Some(all) = fixtures() else { return };
    let mut refused = 0;
    for path in all {
        let (columns, present, batches) = read(&Files::open(&path));
        let mut options = MapperOptions::default();
        options.present = present;
        let columns = Arc::new(columns);
        let mut mapper = Mapper::new(MutationMapping::Verbatim, Arc::clone(&columns), &options).unwrap();
        let paths: Vec<String> =
            (0..mapper.schema().leaves().len()).map(|leaf| mapper.schema().leaf_path(leaf)).collect();
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        let mut add = |name: String, value: i64| {
            let sum = expected.entry(name).or_insert(0);
            *sum = sum.wrapping_add(value);
        };
        for batch in &batches {
            for (number, (cells, column)) in batch.columns.iter().zip(columns.cells()).enumerate() {
                let name = std::str::from_utf8(&column.name).unwrap();
                let group = if number < columns.statics.len() {
                    "static_row.cells"
                } else {
                    "rows.list.element.regular"
                };
                let list = if column.kind.is_multi_cell() { ".cells.list.element" } else { "" };
                for cell in 0..cells.len() {
                    let time = cells.timestamps.get(cell as u32);
                    let is_dead = cells.tombstones.get(cell as u32).is_some();
                    let of_row = batch.entries.timestamps[cells.entries[cell] as usize];
                    add(format!("{group}.{name}{list}.flags"), 1);
                    if is_dead {
                        let name = format!("{group}.{name}{list}.marked_for_delete_at");
                        add(name, time.unwrap_or(of_row));
                    } else if let Some(time) = time {
                        add(format!("{group}.{name}{list}.timestamp"), time);
                    }
                }
            }
            let rows = batch.entries.kinds.iter().filter(|kind| **kind != EntryKind::Static);
            add("rows.list.element.flags".to_string(), rows.count() as i64);
        }
        if batches.iter().any(|batch| batch.continues == Continues::Entry) {
            continue;
        }
        let made = match try_mapped(&mut mapper, batches) {
            Ok(made) => made,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{}: {error}", path.display());
                refused += 1;
                continue;
            }
        };
        for (name, sum) in expected {
            let leaf = paths.iter().position(|path| *path == name).unwrap_or_else(|| panic!("no {name}"));
            let found: i64 = made
                .iter()
                .map(|batch| {
                    let numbers = numbers(batch, leaf);
                    if name.ends_with("flags") {
                        numbers.len() as i64
                    } else {
                        numbers.iter().fold(0_i64, |a, b| a.wrapping_add(*b))
                    }
                })
                .fold(0, i64::wrapping_add);
            assert_eq!(found, sum, "{}: {name}", path.display());
        }
    }
    assert_eq!(refused, 0, "values that are none of their type");
}

fn try_mapped(mapper: &mut Mapper, batches: Vec<MutationBatch>) -> marquetry_base::Result<Vec<Batch>> {
    let mut batches = batches.into_iter();
    let mut made = Vec::new();
    loop {
        match mapper.step(&mut Budget::default())? {
            MapStep::Ready(batch) => {
                batch.check(mapper.schema())?;
                made.push(batch);
            }
            MapStep::Need => match batches.next() {
                Some(batch) => mapper.feed(batch)?,
                None => mapper.finish(),
            },
            MapStep::Yield => {}
            MapStep::Done => return Ok(made),
        }
    }
}

/// A batch of a table with a static text, a set of ints and an int; each row has one of the ints in the set.
fn with_statics(
    continues: Continues,
    is_open: bool,
    partitions: &[(i32, Option<&str>, &[i32])],
) -> MutationBatch {
    let mut batch = MutationBatch { continues, is_open, ..MutationBatch::default() };
    let mut clustering = ClusteringColumn { values: Values::Four(Vec::new()), ..ClusteringColumn::default() };
    let (mut texts, mut sets, mut ints) = (Cells::default(), Cells::default(), Cells::default());
    let (mut text, mut set, mut int) = (Strings::default(), Strings::default(), Vec::new());
    for (key, fixed, rows) in partitions {
        batch.partitions.keys.bytes.extend(key.to_be_bytes());
        batch.partitions.keys.ends.push(batch.partitions.keys.bytes.len() as u32);
        batch.partitions.offsets.push(0);
        let entries = &mut batch.entries;
        let Values::Four(of) = &mut clustering.values else { panic!() };
        if let Some(fixed) = fixed {
            texts.entries.push(entries.kinds.len() as u32);
            texts.timestamps.push(texts.entries.len() as u32 - 1, 7);
            text.bytes.extend(fixed.bytes());
            text.ends.push(text.bytes.len() as u32);
            entries.kinds.push(EntryKind::Static);
            entries.timestamps.push(i64::MIN);
            of.push(0);
            for element in [1_i32, 2] {
                sets.entries.push(entries.kinds.len() as u32 - 1);
                sets.timestamps.push(sets.entries.len() as u32 - 1, 7);
                sets.paths.bytes.extend(element.to_be_bytes());
                sets.paths.ends.push(sets.paths.bytes.len() as u32);
                set.ends.push(0);
            }
        }
        for row in *rows {
            ints.entries.push(entries.kinds.len() as u32);
            int.push(10 * row);
            entries.kinds.push(EntryKind::Row);
            entries.timestamps.push(7);
            of.push(*row);
        }
        batch.partitions.ends.push(entries.kinds.len() as u32);
    }
    batch.entries.clustering = vec![clustering];
    texts.values = Values::Strings(text);
    sets.values = Values::Strings(set);
    ints.values = Values::Four(int);
    batch.columns = vec![texts, sets, ints];
    batch
}

#[test]
fn static_values_are_in_each_row_of_a_logical_mapping() {
    let statics = [("s", "UTF8Type"), ("t", "SetType(Int32Type)")];
    let statistics = craft::statistics("Int32Type", &["Int32Type"], &statics, &[("v", "Int32Type")]);
    let columns = Arc::new(TableColumns::new(&[&statistics.header], None).unwrap());
    let batches = vec![
        with_statics(
            Continues::Nothing,
            true,
            &[(1, Some("one"), &[1, 2]), (2, None, &[3]), (3, Some("three"), &[])],
        ),
        with_statics(
            Continues::Partition,
            true,
            &[(3, None, &[4, 5]), (4, Some("only"), &[]), (5, Some("five"), &[])],
        ),
        with_statics(Continues::Partition, false, &[(5, None, &[])]),
        with_statics(Continues::Nothing, false, &[(6, None, &[6])]),
    ];
    for units in [0, 150_000] {
        let mut mapper =
            Mapper::new(MutationMapping::Logical, Arc::clone(&columns), &MapperOptions::default()).unwrap();
        let made = mapped(&mut mapper, batches.clone(), units);
        let mut rows = Vec::new();
        for batch in &made {
            let mut values = [0; 4];
            let mut next = |column: usize, row: usize| {
                let is_there = !batch.columns[column].is_null(row);
                values[column] += usize::from(is_there);
                is_there.then(|| values[column] - 1)
            };
            for row in 0..batch.rows {
                let number = |column: usize, at: Option<usize>| at.map(|at| numbers(batch, column)[at]);
                let (key, clustering) = (next(0, row), next(1, row));
                let text = next(2, row).map(|at| match Value::of_values(&batch.columns[2].values, at) {
                    Some(Value::Bytes(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
                    other => panic!("{other:?}"),
                });
                rows.push((number(0, key), number(1, clustering), text));
            }
            assert_eq!(
                batch.columns[3].values.len(),
                2 * (batch.rows - batch.columns[2].nulls),
                "each static set has two elements"
            );
        }
        let row = |key: i64, clustering: Option<i64>, text: Option<&str>| {
            (Some(key), clustering, text.map(String::from))
        };
        let expected = [
            row(1, Some(1), Some("one")),
            row(1, Some(2), Some("one")),
            row(2, Some(3), None),
            row(3, Some(4), Some("three")),
            row(3, Some(5), Some("three")),
            row(4, None, Some("only")),
            row(5, None, Some("five")),
            row(6, Some(6), None),
        ];
        assert_eq!(rows, expected);
    }
    // What is deleted must be gone before.
    let mut mapper = Mapper::new(MutationMapping::Logical, columns, &MapperOptions::default()).unwrap();
    let mut batch = batches[0].clone();
    batch.columns[2].tombstones.push(0, 5);
    assert_eq!(try_mapped(&mut mapper, vec![batch]).unwrap_err().kind(), ErrorKind::Misuse);
}

/// The columns of the table of [`with_statics`], with other types of its key and of its last column.
fn static_table(key: &str, value: &str) -> Arc<TableColumns> {
    let statics = [("s", "UTF8Type"), ("t", "SetType(Int32Type)")];
    let statistics = craft::statistics(key, &["Int32Type"], &statics, &[("v", value)]);
    Arc::new(TableColumns::new(&[&statistics.header], None).unwrap())
}

#[test]
fn large_static_values_are_repeated_in_batches_of_few_rows() {
    let rows: Vec<i32> = (0..3000).collect();
    let long = "a".repeat(4 << 20);
    let partitions: &[(i32, Option<&str>, &[i32])] = &[(1, Some(&long), &rows), (2, Some("b"), &rows)];
    let mut batch = with_statics(Continues::Nothing, false, partitions);
    let elements = 2000_i32;
    let (mut sets, mut values) = (Cells::default(), Strings::default());
    for entry in [0, 3001] {
        for element in 0..elements {
            sets.timestamps.push(sets.entries.len() as u32, 7);
            sets.entries.push(entry);
            sets.paths.bytes.extend(element.to_be_bytes());
            sets.paths.ends.push(sets.paths.bytes.len() as u32);
            values.ends.push(0);
        }
    }
    sets.values = Values::Strings(values);
    batch.columns[1] = sets;
    let columns = static_table("Int32Type", "Int32Type");
    let mut mapper = Mapper::new(MutationMapping::Logical, columns, &MapperOptions::default()).unwrap();
    let made = mapped(&mut mapper, vec![batch], 150_000);
    assert!(made.len() > 2, "{} batches", made.len());
    let mut next = 0;
    for batch in &made {
        assert_eq!(batch.first_row, next);
        next += batch.rows as u64;
        assert_eq!(batch.columns[3].values.len(), 2000 * batch.rows);
        let clustering = numbers(batch, 1);
        let is_second = |row: usize| batch.first_row + row as u64 >= 3000;
        for (row, clustering) in clustering.iter().enumerate() {
            assert_eq!(*clustering, (batch.first_row as i64 + row as i64) % 3000);
            let text = Value::of_values(&batch.columns[2].values, row);
            assert!(
                matches!(text, Some(Value::Bytes(text)) if text.len() == if is_second(row) { 1 } else { 4 << 20 })
            );
        }
    }
    assert_eq!(next, 6000);
}

#[test]
fn a_key_of_many_elements_is_in_all_of_many_rows() {
    let rows: Vec<i32> = (0..8192).collect();
    let mut batch = with_statics(Continues::Nothing, false, &[(1, None, &rows)]);
    let keys = &mut batch.partitions.keys;
    keys.bytes = 130_i32.to_be_bytes().to_vec();
    for element in 0..130_i32 {
        keys.bytes.extend([4_i32.to_be_bytes(), element.to_be_bytes()].concat());
    }
    keys.ends = vec![keys.bytes.len() as u32];
    let columns = static_table("FrozenType(ListType(Int32Type))", "Int32Type");
    for units in [0, 150_000] {
        let mut mapper =
            Mapper::new(MutationMapping::Full, Arc::clone(&columns), &MapperOptions::default()).unwrap();
        let made = mapped(&mut mapper, vec![batch.clone()], units);
        assert_eq!(made.len(), 1);
        let expected: Vec<i64> = (0..8192).flat_map(|_| 0..130).collect();
        assert!(numbers(&made[0], 0) == expected);
    }
}

#[test]
fn a_long_text_in_a_collection_costs_what_its_bytes_do() {
    let mut batch = with_statics(Continues::Nothing, false, &[(1, None, &[1])]);
    let text = vec![b'a'; 4 << 20];
    let value = [&1_i32.to_be_bytes()[..], &(text.len() as i32).to_be_bytes(), &text].concat();
    let ends = vec![value.len() as u32];
    batch.columns[2].values = Values::Strings(Strings { bytes: value, ends });
    let columns = static_table("Int32Type", "FrozenType(ListType(UTF8Type))");
    let mut mapper = Mapper::new(MutationMapping::Full, columns, &MapperOptions::default()).unwrap();
    mapper.feed(batch).unwrap();
    mapper.finish();
    let mut spent = 0;
    loop {
        let mut budget = Budget::new(150_000);
        let step = mapper.step(&mut budget).unwrap();
        spent += budget.spent();
        if let MapStep::Ready(batch) = step {
            assert_eq!(batch.rows, 1);
            break;
        }
    }
    assert!(spent > 80 * (4 << 10), "{spent} units");
}

#[test]
fn an_empty_partition_at_the_end_of_a_batch_is_not_lost() {
    let batches = vec![
        with_statics(Continues::Nothing, true, &[(1, None, &[1]), (2, None, &[])]),
        with_statics(Continues::Partition, false, &[(2, None, &[]), (3, None, &[3])]),
    ];
    let columns = static_table("Int32Type", "Int32Type");
    let mut mapper = Mapper::new(MutationMapping::Full, columns, &MapperOptions::default()).unwrap();
    let made = mapped(&mut mapper, batches, 150_000);
    let keys: Vec<i64> = made.iter().flat_map(|batch| numbers(batch, 0)).collect();
    assert_eq!(keys, [1, 2, 3]);
}

#[test]
fn a_ttl_of_more_than_31_bits_is_an_error() {
    let columns = static_table("Int32Type", "Int32Type");
    let mut batch = with_statics(Continues::Nothing, false, &[(1, None, &[1])]);
    batch.entries.expiries.push(0, Expiry { ttl: 1 << 31, local_deletion: 1_900_000_000 });
    for kind in [MutationMapping::Full, MutationMapping::Verbatim] {
        let mut mapper = Mapper::new(kind, Arc::clone(&columns), &MapperOptions::default()).unwrap();
        let error = try_mapped(&mut mapper, vec![batch.clone()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

/// Rows of many megabytes: of cells that are continued over many batches, and of one value.
#[test]
fn large_rows_are_mapped_in_small_steps() {
    let columns = [("l", "FrozenType(ListType(Int32Type))"), ("t", "UTF8Type"), ("s", "SetType(LongType)")];
    let statistics = craft::statistics("Int32Type", &[], &[], &columns);
    let mut list = 300_000_i32.to_be_bytes().to_vec();
    (0..300_000_i32).for_each(|element| list.extend([4_i32.to_be_bytes(), element.to_be_bytes()].concat()));
    let mut body = Craft::default().vint(5).cell(&list).cell("é".repeat(4 << 20).as_bytes()).vint(200_000);
    for element in 0..200_000_u64 {
        // Every thousandth has a time of its own.
        let own = element % 1000 == 0;
        body = if own { body.raw(&[0x04]).vint(3) } else { body.raw(&[0x0c]) };
        body = body.long(&element.to_be_bytes());
    }
    let data = Craft::default().partition(&[0, 0, 0, 1]).row(&[0x24], &[], &body.bytes).end();
    let batches = craft::read("mc", &statistics, &data).unwrap();
    assert!(batches.len() > 2 && batches[1].continues == Continues::Entry);
    let columns = Arc::new(TableColumns::new(&[&statistics.header], None).unwrap());
    let made = compare(&columns, Present::ALL, batches.clone(), 150_000);
    assert_eq!(made.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [1]);

    let mut options = MapperOptions::default();
    options.limits.total_bytes = 1 << 20;
    let mut mapper = Mapper::new(MutationMapping::Full, columns, &options).unwrap();
    let error = try_mapped(&mut mapper, batches).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
}
