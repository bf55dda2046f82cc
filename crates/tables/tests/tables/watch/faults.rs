//! What is wrong: reported once, tried again where that makes sense, and the others go on.

use marquetry_base::Limits;
use marquetry_tables::files::ParquetFile;
use std::fs;

use marquetry_base::ErrorKind;
use marquetry_tables::sstables::{Definition, Keep, MutationMapping};

use super::node::{DELETED, INSERTED, Node, TABLE, UPDATED};

#[test]
fn a_corrupt_sstable_is_reported_once_and_the_others_go_on() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    node.put(TABLE, INSERTED, "oa-2-big");
    node.put(TABLE, UPDATED, "nb-3-big");
    let data = node.table(TABLE).join("oa-1-big-Data.db");
    let good = fs::read(&data).unwrap();
    let mut bad = good.clone();
    bad[100] ^= 0x55;
    fs::write(&data, &bad).unwrap();
    let statistics = node.table(TABLE).join("oa-2-big-Statistics.db");
    fs::write(&statistics, "nothing").unwrap();
    let (events, summary) = Node::run(&node.options(), |_| {});
    assert!(events[0].starts_with("failed ks.t oa-2-big for good"), "{events:?}");
    assert_eq!(events.iter().filter(|event| event.starts_with("failed")).count(), 2, "{events:?}");
    assert_eq!((summary.converted, summary.failed, summary.waiting), (1, 2, 0));
    let (events, summary) = Node::run(&node.options(), |_| {});
    // Not tried again, and said again.
    let said = ["failed before ks.t oa-1-big", "failed before ks.t oa-2-big", "started 1 0"];
    assert_eq!(events, said);
    assert_eq!((summary.failed, summary.failed_before), (0, 2));
    fs::write(&data, &good).unwrap();
    let mut options = node.options();
    options.retry_failed = true;
    let (events, summary) = Node::run(&options, |_| {});
    assert_eq!((summary.converted, summary.failed), (1, 1), "{events:?}");
    assert_eq!(node.files().len(), 2);
}

/// What could not be converted is held: a compaction, or an inbox, may remove what a later version can read.
#[test]
fn what_cannot_be_converted_keeps_its_links() {
    for keep in [Keep::Flushes, Keep::Current] {
        let node = Node::new();
        node.put(TABLE, INSERTED, "oa-1-big");
        let data = node.table(TABLE).join("oa-1-big-Data.db");
        let mut bytes = fs::read(&data).unwrap();
        bytes[100] ^= 0x55;
        fs::write(&data, &bytes).unwrap();
        Node::run(&node.options_of(keep), |_| {});
        let links = node.links();
        assert!(links > 3, "{links}");
        // It is said at each start, and neither tried again nor forgotten.
        let again = ["failed before ks.t oa-1-big", "started 1 0"];
        assert_eq!(Node::run(&node.options_of(keep), |_| {}).0, again);
        node.remove(TABLE, "oa-1-big");
        if keep == Keep::Current {
            // What has replaced it has it.
            Node::run(&node.options_of(keep), |_| {});
            assert_eq!(node.links(), 0);
            continue;
        }
        assert_eq!(Node::run(&node.options_of(keep), |_| {}).0, again);
        assert_eq!(node.links(), links);
        // Whatever was wrong with it is right now.
        bytes[100] ^= 0x55;
        fs::write(node.links_folder().join(Node::place(TABLE)).join("oa-1-big-Data.db"), &bytes).unwrap();
        let mut options = node.options_of(keep);
        options.retry_failed = true;
        assert_eq!(Node::run(&options, |_| {}).0, ["started 1 1", "converted ks.t oa-1-big 15"]);
        assert_eq!(node.links(), 0);
    }
}

/// A server that uses a name again, after a TRUNCATE and a restart, while the first SSTable still waits: both are held, both become files.
#[test]
fn a_name_that_is_used_again_loses_neither() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let options = node.options();
    let cancel = options.cancel.clone();
    Node::run(&options, |_| cancel.cancel());
    node.remove(TABLE, "oa-1-big");
    node.put(TABLE, DELETED, "oa-1-big");
    let options = node.options();
    let cancel = options.cancel.clone();
    let (events, _) = Node::run(&options, |_| {
        cancel.cancel();
        node.remove(TABLE, "oa-1-big");
    });
    assert_eq!(events, ["started 1 2"]);
    assert_eq!(node.once(), ["started 1 2", "converted ks.t oa-1-big 15", "converted ks.t oa-1-big 2"]);
    assert_eq!((node.files().len(), node.links()), (2, 0));
}

#[test]
fn versions_that_are_not_known_are_reported() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "zz-1-big");
    node.put(TABLE, INSERTED, "oa-2-big");
    let (events, summary) = Node::run(&node.options(), |_| {});
    assert!(events[0].starts_with("failed ks.t zz-1-big for good"), "{events:?}");
    assert_eq!((summary.converted, summary.failed), (1, 1));
}

#[test]
fn a_destination_that_cannot_be_written_is_tried_again() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    node.put(TABLE, INSERTED, "oa-2-big");
    // A file where the table's directory would be.
    let blocked = node.destination().join("ks");
    fs::create_dir_all(node.destination()).unwrap();
    fs::write(&blocked, "").unwrap();
    let (events, summary) = Node::run(&node.options(), |_| {});
    assert_eq!(events.len(), 3, "{events:?}");
    assert_eq!((summary.converted, summary.waiting, summary.failed), (0, 2, 0));
    assert_eq!(summary.unreachable.map(|error| error.kind()), Some(ErrorKind::Io));
    // A run that goes on converts them as soon as it can.
    let mut options = node.options();
    options.once = false;
    let (cancel, mut converted) = (options.cancel.clone(), 0);
    let (events, summary) = Node::run(&options, |event| {
        if event.starts_with("failed") {
            let _ = fs::remove_file(&blocked);
        }
        converted += usize::from(event.starts_with("converted"));
        if converted == 2 {
            cancel.cancel();
        }
    });
    assert_eq!((summary.converted, summary.waiting), (2, 0), "{events:?}");
    assert!(summary.unreachable.is_none());
}

/// A table whose directory cannot be read hides no other, and is not forgotten at the end.
#[test]
fn a_table_that_cannot_be_read_is_reported() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    node.put("ks/u", INSERTED, "oa-1-big");
    let blocked = node.table("ks/u").join("pending_delete");
    fs::write(&blocked, "not a directory").unwrap();
    let (events, summary) = Node::run(&node.options(), |_| {});
    assert!(events[0].starts_with("failed ") && events[0].contains("again"), "{events:?}");
    assert_eq!((summary.converted, summary.unreachable.is_some()), (1, true));
    fs::remove_file(&blocked).unwrap();
    assert_eq!(node.once()[1..], ["converted ks.u oa-1-big 15"]);
}

#[test]
fn another_file_of_that_name_is_not_taken_for_the_sstables() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    node.put(TABLE, UPDATED, "nb-2-big");
    node.once();
    let files = node.files();
    // Made anew, by a watcher that knows of nothing, beside a file that is another one's.
    fs::copy(node.file(&files[0]), node.file(&files[1])).unwrap();
    fs::remove_dir_all(node.data().join(".marquetry")).unwrap();
    let error = Node::error(&node.options());
    assert!(error.message().contains("another watcher"), "{error}");
    fs::remove_file(node.file("_marquetry_watch")).unwrap();
    let (events, summary) = Node::run(&node.options(), |_| {});
    assert_eq!((events.len(), summary.converted, summary.waiting), (2, 0, 1), "{events:?}");
    assert!(events[1].contains("there is another file by the name"), "{events:?}");
    // A later start does not take it for the SSTable's, either.
    let (events, summary) = Node::run(&node.options(), |_| {});
    assert_eq!((&*events[0], summary.converted, summary.waiting), ("started 1 1", 0, 1), "{events:?}");
    fs::remove_file(node.file(&files[1])).unwrap();
    assert_eq!(node.once(), ["started 1 1", "converted ks.t oa-1-big 15"]);
}

#[test]
fn one_watcher_has_a_destination_and_a_directory_for_work() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let options = node.options();
    let mut second = node.options();
    Node::run(&options, |_| {
        let error = Node::error(&second);
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains("another watcher has this directory for work"), "{error}");
    });
    second.work = Some(node.data().join(".other"));
    let error = Node::error(&second);
    assert!(error.message().contains("the destination is that of another watcher"), "{error}");
    let mut other = node.options_of(Keep::Current);
    assert!(Node::error(&other).message().contains("--keep flushes, not current"));
    other = node.options();
    other.destination = node.data().join("../elsewhere");
    assert!(Node::error(&other).message().contains("destination"));
}

#[test]
fn a_definition_of_another_table_is_reported_and_may_be_mended() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let mut options = node.options();
    options.definition = Definition::Text("CREATE TABLE ks.t (a int PRIMARY KEY)".into());
    let (events, summary) = Node::run(&options, |_| {});
    assert!(events[1].starts_with("failed ks.t oa-1-big for good"), "{events:?}");
    assert_eq!((summary.failed, summary.waiting), (1, 1));
    node.remove(TABLE, "oa-1-big");
    assert_eq!(node.once(), ["started 1 1", "converted ks.t oa-1-big 15"]);
}

#[test]
fn definitions_above_that_do_not_name_the_table_are_not_its() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    node.once();
    let expected: Vec<String> = node.files();
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let stranger =
        "CREATE TABLE ks.customers (cust text PRIMARY KEY); CREATE TABLE other.t (a text PRIMARY KEY);";
    fs::write(node.data().join("schema.cql"), stranger).unwrap();
    assert_eq!(node.once(), ["started 1 1", "converted ks.t oa-1-big 15"]);
    assert_eq!(node.files(), expected);
    let schema = |node: &Node| {
        let file = ParquetFile::open(&node.file(&expected[0]), Limits::DEFAULT).unwrap();
        let schema = &file.metadata().schema;
        (0..schema.leaves().len()).map(|leaf| schema.leaf_path(leaf)).collect::<Vec<_>>()
    };
    assert!(schema(&node).len() > 3, "{:?}", schema(&node));
    assert!(!schema(&node).contains(&"cust".to_owned()));
}

#[test]
fn what_is_refused_leaves_nothing() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let refused = |options: &marquetry_tables::sstables::WatchOptions, why: &str| {
        let error = Node::error(options);
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains(why), "{error}");
        assert!(!node.data().join(".marquetry").exists() && !node.data().join("new").exists());
    };
    let mut options = node.options();
    options.destination = node.data().join("ks/../lake");
    refused(&options, "the destination is in the data directory");
    options.destination = node.data().join("../work/lake");
    options.work = Some(node.data().join("../work"));
    refused(&options, "the destination is in the directory for work");
    options = node.options();
    options.poll = Some(std::time::Duration::ZERO);
    refused(&options, "more than 0");
    options = node.options();
    options.parquet.write.column.level = Some(99);
    refused(&options, "level");
    options = node.options();
    options.definition = Definition::Text("CREATE TABLE ks.t (".into());
    refused(&options, "");
    options.definition = Definition::Text("USE ks".into());
    refused(&options, "no CREATE TABLE");
    options.definition = Definition::File(node.data().join("nowhere.cql"));
    assert_eq!(Node::error(&options).kind(), ErrorKind::Io);
    options = node.options();
    options.work = Some(node.table(TABLE).join("oa-1-big-Data.db"));
    refused(&options, "not a directory");
    // It is another watcher's.
    options = node.options();
    fs::create_dir_all(node.destination()).unwrap();
    fs::write(node.file("_marquetry_watch"), "somebody\n").unwrap();
    refused(&options, "another watcher");
    options.work = Some(node.data().join("new/work"));
    refused(&options, "another watcher");
    // A destination that cannot be listed is no misuse; it leaves nothing, either.
    options.destination = node.table(TABLE).join("../../../blocked");
    fs::write(&options.destination, "").unwrap();
    assert_eq!(Node::error(&options).kind(), ErrorKind::Io);
    assert!(!node.data().join("new").exists());
}

#[test]
fn tables_that_are_not_there_are_named() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    node.schema();
    let mut options = node.options();
    options.tables = ["ks.t", "ks.nothing", "none"].map(|name| name.parse().unwrap()).to_vec();
    let mut notes = Vec::new();
    marquetry_tables::sstables::watch(&options, &mut |event| {
        if let marquetry_tables::sstables::WatchEvent::Note(text) = event {
            notes.push(text.to_string());
        }
    })
    .unwrap();
    assert_eq!(notes, ["no table is called ks.nothing", "no table is called none"]);
}

/// A directory that is none of a server's, which would be watched for nothing.
#[test]
fn a_wrong_data_directory_is_refused() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let above = node.data().parent().unwrap().to_path_buf();
    let data = node.data().display().to_string();
    for (wrong, meant) in [(above, &data), (node.data().join("ks"), &data), (node.table(TABLE), &data)] {
        let mut options = node.options();
        options.data = wrong.clone();
        options.destination = node.data().join("../../lake");
        let error = Node::error(&options);
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains("not a node's data directory"), "{error}");
        assert!(error.message().contains(meant.as_str()), "{error}");
        assert!(!wrong.join(".marquetry").exists());
    }
    let mut options = node.options();
    options.data = node.table(TABLE).join("oa-1-big-Data.db");
    assert!(Node::error(&options).message().contains("not a directory"));
    // One that is empty may be that of a server which has not been started.
    options.data = node.data().join("../empty");
    fs::create_dir(&options.data).unwrap();
    assert_eq!(Node::run(&options, |_| {}).0, ["started 0 0"]);
}

/// What a file was written to is remembered, and what was only meant is not.
#[test]
fn a_first_destination_that_is_wrong_may_be_mended() {
    let node = Node::new();
    let mut options = node.options();
    // It was there before, so nothing of it is removed when this fails.
    let work = node.data().join("../work");
    fs::create_dir(&work).unwrap();
    options.work = Some(work);
    options.destination = node.data().join("../wrong");
    fs::create_dir_all(&options.destination).unwrap();
    let theirs = options.destination.join("_marquetry_watch");
    fs::write(&theirs, "somebody\n").unwrap();
    assert!(Node::error(&options).message().contains("another watcher"));
    // One that could be written to, and was not.
    options.destination = node.data().join("../meant");
    assert_eq!(Node::run(&options, |_| {}).0, ["started 1 0"]);
    options.destination = node.destination();
    (options.keep, options.mapping) = (Keep::Current, MutationMapping::Logical);
    assert_eq!(Node::run(&options, |_| {}).0, ["started 1 0"]);
    // One that cannot be written to.
    (options.keep, options.mapping) = (Keep::Flushes, MutationMapping::Full);
    node.put(TABLE, INSERTED, "oa-1-big");
    fs::write(node.destination().join("ks"), "").unwrap();
    assert_eq!(Node::run(&options, |_| {}).1.waiting, 1);
    options.destination = node.data().join("../meant");
    assert_eq!(Node::run(&options, |_| {}).0, ["started 1 1", "converted ks.t oa-1-big 15"]);
    options.destination = node.destination();
    assert!(Node::error(&options).message().contains("destination"));
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "somebody\n");
}

/// A link to the data directory, and the directory: the same.
#[cfg(unix)]
#[test]
fn a_data_directory_may_be_a_symbolic_link() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let link = node.data().join("../link");
    std::os::unix::fs::symlink(node.data(), &link).unwrap();
    let mut linked = node.options();
    linked.data = link;
    Node::run(&node.options(), |_| {
        assert!(Node::error(&linked).message().contains("another watcher has this directory"));
    });
    assert_eq!(Node::run(&linked, |_| {}).0, ["started 1 0"]);
    node.put(TABLE, UPDATED, "nb-2-big");
    assert_eq!(Node::run(&linked, |_| {}).0, ["started 1 1", "converted ks.t nb-2-big 2"]);
    assert_eq!(node.once(), ["started 1 0"]);
}

/// Links cannot be made to another file system, and that is known before there is anything to link.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_for_work_elsewhere_is_refused() {
    use std::os::unix::fs::MetadataExt;
    let node = Node::new();
    let elsewhere = std::path::Path::new("/dev/shm");
    let device = |path: &std::path::Path| fs::metadata(path).map(|found| found.dev()).ok();
    if device(elsewhere).is_none() || device(elsewhere) == device(&node.data()) {
        // Nothing to try it with.
        return;
    }
    let mut options = node.options();
    options.work = Some(elsewhere.join(format!("marquetry-watch-{}/work", std::process::id())));
    let error = Node::error(&options);
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("another file system"), "{error}");
    assert!(!options.work.unwrap().exists());
    // The data directory is on the same one, and what is to be linked is not: as of mounts.
    let table = tempfile::tempdir_in(elsewhere).unwrap();
    fs::remove_dir(node.table(TABLE)).unwrap();
    std::os::unix::fs::symlink(table.path(), node.table(TABLE)).unwrap();
    assert_eq!(node.once(), ["started 1 0"], "nothing to try it with");
    node.put(TABLE, INSERTED, "oa-1-big");
    let error = Node::error(&node.options());
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("no hard links can be made from"), "{error}");
    // Of another table they can be made, and only what cannot be linked fails.
    node.put("ks/u", UPDATED, "nb-2-big");
    let (events, summary) = Node::run(&node.options(), |_| {});
    assert!(events[0].starts_with("failed ks.t oa-1-big again: it could not be linked"), "{events:?}");
    assert_eq!(summary.converted, 1);
}

/// One that stays incomplete is named; of one that is being written, nobody need hear.
#[test]
fn what_an_sstable_lacks_is_said() {
    let node = Node::new();
    for stem in ["oa-1-big", "oa-2-big", "oa-3-big", "oa-4-big"] {
        node.put(TABLE, INSERTED, stem);
    }
    for name in ["oa-1-big-Filter.db", "oa-2-big-TOC.txt"] {
        fs::remove_file(node.table(TABLE).join(name)).unwrap();
    }
    node.log("flush", &[("ADD", "oa-3-big")]);
    let mut notes = Vec::new();
    let summary = marquetry_tables::sstables::watch(&node.options(), &mut |event| {
        if let marquetry_tables::sstables::WatchEvent::Note(text) = event {
            notes.push(text.to_string());
        }
    })
    .unwrap();
    assert_eq!((summary.converted, summary.incomplete), (1, 3));
    notes.retain(|note| note.contains("not complete"));
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes[0].starts_with("ks.t oa-1-big: ") && notes[0].contains("oa-1-big-Filter.db is missing"),
        "{notes:?}"
    );
    assert!(
        notes[1].starts_with("ks.t oa-2-big: ") && notes[1].contains("its table of contents"),
        "{notes:?}"
    );
}

#[test]
fn data_that_are_not_there_are_an_error() {
    let node = Node::new();
    let mut options = node.options();
    options.data = node.data().join("nowhere");
    options.work = Some(node.data().join(".work"));
    assert_eq!(Node::error(&options).kind(), ErrorKind::Io);
}
