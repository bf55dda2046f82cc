//! Zstandard blocks that no encoder writes. RFC 8878, section 3.1.1.

/// The most bytes that a block becomes, and that it takes.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;

/// The beginning of a frame whose window has `1 << window_log` bytes: no content size, no checksum, no dictionary.
pub(crate) fn frame(window_log: u8) -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3]
}

/// The block that ends a frame: empty.
pub(crate) const END: [u8; 3] = [1, 0, 0];

/// A block of bytes as they are.
pub(crate) fn raw(bytes: &[u8]) -> Vec<u8> {
    block(0, bytes.len(), bytes)
}

/// A block of a byte that repeats.
pub(crate) fn run(byte: u8) -> Vec<u8> {
    block(1, BLOCK_BYTES, &[byte])
}

fn block(kind: u32, size: usize, content: &[u8]) -> Vec<u8> {
    let head = u32::try_from(size).unwrap() << 3 | kind << 1;
    [&head.to_le_bytes()[..3], content].concat()
}

/// Matches that a block of [`matches`] may have.
pub(crate) fn matches_max(log: u8) -> usize {
    (BLOCK_BYTES / 3).min((BLOCK_BYTES - 16) * 8 / usize::from(log))
}

/// A block without literals, of matches of three bytes, each from as far back as `distances` says: between
/// `1 << log` and `2 << log` bytes, and three less.
pub(crate) fn matches(log: u8, distances: &[u64]) -> Vec<u8> {
    // No literals; then the number of sequences in three bytes, and tables of one symbol each: no literals, the
    // distance's number of bits, three bytes.
    let mut content = vec![0, 255];
    content.extend(u16::try_from(distances.len() - 0x7f00).unwrap().to_le_bytes());
    content.extend([0b01_01_01_00, 0, log, 0]);
    let mut bits = Backwards::default();
    for distance in distances {
        bits.push(distance & ((1 << log) - 1), log.into());
    }
    content.extend(bits.finish());
    block(2, content.len(), &content)
}

/// Sequences that a block of [`copies`] may have.
pub(crate) fn copies_max(log: u8) -> usize {
    (BLOCK_BYTES / 20).min((BLOCK_BYTES - 16) * 8 / usize::from(log + 1))
}

/// A block of literals that repeat a byte, seventeen before each match of three from as far back as for [`matches`]:
/// more than are copied at once.
pub(crate) fn copies(log: u8, distances: &[u64]) -> Vec<u8> {
    let literals = u32::try_from(17 * distances.len()).unwrap() << 4 | 3 << 2 | 1;
    let mut content = [&literals.to_le_bytes()[..3], &[0]].concat();
    match distances.len() {
        few @ ..128 => content.push(u8::try_from(few).unwrap()),
        many => content.extend(u16::try_from(many + 0x8000).unwrap().to_be_bytes()),
    }
    content.extend([0b01_01_01_00, 16, log, 0]);
    let mut bits = Backwards::default();
    for distance in distances {
        bits.push(distance & ((1 << log) - 1), log.into());
        bits.push(1, 1);
    }
    content.extend(bits.finish());
    block(2, content.len(), &content)
}

/// A block of `literals` bytes and a match of three, which describes a Huffman tree and three tables of the largest
/// size, each in as few bits as can be.
pub(crate) fn tables(literals: usize) -> Vec<u8> {
    // Twelve symbols; the most frequent has one bit, so eight literals take a byte, and the last byte has a mark.
    let mut stream = vec![255; literals / 8];
    stream.push(u8::try_from((1u32 << (literals % 8 + 1)) - 1).unwrap());
    let tree = [127 + 11, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10];
    let [plain, packed] = [literals, tree.len() + stream.len()].map(|bytes| u32::try_from(bytes).unwrap());
    let head = 2 | plain << 4 | packed << 14;
    let mut content = head.to_le_bytes()[..3].to_vec();
    content.extend(tree);
    content.extend(stream);
    // One sequence; three tables, whose first symbol is as good as all.
    content.extend([1, 0b10_10_10_00]);
    let logs = [9, 8, 9];
    logs.iter().for_each(|&log| content.extend(table(log)));
    let mut bits = Backwards::default();
    logs.iter().for_each(|&log| bits.push(0, log));
    content.extend(bits.finish());
    block(2, content.len(), &content)
}

/// A table of `1 << log` states, all but one of symbol 0, and that one of symbol 1, which is less frequent than once:
/// then the table is built in the slower way.
fn table(log: u32) -> Vec<u8> {
    let mut number = u64::from(log - 5);
    // Of the numbers up to 2^log + 1, those below `short` have a bit less.
    let short = (2 << log) - ((1u64 << log) + 2);
    number |= ((1 << log) + short) << 4;
    // Then 0, in one bit.
    let bits = 4 + log + 1 + 1;
    number.to_le_bytes()[..usize::try_from(bits.div_ceil(8)).unwrap()].to_vec()
}

/// Bits that are read from the end: what is pushed first is read first.
#[derive(Default)]
struct Backwards(Vec<(u64, u32)>);

impl Backwards {
    fn push(&mut self, value: u64, count: u32) {
        self.0.push((value, count));
    }

    /// The bytes, with the mark that ends them.
    fn finish(self) -> Vec<u8> {
        let (mut bytes, mut pending, mut held) = (Vec::new(), 0u64, 0);
        for (value, count) in self.0.into_iter().rev().chain([(1, 1)]) {
            pending |= value << held;
            held += count;
            while held >= 8 {
                bytes.push(pending.to_le_bytes()[0]);
                pending >>= 8;
                held -= 8;
            }
        }
        if held > 0 {
            bytes.push(pending.to_le_bytes()[0]);
        }
        bytes
    }
}
