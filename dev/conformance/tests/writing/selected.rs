//! Selected rows are those that are in the whole: random selections of every way to write, and of the corpus, with and without the page
//! index; pages without a wanted row are not asked for; and runs of a few rows cost what their rows cost, not a slice each.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Machine, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::files;
use marquetry_conformance::hostile::{self, Manner, Random};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, RowSelection};
use marquetry_parquet::format::{Encoding, FileMetaData};
use marquetry_parquet::read::{BatchReader, ChunkIndex, Conform, ConformReader, LargePages, ReadOptions};
use marquetry_parquet::schema::Plan;
use marquetry_parquet::write::{ColumnOptions, PageVersion, WriteOptions};

use crate::given::{self, Flavour};
use crate::rewritten::{plain, write};
use crate::ways::ways;

/// What a step may do beyond its budget.
const STEP_UNITS_MAX: u64 = 40_000;

/// Of each leaf, each row: its levels and values.
type Rows = Vec<Vec<Vec<u8>>>;

fn add_rows(rows: &mut Vec<Vec<u8>>, column: &ColumnBatch, definition_max: u16) {
    let mut value = 0;
    let mut next = |row: &mut Vec<u8>| {
        canonical::with_bytes(&column.values, value, |bytes| row.extend_from_slice(bytes));
        value += 1;
    };
    let Some(levels) = &column.levels else {
        for row in 0..column.rows {
            let mut bytes = vec![u8::from(!column.is_null(row))];
            if !column.is_null(row) || column.layout == Layout::Spaced {
                let mut value = Vec::new();
                next(&mut value);
                if !column.is_null(row) {
                    bytes.extend(value);
                }
            }
            rows.push(bytes);
        }
        return;
    };
    let before = rows.len();
    for (at, &definition) in levels.definition.iter().enumerate() {
        let repetition = levels.repetition.as_ref().map_or(0, |levels| levels[at]);
        if repetition == 0 {
            rows.push(Vec::new());
        }
        let row = rows.last_mut().expect("a batch that begins with a row");
        row.extend([definition, repetition]);
        if u16::from(definition) == definition_max {
            next(row);
        }
    }
    assert_eq!(rows.len() - before, column.rows);
}

/// What is selected of each row group.
type Selections = Vec<RowSelection>;

/// Anything that hands out batches of selected rows.
trait Selecting: Machine<Product = Batch> {
    fn choose(&mut self, row_group: usize, rows: RowSelection, indexes: &[ChunkIndex]) -> Result<()>;
    fn next_group(&self) -> Option<usize>;
}

impl Selecting for BatchReader {
    fn choose(&mut self, row_group: usize, rows: RowSelection, indexes: &[ChunkIndex]) -> Result<()> {
        self.select(row_group, rows)?;
        for index in indexes.iter().filter(|index| index.row_group == row_group) {
            self.locate(row_group, index.leaf, Arc::new(index.offset_index.clone()))?;
        }
        Ok(())
    }

    fn next_group(&self) -> Option<usize> {
        self.begins()
    }
}

impl Selecting for ConformReader {
    fn choose(&mut self, row_group: usize, rows: RowSelection, indexes: &[ChunkIndex]) -> Result<()> {
        self.select(row_group, rows)?;
        for index in indexes.iter().filter(|index| index.row_group == row_group) {
            self.locate(row_group, index.leaf, Arc::new(index.offset_index.clone()))?;
        }
        Ok(())
    }

    fn next_group(&self) -> Option<usize> {
        self.begins()
    }
}

/// A reader that is told what to read at the last moment.
struct Late<'a, M> {
    reader: M,
    selections: &'a Selections,
    indexes: &'a [ChunkIndex],
    chosen: Option<usize>,
}

impl<M: Selecting> Machine for Late<'_, M> {
    type Product = Batch;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        if let Some(next) = self.reader.next_group().filter(|next| self.chosen != Some(*next)) {
            self.chosen = Some(next);
            self.reader.choose(next, self.selections[next].clone(), self.indexes)?;
        }
        self.reader.step(budget)
    }

    fn supply(&mut self, object: marquetry_base::Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.reader.supply(object, range, bytes)
    }

    fn supply_length(&mut self, object: marquetry_base::Object, length: u64) -> Result<()> {
        self.reader.supply_length(object, length)
    }

    fn fail(&mut self, object: marquetry_base::Object, range: Range<u64>, reason: marquetry_base::Error) {
        self.reader.fail(object, range, reason);
    }
}

/// Reads what is selected; where the batches begin is checked.
fn read<M: Selecting>(
    reader: M,
    bytes: &Bytes,
    metadata: &FileMetaData,
    (selections, indexes): (&Selections, &[ChunkIndex]),
    manner: Manner,
) -> Result<Rows> {
    let leaves = metadata.schema.leaves();
    let mut rows: Rows = vec![Vec::new(); leaves.len()];
    let mut late = Late { reader, selections, indexes, chosen: None };
    let (mut group, mut taken) = (0, 0);
    let report = canonical::read(&mut late, bytes, manner, |batch| {
        if batch.row_group != group {
            (group, taken) = (batch.row_group, 0);
        }
        let first = batch.first_row - metadata.row_groups[group].first_row;
        assert!(selections[group].contains(first), "row {first}");
        assert_eq!(selections[group].rows_before(first), taken);
        taken += batch.rows as u64;
        for column in &batch.columns {
            assert_eq!(column.rows, batch.rows);
            add_rows(&mut rows[column.leaf], column, leaves[column.leaf].definition_max);
        }
    })?;
    if manner.budget < u64::MAX {
        let most = manner.budget + STEP_UNITS_MAX;
        assert!(report.units_max <= most, "a step of {} units, more than {most}", report.units_max);
    }
    Ok(rows)
}

fn reader(metadata: &Arc<FileMetaData>, options: ReadOptions) -> Result<BatchReader> {
    BatchReader::new(FILE, Arc::clone(metadata), Arc::new(StandardCodecs::default()), options)
}

/// A random selection: of one row, of a few, of runs, of every other, of all or none.
fn select(rows: u64, random: &mut Random) -> RowSelection {
    let budget = &mut Budget::unlimited();
    let mut selection = RowSelection::none();
    let (gap, run) = match random.below(9) {
        0 => return selection,
        1 => return RowSelection::of(0..rows).unwrap(),
        2 => {
            let row = random.below(rows.max(1));
            return RowSelection::of(row..rows.min(row + 1)).unwrap();
        }
        3 => (1, 1),
        4 => (rows / 3 + 1, 3),
        5 => (50, 200),
        6 => (200, 20),
        7 => (1 + random.below(30), 1 + random.below(5)),
        _ => (5, 5),
    };
    let mut at = random.below(gap + 1);
    while at < rows {
        let end = rows.min(at + 1 + random.below(run));
        selection.push(at..end, budget).unwrap();
        at = end + 1 + random.below(gap);
    }
    selection
}

fn selected(all: &Rows, metadata: &FileMetaData, selections: &Selections) -> Rows {
    let is_wanted: Vec<bool> = metadata
        .row_groups
        .iter()
        .zip(selections)
        .flat_map(|(group, selection)| (0..group.rows).map(|row| selection.contains(row)))
        .collect();
    all.iter()
        .map(|rows| {
            rows.iter().zip(&is_wanted).filter(|(_, wanted)| **wanted).map(|(row, _)| row.clone()).collect()
        })
        .collect()
}

/// Reads with every byte as it is asked for; checks that nothing is asked of pages without a wanted row. Bytes asked for.
fn check_demands(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    selections: &Selections,
    indexes: &[ChunkIndex],
) -> u64 {
    let mut unwanted = Vec::new();
    for index in indexes {
        let pages = &index.offset_index.pages;
        let rows = metadata.row_groups[index.row_group].rows;
        for (at, page) in pages.iter().enumerate() {
            let end = pages.get(at + 1).map_or(rows, |next| next.first_row);
            let selection = &selections[index.row_group];
            if selection.rows_before(end) == selection.rows_before(page.first_row) {
                unwanted.push(page.offset..page.offset + u64::from(page.compressed_bytes));
            }
        }
    }
    let mut reader = reader(metadata, ReadOptions::default()).unwrap();
    for (group, selection) in selections.iter().enumerate() {
        reader.choose(group, selection.clone(), indexes).unwrap();
    }
    let mut asked = 0;
    loop {
        match reader.step(&mut Budget::unlimited()).unwrap() {
            Step::Need(demand) => {
                for want in demand.wants {
                    let Want::Range(object, range, _) = want else { panic!("a length") };
                    for page in &unwanted {
                        assert!(
                            range.end <= page.start || page.end <= range.start,
                            "{range:?} asked for, where the page {page:?} is not wanted"
                        );
                    }
                    asked += range.end - range.start;
                    let part = hostile::part(bytes, &range);
                    reader.supply(object, range, part).unwrap();
                }
            }
            Step::Done => return asked,
            _ => {}
        }
    }
}

/// Random selections of a file equal what is selected of the whole. How many were read, and of how many pages were left out.
fn check(name: &str, bytes: &Bytes, seed: u64, manners: &[Manner]) -> Option<usize> {
    let metadata = canonical::metadata(bytes, Manner::KIND).ok()?;
    let indexes = canonical::indexes(bytes, &metadata).unwrap_or_default();
    let everything: Selections =
        metadata.row_groups.iter().map(|group| RowSelection::of(0..group.rows).unwrap()).collect();
    let whole = reader(&metadata, ReadOptions::default()).ok()?;
    let all = read(whole, bytes, &metadata, (&everything, &[]), Manner::KIND).ok()?;
    let mut random = Random(seed | 1);
    for (at, &manner) in manners.iter().enumerate() {
        let selections: Selections =
            metadata.row_groups.iter().map(|group| select(group.rows, &mut random)).collect();
        let expected = selected(&all, &metadata, &selections);
        for located in [&indexes[..], &[]] {
            let options = ReadOptions {
                batch_rows: [7, 8192, 100][at % 3],
                layout: if random.below(2) == 0 { Layout::Dense } else { Layout::Spaced },
                keep_dictionaries: random.below(2) == 0,
                window_bytes: if random.below(3) == 0 { 300 } else { 1 << 20 },
                verify_first_bytes: if random.below(2) == 0 { 0 } else { 1 << 20 },
                large_pages: if random.below(2) == 0 {
                    LargePages::ReadTwice
                } else {
                    LargePages::Provisional
                },
                ..ReadOptions::default()
            };
            let what = || format!("{name}, {manner:?}, {} pages located, {options:?}", located.len());
            let batches = reader(&metadata, options.clone()).unwrap();
            let found = read(batches, bytes, &metadata, (&selections, located), manner);
            let found = found.unwrap_or_else(|error| panic!("{}: {error}", what()));
            for (leaf, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    found == expected,
                    "leaf {leaf} of {}: {} rows of {}",
                    what(),
                    found.len(),
                    expected.len()
                );
            }
        }
        check_demands(bytes, &metadata, &selections, &indexes);
    }
    Some(all.len())
}

#[test]
fn every_way_to_write_read_in_parts() {
    let mut files = 0;
    for (number, way) in ways().into_iter().enumerate() {
        let schema = given::schema(&way.types, &way.shapes);
        let flavour = way.flavours[number % way.flavours.len()];
        let batches = way
            .rows
            .map(|rows| given::batch(&schema, rows, flavour, Layout::Spaced, u64::try_from(rows).unwrap()));
        let written = write(&schema, &batches, way.options.clone(), Manner::KIND).unwrap();
        let file = written.object(FILE);
        let manners: &[Manner] = match file.len() {
            ..40_000 => &[Manner::KIND, Manner::USUAL, Manner::DISORDERLY, Manner::KIND],
            _ => &[Manner::KIND, Manner::USUAL],
        };
        check(&way.name, &file, number as u64 * 7919, manners).expect("a file that is read");
        files += 1;
    }
    for (name, number) in given::TYPES.into_iter().filter(|(name, _)| ["float", "double"].contains(name)) {
        let column = ColumnOptions { encoding: Some(Encoding::Alp), ..plain() };
        let options = WriteOptions { column, page_rows: 100, ..WriteOptions::default() };
        let schema = given::schema(&[(name, number)], &given::SHAPES);
        let batches = [given::batch(&schema, 700, Flavour::Random, Layout::Spaced, 5)];
        let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
        check(name, &file, 77, &[Manner::KIND; 4]).expect("a file that is read");
    }
    assert!(files > 60, "{files}");
}

#[test]
fn a_byte_at_a_time_and_a_budget_of_one() {
    for page_version in [PageVersion::V1, PageVersion::V2] {
        let schema = given::schema(&given::TYPES[2..4], &given::SHAPES);
        let options = WriteOptions { page_rows: 20, page_version, ..WriteOptions::default() };
        let batches = [given::batch(&schema, 100, Flavour::Random, Layout::Spaced, 5)];
        let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
        check("small", &file, 78, &[Manner::ONE_BYTE; 8]).expect("a file that is read");
    }
}

#[test]
fn the_corpus_read_in_parts() {
    let Some(corpus) = files::corpus() else { return };
    let (mut count, mut leaves) = (0, 0);
    for folder in ["parquet-testing/data", "real"] {
        for path in files::parquet_files(&corpus.join(folder)) {
            let bytes = Bytes::from(std::fs::read(&path).unwrap());
            let manners: &[Manner] = match bytes.len() {
                0..20_000 => &[Manner::KIND, Manner::USUAL, Manner::DISORDERLY],
                20_000..200_000 => &[Manner::KIND, Manner::USUAL],
                _ => continue,
            };
            if let Some(found) = check(&path.display().to_string(), &bytes, 5 + count, manners) {
                (count, leaves) = (count + 1, leaves + found);
            }
        }
    }
    println!("{count} files of {leaves} leaves");
    assert!(count > 40 && leaves > 300, "{count} files of {leaves} leaves");
}

/// Rows taken and rows left out, in turn.
fn in_turn(rows: u64, (taken, left_out): (u64, u64)) -> RowSelection {
    let mut selection = RowSelection::none();
    for start in (0..rows).step_by(usize::try_from(taken + left_out).unwrap()) {
        selection.push(start..rows.min(start + taken), &mut Budget::unlimited()).unwrap();
    }
    selection
}

/// Units that it takes to read what is selected of a file of one row group, and the steps where each may cost 10,000.
fn cost(bytes: &Bytes, metadata: &Arc<FileMetaData>, rows: &RowSelection) -> (u64, u64) {
    let units_and_steps = |step_units: u64| {
        let mut reader = reader(metadata, ReadOptions::default()).unwrap();
        reader.select(0, rows.clone()).unwrap();
        let (mut units, mut steps) = (0, 0);
        loop {
            let mut budget = Budget::new(step_units);
            let step = reader.step(&mut budget).unwrap();
            (units, steps) = (units + budget.spent(), steps + 1);
            match step {
                Step::Need(demand) => {
                    for want in demand.wants {
                        let Want::Range(object, range, _) = want else { panic!("a length") };
                        let part = hostile::part(bytes, &range);
                        reader.supply(object, range, part).unwrap();
                    }
                }
                Step::Done => return (units, steps),
                _ => {}
            }
        }
    };
    (units_and_steps(u64::MAX).0, units_and_steps(10_000).1)
}

#[test]
fn short_runs_cost_what_their_rows_cost() {
    let encodings = |number: i32| match number {
        1 | 2 => vec![Encoding::Plain, Encoding::RleDictionary, Encoding::DeltaBinaryPacked],
        4 | 5 => vec![Encoding::Plain, Encoding::ByteStreamSplit, Encoding::Alp],
        6 => vec![Encoding::Plain, Encoding::RleDictionary, Encoding::DeltaLengthByteArray],
        7 => vec![Encoding::Plain, Encoding::RleDictionary],
        _ => vec![Encoding::Plain],
    };
    for (name, number) in given::TYPES {
        for encoding in encodings(number) {
            for shape in given::SHAPES {
                let file_of = |batches: u64| {
                    let schema = given::schema(&[(name, number)], &[shape]);
                    let column = ColumnOptions { encoding: Some(encoding), ..plain() };
                    let options = WriteOptions { column, ..WriteOptions::default() };
                    let batch = |seed| given::batch(&schema, 4000, Flavour::Few, Layout::Spaced, seed);
                    let batches: Vec<Batch> = (0..batches).map(batch).collect();
                    write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE)
                };
                let [few, many] = [2, 6].map(file_of);
                let costs = |file: &Bytes, turn: (u64, u64)| {
                    let metadata = canonical::metadata(file, Manner::KIND).unwrap();
                    cost(file, &metadata, &in_turn(metadata.row_groups[0].rows, turn))
                };
                let (all, all_steps) = costs(&many, (1, 0));
                for turn in [(1, 1), (1, 3), (3, 2), (7, 1)] {
                    let what = format!("{name} {shape} {encoding}, rows {turn:?}");
                    let ((units, steps), (fewer, _)) = (costs(&many, turn), costs(&few, turn));
                    assert!(units < 4 * all, "{what}: {units} units, of all rows {all}");
                    assert!(steps < 4 * all_steps + 4, "{what}: {steps} steps, of all rows {all_steps}");
                    assert!(units < 4 * fewer, "{what}: {units} units, {fewer} of a third of the rows");
                }
            }
        }
    }
}

#[test]
fn short_runs_of_nested_null_and_dictionary_columns() {
    // Booleans have no dictionary.
    let schema = given::schema(&given::TYPES[1..], &given::SHAPES);
    for (number, encoding) in [Encoding::Plain, Encoding::RleDictionary].into_iter().enumerate() {
        let column = ColumnOptions { encoding: Some(encoding), ..plain() };
        let options = WriteOptions { column, page_rows: 700, ..WriteOptions::default() };
        let batches: Vec<Batch> = [Flavour::Random, Flavour::Few]
            .map(|flavour| given::batch(&schema, 1100, flavour, Layout::Spaced, 5 + number as u64))
            .into();
        let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        let indexes = canonical::indexes(&file, &metadata).unwrap();
        let everything = vec![RowSelection::of(0..2200).unwrap()];
        let whole = reader(&metadata, ReadOptions::default()).unwrap();
        let all = read(whole, &file, &metadata, (&everything, &[]), Manner::KIND).unwrap();
        for (at, turn) in [(1, 1), (1, 2), (2, 1), (1, 9), (5, 3), (1, 40), (63, 1)].into_iter().enumerate() {
            let selections = vec![in_turn(2200, turn)];
            let expected = selected(&all, &metadata, &selections);
            for (layout, keep_dictionaries) in [
                (Layout::Dense, false),
                (Layout::Spaced, false),
                (Layout::Spaced, true),
                (Layout::Dense, true),
            ] {
                for manner in [Manner::KIND, Manner::USUAL] {
                    let batch_rows = [300, 8192][at % 2];
                    let options =
                        ReadOptions { layout, keep_dictionaries, batch_rows, ..ReadOptions::default() };
                    let located = if at % 3 == 0 { &indexes[..] } else { &[] };
                    let batches = reader(&metadata, options).unwrap();
                    let found = read(batches, &file, &metadata, (&selections, located), manner).unwrap();
                    for (leaf, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        let path = metadata.schema.leaf_path(leaf);
                        assert!(found == expected, "{path}, {encoding}, {turn:?}, {layout:?}, {manner:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_few_rows_of_many_ask_for_a_few_pages() {
    let schema = given::schema(&given::TYPES[1..3], &["required", "list"]);
    let options = WriteOptions { page_rows: 100, ..WriteOptions::default() };
    let batches: Vec<Batch> =
        (0..10).map(|seed| given::batch(&schema, 1000, Flavour::Random, Layout::Spaced, seed)).collect();
    let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let indexes = canonical::indexes(&file, &metadata).unwrap();
    assert_eq!((metadata.row_groups.len(), indexes.len()), (1, 4));
    let of = |rows: Range<u64>| vec![RowSelection::of(rows).unwrap()];
    // Two pages far apart are asked for at once.
    let mut ends = RowSelection::of(10..20).unwrap();
    ends.push(9_990..9_991, &mut Budget::unlimited()).unwrap();
    let mut first =
        reader(&metadata, ReadOptions { leaves: Some(vec![0]), ..ReadOptions::default() }).unwrap();
    first.choose(0, ends, &indexes).unwrap();
    let Ok(Step::Need(demand)) = first.step(&mut Budget::unlimited()) else { panic!("a demand") };
    assert_eq!(demand.wants.len(), 2, "{demand:?}");
    let all = check_demands(&file, &metadata, &of(0..10_000), &indexes);
    let some = check_demands(&file, &metadata, &of(5_050..5_060), &indexes);
    let none = check_demands(&file, &metadata, &vec![RowSelection::none()], &indexes);
    assert!(some * 20 < all && none == 0, "{none}, {some} and {all} bytes");
}

#[test]
fn rows_of_another_schema_are_selected_too() {
    let schema = given::schema(&given::TYPES[1..3], &["optional", "list"]);
    let wide = given::schema(&given::TYPES[1..4], &["optional", "list"]);
    let options = WriteOptions { page_rows: 100, row_group_rows: 700, ..WriteOptions::default() };
    let batches = [given::batch(&schema, 2000, Flavour::Few, Layout::Spaced, 9)];
    let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let indexes = canonical::indexes(&file, &metadata).unwrap();
    let conform =
        Arc::new(Conform::plan(Arc::clone(&metadata.schema), Arc::clone(&wide), &[]).at_once().unwrap());
    let table = FileMetaData { schema: Arc::clone(&wide), ..(*metadata).clone() };
    let read = |selections: &Selections, manner| {
        let codecs = Arc::new(StandardCodecs::default());
        let options = ReadOptions { batch_rows: 300, ..ReadOptions::default() };
        let conform = Arc::clone(&conform);
        let reader =
            ConformReader::new(FILE, Arc::clone(&metadata), codecs, options, conform, Vec::new()).unwrap();
        read(reader, &file, &table, (selections, &indexes), manner).unwrap()
    };
    let everything =
        metadata.row_groups.iter().map(|group| RowSelection::of(0..group.rows).unwrap()).collect();
    let all = read(&everything, Manner::KIND);
    let mut random = Random(3);
    for manner in [Manner::KIND, Manner::USUAL, Manner::DISORDERLY] {
        let selections = metadata.row_groups.iter().map(|group| select(group.rows, &mut random)).collect();
        assert_eq!(read(&selections, manner), selected(&all, &metadata, &selections));
    }
}

#[test]
fn what_cannot_be_selected_is_refused() {
    let schema = given::schema(&given::TYPES[1..2], &["required"]);
    let options = WriteOptions { row_group_rows: 10, ..WriteOptions::default() };
    let batches = [given::batch(&schema, 30, Flavour::Few, Layout::Spaced, 9)];
    let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let mut reader =
        reader(&metadata, ReadOptions { row_groups: Some(0..2), ..ReadOptions::default() }).unwrap();
    assert_eq!(reader.begins(), Some(0));
    assert!(reader.select(0, RowSelection::of(0..11).unwrap()).is_err());
    assert!(reader.select(2, RowSelection::none()).is_err());
    let index = canonical::indexes(&file, &metadata).unwrap().remove(0);
    let pages = Arc::new(index.offset_index);
    assert!(reader.locate(0, 1, Arc::clone(&pages)).is_err());
    reader.select(0, RowSelection::of(3..5).unwrap()).unwrap();
    let mut firsts = Vec::new();
    canonical::read(&mut reader, &file, Manner::KIND, |batch| firsts.push((batch.first_row, batch.rows)))
        .unwrap();
    // Of the other all rows are read.
    assert_eq!(firsts, [(3, 2), (10, 10)]);
    assert!(reader.select(1, RowSelection::none()).is_err());
}

/// A page index that lies is found, or its rows are read as it says; it is never more than wrong.
#[test]
fn a_page_index_that_lies_is_no_danger() {
    let schema = given::schema(&given::TYPES[2..4], &["required", "optional", "list"]);
    let options = WriteOptions { page_rows: 50, ..WriteOptions::default() };
    let batches = [given::batch(&schema, 600, Flavour::Few, Layout::Spaced, 9)];
    let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let indexes = canonical::indexes(&file, &metadata).unwrap();
    let mut random = Random(11);
    let (mut refused, mut read_on) = (0, 0);
    for _ in 0..400 {
        let mut lies = indexes.clone();
        for index in &mut lies {
            let pages = &mut index.offset_index.pages;
            for _ in 0..1 + random.below(3) {
                let at = random.index(pages.len());
                let page = &mut pages[at];
                match random.below(4) {
                    0 => page.offset = random.below(file.len() as u64 + 100),
                    1 => page.first_row = random.below(700),
                    2 => page.compressed_bytes = u32::try_from(random.below(5000)).unwrap(),
                    _ => drop(pages.pop().filter(|_| at > 3)),
                }
                if pages.is_empty() {
                    break;
                }
            }
        }
        let selections = vec![select(600, &mut random)];
        let batches = reader(&metadata, ReadOptions::default()).unwrap();
        let late = &mut Late { reader: batches, selections: &selections, indexes: &lies, chosen: None };
        match canonical::read(late, &file, Manner::USUAL, |_| {}) {
            Ok(_) => read_on += 1,
            Err(error) => {
                assert_eq!(error.kind(), marquetry_base::ErrorKind::Corrupt, "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100 && read_on > 20, "{refused} refused, {read_on} read");
}
