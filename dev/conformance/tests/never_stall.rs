//! The proof, counted: whatever the file, no step does more than it may, what is held has a bound, and a small stack is enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, ErrorKind, Machine, Object, Priority, Release, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::adversarial::{self, Adversary, Expected, Scale, ValueOf};
use marquetry_conformance::canonical::with_bytes;
use marquetry_io::ByteSource;
use marquetry_parquet::batch::{Layout, Values};
use marquetry_parquet::read::{BatchReader, FooterReader, PageIndexReader, ReadOptions};
use marquetry_testing::counting::{self, Counting};

#[global_allocator]
static MEMORY: Counting = Counting;

/// What is allocated is counted for the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const FILE: Object = Object(0);

/// Seastar's threads have a stack of 128 KiB.
const STACK_BYTES: usize = 128 << 10;

/// Units that a step may charge beyond its budget, for the slice that it was in the middle of: a block of ZSTD, which is atomic, or
/// 8,192 strings put together of two parts.
const SLICE_UNITS_MAX: u64 = 75_000;

/// Bytes that are held at most, beside what a file says of itself ([`Adversary::held_bytes`]): windows, batches, read-ahead.
const HELD_BYTES_MAX: u64 = 64 << 20;

/// One value is in one piece, as its view demands: while it is put together of what it came in, an eighth of it is there twice.
const VALUE_PART_TWICE: u64 = 8;

/// Bytes that a step asks for in one piece at most, but for what is [in one piece](adversarial::in_one_piece) by need: allocators of
/// hosts that never wait dislike more.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// Bytes that the host supplies at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Units that are charged at least for a KiB of numbers and byte strings of one width in batches: no memory is written faster. It finds
/// values that are paid by their number alone.
const UNITS_A_KIB_MIN: u64 = 64;

/// What the steps took.
#[derive(Debug, Clone, Default)]
struct Steps {
    count: u64,
    units_max: u64,
    /// Units of all steps, and bytes of numbers and byte strings of one width in the batches.
    units: u64,
    copied_bytes: u64,
    /// Bytes that the reader of batches still has when it is done.
    kept_bytes: u64,
    /// The most bytes that were held at once, and those of the largest piece that a step asked for.
    held_bytes: u64,
    piece_bytes: u64,
    /// Of each step, if they are timed: its machine, its units, and its CPU time.
    timed: Option<Vec<(&'static str, u64, Duration)>>,
}

impl Steps {
    fn step<M: Machine>(&mut self, what: &'static str, machine: &mut M) -> Result<Step<M::Product>> {
        let mut budget = Budget::default();
        let start = thread_time();
        let step = counting::watch(|| machine.step(&mut budget));
        if let Some(timed) = &mut self.timed {
            timed.push((what, budget.spent(), thread_time().saturating_sub(start)));
        }
        self.count += 1;
        self.units_max = self.units_max.max(budget.spent());
        self.units += budget.spent();
        step
    }

    /// Drives a machine to its end.
    fn drive<M: Machine>(
        &mut self,
        what: &'static str,
        machine: &mut M,
        file: &Adversary,
        mut take: impl FnMut(M::Product),
    ) -> Result<()> {
        loop {
            match self.step(what, machine)? {
                Step::Ready(product) => take(product),
                Step::Yield => {}
                Step::Done => return Ok(()),
                Step::Append(..) => panic!("a reader that writes"),
                Step::Need(demand) => {
                    for want in demand.wants {
                        match want {
                            Want::Length(object) => machine.supply_length(object, file.length()?)?,
                            Want::Range(object, range, Priority::Now) => {
                                let mut at = range.start;
                                while at < range.end {
                                    let end = range.end.min(at + PIECE_BYTES);
                                    machine.supply(object, at..end, file.read(at..end)?)?;
                                    at = end;
                                }
                            }
                            Want::Range(..) => {}
                        }
                    }
                }
            }
        }
    }
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Reads all there is, and compares each value. Rows, or the error.
fn read(file: &Adversary, steps: &mut Steps) -> Result<u64> {
    let mut metadata = None;
    let mut footer = FooterReader::new(FILE, file.limits);
    steps.drive("footer", &mut footer, file, |found| metadata = Some(found))?;
    let metadata = metadata.ok_or_else(|| Error::internal("a footer without metadata"))?;
    drop(footer);
    let value = match file.expected {
        Expected::Rows(_, value) => value,
        Expected::Error(..) => None,
    };
    let options = ReadOptions {
        limits: file.limits,
        layout: if file.has_slots { Layout::Spaced } else { Layout::Dense },
        verify_utf8: true,
        ..ReadOptions::default()
    };
    let mut index = PageIndexReader::new(FILE, Arc::clone(&metadata), &options)?;
    steps.drive("index", &mut index, file, drop)?;
    drop(index);
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options)?;
    let (mut rows, mut values, mut copied) = (0, 0, 0);
    let mut expected = Vec::new();
    let before = counting::held();
    steps.units = 0;
    steps.drive("batches", &mut reader, file, |batch| {
        rows += u64_of(batch.rows);
        copied += batch.columns.iter().map(|column| u64_of(copied_bytes(&column.values))).sum::<u64>();
        let (Some(value), [column]) = (value, &batch.columns[..]) else { return };
        for index in 0..column.values.len() {
            expected.clear();
            value(values, &mut expected);
            with_bytes(&column.values, index, |found| {
                let is_right = found == expected
                    || expected == b"x" && !found.is_empty() && found.iter().all(|byte| *byte == b'x');
                assert!(is_right, "{}: value {values}", file.name);
            });
            values += 1;
        }
    })?;
    steps.kept_bytes = counting::held().saturating_sub(before);
    steps.copied_bytes = copied;
    Ok(rows)
}

/// Bytes of values that a reader writes each by itself.
fn copied_bytes(values: &Values) -> usize {
    match values {
        Values::Int32(values) => values.len() * 4,
        Values::Float(values) => values.len() * 4,
        Values::Int64(values) => values.len() * 8,
        Values::Double(values) => values.len() * 8,
        Values::FixedLenByteArray(values) | Values::Int96(values) => values.len() * values.width(),
        _ => 0,
    }
}

/// What came of a file: its steps; or what is wrong with it.
fn examine(file: &Adversary, is_timed: bool) -> Result<Steps, String> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    counting::start();
    let of_thread = file.clone();
    let reading = thread.spawn(move || {
        let mut steps = Steps { timed: is_timed.then(Vec::new), ..Steps::default() };
        let rows = read(&of_thread, &mut steps);
        (rows, steps)
    });
    let (rows, mut steps) = reading.unwrap().join().map_err(|_| format!("{} is read wrong", file.name))?;
    (steps.held_bytes, steps.piece_bytes) = (counting::peak(), counting::largest());
    match (file.expected, rows) {
        (Expected::Rows(expected, _), Ok(rows)) if rows == expected => Ok(steps),
        (Expected::Error(kind, part), Err(error))
            if error.kind() == kind && error.message().contains(part) =>
        {
            Ok(steps)
        }
        (expected, found) => Err(format!("{}: {found:?}, and not {expected:?}", file.name)),
    }
}

/// What a coarse measure of work says of a step that its units do not: of so many replays the shortest, and in the list if it is longer
/// than this, and than its units by this factor. Not asserted: the machine has other things to do. It finds loops that charge nothing.
const REPLAYS: usize = 3;
const LONG: Duration = Duration::from_micros(400);
const NANOS_PER_UNIT: u64 = 3;

/// Lists the steps of a file that cost more than they charge. They are read anew: a list of millions of steps is memory, too.
fn list_debts(file: &Adversary) {
    let expected = match file.expected {
        // Every value was compared already.
        Expected::Rows(rows, _) => Expected::Rows(rows, None),
        error => error,
    };
    let file = &Adversary { expected, ..file.clone() };
    let Ok(Steps { timed: Some(mut steps), .. }) = examine(file, true) else { return };
    for _ in 1..REPLAYS {
        let Ok(again) = examine(file, true) else { return };
        for (step, again) in steps.iter_mut().zip(again.timed.into_iter().flatten()) {
            step.2 = step.2.min(again.2);
        }
    }
    let mut long: Vec<_> = (0..).zip(&steps).map(|(number, step)| (step.2, step.1, step.0, number)).collect();
    long.sort_unstable();
    let total: Duration = steps.iter().map(|step| step.2).sum();
    let units: u64 = steps.iter().map(|step| step.1).sum();
    println!("{}: {} steps, {units} units, {total:?}; longest {:?}", file.name, steps.len(), long.last());
    let debts = long.iter().rev().filter(|(took, units, ..)| {
        *took > LONG || *took > LONG / 4 && *took > Duration::from_nanos(units * NANOS_PER_UNIT)
    });
    debts.take(3).for_each(|(took, units, what, number)| {
        println!("    step {number} of {what}: {took:?}, {units} units")
    });
}

/// Steps are timed in a process where freed memory goes back to the system piece by piece (mallopt(3), `M_MMAP_THRESHOLD`). Otherwise
/// glibc keeps the pieces that a host of several threads supplied in heaps of 64 MiB, and gives many of them back at once, some day: that
/// is no step's work. False in the process that only starts the other.
fn is_fresh(test: &str) -> bool {
    const FRESH_MEMORY: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "131072");
    if std::env::var(FRESH_MEMORY.0).is_ok_and(|set| set == FRESH_MEMORY.1) {
        return true;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args([test, "--exact", "--ignored", "--nocapture"]).env(FRESH_MEMORY.0, FRESH_MEMORY.1);
    assert!(again.status().unwrap().success(), "{test}");
    false
}

/// Reads all files of some names; says the largest step of each family. `MARQUETRY_ADVERSARIES` leaves those whose names have one
/// of its words.
fn prove(scale: &Scale, is_timed: bool, is_meant: fn(&str) -> bool) {
    let mut wrong = Vec::new();
    let mut largest: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut excused: BTreeMap<&str, bool> = BTreeMap::new();
    let words = std::env::var("MARQUETRY_ADVERSARIES").unwrap_or_default();
    let is_wanted = |name: &str| words.is_empty() || words.split_whitespace().any(|word| name.contains(word));
    for name in adversarial::names().into_iter().filter(|name| is_meant(name) && is_wanted(name)) {
        let start = Instant::now();
        let file = adversarial::make(&name, scale).expect("a file of a name that there is");
        let steps = match examine(&file, false) {
            Ok(found) => found,
            Err(why) => {
                wrong.push(why);
                continue;
            }
        };
        let family = name.rsplit_once('/').map_or(&name[..], |(family, _)| family).to_owned();
        let entry = largest.entry(family).or_default();
        *entry = entry.clone().max((steps.units_max, name.clone()));
        let units = Budget::DEFAULT_UNITS + SLICE_UNITS_MAX;
        if steps.units_max > units {
            wrong.push(format!("{name}: a step of {} units", steps.units_max));
        }
        if steps.units < steps.copied_bytes * UNITS_A_KIB_MIN / 1024 {
            wrong.push(format!("{name}: {} bytes are copied for {} units", steps.copied_bytes, steps.units));
        }
        let value = if name.starts_with("string/") {
            scale.string_bytes + scale.string_bytes / VALUE_PART_TWICE
        } else {
            0
        };
        let allowed = HELD_BYTES_MAX + file.held_bytes + value;
        if steps.held_bytes > allowed {
            wrong.push(format!("{name}: {} bytes held, {allowed} allowed", steps.held_bytes));
        }
        let is_large = steps.piece_bytes > PIECE_BYTES_MAX;
        match adversarial::in_one_piece(&name) {
            Some(what) => *excused.entry(what).or_default() |= is_large,
            None if is_large => wrong.push(format!("{name}: {} bytes in one piece", steps.piece_bytes)),
            None => {}
        }
        if is_timed {
            let Steps { held_bytes, piece_bytes, .. } = steps;
            let bytes = file.file.len();
            println!("{name}: {held_bytes} bytes held of {bytes} in the file, {piece_bytes} in one piece");
            list_debts(&file);
            println!("    {:.1?} in all", start.elapsed());
        }
    }
    println!("the largest steps, in units: {largest:#?}");
    let idle = excused.iter().filter(|(_, is_used)| !**is_used);
    wrong.extend(idle.map(|(what, _)| format!("nothing is in one piece any more that is excused: {what}")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_adversarial_set_at_a_small_scale() {
    let _alone = alone();
    prove(&Scale::SMALL, false, |_| true);
}

#[test]
#[ignore = "soak: 1 GiB pages of every codec and encoding"]
fn pages_at_full_scale() {
    let _alone = alone();
    if is_fresh("pages_at_full_scale") {
        prove(&Scale::FULL, true, |name| name.starts_with("page/"));
    }
}

#[test]
#[ignore = "soak: 200 MB dictionaries, 500 MB strings, 100,000 columns, ten million pages, a million row groups"]
fn all_but_pages_at_full_scale() {
    let _alone = alone();
    if is_fresh("all_but_pages_at_full_scale") {
        prove(&Scale::FULL, true, |name| !name.starts_with("page/"));
    }
}

#[test]
#[ignore = "soak: the small scale, timed, to list the steps that cost more than they charge"]
fn all_at_a_small_scale_timed() {
    let _alone = alone();
    if is_fresh("all_at_a_small_scale_timed") {
        prove(&Scale::SMALL, true, |_| true);
    }
}

/// What a reader held is released in its steps, not when it is dropped: pages, dictionaries, columns.
#[test]
fn a_reader_that_is_done_holds_little() {
    let _alone = alone();
    for name in [
        "page/uncompressed/delta_strings",
        "page/snappy/byte_stream_split",
        "dictionary/strings",
        "dictionary/int64",
    ] {
        let file = adversarial::make(name, &Scale::SMALL).unwrap();
        let Steps { held_bytes, kept_bytes, .. } = examine(&file, false).unwrap();
        assert!(held_bytes > 1 << 20 && kept_bytes < 768 << 10, "{name}: {kept_bytes} of {held_bytes} bytes");
    }
}

#[test]
fn metadata_is_released_in_steps() {
    let _alone = alone();
    let file = adversarial::make("footer/columns", &Scale::SMALL).unwrap();
    counting::start();
    let mut found = None;
    let mut footer = FooterReader::new(FILE, file.limits);
    Steps::default().drive("footer", &mut footer, &file, |metadata| found = Some(metadata)).unwrap();
    drop(footer);
    let mut metadata = found.and_then(Arc::into_inner).unwrap();
    let held = counting::held();
    for calls in 1.. {
        let mut budget = Budget::default();
        let is_gone = metadata.release(&mut budget);
        assert!(budget.spent() <= Budget::DEFAULT_UNITS);
        if is_gone {
            assert!(calls > 10, "{calls} calls");
            break;
        }
    }
    let left = counting::held();
    assert!(held > 1 << 20 && left < held / 100, "{left} of {held} bytes");
}

/// What is not as it should be is found: the proof can fail.
#[test]
fn what_is_wrong_is_found() {
    let _alone = alone();
    let wrong = |name: &str, expected: fn(Expected) -> Expected| {
        let file = adversarial::make(name, &Scale::SMALL).unwrap();
        examine(&Adversary { expected: expected(file.expected), ..file }, false).unwrap_err()
    };
    let rows = wrong("footer/row_groups", |_| Expected::Rows(1, None));
    assert_eq!(rows, "footer/row_groups: Ok(0), and not Rows(1, None)");
    let value = wrong("page/zstd/plain_int64", |expected| match expected {
        Expected::Rows(rows, _) => {
            let other: ValueOf = |row, out| out.extend((row % 1024).to_le_bytes());
            Expected::Rows(rows, Some(other))
        }
        error => error,
    });
    assert_eq!(value, "page/zstd/plain_int64 is read wrong");
    let error = wrong("footer/too_deep", |_| Expected::Error(ErrorKind::Corrupt, ""));
    assert!(error.contains("nesting"), "{error}");
}
