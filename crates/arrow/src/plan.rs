//! How the fields of an Arrow schema are built.

use arrow_schema::{DataType, FieldRef};

/// A field, and how it is assembled.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The node of the schema.
    pub(crate) node: usize,
    pub(crate) field: FieldRef,
    /// Of a leaf, the type that its values are made as, if that is another one than the field's: see [`Plan::aim`].
    pub(crate) made: Option<DataType>,
    pub(crate) kind: PlanKind,
}

/// How a field is assembled.
#[derive(Debug)]
pub(crate) enum PlanKind {
    /// Of a leaf's values.
    Leaf(usize),
    /// Of its fields.
    Struct(Vec<Plan>),
    /// Of its elements.
    List(Box<Plan>),
    /// The fields of its keys, its values, and the struct of both.
    Map { entries: FieldRef, key: Box<Plan>, value: Box<Plan> },
}

impl Plan {
    /// Decides what the leaves are made as, if the field is to become `target` in the end: strings with offsets are not made as views first; and
    /// with `text_is_bytes`, text that stays views is made as [bytes that were checked](crate::ToArrow::with_text_as_bytes).
    pub(crate) fn aim(&mut self, target: &DataType, text_is_bytes: bool) {
        use DataType::*;
        match (&mut self.kind, target) {
            (PlanKind::Leaf(_), target) => {
                self.made = match (self.field.data_type(), target) {
                    (Utf8View, Utf8 | LargeUtf8) | (BinaryView, Binary | LargeBinary) => Some(target.clone()),
                    (Utf8View, Utf8View) if text_is_bytes => Some(BinaryView),
                    _ => None,
                };
            }
            (PlanKind::Struct(plans), Struct(fields)) => {
                for (plan, field) in plans.iter_mut().zip(fields) {
                    plan.aim(field.data_type(), text_is_bytes);
                }
            }
            (PlanKind::List(element), List(field) | LargeList(field) | FixedSizeList(field, _)) => {
                element.aim(field.data_type(), text_is_bytes);
            }
            (PlanKind::Map { key, value, .. }, Map(entries, _)) => {
                if let Struct(fields) = entries.data_type()
                    && let [of_key, of_value] = &fields[..]
                {
                    key.aim(of_key.data_type(), text_is_bytes);
                    value.aim(of_value.data_type(), text_is_bytes);
                }
            }
            _ => {}
        }
    }
}
