//! The engine's buffers and bitmaps as Arrow's: the same memory, held by reference count.

use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, ScalarBuffer};
use bytemuck::NoUninit;
use marquetry_base::{Bitmap, Buffer, Bytes};

/// A buffer of values, seen as bytes.
struct Owner<T>(Buffer<T>);

impl<T: NoUninit> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// The same memory, as Arrow's bytes.
pub(crate) fn buffer<T: NoUninit + Send + Sync>(values: &Buffer<T>) -> arrow_buffer::Buffer {
    Bytes::from_owner(Owner(values.clone())).into()
}

/// The same memory, as Arrow values of a type of the same size. It is copied if it is not aligned for that type, which
/// only happens with bytes.
pub(crate) fn scalars<T: NoUninit + Send + Sync, N: ArrowNativeType>(values: &Buffer<T>) -> ScalarBuffer<N> {
    let bytes = size_of_val::<[T]>(values);
    let length = bytes / size_of::<N>();
    let shared = buffer(values);
    let is_aligned = shared.as_ptr().align_offset(align_of::<N>()) == 0;
    let buffer = if is_aligned { shared } else { arrow_buffer::Buffer::from(shared.as_slice()) };
    ScalarBuffer::new(buffer, 0, length)
}

/// The same memory, as Arrow's bits.
pub(crate) fn bits(bitmap: &Bitmap) -> BooleanBuffer {
    BooleanBuffer::new(buffer(bitmap.bytes()), bitmap.offset(), bitmap.len())
}

/// The same memory, as Arrow's validity.
pub(crate) fn nulls(validity: Option<&Bitmap>) -> Option<NullBuffer> {
    validity.map(|validity| NullBuffer::new(bits(validity)))
}
