//! A cluster in memory, whose objects the class's own engine answers for. It counts what is asked of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_select::concat::concat_batches;
use marquetry::arrow::FromArrow;
use marquetry::tables::parquet::ParquetOptions;
use marquetry::tables::{CopyOptions, ReadingOptions, copy, count};
use marquetry::{DestinationOptions, SourceOptions, Target, Writer};
use marquetry_base::{Codec, Detail, Error, ErrorKind, Result};
use marquetry_ceph::request::Share;
use marquetry_ceph::{Method, call};
use marquetry_io::store::{Found, Store};
use marquetry_parquet::format::Compression;

use crate::asked::Asked;
use crate::objects::{Objects, Pools, Stored};
use crate::pool::Pool;
use crate::rewrite::Form;
use crate::store::RadosObjects;

/// What was asked of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    /// Lengths of objects, reads of bytes, lists of names, and calls of the class.
    stats: usize,
    reads: usize,
    lists: usize,
    calls: usize,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    /// Extended attributes, by their objects' names and their own.
    attributes: BTreeMap<(String, String), Vec<u8>>,
    writes: u64,
    count: Count,
}

#[derive(Clone, Default)]
struct InMemory(Arc<Mutex<State>>);

impl InMemory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn pool(&self) -> Pool {
        Pool::of(Arc::new(self.clone()), "lake").unwrap()
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(RadosObjects::of(self.pool()))
    }

    /// What was asked since the last time.
    fn counted(&self) -> Count {
        std::mem::take(&mut self.state().count)
    }
}

impl State {
    fn object(&self, name: &str) -> Result<&(Vec<u8>, u64)> {
        let missing = || Error::io(format!("{name}: there is none")).with(Detail::NotFound);
        self.objects.get(name).ok_or_else(missing)
    }
}

fn unused<T>() -> Result<T> {
    Err(Error::internal("nobody does this to objects in memory"))
}

impl Pools for InMemory {
    fn open(&self, _: &str) -> Result<Box<dyn Objects>> {
        Ok(Box::new(self.clone()))
    }
}

impl Objects for InMemory {
    fn stat(&mut self, object: &str) -> Result<Stored> {
        let mut state = self.state();
        state.count.stats += 1;
        let (bytes, version) = state.object(object)?;
        Ok(Stored { bytes: bytes.len() as u64, version: *version })
    }

    fn read(&mut self, object: &str, offset: u64, into: &mut [u8]) -> Result<(usize, u64)> {
        let mut state = self.state();
        state.count.reads += 1;
        let (bytes, version) = state.object(object)?;
        let rest = bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let some = rest.len().min(into.len());
        into[..some].copy_from_slice(&rest[..some]);
        Ok((some, *version))
    }

    fn write_full(&mut self, object: &str, bytes: &[u8], replaces: bool) -> Result<u64> {
        let mut state = self.state();
        if !replaces && state.objects.contains_key(object) {
            return Err(Error::io("it is there").with(Detail::AlreadyExists));
        }
        state.writes += 1;
        let version = state.writes;
        state.objects.insert(object.to_owned(), (bytes.to_vec(), version));
        Ok(version)
    }

    fn remove(&mut self, object: &str) -> Result<()> {
        let mut state = self.state();
        state.object(object)?;
        state.objects.remove(object);
        Ok(())
    }

    fn list(&mut self, prefix: &str) -> Result<Vec<String>> {
        let mut state = self.state();
        state.count.lists += 1;
        Ok(state.objects.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }

    fn execute(
        &mut self,
        object: &str,
        (_, method): (&str, &str),
        request: &[u8],
        version: Option<u64>,
    ) -> Result<(Vec<u8>, u64)> {
        let mut state = self.state();
        state.count.calls += 1;
        let (bytes, now) = state.object(object)?;
        if version.is_some_and(|version| version != *now) {
            return Err(Error::io("it was changed while it was queried"));
        }
        let method = Method::of(method).ok_or_else(|| Error::unsupported("no such method"))?;
        Ok((call(method, &mut bytes.as_slice(), request), *now))
    }

    fn remove_at(&mut self, _: &str, _: u64) -> Result<()> {
        unused()
    }

    fn set_attribute(&mut self, object: &str, name: &str, bytes: &[u8]) -> Result<()> {
        self.state().attributes.insert((object.to_owned(), name.to_owned()), bytes.to_vec());
        Ok(())
    }

    fn attribute(&mut self, object: &str, name: &str, bytes_max: usize) -> Result<Option<Vec<u8>>> {
        let found = self.state().attributes.get(&(object.to_owned(), name.to_owned())).cloned();
        Ok(found.filter(|bytes| bytes.len() <= bytes_max))
    }

    fn step(&mut self, _: &str, _: (&str, &str), _: &[u8]) -> Result<Vec<u8>> {
        unused()
    }

    fn change(&mut self, _: &str, _: (&str, &str), _: &[u8], _: (Option<u64>, Option<u64>)) -> Result<u64> {
        unused()
    }
}

/// Lines of orders, as TPC-H has them: keys, prices, days, words, comments.
fn lines(rows: u64) -> RecordBatch {
    let mut seed = 1_u64;
    let mut below = move |end: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i32::try_from((seed >> 33) % end).unwrap()
    };
    let mut keys = |end: u64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows).map(|_| 1 + i64::from(below(end)))))
    };
    let (parts, suppliers) = (keys(200_000), keys(10_000));
    let orders = Int64Array::from_iter_values((0..rows).map(|row| i64::try_from(row / 4).unwrap()));
    let mut numbers = |end: u64, by: f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..rows).map(|_| f64::from(below(end)) / by)))
    };
    let (quantities, prices) = (numbers(50, 1.0), numbers(5_000_000, 100.0));
    let (discounts, taxes) = (numbers(11, 100.0), numbers(9, 100.0));
    let mut days =
        || -> ArrayRef { Arc::new(Date32Array::from_iter_values((0..rows).map(|_| 8035 + below(2500)))) };
    let (ship, commit, receipt) = (days(), days(), days());
    let mut words = |words: &[&str]| -> ArrayRef {
        let words = (0..rows).map(|_| words[usize::try_from(below(words.len() as u64)).unwrap()]);
        Arc::new(StringArray::from_iter_values(words))
    };
    let (flags, states) = (words(&["N", "R", "A"]), words(&["O", "F"]));
    let instructions = words(&["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]);
    let modes = words(&["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]);
    let of_comments = ["foxes", "ideas", "theodolites", "pinto beans", "sleep", "haggle", "careful", "among"];
    let comments = (0..rows).map(|_| {
        let count = 2 + below(4);
        let some: Vec<&str> = (0..count).map(|_| of_comments[usize::try_from(below(8)).unwrap()]).collect();
        some.join(" ")
    });
    let comments: ArrayRef = Arc::new(StringArray::from_iter_values(comments));
    let numbers = (0..rows).map(|row| i32::try_from(1 + row % 7).unwrap());
    let columns: [(&str, ArrayRef); 16] = [
        ("l_orderkey", Arc::new(orders)),
        ("l_partkey", parts),
        ("l_suppkey", suppliers),
        ("l_linenumber", Arc::new(Int32Array::from_iter_values(numbers))),
        ("l_quantity", quantities),
        ("l_extendedprice", prices),
        ("l_discount", discounts),
        ("l_tax", taxes),
        ("l_returnflag", flags),
        ("l_linestatus", states),
        ("l_shipdate", ship),
        ("l_commitdate", commit),
        ("l_receiptdate", receipt),
        ("l_shipinstruct", instructions),
        ("l_shipmode", modes),
        ("l_comment", comments),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Writes a file of them, with pages as usual.
fn write(path: &Path, batch: &RecordBatch) {
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let mut options = ParquetOptions::default();
    options.write.column.compression = Compression::Codec(Codec::Zstd);
    let mut writer = Writer::with(path, schema, options).unwrap();
    writer.write_arrow(batch).unwrap();
    writer.finish().unwrap();
}

/// Copies a file to an address, compressed by ZSTD; how many rows.
fn copied(from: &Path, to: &str, store: &Arc<dyn Store>, file_rows: Option<u64>) -> u64 {
    let mut options = DestinationOptions::default();
    options.store = Arc::clone(store);
    options.directory.parquet.write.column.compression = Compression::Codec(Codec::Zstd);
    options.directory.file_rows = file_rows.map(|rows| rows.try_into().unwrap());
    let from = marquetry::open(from).unwrap();
    let mut to = Target::parse(to, None).unwrap().open(&options).unwrap();
    copy(from.source(), to.as_mut(), &CopyOptions::default(), &mut |_| {}).unwrap().rows
}

/// Counts the rows that an address has, or those that a predicate finds.
fn rows_of(address: &str, store: &Arc<dyn Store>, predicate: Option<&str>) -> u64 {
    let mut options = SourceOptions::default();
    options.files.store = Arc::clone(store);
    let mut reader = marquetry::open_all([address], &options).unwrap();
    if let Some(predicate) = predicate {
        reader = reader.filter(predicate).unwrap();
        return count(reader.source(), &ReadingOptions::default()).unwrap();
    }
    reader.record_batches().unwrap().map(|batch| batch.unwrap().num_rows() as u64).sum()
}

#[test]
fn an_object_is_asked_for_its_length_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.parquet");
    write(&path, &lines(3000));
    let cluster = InMemory::default();
    let store = cluster.store();
    assert_eq!(copied(&path, "rados://lake/lines/", &store, Some(600)), 3000);
    let names = cluster.pool().list("lines/").unwrap();
    assert_eq!(names.len(), 5, "{names:?}");

    // One object, whose footer is read; the class is asked whether it is there, and then for the rows.
    let one = format!("rados://lake/{}", names[2]);
    cluster.counted();
    assert_eq!(rows_of(&one, &store, Some("l_linenumber = 1")), 86);
    assert_eq!(cluster.counted(), Count { stats: 1, reads: 1, lists: 0, calls: 2 });
    // The class was found by then.
    assert_eq!(rows_of(&one, &store, Some("l_linenumber = 8")), 0);
    assert_eq!(cluster.counted(), Count { stats: 1, reads: 1, lists: 0, calls: 1 });
    // All of a directory.
    assert_eq!(rows_of("rados://lake/lines/", &store, Some("l_linenumber = 1")), 429);
    assert_eq!(cluster.counted(), Count { stats: 5, reads: 5, lists: 1, calls: 5 });
    // Rows are read of the version that was opened; how many reads that takes is not the point.
    assert_eq!(rows_of("rados://lake/lines/", &store, None), 3000);
    let Count { stats, lists, calls, .. } = cluster.counted();
    assert_eq!((stats, lists, calls), (5, 1, 0));
}

#[test]
fn what_was_looked_at_is_not_what_is_read_once_it_is_changed() {
    let cluster = InMemory::default();
    let (store, pool) = (cluster.store(), cluster.pool());
    let path = Path::new("rados://lake/object");
    pool.write("object", b"old", false).unwrap();
    assert_eq!(store.look(path).unwrap(), Found::Object { bytes: 3 });
    // By this store: it knows.
    let mut new = store.create(path, true).unwrap();
    new.append(b"newer").unwrap();
    new.commit().unwrap();
    let (source, version) = store.open(path).unwrap();
    assert_eq!((version.bytes(), &source.read(0..5).unwrap()[..]), (5, &b"newer"[..]));
    // By somebody else, between a look and the first read: that is an error, as between opening and reading.
    assert_eq!(store.look(path).unwrap(), Found::Object { bytes: 5 });
    pool.write("object", b"no", true).unwrap();
    let (source, opened) = store.open(path).unwrap();
    let changed = source.read(0..5).unwrap_err().to_string();
    assert!(changed.contains("was changed"), "{changed}");
    // Whoever opens it next sees what is there.
    let (source, version) = store.open(path).unwrap();
    assert_eq!((version.bytes(), &source.read(0..2).unwrap()[..]), (2, &b"no"[..]));
    // Who knows a version that is gone finds that out by reading.
    let again = store.reopen(path, &opened).unwrap();
    assert_eq!(again.read(0..5).unwrap_err().to_string(), changed);
    store.remove(path).unwrap();
    assert_eq!(store.look(path).unwrap(), Found::Nothing);
    assert_eq!(store.open(path).map(drop).unwrap_err().detail(), Some(Detail::NotFound));
}

/// What the class does with an object changes it, as what is written does.
#[test]
fn an_object_that_the_class_changes_is_looked_at_again() {
    let cluster = InMemory::default();
    let pool = cluster.pool();
    pool.write("object", b"old", false).unwrap();
    for stats in [1, 0] {
        pool.look("object").unwrap();
        assert_eq!(cluster.counted().stats, stats);
    }
    // This cluster has no class, so it fails; elsewhere it may have changed the object before that.
    assert!(pool.index("object", "id").is_err());
    pool.look("object").unwrap();
    assert_eq!(cluster.counted().stats, 1);
}

/// The units of each call of a query, and the rows in all.
fn calls(pool: &Pool, object: &str, asked: &Asked) -> (Vec<u64>, u64) {
    let answers = pool.query(object, asked).unwrap().map(|answer| answer.unwrap());
    let answers: Vec<(u64, u64)> = answers.map(|answer| (answer.units, answer.rows)).collect();
    (answers.iter().map(|(units, _)| *units).collect(), answers.iter().map(|(_, rows)| rows).sum())
}

/// A call begins a page of each column before it has a row. As `copy` writes them, that leaves most of its share for rows: it takes little more.
#[test]
fn calls_keep_to_their_share_of_tables_of_many_columns() {
    const ROWS: u64 = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.parquet");
    write(&path, &lines(ROWS));
    let cluster = InMemory::default();
    let (store, pool) = (cluster.store(), cluster.pool());
    assert_eq!(copied(&path, "rados://lake/lines.parquet", &store, None), ROWS);
    let as_usual = std::fs::read(&path).unwrap();
    let (copied_bytes, usual_bytes) = (pool.stat("lines.parquet").unwrap().bytes, as_usual.len() as u64);
    println!("{copied_bytes} bytes, and {usual_bytes} in pages of 20,000 rows");
    // Smaller pages have more headers, and are compressed a little less.
    assert!(copied_bytes * 100 <= usual_bytes * 115, "{copied_bytes} bytes, not {usual_bytes}");
    pool.write("usual.parquet", &as_usual, false).unwrap();
    let sums = ["count(*)", "sum(l_extendedprice)", "max(l_comment)"];
    let queries = [
        ("all rows, as Arrow", Asked::new()),
        ("all rows, as Parquet", Asked::new().as_parquet()),
        ("a tenth", Asked::new().predicate("l_partkey <= 20000").as_parquet()),
        ("one order", Asked::new().predicate("l_orderkey = 7000").as_parquet()),
        ("none, by a text", Asked::new().predicate("l_comment = 'dinosaurs'").as_parquet()),
        ("sums", sums.iter().fold(Asked::new(), |asked, sum| asked.aggregate(*sum))),
        ("groups", Asked::new().aggregate("sum(l_quantity)").group_by("l_shipmode").group_by("l_shipdate")),
    ];
    for (name, asked) in queries {
        let (units, rows) = calls(&pool, "lines.parquet", &asked);
        let (usual, expected) = calls(&pool, "usual.parquet", &asked);
        let most = |units: &[u64]| units.iter().copied().max().unwrap_or(0);
        let all = |units: &[u64]| units.iter().sum::<u64>();
        println!(
            "{name}: {rows} rows, {} calls of at most {} units, {} in all; of usual pages {} of {}, {}",
            units.len(),
            most(&units),
            all(&units),
            usual.len(),
            most(&usual),
            all(&usual)
        );
        // Of aggregates, each call has some.
        assert!(
            rows == expected || ["sums", "groups"].contains(&name),
            "{name}: {rows} rows, not {expected}"
        );
        assert!(most(&units) <= Share::UNITS * 8 / 5, "{name}: {units:?}");
        // Bounds say that there is nothing after it, so no call comes to find that out.
        assert!(name != "one order" || units.len() == 1, "{name}: {units:?}");
        // Less is begun again, although there are more calls. But that there is no such text, a dictionary of all of them says, which usual pages have.
        assert!(
            all(&units) <= all(&usual) || name == "none, by a text",
            "{name}: {} units, and {} of usual pages",
            all(&units),
            all(&usual)
        );
        if name.starts_with("all rows") {
            assert!(most(&usual) > most(&units), "{name}: {usual:?}");
            assert!(10 * all(&usual) > 11 * all(&units), "{name}: {} and {}", all(&usual), all(&units));
        }
    }
}

#[test]
fn an_object_of_arrow_is_made_of_the_others_and_queried() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.parquet");
    let rows = lines(20_000);
    write(&path, &rows);
    let cluster = InMemory::default();
    let pool = cluster.pool();
    pool.write("lines.parquet", &std::fs::read(&path).unwrap(), false).unwrap();
    assert_eq!(pool.transform("lines.parquet", "lines.arrows", Form::Arrow).unwrap(), 20_000);
    let from = pool.origin("lines.arrows").unwrap().unwrap();
    assert_eq!(from, format!("lines.parquet@{}", pool.stat("lines.parquet").unwrap().version));
    // It is a stream as any.
    let stream = pool.read("lines.arrows", 0..pool.stat("lines.arrows").unwrap().bytes).unwrap().0;
    let stream = StreamReader::try_new(&stream[..], None).unwrap();
    let batches: Vec<RecordBatch> = stream.map(Result::unwrap).collect();
    assert!(batches.len() > 4, "{} record batches", batches.len());
    let all = concat_batches(&batches[0].schema(), &batches).unwrap();
    assert_eq!(all.columns()[..8], rows.columns()[..8]);
    let comments = all.column(15).as_string_view();
    assert!(comments.iter().eq(rows.column(15).as_string::<i32>().iter()));
    let asked = Asked::new().predicate("l_shipmode = 'RAIL' AND l_quantity > 40").column("l_comment");
    let (units, expected) = calls(&pool, "lines.parquet", &asked);
    assert!(expected > 100 && units.iter().all(|units| *units <= Share::UNITS * 8 / 5), "{units:?}");
    let (units, found) = calls(&pool, "lines.arrows", &asked);
    assert_eq!(found, expected);
    assert!(units.iter().all(|units| *units <= Share::UNITS * 8 / 5), "{units:?}");
    let (units, all) = calls(&pool, "lines.arrows", &Asked::new());
    assert!(all == 20_000 && units.iter().all(|units| *units <= Share::UNITS * 8 / 5), "{units:?}");
    // Rows of it, and back; what is there already is said.
    assert_eq!(pool.transform("lines.arrows", "lines.rows", Form::Rows).unwrap(), 20_000);
    assert_eq!(pool.transform("lines.rows", "again.arrows", Form::Arrow).unwrap(), 20_000);
    assert_eq!(calls(&pool, "again.arrows", &asked).1, expected);
    let error = pool.transform("lines.arrows", "other.arrows", Form::Arrow).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let error = pool.transform("lines.parquet", "lines.arrows", Form::Arrow).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AlreadyExists));
}

#[test]
fn what_an_object_has_is_said_by_the_class() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.parquet");
    let rows = lines(3000);
    write(&path, &rows);
    let pool = InMemory::default().pool();
    pool.write("lines.parquet", &std::fs::read(&path).unwrap(), false).unwrap();
    let described = pool.describe("lines.parquet").unwrap();
    assert_eq!((described.rows, described.row_groups), (3000, 1));
    assert!(described.writer.is_some_and(|writer| writer.contains("marquetry")));
    let schema = StreamReader::try_new(&described.schema[..], None).unwrap().schema();
    assert_eq!(schema.fields().len(), 16);
    let stats = pool.stats("lines.parquet").unwrap();
    let chunks: Vec<RecordBatch> =
        StreamReader::try_new(&stats[..], None).unwrap().map(Result::unwrap).collect();
    assert_eq!(chunks.iter().map(RecordBatch::num_rows).sum::<usize>(), 16);
    assert_eq!(chunks[0].schema().field(1).name(), "column");
    pool.write("text", b"no Parquet", false).unwrap();
    for error in [pool.describe("text").unwrap_err(), pool.stats("text").unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
