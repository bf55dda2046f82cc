//! Objects of stores as sources and destinations: S3 and Azure, by real servers on loopback; HTTP.
//! (Google Cloud Storage has no server that can be run here.)

mod azure;
mod ceph;
#[path = "../common/mod.rs"]
mod common;
mod http;
mod s3;
mod s3_faults;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use common::{Run, marquetry};
use marquetry::batch::Batch;
use marquetry::parquet::write::WriteOptions;
use marquetry::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry::tables::parquet::ParquetOptions;

/// Rows of a file of numbers.
const ROWS: usize = 131_072;

/// The command with these variables, and none of those of whoever runs the tests.
fn command(variables: &[(&str, &str)]) -> Command {
    let mut command = marquetry();
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if ["AWS_", "AZURE_", "AZURITE_", "GOOGLE_"].iter().any(|ours| name_text.starts_with(ours)) {
            command.env_remove(&name);
        }
    }
    // No file of a user's, and no service of a cloud's machines.
    command.env("HOME", "/nonexistent").env("AWS_EC2_METADATA_DISABLED", "true");
    command.envs(variables.iter().copied());
    command
}

fn run_with<'a>(variables: &[(&str, &str)], arguments: impl IntoIterator<Item = &'a str>) -> Run {
    Run::of(command(variables).args(arguments).output().expect("the command runs"))
}

/// A Parquet file of as many columns (`c0`, `c1`, …) of numbers that nothing makes smaller, 1 MiB each in four row groups.
fn numbers(columns: usize) -> String {
    static MADE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("numbers-{columns}.parquet"));
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if made.insert(columns) {
        write_numbers(&path, columns);
    }
    path.to_str().unwrap().to_owned()
}

fn write_numbers(path: &Path, columns: usize) {
    let names: Vec<String> = (0..columns).map(|number| format!("c{number}")).collect();
    let field = |name: &String| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None)).required();
    let schema = Schema::of_fields(&names.iter().map(field).collect::<Vec<_>>()).unwrap();
    let mut options = ParquetOptions::default();
    options.overwrite = true;
    options.write = WriteOptions { row_group_rows: ROWS as u64 / 4, ..WriteOptions::default() };
    let mut writer = marquetry::Writer::with(path, schema, options).unwrap();
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ (state >> 29)).cast_signed()
    };
    for _ in 0..ROWS / 8192 {
        let values = (0..columns).map(|_| (0..8192).map(|_| next()).collect::<Vec<i64>>().into());
        writer.write(Batch::of_values(values.collect::<Vec<_>>()).unwrap()).unwrap();
    }
    writer.finish().unwrap();
}

/// A folder for files of a test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::create_dir_all(Path::new(&self.path(name)).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}
