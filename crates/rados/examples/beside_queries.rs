//! What reads of other objects wait beside queries in the same OSD: `cargo run --release --example beside_queries -- ceph.conf POOL FILE.parquet [SECONDS]`.
//!
//! It writes the file into the pool, and an object of 4 MiB beside it, of which it reads 4 KiB at a time: first alone, then while the file is
//! queried without a pause, all rows or by a predicate that is true for none (`WHERE`, in the environment), and then while the file is read whole,
//! as a client without the class does. It prints how long reads took (median, 99th percentile, longest), and calls of the class.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use marquetry_rados::{Asked, Pool};

const FILE: &str = "beside_queries.parquet";
const OTHER: &str = "beside_queries.other";
const OTHER_BYTES: u64 = 4 << 20;
const READ_BYTES: u64 = 4 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [configuration, pool, file, rest @ ..] = arguments.as_slice() else {
        return Err("ceph.conf, a pool and a Parquet file are needed".into());
    };
    let seconds = rest.first().map_or(Ok(5), |seconds| seconds.parse())?;
    let time = Duration::from_secs(seconds);
    let pool = Pool::open(configuration, pool)?;
    let other = Pool::open(configuration, pool.name())?;
    let bytes = std::fs::read(file)?;
    pool.write(FILE, &bytes, true)?;
    pool.write(OTHER, &vec![7; usize::try_from(OTHER_BYTES)?], true)?;
    let mut asked = Asked::new();
    if let Ok(predicate) = std::env::var("WHERE") {
        asked = asked.predicate(predicate);
    }

    print("alone", &reads(&other, time)?);
    let query = |calls: &mut Vec<Duration>, stop: &AtomicBool| -> marquetry_base::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let mut begun = Instant::now();
            for answer in pool.query(FILE, &asked)? {
                answer?;
                calls.push(begun.elapsed());
                begun = Instant::now();
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        Ok(())
    };
    let (beside, calls) = beside(&other, time, query)?;
    print("beside queries", &beside);
    print("  calls of the class", &calls);
    let whole = |calls: &mut Vec<Duration>, stop: &AtomicBool| -> marquetry_base::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            pool.read(FILE, 0..u64::try_from(bytes.len()).unwrap_or(0))?;
            calls.push(begun.elapsed());
        }
        Ok(())
    };
    let (beside, calls) = self::beside(&other, time, whole)?;
    print("beside whole reads", &beside);
    print("  whole reads", &calls);
    pool.remove(FILE)?;
    pool.remove(OTHER)?;
    Ok(())
}

/// Reads beside a load on another thread; what its calls took, too.
fn beside(
    pool: &Pool,
    time: Duration,
    load: impl Fn(&mut Vec<Duration>, &AtomicBool) -> marquetry_base::Result<()> + Sync,
) -> marquetry_base::Result<(Vec<Duration>, Vec<Duration>)> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| {
            let mut calls = Vec::new();
            load(&mut calls, &stop).map(|()| calls)
        });
        let read = reads(pool, time);
        stop.store(true, Ordering::Relaxed);
        let calls =
            loading.join().unwrap_or_else(|_| Err(marquetry_base::Error::internal("the load panicked")))?;
        Ok((read?, calls))
    })
}

/// How long reads of 4 KiB take, for so long.
fn reads(pool: &Pool, time: Duration) -> marquetry_base::Result<Vec<Duration>> {
    let (begun, mut took, mut at) = (Instant::now(), Vec::new(), 0_u64);
    while begun.elapsed() < time {
        // All over the object, the same in every run.
        at = (at + 1_234_567) % (OTHER_BYTES - READ_BYTES);
        let read = Instant::now();
        pool.read(OTHER, at..at + READ_BYTES)?;
        took.push(read.elapsed());
    }
    Ok(took)
}

fn print(what: &str, took: &[Duration]) {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let at =
        |share: usize| sorted.get(sorted.len() * share / 1000).or(sorted.last()).copied().unwrap_or_default();
    println!(
        "{what:22} {:>8}   median {:>10.1?}   p99 {:>10.1?}   longest {:>10.1?}",
        sorted.len(),
        at(500),
        at(990),
        at(1000)
    );
}
