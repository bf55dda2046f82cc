//! What servers say of the sizes and places of a table's partitions.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use marquetry_scylla::cql::TableName;
use scylla::client::session::Session;
use scylla::cluster::Node;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::{Consistency, Statement};
use scylla::value::CqlValue;

use super::ranges::{Estimate, Splitting, pieces, tablet_borders};
use crate::error::{Error, Result};
use crate::schema::query;

/// The only partitioner whose token ranges are known.
const MURMUR3: &str = "Murmur3Partitioner";

/// The time for a node's estimates, without which it goes as well.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Whether the servers are ScyllaDB: only those tell the driver of shards.
pub(crate) fn is_scylla(session: &Session) -> bool {
    session.get_cluster_state().get_nodes_info().iter().any(|node| node.sharder().is_some())
}

/// Fails where tokens are not those that ranges can be made of.
pub(super) async fn expect_tokens(session: &Session) -> Result<()> {
    let found: Vec<(String,)> = query(session, "SELECT partitioner FROM system.local", ()).await?;
    match found.into_iter().next() {
        Some((class,)) if !class.ends_with(MURMUR3) => Err(Error::Partitioner(class)),
        _ => Ok(()),
    }
}

/// The token ranges that are read as pieces.
pub(super) async fn ranges(
    session: &Session,
    table: &TableName,
    wanted: &[RangeInclusive<i64>],
    splitting: Splitting,
) -> Result<Vec<RangeInclusive<i64>>> {
    let state = session.get_cluster_state();
    let mut borders: Vec<i64> =
        state.replica_locator().ring().iter().map(|(token, _)| token.value()).collect();
    if is_scylla(session)
        && let Some(tablets) = tablets(session, table).await?
    {
        borders = tablets;
    }
    let mut estimates = Vec::new();
    for node in state.get_nodes_info() {
        // Each node has those of its own ranges. One that does not answer leaves a gap, which is read all the same.
        estimates.extend(estimates_of(session, table, node).await.unwrap_or_default());
    }
    Ok(pieces(&borders, &estimates, wanted, splitting))
}

/// The estimates of a node. `None` if it has none.
async fn estimates_of(session: &Session, table: &TableName, node: &Arc<Node>) -> Option<Vec<Estimate>> {
    let mut statement = Statement::new(
        "SELECT range_start, range_end, mean_partition_size, partitions_count FROM system.size_estimates \
         WHERE keyspace_name = ? AND table_name = ?",
    );
    statement.set_consistency(Consistency::One);
    statement.set_is_idempotent(true);
    statement.set_request_timeout(Some(TIMEOUT));
    let only = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(Arc::clone(node)), None);
    statement.set_load_balancing_policy(Some(only));
    let keyspace = table.keyspace.as_ref()?.as_str();
    let answer = session.query_unpaged(statement, (keyspace, table.table.as_str())).await.ok()?;
    let answer = answer.into_rows_result().ok()?;
    let rows = answer.rows::<(String, String, Option<i64>, Option<i64>)>().ok()?;
    let estimate = |(after, end, size, count): (String, String, Option<i64>, Option<i64>)| {
        let number = |number: Option<i64>| u64::try_from(number.unwrap_or(0)).unwrap_or(0);
        let bytes = number(size).saturating_mul(number(count));
        Some(Estimate { after: after.parse().ok()?, end: end.parse().ok()?, bytes })
    };
    Some(rows.filter_map(|row| estimate(row.ok()?)).collect())
}

/// The ends of the table's tablets. `None` if it has none, or the servers do not know what tablets are.
async fn tablets(session: &Session, table: &TableName) -> Result<Option<Vec<i64>>> {
    let Some(keyspace) = &table.keyspace else { return Ok(None) };
    for (of, name) in [("tables", "table_name"), ("views", "view_name")] {
        let text = format!("SELECT id FROM system_schema.{of} WHERE keyspace_name = ? AND {name} = ?");
        let ids: Vec<(CqlValue,)> = query(session, &text, (keyspace.as_str(), table.table.as_str())).await?;
        let Some((id,)) = ids.into_iter().next() else { continue };
        let text = "SELECT last_token FROM system.tablets WHERE table_id = ?";
        let tokens: Vec<(Option<i64>,)> = match query(session, text, (id,)).await {
            Ok(tokens) => tokens,
            // Versions from before tablets have no such table.
            Err(_) => return Ok(None),
        };
        let tokens: Vec<Option<i64>> = tokens.into_iter().map(|(token,)| token).collect();
        let borders = tablet_borders(&tokens);
        return Ok((!borders.is_empty()).then_some(borders));
    }
    Ok(None)
}
