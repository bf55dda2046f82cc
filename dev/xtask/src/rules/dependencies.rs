//! Who may use whom.
//!
//! Only what ends up in a user's program counts: tests may use what they like.

use crate::workspace::Package;

/// Tier 1, pure: no I/O, clock, threads or async.
const TIER_1: &[&str] = &["base", "kernels", "codecs", "parquet", "text", "scylla", "arrow"];

/// Tier 2, drivers: the only tier that waits.
const TIER_2: &[&str] = &["io", "tables", "cluster", "rados"];

/// Doors translate for somebody outside; nothing inside may need one.
const DOORS: &[&str] = &["cli", "capi", "python", "ceph"];

/// The design's table: a crate, and what it may use inside.
///
/// A crate that is not here is a fault: whoever adds a crate decides its place.
const TABLE: &[(&str, &[&[&str]])] = &[
    ("base", &[]),
    ("kernels", &[]),
    ("codecs", &[&["base", "kernels"]]),
    ("io", &[&["base"]]),
    // Codecs come in through base's trait.
    ("parquet", &[&["base", "kernels"]]),
    // parquet for its `bridge` and its `packed` records only, which another rule sees to.
    ("scylla", &[&["base", "kernels", "parquet"]]),
    // What its rows are: schema and batch.
    ("text", &[&["base", "kernels", "parquet"]]),
    ("arrow", &[&["base", "parquet"]]),
    ("tables", &[TIER_1, &["io"]]),
    ("cluster", &[TIER_1, &["io", "tables"]]),
    ("rados", &[TIER_1, &["io", "tables"]]),
    // The front re-exports; what waits is behind a feature.
    ("marquetry", &[TIER_1, TIER_2]),
    ("cli", &[&["marquetry"]]),
    // The host owns I/O.
    ("capi", &[TIER_1]),
    ("ceph", &[TIER_1]),
    ("python", &[&["marquetry"]]),
];

/// Edges that the table does not allow, and crates that it does not know.
pub fn edges(packages: &[Package]) -> Vec<String> {
    let mut faults = Vec::new();
    for package in packages.iter().filter(|package| !package.is_dev()) {
        let Some((_, allowed)) = TABLE.iter().find(|(name, _)| *name == package.short_name()) else {
            faults.push(format!("{} has no row in the dependency table", package.folder));
            continue;
        };
        for other in used(package, packages) {
            let short = other.short_name();
            if other.is_dev() {
                faults.push(format!("{} uses {}, which is unpublished", package.name, other.name));
            } else if DOORS.contains(&short) {
                faults.push(format!("{} uses {}, and nothing depends on a door", package.name, other.name));
            } else if !allowed.iter().any(|tier| tier.contains(&short)) {
                faults.push(format!("{} may not use {}", package.name, other.name));
            }
        }
    }
    faults
}

/// What the front crate takes from tier 2 without a feature that turns it on.
pub fn front_is_pure(packages: &[Package]) -> Vec<String> {
    let tier_2 = |name: &str| {
        packages.iter().any(|package| package.name == name && TIER_2.contains(&package.short_name()))
    };
    packages
        .iter()
        .filter(|package| package.name == "marquetry")
        .flat_map(|front| &front.dependencies)
        .filter(|edge| !edge.dev_only && !edge.optional && tier_2(&edge.name))
        .map(|edge| format!("marquetry uses {} always: it must be optional", edge.name))
        .collect()
}

/// Development tools that a registry would take.
pub fn dev_is_unpublished(packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .filter(|package| package.is_dev() && package.published)
        .map(|package| format!("{} lacks `publish = false`", package.folder))
        .collect()
}

/// Places of crates/scylla, outside its bridge and the records that it packs, that name the Parquet engine.
pub fn parquet_only_in_bridge<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    files
        .filter(|(path, _)| {
            let may = ["crates/scylla/src/bridge", "crates/scylla/src/packed"];
            path.starts_with("crates/scylla/src/") && !may.iter().any(|may| path.starts_with(may))
        })
        .filter(|(_, text)| crate::rust_text::code_only(text).contains("marquetry_parquet"))
        .map(|(path, _)| {
            format!("{path} uses marquetry_parquet, which only crates/scylla/src/bridge and packed may")
        })
        .collect()
}

/// The packages inside that `package` uses outside its tests.
fn used<'a>(package: &'a Package, packages: &'a [Package]) -> impl Iterator<Item = &'a Package> {
    package
        .dependencies
        .iter()
        .filter(|edge| !edge.dev_only)
        .filter_map(|edge| packages.iter().find(|other| other.name == edge.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(folder: &str, uses: &[&str]) -> Package {
        let short = folder.rsplit('/').next().unwrap();
        let name = if short == "marquetry" { short.to_owned() } else { format!("marquetry-{short}") };
        let dependencies = uses
            .iter()
            .map(|name| Dependency { name: (*name).to_owned(), dev_only: false, optional: false })
            .collect();
        Package { name, folder: folder.to_owned(), published: true, dependencies, ..Package::default() }
    }

    #[test]
    fn edges_outside_the_table_are_found() {
        let packages = [
            package("crates/base", &["bytes"]),
            package("crates/io", &["marquetry-base", "marquetry-parquet"]),
            package("crates/parquet", &["marquetry-base", "marquetry-codecs"]),
            package("crates/codecs", &["marquetry-xtask"]),
            package("crates/python", &["marquetry-cli", "marquetry"]),
            package("crates/cli", &["marquetry"]),
            package("crates/marquetry", &[]),
            package("crates/novelty", &[]),
            package("dev/xtask", &["marquetry-cli"]),
        ];
        let found = edges(&packages);
        assert_eq!(
            found,
            [
                "marquetry-io may not use marquetry-parquet",
                "marquetry-parquet may not use marquetry-codecs",
                "marquetry-codecs uses marquetry-xtask, which is unpublished",
                "marquetry-python uses marquetry-cli, and nothing depends on a door",
                "crates/novelty has no row in the dependency table",
            ]
        );
        assert_eq!(dev_is_unpublished(&packages), ["dev/xtask lacks `publish = false`"]);
    }

    #[test]
    fn tests_may_use_what_they_like() {
        let mut base = package("crates/base", &["marquetry-cli"]);
        base.dependencies[0].dev_only = true;
        assert_eq!(edges(&[base, package("crates/cli", &[])]), [""; 0]);
    }

    #[test]
    fn the_front_takes_drivers_only_by_feature() {
        let mut packages = [package("crates/marquetry", &["marquetry-io"]), package("crates/io", &[])];
        assert_eq!(front_is_pure(&packages), ["marquetry uses marquetry-io always: it must be optional"]);
        packages[0].dependencies[0].optional = true;
        assert_eq!(front_is_pure(&packages), [""; 0]);
    }

    #[test]
    fn parquet_outside_the_bridge_is_found() {
        let files = [
            ("crates/scylla/src/cql/types.rs", "use marquetry_parquet::Schema;"),
            ("crates/scylla/src/cql/name.rs", "// not marquetry_parquet"),
            ("crates/scylla/src/bridge/mod.rs", "use marquetry_parquet::Schema;"),
        ];
        let found = parquet_only_in_bridge(files.into_iter());
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/scylla/src/cql/types.rs "));
    }
}
