//! The elements of values that have a cell for each.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of;
use marquetry_base::{Error, Result};

use crate::sstable::marshal::MarshalType;

/// What a column's cells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cellular {
    /// One.
    One,
    List,
    Set,
    Map,
    User,
}

impl Cellular {
    pub(super) fn of(kind: &MarshalType) -> Cellular {
        match kind {
            MarshalType::List(_) => Cellular::List,
            MarshalType::Set(_) => Cellular::Set,
            MarshalType::Map(..) => Cellular::Map,
            MarshalType::User { .. } => Cellular::User,
            _ => Cellular::One,
        }
    }

    /// Calls `each` with the path and the value of each cell of a value. Elements of lists have no path yet.
    pub(super) fn for_each<'a>(
        self,
        value: &'a [u8],
        mut each: impl FnMut(&[u8], &'a [u8]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Cellular::One => each(&[], value),
            Cellular::User => {
                let mut fields = Items(value);
                for number in 0_u16.. {
                    if fields.is_done() {
                        break;
                    }
                    if let Some(field) = fields.next()? {
                        each(&number.to_be_bytes(), field)?;
                    }
                }
                Ok(())
            }
            Cellular::List | Cellular::Set | Cellular::Map => {
                let mut items = Items(value);
                for _ in 0..items.count()? {
                    let first = items.next()?.unwrap_or_default();
                    match self {
                        Cellular::Set => each(first, &[])?,
                        Cellular::Map => each(first, items.next()?.unwrap_or_default())?,
                        _ => each(&[], first)?,
                    }
                }
                Ok(())
            }
        }
    }
}

/// Items with their lengths of 32 bits before them, as CQL's protocol has them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items<'a>(pub(super) &'a [u8]);

impl<'a> Items<'a> {
    pub(super) fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of items, which is before them.
    pub(super) fn count(&mut self) -> Result<u32> {
        let (count, rest) = self.0.split_first_chunk::<4>().ok_or_else(broken)?;
        self.0 = rest;
        u32::try_from(i32::from_be_bytes(*count)).map_err(|_| broken())
    }

    /// The next item; `None` for a null.
    pub(super) fn next(&mut self) -> Result<Option<&'a [u8]>> {
        let (length, rest) = self.0.split_first_chunk::<4>().ok_or_else(broken)?;
        let length = i32::from_be_bytes(*length);
        self.0 = rest;
        let Ok(length) = u64::try_from(length) else { return Ok(None) };
        let (item, rest) =
            usize_of(length).and_then(|length| rest.split_at_checked(length)).ok_or_else(broken)?;
        self.0 = rest;
        Ok(Some(item))
    }
}

/// Adds an item with its length.
pub(super) fn push_item(item: Option<&[u8]>, out: &mut Vec<u8>) {
    let length = item.map_or(-1, |item| i32::try_from(item.len()).unwrap_or(i32::MAX));
    out.extend(length.to_be_bytes());
    out.extend_from_slice(item.unwrap_or_default());
}

pub(super) fn broken() -> Error {
    Error::internal("a value that is not of its type")
}

/// 100 ns steps from 1582-10-15, where UUIDs begin to count, to 1970.
const STEPS_BEFORE_1970: i128 = 0x01b2_1dd2_1381_4000;
/// The most such steps that a UUID has room for.
const STEPS_MAX: u64 = (1 << 60) - 1;
/// The clock sequence and the node of all of these UUIDs: the variant, and a random node with the bit of those that are no hardware's. So elements have the
/// same keys whenever the same rows are written again, and then are the same cells, and not others beside them.
const LAST_BYTES: [u8; 8] = [0x80, 0x00, 0x6d, 0x61, 0x72, 0x71, 0x75, 0x65];

/// The path of an element: of a list's a time UUID of the write time, and, in steps of 100 ns after it, of its number in the list; others do not look at it.
///
/// # Errors
///
/// `Conversion` for a list whose write time no time UUID can have: its elements would be one.
pub(super) fn list_path(cellular: Cellular, write_time_us: i64, number: u64) -> Result<[u8; 16]> {
    let mut path = [0; 16];
    if cellular != Cellular::List {
        return Ok(path);
    }
    let steps = i128::from(write_time_us) * 10 + STEPS_BEFORE_1970 + i128::from(number);
    let steps = u64::try_from(steps).ok().filter(|steps| *steps <= STEPS_MAX).ok_or_else(|| {
        Error::conversion(format!(
            "a list that is written at {write_time_us} µs, which no time UUID has room for"
        ))
    })?;
    let [high, middle, low] = [steps >> 48 & 0xfff | 0x1000, steps >> 32 & 0xffff, steps & 0xffff_ffff];
    let first = low << 32 | middle << 16 | high;
    path[..8].copy_from_slice(&first.to_be_bytes());
    path[8..].copy_from_slice(&LAST_BYTES);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sstable::compare::Comparator;
    use core::cmp::Ordering;

    #[test]
    fn elements_of_lists_are_in_their_order() {
        let list = MarshalType::List(alloc::boxed::Box::new(MarshalType::Empty));
        let order = Comparator::of_paths(&list).unwrap().unwrap();
        let list_path = |time, number| list_path(Cellular::List, time, number);
        for beyond in [i64::MIN + 1, 1_700_000_000_000_000_000] {
            assert!(list_path(beyond, 0).is_err());
        }
        let mut before = list_path(-1, 0).unwrap();
        for (time, number) in [(0, 0), (0, 1), (1_700_000_000_000_000, 0), (1_700_000_000_000_000, 70_000)] {
            let path = list_path(time, number).unwrap();
            assert_eq!(order.compare(&before, &path), Ordering::Less, "{time} {number}");
            assert_eq!((path[6] >> 4, path[8] >> 6), (1, 2));
            before = path;
        }
        // 2023-11-14T22:13:20Z
        assert_eq!(
            list_path(1_700_000_000_000_000, 0).unwrap()[..8],
            [0x04, 0xaf, 0xc0, 0x00, 0x83, 0x3b, 0x11, 0xee]
        );
    }
}
