//! Every package alike: its name, licence, MSRV and lints, and the attributes at its root.

use crate::rust_text::{attributes, code_only};
use crate::workspace::Package;

/// Crates that are `no_std`: that, not a promise, is the proof that they do no I/O.
const NO_STD: &[&str] = &["base", "kernels", "parquet", "scylla", "text"];

/// Crates that may bring `std` back outside tests: kernels detects the CPU's features.
const STD_BY_FEATURE: &[&str] = &["kernels"];

/// Crates whose work is `unsafe`: vector instructions; a C ABI; Python's capsules.
const UNSAFE: &[&str] = &["kernels", "capi", "python"];

/// Crates that only deny `unsafe`, and the number of places that may allow it. base: its one audited module. bench:
/// calls into peers that are not Rust. testing: an allocator that counts. fuzz: counters in a section of the linker's. ceph: the door
/// to C++. rados: calls into librados.
const UNSAFE_PLACES: &[(&str, usize)] =
    &[("base", 1), ("bench", 1), ("ceph", 1), ("fuzz", 1), ("rados", 1), ("testing", 2)];

/// What a manifest inherits, so that it is decided once.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository"];

/// Faults of a package's name and manifest.
pub fn manifest(package: &Package) -> Vec<String> {
    let Package { folder, manifest, .. } = package;
    let mut faults = Vec::new();
    let short = package.short_name();
    let expected = if short == "marquetry" { short.to_owned() } else { format!("marquetry-{short}") };
    if package.name != expected {
        faults.push(format!("{folder} is called {}, not {expected}", package.name));
    }
    if package.description.split_whitespace().count() < 3 {
        faults.push(format!("{folder} has no description"));
    }
    if package.license.is_empty() || package.rust_version.is_empty() {
        faults.push(format!("{folder} has no license or no rust-version"));
    }
    for field in INHERITED {
        if !inherits(manifest, "package", field) {
            faults.push(format!("{folder}/Cargo.toml lacks `{field}.workspace = true`"));
        }
    }
    if !inherits(manifest, "", "lints") && !inherits(manifest, "lints", "") {
        faults.push(format!("{folder}/Cargo.toml lacks `[lints] workspace = true`"));
    }
    faults
}

/// Faults of the attributes of a package's library and binaries; `text` gives a file's text by its path.
pub fn root_attributes<'a>(package: &Package, text: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let short = package.short_name();
    let mut faults = Vec::new();
    for path in &package.roots {
        let Some(text) = text(path) else {
            faults.push(format!("{path}: cannot be read"));
            continue;
        };
        let code = code_only(text);
        let inner: Vec<String> =
            attributes(&code).into_iter().filter(|found| found.inner).map(|found| found.text).collect();
        let has = |level: &str| inner.iter().any(|text| lists(text, level, "unsafe_code"));
        let denies = has("deny") && UNSAFE_PLACES.iter().any(|(name, _)| *name == short);
        if !(UNSAFE.contains(&short) || has("forbid") || denies) {
            faults.push(format!("{path} lacks `#![forbid(unsafe_code)]`"));
        }
        if NO_STD.contains(&short) && !inner.iter().any(|text| text == "no_std") {
            faults.push(format!("{path} lacks `#![no_std]`"));
        }
    }
    faults
}

/// More places of a package that allow `unsafe` than it may have; `files` are those of its `src`.
pub fn unsafe_places<'a>(package: &Package, files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    if UNSAFE.contains(&package.short_name()) {
        return Vec::new();
    }
    let most =
        UNSAFE_PLACES.iter().find(|(name, _)| *name == package.short_name()).map_or(0, |(_, most)| *most);
    let mut places = Vec::new();
    for (path, text) in files {
        for found in attributes(&code_only(text)) {
            if lists(&found.text, "allow", "unsafe_code") || lists(&found.text, "expect", "unsafe_code") {
                places.push(format!(
                    "{path}:{} allows unsafe code, of which {most} place(s) may be in {}",
                    found.first_line + 1,
                    package.folder
                ));
            }
        }
    }
    if places.len() > most { places } else { Vec::new() }
}

/// Places of a `no_std` crate that bring `std` back; `files` are those of its `src`.
pub fn no_std<'a>(package: &Package, files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let short = package.short_name();
    if !NO_STD.contains(&short) || STD_BY_FEATURE.contains(&short) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (path, text) in files {
        let code = code_only(text);
        for (at, _) in code.match_indices("extern crate std") {
            if !code[..at].trim_end().ends_with("#[cfg(test)]") {
                let line = crate::rust_text::line_of(&code, at) + 1;
                faults.push(format!("{path}:{line} brings `std` back outside tests"));
            }
        }
    }
    faults
}

/// Does the attribute `level(…)` list `lint`?
fn lists(attribute: &str, level: &str, lint: &str) -> bool {
    attribute
        .strip_prefix(level)
        .and_then(|rest| rest.strip_prefix('('))
        .is_some_and(|rest| rest.trim_end_matches(')').split(',').any(|item| item == lint))
}

/// Does the table `[table]` of a manifest say `field.workspace = true` (or `workspace = true`, for no field)?
fn inherits(manifest: &str, table: &str, field: &str) -> bool {
    let mut current = String::new();
    let separator = if field.is_empty() { "" } else { "." };
    let wanted = format!("{field}{separator}workspace=true");
    for line in manifest.lines() {
        let line: String = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut current);
        } else if current == table && line == wanted {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nversion.workspace = true\nedition.workspace=true\nrust-version.workspace = true\n\
                        license.workspace = true # ours\nrepository.workspace = true\n[lints]\nworkspace = true\n";

    fn package(folder: &str) -> Package {
        Package {
            name: format!("marquetry-{}", folder.rsplit('/').next().unwrap()),
            folder: folder.to_owned(),
            manifest: GOOD.to_owned(),
            description: "What it is for".to_owned(),
            license: "Apache-2.0".to_owned(),
            rust_version: "1.89".to_owned(),
            roots: vec![format!("{folder}/src/lib.rs")],
            ..Package::default()
        }
    }

    #[test]
    fn faults_of_a_manifest_are_found() {
        let mut package = package("crates/base");
        assert_eq!(manifest(&package), [""; 0]);
        package.name = "base".to_owned();
        package.description = "placeholder".to_owned();
        package.rust_version.clear();
        package.manifest =
            GOOD.replace("license.workspace = true", "license = \"MIT\"").replace("[lints]", "[lint]");
        assert_eq!(manifest(&package).len(), 5, "{:?}", manifest(&package));
    }

    #[test]
    fn missing_root_attributes_are_found() {
        let check = |folder: &str, text: &'static str| root_attributes(&package(folder), |_| Some(text));
        assert_eq!(check("crates/cli", "//! A\n#![forbid(unsafe_code)]\n"), [""; 0]);
        assert_eq!(check("crates/cli", "// #![forbid(unsafe_code)]\n").len(), 1);
        assert_eq!(check("crates/cli", "#![deny(unsafe_code)]\n").len(), 1);
        assert_eq!(check("crates/parquet", "#![forbid(unsafe_code)]\n").len(), 1);
        assert_eq!(check("crates/base", "#![no_std]\n#![deny(unsafe_code, missing_docs)]\n"), [""; 0]);
        assert_eq!(check("crates/base", "#![no_std]\n").len(), 1);
        assert_eq!(check("crates/kernels", "#![no_std]\n"), [""; 0]);
    }

    #[test]
    fn a_second_unsafe_module_is_found() {
        let one = ("a.rs", "#[allow(unsafe_code, reason = \"audited\")]\nmod segment;");
        let two = ("b.rs", "#![expect(unsafe_code)]");
        assert_eq!(unsafe_places(&package("crates/base"), [one].into_iter()), [""; 0]);
        assert_eq!(unsafe_places(&package("crates/base"), [one, two].into_iter()).len(), 2);
        assert_eq!(unsafe_places(&package("crates/parquet"), [one].into_iter()).len(), 1);
        assert_eq!(unsafe_places(&package("crates/kernels"), [one, two].into_iter()), [""; 0]);
    }

    #[test]
    fn std_outside_tests_is_found() {
        let test = ("a.rs", "#[cfg(test)]\nextern crate std;");
        let bare = ("b.rs", "extern crate std;");
        assert_eq!(no_std(&package("crates/parquet"), [test].into_iter()), [""; 0]);
        assert_eq!(no_std(&package("crates/parquet"), [test, bare].into_iter()).len(), 1);
        assert_eq!(no_std(&package("crates/io"), [bare].into_iter()), [""; 0]);
    }
}
