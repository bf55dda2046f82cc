//! Pages of any size in any encoding and codec, computed: values whose every one is known.

use marquetry_base::Bytes;
use marquetry_base::cast::{u64_of, usize_of};

use super::Computed;
use crate::craft::{self, BROTLI, BYTE_STREAM_SPLIT, GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};

/// What a row's value is, as PLAIN holds it (a byte string without its length).
pub type ValueOf = fn(row: u64, out: &mut Vec<u8>);

/// A page's values in an encoding.
#[derive(Debug, Clone)]
pub struct Values {
    /// Their physical type, and its length.
    pub physical_type: i32,
    /// See [`Values::physical_type`].
    pub type_length: Option<i32>,
    /// The page's encoding.
    pub encoding: i32,
    /// How many.
    pub count: u64,
    /// The page's bytes.
    pub body: Computed,
    /// The dictionary's entries, and its bytes.
    pub dictionary: Option<(u64, Computed)>,
    /// Each of them.
    pub value: ValueOf,
    /// Whether they stand in one stream, so that a window of the page is enough to read them.
    pub is_one_stream: bool,
}

/// Values repeat after this many.
const PERIOD: u64 = 1024;

/// Values of a page whose values are small, at most. Their number is 32 bits wide; but each is looked at.
const VALUES_MAX: u64 = 1 << 28;

/// Makes values that take about so many bytes.
pub type Make = fn(bytes: u64) -> Values;

/// Every encoding that a page can be large in, by name.
pub const ENCODINGS: [(&str, Make); 11] = [
    ("plain_int64", plain_int64),
    ("plain_strings", plain_strings),
    ("plain_fixed", plain_fixed),
    ("plain_boolean", plain_boolean),
    ("rle_boolean", rle_boolean),
    ("dictionary", dictionary),
    ("delta", delta),
    ("byte_stream_split", byte_stream_split),
    ("delta_length", delta_length),
    ("delta_strings", delta_strings),
    ("dictionary_runs", dictionary_runs),
];

/// Every codec, by name.
pub const CODECS: [(&str, i32); 7] = [
    ("uncompressed", UNCOMPRESSED),
    ("snappy", SNAPPY),
    ("gzip", GZIP),
    ("brotli", BROTLI),
    ("lz4", LZ4),
    ("zstd", ZSTD),
    ("lz4_raw", LZ4_RAW),
];

fn simple(physical_type: i32, encoding: i32, count: u64, body: Computed, value: ValueOf) -> Values {
    Values {
        physical_type,
        type_length: None,
        encoding,
        count,
        body,
        dictionary: None,
        value,
        is_one_stream: true,
    }
}

/// Periods that take about so many bytes.
fn periods(bytes: u64, unit: usize) -> u64 {
    (bytes / u64_of(unit)).max(1)
}

/// A period of values, each with what stands before it.
fn period(value: ValueOf, has_length: bool) -> Vec<u8> {
    let (mut out, mut one) = (Vec::new(), Vec::new());
    for row in 0..PERIOD {
        one.clear();
        value(row, &mut one);
        if has_length {
            out.extend(u32::try_from(one.len()).expect("a short string").to_le_bytes());
        }
        out.extend(&one);
    }
    out
}

/// The bits of a period of numbers.
fn packed(width: usize, number: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut out = vec![0u8; usize_of(PERIOD).expect("few") * width / 8];
    for row in 0..PERIOD {
        for bit in 0..width {
            let at = usize_of(row).expect("few") * width + bit;
            out[at / 8] |= u8::from(number(row) >> bit & 1 == 1) << (at % 8);
        }
    }
    out
}

fn int64(row: u64, out: &mut Vec<u8>) {
    out.extend((row % PERIOD).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
}

fn plain_int64(bytes: u64) -> Values {
    let unit = period(int64, false);
    let count = periods(bytes, unit.len());
    simple(craft::INT64, craft::PLAIN, count * PERIOD, Computed::new().repeat(unit, count), int64)
}

/// Strings that a view holds itself, and ones that it does not, by turns.
fn string(row: u64, out: &mut Vec<u8>) {
    out.extend(b"text");
    let digits = [1000, 100, 10, 1].map(|place| row % PERIOD / place % 10);
    out.extend(digits.map(|digit| b'0' + u8::try_from(digit).expect("a digit")));
    if row % 2 == 1 {
        out.extend(b"-longer-tail");
    }
}

fn plain_strings(bytes: u64) -> Values {
    let unit = period(string, true);
    let count = periods(bytes, unit.len());
    simple(craft::BYTE_ARRAY, craft::PLAIN, count * PERIOD, Computed::new().repeat(unit, count), string)
}

fn fixed(row: u64, out: &mut Vec<u8>) {
    int64(row, out);
    int64(row + 1, out);
}

fn plain_fixed(bytes: u64) -> Values {
    let unit = period(fixed, false);
    let count = periods(bytes, unit.len());
    let body = Computed::new().repeat(unit, count);
    let values = simple(craft::FIXED_LEN_BYTE_ARRAY, craft::PLAIN, count * PERIOD, body, fixed);
    Values { type_length: Some(16), ..values }
}

fn bit(row: u64) -> u64 {
    let row = row % PERIOD;
    (row * row / 8) & 1
}

fn boolean(row: u64, out: &mut Vec<u8>) {
    out.push(u8::from(bit(row) == 1));
}

fn plain_boolean(bytes: u64) -> Values {
    let unit = packed(1, bit);
    let count = periods(bytes, unit.len()).min(VALUES_MAX / PERIOD);
    simple(craft::BOOLEAN, craft::PLAIN, count * PERIOD, Computed::new().repeat(unit, count), boolean)
}

/// A bit-packed run of a period.
fn packed_run(width: usize, number: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut run = Vec::new();
    craft::varint(&mut run, ((PERIOD / 8) << 1) | 1);
    run.extend(packed(width, number));
    run
}

fn rle_boolean(bytes: u64) -> Values {
    let unit = packed_run(1, bit);
    let count = periods(bytes, unit.len()).min(VALUES_MAX / PERIOD);
    let length = u32::try_from(count * u64_of(unit.len())).expect("less than 4 GiB");
    let body = Computed::new().bytes(length.to_le_bytes().to_vec()).repeat(unit, count);
    simple(craft::BOOLEAN, craft::RLE, count * PERIOD, body, boolean)
}

fn index(row: u64) -> u64 {
    row * 7 % PERIOD
}

fn indexed(row: u64, out: &mut Vec<u8>) {
    int64(index(row % PERIOD), out);
}

fn dictionary(bytes: u64) -> Values {
    // Wider than they need to be, so that a page of a gibibyte has less than half a billion.
    const WIDTH: u8 = 20;
    let unit = packed_run(WIDTH.into(), index);
    let count = periods(bytes, unit.len());
    let body = Computed::new().bytes(vec![WIDTH]).repeat(unit, count);
    let values = simple(craft::INT64, craft::RLE_DICTIONARY, count * PERIOD, body, indexed);
    Values { dictionary: Some((PERIOD, Computed::new().bytes(period(int64, false)))), ..values }
}

/// Runs of eight: the row's index is an eighth of it.
fn run_of_eight(row: u64, out: &mut Vec<u8>) {
    int64(row / 8 % PERIOD, out);
}

fn dictionary_runs(bytes: u64) -> Values {
    let mut unit = Vec::new();
    for index in 0..PERIOD {
        craft::varint(&mut unit, 8 << 1);
        unit.extend(&index.to_le_bytes()[..2]);
    }
    let count = periods(bytes, unit.len()).min(VALUES_MAX / (8 * PERIOD));
    let body = Computed::new().bytes(vec![10]).repeat(unit, count);
    let values = simple(craft::INT64, craft::RLE_DICTIONARY, count * PERIOD * 8, body, run_of_eight);
    Values { dictionary: Some((PERIOD, Computed::new().bytes(period(int64, false)))), ..values }
}

fn byte_stream_split(bytes: u64) -> Values {
    let unit = period(int64, false);
    let count = periods(bytes, unit.len());
    let streams = (0..8).map(|stream| unit[stream..].iter().copied().step_by(8).collect::<Vec<u8>>());
    let body = streams.fold(Computed::new(), |all, stream| all.repeat(stream, count));
    let values = simple(craft::INT64, BYTE_STREAM_SPLIT, count * PERIOD, body, int64);
    Values { is_one_stream: false, ..values }
}

/// Deltas of a block.
const BLOCK: usize = 128;

/// DELTA_BINARY_PACKED: a first value, a block of deltas, and a block that repeats.
fn delta_stream(first: i64, begin: [i64; BLOCK], again: [i64; BLOCK], blocks: u64) -> Computed {
    let mut head = Vec::new();
    craft::varint(&mut head, u64_of(BLOCK));
    craft::varint(&mut head, 4);
    craft::varint(&mut head, 1 + u64_of(BLOCK) * blocks);
    craft::zigzag(&mut head, first);
    Computed::new().bytes(head).bytes(delta_block(begin)).repeat(delta_block(again), blocks - 1)
}

fn delta_block(deltas: [i64; BLOCK]) -> Vec<u8> {
    // What stands before the first block: block size, miniblocks, count, first value.
    let head_of = |count: usize| {
        let mut head = Vec::new();
        [u64_of(BLOCK), 4, u64_of(count)].iter().for_each(|&number| craft::varint(&mut head, number));
        craft::zigzag(&mut head, 0);
        head.len()
    };
    let values: Vec<i64> = std::iter::once(0)
        .chain(deltas.iter().scan(0i64, |sum, delta| {
            *sum += delta;
            Some(*sum)
        }))
        .collect();
    craft::delta(&values, BLOCK, 4)[head_of(values.len())..].to_vec()
}

/// Differences of 31 bits: a page of a gibibyte has 270 million of them, not billions, which take minutes to look at.
const fn delta_of(row: i64) -> i64 {
    ((row * 37 % 100) << 24) - 5
}

/// The differences of a block, and what the first so many of them come to.
const DELTAS: ([i64; BLOCK], [i64; BLOCK + 1]) = {
    let (mut deltas, mut sums) = ([0; BLOCK], [0; BLOCK + 1]);
    let (mut at, mut row) = (0, 0);
    while at < BLOCK {
        deltas[at] = delta_of(row);
        sums[at + 1] = sums[at] + deltas[at];
        (at, row) = (at + 1, row + 1);
    }
    (deltas, sums)
};

fn counted(row: u64, out: &mut Vec<u8>) {
    static SUMS: [i64; BLOCK + 1] = DELTAS.1;
    let block = u64_of(BLOCK);
    let blocks = i64::try_from(row / block).expect("few blocks");
    let before = SUMS[usize_of(row % block).expect("less than a block")];
    out.extend((7 + blocks * SUMS[BLOCK] + before).to_le_bytes());
}

fn delta(bytes: u64) -> Values {
    let count = periods(bytes, delta_block(DELTAS.0).len());
    let body = delta_stream(7, DELTAS.0, DELTAS.0, count);
    simple(craft::INT64, craft::DELTA_BINARY_PACKED, 1 + count * u64_of(BLOCK), body, counted)
}

/// Lengths that grow and shrink by twelve in turns.
fn turns(first: i64) -> [i64; BLOCK] {
    std::array::from_fn(|at| if at % 2 == 0 { first } else { -first })
}

fn delta_length(bytes: u64) -> Values {
    let unit = period(string, false);
    let count = periods(bytes, unit.len());
    let lengths = delta_stream(8, turns(12), turns(12), count * PERIOD / u64_of(BLOCK));
    let body = lengths.then(Computed::new().repeat(unit, count).bytes(&b"text0000"[..]));
    let values = simple(craft::BYTE_ARRAY, craft::DELTA_LENGTH_BYTE_ARRAY, 1 + count * PERIOD, body, string);
    Values { is_one_stream: false, ..values }
}

fn suffix(row: u64, out: &mut Vec<u8>) {
    string(row, out);
    out.drain(..4);
}

fn delta_strings(bytes: u64) -> Values {
    let unit = period(suffix, false);
    let count = periods(bytes, unit.len());
    let blocks = count * PERIOD / u64_of(BLOCK);
    let mut prefixes = [0; BLOCK];
    prefixes[0] = 4;
    let mut suffixes = turns(12);
    // The first has no prefix, so its suffix is longer.
    suffixes[0] = 8;
    let body = delta_stream(0, prefixes, [0; BLOCK], blocks)
        .then(delta_stream(8, suffixes, turns(12), blocks))
        .then(Computed::new().bytes(&b"text"[..]).repeat(unit, count).bytes(&b"0000"[..]));
    let values = simple(craft::BYTE_ARRAY, craft::DELTA_BYTE_ARRAY, 1 + count * PERIOD, body, string);
    Values { is_one_stream: false, ..values }
}

/// Bytes of a block that is compressed by itself.
const BLOCK_BYTES: usize = 64 << 10;

/// Compresses. What repeats is compressed once, where the codec lets blocks be put together.
///
/// # Panics
///
/// For codecs that nothing is made with.
pub fn compress(codec: i32, plain: &Computed) -> Computed {
    match codec {
        UNCOMPRESSED => plain.clone(),
        SNAPPY => {
            let mut head = Vec::new();
            craft::varint(&mut head, plain.len());
            blocks(Computed::new().bytes(head), plain, snappy)
        }
        GZIP => {
            let head = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
            let mut crc = crc32fast::Hasher::new();
            plain.each(|piece| crc.update(piece));
            let size = u32::try_from(plain.len() & 0xffff_ffff).expect("32 bits");
            let tail = [&[3, 0][..], &crc.finalize().to_le_bytes(), &size.to_le_bytes()].concat();
            blocks(Computed::new().bytes(head), plain, deflate).bytes(tail)
        }
        LZ4 => blocks(Computed::new(), plain, |block| {
            let packed = lz4(&[(block, 1)]).read_all();
            let lengths = [block.len(), packed.len()].map(|length| u32::try_from(length).expect("small"));
            [&lengths[0].to_be_bytes()[..], &lengths[1].to_be_bytes(), &packed].concat()
        }),
        LZ4_RAW => lz4(&plain.parts().map(|(unit, count)| (&unit[..], count)).collect::<Vec<_>>()),
        ZSTD => Computed::new().bytes(zstd(plain)),
        BROTLI => {
            use std::io::Write;
            let mut out = brotli::CompressorWriter::new(Vec::new(), 1 << 16, 1, 22);
            plain.each(|piece| out.write_all(piece).expect("a Vec takes any bytes"));
            Computed::new().bytes(out.into_inner())
        }
        other => panic!("nothing is made with codec {other}"),
    }
}

impl Computed {
    fn read_all(&self) -> Bytes {
        self.read(0..self.len())
    }
}

/// Compresses block by block.
fn blocks(head: Computed, plain: &Computed, compress: impl Fn(&[u8]) -> Vec<u8>) -> Computed {
    let mut out = head;
    for (unit, count) in plain.parts() {
        if unit.len() > BLOCK_BYTES {
            for _ in 0..count {
                for block in unit.chunks(BLOCK_BYTES) {
                    out = out.bytes(compress(block));
                }
            }
            continue;
        }
        let together = u64_of(BLOCK_BYTES / unit.len()).min(count);
        let many = |units: u64| unit.repeat(usize_of(units).expect("a block"));
        out = out.repeat(compress(&many(together)), count / together);
        if count % together > 0 {
            out = out.bytes(compress(&many(count % together)));
        }
    }
    out
}

/// A block's elements, which refer to nothing before it.
fn snappy(block: &[u8]) -> Vec<u8> {
    let whole = craft::compress(SNAPPY, block);
    let head = whole.iter().position(|byte| *byte < 0x80).map_or(0, |last| last + 1);
    whole[head..].to_vec()
}

/// A block as DEFLATE that ends with a byte and refers to nothing before it.
fn deflate(block: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(block.len() * 2 + 1024);
    let mut state = flate2::Compress::new(flate2::Compression::fast(), false);
    state.compress_vec(block, &mut out, flate2::FlushCompress::Full).expect("deflate takes any bytes");
    out
}

fn zstd(plain: &Computed) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::CompressionLevel(1)).expect("a level that there is");
    let mut all = Vec::new();
    let mut some = vec![0u8; 256 << 10];
    plain.each(|piece| {
        let mut input = zstd_safe::InBuffer::around(piece);
        while input.pos() < piece.len() {
            let mut out = zstd_safe::OutBuffer::around(&mut some[..]);
            context.compress_stream(&mut out, &mut input).expect("zstd takes any bytes");
            let end = out.pos();
            all.extend_from_slice(&some[..end]);
        }
    });
    loop {
        let mut out = zstd_safe::OutBuffer::around(&mut some[..]);
        let left = context.end_stream(&mut out).expect("zstd ends");
        let end = out.pos();
        all.extend_from_slice(&some[..end]);
        if left == 0 {
            return all;
        }
    }
}

/// An LZ4 block: what repeats is its unit and a match.
fn lz4(parts: &[(&[u8], u64)]) -> Computed {
    /// The last bytes of a block are literals.
    const TAIL_BYTES: usize = 16;
    let mut out = Computed::new();
    let mut literals: Vec<u8> = Vec::new();
    for &(unit, count) in parts {
        let spare = u64_of(TAIL_BYTES.div_ceil(unit.len())).min(count);
        let together = u64_of(BLOCK_BYTES / unit.len()).max(5);
        let sequences = (count - spare) / together;
        let is_worth = unit.len() < BLOCK_BYTES && sequences > 0;
        let left = if is_worth {
            let matched = unit.len() * usize_of(together - 1).expect("a block");
            literals.extend(unit);
            out = out.bytes(lz4_sequence(&literals, unit.len(), matched));
            out = out.repeat(lz4_sequence(unit, unit.len(), matched), sequences - 1);
            literals.clear();
            count - sequences * together
        } else {
            count
        };
        (0..left).for_each(|_| literals.extend(unit));
    }
    out.bytes(lz4_head(&literals, 0)).bytes(literals)
}

/// What begins a sequence of LZ4.
pub(super) fn lz4_head(literals: &[u8], matched: usize) -> Vec<u8> {
    let mut out = vec![u8::try_from(literals.len().min(15) << 4 | matched.min(15)).expect("two nibbles")];
    lz4_more(&mut out, literals.len());
    out
}

fn lz4_more(out: &mut Vec<u8>, number: usize) {
    if number >= 15 {
        out.extend(vec![255; (number - 15) / 255]);
        out.push(u8::try_from((number - 15) % 255).expect("a byte"));
    }
}

/// A sequence of LZ4: literals, and a match.
///
/// # Panics
///
/// For offsets and matches that LZ4 does not have.
pub fn lz4_sequence(literals: &[u8], offset: usize, matched: usize) -> Vec<u8> {
    let mut out = lz4_head(literals, matched - 4);
    out.extend(literals);
    out.extend(u16::try_from(offset).expect("an offset of LZ4").to_le_bytes());
    lz4_more(&mut out, matched - 4);
    out
}
