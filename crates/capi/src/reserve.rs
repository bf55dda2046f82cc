//! What small allocations come from when the host's allocator refuses them.
//!
//! The engine asks for memory whose size depends on a file with `try_reserve`, and a refusal is an error. But the small things that Rust's
//! own collections allocate (a node of a tree, a segment of a list, the text of an error) abort the process if they are refused. So every call begins with a
//! reserve of the host's memory, of which such requests get their part; if it was needed, the call fails as out of memory, and what was lent
//! comes back as it is freed.
//!
//! The hand-over to Arrow and the printing of CQL are other people's code or of one piece with `Vec`: there, in a *section*, requests of any size are
//! lent. What the reserve does not have is lent by the C library, for as long as the call takes: it fails, and what it made is dropped.
//!
//! One lock guards it, which is taken only while something is lent: otherwise an allocation costs one look at a number.
#![cfg_attr(
    not(feature = "allocator"),
    allow(dead_code, reason = "the program has another allocator, which lends nothing")
)]

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::{Mutex, PoisonError};

use marquetry_base::{Error, Result};

use crate::allocator::ask;

/// Bytes of the reserve.
const RESERVE_BYTES: usize = 128 << 10;
/// Requests that are lent outside of a section: nodes of trees, names, texts of errors, segments of what consists of such. What is larger is asked for with
/// `try_reserve`.
const SMALL_BYTES: usize = 128 << 10;
/// Bytes that are asked of the C library at a time, at least.
const BORROWED_BYTES: usize = 256 << 10;
const BLOCK_ALIGN: usize = 64;
const BLOCKS: usize = 64;

/// Memory of which parts are lent, from its beginning to its end. It begins anew when nothing of it is lent.
#[derive(Clone, Copy)]
struct Block {
    base: *mut u8,
    size: usize,
    used: usize,
    lent: usize,
}

struct Blocks([Block; BLOCKS]);

// SAFETY: the pointers are to memory that nobody has but whom it is lent to.
unsafe impl Send for Blocks {}

const NONE: Block = Block { base: null_mut(), size: 0, used: 0, lent: 0 };
/// The first is the reserve; the others are the C library's.
static ALL: Mutex<Blocks> = Mutex::new(Blocks([NONE; BLOCKS]));
/// Parts that are lent.
static LENT: AtomicUsize = AtomicUsize::new(0);
/// Whether the reserve is there.
static IS_THERE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Calls that this thread is in, sections of them, and the first request in them that was refused.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static SECTIONS: Cell<u32> = const { Cell::new(0) };
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// A call; calls may be nested, as a callback that frees another handle is.
pub(crate) struct Begun {
    before: usize,
}

/// Begins a call.
pub(crate) fn begin() -> Begun {
    DEPTH.set(DEPTH.get() + 1);
    Begun { before: REFUSED.replace(0) }
}

impl Drop for Begun {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        REFUSED.set(self.before);
    }
}

/// Does something in which requests of any size are lent.
pub(crate) fn section<R>(work: impl FnOnce() -> R) -> R {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            SECTIONS.set(SECTIONS.get() - 1);
        }
    }
    SECTIONS.set(SECTIONS.get() + 1);
    let _end = End;
    work()
}

/// Whether something was refused, and lent, in the call that this thread is in.
pub(crate) fn refused() -> Option<usize> {
    Some(REFUSED.get()).filter(|&bytes| bytes > 0)
}

/// What leaves the library, unless something was lent for it: that must come back.
pub(crate) fn kept<T>(made: T) -> Result<T> {
    match refused() {
        None => Ok(made),
        Some(bytes) => Err(Error::out_of_memory(bytes)),
    }
}

/// Fills the reserve, if it is not there.
///
/// # Errors
///
/// The allocator refused it.
pub(crate) fn fill() -> Result<()> {
    if IS_THERE.load(Ordering::Acquire) == 1 {
        return Ok(());
    }
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let block = &mut all.0[0];
    if block.base.is_null() {
        let layout = layout_of(RESERVE_BYTES);
        // SAFETY: the layout is not empty.
        let base = unsafe { ask::alloc(layout) };
        if base.is_null() {
            // The error may need memory that only the C library has: the lock must not be held.
            drop(all);
            return Err(Error::out_of_memory(RESERVE_BYTES));
        }
        *block = Block { base, size: RESERVE_BYTES, used: 0, lent: 0 };
        IS_THERE.store(1, Ordering::Release);
    }
    Ok(())
}

fn layout_of(size: usize) -> Layout {
    // Blocks have at most the size of a request, whose layout was valid, rounded up to an alignment.
    Layout::from_size_align(size, BLOCK_ALIGN).unwrap_or(Layout::new::<u64>())
}

/// Lends memory for a request that was refused; NULL if it is not small, or in no call.
pub(crate) fn lend(layout: Layout) -> *mut u8 {
    if DEPTH.get() == 0 || (layout.size() > SMALL_BYTES && SECTIONS.get() == 0) {
        return null_mut();
    }
    if REFUSED.get() == 0 {
        REFUSED.set(layout.size());
    }
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    for block in &mut all.0 {
        let address = part_of(block, layout);
        if !address.is_null() {
            LENT.fetch_add(1, Ordering::Release);
            return address;
        }
    }
    let Some(block) = all.0[1..].iter_mut().find(|block| block.base.is_null()) else { return null_mut() };
    let Some(size) = layout.size().checked_add(layout.align() + BLOCK_ALIGN) else { return null_mut() };
    let size = size.max(BORROWED_BYTES);
    // SAFETY: the layout is not empty.
    let base = unsafe { System.alloc(layout_of(size)) };
    if base.is_null() {
        return null_mut();
    }
    *block = Block { base, size, used: 0, lent: 0 };
    let address = part_of(block, layout);
    LENT.fetch_add(1, Ordering::Release);
    address
}

fn part_of(block: &mut Block, layout: Layout) -> *mut u8 {
    if block.base.is_null() {
        return null_mut();
    }
    let start = (block.base.addr() + block.used).next_multiple_of(layout.align()) - block.base.addr();
    match start.checked_add(layout.size()) {
        Some(end) if end <= block.size => {
            (block.used, block.lent) = (end, block.lent + 1);
            block.base.wrapping_add(start)
        }
        _ => null_mut(),
    }
}

/// Whether anything is lent.
#[inline]
pub(crate) fn has_lent() -> bool {
    LENT.load(Ordering::Acquire) > 0
}

/// Whether memory is lent.
pub(crate) fn is_lent(memory: *mut u8) -> bool {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.0.iter().any(|block| has(block, memory))
}

/// Takes memory back. False if it was not lent.
pub(crate) fn take_back(memory: *mut u8) -> bool {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = all.0.iter().position(|block| has(block, memory)) else { return false };
    let block = &mut all.0[at];
    block.lent -= 1;
    LENT.fetch_sub(1, Ordering::Release);
    if block.lent == 0 {
        block.used = 0;
        if at > 0 {
            // SAFETY: from `lend`, with this layout; nothing of it is lent.
            unsafe { System.dealloc(block.base, layout_of(block.size)) };
            *block = NONE;
        }
    }
    true
}

fn has(block: &Block, memory: *mut u8) -> bool {
    !block.base.is_null() && memory.addr().checked_sub(block.base.addr()).is_some_and(|at| at < block.size)
}
