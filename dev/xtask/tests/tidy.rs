//! Every rule on this workspace.

use std::sync::OnceLock;

use marquetry_xtask::rules::{
    demo, dependencies, documents, manifests, messages, prices, rooms, sources, speed, words,
};
use marquetry_xtask::workspace::{File, Workspace, cargo};

fn workspace() -> &'static Workspace {
    static WORKSPACE: OnceLock<Workspace> = OnceLock::new();
    WORKSPACE.get_or_init(|| Workspace::load().expect("the workspace can be read"))
}

#[track_caller]
fn none(faults: impl IntoIterator<Item = String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "{} fault(s):\n  {}", faults.len(), faults.join("\n  "));
}

fn texts(suffix: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = workspace().files.iter().filter(move |file| file.path.ends_with(suffix));
    files.filter_map(|File { path, text, .. }| Some((path.as_str(), text.as_deref()?)))
}

/// The rules below look at something: this very file and package are among what they see.
#[test]
fn the_workspace_is_seen() {
    assert!(
        workspace().packages.iter().any(|package| package.name == "marquetry-xtask" && !package.published)
    );
    assert!(workspace().packages.iter().any(|package| package.name == "marquetry-base" && package.published));
    assert!(
        workspace()
            .text("dev/xtask/tests/tidy.rs")
            .is_some_and(|text| text.contains("the_workspace_is_seen"))
    );
    assert!(workspace().rust_files("crates/base/src/").count() > 0);
}

#[test]
fn crates_use_only_what_the_table_allows() {
    none(dependencies::edges(&workspace().packages));
}

#[test]
fn the_front_takes_drivers_only_by_feature() {
    none(dependencies::front_is_pure(&workspace().packages));
}

#[test]
fn no_code_decides_by_a_message() {
    none(texts(".rs").flat_map(|(path, text)| messages::decisions(path, text)));
}

#[test]
fn no_test_is_skipped_off_the_record() {
    none(texts(".rs").flat_map(|(path, text)| sources::skips(path, text)));
}

#[test]
fn development_tools_are_unpublished() {
    none(dependencies::dev_is_unpublished(&workspace().packages));
}

#[test]
fn scylla_uses_parquet_only_in_its_bridge() {
    none(dependencies::parquet_only_in_bridge(texts(".rs")));
}

#[test]
fn rooms_import_from_lower_floors_only() {
    none(texts(".rs").flat_map(|(path, text)| rooms::upward(path, text)));
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    none(rooms::WITHOUT_CIRCLES.iter().flat_map(|name| {
        let folder = format!("crates/{name}/src/");
        assert!(texts(".rs").any(|(path, _)| path.starts_with(&folder)), "{folder}");
        rooms::circles(&folder, texts(".rs"))
    }));
}

#[test]
fn the_demo_compiles_little() {
    let script = workspace().text("dev/demo.sh").expect("the demo's script");
    let arguments = demo::arguments(script).expect("what it builds");
    let tree = cargo(&workspace().root, &arguments).expect("cargo tree");
    let tree = String::from_utf8(tree).expect("a list");
    assert!(tree.contains("marquetry-parquet v"), "{tree}");
    none(demo::faults(&tree));
}

#[test]
fn manifests_are_alike() {
    none(workspace().packages.iter().flat_map(manifests::manifest));
}

#[test]
fn crate_roots_forbid_unsafe_and_std() {
    let text = |path: &str| workspace().text(path);
    none(workspace().packages.iter().flat_map(|package| manifests::root_attributes(package, text)));
}

#[test]
fn unsafe_code_is_where_it_may_be() {
    none(workspace().packages.iter().flat_map(|package| {
        let folder = format!("{}/src/", package.folder);
        manifests::unsafe_places(package, workspace().rust_files(&folder))
    }));
}

#[test]
fn no_std_crates_do_without_std() {
    none(workspace().packages.iter().flat_map(|package| {
        let folder = format!("{}/src/", package.folder);
        manifests::no_std(package, workspace().rust_files(&folder))
    }));
}

#[test]
fn source_files_are_short() {
    none(texts(".rs").flat_map(|(path, text)| sources::length(path, text)));
}

#[test]
fn values_are_printed_in_one_place() {
    none(texts(".rs").flat_map(|(path, text)| sources::printers(path, text)));
}

#[test]
fn the_command_is_thin() {
    none(sources::command_is_thin(texts(".rs")));
}

#[test]
fn nothing_is_unfinished() {
    none(texts(".rs").flat_map(|(path, text)| sources::unfinished(path, text)));
}

#[test]
fn ignored_tests_say_why() {
    none(texts(".rs").flat_map(|(path, text)| sources::ignored_tests(path, text)));
}

#[test]
fn relaxed_lints_say_why() {
    none(texts(".rs").flat_map(|(path, text)| sources::relaxed_lints(path, text)));
    none(texts("Cargo.toml").flat_map(|(path, text)| sources::relaxed_manifest_lints(path, text)));
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    none(texts("").flat_map(|(path, text)| sources::machine_paths(path, text)));
}

#[test]
fn scripts_are_executable() {
    none(workspace().files.iter().flat_map(sources::scripts));
}

#[test]
fn links_of_documents_lead_somewhere() {
    let text = |path: &str| {
        let file = workspace().files.iter().find(|file| file.path == path)?;
        Some(file.text.as_deref().unwrap_or_default())
    };
    let is_folder = |path: &str| {
        let folder = format!("{path}/");
        path.is_empty() || workspace().files.iter().any(|file| file.path.starts_with(&folder))
    };
    none(texts(".md").flat_map(|(path, markdown)| documents::links(path, markdown, text, is_folder)));
}

#[test]
fn prose_keeps_to_the_glossary() {
    none(texts("").flat_map(|(path, text)| words::phrases(path, text)));
}

#[test]
fn prices_are_measured() {
    let sources = || texts(".rs").filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/"));
    let measurements: Vec<_> = texts(".rs")
        .filter(|(path, _)| prices::MEASURED_IN.iter().any(|place| path.starts_with(place)))
        .collect();
    assert!(measurements.len() > 1, "{measurements:?}");
    none(
        prices::missing(sources(), &measurements)
            .into_iter()
            .chain(prices::unknown(sources(), &measurements)),
    );
}

fn results(name: &str) -> Result<serde_json::Value, String> {
    let path = format!("docs/bench/{name}.json");
    let text = workspace().text(&path).ok_or_else(|| format!("there is no {path}"))?;
    serde_json::from_str(text).map_err(|error| format!("{path}: {error}"))
}

/// `MARQUETRY_UPDATE=1` writes that part of README anew.
#[test]
fn speed_in_the_readme_is_that_of_the_last_results() {
    let readme = workspace().text("README.md").expect("a README");
    if std::env::var_os("MARQUETRY_UPDATE").is_some_and(|value| value == "1") {
        let section = speed::section(&results).expect("the results");
        let start = readme.find(speed::BEGIN).expect("the first marker");
        let end = readme.find(speed::END).expect("the last marker") + speed::END.len();
        let new = format!("{}{section}{}", &readme[..start], &readme[end..]);
        return std::fs::write(workspace().root.join("README.md"), new).expect("README.md is written");
    }
    none(speed::stale(readme, &results));
}

#[test]
fn every_case_of_the_benchmarks_is_in_a_line_of_the_readme() {
    for name in ["read", "nested", "write", "whole"] {
        none(speed::left_out(name, &results(name).expect("the results")));
    }
}
