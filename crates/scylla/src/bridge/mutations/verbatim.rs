//! The `verbatim` mapping: a row of Parquet a partition, with Cassandra's flags. It is there to be compared with.
//!
//! ```text
//! header     partition_key{…}, deletion_time{local_deletion_time, marked_for_delete_at}, shadowable_deletion_time{same}
//! static_row flags, extended_flags, cells{X…}
//! rows       list of: flags, extended_flags, clustering_key{…}, regular{X…}
//! X          flags, timestamp, local_deletion_time, marked_for_delete_at, value
//! ```
//!
//! That is the first published mapping. What it left out is added, where an SSTable can have it: `kind` for bounds of range tombstones,
//! `liveness`, `deletion_time`, `opening_deletion_time` (of the range that begins where another ends) and `shadowable_deletion_time` for rows,
//! `ttl` for cells; and for collections and user-defined types X is `deletion_time` and a list `cells`, each with its `path`.
//!
//! A partition of more than a batch is several rows with the same header.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType};

use super::Present;
use super::shape::{Multi, Shapes, as_bytes};
use crate::cql::CqlType;
use crate::sstable::TableColumns;
use crate::sstable::marshal::MarshalType;

/// What is known before the first row.
#[derive(Debug)]
pub(super) struct Verbatim {
    pub(super) fields: Vec<FieldDef>,
    pub(super) leaves: Vec<LeafPlan>,
    pub(super) keys: Vec<ValuePlan>,
    pub(super) partition: [DeletionPlan; 2],
    pub(super) static_flags: Option<usize>,
    pub(super) row: RowPlan,
    pub(super) clustering: Vec<ValuePlan>,
    pub(super) columns: Vec<ColumnPlan>,
    pub(super) statics: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LeafPlan {
    pub(super) physical: PhysicalType,
    pub(super) definition: u8,
    pub(super) has_repetition: bool,
}

#[derive(Debug)]
pub(super) struct ValuePlan {
    pub(super) shapes: Shapes,
    pub(super) first: usize,
}

/// The first of two leaves, if there is such a deletion; and the definition level of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DeletionPlan {
    pub(super) first: Option<usize>,
    pub(super) definition: u8,
}

#[derive(Debug, Default)]
pub(super) struct RowPlan {
    /// `flags`, and after that `extended_flags`.
    pub(super) flags: usize,
    pub(super) kind: Option<usize>,
    /// `timestamp`, and then those of what expires.
    pub(super) timestamp: usize,
    pub(super) ttl: Option<usize>,
    pub(super) local_deletion_time: Option<usize>,
    pub(super) deletions: [DeletionPlan; 3],
}

#[derive(Debug)]
pub(super) struct ColumnPlan {
    pub(super) name: alloc::string::String,
    pub(super) multi: Multi,
    pub(super) deletion: DeletionPlan,
    pub(super) path: Option<usize>,
    pub(super) flags: usize,
    pub(super) timestamp: usize,
    pub(super) ttl: Option<usize>,
    pub(super) local_deletion_time: usize,
    pub(super) marked_for_delete_at: usize,
    pub(super) value: ValuePlan,
    /// The definition level of a cell, and the repetition level of one after the first.
    pub(super) definition: u8,
    pub(super) repetition: u8,
    pub(super) leaves: core::ops::Range<usize>,
}

impl Verbatim {
    /// The plan for a table.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for names that are not UTF-8.
    pub(super) fn new(columns: &TableColumns, present: Present) -> Result<Verbatim> {
        let mut making = Making { leaves: Vec::new(), present };
        let mut keys = (Vec::new(), Vec::new());
        for key in &columns.partition_key {
            making.value(&mut keys, &key.name, &key.kind, 0, 0);
        }
        let (keys, key_fields) = keys;
        let (deletion, deletion_field) = making.deletion("deletion_time", 0, false);
        let (shadowable, shadowable_field) = making.deletion("shadowable_deletion_time", 0, false);
        let header = alloc::vec![group("partition_key", key_fields), deletion_field, shadowable_field];
        let mut fields = alloc::vec![group("header", header)];
        let mut all = Vec::new();
        let mut static_flags = None;
        if !columns.statics.is_empty() {
            let first = making.leaf(PhysicalType::Int32, 1, false);
            making.leaf(PhysicalType::Int32, 1, false);
            static_flags = Some(first);
            let mut cells = Vec::new();
            for column in &columns.statics {
                let (plan, field) = making.column(&column.name, &column.kind, 0)?;
                all.push(plan);
                cells.push(field);
            }
            let members = alloc::vec![int("flags"), int("extended_flags"), group("cells", cells)];
            fields.push(FieldDef::new("static_row", FieldType::Struct(members, None)));
        }
        let mut members = alloc::vec![int("flags"), int("extended_flags")];
        let mut row = RowPlan { flags: making.leaf(PhysicalType::Int32, 1, true), ..RowPlan::default() };
        making.leaf(PhysicalType::Int32, 1, true);
        if present.deletions {
            row.kind = Some(making.leaf(PhysicalType::Int32, 2, true));
            members.push(optional("kind", PhysicalType::Int32));
        }
        row.timestamp = making.leaf(PhysicalType::Int64, 2, true);
        let mut liveness = alloc::vec![optional("timestamp", PhysicalType::Int64)];
        if present.ttls {
            row.ttl = Some(making.leaf(PhysicalType::Int32, 2, true));
            row.local_deletion_time = Some(making.leaf(PhysicalType::Int32, 2, true));
            liveness.push(optional("ttl", PhysicalType::Int32));
            liveness.push(optional("local_deletion_time", PhysicalType::Int32));
        }
        members.push(group("liveness", liveness));
        if present.deletions {
            let names = ["deletion_time", "opening_deletion_time", "shadowable_deletion_time"];
            for (plan, name) in row.deletions.iter_mut().zip(names) {
                let (made, field) = making.deletion(name, 1, true);
                *plan = made;
                members.push(field);
            }
        }
        let mut clustering = (Vec::new(), Vec::new());
        for key in &columns.clustering {
            making.value(&mut clustering, &key.name, &key.kind, 1, 1);
        }
        let (clustering, clustering_fields) = clustering;
        if !clustering.is_empty() {
            members.push(group("clustering_key", clustering_fields));
        }
        let mut cells = Vec::new();
        for column in &columns.regulars {
            let (plan, field) = making.column(&column.name, &column.kind, 1)?;
            all.push(plan);
            cells.push(field);
        }
        if !cells.is_empty() {
            members.push(group("regular", cells));
        }
        let rows = FieldType::List(Box::new(group("element", members)));
        fields.push(FieldDef::new("rows", rows).required());
        Ok(Verbatim {
            fields,
            leaves: making.leaves,
            keys,
            partition: [deletion, shadowable],
            static_flags,
            row,
            clustering,
            columns: all,
            statics: columns.statics.len(),
        })
    }
}

fn group(name: &str, fields: Vec<FieldDef>) -> FieldDef {
    FieldDef::new(name, FieldType::Struct(fields, None)).required()
}

fn int(name: &str) -> FieldDef {
    optional(name, PhysicalType::Int32).required()
}

fn optional(name: &str, physical: PhysicalType) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(physical, None))
}

/// The leaves so far.
struct Making {
    leaves: Vec<LeafPlan>,
    present: Present,
}

impl Making {
    fn leaf(&mut self, physical: PhysicalType, definition: u8, has_repetition: bool) -> usize {
        self.leaves.push(LeafPlan { physical, definition, has_repetition });
        self.leaves.len() - 1
    }

    fn value(
        &mut self,
        to: &mut (Vec<ValuePlan>, Vec<FieldDef>),
        name: &str,
        kind: &MarshalType,
        definition: u8,
        repetition: u8,
    ) {
        let (shapes, field) = Shapes::new(name, kind, definition, repetition);
        let (shapes, field) = match kind {
            // Its shards, not their sum.
            MarshalType::Native(CqlType::Counter) => as_bytes(name, &shapes),
            _ => (shapes, field),
        };
        let first = self.leaves.len();
        for leaf in &shapes.leaves {
            self.leaf(leaf.kind.physical(), leaf.definition, leaf.repetition > 0);
        }
        to.0.push(ValuePlan { shapes, first });
        to.1.push(field);
    }

    fn deletion(&mut self, name: &str, above: u8, has_repetition: bool) -> (DeletionPlan, FieldDef) {
        let definition = above + 1;
        let first = self.leaf(PhysicalType::Int32, definition, has_repetition);
        self.leaf(PhysicalType::Int64, definition, has_repetition);
        let fields = alloc::vec![
            int("local_deletion_time"),
            optional("marked_for_delete_at", PhysicalType::Int64).required()
        ];
        (
            DeletionPlan { first: Some(first), definition },
            FieldDef::new(name, FieldType::Struct(fields, None)),
        )
    }

    /// A column, of rows (whose repetition level is 1) or of static rows.
    fn column(&mut self, name: &[u8], kind: &MarshalType, repetition: u8) -> Result<(ColumnPlan, FieldDef)> {
        let name =
            core::str::from_utf8(name).map_err(|_| Error::unsupported("a column whose name is not UTF-8"))?;
        let multi = Multi::of(kind);
        let start = self.leaves.len();
        // The column is there at level 2; a cell of a collection at 3.
        let (definition, repetition) = match multi {
            Multi::No => (2, repetition),
            _ => (3, repetition + 1),
        };
        let has_repetition = repetition > 0;
        let mut fields = Vec::new();
        let mut deletion = DeletionPlan::default();
        let mut members = Vec::new();
        let mut path = None;
        if multi != Multi::No {
            if self.present.deletions {
                let (plan, field) = self.deletion("deletion_time", 2, repetition > 1);
                deletion = plan;
                fields.push(field);
            }
            path = Some(self.leaf(PhysicalType::ByteArray, definition, has_repetition));
            members.push(optional("path", PhysicalType::ByteArray).required());
        }
        let flags = self.leaf(PhysicalType::Int32, definition, has_repetition);
        members.push(int("flags"));
        let timestamp = self.leaf(PhysicalType::Int64, definition + 1, has_repetition);
        members.push(optional("timestamp", PhysicalType::Int64));
        let mut ttl = None;
        if self.present.ttls {
            ttl = Some(self.leaf(PhysicalType::Int32, definition + 1, has_repetition));
            members.push(optional("ttl", PhysicalType::Int32));
        }
        let local_deletion_time = self.leaf(PhysicalType::Int32, definition + 1, has_repetition);
        members.push(optional("local_deletion_time", PhysicalType::Int32));
        let marked_for_delete_at = self.leaf(PhysicalType::Int64, definition + 1, has_repetition);
        members.push(optional("marked_for_delete_at", PhysicalType::Int64));
        let blob = MarshalType::Native(CqlType::Blob);
        let mut value = (Vec::new(), Vec::new());
        self.value(&mut value, "value", kind.cell_value().unwrap_or(&blob), definition, repetition);
        members.extend(value.1);
        let Some(value) = value.0.pop() else { return Err(Error::internal("a column without a value")) };
        if multi != Multi::No {
            let cells = FieldType::List(Box::new(group("element", members)));
            fields.push(FieldDef::new("cells", cells).required());
        } else {
            fields = members;
        }
        let plan = ColumnPlan {
            name: name.into(),
            multi,
            deletion,
            path,
            flags,
            timestamp,
            ttl,
            local_deletion_time,
            marked_for_delete_at,
            value,
            definition,
            repetition,
            leaves: start..self.leaves.len(),
        };
        Ok((plan, FieldDef::new(name, FieldType::Struct(fields, None))))
    }
}
