//! Beside a real Cassandra: flushes, compactions, and a watcher that is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use serde_json::Value;

use crate::common::{Folder, marquetry, run};

/// No test waits longer for what must happen.
const LONG: Duration = Duration::from_secs(60);

/// A keyspace of its own with a table `t`, and the server's directory.
struct Table {
    keyspace: &'static str,
    directory: PathBuf,
    runtime: tokio::runtime::Runtime,
    session: Session,
}

const COLUMNS: &str = "(p int, c int, v text, s int static, l list<int>, PRIMARY KEY (p, c))";

impl Table {
    fn fresh(keyspace: &'static str, options: &str) -> Option<Table> {
        let (at, directory) = (marquetry_testing::cassandra()?, marquetry_testing::cassandra_directory()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let builder = SessionBuilder::new().known_node(&at).fetch_full_schema_metadata(false);
        let session = runtime.block_on(builder.build()).expect("the server answers");
        let table = Table { keyspace, directory, runtime, session };
        table.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
        table.run(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        table.run(&format!("{} {options}", table.definition()));
        Some(table)
    }

    fn definition(&self) -> String {
        format!("CREATE TABLE {}.t {COLUMNS}", self.keyspace)
    }

    fn run(&self, statement: &str) {
        self.runtime.block_on(self.session.query_unpaged(statement, ())).expect(statement);
    }

    /// Writes a partition, and lets the server flush it.
    fn flush(&self, p: u32, rows: u32) {
        for c in 0..rows {
            self.run(&format!(
                "INSERT INTO {}.t (p, c, v, l) VALUES ({p}, {c}, 'v{c}', [{c}, {p}])",
                self.keyspace
            ));
        }
        self.nodetool(&["flush", self.keyspace]);
    }

    fn nodetool(&self, arguments: &[&str]) {
        let script = marquetry_testing::root().join("dev/cassandra.sh");
        let output =
            Command::new(script).arg("nodetool").arg(&self.directory).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Where a watcher of [`Table::watch`] has its state and its links.
    fn work(&self, keep: &str) -> PathBuf {
        self.directory.join(format!("data/work-{}-{keep}", self.keyspace))
    }

    /// The server's data directory, and the table's.
    fn data(&self) -> PathBuf {
        self.directory.join("data/data")
    }

    /// By its identifier: of a table of this name that was dropped, the server keeps the directory.
    fn path(&self) -> PathBuf {
        let statement =
            "SELECT CAST(id AS text) FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 't'";
        let answer = self.runtime.block_on(self.session.query_unpaged(statement, (self.keyspace,))).unwrap();
        let (id,): (String,) = answer.into_rows_result().unwrap().single_row().unwrap();
        self.data().join(self.keyspace).join(format!("t-{}", id.replace('-', "")))
    }

    /// A watcher of the keyspace.
    fn watch(&self, folder: &Folder, keep: &str, more: &[&str]) -> Command {
        let mut command = marquetry();
        command.arg("watch").arg(self.data()).args(["--table", self.keyspace, "--keep", keep]);
        command.arg("--work").arg(self.work(keep));
        command.args(["--to", &folder.path(keep), "--quiet"]).args(more);
        command
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!("DROP KEYSPACE {}", self.keyspace));
        }
        for keep in ["flushes", "current"] {
            let _ = fs::remove_dir_all(self.work(keep));
        }
    }
}

/// A process that is killed when the test is done with it.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn of(mut command: Command) -> Running {
        Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The Parquet files below a directory, by their names.
fn parquet_files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => directories.push(path),
                path if path.extension().is_some_and(|ending| ending == "parquet") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// The same, once there are so many.
pub(crate) fn files(folder: &Path, count: usize) -> Vec<PathBuf> {
    let started = Instant::now();
    loop {
        let found = parquet_files(folder);
        if found.len() == count {
            return found;
        }
        assert!(started.elapsed() < LONG, "{} files, not {count}", found.len());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The SSTables of a table.
pub(crate) fn sstables(table: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(table).unwrap().map(|file| file.unwrap().path());
    let mut data: Vec<PathBuf> = all.filter(|path| path.to_string_lossy().ends_with("-Data.db")).collect();
    data.sort();
    data
}

/// Fails unless a file has what an SSTable has, in columns of the table's names and types.
pub(crate) fn expect_same(definition: &str, sstable: &Path, file: &Path) {
    let (folder, address) = (Folder::new(), format!("sstable:{}", sstable.display()));
    let copy = folder.path("copy.parquet");
    run(["copy", &address, &copy, "--schema", definition, "--quiet"]).succeeded();
    run(["diff", &copy, file.to_str().unwrap(), "--strict"]).succeeded();
}

/// The SSTables that a set of files is of: `nb-3-big` of `nb-3-big-Data.db`, and of `nb-3-big-77d0e001.parquet`.
fn stems(files: &[PathBuf]) -> BTreeSet<String> {
    let names = files.iter().map(|path| path.file_stem().unwrap().to_str().unwrap());
    names.map(|name| name.rsplit_once('-').unwrap().0.to_owned()).collect()
}

/// Waits until the files below a directory are those of a table's SSTables, and of those in `more`, and of none in `without`. How many these are is
/// the server's affair: it flushes every table when a test beside this one drops its own.
fn expect_files(
    folder: &Path,
    table: &Path,
    more: &BTreeSet<String>,
    without: &BTreeSet<String>,
) -> Vec<PathBuf> {
    let started = Instant::now();
    loop {
        let (there, wanted) = (parquet_files(folder), stems(&sstables(table)));
        let wanted: BTreeSet<String> = wanted.difference(without).chain(more).cloned().collect();
        if stems(&there) == wanted && there.len() == wanted.len() {
            return there;
        }
        assert!(started.elapsed() < LONG, "{there:?}, not {wanted:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn flushes_of_a_real_server_become_files() {
    let off = "WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}";
    let Some(table) = Table::fresh("marquetry_watch", off) else { return };
    let (folder, path, none) = (Folder::new(), table.path(), BTreeSet::new());
    let (flushes, current) = (folder.root().join("flushes"), folder.root().join("current"));
    // So that the watchers know the node: on a busy machine, the log of the compaction below comes and goes unseen.
    table.nodetool(&["flush", "system", "local"]);
    let watchers = ["flushes", "current"].map(|keep| Running::of(table.watch(&folder, keep, &[])));
    for p in 0..3 {
        table.flush(p, 50 * (p + 1));
        assert!(expect_files(&flushes, &path, &none, &none).len() > p as usize);
        expect_files(&current, &path, &none, &none);
    }
    table.run("DELETE FROM marquetry_watch.t WHERE p = 0 AND c > 40");
    table.run("UPDATE marquetry_watch.t USING TTL 100000 SET s = 7 WHERE p = 1");
    table.nodetool(&["flush", "marquetry_watch"]);
    // Each has what its SSTable has.
    let all = expect_files(&flushes, &path, &none, &none);
    assert!(all.len() >= 4, "{all:?}");
    for sstable in sstables(&path) {
        let its = all
            .iter()
            .find(|file| stems(std::slice::from_ref(file)) == stems(std::slice::from_ref(&sstable)))
            .unwrap();
        expect_same(&table.definition(), &sstable, its);
    }
    expect_files(&current, &path, &none, &none);
    // What a compaction makes is nothing new, and all that there is.
    table.nodetool(&["compact", "marquetry_watch", "t"]);
    let one = files(&current, 1);
    // Those that it was made of may still be in the directory.
    let (flushed, compacted) = (stems(&all), stems(&one));
    let sstable = format!("{}-Data.db", compacted.first().unwrap());
    expect_same(&table.definition(), &path.join(sstable), &one[0]);
    // A flush after it is a file in both; the compaction's never was.
    table.flush(9, 5);
    assert!(expect_files(&current, &path, &none, &flushed).len() > 1);
    let later = expect_files(&flushes, &path, &flushed, &compacted);
    assert!(later.len() > all.len() && all.iter().all(|file| later.contains(file)), "files of flushes stay");
    drop(watchers);
    // Restarted, it has nothing to do.
    for keep in ["flushes", "current"] {
        let output = table.watch(&folder, keep, &["--once", "--json"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!((&last["converted"], &last["waiting"]), (&0.into(), &0.into()), "{text}");
    }
    assert_eq!(parquet_files(&flushes), later);
}

/// Flushes, compactions and a watcher that is killed at any moment: each flush is in one file, or else in that of what it was compacted into.
#[test]
#[ignore = "soak: some minutes beside a real server"]
fn nothing_is_lost_and_nothing_twice_when_the_watcher_is_killed() {
    const FLUSHES: u32 = 100;
    const ROWS: u32 = 20;
    let on = "WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 4}";
    let Some(table) = Table::fresh("marquetry_watch_soak", on) else { return };
    let folder = Folder::new();
    let flushes = folder.root().join("flushes");
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |most: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % most
    };
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| (0..FLUSHES).for_each(|p| table.flush(p, ROWS)));
        while !writing.is_finished() {
            let _watcher = Running::of(table.watch(&folder, "flushes", &[]));
            std::thread::sleep(Duration::from_millis(below(3_000)));
        }
        writing.join().unwrap();
    });
    let once = table.watch(&folder, "flushes", &["--once"]).output().unwrap();
    assert!(once.status.success(), "{}", String::from_utf8_lossy(&once.stderr));
    // How often each flush is in a file of its own, and in one of several.
    let (mut alone, mut together) = (BTreeMap::new(), BTreeMap::new());
    let mut directories = vec![flushes];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            if path.extension().is_none_or(|ending| ending != "parquet") {
                continue;
            }
            let where_rows = ["--where", "mutation.kind = 'row'", "--columns", "p", "--format", "csv"];
            let rows = [&["rows", path.to_str().unwrap(), "--quiet"][..], &where_rows].concat();
            let mut rows_of: BTreeMap<u32, u32> = BTreeMap::new();
            for line in run(rows).succeeded().lines().skip(1) {
                *rows_of.entry(line.parse().unwrap()).or_default() += 1;
            }
            let counts = if rows_of.len() == 1 { &mut alone } else { &mut together };
            for (p, rows) in rows_of {
                assert_eq!(rows, ROWS, "{p} in {}", path.display());
                *counts.entry(p).or_insert(0_u32) += 1;
            }
        }
    }
    for p in 0..FLUSHES {
        let (alone, together) = (alone.get(&p).copied(), together.get(&p).copied());
        assert!(alone == Some(1) || alone.is_none() && together.is_some(), "{p}: {alone:?} {together:?}");
    }
    // Most were noticed before a compaction could delete them.
    assert!(alone.len() > 90, "{} of their own, {} together", alone.len(), together.len());
}
