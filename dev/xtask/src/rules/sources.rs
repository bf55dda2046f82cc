//! Source files: their length, what is unfinished or switched off in them, and what is only true on one machine.

use crate::rust_text::{attributes, code_only, line_of};
use crate::workspace::File;

/// No file of `crates/*/src` is longer: files wanted splitting at about 800 lines.
pub const LINES_MAX: usize = 1000;

/// The command translates, and computes nothing: what grows beyond this belongs into the library. A third of it are the forms of what
/// `show` prints, for people and as JSON: each question about a file has its own. SSTables brought 350 lines: what `show` prints of them, and
/// their options. Loading into production brought 180: fifteen options with their help. Tables of clusters as sources brought 60: the options
/// of a connection, now of every command. New SSTables brought 120: their options. `watch` brought 300: fifteen options with their help, and its
/// events for people and as JSON. Encryption, copies in parts, what is missing, metrics and the summary as JSON brought 370: most of them
/// options with their help. Codecs and inboxes of `watch`, and what it says again, brought 50. What makes SSTables of rows of any kind
/// brought 20: the file of a definition, and whose options are whose. Options that would drop writes of SSTables brought 36.
/// What a state says of a load's options, each by its name, brought 228. Tablets, a manifest and several data directories brought 20: options with
/// their help. The layout of a table, and `show` of one that holds a file, brought 76; `show` of rows that hold others, 30. Secure
/// connect bundles, and what is said of a search, brought 12.
pub const COMMAND_LINES_MAX: usize = 9590;

/// Macros that stand for code which is not written, or was written to look at something.
const UNFINISHED: &[&str] = &["todo!", "unimplemented!", "dbg!"];

/// How tests would skip, or look for what they need, past `marquetry_testing`.
const OWN_SKIPS: &[&str] = &[
    "println!(\"skip",
    "println!(\"not tried",
    "(\"MARQUETRY_PYTHON\")",
    "(\"MARQUETRY_SPARK\")",
    "(\"MARQUETRY_CORPUS\")",
];

/// Where people's files, or a workplace's, are. (In pieces, so that this file passes its own rule.)
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Where values are printed: numbers as digits, days as dates.
const PRINTERS: &[&str] = &["crates/base/src/print/", "crates/base/src/calendar.rs"];

/// What only stands there: the crates that make digits, and the days of 400 years, by which dates are computed.
const PRINTING: &[&str] = &["itoa", "zmij", "ryu", "146_097", "calendar::civil"];

/// Printers of numbers and dates beside the one place for them, in a file of `crates/*/src`.
pub fn printers(path: &str, text: &str) -> Vec<String> {
    let is_printer = PRINTERS.iter().any(|place| path.starts_with(place));
    if is_printer || !path.starts_with("crates/") || !path.contains("/src/") {
        return Vec::new();
    }
    let code = code_only(text);
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let stands = |name: &&&str| {
        code.match_indices(**name)
            .any(|(at, _)| !code[..at].ends_with(is_part) && !code[at + name.len()..].starts_with(is_part))
    };
    let found = PRINTING.iter().filter(stands);
    found.map(|name| format!("{path}: `{name}`, where base::print should print")).collect()
}

/// Files of `crates/*/src` that are too long.
pub fn length(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let counted = path.starts_with("crates/") && path.contains("/src/") && lines > LINES_MAX;
    if counted {
        vec![format!("{path} has {lines} lines, more than {LINES_MAX}: split it")]
    } else {
        Vec::new()
    }
}

/// Files of the command, as paths and texts, that are too long together.
pub fn command_is_thin<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let own = files.filter(|(path, _)| path.starts_with("crates/cli/src/"));
    let lines: usize = own.map(|(_, text)| text.lines().count()).sum();
    let fault = format!(
        "crates/cli/src has {lines} lines, more than {COMMAND_LINES_MAX}: what computes belongs into the library"
    );
    (lines > COMMAND_LINES_MAX).then_some(fault).into_iter().collect()
}

/// Code that is not written, in a Rust file.
pub fn unfinished(path: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let mut faults = Vec::new();
    for name in UNFINISHED {
        for (at, _) in code.match_indices(name) {
            if !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                faults.push(format!("{path}:{}: `{name}`", line_of(&code, at) + 1));
            }
        }
    }
    faults
}

/// Tests that are switched off without a reason, in a Rust file.
pub fn ignored_tests(path: &str, text: &str) -> Vec<String> {
    attributes(&code_only(text))
        .into_iter()
        .filter(|found| {
            found.text == "ignore"
                || (found.text.starts_with("cfg_attr(") && found.text.ends_with(",ignore)"))
        })
        .map(|found| format!("{path}:{}: `#[ignore]` without a reason", found.first_line + 1))
        .collect()
}

/// Tests that are skipped in a manner of their own, in a Rust file: `marquetry_testing` puts on record what did not run.
pub fn skips(path: &str, text: &str) -> Vec<String> {
    if path.starts_with("dev/testing/") || path.starts_with("dev/xtask/") {
        return Vec::new();
    }
    let code = code_only(text);
    let mut faults = Vec::new();
    for own in OWN_SKIPS {
        for (at, _) in text.match_indices(own) {
            // Not in a comment: its quote is code.
            if code.as_bytes()[at + own.find('"').unwrap_or(0)] == b'"' {
                let line = line_of(text, at) + 1;
                faults.push(format!("{path}:{line}: a test is skipped by marquetry_testing, or runs"));
            }
        }
    }
    faults
}

/// Lints that are relaxed in a Rust file without saying why: by `reason = "…"`, or by a comment on the line or above.
pub fn relaxed_lints(path: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let code = code_only(text);
    let code_lines: Vec<&str> = code.lines().collect();
    let relaxes = |attribute: &str| {
        ["allow(", "expect("].iter().any(|level| {
            attribute.starts_with(level)
                || (attribute.starts_with("cfg_attr(") && attribute.contains(&format!(",{level}")))
        })
    };
    let commented = |first: usize, last: usize| {
        let above = first.checked_sub(1).map_or("", |line| lines[line].trim_start());
        let above = above.starts_with("//") && !above.starts_with("///") && !above.starts_with("//!");
        // What is on the line and not in its code is a comment.
        above || (lines[last].contains("//") && !code_lines[last].contains("//"))
    };
    attributes(&code)
        .into_iter()
        .filter(|found| relaxes(&found.text) && !found.text.contains("reason="))
        .filter(|found| !commented(found.first_line, found.last_line))
        .map(|found| format!("{path}:{}: `#[{}]` without a reason", found.first_line + 1, found.text))
        .collect()
}

/// Lints that are relaxed in a manifest without a comment on the line or above.
pub fn relaxed_manifest_lints(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut above, mut in_lints) = ("", false);
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            in_lints = line.contains("lints");
        }
        if in_lints && line.contains("\"allow\"") && !line.contains('#') && !above.starts_with('#') {
            faults.push(format!("{path}:{}: a lint is allowed without a reason", number + 1));
        }
        above = line.trim_start();
    }
    faults
}

/// Paths that exist on one machine only.
pub fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for place in MACHINE_PATHS {
            // After a name or a variable it is part of a longer, relative path; after a host, of a URL.
            let starts = |(at, _): (usize, &str)| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-})~/".contains(c))
            };
            if line.match_indices(place).any(starts) {
                faults.push(format!("{path}:{}: a path that starts with `{place}`", number + 1));
            }
        }
    }
    faults
}

/// Scripts that cannot be run.
pub fn scripts(file: &File) -> Vec<String> {
    let is_script = file.text.as_deref().is_some_and(|text| text.starts_with("#!/"));
    if is_script && !file.executable {
        vec![format!("{} starts with `#!` and is not executable", file.path)]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    #[test]
    fn a_command_that_grows_is_found() {
        let half = "x\n".repeat(COMMAND_LINES_MAX / 2);
        let own = [
            ("crates/cli/src/a.rs", &*half),
            ("crates/cli/src/b.rs", &*half),
            ("crates/io/src/c.rs", &*half),
        ];
        assert!(command_is_thin(own.into_iter()).is_empty());
        let faults = command_is_thin(own.into_iter().chain([("crates/cli/src/d.rs", "one more")]));
        let told = format!("has {} lines", COMMAND_LINES_MAX + 1);
        assert!(matches!(&*faults, [fault] if fault.contains(&told)), "{faults:?}");
    }

    #[test]
    fn long_files_are_found() {
        let text = "\n".repeat(LINES_MAX + 1);
        assert_eq!(length("crates/base/src/lib.rs", &text).len(), 1);
        assert_eq!(length("crates/base/tests/all.rs", &text), NONE);
        assert_eq!(length("crates/base/src/lib.rs", &text[1..]), NONE);
    }

    #[test]
    fn printers_elsewhere_are_found() {
        let text = "// zmij is quick\nout.extend(itoa::Buffer::new().format(1));\nlet itoas = 146_097;";
        let found = printers("crates/arrow/src/schema.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(printers("crates/base/src/print/mod.rs", text), NONE);
        assert_eq!(printers("dev/bench/src/main.rs", text), NONE);
    }

    #[test]
    fn unfinished_code_is_found() {
        assert_eq!(unfinished("a.rs", "// todo!()\nlet s = \"dbg!\";\nmy_dbg!(x);"), NONE);
        assert_eq!(unfinished("a.rs", "fn f() {\n    todo!()\n}"), ["a.rs:2: `todo!`"]);
        assert_eq!(unfinished("a.rs", "dbg!(unimplemented!())").len(), 2);
    }

    #[test]
    fn ignored_tests_without_a_reason_are_found() {
        assert_eq!(ignored_tests("a.rs", "#[ignore = \"takes an hour\"]\n/// ```ignore\nfn f() {}"), NONE);
        assert_eq!(ignored_tests("a.rs", "#[test]\n#[ignore]\nfn f() {}").len(), 1);
        assert_eq!(ignored_tests("a.rs", "#[cfg_attr(miri, ignore)]").len(), 1);
    }

    #[test]
    fn skips_past_the_record_are_found() {
        let own = "fn f() {\n    println!(\"skipped: no peers\");\n}";
        assert_eq!(skips("crates/a/tests/b.rs", own).len(), 1);
        assert_eq!(skips("crates/a/tests/b.rs", "env::var_os(\"MARQUETRY_PYTHON\")").len(), 1);
        assert_eq!(
            skips("crates/a/tests/b.rs", "// println!(\"skipped\")\nmarquetry_testing::python()"),
            NONE
        );
        assert_eq!(skips("dev/testing/src/lib.rs", own), NONE);
    }

    #[test]
    fn relaxed_lints_without_a_reason_are_found() {
        assert_eq!(relaxed_lints("a.rs", "#[allow(dead_code, reason = \"a twin\")]"), NONE);
        assert_eq!(relaxed_lints("a.rs", "// The other platform has it.\n#[allow(dead_code)]"), NONE);
        assert_eq!(relaxed_lints("a.rs", "#![allow(dead_code)] // a twin"), NONE);
        assert_eq!(relaxed_lints("a.rs", "/// What it is.\n#[allow(dead_code)]\nfn f() {}").len(), 1);
        assert_eq!(relaxed_lints("a.rs", "x\n#[expect(\n    dead_code\n)]").len(), 1);
        assert_eq!(relaxed_lints("a.rs", "\n#[cfg_attr(not(test), allow(dead_code))]").len(), 1);
        assert_eq!(relaxed_lints("a.rs", "#[must_use]\n#[derive(Debug)]"), NONE);
    }

    #[test]
    fn relaxed_lints_of_a_manifest_are_found() {
        let bare = "[lints.clippy]\nx = \"warn\"\npedantic = \"allow\"\n";
        assert_eq!(
            relaxed_manifest_lints("Cargo.toml", bare),
            ["Cargo.toml:3: a lint is allowed without a reason"]
        );
        assert_eq!(
            relaxed_manifest_lints("Cargo.toml", &bare.replace("\npedantic", "\n# Why.\npedantic")),
            NONE
        );
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let home = concat!("/ho", "me/");
        assert_eq!(machine_paths("a", &format!("open(\"{home}ada/x\")")).len(), 1);
        assert_eq!(
            machine_paths("a", &format!("see https://example.com{home}ada and $base{home} and ..{home}")),
            NONE
        );
    }

    #[test]
    fn scripts_that_cannot_run_are_found() {
        let file = File { path: "a.sh".to_owned(), text: Some("#!/bin/sh\n".to_owned()), executable: false };
        assert_eq!(scripts(&file).len(), 1);
        assert_eq!(scripts(&File { executable: true, ..file }), NONE);
    }
}
