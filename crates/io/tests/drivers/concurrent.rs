//! The drivers that share their thread: tokio's and compio's, with a machine, from files and from sources with faults.
#![cfg(all(feature = "tokio", feature = "uring"))]

use std::cell::Cell;
use std::fs;
use std::future::poll_fn;
use std::ops::Range;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use compio::driver::{DriverType, ProactorBuilder};
use compio::runtime::Runtime;
use marquetry_base::{
    Budget, Bytes, Demand, Error, ErrorKind, Machine, Object, Priority, Result, Step, Want,
};
use marquetry_io::memory::Memory;
use marquetry_io::{AsyncByteSource, ByteSource, ByteSources, ReadAhead, blocking, tokio, uring};

use crate::toy::{FILE, Toy, object};

const TEXT: &str = "twenty-one characters";

/// Small enough for the toy's text to be several pieces.
const SMALL: ReadAhead = ReadAhead { piece_bytes: 3, ahead_bytes: 9 };

fn on_tokio<T>(run: impl Future<Output = T>) -> T {
    ::tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run)
}

/// A runtime that reads by io_uring, where the system lets it, and one that reads with threads.
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

/// All that a machine produces, by each of the drivers; the sources are made on the thread that reads them.
macro_rules! text {
    ($driver:ident, $machine:expr, $source:expr, $ahead:expr) => {
        async {
            let mut products = $driver::drive_ahead($machine, ByteSources::new().with(FILE, $source), $ahead);
            let mut text = String::new();
            while let Some(piece) = products.next().await? {
                text.push_str(std::str::from_utf8(&piece).unwrap());
            }
            assert_eq!(products.next().await?, None, "done stays done");
            Ok::<String, Error>(text)
        }
    };
}

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().unwrap())
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("toy");
        fs::write(&path, bytes).unwrap();
        path
    }
}

#[test]
fn files_read_the_same_by_every_driver() {
    let scratch = Scratch::new();
    let path = scratch.file(&object(TEXT));
    for ahead in [SMALL, ReadAhead::default()] {
        let read = async || text!(tokio, Toy::default(), tokio::File::open(&path).await?, ahead).await;
        assert_eq!(on_tokio(read()).unwrap(), TEXT);
        for runtime in runtimes() {
            let read = async || text!(uring, Toy::default(), uring::File::open(&path).await?, ahead).await;
            assert_eq!(runtime.block_on(read()).unwrap(), TEXT);
        }
        let memory = Memory::new("toy", object(TEXT).into());
        assert_eq!(on_tokio(text!(tokio, Toy::default(), memory.clone(), ahead)).unwrap(), TEXT);
    }
}

#[test]
fn tokio_may_move_a_reader_to_another_thread() {
    let scratch = Scratch::new();
    let path = scratch.file(&object(TEXT));
    let runtime = ::tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let path = path.clone();
            runtime.spawn(async move {
                text!(tokio, Toy::default(), tokio::File::open(&path).await?, SMALL).await
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(runtime.block_on(task).unwrap().unwrap(), TEXT);
    }
}

#[test]
fn a_runtime_says_how_it_reads() {
    assert!(!uring::is_native());
    for runtime in runtimes() {
        assert_eq!(runtime.block_on(async { uring::is_native() }), runtime.driver_type().is_iouring());
    }
}

/// The answer of a future that needs no runtime.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn outside_of_a_runtime() {
    let scratch = Scratch::new();
    let path = scratch.file(&object(TEXT));
    assert_eq!(now(tokio::File::open(&path)).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(now(uring::File::open(&path)).unwrap_err().kind(), ErrorKind::Misuse);
}

#[test]
fn what_cannot_be_opened() {
    let scratch = Scratch::new();
    let socket = scratch.0.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let paths =
        ["".into(), scratch.0.path().join("missing"), scratch.0.path().into(), socket, "/dev/null".into()];
    for path in paths {
        let expected = blocking::File::open(&path).unwrap_err();
        assert_eq!(on_tokio(tokio::File::open(&path)).unwrap_err(), expected);
        for runtime in runtimes() {
            assert_eq!(runtime.block_on(uring::File::open(&path)).unwrap_err(), expected);
        }
    }
}

#[test]
fn a_file_that_shrinks() {
    let scratch = Scratch::new();
    let check = |error: Error, toy: &Toy| {
        assert_eq!(error.kind(), ErrorKind::Io);
        let expected = "shrank while it was read: it had 35 bytes and now ends at byte 16";
        assert!(error.message().contains(expected), "{error}");
        assert_eq!((error.place().column.as_deref(), toy.failures.len()), (Some("text"), 1));
    };
    let shrink = |path: &PathBuf| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(16).unwrap();
    // A piece of four bytes at a time, and nothing ahead.
    let ahead = ReadAhead { piece_bytes: 2, ahead_bytes: 0 };
    macro_rules! read {
        ($driver:ident) => {
            async {
                let path = scratch.file(&object(TEXT));
                let file = $driver::File::open(&path).await.unwrap();
                let mut products =
                    $driver::drive_ahead(Toy::default(), ByteSources::new().with(FILE, file), ahead);
                assert_eq!(products.next().await.unwrap().unwrap(), "twen");
                shrink(&path);
                let error = loop {
                    if let Err(error) = products.next().await {
                        break error;
                    }
                };
                assert_eq!(products.next().await.unwrap_err(), error);
                check(error, products.machine());
            }
        };
    }
    on_tokio(read!(tokio));
    for runtime in runtimes() {
        runtime.block_on(read!(uring));
    }
}

/// Memory whose reads take their time, in any order, and one of which fails.
#[derive(Clone)]
struct Faulty {
    memory: Memory,
    /// The read that fails, counted from 0.
    fails: Option<usize>,
    /// Reads give a byte less than they should.
    is_short: bool,
    begun: Arc<AtomicUsize>,
    alive: Arc<AtomicUsize>,
    together: Arc<AtomicUsize>,
}

impl Faulty {
    fn new(bytes: Vec<u8>) -> Faulty {
        Faulty {
            memory: Memory::new("faulty", bytes.into()),
            fails: None,
            is_short: false,
            begun: Arc::default(),
            alive: Arc::default(),
            together: Arc::default(),
        }
    }
}

/// A read that is ready after so many polls.
struct Slow {
    polls: usize,
    answer: Result<Bytes>,
    alive: Arc<AtomicUsize>,
}

impl Future for Slow {
    type Output = Result<Bytes>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Bytes>> {
        match self.polls {
            0 => Poll::Ready(self.answer.clone()),
            _ => {
                self.polls -= 1;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsyncByteSource for Faulty {
    type Length = std::future::Ready<Result<u64>>;
    type Read = Slow;

    fn name(&self) -> &str {
        AsyncByteSource::name(&self.memory)
    }

    fn length(&self) -> Self::Length {
        AsyncByteSource::length(&self.memory)
    }

    fn read(&self, range: Range<u64>) -> Slow {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let alive = self.alive.fetch_add(1, Ordering::Relaxed) + 1;
        self.together.fetch_max(alive, Ordering::Relaxed);
        let answer = match ByteSource::read(&self.memory, range) {
            Ok(_) if self.fails == Some(number) => Err(Error::io("a bad sector")),
            Ok(bytes) if self.is_short => Ok(bytes.slice(1..)),
            other => other,
        };
        // Each comes later than the one begun after it, or earlier.
        Slow { polls: (number * 7) % 11, answer, alive: Arc::clone(&self.alive) }
    }
}

#[test]
fn reads_that_come_in_any_order_and_one_that_fails() {
    let source = Faulty::new(object(TEXT));
    let (begun, together) = (Arc::clone(&source.begun), Arc::clone(&source.together));
    assert_eq!(on_tokio(text!(tokio, Toy::default(), source, SMALL)).unwrap(), TEXT);
    let reads = begun.load(Ordering::Relaxed);
    assert!(reads >= 10, "{reads} reads");
    assert!((2..=7).contains(&together.load(Ordering::Relaxed)), "{together:?} at once");
    for fails in 0..reads {
        let fault = || Faulty { fails: Some(fails), ..Faulty::new(object(TEXT)) };
        let source = fault();
        let alive = Arc::clone(&source.alive);
        let results = [on_tokio(text!(tokio, Toy::default(), source, SMALL))].into_iter().chain(
            runtimes()
                .into_iter()
                .map(|runtime| runtime.block_on(text!(uring, Toy::default(), fault(), SMALL))),
        );
        for result in results {
            match result {
                // It was shared by two pieces of the text, each of which was then read alone.
                Ok(text) => assert_eq!(text, TEXT),
                Err(error) => {
                    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "a bad sector"));
                    assert_eq!(error.place().column.as_deref(), Some("text"));
                }
            }
        }
        assert_eq!(alive.load(Ordering::Relaxed), 0, "reads are left behind");
    }
    let short = Faulty { is_short: true, ..Faulty::new(object(TEXT)) };
    let error = on_tokio(text!(tokio, Toy::default(), short, SMALL)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
}

#[test]
fn a_reader_that_is_dropped_leaves_nothing_behind() {
    let source = Faulty::new(object(TEXT));
    let (alive, begun) = (Arc::clone(&source.alive), Arc::clone(&source.begun));
    let sources = ByteSources::new().with(FILE, source);
    let mut polls = 0;
    let mut dropped_in_flight = 0;
    loop {
        // As far as `polls` polls lead, then dropped.
        let mut products = tokio::drive_ahead(Toy::default(), sources.clone(), SMALL);
        let is_done = on_tokio(async {
            let mut read = pin!(async { while products.next().await.unwrap().is_some() {} });
            let mut left = polls;
            poll_fn(|cx| {
                if left == 0 {
                    return Poll::Ready(false);
                }
                left -= 1;
                read.as_mut().poll(cx).map(|()| true)
            })
            .await
        });
        dropped_in_flight += alive.load(Ordering::Relaxed);
        drop(products);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
        if is_done {
            break;
        }
        polls += 1;
    }
    assert!(polls > 10 && dropped_in_flight > 10 && begun.load(Ordering::Relaxed) > 10);
}

#[test]
fn a_product_is_not_lost_where_a_caller_gives_up() {
    let sources = ByteSources::new().with(FILE, Faulty::new(object(TEXT)));
    let mut products = uring::drive_ahead(Toy::default(), sources, SMALL);
    let mut text = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        // Each call is polled once, and dropped.
        match pin!(products.next()).poll(&mut cx) {
            Poll::Ready(Ok(Some(piece))) => text.extend_from_slice(&piece),
            Poll::Ready(Ok(None)) => break,
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => {}
        }
    }
    assert_eq!(text, TEXT.as_bytes());
}

#[test]
fn files_dropped_in_the_middle() {
    let scratch = Scratch::new();
    let path = scratch.file(&object(&"0123456789".repeat(10_000)));
    let open_files = || {
        let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|open| open == path)).count()
    };
    for runtime in runtimes() {
        for _ in 0..50 {
            runtime.block_on(async {
                let file = uring::File::open(&path).await.unwrap();
                let ahead = ReadAhead { piece_bytes: 1000, ahead_bytes: 20_000 };
                let sources = ByteSources::new().with(FILE, file);
                let mut products = uring::drive_ahead(Wide(Toy::default()), sources, ahead);
                products.next().await.unwrap();
            });
        }
        // What was cancelled, and what closes the files, comes back by the next turns.
        for _ in 0..100 {
            runtime.poll_with(Some(std::time::Duration::from_millis(1)));
            runtime.run();
        }
        let open = open_files();
        assert!(open == 0, "{open} files are open");
    }
}

/// The toy, wanting all of its object early.
struct Wide(Toy);

impl Machine for Wide {
    type Product = Bytes;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Bytes>> {
        Ok(match self.0.step(budget)? {
            Step::Need(mut demand) => {
                demand.push(Want::Range(FILE, 0..100_000, Priority::Soon));
                Step::Need(demand)
            }
            other => other,
        })
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.0.supply(object, range, bytes)
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.0.supply_length(object, length)
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        self.0.fail(object, range, reason);
    }
}

/// Spends a whole budget in each of so many steps, and counts the units that it was given.
struct Busy {
    steps: usize,
    largest: u64,
}

impl Machine for Busy {
    type Product = ();

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<()>> {
        self.largest = self.largest.max(budget.left());
        budget.charge_units(budget.left());
        if self.steps == 0 {
            return Ok(Step::Done);
        }
        self.steps -= 1;
        Ok(if self.steps.is_multiple_of(2) { Step::Ready(()) } else { Step::Yield })
    }

    fn supply(&mut self, _: Object, _: Range<u64>, _: Bytes) -> Result<()> {
        Ok(())
    }

    fn supply_length(&mut self, _: Object, _: u64) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, _: Object, _: Range<u64>, _: Error) {}
}

const BUSY_STEPS: usize = 1000;

#[test]
fn others_have_their_turn_between_steps_on_tokio() {
    let turns = Rc::new(Cell::new(0));
    let local = ::tokio::task::LocalSet::new();
    local.spawn_local({
        let turns = Rc::clone(&turns);
        async move {
            loop {
                turns.set(turns.get() + 1);
                ::tokio::task::yield_now().await;
            }
        }
    });
    let read = async {
        let sources = ByteSources::<Memory>::new();
        let mut products = tokio::drive(Busy { steps: BUSY_STEPS, largest: 0 }, sources);
        while products.next().await.unwrap().is_some() {}
        assert_eq!(products.machine().largest, Budget::DEFAULT_UNITS);
    };
    on_tokio(local.run_until(read));
    assert!(turns.get() >= BUSY_STEPS, "{} turns", turns.get());
}

#[test]
fn others_have_their_reads_done_between_steps_on_compio() {
    let scratch = Scratch::new();
    let path = scratch.file(b"x");
    // Others that read with threads depend on these.
    let Some(runtime) = runtimes().into_iter().find(|runtime| runtime.driver_type().is_iouring()) else {
        return;
    };
    let reads = Rc::new(Cell::new(0));
    runtime.block_on(async {
        let file = uring::File::open(&path).await.unwrap();
        let other = compio::runtime::spawn({
            let reads = Rc::clone(&reads);
            async move {
                loop {
                    AsyncByteSource::read(&file, 0..1).await.unwrap();
                    reads.set(reads.get() + 1);
                }
            }
        });
        // Two, for then there is always one that is ready; and not by `block_on`, which looks for what has come after each
        // poll of its own.
        let busy = || {
            compio::runtime::spawn(async {
                let sources = ByteSources::<Memory>::new();
                let mut products = uring::drive(Busy { steps: BUSY_STEPS, largest: 0 }, sources);
                while products.next().await.unwrap().is_some() {}
            })
        };
        for reader in [busy(), busy()] {
            reader.await.unwrap();
        }
        drop(other);
    });
    // A read is in the system's cache: it has come when it is submitted.
    assert!(reads.get() >= BUSY_STEPS / 2, "{} reads", reads.get());
}

/// Answers every step with the same.
struct Stuck(Step<()>);

impl Machine for Stuck {
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

#[test]
fn broken_machines_do_not_hang_the_drivers() {
    let sources = || ByteSources::new().with(FILE, Memory::new("some", Bytes::from_static(b"some bytes")));
    let soon = Demand { wants: vec![Want::Range(FILE, 0..3, Priority::Soon)] };
    let cases = [
        (Step::Need(Demand::now(FILE, 0..3)), ErrorKind::Internal, "asks again"),
        (Step::Need(Demand::length(FILE)), ErrorKind::Internal, "asks again"),
        (Step::Need(Demand::default()), ErrorKind::Internal, "waits for nothing"),
        (Step::Need(soon), ErrorKind::Internal, "waits for nothing"),
        // It goes on after its source failed.
        (Step::Need(Demand::now(FILE, 9..12)), ErrorKind::Io, "it has 10 bytes"),
        (Step::Need(Demand::now(Object(9), 0..3)), ErrorKind::Misuse, "no source for object 9"),
        (Step::Need(Demand::length(Object(9))), ErrorKind::Misuse, "no source for object 9"),
        (Step::Append(FILE, Bytes::new()), ErrorKind::Misuse, "only reads"),
    ];
    for (step, kind, words) in cases {
        let error = on_tokio(tokio::drive(Stuck(step.clone()), sources()).next()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(words), "{error}");
        for runtime in runtimes() {
            assert_eq!(
                runtime.block_on(uring::drive(Stuck(step.clone()), sources()).next()).unwrap_err(),
                error
            );
        }
    }
}

/// A source that waits, which counts who is in it at once; and panics where it is asked for what lies behind its end.
#[derive(Clone, Default)]
struct Crowd {
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl ByteSource for Crowd {
    fn name(&self) -> &str {
        "a crowd"
    }

    fn length(&self) -> Result<u64> {
        Ok(1000)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        assert!(range.end <= 1000, "behind the end");
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(1));
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(vec![7; usize::try_from(range.end - range.start).unwrap()].into())
    }
}

#[test]
fn few_threads_read_a_source_at_once() {
    let crowd = Crowd::default();
    let source = tokio::Offloaded::new(crowd.clone());
    on_tokio(async {
        let reads: Vec<_> = (0..40).map(|at| source.read(at..at + 1)).collect();
        for read in reads {
            assert_eq!(read.await.unwrap().as_ref(), [7]);
        }
        // A panic is an error, of that read alone.
        let (bad, good) = (source.read(2000..2001), source.clone().read(0..2));
        assert_eq!(bad.await.unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(good.await.unwrap().len(), 2);
    });
    let processors = std::thread::available_parallelism().unwrap().get();
    let most = crowd.most.load(Ordering::SeqCst);
    assert!((1..=4.min(processors.max(2) - 1)).contains(&most), "{most} at once");
}

#[test]
fn a_runtime_that_has_ended_says_so_and_another_goes_on() {
    let source = tokio::Offloaded::new(Crowd::default());
    let runtime = ::tokio::runtime::Builder::new_current_thread().build().unwrap();
    let handle = runtime.handle().clone();
    runtime.shutdown_background();
    let read = {
        let _within = handle.enter();
        source.read(0..5)
    };
    let told = on_tokio(read);
    assert_eq!(told.unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(on_tokio(async { source.read(0..5).await }).unwrap().len(), 5);
}
