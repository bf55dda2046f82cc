//! What the operating system knows of time, processors and processes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The CPU time of this process, all of its threads.
pub fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// The CPU time of the calling thread.
pub fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Processors.
pub type Cpus = rustix::thread::CpuSet;

/// A thread that has a processor to itself, as far as this process has a say in it.
#[derive(Debug)]
pub struct Alone {
    others: Cpus,
    /// What Linux tells of the thread's turns; `None` where there is no other processor for the process's other threads, so that nobody can
    /// tell who disturbs it.
    turns: Option<File>,
}

impl Alone {
    /// Keeps the calling thread to one of its processors, as hosts of one thread a core do.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> Result<Alone, String> {
        let mut others = rustix::thread::sched_getaffinity(None).map_err(|error| error.to_string())?;
        let mine = (0..Cpus::MAX_CPU).find(|&cpu| others.is_set(cpu)).ok_or("there is no processor")?;
        run_on(&only(mine))?;
        if others.count() == 1 {
            return Ok(Alone { others, turns: None });
        }
        others.unset(mine);
        // Linux has this file, but where it was built without.
        Ok(Alone { others, turns: File::open("/proc/thread-self/schedstat").ok() })
    }

    /// The processors that are left to the process's other threads: the same one where there is no other.
    pub fn others(&self) -> Cpus {
        self.others
    }

    /// For how long the thread was ready to run while others had its processor, in all; nothing where that is not known.
    pub fn kept_off(&self) -> Duration {
        let mut text = [0; 64];
        let read = self.turns.as_ref().and_then(|turns| turns.read_at(&mut text, 0).ok());
        read.and_then(|read| kept_off(&text[..read])).unwrap_or_default()
    }

    /// True when it is known.
    pub fn knows(&self) -> bool {
        self.turns.is_some()
    }
}

/// The time that a thread waited for its turn, from its `/proc/…/schedstat` (sched-stats, "per-task": the second number, in nanoseconds).
fn kept_off(schedstat: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(schedstat).ok()?;
    text.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
}

fn only(cpu: usize) -> Cpus {
    let mut cpus = Cpus::new();
    cpus.set(cpu);
    cpus
}

/// Keeps the calling thread, and those that it starts from now on, to these processors.
///
/// # Errors
/// When the system refuses.
pub fn run_on(cpus: &Cpus) -> Result<(), String> {
    rustix::thread::sched_setaffinity(None, cpus).map_err(|error| error.to_string())
}

/// Keeps this process, and the processes it starts from now on, to one CPU: threads that they start all the same give no advantage.
///
/// # Errors
/// When there is no such CPU, or it is not ours.
pub fn pin(cpu: usize) -> Result<(), String> {
    if cpu >= Cpus::MAX_CPU {
        return Err(format!("CPU {cpu}: no machine has so many"));
    }
    run_on(&only(cpu)).map_err(|error| format!("CPU {cpu}: {error}"))
}

/// The processor's name, where Linux tells it, and its family and model, which tell what the name may not.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'));
        value.map(str::trim)
    };
    let name = of("model name").unwrap_or("unknown processor");
    match (of("cpu family"), of("model\t")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name.to_owned(),
    }
}

/// Today's date in UTC, as 2026-11-30.
pub fn today() -> String {
    date(since_1970().as_secs() / DAY_SECONDS)
}

/// The time in UTC, to the second, as 2026-11-30T20:24:05Z (RFC 3339).
pub fn now() -> String {
    moment(since_1970().as_secs())
}

const DAY_SECONDS: u64 = 86_400;

fn since_1970() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// The time so many seconds after 1970 began.
fn moment(seconds: u64) -> String {
    let (days, second) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    format!("{}T{:02}:{:02}:{:02}Z", date(days), second / 3600, second / 60 % 60, second % 60)
}

/// The date so many days after 1970-01-01, in years that begin in March: then the odd day is a year's last.
fn date(days: u64) -> String {
    let days = days + 719_468; // 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + later)
}

/// The memory that a new program can have without swapping, in bytes, where Linux tells it (proc_meminfo(5): MemAvailable).
pub fn available_memory() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A process's state (`Z`: it has ended) and CPU time, from its `/proc/…/stat` (proc_pid_stat(5): fields 3, 14 and 15).
pub fn process_state(stat: &str) -> Option<(char, Duration)> {
    state_and_times(stat, 2)
}

/// The same, with the CPU time of the processes that it started and waited for (fields 16 and 17), and theirs.
pub fn tree_state(stat: &str) -> Option<(char, Duration)> {
    state_and_times(stat, 4)
}

/// The state, and the sum of so many times from field 14 on.
fn state_and_times(stat: &str, times: usize) -> Option<(char, Duration)> {
    // The second field is the program's name in parentheses, and may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    let (mut ticks, mut found) = (0, 0);
    for field in fields.skip(10).take(times) {
        ticks += field.parse::<u64>().ok()?;
        found += 1;
    }
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    (found == times).then_some((state, Duration::from_nanos(ticks * (1_000_000_000 / ticks_per_second))))
}

/// The most memory that a process has had at once, from its `/proc/…/status`, in KiB.
pub fn peak_memory_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, expected) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_787, "2026-11-30")]
        {
            assert_eq!(date(days), expected);
        }
        assert_eq!(moment(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(moment(951_868_800), "2000-03-01T00:00:00Z");
    }

    #[test]
    fn reads_what_linux_says_of_a_process() {
        let stat = "7 (a) b)) Z 1 7 7 0 -1 4194304 90 0 0 0 150 50 0 0 20 0 1 0 300 0 0";
        let tick = Duration::from_secs(1) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap();
        assert_eq!(process_state(stat), Some(('Z', tick * 200)));
        assert_eq!(process_state("7 (a"), None);
        let stat = "7 (a) S 1 7 7 0 -1 4194304 90 0 0 0 150 50 30 20 20 0 1 0 300 0 0";
        assert_eq!(tree_state(stat), Some(('S', tick * 250)));
        assert_eq!(tree_state("7 (a) S 1 7 7 0 -1 4194304 90 0 0 0 150 50"), None);
        assert_eq!(peak_memory_kib("VmPeak:\t  99 kB\nVmHWM:\t   1234 kB\n"), Some(1234));
        assert_eq!(peak_memory_kib("Name: x"), None);
        assert_eq!(available("MemFree: 1 kB\nMemAvailable:   20 kB\n"), Some(20 << 10));
        assert_eq!(available("MemFree: 1 kB\n"), None);
        assert_eq!(kept_off(b"546165245 419324 20\n"), Some(Duration::from_nanos(419_324)));
        assert_eq!(kept_off(b"546165245"), None);
    }
}
