//! An allocator that counts for each thread: what it holds, and what it allocates while it is watched. Tests beside each other are on
//! threads of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};

/// Allocators of hosts that never wait dislike pieces of memory that are larger than this.
pub const LARGE_BYTES: usize = 1 << 20;

/// The system's allocator, which counts: `#[global_allocator] static COUNTING: Counting = Counting;`
#[derive(Debug, Clone, Copy)]
pub struct Counting;

/// What was allocated while the thread was [watched], since [`start`].
#[derive(Debug)]
pub struct Taken {
    /// Bytes that were held at the most, beside what was there before.
    pub peak_bytes: u64,
    /// How often memory was allocated, grown or freed.
    pub calls: u64,
    /// Pieces of more than [`LARGE_BYTES`], and what asked for them.
    pub large: Vec<(usize, Backtrace)>,
}

/// The most that a thread holds after [`peak`] was called, beside what it held then.
#[derive(Debug)]
pub struct Peak(i64);

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static HELD_MAX: Cell<i64> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    static START: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LARGE: RefCell<Vec<(usize, Backtrace)>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that this thread allocated and did not free. Fewer than none, if it freed what others allocated.
pub fn held() -> i64 {
    HELD.get()
}

/// Bytes of the largest piece that this thread asked for since this was called last.
pub fn largest() -> usize {
    LARGEST.take()
}

/// Looks for the most that this thread holds from now on: the last that began to look.
pub fn peak() -> Peak {
    let held = HELD.get();
    HELD_MAX.set(held);
    Peak(held)
}

impl Peak {
    /// The most so far, in bytes.
    pub fn bytes(&self) -> usize {
        usize::try_from(HELD_MAX.get() - self.0).unwrap_or(0)
    }
}

/// Begins to count anew.
pub fn start() {
    START.set(HELD.get());
    PEAK.set(HELD.get());
    CALLS.set(0);
    LARGE.take();
}

/// Does some work, and watches what the thread allocates meanwhile.
pub fn watched<T>(work: impl FnOnce() -> T) -> T {
    /// Ends the watch, even where the work panics.
    struct Watch(bool);
    impl Drop for Watch {
        fn drop(&mut self) {
            IS_WATCHED.set(self.0);
        }
    }
    let _watch = Watch(IS_WATCHED.replace(true));
    work()
}

/// What was counted since [`start`]; large pieces, since they were last asked for.
pub fn taken() -> Taken {
    Taken {
        peak_bytes: u64::try_from(PEAK.get() - START.get()).unwrap_or(0),
        calls: CALLS.get(),
        large: LARGE.take(),
    }
}

#[expect(unsafe_code, reason = "an allocator has no other form")]
// SAFETY: all is left to the system's allocator, which keeps the contract; what is counted beside it is the thread's own, and is not
// allocated by what counts it, but for the note of a large piece, during which nothing is counted.
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

fn count(more: usize, less: usize) {
    let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    // At the thread's end they are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + signed(more) - signed(less));
        let _ = HELD_MAX.try_with(|most| most.set(most.get().max(held.get())));
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(more)));
    });
    if !IS_WATCHED.try_with(Cell::get).unwrap_or(false) {
        return;
    }
    PEAK.set(PEAK.get().max(HELD.get()));
    CALLS.set(CALLS.get() + 1);
    // What shrinks where it is, to be released in slices, is nothing new.
    if more > LARGE_BYTES && more > less {
        IS_WATCHED.set(false);
        LARGE.with_borrow_mut(|large| large.push((more, Backtrace::force_capture())));
        IS_WATCHED.set(true);
    }
}
