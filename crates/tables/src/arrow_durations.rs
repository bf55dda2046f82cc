//! Arrow's durations: lengths of time, which Parquet has no type for, and so are written as numbers.
//!
//! What they are is in the Arrow schema that writers keep beside the columns (`ARROW:schema`): a message of Arrow's IPC format, in base 64. Only what
//! tells durations is read of it. Source: Arrow's `Message.fbs` and `Schema.fbs`, and "Internals" in the documentation of FlatBuffers.

use std::collections::{BTreeSet, HashMap};

use marquetry_base::cast::usize_of_u32;
use marquetry_base::print::of_base64;
use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_parquet::format::{ARROW_SCHEMA_KEY, KeyValue};
use marquetry_parquet::schema::{PhysicalType, Schema};

use crate::Table;

impl Table {
    /// Takes note of the leaves that are [durations](Table::durations) by the Arrow schema in the table's metadata, if there is one.
    pub fn note_durations(&mut self) {
        self.durations = durations(&self.key_values, &self.schema);
    }

    /// The same, by the metadata of a file, which has columns of this schema.
    pub(crate) fn note_durations_of<'a>(
        &mut self,
        key_values: impl IntoIterator<Item = &'a KeyValue>,
        schema: &Schema,
    ) {
        let found: BTreeSet<String> =
            durations(key_values, schema).into_iter().map(|leaf| schema.leaf_path(leaf)).collect();
        if !found.is_empty() {
            let leaves = 0..self.schema.leaves().len();
            let more = leaves.filter(|leaf| found.contains(&self.schema.leaf_path(*leaf)));
            let all: BTreeSet<usize> = self.durations.iter().copied().chain(more).collect();
            self.durations = all.into_iter().collect();
        }
    }

    /// Fails for rows with [durations](Table::durations), of some columns if only they are wanted: for a destination that has no type for them, and
    /// keeps nothing beside the numbers that says what they count.
    ///
    /// # Errors
    ///
    /// `Conversion`: each of them, in one error.
    pub fn expect_no_durations(&self, columns: Option<&[String]>) -> Result<()> {
        let mut faults = Faults::default();
        for leaf in &self.durations {
            let path = self.schema.leaf_path(*leaf);
            let is_of = |name: &str| {
                path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let is_wanted = |name: &String| is_of(name) || is_of(&name.to_ascii_lowercase());
            if columns.is_none_or(|columns| columns.iter().any(is_wanted)) {
                let what = "a duration of Arrow's (or, in a file of very many columns, what may be one), whose unit the table would not have: types must say what it becomes, such as bigint";
                let error = Error::conversion(what).with(Detail::AdmittedBy(&["types"]));
                faults.add(error.at(|place| place.column = Some(path)));
            }
        }
        faults.into_result()
    }
}

/// The longest text of an Arrow schema that is looked into, of some ten thousand columns: a table may have been opened for a few of very many, in less
/// time than that of them all would take.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The leaves of a schema that are durations, in order; all that may be, where the Arrow schema is longer than is looked into. Of metadata that cannot be
/// read there are none.
fn durations<'a>(key_values: impl IntoIterator<Item = &'a KeyValue>, schema: &Schema) -> Vec<usize> {
    let pair = key_values.into_iter().find(|pair| pair.key == ARROW_SCHEMA_KEY);
    let Some(value) = pair.and_then(|pair| pair.value.as_deref()) else { return Vec::new() };
    let is_number = |leaf: usize| {
        schema.leaves().get(leaf).is_some_and(|leaf| {
            leaf.physical_type == PhysicalType::Int64 && schema.node_of(leaf).logical_type.is_none()
        })
    };
    let mut numbers = (0..schema.leaves().len()).filter(|leaf| is_number(*leaf));
    if value.len() > TEXT_BYTES_MAX {
        return numbers.collect();
    }
    if numbers.next().is_none() {
        return Vec::new();
    }
    let Some(message) = of_base64(value.trim_ascii()) else { return Vec::new() };
    let columns = columns(&message).unwrap_or_default();
    if columns.is_empty() {
        return Vec::new();
    }
    let nodes = schema.children(0).filter_map(|node| Some((&*schema.nodes().get(node)?.name, node)));
    let nodes: HashMap<&str, usize> = nodes.collect();
    let mut found = Vec::new();
    for (name, are_durations) in columns {
        let Some(node) = nodes.get(name) else { continue };
        let leaves = schema.leaves_of(*node);
        // It may be of other columns than these.
        if leaves.len() == are_durations.len() {
            let those = leaves.zip(are_durations).filter(|(leaf, is_one)| *is_one && is_number(*leaf));
            found.extend(those.map(|(leaf, _)| leaf));
        }
    }
    found.sort_unstable();
    found
}

/// The number of `Schema` among the headers of a message, and of `Duration` among types.
const SCHEMA: u8 = 1;
const DURATION: u8 = 18;
/// The deepest nesting of types that is looked at.
const DEPTH_MAX: usize = 64;

/// The columns that have durations, by name, and of each of their leaves whether it is one.
fn columns(message: &[u8]) -> Option<Vec<(&str, Vec<bool>)>> {
    // A message may begin with a marker and its length.
    let message = match message.split_at_checked(8) {
        Some((start, rest)) if start.starts_with(&[0xff; 4]) => rest,
        _ => message,
    };
    let root = Flat { bytes: message, at: number(message, 0)? };
    if root.byte(1) != SCHEMA {
        return None;
    }
    let mut columns = Vec::new();
    // A field takes more bytes than that, but a hostile one may be in many places.
    let mut left = message.len() / 8;
    for field in root.table(2)?.tables(1) {
        let mut leaves = Vec::new();
        add_leaves(field, 0, &mut left, &mut leaves)?;
        if leaves.contains(&true) {
            columns.push((field.text(0)?, leaves));
        }
    }
    Some(columns)
}

/// Adds the leaves of a field. `None` if there are too many, or they are nested too deeply.
fn add_leaves(field: Flat<'_>, depth: usize, left: &mut usize, leaves: &mut Vec<bool>) -> Option<()> {
    *left = left.checked_sub(1).filter(|_| depth < DEPTH_MAX)?;
    let mut is_leaf = true;
    for child in field.tables(5) {
        is_leaf = false;
        add_leaves(child, depth + 1, left, leaves)?;
    }
    if is_leaf {
        leaves.push(field.byte(2) == DURATION);
    }
    Some(())
}

/// A table of a FlatBuffer. Fields that are missing, or lead out of it, have no value.
#[derive(Clone, Copy)]
struct Flat<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Flat<'a> {
    /// Where the value of a field is.
    fn field(self, field: usize) -> Option<usize> {
        let back = i32::from_le_bytes(array(self.bytes, self.at)?);
        let fields = i64::try_from(self.at).ok()?.checked_sub(i64::from(back))?;
        let fields = usize::try_from(fields).ok()?;
        let place = 4 + 2 * field;
        if usize::from(u16::from_le_bytes(array(self.bytes, fields)?)) < place + 2 {
            return None;
        }
        let offset = u16::from_le_bytes(array(self.bytes, fields.checked_add(place)?)?);
        if offset == 0 { None } else { self.at.checked_add(offset.into()) }
    }

    /// A number of one byte: 0 if there is none.
    fn byte(self, field: usize) -> u8 {
        self.field(field).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0)
    }

    /// Where an offset leads to.
    fn to(self, at: usize) -> Option<usize> {
        at.checked_add(number(self.bytes, at)?)
    }

    fn table(self, field: usize) -> Option<Flat<'a>> {
        Some(Flat { at: self.to(self.field(field)?)?, ..self })
    }

    fn text(self, field: usize) -> Option<&'a str> {
        let at = self.to(self.field(field)?)?;
        let start = at.checked_add(4)?;
        let text = self.bytes.get(start..start.checked_add(number(self.bytes, at)?)?)?;
        std::str::from_utf8(text).ok()
    }

    /// The tables of a vector.
    fn tables(self, field: usize) -> impl Iterator<Item = Flat<'a>> {
        let start = self.field(field).and_then(|at| self.to(at));
        let count = start.and_then(|at| number(self.bytes, at)).unwrap_or(0);
        let slots =
            start.into_iter().flat_map(move |at| (1..=count).map_while(move |nth| at.checked_add(4 * nth)));
        slots.map_while(move |slot| Some(Flat { at: self.to(slot)?, ..self }))
    }
}

/// An unsigned number of four bytes.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    array(bytes, at).map(u32::from_le_bytes).map(usize_of_u32)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use marquetry_base::print::base64;
    use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, TimeUnit};

    /// By pyarrow, of `id` int64, `took` duration\[us\], `trip` struct<at: timestamp\[us\], legs: list<duration\[s\]>, n: int64>, `by`
    /// map<string, duration\[ms\]>, `often` dictionary<string>.
    const STORED: &str = "\
        /////6ACAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAEAAAAqP///wQAAAAFAAAARAIAAAACAAAYAQAAYAAAABQAAAAQABgACAAGAAcADAAQAB\
        QAEAAAAAAAAQUUAAAAOAAAACAAAAAEAAAAAAAAAAUAAABvZnRlbgAAAAgACAAAAAQACAAAAAQAAAD4/f//AAAAASAAAADA/v//OP7//wAAAREU\
        AAAAGAAAAAQAAAABAAAAEAAAAAIAAABieQAA6P7//6j///8AAAANGAAAACAAAAAEAAAAAgAAAFAAAAAUAAAABwAAAGVudHJpZXMAGP///5D+//\
        8AAAESEAAAABgAAAAEAAAAAAAAAAUAAAB2YWx1ZQAAAED///8QABQACAAAAAcADAAAABAAEAAAAAAAAAUQAAAAFAAAAAQAAAAAAAAAAwAAAGtl\
        eQB0////7P7//wAAAQ0cAAAAJAAAAAQAAAADAAAApAAAAEQAAAAUAAAABAAAAHRyaXAAAAAAqP///yD///8AAAECEAAAABQAAAAEAAAAAAAAAA\
        EAAABuAAAAEP///wAAAAFAAAAATP///wAAAQwUAAAAIAAAAAQAAAABAAAAGAAAAAQAAABsZWdzAAAAAAQABAAEAAAAfP///wAAARIQAAAAGAAA\
        AAQAAAAAAAAABAAAAGl0ZW0AAAAArv///wAAAACo////AAABChAAAAAUAAAABAAAAAAAAAACAAAAYXQAANb///8AAAIA0P///wAAARIQAAAAHA\
        AAAAQAAAAAAAAABAAAAHRvb2sAAAYACAAGAAYAAAAAAAIAEAAUAAgABgAHAAwAAAAQABAAAAAAAAECEAAAABwAAAAEAAAAAAAAAAIAAABpZAAA\
        CAAMAAgABwAIAAAAAAAAAUAAAAA=";

    fn schema() -> Arc<Schema> {
        let leaf = |name: &str, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical));
        let number = |name| leaf(name, PhysicalType::Int64, None);
        let text = |name| leaf(name, PhysicalType::ByteArray, Some(LogicalType::String));
        let at = LogicalType::Timestamp { is_adjusted_to_utc: false, unit: TimeUnit::Micros };
        let trip = vec![
            leaf("at", PhysicalType::Int64, Some(at)),
            FieldDef::new("legs", FieldType::List(Box::new(number("element")))),
            number("n"),
        ];
        let by = FieldType::Map(Box::new(text("key").required()), Some(Box::new(number("value"))));
        let fields = [
            number("id"),
            number("took"),
            FieldDef::new("trip", FieldType::Struct(trip, None)),
            FieldDef::new("by", by),
            text("often"),
        ];
        Arc::new(Schema::of_fields(&fields).unwrap())
    }

    fn stored(value: impl Into<Vec<u8>>) -> KeyValue {
        KeyValue { key: ARROW_SCHEMA_KEY.to_owned(), value: Some(value.into().into()) }
    }

    #[test]
    fn durations_are_found_where_they_are() {
        let mut table = Table::new("trips", schema());
        table.note_durations();
        assert!(table.durations.is_empty());
        table.expect_no_durations(None).unwrap();
        table.key_values = vec![stored(STORED)];
        table.note_durations();
        assert_eq!(table.durations, [1, 3, 6]);
        let error = table.expect_no_durations(None).unwrap_err();
        assert_eq!(error.parts().len(), 3);
        assert_eq!(error.parts()[0].detail(), Some(Detail::AdmittedBy(&["types"])));
        assert_eq!(error.parts()[0].place().column.as_deref(), Some("took"));
        let columns =
            |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        table.expect_no_durations(Some(&columns(&["id", "often"]))).unwrap();
        assert!(table.expect_no_durations(Some(&columns(&["id", "by"]))).is_err());
        // Another file has only some of its columns, and others of the same names.
        let mut some = Table::new("trips", schema());
        let few = [FieldDef::new("took", FieldType::Leaf(PhysicalType::Int64, None))];
        some.note_durations_of(&[stored(STORED)], &Schema::of_fields(&few).unwrap());
        assert_eq!(some.durations, [1]);
        let other = [FieldDef::new("took", FieldType::Leaf(PhysicalType::Int32, None))];
        let mut other = Table::new("trips", Arc::new(Schema::of_fields(&other).unwrap()));
        other.key_values = vec![stored(STORED)];
        other.note_durations();
        assert!(other.durations.is_empty());
        // Where it is too long to be looked into, each number without a type of its own may be one.
        let numbers = table.schema.leaves().iter().enumerate().filter(|(_, leaf)| {
            leaf.physical_type == PhysicalType::Int64 && table.schema.node_of(leaf).logical_type.is_none()
        });
        let numbers: Vec<usize> = numbers.map(|(leaf, _)| leaf).collect();
        assert!([1, 3, 6].iter().all(|leaf| numbers.contains(leaf)));
        table.key_values = vec![stored(vec![b'A'; TEXT_BYTES_MAX + 1])];
        table.note_durations();
        assert_eq!(table.durations, numbers);
    }

    /// Whatever is there is read in bounded time, and without a panic.
    #[test]
    fn what_is_damaged_is_nothing_else() {
        let whole = of_base64(STORED.as_bytes()).unwrap();
        let found = |bytes: &[u8]| {
            let mut text = Vec::new();
            base64(&mut text, bytes);
            durations(&[stored(text)], &schema())
        };
        assert_eq!(found(&whole), [1, 3, 6]);
        for end in 0..whole.len() {
            found(&whole[..end]);
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                found(&damaged);
            }
        }
        assert!(durations(&[stored("no base 64")], &schema()).is_empty());
    }
}
