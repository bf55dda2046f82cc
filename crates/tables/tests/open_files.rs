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
const FILES: i32 = 300;
const LIMIT: &str = "64";

/// Numbers that each become a directory.
struct Numbers(Table, [Piece; 1]);

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
        Ok(Box::new(Once(Some(Batch::of_values([numbers.clone().into(), numbers.into()])?))))
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

#[test]
fn many_files_under_a_low_limit() {
    let folder = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let script = format!("ulimit -S -n {LIMIT} && exec \"$0\" --exact in_the_child");
    let output =
        Command::new("sh").args(["-c", &script]).arg(program).env(FOLDER, folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    let directories = fs::read_dir(folder.path().join("d")).unwrap();
    let files =
        directories.filter(|entry| entry.as_ref().unwrap().path().join("part-00000.parquet").is_file());
    assert_eq!(files.count(), usize::try_from(FILES).unwrap());
}

/// What [`many_files_under_a_low_limit`] runs; by itself it has nothing to do.
#[test]
fn in_the_child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let before = limit();
    assert!(before.split_whitespace().any(|word| word == LIMIT), "{before}");
    let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None)).required();
    let schema = Arc::new(Schema::of_fields(&[leaf("n"), leaf("m")]).unwrap());
    let source: Arc<dyn Source> = Arc::new(Numbers(Table::new("numbers", schema), [Piece::of("numbers")]));
    let mut options = DirectoryOptions::default();
    options.partition_by = ColumnPath::parse_list("n").unwrap();
    let mut directory = NewParquetDirectory::new(Path::new(&folder).join("d"), options).unwrap();
    let mut verified = CopyOptions::default();
    verified.verify = true;
    let copied = copy(&source, &mut directory, &verified, &mut |_| {}).unwrap();
    assert_eq!(copied.written.files, 300);
    assert_eq!(limit(), before);
}
