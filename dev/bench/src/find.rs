//! What look-ups are measured on: the table, its keys, and what contestants say.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use marquetry_base::{Budget, Error, Machine, Priority, Step, Want};
use serde_json::{Value, json};

/// The columns of the table; the names say their types.
pub const COLUMNS: [&str; 5] = ["int32", "int64", "float", "double", "string"];

/// Rows of a page.
pub const PAGE_ROWS: usize = 4096;

/// Bytes of a string.
const STRING_BYTES: usize = 124;

/// Up to here all whole numbers are a `float`, and odd ones are no key of a row.
const FLOATS: u64 = 1 << 24;

/// The number that a row holds in each column: even, and once each. In order, or thoroughly mixed.
pub fn number(row: u64, rows: u64, is_sorted: bool) -> u64 {
    /// Prime, and no divisor of a number of rows of two and five.
    const STEP: u64 = 7_654_321;
    2 * if is_sorted { row } else { row * STEP % rows }
}

/// A number as a string: its digits, and then what makes it as long as published.
pub fn string(number: u64) -> String {
    let mut text = format!("{number:012}");
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while text.len() < STRING_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push(char::from(b'a' + u8::try_from(state % 26).unwrap_or_default()));
    }
    text
}

/// A number as the bytes of a column, as Bloom filters hash them.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "numbers are below 2^25"
)]
pub fn plain(column: usize, number: u64) -> Vec<u8> {
    match COLUMNS[column] {
        "int32" => (number as i32).to_le_bytes().to_vec(),
        "int64" => (number as i64).to_le_bytes().to_vec(),
        "float" => (number as f32).to_le_bytes().to_vec(),
        "double" => (number as f64).to_le_bytes().to_vec(),
        _ => string(number).into_bytes(),
    }
}

/// Bytes of a page of a column in PLAIN, with its header, at most.
pub fn page_bytes(column: usize) -> u64 {
    let value = match COLUMNS[column] {
        "int32" | "float" => 4,
        "int64" | "double" => 8,
        _ => 4 + STRING_BYTES,
    };
    (PAGE_ROWS * value + 64) as u64
}

/// A look-up: a number, and the row that has it.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The number.
    pub number: u64,
    /// Its row; `None` if no row has it.
    pub row: Option<u64>,
}

/// The keys that are looked up: so many that are there, and as many that are not, by turns.
pub fn keys(count: u64, rows: u64, is_sorted: bool) -> Vec<Key> {
    /// Prime, so that the keys are all over the table.
    const STRIDE: u64 = 2_654_435_761;
    let mut keys = Vec::new();
    for at in 0..count {
        let row = (at * STRIDE + 12_345) % rows;
        keys.push(Key { number: number(row, rows, is_sorted), row: Some(row) });
        let absent = (at * STRIDE + 99_991) % rows.min(FLOATS / 2);
        keys.push(Key { number: 2 * absent + 1, row: None });
    }
    keys
}

/// Reads [`keys`] as [`write_keys`] writes them.
///
/// # Errors
/// A message with the file's name.
pub fn read_keys(path: &Path) -> Result<Vec<Key>, String> {
    let place = |error: String| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| place(error.to_string()))?;
    let list: Vec<(u64, Option<u64>)> =
        serde_json::from_str(&text).map_err(|error| place(error.to_string()))?;
    Ok(list.into_iter().map(|(number, row)| Key { number, row }).collect())
}

/// Writes keys for contestants: `[[number, row or null], …]`.
///
/// # Errors
/// A message with the file's name.
pub fn write_keys(path: &Path, keys: &[Key]) -> Result<(), String> {
    let list: Vec<Value> = keys.iter().map(|key| json!([key.number, key.row])).collect();
    std::fs::write(path, Value::from(list).to_string())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The times of a contestant's look-ups of one kind, and the bytes that each has read.
#[derive(Debug, Default)]
pub struct Times {
    member: Vec<(Duration, u64)>,
    absent: Vec<(Duration, u64)>,
}

impl Times {
    /// Looks keys up in an input, and times each: `find` says the row that has the key's number.
    ///
    /// # Errors
    /// That of `find`, and a wrong answer.
    pub fn of(
        keys: &[Key],
        input: &Input,
        mut find: impl FnMut(u64) -> Result<Option<u64>, String>,
    ) -> Result<Times, String> {
        let mut times = Times::default();
        for key in keys {
            let before = input.bytes_read();
            let start = Instant::now();
            let found = find(key.number)?;
            let took = (start.elapsed(), input.bytes_read() - before);
            if found != key.row {
                return Err(format!("{}: row {found:?}, and not {:?}", key.number, key.row));
            }
            if key.row.is_some() { times.member.push(took) } else { times.absent.push(took) }
        }
        Ok(times)
    }

    /// Medians and 99 in a hundred, in microseconds; bytes on average, and the most.
    pub fn json(&self) -> Value {
        let of = |times: &[(Duration, u64)]| {
            let mut micros: Vec<f64> = times.iter().map(|(time, _)| time.as_secs_f64() * 1e6).collect();
            micros.sort_by(f64::total_cmp);
            let at = |part: usize| micros.get(micros.len() * part / 100).copied();
            let bytes = times.iter().map(|(_, bytes)| bytes);
            let mean = bytes.clone().sum::<u64>() / (times.len() as u64).max(1);
            json!({ "median": at(50), "p99": at(99), "count": micros.len(), "bytes": mean, "bytes_max": bytes.max() })
        };
        json!({ "member": of(&self.member), "absent": of(&self.absent) })
    }
}

/// A file whose bytes are in memory, or that is read by `pread`; it counts what is read.
#[derive(Clone, Debug)]
pub struct Input {
    origin: Origin,
    read: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
enum Origin {
    Memory(Bytes),
    File(Arc<File>, u64),
}

impl Input {
    /// All of a file.
    ///
    /// # Errors
    /// A message with the file's name.
    pub fn memory(path: &Path) -> Result<Input, String> {
        let file = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Input { origin: Origin::Memory(file.into()), read: Arc::default() })
    }

    /// An open file.
    ///
    /// # Errors
    /// A message with the file's name.
    pub fn file(path: &Path) -> Result<Input, String> {
        let open = || {
            let file = File::open(path)?;
            let bytes = file.metadata()?.len();
            Ok::<_, std::io::Error>(Origin::File(Arc::new(file), bytes))
        };
        let origin = open().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Input { origin, read: Arc::default() })
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        match &self.origin {
            Origin::Memory(bytes) => bytes.len() as u64,
            Origin::File(_, bytes) => *bytes,
        }
    }

    /// Some of its bytes.
    ///
    /// # Errors
    /// Those of reading, and a range beyond the end.
    pub fn read(&self, range: Range<u64>) -> std::io::Result<Bytes> {
        let length = range.end.saturating_sub(range.start);
        self.read.fetch_add(length, Ordering::Relaxed);
        let size = |bytes: u64| usize::try_from(bytes).map_err(std::io::Error::other);
        match &self.origin {
            Origin::Memory(bytes) => {
                let (start, end) = (size(range.start)?, size(range.end)?);
                if start > end || end > bytes.len() {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                Ok(bytes.slice(start..end))
            }
            Origin::File(file, _) => {
                let mut bytes = vec![0; size(length)?];
                file.read_exact_at(&mut bytes, range.start)?;
                Ok(bytes.into())
            }
        }
    }

    /// Bytes that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// The next product of one of our machines, from an input.
///
/// # Errors
/// The machine's, and those of reading.
pub fn run<M: Machine>(machine: &mut M, file: &Input) -> marquetry_base::Result<Option<M::Product>> {
    loop {
        match machine.step(&mut Budget::default())? {
            Step::Ready(product) => return Ok(Some(product)),
            Step::Need(demand) => {
                for want in demand.wants {
                    match want {
                        Want::Range(object, range, Priority::Now) => {
                            let bytes = file.read(range.clone());
                            machine.supply(
                                object,
                                range,
                                bytes.map_err(|error| Error::io(error.to_string()))?,
                            )?;
                        }
                        Want::Length(object) => machine.supply_length(object, file.length())?,
                        Want::Range(..) => {}
                    }
                }
            }
            Step::Yield | Step::Append(..) => {}
            Step::Done => return Ok(None),
        }
    }
}

/// What can look keys up.
pub trait Finder: Sized {
    /// Its name, and its version.
    const NAME: (&'static str, &'static str);

    /// Opens a file, to look keys of a column up in a way; of whole rows, all columns will be read.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn open(file: Input, leaf: usize, way: &str, has_rows: bool) -> Result<Self, String>;

    /// The row of a number.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn find(&mut self, number: u64) -> Result<Option<u64>, String>;

    /// Reads all columns of the row that was found last. Returns how many there are.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn row(&mut self, row: u64) -> Result<usize, String>;
}

/// Runs a contestant: `PROGRAM FILE COLUMN WAY [KEYS [MODE]]`. Each key is looked up twice, and the second time counts. `MODE` is
/// `memory`, where the file's bytes are in memory; `pread`; `rows`, for whole rows from memory; or `cold`, where the file is
/// opened for each key, and read by `pread`.
pub fn contest<F: Finder>() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |count: &str| count.parse().unwrap_or(usize::MAX);
    let (path, column, way, count, mode) = match arguments[..] {
        [path, column, way] => (path, column, way, usize::MAX, "memory"),
        [path, column, way, count] => (path, column, way, number(count), "memory"),
        [path, column, way, count, mode] => (path, column, way, number(count), mode),
        _ => {
            eprintln!(
                "usage: {} FILE COLUMN none|index|bloom|both|pages|all [KEYS [memory|pread|rows|cold]]",
                F::NAME.0
            );
            return ExitCode::FAILURE;
        }
    };
    match look_up::<F>(Path::new(path), column, (way, mode), count) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{}: {message}", F::NAME.0);
            ExitCode::FAILURE
        }
    }
}

fn look_up<F: Finder>(
    path: &Path,
    column: &str,
    (way, mode): (&str, &str),
    count: usize,
) -> Result<Value, String> {
    let keys = read_keys(&path.with_extension("keys.json"))?;
    let keys = &keys[..keys.len().min(count)];
    let leaf = COLUMNS.iter().position(|name| *name == column).ok_or("no such column")?;
    let input = if matches!(mode, "pread" | "cold") { Input::file(path)? } else { Input::memory(path)? };
    if mode == "cold" {
        // Its bytes are counted where they are read: of a file that is opened anew, too.
        let find = |number| {
            let file = Input { read: Arc::clone(&input.read), ..Input::file(path)? };
            F::open(file, leaf, way, false)?.find(number)
        };
        Times::of(keys, &input, find)?;
        let times = Times::of(keys, &input, find)?;
        return Ok(json!({ "version": F::NAME.1, "times": times.json() }));
    }
    let start = Instant::now();
    let mut finder = F::open(input.clone(), leaf, way, mode == "rows")?;
    let opened = start.elapsed().as_secs_f64() * 1e6;
    let mut find = |number| {
        let found = finder.find(number)?;
        match found {
            Some(row) if mode == "rows" && finder.row(row)? != COLUMNS.len() => {
                Err(format!("row {row}: not all columns"))
            }
            found => Ok(found),
        }
    };
    Times::of(keys, &input, &mut find)?;
    let times = Times::of(keys, &input, &mut find)?;
    Ok(json!({ "version": F::NAME.1, "open": opened, "times": times.json() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_where_they_are_said_to_be() {
        for is_sorted in [true, false] {
            let rows = 10_000;
            let mut numbers: Vec<u64> = (0..rows).map(|row| number(row, rows, is_sorted)).collect();
            for key in keys(100, rows, is_sorted) {
                let row = numbers.iter().position(|number| *number == key.number);
                assert_eq!(row.map(|row| row as u64), key.row);
            }
            numbers.sort_unstable();
            assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert!(string(8) < string(10) && string(8).len() == STRING_BYTES);
    }
}
