//! A live table as a destination.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::{Mapping, MappingOptions};
use marquetry_scylla::cql::Name;
use marquetry_scylla::sstable::TableColumns;
use marquetry_tables::{Cancel, Destination, Guard, Stage, Table, Wants, Written};

use crate::address::CqlAddress;
use crate::cluster::{Cluster, Created};
use crate::counts::Counts;
use crate::error::Error as ClusterError;
use crate::load::{self, By, Ended, Load, Sending};
use crate::mapped::{self, RowsOf};
use crate::options::{CONCURRENCY_MAX, CqlOptions};
use crate::rows::Filling;
use crate::writes::{Writes, Writing};

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
/// with a later write time.
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
    /// `None` before rows are expected.
    counts: Option<Arc<Counts>>,
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

/// What there is between `begin` and the end.
struct Loading {
    road: Road,
    load: Load,
    /// Rows that came so far: the number of the next one.
    rows: u64,
    first_write_time_us: i64,
    cluster: Cluster,
}

/// What becomes of rows.
enum Road {
    /// Rows of the table.
    Rows { mapping: Box<Mapping>, filling: Filling },
    /// Writes to it, by what their source says of them.
    Writes(Box<Writing>),
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
            counts: None,
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
        let CqlOptions { create, mapping: options, .. } = &self.options;
        // The key and the types are those that the source says, unless others are asked for.
        let defined = match RowsOf::of(table)? {
            RowsOf::Writes(columns) => return self.open_writes(table, columns),
            RowsOf::Logical(columns) if *create && !options.shape_table() => {
                Some(columns.definition(name).map_err(about)?)
            }
            RowsOf::Logical(_) | RowsOf::Plain => None,
        };
        let options = match &defined {
            Some((table, types)) => options.clone().defined_by(table, types.clone()),
            None => options.clone(),
        };
        // All that can be wrong with the rows alone is found before a cluster is bothered.
        let early = create.then(|| map(&options)).transpose()?;
        let cluster =
            Cluster::connect_unless(self.cancel.clone(), self.address.clone(), &self.options.connect)?;
        let mapping = match early {
            Some(mapping) => {
                let (table, types) = match &defined {
                    Some((table, types)) => (table, &**types),
                    None => (mapping.table(), mapping.types()),
                };
                self.created = Some(cluster.create_table(table, types)?);
                self.types = types.iter().map(|it| it.name.clone()).collect();
                mapping
            }
            None => {
                let existing = cluster.table()?.ok_or_else(|| ClusterError::NoTable(name.clone()))?;
                let options = self.options.mapping.clone().defined_by(&existing, cluster.types()?);
                map(&options).map_err(|error| misfit(name, error))?
            }
        };
        self.start_rows(cluster, mapping)
    }

    /// Connects for rows that are writes to a table with these columns; makes the table, or checks that it can have them.
    fn open_writes(&mut self, table: &Table, columns: TableColumns) -> Result<Loading> {
        mapped::expect_no_mapping(&self.options.mapping)?;
        let (name, columns) = (self.address.table().clone(), Arc::new(columns));
        let about = |error: Error| error.at(|place| place.object = Some(table.name.clone()));
        let writing = Writing::new(&columns, &table.schema, &name, self.options.row_bytes_max);
        let writing = writing.map_err(about)?;
        let (wanted, types) = columns.definition(&name).map_err(about)?;
        let cluster =
            Cluster::connect_unless(self.cancel.clone(), self.address.clone(), &self.options.connect)?;
        if self.options.create {
            self.created = Some(cluster.create_table(&wanted, &types)?);
            self.types = types.iter().map(|it| it.name.clone()).collect();
        } else {
            let existing = cluster.table()?.ok_or(ClusterError::NoTable(name))?;
            mapped::expect_fitting((&existing, &cluster.types()?), (&wanted, &types)).map_err(about)?;
        }
        self.lists = writing.texts().lists().into_iter().cloned().collect();
        let (session, texts) = (Arc::clone(cluster.session()), writing.texts().clone());
        let consistency = self.options.consistency;
        let preparing = async move { Writes::prepare(&session, texts, consistency).await };
        let by = By::Writes(cluster.runtime().wait(preparing)??);
        self.start(cluster, by, Road::Writes(Box::new(writing)))
    }

    fn start_rows(&mut self, cluster: Cluster, mapping: Mapping) -> Result<Loading> {
        let CqlOptions { consistency, row_bytes_max, .. } = self.options;
        let nulls = self.options.mapping.nulls;
        let (session, for_insert) = (Arc::clone(cluster.session()), mapping.clone());
        let preparing = async move { load::prepare(&session, &for_insert, nulls, consistency).await };
        let by = cluster.runtime().wait(preparing)??;
        let filling = Filling::new(&mapping, row_bytes_max);
        self.start(cluster, by, Road::Rows { mapping: Box::new(mapping), filling })
    }

    fn start(&mut self, cluster: Cluster, by: By, road: Road) -> Result<Loading> {
        let CqlOptions { concurrency, tries, write_time_us, .. } = self.options;
        let first_write_time_us = write_time_us.unwrap_or_else(next_write_time_us);
        let sending = Sending {
            by,
            session: Arc::clone(cluster.session()),
            concurrency: concurrency.get().min(CONCURRENCY_MAX),
            tries: tries.max(1),
            first_write_time_us,
        };
        let counts = Arc::default();
        let load = Load::start(cluster.runtime(), sending, Arc::clone(&counts))?;
        self.counts = Some(counts);
        Ok(Loading { road, load, rows: 0, first_write_time_us, cluster })
    }

    /// What the options have no meaning for, each by its name.
    fn check_options(&self) -> Result<()> {
        let CqlOptions { create, mapping, .. } = &self.options;
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
            Err(Stop::Row(error)) => Err(self.failed(Some(error))),
            Err(Stop::Load(Ended)) => Err(self.failed(None)),
        }
    }

    /// Why rows were not taken, after everything in flight was answered.
    fn failed(&mut self, error: Option<Error>) -> Error {
        let State::Loading(mut loading) = std::mem::replace(&mut self.state, State::Idle) else {
            return error.unwrap_or_else(|| Error::internal("a load ended without a reason"));
        };
        match (error, loading.end(false)) {
            // A row that the cluster did not take came before the one that cannot be.
            (_, Err(first)) => first.into(),
            (Some(error), Ok(())) => error,
            (None, Ok(())) => Error::internal("a load ended without a reason"),
        }
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

    /// That the table existed already; or, after an error, that a new one remains.
    fn notes(&self) -> Vec<String> {
        let name = self.address.table();
        let mut notes = match self.created {
            Some(Created::AlreadyThere) => vec![format!("the table {name} already exists")],
            Some(Created::New) if !self.is_loaded => vec![remains(&name.to_string(), &self.types)],
            Some(Created::New) | None => Vec::new(),
        };
        if !self.lists.is_empty() {
            let lists: Vec<String> = self.lists.iter().map(ToString::to_string).collect();
            notes.push(format!(
                "before the same is loaded again, truncate {name}: Cassandra would add the elements of lists a second time ({})",
                lists.join(", ")
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
            State::Idle => Ok(()),
        };
        let answered = match finished {
            Err(Stop::Row(error)) => Err(self.failed(Some(error))),
            Err(Stop::Load(Ended)) => Err(self.failed(None)),
            Ok(()) => match std::mem::replace(&mut self.state, State::Idle) {
                State::Loading(mut loading) => loading.end(false).map_err(Error::from),
                State::Idle => Err(settled()),
            },
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
        if let State::Loading(mut loading) = std::mem::replace(&mut self.state, State::Idle) {
            // The error that ended the copy is known already.
            let _ = loading.end(true);
        }
    }

    /// The rows that the cluster has acknowledged, and their bytes as the protocol holds them.
    fn progress(&self) -> Option<Written> {
        self.counts.as_ref().map(|counts| counts.written())
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

/// Why a load takes no more rows.
enum Stop {
    /// A row cannot be one of the table.
    Row(Error),
    /// The cluster did not take one.
    Load(Ended),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Row(error)
    }
}

impl Loading {
    fn add(&mut self, batch: Batch, object: &Arc<str>) -> Result<(), Stop> {
        let Loading { road, load, rows, cluster, .. } = self;
        let mut give = |block| load.give(cluster.runtime(), block).map_err(Stop::Load);
        let (mapping, filling) = match road {
            Road::Writes(writing) => return writing.add(batch, object, &mut give),
            Road::Rows { mapping, filling } => (mapping, filling),
        };
        let mut batch = mapping.assemble(batch).map_err(Stop::Row)?;
        let mut next = 0;
        while next < batch.rows() {
            let added = filling.add(mapping, &mut batch, next, *rows);
            // Those before a row that cannot be are loaded.
            if let Some(block) = filling.take(object) {
                give(block)?;
            }
            next = added.map_err(Stop::Row)?;
        }
        *rows += u64_of(batch.rows());
        Ok(())
    }

    /// Takes notice that there are no more rows.
    fn finish(&mut self) -> Result<(), Stop> {
        let Loading { road, load, cluster, .. } = self;
        match road {
            Road::Writes(writing) => {
                writing.finish(&mut |block| load.give(cluster.runtime(), block).map_err(Stop::Load))
            }
            Road::Rows { .. } => Ok(()),
        }
    }

    fn end(&mut self, hurry: bool) -> Result<(), ClusterError> {
        let rows = i64::try_from(self.rows).unwrap_or(i64::MAX);
        NEXT_WRITE_TIME_US.fetch_max(self.first_write_time_us.saturating_add(rows), Ordering::Relaxed);
        self.load.end(self.cluster.runtime(), hurry)
    }
}

/// What a copy that failed leaves, and what that means for the next one.
fn remains(table: &str, types: &[Name]) -> String {
    let types: Vec<String> = types.iter().map(|name| name.as_type().to_string()).collect();
    let subject = match &*types {
        [] => format!("the new table {table} remains"),
        [only] => format!("the new table {table} and its type {only} remain"),
        all => format!("the new table {table} and its types {} remain", all.join(", ")),
    };
    format!("{subject}; to create it with other columns or another key, drop it first")
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

/// A write time that no row of this program's loads has had yet, so that later loads win over earlier ones.
static NEXT_WRITE_TIME_US: AtomicI64 = AtomicI64::new(i64::MIN);

fn next_write_time_us() -> i64 {
    now_us().max(NEXT_WRITE_TIME_US.load(Ordering::Relaxed))
}

/// Microseconds since 1970 by this machine's clock.
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
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
    fn what_a_failed_copy_leaves_is_known() {
        let names = ["p_a", "p_b"].map(|name| Name::new(name).unwrap());
        let advice = "; to create it with other columns or another key, drop it first";
        for (types, said) in [
            (&names[..0], "the new table k.p remains"),
            (&names[..1], "the new table k.p and its type p_a remain"),
            (&names[..], "the new table k.p and its types p_a, p_b remain"),
        ] {
            assert_eq!(remains("k.p", types), format!("{said}{advice}"));
        }
    }

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
