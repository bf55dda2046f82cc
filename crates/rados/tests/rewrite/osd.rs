//! Objects of a real Ceph, whose OSDs load the class.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_base::{Error, ErrorKind};
use marquetry_parquet::format::Compression;
use marquetry_rados::{Asked, Form, Pool};

use crate::{by, rows_of, trips, written};

/// A table that rows can have.
fn bytes_of_flat() -> Vec<u8> {
    let columns: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(Int64Array::from_iter_values(0..20_000))),
        (
            "city",
            Arc::new(StringArray::from_iter(
                (0..20_000).map(|row| (row % 9 > 0).then(|| format!("city {row}"))),
            )),
        ),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    written(&batch, ParquetOptions::default())
}

#[test]
#[ignore = "soak: a real Ceph, which loads the class"]
fn an_osd_compresses_splits_and_indexes() {
    let Some(configuration) = marquetry_testing::ceph() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bytes = trips(120_000, Compression::Uncompressed);
    let rows = rows_of(folder.path(), &bytes);
    let pool = Pool::open(&configuration.to_string_lossy(), "test").unwrap();
    for object in pool.list("rewritten/").unwrap() {
        pool.remove(&object).unwrap();
    }
    let name = "rewritten/trips.parquet";
    pool.write(name, &bytes, true).unwrap();
    let whole = |name: &str| {
        let length = pool.stat(name).unwrap().bytes;
        rows_of(folder.path(), &pool.read(name, 0..length).unwrap().0)
    };
    let counted = |predicate: &str| -> u64 {
        let asked = Asked::new().predicate(predicate).counted();
        pool.query(name, &asked).unwrap().map(|answer| answer.unwrap().rows).sum()
    };
    let hits = counted("fare > 490");
    for how in [by("zstd", None), by("zstd", Some(6)), by("uncompressed", None), by("snappy", None)] {
        let calls = pool.compress(name, &how).unwrap();
        println!("{how:?}: {calls} calls, {} bytes", pool.stat(name).unwrap().bytes);
        assert!(whole(name) == rows, "{how:?}");
        assert_eq!(counted("fare > 490"), hits);
    }
    let indexed = pool.index(name, "id").unwrap();
    println!("{indexed} calls for an index");
    // An id that a row has: 60,000 rows before the last.
    let id = i64::from(60_000_u32.wrapping_mul(0x9e37_79b1) >> 8);
    assert_eq!(counted(&format!("id = {id}")), 1);
    assert_eq!(counted("id = -5"), 0);
    let mut parts = Vec::new();
    let mut named = |part: &str| {
        parts.push(part.to_owned());
        Ok(())
    };
    assert_eq!(pool.split(name, "rewritten/part-", 1, &mut named).unwrap(), 3);
    assert_eq!(parts.len(), 3);
    let parts: Vec<RecordBatch> = parts.iter().map(|part| whole(part)).collect();
    assert!(concat_batches(&rows.schema(), &parts).unwrap() == rows);
    // An object that changes meanwhile is not split into parts of both states.
    let mut handed_out = 0;
    let error = pool.parts(name, 1, |_| {
        handed_out += 1;
        pool.write(name, &bytes, true)
    });
    let error = error.unwrap_err();
    assert!(handed_out == 1 && error.kind() == ErrorKind::Io, "{handed_out} parts, then {error}");
    assert!(error.to_string().contains("it was changed"), "{error}");
    pool.index(name, "id").unwrap();
    // What is cancelled ends before the next call, and what was made of it is gone; what was split stays, and its names are known.
    let cancelled_after = |calls: u64| {
        let left = AtomicU64::new(calls);
        let is_cancelled = move || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err();
        pool.clone().cancellable(Arc::new(is_cancelled))
    };
    for calls in 0..2 {
        let error = cancelled_after(calls).compress(name, &by("gzip", Some(1))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(cancelled_after(calls).index(name, "id").unwrap_err().kind(), ErrorKind::Cancelled);
    }
    assert!(whole(name) == rows);
    let mut named = Vec::new();
    let error = cancelled_after(9).split(name, "rewritten/some-", 1, |part| {
        named.push(part.to_owned());
        if named.len() < 2 { Ok(()) } else { Err(Error::cancelled()) }
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(pool.list("rewritten/some-").unwrap(), named);
    pool.write(name, &bytes, true).unwrap();
    pool.index(name, "id").unwrap();
    // There, and back again.
    let flat = "rewritten/flat.parquet";
    pool.write(flat, &bytes_of_flat(), true).unwrap();
    assert_eq!(pool.transform(flat, "rewritten/rows", Form::Rows).unwrap(), 20_000);
    assert_eq!(pool.transform("rewritten/rows", "rewritten/back.parquet", Form::Parquet).unwrap(), 20_000);
    assert!(whole("rewritten/back.parquet").columns() == whole(flat).columns());
    assert_eq!(pool.transform("rewritten/rows", "rewritten/flat.arrows", Form::Arrow).unwrap(), 20_000);
    assert_eq!(
        pool.transform("rewritten/flat.arrows", "rewritten/again.parquet", Form::Parquet).unwrap(),
        20_000
    );
    assert!(whole("rewritten/again.parquet").columns() == whole(flat).columns());
    assert!(pool.origin("rewritten/again.parquet").unwrap().unwrap().starts_with("rewritten/flat.arrows@"));
    let described = pool.describe(flat).unwrap();
    assert_eq!(described.rows, 20_000);
    assert!(!pool.stats(flat).unwrap().is_empty());
    for calls in 0..2 {
        let some =
            cancelled_after(calls).transform("rewritten/rows", "rewritten/some.parquet", Form::Parquet);
        if calls == 0 || some.is_err() {
            assert_eq!(some.unwrap_err().kind(), ErrorKind::Cancelled);
            assert_eq!(pool.list("rewritten/some.parquet").unwrap(), [""; 0]);
        }
    }
    assert!(pool.origin("rewritten/back.parquet").unwrap().unwrap().starts_with("rewritten/rows@"));
    assert_eq!(pool.origin(flat).unwrap(), None);
    println!("{} bytes of rows", pool.stat("rewritten/rows").unwrap().bytes);
    assert_eq!(pool.compress(name, &by("zip", None)).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(pool.row_groups(name, 0..9).unwrap_err().kind(), ErrorKind::Misuse);
    // What replaces an object gets neither its attributes nor its index, whose mark is the same: its rows differ, its length and end do not.
    pool.write("rewritten/back.parquet", &bytes, true).unwrap();
    assert_eq!(pool.origin("rewritten/back.parquet").unwrap(), None);
    let key = format!("marquetry.index.{:08x}.0", 0);
    let has_index = || {
        let of_pool = ["-p", "test", "getomapval", name, &key, "/dev/null"];
        Command::new("rados").arg("-c").arg(&configuration).args(of_pool).output().unwrap().status.success()
    };
    assert!(has_index());
    pool.write(name, &bytes, true).unwrap();
    assert!(!has_index());
    assert!(whole(name) == rows);
    assert_eq!(counted(&format!("id = {id}")), 1);
    pool.write("rewritten/new.parquet", &bytes, true).unwrap();
    let error = pool.write(name, &bytes, false).unwrap_err();
    assert!(error.to_string().contains("exists"), "{error}");
    for object in pool.list("rewritten/").unwrap() {
        pool.remove(&object).unwrap();
    }
}
