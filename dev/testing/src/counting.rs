//! An allocator that counts for the process, so cheaply that calls can be timed: what is held, the most that was, and the
//! largest piece that a machine asked for. ([`memory`](crate::memory) counts for each thread, and notes who asked.)
//!
//! ```
//! use marquetry_testing::counting::{self, Counting};
//!
//! #[global_allocator]
//! static MEMORY: Counting = Counting;
//!
//! counting::start();
//! let bytes = counting::watch(|| vec![0u8; 5000]);
//! drop(bytes);
//! assert_eq!(counting::largest(), 5000);
//! assert!(counting::peak() >= 5000);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};

/// The system's allocator. It counts for the process, all of its threads, once it is told to [`start`].
#[derive(Debug)]
pub struct Counting;

static IS_ON: AtomicBool = AtomicBool::new(false);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
static HELD: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Counts from now on, from nothing.
pub fn start() {
    HELD.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    LARGEST.store(0, Relaxed);
    IS_ON.store(true, Relaxed);
}

/// Does some work. The largest piece is of what is asked for meanwhile.
pub fn watch<T>(work: impl FnOnce() -> T) -> T {
    IS_WATCHED.store(true, Relaxed);
    let done = work();
    IS_WATCHED.store(false, Relaxed);
    done
}

/// Bytes that are held, of those that were asked for since the start; none where more were released.
pub fn held() -> u64 {
    u64::try_from(HELD.load(Relaxed)).unwrap_or(0)
}

/// The most bytes that were held since the start.
pub fn peak() -> u64 {
    u64::try_from(PEAK.load(Relaxed)).unwrap_or(0)
}

/// Bytes of the largest piece that was asked for while it was [watched](watch).
pub fn largest() -> u64 {
    u64::try_from(LARGEST.load(Relaxed)).unwrap_or(u64::MAX)
}

fn count(more: usize, less: usize) {
    if !IS_ON.load(Relaxed) {
        return;
    }
    let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    let change = signed(more) - signed(less);
    let held = HELD.fetch_add(change, Relaxed) + change;
    PEAK.fetch_max(held, Relaxed);
    if IS_WATCHED.load(Relaxed) {
        LARGEST.fetch_max(more, Relaxed);
    }
}

#[expect(unsafe_code, reason = "an allocator has no other form")]
// SAFETY: all is left to the system's allocator, which keeps the contract; what is counted beside it are numbers, which allocate
// nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        count(memory.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(memory) }
    }

    unsafe fn alloc_zeroed(&self, memory: Layout) -> *mut u8 {
        count(memory.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(memory) }
    }

    unsafe fn realloc(&self, address: *mut u8, memory: Layout, size: usize) -> *mut u8 {
        count(size, memory.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(address, memory, size) }
    }

    unsafe fn dealloc(&self, address: *mut u8, memory: Layout) {
        count(0, memory.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(address, memory) }
    }
}
