//! Programs in C and C++, compiled with every warning and run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, folder};

fn example(name: &str) -> PathBuf {
    folder().join("examples").join(name)
}

/// Rows of a file, as the Rust reader counts them.
fn rows(path: &Path) -> marquetry_base::Result<u64> {
    use marquetry_base::{Bytes, Limits, Object};
    use marquetry_io::{ByteSources, drive, memory::Memory};
    use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
    let bytes = Bytes::from(std::fs::read(path).unwrap());
    let sources = ByteSources::new().with(Object(0), Memory::new("file", bytes));
    let metadata = drive(&mut FooterReader::new(Object(0), Limits::DEFAULT), &sources)?.unwrap();
    let codecs = std::sync::Arc::new(marquetry_codecs::StandardCodecs::default());
    let mut to_arrow = marquetry_arrow::ToArrow::of_file(&metadata, None, Default::default())?;
    let mut reader = BatchReader::new(Object(0), metadata, codecs, ReadOptions::default())?;
    let mut rows = 0;
    while let Some(batch) = drive(&mut reader, &sources)? {
        rows += marquetry_base::cast::u64_of(to_arrow.record_batch(&batch)?.num_rows());
    }
    Ok(rows)
}

#[test]
fn c_reads_what_rust_reads() {
    let Some(corpus) = marquetry_testing::corpus() else { return };
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus.join("parquet-testing/data"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "parquet"))
        .collect();
    files.sort();
    assert!(files.len() > 40);
    let scratch = tempfile::tempdir().unwrap();
    for compiler in common::c() {
        let program = compiler.compile(&[example("read.c")], &[], scratch.path());
        let (mut read, mut failed) = (0, 0);
        for file in &files {
            let output = Command::new(&program).arg(file).output().unwrap();
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            match rows(file) {
                Ok(rows) => {
                    assert_eq!(out, format!("{rows} rows\n"), "{}: {err}", file.display());
                    read += 1;
                }
                Err(error) => {
                    // Its driver adds the name of the file, which the library does not know.
                    let said = error.to_string().replace(", file)", ")").replace(" (file)", "");
                    assert_eq!(
                        (err.trim_end(), output.status.code()),
                        (&*said, Some(1)),
                        "{}",
                        file.display()
                    );
                    failed += 1;
                }
            }
        }
        assert!(read > 40, "{read} were read, {failed} were not");
    }
}

/// 40 lines each, which docs/c.md shows.
#[test]
fn the_examples_that_the_document_shows() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let document = common::text(&folder().join("../../docs/c.md"));
    for (name, language) in [("sum.c", "c"), ("count.cc", "cpp")] {
        let source = common::text(&example(name));
        assert!(document.contains(&format!("```{language}\n{source}```\n")), "{name} is not in docs/c.md");
        assert!((20..=40).contains(&source.lines().count()), "{name}");
    }
    let failed = |program: &Path, file: &Path, word: &str| {
        let output = Command::new(program).arg(file).arg(word).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let none = scratch.path().join("none");
    std::fs::write(&none, b"PAR1PAR1").unwrap();
    for compiler in common::c() {
        let sum = compiler.compile(&[example("sum.c")], &[], scratch.path());
        assert_eq!(common::run(Command::new(&sum).arg(&file).arg("id")), "124750\n");
        assert!(failed(&sum, &file, "name").ends_with("name: no column of bigints\n"));
        assert!(failed(&sum, &file, "nix").ends_with("columns: no column is called nix\n"));
        assert!(failed(&sum, &none, "id").ends_with("the smallest has 12\n"));
    }
    for compiler in common::cxx() {
        let count = compiler.compile(&[example("count.cc")], &[], scratch.path());
        assert_eq!(
            common::run(Command::new(&count).arg(&file).arg("id < 100 AND name IS NULL")),
            "15 rows\n"
        );
        assert!(failed(&count, &file, "nix = 1").starts_with("predicate: there is no column nix"));
        assert!(failed(&count, &none, "id = 1").ends_with("the smallest has 12\n"));
    }
}

#[test]
fn a_file_that_is_none_is_an_error_with_words() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("none");
    std::fs::write(&file, b"PAR1PAR1").unwrap();
    for compiler in common::c() {
        let program = compiler.compile(&[example("read.c")], &[], scratch.path());
        let output = Command::new(&program).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said, "a Parquet file of 8 bytes: the smallest has 12\n");
    }
}

/// A small file with strings, lists, nulls, and pages that are compressed with ZSTD.
fn small_file(folder: &Path) -> PathBuf {
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, Decimal128Array, Int64Array, ListArray, RecordBatch, StringViewArray};
    use std::sync::Arc;
    let lists = (0..500).map(|row| (row % 5 != 0).then(|| (0..row % 3).map(Some)));
    let table = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter_values(0..500)) as ArrayRef, false),
        (
            "name",
            Arc::new(StringViewArray::from_iter(
                (0..500).map(|it| (it % 7 != 0).then(|| format!("the name of {it}"))),
            )) as ArrayRef,
            true,
        ),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)) as ArrayRef, true),
        (
            "price",
            Arc::new(Decimal128Array::from_iter_values(0..500).with_precision_and_scale(20, 2).unwrap())
                as ArrayRef,
            true,
        ),
    ])
    .unwrap();
    let options = marquetry_c::abi::marquetry_writer_options {
        struct_size: size_of::<marquetry_c::abi::marquetry_writer_options>(),
        compression: c"zstd".as_ptr(),
        row_group_rows: 300,
        ..common::host::defaults()
    };
    let path = folder.join("small.parquet");
    std::fs::write(&path, common::host::write(&[table], &options).unwrap()).unwrap();
    path
}

#[test]
fn every_byte_is_the_hosts_and_a_refusal_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let Some(compiler) = common::c().into_iter().next() else { return };
    let program = compiler.compile(&[folder().join("tests/memory.c")], &["-Wno-pedantic"], scratch.path());
    let said = common::run(Command::new(&program).arg(&file).arg("97"));
    let [read, runs] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(read.starts_with("500 rows, "), "{said}");
    let runs: u32 = runs.strip_suffix(" runs").unwrap().parse().unwrap();
    assert!(runs > 20, "{said}");
}

#[test]
fn what_the_host_passes_in_may_be_large_and_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let Some(compiler) = common::c().into_iter().next() else { return };
    let program = compiler.compile(&[folder().join("tests/large.c")], &[], scratch.path());
    let said = common::run(Command::new(&program).arg(&file));
    let words: Vec<&str> = said.split_whitespace().collect();
    let [runs, "runs,", refused, "out", "of", "memory"] = words[..] else { panic!("{said}") };
    let [runs, refused] = [runs, refused].map(|it| it.parse::<u32>().unwrap());
    assert!(refused > 60 && runs > refused, "{said}");
}

#[test]
fn an_allocator_that_calls_the_library_is_a_misuse() {
    let scratch = tempfile::tempdir().unwrap();
    for compiler in common::c() {
        let program = compiler.compile(&[folder().join("tests/inside.c")], &[], scratch.path());
        let said = common::run(&mut Command::new(&program));
        assert!(said.ends_with(" calls\n"), "{said}");
    }
}

#[test]
#[ignore = "soak: every request of a read and a write is refused once, and with all that follow"]
fn every_single_request_may_be_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let Some(compiler) = common::c().into_iter().next() else { return };
    let program = compiler.compile(&[folder().join("tests/memory.c")], &["-Wno-pedantic"], scratch.path());
    common::run(Command::new(&program).arg(&file).arg("1"));
}

#[test]
fn cpp_copies_the_rows_that_a_predicate_wants() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    for compiler in common::cxx() {
        for more in [&[][..], &["-fno-exceptions", "-fno-rtti"][..]] {
            let program = compiler.compile(&[example("copy.cc")], more, scratch.path());
            let copied = scratch.path().join("copied.parquet");
            let said = common::run(
                Command::new(&program).arg(&file).arg(&copied).arg("id >= 100 AND name LIKE 'the name%'"),
            );
            assert_eq!((&*said, rows(&copied).unwrap()), ("343 rows\n", 343));
            let wrong = Command::new(&program).arg(&file).arg(&copied).arg("id >= 'x'").output().unwrap();
            let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
            assert_eq!(said, "predicate: 'x' is not a bigint, at byte 6 of the predicate\n");
        }
    }
}

#[test]
fn coroutines_share_a_thread() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    for compiler in common::cxx() {
        let program = compiler.compile(&[folder().join("tests/coroutine.cc")], &[], scratch.path());
        let said = common::run(Command::new(&program).arg(&file));
        assert_eq!(said, "4000 rows, in many turns\n");
    }
}

#[test]
fn a_loop_of_poll_reads() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    for compiler in common::c() {
        let source = folder().join("../../contrib/poll/read.c");
        let program = compiler.compile(&[source], &["-pthread"], scratch.path());
        assert_eq!(common::run(Command::new(&program).arg(&file)), "500 rows\n");
    }
}

/// The hosts' own side under AddressSanitizer and UndefinedBehaviorSanitizer, with every allocation of the library checked for leaks.
#[test]
fn sanitizers_find_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for compiler in common::c().into_iter().take(1) {
        let program = compiler.compile(&[example("read.c")], &sanitize, scratch.path());
        assert_eq!(common::run(Command::new(&program).arg(&file)), "500 rows\n");
    }
    for compiler in common::cxx().into_iter().take(1) {
        let program = compiler.compile(&[folder().join("tests/coroutine.cc")], &sanitize, scratch.path());
        assert_eq!(common::run(Command::new(&program).arg(&file)), "4000 rows, in many turns\n");
    }
}

#[test]
fn threads_read_at_the_same_time() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    for compiler in common::c() {
        let program = compiler.compile(&[folder().join("tests/threads.c")], &["-pthread"], scratch.path());
        assert_eq!(common::run(Command::new(&program).arg(&file)), "10000 rows, 0 lent\n");
    }
}

/// The hosts' own side: the library itself is not instrumented.
#[test]
#[ignore = "soak: under ThreadSanitizer"]
fn the_thread_sanitizer_finds_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let sanitize = ["-fsanitize=thread", "-pthread"];
    // It needs the addresses where it expects them, which not every kernel gives it.
    let run = |program: &Path| common::run(Command::new("setarch").arg("-R").arg(program).arg(&file));
    let tests = folder().join("tests");
    for compiler in common::c().into_iter().take(1) {
        let program = compiler.compile(&[tests.join("threads.c")], &sanitize, scratch.path());
        assert_eq!(run(&program), "10000 rows, 0 lent\n");
        let source = folder().join("../../contrib/poll/read.c");
        assert_eq!(run(&compiler.compile(&[source], &sanitize, scratch.path())), "500 rows\n");
    }
    for compiler in common::cxx().into_iter().take(1) {
        let program = compiler.compile(&[tests.join("coroutine.cc")], &sanitize, scratch.path());
        assert_eq!(run(&program), "4000 rows, in many turns\n");
    }
}

#[test]
fn what_is_installed_is_found_by_pkg_config_and_links_both_ways() {
    let Some(compiler) = common::c().into_iter().next() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let file = small_file(scratch.path());
    let prefix = scratch.path().join("prefix");
    let script = folder().join("../../dev/capi.sh");
    let install =
        |built: &Path| Command::new(&script).arg("install").arg(&prefix).arg(built).output().unwrap();
    // What tests link has no soname: programs would look for it where it was built.
    let refused = install(&common::built());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let soname =
        format!("libmarquetry.so.{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    assert!(!refused.status.success() && said.contains(&format!("no soname, not {soname}")), "{said}");
    assert!(!prefix.join("lib").exists(), "nothing is installed");
    // The same objects, linked as a package of somebody else's might: first with the soname of another version.
    let built = scratch.path().join("built");
    std::fs::create_dir(&built).unwrap();
    std::fs::copy(common::built().join("libmarquetry_c.a"), built.join("libmarquetry_c.a")).unwrap();
    let link = |soname: &str| {
        let mut command = Command::new(compiler.name);
        command.args(["-shared", &format!("-Wl,-soname,{soname}"), "-Wl,--whole-archive"]);
        command.arg(built.join("libmarquetry_c.a")).args([
            "-Wl,--no-whole-archive",
            "-lpthread",
            "-ldl",
            "-lm",
        ]);
        common::run(command.arg("-o").arg(built.join("libmarquetry_c.so")));
    };
    link("libmarquetry.so.7");
    let refused = install(&built);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(&format!("the soname libmarquetry.so.7, not {soname}")), "{said}");
    link(&soname);
    let installed = install(&built);
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let made = std::fs::read_to_string(prefix.join("lib/pkgconfig/marquetry.pc")).unwrap();
    assert!(made.contains("Libs: -L${libdir} -lmarquetry\n"), "{made}");
    let program = scratch.path().join("static");
    let mut command = Command::new(compiler.name);
    command.arg(compiler.standard).arg("-I").arg(prefix.join("include")).arg(example("read.c"));
    command.arg(prefix.join("lib/libmarquetry.a")).args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
    common::run(&mut command);
    assert_eq!(common::run(Command::new(&program).arg(&file)), "500 rows\n");
    let program = scratch.path().join("shared");
    let mut command = Command::new(compiler.name);
    command.arg(compiler.standard).arg("-I").arg(prefix.join("include")).arg(example("read.c"));
    command.arg("-L").arg(prefix.join("lib")).args(["-lmarquetry", "-o"]).arg(&program);
    common::run(&mut command);
    let mut found = Command::new(&program);
    found.env("LD_LIBRARY_PATH", prefix.join("lib")).arg(&file);
    assert_eq!(common::run(&mut found), "500 rows\n");
}

/// Memory that is read after it was freed, read before it was written, or lost.
#[test]
#[ignore = "soak: the corpus under valgrind"]
fn valgrind_finds_nothing() {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|it| it.status.success()) {
        marquetry_testing::skipped(marquetry_testing::Need::Valgrind);
        return;
    }
    let Some(corpus) = marquetry_testing::corpus() else { return };
    let Some(compiler) = common::c().into_iter().next() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let program = compiler.compile(&[example("read.c")], &[], scratch.path());
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus.join("parquet-testing/data"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "parquet"));
    files.push(small_file(scratch.path()));
    for file in files.iter().filter(|file| rows(file).is_ok()) {
        let checks = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "-q"];
        common::run(Command::new("valgrind").args(checks).arg(&program).arg(file));
    }
}
