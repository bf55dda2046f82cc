//! The plugin in a Cassandra of its own: `contrib/cassandra`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

use super::server::{expect_same, files, sstables};
use crate::common::{Folder, run};
use crate::turn;

/// No test waits longer for what must happen.
const LONG: Duration = Duration::from_secs(120);

pub(crate) const CREATE_INDEX: &str =
    "CREATE CUSTOM INDEX parquet ON k.t () USING 'com.marquetry.cassandra.MarquetryIndex'";
const TABLE: &str = "CREATE TABLE k.t (p int, c int, v text, s int static, l list<int>, PRIMARY KEY (p, c))";

/// A Cassandra with the plugin, which is stopped when the test is done with it.
pub(crate) struct Node {
    script: PathBuf,
    pub(crate) folder: Folder,
    options: Vec<String>,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) session: Option<Session>,
    /// Until it is stopped.
    _turn: MutexGuard<'static, ()>,
}

impl Node {
    /// Started, with a keyspace `k` and a table `k.t`.
    pub(crate) fn new() -> Option<Node> {
        Node::of(|_| None)
    }

    /// The same, with more of `cassandra.yaml`, by its folder.
    pub(crate) fn of(yaml: impl Fn(&Folder) -> Option<String>) -> Option<Node> {
        let script = marquetry_testing::cassandra_script()?;
        let folder = Folder::new();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let classes = folder.path("classes");
        let mut options = vec![
            "--classpath".to_owned(),
            classes.clone(),
            "--java".to_owned(),
            format!("-Dmarquetry.command={}", folder.path("marquetry")),
            "--java".to_owned(),
            format!("-Dmarquetry.to={}", folder.path("lake")),
        ];
        if let Some(yaml) = yaml(&folder) {
            options.extend(["--yaml".to_owned(), folder.write("more.yaml", yaml)]);
        }
        let mut node = Node { script, folder, options, runtime, session: None, _turn: turn() };
        node.script(&["plugin", &classes]);
        node.start();
        node.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        node.run(&format!(
            "{TABLE} WITH compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': false}}"
        ));
        Some(node)
    }

    pub(crate) fn script(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.script).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn directory(&self) -> String {
        self.folder.path("node")
    }

    fn start(&mut self) {
        let directory = self.directory();
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.script(&[&["start", &directory, "--address", "127.0.0.3"], &options[..]].concat());
        let at = self.script(&["where", &directory]);
        let builder = SessionBuilder::new().known_node(at.trim()).fetch_full_schema_metadata(false);
        self.session = Some(self.runtime.block_on(builder.build()).expect("the server answers"));
    }

    fn stop(&mut self) {
        self.session = None;
        self.script(&["stop", &self.directory()]);
    }

    pub(crate) fn run(&self, statement: &str) {
        let session = self.session.as_ref().expect("it runs");
        self.runtime.block_on(session.query_unpaged(statement, ())).expect(statement);
    }

    fn insert(&self, p: u32, rows: u32) {
        for c in 0..rows {
            self.run(&format!("INSERT INTO k.t (p, c, v, l) VALUES ({p}, {c}, 'v{c}', [{c}, {p}])"));
        }
    }

    pub(crate) fn flush(&self) {
        self.script(&["nodetool", &self.directory(), "flush", "k"]);
    }

    /// Lets the plugin find the command.
    #[cfg(unix)]
    pub(crate) fn install(&self) {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_marquetry"), self.folder.path("marquetry")).unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(Path::new(&self.directory()).join("log")).unwrap()
    }

    pub(crate) fn pid(&self) -> String {
        fs::read_to_string(Path::new(&self.directory()).join("pid")).unwrap().trim().to_owned()
    }

    pub(crate) fn data(&self) -> PathBuf {
        Path::new(&self.directory()).join("data/data")
    }

    pub(crate) fn table(&self) -> PathBuf {
        let mut tables = fs::read_dir(self.data().join("k")).unwrap().map(|table| table.unwrap().path());
        tables.find(|path| path.is_dir() && name(path).starts_with("t-")).unwrap()
    }

    pub(crate) fn lake(&self) -> PathBuf {
        self.folder.root().join("lake")
    }

    /// The file that lists what was seen.
    fn seen(&self) -> PathBuf {
        let seen = self.data().join(".marquetry-index/seen");
        let mut all = fs::read_dir(seen).unwrap().map(|file| file.unwrap().path());
        all.next().expect("the index's list")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the end of the server's log:");
            let log = fs::read_to_string(Path::new(&self.directory()).join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            lines.iter().skip(lines.len().saturating_sub(30)).for_each(|line| eprintln!("{line}"));
        }
        let _ = Command::new(&self.script).args(["stop", &self.directory()]).output();
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn stem(sstable: &Path) -> &str {
    sstable.file_name().unwrap().to_str().unwrap().strip_suffix("-Data.db").unwrap()
}

fn name(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

/// A name that the server uses again while the first flush of it still waits loses neither; what a dropped index leaves is converted after a restart.
#[test]
#[cfg(unix)]
#[ignore = "soak: a server of its own, which is restarted: a minute"]
fn names_that_a_server_uses_again_lose_no_flush() {
    let Some(mut node) = Node::new() else { return };
    node.run(CREATE_INDEX);
    // Another index, so that the plugin is there after the first one is dropped.
    node.run("CREATE TABLE k.u (p int PRIMARY KEY)");
    node.run("CREATE CUSTOM INDEX other ON k.u () USING 'com.marquetry.cassandra.MarquetryIndex' WITH OPTIONS = {'to': 'other'}");
    node.insert(1, 30);
    node.flush();
    let first = stem(&sstables(&node.table())[0]).to_owned();
    node.run("TRUNCATE k.t");
    node.run("ALTER TABLE k.t DROP v");
    node.stop();
    node.start();
    node.run("INSERT INTO k.t (p, c, l) VALUES (2, 1, [1])");
    node.flush();
    assert_eq!(stem(&sstables(&node.table())[0]), first, "the name is used again");
    // Nothing converts: the command is missing. Then the index is dropped, and the node restarted.
    node.run("DROP INDEX k.parquet");
    node.stop();
    node.install();
    node.start();
    let all = files(&node.lake(), 2);
    let count = |file: &PathBuf| run(["count", file.to_str().unwrap()]).succeeded();
    let of = |is_second: bool| all.iter().find(|file| name(file).contains("-20000000") == is_second).unwrap();
    assert_eq!((count(of(false)), count(of(true))), ("30\n".to_owned(), "1\n".to_owned()));
    // The first has the column that was dropped afterwards.
    let columns = |file: &PathBuf| run(["show", "--json", file.to_str().unwrap()]).succeeded();
    assert!(columns(of(false)).contains("\"v\"") && !columns(of(true)).contains("\"v\""));
    let links = node.data().join(".marquetry-index/inbox");
    let held = || {
        marquetry::io::files::list(&links)
            .unwrap()
            .into_iter()
            .filter(|(path, _)| path.to_string_lossy().ends_with("-Data.db"))
            .count()
    };
    wait_until("nothing is held", || held() == 0);
}

/// What the plugin does without a server: `contrib/cassandra/src/check`.
#[test]
#[cfg(unix)]
fn the_inbox_of_the_plugin_loses_nothing_and_keeps_nothing() {
    let Some(script) = marquetry_testing::cassandra_script() else { return };
    let folder = Folder::new();
    let output = Command::new(script).args(["check-plugin", &folder.path("check")]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("the inbox is right"), "{said}");
}

#[test]
#[cfg(unix)]
#[ignore = "soak: a server of its own, which is restarted: a minute"]
fn flushes_of_a_server_with_the_plugin_become_files() {
    let Some(mut node) = Node::new() else { return };
    node.run(CREATE_INDEX);
    // Without the command, flushes go on, and wait. That is logged once, though it is tried again and again.
    node.insert(1, 30);
    node.flush();
    let complaint = "cannot be run (-Dmarquetry.command names it)";
    wait_until("it is logged", || node.log().contains(complaint));
    node.insert(2, 20);
    node.run("DELETE FROM k.t WHERE p = 1 AND c > 20");
    node.run("UPDATE k.t USING TTL 100000 SET s = 7 WHERE p = 1");
    node.flush();
    assert_eq!(sstables(&node.table()).len(), 2);
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(node.log().matches(complaint).count(), 1);
    node.install();
    let first = files(&node.lake(), 2);
    for sstable in sstables(&node.table()) {
        let its = first.iter().find(|file| name(file).starts_with(stem(&sstable))).unwrap();
        expect_same(TABLE, &sstable, its);
    }
    // A partition's deletion alone, which no flush observer sees.
    node.run("DELETE FROM k.t WHERE p = 2");
    node.flush();
    let flushed = files(&node.lake(), 3);
    // What a compaction makes is no flush.
    node.script(&["nodetool", &node.directory(), "compact", "k", "t"]);
    node.insert(3, 10);
    // Restarted: what was in memory, and what the server wrote without a note of it.
    let lost = sstables(&node.table()).pop().unwrap();
    node.stop();
    let listed = fs::read_to_string(node.seen()).unwrap();
    assert!(listed.lines().any(|line| line == stem(&lost)), "{listed}");
    let listed: String =
        listed.lines().filter(|line| *line != stem(&lost)).map(|line| format!("{line}\n")).collect();
    fs::write(node.seen(), listed).unwrap();
    node.start();
    node.flush();
    let again = files(&node.lake(), 5);
    assert!(flushed.iter().all(|file| again.contains(file)), "{again:?}");
    let its = again.iter().find(|file| name(file).starts_with(stem(&lost))).unwrap();
    expect_same(TABLE, &lost, its);
    let new: Vec<&PathBuf> = again.iter().filter(|file| !flushed.contains(file) && *file != its).collect();
    assert_eq!(run(["count", new[0].to_str().unwrap()]).succeeded(), "10\n");
    let inbox = node.data().join(".marquetry-index/inbox/inbox/k");
    assert!(sstables(&fs::read_dir(inbox).unwrap().next().unwrap().unwrap().path()).is_empty());
    // Without the index there are no more files.
    node.run("DROP INDEX k.parquet");
    node.insert(4, 10);
    node.flush();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(files(&node.lake(), 5), again);
    assert!(fs::read_dir(node.data().join(".marquetry-index/seen")).unwrap().next().is_none());
}
