//! Objects of a real Ceph: `dev/ceph.sh with DIR -- cargo test …`, whose OSDs have the object class.

use marquetry_testing::ceph;

use super::common::Run;
use super::{Folder, numbers, run_with};

#[test]
fn only_objects_of_a_ceph_are_changed_there() {
    let run = |arguments: &[&str]| run_with(&[], arguments.iter().copied());
    run(&["ceph", "compress", "trips.parquet", "--codec", "zstd"]).failed(2, &["rados://pool/name"]);
    run(&["ceph", "split", "rados:///a.parquet", "rados://lake/b"]).failed(2, &["rados://pool/name"]);
    let refused = run(&["ceph", "compress", "rados://lake/a.parquet", "--codec", "zip"]);
    assert!(refused.code == Some(2) && refused.err.contains("zstd"), "{}", refused.err);
}

#[test]
#[ignore = "soak: a real Ceph, which loads the class"]
fn tables_are_written_and_searched_in_osds() {
    let Some(configuration) = ceph() else { return };
    let configuration = configuration.to_string_lossy().into_owned();
    let run =
        |arguments: &[&str]| -> Run { run_with(&[("CEPH_CONF", &configuration)], arguments.iter().copied()) };
    let (folder, file) = (Folder::new(), numbers(4));
    let local = folder.path("local/");
    run(&["copy", &file, "rados://test/command/", "--file-rows", "20000", "--overwrite"]).succeeded();
    run(&["copy", &file, &local, "--file-rows", "20000"]).succeeded();
    run(&["diff", &file, "rados://test/command/"]).succeeded();
    run(&["copy", &file, "rados://test/command/"]).failed(1, &["not empty"]);
    // That it is searched there is not said; that it is not, would be.
    let rows = |table: &str, more: &[&str]| {
        let predicate = "c1 > 9000000000000000000";
        run(&[&["find", table, predicate, "--format", "jsonl"], more].concat()).succeeded()
    };
    for more in [&[][..], &["--columns", "c3,c0"], &["--limit", "100"]] {
        let (there, here) = (rows("rados://test/command/", more), rows(&local, more));
        assert!(there == here && there.lines().count() >= 100, "{more:?}");
    }
    let predicate = ["--where", "c1 > 0 AND c2 < 0"];
    let counted = |table: &str| run(&[&["count", table][..], &predicate].concat()).succeeded();
    assert_eq!(counted("rados://test/command/"), counted(&local));
    run(&[&["copy", "rados://test/command/", &folder.path("some.parquet")][..], &predicate].concat())
        .succeeded();
    assert_eq!(run(&["count", &folder.path("some.parquet")]).succeeded(), counted(&local));
    // Aggregates come from there, too.
    let asked = ["c1 > 0", "--aggregate", "count(*), max(c1), avg(c2), min(c3)", "--format", "jsonl"];
    let aggregates = |table: &str| run(&[&["find", table][..], &asked].concat()).succeeded();
    assert_eq!(aggregates("rados://test/command/"), aggregates(&local));
    // One object; and one of many, that a copy has in place of others.
    run(&["copy", &file, "rados://test/command.parquet", "--overwrite"]).succeeded();
    assert_eq!(counted("rados://test/command.parquet"), counted(&local));
    run(&["copy", &file, "rados://test/command/", "--overwrite"]).succeeded();
    assert!(run(&["show", "rados://test/command/"]).succeeded().contains("131,072"));
    // What the class changes has the same rows.
    let compressed =
        run(&["ceph", "compress", "rados://test/command/", "--codec", "zstd", "--level", "1"]).succeeded();
    assert!(
        compressed.starts_with("rados://test/command/") && compressed.contains(" MB of "),
        "{compressed}"
    );
    let indexed = run(&["ceph", "index", "rados://test/command", "--column", "c0"]).succeeded();
    assert_eq!(indexed.lines().count(), compressed.lines().count());
    run(&["diff", &file, "rados://test/command/"]).succeeded();
    let split = ["ceph", "split", "rados://test/command.parquet", "rados://test/split/part-"];
    let parts = run(&split).succeeded();
    assert!(parts.starts_with("rados://test/split/part-00000.parquet\n"), "{parts}");
    run(&["diff", &file, "rados://test/split/"]).succeeded();
    run(&split).failed(1, &["part-00000.parquet", "exists"]);
    let few = folder.path("few.parquet");
    run(&["copy", &file, &few, "--limit", "1000"]).succeeded();
    let merged = run(&["ceph", "merge", "rados://test/split/part-00000.parquet", &few]).succeeded();
    assert_eq!(merged, "rados://test/split/part-00000.parquet: 1,000 rows more\n");
    assert_eq!(run(&["count", "rados://test/split/"]).succeeded(), "132072\n");
    run(&["ceph", "merge", "rados://test/command.parquet", &file]).failed(1, &["bytes to merge"]);
    let transform = |more: &[&str]| run(&[&["ceph", "transform"], more].concat()).succeeded();
    transform(&["rados://test/command.parquet", "rados://test/rows", "--to", "rows"]);
    let there = transform(&["rados://test/rows", "rados://test/back.parquet"]);
    assert_eq!(there, "rados://test/back.parquet: 131,072 rows\n");
    run(&["diff", &file, "rados://test/back.parquet"]).succeeded();
    run(&["ceph", "index", "rados://test/nothing/", "--column", "c0"]).failed(3, &["no such object"]);
}
