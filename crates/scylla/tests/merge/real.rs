//! Random tables of a real Cassandra, flushed again and again: what is alive in its SSTables is what a SELECT returns.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use marquetry_scylla::sstable::compare::Comparator;
use marquetry_scylla::sstable::counter;
use marquetry_scylla::sstable::marshal::MarshalType;
use marquetry_scylla::sstable::merge::MergeOptions;

use crate::PLAIN;
use crate::cql::{Connection, Values};
use crate::files::data_files;
use crate::fixtures::{PathKey, Table, Tables, open};
use crate::merged;
use crate::model::{Partition, Place, Row};
use crate::random::Random;
use crate::read::read;

/// A server of the test's own, which is stopped when it is dropped.
pub(crate) struct Server {
    script: PathBuf,
    pub(crate) directory: PathBuf,
    /// Of Cassandra; `None`: the usual one.
    version: Option<&'static str>,
}

impl Server {
    /// A server with a directory of this name, which reads all versions of the format.
    pub(crate) fn start(name: &str) -> Option<Server> {
        Server::start_version(name, None)
    }

    /// The same of a version before 5.0, which reads what it writes and what came before.
    pub(crate) fn start_version(name: &str, version: Option<&'static str>) -> Option<Server> {
        // Where this is, Cassandra is, too.
        let script = marquetry_testing::sstabledump()?;
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let server = Server { script, directory, version };
        server.stop();
        let _ = std::fs::remove_dir_all(server.directory.join("data"));
        let mut start = server.script("start");
        if version.is_none() {
            start.env("COMPATIBILITY", "NONE");
        }
        assert!(start.status().is_ok_and(|status| status.success()), "Cassandra did not start");
        Some(server)
    }

    pub(crate) fn script(&self, command: &str) -> Command {
        let mut script = Command::new(&self.script);
        script.arg(command).arg(&self.directory);
        script.envs(self.version.map(|version| ("CASSANDRA_VERSION", version)));
        script
    }

    pub(crate) fn connect(&self) -> Connection {
        let output = self.script("where").output().expect("a script");
        Connection::open(std::str::from_utf8(&output.stdout).expect("text").trim())
    }

    /// Runs nodetool.
    pub(crate) fn nodetool(&self, arguments: &[&str]) {
        let output = self.script("nodetool").args(arguments).output().expect("a script");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, errors) = (said(&output.stdout), said(&output.stderr));
        assert!(output.status.success(), "nodetool {arguments:?}: {out}{errors}");
    }

    fn stop(&self) {
        let _ = self.script("stop").stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// The SSTables of a table.
    pub(crate) fn files(&self, table: &str) -> Vec<PathBuf> {
        let is_of = |path: &PathBuf| {
            let folder = path.parent().and_then(Path::file_name).expect("a folder").to_string_lossy();
            folder.starts_with(&format!("{table}-"))
        };
        data_files(&self.directory.join("data")).into_iter().filter(is_of).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

const TABLES: usize = 8;
const COUNTERS: usize = 2;
const FLUSHES: usize = 14;
const STATEMENTS: usize = 40;
pub(crate) const UNCOMPACTED: &str =
    "compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}";

/// A statement about a table with everything, of which much is at the same place and time.
pub(crate) fn statement(random: &mut Random, table: &str) -> String {
    let small = |random: &mut Random, bound: u64| random.below(bound);
    let first = |random: &mut Random| i32::try_from(random.below(3)).expect("small") - 1;
    let partition = format!("pk = {}", small(random, 4));
    let text = ["", "x", "xy"][small(random, 3) as usize];
    let prefix = format!("{partition} AND ck1 = {}", first(random));
    let row = format!("{prefix} AND ck2 = '{text}'");
    let time = small(random, 9);
    // What expires does so before the SELECT, or long after it.
    let ttl = match small(random, 5) {
        0 => " AND TTL 1".to_string(),
        1 => format!(" AND TTL {}", 100_000 + small(random, 2)),
        _ => String::new(),
    };
    let using = format!("USING TIMESTAMP {time}{ttl}");
    let number = small(random, 3);
    let set = match small(random, 14) {
        0 => format!("a = {number}"),
        1 => format!("b = '{text}', a = {number}"),
        2 => format!("l = [{number}, 7]"),
        3 => format!("l = l + [{number}]"),
        4 => format!("l = [{number}] + l"),
        5 => format!("m = {{'{text}': {number}, 'z': 1}}"),
        6 => format!("m['{text}'] = {number}"),
        7 => format!("m = m - {{'{text}'}}"),
        8 => format!("n = n + {{{number}, -1}}"),
        9 => format!("n = n - {{{number}}}"),
        10 => format!("u.x = {number}"),
        11 => format!("u = {{x: {number}, y: '{text}'}}"),
        12 => "a = null, m = null".to_string(),
        _ => format!("f = [{number}], t = ({number}, '{text}')"),
    };
    match small(random, 20) {
        0 => format!("DELETE FROM {table} USING TIMESTAMP {} WHERE {partition}", small(random, 4)),
        1 => format!("DELETE FROM {table} USING TIMESTAMP {time} WHERE {prefix}"),
        2 => format!(
            "DELETE FROM {table} USING TIMESTAMP {time} WHERE {partition} AND ck1 {} {}",
            [">", ">=", "<", "<="][small(random, 4) as usize],
            first(random)
        ),
        3 => format!(
            "DELETE FROM {table} USING TIMESTAMP {time} WHERE {prefix} AND ck2 >{} '{text}' AND ck2 < 'z'",
            ["", "="][small(random, 2) as usize]
        ),
        4 => format!("DELETE FROM {table} USING TIMESTAMP {time} WHERE {row}"),
        5 => format!("DELETE a, b, l FROM {table} USING TIMESTAMP {time} WHERE {row}"),
        6 => format!("DELETE n[{number}], u.y FROM {table} USING TIMESTAMP {time} WHERE {row}"),
        7 => format!("UPDATE {table} {using} SET s = {number}, sm['{text}'] = {number} WHERE {partition}"),
        8 => format!("DELETE s, sm FROM {table} USING TIMESTAMP {time} WHERE {partition}"),
        9..13 => format!("UPDATE {table} {using} SET {set} WHERE {row}"),
        _ => {
            let key = format!("{}, {}, '{text}'", small(random, 4), first(random));
            format!(
                "INSERT INTO {table} (pk, ck1, ck2, a, b, n) VALUES ({key}, {number}, '{text}', {{{number}}}) {using}"
            )
        }
    }
}

pub(crate) fn counted(random: &mut Random, table: &str) -> String {
    let row = format!("pk = {} AND ck = {}", random.below(3), random.below(3));
    match random.below(12) {
        0 => format!("DELETE a FROM {table} WHERE {row}"),
        1 => format!("DELETE FROM {table} WHERE {row}"),
        _ => format!("UPDATE {table} SET a = a + {}, b = b - 1 WHERE {row}", random.below(9)),
    }
}

fn member(bytes: Option<&[u8]>) -> Vec<u8> {
    let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).expect("short"));
    [&length.to_be_bytes()[..], bytes.unwrap_or_default()].concat()
}

/// A column's value as the protocol has it.
fn value(kind: &MarshalType, column: usize, row: &Row<PathKey>) -> Option<Vec<u8>> {
    let cells = row.cells.iter().filter(|((of, _), _)| *of == column);
    let cells: Vec<(&[u8], &[u8])> =
        cells.map(|((_, path), cell)| (path.bytes.as_slice(), cell.value.as_slice())).collect();
    if cells.is_empty() {
        return None;
    }
    if Comparator::of_paths(kind).expect("sorted").is_none() {
        let bytes = cells[0].1;
        return Some(match kind.is_counter() {
            true => counter::total(bytes).expect("a counter").to_be_bytes().to_vec(),
            false => bytes.to_vec(),
        });
    }
    if let MarshalType::User { fields, .. } = kind {
        let field = |number: usize| {
            let name = u16::try_from(number).expect("few").to_be_bytes();
            member(cells.iter().find(|cell| cell.0 == name).map(|cell| cell.1))
        };
        return Some((0..fields.len()).flat_map(field).collect());
    }
    let mut bytes = i32::try_from(cells.len()).expect("few").to_be_bytes().to_vec();
    for (path, value) in cells {
        match kind {
            MarshalType::List(_) => bytes.extend(member(Some(value))),
            MarshalType::Set(_) => bytes.extend(member(Some(path))),
            _ => {
                bytes.extend(member(Some(path)));
                bytes.extend(member(Some(value)));
            }
        }
    }
    Some(bytes)
}

/// The rows of a SELECT of all columns.
fn rows<P: Place>(
    table: &Table,
    key: &[u8],
    partition: &Partition<P, PathKey>,
    clustering: impl Fn(&P) -> Values,
) -> Vec<Values> {
    let statics = table.columns.statics.len();
    let static_row = partition.rows.iter().find(|(place, _)| place.is_static()).map(|(_, row)| row);
    let columns =
        |range: std::ops::Range<usize>, row: Option<&Row<PathKey>>| -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
            let of = |(number, column): (usize, &marquetry_scylla::sstable::statistics::HeaderColumn)| {
                (column.name.clone(), row.and_then(|row| value(&column.kind, number, row)))
            };
            // A SELECT sorts by name, simple or not.
            let all = table.columns.cells().enumerate();
            let mut columns: Vec<_> = all.filter(|(number, _)| range.contains(number)).map(of).collect();
            columns.sort();
            columns
        };
    let mut rows = Vec::new();
    let places: Vec<_> = partition.rows.iter().filter(|(place, _)| !place.is_static()).collect();
    let mut push = |clustering: Values, row: Option<&Row<PathKey>>| {
        let mut values = vec![Some(key.to_vec())];
        values.extend(clustering);
        values.extend(columns(0..statics, static_row).into_iter().map(|column| column.1));
        values.extend(columns(statics..usize::MAX, row).into_iter().map(|column| column.1));
        rows.push(values);
    };
    if places.is_empty() {
        push(vec![None; table.columns.clustering.len()], None);
    }
    for (place, row) in places {
        push(clustering(place), Some(row));
    }
    rows
}

#[test]
#[ignore = "soak: a Cassandra that flushes often"]
fn what_is_alive_is_what_a_select_returns() {
    let Some(server) = Server::start("merge-cassandra") else { return };
    let mut cql = server.connect();
    cql.run("CREATE KEYSPACE merged WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TYPE merged.ut (x int, y text)");
    let (tables, counters): (Vec<_>, Vec<_>) = (
        (0..TABLES).map(|number| format!("merged.t{number}")).collect(),
        (0..COUNTERS).map(|number| format!("merged.c{number}")).collect(),
    );
    for table in &tables {
        cql.run(&format!(
            "CREATE TABLE {table} (pk int, ck1 int, ck2 text, s int static, sm map<text, int> static, a int, b text, \
             l list<int>, m map<text, int>, n set<int>, u ut, f frozen<list<int>>, t tuple<int, text>, \
             PRIMARY KEY (pk, ck1, ck2)) WITH CLUSTERING ORDER BY (ck1 DESC, ck2 ASC) AND {UNCOMPACTED}"
        ));
    }
    for table in &counters {
        cql.run(&format!(
            "CREATE TABLE {table} (pk int, ck int, a counter, b counter, PRIMARY KEY (pk, ck)) WITH {UNCOMPACTED}"
        ));
    }
    let mut random = Random::new(20);
    for flush in 0..FLUSHES {
        for (number, table) in tables.iter().enumerate() {
            // Tables with few statements a flush, and with many.
            for _ in 0..STATEMENTS * (number + 1) / TABLES {
                cql.run(&statement(&mut random, table));
            }
        }
        for table in &counters {
            for _ in 0..STATEMENTS / 2 {
                cql.run(&counted(&mut random, table));
            }
        }
        // Some tables are not flushed as often.
        if flush % 2 == 1 || random.below(2) == 0 || flush + 1 == FLUSHES {
            server.nodetool(&["flush", "merged"]);
        }
    }
    std::thread::sleep(Duration::from_secs(3));
    for name in tables.iter().chain(&counters) {
        let selected = cql.run(&format!("SELECT * FROM {name}"));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
        let files = server.files(name.trim_start_matches("merged."));
        assert!(files.len() > 4, "{name}: {files:?}");
        let table = open(&files);
        let shape = Tables::new(&table.columns);
        let mut options = MergeOptions::default();
        options.live_at = Some(u32::try_from(now).expect("before 2106"));
        let batches = merged(&table.columns, table.inputs.clone(), &options, PLAIN).expect("sorted");
        let found: Vec<Values> = read(&batches, &shape)
            .iter()
            .flat_map(|((_, key), partition)| rows(&table, key, partition, |place| place.values.clone()))
            .collect();
        assert!(selected.len() > 5, "{name}: {} rows", selected.len());
        for (number, (found, selected)) in found.iter().zip(&selected).enumerate() {
            assert_eq!(found, selected, "{name}: row {number}");
        }
        assert_eq!(found.len(), selected.len(), "{name}");
        println!("{name}: {} SSTables, {} rows", files.len(), found.len());
    }
}
