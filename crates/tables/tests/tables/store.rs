//! Tables in a store that is not the local file system: all that a store has to be is in this file.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use marquetry_base::{Bytes, Detail, Error, ErrorKind, Result};
use marquetry_io::memory::Memory;
use marquetry_io::store::{Found, NewObject, NewObjects, ObjectStream, Store};
use marquetry_io::{ByteSink, ByteSource, ObjectVersion};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory, NewParquetFile, ParquetOptions};
use marquetry_tables::text::{Format, NewTextFile, TextFormat, TextOptions, TextOutputOptions};
use marquetry_tables::{
    ColumnPath, Copied, CopyOptions, Destination, DiffOptions, SortBy, Source, Table, copy, diff,
};

/// Objects in memory, by their addresses: `mem://bucket/…`.
#[derive(Debug, Clone, Default)]
struct Bucket(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    objects: BTreeMap<PathBuf, Object>,
    /// What is written and not committed yet, by paths that nothing lists.
    uploads: BTreeMap<PathBuf, Vec<u8>>,
    writes: u64,
    /// Bytes that an object may have: appending more fails.
    room: Option<usize>,
}

#[derive(Debug, Clone)]
struct Object {
    bytes: Bytes,
    etag: String,
}

impl Object {
    fn version(&self) -> ObjectVersion {
        ObjectVersion::new(self.bytes.len() as u64, self.etag.clone())
    }
}

impl Bucket {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap()
    }

    fn put(&self, path: &str, bytes: impl Into<Bytes>) {
        self.contents().put(path.into(), bytes.into());
    }

    fn paths(&self) -> Vec<String> {
        let contents = self.contents();
        assert!(contents.uploads.is_empty(), "an upload was left: {:?}", contents.uploads.keys());
        contents.objects.keys().map(|path| path.display().to_string()).collect()
    }

    /// The object at a path, or what is uploaded to it.
    fn get(&self, path: &Path) -> Result<Object> {
        let contents = self.contents();
        let upload = || {
            let bytes = Bytes::from(contents.uploads.get(path)?.clone());
            Some(Object { bytes, etag: "an upload".to_owned() })
        };
        let missing = || Error::io("no such object").with(Detail::NotFound);
        contents.objects.get(path).cloned().or_else(upload).ok_or_else(missing)
    }

    fn upload(&self, path: &Path, replaces: bool) -> Upload {
        let mut contents = self.contents();
        contents.writes += 1;
        let upload = PathBuf::from(format!("mem://uploads/{}", contents.writes));
        contents.uploads.insert(upload.clone(), Vec::new());
        let name = path.display().to_string();
        let path = path.to_path_buf();
        Upload { bucket: self.clone(), upload, path, name, replaces, directory: None }
    }
}

impl Contents {
    fn put(&mut self, path: PathBuf, bytes: Bytes) {
        self.writes += 1;
        let etag = format!("version {}", self.writes);
        self.objects.insert(path, Object { bytes, etag });
    }
}

impl Store for Bucket {
    fn look(&self, path: &Path) -> Result<Found> {
        if let Ok(object) = self.get(path) {
            return Ok(Found::Object { bytes: object.bytes.len() as u64 });
        }
        let is_directory = self.contents().objects.keys().any(|object| object.starts_with(path));
        Ok(if is_directory { Found::Directory { is_empty: false } } else { Found::Nothing })
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        if !matches!(self.look(path)?, Found::Directory { .. }) {
            return Ok(vec![path.to_path_buf()]);
        }
        let is_of = |object: &&PathBuf| {
            let name = object.to_string_lossy();
            object.starts_with(path) && extensions.iter().any(|known| name.ends_with(&format!(".{known}")))
        };
        let found: Vec<PathBuf> = self.contents().objects.keys().filter(is_of).cloned().collect();
        if found.is_empty() {
            Err(Error::io("nothing of that kind").with(Detail::NotFound))
        } else {
            Ok(found)
        }
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        let object = self.get(path)?;
        let version = object.version();
        Ok((Box::new(Memory::new(path.display().to_string(), object.bytes)), version))
    }

    fn stream(&self, path: &Path, _: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        let object = self.get(path)?;
        let version = Some(object.version());
        Ok(ObjectStream { reader: Box::new(Cursor::new(object.bytes)), version })
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        Ok(Box::new(self.upload(path, replaces)))
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        _: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        let (bucket, path, kept) = (self.clone(), path.to_path_buf(), Kept::default());
        Ok(Box::new(Uploads { bucket, path, replaces, kept }))
    }
}

/// An object that is uploaded.
struct Upload {
    bucket: Bucket,
    upload: PathBuf,
    path: PathBuf,
    name: String,
    replaces: bool,
    /// The objects of its directory that are complete, with their places; and its own.
    directory: Option<(Kept, PathBuf)>,
}

/// Complete objects of a directory.
type Kept = Arc<Mutex<Vec<(PathBuf, Upload)>>>;

impl ByteSink for Upload {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut contents = self.bucket.contents();
        let room = contents.room.unwrap_or(usize::MAX);
        let upload = contents.uploads.get_mut(&self.upload).ok_or_else(|| Error::internal("no upload"))?;
        if upload.len() + bytes.len() > room {
            return Err(Error::io("the bucket is full").at(|place| place.object = Some(self.name.clone())));
        }
        upload.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, _: Range<u64>) -> Result<Bytes> {
        Err(Error::internal("an upload is not read so"))
    }
}

impl NewObject for Upload {
    fn readable(&self) -> Option<PathBuf> {
        Some(self.upload.clone())
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        if let Some((kept, place)) = self.directory.take() {
            kept.lock().unwrap().push((place, *self));
            return Ok(());
        }
        let mut contents = self.bucket.contents();
        if !self.replaces && contents.objects.contains_key(&self.path) {
            return Err(Error::io("it already exists").with(Detail::AlreadyExists));
        }
        let bytes = contents.uploads.get(&self.upload).cloned().unwrap_or_default();
        contents.put(self.path.clone(), bytes.into());
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.bucket.contents().uploads.remove(&self.upload);
    }
}

/// Objects that are uploaded, and appear together.
struct Uploads {
    bucket: Bucket,
    path: PathBuf,
    replaces: bool,
    kept: Kept,
}

impl NewObjects for Uploads {
    fn create(&mut self, place: &Path) -> Result<Box<dyn NewObject>> {
        let mut upload = self.bucket.upload(&self.path.join(place), self.replaces);
        upload.directory = Some((Arc::clone(&self.kept), place.to_path_buf()));
        Ok(Box::new(upload))
    }

    fn kept(&self) -> Option<Vec<(PathBuf, PathBuf)>> {
        let kept = self.kept.lock().unwrap();
        Some(kept.iter().map(|(place, upload)| (place.clone(), upload.upload.clone())).collect())
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(self: Box<Self>) -> Result<()> {
        if self.replaces {
            self.bucket.contents().objects.retain(|object, _| !object.starts_with(&self.path));
        }
        let kept = std::mem::take(&mut *self.kept.lock().unwrap());
        kept.into_iter().try_for_each(|(_, upload)| Box::new(upload).commit())
    }
}

const TRIPS: &str = "id,city,fare\n3,Berlin,1.5\n1,Bern,\n2,Berlin,7.25\n";

/// A bucket with one text in it.
fn bucket() -> Bucket {
    let bucket = Bucket::default();
    bucket.put("mem://bucket/in/trips.csv", TRIPS);
    bucket
}

fn open(bucket: &Bucket, path: &str) -> Result<Arc<dyn Source>> {
    let mut options = FilesOptions::default();
    options.store = Arc::new(bucket.clone());
    options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
    Ok(Arc::new(Files::open([path], &options)?))
}

fn copied(bucket: &Bucket, from: &str, to: &mut dyn Destination) -> Result<Copied> {
    let mut options = CopyOptions::default();
    options.verify = true;
    copy(&open(bucket, from)?, to, &options, &mut |_| {})
}

fn parquet(bucket: &Bucket, path: &str, overwrite: bool) -> Result<NewParquetFile> {
    let mut options = ParquetOptions::default();
    options.overwrite = overwrite;
    NewParquetFile::new_in(Arc::new(bucket.clone()), path, options)
}

fn text(bucket: &Bucket, path: &str, format: Format) -> Result<NewTextFile> {
    NewTextFile::new_in(Arc::new(bucket.clone()), path, format, TextOutputOptions::default())
}

fn assert_equal(bucket: &Bucket, a: &str, b: &str) {
    let (a, b) = (open(bucket, a).unwrap(), open(bucket, b).unwrap());
    let differences = diff([&a, &b], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(differences.are_rows_equal() && differences.rows.compared == 3, "{differences:?}");
}

#[test]
fn files_of_every_kind_go_there_and_back() {
    let bucket = bucket();
    let trips = "mem://bucket/in/trips.csv";
    let written = copied(&bucket, trips, &mut parquet(&bucket, "mem://bucket/a.parquet", false).unwrap());
    let written = written.unwrap();
    assert_eq!((written.rows, written.written.files), (3, 1));
    for (path, format) in [
        ("mem://bucket/b.jsonl", Format::JsonLines),
        ("mem://bucket/c.csv.gz", Format::Csv),
        ("mem://bucket/d.tsv.zst", Format::Tsv),
    ] {
        let written =
            copied(&bucket, "mem://bucket/a.parquet", &mut text(&bucket, path, format).unwrap()).unwrap();
        assert_eq!(written.written.bytes, bucket.get(path.as_ref()).unwrap().bytes.len() as u64);
        assert_equal(&bucket, "mem://bucket/a.parquet", path);
    }
    assert_equal(&bucket, "mem://bucket/a.parquet", trips);
    assert_eq!(
        bucket.paths(),
        [
            "mem://bucket/a.parquet",
            "mem://bucket/b.jsonl",
            "mem://bucket/c.csv.gz",
            "mem://bucket/d.tsv.zst",
            trips
        ]
    );
}

#[test]
fn directories_are_partitioned_verified_and_replaced() {
    let bucket = bucket();
    let directory = |overwrite| {
        let mut options = DirectoryOptions::default();
        options.partition_by = ColumnPath::parse_list("city").unwrap();
        options.parquet.overwrite = overwrite;
        NewParquetDirectory::new_in(Arc::new(bucket.clone()), "mem://bucket/out", options)
    };
    let trips = "mem://bucket/in/trips.csv";
    let written = copied(&bucket, trips, &mut directory(false).unwrap()).unwrap();
    assert_eq!((written.rows, written.written.files), (3, 2));
    let all = [
        trips,
        "mem://bucket/out/city=Berlin/part-00000.parquet",
        "mem://bucket/out/city=Bern/part-00000.parquet",
    ];
    assert_eq!(bucket.paths(), all);

    let refused = directory(false).err().unwrap();
    assert_eq!(refused.detail(), Some(Detail::AlreadyExists));
    bucket.put(trips, "id,city\n4,Basel\n");
    copied(&bucket, trips, &mut directory(true).unwrap()).unwrap();
    assert_eq!(bucket.paths(), [trips, "mem://bucket/out/city=Basel/part-00000.parquet"]);
    let basel = open(&bucket, "mem://bucket/out").unwrap();
    assert_eq!(basel.table().rows, Some(1));
    assert_eq!(basel.table().schema.leaves().len(), 2, "its name is a column");
}

/// Where the ends of files cannot be written, what is wrong with the rows of a later file is still the error, as it is
/// for one thread, which finds it before any file ends.
#[test]
fn a_faulty_row_comes_before_the_end_of_another_file() {
    let leaf = |name: &str, physical| FieldDef::new(name, FieldType::Leaf(physical, None)).required();
    let fields = [leaf("part", PhysicalType::Int32), leaf("text", PhysicalType::ByteArray)];
    let schema = Arc::new(Schema::of_fields(&fields).unwrap());
    let long = "x".repeat(5_000);
    // (Rows of a file, whether one is faulty.)
    for (file_rows, is_faulty) in [(None, true), (None, false), (Some(1_000), true), (Some(1_000), false)] {
        let errors = [1, 2, 3, 8].map(|threads| {
            let bucket = bucket();
            // Of an empty file, what is at its beginning.
            bucket.contents().room = Some(4);
            let mut by_part = DirectoryOptions::default();
            by_part.partition_by = ColumnPath::parse_list("part").unwrap();
            by_part.parquet.write.limits.value_bytes = 4_000;
            by_part.file_rows = file_rows.and_then(std::num::NonZeroU64::new);
            let to = "mem://bucket/out";
            let mut directory = NewParquetDirectory::new_in(Arc::new(bucket.clone()), to, by_part).unwrap();
            directory.set_threads(threads);
            directory.begin(&Table::new("made", Arc::clone(&schema))).unwrap();
            let parts: Vec<i32> = (0..3_000).map(|row| row % 3).collect();
            let texts = (0..3_000).map(|row| if row == 2_999 && is_faulty { &*long } else { "a text" });
            let batch = Batch::of_values([parts.into(), texts.collect()]).unwrap();
            let error = directory.write(batch).and_then(|()| directory.finish().map(drop)).unwrap_err();
            drop(directory);
            assert_eq!(bucket.paths(), ["mem://bucket/in/trips.csv"]);
            error
        });
        let kind = if is_faulty { ErrorKind::LimitExceeded } else { ErrorKind::Io };
        assert_eq!(errors[0].kind(), kind, "{}", errors[0]);
        for error in &errors {
            assert_eq!(error.to_string(), errors[0].to_string());
        }
    }
}

#[test]
fn rows_are_sorted_without_a_place_beside_the_output() {
    let bucket = bucket();
    let trips = open(&bucket, "mem://bucket/in/trips.csv").unwrap();
    let mut options = CopyOptions::default();
    options.sort = SortBy::resolve(&SortBy::parse_list("id").unwrap(), &trips.table().schema).unwrap();
    let mut sorted = text(&bucket, "mem://bucket/sorted.csv", Format::Csv).unwrap();
    copy(&trips, &mut sorted, &options, &mut |_| {}).unwrap();
    let sorted = bucket.get("mem://bucket/sorted.csv".as_ref()).unwrap().bytes;
    assert_eq!(sorted, "id,city,fare\n1,Bern,\n2,Berlin,7.25\n3,Berlin,1.5\n");
}

#[test]
fn nothing_is_replaced_or_left_behind_by_mistake() {
    let bucket = bucket();
    let trips = "mem://bucket/in/trips.csv";
    for refused in
        [parquet(&bucket, trips, false).err().unwrap(), text(&bucket, trips, Format::Csv).err().unwrap()]
    {
        assert_eq!(
            (refused.detail(), refused.place().object.as_deref()),
            (Some(Detail::AlreadyExists), Some(trips))
        );
    }
    // What appears meanwhile stays.
    let mut late = text(&bucket, "mem://bucket/late.csv", Format::Csv).unwrap();
    bucket.put("mem://bucket/late.csv", "mine\n");
    let error = copied(&bucket, trips, &mut late).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AlreadyExists), "{error}");
    drop(late);
    assert_eq!(bucket.get("mem://bucket/late.csv".as_ref()).unwrap().bytes, "mine\n");

    bucket.contents().room = Some(20);
    for destination in [
        &mut parquet(&bucket, "mem://bucket/full.parquet", false).unwrap() as &mut dyn Destination,
        &mut text(&bucket, "mem://bucket/full.jsonl", Format::JsonLines).unwrap(),
        &mut text(&bucket, "mem://bucket/full.csv.gz", Format::Csv).unwrap(),
    ] {
        let error = copied(&bucket, trips, destination).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "the bucket is full"), "{error}");
        assert!(error.place().object.as_deref().unwrap().starts_with("mem://bucket/full."), "{error}");
    }
    assert_eq!(bucket.paths(), [trips, "mem://bucket/late.csv"]);
}

#[test]
fn an_object_that_changed_is_not_read_on() {
    let bucket = bucket();
    let trips = "mem://bucket/in/trips.csv";
    let opened = open(&bucket, trips).unwrap();
    assert_eq!(opened.table().bytes, Some(TRIPS.len() as u64));
    bucket.put(trips, TRIPS.replace('3', "4"));
    let mut csv = text(&bucket, "mem://bucket/b.csv", Format::Csv).unwrap();
    let error = copy(&opened, &mut csv, &CopyOptions::default(), &mut |_| {}).unwrap_err();
    assert!(error.message().contains("changed"), "{error}");
    drop(csv);

    copied(&bucket, trips, &mut parquet(&bucket, "mem://bucket/a.parquet", false).unwrap()).unwrap();
    let opened = open(&bucket, "mem://bucket/a.parquet").unwrap();
    let same_length = bucket.get("mem://bucket/a.parquet".as_ref()).unwrap().bytes;
    bucket.put("mem://bucket/a.parquet", same_length);
    let mut csv = text(&bucket, "mem://bucket/b.csv", Format::Csv).unwrap();
    let error = copy(&opened, &mut csv, &CopyOptions::default(), &mut |_| {}).unwrap_err();
    assert!(error.message().contains("changed"), "{error}");
    drop(csv);

    let missing = open(&bucket, "mem://bucket/nowhere.parquet").err().unwrap();
    assert_eq!(missing.detail(), Some(Detail::NotFound));
}
