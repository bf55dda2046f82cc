//! How the values of a chunk are encoded: chosen by its first values, and changed if a dictionary is abandoned.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Result};

use super::chooser::{Asked, CHUNK_VALUES, Choice};
use super::dictionary::{DictionaryBuilder, DictionaryLimits};
use super::encoder::{Body, Encoder, Slice};
use super::options::{ColumnOptions, PageVersion};
use super::part::{Gathered, PART_ENTRIES};
use super::sample::part_of;
use super::translation::Translation;
use crate::batch::Values;
use crate::encoding::output::PIECE_BYTES;
use crate::format::{Compression, Encoding};
use crate::growing::SLICE_BYTES;
use crate::schema::PhysicalType;

/// What was chosen for a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    encoding: Encoding,
    fallback: Encoding,
    /// Rows of the following chunks that the choice is still valid for; `None` for the chunk that it was made for.
    rows_left: Option<u64>,
}

/// Each chunk gets a choice of its own, unless chunks are small: then choosing would cost more than everything else. A
/// choice for fewer rows than this stays valid for `CHOICE_LASTS` times as many rows.
const CHOICE_ROWS: u64 = 20_000;
const CHOICE_LASTS: u64 = 16;

/// How values are encoded, once there are values.
#[derive(Debug)]
pub(super) struct Coding {
    /// Of the open page.
    pub(super) encoding: Encoding,
    pub(super) encoder: Box<Encoder>,
    pub(super) fallback: Encoding,
    pub(super) dictionary: Option<Box<DictionaryBuilder>>,
    /// The dictionary was chosen for this chunk.
    is_chosen: bool,
    /// No more pages may use the dictionary.
    pub(super) is_leaving: bool,
    /// The user asked for the dictionary.
    pub(super) is_asked: bool,
    /// A page was ended that refers to the dictionary.
    has_pages: bool,
    /// Bytes of indices in pages, and of the same values in PLAIN.
    index_bytes: usize,
    plain_bytes: usize,
    /// Values encoded with the dictionary, and those of the current part that have an index.
    values: usize,
    interned: usize,
    /// A dictionary that was given up with its first page.
    undone: Option<Box<Undone>>,
    /// What the dictionary has of that of the batch.
    translation: Option<Box<Translation>>,
}

/// The values of a page that is encoded again, without its dictionary.
#[derive(Debug)]
pub(super) struct Undone {
    entries: Values,
    indices: Vec<Vec<u32>>,
    /// How many of the first piece's indices are done.
    done: usize,
}

impl Coding {
    pub(super) fn new(choice: Chosen, physical_type: PhysicalType, is_asked: bool) -> Result<Coding> {
        let dictionary = (choice.encoding == Encoding::RleDictionary).then(|| {
            // Where it ends is decided between rows: a row may have any size, and is never split.
            let limits = DictionaryLimits { entries: DICTIONARY_MAX, bytes: DICTIONARY_MAX };
            Box::new(DictionaryBuilder::new(physical_type, limits))
        });
        Ok(Coding {
            encoding: choice.encoding,
            encoder: Box::new(Encoder::new(choice.encoding, physical_type)?),
            fallback: choice.fallback,
            is_chosen: dictionary.is_some(),
            dictionary,
            is_leaving: false,
            is_asked,
            has_pages: false,
            index_bytes: 0,
            plain_bytes: 0,
            values: 0,
            interned: 0,
            undone: None,
            translation: None,
        })
    }

    /// Encodes values that take `bytes` in PLAIN. False if the budget is spent in the middle of a long one, or while a
    /// dictionary grows: then pass the same values and indices again.
    pub(super) fn take(
        &mut self,
        values: Slice<'_>,
        bytes: usize,
        indices: &mut Vec<u32>,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let is_long = values.len() == 1 && bytes > SLICE_BYTES;
        if self.encoding != Encoding::RleDictionary {
            return put(&mut self.encoder, values, is_long, budget);
        }
        let Some(dictionary) = &mut self.dictionary else { return Err(Error::internal("no dictionary")) };
        if self.interned == 0 {
            indices.clear();
        }
        while self.interned < values.len() {
            let interned = dictionary.intern(values.part(self.interned..values.len()), indices, budget)?;
            self.interned += interned.values;
            if interned.full {
                return Err(Error::too_large("a row whose values do not fit a dictionary"));
            }
            if self.interned < values.len() && budget.is_spent() {
                return Ok(false);
            }
        }
        self.plain_bytes += bytes;
        self.values += core::mem::take(&mut self.interned);
        put(&mut self.encoder, Slice::Indices(indices), false, budget)
    }

    /// Whether values of a batch of `rows` are worth being [translated](Coding::take_translated).
    pub(super) fn translates(&self, entries: &Values, rows: usize) -> bool {
        self.encoding == Encoding::RleDictionary && Translation::is_worth_it(entries, rows)
    }

    /// Encodes values that are indices of a batch's dictionary; as [`take`](Coding::take).
    pub(super) fn take_translated(
        &mut self,
        (of_batch, entries): (&[u32], &Arc<Values>),
        bytes: usize,
        (gathered, indices): (&mut Gathered, &mut Vec<u32>),
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let Some(dictionary) = &mut self.dictionary else { return Err(Error::internal("no dictionary")) };
        if !self.translation.as_ref().is_some_and(|translation| translation.is_of(entries)) {
            self.translation = Some(Box::new(Translation::new(entries)));
        }
        let Some(translation) = &mut self.translation else { return Err(Error::internal("no translation")) };
        if !translation.learn((of_batch, entries), dictionary, (gathered, indices), budget)? {
            return Ok(false);
        }
        translation.translate(of_batch, indices)?;
        self.plain_bytes += bytes;
        self.values += of_batch.len();
        put(&mut self.encoder, Slice::Indices(indices), false, budget)
    }

    /// The entries of the batch's dictionary that the page has had for the first time in the part that was translated last.
    pub(super) fn fresh(&self) -> &[u32] {
        self.translation.as_ref().map_or(&[], |translation| translation.fresh())
    }

    /// Bytes that are held of a translation.
    pub(super) fn translation_held(&self) -> usize {
        self.translation.as_ref().map_or(0, |translation| translation.held())
    }

    /// Forgets what can be found out again.
    pub(super) fn release_translation(&mut self) {
        self.translation = None;
    }

    /// Bytes of values that may be encoded again, without the dictionary.
    pub(super) fn undone_bytes_max(&self) -> usize {
        if self.dictionary.is_some() && !self.has_pages || self.undone.is_some() {
            self.plain_bytes
        } else {
            0
        }
    }

    /// Whether a dictionary was chosen, and left.
    pub(super) fn has_left_chosen(&self) -> bool {
        self.is_chosen && self.encoding != Encoding::RleDictionary
    }

    /// Whether the dictionary is larger than it should be, as it is written or as it is read.
    pub(super) fn is_beyond(&self, (bytes, decoded): (usize, usize)) -> bool {
        let is_used = self.encoding == Encoding::RleDictionary;
        let is_beyond = |it: &DictionaryBuilder| it.bytes() > bytes || it.decoded_bytes() > decoded;
        is_used && self.dictionary.as_deref().is_some_and(is_beyond)
    }

    /// Gives up a dictionary that does not pay in its first page, in a chunk of at most `chunk_values`. The page's
    /// values are encoded again, unless they take more than `bytes_max`.
    pub(super) fn give_up(
        &mut self,
        physical_type: PhysicalType,
        (chunk_values, bytes_max): (u64, usize),
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        let Some(dictionary) = &self.dictionary else { return Ok(()) };
        let is_first = self.encoding == Encoding::RleDictionary && self.index_bytes == 0;
        let is_small = self.plain_bytes <= bytes_max.min(PIECE_BYTES) && dictionary.has_values();
        if !is_first || !is_small || self.pays(self.encoder.bytes(), chunk_values) {
            return Ok(());
        }
        let encoder = Encoder::new(self.fallback, physical_type)?;
        let indices = core::mem::replace(&mut *self.encoder, encoder).into_indices();
        if let Some(dictionary) = self.dictionary.take() {
            let entries = dictionary.into_values(budget)?;
            self.undone = Some(Box::new(Undone { entries, indices, done: 0 }));
        }
        self.translation = None;
        (self.encoding, self.is_leaving) = (self.fallback, false);
        Ok(())
    }

    /// Takes the undone values, until all are encoded again.
    pub(super) fn take_undone(&mut self) -> Option<Box<Undone>> {
        self.undone.take()
    }

    /// Puts the undone values back: not all are encoded again yet.
    pub(super) fn keep_undone(&mut self, undone: Box<Undone>) {
        self.undone = Some(undone);
    }

    /// Decides how the next page is encoded, in a chunk of at most `chunk_values`.
    pub(super) fn end_page(
        &mut self,
        physical_type: PhysicalType,
        body: &Body,
        chunk_values: u64,
    ) -> Result<()> {
        if let Some(translation) = &mut self.translation {
            translation.end_page();
        }
        if self.dictionary.is_none() || self.encoding != Encoding::RleDictionary {
            return Ok(());
        }
        self.has_pages = true;
        self.index_bytes += body.len();
        if self.is_leaving || !self.pays(self.index_bytes, chunk_values) {
            self.leave(physical_type)?;
        }
        Ok(())
    }

    /// Encodes what follows without the dictionary. The open page has no values.
    pub(super) fn leave(&mut self, physical_type: PhysicalType) -> Result<()> {
        self.encoding = self.fallback;
        self.translation = None;
        *self.encoder = Encoder::new(self.fallback, physical_type)?;
        self.is_leaving = false;
        if !self.has_pages {
            self.dictionary = None;
        }
        Ok(())
    }

    /// Whether a dictionary and `index_bytes` of indices will be smaller than PLAIN once the chunk has `chunk_values`.
    /// The more values, the fewer of them are new; the estimate assumes that all are equally frequent, which gives the
    /// most new ones.
    fn pays(&self, index_bytes: usize, chunk_values: u64) -> bool {
        let Some(dictionary) = &self.dictionary else { return false };
        let (values, entries) = (u64_of(self.values).max(1), u64_of(dictionary.len()).max(1));
        let all = chunk_values.min(CHUNK_VALUES).max(values);
        let wide = |number: u64| u128::from(number);
        let again = wide(values.saturating_sub(entries));
        let all_entries =
            wide(all) * wide(entries) * wide(values) / (wide(entries) * wide(values) + wide(all) * again);
        let bits = |entries: u128| u128::from(u128::BITS - entries.leading_zeros()).max(1);
        let indices =
            wide(u64_of(index_bytes)) * wide(all) * bits(all_entries) / wide(values) / bits(wide(entries));
        let dictionary_bytes =
            wide(u64_of(dictionary.bytes())) * all_entries.max(wide(entries)) / wide(entries);
        self.is_asked
            || indices + dictionary_bytes < wide(u64_of(self.plain_bytes)) * wide(all) / wide(values)
    }
}

impl Undone {
    /// The next values, at most a part's worth, and their bytes in PLAIN. `None` if there are no more.
    pub(super) fn next<'a>(
        &'a self,
        gathered: &'a mut Gathered,
        budget: &mut Budget<'_>,
    ) -> Result<Option<(Slice<'a>, usize)>> {
        let Some(piece) = self.indices.first() else { return Ok(None) };
        let indices = &piece[self.done..piece.len().min(self.done + PART_ENTRIES)];
        let indices = Gathered::at_once(&self.entries, indices);
        let values = gathered.look_up(&self.entries, indices, budget)?;
        Ok(Some(part_of(values)))
    }

    /// Marks `values` as done.
    pub(super) fn end_part(&mut self, values: usize) {
        self.done += values;
        if self.indices.first().is_some_and(|piece| piece.len() == self.done) {
            self.indices.remove(0);
            self.done = 0;
        }
    }
}

impl Chosen {
    /// The choice of an ended chunk, for the next one, while it is valid.
    pub(super) fn after(mut self, rows: u64) -> Option<Chosen> {
        self.rows_left = match self.rows_left {
            None if rows >= CHOICE_ROWS => Some(0),
            None => Some(rows.saturating_mul(CHOICE_LASTS)),
            Some(left) => Some(left.saturating_sub(rows)),
        };
        (self.rows_left != Some(0)).then_some(self)
    }
}

/// Whether a choice looks at values.
pub(super) fn looks_at_values(column: &ColumnOptions) -> bool {
    column.encoding.is_none_or(|encoding| encoding == Encoding::RleDictionary && column.fallback.is_none())
}

/// Chooses the encoding of a chunk that begins with these values and has `chunk_values`, if known.
pub(super) fn choose(
    column: &ColumnOptions,
    (version, plain_strings, dictionary_bytes): (PageVersion, bool, usize),
    physical_type: PhysicalType,
    values: Slice<'_>,
    chunk_values: u64,
    budget: &mut Budget<'_>,
) -> Result<Chosen> {
    if let (Some(encoding), Some(fallback)) = (column.encoding, column.fallback) {
        return Ok(Chosen { encoding, fallback, rows_left: None });
    }
    let asked = Asked {
        encoding: column.encoding,
        dictionary_bytes: if column.dictionary { dictionary_bytes } else { 0 },
        compressed: column.compression != Compression::Uncompressed,
        v2: version == PageVersion::V2,
        plain_strings,
    };
    let choice = Choice::new(physical_type, asked, values, chunk_values, budget)?;
    Ok(Chosen { encoding: choice.encoding, fallback: choice.fallback, rows_left: None })
}

/// More than any dictionary has, and within what the format can count.
const DICTIONARY_MAX: usize = 1 << 30;

fn put(encoder: &mut Encoder, mut values: Slice<'_>, is_long: bool, budget: &mut Budget<'_>) -> Result<bool> {
    while !values.is_empty() {
        let taken = encoder.put(values, budget)?;
        values = values.part(taken..values.len());
        if is_long && !values.is_empty() && budget.is_spent() {
            return Ok(false);
        }
    }
    Ok(true)
}
