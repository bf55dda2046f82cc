//! Small components, read from start to end, an element at a time, as their bytes arrive.

use alloc::format;
use alloc::string::{String, ToString};
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{
    Budget, Bytes, Demand, Error, Failed, Input, Limit, Limits, Machine, Object, Price, Release, Result,
    Step, check_supply, release_all,
};
use marquetry_kernels::crc32;

use super::vint;

/// Bytes that are asked for at a time.
const READ_BYTES: u64 = 256 << 10;
/// Bytes that are looked at together, and asked for first: most elements are much shorter.
const WINDOW_BYTES: usize = 4 << 10;
/// Bytes that are held of a component which is read here and there, before all are released.
const HELD_BYTES_MAX: u64 = 512 << 10;
/// Bytes whose checksum is computed in one go.
const CRC_SLICE_BYTES: u64 = 64 << 10;

/// The price of an element: of its bytes, as they are copied and read, and of itself.
pub(super) const ELEMENT_PRICE: Price = Price { kib: 2 << 10, kilovalue: 100 << 10 };
/// The price of a checksum's bytes.
pub(super) const CRC_PRICE: Price = Price::per_kib(200);

/// Reads a component of an SSTable from its start to its end: one product.
///
/// Asks for the object's length, then for its bytes, in their order.
#[derive(Debug)]
pub struct ComponentReader<P> {
    elements: Elements,
    parser: P,
    is_done: bool,
    failed: Failed,
}

/// What is particular to a component: what its elements are, and what they come to.
pub trait Parser: Release {
    /// What the component holds.
    type Product;

    /// Reads one element, or does another thing of that size. `Some` after the last.
    fn next(
        &mut self,
        elements: &mut Elements,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Option<Self::Product>>>;
}

impl<P> ComponentReader<P> {
    /// A reader of the component that `elements` are of.
    pub(super) fn of(elements: Elements, parser: P) -> ComponentReader<P> {
        ComponentReader { elements, parser, is_done: false, failed: Failed::default() }
    }
}

impl<P: Parser> ComponentReader<P> {
    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<P::Product>> {
        if let Going::Need(demand) = self.elements.length() {
            return Ok(Step::Need(demand));
        }
        while !self.is_done {
            match self.parser.next(&mut self.elements, budget)? {
                Going::Done(Some(product)) => {
                    self.is_done = true;
                    return Ok(Step::Ready(product));
                }
                Going::Done(None) if budget.is_spent() => return Ok(Step::Yield),
                Going::Done(None) => {}
                Going::Need(demand) => return Ok(Step::Need(demand)),
            }
        }
        Ok(Step::Done)
    }
}

impl<P: Parser> Machine for ComponentReader<P> {
    type Product = P::Product;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<P::Product>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        match self.is_done {
            true => self.elements.check_object(object),
            false => self.elements.supply(object, &range, bytes),
        }
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        if let Err(error) = self.elements.supply_length(object, length)? {
            self.failed.set(error);
        }
        Ok(())
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if self.elements.check_object(object).is_ok() {
            self.failed.set(reason);
        }
    }
}

/// For a reader that is no longer wanted, or has failed.
impl<P: Parser> Release for ComponentReader<P> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        self.parser.release(budget) && self.elements.release(budget)
    }
}

/// The bytes of a component, and how far it was read.
#[derive(Debug)]
pub struct Elements {
    object: Object,
    component: &'static str,
    /// What the component's length is checked against, and what the length of an element is.
    limit: Limit,
    bytes_max: u64,
    element_bytes_max: u64,
    length: Option<u64>,
    input: Input,
    /// Where the next element begins, and where the last one must end.
    at: u64,
    end: u64,
    /// Bytes from `at` on.
    window: Bytes,
    /// The component is read here and there, in whole blocks of so many bytes; or else from start to end.
    block_bytes: Option<u64>,
    /// Blocks that are being released.
    old: Option<Input>,
}

/// What reading an element came to.
pub enum Going<T> {
    Done(T),
    Need(Demand),
}

impl<T> Going<T> {
    pub(super) fn map<U>(self, turn: impl FnOnce(T) -> U) -> Going<U> {
        match self {
            Going::Done(done) => Going::Done(turn(done)),
            Going::Need(demand) => Going::Need(demand),
        }
    }
}

/// Why an element cannot be read.
pub(super) enum Fault {
    /// Its bytes end too early.
    Short,
    /// It is wrong.
    Bad(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Bad(error)
    }
}

impl Elements {
    /// The component that `object` is, of at most so many bytes. Its elements may have as many as a structure.
    pub(super) fn new(
        object: Object,
        component: &'static str,
        (limit, bytes_max): (Limit, u64),
        limits: &Limits,
    ) -> Elements {
        Elements {
            object,
            component,
            limit,
            bytes_max,
            element_bytes_max: limits.structure_bytes,
            length: None,
            input: Input::new(),
            at: 0,
            end: 0,
            window: Bytes::new(),
            block_bytes: None,
            old: None,
        }
    }

    /// Elements that are read here and there. The component may be of any size: some blocks of it are held.
    pub(super) fn in_blocks(
        object: Object,
        component: &'static str,
        block_bytes: u64,
        limits: &Limits,
    ) -> Elements {
        let elements = Elements::new(object, component, (Limit::TotalBytes, u64::MAX), limits);
        Elements { block_bytes: Some(block_bytes), ..elements }
    }

    /// The component's length, once it is known; what to ask for before.
    pub(super) fn length(&mut self) -> Going<u64> {
        match self.length {
            Some(length) => Going::Done(length),
            None => Going::Need(Demand::length(self.object)),
        }
    }

    /// The component's length, which is known since reading began.
    pub(super) fn component_bytes(&self) -> u64 {
        self.length.unwrap_or(0)
    }

    /// Where the next element begins.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes before the end.
    pub(super) fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Goes on with the elements in this range of the component.
    pub(super) fn seek(&mut self, range: Range<u64>) {
        (self.at, self.end, self.window) = (range.start, range.end, Bytes::new());
    }

    /// Begins to release the blocks that are held, if they are too many: a slice with each element.
    fn drop_blocks(&mut self) {
        let are_too_many = self.block_bytes.is_some() && self.input.held() > HELD_BYTES_MAX;
        if are_too_many && self.old.is_none() {
            self.old = Some(core::mem::take(&mut self.input));
        }
    }

    /// Goes on after so many bytes.
    pub(super) fn skip(&mut self, bytes: u64) {
        let end = self.end;
        match usize_of(bytes).filter(|bytes| *bytes <= self.window.len()) {
            Some(in_window) => {
                self.window = self.window.slice(in_window..);
                self.at += u64_of(in_window);
            }
            None => self.seek(self.at.saturating_add(bytes).min(end)..end),
        }
    }

    /// Reads one element with `read`, which may be called several times.
    pub(super) fn next<T>(
        &mut self,
        budget: &mut Budget<'_>,
        mut read: impl FnMut(&mut Cursor<'_>) -> Result<T, Fault>,
    ) -> Result<Going<T>> {
        if self.old.as_mut().is_some_and(|old| Release::release(old, budget)) {
            self.old = None;
        }
        let mut tried = self.window.len();
        loop {
            let mut cursor = Cursor::new(&self.window);
            let read = read(&mut cursor);
            let taken = cursor.at;
            match read {
                Ok(element) => {
                    budget.charge(ELEMENT_PRICE, taken, 1);
                    self.window = self.window.slice(taken..);
                    self.at += u64_of(taken);
                    return Ok(Going::Done(element));
                }
                Err(Fault::Bad(error)) => return Err(self.fault(error.at_offset(self.at + u64_of(taken)))),
                Err(Fault::Short) => {}
            }
            budget.charge(ELEMENT_PRICE, tried, 1);
            let left = self.end - self.at;
            if u64_of(self.window.len()) >= left {
                return Err(self.corrupt("it ends inside of an element", self.end));
            }
            Limit::StructureBytes
                .check(self.element_bytes_max, u64_of(self.window.len()))
                .map_err(|error| self.fault(error.at_offset(self.at)))?;
            tried = (2 * tried).max(WINDOW_BYTES);
            let range = self.at..self.at + u64_of(tried).min(left);
            match self.input.contiguous(range.clone())? {
                Some(window) => self.window = window,
                None => {
                    // Only here, where something else is wanted than what was just given: that would be asked for again.
                    self.drop_blocks();
                    return Ok(Going::Need(self.demand(self.asked(range))));
                }
            }
        }
    }

    /// The bytes that are asked for where these are needed.
    fn asked(&self, range: Range<u64>) -> Range<u64> {
        match (self.block_bytes, self.length) {
            (Some(block), Some(length)) => {
                let end = range.end.div_ceil(block).saturating_mul(block);
                range.start / block * block..end.min(length)
            }
            _ => range.start..range.end.max(range.start.saturating_add(READ_BYTES).min(self.end)),
        }
    }

    /// Adds a slice of `range` to a checksum, and moves the range's start behind it.
    pub(super) fn checksum(
        &mut self,
        budget: &mut Budget<'_>,
        range: &mut Range<u64>,
        sum: &mut u32,
    ) -> Option<Demand> {
        let slice = self.input.segment(range.start, (range.end - range.start).min(CRC_SLICE_BYTES));
        if slice.is_empty() {
            let asked = range.start..range.end.min(range.start.saturating_add(READ_BYTES));
            return (!asked.is_empty()).then(|| self.demand(asked));
        }
        budget.charge(CRC_PRICE, slice.len(), 1);
        *sum = crc32(*sum, &slice);
        range.start += u64_of(slice.len());
        None
    }

    /// Releases the bytes before `at`.
    pub(super) fn release_before(&mut self, at: u64) {
        self.input.release(0..at);
    }

    /// An error at a byte of the component.
    pub(super) fn corrupt(&self, message: &'static str, offset: u64) -> Error {
        self.fault(Error::corrupt(message).at_offset(offset))
    }

    /// An error of the component.
    pub(super) fn fault(&self, error: Error) -> Error {
        error.at(|place| place.object = Some(self.component.to_string()))
    }

    fn demand(&self, range: Range<u64>) -> Demand {
        match self.input.missing(range) {
            Some(missing) => Demand::now(self.object, missing),
            None => Demand::default(),
        }
    }

    /// See [`Machine::supply`](marquetry_base::Machine::supply).
    pub(super) fn supply(&mut self, object: Object, range: &Range<u64>, bytes: Bytes) -> Result<()> {
        self.check_object(object)?;
        check_supply(range, &bytes, self.length)?;
        self.input.supply(range.start, bytes)
    }

    /// See [`Machine::supply_length`](marquetry_base::Machine::supply_length). The inner result is the machine's failure.
    pub(super) fn supply_length(&mut self, object: Object, length: u64) -> Result<Result<()>> {
        self.check_object(object)?;
        if self.length.is_some_and(|known| known != length) {
            return Err(Error::misuse("an object whose length changes"));
        }
        if let Err(error) = self.limit.check(self.bytes_max, length) {
            return Ok(Err(self.fault(error)));
        }
        (self.length, self.end) = (Some(length), length);
        Ok(Ok(()))
    }

    pub(super) fn check_object(&self, object: Object) -> Result<()> {
        if object == self.object {
            Ok(())
        } else {
            Err(Error::misuse("an object that is not this machine's"))
        }
    }
}

impl Release for Elements {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.window = Bytes::new();
        release_all(&mut [&mut self.old, &mut self.input], budget)
    }
}

/// A reader of big-endian values.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// What is before here was used, and is not read again.
    kept: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0, kept: 0 }
    }

    /// How many bytes it has read.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes back to a place, or on.
    pub(super) fn set(&mut self, at: usize) {
        self.at = at;
    }

    /// Notes that what was read is used.
    #[inline]
    pub(super) fn keep(&mut self) {
        self.kept = self.at;
    }

    /// Where that was noted last.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Bytes after it.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Bytes that it has read.
    #[inline]
    pub(super) fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }

    #[inline]
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..length)).ok_or(Fault::Short)?;
        self.at += length;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Fault::Short)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_be_bytes)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Fault> {
        self.array().map(i64::from_be_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, Fault> {
        self.array().map(f64::from_be_bytes)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Fault> {
        self.u8().map(|byte| byte != 0)
    }

    pub(super) fn uuid(&mut self) -> Result<[u8; 16], Fault> {
        self.array()
    }

    /// A number of things, which Cassandra stores as signed.
    pub(super) fn count(&mut self) -> Result<u32, Fault> {
        let count = self.u32()?;
        if i32::try_from(count).is_err() {
            return Err(Fault::Bad(Error::corrupt("a negative number of things")));
        }
        Ok(count)
    }

    #[inline]
    pub(super) fn vint(&mut self) -> Result<u64, Fault> {
        let (value, length) =
            vint::unsigned(self.bytes.get(self.at..).unwrap_or_default()).ok_or(Fault::Short)?;
        self.at += length;
        Ok(value)
    }

    /// Bytes after their length, an unsigned vint.
    pub(super) fn vint_bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.vint()?;
        self.long(length)
    }

    /// Bytes after their length of 16 bits.
    #[inline]
    pub(super) fn short_bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }

    /// Bytes of a length that may be more than there can be.
    #[inline]
    pub(super) fn long(&mut self, length: u64) -> Result<&'a [u8], Fault> {
        let length = usize_of(length).filter(|length| i32::try_from(*length).is_ok());
        let length = length.ok_or_else(|| Fault::Bad(Error::corrupt("a length that no value has")))?;
        self.take(length)
    }

    /// Text after its length of 16 bits, as Java writes it (which is UTF-8, but for a few letters that no name has).
    pub(super) fn short_text(&mut self) -> Result<&'a str, Fault> {
        text(self.short_bytes()?)
    }
}

/// Bytes that must be text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Fault> {
    core::str::from_utf8(bytes).map_err(|_| Fault::Bad(Error::corrupt("a name that is not UTF-8")))
}

/// Bytes as a name: text if it is, or else in hexadecimal digits.
pub(super) fn name(bytes: &[u8]) -> String {
    match core::str::from_utf8(bytes) {
        Ok(name) => name.to_string(),
        Err(_) => bytes.iter().fold(String::from("0x"), |name, byte| format!("{name}{byte:02x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the element at each place, and says how often bytes were asked for. Nothing is asked for twice in a row.
    fn read(elements: &mut Elements, bytes: &Bytes, places: impl Iterator<Item = usize>) -> usize {
        let (mut asked, mut before) = (0, None);
        for at in places {
            elements.seek(u64_of(at)..u64_of(bytes.len()));
            loop {
                let read = elements.next(&mut Budget::unlimited(), |cursor| Ok(cursor.take(1)?[0]));
                let demand = match read.unwrap() {
                    Going::Done(element) => {
                        assert_eq!(element, bytes[at]);
                        break;
                    }
                    Going::Need(demand) => demand,
                };
                asked += 1;
                for want in &demand.wants {
                    let marquetry_base::Want::Range(object, range, _) = want else { panic!("{want:?}") };
                    let [start, end] = [range.start, range.end].map(|at| usize_of(at).unwrap());
                    elements.supply(*object, range, bytes.slice(start..end)).unwrap();
                }
                assert_ne!(before.as_ref(), Some(&demand), "asked for again at {at}");
                before = Some(demand);
            }
        }
        asked
    }

    #[test]
    fn blocks_that_were_just_asked_for_are_not_dropped() {
        let block = WINDOW_BYTES;
        let blocks = usize_of(HELD_BYTES_MAX).unwrap() / block;
        let bytes = Bytes::from(
            (0..4 * blocks * block)
                .map(|at| marquetry_base::cast::low_u8(u64_of(at / 7 % 251)))
                .collect::<alloc::vec::Vec<_>>(),
        );
        let object = Object(3);
        let mut elements = Elements::in_blocks(object, "Index.db", u64_of(block), &Limits::DEFAULT);
        elements.supply_length(object, u64_of(bytes.len())).unwrap().unwrap();
        // As many as are held, and then one that is far away, several times.
        for _ in 0..3 {
            assert!(read(&mut elements, &bytes, (0..blocks).map(|number| number * block)) <= blocks);
            read(&mut elements, &bytes, [3 * blocks * block, 0, 3 * blocks * block].into_iter());
            assert!(elements.input.held() <= HELD_BYTES_MAX + 2 * u64_of(block));
        }
        read(&mut elements, &bytes, (0..4 * blocks).map(|number| number * block + 100));
        read(&mut elements, &bytes, (0..4 * blocks).rev().map(|number| number * block + 100));
        assert!(elements.input.held() <= HELD_BYTES_MAX + 2 * u64_of(block));
    }
}
