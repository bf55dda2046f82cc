//! The driver with a machine that writes: files that appear when they are whole, and a spill file.

use std::collections::VecDeque;
use std::fs;
use std::ops::Range;
use std::path::Path;

use marquetry_base::{Budget, Bytes, Demand, Error, ErrorKind, Machine, Object, Result, Step};
use marquetry_io::blocking::{NewFile, SpillFile};
use marquetry_io::{ByteSink, ByteSinks, drive_into};

const FILE: Object = Object(0);
const SPILL: Object = Object(1);

/// Does what it is told.
#[derive(Debug, Default)]
struct Script {
    steps: VecDeque<Step<()>>,
    supplied: Vec<(Range<u64>, Bytes)>,
    failed: Option<Error>,
}

impl Script {
    fn of(steps: impl IntoIterator<Item = Step<()>>) -> Script {
        Script { steps: steps.into_iter().collect(), ..Script::default() }
    }
}

impl Machine for Script {
    type Product = ();

    fn step(&mut self, _budget: &mut Budget<'_>) -> Result<Step<()>> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(self.steps.pop_front().unwrap_or(Step::Done)),
        }
    }

    fn supply(&mut self, _object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.supplied.push((range, bytes));
        Ok(())
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Err(Error::misuse("no length was asked for"))
    }

    fn fail(&mut self, _object: Object, _range: Range<u64>, reason: Error) {
        self.failed = Some(reason);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn append(object: Object, text: &'static str) -> Step<()> {
    Step::Append(object, Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_file_appears_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    fs::write(&path, "an older one").unwrap();
    let mut file = NewFile::create(&path).unwrap();
    let mut spill = SpillFile::create_beside(&path).unwrap();
    let mut script = Script::of([
        append(FILE, "one "),
        Step::Yield,
        append(SPILL, "spilled"),
        Step::Ready(()),
        append(SPILL, " away"),
        Step::Need(Demand::now(SPILL, 3..9)),
        append(SPILL, " again"),
        Step::Need(Demand::now(SPILL, 9..18)),
        append(FILE, "two"),
    ]);
    let mut sinks = ByteSinks::new().with(FILE, &mut file as &mut dyn ByteSink).with(SPILL, &mut spill);
    assert_eq!(drive_into(&mut script, &mut sinks).unwrap(), Some(()));
    assert_eq!(drive_into(&mut script, &mut sinks).unwrap(), None);
    let supplied: Vec<&[u8]> = script.supplied.iter().map(|(_, bytes)| &bytes[..]).collect();
    assert_eq!(supplied, [&b"lled a"[..], b"way again"]);
    assert_eq!(fs::read(&path).unwrap(), b"an older one");
    assert_eq!(fs::read(file.temporary()).unwrap(), b"one two");
    // The spill file has no name, and the other one not yet its own.
    let hidden = names(folder.path()).into_iter().filter(|name| name.starts_with('.')).count();
    assert!(hidden <= if cfg!(unix) { 1 } else { 2 });
    drop(spill);
    file.replace().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one two");
    assert_eq!(names(folder.path()), ["table.parquet"]);
}

#[test]
fn what_is_not_committed_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let mut file = NewFile::create(&path).unwrap();
    file.append(b"half").unwrap();
    assert!(!names(folder.path()).contains(&"table.parquet".to_string()));
    drop(file);
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_file_that_was_not_there_and_one_of_a_mere_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.parquet");
    let mut file = NewFile::create(&path).unwrap();
    file.append(b"whole").unwrap();
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    assert_eq!(names(folder.path()), ["new.parquet"]);
    // Others may read it as they may read any file that is made here.
    let usual = folder.path().join("usual");
    fs::write(&usual, "").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions(), fs::metadata(&usual).unwrap().permissions());
    // Who has the name by then keeps it.
    let file = NewFile::create(&path).unwrap();
    assert_eq!(file.commit().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    drop(NewFile::create("nobody.parquet").unwrap());
    assert!(!std::path::Path::new("nobody.parquet").exists());
}

#[test]
fn trouble_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("not/there")] {
        let error = NewFile::create(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.place().object.as_deref(), path.to_str(), "{error}");
    }
    let mut spill = SpillFile::create_beside(folder.path().join("x")).unwrap();
    spill.append(b"ten bytes.").unwrap();
    assert_eq!(&spill.read(3..10).unwrap()[..], b" bytes.");
    assert_eq!(spill.read(3..11).unwrap_err().kind(), ErrorKind::Io);
    // The machine hears of it, and stays failed.
    let mut script = Script::of([Step::Need(Demand::now(SPILL, 5..20)), Step::Ready(())]);
    let mut sinks = ByteSinks::new().with(SPILL, spill);
    assert!(drive_into(&mut script, &mut sinks).is_err());
    assert!(script.failed.is_some());
    let nobody = drive_into(&mut Script::of([append(FILE, "x")]), &mut sinks).unwrap_err();
    assert_eq!(nobody.message(), "the driver was given no sink for object 0");
}
