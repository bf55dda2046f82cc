//! The footer, written (`FileMetaData`): a field of the schema, or a column chunk, at a time.

use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Price, Result, Segmented};

use super::schema::write_element;
use crate::format::locator::EXTENSION_FIELD;
use crate::format::{ColumnOrder, KeyValue, SortingColumn};
use crate::growing::SLICE_BYTES;
use crate::schema::Schema;
use crate::thrift::Kind;
use crate::thrift::Writer;

/// Where a footer comes from.
pub(crate) trait FooterSource {
    /// The format's version.
    fn version(&self) -> i32;
    /// The tree of types.
    fn schema(&self) -> &Schema;
    /// Whether the older annotations are added to the newer ones, where both can say the same.
    fn completes_types(&self) -> bool;
    /// Rows of all groups.
    fn rows(&self) -> u64;
    /// Row groups.
    fn groups(&self) -> usize;
    /// A row group but for its chunks.
    fn group(&self, group: usize) -> GroupHead<'_>;
    /// Writes the chunk of a leaf. All are written once, in order.
    fn write_chunk(&mut self, group: usize, leaf: usize, writer: &mut Writer) -> Result<()>;
    /// Pairs that are kept beside the data.
    fn key_values(&self) -> usize;
    /// One of them.
    fn key_value(&self, pair: usize) -> Option<&KeyValue>;
    /// The writer's name and version.
    fn created_by(&self) -> Option<&str>;
    /// How the bounds of leaves are ordered.
    fn column_orders(&self) -> &Segmented<ColumnOrder>;
    /// What is written at the end as an extension, if anything. The footer has `length` bytes so far, and these are
    /// some of the last.
    fn extension(&self, before: &[u8], length: u64) -> Option<Vec<u8>>;
}

/// A row group but for its chunks (`RowGroup`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupHead<'a> {
    pub(crate) rows: u64,
    pub(crate) uncompressed_bytes: u64,
    pub(crate) sorting_columns: &'a [SortingColumn],
    pub(crate) file_offset: Option<u64>,
    pub(crate) compressed_bytes: Option<u64>,
    pub(crate) ordinal: Option<i16>,
}

/// What an element of a list costs, and a byte: those of column chunks were counted before.
const ELEMENT_PRICE: Price = Price { kib: 1024, kilovalue: 60 << 10 };
/// Nodes whose children are counted together, and the price of each.
const COUNTED_AT_ONCE: usize = 256;
const COUNT_PRICE: Price = Price::per_kilovalue(20 << 10);

/// Writes a footer, resumably.
#[derive(Debug)]
pub(crate) struct FooterSteps {
    next: Next,
    /// How many children each node has.
    children: Segmented<u32>,
}

/// What is written next.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// Nothing yet: the children of nodes are counted from this one on.
    Count(usize),
    /// The schema, from this node on.
    Element(usize),
    /// Row groups, from this one on.
    Group(usize),
    /// A row group's chunks, from this one on.
    Chunk { group: usize, leaf: usize },
    /// Pairs of keys and values, from this byte of this one's key on.
    KeyValue { pair: usize, at: usize },
    /// Column orders, from this one on.
    Order(usize),
    /// Nothing.
    End,
}

impl FooterSteps {
    /// Nothing is written yet.
    pub(crate) fn new() -> FooterSteps {
        FooterSteps { next: Next::Count(0), children: Segmented::new() }
    }

    /// Writes on. False when the budget is spent, or a piece is whole, before its end.
    ///
    /// # Errors
    ///
    /// The source's.
    pub(crate) fn step(
        &mut self,
        source: &mut impl FooterSource,
        writer: &mut Writer,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        while !matches!(self.next, Next::End) {
            let before = writer.copied();
            self.next = self.write_one(source, writer, budget)?;
            budget.charge(ELEMENT_PRICE, usize_of(writer.copied() - before).unwrap_or(usize::MAX), 1);
            if budget.is_spent() || writer.has_whole() {
                break;
            }
        }
        Ok(matches!(self.next, Next::End))
    }

    fn write_one(
        &mut self,
        source: &mut impl FooterSource,
        writer: &mut Writer,
        budget: &mut Budget<'_>,
    ) -> Result<Next> {
        let next = match self.next {
            Next::Count(from) => self.count(from, source, writer, budget),
            Next::Element(at) => {
                let schema = source.schema();
                match schema.nodes().get(at) {
                    Some(node) => {
                        let children = self.children.get(at).copied().unwrap_or(0);
                        write_element(writer, schema, at, node, children, source.completes_types());
                        Next::Element(at + 1)
                    }
                    None => {
                        writer.field(2, 3, Kind::I64);
                        writer.u64(source.rows());
                        writer.field(3, 4, Kind::List);
                        writer.list(Kind::Struct, source.groups());
                        Next::Group(0)
                    }
                }
            }
            Next::Group(group) if group < source.groups() => {
                writer.field(0, 1, Kind::List);
                writer.list(Kind::Struct, source.schema().leaves().len());
                Next::Chunk { group, leaf: 0 }
            }
            Next::Group(_) => {
                if source.key_values() > 0 {
                    writer.field(4, 5, Kind::List);
                    writer.list(Kind::Struct, source.key_values());
                }
                Next::KeyValue { pair: 0, at: 0 }
            }
            Next::Chunk { group, leaf } if leaf < source.schema().leaves().len() => {
                source.write_chunk(group, leaf, writer)?;
                Next::Chunk { group, leaf: leaf + 1 }
            }
            Next::Chunk { group, .. } => {
                write_group_end(writer, source.group(group));
                Next::Group(group + 1)
            }
            Next::KeyValue { pair, at } => match source.key_value(pair) {
                Some(found) => write_key_value(writer, found, (pair, at)),
                None => {
                    let mut last = if pair > 0 { 5 } else { 4 };
                    if let Some(created_by) = source.created_by() {
                        writer.field(last, 6, Kind::Binary);
                        writer.binary(created_by.as_bytes());
                        last = 6;
                    }
                    if !source.column_orders().is_empty() {
                        writer.field(last, 7, Kind::List);
                        writer.list(Kind::Struct, source.column_orders().len());
                    }
                    Next::Order(0)
                }
            },
            Next::Order(at) => match source.column_orders().get(at) {
                Some(order) => {
                    writer.structure(|fields| fields.empty(order.number()));
                    Next::Order(at + 1)
                }
                None => {
                    if let Some(extension) = source.extension(writer.last_bytes(), writer.length()) {
                        // In the long form, whatever precedes it.
                        writer.field(EXTENSION_FIELD, EXTENSION_FIELD, Kind::Binary);
                        writer.binary(&extension);
                    }
                    writer.stop();
                    Next::End
                }
            },
            Next::End => Next::End,
        };
        Ok(next)
    }

    /// Counts the children of some nodes; the footer begins behind that.
    fn count(
        &mut self,
        from: usize,
        source: &impl FooterSource,
        writer: &mut Writer,
        budget: &mut Budget<'_>,
    ) -> Next {
        let nodes = source.schema().nodes();
        let end = nodes.len().min(from + COUNTED_AT_ONCE);
        budget.charge(COUNT_PRICE, 0, end - from);
        for (at, node) in (from..end).zip(nodes.iter_from(from)) {
            self.children.push(0);
            if at > 0
                && let Some(children) = self.children.get_mut(node.parent)
            {
                *children += 1;
            }
        }
        if end < nodes.len() {
            return Next::Count(end);
        }
        writer.field(0, 1, Kind::I32);
        writer.i64(source.version().into());
        writer.field(1, 2, Kind::List);
        writer.list(Kind::Struct, nodes.len());
        Next::Element(0)
    }
}

/// Writes a slice of a pair's key, and its value with the last one. Returns what is next.
fn write_key_value(writer: &mut Writer, found: &KeyValue, (pair, at): (usize, usize)) -> Next {
    let key = found.key.as_bytes();
    if at == 0 {
        writer.field(0, 1, Kind::Binary);
        writer.varint(u64_of(key.len()));
    }
    let end = key.len().min(at + SLICE_BYTES);
    writer.raw(key.get(at..end).unwrap_or_default());
    if end < key.len() {
        return Next::KeyValue { pair, at: end };
    }
    writer.structure_after(1, |fields| {
        if let Some(value) = &found.value {
            fields.shared(2, value);
        }
    });
    Next::KeyValue { pair: pair + 1, at: 0 }
}

/// What a row group says behind its chunks.
fn write_group_end(writer: &mut Writer, group: GroupHead<'_>) {
    writer.structure_after(1, |fields| {
        fields.u64(2, group.uncompressed_bytes);
        fields.u64(3, group.rows);
        if !group.sorting_columns.is_empty() {
            fields.list(4, Kind::Struct, group.sorting_columns.iter(), |writer, column| {
                writer.structure(|fields| {
                    fields.u32(1, column.column);
                    fields.bool(2, column.descending);
                    fields.bool(3, column.nulls_first);
                });
            });
        }
        if let Some(offset) = group.file_offset {
            fields.u64(5, offset);
        }
        if let Some(bytes) = group.compressed_bytes {
            fields.u64(6, bytes);
        }
        if let Some(ordinal) = group.ordinal {
            fields.i16(7, ordinal);
        }
    });
}

impl ColumnOrder {
    /// The number of its field in the union.
    pub(crate) fn number(self) -> i16 {
        match self {
            ColumnOrder::TypeDefined => 1,
            ColumnOrder::Ieee754Total => 2,
            ColumnOrder::Int96Timestamp => 3,
            ColumnOrder::Unknown(number) => number,
        }
    }
}
