//! A live table as a destination.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::{Mapping, MappingOptions, Nulls};
use marquetry_scylla::cql::{CqlType, Name, TableDef, TypeDef};
use marquetry_scylla::sstable::TableColumns;
use marquetry_tables::stamps::{Stamps, Ttl, WriteTimes};
use marquetry_tables::{Cancel, Destination, Distinct, Guard, Source, Stage, Table, Wants, Watch, Written};

use crate::address::CqlAddress;
use crate::cluster::{Cluster, Created};
use crate::columns::is_columns;
use crate::counts::Counts;
use crate::error::Error as ClusterError;
use crate::layout::{self, Laying, Planned, TableLayout};
use crate::load::{self, By, Ended, Load, Sending};
use crate::loading::{End, Loading, Road, SameKey, Stop, next_write_time_us};
use crate::made_like::MadeLike;
use crate::mapped::{self, RowsOf};
use crate::notes::{remains, repeated_keys};
use crate::options::{CqlOptions, IN_FLIGHT_MAX};
use crate::rejects::{self, Rejects};
use crate::retry::{FEW, Retries};
use crate::rows::{BlockSize, Filling};
use crate::same_table::SameTable;
use crate::state::{Identity, State as LoadState, identity_of};
use crate::statement::{Kind, RowStatement, is_counter};
use crate::unload::is_scylla;
use crate::writes::{Earlier, Writes, Writing};

/// A table of a live cluster, as a [`Destination`]: created on request, or used as it is.
///
/// 1. [`begin`](Destination::begin) connects, and checks everything that can be wrong before the first row. It
///    creates the table and its types if requested.
/// 2. [`write`](Destination::write) converts rows to cells on the calling thread, and hands them to the connection's
///    own threads, which send them: prepared, and many at a time. It blocks while too many are waiting. Rows that the
///    cluster rejects are reported by a later `write`, or by `finish`.
/// 3. [`finish`](Destination::finish) waits for all answers. `commit` has nothing to do.
///
/// **Rows of a live table cannot be taken back.** After an error the table has the rows that
/// [`progress`](Destination::progress) counts, and possibly others whose answers were lost. If the error is a row that
/// the table cannot hold, all rows before it are loaded. The load can be run again: rows are written again unchanged,
/// with a later write time. With a [state](CqlOptions::state) it can go on where it ended, also after a crash. Rows that cannot be loaded may
/// go to a [file](CqlOptions::rejects) instead of ending the load.
///
/// Rows of the mapping `full` (of SSTables, or of a Parquet file made of them) are writes, and arrive as such: with their write times,
/// TTLs and deletions, whatever is in the table, in any order. The table has the columns, types and key that the source says; where it is
/// created, also if the mapping is `logical` and the options have no key.
///
/// When the copy is cancelled, no row is sent any more, and those in flight are abandoned if they are not answered
/// within a quarter of a second; so are attempts to connect.
///
/// Rows are wanted in the source's order: of rows with one key the last one wins, also over those of earlier loads,
/// and it numbers the rows ([`row_number`](MappingOptions::row_number), continuously over all pieces).
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_cluster::{CqlOptions, CqlTable};
/// use marquetry_scylla::bridge::MappingOptions;
/// use marquetry_scylla::cql::KeySpec;
/// use marquetry_tables::{CopyOptions, Source, copy};
///
/// fn load(trips: &Arc<dyn Source>) -> Result<(), Box<dyn std::error::Error>> {
///     let mapping = MappingOptions { key: Some(KeySpec::parse("day, trip")?), ..MappingOptions::default() };
///     let mut table = CqlTable::new("cql://localhost/ks.trips".parse()?, CqlOptions::create(mapping));
///     let copied = copy(trips, &mut table, &CopyOptions::default(), &mut |copied| {
///         eprint!("\r{} rows", copied.written.rows);
///     })?;
///     println!("{} rows", copied.written.rows);
///     Ok(())
/// }
/// ```
pub struct CqlTable {
    name: String,
    address: CqlAddress,
    options: CqlOptions,
    cancel: Cancel,
    created: Option<Created>,
    /// Its user-defined types, once it was created; some may have existed.
    types: Vec<Name>,
    /// Its lists that are written element by element, of which a repeated load has more.
    lists: Vec<Name>,
    /// All rows were acknowledged.
    is_loaded: bool,
    /// What the source's table has, and one that is created here does not.
    left_out: Option<String>,
    /// The statements of the indexes that the source's table has, for this one.
    indexes: Vec<String>,
    /// They are created after the rows.
    makes_indexes: bool,
    /// They were created, or were there.
    has_indexes: bool,
    /// After so many seconds, rows without a TTL of their own expire in the table that was created.
    default_ttl_s: u32,
    counts: Arc<Counts>,
    /// Rows are expected, or were.
    is_begun: bool,
    /// Rows of one key are added up.
    has_counters: bool,
    /// How many rows were sent, how many different keys they have, and what becomes of those with the same, once that is known.
    keys: Option<(u64, Distinct, SameKey)>,
    /// Rows that were rejected, once that is known.
    rejected: u64,
    /// The file that they go to.
    rejects: Option<PathBuf>,
    /// Why it does not say in which lines they are, if it should.
    without_lines: Option<Error>,
    /// Where rows come from, until it is known who wants to know.
    source: Option<Arc<dyn Source>>,
    /// All rows were loaded by an earlier run.
    was_finished: bool,
    guard: Guard,
    state: State,
    /// The object that rows are from.
    object: Arc<str>,
}

enum State {
    /// Nothing is connected: yet, or any more.
    Idle,
    Loading(Box<Loading>),
}

impl CqlTable {
    /// The table of this address. Nothing is connected yet.
    pub fn new(address: CqlAddress, options: CqlOptions) -> CqlTable {
        CqlTable {
            name: address.to_string(),
            address,
            options,
            cancel: Cancel::new(),
            created: None,
            types: Vec::new(),
            lists: Vec::new(),
            is_loaded: false,
            left_out: None,
            indexes: Vec::new(),
            makes_indexes: false,
            has_indexes: false,
            default_ttl_s: 0,
            counts: Arc::default(),
            is_begun: false,
            has_counters: false,
            keys: None,
            rejected: 0,
            rejects: None,
            without_lines: None,
            source: None,
            was_finished: false,
            guard: Guard::default(),
            state: State::Idle,
            object: Arc::from(""),
        }
    }

    /// The table's address.
    pub fn address(&self) -> &CqlAddress {
        &self.address
    }

    /// How the table came to exist, once known, if it was to be created.
    pub fn created(&self) -> Option<Created> {
        self.created
    }

    /// Connects; makes the table, or reads what it is.
    fn open(&mut self, table: &Table) -> Result<Loading> {
        self.check_options()?;
        let name = self.address.table();
        let about = |error: Error| error.at(|place| place.object = Some(table.name.clone()));
        let map =
            |options: &MappingOptions| Mapping::new(&table.schema, name.clone(), options).map_err(about);
        let CqlOptions { create, timestamp, ttl, mapping: options, layout, .. } = &self.options;
        // The key and the types are those that the source says, unless others are asked for.
        let defined = match RowsOf::of(table)? {
            RowsOf::Writes(columns) => {
                layout::expect_rows(*layout)?;
                return self.open_writes(table, columns);
            }
            RowsOf::Logical(columns) if *create && !options.shape_table() && !self.is_laid() => {
                mapped::expect_key_names(table)?;
                Some(columns.definition(name).map_err(about)?)
            }
            RowsOf::Logical(_) | RowsOf::Plain => None,
        };
        let mut faults = Faults::default();
        let stamps = Stamps::new(&table.schema, timestamp, ttl.as_ref(), &mut faults);
        faults.into_result()?;
        let mut state = self.load_state(table)?;
        let options = match &defined {
            Some((table, types)) => options.clone().defined_by(table, types.clone()),
            None => options.clone(),
        };
        // All that can be wrong with the rows alone is found before a cluster is bothered.
        let early = create.then(|| stamps.left_out_of(&options, &table.schema, &[]));
        let mut planned = match &early {
            Some(options) => Planned::new(*layout, &table.schema, options.clone()).map_err(about)?,
            None => None,
        };
        let early = match (&planned, early) {
            (Some(planned), _) => Some(planned.mapping(name.clone(), None).map_err(about)?),
            (None, Some(options)) => Some(map(&options)?),
            (None, None) => None,
        };
        let cluster =
            Cluster::connect_unless(self.cancel.clone(), self.address.clone(), &self.options.connect)?;
        let mapping = match early {
            Some(mapping) => {
                let laid = planned.as_ref().map(|planned| planned.definition(&mapping)).transpose()?;
                let (made, types) = match (&defined, &laid) {
                    (Some((made, types)), _) => (made, &**types),
                    (None, made) => (made.as_ref().unwrap_or(mapping.table()), mapping.types()),
                };
                self.create(&cluster, (made, types), table, state.as_mut())?;
                if let (Some(planned), Some(Created::AlreadyThere)) = (&planned, self.created) {
                    planned.expect_in(&cluster)?;
                }
                mapping
            }
            None => {
                let existing = cluster.table()?.ok_or_else(|| ClusterError::NoTable(name.clone()))?;
                if is_columns(&existing) {
                    let what = "the table holds a Parquet file, which rows are not added to: the layout columns writes another version of it";
                    return Err(Error::refused(what).with(Detail::AdmittedBy(&["layout"])));
                }
                let described = layout::described(&cluster)?;
                layout::expect_layout(self.options.layout, described.as_ref())?;
                let names: Vec<&str> = match &described {
                    Some(described) => described.names(),
                    None => existing.columns.iter().map(|it| it.name.as_str()).collect(),
                };
                let options = stamps.left_out_of(&self.options.mapping, &table.schema, &names);
                let mapped = match described {
                    Some(described) => Planned::of(described, &table.schema, options).and_then(|laid| {
                        let mapping = laid.mapping(name.clone(), Some(&existing));
                        planned = Some(laid);
                        mapping
                    }),
                    None => map(&options.defined_by(&existing, cluster.types_of(&existing)?)),
                };
                mapped.map_err(|error| misfit(name, error))?
            }
        };
        self.check_counters(&mapping)?;
        self.has_counters = mapping.columns().iter().any(is_counter);
        self.check_lists(&mapping)?;
        self.start(cluster, (mapping, planned.map(Planned::into_laying)), table, (stamps, state))
    }

    /// Whether the rows of the table are to hold others.
    fn is_laid(&self) -> bool {
        self.options.layout.is_some_and(|layout| layout != TableLayout::Rows)
    }

    /// Makes the table, or compares it with the one that is there, and only that where nothing is to be done. If it is as the source's, it has that one's
    /// options, and gets its indexes after the rows.
    fn create(
        &mut self,
        cluster: &Cluster,
        (table, types): (&TableDef, &[TypeDef]),
        source: &Table,
        state: Option<&mut LoadState>,
    ) -> Result<()> {
        let like = MadeLike::of(source);
        let fitting = like.as_ref().and_then(|like| like.as_ref().ok());
        let fitting = fitting.filter(|like| !self.is_laid() && like.fits(table));
        let properties = fitting.map(MadeLike::properties).unwrap_or_default();
        let mut created = cluster.compare_table(table, types)?;
        // A table that an earlier run of this load has created waits for its indexes; another one may do without.
        let mut is_own = created == Created::New || state.as_ref().is_some_and(|state| state.makes_table);
        if !self.options.dry_run {
            let makes_table = created == Created::New;
            let mut state = state.filter(|_| makes_table);
            if let Some(state) = &mut state {
                state.make_table(true)?;
            }
            let made = cluster.create_table_with(table, types, properties);
            if makes_table && !matches!(made, Ok(Created::New)) {
                is_own = false;
                let undone = state.map_or(Ok(()), |state| state.make_table(false));
                created = made?;
                undone?;
            } else {
                created = made?;
            }
        }
        self.created = Some(created);
        self.indexes = fitting.map(|like| like.indexes(self.address.table())).unwrap_or_default();
        self.makes_indexes = is_own;
        if is_own {
            self.default_ttl_s = fitting.map_or(0, MadeLike::default_ttl_s);
        }
        self.left_out = match &like {
            Some(Ok(like)) if fitting.is_none() => like.in_words(),
            Some(Err(why)) => Some(format!(
                "options and indexes that the source's table may have: its statements (schema.cql, or marquetry.table.schema in a file) {why}"
            )),
            _ => None,
        };
        if !self.options.dry_run {
            self.types = types.iter().map(|it| it.name.clone()).collect();
        }
        Ok(())
    }

    /// Connects for rows that are writes to a table with these columns; makes the table, or checks that it can have them.
    fn open_writes(&mut self, table: &Table, columns: TableColumns) -> Result<Loading> {
        let CqlOptions { timestamp, ttl, mapping, dry_run, consistency, .. } = &self.options;
        mapped::expect_no_mapping(mapping)?;
        mapped::expect_none(&[(*timestamp != WriteTimes::Now, "timestamp"), (ttl.is_some(), "ttl")])?;
        let (dry_run, consistency) = (*dry_run, *consistency);
        if self.options.create {
            mapped::expect_key_names(table)?;
        }
        let (name, columns) = (self.address.table().clone(), Arc::new(columns));
        let about = |error: Error| error.at(|place| place.object = Some(table.name.clone()));
        let block = BlockSize::of(self.options.rate);
        let writing = Writing::new(&columns, table, &name, (self.options.row_bytes_max, block));
        let writing = writing.map_err(about)?;
        let (wanted, types) = columns.definition(&name).map_err(about)?;
        let mut state = self.load_state(table)?;
        let cluster =
            Cluster::connect_unless(self.cancel.clone(), self.address.clone(), &self.options.connect)?;
        if self.options.create {
            self.create(&cluster, (&wanted, &types), table, state.as_mut())?;
            // Each write says how long it lives.
            self.default_ttl_s = 0;
        } else {
            let existing = cluster.table()?.ok_or(ClusterError::NoTable(name))?;
            mapped::expect_fitting((&existing, &cluster.types_of(&existing)?), (&wanted, &types))
                .map_err(about)?;
        }
        let mut writing = if is_scylla(cluster.session()) {
            writing.with_list_keys()
        } else {
            self.lists = writing.texts().lists().into_iter().cloned().collect();
            writing
        };
        let is_there = !(dry_run && self.created == Some(Created::New));
        let same = is_there.then(|| cluster.same_table()).transpose()?;
        expect_another(table, same.as_deref())?;
        let same = same.filter(|_| !dry_run);
        let rejects = self.begin_rejects(state.as_ref(), table)?;
        let retries = Retries::often(self.options.retry_for);
        let times = state.as_ref().map_or(0, |state| state.sent);
        let loaded_before = self.go_on(same.as_deref(), &mut state, retries)?;
        let sent_until = state.as_ref().map_or(0, |state| state.sent_until);
        let adds_again = self.options.lists_at_least_once;
        let earlier = Earlier { acknowledged: loaded_before.unwrap_or(0), sent_until, times, adds_again };
        writing.after(earlier);
        if rejects.is_some() {
            writing.keep_rows();
        }
        let by = if dry_run {
            By::Nothing
        } else {
            let (session, texts) = (Arc::clone(cluster.session()), writing.texts().clone());
            let retry_for = self.options.retry_for;
            let preparing =
                async move { Writes::prepare(&session, texts, consistency, earlier, retry_for).await };
            By::Writes(cluster.runtime().wait(preparing)??)
        };
        let load = self.start_load(&cluster, (by, same.clone()), retries, loaded_before)?;
        Ok(Loading {
            road: Road::Writes(Box::new(writing)),
            load,
            rows: 0,
            loaded_before: earlier.acknowledged,
            write_times_us: None,
            rejects,
            without_lines: None,
            state,
            retry_for: self.options.retry_for,
            same,
            cluster,
        })
    }

    /// Begins the file of rejected rows, if there is to be one.
    fn begin_rejects(&mut self, state: Option<&LoadState>, table: &Table) -> Result<Option<Rejects>> {
        let Some(path) = &self.options.rejects else { return Ok(None) };
        let before = state.filter(|state| state.runs > 1).map(|state| state.rejected);
        let rejects = Rejects::begin(path, before, table, self.options.max_errors)?;
        let rejects = rejects.with_lines_of(self.source.take(), &self.cancel);
        self.rejects = Some(rejects.path().to_path_buf());
        Ok(Some(rejects))
    }

    /// Writes the state of a load that begins or goes on, if one is kept; the number of its first row that is not known to be acknowledged.
    fn go_on(
        &mut self,
        table: Option<&SameTable>,
        state: &mut Option<LoadState>,
        retries: Retries,
    ) -> Result<Option<u64>> {
        let Some(state) = state else { return Ok(None) };
        let table = table.ok_or_else(|| Error::internal("the state of a load that loads nothing"))?;
        state.expect_table(table.id())?;
        self.was_finished = state.is_finished;
        if state.is_finished {
            return Ok(Some(u64::MAX));
        }
        // From now on it is known what the rows' write times are, and how often this run may send them.
        state.sent = state.sent.saturating_add(retries.tries_max());
        state.save()?;
        Ok(Some(state.rows))
    }

    /// `first` is the number of the first row, if it is to be known which rows were acknowledged.
    fn start_load(
        &mut self,
        cluster: &Cluster,
        (by, table): (By, Option<Arc<SameTable>>),
        retries: Retries,
        first: Option<u64>,
    ) -> Result<Load> {
        let CqlOptions { in_flight, rate, .. } = self.options;
        let sending = Sending {
            session: Arc::clone(cluster.session()),
            by,
            in_flight: in_flight.get().min(IN_FLIGHT_MAX),
            rate,
            retries,
            keeps_rejected: self.options.rejects.is_some(),
            table,
        };
        let load = Load::start(cluster.runtime(), sending, Arc::clone(&self.counts), first)?;
        self.is_begun = true;
        Ok(load)
    }

    /// The state of the load, if it is kept: read, or new.
    fn load_state(&self, table: &Table) -> Result<Option<LoadState>> {
        let CqlOptions { timestamp, ttl, state, .. } = &self.options;
        let Some(state) = state else { return Ok(None) };
        let ttl = ttl.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
        let identity = Identity {
            source: identity_of(table),
            content: state.source.clone(),
            destination: self.address.table().to_string(),
            options: format!("timestamp {timestamp}, ttl {ttl}, {}", state.options),
        };
        LoadState::open(state, identity, self.first_write_time_us()).map(Some)
    }

    fn first_write_time_us(&self) -> i64 {
        match self.options.timestamp {
            WriteTimes::From(micros) => micros,
            _ => next_write_time_us(),
        }
    }

    fn start(
        &mut self,
        cluster: Cluster,
        (mapping, laying): (Mapping, Option<Laying>),
        table: &Table,
        (stamps, mut state): (Stamps, Option<LoadState>),
    ) -> Result<Loading> {
        let CqlOptions { consistency, row_bytes_max, dry_run, .. } = self.options;
        let statement = RowStatement::of(&mapping, self.options.ttl.as_ref());
        let nulls = match statement.kind {
            Kind::Counters => Nulls::Unset,
            _ => self.options.mapping.nulls,
        };
        let sent_before = state.as_ref().map_or(0, |state| state.sent);
        let (session, wanted) = (Arc::clone(cluster.session()), statement.clone());
        let retry_for = self.options.retry_for;
        let preparing = async move {
            load::prepare(&session, &wanted, (nulls, sent_before), consistency, retry_for).await
        };
        // A table that is only to be created cannot be asked.
        let is_there = !(dry_run && self.created == Some(Created::New));
        // Before anything is prepared: what is sent goes to this table, or is noticed to go to another.
        let same = is_there.then(|| cluster.same_table()).transpose()?;
        expect_another(table, same.as_deref())?;
        let same = same.filter(|_| !dry_run);
        let by = is_there.then(|| cluster.runtime().wait(preparing)?).transpose()?;
        let by = by.filter(|_| !dry_run).unwrap_or(By::Nothing);
        let rejects = self.begin_rejects(state.as_ref(), table)?;
        let retries = match statement.kind {
            Kind::Lists => Retries::few(self.options.retry_for),
            _ => Retries::often(self.options.retry_for),
        };
        let loaded_before = self.go_on(same.as_deref(), &mut state, retries)?;
        let first_write_time_us =
            state.as_ref().map_or_else(|| self.first_write_time_us(), |state| state.first_write_time_us);
        // Each time that a row with lists is sent, it has a write time of its own.
        let step = if statement.kind == Kind::Lists { FEW } else { 1 };
        let load = self.start_load(&cluster, (by, same.clone()), retries, loaded_before)?;
        // Given ones may be of any time: a later load's rows are not to be written then.
        let write_times_us =
            matches!(self.options.timestamp, WriteTimes::Now).then_some((first_write_time_us, step));
        let write_times = (first_write_time_us, step);
        let nulls = self.options.mapping.nulls;
        let block = BlockSize::of(self.options.rate);
        let filling = Filling::new(&mapping, &statement, nulls, (row_bytes_max, block), write_times);
        Ok(Loading {
            road: Road::Rows { mapping: Arc::new(mapping), laying, stamps, filling: Box::new(filling) },
            load,
            rows: 0,
            loaded_before: loaded_before.unwrap_or(0),
            write_times_us,
            rejects,
            without_lines: None,
            state,
            retry_for: self.options.retry_for,
            same,
            cluster,
        })
    }

    /// Counters are added to only by whoever knows what that means.
    fn check_counters(&self, mapping: &Mapping) -> Result<()> {
        let columns = mapping.columns();
        let Some(counter) = columns.iter().find(|column| is_counter(column)) else { return Ok(()) };
        let of_partition = columns
            .iter()
            .enumerate()
            .find(|(at, column)| is_counter(column) && mapping.is_of_partition(*at));
        if let Some((_, counter)) = of_partition {
            let message = format!(
                "{} is a static counter, which each row of a partition has: each of them would add it",
                counter.name
            );
            return Err(Error::refused(message).with(Detail::AdmittedBy(&["columns"])));
        }
        let CqlOptions { timestamp, ttl, counters_at_least_once, .. } = &self.options;
        let none = |option: &'static str| {
            Err(Error::option(option, "rows of counters have neither write times nor TTLs"))
        };
        if *timestamp != WriteTimes::Now {
            return none("timestamp");
        }
        if ttl.is_some() {
            return none("ttl");
        }
        if *counters_at_least_once {
            return Ok(());
        }
        let message = format!(
            "{} is a counter: loading adds to it, and a row that is sent again, because its answer was lost, may be added twice",
            counter.name
        );
        Err(Error::refused(message).with(Detail::AdmittedBy(&["counters_at_least_once"])))
    }

    /// Lists whose write times are given are doubled by a second load of the same rows: only for whoever knows that.
    fn check_lists(&self, mapping: &Mapping) -> Result<()> {
        let is_fixed = self.options.timestamp != WriteTimes::Now;
        let list = mapping.columns().iter().find(|column| matches!(column.cql_type, CqlType::List(_)));
        let Some(list) = list.filter(|_| is_fixed && !self.options.lists_at_least_once) else {
            return Ok(());
        };
        let message = format!(
            "{} is a list that is not frozen: the databases keep its elements under keys of their own, so rows that are loaded \
             again with the same write times have them twice",
            list.name
        );
        Err(Error::refused(message).with(Detail::AdmittedBy(&["lists_at_least_once"])))
    }

    /// What the options have no meaning for, each by its name.
    fn check_options(&self) -> Result<()> {
        let CqlOptions { create, mapping, timestamp, .. } = &self.options;
        timestamp.clone().checked()?;
        if self.options.dry_run && self.options.state.is_some() {
            return Err(Error::option("dry_run", "nothing is loaded, so there is no state to keep"));
        }
        if let Some(path) = &self.options.rejects
            && !self.options.state.as_ref().is_some_and(|state| state.resume)
        {
            rejects::expect_new(path)?;
        }
        let given =
            [(mapping.key.is_some(), "key"), (!mapping.sets.is_empty(), "sets"), (mapping.frozen, "frozen")];
        match given.into_iter().find(|(is_given, _)| *is_given && !*create) {
            Some((_, name)) => {
                let message = format!(
                    "{name} is for a table that is created; one that exists has its own key and types"
                );
                Err(Error::option(name, message))
            }
            None => Ok(()),
        }
    }

    fn send(&mut self, batch: Batch) -> Result<()> {
        let State::Loading(loading) = &mut self.state else { return Err(settled()) };
        match loading.add(batch, &self.object) {
            Ok(()) => Ok(()),
            Err(Stop::Own(error)) => Err(self.failed(Some(error))),
            Err(Stop::Load(Ended)) => Err(self.failed(None)),
        }
    }

    /// Why rows were not taken, after everything in flight was answered.
    fn failed(&mut self, error: Option<Error>) -> Error {
        let closed = self.close(End::Failed, error);
        closed.err().unwrap_or_else(|| match self.cancel.is_set() {
            true => Error::cancelled(),
            false => Error::internal("a load ended without a reason"),
        })
    }

    /// Ends what is going on, if anything is.
    fn close(&mut self, end: End, first: Option<Error>) -> Result<()> {
        let State::Loading(mut loading) = std::mem::replace(&mut self.state, State::Idle) else {
            return first.map_or(Ok(()), Err);
        };
        let (rejected, outcome) = loading.close(end, first);
        self.rejected = rejected;
        self.without_lines = loading.without_lines.take();
        self.keys = Some(loading.keys());
        outcome?;
        if end == End::AllCame && self.makes_indexes && !self.options.dry_run {
            self.is_loaded = true;
            loading.cluster.create_indexes(self.indexes.clone(), self.options.retry_for)?;
            self.has_indexes = true;
        }
        Ok(())
    }
}

/// Fails if rows are to go to the table that they are read from.
fn expect_another(source: &Table, destination: Option<&SameTable>) -> Result<()> {
    match destination {
        Some(table) if table.is(source) => {
            let what = "source and destination are one table, whose rows are there already";
            Err(Error::misuse(what).at(|place| place.object = Some(source.name.clone())))
        }
        _ => Ok(()),
    }
}

impl Destination for CqlTable {
    /// Its address, without a password.
    fn name(&self) -> &str {
        &self.name
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    fn rows_of(&mut self, source: &Arc<dyn Source>) {
        self.source = self.options.rejects.is_some().then(|| Arc::clone(source));
    }

    /// Connects, checks, and makes the table and its types where that is wanted.
    ///
    /// # Errors
    ///
    /// Those of [`Mapping::new`], about the source: all that does not fit, at once. Those of the cluster, with a
    /// [`cluster::Error`](crate::Error) as the [cause](std::error::Error::source): [`Io`](marquetry_base::ErrorKind::Io) where it
    /// cannot be reached, [`Refused`](marquetry_base::ErrorKind::Refused) otherwise. No row was sent then; of types that were made,
    /// [`TypesLeft`](crate::Error::TypesLeft) tells.
    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.open(table).map(|loading| {
            self.state = State::Loading(Box::new(loading));
            Wants::default()
        });
        self.guard.then(Stage::Begun, begun)
    }

    /// That the table existed already; or, after an error, that a new one remains; how many rows were rejected; that an earlier run has
    /// loaded all rows.
    fn notes(&self) -> Vec<String> {
        let name = self.address.table();
        let mut notes = match self.created {
            Some(Created::AlreadyThere) => vec![format!("the table {name} already exists")],
            Some(Created::New) if self.options.dry_run => vec![format!("the table {name} would be created")],
            Some(Created::New) if !self.is_loaded => vec![remains(&name.to_string(), &self.types)],
            Some(Created::New) | None => Vec::new(),
        };
        if let (Some(left_out), Some(Created::New)) = (&self.left_out, self.created) {
            let made = if self.options.dry_run { "would be made" } else { "was made" };
            notes.push(format!("the table {name} {made} without {left_out}"));
        }
        if self.default_ttl_s > 0 && !matches!(self.options.ttl, Some(Ttl::Seconds(_))) {
            let ttl = self.default_ttl_s;
            notes.push(format!(
                "the table {name} has the source's default_time_to_live = {ttl}: rows that come without a TTL expire that many seconds after they are loaded"
            ));
        }
        if !self.indexes.is_empty() {
            let made = match (self.makes_indexes, self.options.dry_run, self.has_indexes) {
                (false, ..) => "are not created in one that exists",
                (true, true, _) => "would be created after the rows",
                (true, false, true) => "were created after the rows",
                (true, false, false) => "are not created yet",
            };
            notes.push(format!("the indexes of the source's table {made}: {}", self.indexes.join(" ")));
        }
        if !self.lists.is_empty() && !self.options.dry_run {
            let lists: Vec<String> = self.lists.iter().map(ToString::to_string).collect();
            notes.push(format!(
                "before the same is loaded again, truncate {name}: Cassandra would add the elements of lists a second time ({})",
                lists.join(", ")
            ));
        }
        if let (Some(path), 1..) = (&self.rejects, self.rejected) {
            let rows = if self.rejected == 1 { "row was" } else { "rows were" };
            let why = self
                .without_lines
                .as_ref()
                .map(|error| format!(", without the lines that they are in: {error}"));
            notes.push(format!(
                "{} {rows} rejected: see {}{}",
                self.rejected,
                path.display(),
                why.unwrap_or_default()
            ));
        }
        if let Some(keys) =
            self.keys.filter(|_| self.is_loaded && !self.has_counters && !self.options.dry_run)
        {
            notes.extend(repeated_keys(keys));
        }
        if let (Some(state), true) = (&self.options.state, self.was_finished) {
            let path = state.path.display();
            notes.push(format!(
                "this load was finished before, and nothing was loaded; remove {path} to load the rows again"
            ));
        }
        notes
    }

    fn rows_from(&mut self, object: &str) {
        self.object = Arc::from(object);
    }

    /// Gives rows to be sent.
    ///
    /// # Errors
    ///
    /// `Conversion`, with row and column, for a row that cannot be one of the table; all before it were loaded.
    /// [`Refused`](marquetry_base::ErrorKind::Refused), with row and object, for one that the cluster did not take, and
    /// [`Io`](marquetry_base::ErrorKind::Io) for one that no node, or too few, answered to; it may be of an earlier batch. After it
    /// nothing is in flight any more.
    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let written = self.send(batch);
        self.guard.then(Stage::Begun, written)
    }

    /// Waits until all rows were answered.
    ///
    /// # Errors
    ///
    /// As [`write`](CqlTable::write).
    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let finished = match &mut self.state {
            State::Loading(loading) => loading.finish(),
            State::Idle => Err(Stop::Own(settled())),
        };
        let answered = match finished {
            Ok(()) => self.close(End::AllCame, None),
            Err(Stop::Own(error)) => Err(self.failed(Some(error))),
            Err(Stop::Load(Ended)) => Err(self.failed(None)),
        };
        self.guard.then(Stage::Finished, answered)?;
        self.is_loaded = true;
        Ok(self.progress().unwrap_or_default())
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        self.guard.then(Stage::Committed, Ok(()))
    }

    /// Takes no more rows, and waits until all rows handed over were sent and answered. Rows that the cluster rejects now
    /// are not sent again.
    fn settle(&mut self) {
        // The error that ended the copy is known already.
        let _ = self.close(End::Abandoned, None);
    }

    fn watch(&self) -> Option<Watch> {
        let counts = Arc::clone(&self.counts);
        Some(Arc::new(move || counts.doing()))
    }

    /// The rows that the cluster has acknowledged, and their bytes as the protocol holds them.
    fn progress(&self) -> Option<Written> {
        self.is_begun.then(|| self.counts.written())
    }
}

impl Drop for CqlTable {
    /// Waits until nothing is in flight any more.
    fn drop(&mut self) {
        self.settle();
    }
}

impl fmt::Debug for CqlTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CqlTable")
            .field("address", &self.address)
            .field("written", &self.progress())
            .finish_non_exhaustive()
    }
}

/// A call after [`settle`](Destination::settle).
fn settled() -> Error {
    Error::misuse("a call for a load that was settled")
}

/// What does not fit, with the table's name before it.
fn misfit(table: &impl fmt::Display, error: Error) -> Error {
    let message = format!("the rows do not fit the table {table}: {}", error.message());
    error.reworded(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;
    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    /// A server that takes connections and says nothing, which is waited for only until the work is cancelled.
    #[test]
    fn connecting_is_cancelled() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("cql://{}/k.t", silent.local_addr().unwrap()).parse().unwrap();
        let schema = Arc::new(
            Schema::of_fields(&[FieldDef::new("k", FieldType::Leaf(PhysicalType::Int32, None))]).unwrap(),
        );
        let mut table = CqlTable::new(address, CqlOptions::default());
        let cancel = Cancel::new();
        table.cancelled_by(&cancel);
        let cancelling = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            cancel.cancel();
        });
        let started = Instant::now();
        let error = table.begin(&Table::new("rows", Arc::clone(&schema))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
        assert_eq!(table.progress(), None);
        // It is not tried again, and no other call can follow.
        assert_eq!(table.begin(&Table::new("rows", schema)).unwrap_err(), error);
        assert_eq!((table.finish().unwrap_err(), table.commit().unwrap_err()), (error.clone(), error));
        cancelling.join().unwrap();
    }
}
