//! The proof, counted: whatever the file, no step does more than it may, what is held has a bound, and a small stack is enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, ErrorKind, Machine, Object, Priority, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::adversarial::{self, Adversary, Expected, Scale, ValueOf};
use marquetry_conformance::canonical::with_bytes;
use marquetry_io::Source;
use marquetry_parquet::read::{BatchReader, FooterReader, Layout, ReadOptions};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What is allocated is counted for the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const FILE: Object = Object(0);

/// Seastar's threads have a stack of 128 KiB.
const STACK_BYTES: usize = 128 << 10;

/// Units that a step may charge beyond its budget, for the slice that it was in the middle of: 64 KiB and more of a codec, or 8,192
/// strings put together of two parts.
const SLICE_UNITS_MAX: u64 = 50_000;

/// Files with a step that does more, all the same: by how their names begin, and the bytes that are copied in it at once. A string is
/// put together at once, and a page's room is moved when it grows. To be empty.
const LONG_STEPS: &[(&str, fn(&Scale) -> u64)] =
    &[("string/delta_byte_array", |scale| 2 * scale.string_bytes), ("page/", |scale| scale.page_bytes)];
/// What a byte of them costs, by the kibibyte.
const COPY_UNITS: u64 = 150;

/// Bytes that are held at most, beside what a file says of itself ([`Adversary::held_bytes`]): windows, batches, read-ahead.
const HELD_BYTES_MAX: u64 = 64 << 20;

/// Pages that are held whole, though a window of them is enough: files whose names begin so may hold three times their page, which
/// is packed, decompressed, and moved as its room grows. To be empty.
const HELD_WHOLE: &[&str] = &["page/", "string/", "delta_byte_array/", "snappy/", "zstd/", "lz4/", "gzip/"];

/// Bytes that the host supplies at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// What the steps took.
#[derive(Debug, Clone, Default)]
struct Steps {
    count: u64,
    units_max: u64,
    /// Per kind of machine: the longest step in CPU time, its units, and when it was.
    slowest: BTreeMap<&'static str, (Duration, u64, u64)>,
    /// Steps that took more than this are remembered, by their number.
    is_timed: bool,
}

impl Steps {
    fn step<M: Machine>(&mut self, what: &'static str, machine: &mut M) -> Result<Step<M::Product>> {
        let mut budget = Budget::default();
        let start = self.is_timed.then(thread_time);
        let step = machine.step(&mut budget);
        if let Some(start) = start {
            let took = thread_time().saturating_sub(start);
            let slowest = self.slowest.entry(what).or_default();
            *slowest = (*slowest).max((took, budget.spent(), self.count));
        }
        self.count += 1;
        self.units_max = self.units_max.max(budget.spent());
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
        layout: Layout::Dense,
        verify_utf8: true,
        ..ReadOptions::default()
    };
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options)?;
    let (mut rows, mut values) = (0, 0);
    let mut expected = Vec::new();
    steps.drive("batches", &mut reader, file, |batch| {
        rows += u64_of(batch.rows);
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
    Ok(rows)
}

/// What came of a file: its steps, and the most bytes that were held; or what is wrong with it.
fn examine(file: &Adversary, is_timed: bool) -> Result<(Steps, u64), String> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let of_thread = file.clone();
    let reading = thread.spawn(move || {
        let mut steps = Steps { is_timed, ..Steps::default() };
        let rows = read(&of_thread, &mut steps);
        (rows, steps)
    });
    let (rows, steps) = reading.unwrap().join().map_err(|_| format!("{} is read wrong", file.name))?;
    let held = u64_of(MEMORY.peak_usage().saturating_sub(before));
    match (file.expected, rows) {
        (Expected::Rows(expected, _), Ok(rows)) if rows == expected => Ok((steps, held)),
        (Expected::Error(kind, part), Err(error))
            if error.kind() == kind && error.message().contains(part) =>
        {
            Ok((steps, held))
        }
        (expected, found) => Err(format!("{}: {found:?}, and not {expected:?}", file.name)),
    }
}

/// Reads all files; says the largest step of each family.
fn prove(scale: &Scale, is_timed: bool) {
    let mut wrong = Vec::new();
    let mut largest: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for name in adversarial::names() {
        let file = adversarial::make(&name, scale).expect("a file of a name that there is");
        let (steps, held) = match examine(&file, is_timed) {
            Ok(found) => found,
            Err(why) => {
                wrong.push(why);
                continue;
            }
        };
        let family = name.rsplit_once('/').map_or(&name[..], |(family, _)| family).to_owned();
        let entry = largest.entry(family).or_default();
        *entry = entry.clone().max((steps.units_max, name.clone()));
        let copied =
            LONG_STEPS.iter().find(|(start, _)| name.starts_with(start)).map_or(0, |(_, it)| it(scale));
        let units = Budget::DEFAULT_UNITS + SLICE_UNITS_MAX + copied / 1024 * COPY_UNITS;
        if steps.units_max > units {
            wrong.push(format!("{name}: a step of {} units", steps.units_max));
        }
        let whole = if HELD_WHOLE.iter().any(|start| name.starts_with(start)) {
            let page = if name.starts_with("page/") || name.contains('b') { scale.page_bytes } else { 0 };
            4 * page.max(scale.string_bytes)
        } else {
            0
        };
        let allowed = HELD_BYTES_MAX + file.held_bytes + whole;
        if held > allowed {
            wrong.push(format!("{name}: {held} bytes held, {allowed} allowed"));
        }
        if is_timed {
            println!(
                "{name}: {} steps, the largest of {} units; {held} bytes held; {:?}",
                steps.count, steps.units_max, steps.slowest
            );
        }
    }
    println!("the largest steps, in units: {largest:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_adversarial_set_at_a_small_scale() {
    let _alone = alone();
    prove(&Scale::SMALL, false);
}

#[test]
#[ignore = "soak: pages of a gibibyte, a hundred thousand columns, ten million pages"]
fn the_adversarial_set_at_full_scale() {
    let _alone = alone();
    prove(&Scale::FULL, true);
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
