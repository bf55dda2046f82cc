//! A disk that is full.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use marquetry_base::{Bytes, Result};
use marquetry_io::store::{Found, LocalFiles, NewObject, NewObjects, ObjectStream, Store};
use marquetry_io::{ByteSink, ByteSource, ObjectVersion, failed};

use super::node::{INSERTED, Node, TABLE, UPDATED};

/// Local files, of which new ones get no more than the first bytes while there is no room.
#[derive(Debug, Default)]
struct Disk {
    is_full: Arc<AtomicBool>,
}

struct NewFile {
    file: Box<dyn NewObject>,
    is_full: Arc<AtomicBool>,
}

impl ByteSink for NewFile {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.is_full.load(Ordering::SeqCst) {
            return self.file.append(bytes);
        }
        self.file.append(&bytes[..bytes.len() / 2])?;
        Err(failed("written", self.file.name(), std::io::ErrorKind::StorageFull.into()))
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.file.read(range)
    }
}

impl NewObject for NewFile {
    fn readable(&self) -> Option<PathBuf> {
        self.file.readable()
    }

    fn scratch(&self) -> Option<&Path> {
        self.file.scratch()
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.file.commit()
    }
}

impl Store for Disk {
    fn look(&self, path: &Path) -> Result<Found> {
        LocalFiles.look(path)
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        LocalFiles.find(path, extensions)
    }

    fn list(&self, directory: &Path) -> Result<Vec<(PathBuf, u64)>> {
        LocalFiles.list(directory)
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        LocalFiles.open(path)
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        LocalFiles.stream(path, is_cancelled)
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        let file = LocalFiles.create(path, replaces)?;
        Ok(Box::new(NewFile { file, is_full: Arc::clone(&self.is_full) }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        LocalFiles.remove(path)
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        LocalFiles.create_directory(path, replaces, extensions)
    }
}

#[test]
fn a_full_disk_is_waited_for() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-1-big");
    node.put(TABLE, UPDATED, "nb-2-big");
    let disk = Disk::default();
    let is_full = Arc::clone(&disk.is_full);
    let mut options = node.options();
    options.once = false;
    options.store = Arc::new(disk);
    let (cancel, mut converted) = (options.cancel.clone(), 0);
    let (events, summary) = Node::run(&options, |event| {
        if event.starts_with("started") {
            is_full.store(true, Ordering::SeqCst);
        }
        if event.starts_with("failed ks.t oa-1-big again") {
            assert!(node.files().is_empty(), "no half of a file");
            is_full.store(false, Ordering::SeqCst);
        }
        converted += usize::from(event.starts_with("converted"));
        if converted == 2 {
            cancel.cancel();
        }
    });
    assert!(events[1].starts_with("failed ks.t nb-2-big again: "), "{events:?}");
    assert!(events[2].starts_with("failed ks.t oa-1-big again: "), "{events:?}");
    // Said once each, and tried until there is room.
    assert_eq!(events.len(), 5, "{events:?}");
    assert!(summary.retries >= 2 && summary.unreachable.is_none());
    assert_eq!((node.files().len(), node.links()), (2, 0));
    assert_eq!(std::fs::read_dir(node.file(&Node::place(TABLE))).unwrap().count(), 2, "nothing is left");
}
