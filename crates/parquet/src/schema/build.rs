//! From the footer's flat list of elements to the tree.

use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Limit, Limits, Release, Result, Segmented, release_all};

use super::{
    ConvertedType, EdgeAlgorithm, Leaf, LogicalType, Node, NodeKind, PhysicalType, Repetition, Schema,
    TimeUnit,
};
use crate::thrift::{ANY, Fields, Kind, Reader, Thrift, Wanted};

/// An element as stored in the footer (`SchemaElement`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Element {
    physical_type: Option<i32>,
    type_length: Option<i32>,
    repetition: Option<i32>,
    name: String,
    children: Option<i32>,
    converted_type: Option<i32>,
    scale: Option<i32>,
    precision: Option<i32>,
    field_id: Option<i32>,
    logical_type: Option<LogicalType>,
}

/// The known fields of `SchemaElement`.
pub(crate) const ELEMENT_FIELDS: Fields = &[
    (1, Wanted::Scalar),
    (2, Wanted::Scalar),
    (3, Wanted::Scalar),
    (4, Wanted::Scalar),
    (5, Wanted::Scalar),
    (6, Wanted::Scalar),
    (7, Wanted::Scalar),
    (8, Wanted::Scalar),
    (9, Wanted::Scalar),
    (10, Wanted::Struct(LOGICAL_TYPE_FIELDS)),
];
const LOGICAL_TYPE_FIELDS: Fields = &[
    (5, Wanted::Struct(TWO_SCALARS)),
    (7, Wanted::Struct(TIME_FIELDS)),
    (8, Wanted::Struct(TIME_FIELDS)),
    (10, Wanted::Struct(TWO_SCALARS)),
    (16, Wanted::Struct(TWO_SCALARS)),
    (17, Wanted::Struct(TWO_SCALARS)),
    (18, Wanted::Struct(TWO_SCALARS)),
    (ANY, Wanted::Struct(&[(ANY, Wanted::Nothing)])),
];
const TWO_SCALARS: Fields = &[(1, Wanted::Scalar), (2, Wanted::Scalar)];
const TIME_FIELDS: Fields = &[(1, Wanted::Scalar), (2, Wanted::Struct(&[(ANY, Wanted::Struct(&[]))]))];

impl Element {
    /// Reads one element.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Thrift<Element> {
        let mut element = Element::default();
        reader.structure(|reader, field| {
            let number = |reader: &mut Reader<'_>| reader.expect(field, Kind::I32, Reader::i32).map(Some);
            match field.id {
                1 => element.physical_type = number(reader)?,
                2 => element.type_length = number(reader)?,
                3 => element.repetition = number(reader)?,
                4 => element.name = reader.expect(field, Kind::Binary, Reader::string)?,
                5 => element.children = number(reader)?,
                6 => element.converted_type = number(reader)?,
                7 => element.scale = number(reader)?,
                8 => element.precision = number(reader)?,
                9 => element.field_id = number(reader)?,
                10 => element.logical_type = reader.expect(field, Kind::Struct, read_logical_type)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(element)
    }
}

impl Element {
    /// Whether a part of its children can be left out, and the others mean what they meant: it is a plain group.
    pub(crate) fn can_be_cut(&self) -> bool {
        self.repetition != Some(REPEATED) && self.converted_type.is_none() && self.logical_type.is_none()
    }

    /// The name, and the children of a group; what they are of a leaf.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The number of children, as it is in the file.
    pub(crate) fn children(&self) -> Option<i32> {
        self.children
    }

    /// The number of the physical type of a leaf.
    pub(crate) fn physical_type(&self) -> Option<i32> {
        self.physical_type
    }
}

/// The number of the repetition REPEATED.
const REPEATED: i32 = 2;

/// What an element says of its place in the schema, read without an allocation.
#[derive(Debug)]
pub(crate) struct Glance<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) is_leaf: bool,
    pub(crate) children: u32,
}

impl<'a> Glance<'a> {
    /// Reads one element, which is not the root.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Thrift<Glance<'a>> {
        let (mut name, mut physical_type, mut children) = (&[][..], None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => physical_type = Some(reader.expect(field, Kind::I32, Reader::i32)?),
                4 => name = reader.expect(field, Kind::Binary, Reader::binary)?,
                5 => children = Some(reader.expect(field, Kind::I32, Reader::i32)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let is_leaf = physical_type.is_some();
        if !is_leaf && children.is_none() {
            return reader.corrupt("a field with neither a type nor children");
        }
        let Ok(children) = u32::try_from(children.unwrap_or(0)) else {
            return reader.corrupt("a group of a negative number of children");
        };
        if is_leaf && children > 0 {
            return reader.corrupt("a field with both a type and children");
        }
        Ok(Glance { name, is_leaf, children })
    }
}

fn read_logical_type(reader: &mut Reader<'_>) -> Thrift<Option<LogicalType>> {
    let mut found = None;
    reader.structure(|reader, field| {
        let read = |reader: &mut Reader<'_>| -> Thrift<LogicalType> {
            let plain = |reader: &mut Reader<'_>, logical_type| {
                reader.skip(field.kind)?;
                Ok(logical_type)
            };
            match field.id {
                1 => plain(reader, LogicalType::String),
                2 => plain(reader, LogicalType::Map),
                3 => plain(reader, LogicalType::List),
                4 => plain(reader, LogicalType::Enum),
                5 => read_decimal(reader),
                6 => plain(reader, LogicalType::Date),
                // A time in a unit that this version does not know becomes a logical type that it does not know.
                7 => Ok(match read_time(reader)? {
                    (is_adjusted_to_utc, Some(unit)) => LogicalType::Time { is_adjusted_to_utc, unit },
                    (_, None) => LogicalType::Unrecognised { number: 7, has_fields: true },
                }),
                8 => Ok(match read_time(reader)? {
                    (is_adjusted_to_utc, Some(unit)) => LogicalType::Timestamp { is_adjusted_to_utc, unit },
                    (_, None) => LogicalType::Unrecognised { number: 8, has_fields: true },
                }),
                10 => read_integer(reader),
                11 => plain(reader, LogicalType::Unknown),
                12 => plain(reader, LogicalType::Json),
                13 => plain(reader, LogicalType::Bson),
                14 => plain(reader, LogicalType::Uuid),
                15 => plain(reader, LogicalType::Float16),
                16 => read_variant(reader),
                17 => read_geometry(reader).map(|(crs, _)| LogicalType::Geometry { crs }),
                18 => read_geometry(reader).map(|(crs, algorithm)| LogicalType::Geography { crs, algorithm }),
                19 => plain(reader, LogicalType::File),
                number => {
                    let mut has_fields = false;
                    reader.structure(|_, _| {
                        has_fields = true;
                        Ok(false)
                    })?;
                    Ok(LogicalType::Unrecognised { number, has_fields })
                }
            }
        };
        found = Some(reader.expect(field, Kind::Struct, read)?);
        Ok(true)
    })?;
    Ok(found)
}

fn read_decimal(reader: &mut Reader<'_>) -> Thrift<LogicalType> {
    let (mut scale, mut precision) = (0, 0);
    reader.structure(|reader, field| {
        match field.id {
            1 => scale = reader.expect(field, Kind::I32, Reader::i32)?,
            2 => precision = reader.expect(field, Kind::I32, Reader::i32)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(LogicalType::Decimal { scale, precision })
}

/// The unit is `None` if it is one that this version does not know.
fn read_time(reader: &mut Reader<'_>) -> Thrift<(bool, Option<TimeUnit>)> {
    let (mut is_adjusted_to_utc, mut unit) = (true, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => is_adjusted_to_utc = reader.bool(field)?,
            2 => reader.expect(field, Kind::Struct, |reader| {
                reader.structure(|_, field| {
                    unit = Some(match field.id {
                        1 => Some(TimeUnit::Millis),
                        2 => Some(TimeUnit::Micros),
                        3 => Some(TimeUnit::Nanos),
                        _ => None,
                    });
                    Ok(false)
                })
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    match unit {
        Some(unit) => Ok((is_adjusted_to_utc, unit)),
        None => reader.corrupt("a time without a unit"),
    }
}

fn read_integer(reader: &mut Reader<'_>) -> Thrift<LogicalType> {
    let (mut bit_width, mut is_signed) = (0, true);
    reader.structure(|reader, field| {
        match field.id {
            1 => bit_width = reader.expect(field, Kind::I8, Reader::i8)?,
            2 => is_signed = reader.bool(field)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    match bit_width {
        8 | 16 | 32 | 64 => Ok(LogicalType::Integer { bit_width: bit_width.unsigned_abs(), is_signed }),
        _ => reader.corrupt("an integer of other than 8, 16, 32 or 64 bits"),
    }
}

fn read_variant(reader: &mut Reader<'_>) -> Thrift<LogicalType> {
    let mut version = None;
    reader.structure(|reader, field| {
        match field.id {
            1 => version = Some(reader.expect(field, Kind::I8, Reader::i8)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(LogicalType::Variant { version })
}

fn read_geometry(reader: &mut Reader<'_>) -> Thrift<(Option<String>, Option<EdgeAlgorithm>)> {
    let (mut crs, mut algorithm) = (None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => crs = Some(reader.expect(field, Kind::Binary, Reader::string)?),
            2 => {
                algorithm = Some(match reader.expect(field, Kind::I32, Reader::i32)? {
                    0 => EdgeAlgorithm::Spherical,
                    1 => EdgeAlgorithm::Vincenty,
                    2 => EdgeAlgorithm::Thomas,
                    3 => EdgeAlgorithm::Andoyer,
                    4 => EdgeAlgorithm::Karney,
                    other => EdgeAlgorithm::Unknown(other),
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((crs, algorithm))
}

/// A group whose children are being read.
#[derive(Debug)]
struct Open {
    node: usize,
    children_left: u32,
    definition_max: u16,
    repetition_max: u16,
    path_bytes: usize,
    /// It is left out if nothing is added that is in it.
    is_part: bool,
}

/// Maximum nesting, whatever the limit: levels have 16 bits, and each group and the leaf add at most one.
const NESTING_MAX: u32 = u16::MAX as u32 - 1;

/// Builds the tree from its elements, one by one, depth-first. Never recurses.
#[derive(Debug)]
pub(crate) struct SchemaBuilder {
    schema: Schema,
    /// The groups that the next element is in.
    open: Vec<Open>,
    /// The path of the last element.
    path: String,
    total: usize,
    /// Elements so far, those that were left out among them.
    seen: usize,
    limits: Limits,
}

impl Release for SchemaBuilder {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.schema, &mut self.path], budget)
    }
}

impl SchemaBuilder {
    /// A builder of a schema of `total` elements.
    pub(crate) fn new(total: usize, limits: &Limits) -> SchemaBuilder {
        SchemaBuilder {
            schema: Schema { nodes: Segmented::new(), leaves: Segmented::new() },
            open: Vec::new(),
            path: String::new(),
            total,
            seen: 0,
            limits: *limits,
        }
    }

    /// The groups that the next element is in, the root among them.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Leaves out the next element; `is_whole` if it ends a child of a group that is not left out.
    ///
    /// # Errors
    ///
    /// `Corrupt` for elements that are not a tree.
    pub(crate) fn leave_out(&mut self, is_whole: bool) -> Result<()> {
        let Some(group) = self.open.last_mut() else { return Err(self.no_tree()) };
        self.seen += 1;
        if is_whole {
            group.children_left -= 1;
            self.close();
        }
        Ok(())
    }

    fn no_tree(&self) -> Error {
        let (total, seen) = (self.total, self.seen);
        Error::corrupt(alloc::format!("a schema of {total} elements, of which {seen} are a tree"))
    }

    /// Ends the groups that are complete.
    fn close(&mut self) {
        while self.open.last().is_some_and(|group| group.children_left == 0) {
            let Some(group) = self.open.pop() else { return };
            let end = self.schema.nodes.len();
            if group.is_part && end == group.node + 1 {
                self.schema.nodes.pop();
            } else {
                self.schema.nodes[group.node].kind = NodeKind::Group { end };
            }
        }
    }

    /// Adds the next element.
    ///
    /// # Errors
    ///
    /// `Corrupt` for elements that are not a tree or have invalid types; `LimitExceeded` for `nesting`, for
    /// `structure_bytes` of a path.
    pub(crate) fn add(&mut self, element: Element) -> Result<()> {
        self.add_part(element, false)
    }

    /// The same; if `is_part`, a group is left out if all is left out that is in it.
    ///
    /// # Errors
    ///
    /// As [`SchemaBuilder::add`].
    pub(crate) fn add_part(&mut self, element: Element, is_part: bool) -> Result<()> {
        let index = self.schema.nodes.len();
        let is_root = index == 0;
        let (parent, path_bytes) = match self.open.last() {
            Some(group) => (group.node, group.path_bytes),
            None if is_root => (0, 0),
            None => return Err(self.no_tree()),
        };
        self.seen += 1;
        self.path.truncate(path_bytes);
        if !is_root {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(&element.name);
        }
        self.add_at(index, parent, element, is_part).map_err(|error| {
            if is_root { error } else { error.at(|place| place.column = Some(self.path.clone())) }
        })
    }

    fn add_at(&mut self, index: usize, parent: usize, element: Element, is_part: bool) -> Result<()> {
        let is_root = index == 0;
        if is_root && element.physical_type.is_some() && element.children.is_none() {
            return Err(Error::corrupt("a schema whose root is a leaf"));
        }
        self.limits.check(Limit::StructureBytes, u64_of(self.path.len()))?;
        let repetition = match element.repetition {
            // The root's repetition is meaningless, and writers set it to anything.
            _ if is_root => Repetition::Required,
            Some(0) => Repetition::Required,
            Some(1) => Repetition::Optional,
            Some(2) => Repetition::Repeated,
            // Arrow C++ and DuckDB read it so.
            None => Repetition::Required,
            Some(other) => {
                return Err(Error::corrupt(alloc::format!("a field of the unknown repetition {other}")));
            }
        };
        let (above, above_repeated) =
            self.open.last().map_or((0, 0), |group| (group.definition_max, group.repetition_max));
        let definition_max = above + u16::from(repetition != Repetition::Required);
        let repetition_max = above_repeated + u16::from(repetition == Repetition::Repeated);
        if let Some(group) = self.open.last_mut() {
            group.children_left -= 1;
        }
        if !is_root && element.physical_type.is_none() && element.children.is_none() {
            return Err(Error::corrupt("a field with neither a type nor children"));
        }
        let children = element.children.unwrap_or(0);
        let children = u32::try_from(children)
            .map_err(|_| Error::corrupt(alloc::format!("a group of {children} children")))?;
        let is_leaf = element.physical_type.is_some() && !is_root;
        let converted_type = element.converted_type.map(ConvertedType);
        let converted = converted_type.and_then(|it| it.logical_type(element.scale, element.precision));
        let is_older_only = element.logical_type.is_none() && converted.is_some();
        let annotation = match (&element.logical_type, converted) {
            // Parquet-java's annotation of an interval, which only exists as a converted type.
            (Some(LogicalType::Unknown) | None, Some(LogicalType::Interval)) => Some(LogicalType::Interval),
            (Some(logical_type), _) => Some(logical_type.clone()),
            (None, converted) => converted,
        };
        let kind = if is_leaf {
            if children > 0 {
                return Err(Error::corrupt("a field with both a type and children"));
            }
            let physical_type = physical_type(&element)?;
            check_annotation(annotation.as_ref(), physical_type)?;
            let leaf = self.schema.leaves.len();
            self.schema.leaves.push(Leaf { node: index, physical_type, definition_max, repetition_max });
            NodeKind::Leaf { leaf }
        } else {
            NodeKind::Group { end: index + 1 }
        };
        self.schema.nodes.push(Node {
            name: element.name,
            is_numbered: false,
            repetition,
            logical_type: annotation,
            converted_type,
            is_older_only,
            field_id: element.field_id,
            parent,
            kind,
        });
        if !is_leaf {
            // The root is level 0.
            let nesting = self.limits.nesting.min(NESTING_MAX);
            Limit::Nesting.check(nesting.into(), u64_of(self.open.len()))?;
            self.open.push(Open {
                node: index,
                children_left: children,
                definition_max,
                repetition_max,
                path_bytes: self.path.len(),
                is_part,
            });
        }
        self.close();
        Ok(())
    }

    /// Returns the schema once all elements were added.
    ///
    /// # Errors
    ///
    /// `Corrupt` when children are missing.
    pub(crate) fn finish(self) -> Result<Schema> {
        if let Some(group) = self.open.first() {
            return Err(Error::corrupt(alloc::format!(
                "a schema that ends {} children early",
                self.open
                    .iter()
                    .map(|group| u64::from(group.children_left))
                    .sum::<u64>()
                    .max(u64::from(group.children_left))
            )));
        }
        if self.schema.nodes.is_empty() {
            return Err(Error::corrupt("an empty schema"));
        }
        Ok(self.schema)
    }
}

#[cfg(test)]
impl Schema {
    fn build(elements: Vec<Element>, limits: &Limits) -> Result<Schema> {
        let mut builder = SchemaBuilder::new(elements.len(), limits);
        elements.into_iter().try_for_each(|element| builder.add(element))?;
        builder.finish()
    }
}

fn physical_type(element: &Element) -> Result<PhysicalType> {
    Ok(match element.physical_type {
        Some(0) => PhysicalType::Boolean,
        Some(1) => PhysicalType::Int32,
        Some(2) => PhysicalType::Int64,
        Some(3) => PhysicalType::Int96,
        Some(4) => PhysicalType::Float,
        Some(5) => PhysicalType::Double,
        Some(6) => PhysicalType::ByteArray,
        Some(7) => match element.type_length.map(u32::try_from) {
            Some(Ok(width)) => PhysicalType::FixedLenByteArray(width),
            Some(Err(_)) => return Err(Error::corrupt("a FIXED_LEN_BYTE_ARRAY of a negative length")),
            None => return Err(Error::corrupt("a FIXED_LEN_BYTE_ARRAY without a length")),
        },
        other => {
            return Err(Error::corrupt(alloc::format!("the unknown physical type {}", other.unwrap_or(-1))));
        }
    })
}

/// Checks that the physical type can carry the annotation (`LogicalTypes.md`).
pub(super) fn check_annotation(annotation: Option<&LogicalType>, physical_type: PhysicalType) -> Result<()> {
    use PhysicalType::{ByteArray, FixedLenByteArray, Int32, Int64};
    let Some(annotation) = annotation else { return Ok(()) };
    let fits = match annotation {
        LogicalType::String | LogicalType::Enum | LogicalType::Json | LogicalType::Bson => {
            physical_type == ByteArray
        }
        LogicalType::Geometry { .. } | LogicalType::Geography { .. } => physical_type == ByteArray,
        LogicalType::Decimal { scale, precision } => {
            if *precision < 1 || *scale > *precision || *scale < 0 {
                return Err(Error::corrupt(alloc::format!(
                    "a decimal of precision {precision} and scale {scale}"
                )));
            }
            match physical_type {
                Int32 | Int64 | ByteArray => true,
                FixedLenByteArray(width) => width > 0,
                _ => false,
            }
        }
        LogicalType::Date => physical_type == Int32,
        LogicalType::Time { unit: TimeUnit::Millis, .. } => physical_type == Int32,
        LogicalType::Time { .. } | LogicalType::Timestamp { .. } => physical_type == Int64,
        LogicalType::Integer { bit_width: 64, .. } => physical_type == Int64,
        LogicalType::Integer { .. } => physical_type == Int32,
        LogicalType::Interval => physical_type == FixedLenByteArray(12),
        LogicalType::Uuid => physical_type == FixedLenByteArray(16),
        LogicalType::Float16 => physical_type == FixedLenByteArray(2),
        LogicalType::Unknown | LogicalType::Unrecognised { .. } => true,
        LogicalType::Map
        | LogicalType::MapKeyValue
        | LogicalType::List
        | LogicalType::Variant { .. }
        | LogicalType::File => false,
    };
    if fits {
        Ok(())
    } else {
        Err(Error::corrupt(alloc::format!("the logical type {annotation} cannot annotate {physical_type}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn group(name: &str, repetition: i32, children: i32) -> Element {
        Element {
            name: name.into(),
            repetition: Some(repetition),
            children: Some(children),
            ..Element::default()
        }
    }

    fn leaf(name: &str, repetition: i32, physical_type: i32) -> Element {
        Element {
            name: name.into(),
            repetition: Some(repetition),
            physical_type: Some(physical_type),
            ..Element::default()
        }
    }

    #[test]
    fn levels_and_paths() {
        let elements = vec![
            group("root", 0, 3),
            leaf("a", 0, 1),
            group("b", 1, 2),
            group("list", 2, 1),
            leaf("element", 1, 6),
            leaf("c", 0, 2),
            leaf("d", 1, 5),
        ];
        let schema = Schema::build(elements, &Limits::DEFAULT).unwrap();
        let paths: Vec<_> = schema.leaves().iter().map(|leaf| schema.path(leaf.node)).collect();
        let leaves: Vec<_> = (paths.iter().zip(schema.leaves()))
            .map(|(path, leaf)| (&**path, leaf.definition_max, leaf.repetition_max))
            .collect();
        assert_eq!(leaves, [("a", 0, 0), ("b.list.element", 3, 1), ("b.c", 1, 0), ("d", 1, 0)]);
        assert_eq!(schema.children(0).collect::<Vec<_>>(), [1, 2, 6]);
        assert_eq!(schema.children(2).collect::<Vec<_>>(), [3, 5]);
        assert_eq!(schema.leaves_of(2).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(schema.leaves_of(6).collect::<Vec<_>>(), [3]);
        assert_eq!(schema.child_of_root("d"), Some(6));
    }

    #[test]
    fn trees_that_lie_are_refused() {
        let build = |elements| Schema::build(elements, &Limits::DEFAULT).map(|_| ()).unwrap_err();
        assert_eq!(
            build(vec![group("root", 0, 2), leaf("a", 0, 1)]).message(),
            "a schema that ends 1 children early"
        );
        assert_eq!(
            build(vec![group("root", 0, 1), leaf("a", 0, 1), leaf("b", 0, 1)]).message(),
            "a schema of 3 elements, of which 2 are a tree"
        );
        assert_eq!(build(vec![group("root", 0, -1)]).message(), "a group of -1 children");
        assert_eq!(
            build(vec![group("root", 0, 1), leaf("a", 7, 1)]).message(),
            "a field of the unknown repetition 7"
        );
        assert_eq!(
            build(vec![group("root", 0, 1), leaf("a", 0, 9)]).message(),
            "the unknown physical type 9"
        );
        let deep: Vec<_> = (0..100).map(|_| group("g", 1, 1)).collect();
        assert_eq!(build(deep).kind(), marquetry_base::ErrorKind::LimitExceeded);
    }

    #[test]
    fn an_interval_that_its_logical_type_does_not_know() {
        let built = |converted_type| {
            let mut interval = leaf("a", 0, 7);
            interval.type_length = Some(12);
            interval.logical_type = Some(LogicalType::Unknown);
            interval.converted_type = converted_type;
            Schema::build(vec![group("root", 0, 1), interval], &Limits::DEFAULT).unwrap()
        };
        let annotation = |converted_type| built(converted_type).nodes()[1].logical_type.clone();
        assert_eq!(annotation(Some(21)), Some(LogicalType::Interval));
        assert_eq!(annotation(None), Some(LogicalType::Unknown));
        // UTF8: no writer is known to contradict itself in this way.
        assert_eq!(annotation(Some(0)), Some(LogicalType::Unknown));
    }

    #[test]
    fn annotations_must_fit() {
        let mut text = leaf("a", 0, 1);
        text.converted_type = Some(0);
        let error = Schema::build(vec![group("root", 0, 1), text], &Limits::DEFAULT).unwrap_err();
        assert_eq!(error.message(), "the logical type STRING cannot annotate INT32");
        assert_eq!(error.place().column.as_deref(), Some("a"));
    }
}
