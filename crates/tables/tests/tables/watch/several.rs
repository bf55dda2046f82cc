//! A node with several data directories: the same table in two of them is one table.

use std::fs;
use std::path::{Path, PathBuf};

use marquetry_base::ErrorKind;
use marquetry_tables::sstables::{Keep, WatchOptions};

use super::node::{DELETED, FLUSHED, INSERTED, Node, TABLE, UPDATED};

/// A second disk.
fn disk(node: &Node) -> PathBuf {
    node.data().with_file_name("disk2")
}

fn folder(node: &Node) -> PathBuf {
    disk(node).join(Node::place(TABLE))
}

fn options(node: &Node, keep: Keep) -> WatchOptions {
    let mut options = node.options_of(keep);
    options.more_data = vec![disk(node)];
    options
}

fn once(node: &Node, keep: Keep) -> Vec<String> {
    Node::run(&options(node, keep), |_| {}).0
}

/// A log is in all directories that its transaction has files in.
fn log(node: &Node, lines: &[(&str, &str)]) {
    node.log("compaction", lines);
    for entry in fs::read_dir(node.table(TABLE)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "log") {
            fs::copy(&path, folder(node).join(path.file_name().unwrap())).unwrap();
        }
    }
}

fn links(data: &Path) -> usize {
    marquetry_io::files::list(&data.join(".marquetry/links")).map_or(0, |links| links.len())
}

/// Two SSTables, one on each disk.
fn spread() -> Node {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put_at(&folder(&node), UPDATED, "nb-3-big");
    node
}

#[test]
fn tables_in_two_directories_are_one() {
    let node = spread();
    let (mut seen, both) = (Vec::new(), [node.data(), disk(&node)]);
    let (events, _) = Node::run(&options(&node, Keep::Flushes), |event| {
        if event.starts_with("started") {
            seen = both.iter().map(|data| links(data)).collect();
        }
    });
    assert_eq!(events, ["started 1 2", "converted ks.t oa-2-big 15", "converted ks.t nb-3-big 2"]);
    // Links do not cross file systems: each disk has its own, while they are needed.
    assert!(seen.iter().all(|links| *links > 4), "{seen:?}");
    assert!(both.iter().all(|data| links(data) == 0) && disk(&node).join(".marquetry").is_dir());
    assert_eq!(node.files().len(), 2);
    assert!(node.files().iter().all(|file| file.starts_with(&Node::place(TABLE))), "{:?}", node.files());
    assert_eq!(once(&node, Keep::Flushes), ["started 1 0"]);
    // What a compaction makes of both is left out, wherever it is.
    node.put_at(&folder(&node), INSERTED, "oa-4-big");
    let of_both = [("ADD", "oa-4-big"), ("REMOVE", "oa-2-big"), ("REMOVE", "nb-3-big"), ("COMMIT", "")];
    log(&node, &of_both);
    assert_eq!(once(&node, Keep::Flushes), ["skipped ks.t oa-4-big compaction", "started 1 0"]);
    assert_eq!(node.files().len(), 2);
}

#[test]
fn what_replaces_others_may_be_on_another_disk() {
    let node = spread();
    assert_eq!(once(&node, Keep::Current).len(), 3);
    node.put_at(&folder(&node), INSERTED, "oa-4-big");
    let lines = [("ADD", "oa-4-big"), ("REMOVE", "oa-2-big"), ("REMOVE", "nb-3-big"), ("COMMIT", "")];
    log(&node, &lines[..3]);
    assert_eq!(once(&node, Keep::Current), ["started 1 0"]);
    log(&node, &lines);
    // One on the first disk that is not complete may be what replaces others, too.
    node.put_file(TABLE, DELETED, "oa-5-big", "Data.db");
    assert_eq!(once(&node, Keep::Current), ["started 1 1", "converted ks.t oa-4-big 15"]);
    assert_eq!(node.files().len(), 3);
    node.remove(TABLE, "oa-5-big");
    assert_eq!(once(&node, Keep::Current), ["removed ks.t nb-3-big", "removed ks.t oa-2-big", "started 1 0"]);
    // Of the table, one disk has nothing any more.
    fs::remove_dir_all(node.table(TABLE)).unwrap();
    for file in fs::read_dir(folder(&node)).unwrap().map(|file| file.unwrap().path()) {
        if file.file_name().unwrap().to_str().unwrap().starts_with("nb-3-big") {
            fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(once(&node, Keep::Current), ["started 1 0"]);
    assert_eq!(node.files().len(), 1);
}

#[test]
fn directories_that_are_left_out_or_lost_are_said() {
    let node = spread();
    once(&node, Keep::Current);
    // Without the second, its files would be taken for those of what is gone.
    let error = Node::error(&node.options_of(Keep::Current));
    assert!(
        error.kind() == ErrorKind::Misuse && error.message().contains("disk2: name that, too"),
        "{error}"
    );
    let mut turned = options(&node, Keep::Current);
    (turned.data, turned.more_data) = (disk(&node), vec![node.data()]);
    let error = Node::error(&turned);
    assert!(error.message().contains("name it first"), "{error}");
    // A disk that is not mounted has an empty directory.
    let aside = node.data().with_file_name("aside");
    fs::rename(disk(&node), &aside).unwrap();
    fs::create_dir(disk(&node)).unwrap();
    let error = Node::error(&options(&node, Keep::Current));
    assert!(error.message().contains("is its file system mounted?"), "{error}");
    fs::remove_dir(disk(&node)).unwrap();
    let error = Node::error(&options(&node, Keep::Current));
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    fs::rename(&aside, disk(&node)).unwrap();
    assert_eq!((once(&node, Keep::Current), node.files().len()), (vec!["started 1 0".to_owned()], 2));
    for (wrong, what) in [
        (node.data(), "another of the data directories"),
        (node.data().join("ks"), "another of the data directories"),
    ] {
        let mut options = node.options_of(Keep::Current);
        options.more_data = vec![disk(&node), wrong];
        assert!(Node::error(&options).message().contains(what));
    }
    let mut inbox = options(&node, Keep::Flushes);
    inbox.inbox = true;
    fs::write(node.data().join("_marquetry_inbox"), "").unwrap();
    assert!(Node::error(&inbox).message().contains("an inbox is one directory"));
}

/// A disk that goes away while it is watched removes no file.
#[test]
fn a_disk_that_goes_away_removes_nothing() {
    let node = spread();
    once(&node, Keep::Current);
    let mut options = options(&node, Keep::Current);
    (options.once, options.poll) = (false, Some(std::time::Duration::from_millis(20)));
    let (cancel, mut ending) = (options.cancel.clone(), None);
    let (events, _) = Node::run(&options, |event| {
        if event.starts_with("started") {
            fs::rename(disk(&node), node.data().with_file_name("aside")).unwrap();
            fs::create_dir(disk(&node)).unwrap();
            node.put(TABLE, DELETED, "oa-6-big");
        } else if event.starts_with("converted") {
            let cancel = cancel.clone();
            let (gone, aside) = (disk(&node), node.data().with_file_name("aside"));
            ending.get_or_insert_with(|| {
                std::thread::spawn(move || {
                    // Some looks more, and some when it is back.
                    std::thread::sleep(std::time::Duration::from_millis(300));
                    fs::remove_dir_all(&gone).unwrap();
                    fs::rename(aside, gone).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(600));
                    cancel.cancel();
                })
            });
        }
    });
    ending.expect("it is converted").join().unwrap();
    assert!(!events.iter().any(|event| event.starts_with("removed")), "{events:?}");
    assert_eq!(node.files().len(), 3);
    // What was decided of its SSTables was kept.
    assert_eq!(once(&node, Keep::Current), ["started 1 0"]);
}

/// A data directory that is added at a start that fails is not asked for by later ones.
#[test]
fn a_directory_that_could_not_be_added_is_not_missed() {
    let node = Node::new();
    node.put(TABLE, FLUSHED, "nb-1-big");
    assert_eq!(node.once(), ["started 1 1", "converted ks.t nb-1-big 1"]);
    node.put_at(&folder(&node), UPDATED, "nb-3-big");
    let mut wrong = options(&node, Keep::Flushes);
    fs::create_dir_all(disk(&node).join(".marquetry/lock")).unwrap();
    let error = Node::error(&wrong);
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    fs::remove_dir_all(disk(&node).join(".marquetry")).unwrap();
    wrong.more_data.clear();
    assert_eq!(Node::run(&wrong, |_| {}).0, ["started 1 0"]);
    assert_eq!(once(&node, Keep::Flushes), ["started 1 1", "converted ks.t nb-3-big 2"]);
}

/// A disk that is added later: what is on it is there at first.
#[test]
fn a_directory_is_added() {
    let node = Node::new();
    node.put(TABLE, FLUSHED, "nb-1-big");
    assert_eq!(node.once(), ["started 1 1", "converted ks.t nb-1-big 1"]);
    node.put_at(&folder(&node), UPDATED, "nb-3-big");
    assert_eq!(once(&node, Keep::Flushes), ["started 1 1", "converted ks.t nb-3-big 2"]);
    // With one directory for work, all links are in it.
    let other = Node::new();
    other.put(TABLE, INSERTED, "oa-2-big");
    other.put_at(&folder(&other), UPDATED, "nb-3-big");
    let mut options = options(&other, Keep::Flushes);
    options.work = Some(other.data().with_file_name("work"));
    assert_eq!(Node::run(&options, |_| {}).0.len(), 3);
    assert!(!disk(&other).join(".marquetry").exists() && !other.data().join(".marquetry").exists());
}

/// Servers number the SSTables of each disk by themselves: those of a schema table on two disks may have one name.
#[test]
fn schema_tables_are_on_both_disks() {
    let node = spread();
    let id = Node::place(TABLE).rsplit_once('-').unwrap().1.to_owned();
    // What the second disk has of them is newer.
    let (first, second) = (node.data().join("system_schema"), disk(&node).join("system_schema"));
    node.schema_tables(&id, ["old", "older"]);
    fs::rename(&first, node.data().with_file_name("aside")).unwrap();
    node.schema_tables(&id, ["pk", "ck"]);
    fs::rename(&first, &second).unwrap();
    fs::rename(node.data().with_file_name("aside"), &first).unwrap();
    fs::remove_dir_all(first.join(format!("columns-{}", "5".repeat(32)))).unwrap();
    assert_eq!(once(&node, Keep::Flushes).len(), 3);
    for file in node.files() {
        assert_eq!(node.columns(&file)[..2], ["pk", "ck"], "{file}");
    }
}

/// With a directory for work of their own, data directories have no first one; all are still asked for.
#[test]
fn with_a_directory_for_work_they_come_in_any_order() {
    let node = spread();
    let work = node.data().with_file_name("work");
    let named = |directories: &[PathBuf]| {
        let mut options = node.options_of(Keep::Current);
        options.work = Some(work.clone());
        (options.data, options.more_data) = (directories[0].clone(), directories[1..].to_vec());
        options
    };
    let (a, b) = (node.data(), disk(&node));
    assert_eq!(Node::run(&named(&[a.clone(), b.clone()]), |_| {}).0.len(), 3);
    for turned in [[&b, &a], [&a, &b], [&b, &a]] {
        assert_eq!(Node::run(&named(&turned.map(Clone::clone)), |_| {}).0, ["started 1 0"]);
    }
    for (left, out) in [(&a, "disk2"), (&b, "data")] {
        let error = Node::error(&named(std::slice::from_ref(left)));
        let wanted = format!("{out}: name that, too");
        assert!(error.kind() == ErrorKind::Misuse && error.message().contains(&wanted), "{error}");
    }
    // A state of an earlier version does not know the first one.
    let state = fs::read_to_string(work.join("state")).unwrap();
    let without: String =
        state.lines().filter(|line| !line.starts_with("first ")).map(|line| format!("{line}\n")).collect();
    fs::write(work.join("state"), without).unwrap();
    let error = Node::error(&named(std::slice::from_ref(&a)));
    assert!(error.message().contains("2 data directories were watched together"), "{error}");
    assert_eq!(Node::run(&named(&[a, b]), |_| {}).0, ["started 1 0"]);
    assert_eq!(node.files().len(), 2);
}
