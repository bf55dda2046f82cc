//! What is sent again, and when.

use std::time::Duration;

use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

/// The wait before a row is sent a second time.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// The longest wait before a row is sent again.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Whether the same request may succeed a little later: nobody answered, too few replicas did, or a node has too much to do. The row itself
/// has nothing to do with it, nor the page.
pub(crate) fn is_passing(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::EmptyPlan
        | ExecutionError::ConnectionPoolError(_)
        | ExecutionError::RequestTimeout(_) => true,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => matches!(
            error,
            DbError::Unavailable { .. }
                | DbError::Overloaded
                | DbError::IsBootstrapping
                | DbError::WriteTimeout { .. }
                | DbError::WriteFailure { .. }
                | DbError::ReadTimeout { .. }
                | DbError::ReadFailure { .. }
                | DbError::ServerError
                | DbError::RateLimitReached { .. }
        ),
        ExecutionError::LastAttemptError(
            RequestAttemptError::BrokenConnectionError(_) | RequestAttemptError::UnableToAllocStreamId,
        ) => true,
        _ => false,
    }
}

/// Whether the cluster would take other rows, but not this one, whenever it is sent.
pub(crate) fn is_about_the_row(error: &ExecutionError) -> bool {
    matches!(error, ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::Invalid, _)))
}

/// The wait after a row has been sent `tries` times: it doubles, and it differs between rows by up to a half, so that
/// those that failed together do not come back together.
pub(crate) fn backoff(tries: u32, row: u64) -> Duration {
    let whole = BACKOFF_MIN.saturating_mul(1 << (tries - 1).min(16)).min(BACKOFF_MAX);
    // The upper bits of a multiple of the golden ratio spread neighbouring rows evenly.
    let spread = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    whole - whole / 2 * u32::try_from(spread).unwrap_or(0) / 256
}

/// How often a row is sent before that time is over, at most.
pub(crate) fn tries_max(retry_for: Duration) -> i64 {
    // Those of the first waits, and then one after each of the longest ones, of which half may be taken off.
    const FIRST: i64 = 10;
    let more = retry_for.as_secs() / (BACKOFF_MAX.as_secs() / 2);
    i64::try_from(more).unwrap_or(i64::MAX).saturating_add(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ() {
        assert_eq!(backoff(1, 0), BACKOFF_MIN);
        assert_eq!(backoff(2, 0), BACKOFF_MIN * 2);
        assert_eq!(backoff(40, 0), BACKOFF_MAX);
        let waits: std::collections::BTreeSet<Duration> = (0..100).map(|row| backoff(1, row)).collect();
        assert!(waits.len() > 50, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait > BACKOFF_MIN / 2 && *wait <= BACKOFF_MIN), "{waits:?}");
    }

    #[test]
    fn tries_are_bounded() {
        for (seconds, rows) in [(0, 10), (1, 100), (120, 100), (3600, 20)] {
            let retry_for = Duration::from_secs(seconds);
            for row in 0..rows {
                let (mut waited, mut tries) = (Duration::ZERO, 0);
                while waited <= retry_for {
                    tries += 1;
                    waited += backoff(tries, row);
                }
                assert!(i64::from(tries) < tries_max(retry_for), "{tries} in {seconds} s");
            }
        }
    }

    #[test]
    fn only_passing_trouble_is_waited_for() {
        let db = |error| ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, String::new()));
        for passing in [db(DbError::Overloaded), ExecutionError::RequestTimeout(BACKOFF_MAX)] {
            assert!(is_passing(&passing) && !is_about_the_row(&passing));
        }
        assert!(!is_passing(&db(DbError::Invalid)) && is_about_the_row(&db(DbError::Invalid)));
        assert!(!is_passing(&db(DbError::Unauthorized)) && !is_about_the_row(&db(DbError::Unauthorized)));
    }
}
