//! The destination has what the table consists of now.

use std::fs;

use marquetry_tables::sstables::Keep;

use super::node::{INSERTED, Node, TABLE, UPDATED};

fn once(node: &Node) -> Vec<String> {
    Node::run(&node.options_of(Keep::Current), |_| {}).0
}

const LINES: [(&str, &str); 4] =
    [("ADD", "oa-4-big"), ("REMOVE", "oa-2-big"), ("REMOVE", "nb-3-big"), ("COMMIT", "")];

/// A table of two SSTables that are in files, and a compaction of them that goes on.
fn compacting() -> Node {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    assert_eq!(once(&node).len(), 3);
    node.put(TABLE, INSERTED, "oa-4-big");
    node.log("compaction", &LINES[..3]);
    assert_eq!(once(&node), ["started 1 0"]);
    node
}

#[test]
fn what_a_compaction_makes_replaces_what_it_was_made_of() {
    let node = compacting();
    node.log("compaction", &LINES);
    let expected =
        ["started 1 1", "converted ks.t oa-4-big 15", "removed ks.t nb-3-big", "removed ks.t oa-2-big"];
    assert_eq!(once(&node), expected);
    assert_eq!(node.files().len(), 1);
    node.remove(TABLE, "oa-2-big");
    node.remove(TABLE, "nb-3-big");
    node.end_logs();
    assert_eq!(once(&node), ["started 1 0"]);
}

/// What was taken out of the destination was made: the others are still replaced, once it is.
#[test]
fn what_was_taken_away_keeps_no_others() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    assert_eq!(once(&node).len(), 3);
    let files = node.files();
    fs::remove_file(node.file(&files[1])).unwrap();
    node.remove(TABLE, "nb-3-big");
    assert_eq!(once(&node), ["removed ks.t nb-3-big", "started 1 0"]);
    assert!(node.files().is_empty());
}

#[test]
fn what_is_not_complete_may_be_what_replaces_others() {
    let node = compacting();
    node.log("compaction", &LINES);
    node.remove(TABLE, "oa-2-big");
    node.remove(TABLE, "nb-3-big");
    let toc = node.table(TABLE).join("oa-4-big-TOC.txt");
    let text = fs::read(&toc).unwrap();
    fs::remove_file(&toc).unwrap();
    assert_eq!(once(&node), ["started 1 0"]);
    assert_eq!(node.files().len(), 2);
    fs::write(&toc, text).unwrap();
    let expected =
        ["started 1 1", "converted ks.t oa-4-big 15", "removed ks.t nb-3-big", "removed ks.t oa-2-big"];
    assert_eq!(once(&node), expected);
}

#[test]
fn nothing_is_removed_before_what_replaces_it_is_there() {
    let node = compacting();
    // What it made is corrupt.
    let data = node.table(TABLE).join("oa-4-big-Data.db");
    let mut bytes = fs::read(&data).unwrap();
    bytes[100] ^= 0x55;
    fs::write(&data, &bytes).unwrap();
    node.log("compaction", &LINES);
    node.remove(TABLE, "oa-2-big");
    node.remove(TABLE, "nb-3-big");
    let events = once(&node);
    assert!(events[1].starts_with("failed ks.t oa-4-big for good:"), "{events:?}");
    assert_eq!((events.len(), node.files().len()), (2, 2));
    node.end_logs();
    assert_eq!(once(&node), ["failed before ks.t oa-4-big", "started 1 0"]);
    assert_eq!(node.files().len(), 2);
    // Repaired, it replaces them.
    bytes[100] ^= 0x55;
    fs::write(&data, &bytes).unwrap();
    let mut options = node.options_of(Keep::Current);
    options.retry_failed = true;
    assert_eq!(Node::run(&options, |_| {}).0.len(), 4);
    assert_eq!(node.files().len(), 1);
}

#[test]
fn sstables_that_are_replaced_while_they_wait_are_not_converted() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    let options = node.options_of(Keep::Current);
    let cancel = options.cancel.clone();
    Node::run(&options, |_| cancel.cancel());
    assert!(node.links() > 0);
    node.remove(TABLE, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    assert_eq!(once(&node), ["started 1 2", "converted ks.t nb-3-big 2"]);
    assert_eq!((node.files().len(), node.links()), (1, 0));
}

/// An index is dropped: the table of contents is written anew.
#[test]
fn an_sstable_without_its_table_of_contents_is_not_gone() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    once(&node);
    let toc = node.table(TABLE).join("oa-2-big-TOC.txt");
    let text = fs::read(&toc).unwrap();
    fs::remove_file(&toc).unwrap();
    assert_eq!(once(&node), ["started 1 0"]);
    fs::write(&toc, text).unwrap();
    assert_eq!(once(&node), ["started 1 0"]);
    assert_eq!(node.files().len(), 2);
}

#[test]
fn an_empty_table_has_no_files_and_a_missing_one_keeps_them() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    once(&node);
    let aside = node.data().join("aside");
    fs::rename(node.table(TABLE), &aside).unwrap();
    assert_eq!(once(&node), ["started 0 0"]);
    assert_eq!(node.files().len(), 1);
    fs::rename(&aside, node.table(TABLE)).unwrap();
    node.remove(TABLE, "oa-2-big");
    assert_eq!(once(&node), ["removed ks.t oa-2-big", "started 1 0"]);
    assert!(node.files().is_empty());
}
