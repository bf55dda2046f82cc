//! Pages are compressed in another way: by clients that are interrupted, or beside each other, and of objects that are corrupt.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch};
use arrow_select::concat::concat_batches;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_base::{Codec, Error, ErrorKind, Fields, Frame, Result};
use marquetry_ceph::{Method, change};
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_rados::{Change, Recoding, compress};

use crate::{Object, by, found, rows_of, trips, written};

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
