//! Calls in the wrong order, with the wrong handles, at the wrong time: errors that say so.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringViewArray, StructArray};
use marquetry_c::abi::*;
use marquetry_c::{bytes, cql, error, footer as footers, machine, metadata, reader, records, writer};
use marquetry_c::{marquetry_error, marquetry_machine, marquetry_metadata};

use crate::common;
use crate::common::host::{LENT, call, defaults, footer, give_back, next, read, said, write};

fn table() -> RecordBatch {
    RecordBatch::try_from_iter([
        ("a", Arc::new(Int64Array::from_iter_values(0..300)) as ArrayRef),
        (
            "b",
            Arc::new(StringViewArray::from_iter_values(
                (0..300).map(|it| format!("a string of some length, {it}")),
            )) as ArrayRef,
        ),
    ])
    .unwrap()
}

/// Numbers that look random, and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// A host that does anything.
struct Wild<'a> {
    dice: Dice,
    file: &'a [u8],
    schema: FFI_ArrowSchema,
    machines: Vec<*mut marquetry_machine>,
    metadata: Vec<*mut marquetry_metadata>,
    freed: Vec<usize>,
    arrays: Vec<FFI_ArrowArray>,
    /// Calls that were errors, and that were not.
    errors: usize,
    fine: usize,
}

impl Wild<'_> {
    /// A handle of a machine: mostly one that lives, else one that was freed, one of another kind, NULL, or any address.
    fn machine(&mut self) -> *mut marquetry_machine {
        match self.dice.below(12) {
            0 => null_mut(),
            1 => core::ptr::without_provenance_mut(self.dice.below(1 << 20)),
            2 if !self.freed.is_empty() => {
                let at = self.dice.below(self.freed.len());
                core::ptr::without_provenance_mut(self.freed[at])
            }
            3 if !self.metadata.is_empty() => self.metadata[self.dice.below(self.metadata.len())].cast(),
            4 if !self.machines.is_empty() => {
                // Within a slot, or in the next one.
                self.machines[0].cast::<u8>().wrapping_add(self.dice.below(200)).cast()
            }
            _ if !self.machines.is_empty() => self.machines[self.dice.below(self.machines.len())],
            _ => null_mut(),
        }
    }

    fn some_metadata(&mut self) -> *mut marquetry_metadata {
        match self.dice.below(8) {
            0 => self.machine().cast(),
            _ if !self.metadata.is_empty() => self.metadata[self.dice.below(self.metadata.len())],
            _ => null_mut(),
        }
    }

    fn note(&mut self, done: Result<marquetry_status, (marquetry_error_kind, String)>) -> bool {
        match done {
            Ok(_) => self.fine += 1,
            Err((kind, text)) => {
                assert!(kind != marquetry_error_kind::Internal && !text.is_empty(), "{kind:?}: {text}");
                self.errors += 1;
                return false;
            }
        }
        true
    }

    fn made(
        &mut self,
        made: *mut marquetry_machine,
        done: Result<marquetry_status, (marquetry_error_kind, String)>,
    ) {
        if self.note(done) {
            self.machines.push(made);
        }
    }

    fn act(&mut self) {
        let mut made = null_mut();
        match self.dice.below(24) {
            0 => {
                let done = call(|error| footers::marquetry_footer_new(null(), &mut made, error));
                self.made(made, done);
            }
            1 => {
                let from = self.some_metadata();
                let done = call(|error| reader::marquetry_reader_new(from, null(), &mut made, error));
                self.made(made, done);
            }
            2 => {
                let from = self.some_metadata();
                let done = call(|error| records::marquetry_records_new(from, null(), &mut made, error));
                self.made(made, done);
            }
            3 => {
                let from = self.some_metadata();
                let options: marquetry_cql_options = marquetry_cql_options {
                    struct_size: self.dice.below(size_of::<marquetry_cql_options>() + 1),
                    table: c"t".as_ptr(),
                    ..defaults()
                };
                let done = call(|error| cql::marquetry_cql_new(from, null(), &options, &mut made, error));
                self.made(made, done);
            }
            4 => {
                let done = call(|error| writer::marquetry_writer_new(&self.schema, null(), &mut made, error));
                self.made(made, done);
            }
            5 => {
                let (from, mut taken) = (self.machine(), null_mut());
                let done = call(|error| footers::marquetry_take_metadata(from, &mut taken, error));
                if self.note(done) {
                    self.metadata.push(taken);
                }
            }
            6 => {
                let (from, mut array) = (self.machine(), FFI_ArrowArray::empty());
                let done = call(|error| {
                    reader::marquetry_take_batch(from, &mut array, null_mut(), null_mut(), error)
                });
                if self.note(done) {
                    self.arrays.push(array);
                }
            }
            7 => {
                let (from, mut some) =
                    (self.machine(), marquetry_bytes { data: null(), length: 0, owner: null_mut() });
                let done = match self.dice.below(2) {
                    0 => call(|error| machine::marquetry_take_append(from, &mut some, error)),
                    _ => call(|error| cql::marquetry_take_text(from, &mut some, error)),
                };
                self.note(done);
                bytes::marquetry_bytes_release(&mut some);
            }
            8 => {
                let (from, mut events, mut count) = (self.machine(), null(), 0);
                let done = call(|error| records::marquetry_events(from, &mut events, &mut count, error));
                self.note(done);
            }
            9 => {
                let to = self.machine();
                let mut array = FFI_ArrowArray::new(&StructArray::from(table()).to_data());
                let done = call(|error| writer::marquetry_feed(to, &mut array, error));
                self.note(done);
            }
            10 => {
                let to = self.machine();
                let done = call(|error| writer::marquetry_finish(to, error));
                self.note(done);
            }
            11 => {
                let (to, at) = (self.machine(), self.dice.below(self.file.len() + 50));
                let length = self.dice.below(self.file.len());
                let length = length.min(self.file.len().saturating_sub(at));
                let data = self.file.as_ptr().wrapping_add(at);
                LENT.set(LENT.get() + 1);
                let object = u32::from(self.dice.below(20) == 0);
                let release = Some(give_back as extern "C" fn(_, _, _));
                let done = call(|error| {
                    machine::marquetry_supply(to, object, at as u64, data, length, release, null_mut(), error)
                });
                self.note(done);
            }
            12 => {
                let (to, length) =
                    (self.machine(), self.file.len() as u64 + u64::from(self.dice.below(9) == 0));
                let done = call(|error| machine::marquetry_supply_length(to, 0, length, error));
                self.note(done);
            }
            13 if self.dice.below(4) == 0 => {
                let to = self.machine();
                let done = call(|error| machine::marquetry_fail(to, c"gone".as_ptr(), error));
                self.note(done);
            }
            14 if self.dice.below(3) == 0 => {
                let from = self.machine();
                let is_known = self.machines.contains(&from);
                let done = machine::marquetry_machine_free(from);
                assert!(!is_known || done == marquetry_status::Ok);
                self.machines.retain(|&it| it != from);
                if is_known {
                    self.freed.push(from.addr());
                    assert_eq!(machine::marquetry_machine_free(from), marquetry_status::Error, "freed twice");
                }
            }
            15 if self.dice.below(3) == 0 => {
                let from = self.machine();
                let done = call(|error| machine::marquetry_machine_release(from, null(), error));
                self.note(done);
            }
            16 if !self.metadata.is_empty() && self.dice.below(4) == 0 => {
                let at = self.dice.below(self.metadata.len());
                let from = self.metadata.swap_remove(at);
                assert_eq!(metadata::marquetry_metadata_free(from), marquetry_status::Ok);
                assert_eq!(metadata::marquetry_metadata_free(from), marquetry_status::Error);
            }
            17 => {
                let (from, mut failed) = (self.machine(), null_mut::<marquetry_error>());
                machine::marquetry_machine_error(from, &mut failed);
                if !failed.is_null() {
                    said(failed);
                }
            }
            _ => {
                let at = self.machine();
                match call(|error| machine::marquetry_step(at, null(), error)) {
                    Ok(marquetry_status::Need) if self.dice.below(8) > 0 => {
                        let done = common::host::supply(at, self.file).map(|()| marquetry_status::Ok);
                        self.note(done);
                    }
                    done => drop(self.note(done)),
                }
            }
        }
    }
}

#[test]
fn ten_thousand_interleavings_are_errors_at_worst() {
    let file = write(&[table()], null()).unwrap();
    let before = LENT.get();
    let (mut errors, mut fine) = (0, 0);
    for seed in 1..=10_000 {
        let mut wild = Wild {
            dice: Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed)),
            file: &file,
            schema: FFI_ArrowSchema::try_from(table().schema_ref().as_ref()).unwrap(),
            machines: Vec::new(),
            metadata: vec![footer(&file).unwrap()],
            freed: Vec::new(),
            arrays: Vec::new(),
            errors: 0,
            fine: 0,
        };
        for _ in 0..30 {
            wild.act();
        }
        wild.machines
            .iter()
            .for_each(|&it| assert_eq!(machine::marquetry_machine_free(it), marquetry_status::Ok));
        wild.metadata
            .iter()
            .for_each(|&it| assert_eq!(metadata::marquetry_metadata_free(it), marquetry_status::Ok));
        wild.arrays.clear();
        (errors, fine) = (errors + wild.errors, fine + wild.fine);
    }
    assert_eq!(LENT.get(), before, "bytes that were not released");
    assert!(errors > 50_000 && fine > 50_000, "{errors} errors, {fine} others");
}

/// What a callback tries with the machine that is stepping, and what it was told.
struct Tries {
    machine: *mut marquetry_machine,
    told: Vec<String>,
}

extern "C" fn try_again(context: *mut c_void) -> i32 {
    // SAFETY: the test's own; nobody else uses it during the step.
    let tries = unsafe { &mut *context.cast::<Tries>() };
    if tries.told.is_empty() {
        let own = call(|error| machine::marquetry_step(tries.machine, null(), error)).unwrap_err();
        let address = tries.machine.addr();
        let other = std::thread::spawn(move || {
            let machine: *mut marquetry_machine = core::ptr::without_provenance_mut(address);
            assert_eq!(machine::marquetry_machine_free(machine), marquetry_status::Error);
            call(|error| machine::marquetry_step(machine, null(), error)).unwrap_err()
        });
        tries.told = vec![own.1, other.join().unwrap().1];
    }
    1
}

#[test]
fn a_second_use_at_the_same_time_is_an_error() {
    let file = write(&[table()], null()).unwrap();
    let metadata = footer(&file).unwrap();
    let mut reader = null_mut();
    call(|error| reader::marquetry_reader_new(metadata, null(), &mut reader, error)).unwrap();
    metadata::marquetry_metadata_free(metadata);
    let mut tries = Tries { machine: reader, told: Vec::new() };
    let budget = marquetry_budget {
        struct_size: size_of::<marquetry_budget>(),
        units: 1_000_000,
        need_preempt: Some(try_again),
        context: (&raw mut tries).cast(),
    };
    let status = call(|error| machine::marquetry_step(reader, &budget, error)).unwrap();
    assert!(matches!(status, marquetry_status::Yield | marquetry_status::Need), "{status:?}");
    let in_use = "a handle of a machine, which is in use: by another thread, or by the call that this one is made from";
    assert_eq!(tries.told, [in_use, in_use]);
    // It is as it was: all rows come, although every step is asked to stop at once.
    let mut rows = 0;
    while next(reader, &file).unwrap() == marquetry_status::Ready {
        rows += common::host::take(reader).unwrap().num_rows();
    }
    assert_eq!(rows, 300);
    machine::marquetry_machine_free(reader);
}

#[test]
fn what_is_wrong_is_said() {
    let file = write(&[table()], null()).unwrap();
    let mut made = null_mut();
    call(|error| footers::marquetry_footer_new(null(), &mut made, error)).unwrap();
    let step = || call(|error| machine::marquetry_step(made, null(), error));
    assert_eq!(step().unwrap(), marquetry_status::Need);
    let supply = |at: u64, bytes: &[u8]| {
        call(|error| {
            machine::marquetry_supply(made, 0, at, bytes.as_ptr(), bytes.len(), None, null_mut(), error)
        })
    };
    call(|error| machine::marquetry_supply_length(made, 0, file.len() as u64, error)).unwrap();
    let other = call(|error| machine::marquetry_supply_length(made, 0, 5, error)).unwrap_err();
    assert_eq!(other.0, marquetry_error_kind::Misuse);
    let beyond = supply(file.len() as u64 - 1, &[0, 0]).unwrap_err();
    assert_eq!(beyond.0, marquetry_error_kind::Misuse);
    let nowhere =
        call(|error| machine::marquetry_supply(made, 0, 0, null(), 9, None, null_mut(), error)).unwrap_err();
    assert_eq!(nowhere, (marquetry_error_kind::Misuse, "9 bytes at NULL".to_string()));
    let early = call(|error| footers::marquetry_take_metadata(made, &mut null_mut(), error)).unwrap_err();
    assert_eq!(early, (marquetry_error_kind::Misuse, "there is no metadata to take".to_string()));
    call(|error| machine::marquetry_fail(made, c"the disk is gone".as_ptr(), error)).unwrap();
    let gone = (marquetry_error_kind::Io, "the disk is gone".to_string());
    assert_eq!((step().unwrap_err(), step().unwrap_err()), (gone.clone(), gone.clone()));
    assert_eq!(supply(0, &[1]).unwrap_err(), gone);
    assert_eq!(machine::marquetry_machine_free(made), marquetry_status::Ok);
    assert_eq!(
        step().unwrap_err(),
        (marquetry_error_kind::Misuse, "a handle of a machine that was freed".to_string())
    );
    // The size of a struct of another version.
    let options: marquetry_reader_options = marquetry_reader_options { struct_size: 3, ..defaults() };
    assert!(read(&file, &options).unwrap_err().1.starts_with("a struct_size of 3"));
    let options = marquetry_reader_options {
        struct_size: size_of::<marquetry_reader_options>(),
        ignore_crc: 7,
        ..options
    };
    assert_eq!(read(&file, &options).unwrap_err().1, "ignore_crc: 7, which is neither 0 nor 1");
    assert_eq!(error::marquetry_error_free(null_mut()), marquetry_status::Ok);
}

#[test]
fn an_array_that_contradicts_itself_is_refused() {
    let schema = FFI_ArrowSchema::try_from(table().schema_ref().as_ref()).unwrap();
    let mut made = null_mut();
    call(|error| writer::marquetry_writer_new(&schema, null(), &mut made, error)).unwrap();
    let other = RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let mut array = FFI_ArrowArray::new(&StructArray::from(other).to_data());
    let refused = call(|error| writer::marquetry_feed(made, &mut array, error)).unwrap_err();
    assert!(array.is_released(), "it was taken");
    let said = "not an array of the writer's schema: 1 children for 2 of ";
    assert!(refused.0 == marquetry_error_kind::Misuse && refused.1.starts_with(said), "{refused:?}");
    assert_eq!(machine::marquetry_machine_free(made), marquetry_status::Ok);
}

/// A pointer that is moved to another thread, as the interface allows.
struct Moved<T>(*mut T);

// SAFETY: a handle may move between calls.
unsafe impl<T> Send for Moved<T> {}

#[test]
fn threads_share_metadata_and_release_each_others_arrays() {
    let file = write(&[table(), table(), table()], null()).unwrap();
    let metadata = footer(&file).unwrap();
    let (send, receive) = std::sync::mpsc::channel::<RecordBatch>();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut other = null_mut();
            call(|error| metadata::marquetry_metadata_share(metadata, &mut other, error)).unwrap();
            let (moved, send, file) = (Moved(other), send.clone(), &file);
            scope.spawn(move || {
                let metadata = { moved }.0;
                for _ in 0..20 {
                    let mut made = null_mut();
                    call(|error| reader::marquetry_reader_new(metadata, null(), &mut made, error)).unwrap();
                    while next(made, file).unwrap() == marquetry_status::Ready {
                        send.send(common::host::take(made).unwrap()).unwrap();
                    }
                    assert_eq!(machine::marquetry_machine_free(made), marquetry_status::Ok);
                }
                assert_eq!(metadata::marquetry_metadata_free(metadata), marquetry_status::Ok);
            });
        }
        drop(send);
        assert_eq!(receive.iter().map(|batch| batch.num_rows()).sum::<usize>(), 4 * 20 * 900);
    });
    assert_eq!(metadata::marquetry_metadata_free(metadata), marquetry_status::Ok);
}
