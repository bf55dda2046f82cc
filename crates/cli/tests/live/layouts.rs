//! Layouts of a table of a cluster; `MARQUETRY_CASSANDRA=HOST:PORT` names the server.

use std::time::{Duration, Instant};

use marquetry_testing::cassandra;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

use crate::common::{Folder, marquetry, run};

const KEYSPACE: &str = "marquetry_cli_layouts";

struct Server {
    at: String,
    runtime: tokio::runtime::Runtime,
    session: Session,
    keyspace: &'static str,
}

impl Server {
    /// `None`, said aloud, when there is no server.
    fn fresh() -> Option<Server> {
        Server::fresh_in(KEYSPACE)
    }

    fn fresh_in(keyspace: &'static str) -> Option<Server> {
        let at = cassandra()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let session =
            runtime.block_on(SessionBuilder::new().known_node(&at).build()).expect("the server answers");
        let server = Server { at, runtime, session, keyspace };
        server.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
        server.run(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
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
        format!("cql://{}/{}.{table}", self.at, self.keyspace)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!("DROP KEYSPACE {}", self.keyspace));
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

#[test]
fn rows_within_rows() {
    let Some(server) = Server::fresh_in("marquetry_cli_laid") else { return };
    let folder = Folder::new();
    let rows = csv(&folder, "rows.csv", 20_000);
    let local = folder.path("local.parquet");
    run(["copy", &rows, &local, "--types", "square=decimal(20,0)"]).succeeded();
    for (layout, key) in [("wide", "v, id"), ("blob", "id")] {
        let table = server.address(layout);
        let copy = ["copy", &*local, &*table, "--layout", layout];
        run(copy).failed(1, &["--create creates it"]);
        run([&copy[..], &["--create"]].concat()).failed(2, &["must have a primary key", "--key"]);
        let out = run([&copy[..], &["--create", "--key", key]].concat()).succeeded();
        assert!(out.starts_with("20,000 rows loaded into "), "{out}");
        assert_eq!(run(["count", &table]).succeeded(), "20000\n");
        run(["diff", &local, &table]).succeeded();
        let found =
            run(["find", &table, "v = 'text of 345' AND id > 19000", "--format", "jsonl"]).succeeded();
        assert_eq!(found, "{\"id\":19345,\"square\":\"374229025\",\"v\":\"text of 345\"}\n");
        let one = run(["rows", &table, "--columns", "square", "--where", "id = 12", "--format", "jsonl"])
            .succeeded();
        assert_eq!(one, "{\"square\":\"144\"}\n");
        let shown = run(["show", &table]).succeeded();
        assert!(shown.contains(&format!("layout  {layout}")) && shown.contains("DECIMAL(20, 0)"), "{shown}");
        assert!(run(["show", &table, "--schema"]).succeeded().contains("square decimal(20, 0)"));
        let back = folder.path(&format!("{layout}.parquet"));
        run(["copy", &table, &back]).succeeded();
        run(["diff", &local, &back, "--key", "id"]).succeeded();
        run(["copy", &local, &table, "--layout", "rows"]).failed(1, &["the table has the layout"]);
        run(["copy", &local, &table, "--missing-only"]).failed(2, &["of the layout rows"]);
        run(["copy", &table, &folder.path("meta.parquet"), "--with-metadata"]).failed(2, &["wide and blob"]);
        run(["show", &table, "--pages", "id"]).failed(2, &["only files"]);
    }
    // Killed, and gone on with.
    let (table, state) = (server.address("killed"), folder.path("load.state"));
    let copy = ["copy", &*local, &*table, "--layout", "blob", "--create", "--key", "id", "--state", &*state];
    let mut slow = marquetry().args(copy).args(["--rate", "4K", "--quiet"]).spawn().unwrap();
    let began = Instant::now();
    while run(["count", &table]).out.trim().parse::<u64>().unwrap_or(0) < 3000 {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is written");
        std::thread::sleep(Duration::from_millis(50));
    }
    slow.kill().unwrap();
    slow.wait().unwrap();
    let resumed = marquetry().args(copy).args(["--resume", "--quiet"]).output().unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    run(["diff", &local, &table]).succeeded();
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
