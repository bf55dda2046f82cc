//! Structures that look alike, skipped by comparing them with one that came before.
//!
//! Where a structure ends depends on few of its bits: the headers of its fields, the heads of its lists, the lengths of its
//! strings, and of each byte of a number whether another follows. What the numbers and strings are says nothing. So a
//! structure of which these bits are those of another ends where that one ends, and 32 bytes are compared at once, without
//! knowing what is in them. A number or a string of another length is stepped over, and what follows it is compared again.
//!
//! This never decides what is valid: what is not alike is left to the [`Skipper`](super::Skipper), and whatever is alike the
//! skipper would have accepted.

use alloc::vec::Vec;
use core::array;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Price};

use super::ends::{length, varint_end};
use super::read::{Kind, Reader, Stop, Thrift};

/// The price of comparing: of the bytes, and of each structure, number or string that is stepped over.
const COMPARE_PRICE: Price = Price { kib: 160, kilovalue: 24 << 10 };
/// The price of learning a layout, of its bytes.
const LEARN_PRICE: Price = Price::per_kib(4 << 10);
/// Layouts that are known at the same time: columns of several types, with statistics or without.
const LAYOUTS_MAX: usize = 8;
/// The longest structure that is learned. Longer ones have long strings, which are stepped over quickly in any case.
const LAYOUT_BYTES_MAX: usize = 1 << 10;
/// Structures nested in one that is learned.
const DEPTH_MAX: u32 = 8;
/// Bytes that are compared at once.
const BLOCK_BYTES: usize = 32;
/// After so many numbers and strings of another length a layout is learned anew: about what that takes.
const MISFITS_MAX: usize = 32;
/// Stepping over a number or a string takes about as long as skipping so many fields.
const MISFIT_FIELDS: usize = 4;
/// After so many structures in a row that were like none, only every so manieth is compared and learned.
const USELESS_MAX: u32 = 8;
const COMPARE_EVERY: u32 = 64;

/// The layouts of structures that were skipped.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    known: Vec<Layout>,
    /// The one that was right last, and the one that is replaced next.
    last: usize,
    replaced: usize,
    /// Structures in a row that were like none.
    useless: u32,
}

impl Layouts {
    /// Where the structure at `at` ends, if it is like one before, and it and some bytes more are there.
    pub(super) fn end(&mut self, data: &[u8], at: usize, budget: &mut Budget<'_>) -> Option<usize> {
        if self.rests() {
            return None;
        }
        // What followed the last one before, and then the others.
        let likely = self.known.get(self.last)?.next;
        let others = (0..self.known.len()).filter(|which| *which != likely);
        for which in [likely].into_iter().chain(others) {
            let layout = self.known.get_mut(which)?;
            let (end, bytes, misfits) = layout.end(data, at);
            budget.charge(COMPARE_PRICE, bytes, 1 + misfits);
            let Some(end) = end else { continue };
            layout.misfits += misfits;
            if layout.misfits > MISFITS_MAX
                && let Some(bytes) = data.get(at..end)
            {
                budget.charge(LEARN_PRICE, bytes.len(), 0);
                layout.learn(bytes);
            }
            self.follow(which);
            self.useless = 0;
            return Some(end);
        }
        None
    }

    /// Learns from a structure that was like none, which is all of `bytes`.
    pub(super) fn learn(&mut self, bytes: &[u8], budget: &mut Budget<'_>) {
        let rests = self.rests();
        self.useless = self.useless.wrapping_add(1);
        if rests || bytes.is_empty() || bytes.len() > LAYOUT_BYTES_MAX {
            return;
        }
        budget.charge(LEARN_PRICE, bytes.len(), 0);
        if self.known.len() < LAYOUTS_MAX {
            self.replaced = self.known.len();
            self.known.push(Layout::default());
        }
        let which = self.replaced;
        self.replaced = (which + 1) % LAYOUTS_MAX;
        if let Some(layout) = self.known.get_mut(which) {
            layout.learn(bytes);
            layout.next = which;
            self.follow(which);
        }
    }

    /// A structure was like this one.
    fn follow(&mut self, which: usize) {
        if let Some(last) = self.known.get_mut(self.last) {
            last.next = which;
        }
        self.last = which;
    }

    /// Whether comparing is not worth while now.
    fn rests(&self) -> bool {
        self.useless >= USELESS_MAX && !self.useless.is_multiple_of(COMPARE_EVERY)
    }
}

/// What a structure looks like.
#[derive(Debug, Default)]
struct Layout {
    /// A structure, and of each byte the bits that decide where it ends. After both is a block of zeros.
    bytes: Vec<u8>,
    decide: Vec<u8>,
    /// Bytes of the structure; none of one that is like no other.
    length: usize,
    /// Its numbers and strings, in order.
    items: Vec<Item>,
    /// Numbers and strings of another length since it was learned.
    misfits: usize,
    /// The layout that was right after it, the last time.
    next: usize,
}

/// A number, or a string with its length.
#[derive(Debug, Clone, Copy)]
struct Item {
    start: u16,
    end: u16,
    is_string: bool,
}

impl Layout {
    /// Where the structure at `at` ends, if it is so like this one that comparing is worth while; the bytes that were compared; and how many numbers and
    /// strings were of another length.
    #[inline]
    fn end(&self, data: &[u8], at: usize) -> (Option<usize>, usize, usize) {
        let (mut from, mut at, mut misfits, mut compared) = (0, at, 0, 0);
        if self.length == 0 {
            return (None, 0, 0);
        }
        loop {
            let before = from;
            let differs = self.first_that_differs(&mut from, data, &mut at);
            compared += from - before + BLOCK_BYTES;
            let place = match differs {
                Found::Nothing => return (Some(at - (from - self.length)), compared, misfits),
                Found::Cut => return (None, compared, misfits),
                Found::Byte(place) => place,
            };
            let Some(item) = self.item(place) else { return (None, compared, misfits) };
            if misfits * MISFIT_FIELDS > self.items.len() {
                return (None, compared, misfits);
            }
            let (start, item_end) = (usize::from(item.start), usize::from(item.end));
            let start = (at + start) - from;
            let end = if item.is_string {
                length(data, start).ok().flatten().map(|(length, end)| end.saturating_add(length))
            } else {
                varint_end(data, start).ok().flatten()
            };
            let Some(end) = end else { return (None, compared, misfits) };
            (from, at, misfits) = (item_end, end, misfits + 1);
        }
    }

    /// Compares from `from` on with what is at `at`, block by block; both are moved to the block that ended it.
    #[inline]
    fn first_that_differs(&self, from: &mut usize, data: &[u8], at: &mut usize) -> Found {
        fn blocks(bytes: &[u8], from: usize) -> &[[u8; BLOCK_BYTES]] {
            bytes.get(from..).unwrap_or_default().as_chunks().0
        }
        let (bytes, decide) = (blocks(&self.bytes, *from), blocks(&self.decide, *from));
        let count = (self.length - (*from).min(self.length)).div_ceil(BLOCK_BYTES);
        let mut done = 0;
        for ((there, bytes), decide) in blocks(data, *at).iter().zip(bytes).zip(decide).take(count) {
            let differs: [u8; BLOCK_BYTES] = array::from_fn(|at| (there[at] ^ bytes[at]) & decide[at]);
            if differs != [0; BLOCK_BYTES] {
                (*from, *at) = (*from + done * BLOCK_BYTES, *at + done * BLOCK_BYTES);
                return Found::Byte(*from + first_of(&differs));
            }
            done += 1;
        }
        (*from, *at) = (*from + done * BLOCK_BYTES, *at + done * BLOCK_BYTES);
        if done < count { Found::Cut } else { Found::Nothing }
    }

    /// The number or string that has the byte at `place`.
    fn item(&self, place: usize) -> Option<Item> {
        let at = self.items.partition_point(|item| usize::from(item.end) <= place);
        self.items.get(at).copied().filter(|item| usize::from(item.start) <= place)
    }

    /// Learns a structure. It is like no other if it is not one that can be learned.
    fn learn(&mut self, bytes: &[u8]) {
        (self.length, self.misfits) = (0, 0);
        self.items.clear();
        self.bytes.clear();
        self.decide.clear();
        if bytes.len() > LAYOUT_BYTES_MAX {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        self.decide.resize(bytes.len(), 0xff);
        self.bytes.resize(bytes.len() + BLOCK_BYTES, 0);
        self.decide.resize(bytes.len() + BLOCK_BYTES, 0);
        let mut reader = Reader::new(bytes, 0);
        if self.learn_value(&mut reader, Kind::Struct, true, 0).is_ok() && reader.left() == 0 {
            self.length = bytes.len();
        }
    }

    fn learn_value(&mut self, reader: &mut Reader<'_>, kind: Kind, in_field: bool, depth: u32) -> Thrift<()> {
        if depth > DEPTH_MAX {
            return Err(Stop::OtherType);
        }
        let start = reader.at();
        match kind {
            Kind::True | Kind::False if in_field => {}
            Kind::True | Kind::False | Kind::I8 | Kind::Double | Kind::Uuid => {
                if matches!(kind, Kind::True | Kind::False) {
                    reader.i8().map(drop)?
                } else {
                    reader.skip(kind)?
                }
                self.set(start, reader.at(), 0);
            }
            Kind::I16 | Kind::I32 | Kind::I64 => {
                reader.varint()?;
                self.set(start, reader.at(), 0x80);
                self.push(start, reader.at(), false)?;
            }
            Kind::Binary => {
                let string = reader.binary()?.len();
                self.set(reader.at() - string, reader.at(), 0);
                self.push(start, reader.at(), true)?;
            }
            Kind::List | Kind::Set => {
                let (kind, count) = reader.list()?;
                for _ in 0..count {
                    self.learn_value(reader, kind, false, depth + 1)?;
                }
            }
            Kind::Map => {
                let (key, value, count) = reader.map()?;
                for _ in 0..count {
                    self.learn_value(reader, key, false, depth + 1)?;
                    self.learn_value(reader, value, false, depth + 1)?;
                }
            }
            Kind::Struct => {
                let mut last = 0;
                while let Some(field) = reader.field(last)? {
                    last = field.id;
                    self.learn_value(reader, field.kind, true, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, start: usize, end: usize, decide: u8) {
        self.decide.get_mut(start..end).unwrap_or_default().fill(decide);
    }

    fn push(&mut self, start: usize, end: usize, is_string: bool) -> Thrift<()> {
        let of = |at: usize| u16::try_from(at).map_err(|_| Stop::OtherType);
        self.items.push(Item { start: of(start)?, end: of(end)?, is_string });
        Ok(())
    }
}

/// The first byte that is not zero.
fn first_of(bytes: &[u8; BLOCK_BYTES]) -> usize {
    let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    let mut each = words.enumerate().filter(|(_, word)| *word != 0);
    each.next().map_or(0, |(at, word)| 8 * at + usize_of_u32(word.trailing_zeros() / 8))
}

/// What a comparison finds first.
enum Found {
    Nothing,
    /// The bytes end.
    Cut,
    Byte(usize),
}

// What is learned has places of 16 bits.
const _: () = assert!(LAYOUT_BYTES_MAX < u16::MAX as usize);

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use marquetry_base::cast::usize_of;

    use super::*;
    use crate::thrift::Skipper;

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, bound: u64) -> u64 {
            (self.next() >> 16) % bound
        }

        fn index(&mut self, bound: usize) -> usize {
            usize_of(self.below(bound as u64)).unwrap()
        }
    }

    /// What structures of the same kind have in common.
    enum Shape {
        Bool,
        Byte,
        Number(Kind),
        Double,
        Uuid,
        Text,
        List(Kind, Box<Shape>),
        Map(Box<Shape>, Box<Shape>),
        /// Fields: the step to each number, and whether it is written in the long form.
        Struct(Vec<(i16, bool, Shape)>),
    }

    impl Shape {
        fn any(random: &mut Random, depth: u32) -> Shape {
            let inner = |random: &mut Random| Box::new(Shape::any(random, depth + 1));
            match random.below(if depth > 3 { 8 } else { 13 }) {
                0 => Shape::Bool,
                1 => Shape::Byte,
                2 => Shape::Double,
                3 => Shape::Uuid,
                4 | 5 => Shape::Text,
                6 => Shape::Number(Kind::I16),
                7 | 8 => Shape::Number(if random.below(2) == 0 { Kind::I32 } else { Kind::I64 }),
                9 => Shape::List(Kind::List, inner(random)),
                10 => Shape::List(Kind::Set, inner(random)),
                11 => Shape::Map(inner(random), inner(random)),
                _ => Shape::structure(random, depth + 1),
            }
        }

        fn structure(random: &mut Random, depth: u32) -> Shape {
            let fields = (0..random.below(7)).map(|_| {
                let step = if random.below(4) == 0 { 16 + random.below(3000) } else { 1 + random.below(15) };
                let is_long = step > 15 || random.below(8) == 0;
                (i16::try_from(step).unwrap(), is_long, Shape::any(random, depth))
            });
            Shape::Struct(fields.collect())
        }

        fn kind(&self, random: &mut Random) -> Kind {
            match self {
                Shape::Bool if random.below(2) == 0 => Kind::False,
                Shape::Bool => Kind::True,
                Shape::Byte => Kind::I8,
                Shape::Number(kind) | Shape::List(kind, _) => *kind,
                Shape::Double => Kind::Double,
                Shape::Uuid => Kind::Uuid,
                Shape::Text => Kind::Binary,
                Shape::Map(..) => Kind::Map,
                Shape::Struct(_) => Kind::Struct,
            }
        }

        /// One that has this shape; numbers, lengths and strings are like those of others, mostly.
        fn write(&self, out: &mut Vec<u8>, random: &mut Random, in_field: bool) {
            let count = |random: &mut Random| if random.below(8) == 0 { random.below(20) } else { 2 };
            match self {
                Shape::Bool if in_field => {}
                Shape::Bool | Shape::Byte => out.push(random.next().to_le_bytes()[5]),
                Shape::Double => out.extend(random.next().to_le_bytes()),
                Shape::Uuid => out.extend([random.next().to_le_bytes(); 2].concat()),
                Shape::Number(_) => {
                    let bits = if random.below(3) == 0 { random.below(64) } else { 20 };
                    varint(out, random.next() >> (63 - bits));
                }
                Shape::Text => {
                    let length = if random.below(3) == 0 { random.below(200) } else { 9 };
                    varint(out, length);
                    out.extend((0..length).map(|_| random.next().to_le_bytes()[5]));
                }
                Shape::List(_, inner) => {
                    let count = count(random);
                    let kind = inner.kind(random).number();
                    if count < 15 && random.below(16) > 0 {
                        out.push(u8::try_from(count).unwrap() << 4 | kind);
                    } else {
                        out.push(0xf0 | kind);
                        varint(out, count);
                    }
                    (0..count).for_each(|_| inner.write(out, random, false));
                }
                Shape::Map(key, value) => {
                    let count = count(random);
                    varint(out, count);
                    if count > 0 {
                        out.push(key.kind(random).number() << 4 | value.kind(random).number());
                    }
                    for _ in 0..count {
                        key.write(out, random, false);
                        value.write(out, random, false);
                    }
                }
                Shape::Struct(fields) => {
                    let mut id = 0_i16;
                    for (step, is_long, field) in fields {
                        if random.below(50) == 0 {
                            continue;
                        }
                        id += step;
                        let kind = field.kind(random).number();
                        if *is_long {
                            out.push(kind);
                            varint(out, u64::from(id.unsigned_abs()) << 1);
                        } else {
                            out.push(u8::try_from(*step).unwrap() << 4 | kind);
                        }
                        field.write(out, random, true);
                    }
                    out.push(0);
                }
            }
        }
    }

    fn varint(out: &mut Vec<u8>, mut value: u64) {
        while value > 0x7f {
            out.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        out.push(value.to_le_bytes()[0]);
    }

    /// Where so many structures end, and what it costs; `None` if the bytes end before.
    fn skip(
        bytes: &[u8],
        count: usize,
        piece_bytes: usize,
        units: u64,
    ) -> (marquetry_base::Result<Option<usize>>, u64) {
        let (mut skipper, mut at, mut spent) = (Skipper::new(), 0, 0);
        skipper.begin("a test", 0, count);
        loop {
            let end = bytes.len().min(at + piece_bytes);
            let mut budget = Budget::new(units);
            let step = skipper.step(&bytes[at..end], &mut budget);
            spent += budget.spent();
            match step {
                Ok((skipped, true)) => return (Ok(Some(at + skipped)), spent),
                Ok((skipped, false)) => at += skipped,
                Err(error) => return (Err(error), spent),
            }
            if at == bytes.len() {
                return (Ok(None), spent);
            }
        }
    }

    /// Whatever the structures are, and whatever is wrong with them: what is skipped is what a reader skips, and what comes
    /// of it does not depend on pieces. (In pieces of one byte no structure is compared with another.)
    #[test]
    fn structures_alike_end_where_a_reader_ends() {
        let mut random = Random(0x1234_5678_9abc_def1);
        let (mut faults, mut good, mut cheaper) = (0, 0, 0);
        for round in 0..600 {
            let shapes: Vec<Shape> =
                (0..1 + random.below(6)).map(|_| Shape::structure(&mut random, 0)).collect();
            let count = 1 + random.index(60);
            let mut bytes = Vec::new();
            for _ in 0..count {
                shapes[random.index(shapes.len())].write(&mut bytes, &mut random, true);
            }
            let end = bytes.len();
            bytes.extend([0x19, 0x2c].repeat(20));
            if round % 3 > 0 {
                for _ in 0..1 + random.below(12) {
                    let at = random.index(end);
                    bytes[at] ^= 1 << random.below(8);
                }
            }
            let mut reader = Reader::new(&bytes, 0);
            let read = (0..count).try_for_each(|_| reader.skip(Kind::Struct));
            let (slowly, units) = skip(&bytes, count, 1, u64::MAX);
            for (piece_bytes, budget) in
                [(usize::MAX >> 1, u64::MAX), (usize::MAX >> 1, 1), (300, 90), (1000, 7)]
            {
                let (found, less) = skip(&bytes, count, piece_bytes, budget);
                assert_eq!(found, slowly, "round {round}, pieces of {piece_bytes}");
                cheaper += u32::from(less < units / 2);
            }
            match read {
                Ok(()) => {
                    assert_eq!(slowly, Ok(Some(reader.at())), "round {round}");
                    good += 1;
                }
                Err(_) => faults += 1,
            }
            if round % 3 == 0 {
                assert_eq!(slowly, Ok(Some(end)));
            }
        }
        assert!(
            good > 250 && faults > 100 && cheaper > 100,
            "{good} good, {faults} faulty, {cheaper} cheaper"
        );
    }

    /// Of columns that differ in what does not matter, all but the first few are compared.
    #[test]
    fn what_is_alike_is_compared() {
        let mut bytes = Vec::new();
        for at in 0..10_000_u64 {
            // A number of growing length, a name of its own length, and a number of either of two lengths.
            bytes.push(0x16);
            varint(&mut bytes, at * at);
            bytes.push(0x18);
            let name = alloc::format!("column {at}");
            varint(&mut bytes, name.len() as u64);
            bytes.extend(name.bytes());
            bytes.push(0x15);
            varint(&mut bytes, if at % 7 == 0 { 3 } else { 300 });
            // And many more that are alike.
            (0..40).for_each(|other| bytes.extend([0x15, other]));
            bytes.push(0);
        }
        let end = bytes.len();
        bytes.extend([0; BLOCK_BYTES]);
        let (found, units) = skip(&bytes, 10_000, usize::MAX >> 1, u64::MAX);
        assert_eq!(found, Ok(Some(end)));
        let (_, units_slowly) = skip(&bytes, 10_000, 1, u64::MAX);
        assert!(units < 600_000 && units < units_slowly / 3, "{units} units, {units_slowly} slowly");
    }
}
