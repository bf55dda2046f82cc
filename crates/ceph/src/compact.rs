//! Arrays that hold no more than their own values: strings of a batch point into the pages that they were decoded from, and an Arrow IPC
//! message has all that its arrays point into.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};

use crate::failure::of_arrow;

/// The same rows, with strings copied together.
pub(crate) fn compact_batch(batch: &RecordBatch) -> Result<RecordBatch> {
    if !batch.schema().fields().iter().any(|field| has_views(field.data_type())) {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().map(compact).collect::<Result<Vec<_>>>()?;
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options).map_err(of_arrow)
}

/// The same values, with strings copied together.
pub(crate) fn compact(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        other if has_views(other) => {
            let data = array.to_data();
            let mut children = Vec::new();
            for child in data.child_data() {
                children.push(compact(&make_array(child.clone()))?.to_data());
            }
            make_array(data.into_builder().child_data(children).build().map_err(of_arrow)?)
        }
        _ => Arc::clone(array),
    })
}

/// Bytes of the texts of one row, at most.
pub(crate) const ROW_BYTES_MAX: u64 = 16 << 20;

/// The rows of a batch, from its first on, whose texts have about so many bytes at most, at least one: many values may be one text of a
/// dictionary, and would be copied as often.
///
/// # Errors
///
/// `LimitExceeded` for a first row of more than `row_bytes_max`.
pub(crate) fn fitting_rows(
    batch: &RecordBatch,
    (bytes_max, row_bytes_max): (u64, u64),
    bytes_of: impl Fn(&RecordBatch) -> u64,
) -> Result<usize> {
    let mut rows = batch.num_rows();
    while rows > 0 {
        let bytes = bytes_of(&batch.slice(0, rows));
        if bytes <= bytes_max {
            break;
        }
        if rows == 1 {
            if bytes > row_bytes_max {
                return Err(Error::too_large(format!("a row of {bytes} bytes of text")));
            }
            break;
        }
        rows /= 2;
    }
    Ok(rows)
}

/// Bytes of all texts of a batch.
pub(crate) fn batch_text_bytes(batch: &RecordBatch) -> u64 {
    batch.columns().iter().map(text_bytes).sum()
}

/// Bytes of texts, each counted as often as it is there.
pub(crate) fn text_bytes(array: &ArrayRef) -> u64 {
    let of_range = |values: &ArrayRef, start: usize, end: usize| {
        text_bytes(&values.slice(start, end.saturating_sub(start)))
    };
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().lengths().map(u64::from).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(u64::from).sum(),
        DataType::Utf8 => of_offsets(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => of_offsets(array.as_string::<i64>().value_offsets()),
        DataType::Binary => of_offsets(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => of_offsets(array.as_binary::<i64>().value_offsets()),
        DataType::FixedSizeBinary(width) => {
            u64_of(usize::try_from(*width).unwrap_or(0).saturating_mul(array.len()))
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let end = |at: usize| usize::try_from(lists.value_offsets()[at]).unwrap_or(0);
            of_range(lists.values(), end(0), end(lists.len()))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let end = |at: usize| usize::try_from(lists.value_offsets()[at]).unwrap_or(0);
            of_range(lists.values(), end(0), end(lists.len()))
        }
        DataType::FixedSizeList(..) => text_bytes(array.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let maps = array.as_map();
            let end = |at: usize| usize::try_from(maps.value_offsets()[at]).unwrap_or(0);
            let entries: ArrayRef = Arc::new(maps.entries().clone());
            of_range(&entries, end(0), end(maps.len()))
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(text_bytes).sum(),
        _ => 0,
    }
}

/// Bytes between the first offset and the last.
fn of_offsets<O: ArrowNativeType>(offsets: &[O]) -> u64 {
    let (first, last) = (offsets.first().map(|at| at.as_usize()), offsets.last().map(|at| at.as_usize()));
    u64_of(last.unwrap_or(0).saturating_sub(first.unwrap_or(0)))
}

fn has_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_views(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_views(field.data_type())),
        DataType::Dictionary(_, values) => has_views(values),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{ListBuilder, StringViewBuilder};
    use arrow_array::{LargeBinaryArray, StringArray};

    use super::*;

    #[test]
    fn strings_in_lists_are_copied_together() {
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        for row in 0..1000 {
            lists.append_value((0..row % 3).map(|n| Some(format!("a text longer than a view, {row}, {n}"))));
        }
        let all: ArrayRef = Arc::new(lists.finish());
        let some = all.slice(500, 2);
        let compacted = compact(&some).unwrap();
        assert_eq!(&compacted, &some);
        let held =
            |array: &ArrayRef| array.as_list::<i32>().values().as_string_view().total_buffer_bytes_used();
        assert!(held(&compacted) <= held(&all));
        assert!(!has_views(&DataType::Utf8) && has_views(all.data_type()));
        // Rows 500 and 501 have two and none.
        assert_eq!(text_bytes(&some), 2 * u64_of("a text longer than a view, 500, 0".len()));
        // Texts of other forms are counted, too.
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("four"), None, Some("sixsix")]));
        let bytes: ArrayRef = Arc::new(LargeBinaryArray::from_vec(vec![b"four", b"", b"sixsix"]));
        assert_eq!((text_bytes(&texts), text_bytes(&bytes.slice(1, 2))), (10, 6));
    }
}
