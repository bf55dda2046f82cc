//! A real Cassandra for a test: the one that is told, or one of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A running Cassandra; stopped when it is dropped, if it was started here.
pub(crate) struct Cassandra {
    /// HOST:PORT
    pub(crate) at: String,
    directory: Option<PathBuf>,
}

impl Cassandra {
    /// The server of `MARQUETRY_CASSANDRA=HOST:PORT`, or else a new one. `None`, with a message, where there is no Java or no
    /// Maven to run one.
    ///
    /// # Panics
    ///
    /// When there is Java and the server does not start: that is no reason to skip a test.
    pub(crate) fn find_or_start() -> Option<Cassandra> {
        if let Ok(at) = std::env::var("MARQUETRY_CASSANDRA") {
            return Some(Cassandra { at, directory: None });
        }
        Cassandra::start("cassandra", &[])
    }

    /// Starts a new one, in a directory of that name, with options of `dev/cassandra.sh`. `None` as above.
    ///
    /// # Panics
    ///
    /// As above.
    pub(crate) fn start(directory: &str, options: &[&OsStr]) -> Option<Cassandra> {
        let possible = succeeds(script().arg("java"))
            && (succeeds(script().arg("fetched")) || succeeds(Command::new("mvn").arg("--version")));
        if !possible {
            marquetry_testing::skipped(marquetry_testing::Need::Cassandra);
            return None;
        }
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory);
        // What an earlier run that was killed may have left.
        assert!(succeeds(script().arg("stop").arg(&directory)));
        let _ = std::fs::remove_dir_all(directory.join("data"));
        let mut server = Cassandra { at: String::new(), directory: Some(directory) };
        let directory = server.directory.as_ref().expect("was just set");
        let status =
            script().arg("start").arg(directory).args(options).status().expect("dev/cassandra.sh runs");
        assert!(status.success(), "Cassandra did not start");
        let output = script().arg("where").arg(directory).output().expect("dev/cassandra.sh runs");
        server.at = String::from_utf8(output.stdout).expect("is text").trim().to_owned();
        Some(server)
    }
}

impl Drop for Cassandra {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            let _ = script().arg("stop").arg(directory).status();
        }
    }
}

fn script() -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/cassandra.sh"))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
