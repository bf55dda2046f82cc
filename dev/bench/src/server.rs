//! A Cassandra of a benchmark's own, on the same machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

use crate::{clock, program};

/// The keyspace that it has.
pub const KEYSPACE: &str = "bench";

/// A server, and a connection to it. It is stopped when it is dropped.
pub struct Server {
    script: PathBuf,
    directory: PathBuf,
    /// Its host and port.
    pub at: String,
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Server {
    /// Starts it in a directory, without any tables, by `dev/cassandra.sh`.
    ///
    /// # Errors
    /// Those of the script, with what it printed; those of the connection.
    pub fn start(script: &Path, directory: &Path) -> Result<Server, String> {
        let yaml = directory.with_extension("yaml");
        // What is dropped needs no copy.
        std::fs::write(&yaml, "auto_snapshot: false\n")
            .map_err(|error| format!("{}: {error}", yaml.display()))?;
        let run = |command: &str| {
            let mut made = Command::new(script);
            made.arg(command).arg(directory);
            made
        };
        program::output(&mut run("stop"))?;
        let _ = std::fs::remove_dir_all(directory.join("data"));
        program::output(run("start").args(["--heap", "2g", "--yaml"]).arg(&yaml))?;
        let at = program::output(&mut run("where"))?.trim().to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let session = runtime.block_on(SessionBuilder::new().known_node(&at).build());
        let session = session.map_err(|error| error.to_string())?;
        let server =
            Server { script: script.to_owned(), directory: directory.to_owned(), at, runtime, session };
        server.run(&format!(
            "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ))?;
        Ok(server)
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// The server's, with the statement.
    pub fn run(&self, statement: &str) -> Result<(), String> {
        let done = self.runtime.block_on(self.session.query_unpaged(statement, ()));
        done.map(drop).map_err(|error| format!("{statement}: {error}"))
    }

    /// `nodetool`, for its arguments to follow.
    pub fn nodetool(&self) -> Command {
        let mut command = Command::new(&self.script);
        command.arg("nodetool").arg(&self.directory);
        command
    }

    /// The bytes of a table's files, as they are now: without snapshots.
    ///
    /// # Errors
    /// When it has none, or they cannot be looked at.
    pub fn table_bytes(&self, table: &str) -> Result<u64, String> {
        let keyspace = self.directory.join("data/data").join(KEYSPACE);
        let named = |error: std::io::Error| format!("{}: {error}", keyspace.display());
        let (mut bytes, mut files) = (0, 0);
        for directory in std::fs::read_dir(&keyspace).map_err(named)? {
            let directory = directory.map_err(named)?;
            // A table's directory is its name and its number; one of that name that was dropped may still be there.
            let name = directory.file_name();
            if name.to_str().and_then(|name| name.rsplit_once('-')).is_none_or(|(name, _)| name != table) {
                continue;
            }
            for file in std::fs::read_dir(directory.path()).map_err(named)? {
                let metadata = file.and_then(|file| file.metadata()).map_err(named)?;
                if metadata.is_file() {
                    (bytes, files) = (bytes + metadata.len(), files + 1);
                }
            }
        }
        if files == 0 { Err(format!("{}: {table} has no files", keyspace.display())) } else { Ok(bytes) }
    }

    /// The CPU time that its process has had.
    ///
    /// # Errors
    /// When `/proc` does not say it.
    pub fn cpu(&self) -> Result<Duration, String> {
        let pid = std::fs::read_to_string(self.directory.join("pid")).map_err(|error| error.to_string())?;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        let stat = stat.map_err(|error| format!("the server: {error}"))?;
        clock::process_state(&stat).map(|(_, cpu)| cpu).ok_or_else(|| format!("not understood: {stat}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new(&self.script).arg("stop").arg(&self.directory).status();
    }
}
