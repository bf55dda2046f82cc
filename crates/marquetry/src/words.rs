//! Copies in words: options by the names that the command has for them, with values as text.

use std::ffi::OsStr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use marquetry_base::{Codec, Detail, Error, Result};
use marquetry_io::blocking::allow_many_files;
use marquetry_parquet::format::Compression;
use marquetry_parquet::write::{BloomOptions, PageBloomOptions};
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::{KeySpec, TableName};
use marquetry_tables::files::Hive;
use marquetry_tables::{Cancel, ColumnPath, Copied, CopyOptions, SortBy, durations_as_text};

use crate::door::options_for;
use crate::{DestinationOptions, OptionGroup, OutputFormat, Reader, SourceOptions, Target, open_all};

/// A copy whose options are words: for doors that get text, as from Python's keyword arguments. Names are the command's, with `_` for `-`; a
/// list's items are separated by commas, columns are named as [`ColumnPath::parse_list`] has it, and sizes are numbers of bytes.
///
/// | options | of |
/// |---|---|
/// | `union`, `hive` | files that are opened |
/// | `columns`, `where`, `types`, `rename`, `limit` | rows |
/// | `to`, `overwrite`, `verify`, `sort`, `memory`, `threads` | the copy |
/// | `codec`, `level`, `bloom`, `page_bloom`, `locator`, `row_group_rows`, `row_group_bytes`, `page_rows`, `page_bytes`, `dictionary_bytes`, `footer_bytes` | Parquet files |
/// | `partition_by`, `file_rows`, `file_bytes` | directories |
/// | `table` | CQL text |
/// | `key` | CQL text, SSTables, tables that are created |
/// | `create` | tables of a cluster |
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
    columns: Option<Vec<ColumnPath>>,
    predicate: Option<String>,
    types: Option<String>,
    rename: Option<String>,
    limit: Option<u64>,
    to: Option<OutputFormat>,
    destination: DestinationOptions,
    overwrites: bool,
    mapping: MappingOptions,
    creates: bool,
    sort: Vec<SortBy>,
    copy: CopyOptions,
    /// Options that were set, and what they have a meaning for.
    given: Vec<(&'static str, &'static [OptionGroup])>,
}

/// Sets an option to what its text says.
type Setter = fn(&mut CopyWords, &str) -> Result<()>;

/// Options of any copy have no group.
const OPTIONS: &[(&str, &[OptionGroup], Setter)] = &[
    ("union", &[], |words, text| set(&mut words.union, parsed(text))),
    ("hive", &[], |words, text| set(&mut words.hive, hive(text))),
    ("columns", &[], |words, text| set(&mut words.columns, ColumnPath::parse_list(text).map(Some))),
    ("where", &[], |words, text| set(&mut words.predicate, Ok(Some(text.to_owned())))),
    ("types", &[], |words, text| set(&mut words.types, Ok(Some(text.to_owned())))),
    ("rename", &[], |words, text| set(&mut words.rename, Ok(Some(text.to_owned())))),
    ("limit", &[], |words, text| set(&mut words.limit, parsed(text).map(Some))),
    ("to", &[], |words, text| set(&mut words.to, format(text).map(Some))),
    ("memory", &[], |words, text| {
        set(&mut words.copy.memory_bytes, parsed::<NonZeroU64>(text).map(NonZeroU64::get))
    }),
    ("threads", &[], |words, text| {
        set(&mut words.copy.threads, parsed::<NonZeroUsize>(text).map(|threads| Some(threads.get())))
    }),
    ("sort", &[OptionGroup::Order], |words, text| set(&mut words.sort, SortBy::parse_list(text))),
    ("verify", &[OptionGroup::Verify], |words, text| set(&mut words.copy.verify, parsed(text))),
    ("overwrite", &[OptionGroup::Overwrite], |words, text| set(&mut words.overwrites, parsed(text))),
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
    ("table", &[OptionGroup::CqlText], |words, text| {
        let name = TableName::parse(text).map_err(|error| Error::misuse(error.to_string()));
        set(&mut words.destination.table, name.map(Some))
    }),
    ("key", &[OptionGroup::Mapping], |words, text| {
        let key = KeySpec::parse(text).map_err(|error| Error::misuse(error.to_string()));
        set(&mut words.mapping.key, key.map(Some))
    }),
    ("create", &[OptionGroup::Cluster], |words, text| set(&mut words.creates, parsed(text))),
];

const PARQUET: &[OptionGroup] = &[OptionGroup::Parquet];
const DIRECTORY: &[OptionGroup] = &[OptionGroup::Directory];

impl CopyWords {
    /// Sets an option. Set again, it is replaced.
    ///
    /// # Errors
    ///
    /// `Misuse` for a name that is not in the table above, and for a text that is no value of the option.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(&(name, groups, set)) = OPTIONS.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = OPTIONS.iter().map(|(known, ..)| *known).collect();
            let what = format!("there is no option {name}; there are {}", known.join(", "));
            return Err(Error::misuse(what));
        };
        set(self, value).map_err(|error| error.with(Detail::Option(name)))?;
        if !self.given.iter().any(|(given, _)| *given == name) {
            self.given.push((name, groups));
        }
        Ok(())
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
        let mut options = match to {
            Some(to) => options_for(&Target::parse(to, self.to)?),
            None => SourceOptions::default(),
        };
        (options.files.union, options.files.hive) = (self.union, self.hive);
        options.files.cancel = self.cancel.clone();
        options.sstables.cancel = self.cancel.clone();
        #[cfg(feature = "cluster")]
        {
            options.cluster.cancel = self.cancel.clone();
        }
        open_all(from, &options)
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
        let target = Target::parse(to, self.to)?;
        for &(name, groups) in &self.given {
            if !groups.is_empty() && !groups.iter().any(|group| target.takes(*group)) {
                let what = format!("this has no meaning for {}", target.address());
                return Err(Error::option(name, what));
            }
        }
        let creates = target.takes(OptionGroup::Cluster) && self.creates;
        if target.takes(OptionGroup::Cluster) && self.mapping.key.is_some() && !creates {
            return Err(Error::option("key", "this is for a table that is created: add the option create"));
        }
        let mut options = self.destination.clone().mapped_by(self.mapping.clone());
        if self.overwrites {
            options = options.overwriting();
        }
        #[cfg(feature = "cluster")]
        {
            options.cluster.create = creates;
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
    fn each_option_takes_a_value_and_refuses_nonsense() {
        let good = |name: &str| match name {
            "union" | "verify" | "overwrite" | "locator" | "create" => "true",
            "hive" => "off",
            "to" => "csv",
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
            if !["where", "types", "rename"].contains(name) {
                let error = words.set(name, ",").unwrap_err();
                assert_eq!(error.detail(), Some(Detail::Option(name)), "{error}");
            }
        }
    }
}
