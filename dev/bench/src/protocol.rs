//! What the driver and its contestants say to each other, a line at a time, on the contestant's standard input and output.
//!
//! ```text
//! contestant: ready VERSION                  the file's bytes are in memory
//! driver:     check | run                    read everything once; `check`: and prove it
//! contestant: WALL_NS CPU_NS ROWS SUM        elapsed and CPU time (of all its threads), rows counted, nulls too
//! contestant: error MESSAGE                  and it ends
//! ```
//!
//! SUM is 0 for `run`. For `check` it is the sum modulo 2^64 of all values that are not null, a value being its 64 bits (INT32: sign-extended; FLOAT and BOOLEAN: zeros before theirs),
//! or the first eight bytes of a string, little-endian; what lists, maps, structs and printed records count says `make_nested.py`.
//! A contestant ends when its input does.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::clock::cpu_time;

/// What a contestant makes of a file. Only equal products are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// Dense values and definition levels.
    Dense,
    /// Arrays equal to Arrow's.
    Arrow,
    /// Arrow arrays in which dictionary-encoded strings stay dictionaries.
    Dictionary,
    /// JSON lines, printed to `/dev/null`.
    Records,
}

impl Product {
    /// Every product, in the order of the report.
    pub const ALL: [Self; 4] = [Self::Dense, Self::Arrow, Self::Dictionary, Self::Records];

    /// Its name on a command line and in `cases.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Arrow => "arrow",
            Self::Dictionary => "dictionary",
            Self::Records => "records",
        }
    }

    /// The product of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|product| product.name() == name)
    }
}

/// What one reading of a file found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Rows, nulls among them.
    pub rows: u64,
    /// The proof of reading, when it was asked for; else 0.
    pub sum: u64,
}

/// A value as 64 bits, to be summed as the proof of reading.
pub trait Sum {
    /// Those bits.
    fn bits(&self) -> u64;
}

impl Sum for i32 {
    fn bits(&self) -> u64 {
        i64::from(*self).cast_unsigned()
    }
}

impl Sum for i64 {
    fn bits(&self) -> u64 {
        self.cast_unsigned()
    }
}

impl Sum for f64 {
    fn bits(&self) -> u64 {
        self.to_bits()
    }
}

impl Sum for f32 {
    fn bits(&self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Sum for bool {
    fn bits(&self) -> u64 {
        u64::from(*self)
    }
}

impl Sum for &[u8] {
    fn bits(&self) -> u64 {
        let mut word = [0; 8];
        let len = self.len().min(8);
        word[..len].copy_from_slice(&self[..len]);
        u64::from_le_bytes(word)
    }
}

/// The proof of reading those values.
pub fn sum<T: Sum>(values: impl IntoIterator<Item = T>) -> u64 {
    values.into_iter().fold(0, |sum, value| sum.wrapping_add(value.bits()))
}

/// The time of one answer.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// By a monotonic clock.
    pub wall: Duration,
    /// The CPU time of the whole process.
    pub cpu: Duration,
}

/// Serves a driver until it is done: the contestant's side. `read(check)` reads the file once. Returns the exit code.
pub fn serve(version: &str, mut read: impl FnMut(bool) -> Result<Count, String>) -> std::process::ExitCode {
    println!("ready {version}");
    for line in std::io::stdin().lines() {
        let check = match line.as_deref() {
            Ok("check") => true,
            Ok("run") => false,
            other => return refuse(&format!("not a request: {other:?}")),
        };
        let (wall, cpu) = (Instant::now(), cpu_time());
        let found = read(check);
        let (wall, cpu) = (wall.elapsed(), cpu_time().saturating_sub(cpu));
        match found {
            Ok(Count { rows, sum }) => println!("{} {} {rows} {sum}", wall.as_nanos(), cpu.as_nanos()),
            Err(message) => return refuse(&message),
        }
    }
    std::process::ExitCode::SUCCESS
}

/// Tells the driver that this contestant cannot go on.
pub fn refuse(message: &str) -> std::process::ExitCode {
    println!("error {}", message.replace('\n', " "));
    std::process::ExitCode::FAILURE
}

/// A contestant as the driver sees it.
#[derive(Debug)]
pub struct Contestant {
    /// Its name in the report.
    pub name: &'static str,
    /// The version it said it has.
    pub version: String,
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Contestant {
    /// Starts a contestant and waits until it is ready.
    ///
    /// # Errors
    /// A message that names the contestant.
    pub fn start(name: &'static str, mut command: Command) -> Result<Self, String> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name}: cannot start {:?}: {error}", command.get_program()))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("{name}: no pipes"));
        };
        let mut contestant =
            Self { name, version: String::new(), process, requests, answers: BufReader::new(answers) };
        let line = contestant.answer()?;
        let version =
            line.strip_prefix("ready ").ok_or_else(|| format!("{name}: said {line:?}, not ready"))?;
        contestant.version = version.to_owned();
        Ok(contestant)
    }

    /// Has it read everything once.
    ///
    /// # Errors
    /// A message that names the contestant.
    pub fn run(&mut self, check: bool) -> Result<(Time, Count), String> {
        self.time(if check { "check" } else { "run" })
    }

    /// Has it do what a request says, and answer with a time and what it counted.
    ///
    /// # Errors
    /// A message that names the contestant.
    pub fn time(&mut self, request: &str) -> Result<(Time, Count), String> {
        let line = self.ask(request)?;
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [wall, cpu, rows, sum] = numbers[..] else {
            return Err(format!("{}: {line}", self.name));
        };
        let time = Time { wall: Duration::from_nanos(wall), cpu: Duration::from_nanos(cpu) };
        Ok((time, Count { rows, sum }))
    }

    /// Says a line to it, and returns the line that it answers.
    ///
    /// # Errors
    /// A message that names the contestant.
    pub fn ask(&mut self, request: &str) -> Result<String, String> {
        let line = format!("{request}\n");
        self.requests.write_all(line.as_bytes()).map_err(|error| format!("{}: {error}", self.name))?;
        self.answer()
    }

    /// The next line that it says.
    ///
    /// # Errors
    /// A message that names the contestant.
    pub fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).map_err(|error| format!("{}: {error}", self.name))?;
        if read == 0 {
            return Err(format!("{}: ended without an answer", self.name));
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        // It would end by itself at the end of its input; this way it does not outlive a driver that gives up.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_the_file_maker_does() {
        assert_eq!(sum([-1_i32, 3]), 2, "INT32 is sign-extended and wraps");
        assert_eq!(sum([b"1".as_slice(), b"00000000-and-more"]), 0x31 + 0x3030_3030_3030_3030);
        assert_eq!(sum([1.0_f64]), 0x3ff0_0000_0000_0000);
    }

    #[test]
    fn products_have_names() {
        for product in Product::ALL {
            assert_eq!(Product::from_name(product.name()), Some(product));
        }
        assert_eq!(Product::from_name("both"), None);
    }
}
