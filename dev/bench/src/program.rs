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

/// What one run of a program and of all that it started took.
#[derive(Clone, Copy, Debug)]
pub struct TreeRun {
    /// From its start to its end.
    pub wall_s: f64,
    /// Of all its processes that it waited for, the kernel's work for them included.
    pub cpu_s: f64,
    /// The most memory that they had at once, as far as it was seen.
    pub peak_mib: f64,
}

/// How often the memory of all processes is looked at.
const TREE_INTERVAL: Duration = Duration::from_millis(20);

/// Runs a program that may start others to its end, its output going nowhere.
///
/// # Errors
/// Those of [`watch`].
pub fn watch_tree(mut command: Command) -> Result<TreeRun, String> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let root = child.id();
    let mut peak_kib = 0;
    let (wall, cpu) = loop {
        let stat = std::fs::read_to_string(format!("/proc/{root}/stat"))
            .map_err(|error| format!("its /proc/…/stat: {error}"))?;
        let (state, cpu) = clock::tree_state(&stat).ok_or_else(|| format!("not understood: {stat}"))?;
        if state == 'Z' {
            break (start.elapsed(), cpu);
        }
        peak_kib = peak_kib.max(tree_kib(root));
        std::thread::sleep(TREE_INTERVAL);
    };
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{command:?}: {status}"));
    }
    let peak_mib = f64::from(u32::try_from(peak_kib).map_err(|error| error.to_string())?) / 1024.0;
    Ok(TreeRun { wall_s: wall.as_secs_f64(), cpu_s: cpu.as_secs_f64(), peak_mib })
}

/// The memory of a process and of all that descend from it, now.
fn tree_kib(root: u32) -> u64 {
    let number = |status: &str, key: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()) else {
            continue;
        };
        let Ok(status) = std::fs::read_to_string(entry.path().join("status")) else { continue };
        let parent = number(&status, "PPid:").unwrap_or(0);
        processes.push((pid, parent, number(&status, "VmRSS:").unwrap_or(0)));
    }
    let mut tree = vec![u64::from(root)];
    let mut at = 0;
    while let Some(of) = tree.get(at).copied() {
        tree.extend(processes.iter().filter(|(_, parent, _)| *parent == of).map(|(pid, ..)| *pid));
        at += 1;
    }
    processes.iter().filter(|(pid, ..)| tree.contains(pid)).map(|(.., kib)| *kib).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell, and what it starts and waits for.
    #[test]
    fn all_processes_of_a_program_count() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; (while [ $i -lt 200000 ]; do i=$((i+1)); done); sleep 0.1; true"]);
        let run = watch_tree(command).unwrap();
        assert!(run.cpu_s > 0.01 && run.wall_s >= 0.1 && run.peak_mib > 0.1, "{run:?}");
        let mut wrong = Command::new("sh");
        wrong.args(["-c", "exit 3"]);
        assert!(watch_tree(wrong).unwrap_err().contains("exit status: 3"));
    }
}
