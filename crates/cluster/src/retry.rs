//! What is sent again, and when.

use std::time::{Duration, Instant};

use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};

/// The wait before a row is sent a second time.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// The longest wait before a row is sent again.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The least time for an answer: servers that work give up by themselves within it, unless configured otherwise, and say so.
const ANSWER_MIN: Duration = Duration::from_secs(10);

/// The time for an answer, at most `most`. A server that says nothing at all is not waited for much longer than one that is gone.
pub(crate) fn answer_timeout(most: Duration, retry_for: Duration) -> Duration {
    most.min(retry_for.max(ANSWER_MIN))
}

/// Whether the same request may succeed a little later: nobody answered, too few replicas did, or a node has too much to do. The row itself
/// has nothing to do with it, nor the page.
pub(crate) fn is_passing(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::EmptyPlan
        | ExecutionError::ConnectionPoolError(_)
        | ExecutionError::RequestTimeout(_) => true,
        ExecutionError::LastAttemptError(error) => is_passing_attempt(error),
        ExecutionError::PrepareError(error) => is_passing_prepare(error),
        _ => false,
    }
}

/// The same of a statement that could not be prepared.
pub(crate) fn is_passing_prepare(error: &PrepareError) -> bool {
    match error {
        PrepareError::ConnectionPoolError(_) => true,
        PrepareError::AllAttemptsFailed { first_attempt } => is_passing_attempt(first_attempt),
        _ => false,
    }
}

/// The same of one attempt.
pub(crate) fn is_passing_attempt(error: &RequestAttemptError) -> bool {
    match error {
        RequestAttemptError::DbError(error, _) => matches!(
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
        RequestAttemptError::BrokenConnectionError(_) | RequestAttemptError::UnableToAllocStreamId => true,
        _ => false,
    }
}

/// Whether the cluster would take other rows, but not this one, whenever it is sent.
pub(crate) fn is_about_the_row(error: &ExecutionError) -> bool {
    matches!(error, ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::Invalid, _)))
}

/// For how long a request is sent again whose failure may pass: from now on.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Duration,
    began: Instant,
    spread: u64,
    failures: u32,
}

impl Patience {
    /// `spread` tells requests that may fail together from each other, as a row's number does: see [`Retries::wait`].
    pub(crate) fn new(retry_for: Duration, spread: u64) -> Patience {
        Patience { until: retry_for, began: Instant::now(), spread, failures: 0 }
    }

    /// Sends a request until it succeeds, its failure is none that passes, or the time is over: then its last failure is the error. The request
    /// gets the number of its failures so far.
    ///
    /// What follows is to be sent within the same time, if it is sent with the same patience.
    pub(crate) async fn send<T, E, Sent>(
        &mut self,
        is_passing: impl Fn(&E) -> bool,
        mut request: impl FnMut(u32) -> Sent,
    ) -> Result<T, E>
    where
        Sent: Future<Output = Result<T, E>>,
    {
        loop {
            let reason = match request(self.failures).await {
                Ok(answer) => return Ok(answer),
                Err(reason) => reason,
            };
            let may_pass = is_passing(&reason);
            if !self.wait(may_pass).await {
                return Err(reason);
            }
        }
    }

    /// Counts a failure, and waits. `false`: it is not worth it, or not any more.
    pub(crate) async fn wait(&mut self, is_passing: bool) -> bool {
        self.failures += 1;
        let left = self.until.saturating_sub(self.began.elapsed());
        if left.is_zero() || !is_passing {
            return false;
        }
        tokio::time::sleep(wait(self.failures, self.spread, BACKOFF_MAX).min(left)).await;
        true
    }

    /// How often it was sent in vain.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

/// For how long a row is sent again, and how often at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retries {
    retry_for: Duration,
    longest: Duration,
}

impl Retries {
    /// As often as waits of up to 5 seconds allow.
    pub(crate) fn often(retry_for: Duration) -> Retries {
        Retries { retry_for, longest: BACKOFF_MAX }
    }

    /// Not more than [`FEW`] times, however long: for rows that have a write time of their own each time. The waits may be longer, a tenth of
    /// the time.
    pub(crate) fn few(retry_for: Duration) -> Retries {
        Retries { retry_for, longest: BACKOFF_MAX.max(retry_for / 10) }
    }

    /// The time.
    pub(crate) fn retry_for(self) -> Duration {
        self.retry_for
    }

    /// The wait after a row has been sent `tries` times: it doubles, and it differs between rows by up to a half, so that
    /// those that failed together do not come back together.
    pub(crate) fn wait(self, tries: u32, row: u64) -> Duration {
        wait(tries, row, self.longest)
    }

    /// How often a row is sent before the time is over, at most.
    pub(crate) fn tries_max(self) -> i64 {
        // After the first waits comes one after each of the longest ones, of which half may be taken off.
        let more = self.retry_for.as_millis() / (self.longest.as_millis() / 2).max(1);
        i64::try_from(more).unwrap_or(i64::MAX).saturating_add(i64::from(FIRST_WAITS))
    }
}

/// How often [`Retries::few`] is at most: the first ten times, and then after waits of a twentieth of the time and more.
pub(crate) const FEW: i64 = 32;
/// The waits that double; later ones are the longest.
const FIRST_WAITS: u32 = 10;

fn wait(tries: u32, row: u64, longest: Duration) -> Duration {
    let whole = match tries {
        0..=FIRST_WAITS => BACKOFF_MIN.saturating_mul(1 << tries.saturating_sub(1)).min(longest),
        _ => longest,
    };
    // The upper bits of a multiple of the golden ratio spread neighbouring rows evenly.
    let spread = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    whole - whole / 2 * u32::try_from(spread).unwrap_or(0) / 256
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ() {
        let backoff = |tries, row| wait(tries, row, BACKOFF_MAX);
        assert_eq!(backoff(1, 0), BACKOFF_MIN);
        assert_eq!(backoff(2, 0), BACKOFF_MIN * 2);
        assert_eq!(backoff(40, 0), BACKOFF_MAX);
        let waits: std::collections::BTreeSet<Duration> = (0..100).map(|row| backoff(1, row)).collect();
        assert!(waits.len() > 50, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait > BACKOFF_MIN / 2 && *wait <= BACKOFF_MIN), "{waits:?}");
    }

    /// Sends what fails so often with a failure that passes, and then ends; how it ended, and what it was given each time.
    async fn sent(
        patience: &mut Patience,
        mut failures: u32,
        end: Result<(), &'static str>,
    ) -> (Result<(), &'static str>, Vec<u32>) {
        let mut told = Vec::new();
        let request = |failed| {
            told.push(failed);
            let answer = if failures == 0 { end } else { Err("busy") };
            failures = failures.saturating_sub(1);
            std::future::ready(answer)
        };
        let done = patience.send(|reason| *reason == "busy", request).await;
        (done, told)
    }

    #[tokio::test]
    async fn what_passes_is_waited_for_while_there_is_time() {
        let second = Duration::from_secs(1);
        let mut patience = Patience::new(60 * second, 0);
        let began = Instant::now();
        assert_eq!(sent(&mut patience, 1, Ok(())).await, (Ok(()), vec![0, 1]));
        // What is sent with the same patience has failed as often.
        assert_eq!(sent(&mut patience, 1, Err("invalid")).await, (Err("invalid"), vec![1, 2]));
        assert_eq!(patience.failures(), 3);
        assert!(began.elapsed() >= BACKOFF_MIN + 2 * BACKOFF_MIN, "{:?}", began.elapsed());
        // The last time is when the time is over.
        let mut patience = Patience::new(BACKOFF_MIN / 2, 0);
        assert_eq!(sent(&mut patience, 9, Ok(())).await, (Err("busy"), vec![0, 1]));
        // Without time it is sent once.
        let mut patience = Patience::new(Duration::ZERO, 0);
        assert_eq!(sent(&mut patience, 9, Ok(())).await, (Err("busy"), vec![0]));
        assert_eq!(patience.failures(), 1);
    }

    #[test]
    fn silence_is_waited_for_as_long_as_absence() {
        let second = Duration::from_secs(1);
        let of = |retry_for: u32| answer_timeout(30 * second, retry_for * second);
        assert_eq!((of(0), of(12), of(120)), (10 * second, 12 * second, 30 * second));
    }

    #[test]
    fn tries_are_bounded() {
        for (seconds, rows) in
            [(0, 10), (1, 100), (10, 100), (50, 100), (120, 100), (3600, 20), (30 * 86_400, 20)]
        {
            let retry_for = Duration::from_secs(seconds);
            for retries in [Retries::often(retry_for), Retries::few(retry_for)] {
                for row in 0..rows {
                    let (mut waited, mut tries) = (Duration::ZERO, 0);
                    while waited <= retry_for {
                        tries += 1;
                        waited += retries.wait(tries, row);
                    }
                    assert!(i64::from(tries) <= retries.tries_max(), "{tries} in {seconds} s");
                }
            }
            assert!(Retries::few(retry_for).tries_max() <= FEW, "{seconds} s");
        }
    }

    #[test]
    fn only_passing_trouble_is_waited_for() {
        let db = |error| ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, String::new()));
        for passing in [db(DbError::Overloaded), ExecutionError::RequestTimeout(BACKOFF_MAX)] {
            assert!(is_passing(&passing) && !is_about_the_row(&passing));
        }
        let prepare = |error| {
            let first_attempt = RequestAttemptError::DbError(error, String::new());
            ExecutionError::PrepareError(PrepareError::AllAttemptsFailed { first_attempt })
        };
        assert!(is_passing(&prepare(DbError::Overloaded)) && !is_passing(&prepare(DbError::Invalid)));
        assert!(!is_passing(&db(DbError::Invalid)) && is_about_the_row(&db(DbError::Invalid)));
        assert!(!is_passing(&db(DbError::Unauthorized)) && !is_about_the_row(&db(DbError::Unauthorized)));
    }
}
