//! Rows into a Parquet file.

use std::fs;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};

use marquetry_base::cast::u64_of;
use marquetry_base::{Codec, Error, Object};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::{NewFile, SpillFile};
use marquetry_io::{Sink, Sinks, drive_into};
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::read::Batch;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{BloomOptions, ColumnOptions, Fed, FileWriter, WriteOptions};

use super::Copying;
use crate::columns::{self, Wanted};
use crate::dataset::{Dataset, Hive, TableArgs};
use crate::diff;
use crate::failure::{Failure, Outcome};
use crate::numbers::{plural, size};
use crate::progress::{Goes, Progress};

/// How a Parquet file is written.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FileArgs {
    /// Compress pages [default: snappy]
    #[arg(long, value_enum, value_name = "CODEC", help_heading = "Parquet file")]
    codec: Option<CodecName>,

    /// The codec's level: the higher, the smaller and slower (gzip, zstd, brotli)
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Parquet file")]
    level: Option<i32>,

    /// Encode a column so, rather than by what its values are: 'id=DELTA_BINARY_PACKED'
    ///
    /// Encodings are PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT and,
    /// for booleans, RLE. Columns are named as --columns names them; all that is in a nested one is meant.
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
    #[arg(long, value_name = "N", help_heading = "Parquet file")]
    row_group_rows: Option<NonZeroU64>,

    /// Bytes of a row group, about, encoded and compressed [default: 268435456]
    #[arg(long, value_name = "N", help_heading = "Parquet file")]
    row_group_bytes: Option<NonZeroU64>,

    /// Rows of a page at most [default: 20000]
    #[arg(long, value_name = "N", help_heading = "Parquet file")]
    page_rows: Option<NonZeroUsize>,

    /// Bytes of a page, before compression, about [default: 917504]
    #[arg(long, value_name = "N", help_heading = "Parquet file")]
    page_bytes: Option<NonZeroUsize>,

    /// Read the file back and compare it with what was copied, before it has its name
    #[arg(long, help_heading = "Parquet file")]
    verify: bool,

    /// Replace the file, if there is one
    #[arg(long, help_heading = "Parquet file")]
    overwrite: bool,
}

/// Codecs that every reader has, and what each is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CodecName {
    /// None
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

/// The file that is written, and the one that what is too much for memory waits in.
const FILE: Object = Object(0);
const SPILL: Object = Object(1);

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
            (self.verify, "--verify"),
            (self.overwrite, "--overwrite"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// Copies; says what was done.
    pub(super) fn copy(&self, copying: &Copying<'_>, path: &Path) -> Outcome<String> {
        let started = Instant::now();
        let wishes = self.wishes()?;
        let name = path.display().to_string();
        if !self.overwrite && fs::symlink_metadata(path).is_ok() {
            return Err(Failure::refused(format!(
                "{name}: there is a file already; --overwrite replaces it"
            )));
        }
        let dataset = Dataset::open(copying.from, &copying.rows.table, copying.interrupted)?;
        let schema = Arc::new(dataset.schema().clone());
        let options = self.options(&dataset, &wishes)?;
        let mut writer = FileWriter::new(FILE, schema, Arc::new(StandardCodecs::default()), options)
            .map_err(|error| Failure::about(&name, &error))?;
        let cannot = |error: Error| crate::input::failure(&name, &error, dataset.limits);
        let mut file = NewFile::create(path).map_err(cannot)?;
        let mut spill = SpillFile::create_beside(path).map_err(cannot)?;
        let mut sinks = Sinks::<&mut dyn Sink>::new().with(FILE, &mut file).with(SPILL, &mut spill);
        let mut write = |batch: Batch| -> Result<(), Error> {
            match drive_into(&mut writer, &mut sinks)?.map(|_| writer.feed(batch)).transpose()? {
                Some(Fed::Taken) => Ok(()),
                _ => Err(Error::internal("a writer that asked for rows has no room for them")),
            }
        };
        let wanted = dataset.rows(copying.rows.limit);
        let progress = Progress::new(wanted, copying.quiet, Goes::Elsewhere);
        let mut rows = 0;
        for source in dataset.files() {
            if rows == wanted {
                break;
            }
            let mut batches = dataset.read(source, Some(wanted - rows), false)?;
            while let Some(batch) = batches.next().map_err(|error| source.failure(&error))? {
                copying.interrupted.check()?;
                rows += u64_of(batch.rows);
                write(batch).map_err(cannot)?;
                progress.rows(rows);
            }
        }
        writer.finish();
        while drive_into(&mut writer, &mut sinks).map_err(cannot)?.is_some() {}
        let groups = writer.row_groups();
        drop((writer, sinks));
        progress.clear();
        copying.interrupted.check()?;
        if self.verify {
            verify(copying, &dataset, file.temporary(), &name)?;
        }
        // Somebody may have made a file of that name meanwhile.
        if self.overwrite { file.replace() } else { file.commit() }.map_err(cannot)?;
        let bytes = fs::metadata(path).map(|found| found.len()).unwrap_or_default();
        let what = format!("written to {name}: {} in {},", size(bytes), plural(groups, "row group"));
        Ok(super::summary(rows, &what, started, if self.verify { "verified" } else { "" }))
    }

    fn options(&self, dataset: &Dataset, wishes: &[(Wanted, Wish)]) -> Outcome<WriteOptions> {
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
            for leaf in leaves_of(wish.option(), dataset.schema(), wanted)? {
                let column = options.columns.entry(leaf).or_insert_with(|| options.column.clone());
                match wish {
                    Wish::Encoding(encoding) => column.encoding = Some(*encoding),
                    Wish::Bloom(bloom) => column.bloom = Some(*bloom),
                }
            }
        }
        // What a file says of itself holds where all of it is copied, in the same columns.
        if let Some(metadata) = dataset.only_footer() {
            options.key_values = metadata.key_values.iter().cloned().collect();
            // Rows that were sorted in one row group are in any part of it; those of two need not be.
            if let (1, Some(group)) = (metadata.row_groups.len(), metadata.row_groups.first()) {
                options.sorting_columns = group.sorting_columns.clone();
            }
        }
        Ok(options)
    }

    /// What is asked of single columns.
    fn wishes(&self) -> Outcome<Vec<(Wanted, Wish)>> {
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

/// Reads what was written, and compares it with what was to be.
fn verify(copying: &Copying<'_>, dataset: &Dataset, written: &Path, name: &str) -> Outcome {
    let table = TableArgs { hive: Hive::Off, limits: copying.rows.table.limits, ..TableArgs::default() };
    let again = Dataset::open(&[written.to_path_buf()], &table, copying.interrupted)?;
    let found = diff::compare([dataset, &again], copying.rows.limit, 3, copying.quiet, copying.interrupted)?;
    if found.is_none() {
        return Ok(());
    }
    Err(Failure::bug(format!(
        "{name}: what was written is not what was read, and is removed; {}",
        found.lines("what was read", "what was written").trim_end().replace('\n', "; ")
    )))
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
