//! Runs that wait for what appears.

use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use marquetry_tables::Cancel;
use marquetry_tables::sstables::{Keep, WatchOptions};

use super::node::{INSERTED, Node, TABLE, UPDATED};

/// A watcher on a thread of its own.
struct Running {
    events: Receiver<String>,
    cancel: Cancel,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn new(mut options: WatchOptions) -> Running {
        options.once = false;
        let (sender, events) = channel();
        let cancel = options.cancel.clone();
        let thread = spawn(move || drop(Node::run(&options, |event| sender.send(event.to_owned()).unwrap())));
        Running { events, cancel, thread: Some(thread) }
    }

    /// The next that happens; no test waits forever.
    fn next(&self) -> String {
        self.events.recv_timeout(Duration::from_secs(60)).expect("something happens")
    }

    fn end(mut self) {
        self.cancel.cancel();
        self.thread.take().unwrap().join().unwrap();
        assert!(self.events.try_recv().is_err(), "nothing else happened");
    }
}

fn expect_all(options: WatchOptions, node: &Node) {
    node.put(TABLE, INSERTED, "oa-1-big");
    let running = Running::new(options);
    assert_eq!([running.next(), running.next()], ["started 1 1", "converted ks.t oa-1-big 15"]);
    node.put(TABLE, UPDATED, "nb-2-big");
    assert_eq!(running.next(), "converted ks.t nb-2-big 2");
    // A table, and a keyspace, that are new.
    node.put("ks/u", INSERTED, "oa-1-big");
    assert_eq!(running.next(), "converted ks.u oa-1-big 15");
    node.put("new/t", INSERTED, "oa-1-big");
    assert_eq!(running.next(), "converted new.t oa-1-big 15");
    node.put("new/t", INSERTED, "oa-2-big");
    assert_eq!(running.next(), "converted new.t oa-2-big 15");
    running.end();
}

#[test]
fn what_appears_is_converted() {
    let node = Node::new();
    expect_all(node.options(), &node);
}

#[test]
fn what_appears_is_found_by_looking_again_and_again() {
    let node = Node::new();
    let mut options = node.options();
    options.poll = Some(Duration::from_millis(20));
    expect_all(options, &node);
}

#[test]
fn transactions_that_end_are_noticed() {
    let node = Node::new();
    let running = Running::new(node.options_of(Keep::Current));
    assert_eq!(running.next(), "started 1 0");
    node.put(TABLE, INSERTED, "oa-1-big");
    assert_eq!(running.next(), "converted ks.t oa-1-big 15");
    let lines = [("ADD", "oa-2-big"), ("REMOVE", "oa-1-big"), ("COMMIT", "")];
    node.log("compaction", &lines[..2]);
    node.put(TABLE, INSERTED, "oa-2-big");
    node.log("compaction", &lines);
    node.remove(TABLE, "oa-1-big");
    node.end_logs();
    assert_eq!([running.next(), running.next()], ["converted ks.t oa-2-big 15", "removed ks.t oa-1-big"]);
    running.end();
}

/// More changes than the kernel keeps: what it lost is found by looking at everything.
#[test]
#[cfg(target_os = "linux")]
fn what_the_kernel_loses_is_found() {
    let kept = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let kept: usize = kept.trim().parse().unwrap();
    assert!(kept <= 1 << 20, "this machine keeps {kept} events: too many for a test to fill");
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let mut options = node.options();
    options.once = false;
    let cancel = options.cancel.clone();
    // Another one, which tells that there were too many.
    let mut noticing = marquetry_io::Noticing::new().unwrap();
    noticing.watch(&node.table(TABLE)).unwrap();
    let (events, _) = Node::run(&options, |event| match event {
        // Nothing is read from the queue while this runs.
        "converted ks.t oa-1-big 15" => {
            let name = node.table(TABLE).join("noise");
            // Three events each: it is created, closed and removed.
            for _ in 0..kept / 3 + 1 {
                std::fs::write(&name, "").unwrap();
                std::fs::remove_file(&name).unwrap();
            }
            node.put(TABLE, UPDATED, "nb-2-big");
            node.put("new/t", INSERTED, "oa-1-big");
            assert!(noticing.wait(Duration::ZERO).unwrap().has_lost);
        }
        "converted new.t oa-1-big 15" => cancel.cancel(),
        _ => {}
    });
    let all = [
        "started 1 1",
        "converted ks.t oa-1-big 15",
        "converted ks.t nb-2-big 2",
        "converted new.t oa-1-big 15",
    ];
    assert_eq!(events, all);
}

/// A share of a hundredth takes its time, and is converted all the same.
#[test]
fn shares_and_metrics() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    let mut options = node.options();
    let metrics = node.data().join("watch.prom");
    (options.share_percent, options.metrics) = (Some(50), Some(metrics.clone()));
    let (events, summary) = Node::run(&options, |_| {});
    assert_eq!((events.len(), summary.rows), (2, 15));
    let text = std::fs::read_to_string(metrics).unwrap();
    assert!(text.contains("\nmarquetry_watch_sstables_converted_total 1\n"), "{text}");
    assert!(text.contains("\nmarquetry_watch_rows_total 15\n"), "{text}");
}
