//! A network and a server that break: what was asked for is done all the same, or not at all.

use std::collections::BTreeSet;
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

fn is_last_request(asked: &Asked) -> bool {
    match &*asked.method {
        "PUT" => !asked.target.contains("partNumber="),
        "POST" => asked.target.contains("uploadId="),
        _ => false,
    }
}

/// What the store did is done, even if its answer does not arrive: once, or never.
#[test]
fn a_lost_answer_to_the_last_request() {
    let Some(bucket) = Bucket::new("lost") else { return };
    for (file, name) in [(data("types.parquet"), "@/small"), (numbers(20), "@/large")] {
        for losses in [1, usize::MAX] {
            let lost = AtomicUsize::new(0);
            let (behind, proxy) = proxy(&bucket, move |asked| {
                let is_lost = is_last_request(asked) && lost.fetch_add(1, Ordering::SeqCst) < losses;
                if is_lost { Act::Lose } else { Act::Pass }
            });
            let to = format!("{name}-{losses}.parquet");
            behind.run(["copy", &file, &to]).succeeded();
            bucket.run(["diff", &file, &to]).succeeded();
            assert!(proxy.seen().requests.iter().any(is_last_request));
            assert_eq!(bucket.uploads(), "");
        }
    }
    // An object of a directory.
    let folder = Folder::new();
    let csv = folder.write("ids.csv", &format!("id\n{}", "1\n".repeat(100)));
    let (behind, _proxy) = proxy(&bucket, |asked| {
        let is_lost = is_last_request(asked) && asked.target.contains("part-00003");
        if is_lost { Act::Lose } else { Act::Pass }
    });
    behind.run(["copy", &csv, "@/ids/", "--file-rows", "20"]).succeeded();
    assert_eq!(bucket.keys().split(' ').filter(|key| key.starts_with("ids/")).count(), 5);
}

/// If the store cannot be asked then, the error says that the object may be there.
#[test]
fn a_lost_answer_of_a_store_that_is_gone() {
    let Some(bucket) = Bucket::new("gone") else { return };
    let folder = Folder::new();
    let csv = folder.write("ids.csv", &format!("id\n{}", "1\n".repeat(100)));
    let (small, large) = (data("types.parquet"), numbers(20));
    let copies: [(&[&str], &str); 3] = [
        (&["copy", &small, "@/small.parquet"], "small.parquet: "),
        (&["copy", &large, "@/large.parquet"], "large.parquet: "),
        (&["copy", &csv, "@/ids/", "--file-rows=20"], "0 of 5 objects are there, and 1 more may be"),
    ];
    for (copy, said) in copies {
        let has_lost = std::sync::atomic::AtomicBool::new(false);
        let (behind, _proxy) = proxy(&bucket, move |asked| {
            let is_of_many = asked.target.contains("part-") && !asked.target.contains("part-00004");
            if is_last_request(asked) && !is_of_many {
                has_lost.store(true, Ordering::SeqCst);
                return Act::Lose;
            }
            match has_lost.load(Ordering::SeqCst) && asked.target.contains(".parquet") && !is_of_many {
                true => Act::Cut,
                false => Act::Pass,
            }
        });
        let spelled: Vec<String> = copy.iter().flat_map(|argument| behind.spelled([*argument])).collect();
        let run = run_with(&behind.variables(), spelled.iter().map(String::as_str));
        run.failed(3, &["whether it is there could not be found out, so it may be", said]);
    }
    assert_eq!(bucket.keys(), "ids/part-00004.parquet large.parquet small.parquet");
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

/// Uploads that are given up together are removed together, however long the server takes for each.
#[test]
fn uploads_of_a_directory_are_removed_together() {
    let Some(bucket) = Bucket::new("together") else { return };
    let arrived = (std::sync::Mutex::new(BTreeSet::new()), std::sync::Condvar::new());
    let (behind, _proxy) = proxy(&bucket, move |asked| {
        let is_fourth = asked.target.contains("part-00003");
        if is_fourth && is_part(asked, 1) {
            return Act::Status(403);
        }
        if asked.method == "DELETE" && !is_fourth {
            // Each is answered when all have come.
            let mut targets = arrived.0.lock().unwrap();
            targets.insert(asked.target.clone());
            arrived.1.notify_all();
            let patience = Duration::from_secs(10);
            let waited = arrived.1.wait_timeout_while(targets, patience, |targets| targets.len() < 3);
            if waited.unwrap().1.timed_out() {
                return Act::Cut;
            }
        }
        Act::Pass
    });
    let run = behind.run(["copy", &numbers(40), "@/n/", "--file-rows", "32768", "--threads", "1"]);
    run.failed(3, &["part-00003.parquet: access denied"]);
    assert_eq!((&*bucket.keys(), &*bucket.uploads()), ("", ""));
}

/// An upload that begins while its copy is cancelled is removed.
#[cfg(target_os = "linux")]
#[test]
fn interrupted_while_an_upload_begins() {
    let Some(bucket) = Bucket::new("begins") else { return };
    let (sender, is_waiting) = std::sync::mpsc::channel();
    let (interrupt, is_interrupted) = std::sync::mpsc::channel::<()>();
    let is_interrupted = std::sync::Mutex::new(is_interrupted);
    let (behind, proxy) = proxy(&bucket, move |asked| {
        if asked.method == "POST" && asked.target.contains("?uploads") {
            sender.send(()).unwrap();
            let _ = is_interrupted.lock().unwrap().recv();
            // Until the copy has noticed.
            std::thread::sleep(Duration::from_millis(500));
        }
        Act::Pass
    });
    let mut command = command(&behind.variables());
    command.args(behind.spelled(["copy", &numbers(20), "@/b.parquet"])).stderr(Stdio::piped());
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    is_waiting.recv().unwrap();
    let before = proxy.seen().rounds;
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    interrupt.send(()).unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{}", run.err);
    // The request is passed on, whether or not anybody waits for its answer.
    while proxy.seen().rounds == before {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((&*bucket.keys(), &*bucket.uploads()), ("", ""));
}

/// A command that waits for a server which never answers ends when it is asked to.
#[cfg(target_os = "linux")]
#[test]
fn interrupted() {
    let Some(bucket) = Bucket::new("interrupted") else { return };
    let file = numbers(20);
    bucket.run(["copy", &file, "@/a.parquet"]).succeeded();
    let wide = numbers(40);
    let cases: [([&str; 4], Is); 5] = [
        (["rows", "@/a.parquet", "--limit=1", "--threads=1"], |asked| asked.method == "GET"),
        (["rows", "@/a.parquet", "--limit=9", "--threads=1"], |asked| asked.number > 0),
        (["copy", &file, "@/b.parquet", "--threads=2"], |asked| is_part(asked, 2)),
        (["copy", &file, "@/b.parquet", "--threads=2"], |asked| asked.target.contains("?uploads")),
        (["copy", &wide, "@/n/", "--file-rows=32768"], |asked| {
            asked.target.contains("part-00002") && is_part(asked, 1)
        }),
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
