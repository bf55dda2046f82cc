//! Batches as record batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, FieldRef, Fields, SchemaRef};
use marquetry_base::{Bitmap, Budget, Buffer, Error, Result};
use marquetry_parquet::batch::{Array, ArrayKind, Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::format::{ARROW_SCHEMA_KEY, FileMetaData, KeyValue};
use marquetry_parquet::schema::Schema;

use crate::buffers::{nulls, scalars};
use crate::cost::{self, COLUMN_UNITS, VIEW_PRICE};
use crate::plan::{Plan, PlanKind};
use crate::requested::{self, StringLayout, Wish, wishes};
use crate::retype;
use crate::schema::{ArrowOptions, Column, apply_stored, columns};
use crate::stored::{Matched, stored_in};
use crate::values::{Fault, array, default_of, keys, text_as_bytes};

/// The longest Arrow schema of a whole table that is looked into for some of its columns, as text.
const PART_OF_BYTES_MAX: usize = 1 << 20;

/// Converts each batch of one reader to a record batch.
///
/// ```no_run
/// # use marquetry_parquet::{format::FileMetaData, batch::Batch};
/// # use marquetry_arrow::ToArrow;
/// # fn example(metadata: &FileMetaData, batches: Vec<Batch>) -> marquetry_base::Result<()> {
/// let mut to_arrow = ToArrow::new(&metadata.schema, None)?;
/// for batch in batches {
///     println!("{:?}", to_arrow.record_batch(&batch)?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ToArrow {
    schema: SchemaRef,
    columns: Vec<Column>,
    /// For the paths of leaves in errors.
    parquet: Arc<Schema>,
    stored_schema_error: Option<Error>,
    /// The position of each leaf of the schema in a batch.
    places: Vec<Option<usize>>,
    text_is_bytes: bool,
    dictionaries: Dictionaries,
    /// The columns of the batch that is being converted in steps, and whether one is.
    made: Vec<Made>,
    is_begun: bool,
}

#[derive(Debug, Default)]
struct Dictionaries {
    /// For each leaf, the dictionary of its latest batch and its array: the next batch usually has the same.
    of: HashMap<usize, (Arc<Values>, ArrayRef)>,
    /// What the values of the column at hand have cost.
    units: u64,
}

/// An array, and its field if that differs from the plan's, because it has a dictionary.
type Made = (Option<FieldRef>, ArrayRef);

impl ToArrow {
    /// For batches of `leaves`, which must be the ones passed as
    /// [`ReadOptions::leaves`](marquetry_parquet::read::ReadOptions::leaves); `None` for all. This is planning work, in one
    /// call.
    ///
    /// # Errors
    ///
    /// Those of [`arrow_schema`](crate::arrow_schema()).
    pub fn new(schema: &Arc<Schema>, leaves: Option<&[usize]>) -> Result<ToArrow> {
        ToArrow::with_options(schema, leaves, ArrowOptions::default())
    }

    /// [`ToArrow::new`], with a choice for Parquet types that have more than one Arrow type.
    ///
    /// # Errors
    ///
    /// Those of [`arrow_schema`](crate::arrow_schema()).
    pub fn with_options(
        schema: &Arc<Schema>,
        leaves: Option<&[usize]>,
        options: ArrowOptions,
    ) -> Result<ToArrow> {
        ToArrow::of_columns(schema, leaves, columns(schema, leaves, options)?)
    }

    /// For a file: like [`ToArrow::with_options`], and applies the Arrow schema that its writer stored
    /// (`ARROW:schema`), if any: types are then the writer's, as far as they can hold the file's values. The metadata
    /// of record batches is the footer's, without that schema, together with the schema's own.
    ///
    /// A stored schema that cannot be read, or has another number of columns, is ignored, and the types are those of
    /// the Parquet schema; [`ToArrow::stored_schema_error`] then returns the reason. To treat that as an error, check
    /// it, or call [`stored_schema`](crate::stored_schema()) first; pyarrow and parquet-rs refuse files whose stored
    /// schema is broken.
    ///
    /// # Errors
    ///
    /// Those of [`arrow_schema`](crate::arrow_schema()).
    pub fn of_file(
        metadata: &FileMetaData,
        leaves: Option<&[usize]>,
        options: ArrowOptions,
    ) -> Result<ToArrow> {
        ToArrow::of_table(&metadata.schema, &metadata.key_values, leaves, options)
    }

    /// The same for a table, for example of many files. Its key-value metadata contains the Arrow schema, if any.
    ///
    /// # Errors
    ///
    /// Those of [`arrow_schema`](crate::arrow_schema()).
    pub fn of_table<'a>(
        schema: &Arc<Schema>,
        key_values: impl IntoIterator<Item = &'a KeyValue> + Clone,
        leaves: Option<&[usize]>,
        options: ArrowOptions,
    ) -> Result<ToArrow> {
        let mut columns = columns(schema, leaves, options)?;
        let (stored, error) = match stored_in(key_values.clone()) {
            Ok(Some(stored)) => match apply_stored(schema, &mut columns, &stored, Matched::ByPlace) {
                Ok(()) => (Some(stored), None),
                Err(error) => (None, Some(error)),
            },
            Ok(None) => (None, None),
            Err(error) => (None, Some(error)),
        };
        let mut to_arrow = ToArrow::of_columns(schema, leaves, columns)?.with_key_values(key_values);
        to_arrow.stored_schema_error = error;
        if let Some(stored) = stored {
            let mut all = stored.metadata().clone();
            all.extend(to_arrow.schema.metadata().clone());
            all.remove(ARROW_SCHEMA_KEY);
            to_arrow.schema = Arc::new(to_arrow.schema.as_ref().clone().with_metadata(all));
        }
        Ok(to_arrow)
    }

    /// The same for some columns of a table, with their names: the Arrow schema is in the metadata of the whole, `of_all`, of which nothing else is
    /// taken. It is not looked into if it is longer than 1 MiB, of some ten thousand columns: these may be a few of very many, and that would take longer
    /// than to read them.
    ///
    /// # Errors
    ///
    /// Those of [`arrow_schema`](crate::arrow_schema()).
    pub fn of_part<'a>(
        schema: &Arc<Schema>,
        key_values: impl IntoIterator<Item = &'a KeyValue>,
        of_all: impl IntoIterator<Item = &'a KeyValue>,
        options: ArrowOptions,
    ) -> Result<ToArrow> {
        let mut columns = columns(schema, None, options)?;
        let is_short =
            |it: &&KeyValue| it.value.as_ref().is_none_or(|value| value.len() <= PART_OF_BYTES_MAX);
        let applied = match stored_in(of_all.into_iter().filter(is_short)) {
            Ok(Some(stored)) => apply_stored(schema, &mut columns, &stored, Matched::ByName),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let mut to_arrow = ToArrow::of_columns(schema, None, columns)?.with_key_values(key_values);
        to_arrow.stored_schema_error = applied.err();
        Ok(to_arrow)
    }

    /// Why the stored Arrow schema was not applied; `None` if it was applied, or there was none.
    pub fn stored_schema_error(&self) -> Option<&Error> {
        self.stored_schema_error.as_ref()
    }

    fn of_columns(
        schema: &Arc<Schema>,
        leaves: Option<&[usize]>,
        mut columns: Vec<Column>,
    ) -> Result<ToArrow> {
        columns.iter_mut().for_each(|column| column.aim(false));
        let all = schema.leaves().len();
        let mut places = vec![None; all];
        match leaves {
            None => places = (0..all).map(Some).collect(),
            Some(leaves) => leaves.iter().enumerate().for_each(|(place, &leaf)| places[leaf] = Some(place)),
        }
        let fields: Fields = columns.iter().map(|column| Arc::clone(column.field())).collect();
        Ok(ToArrow {
            schema: Arc::new(arrow_schema::Schema::new(fields)),
            columns,
            parquet: Arc::clone(schema),
            stored_schema_error: None,
            places,
            text_is_bytes: false,
            dictionaries: Dictionaries::default(),
            made: Vec::new(),
            is_begun: false,
        })
    }

    /// Gives record batches a footer's [`key_values`](marquetry_parquet::format::FileMetaData::key_values) as
    /// metadata, including `ARROW:schema`. Arrow cannot hold those without a value or whose value is not UTF-8: they
    /// are left out.
    #[must_use]
    pub fn with_key_values<'a>(mut self, key_values: impl IntoIterator<Item = &'a KeyValue>) -> ToArrow {
        let text = |value: &KeyValue| Some(core::str::from_utf8(value.value.as_ref()?).ok()?.to_string());
        let metadata: HashMap<String, String> =
            key_values.into_iter().filter_map(|pair| Some((pair.key.clone(), text(pair)?))).collect();
        self.schema = Arc::new(self.schema.as_ref().clone().with_metadata(metadata));
        self
    }

    /// Lays out strings, and bytes of any length, in this way, whatever the file's own Arrow schema says. Dictionaries stay dictionaries.
    #[must_use]
    pub fn with_strings(mut self, layout: StringLayout) -> ToArrow {
        let wishes = vec![Wish::Strings(layout); self.columns.len()];
        self.grant(&wishes);
        self
    }

    /// Gives the types that a schema asks for, as far as they are other layouts of the same values: strings and bytes as views, with offsets of 32 or of
    /// 64 bits, or in dictionaries; and lists with such offsets. All else stays as it is: other types, names, what can be null, metadata.
    ///
    /// # Errors
    ///
    /// `Misuse`, and nothing is changed, for a schema with another number of columns, or with other names; and while a batch is being converted in steps.
    pub fn request(&mut self, requested: &arrow_schema::Schema) -> Result<()> {
        if self.is_begun {
            return Err(Error::misuse("other types while a batch is being converted in steps"));
        }
        let wishes = wishes(self.schema.fields(), requested)?;
        self.grant(&wishes);
        Ok(())
    }

    fn grant(&mut self, wishes: &[Wish<'_>]) {
        for (column, wish) in self.columns.iter_mut().zip(wishes) {
            let field = requested::field(&column.plan, column.field(), *wish);
            column.become_field(field);
            column.aim(self.text_is_bytes);
        }
        let fields: Fields = self.columns.iter().map(|column| Arc::clone(column.field())).collect();
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(arrow_schema::Schema::new_with_metadata(fields, metadata));
    }

    /// Makes record batches for Arrow's C interfaces, where a schema alone says what bytes are: text with views becomes `BinaryView`, as the record
    /// batches' own schemas say; [`ToArrow::schema`] says what it is. It is checked to be UTF-8 here, all at once where it is ASCII, and so in a
    /// fraction of the time that the constructor of `Utf8View` takes, which looks at each string.
    #[must_use]
    pub fn with_text_as_bytes(mut self) -> ToArrow {
        self.text_is_bytes = true;
        self.columns.iter_mut().for_each(|column| column.aim(true));
        self
    }

    /// The schema of the record batches, except for dictionaries that were kept, and [text as bytes](ToArrow::with_text_as_bytes).
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Converts a batch.
    ///
    /// # Errors
    ///
    /// `Corrupt` for text that is not UTF-8, integers beyond their width, UNKNOWN columns with values, and levels that contradict each
    /// other; `Conversion` for values that Arrow's type cannot hold: INT96 timestamps, intervals and decimals out of
    /// range, and null map keys; `LimitExceeded` for lists of more than 2³¹ − 1 elements; `Misuse` for a batch of
    /// another schema or of other leaves. All but the last name the column, and the row unless the value is in a
    /// list.
    pub fn record_batch(&mut self, batch: &Batch) -> Result<RecordBatch> {
        if self.is_begun {
            return Err(Error::misuse("a batch while another one is being converted in steps"));
        }
        match self.step(batch, &mut Budget::unlimited())? {
            Some(record_batch) => Ok(record_batch),
            None => Err(Error::internal("a budget without an end is spent")),
        }
    }

    /// Does part of the conversion. `None` if the budget is spent: call again, with the same batch. Nested columns are assembled in slices; the
    /// values of a column, and a dictionary that the batch before did not have, are converted in one piece.
    ///
    /// # Errors
    ///
    /// Those of [`ToArrow::record_batch`]. After one, the next step begins with the first column.
    pub fn step(&mut self, batch: &Batch, budget: &mut Budget<'_>) -> Result<Option<RecordBatch>> {
        let converted = self.convert(batch, budget);
        self.is_begun = matches!(converted, Ok(false));
        if self.is_begun {
            return Ok(None);
        }
        let made = core::mem::take(&mut self.made);
        converted.and_then(|_| self.finish(batch, made)).map(Some)
    }

    /// Converts columns until all are, or the budget is spent.
    fn convert(&mut self, batch: &Batch, budget: &mut Budget<'_>) -> Result<bool> {
        let places = &self.places;
        let column_of = |leaf: usize| {
            let place = *places.get(leaf)?;
            batch.columns.get(place?).filter(|column| column.leaf == leaf && column.rows == batch.rows)
        };
        while let Some(column) = self.columns.get_mut(self.made.len()) {
            let made = self.dictionaries.column(column, (&self.parquet, batch), &column_of, budget);
            let made = made.and_then(|made| made.map(|made| stored(column, made, budget)).transpose());
            let made = made.map_err(|error| {
                error.at(|place| {
                    place.row_group = Some(marquetry_base::cast::u64_of(batch.row_group));
                    place.column = Some(column.plan.field.name().clone());
                })
            })?;
            let Some(made) = made else { return Ok(false) };
            self.made.push(made);
            budget.charge_units(COLUMN_UNITS + core::mem::take(&mut self.dictionaries.units));
            if budget.is_spent() && self.made.len() < self.columns.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&self, batch: &Batch, made: Vec<Made>) -> Result<RecordBatch> {
        let mut all = None;
        let mut arrays = Vec::with_capacity(made.len());
        for (number, (field, array)) in made.into_iter().enumerate() {
            if let Some(field) = field {
                let all: &mut Vec<FieldRef> =
                    all.get_or_insert_with(|| self.schema.fields().iter().map(Arc::clone).collect());
                all[number] = field;
            }
            arrays.push(array);
        }
        let schema = match all {
            None => Arc::clone(&self.schema),
            // For those who take the other schema, with its metadata.
            Some(all) if self.text_is_bytes => Arc::new(arrow_schema::Schema::new(all)),
            Some(all) => {
                Arc::new(arrow_schema::Schema::new_with_metadata(all, self.schema.metadata().clone()))
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|error| Fault::from(error).error)
    }
}

/// The array, converted to the type in the file's own Arrow schema, or that was asked for.
fn stored(column: &Column, (other, array): Made, budget: &mut Budget<'_>) -> Result<Made> {
    let Some(wanted) = &column.stored else { return Ok((other, array)) };
    // Strings are made as what they are to be.
    if array.data_type() != wanted.data_type() {
        budget.charge_units(cost::retype_units(&array));
    }
    let (field, array) = retype::apply(array, wanted)?;
    Ok(((field != *wanted).then_some(field), array))
}

impl Dictionaries {
    fn column<'a>(
        &mut self,
        column: &mut Column,
        (schema, batch): (&Schema, &Batch),
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Made>> {
        let mut make = Make { dictionaries: self, schema, first_row: batch.first_row, column_of };
        if let PlanKind::Leaf(leaf) = column.plan.kind {
            let found = column_of(leaf).ok_or_else(|| {
                let path = schema.leaf_path(leaf);
                Error::misuse(format!("a batch without the leaf {path}, or of other leaves"))
            })?;
            // Shared as it is: nothing has to be assembled.
            if found.levels.is_none() && (found.layout == Layout::Spaced || found.nulls == 0) {
                let validity = found.validity.as_ref();
                return make.leaf(&column.plan, &found.values, validity, validity, true).map(Some);
            }
        }
        match column.assembler.step(batch, column_of, budget)? {
            Some(array) => make.array(&column.plan, &array, None, true).map(Some),
            None => Ok(None),
        }
    }
}

/// Builds a column's arrays.
struct Make<'m, F> {
    dictionaries: &'m mut Dictionaries,
    schema: &'m Schema,
    first_row: u64,
    column_of: &'m F,
}

impl<'a, F: Fn(usize) -> Option<&'a ColumnBatch>> Make<'_, F> {
    /// `present`: the slots of the surrounding struct that are not null, if it is in one. `is_row`: slots are rows.
    fn array(&mut self, plan: &Plan, array: &Array, present: Option<&Bitmap>, is_row: bool) -> Result<Made> {
        let validity = array.validity.as_ref();
        // A nullable field is null where the struct around it is.
        let present = validity.or(present);
        match (&plan.kind, &array.kind) {
            (PlanKind::Leaf { .. }, ArrayKind::Values(values)) => {
                self.leaf(plan, values, validity, present, is_row)
            }
            (PlanKind::Struct(plans), ArrayKind::Struct(fields)) if plans.len() == fields.len() => {
                let made =
                    plans.iter().zip(fields).map(|(plan, field)| self.array(plan, field, present, is_row));
                let made: Vec<Made> = made.collect::<Result<_>>()?;
                let (fields, arrays, is_other) = parts(plans.iter(), made);
                let array = StructArray::try_new_with_length(fields, arrays, nulls(validity), array.length)
                    .map_err(refused)?;
                Ok(typed(plan, Arc::new(array), is_other))
            }
            (
                PlanKind::List(element),
                ArrayKind::List(offsets, elements) | ArrayKind::Map(offsets, elements, None),
            ) => {
                let made = self.array(element, elements, None, false)?;
                let is_other = made.0.is_some();
                let field = made.0.unwrap_or_else(|| Arc::clone(&element.field));
                let list = ListArray::try_new(field, self::offsets(offsets)?, made.1, nulls(validity))
                    .map_err(refused)?;
                Ok(typed(plan, Arc::new(list), is_other))
            }
            (PlanKind::Map { entries, key, value }, ArrayKind::Map(offsets, keys, Some(values))) => {
                let (key_made, value_made) =
                    (self.array(key, keys, None, false)?, self.array(value, values, None, false)?);
                if key_made.1.logical_null_count() > 0 {
                    return Err(Error::conversion("a null map key, which Arrow's maps cannot hold"));
                }
                let (fields, arrays, is_other) =
                    parts([&**key, &**value].into_iter(), vec![key_made, value_made]);
                let entries = if is_other {
                    Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(fields.clone())))
                } else {
                    Arc::clone(entries)
                };
                let pairs =
                    StructArray::try_new_with_length(fields, arrays, None, keys.length).map_err(refused)?;
                let map = MapArray::try_new(entries, self::offsets(offsets)?, pairs, nulls(validity), false)
                    .map_err(refused)?;
                Ok(typed(plan, Arc::new(map), is_other))
            }
            _ => Err(Error::internal("an array whose shape differs from its plan")),
        }
    }

    fn leaf(
        &mut self,
        plan: &Plan,
        values: &Values,
        validity: Option<&Bitmap>,
        present: Option<&Bitmap>,
        is_row: bool,
    ) -> Result<Made> {
        let PlanKind::Leaf(leaf) = plan.kind else {
            return Err(Error::internal("a leaf that is none"));
        };
        self.leaf_values(plan, leaf, values, validity, present).map_err(|fault| {
            fault.error.at(|place| {
                place.column = Some(self.schema.leaf_path(leaf));
                let row = |slot: usize| self.first_row.checked_add(marquetry_base::cast::u64_of(slot));
                place.row = fault.slot.filter(|_| is_row).and_then(row);
            })
        })
    }

    fn leaf_values(
        &mut self,
        plan: &Plan,
        leaf: usize,
        values: &Values,
        validity: Option<&Bitmap>,
        present: Option<&Bitmap>,
    ) -> Result<Made, Fault> {
        let data_type = plan.field.data_type();
        let nulls = nulls(validity);
        if *data_type == DataType::Null && (self.column_of)(leaf).is_none_or(has_values) {
            return Err(Error::corrupt("values in a column of UNKNOWN, which is always null").into());
        }
        let Values::Dictionary(indices, dictionary) = values else {
            return match &plan.made {
                None => {
                    self.dictionaries.units += cost::units(values, data_type);
                    Ok((None, array(values, data_type, nulls, present)?))
                }
                Some(made) => {
                    let field = plan.field.as_ref().clone().with_data_type(made.clone());
                    let array = match made {
                        DataType::BinaryView => {
                            self.dictionaries.units += cost::units(values, data_type);
                            text_as_bytes(values, nulls)?
                        }
                        _ => {
                            self.dictionaries.units += cost::units(values, made);
                            array(values, made, nulls, present)?
                        }
                    };
                    Ok((Some(Arc::new(field)), array))
                }
            };
        };
        self.dictionaries.units += VIEW_PRICE.of(0, indices.len());
        if *data_type == DataType::Null {
            return Ok((None, array(values, data_type, nulls, present)?));
        }
        let is_placed = validity.is_none() && !indices.is_empty();
        let entries = if dictionary.is_empty() && is_placed && !(self.column_of)(leaf).is_none_or(has_values)
        {
            // A required field whose structs are all null: its slots point to a dictionary's first entry, which does
            // not exist. This supplies a zero or empty entry, as plain columns have in such slots.
            array(&default_of(dictionary), data_type, None, Some(&[false].into_iter().collect()))?
        } else {
            self.dictionaries.entries(leaf, dictionary, data_type)?
        };
        let keys = keys(indices, nulls)?;
        let array: ArrayRef = Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, entries)?);
        let mut field = plan.field.as_ref().clone().with_data_type(array.data_type().clone());
        // They are defined on their own storage types only.
        let metadata = field.metadata().clone().into_iter();
        let kept = |key: &String| key != EXTENSION_TYPE_NAME_KEY && key != EXTENSION_TYPE_METADATA_KEY;
        field.set_metadata(metadata.filter(|(key, _)| kept(key)).collect::<HashMap<_, _>>());
        Ok((Some(Arc::new(field)), array))
    }
}

impl Dictionaries {
    /// A dictionary's entries: converted for the previous batch already, if that had the same dictionary.
    fn entries(
        &mut self,
        leaf: usize,
        dictionary: &Arc<Values>,
        data_type: &DataType,
    ) -> Result<ArrayRef, Fault> {
        if let Some((known, entries)) = self.of.get(&leaf)
            && Arc::ptr_eq(known, dictionary)
        {
            return Ok(Arc::clone(entries));
        }
        self.units += cost::units(dictionary, data_type);
        // The slot of an entry is not a row.
        let entries =
            array(dictionary, data_type, None, None).map_err(|fault| Fault { slot: None, ..fault })?;
        self.of.insert(leaf, (Arc::clone(dictionary), Arc::clone(&entries)));
        Ok(entries)
    }
}

/// True when any entry of a column has a value.
fn has_values(column: &ColumnBatch) -> bool {
    let entries = column.levels.as_ref().map_or(column.rows, |levels| levels.definition.len());
    column.nulls < entries
}

/// The fields and arrays, and whether any field differs from its plan's.
fn parts<'p>(plans: impl Iterator<Item = &'p Plan>, made: Vec<Made>) -> (Fields, Vec<ArrayRef>, bool) {
    let is_other = made.iter().any(|(field, _)| field.is_some());
    let (fields, arrays): (Vec<FieldRef>, Vec<ArrayRef>) = plans
        .zip(made)
        .map(|(plan, (field, array))| (field.unwrap_or_else(|| Arc::clone(&plan.field)), array))
        .unzip();
    (fields.into(), arrays, is_other)
}

fn typed(plan: &Plan, array: ArrayRef, is_other: bool) -> Made {
    let field = || Arc::new(plan.field.as_ref().clone().with_data_type(array.data_type().clone()));
    (is_other.then(field), array)
}

/// Offsets, which the engine creates in ascending order.
fn offsets(offsets: &Buffer<i32>) -> Result<OffsetBuffer<i32>> {
    let is_ordered = offsets.first().is_some_and(|&first| first >= 0) && offsets.is_sorted();
    if !is_ordered {
        return Err(Error::internal("offsets out of order"));
    }
    Ok(OffsetBuffer::new(scalars(offsets)))
}

fn refused(error: arrow_schema::ArrowError) -> Error {
    Fault::from(error).error
}
