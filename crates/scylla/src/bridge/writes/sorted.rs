//! Values as servers store them: sets and maps in their order, each element and key once.
//!
//! A server sorts a set or map that is bound to a statement; one inside another value is compared, and so found, only if it is sorted, too.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Error, Result};

use super::elements::{Items, broken, push_item};
use crate::sstable::compare::Comparator;
use crate::sstable::marshal::MarshalType;
use crate::sstable::vint;

/// A type whose values have sets or maps in them.
#[derive(Debug, Clone)]
pub(super) enum Sorted {
    List(Box<Sorted>),
    Set(Option<Box<Sorted>>, Comparator),
    Map([Option<Box<Sorted>>; 2], Comparator),
    /// Of a tuple or a user-defined type.
    Members(Vec<Option<Sorted>>),
    /// Of elements of any length.
    Vector(Box<Sorted>),
}

impl Sorted {
    /// `None`: values of this type have neither sets nor maps.
    ///
    /// # Errors
    ///
    /// As [`Comparator::new`]'s.
    pub(super) fn of(kind: &MarshalType) -> Result<Option<Sorted>> {
        let boxed = |kind: &MarshalType| Ok::<_, Error>(Sorted::of(kind)?.map(Box::new));
        let members =
            |all: Vec<Option<Sorted>>| all.iter().any(Option::is_some).then_some(Sorted::Members(all));
        Ok(match kind {
            MarshalType::Set(element) => Some(Sorted::Set(boxed(element)?, Comparator::new(element)?)),
            MarshalType::Map(key, value) => {
                Some(Sorted::Map([boxed(key)?, boxed(value)?], Comparator::new(key)?))
            }
            MarshalType::List(element) => boxed(element)?.map(Sorted::List),
            MarshalType::Vector(element, _) => boxed(element)?.map(Sorted::Vector),
            MarshalType::Tuple(all) => members(all.iter().map(Sorted::of).collect::<Result<_>>()?),
            MarshalType::User { fields, .. } => {
                members(fields.iter().map(|(_, kind)| Sorted::of(kind)).collect::<Result<_>>()?)
            }
            MarshalType::Frozen(inner) | MarshalType::Reversed(inner) => Sorted::of(inner)?,
            MarshalType::Native(_)
            | MarshalType::Empty
            | MarshalType::Composite(_)
            | MarshalType::DynamicComposite(_) => None,
        })
    }

    /// Adds a value as it is stored. It recurses as deep as the type does.
    pub(super) fn push(&self, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Sorted::List(element) => {
                let mut items = Items(value);
                let count = items.count()?;
                out.extend(count.to_be_bytes());
                for _ in 0..count {
                    push(Some(element), items.next()?, out)?;
                }
            }
            Sorted::Members(members) => {
                let (mut items, mut members) = (Items(value), members.iter());
                while !items.is_done() {
                    push(members.next().and_then(Option::as_ref), items.next()?, out)?;
                }
            }
            Sorted::Set(element, order) => {
                push_sorted(value, [Some(element.as_deref()), None], order, out)?;
            }
            Sorted::Map([key, element], order) => {
                push_sorted(value, [Some(key.as_deref()), Some(element.as_deref())], order, out)?;
            }
            Sorted::Vector(element) => {
                let mut rest = value;
                while !rest.is_empty() {
                    let (length, bytes) = vint::unsigned(rest).ok_or_else(broken)?;
                    let end = usize_of(length).and_then(|length| length.checked_add(bytes));
                    let item = end.and_then(|end| rest.get(bytes..end)).ok_or_else(broken)?;
                    rest = rest.get(bytes + item.len()..).unwrap_or_default();
                    let mut made = Vec::new();
                    element.push(item, &mut made)?;
                    vint::push_unsigned(out, u64_of(made.len()));
                    out.extend_from_slice(&made);
                }
            }
        }
        Ok(())
    }
}

/// Adds an item as it is stored.
fn push(form: Option<&Sorted>, item: Option<&[u8]>, out: &mut Vec<u8>) -> Result<()> {
    let (Some(form), Some(value)) = (form, item) else {
        push_item(item, out);
        return Ok(());
    };
    let at = out.len();
    out.extend([0; 4]);
    form.push(value, out)?;
    let length = i32::try_from(out.len() - at - 4).map_err(|_| broken())?;
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Adds the elements of a set, or the entries of a map. Of those with equal keys the last one stays.
fn push_sorted(
    value: &[u8],
    parts: [Option<Option<&Sorted>>; 2],
    order: &Comparator,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut items = Items(value);
    let count = items.count()?;
    // As they are stored, which may be shorter; the values of a map after the keys.
    let mut made = Vec::with_capacity(value.len());
    let mut entries = Vec::new();
    for _ in 0..count {
        let start = made.len();
        let mut middle = start;
        for (number, form) in parts.into_iter().flatten().enumerate() {
            push(form, items.next()?, &mut made)?;
            if number == 0 {
                middle = made.len();
            }
        }
        entries.push((start, middle, made.len()));
    }
    let key = |entry: &(usize, usize, usize)| made.get(entry.0 + 4..entry.1).unwrap_or_default();
    for entry in &entries {
        order.check(key(entry))?;
    }
    entries.sort_by(|left, right| order.compare(key(left), key(right)));
    // The later of equal ones is after the others.
    let is_kept = |at: usize| {
        let next = entries.get(at + 1);
        next.is_none_or(|next| {
            entries.get(at).is_none_or(|entry| order.compare(key(entry), key(next)).is_ne())
        })
    };
    let kept: Vec<usize> = (0..entries.len()).filter(|at| is_kept(*at)).collect();
    out.extend(u32::try_from(kept.len()).unwrap_or(u32::MAX).to_be_bytes());
    for at in kept {
        if let Some((start, _, end)) = entries.get(at) {
            out.extend_from_slice(made.get(*start..*end).unwrap_or_default());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(kind: &str, value: &[u8]) -> Vec<u8> {
        let form = Sorted::of(&MarshalType::parse(kind, 64).unwrap()).unwrap().unwrap();
        let mut out = Vec::new();
        form.push(value, &mut out).unwrap();
        out
    }

    fn listed(items: &[&[u8]]) -> Vec<u8> {
        let mut out = u32::try_from(items.len()).unwrap().to_be_bytes().to_vec();
        items.iter().for_each(|item| push_item(Some(item), &mut out));
        out
    }

    #[test]
    fn sets_and_maps_are_sorted_at_any_depth() {
        let ints = |numbers: &[i32]| {
            listed(
                &numbers
                    .iter()
                    .map(|number| number.to_be_bytes())
                    .collect::<Vec<_>>()
                    .iter()
                    .map(|it| &it[..])
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(stored("SetType(Int32Type)", &ints(&[5, -3, 5, 1])), ints(&[-3, 1, 5]));
        // Sets in a set: sorted first, so that equal ones are found.
        let (a, b) = (ints(&[2, 1]), ints(&[1, 2]));
        let of_sets = "SetType(FrozenType(SetType(Int32Type)))";
        assert_eq!(stored(of_sets, &listed(&[&a, &b, &ints(&[0])])), listed(&[&ints(&[0]), &b]));
        // Of two entries with one key the later.
        let mut map = 3_u32.to_be_bytes().to_vec();
        for (key, value) in [("b", 1_u8), ("a", 2), ("b", 3)] {
            push_item(Some(key.as_bytes()), &mut map);
            push_item(Some(&[value]), &mut map);
        }
        let found = stored("FrozenType(MapType(UTF8Type,ByteType))", &map);
        let mut expected = 2_u32.to_be_bytes().to_vec();
        for (key, value) in [("a", 2_u8), ("b", 3)] {
            push_item(Some(key.as_bytes()), &mut expected);
            push_item(Some(&[value]), &mut expected);
        }
        assert_eq!(found, expected);
        // Inside a tuple, beside a null and a member that is missing.
        let mut tuple = Vec::new();
        push_item(None, &mut tuple);
        push_item(Some(&a), &mut tuple);
        let found = stored("TupleType(Int32Type,FrozenType(SetType(Int32Type)),Int32Type)", &tuple);
        let mut expected = Vec::new();
        push_item(None, &mut expected);
        push_item(Some(&b), &mut expected);
        assert_eq!(found, expected);
        // And in a vector, whose elements have other lengths before them.
        let mut vector = Vec::new();
        vint::push_unsigned(&mut vector, 12);
        vector.extend_from_slice(&ints(&[7]));
        vint::push_unsigned(&mut vector, 20);
        vector.extend_from_slice(&a);
        let sorted = stored("VectorType(FrozenType(SetType(Int32Type)),2)", &vector);
        assert_eq!((sorted.len(), &sorted[14..]), (vector.len(), &b[..]));
        for kind in ["Int32Type", "ListType(UTF8Type)", "TupleType(Int32Type,UTF8Type)"] {
            assert!(Sorted::of(&MarshalType::parse(kind, 64).unwrap()).unwrap().is_none());
        }
    }
}
