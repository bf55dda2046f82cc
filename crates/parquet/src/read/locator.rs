//! The metadata of some columns, found by the footer locator: `docs/locator.md` describes it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Bytes, Input, Limits, Release, Result, Segmented, release_all};

use crate::format::locator::{
    Announcement, BLOCK_BYTES, BLOCK_SLOTS, PAYLOAD_BYTES, PathHash, SLOT_BYTES, Slot, holds,
};
use crate::format::{
    Chooser, ColumnChunk, FileMetaData, FooterColumns, FooterParser, Keep, RowGroup, keep_sorting_columns,
};
use crate::going::Going;
use crate::schema::{Element, Leaf};
use crate::thrift::{Kind, Reader, Thrift, Writer};

/// What checking a block costs, what looking at a slot, a field or a chunk does, and putting a row group together.
const BLOCK_UNITS: u64 = 1500;
const SLOT_UNITS: u64 = 60;
const FIELD_UNITS: u64 = 500;
const CHUNK_UNITS: u64 = 250;
const GROUP_UNITS: u64 = 100;
/// What it costs to look at what a chunk's metadata says.
const CHECK_UNITS: u64 = 10;
/// Slots before the end of a block from which on the next block is asked for too: a search rarely goes further.
const NEAR_SLOTS: u64 = 32;
/// Slots that a search looks at, at most: a table that is half empty needs few.
const SEARCH_SLOTS_MAX: u64 = 1024;
/// Paths that are looked up, at most, bytes of records in one place, and bytes of all: for more, the footer is read.
const NAMES_MAX: usize = 1024;
const PLACE_BYTES_MAX: u64 = 4 << 20;
const BYTES_MAX: u64 = 64 << 20;
/// Memory of a leaf's record, about.
const LEAF_BYTES: u64 = 256;
/// Blocks that are asked for at a time.
const BLOCKS_AT_ONCE: usize = 1024;
/// A locator is worth while only if it takes this part of the footer at most.
const WORTH_PART: u64 = 2;

/// Finds columns by a locator. Whatever is wrong with it, or missing, is no error: the footer itself is read then.
#[derive(Debug)]
pub(super) struct LocatorReader {
    found: Announcement,
    limits: Limits,
    stage: Stage,
    /// The hashes of all paths, and of the groups that they lead into.
    hashes: Vec<Sought>,
    /// Blocks that are needed and not yet checked.
    blocks: BTreeSet<u64>,
    block_bytes: u64,
    /// The payload of those that are.
    payload: Input,
    /// Where records are.
    places: Vec<Range<u64>>,
    place_bytes: u64,
    leaves: BTreeMap<u32, Found>,
    chooser: Chooser,
    fields: Segmented<Field>,
    /// The groups around the last of them, and itself.
    open: Vec<usize>,
    kept_fields: usize,
    kept_of_root: u32,
    kept: Segmented<usize>,
    kept_types: Segmented<i32>,
    root: Vec<u8>,
    /// The footer without its columns, and of these columns alone.
    parser: Option<FooterParser>,
    head: Option<FileMetaData>,
    columns: Option<FileMetaData>,
    /// What the second is read from.
    made: Input,
    made_bytes: u64,
    writer: Writer,
}

/// The hash of a path that is wanted, or of a group on the way there: which is of interest if it cannot be cut.
#[derive(Debug, Clone, Copy)]
struct Sought {
    hash: PathHash,
    is_group: bool,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Names are looked up, from this one on.
    Slots(usize),
    /// The blocks of places are asked for, of this one on.
    Places(usize),
    /// Records are looked at: those of this place on, from this byte on.
    Records { place: usize, at: u64 },
    /// The chunks of a record are counted.
    Chunks { place: usize, leaf: u32, group: u32, at: u64 },
    /// Fields are chosen, of this leaf on.
    Choose(u32),
    /// The footer without its columns is read.
    Head,
    /// The schema is put together, from this field on.
    Schema(usize),
    /// Row groups are put together, from this one on, and this leaf of it.
    Groups { group: u32, leaf: usize },
    /// What was put together is read.
    Columns,
    /// The columns are put into the row groups, from this one on.
    Join(usize),
    /// What is left is released.
    End,
}

/// A leaf's record.
#[derive(Debug)]
struct Found {
    /// The elements that lead to it, with their numbers.
    chain: Vec<(u32, Bytes)>,
    order: i16,
    /// Where the next chunk is.
    at: u64,
}

/// A field that is kept.
#[derive(Debug)]
struct Field {
    number: u32,
    element: Bytes,
    keep: Keep,
    /// The children that it has, of a group, and those that are kept.
    children: Option<u32>,
    kept: u32,
}

/// It cannot be found so.
struct Doubt;

type Sure<T> = core::result::Result<T, Doubt>;

impl Release for LocatorReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let parts: &mut [&mut dyn Release] = &mut [
            &mut self.parser,
            &mut self.head,
            &mut self.columns,
            &mut self.payload,
            &mut self.made,
            &mut self.leaves,
            &mut self.fields,
            &mut self.kept,
        ];
        release_all(parts, budget)
    }
}

impl Release for Found {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.chain.release(budget)
    }
}

impl Release for Field {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.element.release(budget)
    }
}

impl LocatorReader {
    /// Of a file with this locator. `None` if the footer itself is no more to read.
    pub(super) fn new(found: Announcement, limits: Limits, columns: &FooterColumns) -> Option<LocatorReader> {
        if columns.len() > NAMES_MAX {
            return None;
        }
        let mut hashes: Vec<Sought> = Vec::new();
        for path in columns.folded() {
            let mut hash = PathHash::ROOT;
            for (at, name) in path.split(|byte| *byte == b'.').enumerate() {
                if at > 0 {
                    hash = hash.with(b".");
                }
                hash = hash.with(name);
                hashes.push(Sought { hash, is_group: true });
            }
            if let Some(last) = hashes.last_mut() {
                last.is_group = false;
            }
        }
        // Of a field that is wanted and has others in it that are, all is wanted.
        hashes.sort_unstable_by_key(|sought| (sought.hash.place(), sought.is_group));
        hashes.dedup_by_key(|sought| sought.hash.place());
        let mut reader = LocatorReader {
            found,
            limits,
            stage: Stage::Slots(0),
            hashes: Vec::new(),
            blocks: BTreeSet::new(),
            block_bytes: 0,
            payload: Input::new(),
            places: Vec::new(),
            place_bytes: 0,
            leaves: BTreeMap::new(),
            chooser: Chooser::new(columns.clone()),
            fields: Segmented::new(),
            open: Vec::new(),
            kept_fields: 0,
            kept_of_root: 0,
            kept: Segmented::new(),
            kept_types: Segmented::new(),
            root: Vec::new(),
            parser: None,
            head: None,
            columns: None,
            made: Input::new(),
            made_bytes: 0,
            writer: Writer::new(),
        };
        for Sought { hash, .. } in &hashes {
            let slot = Announcement::first_slot(found.slots, hash.place());
            reader.want_slot(slot).ok()?;
            if slot % BLOCK_SLOTS >= BLOCK_SLOTS - NEAR_SLOTS {
                reader.want_slot((slot + NEAR_SLOTS) % found.slots).ok()?;
            }
        }
        reader.want(found.head_at..found.head_at + found.head_bytes).ok()?;
        reader.hashes = hashes;
        Some(reader)
    }

    /// Continues; `None` once it cannot be found so.
    pub(super) fn step(
        &mut self,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Going<Option<FileMetaData>, Vec<Range<u64>>> {
        loop {
            let is_asking = matches!(self.stage, Stage::Places(_));
            let checked = if is_asking { Ok(Going::Done(())) } else { self.check_blocks(input, budget) };
            match checked {
                Ok(Going::Done(())) => {}
                Ok(Going::Need(missing)) => return Going::Need(missing),
                Ok(Going::Yield) => return Going::Yield,
                Err(Doubt) => return Going::Done(None),
            }
            match self.work(budget) {
                Ok(None) => {}
                Ok(Some(metadata)) => return Going::Done(Some(metadata)),
                Err(Doubt) => return Going::Done(None),
            }
            if budget.is_spent() {
                return Going::Yield;
            }
        }
    }

    /// Asks for the blocks of a range of the payload.
    fn want(&mut self, range: Range<u64>) -> Sure<()> {
        let payload = u64_of(PAYLOAD_BYTES);
        if range.end > self.found.body_bytes / u64_of(BLOCK_BYTES) * payload
            || range.start > range.end
            || range.end - range.start > PLACE_BYTES_MAX
        {
            return Err(Doubt);
        }
        for block in range.start / payload..range.end.div_ceil(payload) {
            if self.payload.missing(block * payload..(block + 1) * payload).is_some()
                && self.blocks.insert(block)
            {
                self.block_bytes += u64_of(BLOCK_BYTES);
                if self.block_bytes > BYTES_MAX.min(u64::from(self.found.footer_bytes) / WORTH_PART) {
                    return Err(Doubt);
                }
            }
        }
        Ok(())
    }

    fn slot_at(&self, slot: u64) -> Range<u64> {
        let start = self.found.slots_at + slot * u64_of(SLOT_BYTES);
        start..start + u64_of(SLOT_BYTES)
    }

    fn want_slot(&mut self, slot: u64) -> Sure<()> {
        self.want(self.slot_at(slot))
    }

    /// Checks the blocks that have arrived, until all that are needed have.
    fn check_blocks(
        &mut self,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Sure<Going<(), Vec<Range<u64>>>> {
        while let Some(&number) = self.blocks.first() {
            let range = self.found.block(number);
            let Some(block) = input.contiguous(range.clone()).map_err(|_| Doubt)? else {
                budget.charge_units(SLOT_UNITS * u64_of(self.blocks.len().min(BLOCKS_AT_ONCE)));
                return Ok(Going::Need(self.missing(input)));
            };
            budget.charge_units(BLOCK_UNITS);
            if !holds(self.found.body_start, number, &block) {
                return Err(Doubt);
            }
            let payload = block.slice(..PAYLOAD_BYTES);
            self.payload.supply(number * u64_of(PAYLOAD_BYTES), payload).map_err(|_| Doubt)?;
            input.release(range);
            self.blocks.pop_first();
            if budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
        Ok(Going::Done(()))
    }

    /// What is missing of the blocks, as few ranges.
    fn missing(&self, input: &Input) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for number in self.blocks.iter().take(BLOCKS_AT_ONCE) {
            let Some(missing) = input.missing(self.found.block(*number)) else { continue };
            match ranges.last_mut() {
                Some(last) if last.end == missing.start => last.end = missing.end,
                _ => ranges.push(missing),
            }
        }
        ranges
    }

    /// A part of the payload, in one piece.
    fn part(&self, at: u64, bytes: u64) -> Sure<Bytes> {
        let end = at.checked_add(bytes).ok_or(Doubt)?;
        self.payload.contiguous(at..end).ok().flatten().ok_or(Doubt)
    }

    fn u32_at(&self, at: u64) -> Sure<u32> {
        let bytes = self.part(at, 4)?;
        bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or(Doubt)
    }

    fn work(&mut self, budget: &mut Budget<'_>) -> Sure<Option<FileMetaData>> {
        self.stage = match self.stage {
            Stage::Slots(at) => match self.hashes.get(at).copied() {
                Some(hash) => {
                    if self.look_up(hash, budget)? {
                        Stage::Slots(at + 1)
                    } else {
                        Stage::Slots(at)
                    }
                }
                None => {
                    self.places.sort_unstable_by_key(|place| (place.start, place.end));
                    self.places.dedup();
                    Stage::Places(0)
                }
            },
            Stage::Places(at) => match self.places.get(at).cloned() {
                Some(place) => {
                    budget.charge_units(SLOT_UNITS * (1 + (place.end - place.start) / u64_of(PAYLOAD_BYTES)));
                    // Places may overlap: a field's and its group's.
                    self.place_bytes += place.end - place.start;
                    if self.place_bytes > BYTES_MAX.min(self.found.footer_bytes.into()) {
                        return Err(Doubt);
                    }
                    self.want(place)?;
                    Stage::Places(at + 1)
                }
                None => Stage::Records { place: 0, at: self.places.first().map_or(0, |place| place.start) },
            },
            Stage::Records { place, at } => self.record(place, at, budget)?,
            Stage::Chunks { place, leaf, group, at } => {
                budget.charge_units(CHUNK_UNITS);
                if group == self.found.row_groups {
                    Stage::Records { place, at }
                } else {
                    let bytes = self.u32_at(at)?;
                    Stage::Chunks { place, leaf, group: group + 1, at: at + 4 + u64::from(bytes) }
                }
            }
            Stage::Choose(from) => {
                budget.charge_units(FIELD_UNITS);
                let next = self.leaves.range(from..).next().map(|(leaf, _)| *leaf);
                match next {
                    Some(leaf) => {
                        self.choose(leaf)?;
                        Stage::Choose(leaf + 1)
                    }
                    None => {
                        self.check_fields()?;
                        let head = self.found.head_at..self.found.head_at + self.found.head_bytes;
                        self.read_root(&head)?;
                        self.parser = Some(FooterParser::new(head, self.limits));
                        Stage::Head
                    }
                }
            }
            Stage::Head => {
                let Some(parser) = &mut self.parser else { return Err(Doubt) };
                match parsed(parser.step(&mut self.payload, budget))? {
                    Some(head) => {
                        if u64_of(head.row_groups.len()) != u64::from(self.found.row_groups) {
                            return Err(Doubt);
                        }
                        self.head = Some(head);
                        Stage::Schema(0)
                    }
                    None => Stage::Head,
                }
            }
            Stage::Schema(at) => {
                budget.charge_units(FIELD_UNITS);
                self.make_field(at)?
            }
            Stage::Groups { group, leaf } => self.make_group(group, leaf, budget)?,
            Stage::Columns => {
                let Some(parser) = &mut self.parser else { return Err(Doubt) };
                match parsed(parser.step(&mut self.made, budget))? {
                    Some(columns) => {
                        self.columns = Some(columns);
                        Stage::Join(0)
                    }
                    None => Stage::Columns,
                }
            }
            Stage::Join(at) => {
                budget.charge_units(GROUP_UNITS);
                let (Some(head), Some(made)) = (&mut self.head, &mut self.columns) else {
                    return Err(Doubt);
                };
                match (head.row_groups.get_mut(at), made.row_groups.get_mut(at)) {
                    (Some(group), Some(RowGroup { columns, .. })) => {
                        budget.charge_units(FIELD_UNITS * u64_of(group.sorting_columns.len()));
                        budget.charge_units(CHECK_UNITS * u64_of(columns.len()));
                        group.columns = core::mem::take(columns);
                        let (rows, end) = (group.rows, self.found.body_start);
                        let mut each = group.columns.iter().zip(made.schema.leaves());
                        if !each.all(|(chunk, leaf)| can_be(chunk, leaf, rows, end)) {
                            return Err(Doubt);
                        }
                        keep_sorting_columns(group, &self.kept);
                        Stage::Join(at + 1)
                    }
                    (None, None) => Stage::End,
                    _ => return Err(Doubt),
                }
            }
            Stage::End => {
                let (Some(head), Some(columns)) = (self.head.take(), self.columns.take()) else {
                    return Err(Doubt);
                };
                let footer_bytes = u64::from(self.found.footer_bytes);
                return Ok(Some(FileMetaData {
                    schema: columns.schema,
                    column_orders: columns.column_orders,
                    footer_start: self.found.file_bytes - 8 - footer_bytes,
                    footer_bytes,
                    is_partial: usize_of(self.found.leaves.into()).is_none_or(|all| all > self.kept.len()),
                    ..head
                }));
            }
        };
        Ok(None)
    }

    /// Looks for a name in the slots. False if more blocks are needed for that.
    fn look_up(&mut self, Sought { hash, is_group }: Sought, budget: &mut Budget<'_>) -> Sure<bool> {
        let first = Announcement::first_slot(self.found.slots, hash.place());
        let mut places = Vec::new();
        for at in 0..SEARCH_SLOTS_MAX.min(self.found.slots) {
            budget.charge_units(SLOT_UNITS);
            let slot = (first + at) % self.found.slots;
            let range = self.slot_at(slot);
            if self.payload.missing(range.clone()).is_some() {
                self.want_slot(slot)?;
                return Ok(false);
            }
            let slot = self.part(range.start, u64_of(SLOT_BYTES))?;
            let Slot { tag, bytes, is_whole, start } = Slot::read(&slot).ok_or(Doubt)?;
            if bytes == 0 {
                self.places.append(&mut places);
                return Ok(true);
            }
            if tag == hash.tag() && (is_whole || !is_group) {
                places.push(start..start.checked_add(bytes.into()).ok_or(Doubt)?);
            }
        }
        Err(Doubt)
    }

    /// Reads the head of the next record.
    fn record(&mut self, place: usize, at: u64, budget: &mut Budget<'_>) -> Sure<Stage> {
        budget.charge_units(FIELD_UNITS);
        let Some(range) = self.places.get(place) else { return Ok(Stage::Choose(0)) };
        if at > range.end {
            return Err(Doubt);
        }
        if at == range.end {
            let at = self.places.get(place + 1).map_or(0, |place| place.start);
            return Ok(Stage::Records { place: place + 1, at });
        }
        let leaf = self.u32_at(at)?;
        let numbers = self.u32_at(at + 4)?.to_le_bytes();
        let (order, depth) =
            (i16::from_le_bytes([numbers[0], numbers[1]]), u16::from_le_bytes([numbers[2], numbers[3]]));
        if leaf >= self.found.leaves || depth == 0 || u32::from(depth) > self.limits.nesting.saturating_add(1)
        {
            return Err(Doubt);
        }
        let (mut at, mut chain, mut chain_bytes) = (at + 8, Vec::new(), 0);
        for _ in 0..depth {
            let (number, bytes) = (self.u32_at(at)?, self.u32_at(at + 4)?);
            chain_bytes += u64::from(bytes);
            if chain_bytes > self.limits.structure_bytes
                || chain.last().is_some_and(|(before, _)| *before >= number)
            {
                return Err(Doubt);
            }
            budget.charge_units(FIELD_UNITS);
            let element = self.part(at + 8, bytes.into())?;
            chain.push((number, element));
            at += 8 + u64::from(bytes);
        }
        // What it takes in memory, about.
        if u64_of(self.leaves.len() + 1).saturating_mul(LEAF_BYTES) > self.limits.total_bytes {
            return Err(Doubt);
        }
        self.leaves.entry(leaf).or_insert(Found { chain, order, at });
        Ok(Stage::Chunks { place, leaf, group: 0, at })
    }

    /// Decides whether a leaf is kept, and which groups around it are.
    fn choose(&mut self, leaf: u32) -> Sure<()> {
        let Some(found) = self.leaves.get(&leaf) else { return Err(Doubt) };
        let last = found.chain.len() - 1;
        // As far as the groups are those of the leaf before.
        let mut depth = 0;
        while let (Some(at), Some((number, _))) = (self.open.get(depth), found.chain.get(depth)) {
            let Some(field) = self.fields.get(*at).filter(|field| field.number == *number) else { break };
            if field.keep == Keep::Nothing {
                self.leaves.remove(&leaf);
                return Ok(());
            }
            depth += 1;
        }
        if depth > last {
            return Err(Doubt);
        }
        self.open.truncate(depth);
        let rest: Vec<(u32, Bytes)> = found.chain.iter().skip(depth).cloned().collect();
        let order = found.order;
        self.chooser.close(depth + 1);
        for (at, (number, bytes)) in (depth..).zip(rest) {
            let element = Element::read(&mut Reader::new(&bytes, 0)).map_err(|_| Doubt)?;
            let is_leaf = element.physical_type().is_some();
            if is_leaf != (at == last) {
                return Err(Doubt);
            }
            let mut keep = self.chooser.look(element.name().as_bytes(), !is_leaf);
            if keep == Keep::Part && !element.can_be_cut() {
                self.chooser.keep_whole();
                keep = Keep::Whole;
            }
            let children = element.children().and_then(|children| u32::try_from(children).ok());
            if keep != Keep::Nothing {
                let parent = self.open.last().and_then(|parent| self.fields.get_mut(*parent));
                *parent.map_or(&mut self.kept_of_root, |parent| &mut parent.kept) += 1;
                self.kept_fields += 1;
            }
            self.open.push(self.fields.len());
            self.fields.push(Field { number, element: bytes, keep, children, kept: 0 });
            if keep == Keep::Nothing {
                self.leaves.remove(&leaf);
                return Ok(());
            }
            if is_leaf {
                self.kept.push(usize_of(leaf.into()).ok_or(Doubt)?);
                self.kept_types.push(element.physical_type().unwrap_or(-1));
                if order < 0 {
                    return Err(Doubt);
                }
            } else {
                self.chooser.open();
            }
        }
        Ok(())
    }

    /// Checks that what is wanted is there, and that groups of which everything is wanted are complete.
    fn check_fields(&self) -> Sure<()> {
        let is_complete = |field: &Field| {
            field.keep != Keep::Whole || field.children.is_none_or(|children| children == field.kept)
        };
        if self.chooser.has_all() && self.chooser.again().is_none() && self.fields.iter().all(is_complete) {
            Ok(())
        } else {
            Err(Doubt)
        }
    }

    /// Takes the root's element from the footer without its columns.
    fn read_root(&mut self, head: &Range<u64>) -> Sure<()> {
        let bytes = self.part(head.start, (head.end - head.start).min(self.limits.structure_bytes))?;
        let mut reader = Reader::new(&bytes, 0);
        let range = root(&mut reader).map_err(|_| Doubt)?;
        self.root = bytes.get(range).ok_or(Doubt)?.to_vec();
        Ok(())
    }

    /// Writes the next field to the footer of these columns alone, and what is before and after all.
    fn make_field(&mut self, at: usize) -> Sure<Stage> {
        let mut writer = core::mem::take(&mut self.writer);
        if at == 0 {
            writer.field(0, 1, Kind::I32);
            writer.i64(1);
            writer.field(1, 2, Kind::List);
            writer.list(Kind::Struct, self.kept_fields + 1);
            writer.raw(&with_children(&self.root, self.kept_of_root).map_err(|_| Doubt)?);
        }
        let next = match self.fields.get(at) {
            Some(field) => {
                match field.children {
                    _ if field.keep == Keep::Nothing => {}
                    Some(children) if children != field.kept => {
                        writer.raw(&with_children(&field.element, field.kept).map_err(|_| Doubt)?);
                    }
                    _ => writer.raw(&field.element),
                }
                self.writer = writer;
                return Ok(Stage::Schema(at + 1));
            }
            None => Stage::Groups { group: 0, leaf: 0 },
        };
        writer.field(2, 3, Kind::I64);
        writer.i64(0);
        writer.field(3, 4, Kind::List);
        writer.list(Kind::Struct, usize_of(self.found.row_groups.into()).ok_or(Doubt)?);
        self.make(writer)?;
        Ok(next)
    }

    /// Writes the next column order, and the end. A file has all of them, or none.
    fn make_order(&mut self, leaf: usize) -> Sure<Stage> {
        let mut writer = core::mem::take(&mut self.writer);
        let number = self.kept.get(leaf).and_then(|number| u32::try_from(*number).ok());
        let order = number.and_then(|number| self.leaves.get(&number)).map_or(0, |found| found.order);
        if order != 0 {
            if leaf == 0 {
                writer.field(4, 7, Kind::List);
                writer.list(Kind::Struct, self.kept.len());
            }
            writer.structure(|fields| fields.empty(order));
            self.writer = writer;
            return Ok(Stage::Groups { group: self.found.row_groups, leaf: leaf + 1 });
        }
        if leaf != 0 && leaf < self.kept.len() {
            return Err(Doubt);
        }
        writer.stop();
        self.make(writer)?;
        self.parser = Some(FooterParser::new(0..self.made_bytes, self.limits));
        Ok(Stage::Columns)
    }

    fn make(&mut self, mut writer: Writer) -> Sure<()> {
        writer.finish();
        while let Some(piece) = writer.take() {
            let bytes = u64_of(piece.len());
            self.made.supply(self.made_bytes, piece).map_err(|_| Doubt)?;
            self.made_bytes += bytes;
        }
        Ok(())
    }

    /// Adds a chunk to the footer of these columns alone, or a row group's end, or the footer's.
    fn make_group(&mut self, group: u32, leaf: usize, budget: &mut Budget<'_>) -> Sure<Stage> {
        budget.charge_units(CHUNK_UNITS);
        let mut writer = Writer::new();
        if group == self.found.row_groups {
            return self.make_order(leaf);
        }
        if leaf == 0 {
            writer.field(0, 1, Kind::List);
            writer.list(Kind::Struct, self.kept.len());
            self.make(writer)?;
            writer = Writer::new();
        }
        let Some(&number) = self.kept.get(leaf) else {
            writer.field(1, 3, Kind::I64);
            writer.i64(0);
            writer.stop();
            self.make(writer)?;
            return Ok(Stage::Groups { group: group + 1, leaf: 0 });
        };
        let number = u32::try_from(number).map_err(|_| Doubt)?;
        let at = self.leaves.get(&number).map(|found| found.at).ok_or(Doubt)?;
        let bytes = u64::from(self.u32_at(at)?);
        let start = self.part(at + 4, bytes.min(TYPE_BYTES))?;
        if chunk_type(&mut Reader::new(&start, 0)) != Ok(self.kept_types.get(leaf).copied()) {
            return Err(Doubt);
        }
        let (mut from, end) = (at + 4, at + 4 + bytes);
        while from < end {
            let piece = self.payload.segment(from, end - from);
            if piece.is_empty() {
                return Err(Doubt);
            }
            budget.charge_units(GROUP_UNITS);
            let length = u64_of(piece.len());
            self.made.supply(self.made_bytes, piece).map_err(|_| Doubt)?;
            (from, self.made_bytes) = (from + length, self.made_bytes + length);
        }
        if let Some(found) = self.leaves.get_mut(&number) {
            found.at = end;
        }
        Ok(Stage::Groups { group, leaf: leaf + 1 })
    }
}

/// Whether a chunk can be what its record says: one of a column in a row group of so many `rows`, in a file of which all that is of
/// columns ends before `end`.
fn can_be(chunk: &ColumnChunk, leaf: &Leaf, rows: u64, end: u64) -> bool {
    let is_before = |start: u64, bytes: u64| start.checked_add(bytes).is_some_and(|at| at <= end);
    let indexes = [chunk.offset_index, chunk.column_index];
    is_before(chunk.first_page_offset(), chunk.compressed_bytes)
        && indexes.iter().flatten().all(|(start, bytes)| is_before(*start, u64::from(*bytes)))
        && (leaf.repetition_max > 0 || chunk.values == rows)
}

/// Bytes of a chunk that its type is certainly within.
const TYPE_BYTES: u64 = 32;

/// What a parser answers whose bytes are all there.
fn parsed(answer: Result<Going<Arc<FileMetaData>, u64>>) -> Sure<Option<FileMetaData>> {
    match answer {
        Ok(Going::Done(metadata)) => Arc::try_unwrap(metadata).map(Some).map_err(|_| Doubt),
        Ok(Going::Yield) => Ok(None),
        Ok(Going::Need(_)) | Err(_) => Err(Doubt),
    }
}

/// Where the root's element is in a footer.
fn root(reader: &mut Reader<'_>) -> Thrift<Range<usize>> {
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        if field.id == 2 {
            reader.expect(field, Kind::List, |reader| reader.list_of(Kind::Struct))?;
            let start = reader.at();
            reader.skip(Kind::Struct)?;
            return Ok(start..reader.at());
        }
        reader.skip(field.kind)?;
        last = field.id;
    }
    reader.corrupt("no schema")
}

/// An element with another number of children.
fn with_children(element: &[u8], children: u32) -> Thrift<Vec<u8>> {
    let mut reader = Reader::new(element, 0);
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        let start = reader.at();
        reader.skip(field.kind)?;
        if field.id == 5 {
            let mut writer = Writer::new();
            writer.raw(element.get(..start).unwrap_or_default());
            writer.i64(children.into());
            writer.raw(element.get(reader.at()..).unwrap_or_default());
            return Ok(writer.into_vec());
        }
        last = field.id;
    }
    reader.corrupt("a group without children")
}

/// The physical type of a chunk. `None` if its metadata does not begin with it.
fn chunk_type(reader: &mut Reader<'_>) -> Thrift<Option<i32>> {
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        if field.id == 3 && field.kind == Kind::Struct {
            return match reader.field(0)? {
                Some(field) if field.id == 1 && field.kind == Kind::I32 => reader.i32().map(Some),
                _ => Ok(None),
            };
        }
        reader.skip(field.kind)?;
        last = field.id;
    }
    Ok(None)
}
