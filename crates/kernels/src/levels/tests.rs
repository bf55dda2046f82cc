//! Every implementation compared with entry-by-entry oracles.

use super::*;
use crate::testing::{Random, bit, rounds};
use std::vec;
use std::vec::Vec;

/// Levels of any kind: in runs, or not; lengths around blocks.
fn entries(random: &mut Random, most_definition: u8, most_repetition: u8) -> (Vec<u8>, Vec<u8>) {
    let length = match random.below(4) {
        0 => random.below(9),
        1 => 60 + random.below(10),
        2 => 120 + random.below(20),
        _ => random.below(if cfg!(miri) { 150 } else { 700 }),
    };
    let run_most = if random.below(3) == 0 { 90 } else { 3 };
    let run = 1 + random.below(run_most);
    let mut levels = |most: u8| {
        let mut levels = Vec::new();
        while levels.len() < length {
            let level = random.below(usize::from(most) + 1) as u8;
            levels.extend(std::iter::repeat_n(level, 1 + random.below(run)));
        }
        levels.truncate(length);
        levels
    };
    (levels(most_definition), levels(most_repetition))
}

fn slots(random: &mut Random, definition: u8, repetition: u8) -> Slots {
    Slots {
        repetition: random.below(usize::from(repetition) + 1) as u8,
        definition: random.below(usize::from(definition) + 1) as u8,
    }
}

fn is_slot(entries: Entries<'_>, slots: Slots, at: usize) -> bool {
    entries.definition[at] >= slots.definition
        && entries.repetition.is_none_or(|levels| levels[at] <= slots.repetition)
}

/// Levels of many kinds, with their largest.
fn each(seed: u64, mut test: impl FnMut(&mut Random, Entries<'_>, u8, u8)) {
    let mut random = Random::new(seed);
    for round in 0..rounds(2000) {
        let (most_definition, most_repetition) =
            if round % 9 == 0 { (255, 255) } else { (1 + random.below(7) as u8, random.below(4) as u8) };
        let (definition, repetition) = entries(&mut random, most_definition, most_repetition);
        let repetition = (round % 5 > 0).then_some(&repetition[..]);
        let entries = Entries { definition: &definition, repetition };
        test(&mut random, entries, most_definition, most_repetition);
    }
}

#[test]
fn counts_and_finds() {
    each(91, |random, entries, most, _| {
        let levels = entries.definition;
        let least = random.below(usize::from(most) + 2).min(255) as u8;
        let found: Vec<usize> = (0..levels.len()).filter(|&at| levels[at] >= least).collect();
        let below: Vec<usize> = (0..levels.len()).filter(|&at| levels[at] < least).collect();
        let skip = random.below(levels.len() + 2);
        for isa in Isa::all() {
            assert_eq!(count_with(isa, levels, least), found.len());
            assert_eq!(find_with(isa, levels, least, skip, 0), found.get(skip).copied());
            assert_eq!(find_with(isa, levels, least, skip, u64::MAX), below.get(skip).copied());
        }
        assert_eq!(count(levels, least), found.len());
        assert_eq!(find_from(levels, least, skip), found.get(skip).copied());
        assert_eq!(find_below(levels, least, skip), below.get(skip).copied());
    });
    // More than the sums of bytes can hold.
    let many = vec![1; rounds(20_000)];
    for isa in Isa::all() {
        assert_eq!(count_with(isa, &many, 1), many.len(), "{isa:?}");
    }
}

#[test]
fn validity_of_slots() {
    each(92, |random, entries, definition, repetition| {
        let slots = slots(random, definition, repetition);
        let present = slots.definition + random.below(usize::from(definition - slots.definition) + 1) as u8;
        let oracle: Vec<bool> = (0..entries.len())
            .filter(|&at| is_slot(entries, slots, at))
            .map(|at| entries.definition[at] >= present)
            .collect();
        let first = random.below(20);
        let spare = random.below(2) * 9;
        let before = random.bytes((first + entries.len()).div_ceil(8) + spare);
        for isa in Isa::all() {
            let mut out = before.clone();
            let (count, there) = validity_with(isa, entries, slots, present, &mut out, first);
            assert_eq!(count, oracle.len());
            assert_eq!(there, oracle.iter().filter(|there| **there).count());
            for at in 0..first + count {
                let expected = if at < first { bit(&before, at) } else { oracle[at - first] };
                assert_eq!(bit(&out, at), expected, "{isa:?} {at} of {first}, {count}");
            }
            // In two pieces.
            let mut out = before.clone();
            let cut = random.below(entries.len() + 1);
            let (one, _) = validity_with(isa, entries.part(0, cut), slots, present, &mut out, first);
            let rest = entries.part(cut, usize::MAX);
            let (other, _) = validity_with(isa, rest, slots, present, &mut out, first + one);
            assert_eq!(one + other, oracle.len());
            assert!((0..oracle.len()).all(|at| bit(&out, first + at) == oracle[at]));
        }
    });
}

#[test]
fn offsets_of_slots() {
    each(93, |random, entries, definition, repetition| {
        let slots = slots(random, definition, repetition);
        let elements = super::Slots {
            repetition: slots.repetition.saturating_add(1),
            definition: slots.definition.saturating_add(1 + random.below(2) as u8),
        };
        let before = random.below(1000) as i32;
        let (mut oracle, mut found) = (Vec::new(), before);
        for at in 0..entries.len() {
            if is_slot(entries, slots, at) {
                oracle.push(found);
            }
            found += i32::from(is_slot(entries, elements, at));
        }
        for isa in Isa::all() {
            let mut out = vec![-1; entries.len() + 70];
            let (count, elements) = offsets_with(isa, entries, slots, elements, before, &mut out);
            assert_eq!(out[..count], oracle, "{isa:?}");
            assert!(out[entries.len()..].iter().all(|number| *number == -1), "{isa:?}");
            assert_eq!(elements as i32, found - before);
        }
    });
}

#[test]
fn differences() {
    each(94, |random, entries, most, _| {
        let most = random.below(usize::from(most) + 1) as u8;
        let (mut definition, mut repetition) =
            (entries.definition.to_vec(), entries.repetition.map(<[u8]>::to_vec));
        // Above the level nothing is compared.
        for level in &mut definition {
            if *level >= most && random.below(2) == 0 {
                *level = most.saturating_add(random.below(3) as u8);
            }
        }
        let agree = |definition: &[u8], repetition: Option<&[u8]>| {
            let other = Entries { definition, repetition };
            let found: Vec<_> =
                Isa::all().into_iter().map(|isa| differ_with(isa, entries, other, most)).collect();
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
            assert_eq!(found[0], differ(other, entries, most));
            found[0]
        };
        assert_eq!(agree(&definition, repetition.as_deref()), None);
        if entries.is_empty() {
            return;
        }
        let at = random.below(entries.len());
        let changes_repetition = random.below(2) == 0;
        if let Some(repetition) = repetition.as_mut().filter(|_| changes_repetition) {
            repetition[at] ^= 1 << random.below(8);
        } else if most > 0 {
            definition[at] = if definition[at] >= most { most - 1 } else { most };
        } else {
            return;
        }
        assert_eq!(agree(&definition, repetition.as_deref()), Some(at));
        if let Some(repetition) = &mut repetition {
            // No levels are levels of 0.
            let all_zero = repetition.iter().position(|level| *level != 0);
            let other = Entries { definition: entries.definition, repetition: None };
            let some = Entries { definition: entries.definition, repetition: Some(repetition) };
            assert_eq!(differ(other, some, 255), all_zero);
        }
    });
}

#[test]
fn keeps() {
    each(95, |random, entries, _, most| {
        let Some(repetition) = entries.repetition else { return };
        let most = random.below(usize::from(most) + 1) as u8;
        let oracle: Vec<(u8, u8)> = entries
            .definition
            .iter()
            .zip(repetition)
            .filter(|(_, level)| **level <= most)
            .map(|(a, b)| (*a, *b))
            .collect();
        for isa in Isa::all() {
            let [mut one, mut other] = [(); 2].map(|()| vec![9; entries.len()]);
            let kept = keep_with(isa, entries.definition, repetition, most, &mut one, &mut other);
            assert!(
                one[..kept].iter().copied().zip(other[..kept].iter().copied()).eq(oracle.iter().copied())
            );
        }
    });
}

#[test]
fn elements_that_are_there() {
    let (mut good, mut bad) = (0, 0);
    each(96, |random, entries, most, lists| {
        let Some(repetition) = entries.repetition else { return };
        if most == 255 {
            return;
        }
        let mut elements: Vec<u8> = (0..lists).map(|_| 1 + random.below(usize::from(most)) as u8).collect();
        elements.sort_unstable();
        let mut definition = entries.definition.to_vec();
        if random.below(2) == 0 {
            // Mostly valid, perhaps invalid in one place.
            for at in 0..definition.len() {
                if let Some(&element) =
                    usize::from(repetition[at]).checked_sub(1).and_then(|at| elements.get(at))
                {
                    definition[at] = definition[at].max(element);
                    if at > 0 {
                        definition[at - 1] = definition[at - 1].max(element);
                    }
                }
            }
            if random.below(2) == 0 && !definition.is_empty() {
                let at = random.below(definition.len());
                definition[at] = random.below(usize::from(most) + 1) as u8;
            }
        }
        let before = (random.below(2) == 0).then(|| random.below(usize::from(most) + 1) as u8);
        let oracle = (0..definition.len()).all(|at| {
            let previous = if at > 0 { definition[at - 1] } else { before.unwrap_or(definition[0]) };
            let element = usize::from(repetition[at]).checked_sub(1).and_then(|at| elements.get(at));
            element.is_none_or(|&element| definition[at].min(previous) >= element)
        });
        assert_eq!(are_elements(&definition, repetition, &elements, before), oracle);
        if definition.is_empty() {
            return;
        }
        // Except for the first entry, which the caller checks.
        let rest = are_elements(&definition, repetition, &elements, Some(255));
        let first = usize::from(repetition[0]).checked_sub(1).and_then(|at| elements.get(at));
        if first.is_none_or(|&element| definition[0] >= element) {
            for isa in Isa::all() {
                assert_eq!(are_elements_with(isa, &definition, repetition, &elements), rest);
            }
        }
        *if oracle { &mut good } else { &mut bad } += 1;
    });
    assert!(cfg!(miri) || good > 300 && bad > 300, "{good} good, {bad} bad");
}

#[test]
fn refusals_change_nothing() {
    let (definition, repetition) = ([1u8; 70], [0u8; 70]);
    let slots = Slots { repetition: 0, definition: 0 };
    let both = Entries { definition: &definition, repetition: Some(&repetition) };
    let uneven = Entries { definition: &definition, repetition: Some(&repetition[..69]) };
    let mut bytes = [7u8; 9];
    assert_eq!(validity(uneven, slots, 1, &mut bytes, 0), Err(Error::Mismatch));
    assert_eq!(validity(both, slots, 1, &mut bytes, 3), Err(Error::Short { needed: 10, given: 9 }));
    assert!(validity(both, slots, 1, &mut bytes, usize::MAX).is_err());
    assert_eq!(bytes, [7; 9]);
    let mut out = [7i32; 70];
    assert_eq!(offsets(uneven, slots, slots, 0, &mut out), Err(Error::Mismatch));
    assert_eq!(offsets(both, slots, slots, 0, &mut out[..69]), Err(Error::Short { needed: 280, given: 276 }));
    assert!(offsets(both, slots, slots, i32::MAX - 69, &mut out).is_err());
    assert_eq!(out, [7; 70]);
    assert_eq!(offsets(both, slots, slots, i32::MAX - 70, &mut out), Ok((70, 70)));
    let (mut one, mut other) = ([7u8; 70], [7u8; 69]);
    assert!(keep(&definition, &repetition, 0, &mut one, &mut other).is_err());
    assert!(keep(&definition, &repetition[1..], 0, &mut one, &mut [0; 70]).is_err());
    assert_eq!((one, other), ([7; 70], [7; 69]));
    assert_eq!(uneven.part(0, usize::MAX).len(), 69);
    assert_eq!(both.part(60, 20).len(), 10);
    assert!(both.part(71, 1).is_empty());
}
