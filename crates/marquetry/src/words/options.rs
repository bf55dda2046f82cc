//! Options by their names, and how the text of each is taken.

use std::num::{NonZeroU64, NonZeroUsize};
#[cfg(feature = "cluster")]
use std::path::PathBuf;
#[cfg(feature = "cluster")]
use std::time::Duration;
use std::{fs, mem};

use marquetry_base::{Codec, Error, Limits, Result};
#[cfg(feature = "cluster")]
use marquetry_cluster::{TableLayout, TlsOptions, UnloadOptions};
use marquetry_parquet::format::Compression;
use marquetry_parquet::print;
use marquetry_parquet::write::{BloomOptions, PageBloomOptions};
use marquetry_scylla::bridge::{InvalidUtf8, MappingOptions};
use marquetry_scylla::cql::{KeySpec, Name, TableName};
use marquetry_tables::files::Hive;
use marquetry_tables::parquet::ParquetOptions;
use marquetry_tables::sstables::{
    Compressor, MutationMapping, NewSstablesOptions, WriteCompression, time_at,
};
use marquetry_tables::stamps::{Ttl, WriteTimes};
use marquetry_tables::text::{Encoding, TextOptions};
use marquetry_tables::{ColumnPath, CopyOptions, Rename, SortBy, TokenRange};

use super::values::{
    InputFormat, are_millis, character, codec, count, duplicate_keys, encodings, format, header, hive,
    input_format, invalid_utf8, mapping, null_elements, nulls, parsed, path, positive, short_rows,
};
#[cfg(feature = "cluster")]
use super::values::{layout, name};
use crate::{DestinationOptions, OptionGroup, OutputFormat, Target};

/// What the options say.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) union: bool,
    pub(super) hive: Hive,
    pub(super) text: TextOptions,
    pub(super) skip_lines: u64,
    pub(super) encoding: Option<Encoding>,
    pub(super) from: Option<InputFormat>,
    pub(super) mapping: Option<MutationMapping>,
    pub(super) at: Option<u32>,
    pub(super) tokens: Option<TokenRange>,
    pub(super) columns: Option<Vec<ColumnPath>>,
    pub(super) predicate: Option<String>,
    pub(super) types: Option<String>,
    pub(super) rename: Option<String>,
    pub(super) limit: Option<u64>,
    pub(super) to: Option<OutputFormat>,
    /// What a table of a cluster has instead of rows.
    #[cfg(feature = "cluster")]
    pub(super) layout: Option<OutputFormat>,
    pub(super) destination: DestinationOptions,
    pub(super) overwrites: bool,
    pub(super) rows: MappingOptions,
    pub(super) timestamp: WriteTimes,
    pub(super) ttl: Option<Ttl>,
    #[cfg(feature = "cluster")]
    pub(super) unload: UnloadOptions,
    pub(super) sort: Vec<SortBy>,
    pub(super) copy: CopyOptions,
    /// Whether sizes in files are as large as they may be.
    pub(super) trusts: bool,
    /// What the table calls the columns.
    pub(super) map: Rename,
    pub(super) codec: Option<Compression>,
    pub(super) level: Option<i32>,
    pub(super) bloom: Vec<ColumnPath>,
    pub(super) bloom_fpp: Option<f64>,
    pub(super) page_bloom: Vec<ColumnPath>,
    pub(super) page_bloom_fpp: Option<f64>,
    /// Where a load keeps how far it is, and whether it goes on from there.
    #[cfg(feature = "cluster")]
    pub(super) state: Option<PathBuf>,
    #[cfg(feature = "cluster")]
    pub(super) resumes: bool,
    #[cfg(feature = "cluster")]
    pub(super) missing_only: bool,
    /// Whether connections are encrypted, whatever else is said of that.
    #[cfg(feature = "cluster")]
    pub(super) encrypts: bool,
    #[cfg(feature = "cluster")]
    pub(super) tls: TlsOptions,
}

impl Options {
    /// The largest sizes in files.
    pub(super) fn limits(&self) -> Limits {
        if self.trusts { Limits::TRUSTED } else { Limits::DEFAULT }
    }

    /// How a destination is written, but for how a cluster is talked to.
    ///
    /// # Errors
    ///
    /// `Misuse` for options that want another one beside them, and for compression that SSTables do not have.
    pub(super) fn writing(&self, target: &Target) -> Result<DestinationOptions> {
        let rows = MappingOptions { limits: self.limits(), ..self.rows.clone() };
        let mut options = self.destination.clone().mapped_by(rows);
        let parquet = &mut options.directory.parquet;
        let column = &mut parquet.write.column;
        (column.compression, column.level) = (self.codec.unwrap_or(column.compression), self.level);
        let is_alone = |fpp: Option<f64>, columns: &[ColumnPath]| fpp.is_some() && columns.is_empty();
        if is_alone(self.bloom_fpp, &self.bloom) {
            return Err(Error::option("bloom_fpp", "this has no effect without bloom"));
        }
        if is_alone(self.page_bloom_fpp, &self.page_bloom) {
            return Err(Error::option("page_bloom_fpp", "this has no effect without page_bloom"));
        }
        let default = BloomOptions::default();
        let bloom = BloomOptions { fpp: self.bloom_fpp.unwrap_or(default.fpp), ..default };
        parquet.bloom = self.bloom.iter().map(|column| (column.clone(), bloom)).collect();
        let default = PageBloomOptions::default();
        let bloom = PageBloomOptions { fpp: self.page_bloom_fpp.unwrap_or(default.fpp), ..default };
        parquet.page_bloom = self.page_bloom.iter().map(|column| (column.clone(), bloom)).collect();
        parquet.write.limits = self.limits();
        (options.text.limits, options.sstables.limits) = (self.limits(), self.limits());
        options.text.invalid_utf8 = match self.rows.invalid_utf8 {
            InvalidUtf8::Error => print::InvalidUtf8::Error,
            InvalidUtf8::Replace => print::InvalidUtf8::Replace,
            InvalidUtf8::Blob => print::InvalidUtf8::Bytes,
        };
        (options.sstables.rows.timestamp, options.sstables.rows.ttl) =
            (self.timestamp.clone(), self.ttl.clone());
        if target.takes(OptionGroup::SstableOutput) && (self.codec.is_some() || self.level.is_some()) {
            options.sstables.compression = self.compression_of_sstables()?;
        }
        Ok(options)
    }

    /// How new SSTables are compressed, if at all.
    fn compression_of_sstables(&self) -> Result<Option<WriteCompression>> {
        let compressor = match self.codec {
            Some(Compression::Uncompressed) => None,
            Some(Compression::Codec(Codec::Snappy)) => Some(Compressor::Snappy),
            Some(Compression::Codec(Codec::Gzip)) => Some(Compressor::Deflate),
            Some(Compression::Codec(Codec::Zstd)) => Some(Compressor::Zstd),
            None | Some(Compression::Codec(Codec::Lz4Raw)) => Some(Compressor::Lz4),
            Some(_) => {
                let known = "SSTables are compressed by lz4, snappy, deflate or zstd, or not (none)";
                return Err(Error::option("codec", known));
            }
        };
        if self.level.is_some() && !matches!(compressor, Some(Compressor::Zstd | Compressor::Deflate)) {
            return Err(Error::option("level", "of SSTables this is for the codecs zstd and deflate"));
        }
        Ok(compressor.map(|compressor| {
            let mut compression = WriteCompression::new(compressor);
            compression.level = self.level;
            compression
        }))
    }

    fn parquet(&mut self) -> &mut ParquetOptions {
        &mut self.destination.directory.parquet
    }
}

/// Options that say which rows there are and what becomes of them, but for write times and TTLs, which a state has itself: they must be the same
/// when a load goes on. How a cluster is talked to is none of it.
#[cfg(feature = "cluster")]
pub(super) const OF_ROWS: &[&str] = &[
    "union",
    "hive",
    "from",
    "delimiter",
    "quote",
    "header",
    "null",
    "comment",
    "skip",
    "decimal",
    "timestamp_format",
    "trim",
    "short_rows",
    "infer_all",
    "schema",
    "text_encoding",
    "mapping",
    "at",
    "token_range",
    "columns",
    "where",
    "types",
    "rename",
    "limit",
    "sort",
    "key",
    "key_row_number",
    "map",
    "timestamps_as",
    "invalid_utf8",
    "null_elements",
    "duplicate_keys",
    "nulls",
    "frozen",
    "as_set",
];

/// Options of the libraries' that have another name, and their words.
pub(super) const OTHER_WORDS: &[(&str, &str)] = &[
    ("definition", "schema_cql"),
    ("footer_bytes_max", "footer_bytes"),
    ("formats", "from"),
    ("infer_bytes", "infer_all"),
    ("row_number", "key_row_number"),
    ("sets", "as_set"),
    ("timestamps_as_millis", "timestamps_as"),
];

/// What an option has a meaning for.
#[derive(Debug, Clone, Copy)]
pub(super) enum For {
    /// Whatever is opened.
    Opening,
    /// Whatever is opened, and whatever is written.
    Limits,
    /// Any copy.
    Copy,
    /// Sources that take one of these groups.
    From(&'static [OptionGroup]),
    /// Destinations that do.
    To(&'static [OptionGroup]),
    /// Either.
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only clusters have such options"))]
    Either(&'static [OptionGroup]),
}

/// Sets an option to what its text says.
pub(super) type Setter = fn(&mut Options, &str) -> Result<()>;

pub(super) const OPTIONS: &[(&str, For, Setter)] = &[
    ("union", For::Opening, |options, text| set(&mut options.union, parsed(text))),
    ("hive", For::Opening, |options, text| set(&mut options.hive, hive(text))),
    ("trust", For::Limits, |options, text| set(&mut options.trusts, parsed(text))),
    ("from", For::Opening, |options, text| set(&mut options.from, input_format(text).map(Some))),
    ("delimiter", TEXT, |options, text| set(&mut options.text.delimiter, character(text).map(Some))),
    ("quote", TEXT, |options, text| set(&mut options.text.quote, text.parse())),
    ("header", TEXT, |options, text| set(&mut options.text.header, header(text))),
    ("null", TEXT, |options, text| {
        set(&mut options.text.nulls, Ok(text.split(',').map(str::to_owned).collect()))
    }),
    ("comment", TEXT, |options, text| set(&mut options.text.comment, character(text).map(Some))),
    ("skip", TEXT, |options, text| set(&mut options.skip_lines, parsed(text))),
    ("decimal", TEXT, |options, text| set(&mut options.text.decimal, character(text))),
    ("timestamp_format", TEXT, |options, text| {
        set(&mut options.text.timestamp_format, text.parse().map(Some))
    }),
    ("trim", TEXT, |options, text| set(&mut options.text.trim, parsed(text))),
    ("short_rows", TEXT, |options, text| set(&mut options.text.short_rows, short_rows(text))),
    ("infer_all", TEXT, |options, text| {
        let bytes = if parsed(text)? { u64::MAX } else { TextOptions::default().infer_bytes };
        set(&mut options.text.infer_bytes, Ok(bytes))
    }),
    ("schema", TEXT, |options, text| set(&mut options.text.schema, text.parse().map(Some))),
    ("text_encoding", TEXT, |options, text| set(&mut options.encoding, text.parse().map(Some))),
    ("mapping", For::From(SSTABLES), |options, text| set(&mut options.mapping, mapping(text).map(Some))),
    ("at", For::From(SSTABLES), |options, text| set(&mut options.at, time_at(text).map(Some))),
    ("token_range", For::From(TOKENS), |options, text| set(&mut options.tokens, text.parse().map(Some))),
    #[cfg(feature = "cluster")]
    ("with_metadata", For::From(CLUSTER), |options, text| {
        set(&mut options.unload.with_metadata, parsed(text))
    }),
    #[cfg(feature = "cluster")]
    ("consistency", For::Either(TABLES), |options, text| set(&mut options.unload.consistency, parsed(text))),
    #[cfg(feature = "cluster")]
    ("rate", For::Either(TABLES), |options, text| set(&mut options.unload.rate, parsed(text))),
    #[cfg(feature = "cluster")]
    ("retry_for", For::Either(TABLES), |options, text| {
        set(&mut options.unload.retry_for, parsed(text).map(Duration::from_secs))
    }),
    #[cfg(feature = "cluster")]
    ("password_file", For::Either(TABLES), |options, text| {
        set(&mut options.unload.connect.password_file, path(text).map(Some))
    }),
    #[cfg(feature = "cluster")]
    ("local_datacenter", For::Either(TABLES), |options, text| {
        set(&mut options.unload.connect.local_datacenter, name(text).map(Some))
    }),
    #[cfg(feature = "cluster")]
    ("user", For::Either(TABLES), |options, text| {
        set(&mut options.unload.connect.user, name(text).map(Some))
    }),
    #[cfg(feature = "cluster")]
    ("password", For::Either(TABLES), |options, text| {
        set(&mut options.unload.connect.password, Ok(Some(text.to_owned())))
    }),
    #[cfg(feature = "cluster")]
    ("tls", For::Either(TABLES), |options, text| set(&mut options.encrypts, parsed(text))),
    #[cfg(feature = "cluster")]
    ("ca", For::Either(TABLES), |options, text| set(&mut options.tls.authorities, path(text).map(Some))),
    #[cfg(feature = "cluster")]
    ("cert", For::Either(TABLES), |options, text| set(&mut options.tls.certificate, path(text).map(Some))),
    #[cfg(feature = "cluster")]
    ("key_file", For::Either(TABLES), |options, text| set(&mut options.tls.key, path(text).map(Some))),
    #[cfg(feature = "cluster")]
    ("tls_any_host", For::Either(TABLES), |options, text| {
        set(&mut options.tls.verify_hosts, parsed::<bool>(text).map(|is_any| !is_any))
    }),
    #[cfg(feature = "cluster")]
    ("bundle", For::Either(TABLES), |options, text| {
        set(&mut options.unload.connect.bundle, path(text).map(Some))
    }),
    ("columns", For::Copy, |options, text| set(&mut options.columns, ColumnPath::parse_list(text).map(Some))),
    ("where", For::Copy, |options, text| set(&mut options.predicate, Ok(Some(text.to_owned())))),
    ("types", For::Copy, |options, text| set(&mut options.types, Ok(Some(text.to_owned())))),
    ("rename", For::Copy, |options, text| set(&mut options.rename, Ok(Some(text.to_owned())))),
    ("limit", For::Copy, |options, text| set(&mut options.limit, parsed(text).map(Some))),
    ("to", For::Copy, |options, text| set(&mut options.to, format(text).map(Some))),
    #[cfg(feature = "cluster")]
    ("layout", For::To(&[OptionGroup::Cluster, OptionGroup::Columns]), |options, text| {
        options.destination.cluster.layout = TableLayout::by_name(text);
        set(&mut options.layout, layout(text))
    }),
    ("memory", For::Copy, |options, text| {
        set(&mut options.copy.memory_bytes, parsed::<NonZeroU64>(text).map(NonZeroU64::get))
    }),
    ("threads", For::Copy, |options, text| {
        set(&mut options.copy.threads, parsed::<NonZeroUsize>(text).map(|threads| Some(threads.get())))
    }),
    ("sort", For::To(&[OptionGroup::Order]), |options, text| {
        set(&mut options.sort, SortBy::parse_list(text))
    }),
    ("verify", For::To(&[OptionGroup::Verify]), |options, text| set(&mut options.copy.verify, parsed(text))),
    ("overwrite", For::To(&[OptionGroup::Overwrite]), |options, text| {
        set(&mut options.overwrites, parsed(text))
    }),
    ("codec", COMPRESSED, |options, text| set(&mut options.codec, codec(text).map(Some))),
    ("level", COMPRESSED, |options, text| set(&mut options.level, parsed(text).map(Some))),
    ("encoding", PARQUET, |options, text| set(&mut options.parquet().encodings, encodings(text))),
    ("bloom", PARQUET, |options, text| set(&mut options.bloom, ColumnPath::parse_list(text))),
    ("bloom_fpp", PARQUET, |options, text| set(&mut options.bloom_fpp, parsed(text).map(Some))),
    ("page_bloom", PARQUET, |options, text| set(&mut options.page_bloom, ColumnPath::parse_list(text))),
    ("page_bloom_fpp", PARQUET, |options, text| set(&mut options.page_bloom_fpp, parsed(text).map(Some))),
    ("locator", PARQUET, |options, text| set(&mut options.parquet().write.locator, parsed(text))),
    ("row_group_rows", PARQUET, |options, text| {
        set(&mut options.parquet().write.row_group_rows, positive(text))
    }),
    ("row_group_bytes", PARQUET, |options, text| {
        set(&mut options.parquet().write.row_group_bytes, positive(text))
    }),
    ("footer_bytes", PARQUET, |options, text| {
        set(&mut options.parquet().write.footer_bytes_max, positive(text))
    }),
    ("page_rows", PARQUET, |options, text| set(&mut options.parquet().write.page_rows, count(text))),
    ("page_bytes", PARQUET, |options, text| set(&mut options.parquet().write.page_bytes, count(text))),
    ("dictionary_bytes", PARQUET, |options, text| {
        set(&mut options.parquet().write.dictionary_bytes, count(text))
    }),
    ("partition_by", DIRECTORY, |options, text| {
        set(&mut options.destination.directory.partition_by, ColumnPath::parse_list(text))
    }),
    ("file_rows", DIRECTORY, |options, text| {
        set(&mut options.destination.directory.file_rows, parsed(text).map(Some))
    }),
    ("file_bytes", DIRECTORY, |options, text| {
        set(&mut options.destination.directory.file_bytes, parsed(text).map(Some))
    }),
    ("table", For::To(&[OptionGroup::CqlText, OptionGroup::SstableOutput]), |options, text| {
        let name = TableName::parse(text).map_err(|error| Error::misuse(error.to_string()))?;
        options.destination.sstables.rows.table = Some(name.clone());
        set(&mut options.destination.table, Ok(Some(name)))
    }),
    ("key", MAPPING, |options, text| {
        let key = KeySpec::parse(text).map_err(|error| Error::misuse(error.to_string()));
        set(&mut options.rows.key, key.map(Some))
    }),
    ("key_row_number", MAPPING, |options, text| {
        let name = Name::new(text).map_err(|error| Error::misuse(error.to_string()));
        set(&mut options.rows.row_number, name.map(Some))
    }),
    ("map", WRITES, |options, text| {
        let names: Rename = text.parse()?;
        let turned = names.names().iter().map(|(cql, column)| (column.clone(), cql.clone()));
        set(&mut options.map, Ok(Rename::of(turned).by_option("map")))
    }),
    ("timestamps_as", MAPPING, |options, text| set(&mut options.rows.timestamps_as_millis, are_millis(text))),
    ("invalid_utf8", For::To(&[OptionGroup::Mapping, OptionGroup::Text]), |options, text| {
        set(&mut options.rows.invalid_utf8, invalid_utf8(text))
    }),
    ("null_elements", MAPPING, |options, text| set(&mut options.rows.null_elements, null_elements(text))),
    ("duplicate_keys", MAPPING, |options, text| set(&mut options.rows.duplicate_keys, duplicate_keys(text))),
    ("nulls", MAPPING, |options, text| set(&mut options.rows.nulls, nulls(text))),
    ("frozen", MAPPING, |options, text| set(&mut options.rows.frozen, parsed(text))),
    ("as_set", MAPPING, |options, text| {
        let columns = ColumnPath::parse_list(text)?;
        set(&mut options.rows.sets, Ok(columns.iter().map(ColumnPath::dotted).collect()))
    }),
    ("timestamp", WRITES, |options, text| set(&mut options.timestamp, text.parse())),
    ("ttl", WRITES, |options, text| set(&mut options.ttl, text.parse().map(Some))),
    ("format", NEW_SSTABLES, |options, text| {
        let mut new = NewSstablesOptions::new(text)?;
        let given = &mut options.destination.sstables;
        (new.rows, new.split_at) = (mem::take(&mut given.rows), mem::take(&mut given.split_at));
        (new.bytes_max, new.tablets, new.manifest) = (given.bytes_max, given.tablets, given.manifest.take());
        *given = new;
        Ok(())
    }),
    ("max_bytes", NEW_SSTABLES, |options, text| {
        set(&mut options.destination.sstables.bytes_max, positive(text).map(Some))
    }),
    ("split_at", NEW_SSTABLES, |options, text| {
        let tokens = text.split(',').map(|token| parsed(token.trim())).collect();
        set(&mut options.destination.sstables.split_at, tokens)
    }),
    ("tablets", NEW_SSTABLES, |options, text| {
        set(&mut options.destination.sstables.tablets, parsed(text).map(Some))
    }),
    ("manifest", NEW_SSTABLES, |options, text| {
        set(&mut options.destination.sstables.manifest, text.parse().map(Some))
    }),
    ("schema_cql", NEW_SSTABLES, |options, text| {
        let read = fs::read_to_string(path(text)?);
        let read = read.map_err(|error| Error::io(format!("{text}: {error}")));
        set(&mut options.destination.sstables.rows.schema_cql, read.map(Some))
    }),
    #[cfg(feature = "cluster")]
    ("create", For::To(TABLES), |options, text| set(&mut options.destination.cluster.create, parsed(text))),
    #[cfg(feature = "cluster")]
    ("state", For::To(CLUSTER), |options, text| set(&mut options.state, path(text).map(Some))),
    #[cfg(feature = "cluster")]
    ("resume", For::To(CLUSTER), |options, text| set(&mut options.resumes, parsed(text))),
    #[cfg(feature = "cluster")]
    ("missing_only", For::To(CLUSTER), |options, text| set(&mut options.missing_only, parsed(text))),
    #[cfg(feature = "cluster")]
    ("in_flight", For::To(CLUSTER), |options, text| {
        set(&mut options.destination.cluster.in_flight, parsed(text))
    }),
    #[cfg(feature = "cluster")]
    ("rejects", For::To(CLUSTER), |options, text| {
        set(&mut options.destination.cluster.rejects, path(text).map(Some))
    }),
    #[cfg(feature = "cluster")]
    ("max_errors", For::To(CLUSTER), |options, text| {
        set(&mut options.destination.cluster.max_errors, parsed(text))
    }),
    #[cfg(feature = "cluster")]
    ("dry_run", For::To(CLUSTER), |options, text| {
        set(&mut options.destination.cluster.dry_run, parsed(text))
    }),
    #[cfg(feature = "cluster")]
    ("counters_at_least_once", For::To(CLUSTER), |options, text| {
        set(&mut options.destination.cluster.counters_at_least_once, parsed(text))
    }),
    #[cfg(feature = "cluster")]
    ("lists_at_least_once", For::To(CLUSTER), |options, text| {
        set(&mut options.destination.cluster.lists_at_least_once, parsed(text))
    }),
];

const TEXT: For = For::From(&[OptionGroup::Text]);
const SSTABLES: &[OptionGroup] = &[OptionGroup::Sstables];
const TOKENS: &[OptionGroup] = &[OptionGroup::Sstables, OptionGroup::Cluster];
#[cfg(feature = "cluster")]
const CLUSTER: &[OptionGroup] = &[OptionGroup::Cluster];
#[cfg(feature = "cluster")]
const TABLES: &[OptionGroup] = &[OptionGroup::Cluster, OptionGroup::Columns];
const COMPRESSED: For = For::To(&[OptionGroup::Parquet, OptionGroup::SstableOutput]);
const PARQUET: For = For::To(&[OptionGroup::Parquet]);
const DIRECTORY: For = For::To(&[OptionGroup::Directory]);
const MAPPING: For = For::To(&[OptionGroup::Mapping]);
const WRITES: For = For::To(&[OptionGroup::SstableOutput, OptionGroup::Cluster]);
const NEW_SSTABLES: For = For::To(&[OptionGroup::SstableOutput]);

fn set<T>(option: &mut T, value: Result<T>) -> Result<()> {
    *option = value?;
    Ok(())
}
