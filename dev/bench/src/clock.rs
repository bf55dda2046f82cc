//! What the operating system knows of time, processors and processes.

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

/// Keeps this process, and the processes it starts from now on, to one CPU: threads that they start all the same give no advantage.
///
/// # Errors
/// When there is no such CPU, or it is not ours.
pub fn pin(cpu: usize) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        return Err(format!("CPU {cpu}: no machine has so many"));
    }
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| format!("CPU {cpu}: {error}"))
}

/// The processor's name, where Linux tells it.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown processor").to_owned()
}

/// A process's state (`Z`: it has ended) and CPU time, from its `/proc/…/stat` (proc_pid_stat(5): fields 3, 14 and 15).
pub fn process_state(stat: &str) -> Option<(char, Duration)> {
    // The second field is the program's name in parentheses, and may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    let user: u64 = fields.nth(10)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    Some((state, Duration::from_nanos((user + system) * (1_000_000_000 / ticks_per_second))))
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
    fn reads_what_linux_says_of_a_process() {
        let stat = "7 (a) b)) Z 1 7 7 0 -1 4194304 90 0 0 0 150 50 0 0 20 0 1 0 300 0 0";
        let tick = Duration::from_secs(1) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap();
        assert_eq!(process_state(stat), Some(('Z', tick * 200)));
        assert_eq!(process_state("7 (a"), None);
        assert_eq!(peak_memory_kib("VmPeak:\t  99 kB\nVmHWM:\t   1234 kB\n"), Some(1234));
        assert_eq!(peak_memory_kib("Name: x"), None);
    }
}
