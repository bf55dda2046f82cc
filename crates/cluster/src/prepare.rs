//! Preparing what is sent.

use std::time::Duration;

use scylla::client::session::Session;
use scylla::errors::PrepareError;
use scylla::statement::Statement;
use scylla::statement::prepared::PreparedStatement;

use crate::options::Consistency;

/// The time for an answer. Servers give up earlier (2 s for a write unless configured otherwise) and say so.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Prepares a statement that writes.
pub(crate) async fn prepared(
    session: &Session,
    text: String,
    consistency: Consistency,
) -> Result<PreparedStatement, PrepareError> {
    let mut prepared = session.prepare(Statement::new(text)).await?;
    prepared.set_consistency(consistency.for_driver());
    prepared.set_request_timeout(Some(REQUEST_TIMEOUT));
    // The same row with the same write time: however often it is applied, the table is the same.
    prepared.set_is_idempotent(true);
    Ok(prepared)
}
