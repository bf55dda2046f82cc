//! A node's SSTables, each as a Parquet file as soon as it is complete.
//!
//! A directory is looked at when the kernel reports that it changed ([`notices`]). An SSTable is complete when its table of contents and all
//! files that this lists are there, and no open transaction adds it ([`directory`]). It is then linked ([`links`]), so that no compaction can
//! delete what is read; it is decided whether it becomes a file ([`choice`]), and that is written down ([`state`]); then it is converted
//! ([`convert`]) to a file that appears under its name when it is complete. The names of files say of which SSTables they are ([`output`]).
//!
//! So a process that is killed leaves, at any moment, links whose table of contents is missing (they are removed), links of which nothing is
//! decided (they are looked at like new ones), links that are to be converted (they are), or links of what is in the destination (they are
//! removed).

mod begin;
mod catalog;
mod choice;
mod convert;
mod coverage;
mod definitions;
mod directory;
mod held;
mod links;
mod metrics;
mod notices;
mod options;
mod output;
mod pace;
mod report;
mod retry;
mod schema;
mod start;
mod state;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use marquetry_base::{Error, ErrorKind, Result};
use marquetry_io::failed;

use crate::reading::processors;
use crate::sstables::options::Definition;
use begin::{add_directories, begin};
use catalog::{Catalog, Item, Report, is_of_data, subject_of};
use convert::{Conversion, schema_file};
use definitions::Definitions;
use marquetry_scylla::sstable::Component;
use notices::{Notices, Wake};
use output::Output;
use pace::Pace;
use retry::Retry;
use schema::{NodeSchema, Standing};
use state::State;
use tables::find_tables;

pub use options::{Keep, TablePattern, WatchOptions};
pub use report::{WatchEvent, WatchSummary, WatchedFile};

/// How often it is looked whether the watching is cancelled.
const WAIT: Duration = Duration::from_millis(200);

/// How often directories are looked at during a conversion, if they changed.
const LOOK: Duration = Duration::from_millis(100);

/// How often metrics are written if nothing happens.
const METRICS: Duration = Duration::from_secs(15);
/// How long an SSTable may lack a component before that is said: servers write them in less, and delete them.
const INCOMPLETE: Duration = Duration::from_secs(60);
/// What is wrong when a disk is gone.
const DISKS: &str = "the data directories";

/// Converts each SSTable of a node that is complete, or becomes so, to a Parquet file: once, also after restarts of this process or of the
/// server. Returns when it is cancelled; with [`WatchOptions::once`], when all that is there is converted.
///
/// ```no_run
/// use marquetry_tables::sstables::{WatchEvent, WatchOptions, watch};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut options = WatchOptions::new("/var/lib/cassandra/data", "lake/");
/// options.tables = vec!["ks.trips".parse()?];
/// let stop = options.cancel.clone(); // ends it, from any thread
/// watch(&options, &mut |event| {
///     if let WatchEvent::Converted(file) = event {
///         println!("{}: {} rows", file.path.display(), file.rows);
///     }
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Io` if the data directory or the destination cannot be read at first, or the directory for work cannot be written; `Misuse` if the data
/// directory is none, the directory for work is on another file system, the definition defines nothing, another
/// watcher has that directory or the destination, or if the options are others than those that files of the destination were written with. What fails
/// later is [reported](WatchEvent::Failed), and tried again where that makes sense.
pub fn watch(options: &WatchOptions, report: &mut dyn FnMut(&WatchEvent<'_>)) -> Result<WatchSummary> {
    start::check(options)?;
    // A directory that is not there would be created below.
    for data in options.directories() {
        find_tables(data, &options.tables)?;
    }
    options.check()?;
    let mut works = vec![Work::create(options.work())?];
    let state_path = options.work().join("state");
    let claimed = begin(&state_path, options).and_then(|mut state| {
        for data in options.more_data.iter().filter(|_| options.work.is_none()) {
            works.push(Work::create(options.work_of(data))?);
        }
        start::check_links(options)?;
        let output = Output::open(&options.store, &options.destination)?;
        // First: who owns the destination is known then, whenever this is killed. What is known already is not written again: that takes time in which
        // a compaction may delete what is not linked yet.
        let known = State::load(&state_path)?;
        if known.as_ref() != Some(&state) {
            state.save(&state_path)?;
        }
        output.claim(&state.owner, &options.data)?;
        // Only now that all of them can be watched: later starts ask for each data directory that was.
        let claimed = state.clone();
        add_directories(&mut state, options);
        if claimed != state {
            state.save(&state_path)?;
        }
        Ok((state, output))
    });
    let (state, output) = claimed.inspect_err(|_| works.iter().for_each(Work::leave_nothing))?;
    let mut watcher = Watcher {
        options,
        catalog: Catalog::new(options, output, state, state_path),
        notices: None,
        pace: Pace::new(options.share_percent, processors()),
        schema: NodeSchema::new(
            options.directories().cloned().collect(),
            options.work().join("schema"),
            options.limits,
        ),
        definitions: Definitions::new(options.work().join("definitions")),
        looking: Retry::new(),
        metrics_written: None,
    };
    let watched = watcher.run(report);
    watcher.write_metrics(true, report);
    watched.map(|()| watcher.catalog.counts.clone())
}

/// A directory for work. It is this process's while it is there.
struct Work {
    path: PathBuf,
    /// What was not there before.
    new: Vec<PathBuf>,
    _lock: fs::File,
}

impl Work {
    fn create(path: PathBuf) -> Result<Work> {
        let new = path.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect();
        fs::create_dir_all(&path).map_err(|error| cannot(&path, "created", error))?;
        let lock = lock(&path)?;
        Ok(Work { path, new, _lock: lock })
    }

    /// It was refused, and leaves nothing behind. (That the directory stays if this fails changes nothing.)
    fn leave_nothing(&self) {
        if self.new.is_empty() {
            return;
        }
        for file in ["state", "lock"] {
            let _ = fs::remove_file(self.path.join(file));
        }
        for directory in &self.new {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// One process at a time: the lock is held until the file is closed, whatever ends the process.
fn lock(work: &Path) -> Result<fs::File> {
    let path = work.join("lock");
    let opened = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(|error| cannot(&path, "opened", error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            let what = "another watcher has this directory for work: end that, or name another one (--work)";
            Err(Error::misuse(what).at(|place| place.object = Some(work.display().to_string())))
        }
        Err(fs::TryLockError::Error(error)) => Err(cannot(&path, "locked", error)),
    }
}

struct Watcher<'a> {
    options: &'a WatchOptions,
    catalog: Catalog,
    /// `None` if it is looked only once.
    notices: Option<Notices>,
    pace: Option<Pace>,
    schema: NodeSchema,
    definitions: Definitions,
    looking: Retry,
    metrics_written: Option<Instant>,
}

impl Watcher<'_> {
    fn run(&mut self, report: &mut Report<'_>) -> Result<()> {
        let mut polling = None;
        if !self.options.once {
            let (notices, why) = Notices::new(self.options);
            (self.notices, polling) = (Some(notices), why);
        }
        self.catalog.resume(true, report)?;
        self.look_at_all(report)?;
        self.catalog.resume(false, report)?;
        self.catalog.begun()?;
        self.find_node(report);
        self.remember();
        self.definitions.release(|place| self.catalog.has_place(place))?;
        self.say_what_is_not_there(report);
        self.catalog.say_failed_before(report);
        let (tables, waiting) = (self.catalog.table_count(), self.catalog.waiting());
        report(&WatchEvent::Started { tables, waiting, polling: polling.as_deref() });
        while !self.options.cancel.is_set() {
            self.write_metrics(false, report);
            self.catalog.say_incomplete(INCOMPLETE, report);
            let is_idle = !self.catalog.has_next();
            if is_idle && self.options.once {
                self.catalog.say_incomplete(Duration::ZERO, report);
                break;
            }
            if is_idle {
                self.catalog.settle()?;
            }
            self.notice(if is_idle { WAIT } else { Duration::ZERO }, report)?;
            if self.catalog.is_to_look_again && !self.looking.is_waiting() && !self.options.once {
                self.catalog.is_to_look_again = false;
                self.look_at_all(report)?;
                match self.catalog.is_to_look_again {
                    true => drop(self.looking.failed()),
                    false => self.looking.succeeded(),
                }
            }
            if let Some(item) = self.catalog.next(report) {
                self.convert(item, report)?;
            }
        }
        self.catalog.settle()
    }

    /// Which node this is, so that positions tell what compactions make before a flush was seen with its log. Not before all was looked at that
    /// there is, and so not where it is looked only once: what other nodes sent may have been compacted since the last run, and positions do not
    /// tell of that.
    fn find_node(&mut self, report: &mut Report<'_>) {
        if self.options.once || self.catalog.is_node_known() {
            return;
        }
        match self.schema.host(&self.options.cancel) {
            Ok(host) => self.catalog.node_is(host),
            Err(_) if self.options.cancel.is_set() => {}
            Err(error) => {
                let text = format!(
                    "which node this is will be known from a flush: system.local cannot be read: {error}"
                );
                report(&WatchEvent::Note(&text));
            }
        }
    }

    /// Tables that were named and are not there.
    fn say_what_is_not_there(&self, report: &mut Report<'_>) {
        let later = if self.options.once { "" } else { " yet; it is watched as soon as there is" };
        for pattern in &self.options.tables {
            if !self.catalog.has_any(pattern) {
                report(&WatchEvent::Note(&format!("no table is called {pattern}{later}")));
            }
        }
    }

    /// Waits for changes, and looks at what changed.
    fn notice(&mut self, at_most: Duration, report: &mut Report<'_>) -> Result<()> {
        let Some(notices) = &mut self.notices else { return Ok(()) };
        let wake = match notices.wait(at_most) {
            Ok(wake) => wake,
            Err(error) => {
                let how = notices.give_up(&error);
                report(&WatchEvent::Note(&format!("directories are looked at {how}")));
                Wake { all: true, ..Wake::default() }
            }
        };
        if wake.all {
            return self.look_at_all(report);
        }
        self.catalog.look(&wake.directories, report)?;
        if !wake.directories.is_empty() {
            self.remember();
        }
        Ok(())
    }

    /// Keeps the definitions of the tables that SSTables were just linked of, for the time when another table has their names. What cannot be read
    /// now is found when an SSTable is converted.
    fn remember(&mut self) {
        let places = std::mem::take(&mut self.catalog.linked_of);
        if self.options.definition != Definition::Beside {
            return;
        }
        for place in places {
            let kept = match self.schema.standing(&place, &self.options.cancel) {
                Ok(Standing::Current(Some(text))) => self.definitions.keep(&place, &text),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if kept.is_err_and(|error| !is_of_data(&error)) {
                self.catalog.linked_of.insert(place);
            }
        }
    }

    /// Looks for tables, and at all of them.
    fn look_at_all(&mut self, report: &mut Report<'_>) -> Result<()> {
        if !self.catalog.are_there() {
            return self.look_at_what_is_there(report);
        }
        let mut tables = Vec::new();
        for data in self.options.directories() {
            // Listened to before it is looked at, so that nothing is missed in between.
            self.listen(data, report);
            let found = match find_tables(data, &self.options.tables) {
                Ok(found) => found,
                Err(error) => {
                    self.catalog.trouble(&data.display().to_string(), &error, report);
                    return Ok(());
                }
            };
            for (path, error) in &found.faults {
                self.catalog.trouble(&path.display().to_string(), error, report);
            }
            let paths = found.keyspaces.iter().chain(found.tables.iter().map(|table| &table.path));
            for path in paths {
                self.listen(path, report);
            }
            // Tables that appeared in a keyspace before that was listened to.
            let found = find_tables(data, &self.options.tables).unwrap_or(found);
            for table in &found.tables {
                self.listen(&table.path, report);
            }
            tables.extend(found.tables);
        }
        // Meanwhile, a disk may have gone.
        if !self.catalog.are_there() {
            return self.look_at_what_is_there(report);
        }
        self.catalog.succeeded(DISKS);
        self.catalog.set_tables(tables);
        let paths = self.catalog.table_paths();
        self.catalog.look(&paths, report)?;
        self.remember();
        Ok(())
    }

    /// Looks at the tables that are known, but for those of a disk that is gone: an empty mount point is no data directory without tables, and what is known of
    /// these stays until it is back.
    fn look_at_what_is_there(&mut self, report: &mut Report<'_>) -> Result<()> {
        let gone = Error::io("one has no directory for work any more: is its file system mounted?");
        self.catalog.trouble(DISKS, &gone, report);
        let mut paths = self.catalog.table_paths();
        paths.retain(|path| path.is_dir());
        self.catalog.look(&paths, report)
    }

    fn listen(&mut self, path: &Path, report: &mut Report<'_>) {
        let Some(notices) = &mut self.notices else { return };
        match notices.add(path) {
            // It is gone, which is noticed in the directory above.
            Err(_) if !path.exists() => {}
            Err(error) => {
                let how = notices.give_up(&error);
                report(&WatchEvent::Note(&format!("directories are looked at {how}")));
            }
            Ok(()) => {}
        }
    }

    fn convert(&mut self, mut item: Item, report: &mut Report<'_>) -> Result<()> {
        let started = Instant::now();
        let id = &item.linked.id;
        let path = self.catalog.output.path_of(id);
        let store = self.catalog.output.store.clone();
        let definition = self.definition(&item, report);
        let created = self.catalog.output.create_directory_of(id);
        let options = self.options;
        let mut looked = Instant::now();
        if let Some(pace) = &mut self.pace {
            pace.begin();
        }
        let mut failure = Ok(());
        // Rests, and looks meanwhile at what changed: a compaction may delete what is not linked yet.
        let mut rest = |watcher: &mut Self, report: &mut Report<'_>| loop {
            let is_rested = watcher.pace.as_ref().is_none_or(|pace| pace.rest(LOOK, &options.cancel));
            if failure.is_ok() && looked.elapsed() >= LOOK {
                failure = watcher.notice(Duration::ZERO, report);
                looked = Instant::now();
            }
            if is_rested || failure.is_err() {
                return;
            }
        };
        let converted = created.and(definition).and_then(|definition| {
            let conversion =
                Conversion { linked: &item.linked, path: &path, store: &store, definition, options };
            conversion.run(&mut |_| rest(self, report))
        });
        rest(self, report);
        failure?;
        match converted {
            Ok(done) => {
                self.looking.succeeded();
                let file = WatchedFile {
                    table: item.table.clone(),
                    sstable: id.stem.clone(),
                    path,
                    rows: done.rows,
                    bytes_read: item.linked.files.bytes_of(&Component::Data).unwrap_or_default(),
                    bytes: done.bytes,
                    took: started.elapsed(),
                    since_noticed: item.noticed.elapsed(),
                };
                for note in &done.notes {
                    self.catalog.note(&item.table, &note.text, report);
                }
                if !done.was_there {
                    self.count(&file);
                    report(&WatchEvent::Converted(&file));
                }
                self.catalog.converted(&item, report)?;
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => self.catalog.cancelled(item),
            Err(error) if is_of_data(&error) => self.catalog.failed(item, &error, report)?,
            Err(error) => {
                let subject = subject_of(&item.linked);
                self.catalog.counts.retries += 1;
                let again = (!self.options.once).then(|| item.retry.failed());
                if self.catalog.is_new(&subject, &error) {
                    report(&WatchEvent::Failed { subject: &subject, error: &error, again });
                }
                self.catalog.counts.unreachable = Some(error);
                match self.options.once {
                    true => self.catalog.leave(item),
                    false => self.catalog.postponed(item),
                }
            }
        }
        self.write_metrics(true, report);
        Ok(())
    }

    fn count(&mut self, file: &WatchedFile) {
        let counts = &mut self.catalog.counts;
        counts.converted += 1;
        counts.rows += file.rows;
        counts.bytes_read += file.bytes_read;
        counts.bytes += file.bytes;
        counts.busy += file.took;
        if !self.options.once {
            counts.unreachable = None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        counts.last_converted = now.as_secs();
    }

    /// The definition of a table: the one that is given, or a file near the table, or what the node's schema tables say.
    ///
    /// # Errors
    ///
    /// `Io` if the schema tables cannot be read just now: columns would get other names.
    fn definition(&mut self, item: &Item, report: &mut Report<'_>) -> Result<Definition> {
        if self.options.definition != Definition::Beside {
            return Ok(self.options.definition.clone());
        }
        if let Some(file) = item.linked.definition() {
            return Ok(Definition::File(file));
        }
        let (options, place) = (self.options, &item.linked.id.place);
        let of = |path: &Path| {
            let file = schema_file(path, options.directory_of(path), &item.table)?;
            Some((file.parent() == Some(path), file))
        };
        let file = match self.catalog.paths_of(place).find_map(of) {
            // What is in a table's own directory is that table's.
            Some((true, file)) => return Ok(Definition::File(file)),
            other => other.map(|(_, file)| file),
        };
        let standing = match self.schema.standing(place, &options.cancel) {
            Err(error) if file.is_none() && !is_of_data(&error) => return Err(error),
            Err(error) if file.is_none() => {
                let text = format!("the node's schema tables cannot be read: {}", error.message());
                self.catalog.note(&item.table, &text, report);
                Standing::Unknown
            }
            standing => standing.unwrap_or(Standing::Unknown),
        };
        match (standing, file) {
            // Whatever says what a table of that name has means the other one.
            (Standing::Replaced, _) => match self.definitions.of(place)? {
                Some(text) => Ok(Definition::Text(text.clone())),
                None => {
                    let text = "it was dropped, and another table has its name: its key columns are called pk0, ck0 and so on, because its definition is not \
                                known any more";
                    self.catalog.note(&format!("{place} ({})", item.table), text, report);
                    Ok(Definition::Missing)
                }
            },
            (Standing::Current(text), file) => {
                if let Some(text) = &text {
                    self.definitions.keep(place, text)?;
                }
                let of_node = text.map_or(Definition::Beside, Definition::Text);
                Ok(file.map_or(of_node, Definition::File))
            }
            (Standing::Unknown, Some(file)) => Ok(Definition::File(file)),
            (Standing::Unknown, None) => {
                let text = self.definitions.of(place)?;
                Ok(text.map_or(Definition::Beside, |text| Definition::Text(text.clone())))
            }
        }
    }

    fn write_metrics(&mut self, is_due: bool, report: &mut Report<'_>) {
        let Some(path) = &self.options.metrics else { return };
        if !is_due && self.metrics_written.is_some_and(|written| written.elapsed() < METRICS) {
            return;
        }
        self.metrics_written = Some(Instant::now());
        if let Err(error) = metrics::write(path, &self.catalog.counts) {
            self.catalog.note(&path.display().to_string(), error.message(), report);
        }
    }
}

fn cannot(path: &Path, done: &str, error: std::io::Error) -> Error {
    failed(done, &path.display().to_string(), error)
}
