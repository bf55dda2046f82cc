//! Where things are, and how C is compiled.

pub(crate) mod host;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The crate's folder.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The folder in which cargo has built the library that belongs to this test.
pub(crate) fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_path_buf()
}

/// The shared library.
pub(crate) fn shared() -> PathBuf {
    let path = built().join("libmarquetry_c.so");
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

/// A compiler of a language, C or C++.
#[derive(Debug, Clone)]
pub(crate) struct Compiler {
    pub(crate) name: &'static str,
    pub(crate) standard: &'static str,
}

/// The compilers of C that this machine has. None is on record as skipped.
pub(crate) fn c() -> Vec<Compiler> {
    found(&["gcc", "clang"], "-std=c11")
}

/// Those of C++.
pub(crate) fn cxx() -> Vec<Compiler> {
    found(&["g++", "clang++"], "-std=c++20")
}

fn found(names: &[&'static str], standard: &'static str) -> Vec<Compiler> {
    let works =
        |name: &&&str| Command::new(**name).arg("--version").output().is_ok_and(|it| it.status.success());
    let all: Vec<Compiler> = names.iter().filter(works).map(|&name| Compiler { name, standard }).collect();
    if all.is_empty() {
        marquetry_testing::skipped(marquetry_testing::Need::Compiler);
    }
    all
}

impl Compiler {
    /// Compiles sources to a program in a folder, against the shared library, with every warning an error.
    pub(crate) fn compile(&self, sources: &[PathBuf], more: &[&str], folder: &Path) -> PathBuf {
        let program = folder.join(format!("{}-{}", sources[0].file_stem().unwrap().display(), self.name));
        let mut command = Command::new(self.name);
        // Optimised C++ with sanitizers takes three times as long to compile, and finds nothing more.
        let optimised = if self.standard.contains("++") { "-O0" } else { "-O1" };
        command
            .arg(self.standard)
            .args([optimised, "-g1", "-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(more);
        // Clang's check of the types of functions cannot be compiled with coroutines (clang 14).
        if self.name.starts_with("clang") && more.iter().any(|flag| flag.contains("undefined")) {
            command.arg("-fno-sanitize=function");
        }
        command.arg("-I").arg(self::folder().join("include")).args(sources).arg(shared());
        command.arg(format!("-Wl,-rpath,{}", built().display())).arg("-o").arg(&program);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
        program
    }
}

/// Runs a program, which must succeed: what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output: Output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// The text of a file, or empty.
pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Compares with what is committed, or writes it, if `MARQUETRY_UPDATE` is set.
pub(crate) fn committed(path: &Path, made: &str) {
    if std::env::var_os("MARQUETRY_UPDATE").is_some() {
        std::fs::write(path, made).unwrap();
    }
    if text(path) != made {
        let first = text(path).lines().zip(made.lines()).position(|(a, b)| a != b).map_or(0, |at| at + 1);
        panic!(
            "{} is not what comes of the sources, from line {first} on: MARQUETRY_UPDATE=1",
            path.display()
        );
    }
}
