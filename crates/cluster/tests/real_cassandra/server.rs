//! A test's own view of the server: plain CQL through the driver, nothing of the crate under test.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::value::{CqlValue, Row};
use tokio::runtime::Runtime;

/// A session, and the keyspace of the tests, which is made anew and dropped at the end.
pub(crate) struct Server {
    session: Session,
    runtime: Runtime,
    pub(crate) at: String,
}

/// The tests' keyspace: one, because making and dropping keyspaces takes a server seconds.
pub(crate) const KEYSPACE: &str = "cluster_test";

impl Server {
    pub(crate) fn connect(at: &str) -> Server {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let session = loop {
            // With it, the driver would fail on types whose names are quoted inside of others.
            let builder = SessionBuilder::new().known_node(at).fetch_full_schema_metadata(false);
            // For the one that asks for a password: the first user that each has.
            match runtime.block_on(builder.user("cassandra", "cassandra").build()) {
                Ok(session) => break session,
                // A server makes that user while it already listens.
                Err(error)
                    if format!("{error:?}").contains("AuthenticationError") && Instant::now() < deadline =>
                {
                    std::thread::sleep(Duration::from_millis(200));
                }
                Err(error) => panic!("{error}"),
            }
        };
        let server = Server { session, runtime, at: at.to_owned() };
        server.run(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"));
        server.run(&format!(
            "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        server
    }

    /// Runs a statement that must succeed.
    pub(crate) fn run(&self, statement: &str) {
        let shown: String = statement.chars().take(300).collect();
        self.runtime
            .block_on(self.session.query_unpaged(statement, ()))
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
    }

    /// All rows of a SELECT, column by name.
    pub(crate) fn select(&self, statement: &str) -> Vec<BTreeMap<String, Option<CqlValue>>> {
        let answer = self.runtime.block_on(self.session.query_unpaged(statement, ())).unwrap();
        let answer = answer.into_rows_result().unwrap();
        let names: Vec<String> =
            answer.column_specs().iter().map(|column| column.name().to_owned()).collect();
        let rows = answer.rows::<Row>().unwrap().map(Result::unwrap);
        rows.map(|row| names.iter().cloned().zip(row.columns).collect()).collect()
    }

    /// The one value of a SELECT.
    pub(crate) fn value(&self, statement: &str) -> Option<CqlValue> {
        let rows = self.select(statement);
        assert_eq!((rows.len(), rows[0].len()), (1, 1), "{statement}");
        rows.into_iter().next().unwrap().into_values().next().unwrap()
    }

    /// The number that a `SELECT count(*)` tells.
    pub(crate) fn count(&self, table: &str) -> i64 {
        match self.value(&format!("SELECT count(*) FROM {KEYSPACE}.{table}")) {
            Some(CqlValue::BigInt(rows)) => rows,
            other => panic!("no count: {other:?}"),
        }
    }

    /// The address of a table of the keyspace.
    pub(crate) fn address(&self, table: &str) -> marquetry_cluster::CqlAddress {
        format!("cql://{}/{KEYSPACE}.{table}", self.at).parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!("DROP KEYSPACE {KEYSPACE}"));
        }
    }
}
