//! Arrays that hold no more than their own values: strings of a batch point into the pages that they were decoded from, and an Arrow IPC
//! message has all that its arrays point into.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_schema::DataType;
use marquetry_base::Result;

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
    }
}
