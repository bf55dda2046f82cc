//! The machine that reads batches, which are handed over as Arrow arrays.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array as _, RecordBatch, StructArray};
use arrow_schema::Schema as ArrowSchema;
use marquetry_arrow::{ArrowOptions, ToArrow};
use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Detail, Error, Machine as _, Release, Result, Step, release_all};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{Batch, Combine, RowSelection};
use marquetry_parquet::find::{FindOptions, Found, RowFinder};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::{PathPart, Projection, Schema};
use marquetry_text::predicate;

use crate::abi::{marquetry_batch_info, marquetry_reader_options, marquetry_rows, marquetry_status};
use crate::error::answer;
use crate::footer::{Metadata, limits};
use crate::handles::{self, marquetry_error, marquetry_machine, marquetry_metadata};
use crate::machine::{FILE, Product, Work, make, with_machine};
use crate::{arguments, reserve};

/// Reads batches, of all rows or of those that are wanted.
pub(crate) struct Reader {
    pub(crate) metadata: Arc<FileMetaData>,
    codecs: Arc<StandardCodecs>,
    options: ReadOptions,
    /// If only some rows are wanted: what finds them, a row group at a time.
    finder: Option<Box<RowFinder>>,
    /// Ranges of rows that are wanted; empty: all.
    rows: Vec<Range<u64>>,
    /// What reads the rows at hand.
    current: Option<Box<BatchReader>>,
}

impl Reader {
    pub(crate) fn new(metadata: &Arc<FileMetaData>, wanted: Wanted) -> Result<Reader> {
        let Wanted { options, predicate, rows } = wanted;
        let codecs = Arc::new(StandardCodecs::new(options.limits));
        let mut reader = Reader {
            metadata: Arc::clone(metadata),
            codecs,
            options,
            finder: None,
            rows: rows.unwrap_or_default(),
            current: None,
        };
        if predicate.is_none() && reader.rows.is_empty() {
            reader.current = Some(reader.open(reader.options.clone())?);
            return Ok(reader);
        }
        let mut find = FindOptions::default();
        find.read = ReadOptions { leaves: None, keep_dictionaries: false, ..reader.options.clone() };
        find.locate = match &reader.options.leaves {
            Some(leaves) => leaves.clone(),
            None => (0..metadata.schema.leaves().len()).collect(),
        };
        find.ranges.clone_from(&reader.rows);
        // All rows, where only their numbers are given.
        let predicate = predicate.unwrap_or(Predicate::And(Vec::new()));
        let codecs = Arc::clone(&reader.codecs);
        let finder = RowFinder::new(FILE, Arc::clone(metadata), codecs, predicate, find)?;
        reader.finder = Some(Box::new(finder));
        Ok(reader)
    }

    fn open(&self, options: ReadOptions) -> Result<Box<BatchReader>> {
        let codecs = Arc::clone(&self.codecs);
        handles::boxed(BatchReader::new(FILE, Arc::clone(&self.metadata), codecs, options)?)
    }

    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        loop {
            if let Some(reader) = &mut self.current {
                match reader.step(budget)? {
                    Step::Done if self.finder.is_some() => self.current = None,
                    step => return Ok(step),
                }
            } else {
                let Some(finder) = &mut self.finder else { return Ok(Step::Done) };
                match finder.step(budget)? {
                    Step::Ready(found) => self.begin(found, budget)?,
                    Step::Need(demand) => return Ok(Step::Need(demand)),
                    Step::Append(..) => return Err(Error::internal("a search that writes")),
                    Step::Yield => return Ok(Step::Yield),
                    Step::Done => return Ok(Step::Done),
                }
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }

    /// Begins to read the rows of a row group.
    fn begin(&mut self, found: Found, budget: &mut Budget<'_>) -> Result<()> {
        let Found { row_group, rows, pages } = found;
        let rows = match self.rows.is_empty() {
            true => rows,
            false => self.intersect(row_group, rows, budget)?,
        };
        if rows.is_empty() {
            return Ok(());
        }
        let options = ReadOptions { row_groups: Some(row_group..row_group + 1), ..self.options.clone() };
        let mut reader = self.open(options)?;
        reader.select(row_group, rows)?;
        for (leaf, pages) in pages {
            reader.locate(row_group, leaf, pages)?;
        }
        self.current = Some(reader);
        Ok(())
    }

    /// The found rows that are in the ranges, too.
    fn intersect(
        &self,
        row_group: usize,
        found: RowSelection,
        budget: &mut Budget<'_>,
    ) -> Result<RowSelection> {
        let group = &self.metadata.row_groups[row_group];
        let (start, end) = (group.first_row, group.first_row + group.rows);
        let first = self.rows.partition_point(|range| range.end <= start);
        let mut wanted = RowSelection::none();
        for range in self.rows[first..].iter().take_while(|range| range.start < end) {
            wanted.push(range.start.max(start) - start..range.end.min(end) - start, budget)?;
        }
        // One block of 65,536 rows costs little; a row group has few of them.
        let mut combining = found.combine(wanted, Combine::Intersection);
        loop {
            if let Some(rows) = combining.step(budget)? {
                return Ok(rows);
            }
        }
    }

    pub(crate) fn supply(&mut self, range: Range<u64>, bytes: Bytes) -> Result<()> {
        expect_within(&self.metadata, &range)?;
        match (&mut self.current, &mut self.finder) {
            (Some(reader), _) => reader.supply(FILE, range, bytes),
            (None, Some(finder)) => finder.supply(FILE, range, bytes),
            (None, None) => Ok(()),
        }
    }
}

impl Release for Reader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.current, &mut self.finder, &mut self.metadata], budget)
    }
}

/// Fails for bytes beyond a file's end.
pub(crate) fn expect_within(metadata: &FileMetaData, range: &Range<u64>) -> Result<()> {
    let length = metadata.file_bytes();
    match range.end <= length {
        true => Ok(()),
        false => {
            let what = format!("bytes {} to {} of a file of {length}", range.start, range.end);
            Err(Error::misuse(what))
        }
    }
}

/// What options want of a file.
pub(crate) struct Wanted {
    pub(crate) options: ReadOptions,
    predicate: Option<Predicate>,
    rows: Option<Vec<Range<u64>>>,
}

impl Wanted {
    pub(crate) fn of(metadata: &FileMetaData, given: *const marquetry_reader_options) -> Result<Wanted> {
        let given = arguments::options_or_default(given)?;
        let mut options = ReadOptions { limits: limits(given.memory_bytes_max), ..ReadOptions::default() };
        let schema = &metadata.schema;
        if !given.columns.is_null() || given.columns_count > 0 {
            let mut leaves = Vec::new();
            for path in arguments::texts(given.columns, given.columns_count, "columns")? {
                leaves
                    .extend(leaves_at(schema, path).map_err(|error| error.with(Detail::Option("columns")))?);
            }
            leaves.sort_unstable();
            leaves.dedup();
            options.leaves = Some(leaves);
        }
        let groups = u64_of(metadata.row_groups.len());
        if given.row_groups_start > 0 || given.row_groups_count > 0 {
            let start = given.row_groups_start;
            let count = match given.row_groups_count {
                0 => groups.saturating_sub(start),
                count => count,
            };
            let end = start.checked_add(count).filter(|&end| start <= groups && end <= groups);
            let wrong = || Error::option("row_groups", format!("{count} from {start} of {groups}"));
            let number = |at: u64| usize::try_from(at).map_err(|_| wrong());
            options.row_groups = Some(number(start)?..number(end.ok_or_else(wrong)?)?);
        }
        options.batch_rows = arguments::or_default(given.batch_rows, options.batch_rows, "batch_rows")?;
        options.batch_bytes = arguments::or_default(given.batch_bytes, options.batch_bytes, "batch_bytes")?;
        if given.read_bytes > 0 {
            options.read_bytes = given.read_bytes;
        }
        options.keep_dictionaries = arguments::flag(given.keep_dictionaries, "keep_dictionaries")?;
        options.verify_crc = !arguments::flag(given.ignore_crc, "ignore_crc")?;
        let predicate = match arguments::text(given.predicate, "a predicate")? {
            None => None,
            Some(text) => Some(predicate::parse(text, schema).map_err(|error| {
                let message = format!("{error}, at byte {} of the predicate", error.at.start);
                Error::option("predicate", message)
            })?),
        };
        let rows = match given.rows.is_null() && given.rows_count == 0 {
            true => None,
            false => Some(ranges(arguments::array(given.rows, given.rows_count, "rows")?, metadata.rows)?),
        };
        Ok(Wanted { options, predicate, rows })
    }
}

fn ranges(given: &[marquetry_rows], rows: u64) -> Result<Vec<Range<u64>>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let bytes = size_of_val(given);
    ranges.try_reserve_exact(given.len().max(1)).map_err(|_| Error::out_of_memory(bytes))?;
    for range in given {
        let after = ranges.last().map_or(0, |last| last.end);
        if range.start >= range.end || range.start < after || range.end > rows {
            let (start, end) = (range.start, range.end);
            let what =
                format!("rows {start}..{end} after {after} of {rows}: ranges ascend and are not empty");
            return Err(Error::option("rows", what));
        }
        ranges.push(range.start..range.end);
    }
    if ranges.is_empty() {
        // No rows are wanted, which is not the same as all.
        ranges.push(0..0);
    }
    Ok(ranges)
}

/// The leaves that a path leads to.
pub(crate) fn leaves_at(schema: &Arc<Schema>, path: &str) -> Result<Vec<usize>> {
    let exact = (0..schema.leaves().len()).find(|&leaf| schema.leaf_path(leaf) == path);
    if let Some(leaf) = exact {
        return Ok(vec![leaf]);
    }
    let mut projection = Projection::new(Arc::clone(schema));
    let added = projection.add(&parts(path), &mut Budget::unlimited());
    added.map_err(|_| Error::misuse(format!("no column is called {path}")))?;
    let leaves = schema.leaves().iter().enumerate().filter(|(_, leaf)| projection.has(leaf.node));
    Ok(leaves.map(|(at, _)| at).collect())
}

/// The parts of a path: names with dots between them, of which some are in double quotes, which are doubled inside.
fn parts(path: &str) -> Vec<PathPart> {
    let mut parts = Vec::new();
    let mut rest = path;
    loop {
        let (text, is_whole, after) = match rest.strip_prefix('"').and_then(unquoted) {
            Some((name, after)) if after.is_empty() || after.starts_with('.') => (name, true, after),
            _ => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].to_string(), false, &rest[end..])
            }
        };
        parts.push(PathPart { text, is_whole });
        match after.strip_prefix('.') {
            Some(more) => rest = more,
            None => return parts,
        }
    }
}

/// A name before its closing quote, and what follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let (before, after) = rest.split_once('"')?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

/// Batches for Arrow.
pub(crate) struct BatchesMachine {
    reader: Reader,
    to_arrow: ToArrow,
    /// The batch that is being converted.
    converting: Option<Batch>,
    /// One that was converted and taken: what of it the arrays do not share is released.
    used: Option<Batch>,
}

/// A batch in both forms, which share memory.
pub(crate) struct Converted {
    batch: Batch,
    made: Option<RecordBatch>,
}

impl BatchesMachine {
    pub(crate) fn new(metadata: &Arc<FileMetaData>, wanted: Wanted) -> Result<BatchesMachine> {
        let leaves = wanted.options.leaves.clone();
        let options = ArrowOptions::default();
        let to_arrow = reserve::section(|| ToArrow::of_file(metadata, leaves.as_deref(), options))?;
        let reader = Reader::new(metadata, wanted)?;
        Ok(BatchesMachine { reader, to_arrow, converting: None, used: None })
    }

    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Converted>> {
        if self.used.is_some() && (!self.used.release(budget) || budget.is_spent()) {
            return Ok(Step::Yield);
        }
        if self.converting.is_none() {
            match self.reader.step(budget)? {
                Step::Ready(batch) => self.converting = Some(batch),
                Step::Need(demand) => return Ok(Step::Need(demand)),
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
                Step::Yield => return Ok(Step::Yield),
                Step::Done => return Ok(Step::Done),
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
        let Some(batch) = self.converting.take() else { return Err(Error::internal("no batch")) };
        match reserve::section(|| self.to_arrow.step(&batch, budget))? {
            Some(made) => Ok(Step::Ready(Converted::new(batch, made))),
            None => {
                self.converting = Some(batch);
                Ok(Step::Yield)
            }
        }
    }

    /// The host has what was made of a batch.
    pub(crate) fn took(&mut self, converted: Converted) {
        self.used = Some(converted.into_batch());
    }

    pub(crate) fn supply(&mut self, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.reader.supply(range, bytes)
    }

    pub(crate) fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.used, &mut self.converting, &mut self.reader], budget)
    }

    pub(crate) fn schema(&self) -> &Arc<ArrowSchema> {
        self.to_arrow.schema()
    }
}

impl Converted {
    pub(crate) fn new(batch: Batch, made: RecordBatch) -> Converted {
        Converted { batch, made: Some(made) }
    }

    /// What is left when the host has the arrays.
    pub(crate) fn into_batch(self) -> Batch {
        self.batch
    }

    pub(crate) fn record_batch(&self) -> Result<&RecordBatch> {
        self.made.as_ref().ok_or_else(|| Error::internal("a batch that is being released"))
    }
}

impl Release for Converted {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        // What is left is shared by nobody.
        self.made = None;
        self.batch.release(budget)
    }
}

/// A schema for the host.
pub(crate) fn exported(schema: &ArrowSchema) -> Result<FFI_ArrowSchema> {
    FFI_ArrowSchema::try_from(schema).map_err(|error| Error::unsupported(error.to_string()))
}

/// Makes a machine that reads rows of a file. Its products are batches: `marquetry_take_batch`.
///
/// * `metadata`: in, borrowed during the call.
/// * `options`: in, borrowed; NULL: the defaults, all rows of all columns.
/// * `machine`: out, owned by the host.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_reader_new(
    metadata: *const marquetry_metadata,
    options: *const marquetry_reader_options,
    machine: *mut *mut marquetry_machine,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    make(machine, error, || {
        let file = handles::with::<Metadata, _>(metadata, |metadata| Ok(Arc::clone(&metadata.file)))?;
        let wanted = Wanted::of(&file, options)?;
        BatchesMachine::new(&file, wanted).map(Work::Batches)
    })
}

/// The schema of a reader's batches: a struct whose fields are the columns.
///
/// * `machine`: in, borrowed.
/// * `schema`: out, owned by the host: its `release`.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_reader_schema(
    machine: *mut marquetry_machine,
    schema: *mut FFI_ArrowSchema,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| match &machine.work {
        Work::Batches(reader) => {
            reserve::section(|| arguments::put(schema, reserve::kept(exported(reader.schema())?)?))
        }
        _ => Err(Error::misuse("the schema of a machine that does not read batches")),
    });
    answer(done, error)
}

/// Takes a batch, after a reader, of a file or of an SSTable, was `READY`. The array shares the memory that the batch was decoded into, or the bytes that
/// were supplied; what Arrow lays out otherwise was copied in the steps before. What this costs depends on the number of columns alone.
///
/// * `machine`: in, borrowed.
/// * `array`: out, owned by the host: its `release`, on any thread. A struct whose fields are the columns.
/// * `schema`: out, owned by the host; may be NULL. It is `marquetry_reader_schema`'s (`marquetry_sstable_schema`'s), but for dictionaries that were kept.
/// * `info`: out; may be NULL, otherwise `struct_size` must be set.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_take_batch(
    machine: *mut marquetry_machine,
    array: *mut FFI_ArrowArray,
    schema: *mut FFI_ArrowSchema,
    info: *mut marquetry_batch_info,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        let Some(Product::Batch(converted)) = &machine.product else {
            return Err(Error::misuse("there is no batch to take"));
        };
        if array.is_null() {
            return Err(Error::misuse("a batch is to be written to NULL"));
        }
        if !info.is_null() {
            let batch = &converted.batch;
            let found = marquetry_batch_info {
                struct_size: 0,
                row_group: u64_of(batch.row_group),
                first_row: batch.first_row,
                rows: u64_of(batch.rows),
            };
            arguments::answer(info, found)?;
        }
        let made = converted.record_batch().and_then(|made| {
            let schema = if schema.is_null() { None } else { Some(exported(made.schema_ref())?) };
            Ok((FFI_ArrowArray::new(&StructArray::from(made.clone()).to_data()), schema))
        });
        let (made, made_schema) = match made {
            Ok(made) => reserve::kept(made)?,
            Err(error) => return machine.fail(error),
        };
        match (machine.product.take(), &mut machine.work) {
            (Some(Product::Batch(taken)), Work::Batches(reader)) => reader.took(taken),
            (Some(Product::Batch(taken)), Work::Sstable(sstable)) => sstable.took(taken),
            _ => {}
        }
        arguments::put(array, made)?;
        match made_schema {
            Some(made) => arguments::put(schema, made),
            None => Ok(()),
        }
    });
    answer(done, error)
}
