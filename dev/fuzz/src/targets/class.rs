//! The object class: any calls, of objects that are files, right or not, Arrow IPC streams, pieces of rows, or nothing of the kind.

use std::collections::BTreeMap;

use marquetry_base::{Bytes, Error, ErrorKind, Fields, Frame, Result};
use marquetry_ceph::ffi::stand::{Called, FAILED, call_by_functions};
use marquetry_ceph::{ANSWER, AnswerField, Method, REQUEST, RadosObject, RequestField, call, change};
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::read::ReadOptions;
use marquetry_rados::{Change, Recoding, compress, index};

use crate::choices::Choices;
use crate::host::{self, LIMITS};
use crate::plan::{Only, Plan};
use crate::tree::Tree;

/// Calls of one change, at most: a client that wants more is ended.
const CALLS_MAX: u32 = 60;
/// Words of requests.
const TEXTS: [&str; 12] = [
    "zstd",
    "snappy",
    "count(*)",
    "sum(a)",
    "min(b.c)",
    "a",
    "a = 1",
    "a IS NULL OR b.c > 'x'",
    "a IN (1, 2)",
    "gzip",
    "",
    "NOT a LIKE '%'",
];

/// An object in memory. What a call that fails has written is undone.
#[derive(Clone)]
struct Object {
    bytes: Vec<u8>,
    entries: BTreeMap<String, Vec<u8>>,
    has_written: bool,
    calls: u32,
    units: u64,
}

impl RadosObject for Object {
    fn length(&mut self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.bytes.as_slice().read(offset, into)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = offset as usize;
        // As an OSD, whose objects have a largest size.
        if offset > 4 << 20 {
            return Err(Error::io("an object that is too large"));
        }
        self.bytes.resize(self.bytes.len().max(at + bytes.len()), 0);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.has_written = true;
        Ok(())
    }

    fn entry(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.entries.get(key).cloned())
    }

    fn set_entry(&mut self, key: &str, bytes: &[u8]) -> Result<()> {
        self.entries.insert(key.to_owned(), bytes.to_vec());
        self.has_written = true;
        Ok(())
    }
}

impl Object {
    fn changed(&mut self, method: Method, request: &[u8]) -> Result<Vec<u8>> {
        self.calls += 1;
        if self.calls > CALLS_MAX {
            return Err(Error::io("enough calls"));
        }
        let (bytes, entries) = (self.bytes.clone(), self.entries.clone());
        self.has_written = false;
        let answer = change(method, self, request);
        if let Err(error) = &answer {
            check(error.kind(), error.message());
            (self.bytes, self.entries) = (bytes, entries);
        }
        answer
    }

    /// The request, with a share of its own.
    fn shared(&self, request: &[u8]) -> Vec<u8> {
        let mut share = Frame::new(REQUEST);
        share.push_u64(RequestField::Units as u16, self.units);
        share.push_u64(RequestField::AnswerBytes as u16, self.units / 10);
        let fields = share.into_bytes();
        [request, &fields[REQUEST.len()..]].concat()
    }
}

impl Change for Object {
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        let method = Method::of(method).expect("a method of that name");
        let answer = self.changed(method, &self.shared(request))?;
        Ok(if self.has_written { Vec::new() } else { answer })
    }

    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()> {
        let method = Method::of(method).expect("a method of that name");
        self.changed(method, &self.shared(request))?;
        self.bytes.truncate(length as usize);
        Ok(())
    }
}

/// An object of which one call fails, perhaps, and whose length is not what it has, perhaps.
#[derive(Clone)]
struct Faulty {
    object: Object,
    length: Option<u64>,
    /// Calls until the one that fails.
    fails_in: Option<usize>,
}

impl Faulty {
    fn passed(&mut self) -> Result<&mut Object> {
        match self.fails_in {
            Some(0) => {
                self.fails_in = None;
                return Err(Error::io("a disk"));
            }
            Some(calls) => self.fails_in = Some(calls - 1),
            None => {}
        }
        Ok(&mut self.object)
    }
}

impl RadosObject for Faulty {
    fn length(&mut self) -> Result<u64> {
        let length = self.length;
        let object = self.passed()?;
        length.map_or_else(|| object.length(), Ok)
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.passed()?.read(offset, into)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.passed()?.write(offset, bytes)
    }

    fn entry(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        self.passed()?.entry(key)
    }

    fn set_entry(&mut self, key: &str, bytes: &[u8]) -> Result<()> {
        self.passed()?.set_entry(key, bytes)
    }
}

/// The same call by the functions of the class's door, as an OSD makes it: it returns what failed, or does what the engine does. The object is left
/// as it is.
fn by_functions(object: &Object, method: Method, request: &[u8], choices: &mut Choices<'_>) {
    /// `EIO`: what the door returns after a panic, and if a change says that another one was begun.
    const PANICKED: i32 = -5;
    let length = match choices.below(8) {
        7 => Some(object.bytes.len() as u64 + choices.pick(&[1, 8, u64::from(u32::MAX)])),
        6 => Some(choices.below(object.bytes.len().max(1)) as u64),
        _ => None,
    };
    let fails_in = choices.once_in(2).then(|| choices.below(20));
    let answer_bytes_max = if choices.once_in(8) { choices.below(1000) } else { usize::MAX };
    let as_it_is = Faulty { object: object.clone(), length, fails_in: None };
    let mut called_for = Faulty { fails_in, ..as_it_is.clone() };
    let called = call_by_functions(method, &mut called_for, request, answer_bytes_max);
    if called.has_failed {
        assert_eq!(called.errno, FAILED, "{method:?}: a failure that is not returned");
        return;
    }
    let mut expected = as_it_is;
    if matches!(method, Method::Merge | Method::Compress | Method::Index) {
        match change(method, &mut expected, request) {
            Ok(answer) => assert_eq!(called, Called { errno: 0, answer, has_failed: false }, "{method:?}"),
            Err(error) => {
                check(error.kind(), error.message());
                let is_returned = called.errno < 0 && called.answer.is_empty();
                let is_said = error.kind() == ErrorKind::Io || called.errno != PANICKED;
                assert!(is_returned && is_said, "{method:?}: {error} is {called:?}");
            }
        }
    } else {
        let answer = call(method, &mut expected, request);
        assert_eq!(called, Called { errno: 0, answer, has_failed: false }, "{method:?}");
    }
    assert!(called_for.object.bytes == expected.object.bytes, "{method:?} writes other bytes");
    assert!(called_for.object.entries == expected.object.entries, "{method:?} writes other entries");
}

/// Checks an error of a call.
fn check(kind: ErrorKind, message: &str) {
    assert_ne!(kind, ErrorKind::Internal, "{message}");
    assert!(!message.is_empty());
}

/// The rows of a file as an object of Arrow, as far as a call comes, some bytes of which are others; nothing if there are none.
fn arrow_of(file: &[u8], choices: &mut Choices<'_>) -> Vec<u8> {
    let request = Frame::new(REQUEST).into_bytes();
    let answer = call(Method::Transform, &mut &*file, &request);
    let fields = Fields::of(&answer, ANSWER).expect("an answer");
    let data = fields.flatten().find(|field| field.number == AnswerField::Data as u16);
    let mut object = data.map_or_else(Vec::new, |data| data.bytes.to_vec());
    for _ in 0..choices.below(4) {
        let at = choices.below(object.len().max(1));
        let byte = choices.byte();
        if let Some(place) = object.get_mut(at) {
            *place = byte;
        }
    }
    object
}

pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let tree = Tree::choose(choices, 3);
    let rows_max = choices.pick(&[20, 3, 100]);
    let mut plan = Plan::choose(tree, rows_max, Only::default(), choices);
    let is_right = !choices.once_in(2);
    if !is_right {
        plan.index(choices);
        plan.lie(4, choices);
    }
    let bytes = plan.write();
    let footer = host::footer(&bytes, LIMITS, Manner::KIND);
    let names: Vec<String> = footer
        .iter()
        .flat_map(|footer| (0..footer.schema.leaves().len()).map(|leaf| footer.schema.leaf_path(leaf)))
        .collect();
    let units = choices.pick(&[100_000, 1, 4_000_000]);
    let mut object =
        Object { bytes: bytes.to_vec(), entries: BTreeMap::new(), has_written: false, calls: 0, units };
    if choices.once_in(5) {
        object.bytes = if choices.once_in(2) {
            arrow_of(&bytes, choices)
        } else {
            // Perhaps a piece of rows: a length that fits, and anything.
            let rest = choices.bytes(200).to_vec();
            [&(rest.len() as u32).to_le_bytes(), rest.as_slice()].concat()
        };
    }
    let is_file = is_right && object.bytes == *bytes;
    for _ in 0..choices.below(6) {
        let before = object.clone();
        object.calls = 0;
        match choices.below(4) {
            0 => {
                let codec = choices.pick(&["zstd", "uncompressed", "snappy", "lz4_raw", "gzip"]).to_owned();
                let level = choices.once_in(3).then_some(choices.pick(&[1, 3, 50]));
                let done = compress(&mut object, &Recoding { codec, level });
                let is_limit = |error: &Error| {
                    matches!(
                        error.kind(),
                        ErrorKind::Unsupported | ErrorKind::LimitExceeded | ErrorKind::Misuse
                    ) || error.message() == "enough calls"
                };
                if is_file {
                    assert!(done.as_ref().err().is_none_or(is_limit), "a file without a lie: {done:?}");
                    same(&plan, &object);
                }
            }
            1 => {
                let column = names.get(choices.below(names.len())).map_or("a", String::as_str);
                let _ = index(&mut object, column);
                assert_eq!(object.bytes, before.bytes, "an index that changes the object");
            }
            _ => any_call(&mut object, &names, choices),
        }
        if choices.once_in(6) && !is_file && !object.bytes.is_empty() {
            let at = choices.below(object.bytes.len());
            object.bytes[at] ^= choices.byte();
            // What the object has beside its bytes may be anybody's, too.
            let number = choices.below(object.entries.len().max(1));
            if let Some(entry) = object.entries.values_mut().nth(number).filter(|entry| !entry.is_empty()) {
                let at = choices.below(entry.len());
                entry[at] ^= choices.byte();
            }
        }
    }
}

/// The object has the values that its file was made of.
fn same(plan: &Plan, object: &Object) {
    let bytes = Bytes::from(object.bytes.clone());
    let Ok(metadata) = host::footer(&bytes, LIMITS, Manner::KIND).inspect_err(host::check_error) else {
        return;
    };
    let options = ReadOptions { limits: LIMITS, ..ReadOptions::default() };
    host::read(&bytes, &metadata, &options, Manner::KIND).check_expected(&plan.expected);
}

/// A call of any method, with fields that are right or not.
fn any_call(object: &mut Object, names: &[String], choices: &mut Choices<'_>) {
    const METHODS: [&str; 8] =
        ["query", "describe", "stats", "merge", "compress", "split", "index", "transform"];
    let name = choices.pick(&METHODS);
    let method = Method::of(name).expect("a method of that name");
    let mut frame = Frame::new(REQUEST);
    for _ in 0..choices.below(5) {
        let field = 1 + choices.below(17) as u16;
        match choices.below(5) {
            0 => frame.push(field, choices.pick(&TEXTS).as_bytes()),
            1 => frame
                .push(field, names.get(choices.below(names.len())).map_or(&b"a"[..], |name| name.as_bytes())),
            2 => frame.push_u64(field, choices.number() as u64),
            3 => frame.push(field, &[choices.byte()]),
            _ => frame.push(field, choices.bytes(40)),
        };
    }
    if choices.once_in(4) {
        // Many fields of a kind: more than a request may have, perhaps, and all of the object's columns.
        let field = choices.pick(&[1_u16, 3, 8, 9, 2]);
        for at in 0..choices.pick(&[20, 129, 33, 1000]) {
            let name = names.get(at % names.len().max(1)).map_or("a", String::as_str);
            let function = ["min", "max", "sum", "count", "avg"][at / names.len().max(1) % 5];
            match field {
                3 => frame.push(field, format!("{function}({name})").as_bytes()),
                _ => frame.push(field, name.as_bytes()),
            };
        }
    }
    if name == "merge" && choices.once_in(2) {
        frame.push(RequestField::File as u16, &object.bytes.clone());
    }
    let request = object.shared(&frame.into_bytes());
    by_functions(object, method, &request, choices);
    if matches!(method, Method::Merge | Method::Compress | Method::Index) {
        if method == Method::Merge {
            // Of another object: this one keeps its rows.
            let _ = object.clone().changed(method, &request);
            return;
        }
        // A call that finishes needs a client that cuts the object.
        let before = object.bytes.clone();
        let _ = object.changed(method, &request);
        if object.bytes.len() == before.len() && object.bytes != before && method == Method::Compress {
            object.bytes = before;
        }
        return;
    }
    let answer = call(method, object, &request);
    for field in Fields::of(&answer, ANSWER).expect("an answer") {
        let field = field.expect("a field of an answer");
        if field.number == AnswerField::Error as u16 {
            assert_ne!(field.bytes[0], 7, "{}", String::from_utf8_lossy(&field.bytes[1..]));
        }
    }
}
