//! A network and a server that break: what was asked for is done all the same, or not at all.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use marquetry_testing::http::{Act, Asked, HttpProxy};

use super::common::{Run, data};
use super::s3::Bucket;
use super::{Folder, command, numbers, run_with};

/// Whether a request is the one that goes wrong.
type Is = fn(&Asked) -> bool;

fn proxy(bucket: &Bucket, decide: impl Fn(&Asked) -> Act + Send + Sync + 'static) -> (Bucket, HttpProxy) {
    let proxy = HttpProxy::start(&bucket.server.at, Duration::ZERO, decide);
    (bucket.behind(&proxy), proxy)
}

fn is_part(asked: &Asked, number: usize) -> bool {
    asked.method == "PUT" && asked.target.contains(&format!("partNumber={number}&"))
}

#[test]
fn what_passes_is_tried_again() {
    let Some(bucket) = Bucket::new("retries") else { return };
    let (folder, file) = (Folder::new(), numbers(20));
    let faults = [Act::Status(500), Act::Cut, Act::Status(503), Act::Pass, Act::Half, Act::Status(500)];
    // The same faults, while it is written and while it is read.
    for arguments in [["copy", &file, "@/a.parquet"], ["copy", "@/a.parquet", &folder.path("back.parquet")]] {
        let faults = faults.clone();
        let (behind, proxy) = proxy(&bucket, move |asked| {
            let act = faults.get(asked.number / 3).filter(|_| asked.number % 3 == 0).cloned();
            // What is cut off in the middle is something that is read.
            act.filter(|act| *act != Act::Half || asked.method == "GET").unwrap_or(Act::Pass)
        });
        behind.run(arguments).succeeded();
        assert!(proxy.seen().requests.len() > 5, "{:?}", proxy.seen());
    }
    run_with(&[], ["diff", &file, &folder.path("back.parquet")]).succeeded();
    assert_eq!((&*bucket.keys(), &*bucket.uploads()), ("a.parquet", ""));
}

#[test]
fn an_upload_that_is_refused_midway_leaves_nothing() {
    let Some(bucket) = Bucket::new("refused") else { return };
    let file = numbers(40);
    let refusals: [(&str, Is); 4] = [
        ("its first request", |asked| asked.method == "POST" && asked.target.contains("?uploads")),
        ("its third part", |asked| is_part(asked, 3)),
        ("its last part", |asked| is_part(asked, 6)),
        ("its last request", |asked| asked.method == "POST" && asked.target.contains("uploadId=")),
    ];
    for (what, is_refused) in refusals {
        let (behind, _proxy) = proxy(&bucket, move |asked| match is_refused(asked) {
            true => Act::Status(403),
            false => Act::Pass,
        });
        let run = behind.run(["copy", &file, "@/a.parquet"]);
        assert_ne!(run.code, Some(0), "{what}");
        run.failed(3, &["s3://refused/a.parquet: access denied"]);
        assert_eq!((&*bucket.keys(), &*bucket.uploads()), ("", ""), "{what}");
    }
    // And can be repeated.
    bucket.run(["copy", &file, "@/a.parquet"]).succeeded();
    bucket.run(["diff", &file, "@/a.parquet"]).succeeded();
}

#[test]
fn an_upload_that_cannot_be_removed_is_reported() {
    let Some(bucket) = Bucket::new("stays") else { return };
    let (behind, _proxy) = proxy(&bucket, |asked| match is_part(asked, 2) || asked.method == "DELETE" {
        true => Act::Status(403),
        false => Act::Pass,
    });
    let run = behind.run(["copy", &numbers(20), "@/a.parquet"]);
    run.failed(3, &["access denied", "parts of it could not be removed"]);
    assert_eq!((&*bucket.keys(), &*bucket.uploads()), ("", "a.parquet"));
}

#[test]
fn an_object_that_appears_meanwhile_stays() {
    let Some(bucket) = Bucket::new("meanwhile") else { return };
    let server = bucket.server;
    for (file, target) in
        [(data("types.parquet"), "/meanwhile/small.parquet"), (numbers(20), "/meanwhile/large.parquet")]
    {
        let writes = AtomicUsize::new(0);
        let (behind, _proxy) = proxy(&bucket, move |asked| {
            if asked.method != "GET" && asked.method != "HEAD" && writes.fetch_add(1, Ordering::SeqCst) == 0 {
                assert_eq!(server.ask("PUT", target, b"another's").status, 200);
            }
            Act::Pass
        });
        let name = target.trim_start_matches("/meanwhile");
        behind.run(["copy", &file, &format!("@{name}")]).failed(1, &["already exists"]);
        assert_eq!(server.ask("GET", target, b"").body, b"another's");
        assert_eq!(bucket.uploads(), "");
    }
}

#[test]
fn an_object_that_changes_while_it_is_read_is_an_error() {
    let Some(bucket) = Bucket::new("changes") else { return };
    let (folder, file) = (Folder::new(), numbers(20));
    bucket.run(["copy", &file, "@/a.parquet"]).succeeded();
    let (server, other) = (bucket.server, std::fs::read(numbers(5)).unwrap());
    // After the footer was read.
    let (behind, _proxy) = proxy(&bucket, move |asked| {
        if asked.number == 1 {
            server.ask("PUT", "/changes/a.parquet", &other);
        }
        Act::Pass
    });
    let run = behind.run(["copy", "@/a.parquet", &folder.path("out.parquet")]);
    run.failed(3, &["s3://changes/a.parquet: it was changed while it was read"]);
    assert!(!std::path::Path::new(&folder.path("out.parquet")).exists());
}

#[test]
fn a_directory_that_is_refused_midway_leaves_nothing() {
    let Some(bucket) = Bucket::new("half") else { return };
    let csv: String = (0..100).map(|id| format!("{id}\n")).collect();
    let folder = Folder::new();
    let csv = folder.write("ids.csv", &format!("id\n{csv}"));
    let (behind, _proxy) =
        proxy(&bucket, |asked| match asked.target.contains("part-00012") && asked.method == "PUT" {
            true => Act::Status(403),
            false => Act::Pass,
        });
    let copy = ["copy", &csv, "@/ids/", "--file-rows", "5"];
    behind.run(copy).failed(3, &["s3://half/ids/part-00012.parquet: access denied"]);
    assert_eq!((&*bucket.keys(), &*bucket.uploads()), ("", ""));
    // What replaced another object cannot be taken back: that is reported.
    bucket.run(["copy", &csv, "@/ids/", "--file-rows", "5"]).succeeded();
    let copy = ["copy", &csv, "@/ids/", "--file-rows", "5", "--overwrite"];
    behind.run(copy).failed(3, &["access denied", "of 20 objects are there"]);
    assert_eq!(bucket.keys().split(' ').count(), 20);
}

/// A command that waits for a server which never answers ends when it is asked to.
#[cfg(target_os = "linux")]
#[test]
fn interrupted() {
    let Some(bucket) = Bucket::new("interrupted") else { return };
    let file = numbers(20);
    bucket.run(["copy", &file, "@/a.parquet"]).succeeded();
    let cases: [([&str; 3], Is); 3] = [
        (["rows", "@/a.parquet", "--limit=1"], |asked| asked.method == "GET"),
        (["rows", "@/a.parquet", "--limit=9"], |asked| asked.number > 0),
        (["copy", &file, "@/b.parquet"], |asked| is_part(asked, 2)),
    ];
    for (arguments, is_silent) in cases {
        let (sender, is_waiting) = std::sync::mpsc::channel();
        let (behind, _proxy) = proxy(&bucket, move |asked| match is_silent(asked) {
            true => {
                let _ = sender.send(());
                Act::Silent
            }
            false => Act::Pass,
        });
        let mut command = command(&behind.variables());
        command.args(behind.spelled(arguments)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        is_waiting.recv().unwrap();
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let run = Run::of(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(130), "{}", run.err);
        assert_eq!((&*bucket.keys(), &*bucket.uploads()), ("a.parquet", ""), "{arguments:?}");
    }
}
