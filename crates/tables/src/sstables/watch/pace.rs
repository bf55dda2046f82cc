//! A share of the machine: after some work, a rest.

use std::time::{Duration, Instant};

use marquetry_io::process::processor_time;

use crate::Cancel;

/// The longest that is slept without a look at what cancels.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// Keeps the time that processors work for this process below a share of all their time.
#[derive(Debug)]
pub(super) struct Pace {
    /// Processors, times the share of each.
    processors: f64,
    started: Instant,
    worked_before: Duration,
}

impl Pace {
    /// `percent` of `processors`, from now on. `None` if there is no limit, or the system does not say how much was worked.
    pub(super) fn new(percent: Option<u8>, processors: usize) -> Option<Pace> {
        let share = f64::from(percent.filter(|percent| *percent < 100)?.max(1)) / 100.0;
        let processors = f64::from(u32::try_from(processors).unwrap_or(u32::MAX)) * share;
        Some(Pace { processors, started: Instant::now(), worked_before: processor_time()? })
    }

    /// Counts from now on: time in which there was nothing to do is not saved up.
    pub(super) fn begin(&mut self) {
        (self.started, self.worked_before) = (Instant::now(), processor_time().unwrap_or_default());
    }

    /// Rests for as long as more was worked than may be, or for `at_most`: whether that was enough, or it is cancelled. Threads that wait for
    /// their batches to be taken rest with this one.
    pub(super) fn rest(&self, at_most: Duration, cancel: &Cancel) -> bool {
        let begun = Instant::now();
        loop {
            let worked = processor_time().unwrap_or_default().saturating_sub(self.worked_before);
            let left = rest_after(worked, self.started.elapsed(), self.processors);
            if left.is_zero() || cancel.is_set() {
                return true;
            }
            if begun.elapsed() >= at_most {
                return false;
            }
            std::thread::sleep(left.min(SLEEP_MAX));
        }
    }
}

/// How long to rest.
fn rest_after(worked: Duration, elapsed: Duration, processors: f64) -> Duration {
    let wanted = Duration::try_from_secs_f64(worked.as_secs_f64() / processors).unwrap_or(Duration::MAX);
    wanted.saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_rest_are_as_the_share_says() {
        let seconds = Duration::from_secs;
        // A quarter of two processors is half of one.
        assert_eq!(rest_after(seconds(3), seconds(4), 0.5), seconds(2));
        assert_eq!(rest_after(seconds(3), seconds(6), 0.5), seconds(0));
        assert_eq!(rest_after(seconds(3), seconds(9), 0.5), seconds(0));
        assert!(Pace::new(None, 4).is_none() && Pace::new(Some(100), 4).is_none());
        let mut pace = Pace::new(Some(1), 1).unwrap();
        pace.begin();
        let cancel = Cancel::new();
        cancel.cancel();
        assert!(pace.rest(seconds(60), &cancel));
        pace.worked_before = Duration::ZERO;
        pace.processors = 1e-9;
        assert!(!pace.rest(Duration::ZERO, &Cancel::new()));
    }
}
