//! A connection to a cluster, for one table.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use marquetry_scylla::cql::Name;
use marquetry_scylla::cql::ddl::{TableDef, TypeDef};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use tokio::runtime::Runtime;

use crate::address::Address;
use crate::error::{Error, Result};
use crate::load::{self, Loaded};
use crate::options::{ConnectOptions, LoadOptions};
use crate::rows::RowSource;
use crate::schema;

/// Makes a table in a live cluster, and loads rows into it.
///
/// 1. [`Loader::connect`];
/// 2. [`Loader::create_table`], or not: then the table must be there;
/// 3. [`Loader::load`], any number of times.
///
/// Each call waits until it is done. The loader has a runtime of its own, so it must not be used, or dropped, on a
/// thread that runs async tasks.
pub struct Loader {
    // Before the runtime, which its tasks run on.
    session: Arc<Session>,
    runtime: Runtime,
    address: Address,
    /// The next write time that no row has, so that later loads win over earlier ones.
    next_write_time_us: i64,
}

/// How a table came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It was made.
    New,
    /// It was there already, with the same columns, types and key.
    AlreadyThere,
}

impl Loader {
    /// Connects to the cluster, and logs in when the address or the options have a user.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] and [`Error::ConnectTimeout`] tell the address without the password.
    /// [`Error::Unsupported`] when TLS is asked for.
    pub fn connect(address: Address, options: &ConnectOptions) -> Result<Loader> {
        if options.tls {
            return Err(Error::Unsupported("TLS connections to a cluster are not supported yet"));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("marquetry-cluster")
            .enable_all()
            .build()
            .map_err(Error::Start)?;
        let mut builder = SessionBuilder::new()
            .known_nodes(address.hosts().iter().map(ToString::to_string))
            .connection_timeout(options.timeout)
            // Requests go to the replicas of their row; for that the driver need not know any columns.
            .fetch_full_schema_metadata(false)
            .keyspaces_to_fetch([address.keyspace()])
            .refresh_metadata_on_auto_schema_agreement(false);
        if let Some(user) = options.user.as_deref().or(address.user()) {
            let password = options.password.as_deref().or(address.password()).unwrap_or_default();
            builder = builder.user(user, password);
        }
        let connecting = async { tokio::time::timeout(options.timeout, builder.build()).await };
        let session = match runtime.block_on(connecting) {
            Ok(Ok(session)) => Arc::new(session),
            Ok(Err(reason)) => {
                return Err(Error::Connect { address: address.to_string(), reason: Box::new(reason) });
            }
            Err(_) => {
                let timeout_ms = options.timeout.as_millis();
                return Err(Error::ConnectTimeout { address: address.to_string(), timeout_ms });
            }
        };
        Ok(Loader { session, runtime, address, next_write_time_us: i64::MIN })
    }

    /// Where the table is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The table as the cluster has it, without its comment. `None`: the keyspace has no such table.
    ///
    /// # Errors
    ///
    /// [`Error::NoKeyspace`], or the cluster's trouble.
    pub fn table(&self) -> Result<Option<TableDef>> {
        self.runtime.block_on(schema::read(&self.session, self.address.table()))
    }

    /// The user-defined types of the table's keyspace.
    ///
    /// # Errors
    ///
    /// The cluster's trouble.
    pub fn types(&self) -> Result<Vec<TypeDef>> {
        self.runtime.block_on(schema::read_types(&self.session, self.address.table()))
    }

    /// Makes the table, under the address's name whatever name the definition has, and waits until all nodes know
    /// it; before it the user-defined types that it needs, in their order, in its keyspace. A table or type that is there already is
    /// left as it is when it has the same columns or fields, types and key.
    ///
    /// # Errors
    ///
    /// [`Error::TableDiffers`] and [`Error::TypeDiffers`] when it is there and has not, [`Error::NoKeyspace`],
    /// [`Error::Definition`]: then nothing was made. The cluster's trouble; in [`Error::TypesLeft`] when types were made before it.
    pub fn create_table(&self, definition: &TableDef, types: &[TypeDef]) -> Result<Created> {
        let mut wanted = definition.clone();
        wanted.table = self.address.table().clone();
        wanted.if_not_exists = false;
        wanted.check().map_err(Error::Definition)?;
        let types: Vec<TypeDef> = types
            .iter()
            .map(|it| TypeDef { keyspace: wanted.table.keyspace.clone(), if_not_exists: true, ..it.clone() })
            .collect();
        types.iter().try_for_each(TypeDef::check).map_err(Error::Definition)?;
        self.runtime.block_on(async {
            // All that can differ is found before anything is made.
            let existing = schema::read(&self.session, &wanted.table).await?;
            let created = existing.map(|existing| same_table(&existing, &wanted)).transpose()?;
            let mut made = Vec::new();
            let done = async {
                self.create_types(&types, &mut made).await?;
                match created {
                    Some(created) => Ok(created),
                    None => self.create_missing_table(&wanted).await,
                }
            };
            let done = done.await;
            match done {
                Err(reason) if !made.is_empty() => {
                    Err(Error::TypesLeft { types: made, reason: Box::new(reason) })
                }
                done => done,
            }
        })
    }

    /// Makes those types that are not there; `made` has them, also after an error.
    async fn create_types(&self, types: &[TypeDef], made: &mut Vec<Name>) -> Result<()> {
        if types.is_empty() {
            return Ok(());
        }
        let existing = schema::read_types(&self.session, self.address.table()).await?;
        same_types(&existing, types)?;
        let existing: HashSet<&Name> = existing.iter().map(|it| &it.name).collect();
        for missing in types.iter().filter(|it| !existing.contains(&it.name)) {
            self.session
                .query_unpaged(missing.to_string(), ())
                .await
                .map_err(|error| Error::Statement { purpose: "create a type", reason: Box::new(error) })?;
            made.push(missing.name.clone());
        }
        if made.is_empty() {
            return Ok(());
        }
        // Where somebody else was faster with one, it is theirs.
        self.expect_types(types).await
    }

    /// Makes sure that the keyspace has types as they are wanted.
    async fn expect_types(&self, types: &[TypeDef]) -> Result<()> {
        if types.is_empty() {
            return Ok(());
        }
        let existing = schema::read_types(&self.session, self.address.table()).await?;
        same_types(&existing, types)?;
        let existing: HashSet<&Name> = existing.iter().map(|it| &it.name).collect();
        match types.iter().find(|it| !existing.contains(&it.name)) {
            Some(missing) => Err(Error::NoType(missing.name.clone())),
            None => Ok(()),
        }
    }

    async fn create_missing_table(&self, wanted: &TableDef) -> Result<Created> {
        match self.session.query_unpaged(wanted.to_string(), ()).await {
            // The driver has waited until the nodes agree on the schema.
            Ok(_) => Ok(Created::New),
            // Somebody else was faster.
            Err(error) if already_exists(&error) => {
                let existing = schema::read(&self.session, &wanted.table).await?;
                let existing = existing.ok_or_else(|| Error::NoTable(wanted.table.clone()))?;
                same_table(&existing, wanted)
            }
            Err(error) => Err(Error::Statement { purpose: "create the table", reason: Box::new(error) }),
        }
    }

    /// Loads all rows of a source; `progress` is told now and then what has been loaded so far.
    ///
    /// Before the first row is sent it is made sure that the table has all the source's columns, with exactly the
    /// types of their values (a user-defined type has the same fields in the same order), and that the source has all columns of the
    /// table's primary key. Of rows with one key
    /// the last one wins, also over those of earlier loads; where that one has a null, [`Nulls`](crate::Nulls) says what
    /// becomes of it.
    ///
    /// # Errors
    ///
    /// [`Error::NoTable`], [`Error::Misfit`], [`Error::NoType`] and [`Error::TypeDiffers`] come before anything is sent. Later ones are in [`Error::Stopped`],
    /// with what had been loaded: the first trouble ends the load. [`Error::Row`] and [`Error::Insert`] tell the row.
    /// When it returns, nothing is in flight any more.
    pub fn load(
        &mut self,
        source: Box<dyn RowSource>,
        options: &LoadOptions,
        progress: &mut dyn FnMut(&Loaded),
    ) -> Result<Loaded> {
        let first = options.write_time_us.unwrap_or_else(|| now_us().max(self.next_write_time_us));
        let name = self.address.table();
        let (loaded, ended) = self.runtime.block_on(async {
            let table =
                schema::read(&self.session, name).await?.ok_or_else(|| Error::NoTable(name.clone()))?;
            if let Some(reason) = schema::fit(&table, source.columns()) {
                return Err(Error::Misfit { table: name.clone(), reason: Box::new(reason) });
            }
            self.expect_types(source.types()).await?;
            let prepared = load::prepare(&self.session, &table, &*source, options).await?;
            Ok(load::load(Arc::clone(&self.session), prepared, &table, source, options, first, progress)
                .await)
        })?;
        self.next_write_time_us = first.saturating_add(i64::try_from(loaded.rows).unwrap_or(i64::MAX));
        match ended {
            Ok(()) => Ok(loaded),
            Err(reason) => Err(Error::Stopped { reason: Box::new(reason), loaded }),
        }
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("address", &self.address).finish_non_exhaustive()
    }
}

fn same_table(existing: &TableDef, wanted: &TableDef) -> Result<Created> {
    match schema::compare(existing, wanted) {
        None => Ok(Created::AlreadyThere),
        Some(difference) => {
            Err(Error::TableDiffers { table: wanted.table.clone(), difference: Box::new(difference) })
        }
    }
}

fn same_types(existing: &[TypeDef], wanted: &[TypeDef]) -> Result<()> {
    match schema::compare_types(existing, wanted) {
        None => Ok(()),
        Some((name, difference)) => Err(Error::TypeDiffers { name, difference: Box::new(difference) }),
    }
}

fn already_exists(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::AlreadyExists { .. }, _))
    )
}

/// Microseconds since 1970 by this machine's clock.
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
