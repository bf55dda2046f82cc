//! What the plugin costs a server under load, and how soon a flush is a file.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::plugin::{CREATE_INDEX, Node};

/// Writes a second, the same in all runs: the server's time of processors is then comparable.
const RATE: u32 = 400;
/// How often the server flushes.
const FLUSH_MS: u32 = 2_000;

struct Run {
    p99: Duration,
    /// The server's own time, without its children's.
    cpu: Duration,
}

/// A number of the environment, for shorter runs: the bars are for what is given here.
fn setting(name: &str, otherwise: u32) -> u32 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// Time that processors worked for a process, by `/proc` (in hundredths of a second).
fn cpu_of(pid: &str) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

fn load(node: &Node, seconds: u32, next: &Arc<AtomicU32>) -> Run {
    let session = node.session.as_ref().expect("it runs");
    let before = cpu_of(&node.pid());
    let mut latencies = node.runtime.block_on(async {
        let insert = session.prepare("INSERT INTO k.t (p, c, v, l) VALUES (?, ?, ?, ?)").await.unwrap();
        let mut latencies = Vec::new();
        let mut due = tokio::time::interval(Duration::from_secs(1) / RATE);
        for _ in 0..seconds * RATE {
            due.tick().await;
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (p, c) = (i32::try_from(number / 100).unwrap(), i32::try_from(number % 100).unwrap());
            let started = Instant::now();
            session.execute_unpaged(&insert, (p, c, "a value".repeat(10), vec![p, c])).await.unwrap();
            latencies.push(started.elapsed());
        }
        latencies
    });
    let cpu = cpu_of(&node.pid()) - before;
    latencies.sort();
    Run { p99: latencies[latencies.len() * 99 / 100], cpu }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

/// When each file appeared, after its SSTable was complete.
fn delays(tables: &Path, lake: &Path) -> Vec<Duration> {
    let changed = |path: &Path| -> SystemTime { fs::metadata(path).unwrap().modified().unwrap() };
    let files = fs::read_dir(lake).unwrap().map(|file| file.unwrap().path());
    let delay = |file: std::path::PathBuf| {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let (stem, _) = name.rsplit_once('-').unwrap();
        let complete = changed(&tables.join(format!("{stem}-TOC.txt")));
        changed(&file).duration_since(complete).unwrap_or_default()
    };
    let mut all: Vec<Duration> = files.map(delay).collect();
    all.sort();
    all
}

/// `MARQUETRY_PLUGIN_PAIRS` and `MARQUETRY_PLUGIN_SECONDS` shorten it.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "soak: ten alternated pairs of runs with the plugin on and off"]
fn the_plugin_costs_the_server_little() {
    let Some(node) = Node::new() else { return };
    node.install();
    node.run(&format!("ALTER TABLE k.t WITH memtable_flush_period_in_ms = {FLUSH_MS}"));
    let pairs = setting("MARQUETRY_PLUGIN_PAIRS", 10);
    let seconds = setting("MARQUETRY_PLUGIN_SECONDS", 30);
    let next = Arc::new(AtomicU32::new(0));
    load(&node, seconds, &next); // The server's code is compiled while it runs.
    let (mut p99, mut cpu) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let mut runs = [None, None];
        for turn in 0..2 {
            let is_on = (pair + turn) % 2 == 1;
            if is_on {
                node.run(CREATE_INDEX);
            }
            let run = load(&node, seconds, &next);
            println!(
                "{pair} {}: p99 {:?}, {:?} of processors",
                if is_on { "on" } else { "off" },
                run.p99,
                run.cpu
            );
            runs[usize::from(!is_on)] = Some(run);
            if is_on {
                node.run("DROP INDEX k.parquet");
            }
        }
        let [Some(on), Some(off)] = runs else { unreachable!() };
        p99.push(on.p99.as_secs_f64() / off.p99.as_secs_f64());
        cpu.push(on.cpu.as_secs_f64() / off.cpu.as_secs_f64());
    }
    let keyspace = node.lake().join("k");
    let place = fs::read_dir(&keyspace).unwrap().next().unwrap().unwrap().path();
    let delays = delays(&node.table(), &place);
    let (p99, cpu) = (median(p99), median(cpu));
    let late = delays.iter().filter(|delay| **delay > Duration::from_secs(1)).count();
    println!(
        "p99 {p99:.3} times, processors {cpu:.3} times; {} flushes, {late} later than a second, at most {:?}",
        delays.len(),
        delays.last()
    );
    assert!(delays.len() >= usize::try_from(pairs * seconds * 1_000 / FLUSH_MS / 2).unwrap());
    assert!(p99 <= 1.25, "the clients' p99 is {p99:.3} times that without the plugin");
    assert!(cpu <= 1.05, "the server works {cpu:.3} times as much");
    assert!(late * 20 <= delays.len(), "{late} of {} flushes were no files after a second", delays.len());
}
