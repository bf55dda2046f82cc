//! The buffers that the views of a batch of byte strings point into.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Pool, Release, Result, release_all};

use crate::encoding::delta_byte_array::BUILT_ROOM;
use crate::memory::Memory;

/// Bytes of values that are built here, after which another buffer is begun. A slice of them, or one value, goes beyond it.
const BUILT_BYTES_MAX: usize = 128 << 10;
/// Bytes of such a buffer's memory, at most.
const BUFFER_BYTES_MAX: usize = BUILT_BYTES_MAX + BUILT_ROOM;
/// Buffers of them that are used again, if the reader of the batch has dropped it by then: 2.4 MB at most. A batch of 8,192 values of 80
/// bytes has five.
const BUILT_REUSED: usize = 16;

/// The buffers that the views of a batch point into. The first are the dictionary's: one at least, empty where there is none.
#[derive(Debug)]
pub(in crate::read) struct Buffers {
    shared: Vec<Bytes>,
    /// Numbers that are the dictionary's.
    dictionary: usize,
    /// The number of the page's chunk that a view points into last.
    page: Option<u32>,
    /// Values that are built here, not taken from a page, and the number that their buffer will have.
    built: Vec<u8>,
    built_index: Option<u32>,
    /// Memory for them.
    pool: Pool<u8>,
    /// Bytes of the others that are not the dictionary's; and those that vectors of built values have beyond these.
    bytes: usize,
    unused: usize,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers {
            shared: Vec::new(),
            dictionary: 0,
            page: None,
            built: Vec::new(),
            built_index: None,
            pool: Pool::of_at_most(BUILT_REUSED),
            bytes: 0,
            unused: 0,
        }
    }
}

impl Buffers {
    /// Keeps the first numbers for a dictionary of so many buffers. False where they are taken: the batch must end first.
    pub(in crate::read) fn admit(&mut self, dictionary: usize) -> bool {
        if self.shared.is_empty() {
            self.dictionary = dictionary;
        }
        dictionary <= self.dictionary.max(1)
    }

    /// Adds a buffer: its number.
    pub(in crate::read) fn push(&mut self, bytes: Bytes) -> Result<u32> {
        if self.shared.is_empty() {
            self.shared.resize(self.dictionary.max(1), Bytes::new());
        }
        let index = u32::try_from(self.shared.len()).map_err(|_| too_many_buffers())?;
        self.bytes += bytes.len();
        self.shared.push(bytes);
        Ok(index)
    }

    /// The number that a chunk of a page has, or will have once it is kept.
    pub(in crate::read) fn number_of(&self, chunk: &Bytes) -> Result<u32> {
        match self.page {
            Some(index) if self.is_current(chunk) => Ok(index),
            _ => u32::try_from(self.shared.len().max(self.dictionary).max(1)).map_err(|_| too_many_buffers()),
        }
    }

    /// True when views point into this chunk already.
    pub(super) fn is_current(&self, chunk: &Bytes) -> bool {
        let current = self.page.and_then(|index| self.shared.get(index as usize));
        current.is_some_and(|bytes| bytes.as_ptr() == chunk.as_ptr() && bytes.len() == chunk.len())
    }

    /// Keeps a chunk that views point into, under the number that [`Buffers::number_of`] said.
    pub(in crate::read) fn keep(&mut self, chunk: Bytes) -> Result<()> {
        if !self.is_current(&chunk) {
            self.page = Some(self.push(chunk)?);
        }
        Ok(())
    }

    /// Where values are built, one behind the other: the number that the buffer has, and its bytes so far. Room is made by [`reserve`].
    pub(in crate::read) fn building(&mut self, memory: &mut Memory) -> Result<(u32, &mut Vec<u8>)> {
        if self.built.len() >= BUILT_BYTES_MAX {
            self.close_built();
        }
        let index = match self.built_index {
            Some(index) => index,
            None => {
                let index = self.push(Bytes::new())?;
                self.built_index = Some(index);
                // Whatever there is, for the first of a batch, which may need little; then one that need not grow.
                let room = if self.bytes > 0 { BUFFER_BYTES_MAX } else { 0 };
                memory.admit(self.pool.allocates(room))?;
                self.built = self.pool.take_memory(room)?;
                self.built.clear();
                index
            }
        };
        Ok((index, &mut self.built))
    }

    /// Copies a value to where values are built: the number of the buffer, and the offset in it.
    pub(in crate::read) fn build(&mut self, value: &[u8], memory: &mut Memory) -> Result<(u32, u32)> {
        let (index, built) = self.building(memory)?;
        let offset = u32::try_from(built.len()).map_err(|_| Error::internal("values beyond 4 GiB"))?;
        reserve(built, value.len(), memory)?;
        built.extend_from_slice(value);
        Ok((index, offset))
    }

    fn close_built(&mut self) {
        let built = core::mem::take(&mut self.built);
        self.bytes += built.len();
        self.unused += built.capacity() - built.len();
        if let Some(slot) = self.built_index.take().and_then(|index| self.shared.get_mut(index as usize)) {
            let length = built.len();
            *slot = Bytes::from_owner(self.pool.share(built, length));
        }
    }

    /// True for the buffer that was added last.
    pub(super) fn is_last(&self, bytes: &Bytes) -> bool {
        self.shared.last().is_some_and(|last| last.as_ptr() == bytes.as_ptr())
    }

    /// Bytes of the buffers, but for the dictionary's.
    pub(super) fn filled(&self) -> usize {
        self.bytes + self.built.len()
    }

    /// Bytes of memory that they take.
    pub(super) fn held(&self) -> usize {
        self.bytes + self.unused + self.built.capacity()
    }

    /// Bytes of memory that is kept to be used again.
    pub(super) fn idle(&self) -> usize {
        self.pool.idle_bytes()
    }

    pub(super) fn share(&mut self, dictionary: Option<&Arc<Vec<Bytes>>>) -> Arc<Vec<Bytes>> {
        self.close_built();
        let mut shared = core::mem::take(&mut self.shared);
        let places = core::mem::take(&mut self.dictionary).max(1);
        self.page = None;
        (self.bytes, self.unused) = (0, 0);
        match dictionary {
            // None but the dictionary's.
            Some(dictionary) if shared.is_empty() => return Arc::clone(dictionary),
            // Those that did not find place are not pointed into: see `admit`.
            Some(dictionary) => {
                let places = shared.iter_mut().take(places);
                places.zip(&**dictionary).for_each(|(place, buffer)| *place = buffer.clone());
            }
            None => {}
        }
        Arc::new(shared)
    }
}

/// Makes room for more bytes of values that are built: at most [`BUILT_ROOM`].
pub(in crate::read) fn reserve(built: &mut Vec<u8>, more: usize, memory: &mut Memory) -> Result<()> {
    let least = built.len() + more;
    if least <= built.capacity() {
        return Ok(());
    }
    // Twice as much each time, but no more than a buffer needs.
    let room = built.capacity().saturating_mul(2).min(BUFFER_BYTES_MAX).max(least);
    memory.admit(room)?;
    built.try_reserve_exact(room - built.len()).map_err(|_| Error::out_of_memory(room))
}

impl Release for Buffers {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (self.bytes, self.unused) = (0, 0);
        release_all(&mut [&mut self.shared, &mut self.built, &mut self.pool], budget)
    }
}

fn too_many_buffers() -> Error {
    Error::internal("too many buffers in a batch")
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::Limit;

    /// Builds values of `length` bytes, `count` of them, as a batch.
    fn build(
        buffers: &mut Buffers,
        count: usize,
        length: usize,
        memory: &mut Memory,
    ) -> Result<Arc<Vec<Bytes>>> {
        for _ in 0..count {
            buffers.build(&alloc::vec![b'x'; length], memory)?;
        }
        Ok(buffers.share(None))
    }

    #[test]
    fn memory_for_built_values_is_admitted_counted_and_bounded() {
        let mut buffers = Buffers::default();
        let mut memory = Memory::new((Limit::TotalBytes, 4 * BUFFER_BYTES_MAX as u64), 0, 0).unwrap();
        // Little of a few small ones.
        buffers.build(&[1; 100], &mut memory).unwrap();
        assert_eq!((buffers.held(), buffers.filled()), (100, 100));
        // As much as can come before another is begun.
        while buffers.filled() < BUILT_BYTES_MAX - 1 {
            let more = (BUILT_BYTES_MAX - 1 - buffers.filled()).min(1000);
            buffers.build(&alloc::vec![1; more], &mut memory).unwrap();
            assert!(buffers.held() <= 2 * buffers.filled() + 1000);
        }
        buffers.build(&alloc::vec![2; BUILT_ROOM], &mut memory).unwrap();
        assert_eq!(buffers.held(), BUFFER_BYTES_MAX);
        // Another, which need not grow.
        let (index, _) = buffers.build(&[3; 1], &mut memory).unwrap();
        assert_eq!((buffers.held(), buffers.filled(), index), (2 * BUFFER_BYTES_MAX, BUFFER_BYTES_MAX, 2));
        // Some more are admitted, and not all.
        let error = build(&mut buffers, 50, BUILT_ROOM, &mut memory).unwrap_err();
        assert_eq!(error.kind(), marquetry_base::ErrorKind::LimitExceeded);
    }

    #[test]
    fn what_is_kept_to_be_used_again_is_bounded() {
        let (mut buffers, mut memory) = (Buffers::default(), Memory::unlimited());
        drop(build(&mut buffers, 200, BUILT_ROOM, &mut memory).unwrap());
        assert_eq!((buffers.held(), buffers.idle()), (0, BUILT_REUSED * BUFFER_BYTES_MAX));
        // And is: nothing more is admitted.
        let mut none = Memory::new((Limit::TotalBytes, 0), 0, 0).unwrap();
        assert!(build(&mut buffers, 8, BUILT_ROOM, &mut none).is_ok());
    }
}
