//! What queries take: the work of OSDs, time, bytes that move; and what they answer.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use marquetry_bench::clock;
use marquetry_rados::{Asked, Pool};

/// What something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Of the threads of all OSDs in calls of the class, and of the OSD that worked the most.
    pub(crate) work_ms: f64,
    pub(crate) busiest_ms: f64,
    /// By the clock, from the first question to the last answer.
    pub(crate) wall_ms: f64,
    /// Bytes of the answers.
    pub(crate) moved: u64,
    pub(crate) calls: usize,
}

/// Queries objects, one after the other, several times: the run of the least work.
pub(crate) fn queried(pool: &Pool, objects: &[String], asked: &Asked, rounds: usize) -> Result<Run, String> {
    let mut best: Option<Run> = None;
    for _ in 0..rounds {
        let run = measured(pool, objects, || {
            let mut moved = 0;
            for object in objects {
                for answer in pool.query(object, asked).map_err(text)? {
                    moved += answer.map_err(text)?.data.len() as u64;
                }
            }
            Ok(moved)
        })?;
        if best.is_none_or(|best| run.work_ms < best.work_ms) {
            best = Some(run);
        }
    }
    best.ok_or_else(|| "no rounds".to_owned())
}

/// What `work`, which returns the bytes that moved, takes of the OSDs that have these objects. Nobody else calls the class meanwhile.
pub(crate) fn measured(
    pool: &Pool,
    objects: &[String],
    work: impl FnOnce() -> Result<u64, String>,
) -> Result<Run, String> {
    calls_of(pool, objects)?;
    let begun = Instant::now();
    let moved = work()?;
    let wall_ms = begun.elapsed().as_secs_f64() * 1e3;
    let calls = calls_of(pool, objects)?;
    let each = || calls.iter().map(|calls| calls.iter().sum::<f64>());
    Ok(Run {
        work_ms: each().sum(),
        busiest_ms: each().fold(0.0, f64::max),
        wall_ms,
        moved,
        calls: calls.iter().map(Vec::len).sum(),
    })
}

/// The work of each call since the last time, in milliseconds, of each OSD that has one of these objects and was called.
fn calls_of(pool: &Pool, objects: &[String]) -> Result<Vec<Vec<f64>>, String> {
    let mut osds = Vec::new();
    for object in objects {
        // Who has answered has nothing more to say when it is asked by another of its objects.
        let (_, work) = times(pool, object)?;
        if !work.is_empty() {
            osds.push(work);
        }
    }
    Ok(osds)
}

/// How long calls took since the last time, in the OSD that has an object: by the clock, and of their thread's work, in milliseconds.
pub(crate) fn times(pool: &Pool, object: &str) -> Result<(Vec<f64>, Vec<f64>), String> {
    let bytes = pool.execute(object, "times", b"").map_err(text)?;
    let (mut wall, mut work) = (Vec::new(), Vec::new());
    for pair in bytes.as_chunks::<8>().0 {
        let [w0, w1, w2, w3, c0, c1, c2, c3] = *pair;
        wall.push(f64::from(u32::from_le_bytes([w0, w1, w2, w3])) / 1e3);
        work.push(f64::from(u32::from_le_bytes([c0, c1, c2, c3])) / 1e3);
    }
    Ok((wall, work))
}

/// What a query answers, whatever the form of the objects and the number of calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// Rows, or what `count(*)` says.
    pub(crate) rows: u64,
    /// What the aggregate after `count(*)` says, a sum of doubles.
    pub(crate) sum: f64,
    /// Of each column, its values in their order.
    columns: Vec<DefaultHasher>,
}

impl Answered {
    /// Asks objects, whose answers are one after the other.
    pub(crate) fn of(pool: &Pool, objects: &[String], asked: &Asked) -> Result<Answered, String> {
        let mut all = Answered::default();
        for object in objects {
            for answer in pool.query(object, asked).map_err(text)? {
                let data = answer.map_err(text)?.data;
                if data.is_empty() {
                    continue;
                }
                let batches = StreamReader::try_new(&data[..], None).map_err(|error| error.to_string())?;
                for batch in batches {
                    all.add(&batch.map_err(|error| error.to_string())?)?;
                }
            }
        }
        Ok(all)
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), String> {
        if batch.schema().fields().first().is_some_and(|field| field.name() == "count(*)") {
            let counts = batch.column(0).as_primitive_opt::<UInt64Type>();
            let sums = batch.columns().get(1).and_then(|sums| sums.as_primitive_opt::<Float64Type>());
            let (counts, sums) = counts.zip(sums).ok_or("aggregates of other types than were expected")?;
            self.rows += counts.iter().flatten().sum::<u64>();
            self.sum += sums.iter().flatten().sum::<f64>();
            return Ok(());
        }
        self.rows += batch.num_rows() as u64;
        self.columns.resize_with(batch.num_columns(), DefaultHasher::new);
        self.columns.iter_mut().zip(batch.columns()).try_for_each(|(hasher, column)| hash(column, hasher))
    }

    /// An error if another form of the same rows answers something else. Sums of doubles depend on the order in which they are added.
    pub(crate) fn expect(&self, other: &Answered, what: &str) -> Result<(), String> {
        let finished = |answered: &Answered| answered.columns.iter().map(Hasher::finish).collect::<Vec<_>>();
        let is_near = (self.sum - other.sum).abs() <= 1e-9 * self.sum.abs().max(other.sum.abs());
        if self.rows == other.rows && is_near && finished(self) == finished(other) {
            return Ok(());
        }
        let message = format!(
            "{what}: {} rows with a sum of {}, and {} with {}, or other values",
            self.rows, self.sum, other.rows, other.sum
        );
        Err(message)
    }
}

/// Adds the values of a column.
fn hash(column: &ArrayRef, hasher: &mut DefaultHasher) -> Result<(), String> {
    match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().iter().for_each(|value| value.hash(hasher)),
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().for_each(|value| value.hash(hasher)),
        DataType::Date32 => column.as_primitive::<Date32Type>().iter().for_each(|value| value.hash(hasher)),
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().iter();
            values.for_each(|value| value.map(f64::to_bits).hash(hasher));
        }
        DataType::Utf8 => column.as_string::<i32>().iter().for_each(|value| value.hash(hasher)),
        DataType::Utf8View => column.as_string_view().iter().for_each(|value| value.hash(hasher)),
        other => return Err(format!("values of {other} are not compared")),
    }
    Ok(())
}

/// The value that so many percent of all do not exceed.
pub(crate) fn quantile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// What this process has worked, all threads together, in milliseconds.
pub(crate) fn client_ms() -> f64 {
    clock::cpu_time().as_secs_f64() * 1e3
}

pub(crate) fn text(error: marquetry_base::Error) -> String {
    error.to_string()
}
