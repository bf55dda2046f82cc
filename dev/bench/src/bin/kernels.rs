//! Times every kernel at every level of instructions, beside a copy of as many bytes: `bench-kernels --out DIR [WORDS]`. See `README.md`.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use marquetry_bench::kernels::{Case, Work, cases};
use marquetry_bench::report::{Better, COPY, Report, Row};
use marquetry_bench::{clock, level, stats};
use marquetry_kernels::cpu::{Level, hold_to, levels};
use serde_json::json;

const USAGE: &str = "usage: bench-kernels --out DIR [WORDS of a kernel's name and its input]";

/// The medians are of so many.
const ROUNDS: usize = 9;

/// In a round a kernel is called until so much time has passed: thousands of times the clock's own.
const PASS: Duration = Duration::from_micros(300);

/// Steps of the chain that a cycle is measured by.
const CHAIN_STEPS: u64 = 1 << 14;

/// What the buffers of a kernel take beyond the caches, at the least and at the most.
const FAR_BYTES: [usize; 2] = [64 << 20, 192 << 20];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [flag, out, words @ ..] if flag == "--out" => run(&PathBuf::from(out), words),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-kernels: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(out: &Path, words: &[String]) -> Result<(), String> {
    let wanted = level::wanted()?;
    let levels: Vec<Level> = levels().filter(|&known| wanted.contains(&level::name(known))).collect();
    let most = *levels.last().ok_or("no level of instructions")?;
    let places = places();
    clock::pin(0)?;
    let begin = (Instant::now(), clock::cpu_time());
    let mut copies = Copies::new(places.iter().map(|place| place.bytes).max().unwrap_or_default());
    let mut found = Vec::new();
    for case in cases() {
        let name = case.name();
        if !words.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let levels = if case.by_level { &levels[..] } else { &[most] };
        let mut measured = Vec::new();
        for place in &places {
            measured.push(measure(&case, place.bytes, levels, &mut copies)?);
        }
        let told: Vec<String> = measured[0].levels.iter().map(|speed| format!("{speed:.1}")).collect();
        eprintln!("{name}: {} bytes a cycle; a copy {:.1}", told.join(", "), measured[0].copy);
        found.push(Found { case, levels: levels.to_vec(), measured });
    }
    if found.is_empty() {
        return Err("no kernel's name has all of those words".to_owned());
    }
    let (wall, cpu) = (begin.0.elapsed(), clock::cpu_time().saturating_sub(begin.1));
    let busy = wall.as_secs_f64() / cpu.as_secs_f64() - 1.0;
    let report = report(&found, &places, busy);
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let put = |name: &str, text: &str| {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    put("kernels.md", &markdown(&report, &found, &levels, &places))?;
    put("kernels.json", &format!("{:#}\n", report.json()))
}

/// Where a kernel's buffers are.
struct Place {
    name: &'static str,
    bytes: usize,
}

/// Half of the first and of the second level, and twice the last: as far as the system says how large they are.
fn places() -> [Place; 3] {
    let far = cache_bytes(3).unwrap_or_default().saturating_mul(2);
    [
        Place { name: "L1", bytes: cache_bytes(1).unwrap_or(32 << 10) / 2 },
        Place { name: "L2", bytes: cache_bytes(2).unwrap_or(512 << 10) / 2 },
        Place { name: "memory", bytes: far.clamp(FAR_BYTES[0], FAR_BYTES[1]) },
    ]
}

/// A cache of data, as Linux tells of the first processor's.
fn cache_bytes(level: u32) -> Option<usize> {
    (0..9).find_map(|index| {
        let of = |what: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}");
            std::fs::read_to_string(path).ok()
        };
        let is_it = of("level")?.trim().parse() == Ok(level) && of("type")?.trim() != "Instruction";
        let size = of("size")?;
        let kib: usize = size.trim().strip_suffix('K')?.parse().ok()?;
        is_it.then_some(kib << 10)
    })
}

/// A case with its speeds in each place.
struct Found {
    case: Case,
    levels: Vec<Level>,
    measured: Vec<Measured>,
}

/// Speeds in bytes a cycle, those read and those written together.
struct Measured {
    values_by_byte: f64,
    levels: Vec<f64>,
    copy: f64,
}

fn measure(case: &Case, bytes: usize, levels: &[Level], copies: &mut Copies) -> Result<Measured, String> {
    let mut work = case.make(bytes);
    let (read, written) = (work.read, work.written);
    let fail = || format!("{}: the kernel failed", case.name());
    let mut calls = Vec::new();
    for &level in levels {
        hold_to(level);
        calls.push(calls_of(|| work.call()).ok_or_else(fail)?);
    }
    let copy_calls = calls_of(|| copies.call(read, written)).ok_or_else(fail)?;
    let (mut cycles, mut copy_cycles) = (vec![Vec::new(); levels.len()], Vec::new());
    for _ in 0..ROUNDS {
        let cycle = cycle_ns();
        for (at, &level) in levels.iter().enumerate() {
            hold_to(level);
            cycles[at].push(time(calls[at], || work.call()) / cycle);
        }
        copy_cycles.push(time(copy_calls, || copies.call(read, written)) / cycle);
    }
    let moved = (read + written) as f64;
    let Work { values, .. } = work;
    Ok(Measured {
        values_by_byte: values as f64 / moved,
        levels: cycles.iter().map(|cycles| moved / stats::median(cycles)).collect(),
        copy: moved / stats::median(&copy_cycles),
    })
}

/// How many calls fill a pass; nothing if one fails. The first one also makes the memory there.
fn calls_of(mut call: impl FnMut() -> bool) -> Option<u32> {
    if !call() {
        return None;
    }
    let mut calls = 1;
    loop {
        let begin = clock::thread_time();
        if !(0..calls).all(|_| call()) {
            return None;
        }
        if clock::thread_time().saturating_sub(begin) * 2 > PASS || calls > 1 << 20 {
            return Some(calls);
        }
        calls *= 2;
    }
}

/// Nanoseconds of the thread's CPU time that a call takes.
fn time(calls: u32, mut call: impl FnMut() -> bool) -> f64 {
    let begin = clock::thread_time();
    for _ in 0..calls {
        black_box(call());
    }
    clock::thread_time().saturating_sub(begin).as_secs_f64() * 1e9 / f64::from(calls)
}

/// The nanoseconds of a cycle: of additions and rotations that each wait for the one before, and take a cycle each on every
/// processor that these kernels have a level for.
fn cycle_ns() -> f64 {
    let addend = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut value = black_box(1_u64);
    let begin = clock::thread_time();
    for _ in 0..CHAIN_STEPS {
        for _ in 0..4 {
            value = value.wrapping_add(addend).rotate_left(5);
        }
    }
    let taken = clock::thread_time().saturating_sub(begin);
    black_box(value);
    taken.as_secs_f64() * 1e9 / (CHAIN_STEPS * 8) as f64
}

/// What a kernel is compared with, which reads and writes as many bytes: those that it can copy are copied, those that it writes beyond
/// these are filled, and those that it reads beyond are compared, half of them with the others.
struct Copies {
    from: Vec<u8>,
    to: Vec<u8>,
    equal: [Vec<u8>; 2],
}

impl Copies {
    fn new(bytes: usize) -> Copies {
        Copies { from: vec![1; bytes], to: vec![2; bytes], equal: [vec![3; bytes], vec![3; bytes]] }
    }

    fn call(&mut self, read: usize, written: usize) -> bool {
        let written = written.min(self.to.len());
        let copied = read.min(written);
        let half = ((read - copied) / 2).min(self.equal[0].len());
        let (to, filled) = self.to[..written].split_at_mut(copied);
        to.copy_from_slice(black_box(&self.from[..copied]));
        filled.fill(black_box(4));
        black_box(&mut self.to);
        let [one, other] = &self.equal;
        black_box(&one[..half]) == black_box(&other[..half])
    }
}

fn report(found: &[Found], places: &[Place], busy: f64) -> Report {
    let mut rows = Vec::new();
    for Found { case, levels, measured } in found {
        for (place, measured) in places.iter().zip(measured) {
            for (&level, &speed) in levels.iter().zip(&measured.levels) {
                let bound = case.bound_at(level);
                let level = if case.by_level { level::name(level) } else { "every level" };
                rows.push(Row {
                    group: format!("{level}, {}", place.name),
                    case: case.name(),
                    unit: "bytes a cycle",
                    better: Better::Higher,
                    ours: Some(speed),
                    peers: vec![(COPY.to_owned(), measured.copy)],
                    bar: f64::NAN,
                    ratio: None,
                    more: json!({ "values_a_cycle": speed * measured.values_by_byte, "bound": bound }),
                });
            }
        }
    }
    let sizes: Vec<String> =
        places.iter().map(|place| format!("{} {} KiB", place.name, place.bytes >> 10)).collect();
    Report {
        name: "kernels".to_owned(),
        title: "The kernels, and what bounds them".to_owned(),
        notes: vec![
            format!(
                "Bytes a cycle, those that a kernel reads and those that it writes together; medians of {ROUNDS} rounds, in which levels took turns. \
                 Input and output take half of the first-level cache, half of the second, or much more than all caches ({}).",
                sizes.join(", ")
            ),
            "*By a copy* is that speed by the speed of what reads and writes as many bytes and does nothing else, in the same round: `copy_from_slice` of as \
             many as the kernel reads and writes, `fill` of what it writes beyond those, and `==` over what it reads beyond. 1.00 is as fast as the C library \
             does that, which is a yardstick, not a limit. Where the number is less, the last column says what takes the time in the first-level cache, of \
             the form by vectors if there is one, whichever level it is of; beyond the caches memory does, for the copy too."
                .to_owned(),
            "A cycle is an eighth of a turn of eight additions and rotations that wait for one another, timed in each round: where instructions of 512 bits make a \
             processor slower, those cycles are not counted as longer. Time is the thread's CPU time."
                .to_owned(),
            format!(
                "{}, on {}; beside this process the machine was busy {:.0} % of the time.",
                clock::processor(),
                clock::today(),
                busy * 100.0
            ),
        ],
        setting: json!({
            "processor": clock::processor(),
            "rounds": ROUNDS,
            "bytes": places.iter().map(|place| (place.name.to_owned(), json!(place.bytes))).collect::<serde_json::Map<_, _>>(),
            "busy_part": busy,
        }),
        rows,
    }
}

/// A table for each level, the most first, and one of the kernels that have one form: a line a kernel.
fn markdown(report: &Report, found: &[Found], levels: &[Level], places: &[Place]) -> String {
    let mut text = format!("# {}\n\n", report.title);
    for note in &report.notes {
        let _ = writeln!(text, "{note}\n");
    }
    for &level in levels.iter().rev() {
        let lines: Vec<String> =
            found.iter().filter(|found| found.case.by_level).filter_map(|found| line(found, level)).collect();
        text += &table(level::name(level), &lines, places);
    }
    let lines: Vec<String> = found
        .iter()
        .filter(|found| !found.case.by_level)
        .filter_map(|found| line(found, *found.levels.first()?))
        .collect();
    text + &table("Of one form, at every level", &lines, places)
}

fn table(title: &str, lines: &[String], places: &[Place]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("## {title}\n\n| kernel | input | values a cycle, {} |", places[0].name);
    for what in ["bytes a cycle", "by a copy"] {
        for place in places {
            let _ = write!(text, " {what}, {} |", place.name);
        }
    }
    text += " bound by |\n|---|---|--:|";
    text += &"--:|".repeat(2 * places.len());
    text += "---|\n";
    lines.iter().for_each(|line| text += line);
    text + "\n"
}

fn line(found: &Found, level: Level) -> Option<String> {
    let at = found.levels.iter().position(|known| *known == level)?;
    let Found { case, measured, .. } = found;
    let first = measured.first()?;
    let mut text =
        format!("| `{}` | {} | {:.2} |", case.kernel, case.shape, first.levels[at] * first.values_by_byte);
    for measured in measured {
        let _ = write!(text, " {:.1} |", measured.levels[at]);
    }
    for measured in measured {
        let _ = write!(text, " {:.2} |", measured.levels[at] / measured.copy);
    }
    Some(format!("{text} {} |\n", case.bound_at(level)))
}
