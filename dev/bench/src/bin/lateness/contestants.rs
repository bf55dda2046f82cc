//! The readers, and the runtimes whose thread they have: one measurement a process.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use marquetry_base::{Error, Limits, Object};
use marquetry_bench::clock::{self, Alone};
use marquetry_bench::lateness::{Calls, Lateness, Spread, Ticks, Watched};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSources, tokio as on_tokio, uring};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde_json::{Value, json};

const FILE: Object = Object(0);

/// A runtime, and what is read on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    /// Nothing: the timer alone.
    IdleCompio,
    /// Nothing: the timer alone.
    IdleTokio,
    /// Ours, by io_uring.
    OursCompio,
    /// Ours, on tokio.
    OursTokio,
    /// parquet-rs's async reader, on tokio.
    #[cfg(feature = "peers")]
    ParquetRs,
}

impl Contestant {
    pub(crate) const ALL: &[Contestant] = &[
        Contestant::IdleCompio,
        Contestant::OursCompio,
        Contestant::IdleTokio,
        Contestant::OursTokio,
        #[cfg(feature = "peers")]
        Contestant::ParquetRs,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Contestant::IdleCompio => "idle-compio",
            Contestant::IdleTokio => "idle-tokio",
            Contestant::OursCompio => "ours-compio",
            Contestant::OursTokio => "ours-tokio",
            #[cfg(feature = "peers")]
            Contestant::ParquetRs => "parquet-rs-tokio",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Contestant> {
        Contestant::ALL.iter().copied().find(|contestant| contestant.name() == name)
    }
}

/// What the reading task has done.
#[derive(Debug, Default)]
struct Done {
    readings: usize,
    rows: u64,
}

/// Reads the file again and again for so long, beside a timer, and tells what both saw.
pub(crate) fn measure(contestant: Contestant, file: &Path, seconds: u64) -> Result<Value, String> {
    let long = Duration::from_secs(seconds);
    let calls = Calls::default();
    let start = Instant::now();
    let mut native = None;
    let (late, late_by_own_timer, done, knows) = match contestant {
        Contestant::IdleCompio => {
            compio(async |_: &Path| Ok(0), contestant, file, long, &calls, &mut native)?
        }
        Contestant::OursCompio => compio(ours_on_compio, contestant, file, long, &calls, &mut native)?,
        Contestant::IdleTokio => tokio(async |_: &Path| Ok(0), contestant, file, long, &calls)?,
        Contestant::OursTokio => tokio(ours_on_tokio, contestant, file, long, &calls)?,
        #[cfg(feature = "peers")]
        Contestant::ParquetRs => tokio(parquet_rs, contestant, file, long, &calls)?,
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Ok(json!({
        "late": Spread::of(late.by_clock).json(),
        "late_undisturbed": Spread::of(late.undisturbed).json(),
        "late_by_own_timer": late_by_own_timer.map(|late| Spread::of(late.by_clock).json()),
        "calls": Spread::of(calls.take()).json(),
        "readings": done.readings,
        "rows": done.rows,
        "seconds": start.elapsed().as_secs_f64(),
        "peak_memory_kib": clock::peak_memory_kib(&status),
        "io_uring": native,
        "disturbance_known": knows,
    }))
}

/// What a measurement found: how late the timer was, how late the runtime's own was where that is another, what was read, and whether it
/// is known for how long other programs had the thread's processor.
type Found = (Lateness, Option<Lateness>, Done, bool);

/// Reads the file until the time is over.
async fn read_on(
    read: impl AsyncFn(&Path) -> Result<u64, String>,
    contestant: Contestant,
    file: &Path,
    until: Instant,
    idle: impl Future<Output = ()>,
) -> Result<Done, String> {
    let mut done = Done::default();
    if matches!(contestant, Contestant::IdleCompio | Contestant::IdleTokio) {
        idle.await;
        return Ok(done);
    }
    while done.readings == 0 || Instant::now() < until {
        done.rows = read(file).await?;
        done.readings += 1;
    }
    Ok(done)
}

/// On compio, whose timers are io_uring's own, to the nanosecond.
fn compio(
    read: impl AsyncFn(&Path) -> Result<u64, String>,
    contestant: Contestant,
    file: &Path,
    long: Duration,
    calls: &Calls,
    native: &mut Option<bool>,
) -> Result<Found, String> {
    let alone = Rc::new(Alone::new()?);
    let runtime = compio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        *native = Some(uring::is_native());
        let over = Rc::new(Cell::new(false));
        let timer = compio::runtime::spawn({
            let (over, alone) = (Rc::clone(&over), Rc::clone(&alone));
            async move {
                let mut ticks = Ticks::new();
                while !over.get() {
                    compio::time::sleep_until(ticks.due()).await;
                    ticks.tick_on(&alone);
                }
                ticks.late()
            }
        });
        let until = Instant::now() + long;
        let reading = read_on(read, contestant, file, until, compio::time::sleep_until(until));
        let done = Watched::new(reading, Rc::clone(calls)).await?;
        over.set(true);
        let late = timer.await.map_err(|_| "the timer's task has ended")?;
        Ok((late, None, done, alone.knows()))
    })
}

/// On tokio's runtime of one thread. Its own timers have a wheel of a millisecond, and are up to one late by design; so the timer that is
/// judged is one of the kernel's (`timerfd`), waited for as for a socket. The runtime's own is measured beside it.
fn tokio(
    read: impl AsyncFn(&Path) -> Result<u64, String>,
    contestant: Contestant,
    file: &Path,
    long: Duration,
    calls: &Calls,
) -> Result<Found, String> {
    let alone = Arc::new(Alone::new()?);
    let others = alone.others();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.on_thread_start(move || clock::run_on(&others).expect("a thread may run where the process may"));
    let runtime = runtime.enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let over = Arc::new(AtomicBool::new(false));
        let kernel = tokio::spawn({
            let (over, alone) = (Arc::clone(&over), Arc::clone(&alone));
            async move {
                let timer = Timerfd::new()?;
                let mut ticks = Ticks::new();
                while !over.load(Ordering::Relaxed) {
                    timer.sleep_until(ticks.due()).await?;
                    ticks.tick_on(&alone);
                }
                Ok::<_, std::io::Error>(ticks.late())
            }
        });
        let own = tokio::spawn({
            let (over, alone) = (Arc::clone(&over), Arc::clone(&alone));
            async move {
                let mut ticks = Ticks::new();
                while !over.load(Ordering::Relaxed) {
                    tokio::time::sleep_until(ticks.due().into()).await;
                    ticks.tick_on(&alone);
                }
                ticks.late()
            }
        });
        let until = Instant::now() + long;
        let idle = tokio::time::sleep_until(until.into());
        let reading = read_on(read, contestant, file, until, idle);
        let done = Watched::new(reading, Rc::clone(calls)).await?;
        over.store(true, Ordering::Relaxed);
        let late = kernel.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let own = own.await.map_err(|error| error.to_string())?;
        Ok((late, Some(own), done, alone.knows()))
    })
}

/// One of the kernel's timers.
struct Timerfd(tokio::io::unix::AsyncFd<OwnedFd>);

impl Timerfd {
    fn new() -> std::io::Result<Timerfd> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "what is to replace it is `unsafe`; and an OwnedFd stays open and the same"
        )]
        let timer = tokio::io::unix::AsyncFd::new(timer)?;
        Ok(Timerfd(timer))
    }

    async fn sleep_until(&self, due: Instant) -> std::io::Result<()> {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(0),
            tv_nsec: left.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: zero, it_value: left };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut expirations = [0; 8];
            match ready.try_io(|timer| Ok(rustix::io::read(timer, &mut expirations)?)) {
                Ok(read) => return read.map(|_| ()),
                Err(_) => continue,
            }
        }
    }
}

fn options() -> ReadOptions {
    ReadOptions { limits: Limits::TRUSTED, ..ReadOptions::default() }
}

/// Reads all batches of a file by one of our drivers, and counts their rows.
macro_rules! read_by {
    ($driver:ident, $path:expr) => {
        async {
            let sources = ByteSources::new().with(FILE, $driver::File::open($path).await?);
            let footer = FooterReader::new(FILE, Limits::TRUSTED);
            let metadata = $driver::drive(footer, sources.clone()).next().await?;
            let metadata = metadata.ok_or_else(|| Error::internal("no footer"))?;
            let codecs = Arc::new(StandardCodecs::default());
            let reader = BatchReader::new(FILE, metadata, codecs, options())?;
            let mut batches = $driver::drive(reader, sources);
            let mut rows = 0;
            while let Some(batch) = batches.next().await? {
                rows += batch.rows as u64;
            }
            Ok::<u64, Error>(rows)
        }
    };
}

async fn ours_on_compio(path: &Path) -> Result<u64, String> {
    read_by!(uring, path).await.map_err(|error| error.to_string())
}

async fn ours_on_tokio(path: &Path) -> Result<u64, String> {
    read_by!(on_tokio, path).await.map_err(|error| error.to_string())
}

#[cfg(feature = "peers")]
async fn parquet_rs(path: &Path) -> Result<u64, String> {
    use futures_util::StreamExt;
    use parquet::arrow::ParquetRecordBatchStreamBuilder;

    let file = ::tokio::fs::File::open(path).await.map_err(|error| error.to_string())?;
    let builder = ParquetRecordBatchStreamBuilder::new(file).await.map_err(|error| error.to_string())?;
    let batch_rows = options().batch_rows;
    let mut batches = builder.with_batch_size(batch_rows).build().map_err(|error| error.to_string())?;
    let mut rows = 0;
    while let Some(batch) = batches.next().await {
        rows += batch.map_err(|error| error.to_string())?.num_rows() as u64;
    }
    Ok(rows)
}
