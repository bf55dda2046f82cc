//! The driver with a machine, from memory and from files.

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use marquetry_base::{Budget, Bytes, Demand, Error, ErrorKind, Machine, Object, Result, Step, Want};
use marquetry_io::blocking::File;
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSource, ByteSources, drive};

use crate::toy::{FILE, Toy, object};

/// A directory of its own in the system's place for such, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("marquetry-io-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.join("toy");
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn all<S: ByteSource>(toy: &mut Toy, source: S) -> Result<String> {
    let sources = ByteSources::new().with(FILE, source);
    let mut text = String::new();
    while let Some(piece) = drive(toy, &sources)? {
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert_eq!(drive(toy, &sources)?, None, "done stays done");
    Ok(text)
}

const TEXT: &str = "twenty-one characters";

#[test]
fn memory_and_file_read_the_same() {
    let scratch = Scratch::new();
    let bytes = object(TEXT);
    let file = File::open(scratch.file(&bytes)).unwrap();
    assert_eq!((file.length().unwrap(), file.name().ends_with("toy")), (35, true));
    let memory = Memory::new("toy", Bytes::from(bytes));
    let (mut from_memory, mut from_file) = (Toy::default(), Toy::default());
    assert_eq!(all(&mut from_memory, &memory).unwrap(), TEXT);
    assert_eq!(all(&mut from_file, &file).unwrap(), TEXT);
    // Each range as it was asked for: the trailer, then pieces, every other one read along.
    let supplied: Vec<Range<u64>> = vec![27..35, 6..10, 10..14, 14..18, 18..22, 22..26, 26..27];
    assert_eq!((&from_memory.supplied, &from_file.supplied), (&supplied, &supplied));
    let boxed: Box<dyn ByteSource> = Box::new(std::sync::Arc::new(file));
    assert_eq!(all(&mut Toy::default(), boxed).unwrap(), TEXT);
}

#[test]
fn memory_is_not_copied() {
    let bytes = Bytes::from(vec![7u8; 1000]);
    let memory = Memory::new("seven", bytes.clone());
    assert_eq!(memory.read(10..20).unwrap().as_ptr(), bytes[10..].as_ptr());
    assert_eq!(memory.read(1000..1000).unwrap().len(), 0);
    for range in [999..1001, u64::MAX - 1..u64::MAX] {
        let error = memory.read(range).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().ends_with("it has 1000 bytes (seven)"), "{error}");
    }
}

#[test]
fn files_read_any_range() {
    let scratch = Scratch::new();
    let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    let file = File::open(scratch.file(&bytes)).unwrap();
    for range in [0..0, 0..400_000, 399_999..400_000, 12_345..200_001] {
        let wanted = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        assert!(file.read(range).unwrap() == bytes[wanted]);
    }
    let error = file.read(399_999..400_001).unwrap_err();
    assert!(error.message().contains("it has 400000 bytes"), "{error}");
    std::thread::scope(|threads| {
        for start in 0..4u64 {
            let (file, bytes) = (&file, &bytes);
            threads.spawn(move || {
                let part = file.read(start * 100_000..(start + 1) * 100_000).unwrap();
                assert!(bytes[usize::try_from(start).unwrap() * 100_000..].starts_with(&part));
            });
        }
    });
    let empty = File::open(scratch.file(&[])).unwrap();
    assert_eq!(empty.length().unwrap(), 0);
}

fn open_error(path: impl AsRef<Path>) -> String {
    let error = File::open(path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    error.to_string()
}

#[test]
fn what_cannot_be_opened() {
    let scratch = Scratch::new();
    assert!(open_error("").contains("the path is empty"));
    let missing = scratch.0.join("missing.parquet");
    let said = open_error(&missing);
    assert_eq!(said, format!("no such file or directory ({})", missing.display()));
    assert_eq!(open_error(&scratch.0), format!("it is a directory ({})", scratch.0.display()));
}

#[cfg(unix)]
#[test]
fn pipes_devices_and_sockets_are_refused_at_once() {
    let scratch = Scratch::new();
    assert!(open_error("/dev/null").starts_with("it is a device, not a regular file ("));
    let socket = scratch.0.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(open_error(&socket).starts_with("it is a socket ("));
    let pipe = scratch.0.join("pipe");
    match std::process::Command::new("mkfifo").arg(&pipe).status() {
        // Opening it would wait for a writer for ever.
        Ok(status) if status.success() => assert!(open_error(&pipe).contains("it is a pipe")),
        _ => marquetry_testing::skipped(marquetry_testing::Need::Fifo),
    }
}

#[test]
fn a_file_that_shrinks() {
    let scratch = Scratch::new();
    let path = scratch.file(&object(TEXT));
    let file = File::open(&path).unwrap();
    let sources = ByteSources::new().with(FILE, file);
    let mut toy = Toy::default();
    assert_eq!(drive(&mut toy, &sources).unwrap().unwrap(), "twen");
    assert_eq!(drive(&mut toy, &sources).unwrap().unwrap(), "ty-o");
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(16).unwrap();
    let error = drive(&mut toy, &sources).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(
        error.message().contains("it shrank while it was read: it had 35 bytes and now ends at byte 16"),
        "{error}"
    );
    // The machine said what it was reading, and stays failed.
    assert_eq!(error.place().column.as_deref(), Some("text"));
    assert_eq!((toy.failures.len(), toy.failures[0].clone()), (1, 14..18));
    assert_eq!(drive(&mut toy, &sources).unwrap_err(), error);
}

#[test]
fn a_file_that_grows_is_read_as_it_was() {
    let scratch = Scratch::new();
    let path = scratch.file(&object(TEXT));
    let file = File::open(&path).unwrap();
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap();
    assert_eq!(all(&mut Toy::default(), file).unwrap(), TEXT);
}

#[test]
fn a_machines_own_errors_name_the_object() {
    let error =
        all(&mut Toy::default(), Memory::new("short.toy", Bytes::from_static(b"1234567"))).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Corrupt, "too short (short.toy)"));
    // A place beyond the object's end that the object itself names.
    let mut bytes = object(TEXT);
    bytes[27] = 200;
    let mut toy = Toy::default();
    let error = all(&mut toy, Memory::new("wrong.toy", bytes.into())).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("bytes 200 to 204 could not be read: it has 35 bytes (column text, wrong.toy)"),
        "{error}"
    );
    assert_eq!((toy.failures.len(), toy.failures[0].clone()), (1, 200..204));
}

#[test]
fn what_is_read_along_fails_alone() {
    // The text is said to be longer than the object: the last piece that is there is read, though not with the next.
    let mut bytes = object(TEXT);
    bytes[31] = 30;
    let memory = Memory::new("toy", bytes.into());
    let sources = ByteSources::new().with(FILE, &memory);
    let mut toy = Toy::default();
    for _ in 0..7 {
        assert!(drive(&mut toy, &sources).unwrap().is_some());
    }
    let error = drive(&mut toy, &sources).unwrap_err();
    assert_eq!(error.to_string(), "bytes 34 to 36 could not be read: it has 35 bytes (column text, toy)");
}

#[test]
fn objects_without_a_source() {
    let sources = ByteSources::new().with(Object(9), Memory::new("other", Bytes::new()));
    let mut toy = Toy::default();
    let error = drive(&mut toy, &sources).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Misuse, "the driver was given no source for object 0")
    );
    assert_eq!((toy.failures.len(), toy.failures[0].clone()), (1, 0..0));
}

/// Answers every step with the same.
struct Stuck(Step<()>);

impl Machine for Stuck {
    type Product = ();

    fn step(&mut self, _: &mut Budget<'_>) -> Result<Step<()>> {
        Ok(self.0.clone())
    }

    fn supply(&mut self, _: Object, _: Range<u64>, _: Bytes) -> Result<()> {
        Ok(())
    }

    fn supply_length(&mut self, _: Object, _: u64) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, _: Object, _: Range<u64>, _: Error) {}
}

#[test]
fn broken_machines_do_not_hang_the_driver() {
    let sources = ByteSources::new().with(FILE, Memory::new("some", Bytes::from_static(b"some bytes")));
    let soon = Demand { wants: vec![Want::Range(FILE, 0..3, marquetry_base::Priority::Soon)] };
    let cases = [
        (Step::Need(Demand::now(FILE, 0..3)), ErrorKind::Internal, "asks again"),
        (Step::Need(Demand::length(FILE)), ErrorKind::Internal, "asks again"),
        (Step::Need(Demand::default()), ErrorKind::Internal, "waits for nothing"),
        (Step::Need(soon), ErrorKind::Internal, "waits for nothing"),
        // It goes on after its source failed.
        (Step::Need(Demand::now(FILE, 9..12)), ErrorKind::Io, "it has 10 bytes"),
        (Step::Append(FILE, Bytes::new()), ErrorKind::Misuse, "only reads"),
    ];
    for (step, kind, words) in cases {
        let error = drive(&mut Stuck(step), &sources).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
}
