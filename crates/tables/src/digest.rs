//! Comparing what was written with what was read.

use std::collections::{HashMap, HashSet};

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Result, twos_complement};
use marquetry_kernels::xxh64;
use marquetry_parquet::batch::{Batch, ColumnBatch, Values};
use marquetry_parquet::schema::{Meaning, NodeKind, Schema, Shape, ShapeKind};

use crate::entries::Entries;

/// A digest of rows: their number, that of their nulls, and the sum of a hash of each, which includes the row's number if order matters.
/// Bits are hashed: NaN equals itself, and 0 differs from −0. What is nested, and decimals, are hashed as what they mean ([`Meanings`]).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Digest {
    is_in_order: bool,
    rows: u64,
    /// Entries without a value: none is taken for one, whatever the hashes are.
    nulls: u64,
    sum: u128,
}

/// Multipliers of Steele and Vigna's "Computationally easy, spectrally good multipliers": a product's two halves, folded, spread
/// each bit of what is multiplied.
const MIX: u64 = 0xd134_2543_de82_ef95;
const SEED: u64 = 0xaf25_1af3_b0f0_25b5;
/// What a null, and an entry's end, are hashed as. A null is hashed as two of them, as no value is.
const NULL: u64 = 0x9e37_79b9_7f4a_7c15;

impl Digest {
    pub(crate) fn new(is_in_order: bool) -> Digest {
        Digest { is_in_order, ..Digest::default() }
    }

    pub(crate) fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds the rows of a batch, which [`Reading`](crate::Reading) has checked. The meanings are those of its schema.
    pub(crate) fn add(&mut self, batch: &Batch, meanings: &Meanings) {
        let first = self.rows;
        let seed = |row: usize| if self.is_in_order { mix(SEED, first + u64_of(row)) } else { SEED };
        let mut hashes: Vec<u64> = (0..batch.rows).map(seed).collect();
        for column in &batch.columns {
            self.nulls += u64_of(column.nulls);
            add_column(column, meanings, &mut hashes);
        }
        self.rows += u64_of(batch.rows);
        self.sum = hashes.iter().fold(self.sum, |sum, hash| sum.wrapping_add(u128::from(*hash)));
    }
}

fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ b.rotate_left(32)) * u128::from(MIX);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a product")]
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded ^ b
}

/// What levels and values mean, whatever a schema makes of it: how a list is spelled, which parts of a column can be null, and
/// in how many bytes a decimal is held, is not a matter of rows.
#[derive(Debug, Default)]
pub(crate) struct Meanings {
    /// Of each nested leaf, the ranks of its definition levels.
    ranks: HashMap<usize, Vec<u16>>,
    /// The leaves that are decimals.
    decimals: HashSet<usize>,
}

impl Meanings {
    /// Of a schema's leaves.
    pub(crate) fn of(schema: &Schema) -> Meanings {
        let is_decimal =
            |leaf: &usize| matches!(schema.meaning_of(&schema.leaves()[*leaf]), Meaning::Decimal { .. });
        let decimals = (0..schema.leaves().len()).filter(is_decimal).collect();
        let mut meanings = Meanings { ranks: HashMap::new(), decimals };
        for node in schema.children(0) {
            let is_value = |leaf: usize| schema.leaves()[leaf].is_flat();
            if matches!(schema.nodes()[node].kind, NodeKind::Leaf { leaf } if is_value(leaf)) {
                continue;
            }
            if meanings.add_ranks(schema.shape(node), &Ends::default()).is_err() {
                // No rule says what it means.
                let levels = |leaf: usize| (0..=schema.leaves()[leaf].definition_max).collect();
                meanings.ranks.extend(schema.leaves_of(node).map(|leaf| (leaf, levels(leaf))));
            }
        }
        meanings
    }

    fn add_ranks(&mut self, shape: Shape<'_>, around: &Ends) -> Result<()> {
        let ends = around.then(shape.is_nullable);
        match shape.kind()? {
            ShapeKind::Leaf => {
                self.ranks.insert(shape.leaves().start, ends.then(true).levels);
            }
            ShapeKind::Struct(mut fields) => fields.try_for_each(|field| self.add_ranks(field, &ends))?,
            ShapeKind::List(_, element) => self.add_ranks(element, &ends.then(true))?,
            ShapeKind::Map(_, key, value) => {
                let ends = ends.then(true);
                self.add_ranks(key, &ends)?;
                value.map_or(Ok(()), |value| self.add_ranks(value, &ends))?;
            }
        }
        Ok(())
    }
}

/// Where an entry may end on the way to a leaf: at what is null, or empty.
#[derive(Default)]
struct Ends {
    /// The rank of each definition level.
    levels: Vec<u16>,
    /// That of the next end.
    next: u16,
}

impl Ends {
    /// One more, which has a definition level or not.
    fn then(&self, is_level: bool) -> Ends {
        let mut levels = self.levels.clone();
        levels.extend(is_level.then_some(self.next));
        Ends { levels, next: self.next + 1 }
    }
}

/// Mixes each row's values of a column into the row's hash.
fn add_column(column: &ColumnBatch, meanings: &Meanings, hashes: &mut [u64]) {
    let ranks = meanings.ranks.get(&column.leaf);
    let values = Hashes::of(&column.values, meanings.decimals.contains(&column.leaf));
    if ranks.is_none() && column.levels.is_none() && column.nulls == 0 {
        hashes.iter_mut().enumerate().for_each(|(row, hash)| *hash = mix(*hash, values.get(row)));
        return;
    }
    let mut entries = Entries::of(column);
    let is_nested = ranks.is_some() || column.levels.is_some();
    for (row, hash) in hashes.iter_mut().enumerate() {
        for entry in entries.row(row) {
            let value = entries.value_of(entry);
            if is_nested {
                let [definition, repetition] = entries.levels_of(entry).to_be_bytes();
                // One level needs none in a batch.
                let level = if column.levels.is_some() { definition } else { u8::from(value.is_some()) };
                let rank = ranks.and_then(|ranks| ranks.get(usize::from(level)).or(ranks.last()));
                let rank = rank.copied().unwrap_or(u16::from(level));
                *hash = mix(*hash, u64::from(rank) << 8 | u64::from(repetition));
            }
            *hash = match value {
                Some(at) => mix(*hash, values.get(at)),
                None => mix(mix(*hash, NULL), NULL),
            };
        }
        if is_nested {
            *hash = mix(*hash, NULL);
        }
    }
}

/// The hash of each value.
enum Hashes<'a> {
    Values(&'a Values),
    Decimals(&'a Values),
    /// Those of a dictionary's entries are known.
    Indices(&'a [u32], Vec<u64>),
}

impl Hashes<'_> {
    fn of(values: &Values, are_decimals: bool) -> Hashes<'_> {
        match values {
            Values::Dictionary(indices, dictionary) => {
                let of = Hashes::of(dictionary, are_decimals);
                Hashes::Indices(&indices[..], (0..dictionary.len()).map(|at| of.get(at)).collect())
            }
            values if are_decimals => Hashes::Decimals(values),
            values => Hashes::Values(values),
        }
    }

    #[inline]
    fn get(&self, at: usize) -> u64 {
        match self {
            Hashes::Values(values) => of_value(values, at),
            Hashes::Decimals(values) => of_decimal(values, at),
            Hashes::Indices(indices, entries) => entries[usize_of_u32(indices[at])],
        }
    }
}

/// The hash of a decimal's unscaled value, in however many bytes it is held.
fn of_decimal(values: &Values, at: usize) -> u64 {
    let unscaled = match values {
        Values::Int32(values) => Some(values[at].into()),
        Values::Int64(values) => Some(values[at].into()),
        Values::ByteArray(values) => twos_complement::to_i128(values.get(at)),
        Values::FixedLenByteArray(values) => twos_complement::to_i128(values.get(at)),
        _ => None,
    };
    match unscaled {
        Some(unscaled) => xxh64::of_bytes(&unscaled.to_le_bytes()),
        None => of_value(values, at),
    }
}

#[inline]
fn of_value(values: &Values, at: usize) -> u64 {
    match values {
        Values::Boolean(bits) => 1 + u64::from(bits.get(at)),
        Values::Int32(values) => u64::from(values[at].cast_unsigned()),
        Values::Int64(values) => values[at].cast_unsigned(),
        Values::Float(values) => u64::from(values[at].to_bits()),
        Values::Double(values) => values[at].to_bits(),
        Values::ByteArray(values) => xxh64::of_bytes(values.get(at)),
        Values::Int96(values) | Values::FixedLenByteArray(values) => xxh64::of_bytes(values.get(at)),
        Values::Dictionary(indices, values) => of_value(values, usize_of_u32(indices[at])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::batch::Layout;
    use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType};

    fn batch(values: Vec<i32>) -> Batch {
        let rows = values.len();
        let column = ColumnBatch {
            leaf: 0,
            rows,
            nulls: 0,
            validity: None,
            values: Values::Int32(values.into()),
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        };
        Batch { row_group: 0, first_row: 0, rows, columns: vec![column] }
    }

    fn digest(is_in_order: bool, all: &[&[i32]]) -> Digest {
        let mut digest = Digest::new(is_in_order);
        all.iter().for_each(|values| digest.add(&batch(values.to_vec()), &Meanings::default()));
        digest
    }

    #[test]
    fn rows_in_any_order_are_the_same() {
        let one = digest(false, &[&[1, 2, 3, 3]]);
        assert_eq!(one, digest(false, &[&[3, 1], &[3, 2]]));
        for other in [&[1, 2, 3][..], &[1, 2, 2, 3], &[1, 2, 3, 4]] {
            assert_ne!(one, digest(false, &[other]));
        }
    }

    #[test]
    fn rows_in_their_order_are_the_same_however_they_are_cut() {
        let one = digest(true, &[&[1, 2, 3, 3]]);
        assert_eq!(one, digest(true, &[&[1], &[2, 3, 3]]));
        assert_ne!(one, digest(true, &[&[2, 1, 3, 3]]));
        assert_ne!(one, digest(true, &[&[1, 2, 3]]));
    }

    /// Where an entry ends is counted as if everything could be null.
    #[test]
    fn ranks_are_those_of_shapes() {
        let int = |name| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None));
        let list = |element| FieldType::List(Box::new(element));
        let map = |value| FieldType::Map(Box::new(int("key").required()), Some(Box::new(value)));
        let place = |field| FieldType::Struct(vec![field], None);
        let ranks = |field: FieldDef| {
            let ranks = Meanings::of(&Schema::of_fields(&[field]).unwrap()).ranks;
            (0..ranks.len()).map(|leaf| ranks[&leaf].clone()).collect::<Vec<_>>()
        };
        assert_eq!(ranks(int("n")), Vec::<Vec<u16>>::new());
        // Null, empty, a null, a value.
        assert_eq!(ranks(FieldDef::new("l", list(int("element")))), [[0, 1, 2, 3]]);
        assert_eq!(ranks(FieldDef::new("l", list(int("element").required())).required()), [[1, 3]]);
        assert_eq!(ranks(FieldDef::new("m", map(int("value")))), [vec![0, 1, 3], vec![0, 1, 2, 3]]);
        assert_eq!(ranks(FieldDef::new("s", place(int("x")))), [[0, 1, 2]]);
        assert_eq!(ranks(FieldDef::new("s", place(int("x"))).required()), [[1, 2]]);
        assert_eq!(ranks(FieldDef::new("s", place(int("x").required()))), [[0, 2]]);
    }

    #[test]
    fn decimals_are_numbers() {
        let of = |physical, values: Values| {
            let decimal = FieldType::Leaf(physical, Some(LogicalType::Decimal { precision: 5, scale: 2 }));
            let schema = Schema::of_fields(&[FieldDef::new("d", decimal)]).unwrap();
            let mut digest = Digest::new(true);
            digest.add(&Batch::of_values([values]).unwrap(), &Meanings::of(&schema));
            digest
        };
        let int = of(PhysicalType::Int32, vec![-1_i32, 2].into());
        assert_eq!(int, of(PhysicalType::Int64, vec![-1_i64, 2].into()));
        let bytes = |bytes: [&[u8]; 2]| bytes.into_iter().collect::<Values>();
        assert_eq!(int, of(PhysicalType::ByteArray, bytes([&[0xff], &[0, 2]])));
        assert_ne!(int, of(PhysicalType::ByteArray, bytes([&[0xff], &[3]])));
    }

    #[test]
    fn no_value_is_null() {
        let of = |values: &[Option<i64>]| {
            let mut batch =
                Batch::of_values([Vec::from_iter(values.iter().map(|n| n.unwrap_or(0))).into()]).unwrap();
            let column = &mut batch.columns[0];
            column.nulls = values.iter().filter(|value| value.is_none()).count();
            column.validity = (column.nulls > 0).then(|| values.iter().map(Option::is_some).collect());
            batch
        };
        let digest = |is_in_order: bool, batches: &[Batch]| {
            let mut digest = Digest::new(is_in_order);
            batches.iter().for_each(|batch| digest.add(batch, &Meanings::default()));
            digest
        };
        let constants = [NULL, MIX, SEED, 0, 1, u64::MAX, mix(NULL, NULL), mix(SEED, NULL)];
        for constant in constants.map(u64::cast_signed) {
            for is_in_order in [false, true] {
                assert_ne!(
                    digest(is_in_order, &[of(&[None])]),
                    digest(is_in_order, &[of(&[Some(constant)])])
                );
            }
            // As many nulls, in other rows.
            let [one, other] = [[None, Some(constant)], [Some(constant), None]];
            assert_ne!(digest(true, &[of(&one)]), digest(true, &[of(&other)]));
            // Values are the same beside nulls as without them.
            let apart = [of(&[None]), of(&[Some(constant)])];
            assert_eq!(digest(true, &[of(&one)]), digest(true, &apart));
        }
    }

    #[test]
    fn values_of_two_columns_do_not_change_places() {
        let of = |a: i32, b: i32| {
            let (mut one, other) = (batch(vec![a]), batch(vec![b]));
            one.columns.extend(other.columns);
            let mut digest = Digest::new(true);
            digest.add(&one, &Meanings::default());
            digest
        };
        assert_ne!(of(1, 2), of(2, 1));
        assert_ne!(of(1, 0), of(0, 1));
        assert_ne!(of(0, 0), of(0, 1));
    }
}
