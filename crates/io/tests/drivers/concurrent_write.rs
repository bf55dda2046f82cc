//! The drivers that share their thread, with machines that write: into files, and into sinks with faults.
#![cfg(all(feature = "tokio", feature = "uring"))]

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs;
use std::future::poll_fn;
use std::ops::Range;
use std::path::Path;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use compio::driver::{DriverType, ProactorBuilder};
use compio::runtime::Runtime;
use marquetry_base::{Budget, Bytes, Demand, Detail, Error, ErrorKind, Machine, Object, Result, Step};
use marquetry_io::{AsyncByteSink, ByteSink, ByteSinks, ReadAhead, blocking, drive_into, tokio, uring};

const FILE: Object = Object(0);
const SPILL: Object = Object(1);

/// Small enough for most appends to be several pieces, and for the machine to wait for room.
const SMALL: ReadAhead = ReadAhead { piece_bytes: 700, ahead_bytes: 2_000 };

fn on_tokio<T>(run: impl Future<Output = T>) -> T {
    ::tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run)
}

/// A runtime that writes by io_uring, where the system lets it, and one that writes with threads.
fn runtimes() -> Vec<Runtime> {
    let of = |driver: DriverType| {
        let mut proactor = ProactorBuilder::new();
        proactor.driver_type(driver);
        Runtime::builder().with_proactor(proactor).build()
    };
    let native =
        of(DriverType::IoUring).inspect_err(|_| marquetry_testing::skipped(marquetry_testing::Need::Uring));
    native.ok().into_iter().chain([of(DriverType::Poll).unwrap()]).collect()
}

/// Moves what it is fed out of memory, reads it back later, and writes it to its file: every third part at once.
#[derive(Debug, Default)]
struct Mover {
    parts: VecDeque<Bytes>,
    is_finished: bool,
    fed: usize,
    spilled: u64,
    fetched: u64,
    held: Vec<u8>,
    asked: Option<Range<u64>>,
    failed: Option<Error>,
}

impl Mover {
    fn feed(&mut self, part: Vec<u8>) {
        self.parts.push_back(part.into());
    }
}

impl Machine for Mover {
    type Product = ();

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<()>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if let Some(range) = &self.asked {
            let missing = range.start + self.held.len() as u64..range.end;
            if !missing.is_empty() {
                return Ok(Step::Need(Demand::now(SPILL, missing)));
            }
            self.asked = None;
            return Ok(Step::Append(FILE, std::mem::take(&mut self.held).into()));
        }
        if let Some(part) = self.parts.pop_front() {
            self.fed += 1;
            budget.charge_units(10_000);
            if self.fed.is_multiple_of(3) {
                return Ok(Step::Append(FILE, part));
            }
            self.spilled += part.len() as u64;
            return Ok(Step::Append(SPILL, part));
        }
        if self.spilled - self.fetched > 10_000 || (self.is_finished && self.fetched < self.spilled) {
            let range = self.fetched..self.spilled.min(self.fetched + 4_000);
            self.fetched = range.end;
            self.asked = Some(range);
            return Ok(Step::Yield);
        }
        Ok(if self.is_finished { Step::Done } else { Step::Ready(()) })
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        assert_eq!((object, range.end - range.start), (SPILL, bytes.len() as u64));
        let asked = self.asked.clone().expect("a supply that was asked for");
        // Pieces come in order.
        assert_eq!(range.start, asked.start + self.held.len() as u64);
        self.held.extend_from_slice(&bytes);
        Ok(())
    }

    fn supply_length(&mut self, _: Object, _: u64) -> Result<()> {
        Err(Error::misuse("no length was asked for"))
    }

    fn fail(&mut self, _: Object, _: Range<u64>, reason: Error) {
        self.failed = Some(reason.at(|place| place.column = Some("x".into())));
    }
}

/// What is fed, part by part.
fn parts() -> impl Iterator<Item = Vec<u8>> {
    let byte = |number: usize| u8::try_from(number % 251).unwrap();
    (0..60_usize).map(move |number| (0..number * 97 % 3_001).map(|at| byte(at * number)).collect())
}

/// Feeds all parts to a machine that is driven; the drivers have their own types.
macro_rules! write {
    ($writing:expr) => {
        async {
            let writing = &mut $writing;
            let mut parts = parts();
            while writing.next().await?.is_some() {
                match parts.next() {
                    Some(part) => writing.machine_mut().feed(part),
                    None => writing.machine_mut().is_finished = true,
                }
            }
            assert_eq!(writing.next().await?, None, "done stays done");
            Ok::<(), Error>(())
        }
    };
}

/// A whole file by a driver.
macro_rules! write_file {
    ($driver:ident, $path:expr, $ahead:expr) => {
        async {
            let mut file = $driver::NewFile::create($path).await?;
            let mut spill = $driver::SpillFile::create_beside($path).await?;
            let sinks = ByteSinks::new().with(FILE, &mut file as &mut $driver::Sink).with(SPILL, &mut spill);
            write!($driver::drive_into_ahead(Mover::default(), sinks, $ahead)).await?;
            assert!(!$path.exists(), "it appears when it is whole");
            file.commit().await
        }
    };
}

/// The same by the driver that waits.
fn expected(path: &Path) -> Vec<u8> {
    let mut file = blocking::NewFile::create(path).unwrap();
    let mut spill = blocking::SpillFile::create_beside(path).unwrap();
    let mut sinks = ByteSinks::new().with(FILE, &mut file as &mut dyn ByteSink).with(SPILL, &mut spill);
    let (mut mover, mut parts) = (Mover::default(), parts());
    while drive_into(&mut mover, &mut sinks).unwrap().is_some() {
        match parts.next() {
            Some(part) => mover.feed(part),
            None => mover.is_finished = true,
        }
    }
    file.commit().unwrap();
    fs::read(path).unwrap()
}

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_file_is_the_same_by_every_driver() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = expected(&folder.path().join("expected"));
    assert_eq!(bytes.len(), parts().map(|part| part.len()).sum::<usize>());
    for (number, ahead) in [SMALL, ReadAhead::default()].into_iter().enumerate() {
        let path = folder.path().join(format!("tokio{number}"));
        on_tokio(write_file!(tokio, &path, ahead)).unwrap();
        assert!(fs::read(&path).unwrap() == bytes);
        for (kind, runtime) in runtimes().into_iter().enumerate() {
            let path = folder.path().join(format!("uring{number}{kind}"));
            runtime.block_on(write_file!(uring, &path, ahead)).unwrap();
            assert!(fs::read(&path).unwrap() == bytes);
        }
    }
    // Who has the name by then keeps it, unless he is to be replaced.
    let path = folder.path().join("expected");
    let error = on_tokio(async {
        let mut file = tokio::NewFile::create(&path).await?;
        file.append(Bytes::from_static(b"other")).await?;
        file.commit().await
    });
    assert_eq!(error.unwrap_err().detail(), Some(Detail::AlreadyExists));
    assert!(fs::read(&path).unwrap() == bytes);
    on_tokio(async {
        let mut file = tokio::NewFile::create(&path).await?;
        file.append(Bytes::from_static(b"other")).await?;
        file.replace().await
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"other");
}

#[test]
fn tokio_may_move_a_writer_to_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = expected(&folder.path().join("expected"));
    let runtime = ::tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let path = folder.path().join(number.to_string());
            runtime.spawn(async move {
                write_file!(tokio, &path, SMALL).await?;
                Ok::<_, Error>(path)
            })
        })
        .collect();
    for task in tasks {
        let path = runtime.block_on(task).unwrap().unwrap();
        assert!(fs::read(path).unwrap() == bytes);
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("never");
    macro_rules! begin {
        ($driver:ident, $parts:expr) => {
            async {
                let mut file = $driver::NewFile::create(&path).await.unwrap();
                let mut spill = $driver::SpillFile::create_beside(&path).await.unwrap();
                let sinks =
                    ByteSinks::new().with(FILE, &mut file as &mut $driver::Sink).with(SPILL, &mut spill);
                let mut writing = $driver::drive_into_ahead(Mover::default(), sinks, SMALL);
                for part in parts().take($parts) {
                    writing.next().await.unwrap();
                    writing.machine_mut().feed(part);
                }
                // In the middle of an append.
                let mut polls = 3;
                let mut next = pin!(writing.next());
                poll_fn(|cx| {
                    polls -= 1;
                    match next.as_mut().poll(cx) {
                        _ if polls == 0 => Poll::Ready(()),
                        Poll::Ready(_) => Poll::Ready(()),
                        Poll::Pending => {
                            cx.waker().wake_by_ref();
                            Poll::Pending
                        }
                    }
                })
                .await;
            }
        };
    }
    for count in [0, 1, 20, 60] {
        on_tokio(begin!(tokio, count));
        for runtime in runtimes() {
            runtime.block_on(begin!(uring, count));
        }
    }
    assert_eq!(names(folder.path()), 0);
}

/// A sink in memory whose appends take their time, and one of which fails.
struct Faulty {
    bytes: Arc<std::sync::Mutex<Vec<u8>>>,
    /// The append that fails, counted from 0.
    fails: Option<usize>,
    begun: usize,
    /// Appends that were begun and have not ended.
    alive: Arc<AtomicUsize>,
}

struct Slow {
    polls: usize,
    end: Option<Box<dyn FnOnce() -> Result<()> + Send>>,
    alive: Arc<AtomicUsize>,
}

impl Future for Slow {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.polls == 0 {
            return Poll::Ready(self.end.take().expect("polled once it was ready")());
        }
        self.polls -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsyncByteSink for Faulty {
    type Append = Slow;
    type Read = std::future::Ready<Result<Bytes>>;

    fn name(&self) -> &str {
        "faulty"
    }

    fn append(&mut self, bytes: Bytes) -> Slow {
        assert_eq!(self.alive.fetch_add(1, Ordering::Relaxed), 0, "one append after the other");
        let (all, fails) = (Arc::clone(&self.bytes), self.fails == Some(self.begun));
        self.begun += 1;
        let end = move || {
            if fails {
                return Err(Error::io("the disk is full"));
            }
            all.lock().unwrap().extend_from_slice(&bytes);
            Ok(())
        };
        Slow { polls: self.begun * 7 % 5, end: Some(Box::new(end)), alive: Arc::clone(&self.alive) }
    }

    fn read(&mut self, range: Range<u64>) -> Self::Read {
        assert_eq!(self.alive.load(Ordering::Relaxed), 0, "what is read has been written");
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        std::future::ready(Ok(Bytes::copy_from_slice(&self.bytes.lock().unwrap()[range])))
    }
}

#[test]
fn a_sink_that_fails_ends_the_machine_and_leaves_no_append_behind() {
    let alive = Arc::<AtomicUsize>::default();
    let sink = |fails| Faulty { bytes: Arc::default(), fails, begun: 0, alive: Arc::clone(&alive) };
    let run = |fails| {
        let file = sink(fails);
        let spill = Faulty { alive: Arc::default(), ..sink(None) };
        let bytes = Arc::clone(&file.bytes);
        let sinks = ByteSinks::new().with(FILE, file).with(SPILL, spill);
        let mut writing = tokio::drive_into_ahead(Mover::default(), sinks, SMALL);
        let ended = on_tokio(write!(writing));
        let again = ended.is_err().then(|| on_tokio(writing.next()));
        let length = bytes.lock().unwrap().len();
        (ended, again, length)
    };
    let (ended, _, whole) = run(None);
    assert_eq!((ended, whole), (Ok(()), parts().map(|part| part.len()).sum()));
    for fails in [0, 1, 7, 40] {
        let (ended, again, written) = run(Some(fails));
        let error = ended.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "the disk is full"));
        assert_eq!(error.place().column.as_deref(), Some("x"), "the machine says what it was doing");
        assert_eq!(again, Some(Err(error)), "and stays failed");
        assert!(written < whole);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn objects_without_a_sink_and_lengths_are_misuse() {
    struct Asks(Step<()>);
    impl Machine for Asks {
        type Product = ();
        fn step(&mut self, _: &mut Budget<'_>) -> Result<Step<()>> {
            Ok(self.0.clone())
        }
        fn supply(&mut self, _: Object, _: Range<u64>, _: Bytes) -> Result<()> {
            Ok(())
        }
        fn supply_length(&mut self, _: Object, _: u64) -> Result<()> {
            Ok(())
        }
        fn fail(&mut self, _: Object, _: Range<u64>, _: Error) {}
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let cases = [
        (Step::Append(SPILL, Bytes::new()), "no sink for object 1"),
        (Step::Append(SPILL, Bytes::from_static(b"x")), "no sink for object 1"),
        (Step::Need(Demand::now(SPILL, 0..3)), "no sink for object 1"),
        (Step::Need(Demand::length(FILE)), "reads only what was written"),
    ];
    for (step, words) in cases {
        let error = on_tokio(async {
            let file = tokio::NewFile::create(&path).await?;
            let mut writing = tokio::drive_into(Asks(step.clone()), ByteSinks::new().with(FILE, file));
            writing.next().await
        });
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
    assert_eq!(names(folder.path()), 0);
}

/// Works a whole budget in each step, and appends without an end.
struct Busy {
    steps: usize,
    largest: u64,
}

impl Machine for Busy {
    type Product = ();

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<()>> {
        self.largest = self.largest.max(budget.left());
        if self.steps == 0 {
            return Ok(Step::Done);
        }
        self.steps -= 1;
        budget.charge_units(budget.left());
        Ok(Step::Append(FILE, Bytes::from_static(&[7; 100])))
    }

    fn supply(&mut self, _: Object, _: Range<u64>, _: Bytes) -> Result<()> {
        Ok(())
    }

    fn supply_length(&mut self, _: Object, _: u64) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, _: Object, _: Range<u64>, _: Error) {}
}

const BUSY_STEPS: usize = 300;

#[test]
fn others_have_their_turn_between_steps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("busy");
    let turns = Rc::new(Cell::new(0));
    let local = ::tokio::task::LocalSet::new();
    let other = Rc::clone(&turns);
    local.spawn_local(async move {
        loop {
            other.set(other.get() + 1);
            ::tokio::task::yield_now().await;
        }
    });
    on_tokio(local.run_until(async {
        let mut file = tokio::NewFile::create(&path).await.unwrap();
        let busy = Busy { steps: BUSY_STEPS, largest: 0 };
        let mut writing = tokio::drive_into(busy, ByteSinks::new().with(FILE, &mut file));
        while writing.next().await.unwrap().is_some() {}
        assert!(writing.machine().largest <= Budget::DEFAULT_UNITS);
        drop(writing);
        file.commit().await.unwrap();
    }));
    assert!(turns.get() >= BUSY_STEPS, "{} turns", turns.get());
    assert_eq!(fs::metadata(&path).unwrap().len(), 100 * BUSY_STEPS as u64);
    for runtime in runtimes() {
        let turns = Rc::new(Cell::new(0));
        let path = folder.path().join(format!("busy{:?}", runtime.driver_type()));
        runtime.block_on(async {
            let other = Rc::clone(&turns);
            let other = compio::runtime::spawn(async move {
                loop {
                    other.set(other.get() + 1);
                    ::tokio::task::yield_now().await;
                }
            });
            let mut file = uring::NewFile::create(&path).await.unwrap();
            let busy = Busy { steps: BUSY_STEPS, largest: 0 };
            let mut writing = uring::drive_into(busy, ByteSinks::new().with(FILE, &mut file));
            while writing.next().await.unwrap().is_some() {}
            drop(writing);
            file.commit().await.unwrap();
            drop(other);
        });
        assert!(turns.get() >= BUSY_STEPS, "{} turns", turns.get());
        assert_eq!(fs::metadata(&path).unwrap().len(), 100 * BUSY_STEPS as u64);
    }
}

#[test]
fn outside_of_a_runtime_nothing_begins() {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    match pin!(tokio::NewFile::create("nobody")).poll(&mut cx) {
        Poll::Ready(Err(error)) => assert_eq!(error.kind(), ErrorKind::Misuse),
        other => panic!("{other:?}"),
    }
    match pin!(uring::SpillFile::create_beside("nobody")).poll(&mut cx) {
        Poll::Ready(Err(error)) => assert_eq!(error.kind(), ErrorKind::Misuse),
        other => panic!("{other:?}"),
    }
}
