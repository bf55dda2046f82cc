//! Values that are kept.

/// A value, PLAIN-encoded, but BYTE_ARRAY without a length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainValue {
    /// Its bytes, at most a few KiB of them.
    pub bytes: Vec<u8>,
    /// It has more.
    pub is_cut: bool,
}

impl PlainValue {
    /// Of a value, at most so many bytes.
    pub(super) fn of(value: &[u8], bytes_max: usize) -> PlainValue {
        let kept = &value[..value.len().min(bytes_max)];
        PlainValue { bytes: kept.to_vec(), is_cut: kept.len() < value.len() }
    }
}
