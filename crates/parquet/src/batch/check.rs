//! Whether a batch is what its schema says.

use alloc::format;
use alloc::string::String;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, Result};
use marquetry_kernels::{bits, levels as kernel};

use super::{Batch, ColumnBatch, Layout, Levels, Values};
use crate::schema::{Leaf, PhysicalType, Schema};

impl Batch {
    /// Checks a batch that comes from elsewhere: that it has the columns of this schema, all of them, in order, and
    /// that their rows, nulls, values, indices and levels agree in number. Whatever reads a batch that was checked
    /// finds a value where one is to be.
    ///
    /// The values themselves are not looked at: text may be other than UTF-8, and an INT32 wider than the 8 bits of
    /// its logical type, as in files. The work is that of looking at validity, levels and indices once.
    ///
    /// ```
    /// use marquetry_parquet::batch::Batch;
    /// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
    ///
    /// let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
    /// let schema = Schema::of_fields(&[id])?;
    /// let mut batch = Batch::of_values([vec![1_i64, 2].into()])?;
    /// assert!(batch.check(&schema).is_ok());
    /// batch.columns[0].values = vec![1_i64].into();
    /// assert!(batch.check(&schema).is_err());
    /// # Ok::<(), marquetry_base::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Misuse`, with the column, for the first column that is not as it must be.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        self.check_columns(schema)?;
        for (number, (column, leaf)) in self.columns.iter().zip(schema.leaves()).enumerate() {
            let checked = match (column.leaf, column.rows) {
                (found, rows) if (found, rows) == (number, self.rows) => check_values(column, leaf),
                (found, _) if found != number => {
                    Err(Error::misuse(format!("leaf {found} where leaf {number} is to be")))
                }
                (_, rows) => {
                    Err(Error::misuse(format!("a column of {rows} rows, in a batch of {}", self.rows)))
                }
            };
            checked.map_err(|error| error.at(|place| place.column = Some(schema.path(leaf.node))))?;
        }
        Ok(())
    }

    /// Checks that there is a column for each leaf of the schema.
    ///
    /// # Errors
    ///
    /// `Misuse` if their numbers differ.
    pub(crate) fn check_columns(&self, schema: &Schema) -> Result<()> {
        let (columns, leaves) = (self.columns.len(), schema.leaves().len());
        if columns == leaves {
            return Ok(());
        }
        Err(Error::misuse(format!("a batch of {columns} columns, of a schema of {leaves} leaves")))
    }
}

/// Checks that a column has as many values, nulls and levels as it must, and no index beyond its dictionary.
fn check_values(column: &ColumnBatch, leaf: &Leaf) -> Result<()> {
    let level = |level: u16| {
        u8::try_from(level).map_err(|_| Error::unsupported("a batch of a column of more than 255 levels"))
    };
    let maxima = Maxima { definition: level(leaf.definition_max)?, repetition: level(leaf.repetition_max)? };
    check_column(column, leaf.physical_type, maxima)?;
    let (nulls, values) = match &column.levels {
        Some(_) if leaf.is_flat() => return Err(Error::misuse("levels of a column that is flat")),
        Some(levels) => count_levels(column, levels, maxima)?,
        None => {
            let nulls = match &column.validity {
                Some(validity) => {
                    let ones = bits::count_ones(validity.bytes(), validity.offset(), validity.len());
                    // `Bitmap` has as many bits as it says.
                    column.rows - ones.unwrap_or(0)
                }
                None => 0,
            };
            (nulls, if column.layout == Layout::Spaced { column.rows } else { column.rows - nulls })
        }
    };
    if nulls != column.nulls {
        return Err(Error::misuse(format!("{nulls} nulls, where {} are counted", column.nulls)));
    }
    if values != column.values.len() {
        return Err(Error::misuse(format!("{} values, where {values} are to be", column.values.len())));
    }
    match &column.values {
        Values::Dictionary(indices, dictionary) => check_indices(column, indices, dictionary.len()),
        _ => Ok(()),
    }
}

/// The entries without a value, and those with one.
fn count_levels(column: &ColumnBatch, levels: &Levels, maxima: Maxima) -> Result<(usize, usize)> {
    if column.validity.is_some() {
        return Err(Error::misuse("validity of a nested column, which has levels"));
    }
    let above =
        |levels: &[u8], max: u8| max.checked_add(1).map_or(0, |beyond| kernel::count(levels, beyond)) > 0;
    let entries = levels.definition.len();
    let mut rows = entries;
    let mut is_above = above(&levels.definition, maxima.definition);
    if let Some(repetition) = &levels.repetition {
        is_above |= above(repetition, maxima.repetition);
        rows -= kernel::count(repetition, 1);
    }
    if is_above {
        return Err(Error::misuse("a level above the largest of its column"));
    }
    if rows != column.rows {
        return Err(Error::misuse(format!("levels of {rows} rows, in a column of {}", column.rows)));
    }
    let values = kernel::count(&levels.definition, maxima.definition);
    Ok((entries - values, values))
}

fn check_indices(column: &ColumnBatch, indices: &[u32], entries: usize) -> Result<()> {
    let is_beyond = |index: u32| usize_of_u32(index) >= entries;
    if !indices.iter().copied().max().is_some_and(is_beyond) {
        return Ok(());
    }
    // A null's index is 0, in an empty dictionary, too.
    let is_spaced = column.levels.is_none() && column.layout == Layout::Spaced;
    let is_of_null = |row: usize| is_spaced && column.is_null(row) && indices[row] == 0;
    match (0..indices.len()).find(|&row| is_beyond(indices[row]) && !is_of_null(row)) {
        Some(row) => {
            let what = format!("the index {} of a dictionary of {entries} entries", indices[row]);
            Err(Error::misuse(what))
        }
        None => Ok(()),
    }
}

/// The levels of a leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maxima {
    pub(crate) definition: u8,
    pub(crate) repetition: u8,
}

/// Checks that a column of a batch can belong to a leaf, as far as that takes no look at its rows: by its type, and by
/// the lengths of its validity and levels.
pub(crate) fn check_column(column: &ColumnBatch, physical_type: PhysicalType, maxima: Maxima) -> Result<()> {
    let is_nested = maxima.repetition > 0 || maxima.definition > 1;
    match (&column.levels, is_nested) {
        (None, true) => return Err(Error::misuse("a column of a nested leaf without levels")),
        (Some(levels), _) => check_levels(column, levels, maxima)?,
        (None, false) => {}
    }
    if column.validity.is_some() && maxima.definition == 0 {
        return Err(Error::misuse("nulls in a column that is required"));
    }
    if let Some(validity) = &column.validity
        && validity.len() != column.rows
    {
        return Err(Error::misuse(format!("validity of {} rows, of {}", validity.len(), column.rows)));
    }
    let values = match &column.values {
        Values::Dictionary(_, values) => values,
        values => values,
    };
    let fits = match (values, physical_type) {
        (Values::Boolean(_), PhysicalType::Boolean)
        | (Values::Int32(_), PhysicalType::Int32)
        | (Values::Int64(_), PhysicalType::Int64)
        | (Values::Float(_), PhysicalType::Float)
        | (Values::Double(_), PhysicalType::Double)
        | (Values::ByteArray(_), PhysicalType::ByteArray) => true,
        (Values::Int96(values), PhysicalType::Int96) => values.width() == 12,
        (Values::FixedLenByteArray(values), PhysicalType::FixedLenByteArray(width)) => {
            values.width() == usize_of_u32(width)
        }
        _ => false,
    };
    if fits { Ok(()) } else { Err(Error::misuse(format!("{} where {physical_type} is to be", name(values)))) }
}

fn check_levels(column: &ColumnBatch, levels: &Levels, maxima: Maxima) -> Result<()> {
    let entries = levels.definition.len();
    match (&levels.repetition, maxima.repetition) {
        (Some(repetition), 1..) if repetition.len() == entries => {
            if repetition.first().is_some_and(|level| *level > 0) {
                return Err(Error::misuse("a batch that begins in the middle of a row"));
            }
        }
        (None, 0) if entries == column.rows => {}
        // If the maximum is 0, all levels are 0.
        (Some(repetition), 0) if repetition.len() == entries && entries == column.rows => {}
        _ => {
            return Err(Error::misuse(format!(
                "{entries} definition levels, of {} rows, and repetition levels that are not theirs",
                column.rows
            )));
        }
    }
    Ok(())
}

fn name(values: &Values) -> String {
    let name = match values {
        Values::Boolean(_) => "BOOLEAN",
        Values::Int32(_) => "INT32",
        Values::Int64(_) => "INT64",
        Values::Int96(_) => "INT96",
        Values::Float(_) => "FLOAT",
        Values::Double(_) => "DOUBLE",
        Values::ByteArray(_) => "BYTE_ARRAY",
        Values::FixedLenByteArray(values) => {
            return format!("FIXED_LEN_BYTE_ARRAY({})", values.width());
        }
        Values::Dictionary(..) => "a dictionary",
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FieldDef, FieldType};
    use alloc::sync::Arc;
    use alloc::vec;
    use marquetry_base::{Bitmap, ErrorKind};

    fn leaf(name: &str, physical: PhysicalType) -> FieldDef {
        FieldDef::new(name, FieldType::Leaf(physical, None))
    }

    /// `id` is required, `text` has a null, `spaced` and `dense` have one, too, and `list` is a list.
    fn schema() -> Schema {
        let element = leaf("element", PhysicalType::Int32).required();
        Schema::of_fields(&[
            leaf("id", PhysicalType::Int64).required(),
            leaf("text", PhysicalType::ByteArray),
            leaf("dense", PhysicalType::FixedLenByteArray(2)),
            FieldDef::new("list", FieldType::List(element.into())),
        ])
        .unwrap()
    }

    /// Rows 0 and 2 have values, 1 has nulls; the lists are [1, 2], null, [].
    fn batch() -> Batch {
        let texts: Values = ["a", "b"].into_iter().collect();
        let dense = Values::FixedLenByteArray(super::super::FixedBytes::new(2, 2, vec![1, 2, 3, 4].into()));
        let mut batch = Batch::of_values([
            vec![1_i64, 2, 3].into(),
            Values::Dictionary(vec![1, 0, 0].into(), Arc::new(texts)),
            vec![0; 3].into(),
            vec![0; 3].into(),
        ])
        .unwrap();
        let validity: Bitmap = [true, false, true].into_iter().collect();
        for column in &mut batch.columns[1..3] {
            (column.nulls, column.validity) = (1, Some(validity.clone()));
        }
        (batch.columns[2].values, batch.columns[2].layout) = (dense, Layout::Dense);
        let list = &mut batch.columns[3];
        let (definition, repetition) = (vec![2, 2, 0, 1].into(), Some(vec![0, 1, 0, 0].into()));
        list.levels = Some(Levels { definition, repetition });
        (list.values, list.nulls, list.layout) = (vec![1, 2].into(), 2, Layout::Dense);
        batch
    }

    #[test]
    fn what_agrees_passes() {
        let (schema, all) = (schema(), batch());
        assert_eq!(all.check(&schema), Ok(()));
        for start in 0..3 {
            for end in start..=3 {
                assert_eq!(all.slice(start..end).check(&schema), Ok(()), "{start}..{end}");
            }
        }
        // Of nulls alone a dictionary may be empty.
        let mut nulls = batch();
        let text = &mut nulls.columns[1];
        text.values = Values::Dictionary(vec![0; 3].into(), Arc::new(Values::from_iter([""; 0])));
        (text.nulls, text.validity) = (3, Some([false; 3].into_iter().collect()));
        assert_eq!(nulls.check(&schema), Ok(()));
    }

    #[test]
    fn what_differs_is_an_error() {
        type Fault = fn(&mut Batch);
        let levels: fn(&mut Batch, &[u8], &[u8]) = |batch, definition, repetition| {
            let (definition, repetition) = (definition.to_vec().into(), Some(repetition.to_vec().into()));
            batch.columns[3].levels = Some(Levels { definition, repetition });
        };
        let faults: [(&str, Option<&str>, Fault); 17] = [
            ("3 columns", None, |batch| drop(batch.columns.pop())),
            ("leaf 1 where leaf 0", Some("id"), |batch| batch.columns.swap(0, 1)),
            ("3 rows, in a batch of 4", Some("id"), |batch| batch.rows = 4),
            ("2 rows, in a batch of 3", Some("text"), |batch| batch.columns[1].rows = 2),
            ("2 values, where 3", Some("id"), |batch| batch.columns[0].values = vec![1_i64, 2].into()),
            ("4 values, where 3", Some("id"), |batch| batch.columns[0].values = vec![1_i64; 4].into()),
            ("INT32 where", Some("id"), |batch| batch.columns[0].values = vec![1; 3].into()),
            ("nulls in a column that is required", Some("id"), |batch| {
                batch.columns[0].validity = batch.columns[1].validity.clone();
            }),
            ("0 nulls, where 1", Some("id"), |batch| batch.columns[0].nulls = 1),
            ("1 nulls, where 0", Some("text"), |batch| batch.columns[1].nulls = 0),
            ("validity of 2 rows, of 3", Some("text"), |batch| {
                batch.columns[1].validity = Some([true, false].into_iter().collect());
            }),
            ("the index 2 of a dictionary of 2", Some("text"), |batch| {
                let Values::Dictionary(_, texts) = batch.columns[1].values.clone() else { return };
                batch.columns[1].values = Values::Dictionary(vec![1, 0, 2].into(), texts);
            }),
            ("2 values, where 3", Some("dense"), |batch| batch.columns[2].layout = Layout::Spaced),
            ("without levels", Some("list.list.element"), |batch| batch.columns[3].levels = None),
            ("levels of a column that is flat", Some("id"), |batch| {
                let definition = vec![0; 3].into();
                batch.columns[0].levels = Some(Levels { definition, repetition: None });
            }),
            ("1 values, where 2", Some("list.list.element"), |batch| {
                batch.columns[3].values = vec![1].into();
            }),
            ("validity of a nested column", Some("list.list.element"), |batch| {
                batch.columns[3].validity = batch.columns[1].validity.clone();
            }),
        ];
        let schema = schema();
        let refused = |what: &str, column: Option<&str>, batch: &Batch| {
            let error = batch.check(&schema).unwrap_err();
            assert!(error.message().contains(what), "{what}: {error}");
            assert_eq!(
                (error.kind(), error.place().column.as_deref()),
                (ErrorKind::Misuse, column),
                "{what}"
            );
        };
        for (what, column, fault) in faults {
            let mut batch = batch();
            fault(&mut batch);
            refused(what, column, &batch);
        }
        for (what, definition, repetition) in [
            ("a level above", &[3, 2, 0, 1][..], &[0, 1, 0, 0][..]),
            ("a level above", &[2, 2, 0, 1], &[0, 2, 0, 0]),
            ("levels of 2 rows", &[2, 2, 0, 1], &[0, 1, 1, 0]),
            ("in the middle of a row", &[2, 2, 0, 1], &[1, 1, 0, 0]),
            ("that are not theirs", &[2, 2, 0, 1], &[0, 1, 0]),
        ] {
            let mut batch = batch();
            levels(&mut batch, definition, repetition);
            refused(what, Some("list.list.element"), &batch);
        }
    }
}
