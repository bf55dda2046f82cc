//! Rows by directory.

use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_parquet::batch::{Batch, Value, Values};
use marquetry_parquet::format::{ColumnOrder, SortingColumn};
use marquetry_parquet::hive::Partition;
use marquetry_parquet::print::{Shown, value};
use marquetry_parquet::prune::Order;
use marquetry_parquet::schema::{Meaning, Plan as _, Projection, Schema};
use marquetry_parquet::sort::KEY_COLUMNS_MAX;

use crate::detached::detached;
use crate::entries::is_same_value;
use crate::{ColumnPath, Table};

/// Bytes of a name, at most: what nearly all file systems take.
const NAME_BYTES_MAX: usize = 255;
/// Bytes of an escaped byte: `%2F`.
const ESCAPED_BYTES: usize = 3;
/// Bytes, escaped, that a value may have in a name whatever bytes it is stored in: more than a timestamp has, or a UUID, or
/// null.
const SHORT_TEXT_BYTES: usize = 80;

/// The columns whose values become directories.
#[derive(Debug)]
pub(super) struct Partitioning {
    columns: Vec<PartitionColumn>,
    /// The leaves that stay in the files.
    kept: Vec<usize>,
    /// What the files have.
    schema: Arc<Schema>,
}

#[derive(Debug)]
struct PartitionColumn {
    leaf: usize,
    name: String,
    /// The bytes of the name in that of a directory, with `=`.
    name_bytes: usize,
    meaning: Meaning,
}

impl Partitioning {
    /// By columns of a table; `None` if they cannot be, which is then among the faults.
    pub(super) fn new(by: &[ColumnPath], table: &Table, faults: &mut Faults) -> Option<Partitioning> {
        let schema = &table.schema;
        let wrong = |why: String| Error::option("partition_by", why);
        if by.len() > KEY_COLUMNS_MAX {
            faults.add(wrong(format!("{} columns, of {KEY_COLUMNS_MAX} at most", by.len())));
            return None;
        }
        let mut columns: Vec<PartitionColumn> = Vec::new();
        for path in by {
            let dotted = path.dotted();
            let Some(leaf) = path.flat_leaf_or(schema, "partition_by", faults) else { continue };
            let found = &schema.leaves()[leaf];
            let node = schema.node_of(found);
            if node.parent != 0 {
                faults.add(wrong(format!("the column {dotted} is nested")));
                continue;
            }
            if columns.iter().any(|column| column.leaf == leaf) {
                faults.add(wrong(format!("the column {dotted} is named twice")));
                continue;
            }
            let meaning = schema.meaning_of(found).read_as(found.physical_type);
            // Rows may have to be sorted, which not all that can be read has an order for.
            let order = Order::of(found.physical_type, node.logical_type.as_ref(), ColumnOrder::TypeDefined);
            if node.name.is_empty() || !makes_names(meaning) || order.is_none() {
                let what =
                    node.logical_type.as_ref().map_or(found.physical_type.to_string(), ToString::to_string);
                faults.add(wrong(format!(
                    "the column {dotted}: {what} makes no names of directories; integers, decimals, booleans, text, dates, \
                     times and UUIDs do"
                )));
                continue;
            }
            let name = node.name.clone();
            let empty = Partition { name: name.clone(), value: Some(String::new()) };
            let name_bytes = empty.directory().len();
            columns.push(PartitionColumn { leaf, name, name_bytes, meaning });
        }
        if columns.len() < by.len() {
            return None;
        }
        faults.take(Partitioning::of(columns, schema))
    }

    fn of(columns: Vec<PartitionColumn>, schema: &Arc<Schema>) -> Result<Partitioning> {
        let is_partition = |leaf: usize| columns.iter().any(|column| column.leaf == leaf);
        let kept: Vec<usize> = (0..schema.leaves().len()).filter(|leaf| !is_partition(*leaf)).collect();
        if kept.is_empty() {
            return Err(Error::option("partition_by", "no column is left for the files"));
        }
        let mut projection = Projection::new(Arc::clone(schema));
        for node in schema.children(0) {
            if schema.leaves_of(node).any(|leaf| !is_partition(leaf)) {
                // Each node is another one.
                let _ = projection.add_column(node);
            }
        }
        let schema =
            projection.plan().at_once().map_err(|error| error.with(Detail::Option("partition_by")))?;
        if schema.leaves().len() != kept.len() {
            return Err(Error::internal("a column without leaves"));
        }
        Ok(Partitioning { columns, kept, schema: Arc::new(schema) })
    }

    /// What the files have.
    pub(super) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The names of the columns that become directories.
    pub(super) fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// The columns that become directories, and those that stay in the files, as leaves of the table.
    pub(super) fn leaves(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|column| column.leaf)
    }

    pub(super) fn kept_leaves(&self) -> impl Iterator<Item = usize> {
        self.kept.iter().copied()
    }

    /// Whether [`directory`](Partitioning::directory) may fail for a row: cheaper than that, and never wrong if it says no.
    pub(super) fn may_make_no_name(&self, batch: &Batch, row: usize) -> bool {
        self.columns.iter().any(|column| column.may_make_no_name(batch, row))
    }

    /// The order in which a directory's rows stand together.
    pub(super) fn order(&self) -> Vec<SortingColumn> {
        let by = |column: &PartitionColumn| SortingColumn {
            // The format counts leaves with 32 bits.
            column: u32::try_from(column.leaf).unwrap_or(u32::MAX),
            descending: false,
            nulls_first: false,
        };
        self.columns.iter().map(by).collect()
    }

    /// The order of a table's rows as that of the rows of each file, where the columns of the directories are the same in all rows.
    pub(super) fn order_of_files(&self, order: &[SortingColumn]) -> Vec<SortingColumn> {
        let in_files = |by: &SortingColumn| {
            let number = self.kept.binary_search(&usize_of_u32(by.column)).ok()?;
            Some(SortingColumn { column: u32::try_from(number).ok()?, ..*by })
        };
        order.iter().filter_map(in_files).collect()
    }

    /// The directory of a row: `year=2024/month=2`.
    pub(super) fn directory(&self, batch: &Batch, row: usize) -> Result<PathBuf> {
        let mut path = PathBuf::new();
        for column in &self.columns {
            let partition = Partition { name: column.name.clone(), value: column.text(batch, row)? };
            let directory = partition.directory();
            if Partition::of(&directory)? != Some(partition) {
                return Err(Error::internal(format!("the directory {directory} does not say what is in it")));
            }
            if directory.len() > NAME_BYTES_MAX {
                let start: String = directory.chars().take(60).collect();
                let message = format!(
                    "a directory's name of {} bytes, where {NAME_BYTES_MAX} are the most: {start}…",
                    directory.len()
                );
                return Err(Error::conversion(message).at(|place| {
                    place.column = Some(column.name.clone());
                    place.row = Some(batch.first_row + u64_of(row));
                }));
            }
            path.push(directory);
        }
        Ok(path)
    }

    /// The directory that stands for a table without rows, and the values there: nulls.
    pub(super) fn of_no_rows(&self) -> (PathBuf, Vec<Option<Values>>) {
        let null =
            |column: &PartitionColumn| Partition { name: column.name.clone(), value: None }.directory();
        (self.columns.iter().map(null).collect(), vec![None; self.columns.len()])
    }

    /// The values of the columns in a row, copied out of their batch; `None` for null.
    pub(super) fn constants(&self, batch: &Batch, row: usize) -> Result<Vec<Option<Values>>> {
        let constant = |column: &PartitionColumn| {
            let found = batch.columns.get(column.leaf);
            let found = found.ok_or_else(|| Error::internal("a column that is not there"))?;
            if found.is_null(row) {
                return Ok(None);
            }
            Ok(Some(detached(&found.slice(row..row + 1).values)))
        };
        self.columns.iter().map(constant).collect()
    }

    /// Whether two rows are of one directory. Equal values have equal names.
    pub(super) fn is_same(&self, batch: &Batch, a: usize, b: usize) -> bool {
        self.columns.iter().all(|column| {
            batch.columns.get(column.leaf).is_some_and(|found| match (found.is_null(a), found.is_null(b)) {
                (false, false) => is_same_value((&found.values, a), (&found.values, b)),
                (a, b) => a && b,
            })
        })
    }

    /// The columns that stay in the files.
    pub(super) fn kept(&self, mut batch: Batch) -> Batch {
        let mut columns: Vec<_> = batch.columns.drain(..).map(Some).collect();
        let kept = self.kept.iter().enumerate().filter_map(|(number, leaf)| {
            let mut column = columns.get_mut(*leaf)?.take()?;
            column.leaf = number;
            Some(column)
        });
        batch.columns = kept.collect();
        batch
    }
}

/// Whether values have names by which they are told apart, and that say what they are.
fn makes_names(meaning: Meaning) -> bool {
    match meaning {
        Meaning::Boolean
        | Meaning::Integer { .. }
        | Meaning::Decimal { .. }
        | Meaning::Date
        | Meaning::Time { .. }
        | Meaning::Timestamp { .. }
        | Meaning::Uuid
        | Meaning::String
        | Meaning::Enum
        | Meaning::Json => true,
        Meaning::Null
        | Meaning::Float16
        | Meaning::Float
        | Meaning::Double
        | Meaning::Int96
        | Meaning::Interval
        | Meaning::Bson
        | Meaning::Bytes
        | Meaning::Geometry
        | Meaning::Geography
        | Meaning::Unrecognised => false,
    }
}

impl PartitionColumn {
    fn may_make_no_name(&self, batch: &Batch, row: usize) -> bool {
        let found = batch.columns.get(self.leaf).filter(|found| !found.is_null(row));
        let bytes = match found.and_then(|found| Value::of_values(&found.values, row)) {
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        };
        let escaped = ESCAPED_BYTES.saturating_mul(bytes.len());
        let (most, is_text) = match self.meaning {
            // What is not ASCII is not escaped.
            meaning if meaning.is_text() && found.is_some() => (escaped, std::str::from_utf8(bytes).is_ok()),
            // A byte makes fewer than three digits; zeros may precede them.
            Meaning::Decimal { scale, .. } => {
                let zeros = usize::try_from(scale).unwrap_or(0);
                (escaped.saturating_add(zeros).saturating_add(SHORT_TEXT_BYTES), true)
            }
            _ => (escaped.max(SHORT_TEXT_BYTES), true),
        };
        !is_text || self.name_bytes.saturating_add(most) > NAME_BYTES_MAX
    }

    /// The text of a row's value; `None` for null.
    fn text(&self, batch: &Batch, row: usize) -> Result<Option<String>> {
        let column =
            batch.columns.get(self.leaf).ok_or_else(|| Error::internal("a column that is not there"))?;
        if column.is_null(row) {
            return Ok(None);
        }
        let found = Value::of_values(&column.values, row);
        let found = found.ok_or_else(|| Error::internal("a row that is not there"))?;
        let mut out = Vec::new();
        let text = match value(&mut out, self.meaning, found) {
            Shown::Text(text) => Ok(text.to_string()),
            Shown::NotText(_) => {
                let error = Error::conversion("a value that is not UTF-8 is no name of a directory");
                Err(error.with(Detail::NotUtf8).at(|place| {
                    place.column = Some(self.name.clone());
                    place.row = Some(batch.first_row + u64_of(row));
                }))
            }
            Shown::Boolean | Shown::Number | Shown::Word | Shown::Wkt => {
                String::from_utf8(out).map_err(|_| Error::internal("a value whose text is none"))
            }
        };
        text.map(Some)
    }
}
