//! Running the built command, and where files to run it on are.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The command, without the settings of whoever runs the tests.
pub(crate) fn marquetry() -> Command {
    command(env!("CARGO_BIN_EXE_marquetry"))
}

/// The same program by its other name.
pub(crate) fn parquet2cql() -> Command {
    command(env!("CARGO_BIN_EXE_parquet2cql"))
}

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_remove("COLUMNS").env_remove("NO_COLOR").env_remove("MARQUETRY_PASSWORD");
    command
}

/// What a run of `marquetry` said.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(output: Output) -> Run {
        Run {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
            err: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
        }
    }

    /// Fails the test unless the run succeeded in silence; its output.
    #[track_caller]
    pub(crate) fn succeeded(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// Fails the test unless the run failed with this code and one line that begins with `marquetry: ` and has these
    /// parts; its output.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, parts: &[&str]) -> String {
        assert_eq!(self.code, Some(code), "{}", self.err);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(self.err.starts_with("marquetry: ") || self.err.starts_with("parquet2cql: "), "{}", self.err);
        for part in parts {
            assert!(self.err.contains(part), "no {part:?} in {}", self.err);
        }
        assert!(!self.err.contains("panicked") && !self.err.contains("a bug"), "{}", self.err);
        self.out
    }
}

/// Runs `marquetry` with arguments.
pub(crate) fn run<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Run {
    Run::of(marquetry().args(arguments).output().expect("the command runs"))
}

/// A temporary folder.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    /// The paths of all files in it, hidden ones too, from it on and sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.root())
    }

    /// The path of a name in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.root().join(name).to_str().expect("a path in UTF-8").to_string()
    }

    /// Writes a file, and the folders that it is in; says where it is.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("the folder is made");
        fs::write(path, text).expect("the file is written");
        self.path(name)
    }
}

/// The paths of all files below a folder, from there on and sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names = below(folder, Path::new(""));
    names.sort();
    names
}

fn below(folder: &Path, prefix: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("a folder that stays");
        let name = prefix.join(entry.file_name());
        match entry.file_type().expect("a file or a folder").is_dir() {
            true => names.extend(below(&entry.path(), &name)),
            false => names.push(name.to_str().expect("a path in UTF-8").to_string()),
        }
    }
    names
}

/// A file of `tests/data`, which `make.py` there writes.
pub(crate) fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

/// A file of the corpus; `None`, put on record, when that part of it is not there.
pub(crate) fn corpus(name: &str) -> Option<String> {
    let path = marquetry_testing::corpus_file(name)?;
    Some(path.to_str().expect("a path in UTF-8").to_string())
}
