//! How many rows are in flight: more while the cluster answers soon, fewer when it does not.
//!
//! Additive increase, multiplicative decrease, as in TCP. What counts is how much longer answers take than they did when the cluster
//! was idle: a distant cluster is not a slow one.

use std::time::Duration;

use marquetry_base::cast::integer_of_f64;

/// How many may be in flight, by what answers take.
#[derive(Debug)]
pub(crate) struct Pace {
    ceiling: usize,
    limit: f64,
    /// The shortest mean of some answers: what a request takes that waits for no other.
    least: Option<Duration>,
    window: Window,
}

/// The answers since the limit was looked at: about as many as may be in flight, so that they were sent under it.
#[derive(Debug, Default)]
struct Window {
    answers: usize,
    waited: Duration,
    /// All that may be in flight were, for one of them.
    was_full: bool,
    /// One of them was that the cluster cannot.
    was_refused: bool,
}

/// Rows in flight at first, at most.
const START: usize = 64;
/// Answers that take this much longer than the shortest are no reason to send more.
const STEADY: Duration = Duration::from_millis(100);
/// Answers that take this much longer than the shortest are a reason to send less: an eighth of the time after which servers give up.
const SLOW: Duration = Duration::from_millis(250);
/// The part of the ceiling that is added.
const STEPS: f64 = 16.0;
/// What is left of the limit when answers are slow, and when there are none.
const SLOWER: f64 = 0.8;
const HALF: f64 = 0.5;
/// Answers of a window, at least: one slow answer among few says little.
const WINDOW_MIN: usize = 16;

impl Pace {
    /// At most `ceiling` in flight, which is not zero.
    pub(crate) fn new(ceiling: usize) -> Pace {
        let limit = float(ceiling.min(START));
        Pace { ceiling, limit, least: None, window: Window::default() }
    }

    /// Rows that may be in flight now; at least one.
    pub(crate) fn limit(&self) -> usize {
        let whole = integer_of_f64(self.limit.floor()).and_then(|whole| usize::try_from(whole).ok());
        whole.unwrap_or(1).clamp(1, self.ceiling.max(1))
    }

    /// A request was answered. `is_full`: as many as may be were in flight.
    pub(crate) fn answered(&mut self, after: Duration, is_full: bool) {
        self.window.answers += 1;
        self.window.waited += after;
        self.window.was_full |= is_full;
        self.look();
    }

    /// A request was not answered, or the answer was that the cluster is overloaded.
    pub(crate) fn refused(&mut self) {
        // Those that were in flight with it mean the same.
        if !self.window.was_refused {
            self.set(self.limit * HALF);
            self.window = Window { was_refused: true, ..Window::default() };
        }
        self.window.answers += 1;
        self.look();
    }

    fn look(&mut self) {
        if self.window.answers < self.limit().max(WINDOW_MIN) {
            return;
        }
        let window = std::mem::take(&mut self.window);
        if window.was_refused {
            return;
        }
        let mean = window.waited / u32::try_from(window.answers).unwrap_or(u32::MAX);
        let least = self.least.map_or(mean, |least| least.min(mean));
        self.least = Some(least);
        if mean > least + SLOW {
            self.set(self.limit * SLOWER);
        } else if mean <= least + STEADY && window.was_full {
            self.set(self.limit + (float(self.ceiling) / STEPS).max(1.0));
        }
    }

    fn set(&mut self, limit: f64) {
        self.limit = limit.clamp(1.0, float(self.ceiling).max(1.0));
    }
}

/// Exact for all numbers of rows that can be in flight.
fn float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BinaryHeap;

    /// A cluster that takes at least so long for an answer, gives so many a second, and refuses what would wait longer than two seconds.
    struct Cluster {
        least: Duration,
        per_second: u32,
        next: Duration,
    }

    /// An answer: when it comes, after what time, and whether it is a refusal. The heap has the soonest first.
    type Answer = std::cmp::Reverse<(Duration, Duration, bool)>;

    impl Cluster {
        fn ask(&mut self, now: Duration) -> Answer {
            let start = self.next.max(now);
            if start - now > Duration::from_secs(2) {
                return std::cmp::Reverse((now + Duration::from_secs(2), Duration::from_secs(2), true));
            }
            self.next = start + Duration::from_secs(1) / self.per_second;
            let end = self.next.max(now + self.least);
            std::cmp::Reverse((end, end - now, false))
        }
    }

    /// Keeps as many in flight as may be, until a time. How many were answered, and how many refused.
    fn run(pace: &mut Pace, cluster: &mut Cluster, from: Duration, until: Duration) -> (usize, usize) {
        let mut flying: BinaryHeap<Answer> = BinaryHeap::new();
        let (mut now, mut answered, mut refused) = (from, 0, 0);
        while now < until {
            while flying.len() < pace.limit() {
                flying.push(cluster.ask(now));
            }
            let is_full = flying.len() >= pace.limit();
            let std::cmp::Reverse((at, after, is_refused)) = flying.pop().unwrap();
            now = at;
            if is_refused {
                refused += 1;
                pace.refused();
            } else {
                answered += 1;
                pace.answered(after, is_full);
            }
        }
        (answered, refused)
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_quick_cluster_gets_all() {
        let mut pace = Pace::new(256);
        assert_eq!(pace.limit(), 64);
        let mut cluster =
            Cluster { least: Duration::from_millis(1), per_second: 20_000, next: Duration::ZERO };
        let (answered, refused) = run(&mut pace, &mut cluster, Duration::ZERO, SECOND);
        assert_eq!((pace.limit(), refused), (256, 0));
        assert!(answered > 19_000, "{answered}");
        // As few as were asked for.
        assert_eq!(Pace::new(3).limit(), 3);
    }

    #[test]
    fn a_distant_cluster_gets_all() {
        let mut pace = Pace::new(1000);
        let mut cluster =
            Cluster { least: 300 * Duration::from_millis(1), per_second: 5000, next: Duration::ZERO };
        run(&mut pace, &mut cluster, Duration::ZERO, 20 * SECOND);
        assert_eq!(pace.limit(), 1000);
    }

    #[test]
    fn a_cluster_that_becomes_slow_gets_less_and_then_more_again() {
        let mut pace = Pace::new(256);
        let mut cluster =
            Cluster { least: Duration::from_millis(2), per_second: 10_000, next: Duration::ZERO };
        run(&mut pace, &mut cluster, Duration::ZERO, SECOND);
        assert_eq!(pace.limit(), 256);
        // 256 in flight would take 1.28 s each.
        cluster.per_second = 200;
        let (_, refused) = run(&mut pace, &mut cluster, SECOND, 30 * SECOND);
        assert!(pace.limit() <= 60 && pace.limit() >= 10, "{}", pace.limit());
        assert_eq!(refused, 0);
        cluster.per_second = 10_000;
        run(&mut pace, &mut cluster, 30 * SECOND, 32 * SECOND);
        assert_eq!(pace.limit(), 256);
    }

    #[test]
    fn refusals_halve_the_limit_once() {
        let mut pace = Pace::new(256);
        for _ in 0..1000 {
            pace.answered(Duration::from_millis(1), true);
            pace.answered(Duration::from_millis(1), true);
            pace.answered(Duration::from_millis(1), true);
        }
        assert_eq!(pace.limit(), 256);
        // All that were in flight.
        for _ in 0..100 {
            pace.refused();
        }
        assert_eq!(pace.limit(), 128);
        for _ in 0..10_000 {
            pace.refused();
        }
        assert_eq!(pace.limit(), 1);
        for _ in 0..10_000 {
            pace.answered(Duration::from_millis(1), true);
        }
        assert_eq!(pace.limit(), 256);
        // What is not needed is not raised.
        let mut pace = Pace::new(256);
        for _ in 0..10_000 {
            pace.answered(Duration::from_millis(1), false);
        }
        assert_eq!(pace.limit(), START);
    }
}
