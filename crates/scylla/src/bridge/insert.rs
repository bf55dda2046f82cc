//! Batches as `INSERT` statements.

use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::ops::Range;

use marquetry_base::{Error, Result, cast};
use marquetry_parquet::batch::{Array, Values};

use super::batch::{MappedBatch, MappedValues};
use super::bound::{BoundBatch, BoundValues};
use super::convert::{Slots, Source};
use super::form::{Cells, Text};
use super::mapping::{KeyRole, null_key};
use super::plan::NestedColumn;
use super::render::Renderer;
use super::{Mapping, Nulls, text};
use crate::cql::{insert_prefix, literal};

/// Prints batches as `INSERT` statements, one per row, each ended by `;` and a line feed.
///
/// It keeps the heads of statements and the text of dictionary values between batches, both bounded. It is fastest if
/// the reader keeps dictionaries
/// ([`ReadOptions::keep_dictionaries`](marquetry_parquet::read::ReadOptions::keep_dictionaries)).
///
/// The [`Mapping`] may be borrowed, shared or owned: `&Mapping`, `Arc<Mapping>`, `Mapping`.
#[derive(Debug)]
pub struct InsertWriter<M> {
    mapping: M,
    state: State,
}

/// What is kept from batch to batch.
#[derive(Debug)]
struct State {
    heads: Heads,
    /// One per column.
    dictionaries: Vec<DictionaryText>,
    nested: NestedText,
}

/// What [`InsertWriter::write`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The first row that was not written: the end of the range, or an earlier row if `out` became full.
    pub next_row: usize,
}

impl<M: Borrow<Mapping>> InsertWriter<M> {
    /// Creates a writer for one mapping.
    pub fn new(mapping: M) -> InsertWriter<M> {
        let columns = mapping.borrow();
        let dictionaries = columns.columns().iter().map(|_| DictionaryText::default()).collect();
        let state = State { heads: Heads::new(columns), dictionaries, nested: NestedText::default() };
        InsertWriter { mapping, state }
    }

    /// The mapping.
    pub fn mapping(&self) -> &Mapping {
        self.mapping.borrow()
    }

    /// Appends the statements of `rows`, at least one, until `out` has `bytes_max` bytes or more. The caller continues
    /// with [`Written::next_row`]. So memory stays bounded whatever the length of values (a short file can hold one
    /// long value a million times). For all rows in one call, pass `usize::MAX`.
    ///
    /// `first_row_number` is the number of the batch's first row (not of the first one in `rows`), for the column of
    /// row numbers.
    ///
    /// # Errors
    ///
    /// `Conversion`, with row and column, or the path in it: a value that its type cannot hold; a null in the key, or
    /// an empty partition key; a null in a list, set or map; equal keys in a map. `LimitExceeded`: a nested value of
    /// more than 256 MiB. `Misuse`: a range beyond the batch, a batch of another mapping or of the layout `Dense`
    /// with nulls. `out` then ends after the last complete statement.
    pub fn write(
        &mut self,
        batch: &MappedBatch,
        rows: Range<usize>,
        first_row_number: u64,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<Written> {
        if rows.start > rows.end || rows.end > batch.rows {
            return Err(Error::misuse(alloc::format!("rows {rows:?} of a batch of {} rows", batch.rows)));
        }
        let mapping = self.mapping.borrow();
        let bound = mapping.bind(batch, first_row_number)?;
        let columns = bound.columns.iter().enumerate();
        let nullable: Vec<usize> =
            columns.filter(|(_, column)| column.has_nulls()).map(|(at, _)| at).collect();
        for (text, values) in self.state.dictionaries.iter_mut().zip(&batch.columns) {
            if let MappedValues::Flat(column) = values
                && let Values::Dictionary(_, dictionary) = &column.values
            {
                text.start(dictionary);
            }
        }
        for row in rows.clone() {
            let start = out.len();
            if let Err((column, error)) = self.state.row(mapping, &bound, &nullable, row, out) {
                out.truncate(start);
                return Err(mapping.at(column, batch, row, error));
            }
            if out.len() >= bytes_max {
                return Ok(Written { next_row: row + 1 });
            }
        }
        Ok(Written { next_row: rows.end })
    }
}

impl State {
    /// Appends a row's statement, or returns an error that names the column.
    fn row(
        &mut self,
        mapping: &Mapping,
        batch: &BoundBatch<'_>,
        nullable: &[usize],
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), (usize, Error)> {
        let columns = &*batch.columns;
        self.heads.nulls.fill(0);
        let mut is_static = false;
        for &column in nullable {
            if columns[column].is_null(row) {
                if columns[column].key != KeyRole::None && !is_static {
                    is_static = batch.is_static_row(row);
                    if !is_static {
                        return Err((column, null_key()));
                    }
                }
                self.heads.nulls[column / 64] |= 1 << (column % 64);
            }
        }
        let names_nulls = mapping.nulls() == Nulls::Null && !is_static;
        if names_nulls {
            out.extend_from_slice(&self.heads.all);
        } else {
            self.heads.write(out);
        }
        let mut is_first = true;
        for (column, (bound, text)) in columns.iter().zip(&mut self.dictionaries).enumerate() {
            let is_null = self.heads.is_null(column);
            if is_null && !names_nulls {
                continue;
            }
            if !is_first {
                out.extend_from_slice(b", ");
            }
            is_first = false;
            if is_null {
                literal::null(out);
                continue;
            }
            match &bound.values {
                BoundValues::Plain(source) => value(source, bound.key, row, out),
                BoundValues::Dictionary(slots) => {
                    slots.index(row).and_then(|index| text.write(slots, bound.key, index, out))
                }
                BoundValues::Cast(slots) => slots
                    .value(row)
                    .and_then(|value| bound.key.check(&value).and_then(|()| text::write(out, &value))),
                BoundValues::Nested(nested, array) => {
                    self.nested.write(mapping, nested, array, bound.key, row, out)
                }
            }
            .map_err(|error| (column, error))?;
        }
        out.extend_from_slice(b");\n");
        Ok(())
    }
}

/// Appends the value at `index` of the source.
#[inline]
fn value(source: &Source<'_>, key: KeyRole, index: usize, out: &mut Vec<u8>) -> Result<()> {
    let value = source.value(index)?;
    key.check(&value)?;
    text::write(out, &value)
}

/// The state for writing nested values.
#[derive(Debug, Default)]
struct NestedText {
    renderer: Renderer,
    /// A key's cell.
    cell: Vec<u8>,
}

impl NestedText {
    #[inline(never)]
    fn write(
        &mut self,
        mapping: &Mapping,
        nested: &NestedColumn,
        array: &Array,
        key: KeyRole,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if key.is_of_partition() {
            // The length limit applies to the servers' form.
            self.cell.clear();
            self.renderer.write::<Cells>(mapping.rules(), &nested.plan, array, row, &mut self.cell)?;
            key.check_length(self.cell.len())?;
        }
        self.renderer.write::<Text>(mapping.rules(), &nested.plan, array, row, out)
    }
}

/// The heads of statements, `INSERT INTO t (a, b) VALUES (`: one for all columns, and one for each set of columns that
/// rows leave out, in a small table where the newer replaces the older.
#[derive(Debug)]
struct Heads {
    /// Of a row without nulls.
    all: Vec<u8>,
    /// `INSERT INTO t (`
    start: Vec<u8>,
    /// The columns' names as they are printed.
    names: Vec<String>,
    /// The columns that the row leaves out: a bit per column.
    nulls: Vec<u64>,
    /// Heads not yet created are empty.
    slots: Vec<Head>,
}

#[derive(Debug, Clone, Default)]
struct Head {
    nulls: Vec<u64>,
    text: Vec<u8>,
}

/// Maximum heads kept. Eight independent columns with nulls have this many.
const HEADS_MAX: usize = 256;
/// Bytes of heads kept, approximately: they should stay in a core's second-level cache.
const HEADS_BYTES_MAX: usize = 256 << 10;

impl Heads {
    fn new(mapping: &Mapping) -> Heads {
        let table = &mapping.table().table;
        let all = insert_prefix(table, mapping.columns().iter().map(|column| &column.name)).into_bytes();
        let slots = (HEADS_BYTES_MAX / all.len().max(1)).clamp(1, HEADS_MAX);
        Heads {
            start: alloc::format!("INSERT INTO {table} (").into_bytes(),
            names: mapping.columns().iter().map(|column| column.name.to_string()).collect(),
            nulls: alloc::vec![0; mapping.columns().len().div_ceil(64)],
            slots: alloc::vec![Head::default(); slots],
            all,
        }
    }

    #[inline]
    fn is_null(&self, column: usize) -> bool {
        self.nulls[column / 64] >> (column % 64) & 1 == 1
    }

    /// Appends the head of a row that leaves out the columns of `nulls`.
    #[inline]
    fn write(&mut self, out: &mut Vec<u8>) {
        if self.nulls.iter().all(|word| *word == 0) {
            return out.extend_from_slice(&self.all);
        }
        // Fibonacci hashing: the product's high bits depend on all bits.
        let hash = self
            .nulls
            .iter()
            .fold(0, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let slots = self.slots.len();
        let slot = &mut self.slots[cast::usize_of_u32(cast::low_u32(hash >> 32)) % slots];
        if slot.nulls != self.nulls {
            slot.nulls.clone_from(&self.nulls);
            slot.text.clear();
            slot.text.extend_from_slice(&self.start);
            let mut comma = "";
            for (column, name) in self.names.iter().enumerate() {
                if self.nulls[column / 64] >> (column % 64) & 1 == 0 {
                    slot.text.extend_from_slice(comma.as_bytes());
                    slot.text.extend_from_slice(name.as_bytes());
                    comma = ", ";
                }
            }
            slot.text.extend_from_slice(b") VALUES (");
        }
        out.extend_from_slice(&slot.text);
    }
}

/// The text of a dictionary's values, each printed when it first occurs.
#[derive(Debug, Default)]
struct DictionaryText {
    /// The dictionary, which is not kept alive.
    dictionary: Weak<Values>,
    /// Each value's range in `text`; empty, as no literal is, if it has not occurred.
    spans: Vec<Range<u32>>,
    text: Vec<u8>,
}

/// Bytes of text kept per column: more than writers' dictionaries usually have. Further values are printed each time.
const DICTIONARY_TEXT_BYTES_MAX: usize = 4 << 20;

impl DictionaryText {
    fn start(&mut self, dictionary: &Arc<Values>) {
        if core::ptr::eq(self.dictionary.as_ptr(), Arc::as_ptr(dictionary)) {
            return;
        }
        self.dictionary = Arc::downgrade(dictionary);
        self.text.clear();
        self.spans.clear();
        self.spans.resize(dictionary.len(), 0..0);
    }

    #[inline]
    fn write(&mut self, slots: &Slots<'_>, key: KeyRole, index: usize, out: &mut Vec<u8>) -> Result<()> {
        let span = self
            .spans
            .get(index)
            .map_or(0..0, |span| cast::usize_of_u32(span.start)..cast::usize_of_u32(span.end));
        if !span.is_empty() {
            out.extend_from_slice(&self.text[span]);
            return Ok(());
        }
        self.make(slots, key, index, out)
    }

    #[inline(never)]
    fn make(&mut self, slots: &Slots<'_>, key: KeyRole, index: usize, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        value(&slots.source, key, index, out)?;
        let made = &out[start..];
        let (from, to) = (self.text.len(), self.text.len() + made.len());
        if let Some(span) = self.spans.get_mut(index)
            && to <= DICTIONARY_TEXT_BYTES_MAX
            && let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to))
        {
            self.text.extend_from_slice(made);
            *span = from..to;
        }
        Ok(())
    }
}
