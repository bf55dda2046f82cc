//! The header is what cbindgen makes of the sources, and the ABI what `abi.txt` says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use crate::common::{self, committed, folder, run, shared, text};

#[test]
fn the_header_is_generated() {
    assert!(header().contains("marquetry_step"));
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    // What it names as its modules is read, too.
    let builder = cbindgen::Builder::new().with_config(config).with_src(folder().join("src/lib.rs"));
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

/// The header that is committed. Written first, if it is to be.
fn header() -> String {
    static MADE: std::sync::Once = std::sync::Once::new();
    MADE.call_once(|| committed(&folder().join("include/marquetry.h"), &generated()));
    text(&folder().join("include/marquetry.h"))
}

/// What the shared library exports, besides what the linker adds.
fn exported() -> BTreeSet<String> {
    let listed =
        run(Command::new("nm").args(["--dynamic", "--defined-only", "--format=posix"]).arg(shared()));
    listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_string).collect()
}

/// The functions that the header declares.
fn declared(header: &str) -> BTreeSet<String> {
    let words = header.split(|it: char| !(it.is_alphanumeric() || it == '_' || it == '('));
    words
        .filter_map(|word| Some(word.split_once('(')?.0.to_string()))
        .filter(|it| it.starts_with("marquetry_"))
        .collect()
}

#[test]
fn nothing_is_exported_but_what_the_header_declares() {
    if common::c().is_empty() {
        return;
    }
    let header = header();
    let (exported, declared) = (exported(), declared(&header));
    assert!(declared.len() > 30, "{declared:?}");
    assert_eq!(exported, declared);
}

/// The structs of the header, and their fields.
fn structs(header: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for part in header.split("typedef struct marquetry_").skip(1) {
        let Some((name, rest)) = part.split_once(" {\n") else { continue };
        if name.contains([';', '\n']) {
            continue;
        }
        let body = rest.split_once("\n} ").unwrap().0;
        let field = |line: &str| {
            let line = line.trim().strip_suffix(';')?;
            let name = match line.split_once("(*") {
                Some((_, after)) => after.split(')').next()?,
                None => line.rsplit([' ', '*']).next()?,
            };
            Some(name.to_string())
        };
        let mut fields = Vec::new();
        let mut statement = String::new();
        for line in body.lines().filter(|line| !line.trim_start().starts_with(['*', '/'])) {
            statement.push_str(line.trim());
            if statement.ends_with(';') {
                fields.extend(field(&statement));
                statement.clear();
            } else {
                statement.push(' ');
            }
        }
        found.push((format!("marquetry_{name}"), fields));
    }
    found
}

#[test]
fn the_abi_is_what_was_agreed() {
    let Some(compiler) = common::c().into_iter().next() else { return };
    let header = header();
    let structs = structs(&header);
    assert!(structs.len() > 12 && structs.iter().all(|(_, fields)| fields.len() > 1), "{structs:?}");
    let mut program = String::from("#include <marquetry.h>\n#include <stdio.h>\nint main(void) {\n");
    for (name, fields) in &structs {
        writeln!(program, "  printf(\"struct {name} %zu\\n\", sizeof({name}));").unwrap();
        for field in fields {
            writeln!(program, "  printf(\"  {field} %zu\\n\", offsetof({name}, {field}));").unwrap();
        }
    }
    program.push_str("  return 0;\n}\n");
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("abi.c");
    std::fs::write(&source, program).unwrap();
    let mut abi =
        String::from("# The ABI on 64-bit targets: structs with sizes and offsets, numbers, symbols.\n");
    abi.push_str("# MARQUETRY_UPDATE=1 cargo test -p marquetry-capi --test interface header\n");
    abi.push_str(&run(&mut Command::new(compiler.compile(&[source], &[], scratch.path()))));
    let numbers = header.lines().filter(|line| line.starts_with("  MARQUETRY_") && line.contains(" = "));
    numbers.for_each(|line| writeln!(abi, "{}", line.trim().trim_end_matches(',')).unwrap());
    exported().iter().for_each(|symbol| writeln!(abi, "symbol {symbol}").unwrap());
    committed(&folder().join("abi.txt"), &abi);
}
