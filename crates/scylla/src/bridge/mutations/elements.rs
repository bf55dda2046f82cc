//! The cells of a column in a row, of its natural value and of what is listed beside it.
//!
//! Natural values have what is alive and usual, in order; the list has what is deleted, or unusual, in order, too. What is deleted is
//! right before what is listed next and alive, or at the end.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Bytes, Error, Result};

use super::decode::{Decoder, Effort, Found, Progress};
use super::encode::{Lack, LeafReader, complete, elements, encode, readers};
use super::keys::builders;
use super::leaf::Source;
use super::listed::{List, Listed};
use super::plan::ColumnPlan;
use super::shape::{Form, Multi};
use crate::sstable::batch::{Deletion, Expiry};

/// A cell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell<'a> {
    pub(super) path: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    /// It has no value.
    pub(super) is_dead: bool,
    pub(super) write_time: Option<i64>,
    pub(super) expiry: Option<Expiry>,
    pub(super) local_deletion: Option<u32>,
}

/// The cells of one row, as they are found.
#[derive(Debug, Default)]
pub(super) struct Merging {
    natural: Vec<Natural>,
    bytes: Vec<u8>,
    /// The cells in order: the number of a natural one, and of a listed one.
    order: Vec<(Option<usize>, Option<usize>)>,
    pub(super) deletion: Option<Deletion>,
    multi: Option<Multi>,
}

/// An element of a natural value: its path and its value, `None` for a null.
#[derive(Debug, Clone, Default)]
struct Natural {
    path: Range<usize>,
    path_lack: Lack,
    value: Option<Range<usize>>,
    value_lack: Lack,
}

impl Natural {
    fn of_value(path: Range<usize>, (value, value_lack): (Option<Range<usize>>, Lack)) -> Natural {
        Natural { path, value, value_lack, path_lack: None }
    }
}

impl Merging {
    /// Reads the natural value of a row, and what is listed for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) if one has what the other lacks.
    pub(super) fn read(
        &mut self,
        column: &ColumnPlan,
        readers: &mut [LeafReader],
        list: &List,
        listed: Range<usize>,
    ) -> Result<()> {
        self.natural.clear();
        self.bytes.clear();
        self.order.clear();
        (self.deletion, self.multi) = (None, Some(column.multi));
        let mut cells = Vec::new();
        for at in listed {
            let Some(one) = list.get(at) else { continue };
            match (one.deleted_at, one.local_deletion) {
                (Some(timestamp), Some(local_deletion)) if self.deletion.is_none() => {
                    self.deletion = Some(Deletion { timestamp, local_deletion });
                }
                (Some(_), _) => return Err(Error::corrupt("a deletion without its time, or a second one")),
                (None, _) => cells.push((at, one)),
            }
        }
        self.read_natural(column, readers)?;
        match column.multi {
            Multi::No => self.merge_one(&cells),
            Multi::List => self.merge_list(&cells),
            Multi::User => self.merge_fields(&cells, list),
            Multi::Set | Multi::Map => self.merge_keys(column, &cells, list),
        }
    }

    fn read_natural(&mut self, column: &ColumnPlan, readers: &mut [LeafReader]) -> Result<()> {
        let shapes = &column.shapes;
        if readers.first().map_or(Ok(0), LeafReader::definition)? == 0 {
            return skip(readers);
        }
        let Merging { natural, bytes, .. } = self;
        let form = &shapes.root().form;
        match (column.multi, form) {
            (Multi::No, _) => {
                natural.push(Natural::of_value(0..0, add(column, 0, readers, bytes)?));
                Ok(())
            }
            (Multi::User, Form::Fields(fields)) => {
                for (number, field) in (0_u16..).zip(fields) {
                    let start = bytes.len();
                    bytes.extend(number.to_be_bytes());
                    let value = add(column, *field, readers, bytes)?;
                    if value.0.is_some() {
                        natural.push(Natural::of_value(start..start + 2, value));
                    }
                }
                Ok(())
            }
            _ => elements(shapes, 0, readers, |readers| {
                natural.push(match (column.multi, form) {
                    (Multi::List, Form::List(element)) => {
                        Natural::of_value(0..0, add(column, *element, readers, bytes)?)
                    }
                    (Multi::Set, Form::List(element)) => {
                        let (path, path_lack) = add(column, *element, readers, bytes)?;
                        let path = path.ok_or_else(null_key)?;
                        Natural { path, path_lack, value: Some(0..0), value_lack: None }
                    }
                    (Multi::Map, Form::Map(key, value)) => {
                        let (path, path_lack) = add(column, *key, readers, bytes)?;
                        let path = path.ok_or_else(null_key)?;
                        Natural { path_lack, ..Natural::of_value(path, add(column, *value, readers, bytes)?) }
                    }
                    _ => return Err(Error::internal("a collection of another form")),
                });
                Ok(())
            }),
        }
    }

    fn merge_one(&mut self, cells: &[(usize, &Listed)]) -> Result<()> {
        match (self.natural.is_empty(), cells) {
            (true, []) => Ok(()),
            (true, [(at, _)]) => {
                self.order.push((None, Some(*at)));
                Ok(())
            }
            (false, []) => {
                self.order.push((Some(0), None));
                Ok(())
            }
            (false, [(at, one)]) if one.local_deletion.is_none() => {
                self.order.push((Some(0), Some(*at)));
                Ok(())
            }
            _ => Err(Error::corrupt("a cell that is listed twice, or deleted and alive")),
        }
    }

    fn merge_list(&mut self, cells: &[(usize, &Listed)]) -> Result<()> {
        let mut next = 0;
        for (at, one) in cells {
            let natural = one.local_deletion.is_none().then_some(next);
            next += usize::from(natural.is_some());
            self.order.push((natural, Some(*at)));
        }
        if next == self.natural.len() {
            Ok(())
        } else {
            Err(Error::corrupt("a list whose elements are not those in the list of cells"))
        }
    }

    fn merge_fields(&mut self, cells: &[(usize, &Listed)], list: &List) -> Result<()> {
        let mut next = 0;
        for (at, one) in cells {
            let path = list.slice(&one.path).ok_or_else(no_path)?;
            while self.path(next).is_some_and(|natural| natural < path) {
                self.order.push((Some(next), None));
                next += 1;
            }
            let is_same = self.path(next) == Some(path);
            if is_same && one.local_deletion.is_some() {
                return Err(Error::corrupt("a field that is deleted and alive"));
            }
            self.order.push((is_same.then_some(next), Some(*at)));
            next += usize::from(is_same);
        }
        self.order.extend((next..self.natural.len()).map(|natural| (Some(natural), None)));
        Ok(())
    }

    fn merge_keys(&mut self, column: &ColumnPlan, cells: &[(usize, &Listed)], list: &List) -> Result<()> {
        let mut next = 0;
        let mut before = Vec::new();
        for (at, one) in cells {
            if one.local_deletion.is_some() {
                before.push(*at);
                continue;
            }
            let path = list.slice(&one.path).ok_or_else(no_path)?;
            let place = |path: &[u8]| (next..self.natural.len()).find(|at| self.path(*at) == Some(path));
            let found = match place(path) {
                Some(found) => found,
                None => {
                    let Some(same) = natural_path(column, path)? else {
                        before.push(*at);
                        continue;
                    };
                    place(&same)
                        .ok_or_else(|| Error::corrupt("an element that is listed, and is not there"))?
                }
            };
            self.order.extend((next..found).map(|natural| (Some(natural), None)));
            self.order.extend(before.drain(..).map(|at| (None, Some(at))));
            self.order.push((Some(found), Some(*at)));
            next = found + 1;
        }
        self.order.extend((next..self.natural.len()).map(|natural| (Some(natural), None)));
        self.order.extend(before.drain(..).map(|at| (None, Some(at))));
        Ok(())
    }

    fn path(&self, natural: usize) -> Option<&[u8]> {
        self.bytes.get(self.natural.get(natural)?.path.clone())
    }

    /// Calls `each` for each cell, in order.
    ///
    /// # Errors
    ///
    /// Those of `each`; [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for a cell that is alive and has no value.
    pub(super) fn each(&self, list: &List, mut each: impl FnMut(Cell<'_>) -> Result<()>) -> Result<()> {
        for (natural, listed) in &self.order {
            let natural = natural.and_then(|at| self.natural.get(at));
            let listed = listed.and_then(|at| list.get(at));
            let mut cell = Cell::default();
            if let Some(natural) = natural {
                if listed.is_none_or(|listed| listed.path.is_none()) {
                    complete(natural.path_lack)?;
                }
                if listed.is_none_or(|listed| listed.value.is_none()) {
                    complete(natural.value_lack)?;
                }
                cell.path = self.bytes.get(natural.path.clone());
                cell.value = natural.value.clone().and_then(|value| self.bytes.get(value));
            }
            if let Some(listed) = listed {
                cell.path = list.slice(&listed.path).or(cell.path);
                cell.value = list.slice(&listed.value).or(cell.value);
                cell.is_dead = listed.local_deletion.is_some();
                (cell.write_time, cell.expiry) = (listed.write_time, listed.expiry);
                cell.local_deletion = listed.local_deletion;
            }
            if self.multi == Some(Multi::No) {
                cell.path = None;
            } else if cell.path.is_none() {
                return Err(no_path());
            }
            if cell.value.is_none() && !cell.is_dead {
                return Err(Error::corrupt("a cell without a value"));
            }
            each(cell)?;
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn cells(&self) -> usize {
        self.order.len() + 1
    }
}

fn no_path() -> Error {
    Error::corrupt("a cell of a collection without its path")
}

fn null_key() -> Error {
    Error::corrupt("a null in the keys of a collection")
}

/// Appends the next value of a node; where it is, or `None` for a null; and what it lacks.
fn add(
    column: &ColumnPlan,
    node: usize,
    readers: &mut [LeafReader],
    bytes: &mut Vec<u8>,
) -> Result<(Option<Range<usize>>, Lack)> {
    let (start, mut lack) = (bytes.len(), None);
    let is_there = encode(&column.shapes, node, readers, bytes, &mut lack)?;
    Ok((is_there.then_some(start..bytes.len()), lack))
}

/// Goes to the next row.
fn skip(readers: &mut [LeafReader]) -> Result<()> {
    for reader in readers {
        reader.take()?;
        while reader.repetition() != 0 {
            reader.take()?;
        }
    }
    Ok(())
}

/// The bytes that the natural key of an element is written as, whose own bytes are these. `None` if it has none.
fn natural_path(column: &ColumnPlan, path: &[u8]) -> Result<Option<Vec<u8>>> {
    let shapes = &column.shapes;
    let (Form::List(node) | Form::Map(node, _)) = &shapes.root().form else { return Ok(None) };
    let bytes = Bytes::copy_from_slice(path);
    let mut leaves = builders(column, core::slice::from_ref(&bytes));
    let source = Source { bytes: &bytes, buffer: 0 };
    let mut work = Effort::new(usize::MAX);
    let found = Decoder::default().begin(shapes, *node, source, 0..path.len(), 0, &mut leaves, &mut work);
    if found == Progress::Done(Found::Nothing) {
        return Ok(None);
    }
    let mut columns = Vec::new();
    for (number, leaf) in leaves.iter_mut().enumerate() {
        if leaf.entries() == 0 {
            leaf.push_null(0, 0);
        }
        columns.push(leaf.finish(number, 1)?);
    }
    let mut same = Vec::new();
    encode(shapes, *node, &mut readers(shapes, &columns), &mut same, &mut None)?;
    Ok(Some(same))
}
