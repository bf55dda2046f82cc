//! When what failed is tried again.

use std::time::{Duration, Instant};

/// How long it is waited at first; then twice as long each time.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// … and at most this.
const AGAIN_MAX: Duration = Duration::from_secs(60);

/// Waits longer each time that something fails.
#[derive(Debug, Clone)]
pub(super) struct Retry {
    next: Option<Instant>,
    pause: Duration,
}

impl Retry {
    pub(super) fn new() -> Retry {
        Retry { next: None, pause: AGAIN }
    }

    /// Whether it is too early.
    pub(super) fn is_waiting(&self) -> bool {
        self.next.is_some_and(|next| Instant::now() < next)
    }

    /// It failed. Returns how long it is waited.
    pub(super) fn failed(&mut self) -> Duration {
        let pause = self.pause;
        self.next = Some(Instant::now() + pause);
        self.pause = (pause * 2).min(AGAIN_MAX);
        pause
    }

    pub(super) fn succeeded(&mut self) {
        *self = Retry::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_something_succeeds() {
        let mut retry = Retry::new();
        assert!(!retry.is_waiting());
        let pauses: Vec<u64> = (0..8).map(|_| retry.failed().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(retry.is_waiting());
        retry.succeeded();
        assert!(!retry.is_waiting());
        assert_eq!(retry.failed(), AGAIN);
    }
}
