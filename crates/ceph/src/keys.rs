//! Numbers of groups: each row's, by its values in some columns, in the order in which the groups come.
//!
//! The values of a column get numbers first, which are kept from batch to batch: a number of 64 bits and a text of any length are looked up once a
//! row, by a loop that knows which of them they are. Then a pair of numbers gets one, column by column.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayAccessor, ArrayRef, PrimitiveArray, downcast_primitive_array};
use arrow_buffer::ToByteSlice;
use arrow_schema::DataType;
use marquetry_base::cast::{low_u32, u64_of, usize_of_u32};
use marquetry_base::{Error, Result};

use crate::states::of_bytes;

/// Places of a table that has nothing yet.
const SLOTS_MIN: usize = 64;

/// The columns that make groups, and the groups that came.
pub(crate) struct Keys {
    columns: Vec<Column>,
    /// Of each column but the first: pairs of a number of those before it, and one of its own.
    pairs: Vec<Words>,
    /// Of the rows that came last: numbers so far, and those of a column.
    rows: Vec<u32>,
    column: Vec<u32>,
}

/// The values of a column.
enum Column {
    /// Those of at most 64 bits.
    Words(Words),
    /// Those of any length.
    Texts(Texts),
}

impl Keys {
    /// Of columns of these types.
    pub(crate) fn new<'a>(types: impl Iterator<Item = &'a DataType>) -> Keys {
        let seeds = [RandomState::new().hash_one(0_u64), RandomState::new().hash_one(1_u64) | 1];
        let is_word = |of: &DataType| {
            *of == DataType::Boolean || of.primitive_width().is_some_and(|width| width <= size_of::<u64>())
        };
        let columns = types.map(|of| match is_word(of) {
            true => Column::Words(Words::new(seeds)),
            false => Column::Texts(Texts::new(seeds)),
        });
        let columns: Vec<Column> = columns.collect();
        let pairs = columns.iter().skip(1).map(|_| Words::new(seeds)).collect();
        Keys { columns, pairs, rows: Vec::new(), column: Vec::new() }
    }

    /// Bytes of the texts that are kept.
    pub(crate) fn held_bytes(&self) -> usize {
        let held = self.columns.iter().map(|column| match column {
            Column::Words(_) => 0,
            Column::Texts(texts) => texts.bytes.len(),
        });
        held.sum()
    }

    /// The group of each row, and the bytes of the texts that were looked up for that.
    pub(crate) fn number(&mut self, arrays: &[&ArrayRef]) -> Result<(&[u32], usize)> {
        let Keys { columns, pairs, rows, column } = self;
        let mut bytes = 0;
        let mut pairs = pairs.iter_mut();
        rows.clear();
        for (at, (known, array)) in columns.iter_mut().zip(arrays).enumerate() {
            if at == 0 {
                bytes += known.number(array, rows)?;
                continue;
            }
            column.clear();
            bytes += known.number(array, column)?;
            let pairs = pairs.next().ok_or_else(|| Error::internal("columns without their pairs"))?;
            for (row, other) in rows.iter_mut().zip(&*column) {
                *row = pairs.number((u64::from(*row) << 32) | u64::from(*other));
            }
        }
        Ok((rows.as_slice(), bytes))
    }
}

impl Column {
    /// Adds the number of each value: the bytes of texts among them.
    fn number(&mut self, array: &ArrayRef, into: &mut Vec<u32>) -> Result<usize> {
        let other = || Error::internal(format!("groups by values of {}", array.data_type()));
        into.reserve(array.len());
        match self {
            Column::Words(words) => {
                downcast_primitive_array!(
                    array => each_word(array, words, into),
                    DataType::Boolean => {
                        for value in array.as_boolean() {
                            into.push(match value {
                                None => words.null(),
                                Some(value) => words.number(value.into()),
                            });
                        }
                    },
                    _ => return Err(other()),
                );
                Ok(0)
            }
            Column::Texts(texts) => Ok(downcast_primitive_array!(
                array => each_wide(array, texts, into),
                _ => of_bytes!(array => each_text(array, texts, into), return Err(other())),
            )),
        }
    }
}

/// Of numbers, times and such of at most 64 bits.
fn each_word<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, words: &mut Words, into: &mut Vec<u32>) {
    let word = |value: &T::Native| {
        let (mut word, bytes) = ([0; 8], value.to_byte_slice());
        word.iter_mut().zip(bytes).for_each(|(into, byte)| *into = *byte);
        u64::from_le_bytes(word)
    };
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => into.extend(array.values().iter().map(|value| words.number(word(value)))),
        Some(nulls) => {
            let number = |(value, is_there)| if is_there { words.number(word(value)) } else { words.null() };
            into.extend(array.values().iter().zip(nulls).map(number));
        }
    }
}

/// Of longer ones, by their bytes.
fn each_wide<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    texts: &mut Texts,
    into: &mut Vec<u32>,
) -> usize {
    for (at, value) in array.values().iter().enumerate() {
        let is_there = array.is_valid(at);
        into.push(if is_there { texts.number(value.to_byte_slice()) } else { texts.null() });
    }
    array.len() * size_of::<T::Native>()
}

/// Of texts and bytes: how many bytes they have.
fn each_text<A: ArrayAccessor>(array: A, texts: &mut Texts, into: &mut Vec<u32>) -> usize
where
    A::Item: AsRef<[u8]>,
{
    let mut bytes = 0;
    for at in 0..array.len() {
        if array.is_null(at) {
            into.push(texts.null());
            continue;
        }
        let value = array.value(at);
        let text: &[u8] = value.as_ref();
        bytes += text.len();
        into.push(texts.number(text));
    }
    bytes
}

/// Numbers of 64 bits, each of which has one in the order in which they come.
struct Words {
    table: Table,
    values: Vec<u64>,
    seeds: [u64; 2],
    /// The last one, and its number: often the next one is the same.
    last: Option<(u64, u32)>,
}

impl Words {
    fn new(seeds: [u64; 2]) -> Words {
        Words { table: Table::default(), values: Vec::new(), seeds, last: None }
    }

    fn number(&mut self, word: u64) -> u32 {
        if let Some((last, number)) = self.last
            && last == word
        {
            return number;
        }
        let values = &self.values;
        let hash = folded(word ^ self.seeds[0], self.seeds[1]);
        let (number, is_new) = self.table.number(hash, |at| values[at] == word);
        if is_new {
            self.values.push(word);
        }
        self.last = Some((word, number));
        number
    }

    fn null(&mut self) -> u32 {
        let (number, is_new) = self.table.null();
        if is_new {
            self.values.push(0);
        }
        number
    }
}

/// Texts, each of which has a number in the order in which they come.
struct Texts {
    table: Table,
    /// All of them, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    seeds: [u64; 2],
    /// The number of the last one.
    last: Option<u32>,
}

impl Texts {
    fn new(seeds: [u64; 2]) -> Texts {
        Texts { table: Table::default(), bytes: Vec::new(), ends: Vec::new(), seeds, last: None }
    }

    fn number(&mut self, text: &[u8]) -> u32 {
        let (bytes, ends) = (&self.bytes, &self.ends);
        let is_it = |at: usize| {
            let start = at.checked_sub(1).map_or(0, |before| ends[before]);
            bytes[start..ends[at]] == *text
        };
        if let Some(last) = self.last
            && is_it(usize_of_u32(last))
        {
            return last;
        }
        let (number, is_new) = self.table.number(hash(text, self.seeds), is_it);
        if is_new {
            self.bytes.extend_from_slice(text);
            self.ends.push(self.bytes.len());
        }
        self.last = Some(number);
        number
    }

    fn null(&mut self) -> u32 {
        let (number, is_new) = self.table.null();
        if is_new {
            self.ends.push(self.bytes.len());
        }
        number
    }
}

/// Numbers of what is found by its hash: each is one more than the one before.
#[derive(Default)]
struct Table {
    /// By hashes, numbers, each one more than it is; 0: none.
    slots: Vec<u32>,
    /// The hash of each number.
    hashes: Vec<u64>,
    /// The number of nulls, which is in no slot.
    null: Option<u32>,
}

impl Table {
    /// The number of what has this hash, and whether it is a new one; `is_it` compares it with what has a number.
    fn number(&mut self, hash: u64, is_it: impl Fn(usize) -> bool) -> (u32, bool) {
        // At least half of them are free.
        if self.slots.len() < 2 * (self.hashes.len() + 1) {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = place(hash) & mask;
        loop {
            let Some(number) = self.slots[at].checked_sub(1) else {
                let number = self.add(hash);
                self.slots[at] = number + 1;
                return (number, true);
            };
            let known = usize_of_u32(number);
            if self.hashes[known] == hash && is_it(known) {
                return (number, false);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of nulls, and whether it is a new one.
    fn null(&mut self) -> (u32, bool) {
        match self.null {
            Some(number) => (number, false),
            None => {
                let number = self.add(0);
                self.null = Some(number);
                (number, true)
            }
        }
    }

    /// No call has so many values that their numbers need more than 31 bits.
    fn add(&mut self, hash: u64) -> u32 {
        self.hashes.push(hash);
        low_u32(u64_of(self.hashes.len() - 1))
    }

    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).max(SLOTS_MIN);
        self.slots.clear();
        self.slots.resize(slots, 0);
        for (number, hash) in (0..).zip(&self.hashes) {
            if self.null == Some(number) {
                continue;
            }
            let mut at = place(*hash) & (slots - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = number + 1;
        }
    }
}

/// Where a hash is looked for first, in a table of any length.
fn place(hash: u64) -> usize {
    usize_of_u32(low_u32(hash))
}

/// The hash of a text: eight bytes at a time. Nobody who writes an object knows the seeds, so none can make many texts have the same.
fn hash(text: &[u8], [seed, factor]: [u64; 2]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let begun = words
        .iter()
        .fold(seed ^ u64_of(text.len()), |hash, word| folded(hash ^ u64::from_le_bytes(*word), factor));
    folded(begun ^ u64::from_le_bytes(last), factor)
}

/// A product of 128 bits, folded to 64: all bits of both numbers are in the lowest.
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    a.wrapping_mul(b) ^ u64::try_from(product >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::{
        BooleanArray, Decimal128Array, Float64Array, Int32Array, StringArray, StringViewArray,
    };

    use super::*;

    /// Each row's group, by a map of rows' values as text.
    fn expected(columns: &[ArrayRef]) -> Vec<u32> {
        let mut known: HashMap<String, u32> = HashMap::new();
        let rows = columns.first().map_or(0, |column| column.len());
        let key = |row: usize| -> String {
            columns.iter().map(|column| format!("{:?}|", column.slice(row, 1))).collect()
        };
        (0..rows)
            .map(|row| {
                let next = u32::try_from(known.len()).unwrap();
                *known.entry(key(row)).or_insert(next)
            })
            .collect()
    }

    fn numbered(columns: &[ArrayRef], at_once: usize) -> Vec<u32> {
        let mut keys = Keys::new(columns.iter().map(|column| column.data_type()));
        let rows = columns.first().map_or(0, |column| column.len());
        let mut all = Vec::new();
        for start in (0..rows).step_by(at_once) {
            let some = at_once.min(rows - start);
            let sliced: Vec<ArrayRef> = columns.iter().map(|column| column.slice(start, some)).collect();
            all.extend_from_slice(keys.number(&sliced.iter().collect::<Vec<_>>()).unwrap().0);
        }
        all
    }

    #[test]
    fn rows_with_the_same_values_are_in_one_group() {
        let rows = 3_000_usize;
        let some = |null: usize| (0..rows).map(move |at| (at % null != 1).then_some(at));
        let number = |at: usize| i32::try_from(at * at % 61).unwrap();
        let words = Int32Array::from_iter(some(7).map(|at| at.map(number)));
        let flags = BooleanArray::from_iter(some(11).map(|at| at.map(|at| at % 3 == 0)));
        let floats = Float64Array::from_iter_values((0..rows).map(|at| [0.0, -0.0, 1.5, f64::NAN][at % 4]));
        let text = |at: usize| ["", "a", "eight by", "a text longer than a view", "a text longer"][at % 5];
        let texts = StringArray::from_iter(some(13).map(|at| at.map(text)));
        let view = |at: usize| format!("text {}", at % 700);
        let views = StringViewArray::from_iter(some(5).map(|at| at.map(view)));
        let long = |at: usize| 10_i128.pow(30) * i128::try_from(at % 9).unwrap();
        let wide = Decimal128Array::from_iter(some(3).map(|at| at.map(long)));
        let columns: [ArrayRef; 6] = [
            Arc::new(words),
            Arc::new(flags),
            Arc::new(floats),
            Arc::new(texts),
            Arc::new(views),
            Arc::new(wide),
        ];
        for column in &columns {
            let column = std::slice::from_ref(column);
            assert_eq!(numbered(column, 256), expected(column), "{:?}", column[0].data_type());
        }
        for (number, count) in [(0, 2), (1, 3), (3, 2), (0, 6)] {
            let some = &columns[number..number + count];
            let expected = expected(some);
            assert!(expected.iter().max() > Some(&5), "a test of few groups");
            for at_once in [1, 100, rows] {
                assert_eq!(
                    numbered(some, at_once),
                    expected,
                    "columns from {number} on, {at_once} rows at once"
                );
            }
        }
    }

    #[test]
    fn texts_are_kept_once() {
        let ten = (0..1000).map(|at| format!("text {}", at % 10));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(ten));
        let mut keys = Keys::new([texts.data_type()].into_iter());
        for _ in 0..3 {
            let (_, bytes) = keys.number(&[&texts]).unwrap();
            assert_eq!(bytes, 6_000);
        }
        assert_eq!(keys.held_bytes(), 60);
    }
}
