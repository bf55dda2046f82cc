//! Thousands of files at a glance, of which no footer is kept.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, ErrorKind, Result};
use marquetry_parquet::format::{Compression, FileMetaData};
use marquetry_parquet::schema::{Column, Plan as _, Schema, Unified, Union};

use super::any::{AnyFile, PARQUET};
use super::gathered::{constant_text, find, fingerprint};
use super::hive::Partitions;
use super::options::FilesOptions;
use super::parquet::ParquetFile;
use crate::subject::name_of;

/// Files that are listed, of each sort.
const LISTED_MAX: usize = 100;
/// Schemas that are kept and joined; of more files differ in everything.
const SCHEMAS_MAX: usize = 1_000;
/// Names that are counted apart.
const NAMES_MAX: usize = 1_000;
/// Errors that are kept.
const FAULTS_MAX: usize = 100;
/// Footers that each thread reads before they are added up.
const FOOTERS_AT_ONCE: usize = 4;
/// Threads; more only wait for the disk.
const THREADS_MAX: usize = 16;

/// What many files have in common, and which are odd. Its memory does not grow with the footers, only with the names of
/// the files.
///
/// ```no_run
/// use marquetry_tables::files::{FilesOptions, Survey};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let lake = Survey::read(&["lake/".into()], &FilesOptions::default(), |done, all| {
///     eprintln!("{done} of {all} files");
/// })?;
/// println!("{} rows, {} schemas", lake.rows, lake.schemas.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Files that were read.
    pub files: u64,
    /// Rows of all of them, but for the [`uncounted`](Survey::uncounted).
    pub rows: u64,
    /// Files whose rows are not known before they are read, as those of text.
    pub uncounted: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Files by their formats.
    pub formats: Tally,
    /// Row groups of all of them.
    pub row_groups: u64,
    /// Column chunks of all of them.
    pub column_chunks: u64,
    /// Bytes of the column chunks.
    pub compressed_bytes: u64,
    /// Bytes of the column chunks before compression.
    pub uncompressed_bytes: u64,
    /// Bytes of the footers.
    pub footer_bytes: u64,
    /// Parquet files by the writer that they name; the empty name is that of files that name none.
    pub writers: Tally,
    /// Column chunks by codec.
    pub codecs: Tally,
    /// The schemas that the files have, in the order in which they were met. Those of text are inferred, of each file by itself.
    pub schemas: Vec<SurveyedSchema>,
    /// Files whose schemas are not among these, because they are too many.
    pub files_of_other_schemas: u64,
    /// The schemas joined by name, with the differences; sources are numbers of [`schemas`](Survey::schemas).
    pub unified: Option<Unified>,
    /// The columns in the paths, each with the number of its values.
    pub partitions: Vec<(Column, u64)>,
    /// The first files.
    pub first: Vec<SurveyedFile>,
    /// The smallest file.
    pub smallest: Option<SurveyedFile>,
    /// The largest file.
    pub largest: Option<SurveyedFile>,
    /// Files without rows.
    pub empty: u64,
    /// The first of them.
    pub empty_first: Option<String>,
    /// Files all of whose column chunks have an offset index.
    pub with_page_index: u64,
    /// Files some of whose column chunks have a Bloom filter.
    pub with_bloom_filters: u64,
    /// The number of files that could not be read.
    pub broken: u64,
    /// What is wrong with the first of them.
    pub faults: Vec<Error>,
}

/// How often names occur.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Tally {
    /// Names and their counts, in the order in which they were met.
    pub counts: Vec<(String, u64)>,
    /// Occurrences of names beyond the thousand that are counted apart.
    pub others: u64,
}

/// A schema, and who has it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SurveyedSchema {
    /// The schema.
    pub schema: Arc<Schema>,
    /// Files that have it.
    pub files: u64,
    /// The first of them.
    pub first: String,
}

/// A file of many.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SurveyedFile {
    /// Its path.
    pub name: String,
    /// Its rows, if known.
    pub rows: Option<u64>,
    /// Its length in bytes, if known.
    pub bytes: Option<u64>,
    /// Its row groups, if it is a Parquet file.
    pub row_groups: Option<u64>,
}

/// What is kept of a footer until it is added up.
struct Digest {
    file: SurveyedFile,
    schema: Arc<Schema>,
    format: String,
    writer: Option<String>,
    codecs: Vec<(Compression, u64)>,
    sums: [u64; 4],
    has_page_index: bool,
    has_filters: bool,
}

impl Survey {
    /// Finds files and reads their footers, on all cores; of text, the first rows. `progress` is called with the files that
    /// are done, and all.
    ///
    /// A file that cannot be read is counted, and its error kept, as is that of a path without files; the others are read.
    ///
    /// # Errors
    ///
    /// `Cancelled`, and `Internal`.
    pub fn read(
        paths: &[PathBuf],
        options: &FilesOptions,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Survey> {
        let mut survey = Survey::default();
        let mut found = Vec::new();
        for path in paths {
            let of_path = find(std::slice::from_ref(path), options);
            found.extend(of_path.unwrap_or_else(|error| {
                survey.fault(error);
                Vec::new()
            }));
        }
        let partitions = Partitions::of(&found, options.hive, true).unwrap_or_else(|error| {
            survey.fault(error);
            Partitions::default()
        });
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        let mut numbers: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut done = 0;
        for batch in found.chunks(threads * FOOTERS_AT_ONCE) {
            for digest in digests(batch, threads, options) {
                match digest {
                    Ok(digest) => survey.add(digest, &mut numbers),
                    Err(error) if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Internal) => {
                        return Err(error);
                    }
                    Err(error) => {
                        survey.broken += 1;
                        survey.fault(error);
                    }
                }
            }
            options.cancel.check()?;
            done += u64_of(batch.len());
            progress(done, u64_of(found.len()));
        }
        let mut union = Union::new();
        for schema in &survey.schemas {
            union.add(Arc::clone(&schema.schema));
        }
        if !survey.schemas.is_empty() {
            let joined = union.with(partitions.columns.iter().cloned()).plan().at_once();
            survey.unified = joined.map_err(|error| survey.fault(error)).ok();
        }
        survey.partitions = partitions
            .columns
            .into_iter()
            .enumerate()
            .map(|(number, column)| {
                let mut values: Vec<Option<String>> = partitions
                    .values
                    .iter()
                    .map(|of_file| of_file.get(number)?.as_ref().map(constant_text))
                    .collect();
                values.sort_unstable();
                values.dedup();
                (column, u64_of(values.len()))
            })
            .collect();
        Ok(survey)
    }

    /// The name of the first file with a schema, given the schema's number in differences.
    pub fn name_of(&self, schema: usize) -> &str {
        self.schemas.get(schema).map_or("", |schema| &schema.first)
    }

    fn add(&mut self, digest: Digest, numbers: &mut HashMap<u64, Vec<usize>>) {
        let Digest { file, schema, format, writer, codecs, sums, has_page_index, has_filters } = digest;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.files, 1);
        add(&mut self.rows, file.rows.unwrap_or(0));
        add(&mut self.uncounted, u64::from(file.rows.is_none()));
        add(&mut self.bytes, file.bytes.unwrap_or(0));
        add(&mut self.row_groups, file.row_groups.unwrap_or(0));
        add(&mut self.column_chunks, sums[0]);
        add(&mut self.compressed_bytes, sums[1]);
        add(&mut self.uncompressed_bytes, sums[2]);
        add(&mut self.footer_bytes, sums[3]);
        add(&mut self.with_page_index, u64::from(has_page_index));
        add(&mut self.with_bloom_filters, u64::from(has_filters));
        self.formats.add(format, 1);
        if let Some(writer) = writer {
            self.writers.add(writer, 1);
        }
        for (codec, chunks) in codecs {
            self.codecs.add(codec.to_string(), chunks);
        }
        let known = numbers.entry(fingerprint(&schema)).or_default();
        let same = known.iter().find(|&&number| *self.schemas[number].schema == *schema);
        match same.copied() {
            Some(number) => add(&mut self.schemas[number].files, 1),
            None if self.schemas.len() < SCHEMAS_MAX => {
                known.push(self.schemas.len());
                self.schemas.push(SurveyedSchema { schema, files: 1, first: file.name.clone() });
            }
            None => add(&mut self.files_of_other_schemas, 1),
        }
        if file.rows == Some(0) {
            add(&mut self.empty, 1);
            self.empty_first.get_or_insert_with(|| file.name.clone());
        }
        if self.smallest.as_ref().is_none_or(|smallest| file.bytes < smallest.bytes) {
            self.smallest = Some(file.clone());
        }
        if self.largest.as_ref().is_none_or(|largest| file.bytes > largest.bytes) {
            self.largest = Some(file.clone());
        }
        if self.first.len() < LISTED_MAX {
            self.first.push(file);
        }
    }

    fn fault(&mut self, error: Error) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(error);
        }
    }
}

impl Tally {
    fn add(&mut self, name: String, count: u64) {
        let is_full = self.counts.len() >= NAMES_MAX;
        match self.counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None if is_full => self.others = self.others.saturating_add(count),
            None => self.counts.push((name, count)),
        }
    }
}

/// Reads some footers side by side; the results are in the order of the paths.
fn digests(paths: &[PathBuf], threads: usize, options: &FilesOptions) -> Vec<Result<Digest>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut read = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(number) else { return read };
            let digest = options
                .cancel
                .check()
                .and_then(|()| AnyFile::open(path, options))
                .map(|file| Digest::of(&file));
            read.push((number, digest));
        }
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(paths.len())).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            // A panic is a bug; it is reported where it happened.
            all.extend(other.join().unwrap_or_default());
        }
        all
    });
    all.sort_by_key(|(number, _)| *number);
    let mut read = all.into_iter().peekable();
    let take = |(number, path): (usize, &PathBuf)| match read.next_if(|(at, _)| *at == number) {
        Some((_, digest)) => digest,
        None => Err(Error::internal(format!("{} was not read", name_of(path)))),
    };
    paths.iter().enumerate().map(take).collect()
}

impl Digest {
    fn of(file: &AnyFile) -> Digest {
        match file {
            AnyFile::Parquet(file) => Digest::of_parquet(file),
            AnyFile::Other(other) => Digest {
                file: SurveyedFile {
                    name: other.name().to_string(),
                    rows: other.rows(),
                    bytes: other.bytes(),
                    row_groups: None,
                },
                schema: Arc::clone(other.schema()),
                format: other.format().to_string(),
                writer: None,
                codecs: Vec::new(),
                sums: [0; 4],
                has_page_index: false,
                has_filters: false,
            },
        }
    }

    fn of_parquet(file: &ParquetFile) -> Digest {
        let metadata: &FileMetaData = file.metadata();
        let mut codecs: Vec<(Compression, u64)> = Vec::new();
        let (mut chunks, mut compressed, mut uncompressed) = (0_u64, 0_u64, 0_u64);
        let (mut has_page_index, mut has_filters) = (true, false);
        for chunk in metadata.row_groups.iter().flat_map(|group| &group.columns) {
            chunks += 1;
            compressed = compressed.saturating_add(chunk.compressed_bytes);
            uncompressed = uncompressed.saturating_add(chunk.uncompressed_bytes);
            has_page_index &= chunk.offset_index.is_some();
            has_filters |= chunk.bloom_filter.is_some();
            match codecs.iter_mut().find(|(codec, _)| *codec == chunk.compression) {
                Some((_, count)) => *count += 1,
                None => codecs.push((chunk.compression, 1)),
            }
        }
        Digest {
            file: SurveyedFile {
                name: file.name().to_string(),
                rows: Some(metadata.rows),
                bytes: Some(file.bytes()),
                row_groups: Some(u64_of(metadata.row_groups.len())),
            },
            schema: Arc::clone(&metadata.schema),
            format: PARQUET.to_string(),
            writer: Some(metadata.created_by.clone().unwrap_or_default()),
            codecs,
            sums: [chunks, compressed, uncompressed, metadata.footer_bytes],
            has_page_index: has_page_index && chunks > 0,
            has_filters,
        }
    }
}
