//! A directory of many files is written within the number of files that the process may have open, which stays as it is.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory};
use marquetry_tables::{Batches, ColumnPath, CopyOptions, Piece, PieceOptions, Source, Table, copy};

/// Set in the child: where it writes.
const FOLDER: &str = "MARQUETRY_OPEN_FILES_FOLDER";
/// Set in it, too, if there are fewer directories than files.
const DIRECTORIES: &str = "MARQUETRY_OPEN_FILES_DIRECTORIES";
const FILES: i32 = 300;
const LIMIT: &str = "64";

/// Rows of as many directories.
struct Numbers(Table, [Piece; 1], i32);

struct Once(Option<Batch>);

impl Source for Numbers {
    fn table(&self) -> &Table {
        &self.0
    }

    fn pieces(&self) -> &[Piece] {
        &self.1
    }

    fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        let numbers: Vec<i32> = (0..FILES).collect();
        let directories: Vec<i32> = numbers.iter().map(|number| number % self.2).collect();
        Ok(Box::new(Once(Some(Batch::of_values([directories.into(), numbers.into()])?))))
    }
}

impl Batches for Once {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

/// The limit of open files: what holds, and how far it may be raised.
fn limit() -> String {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    limits.lines().find(|line| line.starts_with("Max open files")).unwrap().to_string()
}

/// Whether each directory has one, or each row of a few directories has one, while files of all of them are open.
#[test]
fn many_files_under_a_low_limit() {
    for directories in [FILES, 32] {
        let folder = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let script = format!("ulimit -S -n {LIMIT} && exec \"$0\" --exact open_files::in_the_child");
        let mut child = Command::new("sh");
        child.args(["-c", &script]).arg(program);
        child.env(FOLDER, folder.path()).env(DIRECTORIES, directories.to_string());
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{directories}: {said}");
        let below = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let found: Vec<_> = below(&folder.path().join("d")).collect();
        assert_eq!(found.len(), usize::try_from(directories).unwrap());
        let files = found.iter().flat_map(|path| below(path)).filter(|path| path.is_file());
        assert_eq!(files.count(), usize::try_from(FILES).unwrap());
    }
}

/// What [`many_files_under_a_low_limit`] runs; by itself it has nothing to do.
#[test]
fn in_the_child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let before = limit();
    assert!(before.split_whitespace().any(|word| word == LIMIT), "{before}");
    let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None)).required();
    let schema = Arc::new(Schema::of_fields(&[leaf("n"), leaf("m")]).unwrap());
    let directories = std::env::var(DIRECTORIES).unwrap().parse().unwrap();
    let table = Table::new("numbers", schema);
    let source: Arc<dyn Source> = Arc::new(Numbers(table, [Piece::of("numbers")], directories));
    let mut options = DirectoryOptions::default();
    options.file_rows = std::num::NonZeroU64::new(1);
    options.partition_by = ColumnPath::parse_list("n").unwrap();
    let mut directory = NewParquetDirectory::new(Path::new(&folder).join("d"), options).unwrap();
    let mut verified = CopyOptions::default();
    verified.verify = true;
    let copied = copy(&source, &mut directory, &verified, &mut |_| {}).unwrap();
    assert_eq!(copied.written.files, 300);
    assert_eq!(limit(), before);
}
