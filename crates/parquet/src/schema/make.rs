//! Schemas that are built from the meaning of their fields instead of being read from a file.
//!
//! Lists and maps are written in the one shape that the format recommends (`LogicalTypes.md`, "Nested Types").

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::{Error, ErrorKind, Limit, Limits, Result};

use super::build::check_annotation;
use super::field::{Field, FieldKind, Writer};
use super::{ConvertedType, LogicalType, PhysicalType, Schema};

/// A field of a schema to be built.
///
/// ```
/// use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
///
/// let text = FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
/// let tags = FieldType::List(Box::new(FieldDef::new("element", text)));
/// let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
/// let schema = Schema::of_fields(&[id, FieldDef::new("tags", tags)])?;
/// assert_eq!(schema.leaf_path(1), "tags.list.element");
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FieldDef {
    /// Its name. The contents of lists and maps get the format's names instead.
    pub name: String,
    /// Whether it may be null.
    pub is_nullable: bool,
    /// A number that stays when the name changes.
    pub field_id: Option<i32>,
    /// What it holds.
    pub field_type: FieldType,
}

/// What a [`FieldDef`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldType {
    /// A value: its physical type and its meaning.
    Leaf(PhysicalType, Option<LogicalType>),
    /// Fields, and their meaning together, if any: VARIANT.
    Struct(Vec<FieldDef>, Option<LogicalType>),
    /// Elements.
    List(Box<FieldDef>),
    /// Keys, which are never null, and values; or only keys.
    Map(Box<FieldDef>, Option<Box<FieldDef>>),
}

impl FieldDef {
    /// A field that may be null.
    pub fn new(name: impl Into<String>, field_type: FieldType) -> FieldDef {
        FieldDef { name: name.into(), is_nullable: true, field_id: None, field_type }
    }

    /// The same, never null.
    #[must_use]
    pub fn required(self) -> FieldDef {
        FieldDef { is_nullable: false, ..self }
    }
}

impl Schema {
    /// The schema of these columns. This is planning work, in one call.
    ///
    /// # Errors
    ///
    /// `Misuse`, naming the column, for a logical type that cannot annotate its physical type, a group without fields,
    /// or nullable keys of a map; `LimitExceeded` for nesting deeper than [`Limits::DEFAULT`] allows.
    pub fn of_fields(fields: &[FieldDef]) -> Result<Schema> {
        let mut writer = Writer::new("schema");
        for def in fields {
            write(&mut writer, def, 1).map_err(|error| {
                let name = def.name.clone();
                error.at(|place| place.column = Some(name))
            })?;
        }
        Ok(writer.finish())
    }
}

/// Writes a field and everything below it. It recurses as deep as the limit allows.
fn write(writer: &mut Writer, def: &FieldDef, depth: u32) -> Result<()> {
    Limits::DEFAULT.check(Limit::Nesting, depth.into())?;
    let (kind, logical_type) = match &def.field_type {
        FieldType::Leaf(physical_type, logical_type) => {
            check_annotation(logical_type.as_ref(), *physical_type)
                .map_err(|error| error.blamed(ErrorKind::Misuse))?;
            (FieldKind::Leaf(*physical_type), logical_type.clone())
        }
        FieldType::Struct(fields, _) if fields.is_empty() => {
            return Err(Error::misuse("a group without fields"));
        }
        FieldType::Struct(_, Some(other)) if !matches!(other, LogicalType::Variant { .. }) => {
            return Err(Error::misuse(alloc::format!("the logical type {other} cannot annotate a group")));
        }
        FieldType::Struct(_, logical_type) => (FieldKind::Struct, logical_type.clone()),
        FieldType::List(_) => (FieldKind::List, None),
        FieldType::Map(key, _) if key.is_nullable => {
            return Err(Error::misuse("a map whose keys may be null"));
        }
        FieldType::Map(..) => (FieldKind::Map, None),
    };
    writer.begin(Field {
        is_numbered: false,
        name: &def.name,
        field_id: def.field_id,
        is_nullable: def.is_nullable,
        converted_type: logical_type.as_ref().and_then(ConvertedType::of),
        is_older_only: false,
        logical_type,
        kind,
    });
    match &def.field_type {
        FieldType::Leaf(..) => return Ok(()),
        FieldType::Struct(fields, _) => fields.iter().try_for_each(|def| write(writer, def, depth + 1))?,
        FieldType::List(element) => write(writer, element, depth + 1)?,
        FieldType::Map(key, value) => {
            let fields = core::iter::once(key).chain(value);
            fields.into_iter().try_for_each(|def| write(writer, def, depth + 1))?;
        }
    }
    writer.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{NodeKind, Repetition};
    use alloc::vec;

    fn int(name: &str) -> FieldDef {
        FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None))
    }

    #[test]
    fn levels_and_paths_are_the_formats() {
        let map = FieldType::Map(Box::new(int("k").required()), Some(Box::new(int("v"))));
        let list = FieldType::List(Box::new(FieldDef::new("x", FieldType::Struct(vec![int("a")], None))));
        let schema =
            Schema::of_fields(&[int("i").required(), FieldDef::new("m", map), FieldDef::new("l", list)]);
        let schema = schema.unwrap();
        let paths: Vec<_> = schema.leaves().iter().map(|leaf| schema.path(leaf.node)).collect();
        let leaves: Vec<_> = (paths.iter().zip(schema.leaves()))
            .map(|(path, leaf)| (&**path, leaf.definition_max, leaf.repetition_max))
            .collect();
        assert_eq!(
            leaves,
            [("i", 0, 0), ("m.key_value.key", 2, 1), ("m.key_value.value", 3, 1), ("l.list.element.a", 4, 1)]
        );
        assert_eq!(schema.nodes()[0].kind, NodeKind::Group { end: schema.nodes().len() });
        assert_eq!(schema.nodes()[1].repetition, Repetition::Required);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused =
            |field_type: FieldType| Schema::of_fields(&[FieldDef::new("c", field_type)]).unwrap_err();
        let wrong = refused(FieldType::Leaf(PhysicalType::Int32, Some(LogicalType::String)));
        assert_eq!(wrong.place().column.as_deref(), Some("c"));
        assert!(wrong.message().contains("STRING cannot annotate INT32"), "{wrong}");
        assert!(refused(FieldType::Struct(vec![], None)).message().contains("without fields"));
        assert!(refused(FieldType::Map(Box::new(int("k")), None)).message().contains("keys may be null"));
        let mut deep = int("d").field_type;
        for _ in 0..70 {
            deep = FieldType::List(Box::new(FieldDef::new("e", deep)));
        }
        assert!(refused(deep).message().contains("nesting"));
    }
}
