//! The Bloom filter of a chunk: collects the hashes of its values, and at the end builds a filter that is just large
//! enough.

use alloc::boxed::Box;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Price, Result, Segmented};
use marquetry_kernels::plain::cast as cast_slice;
use marquetry_kernels::xxh64::{self, Pieces};

use super::encoder::{Body, Slice};
use super::options::BloomOptions;
use crate::bloom::{BLOCK_BYTES, Filter, Folding, INSERT_PRICE, blocks_for, hash_bytes};
use crate::encoding::other_type;
use crate::encoding::view::view_bytes;
use crate::growing::SLICE_BYTES;

/// The price of hashing a value and keeping its hash.
const HASH_PRICE: Price = Price { kib: 130, kilovalue: 8 << 10 };
/// The cost of finding out how large a filter must be.
const SIZE_UNITS: u64 = 20_000;

/// Hashes that are worked on together.
const AT_ONCE: usize = 512;
/// Up to this many hashes are kept, whatever a filter would take: most chunks of wide tables have no more.
const KEPT_HASHES: usize = 4096;

/// Collects the hashes of a chunk's values.
///
/// Hashes are kept while they take no more memory than the largest filter that the chunk can need: so a column of few
/// values takes little, and its filter is created with the right size. Beyond that, they are inserted into that filter,
/// which is folded at the end.
#[derive(Debug)]
pub(super) struct BloomBuilder {
    options: BloomOptions,
    /// The maximum number of values of a chunk.
    values_max: u64,
    /// Blocks of the filter for that many, once computed.
    blocks_max: Option<u32>,
    stage: Stage,
    /// A value that is hashed in slices: the state, and how many bytes are done.
    long: Option<(Pieces, usize)>,
    /// The values of this part are hashed already.
    is_taken: bool,
}

#[derive(Debug)]
enum Stage {
    /// Hashes are kept.
    Hashes(Segmented<u64>),
    /// Hashes are being moved into a filter.
    Moving(Segmented<u64>, Box<Filter>),
    /// All hashes go into this filter.
    Filter(Box<Filter>),
    /// The filter is folded to the smallest size that suffices.
    Folding(Box<Filter>, Folding),
}

impl BloomBuilder {
    /// For chunks of at most `values_max` values.
    pub(super) fn new(options: BloomOptions, values_max: u64) -> BloomBuilder {
        let stage = Stage::Hashes(Segmented::new());
        BloomBuilder { options, values_max, blocks_max: None, stage, long: None, is_taken: false }
    }

    /// Bytes of memory that it takes.
    pub(super) fn held(&self) -> usize {
        let (hashes, filter) = match &self.stage {
            Stage::Hashes(hashes) => (hashes.len(), None),
            Stage::Moving(hashes, filter) => (hashes.len(), Some(filter)),
            Stage::Filter(filter) | Stage::Folding(filter, _) => (0, Some(filter)),
        };
        hashes * size_of::<u64>() + filter.map_or(0, |filter| filter.held())
    }

    /// Adds the values of a part. False if the budget is spent first: then pass the same values again. Once a part is
    /// added, passing it again has no effect until the [part ends](BloomBuilder::end_part).
    pub(super) fn take(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<bool> {
        if self.is_taken {
            return Ok(true);
        }
        if !self.settle(budget)? {
            return Ok(false);
        }
        let mut hashes = [0; AT_ONCE];
        match values {
            Slice::Int32(values) => self.fours(cast_slice(values), &mut hashes, budget)?,
            Slice::Float(values) => self.fours(cast_slice(values), &mut hashes, budget)?,
            Slice::Int64(values) => self.eights(cast_slice(values), &mut hashes, budget)?,
            Slice::Double(values) => self.eights(cast_slice(values), &mut hashes, budget)?,
            Slice::Fixed { width, values: 1, bytes } if width > SLICE_BYTES => {
                if !self.long(bytes, budget)? {
                    return Ok(false);
                }
            }
            Slice::Fixed { width, values, bytes } => {
                let value = |at: usize| Ok(xxh64::of_bytes(&bytes[at * width..(at + 1) * width]));
                self.each(values, value, &mut hashes)?;
                budget.charge(HASH_PRICE, bytes.len(), values);
            }
            Slice::ByteArray([view], buffers) => {
                let raw = view.to_le_bytes();
                if !self.long(view_bytes(&raw, buffers)?, budget)? {
                    return Ok(false);
                }
            }
            Slice::ByteArray(views, buffers) => {
                let mut bytes = 0;
                let value = |at: usize| {
                    let raw = views[at].to_le_bytes();
                    let value = view_bytes(&raw, buffers)?;
                    bytes += value.len();
                    Ok(xxh64::of_bytes(value))
                };
                self.each(views.len(), value, &mut hashes)?;
                budget.charge(HASH_PRICE, bytes, views.len());
            }
            Slice::Boolean { .. } | Slice::Indices(_) => return Err(other_type()),
        }
        self.is_taken = true;
        Ok(true)
    }

    /// The next values are a new part.
    pub(super) fn end_part(&mut self) {
        self.is_taken = false;
    }

    /// Returns the filter of all values and resets the builder; `None` if the budget is spent.
    pub(super) fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Option<Box<Filter>>> {
        loop {
            let stage = core::mem::replace(&mut self.stage, Stage::Hashes(Segmented::new()));
            self.stage = match stage {
                Stage::Hashes(hashes) => {
                    let values = u64_of(hashes.len());
                    let blocks = blocks_for(values, self.options.fpp, self.options.bytes_max / BLOCK_BYTES);
                    budget.charge_units(SIZE_UNITS);
                    Stage::Moving(hashes, Box::new(Filter::new(blocks)))
                }
                Stage::Moving(..) => {
                    self.stage = stage;
                    if !self.settle(budget)? {
                        return Ok(None);
                    }
                    continue;
                }
                Stage::Filter(filter) => Stage::Folding(filter, Folding::new(self.options.fpp)),
                Stage::Folding(mut filter, mut folding) => {
                    if folding.step(&mut filter, budget) {
                        return Ok(Some(filter));
                    }
                    Stage::Folding(filter, folding)
                }
            };
            if budget.is_spent() {
                return Ok(None);
            }
        }
    }

    fn fours(&mut self, values: &[u32], hashes: &mut [u64; AT_ONCE], budget: &mut Budget<'_>) -> Result<()> {
        for some in values.chunks(AT_ONCE) {
            let hashes = &mut hashes[..some.len()];
            xxh64::of_fours(some, hashes).map_err(|_| Error::internal("hashes of another number"))?;
            self.put(hashes)?;
        }
        budget.charge(HASH_PRICE, 0, values.len());
        Ok(())
    }

    fn eights(&mut self, values: &[u64], hashes: &mut [u64; AT_ONCE], budget: &mut Budget<'_>) -> Result<()> {
        for some in values.chunks(AT_ONCE) {
            let hashes = &mut hashes[..some.len()];
            xxh64::of_eights(some, hashes).map_err(|_| Error::internal("hashes of another number"))?;
            self.put(hashes)?;
        }
        budget.charge(HASH_PRICE, 0, values.len());
        Ok(())
    }

    fn each(
        &mut self,
        values: usize,
        mut hash: impl FnMut(usize) -> Result<u64>,
        hashes: &mut [u64; AT_ONCE],
    ) -> Result<()> {
        for start in (0..values).step_by(AT_ONCE) {
            let end = values.min(start + AT_ONCE);
            for (at, to) in (start..end).zip(hashes.iter_mut()) {
                *to = hash(at)?;
            }
            self.put(&hashes[..end - start])?;
        }
        Ok(())
    }

    /// Hashes a value that may be long, a slice at a time. False if the budget is spent before its end.
    fn long(&mut self, value: &[u8], budget: &mut Budget<'_>) -> Result<bool> {
        if value.len() <= SLICE_BYTES {
            budget.charge(HASH_PRICE, value.len(), 1);
            self.put(&[xxh64::of_bytes(value)])?;
            return Ok(true);
        }
        let (mut pieces, mut done) = self.long.take().unwrap_or_default();
        while done < value.len() {
            let end = value.len().min(done + SLICE_BYTES);
            pieces.add(&value[done..end]);
            budget.charge(HASH_PRICE, end - done, 1);
            done = end;
            if budget.is_spent() && done < value.len() {
                self.long = Some((pieces, done));
                return Ok(false);
            }
        }
        self.put(&[pieces.finish()])?;
        Ok(true)
    }

    /// Adds hashes to those so far.
    fn put(&mut self, more: &[u64]) -> Result<()> {
        match &mut self.stage {
            Stage::Hashes(hashes) => {
                hashes.extend(more.iter().copied());
                if hashes.len() > KEPT_HASHES {
                    self.move_beyond_largest();
                }
            }
            Stage::Moving(hashes, _) => hashes.extend(more.iter().copied()),
            Stage::Filter(filter) => filter.insert(more)?,
            Stage::Folding(..) => return Err(Error::internal("a value behind its chunk's end")),
        }
        Ok(())
    }

    /// Begins to move the hashes into the largest filter, if they take as much memory as it would.
    fn move_beyond_largest(&mut self) {
        let BloomOptions { fpp, bytes_max } = self.options;
        let values = self.values_max;
        let blocks = *self.blocks_max.get_or_insert_with(|| blocks_for(values, fpp, bytes_max / BLOCK_BYTES));
        if let Stage::Hashes(hashes) = &mut self.stage
            && hash_bytes(hashes.len()) >= u64::from(blocks) * u64::from(BLOCK_BYTES)
        {
            self.stage = Stage::Moving(core::mem::take(hashes), Box::new(Filter::new(blocks)));
        }
    }

    /// Continues moving hashes. False if the budget is spent first.
    fn settle(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let Stage::Moving(hashes, filter) = &mut self.stage else { return Ok(true) };
        if !filter.grow(budget)? {
            return Ok(false);
        }
        // From the end, so that their memory is released in slices, too.
        let mut some = [0; AT_ONCE];
        while !hashes.is_empty() {
            let mut count = 0;
            while count < AT_ONCE
                && let Some(hash) = hashes.pop()
            {
                some[count] = hash;
                count += 1;
            }
            filter.insert(&some[..count])?;
            budget.charge(INSERT_PRICE, 0, count);
            if budget.is_spent() {
                break;
            }
        }
        if !hashes.is_empty() {
            return Ok(false);
        }
        let filter = core::mem::take(filter);
        self.stage = Stage::Filter(filter);
        Ok(!budget.is_spent())
    }
}

/// Hashes the entries of a dictionary from its page, where they are PLAIN-encoded.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The position in the page.
    piece: usize,
    at: usize,
    open: Open,
}

/// The state of an entry that is not all in one slice.
#[derive(Debug, Default)]
enum Open {
    #[default]
    No,
    /// Its length: the bytes so far.
    Length([u8; 4], usize),
    /// Its value: the state, and how many bytes are still to come.
    Value(Pieces, usize),
}

impl Entries {
    /// Continues hashing. `width` is the length of each of the `entries`, or `None` if each is preceded by its length.
    /// False if the budget is spent before all are hashed.
    pub(super) fn step(
        &mut self,
        page: &Body,
        entries: usize,
        width: Option<usize>,
        to: &mut BloomBuilder,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        if width == Some(0) {
            // They take no bytes, and are all equal.
            to.put(&[xxh64::of_bytes(&[])][..entries.min(1)])?;
            return Ok(true);
        }
        loop {
            if !to.settle(budget)? {
                return Ok(false);
            }
            let Some(piece) = page.pieces().get(self.piece) else { return Ok(true) };
            let slice = &piece[self.at..piece.len().min(self.at + SLICE_BYTES)];
            let values = self.slice(slice, width, to)?;
            budget.charge(HASH_PRICE, slice.len(), values);
            self.at += slice.len();
            if self.at == piece.len() {
                (self.piece, self.at) = (self.piece + 1, 0);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Hashes a slice and returns how many entries began in it.
    fn slice(&mut self, mut slice: &[u8], width: Option<usize>, to: &mut BloomBuilder) -> Result<usize> {
        let mut hashes = [0; AT_ONCE];
        let (mut count, mut values) = (0, 0);
        while !slice.is_empty() {
            let whole = match &mut self.open {
                Open::No => {
                    values += 1;
                    let length = match (width, slice.split_first_chunk()) {
                        (Some(width), _) => Some(width),
                        (None, Some((length, rest))) => {
                            slice = rest;
                            Some(length_of(*length)?)
                        }
                        (None, None) => None,
                    };
                    match length {
                        None => {
                            self.open = Open::Length([0; 4], 0);
                            None
                        }
                        Some(length) => match slice.split_at_checked(length) {
                            Some((value, rest)) => {
                                slice = rest;
                                Some(xxh64::of_bytes(value))
                            }
                            None => {
                                self.open = Open::Value(Pieces::default(), length);
                                None
                            }
                        },
                    }
                }
                Open::Length(bytes, there) => {
                    let (now, rest) = slice.split_at(slice.len().min(bytes.len() - *there));
                    bytes[*there..*there + now.len()].copy_from_slice(now);
                    *there += now.len();
                    slice = rest;
                    if *there == bytes.len() {
                        self.open = Open::Value(Pieces::default(), length_of(*bytes)?);
                    }
                    None
                }
                Open::Value(pieces, left) => {
                    let (now, rest) = slice.split_at(slice.len().min(*left));
                    pieces.add(now);
                    *left -= now.len();
                    slice = rest;
                    (*left == 0).then(|| pieces.finish())
                }
            };
            if let Some(hash) = whole {
                self.open = Open::No;
                hashes[count] = hash;
                count += 1;
            }
            if count == AT_ONCE {
                to.put(&hashes)?;
                count = 0;
            }
        }
        // An empty value whose length was cut has no byte to end it.
        if let Open::Value(pieces, 0) = &self.open {
            to.put(&[pieces.finish()])?;
            self.open = Open::No;
        }
        to.put(&hashes[..count])?;
        Ok(values)
    }
}

fn length_of(bytes: [u8; 4]) -> Result<usize> {
    usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| Error::internal("a length beyond memory"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::hash;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;
    use marquetry_base::Bytes;

    const OPTIONS: BloomOptions = BloomOptions { fpp: 0.01, bytes_max: 1 << 20 };

    fn finish(builder: &mut BloomBuilder, units: u64) -> Filter {
        loop {
            let mut budget = Budget::new(units);
            if let Some(filter) = builder.finish(&mut budget).unwrap() {
                return *filter;
            }
            assert!(units > 1 || budget.spent() < 50_000, "{} units at once", budget.spent());
        }
    }

    fn take(builder: &mut BloomBuilder, values: Slice<'_>, units: u64) {
        loop {
            let mut budget = Budget::new(units);
            let is_taken = builder.take(values, &mut budget).unwrap();
            assert!(units > 1 || budget.spent() < 50_000, "{} units at once", budget.spent());
            if is_taken {
                break;
            }
        }
        builder.end_part();
    }

    fn of_hashes(hashes: &[u64]) -> Filter {
        let mut builder = BloomBuilder::new(OPTIONS, u64::MAX);
        hashes.chunks(1000).for_each(|some| builder.put(some).unwrap());
        finish(&mut builder, u64::MAX >> 1)
    }

    /// The filter is the same, whether hashes were kept to the end or inserted into the largest filter, which is then
    /// folded.
    #[test]
    fn it_does_not_matter_how_it_was_collected() {
        let numbers: Vec<i64> = (0..60_000).collect();
        let mut filters = Vec::new();
        for values_max in [60_000, u64::MAX] {
            for units in [1, 1_000_000] {
                let mut builder = BloomBuilder::new(OPTIONS, values_max);
                numbers.chunks(1000).for_each(|some| take(&mut builder, Slice::Int64(some), units));
                assert_eq!(matches!(builder.stage, Stage::Filter(_)), values_max == 60_000);
                // A filter for 60,000 values, which takes no more than their hashes.
                assert!(builder.held() <= 480_000, "{} bytes", builder.held());
                filters.push(finish(&mut builder, units));
                assert_eq!(builder.held(), 0);
            }
        }
        assert_eq!(filters[0].bytes(), 128 << 10);
        assert!(filters.iter().all(|filter| *filter == filters[0]));
    }

    #[test]
    fn repeated_values_make_it_no_larger() {
        let numbers: Vec<i32> = (0..100_000).map(|at| at % 100).collect();
        let mut builder = BloomBuilder::new(OPTIONS, u64::MAX);
        numbers.chunks(1000).for_each(|some| take(&mut builder, Slice::Int32(some), 1));
        let hashes: Vec<u64> = (0..100i32).map(|value| hash(&value.to_le_bytes())).collect();
        assert_eq!(finish(&mut builder, 1), of_hashes(&hashes));
    }

    #[test]
    fn nothing_makes_a_filter_of_nothing() {
        let filter = finish(&mut BloomBuilder::new(OPTIONS, 10), 1);
        assert_eq!(filter.bytes(), 32);
        assert_eq!(filter.into_pieces().next().as_deref(), Some(&[0; 32][..]));
    }

    fn texts() -> Vec<String> {
        let mut texts: Vec<String> = (0..3000).map(|at| format!("{at:0$}", at % 90)).collect();
        texts.extend(["".into(), "x".repeat(SLICE_BYTES), "y".repeat(5 * SLICE_BYTES + 1)]);
        texts
    }

    #[test]
    fn strings_short_and_long() {
        let texts = texts();
        let arrays = crate::batch::ByteArrays::from_lengths(
            Bytes::from(texts.concat()),
            texts.iter().map(|text| text.len()),
        )
        .unwrap();
        let mut builder = BloomBuilder::new(OPTIONS, u64::MAX);
        // A long value is a part of its own.
        let parts = [0..1000, 1000..3000, 3000..3001, 3001..3002, 3002..3003];
        for part in parts {
            take(&mut builder, Slice::ByteArray(&arrays.views()[part], arrays.buffers()), 1);
        }
        let hashes: Vec<u64> = texts.iter().map(|text| hash(text.as_bytes())).collect();
        assert_eq!(finish(&mut builder, 1), of_hashes(&hashes));
    }

    #[test]
    fn entries_of_a_dictionary_wherever_they_are_cut() {
        let texts = texts();
        let plain: Vec<u8> = texts
            .iter()
            .flat_map(|text| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat())
            .collect();
        let hashes: Vec<u64> = texts.iter().map(|text| hash(text.as_bytes())).collect();
        let fixed: Vec<u64> = plain.chunks_exact(5).map(hash).collect();
        for piece_bytes in [1, 2, 3, 7, 1000, 70_000, plain.len()] {
            let mut page = Body::default();
            plain.chunks(piece_bytes).for_each(|piece| page.push(Bytes::copy_from_slice(piece)));
            let of = |width: Option<usize>, page: &Body| {
                let (mut entries, mut builder) = (Entries::default(), BloomBuilder::new(OPTIONS, u64::MAX));
                while !entries.step(page, 1, width, &mut builder, &mut Budget::new(1)).unwrap() {}
                finish(&mut builder, u64::MAX >> 1)
            };
            assert_eq!(of(None, &page), of_hashes(&hashes), "{piece_bytes}");
            let mut page = Body::default();
            let whole = plain.len() / 5 * 5;
            plain[..whole].chunks(piece_bytes).for_each(|piece| page.push(Bytes::copy_from_slice(piece)));
            assert_eq!(of(Some(5), &page), of_hashes(&fixed), "{piece_bytes}");
        }
        // The last is empty, and its length is cut.
        let mut page = Body::default();
        [&[0u8, 0][..], &[0, 0]].iter().for_each(|piece| page.push(Bytes::from(piece.to_vec())));
        let (mut entries, mut builder) = (Entries::default(), BloomBuilder::new(OPTIONS, u64::MAX));
        while !entries.step(&page, 1, None, &mut builder, &mut Budget::new(1)).unwrap() {}
        assert_eq!(finish(&mut builder, 1), of_hashes(&[hash(b"")]));
        assert!(builder.take(Slice::Indices(&[1]), &mut Budget::default()).is_err());
    }
}
