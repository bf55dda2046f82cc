//! Hosts in `contrib`, which need more than a compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use marquetry_c::abi::marquetry_writer_options;
use marquetry_testing::{Need, skipped};

use crate::common::{self, folder};

fn contrib(name: &str) -> PathBuf {
    folder().join("../../contrib").join(name)
}

/// 5,000 rows in row groups of 300.
fn small_file(folder: &Path) -> PathBuf {
    let table = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(0..5000)) as ArrayRef),
        (
            "name",
            Arc::new(StringViewArray::from_iter_values((0..5000).map(|id| format!("name {id}")))) as ArrayRef,
        ),
    ]);
    let options = marquetry_writer_options {
        struct_size: size_of::<marquetry_writer_options>(),
        compression: c"zstd".as_ptr(),
        row_group_rows: 300,
        ..common::host::defaults()
    };
    let path = folder.join("small.parquet");
    std::fs::write(&path, common::host::write(&[table.unwrap()], &options).unwrap()).unwrap();
    path
}

/// Whether a compiler finds a header.
fn has_header(compiler: &str, header: &str, folder: &Path) -> bool {
    let source = folder.join("has.cc");
    std::fs::write(&source, format!("#include <{header}>\n")).unwrap();
    let done = Command::new(compiler).args(["-std=c++20", "-E"]).arg(source).output();
    done.is_ok_and(|it| it.status.success())
}

#[test]
fn a_thread_per_core_reads_by_io_uring() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    for compiler in common::cxx() {
        if !has_header(compiler.name, "liburing.h", scratch.path()) {
            skipped(Need::Liburing);
            return;
        }
        for sanitize in [
            &["-Wl,--no-as-needed", "-luring", "-pthread"][..],
            &["-Wl,--no-as-needed", "-luring", "-pthread", "-fsanitize=address,undefined"],
        ] {
            let program = compiler.compile(&[contrib("uring/read.cc")], sanitize, scratch.path());
            for cores in ["1", "3"] {
                let done = Command::new(&program).arg(&file).arg(cores).output().unwrap();
                let said = String::from_utf8_lossy(&done.stderr).into_owned();
                if done.status.code() == Some(77) {
                    skipped(Need::Uring);
                    return;
                }
                assert!(done.status.success(), "{said}");
                assert_eq!(String::from_utf8_lossy(&done.stdout), "5000 rows\n");
                assert_eq!(said.lines().count().to_string(), cores, "{said}");
                assert!(said.lines().all(|line| line.contains("the timer rang ")), "{said}");
            }
            let none = scratch.path().join("none");
            std::fs::write(&none, b"PAR1PAR1").unwrap();
            let done = Command::new(&program).arg(&none).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(
                (done.status.code(), &*said),
                (Some(1), "a Parquet file of 8 bytes: the smallest has 12\n")
            );
        }
    }
}

/// The adapter for Seastar: by Seastar, where pkg-config finds it, or else by the stand-ins, whose reactor is a queue.
#[test]
fn the_adapter_for_seastar_copies_counts_and_is_aborted() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let include = |name: &str| format!("-I{}", contrib(name).display());
    let stand_in = format!("-isystem{}", contrib("seastar/stand-in").display());
    let adapter = include("seastar/include");
    for compiler in common::cxx() {
        let flags = match seastar() {
            Some(flags) => flags,
            None => {
                skipped(Need::Seastar);
                vec![stand_in.clone(), "-fsanitize=address,undefined".into()]
            }
        };
        let flags: Vec<&str> = [&*adapter].into_iter().chain(flags.iter().map(String::as_str)).collect();
        let copy = compiler.compile(&[contrib("seastar/tests/copy.cc")], &flags, scratch.path());
        let out = scratch.path().join("out.parquet");
        let ran = common::run(Command::new(copy).arg("--from").arg(&file).arg("--to").arg(&out));
        assert_eq!(ran, "5000 rows\n5000 records\naborted\n");
        let read = |path: &Path| common::host::read(&std::fs::read(path).unwrap(), std::ptr::null()).unwrap();
        let rows = |batches: Vec<RecordBatch>| {
            let columns = batches.iter().map(|it| format!("{:?}", it.columns())).collect::<String>();
            (batches.iter().map(RecordBatch::num_rows).sum::<usize>(), columns.contains("name 4999"))
        };
        assert_eq!(rows(read(&out)), rows(read(&file)));

        let program = compiler.compile(&[contrib("seastar/parquet2cql.cc")], &flags, scratch.path());
        let convert = |file: &Path| {
            Command::new(&program)
                .arg("--file")
                .arg(file)
                .args(["--table", "ks.t", "--pk", "row"])
                .output()
                .unwrap()
        };
        let text = String::from_utf8(convert(&file).stdout).unwrap();
        assert!(text.starts_with("CREATE TABLE ks.t ("), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with("INSERT INTO ks.t (row, id, name) VALUES (")).count(),
            5000
        );
        let missing = convert(&scratch.path().join("missing"));
        assert!(!missing.status.success() && !missing.stderr.is_empty());
        let usage = Command::new(&program).args(["--table", "t"]).output().unwrap();
        assert!(!usage.status.success());
    }
}

/// By the stand-ins, which can do what a disk does only now and then.
#[test]
fn the_adapter_for_seastar_closes_what_is_dropped_and_survives_what_fails() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let include = format!("-I{}", contrib("seastar/include").display());
    let stand_in = format!("-isystem{}", contrib("seastar/stand-in").display());
    for compiler in common::cxx() {
        let flags = [&*include, &*stand_in, "-fsanitize=address,undefined"];
        let late = compiler.compile(&[contrib("seastar/tests/late.cc")], &flags, scratch.path());
        let done =
            Command::new(late).arg("--from").arg(&file).arg("--to").arg(scratch.path().join("out")).output();
        let done = done.unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!((&*said, &*String::from_utf8_lossy(&done.stdout)), ("", "5000 rows\n"));
        assert!(done.status.success(), "{}", done.status);
    }
}

/// What compiles and links a program of Seastar, as pkg-config says.
fn seastar() -> Option<Vec<String>> {
    let done = Command::new("pkg-config").args(["--cflags", "--libs", "seastar"]).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.split_whitespace().map(str::to_string).collect())
}

/// Without Seastar CMake finds the library, builds nothing, and says so.
#[test]
fn cmake_says_what_is_not_built() {
    let has_cmake = Command::new("cmake").arg("--version").output().is_ok_and(|it| it.status.success());
    if !has_cmake || common::cxx().is_empty() {
        skipped(Need::Compiler);
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let (prefix, build) = (scratch.path().join("prefix"), scratch.path().join("build"));
    // The library's own package is tested where it is installed (`c.rs`).
    let package = prefix.join("lib/cmake/marquetry");
    std::fs::create_dir_all(&package).unwrap();
    let target = "add_library(marquetry::marquetry INTERFACE IMPORTED)\n";
    std::fs::write(package.join("marquetry-config.cmake"), target).unwrap();
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(contrib("seastar")).arg("-B").arg(&build);
    let said = common::run(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    assert!(said.contains("parquet2cql is not built") || seastar().is_some(), "{said}");
}
