//! Copies in words: options by the names that the command has for them, with values as text.

mod options;
#[cfg(test)]
mod tests;
mod values;

#[cfg(feature = "cluster")]
use std::collections::BTreeMap;
use std::ffi::OsStr;
#[cfg(feature = "cluster")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::{Detail, Error, Result};
#[cfg(feature = "cluster")]
use marquetry_cluster::{CqlAddress, PASSWORD_VARIABLE, StateOptions, TlsOptions, UnloadOptions};
use marquetry_io::blocking::allow_many_files;
#[cfg(feature = "cluster")]
use marquetry_io::state_file::quoted;
#[cfg(feature = "cluster")]
use marquetry_scylla::bridge::Nulls;
#[cfg(feature = "cluster")]
use marquetry_tables::Address;
use marquetry_tables::files::FilesOptions;
use marquetry_tables::sstables::MutationMapping;
use marquetry_tables::text::TextFormat;
use marquetry_tables::{Cancel, Copied, Described, Filter, Rename, SortBy, durations_as_text};

#[cfg(feature = "cluster")]
use marquetry_tables::{ColumnPath, CopyOptions, DiffOptions, Source, missing};

#[cfg(feature = "cluster")]
use self::options::OF_ROWS;
use self::options::{For, OPTIONS, OTHER_WORDS, Options};
use self::values::InputFormat;
use crate::{OptionGroup, Reader, SourceOptions, Target, open_all};

/// A copy whose options are words: for doors that get text, as from Python's keyword arguments. Names are the command's, with `_` for `-`; a
/// list's items are separated by commas, columns are named as [`ColumnPath::parse_list`] has it, and sizes are numbers of bytes.
///
/// | options | of |
/// |---|---|
/// | `union`, `hive` | files that are opened |
/// | `trust` | what is opened, and what is written |
/// | `from`, `delimiter`, `quote`, `header`, `null`, `comment`, `skip`, `decimal`, `timestamp_format`, `trim`, `short_rows`, `infer_all`, `schema`, `text_encoding` | CSV, TSV and JSON lines that are opened |
/// | `mapping`, `at` | SSTables that are opened |
/// | `token_range` | SSTables and tables of a cluster that are opened |
/// | `with_metadata` | tables of a cluster that are opened |
/// | `consistency`, `rate`, `retry_for` (in seconds), `user`, `password`, `password_file`, `local_datacenter`, `tls`, `ca`, `cert`, `key_file`, `tls_any_host`, `bundle` | clusters |
/// | `columns`, `where`, `types`, `rename`, `limit` | rows |
/// | `to`, `layout`, `overwrite`, `verify`, `sort`, `memory`, `threads` | the copy |
/// | `codec`, `level` | Parquet files, SSTables |
/// | `encoding`, `bloom`, `bloom_fpp`, `page_bloom`, `page_bloom_fpp`, `locator`, `row_group_rows`, `row_group_bytes`, `page_rows`, `page_bytes`, `dictionary_bytes`, `footer_bytes` | Parquet files |
/// | `partition_by`, `file_rows`, `file_bytes` | directories |
/// | `table` | CQL text, SSTables |
/// | `key`, `key_row_number`, `frozen`, `as_set` | CQL text, SSTables, tables that are created |
/// | `nulls`, `timestamps_as`, `null_elements`, `duplicate_keys`, `invalid_utf8` (of text, too) | CQL text, SSTables, tables of a cluster |
/// | `timestamp`, `ttl`, `map` | SSTables, tables of a cluster |
/// | `format`, `max_bytes`, `split_at`, `tablets`, `manifest`, `schema_cql` | SSTables |
/// | `create`, `in_flight`, `rejects`, `max_errors`, `dry_run`, `state`, `resume`, `missing_only`, `counters_at_least_once`, `lists_at_least_once` | tables of a cluster |
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
    options: Options,
    /// Options that were set, and what they have a meaning for.
    given: Vec<(&'static str, For)>,
    /// The texts of those that are [of rows](OF_ROWS).
    #[cfg(feature = "cluster")]
    of_rows: BTreeMap<&'static str, String>,
}

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
        set(&mut self.options, value).map_err(|error| error.with(Detail::Option(name)))?;
        if !self.is_given(name) {
            self.given.push((name, of));
        }
        #[cfg(feature = "cluster")]
        if OF_ROWS.contains(&name) {
            self.of_rows.insert(name, value.to_owned());
        }
        Ok(())
    }

    /// The word for an option of the libraries', which errors name ([`Detail::Option`], [`Detail::AdmittedBy`]): most are called alike.
    ///
    /// ```
    /// assert_eq!(marquetry::CopyWords::word_for("infer_bytes"), "infer_all");
    /// assert_eq!(marquetry::CopyWords::word_for("types"), "types");
    /// ```
    pub fn word_for(option: &str) -> &str {
        OTHER_WORDS.iter().find(|(known, _)| *known == option).map_or(option, |(_, word)| word)
    }

    fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| *given == name)
    }

    /// Opens tables as one, to be read.
    ///
    /// # Errors
    ///
    /// As [`open_all`]; `Misuse` for options that say nothing of how tables are opened, or have no meaning for these.
    pub fn table<S: AsRef<OsStr>>(&self, from: impl IntoIterator<Item = S>) -> Result<Reader> {
        let opened = self.open(from, None::<&str>)?;
        let has_meaning = |of: For| match of {
            For::Opening | For::Limits => true,
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
    /// As [`open_all`], and as [`Target::parse`]; `Misuse` for a user, a password or its file where rows go from one cluster to another: both would
    /// get them, so they are in the addresses; and for a bundle where addresses have hosts.
    pub fn open<S: AsRef<OsStr>>(
        &self,
        from: impl IntoIterator<Item = S>,
        to: Option<impl AsRef<OsStr>>,
    ) -> Result<Reader> {
        let from: Vec<S> = from.into_iter().collect();
        let target = to.map(|to| self.target(to)).transpose()?;
        #[cfg(feature = "cluster")]
        {
            let opened: Vec<Address> = from.iter().map(Address::parse).filter(is_cluster).collect();
            let target = target.as_ref().map(Target::address).filter(|it| is_cluster(it));
            self.expect_own_logins(!opened.is_empty() && target.is_some())?;
            self.expect_bundle_of(opened.iter().chain(target))?;
        }
        open_all(from, &self.reading(target.as_ref())?)
    }

    /// How files are opened whose rows go anywhere: for who looks at the files themselves.
    ///
    /// # Errors
    ///
    /// `Misuse` for options that want another one beside them.
    pub fn files(&self) -> Result<FilesOptions> {
        Ok(self.reading(None)?.files)
    }

    /// Fails for a login by options where there are two clusters: each would get what is for the other.
    #[cfg(feature = "cluster")]
    fn expect_own_logins(&self, is_of_two: bool) -> Result<()> {
        let logins = ["user", "password", "password_file"];
        match logins.into_iter().find(|name| is_of_two && self.is_given(name)) {
            Some(name) => {
                let why = "rows go from one cluster to another, and both would get it: put the logins into the addresses \
                           (cql://USER@HOST/KEYSPACE.TABLE?password_file=FILE)";
                Err(Error::option(name, why))
            }
            None => Ok(()),
        }
    }

    /// Fails for a bundle that none of the clusters is reached by: with hosts in its address, one is connected to as if there were no bundle.
    #[cfg(feature = "cluster")]
    fn expect_bundle_of<'a>(&self, clusters: impl IntoIterator<Item = &'a Address>) -> Result<()> {
        let mut clusters = clusters.into_iter().filter(|it| is_cluster(it)).peekable();
        if self.is_given("bundle") && clusters.peek().is_some() && clusters.all(has_hosts) {
            let why = "a bundle says where the nodes are, and the address does, too: cql:///KEYSPACE.TABLE has no host";
            return Err(Error::option("bundle", why));
        }
        Ok(())
    }

    /// How tables are opened whose rows go there.
    fn reading(&self, target: Option<&Target>) -> Result<SourceOptions> {
        let mut options = SourceOptions::default();
        (options.files.union, options.files.hive) = (self.options.union, self.options.hive);
        options.files.cancel = self.cancel.clone();
        // What goes into a file within a table is rows, as for any file.
        let other = target.filter(|target| !target.takes(OptionGroup::Columns));
        options.files.destination = other.map(|target| target.address().clone());
        options.files.renames = vec![self.renamed()?, self.options.map.clone()];
        options.files.limits = self.options.limits();
        self.read_text(&mut options, target);
        (options.sstables.cancel, options.sstables.limits) = (self.cancel.clone(), self.options.limits());
        options.sstables.tokens = self.options.tokens;
        (options.sstables.mapping, options.sstables.at) = self.mutations(target)?;
        #[cfg(feature = "cluster")]
        {
            options.cluster = self.unload()?;
            (options.cluster.cancel, options.cluster.limits) = (self.cancel.clone(), self.options.limits());
            options.cluster.tokens = self.options.tokens;
        }
        Ok(options)
    }

    /// What an address means that rows go to.
    fn target(&self, to: impl AsRef<OsStr>) -> Result<Target> {
        #[cfg(feature = "cluster")]
        if let (Some(layout), Some("cql")) = (self.options.layout, Address::parse(&to).scheme()) {
            return match self.options.to {
                None => Target::parse(to, Some(layout)),
                Some(_) => Err(Error::option("to", "a table of a cluster has a layout, and no format")),
            };
        }
        Target::parse(to, self.options.to)
    }

    /// How a table of a cluster is read, and either is talked to.
    #[cfg(feature = "cluster")]
    fn unload(&self) -> Result<UnloadOptions> {
        let Options { unload, tls, encrypts, .. } = &self.options;
        let mut options = unload.clone();
        options.connect.password_variable = Some(PASSWORD_VARIABLE.to_owned());
        if !tls.verify_hosts && tls.authorities.is_none() {
            return Err(Error::option("tls_any_host", "this is for authorities of your own: ca names them"));
        }
        if *encrypts || *tls != TlsOptions::default() {
            options.connect.tls = Some(tls.clone());
        }
        Ok(options)
    }

    /// How files that are text are read.
    fn read_text(&self, options: &mut SourceOptions, target: Option<&Target>) {
        if let Some(InputFormat::Parquet) = self.options.from {
            options.files.formats = Vec::new();
            return;
        }
        let mut text = self.options.text.clone();
        let target = target.filter(|_| !self.is_given("timestamps_as"));
        (text.timestamp_unit, text.limits) = (target.and_then(Target::timestamp_unit), self.options.limits());
        let mut format = TextFormat::new(text);
        format.preparing.skip_lines = self.options.skip_lines;
        format.preparing.encoding = self.options.encoding;
        format.cancel = self.cancel.clone();
        if let Some(InputFormat::Text(of)) = self.options.from {
            format.format = Some(of);
            options.files.extensions = of.extensions();
        }
        options.files.formats = vec![Arc::new(format)];
    }

    /// What a row of SSTables is, and the time at which it is that.
    fn mutations(&self, target: Option<&Target>) -> Result<(MutationMapping, Option<u32>)> {
        let is_text = target.is_some_and(|target| target.takes(OptionGroup::CqlText));
        let mapping = match self.options.mapping {
            Some(mapping) => mapping,
            None if is_text || self.options.at.is_some() => MutationMapping::Logical,
            None => MutationMapping::Full,
        };
        if self.options.at.is_some() && mapping != MutationMapping::Logical {
            let why = "the other mappings have all that was written, with its times";
            return Err(Error::option("at", format!("this is for the mapping logical; {why}")));
        }
        Ok((mapping, self.options.at))
    }

    /// Fails for rows that are writes, and would lose write times, TTLs and deletions on their way.
    fn expect_writes(&self, from: &Reader, target: &Target) -> Result<()> {
        if !target.takes(OptionGroup::Mapping) {
            return Ok(());
        }
        let table = from.table();
        for &(name, of) in &self.given {
            let changes_rows = matches!(of, For::To(groups) if groups.contains(&OptionGroup::Mapping));
            if changes_rows || ["columns", "types", "rename", "map"].contains(&name) {
                Described::expect_columns(table, name)?;
            }
        }
        match &self.options.predicate {
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
        if let Some(predicate) = &self.options.predicate {
            table = table.filter(predicate).map_err(|error| error.with(Detail::Option("where")))?;
        }
        if let Some(types) = &self.options.types {
            table = table.types(types).map_err(|error| error.with(Detail::Option("types")))?;
        }
        table = table.renamed(&self.renamed()?)?.renamed(&self.options.map)?;
        match &self.options.columns {
            Some(columns) => table.paths(columns),
            None => Ok(table),
        }
    }

    /// The names that columns get.
    fn renamed(&self) -> Result<Rename> {
        let names = self.options.rename.as_deref().map(str::parse::<Rename>).transpose();
        Ok(names
            .map_err(|error| error.with(Detail::Option("rename")))?
            .unwrap_or_default()
            .by_option("rename"))
    }

    /// Opens tables as one, as [`open`](CopyWords::open), and copies their rows, as [`copy`](CopyWords::copy); with the option `state`, so that the
    /// copy can go on later.
    ///
    /// # Errors
    ///
    /// Those of both; `Misuse` for a state of what cannot be known again: a live table, or a pipe.
    pub fn copy_all<S: AsRef<OsStr>>(
        &self,
        from: impl IntoIterator<Item = S>,
        to: impl AsRef<OsStr>,
        report: &mut dyn FnMut(&Copied),
    ) -> Result<Copied> {
        let from: Vec<PathBuf> = from.into_iter().map(|address| PathBuf::from(address.as_ref())).collect();
        let opened = self.open(&from, Some(&to))?;
        #[cfg(feature = "cluster")]
        if let Some(path) = &self.options.state {
            let mut words = self.clone();
            words.options.destination.cluster.state = Some(self.state(path, &from, &self.target(&to)?)?);
            return words.copy(&opened, to, report);
        }
        self.copy(&opened, to, report)
    }

    /// What a load can go on from.
    #[cfg(feature = "cluster")]
    fn state(&self, path: &Path, from: &[PathBuf], target: &Target) -> Result<StateOptions> {
        let refused = |why: &'static str| Err(Error::option("state", why));
        let addresses: Vec<Address> = from.iter().map(Address::parse).collect();
        if addresses.iter().any(|it| *it == Address::Standard || it.scheme() == Some("cql")) {
            return refused(
                "this is for files: a live table, or what comes through a pipe, may have other rows when the load goes on",
            );
        }
        let sstables: Vec<&Path> = addresses.iter().filter_map(Address::sstables).collect();
        let (mapping, at) = self.mutations(Some(target))?;
        if !sstables.is_empty() && mapping == MutationMapping::Logical && at.is_none() {
            return refused(
                "with the mapping logical this needs the option at: rows that expire meanwhile would not be there when the load goes on",
            );
        }
        if self.options.destination.cluster.rejects.as_deref() == Some(path) {
            return refused("this and rejects are the same file; each needs its own");
        }
        let reading = self.reading(Some(target))?;
        let mut state = StateOptions::new(path);
        for path in &sstables {
            state.source += &marquetry_tables::sstables::unchanged(path, &reading.sstables)?;
        }
        if sstables.is_empty() {
            state.source = marquetry_tables::files::unchanged(from, &reading.files)?;
        }
        let of_rows = self.of_rows.iter().map(|(name, text)| format!("{name} {}", quoted(text)));
        (state.resume, state.options) = (self.options.resumes, of_rows.collect::<Vec<_>>().join(" "));
        Ok(state)
    }

    /// Of a source's rows those that a table of a cluster does not have, by its key.
    #[cfg(feature = "cluster")]
    fn missing(&self, source: &Arc<dyn Source>, to: &OsStr) -> Result<Arc<dyn Source>> {
        let wrong = |why: &'static str| Error::option("missing_only", why);
        let described = Described::of(source.table())?;
        if described.is_some_and(|it| it.mapping == MutationMapping::Full) {
            return Err(wrong(
                "rows are compared, and these are writes: the mapping logical makes rows of them",
            ));
        }
        if self.options.rows.timestamps_as_millis {
            return Err(wrong("timestamps_as cuts digits off, and such rows would be others each time"));
        }
        let mut reading = SourceOptions { cluster: self.unload()?, ..SourceOptions::default() };
        reading.cluster.cancel = self.cancel.clone();
        let there = open_all([to], &reading)?;
        let key = Described::of(there.source().table())?;
        let key = key.map(|it| [it.columns.partition_key, it.columns.clustering].concat());
        let mut options = DiffOptions::default();
        options.key = key.iter().flatten().map(|key| ColumnPath::of([key.name.as_str()])).collect();
        if options.key.is_empty() {
            return Err(wrong("this needs a table of the layout rows with a key"));
        }
        let CopyOptions { memory_bytes, threads, .. } = &self.options.copy;
        (options.memory_bytes, options.threads) = (memory_bytes / 2, *threads);
        (options.as_loaded, options.keeps_nulls) = (true, self.options.rows.nulls == Nulls::Unset);
        options.cancel = self.cancel.clone();
        missing(source, there.source(), &options)
    }

    /// Copies the rows of a table that was [opened](CopyWords::open) with these options.
    ///
    /// # Errors
    ///
    /// `Misuse` for options that have no meaning for this destination, or want another one beside them; otherwise as
    /// [`shaped`](CopyWords::shaped), [`Target::open`] and [`tables::copy`](marquetry_tables::copy()).
    pub fn copy(
        &self,
        from: &Reader,
        to: impl AsRef<OsStr>,
        report: &mut dyn FnMut(&Copied),
    ) -> Result<Copied> {
        let target = self.target(&to)?;
        #[cfg(feature = "cluster")]
        if from.takes(OptionGroup::Cluster) {
            // The address that it was opened by was looked at then.
            self.expect_own_logins(is_cluster(target.address()))?;
        } else {
            self.expect_bundle_of([target.address()])?;
        }
        self.copy_opened(from, to.as_ref(), &target, report)
    }

    /// Copies rows at hand: of a table that was opened otherwise, or of no table at all. Options of clusters are the destination's.
    ///
    /// # Errors
    ///
    /// As [`copy`](CopyWords::copy); `Misuse` for options of what is opened, too: they would say nothing of these rows.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (from, to) = (folder.path().join("a.csv"), folder.path().join("a.parquet"));
    /// # std::fs::write(&from, "id;fare\n2;20.5\n").unwrap();
    /// let mut words = marquetry::CopyWords::default();
    /// words.set("delimiter", ";")?;
    /// let table = words.table([&from])?;
    /// assert!(words.copy_rows(&table, &to, &mut |_| {}).is_err());
    /// assert_eq!(marquetry::CopyWords::default().copy_rows(&table, &to, &mut |_| {})?.rows, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_rows(
        &self,
        from: &Reader,
        to: impl AsRef<OsStr>,
        report: &mut dyn FnMut(&Copied),
    ) -> Result<Copied> {
        let target = self.target(&to)?;
        let is_late = |of: For| match of {
            For::Opening => true,
            For::From(groups) => groups.iter().any(|group| from.takes(*group)),
            For::Either(groups) => {
                let is_of = |takes: &dyn Fn(OptionGroup) -> bool| groups.iter().any(|group| takes(*group));
                is_of(&|group| from.takes(group)) && !is_of(&|group| target.takes(group))
            }
            For::Limits | For::Copy | For::To(_) => false,
        };
        if let Some((name, _)) = self.given.iter().find(|(_, of)| is_late(*of)) {
            let why = format!("this is said when a table is opened, and {} is open", from.table().name);
            return Err(Error::option(name, why));
        }
        #[cfg(feature = "cluster")]
        self.expect_bundle_of([target.address()])?;
        self.copy_opened(from, to.as_ref(), &target, report)
    }

    fn copy_opened(
        &self,
        from: &Reader,
        #[cfg_attr(
            not(feature = "cluster"),
            expect(unused_variables, reason = "rows that are missing are looked for in clusters only")
        )]
        to: &OsStr,
        target: &Target,
        report: &mut dyn FnMut(&Copied),
    ) -> Result<Copied> {
        for &(name, of) in &self.given {
            let has_meaning = match of {
                For::Opening | For::Limits | For::Copy => true,
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
        self.expect_writes(from, target)?;
        let mut options = self.options.writing(target)?;
        #[cfg(feature = "cluster")]
        {
            let cluster = &mut options.cluster;
            let is_there = target.takes(OptionGroup::Cluster) && !cluster.create;
            let of_creation = ["key", "as_set", "frozen"].into_iter().find(|name| self.is_given(name));
            if let Some(name) = of_creation.filter(|_| is_there) {
                return Err(Error::option(
                    name,
                    "this is for a table that is created: add the option create",
                ));
            }
            if self.is_given("max_errors") && cluster.rejects.is_none() {
                let why = "this is for rows that are put aside: the option rejects names their file";
                return Err(Error::option("max_errors", why));
            }
            if self.options.resumes && self.options.state.is_none() {
                return Err(Error::option("resume", "this goes on with a state: the option state names it"));
            }
            if self.options.state.is_some() && cluster.state.is_none() {
                return Err(Error::option(
                    "state",
                    "this is for files that are copied, not for rows at hand",
                ));
            }
            if self.options.missing_only && (cluster.create || cluster.state.is_some()) {
                return Err(Error::option("missing_only", "this has no meaning with create, nor with state"));
            }
            let UnloadOptions { connect, consistency, rate, retry_for, .. } = self.unload()?;
            (cluster.connect, cluster.consistency) = (connect, consistency);
            (cluster.rate, cluster.retry_for) = (rate, retry_for);
            (cluster.timestamp, cluster.ttl) = (self.options.timestamp.clone(), self.options.ttl.clone());
        }
        if self.options.overwrites {
            options = options.overwriting();
        }
        // Files of a directory wait without a name while they may be open.
        allow_many_files();
        let mut destination = target.open(&options)?;
        let table = self.shaped(from)?;
        let mut copy = self.options.copy.clone();
        (copy.limit, copy.cancel) = (self.options.limit, self.cancel.clone());
        // What was said of the table itself.
        copy.threads = copy.threads.or_else(|| from.reading_options().threads.map(|threads| threads.max(1)));
        let sort = SortBy::resolve(&self.options.sort, table.schema());
        copy.sort = sort.map_err(|error| error.with(Detail::Option("sort")))?;
        let source =
            if target.is_flat_text() { durations_as_text(table.source())? } else { table.source().clone() };
        #[cfg(feature = "cluster")]
        let source = if self.options.missing_only { self.missing(&source, to)? } else { source };
        marquetry_tables::copy(&source, destination.as_mut(), &copy, report)
    }
}

#[cfg(feature = "cluster")]
fn is_cluster(address: &Address) -> bool {
    address.scheme() == Some("cql")
}

/// Whether the address of a cluster says where it is. One that is none is refused elsewhere.
#[cfg(feature = "cluster")]
fn has_hosts(address: &Address) -> bool {
    let Address::Url { text, .. } = address else { return false };
    text.parse::<CqlAddress>().is_ok_and(|address| !address.hosts().is_empty())
}
