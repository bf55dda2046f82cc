//! The directory of each row, by its values.

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{ColumnBatch, FixedBytes, Values};

use super::gathered::Plain;

/// What is known of a row: the number of its directory.
pub(super) type Number = u32;
/// The number of a directory that is not known.
pub(super) const UNKNOWN: Number = Number::MAX;

/// Few directories, by the bits of their values. Values become small numbers, column by column: so no row's values are
/// put together, nor hashed.
pub(super) struct Lookup {
    columns: Vec<Level>,
    most: usize,
    known: usize,
}

/// A column: what is known of its values, and which of them follow which of those of the columns before it.
struct Level {
    leaf: usize,
    codes: Codes,
    /// By the number of the columns before, times the most there may be, and the value's.
    next: Vec<Number>,
    nodes: usize,
}

/// The numbers of the values of a column.
#[derive(Default)]
struct Codes {
    null: Option<Number>,
    words: Vec<(u128, Number)>,
    long: Vec<(Vec<u8>, Number)>,
    count: usize,
}

/// A value, bit by bit.
#[derive(Clone, Copy)]
enum Bits<'a> {
    Null,
    Word(u128),
    Long(&'a [u8]),
}

impl Lookup {
    /// Of at most `most` directories, by these leaves.
    pub(super) fn new(leaves: impl IntoIterator<Item = usize>, most: usize) -> Lookup {
        let level =
            |leaf| Level { leaf, codes: Codes::default(), next: vec![UNKNOWN; most * most], nodes: 0 };
        Lookup { columns: leaves.into_iter().map(level).collect(), most, known: 0 }
    }

    /// Whether no more can be known.
    pub(super) fn is_full(&self) -> bool {
        self.known >= self.most
    }

    /// Finds the directory of each row.
    pub(super) fn find(&self, batch: &Plain, numbers: &mut Vec<Number>) -> Result<()> {
        numbers.clear();
        numbers.resize(batch.batch().rows, 0);
        for level in &self.columns {
            let column = batch.column(level.leaf)?;
            level.codes.find(column, numbers, |number, code| level.at(number, code, self.most))?;
        }
        Ok(())
    }

    /// The directory of a row.
    pub(super) fn find_one(&self, batch: &Plain, row: usize) -> Result<Number> {
        let mut number = 0;
        for level in &self.columns {
            let code = level.codes.code(bits_of(batch.column(level.leaf)?, row)?);
            number = level.at(number, code, self.most);
        }
        Ok(number)
    }

    /// Adds the directory of a row, which is not known. Returns its number, which counts them.
    pub(super) fn add(&mut self, batch: &Plain, row: usize) -> Result<Number> {
        let mut number = 0;
        for level in &mut self.columns {
            let code = level.codes.code_or_new(bits_of(batch.column(level.leaf)?, row)?)?;
            let next = level.next.get_mut(usize_of_u32(number) * self.most + usize_of_u32(code));
            let next = next.ok_or_else(|| Error::internal("more directories than there may be"))?;
            if *next == UNKNOWN {
                *next = number_of(level.nodes)?;
                level.nodes += 1;
            }
            number = *next;
        }
        self.known += 1;
        Ok(number)
    }
}

impl Level {
    fn at(&self, number: Number, code: Number, most: usize) -> Number {
        if number == UNKNOWN || code == UNKNOWN {
            return UNKNOWN;
        }
        self.next.get(usize_of_u32(number) * most + usize_of_u32(code)).copied().unwrap_or(UNKNOWN)
    }
}

impl Codes {
    fn code(&self, bits: Bits<'_>) -> Number {
        let found = match bits {
            Bits::Null => self.null,
            Bits::Word(word) => self.words.iter().find(|known| known.0 == word).map(|known| known.1),
            Bits::Long(bytes) => self.long.iter().find(|known| known.0 == bytes).map(|known| known.1),
        };
        found.unwrap_or(UNKNOWN)
    }

    fn code_or_new(&mut self, bits: Bits<'_>) -> Result<Number> {
        let found = self.code(bits);
        if found != UNKNOWN {
            return Ok(found);
        }
        let code = number_of(self.count)?;
        self.count += 1;
        match bits {
            Bits::Null => self.null = Some(code),
            Bits::Word(word) => self.words.push((word, code)),
            Bits::Long(bytes) => self.long.push((bytes.to_vec(), code)),
        }
        Ok(code)
    }

    /// Replaces the number of each row by that which it has with the row's value.
    fn find(
        &self,
        column: &ColumnBatch,
        numbers: &mut [Number],
        next: impl Fn(Number, Number) -> Number,
    ) -> Result<()> {
        let null = self.null.unwrap_or(UNKNOWN);
        let mut seen = Seen::default();
        macro_rules! of_words {
            ($word:expr) => {
                for (row, number) in numbers.iter_mut().enumerate() {
                    let code = match column.is_null(row) {
                        true => null,
                        false => seen.code($word(row), |word| self.code(Bits::Word(word))),
                    };
                    *number = next(*number, code);
                }
            };
        }
        match &column.values {
            Values::Int32(values) => of_words!(|row: usize| word(values[row].into())),
            Values::Int64(values) => of_words!(|row: usize| word(values[row])),
            _ => {
                for (row, number) in numbers.iter_mut().enumerate() {
                    let code = match bits_of(column, row)? {
                        Bits::Word(word) => seen.code(word, |word| self.code(Bits::Word(word))),
                        other => self.code(other),
                    };
                    *number = next(*number, code);
                }
            }
        }
        Ok(())
    }
}

/// The values that were looked up last.
struct Seen([(u128, Number); SEEN]);

const SEEN: usize = 64;

impl Default for Seen {
    fn default() -> Seen {
        // A value is looked up where its hash has it: the first is where it cannot be found.
        Seen([(u128::MAX, UNKNOWN); SEEN])
    }
}

impl Seen {
    #[inline]
    fn code(&mut self, word: u128, look: impl Fn(u128) -> Number) -> Number {
        let folded = u64::try_from((word ^ word >> 64) & u128::from(u64::MAX)).unwrap_or(0);
        let hash = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
        let place = usize::try_from(hash).unwrap_or(0) % SEEN;
        let seen = &mut self.0[place];
        // What is not known is looked for again: only few values are known, and it costs as much as finding them.
        if seen.0 != word || seen.1 == UNKNOWN {
            *seen = (word, look(word));
        }
        seen.1
    }
}

fn bits_of(column: &ColumnBatch, row: usize) -> Result<Bits<'_>> {
    if column.is_null(row) {
        return Ok(Bits::Null);
    }
    let fixed = |values: &FixedBytes| -> u128 {
        values.get(row).iter().fold(0, |word, byte| word << 8 | u128::from(*byte))
    };
    Ok(match &column.values {
        Values::Boolean(values) => Bits::Word(values.get(row).into()),
        Values::Int32(values) => Bits::Word(word(values[row].into())),
        Values::Int64(values) => Bits::Word(word(values[row])),
        Values::Float(values) => Bits::Word(values[row].to_bits().into()),
        Values::Double(values) => Bits::Word(values[row].to_bits().into()),
        Values::Int96(values) | Values::FixedLenByteArray(values) if values.width() <= size_of::<u128>() => {
            Bits::Word(fixed(values))
        }
        Values::Int96(values) | Values::FixedLenByteArray(values) => Bits::Long(values.get(row)),
        Values::ByteArray(values) if values.get(row).len() < size_of::<u128>() => {
            // With the length, so that none is taken for one that begins with zeros.
            let value = values.get(row);
            let length = u128::try_from(value.len()).unwrap_or(0);
            Bits::Word(value.iter().fold(length, |word, byte| word << 8 | u128::from(*byte)))
        }
        Values::ByteArray(values) => Bits::Long(values.get(row)),
        Values::Dictionary(..) => return Err(Error::internal("a dictionary in a plain batch")),
    })
}

fn word(value: i64) -> u128 {
    u128::from(value.cast_unsigned())
}

fn number_of(count: usize) -> Result<Number> {
    Number::try_from(count).map_err(|_| Error::internal("2^32 directories"))
}
