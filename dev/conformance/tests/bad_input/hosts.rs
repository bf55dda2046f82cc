//! Hosts that cannot give what is asked for, or give something else.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Error, ErrorKind, Limits, Machine, Object, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::hostile::{Manner, part};
use marquetry_parquet::read::{BatchReader, FooterReader, PageScanner, ReadOptions};

use super::small_files;

/// Steps a machine with everything it asks for, but fails the demand number `failed`. True when there was one.
fn fail_demand<M: Machine>(machine: &mut M, bytes: &Bytes, failed: usize) -> bool
where
    M::Product: std::fmt::Debug + PartialEq,
{
    let mut demands = 0;
    loop {
        match machine.step(&mut Budget::unlimited()).unwrap() {
            Step::Done => return false,
            Step::Need(demand) => {
                for want in demand.wants {
                    let (object, range) = match want {
                        Want::Length(object) => (object, 0..0),
                        Want::Range(object, range, _) => (object, range),
                    };
                    if demands == failed {
                        let reason = Error::io(format!("no bytes for {range:?}"));
                        // Of another object: nothing to this machine.
                        machine.fail(Object(7), range.clone(), reason.clone());
                        machine.fail(object, range.clone(), reason.clone());
                        machine.fail(object, range, Error::io("a later reason"));
                        for _ in 0..3 {
                            let error = machine.step(&mut Budget::unlimited()).unwrap_err();
                            assert_eq!((error.kind(), error.message()), (ErrorKind::Io, reason.message()));
                        }
                        return true;
                    }
                    demands += 1;
                    supply_badly(machine, object, &range);
                    if range.is_empty() {
                        machine.supply_length(object, bytes.len() as u64).unwrap();
                    } else {
                        machine.supply(object, range.clone(), part(bytes, &range)).unwrap();
                    }
                }
            }
            _ => {}
        }
    }
}

/// Supplies what was not asked for, or is not what it says: `Misuse`, and the machine goes on.
fn supply_badly<M: Machine>(machine: &mut M, object: Object, range: &Range<u64>) {
    let byte = || Bytes::from_static(b"x");
    let mut reversed = range.clone();
    std::mem::swap(&mut reversed.start, &mut reversed.end);
    reversed.start += 1;
    let bad = [
        machine.supply(Object(7), 0..1, byte()),
        machine.supply(object, range.start..range.end + 2, byte()),
        machine.supply(object, reversed, byte()),
        machine.supply(object, 5..5, byte()),
    ];
    for result in bad {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Misuse);
    }
}

#[test]
fn hosts_that_fail_or_misuse() {
    let mut failures = 0;
    for (_, table) in small_files() {
        let bytes = table.write();
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        let options = ReadOptions { read_bytes: 20, ..ReadOptions::default() };
        let codecs = Arc::new(StandardCodecs::default());
        let reader =
            || BatchReader::new(FILE, Arc::clone(&metadata), codecs.clone(), options.clone()).unwrap();
        let scanner = || PageScanner::new(FILE, &metadata, 0, 0, Limits::DEFAULT).unwrap();
        failures += (0..)
            .take_while(|&at| fail_demand(&mut FooterReader::new(FILE, Limits::DEFAULT), &bytes, at))
            .count();
        failures += (0..).take_while(|&at| fail_demand(&mut reader(), &bytes, at)).count();
        failures += (0..).take_while(|&at| fail_demand(&mut scanner(), &bytes, at)).count();
    }
    println!("{failures} demands failed");
    assert!(failures >= 12, "{failures}");
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    footer.supply_length(FILE, 100).unwrap();
    assert_eq!(footer.supply_length(FILE, 101).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(footer.supply_length(Object(3), 100).unwrap_err().kind(), ErrorKind::Misuse);
    assert!(matches!(footer.step(&mut Budget::unlimited()), Ok(Step::Need(_))));
}
