//! The fuzz target of the C interface, `dev/fuzz/door.c`: on its kept inputs, and on some hundreds that it makes of a seed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use marquetry_c::abi::marquetry_writer_options;

use crate::common::{self, folder};

/// The files that inputs are about. Kept inputs choose among the first four.
fn bases(folder: &Path) -> Vec<String> {
    let flat = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter_values(0..4000)) as ArrayRef, false),
        (
            "name",
            Arc::new(StringViewArray::from_iter(
                (0..4000).map(|it| (it % 7 != 0).then(|| format!("it's {}", it % 50))),
            )) as ArrayRef,
            true,
        ),
        ("price", Arc::new(Float64Array::from_iter_values((0..4000).map(f64::from))) as ArrayRef, true),
    ]);
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..700 {
        (0..row % 4).for_each(|it| lists.values().append_value(it));
        lists.append(row % 5 != 0);
    }
    let ids = Arc::new(Int64Array::from_iter_values(0..700)) as ArrayRef;
    let nested = RecordBatch::try_from_iter([("id", ids), ("list", Arc::new(lists.finish()) as ArrayRef)]);
    let (flat, nested) = (flat.unwrap(), nested.unwrap());
    let write = |name: &str, batch: &RecordBatch, options: marquetry_writer_options| {
        let path = folder.join(name);
        let options =
            marquetry_writer_options { struct_size: size_of::<marquetry_writer_options>(), ..options };
        std::fs::write(&path, common::host::write(std::slice::from_ref(batch), &options).unwrap()).unwrap();
        path.display().to_string()
    };
    let none = common::host::defaults::<marquetry_writer_options>;
    vec![
        write("flat", &flat, none()),
        write(
            "nested",
            &nested,
            marquetry_writer_options { compression: c"zstd".as_ptr(), row_group_rows: 300, ..none() },
        ),
        write(
            "plain",
            &nested,
            marquetry_writer_options { compression: c"none".as_ptr(), no_crc: 1, ..none() },
        ),
        write(
            "indexed",
            &flat,
            marquetry_writer_options {
                compression: c"gzip".as_ptr(),
                page_rows: 300,
                page_version: 2,
                ..none()
            },
        ),
    ]
}

fn target(scratch: &Path) -> Option<PathBuf> {
    let compiler = common::c().into_iter().next()?;
    let sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D_GNU_SOURCE"];
    Some(compiler.compile(&[folder().join("../../dev/fuzz/door.c")], &sanitize, scratch))
}

fn kept() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder().join("../../dev/fuzz/corpus/door")).unwrap();
    let mut kept: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
    kept.sort();
    assert!(kept.len() >= 20);
    kept
}

/// Runs inputs of a seed. What fails names the file that has the input.
fn run_seed(program: &Path, bases: &[String], seed: u32, runs: u32) {
    let keep = program.with_extension("input");
    let (seed, runs) = (seed.to_string(), runs.to_string());
    let done =
        Command::new(program).args(bases).args(["--seed", &seed, &runs]).env("DOOR_KEEP", &keep).output();
    let done = done.unwrap();
    assert!(
        done.status.success(),
        "{}\nthe input, as bytes: {:?}",
        String::from_utf8_lossy(&done.stderr),
        std::fs::read(&keep)
    );
    assert_eq!(String::from_utf8_lossy(&done.stdout), format!("{runs} inputs\n"));
}

fn replay(program: &Path, bases: &[String]) -> Output {
    Command::new(program).args(bases).arg("--replay").args(kept()).output().unwrap()
}

#[test]
fn kept_inputs_and_those_of_a_seed_are_borne() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(program) = target(scratch.path()) else { return };
    let mut bases = bases(scratch.path());
    let done = replay(&program, &bases);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // A harness that checks nothing would be noticed.
    for (canary, said) in [
        ("rows", " rows, not "),
        ("values", "other values than at once"),
        ("copies", "other values than at once, of what 3"),
    ] {
        let mut command = Command::new(&program);
        let planted =
            command.args(&bases).args(["--seed", "1", "800"]).env("CANARY", canary).output().unwrap();
        assert!(!planted.status.success(), "{canary}");
        assert!(String::from_utf8_lossy(&planted.stderr).contains(said), "{canary}");
    }
    bases.extend(sstables());
    run_seed(&program, &bases, 1, 800);
}

#[test]
#[ignore = "soak: the small files of the corpus, too"]
fn many_inputs_are_borne() {
    let scratch = tempfile::tempdir().unwrap();
    let (Some(program), Some(corpus)) = (target(scratch.path()), marquetry_testing::corpus()) else { return };
    let mut bases = bases(scratch.path());
    bases.extend(sstables());
    let entries =
        std::fs::read_dir(corpus.join("parquet-testing/data")).unwrap().map(|it| it.unwrap().path());
    let small = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() < 30_000);
    let mut files: Vec<String> = entries.filter(small).map(|path| path.display().to_string()).collect();
    files.sort();
    bases.extend(files.into_iter().filter(|file| file.ends_with(".parquet")).take(50));
    for seed in 2..12 {
        run_seed(&program, &bases, seed, 4000);
    }
}

/// Some SSTables of the fixtures: their files, with commas between.
fn sstables() -> Vec<String> {
    let Some(folders) = marquetry_testing::sstables() else { return Vec::new() };
    let files = |name: &str| {
        let entries = std::fs::read_dir(folders[0].join(name)).unwrap().map(|it| it.unwrap().path());
        let first =
            |path: &PathBuf| path.file_name().unwrap().to_string_lossy().split('-').nth(1) == Some("1");
        let mut files: Vec<String> = entries.filter(first).map(|path| path.display().to_string()).collect();
        files.sort();
        assert!(files.len() > 5, "{files:?}");
        files.join(",")
    };
    ["5.0.9-da-lz4/cnt", "3.11.19-me-none/cnt", "4.1.10-nb-snappy/cnt"].map(files).to_vec()
}
