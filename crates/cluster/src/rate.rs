//! How fast rows are sent, at most.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use marquetry_base::{Error, Result};

/// The most rows and bytes a second. Each row takes its slot before it is sent for the first time; what is sent again is not counted.
///
/// ```
/// use marquetry_cluster::Rate;
///
/// let rate: Rate = "20K,10MB".parse()?;
/// assert_eq!((rate.rows.unwrap().get(), rate.bytes.unwrap().get()), (20_000, 10_000_000));
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate {
    /// Rows a second.
    pub rows: Option<NonZeroU64>,
    /// Bytes a second, as the protocol holds them.
    pub bytes: Option<NonZeroU64>,
}

impl FromStr for Rate {
    type Err = Error;

    /// Parses rows a second (`5000`, `20K`), bytes a second (`10MB`, `512KiB`), or both with a comma between them.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `rate`.
    fn from_str(text: &str) -> Result<Rate> {
        let wrong = || {
            let what = format!(
                "{text:?} is neither rows a second, such as 5000 or 20K, nor bytes, such as 10MB, nor both: 20K,10MB"
            );
            Error::option("rate", what)
        };
        let mut rate = Rate::default();
        for part in text.split(',') {
            let (number, is_bytes) = amount(part.trim()).ok_or_else(wrong)?;
            let slot = if is_bytes { &mut rate.bytes } else { &mut rate.rows };
            if slot.replace(number).is_some() {
                return Err(wrong());
            }
        }
        Ok(rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rows, self.bytes) {
            (Some(rows), Some(bytes)) => write!(f, "{rows},{bytes}B"),
            (Some(rows), None) => write!(f, "{rows}"),
            (None, Some(bytes)) => write!(f, "{bytes}B"),
            (None, None) => f.write_str("any"),
        }
    }
}

/// A number that is not zero, and whether it is one of bytes.
fn amount(text: &str) -> Option<(NonZeroU64, bool)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (scale, is_bytes) = match &*unit.trim_start().to_ascii_lowercase() {
        "" => (1, false),
        "k" => (1_000, false),
        "m" => (1_000_000, false),
        "b" => (1, true),
        "kb" => (1_000, true),
        "mb" => (1_000_000, true),
        "gb" => (1_000_000_000, true),
        "kib" => (1 << 10, true),
        "mib" => (1 << 20, true),
        "gib" => (1 << 30, true),
        _ => return None,
    };
    let number = digits.parse::<u64>().ok()?.checked_mul(scale)?;
    Some((NonZeroU64::new(number)?, is_bytes))
}

/// Gives rows their slots.
#[derive(Debug)]
pub(crate) struct Limiter {
    rows: Option<Slots>,
    bytes: Option<Slots>,
}

/// What was not used of this last part of a second may be used at once: timers are not exact, and nor are whoever makes rows.
const BURST: Duration = Duration::from_millis(100);

impl Limiter {
    pub(crate) fn new(rate: Rate) -> Limiter {
        let slots = |per_second| Slots { per_second, next: Duration::ZERO };
        Limiter { rows: rate.rows.map(slots), bytes: rate.bytes.map(slots) }
    }

    /// Takes the slot of a row of so many bytes; how long to wait for it. `now` is any clock's time, which never goes back.
    pub(crate) fn take(&mut self, now: Duration, bytes: u64) -> Duration {
        self.take_all(now, 1, bytes)
    }

    /// The same for several rows at once.
    pub(crate) fn take_all(&mut self, now: Duration, rows: u64, bytes: u64) -> Duration {
        let rows = self.rows.as_mut().map_or(Duration::ZERO, |slots| slots.take(now, rows));
        let bytes = self.bytes.as_mut().map_or(Duration::ZERO, |slots| slots.take(now, bytes));
        rows.max(bytes)
    }
}

#[derive(Debug)]
struct Slots {
    per_second: NonZeroU64,
    /// When the next slot begins.
    next: Duration,
}

impl Slots {
    fn take(&mut self, now: Duration, amount: u64) -> Duration {
        let start = self.next.max(now.saturating_sub(BURST));
        let nanos = u128::from(amount) * 1_000_000_000 / u128::from(self.per_second.get());
        self.next = start.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
        start.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        for (text, rows, bytes) in [
            ("5000", 5000, 0),
            ("20K", 20_000, 0),
            ("1m", 1_000_000, 0),
            ("10MB", 0, 10_000_000),
            ("64 KiB", 0, 65_536),
            ("10MB, 3", 3, 10_000_000),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.rows, rate.bytes), (NonZeroU64::new(rows), NonZeroU64::new(bytes)), "{text}");
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }
        for text in ["", "0", "-1", "5 rows", "1,2", "1MB,2MB", "1,", "1.5K", "99999999999999999999"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    /// The time at which so many rows are sent, by a clock that only waits move.
    fn sent_after(rate: Rate, rows: u64, bytes: u64) -> Duration {
        let (mut limiter, mut now) = (Limiter::new(rate), Duration::ZERO);
        for _ in 0..rows {
            now += limiter.take(now, bytes);
        }
        now
    }

    #[test]
    fn rows_take_their_slots() {
        let of = |text: &str| text.parse::<Rate>().unwrap();
        let near = |found: Duration, wanted: u64| {
            let wanted = Duration::from_millis(wanted);
            assert!(found <= wanted && found + BURST + BURST >= wanted, "{found:?} {wanted:?}");
        };
        near(sent_after(of("1000"), 5000, 9), 5000);
        near(sent_after(of("1MB"), 5000, 1000), 5000);
        // The slower of both.
        near(sent_after(of("1000,1MB"), 5000, 4000), 20_000);
        assert_eq!(sent_after(Rate::default(), 5000, 4000), Duration::ZERO);
        // What was not sent in a long time is not sent at once afterwards.
        let mut limiter = Limiter::new(of("1000"));
        let mut now = Duration::from_secs(60);
        let start = now;
        for _ in 0..1000 {
            now += limiter.take(now, 9);
        }
        near(now - start, 1000);
    }
}
