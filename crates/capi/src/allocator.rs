//! The host's allocator, as the whole library's.
#![cfg_attr(
    not(feature = "allocator"),
    allow(dead_code, reason = "the program has another allocator, which lends nothing")
)]

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU8, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

use marquetry_base::{Error, Result};

use crate::abi::{marquetry_allocator, marquetry_status};
use crate::handles::{self, marquetry_error};
use crate::{error, reserve};

/// Nobody has asked for memory yet; the C library was asked; the host is asked.
const UNUSED: u8 = 0;
const SYSTEM: u8 = 1;
const HOST: u8 = 2;
/// The host's functions are being set.
const SETTING: u8 = 3;

static WHOSE: AtomicU8 = AtomicU8::new(UNUSED);
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

#[derive(Clone, Copy)]
struct Functions {
    context: *mut c_void,
    alloc: extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    alloc_zeroed: extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: extern "C" fn(*mut c_void, *mut c_void, usize, usize, usize) -> *mut c_void,
    free: extern "C" fn(*mut c_void, *mut c_void, usize, usize),
}

// SAFETY: the context is only passed on; the host promises that its functions may be called on any thread that uses the library.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

/// Sets the allocator of everything that the library allocates from now on. Once, before any other call: afterwards memory of another
/// allocator is in use, and it is an error.
///
/// * `allocator`: in, copied. All four functions must be there. They must not call the library: that is a misuse, which the call answers with.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_set_allocator(
    allocator: *const marquetry_allocator,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    // Nothing is allocated before the functions are there: an error is made afterwards.
    match set(allocator) {
        Ok(()) => marquetry_status::Ok,
        Err(message) => error::answer(handles::call(|| Err::<(), Error>(Error::misuse(message))), error),
    }
}

fn set(allocator: *const marquetry_allocator) -> Result<(), &'static str> {
    if allocator.is_null() {
        return Err("an allocator that is NULL");
    }
    // SAFETY: the host promises a struct that begins with its size. (Errors here are words alone: others would allocate.)
    if unsafe { *allocator.cast::<usize>() } != size_of::<marquetry_allocator>() {
        return Err("an allocator whose struct_size is not the struct's sizeof");
    }
    // SAFETY: the host promises a struct of that size, any bytes of which are a value.
    let given = unsafe { *allocator };
    let (Some(alloc), Some(alloc_zeroed), Some(realloc), Some(free)) =
        (given.alloc, given.alloc_zeroed, given.realloc, given.free)
    else {
        return Err("an allocator that lacks one of its four functions");
    };
    if !cfg!(feature = "allocator") {
        return Err("the library was built without the feature `allocator`");
    }
    let late = "an allocator that is set after memory was allocated: it must be the first call";
    WHOSE.compare_exchange(UNUSED, SETTING, Ordering::AcqRel, Ordering::Relaxed).map_err(|_| late)?;
    let functions = Functions { context: given.context, alloc, alloc_zeroed, realloc, free };
    let is_set = FUNCTIONS.set(functions).is_ok();
    WHOSE.store(if is_set { HOST } else { SYSTEM }, Ordering::Release);
    if is_set { Ok(()) } else { Err(late) }
}

thread_local! {
    /// Whether this thread is in one of the host's functions.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in one of the host's functions, which must not call the library.
pub(crate) fn is_asking() -> bool {
    IS_ASKING.get()
}

/// Asking the host, or the C library.
pub(crate) mod ask {
    use super::*;

    /// Runs one of the host's functions.
    #[inline]
    fn asking<R>(work: impl FnOnce() -> R) -> R {
        let before = IS_ASKING.replace(true);
        let done = work();
        IS_ASKING.set(before);
        done
    }

    /// The host's functions; `None` if the C library is asked, as it is from now on if nobody was asked before.
    #[inline]
    fn host() -> Option<&'static Functions> {
        match WHOSE.load(Ordering::Acquire) {
            SYSTEM => None,
            HOST => FUNCTIONS.get(),
            _ => first(),
        }
    }

    #[cold]
    fn first() -> Option<&'static Functions> {
        loop {
            match WHOSE.compare_exchange(UNUSED, SYSTEM, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) | Err(SYSTEM) => return None,
                Err(HOST) => return FUNCTIONS.get(),
                Err(_) => core::hint::spin_loop(),
            }
        }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::alloc`].
    #[inline]
    pub(crate) unsafe fn alloc(layout: Layout) -> *mut u8 {
        match host() {
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc(layout) },
            Some(host) => asking(|| (host.alloc)(host.context, layout.size(), layout.align())).cast(),
        }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::alloc_zeroed`].
    #[inline]
    pub(crate) unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
        match host() {
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc_zeroed(layout) },
            Some(host) => asking(|| (host.alloc_zeroed)(host.context, layout.size(), layout.align())).cast(),
        }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::realloc`].
    #[inline]
    pub(crate) unsafe fn realloc(memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match host() {
            // SAFETY: the caller's promise.
            None => unsafe { System.realloc(memory, layout, size) },
            Some(host) => {
                asking(|| (host.realloc)(host.context, memory.cast(), layout.size(), layout.align(), size))
                    .cast()
            }
        }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::dealloc`].
    #[inline]
    pub(crate) unsafe fn dealloc(memory: *mut u8, layout: Layout) {
        match host() {
            // SAFETY: the caller's promise.
            None => unsafe { System.dealloc(memory, layout) },
            Some(host) => {
                asking(|| (host.free)(host.context, memory.cast(), layout.size(), layout.align()));
            }
        }
    }
}

/// The library's allocator.
struct Dispatch;

#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: Dispatch = Dispatch;

// SAFETY: every allocation comes from the host or the C library, which keep the contract, or is a part of the reserve that nobody else has;
// where it came from decides where it is freed, and does not change. Nothing here allocates or panics.
unsafe impl GlobalAlloc for Dispatch {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_asking() {
            // The host's functions have called the library: what it needs to refuse that is not asked of them again.
            return reserve::lend(layout);
        }
        // SAFETY: the caller's promise.
        let memory = unsafe { ask::alloc(layout) };
        if memory.is_null() { reserve::lend(layout) } else { memory }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_asking() {
            // SAFETY: the caller's promise.
            let memory = unsafe { ask::alloc_zeroed(layout) };
            if !memory.is_null() {
                return memory;
            }
        }
        let lent = reserve::lend(layout);
        if !lent.is_null() {
            // SAFETY: so many bytes are lent.
            unsafe { lent.write_bytes(0, layout.size()) };
        }
        lent
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !(is_asking() || reserve::has_lent() && reserve::is_lent(memory)) {
            // SAFETY: the caller's promise; the memory is not lent.
            let moved = unsafe { ask::realloc(memory, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else { return null_mut() };
        // SAFETY: the size is not 0, as the caller promises; the bytes are copied before the old memory is freed.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            moved
        }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if reserve::has_lent() && reserve::take_back(memory) {
            return;
        }
        // SAFETY: the caller's promise; the memory is not lent.
        unsafe { ask::dealloc(memory, layout) };
    }
}
