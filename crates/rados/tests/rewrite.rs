//! Objects that the class changes bit by bit: whenever they are read, they have the same rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_select::concat::concat_batches;
use marquetry::Writer;
use marquetry::arrow::FromArrow;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_base::{Codec, Error, ErrorKind, Fields, Frame, Result};
use marquetry_ceph::{Method, RadosObject, call, change};
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_rados::{Answer, Asked, Change, Execute, Form, Pool, Query, Recoding, compress, index};

/// Trips in three row groups, with dictionaries, nulls, lists and Bloom filters.
fn trips(rows: u32, compression: Compression) -> Vec<u8> {
    let id = |row: u32| i64::from(row.wrapping_mul(0x9e37_79b1) >> 8);
    let city = |row: u32| (!row.is_multiple_of(5)).then(|| format!("a city, number {}", row % 100));
    let fare = |row: u32| (!row.is_multiple_of(7)).then(|| f64::from(row % 4000) / 8.0);
    let mut tags = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        match row % 4 {
            0 => tags.append_null(),
            n => tags.append_value((1..n).map(|tag| Some(format!("tag {tag} of {row}")))),
        }
    }
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values((0..rows).map(id)))),
        ("fare", Arc::new(Float64Array::from_iter((0..rows).map(fare)))),
        ("city", Arc::new(StringArray::from_iter((0..rows).map(city)))),
        ("tags", Arc::new(tags.finish())),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let mut options = ParquetOptions::default();
    (options.write.row_group_rows, options.write.page_rows) = (u64::from(rows / 3), 1000);
    options.write.column.compression = compression;
    written(&batch, options)
}

/// The bytes of a file of these rows.
fn written(batch: &RecordBatch, options: ParquetOptions) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let path = folder.path().join("written.parquet");
    let mut writer = Writer::with(&path, schema, options).unwrap();
    writer.write_arrow(batch).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// An object in memory, whose OSD sends no answer of a call that wrote.
#[derive(Clone)]
struct Object {
    bytes: Vec<u8>,
    entries: BTreeMap<String, Vec<u8>>,
    /// What calls write, which is undone if they fail.
    has_written: bool,
    calls: u64,
    /// The calls after which all fail.
    fails_after: u64,
    bytes_max: usize,
    read: u64,
    /// The share of a call that writes, whatever its request says.
    share: u64,
    /// The units that the last of them took, if it answered.
    units: u64,
}

impl Object {
    fn new(bytes: Vec<u8>) -> Object {
        let entries = BTreeMap::new();
        let bytes_max = usize::MAX;
        let (fails_after, share) = (u64::MAX, 300_000);
        let (has_written, calls, read, units) = (false, 0, 0, 0);
        Object { bytes, entries, has_written, calls, fails_after, bytes_max, read, share, units }
    }

    fn changed(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        self.calls += 1;
        if self.calls > self.fails_after {
            return Err(Error::io("the client is gone"));
        }
        let before = self.clone();
        self.has_written = false;
        // Small steps, whatever the request says.
        let mut request = request.to_vec();
        for (field, value) in [(6_u16, self.share), (7, self.share / 10)] {
            request.extend_from_slice(&field.to_le_bytes());
            request.extend_from_slice(&[0, 0, 8, 0, 0, 0]);
            request.extend_from_slice(&value.to_le_bytes());
        }
        let answer = change(Method::of(method).unwrap(), self, &request);
        match &answer {
            Err(_) => *self = Object { calls: self.calls, ..before },
            Ok(answer) => {
                let fields = Fields::of(answer, *b"MQA1").unwrap().map(Result::unwrap);
                let work = fields.filter(|field| field.number == 4).map(|field| field.bytes[..8].to_vec());
                self.units = work.map(|units| u64::from_le_bytes(units.try_into().unwrap())).max().unwrap();
            }
        }
        answer
    }
}

impl RadosObject for Object {
    fn length(&mut self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read += into.len() as u64;
        self.bytes.as_slice().read(offset, into)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = usize::try_from(offset).unwrap();
        if at + bytes.len() > self.bytes_max {
            return Err(Error::too_large("an object that is too large"));
        }
        self.bytes.resize(self.bytes.len().max(at + bytes.len()), 0);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.has_written = true;
        Ok(())
    }

    fn entry(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        let entry = self.entries.get(key).cloned();
        self.read += entry.as_ref().map_or(0, Vec::len) as u64;
        Ok(entry)
    }

    fn set_entry(&mut self, key: &str, bytes: &[u8]) -> Result<()> {
        self.entries.insert(key.to_owned(), bytes.to_vec());
        self.has_written = true;
        Ok(())
    }
}

impl Change for Object {
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        let answer = self.changed(method, request)?;
        Ok(if self.has_written { Vec::new() } else { answer })
    }

    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()> {
        self.changed(method, request)?;
        self.bytes.truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

impl Execute for &mut Object {
    fn execute(&mut self, request: &[u8], _version: Option<u64>) -> Result<(Vec<u8>, u64)> {
        Ok((call(Method::Query, *self, request), 1))
    }
}

fn rows_of(folder: &Path, bytes: &[u8]) -> RecordBatch {
    let path = folder.join("read.parquet");
    std::fs::write(&path, bytes).unwrap();
    let reader = marquetry::open(&path).unwrap();
    let batches: Vec<RecordBatch> = reader.record_batches().unwrap().map(|batch| batch.unwrap()).collect();
    concat_batches(&reader.arrow_schema().unwrap(), &batches).unwrap()
}

fn found(object: &mut Object, predicate: &str) -> u64 {
    let asked = Asked::new().predicate(predicate).counted();
    Query::new(object, &asked).map(|answer| answer.unwrap().rows).sum()
}

fn by(codec: &str, level: Option<i32>) -> Recoding {
    Recoding { codec: codec.to_owned(), level }
}

#[test]
fn an_object_is_compressed_in_another_way_and_keeps_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let before = trips(12_000, Compression::Uncompressed);
    let rows = rows_of(folder.path(), &before);
    let mut object = Object::new(before.clone());
    let predicate = "fare > 490 OR city = 'a city, number 77'";
    let hits = found(&mut object, predicate);
    let mut sizes = Vec::new();
    for (codec, level) in
        [("zstd", None), ("gzip", Some(1)), ("zstd", Some(6)), ("snappy", None), ("brotli", None)]
    {
        object.calls = 0;
        let calls = compress(&mut object, &by(codec, level)).unwrap();
        assert!(calls > 5 && calls < 500, "{codec} in {calls} calls");
        assert_eq!(rows_of(folder.path(), &object.bytes), rows, "{codec}");
        let codecs = marquetry::open(folder.path().join("read.parquet")).unwrap();
        assert_eq!(codecs.rows(), Some(12_000));
        object.read = 0;
        assert_eq!(found(&mut object, predicate), hits);
        sizes.push(object.bytes.len());
        // Once more, there is nothing to be done.
        if level.is_none() {
            let done = object.bytes.clone();
            assert_eq!(compress(&mut object, &by(codec, None)).unwrap(), 1);
            assert!(object.bytes == done);
        }
    }
    assert!(sizes[0] * 2 < before.len() && sizes[2] <= sizes[0] + 200, "{sizes:?} of {}", before.len());
    // What grows stays after bytes that nothing refers to.
    compress(&mut object, &by("uncompressed", None)).unwrap();
    assert_eq!(rows_of(folder.path(), &object.bytes), rows);
    // And all that is free is gone once it gets smaller.
    compress(&mut object, &by("zstd", None)).unwrap();
    assert!(object.bytes.len().abs_diff(sizes[0]) < 200, "{} bytes", object.bytes.len());
    assert_eq!(rows_of(folder.path(), &object.bytes), rows);
    for wrong in [by("zip", None), by("gzip", Some(99)), by("uncompressed", Some(1))] {
        assert_eq!(compress(&mut object, &wrong).unwrap_err().kind(), ErrorKind::Misuse, "{wrong:?}");
    }
}

/// Row groups of an object, in pieces.
fn split(object: &Object, groups: [u64; 2]) -> Vec<u8> {
    let (mut file, mut cursor) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let mut frame = Frame::new(*b"MQQ1");
        frame.push(16, groups.map(u64::to_le_bytes).as_flattened()).push_u64(7, 10_000);
        if let Some(cursor) = cursor.take() {
            frame.push(5, &cursor);
        }
        let answer = call(Method::Split, &mut object.bytes.as_slice(), &frame.into_bytes());
        for field in Fields::of(&answer, *b"MQA1").unwrap() {
            let field = field.unwrap();
            match field.number {
                1 => file.extend_from_slice(field.bytes),
                2 => cursor = Some(field.bytes.to_vec()),
                7 => panic!("{}", String::from_utf8_lossy(field.bytes)),
                _ => {}
            }
        }
        if cursor.is_none() {
            return file;
        }
    }
}

#[test]
fn row_groups_are_handed_out_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let object = Object::new(trips(9_000, Compression::Codec(Codec::Zstd)));
    let rows = rows_of(folder.path(), &object.bytes);
    for groups in [[0, 1], [1, 3], [0, 3], [2, 2]] {
        let file = split(&object, groups);
        let [start, end] = groups.map(|group| 3000 * usize::try_from(group).unwrap());
        assert!(rows_of(folder.path(), &file) == rows.slice(start, end - start), "{groups:?}");
        // Their pages are found by their index, and their Bloom filters are theirs.
        let mut part = Object::new(file);
        let hits = found(&mut part, "fare BETWEEN 10 AND 20 AND city = 'a city, number 77'");
        let of_rows =
            |row: usize| (80..=160).contains(&(row % 4000)) && !row.is_multiple_of(7) && row % 100 == 77;
        assert_eq!(hits, (start..end).filter(|row| of_rows(*row)).count() as u64);
    }
}

#[test]
fn a_compression_that_was_interrupted_goes_on_or_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let before = trips(6_000, Compression::Codec(Codec::Snappy));
    let rows = rows_of(folder.path(), &before);
    let mut whole = Object::new(before.clone());
    let calls = compress(&mut whole, &by("zstd", None)).unwrap();
    // After any call, the client may be gone: the object has its rows, and another client goes on.
    for fails_after in 1..calls {
        let mut object = Object { fails_after, ..Object::new(before.clone()) };
        assert_eq!(compress(&mut object, &by("zstd", None)).unwrap_err().kind(), ErrorKind::Io);
        if fails_after % 3 == 0 || fails_after + 4 > calls {
            assert_eq!(rows_of(folder.path(), &object.bytes), rows, "after {fails_after} calls");
        }
        let mut next = Object { fails_after: u64::MAX, calls: 0, ..object.clone() };
        let left = compress(&mut next, &by("zstd", None)).unwrap();
        assert!(left <= calls - fails_after + 1, "{left} calls after {fails_after} of {calls}");
        assert!(next.bytes == whole.bytes, "after {fails_after} calls");
        // Or one that wants something else.
        if fails_after % 5 == 0 {
            let mut other = Object { fails_after: u64::MAX, ..object };
            compress(&mut other, &by("gzip", None)).unwrap();
            assert_eq!(rows_of(folder.path(), &other.bytes), rows);
        }
    }
    // What is cancelled is not undone: it is gone on with, too.
    let mut cancelled = Cancelled(Object::new(before.clone()), calls / 2);
    assert_eq!(compress(&mut cancelled, &by("zstd", None)).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(cancelled.0.calls, calls / 2);
    let left = compress(&mut cancelled.0, &by("zstd", None)).unwrap();
    assert!(left <= calls - calls / 2 + 1, "{left} calls of {calls}");
    assert!(cancelled.0.bytes == whole.bytes);
    // What becomes too large is undone.
    let mut object = Object { bytes_max: before.len() * 5 / 4, ..Object::new(before.clone()) };
    let error = compress(&mut object, &by("zstd", None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(object.bytes == before);
}

/// A client that is cancelled once, before the call of that number.
struct Cancelled(Object, u64);

impl Change for Cancelled {
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        if self.0.calls == self.1 {
            self.1 = u64::MAX;
            return Err(Error::cancelled());
        }
        self.0.step(method, request)
    }

    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()> {
        self.0.finish(method, request, length)
    }
}

/// A client that another one is ahead of: that one finishes what is to be finished.
struct Rival(Object, Recoding);

impl Change for Rival {
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        self.0.step(method, request)
    }

    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()> {
        compress(&mut self.0, &self.1).unwrap();
        self.0.finish(method, request, length)
    }
}

/// A step of `compress`: what is answered, if nothing was written.
fn step(object: &mut Object, codec: &str, step: u8) -> Result<Vec<u8>> {
    let mut frame = Frame::new(*b"MQQ1");
    frame.push(12, codec.as_bytes()).push(14, &[step]);
    object.step("compress", &frame.into_bytes())
}

fn asks_to_cut(answer: &[u8]) -> bool {
    Fields::of(answer, *b"MQA1").unwrap().any(|field| field.unwrap().number == 10)
}

#[test]
fn clients_that_compress_one_object_do_not_take_the_others_work_for_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let before = trips(3_000, Compression::Uncompressed);
    let rows = rows_of(folder.path(), &before);
    // Who is refused to finish what another one finished asks once more.
    let mut rival = Rival(Object::new(before.clone()), by("zstd", None));
    compress(&mut rival, &by("zstd", None)).unwrap();
    assert_eq!(rows_of(folder.path(), &rival.0.bytes), rows);
    assert!(!asks_to_cut(&step(&mut rival.0.clone(), "zstd", 1).unwrap()));
    // Of another one's codec, it is not done.
    let mut rival = Rival(Object::new(before.clone()), by("gzip", None));
    assert_eq!(compress(&mut rival, &by("zstd", None)).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(rows_of(folder.path(), &rival.0.bytes), rows);
    // The object was written anew while it was compressed.
    let mut object = Object::new(before.clone());
    assert!(step(&mut object, "zstd", 1).unwrap().is_empty());
    let half = object.clone();
    object.bytes.clone_from(&before);
    assert_eq!(step(&mut object, "zstd", 2).unwrap_err().kind(), ErrorKind::Io);
    assert!(!step(&mut object, "uncompressed", 2).unwrap().is_empty());
    // Nobody undoes what another one began.
    assert!(!asks_to_cut(&step(&mut half.clone(), "gzip", 4).unwrap()));
    assert!(asks_to_cut(&step(&mut half.clone(), "zstd", 4).unwrap()));
}

fn read_again(folder: &Path, bytes: &[u8]) -> Option<RecordBatch> {
    let path = folder.join("again.parquet");
    std::fs::write(&path, bytes).unwrap();
    let reader = marquetry::open(&path).ok()?;
    let batches: Vec<RecordBatch> =
        reader.record_batches().ok()?.map(|batch| batch.ok()).collect::<Option<_>>()?;
    concat_batches(&reader.arrow_schema().ok()?, &batches).ok()
}

#[test]
fn a_page_that_is_corrupt_stays_so() {
    let folder = tempfile::tempdir().unwrap();
    let before = trips(3_000, Compression::Uncompressed);
    let (mut corrupt, mut refused) = (0, 0);
    for round in 0..60_usize {
        let mut bytes = before.clone();
        // In the pages, of which the object has most.
        let at = 4 + round * 1009 % (bytes.len() / 2);
        bytes[at] ^= 1 << (round % 8);
        let was_readable = read_again(folder.path(), &bytes);
        corrupt += u32::from(was_readable.is_none());
        let mut object = Object::new(bytes);
        match compress(&mut object, &by("zstd", None)) {
            Ok(_) => assert!(read_again(folder.path(), &object.bytes) == was_readable, "byte {at}"),
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
                refused += 1;
            }
        }
    }
    assert!(corrupt > 40 && refused >= corrupt, "{corrupt} were corrupt, {refused} refused");
}

#[test]
fn ordinary_pages_are_compressed_whatever_was_done_before_in_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let noise = |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let bits = |bit: u32| -> ArrayRef {
        Arc::new(BooleanArray::from_iter((0..400_000).map(|row| Some(noise(row) >> (20 + bit) & 1 == 1))))
    };
    let numbers = Float64Array::from_iter_values((0..400_000).map(|row| noise(row) as f64));
    let columns: [(&str, ArrayRef); 5] =
        [("a", bits(0)), ("b", bits(1)), ("c", bits(2)), ("d", bits(3)), ("noise", Arc::new(numbers))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut options = ParquetOptions::default();
    (options.write.page_rows, options.write.page_bytes) = (400_000, 1500 << 10);
    options.write.column.compression = Compression::Uncompressed;
    let before = written(&batch, options);
    let rows = rows_of(folder.path(), &before);
    // Small pages leave most of a share, and less of what a call may take than a large one does.
    for (codec, level) in [("zstd", None), ("zstd", Some(3)), ("brotli", Some(1)), ("snappy", None)] {
        let mut object = Object { share: 4_000_000, ..Object::new(before.clone()) };
        let mut most = 0;
        let calls = compress(&mut Observed(&mut object, &mut most), &by(codec, level)).unwrap();
        println!("{codec} {level:?}: {calls} calls, of at most {most} units");
        assert!(most < 16_000_000, "{codec}: {most} units");
        assert_eq!(rows_of(folder.path(), &object.bytes), rows, "{codec}");
    }
    // What no call can do is refused, and what was done of it undone. Of a page that is too dear, its header is read.
    for (codec, level, most) in [("zstd", 19, 0), ("brotli", 6, 0), ("gzip", 9, 3 << 20)] {
        let mut object = Object::new(before.clone());
        let error = compress(&mut object, &by(codec, Some(level))).unwrap_err();
        assert!(error.kind() == ErrorKind::LimitExceeded && object.bytes == before, "{error}");
        assert!(object.read <= most, "{} bytes were read", object.read);
    }
}

#[test]
fn levels_and_pages_without_a_bound_are_refused_before_they_are_begun() {
    let ids = Int64Array::from_iter_values((0..1_000_000_i64).map(|row| row.wrapping_mul(0x9e37_79b9)));
    let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef)]).unwrap();
    let mut options = ParquetOptions::default();
    (options.write.page_rows, options.write.page_bytes) = (4_000_000, 6 << 20);
    options.write.column.encoding = Some(Encoding::Plain);
    options.write.column.compression = Compression::Uncompressed;
    let before = written(&batch, options);
    // Whoever asks: this client does not ask for such levels.
    for (codec, level) in [("zstd", 7_u64), ("zstd", 22), ("brotli", 6), ("snappy", 0), ("uncompressed", 0)] {
        let mut frame = Frame::new(*b"MQQ1");
        frame.push(12, codec.as_bytes()).push(14, &[1]);
        if level > 0 {
            frame.push_u64(13, level);
        }
        let mut object = Object::new(before.clone());
        let error = change(Method::Compress, &mut object, &frame.into_bytes()).map(|_| ());
        match codec {
            // It is done.
            "uncompressed" => error.unwrap(),
            _ => assert_eq!(error.unwrap_err().kind(), ErrorKind::LimitExceeded, "{codec} {level}"),
        }
        // The footer, and what is read with a page's header: not the page.
        assert!(object.read < 1 << 20, "{} bytes were read", object.read);
    }
}

/// The rows of a file are added while the pages of an object are moved: who moved them must not take that for the end.
#[test]
fn what_a_merge_interrupts_is_not_done_and_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let before = trips(6_000, Compression::Uncompressed);
    let rows = rows_of(folder.path(), &before);
    let file = trips(300, Compression::Codec(Codec::Zstd));
    let mut merge = Frame::new(*b"MQQ1");
    merge.push(11, &file);
    let merge = merge.into_bytes();
    let mut whole = Object::new(before.clone());
    let calls = compress(&mut whole, &by("zstd", None)).unwrap();
    whole.step("merge", &merge).unwrap();
    for taken in 1..calls - 1 {
        let mut object = Object { fails_after: taken, ..Object::new(before.clone()) };
        compress(&mut object, &by("zstd", None)).unwrap_err();
        object.fails_after = u64::MAX;
        object.step("merge", &merge).unwrap();
        // Its client goes on, and is told; the next one makes the object as small as if nothing had come between.
        assert_eq!(
            step(&mut object, "zstd", 2).unwrap_err().kind(),
            ErrorKind::Io,
            "after {taken} of {calls}"
        );
        compress(&mut object, &by("zstd", None)).unwrap();
        assert!(object.bytes.len().abs_diff(whole.bytes.len()) < 400, "{} bytes", object.bytes.len());
        if taken % 4 == 0 || taken + 4 > calls {
            let now = rows_of(folder.path(), &object.bytes);
            assert_eq!(now.slice(0, rows.num_rows()), rows);
            assert_eq!(now.num_rows(), rows.num_rows() + 300);
        }
        assert_eq!(compress(&mut object, &by("zstd", None)).unwrap(), 1);
    }
}

/// What the dearest call took.
struct Observed<'a>(&'a mut Object, &'a mut u64);

impl Change for Observed<'_> {
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        let answer = self.0.step(method, request);
        *self.1 = (*self.1).max(self.0.units);
        answer
    }

    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()> {
        self.0.finish(method, request, length)
    }
}

#[test]
fn hostile_notes_and_pages_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let before = trips(3_000, Compression::Codec(Codec::Snappy));
    let rows = rows_of(folder.path(), &before);
    let mut half = Object { fails_after: 4, ..Object::new(before) };
    assert!(compress(&mut half, &by("zstd", None)).is_err());
    let mut seed = 11_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let (mut done, mut refused, mut kept) = (0, 0, 0);
    for round in 0..150 {
        let mut object = Object { fails_after: 400, calls: 0, ..half.clone() };
        let length = object.bytes.len();
        let footer = u32::from_le_bytes(object.bytes[length - 8..length - 4].try_into().unwrap());
        let mut is_footer_whole = true;
        for _ in 0..=random(2) {
            let at = if round % 2 == 0 { length - 1 - random(3000) } else { random(length) };
            object.bytes[at] ^= 1 << random(8);
            is_footer_whole &= at < length - 8 - footer as usize;
        }
        let before = read_again(folder.path(), &object.bytes);
        match compress(&mut object, &by("zstd", None)) {
            Ok(_) => {
                done += 1;
                // It has its rows, or those that could be read of it before, or a reader says that it is corrupt.
                let after = read_again(folder.path(), &object.bytes).filter(|_| is_footer_whole);
                kept += u32::from(after.is_some());
                assert!(
                    after.is_none_or(|after| after == rows || Some(&after) == before.as_ref()),
                    "{round}"
                );
            }
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
                refused += 1;
            }
        }
    }
    assert!(done > 10 && refused > 10 && kept > 10, "{done} done, {refused} refused, {kept} kept");
}

#[test]
fn an_index_finds_what_a_search_does_and_reads_less() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = trips(30_000, Compression::Codec(Codec::Zstd));
    let rows = rows_of(folder.path(), &bytes);
    let ids: Vec<i64> = rows.column_by_name("id").unwrap().to_data().buffer::<i64>(0)[..30_000].to_vec();
    let mut object = Object::new(bytes.clone());
    let search = |object: &mut Object, predicate: &str| {
        object.read = 0;
        let asked = Asked::new().column("id").column("city").predicate(predicate).share(400_000, 100_000);
        let answers: Vec<Answer> = Query::new(&mut *object, &asked).map(Result::unwrap).collect();
        let rows: Vec<(u64, u64)> =
            answers.iter().filter(|it| it.rows > 0).map(|it| (it.first_row, it.rows)).collect();
        (rows, answers.iter().map(|answer| answer.rows).sum::<u64>(), object.read)
    };
    let absent = (8_000_000..).find(|id| !ids.contains(id)).unwrap();
    let predicates = [
        format!("id = {}", ids[17_123]),
        format!("id IN ({}, {}, {}, -5)", ids[3], ids[9_999], ids[29_999]),
        format!("id = {} AND fare IS NOT NULL", ids[12_345]),
        format!("id = {absent}"),
        "id = -1".to_owned(),
        format!("id = {} OR city IS NULL", ids[5]),
    ];
    let before: Vec<_> = predicates.iter().map(|predicate| search(&mut object, predicate)).collect();
    assert_eq!(before[0].1, 1);
    // While it is built, what it has is used.
    let calls = index(&mut Object { fails_after: 2, ..object.clone() }, "id");
    assert!(calls.is_err());
    object.fails_after = 3;
    assert!(index(&mut object, "id").is_err());
    for (predicate, (_, rows, _)) in predicates.iter().zip(&before) {
        assert_eq!(search(&mut object, predicate).1, *rows, "{predicate}");
    }
    (object.fails_after, object.calls) = (u64::MAX, 0);
    let calls = index(&mut object, "id").unwrap();
    assert!(calls > 2, "{calls} calls");
    for (predicate, (_, rows, read)) in predicates.iter().zip(&before) {
        let (_, now, now_read) = search(&mut object, predicate);
        assert_eq!(now, *rows, "{predicate}");
        println!("{predicate}: {read} bytes were read, and {now_read} by the index");
        if predicate.contains("OR") {
            assert_eq!(now_read, *read, "{predicate}");
        } else if predicate.contains("= -1") {
            // Statistics know that without it.
            assert!(now_read < read + 20_000, "{predicate}");
        } else {
            assert!(
                now_read * 10 < read * 9,
                "{predicate}: {read} bytes were read, and {now_read} by the index"
            );
        }
    }
    // A part of which something is missing or damaged is searched without it.
    for number in 0..4 {
        let mut damaged = object.clone();
        let mut left = 0;
        damaged.entries.retain(|key, entry| {
            let is_bucket = key != "marquetry.index";
            match number {
                0 => return !is_bucket,
                1 if is_bucket => entry.truncate(entry.len() / 2),
                2 if is_bucket => entry.truncate(3),
                3 if is_bucket => entry.iter_mut().for_each(|byte| *byte ^= 1),
                _ => {}
            }
            left += 1;
            true
        });
        assert!(number == 0 || left > 16);
        for (predicate, (_, rows, _)) in predicates.iter().zip(&before) {
            assert_eq!(search(&mut damaged, predicate).1, *rows, "{predicate}, damage {number}");
        }
    }
    // Bytes with the same end in place of it are not known for others: who builds the index again has one of them.
    let mut again = object.clone();
    again.entries.values_mut().for_each(|entry| entry.reverse());
    again.entries.insert("marquetry.index".to_owned(), object.entries["marquetry.index"].clone());
    index(&mut again, "id").unwrap();
    assert!(again.entries == object.entries);
    // Of another state of the object it is not used, nor of another column.
    let indexed = object.clone();
    compress(&mut object, &by("snappy", None)).unwrap();
    for (predicate, (_, rows, _)) in predicates.iter().zip(&before) {
        assert_eq!(search(&mut object, predicate).1, *rows, "{predicate}");
    }
    let mut object = indexed;
    index(&mut object, "city").unwrap();
    // It is in all pieces, so the index is of no use: a call looks at some of its parts, which are as small as the calls that made them.
    let city = "city = 'a city, number 77'";
    let (_, _, without) = search(&mut Object::new(bytes), city);
    let (_, rows, with) = search(&mut object, city);
    println!("{city}: {without} bytes were read, and {with} with an index");
    assert!(rows == 300 && with < without + without / 3, "{rows} rows by {with} bytes, not {without}");
    assert_eq!(search(&mut object, &predicates[0]).1, 1);
    // Entries that are wrong are not used, or an error.
    let entry = object.entries.get_mut("marquetry.index").unwrap();
    entry.truncate(entry.len() - 3);
    assert_eq!(search(&mut object, "city = 'a city, number 77'").1, 300);
    for wrong in ["nothing", "tags"] {
        let result = index(&mut object, wrong);
        assert!(result.is_err() == (wrong == "nothing"), "{wrong}: {result:?}");
    }
    // Values in lists are found by row, too.
    assert_eq!(search(&mut object, "tags = 'tag 1 of 21003'").1, 1);
}

#[test]
fn an_index_is_of_the_column_that_it_was_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let within = |name: &str, values: std::ops::Range<i64>| -> ArrayRef {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        Arc::new(StructArray::from(RecordBatch::try_from_iter([(name, values)]).unwrap()))
    };
    // The names of both, with dots between them, are the same.
    let columns = [("x", within("a.b", 0..9000)), ("x.a", within("b", 9000..18_000))];
    let mut object = Object::new(parquet(folder.path(), &RecordBatch::try_from_iter(columns).unwrap()));
    let (first, second) = ("x.\"a.b\"", "\"x.a\".b");
    let found_in = |object: &mut Object| {
        let predicates = [(first, 77), (first, 9077), (second, 77), (second, 9077)];
        predicates.map(|(column, value)| found(object, &format!("{column} = {value}")))
    };
    assert_eq!(found_in(&mut object), [1, 0, 0, 1]);
    for column in [first, second] {
        index(&mut object, column).unwrap();
        assert_eq!(found_in(&mut object), [1, 0, 0, 1], "with an index of {column}");
    }
}

/// A table that rows can have.
fn bytes_of_flat(folder: &Path) -> Vec<u8> {
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
    parquet(folder, &batch)
}

fn parquet(folder: &Path, batch: &RecordBatch) -> Vec<u8> {
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let path = folder.join("flat.parquet");
    let mut writer = Writer::with(&path, schema, ParquetOptions::default()).unwrap();
    writer.write_arrow(batch).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
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
    pool.write(flat, &bytes_of_flat(folder.path()), true).unwrap();
    assert_eq!(pool.transform(flat, "rewritten/rows", Form::Rows).unwrap(), 20_000);
    assert_eq!(pool.transform("rewritten/rows", "rewritten/back.parquet", Form::Parquet).unwrap(), 20_000);
    assert!(whole("rewritten/back.parquet").columns() == whole(flat).columns());
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
