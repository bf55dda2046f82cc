//! Changes of bytes, chosen before the bytes are known.

use marquetry_conformance::craft::{Struct, V};

use crate::choices::Choices;

/// A change of bytes. Places are fractions of the length.
#[derive(Debug, Clone)]
pub enum Edit {
    /// Another byte.
    Set(usize, u8),
    /// Another bit.
    Flip(usize, u8),
    /// A byte more.
    Insert(usize, Vec<u8>),
    /// Bytes fewer.
    Remove(usize, usize),
    /// A part of it again, elsewhere.
    Repeat(usize, usize, usize),
    /// The end is missing.
    Truncate(usize),
    /// More at the end.
    Extend(Vec<u8>),
    /// A little-endian word instead of another.
    Word(usize, u32),
}

impl Edit {
    /// Any change.
    pub fn choose(choices: &mut Choices<'_>) -> Edit {
        let at = choices.word(2) as usize;
        match choices.byte() % 8 {
            0 => Edit::Flip(at, choices.byte()),
            1 => Edit::Set(at, choices.byte()),
            2 => Edit::Insert(at, choices.bytes(8).to_vec()),
            3 => Edit::Remove(at, 1 + choices.below(16)),
            4 => Edit::Repeat(at, choices.word(2) as usize, 1 + choices.below(40)),
            5 => Edit::Truncate(at),
            6 => Edit::Extend(choices.bytes(40).to_vec()),
            _ => Edit::Word(at, choices.number() as u32),
        }
    }

    /// A few changes.
    pub fn several(choices: &mut Choices<'_>, most: usize) -> Vec<Edit> {
        (0..1 + choices.below(most)).map(|_| Edit::choose(choices)).collect()
    }

    /// Changes `bytes`.
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        // Small places are meant as they are: headers are short and matter most.
        let place = |at: usize| if length == 0 { 0 } else { at % length };
        match self {
            Edit::Extend(more) => bytes.extend(more),
            Edit::Insert(at, more) => drop(bytes.splice(place(*at)..place(*at), more.iter().copied())),
            _ if length == 0 => {}
            Edit::Set(at, byte) => bytes[place(*at)] = *byte,
            Edit::Flip(at, bit) => bytes[place(*at)] ^= 1 << (bit % 8),
            Edit::Remove(at, count) => {
                let at = place(*at);
                bytes.drain(at..(at + count).min(length));
            }
            Edit::Repeat(from, to, count) => {
                let from = place(*from);
                let part = bytes[from..(from + count).min(length)].to_vec();
                let to = place(*to);
                bytes.splice(to..to, part);
            }
            Edit::Truncate(at) => bytes.truncate(place(*at)),
            Edit::Word(at, word) => {
                let at = place(*at);
                for (byte, new) in bytes[at..].iter_mut().zip(word.to_le_bytes()) {
                    *byte = new;
                }
            }
        }
    }
}

/// A Thrift value of any type.
pub fn any_value(choices: &mut Choices<'_>) -> V {
    match choices.byte() % 12 {
        0..=3 => V::I32(choices.number() as i32),
        4 | 5 => V::I64(choices.number()),
        6 => V::Bool(choices.once_in(2)),
        7 => V::Binary(choices.bytes(20).to_vec()),
        8 => V::Struct(Struct::of([(1 + choices.below(16) as i16, V::Struct(Struct::default()))])),
        9 => V::List(vec![V::I32(choices.number() as i32); choices.below(20)]),
        10 => V::Raw(1 + choices.byte() % 13, choices.bytes(12).to_vec()),
        _ => V::I16(choices.number() as i16),
    }
}

/// Tells a lie somewhere in a structure.
pub fn lie(structure: &mut Struct, choices: &mut Choices<'_>) {
    let ids: Vec<i16> = structure.0.keys().copied().collect();
    let Some(&id) = ids.get(choices.below(ids.len())) else {
        structure.set(1 + choices.below(20) as i16, any_value(choices));
        return;
    };
    match choices.byte() % 8 {
        0 => drop(structure.remove(id)),
        1 => drop(structure.set(1 + choices.below(24) as i16, any_value(choices))),
        2 => drop(structure.set(id, any_value(choices))),
        _ => {
            if let Some(value) = structure.0.get_mut(&id) {
                lie_in_value(value, choices);
            }
        }
    }
}

fn lie_in_value(value: &mut V, choices: &mut Choices<'_>) {
    match value {
        V::Struct(inner) => lie(inner, choices),
        V::List(values) => {
            let at = choices.below(values.len());
            match choices.byte() % 8 {
                0 if !values.is_empty() => drop(values.remove(at)),
                1 if !values.is_empty() => values.insert(at, values[at].clone()),
                2 if values.len() > 1 => values.swap(at, 0),
                _ => {
                    if let Some(value) = values.get_mut(at) {
                        lie_in_value(value, choices);
                    }
                }
            }
        }
        V::Bool(value) => *value = !*value,
        V::I8(value) => *value = choices.byte() as i8,
        V::I16(value) => *value = choices.number() as i16,
        V::I32(value) => *value = near(i64::from(*value), choices) as i32,
        V::I64(value) => *value = near(*value, choices),
        V::Binary(bytes) => Edit::choose(choices).apply(bytes),
        V::Double(value) => *value = f64::from_bits(choices.word(8)),
        V::Set(_) | V::Map(_) | V::Uuid(_) | V::Raw(..) => *value = any_value(choices),
    }
}

/// A number near this one, or any other.
fn near(value: i64, choices: &mut Choices<'_>) -> i64 {
    if choices.once_in(2) { choices.number() } else { value.wrapping_add(i64::from(choices.byte() as i8)) }
}
