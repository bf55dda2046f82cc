//! Rows into files, and to standard output.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Instant;

use clap::{Args, ValueEnum};

use marquetry::base::{Codec, Detail, Error};
use marquetry::io::blocking::allow_many_files;
use marquetry::parquet::format::{Compression, Encoding};
use marquetry::parquet::write::{BloomOptions, PageBloomOptions};
use marquetry::tables::parquet::ParquetOptions;
use marquetry::tables::sstables::{Compressor, NewSstablesOptions, WriteCompression};
use marquetry::tables::{
    Address, ColumnPath, Copied, CopyOptions, Destination, MEMORY_BYTES, SortBy, Written, copy,
    durations_as_text,
};
use marquetry::{DestinationOptions, OptionGroup, Target};

use super::Copying;
use crate::failure::{Failure, Outcome};
use crate::numbers::{parse_bytes, parse_count, plural, size, thousands};
use crate::progress::{Goes, Progress};
use crate::table::printable;
use crate::table_args::{noted, say_notes};
use crate::target::Given;

/// How files are written.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FileArgs {
    /// Compression codec [default: snappy; of SSTables lz4]
    #[arg(
        long,
        alias = "compression",
        value_enum,
        ignore_case = true,
        value_name = "CODEC",
        help_heading = "Parquet file"
    )]
    codec: Option<CodecName>,

    /// Compression level; higher is smaller and slower [default: gzip 6 (0 to 9), zstd 3 (to 22), brotli 5 (0
    /// to 11)]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Parquet file")]
    level: Option<i32>,

    /// Encoding of a column, instead of one chosen from its values: 'id=DELTA_BINARY_PACKED'
    ///
    /// Encodings are PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY,
    /// BYTE_STREAM_SPLIT, RLE (for booleans), and ALP (for FLOAT and DOUBLE; few readers support it). Columns
    /// are named as in --columns; a nested column includes everything in it.
    #[arg(long, value_name = "COLUMN=ENCODING", help_heading = "Parquet file")]
    encoding: Vec<String>,

    /// Columns with Bloom filters, which let readers skip row groups without a value: 'id,name'
    ///
    /// Columns are named as in --columns; a nested column includes everything in it. BOOLEAN has none. A filter
    /// takes 10.5 bits per distinct value of a row group, rounded up to a power of two of bytes.
    #[arg(long, value_name = "COLUMNS", help_heading = "Parquet file")]
    bloom: Option<String>,

    /// Target false-positive rate of Bloom filters [default: 0.01]
    #[arg(long, value_name = "N", help_heading = "Parquet file")]
    bloom_fpp: Option<f64>,

    /// Columns whose pages get Bloom filters, which let 'find' skip pages without a value: 'id,name'
    ///
    /// Columns are named as in --columns. The filters are Marquetry's own (docs/page-bloom.md); other readers pass
    /// over them. For each page they take 10.5 bits per distinct value of the fullest page, rounded up to a power of two of bytes.
    #[arg(long, value_name = "COLUMNS", help_heading = "Parquet file")]
    page_bloom: Option<String>,

    /// Target false-positive rate of the Bloom filters of pages [default: 0.01]
    #[arg(long, value_name = "N", help_heading = "Parquet file")]
    page_bloom_fpp: Option<f64>,

    /// Write a locator, by which a few of very many columns are found without reading the footer
    ///
    /// It is Marquetry's own (docs/locator.md); other readers pass over it. It takes at most about as much as the footer.
    #[arg(long, help_heading = "Parquet file")]
    locator: bool,

    /// Maximum rows per row group [default: 1048576]
    #[arg(long, value_parser = parse_count::<NonZeroU64>, value_name = "N", help_heading = "Parquet file")]
    row_group_rows: Option<NonZeroU64>,

    /// Approximate size of a row group, encoded and compressed: 128M or 134217728 [default: 256M]
    #[arg(long, value_parser = parse_bytes::<NonZeroU64>, value_name = "BYTES", help_heading = "Parquet file")]
    row_group_bytes: Option<NonZeroU64>,

    /// Maximum size of the footer [default: 100000000, the most that pyarrow and Spark read]
    #[arg(long, value_parser = parse_bytes::<NonZeroU64>, value_name = "BYTES", help_heading = "Parquet file")]
    footer_bytes: Option<NonZeroU64>,

    /// Maximum rows per page [default: 20000]
    #[arg(long, value_parser = parse_count::<NonZeroUsize>, value_name = "N", help_heading = "Parquet file")]
    page_rows: Option<NonZeroUsize>,

    /// Approximate size of a page before compression [default: 896K]
    #[arg(long, value_parser = parse_bytes::<NonZeroUsize>, value_name = "BYTES", help_heading = "Parquet file")]
    page_bytes: Option<NonZeroUsize>,

    /// Approximate size of a dictionary, beyond which the rest of a column chunk has none [default: 896K]
    ///
    /// Who reads single rows of a file reads the dictionaries of their row groups, too: 32K suits files in which rows are looked up.
    #[arg(long, value_parser = parse_bytes::<NonZeroUsize>, value_name = "BYTES", help_heading = "Parquet file")]
    dictionary_bytes: Option<NonZeroUsize>,

    /// Sort order of the rows: 'day, fare desc nulls first'
    ///
    /// Columns are named as in --columns and cannot be nested. Text is ordered bytewise, numbers by value, and
    /// NaN is greater than all numbers. Nulls are last, unless 'nulls first' is given. The sort is stable.
    #[arg(long, value_name = "COLUMN [desc],…", help_heading = "Output")]
    sort: Option<String>,

    /// Partition columns, with a directory for each value: year=2024/month=2/part-00000.parquet
    ///
    /// These columns are not stored in the files; --hive reads them from the directories' names. There is one
    /// file per directory, and any number of directories; where there are many, rows are sorted by them.
    #[arg(long, value_name = "A,B,…", help_heading = "Parquet file")]
    partition_by: Option<String>,

    /// Maximum rows per file of a directory [default: all]
    #[arg(long, value_parser = parse_count::<NonZeroU64>, value_name = "N", help_heading = "Parquet file")]
    file_rows: Option<NonZeroU64>,

    /// Approximate size of a file of a directory [default: all]
    #[arg(long, value_parser = parse_bytes::<NonZeroU64>, value_name = "BYTES", help_heading = "Parquet file")]
    file_bytes: Option<NonZeroU64>,

    /// Approximate memory for rows that are sorted or on their way between threads [default: 512M]
    ///
    /// Rows to be sorted that exceed it go to a temporary file beside the destination.
    #[arg(
        long,
        alias = "sort-memory",
        value_parser = parse_bytes::<NonZeroU64>,
        value_name = "BYTES",
        help_heading = "Output"
    )]
    memory: Option<NonZeroU64>,

    /// Verify the output: read it back and compare all rows with the input before moving it into place
    ///
    /// The values of every row are compared, by a hash of each, and the order of the rows. Rows that are sorted, or
    /// go to many files, are compared as a whole: by the sum of the hashes, and by their order. Statistics, indexes,
    /// Bloom filters and key-value metadata are not checked. An input file whose rows are not in the order that its
    /// footer claims is an error.
    #[arg(long, help_heading = "Output")]
    verify: bool,

    /// Replace an existing file or directory: its old contents are deleted
    #[arg(long, help_heading = "Output")]
    overwrite: bool,
}

/// How the columns of Parquet files are compressed.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct CodecArgs {
    /// Compression codec [default: snappy]
    #[arg(
        long,
        alias = "compression",
        value_enum,
        ignore_case = true,
        value_name = "CODEC",
        help_heading = "Parquet file"
    )]
    codec: Option<CodecName>,

    /// Compression level; higher is smaller and slower [default: gzip 6 (0 to 9), zstd 3 (to 22), brotli 5 (0
    /// to 11)]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Parquet file")]
    level: Option<i32>,
}

impl CodecArgs {
    pub(crate) fn apply(self, options: &mut ParquetOptions) {
        let column = &mut options.write.column;
        if let Some(codec) = self.codec {
            column.compression = codec.compression();
        }
        column.level = self.level;
    }
}

/// Codecs that every reader supports, and what each is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CodecName {
    /// No compression
    #[value(alias = "none")]
    Uncompressed,
    /// Fast
    Snappy,
    /// Small, but slow; of SSTables, Deflate
    #[value(alias = "deflate")]
    Gzip,
    /// Small and fast
    Zstd,
    /// Fast; older readers lack it
    #[value(name = "lz4_raw", alias = "lz4")]
    Lz4Raw,
    /// Smallest, but slow
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

impl CodecName {
    /// The compressor of SSTables. `None`: none.
    fn compressor(self) -> Outcome<Option<Compressor>> {
        Ok(Some(match self {
            CodecName::Uncompressed => return Ok(None),
            CodecName::Snappy => Compressor::Snappy,
            CodecName::Gzip => Compressor::Deflate,
            CodecName::Zstd => Compressor::Zstd,
            CodecName::Lz4Raw => Compressor::Lz4,
            CodecName::Brotli => {
                return Err(Failure::usage(
                    "SSTables are compressed by lz4, snappy, deflate or zstd, or not (none)",
                ));
            }
        }))
    }
}

impl FileArgs {
    /// The options that are given, and what they have a meaning for.
    pub(super) fn given(&self) -> impl Iterator<Item = Given> {
        use OptionGroup::{Directory, Order, Overwrite, Parquet, SstableOutput, Verify};
        [
            (self.codec.is_some(), "--codec", &[Parquet, SstableOutput][..]),
            (self.level.is_some(), "--level", &[Parquet, SstableOutput]),
            (!self.encoding.is_empty(), "--encoding", &[Parquet]),
            (self.bloom.is_some(), "--bloom", &[Parquet]),
            (self.bloom_fpp.is_some(), "--bloom-fpp", &[Parquet]),
            (self.page_bloom.is_some(), "--page-bloom", &[Parquet]),
            (self.page_bloom_fpp.is_some(), "--page-bloom-fpp", &[Parquet]),
            (self.locator, "--locator", &[Parquet]),
            (self.row_group_rows.is_some(), "--row-group-rows", &[Parquet]),
            (self.row_group_bytes.is_some(), "--row-group-bytes", &[Parquet]),
            (self.footer_bytes.is_some(), "--footer-bytes", &[Parquet]),
            (self.page_rows.is_some(), "--page-rows", &[Parquet]),
            (self.page_bytes.is_some(), "--page-bytes", &[Parquet]),
            (self.dictionary_bytes.is_some(), "--dictionary-bytes", &[Parquet]),
            (self.sort.is_some(), "--sort", &[Order]),
            (self.verify, "--verify", &[Verify]),
            (self.overwrite, "--overwrite", &[Overwrite]),
            (self.partition_by.is_some(), "--partition-by", &[Directory]),
            (self.file_rows.is_some(), "--file-rows", &[Directory]),
            (self.file_bytes.is_some(), "--file-bytes", &[Directory]),
        ]
        .into_iter()
        .filter_map(|(is_given, name, groups)| is_given.then_some((name, groups)))
    }

    /// Rows are sorted.
    pub(super) fn is_sorted(&self) -> bool {
        self.sort.is_some()
    }

    /// The output is read again.
    pub(super) fn verifies(&self) -> bool {
        self.verify
    }

    /// How the destination is written.
    pub(super) fn options(&self) -> Outcome<DestinationOptions> {
        let mut options = DestinationOptions::default();
        options.directory.parquet = self.parquet()?;
        options.directory.partition_by = list("partition_by", self.partition_by.as_deref())?;
        (options.directory.file_rows, options.directory.file_bytes) = (self.file_rows, self.file_bytes);
        Ok(if self.overwrite { options.overwriting() } else { options })
    }

    /// The same options with the compression that is asked for.
    pub(super) fn compressed(&self, mut options: NewSstablesOptions) -> Outcome<NewSstablesOptions> {
        let compressor = match self.codec {
            None => Some(Compressor::Lz4),
            Some(codec) => codec.compressor()?,
        };
        if self.level.is_some() && matches!(compressor, None | Some(Compressor::Lz4 | Compressor::Snappy)) {
            return Err(Failure::usage("--level is for SSTables compressed by zstd or deflate: --codec"));
        }
        options.compression = compressor.map(|compressor| {
            let mut compression = WriteCompression::new(compressor);
            compression.level = self.level;
            compression
        });
        Ok(options)
    }

    /// Copies; returns what is said of it.
    pub(super) fn copy(
        &self,
        copying: &Copying<'_>,
        target: &Target,
        mut destination: Box<dyn Destination>,
    ) -> Outcome<String> {
        let started = Instant::now();
        // Files of a directory wait without a name while they may be open.
        allow_many_files();
        let wrong = |error: Error| error.with(Detail::Option("sort"));
        let sort = self.sort.as_deref().map(SortBy::parse_list).transpose().map_err(wrong)?;
        // What goes into a file within a table is rows, as for any file.
        let is_file = target.takes(OptionGroup::Columns);
        let to = if is_file { &Address::Standard } else { target.address() };
        let source = copying.rows.table.open_for(to, copying.from, copying.interrupted)?;
        if copying.makes_table {
            copying.rows.expect_key(source.table())?;
        }
        if !copying.quiet {
            say_notes(source.table());
        }
        let mut options = CopyOptions::default();
        options.limit = copying.rows.limit;
        options.sort =
            SortBy::resolve(sort.as_deref().unwrap_or_default(), &source.table().schema).map_err(wrong)?;
        options.memory_bytes = self.memory.map_or(MEMORY_BYTES, NonZeroU64::get);
        options.verify = self.verify;
        (options.threads, options.cancel) = (copying.threads.get(), copying.interrupted.cancel());
        let is_sorted = self.sort.is_some();
        let goes = if *target.address() == Address::Standard { Goes::ToStdout } else { Goes::Elsewhere };
        let progress = Progress::of_copy(source.table(), &options, is_sorted, copying.quiet, goes);
        let source = match copying.missing_only {
            true => super::missing::of(copying, &source, target, options.memory_bytes / 2)?,
            false => source,
        };
        let source = if target.is_flat_text() { durations_as_text(&source)? } else { source };
        let watch = destination.watch();
        let metrics = copying.metrics(watch.clone())?;
        let mut report = |copied: &Copied| {
            progress.copied_by(copied, watch.as_ref().map(|watch| watch()));
            metrics.iter().for_each(|metrics| metrics.copied(copied));
        };
        let copied = copy(&source, destination.as_mut(), &options, &mut report);
        progress.clear();
        let is_live = target.takes(OptionGroup::Cluster);
        let copied = copied.map_err(|error| {
            let failure = match destination.progress() {
                // What a live table has stays there.
                Some(Written { rows, .. }) if is_live && !copying.is_dry_run => {
                    Failure::from(error).and(format_args!("{} had been loaded", plural(rows, "row")))
                }
                _ => Failure::from(error),
            };
            destination.notes().iter().fold(failure, Failure::and)
        })?;
        let notes = noted(destination.notes(), &options.lost, copying.quiet);
        let (written, name) = (copied.written, destination.name());
        if copying.json {
            return super::summary_json(copying, &copied, name, notes, started);
        }
        if is_live {
            let again = match written.retries {
                0 => String::new(),
                retries => format!("{} sent again", thousands(retries)),
            };
            return Ok(super::summary(
                written.rows,
                &format!(
                    "{} into {}",
                    if copying.is_dry_run { "would be loaded" } else { "loaded" },
                    printable(name)
                ),
                started,
                &again,
            ));
        }
        let mut what = format!("written to {}: ", printable(name));
        if target.takes(OptionGroup::Directory) || target.takes(OptionGroup::SstableOutput) {
            let files = plural(written.files, "file");
            what.push_str(&format!("{files}, "));
        }
        what.push_str(&size(written.bytes));
        if target.takes(OptionGroup::Parquet) {
            let groups = plural(written.row_groups, "row group");
            what.push_str(&format!(" in {groups}"));
        }
        what.push(',');
        let sorted = copied.sorted_by_way_of.map(|bytes| match bytes {
            0 => "sorted in memory".to_string(),
            bytes => format!("sorted with {} on disk", size(bytes)),
        });
        let more: Vec<String> =
            sorted.into_iter().chain(self.verify.then(|| "verified".to_string())).collect();
        Ok(super::summary(copied.rows, &what, started, &more.join(", ")))
    }

    fn parquet(&self) -> Outcome<ParquetOptions> {
        if self.bloom_fpp.is_some() && self.bloom.is_none() {
            return Err(Failure::usage("--bloom-fpp has no effect without --bloom"));
        }
        if self.page_bloom_fpp.is_some() && self.page_bloom.is_none() {
            return Err(Failure::usage("--page-bloom-fpp has no effect without --page-bloom"));
        }
        let mut options = ParquetOptions::default();
        let write = &mut options.write;
        if let Some(codec) = self.codec {
            write.column.compression = codec.compression();
        }
        write.column.level = self.level;
        write.row_group_rows = self.row_group_rows.map_or(write.row_group_rows, NonZeroU64::get);
        write.row_group_bytes = self.row_group_bytes.map_or(write.row_group_bytes, NonZeroU64::get);
        write.footer_bytes_max = self.footer_bytes.map_or(write.footer_bytes_max, NonZeroU64::get);
        write.page_rows = self.page_rows.map_or(write.page_rows, NonZeroUsize::get);
        write.page_bytes = self.page_bytes.map_or(write.page_bytes, NonZeroUsize::get);
        write.dictionary_bytes = self.dictionary_bytes.map_or(write.dictionary_bytes, NonZeroUsize::get);
        write.locator = self.locator;
        let defaults = BloomOptions::default();
        let bloom = BloomOptions { fpp: self.bloom_fpp.unwrap_or(defaults.fpp), ..defaults };
        options.bloom =
            list("bloom", self.bloom.as_deref())?.into_iter().map(|column| (column, bloom)).collect();
        let defaults = PageBloomOptions::default();
        let bloom = PageBloomOptions { fpp: self.page_bloom_fpp.unwrap_or(defaults.fpp), ..defaults };
        let columns = list("page_bloom", self.page_bloom.as_deref())?;
        options.page_bloom = columns.into_iter().map(|column| (column, bloom)).collect();
        options.encodings = self.encodings()?;
        Ok(options)
    }

    fn encodings(&self) -> Outcome<Vec<(ColumnPath, Encoding)>> {
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
                wrong(&format!("unknown encoding {name}; known are {known}"))
            })?;
            let column = ColumnPath::parse(column).map_err(|error| wrong(error.message()))?;
            Ok((column, encoding))
        };
        self.encoding.iter().map(parse).collect()
    }
}

/// The columns of an option.
fn list(option: &'static str, list: Option<&str>) -> Outcome<Vec<ColumnPath>> {
    let parsed = list.map(ColumnPath::parse_list).transpose();
    Ok(parsed.map_err(|error| error.with(Detail::Option(option)))?.unwrap_or_default())
}
