//! Clusters of real nodes, on addresses of loopback, which stop, come back and join while rows travel. Long tests (`make soak`).
//!
//! `MARQUETRY_NODES_ROWS` is how many rows there are, 200,000 unless it is set.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::time::Duration;

use marquetry_testing::{Need, skipped};
use scylla::client::session_builder::SessionBuilder;

use crate::common::{self, Folder, Run, run};
use crate::turn;

/// A cluster, each node with an address of its own.
struct Nodes {
    folder: PathBuf,
    /// The ports of CQL and of gossip, which are the same for all.
    ports: [u16; 2],
    started: Vec<u8>,
    /// Until they are stopped: the tests have the same addresses.
    _turn: MutexGuard<'static, ()>,
}

impl Nodes {
    /// `None`, put on record, where there is no Java or no Maven to run them.
    fn start(count: u8) -> Option<Nodes> {
        let succeeds = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
        };
        if !succeeds(script().arg("java")) || !succeeds(script().arg("fetched")) {
            skipped(Need::Cassandra);
            return None;
        }
        let turn = turn();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nodes");
        // What an earlier run that was killed may have left.
        for node in 1..=9 {
            let directory = folder.join(node.to_string());
            if directory.exists() {
                assert!(succeeds(script().arg("stop").arg(directory)));
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
        let listeners = [(); 2].map(|()| TcpListener::bind("0.0.0.0:0").unwrap());
        let ports = listeners.map(|it| it.local_addr().unwrap().port());
        let mut nodes = Nodes { folder, ports, started: Vec::new(), _turn: turn };
        (1..=count).for_each(|node| nodes.begin(node));
        Some(nodes)
    }

    fn directory(&self, node: u8) -> PathBuf {
        self.folder.join(node.to_string())
    }

    /// The command that starts a node, which has its data if it ran before.
    fn starting(&self, node: u8) -> Command {
        let [cql, gossip] = self.ports.map(|port| port.to_string());
        let mut command = script();
        command.arg("start").arg(self.directory(node));
        command.args(["--address", &format!("127.0.0.{node}"), "--port", &cql, "--storage-port", &gossip]);
        if node > 1 {
            command.args(["--seed", &format!("127.0.0.1:{gossip}")]);
        }
        command.env("START_SECONDS", "400");
        command
    }

    fn begin(&mut self, node: u8) {
        self.started.push(node);
        assert!(self.starting(node).status().unwrap().success(), "node {node} did not start");
    }

    /// Starts a node, while other things happen.
    fn begin_beside(&mut self, node: u8) -> Child {
        self.started.push(node);
        self.starting(node).spawn().unwrap()
    }

    fn stop(&self, node: u8) {
        assert!(script().arg("stop").arg(self.directory(node)).status().unwrap().success());
    }

    fn address(&self, table: &str) -> String {
        let at = |node| format!("127.0.0.{node}:{}", self.ports[0]);
        format!("cql://{},{}/{table}", at(1), at(2))
    }

    fn run(&self, statements: &[&str]) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let at = format!("127.0.0.1:{}", self.ports[0]);
        runtime.block_on(async {
            let session = SessionBuilder::new().known_node(at).build().await.unwrap();
            for statement in statements {
                session.query_unpaged(*statement, ()).await.expect(statement);
            }
        });
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &self.started {
            let _ = script().arg("stop").arg(self.directory(*node)).status();
        }
    }
}

fn script() -> Command {
    Command::new(marquetry_testing::root().join("dev/cassandra.sh"))
}

fn started(arguments: &[&str]) -> Child {
    common::marquetry().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs a copy that goes on until it ends by itself; it is killed with -9 after each of these times.
fn killed_again_and_again(arguments: &[&str], kills_ms: &[u64], mut between: impl FnMut(usize)) -> Run {
    let mut kills = 0;
    for (number, kill) in kills_ms.iter().enumerate() {
        let mut child = started(arguments);
        std::thread::sleep(Duration::from_millis(*kill));
        match child.try_wait().unwrap() {
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
            // It was faster, or the cluster did not come back in time: then it goes on.
            Some(_) => {
                let ended = Run::of(child.wait_with_output().unwrap());
                assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.err);
            }
        }
        between(number);
    }
    assert!(kills * 2 > kills_ms.len(), "it ended too early to be killed: {kills} of {}", kills_ms.len());
    run(arguments)
}

/// The only server is stopped in the midst of a load, and of an unload, and is back after a while: both wait for it.
#[cfg(unix)]
#[test]
#[ignore = "soak: a server is stopped and started again, minutes"]
fn a_server_that_comes_back_is_waited_for() {
    const ROWS: u32 = 60_000;
    let Some(nodes) = Nodes::start(1) else { return };
    let folder = Folder::new();
    let lines: String = (0..ROWS).map(|row| format!("{row},text of {row}\n")).collect();
    let (csv, back) = (folder.write("rows.csv", format!("id,v\n{lines}")), folder.path("back.parquet"));
    nodes.run(&[
        "CREATE KEYSPACE nodes WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE nodes.t (id bigint PRIMARY KEY, v text)",
    ]);
    let table = nodes.address("nodes.t");
    // Twenty seconds of it, and those that the server is away.
    let restarted = |from: &str, to: &str| {
        let child = started(&["copy", from, to, "--rate", "3K", "--json", "--quiet"]);
        std::thread::sleep(Duration::from_secs(5));
        nodes.stop(1);
        std::thread::sleep(Duration::from_secs(5));
        assert!(nodes.starting(1).status().unwrap().success());
        let ended = Run::of(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let summary: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(summary["rows_written"], ROWS, "{summary}");
        summary
    };
    let loaded = restarted(&csv, &table);
    assert!(loaded["retries"].as_u64() > Some(0) && loaded["rows_rejected"] == 0, "{loaded}");
    restarted(&table, &back);
    run(["diff", &csv, &back, "--key", "id"]).succeeded();
}

/// Rows go to three nodes and back, exactly: the copies are killed, a node is stopped and comes back, and another joins.
#[cfg(unix)]
#[test]
#[ignore = "soak: a cluster of four nodes, minutes"]
fn nothing_is_lost_by_several_nodes() {
    let Some(mut nodes) = Nodes::start(3) else { return };
    let rows: u64 = std::env::var("MARQUETRY_NODES_ROWS").map_or(200_000, |rows| rows.parse().unwrap());
    let folder = Folder::new();
    let (csv, state) = (folder.path("rows.csv"), folder.path("load.state"));
    let lines: String = (0..rows).map(|row| format!("{row},text of {row},{}\n", row % 7)).collect();
    std::fs::write(&csv, format!("id,v,n\n{lines}")).unwrap();
    nodes.run(&[
        "CREATE KEYSPACE nodes WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE nodes.t (id bigint PRIMARY KEY, v text, n int)",
    ]);
    let to = nodes.address("nodes.t");

    // About a minute of it, whatever the machine is.
    let rate = (rows / 60).max(1).to_string();
    let arguments =
        ["copy", &csv, &to, "--rate", &rate, "--state", &state, "--resume", "--consistency", "QUORUM"];
    let mut coming_back = None;
    let kills = [6000, 9000, 4000, 7000, 5000, 8000, 3000, 6500, 4500, 7500];
    let ended = killed_again_and_again(&arguments, &kills, |number| match number {
        1 => nodes.stop(3),
        4 => coming_back = Some(nodes.begin_beside(3)),
        _ => {}
    });
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(coming_back.unwrap().wait().unwrap().success());
    let quorum = ["--consistency", "QUORUM"];
    let with = |arguments: &[&str]| run(arguments.iter().chain(&quorum));
    with(&["diff", &csv, &to, "--key", "id"]).succeeded();
    assert_eq!(with(&["count", &to]).succeeded(), format!("{rows}\n"));

    // Back, with another node down for a while, and one that joins meanwhile. A file appears about every eleven seconds.
    let (parts, state, rate) =
        (folder.path("parts"), folder.path("parts.state"), (rows / 90).max(1).to_string());
    let directory = format!("{parts}/");
    let arguments =
        ["copy", &to, &directory, "--rate", &rate, "--state", &state, "--resume", "--consistency", "QUORUM"];
    let (mut coming_back, mut joining) = (None, None);
    let kills = [14_000, 16_000, 13_000, 15_000, 14_000, 17_000];
    let ended = killed_again_and_again(&arguments, &kills, |number| match number {
        0 => nodes.stop(2),
        1 => coming_back = Some(nodes.begin_beside(2)),
        // A node joins when all others are there.
        2 => {
            assert!(coming_back.take().unwrap().wait().unwrap().success());
            joining = Some(nodes.begin_beside(4));
        }
        _ => {}
    });
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(joining.unwrap().wait().unwrap().success());
    run(["diff", &parts, &csv, "--key", "id"]).succeeded();
    assert_eq!(run(["count", &parts]).succeeded(), format!("{rows}\n"));
    assert!(Path::new(&parts).join("schema.cql").exists());
    // And the ring of four still has all of it.
    with(&["diff", &csv, &to, "--key", "id"]).succeeded();
}
