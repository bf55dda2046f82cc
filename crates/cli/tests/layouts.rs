//! Layouts of a table of a cluster; `MARQUETRY_CASSANDRA=HOST:PORT` names the server.

mod common;

use std::time::{Duration, Instant};

use common::{Folder, marquetry, run};
use marquetry_testing::cassandra;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

const KEYSPACE: &str = "marquetry_cli_layouts";

struct Server {
    at: String,
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Server {
    /// `None`, said aloud, when there is no server.
    fn fresh() -> Option<Server> {
        let at = cassandra()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let session =
            runtime.block_on(SessionBuilder::new().known_node(&at).build()).expect("the server answers");
        let server = Server { at, runtime, session };
        server.run(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"));
        server.run(&format!(
            "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        Some(server)
    }

    fn run(&self, statement: &str) {
        self.runtime.block_on(self.session.query_unpaged(statement, ())).expect(statement);
    }

    /// How many partitions a table has.
    fn partitions(&self, table: &str) -> usize {
        let text =
            format!("SELECT DISTINCT version, column_number, row_group, shard FROM {KEYSPACE}.{table}");
        let answer = self.runtime.block_on(self.session.query_unpaged(text, ())).unwrap();
        answer.into_rows_result().unwrap().rows_num()
    }

    fn address(&self, table: &str) -> String {
        format!("cql://{}/{KEYSPACE}.{table}", self.at)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!("DROP KEYSPACE {KEYSPACE}"));
        }
    }
}

fn csv(folder: &Folder, name: &str, rows: u64) -> String {
    let text: String =
        (0..rows).map(|row| format!("{row},{},text of {}\n", row.wrapping_mul(row), row % 1000)).collect();
    folder.write(name, format!("id,square,v\n{text}"))
}

/// One test, because a table of one part is that of the next.
#[test]
fn a_parquet_file_within_a_table() {
    let Some(server) = Server::fresh() else { return };
    let folder = Folder::new();
    let table = server.address("t");
    let rows = csv(&folder, "rows.csv", 30_000);
    let local = folder.path("local.parquet");
    run(["copy", &rows, &local, "--row-group-rows", "10000"]).succeeded();
    let copy = ["copy", &*rows, &*table, "--layout", "columns", "--row-group-rows", "10000"];
    run(copy).failed(1, &["has no table marquetry_cli_layouts.t", "--create creates it"]);
    let out = run([&copy[..], &["--create"]].concat()).succeeded();
    assert!(out.starts_with("30,000 rows written to cql://") && out.contains("3 row groups"), "{out}");
    // Every command knows what it is.
    assert_eq!(run(["count", &table]).succeeded(), "30000\n");
    run(["diff", &local, &table]).succeeded();
    let found = run(["find", &table, "id = 12345", "--format", "jsonl"]).succeeded();
    assert_eq!(found, "{\"id\":12345,\"square\":152399025,\"v\":\"text of 345\"}\n");
    let explained = run(["find", &table, "id = 12345", "--explain"]).succeeded();
    assert!(explained.contains("2 row groups decided"), "{explained}");
    let first = run(["rows", &table, "--columns", "v,id", "-n", "1", "--format", "jsonl"]).succeeded();
    assert_eq!(first, "{\"v\":\"text of 0\",\"id\":0}\n");
    let back = folder.path("back.parquet");
    run(["copy", &table, &back, "--row-group-rows", "10000", "--verify"]).succeeded();
    assert!(std::fs::read(&back).unwrap() == std::fs::read(&local).unwrap());
    let shown = run(["show", &table]).succeeded();
    let of_file = run(["show", &local]).succeeded();
    let after_name = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(after_name(&shown), after_name(&of_file));
    assert!(run(["show", &table, "--pages", "id"]).succeeded().lines().count() > 3);
    assert!(run(["show", &table, "--column-stats", "--columns", "id"]).succeeded().contains("29999"));
    // What is there is replaced only if that is said.
    run(copy).failed(1, &["the table has a file already", "--overwrite replaces it"]);
    run(["copy", &rows, &table]).failed(1, &["--layout columns --overwrite writes it"]);
    run(["copy", &rows, &table, "--layout", "columns", "--key", "id"]).failed(2, &["--key is for"]);
    run(["copy", &rows, &local, "--layout", "columns"]).failed(2, &["--layout is for tables of a cluster"]);
    run(["rows", &table, "--token-range", "0:"]).failed(2, &["holds a Parquet file"]);
    assert_eq!(run(["count", &table]).succeeded(), "30000\n");
    killed(&server, &folder, &table, &local);
}

/// Killed while it is written, a new version is not there; and the next one drops what is left of it.
fn killed(server: &Server, folder: &Folder, table: &str, local: &str) {
    let before = server.partitions("t");
    // What no encoding makes small.
    let scattered = |row: u64| {
        row.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(23).wrapping_mul(0x1405_7b7e_f767_814f)
    };
    let text: String = (0..90_000).map(|row| format!("{row},{},v{:x}\n", row * 2, scattered(row))).collect();
    let more = folder.write("more.csv", format!("id,square,v\n{text}"));
    let copy = ["copy", &*more, table, "--layout", "columns", "--overwrite", "--row-group-rows", "10000"];
    let mut slow = marquetry();
    let mut slow = slow.args(copy).args(["--rate", "100KB", "--quiet"]).spawn().unwrap();
    let began = Instant::now();
    while server.partitions("t") < before + 4 {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is written");
        assert!(slow.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    slow.kill().unwrap();
    slow.wait().unwrap();
    assert_eq!(run(["count", table]).succeeded(), "30000\n");
    run(["diff", local, table]).succeeded();
    let left = server.partitions("t");
    assert!(left > before, "{left}");
    // As after an hour: nobody says any more that it is being written.
    server.run(&format!(
        "DELETE FROM {KEYSPACE}.t WHERE version = 00000000-0000-0000-0000-000000000000 AND column_number = -1
         AND row_group = 0 AND shard = 0 AND file_offset > 0"
    ));
    run(copy).succeeded();
    assert_eq!(run(["count", table]).succeeded(), "90000\n");
    // 9 row groups of 3 columns, their indexes, the footer, the map and what says which version is current.
    assert_eq!(server.partitions("t"), 9 * 3 + 9 + 3);
}
