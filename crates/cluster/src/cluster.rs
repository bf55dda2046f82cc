//! A connection to a cluster, for one table.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use marquetry_base::ErrorKind;
use marquetry_scylla::cql::ddl::{TableDef, TypeDef};
use marquetry_scylla::cql::{Name, TableName};
use marquetry_tables::Cancel;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::policies::load_balancing::DefaultPolicy;

use crate::address::CqlAddress;
use crate::credentials::Credentials;
use crate::error::{Differing, Error, Item, Result};
use crate::options::ConnectOptions;
use crate::reach::Reach;
use crate::retry::{Patience, is_passing};
use crate::runtime::Runtime;
use crate::same_table::SameTable;
use crate::schema::{self, Types};

/// A connection to a cluster, for one table: reads the table's definition, and creates it.
///
/// Each call blocks until it is done. The connection has a runtime on threads of its own.
///
/// ```no_run
/// use marquetry_cluster::{Cluster, ConnectOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::connect("cql://localhost/ks.trips".parse()?, &ConnectOptions::default())?;
/// match cluster.table()? {
///     Some(table) => print!("{table}"),
///     None => println!("there is no such table"),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Cluster {
    // Before the runtime, which its tasks run on.
    session: Arc<Session>,
    runtime: Runtime,
    address: CqlAddress,
}

/// How a table came to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It was created.
    New,
    /// It already existed, with the same columns, types and key.
    AlreadyThere,
}

/// A table that is wanted, and what is there of it.
#[derive(Debug)]
pub(crate) struct Compared {
    wanted: TableDef,
    types: Vec<TypeDef>,
    is_there: bool,
    /// The keyspace's types, if any are wanted.
    existing_types: Vec<TypeDef>,
}

impl Compared {
    /// How it comes to exist.
    pub(crate) fn created(&self) -> Created {
        if self.is_there { Created::AlreadyThere } else { Created::New }
    }
}

impl Cluster {
    /// Connects to the cluster, and logs in when the address or the options have a user.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] and [`Error::ConnectTimeout`] have the address without the password.
    /// [`Error::NoDatacenter`]. [`Error::Tls`] for certificates and keys that cannot be used; [`Error::Bundle`] and [`Error::NoHost`] for
    /// addresses without a host; [`Error::Credentials`] if there is no password, or more than one.
    pub fn connect(address: CqlAddress, options: &ConnectOptions) -> Result<Cluster> {
        Cluster::connect_unless(Cancel::new(), address, options)
    }

    /// Connects. Whatever waits for the cluster, now or later, ends soon after `cancel` is set, with
    /// [`Error::Cancelled`].
    pub(crate) fn connect_unless(
        cancel: Cancel,
        address: CqlAddress,
        options: &ConnectOptions,
    ) -> Result<Cluster> {
        let reach = Reach::of(&address, options)?;
        let credentials = Credentials::find(&address, options).map_err(Error::Credentials)?;
        let runtime = Runtime::start(cancel)?;
        let (timeout, timeout_ms) = (options.timeout, options.timeout.as_millis());
        let late = || Error::ConnectTimeout { address: address.to_string(), timeout_ms };
        let opening = runtime.wait(async move { tokio::time::timeout(timeout, reach.open()).await })?;
        let reached = opening.map_err(|_| late())??;
        let mut builder = SessionBuilder::new()
            .known_nodes(address.hosts().iter().map(ToString::to_string))
            .connection_timeout(options.timeout)
            // Requests go to the replicas of their row; for that the driver need not know any columns.
            .fetch_full_schema_metadata(false)
            .keyspaces_to_fetch([address.keyspace()])
            .refresh_metadata_on_auto_schema_agreement(false);
        builder = reached.prepare(builder);
        let datacenter = options.local_datacenter.clone().or_else(|| reached.datacenter());
        if let Some(Credentials { user, password }) = credentials {
            builder = builder.user(user, password);
        }
        if let Some(datacenter) = &datacenter {
            let policy =
                DefaultPolicy::builder().prefer_datacenter(datacenter.clone()).permit_dc_failover(false);
            let profile = ExecutionProfile::builder().load_balancing_policy(policy.build());
            builder = builder.default_execution_profile_handle(profile.build().into_handle());
        }
        let connecting = async move { tokio::time::timeout(timeout, builder.build()).await };
        let session = match runtime.wait(connecting)? {
            Ok(Ok(session)) => Arc::new(session),
            Ok(Err(reason)) => {
                let error = Error::Connect { address: address.to_string(), reason: Box::new(reason) };
                // Where no node was reached, what the driver sees is that its connections to loopback are closed.
                let why = reached.failure().filter(|_| error.kind() == ErrorKind::Io);
                return Err(why.map_or(error, Error::Bundle));
            }
            Err(_) => return Err(late()),
        };
        if let Some(wanted) = &datacenter {
            let state = session.get_cluster_state();
            let known: BTreeSet<&str> =
                state.get_nodes_info().iter().filter_map(|node| node.datacenter.as_deref()).collect();
            if !known.contains(&**wanted) {
                let known = known.into_iter().map(str::to_owned).collect();
                return Err(Error::NoDatacenter { wanted: wanted.clone(), known });
            }
        }
        Ok(Cluster { session, runtime, address })
    }

    /// Where the table is.
    pub fn address(&self) -> &CqlAddress {
        &self.address
    }

    /// The table as the cluster has it, without its comment. `None`: the keyspace has no such table.
    ///
    /// # Errors
    ///
    /// [`Error::NoKeyspace`], or the cluster's errors.
    pub fn table(&self) -> Result<Option<TableDef>> {
        let (session, name) = self.shared();
        self.runtime.wait(async move { schema::read(&session, &name).await })?
    }

    /// The table's comment. `None`: there is no such table; a view has none.
    pub(crate) fn comment(&self) -> Result<Option<String>> {
        let (session, name) = self.shared();
        self.runtime.wait(async move { schema::read_comment(&session, &name).await })?
    }

    /// Columns that were dropped from the table, and when, in microseconds: see [`schema::read_dropped`].
    pub(crate) fn dropped_columns(&self) -> Result<Vec<(String, i64)>> {
        let (session, name) = self.shared();
        self.runtime.wait(async move { schema::read_dropped(&session, &name).await })?
    }

    /// The user-defined types of the table's keyspace. Those that are not understood are left out, because other tables may be without them.
    ///
    /// # Errors
    ///
    /// The cluster's errors.
    pub fn types(&self) -> Result<Vec<TypeDef>> {
        self.read_types().map(Types::into_known)
    }

    /// The same, and an error if this definition of the table needs one that is not understood.
    pub(crate) fn types_of(&self, table: &TableDef) -> Result<Vec<TypeDef>> {
        self.read_types()?.of_table(table)
    }

    fn read_types(&self) -> Result<Types> {
        let (session, name) = self.shared();
        self.runtime.wait(async move { schema::read_types(&session, &name).await })?
    }

    /// Creates the table, under the address's name whatever name the definition has, and waits until all nodes know
    /// it. Before it, creates the user-defined types that it needs, in order, in its keyspace. An existing table or
    /// type is left unchanged if it has the same columns or fields, types and key.
    ///
    /// # Errors
    ///
    /// [`Error::Differ`] if it exists and differs, with all differences; [`Error::NoKeyspace`],
    /// [`Error::Definition`]: then nothing is created. The cluster's errors; in [`Error::TypesLeft`] if types were
    /// created before.
    pub fn create_table(&self, definition: &TableDef, types: &[TypeDef]) -> Result<Created> {
        self.create_table_with(definition, types, Vec::new())
    }

    /// The same with options: each with its name, and as it is written. They count if the table is created.
    ///
    /// # Errors
    ///
    /// [`Error::Properties`], too.
    pub(crate) fn create_table_with(
        &self,
        definition: &TableDef,
        types: &[TypeDef],
        properties: Vec<(String, String)>,
    ) -> Result<Created> {
        self.create(self.compare_table(definition, types)?, properties)
    }

    /// What there is of a table, of which [`create`](Cluster::create) makes the rest.
    ///
    /// # Errors
    ///
    /// Those that [`create_table`](Cluster::create_table) has before anything is created.
    pub(crate) fn compare_table(&self, definition: &TableDef, types: &[TypeDef]) -> Result<Compared> {
        let (session, name) = self.shared();
        let mut wanted = definition.clone();
        wanted.table = name;
        wanted.if_not_exists = false;
        wanted.check().map_err(Error::Definition)?;
        let types: Vec<TypeDef> = types
            .iter()
            .map(|it| TypeDef { keyspace: wanted.table.keyspace.clone(), if_not_exists: true, ..it.clone() })
            .collect();
        types.iter().try_for_each(TypeDef::check).map_err(Error::Definition)?;
        self.runtime.wait(async move { compare(&session, wanted, types).await })?
    }

    /// Makes what was not there when it was compared.
    ///
    /// # Errors
    ///
    /// As [`create_table_with`](Cluster::create_table_with).
    pub(crate) fn create(
        &self,
        mut compared: Compared,
        properties: Vec<(String, String)>,
    ) -> Result<Created> {
        if properties.iter().any(|(name, _)| name == "comment") {
            compared.wanted.comment = None;
        }
        let session = Arc::clone(&self.session);
        self.runtime.wait(async move { create(&session, &compared, &properties).await })?
    }

    /// Creates indexes of the table by their statements, one after the other, and waits until all nodes know them. A cluster that does not answer is
    /// asked again, for so long each time.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] and [`Error::IndexOfAnother`], with the first that was not created.
    pub(crate) fn create_indexes(&self, statements: Vec<String>, retry_for: Duration) -> Result<()> {
        let (session, name) = self.shared();
        self.runtime.wait(async move {
            for (before, statement) in statements.into_iter().enumerate() {
                create_index(&session, &statement, retry_for).await?;
                // Where an index of another table has the name, nothing is done, and no error says so.
                if schema::count_indexes(&session, &name).await? <= before {
                    return Err(Error::IndexOfAnother { statement });
                }
            }
            Ok::<(), Error>(())
        })?
    }

    /// What the cluster knows the table by: that of a table which is dropped and created again is another.
    pub(crate) fn table_id(&self) -> Result<String> {
        let (session, name) = self.shared();
        self.runtime.wait(async move { schema::read_id(&session, &name).await })?
    }

    /// The table as it is now, to look later whether it still is.
    pub(crate) fn same_table(&self) -> Result<Arc<SameTable>> {
        let (session, name) = self.shared();
        self.runtime.wait(async move { SameTable::of(&session, name).await })?.map(Arc::new)
    }

    /// Fails if the table is another by now.
    pub(crate) fn expect_same(&self, table: &Arc<SameTable>, retry_for: Duration) -> Result<()> {
        let (session, table) = (Arc::clone(&self.session), Arc::clone(table));
        self.runtime.wait(async move { table.check(&session, retry_for).await })?
    }

    fn shared(&self) -> (Arc<Session>, TableName) {
        (Arc::clone(&self.session), self.address.table().clone())
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What is there. All that can differ is found before anything is made.
async fn compare(session: &Session, wanted: TableDef, types: Vec<TypeDef>) -> Result<Compared> {
    let existing = schema::read(session, &wanted.table).await?;
    let existing_types = match &*types {
        [] => Vec::new(),
        some => schema::read_types(session, &wanted.table).await?.with(some)?,
    };
    let mut differing = schema::compare_types(&existing_types, &types);
    differing.splice(0..0, existing.as_ref().and_then(|existing| differing_table(existing, &wanted)));
    match differing.is_empty() {
        true => Ok(Compared { wanted, types, is_there: existing.is_some(), existing_types }),
        false => Err(Error::Differ(differing)),
    }
}

async fn create(session: &Session, compared: &Compared, properties: &[(String, String)]) -> Result<Created> {
    let Compared { wanted, types, is_there, existing_types } = compared;
    let mut made = Vec::new();
    let done = async {
        create_types(session, &wanted.table, types, existing_types, &mut made).await?;
        match is_there {
            true => Ok(Created::AlreadyThere),
            false => create_missing_table(session, wanted, properties).await,
        }
    };
    let done = done.await;
    match done {
        Err(reason) if !made.is_empty() => Err(Error::TypesLeft { types: made, reason: Box::new(reason) }),
        done => done,
    }
}

/// Makes those types that are not there; `made` has them, also after an error.
async fn create_types(
    session: &Session,
    table: &TableName,
    types: &[TypeDef],
    existing: &[TypeDef],
    made: &mut Vec<Name>,
) -> Result<()> {
    let existing: HashSet<&Name> = existing.iter().map(|it| &it.name).collect();
    for missing in types.iter().filter(|it| !existing.contains(&it.name)) {
        session
            .query_unpaged(missing.to_string(), ())
            .await
            .map_err(|error| Error::Statement { purpose: "create a type", reason: Box::new(error) })?;
        made.push(missing.name.clone());
    }
    if made.is_empty() {
        return Ok(());
    }
    // Where somebody else was faster with one, it is theirs.
    let existing = schema::read_types(session, table).await?.with(types)?;
    let differing = schema::compare_types(&existing, types);
    if !differing.is_empty() {
        return Err(Error::Differ(differing));
    }
    let existing: HashSet<&Name> = existing.iter().map(|it| &it.name).collect();
    match types.iter().find(|it| !existing.contains(&it.name)) {
        Some(missing) => Err(Error::NoType(missing.name.clone())),
        None => Ok(()),
    }
}

async fn create_index(session: &Session, statement: &str, retry_for: Duration) -> Result<()> {
    let mut patience = Patience::new(retry_for, 0);
    let sent = patience.send(is_passing, |_| session.query_unpaged(statement, ())).await;
    let refused = |reason| Error::Index { statement: statement.to_owned(), reason: Box::new(reason) };
    sent.map(drop).map_err(refused)
}

async fn create_missing_table(
    session: &Session,
    wanted: &TableDef,
    properties: &[(String, String)],
) -> Result<Created> {
    let statement = wanted.to_string_with(properties.iter().map(|(_, text)| text.as_str()));
    match session.query_unpaged(statement, ()).await {
        // The driver has waited until the nodes agree on the schema.
        Ok(_) => Ok(Created::New),
        // Somebody else was faster.
        Err(error) if already_exists(&error) => {
            match schema::read(session, &wanted.table).await? {
                Some(existing) => match differing_table(&existing, wanted) {
                    Some(differing) => Err(Error::Differ(vec![differing])),
                    None => Ok(Created::AlreadyThere),
                },
                // Somebody is faster with everything.
                None => Err(not_created(error, properties)),
            }
        }
        Err(error) => Err(not_created(error, properties)),
    }
}

/// Why a table is not there. Servers name the option that they refuse in their own words only; what is made of these is the words of ours.
fn not_created(reason: ExecutionError, properties: &[(String, String)]) -> Error {
    let is_about_the_statement = matches!(
        &reason,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            DbError::Invalid | DbError::SyntaxError | DbError::ConfigError,
            _
        ))
    );
    let (said, reason) = (reason.to_string().to_lowercase(), Box::new(reason));
    let is_named = |(name, _): &&(String, String)| is_about_the_statement && said.contains(name.as_str());
    let named: Vec<String> = properties.iter().filter(is_named).map(|(_, text)| text.clone()).collect();
    match named.is_empty() {
        true => Error::Statement { purpose: "create the table", reason },
        false => Error::Properties { properties: named, reason },
    }
}

fn differing_table(existing: &TableDef, wanted: &TableDef) -> Option<Differing> {
    let differences = schema::compare(existing, wanted);
    let item = Item::Table(wanted.table.clone());
    (!differences.is_empty()).then_some(Differing { item, differences })
}

fn already_exists(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::AlreadyExists { .. }, _))
    )
}
