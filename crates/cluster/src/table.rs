//! A live table as a destination.

mod checks;
mod creating;
mod notes;
mod opening;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::cql::Name;
use marquetry_tables::{Cancel, Destination, Distinct, Guard, Source, Stage, Table, Wants, Watch, Written};

use crate::address::CqlAddress;
use crate::cluster::Created;
use crate::counts::Counts;
use crate::load::Ended;
use crate::loading::{End, Loading, SameKey, Stop};
use crate::options::CqlOptions;

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
/// and it numbers the rows ([`row_number`](marquetry_scylla::bridge::MappingOptions::row_number), continuously over all pieces).
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
    /// Those of [`Mapping::new`](marquetry_scylla::bridge::Mapping::new), about the source: all that does not fit, at once. Those of the cluster, with a
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
        self.all_notes()
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
