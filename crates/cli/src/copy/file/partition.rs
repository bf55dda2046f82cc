//! Rows by directory: `--partition-by`.

use std::path::PathBuf;

use marquetry_base::cast::u64_of;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::hive::Partition;
use marquetry_parquet::schema::{Projection, Schema};

use super::leaves_of;
use crate::columns;
use crate::failure::{Failure, Outcome};
use crate::table::printable;
use crate::value::{Meaning, Raw, Shown};

/// The columns whose values become directories.
#[derive(Debug)]
pub(super) struct Partitioning {
    columns: Vec<PartitionColumn>,
    /// The leaves that stay in the files.
    kept: Vec<usize>,
    /// What the files have.
    pub(super) schema: Schema,
}

#[derive(Debug)]
struct PartitionColumn {
    leaf: usize,
    name: String,
    meaning: Meaning,
}

impl Partitioning {
    /// By the columns of a list.
    pub(super) fn new(list: &str, schema: &Schema) -> Outcome<Partitioning> {
        let wrong = |why: String| Failure::usage(format!("--partition-by: {why}"));
        let mut columns: Vec<PartitionColumn> = Vec::new();
        for wanted in columns::parse_list("--partition-by", list)? {
            let leaves = leaves_of("--partition-by", schema, &wanted)?;
            let [leaf] = *leaves else {
                return Err(wrong(format!("the column {} is nested", wanted.dotted())));
            };
            let found = &schema.leaves()[leaf];
            let node = schema.node_of(found);
            if !found.is_flat() || node.parent != 0 {
                return Err(wrong(format!("the column {} is nested", wanted.dotted())));
            }
            if columns.iter().any(|column| column.leaf == leaf) {
                return Err(wrong(format!("the column {} is named twice", wanted.dotted())));
            }
            let meaning = Meaning::of(schema, found);
            if node.name.is_empty() || !is_name(meaning, &found.physical_type.to_string()) {
                let what =
                    node.logical_type.as_ref().map_or(found.physical_type.to_string(), ToString::to_string);
                return Err(wrong(format!(
                    "the column {}: {what} makes no names of directories; integers, decimals, booleans, text, dates, times and UUIDs do",
                    printable(&found.path)
                )));
            }
            columns.push(PartitionColumn { leaf, name: node.name.clone(), meaning });
        }
        let is_partition = |leaf: usize| columns.iter().any(|column| column.leaf == leaf);
        let kept: Vec<usize> = (0..schema.leaves().len()).filter(|leaf| !is_partition(*leaf)).collect();
        if kept.is_empty() {
            return Err(wrong("no column is left for the files".to_string()));
        }
        let mut projection = Projection::new(schema);
        for node in schema.children(0) {
            let mut leaves = schema.leaves_of(node);
            if leaves.any(|leaf| !is_partition(leaf)) {
                // Each node is another one.
                let _ = projection.add_column(node);
            }
        }
        let schema = projection.schema().map_err(|error| wrong(error.to_string()))?;
        if schema.leaves().len() != kept.len() {
            return Err(Failure::bug("a column without leaves"));
        }
        Ok(Partitioning { columns, kept, schema })
    }

    /// The leaves that become directories.
    pub(super) fn leaves(&self) -> Vec<usize> {
        self.columns.iter().map(|column| column.leaf).collect()
    }

    /// The order in which a directory's rows stand together.
    pub(super) fn order(&self) -> Outcome<Vec<SortingColumn>> {
        let by = |column: &PartitionColumn| {
            let number =
                u32::try_from(column.leaf).map_err(|_| Failure::usage("a column beyond the 2^32nd"))?;
            Ok(SortingColumn { column: number, descending: false, nulls_first: false })
        };
        self.columns.iter().map(by).collect()
    }

    /// The directory of a row: `year=2024/month=2`.
    pub(super) fn directory(&self, batch: &Batch, row: usize) -> Outcome<PathBuf> {
        let mut path = PathBuf::new();
        for column in &self.columns {
            let found =
                batch.columns.get(column.leaf).ok_or_else(|| Failure::bug("a column that is not there"))?;
            let value = match found.is_null(row) {
                true => None,
                false => {
                    Some(column.text(Raw::of_values(&found.values, row), batch.first_row + u64_of(row))?)
                }
            };
            let directory = Partition { name: column.name.clone(), value }.directory();
            if directory.len() > NAME_BYTES_MAX {
                let start: String = directory.chars().take(60).collect();
                return Err(Failure::refused(format!(
                    "--partition-by: a directory's name of {} bytes, where {NAME_BYTES_MAX} are the most (column {}): {start}…",
                    directory.len(),
                    printable(&column.name)
                )));
            }
            path.push(directory);
        }
        Ok(path)
    }

    /// Whether two rows are of one directory. Equal values have equal names.
    pub(super) fn is_same(&self, batch: &Batch, a: usize, b: usize) -> bool {
        self.columns.iter().all(|column| {
            batch.columns.get(column.leaf).is_some_and(|found| {
                found.is_null(a) == found.is_null(b)
                    && (found.is_null(a)
                        || Raw::of_values(&found.values, a) == Raw::of_values(&found.values, b))
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

/// Bytes of a name, at most: what nearly all file systems take.
const NAME_BYTES_MAX: usize = 255;

/// Whether values have names by which they are told apart, and that say what they are.
fn is_name(meaning: Meaning, physical_type: &str) -> bool {
    match meaning {
        Meaning::Plain => matches!(physical_type, "BOOLEAN" | "INT32" | "INT64"),
        Meaning::Unsigned
        | Meaning::Text
        | Meaning::Decimal { .. }
        | Meaning::Date
        | Meaning::Time(_)
        | Meaning::Timestamp { .. }
        | Meaning::Uuid => true,
        Meaning::Int96 | Meaning::Interval | Meaning::Float16 | Meaning::Geometry => false,
    }
}

impl PartitionColumn {
    fn text(&self, raw: Option<Raw<'_>>, row: u64) -> Outcome<String> {
        let raw = raw.ok_or_else(|| Failure::bug("a row that is not there"))?;
        let mut out = Vec::new();
        match self.meaning.show(raw, &mut out) {
            Shown::Text(text) => Ok(text.to_string()),
            Shown::NotText(_) => Err(Failure::refused(format!(
                "--partition-by: a value that is not UTF-8 is no name of a directory (column {}, row {row} of those sorted)",
                self.name
            ))),
            Shown::Boolean | Shown::Number | Shown::Word | Shown::Wkt => {
                String::from_utf8(out).map_err(|_| Failure::bug("a value whose text is none"))
            }
        }
    }
}
