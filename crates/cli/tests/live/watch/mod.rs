//! `marquetry watch`, as people start it; beside a real server, if there is one.

mod disks;
mod plugin;
mod plugin_load;
mod server;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::common::{Folder, marquetry, run};

const ID: &str = "0123456789abcdef0123456789abcdef";

/// A data directory with a table of three SSTables.
fn node(folder: &Folder) -> (String, PathBuf) {
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/sstables/ks/t-{ID}"));
    let table = folder.root().join(format!("data/ks/t-{ID}"));
    fs::create_dir_all(&table).unwrap();
    for file in fs::read_dir(small).unwrap() {
        let file = file.unwrap();
        // (Not its permissions: what is checked out may be read only.)
        fs::write(table.join(file.file_name()), fs::read(file.path()).unwrap()).unwrap();
    }
    (folder.path("data"), table)
}

#[test]
fn a_run_of_cron() {
    let folder = Folder::new();
    let (data, table) = node(&folder);
    let lake = folder.path("lake");
    let said = run(["watch", &data, "--to", &lake, "--once"]).succeeded();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "1 table watched, 3 SSTables to convert");
    assert!(lines[1].starts_with("ks.t nb-2-big: 2 rows, "), "{said}");
    assert!(lines[4].starts_with("3 SSTables converted (19 rows, "), "{said}");
    assert_eq!(lines.len(), 5);
    // Read as one table, the files are the table's writes.
    assert_eq!(run(["count", &lake, "--union"]).succeeded(), "19\n");
    let first = fs::read_dir(folder.root().join(format!("lake/ks/t-{ID}"))).unwrap();
    let first =
        first.map(|file| file.unwrap().path()).find(|path| path.to_string_lossy().contains("oa-2-big"));
    let sstable = format!("sstable:{}", table.join("oa-2-big-Data.db").display());
    run(["diff", &sstable, first.unwrap().to_str().unwrap(), "--strict"]).succeeded();
    let said = run(["watch", &data, "--to", &lake, "--once"]).succeeded();
    assert!(said.starts_with("1 table watched, 0 SSTables to convert\n0 SSTables converted"), "{said}");
    assert_eq!(run(["watch", &data, "--to", &lake, "--once", "--quiet"]).succeeded(), "");
}

#[test]
fn events_for_programs() {
    let folder = Folder::new();
    let (data, table) = node(&folder);
    let metrics = folder.path("watch.prom");
    let all = ["watch", &data, "--to", &folder.path("lake"), "--once", "--json", "--mapping", "logical"];
    let more = ["--table", "ks.t,other", "--share", "90%", "--threads", "1", "--metrics-file", &metrics];
    fs::remove_file(table.join("oa-3-big-TOC.txt")).unwrap();
    let said = run(all.iter().chain(&more)).succeeded();
    let events: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["note", "started", "converted", "converted", "note", "ended"]);
    assert_eq!(events[0]["text"], "no table is called other");
    let events = &events[1..];
    assert_eq!((&events[2]["table"], &events[2]["sstable"]), (&"ks.t".into(), &"oa-2-big".into()));
    assert!(Path::new(events[2]["path"].as_str().unwrap()).is_file());
    let note = events[3]["text"].as_str().unwrap();
    assert!(note.starts_with("ks.t oa-3-big: ") && note.contains("oa-3-big-TOC.txt"), "{note}");
    assert_eq!((&events[4]["converted"], &events[4]["incomplete"]), (&2.into(), &1.into()));
    let metrics = fs::read_to_string(metrics).unwrap();
    assert!(metrics.contains("marquetry_watch_sstables_converted_total 2\n"), "{metrics}");
}

#[test]
fn what_is_wrong_has_its_exit_code() {
    let folder = Folder::new();
    let (data, table) = node(&folder);
    let lake = folder.path("lake");
    let usage =
        |arguments: &[&str]| assert_eq!(run(arguments.iter().copied()).code, Some(2), "{arguments:?}");
    usage(&["watch", &data, "--once"]);
    run(["watch", &folder.path("nowhere"), "--to", &lake, "--once"]).failed(3, &["nowhere"]);
    usage(&["watch", &data, "--to", &lake, "--once", "--share", "0%"]);
    usage(&["watch", &data, "--to", &lake, "--once", "--table", "a.b.c"]);
    usage(&["watch", &data, "--to", &lake, "--poll", "0"]);
    usage(&["watch", &data, "--to", &lake, "--once", "--codec", "zstd", "--level", "99"]);
    usage(&["watch", &data, "--to", &format!("{data}/lake"), "--once"]);
    usage(&["watch", &data, "--to", &lake, "--once", "--inbox"]);
    assert!(!folder.root().join("data/.marquetry").exists(), "what is refused leaves nothing");
    let path = table.join("oa-2-big-Data.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 0x55;
    fs::write(&path, &bytes).unwrap();
    let failed = run(["watch", &data, "--to", &lake, "--once", "--quiet"]);
    assert_eq!(failed.code, Some(1), "{}", failed.err);
    let lines: Vec<&str> = failed.err.lines().collect();
    assert_eq!(lines.len(), 2, "{}", failed.err);
    assert!(lines[0].starts_with("marquetry: ks.t oa-2-big: "), "{}", failed.err);
    assert!(lines[1].contains("1 SSTable could not be converted"), "{}", failed.err);
    // It is not tried again, and said again.
    let again = run(["watch", &data, "--to", &lake, "--once"]);
    assert_eq!(again.code, Some(1), "{}", again.err);
    assert!(again.err.starts_with("marquetry: ks.t oa-2-big: "), "{}", again.err);
    assert!(again.err.contains(" (earlier; --retry-failed tries it again)\n"), "{}", again.err);
    assert!(again.err.contains("1 SSTable could not be converted"), "{}", again.err);
    assert!(again.out.contains("1 could not be converted earlier (--retry-failed"), "{}", again.out);
    run(["watch", &data, "--to", &lake, "--once", "--keep", "current"])
        .failed(2, &["--keep flushes, not current"]);
}

/// Ctrl-C is the way to end it, and no failure.
#[test]
#[cfg(unix)]
fn it_ends_when_it_is_asked_to() {
    let folder = Folder::new();
    let (data, _) = node(&folder);
    let mut child = marquetry()
        .args(["watch", &data, "--to", &folder.path("lake"), "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    for kind in ["started", "converted", "converted", "converted"] {
        let line = lines.next().unwrap();
        assert!(line.contains(&format!(r#""event":"{kind}""#)), "{line}");
    }
    let killed = std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    assert!(lines.next().unwrap().contains(r#""event":"ended""#));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A child of a program: what is in its inbox is taken out, and it ends with that program.
#[test]
fn an_inbox_is_emptied() {
    let folder = Folder::new();
    let (data, table) = node(&folder);
    fs::write(folder.root().join("data/_marquetry_inbox"), "").unwrap();
    let (lake, work) = (folder.path("lake"), folder.path("work"));
    let mut child = marquetry()
        .args([
            "watch",
            &data,
            "--to",
            &lake,
            "--work",
            &work,
            "--inbox",
            "--until-eof",
            "--json",
            "--codec",
            "zstd",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    for kind in ["started", "converted", "converted", "converted"] {
        let line = lines.next().unwrap();
        assert!(line.contains(&format!(r#""event":"{kind}""#)), "{line}");
    }
    let left: Vec<_> = fs::read_dir(&table).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "schema.cql"), "{left:?}");
    drop(child.stdin.take());
    assert!(lines.next().unwrap().contains(r#""event":"ended""#));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(run(["count", &lake, "--union"]).succeeded(), "19\n");
    let first = fs::read_dir(folder.root().join(format!("lake/ks/t-{ID}"))).unwrap().next().unwrap().unwrap();
    let shown = run(["show", first.path().to_str().unwrap()]).succeeded();
    assert!(shown.to_lowercase().contains("zstd"), "{shown}");
}
