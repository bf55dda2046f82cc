//! Chooses the encoding of a column chunk's values.
//!
//! A sample of the first values is encoded in each encoding that may be worth it, and the smallest wins. Only the size
//! of a dictionary cannot be seen in a sample, where most values are new: the number of distinct values in the chunk is
//! estimated from how many occur once, and twice, in the sample. The estimate is at most the chunk's number of values:
//! in a small chunk a dictionary hardly pays.

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Result, cast};

use super::dictionary::{DictionaryBuilder, DictionaryLimits};
use super::encoder::{Encoder, Slice};
use crate::encoding::view;
use crate::format::Encoding;
use crate::schema::{LogicalType, PhysicalType};

/// The first values of a chunk, which the sample is taken from: at most this many, and not many more bytes than
/// `FIRST_BYTES`. More would not make the sample better (each chunk gets a choice of its own), and all columns of a
/// wide table keep theirs.
pub(super) const FIRST_VALUES: usize = 8 << 10;
pub(super) const FIRST_BYTES: usize = 64 << 10;

/// Values and bytes of a sample: few enough to be one slice's work.
const SAMPLE_VALUES: usize = 1024;
const SAMPLE_BYTES: usize = 64 << 10;

/// The sample is taken in this many runs, each from the middle of its share: neighbours show how small deltas are, but
/// not how many distinct values there are.
const RUNS: usize = 4;

/// The assumed maximum number of a chunk's values, over which the size of its dictionary is spread.
pub(super) const CHUNK_VALUES: u64 = 1 << 17;

/// What a dictionary's page takes besides its entries.
const PAGE_BYTES: u64 = 32;

/// By default, the bytes of a dictionary beyond which it is abandoned.
pub(super) const DICTIONARY_BYTES: usize = 896 << 10;

/// An encoding, and why it was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The encoding. [`Encoding::RleDictionary`] means a dictionary.
    pub encoding: Encoding,
    /// The encoding of values that do not fit the dictionary; without a dictionary it is the same.
    pub fallback: Encoding,
    /// The reason for the choice.
    pub why: Why,
}

/// The reason for a choice: the bytes that the sample takes in each encoding. `None` if the encoding was not tried.
/// BYTE_STREAM_SPLIT takes as much as PLAIN, before a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Why {
    /// The user asked for the encoding.
    pub asked: bool,
    /// Values of the sample.
    pub values: usize,
    /// Distinct values among them, if they were counted.
    pub distinct: Option<usize>,
    /// PLAIN.
    pub plain: Option<u64>,
    /// RLE of booleans.
    pub rle: Option<u64>,
    /// RLE_DICTIONARY, with the sample's share of the estimated dictionary of the chunk.
    pub dictionary: Option<u64>,
    /// DELTA_BINARY_PACKED.
    pub delta: Option<u64>,
    /// DELTA_LENGTH_BYTE_ARRAY.
    pub delta_length: Option<u64>,
    /// DELTA_BYTE_ARRAY.
    pub delta_bytes: Option<u64>,
}

/// What a choice depends on besides the values.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Use this encoding, whatever the values. With a dictionary, the fallback is still chosen.
    pub encoding: Option<Encoding>,
    /// [`WriteOptions::dictionary_bytes`](super::WriteOptions::dictionary_bytes); 0 means never a dictionary.
    pub dictionary_bytes: usize,
    /// A codec follows.
    pub compressed: bool,
    /// Pages are of version 2: only there do all readers accept RLE for booleans.
    pub v2: bool,
    /// Byte strings are PLAIN or in a dictionary. DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY are not read by DuckDB for
    /// a DECIMAL, and not by Arrow C++ for dictionaries of strings in a file that has an Arrow schema
    /// ([`ARROW_SCHEMA_KEY`](crate::format::ARROW_SCHEMA_KEY)): see [`Asked::plain_strings_of`].
    pub plain_strings: bool,
}

impl Default for Asked {
    fn default() -> Asked {
        Asked {
            encoding: None,
            dictionary_bytes: DICTIONARY_BYTES,
            compressed: false,
            v2: false,
            plain_strings: false,
        }
    }
}

impl Asked {
    /// What [`plain_strings`](Asked::plain_strings) is for a column of this meaning, in a file that has an Arrow schema
    /// or not.
    pub fn plain_strings_of(logical_type: Option<&LogicalType>, has_arrow_schema: bool) -> bool {
        has_arrow_schema || matches!(logical_type, Some(LogicalType::Decimal { .. }))
    }
}

impl Choice {
    /// Chooses for a column chunk of `chunk_values`, if known, that begins with these values. It samples 1,024 of the
    /// first 8,192 values, or 64 KiB, in one call. Without values it chooses PLAIN.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type, and for an encoding that is not allowed for the type; an error if memory
    /// cannot be allocated.
    pub fn new(
        physical: PhysicalType,
        asked: Asked,
        values: Slice<'_>,
        chunk_values: u64,
        budget: &mut Budget<'_>,
    ) -> Result<Choice> {
        let mut why = Why { asked: asked.encoding.is_some(), ..Why::default() };
        if let Some(encoding) = asked.encoding {
            Encoder::new(encoding, physical)?;
            if encoding != Encoding::RleDictionary {
                return Ok(Choice { encoding, fallback: encoding, why });
            }
        }
        let sample = sample(values.part(0..first_values(values)));
        why.values = sample.iter().map(Slice::len).sum();
        let mut size = |encoding| encoded(encoding, physical, &sample, budget);
        why.plain = size(Encoding::Plain)?;
        match physical {
            PhysicalType::Boolean => why.rle = size(Encoding::Rle)?,
            PhysicalType::Int32 | PhysicalType::Int64 => why.delta = size(Encoding::DeltaBinaryPacked)?,
            PhysicalType::ByteArray => {
                why.delta_length = size(Encoding::DeltaLengthByteArray)?;
                why.delta_bytes = size(Encoding::DeltaByteArray)?;
            }
            _ => {}
        }
        let fallback = why.fallback(physical, asked);
        let mut encoding = asked.encoding.unwrap_or(fallback);
        if asked.encoding.is_none() && asked.dictionary_bytes > 0 && physical != PhysicalType::Boolean {
            let (distinct, bytes) =
                with_dictionary(physical, &sample, (chunk_values, asked.dictionary_bytes), budget)?;
            (why.distinct, why.dictionary) = (Some(distinct), bytes);
            if bytes.is_some_and(|bytes| bytes < why.size(fallback)) {
                encoding = Encoding::RleDictionary;
            }
        }
        Ok(Choice { encoding, fallback, why })
    }
}

impl Why {
    /// The best encoding without a dictionary. PLAIN is the fastest to read: others must be smaller by at least a
    /// tenth.
    fn fallback(&self, physical: PhysicalType, asked: Asked) -> Encoding {
        let plain = self.plain.unwrap_or(0);
        let pays =
            |size: Option<u64>, than: u64, tenths: u64| size.is_some_and(|size| size * 10 < than * tenths);
        match physical {
            PhysicalType::Boolean if asked.v2 && pays(self.rle, plain, 5) => Encoding::Rle,
            PhysicalType::Int32 | PhysicalType::Int64 if pays(self.delta, plain, 9) => {
                Encoding::DeltaBinaryPacked
            }
            PhysicalType::ByteArray if !asked.plain_strings => {
                let length = self.delta_length.unwrap_or(u64::MAX);
                // It is the slowest to read, and it removes the very redundancy that a codec would compress.
                if pays(self.delta_bytes, length.min(plain), 8) {
                    Encoding::DeltaByteArray
                } else if pays(self.delta_length, plain, 10) {
                    Encoding::DeltaLengthByteArray
                } else {
                    Encoding::Plain
                }
            }
            PhysicalType::Float | PhysicalType::Double if asked.compressed && self.values > 0 => {
                Encoding::ByteStreamSplit
            }
            _ => Encoding::Plain,
        }
    }

    /// The bytes of the sample in an encoding.
    fn size(&self, encoding: Encoding) -> u64 {
        let size = match encoding {
            Encoding::Rle => self.rle,
            Encoding::DeltaBinaryPacked => self.delta,
            Encoding::DeltaLengthByteArray => self.delta_length,
            Encoding::DeltaByteArray => self.delta_bytes,
            Encoding::RleDictionary => self.dictionary,
            _ => self.plain,
        };
        size.unwrap_or(u64::MAX)
    }
}

/// How many of a chunk's first values a choice looks at: that does not depend on how many more have arrived.
pub(super) fn first_values(values: Slice<'_>) -> usize {
    let most = values.len().min(FIRST_VALUES);
    // Including the one that reaches the bound.
    most.min(values_within(values.part(0..most), most, FIRST_BYTES - 1) + 1)
}

/// How many of the first values fit these bounds.
pub(super) fn values_within(values: Slice<'_>, values_max: usize, bytes_max: usize) -> usize {
    let most = values.len().min(values_max);
    match values {
        Slice::ByteArray(views, _) => {
            let mut bytes = 0;
            let is_within = |&&view: &&u128| {
                bytes += view::length(view) as usize;
                bytes <= bytes_max
            };
            views[..most].iter().take_while(is_within).count()
        }
        Slice::Fixed { width, .. } => most.min(bytes_max / width.max(1)),
        _ => most.min(bytes_max / 8),
    }
}

/// Bytes of values, without lengths.
pub(super) fn bytes_of(values: Slice<'_>) -> usize {
    match values {
        Slice::Boolean { values, .. } => values / 8,
        Slice::ByteArray(views, _) => views.iter().map(|&view| view::length(view) as usize).sum(),
        values => values.fixed().map_or(0, |(_, bytes)| bytes.len()),
    }
}

/// The values that are looked at.
fn sample(values: Slice<'_>) -> Vec<Slice<'_>> {
    if values.len() <= SAMPLE_VALUES {
        return alloc::vec![values.part(0..values_within(values, SAMPLE_VALUES, SAMPLE_BYTES))];
    }
    let mut bytes_left = SAMPLE_BYTES;
    let run = |run: usize| {
        let (share, length) = (values.len() / RUNS, SAMPLE_VALUES / RUNS);
        let start = run * share + (share - length) / 2;
        let rest = values.part(start..values.len());
        let found = rest.part(0..values_within(rest, length, bytes_left));
        bytes_left -= bytes_of(found).min(bytes_left);
        found
    };
    (0..RUNS).map(run).collect()
}

/// The bytes of the sample in an encoding, each run encoded separately, in one call.
fn encoded(
    encoding: Encoding,
    physical: PhysicalType,
    sample: &[Slice<'_>],
    budget: &mut Budget<'_>,
) -> Result<Option<u64>> {
    let mut encoder = Encoder::new(encoding, physical)?;
    let mut bytes = 0;
    for run in sample {
        let mut done = 0;
        while done < run.len() {
            done += encoder.put(run.part(done..run.len()), budget)?;
        }
        bytes += loop {
            if let Some(body) = encoder.finish(budget)? {
                break cast::u64_of(body.len());
            }
        };
    }
    Ok(Some(bytes))
}

/// The number of distinct values of a sample, and the bytes that it takes with a dictionary; `None` if that would
/// become larger than `bytes_max` by more than an eighth of what it is, as far as it can be estimated: then it would be abandoned half-way.
fn with_dictionary(
    physical: PhysicalType,
    sample: &[Slice<'_>],
    (chunk_values, bytes_max): (u64, usize),
    budget: &mut Budget<'_>,
) -> Result<(usize, Option<u64>)> {
    let limits = DictionaryLimits { entries: usize::MAX, bytes: usize::MAX };
    let mut dictionary = DictionaryBuilder::new(physical, limits);
    let mut indices = Vec::new();
    for run in sample {
        let mut done = 0;
        while done < run.len() {
            let interned = dictionary.intern(run.part(done..run.len()), &mut indices, budget)?;
            if interned.full {
                return Err(Error::internal("a dictionary without limits is full"));
            }
            done += interned.values;
        }
    }
    let distinct = dictionary.len();
    if distinct == 0 {
        return Ok((0, None));
    }
    let all = [Slice::Indices(&indices)];
    let Some(indices_bytes) = encoded(Encoding::RleDictionary, physical, &all, budget)? else {
        return Ok((distinct, None));
    };
    let mut counts = [0u16; SAMPLE_VALUES];
    for index in &indices {
        if let Some(count) = counts.get_mut(*index as usize) {
            *count += 1;
        }
    }
    let times = |times: u16| counts.iter().filter(|&&count| count == times).count();
    let values = cast::u64_of(indices.len());
    let chunk_values = chunk_values.clamp(values, CHUNK_VALUES);
    let of_chunk = match times(1) {
        _ if chunk_values == values => cast::u64_of(distinct),
        // If no value occurs again, nothing suggests that any will.
        once if once == distinct => chunk_values,
        once => estimate(cast::u64_of(distinct), cast::u64_of(once), cast::u64_of(times(2))),
    };
    let of_chunk = of_chunk.min(chunk_values);
    let dictionary_bytes = of_chunk * cast::u64_of(dictionary.bytes()) / cast::u64_of(distinct);
    if dictionary_bytes - dictionary_bytes / 8 > cast::u64_of(bytes_max) {
        return Ok((distinct, None));
    }
    // More entries make wider indices.
    let width = |entries: u64| u64::from(u64::BITS - entries.saturating_sub(1).leading_zeros()).max(1);
    let indices_bytes = indices_bytes * width(of_chunk) / width(cast::u64_of(distinct));
    Ok((distinct, Some(indices_bytes + (dictionary_bytes + PAGE_BYTES) * values / chunk_values)))
}

/// Estimates the number of distinct values from a sample with `distinct` ones, of which `once` occur once and `twice`
/// twice.
///
/// Source: A. Chao, "Nonparametric Estimation of the Number of Classes in a Population" (1984), in the form that allows
/// for `twice` being 0.
fn estimate(distinct: u64, once: u64, twice: u64) -> u64 {
    distinct + once * once.saturating_sub(1) / (2 * (twice + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{ByteArrays, FixedBytes, Values};
    use alloc::format;
    use alloc::string::String;

    fn random(count: usize, below: u64) -> Vec<u64> {
        let mut state = 88_172_645_463_325_252u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 8) % below
        };
        (0..count).map(next).collect()
    }

    fn choose(physical: PhysicalType, asked: Asked, values: &Values) -> Choice {
        let mut budget = Budget::new(0);
        let choice = Choice::new(physical, asked, Slice::of(values), u64::MAX, &mut budget).unwrap();
        assert!(budget.spent() < 215_000, "{} units to choose", budget.spent());
        choice
    }

    fn int64(values: impl IntoIterator<Item = u64>) -> Values {
        Values::Int64(values.into_iter().map(u64::cast_signed).collect::<Vec<_>>().into())
    }

    fn strings(all: impl IntoIterator<Item = String>) -> Values {
        let all: Vec<String> = all.into_iter().collect();
        Values::ByteArray(ByteArrays::from_lengths(all.concat().into(), all.iter().map(String::len)).unwrap())
    }

    #[test]
    fn numbers() {
        let of = |values: &Values| {
            let choice = choose(PhysicalType::Int64, Asked::default(), values);
            (choice.encoding, choice.fallback)
        };
        use Encoding::{DeltaBinaryPacked, Plain, RleDictionary};
        // Few distinct values far apart; times; many small numbers; anything.
        assert_eq!(of(&int64(random(8000, 50).iter().map(|n| n << 50))), (RleDictionary, Plain));
        let mut time = 1 << 50;
        let times = random(8000, 1000).into_iter().map(|n| {
            time += n;
            time
        });
        assert_eq!(of(&int64(times)), (DeltaBinaryPacked, DeltaBinaryPacked));
        assert_eq!(of(&int64(random(8000, 1 << 20))), (DeltaBinaryPacked, DeltaBinaryPacked));
        assert_eq!(of(&int64(random(8000, u64::MAX))), (Plain, Plain));
        // Ten thousand distinct values, of which a sample shows a third, are still worth a dictionary.
        let many = random(8000, 10_000).into_iter().map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        assert_eq!(of(&int64(many)), (RleDictionary, Plain));
        assert_eq!(of(&int64([])), (Plain, Plain));
        assert_eq!(of(&int64([7; 3])).1, DeltaBinaryPacked);
    }

    #[test]
    fn floats_and_booleans() {
        let doubles = |values: Vec<u64>| {
            Values::Double(values.iter().map(|&n| n as f64 / 7.0).collect::<Vec<_>>().into())
        };
        let unique = doubles(random(5000, 1 << 50));
        let compressed = Asked { compressed: true, ..Asked::default() };
        assert_eq!(choose(PhysicalType::Double, compressed, &unique).encoding, Encoding::ByteStreamSplit);
        assert_eq!(choose(PhysicalType::Double, Asked::default(), &unique).encoding, Encoding::Plain);
        let few = choose(PhysicalType::Double, compressed, &doubles(random(5000, 90)));
        assert_eq!((few.encoding, few.fallback), (Encoding::RleDictionary, Encoding::ByteStreamSplit));
        assert_eq!(few.why.distinct, Some(90));
        assert!(few.why.dictionary < few.why.plain);

        let bits = |below| Values::Boolean(random(5000, below).iter().map(|&n| n == 0).collect());
        let v2 = Asked { v2: true, ..compressed };
        assert_eq!(choose(PhysicalType::Boolean, v2, &bits(2)).encoding, Encoding::Plain);
        assert_eq!(choose(PhysicalType::Boolean, v2, &bits(500)).encoding, Encoding::Rle);
        assert_eq!(choose(PhysicalType::Boolean, compressed, &bits(500)).encoding, Encoding::Plain);
    }

    #[test]
    fn byte_strings() {
        let of = |values: Values| choose(PhysicalType::ByteArray, Asked::default(), &values);
        let words = of(strings(random(5000, 30).iter().map(|n| format!("colour number {n}"))));
        assert_eq!((words.encoding, words.fallback), (Encoding::RleDictionary, Encoding::DeltaByteArray));
        let sorted = of(strings((0..5000).map(|n| format!("https://example.org/customers/{n:07}"))));
        assert_eq!(sorted.encoding, Encoding::DeltaByteArray);
        let arrow = Asked { plain_strings: true, ..Asked::default() };
        let values = strings((0..5000).map(|n| format!("https://example.org/customers/{n:07}")));
        assert_eq!(choose(PhysicalType::ByteArray, arrow, &values).encoding, Encoding::Plain);
        assert!(
            sorted.why.delta_bytes < sorted.why.delta_length && sorted.why.delta_length < sorted.why.plain
        );
        let unique = of(strings(random(5000, u64::MAX).iter().map(|n| format!("{n:x}{}", n % 7))));
        assert_eq!(unique.encoding, Encoding::DeltaLengthByteArray);
        // Long strings: a sample covers only some of them; a single one may be longer than a sample.
        let long = of(strings(random(200, u64::MAX).iter().map(|n| format!("{n:020}").repeat(500))));
        assert_eq!((long.why.values, long.encoding), (6, Encoding::DeltaLengthByteArray));
        assert_eq!(of(strings([String::from("ab").repeat(100_000)])).why.values, 0);
    }

    #[test]
    fn strings_of_one_length() {
        let all: Vec<u8> = random(5000, u64::MAX)
            .into_iter()
            .flat_map(|n| (u128::from(n) << 64 | u128::from(n)).to_le_bytes())
            .collect();
        let physical = PhysicalType::FixedLenByteArray(16);
        let unique = Values::FixedLenByteArray(FixedBytes::new(16, 5000, all.into()));
        assert_eq!(choose(physical, Asked::default(), &unique).encoding, Encoding::Plain);
        let few = Values::FixedLenByteArray(FixedBytes::new(16, 5000, alloc::vec![3; 80_000].into()));
        assert_eq!(choose(physical, Asked::default(), &few).encoding, Encoding::RleDictionary);
    }

    #[test]
    fn what_is_asked_for_is_taken() {
        let values = int64(random(5000, 50).iter().map(|n| n << 50));
        let asked = |encoding| Asked { encoding: Some(encoding), ..Asked::default() };
        for encoding in [Encoding::Plain, Encoding::DeltaBinaryPacked, Encoding::ByteStreamSplit] {
            let choice = choose(PhysicalType::Int64, asked(encoding), &values);
            assert_eq!((choice.encoding, choice.fallback, choice.why.asked), (encoding, encoding, true));
        }
        let dictionary = choose(PhysicalType::Int64, asked(Encoding::RleDictionary), &int64(0..5000));
        assert_eq!(
            (dictionary.encoding, dictionary.fallback),
            (Encoding::RleDictionary, Encoding::DeltaBinaryPacked)
        );
        let without = Asked { dictionary_bytes: 0, ..Asked::default() };
        assert_eq!(choose(PhysicalType::Int64, without, &values).encoding, Encoding::Plain);
        // 50 entries of 8 bytes.
        for (bytes, encoding) in [(400, Encoding::RleDictionary), (349, Encoding::Plain)] {
            let small = Asked { dictionary_bytes: bytes, ..Asked::default() };
            assert_eq!(choose(PhysicalType::Int64, small, &values).encoding, encoding, "{bytes} bytes");
        }
        let refused = Choice::new(
            PhysicalType::Int64,
            asked(Encoding::Rle),
            Slice::of(&values),
            u64::MAX,
            &mut Budget::default(),
        );
        assert!(refused.is_err());
    }
}
