//! What wide tables are measured on: their columns, and what contestants are asked and say.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde_json::json;

use crate::clock;

/// Row groups of a file, and rows of each: so few that a file is mostly metadata.
pub const GROUPS: u64 = 10;
/// Rows of a row group.
pub const GROUP_ROWS: u64 = 10;
/// Columns that are wanted, or all where there are fewer.
pub const WANTED: usize = 10;

/// The name of a column: of a length of its own, as names are.
pub fn name(column: usize) -> String {
    const WORDS: [&str; 8] =
        ["x", "price", "sensor_reading", "temperature", "f", "open_interest_total", "volume", "embedding"];
    format!("{}_{column}", WORDS[column * 7 / 3 % WORDS.len()])
}

/// The number that a row holds in a column. `None`: it is null, as up to four of ten are.
pub fn number(column: usize, row: u64) -> Option<u64> {
    (row % GROUP_ROWS >= column as u64 % 5).then_some((column as u64 * 31 + row * 17) % 1000)
}

/// A number as a string, or as bytes.
pub fn text(number: u64) -> String {
    format!("value {number}")
}

/// The columns that are wanted of so many: from all over the table.
pub fn wanted(columns: usize) -> Vec<usize> {
    (0..WANTED.min(columns))
        .map(|at| at * columns / WANTED.min(columns))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// The proof of reading what is wanted: the sum of all numbers, or of the lengths of all texts.
pub fn proof(columns: usize, is_text: bool) -> u64 {
    let rows = 0..GROUPS * GROUP_ROWS;
    let of = |column: usize| rows.clone().filter_map(move |row| number(column, row));
    let all = wanted(columns).into_iter().flat_map(of);
    all.map(|number| if is_text { text(number).len() as u64 } else { number }).sum()
}

/// A file that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table<'a> {
    /// Its columns.
    pub columns: usize,
    /// `none`, `chunk` or `page`: what has statistics.
    pub statistics: &'a str,
    /// `float64`, `string` or `binary`: what its columns are.
    pub kind: &'a str,
    /// `ours`, `ours-locator`, `pyarrow` or `parquet-rs`: what wrote it.
    pub writer: &'a str,
}

impl Table<'_> {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        let Table { columns, statistics, kind, writer } = self;
        format!("wide-{columns}-{statistics}-{kind}-{writer}.parquet")
    }

    /// From the words of a program's arguments.
    ///
    /// # Errors
    /// A message, if they are no such words.
    pub fn parse<'a>(
        columns: &str,
        statistics: &'a str,
        kind: &'a str,
        writer: &'a str,
    ) -> Result<Table<'a>, String> {
        let columns = columns.parse().map_err(|_| format!("{columns} columns?"))?;
        Ok(Table { columns, statistics, kind, writer })
    }

    /// Whether its columns are strings of characters or bytes.
    pub fn is_text(&self) -> bool {
        self.kind != "float64"
    }
}

/// What was done once: what proves it, and what was read for it, if that is counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    /// The leaves of the schema, or [`proof`] of what was read.
    pub proof: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Rounds of requests.
    pub rounds: u64,
}

/// Runs a contestant, `PROGRAM FILE COLUMNS KIND TASK ROUNDS`: loads the file, does the task once and then so often, and prints the CPU time of each.
/// The tasks are `open`, `open10`, `read10`, and others of its own.
pub fn contest(
    (program, version): (&str, &str),
    mut task: impl FnMut(&bytes::Bytes, &Table<'_>, &str) -> Result<Done, String>,
) -> ExitCode {
    let mut run = || {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let [path, columns, kind, what, rounds] = arguments[..] else {
            return Err("usage: FILE COLUMNS float64|string|binary open|open10|read10 ROUNDS".to_owned());
        };
        let table = Table::parse(columns, "", kind, "")?;
        let rounds: usize = rounds.parse().map_err(|_| format!("{rounds} rounds?"))?;
        let file: bytes::Bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?.into();
        let done = task(&file, &table, what)?;
        let mut seconds = Vec::new();
        for _ in 0..rounds {
            let start = clock::cpu_time();
            task(&file, &table, what)?;
            seconds.push((clock::cpu_time() - start).as_secs_f64());
        }
        Ok(json!({
            "version": version, "seconds": seconds, "proof": done.proof, "bytes": done.bytes, "rounds": done.rounds,
        }))
    };
    match run() {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{program}: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_in_the_table() {
        for columns in [1, 9, 10, 11, 1000] {
            let wanted = wanted(columns);
            assert_eq!(wanted.len(), columns.min(WANTED));
            assert!(wanted.iter().all(|column| *column < columns));
        }
        let names: BTreeSet<String> = (0..1000).map(name).collect();
        assert_eq!(names.len(), 1000);
        assert!(proof(10, false) > 0 && proof(10, true) > 0);
        assert!(number(3, 2).is_none() && number(3, 3).is_some());
    }
}
