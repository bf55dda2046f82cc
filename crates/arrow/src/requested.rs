//! Other types than a table's own, for whoever asks for them: the same values, laid out in another way.
//!
//! Source: `requested_schema` of Arrow's PyCapsule interface, which is there "to negotiate between different representations of the data and not to
//! allow arbitrary schema transformations". What cannot be given stays as it is, as it allows.

use std::sync::Arc;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, FieldRef, Fields};
use marquetry_base::{Error, Result};

use crate::plan::{Plan, PlanKind};

/// The layouts that Arrow has for strings, and for bytes of any length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringLayout {
    /// Views of 16 bytes, which have short strings in them and point to long ones: `Utf8View`, `BinaryView`. What the reader decodes to, so that no
    /// byte is copied.
    View,
    /// Offsets of 32 bits into the bytes of all: `Utf8`, `Binary`. At most 2 GiB in a batch.
    Offset32,
    /// Offsets of 64 bits: `LargeUtf8`, `LargeBinary`.
    Offset64,
}

impl StringLayout {
    fn of(self, is_text: bool) -> DataType {
        match (self, is_text) {
            (StringLayout::View, true) => DataType::Utf8View,
            (StringLayout::View, false) => DataType::BinaryView,
            (StringLayout::Offset32, true) => DataType::Utf8,
            (StringLayout::Offset32, false) => DataType::Binary,
            (StringLayout::Offset64, true) => DataType::LargeUtf8,
            (StringLayout::Offset64, false) => DataType::LargeBinary,
        }
    }
}

/// What a field is asked to be.
#[derive(Clone, Copy)]
pub(crate) enum Wish<'w> {
    /// Its strings are to have this layout.
    Strings(StringLayout),
    /// It is to have this type.
    Of(&'w DataType),
}

/// The wishes of a schema, for fields that are `now`.
///
/// # Errors
///
/// `Misuse` if it has another number of columns, or other names.
pub(crate) fn wishes<'w>(now: &Fields, requested: &'w arrow_schema::Schema) -> Result<Vec<Wish<'w>>> {
    let (there, wanted) = (now.len(), requested.fields().len());
    if there != wanted {
        return Err(Error::misuse(format!(
            "a schema of {wanted} columns is asked for, of a table of {there}"
        )));
    }
    for (now, wanted) in now.iter().zip(requested.fields()) {
        if now.name() != wanted.name() {
            let (now, wanted) = (now.name(), wanted.name());
            let what = format!("a schema with the column {wanted} is asked for, where the table has {now}");
            return Err(Error::misuse(what));
        }
    }
    Ok(requested.fields().iter().map(|field| Wish::Of(field.data_type())).collect())
}

/// The field of a plan that is `now`, as it is asked to be, as far as it can be. Its name, nulls and metadata stay.
pub(crate) fn field(plan: &Plan, now: &FieldRef, wish: Wish<'_>) -> FieldRef {
    let data_type = match (&plan.kind, now.data_type()) {
        (PlanKind::Leaf(_), now) => leaf_type(plan.field.data_type(), now, wish),
        (PlanKind::Struct(plans), DataType::Struct(fields)) => {
            let has_names = |wanted: &Fields| {
                wanted.len() == fields.len() && wanted.iter().zip(fields).all(|(a, b)| a.name() == b.name())
            };
            match wish {
                Wish::Of(DataType::Struct(wanted)) if !has_names(wanted) => now.data_type().clone(),
                _ => struct_type(plans.iter(), fields, wish),
            }
        }
        (
            PlanKind::List(element),
            DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _),
        ) => {
            let inner = |wish| field(element, of, wish);
            match (now.data_type(), wish) {
                (DataType::List(_), Wish::Strings(_)) => DataType::List(inner(wish)),
                (DataType::LargeList(_), Wish::Strings(_)) => DataType::LargeList(inner(wish)),
                (DataType::FixedSizeList(_, length), Wish::Strings(_)) => {
                    DataType::FixedSizeList(inner(wish), *length)
                }
                (_, Wish::Of(DataType::List(wanted))) => DataType::List(inner(Wish::Of(wanted.data_type()))),
                (_, Wish::Of(DataType::LargeList(wanted))) => {
                    DataType::LargeList(inner(Wish::Of(wanted.data_type())))
                }
                (DataType::FixedSizeList(_, length), Wish::Of(DataType::FixedSizeList(wanted, same)))
                    if length == same =>
                {
                    DataType::FixedSizeList(inner(Wish::Of(wanted.data_type())), *length)
                }
                (now, _) => now.clone(),
            }
        }
        (PlanKind::Map { key, value, .. }, DataType::Map(entries, is_sorted)) => {
            let wish = match wish {
                Wish::Of(DataType::Map(wanted, _)) => Wish::Of(wanted.data_type()),
                other => other,
            };
            match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    let pair = struct_type([&**key, &**value].into_iter(), fields, wish);
                    DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(pair)), *is_sorted)
                }
                _ => now.data_type().clone(),
            }
        }
        (_, now) => now.clone(),
    };
    if data_type == *now.data_type() {
        return Arc::clone(now);
    }
    // The extension types of the file's writer are those of the types that they had.
    let mut metadata = now.metadata().clone();
    metadata.remove(EXTENSION_TYPE_NAME_KEY);
    metadata.remove(EXTENSION_TYPE_METADATA_KEY);
    metadata.extend(plan.field.metadata().clone());
    Arc::new(now.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}

/// A struct whose fields are as they are asked to be; as they are, where something else than a struct of as many is asked for.
fn struct_type<'p>(plans: impl Iterator<Item = &'p Plan>, fields: &Fields, wish: Wish<'_>) -> DataType {
    let wanted = match wish {
        Wish::Of(DataType::Struct(wanted)) if wanted.len() == fields.len() => Some(wanted),
        Wish::Of(_) => return DataType::Struct(fields.clone()),
        Wish::Strings(_) => None,
    };
    let of = |at: usize| {
        wanted.and_then(|wanted| wanted.get(at)).map_or(wish, |wanted| Wish::Of(wanted.data_type()))
    };
    let asked = plans.zip(fields).enumerate().map(|(at, (plan, now))| field(plan, now, of(at)));
    DataType::Struct(asked.collect())
}

/// Whether keys of a type name each value of a batch, however many are distinct. (A batch has 32,768 rows at most.)
fn is_wide_enough(index: &DataType) -> bool {
    index.is_dictionary_key_type() && !matches!(index, DataType::Int8 | DataType::UInt8)
}

/// The type of a leaf that is `now`, and whose values are `ours` by the Parquet schema alone.
fn leaf_type(ours: &DataType, now: &DataType, wish: Wish<'_>) -> DataType {
    use DataType::*;
    let is_text = match ours {
        Utf8View => true,
        BinaryView => false,
        _ => return now.clone(),
    };
    let is_layout = |asked: &DataType| match asked {
        Utf8 | LargeUtf8 | Utf8View => is_text,
        Binary | LargeBinary | BinaryView => !is_text,
        _ => false,
    };
    match (wish, now) {
        // Those who had dictionaries want them.
        (Wish::Strings(_), Dictionary(..)) => now.clone(),
        (Wish::Strings(layout), _) => layout.of(is_text),
        (Wish::Of(asked), _) if is_layout(asked) => asked.clone(),
        (Wish::Of(Dictionary(index, value)), _) if is_wide_enough(index) && is_layout(value.as_ref()) => {
            Dictionary(index.clone(), value.clone())
        }
        (Wish::Of(_), now) => now.clone(),
    }
}
