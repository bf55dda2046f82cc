//! Asking for pages: prepared, sent to a node that has the rows, and again if that may help.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use marquetry_base::cast::u64_of;
use marquetry_scylla::cql::TableName;
use marquetry_scylla::select::{Dialect, Part, Selection};
use scylla::client::session::Session;
use scylla::cluster::Node;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::policies::load_balancing::{
    LoadBalancingPolicy, NodeIdentifier, SingleTargetLoadBalancingPolicy,
};
use scylla::response::query_result::QueryRowsResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::routing::Token;
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::OnceCell;

use super::estimates::is_scylla;
use super::options::UnloadOptions;
use super::pace::Pace;
use crate::error::{Error, Result};
use crate::options::Consistency;
use crate::prepare::prepared;
use crate::rate::Limiter;
use crate::retry::{Patience, answer_timeout, is_passing};
use crate::schema;

/// The time for a page. Servers give up earlier (5 s unless configured otherwise; ScyllaDB after the time in the statement) and say so.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests for each node or shard besides those of the pieces that are read, and the most of all.
const REQUESTS_AHEAD: usize = 2;
const REQUESTS_AHEAD_MAX: usize = 64;

/// How pages are asked for.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    consistency: Consistency,
    retry_for: Duration,
    /// The most rows of a page.
    page_rows_max: i32,
    /// Shared by all pieces; it counts from a time.
    limiter: Arc<(Instant, Mutex<Limiter>)>,
}

/// Pages that pass in a second at the rate that is asked for, of one piece: fewer would come in bursts.
const PAGES_PER_SECOND: u64 = 4;

impl Manner {
    pub(super) fn new(options: &UnloadOptions) -> Manner {
        let most = options.rate.rows.map_or(u64::MAX, |rows| (rows.get() / PAGES_PER_SECOND).max(1));
        Manner {
            consistency: options.consistency,
            retry_for: options.retry_for,
            page_rows_max: i32::try_from(most).unwrap_or(i32::MAX),
            limiter: Arc::new((Instant::now(), Mutex::new(Limiter::new(options.rate)))),
        }
    }

    /// Waits for the slot of a page that came: the next one is not asked for before.
    async fn slow_down(&self, rows: usize, bytes: usize) {
        let (started, limiter) = &*self.limiter;
        let wait = {
            let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
            limiter.take_all(started.elapsed(), u64_of(rows), u64_of(bytes))
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}

/// The rows of one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rows {
    /// Of partitions with tokens from the first to the last one.
    Tokens(i64, i64),
    /// Of the partition with this key, by its columns; and its token.
    Partition(Vec<Vec<u8>>, i64),
}

impl Rows {
    fn part(&self) -> Part {
        match self {
            Rows::Tokens(..) => Part::Tokens,
            Rows::Partition(..) => Part::Partition,
        }
    }

    /// Whether partitions with a token are among them.
    pub(super) fn has(&self, token: i64) -> bool {
        match self {
            Rows::Tokens(first, last) => (*first..=*last).contains(&token),
            Rows::Partition(_, own) => *own == token,
        }
    }

    /// A token of them.
    fn token(&self) -> i64 {
        match self {
            Rows::Tokens(_, last) => *last,
            Rows::Partition(_, token) => *token,
        }
    }
}

impl SerializeRow for Rows {
    fn serialize(
        &self,
        _context: &RowSerializationContext<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), SerializationError> {
        let mut add = |value: &[u8]| {
            writer.make_cell_writer().set_value(value).map(drop).map_err(SerializationError::new)
        };
        match self {
            // `>`: no partition has the least token, so nothing is left out before it.
            Rows::Tokens(first, last) => {
                add(&first.saturating_sub(1).to_be_bytes())?;
                add(&last.to_be_bytes())
            }
            Rows::Partition(key, _) => key.iter().try_for_each(|value| add(value)),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) rows: QueryRowsResult,
    /// When it was asked for, in seconds since 1970: times to live count from then, or from little after.
    pub(super) asked_at: u32,
}

/// What is asked of a table.
pub(super) struct Requests {
    pub(super) session: Arc<Session>,
    pub(super) table: TableName,
    pub(super) selection: Arc<Selection>,
    pub(super) pace: Arc<Pace>,
    manner: Manner,
    /// Prepared with the first page, if not before.
    statements: OnceCell<Statements>,
}

struct Statements {
    tokens: PreparedStatement,
    partition: PreparedStatement,
}

impl Requests {
    pub(super) fn new(
        session: Arc<Session>,
        table: TableName,
        selection: Arc<Selection>,
        pace: Arc<Pace>,
        manner: Manner,
    ) -> Requests {
        Requests { session, table, selection, pace, manner, statements: OnceCell::new() }
    }

    /// The same of other columns. Nothing is asked of the cluster.
    pub(super) fn of(&self, selection: Arc<Selection>) -> Requests {
        let (session, pace) = (Arc::clone(&self.session), Arc::new(self.pace.like()));
        Requests::new(session, self.table.clone(), selection, pace, self.manner.clone())
    }

    /// Prepares the statements, unless they are.
    ///
    /// # Errors
    ///
    /// [`Error::Select`]; [`is_not_understood`] says whether it is the selection that the cluster refuses.
    pub(super) async fn prepare(&self) -> Result<()> {
        self.statements().await.map(drop)
    }

    async fn statements(&self) -> Result<&Statements> {
        let prepare = async || {
            let (tokens, partition) =
                (self.statement(Part::Tokens).await?, self.statement(Part::Partition).await?);
            Ok(Statements { tokens, partition })
        };
        self.statements.get_or_try_init(prepare).await
    }

    async fn statement(&self, part: Part) -> Result<PreparedStatement> {
        let text = self.selection.statement(&self.table, part, dialect(is_scylla(&self.session)));
        let Manner { consistency, retry_for, .. } = self.manner;
        let prepared = prepared(&self.session, &text, consistency, retry_for).await;
        let mut prepared =
            prepared.map_err(|reason| Error::Select(Box::new(ExecutionError::PrepareError(reason))))?;
        prepared.set_request_timeout(Some(answer_timeout(REQUEST_TIMEOUT, retry_for)));
        Ok(prepared)
    }

    /// Pieces that are worth asking for beside those that are read: some for each node, or each shard.
    pub(super) fn ahead(&self) -> usize {
        let state = self.session.get_cluster_state();
        let shards =
            |node: &Arc<Node>| node.sharder().map_or(1, |sharder| usize::from(sharder.nr_shards.get()));
        let all: usize = state.get_nodes_info().iter().map(shards).sum();
        (REQUESTS_AHEAD * all).min(REQUESTS_AHEAD_MAX)
    }

    /// The next page, and where the one after it begins. `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`Error::Select`], [`Error::Read`], [`Error::Dropped`], [`Error::Answer`].
    pub(super) async fn page(&self, of: &Rows, state: PagingState) -> Result<(Page, Option<PagingState>)> {
        let statements = self.statements().await?;
        let mut patience = Patience::new(self.manner.retry_for, of.token().cast_unsigned());
        let mut most = self.pace.rows().min(self.manner.page_rows_max);
        let ask = |failures: u32| {
            if failures > 0 {
                // It may have been too much for the time.
                most = (most / 4).max(1);
            }
            let prepared = self.prepared(statements, of, most, failures);
            let state = state.clone();
            async move {
                let asked_at = now();
                let answer = self.session.execute_single_page(&prepared, of, state).await;
                answer.map(|answer| (answer, asked_at))
            }
        };
        let ((answer, next), asked_at) = match patience.send(is_passing, ask).await {
            Ok(answer) => answer,
            Err(reason) => return Err(self.why(patience.failures(), reason).await),
        };
        let rows = answer.into_rows_result().map_err(|error| unexpected(&error))?;
        self.pace.note(rows.rows_num(), rows.rows_bytes_size());
        self.manner.slow_down(rows.rows_num(), rows.rows_bytes_size()).await;
        let next = match next {
            PagingStateResponse::HasMorePages { state } => Some(state),
            PagingStateResponse::NoMorePages => None,
        };
        Ok((Page { rows, asked_at }, next))
    }

    /// What asks for a page of so many rows at most, after so many failures.
    fn prepared(&self, statements: &Statements, of: &Rows, most: i32, failures: u32) -> PreparedStatement {
        let mut prepared = match of.part() {
            Part::Tokens => statements.tokens.clone(),
            Part::Partition => statements.partition.clone(),
        };
        prepared.set_page_size(most);
        // A node that fails is not asked twice: the driver chooses another then.
        if let Some(target) = self.target(of.token()).filter(|_| failures == 0) {
            prepared.set_load_balancing_policy(Some(target));
        }
        prepared
    }

    /// A node that has the rows with this token, where it is certain that it is as near as others.
    fn target(&self, token: i64) -> Option<Arc<dyn LoadBalancingPolicy>> {
        let state = self.session.get_cluster_state();
        let nodes = state.get_nodes_info();
        let datacenter = |at: usize| nodes.get(at).map(|node| &node.datacenter);
        if nodes.iter().any(|node| Some(&node.datacenter) != datacenter(0)) {
            return None;
        }
        let keyspace = self.table.keyspace.as_ref()?.as_str();
        let replicas = state.get_token_endpoints(keyspace, self.table.table.as_str(), Token::new(token));
        let (node, shard) = replicas.into_iter().find(|(node, _)| node.is_connected())?;
        let shard = node.sharder().map(|_| shard);
        Some(SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(node), shard))
    }

    /// Why a page did not come.
    async fn why(&self, tries: u32, reason: ExecutionError) -> Error {
        let is_gone =
            !is_passing(&reason) && matches!(schema::read(&self.session, &self.table).await, Ok(None));
        match is_gone {
            true => Error::Dropped(self.table.clone()),
            false => Error::Read { tries, reason: Box::new(reason) },
        }
    }
}

/// What is said to servers besides the rows.
fn dialect(is_scylla: bool) -> Dialect {
    let seconds = u32::try_from(REQUEST_TIMEOUT.as_secs()).unwrap_or(u32::MAX);
    Dialect { bypasses_cache: is_scylla, timeout_seconds: is_scylla.then_some(seconds) }
}

/// Whether a server refuses what is selected: an older one does not know the times of elements.
pub(super) fn is_not_understood(error: &Error) -> bool {
    let Error::Select(reason) = error else { return false };
    let ExecutionError::PrepareError(PrepareError::AllAttemptsFailed { first_attempt, .. }) = &**reason
    else {
        return false;
    };
    matches!(first_attempt, RequestAttemptError::DbError(DbError::Invalid | DbError::SyntaxError, _))
}

pub(super) fn unexpected(error: &dyn std::error::Error) -> Error {
    Error::Answer { purpose: "read rows", reason: error.to_string() }
}

/// Seconds since 1970, by this machine's clock.
fn now() -> u32 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scylla_is_told_more() {
        assert_eq!(dialect(false), Dialect::default());
        let of_scylla = dialect(true);
        assert!(of_scylla.bypasses_cache && of_scylla.timeout_seconds == Some(60));
    }
}
