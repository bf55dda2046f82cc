//! The machine that writes a file from Arrow arrays.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::{RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Schema as ArrowSchema, SchemaRef};
use marquetry_arrow::FromArrow;
use marquetry_base::{Budget, Codec, Detail, Error, Machine as _, Price, Release, Result, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::format::Compression;
use marquetry_parquet::write::{
    BloomOptions, ColumnOptions, Fed, FileWriter, PageVersion, Room, WriteOptions,
};

use crate::abi::{marquetry_column_options, marquetry_status, marquetry_writer_options};
use crate::error::answer;
use crate::handles::{marquetry_error, marquetry_machine};
use crate::machine::{FILE, Work, make, with_machine};
use crate::reader::leaves_at;
use crate::{arguments, arrays, reserve};

/// The price of checking an array against its type, which is arrow-rs's own work: text must be UTF-8.
const CHECK_PRICE: Price = Price { kib: 800, kilovalue: 8 << 10 };

/// Writes what it is fed.
pub(crate) struct Writer {
    schema: SchemaRef,
    from_arrow: FromArrow,
    writer: FileWriter,
    /// What was fed, the columns of it that were checked, and then the rows that were converted.
    fed: Option<RecordBatch>,
    checked: usize,
    converted: usize,
    is_finished: bool,
    trusts: bool,
}

impl Writer {
    fn new(schema: &FFI_ArrowSchema, options: *const marquetry_writer_options) -> Result<Writer> {
        let given = arguments::options_or_default(options)?;
        arrays::check_schema(schema)?;
        let schema = reserve::section(|| ArrowSchema::try_from(schema));
        let schema = schema.map_err(|error| Error::misuse(format!("not a schema: {error}")))?;
        let schema = Arc::new(schema);
        let from_arrow = reserve::section(|| FromArrow::new(&schema))?;
        let all = column(&ColumnOptions::default(), (given.compression, given.has_level, given.level))?;
        let mut options = WriteOptions { column: all, ..WriteOptions::default() };
        options.page_version = match given.page_version {
            0 | 1 => PageVersion::V1,
            2 => PageVersion::V2,
            other => return Err(Error::option("page_version", format!("{other}, which is neither 1 nor 2"))),
        };
        if given.row_group_rows > 0 {
            options.row_group_rows = given.row_group_rows;
        }
        if given.row_group_bytes > 0 {
            options.row_group_bytes = given.row_group_bytes;
        }
        options.page_rows = arguments::or_default(given.page_rows, options.page_rows, "page_rows")?;
        options.page_bytes = arguments::or_default(given.page_bytes, options.page_bytes, "page_bytes")?;
        options.crc = !arguments::flag(given.no_crc, "no_crc")?;
        options.page_index = !arguments::flag(given.no_page_index, "no_page_index")?;
        if !arguments::flag(given.no_arrow_schema, "no_arrow_schema")? {
            options.key_values.push(reserve::section(|| from_arrow.key_value()));
        }
        for &single in arguments::array(given.columns, given.columns_count, "columns")? {
            let single: marquetry_column_options = arguments::options(single)?
                .ok_or_else(|| Error::misuse("options of a column that are NULL"))?;
            let path = arguments::text(single.path, "a column's path")?;
            let path = path.ok_or_else(|| Error::misuse("options of a column whose path is NULL"))?;
            let mut of_column =
                column(&options.column, (single.compression, single.has_level, single.level))?;
            of_column.dictionary = !arguments::flag(single.no_dictionary, "no_dictionary")?;
            of_column.bounds = !arguments::flag(single.no_bounds, "no_bounds")?;
            if arguments::flag(single.bloom_filter, "bloom_filter")? {
                of_column.bloom = Some(BloomOptions::default());
            }
            for leaf in leaves_at(from_arrow.schema(), path)? {
                options.columns.insert(leaf, of_column.clone());
            }
        }
        let trusts = arguments::flag(given.trust_arrays, "trust_arrays")?;
        let leaves = from_arrow.schema().leaves().len();
        for leaf in 0..leaves {
            options.of(leaf).check_leaf(from_arrow.schema(), leaf, &options.limits)?;
        }
        let codecs = Arc::new(StandardCodecs::default());
        let writer = FileWriter::new(FILE, Arc::clone(from_arrow.schema()), codecs, options)?;
        let (fed, checked, converted, is_finished) = (None, 0, 0, false);
        Ok(Writer { schema, from_arrow, writer, fed, checked, converted, is_finished, trusts })
    }

    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<()>> {
        loop {
            // The engine's writer asks for some of its buffers without a way to be refused.
            match reserve::section(|| self.writer.step(budget))? {
                Step::Ready(Room) => {}
                Step::Need(demand) => return Ok(Step::Need(demand)),
                Step::Append(object, bytes) => return Ok(Step::Append(object, bytes)),
                Step::Yield => return Ok(Step::Yield),
                Step::Done => return Ok(Step::Done),
            }
            let Some(fed) = &self.fed else {
                if !self.is_finished {
                    return Ok(Step::Ready(()));
                }
                self.writer.finish();
                continue;
            };
            if self.checked < fed.num_columns() {
                let column = fed.column(self.checked).to_data();
                let name = self.schema.field(self.checked).name();
                let valid = reserve::section(|| column.validate_full());
                valid.map_err(|error| refused(&error).at(|place| place.column = Some(name.clone())))?;
                let bytes = column.get_slice_memory_size().unwrap_or(0);
                budget.charge(CHECK_PRICE, bytes, column.len());
                self.checked += 1;
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
                continue;
            }
            if self.converted < fed.num_rows() {
                let batch = reserve::section(|| self.from_arrow.part(fed, self.converted, budget))?;
                // The next step has more.
                let Some(batch) = batch else { return Ok(Step::Yield) };
                reserve::kept(())?;
                let rows = batch.rows;
                if let Fed::Full(_) = self.writer.feed(batch)? {
                    return Err(Error::internal("a writer that has room, and has none"));
                }
                self.converted += rows;
            }
            if self.converted >= fed.num_rows() {
                (self.fed, self.converted) = (None, 0);
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }

    pub(crate) fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        // The host's own release function does it.
        self.fed = None;
        self.writer.release(budget)
    }

    fn feed(&mut self, array: FFI_ArrowArray) -> Result<()> {
        let fields = self.schema.fields();
        arrays::check(&array, &DataType::Struct(fields.clone()))?;
        let made = reserve::section(|| {
            // SAFETY: the host promises an array of the schema that the writer was made with, as Arrow's C Data Interface lays it out. Its shape was
            // checked; its values are, before anything looks at them, unless the host vouches for them.
            let data = unsafe { from_ffi_and_data_type(array, DataType::Struct(fields.clone())) };
            let data = data.map_err(|error| refused(&error))?;
            if data.null_count() > 0 {
                return Err(Error::misuse("rows that are null as a whole"));
            }
            let rows = data.len();
            let array = StructArray::from(data);
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let columns = array.columns().to_vec();
            RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
                .map_err(|error| refused(&error))
        })?;
        self.checked = if self.trusts { made.num_columns() } else { 0 };
        self.fed = Some(reserve::kept(made)?);
        self.converted = 0;
        Ok(())
    }
}

fn refused(error: &arrow_schema::ArrowError) -> Error {
    Error::misuse(format!("not an array of the writer's schema: {error}"))
}

/// How columns are written.
fn column(
    other: &ColumnOptions,
    (compression, has_level, level): (*const core::ffi::c_char, i32, i32),
) -> Result<ColumnOptions> {
    let mut options = other.clone();
    if let Some(name) = arguments::text(compression, "a codec's name")? {
        (options.compression, options.level) = (codec(name)?, None);
    }
    if arguments::flag(has_level, "has_level")? {
        options.level = Some(level);
    }
    if let (Compression::Codec(codec), Some(level)) = (options.compression, options.level) {
        let levels = marquetry_codecs::levels(codec);
        if !levels.is_some_and(|levels| (levels.least..=levels.most).contains(&level)) {
            return Err(Error::option("level", format!("{} has no level {level}", codec.name())));
        }
    }
    Ok(options)
}

fn codec(name: &str) -> Result<Compression> {
    Ok(Compression::Codec(match name.to_ascii_uppercase().as_str() {
        "NONE" | "UNCOMPRESSED" => return Ok(Compression::Uncompressed),
        "SNAPPY" => Codec::Snappy,
        "GZIP" => Codec::Gzip,
        "ZSTD" => Codec::Zstd,
        "BROTLI" => Codec::Brotli,
        "LZ4_RAW" => Codec::Lz4Raw,
        "LZ4" => Codec::Lz4,
        _ => {
            let what = format!("{name} is no codec: SNAPPY, ZSTD, GZIP, LZ4_RAW, BROTLI, LZ4 or NONE");
            return Err(Error::misuse(what).with(Detail::Option("compression")));
        }
    }))
}

/// Makes a machine that writes a file. `READY` means that it has room for rows: `marquetry_feed`, or `marquetry_finish`; `APPEND`, that
/// `marquetry_take_append` has bytes for the file.
///
/// * `schema`: in, borrowed during the call: a struct whose fields are the columns.
/// * `options`: in, borrowed; NULL: the defaults.
/// * `machine`: out, owned by the host.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_writer_new(
    schema: *const FFI_ArrowSchema,
    options: *const marquetry_writer_options,
    machine: *mut *mut marquetry_machine,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    make(machine, error, || {
        if schema.is_null() {
            return Err(Error::misuse("a schema that is NULL"));
        }
        // SAFETY: the host promises a schema, which stays as it is during the call.
        let schema = unsafe { &*schema };
        if schema.release().is_none() {
            return Err(Error::misuse("a schema that was released"));
        }
        Writer::new(schema, options).map(Work::Writer)
    })
}

/// Hands rows over. `FULL` means that there is no room yet: then nothing was taken; step, and feed again. The array's shape is checked at once: its
/// numbers, and the pointers that must be there. Its values are checked, unless `trust_arrays` is set, and converted by the steps that follow, whose error
/// then says what is wrong.
///
/// * `machine`: in, borrowed.
/// * `array`: in; taken (its `release` is then NULL) unless the answer is `FULL` or the call is a misuse of the machine. A struct of the
///   writer's schema. It is released when it is not needed any more, on a thread that uses the machine.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_feed(
    machine: *mut marquetry_machine,
    array: *mut FFI_ArrowArray,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        let Work::Writer(writer) = &mut machine.work else {
            return Err(Error::misuse("rows for a machine that does not write"));
        };
        if writer.is_finished {
            return Err(Error::misuse("rows for a file that is finished"));
        }
        if array.is_null() {
            return Err(Error::misuse("an array that is NULL"));
        }
        if writer.fed.is_some() {
            return Ok(marquetry_status::Full);
        }
        // SAFETY: the host promises an array, which it hands over: it is empty afterwards.
        let array = unsafe { FFI_ArrowArray::from_raw(array) };
        if array.is_released() {
            return Err(Error::misuse("an array that was released"));
        }
        match writer.feed(array) {
            Ok(()) => {
                machine.product = None;
                Ok(marquetry_status::Ok)
            }
            Err(error) => machine.fail(error),
        }
    });
    answer(done, error)
}

/// Ends the rows: after `APPEND`s a step then answers `DONE`, and the file is complete.
///
/// * `machine`: in, borrowed.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_finish(
    machine: *mut marquetry_machine,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| match &mut machine.work {
        Work::Writer(writer) => {
            writer.is_finished = true;
            Ok(())
        }
        _ => Err(Error::misuse("the end of rows for a machine that does not write")),
    });
    answer(done, error)
}
