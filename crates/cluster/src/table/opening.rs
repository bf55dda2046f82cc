//! The beginning of a load: connected, checked, prepared, and with its state written.

use std::fmt;
use std::sync::Arc;

use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_scylla::bridge::{Mapping, MappingOptions, Nulls};
use marquetry_scylla::sstable::TableColumns;
use marquetry_tables::Table;
use marquetry_tables::stamps::{Stamps, WriteTimes};

use super::CqlTable;
use crate::cluster::{Cluster, Created};
use crate::columns::is_columns;
use crate::error::Error as ClusterError;
use crate::hidden::Hidden;
use crate::layout::{self, Laying, Planned, TableLayout};
use crate::load::{self, By, Load, Sending};
use crate::loading::{Loading, Road, next_write_time_us};
use crate::mapped::{self, RowsOf};
use crate::options::{CqlOptions, IN_FLIGHT_MAX};
use crate::rejects::Rejects;
use crate::retry::{FEW, Retries};
use crate::rows::{BlockSize, Filling};
use crate::same_table::SameTable;
use crate::state::{Identity, State as LoadState, identity_of};
use crate::statement::{Kind, RowStatement, is_counter};
use crate::unload::is_scylla;
use crate::writes::{Earlier, Writes, Writing};

impl CqlTable {
    /// Connects; makes the table, or reads what it is.
    pub(super) fn open(&mut self, table: &Table) -> Result<Loading> {
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
        table.expect_no_durations(options.columns.as_deref()).map_err(about)?;
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
                match (&planned, self.created) {
                    (Some(planned), Some(Created::AlreadyThere)) => planned.expect_in(&cluster)?,
                    (None, Some(Created::AlreadyThere)) => layout::expect_plain(&cluster, table)?,
                    _ => {}
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
    pub(super) fn is_laid(&self) -> bool {
        self.options.layout.is_some_and(|layout| layout != TableLayout::Rows)
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
        if is_there {
            let is_written = |name: &str| columns.cells().any(|column| *column.name == *name.as_bytes());
            writing.expect_seen(Hidden::of(&cluster, is_written)?.numbered(&columns));
        }
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
        let first_write_time_us =
            state.as_ref().map_or_else(|| self.first_write_time_us(), |state| state.first_write_time_us);
        let hidden = match is_there && !state.as_ref().is_some_and(|state| state.is_finished) {
            true => {
                let columns = &mapping.table().columns;
                Hidden::of(&cluster, |name| columns.iter().any(|column| column.name.as_str() == name))?
            }
            false => Hidden::default(),
        };
        if !matches!(self.options.timestamp, WriteTimes::Column(_)) {
            hidden.expect_seen_from(first_write_time_us)?;
        }
        let rejects = self.begin_rejects(state.as_ref(), table)?;
        let retries = match statement.kind {
            Kind::Lists => Retries::few(self.options.retry_for),
            _ => Retries::often(self.options.retry_for),
        };
        let loaded_before = self.go_on(same.as_deref(), &mut state, retries)?;
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
        let filling = filling.beside(&hidden);
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

/// What does not fit, with the table's name before it.
fn misfit(table: &impl fmt::Display, error: Error) -> Error {
    let message = format!("the rows do not fit the table {table}: {}", error.message());
    error.reworded(message)
}
