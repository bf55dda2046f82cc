//! Files read side by side on one thread by io_uring, while a timer of the same thread ticks:
//! `cargo run --example with_compio --features uring -- trips.parquet more.parquet`.
//!
//! For a thread per core, each thread has such a runtime. Where io_uring is not allowed, compio reads with threads.

use std::cell::Cell;
use std::env;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use compio::runtime::{Runtime, spawn, time::sleep};
use marquetry::base::{Error, Limits, Object};
use marquetry::codecs::StandardCodecs;
use marquetry::io::{ByteSources, uring};
use marquetry::parquet::read::{BatchReader, FooterReader, ReadOptions};

/// The machine's name for its only file.
const FILE: Object = Object(0);

/// The rows of a file. Between two steps of a machine, all else on the thread has its turn.
async fn count(path: PathBuf) -> marquetry::Result<usize> {
    let file = uring::File::open(&path).await?;
    let source = || ByteSources::new().with(FILE, file.clone());
    let footer = uring::drive(FooterReader::new(FILE, Limits::DEFAULT), source()).next().await?;
    let metadata = footer.ok_or_else(|| Error::internal("a footer's reader without a product"))?;
    let codecs = Arc::new(StandardCodecs::default());
    let reader = BatchReader::new(FILE, metadata, codecs, ReadOptions::default())?;
    let (mut batches, mut rows) = (uring::drive(reader, source()), 0);
    while let Some(batch) = batches.next().await? {
        rows += batch.rows;
    }
    Ok(rows)
}

/// What else the thread does: it measures how late a timer of a millisecond is.
async fn tick(worst: Rc<Cell<Duration>>) {
    const TICK: Duration = Duration::from_millis(1);
    loop {
        let began = Instant::now();
        sleep(TICK).await;
        worst.set(worst.get().max(began.elapsed().saturating_sub(TICK)));
    }
}

fn main() -> marquetry::Result<()> {
    let runtime = Runtime::new().map_err(|error| Error::io(error.to_string()).caused_by(error))?;
    runtime.block_on(async {
        let worst = Rc::new(Cell::new(Duration::ZERO));
        let ticking = spawn(tick(Rc::clone(&worst)));
        let reads: Vec<_> = env::args_os().skip(1).map(|path| spawn(count(path.into()))).collect();
        let mut rows = 0;
        for read in reads {
            rows += read.await.map_err(|_| Error::internal("a task that panicked"))??;
        }
        drop(ticking);
        let how = if uring::is_native() { "by io_uring" } else { "with threads" };
        println!("{rows} rows {how}");
        eprintln!("the timer was {:?} late at worst", worst.get());
        Ok(())
    })
}
