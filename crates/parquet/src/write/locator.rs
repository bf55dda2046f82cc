//! The footer locator, written before the footer: `docs/locator.md` describes it.

use alloc::vec::Vec;

use marquetry_base::cast::{low_u32, u64_of, usize_of};
use marquetry_base::{Budget, Bytes, Error, Result, Segmented};

use super::group::{Cursor, Ending};
use super::out::Out;
use crate::format::locator::{
    Announcement, BLOCK_BYTES, BLOCK_SLOTS, PAYLOAD_BYTES, PathHash, Slot, trailer,
};
use crate::format::write::{FooterSource, FooterSteps, GroupHead, write_element};
use crate::format::{ColumnOrder, KeyValue};
use crate::growing::SLICE_BYTES;
use crate::schema::{NodeKind, Schema};
use crate::thrift::{Kind, Reader, Stop, Thrift, Writer};

/// What a chunk costs besides its bytes, what a field's name does, and a small part of either.
const CHUNK_UNITS: u64 = 400;
const NAME_UNITS: u64 = 150;
const PART_UNITS: u64 = 20;
/// Parts that are looked at together.
const PARTS_AT_ONCE: usize = 64;

/// Writes a locator, resumably.
#[derive(Debug)]
pub(super) struct LocatorSteps {
    next: Next,
    /// How many children each node has.
    children: Segmented<u32>,
    /// Where the next chunk's metadata and indexes are, of each row group.
    cursors: Segmented<Cursor>,
    cursor: Cursor,
    /// The node that is next, and the groups around it.
    node: usize,
    open: Vec<Open>,
    names: Segmented<Name>,
    table: Segmented<u32>,
    body: Body,
    found: Announcement,
    head: FooterSteps,
    head_writer: Writer,
    /// The piece of the head that is being written, and how much of it was; and whether it is the last.
    head_piece: Option<(Bytes, usize)>,
    is_head_made: bool,
    root: Schema,
}

#[derive(Debug, Clone, Copy)]
enum Next {
    /// Children are counted, from this node on.
    Count(usize),
    /// Chunks are counted, from this one on.
    Cursors(usize),
    /// The next node.
    Node,
    /// The chunks of a leaf, from that of this row group on; the leaf's record began there.
    Chunks {
        group: usize,
        leaf: usize,
        start: u64,
    },
    /// Empty slots are made.
    Table,
    /// Names are put into slots, from this one on.
    Insert(usize),
    /// Slots are written, from this one on.
    Slots(usize),
    /// The footer without its columns is written.
    Head,
    End,
}

/// A group that is open.
#[derive(Debug)]
struct Open {
    end: usize,
    hash: PathHash,
    /// Its name, and its element with its number.
    name: usize,
    element: Vec<u8>,
}

/// A field: the hash of its path, and where its records are.
#[derive(Debug, Clone, Copy)]
struct Name {
    hash: PathHash,
    start: u64,
    bytes: u64,
    is_whole: bool,
}

/// Blocks.
#[derive(Debug)]
struct Body {
    start: u64,
    block: Vec<u8>,
    /// Bytes of payload so far.
    payload: u64,
}

impl Body {
    fn push(&mut self, mut bytes: &[u8], out: &mut Out, budget: &mut Budget<'_>) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(PAYLOAD_BYTES - self.block.len()));
            self.block.extend_from_slice(part);
            self.payload += u64_of(part.len());
            bytes = rest;
            if self.block.len() == PAYLOAD_BYTES {
                let number = self.payload / u64_of(PAYLOAD_BYTES) - 1;
                let end = trailer(self.start, number, &self.block);
                self.block.extend_from_slice(&end);
                let block = core::mem::replace(&mut self.block, Vec::with_capacity(BLOCK_BYTES));
                out.push(block.into(), budget);
            }
        }
    }

    /// Ends the block.
    fn pad(&mut self, out: &mut Out, budget: &mut Budget<'_>) {
        if !self.block.is_empty() {
            let rest = [0; PAYLOAD_BYTES];
            self.push(rest.get(self.block.len()..).unwrap_or_default(), out, budget);
        }
    }
}

impl LocatorSteps {
    /// A locator whose blocks start at `start` in the file.
    pub(super) fn new(ending: &Ending, start: u64) -> LocatorSteps {
        LocatorSteps {
            next: Next::Count(0),
            children: Segmented::new(),
            cursors: Segmented::new(),
            cursor: Cursor::default(),
            node: 1,
            open: Vec::new(),
            names: Segmented::new(),
            table: Segmented::new(),
            body: Body { start, block: Vec::with_capacity(BLOCK_BYTES), payload: 0 },
            found: Announcement { body_start: start, ..Announcement::default() },
            head: FooterSteps::new(),
            head_writer: Writer::new(),
            head_piece: None,
            is_head_made: false,
            root: ending.schema().root_alone(),
        }
    }

    /// Writes on. `None` when the budget is spent, or a piece is complete, before its end; then what is announced of
    /// it, if there is anything.
    pub(super) fn step(
        &mut self,
        ending: &mut Ending,
        out: &mut Out,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Option<Announcement>>> {
        loop {
            self.next = match self.next {
                Next::End => {
                    let found = (self.found.slots > 0).then_some(self.found);
                    return Ok(Some(found));
                }
                next => self.work(next, ending, out, budget)?,
            };
            if budget.is_spent() || out.is_ready() {
                return Ok(None);
            }
        }
    }

    fn work(
        &mut self,
        next: Next,
        ending: &mut Ending,
        out: &mut Out,
        budget: &mut Budget<'_>,
    ) -> Result<Next> {
        let (nodes, leaves) = (ending.schema().nodes().len(), ending.schema().leaves().len());
        Ok(match next {
            Next::Count(from) => {
                let end = nodes.min(from + PARTS_AT_ONCE);
                budget.charge_units(PART_UNITS * u64_of(end - from));
                for (at, node) in (from..end).zip(ending.schema().nodes().iter_from(from)) {
                    self.children.push(0);
                    if matches!(node.kind, NodeKind::Group { end } if end == at + 1) {
                        // A group without leaves has no records, so nothing could be found of it.
                        return Ok(Next::End);
                    }
                    if at > 0
                        && let Some(children) = self.children.get_mut(node.parent)
                    {
                        *children += 1;
                    }
                }
                if end < nodes {
                    return Ok(Next::Count(end));
                }
                ending.keep_metadata();
                self.cursor = ending.first_cursor();
                Next::Cursors(0)
            }
            Next::Cursors(from) => {
                let all = leaves * ending.groups();
                let end = all.min(from + PARTS_AT_ONCE);
                budget.charge_units(PART_UNITS * u64_of(end - from));
                for chunk in from..end {
                    if chunk % leaves == 0 {
                        self.cursors.push(self.cursor);
                    }
                    ending.advance(chunk, &mut self.cursor);
                }
                if end < all { Next::Cursors(end) } else { Next::Node }
            }
            Next::Node if self.node == nodes => {
                self.close(nodes);
                self.body.pad(out, budget);
                self.found.slots_at = self.body.payload;
                let names = u64_of(self.names.len());
                self.found.slots = (names + names / 3 + 1).div_ceil(BLOCK_SLOTS) * BLOCK_SLOTS;
                Next::Table
            }
            Next::Node => self.begin_node(ending, out, budget),
            Next::Chunks { group, leaf, start } if group < ending.groups() => {
                self.chunk(ending, group, leaf, out, budget)?;
                Next::Chunks { group: group + 1, leaf, start }
            }
            Next::Chunks { start, .. } => {
                let bytes = self.body.payload - start;
                if let Some(name) = self.names.last_mut() {
                    name.bytes = bytes;
                }
                Next::Node
            }
            Next::Table => {
                for _ in 0..PARTS_AT_ONCE {
                    if u64_of(self.table.len()) == self.found.slots {
                        return Ok(Next::Insert(0));
                    }
                    self.table.push(0);
                }
                budget.charge_units(PART_UNITS * u64_of(PARTS_AT_ONCE));
                Next::Table
            }
            Next::Insert(at) => match self.names.get(at) {
                None => Next::Slots(0),
                Some(name) => {
                    let mut slot = usize_of(Announcement::first_slot(self.found.slots, name.hash.place()))
                        .unwrap_or(usize::MAX);
                    budget.charge_units(NAME_UNITS);
                    while self.table.get(slot).is_some_and(|used| *used != 0) {
                        budget.charge_units(1);
                        slot = (slot + 1) % self.table.len();
                    }
                    if let Some(free) = self.table.get_mut(slot) {
                        *free = low_u32(u64_of(at + 1));
                    }
                    Next::Insert(at + 1)
                }
            },
            Next::Slots(from) => {
                let end = self.table.len().min(from + PARTS_AT_ONCE);
                budget.charge_units(PART_UNITS * u64_of(end - from));
                for used in self.table.iter_from(from).take(end - from) {
                    let name = usize_of(u64::from(*used)).and_then(|at| self.names.get(at.checked_sub(1)?));
                    let slot = match name {
                        None => Some(Slot::default()),
                        Some(Name { hash, start, bytes, is_whole }) => u32::try_from(*bytes)
                            .ok()
                            .map(|bytes| Slot { tag: hash.tag(), bytes, is_whole: *is_whole, start: *start }),
                    };
                    let slot = slot.and_then(Slot::write);
                    let slot = slot.ok_or_else(|| Error::too_large("a locator of 2 GiB"))?;
                    self.body.push(&slot, out, budget);
                }
                if end < self.table.len() {
                    return Ok(Next::Slots(end));
                }
                self.found.head_at = self.body.payload;
                Next::Head
            }
            Next::Head => {
                if let Some((piece, written)) = &mut self.head_piece {
                    let end = piece.len().min(*written + SLICE_BYTES);
                    self.body.push(piece.get(*written..end).unwrap_or_default(), out, budget);
                    *written = end;
                    if end == piece.len() {
                        self.head_piece = None;
                    }
                    return Ok(Next::Head);
                }
                self.head_piece = self.head_writer.take().map(|piece| (piece, 0));
                if self.head_piece.is_some() {
                    return Ok(Next::Head);
                }
                if !self.is_head_made {
                    let mut head = Head { ending, root: &self.root, orders: Segmented::new() };
                    self.is_head_made = self.head.step(&mut head, &mut self.head_writer, budget)?;
                    if self.is_head_made {
                        self.head_writer.finish();
                    }
                    return Ok(Next::Head);
                }
                self.found.head_bytes = self.body.payload - self.found.head_at;
                self.body.pad(out, budget);
                out.seal();
                self.found.body_bytes = self.body.payload / u64_of(PAYLOAD_BYTES) * u64_of(BLOCK_BYTES);
                self.found.leaves = u32::try_from(leaves).unwrap_or(u32::MAX);
                self.found.row_groups = u32::try_from(ending.groups()).unwrap_or(u32::MAX);
                Next::End
            }
            Next::End => Next::End,
        })
    }

    /// Ends the groups that end before a node.
    fn close(&mut self, node: usize) {
        while self.open.last().is_some_and(|group| group.end <= node) {
            let Some(group) = self.open.pop() else { return };
            let end = self.body.payload;
            if let Some(name) = self.names.get_mut(group.name) {
                name.bytes = end - name.start;
            }
        }
    }

    /// Begins a node: a group is opened, a leaf's record is begun.
    fn begin_node(&mut self, ending: &Ending, out: &mut Out, budget: &mut Budget<'_>) -> Next {
        let at = self.node;
        self.close(at);
        let schema = ending.schema();
        let node = &schema.nodes()[at];
        let hash = match self.open.last() {
            Some(group) => group.hash.with(b".").with(node.name_in_file().as_bytes()),
            None => PathHash::ROOT.with(node.name_in_file().as_bytes()),
        };
        let is_group = matches!(node.kind, NodeKind::Group { .. });
        self.names.push(Name {
            hash,
            start: self.body.payload,
            bytes: 0,
            is_whole: is_group && !node.can_be_cut(),
        });
        budget.charge_units(NAME_UNITS + u64_of(node.name.len()));
        let mut element = Writer::new();
        let children = self.children.get(at).copied().unwrap_or(0);
        write_element(&mut element, schema, at, node, children, ending.completes_types());
        let element = element.into_vec();
        let mut own = Vec::with_capacity(8 + element.len());
        own.extend(low_u32(u64_of(at)).to_le_bytes());
        own.extend(low_u32(u64_of(element.len())).to_le_bytes());
        own.extend(element);
        self.node = at + 1;
        match node.kind {
            NodeKind::Group { end } => {
                self.open.push(Open { end, hash, name: self.names.len() - 1, element: own });
                Next::Node
            }
            NodeKind::Leaf { leaf } => {
                let start = self.body.payload;
                self.body.push(&low_u32(u64_of(leaf)).to_le_bytes(), out, budget);
                let order = ending.column_orders().get(leaf).map_or(0, |order| order.number());
                self.body.push(&order.to_le_bytes(), out, budget);
                let depth = low_u32(u64_of(self.open.len() + 1)).to_le_bytes();
                self.body.push(&depth[..2], out, budget);
                for group in &self.open {
                    budget.charge_units(PART_UNITS + u64_of(group.element.len()));
                    self.body.push(&group.element, out, budget);
                }
                self.body.push(&own, out, budget);
                Next::Chunks { group: 0, leaf, start }
            }
        }
    }

    /// Writes a chunk: as it is in the footer, but for the path, which is that of the elements.
    fn chunk(
        &mut self,
        ending: &Ending,
        group: usize,
        leaf: usize,
        out: &mut Out,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        let number = group * ending.schema().leaves().len() + leaf;
        let Some(cursor) = self.cursors.get_mut(group) else {
            return Err(Error::internal("a row group that was not counted"));
        };
        let metadata = ending.metadata_at(number, cursor);
        let (before, after) = without_path(&metadata)
            .map_err(|_| Error::internal("the metadata of a chunk that cannot be read back"))?;
        let mut writer = Writer::new();
        ending.write_chunk_at(number, cursor, &mut writer, |writer| {
            writer.raw(before);
            writer.raw(&[0x25]);
            writer.raw(after);
        });
        ending.advance(number, cursor);
        let chunk = writer.into_vec();
        budget.charge_units(CHUNK_UNITS + u64_of(metadata.len()));
        self.body.push(&low_u32(u64_of(chunk.len())).to_le_bytes(), out, budget);
        self.body.push(&chunk, out, budget);
        Ok(())
    }
}

/// The fields of a `ColumnMetaData` before the path, and what follows the head of the field after it: that of the
/// codec, which is the fourth.
fn without_path(metadata: &[u8]) -> Thrift<(&[u8], &[u8])> {
    let mut reader = Reader::new(metadata, 0);
    let mut last = 0;
    loop {
        let before = reader.at();
        let Some(field) = reader.field(last)? else { return Err(Stop::End) };
        if field.id == 3 {
            reader.skip(Kind::List)?;
            let after = metadata.get(reader.at() + 1..).ok_or(Stop::End)?;
            return Ok((metadata.get(..before).ok_or(Stop::End)?, after));
        }
        reader.skip(field.kind)?;
        last = field.id;
    }
}

/// A footer without its columns.
struct Head<'a> {
    ending: &'a Ending,
    root: &'a Schema,
    orders: Segmented<ColumnOrder>,
}

impl FooterSource for Head<'_> {
    fn version(&self) -> i32 {
        self.ending.version()
    }

    fn schema(&self) -> &Schema {
        self.root
    }

    fn completes_types(&self) -> bool {
        true
    }

    fn rows(&self) -> u64 {
        self.ending.rows()
    }

    fn groups(&self) -> usize {
        self.ending.groups()
    }

    fn group(&self, group: usize) -> GroupHead<'_> {
        self.ending.group(group)
    }

    fn write_chunk(&mut self, _group: usize, _leaf: usize, _writer: &mut Writer) -> Result<()> {
        Err(Error::internal("a chunk of no leaf"))
    }

    fn key_values(&self) -> usize {
        self.ending.key_values()
    }

    fn key_value(&self, pair: usize) -> Option<&KeyValue> {
        FooterSource::key_value(self.ending, pair)
    }

    fn created_by(&self) -> Option<&str> {
        self.ending.created_by()
    }

    fn column_orders(&self) -> &Segmented<ColumnOrder> {
        &self.orders
    }

    fn extension(&self, _before: &[u8], _length: u64) -> Option<Vec<u8>> {
        None
    }
}
