//! Tables that are dropped, and created again: their names are the same, and nothing else need be.

use std::fs;
use std::path::PathBuf;

use marquetry_tables::sstables::{WatchEvent, watch};

use super::node::{INSERTED, Node, TABLE};

const OLD: &str = "0123456789abcdef0123456789abcdef";
const NEW: &str = "fffffffffffffffffffffffffffffff0";

fn again(node: &Node) -> PathBuf {
    node.data().join("ks").join(format!("t-{NEW}"))
}

/// An SSTable that was linked when its table was dropped, and one of the same name of the table that was created then.
fn dropped() -> Node {
    let node = Node::new();
    node.schema_tables(OLD, ["pk", "ck"]);
    node.put(TABLE, INSERTED, "oa-1-big");
    let options = node.options();
    let cancel = options.cancel.clone();
    assert_eq!(Node::run(&options, |_| cancel.cancel()).0, ["started 1 1"]);
    fs::remove_dir_all(node.table(TABLE)).unwrap();
    node.schema_tables(NEW, ["a", "b"]);
    node.put_at(&again(&node), INSERTED, "oa-1-big");
    node
}

/// The first columns of the files: of the table that was dropped, and of the other one.
fn key_columns(node: &Node) -> [Vec<String>; 2] {
    let files = node.files();
    assert!(files.len() == 2 && files[0].contains(OLD) && files[1].contains(NEW), "{files:?}");
    [&files[0], &files[1]].map(|file| node.columns(file)[..2].to_vec())
}

#[test]
fn what_is_left_of_a_dropped_table_is_read_by_its_own_definition() {
    let node = dropped();
    let kept = node.data().join(format!(".marquetry/definitions/ks/t-{OLD}.cql"));
    assert!(fs::read_to_string(&kept).unwrap().contains("\"pk\""));
    let converted = "converted ks.t oa-1-big 15";
    assert_eq!(node.once(), ["started 1 2", converted, converted]);
    assert_eq!(key_columns(&node), [["pk", "ck"], ["a", "b"]]);
    // Once nothing waits for it, it is not kept any longer.
    assert_eq!(node.once(), ["started 1 0"]);
    assert!(!kept.exists() && kept.with_file_name(format!("t-{NEW}.cql")).exists());
}

/// What defines the table that has the name now is nothing to the other one, whoever wrote it.
#[test]
fn without_its_definition_its_key_has_no_names() {
    let node = dropped();
    node.schema();
    fs::remove_dir_all(node.data().join(".marquetry/definitions")).unwrap();
    let mut notes = Vec::new();
    watch(&node.options(), &mut |event| {
        if let WatchEvent::Note(text) = event {
            notes.push(text.to_string());
        }
    })
    .unwrap();
    assert_eq!(key_columns(&node), [["pk0", "ck0"], ["pk", "ck"]]);
    let said = notes.iter().filter(|note| note.contains("another table has its name")).count();
    assert!(said == 1 && notes.iter().any(|note| note.contains(OLD)), "{notes:?}");
}

/// A table that is only dropped is still known.
#[test]
fn a_table_that_is_gone_is_still_defined() {
    let node = dropped();
    fs::remove_dir_all(again(&node)).unwrap();
    fs::remove_dir_all(node.data().join("system_schema")).unwrap();
    assert_eq!(node.once(), ["started 0 1", "converted ks.t oa-1-big 15"]);
    assert_eq!(node.columns(&node.files()[0])[..2], ["pk", "ck"]);
}
