//! Values detached from their batch, so that they can be kept without it: a slice keeps all that it is a part of.

use marquetry_base::Buffer;
use marquetry_base::cast::usize_of_u32;
use marquetry_parquet::batch::{ColumnBatch, FixedBytes, Levels, Values};

/// A column of few rows, without the batch that it is a slice of.
pub(crate) fn detached_column(column: &ColumnBatch) -> ColumnBatch {
    let levels = |levels: &Buffer<u8>| levels.to_vec().into();
    ColumnBatch {
        validity: column.validity.as_ref().map(|validity| validity.iter().collect()),
        values: detached(&column.values),
        levels: column.levels.as_ref().map(|all| Levels {
            definition: levels(&all.definition),
            repetition: all.repetition.as_ref().map(levels),
        }),
        ..*column
    }
}

/// Few values, without the buffers that they are in. Those of a dictionary become plain ones.
pub(crate) fn detached(values: &Values) -> Values {
    match values {
        Values::Dictionary(indices, entries) => picked(entries, indices.iter().map(|at| usize_of_u32(*at))),
        values => picked(values, 0..values.len()),
    }
}

fn picked(values: &Values, places: impl Iterator<Item = usize>) -> Values {
    let fixed = |values: &FixedBytes, places: &mut dyn Iterator<Item = usize>| {
        let all: Vec<&[u8]> = places.map(|at| values.get(at)).collect();
        FixedBytes::new(values.width(), all.len(), all.concat().into())
    };
    let mut places = places;
    match values {
        Values::Boolean(bits) => Values::Boolean(places.map(|at| bits.get(at)).collect()),
        Values::Int32(values) => places.map(|at| values[at]).collect::<Vec<i32>>().into(),
        Values::Int64(values) => places.map(|at| values[at]).collect::<Vec<i64>>().into(),
        Values::Float(values) => places.map(|at| values[at]).collect::<Vec<f32>>().into(),
        Values::Double(values) => places.map(|at| values[at]).collect::<Vec<f64>>().into(),
        Values::ByteArray(values) => places.map(|at| values.get(at)).collect(),
        Values::Int96(values) => Values::Int96(fixed(values, &mut places)),
        Values::FixedLenByteArray(values) => Values::FixedLenByteArray(fixed(values, &mut places)),
        // A dictionary of a dictionary, which no reader makes.
        Values::Dictionary(..) => values.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_is_detached_is_the_same() {
        let fixed = || FixedBytes::new(2, 3, vec![1, 2, 3, 4, 5, 6].into());
        let all: [Values; 7] = [
            Values::Boolean([true, false, true].into_iter().collect()),
            vec![1, 2, 3].into(),
            vec![1_i64, 2, 3].into(),
            vec![1.0_f32, 2.0, 3.0].into(),
            vec![1.0, 2.0, 3.0].into(),
            ["a", "", "ccc"].into_iter().collect(),
            Values::FixedLenByteArray(fixed()),
        ];
        for values in all {
            assert_eq!(detached(&values), values);
            assert_eq!(detached(&values.slice(1..3)), values.slice(1..3));
            let dictionary = Values::Dictionary(vec![2, 1].into(), Arc::new(values.clone()));
            assert_eq!(detached(&dictionary).slice(0..1), values.slice(2..3));
        }
        assert_eq!(detached(&Values::Int96(fixed())), Values::Int96(fixed()));
    }
}
