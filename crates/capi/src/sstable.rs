//! The machine that reads an SSTable, whose batches are handed over as Arrow arrays.

use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use marquetry_arrow::{ArrowOptions, ToArrow};
use marquetry_base::{
    Budget, Detail, Error, Limits, Machine as _, Object, Release as _, Result, Step, release_all,
};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::{SstableOptions, SstableReader};
use marquetry_scylla::cql::{Definitions, TableName};
use marquetry_scylla::sstable::FileName;

use crate::abi::{marquetry_sstable_options, marquetry_status};
use crate::error::answer;
use crate::footer::limits;
use crate::handles::{marquetry_error, marquetry_machine};
use crate::machine::{Work, make, with_machine};
use crate::reader::{Converted, exported};
use crate::{arguments, reserve};

/// Reads batches of an SSTable, for Arrow.
pub(crate) struct Sstable {
    pub(crate) reader: SstableReader,
    /// Made once the schema is known.
    to_arrow: Option<ToArrow>,
    /// The batch that is being converted.
    converting: Option<Batch>,
    /// One that was converted and taken: what of it the arrays do not share is released.
    used: Option<Batch>,
}

impl Sstable {
    fn new(options: *const marquetry_sstable_options) -> Result<Sstable> {
        let given: marquetry_sstable_options = arguments::options(options)?
            .ok_or_else(|| Error::misuse("options of an SSTable that are NULL"))?;
        let option = |name: &'static str, text: String| Error::misuse(text).with(Detail::Option(name));
        let mut files = Vec::new();
        for (number, name) in
            arguments::texts(given.files, given.files_count, "files")?.into_iter().enumerate()
        {
            let parsed = FileName::parse(name)?;
            let parsed = parsed.ok_or_else(|| {
                option(
                    "files",
                    format!("{name} is not the name of an SSTable's file, such as nb-1-big-Data.db"),
                )
            })?;
            let object =
                u32::try_from(number).map_err(|_| Error::too_large("more files than there can be"))?;
            files.push((parsed, Object(object)));
        }
        let mut wanted = SstableOptions::default();
        wanted.limits = shared_out(limits(given.memory_bytes_max), given.memory_bytes_max);
        if let Some(text) = arguments::text(given.definition, "a definition")? {
            let made = Definitions::parse(text);
            wanted.definitions = Some(made.map_err(|error| option("definition", error.to_string()))?);
        }
        if let Some(name) = arguments::text(given.table, "a table's name")? {
            if wanted.definitions.is_none() {
                return Err(option("table", "a table's name without definitions".to_string()));
            }
            let parsed = TableName::parse(name).map_err(|error| option("table", error.to_string()))?;
            if let Some((one, other)) = wanted.definitions.as_ref().and_then(|made| two_of(made, &parsed)) {
                let what = format!("{parsed} may be {one} or {other}: name its keyspace, too");
                return Err(option("table", what));
            }
            wanted.table = Some(parsed);
        }
        let codecs = Arc::new(StandardCodecs::new(wanted.limits));
        let reader = SstableReader::new(&files, codecs, wanted)?;
        Ok(Sstable { reader, to_arrow: None, converting: None, used: None })
    }

    /// All in a section: the columns of what is read, and of what it is mapped to, grow with `Vec`.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Converted>> {
        reserve::section(|| self.advance(budget))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Converted>> {
        if self.used.is_some() && (!self.used.release(budget) || budget.is_spent()) {
            return Ok(Step::Yield);
        }
        if self.converting.is_none() {
            let step = self.reader.step(budget)?;
            if let (None, Some(schema)) = (&self.to_arrow, self.reader.schema()) {
                let pairs = self.reader.key_values()?;
                self.to_arrow = Some(ToArrow::of_table(schema, &pairs, None, ArrowOptions::default())?);
            }
            match step {
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
        let (Some(batch), Some(to_arrow)) = (self.converting.take(), &mut self.to_arrow) else {
            return Err(Error::internal("a batch without a schema"));
        };
        match to_arrow.step(&batch, budget)? {
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

    pub(crate) fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.used, &mut self.converting, &mut self.reader], budget)
    }
}

/// Limits of the parts of an SSTable's reader that hold something at the same time, which together are not more than the most: rows that are
/// collected, a chunk as it is stored and as it is decompressed, the decompressor's window, a value, and what is known of the chunks. Statistics.db
/// takes up to ten times its bytes.
fn shared_out(limits: Limits, memory_bytes_max: u64) -> Limits {
    if memory_bytes_max == 0 {
        return limits;
    }
    let share = |most: u64, eighths: u64| most.min((memory_bytes_max / 8).saturating_mul(eighths).max(1));
    Limits {
        total_bytes: memory_bytes_max / 4,
        page_bytes: share(limits.page_bytes, 1),
        window_bytes: share(limits.window_bytes, 1),
        value_bytes: share(limits.value_bytes, 1),
        footer_bytes: share(limits.footer_bytes, 1),
        page_index_bytes: share(limits.page_index_bytes, 1) / 10,
        ..limits
    }
}

/// Two tables, or views, of different keyspaces that a name without a keyspace may be of.
fn two_of<'a>(made: &'a Definitions, name: &TableName) -> Option<(&'a TableName, &'a TableName)> {
    let all = made.tables.iter().map(|it| &it.table).chain(made.views.iter().map(|it| &it.view));
    let mut all = all.filter(|it| name.keyspace.is_none() && it.table == name.table);
    let first = all.next()?;
    all.find(|other| other.keyspace != first.keyspace).map(|other| (first, other))
}

/// Makes a machine that reads one SSTable, of Cassandra or ScyllaDB, from start to end. Its products are batches: `marquetry_take_batch`, of which
/// `row_group` is always 0. Rows are those of the mapping `full`: rows of the table and deletions, with all write times, TTLs and tombstones
/// (docs/full-mapping.md).
///
/// What it wants are lengths and ranges of the files that `options` names: `object` is the number of the file there.
///
/// * `options`: in, borrowed during the call; must not be NULL.
/// * `machine`: out, owned by the host.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_sstable_new(
    options: *const marquetry_sstable_options,
    machine: *mut *mut marquetry_machine,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    make(machine, error, || reserve::section(|| Sstable::new(options)).map(Work::Sstable))
}

/// The schema of an SSTable's batches: a struct whose fields are the columns. It is known when the first batch is `READY`, or at `DONE`; before, this
/// is an error of kind `MISUSE`. Its metadata have the mapping (`marquetry.mapping`, …), which files of these batches keep.
///
/// * `machine`: in, borrowed.
/// * `schema`: out, owned by the host: its `release`.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_sstable_schema(
    machine: *mut marquetry_machine,
    schema: *mut FFI_ArrowSchema,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| match &machine.work {
        Work::Sstable(Sstable { to_arrow: Some(to_arrow), .. }) => {
            reserve::section(|| arguments::put(schema, reserve::kept(exported(to_arrow.schema())?)?))
        }
        Work::Sstable(_) => Err(Error::misuse("the schema of an SSTable before its first batch")),
        _ => Err(Error::misuse("the schema of a machine that does not read an SSTable")),
    });
    answer(done, error)
}
