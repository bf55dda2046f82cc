use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use marquetry_base::ErrorKind;

use super::*;

#[test]
fn a_file_that_changes_has_another_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let version = || FileStream::open(&path, || false).unwrap().version().cloned().unwrap();
    fs::write(&path, "one").unwrap();
    let first = version();
    assert_eq!(version(), first);
    fs::write(&path, "three").unwrap();
    let longer = version();
    assert_ne!(longer, first);
    // Another file of the same length.
    let other = folder.path().join("b");
    fs::write(&other, "seven").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_ne!(version(), longer);
}

#[test]
fn what_cannot_be_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let kind = |path: &Path| FileStream::open(path, || false).unwrap_err().kind();
    assert_eq!(kind(folder.path()), ErrorKind::Io);
    assert_eq!(kind(&folder.path().join("none")), ErrorKind::Io);
    assert_eq!(kind(Path::new("")), ErrorKind::Io);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_waited_for_until_it_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());

    // Opened before there is a writer, it does not look as if it had ended.
    let mut stream = FileStream::open(&path, || false).unwrap();
    assert_eq!(stream.version(), None);
    assert_eq!(FileStream::open(&path, || false).unwrap_err().kind(), ErrorKind::Misuse);
    let to = path.clone();
    let writer = std::thread::spawn(move || fs::write(to, "text"));
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(text, "text");
    drop(stream);

    // Neither before there is a writer nor while it is silent does a read outlast its cancellation.
    let asked = Arc::new(AtomicBool::new(false));
    let is_cancelled = Arc::clone(&asked);
    let mut stream = FileStream::open(&path, move || is_cancelled.load(Ordering::Relaxed)).unwrap();
    let cancel = |asked: &Arc<AtomicBool>| {
        let asked = Arc::clone(asked);
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            asked.store(true, Ordering::Relaxed);
        })
    };
    cancel(&asked);
    assert!(stream.read(&mut [0; 8]).is_err());
    asked.store(false, Ordering::Relaxed);
    let mut writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
    io::Write::write_all(&mut writer, b"half").unwrap();
    let mut bytes = [0; 8];
    assert_eq!((stream.read(&mut bytes).unwrap(), &bytes[..4]), (4, &b"half"[..]));
    cancel(&asked);
    assert!(stream.read(&mut bytes).is_err());
}
