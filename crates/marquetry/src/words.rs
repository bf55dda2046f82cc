//! Copies in words: options by the names that the command has for them, with values as text.

use std::ffi::OsStr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
#[cfg(feature = "cluster")]
use std::time::Duration;
use std::{fs, mem};

use marquetry_base::{Codec, Detail, Error, Result};
#[cfg(feature = "cluster")]
use marquetry_cluster::{PASSWORD_VARIABLE, TableLayout, UnloadOptions};
use marquetry_io::blocking::allow_many_files;
use marquetry_parquet::format::Compression;
use marquetry_parquet::write::{BloomOptions, PageBloomOptions};
use marquetry_scylla::bridge::{MappingOptions, Nulls};
use marquetry_scylla::cql::{KeySpec, TableName};
#[cfg(feature = "cluster")]
use marquetry_tables::Address;
use marquetry_tables::files::Hive;
use marquetry_tables::sstables::{MutationMapping, NewSstablesOptions, time_at};
use marquetry_tables::stamps::{Ttl, WriteTimes};
use marquetry_tables::text::{self, Encoding, Format, Header, TextFormat, TextOptions};
use marquetry_tables::{
    Cancel, ColumnPath, Copied, CopyOptions, Described, Filter, SortBy, TokenRange, durations_as_text,
};

use crate::{DestinationOptions, OptionGroup, OutputFormat, Reader, SourceOptions, Target, open_all};

/// A copy whose options are words: for doors that get text, as from Python's keyword arguments. Names are the command's, with `_` for `-`; a
/// list's items are separated by commas, columns are named as [`ColumnPath::parse_list`] has it, and sizes are numbers of bytes.
///
/// | options | of |
/// |---|---|
/// | `union`, `hive` | files that are opened |
/// | `from`, `delimiter`, `quote`, `header`, `null`, `comment`, `skip`, `decimal`, `timestamp_format`, `trim`, `short_rows`, `infer_all`, `schema`, `text_encoding` | CSV, TSV and JSON lines that are opened |
/// | `mapping`, `at` | SSTables that are opened |
/// | `token_range` | SSTables and tables of a cluster that are opened |
/// | `with_metadata` | tables of a cluster that are opened |
/// | `consistency`, `rate`, `retry_for` (in seconds), `password_file`, `local_datacenter` | clusters |
/// | `columns`, `where`, `types`, `rename`, `limit` | rows |
/// | `to`, `layout`, `overwrite`, `verify`, `sort`, `memory`, `threads` | the copy |
/// | `codec`, `level`, `bloom`, `page_bloom`, `locator`, `row_group_rows`, `row_group_bytes`, `page_rows`, `page_bytes`, `dictionary_bytes`, `footer_bytes` | Parquet files |
/// | `partition_by`, `file_rows`, `file_bytes` | directories |
/// | `table` | CQL text, SSTables |
/// | `key`, `nulls`, `frozen`, `as_set` | CQL text, SSTables, tables that are created |
/// | `timestamp`, `ttl` | SSTables, tables of a cluster |
/// | `format`, `max_bytes`, `split_at`, `tablets`, `schema_cql` | SSTables |
/// | `create`, `in_flight`, `rejects`, `max_errors`, `dry_run`, `counters_at_least_once`, `lists_at_least_once` | tables of a cluster |
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (from, to) = (folder.path().join("a.csv"), folder.path().join("a.parquet"));
/// # std::fs::write(&from, "id,fare\n2,20.5\n1,7.0\n").unwrap();
/// let mut words = marquetry::CopyWords::default();
/// words.set("sort", "id")?;
/// words.set("codec", "zstd")?;
/// assert!(words.set("kodec", "zstd").is_err());
/// let copied = words.copy(&words.open([&from], Some(&to))?, &to, &mut |_| {})?;
/// assert_eq!(copied.rows, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct CopyWords {
    /// Cancels what is opened and copied.
    pub cancel: Cancel,
    union: bool,
    hive: Hive,
    text: TextOptions,
    skip_lines: u64,
    encoding: Option<Encoding>,
    from: Option<InputFormat>,
    mapping: Option<MutationMapping>,
    at: Option<u32>,
    tokens: Option<TokenRange>,
    columns: Option<Vec<ColumnPath>>,
    predicate: Option<String>,
    types: Option<String>,
    rename: Option<String>,
    limit: Option<u64>,
    to: Option<OutputFormat>,
    /// What a table of a cluster has instead of rows.
    #[cfg(feature = "cluster")]
    layout: Option<OutputFormat>,
    destination: DestinationOptions,
    overwrites: bool,
    rows: MappingOptions,
    timestamp: WriteTimes,
    ttl: Option<Ttl>,
    #[cfg(feature = "cluster")]
    unload: UnloadOptions,
    sort: Vec<SortBy>,
    copy: CopyOptions,
    /// Options that were set, and what they have a meaning for.
    given: Vec<(&'static str, For)>,
}

/// Text that is read, or Parquet whatever its name is.
#[derive(Debug, Clone, Copy)]
enum InputFormat {
    Parquet,
    Text(Format),
}

/// What an option has a meaning for.
#[derive(Debug, Clone, Copy)]
enum For {
    /// Whatever is opened.
    Opening,
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
type Setter = fn(&mut CopyWords, &str) -> Result<()>;

const OPTIONS: &[(&str, For, Setter)] = &[
    ("union", For::Opening, |words, text| set(&mut words.union, parsed(text))),
    ("hive", For::Opening, |words, text| set(&mut words.hive, hive(text))),
    ("from", For::Opening, |words, text| set(&mut words.from, input_format(text).map(Some))),
    ("delimiter", TEXT, |words, text| set(&mut words.text.delimiter, character(text).map(Some))),
    ("quote", TEXT, |words, text| set(&mut words.text.quote, text.parse())),
    ("header", TEXT, |words, text| set(&mut words.text.header, header(text))),
    ("null", TEXT, |words, text| {
        set(&mut words.text.nulls, Ok(text.split(',').map(str::to_owned).collect()))
    }),
    ("comment", TEXT, |words, text| set(&mut words.text.comment, character(text).map(Some))),
    ("skip", TEXT, |words, text| set(&mut words.skip_lines, parsed(text))),
    ("decimal", TEXT, |words, text| set(&mut words.text.decimal, character(text))),
    ("timestamp_format", TEXT, |words, text| set(&mut words.text.timestamp_format, text.parse().map(Some))),
    ("trim", TEXT, |words, text| set(&mut words.text.trim, parsed(text))),
    ("short_rows", TEXT, |words, text| set(&mut words.text.short_rows, short_rows(text))),
    ("infer_all", TEXT, |words, text| {
        let bytes = if parsed(text)? { u64::MAX } else { TextOptions::default().infer_bytes };
        set(&mut words.text.infer_bytes, Ok(bytes))
    }),
    ("schema", TEXT, |words, text| set(&mut words.text.schema, text.parse().map(Some))),
    ("text_encoding", TEXT, |words, text| set(&mut words.encoding, text.parse().map(Some))),
    ("mapping", For::From(SSTABLES), |words, text| set(&mut words.mapping, mapping(text).map(Some))),
    ("at", For::From(SSTABLES), |words, text| set(&mut words.at, time_at(text).map(Some))),
    ("token_range", For::From(TOKENS), |words, text| set(&mut words.tokens, text.parse().map(Some))),
    #[cfg(feature = "cluster")]
    ("with_metadata", For::From(CLUSTER), |words, text| set(&mut words.unload.with_metadata, parsed(text))),
    #[cfg(feature = "cluster")]
    ("consistency", For::Either(TABLES), |words, text| set(&mut words.unload.consistency, parsed(text))),
    #[cfg(feature = "cluster")]
    ("rate", For::Either(TABLES), |words, text| set(&mut words.unload.rate, parsed(text))),
    #[cfg(feature = "cluster")]
    ("retry_for", For::Either(TABLES), |words, text| {
        set(&mut words.unload.retry_for, parsed(text).map(Duration::from_secs))
    }),
    #[cfg(feature = "cluster")]
    ("password_file", For::Either(TABLES), |words, text| {
        set(&mut words.unload.connect.password_file, path(text).map(Some))
    }),
    #[cfg(feature = "cluster")]
    ("local_datacenter", For::Either(TABLES), |words, text| {
        set(&mut words.unload.connect.local_datacenter, name(text).map(Some))
    }),
    ("columns", For::Copy, |words, text| set(&mut words.columns, ColumnPath::parse_list(text).map(Some))),
    ("where", For::Copy, |words, text| set(&mut words.predicate, Ok(Some(text.to_owned())))),
    ("types", For::Copy, |words, text| set(&mut words.types, Ok(Some(text.to_owned())))),
    ("rename", For::Copy, |words, text| set(&mut words.rename, Ok(Some(text.to_owned())))),
    ("limit", For::Copy, |words, text| set(&mut words.limit, parsed(text).map(Some))),
    ("to", For::Copy, |words, text| set(&mut words.to, format(text).map(Some))),
    #[cfg(feature = "cluster")]
    ("layout", For::To(&[OptionGroup::Cluster, OptionGroup::Columns]), |words, text| {
        words.destination.cluster.layout = TableLayout::by_name(text);
        set(&mut words.layout, layout(text))
    }),
    ("memory", For::Copy, |words, text| {
        set(&mut words.copy.memory_bytes, parsed::<NonZeroU64>(text).map(NonZeroU64::get))
    }),
    ("threads", For::Copy, |words, text| {
        set(&mut words.copy.threads, parsed::<NonZeroUsize>(text).map(|threads| Some(threads.get())))
    }),
    ("sort", For::To(&[OptionGroup::Order]), |words, text| set(&mut words.sort, SortBy::parse_list(text))),
    ("verify", For::To(&[OptionGroup::Verify]), |words, text| set(&mut words.copy.verify, parsed(text))),
    ("overwrite", For::To(&[OptionGroup::Overwrite]), |words, text| set(&mut words.overwrites, parsed(text))),
    ("codec", PARQUET, |words, text| set(&mut words.parquet().write.column.compression, codec(text))),
    ("level", PARQUET, |words, text| set(&mut words.parquet().write.column.level, parsed(text).map(Some))),
    ("bloom", PARQUET, |words, text| {
        let columns = ColumnPath::parse_list(text)?.into_iter();
        set(&mut words.parquet().bloom, Ok(columns.map(|column| (column, BloomOptions::default())).collect()))
    }),
    ("page_bloom", PARQUET, |words, text| {
        let columns = ColumnPath::parse_list(text)?.into_iter();
        let filters = columns.map(|column| (column, PageBloomOptions::default())).collect();
        set(&mut words.parquet().page_bloom, Ok(filters))
    }),
    ("locator", PARQUET, |words, text| set(&mut words.parquet().write.locator, parsed(text))),
    ("row_group_rows", PARQUET, |words, text| set(&mut words.parquet().write.row_group_rows, positive(text))),
    ("row_group_bytes", PARQUET, |words, text| {
        set(&mut words.parquet().write.row_group_bytes, positive(text))
    }),
    ("footer_bytes", PARQUET, |words, text| set(&mut words.parquet().write.footer_bytes_max, positive(text))),
    ("page_rows", PARQUET, |words, text| set(&mut words.parquet().write.page_rows, count(text))),
    ("page_bytes", PARQUET, |words, text| set(&mut words.parquet().write.page_bytes, count(text))),
    ("dictionary_bytes", PARQUET, |words, text| {
        set(&mut words.parquet().write.dictionary_bytes, count(text))
    }),
    ("partition_by", DIRECTORY, |words, text| {
        set(&mut words.destination.directory.partition_by, ColumnPath::parse_list(text))
    }),
    ("file_rows", DIRECTORY, |words, text| {
        set(&mut words.destination.directory.file_rows, parsed(text).map(Some))
    }),
    ("file_bytes", DIRECTORY, |words, text| {
        set(&mut words.destination.directory.file_bytes, parsed(text).map(Some))
    }),
    ("table", For::To(&[OptionGroup::CqlText, OptionGroup::SstableOutput]), |words, text| {
        let name = TableName::parse(text).map_err(|error| Error::misuse(error.to_string()))?;
        words.destination.sstables.rows.table = Some(name.clone());
        set(&mut words.destination.table, Ok(Some(name)))
    }),
    ("key", MAPPING, |words, text| {
        let key = KeySpec::parse(text).map_err(|error| Error::misuse(error.to_string()));
        set(&mut words.rows.key, key.map(Some))
    }),
    ("nulls", MAPPING, |words, text| set(&mut words.rows.nulls, nulls(text))),
    ("frozen", MAPPING, |words, text| set(&mut words.rows.frozen, parsed(text))),
    ("as_set", MAPPING, |words, text| {
        let columns = ColumnPath::parse_list(text)?;
        set(&mut words.rows.sets, Ok(columns.iter().map(ColumnPath::dotted).collect()))
    }),
    ("timestamp", WRITES, |words, text| set(&mut words.timestamp, text.parse())),
    ("ttl", WRITES, |words, text| set(&mut words.ttl, text.parse().map(Some))),
    ("format", NEW_SSTABLES, |words, text| {
        let mut options = NewSstablesOptions::new(text)?;
        let given = &mut words.destination.sstables;
        options.rows = mem::take(&mut given.rows);
        options.split_at = mem::take(&mut given.split_at);
        (options.bytes_max, options.tablets) = (given.bytes_max, given.tablets);
        *given = options;
        Ok(())
    }),
    ("max_bytes", NEW_SSTABLES, |words, text| {
        set(&mut words.destination.sstables.bytes_max, positive(text).map(Some))
    }),
    ("split_at", NEW_SSTABLES, |words, text| {
        let tokens = text.split(',').map(|token| parsed(token.trim())).collect();
        set(&mut words.destination.sstables.split_at, tokens)
    }),
    ("tablets", NEW_SSTABLES, |words, text| {
        set(&mut words.destination.sstables.tablets, parsed(text).map(Some))
    }),
    ("schema_cql", NEW_SSTABLES, |words, text| {
        let read = fs::read_to_string(path(text)?);
        let read = read.map_err(|error| Error::io(format!("{text}: {error}")));
        set(&mut words.destination.sstables.rows.schema_cql, read.map(Some))
    }),
    #[cfg(feature = "cluster")]
    ("create", For::To(TABLES), |words, text| set(&mut words.destination.cluster.create, parsed(text))),
    #[cfg(feature = "cluster")]
    ("in_flight", For::To(CLUSTER), |words, text| {
        set(&mut words.destination.cluster.in_flight, parsed(text))
    }),
    #[cfg(feature = "cluster")]
    ("rejects", For::To(CLUSTER), |words, text| {
        set(&mut words.destination.cluster.rejects, path(text).map(Some))
    }),
    #[cfg(feature = "cluster")]
    ("max_errors", For::To(CLUSTER), |words, text| {
        set(&mut words.destination.cluster.max_errors, parsed(text))
    }),
    #[cfg(feature = "cluster")]
    ("dry_run", For::To(CLUSTER), |words, text| set(&mut words.destination.cluster.dry_run, parsed(text))),
    #[cfg(feature = "cluster")]
    ("counters_at_least_once", For::To(CLUSTER), |words, text| {
        set(&mut words.destination.cluster.counters_at_least_once, parsed(text))
    }),
    #[cfg(feature = "cluster")]
    ("lists_at_least_once", For::To(CLUSTER), |words, text| {
        set(&mut words.destination.cluster.lists_at_least_once, parsed(text))
    }),
];

const TEXT: For = For::From(&[OptionGroup::Text]);
const SSTABLES: &[OptionGroup] = &[OptionGroup::Sstables];
const TOKENS: &[OptionGroup] = &[OptionGroup::Sstables, OptionGroup::Cluster];
#[cfg(feature = "cluster")]
const CLUSTER: &[OptionGroup] = &[OptionGroup::Cluster];
#[cfg(feature = "cluster")]
const TABLES: &[OptionGroup] = &[OptionGroup::Cluster, OptionGroup::Columns];
const PARQUET: For = For::To(&[OptionGroup::Parquet]);
const DIRECTORY: For = For::To(&[OptionGroup::Directory]);
const MAPPING: For = For::To(&[OptionGroup::Mapping]);
const WRITES: For = For::To(&[OptionGroup::SstableOutput, OptionGroup::Cluster]);
const NEW_SSTABLES: For = For::To(&[OptionGroup::SstableOutput]);

impl CopyWords {
    /// Sets an option. Set again, it is replaced.
    ///
    /// # Errors
    ///
    /// `Misuse` for a name that is not in the table above, and for a text that is no value of the option.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(&(name, of, set)) = OPTIONS.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = OPTIONS.iter().map(|(known, ..)| *known).collect();
            let what = format!("there is no option {name}; there are {}", known.join(", "));
            return Err(Error::misuse(what));
        };
        set(self, value).map_err(|error| error.with(Detail::Option(name)))?;
        if !self.given.iter().any(|(given, _)| *given == name) {
            self.given.push((name, of));
        }
        Ok(())
    }

    /// Opens tables as one, to be read.
    ///
    /// # Errors
    ///
    /// As [`open_all`]; `Misuse` for options that say nothing of how tables are opened, or have no meaning for these.
    pub fn table<S: AsRef<OsStr>>(&self, from: impl IntoIterator<Item = S>) -> Result<Reader> {
        let opened = self.open(from, None::<&str>)?;
        let has_meaning = |of: For| match of {
            For::Opening => true,
            For::Copy | For::To(_) => false,
            For::From(groups) | For::Either(groups) => groups.iter().any(|group| opened.takes(*group)),
        };
        match self.given.iter().find(|(_, of)| !has_meaning(*of)) {
            Some((name, For::From(_) | For::Either(_))) => {
                Err(Error::option(name, format!("this has no meaning for {}", opened.table().name)))
            }
            Some((name, _)) => Err(Error::option(name, "this is for copies, not for tables that are opened")),
            None => Ok(opened),
        }
    }

    /// Opens tables as one, with the options of files, for rows that go to an address, if it is known; as they are: what the other options say
    /// of rows is done by [`copy`](CopyWords::copy).
    ///
    /// # Errors
    ///
    /// As [`open_all`], and as [`Target::parse`].
    pub fn open<S: AsRef<OsStr>>(
        &self,
        from: impl IntoIterator<Item = S>,
        to: Option<impl AsRef<OsStr>>,
    ) -> Result<Reader> {
        let mut options = SourceOptions::default();
        let to = to.map(|to| to.as_ref().to_owned());
        (options.files.union, options.files.hive) = (self.union, self.hive);
        options.files.cancel = self.cancel.clone();
        let target = to.map(|to| self.target(to)).transpose()?;
        // What goes into a file within a table is rows, as for any file.
        let other = target.as_ref().filter(|target| !target.takes(OptionGroup::Columns));
        options.files.destination = other.map(|target| target.address().clone());
        self.read_text(&mut options, target.as_ref());
        options.sstables.cancel = self.cancel.clone();
        options.sstables.tokens = self.tokens;
        (options.sstables.mapping, options.sstables.at) = self.mutations(target.as_ref())?;
        #[cfg(feature = "cluster")]
        {
            options.cluster = self.unload();
            options.cluster.cancel = self.cancel.clone();
            options.cluster.tokens = self.tokens;
        }
        open_all(from, &options)
    }

    /// What an address means that rows go to.
    fn target(&self, to: impl AsRef<OsStr>) -> Result<Target> {
        #[cfg(feature = "cluster")]
        if let (Some(layout), Some("cql")) = (self.layout, Address::parse(&to).scheme()) {
            return match self.to {
                None => Target::parse(to, Some(layout)),
                Some(_) => Err(Error::option("to", "a table of a cluster has a layout, and no format")),
            };
        }
        Target::parse(to, self.to)
    }

    /// How a table of a cluster is read, and either is talked to.
    #[cfg(feature = "cluster")]
    fn unload(&self) -> UnloadOptions {
        let mut options = self.unload.clone();
        options.connect.password_variable = Some(PASSWORD_VARIABLE.to_owned());
        options
    }

    /// How files that are text are read.
    fn read_text(&self, options: &mut SourceOptions, target: Option<&Target>) {
        if let Some(InputFormat::Parquet) = self.from {
            options.files.formats = Vec::new();
            return;
        }
        let mut text = self.text.clone();
        text.timestamp_unit = target.and_then(Target::timestamp_unit);
        let mut format = TextFormat::new(text);
        format.preparing.skip_lines = self.skip_lines;
        format.preparing.encoding = self.encoding;
        format.cancel = self.cancel.clone();
        if let Some(InputFormat::Text(of)) = self.from {
            format.format = Some(of);
            options.files.extensions = of.extensions();
        }
        options.files.formats = vec![Arc::new(format)];
    }

    /// What a row of SSTables is, and the time at which it is that.
    fn mutations(&self, target: Option<&Target>) -> Result<(MutationMapping, Option<u32>)> {
        let is_text = target.is_some_and(|target| target.takes(OptionGroup::CqlText));
        let mapping = match self.mapping {
            Some(mapping) => mapping,
            None if is_text || self.at.is_some() => MutationMapping::Logical,
            None => MutationMapping::Full,
        };
        if self.at.is_some() && mapping != MutationMapping::Logical {
            let why = "the other mappings have all that was written, with its times";
            return Err(Error::option("at", format!("this is for the mapping logical; {why}")));
        }
        Ok((mapping, self.at))
    }

    /// Fails for rows that are writes, and would lose write times, TTLs and deletions on their way.
    fn expect_writes(&self, from: &Reader, target: &Target) -> Result<()> {
        if !target.takes(OptionGroup::Mapping) {
            return Ok(());
        }
        let table = from.table();
        for &(name, of) in &self.given {
            let changes_rows = matches!(of, For::To(groups) if groups == [OptionGroup::Mapping]);
            if changes_rows || ["columns", "types", "rename"].contains(&name) {
                Described::expect_columns(table, name)?;
            }
        }
        match &self.predicate {
            Some(predicate) => Described::expect_partitions(table, &Filter::new(predicate)),
            None => Ok(()),
        }
    }

    /// The rows of a table that the options ask for, with their types, names and columns.
    ///
    /// # Errors
    ///
    /// As [`Reader::filter`], [`Reader::types`], [`Reader::rename`] and [`Reader::columns`].
    pub fn shaped(&self, table: &Reader) -> Result<Reader> {
        let mut table = table.clone().cancel(self.cancel.clone());
        if let Some(predicate) = &self.predicate {
            table = table.filter(predicate).map_err(|error| error.with(Detail::Option("where")))?;
        }
        if let Some(types) = &self.types {
            table = table.types(types).map_err(|error| error.with(Detail::Option("types")))?;
        }
        if let Some(names) = &self.rename {
            table = table.rename(names).map_err(|error| error.with(Detail::Option("rename")))?;
        }
        match &self.columns {
            Some(columns) => table.paths(columns),
            None => Ok(table),
        }
    }

    /// Copies the rows of a table.
    ///
    /// # Errors
    ///
    /// `Misuse` for options that have no meaning for this destination; otherwise as [`shaped`](CopyWords::shaped), [`Target::open`] and
    /// [`tables::copy`](marquetry_tables::copy()).
    pub fn copy(
        &self,
        from: &Reader,
        to: impl AsRef<OsStr>,
        report: &mut dyn FnMut(&Copied),
    ) -> Result<Copied> {
        let target = self.target(to)?;
        for &(name, of) in &self.given {
            let has_meaning = match of {
                For::Opening | For::Copy => true,
                For::From(groups) => groups.iter().any(|group| from.takes(*group)),
                For::To(groups) => groups.iter().any(|group| target.takes(*group)),
                For::Either(groups) => groups.iter().any(|group| target.takes(*group) || from.takes(*group)),
            };
            if !has_meaning {
                let what = match of {
                    For::From(_) => from.table().name.clone(),
                    _ => target.address().to_string(),
                };
                return Err(Error::option(name, format!("this has no meaning for {what}")));
            }
        }
        self.expect_writes(from, &target)?;
        let mut options = self.destination.clone().mapped_by(self.rows.clone());
        (options.sstables.rows.timestamp, options.sstables.rows.ttl) =
            (self.timestamp.clone(), self.ttl.clone());
        #[cfg(feature = "cluster")]
        {
            let cluster = &mut options.cluster;
            if target.takes(OptionGroup::Cluster) && !cluster.create {
                let given = |name| self.given.iter().any(|(given, _)| *given == name);
                if let Some(name) = ["key", "as_set", "frozen"].into_iter().find(|name| given(*name)) {
                    return Err(Error::option(
                        name,
                        "this is for a table that is created: add the option create",
                    ));
                }
            }
            let UnloadOptions { connect, consistency, rate, retry_for, .. } = self.unload();
            (cluster.connect, cluster.consistency) = (connect, consistency);
            (cluster.rate, cluster.retry_for) = (rate, retry_for);
            (cluster.timestamp, cluster.ttl) = (self.timestamp.clone(), self.ttl.clone());
        }
        if self.overwrites {
            options = options.overwriting();
        }
        // Files of a directory wait without a name while they may be open.
        allow_many_files();
        let mut destination = target.open(&options)?;
        let table = self.shaped(from)?;
        let mut copy = self.copy.clone();
        (copy.limit, copy.cancel) = (self.limit, self.cancel.clone());
        let sort = SortBy::resolve(&self.sort, table.schema());
        copy.sort = sort.map_err(|error| error.with(Detail::Option("sort")))?;
        let source =
            if target.is_flat_text() { durations_as_text(table.source())? } else { table.source().clone() };
        marquetry_tables::copy(&source, destination.as_mut(), &copy, report)
    }

    fn parquet(&mut self) -> &mut marquetry_tables::parquet::ParquetOptions {
        &mut self.destination.directory.parquet
    }
}

fn set<T>(option: &mut T, value: Result<T>) -> Result<()> {
    *option = value?;
    Ok(())
}

fn parsed<T: FromStr>(text: &str) -> Result<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| Error::misuse(format!("{text}: {error}")))
}

fn positive(text: &str) -> Result<u64> {
    parsed::<NonZeroU64>(text).map(NonZeroU64::get)
}

fn count(text: &str) -> Result<usize> {
    parsed::<NonZeroUsize>(text).map(NonZeroUsize::get)
}

/// One of several words.
fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T> {
    let found = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
    found.map(|(_, meant)| *meant).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Error::misuse(format!("{text:?} is none of {}", known.join(", ")))
    })
}

fn hive(text: &str) -> Result<Hive> {
    word(text, &[("auto", Hive::Auto), ("text", Hive::Text), ("off", Hive::Off)])
}

/// What a table of a cluster has instead of rows, if anything, by the name of its layout.
#[cfg(feature = "cluster")]
fn layout(text: &str) -> Result<Option<OutputFormat>> {
    match text {
        "columns" => Ok(Some(OutputFormat::Columns)),
        _ if TableLayout::by_name(text).is_some() => Ok(None),
        _ => Err(Error::misuse(format!("{text}: layouts of a table are rows, wide, blob and columns"))),
    }
}

fn format(text: &str) -> Result<OutputFormat> {
    let words = [
        ("parquet", OutputFormat::Parquet),
        ("csv", OutputFormat::Csv),
        ("tsv", OutputFormat::Tsv),
        ("jsonl", OutputFormat::JsonLines),
        ("cql", OutputFormat::Cql),
    ];
    word(text, &words)
}

fn input_format(text: &str) -> Result<InputFormat> {
    let words = [
        ("parquet", InputFormat::Parquet),
        ("csv", InputFormat::Text(Format::Csv)),
        ("tsv", InputFormat::Text(Format::Tsv)),
        ("jsonl", InputFormat::Text(Format::JsonLines)),
    ];
    word(text, &words)
}

fn header(text: &str) -> Result<Header> {
    word(text, &[("auto", Header::Auto), ("yes", Header::Yes), ("no", Header::No)])
}

fn short_rows(text: &str) -> Result<bool> {
    word(text, &[("error", false), ("null", true)])
}

fn mapping(text: &str) -> Result<MutationMapping> {
    let words = [
        ("full", MutationMapping::Full),
        ("logical", MutationMapping::Logical),
        ("verbatim", MutationMapping::Verbatim),
    ];
    word(text, &words)
}

fn nulls(text: &str) -> Result<Nulls> {
    word(text, &[("unset", Nulls::Unset), ("null", Nulls::Null)])
}

fn character(text: &str) -> Result<u8> {
    text::character(text)
}

/// What is not nothing.
fn name(text: &str) -> Result<String> {
    if text.is_empty() { Err(Error::misuse("this is empty")) } else { Ok(text.to_owned()) }
}

fn path(text: &str) -> Result<PathBuf> {
    name(text).map(PathBuf::from)
}

fn codec(text: &str) -> Result<Compression> {
    let words = [
        ("uncompressed", Compression::Uncompressed),
        ("none", Compression::Uncompressed),
        ("snappy", Compression::Codec(Codec::Snappy)),
        ("gzip", Compression::Codec(Codec::Gzip)),
        ("zstd", Compression::Codec(Codec::Zstd)),
        ("lz4_raw", Compression::Codec(Codec::Lz4Raw)),
        ("lz4", Compression::Codec(Codec::Lz4Raw)),
        ("brotli", Compression::Codec(Codec::Brotli)),
    ];
    word(text, &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_destination() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
        std::fs::write(&from, "id,name\n2,b\n1,a\n3,c\n").unwrap();
        let mut words = CopyWords::default();
        words.set("codec", "zstd").unwrap();
        let opened = words.open([&from], Some(&to)).unwrap();
        let error = words.copy(&opened, &to, &mut |_| {}).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Option("codec")));
        assert!(!to.exists());
        let mut words = CopyWords::default();
        for (name, value) in [("sort", "id desc"), ("where", "id > 1"), ("columns", "name")] {
            words.set(name, value).unwrap();
        }
        // What is sorted by must be there.
        let error = words.copy(&opened, &to, &mut |_| {}).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Option("sort")));
        words.set("columns", "name,id").unwrap();
        assert_eq!(words.copy(&opened, &to, &mut |_| {}).unwrap().rows, 2);
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "name,id\nc,3\nb,2\n");
    }

    #[test]
    fn options_of_text_are_for_text() {
        let folder = tempfile::tempdir().unwrap();
        let (text, parquet) = (folder.path().join("a.txt"), folder.path().join("a.parquet"));
        std::fs::write(&text, "about it\nid;fare\n1;2,5\n2;NA\n").unwrap();
        let mut words = CopyWords::default();
        for (name, value) in
            [("from", "csv"), ("delimiter", ";"), ("decimal", ","), ("skip", "1"), ("null", "NA,-")]
        {
            words.set(name, value).unwrap();
        }
        let table = words.table([&text]).unwrap();
        assert_eq!(table.names(), ["id", "fare"]);
        words.copy(&table, &parquet, &mut |_| {}).unwrap();
        let csv = folder.path().join("b.csv");
        CopyWords::default().copy(&crate::open(&parquet).unwrap(), &csv, &mut |_| {}).unwrap();
        assert_eq!(std::fs::read_to_string(&csv).unwrap(), "id,fare\n1,2.5\n2,\n");
        let mut words = CopyWords::default();
        words.set("delimiter", ";").unwrap();
        assert_eq!(words.table([&parquet]).err().unwrap().detail(), Some(Detail::Option("delimiter")));
        let mut words = CopyWords::default();
        words.set("sort", "id").unwrap();
        assert_eq!(words.table([&parquet]).err().unwrap().detail(), Some(Detail::Option("sort")));
    }

    #[test]
    fn writes_stay_writes() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("a.csv");
        std::fs::write(&text, "id,fare\n1,2.5\n2,3.5\n").unwrap();
        let address = |name: &str| format!("sstable:{}", folder.path().join(name).display());
        let copy = |from: &str, to: &str, options: &[(&str, &str)]| {
            let mut words = CopyWords::default();
            for (name, value) in options {
                words.set(name, value).unwrap();
            }
            words.copy(&words.open([from], Some(to))?, to, &mut |_| {})
        };
        let new = [("key", "id"), ("table", "ks.t"), ("timestamp", "1700000000000000"), ("format", "da")];
        copy(text.to_str().unwrap(), &address("t"), &new).unwrap();
        let names: Vec<_> = std::fs::read_dir(folder.path().join("t")).unwrap().collect();
        assert!(names.iter().any(|it| it.as_ref().unwrap().file_name().to_string_lossy().starts_with("da-")));
        // All is there that was written, when it was.
        let full = CopyWords::default().table([&address("t")]).unwrap();
        assert!(full.names().contains(&"mutation"), "{:?}", full.names());
        let (again, rows) = (address("again"), address("rows"));
        let error = copy(&address("t"), &again, &[("columns", "id,fare")]).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Option("columns")));
        assert!(!folder.path().join("again").exists());
        copy(&address("t"), &again, &[]).unwrap();
        copy(&address("t"), &rows, &[("columns", "id,fare"), ("mapping", "logical"), ("key", "id")]).unwrap();
        let error = copy(&address("t"), &rows, &[("at", "7"), ("mapping", "full")]).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Option("at")));
        let error = copy(text.to_str().unwrap(), &rows, &[("mapping", "full")]).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Option("mapping")));
    }

    #[test]
    fn each_option_takes_a_value_and_refuses_nonsense() {
        let good = |name: &str| match name {
            "union"
            | "verify"
            | "overwrite"
            | "locator"
            | "create"
            | "trim"
            | "infer_all"
            | "with_metadata"
            | "dry_run"
            | "frozen"
            | "counters_at_least_once"
            | "lists_at_least_once" => "true",
            "hive" => "off",
            "to" | "from" => "csv",
            "delimiter" | "comment" | "decimal" => ";",
            "quote" => "none",
            "header" => "yes",
            "timestamp_format" => "%F",
            "short_rows" | "nulls" => "null",
            "schema" => "a int",
            "text_encoding" => "latin1",
            "mapping" => "logical",
            "token_range" => "1:7",
            "consistency" => "one",
            "format" => "da",
            "layout" => "columns",
            "schema_cql" => "Cargo.toml",
            "codec" => "ZSTD",
            "table" => "ks.t",
            "where" => "a = 1",
            "types" => "a=int",
            "rename" => "a=b",
            "columns" | "sort" | "bloom" | "page_bloom" | "partition_by" | "key" => "a",
            _ => "7",
        };
        for (name, ..) in OPTIONS {
            let mut words = CopyWords::default();
            words.set(name, good(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(words.given.len(), 1);
            // These are text until there is a table.
            let is_any = ["where", "types", "rename", "null", "timestamp", "ttl"].contains(name);
            let is_name = ["password_file", "local_datacenter", "rejects"].contains(name);
            let is_character = ["delimiter", "comment", "decimal", "quote"].contains(name);
            let wrong = if is_name {
                ""
            } else if is_character {
                "ab"
            } else {
                ","
            };
            if !is_any {
                let error = words.set(name, wrong).unwrap_err();
                assert_eq!(error.detail(), Some(Detail::Option(name)), "{error}");
            }
        }
    }
}
