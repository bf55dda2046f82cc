//! What loads into and unloads from a real server (`MARQUETRY_CASSANDRA=HOST:PORT`) take of memory: long tests (`make soak`).
//!
//! `MARQUETRY_MEMORY_ROWS` is how many rows of 57 columns there are, 100,000 unless it is set; of few columns there are ten times as many.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Stdio;
use std::time::Duration;

use scylla::client::session_builder::SessionBuilder;

use crate::common::{Folder, marquetry, run};
use crate::turn;

/// The most that a load or an unload may hold, whatever the size of the file.
const RESIDENT_KIB_MAX: u64 = 256 << 10;

/// Runs the command, which succeeds; the most memory that it held, in KiB.
fn peak_kib(arguments: &[&str]) -> u64 {
    let mut child = marquetry().args(arguments).stdout(Stdio::null()).spawn().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        // What it held at most so far: of a process that has just ended there is nothing.
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{arguments:?}");
    println!("{peak} KiB: {}", arguments.join(" "));
    assert!(peak > 0);
    peak
}

/// Rows of so many columns, of numbers and of texts that are all different; texts have so many bytes more.
fn write_rows(path: &str, rows: u64, columns: u64, more: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    writeln!(file, "id,{}", names.join(",")).unwrap();
    let more = "x".repeat(more);
    for row in 0..rows {
        write!(file, "{row}").unwrap();
        for column in 0..columns {
            let mixed = (row * columns + column).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            match column % 3 {
                0 => write!(file, ",{}", mixed >> 32).unwrap(),
                1 => write!(file, ",text {mixed:016x} of {row}{more}").unwrap(),
                _ => write!(file, ",{}.5", mixed >> 40).unwrap(),
            }
        }
        writeln!(file).unwrap();
    }
    file.flush().unwrap();
}

#[test]
#[ignore = "soak: loads and unloads files of several hundred megabytes"]
fn loads_and_unloads_are_bounded() {
    let Some(at) = marquetry_testing::cassandra() else { return };
    let _turn = turn();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let session = runtime.block_on(SessionBuilder::new().known_node(&at).build()).unwrap();
    let execute = |statement: &str| {
        runtime.block_on(session.query_unpaged(statement, ())).expect(statement);
    };
    let keyspace = "marquetry_memory";
    execute(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
    execute(&format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    let mut beyond = Vec::new();
    let rows = std::env::var("MARQUETRY_MEMORY_ROWS")
        .map_or(100_000, |rows| rows.parse().expect("a number of rows"));
    // Values of a megabyte, too.
    for (name, rows, columns, more) in
        [("narrow", 10 * rows, 5, 0), ("wide", rows, 57, 0), ("large", rows / 400, 2, 1 << 20)]
    {
        let folder = Folder::new();
        let [csv, parquet, unloaded, parts] =
            ["rows.csv", "rows.parquet", "unloaded.parquet", "parts/"].map(|it| folder.path(it));
        write_rows(&csv, rows, columns, more);
        run(["copy", &csv, &parquet, "--quiet"]).succeeded();
        let table = |table: &str| format!("cql://{at}/{keyspace}.{name}_{table}");
        let (a, b) = (table("a"), table("b"));
        let mut bounded = |arguments: &[&str]| {
            let peak = peak_kib(arguments);
            if peak > RESIDENT_KIB_MAX {
                beyond.push(format!("{peak} KiB: {}", arguments.join(" ")));
            }
        };
        bounded(&["copy", &parquet, &a, "--create", "--key", "id", "--quiet"]);
        bounded(&["copy", &csv, &b, "--create", "--key", "id", "--quiet"]);
        bounded(&["copy", &a, &unloaded, "--quiet"]);
        bounded(&["copy", &a, &parts, "--with-metadata", "--quiet"]);
        bounded(&["diff", &a, &b, "--quiet"]);
    }
    execute(&format!("DROP KEYSPACE {keyspace}"));
    assert!(beyond.is_empty(), "{beyond:#?}");
}
