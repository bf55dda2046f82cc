//! Threads that do the work of a file's columns.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use marquetry_base::{Budget, Bytes, Error, Machine, Object, Result, Step};
use marquetry_parquet::write::{ColumnWork, ColumnWorker, FileWriter, Room};

use crate::Cancel;

/// Units of a step, after which a thread looks up whether it must end, and others get the writer.
const STEP_UNITS: u64 = 1_000_000;
/// How long to wait for work before checking whether the copy was cancelled.
const LOOK_UP_AFTER: Duration = Duration::from_millis(100);
/// Batches that are begun while columns are still at work on earlier ones, per thread. One column ends a large page while
/// the others take several batches; with more than this, nothing was faster.
const AHEAD_PER_THREAD: usize = 2;
/// The same for each of several open files.
const AHEAD_OF_MANY: usize = 1;
/// Batches of fewer values than this are not worth another thread.
const FEW_VALUES: usize = 8 << 10;

/// The threads of a destination, which work on all of its open files: the caller's, and as many others as make up
/// their number. Those are started when there is enough to do.
///
/// The file does not depend on their number: see [`FileWriter::share`].
pub(super) struct Crew {
    shared: Arc<Shared>,
    /// Threads that are not started, and those that are.
    others: Mutex<(usize, Vec<JoinHandle<()>>)>,
    threads: usize,
}

struct Shared {
    state: Mutex<State>,
    /// There is work, or none will come.
    work: Condvar,
    /// Work has come back.
    back: Condvar,
    is_over: AtomicBool,
    cancel: Cancel,
}

#[derive(Default)]
struct State {
    /// The open files, by number.
    writers: BTreeMap<u64, FileWriter>,
    /// Files that were begun, and the one whose work is looked for first: they take turns.
    begun: u64,
    turn: u64,
    /// For the work that the caller's thread does itself.
    own: Option<ColumnWorker>,
    /// The caller's thread waits for work to come back.
    is_waiting: bool,
    /// A thread has panicked.
    failed: Option<Error>,
}

/// The writer of a file that a crew works on, as a machine.
pub(super) struct CrewWriter {
    crew: Arc<Crew>,
    number: u64,
}

/// Work on a file, by the file's number.
type Work = (u64, ColumnWork);

impl State {
    fn writer(&mut self, number: u64) -> Result<&mut FileWriter> {
        self.writers.get_mut(&number).ok_or_else(|| Error::internal("a crew that lacks the file"))
    }

    /// The next work of any file, and a worker for it, if there is none yet.
    fn next_work(&mut self, worker: &mut Option<ColumnWorker>) -> Option<Work> {
        let turn = self.turn;
        for round in [true, false] {
            for (number, writer) in self.writers.range_mut(if round { turn.. } else { 0.. }) {
                if let Some(work) = writer.next_work() {
                    worker.get_or_insert_with(|| writer.worker());
                    self.turn = *number + 1;
                    return Some((*number, work));
                }
            }
        }
        None
    }

    /// Takes work back, unless its file is gone.
    fn return_work(&mut self, (number, work): Work) {
        if let Some(writer) = self.writers.get_mut(&number) {
            writer.return_work(work);
        }
    }
}

impl Crew {
    /// A crew of this many threads, the caller's included.
    pub(super) fn new(threads: usize, cancel: &Cancel) -> Crew {
        let shared = Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            back: Condvar::new(),
            is_over: AtomicBool::new(false),
            cancel: cancel.clone(),
        };
        let others = Mutex::new((threads.saturating_sub(1), Vec::new()));
        Crew { shared: Arc::new(shared), others, threads }
    }

    /// Begins a file, which is the only one that is open, or one of several: then fewer batches of it wait, because there
    /// is work on the others.
    pub(super) fn begin(self: &Arc<Crew>, mut writer: FileWriter, is_only: bool) -> Result<CrewWriter> {
        if self.threads > 1 {
            writer.share(if is_only { AHEAD_PER_THREAD * self.threads } else { AHEAD_OF_MANY })?;
        }
        let mut state = self.shared.lock();
        let number = state.begun;
        state.begun += 1;
        state.writers.insert(number, writer);
        Ok(CrewWriter { crew: Arc::clone(self), number })
    }

    /// Starts the other threads, unless they are running.
    fn start(&self) -> Result<()> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        while others.0 > 0 {
            let shared = Arc::clone(&self.shared);
            let spawned =
                thread::Builder::new().name("marquetry-writer".to_string()).spawn(move || shared.work());
            let started = spawned
                .map_err(|error| Error::io(format!("cannot start a thread: {error}")).caused_by(error))?;
            others.0 -= 1;
            others.1.push(started);
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Under the lock, so that none begins to wait after it has looked.
        drop(self.shared.lock());
        self.shared.work.notify_all();
        let others = self.others.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in others.1.drain(..) {
            // A panic of a thread was caught there.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of the writer fails the file: `failed` is set, or its caller has unwound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a thread does.
    fn work(&self) {
        let mut idle = None;
        let mut state = self.lock();
        while !self.is_over.load(Ordering::Relaxed) {
            let Some((number, work)) = state.next_work(&mut idle) else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let done = catch_unwind(AssertUnwindSafe(|| self.run(idle.as_mut(), work)));
            state = self.lock();
            match done {
                Ok(Some(work)) => state.return_work((number, work)),
                // Nobody wants it any more.
                Ok(None) => return,
                Err(_) => {
                    idle = None;
                    state.failed = Some(Error::internal("a thread that writes has panicked"));
                }
            }
            if state.is_waiting {
                self.back.notify_one();
            }
        }
    }

    /// Does work. `None` if it is not to go on.
    fn run(&self, worker: Option<&mut ColumnWorker>, work: ColumnWork) -> Option<ColumnWork> {
        let worker = worker?;
        worker.start(work).ok()?;
        loop {
            if let Some(done) = worker.step(&mut Budget::new(STEP_UNITS)) {
                return Some(done);
            }
            if self.is_over.load(Ordering::Relaxed) || self.cancel.is_set() {
                return None;
            }
        }
    }
}

impl CrewWriter {
    /// Calls the writer.
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut FileWriter) -> T) -> Result<T> {
        self.crew.shared.lock().writer(self.number).map(call)
    }

    /// A batch of so many values will be written.
    pub(super) fn expect(&self, values: usize) -> Result<()> {
        if values < FEW_VALUES { Ok(()) } else { self.crew.start() }
    }

    /// Waits until all columns have taken what they were given, as they have at once where one thread does everything.
    ///
    /// # Errors
    ///
    /// [`Cancelled`](marquetry_base::ErrorKind::Cancelled). What went wrong with the columns, the next step returns.
    pub(super) fn settle(&mut self) -> Result<()> {
        while self.with(|writer| writer.has_open_work())? {
            self.help()?;
        }
        Ok(())
    }

    /// Does work that is there, of this file or another, or waits for work to come back.
    fn help(&mut self) -> Result<()> {
        let shared = &self.crew.shared;
        let mut state = shared.lock();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let mut worker = state.own.take();
        let writer = state.writer(self.number)?;
        let (own, has_open_work) = (writer.next_work(), writer.has_open_work());
        if own.is_some() {
            worker.get_or_insert_with(|| writer.worker());
        }
        let own = own.map(|work| (self.number, work));
        let Some((number, work)) = own.or_else(|| state.next_work(&mut worker)) else {
            state.own = worker;
            if has_open_work {
                state.is_waiting = true;
                let (mut state, _) =
                    shared.back.wait_timeout(state, LOOK_UP_AFTER).unwrap_or_else(PoisonError::into_inner);
                state.is_waiting = false;
            }
            return shared.cancel.check();
        };
        drop(state);
        let done = shared.run(worker.as_mut(), work);
        let mut state = shared.lock();
        match done {
            Some(work) => {
                state.own = worker;
                state.return_work((number, work));
                Ok(())
            }
            None => {
                shared.cancel.check()?;
                Err(Error::internal("work that is given up"))
            }
        }
    }
}

impl Drop for CrewWriter {
    fn drop(&mut self) {
        let ended = self.crew.shared.lock().writers.remove(&self.number);
        // Without the lock: it may hold much.
        drop(ended);
    }
}

impl Machine for CrewWriter {
    type Product = Room;

    /// Steps of the writer are small, so that the others wait for it no longer than that; and the caller's thread works
    /// where it would have to wait.
    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Room>> {
        let units = budget.left().min(STEP_UNITS);
        let shared = &self.crew.shared;
        let (step, awaits_work) = {
            let mut state = shared.lock();
            let writer = state.writer(self.number)?;
            let step = writer.step(&mut Budget::new(units))?;
            if self.crew.threads > 1 && matches!(step, Step::Yield | Step::Ready(_)) {
                shared.work.notify_all();
            }
            (step, writer.awaits_work())
        };
        if awaits_work {
            self.help()?;
        }
        Ok(step)
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.with(|writer| writer.supply(object, range, bytes))?
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.with(|writer| writer.supply_length(object, length))?
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        // Without a file, its next step fails.
        let _ = self.with(|writer| writer.fail(object, range, reason));
    }
}
