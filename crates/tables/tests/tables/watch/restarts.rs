//! Runs that are cut short, and what the next one makes of what they leave.

use std::fs;
use std::path::Path;

use super::node::{DELETED, INSERTED, Node, TABLE, UPDATED};

/// A run that ends when everything is linked, as if it was killed.
fn cut_short(node: &Node) {
    let options = node.options();
    let cancel = options.cancel.clone();
    let (events, summary) = Node::run(&options, |event| {
        if event.starts_with("started") {
            cancel.cancel();
        }
    });
    assert!(events.last().unwrap().starts_with("started"), "{events:?}");
    assert!(summary.waiting > 0);
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

#[test]
fn what_was_linked_is_converted_though_the_server_deletes_it() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    cut_short(&node);
    assert!(node.files().is_empty() && node.links() > 0);
    node.remove(TABLE, "oa-2-big");
    node.remove(TABLE, "nb-3-big");
    let events = node.once();
    assert_eq!(events[0], "started 1 2");
    assert_eq!((node.files().len(), node.links()), (2, 0));
    assert_eq!(node.once(), ["started 1 0"]);
}

#[test]
fn sstables_that_are_deleted_while_they_are_converted() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    let (events, _) = Node::run(&node.options(), |event| {
        if event.starts_with("started") {
            fs::remove_dir_all(node.table(TABLE)).unwrap();
        }
    });
    assert_eq!(events, ["started 1 2", "converted ks.t nb-3-big 2", "converted ks.t oa-2-big 15"]);
}

/// Killed after the file appeared, and before the links were removed.
#[test]
fn what_is_in_the_destination_is_not_converted_again() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    cut_short(&node);
    let kept = node.data().join(".kept");
    copy_all(&node.links_folder(), &kept);
    assert_eq!(node.once()[1..], ["converted ks.t oa-2-big 15"]);
    node.remove(TABLE, "oa-2-big");
    copy_all(&kept, &node.links_folder());
    let events = node.once();
    assert_eq!((&events[..], node.links()), (&["started 1 0".to_owned()][..], 0));
    assert_eq!(node.files().len(), 1);
}

/// Users take files away: to a store, say. What was made once is not made again.
#[test]
fn files_that_were_taken_away_are_not_made_again() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    assert_eq!(node.once().len(), 3);
    let files = node.files();
    fs::remove_file(node.file(&files[1])).unwrap();
    assert_eq!(node.once(), ["started 1 0"]);
    assert_eq!(node.files(), files[..1]);
    // It is made again once the watcher does not know of it.
    let state = node.data().join(".marquetry/state");
    let text = fs::read_to_string(&state).unwrap();
    let is_other = |line: &&str| !(line.starts_with("made ") && line.contains(" oa-2-big-"));
    let without: String = text.lines().filter(is_other).map(|line| format!("{line}\n")).collect();
    assert!(without.len() < text.len(), "{text}");
    fs::write(&state, without).unwrap();
    assert_eq!(node.once(), ["started 1 1", "converted ks.t oa-2-big 15"]);
    // Of a state of the version before, what is there by its name was made.
    let text = fs::read_to_string(&state).unwrap();
    let before = text.replace("marquetry-watch 2", "marquetry-watch 1").replace("\nmade ", "\nconvert ");
    let before: String =
        before.lines().filter(|line| !line.starts_with("written")).map(|line| format!("{line}\n")).collect();
    fs::write(&state, before).unwrap();
    assert_eq!(node.once(), ["started 1 0"]);
    assert_eq!(fs::read_to_string(&state).unwrap().matches("\nmade ").count(), 2);
}

/// A table of contents is written anew when an index is dropped: an SSTable without one is not gone.
#[test]
fn what_was_made_is_known_though_a_component_is_away_for_a_moment() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    assert_eq!(node.once()[1..], ["converted ks.t oa-2-big 15"]);
    fs::remove_file(node.file(&node.files()[0])).unwrap();
    let contents = node.table(TABLE).join("oa-2-big-TOC.txt");
    let away = node.data().with_file_name("TOC.txt");
    fs::rename(&contents, &away).unwrap();
    node.put(TABLE, UPDATED, "nb-3-big");
    assert!(node.once().iter().any(|event| event.starts_with("converted ks.t nb-3-big")));
    fs::rename(&away, &contents).unwrap();
    assert_eq!(node.once(), ["started 1 0"]);
    assert_eq!(node.files().len(), 1);
}

/// Killed while it linked: there is no table of contents yet.
#[test]
fn incomplete_links_are_removed() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    cut_short(&node);
    fs::remove_file(node.links_folder().join(Node::place(TABLE)).join("oa-2-big-TOC.txt")).unwrap();
    node.remove(TABLE, "oa-2-big");
    assert_eq!(node.once(), ["started 1 0"]);
    assert_eq!(node.links(), 0);
}

#[test]
fn names_that_are_used_again_are_other_sstables() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    assert_eq!(node.once()[1..], ["converted ks.t oa-1-big 15"]);
    // The table is truncated, the server restarted.
    node.remove(TABLE, "oa-1-big");
    node.put(TABLE, DELETED, "oa-1-big");
    assert_eq!(node.once()[1..], ["converted ks.t oa-1-big 2"]);
    assert_eq!(node.files().len(), 2);
    // … and that happens while the first one waits.
    node.put(TABLE, INSERTED, "oa-5-big");
    cut_short(&node);
    node.remove(TABLE, "oa-5-big");
    node.put(TABLE, DELETED, "oa-5-big");
    assert_eq!(node.once()[1..], ["converted ks.t oa-5-big 15", "converted ks.t oa-5-big 2"]);
    assert_eq!((node.files().len(), node.links()), (4, 0));
}

/// A table that is dropped and created again has another identifier.
#[test]
fn files_of_tables_that_were_dropped_stay() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    node.once();
    fs::remove_dir_all(node.table(TABLE)).unwrap();
    let again = node.data().join("ks/t-ffffffffffffffffffffffffffffffff");
    node.put_at(&again, INSERTED, "oa-1-big");
    assert_eq!(node.once()[1..], ["converted ks.t oa-1-big 15"]);
    let files = node.files();
    assert_eq!(files.len(), 2);
    assert_eq!(files[0].rsplit_once('/').unwrap().1, files[1].rsplit_once('/').unwrap().1);
}
