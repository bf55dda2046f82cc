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
/// The bars: with the plugin to without it.
const P99_MOST: f64 = 1.25;
const CPU_MOST: f64 = 1.05;

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

/// What a run of the whole test found.
struct Found {
    pairs: u32,
    seconds: u32,
    /// With the plugin to without it, of each pair: the clients' p99, and the server's time of processors.
    p99: Vec<f64>,
    cpu: Vec<f64>,
    /// The runs: without it, and with it.
    runs: Vec<[Run; 2]>,
    delays: Vec<Duration>,
    late: usize,
}

impl Found {
    /// `target/bench/plugin.json` for machines, `plugin.md` for people.
    fn write(&self) {
        let folder = marquetry_testing::root().join("target/bench");
        fs::create_dir_all(&folder).unwrap();
        let spread = |values: &[f64]| {
            let (least, most) = values
                .iter()
                .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(*value), most.max(*value)));
            (median(values.to_vec()), least, most)
        };
        let of = |number: usize, value: fn(&Run) -> f64| {
            median(self.runs.iter().map(|runs| value(&runs[number])).collect())
        };
        let p99_ms = |run: &Run| run.p99.as_secs_f64() * 1e3;
        let cpu_s = |run: &Run| run.cpu.as_secs_f64();
        let at = |percent: usize| {
            let place = (self.delays.len() * percent / 100).min(self.delays.len() - 1);
            self.delays[place].as_secs_f64() * 1e3
        };
        let holds = |holds: bool| if holds { "yes" } else { "**no**" };
        let ((p99, p99_least, p99_most), (cpu, cpu_least, cpu_most)) = (spread(&self.p99), spread(&self.cpu));
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("", |it| it.1);
        let threads = std::thread::available_parallelism().map_or(0, std::num::NonZeroUsize::get);
        let profile = if cfg!(debug_assertions) { "development" } else { "release" };
        let text = format!(
            "# What the plugin costs a server\n\n\
             {} pairs of runs of {} s, by turns with the [plugin](../../contrib/cassandra/README.md) and without it: {RATE} inserts a second by one client, a flush every \
             {} s, on one Cassandra 5.0 that has the converter beside it on the same {threads} processors. The server's time of processors is its own process's, without \
             the converter's. Ratios are medians over the pairs, with the least and the greatest. The command is of the {profile} profile. `make bench-plugin`. {processor}.\n\n\
             | | without | with | ratio | bar | holds |\n|---|--:|--:|--:|--:|:-:|\n\
             | the clients' p99, ms | {:.2} | {:.2} | {p99:.3} ({p99_least:.3}–{p99_most:.3}) | 1.25 | {} |\n\
             | the server's processors, s | {:.2} | {:.2} | {cpu:.3} ({cpu_least:.3}–{cpu_most:.3}) | 1.05 | {} |\n\n\
             | {} flushes, from complete to a Parquet file | ms |\n|---|--:|\n| median | {:.0} |\n| 99 of 100 | {:.0} |\n| longest | {:.0} |\n| later than a second | {} of them |\n",
            self.pairs,
            self.seconds,
            FLUSH_MS / 1000,
            of(0, p99_ms),
            of(1, p99_ms),
            holds(p99 <= P99_MOST),
            of(0, cpu_s),
            of(1, cpu_s),
            holds(cpu <= CPU_MOST),
            self.delays.len(),
            at(50),
            at(99),
            at(100),
            self.late,
        );
        fs::write(folder.join("plugin.md"), text).unwrap();
        let json = serde_json::json!({
            "pairs": self.pairs, "seconds": self.seconds, "profile": profile, "processors": threads, "p99": self.p99, "cpu": self.cpu,
            "p99_ms": {"without": of(0, p99_ms), "with": of(1, p99_ms)}, "cpu_s": {"without": of(0, cpu_s), "with": of(1, cpu_s)},
            "flushes": self.delays.len(), "late": self.late, "delay_ms": {"p50": at(50), "p99": at(99), "most": at(100)},
        });
        fs::write(folder.join("plugin.json"), format!("{json:#}\n")).unwrap();
    }
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
    let (mut p99, mut cpu, mut all) = (Vec::new(), Vec::new(), Vec::new());
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
        all.push([off, on]);
    }
    let keyspace = node.lake().join("k");
    let place = fs::read_dir(&keyspace).unwrap().next().unwrap().unwrap().path();
    let delays = delays(&node.table(), &place);
    assert!(delays.len() >= usize::try_from(pairs * seconds * 1_000 / FLUSH_MS / 2).unwrap());
    let late = delays.iter().filter(|delay| **delay > Duration::from_secs(1)).count();
    let found = Found { pairs, seconds, p99, cpu, runs: all, delays, late };
    found.write();
    let Found { p99, cpu, delays, .. } = found;
    let (p99, cpu) = (median(p99), median(cpu));
    println!(
        "p99 {p99:.3} times, processors {cpu:.3} times; {} flushes, {late} later than a second, at most {:?}",
        delays.len(),
        delays.last()
    );
    assert!(p99 <= P99_MOST, "the clients' p99 is {p99:.3} times that without the plugin");
    assert!(cpu <= CPU_MOST, "the server works {cpu:.3} times as much");
    assert!(late * 20 <= delays.len(), "{late} of {} flushes were no files after a second", delays.len());
}
