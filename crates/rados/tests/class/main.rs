//! Queries by the client: of objects in memory, answered by the class's own engine; of objects of a real Ceph; of tables of objects (`search`).

mod search;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, UInt64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_select::concat::concat_batches;
use marquetry::Writer;
use marquetry::arrow::FromArrow;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_base::{Detail, Error, ErrorKind, Result};
use marquetry_ceph::{Method, call};
use marquetry_io::ByteSource;
use marquetry_io::store::{Found, LocalFiles, Store};
use marquetry_rados::{Answer, Asked, Execute, Pool, Query, RadosObjects};

/// Trips in four row groups.
fn trips(folder: &Path, rows: u32) -> PathBuf {
    let id = |row: u32| i64::from(row) * 3;
    let city = |row: u32| {
        (!row.is_multiple_of(5)).then(|| format!("a city with quite a long name, number {}", row % 100))
    };
    let fare = |row: u32| (!row.is_multiple_of(7)).then(|| f64::from(row % 4000) / 8.0);
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values((0..rows).map(id)))),
        ("fare", Arc::new(Float64Array::from_iter((0..rows).map(fare)))),
        ("city", Arc::new(StringArray::from_iter((0..rows).map(city)))),
        (
            "note",
            Arc::new(StringArray::from_iter_values(
                (0..rows).map(|row| format!("{:x}", u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15))),
            )),
        ),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let mut options = ParquetOptions::default();
    (options.write.row_group_rows, options.write.page_rows) = (u64::from(rows / 4), 5000);
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let path = folder.join("trips.parquet");
    let mut writer = Writer::with(&path, schema, options).unwrap();
    writer.write_arrow(&batch).unwrap();
    writer.finish().unwrap();
    path
}

/// What `find` finds in the file.
fn found(path: &Path, columns: &[&str], predicate: &str) -> RecordBatch {
    let reader = marquetry::open(path).unwrap().filter(predicate).unwrap();
    let reader = reader.columns(columns.iter().copied()).unwrap();
    let batches: Vec<RecordBatch> = reader.record_batches().unwrap().map(|batch| batch.unwrap()).collect();
    concat_batches(&reader.arrow_schema().unwrap(), &batches).unwrap()
}

fn asked(columns: &[&str], predicate: &str) -> Asked {
    columns.iter().fold(Asked::new().predicate(predicate), |asked, column| asked.column(*column))
}

fn together(answers: &[Answer]) -> RecordBatch {
    let mut batches = Vec::new();
    let mut schema = None;
    for answer in answers {
        let stream = StreamReader::try_new(&answer.data[..], None).unwrap();
        schema = Some(stream.schema());
        batches.extend(stream.map(|batch| batch.unwrap()));
    }
    concat_batches(&schema.unwrap(), &batches).unwrap()
}

/// An object in memory, with the class in front of it; its version changes after some calls.
struct InMemory {
    bytes: Vec<u8>,
    calls: u64,
    changes_after: u64,
}

impl Execute for &mut InMemory {
    fn execute(&mut self, request: &[u8], version: Option<u64>) -> Result<(Vec<u8>, u64)> {
        self.calls += 1;
        let now = u64::from(self.calls > self.changes_after);
        if version.is_some_and(|version| version != now) {
            return Err(Error::io("it was changed while it was queried"));
        }
        Ok((call(Method::Query, &mut self.bytes.as_slice(), request), now))
    }
}

#[test]
fn client_and_class_understand_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path(), 20_000);
    let mut object = InMemory { bytes: std::fs::read(&path).unwrap(), calls: 0, changes_after: u64::MAX };
    let (columns, predicate) = (["city", "id"], "fare > 200 AND city IS NOT NULL");
    let wanted = asked(&columns, predicate).share(200_000, 20_000);
    let answers: Vec<Answer> = Query::new(&mut object, &wanted).map(Result::unwrap).collect();
    assert!(answers.len() > 3, "{} calls", answers.len());
    assert_eq!(together(&answers).columns(), found(&path, &columns, predicate).columns());
    assert!(answers.iter().all(|answer| answer.units > 0 && answer.bytes_read > 0));

    let answers: Vec<Answer> =
        Query::new(&mut object, &wanted.clone().limit(700)).map(Result::unwrap).collect();
    assert_eq!(answers.iter().map(|answer| answer.rows).sum::<u64>(), 700);
    assert!(answers.len() > 1);

    let refused = Query::new(&mut object, &Asked::new().predicate("speed > 7")).next().unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse);
    let mut changing = InMemory { calls: 0, changes_after: 2, ..object };
    let last = Query::new(&mut changing, &wanted).last().unwrap();
    assert_eq!(last.unwrap_err().kind(), ErrorKind::Io);
}

#[test]
#[ignore = "soak: a real Ceph, which loads the class"]
fn an_osd_finds_what_find_does() {
    let Some(configuration) = marquetry_testing::ceph() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path(), 400_000);
    let pool = Pool::open(&configuration.to_string_lossy(), "test").unwrap();
    let bytes = std::fs::read(&path).unwrap();
    // What a run that failed left.
    for object in pool.list("lake/").unwrap() {
        pool.remove(&object).unwrap();
    }
    let name = "lake/trips.parquet";
    pool.write(name, &bytes, false).unwrap();
    pool.write("lake/broken.parquet", b"PAR1 not much of a file PAR1", true).unwrap();
    let twice = pool.write(name, &bytes, false).unwrap_err();
    assert_eq!(twice.detail(), Some(Detail::AlreadyExists));
    assert_eq!(pool.stat(name).unwrap().bytes, bytes.len() as u64);
    assert_eq!(pool.list("lake/").unwrap(), ["lake/broken.parquet", name]);
    assert_eq!(pool.read(name, 0..4).unwrap().0[..], b"PAR1"[..]);

    let mut longest = Duration::ZERO;
    for (columns, predicate) in [
        (&["id", "fare", "city", "note"][..], "id >= 0"),
        (&["city", "id"], "fare > 480"),
        (&["note"], "id BETWEEN 299990 AND 300300"),
        (&["id"], "id < 0"),
    ] {
        let mut answers = Vec::new();
        let mut query = pool.query(name, &asked(columns, predicate)).unwrap();
        loop {
            let begun = Instant::now();
            let Some(answer) = query.next() else { break };
            longest = longest.max(begun.elapsed());
            answers.push(answer.unwrap());
        }
        let moved: usize = answers.iter().map(|answer| answer.data.len()).sum();
        let most = answers.iter().map(|answer| answer.units).max().unwrap_or(0);
        println!(
            "{predicate}: {} calls of at most {most} units, {moved} bytes moved of {}",
            answers.len(),
            bytes.len()
        );
        assert_eq!(together(&answers).columns(), found(&path, columns, predicate).columns(), "{predicate}");
        if predicate.contains("BETWEEN") {
            assert!(moved * 100 < bytes.len(), "{moved} bytes of {} moved", bytes.len());
        }
    }
    println!("the longest call took {longest:?}, there and back");

    let aggregates = Asked::new().aggregate("count(*)").aggregate("sum(id)").predicate("id >= 600000");
    let answers: Vec<Answer> = pool.query(name, &aggregates).unwrap().map(|answer| answer.unwrap()).collect();
    let all = together(&answers);
    assert_eq!(all.column(0).as_primitive::<UInt64Type>().values().iter().sum::<u64>(), 200_000);
    let sum: i128 = all.column(1).as_primitive::<Decimal128Type>().iter().flatten().sum();
    assert_eq!(sum, (200_000..400_000_i128).map(|row| row * 3).sum::<i128>());

    // Several objects at a time.
    let copies: Vec<String> = (0..6).map(|number| format!("lake/copies/{number}")).collect();
    for copy in &copies {
        pool.write(copy, &bytes, true).unwrap();
    }
    let mut rows = [0; 6];
    let counted = pool.query_all(&copies, &asked(&["id"], "fare > 480"), 3, |at, answer| {
        rows[at] += answer.rows;
        Ok(true)
    });
    counted.unwrap();
    assert_eq!(rows, [found(&path, &["id"], "fare > 480").num_rows() as u64; 6]);
    let stopped = pool.query_all(&copies, &Asked::new(), 2, |_, _| Ok(false));
    stopped.unwrap();
    let missing = [copies[0].clone(), "lake/copies/none".to_owned()];
    let error = pool.query_all(&missing, &Asked::new(), 2, |_, _| Ok(true)).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::NotFound));
    for copy in &copies {
        pool.remove(copy).unwrap();
    }

    // What is wrong is an error, and the OSD answers on.
    let error = |object: &str, asked: &Asked| pool.query(object, asked).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error(name, &Asked::new().predicate("speed > 7")).kind(), ErrorKind::Misuse);
    assert_eq!(error("lake/broken.parquet", &Asked::new()).kind(), ErrorKind::Corrupt);
    assert_eq!(error("lake/nothing.parquet", &Asked::new()).detail(), Some(Detail::NotFound));
    let unknown = pool.execute(name, "no_such_method", b"").unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unsupported);
    let mut query = pool.query(name, &Asked::new().share(100_000, 10_000)).unwrap();
    query.next().unwrap().unwrap();
    pool.write(name, &bytes, true).unwrap();
    assert_eq!(query.next().unwrap().unwrap_err().kind(), ErrorKind::Io);
    // As a file of the command: read, and written.
    let store = RadosObjects::beside(Arc::new(LocalFiles)).configured(configuration.to_string_lossy());
    let address = PathBuf::from(format!("rados://test/{name}"));
    let (source, version) = store.open(&address).unwrap();
    assert_eq!((version.bytes(), &source.read(4..9).unwrap()[..]), (bytes.len() as u64, &bytes[4..9]));
    let mut object = store.create("rados://test/lake/new.parquet".as_ref(), false).unwrap();
    object.append(&bytes).unwrap();
    object.commit().unwrap();
    let found = store.find("rados://test/lake".as_ref(), &["parquet"]).unwrap();
    assert_eq!(found.len(), 3);
    let mut read = Vec::new();
    store.stream(&found[1], Box::new(|| false)).unwrap().reader.read_to_end(&mut read).unwrap();
    assert!(read == bytes);
    for object in pool.list("lake/").unwrap() {
        pool.remove(&object).unwrap();
    }
    assert!(store.look(&address).unwrap() == Found::Nothing);
}

#[test]
#[ignore = "soak: a real Ceph, which loads the class"]
fn an_osd_adds_files_to_an_object() {
    let Some(configuration) = marquetry_testing::ceph() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path(), 40_000);
    let bytes = std::fs::read(&path).unwrap();
    let pool = Pool::open(&configuration.to_string_lossy(), "test").unwrap();
    let name = "merged/trips.parquet";
    pool.write(name, &bytes, true).unwrap();
    let version = pool.stat(name).unwrap().version;
    let counted =
        |asked: &Asked| -> u64 { pool.query(name, asked).unwrap().map(|answer| answer.unwrap().rows).sum() };
    let mut query = pool.query(name, &Asked::new().share(100_000, 10_000)).unwrap();
    query.next().unwrap().unwrap();
    pool.merge(name, &bytes, Some(version)).unwrap();
    assert_eq!(query.next().unwrap().unwrap_err().kind(), ErrorKind::Io);
    let error = pool.merge(name, &bytes, Some(version)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    for rows in [80_000, 120_000] {
        assert_eq!(counted(&Asked::new().counted()), rows);
        let once = found(&path, &["id"], "fare > 250").num_rows() as u64;
        assert_eq!(counted(&asked(&["city"], "fare > 250").as_parquet()), once * rows / 40_000);
        pool.merge(name, &bytes, None).unwrap();
    }
    let before = pool.stat(name).unwrap();
    assert_eq!(pool.merge(name, b"PAR1, and no file", None).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(pool.merge(name, &vec![0; 5 << 20], None).unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(pool.stat(name).unwrap(), before);
    let missing = pool.merge("merged/none.parquet", &bytes, None).unwrap_err();
    assert_eq!(missing.detail(), Some(Detail::NotFound));
    assert!(pool.list("merged/none").unwrap().is_empty());
    pool.remove(name).unwrap();
}

#[test]
#[ignore = "soak: OSDs of a real Ceph are killed and started again"]
fn a_query_goes_on_when_osds_are_killed() {
    let Some(configuration) = marquetry_testing::ceph() else { return };
    let directory = configuration.parent().unwrap().to_owned();
    let osds = std::fs::read_to_string(directory.join("osds")).unwrap();
    let osds: usize = osds.trim().parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path(), 100_000);
    let pool = Pool::open(&configuration.to_string_lossy(), "test").unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let names: Vec<String> = (0..8).map(|number| format!("killed/{number}.parquet")).collect();
    for name in &names {
        pool.write(name, &bytes, true).unwrap();
    }
    let (columns, predicate) = (["id", "city"], "fare > 250");
    let expected = found(&path, &columns, predicate);
    let (calls, is_done, are_killed) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // All OSDs, one after the other, while calls are under way. Of one, calls wait until it is there again.
        scope.spawn(|| {
            let ceph = |command: &str, number: usize| {
                let script = marquetry_testing::root().join("dev/ceph.sh");
                let ended =
                    Command::new(script).arg(command).arg(&directory).arg(number.to_string()).status();
                assert!(ended.unwrap().success(), "{command} {number}");
            };
            for number in 0..osds {
                let before = calls.load(Ordering::Relaxed);
                // Not for ever: the other thread may have failed.
                let begun = Instant::now();
                let waits = || begun.elapsed() < Duration::from_secs(60) && !is_done.load(Ordering::Relaxed);
                while calls.load(Ordering::Relaxed) < before + 30 && waits() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                assert!(!is_done.load(Ordering::Relaxed), "all was read before OSD {number} was killed");
                ceph("stop-osd", number);
                ceph("start-osd", number);
            }
            are_killed.store(true, Ordering::Relaxed);
        });
        // All objects, and again until all OSDs were killed: an optimised class answers in less time than that takes.
        for (number, name) in names.iter().cycle().take(1000).enumerate() {
            if number >= names.len() && are_killed.load(Ordering::Relaxed) {
                break;
            }
            let wanted = asked(&columns, predicate).share(100_000, 5_000);
            let answers = pool.query(name, &wanted).unwrap().inspect(|_| {
                calls.fetch_add(1, Ordering::Relaxed);
            });
            let answers: Vec<Answer> = answers.map(|answer| answer.unwrap()).collect();
            assert_eq!(together(&answers).columns(), expected.columns(), "{name}");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    println!("{} calls", calls.load(Ordering::Relaxed));
    assert_eq!(pool.list("killed/").unwrap(), names);
    for name in &names {
        pool.remove(name).unwrap();
    }
}
