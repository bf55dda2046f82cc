//! Preparing what is sent.

use std::time::Duration;

use scylla::client::session::Session;
use scylla::errors::PrepareError;
use scylla::statement::Statement;
use scylla::statement::prepared::PreparedStatement;

use crate::options::Consistency;
use crate::retry::{Patience, answer_timeout, is_passing_prepare};

/// The time for an answer. Servers give up earlier (2 s for a write unless configured otherwise) and say so.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Prepares a statement that may be sent twice: the same row with the same write time leaves the table the same, and a page is asked for again.
/// A cluster that is overloaded, or down, is waited for so long.
pub(crate) async fn prepared(
    session: &Session,
    text: &str,
    consistency: Consistency,
    retry_for: Duration,
) -> Result<PreparedStatement, PrepareError> {
    let mut patience = Patience::new(retry_for, 0);
    let mut prepared = patience.send(is_passing_prepare, |_| session.prepare(Statement::new(text))).await?;
    prepared.set_consistency(consistency.for_driver());
    prepared.set_request_timeout(Some(answer_timeout(REQUEST_TIMEOUT, retry_for)));
    prepared.set_is_idempotent(true);
    Ok(prepared)
}
