//! What a timer sees of a reader that has the same thread.
//!
//! Three things are counted. How late a timer of one millisecond is, by the clock on the wall: what a host's other work suffers, with all that
//! the machine's own noise adds. How late it were, had no other program ever had the thread's processor while the thread was ready to run. And the
//! CPU time of each call into the reader: what the reader alone keeps its thread for, however busy the machine is.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clock::{Alone, thread_time};

/// The timer's period.
pub const PERIOD: Duration = Duration::from_millis(1);

/// A clock that should tick every [`PERIOD`], and how late each tick was.
///
/// Ticks that are missed because the thread was kept for longer than a period count too, each as late as it was: else one stall of a
/// second would be one late tick among thousands.
#[derive(Debug)]
pub struct Ticks {
    due: Instant,
    /// For how long the thread had been kept from its processor at the latest tick, in all.
    kept_off: Duration,
    late: Lateness,
}

/// How late ticks were, each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// By the clock.
    pub by_clock: Vec<Duration>,
    /// Less the time for which, since the tick before, the thread was ready to run and others had its processor.
    pub undisturbed: Vec<Duration>,
}

impl Ticks {
    /// A clock whose first tick is due a period from now.
    pub fn new() -> Ticks {
        Ticks { due: Instant::now() + PERIOD, kept_off: Duration::ZERO, late: Lateness::default() }
    }

    /// When the next tick is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Counts the tick that was due, and those due since. `kept_off` is for how long others had the thread's processor while it was ready
    /// to run, in all.
    pub fn tick(&mut self, now: Instant, kept_off: Duration) {
        let disturbed = kept_off.saturating_sub(self.kept_off);
        self.kept_off = kept_off;
        while self.due <= now {
            let late = now - self.due;
            self.late.by_clock.push(late);
            self.late.undisturbed.push(late.saturating_sub(disturbed));
            self.due += PERIOD;
        }
    }

    /// Counts the tick that was due now.
    pub fn tick_on(&mut self, alone: &Alone) {
        self.tick(Instant::now(), alone.kept_off());
    }

    /// How late the ticks were.
    pub fn late(self) -> Lateness {
        self.late
    }
}

impl Default for Ticks {
    fn default() -> Ticks {
        Ticks::new()
    }
}

/// The CPU times of the calls into a reader.
pub type Calls = Rc<RefCell<Vec<Duration>>>;

/// A future whose calls are timed.
pub struct Watched<F> {
    inner: Pin<Box<F>>,
    calls: Calls,
}

impl<F> Watched<F> {
    /// Times the calls of `inner`.
    pub fn new(inner: F, calls: Calls) -> Watched<F> {
        Watched { inner: Box::pin(inner), calls }
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let before = thread_time();
        let answer = self.inner.as_mut().poll(cx);
        self.calls.borrow_mut().push(thread_time().saturating_sub(before));
        answer
    }
}

/// How long something took, of many: in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many there were.
    pub count: usize,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Spread {
    /// That of these times.
    pub fn of(mut times: Vec<Duration>) -> Spread {
        times.sort_unstable();
        // The smallest time that so many thousandths are not longer than.
        let at = |thousandths: usize| {
            let index = (times.len() * thousandths).div_ceil(1000).saturating_sub(1);
            times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        Spread { count: times.len(), p50: at(500), p99: at(990), p999: at(999), max: at(1000) }
    }

    /// For machines.
    pub fn json(&self) -> Value {
        json!({ "count": self.count, "p50": self.p50, "p99": self.p99, "p999": self.p999, "max": self.max })
    }

    /// From what [`Spread::json`] wrote.
    pub fn from_json(value: &Value) -> Option<Spread> {
        let number = |name: &str| value[name].as_f64();
        Some(Spread {
            count: usize::try_from(value["count"].as_u64()?).ok()?,
            p50: number("p50")?,
            p99: number("p99")?,
            p999: number("p999")?,
            max: number("max")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_makes_every_tick_in_it_late() {
        let mut ticks = Ticks::new();
        let start = ticks.due();
        ticks.tick(start, Duration::ZERO);
        ticks.tick(start, Duration::ZERO);
        ticks.tick(start + PERIOD * 4, Duration::ZERO);
        let late = ticks.late();
        assert_eq!(late.by_clock, [0, 3, 2, 1, 0].map(Duration::from_millis));
        assert_eq!(late.undisturbed, late.by_clock);
    }

    #[test]
    fn what_others_took_is_taken_off_once() {
        let mut ticks = Ticks::new();
        let start = ticks.due();
        let taken = |millis| Duration::from_millis(millis);
        ticks.tick(start + PERIOD, taken(1));
        ticks.tick(start + PERIOD * 5, taken(3));
        ticks.tick(start + PERIOD * 8, taken(3));
        let late = ticks.late();
        assert_eq!(late.by_clock, [1, 0, 3, 2, 1, 0, 2, 1, 0].map(Duration::from_millis));
        assert_eq!(late.undisturbed, [0, 0, 1, 0, 0, 0, 2, 1, 0].map(Duration::from_millis));
    }

    #[test]
    fn percentiles() {
        let times = (1..=2000).rev().map(Duration::from_millis).collect();
        let spread = Spread::of(times);
        assert_eq!(spread, Spread { count: 2000, p50: 1000.0, p99: 1980.0, p999: 1998.0, max: 2000.0 });
        assert_eq!(Spread::from_json(&spread.json()), Some(spread));
        assert_eq!(Spread::of(Vec::new()), Spread::default());
        assert_eq!(Spread::of(vec![Duration::from_millis(3)]).p50, 3.0);
    }

    #[test]
    fn calls_are_counted() {
        let calls = Calls::default();
        let mut left = 3;
        let inner = std::future::poll_fn(|cx| {
            left -= 1;
            cx.waker().wake_by_ref();
            if left == 0 { Poll::Ready(()) } else { Poll::Pending }
        });
        let watched = Watched::new(inner, Rc::clone(&calls));
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(watched);
        assert_eq!(calls.borrow().len(), 3);
    }
}
