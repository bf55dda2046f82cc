//! What look-ups are measured on: the table, its keys, and what contestants say.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
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

/// The times of a contestant's look-ups of one kind.
#[derive(Debug, Default)]
pub struct Times {
    member: Vec<Duration>,
    absent: Vec<Duration>,
}

impl Times {
    /// Looks keys up, and times each: `find` says the row that has the key's number.
    ///
    /// # Errors
    /// That of `find`, and a wrong answer.
    pub fn of(
        keys: &[Key],
        mut find: impl FnMut(u64) -> Result<Option<u64>, String>,
    ) -> Result<Times, String> {
        let mut times = Times::default();
        for key in keys {
            let start = Instant::now();
            let found = find(key.number)?;
            let took = start.elapsed();
            if found != key.row {
                return Err(format!("{}: row {found:?}, and not {:?}", key.number, key.row));
            }
            if key.row.is_some() { times.member.push(took) } else { times.absent.push(took) }
        }
        Ok(times)
    }

    /// Medians and 99 in a hundred, in microseconds.
    pub fn json(&self) -> Value {
        let of = |times: &[Duration]| {
            let mut micros: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
            micros.sort_by(f64::total_cmp);
            let at = |part: usize| micros.get(micros.len() * part / 100).copied();
            json!({ "median": at(50), "p99": at(99), "count": micros.len() })
        };
        json!({ "member": of(&self.member), "absent": of(&self.absent) })
    }
}

/// What can look keys up.
pub trait Finder: Sized {
    /// Its name, and its version.
    const NAME: (&'static str, &'static str);

    /// Opens a file, whose bytes are in memory, to look keys of a column up in a way.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn open(file: Bytes, leaf: usize, way: &str) -> Result<Self, String>;

    /// The row of a number.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn find(&mut self, number: u64) -> Result<Option<u64>, String>;

    /// Bytes that it has read for look-ups, if it counts them.
    fn bytes(&self) -> Option<u64> {
        None
    }
}

/// Runs a contestant: `PROGRAM FILE COLUMN WAY [KEYS]`. Each key is looked up twice, and the second time counts.
pub fn contest<F: Finder>() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (path, column, way, count) = match arguments[..] {
        [path, column, way] => (path, column, way, usize::MAX),
        [path, column, way, count] => (path, column, way, count.parse().unwrap_or(usize::MAX)),
        _ => {
            eprintln!("usage: {} FILE COLUMN none|index|bloom|both|pages|all [KEYS]", F::NAME.0);
            return ExitCode::FAILURE;
        }
    };
    match look_up::<F>(Path::new(path), column, way, count) {
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

fn look_up<F: Finder>(path: &Path, column: &str, way: &str, count: usize) -> Result<Value, String> {
    let keys = read_keys(&path.with_extension("keys.json"))?;
    let keys = &keys[..keys.len().min(count)];
    let leaf = COLUMNS.iter().position(|name| *name == column).ok_or("no such column")?;
    let file = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let start = Instant::now();
    let mut finder = F::open(file.into(), leaf, way)?;
    let opened = start.elapsed().as_secs_f64() * 1e6;
    Times::of(keys, |number| finder.find(number))?;
    let before = finder.bytes();
    let times = Times::of(keys, |number| finder.find(number))?;
    #[allow(clippy::cast_precision_loss, reason = "an average, to be read")]
    let bytes = finder.bytes().zip(before).map(|(after, before)| (after - before) as f64 / keys.len() as f64);
    Ok(json!({ "version": F::NAME.1, "open": opened, "bytes": bytes, "times": times.json() }))
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
