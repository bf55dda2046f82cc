//! Flat columns with a slot for each null, as all sources of tables have them: sorters, filters and CQL count on it.

use std::sync::Arc;

use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Values};

/// The batch with slots for nulls in its flat columns, as [`Batches`](crate::Batches) of all sources have them. Mappings of
/// writes make columns without.
pub fn spaced(mut batch: Batch) -> Batch {
    batch.columns = batch.columns.into_iter().map(with_slots).collect();
    batch
}

/// The column with slots for its nulls, if it is flat.
fn with_slots(mut column: ColumnBatch) -> ColumnBatch {
    if column.levels.is_some() || column.layout == Layout::Spaced {
        return column;
    }
    column.layout = Layout::Spaced;
    let Some(validity) = column.validity.as_ref().filter(|_| column.nulls > 0) else { return column };
    column.values = spread(&column.values, &mut validity.iter());
    column
}

fn spread(values: &Values, validity: &mut dyn Iterator<Item = bool>) -> Values {
    match values {
        Values::Boolean(bits) => {
            let mut next = bits.iter();
            Values::Boolean(validity.map(|is_there| is_there && next.next().unwrap_or(false)).collect())
        }
        Values::Int32(values) => slots(values, validity).into(),
        Values::Int64(values) => slots(values, validity).into(),
        Values::Float(values) => slots(values, validity).into(),
        Values::Double(values) => slots(values, validity).into(),
        Values::ByteArray(arrays) => {
            // An empty string is a view of zeros.
            let views = slots(arrays.views(), validity);
            Values::ByteArray(ByteArrays::new(views.into(), Arc::clone(arrays.buffers())))
        }
        Values::Int96(values) => Values::Int96(fixed(values, validity)),
        Values::FixedLenByteArray(values) => Values::FixedLenByteArray(fixed(values, validity)),
        Values::Dictionary(indices, entries) => {
            Values::Dictionary(slots(indices, validity).into(), Arc::clone(entries))
        }
    }
}

fn slots<T: Copy + Default>(values: &[T], validity: &mut dyn Iterator<Item = bool>) -> Vec<T> {
    let mut next = values.iter().copied();
    validity.map(|is_there| if is_there { next.next().unwrap_or_default() } else { T::default() }).collect()
}

fn fixed(values: &FixedBytes, validity: &mut dyn Iterator<Item = bool>) -> FixedBytes {
    let (width, zeros) = (values.width(), vec![0; values.width()]);
    let (mut bytes, mut slots, mut next) = (Vec::new(), 0, 0);
    for is_there in validity {
        let is_value = is_there && next < values.len();
        bytes.extend_from_slice(if is_value { values.get(next) } else { &zeros });
        (slots, next) = (slots + 1, next + usize::from(is_value));
    }
    FixedBytes::new(width, slots, bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_get_slots() {
        let column = |values: Values| ColumnBatch {
            leaf: 0,
            rows: 4,
            nulls: 2,
            validity: Some([false, true, false, true].into_iter().collect()),
            values,
            layout: Layout::Dense,
            levels: None,
            provisional: false,
        };
        let fixed =
            |count, bytes: &[u8]| Values::FixedLenByteArray(FixedBytes::new(2, count, bytes.to_vec().into()));
        let bits = |bits: &[bool]| Values::Boolean(bits.iter().copied().collect());
        let long = "long enough not to be in the view";
        let of = |values: &[u32]| Values::Dictionary(values.to_vec().into(), Arc::new(vec![7, 8].into()));
        for (dense, expected) in [
            (vec![7, 8].into(), vec![0, 7, 0, 8].into()),
            (vec![7_i64, 8].into(), vec![0_i64, 7, 0, 8].into()),
            (vec![7.0_f32, 8.0].into(), vec![0.0_f32, 7.0, 0.0, 8.0].into()),
            (vec![7.0, 8.0].into(), vec![0.0, 7.0, 0.0, 8.0].into()),
            (bits(&[true, true]), bits(&[false, true, false, true])),
            ([long, "b"].into_iter().collect(), ["", long, "", "b"].into_iter().collect()),
            (fixed(2, &[1, 2, 3, 4]), fixed(4, &[0, 0, 1, 2, 0, 0, 3, 4])),
            (of(&[1, 0]), of(&[0, 1, 0, 0])),
        ] as [(Values, Values); 8]
        {
            let spread = with_slots(column(dense));
            assert_eq!((spread.layout, &spread.values), (Layout::Spaced, &expected));
            assert_eq!(with_slots(spread.clone()).values, expected);
        }
    }
}
