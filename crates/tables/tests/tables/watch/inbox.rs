//! An inbox, which a program fills with links, and which is emptied.

use std::fs;

use marquetry_base::ErrorKind;
use marquetry_tables::sstables::{Keep, WatchOptions};

use super::node::{INSERTED, Node, TABLE, UPDATED};

fn inbox() -> (Node, WatchOptions) {
    let node = Node::new();
    fs::write(node.data().join("_marquetry_inbox"), "").unwrap();
    let mut options = node.options();
    options.inbox = true;
    (node, options)
}

/// What is in the table's directory.
fn left(node: &Node) -> Vec<String> {
    let files = fs::read_dir(node.table(TABLE)).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_is_linked_is_taken_out() {
    let (node, options) = inbox();
    node.put(TABLE, INSERTED, "oa-1-big");
    fs::write(node.table(TABLE).join("oa-1-big-SAI+aa.db"), "of an index").unwrap();
    node.put_file(TABLE, UPDATED, "nb-2-big", "Data.db");
    let (events, _) = Node::run(&options, |event| {
        if event.starts_with("started") {
            assert_eq!(left(&node), ["nb-2-big-Data.db"], "at once");
        }
    });
    assert_eq!(events, ["started 1 1", "converted ks.t oa-1-big 15"]);
    assert_eq!(node.links(), 0);
    // The same again, by a program that was killed before it noted that it had put it there.
    node.put(TABLE, INSERTED, "oa-1-big");
    assert_eq!(Node::run(&options, |_| {}).0, ["started 1 0"]);
    assert_eq!((node.files().len(), node.links(), left(&node).len()), (1, 0, 1));
    // And another one by its name.
    node.put(TABLE, UPDATED, "oa-1-big");
    let failed = Node::run(&options, |_| {}).0;
    assert!(failed[0].starts_with("failed ks.t oa-1-big"), "{failed:?}");
    assert_eq!(left(&node).len(), 1);
}

#[test]
fn what_a_kill_left_in_the_inbox_is_taken_out() {
    let (node, mut options) = inbox();
    node.put(TABLE, INSERTED, "oa-1-big");
    options.inbox = false;
    let cancel = options.cancel.clone();
    // Linked, and not removed …
    Node::run(&options, |_| cancel.cancel());
    assert!(node.links() > 0);
    // … or removed in part.
    fs::remove_file(node.table(TABLE).join("oa-1-big-TOC.txt")).unwrap();
    fs::remove_file(node.table(TABLE).join("oa-1-big-Filter.db")).unwrap();
    options = node.options();
    options.inbox = true;
    assert_eq!(Node::run(&options, |_| {}).0, ["started 1 1", "converted ks.t oa-1-big 15"]);
    assert!(left(&node).is_empty() && node.links() == 0);
}

#[test]
fn a_corrupt_sstable_does_not_stay_in_it() {
    let (node, options) = inbox();
    node.put(TABLE, INSERTED, "oa-1-big");
    let data = node.table(TABLE).join("oa-1-big-Data.db");
    let mut bytes = fs::read(&data).unwrap();
    bytes[100] ^= 0x55;
    fs::write(&data, bytes).unwrap();
    let (events, summary) = Node::run(&options, |_| {});
    assert!(events[1].starts_with("failed ks.t oa-1-big for good"), "{events:?}");
    assert_eq!((summary.failed, left(&node).len()), (1, 0));
    assert!(node.links() > 3, "its links are all that is left of it");
}

/// A definition beside an SSTable is that of its flush: what the table became later is nothing to it.
#[test]
fn each_flush_has_its_own_definition() {
    let (node, mut options) = inbox();
    let definition = |v: &str| {
        format!(
            "CREATE TABLE ks.t (pk text, ck int, st int static, {v} int, tags set<text>, PRIMARY KEY (pk, ck)) WITH CLUSTERING ORDER BY (ck DESC);"
        )
    };
    node.put(TABLE, INSERTED, "oa-1-big");
    node.put(TABLE, INSERTED, "oa-2000000002-big");
    node.put(TABLE, INSERTED, "oa-3-big");
    let write = |name: &str, text: String| fs::write(node.table(TABLE).join(name), text).unwrap();
    write("oa-1-big-schema.cql", definition("v"));
    // A column that was dropped, and a table that has its key columns' names from elsewhere.
    write("oa-2000000002-big-schema.cql", definition("w"));
    write("schema.cql", definition("x"));
    let cancel = options.cancel.clone();
    Node::run(&options, |_| cancel.cancel());
    // They are held, so nothing of them is left in the inbox; after a kill, each still has its own.
    assert_eq!(left(&node), ["schema.cql"]);
    options = node.options();
    options.inbox = true;
    assert_eq!(Node::run(&options, |_| {}).0.len(), 4);
    let columns = |file: &str| -> Vec<String> {
        let file =
            marquetry_tables::files::ParquetFile::open(&node.file(file), marquetry_base::Limits::DEFAULT)
                .unwrap();
        let schema = &file.metadata().schema;
        (0..schema.leaves().len()).map(|leaf| schema.leaf_path(leaf)).collect()
    };
    let has = |of: &str, column: &str| {
        let files = node.files();
        let file = files.iter().find(|file| file.contains(of)).unwrap();
        columns(file).iter().any(|name| name == column)
    };
    assert!(has("oa-1-big", "v") && !has("oa-1-big", "w"));
    assert!(has("oa-2000000002-big", "w") && !has("oa-2000000002-big", "v"));
    assert!(has("oa-3-big", "x") && has("oa-3-big", "pk"));
    assert_eq!(node.links(), 0);
}

/// No database's directory is emptied by mistake.
#[test]
fn only_what_is_marked_is_an_inbox() {
    let (node, mut options) = inbox();
    node.put(TABLE, INSERTED, "oa-1-big");
    fs::remove_file(node.data().join("_marquetry_inbox")).unwrap();
    let error = Node::error(&options);
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("the file _marquetry_inbox is missing"), "{error}");
    assert!(left(&node).len() > 5);
    options.keep = Keep::Current;
    assert!(Node::error(&options).message().contains("--keep flushes"));
}
