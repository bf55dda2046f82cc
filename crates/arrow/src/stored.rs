//! `ARROW:schema`: the Arrow schema that Arrow's writers store in a file, and which parts of it are restored.
//!
//! Source: what Arrow C++ (`ApplyOriginalMetadata`) and parquet-rs (`apply_hint`) do; it is not part of the format
//! itself. The Parquet schema is authoritative: names, nullability and values are its own, and a stored type is used
//! only if it can hold the same values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use marquetry_base::{Error, Result};
use marquetry_parquet::format::{ARROW_SCHEMA_KEY, FileMetaData, KeyValue};
use marquetry_parquet::schema::Schema;

use crate::plan::{Plan, PlanKind};

/// The Arrow schema that a file's writer stored in the footer. `None` if there is none.
///
/// # Errors
///
/// `Corrupt` if it is not base 64, or not an Arrow IPC message with a schema.
pub fn stored_schema(metadata: &FileMetaData) -> Result<Option<arrow_schema::Schema>> {
    stored_in(&metadata.key_values)
}

/// The same, from a table's key-value metadata.
pub(crate) fn stored_in<'a>(
    key_values: impl IntoIterator<Item = &'a KeyValue>,
) -> Result<Option<arrow_schema::Schema>> {
    let pair = key_values.into_iter().find(|pair| pair.key == ARROW_SCHEMA_KEY);
    let Some(value) = pair.and_then(|pair| pair.value.as_deref()) else { return Ok(None) };
    let corrupt = |why: String| Error::corrupt(format!("{ARROW_SCHEMA_KEY}: {why}"));
    let bytes = STANDARD.decode(value.trim_ascii()).map_err(|error| corrupt(error.to_string()))?;
    // An IPC message may begin with a marker and its length.
    let message = match bytes.split_at_checked(8) {
        Some((start, rest)) if start.starts_with(&[0xff; 4]) => rest,
        _ => &bytes,
    };
    let message = arrow_ipc::root_as_message(message).map_err(|error| corrupt(error.to_string()))?;
    let schema =
        message.header_as_schema().ok_or_else(|| corrupt("a message without a schema".to_owned()))?;
    let schema = arrow_ipc::convert::try_fb_to_schema(schema).map_err(|error| corrupt(error.to_string()))?;
    Ok(Some(schema))
}

/// Encodes a schema in the form that [`stored_schema`] reads, and that Arrow's other writers store.
pub(crate) fn encoded(schema: &arrow_schema::Schema) -> Vec<u8> {
    let options = IpcWriteOptions::default();
    let mut dictionaries = DictionaryTracker::new(true);
    let message = IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &options)
        .ipc_message;
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let marked = [&[0xff; 4][..], &length.to_le_bytes(), &message].concat();
    STANDARD.encode(marked).into_bytes()
}

/// Which stored field is that of a column, or of a field of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matched {
    /// The one in its place: all columns of a file are there.
    ByPlace,
    /// The only one with its name: some columns of a file, and some fields of a group.
    ByName,
}

/// The stored fields of a group, by what tells which is whose.
pub(crate) enum Siblings<'f> {
    /// By nodes of the schema.
    ByPlace(HashMap<usize, &'f FieldRef>),
    /// `None` for a name that several have.
    ByName(HashMap<&'f str, Option<&'f FieldRef>>),
}

impl<'f> Siblings<'f> {
    /// Those of the children of a node.
    pub(crate) fn of(matched: Matched, schema: &Schema, parent: usize, stored: &'f Fields) -> Siblings<'f> {
        match matched {
            Matched::ByPlace => Siblings::ByPlace(schema.children(parent).zip(stored).collect()),
            Matched::ByName => {
                let mut by_name = HashMap::with_capacity(stored.len());
                for field in stored {
                    by_name.entry(&**field.name()).and_modify(|found| *found = None).or_insert(Some(field));
                }
                Siblings::ByName(by_name)
            }
        }
    }

    pub(crate) fn get(&self, plan: &Plan) -> Option<&'f FieldRef> {
        match self {
            Siblings::ByPlace(by_place) => by_place.get(&plan.node).copied(),
            Siblings::ByName(by_name) => by_name.get(&**plan.field.name()).copied().flatten(),
        }
    }
}

/// A planned field, with the stored one applied.
pub(crate) fn field(schema: &Schema, plan: &Plan, stored: &Field, matched: Matched) -> FieldRef {
    let ours = plan.field.data_type();
    let data_type = match (&plan.kind, stored.data_type()) {
        (PlanKind::Struct(plans), DataType::Struct(fields)) => {
            // If the number of fields differs, the stored schema belongs to another group.
            if matched == Matched::ByPlace && schema.children(plan.node).count() != fields.len() {
                ours.clone()
            } else {
                let fields = Siblings::of(matched, schema, plan.node, fields);
                let child = |plan: &Plan| match fields.get(plan) {
                    Some(stored) => field(schema, plan, stored, matched),
                    None => Arc::clone(&plan.field),
                };
                DataType::Struct(plans.iter().map(child).collect())
            }
        }
        (PlanKind::List(plan), list) => match list {
            DataType::List(element) => DataType::List(field(schema, plan, element, matched)),
            DataType::LargeList(element) => DataType::LargeList(field(schema, plan, element, matched)),
            DataType::FixedSizeList(element, length) => {
                DataType::FixedSizeList(field(schema, plan, element, matched), *length)
            }
            _ => ours.clone(),
        },
        (PlanKind::Map { entries, key, value }, DataType::Map(stored, _)) => match stored.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let pair =
                    [field(schema, key, &fields[0], matched), field(schema, value, &fields[1], matched)];
                let entries =
                    entries.as_ref().clone().with_data_type(DataType::Struct(Fields::from_iter(pair)));
                DataType::Map(Arc::new(entries), false)
            }
            _ => ours.clone(),
        },
        (PlanKind::Leaf(_), stored) => leaf_type(ours, stored),
        _ => ours.clone(),
    };
    let mut metadata = stored.metadata().clone();
    // An extension type is kept only on its own storage type.
    if !data_type.equals_datatype(stored.data_type()) {
        metadata.remove(EXTENSION_TYPE_NAME_KEY);
        metadata.remove(EXTENSION_TYPE_METADATA_KEY);
    }
    metadata.extend(plan.field.metadata().clone());
    let is_ordered = matches!(data_type, DataType::Dictionary(..)) && stored.dict_is_ordered() == Some(true);
    let mut field = plan.field.as_ref().clone().with_data_type(data_type).with_metadata(metadata);
    if is_ordered {
        field = field.with_dict_is_ordered(true);
    }
    Arc::new(field)
}

/// The type of a leaf: the stored one, if it can hold the same values.
fn leaf_type(ours: &DataType, stored: &DataType) -> DataType {
    use DataType::*;
    let is_taken = match (ours, stored) {
        (Utf8View, Utf8 | LargeUtf8) | (BinaryView, Binary | LargeBinary) => true,
        // Parquet has no durations, and parquet-rs writes times of whole seconds, and Date64, as integers.
        (Int64, Duration(_) | Timestamp(..) | Date64) => true,
        (Int64, Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond)) => true,
        (Int32, Time32(TimeUnit::Second | TimeUnit::Millisecond)) => true,
        (Date32, Date64) => true,
        (Decimal128(p, s), Decimal32(q, t) | Decimal64(q, t) | Decimal256(q, t)) => (p, s) == (q, t),
        // Parquet has instants, but not the zone that they are shown in. Times that are not instants stay so.
        (Timestamp(unit, Some(_)), Timestamp(_, Some(zone))) => {
            return Timestamp(*unit, Some(Arc::clone(zone)));
        }
        (Utf8View | BinaryView, Dictionary(index, value)) if index.is_dictionary_key_type() => {
            return Dictionary(index.clone(), Box::new(leaf_type(ours, value)));
        }
        _ => false,
    };
    if is_taken { stored.clone() } else { ours.clone() }
}
