//! Rows into Parquet files.

mod check;
mod order;
mod output;
mod partition;

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Codec, Error, ErrorKind};
use marquetry_codecs::levels;
use marquetry_parquet::format::{Compression, Encoding, SortingColumn};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{BloomOptions, ColumnOptions, WriteOptions};

use super::Copying;
use crate::columns::{self, Wanted};
use crate::dataset::Dataset;
use crate::failure::{Failure, Outcome};
use crate::numbers::{parse_bytes, parse_count, plural, size};
use crate::progress::{Goes, Progress};
use check::Whole;
use order::{SortBy, Sorting};
use output::{Directory, OpenFile, Output, SPILL, Shape};
use partition::Partitioning;

/// How a Parquet file is written.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FileArgs {
    /// Compress pages [default: snappy]
    #[arg(long, value_enum, ignore_case = true, value_name = "CODEC", help_heading = "Parquet file")]
    codec: Option<CodecName>,

    /// The codec's level: the higher, the smaller and slower [default: 6 of gzip (0 to 9), 3 of zstd (to 22), 5 of brotli (0 to 11)]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Parquet file")]
    level: Option<i32>,

    /// Encode a column so, rather than by what its values are: 'id=DELTA_BINARY_PACKED'
    ///
    /// Encodings are PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT,
    /// for booleans RLE, and for FLOAT and DOUBLE ALP, which few readers have. Columns are named as --columns names them; all that is in a nested one is meant.
    #[arg(long, value_name = "COLUMN=ENCODING", help_heading = "Parquet file")]
    encoding: Vec<String>,

    /// Write Bloom filters of columns, by which readers pass over row groups without a value: 'id,name'
    ///
    /// Columns are named as --columns names them; all that is in a nested one is meant. BOOLEAN has none. A filter is as small as the
    /// values of a row group allow: 10.5 bits for each that is different, and more, for its bytes are a power of two.
    #[arg(long, value_name = "COLUMNS", help_heading = "Parquet file")]
    bloom: Option<String>,

    /// The share of values that are not there, and that a Bloom filter does not tell from those that are [default: 0.01]
    #[arg(long, value_name = "N", help_heading = "Parquet file")]
    bloom_fpp: Option<f64>,

    /// Rows of a row group at most [default: 1048576]
    #[arg(long, value_parser = parse_count::<NonZeroU64>, value_name = "N", help_heading = "Parquet file")]
    row_group_rows: Option<NonZeroU64>,

    /// Bytes of a row group, about, encoded and compressed: 128M or 134217728 [default: 256M]
    #[arg(long, value_parser = parse_bytes::<NonZeroU64>, value_name = "BYTES", help_heading = "Parquet file")]
    row_group_bytes: Option<NonZeroU64>,

    /// Rows of a page at most [default: 20000]
    #[arg(long, value_parser = parse_count::<NonZeroUsize>, value_name = "N", help_heading = "Parquet file")]
    page_rows: Option<NonZeroUsize>,

    /// Bytes of a page, before compression, about [default: 896K]
    #[arg(long, value_parser = parse_bytes::<NonZeroUsize>, value_name = "BYTES", help_heading = "Parquet file")]
    page_bytes: Option<NonZeroUsize>,

    /// Sort the rows: 'day, fare desc nulls first'
    ///
    /// Columns are named as --columns names them, and are no nested ones. Values have the order that the format defines for their type: text byte by
    /// byte, numbers by value, and NaN is more than any. Nulls are last, unless 'nulls first' says otherwise. Rows that are equal stay as they came.
    #[arg(long, value_name = "COLUMN [desc],…", help_heading = "Parquet file")]
    sort: Option<String>,

    /// Make a directory of each value of these columns: year=2024/month=2/part-00000.parquet
    ///
    /// The columns are not in the files; --hive reads them from the directories' names. Rows are sorted by them first, so that there is one file for
    /// each directory, and any number of directories.
    #[arg(long, value_name = "A,B,…", help_heading = "Parquet file")]
    partition_by: Option<String>,

    /// Rows of a file of a directory, at most [default: all]
    #[arg(long, value_parser = parse_count::<NonZeroU64>, value_name = "N", help_heading = "Parquet file")]
    file_rows: Option<NonZeroU64>,

    /// Bytes of a file of a directory, about [default: all]
    #[arg(long, value_parser = parse_bytes::<NonZeroU64>, value_name = "BYTES", help_heading = "Parquet file")]
    file_bytes: Option<NonZeroU64>,

    /// Bytes of rows that are sorted in memory, about; more wait in a temporary file beside the target [default: 512M]
    #[arg(long, value_parser = parse_bytes::<NonZeroU64>, value_name = "BYTES", help_heading = "Parquet file")]
    sort_memory: Option<NonZeroU64>,

    /// Read the file back and compare it with what was copied, before it has its name
    ///
    /// Rows that are sorted, or go to many files, are compared as a whole: the sum of a hash of each has to be the same; and they have to be in order.
    #[arg(long, help_heading = "Parquet file")]
    verify: bool,

    /// Replace the file or directory, if there is one
    #[arg(long, help_heading = "Parquet file")]
    overwrite: bool,
}

/// Where the rows go.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// A file.
    File(&'a Path),
    /// A directory of files.
    Directory(&'a Path),
}

/// Codecs that every reader has, and what each is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CodecName {
    /// None
    #[value(alias = "none")]
    Uncompressed,
    /// Fast
    Snappy,
    /// Small, and slow
    Gzip,
    /// Small, and fast
    Zstd,
    /// Fast; older readers do not have it
    #[value(name = "lz4_raw")]
    Lz4Raw,
    /// Smallest, and slow
    Brotli,
}

impl CodecName {
    fn compression(self) -> Compression {
        Compression::Codec(match self {
            CodecName::Uncompressed => return Compression::Uncompressed,
            CodecName::Snappy => Codec::Snappy,
            CodecName::Gzip => Codec::Gzip,
            CodecName::Zstd => Codec::Zstd,
            CodecName::Lz4Raw => Codec::Lz4Raw,
            CodecName::Brotli => Codec::Brotli,
        })
    }
}

impl FileArgs {
    /// An option that is given and has no meaning elsewhere.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.codec.is_some(), "--codec"),
            (self.level.is_some(), "--level"),
            (!self.encoding.is_empty(), "--encoding"),
            (self.bloom.is_some(), "--bloom"),
            (self.bloom_fpp.is_some(), "--bloom-fpp"),
            (self.row_group_rows.is_some(), "--row-group-rows"),
            (self.row_group_bytes.is_some(), "--row-group-bytes"),
            (self.page_rows.is_some(), "--page-rows"),
            (self.page_bytes.is_some(), "--page-bytes"),
            (self.sort.is_some(), "--sort"),
            (self.sort_memory.is_some(), "--sort-memory"),
            (self.verify, "--verify"),
            (self.overwrite, "--overwrite"),
        ];
        let found = given.into_iter().find(|given| given.0).map(|given| given.1);
        found.or(self.given_for_directories())
    }

    /// An option that is given and has a meaning for directories only.
    pub(super) fn given_for_directories(&self) -> Option<&'static str> {
        let given = [
            (self.partition_by.is_some(), "--partition-by"),
            (self.file_rows.is_some(), "--file-rows"),
            (self.file_bytes.is_some(), "--file-bytes"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// Copies; says what was done.
    pub(super) fn copy(&self, copying: &Copying<'_>, place: Place<'_>) -> Outcome<String> {
        let started = Instant::now();
        let wishes = self.wishes()?;
        let sort = self.sort.as_deref().map(order::parse).transpose()?.unwrap_or_default();
        let (Place::File(path) | Place::Directory(path)) = place;
        if !self.overwrite {
            output::refuse_existing(place)?;
        }
        let dataset = Dataset::open(copying.from, &copying.rows.table, copying.interrupted)?;
        let name = path.display().to_string();
        let plan = self.plan(&dataset, &wishes, &sort)?;
        let Plan { shape, partitioning, sorted_by, file_sorted_by } = plan;
        let leaves = (0..dataset.schema().leaves().len()).collect::<Vec<usize>>();
        let kept = match &partitioning {
            Some(partitioning) => {
                leaves.into_iter().filter(|leaf| !partitioning.leaves().contains(leaf)).collect()
            }
            None => leaves,
        };
        // Rows that are written to one file as they come can be compared one by one.
        let is_as_read = matches!(place, Place::File(_)) && sorted_by.is_empty();
        let mut whole =
            (self.verify && !is_as_read).then(|| Whole::new(kept, file_sorted_by, partitioning.is_none()));
        let mut output = match place {
            Place::File(path) => Output::file(&shape, path)?,
            Place::Directory(path) => {
                let (rows, bytes) = (self.file_rows, self.file_bytes);
                let partitioning = partitioning.clone();
                let directory = Directory::new(shape, path, partitioning, rows, bytes, self.overwrite)?;
                Output::Directory(Box::new(directory))
            }
        };
        // What is wrong with rows is told of where they came from, what is with files of where they go.
        let cannot = |error: Error| match error.kind() {
            ErrorKind::Io if copying.interrupted.is_set() => Failure::Interrupted,
            ErrorKind::Io => crate::input::failure(&name, &error, dataset.limits),
            _ => Failure::about(dataset.subject(), &error),
        };
        let mut sorting = match &*sorted_by {
            [] => None,
            by => {
                let memory = self.sort_memory.map_or(SORT_MEMORY_BYTES, NonZeroU64::get);
                let schema = Arc::new(dataset.schema().clone());
                Some(Sorting::new(schema, by, memory, path, copying.interrupted).map_err(cannot)?)
            }
        };
        let wanted = dataset.rows(copying.rows.limit);
        // Sorted rows are done twice.
        let times = if sorting.is_some() { 2 } else { 1 };
        let progress = Progress::new(wanted.saturating_mul(times), copying.quiet, Goes::Elsewhere);
        let mut rows = 0;
        for source in dataset.files() {
            if rows == wanted {
                break;
            }
            let mut batches = dataset.read(source, Some(wanted - rows), false)?;
            while let Some(batch) = batches.next().map_err(|error| source.failure(&error))? {
                copying.interrupted.check()?;
                rows += u64_of(batch.rows);
                if let Some(whole) = &mut whole {
                    whole.read(&batch, partitioning.as_deref())?;
                }
                match &mut sorting {
                    Some(sorting) => sorting.push(batch).map_err(cannot)?,
                    None => output.write(batch, &mut look(copying, &mut whole))?,
                }
                progress.rows(rows);
            }
        }
        if let Some(sorting) = &mut sorting {
            let mut sorted = rows;
            while let Some(batch) = sorting.next().map_err(cannot)? {
                copying.interrupted.check()?;
                sorted += u64_of(batch.rows);
                output.write(batch, &mut look(copying, &mut whole))?;
                progress.rows(sorted);
            }
        }
        let written = output.finish(&mut look(copying, &mut whole))?;
        progress.clear();
        copying.interrupted.check()?;
        match (&whole, &output) {
            (Some(whole), _) => whole.finish(&name)?,
            (None, Output::File(open)) if self.verify => check::rows(copying, &dataset, open)?,
            _ => {}
        }
        output.commit(self.overwrite)?;
        let files = match place {
            Place::File(_) => String::new(),
            Place::Directory(_) => format!("{}, ", plural(written.files, "file")),
        };
        let groups = plural(written.row_groups, "row group");
        let what = format!("written to {name}: {files}{} in {groups},", size(written.bytes));
        let mut more = Vec::new();
        if let Some(sorting) = &sorting {
            more.push(match sorting.told() {
                0 => "sorted in memory".to_string(),
                bytes => format!("sorted by way of {} on the disk", size(bytes)),
            });
        }
        if self.verify {
            more.push("verified".to_string());
        }
        Ok(super::summary(rows, &what, started, &more.join(", ")))
    }

    /// What is written, and in which order.
    fn plan(&self, dataset: &Dataset, wishes: &[(Wanted, Wish)], sort: &[SortBy]) -> Outcome<Plan> {
        let all = dataset.schema();
        let partitioning =
            self.partition_by.as_deref().map(|list| Partitioning::new(list, all)).transpose()?;
        let partitioning = partitioning.map(Arc::new);
        let by = order::resolve(sort, all)?;
        let (schema, mut sorted_by, without) = match &partitioning {
            Some(partitioning) => (partitioning.schema.clone(), partitioning.order()?, partitioning.leaves()),
            None => (all.clone(), Vec::new(), Vec::new()),
        };
        let numbers = order::renumbered(all.leaves().len(), &without);
        let mut file_sorted_by = Vec::new();
        for column in by {
            // A column of the directories is the same in all rows of a file.
            if let Some(number) = numbers.get(usize_of_u32(column.column)).copied().flatten() {
                sorted_by.push(column);
                file_sorted_by.push(SortingColumn { column: number, ..column });
            }
        }
        let mut options = self.options(&schema, wishes)?;
        options.key_values = dataset.key_values_of(&schema).cloned().collect();
        if let (Some(metadata), None) = (dataset.only_footer(), &partitioning) {
            // Rows that were sorted in one row group are in any part of it; those of two need not be.
            if let (1, Some(group), true) =
                (metadata.row_groups.len(), metadata.row_groups.first(), sorted_by.is_empty())
            {
                options.sorting_columns = group.sorting_columns.clone();
            }
        }
        if !file_sorted_by.is_empty() {
            options.sorting_columns = file_sorted_by.clone();
        }
        let shape = Shape { schema: Arc::new(schema), options, limits: dataset.limits };
        Ok(Plan { shape, partitioning, sorted_by, file_sorted_by })
    }

    fn options(&self, schema: &Schema, wishes: &[(Wanted, Wish)]) -> Outcome<WriteOptions> {
        let defaults = WriteOptions::default();
        let column = ColumnOptions {
            compression: self.codec.map_or(defaults.column.compression, CodecName::compression),
            level: self.level,
            ..defaults.column
        };
        let mut options = WriteOptions {
            row_group_rows: self.row_group_rows.map_or(defaults.row_group_rows, NonZeroU64::get),
            row_group_bytes: self.row_group_bytes.map_or(defaults.row_group_bytes, NonZeroU64::get),
            page_rows: self.page_rows.map_or(defaults.page_rows, NonZeroUsize::get),
            page_bytes: self.page_bytes.map_or(defaults.page_bytes, NonZeroUsize::get),
            spill: Some(SPILL),
            column,
            ..WriteOptions::default()
        };
        for (wanted, wish) in wishes {
            for leaf in leaves_of(wish.option(), schema, wanted)? {
                let column = options.columns.entry(leaf).or_insert_with(|| options.column.clone());
                match wish {
                    Wish::Encoding(encoding) => column.encoding = Some(*encoding),
                    Wish::Bloom(bloom) => column.bloom = Some(*bloom),
                }
            }
        }
        Ok(options)
    }

    /// What is asked of single columns.
    fn wishes(&self) -> Outcome<Vec<(Wanted, Wish)>> {
        if self.sort_memory.is_some() && self.sort.is_none() && self.partition_by.is_none() {
            return Err(Failure::usage("--sort-memory: nothing is sorted; --sort says by what"));
        }
        self.check_level()?;
        let mut wishes = self.encodings()?;
        let defaults = BloomOptions::default();
        let fpp = self.bloom_fpp.unwrap_or(defaults.fpp);
        if !(fpp > 0.0 && fpp < 1.0) {
            return Err(Failure::usage(format!("--bloom-fpp {fpp}: a share is more than 0 and less than 1")));
        }
        match (&self.bloom, self.bloom_fpp) {
            (Some(list), _) => {
                let bloom = Wish::Bloom(BloomOptions { fpp, ..defaults });
                wishes
                    .extend(columns::parse_list("--bloom", list)?.into_iter().map(|column| (column, bloom)));
            }
            (None, Some(_)) => return Err(Failure::usage("--bloom-fpp: of no columns; --bloom names them")),
            (None, None) => {}
        }
        Ok(wishes)
    }

    /// Whether the codec has the level.
    fn check_level(&self) -> Outcome {
        let Some(level) = self.level else { return Ok(()) };
        let compression =
            self.codec.map_or(WriteOptions::default().column.compression, CodecName::compression);
        let levels = match compression {
            Compression::Codec(codec) => levels(codec),
            _ => None,
        };
        match levels {
            Some(levels) if (levels.least..=levels.most).contains(&level) => Ok(()),
            Some(levels) => Err(Failure::usage(format!(
                "--level {level}: {compression} has the levels {} to {}",
                levels.least, levels.most
            ))),
            None => Err(Failure::usage(format!(
                "--level {level}: {compression} has no levels; gzip, zstd and brotli have (--codec)"
            ))),
        }
    }

    fn encodings(&self) -> Outcome<Vec<(Wanted, Wish)>> {
        let known = [
            Encoding::Plain,
            Encoding::RleDictionary,
            Encoding::DeltaBinaryPacked,
            Encoding::DeltaLengthByteArray,
            Encoding::DeltaByteArray,
            Encoding::ByteStreamSplit,
            Encoding::Rle,
            Encoding::Alp,
        ];
        let parse = |text: &String| {
            let wrong = |why: &str| Failure::usage(format!("--encoding '{text}': {why}"));
            let (column, name) =
                text.rsplit_once('=').ok_or_else(|| wrong("a column, '=', and an encoding: id=PLAIN"))?;
            let encoding = known.into_iter().find(|known| known.to_string().eq_ignore_ascii_case(name));
            let encoding = encoding.ok_or_else(|| {
                let known = known.map(|known| known.to_string()).join(", ");
                wrong(&format!("there is no encoding {name}; there are {known}"))
            })?;
            let mut wanted = columns::parse_list("--encoding", column)?;
            match (wanted.pop(), wanted.is_empty()) {
                (Some(column), true) => Ok((column, Wish::Encoding(encoding))),
                _ => Err(wrong("one column at a time")),
            }
        };
        self.encoding.iter().map(parse).collect()
    }
}

/// What is asked of a single column.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Encoding(Encoding),
    Bloom(BloomOptions),
}

impl Wish {
    /// The option that asks it.
    fn option(self) -> &'static str {
        match self {
            Wish::Encoding(_) => "--encoding",
            Wish::Bloom(_) => "--bloom",
        }
    }
}

/// Bytes of rows that are sorted in memory, unless it is said.
const SORT_MEMORY_BYTES: u64 = 512 << 20;

/// What is written, and in which order.
struct Plan {
    shape: Shape,
    partitioning: Option<Arc<Partitioning>>,
    /// The order of all rows, by leaves of what is read; and that of a file's, by its own.
    sorted_by: Vec<SortingColumn>,
    file_sorted_by: Vec<SortingColumn>,
}

/// Looks at each file that is whole, where that is wanted.
fn look<'a>(
    copying: &'a Copying<'_>,
    whole: &'a mut Option<Whole>,
) -> impl FnMut(&OpenFile, &Path) -> Outcome + 'a {
    move |file, below| match whole {
        Some(whole) => whole.written(copying, file, below),
        None => Ok(()),
    }
}

/// The leaves of a column that a person names.
fn leaves_of(option: &str, schema: &Schema, wanted: &Wanted) -> Outcome<Vec<usize>> {
    let dotted = wanted.dotted();
    let is_in =
        |path: &str| path.strip_prefix(&*dotted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let leaves: Vec<usize> =
        schema.leaves().iter().enumerate().filter(|(_, leaf)| is_in(&leaf.path)).map(|(at, _)| at).collect();
    if leaves.is_empty() {
        let names: Vec<&str> = schema.leaves().iter().take(20).map(|leaf| &*leaf.path).collect();
        let message = format!("{option}: there is no column {dotted}; columns are {}", names.join(", "));
        return Err(Failure::usage(message));
    }
    Ok(leaves)
}
