//! The statements of collections and user-defined types that are not frozen, which have a cell for each element or field.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};

use super::out::{RowStatements, Statement, push};
use super::pack;
use super::row::{ColumnShape, Life, Making, Row, append, time_of};
use super::texts::Kind;
use crate::bridge::mutations::shape::Multi;
use crate::sstable::batch::{Cells, Deletion, NO_TIMESTAMP, number_of};

/// An element, or a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Element {
    cell: usize,
    time: i64,
    life: Life,
}

impl Element {
    /// Whether one statement can write both.
    fn is_like(&self, other: &Element) -> bool {
        (self.time, self.life) == (other.time, other.life)
    }

    fn is_alive_at(&self, time: i64) -> bool {
        self.time == time && self.life != Life::Dead
    }
}

impl Making {
    /// Adds what a row has in a column of many cells: to the row's groups, or as statements of its own.
    pub(super) fn complex(
        &mut self,
        shape: &ColumnShape,
        row: &Row<'_>,
        column: usize,
        range: Range<usize>,
        out: &mut RowStatements,
    ) -> Result<()> {
        let Some(cells) = row.batch.columns.get(column) else { return Ok(()) };
        let deletion = cells.deletions.get(row.entry);
        if range.is_empty() && deletion.is_none() {
            return Ok(());
        }
        let element = |cell| {
            let time = time_of(cells, cell, row.time)?;
            Ok(Element { cell, time, life: Life::of(cells, cell, row.expiry, row.at) })
        };
        let mut elements = range.map(element).collect::<Result<Vec<_>>>()?;
        let of = Of { shape, row, column, cells };
        if shape.multi == Multi::List && self.keeps_list_keys {
            return self.list_by_keys(&of, &elements, deletion, out);
        }
        if shape.multi == Multi::List {
            elements.retain(|element| element.life != Life::Dead);
            return self.list(&of, &elements, deletion, out);
        }
        // What was written as a whole: a microsecond after all before it was deleted.
        let next = deletion.and_then(|deletion| deletion.timestamp.checked_add(1));
        let whole = next.and_then(|next| elements.iter().find(|it| it.is_alive_at(next)).copied());
        match (whole, deletion) {
            (Some(first), _) => {
                let whole: Vec<Element> = elements.extract_if(.., |it| it.is_like(&first)).collect();
                let start = self.values.len();
                pack::value(&mut self.values, |out| of.collection(&whole, out))?;
                self.add(first.time, ttl_of(first.life), column, Some(start));
            }
            (None, Some(deletion)) => self.deleted(&of, deletion, out),
            (None, None) => {}
        }
        while let Some(first) = elements.first().copied() {
            let alike: Vec<Element> = elements.extract_if(.., |it| it.is_like(&first)).collect();
            of.change(&alike, &first, out)?;
        }
        Ok(())
    }

    /// Elements in their order; those that are next to each other and were written at one time with one TTL are one statement.
    fn list(
        &mut self,
        of: &Of<'_>,
        elements: &[Element],
        deletion: Option<Deletion>,
        out: &mut RowStatements,
    ) -> Result<()> {
        let next = deletion.and_then(|deletion| deletion.timestamp.checked_add(1));
        let is_whole = elements.first().is_some_and(|first| Some(first.time) == next);
        if let Some(deletion) = deletion.filter(|_| !is_whole) {
            self.deleted(of, deletion, out);
        }
        let number = number_of(of.column);
        for (run, alike) in elements.chunk_by(Element::is_like).enumerate() {
            let Some(first) = alike.first() else { continue };
            let kind = if run == 0 && is_whole { Kind::Whole(number) } else { Kind::Add(number) };
            let start = out.values.len();
            pack::ttl(&mut out.values, ttl_of(first.life).unwrap_or(0));
            pack::value(&mut out.values, |out| of.collection(alike, out))?;
            out.values.extend_from_slice(of.row.key);
            let values = start..out.values.len();
            let list = Some(number);
            out.statements.push(Statement { id: kind.id(), write_time: first.time, values, list });
        }
        Ok(())
    }

    /// Each element by its key, dead or alive, after what deletes those before it.
    fn list_by_keys(
        &mut self,
        of: &Of<'_>,
        elements: &[Element],
        deletion: Option<Deletion>,
        out: &mut RowStatements,
    ) -> Result<()> {
        if let Some(deletion) = deletion {
            self.deleted(of, deletion, out);
        }
        for element in elements {
            let start = out.values.len();
            pack::ttl(&mut out.values, ttl_of(element.life).unwrap_or(0));
            pack::bytes(&mut out.values, of.path(element)?)?;
            match element.life {
                Life::Alive(_) => of.value(element, &mut out.values)?,
                Life::Dead => pack::null(&mut out.values),
            }
            out.values.extend_from_slice(of.row.key);
            push(out, start, Kind::Element(number_of(of.column)), element.time);
        }
        Ok(())
    }

    /// A deletion after which nothing was written: a null a microsecond later, if a row was inserted then, as that is how it came about.
    fn deleted(&mut self, of: &Of<'_>, deletion: Deletion, out: &mut RowStatements) {
        let row = of.row;
        if row.time != NO_TIMESTAMP && deletion.timestamp.checked_add(1) == Some(row.time) {
            return self.add(row.time, None, of.column, None);
        }
        let start = out.values.len();
        out.values.extend_from_slice(row.key);
        push(out, start, Kind::Delete(number_of(of.column)), deletion.timestamp);
    }
}

fn ttl_of(life: Life) -> Option<u32> {
    match life {
        Life::Alive(ttl) => Some(ttl),
        Life::Dead => None,
    }
}

/// A column of a row.
struct Of<'a> {
    shape: &'a ColumnShape,
    row: &'a Row<'a>,
    column: usize,
    cells: &'a Cells,
}

impl Of<'_> {
    /// A statement for elements that were written, or deleted, at one time.
    fn change(&self, elements: &[Element], first: &Element, out: &mut RowStatements) -> Result<()> {
        let column = number_of(self.column);
        let start = out.values.len();
        let kind = match (self.shape.multi, first.life) {
            (Multi::User, life) => {
                pack::ttl(&mut out.values, ttl_of(life).unwrap_or(0));
                self.fields(elements, &mut out.values, pack::unset)?;
                Kind::Fields(column)
            }
            (_, Life::Alive(ttl)) => {
                pack::ttl(&mut out.values, ttl);
                pack::value(&mut out.values, |out| self.collection(elements, out))?;
                Kind::Add(column)
            }
            (_, Life::Dead) => {
                pack::value(&mut out.values, |out| self.paths(elements, out))?;
                Kind::Remove(column)
            }
        };
        out.values.extend_from_slice(self.row.key);
        push(out, start, kind, first.time);
        Ok(())
    }

    /// These elements as a value; of a user-defined type, with nulls for other fields.
    fn collection(&self, elements: &[Element], out: &mut Vec<u8>) -> Result<()> {
        match self.shape.multi {
            Multi::User => return self.fields(elements, out, pack::null),
            Multi::Set => return self.paths(elements, out),
            Multi::List | Multi::Map | Multi::No => {}
        }
        out.extend(pack::count(elements.len())?);
        for element in elements {
            if self.shape.multi == Multi::Map {
                pack::bytes(out, self.path(element)?)?;
            }
            self.value(element, out)?;
        }
        Ok(())
    }

    /// The elements of a set, or the keys of a map, as a set.
    fn paths(&self, elements: &[Element], out: &mut Vec<u8>) -> Result<()> {
        out.extend(pack::count(elements.len())?);
        elements.iter().try_for_each(|element| pack::bytes(out, self.path(element)?))
    }

    /// All fields of the type, in order: those that are here, and `lack` for others.
    fn fields(&self, elements: &[Element], out: &mut Vec<u8>, lack: fn(&mut Vec<u8>)) -> Result<()> {
        let mut elements = elements.iter().peekable();
        for number in 0..self.shape.fields {
            let next = match elements.peek() {
                Some(element) => Some(self.field(element)?),
                None => None,
            };
            match elements.next_if(|_| next == Some(u64_of(number))) {
                None => lack(out),
                Some(element) if element.life == Life::Dead => pack::null(out),
                Some(element) => self.value(element, out)?,
            }
        }
        match elements.next() {
            None => Ok(()),
            Some(_) => Err(Error::corrupt("a field that its user-defined type does not have")),
        }
    }

    /// The number of the field that a cell is.
    fn field(&self, element: &Element) -> Result<u64> {
        match <[u8; 2]>::try_from(self.path(element)?) {
            Ok(number) => Ok(u16::from_be_bytes(number).into()),
            Err(_) => Err(Error::corrupt("a field whose number has no 16 bits")),
        }
    }

    fn value(&self, element: &Element, out: &mut Vec<u8>) -> Result<()> {
        pack::value(out, |out| {
            append(self.cells, element.cell, out);
            Ok(())
        })
    }

    fn path(&self, element: &Element) -> Result<&[u8]> {
        self.cells.paths.get(element.cell).ok_or_else(|| Error::corrupt("an element without a path"))
    }
}
