//! Whole programs, from their start to their end.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::clock;

/// How often the child is looked at; a peak that comes and goes within a millisecond before its end may be missed.
const WATCH_INTERVAL: Duration = Duration::from_millis(1);

/// What one run of a program took.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// From its start to its end.
    pub wall_s: f64,
    /// Of all its threads, the kernel's work for it included.
    pub cpu_s: f64,
    /// The most memory that it had at once, its files in memory included.
    pub peak_mib: f64,
}

/// Runs the program to its end, and gives what it printed.
///
/// # Errors
/// When it does not start, or does not end well: with what it wrote on standard error.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Runs the program to its end, its output going nowhere.
///
/// # Errors
/// When it does not start, or does not end well; when `/proc` does not say what it took.
pub fn watch(mut command: Command) -> Result<Run, String> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let mut peak_kib = 0;
    // A process that has ended keeps its times, but not its memory, until it is waited for.
    let (wall, cpu) = loop {
        let stat = std::fs::read_to_string(process.join("stat"))
            .map_err(|error| format!("its /proc/…/stat: {error}"))?;
        let (state, cpu) = clock::process_state(&stat).ok_or_else(|| format!("not understood: {stat}"))?;
        if state == 'Z' {
            break (start.elapsed(), cpu);
        }
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        peak_kib = peak_kib.max(clock::peak_memory_kib(&status).unwrap_or(0));
        std::thread::sleep(WATCH_INTERVAL);
    };
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{command:?}: {status}"));
    }
    let peak_mib = f64::from(u32::try_from(peak_kib).map_err(|error| error.to_string())?) / 1024.0;
    Ok(Run { wall_s: wall.as_secs_f64(), cpu_s: cpu.as_secs_f64(), peak_mib })
}
