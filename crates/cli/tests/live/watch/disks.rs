//! A node with two data directories: `watch` of both, and the plugin.

use std::fs;
use std::path::PathBuf;

use super::plugin::{CREATE_INDEX, Node};
use super::server::{Running, files, sstables};
use crate::common::{self, marquetry, run};

/// A flush of such a node has an SSTable on each disk, with the same positions in the commit log and other rows; and a compaction writes to both.
#[test]
#[cfg(unix)]
#[ignore = "soak: a server of its own: a minute"]
fn all_disks_of_a_server_are_watched() {
    let yaml = |folder: &common::Folder| {
        Some(format!(
            "data_file_directories: [{}, {}]\n",
            folder.path("node/data/data"),
            folder.path("disk2")
        ))
    };
    let Some(node) = Node::of(yaml) else { return };
    node.install();
    node.run(CREATE_INDEX);
    let disks = [node.data(), node.folder.root().join("disk2")];
    let watched = node.folder.root().join("watched");
    let watch = |to: &PathBuf, more: &[&str]| {
        let mut command = marquetry();
        command.arg("watch").args(&disks).arg("--to").arg(to).args(["--table", "k", "--quiet"]).args(more);
        command
    };
    let watcher = Running::of(watch(&watched, &[]));
    // The table's directories, and its SSTables in them.
    let tables = || -> Vec<PathBuf> {
        let all = disks.iter().flat_map(|disk| fs::read_dir(disk.join("k")).unwrap());
        all.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    };
    let all = || -> Vec<PathBuf> { tables().iter().flat_map(|table| sstables(table)).collect() };
    for flush in 1..4 {
        for p in 0..100 {
            node.run(&format!("INSERT INTO k.t (p, c, v) VALUES ({p}, {flush}, 'v')"));
        }
        node.flush();
        assert!(tables().iter().all(|table| sstables(table).len() == flush), "{:?}", all());
        files(&watched, 2 * flush);
        files(&node.lake(), 2 * flush);
    }
    let flushed = files(&watched, 6);
    let count = |folder: &PathBuf, more: &[&str]| {
        let table = fs::read_dir(folder.join("k")).unwrap().next().unwrap().unwrap().path();
        run([&["count", table.to_str().unwrap(), "--union"], more].concat()).succeeded()
    };
    assert_eq!(count(&watched, &[]), "300\n");
    // What a compaction makes is nothing new, on no disk.
    node.script(&["nodetool", &node.directory(), "compact", "k", "t"]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!((files(&watched, 6), files(&node.lake(), 6).len()), (flushed.clone(), 6));
    drop(watcher);
    assert!(watch(&watched, &["--once"]).status().unwrap().success());
    assert_eq!(files(&watched, 6), flushed);
    // The table as it is now, by another watcher: what is on both disks.
    let current = node.folder.root().join("current");
    let work = node.folder.path("work");
    let once = ["--once", "--keep", "current", "--work", &work];
    assert!(watch(&current, &once).status().unwrap().success());
    files(&current, all().len());
    assert_eq!(count(&current, &[]), "300\n");
    // One disk alone is refused, not taken for the table.
    let alone =
        marquetry().arg("watch").arg(&disks[0]).arg("--to").arg(&current).args(once).output().unwrap();
    assert!(!alone.status.success() && files(&current, all().len()).len() == all().len());
}
