//! Values, and their encodings.

use marquetry_conformance::craft::{self, V};
use marquetry_conformance::hostile::Random;

use crate::choices::Choices;

/// `BYTE_STREAM_SPLIT` of the format.
pub const BYTE_STREAM_SPLIT: i32 = 9;
/// `ALP` of the format.
pub const ALP: i32 = 10;

/// How a leaf holds values (`Type` of the format).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    /// BOOLEAN; a value is a byte here.
    Boolean,
    /// INT32.
    Int32,
    /// INT64.
    Int64,
    /// INT96.
    Int96,
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// BYTE_ARRAY.
    Bytes,
    /// FIXED_LEN_BYTE_ARRAY.
    Fixed(usize),
}

impl Physical {
    /// Any.
    pub fn choose(choices: &mut Choices<'_>) -> Physical {
        match choices.byte() % 10 {
            0 => Physical::Int32,
            1 => Physical::Int64,
            2 | 3 => Physical::Bytes,
            4 => Physical::Boolean,
            5 => Physical::Double,
            6 => Physical::Float,
            7 => Physical::Fixed(choices.pick(&[16, 1, 2, 3, 12, 7, 40])),
            8 => Physical::Fixed(choices.below(20) + 1),
            _ => Physical::Int96,
        }
    }

    /// Its number in the format.
    pub fn number(self) -> i32 {
        match self {
            Physical::Boolean => 0,
            Physical::Int32 => 1,
            Physical::Int64 => 2,
            Physical::Int96 => 3,
            Physical::Float => 4,
            Physical::Double => 5,
            Physical::Bytes => 6,
            Physical::Fixed(_) => 7,
        }
    }

    /// Bytes of a value; `None` where they differ.
    pub fn width(self) -> Option<usize> {
        Some(match self {
            Physical::Boolean => 1,
            Physical::Int32 | Physical::Float => 4,
            Physical::Int64 | Physical::Double => 8,
            Physical::Int96 => 12,
            Physical::Bytes => return None,
            Physical::Fixed(width) => width,
        })
    }

    /// The encodings that can hold it, but for dictionaries.
    pub fn encodings(self) -> &'static [i32] {
        use craft::{DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, PLAIN, RLE};
        match self {
            Physical::Boolean => &[PLAIN, RLE],
            Physical::Int32 | Physical::Int64 => &[PLAIN, DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT],
            Physical::Int96 => &[PLAIN],
            Physical::Float | Physical::Double => &[PLAIN, BYTE_STREAM_SPLIT, ALP],
            Physical::Bytes => &[PLAIN, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY],
            Physical::Fixed(_) => &[PLAIN, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT],
        }
    }

    /// Annotations that a leaf of this type can have: fields of its `SchemaElement`.
    pub fn annotations(self) -> Vec<Vec<(i16, V)>> {
        let converted = |number: i32| vec![(6, V::I32(number))];
        let logical = |id: i16| {
            let empty = V::Struct(craft::Struct::default());
            vec![(10, V::Struct(craft::Struct::of([(id, empty)])))]
        };
        let decimal =
            |scale: i32, precision: i32| vec![(6, V::I32(5)), (7, V::I32(scale)), (8, V::I32(precision))];
        let mut all = vec![Vec::new()];
        all.extend(match self {
            Physical::Int32 => {
                vec![converted(6), converted(15), converted(11), converted(13), converted(7), decimal(2, 9)]
            }
            Physical::Int64 => vec![converted(9), converted(10), converted(14), converted(8), decimal(3, 18)],
            Physical::Bytes => {
                vec![converted(0), converted(19), converted(20), decimal(5, 30), logical(17), converted(4)]
            }
            Physical::Fixed(2) => vec![logical(15)],
            Physical::Fixed(12) => vec![converted(21)],
            Physical::Fixed(16) => vec![logical(14), decimal(10, 38)],
            _ => Vec::new(),
        });
        all
    }
}

/// What a column's values are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Few different ones.
    Few,
    /// Near each other, ascending.
    Ascending,
    /// Any bits, any length up to 40.
    Any,
    /// Numbers with few digits; short texts.
    Plain,
    /// Long byte strings.
    Long,
}

impl Style {
    /// Any.
    pub fn choose(choices: &mut Choices<'_>) -> Style {
        choices.pick(&[Style::Plain, Style::Few, Style::Ascending, Style::Any, Style::Long])
    }
}

/// Value number `number`, as PLAIN holds it, but byte strings without a length.
pub fn value(physical: Physical, style: Style, number: usize, random: &mut Random) -> Vec<u8> {
    let small: u64 = match style {
        Style::Few => random.below(3),
        Style::Ascending => number as u64 * 3 + random.below(3),
        Style::Plain => random.below(2000),
        Style::Any | Style::Long => random.number(),
    };
    let signed = if style == Style::Ascending { small as i64 } else { small as i64 - 1 };
    let odd = style == Style::Any || random.below(40) == 0;
    match physical {
        Physical::Boolean => vec![(small % 2) as u8],
        Physical::Int32 => (signed as i32).to_le_bytes().to_vec(),
        Physical::Int64 => signed.to_le_bytes().to_vec(),
        Physical::Int96 => {
            let mut bytes = (small % 86_400_000_000_000).to_le_bytes().to_vec();
            bytes.extend((2_440_588 + (random.below(40_000) as u32)).to_le_bytes());
            bytes
        }
        Physical::Float if odd => (random.number() as u32).to_le_bytes().to_vec(),
        Physical::Double if odd => random.number().to_le_bytes().to_vec(),
        Physical::Float => ((small % 1_000_000) as f32 / 100.0).to_le_bytes().to_vec(),
        Physical::Double => ((small % 10_000_000) as f64 / 1000.0).to_le_bytes().to_vec(),
        Physical::Fixed(width) => bytes_of(width, style, small, random),
        Physical::Bytes => {
            let length = match style {
                Style::Few => small as usize * 5,
                Style::Ascending | Style::Plain => 3 + random.index(16),
                Style::Any => random.index(40),
                // Seldom: a long page takes long to be read a byte at a time.
                Style::Long if random.below(60) == 0 => random.index(4_000),
                Style::Long => random.index(100),
            };
            bytes_of(length, style, small, random)
        }
    }
}

/// Text, but where any bytes are wanted.
fn bytes_of(length: usize, style: Style, small: u64, random: &mut Random) -> Vec<u8> {
    match style {
        Style::Any => (0..length).map(|_| random.byte()).collect(),
        Style::Few => (0..length).map(|at| b'a' + (at as u64 + small) as u8 % 26).collect(),
        _ => {
            let mut text = format!("prefix {small:08} and more of it ").into_bytes();
            while text.len() < length {
                text.extend_from_within(..);
            }
            text.truncate(length);
            text
        }
    }
}

/// Values in an encoding that can hold them; the index of dictionaries are not values: see [`indices`].
pub fn encode(encoding: i32, physical: Physical, values: &[Vec<u8>], choices: &mut Choices<'_>) -> Vec<u8> {
    match encoding {
        craft::RLE => {
            let bits: Vec<u32> = values.iter().map(|value| u32::from(value[0])).collect();
            craft::prefixed(&hybrid(&bits, 1, &mut choices.random()))
        }
        craft::DELTA_BINARY_PACKED => {
            let numbers: Vec<i64> = values.iter().map(|value| integer(value)).collect();
            let (block, miniblocks) = choices.pick(&[(128, 4), (128, 1), (256, 8), (512, 2), (1024, 32)]);
            craft::delta(&numbers, block, miniblocks)
        }
        craft::DELTA_LENGTH_BYTE_ARRAY => craft::delta_length(values),
        craft::DELTA_BYTE_ARRAY => craft::delta_byte_array(values),
        BYTE_STREAM_SPLIT => {
            let width = physical.width().unwrap_or(0);
            (0..width).flat_map(|at| values.iter().map(move |value| value[at])).collect()
        }
        ALP => alp(physical, values, choices),
        _ => plain(physical, values),
    }
}

/// PLAIN.
pub fn plain(physical: Physical, values: &[Vec<u8>]) -> Vec<u8> {
    match physical {
        Physical::Boolean => {
            let mut bytes = vec![0; values.len().div_ceil(8)];
            for (at, value) in values.iter().enumerate() {
                bytes[at / 8] |= value[0] << (at % 8);
            }
            bytes
        }
        Physical::Bytes => craft::plain_bytes(values),
        _ => values.concat(),
    }
}

fn integer(value: &[u8]) -> i64 {
    match (value.first_chunk::<8>(), value.first_chunk::<4>()) {
        (Some(bytes), _) => i64::from_le_bytes(*bytes),
        (_, Some(bytes)) => i32::from_le_bytes(*bytes).into(),
        _ => 0,
    }
}

/// A dictionary's indices: their width, and runs.
pub fn indices(indices: &[u32], choices: &mut Choices<'_>) -> Vec<u8> {
    let most = indices.iter().copied().max().unwrap_or(0);
    let width = (32 - most.leading_zeros()).max(choices.pick(&[0, 1, 0, 9, 32]));
    let mut bytes = vec![width as u8];
    bytes.extend(hybrid(indices, width, &mut choices.random()));
    bytes
}

/// Hybrid runs, packed and repeated in any turn.
pub fn hybrid(numbers: &[u32], width: u32, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < numbers.len() {
        let rest = &numbers[at..];
        let same = rest.iter().take_while(|&&number| number == rest[0]).count();
        if same >= 8 || random.below(4) == 0 {
            let count = if random.below(3) == 0 { 1 + random.index(same) } else { same };
            out.extend(craft::repeated_run(count as u64, rest[0], width));
            at += count;
        } else {
            // Only the last run may have numbers too many.
            let count = 8 * (1 + random.index(6));
            let count = if count > rest.len() { rest.len() } else { count };
            out.extend(craft::packed_run(&rest[..count], width));
            at += count;
        }
    }
    out
}

/// Levels in the deprecated BIT_PACKED: the most significant bit first.
pub fn bit_packed(levels: &[u32], width: u32) -> Vec<u8> {
    let width = width as usize;
    let mut out = vec![0u8; (levels.len() * width).div_ceil(8)];
    for (number, level) in levels.iter().enumerate() {
        for bit in 0..width {
            let at = number * width + bit;
            out[at / 8] |= u8::from(level >> (width - 1 - bit) & 1 == 1) << (7 - at % 8);
        }
    }
    out
}

/// ALP, of any exponent and factor: what they do not give back becomes exceptions.
fn alp(physical: Physical, values: &[Vec<u8>], choices: &mut Choices<'_>) -> Vec<u8> {
    let is_float = physical == Physical::Float;
    let vector_log = 3 + choices.below(8);
    let exponent = choices.below(if is_float { 11 } else { 19 });
    let factor = choices.below(exponent + 1);
    let bytes = if is_float { 4 } else { 8 };
    let mut offsets = Vec::new();
    let mut vectors: Vec<u8> = Vec::new();
    let count = values.len().div_ceil(1 << vector_log);
    for values in values.chunks(1 << vector_log) {
        offsets.extend(((count * 4 + vectors.len()) as u32).to_le_bytes());
        let integers: Vec<Option<i64>> =
            values.iter().map(|value| alp_integer(is_float, value, exponent, factor)).collect();
        let stand_in = integers.iter().flatten().next().copied().unwrap_or(0);
        let packed: Vec<i64> = integers.iter().map(|integer| integer.unwrap_or(stand_in)).collect();
        let reference = packed.iter().copied().min().unwrap_or(0);
        let distances: Vec<u64> =
            packed.iter().map(|integer| integer.wrapping_sub(reference) as u64).collect();
        let width = 64 - distances.iter().fold(0, |all, distance| all | distance).leading_zeros() as usize;
        let exceptions: Vec<usize> = (0..values.len()).filter(|&at| integers[at].is_none()).collect();
        vectors.extend([exponent as u8, factor as u8]);
        vectors.extend((exceptions.len() as u16).to_le_bytes());
        vectors.extend(&reference.to_le_bytes()[..bytes]);
        vectors.push(width as u8);
        let start = vectors.len();
        vectors.resize(start + (values.len() * width).div_ceil(8), 0);
        for (number, distance) in distances.iter().enumerate() {
            for bit in 0..width {
                let at = number * width + bit;
                vectors[start + at / 8] |= u8::from(distance >> bit & 1 == 1) << (at % 8);
            }
        }
        exceptions.iter().for_each(|&at| vectors.extend((at as u16).to_le_bytes()));
        exceptions.iter().for_each(|&at| vectors.extend(&values[at]));
    }
    let mut out = vec![0, 0, vector_log as u8];
    out.extend((values.len() as u32).to_le_bytes());
    out.extend(offsets);
    out.extend(vectors);
    out
}

/// The integer that gives a value back bit for bit.
fn alp_integer(is_float: bool, value: &[u8], exponent: usize, factor: usize) -> Option<i64> {
    // Literals are the nearest numbers; `powi` need not be.
    let ten = |power: usize| -> f64 { format!("1e{power}").parse().unwrap_or(1.0) };
    let tenth = |power: usize| -> f64 { format!("1e-{power}").parse().unwrap_or(1.0) };
    let ten_f32 = |power: usize| -> f32 { format!("1e{power}").parse().unwrap_or(1.0) };
    let tenth_f32 = |power: usize| -> f32 { format!("1e-{power}").parse().unwrap_or(1.0) };
    if is_float {
        let number = f32::from_le_bytes(*value.first_chunk()?);
        let scaled = (number * ten_f32(exponent) * tenth_f32(factor)).round();
        let integer = (scaled.abs() < 2.1e9).then_some(scaled as i32)?;
        let decoded = integer as f32 * ten_f32(factor) * tenth_f32(exponent);
        (decoded.to_bits() == number.to_bits()).then_some(integer.into())
    } else {
        let number = f64::from_le_bytes(*value.first_chunk()?);
        let scaled = (number * ten(exponent) * tenth(factor)).round();
        let integer = (scaled.abs() < 9.2e18).then_some(scaled as i64)?;
        let decoded = integer as f64 * ten(factor) * tenth(exponent);
        (decoded.to_bits() == number.to_bits()).then_some(integer)
    }
}
