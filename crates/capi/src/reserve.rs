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
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Memory of which parts are lent, from its beginning to its end. It begins anew when nothing of it is lent.
///
/// Of the C library's, this is at the beginning of the memory itself, and links it to the next: so there may be any number of them, and none needs a place of
/// its own.
struct Block {
    base: *mut u8,
    size: usize,
    /// Bytes from the base that are not free: parts that are lent or were, and of the C library's this header.
    used: usize,
    /// Parts that are lent.
    lent: usize,
    next: *mut Block,
}

struct Blocks {
    reserve: Block,
    /// The C library's, the latest first.
    borrowed: *mut Block,
}

// SAFETY: the pointers are to memory that nobody has but whom it is lent to, and to headers that are used behind the lock alone.
unsafe impl Send for Blocks {}

const NONE: Block = Block { base: null_mut(), size: 0, used: 0, lent: 0, next: null_mut() };
/// No allocator is called while it is locked: neither the host's nor the C library's.
static ALL: Mutex<Blocks> = Mutex::new(Blocks { reserve: NONE, borrowed: null_mut() });
/// Parts that are lent.
static LENT: AtomicUsize = AtomicUsize::new(0);
/// Whether the reserve is there.
static IS_THERE: AtomicBool = AtomicBool::new(false);

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

fn all() -> MutexGuard<'static, Blocks> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fills the reserve, if it is not there.
///
/// # Errors
///
/// The allocator refused it.
pub(crate) fn fill() -> Result<()> {
    if IS_THERE.load(Ordering::Acquire) {
        return Ok(());
    }
    let layout = layout_of(RESERVE_BYTES);
    // SAFETY: the layout is not empty.
    let base = unsafe { ask::alloc(layout) };
    if base.is_null() {
        return Err(Error::out_of_memory(RESERVE_BYTES));
    }
    let mut all = all();
    if all.reserve.base.is_null() {
        all.reserve = Block { base, size: RESERVE_BYTES, ..NONE };
        IS_THERE.store(true, Ordering::Release);
        return Ok(());
    }
    // Another thread was faster.
    drop(all);
    // SAFETY: from above, with this layout; nobody else has it.
    unsafe { ask::dealloc(base, layout) };
    Ok(())
}

fn layout_of(size: usize) -> Layout {
    // Blocks have at most the size of a request, whose layout was valid, and a header, rounded up to an alignment.
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
    let address = all().lend(layout);
    if !address.is_null() {
        return address;
    }
    let header = size_of::<Block>().next_multiple_of(BLOCK_ALIGN);
    let Some(size) = layout.size().checked_add(layout.align().saturating_add(header)) else {
        return null_mut();
    };
    let size = size.max(BORROWED_BYTES);
    if Layout::from_size_align(size, BLOCK_ALIGN).is_err() {
        return null_mut();
    }
    // SAFETY: the layout is not empty.
    let base = unsafe { System.alloc(layout_of(size)) };
    if base.is_null() {
        return null_mut();
    }
    let mut all = all();
    let block: *mut Block = base.cast();
    // SAFETY: the memory is larger than a header, aligned for one, and nobody else has it.
    unsafe {
        block.write(Block { base, size, used: header, lent: 0, next: all.borrowed });
    }
    all.borrowed = block;
    all.lend(layout)
}

impl Blocks {
    /// A part of the reserve, or of what was borrowed last; NULL if neither has room.
    fn lend(&mut self, layout: Layout) -> *mut u8 {
        let mut address = self.reserve.part(layout);
        if address.is_null() && !self.borrowed.is_null() {
            // SAFETY: a header that `lend` wrote, which is there until `take_back` unlinks it; the lock is held.
            address = unsafe { &mut *self.borrowed }.part(layout);
        }
        if !address.is_null() {
            LENT.fetch_add(1, Ordering::Release);
        }
        address
    }
}

impl Block {
    fn part(&mut self, layout: Layout) -> *mut u8 {
        if self.base.is_null() {
            return null_mut();
        }
        let start = (self.base.addr() + self.used).next_multiple_of(layout.align()) - self.base.addr();
        match start.checked_add(layout.size()) {
            Some(end) if end <= self.size => {
                (self.used, self.lent) = (end, self.lent + 1);
                self.base.wrapping_add(start)
            }
            _ => null_mut(),
        }
    }

    fn has(&self, memory: *mut u8) -> bool {
        !self.base.is_null() && memory.addr().checked_sub(self.base.addr()).is_some_and(|at| at < self.size)
    }
}

/// Whether anything is lent.
#[inline]
pub(crate) fn has_lent() -> bool {
    LENT.load(Ordering::Acquire) > 0
}

/// Whether memory is lent.
pub(crate) fn is_lent(memory: *mut u8) -> bool {
    let all = all();
    if all.reserve.has(memory) {
        return true;
    }
    let mut at = all.borrowed;
    while !at.is_null() {
        // SAFETY: a header in the list, which the lock guards.
        let block = unsafe { &*at };
        if block.has(memory) {
            return true;
        }
        at = block.next;
    }
    false
}

/// Takes memory back. False if it was not lent.
pub(crate) fn take_back(memory: *mut u8) -> bool {
    let mut all = all();
    if all.reserve.has(memory) {
        let reserve = &mut all.reserve;
        reserve.lent -= 1;
        if reserve.lent == 0 {
            reserve.used = 0;
        }
        LENT.fetch_sub(1, Ordering::Release);
        return true;
    }
    let mut before: *mut Block = null_mut();
    let mut at = all.borrowed;
    while !at.is_null() {
        // SAFETY: a header in the list, which the lock guards.
        let block = unsafe { &mut *at };
        if !block.has(memory) {
            (before, at) = (at, block.next);
            continue;
        }
        block.lent -= 1;
        LENT.fetch_sub(1, Ordering::Release);
        if block.lent == 0 {
            let (base, size, next) = (block.base, block.size, block.next);
            match before.is_null() {
                true => all.borrowed = next,
                // SAFETY: as above; it is another header.
                false => unsafe { (*before).next = next },
            }
            drop(all);
            // SAFETY: from `lend`, with this layout; nothing of it is lent, and no header leads to it.
            unsafe { System.dealloc(base, layout_of(size)) };
        }
        return true;
    }
    false
}
