//! Values as servers take them for the same: by their bytes, once what makes no difference is taken away.
//!
//! Elements of sets are in the order of their type, and each is there once; so are the keys of maps, of which the last value counts. Decimals
//! are compared by value, whatever their scale, which the elements of sets and the keys of maps are by the servers, too. NaNs are one;
//! -0 is 0 as a value, but not as an element of a set or a key: servers hold those apart (`Comparator`).

use marquetry_base::print::Digits;
use marquetry_base::{Result, cast};
use marquetry_scylla::cql::CqlType;
use marquetry_scylla::sstable::compare::Comparator;
use marquetry_scylla::sstable::marshal::MarshalType;

use super::numbers::Plain;

/// The form of a type's values.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// What servers compare byte by byte.
    Bytes,
    Decimal,
    /// Whether -0 is another value than 0.
    Float(bool),
    Double(bool),
    List(Box<Form>),
    Set(Box<Form>, Comparator),
    /// Of keys and values.
    Map(Box<[Form; 2]>, Comparator),
    /// Members of a tuple, fields of a user-defined type: those that are missing at the end are null.
    Members(Vec<Form>),
    /// Elements of so many bytes each.
    Vector(Box<Form>, usize),
}

/// What is done with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Elements are put in order; all else is left as it is, so that servers' order applies to what is around it.
    Arrange,
    /// Values become what they are compared by.
    Plain,
}

impl Form {
    /// The form of a type's values; `is_key` where they are elements of sets, or keys of maps or of rows.
    ///
    /// # Errors
    ///
    /// `Unsupported` for elements without an order.
    pub(super) fn of(kind: &MarshalType, is_key: bool) -> Result<Form> {
        let boxed = |kind: &MarshalType, is_key: bool| Form::of(kind, is_key).map(Box::new);
        Ok(match kind {
            MarshalType::Native(CqlType::Decimal) => Form::Decimal,
            MarshalType::Native(CqlType::Float) => Form::Float(is_key),
            MarshalType::Native(CqlType::Double) => Form::Double(is_key),
            MarshalType::Reversed(inner) | MarshalType::Frozen(inner) => Form::of(inner, is_key)?,
            MarshalType::List(element) => Form::List(boxed(element, is_key)?),
            MarshalType::Set(element) => Form::Set(boxed(element, true)?, Comparator::new(element)?),
            MarshalType::Map(key, value) => {
                let forms = [Form::of(key, true)?, Form::of(value, is_key)?];
                Form::Map(Box::new(forms), Comparator::new(key)?)
            }
            MarshalType::Tuple(members) => {
                Form::Members(members.iter().map(|it| Form::of(it, is_key)).collect::<Result<_>>()?)
            }
            MarshalType::User { fields, .. } => {
                Form::Members(fields.iter().map(|(_, it)| Form::of(it, is_key)).collect::<Result<_>>()?)
            }
            MarshalType::Vector(element, _) => match element.fixed_bytes() {
                Some(bytes) if bytes > 0 => Form::Vector(boxed(element, is_key)?, cast::usize_of_u32(bytes)),
                _ => Form::Bytes,
            },
            _ => Form::Bytes,
        })
    }

    /// Appends a value, serialised as the native protocol does, in the form that it is compared by. What is no value of the type is left as
    /// it is.
    pub(super) fn write(&self, value: &[u8], out: &mut Vec<u8>) {
        let (start, mut arranged) = (out.len(), Vec::with_capacity(value.len()));
        let written = match self.part(value, Pass::Arrange, &mut arranged) {
            Some(()) => self.part(&arranged, Pass::Plain, out),
            None => None,
        };
        if written.is_none() {
            out.truncate(start);
            out.extend_from_slice(value);
        }
    }

    /// Appends a value, or a part of one. It recurses as deep as types do.
    fn part(&self, value: &[u8], pass: Pass, out: &mut Vec<u8>) -> Option<()> {
        let is_scalar = matches!(self, Form::Bytes | Form::Decimal | Form::Float(_) | Form::Double(_));
        if value.is_empty() || (is_scalar && pass == Pass::Arrange) {
            out.extend_from_slice(value);
            return Some(());
        }
        match self {
            Form::Bytes => out.extend_from_slice(value),
            Form::Decimal => {
                let (scale, unscaled) = value.split_first_chunk::<4>()?;
                Plain::of_digits(&Digits::of_bytes(unscaled)?, i32::from_be_bytes(*scale)).write(out);
            }
            Form::Float(is_apart) => {
                let float = f32::from_be_bytes(value.try_into().ok()?);
                let is_zero = float == 0.0 && !is_apart;
                let float = if float.is_nan() {
                    f32::NAN
                } else if is_zero {
                    0.0
                } else {
                    float
                };
                out.extend(float.to_be_bytes());
            }
            Form::Double(is_apart) => {
                let float = f64::from_be_bytes(value.try_into().ok()?);
                let is_zero = float == 0.0 && !is_apart;
                let float = if float.is_nan() {
                    f64::NAN
                } else if is_zero {
                    0.0
                } else {
                    float
                };
                out.extend(float.to_be_bytes());
            }
            Form::List(element) => push_all(&entries([&**element], value, pass)?, out)?,
            Form::Set(element, order) => {
                let mut elements = entries([&**element], value, pass)?;
                arrange(&mut elements, order, pass);
                push_all(&elements, out)?;
            }
            Form::Map(forms, order) => {
                let [key, of_key] = &**forms;
                let mut all = entries([key, of_key], value, pass)?;
                arrange(&mut all, order, pass);
                push_all(&all, out)?;
            }
            Form::Members(members) => {
                let mut rest = value;
                for member in members {
                    let item = if rest.is_empty() { None } else { take_item(&mut rest)? };
                    push(converted(member, item, pass)?.as_deref(), out)?;
                }
                // Fields of a type that has got more since.
                out.extend_from_slice(rest);
            }
            Form::Vector(element, bytes) => {
                for value in value.chunks(*bytes) {
                    element.part(value, pass, out)?;
                }
            }
        }
        Some(())
    }
}

/// An element of a list or a set, or a map's key and value; a null is none that CQL has.
type Entry<const ITEMS: usize> = [Option<Vec<u8>>; ITEMS];

/// The entries of a collection, each item converted.
fn entries<const ITEMS: usize>(
    forms: [&Form; ITEMS],
    mut value: &[u8],
    pass: Pass,
) -> Option<Vec<Entry<ITEMS>>> {
    let count = u32::from_be_bytes(take(&mut value, 4)?.try_into().ok()?);
    let mut all = Vec::new();
    for _ in 0..count {
        let mut entry = [const { None }; ITEMS];
        for (form, item) in forms.iter().zip(&mut entry) {
            *item = converted(form, take_item(&mut value)?, pass)?;
        }
        all.push(entry);
    }
    Some(all)
}

/// Puts entries in the order of their first items, and leaves out those whose first item a later one has.
fn arrange<const ITEMS: usize>(all: &mut Vec<Entry<ITEMS>>, order: &Comparator, pass: Pass) {
    if pass == Pass::Plain {
        return;
    }
    all.sort_by(|one, other| order.compare(first(one), first(other)));
    all.dedup_by(|later, earlier| {
        let is_same = order.compare(first(later), first(earlier)).is_eq();
        if is_same {
            std::mem::swap(later, earlier);
        }
        is_same
    });
}

fn first<const ITEMS: usize>(entry: &Entry<ITEMS>) -> &[u8] {
    entry.first().and_then(Option::as_deref).unwrap_or_default()
}

fn push_all<const ITEMS: usize>(all: &[Entry<ITEMS>], out: &mut Vec<u8>) -> Option<()> {
    out.extend(u32::try_from(all.len()).ok()?.to_be_bytes());
    all.iter().flatten().try_for_each(|item| push(item.as_deref(), out))
}

fn converted(form: &Form, item: Option<&[u8]>, pass: Pass) -> Option<Option<Vec<u8>>> {
    let Some(item) = item else { return Some(None) };
    let mut made = Vec::with_capacity(item.len());
    form.part(item, pass, &mut made)?;
    Some(Some(made))
}

/// The next item with its length before it; `Some(None)` for a null.
fn take_item<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = i32::from_be_bytes(take(bytes, 4)?.try_into().ok()?);
    match usize::try_from(length) {
        Ok(length) => take(bytes, length).map(Some),
        Err(_) => Some(None),
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn push(item: Option<&[u8]>, out: &mut Vec<u8>) -> Option<()> {
    let length = item.map_or(Some(-1), |item| i32::try_from(item.len()).ok())?;
    out.extend(length.to_be_bytes());
    out.extend_from_slice(item.unwrap_or_default());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, value: &[u8]) -> Vec<u8> {
        let form = Form::of(&MarshalType::parse(kind, 64).unwrap(), false).unwrap();
        let mut out = Vec::new();
        form.write(value, &mut out);
        out
    }

    fn items(values: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        values.iter().for_each(|value| push(Some(value), &mut out).unwrap());
        out
    }

    /// Of so many entries, which may have two items each.
    fn collection(count: u32, values: &[&[u8]]) -> Vec<u8> {
        [&count.to_be_bytes()[..], &items(values)].concat()
    }

    fn decimal(unscaled: i8, scale: i32) -> Vec<u8> {
        [&scale.to_be_bytes()[..], &unscaled.to_be_bytes()].concat()
    }

    fn ints(values: &[i32]) -> Vec<u8> {
        let bytes: Vec<[u8; 4]> = values.iter().map(|it| it.to_be_bytes()).collect();
        let slices: Vec<&[u8]> = bytes.iter().map(|it| &it[..]).collect();
        collection(u32::try_from(values.len()).unwrap(), &slices)
    }

    #[test]
    fn sets_have_an_order_and_each_element_once() {
        for kind in ["SetType(Int32Type)", "FrozenType(SetType(Int32Type))"] {
            assert_eq!(of(kind, &ints(&[3, -1, 2, 3])), ints(&[-1, 2, 3]), "{kind}");
        }
        assert_eq!(of("ListType(Int32Type)", &ints(&[3, -1, 3])), ints(&[3, -1, 3]));
        // Sets of sets: those within are put in order first.
        let kind = "SetType(FrozenType(SetType(Int32Type)))";
        let of_sets = |sets: &[&[i32]]| {
            let sets: Vec<Vec<u8>> = sets.iter().map(|set| ints(set)).collect();
            let slices: Vec<&[u8]> = sets.iter().map(Vec::as_slice).collect();
            collection(u32::try_from(slices.len()).unwrap(), &slices)
        };
        assert_eq!(of(kind, &of_sets(&[&[9, 1], &[2], &[1, 9]])), of_sets(&[&[1, 9], &[2]]));
        // And so are those in a tuple, whose last member is missing.
        let tuple = "TupleType(FrozenType(SetType(Int32Type)),Int32Type)";
        let members = |last: &[u8]| [&items(&[&ints(&[1, 2])])[..], last].concat();
        assert_eq!(of(tuple, &items(&[&ints(&[2, 1])])), members(&[0xff; 4]));
        assert_eq!(of(tuple, &members(&[0xff; 4])), members(&[0xff; 4]));
    }

    #[test]
    fn of_equal_keys_the_last_value_counts() {
        let kind = "MapType(Int32Type,UTF8Type)";
        let (one, two) = (&[0, 0, 0, 1], &[0, 0, 0, 2]);
        let given = collection(3, &[two, b"a", one, b"b", two, b"c"]);
        assert_eq!(of(kind, &given), collection(2, &[one, b"b", two, b"c"]));
    }

    #[test]
    fn numbers_are_compared_by_value() {
        assert_eq!(of("DecimalType", &decimal(120, 2)), of("DecimalType", &decimal(12, 1)));
        assert_ne!(of("DecimalType", &decimal(12, 2)), of("DecimalType", &decimal(12, 1)));
        assert_eq!(of("DecimalType", &decimal(0, 2)), of("DecimalType", &decimal(0, 0)));
        let set = "SetType(DecimalType)";
        let of_decimals = |all: &[(i8, i32)]| {
            let all: Vec<Vec<u8>> = all.iter().map(|(unscaled, scale)| decimal(*unscaled, *scale)).collect();
            let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
            of(set, &collection(u32::try_from(slices.len()).unwrap(), &slices))
        };
        assert_eq!(of_decimals(&[(0, 2), (5, 0), (0, 0)]), of_decimals(&[(0, 7), (50, 1)]));
        // What is no number of the type is left as it is.
        assert_eq!(of("DecimalType", &[1, 2]), [1, 2]);
        assert_eq!(of("SetType(Int32Type)", &[0, 0, 0, 9]), [0, 0, 0, 9]);
    }

    #[test]
    fn zeros_are_held_apart_where_servers_hold_them_apart() {
        let (zero, minus) = (0_f64.to_be_bytes(), (-0_f64).to_be_bytes());
        assert_eq!(of("DoubleType", &minus), zero);
        assert_eq!(of("FloatType", &(-0_f32).to_be_bytes()), 0_f32.to_be_bytes());
        let set =
            |all: &[&[u8]]| of("SetType(DoubleType)", &collection(u32::try_from(all.len()).unwrap(), all));
        assert_ne!(set(&[&zero]), set(&[&minus]));
        assert_eq!(set(&[&zero, &minus, &zero]), set(&[&minus, &zero]));
        assert_eq!(set(&[&f64::NAN.to_be_bytes()]), set(&[&(-f64::NAN).to_be_bytes()]));
        let vector = [minus, zero].concat();
        assert_eq!(of("VectorType(DoubleType,2)", &vector), [zero, zero].concat());
    }
}
