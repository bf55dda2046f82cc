//! How long a reader keeps the thread: every call timed by itself, over readings that repeat each other.
//!
//! A reader inside of a reactor gives its host a chance to do something else only between two calls. So what matters is the longest call, and
//! of a reading that was replayed, the longest of the shortest: what the machine did beside it is not the reader's.
//!
//! A contestant of this benchmark is told, a line at a time:
//!
//! ```text
//! contestant: ready VERSION
//! driver:     replay            read everything REPLAYS times
//! contestant: {JSON}            what Summary::json says
//! driver:     run | unlimited   read everything once, untimed within; `unlimited`: with a budget without end
//! contestant: WALL_NS CPU_NS ROWS 0
//! contestant: error MESSAGE     and it ends
//! ```
//!
//! Started with `--memory` it reads the file once, from the disk, piece by piece, answers as to `replay`, and ends. A contestant whose allocator
//! is [`Counting`](marquetry_testing::counting::Counting) also says what it held at the most, and the largest piece that a call asked for.

pub mod ours;
pub mod writing;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use marquetry_testing::counting;
use serde_json::{Value, json};

use crate::clock::{cpu_time, peak_memory_kib, thread_time};
use crate::protocol::refuse;
use ours::Source;

/// Readings whose calls are compared: the shortest of a call's times is its time.
pub const REPLAYS: usize = 5;
/// The longest that a call may take, in microseconds: the task quota of Seastar's reactor.
pub const BAR_US: f64 = 500.0;
/// Looks at the clock from which its own time is known.
const CLOCK_LOOKS: usize = 2_000;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Makes a reader.
    New,
    /// Works on.
    Step,
    /// Hands bytes over.
    Supply,
    /// Lets go of what was read.
    Drop,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Step => "step",
            Self::Supply => "supply",
            Self::Drop => "drop",
        }
    }
}

/// One call: the shortest time that it took in any replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timed {
    call: Call,
    nanoseconds: u64,
    /// The units that it charged.
    units: u64,
}

/// The calls of a reading that is repeated.
#[derive(Debug)]
pub struct Calls {
    calls: Vec<Timed>,
    /// The call that comes next in this replay.
    next: usize,
    replays: usize,
    /// What looking at the clock takes.
    overhead: Duration,
    /// A call that was another one in an earlier replay.
    differs: Option<usize>,
}

impl Default for Calls {
    fn default() -> Self {
        let overhead = (0..CLOCK_LOOKS).map(|_| {
            let begin = thread_time();
            thread_time().saturating_sub(begin)
        });
        Self {
            calls: Vec::new(),
            next: 0,
            replays: 0,
            overhead: overhead.min().unwrap_or_default(),
            differs: None,
        }
    }
}

impl Calls {
    /// Times a call, by the thread's CPU time: what others do on this CPU does not count.
    pub fn time<T>(&mut self, call: Call, work: impl FnOnce() -> T) -> T {
        let begin = thread_time();
        let done = counting::watch(work);
        let taken = thread_time().saturating_sub(begin).saturating_sub(self.overhead);
        self.add(call, u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX));
        done
    }

    fn add(&mut self, call: Call, nanoseconds: u64) {
        let timed = Timed { call, nanoseconds, units: 0 };
        match self.calls.get_mut(self.next) {
            Some(known) if known.call == call => known.nanoseconds = known.nanoseconds.min(nanoseconds),
            None if self.replays == 0 => self.calls.push(timed),
            _ => self.differs = self.differs.or(Some(self.next)),
        }
        self.next += 1;
    }

    /// Says what the last call charged.
    pub fn charged(&mut self, units: u64) {
        let Some(last) = self.next.checked_sub(1) else { return };
        let Some(timed) = self.calls.get_mut(last) else { return };
        if self.replays > 0 && timed.units != units {
            self.differs = self.differs.or(Some(last));
        }
        timed.units = units;
    }

    /// Ends a replay.
    ///
    /// # Errors
    /// When its calls were not those of the replays before: then a call's times cannot be compared.
    pub fn end_replay(&mut self) -> Result<(), String> {
        let differs = self.differs.or((self.next != self.calls.len()).then_some(self.next));
        (self.next, self.replays) = (0, self.replays + 1);
        match differs {
            None => Ok(()),
            Some(call) => Err(format!("call {call} is another one in replay {}", self.replays)),
        }
    }

    /// What the replays showed.
    pub fn summary(&self) -> Summary {
        let mut sorted: Vec<u64> = self.calls.iter().map(|timed| timed.nanoseconds).collect();
        sorted.sort_unstable();
        let drops = self.calls.iter().filter(|timed| timed.call == Call::Drop);
        let (longest_at, longest) = self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, timed)| timed.call != Call::Drop)
            .max_by_key(|(_, timed)| timed.nanoseconds)
            .map_or((0, None), |(at, timed)| (at, Some(*timed)));
        let largest = self.calls.iter().max_by_key(|timed| timed.units);
        let of = |timed: &Timed| timed.nanoseconds as f64 / timed.units as f64;
        let mut unit: Vec<f64> = self.calls.iter().filter(|timed| timed.units >= UNITS_MIN).map(of).collect();
        unit.sort_by(f64::total_cmp);
        Summary {
            calls: self.calls.len(),
            longest_ns: longest.map_or(0, |timed| timed.nanoseconds),
            longest_call: longest.map_or("none", |timed| timed.call.name()),
            longest_at,
            longest_units: longest.map_or(0, |timed| timed.units),
            drop_ns: drops.map(|timed| timed.nanoseconds).max().unwrap_or(0),
            p999_ns: rank(&sorted, 0.999).copied().unwrap_or(0),
            units_max: largest.map_or(0, |timed| timed.units),
            units_max_ns: largest.map_or(0, |timed| timed.nanoseconds),
            unit_ns_median: rank(&unit, 0.5).copied(),
            unit_ns_max: unit.last().copied(),
            total_ns: sorted.iter().sum(),
            units: self.calls.iter().map(|timed| timed.units).sum(),
        }
    }
}

/// Calls that charge less than this say nothing of what a unit is: what a call costs beside its work is then too large a part.
const UNITS_MIN: u64 = 20_000;

/// The element below which that part of the sorted elements is, by the nearest rank.
fn rank<T>(sorted: &[T], part: f64) -> Option<&T> {
    let last = sorted.len().checked_sub(1)?;
    // Not negative, and not beyond the length.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let at = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(at.saturating_sub(1).min(last))
}

/// What replays showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Calls of a reading.
    pub calls: usize,
    /// The longest call's time, its kind, its number, and the units it charged: of the calls into the reader, which drops are not.
    pub longest_ns: u64,
    /// See [`Summary::longest_ns`].
    pub longest_call: &'static str,
    /// See [`Summary::longest_ns`].
    pub longest_at: usize,
    /// See [`Summary::longest_ns`].
    pub longest_units: u64,
    /// The longest that the host took to drop something: a batch, a demand, the reader.
    pub drop_ns: u64,
    /// The time that all calls but one in a thousand stay within.
    pub p999_ns: u64,
    /// The most units that a call charged, and the time of that call.
    pub units_max: u64,
    /// See [`Summary::units_max`].
    pub units_max_ns: u64,
    /// Nanoseconds by unit, of calls that charge enough to tell: the median and the most.
    pub unit_ns_median: Option<f64>,
    /// See [`Summary::unit_ns_median`].
    pub unit_ns_max: Option<f64>,
    /// The time of all calls, and the units that they charged.
    pub total_ns: u64,
    /// See [`Summary::total_ns`].
    pub units: u64,
}

impl Summary {
    /// For the driver.
    pub fn json(&self) -> Value {
        json!({
            "calls": self.calls,
            "longest_ns": self.longest_ns,
            "longest_call": self.longest_call,
            "longest_at": self.longest_at,
            "longest_units": self.longest_units,
            "drop_ns": self.drop_ns,
            "p999_ns": self.p999_ns,
            "units_max": self.units_max,
            "units_max_ns": self.units_max_ns,
            "unit_ns_median": self.unit_ns_median,
            "unit_ns_max": self.unit_ns_max,
            "total_ns": self.total_ns,
            "units": self.units,
        })
    }
}

/// A reading, as a contestant does it: its rows, or why it ended.
#[derive(Debug)]
pub enum Read {
    /// All of the file.
    Rows(u64),
    /// The file was refused.
    Refused(String),
}

/// Serves a driver: the contestant's side, from its command line on, `FILE [--memory]`. `read(source, calls, unlimited)` reads the file once and times
/// its calls where it is asked to. A file that is refused is read as far as that.
pub fn serve(version: &str, read: impl Fn(&Source, Option<&mut Calls>, bool) -> Read) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, memory) = match &arguments[..] {
        [path] => (path, false),
        [path, flag] if flag == "--memory" => (path, true),
        _ => return refuse("usage: FILE [--memory]"),
    };
    let source = match Source::open(path, !memory) {
        Ok(source) => source,
        Err(message) => return refuse(&message),
    };
    say(&format!("ready {version}"));
    if memory {
        counting::start();
        return match replay(1, &source, &read) {
            Ok(answer) => {
                say(&answer);
                ExitCode::SUCCESS
            }
            Err(message) => refuse(&message),
        };
    }
    for line in std::io::stdin().lines() {
        let request = line.unwrap_or_default();
        let answer = match request.as_str() {
            "replay" => replay(REPLAYS, &source, &read),
            "run" | "unlimited" => {
                let (wall, cpu) = (Instant::now(), cpu_time());
                let found = read(&source, None, request == "unlimited");
                let (wall, cpu) = (wall.elapsed(), cpu_time().saturating_sub(cpu));
                match found {
                    Read::Rows(rows) => Ok(format!("{} {} {rows} 0", wall.as_nanos(), cpu.as_nanos())),
                    Read::Refused(reason) => Err(reason),
                }
            }
            other => Err(format!("not a request: {other:?}")),
        };
        match answer {
            Ok(answer) => say(&answer),
            Err(message) => return refuse(&message),
        }
    }
    ExitCode::SUCCESS
}

fn replay(
    replays: usize,
    source: &Source,
    read: &impl Fn(&Source, Option<&mut Calls>, bool) -> Read,
) -> Result<String, String> {
    let mut calls = Calls::default();
    let begin = Instant::now();
    let mut found = Read::Rows(0);
    for _ in 0..replays {
        found = read(source, Some(&mut calls), false);
        calls.end_replay()?;
    }
    let mut answer = calls.summary().json();
    answer["wall_ns"] = json!(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    answer["peak_kib"] = json!(peak_memory_kib(&status));
    answer["held_kib"] = json!(counting::peak() >> 10);
    answer["piece_kib"] = json!(counting::largest() >> 10);
    match found {
        Read::Rows(rows) => answer["rows"] = json!(rows),
        Read::Refused(reason) => answer["refused"] = json!(reason),
    }
    Ok(answer.to_string())
}

fn say(line: &str) {
    println!("{line}");
    let _ = std::io::stdout().flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(replays: &[&[(Call, u64, u64)]]) -> Result<Calls, String> {
        let mut calls = Calls::default();
        for replay in replays {
            for &(call, nanoseconds, units) in *replay {
                calls.add(call, nanoseconds);
                calls.charged(units);
            }
            calls.end_replay()?;
        }
        Ok(calls)
    }

    #[test]
    fn a_call_takes_its_shortest_time_and_a_reading_its_longest_call() {
        let calls = replayed(&[
            &[(Call::New, 10, 0), (Call::Step, 900, 40_000), (Call::Step, 500, 250_000)],
            &[(Call::New, 70, 0), (Call::Step, 300, 40_000), (Call::Step, 600, 250_000)],
        ])
        .unwrap();
        let summary = calls.summary();
        assert_eq!((summary.calls, summary.longest_ns, summary.longest_at), (3, 500, 2));
        assert_eq!((summary.units_max, summary.units_max_ns, summary.longest_call), (250_000, 500, "step"));
        assert_eq!((summary.unit_ns_max, summary.total_ns), (Some(0.0075), 810));
    }

    #[test]
    fn a_drop_is_the_host_s_and_told_by_itself() {
        let calls = replayed(&[&[(Call::Step, 500, 9), (Call::Drop, 900, 0), (Call::Drop, 700, 0)]]).unwrap();
        let summary = calls.summary();
        assert_eq!((summary.longest_ns, summary.longest_call, summary.drop_ns), (500, "step", 900));
    }

    #[test]
    fn replays_that_differ_are_not_compared() {
        let first = [(Call::New, 1, 0), (Call::Step, 1, 7)];
        assert!(replayed(&[&first, &first]).is_ok());
        assert!(replayed(&[&first, &first[..1]]).is_err());
        assert!(replayed(&[&first[..1], &first]).is_err());
        assert!(replayed(&[&first, &[(Call::New, 1, 0), (Call::Drop, 1, 7)]]).is_err());
        assert!(replayed(&[&first, &[(Call::New, 1, 0), (Call::Step, 1, 8)]]).is_err());
    }

    #[test]
    fn ranks_are_nearest() {
        let thousand: Vec<u32> = (1..=1000).collect();
        assert_eq!(rank(&thousand, 0.999), Some(&999));
        assert_eq!(rank(&thousand[..10], 0.999), Some(&10));
        assert_eq!(rank(&thousand[..3], 0.5), Some(&2));
        assert_eq!(rank::<u32>(&[], 0.5), None);
    }
}
