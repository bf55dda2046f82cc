//! A node's SSTables as Parquet files: data directories that the tests make of small SSTables, as servers lay them out.

mod current;
mod dropped;
mod faults;
mod full;
mod inbox;
mod node;
mod restarts;
mod restored;
mod several;
mod waiting;

use node::{FLUSHED, INSERTED, Node, TABLE, UPDATED};

#[test]
fn each_sstable_becomes_a_file_once() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-7-big");
    node.put("other/u", INSERTED, "oa-2-big");
    let events = node.once();
    let expected = [
        "started 2 3",
        "converted ks.t nb-7-big 2",
        "converted ks.t oa-2-big 15",
        "converted other.u oa-2-big 15",
    ];
    assert_eq!(events, expected);
    let files = node.files();
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files[0].starts_with(&format!("{}/nb-7-big-", Node::place(TABLE))), "{files:?}");
    assert_eq!(node.rows(&files[1]), 15);
    assert_eq!(node.links(), 0, "they are removed");
    // Again, nothing is to be done.
    assert_eq!(node.once(), ["started 2 0"]);
    node.put(TABLE, INSERTED, "oa-9-big");
    assert_eq!(node.once(), ["started 2 1", "converted ks.t oa-9-big 15"]);
}

#[test]
fn a_file_has_what_the_sstable_has() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.schema();
    node.once();
    let file = node.file(&node.files()[0]);
    node.expect_same(&format!("{}/oa-2-big-Data.db", node.table(TABLE).display()), &file);
}

#[test]
fn files_may_arrive_in_any_order() {
    let node = Node::new();
    let names = node.names(INSERTED);
    // The table of contents first, last, and in between.
    for turn in 0..names.len() {
        let stem = format!("oa-{}-big", turn + 1);
        for number in 0..names.len() {
            assert!(node.once().iter().all(|event| event.starts_with("started")), "{turn}, {number}");
            let name = &names[(turn + number) % names.len()];
            node.put_file(TABLE, INSERTED, &stem, name);
        }
        assert_eq!(node.once()[1..], [format!("converted ks.t {stem} 15")]);
    }
}

#[test]
fn only_the_tables_that_are_asked_for() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put("ks/u", INSERTED, "oa-2-big");
    node.put("system/local", INSERTED, "oa-2-big");
    let mut options = node.options();
    options.tables = vec!["ks.u".parse().unwrap(), "system".parse().unwrap()];
    let (events, _) = Node::run(&options, |_| {});
    assert_eq!(events, ["started 2 2", "converted ks.u oa-2-big 15", "converted system.local oa-2-big 15"]);
}

/// Everything that servers and people put beside SSTables.
#[test]
fn what_is_no_sstable_of_the_table_is_passed_over() {
    let node = Node::new();
    for place in ["snapshots/daily", "backups", ".t_v_idx", "staging", "upload", "quarantine"] {
        node.put_at(&node.table(TABLE).join(place), INSERTED, "oa-3-big");
    }
    node.put_at(&node.data().join("my stuff/t"), INSERTED, "oa-4-big");
    node.put_at(&node.data().join("ks/no-table"), INSERTED, "oa-4-big");
    node.put_at(&node.data(), INSERTED, "oa-4-big");
    assert_eq!(node.once(), ["started 1 0"]);
    // Components of indexes, listed and not there.
    node.put(TABLE, INSERTED, "oa-5-big");
    let toc = node.table(TABLE).join("oa-5-big-TOC.txt");
    let text = std::fs::read_to_string(&toc).unwrap() + "SAI+aa+GroupComplete.db\n";
    std::fs::write(toc, text).unwrap();
    assert_eq!(node.once()[1..], ["converted ks.t oa-5-big 15"]);
}

#[test]
fn transactions_decide_what_counts() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.log("flush", &[("ADD", "oa-2-big")]);
    assert_eq!(node.once(), ["started 1 0"]);
    node.log("flush", &[("ADD", "oa-2-big"), ("ABORT", "")]);
    assert_eq!(node.once(), ["started 1 0"]);
    node.log("flush", &[("ADD", "oa-2-big"), ("COMMIT", "")]);
    assert_eq!(node.once(), ["started 1 1", "converted ks.t oa-2-big 15"]);
}

/// Flushes stay, and what a compaction made of them is left out: also when its log is gone.
#[test]
fn compactions_are_left_out() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    assert_eq!(node.once().len(), 3);
    node.put(TABLE, INSERTED, "oa-4-big");
    let lines = [("ADD", "oa-4-big"), ("REMOVE", "oa-2-big"), ("REMOVE", "nb-3-big"), ("COMMIT", "")];
    node.log("compaction", &lines);
    let events = node.once();
    assert_eq!(events, ["skipped ks.t oa-4-big compaction", "started 1 0"]);
    node.remove(TABLE, "oa-2-big");
    node.remove(TABLE, "nb-3-big");
    node.end_logs();
    assert_eq!(node.once(), ["started 1 0"]);
    assert_eq!(node.files().len(), 2);
    assert_eq!(node.links(), 0);
}

/// What is there at first is the table, whatever made it.
#[test]
fn what_was_compacted_before_becomes_files() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-4-big");
    node.log("compaction", &[("ADD", "oa-4-big"), ("REMOVE", "oa-2-big"), ("COMMIT", "")]);
    assert_eq!(node.once(), ["started 1 1", "converted ks.t oa-4-big 15"]);
}

#[test]
fn options_of_the_mapping() {
    use marquetry_tables::sstables::MutationMapping;
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    let mut options = node.options();
    options.mapping = MutationMapping::Logical;
    let (events, _) = Node::run(&options, |_| {});
    assert_eq!(events[1..], ["converted ks.t oa-2-big 12"]);
    // Files of two mappings in one directory would be no table.
    options.mapping = MutationMapping::Full;
    let error = Node::error(&options);
    assert!(error.message().contains("mapping logical, not full"), "{error}");
}

/// Something that it was made of came from another node, say, and was not seen.
#[test]
fn outputs_of_what_is_not_known_become_files() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    assert_eq!(node.once().len(), 2);
    for stem in ["oa-4-big", "oa-5-big"] {
        node.put(TABLE, INSERTED, stem);
    }
    let known = [("ADD", "oa-4-big"), ("ADD", "oa-5-big"), ("REMOVE", "oa-2-big"), ("COMMIT", "")];
    let mut unknown = known.to_vec();
    unknown.insert(2, ("REMOVE", "oa-3-big"));
    node.log("compaction", &unknown);
    let expected = ["started 1 2", "converted ks.t oa-4-big 15", "converted ks.t oa-5-big 15"];
    assert_eq!(node.once(), expected);
    // Both are left out if all of it is known.
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.once();
    for stem in ["oa-4-big", "oa-5-big"] {
        node.put(TABLE, INSERTED, stem);
    }
    node.log("compaction", &known);
    let expected = ["skipped ks.t oa-4-big compaction", "skipped ks.t oa-5-big compaction", "started 1 0"];
    assert_eq!(node.once(), expected);
}

/// A table that is watched later than others has nothing in files at first, either.
#[test]
fn each_table_begins_by_itself() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    let mut options = node.options();
    options.tables = vec!["ks.u".parse().unwrap()];
    assert_eq!(Node::run(&options, |_| {}).0, ["started 0 0"]);
    node.log("compaction", &[("ADD", "oa-2-big"), ("REMOVE", "oa-1-big"), ("COMMIT", "")]);
    assert_eq!(node.once(), ["started 1 1", "converted ks.t oa-2-big 15"]);
    let state = std::fs::read_to_string(node.data().join(".marquetry/state")).unwrap();
    assert!(state.contains(&format!("begun {}\n", Node::place(TABLE))), "{state}");
}

/// Shards of one flush have the same positions. One that is found after the log is gone has other rows than the one that is there; what is there
/// instead of it is a rewrite.
#[test]
fn the_second_shard_of_a_flush_is_no_rewrite() {
    let node = Node::new();
    node.put(TABLE, FLUSHED, "nb-2-big");
    node.log("flush", &[("ADD", "nb-2-big"), ("COMMIT", "")]);
    assert_eq!(node.once().len(), 2);
    node.end_logs();
    node.put(TABLE, FLUSHED, "nb-3-big");
    assert_eq!(node.once()[1..], ["converted ks.t nb-3-big 1"]);
    node.remove(TABLE, "nb-2-big");
    node.remove(TABLE, "nb-3-big");
    node.put(TABLE, FLUSHED, "nb-4-big");
    let expected = "skipped ks.t nb-4-big what it has was flushed before, by its commit log positions";
    assert_eq!(node.once(), [expected, "started 1 0"]);
    // Beside what was left out itself, everything is in files.
    node.put(TABLE, FLUSHED, "nb-5-big");
    assert!(node.once()[0].starts_with("skipped ks.t nb-5-big"));
    assert_eq!(node.files().len(), 2);
}
