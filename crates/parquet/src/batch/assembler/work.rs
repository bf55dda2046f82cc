//! A field's work, in slices.

use alloc::vec::Vec;

use marquetry_base::{Bitmap, Budget, Buffer, Error, Limits, Release, Result, release_all};
use marquetry_kernels::bits;
use marquetry_kernels::levels::{self, Entries};

use super::plan::{Field, Kind, Sibling};
use super::slices::{SLICE, disagree};
use super::values::Spread;
use crate::batch::store::Store;
use crate::batch::{ColumnBatch, Values};

/// The part of a batch that a field is built from.
#[derive(Clone, Copy)]
pub(super) struct Leaf<'a> {
    pub(super) column: &'a ColumnBatch,
    /// `None` for a flat leaf.
    entries: Option<Entries<'a>>,
}

impl<'a> Leaf<'a> {
    pub(super) fn of(column: &'a ColumnBatch) -> Leaf<'a> {
        let entries = column.levels.as_ref().map(|levels| Entries {
            definition: &levels.definition,
            repetition: levels.repetition.as_deref(),
        });
        Leaf { column, entries }
    }
}

/// Memory for one field's arrays.
#[derive(Debug, Default)]
pub(super) struct Memory {
    validity: Store<u8>,
    offsets: Store<i32>,
    spread: Spread,
}

/// Levels of two leaves to compare, if they cannot be compared in place.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    left: Kept,
    right: Kept,
}

/// Levels of a leaf's entries that count; or of a flat leaf, which has no levels.
#[derive(Debug, Default)]
struct Kept {
    definition: Vec<u8>,
    repetition: Vec<u8>,
    count: usize,
}

/// A finished field.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) length: usize,
    pub(super) nulls: usize,
    pub(super) validity: Option<Bitmap>,
    pub(super) offsets: Option<Buffer<i32>>,
    /// Elements of all slots.
    pub(super) elements: usize,
    pub(super) values: Option<Values>,
}

/// The work on the field after those that are finished, and how far it is.
#[derive(Debug, Default)]
pub(super) struct Task {
    stage: Stage,
    /// The next entry, …
    entry: usize,
    /// … the slots before it, …
    slot: usize,
    /// … and the values, or elements, found in them.
    found: usize,
    pub(super) made: Made,
    /// Which slots have a value, if [`Made::validity`] does not say.
    there: Option<Bitmap>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Keeping those entries of the previous leaf that count.
    #[default]
    Left,
    /// The same of the field's own leaf.
    Right,
    Agree,
    Validity,
    Offsets,
    /// Which slots of a required leaf have a value.
    There,
    Values,
}

impl Release for Memory {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.validity, &mut self.offsets, &mut self.spread], budget)
    }
}

impl Release for Scratch {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Scratch { left, right } = self;
        let parts: &mut [&mut dyn Release] =
            &mut [&mut left.definition, &mut left.repetition, &mut right.definition, &mut right.repetition];
        release_all(parts, budget)
    }
}

impl Release for Made {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.validity, &mut self.offsets, &mut self.values], budget)
    }
}

impl Release for Task {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.made, &mut self.there], budget)
    }
}

/// What is wrong, and where in the batch.
pub(super) struct Fault {
    pub(super) error: Error,
    pub(super) leaf: Option<usize>,
    pub(super) row: Option<usize>,
}

impl Fault {
    pub(super) fn of(self, leaf: usize) -> Fault {
        Fault { leaf: Some(leaf), ..self }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault { error, leaf: None, row: None }
    }
}

/// How many slots are null, and which are present; `None` if none is null.
type Presence = (usize, Option<Bitmap>);

/// One field's work.
pub(super) struct Work<'w> {
    pub(super) field: &'w Field,
    /// Slots.
    pub(super) length: usize,
    pub(super) task: &'w mut Task,
    pub(super) memory: &'w mut Memory,
    pub(super) scratch: &'w mut Scratch,
    pub(super) limits: &'w Limits,
}

impl Work<'_> {
    /// True while the field's leaf is compared with a sibling's.
    pub(super) fn compares(&self) -> bool {
        matches!(self.task.stage, Stage::Left | Stage::Right | Stage::Agree)
    }

    /// Does a slice. Returns how many entries it looked at, and whether that was the last.
    pub(super) fn slice(
        &mut self,
        leaf: Leaf<'_>,
        sibling: Option<(Leaf<'_>, Sibling)>,
    ) -> Result<(usize, bool), Fault> {
        let most = self.field.slots.repetition;
        let looked = match (self.task.stage, sibling) {
            (Stage::Left, Some((before, sibling))) => {
                let [has_lists, _] = sibling.has_lists;
                self.scratch.left.slice(before, has_lists, most, self.task, Stage::Right)?
            }
            (Stage::Right, Some((_, sibling))) => {
                let [_, has_lists] = sibling.has_lists;
                self.scratch.right.slice(leaf, has_lists, most, self.task, Stage::Agree)?
            }
            (Stage::Agree, Some((before, sibling))) => self.agree(before, leaf, sibling)?,
            (Stage::Left | Stage::Right | Stage::Agree, None) => {
                self.task.begin(Stage::Validity);
                0
            }
            (Stage::Validity, _) => self.validity(leaf)?,
            (Stage::Offsets, _) => self.offsets(leaf)?,
            (Stage::There, _) => self.there(leaf)?,
            (Stage::Values, _) if self.field.kind != Kind::Leaf => return Ok((0, true)),
            (Stage::Values, _) => {
                let there = self.task.there.as_ref().or(self.task.made.validity.as_ref());
                let progress = (&mut self.task.slot, &mut self.task.found);
                let (column, spread) = (leaf.column, &mut self.memory.spread);
                let (looked, values) = spread.slice(column, self.length, there, progress, self.limits)?;
                let is_made = values.is_some();
                self.task.made.values = values;
                return Ok((looked, is_made));
            }
        };
        Ok((looked, false))
    }

    /// Compares the leaf with its sibling.
    fn agree(&mut self, before: Leaf<'_>, leaf: Leaf<'_>, sibling: Sibling) -> Result<usize, Fault> {
        let [left, right] = [
            (&self.scratch.left, before, sibling.has_lists[0]),
            (&self.scratch.right, leaf, sibling.has_lists[1]),
        ]
        .map(|(kept, leaf, has_lists)| kept.entries(leaf, has_lists));
        let at = self.task.entry;
        let (one, other) = (left.part(at, SLICE), right.part(at, SLICE));
        let both = one.len().min(other.len());
        // If only one of them ends, the other has a row or an element too many.
        let differs =
            levels::differ(one, other, sibling.definition).or((one.len() != other.len()).then_some(both));
        if let Some(differs) = differs {
            let end = at + differs + 1;
            let begun = |entries: Entries<'_>| match entries.repetition {
                Some(repetition) => {
                    let until = &repetition[..repetition.len().min(end)];
                    until.len() - levels::count(until, 1)
                }
                None => entries.len().min(end),
            };
            // The row in which the first difference is: an extra element is in the earlier one.
            let row = begun(left).min(begun(right)).saturating_sub(1);
            return Err(Fault { error: disagree(), leaf: None, row: Some(row) });
        }
        self.task.entry += both;
        if both < SLICE {
            self.task.begin(Stage::Validity);
        }
        Ok(both)
    }

    fn validity(&mut self, leaf: Leaf<'_>) -> Result<usize, Fault> {
        let next = match self.field.kind {
            Kind::List { .. } | Kind::Map { .. } => Stage::Offsets,
            // A required field of a nullable struct: where the struct is null, its slot has no value.
            Kind::Leaf if !self.field.is_nullable && self.field.definition > self.field.slots.definition => {
                Stage::There
            }
            Kind::Leaf | Kind::Struct { .. } => Stage::Values,
        };
        if !self.field.is_nullable {
            self.task.begin(next);
            return Ok(0);
        }
        let (looked, found) = self.presence(leaf)?;
        if let Some((nulls, validity)) = found {
            (self.task.made.nulls, self.task.made.validity) = (nulls, validity);
            self.task.begin(next);
        }
        Ok(looked)
    }

    fn there(&mut self, leaf: Leaf<'_>) -> Result<usize, Fault> {
        let (looked, found) = self.presence(leaf)?;
        if let Some((_, there)) = found {
            self.task.there = there;
            self.task.begin(Stage::Values);
        }
        Ok(looked)
    }

    /// Determines a slice of which slots are present. Returns the result after the last slice.
    fn presence(&mut self, leaf: Leaf<'_>) -> Result<(usize, Option<Presence>), Fault> {
        let Some(entries) = leaf.entries else {
            if leaf.column.rows != self.length {
                return Err(disagree().into());
            }
            // In a flat leaf, anything nullable around a value is null exactly where the value is.
            return Ok((0, Some((leaf.column.nulls, leaf.column.validity.clone()))));
        };
        let part = entries.part(self.task.entry, SLICE);
        let (all, room) = (self.length + SLICE, self.task.slot + part.len());
        let (out, _) = self.memory.validity.room_of(all.div_ceil(8), 0, room.div_ceil(8))?;
        let (slots, there) =
            levels::validity(part, self.field.slots, self.field.definition, out, self.task.slot)
                .map_err(|_| Error::internal("no room for validity"))?;
        self.advance(part.len(), slots, there)?;
        if self.task.entry < entries.len() {
            return Ok((part.len(), None));
        }
        self.check_slots()?;
        let nulls = self.length - self.task.found;
        let bytes = self.length.div_ceil(8);
        let validity = match nulls {
            0 => None,
            _ => Some(Bitmap::new(self.memory.validity.share(bytes)?, 0, self.length)),
        };
        Ok((part.len(), Some((nulls, validity))))
    }

    /// Where each slot's elements start, and where the last one's end.
    fn offsets(&mut self, leaf: Leaf<'_>) -> Result<usize, Fault> {
        let (Some(entries), Kind::List { elements } | Kind::Map { elements, .. }) =
            (leaf.entries, self.field.kind)
        else {
            return Err(disagree().into());
        };
        let too_many = || Error::too_large("more than 2,147,483,647 elements in a batch");
        let part = entries.part(self.task.entry, SLICE);
        let before = i32::try_from(self.task.found).map_err(|_| too_many())?;
        let (out, filled) = self.memory.offsets.room_of(self.length + SLICE, self.task.slot, part.len())?;
        let (slots, found) =
            levels::offsets(part, self.field.slots, elements, before, out).map_err(|_| too_many())?;
        self.advance(part.len(), slots, found)?;
        if self.task.entry < entries.len() {
            return Ok(part.len() + filled / 2);
        }
        self.check_slots()?;
        let last = i32::try_from(self.task.found).map_err(|_| too_many())?;
        self.memory.offsets.room_of(self.length + SLICE, self.length, 1)?.0[0] = last;
        self.task.made.elements = self.task.found;
        self.task.made.offsets = Some(self.memory.offsets.share(self.length + 1)?);
        self.task.begin(Stage::Values);
        // New memory costs as much as entries of the same size.
        Ok(part.len() + filled / 2)
    }

    fn advance(&mut self, entries: usize, slots: usize, found: usize) -> Result<(), Fault> {
        self.task.entry += entries;
        self.task.slot += slots;
        self.task.found += found;
        if self.task.slot > self.length { Err(disagree().into()) } else { Ok(()) }
    }

    fn check_slots(&self) -> Result<(), Fault> {
        if self.task.slot == self.length { Ok(()) } else { Err(disagree().into()) }
    }
}

impl Task {
    fn begin(&mut self, stage: Stage) {
        self.stage = stage;
        (self.entry, self.slot, self.found) = (0, 0, 0);
    }
}

impl Kept {
    /// Keeps a slice of the entries that count, unless all do: those whose repetition level is at most `most`. After
    /// the last, the next stage begins.
    fn slice(
        &mut self,
        leaf: Leaf<'_>,
        has_lists: bool,
        most: u8,
        task: &mut Task,
        next: Stage,
    ) -> Result<usize, Fault> {
        let (at, length) = match leaf.entries {
            Some(entries) if has_lists => (task.entry, entries.len()),
            Some(_) => (0, 0),
            None => (task.entry, leaf.column.rows),
        };
        if at == 0 {
            self.count = 0;
            for levels in [&mut self.definition, &mut self.repetition] {
                if levels.capacity() < length {
                    // Allocated at once, and filled as needed.
                    *levels = Vec::new();
                    levels.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
                }
            }
        }
        let count = SLICE.min(length.saturating_sub(at));
        let room = self.count + count;
        for levels in [&mut self.definition, &mut self.repetition] {
            levels.resize(levels.len().max(room), 0);
        }
        let (definition, repetition) =
            (&mut self.definition[self.count..room], &mut self.repetition[self.count..room]);
        self.count += match leaf.entries {
            Some(entries) => {
                let part = entries.part(at, count);
                let levels = part.repetition.unwrap_or_default();
                levels::keep(part.definition, levels, most, definition, repetition).map_err(|_| disagree())?
            }
            // A flat leaf's rows. Anything nullable in or around it has level 1.
            None => {
                match &leaf.column.validity {
                    Some(validity) => bits::unpack_bool(validity.bytes(), validity.offset() + at, definition)
                        .map_err(|_| disagree())?,
                    None => definition.fill(1),
                }
                repetition.fill(0);
                count
            }
        };
        task.entry += count;
        if at + count >= length {
            task.begin(next);
        }
        Ok(count)
    }

    /// The entries that count: those that were kept, or all of the leaf's.
    fn entries<'k>(&'k self, leaf: Leaf<'k>, has_lists: bool) -> Entries<'k> {
        match leaf.entries {
            Some(entries) if !has_lists => entries,
            _ => Entries {
                definition: &self.definition[..self.count],
                repetition: Some(&self.repetition[..self.count]),
            },
        }
    }
}
