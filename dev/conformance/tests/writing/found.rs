//! Rows that are found are those for which a predicate is true: random predicates over every way to write and over the corpus, with each
//! structure used or not, beside three-valued logic on all rows.

use std::cmp::Ordering;
use std::sync::Arc;

use marquetry_base::{Bytes, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft;
use marquetry_conformance::files;
use marquetry_conformance::finding::Runs;
use marquetry_conformance::hostile::{self, Manner, Random};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout};
use marquetry_parquet::find::{FindOptions, Report, RowFinder};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::{
    Accepts, Comparison, NAN_KEY, Predicate, Quantifier, Ranges, Test, double_key,
};
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::scalar::int96_nanos;
use marquetry_parquet::schema::{Meaning, PhysicalType, Repetition, Schema};
use marquetry_parquet::write::{BloomOptions, ColumnOptions, PageBloomOptions, WriteOptions};
use marquetry_text::predicate;

use crate::given::{self, Flavour};
use crate::rewritten::{plain, write};
use crate::ways::ways;

/// What a step may do beyond its budget: as much as one of the reader's.
const STEP_UNITS_MAX: u64 = 75_000;

/// An entry of a row: a value, as PLAIN bytes, or the definition level that says why there is none.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    Value(Vec<u8>),
    Level(u8),
}

/// Of each leaf, each row.
type Rows = Vec<Vec<Vec<Entry>>>;

fn add_rows(rows: &mut Vec<Vec<Entry>>, column: &ColumnBatch, definition_max: u16) {
    let value_at = |at: usize| {
        let mut value = Vec::new();
        canonical::with_bytes(&column.values, at, |bytes| value.extend_from_slice(bytes));
        Entry::Value(value)
    };
    let Some(levels) = &column.levels else {
        let entry = |row| if column.is_null(row) { Entry::Level(0) } else { value_at(row) };
        rows.extend((0..column.rows).map(|row| vec![entry(row)]));
        return;
    };
    let mut value = 0;
    for (at, &definition) in levels.definition.iter().enumerate() {
        if levels.repetition.as_ref().is_none_or(|levels| levels[at] == 0) {
            rows.push(Vec::new());
        }
        let row = rows.last_mut().expect("a batch that begins with a row");
        if u16::from(definition) == definition_max {
            row.push(value_at(value));
            value += 1;
        } else {
            row.push(Entry::Level(definition));
        }
    }
}

fn all_rows(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<Rows> {
    let leaves = metadata.schema.leaves();
    let options = ReadOptions { layout: Layout::Spaced, ..ReadOptions::default() };
    let mut reader =
        BatchReader::new(FILE, Arc::clone(metadata), Arc::new(StandardCodecs::default()), options)?;
    let mut rows = vec![Vec::new(); leaves.len()];
    canonical::read(&mut reader, bytes, Manner::KIND, |batch: Batch| {
        for column in &batch.columns {
            add_rows(&mut rows[column.leaf], column, leaves[column.leaf].definition_max);
        }
    })?;
    Ok(rows)
}

/// A predicate as a user writes it.
#[derive(Debug, Clone)]
enum Wanted {
    And(Vec<Wanted>),
    Or(Vec<Wanted>),
    Not(Box<Wanted>),
    /// Less than the value, or equal to it.
    Less(usize, Vec<u8>),
    Equal(usize, Vec<u8>),
    In(usize, Vec<Vec<u8>>),
    IsNull(usize),
}

/// A leaf, as the test sees it.
struct Seen {
    physical_type: PhysicalType,
    is_unsigned: bool,
    is_ordered: bool,
    /// Definition levels: of an element of the innermost list, of a value, and of empty lists.
    slot: u8,
    definition_max: u8,
    empty: Vec<u8>,
}

impl Seen {
    /// `None` for types whose values this test does not compare.
    fn of(schema: &Schema, leaf: usize) -> Option<Seen> {
        let leaf = &schema.leaves()[leaf];
        let meaning = Meaning::of(leaf.physical_type, schema.node_of(leaf).logical_type.as_ref());
        if matches!(meaning, Meaning::Decimal { .. } | Meaning::Float16 | Meaning::Null) {
            return None;
        }
        let definition_max = u8::try_from(leaf.definition_max).ok()?;
        let (mut slot, mut empty, mut node, mut level) = (0, Vec::new(), leaf.node, definition_max);
        while node != 0 {
            let found = &schema.nodes()[node];
            if found.repetition == Repetition::Repeated {
                slot = slot.max(level);
                empty.push(level - 1);
            }
            level -= u8::from(found.repetition != Repetition::Required);
            node = found.parent;
        }
        let is_unsigned = matches!(meaning, Meaning::Integer { is_signed: false, .. });
        let is_ordered = Comparison::of(meaning, leaf.physical_type) != Comparison::Equality;
        Some(Seen { physical_type: leaf.physical_type, is_unsigned, is_ordered, slot, definition_max, empty })
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        fn le<const N: usize>(bytes: &[u8]) -> [u8; N] {
            bytes.try_into().expect("a value of its type")
        }
        // NaN is greater than all numbers, and equal to itself.
        let floats = |left: f64, right: f64| {
            left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
        };
        match self.physical_type {
            PhysicalType::Boolean => left.cmp(right),
            PhysicalType::Int32 if self.is_unsigned => {
                u32::from_le_bytes(le(left)).cmp(&u32::from_le_bytes(le(right)))
            }
            PhysicalType::Int64 if self.is_unsigned => {
                u64::from_le_bytes(le(left)).cmp(&u64::from_le_bytes(le(right)))
            }
            PhysicalType::Int32 => i32::from_le_bytes(le(left)).cmp(&i32::from_le_bytes(le(right))),
            PhysicalType::Int64 => i64::from_le_bytes(le(left)).cmp(&i64::from_le_bytes(le(right))),
            PhysicalType::Int96 => int96_nanos(le(left)).cmp(&int96_nanos(le(right))),
            PhysicalType::Float => {
                floats(f32::from_le_bytes(le(left)).into(), f32::from_le_bytes(le(right)).into())
            }
            PhysicalType::Double => floats(f64::from_le_bytes(le(left)), f64::from_le_bytes(le(right))),
            PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_) => left.cmp(right),
        }
    }

    /// The ranges with a value alone, or with all that are less.
    fn ranges(&self, value: &[u8], with_less: bool) -> Ranges {
        fn le<const N: usize>(bytes: &[u8]) -> [u8; N] {
            bytes.try_into().expect("a value of its type")
        }
        let key = match self.physical_type {
            PhysicalType::Boolean => i128::from(value[0]),
            PhysicalType::Int32 if self.is_unsigned => u32::from_le_bytes(le(value)).into(),
            PhysicalType::Int64 if self.is_unsigned => u64::from_le_bytes(le(value)).into(),
            PhysicalType::Int32 => i32::from_le_bytes(le(value)).into(),
            PhysicalType::Int64 => i64::from_le_bytes(le(value)).into(),
            PhysicalType::Int96 => int96_nanos(le(value)),
            PhysicalType::Float => double_key(f32::from_le_bytes(le(value)).into()),
            PhysicalType::Double => double_key(f64::from_le_bytes(le(value))),
            PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_) => {
                let value = Bytes::copy_from_slice(value);
                return if with_less { Ranges::bytes_before(&value, true) } else { Ranges::of_bytes(value) };
            }
        };
        Ranges::of_keys(if with_less { i128::MIN } else { key }, key)
    }

    /// True, false, or neither.
    fn test(&self, row: &[Entry], passes: impl Fn(&[u8]) -> bool) -> Option<bool> {
        let mut is_unknown = false;
        for entry in row {
            match entry {
                Entry::Value(value) if passes(value) => return Some(true),
                Entry::Value(_) => {}
                Entry::Level(level) => is_unknown |= !self.empty.contains(level),
            }
        }
        if is_unknown { None } else { Some(false) }
    }

    fn is_null(&self, row: &[Entry]) -> Option<bool> {
        let mut is_unknown = false;
        for entry in row {
            match entry {
                Entry::Level(level) if *level >= self.slot => return Some(true),
                Entry::Level(level) => is_unknown |= !self.empty.contains(level),
                Entry::Value(_) => {}
            }
        }
        if is_unknown { None } else { Some(false) }
    }
}

impl Wanted {
    /// By Kleene's logic.
    fn of_row(&self, seen: &[Option<Seen>], rows: &Rows, row: usize) -> Option<bool> {
        let entries =
            |leaf: usize| (seen[leaf].as_ref().expect("a leaf that is compared"), &rows[leaf][row][..]);
        match self {
            Wanted::And(parts) | Wanted::Or(parts) => {
                // What one of them is decides; else one that is neither does.
                let deciding = matches!(self, Wanted::Or(_));
                let all: Vec<Option<bool>> = parts.iter().map(|part| part.of_row(seen, rows, row)).collect();
                match all.contains(&Some(deciding)) {
                    true => Some(deciding),
                    false if all.contains(&None) => None,
                    false => Some(!deciding),
                }
            }
            Wanted::Not(part) => part.of_row(seen, rows, row).map(|is_true| !is_true),
            Wanted::Less(leaf, than) => {
                let (seen, row) = entries(*leaf);
                seen.test(row, |value| seen.compare(value, than).is_le())
            }
            Wanted::Equal(leaf, to) => {
                let (seen, row) = entries(*leaf);
                seen.test(row, |value| seen.compare(value, to).is_eq())
            }
            Wanted::In(leaf, values) => {
                let (seen, row) = entries(*leaf);
                seen.test(row, |value| values.iter().any(|one| seen.compare(value, one).is_eq()))
            }
            Wanted::IsNull(leaf) => {
                let (seen, row) = entries(*leaf);
                seen.is_null(row)
            }
        }
    }

    fn predicate(&self, seen: &[Option<Seen>]) -> Predicate {
        let all = |parts: &[Wanted]| parts.iter().map(|part| part.predicate(seen)).collect();
        let of = |leaf: usize| seen[leaf].as_ref().expect("a leaf that is compared");
        let accepting = |leaf, ranges| Predicate::Test(Test::accepting(leaf, ranges));
        match self {
            Wanted::And(parts) => Predicate::And(all(parts)),
            Wanted::Or(parts) => Predicate::Or(all(parts)),
            Wanted::Not(part) => part.predicate(seen).not(),
            Wanted::Less(leaf, than) => accepting(*leaf, of(*leaf).ranges(than, true)),
            Wanted::Equal(leaf, to) => accepting(*leaf, of(*leaf).ranges(to, false)),
            Wanted::In(leaf, values) => {
                let ranges = values.iter().map(|value| of(*leaf).ranges(value, false));
                let comparison = match of(*leaf).physical_type {
                    PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_) => Comparison::Bytes,
                    _ => Comparison::Number,
                };
                accepting(*leaf, Ranges::union(ranges, comparison))
            }
            Wanted::IsNull(leaf) => {
                let (slot, definition) = (of(*leaf).slot.into(), of(*leaf).definition_max.into());
                let accepts = Accepts::Nulls { slot, definition, are_wanted: true };
                Predicate::Test(Test { leaf: *leaf, quantifier: Quantifier::Any, accepts })
            }
        }
    }
}

/// A random predicate of values that the rows have, and of some that they lack.
fn random_wanted(seen: &[Option<Seen>], rows: &Rows, random: &mut Random, depth: u32) -> Wanted {
    let below = |random: &mut Random, most: usize| usize::try_from(random.below(most as u64)).unwrap();
    let kind = if depth == 0 { 3 + random.below(5) } else { random.below(8) };
    if kind < 3 {
        let count = below(random, 4);
        let mut parts = (0..count).map(|_| random_wanted(seen, rows, random, depth - 1)).collect::<Vec<_>>();
        return match kind {
            0 => Wanted::And(parts),
            1 => Wanted::Or(parts),
            _ => Wanted::Not(Box::new(parts.pop().unwrap_or(Wanted::Or(parts)))),
        };
    }
    let leaves: Vec<usize> = (0..seen.len()).filter(|leaf| seen[*leaf].is_some()).collect();
    let leaf = leaves[below(random, leaves.len())];
    let of_leaf = seen[leaf].as_ref().expect("a leaf that is compared");
    let mut value = || {
        for _ in 0..20 {
            let row = rows[leaf].get(below(random, rows[leaf].len().max(1)))?;
            if let Some(Entry::Value(value)) = row.get(below(random, row.len().max(1))) {
                let mut value = value.clone();
                // Often one that is not there.
                let is_wide = !matches!(of_leaf.physical_type, PhysicalType::Boolean);
                if random.below(3) == 0 && is_wide && !value.is_empty() {
                    let at = below(random, value.len());
                    value[at] ^= 1 << random.below(8);
                }
                return Some(value);
            }
        }
        None
    };
    match kind {
        3 | 4 => value().map_or(Wanted::IsNull(leaf), |value| Wanted::Equal(leaf, value)),
        5 => {
            let values = (0..3).filter_map(|_| value()).collect();
            Wanted::In(leaf, values)
        }
        6 if of_leaf.is_ordered => value().map_or(Wanted::IsNull(leaf), |value| Wanted::Less(leaf, value)),
        _ => Wanted::IsNull(leaf),
    }
}

/// The rows that a finder finds, counted through the file.
pub(crate) fn found(
    finder: &mut RowFinder,
    bytes: &Bytes,
    metadata: &FileMetaData,
    manner: Manner,
) -> Result<Vec<usize>> {
    let mut rows = Vec::new();
    let report = hostile::run(&mut Runs(finder), FILE, bytes, manner, |(row_group, found)| {
        let first = metadata.row_groups[row_group].first_row;
        assert!(!found.is_empty(), "row group {row_group} without a row");
        let found = found.into_iter().flat_map(|[start, end]| start..end);
        rows.extend(found.map(|row| usize::try_from(first + row).unwrap()));
        Ok(())
    })?;
    if manner.budget < u64::MAX {
        let most = manner.budget + STEP_UNITS_MAX;
        assert!(report.units_max <= most, "a step of {} units, more than {most}", report.units_max);
    }
    Ok(rows)
}

/// What was kept of the rows that were found is what they have, if it is all of them: how many these are.
fn check_tested(finder: &mut RowFinder, rows: &[usize], table: &Rows, what: &str) -> usize {
    let tested = finder.take_tested();
    let places: Vec<(&Batch, usize)> = tested
        .iter()
        .flat_map(|(batch, found)| {
            (0..batch.rows).filter(move |at| found.get(*at)).map(move |at| (batch, at))
        })
        .collect();
    if places.len() != rows.len() {
        return 0;
    }
    for ((batch, at), row) in places.into_iter().zip(rows) {
        for column in batch.columns.iter().filter(|column| column.levels.is_none()) {
            let mut value = Vec::new();
            let entry = if column.is_null(at) {
                Entry::Level(0)
            } else {
                canonical::with_bytes(&column.values, at, |bytes| value.extend_from_slice(bytes));
                Entry::Value(value)
            };
            assert_eq!(table[column.leaf][*row], [entry], "{what}: row {row} of leaf {}", column.leaf);
        }
    }
    rows.len()
}

/// What all searches of a test did.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) searches: usize,
    rows: usize,
    /// Of them, those of which all was kept that was tested.
    kept: usize,
    by_statistics: u64,
    by_bloom: u64,
    pub(crate) by_dictionary: u64,
    by_index: u64,
    by_page_bloom: u64,
    pub(crate) by_headers: u64,
    pub(crate) distrusted: u64,
}

impl Done {
    fn add(&mut self, report: &Report, rows: usize) {
        self.searches += 1;
        self.rows += rows;
        self.by_statistics += report.statistics.pruned;
        self.by_bloom += report.bloom.pruned;
        self.by_dictionary += report.dictionary.pruned;
        self.by_index += report.index.pruned;
        self.by_page_bloom += report.page_bloom.pruned;
        self.by_headers += report.page_statistics.pruned;
        self.distrusted += report.index.distrusted + report.bloom.distrusted;
    }
}

/// Random predicates over a file.
pub(crate) fn check(name: &str, bytes: &Bytes, seed: u64, manners: &[Manner], done: &mut Done) {
    let Ok(metadata) = canonical::metadata(bytes, Manner::KIND) else { return };
    let Ok(table) = all_rows(bytes, &metadata) else { return };
    let seen: Vec<Option<Seen>> =
        (0..metadata.schema.leaves().len()).map(|leaf| Seen::of(&metadata.schema, leaf)).collect();
    if seen.iter().all(Option::is_none) {
        return;
    }
    let mut random = Random(seed | 1);
    let count = usize::try_from(metadata.rows).unwrap();
    let expected = |wanted: &Wanted| -> Vec<usize> {
        (0..count).filter(|row| wanted.of_row(&seen, &table, *row) == Some(true)).collect()
    };
    for &manner in manners {
        let wanted = random_wanted(&seen, &table, &mut random, 2);
        let mut options = FindOptions::default();
        options.keep_tested = true;
        options.read.batch_rows = if random.below(2) == 0 { 8192 } else { 100 };
        if random.below(2) == 0 {
            options.structures.statistics = random.below(2) == 0;
            options.structures.bloom = random.below(2) == 0;
            options.structures.dictionary = random.below(3) > 0;
            options.structures.index = random.below(2) == 0;
            options.structures.page_bloom = random.below(4) > 0;
        }
        let what = format!("{name}, {manner:?}, {:?}, {wanted:?}", options.structures);
        let wrong = |error: Error| -> ! { panic!("{what}: {error}") };
        let predicate = wanted.predicate(&seen);
        let codecs = Arc::new(StandardCodecs::default());
        let mut finder = RowFinder::new(FILE, Arc::clone(&metadata), codecs, predicate.clone(), options)
            .unwrap_or_else(|error| wrong(error));
        let rows = found(&mut finder, bytes, &metadata, manner).unwrap_or_else(|error| wrong(error));
        let is_equal = rows == expected(&wanted);
        assert!(is_equal, "{what}: {} rows of {}", rows.len(), expected(&wanted).len());
        done.add(finder.report(), rows.len());
        done.kept += check_tested(&mut finder, &rows, &table, &what);
        // The opposite, with what is known from before.
        let opposite = Wanted::Not(Box::new(wanted.clone()));
        finder.start(predicate.not()).unwrap();
        let rows = found(&mut finder, bytes, &metadata, Manner::KIND).unwrap_or_else(|error| wrong(error));
        let is_equal = rows == expected(&opposite);
        assert!(is_equal, "not {what}: {} rows of {}", rows.len(), expected(&opposite).len());
        done.kept += check_tested(&mut finder, &rows, &table, &what);
    }
}

#[test]
fn every_way_to_write_searched() {
    let mut done = Done::default();
    for (number, way) in ways().into_iter().enumerate() {
        let schema = given::schema(&way.types, &way.shapes);
        let flavour = way.flavours[number % way.flavours.len()];
        let batches = way
            .rows
            .map(|rows| given::batch(&schema, rows, flavour, Layout::Spaced, u64::try_from(rows).unwrap()));
        let mut options = way.options.clone();
        if number % 2 == 0 && !way.types.iter().any(|(name, _)| *name == "boolean") {
            options.column.bloom = Some(BloomOptions::default());
        }
        if number % 3 > 0 && !way.types.iter().any(|(name, _)| *name == "boolean") {
            options.column.page_bloom = Some(PageBloomOptions::default());
        }
        let written = write(&schema, &batches, options, Manner::KIND).unwrap();
        let file = written.object(FILE);
        let manners: &[Manner] = match file.len() {
            ..40_000 => &[Manner::KIND, Manner::USUAL, Manner::DISORDERLY, Manner::KIND, Manner::KIND],
            _ => &[Manner::KIND, Manner::USUAL, Manner::KIND],
        };
        check(&way.name, &file, number as u64 * 7919, manners, &mut done);
    }
    let Done {
        searches, rows, kept, by_statistics, by_bloom, by_dictionary, by_index, by_page_bloom, ..
    } = done;
    println!(
        "{searches} searches, {rows} rows ({kept} kept), pruned {by_statistics} {by_bloom} {by_dictionary} {by_index} {by_page_bloom}"
    );
    assert!(by_dictionary > 3, "{by_dictionary}");
    assert!(searches > 200 && rows > 10_000, "{searches} searches found {rows} rows");
    assert!(kept > rows / 2, "of {rows} rows {kept} were kept");
    assert!(by_statistics > 20 && by_bloom > 5 && by_index > 100, "{by_statistics} {by_bloom} {by_index}");
}

#[test]
fn sorted_rows_in_small_pages() {
    let mut done = Done::default();
    for (number, (name, physical_type)) in given::TYPES.into_iter().enumerate() {
        for shape in ["required", "optional"] {
            let schema = given::schema(&[(name, physical_type)], &[shape]);
            let batches = [given::batch(&schema, 3000, Flavour::Ascending, Layout::Spaced, 5)];
            let column = ColumnOptions {
                bloom: (number % 2 == 1).then(BloomOptions::default),
                page_bloom: (name != "boolean").then(PageBloomOptions::default),
                ..plain()
            };
            let options =
                WriteOptions { column, page_rows: 50, row_group_rows: 1000, ..WriteOptions::default() };
            let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
            let manners = [[Manner::KIND; 10], [Manner::USUAL; 10]].concat();
            check(name, &file, 31 + number as u64, &manners, &mut done);
        }
    }
    assert!(done.by_index > 1000 && done.by_page_bloom > 100, "{} {}", done.by_index, done.by_page_bloom);
}

#[test]
fn a_byte_at_a_time_and_a_budget_of_one() {
    let schema = given::schema(&given::TYPES[2..7], &given::SHAPES[..4]);
    let column = ColumnOptions {
        bloom: Some(BloomOptions::default()),
        page_bloom: Some(PageBloomOptions::default()),
        ..plain()
    };
    let options = WriteOptions { page_rows: 20, column, ..WriteOptions::default() };
    let batches = [given::batch(&schema, 100, Flavour::Random, Layout::Spaced, 5)];
    let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
    let mut done = Done::default();
    check("small", &file, 78, &[Manner::ONE_BYTE; 12], &mut done);
    assert!(done.searches == 12 && done.rows > 50);
}

#[test]
fn the_corpus_searched() {
    let Some(corpus) = files::corpus() else { return };
    let mut done = Done::default();
    for folder in ["parquet-testing/data", "real"] {
        for (number, path) in files::parquet_files(&corpus.join(folder)).into_iter().enumerate() {
            let bytes = Bytes::from(std::fs::read(&path).unwrap());
            let manners: &[Manner] = match bytes.len() {
                0..20_000 => &[Manner::KIND, Manner::USUAL, Manner::DISORDERLY, Manner::KIND],
                20_000..200_000 => &[Manner::KIND, Manner::USUAL, Manner::KIND],
                _ => continue,
            };
            check(&path.display().to_string(), &bytes, 5 + number as u64, manners, &mut done);
        }
    }
    let Done { searches, rows, by_statistics, .. } = done;
    println!("{searches} searches, {rows} rows, {by_statistics} row groups by statistics");
    assert!(searches > 150 && rows > 1000 && by_statistics > 5, "{searches} {rows} {by_statistics}");
}

#[test]
fn no_more_than_are_wanted() {
    let schema = given::flat(&[craft::INT64]);
    let ids: Vec<i64> = (0..10_000).collect();
    let batches = [Batch::of_values([ids.into()]).unwrap()];
    let options =
        WriteOptions { column: plain(), page_rows: 100, row_group_rows: 5000, ..WriteOptions::default() };
    let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let search = |ranges, limit| {
        let predicate = Predicate::Test(Test::accepting(0, ranges));
        let mut options = FindOptions::default();
        options.limit = limit;
        let codecs = Arc::new(StandardCodecs::default());
        let mut finder = RowFinder::new(FILE, Arc::clone(&metadata), codecs, predicate, options).unwrap();
        let rows = found(&mut finder, &file, &metadata, Manner::KIND).unwrap();
        (rows, *finder.report())
    };
    let (rows, report) = search(Ranges::of_keys(4321, 4321), u64::MAX);
    assert_eq!(rows, [4321]);
    assert_eq!((report.statistics.pruned, report.index.pruned, report.tested), (1, 49, 100));
    // The index, and the page; not the rest.
    assert!(report.bytes < 4_000, "{} bytes of {}", report.bytes, file.len());
    let (rows, report) = search(Ranges::of_keys(100, 8_000), 50);
    assert!(rows.len() >= 50 && rows[..50] == (100..150).collect::<Vec<_>>()[..]);
    assert_eq!(report.row_groups, 1);
    let (rows, report) = search(Ranges::of_keys(NAN_KEY, NAN_KEY), u64::MAX);
    assert_eq!((rows.len(), report.bytes), (0, 0));
}

/// Keys in no order: bounds of pages say nothing, their Bloom filters nearly all.
#[test]
fn by_bloom_filters_of_pages() {
    let schema = given::flat(&[craft::INT64]);
    let ids: Vec<i64> = (0..100_000).map(|at| at * 7919 % 100_000).collect();
    let batches = [Batch::of_values([ids.clone().into()]).unwrap()];
    let column = ColumnOptions { page_bloom: Some(PageBloomOptions::default()), ..plain() };
    let options = WriteOptions { column, page_rows: 1000, row_group_rows: 50_000, ..WriteOptions::default() };
    let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let mut options = FindOptions::default();
    let codecs = Arc::new(StandardCodecs::default());
    let search = |values: &[i64], options: &FindOptions| {
        let ranges = values.iter().map(|value| Ranges::of_keys((*value).into(), (*value).into()));
        let ranges = Ranges::union(ranges, Comparison::Number);
        let predicate = Predicate::Test(Test::accepting(0, ranges));
        let codecs = Arc::clone(&codecs);
        let mut finder =
            RowFinder::new(FILE, Arc::clone(&metadata), codecs, predicate, options.clone()).unwrap();
        let rows = found(&mut finder, &file, &metadata, Manner::KIND).unwrap();
        (rows, *finder.report())
    };
    let place = |value: i64| ids.iter().position(|id| *id == value).unwrap();
    for is_index_used in [true, false] {
        options.structures.index = is_index_used;
        options.structures.page_bloom = true;
        let mut tested = 0;
        for value in (0..100_000).step_by(9973) {
            let (rows, report) = search(&[value], &options);
            assert_eq!(rows, [place(value)]);
            assert_eq!(report.page_bloom.absent, 0);
            tested += report.tested;
        }
        // Eleven searches among a hundred pages; one in a hundred of the pages without the value is read, too.
        assert!((11_000..=30_000).contains(&tested), "{tested} rows");
        let mut both = [place(4_711), place(815)];
        both.sort_unstable();
        let (rows, report) = search(&[4_711, 815], &options);
        assert_eq!(rows, both);
        assert!(report.page_bloom.pruned > 90, "{report:?}");
        options.structures.page_bloom = false;
        assert_eq!(search(&[4_711], &options).1.tested, 100_000);
    }
}

#[test]
fn deep_predicates_on_a_small_stack() {
    let schema = given::flat(&[craft::INT64]);
    let ids: Vec<i64> = (0..1000).collect();
    let batches = [Batch::of_values([ids.into()]).unwrap()];
    let options = WriteOptions { column: plain(), page_rows: 100, ..WriteOptions::default() };
    let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let name = metadata.schema.leaf_path(0);
    // NOT (NOT (… AND true) AND …): as deep as a predicate may be, on both sides.
    let text =
        format!("{}\"{name}\" = 421{}", "NOT (".repeat(64), format!(" OR \"{name}\" IS NULL)").repeat(64));
    let search = move || {
        let predicate = predicate::parse(&text, &metadata.schema).unwrap();
        let codecs = Arc::new(StandardCodecs::default());
        let mut finder =
            RowFinder::new(FILE, Arc::clone(&metadata), codecs, predicate, FindOptions::default()).unwrap();
        found(&mut finder, &file, &metadata, Manner::USUAL).unwrap()
    };
    let small = std::thread::Builder::new().stack_size(128 << 10).spawn(search).unwrap();
    // The innermost test, negated an even number of times; nothing is null.
    assert_eq!(small.join().unwrap(), [421]);
}
