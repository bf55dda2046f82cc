//! Tables whose objects are searched where they are: by the class's own engine, in front of files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, TimeUnit};
use arrow_select::concat::concat_batches;
use marquetry::arrow::FromArrow;
use marquetry::tables::parquet::ParquetOptions;
use marquetry::tables::{
    Aggregates, ColumnPath, Filter, Reading, ReadingOptions, Source, aggregate, count, filter,
};
use marquetry::{SourceOptions, Writer};
use marquetry_base::{Error, Result};
use marquetry_ceph::{Method, call};
use marquetry_io::store::{
    Found, IsCancelled, LocalFiles, NewObject, NewObjects, ObjectStream, Search, Searching, Store,
};
use marquetry_io::{ByteSource, ObjectVersion};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_rados::{Execute, search};

/// Files with the class in front of each.
#[derive(Debug, Clone, Default)]
struct Osd {
    /// Files that were opened to be read here, and calls of the class.
    opened: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
    /// Nowhere is the class.
    is_missing: bool,
    /// It fails in files with this in their name, after some calls.
    fails_in: Option<(&'static str, usize)>,
}

struct OneFile {
    of: Osd,
    path: PathBuf,
    calls: usize,
}

impl Execute for OneFile {
    fn execute(&mut self, request: &[u8], version: Option<u64>) -> Result<(Vec<u8>, u64)> {
        assert_eq!(version, Some(7));
        self.of.calls.fetch_add(1, Ordering::Relaxed);
        self.calls += 1;
        if let Some((name, calls)) = self.of.fails_in
            && self.path.to_string_lossy().contains(name)
            && self.calls > calls
        {
            return Err(Error::too_large("a page of this object"));
        }
        let bytes = std::fs::read(&self.path).unwrap();
        // Small shares, so that there are several answers.
        let mut request = request.to_vec();
        for (number, value) in [(6_u16, 300_000_u64), (7, 20_000)] {
            request.extend_from_slice(&number.to_le_bytes());
            request.extend_from_slice(&[0, 0, 8, 0, 0, 0]);
            request.extend_from_slice(&value.to_le_bytes());
        }
        Ok((call(Method::Query, &mut bytes.as_slice(), &request), 7))
    }
}

impl Store for Osd {
    fn look(&self, path: &Path) -> Result<Found> {
        LocalFiles.look(path)
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        LocalFiles.find(path, extensions)
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let (source, version) = LocalFiles.open(path)?;
        Ok((source, ObjectVersion::new(version.bytes(), "7")))
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        LocalFiles.stream(path, is_cancelled)
    }

    fn searches(&self, _: &Path) -> Option<Result<()>> {
        Some(if self.is_missing { Err(Error::unsupported("there is no class")) } else { Ok(()) })
    }

    fn search(&self, wanted: Search, is_cancelled: IsCancelled) -> Result<Box<dyn Searching>> {
        let of = self.clone();
        search(wanted, is_cancelled, move |object| {
            Ok(OneFile { of: of.clone(), path: object.path.clone(), calls: 0 })
        })
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        LocalFiles.create(path, replaces)
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        LocalFiles.create_directory(path, replaces, extensions)
    }
}

const FILES: i64 = 20;
const ROWS: i64 = 3000;

/// Trips in files of two row groups each, with types that Arrow has in another form: decimals of 32 bits, lists, nulls.
fn trips(folder: &Path) {
    for file in 0..FILES {
        let ids = file * ROWS..(file + 1) * ROWS;
        let mut tags = ListBuilder::new(StringBuilder::new());
        for id in ids.clone() {
            match id % 4 {
                0 => tags.append_null(),
                n => tags.append_value((1..n).map(|tag| Some(format!("tag {tag} of {id}")))),
            }
        }
        let fares =
            Decimal128Array::from_iter(ids.clone().map(|id| (id % 7 != 0).then(|| i128::from(id % 999))));
        let city =
            |id: i64| (id % 5 != 0).then(|| format!("a city with quite a long name, number {}", id % 100));
        let columns: [(&str, ArrayRef); 5] = [
            ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
            ("fare", Arc::new(fares.with_precision_and_scale(7, 2).unwrap())),
            ("tip", Arc::new(Float64Array::from_iter_values(ids.clone().map(|id| (id % 50) as f64)))),
            ("city", Arc::new(StringArray::from_iter(ids.clone().map(city)))),
            ("tags", Arc::new(tags.finish())),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
        let batch = batch.unwrap();
        let mut options = ParquetOptions::default();
        (options.write.row_group_rows, options.write.page_rows) = (ROWS as u64 / 2, 500);
        let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
        let day = folder.join(format!("day={}", file / 10));
        std::fs::create_dir_all(&day).unwrap();
        let mut writer = Writer::with(day.join(format!("part-{file:03}.parquet")), schema, options).unwrap();
        writer.write_arrow(&batch).unwrap();
        writer.finish().unwrap();
    }
}

/// What is found, in some columns, of at most so many rows; and how many rows there are.
fn found(
    store: Arc<dyn Store>,
    folder: &Path,
    asked: (&str, &[&str], u64),
) -> (RecordBatch, u64, Vec<String>) {
    let (predicate, columns, limit) = asked;
    let mut options = SourceOptions::default();
    options.files.store = store;
    let filtered = marquetry::open_all([folder], &options).unwrap().filter(predicate).unwrap();
    let rows = count(filtered.source(), &ReadingOptions::default()).unwrap();
    let notes = filtered.table().notes.iter().map(|note| note.text.clone()).collect();
    let reader = filtered.columns(columns).unwrap().limit(limit);
    let batches: Vec<RecordBatch> = reader.record_batches().unwrap().map(Result::unwrap).collect();
    (concat_batches(&reader.arrow_schema().unwrap(), &batches).unwrap(), rows, notes)
}

#[test]
fn a_table_is_searched_where_its_objects_are() {
    let folder = tempfile::tempdir().unwrap();
    trips(folder.path());
    let all: &[&str] = &["tags", "city", "day", "fare", "id"];
    let asked: [(&str, &[&str], u64); 7] = [
        ("fare > 9.5", all, u64::MAX),
        ("id BETWEEN 8990 AND 9010 OR city = 'a city with quite a long name, number 42'", all, u64::MAX),
        ("tags = 'tag 1 of 5802' OR tip = 7", &["id", "tip"], 1000),
        ("fare IS NULL", &["day"], 2000),
        ("id >= 0", &["tags"], 31_000),
        ("id < 0", all, u64::MAX),
        ("city LIKE 'a%' AND id > 59000", &["tags", "id"], 5),
    ];
    for asked in asked {
        let expected = found(Arc::new(LocalFiles), folder.path(), asked);
        let osd = Osd::default();
        let here = found(Arc::new(osd.clone()), folder.path(), asked);
        assert_eq!(here, expected, "{}", asked.0);
        // Their footers, and nothing else.
        assert_eq!(i64::try_from(osd.opened.load(Ordering::Relaxed)), Ok(FILES), "{}", asked.0);
        assert!(osd.calls.load(Ordering::Relaxed) > 0);
        // One object after some answers, another one at once.
        for fails_in in [("part-003", 2), ("part-019", 0)] {
            let osd = Osd { fails_in: Some(fails_in), ..Osd::default() };
            assert_eq!(found(Arc::new(osd), folder.path(), asked), expected, "{} without one", asked.0);
        }
    }
    // What is in the paths is known here alone.
    let asked: (&str, &[&str], u64) = ("day = 1 AND tip < 3", &["id"], u64::MAX);
    let osd = Osd::default();
    assert_eq!(
        found(Arc::new(osd.clone()), folder.path(), asked),
        found(Arc::new(LocalFiles), folder.path(), asked)
    );
    assert_eq!(osd.calls.load(Ordering::Relaxed), 0);
    // Without the class bytes are read, and that is said.
    let osd = Osd { is_missing: true, ..Osd::default() };
    let asked: (&str, &[&str], u64) = ("fare > 9.5", all, u64::MAX);
    let (rows, number, notes) = found(Arc::new(osd.clone()), folder.path(), asked);
    let (expected, all, _) = found(Arc::new(LocalFiles), folder.path(), asked);
    assert_eq!((rows, number), (expected, all));
    assert_eq!(notes, ["there is no class; its bytes are read, and searched here"]);
    assert_eq!(osd.calls.load(Ordering::Relaxed), 0);
}

/// Aggregates of a table, of the rows that match if there is a predicate.
fn aggregated(
    store: Arc<dyn Store>,
    folder: &Path,
    (asked, groups, predicate): Asked<'_>,
) -> (Arc<dyn Source>, Option<Filter>) {
    let mut options = SourceOptions::default();
    options.files.store = store;
    let all = marquetry::open_all([folder], &options).unwrap();
    let found = predicate.map(Filter::new);
    let source = match &found {
        Some(wanted) => filter(all.source(), wanted).unwrap(),
        None => Arc::clone(all.source()),
    };
    let groups = groups.map(|groups| ColumnPath::parse_list(groups).unwrap());
    let asked = Aggregates::parse(asked).unwrap().by(groups.unwrap_or_default());
    (aggregate(&source, &asked).unwrap(), found)
}

/// The same as text, a line for each group; and how many rows were found.
fn aggregates(store: Arc<dyn Store>, folder: &Path, asked: Asked<'_>) -> (String, u64) {
    let (made, found) = aggregated(store, folder, asked);
    let mut text = made.table().schema.leaves().len().to_string();
    let mut reading = Reading::new(made, ReadingOptions::default()).unwrap();
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        for column in &batch.columns {
            text += &format!("\n{:?} {:?}", column.values, column.validity);
        }
    }
    (text, found.map_or(0, |found| found.report().found))
}

type Asked<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

#[test]
fn aggregates_are_computed_where_the_objects_are() {
    let folder = tempfile::tempdir().unwrap();
    trips(folder.path());
    let all = "count(*), count(fare), sum(fare), avg(fare), min(city), max(tip), sum(id), avg(tip), min(id)";
    let asked: [Asked<'_>; 6] = [
        (all, None, None),
        (all, None, Some("tip = 7 AND fare IS NOT NULL")),
        (all, Some("city"), Some("id > 100")),
        ("sum(id), COUNT( * ), max(id)", Some("city, tip"), None),
        (all, None, Some("id < 0")),
        ("count(tip)", Some("tip"), Some("id < 0")),
    ];
    for asked in asked {
        let expected = aggregates(Arc::new(LocalFiles), folder.path(), asked);
        let osd = Osd::default();
        assert_eq!(aggregates(Arc::new(osd.clone()), folder.path(), asked), expected, "{asked:?}");
        assert_eq!(i64::try_from(osd.opened.load(Ordering::Relaxed)), Ok(FILES), "{asked:?}");
        assert!(osd.calls.load(Ordering::Relaxed) > 0);
        for fails_in in [("part-003", 1), ("part-000", 0), ("part-019", 0)] {
            let osd = Osd { fails_in: Some(fails_in), ..Osd::default() };
            assert_eq!(aggregates(Arc::new(osd), folder.path(), asked), expected, "{asked:?} without one");
        }
    }
    // Without the class they are computed here, and that is said; of what the footers say, nothing is.
    let said = "there is no class; its bytes are read, and aggregated here";
    let searched = "there is no class; its bytes are read, and searched here";
    for (asked, notes) in [
        ((all, Some("city"), None), vec![said]),
        (("sum(id)", None, Some("id > 100")), vec![searched]),
        (("count(*)", None, None), vec![]),
    ] {
        let osd = Osd { is_missing: true, ..Osd::default() };
        let (made, _) = aggregated(Arc::new(osd.clone()), folder.path(), asked);
        let found: Vec<&str> = made.table().notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(found, notes, "{asked:?}");
        let expected = aggregates(Arc::new(LocalFiles), folder.path(), asked);
        assert_eq!(aggregates(Arc::new(osd.clone()), folder.path(), asked), expected);
        assert_eq!(osd.calls.load(Ordering::Relaxed), 0);
    }
    // What differs in Arrow, and what is in the paths, is computed here.
    for asked in [
        ("max(fare)", None, Some("id > 7")),
        ("count(*)", Some("day"), None),
        ("sum(tip)", Some("fare"), None),
    ] {
        let expected = aggregates(Arc::new(LocalFiles), folder.path(), asked);
        assert_eq!(aggregates(Arc::new(Osd::default()), folder.path(), asked), expected, "{asked:?}");
    }
}

/// Writes a column of integers and one of texts, and the Arrow schema that their writer says he had.
fn written(path: &Path, ids: &[i64], texts: &[&[u8]], stored: Option<DataType>) {
    let text = FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
    let id = FieldType::Leaf(PhysicalType::Int64, None);
    let schema = Schema::of_fields(&[FieldDef::new("id", id), FieldDef::new("text", text)]).unwrap();
    let mut options = ParquetOptions::default();
    if let Some(stored) = stored {
        let fields = [("id", stored), ("text", DataType::Utf8)].map(|(name, of)| Field::new(name, of, true));
        let from_arrow = FromArrow::new(&arrow_schema::Schema::new(fields.to_vec())).unwrap();
        options.write.key_values.push(from_arrow.key_value());
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = Writer::with(path, schema, options).unwrap();
    let values: Vec<Values> = vec![ids.to_vec().into(), texts.iter().copied().collect()];
    writer.write(Batch::of_values(values).unwrap()).unwrap();
    writer.finish().unwrap();
}

/// The same result, whoever computes it; and whether the class was asked.
#[track_caller]
fn is_computed_as_here(folder: &Path, asked: Asked<'_>) -> bool {
    let osd = Osd::default();
    let there = aggregates(Arc::new(osd.clone()), folder, asked);
    assert_eq!(there, aggregates(Arc::new(LocalFiles), folder, asked), "{asked:?}");
    osd.calls.load(Ordering::Relaxed) > 0
}

#[test]
fn aggregates_are_of_the_values_that_files_have() {
    // Integers that Arrow is to show in another unit.
    let seconds = DataType::Timestamp(TimeUnit::Second, None);
    for stored in [seconds, DataType::Date64, DataType::Duration(TimeUnit::Second)] {
        let folder = tempfile::tempdir().unwrap();
        written(
            &folder.path().join("a.parquet"),
            &[86_400_000, 5, 7, 5],
            &[b"a".as_slice(); 4],
            Some(stored),
        );
        for asked in [("min(id), max(id), sum(id)", None, None), ("count(*)", Some("id"), Some("id > 5"))] {
            assert!(is_computed_as_here(folder.path(), asked));
        }
    }
    // A column in the path takes the place of the file's.
    let folder = tempfile::tempdir().unwrap();
    for id in [1, 2] {
        written(&folder.path().join(format!("id={id}/a.parquet")), &[7, 8], &[b"a", b"b"], None);
    }
    for asked in
        [("sum(id)", None, None), ("count(*)", Some("id"), None), ("max(id)", None, Some("text = 'a'"))]
    {
        is_computed_as_here(folder.path(), asked);
    }
    assert!(is_computed_as_here(folder.path(), ("max(text)", None, None)));
    // What is no Arrow text is counted, all the same.
    let folder = tempfile::tempdir().unwrap();
    written(&folder.path().join("a.parquet"), &[1, 2], &[b"a", b"\xff"], None);
    written(&folder.path().join("b.parquet"), &[3, 4], &[b"a", b"b"], None);
    for asked in [("count(text), sum(id)", None, None), ("sum(id)", Some("text"), Some("id > 1"))] {
        assert!(is_computed_as_here(folder.path(), asked));
    }
}
