//! The schema of a mapping, and where its columns come from.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::print::json;
use marquetry_base::{Budget, Bytes, Error, RELEASE_PRICE, Release, Result, release_all};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};

use super::shape::{Multi, Shapes};
use super::verbatim::Verbatim;
use super::{MutationMapping, Present};
use crate::sstable::TableColumns;
use crate::sstable::marshal::MarshalType;
use crate::sstable::statistics::HeaderColumn;

/// The name of the group that says what a row has besides values, unless a column has it.
const GROUP: &str = "mutation";

/// What is known before the first row.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) schema: Arc<Schema>,
    /// The columns of the partition key.
    pub(super) keys: Vec<ColumnPlan>,
    pub(super) clustering: Vec<ColumnPlan>,
    /// The static columns, and then the others.
    pub(super) cells: Vec<ColumnPlan>,
    pub(super) statics: usize,
    /// Of the `full` mapping.
    pub(super) mutation: Option<MutationLeaves>,
    /// Of the `verbatim` mapping, which uses nothing else of this but names.
    pub(super) verbatim: Option<Verbatim>,
    /// Names of the columns of `cells`, `keys` and `clustering`, in that order.
    pub(super) names: Vec<Bytes>,
    pub(super) group: String,
}

/// A column of the table.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    pub(super) shapes: Shapes,
    pub(super) first_leaf: usize,
    pub(super) multi: Multi,
}

/// The leaves of the group `mutation`.
#[derive(Debug, Clone, Default)]
pub(super) struct MutationLeaves {
    pub(super) kind: usize,
    pub(super) write_time: usize,
    pub(super) row_marker: usize,
    pub(super) ttl: Option<usize>,
    pub(super) expires_at: Option<usize>,
    pub(super) deleted_at: Option<usize>,
    pub(super) local_deletion_time: Option<usize>,
    pub(super) cells: CellLeaves,
}

/// The leaves of the list `mutation.cells`.
#[derive(Debug, Clone, Default)]
pub(super) struct CellLeaves {
    pub(super) column: usize,
    pub(super) path: Option<usize>,
    pub(super) write_time: Option<usize>,
    pub(super) ttl: Option<usize>,
    pub(super) expires_at: Option<usize>,
    pub(super) local_deletion_time: Option<usize>,
    pub(super) deleted_at: Option<usize>,
    pub(super) value: usize,
}

impl CellLeaves {
    /// All of them, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, PhysicalType)> {
        [
            Some((self.column, PhysicalType::ByteArray)),
            self.path.map(|leaf| (leaf, PhysicalType::ByteArray)),
            self.write_time.map(|leaf| (leaf, PhysicalType::Int64)),
            self.ttl.map(|leaf| (leaf, PhysicalType::Int32)),
            self.expires_at.map(|leaf| (leaf, PhysicalType::Int64)),
            self.local_deletion_time.map(|leaf| (leaf, PhysicalType::Int64)),
            self.deleted_at.map(|leaf| (leaf, PhysicalType::Int64)),
            Some((self.value, PhysicalType::ByteArray)),
        ]
        .into_iter()
        .flatten()
    }

    pub(super) fn count(&self) -> usize {
        self.all().count()
    }
}

impl Plan {
    /// The plan of the mapping of a table.
    ///
    /// # Errors
    ///
    /// As [`Mapper::new`](super::Mapper::new)'s.
    pub(super) fn new(kind: MutationMapping, columns: &TableColumns, present: Present) -> Result<Plan> {
        let mut making = Making { fields: Vec::new(), leaves: 0 };
        let mut names = Vec::new();
        let mut keys = Vec::new();
        for key in &columns.partition_key {
            keys.push(making.column(&key.name, &key.kind, Multi::No));
        }
        let mut clustering = Vec::new();
        for key in &columns.clustering {
            clustering.push(making.column(&key.name, &key.kind, Multi::No));
        }
        let mut cells = Vec::new();
        for column in columns.cells() {
            let name = name_of(column)?;
            cells.push(making.column(name, &column.kind, Multi::of(&column.kind)));
            names.push(Bytes::copy_from_slice(name.as_bytes()));
        }
        for key in columns.partition_key.iter().chain(&columns.clustering) {
            names.push(Bytes::copy_from_slice(key.name.as_bytes()));
        }
        let group = group_of(columns)?;
        let mutation = match kind {
            MutationMapping::Full => {
                let has_paths = columns.cells().any(|column| column.kind.is_multi_cell());
                Some(making.mutation(&group, present, has_paths))
            }
            MutationMapping::Logical | MutationMapping::Verbatim => None,
        };
        let verbatim = match kind {
            MutationMapping::Verbatim => Some(Verbatim::new(columns, present)?),
            _ => None,
        };
        let fields = verbatim.as_ref().map_or(&making.fields, |verbatim| &verbatim.fields);
        let statics = columns.statics.len();
        let schema = Arc::new(Schema::of_fields(fields)?);
        Ok(Plan { schema, keys, clustering, cells, statics, mutation, verbatim, names, group })
    }

    /// The columns of the table as text: a list in JSON of objects with the name, `kind`, CQL `type`, and, for what CQL cannot say, the
    /// `class` that SSTables have.
    pub(super) fn described(columns: &TableColumns) -> Result<String> {
        let mut out = alloc::vec![b'['];
        let mut add = |name: &str, kind: &str, of: &MarshalType| {
            if out.len() > 1 {
                out.push(b',');
            }
            let class = of.to_string();
            let cql = of.cql().map_or_else(|| format!("'{class}'"), |cql| cql.to_string());
            for (key, value) in
                [("{\"name\":", name), (",\"kind\":", kind), (",\"type\":", &cql), (",\"class\":", &class)]
            {
                out.extend_from_slice(key.as_bytes());
                json::string(&mut out, value);
            }
            out.push(b'}');
        };
        for key in &columns.partition_key {
            add(&key.name, "partition_key", &key.kind);
        }
        for key in &columns.clustering {
            add(&key.name, "clustering", &key.kind);
        }
        for column in &columns.statics {
            add(name_of(column)?, "static", &column.kind);
        }
        for column in &columns.regulars {
            add(name_of(column)?, "regular", &column.kind);
        }
        out.push(b']');
        String::from_utf8(out).map_err(|_| Error::internal("JSON that is not UTF-8"))
    }
}

/// The name of the group of what is not a column's value: one that no column has.
pub(super) fn group_of(columns: &TableColumns) -> Result<String> {
    let keys = columns.partition_key.iter().chain(&columns.clustering).map(|key| Ok(&*key.name));
    let taken: BTreeSet<&str> = keys.chain(columns.cells().map(name_of)).collect::<Result<_>>()?;
    let mut group = GROUP.to_string();
    while taken.contains(&*group) {
        group.push('_');
    }
    Ok(group)
}

/// The name of a column.
fn name_of(column: &HeaderColumn) -> Result<&str> {
    core::str::from_utf8(&column.name).map_err(|_| {
        let digits: String = column.name.iter().map(|byte| format!("{byte:02x}")).collect();
        Error::unsupported(format!("a column whose name is not UTF-8: 0x{digits}"))
    })
}

impl Release for ColumnPlan {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let shapes = core::mem::take(&mut self.shapes.nodes).len();
        let leaves = core::mem::take(&mut self.shapes.leaves).len();
        budget.charge(RELEASE_PRICE, 0, shapes + leaves);
        true
    }
}

/// The columns; what else it has is little.
impl Release for Plan {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(
            &mut [&mut self.keys, &mut self.clustering, &mut self.cells, &mut self.names, &mut self.schema],
            budget,
        )
    }
}

/// The fields so far.
struct Making {
    fields: Vec<FieldDef>,
    leaves: usize,
}

impl Making {
    fn column(&mut self, name: &str, kind: &MarshalType, multi: Multi) -> ColumnPlan {
        let (shapes, field) = Shapes::new(name, kind, 0, 0);
        self.fields.push(field);
        let first_leaf = self.leaves;
        self.leaves += shapes.leaves.len();
        ColumnPlan { shapes, first_leaf, multi }
    }

    fn mutation(&mut self, group: &str, present: Present, has_paths: bool) -> MutationLeaves {
        let text = || FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
        let bytes = || FieldType::Leaf(PhysicalType::ByteArray, None);
        let number = || FieldType::Leaf(PhysicalType::Int64, None);
        let small = || FieldType::Leaf(PhysicalType::Int32, None);
        let mut leaves = self.leaves;
        let mut fields = Vec::new();
        let mut add = |fields: &mut Vec<FieldDef>, field: FieldDef| {
            fields.push(field);
            leaves += 1;
            leaves - 1
        };
        let Present { ttls, deletions, write_times } = present;
        let mut made = MutationLeaves {
            kind: add(&mut fields, FieldDef::new("kind", text()).required()),
            write_time: add(&mut fields, FieldDef::new("write_time", number())),
            row_marker: add(
                &mut fields,
                FieldDef::new("row_marker", FieldType::Leaf(PhysicalType::Boolean, None)).required(),
            ),
            ..MutationLeaves::default()
        };
        if ttls {
            made.ttl = Some(add(&mut fields, FieldDef::new("ttl", small())));
            made.expires_at = Some(add(&mut fields, FieldDef::new("expires_at", number())));
        }
        if deletions {
            made.deleted_at = Some(add(&mut fields, FieldDef::new("deleted_at", number())));
            made.local_deletion_time = Some(add(&mut fields, FieldDef::new("local_deletion_time", number())));
        }
        let (mut of_cell, mut cells) = (Vec::new(), CellLeaves::default());
        cells.column = add(&mut of_cell, FieldDef::new("column", text()));
        if has_paths {
            cells.path = Some(add(&mut of_cell, FieldDef::new("path", bytes())));
        }
        if write_times {
            cells.write_time = Some(add(&mut of_cell, FieldDef::new("write_time", number())));
        }
        if ttls {
            cells.ttl = Some(add(&mut of_cell, FieldDef::new("ttl", small())));
            cells.expires_at = Some(add(&mut of_cell, FieldDef::new("expires_at", number())));
        }
        if deletions {
            cells.local_deletion_time =
                Some(add(&mut of_cell, FieldDef::new("local_deletion_time", number())));
            cells.deleted_at = Some(add(&mut of_cell, FieldDef::new("deleted_at", number())));
        }
        cells.value = add(&mut of_cell, FieldDef::new("value", bytes()));
        made.cells = cells;
        let element = FieldDef::new("element", FieldType::Struct(of_cell, None)).required();
        fields.push(FieldDef::new("cells", FieldType::List(Box::new(element))));
        self.fields.push(FieldDef::new(group, FieldType::Struct(fields, None)).required());
        self.leaves = leaves;
        made
    }
}
